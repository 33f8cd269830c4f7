"""Borders that cut a total order into ranges of about equal size, ties and all.

Records are ordered by stratum, sort key and id. The ids are unique, so that even records that are
all equal can be cut. The borders come from a sample: they decide how evenly partitions are
filled, and nothing about the order itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.borders import count_below
from sdc_dask.kernels.ordered import stable_argsort

SAMPLES_A_RANGE = 256  # the size of a range is then off by some percent

# Stratum, sort key and id of some records.
Sample = tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.int64]]


@dataclass(frozen=True)
class Splitters:
    """Buckets of an order: one begins with every stratum, and one with every border.

    Attributes
    ----------
    n_strata : int
    bits : int
        Ids have so many bits.
    stratum, key, ids : ndarray
        The record that each border comes before, in order.
    """

    n_strata: int
    bits: int
    stratum: NDArray[np.int64]
    key: NDArray[np.float64]
    ids: NDArray[np.int64]

    @classmethod
    def none(cls, n_strata: int, bits: int) -> Splitters:
        """Return no borders: one bucket a stratum."""
        empty = np.empty(0, np.int64)
        return cls(n_strata, bits, empty, np.empty(0), empty)

    @classmethod
    def of_sample(cls, sample: Sample, n_strata: int, bits: int, ranges: int) -> Splitters:
        """Choose borders for so many ranges of about equal size, or for fewer."""
        stratum, key, ids = sample
        if not len(ids):
            return cls.none(n_strata, bits)
        order = np.lexsort((ids, key, stratum))
        borders = order[np.arange(1, ranges) * len(order) // ranges]
        # A record may have been drawn more than once.
        borders = borders[np.diff(ids[borders], prepend=-1) != 0]
        return cls(n_strata, bits, stratum[borders], key[borders], ids[borders])

    def __len__(self) -> int:
        """Return the number of buckets."""
        return self.n_strata + len(self.key)

    @property
    def ranges(self) -> list[int]:
        """The first bucket of every range, and one beyond the last."""
        borders = self.stratum + 1 + np.arange(len(self.key))
        return [0, *borders.tolist(), len(self)]

    def stratum_of(self, bucket: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the strata of buckets."""
        return np.searchsorted(self._first_buckets(), bucket, side="right") - 1

    def bucket_of(
        self, stratum: NDArray[np.int64], key: NDArray[np.float64], ids: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the buckets of records."""
        first = self._first_buckets()
        bucket = first[stratum]
        limits = np.searchsorted(self.stratum, np.arange(self.n_strata + 1))
        for cut in np.unique(self.stratum):
            begin, end = limits[cut], limits[cut + 1]
            members = np.flatnonzero(stratum == cut) if self.n_strata > 1 else slice(None)
            bucket[members] += _borders_before(
                self.key[begin:end], self.ids[begin:end], self.bits, key[members], ids[members]
            )
        return bucket

    def _first_buckets(self) -> NDArray[np.int64]:
        """Return the first bucket of every stratum."""
        strata = np.arange(self.n_strata)
        return strata + np.searchsorted(self.stratum, strata)


def _borders_before(
    border_key: NDArray[np.float64],
    border_id: NDArray[np.int64],
    bits: int,
    key: NDArray[np.float64],
    ids: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Count the borders that are not above each record, comparing keys first, then ids."""
    distinct, begins, place = np.unique(border_key, return_index=True, return_inverse=True)
    position = count_below(distinct, key)
    before = np.append(begins, len(border_key))[position]
    # Few items have the key of a border, and are compared by their ids, too.
    tied = np.flatnonzero(distinct[np.minimum(position, len(distinct) - 1)] == key)
    codes = (place.astype(np.int64) << bits) + border_id
    code = (position[tied].astype(np.int64) << bits) + ids[tied]
    before[tied] = np.searchsorted(codes, code, side="right")
    return before


def sample_positions(count: int, total: int, number: int, ranges: int) -> NDArray[np.int64]:
    """Choose rows of a partition for the sample: the same ones at every call.

    Parameters
    ----------
    count, total : int
        Rows of the partition, and of all.
    number : int
        Of the partition.
    ranges : int
        How many are wanted.
    """
    share = -(-count * SAMPLES_A_RANGE * ranges // max(total, 1))
    if share >= count:
        return np.arange(count)
    return np.sort(np.random.default_rng(number).integers(0, count, share))


def stack_samples(parts: Sequence[Sample]) -> Sample:
    """Put the samples of partitions together; empty ones may have keys of another kind."""
    full = [part for part in parts if len(part[2])] or parts[:1]
    stratum, key, ids = (np.concatenate(arrays) for arrays in zip(*full, strict=True))
    return stratum, key, ids


def stable_order(bucket: NDArray[np.int64], key: NDArray[np.float64]) -> NDArray[np.int64]:
    """Sort by bucket and key, in which records of equal keys stay as they were.

    Buckets ascend already.
    """
    begins = np.flatnonzero(np.diff(bucket, prepend=-1))
    if len(begins) > 256:
        return np.lexsort((key, bucket))
    parts = [
        # Comparing objects takes long: no second look at which are equal.
        begin + (np.argsort(each, kind="stable") if each.dtype == object else stable_argsort(each))
        for begin, each in zip(begins, np.split(key, begins)[1:], strict=True)
    ]
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
