"""From the groups of records to the centroids that replace them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


@jit
def replace_by_centroids(values, labels):
    """Overwrite records by the means of their groups.

    A centroid is computed once per group, records in row order, as the group's first value plus
    the mean of the differences to it: equal values come back as they were, and every record of a
    group gets the same bits. Adding 0.0 turns a negative zero into zero.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d)
        Overwritten. A column that is NaN in one record of a group is NaN in all of it.
    labels : ndarray of int64, shape (n,)
        The group of every record, numbered from 0.
    """
    n, d = values.shape
    groups = 0
    for i in range(n):
        groups = max(groups, labels[i] + 1)
    size = np.zeros(groups, np.int64)
    first = np.full(groups, -1, np.int64)
    centroid = np.zeros((groups, d))
    for i in range(n):
        g = labels[i]
        size[g] += 1
        if first[g] < 0:
            first[g] = i
        for j in range(d):
            centroid[g, j] += values[i, j] - values[first[g], j]
    for g in range(groups):
        for j in range(d):
            if size[g] > 0:
                centroid[g, j] = values[first[g], j] + centroid[g, j] / size[g] + 0.0
    for i in range(n):
        for j in range(d):
            values[i, j] = centroid[labels[i], j]


def medians(codes: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return for every record the median of its group, which some record of the group has.

    Of two middle ones that nearer to the mean is taken, so that medians do not drift to one side;
    of equally near ones the lower.

    Parameters
    ----------
    codes : ndarray of float64, shape (n,)
        Whole numbers.
    labels : ndarray of int64, shape (n,)
        The group of every record, numbered from 0; each number has a record.

    Examples
    --------
    >>> import numpy as np
    >>> medians(np.array([1.0, 2.0, 5.0, 0.0, 3.0, 3.0, 3.0]), np.array([0, 0, 0, 1, 1, 1, 1]))
    array([2., 2., 2., 3., 3., 3., 3.])
    >>> medians(np.array([0.0, 1.0, 4.0, 9.0]), np.array([0, 0, 0, 0]))
    array([4., 4., 4., 4.])
    """
    ordered = codes[np.lexsort((codes, labels))]
    size = np.bincount(labels)
    begin = np.cumsum(size) - size
    low, high = ordered[begin + (size - 1) // 2], ordered[begin + size // 2]
    total = np.add.reduceat(ordered, begin)
    # Twice the mean, times the size, beside the sum of the two: whole numbers, without rounding.
    return np.where(2 * total > (low + high) * size, high, low)[labels]


def modes(
    codes: NDArray[np.float64], labels: NDArray[np.int64], preference: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Return for every record the most frequent category of its group.

    Parameters
    ----------
    codes : ndarray of float64, shape (n,)
        Numbers of categories.
    labels : ndarray of int64, shape (n,)
        The group of every record, numbered from 0; each number has a record.
    preference : ndarray of int64
        By category: of equally frequent ones the lowest comes first.

    Examples
    --------
    >>> import numpy as np
    >>> modes(np.array([1.0, 1.0, 0.0, 0.0, 2.0]), np.array([0, 0, 0, 1, 1]), np.array([2, 1, 0]))
    array([1., 1., 1., 2., 2.])
    """
    order = np.lexsort((codes, labels))
    group, category = labels[order], codes[order].astype(np.int64)
    begin = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(category, prepend=-1) != 0))
    count = np.diff(begin, append=len(order))
    group, category = group[begin], category[begin]
    best = np.lexsort((preference[category], -count, group))
    first = best[np.flatnonzero(np.diff(group[best], prepend=-1))]
    return category[first].astype(np.float64)[labels]
