"""Groups that lose less: records change places between neighbouring groups, many times.

It is simulated annealing by threshold accepting: a change that makes the sum of squared errors
larger is accepted if it does so by less than a threshold, which falls to zero. Records move to a
group near them, or change places with a record of it; groups are dissolved into others, and new
ones form around a record. No group is ever below k.

G. Dueck and T. Scheuer, "Threshold accepting: a general purpose optimization algorithm appearing
superior to simulated annealing", Journal of Computational Physics 90(1):161-175, 1990.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels._jit import jit, jit_part
from sdc_dask.kernels.classes import mix
from sdc_dask.kernels.kd_tree import build_kd_tree, unrolled, width
from sdc_dask.kernels.nearest import nearest_slots

FEW = 20_000  # records for which more is done than they ask for
_LEAF_SIZE = 8
_NEIGHBOURS = 10  # records whose groups one may join
_LEAVES = 300  # that are searched for them: which are nearest exactly does not matter
_EVERY = 25  # records between attempts to dissolve a group or to form one
_COLD = 3  # sweeps in the end that accept nothing that loses


class Cycle(NamedTuple):
    """How a threshold falls to zero.

    Attributes
    ----------
    sweeps : int
        How often every record is tried in another group.
    warmth : float
        The threshold in the beginning, in units of what a record loses.
    evenly : bool
        Whether that is what records lose on average, and not each in the best group that it can
        hope for, or eight times the average if that is less. The former moves more where records
        are dense, the latter where they are not; few records far out are left where they are.
    """

    sweeps: int
    warmth: float
    evenly: bool


class Groups(NamedTuple):
    """Records in groups, of which some may be empty."""

    points: NDArray[np.float64]
    label: NDArray[np.int64]  # by record
    place: NDArray[np.int64]  # by record: among the members of its group
    member: NDArray[np.int64]  # by group and place
    size: NDArray[np.int64]  # by group
    centre: NDArray[np.float64]  # by group


def refine(
    points: NDArray[np.float64],
    labels: NDArray[np.int64],
    k: int,
    cycles: Sequence[Cycle],
    *,
    surely: bool = True,
) -> NDArray[np.int64]:
    """Return groups of at least k records with a smaller sum of squared errors.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Coordinates in which distances are Euclidean. Finite.
    labels : ndarray of int64, shape (n,)
        The group of every record, numbered from 0; groups have k to 2k - 1 records.
    k : int
        Smallest group.
    cycles : sequence of Cycle
        One after the other, each from the best groups so far. Time grows with their sweeps, and
        loss falls.
    surely : bool
        Whether one more cycle follows if none has found groups that lose less. It accepts nothing
        that loses, finds less, and takes as long as the first.

    Returns
    -------
    ndarray of int64, shape (n,)
        The group of every record, numbered by their first records; those that were given if none
        were found that lose less.

    Notes
    -----
    What chance decides is drawn from a fixed seed, with whole numbers, and the rest is arithmetic
    that rounds everywhere alike: the result is the same on every machine. The time of a sweep grows
    with the number of records, and memory too.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0]])
    >>> refine(points, np.array([0, 0, 1, 1, 1, 2, 2]), k=2, cycles=[Cycle(100, 4.0, False)])
    array([0, 0, 0, 1, 1, 2, 2])
    """
    n, d = points.shape
    if n < 2 * k:
        return labels
    if np.bincount(labels).max() >= 2 * k:
        raise SdcRuntimeError(f"a group has more than 2k - 1 = {2 * k - 1} records.")
    tree = build_kd_tree(points, np.ones(d), _LEAF_SIZE)
    # A few more than a group has are enough, and twice as many find more, for more time.
    wanted = 2 * k if n <= FEW else 5 * k // 4
    count = min(max(_NEIGHBOURS, wanted), n - 1)
    near, squares = nearest_slots(tree, count, most=_LEAVES + count)
    dims = unrolled(d, n, most=5)
    best = labels[tree.rows]
    least = loss = loss_of(tree.points, best)
    mean = np.full(n, loss / n)
    hoped = np.minimum(squares[:, : k - 1].sum(axis=1) / (2 * k), 8 * mean)
    cold = Cycle(cycles[0].sweeps, 0.0, True)
    for number, cycle in enumerate([*cycles, cold] if surely else cycles):
        if cycle is cold and least < loss:
            break
        threshold = (mean if cycle.evenly else hoped) * cycle.warmth
        found = _annealed(
            dims, tree.points, best, near, threshold, k, cycle.sweeps, np.uint64(number)
        )
        now = loss_of(tree.points, found)
        if now < least:
            best, least = found, now
    if not least < loss:
        return labels
    if np.bincount(best)[best].min() < k:
        raise SdcRuntimeError(f"a group has fewer than k={k} records.")
    by_row = np.empty_like(labels)
    by_row[tree.rows] = best
    return by_first_record(by_row)


def by_first_record(labels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return groups numbered from 0, in the order of their first records.

    Examples
    --------
    >>> by_first_record(np.array([7, 7, 2, 9, 2, 7]))
    array([0, 0, 1, 2, 1, 0])
    """
    _, first, number_of = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[number_of]


