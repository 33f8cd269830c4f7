"""Kept columns that are unique, or nearly so: whoever knows such a value knows the record."""

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

NEARLY = 0.5  # share of values that differ
FEWEST = 20  # records, below which anything may be unique
_Name = TypeVar("_Name", bound=Hashable)
_SKETCH = 1024  # smallest hashes: the number of values is estimated to about three percent


@dataclass(frozen=True)
class Distinct:
    """How many values of a column differ, counted or estimated.

    Attributes
    ----------
    rows : int
        Values that are not missing.
    few : int
        Values that differ in parts where few do, each counted by itself.
    many : int
        The same of the other parts: at most so many differ in these.
    smallest : ndarray of uint64
        The smallest hashes of different values of these other parts, sorted.
    """

    rows: int
    few: int
    many: int
    smallest: NDArray[np.uint64]

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> Distinct | None:
        """Look at a column of a piece; None if its values cannot be compared."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        try:
            values = pc.unique(column).drop_null()
        except pa.ArrowNotImplementedError:
            return None  # lists and structs
        rows = len(column) - column.null_count
        if len(values) < NEARLY * rows:
            return cls(rows, len(values), 0, np.empty(0, np.uint64))
        hashes = _hashes(pd.Series(values, dtype=pd.ArrowDtype(values.type)))
        return cls(rows, 0, len(values), _smallest([hashes]))

    @classmethod
    def of_series(cls, column: pd.Series) -> Distinct:
        """Look at a column of a partition; raise TypeError if its values cannot be compared."""
        present = column.dropna()
        hashes = np.unique(_hashes(present))
        if len(hashes) < NEARLY * len(present):
            return cls(len(present), len(hashes), 0, np.empty(0, np.uint64))
        return cls(len(present), 0, len(hashes), _smallest([hashes]))

    @classmethod
    def merged(cls, parts: Sequence[Distinct]) -> Distinct:
        """Put the parts of a column together."""
        return cls(
            sum(part.rows for part in parts),
            sum(part.few for part in parts),
            sum(part.many for part in parts),
            _smallest([part.smallest for part in parts]),
        )

    @property
    def share(self) -> float:
        """The share of values that differ, at most one."""
        if not self.rows:
            return 0.0
        different = len(self.smallest)
        if different == _SKETCH:
            # Hashes are spread evenly: the largest of these shows how many there are in all.
            different = round((_SKETCH - 1) / (int(self.smallest[-1]) / 2**64))
        return min(1.0, (self.few + min(self.many, different)) / self.rows)


def _hashes(values: pd.Series) -> NDArray[np.uint64]:
    return class_keys(values.to_frame("x"), ["x"])[0]


def _smallest(parts: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    hashes = np.concatenate(parts)
    if len(hashes) > 4 * _SKETCH:
        # Hashes are spread evenly: below this there are enough of them, or else all are looked at.
        low = hashes[hashes < np.uint64(2**64 // len(hashes) * 2 * _SKETCH)]
        found = np.unique(low)
        if len(found) >= _SKETCH:
            return found[:_SKETCH]
    return np.unique(hashes)[:_SKETCH]


def nearly_unique(columns: Iterable[tuple[_Name, Sequence[Distinct | None]]]) -> dict[_Name, float]:
    """Return the columns of which so many values differ that they identify records, and shares."""
    found = {}
    for name, parts in columns:
        known = [part for part in parts if part is not None]
        if not known:
            continue
        merged = Distinct.merged(known)
        if merged.rows >= FEWEST and merged.share >= NEARLY:
            found[name] = merged.share
    return found
