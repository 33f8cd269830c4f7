"""Classes of equal records that all belong to one unit, such as a household.

They are counted among some classes: those of the smallest keys, which are hashes and fall evenly.
Each partition keeps its smallest, and so what is kept of all is complete, however large the frame.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.classes import class_keys
from sdc_dask.errors import FEWEST_ADVISED, UnitAdvice, warn

_SAMPLE = 2**14  # classes that are looked at
_FEWEST_UNITS = 20  # fewer are kinds of units, not units
_LAST = np.uint64(2**64 - 1)


class LoneUnits(NamedTuple):
    """Classes by their keys, sorted: their records, and the range of their units' codes."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    records: NDArray[np.int64]
    low: NDArray[np.uint64]
    high: NDArray[np.uint64]

    @classmethod
    def of(cls, part: pd.DataFrame, columns: Sequence[Hashable], unit: Hashable) -> LoneUnits:
        """Look at the classes of a partition."""
        low = class_keys(part, [unit])[0]
        missing = part[unit].isna().to_numpy()
        # Who a record belongs to is not known then: its class is of several.
        low, high = np.where(missing, np.uint64(0), low), np.where(missing, _LAST, low)
        return _classes(*class_keys(part, columns), np.ones(len(part), np.int64), low, high)

    def advise(self, k: int, unit: Hashable) -> None:
        """Warn if there are classes of k records or more that are all of one unit."""
        counted = self.records >= max(2, k)
        alone = int((counted & (self.low == self.high)).sum())
        units = len(np.union1d(self.low, self.high))
        if not alone or units < _FEWEST_UNITS or self.records.sum() < FEWEST_ADVISED:
            return
        of = f"{alone:,} of {int(counted.sum()):,} classes of k={k} records or more"
        if len(self.first) == _SAMPLE:
            of += " that were looked at"
        warn(
            f"{of} have records of a single {unit!r} alone, whose values are known then. If "
            f"records belong to these, let k count them: pass unit={unit!r}.",
            UnitAdvice,
        )


def merge_lone_units(parts: Sequence[LoneUnits]) -> LoneUnits:
    """Put the classes of partitions together."""
    return _classes(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _classes(
    first: NDArray[np.uint64],
    second: NDArray[np.uint64],
    records: NDArray[np.int64],
    low: NDArray[np.uint64],
    high: NDArray[np.uint64],
) -> LoneUnits:
    order = np.lexsort((second, first))
    first, second = first[order], second[order]
    new = np.ones(len(first), bool)
    new[1:] = (first[1:] != first[:-1]) | (second[1:] != second[:-1])
    begin = np.flatnonzero(new)
    if not len(begin):
        return LoneUnits(first, second, records, low, high)
    kept = slice(_SAMPLE)
    return LoneUnits(
        first[begin][kept],
        second[begin][kept],
        np.add.reduceat(records[order], begin)[kept],
        np.minimum.reduceat(low[order], begin)[kept],
        np.maximum.reduceat(high[order], begin)[kept],
    )
