"""No blocking: every stratum is one block."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.blocking.leaves import Leaves


@dataclass(frozen=True)
class Single:
    """A locator with one leaf a stratum."""

    def leaf_of(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell the leaf of every record."""
        return stratum


def leave_whole(
    counts: NDArray[np.int64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[Single, Leaves, int]:
    """Return the locator, its leaves, and the number of passes over the data: none."""
    shape = (len(counts), len(low))
    leaves = Leaves(
        np.arange(len(counts)),
        counts,
        np.broadcast_to(low, shape),
        np.broadcast_to(high, shape),
        np.broadcast_to(low / 2 + high / 2, shape),
    )
    return Single(), leaves, 0
