"""Row ids: where a row came from, in one integer; and how many partitions routed rows need."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.errors import SdcValueError

# A partition of routed records: a worker holds a few copies of one while it works on it.
TARGET_BYTES = 24 * 2**20
SPREAD = 16


@dataclass(frozen=True)
class RowIds:
    """Partition number and position of a row in one integer, in as few bits as the frame needs."""

    position_bits: int
    bits: int

    @classmethod
    def of(cls, rows: Sequence[int]) -> RowIds:
        """Make row ids for partitions with these numbers of rows."""
        position_bits = max(1, max(rows).bit_length())
        return cls(position_bits, position_bits + len(rows).bit_length())

    def ids(self, number: int, count: int) -> NDArray[np.int64]:
        """Return the ids of the rows of a partition."""
        return (number << self.position_bits) + np.arange(count)

    def partition(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the numbers of the partitions that rows came from."""
        return ids >> self.position_bits

    def position(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the positions of rows in the partitions that they came from."""
        return ids & ((1 << self.position_bits) - 1)

    def key(self, place: NDArray[np.int64], ids: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return place and row id in one integer."""
        return (place << self.bits) + ids

    def split(self, key: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the place and the row id in keys."""
        return key >> self.bits, key & ((1 << self.bits) - 1)

    def first_keys(self, places: Sequence[int]) -> list[int]:
        """Return the first key of each place."""
        return [place << self.bits for place in places]

    def divisions(self, n_partitions: int) -> list[int]:
        """Return the first id of every partition, and one beyond the last."""
        return [number << self.position_bits for number in range(n_partitions + 1)]


def partitions_wanted(records: int, width: int, n_partitions: int) -> int:
    """Return the number of partitions for routed records with so many values each."""
    size = records * 8 * (width + 1)
    return max(min(n_partitions, SPREAD), -(-size // TARGET_BYTES))


def check_bits(places: int, row_ids: RowIds) -> None:
    """Raise ValueError unless place and row id fit into one integer."""
    if places.bit_length() + row_ids.bits > 63:
        raise SdcValueError(
            f"{places} blocks or strata of so many records are more than can be numbered: raise "
            "max_block, or mask parts of the data."
        )
