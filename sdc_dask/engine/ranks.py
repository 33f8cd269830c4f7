"""The ranks of a column over all partitions, and values that go from rank to rank.

A column is put in order by a distributed sort, ties in row order, so that every value has a rank
in its stratum. Which rank gets the value of which is told by numbers alone; then the row of the
one travels to the value of the other, and both go home. Missing cells have no rank and stay.
"""

from __future__ import annotations

import copy
import itertools
from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame, all_done, depart_after, is_dask, map_reduce, meta_of
from sdc_dask.engine.placement import RowIds, check_bits, partitions_wanted
from sdc_dask.engine.route import Home, check_same, checksum_of, put_home, route, sorted_by_key
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.sort_keys import sort_keys
from sdc_dask.engine.splitters import Sample, Splitters, sample_positions, stack_samples
from sdc_dask.engine.strata import Strata, StrataRule, merge_counts
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.swaps import Sources

# A piece of one column has few bytes a row, but sorting it and telling positions takes arrays of
# its length: it must be as short as if it had so many columns.
ARRAYS = 7


@dataclass(frozen=True)
class PresentCounts:
    """Rows by partition, and of every column the present values by stratum."""

    rows: tuple[int, ...]
    strata: tuple[pd.DataFrame, ...]

    def missing(self) -> list[int]:
        """Return the number of missing cells by column."""
        return [sum(self.rows) - int(counts["count"].sum()) for counts in self.strata]


def count_present(frame: Frame, columns: Sequence[Hashable], rule: StrataRule) -> PresentCounts:
    """Count present values, in one pass over the data."""
    needed = list(dict.fromkeys([*columns, *rule.by]))
    return map_reduce(frame[needed], _count, _merge_counts, list(columns), rule)


def _count(
    part: pd.DataFrame, _number: int, columns: list[Hashable], rule: StrataRule
) -> PresentCounts:
    counts = tuple(rule.count(part[_present(part[column])]) for column in columns)
    return PresentCounts((len(part),), counts)


def _merge_counts(parts: list[PresentCounts]) -> PresentCounts:
    return PresentCounts(
        tuple(rows for part in parts for rows in part.rows),
        tuple(
            merge_counts(list(counts))
            for counts in zip(*(part.strata for part in parts), strict=True)
        ),
    )


def _present(values: pd.Series) -> NDArray[np.bool_]:
    if pd.api.types.is_float_dtype(values.dtype):
        # A NaN that a nullable column does not count as missing is missing.
        return ~np.isnan(values.to_numpy(np.float64, na_value=np.nan))
    return values.notna().to_numpy(bool)


@dataclass(frozen=True)
class RankOrder:
    """The order of the present values of a column: by stratum, value and row."""

    column: Hashable
    dtype: object
    strata: Strata
    row_ids: RowIds
    splitters: Splitters

    def needed(self) -> list[Hashable]:
        """Columns that tell the place of a value."""
        return [self.column, *self.strata.rule.by]

    def items(
        self, part: pd.DataFrame, number: int
    ) -> tuple[NDArray[np.int64], NDArray, NDArray[np.int64], pd.Series]:
        """Return stratum, sort key, row id and value of what is present in a partition."""
        present = _present(part[self.column])
        some = part[present]
        ids = self.row_ids.ids(number, len(part))[present]
        return (
            self.strata.of(some),
            sort_keys(some[self.column], self.dtype),
            ids,
            some[self.column],
        )


def plan_ranks(frame: Frame, column: Hashable, strata: Strata, rows: Sequence[int]) -> RankOrder:
    """Choose the ranges of a column's order, in one pass over the data if there are several."""
    row_ids = RowIds.of(rows)
    splitters = Splitters.none(len(strata), row_ids.bits)
    order = RankOrder(column, meta_of(frame)[column].dtype, strata, row_ids, splitters)
    ranges = partitions_wanted(sum(rows), ARRAYS, len(rows)) if is_dask(frame) else 1
    if ranges > 1:
        sample = map_reduce(frame[order.needed()], _sample, stack_samples, order, sum(rows), ranges)
        splitters = Splitters.of_sample(sample, len(strata), row_ids.bits, ranges)
    check_bits(len(splitters), row_ids)
    return replace(order, splitters=splitters)


