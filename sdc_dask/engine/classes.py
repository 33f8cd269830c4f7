"""Classes of equal records of a frame, counted over all partitions."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.frames import Calls, Task
from sdc_dask.errors import SdcTypeError
from sdc_dask.kernels.classes import ClassCounts, count_keys, merge_classes, record_keys

_MISSING = np.uint64(0xA0761D6478BD642F)
_HASH_KEYS = ("sdc_dask_first__", "sdc_dask_second_")
_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_large_binary)


@dataclass(frozen=True)
class ClassSizes:
    """How many classes have how many records."""

    sizes: NDArray[np.int64]
    classes: NDArray[np.int64]  # by size


def partition_classes(part: pd.DataFrame, columns: Sequence[Hashable]) -> ClassCounts:
    """Count the classes of equal records of one partition. Numbers are compared by bits."""
    return count_keys(*class_keys(part, columns))


def class_keys(
    part: pd.DataFrame, columns: Sequence[Hashable]
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return two words for every record, equal for records that are equal in some columns."""
    return record_keys([cell_bits(part[column]) for column in columns])


def class_sizes(counts: ClassCounts) -> ClassSizes:
    """Reduce classes to the distribution of their sizes."""
    return ClassSizes(*np.unique(counts.counts, return_counts=True))


def merge_sizes(parts: Sequence[ClassSizes]) -> ClassSizes:
    """Add up distributions of disjoint sets of classes."""
    sizes = np.concatenate([part.sizes for part in parts])
    classes = np.concatenate([part.classes for part in parts])
    unique, inverse = np.unique(sizes, return_inverse=True)
    total = np.zeros(len(unique), np.int64)
    np.add.at(total, inverse, classes)
    return ClassSizes(unique, total)


def merged_class_sizes(call: Calls, partials: list[Task], buckets: int) -> Task:
    """Merge the classes of many partitions, a range of keys at a time.

    With enough buckets, no task holds more than a small share of all classes: their number may
    be a large part of the number of records.
    """
    merged = []
    for number in range(buckets):
        pieces = [call(ClassCounts.bucket, partial, number, buckets) for partial in partials]
        merged.append(call(class_sizes, call.merge(pieces, merge_classes)))
    return call.merge(merged, merge_sizes)


def cell_words(column: pd.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return the bits of cells, or say in words that they cannot be compared."""
    try:
        return cell_bits(column)
    except TypeError:
        # The original text may show a value.
        raise SdcTypeError(
            f"column {column.name!r} holds values that cannot be compared, such as lists: name "
            "columns of texts, numbers, dates or categories."
        ) from None


def cell_bits(column: pd.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return two words for every cell, equal for equal cells; the same twice if one says all."""
    dtype = column.dtype
    missing = column.isna().to_numpy()
    if isinstance(dtype, np.dtype) and dtype.kind in "iubmM":
        bits = column.to_numpy()
        bits = bits.view(np.int64) if dtype.kind in "mM" else bits
        words = (bits.astype(np.uint64),) * 2
    elif dtype.kind == "b":
        # By pandas, the hash of one is another where some are missing.
        words = (column.to_numpy(dtype=bool, na_value=False).astype(np.uint64),) * 2
    elif pd.api.types.is_float_dtype(dtype):
        values = column.to_numpy(dtype="float64", na_value=np.nan)
        words = (np.ascontiguousarray(values).view(np.uint64),) * 2
    elif pd.api.types.is_integer_dtype(dtype):
        signed = not pd.api.types.is_unsigned_integer_dtype(dtype)
        kind = np.int64 if signed else np.uint64
        words = (column.to_numpy(dtype=kind, na_value=0).view(np.uint64),) * 2
    else:
        # Two keyed hashes, since 64 bits of a text's hash alone might meet by chance.
        if pd.api.types.is_object_dtype(dtype):
            words = _of_objects(column)
        elif _is_text(dtype):
            words = _of_texts(column)
        else:
            words = _hashes(column, categorize=True)
    if missing.any():
        first = np.where(missing, _MISSING, words[0])
        return first, first if words[1] is words[0] else np.where(missing, _MISSING, words[1])
    return words


_Words: TypeAlias = tuple[NDArray[np.uint64], NDArray[np.uint64]]


def _of_objects(column: pd.Series) -> _Words:
    """Return two hashes for every object, and none for lists."""
    column.map(hash)  # refuses them
    # Equal objects of different types must not take each other's place, which categories would do.
    first, second = _hashes(column, categorize=False)
    # The hash of an object is that of its text: 1 and "1" differ in their types.
    kinds = column.map(lambda value: type(value).__qualname__)
    return first ^ pd.util.hash_pandas_object(kinds, index=False).to_numpy(np.uint64), second


def _is_text(dtype: Any) -> bool:
    if isinstance(dtype, pd.ArrowDtype):
        return any(is_text(dtype.pyarrow_dtype) for is_text in _TEXTS)
    return isinstance(dtype, pd.StringDtype)


def _of_texts(column: pd.Series) -> _Words:
    """Return two hashes for every text; equal ones are found once, and not for each hash."""
    codes, different = pd.factorize(column)
    first, second = _hashes(pd.Series(different), categorize=False)
    # Missing cells, whose code is -1, get what is behind the last.
    nothing = np.uint64(0)
    return np.append(first, nothing)[codes], np.append(second, nothing)[codes]


def _hashes(column: pd.Series, *, categorize: bool) -> _Words:
    first, second = (
        pd.util.hash_pandas_object(
            column, index=False, hash_key=key, categorize=categorize
        ).to_numpy(np.uint64)
        for key in _HASH_KEYS
    )
    return first, second
