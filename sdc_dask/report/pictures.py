"""Pictures as SVG text, with nothing in them but shapes and the numbers of their axis."""

from __future__ import annotations

from html import escape

from sdc_dask.report.numbers import number
from sdc_dask.report.shapes import Histogram

_WIDTH, _HEIGHT = 320, 110
_LEFT, _TOP, _BASE = 4, 6, 88


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
