"""From values in their units to the coordinates in which distances are measured."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

# Beyond these powers of two, squares and differences of float64 may overflow or vanish.
_SAFE_EXPONENT = 400


@dataclass(frozen=True)
class Coordinates:
    """Subtract a centre and divide by a scale, column by column.

    Columns whose values are extremely large or small are multiplied by a power of two first, which
    keeps distances from overflowing.
    """

    centre: NDArray[np.float64]
    scale: NDArray[np.float64]
    exponent: NDArray[np.int64]  # values are divided by 2**exponent, 0 but for extremes

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
        Otherwise all columns are divided by one power of two: the geometry stays.
        """
        largest = np.maximum(np.abs(low), np.abs(high))
        exponent = np.frexp(np.where(largest > 0, largest, 1.0))[1].astype(np.int64)
        if not standardize:
            exponent = np.full_like(exponent, exponent.max())
        exponent[np.abs(exponent) <= _SAFE_EXPONENT] = 0
        scale = np.ones_like(mean)
        if standardize:
            scaled = np.ldexp(deviation, -exponent)
            scale = np.where(scaled > 0, scaled, 1.0)
        return cls(np.ldexp(mean, -exponent), scale, exponent)

    def shrink(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Divide values by their power of two."""
        return np.ldexp(values, -self.exponent) if self.exponent.any() else values

    def points(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the coordinates of values; missing ones lie at the centre."""
        points = (self.shrink(values) - self.centre) / self.scale
        points[np.isnan(points)] = 0.0
        return points

    def values(self, points: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the values at coordinates; none is a negative zero."""
        values = points * self.scale + self.centre
        return (np.ldexp(values, self.exponent) if self.exponent.any() else values) + 0.0
