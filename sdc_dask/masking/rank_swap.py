"""Rank swapping: values go to records of similar rank, column by column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import WHOLE, Blocks, plan_blocks
from sdc_dask.engine.columns import check_numeric, same_array, to_float
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.masks import BlockMask
from sdc_dask.engine.placement import place
from sdc_dask.engine.ranks import (
    RankOrder,
    RankPiece,
    Swaps,
    count_present,
    plan_ranks,
    put_swapped,
    swap_column,
)
from sdc_dask.engine.route import Home, put_back, there_and_back
from sdc_dask.engine.scan import scan
from sdc_dask.engine.sort_keys import check_sortable
from sdc_dask.engine.strata import Strata, StrataRule
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.kernels.swaps import (
    BucketSwaps,
    DistributionSwaps,
    Sources,
    WindowSwaps,
    share_of,
    window_of,
)

METHODS = ("standard", "distribution", "buckets")
LARGEST_BLOCK = 1_000  # what max_block="auto" stands for, unless p needs more
_GLOBAL, _BLOCKS = 0, 1  # streams of random numbers never meet


@dataclass(frozen=True)
class SwapRule:
    """How partners are drawn, for any number of ranks."""

    method: str
    p: float | None
    buckets: int | None
    entropy: int = field(repr=False)

    def sources(self, n: int, *stream: int, least: int = 1) -> Sources:
        """Return the sources of n ranks, from the first rank on.

        A window, which the standard method alone has, reaches `least` ranks or more.
        """
        seed = np.random.SeedSequence(self.entropy, spawn_key=stream)
        rng = np.random.default_rng(seed)
        if self.method == "buckets":
            assert self.buckets is not None
            return BucketSwaps(n, min(n, self.buckets), rng)
        assert self.p is not None
        if self.method == "distribution":
            return DistributionSwaps(n, self.p, rng)
        return WindowSwaps(n, max(least, window_of(n, self.p)), rng)


@dataclass(frozen=True)
class SwapRequest:
    """The arguments of a rank swapping, checked before any data is read."""

    columns: tuple[Hashable, ...]
    rule: SwapRule
    blocking: str | Blocks | None
    max_block: int | str
    by: tuple[Hashable, ...]
    missing: str
    top: float
    bottom: float


def rank_swap_request(
    frame: Frame,
    columns: Any,
    p: Any,
    *,
    method: Any,
    buckets: Any,
    blocking: Any,
    max_block: Any,
    by: Any,
    missing: Any,
    top: Any,
    bottom: Any,
    random_state: Any,
) -> SwapRequest:
    """Check the arguments of a rank swapping against the frame's columns and dtypes."""
    meta = arguments.unique_columns(frame)
    names = arguments.single_columns(meta, columns)
    strata = arguments.strata_columns(frame, by, (names,))
    arguments.one_of(method, "method", METHODS)
    arguments.one_of(missing, "missing", ["keep", "error"])
    if method == "buckets":
        if p is not None:
            raise SdcValueError(
                "p has no meaning with method='buckets': leave it out, name buckets=."
            )
        if buckets is None:
            raise SdcValueError("method='buckets' needs buckets=, the number of buckets: name it.")
        buckets = arguments.whole_number(buckets, "buckets", 1)
    else:
        if buckets is not None:
            raise SdcValueError(f"buckets has no meaning with method={method!r}: leave it out.")
        if p is None:
            raise SdcValueError(f"method={method!r} needs p=, a percentage of the ranks: name it.")
        p = arguments.percentage(p, "p")
    top, bottom = (
        0.0 if share is None else arguments.percentage(share, name)
        for share, name in ((top, "top"), (bottom, "bottom"))
    )
    if top + bottom > 100:
        raise SdcValueError(
            f"top and bottom must not exceed 100 percent together, received {top + bottom:g}."
        )
    if blocking is None:
        check_sortable(meta, names)
        if max_block != "auto":
            raise SdcValueError(
                "max_block has no meaning without blocks: leave it out, or name a blocking."
            )
        if top or bottom:
            check_numeric(meta, names, ", as top and bottom need")
    else:
        check_numeric(meta, names, ", as blocks need")
        if top or bottom:
            raise SdcValueError(
                "top and bottom are shares of all ranks, and blocks have ranks of their own: use "
                "blocking=None."
            )
        if not isinstance(blocking, Blocks):
            arguments.one_of(blocking, "blocking", [*BLOCKINGS, None])
    if isinstance(blocking, Blocks):
        if max_block != "auto":
            raise SdcValueError("max_block has no meaning with blocks that are made: leave it out.")
        _check_blocks(meta, blocking, names, strata)
    size = arguments.block_size(max_block, 2)
    rule = SwapRule(method, p, buckets, arguments.entropy(random_state))
    return SwapRequest(names, rule, blocking, size, strata, missing, top, bottom)


