"""Descent of records through a tree of halved boxes that is stored in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


class TreeArrays(NamedTuple):
    """The nodes of a tree that were split, each by several cuts one after the other.

    A record's code in a node has one bit per cut, the first in front: whether the record lies at or
    above the midpoint. Codes from one entry's code up to the next entry's belong to that entry. A
    target is a node, or ``~leaf``.
    """

    root: NDArray[np.int64]  # by stratum: target
    first_axis: NDArray[np.int64]  # by node, and one more: range in `axis`
    axis: NDArray[np.int64]  # dimensions that the node halves
    first_middle: NDArray[np.int64]  # by axis of a node, and one more: range in `middle`
    middle: NDArray[np.float64]  # cut by cut of an axis: 1, then 2, then 4 midpoints, and so on
    first_spread: NDArray[np.int64]  # by axis of a node: where its part of `spread` begins
    spread: NDArray[np.int32]  # by cell of an axis: its bits, at their places in the code
    first_entry: NDArray[np.int64]  # by node, and one more: range in `code`; empty: not counted yet
    # What is as long as there are leaves has half the size: all tasks hold it.
    code: NDArray[np.int32]
    target: NDArray[np.int32]
    first_jump: NDArray[np.int64]  # by node: where its part of `jump` begins
    jump_shift: NDArray[np.int64]  # by node
    jump: NDArray[np.int32]  # entry of the first code with these leading bits, to narrow the search


@jit
def descend(tree, points, stratum, target, code):
    """Write where every record ends: a leaf as ``~leaf``, or a node without entries and the code.

    Parameters
    ----------
    tree : TreeArrays
    points : ndarray of float64, shape (n, d)
    stratum : ndarray of int64, shape (n,)
    target, code : ndarray of int64, shape (n,)
        Overwritten.
    """
    for i in range(len(points)):
        node = np.int64(tree.root[stratum[i]])
        bits = np.int64(0)
        while node >= 0:
            bits = np.int64(0)
            for a in range(tree.first_axis[node], tree.first_axis[node + 1]):
                first = tree.first_middle[a]
                cells = tree.first_middle[a + 1] - first + 1
                value = points[i, tree.axis[a]]
                # Data decides these comparisons: they are sums, not branches that the processor
                # would have to guess. Axes do not wait for each other.
                place = np.int64(0)
                while place < cells - 1:
                    place = 2 * place + 1 + np.int64(value >= tree.middle[first + place])
                bits |= tree.spread[tree.first_spread[a] + place - (cells - 1)]
            if tree.first_entry[node] == tree.first_entry[node + 1]:
                break
            jump = tree.first_jump[node] + (bits >> tree.jump_shift[node])
            entry = np.int64(tree.jump[jump])
            left = tree.jump[jump + 1] - entry + 1
            while left > 1:
                half = left // 2
                entry += half * np.int64(tree.code[entry + half] <= bits)
                left -= half
            node = np.int64(tree.target[entry])
        target[i] = node
        code[i] = bits


@jit
def add_to_cells(cell, rows, points, node, base, steps, count, low, high, position):
    """Add records to the counts of their cells.

    Parameters
    ----------
    cell : ndarray of int64, shape (n,)
        Of some records.
    rows : ndarray of int64, shape (n,)
        Which of the points these are.
    points : ndarray of float64, shape (m, d)
    node : ndarray of int64, shape (cells,)
    base, steps : ndarray of float64, shape (nodes, d)
        Half the lower bound of a node, and the steps of the position per unit of half a value.
    count, low, high, position : ndarray, first dimension cells
        Changed: number of records, their bounds, the sum of their positions.
    """
    for i in range(len(cell)):
        c = cell[i]
        row = rows[i]
        box = node[c]
        count[c] += 1
        for j in range(points.shape[1]):
            value = points[row, j]
            # Not branches, which the processor would have to guess.
            low[c, j] = min(low[c, j], value)
            high[c, j] = max(high[c, j], value)
            # Halving first keeps the largest floats from overflowing.
            position[c, j] += np.int64((value * 0.5 - base[box, j]) * steps[box, j])
