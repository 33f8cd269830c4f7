"""Pictures with matplotlib: what is risked and lost, blocks, and a column before and after.

They need ``pip install 'sdc-dask[plot]'``. Each draws on axes that are passed, or on new ones, and
returns them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from sdc_dask import extras
from sdc_dask.errors import SdcTypeError, SdcValueError

BEFORE, AFTER, OTHER = "#3f6a96", "#7a2e00", "#8a929a"
# Directions in which a number may stand from its point, the usual one first.
_AROUND = ((0.9, 0.7), (1, 0), (0.9, -0.7), (0, -1), (0, 1), (-0.9, 0.7), (-1, 0), (-0.9, -0.7))


def pyplot() -> Any:
    """Return matplotlib's module for pictures, or raise an error that says what to install."""
    return extras.load("matplotlib.pyplot", "a picture")


def axes(ax: Any, figsize: tuple[float, float] = (6.4, 4.8)) -> Any:
    """Return axes to draw on, new ones if none are given."""
    made = pyplot()
    if ax is not None and not hasattr(ax, "transAxes"):
        raise SdcTypeError(
            f"ax must be axes of matplotlib to draw on, received {type(ax).__name__}. What is "
            "returned are axes, too, and a file of the picture is made by "
            ".figure.savefig('picture.png')."
        )
    return made.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def risk_utility(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw a map of risk and loss: a point for each masking, and the frontier.

    Parameters
    ----------
    table : DataFrame
        As :meth:`~sdc_dask.SdcAccessor.compare` or ``to_frame`` of a suggestion returns it.
    ax : matplotlib axes, optional
        Names of maskings stand right of them, where ``layout="constrained"`` makes room.

    Returns
    -------
    matplotlib axes
    """
    if not {"risk", "loss"} <= set(table.columns):
        raise SdcValueError(
            "a map of risk and loss needs a table of compare or suggest, received other columns."
        )
    risk, loss = table["risk"], table["loss"]
    ax = axes(ax, (9.0, 5.0))
    points = list(zip(loss, risk, strict=True))
    best, least = [], float("inf")
    for x, y in sorted(points):
        if y < least:
            least = y
            best.append((x, y))
    others = [point for point in points if point not in best]
    ax.plot(*zip(*best, strict=True), "o-", color=AFTER, label="frontier")
    if others:
        ax.plot(*zip(*others, strict=True), "o", color=OTHER, label="dominated")
    key = "\n".join(f"{number}  {name}" for number, name in enumerate(table.index, 1))
    ax.text(1.02, 1.0, key, transform=ax.transAxes, va="top", fontsize="small")
    numbers = "il_scaled" in table.columns
    ax.set_xlabel(f"loss: {'0.5 il_scaled + 0.5 SSE / SST' if numbers else 'Gower'}, percent")
    ax.set_ylabel(f"risk: {'0.5 linked + 0.5 interval' if numbers else 'linked'}, percent")
    ax.legend()
    _number(ax, points)
    return ax


def _number(ax: Any, points: Sequence[tuple[float, float]]) -> None:
    """Write numbers beside points, none upon another one or upon a point.

    Each goes to the first free place around its point; a thin line leads to those that are far.
    """
    ax.figure.draw_without_rendering()  # so that it is known how far points are from each other
    pixel = 72 / ax.figure.dpi
    centres = ax.transData.transform(points) * pixel
    left, bottom, right, top = ax.bbox.extents * pixel
    taken = [(x, y, 3.0, 3.0) for x, y in centres]  # centres and half sizes, in points of print
    for number, (point, (x, y)) in enumerate(zip(points, centres, strict=True), 1):
        width, height = 2.8 * len(str(number)), 4.0
        places = [
            (dx * (distance + width - 2.8), dy * distance)
            for distance in (9, 16, 24, 32)
            for dx, dy in _AROUND
        ]
        free = [
            (dx, dy)
            for dx, dy in places
            if left < x + dx < right
            and bottom < y + dy < top
            and not any(
                abs(x + dx - u) < width + w and abs(y + dy - v) < height + h for u, v, w, h in taken
            )
        ]
        dx, dy = free[0] if free else places[0]
        taken.append((x + dx, y + dy, width, height))
        far = max(abs(dx) - width, abs(dy)) > 9
        ax.annotate(
            str(number),
            point,
            xytext=(dx, dy),
            textcoords="offset points",
            fontsize="small",
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "linewidth": 0.5, "color": OTHER} if far else None,
        )


def boxes(table: pd.DataFrame, x: Hashable, y: Hashable, title: str, ax: Any = None) -> Any:
    """Draw boxes of records in two columns, from a table of their bounds and counts."""
    ax = axes(ax)
    from matplotlib.collections import PatchCollection
    from matplotlib.patches import Rectangle

    low = table[[f"{x} low", f"{y} low"]].to_numpy()
    size = table[[f"{x} high", f"{y} high"]].to_numpy() - low
    found = PatchCollection(
        [Rectangle(tuple(a), *b) for a, b in zip(low, size, strict=True)],
        edgecolor="#1b1f24",
        linewidth=0.5,
        cmap="Blues",
        alpha=0.6,
    )
    found.set_array(table["records"].to_numpy())
    ax.add_collection(found)
    ax.autoscale_view()
    ax.set_xlabel(str(x))
    ax.set_ylabel(str(y))
    ax.set_title(title, fontsize="medium")
    ax.figure.colorbar(found, ax=ax, label="records per block")
    return ax


def before_after(
    edges: Sequence[float],
    widths: Sequence[int],
    unit: float,
    before: Sequence[int],
    after: Sequence[int],
    column: Hashable,
    ax: Any = None,
) -> Any:
    """Draw the bins of a column, of which the outermost are open: records per unit."""
    ax = axes(ax)
    starts = [edges[0] - widths[0] * unit, *edges]
    ends = [*edges, edges[-1] + widths[-1] * unit]
    places = [*starts, ends[-1]]
    old = [count / width for count, width in zip(before, widths, strict=True)]
    new = [count / width for count, width in zip(after, widths, strict=True)]
    ax.stairs(old, places, fill=True, color=BEFORE, alpha=0.6, label="before")
    ax.stairs(new, places, color=AFTER, linewidth=2, label="after")
    ax.set_xlabel(f"{column}; the outermost bins are open")
    ax.set_ylabel("records per bin of even width")
    ax.legend()
    return ax


def with_dates(ax: Any) -> Any:
    """Write dates below a picture whose numbers are days since 1970."""
    ax.xaxis_date()
    ax.xaxis.set_major_formatter(
        extras.load("matplotlib.dates", "a picture").ConciseDateFormatter(
            ax.xaxis.get_major_locator()
        )
    )
    return ax


def frequencies(
    labels: Sequence[str],
    before: Sequence[int] | None,
    after: Sequence[int],
    column: Hashable,
    ax: Any = None,
) -> Any:
    """Draw how many records have each category, the first on top; without those before if None."""
    ax = axes(ax, (6.4, max(2.4, 0.45 * len(labels) + 1.2)))
    places = range(len(labels))
    if before is not None:
        ax.barh([place - 0.2 for place in places], before, 0.4, color=BEFORE, label="before")
    shift, height = (0.0, 0.8) if before is None else (0.2, 0.4)
    ax.barh([place + shift for place in places], after, height, color=AFTER, label="after")
    ax.set_yticks(list(places), labels)
    ax.invert_yaxis()
    ax.set_xlabel("records")
    ax.set_title(str(column), fontsize="medium")
    ax.legend()
    return ax
