"""Sums over classes of equal records, which every record can look up again.

A partition adds up what its records bring, by the 128-bit keys of their classes. The sums of all
partitions merge a range of keys at a time, and records find their sums a range at a time, too: no
task holds more than a range and a partition. All sums are integers, so that no order of adding up
changes them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.frames import Calls, Task
from sdc_dask.kernels.classes import add_rows, count_keys, find_keys, key_range

# The sums of so many partitions are merged in one place.
PARTITIONS_A_RANGE = 16

OTHER_VALUES = (
    "the frame had other values when it was read again: write it, or call persist, and measure "
    "that."
)

_DIGIT = 30  # bits: 2**33 numbers can be added before an int64 could overflow
DIGITS = 3

Keys = tuple[NDArray[np.uint64], NDArray[np.uint64]]


class ClassTable(NamedTuple):
    """Keys of classes, sorted, and sums of integers for each."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    sums: NDArray[np.int64]  # a row for each class

    def bucket(self, number: int, buckets: int) -> ClassTable:
        """Return the classes of one of several ranges of keys."""
        which = key_range(self.first, number, buckets)
        return ClassTable(self.first[which], self.second[which], self.sums[which])

    def at(self, keys: Keys) -> NDArray[np.int64]:
        """Return the sums of keys, zeros for those that are not in the table."""
        places = find_keys(self.first, self.second, *keys)
        found = np.zeros((len(places), self.sums.shape[1]), np.int64)
        found[places >= 0] = self.sums[places[places >= 0]]
        return found


def add_up(keys: Keys, values: NDArray[np.int64]) -> ClassTable:
    """Add up rows of integers by key."""
    classes = count_keys(*keys)
    sums = np.zeros((len(classes.first), values.shape[1]), np.int64)
    add_rows(sums, find_keys(classes.first, classes.second, *keys), values)
    return ClassTable(classes.first, classes.second, sums)


def merge_tables(parts: Sequence[ClassTable]) -> ClassTable:
    """Add up the sums of several tables."""
    if len(parts) == 1:
        return parts[0]
    first, second, sums = (np.concatenate(each) for each in zip(*parts, strict=True))
    return add_up((first, second), sums)


def ranges_for(partitions: int) -> int:
    """Return into how many ranges of keys the sums of so many partitions are cut."""
    return -(-partitions // PARTITIONS_A_RANGE)


def merged_tables(call: Calls, partials: list[Task]) -> list[Task]:
    """Merge the tables of all partitions, and return one for each range of keys."""
    number = ranges_for(len(partials))
    return [
        call.merge([call(ClassTable.bucket, each, i, number) for each in partials], merge_tables)
        for i in range(number)
    ]


def look_up(call: Calls, keys: Task, tables: list[Task]) -> Task:
    """Return the task that finds the sums of a partition's keys in the tables of all ranges."""
    number = len(tables)
    found = [call(_in_range, keys, table, i, number) for i, table in enumerate(tables)]
    return call(_together, found)


def _in_range(
    keys: Keys, table: ClassTable, number: int, ranges: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which keys lie in a range, and their sums."""
    low, high = (i * 2**64 // ranges for i in (number, number + 1))
    within = (keys[0] >= np.uint64(low)) & (keys[0] <= np.uint64(high - 1))
    places = np.flatnonzero(within)
    return places, table.at((keys[0][places], keys[1][places]))


def _together(found: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> NDArray[np.int64]:
    together = np.empty((sum(len(places) for places, _ in found), found[0][1].shape[1]), np.int64)
    for places, sums in found:
        together[places] = sums
    return together


# Sums of numbers that are not negative


def exponent_above(largest: float) -> int:
    """Return an exponent of two above all numbers up to the largest."""
    return math.frexp(largest)[1]


def to_digits(values: NDArray[np.float64], exponent: int) -> NDArray[np.int64]:
    """Return numbers below 2**exponent as integers of three digits, which can be added up.

    Numbers of more than 2**(exponent - 37) lose nothing, smaller ones what is below 2**-90 of the
    bound, whatever else is added up.
    """
    digits = np.empty((len(values), DIGITS), np.int64)
    rest = np.ldexp(values, _DIGIT - exponent)
    for j in range(DIGITS):
        whole = np.floor(rest)
        digits[:, j] = whole
        rest = np.ldexp(rest - whole, _DIGIT)
    return digits


def from_digits(digits: NDArray[np.int64], exponent: int) -> NDArray[np.float64]:
    """Return sums of digits as numbers."""
    high, middle, low = digits.T
    middle = middle + (low >> _DIGIT)
    high = high + (middle >> _DIGIT)
    rest = 2**_DIGIT - 1
    small = np.ldexp((low & rest).astype(np.float64), -_DIGIT) + (middle & rest)
    return np.ldexp(high + np.ldexp(small, -_DIGIT), exponent - _DIGIT)
