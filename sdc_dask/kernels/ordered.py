"""Groups along an order: the cheapest cuts of a sequence of records, by dynamic programming.

Sorted by one attribute, the groups of an optimal univariate microaggregation are runs of k to
2k - 1 records, and a shortest path finds them: S. Hansen, S. Mukherjee, "A polynomial algorithm for
optimal univariate microaggregation", IEEE Transactions on Knowledge and Data Engineering 15 (2003).
Any other order of multivariate records is cut in the same way if a group costs its sum of squared
distances to the centroid in all dimensions: J. Domingo-Ferrer, A. Martínez-Ballesté, J. M. Mateo-
Sanz, F. Sebé, "Efficient multivariate data-oriented microaggregation", VLDB Journal 15 (2006).

The sequence may come in pieces: :func:`extend` takes up where it was left, and gives the same
choices to the bit wherever the sequence is torn.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

# Costs are counted from the cheapest path so far, anew after so many records: a group that is
# far more expensive than all later ones must not swallow the differences between these.
REBASE = 256


def ordered(points: NDArray[np.float64], projection: NDArray[np.float64], k: int) -> NDArray:
    """Group records along the order of their projections.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d)
        Coordinates of the records, in row order; n is at least k.
    projection : ndarray of float64, shape (n,)
        What the records are sorted by; of equal ones the first row comes first.
    k : int
        Smallest group. The largest has 2k - 1 records.

    Returns
    -------
    ndarray of int64, shape (n,)
        The group of every record, numbered from 0 in their order.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([9.0, 1.0, 2.0, 8.0, 3.0])
    >>> ordered(x[:, None], x, 2)
    array([1, 0, 0, 1, 0])
    """
    order = stable_argsort(projection)
    _, choices = extend(np.empty((0, points.shape[1])), points[order], np.zeros(1), 0, k)
    begins = cuts(choices, len(points))
    labels = np.empty(len(points), np.int64)
    sizes = np.diff(np.append(begins, len(points)))
    labels[order] = np.repeat(np.arange(len(begins)), sizes)
    return labels


def stable_argsort(values: NDArray[np.float64]) -> NDArray[np.intp]:
    """Sort as ``argsort(kind="stable")`` does, which has no vectorized implementation."""
    order = np.argsort(values)
    ranked = values[order]
    differs = ranked[1:] != ranked[:-1]
    if differs.all():
        return order
    # Rows of equal values by number: keys of whole numbers are sorted in a tenth of the time.
    first = np.zeros(len(values), np.int64)
    np.cumsum(differs, out=first[1:])
    first *= len(values)
    order += first
    order.sort()
    order -= first
    return order


@jit
def extend(lead, points, costs, rank, k):
    """Find the cheapest last group that ends with each record of a piece of the sequence.

    Parameters
    ----------
    lead : ndarray of float64, shape (m, d)
        The records before the piece, the last 2k - 2 of them or all that there are.
    points : ndarray of float64, shape (n, d)
        The records of the piece.
    costs : ndarray of float64, shape (m + 1,)
        What the groups cost that end before each record of `lead`, and before `points`. Infinite
        if there are no such groups. A sequence begins with ``[0.0]``.
    rank : int
        How many records come before the piece.
    k : int
        Smallest group.

    Returns
    -------
    costs : ndarray of float64
        As the argument, before each of the last records of this piece, and after it.
    choices : ndarray of int32, shape (n,)
        The size of the cheapest group that ends with each record; of equally cheap ones the
        smallest. 0 if no groups of at least k end there.
    """
    m, d = lead.shape
    n = points.shape[0]
    columns = np.empty((d, m + n))
    # Cell by cell: an array that is assigned to a slice takes seconds to compile, for the text of
    # an error.
    for j in range(d):
        for i in range(m):
            columns[j, i] = lead[i, j]
        for i in range(n):
            columns[j, m + i] = points[i, j]
    cost = np.empty(m + n + 1)
    for i in range(m + 1):
        cost[i] = costs[i]
    choices = np.zeros(n, np.int32)
    if d == 1:
        _extend_one(columns[0], cost, choices, rank, k)
        return cost[max(0, m + n - (2 * k - 2)) :].copy(), choices
    # k ends of groups at a time, since the group before each is known then: the innermost loops
    # run over them side by side. Means and squares are those of Welford, which do not cancel.
    mean = np.empty((d, k))
    within = np.empty(k)
    best = np.empty(k)
    size = np.empty(k, np.int32)
    end = m + 1
    while end <= m + n:
        # No turn reaches beyond the next rebasing.
        turn = min(k, m + n + 1 - end, REBASE - (rank + end - m - 1) % REBASE)
        if (rank + end - m - 1) % REBASE == 0:
            _rebase(cost[max(0, end - (2 * k - 1)) : end])
        for e in range(turn):
            within[e] = 0.0
            best[e] = np.inf
            size[e] = 0
        for j in range(d):
            for e in range(turn):
                mean[j, e] = columns[j, end + e - 1]
        for s in range(1, 2 * k):
            begin = max(0, s - end)  # no group begins before the first record
            inverse = 1.0 / s
            for j in range(d):
                column = columns[j]
                means = mean[j]
                for e in range(begin, turn):
                    x = column[end + e - s]
                    difference = x - means[e]
                    means[e] += difference * inverse
                    within[e] += difference * (x - means[e])
            if s >= k:
                for e in range(begin, turn):
                    total = cost[end + e - s] + within[e]
                    if total < best[e]:
                        best[e] = total
                        size[e] = s
        for e in range(turn):
            cost[end + e] = best[e]
            choices[end + e - m - 1] = size[e]
        end += turn
    return cost[max(0, m + n - (2 * k - 2)) :].copy(), choices


@jit
def _extend_one(column, cost, choices, rank, k):
    """Fill in costs and choices of a single column, with the same operations in the same order.

    The squares within a group never fall as it grows, not even by rounding. If those so far, with
    the smallest cost before any larger group, are no cheaper than the best group, then no larger
    one is: most of the sizes between k and 2k - 1 need not be looked at.
    """
    m = column.shape[0] - choices.shape[0]
    last = column.shape[0]
    # Means, squares, the best cost and its size, of one end after the other. They share an array
    # with constant distances, so that the compiler sees that they do not overlap.
    state = np.empty(4 * REBASE)
    floor = np.empty(REBASE)
    end = m + 1
    while end <= last:
        # No turn reaches beyond the next rebasing.
        phase = (rank + end - m - 1) % REBASE
        turn = min(k, last + 1 - end, REBASE - phase)
        if phase == 0:
            _rebase(cost[max(0, end - (2 * k - 1)) : end])
        for e in range(turn):
            state[e] = column[end + e - 1]
            state[REBASE + e] = 0.0
            state[2 * REBASE + e] = np.inf
            state[3 * REBASE + e] = 0.0
        s = 1
        if end >= 2 * k - 1:  # the largest group of each end begins within the sequence
            if k >= REBASE and rank + end - m - phase >= 2 * k - 1:
                _begin(state, column, end - phase, phase, turn, k)
                _choose_first(state, cost, end, turn, k)
                s = k + 1
            while s + 3 < k:
                _grow(state, column[end - s - 3 : end - s + turn], turn, s)
                s += 4
            while s < k:
                _step(state, column, cost, end, 0, turn, s, k)
                s += 1
            smallest = np.inf
            for begin in range(end + turn - 1 - k, end - 2 * k, -1):
                smallest = min(smallest, cost[begin])
                if begin <= end - 2 * k + turn:
                    floor[begin - (end - 2 * k + 1)] = smallest
            while s + 3 < 2 * k and _may_fall(state, floor, turn):
                before = slice(end - s - 3, end - s + turn)
                _grow_and_choose(state, column[before], cost[before], turn, s)
                s += 4
            if s + 3 < 2 * k:
                s = 2 * k
        while s < 2 * k:
            _step(state, column, cost, end, max(0, s - end), turn, s, k)
            s += 1
        for e in range(turn):
            cost[end + e] = state[2 * REBASE + e]
            choices[end + e - m - 1] = int(state[3 * REBASE + e])
        end += turn


@jit
def _begin(state, column, first, phase, turn, k):
    """Fill in the groups of k records that end in a turn, which share most of them.

    What is shared is that of all ends from one rebasing, at `first`, to the next, so that it does
    not matter where a sequence is torn: means and squares of these records come once, then those of
    the records behind them, one after the other, and then each group gets those before them.
    """
    begin = first + REBASE - 1 - k
    mean, within = column[first - 1], 0.0
    size = 1
    for i in range(first - 2, begin - 1, -1):
        size += 1
        mean, within = _welford(mean, within, column[i], 1.0 / size)
    for e in range(phase + turn):
        if e >= phase:
            state[e - phase] = mean
            state[REBASE + e - phase] = within
        size += 1
        # The sequence may end with the turn: its last end has no record behind it.
        if e < phase + turn - 1:
            mean, within = _welford(mean, within, column[first + e], 1.0 / size)
    inverse = np.empty(REBASE)
    for i in range(REBASE):
        inverse[i] = 1.0 / (k - REBASE + 1 + i)
    for i in range(1, REBASE - phase):
        _prepend(state, column[begin - i], inverse[phase + i :], min(turn, REBASE - phase - i))


@jit
def _prepend(state, x, inverse, count):
    """Add one record to the first groups of a turn, whose sizes follow each other."""
    for e in range(min(count, REBASE)):
        mean, within = _welford(state[e], state[REBASE + e], x, inverse[e])
        state[e] = mean
        state[REBASE + e] = within


@jit
def _choose_first(state, cost, end, turn, k):
    """Take the groups of k records for the cheapest so far."""
    for e in range(turn):
        state[2 * REBASE + e] = cost[end + e - k] + state[REBASE + e]
        state[3 * REBASE + e] = float(k)


@jit
def _step(state, column, cost, end, begin, turn, s, k):
    """Add a record to the groups of a turn, the one of rank s from the end."""
    inverse = 1.0 / s
    for e in range(begin, turn):
        x = column[end + e - s]
        difference = x - state[e]
        mean = state[e] + difference * inverse
        state[e] = mean
        within = state[REBASE + e] + difference * (x - mean)
        state[REBASE + e] = within
        if s >= k:
            total = cost[end + e - s] + within
            if total < state[2 * REBASE + e]:
                state[2 * REBASE + e] = total
                state[3 * REBASE + e] = s


@jit
def _may_fall(state, floor, turn):
    """Return whether a larger group may be cheaper than the best one, for any end of a turn."""
    count = 0
    for e in range(min(turn, REBASE)):
        count += floor[e] + state[REBASE + e] < state[2 * REBASE + e]
    return count > 0


# Four records in a pass: means and squares stay in registers. `x` begins with the last of the
# four of the first end. The bound of the loops is what shows the compiler that no index is
# negative, without which it does not vectorize.


@jit
def _grow(state, x, turn, s):
    """Add four records to the groups of a turn, from that of rank s from the end."""
    a, b, c, d = 1.0 / s, 1.0 / (s + 1), 1.0 / (s + 2), 1.0 / (s + 3)
    for e in range(min(turn, REBASE)):
        mean, within = _welford(state[e], state[REBASE + e], x[e + 3], a)
        mean, within = _welford(mean, within, x[e + 2], b)
        mean, within = _welford(mean, within, x[e + 1], c)
        mean, within = _welford(mean, within, x[e], d)
        state[e] = mean
        state[REBASE + e] = within


@jit
def _grow_and_choose(state, x, cost, turn, s):
    """Add four records likewise, and keep the cheapest groups; `cost` begins where `x` does."""
    a, b, c, d = 1.0 / s, 1.0 / (s + 1), 1.0 / (s + 2), 1.0 / (s + 3)
    size = float(s)
    for e in range(min(turn, REBASE)):
        mean, within = _welford(state[e], state[REBASE + e], x[e + 3], a)
        best, chosen = state[2 * REBASE + e], state[3 * REBASE + e]
        best, chosen = _cheaper(best, chosen, cost[e + 3] + within, size)
        mean, within = _welford(mean, within, x[e + 2], b)
        best, chosen = _cheaper(best, chosen, cost[e + 2] + within, size + 1.0)
        mean, within = _welford(mean, within, x[e + 1], c)
        best, chosen = _cheaper(best, chosen, cost[e + 1] + within, size + 2.0)
        mean, within = _welford(mean, within, x[e], d)
        best, chosen = _cheaper(best, chosen, cost[e] + within, size + 3.0)
        state[e] = mean
        state[REBASE + e] = within
        state[2 * REBASE + e] = best
        state[3 * REBASE + e] = chosen


@jit
def _welford(mean, within, x, inverse):
    """Add a record to a mean and to the squares of the differences from it."""
    difference = x - mean
    mean += difference * inverse
    return mean, within + difference * (x - mean)


@jit
def _cheaper(best, chosen, total, size):
    """Return the cheaper of two groups and its size; of equally cheap ones the first."""
    less = total < best
    return (total if less else best), (size if less else chosen)


@jit
def _rebase(cost):
    """Subtract the smallest cost from all."""
    smallest = np.inf
    for i in range(cost.shape[0]):
        smallest = min(smallest, cost[i])
    if smallest < np.inf:
        for i in range(cost.shape[0]):
            cost[i] -= smallest


@jit
def cuts(choices, end):
    """Return where groups begin, walking back from one that ends before the record `end`.

    The first may begin before the piece that `choices` belongs to: it is negative then.
    """
    count = 0
    position = end
    while position > 0:
        position -= choices[position - 1]
        count += 1
    begins = np.empty(count, np.int64)
    position = end
    for group in range(count - 1, -1, -1):
        position -= choices[position - 1]
        begins[group] = position
    return begins
