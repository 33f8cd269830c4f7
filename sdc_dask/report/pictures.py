"""Pictures as SVG text, with nothing in them but shapes and the numbers of their axis."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from sdc_dask.report.categories import Categories
from sdc_dask.report.measured import Correlation
from sdc_dask.report.numbers import number, percent
from sdc_dask.report.shapes import Histogram, Quantile

_WIDTH, _HEIGHT = 320, 110
_LEFT, _TOP, _BASE = 4, 6, 88
_ROW, _RADIUS = 18, 4  # of pictures with a row for each figure
_LETTER = 6.8  # about as wide as a letter of a label is


def histogram(bins: Histogram, column: str, identity: str) -> str:
    """Draw the records per unit of a column: bars before masking, a line after it.

    Parameters
    ----------
    bins : Histogram
    column : str
        Its name, for the title.
    identity : str
        Of the picture in its page, which its title is found by.

    Returns
    -------
    str
        An ``<svg>`` element.

    Examples
    --------
    >>> bins = Histogram((1.0, 2.0), (1, 1, 1), 1.0, (5, 8, 6), (6, 7, 6))
    >>> svg = histogram(bins, "a < b", "h1")
    >>> svg.startswith("<svg "), "a &lt; b" in svg, svg.count("<rect ")
    (True, True, 3)
    """
    units = sum(bins.widths)
    step = (_WIDTH - 2 * _LEFT) / units
    densities = [
        [count / width for count, width in zip(counts, bins.widths, strict=True)]
        for counts in (bins.before, bins.after)
    ]
    highest = max(max(each) for each in densities)
    scale = (_BASE - _TOP) / highest
    bars, line, x = [], [f"M{_LEFT} {_BASE}"], float(_LEFT)
    borders = []
    for width, before, after in zip(bins.widths, *densities, strict=True):
        wide, tall = width * step, before * scale
        bars.append(
            f'<rect x="{x:.1f}" y="{_BASE - tall:.1f}" width="{wide - 0.5:.1f}" '
            f'height="{tall:.1f}"/>'
        )
        y = _BASE - after * scale
        line.append(f"L{x:.1f} {y:.1f}L{x + wide:.1f} {y:.1f}")
        x += wide
        borders.append(x)
    line.append(f"L{x:.1f} {_BASE}")
    first, last = number(bins.edges[0], 3), number(bins.edges[-1], 3)
    marks = f'<path class="axis" d="M{_LEFT} {_BASE}H{_WIDTH - _LEFT}"/>'
    for place, label, anchor in ((borders[0], first, "start"), (borders[-2], last, "end")):
        if anchor == "end" and len(bins.edges) == 1:
            continue
        marks += (
            f'<path class="axis" d="M{place:.1f} {_BASE}v4"/>'
            f'<text x="{place:.1f}" y="{_HEIGHT - 6}" text-anchor="{anchor}">{label}</text>'
        )
    title = f"Histogram of {escape(column)} before (bars) and after masking (line)"
    return (
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-labelledby="{identity}">'
        f'<title id="{identity}">{title}</title>'
        f'<g class="before">{"".join(bars)}</g><path class="after" d="{"".join(line)}"/>'
        f"{marks}</svg>"
    )


def quantile_moves(quantiles: Sequence[Quantile], column: str, identity: str) -> str:
    """Draw how far quantiles have moved: a ring before masking, a dot after it.

    Quantiles that may not be shown are left out; without any there is no picture.

    Examples
    --------
    >>> svg = quantile_moves([Quantile(5, 1.0, 2.0), Quantile(50, 3.0, None)], "a", "q1")
    >>> svg.count("<circle "), "Quantiles of a" in svg
    (2, True)
    """
    rows = [
        (f"{each.percent} %", each.before, each.after)
        for each in quantiles
        if each.before is not None and each.after is not None
    ]
    return _moves(rows, f"Quantiles of {column} before (rings) and after masking (dots)", identity)


def correlation_moves(correlations: Sequence[Correlation], identity: str) -> str:
    """Draw how far correlations have moved, between -1 and 1.

    Examples
    --------
    >>> svg = correlation_moves([Correlation(("a", "b"), 0.5, 0.25)], "c1")
    >>> svg.count("<circle "), ">a, b</text>" in svg
    (2, True)
    """
    rows = [(", ".join(map(str, e.columns)), e.before, e.after) for e in correlations]
    title = "Correlations before (rings) and after masking (dots)"
    return _moves(rows, title, identity, (-1.0, 1.0))


def _moves(
    rows: Sequence[tuple[str, float, float]],
    title: str,
    identity: str,
    ends: tuple[float, float] | None = None,
) -> str:
    """Draw a row for each figure, with a line from what it was to what it is."""
    if not rows:
        return ""
    values = [value for _, *both in rows for value in both]
    low, high = ends or (min(values), max(values))
    names = [_short(name) for name, _, _ in rows]
    left = _beside(names)
    scale = (_WIDTH - left - 2 * _RADIUS - _LEFT) / ((high - low) or 1.0)
    base = _TOP + _ROW * len(rows)
    marks = [f'<path class="axis" d="M{left:.1f} {base}H{_WIDTH - _LEFT}"/>']
    if low < 0 < high:
        zero = left + _RADIUS + (0 - low) * scale
        marks.append(f'<path class="zero" d="M{zero:.1f} {_TOP}V{base}"/>')
    for place, (name, (_, before, after)) in enumerate(zip(names, rows, strict=True)):
        y = _TOP + _ROW * place + _ROW / 2
        x0, x1 = (left + _RADIUS + (value - low) * scale for value in (before, after))
        marks.append(
            f'<text x="{left - 6:.1f}" y="{y + 4:.1f}" text-anchor="end">{escape(name)}</text>'
            f'<path class="axis" d="M{x0:.1f} {y:.1f}H{x1:.1f}"/>'
            f'<circle class="ring" cx="{x0:.1f}" cy="{y:.1f}" r="{_RADIUS}"/>'
            f'<circle class="dot" cx="{x1:.1f}" cy="{y:.1f}" r="{_RADIUS - 1.5}"/>'
        )
    labels = ((left, low, "start"), (_WIDTH - _LEFT, high, "end"))
    for x, value, anchor in labels[: 1 if low == high else 2]:
        marks.append(
            f'<text x="{x:.1f}" y="{base + 16}" text-anchor="{anchor}">{number(value, 3)}</text>'
        )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {base + 22}" role="img" aria-labelledby="{identity}">'
        f'<title id="{identity}">{escape(title)}</title>{"".join(marks)}</svg>'
    )


def frequencies(categories: Categories, column: str, identity: str) -> str:
    """Draw the shares of categories: a bar before masking, and one below it after.

    The title has the figures, for those who do not see the picture. Of a column whose values are
    all others, it shows those after masking alone.

    Examples
    --------
    >>> from sdc_dask.report.categories import Category
    >>> shown = Categories(40, (Category("a", 30, 20), Category("b", 10, 20)), renamed=False)
    >>> svg = frequencies(shown, "letter", "f1")
    >>> svg.count("<rect "), "a 75.0 %, 50.0 %; b 25.0 %, 50.0 %" in svg
    (4, True)
    """
    names = [_short(each.label) for each in categories.shown]
    left = _beside(names)
    shares = [
        (100 * each.before / categories.rows, 100 * each.after / categories.rows)
        for each in categories.shown
    ]
    room = _WIDTH - left - _LEFT - _LETTER * len(" 100.0 %")
    scale = room / max(max(both) for both in shares)
    bars, labels, told = [], [], []
    base = _TOP + _ROW * len(names)
    for place, (name, both) in enumerate(zip(names, shares, strict=True)):
        top = _TOP + _ROW * place
        drawn = both[1:] if categories.renamed else both
        height = (_ROW - 4) / len(drawn)
        for number_of, share in enumerate(drawn):
            when = "before" if len(drawn) - number_of == 2 else "then"
            bars.append(
                f'<rect class="{when}" x="{left:.1f}" y="{top + 2 + number_of * height:.1f}" '
                f'width="{share * scale:.1f}" height="{height:.1f}"/>'
            )
        end = left + max(drawn) * scale + 4
        labels.append(
            f'<text x="{left - 6:.1f}" y="{top + _ROW / 2 + 4:.1f}" text-anchor="end">'
            f"{escape(name)}</text>"
            f'<text x="{end:.1f}" y="{top + _ROW / 2 + 4:.1f}">{percent(both[1], 1)}</text>'
        )
        told.append(f"{name} {', '.join(percent(share, 1) for share in drawn)}")
    when = "after masking" if categories.renamed else "before and after masking"
    title = f"Frequencies of {column} {when}: {'; '.join(told)}"
    axis = f'<path class="axis" d="M{left:.1f} {_TOP}V{base}"/>'
    return (
        f'<svg viewBox="0 0 {_WIDTH} {base + 6}" role="img" aria-labelledby="{identity}">'
        f'<title id="{identity}">{escape(title)}</title>'
        f"{''.join(bars)}{axis}{''.join(labels)}</svg>"
    )


def _short(name: str) -> str:
    return name if len(name) <= 24 else f"{name[:23]}…"


def _beside(names: Sequence[str]) -> float:
    """Return how much room labels at the left take."""
    return 12 + _LETTER * max(map(len, names))
