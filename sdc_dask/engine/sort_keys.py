"""What columns of any kind are sorted by: numbers, or Python objects that compare."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.errors import SdcTypeError

_SIGN = np.uint64(1 << 63)


def check_sortable(meta: pd.DataFrame, columns: Sequence[Hashable]) -> None:
    """Raise TypeError unless the values of every column have an order."""
    for column in columns:
        dtype = meta[column].dtype
        if isinstance(dtype, pd.CategoricalDtype) and not dtype.ordered:
            raise SdcTypeError(
                f"column {column!r} has categories without an order: give them one with "
                "cat.as_ordered(), or leave it out."
            )
        if not _is_sortable(dtype):
            raise SdcTypeError(
                f"column {column!r} has dtype {dtype}, whose values have no order: leave it out."
            )


def _is_sortable(dtype: object) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        return not (
            pa.types.is_nested(arrow) or pa.types.is_null(arrow) or pa.types.is_dictionary(arrow)
        )
    if isinstance(dtype, (pd.SparseDtype, pd.IntervalDtype)):
        return False
    return not (isinstance(dtype, np.dtype) and dtype.kind in "cV")


def sort_keys(values: pd.Series, dtype: object) -> NDArray:
    """Return an array that is sorted as the values are.

    Parameters
    ----------
    values : Series
        Without missing values.
    dtype : dtype
        What the frame says of the column.

    Returns
    -------
    ndarray of int64, float64 or object
        The same kind for all partitions of a column.
    """
    try:
        return _sort_keys(values, dtype)
    except (AttributeError, OverflowError, ValueError):
        # The original text may show a value.
        raise SdcTypeError(
            f"column {values.name!r} holds other values than its dtype {dtype} says in some "
            f"partitions, where it has dtype {values.dtype}: cast it first."
        ) from None


def _sort_keys(values: pd.Series, dtype: object) -> NDArray:
    if isinstance(dtype, pd.CategoricalDtype):
        if not values.cat.categories.equals(dtype.categories):
            raise SdcTypeError(
                f"column {values.name!r} has other categories in some partitions: make them known "
                "and equal with df.categorize() first."
            )
        return values.cat.codes.to_numpy(np.int64)
    if isinstance(dtype, pd.ArrowDtype):
        return _of_arrow(values, dtype.pyarrow_dtype)
    if isinstance(dtype, (pd.DatetimeTZDtype, pd.PeriodDtype)) or _kind(dtype) in "mM":
        return values.astype(dtype).array.asi8
    if pd.api.types.is_bool_dtype(dtype) or pd.api.types.is_integer_dtype(dtype):
        return _of_integers(values)
    if pd.api.types.is_float_dtype(dtype):
        return values.to_numpy(np.float64) + 0.0
    objects = values.to_numpy(object)
    if not isinstance(dtype, pd.StringDtype) and not all(isinstance(each, str) for each in objects):
        raise SdcTypeError(
            f"column {values.name!r} has dtype {dtype} and holds other values than texts: convert "
            "it to a dtype of its own, such as numbers, dates or string."
        )
    return objects


def _of_arrow(values: pd.Series, arrow: pa.DataType) -> NDArray:
    if pa.types.is_boolean(arrow) or pa.types.is_integer(arrow):
        return _of_integers(values)
    if pa.types.is_floating(arrow):
        return values.to_numpy(np.float64) + 0.0
    if pa.types.is_temporal(arrow):
        whole = pa.int32() if arrow.bit_width == 32 else pa.int64()
        return pa.array(values.array).cast(whole).to_numpy(zero_copy_only=False).astype(np.int64)
    return values.to_numpy(object)


def _of_integers(values: pd.Series) -> NDArray[np.int64]:
    whole = values.to_numpy(np.uint64 if "uint64" in str(values.dtype).lower() else np.int64)
    # Turning the highest bit makes unsigned integers signed ones in the same order.
    return (whole ^ _SIGN).view(np.int64) if whole.dtype == np.uint64 else whole


def _kind(dtype: object) -> str:
    return dtype.kind if isinstance(dtype, np.dtype) else "O"
