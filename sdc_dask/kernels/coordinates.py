"""From values in their units to the coordinates in which distances are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Beyond these powers of two, squares and differences of float64 may overflow or vanish.
_SAFE_EXPONENT = 400
# Bounds that need more binary digits than these, counted from the diagonal, are on no grid.
_GRID_BITS = 40
_ROWS_AT_A_TIME = 4096


@dataclass(frozen=True)
class Coordinates:
    """Subtract a centre and divide by a scale, column by column.

    Columns whose values are extremely large or small are multiplied by a power of two first, which
    keeps distances from overflowing.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    exponent: NDArray[np.int64]  # values are divided by 2**exponent, 0 except for extremes

    @classmethod
    def of(
        cls,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        mean: NDArray[np.float64],
        deviation: NDArray[np.float64],
        *,
        standardize: bool,
    ) -> Coordinates:
        """Make the coordinates of columns with these bounds and moments.

        Standardized columns are divided by their population deviation, a constant one by 1.
        Otherwise all columns are divided by one power of two: the geometry stays. So does the grid
        that values may lie on, since then the centre is a number on it instead of the mean.
        """
        largest = np.maximum(np.abs(low), np.abs(high))
        exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1].astype(np.int64)
        if not standardize:
            exponent = np.full_like(exponent, exponent.max())
        exponent[np.abs(exponent) <= _SAFE_EXPONENT] = 0
        centre = np.ldexp(mean, -exponent)
        scale = np.ones_like(mean)
        if standardize:
            scaled = np.ldexp(deviation, -exponent)
            scale = np.where(scaled > 0, scaled, 1.0)
        else:
            centre = _on_grid(centre, np.ldexp(low, -exponent), np.ldexp(high, -exponent))
        return cls(centre, scale, exponent)

    def shrink(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Divide values by their power of two."""
        return np.ldexp(values, -self.exponent) if self.exponent.any() else values

    def points(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coordinates of values; missing ones lie at the centre."""
        values = self.shrink(values)
        points = np.empty(values.shape)
        # Column by column, some rows at a time: those stay in the processor's cache.
        for begin in range(0, len(values), _ROWS_AT_A_TIME):
            old, new = (each[begin : begin + _ROWS_AT_A_TIME] for each in (values, points))
            for j in range(values.shape[1]):
                np.subtract(old[:, j], self.centre[j], out=new[:, j])
                np.divide(new[:, j], self.scale[j], out=new[:, j])
            missing = np.isnan(new)
            if missing.any():
                new[missing] = 0.0
        return points

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values at coordinates; none is a negative zero."""
        values = points * self.scale + self.centre
        return (np.ldexp(values, self.exponent) if self.exponent.any() else values) + 0.0


@dataclass(frozen=True)
class Slopes(Coordinates):
    """Coordinates whose distances are those between the slopes of series.

    Columns are the times of one series. The Euclidean distance between points is the short time
    series distance between the coordinates.
    """

    times: NDArray[np.float64]

    def points(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the slopes between one time and the next."""
        return np.diff(super().points(values), axis=1) / np.diff(self.times)


def _on_grid(
    mean: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Round means so that values on a grid stay on it when they are subtracted.

    They are rounded to the largest power of two within the range of a column, which is a multiple
    of the unit of any grid. If the bounds show that the columns are on no grid, the means stay.
    """
    span = high - low
    finest = np.ldexp(1.0, np.frexp(np.linalg.norm(span))[1] - _GRID_BITS)
    bounds = np.concatenate([low, high]) / finest
    if not np.array_equal(bounds, np.rint(bounds)):
        return mean
    unit = np.ldexp(1.0, np.frexp(span)[1] - 1)
    return np.where(span > 0, np.rint(mean / unit) * unit, mean)
