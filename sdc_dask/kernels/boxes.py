"""Whether a ball around a point reaches into boxes that belong to others."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.kd_tree import bound_parents, new_stack, unrolled, width


class BoxTree(NamedTuple):
    """A tree with the nodes of a k-d tree, over boxes in the order in which they were given.

    The leaves are the boxes, filled up with empty ones.
    """

    box: NDArray[np.float64]  # by node: smallest and largest coordinates
    owner: NDArray[np.int64]  # by node: whom its boxes belong to, -1 if to several or nobody


def box_tree(
    low: NDArray[np.float64], high: NDArray[np.float64], owner: NDArray[np.int64]
) -> BoxTree:
    """Build a tree over boxes.

    Parameters
    ----------
    low, high : ndarray of float64, shape (n, d)
        Smallest and largest coordinates of the boxes. It is fast if boxes that follow each other
        are near each other.
    owner : ndarray of int64, shape (n,)
        Whom a box belongs to, a number from 0 on.
    """
    n, d = low.shape
    leaves = 1 << max(0, n - 1).bit_length()
    box = np.empty((2 * leaves - 1, 2, d))
    box[:, 0], box[:, 1] = np.inf, -np.inf  # at an infinite distance of everything
    box[leaves - 1 : leaves - 1 + n, 0] = low
    box[leaves - 1 : leaves - 1 + n, 1] = high
    owners = np.full(2 * leaves - 1, -1, np.int64)
    owners[leaves - 1 : leaves - 1 + n] = owner
    bound_parents(box)
    _own_parents(owners)
    return BoxTree(box, owners)


@jit
def _own_parents(owners):
    """Return the owners of all nodes, from those of the boxes."""
    for node in range(len(owners) // 2 - 1, -1, -1):
        left = owners[2 * node + 1]
        owners[node] = left if left == owners[2 * node + 2] else -1


def reaches_others(
    tree: BoxTree,
    points: NDArray[np.float64],
    squares: NDArray[np.float64],
    weight: NDArray[np.float64],
    own: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> NDArray[np.bool_]:
    """Return whether a box of another owner is as near to a point as a given distance, or nearer.

    Parameters
    ----------
    tree : BoxTree
    points : ndarray of float64, shape (m, d), C order
    squares : ndarray of float64, shape (m,)
        For every point, a squared distance.
    weight : ndarray of float64, shape (d,)
        What differences of coordinates are multiplied by.
    own : ndarray of int64, shape (m,)
        For every point, the owner whose boxes do not count.
    low, high : ndarray of float64, shape (m, d), C order
        For every point, what is looked at of boxes: what lies between these ends, which belong to
        it and may be infinite.

    Notes
    -----
    Distances are rounded as those of records, so that no record in a box can be nearer than it.

    Examples
    --------
    >>> import numpy as np
    >>> tree = box_tree(np.array([[0.0], [5.0]]), np.array([[3.0], [9.0]]), np.array([0, 1]))
    >>> points, own = np.array([[1.0], [2.0], [2.0], [2.0]]), np.array([0, 0, 1, 0])
    >>> low, high = np.full((4, 1), -np.inf), np.array([[np.inf], [np.inf], [np.inf], [4.0]])
    >>> reaches_others(tree, points, np.array([4.0, 9.0, 0.0, 9.0]), np.ones(1), own, low, high)
    array([False,  True,  True, False])
    """
    m, d = points.shape
    return _reaches_others(unrolled(d, m, most=8), tree, points, squares, weight, own, low, high)


@jit
def _reaches_others(dims, tree, points, squares, weight, own, low, high):
    first_leaf = len(tree.owner) // 2
    stack = new_stack(first_leaf + 1)
    out = np.zeros(len(points), np.bool_)
    for i in range(len(points)):
        stack[0] = 0
        size = 1
        while size > 0:
            size -= 1
            node = stack[size]
            if tree.owner[node] == own[i]:
                continue
            if _distance(dims, tree.box[node], points[i], weight, low[i], high[i]) > squares[i]:
                continue
            if node >= first_leaf:
                out[i] = True
                break
            stack[size] = 2 * node + 1
            stack[size + 1] = 2 * node + 2
            size += 2
    return out


@jit
def _distance(dims, box, point, weight, low, high):
    """Return the squared distance of a point to what of a box lies between two ends."""
    distance = 0.0
    for j in range(width(dims, point)):
        begin = max(box[0, j], low[j])
        end = min(box[1, j], high[j])
        if begin > end:
            return np.inf
        gap = 0.0
        if point[j] < begin:
            gap = (begin - point[j]) * weight[j]
        elif point[j] > end:
            gap = (point[j] - end) * weight[j]
        distance += gap * gap
    return distance
