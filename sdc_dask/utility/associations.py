"""What masking has changed of pairs of columns: contingency tables, and mutual information.

References
----------
T. M. Cover, J. A. Thomas, *Elements of Information Theory*, Wiley, 2006, chapter 2, for mutual
information; J. Domingo-Ferrer, V. Torra, "Disclosure control methods and information loss for
microdata", in: Confidentiality, Disclosure, and Data Access, North-Holland, 2001, for contingency
tables as a measure of loss.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.class_tables import ClassTable, add_up, merge_tables, ranges_for
from sdc_dask.engine.classes import ClassSizes, merge_sizes
from sdc_dask.engine.frames import (
    Calls,
    Frame,
    Task,
    from_partitions,
    map_partitions,
    meta_of,
)
from sdc_dask.engine.mixed import NOMINAL, PLAIN, MixedColumn, Reading, extent_of, mixed_columns
from sdc_dask.engine.ranks import values_at
from sdc_dask.kernels.classes import record_keys
from sdc_dask.results import Result
from sdc_dask.utility.frequencies import same_number

BINS = 10

# Combinations of values of all partitions that are counted in one pass: 32 bytes each.
MOST_CLASSES = 2**25
PARTITIONS = 64  # that are taken to have all combinations at the same time

Set = tuple[int, ...]  # places of columns


@dataclass(frozen=True, repr=False)
class Associations(Result):
    """Contingency tables and mutual information of pairs of columns, before and after masking.

    Tuples have an entry for each pair. Information is in bits.
    """

    rows: int
    bins: int
    columns: dict[Hashable, float]  # records that have moved in the table of a single column
    pairs: tuple[tuple[Hashable, Hashable], ...]
    moved: tuple[float, ...]
    information: tuple[float, ...]
    masked_information: tuple[float, ...]

    @property
    def mean_moved(self) -> float | None:
        """The mean over pairs of the records that have moved, in percent; None without pairs."""
        return math.fsum(self.moved) / len(self.pairs) if self.pairs else None

    @property
    def mean_shift(self) -> float | None:
        """The mean over pairs of the change of mutual information in bits; None without pairs."""
        both = zip(self.information, self.masked_information, strict=True)
        return math.fsum(abs(a - b) for a, b in both) / len(self.pairs) if self.pairs else None

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each pair."""
        return pd.DataFrame(
            {
                "first": [pair[0] for pair in self.pairs],
                "second": [pair[1] for pair in self.pairs],
                "moved": self.moved,
                "information": self.information,
                "masked_information": self.masked_information,
            }
        )

    def __repr__(self) -> str:
        """Show the table, and what its columns are."""
        lines = [f"Associations of {self.rows:,} records, numbers and dates in {self.bins} bins"]
        table = self.to_frame().to_string(index=False, float_format="{:.4g}".format)
        lines += [f"  {line}" for line in table.splitlines()]
        notes = {
            "moved": "percent of records in other cells of the table of two columns",
            "information": "mutual information of the columns, in bits",
        }
        return "\n".join([*lines, *(f"  {name:<12} {note}" for name, note in notes.items())])


def associations(
    original: Frame,
    masked: Frame,
    names: Sequence[Hashable],
    bins: int,
    reading: Reading = PLAIN,
) -> Associations:
    """Compare pairs of columns before and after masking."""
    columns = mixed_columns(meta_of(original), meta_of(masked), names, reading)
    binned = _binned(original, columns, bins)
    frames = original[list(names)], masked[list(names)]
    singles: list[Set] = [(j,) for j in range(len(names))]
    alone = _count(frames, binned, singles)
    rows = same_number(_records(alone[0].before), _records(alone[0].after))
    pairs: list[Set] = list(itertools.combinations(range(len(names)), 2))
    together = []
    for batch in _batches(pairs, [each.classes for each in alone], rows) if pairs else ():
        together += _count(frames, binned, batch)
    found = []
    for (i, j), pair in zip(pairs, together, strict=True):
        shared = [
            max(0.0, _entropy(a, rows) + _entropy(b, rows) - _entropy(both, rows))
            for a, b, both in (
                (alone[i].before, alone[j].before, pair.before),
                (alone[i].after, alone[j].after, pair.after),
            )
        ]
        found.append((100 * pair.moved / (2 * rows), *shared))
    moved, information, masked_information = zip(*found, strict=True) if found else ((), (), ())
    return Associations(
        rows,
        bins,
        {name: 100 * each.moved / (2 * rows) for name, each in zip(names, alone, strict=True)},
        tuple((names[i], names[j]) for i, j in pairs),
        moved,
        information,
        masked_information,
    )


# Cells of columns


