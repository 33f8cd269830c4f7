"""Which columns can be masked, how they become float64, and what comes back."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.errors import SdcTypeError

LARGEST_EXACT = 2**53
_ROWS_AT_A_TIME = 4096


def check_numeric(meta: pd.DataFrame, columns: Sequence[Hashable], why: str = "") -> None:
    """Raise TypeError unless every column holds real numbers, `why` they must."""
    for column in columns:
        dtype = meta[column].dtype
        if not is_numeric(dtype):
            raise SdcTypeError(
                f"column {column!r} has dtype {dtype}, which holds no real numbers{why}: "
                f"{advice_for(dtype)}"
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


def is_time(dtype: object) -> bool:
    """Whether a dtype holds dates, times or spans of time."""
    if isinstance(dtype, pd.ArrowDtype):
        return pa.types.is_temporal(dtype.pyarrow_dtype)
    if isinstance(dtype, np.dtype):
        return dtype.kind in "mM"
    return isinstance(dtype, (pd.DatetimeTZDtype, pd.PeriodDtype))


def is_measured(dtype: object) -> bool:
    """Whether a dtype holds numbers or times: what has differences."""
    return is_numeric(dtype) or is_time(dtype)


def advice_for(dtype: object) -> str:
    """Return what can be done with a column of a dtype that cannot be masked as it is."""
    arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else pa.null()
    if pd.api.types.is_bool_dtype(dtype):
        return "cast it to int first if its mean makes sense, or leave it out."
    if isinstance(dtype, pd.CategoricalDtype) or pa.types.is_dictionary(arrow):
        return "leave it out, or name it in `by` to keep groups within its categories."
    if is_time(dtype):
        return "convert it to a number first, for example days since a date."
    return "cast it to float64 if it holds numbers (files: with cast=, --cast), or leave it out."


def is_unchanged(before: pd.Series, after: pd.Series) -> bool:
    """Whether a column holds the same values in the same order, missing cells being equal."""
    if before.dtype != after.dtype and is_numeric(before.dtype) and is_numeric(after.dtype):
        old, new = (to_float(each.to_frame(), [each.name]) for each in (before, after))
        return np.array_equal(old, new, equal_nan=True)
    return before.equals(after)


def to_float(part: pd.DataFrame, columns: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return columns as one C-ordered float64 array of its own, missing cells as NaN."""
    floats = []
    for column in columns:
        # A nullable or Arrow column hands out NaN for its missing cells, and never what lies
        # under them in its buffers.
        try:
            floats.append(part[column].to_numpy(dtype="float64", na_value=np.nan))
        except (TypeError, ValueError):
            # The original text may show a value.
            raise SdcTypeError(
                f"column {column!r} holds values that are not numbers, whatever the dtype of the "
                "frame says: cast it to float64 first."
            ) from None
    values = np.empty((len(part), len(columns)))
    # So many rows at a time stay in the processor's cache while one column after the other comes.
    for begin in range(0, len(part), _ROWS_AT_A_TIME):
        rows = slice(begin, begin + _ROWS_AT_A_TIME)
        for j, column in enumerate(floats):
            values[rows, j] = column[rows]
    return values


def missing_cells(column: pd.Series) -> NDArray[np.bool_]:
    """Return which cells are missing; a NaN that a nullable column does not count as such is."""
    if pd.api.types.is_float_dtype(column.dtype):
        return np.isnan(column.to_numpy(np.float64, na_value=np.nan))
    return column.isna().to_numpy(np.bool_)


def one_form(column: pd.Series) -> pd.Series:
    """Return a column whose floats have one zero, and one way of being missing.

    A zero with a sign, and a NaN beside missing cells, look like other values to whoever counts
    bits, and like the same ones to whoever compares numbers.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> two = pd.arrays.FloatingArray(np.array([-0.0, np.nan, 1.0]), np.array([False, False, True]))
    >>> one_form(pd.Series(two)).tolist()
    [0.0, <NA>, <NA>]
    """
    if not is_numeric(column.dtype) or not pd.api.types.is_float_dtype(column.dtype):
        return column
    values = column.to_numpy(dtype="float64", na_value=np.nan)
    array = masked_array(np.where(np.isnan(values), np.nan, values), column.dtype)
    return pd.Series(array, index=column.index, name=column.name)


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


