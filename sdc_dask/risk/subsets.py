"""Classes of equal records in many subsets of some columns, counted together.

A partition is reduced to its different records first, of which keys of categories have few. Subsets
are counted in batches: what all partitions know of the classes of a batch is bounded, whatever the
number of subsets.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.class_tables import Keys, ranges_for
from sdc_dask.engine.classes import (
    ClassSizes,
    cell_words,
    class_sizes,
    merge_sizes,
)
from sdc_dask.engine.frames import Calls, Frame, Task, map_partitions
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.classes import (
    ClassCounts,
    count_keys,
    find_keys,
    merge_classes,
    record_keys,
)

# Different records of all partitions, times subsets, that are counted in one pass: 24 bytes each.
MOST_KEYS = 2**25

# Subsets that are counted at all.
MOST_SUBSETS = 10_000

Subset = tuple[int, ...]  # places of columns


def subsets_of(columns: int, sizes: Iterable[int]) -> list[Subset]:
    """Return all subsets of some sizes, the small ones first."""
    sizes = sorted(set(sizes))
    number = sum(math.comb(columns, size) for size in sizes)
    if number > MOST_SUBSETS:
        raise SdcValueError(
            f"{columns} keys have {number:,} subsets of these sizes, and at most {MOST_SUBSETS:,} "
            "are counted: name fewer keys, or smaller sizes."
        )
    return [each for size in sizes for each in itertools.combinations(range(columns), size)]


class Different(NamedTuple):
    """The different records of a partition."""

    words: list[Keys]  # bits of their cells, by column
    counts: NDArray[np.int64]
    rows: NDArray[np.int64]  # the first record of each

    @classmethod
    def of(cls, part: pd.DataFrame, keys: Sequence[Hashable]) -> Different:
        """Return the different records of a partition, in some order."""
        words = [cell_words(part[name]) for name in keys]
        key = record_keys(words)
        classes = count_keys(*key)
        rows = np.empty(len(classes.first), np.int64)
        places = find_keys(classes.first, classes.second, *key)
        rows[places[::-1]] = np.arange(len(part))[::-1]
        return cls([(first[rows], second[rows]) for first, second in words], classes.counts, rows)

    def keys(self, subset: Subset) -> Keys:
        """Return the keys of records in some columns."""
        return record_keys([self.words[j] for j in subset])

    def alone(self) -> Different:
        """Return the records that no other of the partition equals."""
        which = self.counts == 1
        words = [(first[which], second[which]) for first, second in self.words]
        return Different(words, self.counts[which], self.rows[which])


class Census(NamedTuple):
    """How many records are equal in all columns, and how many differ within partitions."""

    sizes: ClassSizes
    different: int

    @property
    def rows(self) -> int:
        """Number of records."""
        return int((self.sizes.sizes * self.sizes.classes).sum())

    def classes_of(self, size: int) -> int:
        """Return the number of classes with so many records."""
        return int(self.sizes.classes[self.sizes.sizes == size].sum())


def count_all(frame: Frame, keys: Sequence[Hashable]) -> Census:
    """Count the classes of records that are equal in all columns, in one pass."""
    call = Calls.of(frame)
    everything: list[Subset] = [tuple(range(len(keys)))]
    partials = map_partitions([frame[list(keys)]], _count, list(keys), everything)
    different = call.merge([call(_length, each) for each in partials], sum)
    ranges = [call(_sizes, each) for each in _merged(call, partials)]
    census = Census(*call.compute([call.merge(ranges, merge_sizes), different]))
    if census.rows == 0:
        raise SdcValueError("the frame has no records: there are no classes to count.")
    return census


def batches(subsets: list[Subset], census: Census) -> Iterator[list[Subset]]:
    """Cut subsets into those that are counted in one pass."""
    size = max(1, MOST_KEYS // max(1, census.different))
    for start in range(0, len(subsets), size):
        yield subsets[start : start + size]


def count_subsets(frame: Frame, keys: Sequence[Hashable], subsets: list[Subset]) -> list[Task]:
    """Return for each range of keys the task that counts the classes of each subset in it."""
    partials = map_partitions([frame[list(keys)]], _count, list(keys), subsets)
    return _merged(Calls.of(frame), partials)


def key_names(frame: Frame, keys: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Return the columns of a frame whose subsets are counted."""
    return arguments.key_columns(arguments.unique_columns(frame), keys)


def _count(
    part: pd.DataFrame, _number: int, keys: list[Hashable], subsets: list[Subset]
) -> list[ClassCounts]:
    different = Different.of(part, keys)
    return [count_keys(*different.keys(subset), different.counts) for subset in subsets]


def _merged(call: Calls, partials: list[Task]) -> list[Task]:
    number = ranges_for(len(partials))
    return [
        call.merge([call(_range_of, each, i, number) for each in partials], _merge)
        for i in range(number)
    ]


def _range_of(counts: list[ClassCounts], number: int, ranges: int) -> list[ClassCounts]:
    return [each.bucket(number, ranges) for each in counts]


def _merge(parts: list[list[ClassCounts]]) -> list[ClassCounts]:
    return [merge_classes(each) for each in zip(*parts, strict=True)]


def _length(counts: list[ClassCounts]) -> int:
    return len(counts[0].first)


def _sizes(counts: list[ClassCounts]) -> ClassSizes:
    return class_sizes(counts[0])
