"""The order of all records of a frame, from partition to partition: a distributed sort.

Records are routed to ranges of their sort key and sorted there. What depends on neighbours in the
order goes through the partitions one after the other, first forward and then backward, with a
state that is small: everything else about a partition is done in parallel.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, is_dask, map_reduce
from sdc_dask.engine.masks import Then, as_shared, as_tasks, open_routed
from sdc_dask.engine.placement import RowIds, check_bits, partitions_wanted
from sdc_dask.engine.route import route, routed_frame
from sdc_dask.engine.scan import Expected, Scan
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


@dataclass(frozen=True)
class Order:
    """An order of the records of one frame: by stratum, projection and row.

    If `cells` is true, every value is a record of its own: the values of all columns are put into
    one order, by stratum, projection, row and column.
    """

    columns: tuple[Hashable, ...]
    strata: Strata
    projection: Projection
    cells: bool
    expected: Expected
    row_ids: RowIds
    splitters: Splitters

    @property
    def by(self) -> tuple[Hashable, ...]:
        """Columns of the user that define strata."""
        return self.strata.rule.by

    def needed(self) -> list[Hashable]:
        """Columns that tell the place of a record."""
        return list(dict.fromkeys([*self.columns, *self.by]))

    def items(
        self, part: pd.DataFrame, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the strata and the values of what is put in order."""
        values = to_float(part, self.columns)
        self.expected.check(number, values)
        stratum = self.strata.of(part)
        if self.cells:
            return np.repeat(stratum, len(self.columns)), values.reshape(-1, 1)
        return stratum, values

    def ids(self, number: int, rows: int) -> NDArray[np.int64]:
        """Return the ids of what is put in order, by row of a partition."""
        items = len(self.columns) if self.cells else 1
        return self.row_ids.ids(number, rows * items).reshape(-1, items)

    def depart(
        self, part: pd.DataFrame, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return bucket and id of every record of a partition in one integer, and its values."""
        stratum, values = self.items(part, number)
        ids = self.ids(number, len(part)).ravel()
        bucket = self.splitters.bucket_of(stratum, self.projection(values), ids)
        return (bucket << self.row_ids.bits) + ids, values

    def divisions(self, _n_partitions: int) -> list[int]:
        """Return the first key of every range, and one beyond the last."""
        return [bucket << self.row_ids.bits for bucket in self.splitters.ranges]


def plan_order(
    frame: Frame,
    columns: Sequence[Hashable],
    strata: Strata,
    projection: Projection,
    scan: Scan,
    *,
    cells: bool = False,
) -> Order:
    """Choose the ranges of a frame's order, in one pass over the data if there are several.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        What is routed, and what the projection is of.
    strata : Strata
        Of this frame.
    projection : callable
        From the values of records to their sort keys.
    scan : Scan
        Of this frame.
    cells : bool, default False
        Whether every value is a record of its own.
    """
    rows = scan.rows
    row_ids = RowIds.of([count * len(columns) for count in rows] if cells else rows)
    ranges = partitions_wanted(sum(rows), len(columns), len(rows)) if is_dask(frame) else 1
    splitters = Splitters.none(len(strata), row_ids.bits)
    expected = scan.expected(columns)
    order = Order(tuple(columns), strata, projection, cells, expected, row_ids, splitters)
    if ranges > 1:
        sample = map_reduce(frame[order.needed()], _sample, stack_samples, order, sum(rows), ranges)
        splitters = Splitters.of_sample(sample, len(strata), row_ids.bits, ranges)
    check_bits(len(splitters), row_ids)
    return replace(order, splitters=splitters)


def _sample(part: pd.DataFrame, number: int, order: Order, total: int, ranges: int) -> Sample:
    picked = sample_positions(len(part), total, number, ranges)
    stratum, values = order.items(part, number)
    at = order.ids(0, len(part))[picked].ravel()  # positions of items
    return stratum[at], order.projection(values[at]), order.ids(number, len(part))[picked].ravel()


@dataclass(frozen=True)
class Piece:
    """Consecutive records of an order, and the strata that they belong to."""

    rows: NDArray[np.int64]
    values: NDArray[np.float64]
    strata: NDArray[np.int64]  # those of which there are records, in order
    bounds: NDArray[np.int64]  # where each begins, and the end of the last

    def __sizeof__(self) -> int:
        """Return the memory that is held, by which workers decide what goes to disk."""
        return self.rows.nbytes + self.values.nbytes + self.strata.nbytes + self.bounds.nbytes


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

    def run(self, parts: list[Any], row_ids: RowIds, then: Then, *, lazy: bool) -> list[Any]:
        """Mask partitions: sort them in parallel, and go through them in their order."""
        put = as_tasks(_put_in_order, lazy)
        order = as_shared(self.order, lazy)
        return go_through(self, [put(part, row_ids, order) for part in parts], then, lazy=lazy)


def go_through(mask: OrderMask, pieces: list[Any], then: Then, *, lazy: bool) -> list[Any]:
    """Go through all pieces of an order, forward and then backward."""
    forward, backward = as_tasks(_forward, lazy), as_tasks(_backward, lazy)
    shared = as_shared(mask, lazy)
    kept = []
    state = None
    for piece in pieces:
        step = forward(shared, piece, state)
        kept.append(step[0])
        state = step[1]
    results = []
    state = None
    for number in reversed(range(len(pieces))):
        step = backward(shared, pieces[number], kept[number], state, then, number)
        results.append(step[0])
        state = step[1]
    return results[::-1]


def put_in_order_again(
    masked: list[Any], row_ids: RowIds, width: int, n_strata: int, ranges: int, *, lazy: bool
) -> list[Any]:
    """Put records in the order of a value that came out of going through another order.

    Parameters
    ----------
    masked : list of tuple of ndarray
        Row ids and values of the pieces of an order: the first value is what they are ordered by
        now, and the last is the stratum.
    row_ids : RowIds
    width : int
        Number of values.
    n_strata : int
    ranges : int
        How many pieces are wanted.
    lazy : bool
        Whether `masked` are Delayed.

    Returns
    -------
    list of Piece
    """
    if not lazy:
        return [_sort_piece(*each) for each in masked]
    total = as_tasks(_count, lazy)(masked)
    draw, depart, put = as_tasks(_draw, lazy), as_tasks(_depart, lazy), as_tasks(_arrive, lazy)
    samples = [draw(each, number, total, ranges) for number, each in enumerate(masked)]
    splitters = as_tasks(_split, lazy)(samples, n_strata, row_ids.bits, ranges)
    meta = routed_frame(np.empty(0, np.int64), np.empty((0, width)))
    parts = [depart(each, splitters) for each in masked]
    routed = dd.from_delayed(parts, meta=meta, verify_meta=False)
    divisions = [number << row_ids.bits for number in range(ranges + 1)]
    return [put(part, row_ids) for part in route(routed, divisions).to_delayed()]


# Row ids and values: the first is the sort key, the last the stratum.
Masked = tuple[NDArray[np.int64], NDArray[np.float64]]


def _count(masked: list[Masked]) -> int:
    return sum(len(rows) for rows, _ in masked)


def _draw(masked: Masked, number: int, total: int, ranges: int) -> Sample:
    rows, values = masked
    picked = sample_positions(len(rows), total, number, ranges)
    return values[picked, -1].astype(np.int64), values[picked, 0], rows[picked]


def _split(samples: list[Sample], n_strata: int, bits: int, ranges: int) -> Splitters:
    return Splitters.of_sample(stack_samples(samples), n_strata, bits, ranges)


def _depart(masked: Masked, splitters: Splitters) -> pd.DataFrame:
    rows, values = masked
    stratum = values[:, -1].astype(np.int64)
    # Strata have no numbers in the key, as it is not yet known how many borders there are.
    place = splitters.bucket_of(stratum, values[:, 0], rows) - stratum
    return routed_frame((place << splitters.bits) + rows, values)


def _arrive(routed: pd.DataFrame, row_ids: RowIds) -> Piece:
    _, rows, values = open_routed(routed, row_ids)
    return _sort_piece(rows, values)


def _sort_piece(rows: NDArray[np.int64], values: NDArray[np.float64]) -> Piece:
    """Sort by stratum, key and row."""
    order = np.lexsort((rows, values[:, 0], values[:, -1]))
    stratum = values[order, -1].astype(np.int64)
    begins = np.flatnonzero(np.diff(stratum, prepend=-1))
    return Piece(rows[order], values[order], stratum[begins], np.append(begins, len(rows)))


def _put_in_order(routed: pd.DataFrame, row_ids: RowIds, order: Order) -> Piece:
    bucket, rows, values = open_routed(routed, row_ids)
    by_key = stable_order(bucket, order.projection(values))
    stratum = order.splitters.stratum_of(bucket)
    begins = np.flatnonzero(np.diff(stratum, prepend=-1))
    return Piece(rows[by_key], values[by_key], stratum[begins], np.append(begins, len(rows)))


def _forward(mask: OrderMask, piece: Piece, state: Any) -> tuple[Any, Any]:
    return mask.forward(piece, state)


def _backward(
    mask: OrderMask, piece: Piece, kept: Any, state: Any, then: Then, number: int
) -> tuple[Any, Any]:
    values, state = mask.backward(piece, kept, state)
    return then(piece.rows, values, number), state
