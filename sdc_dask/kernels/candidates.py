"""Which records can be the masked version of a point: those in a box, and the nearest of them.

Whoever knows how a column was masked knows an interval of values that a given one can have become.
The intervals of several columns are a box. A k-d tree over the records counts those in a box
without looking at each, and finds whether any of them is nearer than a given one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.kd_tree import box_distance, build_kd_tree, new_stack
from sdc_dask.kernels.neighbours import SearchTree

_ANY = ()  # number of dimensions: loops that end early gain nothing by being unrolled
_SOUGHT = 8  # points that are looked for one after the other are near each other


def count_candidates(
    tree: SearchTree,
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    squares: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count the records in boxes, and those of them at given distances of points.

    Parameters
    ----------
    tree : SearchTree
        The records.
    points : ndarray of float64, shape (m, d), C order
        Finite coordinates.
    low, high : ndarray of float64, shape (m, d), C order
        Ends of the box of each point, which belong to it. They may be infinite.
    squares : ndarray of float64, shape (m,)
        For every point, a squared distance.
    weight : ndarray of float64, shape (d,)
        What differences of coordinates are multiplied by.

    Returns
    -------
    tuple of ndarray of int64, shape (m,)
        The number of records in each box; and how many of them have exactly the given distance,
        -1 if one in the box has a smaller one.

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.kernels.neighbours import distinct, search_tree
    >>> weight = np.ones(1)
    >>> tree = search_tree(distinct(np.array([[4.0], [6.0], [6.0], [9.0]])), weight)
    >>> point, low, high = np.array([[5.0]]), np.array([[5.0]]), np.array([[9.0]])
    >>> count_candidates(tree, point, low, high, np.array([1.0]), weight)
    (array([3]), array([2]))
    """
    sought = build_kd_tree(points, weight, _SOUGHT)
    rows = sought.rows
    before = np.concatenate([[0], np.cumsum(tree.counts)])
    return _count_candidates(
        tree, before, sought.points, rows, low[rows], high[rows], squares[rows], weight
    )


@jit
def _count_candidates(tree, before, points, rows, low, high, squares, weight):
    inside = np.empty(len(rows), np.int64)
    ties = np.empty(len(rows), np.int64)
    cut, planes = _cuts(tree)
    stack = new_stack(len(tree.start) - 1)
    for i in range(len(rows)):
        inside[rows[i]], ties[rows[i]] = _candidates(
            tree, cut, planes, before, points[i], low[i], high[i], squares[i], weight, stack
        )
    return inside, ties


@jit
def _cuts(tree):
    """Return the column that each node is cut in, and where its two halves begin and end there."""
    nodes = len(tree.start) - 2
    cut = np.zeros(nodes, np.int64)
    planes = np.empty((nodes, 4))
    for node in range(nodes):
        left = tree.box[2 * node + 1]
        right = tree.box[2 * node + 2]
        for j in range(tree.points.shape[1]):
            if left[1, j] <= right[0, j]:
                cut[node] = j
                break
        j = cut[node]
        planes[node, 0] = left[0, j]
        planes[node, 1] = left[1, j]
        planes[node, 2] = right[0, j]
        planes[node, 3] = right[1, j]
    return cut, planes


