"""Mic1D-kappa: the values of all columns in one sorted vector, cut into runs of kappa.

J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", doctoral thesis,
Universitat Autònoma de Barcelona, section 3.3.1. The steps are: put the values of all columns into
one vector, sort it, cut it into runs of kappa values (the last may have fewer), scale every run to
[0, 1]; sort, cut and scale again, which mixes columns of different magnitude; replace the values
of a run by their mean; undo the scaling.

Scaling a run, taking its mean and undoing the scaling is the mean of the run. So the second
scaling is not computed, and what remains is: the mean of the scaled values of a run, taken back to
where each value came from.
"""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.columns import check_numeric
from sdc_dask.engine.destinations import Values
from sdc_dask.engine.frames import Calls, Frame, Task
from sdc_dask.engine.masks import Then
from sdc_dask.engine.projections import Single
from sdc_dask.engine.row_ids import RowIds, partitions_wanted
from sdc_dask.engine.scan import scan
from sdc_dask.engine.sort import (
    Cells,
    Order,
    OrderMask,
    Piece,
    go_through,
    plan_order,
    sort_again,
)
from sdc_dask.engine.strata import StrataRule
from sdc_dask.engine.trip import Step
from sdc_dask.errors import SdcValueError, warn
from sdc_dask.kernels.runs import first_of_runs, last_of_runs, run_means, running_sums
from sdc_dask.masking.spec import Spec, needed, option


@dataclass(frozen=True, repr=False)
class Mic1D(Spec):
    """Mask the values of all columns in one vector: Mic1D-kappa.

    Parameters
    ----------
    columns : list
        Numeric columns without missing cells.
    kappa : int
        Values in a run, from 2 to the number of values; the last run may have fewer. It takes a
        tenth of all values or more to mask much: a small kappa hardly changes anything.
    by : name or list of names, optional
        Strata: columns whose values runs never mix.

    Examples
    --------
    >>> from sdc_dask import Mic1D
    >>> Mic1D(["age", "height"], kappa=5)
    Mic1D(columns=['age', 'height'], kappa=5)
    """

    kind: ClassVar[str] = "mic1d"

    columns: Any = needed("numeric columns to mask, all together")
    kappa: int = needed("values in a run")
    _: KW_ONLY
    by: Any = option(None, "columns whose values runs never mix")

    def __post_init__(self) -> None:
        columns = arguments.column_list(self.columns)
        object.__setattr__(self, "kappa", arguments.whole_number(self.kappa, "kappa", 2))
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "by", arguments.strata_columns(self.by, columns))

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns, whose values are masked together."""
        return (self.columns,)

    def describe(self) -> str:
        """Return a few words for people."""
        return f"Mic1D, kappa = {self.kappa:,}"

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and these are numbers."""
        meta = arguments.unique_columns(frame)
        arguments.existing(meta, self.columns, "columns")
        check_numeric(meta, self.columns)
        arguments.check_strata_columns(meta, self.by)

    def plan(self, frame: Frame, entropy: int = 0) -> list[Step]:
        """Scan a frame and plan the order of its values."""
        columns, rule = self.columns, StrataRule(self.by)
        scanned = scan(frame, columns, [rule])
        if scanned.n == 0:
            raise SdcValueError("the frame has no records: there is nothing to mask.")
        scanned.check()
        scanned.advise(averaged=True, named=False)
        (strata,) = scanned.strata([rule])
        _check_kappa(self.kappa, strata.counts * len(columns))
        # The difference between two of the largest numbers overflows; a smaller power of two does
        # not.
        largest = np.abs(scanned.bounds(columns)).max()
        exponent = 4 if largest > 1e300 else 0
        items = Cells(columns, Single(), scanned.expected(columns))
        order = plan_order(frame, items, strata, scanned.rows)
        ranges = partitions_wanted(scanned.n * len(columns), 4, len(scanned.rows))
        return [Step(order, Mic1dMask(ScaleRuns(self.kappa, exponent, order), ranges))]


