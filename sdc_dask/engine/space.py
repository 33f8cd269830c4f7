"""Spaces in which distances between records are measured: scaled, and whitened if need be."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.moments import CoMoments
from sdc_dask.engine.scan import Scan
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates, Slopes
from sdc_dask.kernels.exact import ExactSum
from sdc_dask.kernels.neighbours import whiten

_LARGEST = 1e150  # squares of larger numbers may exceed float64
# A column is taken for a linear function of others if they leave so little of its variance.
_LEAST_VARIANCE = 1e-9

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Space:
    """From values to points, whose weighted Euclidean distance is that of the space."""

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

    def masked_points(self, values: Array) -> Array:
        """Return the points of masked values, which may lie anywhere."""
        with np.errstate(over="ignore"):
            return checked_points(self.points(values), self.weight)

    def pairs(self, original: Array, masked: Array) -> tuple[Array, Array]:
        """Return the points of original and of masked records."""
        return self.points(original), self.masked_points(masked)


@dataclass(frozen=True)
class SeriesSpace:
    """Series side by side, each in coordinates of its own, in which distances are Euclidean.

    Attributes
    ----------
    series : tuple
        Coordinates, one for each series, and the number of its columns.
    """

    series: tuple[tuple[Coordinates, int], ...]

    @property
    def weight(self) -> Array:
        """What differences of coordinates are multiplied by: coordinates are scaled already."""
        slopes = sum(isinstance(each, Slopes) for each, _ in self.series)
        return np.ones(sum(length for _, length in self.series) - slopes)

    def points(self, values: Array) -> Array:
        """Return the points of finite values. Equal records become equal points, bit by bit."""
        found, begin = [], 0
        for coordinates, length in self.series:
            found.append(coordinates.points(values[:, begin : begin + length]))
            begin += length
        return np.hstack(found)

    def masked_points(self, values: Array) -> Array:
        """Return the points of masked values, which may lie anywhere."""
        with np.errstate(over="ignore"):
            return checked_points(self.points(values), 1.0)

    def pairs(self, original: Array, masked: Array) -> tuple[Array, Array]:
        """Return the points of original and of masked records."""
        return self.points(original), self.masked_points(masked)


def checked_points(points: Array, weight: Array | float) -> Array:
    """Return points, or raise ValueError if their distances exceed float64."""
    if not np.all(np.abs(points * weight) < _LARGEST):
        raise SdcValueError(
            "masked values lie so far from the original ones that their distance exceeds float64: "
            "look for wrong values in the masked frame, or leave columns out."
        )
    return points


def series_space(
    found: Scan,
    sets: Sequence[Sequence[Hashable]],
    *,
    slopes: bool,
    times: Sequence[float] | None = None,
) -> SeriesSpace:
    """Return the space of series of a frame that was scanned.

    Each series has one mean and one deviation, over all records and times: it keeps its shape, and
    all series weigh the same.
    """
    series = []
    for columns in sets:
        pooled = sum(found.sums(columns).values(), ExactSum())
        low, high = found.bounds(columns)
        # One scale for all times, as if they were one column.
        whole = Coordinates.of(
            np.full_like(low, low.min()),
            np.full_like(high, high.max()),
            np.full_like(low, pooled.mean),
            np.full_like(low, pooled.deviation),
            standardize=True,
        )
        if slopes:
            stamps = np.arange(len(columns)) if times is None else np.asarray(times)
            whole = Slopes(whole.centre, whole.scale, whole.exponent, stamps.astype(np.float64))
        series.append((whole, len(columns)))
    return SeriesSpace(tuple(series))


def euclidean(found: Scan, columns: Sequence[Hashable], *, standardize: bool) -> Space:
    """Return the space of columns of a frame that was scanned, in deviations or in their units."""
    return Space(found.coordinates(columns, standardize=standardize), None)


def mahalanobis(found: Scan, columns: Sequence[Hashable], moments: CoMoments) -> Space:
    """Return the space of columns in which all directions have the same variance.

    Parameters
    ----------
    found : Scan
    columns : sequence
    moments : CoMoments
        Of these columns, or of more.
    """
    places = [moments.columns.index(column) for column in columns]
    correlation = moments.correlation()[np.ix_(places, places)]
    return Space(found.coordinates(columns, standardize=True), _cholesky(correlation, columns))


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
