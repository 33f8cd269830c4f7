"""Sums of float64 that are exact, so that no order of adding up can change them.

A float64 is an integer times a power of two. Adding the integers of each power apart, in 64-bit
integers, loses nothing; Python's integers put the powers together at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

_DIGIT = 27  # bits: the square of a 53-bit integer has four such digits
_UNIT = 1074  # every float64 is a multiple of 2**-1074


@dataclass(frozen=True)
class ExactSum:
    """The number of values, their sum and the sum of their squares, without rounding.

    `total` counts units of 2**-1074, `squares` units of 2**-2148. Partials of parts of the data
    add up with ``+`` to the same integers, however the data was cut.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([1e300, 1.0]), np.array([-1e300, 1.0])
    >>> (exact_sum(a) + exact_sum(b)).mean
    0.5
    """

    n: int = 0
    total: int = 0
    squares: int = 0

    def __add__(self, other: ExactSum) -> ExactSum:
        return ExactSum(self.n + other.n, self.total + other.total, self.squares + other.squares)

    @property
    def mean(self) -> float:
        """Arithmetic mean, correctly rounded."""
        return self.total / (self.n << _UNIT)

    @property
    def spread(self) -> int:
        """n^2 times the population variance: n sum(x^2) - sum(x)^2, in units of 2**-2148."""
        return self.n * self.squares - self.total * self.total

    @property
    def deviation(self) -> float:
        """Population standard deviation, whatever the squares would overflow or underflow to."""
        spread = self.spread
        if spread == 0:
            return 0.0
        # An even power of two brings the ratio into the range of float64, and out after the root.
        denominator = self.n * self.n
        power = (spread.bit_length() - denominator.bit_length()) // 2 * 2
        ratio = spread / (denominator << power) if power >= 0 else (spread << -power) / denominator
        return math.ldexp(math.sqrt(ratio), power // 2 - _UNIT)

    @property
    def sum_of_squares(self) -> float:
        """Sum of squares, correctly rounded; infinite if it exceeds float64."""
        try:
            return self.squares / (1 << 2 * _UNIT)
        except OverflowError:
            return math.inf


def exact_sum(values: NDArray[np.float64]) -> ExactSum:
    """Add up finite float64 values and their squares exactly.

    Parameters
    ----------
    values : ndarray of float64, one-dimensional
        Finite values.

    Returns
    -------
    ExactSum
    """
    digits = _add_by_exponent(np.ascontiguousarray(values).view(np.int64))
    total = squares = 0
    for exponent in np.flatnonzero(digits.any(axis=0)):
        # Subnormal numbers (exponent 0) have the unit of exponent 1.
        shift = max(int(exponent) - 1, 0)
        t0, t1, s0, s1, s2, s3 = (int(digit) for digit in digits[:, exponent])
        total += (t0 + (t1 << _DIGIT)) << shift
        squares += (s0 + (s1 << _DIGIT) + (s2 << 2 * _DIGIT) + (s3 << 3 * _DIGIT)) << 2 * shift
    return ExactSum(len(values), total, squares)


@jit
def _add_by_exponent(bits):
    """Add digits of mantissas (2 rows) and of their squares (4 rows), a column an exponent.

    A digit has 27 bits, so that 2**36 values can be added before an int64 could overflow.
    """
    low = (np.int64(1) << 27) - 1
    digits = np.zeros((6, 2048), np.int64)
    for i in range(bits.shape[0]):
        b = bits[i]
        exponent = (b >> 52) & 2047
        mantissa = b & ((np.int64(1) << 52) - 1)
        if exponent > 0:
            mantissa |= np.int64(1) << 52
        m0 = mantissa & low
        m1 = mantissa >> 27
        if b < 0:
            digits[0, exponent] -= m0
            digits[1, exponent] -= m1
        else:
            digits[0, exponent] += m0
            digits[1, exponent] += m1
        square = m0 * m0
        digits[2, exponent] += square & low
        square = (square >> 27) + 2 * m0 * m1
        digits[3, exponent] += square & low
        square = (square >> 27) + m1 * m1
        digits[4, exponent] += square & low
        digits[5, exponent] += square >> 27
    return digits
