"""Kept columns of which most records have a value of their own: whoever knows it knows the record.

Values are hashed, and the smallest hashes of a column are kept with the records of each. They are a
sample of its values that does not depend on pieces, in bounded memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from sdc_dask.engine.classes import class_keys

NEARLY = 0.5  # share of records that have a value of their own
FEWEST = 20  # records, below which anything may be unique
_Name = TypeVar("_Name", bound=Hashable)
_SKETCH = 1024  # smallest hashes: the share is estimated to about three percent


@dataclass(frozen=True)
class Uniqueness:
    """How many records of a column have a value of their own, counted or estimated.

    Attributes
    ----------
    rows : int
        Cells that are not missing.
    smallest : ndarray of uint64
        The smallest hashes of different values, sorted.
    counts : ndarray of int64
        Records with each of these values.
    """

    rows: int
    smallest: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Uniqueness | None:
        """Look at a column of a piece; None if its values cannot be compared."""
        column = _plain(column)
        if pa.types.is_primitive(column.type):
            # Where most values are different, to count them all takes far longer than to hash them.
            present = column.drop_null()
            hashes = _hashes(pd.Series(present, dtype=pd.ArrowDtype(column.type)))
            sketch = _lowest(hashes, np.ones(len(hashes), np.int64))
            if sketch is not None:
                return cls(len(present), *sketch)
        try:
            found = pc.value_counts(column)
        except pa.ArrowNotImplementedError:
            return None  # lists and structs
        values, counts = found.field("values"), found.field("counts").to_numpy()
        there = values.is_valid()
        values, counts = values.filter(there), counts[there.to_numpy(zero_copy_only=False)]
        hashes = _hashes(pd.Series(values, dtype=pd.ArrowDtype(values.type)))
        return cls(len(column) - column.null_count, *_smallest(hashes, counts))

    @classmethod
    def of_series(cls, column: pd.Series) -> Uniqueness:
        """Look at a column of a partition; raise TypeError if its values cannot be compared."""
        present = column.dropna()
        return cls(len(present), *_smallest(_hashes(present), np.ones(len(present), np.int64)))

    @classmethod
    def merged(cls, parts: Sequence[Uniqueness]) -> Uniqueness:
        """Put the parts of a column together.

        Of the smallest hashes of all parts, no part has left any out: their counts are whole.
        """
        return cls(
            sum(part.rows for part in parts),
            *_smallest(
                np.concatenate([part.smallest for part in parts]),
                np.concatenate([part.counts for part in parts]),
            ),
        )

    @property
    def share(self) -> float:
        """The share of records that have a value of their own."""
        if not self.rows:
            return 0.0
        values = len(self.smallest)
        if values == _SKETCH:
            # Hashes are spread evenly: the largest of these shows how many there are in all.
            values = round((_SKETCH - 1) / (int(self.smallest[-1]) / 2**64))
        return min(1.0, values * float((self.counts == 1).mean()) / self.rows)


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return values without categories or extension, and texts as bytes.

    Texts that are not compared otherwise may be anything.
    """
    if isinstance(column.type, pa.BaseExtensionType):
        stored = [chunk.storage for chunk in column.chunks]
        return _plain(pa.chunked_array(stored, column.type.storage_type))
    if pa.types.is_dictionary(column.type):
        return _plain(column.cast(column.type.value_type))
    if pa.types.is_string(column.type):
        return column.cast(pa.binary())
    if pa.types.is_large_string(column.type):
        return column.cast(pa.large_binary())
    return column


def _hashes(values: pd.Series) -> NDArray[np.uint64]:
    return class_keys(values.to_frame("x"), ["x"])[0]


def _smallest(
    hashes: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Return the smallest of different hashes, sorted, and the sums of their counts."""
    lowest = _lowest(hashes, counts)
    if lowest is not None:
        return lowest
    different, sums = _sums(hashes, counts)
    return different[:_SKETCH], sums[:_SKETCH]


def _lowest(
    hashes: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]] | None:
    """Return the same by a look at the lowest alone; None if too few of these are different."""
    if len(hashes) <= 4 * _SKETCH:
        return None
    # Hashes are spread evenly: below this there are enough of them if most are different.
    low = hashes < np.uint64(2**64 // len(hashes) * 2 * _SKETCH)
    different, sums = _sums(hashes[low], counts[low])
    return (different[:_SKETCH], sums[:_SKETCH]) if len(different) >= _SKETCH else None


def _sums(
    hashes: NDArray[np.uint64], counts: NDArray[np.int64]
) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    different, where = np.unique(hashes, return_inverse=True)
    sums = np.zeros(len(different), np.int64)
    np.add.at(sums, where, counts)
    return different, sums


def nearly_unique(
    columns: Iterable[tuple[_Name, Sequence[Uniqueness | None]]],
) -> tuple[dict[_Name, float], tuple[_Name, ...]]:
    """Return columns whose values identify most records, with shares, and those not looked at."""
    found: dict[_Name, float] = {}
    unknown: list[_Name] = []
    for name, parts in columns:
        known = [part for part in parts if part is not None]
        if not known:
            unknown.append(name)
            continue
        merged = Uniqueness.merged(known)
        if merged.rows >= FEWEST and merged.share >= NEARLY:
            found[name] = merged.share
    return found, tuple(unknown)
