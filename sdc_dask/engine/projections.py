"""Projections: one number a record, by which records are put in order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdc_dask import aggregation
from sdc_dask.engine.moments import CoMoments
from sdc_dask.kernels.coordinates import Coordinates

AGGREGATIONS = ("mean", "weighted_mean", "owa", "choquet", "sugeno", "twofold")


@dataclass(frozen=True)
class Single:
    """The value of the only column."""

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project records."""
        return _sortable(values[:, 0].copy())


@dataclass(frozen=True)
class Axis:
    """A weighted sum of coordinates."""

    coordinates: Coordinates
    weights: NDArray[np.float64]

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project records, adding columns in their order."""
        points = self.coordinates.points(values)
        total = np.zeros(len(points))
        for j, weight in enumerate(self.weights):
            total += weight * points[:, j]
        return _sortable(total)


@dataclass(frozen=True)
class Axes:
    """Weighted sums of coordinates, several per record: a view of many columns in few dimensions.

    Attributes
    ----------
    coordinates : Coordinates
    weights : ndarray of float64, shape (d, m)
    """

    coordinates: Coordinates
    weights: NDArray[np.float64]

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project records, adding coordinates in their order."""
        points = self.coordinates.points(values)
        total = np.zeros((len(points), self.weights.shape[1]))
        for j, weights in enumerate(self.weights):
            total += points[:, j, None] * weights
        return total + 0.0


@dataclass(frozen=True)
class Aggregated:
    """An aggregation function of the columns, each scaled to [0, 1] by its bounds."""

    name: str
    parameters: tuple[Any, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    def __call__(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Project records."""
        scaled = aggregation.scale_to_unit(values, self.low, self.high)
        return _sortable(aggregate(self.name, scaled, self.parameters))


def aggregate(
    name: str, scaled: NDArray[np.float64], parameters: tuple[Any, ...]
) -> NDArray[np.float64]:
    """Apply an aggregation function, one of AGGREGATIONS, with its weights or measures."""
    name = "arithmetic_mean" if name == "mean" else name
    return getattr(aggregation, name)(scaled, *parameters)


def principal_axis(moments: CoMoments, *, standardize: bool) -> NDArray[np.float64]:
    """Return the first principal component: the eigenvector of X'X / n with the largest eigenvalue.

    X is standardized, so that this is the matrix of correlations. If it is not, X is taken as it
    is, neither centred nor scaled. The sign makes the largest entry positive.
    """
    matrix = moments.correlation() if standardize else _products(moments)
    # A column is the eigenvector; eigenvalues ascend.
    axis = np.linalg.eigh(matrix)[1][:, -1]
    return axis * np.sign(axis[np.argmax(np.abs(axis))])


def principal_axes(covariance: NDArray[np.float64], number: int) -> NDArray[np.float64]:
    """Return the first principal components as columns; their largest entries are positive."""
    axes = np.linalg.eigh(covariance)[1][:, ::-1][:, :number]
    largest = np.take_along_axis(axes, np.argmax(np.abs(axes), axis=0)[None], axis=0)
    return axes * np.sign(largest)


def _products(moments: CoMoments) -> NDArray[np.float64]:
    """Return X'X / n, except for a factor that brings it into the range of float64."""
    columns = moments.columns
    squares = [(each.squares, each.n) for each in moments.sums.values()]
    largest = max(max(total for total, _ in squares), 1)
    matrix = np.empty((len(columns), len(columns)))
    for i, (total, n) in enumerate(squares):
        matrix[i, i] = total * moments.n / (largest * max(n, 1))
    for (first, second), pair in moments.pairs.items():
        i, j = columns.index(first), columns.index(second)
        matrix[i, j] = matrix[j, i] = pair.products * moments.n / (largest * max(pair.n, 1))
    return matrix


def _sortable(projected: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return keys without NaN, which records without any value have, and without negative zero."""
    projected[np.isnan(projected)] = 0.0
    return projected + 0.0