def _sample(part: pd.DataFrame, number: int, order: RankOrder, total: int, ranges: int) -> Sample:
    picked = sample_positions(len(part), total, number, ranges)
    stratum, key, ids, _ = order.items(part.iloc[picked], 0)
    # Positions among the rows that were picked tell the rows.
    return stratum, key, order.row_ids.ids(number, len(part))[picked][ids]


@dataclass(frozen=True)
class RankPiece:
    """Consecutive values of a column's order, and the strata that they belong to."""

    rows: NDArray[np.int64]
    values: pd.Series
    strata: NDArray[np.int64]  # those of which there are values, in order
    bounds: NDArray[np.int64]  # where each begins, and the end of the last


@dataclass(frozen=True)
class Layout:
    """Where the pieces of an order begin.

    Attributes
    ----------
    positions : ndarray of int64
        The place of each piece's first value in the whole order, and the number of all values.
    ranks : list of ndarray of int64
        The rank of each piece's first value in each of its strata.
    """

    positions: NDArray[np.int64]
    ranks: list[NDArray[np.int64]]


class Swaps(ABC):
    """Makes the sources of strata, and changes values before they are swapped."""

    @abstractmethod
    def sources(self, stratum: int) -> Sources:
        """Return the sources of a stratum, from its first rank on."""

    @property
    @abstractmethod
    def looks_first(self) -> bool:
        """Whether values change by what is known of all pieces."""

    @abstractmethod
    def summarize(self, piece: RankPiece, ranks: NDArray[np.int64]) -> Any:
        """Return what is to be known of a piece, given the first rank of each of its strata."""

    @abstractmethod
    def merge(self, parts: list[Any]) -> Any:
        """Merge what is known of pieces."""

    @abstractmethod
    def change(self, piece: RankPiece, ranks: NDArray[np.int64], known: Any) -> pd.Series:
        """Return the values of a piece that are swapped: those that they are, or others."""


def swap_column(frame: Frame, order: RankOrder, swaps: Swaps, after: Delayed | None = None) -> Home:
    """Swap the values of a column between ranks.

    Returns
    -------
    Home
        The new values of every partition, by the positions of the rows that they belong to.
    """
    shared = delayed(swaps, pure=False, traverse=False)
    summarize = partial(checksum_of, numbers=(), others=order.needed())
    if not is_dask(frame):
        piece = _arrive(sorted_by_key(_depart(frame, 0, order)), order)
        layout = _lay_out([(piece.strata, piece.bounds)], order.strata.counts)
        sources, _ = _draw(swaps, piece.strata, piece.bounds, layout, 0, None)
        known = swaps.merge([swaps.summarize(piece, layout.ranks[0])])
        values = swaps.change(piece, layout.ranks[0], known)
        home = _leave(values, piece.rows[np.argsort(sources)])
        return Home([_come_home(sorted_by_key(home), order.row_ids)], [summarize(frame)], None)
    # Where every piece begins is counted before: so a piece is sorted, asked for and dropped, and
    # only its values wait for the rows that get them.
    layout = _lay_out(_expected_pieces(frame, order), order.strata.counts)
    meta = _depart(meta_of(frame), 0, order)
    left, checksums = depart_after(frame[order.needed()], after, summarize, _depart, order)
    routed = dd.from_delayed(left, meta=meta, verify_meta=False)
    divisions = [bucket << order.row_ids.bits for bucket in order.splitters.ranges]
    task = partial(delayed, pure=False)
    plan = delayed(order, pure=False, traverse=False)
    whole = delayed(layout, pure=False, traverse=False)
    parts = route(routed, divisions).to_delayed()
    known = None
    if swaps.looks_first:
        known = task(_merge)(
            shared,
            [task(_summarize)(shared, part, plan, whole, n) for n, part in enumerate(parts)],
        )
    asking, values = [], []
    state = None
    for number, part in enumerate(parts):
        step = task(_swap_piece)(shared, part, plan, whole, number, state, known)
        asking.append(step[0])
        state = step[1]
        values.append(step[2])
    empty = _asking_frame(np.empty(0, np.int64), np.empty(0, np.int64))
    asked = route(
        dd.from_delayed(asking, meta=empty, verify_meta=False),
        [number << order.row_ids.bits for number in range(len(parts) + 1)],
    )
    leaving = [
        task(_answer)(part, each, order.row_ids)
        for part, each in zip(asked.to_delayed(), values, strict=True)
    ]
    back = route(
        dd.from_delayed(leaving, meta=meta, verify_meta=False),
        order.row_ids.divisions(len(left)),
    )
    home = [task(_come_home)(part, order.row_ids) for part in back.to_delayed()]
    return Home(home, checksums, all_done(leaving))


