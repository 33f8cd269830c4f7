"""Which records are nearest, which is farthest, among those that are left.

Two exact ways to ask give the same answers, to the last tie: a scan of all records, and a k-d tree
that shrinks with the records that are left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part
from sdc_dask.kernels.kd_tree import build_kd_tree, new_stack, width

# Places for records in a leaf. Distances to all of them are computed side by side, by vector
# instructions, so that leaves may be larger than in a tree whose records are looked at one by one.
LANES = 64
TINY = 1e-300  # far above the rounding of numbers so small that they lose digits
NO_ROW = np.iinfo(np.int64).max


# By scan


@jit_part
def distances_to(live, left, query, out):
    """Write the squared distances from `query` to the records that are left.

    Four dimensions are added at a time: reading and writing `out` takes as long as computing. The
    order of additions is that of the dimensions.
    """
    d = live.shape[0]
    begin = (d - 1) % 4 + 1
    column, q = live[0], query[0]
    if begin == 1:
        for i in range(left):
            gap = column[i] - q
            out[i] = gap * gap
    elif begin == 2:
        column_2, q_2 = live[1], query[1]
        for i in range(left):
            gap = column[i] - q
            gap_2 = column_2[i] - q_2
            out[i] = gap * gap + gap_2 * gap_2
    elif begin == 3:
        column_2, q_2 = live[1], query[1]
        column_3, q_3 = live[2], query[2]
        for i in range(left):
            gap = column[i] - q
            gap_2 = column_2[i] - q_2
            gap_3 = column_3[i] - q_3
            out[i] = (gap * gap + gap_2 * gap_2) + gap_3 * gap_3
    else:
        out[:left] = 0.0
        begin = 0
    for j in range(begin, d, 4):
        column, q = live[j], query[j]
        column_2, q_2 = live[j + 1], query[j + 1]
        column_3, q_3 = live[j + 2], query[j + 2]
        column_4, q_4 = live[j + 3], query[j + 3]
        for i in range(left):
            gap = column[i] - q
            gap_2 = column_2[i] - q_2
            gap_3 = column_3[i] - q_3
            gap_4 = column_4[i] - q_4
            out[i] = (((out[i] + gap * gap) + gap_2 * gap_2) + gap_3 * gap_3) + gap_4 * gap_4


@jit_part
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


@jit_part
def farthest_scanned(distance, ids, left):
    """Row of the largest distance; of equals the lowest."""
    best = distance[0]
    row = ids[0]
    for i in range(1, left):
        if distance[i] >= best and (distance[i] > best or ids[i] < row):
            best = distance[i]
            row = ids[i]
    return row


@jit_part
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


@jit_part
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

    Leaves are counted from the first leaf. The live records of a leaf are in its first lanes.
    """

    first_leaf: int
    size: NDArray[np.int64]  # by leaf: live records
    box: NDArray[np.float64]  # by node: smallest and largest coordinates of live records
    square: NDArray[np.float64]  # by node: largest squared norm of live records; empty: -1
    lowest: NDArray[np.int64]  # by node: lowest live row
    point: NDArray[np.float64]  # by leaf, dimension and lane
    norm: NDArray[np.float64]  # by leaf and lane: squared norm
    row: NDArray[np.int64]  # by leaf and lane
    place: NDArray[np.int64]  # by row: the leaf times LANES, and the lane
    distance: NDArray[np.float64]  # by lane: of the leaf that is looked at
    stack: NDArray[np.int64]
    bounds: NDArray[np.float64]


@jit
def build_tree(points, dims):
    """Build the tree, all records live."""
    n, d = points.shape
    # A constant would be a type of its own, and the tree compiled once more. A leaf may have one
    # record more.
    built = build_kd_tree(points, np.ones(d), np.int64(LANES - 1))
    nodes = len(built.box)
    first_leaf = nodes // 2
    leaves = first_leaf + 1
    stack = new_stack(leaves)
    tree = LiveTree(
        first_leaf,
        built.start[1:] - built.start[:-1],
        built.box,
        np.empty(nodes),
        np.empty(nodes, np.int64),
        np.empty((leaves, d, LANES)),
        np.empty((leaves, LANES)),
        np.empty((leaves, LANES), np.int64),
        np.empty(n, np.int64),
        np.empty(LANES),
        stack,
        np.empty(len(stack)),
    )
    tree.square[:] = -1.0
    tree.lowest[:] = NO_ROW
    for leaf in range(leaves):
        node = first_leaf + leaf
        for lane in range(tree.size[leaf]):
            i = built.start[leaf] + lane
            row = built.rows[i]
            norm = 0.0
            for j in range(d):
                tree.point[leaf, j, lane] = built.points[i, j]
                norm += built.points[i, j] * built.points[i, j]
            tree.norm[leaf, lane] = norm
            tree.row[leaf, lane] = row
            tree.place[row] = leaf * LANES + lane
            tree.square[node] = max(tree.square[node], norm)
            tree.lowest[node] = min(tree.lowest[node], row)
    for node in range(first_leaf - 1, -1, -1):
        tree.square[node] = max(tree.square[2 * node + 1], tree.square[2 * node + 2])
        tree.lowest[node] = min(tree.lowest[2 * node + 1], tree.lowest[2 * node + 2])
    return tree