def masked_array(values: NDArray[np.float64], dtype: object) -> pd.api.extensions.ExtensionArray:
    """Return centroids as an array of a dtype that :func:`masked_dtype` gave."""
    floats = narrow(values, _float_width(dtype))
    if isinstance(dtype, pd.ArrowDtype):
        return pd.arrays.ArrowExtensionArray(pa.array(floats, from_pandas=True))
    return pd.array(floats, dtype=dtype)


def narrow(values: NDArray[np.float64], width: int) -> NDArray[np.floating]:
    """Return values as floats of so many bytes; what rounds to zero is zero without a sign.

    What is too large for them is infinite, as it is when it is written.
    """
    kind = np.dtype(f"f{width}")
    with np.errstate(over="ignore"):
        return values.astype(kind, copy=False) + kind.type(0)


def _float_width(dtype: Any) -> int:
    if isinstance(dtype, pd.ArrowDtype):
        return dtype.pyarrow_dtype.bit_width // 8
    return np.dtype(getattr(dtype, "numpy_dtype", dtype)).itemsize


def same_array(values: NDArray[np.float64], dtype: Any) -> pd.api.extensions.ExtensionArray:
    """Return values of a column, moved but not changed, as an array of its dtype."""
    if masked_dtype(dtype) == dtype:
        kind = np.dtype(f"f{_float_width(dtype)}")
        return pd.array(np.ascontiguousarray(values).astype(kind), dtype=dtype)
    missing = np.isnan(values)
    array = pd.array(np.where(missing, 0, values).astype(np.int64), dtype=dtype)
    if missing.any():
        array[missing] = pd.NA
    return array


def with_columns(part: pd.DataFrame, arrays: dict[Hashable, Any]) -> pd.DataFrame:
    """Return a frame with new arrays in some columns; all else is as it was."""
    new = part.copy(deep=False)
    new.attrs = {}  # may hold anything, and would be written into files
    for column, values in arrays.items():
        # A Series says its dtype: texts in a column of objects stay objects.
        dtype = values.dtype if isinstance(values, pd.Series) else None
        array = values.array if isinstance(values, pd.Series) else values
        new[column] = pd.Series(array, index=part.index, dtype=dtype, copy=False)
    return new


def nullable_dtype(dtype: Any) -> Any:
    """Return the dtype of a column some of whose cells become missing."""
    if isinstance(dtype, np.dtype) and dtype.kind in "iub":
        return pd.Series([], dtype=dtype).convert_dtypes().dtype
    return dtype


def without_cells(values: pd.Series, gone: NDArray[np.bool_]) -> pd.Series:
    """Return values of which some are missing: nothing is left under these."""
    dtype = nullable_dtype(values.dtype)
    kept = np.where(gone, -1, np.arange(len(values)))
    return pd.Series(values.astype(dtype).array.take(kept, allow_fill=True), dtype=dtype)


def coded_values(codes: NDArray[np.int64], values: Sequence[Any], dtype: Any) -> pd.Series:
    """Return values by their codes, -1 for a missing cell, as a column of a dtype."""
    if isinstance(dtype, pd.CategoricalDtype):
        return pd.Series(pd.Categorical.from_codes(codes, dtype=dtype))
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        coded = pa.types.is_dictionary(arrow)
        found = pa.array(values, arrow.value_type if coded else arrow)
        if coded:
            indices = pa.array(codes, arrow.index_type, mask=codes < 0)
            made = pa.DictionaryArray.from_arrays(indices, found, ordered=arrow.ordered)
        else:
            made = found.take(pa.array(codes, mask=codes < 0))
        return pd.Series(pd.arrays.ArrowExtensionArray(made))
    plain = pd.Series(list(values), dtype=dtype).array
    return pd.Series(plain.take(codes, allow_fill=True), dtype=dtype)
