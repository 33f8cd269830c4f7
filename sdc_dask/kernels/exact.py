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
RANGE = 28  # bits by which mantissas of 53 are shifted for integers of three digits
_UNIT = 1074  # every float64 is a multiple of 2**-1074
# Exponents of units between which numbers that are added to cut off digits are normal and finite.
_LOWEST = 1
_HIGHEST = 1900


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
    values = np.ascontiguousarray(values)
    low, high = exponents(values.view(np.int64))
    if high - low <= RANGE and low >= _LOWEST and high <= _HIGHEST:
        return _narrow_sum(values, low)
    digits = _add_by_exponent(values.view(np.int64))
    total = squares = 0
    for exponent in np.flatnonzero(digits.any(axis=0)):
        # Subnormal numbers (exponent 0) have the unit of exponent 1.
        shift = max(int(exponent) - 1, 0)
        t0, t1, s0, s1, s2, s3 = (int(digit) for digit in digits[:, exponent])
        total += (t0 + (t1 << _DIGIT)) << shift
        squares += (s0 + (s1 << _DIGIT) + (s2 << 2 * _DIGIT) + (s3 << 3 * _DIGIT)) << 2 * shift
    return ExactSum(len(values), total, squares)


def _narrow_sum(values: NDArray[np.float64], low: int) -> ExactSum:
    """Add up values of similar size: all are integers of 81 bits in one unit."""
    totals, squares = _add_narrow(values, math.ldexp(1.0, low - _UNIT))
    total, square = (
        sum(int(digit) << _DIGIT * place for place, digit in enumerate(digits))
        for digits in (totals, squares)
    )
    return ExactSum(len(values), total << low, square << 2 * low)


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
def exponents(bits):
    """Return the exponents of the units of the smallest value that is not 0, and of the largest."""
    magnitude = np.int64(0x7FFFFFFFFFFFFFFF)
    smallest = magnitude
    largest = np.int64(0)
    for i in range(len(bits)):
        b = bits[i] & magnitude
        smallest = min(smallest, b if b > 0 else magnitude)
        largest = max(largest, b)
    # Subnormal numbers (exponent 0) have the unit of exponent 1.
    high = max(largest >> 52, 1) - 1
    return min(max(smallest >> 52, 1) - 1, high), high


@jit
def _add_narrow(values, unit):
    """Return digits of the sums of values (3) and of their squares (6), in units.

    Adding a number that is large enough, and subtracting it again, rounds a value to a multiple of
    2**54 units, and what is left to a multiple of 2**27. The bits of such a sum, less those of the
    number, are the digit: below 2**27, with a sign. So digits of squares, which are sums of at most
    three products, can be added in int64 for 256 values; then they are cut in two.
    """
    run = 256
    digit = (np.int64(1) << 27) - 1
    larger = np.array([1.5 * 2.0**52, 1.5 * 2.0**79, 1.5 * 2.0**106]) * unit
    less0, less1, less2 = larger.view(np.int64)
    c0, c1, c2 = larger
    rounded = np.empty((3, run))
    bits = rounded.view(np.int64)
    totals = np.zeros(3, np.int64)
    squares = np.zeros(6, np.int64)
    for start in range(0, len(values), run):
        some = values[start : start + run]
        for i in range(len(some)):
            high = some[i] + c2
            rest = some[i] - (high - c2)
            middle = rest + c1
            rounded[2, i] = high
            rounded[1, i] = middle
            rounded[0, i] = (rest - (middle - c1)) + c0
        t0 = t1 = t2 = s0 = s1 = s2 = s3 = s4 = np.int64(0)
        for i in range(len(some)):
            # By way of 32 bits, so that the compiler takes the products that vectors have.
            x = np.int64(np.int32(bits[0, i] - less0))
            y = np.int64(np.int32(bits[1, i] - less1))
            z = np.int64(np.int32(bits[2, i] - less2))
            t0 += x
            t1 += y
            t2 += z
            s0 += x * x
            s1 += x * y
            s2 += 2 * (x * z) + y * y
            s3 += y * z
            s4 += z * z
        totals[0] += t0
        totals[1] += t1
        totals[2] += t2
        for place, total in enumerate((s0, 2 * s1, s2, 2 * s3, s4)):
            squares[place] += total & digit
            squares[place + 1] += total >> 27
    return totals, squares


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
