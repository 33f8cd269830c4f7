"""MDAV: groups of k by turns around the record farthest from the centroid and its opposite.

Three exact implementations give the same groups: one scans all records for every question, one
scans them in single precision first, and one asks a k-d tree that shrinks with the records that are
left. A fourth, in numpy, does what is done sooner than these are compiled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import is_compiled, jit, jit_part
from sdc_dask.kernels.grid import centred, centroid, exact_count
from sdc_dask.kernels.kd_tree import unrolled
from sdc_dask.kernels.live_index import (
    build_tree,
    distances_to,
    farthest_in_tree,
    farthest_scanned,
    nearest_in_tree,
    nearest_scanned,
    remove_from_tree,
    scaled_distances_to,
)
from sdc_dask.kernels.mdav_few import mdav_few, sooner_than_compiled
from sdc_dask.kernels.narrow import (
    farthest_narrow,
    has_room,
    nearest_narrow,
    new_narrow,
    outermost_narrow,
    remove_from_narrow,
)
from sdc_dask.kernels.nominal import (
    Nominal,
    add_by_category,
    add_mismatches,
    count_categories,
    distances_by_category,
    no_nominal,
)
from sdc_dask.kernels.outermost import farthest_from_centroid, new_outermost

_SHRINK = 4  # records per record that is left, when these go on alone
_LARGEST_K = 64  # for which single precision is tried: each of so many needs a cell of its own
_DOUBTS = 16  # records in doubt per record, above which single precision does not pay


def mdav(points: NDArray[np.float64], k: int, nominal: Nominal | None = None) -> NDArray[np.int64]:
    """Group records by MDAV-generic, with the implementation that suits their number.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Coordinates in which distances are Euclidean. Finite, rows in row-id order.
    k : int
        Smallest group, 2 or more; ``n >= k``.
    nominal : Nominal, optional
        Categories, whose squared distances are added. They are scanned, as no tree holds them.

    Returns
    -------
    ndarray of int64, shape (n,)
        The group of every record, numbered in the order in which groups were formed. Every group
        has k records, but the last, which has k to 2k - 1.

    Notes
    -----
    While at least 3k records are left: r is the record farthest from their centroid; r and its
    k - 1 nearest form a group; s is the record farthest from r among those left; s and its k - 1
    nearest form a group. With 2k to 3k - 1 left, one more group forms around the record farthest
    from the centroid, and the rest is the last group. Ties go to the lowest row.

    Ties are those of exact arithmetic if the points are on a grid, that is, if all coordinates are
    multiples of one power of two, and n times the diagonal of their box is at most 2^26 of these
    units (see :mod:`~sdc_dask.kernels.grid`). On a larger grid, up to a diagonal of 2^25 units,
    that holds for the distances between records, and for those to the centroid as soon as few
    enough records are left. Otherwise distances are rounded: those of equal records are equal, but
    of records that differ and are equally far, rounding may put one ahead of the other.

    Source: J. Domingo-Ferrer and V. Torra, "Ordinal, continuous and heterogeneous k-anonymity
    through microaggregation", Data Mining and Knowledge Discovery 11(2):195-212, 2005, where it is
    called MDAV-generic. It goes back to the multivariate fixed-size method of J. Domingo-Ferrer
    and J. M. Mateo-Sanz, "Practical data-oriented microaggregation for statistical disclosure
    control", IEEE Transactions on Knowledge and Data Engineering 14(1):189-201, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> mdav(np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]]), k=2)
    array([0, 0, 2, 2, 1, 1])
    """
    n, d = points.shape
    most = _most_narrow(d, k)
    if nominal is not None or n < _fewest(d, k):
        kernel = _mdav_brute
    else:
        kernel = _group_narrow if n <= most else _group_some
    if nominal is None and not is_compiled(kernel) and sooner_than_compiled(n, d, k):
        return mdav_few(points, k)
    # Around the origin, sums of what is left lose least, and the index can bound by radius.
    points = centred(points)
    if kernel is _mdav_brute:
        return mdav_brute(points, k, nominal)
    return _in_rounds(points, k, most, unrolled(d, n, most=3))


# As measured by benchmarks/kernels.py


def _fewest(d: int, k: int) -> int:
    """Return how many records are grouped sooner by another kernel than by the plain scan."""
    return 750 + 90 * k if k <= _LARGEST_K else int(1000 * 1.3**d)


def _most_narrow(d: int, k: int) -> int:
    """Return how many records are grouped sooner in single precision than by a tree."""
    return int(4000 * 1.22**d * k**0.6) if k <= _LARGEST_K else 0


def mdav_indexed(points: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Group records by MDAV, asking a k-d tree and a heap of the records that are left.

    Parameters, result and rule are those of :func:`mdav`; the groups are those of
    :func:`mdav_brute` to the last tie. Fast if the points lie around the origin.

    Notes
    -----
    Every node keeps the bounding box of its live records, the largest of their squared distances
    to the origin, and their lowest row. The set that is left becomes a ball, where the corners of
    boxes bound the farthest record badly; box and radius together bound it well.

    When a quarter of the records is left, it gets a tree of its own, whose leaves are full again.
    The farthest from the centroid comes from a heap (:mod:`~sdc_dask.kernels.outermost`).
    """
    n, d = points.shape
    return _in_rounds(points, k, 0, unrolled(d, n, most=3))


