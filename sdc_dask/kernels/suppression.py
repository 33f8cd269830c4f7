"""Which cells to suppress so that every combination of values that is left has k records.

It is decided on the different combinations of a table, by their codes and counts, not on records.
A *pattern* is a set of columns, as bits of an integer, whose cells become missing; a missing cell
is a value like any other, with the code -1.

Suppressing a pattern in rare combinations makes those equal that agree in the other columns. Where
they are together fewer than k, some records of a frequent combination, which agrees with them
there too and keeps k records, can be suppressed with them. The heuristic goes through both by
their price for each rare record, the cheapest first, and improves what it has at the end.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MOST_PATTERNS = 512  # that are tried, if there are more columns than nine
_LARGEST = 2**62


@dataclass(frozen=True)
class Suppressions:
    """Shares of combinations, and the pattern that is suppressed in each.

    A combination is suppressed as a whole or, if it is frequent, in some of its records. Records
    of one combination are equal, so that it does not matter in which.

    Attributes
    ----------
    combination : ndarray of int64
        Each is there once for every pattern that it has.
    pattern : ndarray of int64
        Columns that become missing, as bits; 0 if none does.
    records : ndarray of int64
        Add up to the records of the combination.
    """

    combination: NDArray[np.int64]
    pattern: NDArray[np.int64]
    records: NDArray[np.int64]


def decide(
    codes: NDArray[np.int64], counts: NDArray[np.int64], k: int, costs: Sequence[float]
) -> Suppressions:
    """Choose suppressions after which every combination has k records at least.

    Parameters
    ----------
    codes : ndarray of int64, shape (combinations, columns)
        Different rows, with -1 for a missing cell.
    counts : ndarray of int64
        Records of each combination, together k at least.
    k : int
    costs : sequence of float
        Of one suppressed cell, by column. Of equal ones, that of a later column is suppressed.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 1], [1, 1]])
    >>> found = decide(codes, np.array([5, 1, 1]), 2, [1.0, 1.0])
    >>> for each in zip(found.combination, found.pattern, found.records):
    ...     print(*map(int, each))
    0 0 5
    1 1 1
    2 1 1
    """
    table = _Table(codes, counts, k, patterns_of(costs))
    table.assign()
    table.extend()
    table.improve()
    return table.result()


def decide_matching(
    codes: NDArray[np.int64], counts: NDArray[np.int64], k: int, costs: Sequence[float]
) -> Suppressions:
    """Choose suppressions after which every record may be one of k, if missing cells match any.

    Parameters are those of :func:`decide`. Suppressing a cell makes no record match fewer others,
    so that patterns are tried once, the cheapest first.

    Examples
    --------
    >>> codes = np.array([[0, 0], [0, 1], [1, 1]])
    >>> decide_matching(codes, np.array([5, 1, 1]), 2, [1.0, 1.0]).pattern.tolist()
    [0, 2, 1]
    """
    now, pattern = codes.copy(), np.zeros(len(codes), np.int64)
    rest = np.arange(len(codes))
    for each, _ in patterns_of(costs):
        have = count_matches(codes[rest], now, counts)
        rest, have = rest[have < k], have[have < k]
        if not len(rest):
            break
        tried = _without(codes[rest], each)
        helped = np.flatnonzero(count_matches(tried, now, counts) >= k)
        # Those that are suppressed match the others of their group, which may be enough for these.
        group = row_numbers(tried[helped])
        more = np.zeros(len(helped), np.int64)
        for at in np.lexsort((helped, have[helped], group)).tolist():
            one = int(helped[at])
            if have[one] + more[group[at]] < k:
                more[group[at]] += counts[rest[one]]
                now[rest[one]] = tried[one]
                pattern[rest[one]] = each
        rest = rest[pattern[rest] == 0]
    return Suppressions(np.arange(len(codes)), pattern, counts.copy())


def count_matches(
    rows: NDArray[np.int64], codes: NDArray[np.int64], counts: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Count the records that each row may be, where missing cells of both match any value."""
    found = np.zeros(len(rows), np.int64)
    for ours, some in _by_missing(rows):
        for theirs, others in _by_missing(codes):
            shared = np.flatnonzero(~ours & ~theirs)
            number = row_numbers(
                np.vstack([rows[np.ix_(some, shared)], codes[np.ix_(others, shared)]])
            )
            own, other = number[: len(some)], number[len(some) :]
            size = int(number.max(initial=0)) + 1
            records = np.bincount(other, weights=counts[others], minlength=size)
            found[some] += records[own].astype(np.int64)
    return found


def _by_missing(
    codes: NDArray[np.int64],
) -> list[tuple[NDArray[np.bool_], NDArray[np.int64]]]:
    """Return each set of missing columns, and the rows that have it."""
    missing = codes == -1
    number = row_numbers(missing.astype(np.int64))
    return [
        (missing[at[0]], at)
        for each in range(int(number.max(initial=-1)) + 1)
        if len(at := np.flatnonzero(number == each))
    ]


