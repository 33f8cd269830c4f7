"""Rank swapping: values go to records of similar rank, column by column."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import WHOLE, Blocks, plan_blocks
from sdc_dask.engine.coded import advise_coded
from sdc_dask.engine.columns import check_numeric, same_array, to_float
from sdc_dask.engine.exchange import Exchange, Swaps, count_present, lay_out
from sdc_dask.engine.frames import Frame, meta_of
from sdc_dask.engine.masks import BlockMask
from sdc_dask.engine.placement import place
from sdc_dask.engine.scan import scan
from sdc_dask.engine.sort import Piece, Present, plan_order
from sdc_dask.engine.sort_keys import check_sortable
from sdc_dask.engine.strata import Strata, StrataRule
from sdc_dask.engine.trip import Step
from sdc_dask.errors import FractionAdvice, SdcValueError, warn
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.kernels.swaps import (
    BucketSwaps,
    DistributionSwaps,
    Sources,
    WindowSwaps,
    share_of,
    window_of,
)
from sdc_dask.masking.spec import Spec, needed, option

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

    def reach(self, n: int) -> int:
        """Return how many of n ranks values move at most."""
        return max(1, window_of(n, self.p)) if self.method == "standard" and self.p else n


@dataclass(frozen=True, repr=False)
class RankSwap(Spec):
    """Swap values between records of similar rank, every column on its own.

    Parameters
    ----------
    columns : list
        Columns whose values have an order: numbers, dates, texts, ordered categories.
    p : float
        Percentage of the records, above 0 and up to 100: how far values go. Of the methods
        "standard" and "distribution".
    method : {"standard", "distribution", "buckets"}, default "standard"
        The ranks are visited in ascending order, and each that has no partner yet is given one
        that has none either, so that every value moves once:

        - "standard": from the next p percent of the ranks, all alike. No value goes farther.
        - "distribution": at a distance that is normally distributed, with mean and deviation p/2
          percent of the ranks. A distance beyond an end is reflected there, and a rank that has a
          partner makes room to the nearest that has none. Every distance occurs.
        - "buckets": from one of `buckets` ranges of ranks: the own one with the probability 1/2,
          the next with 1/4, and so on, and any rank of it that is above, all alike.

        If the number of ranks is odd, the lowest value and two others go round. (With a window of
        a single rank that is impossible, and the highest value stays.)
    buckets : int
        Number of buckets, of the method "buckets" alone.
    blocking : {None, "tree", "halves", "univariate"} or Blocks, default None
        By default ranks are those of all records. With blocks, which must be of numeric columns,
        ranks and percentages are those of each block: values go to records that are similar in
        all columns, which keeps the relations between columns much better.
    max_block : int or "auto", default "auto"
        L: a block with more records is split. "auto" is 1,000, or ten times the smallest block
        that p allows.
    by : name or list of names, optional
        Strata: columns whose values swaps never cross.
    missing : {"keep", "error"}, default "keep"
        "keep" leaves missing cells where they are; "error" names the columns that have some.
    missing_values : list of numbers, optional
        That stand for missing cells, such as -9 or 9999. These are missing in what is masked, and
        are treated as `missing` says. Measures compare it with a frame in which they are missing.
    top, bottom : float, optional
        Percentages of the ranks whose values are replaced by their mean before the swap (rounded
        in columns of integers). Without, the largest value of all is still released, at another
        record, and may be known to everybody as that of one person.

    Examples
    --------
    >>> from sdc_dask import RankSwap
    >>> spec = RankSwap(["rent"], p=5)
    >>> spec
    RankSwap(columns=['rent'], p=5.0)
    >>> spec.moves, spec.promise is None
    (True, True)
    """

    kind: ClassVar[str] = "rank_swap"
    draws: ClassVar[bool] = True
    keeps_dtypes: ClassVar[bool] = True

    columns: Any = needed("columns to mask, whose values have an order")
    p: float | None = option(None, "percentage of the records: how far values go")
    _: KW_ONLY
    method: str = option("standard", f"how partners are drawn: {', '.join(METHODS)}")
    buckets: int | None = option(None, "of buckets: their number")
    blocking: str | Blocks | None = option(None, "tree, halves, univariate or none")
    max_block: int | str = option("auto", "largest block of records")
    by: Any = option(None, "columns whose values swaps never cross")
    missing: str = option("keep", "keep, or error")
    missing_values: Any = option(None, "numbers that stand for missing cells, such as -9")
    top: float | None = option(None, "percentage of the largest values that become their mean")
    bottom: float | None = option(None, "percentage of the smallest values that become their mean")

    def __post_init__(self) -> None:
        columns = arguments.column_list(self.columns)
        kept: dict[str, Any] = {"columns": columns}
        kept["by"] = arguments.strata_columns(self.by, columns)
        arguments.one_of(self.method, "method", METHODS)
        arguments.one_of(self.missing, "missing", ["keep", "error"])
        kept["missing_values"] = arguments.codes(self.missing_values, "missing_values")
        kept["max_block"] = arguments.block_size(self.max_block, 2)
        kept |= self._checked_reach() | self._checked_extremes()
        if isinstance(self.blocking, Blocks):
            self._check_reuse(self.blocking, columns, kept["by"])
        else:
            arguments.one_of(self.blocking, "blocking", [*BLOCKINGS, None])
            if self.blocking is None:
                arguments.no_block_size(kept["max_block"])
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def _checked_reach(self) -> dict[str, Any]:
        if self.method == "buckets":
            if self.p is not None:
                raise SdcValueError(
                    "p has no meaning with method='buckets': leave it out, name buckets=."
                )
            if self.buckets is None:
                raise SdcValueError(
                    "method='buckets' needs buckets=, the number of buckets: name it."
                )
            return {"buckets": arguments.whole_number(self.buckets, "buckets", 1)}
        if self.buckets is not None:
            raise SdcValueError(
                f"buckets has no meaning with method={self.method!r}: leave it out."
            )
        if self.p is None:
            raise SdcValueError(
                f"method={self.method!r} needs p=, a percentage of the ranks: name it."
            )
        return {"p": arguments.percentage(self.p, "p")}

    def _checked_extremes(self) -> dict[str, Any]:
        given = {"top": self.top, "bottom": self.bottom}
        shares = {
            name: arguments.percentage(share, name)
            for name, share in given.items()
            if share is not None
        }
        if sum(shares.values()) > 100:
            raise SdcValueError(
                "top and bottom must not exceed 100 percent together, received "
                f"{sum(shares.values()):g}."
            )
        if shares and self.blocking is not None:
            raise SdcValueError(
                "top and bottom are shares of all ranks, and blocks have ranks of their own: use "
                "blocking=None."
            )
        return shares

    def _check_reuse(
        self, blocks: Blocks, columns: tuple[Hashable, ...], by: tuple[Hashable, ...]
    ) -> None:
        if self.max_block != "auto":
            raise SdcValueError("max_block has no meaning with blocks that are made: leave it out.")
        if blocks.columns != columns:
            raise SdcValueError(
                "blocking= has blocks of other columns: pass the columns that the blocks were made "
                "of, in that order."
            )
        if blocks.strata.rule != StrataRule(by):
            raise SdcValueError(
                "`by` must be that which the blocks were made with, and missing cells must not be "
                "separate in them: make the blocks again."
            )

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """Every column on its own, unless they have blocks in common."""
        return (self.columns,) if self.in_blocks else tuple((each,) for each in self.columns)

    @property
    def moves(self) -> bool:
        """Whether every column keeps its values: all of them, unless extremes are averaged."""
        return self.top is None and self.bottom is None

    @property
    def in_blocks(self) -> bool:
        """Whether ranks are those of blocks."""
        return self.blocking is not None

    def describe(self) -> str:
        """Return a few words for people."""
        reach = f"p = {self.p:g} %" if self.p is not None else f"{self.buckets:,} buckets"
        return f"rank swapping, {self.method}, {reach}"

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and their values have an order."""
        meta = arguments.unique_columns(frame)
        arguments.existing(meta, self.columns, "columns")
        arguments.check_strata_columns(meta, self.by)
        if self.in_blocks:
            check_numeric(meta, self.columns, ", as blocks need")
        elif not self.moves:
            check_numeric(meta, self.columns, ", as top and bottom need")
        elif self.missing_values:
            check_numeric(meta, self.columns, ", as missing_values need")
        else:
            check_sortable(meta, self.columns)

    def plan(self, frame: Frame, entropy: int) -> list[Step]:
        """Count values and plan the order of every column, or the blocks."""
        rule = SwapRule(self.method, self.p, self.buckets, entropy)
        planned = _plan_blocks if self.in_blocks else _plan_ranks
        steps = planned(frame, self, rule)
        if self.p is not None and self.p < 1:
            warn(
                f"p={self.p:g} is a percentage, so that values hardly move. If a fraction was "
                f"meant, pass p={100 * self.p:g}.",
                FractionAdvice,
            )
        return steps


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
    def reach(self) -> int:
        """How many ranks values move at most, in any stratum."""
        return max(map(self.rule.reach, self.counts.tolist()), default=0)

    @property
    def looks_first(self) -> bool:
        """Whether extremes are averaged, which takes a look at all of them."""
        return bool(self.top or self.bottom)

    def sources(self, stratum: int) -> Sources:
        """Return the sources of a stratum."""
        return self.rule.sources(int(self.counts[stratum]), _GLOBAL, self.stream, stratum)

    def summarize(self, piece: Piece, ranks: NDArray[np.int64]) -> dict[tuple[int, str], ExactSum]:
        """Add up the extremes of a piece, by stratum."""
        sums = {}
        for stratum, side, slots in self._extremes(piece, ranks):
            values = to_float(piece.values.iloc[slots].to_frame(), [piece.values.name])[:, 0]
            infinite = int(np.isinf(values).sum())
            if infinite:
                raise SdcValueError(
                    f"column {piece.values.name!r} has {infinite} infinite values among its "
                    f"extremes, which have no mean: replace them first, or leave out {side}=."
                )
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
        self, piece: Piece, ranks: NDArray[np.int64], known: dict[tuple[int, str], ExactSum]
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

    def _extremes(self, piece: Piece, ranks: NDArray[np.int64]) -> list[tuple[int, str, slice]]:
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


