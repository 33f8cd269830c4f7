"""The order of all records of a frame, from partition to partition: a distributed sort.

Records are routed to ranges of their sort key and sorted there. What is put in order are records
by a projection of their numbers, single cells of several columns, or the values of one column of
any dtype; ties are in row order. What depends on neighbours in the order goes through the ranges
one after the other, first forward and then backward, with a state that is small: everything else
about a range is done in parallel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.destinations import Destinations, Values, check_positions, checksum_of
from sdc_dask.engine.frames import Calls, Frame, Task, is_dask, map_reduce
from sdc_dask.engine.masks import Then, routed_frame, routed_numbers
from sdc_dask.engine.row_ids import RowIds, check_bits, partitions_wanted
from sdc_dask.engine.scan import NO_PARTITION, Expected
from sdc_dask.engine.sort_keys import sort_keys
from sdc_dask.engine.splitters import (
    Sample,
    Splitters,
    sample_positions,
    stable_order,
    stack_samples,
)
from sdc_dask.engine.strata import Strata

# From the values of records to their sort keys: finite, and a function of the record alone.
Projection = Callable[[NDArray[np.float64]], NDArray[np.float64]]

# A piece of one column has few bytes per row, but sorting it and finding positions takes arrays of
# its length: it must be as short as if it had so many columns.
ARRAYS = 7


# What is put in order


class Items(ABC):
    """What is put in order, and by what."""

    columns: tuple[Hashable, ...]
    width: int  # of a routed item, in columns of 8 bytes: how much memory sorting takes

    @property
    def per_row(self) -> int:
        """Items of a row, whose ids follow each other."""
        return 1

    @abstractmethod
    def of(self, part: pd.DataFrame, number: int) -> tuple[NDArray[np.int64], Values]:
        """Return the places of a partition's items among all that it may have, and their values.

        Places ascend, and a row has all of its items or none.
        """

    @abstractmethod
    def keys(self, values: Values) -> NDArray:
        """Return what items are sorted by, from their values."""

    @abstractmethod
    def opened(self, routed: pd.DataFrame) -> Values:
        """Return the values of routed items."""


@dataclass(frozen=True)
class Records(Items):
    """Records by a projection of their numbers."""

    columns: tuple[Hashable, ...]
    projection: Projection
    expected: Expected

    @property
    def width(self) -> int:  # type: ignore[override]
        """Columns that travel."""
        return len(self.columns)

    def of(self, part: pd.DataFrame, number: int) -> tuple[NDArray[np.int64], Values]:
        """Return all records."""
        values = to_float(part, self.columns)
        self.expected.check(number, values)
        return np.arange(len(part)), values

    def keys(self, values: Values) -> NDArray:
        """Project records."""
        assert isinstance(values, np.ndarray)
        return self.projection(values)

    def opened(self, routed: pd.DataFrame) -> Values:
        """Return numbers."""
        return routed_numbers(routed)


@dataclass(frozen=True)
class Cells(Records):
    """The values of all columns in one order, by value, row and column."""

    @property
    def per_row(self) -> int:
        """As many as there are columns."""
        return len(self.columns)

    def of(self, part: pd.DataFrame, number: int) -> tuple[NDArray[np.int64], Values]:
        """Return every cell as an item of its own."""
        _, values = super().of(part, number)
        assert isinstance(values, np.ndarray)
        return np.arange(values.size), values.reshape(-1, 1)


@dataclass(frozen=True)
class Present(Items):
    """The values of one column of any dtype, without missing cells, which stay where they are."""

    column: Hashable
    dtype: object
    width: int = ARRAYS

    @property
    def columns(self) -> tuple[Hashable, ...]:  # type: ignore[override]
        """The column."""
        return (self.column,)

    def of(self, part: pd.DataFrame, number: int) -> tuple[NDArray[np.int64], Values]:
        """Return the values that are present."""
        at = np.flatnonzero(is_present(part[self.column]))
        return at, part[self.column].iloc[at].reset_index(drop=True)

    def keys(self, values: Values) -> NDArray:
        """Return numbers or objects that are sorted as the values are."""
        assert isinstance(values, pd.Series)
        return sort_keys(values, self.dtype)

    def opened(self, routed: pd.DataFrame) -> Values:
        """Return values of the dtype that they left with."""
        return routed["v0"].reset_index(drop=True).rename(self.column)


def is_present(values: pd.Series) -> NDArray[np.bool_]:
    """Return which cells have a value."""
    if pd.api.types.is_float_dtype(values.dtype):
        # A NaN that a nullable column does not count as missing is missing.
        return ~np.isnan(values.to_numpy(np.float64, na_value=np.nan))
    return values.notna().to_numpy(bool)


# The order


@dataclass(frozen=True)
class Order(Destinations):
    """An order of the items of one frame: by stratum, key and row."""

    items: Items
    strata: Strata
    row_ids: RowIds
    splitters: Splitters

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns that travel."""
        return self.items.columns

    @property
    def by(self) -> tuple[Hashable, ...]:
        """Columns of the user that define strata."""
        return self.strata.rule.by

    def located(
        self, part: pd.DataFrame, number: int, at: NDArray[np.int64] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], Values]:
        """Return the strata, ids and values of a partition's items, `at` some rows or all."""
        per_row = self.items.per_row
        ids = self.row_ids.ids(number, len(part) * per_row)
        if at is not None:
            part, ids, number = part.iloc[at], ids.reshape(-1, per_row)[at].ravel(), NO_PARTITION
        places, values = self.items.of(part, number)
        # Of rows that have items: where a column has no value, there need be no stratum.
        rows = places[::per_row] // per_row
        has_all = len(rows) == len(part)
        stratum = self.strata.of(part if has_all else part.iloc[rows])
        return np.repeat(stratum, per_row), ids[places], values

    def buckets(self, part: pd.DataFrame, number: int) -> NDArray[np.int64]:
        """Return the buckets of a partition's items."""
        stratum, ids, values = self.located(part, number)
        return self.splitters.bucket_of(stratum, self.items.keys(values), ids)

    def depart(self, part: pd.DataFrame, number: int) -> tuple[NDArray[np.int64], Values]:
        """Return bucket and id of every item of a partition in one integer, and its values."""
        stratum, ids, values = self.located(part, number)
        bucket = self.splitters.bucket_of(stratum, self.items.keys(values), ids)
        return self.row_ids.key(bucket, ids), values

    def divisions(self, _n_partitions: int) -> list[int]:
        """Return the first key of every range, and one beyond the last."""
        return self.row_ids.first_keys(self.splitters.ranges)

    def checksum(self, part: pd.DataFrame, values: Values | None = None) -> np.uint64:
        """Return a checksum of the values, and their order, that decide where rows go."""
        if isinstance(self.items, Present):
            return checksum_of(np.empty((len(part), 0)), part, self.needed())
        return super().checksum(part, values)

    def restore(self, part: pd.DataFrame, back: pd.DataFrame, *, moved: bool) -> list[Any]:
        """Return the new arrays of the columns."""
        if isinstance(self.items, Present):
            return [_among_missing(part[self.items.column], back)]
        per_row = self.items.per_row
        if per_row > 1:
            check_positions(back, np.arange(len(part) * per_row))
            back = pd.DataFrame(back.to_numpy().reshape(-1, per_row))
        return super().restore(part, back, moved=moved)


