"""Whether a given record is the nearest one to a point, and how many are as near.

A k-d tree over the distinct records answers for many points. A search need not find the nearest
record: it ends as soon as any is nearer than the given one, and looks no farther than that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part
from sdc_dask.kernels.classes import mix
from sdc_dask.kernels.kd_tree import box_distance, build_kd_tree, new_stack, unrolled, width

_LEAF_SIZE = 8


class Records(NamedTuple):
    """Distinct records, and how often each occurs."""

    points: NDArray[np.float64]  # shape (n, d), C order
    counts: NDArray[np.int64]


class SearchTree(NamedTuple):
    """A k-d tree over distinct records: the leaf i owns the slots start[i] to start[i + 1]."""

    start: NDArray[np.int64]  # by leaf
    box: NDArray[np.float64]  # by node: smallest and largest coordinates
    points: NDArray[np.float64]  # by slot
    counts: NDArray[np.int64]  # by slot


def distinct(points: NDArray[np.float64], counts: NDArray[np.int64] | None = None) -> Records:
    """Put equal records together.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Finite coordinates.
    counts : ndarray of int64, optional
        How often each occurs; by default once.

    Returns
    -------
    Records
        In the order in which they come first.

    Examples
    --------
    >>> import numpy as np
    >>> distinct(np.array([[5.0], [3.0], [5.0], [5.0]]))
    Records(points=array([[5.],
           [3.]]), counts=array([3, 1]))
    """
    if counts is None:
        counts = np.ones(len(points), np.int64)
    return Records(*_distinct(points, points.view(np.uint64), counts))


@jit
def _distinct(points, bits, counts):
    """Look every record up in a table of hashes; what has the same place is compared in full."""
    n, d = points.shape
    size = 16
    while size < 2 * n:
        size *= 2
    table = np.full(size, -1, np.int64)
    owner = np.empty(n, np.int64)  # by distinct record: the row that it comes from
    total = np.empty(n, np.int64)
    found = 0
    for i in range(n):
        h = np.uint64(0x9E3779B97F4A7C15)
        for j in range(d):
            h = mix(h ^ bits[i, j])
        place = np.int64(h & np.uint64(size - 1))
        while True:
            other = table[place]
            if other < 0:
                table[place] = found
                owner[found] = i
                total[found] = counts[i]
                found += 1
                break
            same = True
            for j in range(d):
                same &= points[owner[other], j] == points[i, j]
            if same:
                total[other] += counts[i]
                break
            place = (place + 1) & (size - 1)
    out = np.empty((found, d))
    for k in range(found):
        for j in range(d):
            out[k, j] = points[owner[k], j]
    return out, total[:found].copy()


def search_tree(records: Records, weight: NDArray[np.float64]) -> SearchTree:
    """Build a tree over records.

    Parameters
    ----------
    records : Records
        Finite; there may be none.
    weight : ndarray of float64, shape (d,)
        What coordinates are multiplied by in a distance: boxes are cut where that is widest.
        Concerns the speed of the search alone.

    Returns
    -------
    SearchTree
    """
    tree = build_kd_tree(records.points, weight, _LEAF_SIZE)
    return SearchTree(tree.start, tree.box, tree.points, records.counts[tree.rows])


def whiten(points: NDArray[np.float64], factor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the points L^-1 x, of which the Euclidean is the Mahalanobis distance of points x.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        The points x.
    factor : ndarray of float64, shape (d, d)
        The lower triangular matrix L of a covariance matrix L L^T.

    Notes
    -----
    Matrix products of a library would be faster, but round the same record differently in arrays
    of different length: equal records would no longer be equal.

    Examples
    --------
    >>> import numpy as np
    >>> whiten(np.array([[2.0, 5.0]]), np.array([[2.0, 0.0], [1.0, 4.0]]))
    array([[1., 1.]])
    """
    return _whiten(points, factor)


@jit
def _whiten(points, factor):
    n, d = points.shape
    out = np.empty((n, d))
    for i in range(n):
        for j in range(d):
            rest = points[i, j]
            for k in range(j):
                rest -= factor[j, k] * out[i, k]
            out[i, j] = rest / factor[j, j]
    return out


def squared_distances(
    points: NDArray[np.float64], others: NDArray[np.float64], weight: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the squared distance of every point to the other one of its row.

    Distances are computed as in :func:`count_ties`, to the last bit.
    """
    return _squared_distances(points, others, weight)


@jit
def _squared_distances(points, others, weight):
    n, d = points.shape
    out = np.empty(n)
    for i in range(n):
        distance = 0.0
        for j in range(d):
            gap = (others[i, j] - points[i, j]) * weight[j]
            distance += gap * gap
        out[i] = distance
    return out


def count_ties(
    tree: SearchTree,
    points: NDArray[np.float64],
    squares: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Count the records at given distances of points, where none is nearer.

    Parameters
    ----------
    tree : SearchTree
        The records.
    points : ndarray of float64, shape (m, d), C order
        Finite coordinates.
    squares : ndarray of float64, shape (m,)
        For every point, a squared distance.
    weight : ndarray of float64, shape (d,)
        What differences of coordinates are multiplied by.

    Returns
    -------
    ndarray of int64, shape (m,)
        How many records have exactly this squared distance; -1 if one has a smaller distance.

    Notes
    -----
    A squared distance is the sum of ((record - point) * weight)^2, rounded after every operation,
    in the order of the columns. So equal records have equal distances, and integers that are as
    far below as above a point, too.

    Examples
    --------
    >>> import numpy as np
    >>> weight = np.ones(1)
    >>> tree = search_tree(distinct(np.array([[4.0], [6.0], [6.0], [9.0]])), weight)
    >>> count_ties(tree, np.array([[5.0], [5.0], [0.0]]), np.array([1.0, 16.0, 1.0]), weight)
    array([ 3, -1,  0])
    """
    # In the order of a tree of their own, points that follow each other meet the same nodes of the
    # tree of records, which are in the cache.
    sought = build_kd_tree(points, weight, _LEAF_SIZE)
    m, d = points.shape
    dims = unrolled(d, m, most=8)
    return _count_ties(dims, tree, sought.points, sought.rows, squares, weight)


@jit
def _count_ties(dims, tree, points, rows, squares, weight):
    out = np.empty(len(rows), np.int64)
    first_leaf = len(tree.start) - 2
    stack = new_stack(first_leaf + 1)
    for i in range(len(rows)):
        row = rows[i]
        out[row] = _ties(dims, tree, first_leaf, points[i], squares[row], weight, stack)
    return out


@jit_part
def _ties(dims, tree, first_leaf, query, square, weight, stack):
    d = width(dims, query)
    ties = 0
    size = 0
    node = 0
    if box_distance(dims, tree.box[0], query, weight) > square:
        return 0
    while True:
        while node < first_leaf:
            node = 2 * node + 1
            one = box_distance(dims, tree.box[node], query, weight)
            other = box_distance(dims, tree.box[node + 1], query, weight)
            if other < one:
                if one <= square:
                    stack[size] = node
                    size += 1
                node += 1
                one = other
            elif other <= square:
                stack[size] = node + 1
                size += 1
            if one > square:
                node = -1
                break
        if node >= 0:
            leaf = node - first_leaf
            for i in range(tree.start[leaf], tree.start[leaf + 1]):
                distance = 0.0
                for j in range(d):
                    gap = (tree.points[i, j] - query[j]) * weight[j]
                    distance += gap * gap
                if distance <= square:
                    if distance < square:
                        return -1
                    ties += tree.counts[i]
        if size == 0:
            return ties
        size -= 1
        node = stack[size]