def put_swapped(frame: Frame, homes: Sequence[Home], orders: Sequence[RankOrder]) -> Frame:
    """Put swapped columns into the frame that they left from; nothing else changes."""
    return put_home(frame, homes, partial(_put_swapped, orders=list(orders)))


def _put_swapped(
    part: pd.DataFrame,
    values: list[pd.Series] | None,
    checksums: list[np.uint64] | None,
    orders: list[RankOrder],
) -> pd.DataFrame:
    result = part.copy(deep=False)
    result.attrs = {}  # may hold anything, and would be written into files
    if values is None or checksums is None:
        return result
    for order, home, checksum in zip(orders, values, checksums, strict=True):
        old = part[order.column]
        present = _present(old)
        missing = int((~present).sum())
        now = checksum_of(part, (), order.needed())
        check_same(part, len(home) + missing, now, checksum)
        if not np.array_equal(home.index, np.flatnonzero(present)):
            raise SdcRuntimeError(
                f"rows were lost or doubled while they were swapped. {NOT_THE_SAME}"
            )
        # The values that came, and those that never left, in the order of the rows.
        both = pd.concat([home, old[~present]], ignore_index=True) if missing else home
        place = np.empty(len(part), np.int64)
        place[present] = np.arange(len(home))
        place[~present] = np.arange(len(home), len(part))
        result[order.column] = pd.Series(both.array.take(place), index=part.index, dtype=both.dtype)
    return result


# The steps of a swap


def _depart(part: pd.DataFrame, number: int, order: RankOrder) -> pd.DataFrame:
    """Make the routed values of a partition."""
    stratum, key, ids, values = order.items(part, number)
    bucket = order.splitters.bucket_of(stratum, key, ids)
    return pd.DataFrame(
        {"key": (bucket << order.row_ids.bits) + ids, "v0": values.reset_index(drop=True)}
    )


def _arrive(routed: pd.DataFrame, order: RankOrder) -> RankPiece:
    """Sort what came to a range."""
    key = routed.index.to_numpy()
    stratum = order.splitters.stratum_of(key >> order.row_ids.bits)
    values = routed["v0"]
    # Rows ascend within a stratum, and sorting is stable: ties stay in row order.
    by_value = np.lexsort((sort_keys(values, order.dtype), stratum))
    stratum = stratum[by_value]
    begins = np.flatnonzero(np.diff(stratum, prepend=-1))
    rows = key[by_value] & ((1 << order.row_ids.bits) - 1)
    values = values.take(by_value).reset_index(drop=True)
    return RankPiece(rows, values, stratum[begins], np.append(begins, len(rows)))


def _lay_out(
    measures: list[tuple[NDArray[np.int64], NDArray[np.int64]]], counts: NDArray[np.int64]
) -> Layout:
    """Tell where pieces begin; they must have as many values as were counted, by stratum."""
    positions = np.cumsum([0, *(int(bounds[-1]) for _, bounds in measures)])
    seen: dict[int, int] = {}
    ranks = []
    for strata, bounds in measures:
        ranks.append(np.array([seen.get(stratum, 0) for stratum in strata.tolist()], np.int64))
        for stratum, count in zip(strata.tolist(), np.diff(bounds).tolist(), strict=True):
            seen[stratum] = seen.get(stratum, 0) + count
    if [seen.get(stratum, 0) for stratum in range(len(counts))] != counts.tolist():
        raise SdcRuntimeError(f"there are not as many values as were counted. {NOT_THE_SAME}")
    return Layout(positions, ranks)


