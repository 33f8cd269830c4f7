"""In which columns records agree: counted for all pairs, which EM separates.

Which columns of a pair agree is its pattern, a number with bit j set if column j agrees.

If values must be equal, no pair is formed. The masked records that agree with a known record in a
set of columns, and maybe in others, are those with the same values in it: one walk through an
index of the known records' values counts them for every known record and every set, and inclusion
and exclusion leave those that agree in no other column.

If values may be apart, pairs are compared one by one. What agrees with a known value is a range in
the order of a column, so that places in this order are compared, not values: they take two bytes
where values take eight, and one instruction compares as many times more of them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.classes import mix

SMALLEST = 1e-12  # no estimate of a probability is nearer to 0 or 1
_ROWS = 2**14  # so many masked records stay in the cache while known records pass by


class Index(NamedTuple):
    """Sets of values that known records have in sets of columns, as nodes of a tree.

    A node's parent lacks the value of its last column; node 0 is the root, the empty set.
    """

    bits: NDArray[np.int64]  # (d, slots): values of a column, a hash table each
    codes: NDArray[np.int32]  # (d, slots): numbers of these values, -1 in a free slot
    steps: NDArray[np.int64]  # parent times the number of values plus value, a hash table
    nodes: NDArray[np.int32]  # the nodes that steps lead to, -1 in a free slot
    values: int  # different values in all columns
    size: int  # nodes


def index_records(records: NDArray[np.float64]) -> tuple[Index, NDArray[np.int32]]:
    """Index records by their values in every set of columns.

    Parameters
    ----------
    records : ndarray of float64, shape (q, d)
        Known records, without NaN.

    Returns
    -------
    Index
    ndarray of int32, shape (q, 2**d)
        The node of every record for every set of columns, a number with bit j set for column j.
    """
    bits, codes, of_cells, values = _number_cells(_bits(records))
    steps, nodes, of_records, size = _grow(of_cells, values)
    return Index(bits, codes, steps, nodes, values, size), of_records


def count_nodes(index: Index, rows: NDArray[np.float64]) -> NDArray[np.int64]:
    """Count the rows that have the values of each node; NaN is no value of any."""
    return _walk(index, _bits(rows))


def _bits(values: NDArray[np.float64]) -> NDArray[np.int64]:
    # Adding 0.0 makes a negative zero positive: they are equal, and their bits are not.
    return np.ascontiguousarray(values + 0.0).view(np.int64)


@jit
def _slot(keys, numbers, key):
    """Return the slot of a key in a hash table, or the free slot where it belongs."""
    last = np.uint64(len(keys) - 1)
    slot = np.int64(mix(np.uint64(key)) & last)
    while numbers[slot] >= 0 and keys[slot] != key:
        slot = (slot + 1) & np.int64(last)
    return slot


@jit
def _number_cells(cells):
    """Give numbers to the different values of all columns."""
    q, d = cells.shape
    slots = 2
    while slots < 2 * q:
        slots *= 2
    bits = np.zeros((d, slots), np.int64)
    codes = np.full((d, slots), -1, np.int32)
    of_cells = np.empty((q, d), np.int32)
    values = 0
    for j in range(d):
        for i in range(q):
            slot = _slot(bits[j], codes[j], cells[i, j])
            if codes[j, slot] < 0:
                bits[j, slot] = cells[i, j]
                codes[j, slot] = values
                values += 1
            of_cells[i, j] = codes[j, slot]
    return bits, codes, of_cells, values


@jit
def _grow(of_cells, values):
    """Make the nodes of records, in the order of records."""
    q, d = of_cells.shape
    steps = np.zeros(1024, np.int64)
    nodes = np.full(1024, -1, np.int32)
    of_records = np.zeros((q, 1 << d), np.int32)
    size = 1
    for i in range(q):
        for j in range(d):
            for columns in range(1 << j):
                step = np.int64(of_records[i, columns]) * values + of_cells[i, j]
                slot = _slot(steps, nodes, step)
                if nodes[slot] < 0:
                    steps[slot] = step
                    nodes[slot] = size
                    size += 1
                of_records[i, columns | (1 << j)] = nodes[slot]
                if 2 * size > len(steps):
                    steps, nodes = _double(steps, nodes)
    return steps, nodes, of_records, size


@jit
def _double(steps, nodes):
    more_steps = np.zeros(2 * len(steps), np.int64)
    more_nodes = np.full(2 * len(steps), -1, np.int32)
    for slot in range(len(steps)):
        if nodes[slot] >= 0:
            place = _slot(more_steps, more_nodes, steps[slot])
            more_steps[place] = steps[slot]
            more_nodes[place] = nodes[slot]
    return more_steps, more_nodes


@jit
def _walk(index, cells):
    bits, codes, steps, nodes, values, size = index
    n, d = cells.shape
    counts = np.zeros(size, np.int64)
    reached = np.zeros(1 << d, np.int32)
    for i in range(n):
        # reached[0] is the root. Every node that was reached is left once more by each column
        # that follows, so that all sets of columns are tried, except those without a node.
        some = 1
        for j in range(d):
            slot = _slot(bits[j], codes[j], cells[i, j])
            if codes[j, slot] < 0:
                continue
            for r in range(some):
                step = np.int64(reached[r]) * values + codes[j, slot]
                node = nodes[_slot(steps, nodes, step)]
                if node >= 0:
                    reached[some] = node
                    some += 1
        for r in range(some):
            counts[reached[r]] += 1
    return counts


@jit
def patterns_of_nodes(of_records, counts):
    """Count rows by pattern for every known record.

    Parameters
    ----------
    of_records : ndarray of int32, shape (q, 2**d)
        As of :func:`index_records`.
    counts : ndarray of int64
        Rows by node: those that agree in a set of columns, and maybe in others.

    Returns
    -------
    ndarray of int64, shape (q, 2**d)
        Rows that agree in a set of columns, and in no other.
    """
    q, patterns = of_records.shape
    exact = np.empty((q, patterns), np.int64)
    for i in range(q):
        for columns in range(patterns):
            exact[i, columns] = counts[of_records[i, columns]]
        bit = 1
        while bit < patterns:
            for columns in range(patterns):
                if not columns & bit:
                    exact[i, columns] -= exact[i, columns | bit]
            bit *= 2
    return exact


class Ordered(NamedTuple):
    """Masked records in runs of some thousands, each column of a run in its own order."""

    values: NDArray[np.float64]  # (runs, d, size): ascending
    places: NDArray[np.uint16]  # (runs, d, size): by record, its place in them
    n: int


def ordered(rows: NDArray[np.float64]) -> Ordered:
    """Put the columns of records in order, for comparisons with known records."""
    n, d = rows.shape
    size = min(max(n, 1), _ROWS)
    runs = -(-n // size)
    values = np.empty((runs, d, size))
    places = np.empty((runs, d, size), np.uint16)
    for run in range(runs):
        some = rows[run * size : (run + 1) * size].T
        order = np.argsort(some, axis=1)
        values[run, :, : some.shape[1]] = np.take_along_axis(some, order, axis=1)
        for j in range(d):
            places[run, j, order[j]] = np.arange(some.shape[1])
    return Ordered(values, places, n)


@jit
def patterns_within(records, reach, times, rows):
    """Count the pairs of known and masked records by pattern.

    Parameters
    ----------
    records : ndarray of float64, shape (q, d)
        Known records, of at most 16 columns.
    reach : ndarray of float64, shape (q, d)
        Values agree if they are at most so far apart.
    times : ndarray of int64, shape (q,)
        How often every known record counts.
    rows : Ordered
        Masked records, without NaN.

    Returns
    -------
    ndarray of int64, shape (2**d,)
    """
    q, d = records.shape
    # Four tables in turn: most pairs have one and the same pattern, and would wait for each other.
    counts = np.zeros((4, 1 << d), np.int64)
    patterns = np.empty(rows.values.shape[2], np.uint16)
    for run in range(rows.values.shape[0]):
        size = min(rows.values.shape[2], rows.n - run * rows.values.shape[2])
        for i in range(q):
            _compare(records[i], reach[i], rows.values[run], rows.places[run], size, patterns)
            more = times[i]
            for row in range(0, size - 3, 4):
                counts[0, patterns[row]] += more
                counts[1, patterns[row + 1]] += more
                counts[2, patterns[row + 2]] += more
                counts[3, patterns[row + 3]] += more
            for row in range(size - size % 4, size):
                counts[0, patterns[row]] += more
    return counts.sum(axis=0)


@jit
def best_within(records, reach, rows, ranks):
    """Find the masked records whose pattern with a known record has the best rank.

    Parameters
    ----------
    records, reach, rows
        As of :func:`patterns_within`.
    ranks : ndarray of int32, shape (2**d, s)
        Of every pattern, by s ways to rank them; 0 is the best.

    Returns
    -------
    best : ndarray of int32, shape (q, s)
        The best rank of a pair with each known record.
    ties : ndarray of int64, shape (q, s)
        How many masked records have it.
    """
    q, d = records.shape
    ways = ranks.shape[1]
    best = np.full((q, ways), np.iinfo(np.int32).max, np.int32)
    ties = np.zeros((q, ways), np.int64)
    counts = np.zeros((2, 1 << d), np.int32)
    patterns = np.empty(rows.values.shape[2], np.uint16)
    for run in range(rows.values.shape[0]):
        size = min(rows.values.shape[2], rows.n - run * rows.values.shape[2])
        for i in range(q):
            _compare(records[i], reach[i], rows.values[run], rows.places[run], size, patterns)
            # Patterns are counted first if they are fewer than records.
            if size < 1 << d:
                for way in range(ways):
                    for row in range(size):
                        rank = ranks[patterns[row], way]
                        if rank < best[i, way]:
                            best[i, way] = rank
                            ties[i, way] = 0
                        ties[i, way] += rank == best[i, way]
                continue
            for row in range(0, size - 1, 2):
                counts[0, patterns[row]] += 1
                counts[1, patterns[row + 1]] += 1
            if size & 1:
                counts[0, patterns[size - 1]] += 1
            for pattern in range(1 << d):
                count = counts[0, pattern] + counts[1, pattern]
                if count == 0:
                    continue
                counts[0, pattern] = 0
                counts[1, pattern] = 0
                for way in range(ways):
                    rank = ranks[pattern, way]
                    if rank < best[i, way]:
                        best[i, way] = rank
                        ties[i, way] = 0
                    if rank == best[i, way]:
                        ties[i, way] += count
    return best, ties


@jit
def _compare(record, reach, values, places, size, patterns):
    """Write the patterns of a known record with the masked ones of a run."""
    patterns[:size] = 0
    for j in range(record.shape[0]):
        begin, end = _range(values[j, :size], record[j], reach[j])
        first, width, bit = np.uint16(begin), np.uint16(end - begin), np.uint16(1 << j)
        of_column = places[j]
        for row in range(size):
            # A place below the first one becomes a large number, of which no bit is negative.
            inside = np.uint16(of_column[row] - first) < width
            patterns[row] |= bit if inside else np.uint16(0)


@jit
def _range(values, value, reach):
    """Return where the values that agree with a value begin and end, in ascending values."""
    low, high = 0, len(values)
    while low < high:
        middle = (low + high) >> 1
        if value - values[middle] <= reach:
            high = middle
        else:
            low = middle + 1
    begin = low
    high = len(values)
    while low < high:
        middle = (low + high) >> 1
        if values[middle] - value <= reach:
            low = middle + 1
        else:
            high = middle
    return begin, low


@jit
def pattern_of_pairs(first, second, reach):
    """Return the pattern of every record of one array with that in the same row of another.

    Values agree if they are as far apart as `reach` has it for their row and column, at most.
    """
    n, d = first.shape
    patterns = np.zeros(n, np.int64)
    for i in range(n):
        for j in range(d):
            patterns[i] |= np.int64(abs(first[i, j] - second[i, j]) <= reach[i, j]) << j
    return patterns


@jit
def fit_mixture(agrees, share, m, u, prior, tolerance, steps):
    """Separate matches from other pairs by EM, columns being independent within both.

    EM is slow where classes are hard to separate. After every two steps, it leaps ahead in their
    direction (Varadhan and Roland, "Simple and globally convergent methods for accelerating the
    convergence of any EM algorithm", 2008, scheme S3), unless that would lower the likelihood.

    Parameters
    ----------
    agrees : ndarray of bool, shape (p, d)
        Patterns that occur.
    share : ndarray of float64, shape (p,)
        Of all pairs; the sum is 1.
    m, u : ndarray of float64, shape (d,)
        Start: the probability that a column agrees if a pair matches, and if it does not.
    prior : float
        Start: the probability that a pair matches.
    tolerance : float
        It ends when a step of EM changes no estimate by more: m absolutely, the prior relatively,
        and u relatively to the sum of both, for what is much rarer than matches hardly matters.
    steps : int
        It ends after so many steps of EM.

    Returns
    -------
    m, u : ndarray of float64, shape (d,)
    prior : float
    likelihood : float
        The mean log-likelihood of a pair before the last step. With more steps it never falls,
        except for rounding.
    steps : int
        How many steps were taken.
    converged : bool
    """
    d = len(m)
    here = np.concatenate((m, u, np.array([prior])))
    likelihood, there = _step(agrees, share, here)
    taken = 1
    farthest = 4.0  # leaps grow as long as they succeed
    while taken < steps and _distance(here, there) > tolerance:
        before = here
        here = there
        likelihood, there = _step(agrees, share, here)
        taken += 1
        if taken >= steps or _distance(here, there) <= tolerance:
            break
        leap, length = _leap(before, here, there, farthest)
        leap_likelihood, after_leap = _step(agrees, share, leap)
        taken += 1
        if leap_likelihood >= likelihood:
            here, there, likelihood = leap, after_leap, leap_likelihood
            if length == farthest:
                farthest *= 4
        else:
            farthest = max(1.0, length / 4)
    converged = _distance(here, there) <= tolerance
    return there[:d], there[d : 2 * d], there[2 * d], likelihood, taken, converged


@jit
def _step(agrees, share, estimates):
    """Return the likelihood of estimates (m, u, prior) and what a step of EM makes of them."""
    p, d = agrees.shape
    yes, no = np.log(estimates), np.log1p(-estimates)
    new = np.zeros(2 * d + 1)
    others = 0.0
    likelihood = 0.0
    for i in range(p):
        match = yes[2 * d]
        other = no[2 * d]
        for j in range(d):
            match += yes[j] if agrees[i, j] else no[j]
            other += yes[d + j] if agrees[i, j] else no[d + j]
        top = max(match, other)
        either = top + np.log(np.exp(match - top) + np.exp(other - top))
        likelihood += share[i] * either
        match = share[i] * np.exp(match - either)
        other = share[i] * np.exp(other - either)
        new[2 * d] += match
        others += other
        for j in range(d):
            if agrees[i, j]:
                new[j] += match
                new[d + j] += other
    for j in range(d):
        new[j] /= new[2 * d]
        new[d + j] /= others
    new[2 * d] /= new[2 * d] + others
    return likelihood, np.minimum(np.maximum(new, SMALLEST), 1 - SMALLEST)


@jit
def _distance(old, new):
    """Return the largest change of an estimate, as fit_mixture measures it."""
    d = len(old) // 2
    prior = old[2 * d]
    change = abs(new[2 * d] - prior) / prior
    for j in range(d):
        change = max(
            change, abs(new[j] - old[j]), abs(new[d + j] - old[d + j]) / (old[d + j] + prior)
        )
    return change


@jit
def _leap(first, second, third, farthest):
    """Return where two steps lead if they go on, in log-odds, which have no ends, and how far."""
    a, b, c = (
        np.log(first) - np.log1p(-first),
        np.log(second) - np.log1p(-second),
        np.log(third) - np.log1p(-third),
    )
    step = b - a
    bend = c - b - step
    bent = np.sum(bend * bend)
    length = np.sqrt(np.sum(step * step) / bent) if bent > 0 else 1.0
    length = min(max(length, 1.0), farthest)
    odds = a + 2 * length * step + length * length * bend
    return np.minimum(np.maximum(1 / (1 + np.exp(-odds)), SMALLEST), 1 - SMALLEST), length