@dataclass(frozen=True)
class _Binned:
    """A column, and where its numbers are cut; categories are not."""

    column: MixedColumn
    cuts: NDArray[np.float64] | None

    def words(self, part: pd.DataFrame) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        if self.cuts is None:
            return self.column.words(part)
        values = self.column.numbers(part)
        cells = np.searchsorted(self.cuts, values, side="right").astype(np.uint64)
        cells[np.isnan(values)] = len(self.cuts) + 1
        return cells, cells


def _binned(frame: Frame, columns: list[MixedColumn], bins: int) -> list[_Binned]:
    """Cut columns that have an order at quantiles of the original."""
    in_order = [each for each in columns if each.kind != NOMINAL]
    cuts: dict[Hashable, NDArray[np.float64]] = {}
    if in_order:
        present = extent_of(frame, in_order).present
        cuts = {each.name: np.zeros(0) for each in in_order}  # for those without any value
        in_order = [each for each, n in zip(in_order, present, strict=True) if n]
        present = present[present > 0]
    if in_order:
        needed = frame[[each.name for each in in_order]]
        ranks = [np.unique(np.arange(1, bins) * int(n) // bins) for n in present]
        parts = map_partitions([needed], _numbers, in_order)
        meta = _numbers(meta_of(needed), 0, in_order)
        numbers = from_partitions(parts, meta, needed)
        found = values_at(numbers, list(meta.columns), ranks)
        cuts |= {each.name: np.unique(cut) for each, cut in zip(in_order, found, strict=True)}
    return [_Binned(each, cuts.get(each.name)) for each in columns]


def _numbers(part: pd.DataFrame, _number: int, columns: list[MixedColumn]) -> pd.DataFrame:
    return pd.DataFrame(
        {str(j): column.numbers(part) for j, column in enumerate(columns)}, index=part.index
    )


# Classes of equal records in sets of columns


class _Counted(NamedTuple):
    """The cells of the table of some columns."""

    before: ClassSizes
    after: ClassSizes
    moved: int  # sum of absolute differences
    classes: int


def _count(frames: tuple[Frame, Frame], columns: list[_Binned], sets: list[Set]) -> list[_Counted]:
    """Count the cells of the tables of sets of columns, in one pass over each frame."""
    call = Calls.of(frames[0])
    partials: list[Task] = []
    for which, frame in enumerate(frames):
        partials += map_partitions([frame], _tables, columns, sets, which)
    number = ranges_for(len(partials))
    ranges = [
        call(_counted, call.merge([call(_range_of, each, i, number) for each in partials], _merge))
        for i in range(number)
    ]
    return call.compute(call.merge(ranges, _merge_counted))


def _batches(pairs: list[Set], values: list[int], rows: int) -> Iterator[list[Set]]:
    """Cut pairs of columns into those that are counted in one pass, by the cells they may have."""
    batch: list[Set] = []
    room = MOST_CLASSES
    for i, j in pairs:
        most = min(2 * rows, values[i] * values[j] * PARTITIONS)
        if batch and most > room:
            yield batch
            batch, room = [], MOST_CLASSES
        batch.append((i, j))
        room -= most
    yield batch


def _tables(
    part: pd.DataFrame, _number: int, columns: list[_Binned], sets: list[Set], which: int
) -> list[ClassTable]:
    words = [column.words(part) for column in columns]
    values = np.zeros((len(part), 2), np.int64)
    values[:, which] = 1
    return [add_up(record_keys([words[j] for j in places]), values) for places in sets]


def _range_of(tables: list[ClassTable], number: int, ranges: int) -> list[ClassTable]:
    return [each.bucket(number, ranges) for each in tables]


def _merge(parts: list[list[ClassTable]]) -> list[ClassTable]:
    return [merge_tables(each) for each in zip(*parts, strict=True)]


def _counted(tables: list[ClassTable]) -> list[_Counted]:
    found = []
    for table in tables:
        before, after = table.sums.T
        moved = int(np.abs(before - after).sum())
        found.append(_Counted(_sizes(before), _sizes(after), moved, len(table.first)))
    return found


def _sizes(counts: NDArray[np.int64]) -> ClassSizes:
    return ClassSizes(*np.unique(counts[counts > 0], return_counts=True))


def _merge_counted(parts: list[list[_Counted]]) -> list[_Counted]:
    merged = []
    for each in zip(*parts, strict=True):
        before, after, moved, classes = zip(*each, strict=True)
        merged.append(_Counted(merge_sizes(before), merge_sizes(after), sum(moved), sum(classes)))
    return merged


def _records(sizes: ClassSizes) -> int:
    return int((sizes.sizes * sizes.classes).sum())


def _entropy(sizes: ClassSizes, rows: int) -> float:
    """Return the entropy of a distribution in bits: the same for every order of its classes."""
    both = zip(sizes.sizes.tolist(), sizes.classes.tolist(), strict=True)
    return math.log2(rows) - math.fsum(n * size * math.log2(size) for size, n in both) / rows
