"""Different combinations of values in some columns, and how many records have each.

They are counted in one pass. What depends on values and counts alone is then decided on the table
of combinations, which is small, and done to records by the number of their combination.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.in_place import Rows
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.engine.strata import Strata, StrataRule, merge_counts
from sdc_dask.errors import SdcRuntimeError, SdcValueError

MOST = 2_000_000  # combinations that are held at once: some hundred megabytes


@dataclass(frozen=True)
class Combinations:
    """Combinations in order of their first records, whatever the partitions."""

    columns: tuple[Hashable, ...]
    strata: Strata
    rows: Rows

    def __len__(self) -> int:
        return len(self.strata)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Records of each combination."""
        return self.strata.counts

    def values(self, column: Hashable) -> pd.Series:
        """Return the value of a column in each combination: plain ones, if it has categories."""
        return self.strata.table[f"by{self.columns.index(column)}"]

    def codes(self) -> NDArray[np.int64]:
        """Return values as numbers, one column for each, in order of appearance; -1 if missing."""
        coded = [pd.factorize(self.values(column))[0] for column in self.columns]
        return np.column_stack(coded).astype(np.int64)

    def numbers(self, part: pd.DataFrame, number: int) -> NDArray[np.int64]:
        """Return the number of each record's combination."""
        if number == NO_PARTITION:
            return np.zeros(0, np.int64)
        self.rows.first(part, number)
        found = self.strata.numbers(part)
        unknown = int((found >= len(self)).sum())
        if unknown:
            raise SdcRuntimeError(
                f"{unknown} records of partition {number} have values that were not there when "
                f"they were counted. {NOT_THE_SAME}"
            )
        return found


def count_combinations(frame: Frame, columns: Sequence[Hashable]) -> Combinations:
    """Count the records of each combination of values, in one pass over the data.

    Raises
    ------
    SdcValueError
        If there are more than can be held, or no records at all.
    """
    rule = StrataRule(tuple(columns))
    rows, counts = map_reduce(frame[list(columns)], _count, _merge, rule)
    if not sum(rows):
        raise SdcValueError("the frame has no records: there is nothing to mask.")
    return Combinations(tuple(columns), rule.strata(counts), Rows(rows))


def _count(
    part: pd.DataFrame, _number: int, rule: StrataRule
) -> tuple[tuple[int, ...], pd.DataFrame]:
    return (len(part),), _bounded(rule.count(part))


def _merge(
    parts: list[tuple[tuple[int, ...], pd.DataFrame]],
) -> tuple[tuple[int, ...], pd.DataFrame]:
    rows = tuple(count for each, _ in parts for count in each)
    return rows, merge_combinations([counts for _, counts in parts])


def merge_combinations(counts: list[pd.DataFrame]) -> pd.DataFrame:
    """Add up the records of combinations, of which there must not be too many."""
    return _bounded(merge_counts(counts))


def _bounded(counts: pd.DataFrame) -> pd.DataFrame:
    if len(counts) > MOST:
        raise SdcValueError(
            f"the columns have more than {MOST:,} different combinations of values, which is more "
            "than is held at once: recode columns with many values first, for instance into "
            "ranges, or name fewer columns."
        )
    return counts
