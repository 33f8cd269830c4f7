"""Frequencies of values before and after masking, of columns with few different ones."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.errors import SdcError, SdcTypeError, SdcValueError
from sdc_dask.results import Result

MOST_VALUES = 10_000  # of a column

Counts = dict[Any, int]  # records by value; by None the missing cells


@dataclass(frozen=True, repr=False)
class Frequencies(Result):
    """How many records have which value before and after masking, by column.

    `counts` has a pair of numbers for each value of each column, by None for missing cells, the
    most frequent first. `moved` is the percentage of records that other values would have to be
    given to make the frequencies equal: half the sum of absolute differences, in percent.
    """

    rows: int
    moved: dict[Hashable, float]
    counts: dict[Hashable, dict[Any, tuple[int, int]]]

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain Python objects; values as texts, missing ones as None."""
        named = {
            column: {
                None if value is None else str(value): list(both) for value, both in counts.items()
            }
            for column, counts in self.counts.items()
        }
        return {"rows": self.rows, "moved": dict(self.moved), "counts": named}

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each value of each column."""
        rows = [
            (column, value, *both)
            for column, counts in self.counts.items()
            for value, both in counts.items()
        ]
        frame = pd.DataFrame(rows, columns=["column", "value", "before", "after"], dtype=object)
        return frame.astype({"before": "int64", "after": "int64"})

    @property
    def table(self) -> pd.DataFrame:
        """The columns, a row for each: values before and after, and what has moved."""
        rows = [
            {
                "values": sum(before > 0 for before, _ in counts.values()),
                "masked_values": sum(after > 0 for _, after in counts.values()),
                "missing": counts.get(None, (0, 0))[0],
                "masked_missing": counts.get(None, (0, 0))[1],
                "moved": self.moved[column],
            }
            for column, counts in self.counts.items()
        ]
        index = pd.Index(list(self.counts), name="column", tupleize_cols=False)
        return pd.DataFrame(rows, index=index)

    def __repr__(self) -> str:
        """Show the table of columns, and what its columns are."""
        lines = [f"Frequencies of {self.rows:,} records"]
        table = self.table.rename_axis(index=None).to_string(float_format="{:.4g}".format)
        lines += [f"  {line}" for line in table.splitlines()]
        notes = {
            "values": "different ones, missing cells as one of them",
            "missing": "missing cells",
            "moved": "percent of records whose value the frequencies lost: lower is better",
        }
        return "\n".join([*lines, *(f"  {name:<10} {note}" for name, note in notes.items())])


def frequencies(original: Frame, masked: Frame, columns: Sequence[Hashable]) -> Frequencies:
    """Count the values of columns before and after masking, in one pass over each frame."""
    before, after = (count_values(frame, columns) for frame in (original, masked))
    for each in (*before.values(), *after.values()):
        if isinstance(each, SdcError):
            raise each
    return of_counts(before, after)  # type: ignore[arg-type]


def count_values(frame: Frame, columns: Sequence[Hashable]) -> dict[Hashable, Counts | SdcError]:
    """Count the values of columns in one pass; an error in the place of what cannot be counted."""
    names = list(columns)
    counted = map_reduce(frame[names], _count, _merge, names)
    return dict(zip(names, counted, strict=True))


def of_counts(before: dict[Hashable, Counts], after: dict[Hashable, Counts]) -> Frequencies:
    """Put the counts of columns before and after masking side by side."""
    first = next(iter(before))
    rows = same_number(*(sum(each[first].values()) for each in (before, after)))
    moved, counts = {}, {}
    for name, old in before.items():
        new = after[name]
        both = {value: (old.get(value, 0), new.get(value, 0)) for value in {**old, **new}}
        counts[name] = dict(
            sorted(both.items(), key=lambda item: (-item[1][0], -item[1][1], str(item[0])))
        )
        moved[name] = 100 * sum(abs(a - b) for a, b in both.values()) / (2 * rows)
    return Frequencies(rows, moved, counts)


def same_number(original: int, masked: int) -> int:
    """Return the number of records, of which two frames must have as many."""
    if original != masked:
        raise SdcValueError(
            f"the masked frame has {masked:,} records, the original {original:,}: compare frames "
            "with the same rows."
        )
    if original == 0:
        raise SdcValueError("the frames have no records: there is nothing to compare.")
    return original


def _count(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> list[Counts | SdcError]:
    found: list[Counts | SdcError] = []
    for name in columns:
        try:
            found.append(_few(name, _counts_of(part[name])))
        except TypeError:
            # The original text may show a value.
            found.append(
                SdcTypeError(
                    f"column {name!r} holds values that cannot be compared, such as lists: name "
                    "columns of texts, numbers, dates or categories."
                )
            )
    return found


def _counts_of(column: pd.Series) -> Counts:
    counted = column.value_counts(dropna=False)
    counts: Counts = {}
    for value, number in zip(counted.index.tolist(), counted.tolist(), strict=True):
        if number:  # categories may have none
            hash(value)
            key = None if pd.isna(value) else value
            counts[key] = counts.get(key, 0) + number
    return counts


def _merge(parts: list[list[Counts | SdcError]]) -> list[Counts | SdcError]:
    return [_merged(list(each)) for each in zip(*parts, strict=True)]


def _merged(parts: list[Counts | SdcError]) -> Counts | SdcError:
    total: Counts = {}
    for each in parts:
        if isinstance(each, SdcError):
            return each
        for value, number in each.items():
            total[value] = total.get(value, 0) + number
    return _few(None, total)


def _few(name: Hashable, counts: Counts) -> Counts | SdcError:
    if len(counts) <= MOST_VALUES:
        return counts
    which = "a column" if name is None else f"column {name!r}"
    return SdcValueError(
        f"{which} has more than {MOST_VALUES:,} different values, too many for a table of "
        "frequencies: name columns of categories, and see information_loss for numbers."
    )
