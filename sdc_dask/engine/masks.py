"""What happens to records that were routed: they are masked block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pandas as pd
from dask.delayed import delayed
from numpy.typing import NDArray

from sdc_dask.engine.placement import RowIds

# What is done with the row ids and masked values of a partition, in the task that masked them.
Then = Callable[[NDArray[np.int64], NDArray[np.float64], int], Any]


class Mask(Protocol):
    """Masks routed partitions."""

    def run(self, parts: list[Any], row_ids: RowIds, then: Then, *, lazy: bool) -> list[Any]:
        """Mask partitions, sorted by their key, and do `then` with row ids and new values.

        Parameters
        ----------
        parts : list of Delayed or of pandas DataFrame
            The routed partitions, all of them.
        row_ids : RowIds
        then : callable
            Its results are returned.
        lazy : bool
            Whether partitions are Delayed, and the results are to be.
        """


class BlockMask(ABC):
    """Masks every block on its own."""

    @abstractmethod
    def mask(
        self,
        values: NDArray[np.float64],
        bounds: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Mask the blocks of a partition.

        Parameters
        ----------
        values : ndarray of float64, shape (n, d)
            Records in order of block and row. May be overwritten.
        bounds : ndarray of int64
            Where the blocks begin, and the end of the last.
        numbers : ndarray of int64
            The number of each block, the same for every partitioning.
        """

    def run(self, parts: list[Any], row_ids: RowIds, then: Then, *, lazy: bool) -> list[Any]:
        """Mask partitions side by side."""
        task = as_tasks(_mask_blocks, lazy)
        mask = as_shared(self, lazy)
        return [task(part, number, row_ids, mask, then) for number, part in enumerate(parts)]


def as_tasks(function: Callable[..., Any], lazy: bool) -> Callable[..., Any]:
    """Return a function whose calls are tasks, or the function itself."""
    return delayed(function, pure=False) if lazy else function


def as_shared(argument: Any, lazy: bool) -> Any:
    """Return an argument that is sent once, not with every task, or the argument itself."""
    return delayed(argument, pure=False, traverse=False) if lazy else argument


def _mask_blocks(
    routed: pd.DataFrame, number: int, row_ids: RowIds, mask: BlockMask, then: Then
) -> Any:
    return then(*mask_sorted(routed, row_ids, mask), number)


def mask_sorted(
    routed: pd.DataFrame, row_ids: RowIds, mask: BlockMask
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Mask the blocks of routed rows that are sorted; return their row ids and new values."""
    block, rows, values = open_routed(routed, row_ids)
    begins = np.flatnonzero(np.diff(block, prepend=-1))
    return rows, mask.mask(values, np.append(begins, len(block)), block[begins])


def open_routed(
    routed: pd.DataFrame, row_ids: RowIds
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Return the block, row id and values of routed rows; the values are a copy."""
    key = routed.index.to_numpy()
    names = [name for name in routed.columns if name[0] == "v"]
    values = np.array(routed[names], dtype=np.float64, order="C", copy=True)
    return key >> row_ids.bits, key & ((1 << row_ids.bits) - 1), values
