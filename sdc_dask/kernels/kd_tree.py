"""A k-d tree: records in an order in which neighbours are near each other, in boxes within boxes.

The tree is binary and complete: the children of node i are 2i + 1 and 2i + 2, and the leaves are
the last nodes. What is asked of it is up to those who build it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part

WORTH_UNROLLING = 20_000
_SAMPLE = 64


class KdTree(NamedTuple):
    """Records by slot. The leaf i, counted from the first leaf, owns start[i] to start[i + 1]."""

    start: NDArray[np.int64]  # by leaf
    box: NDArray[np.float64]  # by node: smallest and largest coordinates
    points: NDArray[np.float64]  # by slot
    rows: NDArray[np.int64]  # by slot


def unrolled(d: int, n: int, most: int) -> tuple[int, ...]:
    """Return the `dims` of kernels: a tuple of length d, or an empty one.

    A tuple's length is a constant for the compiler, which unrolls the loops over dimensions. That
    takes seconds for every d, once: too long for few records (n), and for more dimensions than the
    `most` for which a kernel gains by it.
    """
    return (0,) * d if d <= most and n >= WORTH_UNROLLING else ()


@jit_part
def width(dims, array):
    """Return the number of dimensions: a constant where `dims` has it, else read off an array."""
    return len(dims) if len(dims) > 0 else array.shape[-1]


@jit
def build_kd_tree(points, weight, leaf_size):
    """Cut records at the median of the widest dimension until leaves are small.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Finite; there may be none.
    weight : ndarray of float64, shape (d,)
        What coordinates are multiplied by to tell which dimension is widest.
    leaf_size : int
        A leaf has at most one record more than this.

    Returns
    -------
    KdTree
        Leaves of the same number of records, or of one more.
    """
    n, d = points.shape
    depth = 0
    while (n >> depth) > leaf_size:
        depth += 1
    leaves = 1 << depth
    first_leaf = leaves - 1
    tree = KdTree(
        np.empty(leaves + 1, np.int64),
        np.empty((2 * leaves - 1, 2, d)),
        points.copy(),
        np.arange(n),
    )
    tree.start[leaves] = n
    # Depth first: the records of a small node stay in the cache until its leaves are made.
    stack = np.empty((depth + 1, 3), np.int64)
    # One by one: a tuple that is assigned to a row takes seconds to compile, for an error's text.
    stack[0, 0] = 0
    stack[0, 1] = 0
    stack[0, 2] = n
    size = 1
    while size > 0:
        size -= 1
        node = stack[size, 0]
        a = stack[size, 1]
        b = stack[size, 2]
        while node < first_leaf:
            middle = (a + b) // 2
            _select(tree, _widest(tree.points, weight, a, b), a, b - 1, middle)
            node = 2 * node + 1
            stack[size, 0] = node + 1
            stack[size, 1] = middle
            stack[size, 2] = b
            size += 1
            b = middle
        tree.start[node - first_leaf] = a
        for j in range(d):
            low = np.inf  # without records, the box is at an infinite distance of everything
            high = -np.inf
            for i in range(a, b):
                low = min(low, tree.points[i, j])
                high = max(high, tree.points[i, j])
            tree.box[node, 0, j] = low
            tree.box[node, 1, j] = high
    bound_parents(tree.box)
    return tree


@jit_part
def bound_parents(box):
    """Compute the boxes of all nodes from those of the leaves."""
    for node in range(len(box) // 2 - 1, -1, -1):
        for j in range(box.shape[2]):
            box[node, 0, j] = min(box[2 * node + 1, 0, j], box[2 * node + 2, 0, j])
            box[node, 1, j] = max(box[2 * node + 1, 1, j], box[2 * node + 2, 1, j])


@jit
def new_stack(leaves):
    """Return a stack with a place for each level of the tree, and one more."""
    depth = 0
    while (leaves >> depth) > 0:
        depth += 1
    return np.empty(depth + 1, np.int64)


@jit_part
def _widest(points, weight, a, b):
    """Return the dimension in which some of the records from a to b are spread widest."""
    step = max((b - a) // _SAMPLE, 1)
    best = 0
    spread = -1.0
    for j in range(points.shape[1]):
        low = points[a, j]
        high = low
        for i in range(a + step, b, step):
            low = min(low, points[i, j])
            high = max(high, points[i, j])
        if (high - low) * weight[j] > spread:
            spread = (high - low) * weight[j]
            best = j
    return best


@jit_part
def _select(tree, j, a, b, middle):
    """Reorder a to b so that none before `middle` exceeds any from it on, in dimension j."""
    points = tree.points
    rows = tree.rows
    while a < b:
        pivot = _pivot(points, j, a, b)
        i = a
        o = b
        while i <= o:
            while points[i, j] < pivot:
                i += 1
            while points[o, j] > pivot:
                o -= 1
            if i <= o:
                for column in range(points.shape[1]):
                    points[i, column], points[o, column] = points[o, column], points[i, column]
                rows[i], rows[o] = rows[o], rows[i]
                i += 1
                o -= 1
        if middle <= o:
            b = o
        elif middle >= i:
            a = i
        else:
            return


@jit_part
def _pivot(points, j, a, b):
    """Return the median of three coordinates."""
    x = points[a, j]
    y = points[(a + b) // 2, j]
    z = points[b, j]
    return max(min(x, y), min(max(x, y), z))


@jit_part
def box_distance(dims, box, query, weight):
    """Return the squared distance to a box, which rounding cannot put above that of its records.

    It has the operations of a distance in their order, and every one of them is monotone.
    """
    distance = 0.0
    for j in range(width(dims, query)):
        gap = max(box[0, j] - query[j], query[j] - box[1, j])
        gap = max(gap, 0.0) * weight[j]
        distance += gap * gap
    return distance
