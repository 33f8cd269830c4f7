"""In which columns known and masked records agree, counted over all partitions.

There are two ways. If values must be equal and masked records are many, an index of the known
records counts them without forming pairs; it is made for some known records at a time. Otherwise
all pairs are compared, once to count patterns, and once more to find the best ones, when it is
known which these are. Neither depends on how many sets of columns are asked for: what records
agree in of some columns follows from what they agree in of all.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.kernels.agreement import (
    Index,
    best_within,
    count_nodes,
    index_records,
    ordered,
    pattern_of_pairs,
    patterns_of_nodes,
    patterns_within,
)
from sdc_dask.risk.encounter import Encounter

CELLS = 2**22  # known records times patterns that are counted in one pass
_PAIRS_A_NODE = 100  # so many comparisons of a pair take the time of one node of an index

Array = NDArray[np.float64]
Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Tried:
    """The records that are tried: those that are equal are compared once."""

    records: Array  # all different
    reach: Array  # how far a value may be from each of their values
    record: Integers  # which of them each row that is tried is
    own: Integers  # the pattern of each row with its own masked version

    @property
    def times(self) -> Integers:
        """How many rows each record is."""
        return np.bincount(self.record, minlength=len(self.records))


class Patterns(Protocol):
    """Counts of the pairs of all rows that are tried with all masked records, by pattern."""

    def total(self) -> Integers:
        """Return the number of pairs by pattern."""

    def best(self, ranks: NDArray[np.int32]) -> tuple[NDArray[np.int32], Integers]:
        """Return the best rank of each row, and how many masked records have it.

        Ranks, and both results, have a column for every way to rank patterns.
        """


def tried_of(
    encounter: Encounter, columns: Sequence[Hashable], tolerance: float, unit: str
) -> Tried:
    """Return the records that are tried, and how far values may be apart to agree.

    Parameters
    ----------
    encounter : Encounter
    columns : sequence
    tolerance : float
    unit : {"value", "deviation"}
        What the tolerance is a share of: each original value, or the deviation of its column.
    """
    places = encounter.places(columns)
    old, new = (np.ascontiguousarray(values[:, places]) + 0.0 for values in encounter.drawn)
    deviations = [encounter.before.columns[column].sums.deviation or 1.0 for column in columns]
    scale = np.abs(old) if unit == "value" else np.broadcast_to(deviations, old.shape)
    with np.errstate(over="ignore"):
        reach = tolerance * scale
    table = pd.DataFrame(old)
    record = table.groupby(list(table.columns), sort=False).ngroup().to_numpy(np.int64)
    first = ~table.duplicated().to_numpy()
    return Tried(
        np.ascontiguousarray(old[first]),
        np.ascontiguousarray(reach[first]),
        record,
        pattern_of_pairs(old, new, reach),
    )


def count_patterns(
    encounter: Encounter, columns: Sequence[Hashable], tried: Tried, *, equal: bool
) -> Patterns:
    """Count patterns in the way that is faster; `equal` says whether values must be equal."""
    masked = encounter.masked[list(columns)]
    if equal and encounter.n >= _PAIRS_A_NODE * 2 ** len(columns):
        return _indexed(masked, list(columns), tried)
    return _Compared(masked, list(columns), tried)


# All pairs


@dataclass(frozen=True)
class _Compared:
    masked: Frame
    columns: list[Hashable]
    tried: Tried

    def total(self) -> Integers:
        known = self.tried
        return map_reduce(
            self.masked, _count, _add, self.columns, known.records, known.reach, known.times
        )

    def best(self, ranks: NDArray[np.int32]) -> tuple[NDArray[np.int32], Integers]:
        known = self.tried
        best, ties = map_reduce(
            self.masked, _find, _better, self.columns, known.records, known.reach, ranks
        )
        return best[known.record], ties[known.record]


def _count(
    part: pd.DataFrame,
    _number: int,
    columns: list[Hashable],
    records: Array,
    reach: Array,
    times: Integers,
) -> Integers:
    return patterns_within(records, reach, times, ordered(to_float(part, columns)))


def _add(parts: list[Integers]) -> Integers:
    return np.sum(parts, axis=0)


_Best = tuple[NDArray[np.int32], Integers]


def _find(
    part: pd.DataFrame,
    _number: int,
    columns: list[Hashable],
    records: Array,
    reach: Array,
    ranks: NDArray[np.int32],
) -> _Best:
    return best_within(records, reach, ordered(to_float(part, columns)), ranks)


def _better(parts: list[_Best]) -> _Best:
    best = np.min([each for each, _ in parts], axis=0)
    return best, np.sum([np.where(each == best, ties, 0) for each, ties in parts], axis=0)


# An index of known records


@dataclass(frozen=True)
class _Indexed:
    """The patterns that occur with known record r are those from begin[r] to begin[r + 1]."""

    tried: Tried
    begin: Integers
    patterns: Integers
    counts: Integers

    def total(self) -> Integers:
        times = np.repeat(self.tried.times, np.diff(self.begin))
        total = np.zeros(2 ** self.tried.records.shape[1], np.int64)
        np.add.at(total, self.patterns, self.counts * times)
        return total

    def best(self, ranks: NDArray[np.int32]) -> tuple[NDArray[np.int32], Integers]:
        rank = ranks[self.patterns]
        best = np.minimum.reduceat(rank, self.begin[:-1], axis=0)
        is_best = rank == np.repeat(best, np.diff(self.begin), axis=0)
        ties = np.add.reduceat(np.where(is_best, self.counts[:, None], 0), self.begin[:-1], axis=0)
        return best[self.tried.record], ties[self.tried.record]


def _indexed(masked: Frame, columns: list[Hashable], tried: Tried) -> _Indexed:
    """Count with an index, for as many known records in a pass as memory allows."""
    sizes, patterns, counts = [], [], []
    batch = max(1, CELLS >> len(columns))
    for begin in range(0, len(tried.records), batch):
        some = tried.records[begin : begin + batch]
        index, nodes = index_records(some)
        exact = patterns_of_nodes(nodes, map_reduce(masked, _walk, _add, columns, index))
        which, pattern = np.nonzero(exact)
        sizes.append(np.bincount(which, minlength=len(some)))
        patterns.append(pattern)
        counts.append(exact[which, pattern])
    begins = np.cumsum(np.concatenate([[0], *sizes]))
    return _Indexed(tried, begins, np.concatenate(patterns), np.concatenate(counts))


def _walk(part: pd.DataFrame, _number: int, columns: list[Hashable], index: Index) -> Integers:
    return count_nodes(index, to_float(part, columns))