@jit
def loss_of(points, label):
    """Return the sum of squared distances to the means of groups."""
    n, d = points.shape
    groups = label.max() + 1
    size = np.zeros(groups)
    mean = np.zeros((groups, d))
    for i in range(n):
        size[label[i]] += 1
        for j in range(d):
            mean[label[i], j] += points[i, j]
    loss = 0.0
    for i in range(n):
        for j in range(d):
            gap = points[i, j] - mean[label[i], j] / size[label[i]]
            loss += gap * gap
    return loss


@jit
def _annealed(dims, points, given, near, threshold, k, sweeps, seed):
    n, d = points.shape
    most = n // k
    groups = Groups(
        points,
        given.copy(),
        np.empty(n, np.int64),
        np.empty((most, 2 * k), np.int64),
        np.zeros(most, np.int64),
        np.zeros((most, d)),
    )
    for i in range(n):
        _add(dims, groups, i, given[i])
    empty = np.empty(most, np.int64)
    empties = 0
    for g in range(most - 1, -1, -1):
        if groups.size[g] == 0:
            empty[empties] = g
            empties += 1
    moved = np.empty(2 * k, np.int64)
    source = np.empty(2 * k, np.int64)
    random = np.full(1, seed)
    _sweep(dims, groups, empty, empties, near, threshold, k, sweeps, random, moved, source)
    return groups.label


@jit_part
def _sweep(dims, groups, empty, empties, near, threshold, k, sweeps, random, moved, source):
    """Try every record in other groups, many times; the first numbers of `empty` have none."""
    n = len(groups.label)
    choice = min(_NEIGHBOURS, near.shape[1])
    turn = 0
    for sweep in range(sweeps + _COLD):
        left = max(0.0, 1.0 - sweep / sweeps)
        for step in range(n):
            x = step if sweep % 2 == 0 else n - 1 - step
            chance = draw(random)
            limit = threshold[x] * left * left * _share(chance)
            turn += 1
            if turn == _EVERY:
                turn = 0
                if chance & np.uint64(1):
                    gone = groups.label[x]
                    if _dissolve(dims, groups, gone, near, limit, moved):
                        empty[empties] = gone
                        empties += 1
                elif empties > 0 and _form(
                    dims, groups, x, empty[empties - 1], near, k, limit, moved, source
                ):
                    empties -= 1
                continue
            to = groups.label[near[x, below(chance, 0, choice)]]
            _exchange(dims, groups, x, to, k, chance, limit)


@jit_part
def _exchange(dims, groups, x, to, k, chance, limit):
    """Move a record to a group, or let it change places with one of it, unless that loses much."""
    points = groups.points
    own = groups.label[x]
    if own == to:
        return
    size = groups.size[own]
    others = groups.size[to]
    leaves = _to_centre(dims, groups, x, own)
    enters = _to_centre(dims, groups, x, to)
    may_move = size > k and others < 2 * k - 1
    if may_move and enters * others / (others + 1) - leaves * size / (size - 1) < limit:
        _remove(dims, groups, x)
        _add(dims, groups, x, to)
        return
    z = groups.member[to, below(chance, 16, others)]
    between = 0.0
    for j in range(width(dims, points)):
        gap = points[z, j] - points[x, j]
        between += gap * gap
    lost = enters - leaves - between * (1.0 / size + 1.0 / others)
    lost += _to_centre(dims, groups, z, own) - _to_centre(dims, groups, z, to)
    if lost < limit:
        groups.member[own, groups.place[x]] = z
        groups.member[to, groups.place[z]] = x
        groups.place[x], groups.place[z] = groups.place[z], groups.place[x]
        groups.label[x], groups.label[z] = to, own
        for j in range(width(dims, points)):
            gap = points[z, j] - points[x, j]
            groups.centre[own, j] += gap / size
            groups.centre[to, j] -= gap / others


