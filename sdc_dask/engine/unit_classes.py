"""Classes of equal records, and how many different units each has.

A pair is the key of a record's class beside that of its unit: four words of 64 bits.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.classes import ClassSizes, class_keys, merge_sizes
from sdc_dask.engine.frames import Calls, Task
from sdc_dask.engine.units import unit_keys

Pairs = NDArray[np.uint64]  # shape (n, 4): in order, each once


def partition_pairs(part: pd.DataFrame, columns: Sequence[Hashable], unit: Hashable) -> Pairs:
    """Return the pairs of class and unit of a partition."""
    return distinct_pairs(np.column_stack([*class_keys(part, columns), *unit_keys(part[unit])]))


def distinct_pairs(pairs: NDArray[np.uint64]) -> Pairs:
    """Put pairs in order, and leave out those that occur again."""
    ordered = pairs[np.lexsort(pairs.T[::-1])]
    new = np.ones(len(ordered), bool)
    new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    return ordered[new]


def unit_sizes(pairs: Pairs) -> ClassSizes:
    """Return how many classes have how many units."""
    new = np.ones(len(pairs), bool)
    new[1:] = (pairs[1:, :2] != pairs[:-1, :2]).any(axis=1)
    counts = np.diff(np.flatnonzero(new), append=len(pairs))
    return ClassSizes(*np.unique(counts, return_counts=True))


def merged_unit_sizes(call: Calls, partials: list[Task], buckets: int) -> Task:
    """Merge the pairs of many partitions, a range of classes at a time."""
    merged = []
    for number in range(buckets):
        pieces = [call(_bucket, partial, number, buckets) for partial in partials]
        merged.append(call(unit_sizes, call.merge(pieces, _merge)))
    return call.merge(merged, merge_sizes)


def _bucket(pairs: Pairs, number: int, buckets: int) -> Pairs:
    begin, end = (
        len(pairs)
        if each == buckets
        else int(np.searchsorted(pairs[:, 0], np.uint64(each * 2**64 // buckets)))
        for each in (number, number + 1)
    )
    return pairs[begin:end]


def _merge(parts: Sequence[Pairs]) -> Pairs:
    return distinct_pairs(np.concatenate(parts))