def _draw(
    swaps: Swaps,
    strata: NDArray[np.int64],
    bounds: NDArray[np.int64],
    layout: Layout,
    number: int,
    state: tuple[int, Sources] | None,
) -> tuple[NDArray[np.int64], tuple[int, Sources] | None]:
    """Tell the positions whose values a piece gets, and leave what the next piece goes on with."""
    positions = np.empty(int(bounds[-1]), np.int64)
    for i, stratum in enumerate(strata.tolist()):
        begin, end = int(bounds[i]), int(bounds[i + 1])
        rank = int(layout.ranks[number][i])
        if rank == 0:
            sources = swaps.sources(stratum)
        else:
            # The piece before ended in this stratum. A task may run twice: what it was given
            # stays as it was.
            if state is None or state[0] != stratum:
                raise SdcRuntimeError(f"the order of a column has changed. {NOT_THE_SAME}")
            sources = copy.deepcopy(state[1])
        first = int(layout.positions[number]) + begin - rank  # of the stratum
        positions[begin:end] = first + sources.draw(end - begin)
        state = (stratum, sources)
    return positions, state


def _expected_pieces(
    frame: Frame, order: RankOrder
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Count what comes to every range: its strata, and where each begins in it."""
    counts = map_reduce(frame[order.needed()], _count_buckets, _add, order)
    strata = order.splitters.stratum_of(np.arange(len(counts)))
    pieces = []
    for begin, end in itertools.pairwise(order.splitters.ranges):
        held = begin + np.flatnonzero(counts[begin:end])
        pieces.append((strata[held], np.append(0, np.cumsum(counts[held]))))
    return pieces


def _count_buckets(part: pd.DataFrame, number: int, order: RankOrder) -> NDArray[np.int64]:
    stratum, key, ids, _ = order.items(part, number)
    bucket = order.splitters.bucket_of(stratum, key, ids)
    return np.bincount(bucket, minlength=len(order.splitters))


def _add(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(parts, axis=0)


def _summarize(
    swaps: Swaps, routed: pd.DataFrame, order: RankOrder, layout: Layout, number: int
) -> Any:
    piece = _arrive(routed, order)
    _check_piece(piece, layout, number)
    return swaps.summarize(piece, layout.ranks[number])


def _merge(swaps: Swaps, parts: list[Any]) -> Any:
    return swaps.merge(parts)


def _check_piece(piece: RankPiece, layout: Layout, number: int) -> None:
    """Raise RuntimeError unless a piece is as it was counted."""
    length = layout.positions[number + 1] - layout.positions[number]
    if len(piece.rows) != length or len(piece.strata) != len(layout.ranks[number]):
        raise SdcRuntimeError(f"there are not as many values as were counted. {NOT_THE_SAME}")


def _swap_piece(
    swaps: Swaps,
    routed: pd.DataFrame,
    order: RankOrder,
    layout: Layout,
    number: int,
    state: tuple[int, Sources] | None,
    known: Any,
) -> tuple[pd.DataFrame, tuple[int, Sources] | None, pd.Series]:
    """Sort a piece, send its rows to the values that they get, and keep its values."""
    piece = _arrive(routed, order)
    _check_piece(piece, layout, number)
    positions, state = _draw(swaps, piece.strata, piece.bounds, layout, number, state)
    other = np.searchsorted(layout.positions, positions, side="right") - 1
    within = positions - layout.positions[other]
    asking = _asking_frame((other << order.row_ids.bits) + within, piece.rows)
    return asking, state, swaps.change(piece, layout.ranks[number], known)


def _asking_frame(key: NDArray[np.int64], rows: NDArray[np.int64]) -> pd.DataFrame:
    return pd.DataFrame({"key": key, "row": rows})


def _answer(asked: pd.DataFrame, values: pd.Series, row_ids: RowIds) -> pd.DataFrame:
    """Give the values of a piece to the rows that asked for them."""
    within = asked.index.to_numpy() & ((1 << row_ids.bits) - 1)
    if not np.array_equal(within, np.arange(len(values))):
        raise SdcRuntimeError(
            f"values were lost or doubled while they were swapped. {NOT_THE_SAME}"
        )
    return _leave(values, asked["row"].to_numpy())


def _leave(values: pd.Series, rows: NDArray[np.int64]) -> pd.DataFrame:
    return pd.DataFrame({"key": rows, "v0": values})


def _come_home(home: pd.DataFrame, row_ids: RowIds) -> pd.Series:
    """Tell the positions of values that came back."""
    position = home.index.to_numpy() & ((1 << row_ids.position_bits) - 1)
    if np.array_equal(position, np.arange(len(position))):
        return home["v0"].reset_index(drop=True)
    return pd.Series(home["v0"].array, index=position, name="v0")
