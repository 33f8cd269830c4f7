"""Sums of keys of rows: equal if and only if the rows are, in any order.

There is a chance of 2**-128 that rows which differ have the same sum.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.classes import class_keys

Fingerprint = NDArray[np.uint64]  # two words

_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)


def fingerprint(rows: pd.DataFrame, columns: Sequence[str]) -> Fingerprint:
    """Return the fingerprint of the rows of a frame in some columns."""
    return np.array([keys.sum(dtype=np.uint64) for keys in class_keys(rows, columns)])


def table_fingerprint(rows: pa.Table) -> Fingerprint:
    """Return the fingerprint of the rows of a table in all columns."""
    frame = pa.table([_comparable(column) for column in rows.columns], rows.column_names)
    return fingerprint(
        frame.to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True), rows.column_names
    )


def _comparable(column: pa.ChunkedArray) -> pa.ChunkedArray | pa.Array:
    """Return values of which there are keys, and which say the same."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _comparable(column.cast(kind.value_type))
    if isinstance(kind, pa.BaseExtensionType):
        stored = [part.storage for part in column.chunks]
        return _comparable(pa.chunked_array(stored, kind.storage_type))
    if pa.types.is_null(kind):
        return pa.nulls(len(column), pa.int8())
    if any(is_text(kind) for is_text in _TEXTS):
        return column.cast(pa.large_binary())  # as it is, whether it is UTF-8 or not
    if pa.types.is_nested(kind):
        return pa.array([repr(value) for value in column.to_pylist()], pa.large_string())
    return column
