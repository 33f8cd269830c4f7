"""Counting equal records by 128-bit keys: partial counts merge in any order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


@jit
def mix(h):
    """Scramble 64 bits; different bits stay different (the finalizer of MurmurHash3)."""
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


def record_keys(
    words: Sequence[tuple[NDArray[np.uint64], NDArray[np.uint64]]],
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Fold the cells of every record into a key of two 64-bit words.

    Parameters
    ----------
    words : sequence of pairs of ndarray of uint64, shape (n,)
        By column, bits of the cells. The same array twice where 64 bits say all about a cell; two
        independent hashes of it elsewhere.

    Returns
    -------
    tuple of two ndarray of uint64, shape (n,)
        Equal for equal records. Different records have the same key with a probability of the
        order of 2**-128 per pair.
    """
    n = len(words[0][0])
    first = np.full(n, 0x9E3779B97F4A7C15, np.uint64)
    second = np.full(n, 0xC2B2AE3D27D4EB4F, np.uint64)
    for number, cells in enumerate(words, 1):
        _fold(first, second, *map(np.ascontiguousarray, cells), np.uint64(number))
    return first, second


@jit
def _fold(key_a, key_b, first, second, number):
    """Fold the cells of one column into keys."""
    for i in range(len(key_a)):
        key_a[i] = mix(key_a[i] * np.uint64(0x9FB21C651E98DF25) + first[i])
        key_b[i] = mix((key_b[i] ^ second[i]) * np.uint64(0xD6E8FEB86659FD93) + number)


