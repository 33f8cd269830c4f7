"""What measures return: small frozen records of numbers that print well."""

from __future__ import annotations

from dataclasses import asdict, fields
from html import escape
from textwrap import wrap
from typing import Any

import pandas as pd


class Result:
    """A frozen dataclass of numbers with a readable repr."""

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as a dict of plain Python objects, ready for JSON."""
        return asdict(self)  # type: ignore[call-overload]

    def to_frame(self) -> pd.DataFrame:
        """Return the single numbers as a frame with one row."""
        single = {
            name: [value] for name, value in self.to_dict().items() if not isinstance(value, dict)
        }
        return pd.DataFrame(single)

    def _repr_html_(self) -> str:
        """Show a table in a notebook: name, value, and what it is; or the text, where it is one."""
        if type(self).__repr__ is not Result.__repr__:
            return as_html(repr(self))
        rows = []
        for each in fields(self):  # type: ignore[arg-type]
            cells = (_show(getattr(self, each.name)), each.metadata.get("note", ""))
            shown = "".join(f'<td style="text-align:left">{escape(cell)}</td>' for cell in cells)
            rows.append(f'<tr><th scope="row" style="text-align:left">{each.name}</th>{shown}</tr>')
        name = type(self).__name__
        return f"<table><caption>{name}</caption><tbody>{''.join(rows)}</tbody></table>"

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__}"]
        all_fields = fields(self)  # type: ignore[arg-type]
        width = max(10, *(len(each.name) for each in all_fields))
        for each in all_fields:
            value = getattr(self, each.name)
            note = each.metadata.get("note", "")
            text = f"  {each.name:<{width}} {_show(value)}"
            if isinstance(value, dict):
                # One for every column, of which there may be many. A name stays with its number.
                joined = wrap(text.replace(": ", ":\0"), 100, subsequent_indent=" " * (width + 3))
                lines += [line.replace("\0", " ") for line in joined]
            elif isinstance(value, str) and not note:
                lines += wrap(text, 100, subsequent_indent=" " * (width + 3)) or [text]
            else:
                start = f"{text:<{width + 24}} "
                lines += wrap(start + note, 100, subsequent_indent=" " * len(start)) or [text]
        return "\n".join(lines)


def as_html(text: str) -> str:
    """Return a text as it is, for a notebook.

    Examples
    --------
    >>> as_html("a < b")
    '<pre>a &lt; b</pre>'
    """
    return f"<pre>{escape(text)}</pre>"


def _show(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {_show(each)}" for name, each in value.items()) or "-"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, int):
        return f"{value:,}"
    return str(value)


def several(number: int, what: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> several(1, "file"), several(1_200, "block")
    ('1 file', '1,200 blocks')
    """
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