def patterns_of(costs: Sequence[float]) -> list[tuple[int, float]]:
    """Return patterns and their costs, the cheapest first; of many, so many and the last columns.

    Examples
    --------
    >>> patterns_of([1.0, 1.0])
    [(2, 1.0), (1, 1.0), (3, 2.0)]
    """
    width = len(costs)
    found: set[int] = {_bits(range(j, width)) for j in range(width)}
    for size in range(1, width + 1):
        # Patterns of the last columns come first, and are preferred among equals.
        for columns in itertools.combinations(reversed(range(width)), size):
            if len(found) >= MOST_PATTERNS:
                break
            found.add(_bits(columns))

    def cost(pattern: int) -> float:
        return float(sum(costs[j] for j in range(width) if pattern >> j & 1))

    return sorted(((each, cost(each)) for each in found), key=lambda pair: (pair[1], -pair[0]))


def _bits(columns: Sequence[int] | range) -> int:
    return sum(1 << j for j in columns)


def suppressed(codes: NDArray[np.int64], patterns: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return codes after the suppression of a pattern in each row."""
    width = codes.shape[1]
    gone = (patterns[:, None] >> np.arange(width)) & 1
    return np.where(gone == 1, -1, codes)


def row_numbers(codes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a number for every row, equal for equal rows, from 0 without gaps."""
    number, bound = np.zeros(len(codes), np.int64), 1
    for j in range(codes.shape[1]):
        size = int(codes[:, j].max(initial=-1)) + 2
        if bound * size > _LARGEST:
            number = np.unique(number, return_inverse=True)[1]
            bound = len(codes)
        number = number * size + codes[:, j] + 1
        bound *= size
    return np.unique(number, return_inverse=True)[1].reshape(-1)


class _Table:
    """Combinations, and what was decided about them so far."""

    def __init__(
        self,
        codes: NDArray[np.int64],
        counts: NDArray[np.int64],
        k: int,
        patterns: list[tuple[int, float]],
    ) -> None:
        self.codes, self.counts, self.k, self.patterns = codes, counts, k, patterns
        self.cost = dict(patterns) | {0: 0.0}
        self.kept = counts.copy()  # records without suppression
        self.pattern = np.zeros(len(counts), np.int64)  # of combinations that are rare
        self.rest = np.flatnonzero(counts < k)
        self.lent: dict[tuple[int, int], int] = {}  # by frequent combination and pattern

    def assign(self) -> None:
        """Go through patterns by their price for a rare record, as long as there are some."""
        k = self.k
        prices = [
            (cost * k / together, cost, place, together)
            for place, (_, cost) in enumerate(self.patterns)
            for together in range(k, 0, -1)
        ]
        for _, _, place, together in sorted(prices, key=lambda each: each[:3]):
            if not len(self.rest):
                return
            pattern = self.patterns[place][0]
            if together == k:
                self._merge(pattern)
            else:
                self._borrow(pattern, together)

    def _merge(self, pattern: int) -> None:
        """Suppress a pattern in rare combinations that become k records by it."""
        rest, classes = self.rest, self._classes(pattern)
        rows = np.vstack([_without(self.codes[rest], pattern), classes])
        number = row_numbers(rows)
        records = np.concatenate([self.counts[rest], np.full(len(classes), self.k)])
        together = np.bincount(number, weights=records)
        self._settle(together[number[: len(rest)]] >= self.k, pattern)

    def _classes(self, pattern: int) -> NDArray[np.int64]:
        """Return the rows that have k records already, and no cells in a pattern."""
        settled = self.pattern != 0
        rows = np.vstack(
            [
                self.codes[self.kept >= self.k],
                suppressed(self.codes[settled], self.pattern[settled]),
            ]
        )
        return rows[(rows == _without(rows, pattern)).all(axis=1)]

    def _borrow(self, pattern: int, fewest: int) -> None:
        """Suppress a pattern in rare combinations, and in as many records of frequent ones."""
        rest = self.rest
        rare = _without(self.codes[rest], pattern)
        number = row_numbers(rare)
        records = np.bincount(number, weights=self.counts[rest]).astype(np.int64)
        wanting = records >= fewest
        if not wanting.any():
            return
        lenders = np.flatnonzero(self.kept > self.k)
        number = row_numbers(np.vstack([rare, _without(self.codes[lenders], pattern)]))
        size = int(number.max()) + 1
        own, theirs = number[: len(rest)], number[len(rest) :]
        records = np.bincount(own, weights=self.counts[rest], minlength=size).astype(np.int64)
        spare = np.bincount(theirs, weights=self.kept[lenders] - self.k, minlength=size)
        served = (records >= fewest) & (records + spare >= self.k)
        self._lend(pattern, lenders, theirs, np.where(served, self.k - records, 0))
        self._settle(served[own], pattern)

    def _lend(
        self,
        pattern: int,
        lenders: NDArray[np.int64],
        number: NDArray[np.int64],
        needed: NDArray[np.int64],
    ) -> None:
        """Take so many records for each number from frequent combinations, the largest first."""
        some = needed[number] > 0
        lenders, number = lenders[some], number[some]
        order = np.lexsort((lenders, -self.kept[lenders], number))
        lenders, number = lenders[order], number[order]
        for lender, which in zip(lenders.tolist(), number.tolist(), strict=True):
            taken = min(int(self.kept[lender]) - self.k, int(needed[which]))
            if taken > 0:
                self.kept[lender] -= taken
                needed[which] -= taken
                self.lent[lender, pattern] = self.lent.get((lender, pattern), 0) + taken

    def _settle(self, done: NDArray[np.bool_], pattern: int) -> None:
        self.pattern[self.rest[done]] = pattern
        self.kept[self.rest[done]] = 0
        self.rest = self.rest[~done]

    def extend(self) -> None:
        """Suppress all cells of what is left, and of the smallest classes until they are k."""
        if not len(self.rest):
            return
        everything = _bits(range(self.codes.shape[1]))
        self._settle(np.ones(len(self.rest), bool), everything)
        found = self.result()
        rows = suppressed(self.codes[found.combination], found.pattern)
        number = row_numbers(rows)
        sizes = np.bincount(number, weights=found.records).astype(np.int64)
        gone = number[np.flatnonzero((rows == -1).all(axis=1))[0]]
        left = int(sizes[gone])
        for which in np.argsort(sizes, kind="stable").tolist():
            if left >= self.k:
                return
            if which == gone:
                continue
            left += int(sizes[which])
            for share in np.flatnonzero(number == which).tolist():
                self._suppress_all(found, share, everything)

    def _suppress_all(self, found: Suppressions, share: int, everything: int) -> None:
        combination, pattern = int(found.combination[share]), int(found.pattern[share])
        if self.counts[combination] < self.k:
            self.pattern[combination] = everything
            return
        records = int(found.records[share])
        if pattern == 0:
            self.kept[combination] -= records
        else:
            del self.lent[combination, pattern]
        key = (combination, everything)
        self.lent[key] = self.lent.get(key, 0) + records

    def improve(self) -> None:
        """Join cheaper classes that came later, and give records back that are not needed."""
        shares = self.result()
        rows = suppressed(self.codes[shares.combination], shares.pattern)
        number = row_numbers(rows)
        sizes = np.bincount(number, weights=shares.records).astype(np.int64)
        rare = np.flatnonzero((shares.pattern != 0) & (self.counts[shares.combination] < self.k))
        cost = np.array([self.cost[each] for each in shares.pattern[rare].tolist()])
        # The first row of each class stands for it.
        first = np.unique(number, return_index=True)[1]
        for pattern, cheaper in self.patterns:
            tried = rare[cost > cheaper]
            if not len(tried):
                continue
            goal = row_numbers(
                np.vstack([_without(self.codes[shares.combination[tried]], pattern), rows[first]])
            )
            class_of = np.full(int(goal.max()) + 1, -1, np.int64)
            class_of[goal[len(tried) :]] = np.arange(len(first))
            for share, new in zip(
                tried.tolist(), class_of[goal[: len(tried)]].tolist(), strict=True
            ):
                old, records = int(number[share]), int(shares.records[share])
                stays = sizes[old] - records
                if new < 0 or new == old or sizes[new] < self.k or 0 < stays < self.k:
                    continue
                sizes[old] -= records
                sizes[new] += records
                number[share] = new
                self.pattern[shares.combination[share]] = pattern
            moved = self.pattern[shares.combination[rare]]
            cost = np.array([self.cost[each] for each in moved.tolist()])
        self._give_back(shares, number, sizes)

    def _give_back(
        self, shares: Suppressions, number: NDArray[np.int64], sizes: NDArray[np.int64]
    ) -> None:
        """Return records to frequent combinations where a class has more than k."""
        each = zip(shares.combination.tolist(), shares.pattern.tolist(), number, strict=True)
        for combination, pattern, which in each:
            lent = self.lent.get((combination, pattern), 0)
            spare = min(lent, int(sizes[which]) - self.k)
            if pattern == 0 or spare <= 0 or self.kept[combination] == 0:
                continue
            self.lent[combination, pattern] -= spare
            self.kept[combination] += spare
            sizes[which] -= spare

    def result(self) -> Suppressions:
        """Return what was decided."""
        whole = np.flatnonzero((self.kept > 0) | (self.pattern != 0))
        shares = [
            (combination, int(self.pattern[combination]), int(self.kept[combination]))
            if self.pattern[combination] == 0
            else (combination, int(self.pattern[combination]), int(self.counts[combination]))
            for combination in whole.tolist()
        ]
        shares += [(*key, records) for key, records in self.lent.items() if records]
        table = np.array(sorted(shares), np.int64).reshape(-1, 3)
        return Suppressions(table[:, 0], table[:, 1], table[:, 2])


def _without(codes: NDArray[np.int64], pattern: int) -> NDArray[np.int64]:
    """Return codes after the suppression of one pattern in all rows."""
    gone = [j for j in range(codes.shape[1]) if pattern >> j & 1]
    rows = codes.copy()
    rows[:, gone] = -1
    return rows
