"""What happens to records that were routed: they are masked block by block."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.destinations import Values
from sdc_dask.engine.frames import Calls, Task
from sdc_dask.engine.row_ids import RowIds

# What is done with the row ids and masked values of a partition, in the task that masked them.
Then = Callable[[NDArray[np.int64], Values, int], Any]


class Mask(Protocol):
    """Masks routed partitions."""

    def run(self, call: Calls, parts: list[Task], row_ids: RowIds, then: Then) -> list[Task]:
        """Mask partitions, sorted by their key, and do `then` with row ids and new values.

        Parameters
        ----------
        call : Calls
        parts : list
            The routed partitions, all of them.
        row_ids : RowIds
        then : callable
            Its results are returned.
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

    def run(self, call: Calls, parts: list[Task], row_ids: RowIds, then: Then) -> list[Task]:
        """Mask partitions side by side."""
        mask = call.share(self)
        return [
            call(_mask_blocks, part, number, row_ids, mask, then)
            for number, part in enumerate(parts)
        ]


def _mask_blocks(
    routed: pd.DataFrame, number: int, row_ids: RowIds, mask: BlockMask, then: Then
) -> Any:
    return then(*mask_sorted(routed, row_ids, mask), number)


def mask_sorted(
    routed: pd.DataFrame, row_ids: RowIds, mask: BlockMask
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Mask the blocks of routed rows that are sorted; return their row ids and new values."""
    block, rows = row_ids.split(routed.index.to_numpy())
    begins = np.flatnonzero(np.diff(block, prepend=-1))
    return rows, mask.mask(routed_numbers(routed), np.append(begins, len(block)), block[begins])


def routed_frame(key: NDArray[np.int64], values: Values) -> pd.DataFrame:
    """Make a frame of a key and values, with internal names only: key, v0, v1, ...

    Numbers of a column lie together, as Arrow wants them.
    """
    if isinstance(values, pd.Series):
        return pd.DataFrame({"key": key, "v0": values.array})
    names = [f"v{j}" for j in range(values.shape[1])]
    routed = pd.DataFrame(np.asfortranarray(values), columns=names, copy=False)
    routed.insert(0, "key", key)
    return routed


def routed_numbers(routed: pd.DataFrame) -> NDArray[np.float64]:
    """Return the values of routed rows as one array, which is a copy."""
    names = [name for name in routed.columns if name[0] == "v"]
    return np.array(routed[names], dtype=np.float64, order="C", copy=True)
