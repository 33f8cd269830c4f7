"""V-MDAV: groups from the outside in, each of k records and of those that lie closer to it.

Two exact implementations give the same groups: one scans all records for every question, the
other asks a k-d tree that shrinks with the records that are left.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.grid import centred, centroid, exact_count
from sdc_dask.kernels.kd_tree import unrolled
from sdc_dask.kernels.live_index import (
    build_tree,
    distances_to,
    nearest_in_tree,
    nearest_one_in_tree,
    nearest_scanned,
    remove_from_tree,
)
from sdc_dask.kernels.nominal import (
    Nominal,
    add_by_category,
    add_mismatches,
    count_categories,
    distances_by_category,
    no_nominal,
)


def vmdav(
    points: NDArray[np.float64], k: int, gain: float, nominal: Nominal | None = None
) -> NDArray[np.int64]:
    """Group records by V-MDAV, with the implementation that suits their number.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Coordinates in which distances are Euclidean. Finite, rows in row-id order.
    k : int
        Smallest group, 2 or more; ``n >= k``.
    gain : float
        How readily groups grow, 0 or more (the paper's gamma): a record joins a group if its
        distance to the group is less than `gain` times its distance to the other records that are
        left. 0 keeps groups at k records, which is nearly MDAV with a fixed centroid. The paper
        suggests 0.2 for scattered data and 1.1 for clustered data.
    nominal : Nominal, optional
        Categories, whose squared distances are added. They are scanned, as no tree holds them.

    Returns
    -------
    ndarray of int64, shape (n,)
        The group of every record, numbered in the order in which groups were formed. Every group
        has k to 2k - 1 records, and those of the fewer than k last records that joined it.

    Notes
    -----
    While at least k records are left: the record farthest from the centroid of all records, which
    is computed once, and its k - 1 nearest form a group. While the group has fewer than 2k - 1
    records: e is the record left that is nearest to any record of the group, at distance d_in, and
    d_out is the distance from e to the nearest other record left; if d_in < gain * d_out, e joins
    the group, otherwise the group is done. Records that are left in the end join the group closest
    to them. Ties go to the lowest row, or to the group that was formed first; they are those of
    exact arithmetic where :func:`~sdc_dask.kernels.mdav.mdav` says so, with n or the square of
    2k - 1, whichever is larger, in place of n.

    What the paper leaves open is decided like this:

    - The group closest to a record is the one of the nearest centroid. Centroids are those of the
      groups as they were formed, so that the last records do not depend on one another.
    - A group grows even if that leaves fewer than k records; and the last records may make a group
      larger than 2k - 1.
    - If e is the only record left, there is no d_out: e joins the group closest to it.
    - Squared distances are compared, with the square of `gain`: the rule, except for rounding.

    Source: A. Solanas and A. Martinez-Balleste, "V-MDAV: a multivariate microaggregation with
    variable group size", COMPSTAT 2006.

    Examples
    --------
    >>> import numpy as np
    >>> vmdav(np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [9.0], [9.1]]), k=2, gain=1.1)
    array([1, 1, 1, 2, 2, 0, 0])
    """
    # Around the origin, the sums of centroids lose least.
    points = centred(points)
    if nominal is None and _index_pays(*points.shape):
        return vmdav_indexed(points, k, float(gain))
    return vmdav_brute(points, k, float(gain), nominal)


def vmdav_indexed(points: NDArray[np.float64], k: int, gain: float) -> NDArray[np.int64]:
    """Group records by V-MDAV, asking a k-d tree of the records that are left.

    Parameters, result and rule are those of :func:`vmdav`; the groups are those of
    :func:`vmdav_brute` to the last tie.
    """
    n, d = points.shape
    return _vmdav_indexed(points, k, gain, unrolled(d, n, most=3))


def _index_pays(n: int, d: int) -> bool:
    """Whether the k-d tree is expected to beat the scan (measured on uniform data, k = 3 to 10)."""
    return n > 600 * 1.33**d


def vmdav_brute(
    points: NDArray[np.float64], k: int, gain: float, nominal: Nominal | None = None
) -> NDArray[np.int64]:
    """Group records by V-MDAV, scanning what is left for every question: O(n^2 d).

    Parameters, result and rule are those of :func:`vmdav`.
    """
    return _vmdav_brute(points, no_nominal(len(points)) if nominal is None else nominal, k, gain)


@jit
def _vmdav_brute(points, nominal, k, gain):
    n = len(points)
    labels = np.full(n, -1, np.int64)
    order = _from_outside_in(points, nominal)
    weight = nominal.weight
    codes = nominal.codes.copy()
    # One array a dimension, so that the compiler turns the distance loops into vector code.
    # Records that are left stay in front; a removed one is overwritten by the last.
    live = np.ascontiguousarray(points.T)
    ids = np.arange(n)
    place = np.arange(n)
    left = n
    reach = np.empty(n)  # from the nearest record of the group
    distance = np.empty(n)
    group_distance = np.empty(k)
    group_id = np.empty(k, np.int64)
    turn = 0
    groups = 0
    while left >= k:
        while labels[order[turn]] >= 0:
            turn += 1
        seed = order[turn]
        distances_to(live, left, points[seed], reach)
        add_mismatches(codes, left, nominal.codes[:, seed], weight, reach)
        reach[place[seed]] = -1.0
        nearest_scanned(reach, ids, left, k, group_distance, group_id)
        for g in range(k):
            labels[group_id[g]] = groups
            left -= 1
            _fill_hole(live, codes, ids, place, reach, place[group_id[g]], left)
        if gain > 0.0:
            for g in range(1, k):
                distances_to(live, left, points[group_id[g]], distance)
                add_mismatches(codes, left, nominal.codes[:, group_id[g]], weight, distance)
                _lower(reach, distance, left)
            size = k
            while size < 2 * k - 1 and left > 1:
                e = _place_of_smallest(reach, ids, left)
                row = ids[e]
                distances_to(live, left, points[row], distance)
                add_mismatches(codes, left, nominal.codes[:, row], weight, distance)
                distance[e] = np.inf
                other = _place_of_smallest(distance, ids, left)
                if not _is_closer(reach[e], distance[other], gain):
                    break
                _lower(reach, distance, left)
                labels[row] = groups
                left -= 1
                _fill_hole(live, codes, ids, place, reach, e, left)
                size += 1
        groups += 1
    _join_closest(points, nominal, labels, groups)
    return labels


@jit
def _from_outside_in(points, nominal):
    """Order rows by their distance to the centroid, the farthest first; of equals the lowest."""
    n, d = points.shape
    total = np.zeros(d)
    for i in range(n):
        for j in range(d):
            total[j] += points[i, j]
    centre = np.empty(d)
    scale = centroid(total, n, exact_count(points), centre)
    closeness = np.zeros(n)
    for i in range(n):
        for j in range(d):
            gap = scale * points[i, j] - centre[j]
            closeness[i] -= gap * gap
    table = distances_by_category(count_categories(nominal), nominal.weight, scale)
    add_by_category(nominal.codes, n, -table, closeness)
    return np.argsort(closeness, kind="mergesort")


@jit
def _is_closer(inner, outer, gain):
    """Return whether a record joins, by its squared distances to the group and to the others."""
    return inner < gain * gain * outer


@jit
def _fill_hole(live, codes, ids, place, reach, hole, last):
    """Overwrite the record at a place by the last one."""
    for j in range(live.shape[0]):
        live[j, hole] = live[j, last]
    for j in range(codes.shape[0]):
        codes[j, hole] = codes[j, last]
    reach[hole] = reach[last]
    ids[hole] = ids[last]
    place[ids[last]] = hole


@jit
def _lower(reach, distance, left):
    """Reduce `reach` to `distance` where that is smaller."""
    for i in range(left):
        reach[i] = min(reach[i], distance[i])


@jit
def _place_of_smallest(distance, ids, left):
    """Place of the smallest distance; of equals that of the lowest row."""
    best = 0
    for i in range(1, left):
        if distance[i] <= distance[best] and (distance[i] < distance[best] or ids[i] < ids[best]):
            best = i
    return best


@jit
def _join_closest(points, nominal, labels, groups):
    """Let every record that has no group join the one of the nearest centroid."""
    n, d = points.shape
    columns = len(nominal.weight)
    size = np.zeros(groups, np.int64)
    total = np.zeros((groups, d))
    for i in range(n):
        if labels[i] >= 0:
            size[labels[i]] += 1
            for j in range(d):
                total[labels[i], j] += points[i, j]
    first, members = _members(labels, size)
    # Squared distances to centroids times one number are compared times the square of another.
    exact = exact_count(points) // size.max()
    scale = np.empty(groups)
    centre = np.empty((groups, d))
    for g in range(groups):
        scale[g] = centroid(total[g], size[g], exact, centre[g])
    for i in range(n):
        if labels[i] < 0:
            closest = np.inf
            closest_scale = 1.0
            labels[i] = 0
            for g in range(groups):
                distance = 0.0
                for j in range(d):
                    gap = scale[g] * points[i, j] - centre[g, j]
                    distance += gap * gap
                for j in range(columns):
                    # A centroid is as far from a record as its records are on average, less what
                    # they are from it themselves: half the mean distance of all their pairs.
                    own = members[first[g] : first[g + 1]]
                    apart = 0
                    within = 0
                    for a in own:
                        apart += nominal.codes[j, a] != nominal.codes[j, i]
                        for b in own:
                            within += nominal.codes[j, a] != nominal.codes[j, b]
                    times = np.float64(2 * size[g] * apart - within)
                    distance += 0.5 * nominal.weight[j] * (scale[g] / size[g]) ** 2 * times
                if distance * closest_scale**2 < closest * scale[g] ** 2:
                    closest = distance
                    closest_scale = scale[g]
                    labels[i] = g


@jit
def _members(labels, size):
    """Return the records that have a group, group by group, and where each group begins."""
    first = np.zeros(len(size) + 1, np.int64)
    first[1:] = np.cumsum(size)
    place = first[:-1].copy()
    members = np.empty(first[-1], np.int64)
    for i in range(len(labels)):
        if labels[i] >= 0:
            members[place[labels[i]]] = i
            place[labels[i]] += 1
    return first, members


@jit
def _vmdav_indexed(points, k, gain, dims):
    n = len(points)
    # Categories are in no tree.
    nominal = Nominal(np.empty((0, n), np.int64), np.empty(0))
    labels = np.full(n, -1, np.int64)
    order = _from_outside_in(points, nominal)
    tree = build_tree(points, dims)
    group_distance = np.empty(k)
    group_id = np.empty(2 * k - 1, np.int64)
    near = np.empty(2 * k - 1)
    near_id = np.empty(2 * k - 1, np.int64)
    left = n
    turn = 0
    groups = 0
    while left >= k:
        while labels[order[turn]] >= 0:
            turn += 1
        seed = order[turn]
        nearest_in_tree(dims, tree, points[seed], seed, k, group_distance, group_id)
        for g in range(k):
            labels[group_id[g]] = groups
            remove_from_tree(dims, tree, group_id[g])
            near[g] = -1.0
            near_id[g] = group_id[g]
        left -= k
        size = k
        while gain > 0.0 and size < 2 * k - 1 and left > 1:
            inner, row = _nearest_to_group(
                dims, tree, points, labels, size, group_id, near, near_id
            )
            outer, other = nearest_one_in_tree(dims, tree, points[row], row, np.inf, n)
            if not _is_closer(inner, outer, gain):
                break
            labels[row] = groups
            remove_from_tree(dims, tree, row)
            left -= 1
            group_id[size] = row
            near[size] = outer
            near_id[size] = other
            size += 1
        groups += 1
    _join_closest(points, nominal, labels, groups)
    return labels


@jit
def _nearest_to_group(dims, tree, points, labels, size, group_id, near, near_id):
    """Return distance and row of the live record nearest to any record of the group.

    For every record of the group, `near` and `near_id` tell that no live record comes before this
    distance and row. That stays true as records are removed, so that only those records of the
    group are asked again whose answer was removed and could come first.
    """
    best = np.inf
    best_row = len(points)
    for g in range(size):
        if labels[near_id[g]] < 0 and (
            near[g] < best or (near[g] == best and near_id[g] < best_row)
        ):
            best = near[g]
            best_row = near_id[g]
    for g in range(size):
        if near[g] < best or (near[g] == best and near_id[g] < best_row):
            row = group_id[g]
            best, best_row = nearest_one_in_tree(dims, tree, points[row], row, best, best_row)
            near[g] = best
            near_id[g] = best_row
    return best, best_row
