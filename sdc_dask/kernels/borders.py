"""Between which borders values lie, where borders are few and values are many."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

# Comparing with each border, side by side, is faster than a search in so many.
_FEW = 500
_NUMBERS = frozenset(map(np.dtype, (np.float64, np.int64, np.uint64)))


def count_below(borders: NDArray[Any], values: NDArray[Any]) -> NDArray[np.int64]:
    """Count the borders that are below each value, as `np.searchsorted` does.

    Parameters
    ----------
    borders : ndarray, one-dimensional
        Sorted, without NaN.
    values : ndarray, one-dimensional
        Of the same dtype.

    Returns
    -------
    ndarray of int64

    Examples
    --------
    >>> import numpy as np
    >>> count_below(np.array([1.0, 2.0, 2.0]), np.array([0.0, 1.0, 2.0, 3.0]))
    array([0, 0, 1, 3])
    """
    if len(borders) > _FEW or values.dtype != borders.dtype or values.dtype not in _NUMBERS:
        return np.searchsorted(borders, values)
    return _count_below(np.ascontiguousarray(borders), np.ascontiguousarray(values))


@jit
def all_within(values, low, high):
    """Whether all rows of values, none of which is NaN, lie between bounds, or on them."""
    found = True
    for i in range(len(values)):
        for j in range(values.shape[1]):
            found &= (values[i, j] >= low[j]) & (values[i, j] <= high[j])
    return found


@jit
def _count_below(borders, values):
    run = 1024  # values, whose counts stay in the processor's cache
    counts = np.zeros(len(values), np.int64)
    for start in range(0, len(values), run):
        some = values[start : start + run]
        found = counts[start : start + run]
        for border in borders:
            for i in range(len(some)):
                found[i] += border < some[i]
    return counts