def _check_kappa(kappa: int, cells: NDArray[np.int64]) -> None:
    """Refuse a kappa that does not fit the values of the strata, and warn of one that is small."""
    smallest, largest = int(cells.min()), int(cells.max())
    if kappa > smallest:
        where = "the smallest stratum" if len(cells) > 1 else "the columns"
        raise SdcValueError(
            f"kappa must be from 2 to the number of values of {where}, {smallest}, received "
            f"{kappa}."
        )
    alone = int((cells % kappa == 1).sum())
    if alone:
        raise SdcValueError(
            f"kappa={kappa} leaves a run of a single value, which would be released as it is, in "
            f"{alone} of {len(cells)} strata: choose another kappa."
        )
    runs = -(-largest // kappa)
    if runs >= kappa:
        warn(
            f"kappa={kappa} is small for {largest} values: {runs} runs have a smallest and a "
            "largest value each, which fill whole runs of their own when they are sorted again, "
            "and come back as they were. Use a kappa above the root of the number of values."
        )


@dataclass(frozen=True)
class Mic1dMask:
    """Scales runs in the order of the values, and averages runs in the order that follows."""

    scale: ScaleRuns
    ranges: int

    def run(self, call: Calls, parts: list[Task], row_ids: RowIds, then: Then) -> list[Task]:
        """Mask the cells of all partitions."""
        scaled = self.scale.run(call, parts, row_ids, _keep)
        n_strata = len(self.scale.order.strata)
        pieces = sort_again(call, scaled, row_ids, 4, n_strata, self.ranges)
        mean = AverageRuns(self.scale.kappa, self.scale.exponent, self.scale.order)
        return go_through(call, mean, pieces, then)


def _keep(
    rows: NDArray[np.int64], values: Values, _number: int
) -> tuple[NDArray[np.int64], Values]:
    return rows, values


@dataclass(frozen=True)
class Open:
    """A run that goes on in the next piece, or came from the one before."""

    stratum: int
    rank: int  # values of the stratum before
    first: float = 0.0
    last: float = 0.0
    total: float = 0.0
    count: int = 0


@dataclass(frozen=True)
class ScaleRuns(OrderMask):
    """Scales runs of kappa values to [0, 1].

    Of every value come back: what it became, the bounds of its run, and its stratum.
    """

    kappa: int
    exponent: int  # bounds are divided by so large a power of two
    order: Order

    def forward(
        self, piece: Piece, state: Open | None
    ) -> tuple[list[tuple[int, NDArray[np.float64]]], Open | None]:
        """Find the first values of runs."""
        kept = []
        for number, (begin, end) in enumerate(itertools.pairwise(piece.bounds)):
            values, stratum = piece.values[begin:end, 0], int(piece.strata[number])
            rank, first = 0, 0.0
            if number == 0 and state is not None and state.stratum == stratum:
                rank, first = state.rank, state.first
            firsts = first_of_runs(values, rank, self.kappa, first)
            kept.append((rank, firsts))
            state = Open(stratum, rank + len(values), first=firsts[-1])
        return kept, state

    def backward(
        self, piece: Piece, kept: list[tuple[int, NDArray[np.float64]]], state: Open | None
    ) -> tuple[NDArray[np.float64], Open | None]:
        """Find the last values of runs, and scale them."""
        scaled = np.empty((len(piece.values), 4))
        for number in reversed(range(len(kept))):
            begin, end = piece.bounds[number], piece.bounds[number + 1]
            values, stratum = piece.values[begin:end, 0], int(piece.strata[number])
            rank, firsts = kept[number]
            last = values[-1]
            if state is not None and state.stratum == stratum:
                last = state.last
            lasts = last_of_runs(values, rank, self.kappa, last)
            small, low, high = (np.ldexp(x, -self.exponent) for x in (values, firsts, lasts))
            width = high - low
            with np.errstate(invalid="ignore"):
                scaled[begin:end, 0] = np.where(width > 0, (small - low) / width, 0.5)
            scaled[begin:end, 1] = low
            scaled[begin:end, 2] = high
            scaled[begin:end, 3] = stratum
            state = Open(stratum, rank, last=lasts[0])
        return scaled, state


@dataclass(frozen=True)
class AverageRuns(OrderMask):
    """Replaces scaled values by the mean of their run, and takes it back to their old bounds."""

    kappa: int
    exponent: int
    order: Order

    def forward(
        self, piece: Piece, state: Open | None
    ) -> tuple[list[tuple[int, NDArray[np.float64], NDArray[np.float64]]], Open | None]:
        """Add up runs."""
        kept = []
        for number, (begin, end) in enumerate(itertools.pairwise(piece.bounds)):
            values, stratum = piece.values[begin:end, 0], int(piece.strata[number])
            rank, first, total = 0, 0.0, 0.0
            if number == 0 and state is not None and state.stratum == stratum:
                rank, first, total = state.rank, state.first, state.total
            firsts = first_of_runs(values, rank, self.kappa, first)
            sums = running_sums(values, firsts, rank, self.kappa, total)
            kept.append((rank, firsts, sums))
            state = Open(stratum, rank + len(values), first=firsts[-1], total=sums[-1])
        return kept, state

    def backward(
        self,
        piece: Piece,
        kept: list[tuple[int, NDArray[np.float64], NDArray[np.float64]]],
        state: Open | None,
    ) -> tuple[NDArray[np.float64], Open | None]:
        """Average runs, and undo their scaling."""
        masked = np.empty((len(piece.values), 1))
        for number in reversed(range(len(kept))):
            begin, end = piece.bounds[number], piece.bounds[number + 1]
            stratum = int(piece.strata[number])
            rank, firsts, sums = kept[number]
            total, count = float(sums[-1]), (rank + len(sums) - 1) % self.kappa + 1
            if state is not None and state.stratum == stratum and count < self.kappa:
                total, count = state.total, state.count
            means = run_means(firsts, sums, rank, self.kappa, total, count)
            low, high = piece.values[begin:end, 1], piece.values[begin:end, 2]
            restored = np.clip(low + means * (high - low), low, high)
            masked[begin:end, 0] = np.ldexp(restored, self.exponent) + 0.0
            # The run in which this segment begins ends in it, or where the one behind says.
            closing = self.kappa - rank % self.kappa
            if closing <= len(sums):
                total, count = float(sums[closing - 1]), self.kappa
            state = Open(stratum, rank, total=total, count=count)
        return masked, state
