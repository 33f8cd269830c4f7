"""Values go from place to place in the order of their column.

The values of a column are put in order, so that each has a rank in its stratum. Which rank gets
the value of which is decided by numbers alone; then the row of the one travels to the value of the
other, and both go home.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.coded import Ends
from sdc_dask.engine.columns import is_numeric, to_float
from sdc_dask.engine.frames import Calls, Frame, Task, is_dask, map_reduce, meta_of
from sdc_dask.engine.masks import Then
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.sort import Order, Piece, arrange, is_present
from sdc_dask.engine.strata import StrataRule, merge_counts
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.borders import count_below
from sdc_dask.kernels.swaps import Sources

_AHEAD = 8  # for so many pieces, positions are drawn before these are sorted


@dataclass(frozen=True)
class PresentCounts:
    """Rows by partition, and of every column the present values by stratum, and their ends."""

    rows: tuple[int, ...]
    strata: tuple[pd.DataFrame, ...]
    ends: dict[Hashable, Ends]  # of columns of numbers

    def missing(self) -> list[int]:
        """Return the number of missing cells by column."""
        return [sum(self.rows) - int(counts["count"].sum()) for counts in self.strata]


def count_present(frame: Frame, columns: Sequence[Hashable], rule: StrataRule) -> PresentCounts:
    """Count present values, in one pass over the data."""
    needed = list(dict.fromkeys([*columns, *rule.by]))
    meta = meta_of(frame)
    numbers = [name for name in columns if is_numeric(meta[name].dtype)]
    return map_reduce(frame[needed], _count, _merge_counts, list(columns), numbers, rule)


def _count(
    part: pd.DataFrame,
    _number: int,
    columns: list[Hashable],
    numbers: list[Hashable],
    rule: StrataRule,
) -> PresentCounts:
    counts = tuple(rule.count(part[is_present(part[column])]) for column in columns)
    return PresentCounts((len(part),), counts, {name: _ends(part, name) for name in numbers})


def _ends(part: pd.DataFrame, column: Hashable) -> Ends:
    if not is_numeric(part[column].dtype):  # which is said where values are sorted
        return Ends.of(np.empty(0))
    values = to_float(part, [column])[:, 0]
    return Ends.of(values[np.isfinite(values)])


def _merge_counts(parts: list[PresentCounts]) -> PresentCounts:
    ends = dict(parts[0].ends)
    for part in parts[1:]:
        for name, each in part.ends.items():
            ends[name] += each
    return PresentCounts(
        tuple(rows for part in parts for rows in part.rows),
        tuple(
            merge_counts(list(counts))
            for counts in zip(*(part.strata for part in parts), strict=True)
        ),
        ends,
    )


@dataclass(frozen=True)
class Layout:
    """Where the pieces of an order begin.

    Attributes
    ----------
    positions : ndarray of int64
        The place of each piece's first value in the whole order, and the number of all values.
    strata : list of ndarray of int64
        Those of which each piece has values.
    bounds : list of ndarray of int64
        Where each of them begins in the piece, and the end of the last.
    ranks : list of ndarray of int64
        The rank of each piece's first value in each of its strata.
    """

    positions: NDArray[np.int64]
    strata: list[NDArray[np.int64]]
    bounds: list[NDArray[np.int64]]
    ranks: list[NDArray[np.int64]]


def lay_out(frame: Frame, order: Order) -> Layout:
    """Count where the pieces of an order begin, in one pass over the data.

    So a piece is sorted, asked for and dropped, and only its values wait for the rows that get
    them.
    """
    counts = map_reduce(frame[order.needed()], _count_buckets, _add, order)
    stratum_of = order.splitters.stratum_of(np.arange(len(counts)))
    # At once, all buckets come to one piece.
    ranges = order.splitters.ranges if is_dask(frame) else [0, len(counts)]
    strata, bounds, ranks = [], [], []
    seen = np.zeros(len(order.strata), np.int64)
    for begin, end in itertools.pairwise(ranges):
        held = begin + np.flatnonzero(counts[begin:end])
        strata.append(stratum_of[held])
        bounds.append(np.append(0, np.cumsum(counts[held])))
        ranks.append(seen[strata[-1]])
        seen[strata[-1]] += counts[held]
    positions = np.cumsum([0, *(int(each[-1]) for each in bounds)])
    if not np.array_equal(seen, order.strata.counts):
        raise SdcRuntimeError(f"there are not as many values as were counted. {NOT_THE_SAME}")
    return Layout(positions, strata, bounds, ranks)


def _count_buckets(part: pd.DataFrame, number: int, order: Order) -> NDArray[np.int64]:
    return np.bincount(order.buckets(part, number), minlength=len(order.splitters))


def _add(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(parts, axis=0)


class Swaps(ABC):
    """Makes the sources of strata, and changes values before they are swapped."""

    @abstractmethod
    def sources(self, stratum: int) -> Sources:
        """Return the sources of a stratum, from its first rank on."""

    @property
    @abstractmethod
    def reach(self) -> int:
        """How many ranks values move at most."""

    @property
    @abstractmethod
    def looks_first(self) -> bool:
        """Whether values change by what is known of all pieces."""

    @abstractmethod
    def summarize(self, piece: Piece, ranks: NDArray[np.int64]) -> Any:
        """Return what is to be known of a piece, given the first rank of each of its strata."""

    @abstractmethod
    def merge(self, parts: list[Any]) -> Any:
        """Merge what is known of pieces."""

    @abstractmethod
    def change(self, piece: Piece, ranks: NDArray[np.int64], known: Any) -> pd.Series:
        """Return the values of a piece that are swapped: those that they are, or others."""


@dataclass(frozen=True)
class Exchange:
    """A mask that swaps the values of a column between ranks."""

    order: Order
    layout: Layout
    swaps: Swaps

    def run(self, call: Calls, parts: list[Task], row_ids: RowIds, then: Then) -> list[Task]:
        """Swap values: rows travel to the values that they get."""
        shared = call.share(self)
        known = None
        if self.swaps.looks_first:
            found = [call(_summarize, shared, part, n) for n, part in enumerate(parts)]
            known = call(_merge, shared, found)
        asking: list[Task] = []
        values: list[Task] = []
        swapped: list[Task] = []
        state = None
        for number, part in enumerate(parts):
            # Only drawing goes from piece to piece. It runs a few pieces ahead of sorting, and no
            # more: what was drawn waits in memory.
            before = swapped[number - _AHEAD] if number >= _AHEAD else None
            drawn = call(_draw, shared, number, state, before)
            state = drawn[1]
            step = call(_swap_piece, shared, part, number, drawn[0], known)
            asking.append(step[0])
            values.append(step[1])
            swapped.append(step[2])
        empty = _asking_frame(np.empty(0, np.int64), np.empty(0, np.int64))
        divisions = row_ids.first_keys(range(len(parts) + 1))
        asked = call.route(asking, empty, divisions, self.senders())
        return [
            call(_answer, part, each, row_ids, then, number)
            for number, (part, each) in enumerate(zip(asked, values, strict=True))
        ]

    def senders(self) -> list[range]:
        """Return the pieces that have rows within reach of the values of each piece."""
        begins, reach = self.layout.positions, self.swaps.reach
        first = np.searchsorted(begins[1:], begins[:-1] - reach, side="right")
        end = np.searchsorted(begins[:-1], begins[1:] + reach, side="left")
        return [range(*each) for each in zip(first.tolist(), end.tolist(), strict=True)]

    def arranged(self, routed: pd.DataFrame, number: int) -> Piece:
        """Sort a piece, which must be as it was counted."""
        piece = arrange(routed, self.order)
        strata, bounds = self.layout.strata[number], self.layout.bounds[number]
        if not (np.array_equal(piece.strata, strata) and np.array_equal(piece.bounds, bounds)):
            raise SdcRuntimeError(f"there are not as many values as were counted. {NOT_THE_SAME}")
        return piece

    def draw(self, number: int, state: Sources | None) -> tuple[NDArray[np.int64], Sources | None]:
        """Return the positions whose values a piece gets, and what the next piece goes on with.

        `state` are the sources of the stratum in which the piece before ended.
        """
        layout = self.layout
        strata, bounds, ranks = (
            each[number] for each in (layout.strata, layout.bounds, layout.ranks)
        )
        positions = np.empty(int(bounds[-1]), np.int64)
        # A task may run twice: what it was given stays as it was.
        sources = copy.deepcopy(state)
        for i, (begin, end) in enumerate(itertools.pairwise(bounds.tolist())):
            if sources is None or ranks[i] == 0:
                sources = self.swaps.sources(int(strata[i]))
            first = int(layout.positions[number]) + begin - int(ranks[i])  # of the stratum
            positions[begin:end] = first + sources.draw(end - begin)
        return positions, sources


def _draw(
    exchange: Exchange, number: int, state: Sources | None, _before: Any
) -> tuple[NDArray[np.int64], Sources | None]:
    return exchange.draw(number, state)


def _summarize(exchange: Exchange, routed: pd.DataFrame, number: int) -> Any:
    piece = exchange.arranged(routed, number)
    return exchange.swaps.summarize(piece, exchange.layout.ranks[number])


def _merge(exchange: Exchange, parts: list[Any]) -> Any:
    return exchange.swaps.merge(parts)


def _swap_piece(
    exchange: Exchange,
    routed: pd.DataFrame,
    number: int,
    positions: NDArray[np.int64],
    known: Any,
) -> tuple[pd.DataFrame, pd.Series, int]:
    """Sort a piece, send its rows to the values that they get, and keep its values."""
    piece = exchange.arranged(routed, number)
    begins = exchange.layout.positions
    other = count_below(begins, positions + 1) - 1
    asking = _asking_frame(exchange.order.row_ids.key(other, positions - begins[other]), piece.rows)
    values = exchange.swaps.change(piece, exchange.layout.ranks[number], known)
    return asking, values, number


def _asking_frame(key: NDArray[np.int64], rows: NDArray[np.int64]) -> pd.DataFrame:
    return pd.DataFrame({"key": key, "row": rows})


def _answer(
    asked: pd.DataFrame, values: pd.Series, row_ids: RowIds, then: Then, number: int
) -> Any:
    """Give the values of a piece to the rows that asked for them."""
    _, within = row_ids.split(asked.index.to_numpy())
    if not np.array_equal(within, np.arange(len(values))):
        raise SdcRuntimeError(
            f"values were lost or doubled while they were swapped. {NOT_THE_SAME}"
        )
    return then(asked["row"].to_numpy(), values, number)
