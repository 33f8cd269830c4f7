"""Univariate blocking: n/L intervals of equal width of the first column.

Source: J. Domingo-Ferrer, "Blocking methods for microdata protection", ESSnet-SDC, 2008,
chapter 3, where it is the baseline for the 2^d-tree.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.blocking.cells import Cells, centroids, count_cells
from sdc_dask.blocking.leaves import Leaves


@dataclass(frozen=True)
class Intervals:
    """Equal intervals of the first dimension as a locator, a number of them for each stratum."""

    low: NDArray[np.float64]  # of all dimensions
    high: NDArray[np.float64]
    intervals: NDArray[np.int64]  # by stratum
    first_leaf: NDArray[np.int64]  # by stratum

    def leaf_of(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell the leaf of every record."""
        base = self.low[0] / 2
        width = self.high[0] / 2 - base
        share = (points[:, 0] / 2 - base) / width if width > 0 else np.zeros(len(points))
        intervals = self.intervals[stratum]
        place = np.clip((share * intervals).astype(np.int64), 0, intervals - 1)
        return self.first_leaf[stratum] + place

    def count(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> Cells:
        """Count records by leaf."""
        leaf = self.leaf_of(points, stratum)
        node = np.zeros(len(points), np.int64)
        rows = np.arange(len(points))
        return count_cells(node, leaf, rows, points, self.low[None], self.high[None])


def cut_intervals(
    counts: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    max_block: int,
    count_pass: Callable[[Intervals], Cells],
) -> tuple[Intervals, Leaves, int]:
    """Cut the range of the first dimension into n/L intervals, in every stratum.

    Parameters and result are those of :func:`sdc_dask.blocking.tree.grow`. An interval holds what
    falls into it: no records, or more than L.
    """
    intervals = np.maximum(1, np.round(counts / max_block).astype(np.int64))
    first_leaf = np.concatenate([[0], np.cumsum(intervals)[:-1]])
    locator = Intervals(low, high, intervals, first_leaf)
    cells = count_pass(locator)
    n_leaves = int(intervals.sum())

    def by_leaf(column: NDArray) -> NDArray:
        full = np.zeros((n_leaves, *column.shape[1:]), column.dtype)
        full[cells.code] = column
        return full

    leaves = Leaves(
        np.repeat(np.arange(len(counts)), intervals),
        by_leaf(cells.count),
        by_leaf(cells.low),
        by_leaf(cells.high),
        by_leaf(centroids(cells, low[None], high[None])),
    )
    return locator, leaves, 1
