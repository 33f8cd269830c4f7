"""Runs of kappa values along a sequence that may come in pieces.

The runs are counted from the beginning of the sequence: value number r belongs to run r // kappa.
A piece may begin and end within a run; what it needs to know of its neighbours comes as arguments.
Sums go value by value along the sequence, so that they do not depend on where it is torn.
"""

from __future__ import annotations

import numpy as np

from sdc_dask.kernels._jit import jit


@jit
def first_of_runs(values, rank, kappa, first):
    """Return the first value of each value's run.

    Parameters
    ----------
    values : ndarray of float64
    rank : int
        How many values come before the piece.
    kappa : int
    first : float
        The first value of the run in which the piece begins, if it begins within one.
    """
    firsts = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        if (rank + i) % kappa == 0:
            first = values[i]
        firsts[i] = first
    return firsts


@jit
def last_of_runs(values, rank, kappa, last):
    """Return the last value of each value's run, as :func:`first_of_runs` the first.

    `last` is that of the run in which the piece ends, if it ends within one.
    """
    lasts = np.empty(values.shape[0])
    for i in range(values.shape[0] - 1, -1, -1):
        if (rank + i) % kappa == kappa - 1:
            last = values[i]
        lasts[i] = last
    return lasts


@jit
def running_sums(values, firsts, rank, kappa, total):
    """Return the sum of differences to the first value of the run, up to each value.

    `total` is that of the run in which the piece begins, up to the piece.
    """
    sums = np.empty(values.shape[0])
    for i in range(values.shape[0]):
        if (rank + i) % kappa == 0:
            total = 0.0
        total += values[i] - firsts[i]
        sums[i] = total
    return sums


@jit
def run_means(firsts, sums, rank, kappa, total, count):
    """Return the mean of each value's run.

    `total` and `count` are those of the run in which the piece ends, if it ends within one.
    """
    means = np.empty(sums.shape[0])
    for i in range(sums.shape[0] - 1, -1, -1):
        if (rank + i) % kappa == kappa - 1:
            total = sums[i]
            count = kappa
        means[i] = firsts[i] + total / count
    return means