@jit_part
def remove_from_tree(dims, tree, row):
    """Take a record out of its leaf, and tighten the bounds that were its own.

    What is removed is the lowest or largest in few nodes, and in few dimensions. So each bound is
    followed upwards alone, and only as far as it was that of the record. A node without live
    records has a box from infinity to minus infinity.
    """
    leaf = tree.place[row] // LANES
    hole = tree.place[row] % LANES
    node = tree.first_leaf + leaf
    last = tree.size[leaf] - 1
    tree.size[leaf] = last
    square = tree.norm[leaf, hole]
    tree.norm[leaf, hole] = tree.norm[leaf, last]
    tree.row[leaf, hole] = tree.row[leaf, last]
    tree.place[tree.row[leaf, hole]] = leaf * LANES + hole
    if square == tree.square[node]:
        largest = -1.0
        for lane in range(last):
            largest = max(largest, tree.norm[leaf, lane])
        _tighten_upper(tree.square, node, square, largest)
    if row == tree.lowest[node]:
        lowest = NO_ROW
        for lane in range(last):
            lowest = min(lowest, tree.row[leaf, lane])
        _tighten_lower(tree.lowest, node, row, lowest)
    for j in range(width(dims, tree.box)):
        value = tree.point[leaf, j, hole]
        tree.point[leaf, j, hole] = tree.point[leaf, j, last]
        if value == tree.box[node, 0, j]:
            low = np.inf
            for lane in range(last):
                low = min(low, tree.point[leaf, j, lane])
            _tighten_lower(tree.box[:, 0, j], node, value, low)
        if value == tree.box[node, 1, j]:
            high = -np.inf
            for lane in range(last):
                high = max(high, tree.point[leaf, j, lane])
            _tighten_upper(tree.box[:, 1, j], node, value, high)


@jit_part
def _tighten_lower(bound, node, old, new):
    """Replace the lower bound of a leaf, and of the nodes above that had it of the leaf."""
    bound[node] = new
    while node > 0:
        node = (node - 1) // 2
        new = min(bound[2 * node + 1], bound[2 * node + 2])
        if bound[node] != old or new == old:
            return
        bound[node] = new


@jit_part
def _tighten_upper(bound, node, old, new):
    """Replace the upper bound of a leaf, and of the nodes above that had it of the leaf."""
    bound[node] = new
    while node > 0:
        node = (node - 1) // 2
        new = max(bound[2 * node + 1], bound[2 * node + 2])
        if bound[node] != old or new == old:
            return
        bound[node] = new


@jit_part
def _measure_leaf(dims, tree, leaf, query):
    """Compute the squared distances from `query` to the records of a leaf.

    The operations for each record are those of a scan, in their order.
    """
    distance = tree.distance
    point = tree.point
    size = tree.size[leaf]
    q = query[0]
    for lane in range(size):
        gap = point[leaf, 0, lane] - q
        distance[lane] = gap * gap
    for j in range(1, width(dims, query)):
        q = query[j]
        for lane in range(size):
            gap = point[leaf, j, lane] - q
            distance[lane] += gap * gap
    return size


@jit_part
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


@jit_part
def _farthest_bound(dims, tree, node, query, query_square, pull):
    """Upper bound of the squared distance from `query` to live records of a node.

    The far corner of the box is safe from rounding as in :func:`_nearest_bound`. The other bound
    knows that norms have a limit, too: for records x of the node, whose squared norms are S at
    most, and any pull m > 0, |x - q|^2 = |q|^2 + |x|^2 - 2 q.x is at most |q|^2 + (1 + m) S plus
    the largest -m |x|^2 - 2 q.x in the box, which is found in each dimension by itself. It is
    computed otherwise than a distance, so that it carries a slack, relative and absolute: no term
    is larger than the squared norms, since coordinates of a box are those of records.
    """
    corner = 0.0
    lean = 0.0
    reach = 1.0 / pull
    for j in range(width(dims, query)):
        q = query[j]
        low = tree.box[node, 0, j]
        high = tree.box[node, 1, j]
        gap = max(q - low, high - q)
        corner += gap * gap
        x = min(max(-q * reach, low), high)
        lean += x * (pull * x + (q + q))
    squares = (1.0 + pull) * tree.square[node] + query_square
    ball = squares * (1.0 + 1e-10) - lean + TINY
    return min(corner, ball)


@jit_part
def farthest_in_tree(dims, tree, query):
    """Row of the live record that is farthest from `query`; of equals the lowest."""
    query_square = 0.0
    for j in range(width(dims, query)):
        query_square += query[j] * query[j]
    # Where the bound of a ball around the origin, without a box, is exact. Any other pull is valid.
    pull = 1.0
    if query_square > 0.0 and tree.square[0] > 0.0:
        pull = min(max(np.sqrt(query_square / tree.square[0]), 0.1), 10.0)
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
                for lane in range(_measure_leaf(dims, tree, leaf, query)):
                    distance = tree.distance[lane]
                    if distance >= best:
                        row = tree.row[leaf, lane]
                        if distance > best or row < best_row:
                            best = distance
                            best_row = row
                break
            node = 2 * node + 1
            other_node = node + 1
            bound = -1.0
            other = -1.0
            if tree.square[node] >= 0.0:
                bound = _farthest_bound(dims, tree, node, query, query_square, pull)
            if tree.square[other_node] >= 0.0:
                other = _farthest_bound(dims, tree, other_node, query, query_square, pull)
            if other > bound or (other == bound and tree.lowest[other_node] < tree.lowest[node]):
                node, other_node = other_node, node
                bound, other = other, bound
            if other > best or (other == best and tree.lowest[other_node] < best_row):
                tree.stack[size] = other_node
                tree.bounds[size] = other
                size += 1
    return best_row


@jit_part
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
                for lane in range(_measure_leaf(dims, tree, leaf, query)):
                    distance = tree.distance[lane]
                    if distance > worst:
                        continue
                    row = tree.row[leaf, lane]
                    if row != seed and (distance < worst or row < worst_row):
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


@jit_part
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
                for lane in range(_measure_leaf(dims, tree, leaf, query)):
                    distance = tree.distance[lane]
                    if distance <= best:
                        row = tree.row[leaf, lane]
                        if row != without and (distance < best or row < best_row):
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
