"""The leaves of a plan: disjoint sets of records, each described in one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Leaves:
    """Leaves by number."""

    stratum: NDArray[np.int64]
    count: NDArray[np.int64]
    low: NDArray[np.float64]  # bounds of the records
    high: NDArray[np.float64]
    centroid: NDArray[np.float64]

    @classmethod
    def of(
        cls,
        stratum: ArrayLike,
        count: ArrayLike,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        centroid: NDArray[np.float64],
    ) -> Leaves:
        """Make leaves of columns."""
        return cls(np.asarray(stratum, np.int64), np.asarray(count, np.int64), low, high, centroid)

    @classmethod
    def concatenate(cls, parts: Sequence[Leaves]) -> Leaves:
        """Put leaves one after the other."""
        return cls(
            *(
                np.concatenate([getattr(part, name) for part in parts])
                for name in cls.__dataclass_fields__
            )
        )

    def counts_alone(self) -> Leaves:
        """Return the leaves without bounds and centroids, which take most of their memory."""
        nothing = np.empty((len(self), 0))
        return replace(self, low=nothing, high=nothing, centroid=nothing)

    def __len__(self) -> int:
        return len(self.count)
