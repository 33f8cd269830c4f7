"""How values are distributed before and after masking, as far as it may be shown.

All of it comes from counts of values on a grid: no value of a record is kept. A quantile is shown
if enough records lie beyond it, and neighbouring bins of a histogram are merged until each holds
enough, in both versions.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.moments import CoMoments, co_moments
from sdc_dask.kernels.differences import CELLS, Grid

PERCENTS = (5, 10, 25, 50, 75, 90, 95)
DOMINATES = 0.25  # the share of all squared deviations above which one value dominates a column
_BINS = 20  # between the outermost quantiles that are shown
_FINE = 50  # cells between the quartiles that are enough
_ZOOMS = 4  # passes that look for a finer grid, at most

Counts = NDArray[np.int64]


@dataclass(frozen=True)
class Quantile:
    """A quantile before and after masking; None where too few records lie beyond it."""

    percent: int
    before: float | None
    after: float | None


@dataclass(frozen=True)
class Histogram:
    """Bins side by side, each with enough records before and after masking.

    Attributes
    ----------
    edges : tuple of float
        Between bins, ascending: one fewer than bins, since the outermost bins are open.
    widths : tuple of int
        Of the bins, in units; an open end counts one.
    unit : float
        A unit, in values of the column.
    before, after : tuple of int
        Records by bin.
    """

    edges: tuple[float, ...]
    widths: tuple[int, ...]
    unit: float
    before: tuple[int, ...]
    after: tuple[int, ...]


@dataclass(frozen=True)
class Shape:
    """What may be shown of the distribution of one column."""

    quantiles: tuple[Quantile, ...]
    histogram: Histogram | None


def grids_of(frame: Frame, moments: CoMoments) -> dict[Hashable, Grid]:
    """Return a grid for every column on which its quartiles are well apart.

    The first one is made of mean and deviation. Outliers can make that so coarse that nearly all
    records share a cell; then the next pass looks into that cell.
    """
    first = {
        column: Grid(sums.mean, sums.deviation or 1.0) if sums.n else Grid(0.0, 1.0)
        for column, sums in moments.sums.items()
    }
    found = dict(first)
    coarse = [column for column, sums in moments.sums.items() if sums.n and sums.spread]
    for _ in range(_ZOOMS):
        if not coarse:
            break
        counted = counts_on(frame, {column: found[column] for column in coarse})
        for column, counts in counted.items():
            low, high = (_cell_of(counts, percent) for percent in (25, 75))
            if high - low >= _FINE:
                coarse.remove(column)
                continue
            middles = found[column].values()
            middle = (low + high) // 2
            ends = max(low - 1, 0), min(high + 1, CELLS - 1)
            width = float(middles[ends[1]] - middles[ends[0]])
            if np.isfinite(width) and width > 0:
                found[column] = Grid(float(middles[middle]), width)
    # Half of the records have one value: there is nothing between the quartiles to look into.
    return {column: first[column] if column in coarse else found[column] for column in found}


def counts_on(frame: Frame, grids: dict[Hashable, Grid]) -> dict[Hashable, Counts]:
    """Count the values of every column on its grid, in one pass."""
    columns = list(grids)
    counts = map_reduce(frame[columns], _count, _add, columns, list(grids.values()))
    return dict(zip(columns, counts, strict=True))


def _count(part: pd.DataFrame, _number: int, columns: list[Hashable], grids: list[Grid]) -> Counts:
    return np.stack(
        [
            grid.count(to_float(part, [column])[:, 0])
            for column, grid in zip(columns, grids, strict=True)
        ]
    )


def _add(parts: list[Counts]) -> Counts:
    return np.sum(parts, axis=0)


def shape_of(grid: Grid, before: Counts, after: Counts, least: int) -> Shape:
    """Return quantiles and a histogram from counts on a grid.

    Parameters
    ----------
    grid : Grid
    before, after : ndarray of int64
        Values by cell of the grid, in the original and in the masked column.
    least : int
        How many records there must be beyond a quantile, and in a bin.

    Examples
    --------
    >>> values = np.arange(100.0)
    >>> grid = Grid(49.5, 29.0)
    >>> counts = grid.count(values)
    >>> shape = shape_of(grid, counts, counts, least=10)
    >>> [(each.percent, each.before is None) for each in shape.quantiles[:3]]
    [(5, True), (10, True), (25, False)]
    >>> min(shape.histogram.before) >= 10, sum(shape.histogram.before)
    (True, 100)
    """
    middles = grid.values()
    quantiles = tuple(
        Quantile(
            percent,
            _quantile(middles, before, percent, least),
            _quantile(middles, after, percent, least),
        )
        for percent in PERCENTS
    )
    shown = [each.before for each in quantiles if each.before is not None]
    if len(shown) < 2 or not shown[0] < shown[-1]:
        return Shape(quantiles, None)
    return Shape(quantiles, _histogram(middles, before, after, shown[0], shown[-1], least))


def histogram_of(original: Frame, masked: Frame, column: Hashable, least: int) -> Histogram | None:
    """Return a histogram of a column before and after masking, or None if there can be none."""
    grids = grids_of(original, co_moments(original, [column]))
    before, after = (counts_on(frame, grids)[column] for frame in (original, masked))
    return shape_of(grids[column], before, after, least).histogram


def _cell_of(counts: Counts, percent: int) -> int:
    """Return the cell of the value of rank p n, rounded up."""
    seen = np.cumsum(counts)
    return int(np.searchsorted(seen, -(-percent * int(seen[-1]) // 100)))


def _quantile(
    middles: NDArray[np.float64], counts: Counts, percent: int, least: int
) -> float | None:
    total = int(counts.sum())
    if not total:
        return None
    cell = _cell_of(counts, percent)
    below, here = int(counts[:cell].sum()), int(counts[cell])
    fewest = min(below, total - below - here)
    # A cell that has enough records by itself says nothing of one of them.
    if max(fewest, here) < least:
        return None
    return _rounded(middles, cell)


def _rounded(middles: NDArray[np.float64], cell: int) -> float:
    """Return the value of a cell with the digits that its width allows."""
    first, last = max(cell - 1, 0), min(cell + 1, CELLS - 1)
    width = float(middles[last] - middles[first]) / (last - first)
    if not (np.isfinite(width) and width > 0):
        return float(middles[cell])
    power = 10.0 ** math.floor(math.log10(width))
    step = power * next((each for each in (1, 2, 5) if each * power >= width), 10)
    return round(float(middles[cell]) / step) * step + 0.0


def _histogram(
    middles: NDArray[np.float64], before: Counts, after: Counts, low: float, high: float, least: int
) -> Histogram | None:
    edges = np.linspace(low, high, _BINS + 1)
    places = np.searchsorted(edges, middles)
    old, new = (
        np.bincount(places, counts, minlength=_BINS + 2).astype(np.int64)
        for counts in (before, after)
    )
    ends = merged(old, new, least)
    if len(ends) < 2:
        return None
    starts = [0, *ends[:-1]]
    spans = list(zip(starts, ends, strict=True))
    return Histogram(
        tuple(float(edges[end - 1]) for end in ends[:-1]),
        tuple(end - start for start, end in spans),
        (high - low) / _BINS,
        tuple(int(old[start:end].sum()) for start, end in spans),
        tuple(int(new[start:end].sum()) for start, end in spans),
    )


def merged(before: Sequence[int] | Counts, after: Sequence[int] | Counts, least: int) -> list[int]:
    """Return where merged bins end, each with at least so many records before and after.

    There is none if not even all records are enough.

    Examples
    --------
    >>> merged([5, 1, 3, 9, 2], [6, 2, 2, 8, 2], least=4)
    [1, 3, 5]
    """
    ends: list[int] = []
    old = new = 0
    for place, (one, other) in enumerate(zip(before, after, strict=True), 1):
        old, new = old + int(one), new + int(other)
        if old >= least and new >= least:
            ends.append(place)
            old = new = 0
    if ends:
        ends[-1] = len(before)  # what is left at the end goes to the last bin
    return ends


def dominated(frame: Frame, moments: CoMoments) -> set[Hashable]:
    """Return the columns whose mean and deviation say much of a single value, in one pass.

    Examples
    --------
    >>> from sdc_dask.engine.moments import co_moments
    >>> frame = pd.DataFrame({"age": range(40), "wealth": [1.0, 2.0] * 19 + [3.0, 900.0]})
    >>> dominated(frame, co_moments(frame, ["age", "wealth"]))
    {'wealth'}
    """
    columns = list(moments.sums)
    lows, highs = map_reduce(frame[columns], _bounds, _widest, columns)
    found = set()
    for column, low, high in zip(columns, lows, highs, strict=True):
        sums = moments.sums[column]
        if not sums.n or not sums.spread:
            continue
        farthest = max(high - sums.mean, sums.mean - low) / sums.deviation
        if farthest * (farthest / sums.n) > DOMINATES:
            found.add(column)
    return found


_Bounds = tuple[NDArray[np.float64], NDArray[np.float64]]


def _bounds(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> _Bounds:
    lows, highs = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    for j, column in enumerate(columns):
        values = to_float(part, [column])[:, 0]
        values = values[~np.isnan(values)]
        if len(values):
            lows[j], highs[j] = values.min(), values.max()
    return lows, highs


def _widest(parts: list[_Bounds]) -> _Bounds:
    lows, highs = zip(*parts, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)