def _check_blocks(
    meta: pd.DataFrame, blocks: Blocks, names: tuple[Hashable, ...], by: tuple[Hashable, ...]
) -> None:
    if blocks.columns != names:
        raise SdcValueError(
            "blocking= has blocks of other columns: pass the columns that the blocks were made of, "
            "in that order."
        )
    if blocks.strata.rule != StrataRule(by):
        raise SdcValueError(
            "`by` must be that which the blocks were made with, and missing cells must not be "
            "separate in them: make the blocks again."
        )


def rank_swap(frame: Frame, request: SwapRequest) -> Frame:
    """Plan, and return the swapped frame: lazily if the frame is a Dask frame."""
    if request.blocking is None:
        return _swap_all(frame, request)
    return _swap_in_blocks(frame, request)


# Ranks over all records


@dataclass(frozen=True)
class ColumnSwaps(Swaps):
    """Swaps one column between ranks of all records, its extremes averaged before if asked for."""

    rule: SwapRule
    counts: NDArray[np.int64]  # values by stratum
    stream: int  # columns draw independently
    top: float
    bottom: float

    @property
    def looks_first(self) -> bool:
        """Whether extremes are averaged, which takes a look at all of them."""
        return bool(self.top or self.bottom)

    def sources(self, stratum: int) -> Sources:
        """Return the sources of a stratum."""
        return self.rule.sources(int(self.counts[stratum]), _GLOBAL, self.stream, stratum)

    def summarize(
        self, piece: RankPiece, ranks: NDArray[np.int64]
    ) -> dict[tuple[int, str], ExactSum]:
        """Add up the extremes of a piece, by stratum."""
        sums = {}
        for stratum, side, slots in self._extremes(piece, ranks):
            values = to_float(piece.values.iloc[slots].to_frame(), [piece.values.name])[:, 0]
            sums[stratum, side] = exact_sum(values)
        return sums

    def merge(self, parts: list[dict[tuple[int, str], ExactSum]]) -> dict:
        """Add up the extremes of all pieces."""
        total: dict[tuple[int, str], ExactSum] = {}
        for part in parts:
            for key, sums in part.items():
                total[key] = total.get(key, ExactSum()) + sums
        return total

    def change(
        self, piece: RankPiece, ranks: NDArray[np.int64], known: dict[tuple[int, str], ExactSum]
    ) -> pd.Series:
        """Replace extremes by their mean; integers by the mean rounded to an integer."""
        values = piece.values
        for stratum, side, slots in self._extremes(piece, ranks):
            mean = known[stratum, side].mean
            whole = not pd.api.types.is_float_dtype(values.dtype)
            array = values.array.copy()
            array[slots] = same_array(np.array([round(mean) if whole else mean]), values.dtype)[0]
            values = pd.Series(array, name=values.name)
        return values

    def _extremes(self, piece: RankPiece, ranks: NDArray[np.int64]) -> list[tuple[int, str, slice]]:
        """Return the places of extremes in a piece, by stratum and side."""
        found = []
        for i, stratum in enumerate(piece.strata.tolist()):
            begin, end, rank = int(piece.bounds[i]), int(piece.bounds[i + 1]), int(ranks[i])
            n = int(self.counts[stratum])
            lows, highs = share_of(n, self.bottom), share_of(n, self.top)
            last = min(end, begin + max(0, lows - rank))
            first = max(begin, begin + n - highs - rank)
            found += [(stratum, "bottom", slice(begin, last))] if last > begin else []
            found += [(stratum, "top", slice(first, end))] if first < end else []
        return found


def _swap_all(frame: Frame, request: SwapRequest) -> Frame:
    rule = StrataRule(request.by)
    counted = count_present(frame, request.columns, rule)
    if sum(counted.rows) == 0:
        raise SdcValueError("the frame has no records: there is nothing to swap.")
    if request.missing == "error":
        _check_missing(request.columns, counted.missing())
    orders: list[RankOrder] = []
    homes: list[Home] = []
    for stream, (column, counts) in enumerate(zip(request.columns, counted.strata, strict=True)):
        strata = rule.strata(counts)
        _check_ranks(column, strata, request)
        order = plan_ranks(frame, column, strata, counted.rows)
        swaps = ColumnSwaps(request.rule, strata.counts, stream, request.top, request.bottom)
        orders.append(order)
        after = homes[-1].done if homes else None
        homes.append(swap_column(frame, order, swaps, after))
    return put_swapped(frame, homes, orders)


def _check_missing(columns: Sequence[Hashable], missing: Sequence[int]) -> None:
    found = [f"{name!r} ({count})" for name, count in zip(columns, missing, strict=True) if count]
    if found:
        raise SdcValueError(
            f"missing cells in columns: {', '.join(found)}. Fill or drop them first, or pass "
            "missing='keep' to leave them where they are."
        )


