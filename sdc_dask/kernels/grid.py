"""Records on a grid: whole numbers, or multiples of a power of two.

Their distances can be computed without rounding, so that equal distances are equal. Distances to
a centroid are multiplied by the number of records for that, which leaves whole numbers.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part

# Squares of fewer units than 2^26 are whole numbers that float64 holds, and so is the sum of them.
_GRID_BITS = 26
_LARGEST = 2.0**52
_SMALLEST_UNIT = 2.0**-500  # the square of less may vanish


def centred(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points around the origin: less their mean, rounded to the grid if they are on one.

    Examples
    --------
    >>> import numpy as np
    >>> centred(np.array([[2.0], [3.0], [5.0]]))
    array([[-1.],
           [ 0.],
           [ 2.]])
    >>> centred(np.array([[0.1], [0.6]]))
    array([[-0.25],
           [ 0.25]])
    """
    mean = points.mean(axis=0)
    unit = grid_unit(points)
    return points - (np.rint(mean / unit) * unit if unit > 0.0 else mean)


@jit
def grid_unit(points):
    """Return the largest power of two of which all coordinates are multiples.

    Return 0 if the squared distances between some of the points may be rounded.
    """
    diagonal, largest = _extent(points)
    if not 0.0 < diagonal < np.inf:
        return 0.0
    finest = math.ldexp(1.0, math.frexp(diagonal)[1] - _GRID_BITS)
    if finest < _SMALLEST_UNIT or largest / finest >= _LARGEST:
        return 0.0
    bits = 0
    for i in range(points.shape[0]):
        for j in range(points.shape[1]):
            number = points[i, j] / finest
            if number != math.floor(number):
                return 0.0
            bits |= np.int64(number)
    return finest * (bits & -bits)


@jit
def exact_count(points):
    """Return the largest number of points whose distances to their centroid can be exact.

    The squared distances of n times the points to their sum are not rounded for any n of the
    points, up to this number; it is 0 if the points are not on a grid.
    """
    unit = grid_unit(points)
    if unit == 0.0:
        return 0
    diagonal, largest = _extent(points)
    if len(points) * (largest / unit) >= _LARGEST:
        return 0
    return np.int64(2.0**_GRID_BITS * (unit / diagonal))


@jit
def _extent(points):
    """Return the diagonal of the box of the points, and the largest coordinate."""
    square = 0.0
    largest = 0.0
    for j in range(points.shape[1]):
        low = points[0, j]
        high = low
        for i in range(1, points.shape[0]):
            low = min(low, points[i, j])
            high = max(high, points[i, j])
        square += (high - low) * (high - low)
        largest = max(largest, max(-low, high))
    return math.sqrt(square), largest


@jit_part
def centroid(total, count, exact, out):
    """Write the centroid of records, times a number, given their sum; return the number.

    It is the number of the records if that keeps distances exact, otherwise 1.
    """
    scale = float(count) if count <= exact else 1.0
    for j in range(len(total)):
        out[j] = total[j] if count <= exact else total[j] / count
    return scale
