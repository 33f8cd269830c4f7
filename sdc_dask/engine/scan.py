"""The first pass: what there is in the columns, and whether it can be masked at all."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.coded import Ends, advise_coded
from sdc_dask.engine.columns import LARGEST_EXACT, count_inexact, to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.strata import Strata, StrataRule, merge_counts
from sdc_dask.errors import (
    FEWEST_ADVISED,
    FewValuesAdvice,
    SdcRuntimeError,
    SdcValueError,
    warn,
)
from sdc_dask.kernels.borders import all_within
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.exact import ExactSum, exact_sum

NOT_THE_SAME = (
    "The frame is not the same each time that it is computed, for instance after a shuffle or with "
    "random numbers, or its source changed: mask df.persist(), or write it to files first."
)
NO_PARTITION = -1  # the number of an empty frame that only shows its columns
_FEW_VALUES = 10


@dataclass(frozen=True)
class Expected:
    """What a scan has found of columns: what is read of them later must be like that."""

    rows: tuple[int, ...]  # by partition
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    complete: NDArray[np.bool_]  # by column: whether no cell is missing

    def check(self, number: int, values: NDArray[np.float64]) -> None:
        """Raise RuntimeError unless a partition has as many rows as it had, of such values."""
        if number == NO_PARTITION:
            return
        if len(values) != self.rows[number]:
            raise SdcRuntimeError(
                f"partition {number} has {len(values)} rows, and had {self.rows[number]} when it "
                f"was scanned. {NOT_THE_SAME}"
            )
        if all_within(values, self.low, self.high):
            return
        # What is compared with NaN is false: it passes, except in columns that had none.
        outside = (values < self.low) | (values > self.high) | (np.isnan(values) & self.complete)
        if outside.any():
            raise SdcRuntimeError(
                f"{int(outside.sum())} values of partition {number} are beyond all that were there "
                f"when it was scanned. {NOT_THE_SAME}"
            )


@dataclass(frozen=True)
class ColumnScan:
    """Counts, bounds and exact sums of one column."""

    missing: int
    infinite: int
    inexact: int
    low: float
    high: float
    sums: ExactSum
    whole: bool  # of integers
    ends: Ends  # where codes of missing cells may be

    @classmethod
    def of(cls, column: pd.Series, values: NDArray[np.float64]) -> ColumnScan:
        """Scan one column of a partition."""
        present = finite = values
        if not np.isfinite(values).all():  # what is complete is not copied
            present = values[~np.isnan(values)]
            finite = present[np.isfinite(present)]
        return cls(
            len(values) - len(present),
            len(present) - len(finite),
            count_inexact(column),
            # Adding 0.0 makes a negative zero positive: bounds do not depend on which came first.
            finite.min(initial=np.inf) + 0.0,
            finite.max(initial=-np.inf) + 0.0,
            exact_sum(finite),
            pd.api.types.is_integer_dtype(column.dtype),
            Ends.of(finite),
        )

    def __add__(self, other: ColumnScan) -> ColumnScan:
        return ColumnScan(
            self.missing + other.missing,
            self.infinite + other.infinite,
            self.inexact + other.inexact,
            min(self.low, other.low),
            max(self.high, other.high),
            self.sums + other.sums,
            self.whole and other.whole,
            self.ends + other.ends,
        )

    @property
    def few(self) -> bool:
        """Whether these are whole numbers of few values, such as codes of categories."""
        enough = self.sums.n >= FEWEST_ADVISED
        return enough and self.whole and 0 < self.high - self.low < _FEW_VALUES


@dataclass(frozen=True)
class Scan:
    """What one pass finds out about a frame: rows by partition, columns, strata by rule."""

    rows: tuple[int, ...]
    columns: dict[Hashable, ColumnScan]
    strata_counts: tuple[pd.DataFrame, ...]

    @property
    def n(self) -> int:
        """Number of records."""
        return sum(self.rows)

    def check(self, missing: str = "error", advice: str = "") -> None:
        """Raise ValueError if values cannot be masked; say where and how many, show none.

        `advice` is what else can be done about missing cells.
        """
        _raise_if(
            {name: column.infinite for name, column in self.columns.items()},
            "infinite values",
            "Replace them by finite values or drop those records first.",
        )
        _raise_if(
            {name: column.inexact for name, column in self.columns.items()},
            f"integers beyond {LARGEST_EXACT}, which float64 cannot hold exactly",
            "Leave identifiers out of `columns`, or rescale the values first.",
        )
        cells = {name: column.missing for name, column in self.columns.items()}
        if missing == "error":
            _raise_if(cells, "missing cells", f"Fill or drop them first{advice}.")
        empty = [name for name, count in cells.items() if count == self.n]
        if empty:
            raise SdcValueError(
                f"columns without any value: {_names(empty)}. Leave them out of `columns`."
            )

    def advise(self, *, averaged: bool, named: bool = True) -> None:
        """Warn of what looks like a slip, by what was seen in the one pass anyway.

        Whole numbers of few values are one if they are `averaged`. Codes of missing cells can be
        `named`, or must be replaced in the data.
        """
        advise_coded({name: column.ends for name, column in self.columns.items()}, named=named)
        few = [name for name, column in self.columns.items() if column.few]
        if few and averaged:
            warn(
                f"columns of whole numbers have few values, and their means are fractions: "
                f"{_names(few)}. If they are codes of categories, name them in by=, swap them, or "
                "leave them out; decimals=0 rounds means.",
                FewValuesAdvice,
            )

    def bounds(
        self, columns: Sequence[Hashable]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return smallest and largest values."""
        scans = [self.columns[column] for column in columns]
        return np.array([scan.low for scan in scans]), np.array([scan.high for scan in scans])

    def sums(self, columns: Sequence[Hashable]) -> dict[Hashable, ExactSum]:
        """Return exact sums of values, by column."""
        return {column: self.columns[column].sums for column in columns}

    def expected(self, columns: Sequence[Hashable]) -> Expected:
        """Return what later passes over columns must find."""
        complete = np.array([self.columns[column].missing == 0 for column in columns])
        return Expected(self.rows, *self.bounds(columns), complete)

    def coordinates(self, columns: Sequence[Hashable], *, standardize: bool) -> Coordinates:
        """Return the coordinates in which distances between these columns are measured."""
        sums = [self.columns[column].sums for column in columns]
        return Coordinates.of(
            *self.bounds(columns),
            np.array([each.mean for each in sums]),
            np.array([each.deviation for each in sums]),
            standardize=standardize,
        )

    def strata(self, rules: Sequence[StrataRule]) -> list[Strata]:
        """Return the strata of the rules that were scanned."""
        return [rule.strata(counts) for rule, counts in zip(rules, self.strata_counts, strict=True)]