def mdav_narrow(points: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Group records by MDAV, scanning them in single precision first.

    Parameters, result and rule are those of :func:`mdav`; the groups are those of
    :func:`mdav_brute` to the last tie. Where single precision leaves too many records in doubt, as
    where most of them are equal, a tree is asked instead.
    """
    n, d = points.shape
    return _in_rounds(points, k, n, unrolled(d, n, most=3))


def _in_rounds(
    points: NDArray[np.float64], k: int, most: int, dims: tuple[int, ...]
) -> NDArray[np.int64]:
    """Form groups until a quarter of the records is left, and go on with these alone.

    As soon as they are `most` or fewer, they are scanned in single precision.
    """
    exact, total = exact_count(points), _total(points)
    labels = np.empty(len(points), np.int64)
    left, some, label = np.arange(len(points)), points, 0
    while len(left) >= 2 * k:
        found = np.full(len(left), -1)
        if len(left) <= most:
            label, precise = _group_narrow(some, k, total, exact, label, found)
            most *= precise
        else:
            label = _group_some(dims, some, k, total, exact, label, found)
        labels[left] = found
        left = left[found < 0]
        some = points[left]
    labels[left] = label
    return labels


def mdav_brute(
    points: NDArray[np.float64], k: int, nominal: Nominal | None = None
) -> NDArray[np.int64]:
    """Group records by MDAV, scanning what is left for every question: O(n^2 d / k).

    Parameters, result and rule are those of :func:`mdav`.
    """
    return _mdav_brute(points, no_nominal(len(points)) if nominal is None else nominal, k)


@jit
def _mdav_brute(points, nominal, k):
    n, d = points.shape
    labels = np.empty(n, np.int64)
    # One array a dimension, so that the compiler turns the distance loops into vector code.
    # Records that are left stay in front; a removed one is overwritten by the last.
    live = np.ascontiguousarray(points.T)
    codes = nominal.codes.copy()
    counts = count_categories(nominal)
    ids = np.arange(n)
    left = n
    exact = exact_count(points)
    total = _total(points)
    distance = np.empty(n)
    group_distance = np.empty(k)
    group_id = np.empty(k, np.int64)
    place = np.arange(n)
    query = np.empty(d)
    label = 0
    while left >= 2 * k:
        pair = left >= 3 * k
        scale = centroid(total, left, exact, query)
        if scale == 1.0:
            distances_to(live, left, query, distance)
        else:
            scaled_distances_to(live, left, query, scale, distance)
        table = distances_by_category(counts, nominal.weight, scale)
        add_by_category(codes, left, table, distance)
        seed = farthest_scanned(distance, ids, left)
        for turn in range(2 if pair else 1):
            if turn == 1:
                # The distances to the first seed are still there, and moved with the records.
                seed = farthest_scanned(distance, ids, left)
            for j in range(d):
                query[j] = points[seed, j]
            distances_to(live, left, query, distance)
            add_mismatches(codes, left, nominal.codes[:, seed], nominal.weight, distance)
            distance[place[seed]] = -1.0
            nearest_scanned(distance, ids, left, k, group_distance, group_id)
            for g in range(k):
                row = group_id[g]
                labels[row] = label
                for j in range(d):
                    total[j] -= points[row, j]
                for j in range(len(codes)):
                    counts[j, nominal.codes[j, row]] -= 1
                left -= 1
                hole = place[row]
                for j in range(d):
                    live[j, hole] = live[j, left]
                for j in range(len(codes)):
                    codes[j, hole] = codes[j, left]
                distance[hole] = distance[left]
                ids[hole] = ids[left]
                place[ids[left]] = hole
            label += 1
    for i in range(left):
        labels[ids[i]] = label
    return labels


@jit
def _total(points):
    """Add up records, in row order."""
    n, d = points.shape
    total = np.zeros(d)
    for i in range(n):
        for j in range(d):
            total[j] += points[i, j]
    return total


@jit
def _group_narrow(points, k, total, exact, label, labels):
    """Form all groups of k but the last, by a scan in single precision; return the next label.

    Subtracts those in groups from their total, and writes the labels of these, where -1 was. The
    second number is whether that was precise enough. If not, fewer groups were formed.
    """
    rows = np.arange(len(points))
    some = points
    precise = True
    while precise and len(rows) >= 2 * k:
        narrow = new_narrow(some, k)
        if not has_room(narrow):
            return label, False
        found = np.full(len(rows), -1)
        label, precise = _group_scanned(
            narrow,
            k,
            total,
            exact,
            label,
            found,
            np.empty(k),
            np.empty(k, np.int64),
            np.empty(points.shape[1]),
        )
        left = 0
        for i in range(len(rows)):
            if found[i] >= 0:
                labels[rows[i]] = found[i]
            else:
                rows[left] = rows[i]
                left += 1
        rows = rows[:left]
        some = points[rows]
    return label, precise


@jit_part
def _group_scanned(narrow, k, total, exact, label, labels, group_distance, group_id, query):
    """Form groups until a quarter of the records is left, or too few, or too many in doubt."""
    points = narrow.points
    n, d = points.shape
    left = n
    doubts = 0
    while left >= max(2 * k, n // _SHRINK):
        if doubts > _DOUBTS * n:
            return label, False
        pair = left >= 3 * k
        scale = centroid(total, left, exact, query)
        seed, more = outermost_narrow(narrow, query, scale, left)
        doubts += more
        for turn in range(2 if pair else 1):
            if turn == 1:
                seed, more = farthest_narrow(narrow, seed, left)
                doubts += more
            doubts += nearest_narrow(narrow, seed, k, left, group_distance, group_id)
            for g in range(k):
                row = group_id[g]
                labels[row] = label
                for j in range(d):
                    total[j] -= points[row, j]
                left -= 1
                remove_from_narrow(narrow, row, left)
            label += 1
    return label, True


@jit
def _group_some(dims, points, k, total, exact, label, labels):
    """Form groups until a quarter of the records is left, or too few; return the next label.

    Subtracts those in groups from their total, and writes the labels of these, where -1 was.
    """
    n, d = points.shape
    return _group_in_tree(
        dims,
        build_tree(points, dims),
        new_outermost(n, d),
        points,
        k,
        total,
        exact,
        label,
        labels,
        np.empty(k),
        np.empty(k, np.int64),
        np.empty(d),
    )


@jit_part
def _group_in_tree(
    dims,
    tree,
    heap,
    points,
    k,
    total,
    exact,
    label,
    labels,
    group_distance,
    group_id,
    query,
):
    n, d = points.shape
    left = n
    while left >= max(2 * k, n // _SHRINK):
        pair = left >= 3 * k
        scale = centroid(total, left, exact, query)
        seed = farthest_from_centroid(heap, points, labels, left, query, scale)
        for turn in range(2 if pair else 1):
            if turn == 1:
                seed = farthest_in_tree(dims, tree, query)
            for j in range(d):
                query[j] = points[seed, j]
            nearest_in_tree(dims, tree, query, seed, k, group_distance, group_id)
            for g in range(k):
                row = group_id[g]
                labels[row] = label
                for j in range(d):
                    total[j] -= points[row, j]
                remove_from_tree(dims, tree, row)
            left -= k
            label += 1
    return label
