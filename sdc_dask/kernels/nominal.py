"""Nominal columns in distances: two categories are equal, or as far apart as a weight says.

One-hot coordinates times sqrt(1/2) have the same squared distances, and so there is a centroid of
categories: the shares of each. Nothing here is as wide as the categories are many.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


class Nominal(NamedTuple):
    """Categories of records by number, and the squared distance of two different ones.

    Attributes
    ----------
    codes : ndarray of int64, shape (c, n), C order
        Categories of each column are numbered from 0; few numbers are unused.
    weight : ndarray of float64, shape (c,)
    """

    codes: NDArray[np.int64]
    weight: NDArray[np.float64]


def no_nominal(n: int) -> Nominal:
    """Return that there are no nominal columns."""
    return Nominal(np.empty((0, n), np.int64), np.empty(0))


def spread(points: NDArray[np.float64], nominal: Nominal) -> NDArray[np.float64]:
    """Return coordinates that have one more for each category, with the same squared distances.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d)
        Coordinates of the other columns.
    nominal : Nominal
        Of few categories.

    Examples
    --------
    >>> import numpy as np
    >>> spread(np.zeros((3, 1)), Nominal(np.array([[0, 1, 1]]), np.array([2.0])))
    array([[0., 1., 0.],
           [0., 0., 1.],
           [0., 0., 1.]])
    """
    parts = [points]
    for codes, weight in zip(*nominal, strict=True):
        parts.append(np.where(codes[:, None] == np.arange(codes.max() + 1), np.sqrt(weight / 2), 0))
    return np.hstack(parts)


@jit
def count_categories(nominal):
    """Return how many records have each category, a row for each column."""
    codes = nominal.codes
    largest = -1
    for j in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            largest = max(largest, codes[j, i])
    counts = np.zeros((codes.shape[0], largest + 1), np.int64)
    for j in range(codes.shape[0]):
        for i in range(codes.shape[1]):
            counts[j, codes[j, i]] += 1
    return counts


@jit
def add_mismatches(live, left, query, weight, out):
    """Add the squared distances from the categories of `query` to those of records."""
    for j in range(live.shape[0]):
        column = live[j]
        code = query[j]
        w = weight[j]
        for i in range(left):
            out[i] += w * np.float64(column[i] != code)


@jit
def distances_by_category(counts, weight, scale):
    """Return the squared distance of each category to a centroid, a row for each column.

    A record of category c is at 1/2 (1 - 2 p_c + sum of all p^2) from a centroid with the shares p.
    Without rounding where weights are sums of few powers of two, if `scale`, by which all
    coordinates are multiplied, is the number of records.

    Parameters
    ----------
    counts : ndarray of int64, shape (c, categories)
        Of the records that the centroid is of.
    weight : ndarray of float64, shape (c,)
    scale : float
    """
    table = np.empty(counts.shape)
    for j in range(counts.shape[0]):
        total = np.int64(0)
        squares = np.int64(0)
        for code in range(counts.shape[1]):
            total += counts[j, code]
            squares += counts[j, code] * counts[j, code]
        unit = scale / total
        for code in range(counts.shape[1]):
            times = np.float64(total * total - 2 * total * counts[j, code] + squares)
            table[j, code] = 0.5 * weight[j] * (unit * unit) * times
    return table


@jit
def add_by_category(live, left, table, out):
    """Add to each record what a table has for its categories."""
    for j in range(live.shape[0]):
        column = live[j]
        row = table[j]
        for i in range(left):
            out[i] += row[column[i]]