def _check_ranks(column: Hashable, strata: Strata, request: SwapRequest) -> None:
    """Refuse strata in which values would stay where they are, or extremes alone."""
    held = strata.counts[strata.counts > 0]
    if not len(held):
        raise SdcValueError(f"column {column!r} has no values: leave it out.")
    where = (
        f"of column {column!r}, in {{}} of {len(held)} strata"
        if len(held) > 1
        else (f"of column {column!r}")
    )
    alone = int((held < 2).sum())
    if alone:
        what = "Merge rare strata, or drop those records" if len(held) > 1 else "Leave it out"
        raise SdcValueError(
            f"there is a single value {where.format(alone)}: it cannot be swapped. {what}."
        )
    p = request.rule.p
    if request.rule.method == "standard" and p is not None:
        short = sum(share_of(n, p) < 1 for n in held.tolist())
        if short:
            enough = _round_up(100 / held.min())
            raise SdcValueError(
                f"p={p:g} percent of {held.min()} values is less than one rank "
                f"{where.format(short)}: nothing would be swapped. Use p of at least {enough:g}."
            )
    buckets = request.rule.buckets
    if buckets is not None and buckets > held.min():
        raise SdcValueError(
            f"buckets must not exceed the number of values, {held.min()} "
            f"{where.format(int((held < buckets).sum()))}, received {buckets}."
        )
    for share, name in ((request.top, "top"), (request.bottom, "bottom")):
        few = sum(share_of(n, share) < 2 for n in held.tolist()) if share else 0
        if few:
            raise SdcValueError(
                f"{name}={share:g} percent are fewer than two values {where.format(few)}: they "
                "would hide nobody. Use a larger share, or leave it out."
            )


def _round_up(share: float) -> float:
    """Round up to two digits."""
    unit = 10.0 ** (math.floor(math.log10(share)) - 1)
    return math.ceil(share / unit - 1e-9) * unit


# Ranks within blocks


@dataclass(frozen=True)
class SwapBlocks(BlockMask):
    """Swaps every column between ranks of each block."""

    rule: SwapRule

    def mask(
        self,
        values: NDArray[np.float64],
        bounds: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Swap the values of a partition's blocks; missing cells stay."""
        swapped = values.copy()
        for number, (begin, end) in zip(numbers.tolist(), itertools.pairwise(bounds), strict=True):
            for j in range(values.shape[1]):
                block = values[begin:end, j]
                present = np.flatnonzero(~np.isnan(block))
                if len(present) < 2:
                    continue
                order = present[np.argsort(block[present], kind="stable")]
                n = len(order)
                # Of an odd number, a window of one rank would leave one value where it is.
                least = 2 if n % 2 and n > 2 else 1
                sources = self.rule.sources(n, _BLOCKS, j, number, least=least).draw(n)
                swapped[begin + order, j] = block[order[sources]]
        return swapped


def _swap_in_blocks(frame: Frame, request: SwapRequest) -> Frame:
    rule = StrataRule(request.by)
    scanned = scan(frame, request.columns, [rule])
    if scanned.n == 0:
        raise SdcValueError("the frame has no records: there is nothing to swap.")
    scanned.check(request.missing, ", or pass missing='keep' to leave them where they are")
    (strata,) = scanned.strata([rule])
    # So many records that p percent of them is a rank, or that every bucket has one.
    p, buckets = request.rule.p, request.rule.buckets
    smallest = max(2, buckets or 0, math.ceil(100 / p) if p is not None else 0)
    if isinstance(request.blocking, Blocks):
        placement = place(frame, request.blocking, scanned, 2, planned_here=False)
        fewest = int(placement.block_counts.min())
        if fewest < smallest:
            raise SdcValueError(
                f"the smallest block has {fewest} records, and "
                f"{f'p={p:g}' if p is not None else f'buckets={buckets}'} needs {smallest}: make "
                f"the blocks with k={smallest}, or swap more."
            )
    else:
        small = int((strata.counts < smallest).sum())
        if small:
            raise SdcValueError(
                f"{small} of {len(strata)} strata have fewer than {smallest} records, which is "
                f"what {f'p={p:g}' if p is not None else f'buckets={buckets}'} needs, the smallest "
                f"{strata.counts.min()}. Merge rare values, or swap more."
            )
        size = request.max_block
        size = max(LARGEST_BLOCK, 10 * smallest) if isinstance(size, str) else size
        if size < smallest:
            raise SdcValueError(
                f"max_block must be at least {smallest}, so that a block has a partner for every "
                f"value, received {size}."
            )
        coordinates = scanned.coordinates(request.columns, standardize=True)
        blocks = plan_blocks(
            frame,
            scanned,
            strata,
            request.columns,
            coordinates,
            k=smallest,
            max_block=size,
            method=request.blocking or WHOLE,
        )
        placement = place(frame, blocks, scanned, smallest, planned_here=True)
    swapped = there_and_back(frame, placement, SwapBlocks(request.rule))
    return put_back(frame, [swapped], [placement], same_dtypes=True)
