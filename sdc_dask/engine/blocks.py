"""The plan of a masking: which block every record belongs to."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import plots
from sdc_dask.blocking.cells import Cells, merge_cells
from sdc_dask.blocking.fusion import centres, fill, fuse
from sdc_dask.blocking.leaves import Leaves
from sdc_dask.blocking.single import leave_whole
from sdc_dask.blocking.tree import grow
from sdc_dask.blocking.univariate import cut_intervals
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, fold, map_reduce, memory_per_task
from sdc_dask.engine.projections import Axes
from sdc_dask.engine.scan import Expected, Scan
from sdc_dask.engine.strata import Strata
from sdc_dask.errors import SdcKeyError, SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.results import as_html, several

METHODS = ("tree", "halves", "univariate")
TREES = ("tree", "halves")
# Of counts that one pass over the data may bring, and their share of a worker's memory, which holds
# them some times over while counts of a partition are merged into them.
MOST_BYTES = 2**26
SHARE = 16
WHOLE = "whole"  # the method of blocking=None


class Locator(Protocol):
    """Tells the leaf of a record."""

    def leaf_of(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell the leaf of every record."""


class CountingLocator(Locator, Protocol):
    """Counts records where the plan needs it."""

    def count(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> Cells:
        """Count records by cell."""


@dataclass(frozen=True, eq=False, repr=False)
class Blocks:
    """Blocks of records, as :meth:`df.sdc.blocks` plans them.

    The plan is small and holds no records. Pass it as ``blocking=`` to mask by it, pickle it, or
    look at :attr:`counts` and :attr:`table`. Its bounds are values of the data: do not publish it.
    A plan equals itself alone.

    Attributes
    ----------
    columns : tuple
        The columns that are masked together.
    k : int
        Every block has at least this many records.
    max_block : int
        L: a leaf with more records was split.
    method : str
        How the blocks were cut.
    passes : int
        Passes over the data that planning took after the first scan.
    """

    columns: tuple[Hashable, ...]
    k: int
    max_block: int
    method: str
    passes: int
    strata: Strata = field(repr=False)
    locator: Locator = field(repr=False)
    leaves: Leaves = field(repr=False)
    fused: NDArray[np.int64] = field(repr=False)  # by leaf: its number after fusion
    fill: NDArray[np.float64] = field(repr=False)  # stands for missing cells, by column
    axes: Axes | None = field(repr=False, default=None)  # what is cut, if not the columns
    whole_leaves: bool = field(repr=False, default=False)  # whether no leaf is cut in row order

    @property
    def counts(self) -> NDArray[np.int64]:
        """Records by block."""
        return cut_counts(self.fused_counts, self)

    @property
    def table(self) -> pd.DataFrame:
        """One row per block: records, leaves, stratum, and its bounds by column.

        The bounds are those of its records, except for a stratum that was not split: there they are
        the bounds of the data.
        """
        counts = self.fused_counts
        parts = parts_of(counts, self)
        held = np.flatnonzero(self.leaves.count > 0)
        order = held[np.argsort(self.fused[held], kind="stable")]
        first = np.flatnonzero(np.diff(self.fused[order], prepend=-1))
        low = np.minimum.reduceat(self.leaves.low[order], first)
        high = np.maximum.reduceat(self.leaves.high[order], first)
        columns = {
            "records": cut_counts(counts, self),
            "leaves": np.repeat(np.bincount(self.fused[held]), parts),
            "stratum": np.repeat(self.leaves.stratum[order][first], parts),
        }
        names = self.columns if self.axes is None else range(low.shape[1])
        for j, name in enumerate(names):
            column = name if self.axes is None else f"axis {name}"
            columns[f"{column} low"] = np.repeat(low[:, j], parts)
            columns[f"{column} high"] = np.repeat(high[:, j], parts)
        return pd.DataFrame(columns).rename_axis("block")

    def plot(self, x: Hashable = None, y: Hashable = None, ax: Any = None) -> Any:
        """Draw the bounds of blocks in two columns, coloured by their records.

        Bounds are values of the data: do not publish the picture. Needs matplotlib.

        Parameters
        ----------
        x, y : name, optional
            Columns, by default the first two.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        names = list(self.columns)
        if self.axes is not None:
            names = [f"axis {number}" for number in range(self.leaves.low.shape[1])]
        if len(names) < 2:
            raise SdcValueError(
                "blocks of one column have no picture in two dimensions: see table."
            )
        first = names[0] if x is None else x
        second = next(name for name in names if name != first) if y is None else y
        unknown = [name for name in (first, second) if name not in names]
        if unknown:
            raise SdcKeyError(
                f"blocks were not made of {', '.join(map(repr, unknown))}; they were of "
                f"{', '.join(map(repr, names))}."
            )
        title = (
            f"{several(len(self), 'block')} by {self.method} (k = {self.k}, L = {self.max_block:,})"
        )
        return plots.boxes(self.table, first, second, title, ax)

    def __len__(self) -> int:
        return len(self.counts)

    def _repr_html_(self) -> str:
        return as_html(repr(self))

    def __repr__(self) -> str:
        counts = self.counts
        leaves = self.leaves.count[self.leaves.count > 0]
        small = int((leaves < self.k).sum())
        passes = {0: "by the scan alone", 1: "in 1 pass over the data after the scan"}.get(
            self.passes, f"in {self.passes} passes over the data after the scan"
        )
        return (
            f"Blocks by {self.method}: {several(int(counts.sum()), 'record')} in "
            f"{several(len(counts), 'block')}\n"
            f"  columns   {', '.join(map(str, self.columns))}\n"
            f"  records   {counts.min():,} to {counts.max():,} per block, median "
            f"{int(np.median(counts)):,} (k = {self.k}, L = {self.max_block:,})\n"
            f"  leaves    {len(leaves):,}, of which {small:,} had fewer than k records and were "
            "fused\n"
            f"  strata    {len(self.strata):,}\n"
            f"  planned   {passes}"
        )

    @property
    def fused_counts(self) -> NDArray[np.int64]:
        """Records by fused leaf, before large ones are cut."""
        return np.bincount(self.fused, weights=self.leaves.count).astype(np.int64)

    def needed(self) -> list[Hashable]:
        """Columns that decide the block of a record."""
        return list(dict.fromkeys([*self.columns, *self.strata.rule.by]))

    def fused_of(self, part: pd.DataFrame, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Tell the fused leaf of every record of a partition, given its values as float64."""
        return self.fused[self.leaf_of(part, values)]

    def leaf_of(self, part: pd.DataFrame, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the leaf of every record of a partition, given its values as float64."""
        return self.leaf_at(values, self.strata.of(part))

    def leaf_at(self, values: NDArray[np.float64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the leaf of values, given their strata."""
        return self.locator.leaf_of(_view(values, self.fill, self.axes), stratum)


def _view(
    values: NDArray[np.float64], fill: NDArray[np.float64], axes: Axes | None
) -> NDArray[np.float64]:
    """Return what blocks are cut of: the values, without missing ones, or their projections."""
    missing = np.isnan(values)
    whole = np.where(missing, fill, values) if missing.any() else values
    return whole if axes is None else axes(whole)


def parts_of(counts: NDArray[np.int64], blocks: Blocks) -> NDArray[np.int64]:
    """Into how many blocks a fused leaf is cut in row order: each has L to 2L - 1 records.

    This happens where a tree does not cut: to records that are all equal in the columns, to what
    is left after its last pass, and to leaves that many small ones were fused with. The other
    methods promise no largest block.
    """
    if blocks.method not in TREES or blocks.whole_leaves:
        return np.ones_like(counts)
    return np.maximum(1, counts // blocks.max_block)


def cut_counts(counts: NDArray[np.int64], blocks: Blocks) -> NDArray[np.int64]:
    """Return the records by block, after large fused leaves are cut in row order."""
    parts = parts_of(counts, blocks)
    fused = np.repeat(np.arange(len(counts)), parts)
    part = np.arange(len(fused)) - np.repeat(np.cumsum(parts) - parts, parts)
    # The record of rank r goes to part r * parts // count; count the ranks below each border.
    total, number = counts[fused], parts[fused]
    return -(-(part + 1) * total // number) - -(-part * total // number)


def plan_blocks(
    frame: Frame,
    scan: Scan,
    strata: Strata,
    columns: Sequence[Hashable],
    coordinates: Coordinates,
    *,
    k: int,
    max_block: int,
    method: str,
    axes: Axes | None = None,
    smallest: int | None = None,
    shifted: bool = False,
) -> Blocks:
    """Plan blocks for a frame that was scanned.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    scan : Scan
        Of these columns.
    strata : Strata
        Each with at least k records.
    columns : sequence
        Masked together.
    coordinates : Coordinates
        For the distances between leaves.
    k, max_block : int
        Smallest block, and largest leaf.
    method : str
        One of METHODS, or WHOLE.
    axes : Axes, optional
        What is cut instead of the columns, in which `coordinates` then are. Its bounds take one
        more pass.
    smallest : int, optional
        Blocks with fewer records are fused with others of their stratum: k by default.
    shifted : bool, default False
        Of "halves": whether blocks are cut elsewhere than they would be otherwise.
    """
    fill, high = scan.bounds(columns)
    low = fill
    needed = list(dict.fromkeys([*columns, *strata.rule.by]))
    if axes is not None:
        expected = scan.expected(columns)
        low, high = map_reduce(
            frame[list(columns)], _bounds, _merge_bounds, axes, columns, expected
        )

    def count_pass(locator: CountingLocator) -> Cells:
        return fold(
            frame[needed],
            _count_partition,
            merge_cells,
            locator,
            list(columns),
            strata,
            fill,
            scan.expected(columns),
            axes,
        )

    locator: Locator
    if method == WHOLE:
        locator, leaves, passes = leave_whole(strata.counts, low, high)
    elif method == "univariate":
        locator, leaves, passes = cut_intervals(strata.counts, low, high, max_block, count_pass)
    else:
        memory = memory_per_task()
        most = MOST_BYTES if memory is None else min(MOST_BYTES, memory // SHARE)
        locator, leaves, passes = grow(
            strata.counts,
            low,
            high,
            coordinates,
            max_block,
            count_pass,
            most,
            widest=method == "halves",
            shifted=shifted,
        )
    largest = max_block if method == "halves" else None
    fused = _fuse_strata(leaves, coordinates, len(strata), smallest or k, largest)
    return Blocks(
        tuple(columns), k, max_block, method, passes, strata, locator, leaves, fused, fill, axes
    )


def _bounds(
    part: pd.DataFrame,
    number: int,
    axes: Axes,
    columns: Sequence[Hashable],
    expected: Expected,
) -> NDArray[np.float64]:
    values = to_float(part, columns)
    expected.check(number, values)
    projected = axes(values)
    return np.array([projected.min(axis=0, initial=np.inf), projected.max(axis=0, initial=-np.inf)])


def _merge_bounds(parts: list[NDArray[np.float64]]) -> NDArray[np.float64]:
    lows, highs = np.stack(parts, axis=1)
    return np.array([lows.min(axis=0), highs.max(axis=0)])


def _count_partition(
    part: pd.DataFrame,
    number: int,
    locator: CountingLocator,
    columns: list[Hashable],
    strata: Strata,
    fill: NDArray[np.float64],
    expected: Expected,
    axes: Axes | None,
) -> Cells:
    values = to_float(part, columns)
    expected.check(number, values)
    return locator.count(_view(values, fill, axes), strata.of(part))


def _fuse_strata(
    leaves: Leaves, coordinates: Coordinates, n_strata: int, k: int, largest: int | None
) -> NDArray[np.int64]:
    """Fuse the leaves of every stratum, and number the blocks one stratum after the other.

    Below k, all leaves are fused. If blocks are to be about as large as `largest`, those below a
    quarter of that are, too. Empty leaves go with the first block of their stratum: no record is in
    them.
    """
    fused = np.zeros(len(leaves), np.int64)
    order = np.argsort(leaves.stratum, kind="stable")
    bounds = np.searchsorted(leaves.stratum[order], np.arange(n_strata + 1))
    points = coordinates.points(leaves.centroid)
    base = 0
    for begin, end in itertools.pairwise(bounds):
        members = order[begin:end]
        held = members[leaves.count[members] > 0]
        centre, count = points[held], leaves.count[held]
        block = np.arange(len(held))
        if largest is not None:
            block = fill(centre, count, largest // 4, largest)
            centre, count = centres(centre, count, block)
        fused[members] = base
        fused[held] = base + fuse(centre, count, k)[block]
        base = int(fused[held].max()) + 1
    return fused
