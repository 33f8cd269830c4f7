"""How two versions of a column differ: sums of differences without rounding, and counts on a grid.

Both read a column once, a few values at a time, and keep nothing of its length.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

UNIT = 1074  # every float64 is a multiple of 2**-1074
_DIGIT = 27  # bits of the lower of two digits of a mantissa

# The grid has the cell 0 around the mean, and as many on both sides. Runs of _CELLS_A_CLASS cells,
# of which one has the mean in its middle, too, are the classes of a coarser one.
CLASSES = 63
_CELLS_A_CLASS = 33
CELLS = CLASSES * _CELLS_A_CLASS
_HALF = (CELLS + 1) // 2


@dataclass(frozen=True)
class Differences:
    """Counts and exact sums of two versions of a column, which add up with ``+``.

    `absolute` and `relative` count units of 2**-1074.
    """

    n: int  # cells with a value in both
    unchanged: int
    zeros: int  # that became another number
    infinite: int  # relative differences that exceed float64
    invalid: int  # cells that are infinite, or missing in one version only
    absolute: int  # sum of |x - x'|
    relative: int  # sum of |x - x'| / |x|, without zeros

    def __add__(self, other: Differences) -> Differences:
        return Differences(
            self.n + other.n,
            self.unchanged + other.unchanged,
            self.zeros + other.zeros,
            self.infinite + other.infinite,
            self.invalid + other.invalid,
            self.absolute + other.absolute,
            self.relative + other.relative,
        )


def differences(original: NDArray[np.float64], masked: NDArray[np.float64]) -> Differences:
    """Add up absolute and relative differences, and count the cells that are as they were.

    A difference is that of float64, rounded once, and twice if it is relative; the sums are exact.

    Parameters
    ----------
    original, masked : ndarray of float64, one-dimensional
        As many values in both; NaN where both have none.

    Returns
    -------
    Differences

    Examples
    --------
    >>> import numpy as np
    >>> sums = differences(np.array([1.0, 2.0, 0.0, 5.0]), np.array([1.5, 2.0, 4.0, 4.0]))
    >>> sums.absolute / 2**UNIT, sums.relative / 2**UNIT, sums.unchanged, sums.zeros
    (5.5, 0.7, 1, 1)
    """
    counts, absolute, relative = _sum_differences(original, masked)
    return Differences(*(int(count) for count in counts), _total(absolute), _total(relative))


def _total(digits: NDArray[np.int64]) -> int:
    total = 0
    for exponent in np.flatnonzero(digits.any(axis=0)):
        low, high = (int(digit) for digit in digits[:, exponent])
        # Subnormal numbers (exponent 0) have the unit of exponent 1.
        total += (low + (high << _DIGIT)) << max(int(exponent) - 1, 0)
    return total


@jit
def _sum_differences(original, masked):
    """Return counts in the order of the fields, and digits of the sums by exponent (2 rows).

    Mantissas of 53 bits are added in int64, which has room for the 512 of a run; then they are
    cut into digits, of which 2**36 can be added.
    """
    run = 512
    counts = np.zeros(5, np.int64)
    sums = np.zeros((2, 2, 2048), np.int64)
    size = np.empty((2, run))
    bits = size.view(np.int64)
    added = np.zeros((2, 2048), np.int64)
    unchanged = 0
    n = 0
    for start in range(0, len(original), run):
        m = min(run, len(original) - start)
        for i in range(m):
            x = original[start + i]
            size[0, i] = abs(x - masked[start + i])
            size[1, i] = size[0, i] / abs(x)
        first, last = 2047, 0
        for i in range(m):
            a = bits[0, i]
            r = bits[1, i]
            e = a >> 52
            if a == 0:
                unchanged += 1
                continue
            f = r >> 52
            # Zeros, missing and infinite cells, and what exceeds float64, come one by one.
            if e == 2047 or f == 2047:
                continue
            n += 1
            mantissa = a & ((np.int64(1) << 52) - 1)
            if e > 0:
                mantissa |= np.int64(1) << 52
            added[0, e] += mantissa
            mantissa = (r & ((np.int64(1) << 52) - 1)) | np.int64(1) << 52
            added[1, f] += mantissa
            first = min(first, e, f)
            last = max(last, e, f)
        for e in range(first, last + 1):
            for k in range(2):
                sums[k, 0, e] += added[k, e] & ((np.int64(1) << 27) - 1)
                sums[k, 1, e] += added[k, e] >> 27
                added[k, e] = 0
    counts[0] = n + unchanged
    counts[1] = unchanged
    return counts, sums[0], sums[1]
