"""Strata: sets of records that are never mixed, by the user's columns and by missing cells."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float

_BITS = 62  # of an int64 that hold one pattern of missing cells each


@dataclass(frozen=True)
class StrataRule:
    """How records are told apart: by the values of columns, and by which cells are missing."""

    by: tuple[Hashable, ...] = ()
    pattern_of: tuple[Hashable, ...] = ()  # columns whose missing cells count

    def keys(self, part: pd.DataFrame) -> pd.DataFrame | None:
        """Return a frame of keys, with internal names; None if there is one stratum only."""
        keys: dict[str, pd.Series | NDArray] = {}
        for i, column in enumerate(self.by):
            values = part[column]
            if isinstance(values.dtype, pd.CategoricalDtype):
                # Partitions may have different categories; their values compare all the same.
                values = values.astype(values.cat.categories.dtype)
            keys[f"by{i}"] = values.reset_index(drop=True)
        for i in range(0, len(self.pattern_of), _BITS):
            word = np.zeros(len(part), np.int64)
            for bit, column in enumerate(self.pattern_of[i : i + _BITS]):
                # As numbers: a NaN that a nullable column does not count as missing is missing.
                missing = np.isnan(to_float(part, [column])[:, 0])
                word |= missing.astype(np.int64) << bit
            keys[f"missing{i}"] = word
        return pd.DataFrame(keys) if keys else None

    def count(self, part: pd.DataFrame) -> pd.DataFrame:
        """Count the records of a partition by stratum, in order of first appearance."""
        keys = self.keys(part)
        if keys is None:
            return pd.DataFrame({"count": [len(part)]})
        return merge_counts([keys.assign(count=1)])

    def strata(self, counts: pd.DataFrame) -> Strata:
        """Give numbers to the strata that were counted."""
        table = counts.drop(columns="count").assign(stratum=np.arange(len(counts)))
        return Strata(self, table, counts["count"].to_numpy(np.int64))


def merge_counts(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Add up counts by stratum; the order is that of first appearance."""
    parts = [part for part in parts if len(part)] or list(parts[:1])
    counts = pd.concat(parts, ignore_index=True)
    keys = [column for column in counts.columns if column != "count"]
    if not keys:
        return pd.DataFrame({"count": [counts["count"].sum()]})
    grouped = counts.groupby(keys, sort=False, dropna=False)["count"].sum()
    return grouped.reset_index()


@dataclass(frozen=True)
class Strata:
    """Numbered strata and their numbers of records."""

    rule: StrataRule
    table: pd.DataFrame
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.counts)

    def of(self, part: pd.DataFrame) -> NDArray[np.int64]:
        """Tell the stratum of every record."""
        keys = self.rule.keys(part)
        if keys is None:
            return np.zeros(len(part), np.int64)
        if len(part) == 0:
            return np.empty(0, np.int64)
        names = list(keys.columns)
        stratum = keys.merge(self.table, how="left", on=names)["stratum"]
        unknown = int(stratum.isna().sum())
        if unknown:
            raise ValueError(
                f"{unknown} records belong to strata that the blocks do not have: make the blocks "
                "from this frame, with the same `by` and `missing`."
            )
        return stratum.to_numpy(np.int64)
