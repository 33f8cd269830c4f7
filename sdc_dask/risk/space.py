"""Where an intruder measures the distances between records."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame
from sdc_dask.engine.moments import co_moments
from sdc_dask.engine.scan import Scan
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.neighbours import whiten

_LARGEST = 1e150  # squares of larger numbers may exceed float64
# A column is taken for a linear function of others if they leave so little of its variance.
_LEAST_VARIANCE = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """From values to points. Their weighted Euclidean distance is that of the intruder."""

    coordinates: Coordinates
    factor: Array | None  # of the correlation matrix, for the Mahalanobis distance

    @property
    def weight(self) -> Array:
        """What differences of coordinates are multiplied by."""
        scale = self.coordinates.scale
        return 1 / scale if self.factor is None else np.ones_like(scale)

    def points(self, values: Array) -> Array:
        """Return the points of finite values. Equal records become equal points, bit by bit."""
        if self.factor is None:
            return self.coordinates.shrink(values)
        return whiten(self.coordinates.points(values), self.factor)

    def masked_points(self, values: Array, columns: Sequence[Hashable]) -> Array:
        """Return the points of masked values, which may lie anywhere."""
        for j, column in enumerate(columns):
            for count, what in (
                (int(np.isnan(values[:, j]).sum()), "missing cells"),
                (int(np.isinf(values[:, j]).sum()), "infinite values"),
            ):
                if count:
                    raise SdcValueError(
                        f"column {column!r} of the masked frame has {count} {what} in a partition: "
                        "their distance is not a number. Replace them, or drop those records from "
                        "both frames."
                    )
        with np.errstate(over="ignore"):
            points = self.points(values)
            if not np.all(np.abs(points * self.weight) < _LARGEST):
                raise SdcValueError(
                    "masked values lie so far from the original ones that their distance exceeds "
                    "float64: look for wrong values in the masked frame, or leave columns out."
                )
        return points

    def pairs(
        self, original: Array, masked: Array, columns: Sequence[Hashable]
    ) -> tuple[Array, Array]:
        """Return the points of original and of masked records."""
        return self.points(original), self.masked_points(masked, columns)


def space_of(
    original: Frame,
    columns: Sequence[Hashable],
    found: Scan,
    distance: str,
    standardize: bool,
) -> Space:
    """Return the space of an original frame that was scanned."""
    coordinates = found.coordinates(columns, standardize=standardize)
    if distance == "euclidean":
        return Space(coordinates, None)
    return Space(coordinates, _cholesky(co_moments(original, columns).correlation(), columns))


def _cholesky(correlation: Array, columns: Sequence[Hashable]) -> Array:
    """Return the lower triangular L with L L^T = correlation, or say which columns have none."""
    d = len(columns)
    factor = np.zeros((d, d))
    dependent = []
    for j in range(d):
        # What the columns before leave of the variance of this one.
        rest = correlation[j, j] - math.fsum(factor[j, :j] ** 2)
        if rest < _LEAST_VARIANCE:
            dependent.append(columns[j])
            continue
        factor[j, j] = math.sqrt(rest)
        for i in range(j + 1, d):
            product = math.fsum(factor[i, :j] * factor[j, :j])
            factor[i, j] = (correlation[i, j] - product) / factor[j, j]
    if dependent:
        listed = ", ".join(repr(column) for column in dependent)
        raise SdcValueError(
            f"columns are linear functions of those before them: {listed}. Their covariance matrix "
            "has no inverse, and there is no Mahalanobis distance: leave them out, or use "
            "distance='euclidean'."
        )
    return factor