@jit
def _candidates(tree, cut, planes, before, point, low, high, square, weight, stack):
    d = len(point)
    first_leaf = len(tree.start) - 2
    inside = 0
    ties = 0
    stack[0] = 0
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        if node < first_leaf:
            a = low[cut[node]]
            b = high[cut[node]]
            # All of it is in the box, and none of it near enough to matter.
            if (
                planes[node, 0] >= a
                and planes[node, 3] <= b
                and _is_within(tree.box[node], low, high)
                and (ties < 0 or box_distance(_ANY, tree.box[node], point, weight) > square)
            ):
                begin, end = _slots(tree, first_leaf, node)
                inside += before[end] - before[begin]
                continue
            # Without a branch, since nobody could foresee which way it goes.
            stack[size] = 2 * node + 1
            size += (planes[node, 1] >= a) & (planes[node, 0] <= b)
            stack[size] = 2 * node + 2
            size += (planes[node, 2] <= b) & (planes[node, 3] >= a)
            continue
        meets = True
        for j in range(d):
            meets &= (tree.box[node, 0, j] <= high[j]) & (tree.box[node, 1, j] >= low[j])
        if not meets:
            continue
        leaf = node - first_leaf
        for i in range(tree.start[leaf], tree.start[leaf + 1]):
            held = True
            for j in range(d):
                held &= (tree.points[i, j] >= low[j]) & (tree.points[i, j] <= high[j])
            if not held:
                continue
            distance = 0.0
            for j in range(d):
                gap = (tree.points[i, j] - point[j]) * weight[j]
                distance += gap * gap
            inside += tree.counts[i]
            if distance < square:
                ties = -1
            elif distance == square and ties >= 0:
                ties += tree.counts[i]
    return inside, ties


@jit
def _is_within(box, low, high):
    within = True
    for j in range(len(low)):
        within &= (box[0, j] >= low[j]) & (box[1, j] <= high[j])
    return within


@jit
def _slots(tree, first_leaf, node):
    """Return the first slot of a node's records, and the end of the last."""
    begin = node
    end = node
    while begin < first_leaf:
        begin = 2 * begin + 1
        end = 2 * end + 2
    return tree.start[begin - first_leaf], tree.start[end - first_leaf + 1]


def count_in_most(
    tree: SearchTree,
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    agreeing: NDArray[np.int64],
    squares: NDArray[np.float64],
    weight: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Count the records in as many intervals as a given one, and as near, if none is better.

    A record is better than another if it is in more of the intervals of a point, or in as many and
    nearer.

    Parameters
    ----------
    tree, points, low, high, squares, weight
        As in :func:`count_candidates`.
    agreeing : ndarray of int64, shape (m,)
        For every point, the number of intervals that the given record is in.

    Returns
    -------
    ndarray of int64, shape (m,)
        How many records are as good as the given one; -1 if one is better.
    """
    sought = build_kd_tree(points, weight, _SOUGHT)
    return _count_in_most(tree, points, sought.rows, low, high, agreeing, squares, weight)


@jit
def _count_in_most(tree, points, rows, low, high, agreeing, squares, weight):
    out = np.empty(len(rows), np.int64)
    first_leaf = len(tree.start) - 2
    stack = new_stack(first_leaf + 1)
    for row in rows:
        out[row] = _in_most(
            tree,
            first_leaf,
            points[row],
            low[row],
            high[row],
            agreeing[row],
            squares[row],
            weight,
            stack,
        )
    return out


@jit
def _in_most(tree, first_leaf, point, low, high, agreeing, square, weight, stack):
    d = len(point)
    ties = 0
    stack[0] = 0
    size = 1
    while size > 0:
        size -= 1
        node = stack[size]
        box = tree.box[node]
        most = 0
        for j in range(d):
            if box[0, j] <= high[j] and box[1, j] >= low[j]:
                most += 1
        if most < agreeing:
            continue
        if most == agreeing and box_distance(_ANY, box, point, weight) > square:
            continue
        if node < first_leaf:
            stack[size] = 2 * node + 1
            stack[size + 1] = 2 * node + 2
            size += 2
            continue
        leaf = node - first_leaf
        for i in range(tree.start[leaf], tree.start[leaf + 1]):
            found = 0
            distance = 0.0
            for j in range(d):
                value = tree.points[i, j]
                if low[j] <= value <= high[j]:
                    found += 1
                gap = (value - point[j]) * weight[j]
                distance += gap * gap
            if found > agreeing or (found == agreeing and distance < square):
                return -1
            if found == agreeing and distance == square:
                ties += tree.counts[i]
    return ties