def _plan_ranks(frame: Frame, spec: RankSwap, rule: SwapRule) -> list[Step]:
    strata_rule = StrataRule(spec.by)
    counted = count_present(frame, spec.columns, strata_rule)
    if sum(counted.rows) == 0:
        raise SdcValueError("the frame has no records: there is nothing to swap.")
    if spec.missing == "error":
        _check_missing(spec.columns, counted.missing())
    advise_coded(counted.ends)
    meta = meta_of(frame)
    steps = []
    for stream, (column, counts) in enumerate(zip(spec.columns, counted.strata, strict=True)):
        strata = strata_rule.strata(counts)
        _check_ranks(column, strata, spec)
        order = plan_order(frame, Present(column, meta[column].dtype), strata, counted.rows)
        swaps = ColumnSwaps(rule, strata.counts, stream, spec.top or 0.0, spec.bottom or 0.0)
        steps.append(Step(order, Exchange(order, lay_out(frame, order), swaps), moved=True))
    return steps


def _check_missing(columns: Sequence[Hashable], missing: Sequence[int]) -> None:
    found = [f"{name!r} ({count})" for name, count in zip(columns, missing, strict=True) if count]
    if found:
        raise SdcValueError(
            f"missing cells in columns: {', '.join(found)}. Fill or drop them first, or pass "
            "missing='keep' to leave them where they are."
        )


