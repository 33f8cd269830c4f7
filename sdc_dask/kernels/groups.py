"""From the groups of records to the centroids that replace them."""

from __future__ import annotations

import numpy as np

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