def scan(frame: Frame, columns: Sequence[Hashable], rules: Sequence[StrataRule]) -> Scan:
    """Scan columns and count strata, in one pass over the data.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        Numeric columns.
    rules : sequence of StrataRule
        One for each group of columns.
    """
    needed = list(dict.fromkeys([*columns, *(name for rule in rules for name in rule.by)]))
    return map_reduce(frame[needed], scan_partition, merge_scans, list(columns), list(rules))


def scan_partition(
    part: pd.DataFrame, _number: int, columns: list[Hashable], rules: list[StrataRule]
) -> Scan:
    """Scan columns and count strata of one partition."""
    scans = {
        column: ColumnScan.of(part[column], to_float(part, [column])[:, 0]) for column in columns
    }
    return Scan((len(part),), scans, tuple(rule.count(part) for rule in rules))


def merge_scans(parts: list[Scan]) -> Scan:
    """Put the scans of partitions together."""
    columns = dict(parts[0].columns)
    for part in parts[1:]:
        for name, column in part.columns.items():
            columns[name] += column
    return Scan(
        tuple(rows for part in parts for rows in part.rows),
        columns,
        tuple(
            merge_counts(list(counts))
            for counts in zip(*(part.strata_counts for part in parts), strict=True)
        ),
    )


def _raise_if(counts: dict[Hashable, int], what: str, advice: str) -> None:
    found = {name: count for name, count in counts.items() if count}
    if found:
        listed = ", ".join(f"{name!r} ({count})" for name, count in found.items())
        raise SdcValueError(f"{what} in columns: {listed}. {advice}")


def _names(columns: Sequence[Hashable]) -> str:
    return ", ".join(repr(column) for column in columns)
