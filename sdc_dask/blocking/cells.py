"""Counts of records by cell of space: small partials that merge in any order to the same result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Positions are added up as integers, in this many steps across a node: the sums cannot depend on
# the order of the records, and 2**33 records fit.
_STEPS = 2.0**30


@dataclass(frozen=True)
class Cells:
    """Non-empty cells in order of (node, code), with what planning needs of their records."""

    node: NDArray[np.int64]
    code: NDArray[np.int64]
    count: NDArray[np.int64]
    low: NDArray[np.float64]  # smallest coordinates
    high: NDArray[np.float64]  # largest coordinates
    position: NDArray[np.int64]  # sum of positions between the node's bounds, in steps

    def __len__(self) -> int:
        return len(self.node)


def count_cells(
    node: NDArray[np.int64],
    code: NDArray[np.int64],
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> Cells:
    """Count records by cell.

    Parameters
    ----------
    node, code : ndarray of int64, shape (n,)
        The cell of every record.
    points : ndarray of float64, shape (n, d)
    low, high : ndarray of float64, shape (nodes, d)
        Bounds of the nodes, between which positions are measured.
    """
    # Halving first keeps the largest floats from overflowing.
    base = low[node] / 2
    width = high[node] / 2 - base
    share = np.divide(points / 2 - base, width, out=np.zeros_like(points), where=width > 0)
    position = (share * _STEPS).astype(np.int64)
    ones = np.ones(len(node), np.int64)
    return merge_cells([Cells(node, code, ones, points, points, position)])


def merge_cells(parts: Sequence[Cells]) -> Cells:
    """Merge partial counts."""
    node = np.concatenate([part.node for part in parts])
    code = np.concatenate([part.code for part in parts])
    order = np.lexsort((code, node))
    node, code = node[order], code[order]
    new = np.ones(len(node), bool)
    new[1:] = (node[1:] != node[:-1]) | (code[1:] != code[:-1])
    first = np.flatnonzero(new)

    def reduce(ufunc: np.ufunc, name: str) -> NDArray:
        column = np.concatenate([getattr(part, name) for part in parts])[order]
        return ufunc.reduceat(column, first, axis=0) if len(first) else column

    return Cells(
        node[first],
        code[first],
        reduce(np.add, "count"),
        reduce(np.minimum, "low"),
        reduce(np.maximum, "high"),
        reduce(np.add, "position"),
    )


def centroids(cells: Cells, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray:
    """Mean coordinates of the records of every cell, to a billionth of the node's width."""
    share = cells.position / cells.count[:, None] / _STEPS
    base, top = low[cells.node], high[cells.node]
    return base * (1 - share) + top * share