@jit_part
def _dissolve(dims, groups, gone, near, limit, moved):
    """Give the records of a group to groups near them, unless that loses much."""
    most = groups.member.shape[1] - 1
    count = groups.size[gone]
    lost = 0.0
    done = 0
    while done < count:
        x = groups.member[gone, 0]
        size = groups.size[gone]
        best = -1
        least = np.inf
        for i in range(near.shape[1]):
            to = groups.label[near[x, i]]
            if to != gone and to != best and groups.size[to] < most:
                enters = _to_centre(dims, groups, x, to)
                enters *= groups.size[to] / (groups.size[to] + 1)
                if enters < least:
                    least = enters
                    best = to
        if best < 0:
            break
        if size > 1:
            lost -= _to_centre(dims, groups, x, gone) * size / (size - 1)
        lost += least
        _remove(dims, groups, x)
        _add(dims, groups, x, best)
        moved[done] = x
        done += 1
    if done == count and lost < limit:
        return True
    for i in range(done - 1, -1, -1):
        _remove(dims, groups, moved[i])
        _add(dims, groups, moved[i], gone)
    return False


@jit_part
def _form(dims, groups, x, new, near, k, limit, moved, source):
    """Form a group of a record and the nearest that others can spare, unless that loses much."""
    lost = 0.0
    done = 0
    for i in range(-1, near.shape[1]):
        record = x if i < 0 else near[x, i]
        own = groups.label[record]
        size = groups.size[own]
        if own == new or size <= k:
            if i < 0:
                return False
            continue
        lost -= _to_centre(dims, groups, record, own) * size / (size - 1)
        if done > 0:
            lost += _to_centre(dims, groups, record, new) * done / (done + 1)
        _remove(dims, groups, record)
        _add(dims, groups, record, new)
        moved[done] = record
        source[done] = own
        done += 1
        if done == k:
            break
    if done == k and lost < limit:
        return True
    for i in range(done - 1, -1, -1):
        _remove(dims, groups, moved[i])
        _add(dims, groups, moved[i], source[i])
    return False


@jit_part
def _to_centre(dims, groups, x, g):
    """Return the squared distance of a record to the mean of a group."""
    square = 0.0
    for j in range(width(dims, groups.points)):
        gap = groups.points[x, j] - groups.centre[g, j]
        square += gap * gap
    return square


@jit_part
def _remove(dims, groups, x):
    """Take a record out of its group."""
    g = groups.label[x]
    size = groups.size[g] - 1
    last = groups.member[g, size]
    groups.member[g, groups.place[x]] = last
    groups.place[last] = groups.place[x]
    groups.size[g] = size
    if size > 0:
        for j in range(width(dims, groups.points)):
            groups.centre[g, j] += (groups.centre[g, j] - groups.points[x, j]) / size


@jit_part
def _add(dims, groups, x, g):
    """Put a record into a group."""
    size = groups.size[g]
    groups.member[g, size] = x
    groups.place[x] = size
    groups.size[g] = size + 1
    groups.label[x] = g
    for j in range(width(dims, groups.points)):
        if size == 0:
            groups.centre[g, j] = groups.points[x, j]
        else:
            groups.centre[g, j] += (groups.points[x, j] - groups.centre[g, j]) / (size + 1)


@jit_part
def draw(random):
    """Return 64 random bits."""
    random[0] += np.uint64(0x9E3779B97F4A7C15)
    return mix(random[0])


@jit_part
def below(chance, shift, count):
    """Return a number from 0 to count - 1, by 16 of the bits from a place on."""
    bits = (chance >> np.uint64(shift)) & np.uint64(0xFFFF)
    return np.int64((bits * np.uint64(count)) >> np.uint64(16))


@jit_part
def _share(chance):
    """Return a number from 0 to 1, by the 32 highest bits."""
    return np.float64(chance >> np.uint64(32)) * 2.0**-32
