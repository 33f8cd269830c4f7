"""Sums of columns and of products of all pairs of them, exactly and a few nanoseconds per value."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.exact import RANGE, ExactSum, exact_products, exact_sum, exponents

_DIGIT = 27  # bits: as in sdc_dask.kernels.exact


def exact_gram(
    columns: Sequence[NDArray[np.float64]],
) -> tuple[list[ExactSum], dict[tuple[int, int], int]]:
    """Add up columns, their squares and the products of all pairs of them exactly.

    The same as `exact_sum` of every column and `exact_products` of every pair, and several times
    faster where the largest value of a column is at most 2**28 times the smallest except for zeros.

    Parameters
    ----------
    columns : sequence of ndarray of float64, one-dimensional
        Finite values, as many of each.

    Returns
    -------
    sums : list of ExactSum
    products : dict
        Sums of products in units of 2**-2148, by the numbers of two columns, the lower first.

    Examples
    --------
    >>> import numpy as np
    >>> sums, products = exact_gram([np.array([1.0, 2.0, 4.0]), np.array([0.5, 0.0, 0.25])])
    >>> sums[0].sum_of_squares, products[0, 1] / 2**2148
    (21.0, 1.5)
    """
    columns = [np.ascontiguousarray(column) for column in columns]
    ranges = [exponents(column.view(np.int64)) for column in columns]
    narrow = [j for j, (low, high) in enumerate(ranges) if high - low <= RANGE]
    sums = [None if j in narrow else exact_sum(column) for j, column in enumerate(columns)]
    products: dict[tuple[int, int], int] = {}
    if narrow:
        units = [ranges[j][0] for j in narrow]
        bits = np.stack([columns[j] for j in narrow]).view(np.int64)
        totals, digits = _add_gram(bits, np.array(units, np.int64))
        for pair, (a, b) in enumerate(combinations_with_replacement(range(len(narrow)), 2)):
            low, high = (_join(digits[pair, :, part]) for part in range(2))
            product = (low + (high << _DIGIT)) << units[a] + units[b]
            if a == b:
                total = _join(totals[a]) << units[a]
                sums[narrow[a]] = ExactSum(bits.shape[1], total, product)
            else:
                products[narrow[a], narrow[b]] = product
    for i, j in combinations(range(len(columns)), 2):
        if (i, j) not in products:
            products[i, j] = exact_products(columns[i], columns[j])
    return [each for each in sums if each is not None], products


def _join(digits: NDArray[np.int64]) -> int:
    return sum(int(digit) << _DIGIT * place for place, digit in enumerate(digits))


@jit
def _add_gram(bits, units):
    """Return digits of the sums of columns (3 each) and of products (5 for each pair).

    In units of its smallest value a column has integers of 53 + 28 bits: three digits of 27, with
    the sign of the value. A digit of a product is the sum of at most three products of digits, so
    that those of 128 records can be added in int64; then they are cut in two (the last axis).
    """
    run = 1024
    block = 128
    d, n = bits.shape
    parts = np.empty((3, d, run), np.int32)
    totals = np.zeros((d, 3), np.int64)
    digits = np.zeros((d * (d + 1) // 2, 5, 2), np.int64)
    for start in range(0, n, run):
        m = min(run, n - start)
        for j in range(d):
            column = bits[j, start : start + m]
            _split(column, units[j], parts[0, j], parts[1, j], parts[2, j], totals[j])
        for first in range(0, m, block):
            some = slice(first, min(first + block, m))
            pair = 0
            for j in range(d):
                x, y, z = parts[0, j, some], parts[1, j, some], parts[2, j, some]
                for k in range(j, d):
                    u, v, w = parts[0, k, some], parts[1, k, some], parts[2, k, some]
                    _add_products(x, y, z, u, v, w, digits[pair])
                    pair += 1
    return totals, digits


@jit
def _split(bits, unit, low, middle, high, totals):
    """Cut the values of a column into three digits, and add these up."""
    digit = (np.int64(1) << 27) - 1
    fraction = (np.int64(1) << 52) - 1
    for i in range(len(bits)):
        b = bits[i]
        exponent = (b >> 52) & 2047
        mantissa = (b & fraction) | ((np.int64(1) << 52) if exponent > 0 else np.int64(0))
        shift = max(exponent, 1) - 1 - unit if mantissa > 0 else 0
        lower = (mantissa & digit) << shift
        upper = ((mantissa >> 27) << shift) + (lower >> 27)
        sign = np.int64(1) if b >= 0 else np.int64(-1)
        low[i] = sign * (lower & digit)
        middle[i] = sign * (upper & digit)
        high[i] = sign * (upper >> 27)
    t0 = t1 = t2 = np.int64(0)
    for i in range(len(bits)):
        t0 += low[i]
        t1 += middle[i]
        t2 += high[i]
    totals[0] += t0
    totals[1] += t1
    totals[2] += t2


@jit
def _add_products(x0, x1, x2, y0, y1, y2, digits):
    """Add the digits of the products of two columns, of which these are the digits."""
    s0 = s1 = s2 = s3 = s4 = np.int64(0)
    for i in range(len(x0)):
        a0, a1, a2 = np.int64(x0[i]), np.int64(x1[i]), np.int64(x2[i])
        b0, b1, b2 = np.int64(y0[i]), np.int64(y1[i]), np.int64(y2[i])
        s0 += a0 * b0
        s1 += a0 * b1 + a1 * b0
        s2 += a0 * b2 + a1 * b1 + a2 * b0
        s3 += a1 * b2 + a2 * b1
        s4 += a2 * b2
    low = (np.int64(1) << 27) - 1
    for place, digit in enumerate((s0, s1, s2, s3, s4)):
        digits[place, 0] += digit & low
        digits[place, 1] += digit >> 27
