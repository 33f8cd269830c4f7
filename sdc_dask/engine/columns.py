"""Which columns can be masked, how they become float64, and what comes back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

LARGEST_EXACT = 2**53


def check_numeric(meta: pd.DataFrame, columns: Sequence[Hashable]) -> None:
    """Raise TypeError unless every column holds real numbers."""
    for column in columns:
        dtype = meta[column].dtype
        if not is_numeric(dtype):
            raise TypeError(
                f"column {column!r} has dtype {dtype}, which is no real number: "
                f"{_advice(dtype)}"
            )


def is_numeric(dtype: object) -> bool:
    """Whether a dtype holds real numbers that a mean makes sense of."""
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        return pa.types.is_integer(arrow) or pa.types.is_floating(arrow)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "iu" or dtype in (np.float16, np.float32, np.float64)
    if isinstance(dtype, (pd.CategoricalDtype, pd.SparseDtype)):
        return False
    return pd.api.types.is_integer_dtype(dtype) or pd.api.types.is_float_dtype(dtype)


def _advice(dtype: object) -> str:
    if pd.api.types.is_bool_dtype(dtype):
        return "cast it to int first if its mean makes sense, or leave it out."
    if isinstance(dtype, pd.CategoricalDtype):
        return "leave it out, or name it in `by` to keep groups within its categories."
    if pd.api.types.is_datetime64_any_dtype(dtype) or pd.api.types.is_timedelta64_dtype(dtype):
        return "convert it to a number first, for example days since a date."
    return "cast it to float64 if it holds numbers, or leave it out."


def to_float(part: pd.DataFrame, columns: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return columns as one C-ordered float64 array of its own, missing cells as NaN."""
    values = np.empty((len(part), len(columns)))
    for j, column in enumerate(columns):
        # A nullable or Arrow column hands out NaN for its missing cells, and never what lies
        # under them in its buffers.
        values[:, j] = part[column].to_numpy(dtype="float64", na_value=np.nan)
    return values


def count_inexact(column: pd.Series) -> int:
    """Count the integers that float64 cannot hold exactly."""
    if not pd.api.types.is_integer_dtype(column.dtype):
        return 0
    present = column.dropna()
    return int(((present > LARGEST_EXACT) | (present < -LARGEST_EXACT)).sum())


def masked_dtype(dtype: object) -> object:
    """Return the dtype of centroids: floats keep theirs, integers become 64-bit floats."""
    if isinstance(dtype, pd.ArrowDtype):
        is_float = pa.types.is_floating(dtype.pyarrow_dtype)
        return dtype if is_float else pd.ArrowDtype(pa.float64())
    if isinstance(dtype, np.dtype):
        return dtype if dtype.kind == "f" else np.dtype("float64")
    return dtype if pd.api.types.is_float_dtype(dtype) else pd.Float64Dtype()


def replace_columns(
    part: pd.DataFrame, columns: Sequence[Hashable], values: NDArray[np.float64]
) -> pd.DataFrame:
    """Return a frame with new values in some columns; all else is as it was."""
    new = part.copy(deep=False)
    for j, column in enumerate(columns):
        dtype = masked_dtype(part[column].dtype)
        array = np.ascontiguousarray(values[:, j])
        new[column] = pd.Series(pd.array(array, dtype=dtype), index=part.index, copy=False)
    return new
