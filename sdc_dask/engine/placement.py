"""Where the records of one frame go: their blocks, and the partition of every block."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.blocks import Blocks, cut_counts, parts_of
from sdc_dask.engine.codecs import NUMBERS, Coding
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.destinations import Destinations, Values, checksum_of
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.row_ids import RowIds, check_bits, partitions_wanted
from sdc_dask.engine.scan import Expected, Scan
from sdc_dask.engine.units import unit_codes
from sdc_dask.errors import SdcValueError


@dataclass(frozen=True)
class Placement(Destinations):
    """Blocks of a frame. A fused leaf that was cut needs the ranks of its records."""

    blocks: Blocks  # without bounds and centroids of leaves: tasks have no use for them
    expected: Expected
    row_ids: RowIds
    counts: NDArray[np.int64]  # by fused leaf, in this frame
    cut: NDArray[np.int64]  # fused leaves that are cut in row order
    rank_start: dict[int, NDArray[np.int64]]  # by partition: rank of its first record, by cut leaf
    coding: Coding = NUMBERS
    unit: Hashable | None = None  # a column whose codes travel beside the values

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns that are masked."""
        return self.blocks.columns

    @property
    def by(self) -> tuple[Hashable, ...]:
        """Columns of the user that define strata."""
        return self.blocks.strata.rule.by

    def block_of(
        self, part: pd.DataFrame, number: int, values: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return the block of every record of a partition."""
        fused = self.blocks.fused_of(part, values)
        if not len(self.cut):
            return fused
        parts = parts_of(self.counts, self.blocks)
        block = (np.cumsum(parts) - parts)[fused]
        cut = np.flatnonzero(parts[fused] > 1)
        if len(cut):
            leaf = fused[cut]
            start = self.rank_start[number][np.searchsorted(self.cut, leaf)]
            rank = start + pd.Series(leaf).groupby(leaf).cumcount()
            block[cut] += rank.to_numpy() * parts[leaf] // self.counts[leaf]
        return block

    @property
    def block_counts(self) -> NDArray[np.int64]:
        """Records by block."""
        return cut_counts(self.counts, self.blocks)

    def rows_between(self, divisions: Sequence[int]) -> list[int]:
        """Return the number of records between one key of :meth:`divisions` and the next."""
        before = np.append(0, np.cumsum(self.block_counts))
        return np.diff(before[np.asarray(divisions) >> self.row_ids.bits]).tolist()

    def depart(
        self, part: pd.DataFrame, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return block and row id of every record of a partition in one integer, and values."""
        coded = self.coding.encode(part)
        values = to_float(coded, self.columns)
        self.expected.check(number, values)
        block = self.block_of(coded, number, values)
        key = self.row_ids.key(block, self.row_ids.ids(number, len(part)))
        return key, self._with_units(part, values)

    def _with_units(self, part: pd.DataFrame, values: NDArray[np.float64]) -> NDArray[np.float64]:
        if self.unit is None:
            return values
        return np.column_stack([values, unit_codes(part[self.unit])])

    def needed(self) -> list[Hashable]:
        """Return the columns that decide the place of a record, and its unit."""
        others = [] if self.unit is None else [self.unit]
        return list(dict.fromkeys([*super().needed(), *others]))

    def checksum(self, part: pd.DataFrame, values: Values | None = None) -> np.uint64:
        """Return a checksum of the values, and their order, that decide where rows go."""
        if values is None:
            values = self._with_units(part, to_float(self.coding.encode(part), self.columns))
        return checksum_of(values, part, self.by)

    def divisions(self, n_partitions: int, width: int | None = None) -> list[int]:
        """Pack blocks into partitions: the first key of every partition, and one beyond the last.

        Blocks keep their order and are never split. A partition has about TARGET_BYTES, or one
        block that is larger. A small frame is spread over up to 16 partitions, if it had them.
        A record has `width` values, by default one of every column.
        """
        width = width or len(self.columns)
        return packed(self.block_counts, self.row_ids, width, n_partitions)


def packed(counts: NDArray[np.int64], row_ids: RowIds, width: int, n_partitions: int) -> list[int]:
    """Return the first key of every partition that blocks are packed into, and one beyond the last.

    Parameters
    ----------
    counts : ndarray of int64
        Records by block.
    row_ids : RowIds
    width : int
        Values of a record.
    n_partitions : int
        That records come from.
    """
    wanted = partitions_wanted(int(counts.sum()), width, n_partitions)
    share = max(1, -(-int(counts.sum()) // wanted))
    partition = (np.cumsum(counts) - counts) // share
    first = np.flatnonzero(np.diff(partition, prepend=-1))
    return row_ids.first_keys([*first.tolist(), len(counts)])


def place(
    frame: Frame,
    blocks: Blocks,
    scan: Scan,
    k: int,
    *,
    planned_here: bool,
    coding: Coding = NUMBERS,
    unit: Hashable | None = None,
) -> Placement:
    """Place the records of a frame into blocks.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        Of numbers.
    blocks : Blocks
    scan : Scan
        Of the frame.
    k : int
        No block may have fewer records.
    planned_here : bool
        Whether the blocks were planned for this very frame, so that their counts hold. If not,
        the records are counted and blocks below k are an error.
    coding : Coding, optional
        How the frame was made of that whose records depart.
    unit : column, optional
        Whose codes travel beside the values.
    """
    blocks = replace(blocks, leaves=blocks.leaves.counts_alone())
    needed = frame[blocks.needed()]
    counts = blocks.fused_counts
    if not planned_here:
        counts = map_reduce(needed, _count_fused, _add, blocks)
        small = int(((counts > 0) & (counts < k)).sum())
        if small:
            raise SdcValueError(
                f"{small} of {len(counts)} blocks have fewer than k={k} records of this frame: "
                "make the blocks from this frame, with this k."
            )
    cut = np.flatnonzero(parts_of(counts, blocks) > 1)
    rank_start: dict[int, NDArray[np.int64]] = {}
    if len(cut):
        by_partition = map_reduce(needed, _count_cut, _collect, blocks, cut)
        before = np.zeros(len(cut), np.int64)
        for number in sorted(by_partition):
            rank_start[number] = before
            before = before + by_partition[number]
    expected = scan.expected(blocks.columns)
    row_ids = RowIds.of(scan.rows)
    placement = Placement(blocks, expected, row_ids, counts, cut, rank_start, coding, unit)
    check_bits(len(placement.block_counts), placement.row_ids)
    return placement


def _count_fused(part: pd.DataFrame, _number: int, blocks: Blocks) -> NDArray[np.int64]:
    fused = blocks.fused_of(part, to_float(part, blocks.columns))
    return np.bincount(fused, minlength=int(blocks.fused.max()) + 1)


def _add(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(parts, axis=0)


def _count_cut(
    part: pd.DataFrame, number: int, blocks: Blocks, cut: NDArray[np.int64]
) -> dict[int, NDArray[np.int64]]:
    return {number: _count_fused(part, number, blocks)[cut]}


def _collect(parts: list[dict[int, NDArray[np.int64]]]) -> dict[int, NDArray[np.int64]]:
    return {number: counts for part in parts for number, counts in part.items()}
