"""Strata: sets of records that are never mixed, by the user's columns and by missing cells."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.columns import one_form, to_float
from sdc_dask.errors import SdcTypeError, SdcValueError

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
            keys[f"by{i}"] = comparable(part[column]).reset_index(drop=True)
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
        return Strata(self, counts.drop(columns="count"), counts["count"].to_numpy(np.int64))


def merge_counts(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Add up counts by stratum; the order is that of first appearance."""
    counts = _stack([part for part in parts if len(part)] or list(parts[:1]))
    keys = counts.drop(columns="count")
    if keys.shape[1] == 0:
        return pd.DataFrame({"count": [counts["count"].sum()]})
    number = _number(keys)
    _, first = np.unique(number, return_index=True)
    total = np.bincount(number, weights=counts["count"]).astype(np.int64)
    return keys.iloc[first].reset_index(drop=True).assign(count=total)


@dataclass(frozen=True)
class Strata:
    """Numbered strata and their numbers of records."""

    rule: StrataRule
    table: pd.DataFrame  # the key of every stratum
    counts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.counts)

    def numbers(self, part: pd.DataFrame) -> NDArray[np.int64]:
        """Return the number of every record's stratum; those that are not known have others."""
        keys = self.rule.keys(part)
        if keys is None:
            return np.zeros(len(part), np.int64)
        # The strata come first and are all different, so that they are numbered as they are.
        return _number(_stack([self.table, keys]))[len(self) :]

    def of(self, part: pd.DataFrame) -> NDArray[np.int64]:
        """Tell the stratum of every record."""
        stratum = self.numbers(part)
        unknown = int((stratum >= len(self)).sum())
        if unknown:
            raise SdcValueError(
                f"{unknown} records belong to strata that the blocks do not have: make the blocks "
                "from this frame, with the same `by` and `missing`."
            )
        return stratum


def comparable(values: pd.Series) -> pd.Series:
    """Return values that compare across partitions: no categories, one zero, one NaN."""
    if isinstance(values.dtype, pd.CategoricalDtype):
        # Partitions may have different categories, and dtypes of them.
        return values.astype(object)
    if isinstance(values.dtype, pd.ArrowDtype):
        arrow = values.dtype.pyarrow_dtype
        if pa.types.is_dictionary(arrow):
            return values.astype(pd.ArrowDtype(arrow.value_type))
        if pa.types.is_float16(arrow):  # of which Arrow does not find values
            wider = pa.array(values.to_numpy("float32", na_value=np.nan), from_pandas=True)
            wide = pd.arrays.ArrowExtensionArray(wider)
            return one_form(pd.Series(wide, values.index, name=values.name))
    # pandas does not group half floats.
    return one_form(values.astype("float32") if values.dtype == np.float16 else values)


def _stack(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Put frames below each other. Columns of different dtypes become objects, which lose nothing.

    A common dtype would: integers beyond 2**53 become equal as floats.
    """
    columns = {}
    for name in frames[0].columns:
        parts = [frame[name] for frame in frames]
        if len({part.dtype for part in parts}) > 1:
            parts = [part.astype(object) for part in parts]
        columns[name] = pd.concat(parts, ignore_index=True)
    return pd.DataFrame(columns)


def _number(keys: pd.DataFrame) -> NDArray[np.int64]:
    """Give numbers to different keys, in order of first appearance; missing ones are equal."""
    try:
        grouped = keys.groupby(list(keys.columns), sort=False, dropna=False)
        return grouped.ngroup().to_numpy(np.int64)
    except (TypeError, NotImplementedError):
        # The original text may show a value.
        raise SdcTypeError(
            "a column of `by` or of keys holds values that cannot be compared, such as lists: name "
            "columns of texts, numbers, dates or categories."
        ) from None