def _among_missing(old: pd.Series, back: pd.DataFrame) -> pd.Series:
    """Return the values that came and the cells that never left, in the order of the rows."""
    present = is_present(old)
    check_positions(back, np.flatnonzero(present))
    came = back["v0"].astype(old.dtype)
    if present.all():
        return came
    both = pd.concat([came, old[~present]], ignore_index=True)
    place = np.empty(len(old), np.int64)
    place[present] = np.arange(len(came))
    place[~present] = np.arange(len(came), len(old))
    return pd.Series(both.array.take(place), dtype=both.dtype)


def plan_order(frame: Frame, items: Items, strata: Strata, rows: Sequence[int]) -> Order:
    """Choose the ranges of a frame's order, in one pass over the data if there are several.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    items : Items
        What is put in order.
    strata : Strata
        Of this frame.
    rows : sequence of int
        Of the partitions.
    """
    row_ids = RowIds.of([count * items.per_row for count in rows])
    ranges = partitions_wanted(sum(rows), items.width, len(rows)) if is_dask(frame) else 1
    order = Order(items, strata, row_ids, Splitters.none(len(strata), row_ids.bits))
    if ranges > 1:
        sample = map_reduce(frame[order.needed()], _sample, stack_samples, order, sum(rows), ranges)
        splitters = Splitters.of_sample(sample, len(strata), row_ids.bits, ranges)
        order = replace(order, splitters=splitters)
    check_bits(len(order.splitters), row_ids)
    return order


def _sample(part: pd.DataFrame, number: int, order: Order, total: int, ranges: int) -> Sample:
    picked = sample_positions(len(part), total, number, ranges)
    stratum, ids, values = order.located(part, number, picked)
    return stratum, order.items.keys(values), ids


@dataclass(frozen=True)
class Piece:
    """Consecutive items of an order, and the strata that they belong to."""

    rows: NDArray[np.int64]
    values: Any  # Values
    strata: NDArray[np.int64]  # those of which there are items, in order
    bounds: NDArray[np.int64]  # where each begins, and the end of the last

    @classmethod
    def of(cls, rows: NDArray[np.int64], values: Values, stratum: NDArray[np.int64]) -> Piece:
        """Make a piece of items that are in order."""
        begins = np.flatnonzero(np.diff(stratum, prepend=-1))
        return cls(rows, values, stratum[begins], np.append(begins, len(rows)))

    def __sizeof__(self) -> int:
        """Return the memory that is held, by which workers decide what goes to disk."""
        arrays = (self.rows, self.strata, self.bounds, self.values)
        return sum(each.nbytes for each in arrays)


