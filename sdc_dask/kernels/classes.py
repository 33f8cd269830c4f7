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
    ndarray of uint64, shape (n, 2)
        Equal for equal records. Different records have the same key with a probability of the
        order of 2**-128 a pair.
    """
    n, d = first.shape
    keys = np.empty((n, 2), np.uint64)
    for i in range(n):
        a = np.uint64(0x9E3779B97F4A7C15)
        b = np.uint64(0xC2B2AE3D27D4EB4F)
        for j in range(d):
            a = _mix(a * np.uint64(0x9FB21C651E98DF25) + first[i, j])
            b = _mix((b ^ second[i, j]) * np.uint64(0xD6E8FEB86659FD93) + np.uint64(j + 1))
        keys[i, 0] = a
        keys[i, 1] = b
    return keys


@dataclass(frozen=True)
class ClassCounts:
    """Keys of classes of equal records, sorted, and their numbers of records."""

    keys: NDArray[np.uint64]
    counts: NDArray[np.int64]

    def bucket(self, number: int, buckets: int) -> ClassCounts:
        """Return the classes of one of several ranges of keys: ranges never share a class."""
        width = 2**64 // buckets
        edges = np.array([number * width, (number + 1) * width - 1], np.uint64)
        begin = np.searchsorted(self.keys[:, 0], edges[0], side="left")
        last = number == buckets - 1
        end = len(self.keys) if last else np.searchsorted(self.keys[:, 0], edges[1], side="right")
        return ClassCounts(self.keys[begin:end], self.counts[begin:end])


def count_keys(keys: NDArray[np.uint64]) -> ClassCounts:
    """Count records by key."""
    return merge_classes([ClassCounts(keys, np.ones(len(keys), np.int64))])


def merge_classes(parts: Sequence[ClassCounts]) -> ClassCounts:
    """Merge partial counts."""
    keys = np.concatenate([part.keys for part in parts])
    counts = np.concatenate([part.counts for part in parts])
    order = np.lexsort((keys[:, 1], keys[:, 0]))
    keys, counts = keys[order], counts[order]
    new = np.ones(len(keys), bool)
    new[1:] = (keys[1:] != keys[:-1]).any(axis=1)
    first = np.flatnonzero(new)
    return ClassCounts(keys[first], np.add.reduceat(counts, first) if len(first) else counts)