class ClassCounts(NamedTuple):
    """Keys of classes of equal records, sorted, and their sizes."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    counts: NDArray[np.int64]

    def bucket(self, number: int, buckets: int) -> ClassCounts:
        """Return the classes of one of several ranges of keys: ranges never share a class."""
        which = key_range(self.first, number, buckets)
        return ClassCounts(self.first[which], self.second[which], self.counts[which])


def key_range(first: NDArray[np.uint64], number: int, buckets: int) -> slice:
    """Return where one of several ranges of keys is among sorted ones, by their first words."""
    begin, end = (
        len(first) if edge == 2**64 else int(np.searchsorted(first, np.uint64(edge)))
        for edge in (i * 2**64 // buckets for i in (number, number + 1))
    )
    return slice(begin, end)


def count_keys(
    first: NDArray[np.uint64],
    second: NDArray[np.uint64],
    counts: NDArray[np.int64] | None = None,
) -> ClassCounts:
    """Count records by key; a key stands for one, or for as many as `counts` says."""
    ones = np.ones(len(first), np.int64) if counts is None else counts
    return ClassCounts(*_add_up(first, second, ones, 0))


def merge_classes(parts: Sequence[ClassCounts]) -> ClassCounts:
    """Merge partial counts, one range of keys after the other: a range fits into the cache."""
    bits = (sum(len(part.first) for part in parts) // 2**15).bit_length()
    merged = []
    for number in range(2**bits):
        pieces = [part.bucket(number, 2**bits) for part in parts]
        columns = [np.concatenate(column) for column in zip(*pieces, strict=True)]
        first, second, counts = columns
        merged.append(_add_up(first, second, counts, bits))
    return ClassCounts(*(np.concatenate(columns) for columns in zip(*merged, strict=True)))


@jit
def find_keys(first, second, wanted_first, wanted_second):
    """Return where keys are among sorted ones without doubles, -1 for those that are not."""
    places = np.empty(len(wanted_first), np.int64)
    for i in range(len(wanted_first)):
        a = wanted_first[i]
        b = wanted_second[i]
        low = 0
        high = len(first)
        while low < high:
            middle = (low + high) >> 1
            if first[middle] < a or (first[middle] == a and second[middle] < b):
                low = middle + 1
            else:
                high = middle
        found = low < len(first) and first[low] == a and second[low] == b
        places[i] = low if found else -1
    return places


@jit
def add_rows(sums, places, values):
    """Add rows of integers to those at given places."""
    for i in range(len(places)):
        for j in range(values.shape[1]):
            sums[places[i], j] += values[i, j]


@jit
def _bin(key, common, bits):
    """Return the bits of a key that follow the common ones."""
    # A shift by all 64 bits is undefined; two shifts are not.
    return np.int64((key << np.uint64(common)) >> np.uint64(1) >> np.uint64(63 - bits))


@jit
def _add_up(first, second, counts, common):
    """Add up counts by key, and sort the keys.

    Keys are hashes that agree in some leading bits, the common ones. The bits that follow spread
    them over bins evenly; a bin keeps its few different keys sorted as they come.
    """
    n = len(first)
    bits = 0
    while (n >> bits) > 16 and bits < 20:
        bits += 1
    begin = np.zeros((1 << bits) + 1, np.int64)
    for i in range(n):
        begin[_bin(first[i], common, bits) + 1] += 1
    for b in range(1 << bits):
        begin[b + 1] += begin[b]
    key_a = np.empty(n, np.uint64)
    key_b = np.empty(n, np.uint64)
    total = np.empty(n, np.int64)
    size = np.zeros(1 << bits, np.int64)
    for i in range(n):
        b = _bin(first[i], common, bits)
        low = begin[b]
        place = low + size[b]
        while place > low and (
            key_a[place - 1] > first[i]
            or (key_a[place - 1] == first[i] and key_b[place - 1] > second[i])
        ):
            place -= 1
        if place > low and key_a[place - 1] == first[i] and key_b[place - 1] == second[i]:
            total[place - 1] += counts[i]
            continue
        for j in range(low + size[b], place, -1):
            key_a[j] = key_a[j - 1]
            key_b[j] = key_b[j - 1]
            total[j] = total[j - 1]
        key_a[place] = first[i]
        key_b[place] = second[i]
        total[place] = counts[i]
        size[b] += 1
    end = 0
    for b in range(1 << bits):
        for i in range(begin[b], begin[b] + size[b]):
            key_a[end] = key_a[i]
            key_b[end] = key_b[i]
            total[end] = total[i]
            end += 1
    return key_a[:end].copy(), key_b[:end].copy(), total[:end].copy()


@jit
def by_leading_bits(first, second, common, bits):
    """Put keys in order of the bits that follow the common ones, and of nothing else.

    Returns
    -------
    keys : ndarray of uint64, shape (n, 2)
    begins : ndarray of int64, shape (2**bits + 1,)
        Where the keys of each value of the bits begin, and the end of the last.
    """
    n = len(first)
    begins = np.zeros((1 << bits) + 1, np.int64)
    for i in range(n):
        begins[_bin(first[i], common, bits) + 1] += 1
    for b in range(1 << bits):
        begins[b + 1] += begins[b]
    place = begins[:-1].copy()
    keys = np.empty((n, 2), np.uint64)
    for i in range(n):
        b = _bin(first[i], common, bits)
        keys[place[b], 0] = first[i]
        keys[place[b], 1] = second[i]
        place[b] += 1
    return keys, begins


@jit
def class_sizes_of(keys, common):
    """Return the size of every class of equal keys, which agree in the common leading bits.

    Parameters
    ----------
    keys : ndarray of uint64, shape (n, 2)
    common : int
    """
    bits = 0
    while (len(keys) >> bits) > 2**14 and bits < 12:  # a part fits into the cache
        bits += 1
    ordered, begins = by_leading_bits(keys[:, 0], keys[:, 1], common, bits)
    sizes = np.empty(len(keys), np.int64)
    end = 0
    for b in range(1 << bits):
        part = ordered[begins[b] : begins[b + 1]]
        ones = np.ones(len(part), np.int64)
        # Copies have the layout for which it is compiled anyway.
        counts = _add_up(part[:, 0].copy(), part[:, 1].copy(), ones, common + bits)[2]
        for count in counts:
            sizes[end] = count
            end += 1
    return sizes[:end]
