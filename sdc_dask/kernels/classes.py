"""Counting equal records by 128-bit keys: partial counts merge in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


@jit
def _mix(h):
    """Scramble 64 bits; different bits stay different (the finalizer of MurmurHash3)."""
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xFF51AFD7ED558CCD)
    h ^= h >> np.uint64(33)
    h *= np.uint64(0xC4CEB9FE1A85EC53)
    h ^= h >> np.uint64(33)
    return h


@jit
def record_keys(first, second):
    """Fold the cells of every record into a key of two 64-bit words.

    Parameters
    ----------
    first, second : ndarray of uint64, shape (n, d)
        Bits of the cells. The same array twice where 64 bits say all about a cell; two
        independent hashes of it elsewhere.

    Returns
    -------
    tuple of two ndarray of uint64, shape (n,)
        Equal for equal records. Different records have the same key with a probability of the
        order of 2**-128 a pair.
    """
    n, d = first.shape
    key_a = np.empty(n, np.uint64)
    key_b = np.empty(n, np.uint64)
    for i in range(n):
        a = np.uint64(0x9E3779B97F4A7C15)
        b = np.uint64(0xC2B2AE3D27D4EB4F)
        for j in range(d):
            a = _mix(a * np.uint64(0x9FB21C651E98DF25) + first[i, j])
            b = _mix((b ^ second[i, j]) * np.uint64(0xD6E8FEB86659FD93) + np.uint64(j + 1))
        key_a[i] = a
        key_b[i] = b
    return key_a, key_b


@dataclass(frozen=True)
class ClassCounts:
    """Keys of classes of equal records, in the order of their first words, and their sizes."""

    first: NDArray[np.uint64]
    second: NDArray[np.uint64]
    counts: NDArray[np.int64]

    def bucket(self, number: int, buckets: int) -> ClassCounts:
        """Return the classes of one of several ranges of keys: ranges never share a class."""
        edges = [i * 2**64 // buckets for i in (number, number + 1)]
        begin, end = (
            len(self.first) if edge == 2**64 else int(np.searchsorted(self.first, np.uint64(edge)))
            for edge in edges
        )
        return ClassCounts(self.first[begin:end], self.second[begin:end], self.counts[begin:end])


def count_keys(first: NDArray[np.uint64], second: NDArray[np.uint64]) -> ClassCounts:
    """Count records by key."""
    return merge_classes([ClassCounts(first, second, np.ones(len(first), np.int64))])


def merge_classes(parts: Sequence[ClassCounts]) -> ClassCounts:
    """Merge partial counts."""
    first = np.concatenate([part.first for part in parts])
    second = np.concatenate([part.second for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.argsort(first)
    new, mixed = _runs(first[order], second[order])
    if mixed:
        # The first words of different classes met: sort by both words.
        order = np.lexsort((second, first))
        new, _ = _runs(first[order], second[order])
    starts = np.flatnonzero(new)
    total = np.add.reduceat(counts[order], starts) if len(starts) else counts
    return ClassCounts(first[order][starts], second[order][starts], total)


def _runs(
    first: NDArray[np.uint64], second: NDArray[np.uint64]
) -> tuple[NDArray[np.bool_], bool]:
    """Mark the first of every run of equal keys; tell whether first words alone ever agree."""
    changed = second[1:] != second[:-1]
    same = first[1:] == first[:-1]
    return np.append(True, ~same | changed)[: len(first)], bool((same & changed).any())
