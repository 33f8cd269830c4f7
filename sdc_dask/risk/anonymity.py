"""Anonymity that was reached: how many records share the same values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.classes import (
    ClassSizes,
    class_keys,
    merged_class_sizes,
    partition_classes,
)
from sdc_dask.engine.frames import (
    Calls,
    Frame,
    Task,
    from_partitions,
    map_partitions,
    meta_of,
    partitions,
)
from sdc_dask.engine.lone_units import LoneUnits, merge_lone_units
from sdc_dask.engine.unit_classes import Pairs, merged_unit_sizes, partition_pairs
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.classes import ClassCounts, merge_classes
from sdc_dask.names import units_among
from sdc_dask.results import Result

# The classes of so many partitions are merged in one place.
PARTITIONS_A_BUCKET = 32
_NAME = "class_size"


@dataclass(frozen=True, repr=False)
class Anonymity(Result):
    """Classes of records that are equal in some columns."""

    rows: int = field(metadata={"note": "records"})
    classes: int = field(metadata={"note": "distinct records"})
    k_min: int = field(metadata={"note": "records of the smallest class: higher is safer"})
    k_mean: float = field(metadata={"note": "k', records over distinct records"})
    k: int | None = field(metadata={"note": "the k that was asked for"})
    below_k: int | None = field(metadata={"note": "classes with fewer records: 0 is safe"})
    rows_below: int | None = field(metadata={"note": "records in them: 0 is safe"})


def anonymity(
    frame: Frame, columns: Sequence[Hashable], k: int | None, unit: Hashable | None = None
) -> Anonymity:
    """Count classes of equal records in one pass: their records, or their different units."""
    if unit is None:
        return of_sizes(_advised_sizes(frame, columns, k), k)
    return of_units(of_sizes(sizes_in(frame, columns), k), units_in(frame, columns, unit), k)


def _advised_sizes(frame: Frame, columns: Sequence[Hashable], k: int | None) -> ClassSizes:
    """Count classes of equal records, and look in the same pass whether some are of one unit."""
    columns = list(columns)
    names = [name for name in meta_of(frame).columns if name not in columns]
    units = units_among(names) if k is not None else []
    call = Calls.of(frame)
    needed = frame[[*columns, *units]]
    sizes = _merged_sizes(call, map_partitions([needed], _chunk, columns))
    lone = [
        call.merge(map_partitions([needed], _lone_chunk, columns, unit), merge_lone_units)
        for unit in units
    ]
    found, *looked_at = call.compute(call(_listed, [sizes, *lone]))
    for unit, each in zip(units, looked_at, strict=True):
        each.advise(k, unit)
    return found


def _listed(results: list[Any]) -> list[Any]:
    return results


def units_in(frame: Frame, columns: Sequence[Hashable], unit: Hashable) -> ClassSizes:
    """Return how many classes of equal records have how many different units, in one pass."""
    call = Calls.of(frame)
    needed = frame[list(dict.fromkeys([*columns, unit]))]
    partials = map_partitions([needed], _unit_chunk, list(columns), unit)
    buckets = -(-len(partials) // PARTITIONS_A_BUCKET)
    return call.compute(merged_unit_sizes(call, partials, buckets))


def of_units(records: Anonymity, sizes: ClassSizes, k: int | None) -> Anonymity:
    """Return what is known of classes if k counts units instead of records."""
    units = of_sizes(sizes, k)
    return replace(units, rows=records.rows)


def sizes_in(frame: Frame, columns: Sequence[Hashable]) -> ClassSizes:
    """Return how many classes of equal records have how many, in one pass."""
    columns = list(columns)
    call = Calls.of(frame)
    return call.compute(_merged_sizes(call, map_partitions([frame[columns]], _chunk, columns)))


def _merged_sizes(call: Calls, partials: list[Task]) -> Task:
    return merged_class_sizes(call, partials, -(-len(partials) // PARTITIONS_A_BUCKET))


def of_sizes(sizes: ClassSizes, k: int | None) -> Anonymity:
    """Summarize the sizes of classes."""
    rows = int((sizes.sizes * sizes.classes).sum())
    if rows == 0:
        raise SdcValueError("the frame has no records: there are no classes to count.")
    classes = int(sizes.classes.sum())
    small = sizes.sizes < (k or 0)
    below = int(sizes.classes[small].sum())
    records = int((sizes.sizes * sizes.classes)[small].sum())
    counted = (None, None) if k is None else (below, records)
    return Anonymity(rows, classes, int(sizes.sizes.min()), rows / classes, k, *counted)


def class_size(frame: Frame, columns: Sequence[Hashable]) -> Any:
    """Return for each record how many are equal to it, as a series: lazily for a Dask frame.

    Classes are merged a range of keys at a time, and looked up so, too.
    """
    columns = list(columns)
    call = Calls.of(frame)
    needed = frame[columns]
    partials = map_partitions([needed], _chunk, columns)
    buckets = -(-len(partials) // PARTITIONS_A_BUCKET)
    merged = [
        call.merge(
            [call(ClassCounts.bucket, each, number, buckets) for each in partials], merge_classes
        )
        for number in range(buckets)
    ]
    found = [
        call(_together, part, [call(_sizes_in, part, columns, each) for each in merged])
        for part in partitions(needed)
    ]
    meta = pd.DataFrame({_NAME: pd.Series([], dtype="int64")}, index=meta_of(frame).index)
    return from_partitions(found, meta, frame)[_NAME]


def _sizes_in(
    part: pd.DataFrame, columns: list[Hashable], counts: ClassCounts
) -> NDArray[np.int64]:
    """Return the sizes of the classes of a partition's records, 0 for those of other ranges."""
    first, second = class_keys(part, columns)
    sizes = np.zeros(len(first), np.int64)
    place = np.searchsorted(counts.first, first)
    left = np.flatnonzero(place < len(counts.first))
    while len(left):  # keys that agree in the first word are next to each other
        at = place[left]
        left, at = (each[counts.first[at] == first[left]] for each in (left, at))
        right = counts.second[at] == second[left]
        sizes[left[right]] = counts.counts[at[right]]
        left = left[~right]
        place[left] += 1
        left = left[place[left] < len(counts.first)]
    return sizes


def _together(part: pd.DataFrame, sizes: list[NDArray[np.int64]]) -> pd.DataFrame:
    return pd.DataFrame({_NAME: np.sum(sizes, axis=0, dtype=np.int64)}, index=part.index)


def _chunk(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> ClassCounts:
    return partition_classes(part, columns)


def _lone_chunk(
    part: pd.DataFrame, _number: int, columns: list[Hashable], unit: Hashable
) -> LoneUnits:
    return LoneUnits.of(part, columns, unit)


def _unit_chunk(part: pd.DataFrame, _number: int, columns: list[Hashable], unit: Hashable) -> Pairs:
    return partition_pairs(part, columns, unit)
