"""Anonymity that was reached: how many records share the same values."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import pandas as pd

from sdc_dask.engine.classes import ClassSizes, merged_class_sizes, partition_classes
from sdc_dask.engine.frames import Calls, Frame, map_partitions
from sdc_dask.engine.unit_classes import Pairs, merged_unit_sizes, partition_pairs
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.classes import ClassCounts
from sdc_dask.results import Result

# The classes of so many partitions are merged in one place.
PARTITIONS_A_BUCKET = 32


@dataclass(frozen=True, repr=False)
class Anonymity(Result):
    """Classes of records that are equal in some columns."""

    rows: int = field(metadata={"note": "records"})
    classes: int = field(metadata={"note": "distinct records"})
    k_min: int = field(metadata={"note": "records of the smallest class: higher is safer"})
    k_mean: float = field(metadata={"note": "k', records over distinct records"})
    k: int | None = field(metadata={"note": "the k that was asked for"})
    below_k: int | None = field(metadata={"note": "classes with fewer records: 0 is safe"})


def anonymity(
    frame: Frame, columns: Sequence[Hashable], k: int | None, unit: Hashable | None = None
) -> Anonymity:
    """Count classes of equal records in one pass: their records, or their different units."""
    found = of_sizes(sizes_in(frame, columns), k)
    if unit is None:
        return found
    return of_units(found, units_in(frame, columns, unit), k)


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
    partials = map_partitions([frame[columns]], _chunk, columns)
    buckets = -(-len(partials) // PARTITIONS_A_BUCKET)
    return call.compute(merged_class_sizes(call, partials, buckets))


def of_sizes(sizes: ClassSizes, k: int | None) -> Anonymity:
    """Summarize the sizes of classes."""
    rows = int((sizes.sizes * sizes.classes).sum())
    if rows == 0:
        raise SdcValueError("the frame has no records: there are no classes to count.")
    classes = int(sizes.classes.sum())
    below = None if k is None else int(sizes.classes[sizes.sizes < k].sum())
    return Anonymity(rows, classes, int(sizes.sizes.min()), rows / classes, k, below)


def _chunk(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> ClassCounts:
    return partition_classes(part, columns)


def _unit_chunk(part: pd.DataFrame, _number: int, columns: list[Hashable], unit: Hashable) -> Pairs:
    return partition_pairs(part, columns, unit)
