"""The nearest neighbours of all records among themselves."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part
from sdc_dask.kernels.kd_tree import KdTree, new_stack, unrolled, width


def nearest_slots(
    tree: KdTree, count: int, most: int = 2**62
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Find the nearest others of every record in a tree.

    Parameters
    ----------
    tree : KdTree
        Of more than `count` records, in coordinates in which distances are Euclidean.
    count : int
        Neighbours of each record.
    most : int, optional
        Leaves that are looked at for each record, of `count` records together at least. In many
        dimensions most of the time goes into making sure that there are no nearer records; what is
        near is found early.

    Returns
    -------
    tuple of ndarray, shape (n, count)
        Slots of the tree, and squared distances: by slot, the nearest first. Of slots that are
        equally near, the lower one comes first.

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.kernels.kd_tree import build_kd_tree
    >>> tree = build_kd_tree(np.array([[0.0], [9.0], [1.0], [4.0]]), np.ones(1), 8)
    >>> nearest_slots(tree, 2)
    (array([[2, 3],
           [3, 2],
           [0, 3],
           [2, 0]]), array([[ 1., 16.],
           [25., 64.],
           [ 1.,  9.],
           [ 9., 16.]]))
    """
    n, d = tree.points.shape
    return _nearest_slots(unrolled(d, n, most=5), tree, count, most)


def nearest_squares(tree: KdTree, points: NDArray[np.float64], count: int) -> NDArray[np.float64]:
    """Find the squared distances of points to their nearest records in a tree.

    Parameters
    ----------
    tree : KdTree
        In coordinates in which distances are Euclidean.
    points : ndarray of float64, shape (m, d), C order
    count : int
        Records for each point.

    Returns
    -------
    ndarray of float64, shape (m, count)
        The smallest first; infinite where there are fewer records.

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.kernels.kd_tree import build_kd_tree
    >>> tree = build_kd_tree(np.array([[0.0], [9.0], [1.0], [4.0]]), np.ones(1), 8)
    >>> nearest_squares(tree, np.array([[1.0], [7.0]]), 3)
    array([[ 0.,  1.,  9.],
           [ 4.,  9., 36.]])
    """
    m, d = points.shape
    return _nearest_squares(unrolled(d, m, most=5), tree, points, count)


@jit
def _nearest_slots(dims, tree, count, most):
    n = len(tree.points)
    slots = np.empty((n, count), np.int64)
    squares = np.full((n, count), np.inf)
    stack = new_stack(len(tree.start) - 1)
    distances = np.empty(len(stack))  # of the nodes in the stack
    for leaf in range(len(tree.start) - 1):
        for i in range(tree.start[leaf], tree.start[leaf + 1]):
            # The own leaf first, so that few others are near enough.
            _look(dims, tree, leaf, i, tree.points[i], slots[i], squares[i])
            _search(
                dims, tree, leaf, i, tree.points[i], slots[i], squares[i], stack, distances, most
            )
    return slots, squares


@jit
def _nearest_squares(dims, tree, points, count):
    slots = np.empty(count, np.int64)
    squares = np.full((len(points), count), np.inf)
    stack = new_stack(len(tree.start) - 1)
    distances = np.empty(len(stack))
    for i in range(len(points)):
        _search(dims, tree, -1, -1, points[i], slots, squares[i], stack, distances, 2**62)
    return squares


@jit_part
def _search(dims, tree, seen, own, query, slots, squares, stack, distances, most):
    """Look at all leaves that may hold one of the nearest records, except one that was seen."""
    first_leaf = len(tree.start) - 2
    last = len(squares) - 1
    stack[0] = 0
    distances[0] = 0.0
    size = 1
    looked = 0
    while size > 0 and looked < most:
        size -= 1
        if distances[size] > squares[last]:
            continue
        node = stack[size]
        while node >= 0 and node < first_leaf:
            # The nearer child at once, the other one later.
            node = 2 * node + 1
            one = _to_box(dims, tree.box[node], query)
            other = _to_box(dims, tree.box[node + 1], query)
            far = node
            if other < one:
                node += 1
            else:
                far = node + 1
            if max(one, other) <= squares[last]:
                stack[size] = far
                distances[size] = max(one, other)
                size += 1
            if min(one, other) > squares[last]:
                node = -1
        if node >= 0 and node - first_leaf != seen:
            _look(dims, tree, node - first_leaf, own, query, slots, squares)
            looked += 1


@jit_part
def _look(dims, tree, leaf, own, query, slots, squares):
    """Put the records of a leaf among the nearest of a record, if they are."""
    last = len(slots) - 1
    for other in range(tree.start[leaf], tree.start[leaf + 1]):
        square = 0.0
        for j in range(width(dims, query)):
            gap = tree.points[other, j] - query[j]
            square += gap * gap
        if other == own or square > squares[last]:
            continue
        if square == squares[last] and square < np.inf and other > slots[last]:
            continue
        at = last
        while at > 0 and (
            square < squares[at - 1] or (square == squares[at - 1] and other < slots[at - 1])
        ):
            slots[at] = slots[at - 1]
            squares[at] = squares[at - 1]
            at -= 1
        slots[at] = other
        squares[at] = square


@jit_part
def _to_box(dims, box, query):
    """Return the squared distance to a box, which rounding cannot put above that of its records."""
    square = 0.0
    for j in range(width(dims, query)):
        gap = max(box[0, j] - query[j], query[j] - box[1, j], 0.0)
        square += gap * gap
    return square
