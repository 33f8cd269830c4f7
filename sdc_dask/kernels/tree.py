"""Descent of records through a 2^d-tree that is stored in arrays."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


class TreeArrays(NamedTuple):
    """The nodes of a 2^d-tree that were split, each over one or more levels at once.

    A record's code in a node has one bit per level and axis, the first level in front: whether
    the record lies at or above the midpoint. Codes from one entry's code up to the next entry's
    belong to that entry. A target is a node, or ``~leaf``.
    """

    root: NDArray[np.int64]  # by stratum: target
    low: NDArray[np.float64]  # by node and dimension: the box that is halved
    high: NDArray[np.float64]
    levels: NDArray[np.int64]  # by node
    first_axis: NDArray[np.int64]  # by node, and one more: range in `axis`
    axis: NDArray[np.int64]
    first_entry: NDArray[np.int64]  # by node, and one more: range in `code`; empty: not counted yet
    code: NDArray[np.int64]
    target: NDArray[np.int64]


@jit
def midpoint(low, high):
    """Return the lower end of an interval's upper half: above `low` wherever that is possible."""
    # Halving first cannot overflow. Between neighbouring floats the middle may round to `low`,
    # which would leave the lower half empty for ever.
    middle = low / 2 + high / 2
    return high if middle <= low else middle


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
    n, d = points.shape
    low = np.empty(d)
    high = np.empty(d)
    for i in range(n):
        node = tree.root[stratum[i]]
        bits = np.int64(0)
        while node >= 0:
            for j in range(d):
                low[j] = tree.low[node, j]
                high[j] = tree.high[node, j]
            bits = np.int64(0)
            for _level in range(tree.levels[node]):
                for a in range(tree.first_axis[node], tree.first_axis[node + 1]):
                    j = tree.axis[a]
                    middle = midpoint(low[j], high[j])
                    bits *= 2
                    if points[i, j] >= middle:
                        bits += 1
                        low[j] = middle
                    else:
                        high[j] = middle
            begin = tree.first_entry[node]
            end = tree.first_entry[node + 1]
            if begin == end:
                break
            while end - begin > 1:
                half = (begin + end) // 2
                if tree.code[half] <= bits:
                    begin = half
                else:
                    end = half
            node = tree.target[begin]
        target[i] = node
        code[i] = bits