def _check_ranks(column: Hashable, strata: Strata, spec: RankSwap) -> None:
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
    p = spec.p
    if spec.method == "standard" and p is not None:
        short = sum(share_of(n, p) < 1 for n in held.tolist())
        if short:
            enough = _round_up(100 / held.min())
            remedy = f"Use p of at least {enough:g}."
            if p < 1:
                remedy = (
                    f"p is a percentage: for {100 * p:g} percent pass p={100 * p:g}. "
                    f"Use at least {enough:g}."
                )
            raise SdcValueError(
                f"p={p:g} percent of {held.min()} values is less than one rank "
                f"{where.format(short)}: nothing would be swapped. {remedy}"
            )
    buckets = spec.buckets
    if buckets is not None and buckets > held.min():
        raise SdcValueError(
            f"buckets must not exceed the number of values, {held.min()} "
            f"{where.format(int((held < buckets).sum()))}, received {buckets}."
        )
    for share, name in ((spec.top, "top"), (spec.bottom, "bottom")):
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


def _plan_blocks(frame: Frame, spec: RankSwap, rule: SwapRule) -> list[Step]:
    strata_rule = StrataRule(spec.by)
    scanned = scan(frame, spec.columns, [strata_rule])
    if scanned.n == 0:
        raise SdcValueError("the frame has no records: there is nothing to swap.")
    scanned.check(spec.missing, ", or pass missing='keep' to leave them where they are")
    scanned.advise(averaged=False)
    (strata,) = scanned.strata([strata_rule])
    # So many records that p percent of them is a rank, or that every bucket has one.
    p, buckets = spec.p, spec.buckets
    smallest = max(2, buckets or 0, math.ceil(100 / p) if p is not None else 0)
    if isinstance(spec.blocking, Blocks):
        placement = place(frame, spec.blocking, scanned, 2, planned_here=False)
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
        size = spec.max_block
        size = max(LARGEST_BLOCK, 10 * smallest) if isinstance(size, str) else size
        if size < smallest:
            raise SdcValueError(
                f"max_block must be at least {smallest}, so that a block has a partner for every "
                f"value, received {size}."
            )
        coordinates = scanned.coordinates(spec.columns, standardize=True)
        blocks = plan_blocks(
            frame,
            scanned,
            strata,
            spec.columns,
            coordinates,
            k=smallest,
            max_block=size,
            method=spec.blocking or WHOLE,
        )
        placement = place(frame, blocks, scanned, smallest, planned_here=True)
    return [Step(placement, SwapBlocks(rule), moved=True)]
