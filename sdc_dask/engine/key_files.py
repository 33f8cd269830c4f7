"""Classes of equal records, counted by files: keys wait on disk, and no task holds them all.

A job that writes files has a directory that all workers reach. A partition leaves the keys of its
records there, by range; then each range is counted on its own. Nothing is merged twice, and memory
does not grow with the number of classes, which may be a large part of the number of records.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.classes import ClassSizes, merge_sizes
from sdc_dask.engine.frames import Calls, Task
from sdc_dask.engine.unit_classes import distinct_pairs, unit_sizes
from sdc_dask.kernels.classes import by_leading_bits, class_sizes_of

# Keys of a range are counted in one place: 16 bytes each, three times.
KEYS_A_RANGE = 2**21


@dataclass(frozen=True)
class KeyFile:
    """The keys of a partition's records, those of a range together."""

    path: str
    begins: NDArray[np.int64]  # where each range begins, and the end of the last
    words: int = 2  # of a key; 4 if that of a unit stands beside it

    def read(self, number: int) -> NDArray[np.uint64]:
        """Read the keys of a range."""
        begin, end = (self.words * int(each) for each in self.begins[number : number + 2])
        return np.fromfile(self.path, np.uint64, end - begin, offset=8 * begin)


@dataclass(frozen=True)
class KeyFolder:
    """Where the keys of all partitions wait, in ranges by their leading bits."""

    path: str
    bits: int

    @classmethod
    def of(cls, path: str, records: int) -> KeyFolder:
        """Choose ranges for so many records."""
        return cls(path, (records // KEYS_A_RANGE).bit_length())

    def write(self, keys: tuple[NDArray[np.uint64], NDArray[np.uint64]], name: str) -> KeyFile:
        """Write the keys of a partition's records, in order of range."""
        ordered, begins = by_leading_bits(*keys, 0, self.bits)
        return self._written(ordered, begins, name)

    def write_pairs(self, pairs: NDArray[np.uint64], name: str) -> KeyFile:
        """Write keys of records and of their units, which are in order."""
        # A shift by all 64 bits is undefined; two shifts are not.
        ranges = (pairs[:, 0] >> np.uint64(1)) >> np.uint64(63 - self.bits)
        begins = np.searchsorted(ranges, np.arange(2**self.bits + 1, dtype=np.uint64))
        return self._written(pairs, begins, name)

    def _written(
        self, ordered: NDArray[np.uint64], begins: NDArray[np.int64], name: str
    ) -> KeyFile:
        path = os.path.join(self.path, name)
        # A task that runs twice never writes into a file that is being read.
        unfinished = f"{path}.{uuid.uuid4().hex}"
        ordered.tofile(unfinished)
        os.replace(unfinished, path)
        return KeyFile(path, begins, ordered.shape[1])

    def class_sizes(self, call: Calls, files: Task) -> Task:
        """Return the task that counts the classes of all partitions, a range at a time."""
        ranges = [call(_count, files, number, self.bits) for number in range(2**self.bits)]
        return call.merge(ranges, merge_sizes)


def _count(files: Sequence[KeyFile], number: int, bits: int) -> ClassSizes:
    words = files[0].words
    keys = np.concatenate([file.read(number) for file in files]).reshape(-1, words)
    if words == 4:
        return unit_sizes(distinct_pairs(keys))
    return ClassSizes(*np.unique(class_sizes_of(keys, bits), return_counts=True))
