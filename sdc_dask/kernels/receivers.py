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
    begins = np.zeros(number + 1, np.int64)
    for i in range(len(receivers)):
        begins[receivers[i] + 1] += 1
    for r in range(number):
        begins[r + 1] += begins[r]
    place = begins[:-1].copy()
    order = np.empty(len(receivers), np.int64)
    for i in range(len(receivers)):
        r = receivers[i]
        order[place[r]] = i
        place[r] += 1
    return order, begins


@jit
def put_column(words, number, column, order):
    """Write a column in another order into rows of words."""
    for i in range(len(order)):
        words[i, number] = column[order[i]]


@jit
def taken(words, order):
    """Return rows of words in another order."""
    rows = np.empty((len(order), words.shape[1]), words.dtype)
    for i in range(len(order)):
        for j in range(words.shape[1]):
            rows[i, j] = words[order[i], j]
    return rows
