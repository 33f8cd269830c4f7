"""Rows put in order of who receives them, and moved there."""

from __future__ import annotations

import numpy as np

from sdc_dask.kernels._jit import jit


@jit
def by_receiver(receivers, number):
    """Put rows in order of their receivers; those of one keep their order.

    Parameters
    ----------
    receivers : ndarray of int64, shape (n,)
        Numbered from 0.
    number : int
        How many receivers there are.

    Returns
    -------
    order : ndarray of int64, shape (n,)
    begins : ndarray of int64, shape (number + 1,)
        Where the rows of each begin in that order, and n.
    """
    begins = _begins(receivers, number)
    place = begins[:-1].copy()
    order = np.empty(len(receivers), np.int64)
    for i in range(len(receivers)):
        r = receivers[i]
        order[place[r]] = i
        place[r] += 1
    return order, begins


@jit
def _begins(receivers, number):
    """Return where the rows of each receiver begin, and their number."""
    begins = np.zeros(number + 1, np.int64)
    for i in range(len(receivers)):
        begins[receivers[i] + 1] += 1
    for r in range(number):
        begins[r + 1] += begins[r]
    return begins


@jit
def places_by_receiver(receivers, number):
    """Return the place of every row in the order of :func:`by_receiver`, and where each begins."""
    begins = _begins(receivers, number)
    free = begins[:-1].copy()
    place = np.empty(len(receivers), np.int64)
    for i in range(len(receivers)):
        r = receivers[i]
        place[i] = free[r]
        free[r] += 1
    return place, begins


@jit
def put_rows(words, first, columns, place):
    """Write columns, from the column `first` on, into rows of words, each row at its place.

    Rows are read one after the other and written to the few places where receivers are served,
    which stay in the cache. To look for what comes next in each place would take several times as
    long.
    """
    for i in range(len(place)):
        for j in range(columns.shape[1]):
            words[place[i], first + j] = columns[i, j]


@jit
def taken(words, order):
    """Return rows of words in another order, each of them once."""
    place = np.empty(len(order), np.int64)
    for i in range(len(order)):
        place[order[i]] = i
    rows = np.empty_like(words)
    put_rows(rows, 0, words, place)
    return rows
