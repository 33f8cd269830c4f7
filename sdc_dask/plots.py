"""Pictures with matplotlib: what is risked and lost, blocks, and a column before and after.

They need ``pip install 'sdc-dask[plot]'``. Each draws on axes that are passed, or on new ones, and
returns them.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd

from sdc_dask.errors import SdcImportError, SdcValueError

BEFORE, AFTER = "#3f6a96", "#7a2e00"


def pyplot() -> Any:
    """Return matplotlib's module for pictures, or raise an error that says what to install."""
    try:
        from matplotlib import pyplot as module
    except ImportError:
        raise SdcImportError(
            "a picture needs matplotlib, which is not installed: pip install 'sdc-dask[plot]'."
        ) from None
    return module


def axes(ax: Any, figsize: tuple[float, float] = (6.4, 4.8)) -> Any:
    """Return axes to draw on, new ones if none are given."""
    made = pyplot()
    return made.subplots(figsize=figsize, layout="constrained")[1] if ax is None else ax


def risk_utility(table: pd.DataFrame, ax: Any = None) -> Any:
    """Draw a map of risk and loss: a point for each masking, and the frontier.

    Parameters
    ----------
    table : DataFrame
        As :meth:`~sdc_dask.SdcAccessor.compare` or ``to_frame`` of a suggestion returns it.
    ax : matplotlib axes, optional

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
        ax.plot(*zip(*others, strict=True), "o", color="#8a929a", label="dominated")
    for number, point in enumerate(points, 1):
        ax.annotate(str(number), point, xytext=(5, 4), textcoords="offset points", fontsize="small")
    key = "\n".join(f"{number}  {name}" for number, name in enumerate(table.index, 1))
    ax.text(1.02, 1.0, key, transform=ax.transAxes, va="top", fontsize="small")
    ax.set_xlabel("loss: 0.5 il_scaled + 0.5 SSE / SST, percent")
    ax.set_ylabel("risk: 0.5 linked + 0.5 interval, percent")
    ax.legend()
    return ax


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