def arrange(routed: pd.DataFrame, order: Order) -> Piece:
    """Sort what came to a range."""
    bucket, rows = order.row_ids.split(routed.index.to_numpy())
    values = order.items.opened(routed)
    # Rows ascend within a bucket, and sorting is stable: ties stay in row order.
    by_key = stable_order(bucket, order.items.keys(values))
    values = values[by_key] if isinstance(values, np.ndarray) else values.take(by_key)
    return Piece.of(rows[by_key], values, order.splitters.stratum_of(bucket))


# Through the order


class OrderMask(ABC):
    """Masks records in their order, which goes on from partition to partition.

    Whatever the partitions are, an order that is cut elsewhere must get the same result.
    """

    order: Order

    @abstractmethod
    def forward(self, piece: Piece, state: Any) -> tuple[Any, Any]:
        """Go through a piece, given the state that the piece before it left.

        Returns
        -------
        tuple
            What :meth:`backward` needs to know of this piece, and the state for the next piece.
            The state of the first is None.
        """

    @abstractmethod
    def backward(self, piece: Piece, kept: Any, state: Any) -> tuple[NDArray[np.float64], Any]:
        """Mask a piece, given the state that the piece behind it left.

        Returns
        -------
        tuple
            The new values, and the state for the piece before. The state of the last is None.
        """

    def run(self, call: Calls, parts: list[Task], _row_ids: RowIds, then: Then) -> list[Task]:
        """Mask partitions: sort them in parallel, and go through them in their order."""
        order = call.share(self.order)
        return go_through(call, self, [call(arrange, part, order) for part in parts], then)


def go_through(call: Calls, mask: OrderMask, pieces: list[Task], then: Then) -> list[Task]:
    """Go through all pieces of an order, forward and then backward."""
    shared = call.share(mask)
    kept = []
    state = None
    for piece in pieces:
        step = call(_forward, shared, piece, state)
        kept.append(step[0])
        state = step[1]
    results = []
    state = None
    for number in reversed(range(len(pieces))):
        step = call(_backward, shared, pieces[number], kept[number], state, then, number)
        results.append(step[0])
        state = step[1]
    return results[::-1]


def _forward(mask: OrderMask, piece: Piece, state: Any) -> tuple[Any, Any]:
    return mask.forward(piece, state)


def _backward(
    mask: OrderMask, piece: Piece, kept: Any, state: Any, then: Then, number: int
) -> tuple[Any, Any]:
    values, state = mask.backward(piece, kept, state)
    return then(piece.rows, values, number), state


# Another order of what went through one

# Row ids and values: the first value is what they are ordered by now, the last the stratum.
Masked = tuple[NDArray[np.int64], NDArray[np.float64]]


def sort_again(
    call: Calls, masked: list[Task], row_ids: RowIds, width: int, n_strata: int, ranges: int
) -> list[Task]:
    """Put records in the order of a value that came out of going through another order.

    Parameters
    ----------
    call : Calls
    masked : list
        Row ids and values of the pieces of an order: the first value is what they are ordered by
        now, and the last is the stratum.
    row_ids : RowIds
    width : int
        Number of values.
    n_strata : int
    ranges : int
        How many pieces are wanted.

    Returns
    -------
    list of Piece
    """
    if not call.lazy:
        return [_sort_masked(*each) for each in masked]
    total = call(_count, masked)
    samples = [call(_draw, each, number, total, ranges) for number, each in enumerate(masked)]
    splitters = call(_split, samples, n_strata, row_ids.bits, ranges)
    meta = routed_frame(np.empty(0, np.int64), np.empty((0, width)))
    parts = [call(_depart, each, splitters, row_ids) for each in masked]
    routed = call.route(parts, meta, row_ids.first_keys(range(ranges + 1)))
    return [call(_arrive, part, row_ids) for part in routed]


def _count(masked: list[Masked]) -> int:
    return sum(len(rows) for rows, _ in masked)


def _draw(masked: Masked, number: int, total: int, ranges: int) -> Sample:
    rows, values = masked
    picked = sample_positions(len(rows), total, number, ranges)
    return values[picked, -1].astype(np.int64), values[picked, 0], rows[picked]


def _split(samples: list[Sample], n_strata: int, bits: int, ranges: int) -> Splitters:
    return Splitters.of_sample(stack_samples(samples), n_strata, bits, ranges)


def _depart(masked: Masked, splitters: Splitters, row_ids: RowIds) -> pd.DataFrame:
    rows, values = masked
    stratum = values[:, -1].astype(np.int64)
    # Strata have no numbers in the key, as it is not yet known how many borders there are.
    place = splitters.bucket_of(stratum, values[:, 0], rows) - stratum
    return routed_frame(row_ids.key(place, rows), values)


def _arrive(routed: pd.DataFrame, row_ids: RowIds) -> Piece:
    _, rows = row_ids.split(routed.index.to_numpy())
    return _sort_masked(rows, routed_numbers(routed))


def _sort_masked(rows: NDArray[np.int64], values: NDArray[np.float64]) -> Piece:
    """Sort by stratum, key and row."""
    order = np.lexsort((rows, values[:, 0], values[:, -1]))
    return Piece.of(rows[order], values[order], values[order, -1].astype(np.int64))
