"""Sums of float64 that are exact, so that no order of adding up can change them.

A float64 is an integer times a power of two. Adding the integers of each power apart, in 64-bit
integers, loses nothing; Python's integers put the powers together at the end.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.errors import SdcValueError
from sdc_dask.kernels._jit import jit

_DIGIT = 27  # bits: the product of two 53-bit integers has four such digits
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


def exact_products(first: NDArray[np.float64], second: NDArray[np.float64]) -> int:
    """Add up the products of the finite float64 values of two columns exactly.

    Parameters
    ----------
    first, second : ndarray of float64, one-dimensional
        Finite values, as many in both.

    Returns
    -------
    int
        The sum of the products in units of 2**-2148. Sums of parts of the data add up to the
        same integer, however the data was cut.

    Examples
    --------
    >>> import numpy as np
    >>> a, b = np.array([1e200, 3.0, 1e200]), np.array([1e200, 0.5, -1e200])
    >>> exact_products(a, b) / 2**2148
    1.5
    """
    if len(first) != len(second):
        raise SdcValueError(
            f"columns of one length have products, not of {len(first)}, {len(second)}"
        )
    digits = _add_products(
        np.ascontiguousarray(first).view(np.int64), np.ascontiguousarray(second).view(np.int64)
    )
    total = 0
    for shift in np.flatnonzero(digits.any(axis=1)):
        p0, p1, p2, p3 = (int(digit) for digit in digits[shift])
        value = p0 + (p1 << _DIGIT) + (p2 << 2 * _DIGIT) + (p3 << 3 * _DIGIT)
        total += value << int(shift)
    return total


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


@jit
def _add_products(first, second):
    """Add digits of products of mantissas (4 columns), a row a sum of exponents.

    As in _add_by_exponent, 2**36 products can be added before an int64 could overflow.
    """
    low = (np.int64(1) << 27) - 1
    fraction = (np.int64(1) << 52) - 1
    digits = np.zeros((4096, 4), np.int64)
    for i in range(first.shape[0]):
        a = first[i]
        b = second[i]
        e = (a >> 52) & 2047
        f = (b >> 52) & 2047
        m = a & fraction
        n = b & fraction
        # A subnormal number (exponent 0) has the unit of exponent 1, and no hidden bit.
        if e > 0:
            m |= np.int64(1) << 52
            e -= 1
        if f > 0:
            n |= np.int64(1) << 52
            f -= 1
        m0 = m & low
        m1 = m >> 27
        n0 = n & low
        n1 = n >> 27
        p0 = m0 * n0
        p1 = (p0 >> 27) + m0 * n1 + m1 * n0
        p2 = (p1 >> 27) + m1 * n1
        sign = np.int64(1) if (a ^ b) >= 0 else np.int64(-1)
        digits[e + f, 0] += sign * (p0 & low)
        digits[e + f, 1] += sign * (p1 & low)
        digits[e + f, 2] += sign * (p2 & low)
        digits[e + f, 3] += sign * (p2 >> 27)
    return digits
