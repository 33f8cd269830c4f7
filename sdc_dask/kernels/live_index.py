"""Which records are nearest, which is farthest, among those that are left.

Two exact ways to ask give the same answers, to the last tie: a scan of all records, and a k-d tree
that shrinks with the records that are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.kd_tree import build_kd_tree, new_stack, width

LEAF_SIZE = 16
TINY = 1e-300  # far above the rounding of numbers so small that they lose digits
NO_ROW = np.iinfo(np.int64).max


# By scan


@jit
def distances_to(live, left, query, out):
    """Write the squared distances from `query` to the records that are left."""
    first = live[0]
    q = query[0]
    for i in range(left):
        gap = first[i] - q
        out[i] = gap * gap
    for j in range(1, live.shape[0]):
        column = live[j]
        q = query[j]
        for i in range(left):
            gap = column[i] - q
            out[i] += gap * gap


@jit
def scaled_distances_to(live, left, query, scale, out):
    """Write the squared distances from `query` to `scale` times the records that are left.

    With the scale 1 they are those of :func:`distances_to`, which is faster.
    """
    out[:left] = 0.0
    for j in range(live.shape[0]):
        column = live[j]
        q = query[j]
        for i in range(left):
            gap = scale * column[i] - q
            out[i] += gap * gap


@jit
def farthest_scanned(distance, ids, left):
    """Row of the largest distance; of equals the lowest."""
    best = distance[0]
    row = ids[0]
    for i in range(1, left):
        if distance[i] >= best and (distance[i] > best or ids[i] < row):
            best = distance[i]
            row = ids[i]
    return row


@jit
def nearest_scanned(distance, ids, left, k, group_distance, group_id):
    """Write the k rows of smallest (distance, row), in that order."""
    size = 0
    for i in range(left):
        if size < k:
            insert(group_distance, group_id, size, distance[i], ids[i])
            size += 1
        elif distance[i] <= group_distance[k - 1] and (
            distance[i] < group_distance[k - 1] or ids[i] < group_id[k - 1]
        ):
            insert(group_distance, group_id, k - 1, distance[i], ids[i])


@jit
def insert(group_distance, group_id, last, distance, row):
    """Insert into the sorted candidates, over the one at position `last`."""
    i = last
    while i > 0 and (
        group_distance[i - 1] > distance
        or (group_distance[i - 1] == distance and group_id[i - 1] > row)
    ):
        group_distance[i] = group_distance[i - 1]
        group_id[i] = group_id[i - 1]
        i -= 1
    group_distance[i] = distance
    group_id[i] = row


# By tree


class LiveTree(NamedTuple):
    """A k-d tree over records of which some are removed.

    The leaf i, counted from the first leaf, owns the slots start[i] to stop[i].
    """

    first_leaf: int
    start: NDArray[np.int64]  # by leaf
    stop: NDArray[np.int64]  # by leaf; shrinks as records are removed
    box: NDArray[np.float64]  # by node: smallest and largest coordinates of live records
    square: NDArray[np.float64]  # by node: largest squared norm of live records; empty: -1
    lowest: NDArray[np.int64]  # by node: lowest live row
    point: NDArray[np.float64]  # by slot
    norm: NDArray[np.float64]  # by slot: squared norm
    row: NDArray[np.int64]  # by slot
    slot: NDArray[np.int64]  # by row
    leaf: NDArray[np.int64]  # by row: the node
    stack: NDArray[np.int64]
    bounds: NDArray[np.float64]


@jit
def build_tree(points, dims):
    """Build the tree, all records live."""
    n, d = points.shape
    # A constant would be a type of its own, and the tree compiled once more.
    built = build_kd_tree(points, np.ones(d), np.int64(LEAF_SIZE))
    nodes = len(built.box)
    first_leaf = nodes // 2
    stack = new_stack(first_leaf + 1)
    tree = LiveTree(
        first_leaf,
        built.start,
        built.start[1:].copy(),
        built.box,
        np.empty(nodes),
        np.empty(nodes, np.int64),
        built.points,
        np.empty(n),
        built.rows,
        np.empty(n, np.int64),
        np.empty(n, np.int64),
        stack,
        np.empty(len(stack)),
    )
    for i in range(n):
        tree.slot[tree.row[i]] = i
        norm = 0.0
        for j in range(d):
            norm += tree.point[i, j] * tree.point[i, j]
        tree.norm[i] = norm
    for node in range(nodes - 1, -1, -1):
        if node >= first_leaf:
            for i in range(tree.start[node - first_leaf], tree.stop[node - first_leaf]):
                tree.leaf[tree.row[i]] = node
            _bound_leaf(dims, tree, node)
        else:
            _bound_parent(dims, tree, node)
    return tree


@jit
def _bound_leaf(dims, tree, leaf):
    """Recompute the bounds of a leaf."""
    a = tree.start[leaf - tree.first_leaf]
    b = tree.stop[leaf - tree.first_leaf]
    if a == b:
        tree.square[leaf] = -1.0
        tree.lowest[leaf] = NO_ROW
        return
    square = tree.norm[a]
    lowest = tree.row[a]
    for i in range(a + 1, b):
        square = max(square, tree.norm[i])
        lowest = min(lowest, tree.row[i])
    tree.square[leaf] = square
    tree.lowest[leaf] = lowest
    for j in range(width(dims, tree.box)):
        low = tree.point[a, j]
        high = low
        for i in range(a + 1, b):
            low = min(low, tree.point[i, j])
            high = max(high, tree.point[i, j])
        tree.box[leaf, 0, j] = low
        tree.box[leaf, 1, j] = high


@jit
def _bound_parent(dims, tree, node):
    """Recompute the bounds of a node from its children; tell whether any changed."""
    a = 2 * node + 1
    b = a + 1
    if tree.square[a] < 0.0:
        a = b
    elif tree.square[b] < 0.0:
        b = a
    square = max(tree.square[a], tree.square[b])
    lowest = min(tree.lowest[a], tree.lowest[b])
    changed = square != tree.square[node] or lowest != tree.lowest[node]
    tree.square[node] = square
    tree.lowest[node] = lowest
    for j in range(width(dims, tree.box)):
        low = min(tree.box[a, 0, j], tree.box[b, 0, j])
        high = max(tree.box[a, 1, j], tree.box[b, 1, j])
        changed |= low != tree.box[node, 0, j] or high != tree.box[node, 1, j]
        tree.box[node, 0, j] = low
        tree.box[node, 1, j] = high
    return changed


@jit
def remove_from_tree(dims, tree, row):
    """Take a record out of its leaf and tighten the bounds above it as far as they change."""
    leaf = tree.leaf[row]
    hole = tree.slot[row]
    tree.stop[leaf - tree.first_leaf] -= 1
    last = tree.stop[leaf - tree.first_leaf]
    on_bound = tree.norm[hole] == tree.square[leaf] or row == tree.lowest[leaf]
    for j in range(width(dims, tree.point)):
        value = tree.point[hole, j]
        on_bound |= value == tree.box[leaf, 0, j] or value == tree.box[leaf, 1, j]
        tree.point[hole, j] = tree.point[last, j]
    tree.norm[hole] = tree.norm[last]
    tree.row[hole] = tree.row[last]
    tree.slot[tree.row[hole]] = hole
    if on_bound:
        _bound_leaf(dims, tree, leaf)
        node = leaf
        while node > 0:
            node = (node - 1) // 2
            if not _bound_parent(dims, tree, node):
                break


@jit
def _distance(dims, tree, i, query):
    """Return the squared distance from `query` to the record in slot i."""
    distance = 0.0
    for j in range(width(dims, query)):
        gap = tree.point[i, j] - query[j]
        distance += gap * gap
    return distance


@jit
def _nearest_bound(dims, tree, node, query):
    """Squared distance from `query` to the box: no live record of the node is nearer.

    Rounding cannot put it above a distance: it has the operations of a distance in their order,
    and every one of them is monotone.
    """
    distance = 0.0
    for j in range(width(dims, query)):
        gap = max(tree.box[node, 0, j] - query[j], query[j] - tree.box[node, 1, j])
        gap = max(gap, 0.0)
        distance += gap * gap
    return distance


@jit
def _farthest_bound(dims, tree, node, query, query_square):
    """Upper bound of the squared distance from `query` to live records of a node.

    The far corner of the box is safe from rounding as in :func:`_nearest_bound`; the bound
    through the radius is computed otherwise, so that it carries a slack, relative and absolute.
    """
    corner = 0.0
    lean = 0.0
    for j in range(width(dims, query)):
        low = tree.box[node, 0, j]
        high = tree.box[node, 1, j]
        gap = max(query[j] - low, high - query[j])
        corner += gap * gap
        lean += max(-query[j] * low, -query[j] * high)
    squares = tree.square[node] + query_square
    ball = squares + 2.0 * lean + (1e-10 * (squares + abs(lean)) + TINY)
    return min(corner, ball)


@jit
def farthest_in_tree(dims, tree, query):
    """Row of the live record that is farthest from `query`; of equals the lowest."""
    query_square = 0.0
    for j in range(width(dims, query)):
        query_square += query[j] * query[j]
    best = -1.0
    best_row = NO_ROW
    tree.stack[0] = 0
    tree.bounds[0] = np.inf
    size = 1
    while size > 0:
        size -= 1
        node = tree.stack[size]
        bound = tree.bounds[size]
        while bound > best or (bound == best and tree.lowest[node] < best_row):
            if node >= tree.first_leaf:
                leaf = node - tree.first_leaf
                for i in range(tree.start[leaf], tree.stop[leaf]):
                    distance = _distance(dims, tree, i, query)
                    if distance > best or (distance == best and tree.row[i] < best_row):
                        best = distance
                        best_row = tree.row[i]
                break
            node = 2 * node + 1
            other_node = node + 1
            bound = -1.0
            other = -1.0
            if tree.square[node] >= 0.0:
                bound = _farthest_bound(dims, tree, node, query, query_square)
            if tree.square[other_node] >= 0.0:
                other = _farthest_bound(dims, tree, other_node, query, query_square)
            if other > bound or (other == bound and tree.lowest[other_node] < tree.lowest[node]):
                node, other_node = other_node, node
                bound, other = other, bound
            if other > best or (other == best and tree.lowest[other_node] < best_row):
                tree.stack[size] = other_node
                tree.bounds[size] = other
                size += 1
    return best_row


@jit
def nearest_in_tree(dims, tree, query, seed, k, group_distance, group_id):
    """Write `seed` and the k - 1 live rows of smallest (distance, row), in that order."""
    group_distance[0] = -1.0
    group_id[0] = seed
    found = 1
    worst = np.inf
    worst_row = NO_ROW
    tree.stack[0] = 0
    tree.bounds[0] = 0.0
    size = 1
    while size > 0:
        size -= 1
        node = tree.stack[size]
        bound = tree.bounds[size]
        while bound < worst or (bound == worst and tree.lowest[node] < worst_row):
            if node >= tree.first_leaf:
                leaf = node - tree.first_leaf
                for i in range(tree.start[leaf], tree.stop[leaf]):
                    distance = _distance(dims, tree, i, query)
                    row = tree.row[i]
                    if row != seed and (
                        distance < worst or (distance == worst and row < worst_row)
                    ):
                        insert(group_distance, group_id, min(found, k - 1), distance, row)
                        found += 1
                        if found >= k:
                            worst = group_distance[k - 1]
                            worst_row = group_id[k - 1]
                break
            node = 2 * node + 1
            other_node = node + 1
            bound = np.inf
            other = np.inf
            if tree.square[node] >= 0.0:
                bound = _nearest_bound(dims, tree, node, query)
            if tree.square[other_node] >= 0.0:
                other = _nearest_bound(dims, tree, other_node, query)
            if other < bound or (other == bound and tree.lowest[other_node] < tree.lowest[node]):
                node, other_node = other_node, node
                bound, other = other, bound
            if other < worst or (other == worst and tree.lowest[other_node] < worst_row):
                tree.stack[size] = other_node
                tree.bounds[size] = other
                size += 1


@jit
def nearest_one_in_tree(dims, tree, query, without, best, best_row):
    """Return the smallest (distance, row) of live rows but one, if it comes before the given one.

    :func:`nearest_in_tree` with k = 2 finds the same, but slower: here, what was found so far
    stays in registers. The step from a node to its children is written in both, since a call for
    it takes up to twice the time.
    """
    tree.stack[0] = 0
    tree.bounds[0] = 0.0
    size = 1
    while size > 0:
        size -= 1
        node = tree.stack[size]
        bound = tree.bounds[size]
        while bound < best or (bound == best and tree.lowest[node] < best_row):
            if node >= tree.first_leaf:
                leaf = node - tree.first_leaf
                for i in range(tree.start[leaf], tree.stop[leaf]):
                    distance = _distance(dims, tree, i, query)
                    row = tree.row[i]
                    if row != without and (
                        distance < best or (distance == best and row < best_row)
                    ):
                        best = distance
                        best_row = row
                break
            node = 2 * node + 1
            other_node = node + 1
            bound = np.inf
            other = np.inf
            if tree.square[node] >= 0.0:
                bound = _nearest_bound(dims, tree, node, query)
            if tree.square[other_node] >= 0.0:
                other = _nearest_bound(dims, tree, other_node, query)
            if other < bound or (other == bound and tree.lowest[other_node] < tree.lowest[node]):
                node, other_node = other_node, node
                bound, other = other, bound
            if other < best or (other == best and tree.lowest[other_node] < best_row):
                tree.stack[size] = other_node
                tree.bounds[size] = other
                size += 1
    return best, best_row
