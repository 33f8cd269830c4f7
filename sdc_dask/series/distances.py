"""Distances of time series: point by point, by slopes, and along the cheapest alignment.

A series is a row of an array. Series are compared row by row, in loops of a fixed order, so that
a distance depends on the two series alone.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdc_dask.arguments import whole_number
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels._jit import jit

__all__ = ["dtw", "euclidean", "slopes", "sts"]

Rows = NDArray[np.float64]

# Sums of squares outside [_SMALL, inf) have lost digits, or all of them: they are computed again
# from differences that are multiplied or divided by _FAR.
_SMALL = 2.0**-960
_FAR = 2.0**600


def euclidean(x: ArrayLike, v: ArrayLike) -> float | Rows:
    """Return the Euclidean distance of series: the root of the sum of squared differences.

    Parameters
    ----------
    x, v : array of numbers, shape (T,) or (n, T)
        One series, or one in every row. Many series are compared row by row with as many others,
        or all with the same one.

    Returns
    -------
    float or ndarray of float64, shape (n,)
        The distance of two series, or of every pair. It is infinite if it exceeds float64.

    Examples
    --------
    >>> euclidean([1.0, 2.0, 3.0], [1.0, 5.0, 7.0])
    5.0
    >>> euclidean([[0.0, 0.0], [3.0, 0.0]], [3.0, 4.0])
    array([5., 4.])
    """
    x, v, single = _pairs(x, v)
    _check_lengths(x, v)
    return _result(_euclidean(x, v), single)


def sts(x: ArrayLike, v: ArrayLike, times: ArrayLike | None = None) -> float | Rows:
    """Return the short time series distance: the Euclidean distance of the slopes.

    Parameters
    ----------
    x, v : array of numbers, shape (T,) or (n, T)
        One series, or one in every row, as in :func:`euclidean`; T is at least 2.
    times : array of T numbers, optional
        When the values were observed, ascending. By default they are 1 apart.

    Returns
    -------
    float or ndarray of float64, shape (n,)
        The distance of two series, or of every pair, in units of the data for a unit of time. Two
        series that differ by a constant have the distance 0.

    Notes
    -----
    Source: C. Möller-Levet, F. Klawonn, K. Cho and O. Wolkenhauer, "Fuzzy clustering of short
    time series and unevenly distributed sampling points", Advances in Intelligent Data Analysis V,
    LNCS 2810, 2003.

    Examples
    --------
    >>> sts([1.0, 2.0, 3.0], [1.0, 5.0, 10.0])
    5.0
    >>> sts([1.0, 2.0, 3.0], [11.0, 12.0, 13.0])
    0.0
    >>> sts([0.0, 0.0, 0.0], [0.0, 6.0, 10.0], times=[0, 2, 3])
    5.0
    """
    x, v, single = _pairs(x, v)
    _check_lengths(x, v)
    steps = _time_steps(times, x.shape[1])
    return _result(_euclidean(_slopes(x, steps), _slopes(v, steps)), single)


def dtw(x: ArrayLike, v: ArrayLike, window: int | None = None) -> float | Rows:
    """Return the dynamic time warping distance: the smallest over all alignments of two series.

    An alignment pairs the first values and the last values of both series, and from one pair to
    the next it moves on by one value in one of them or in both. Its cost is the sum of the squared
    differences of its pairs; the distance is the square root of the smallest cost.

    Parameters
    ----------
    x : array of numbers, shape (T,) or (n, T)
        One series, or one in every row.
    v : array of numbers, shape (S,) or (n, S)
        The same; the length may be another.
    window : int, optional
        The largest |i - j| of positions i and j that are paired (the band of Sakoe and Chiba), at
        least the difference of the lengths. By default any values may be paired; 0 gives
        :func:`euclidean`.

    Returns
    -------
    float or ndarray of float64, shape (n,)
        The distance of two series, or of every pair, in units of the data. It is infinite if it
        exceeds float64.

    Notes
    -----
    The root is taken for the units, as in :func:`euclidean`; some texts leave it out. It does not
    make the distance a metric: the triangle inequality may fail, and series that differ may have
    the distance 0.

    A pair of series takes T S steps, fewer with a window, and memory for two rows of S numbers.

    Sources: C. Myers and L. Rabiner, "A comparative study of several dynamic time-warping
    algorithms for connected word recognition", The Bell System Technical Journal 60, 1981;
    H. Sakoe and S. Chiba, "Dynamic programming algorithm optimization for spoken word
    recognition", IEEE Transactions on Acoustics, Speech, and Signal Processing 26, 1978.

    Examples
    --------
    The same peak, one step later:

    >>> dtw([0.0, 4.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0])
    0.0
    >>> dtw([0.0, 4.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0], window=0)
    5.656854249492381
    >>> dtw([[0.0, 3.0], [0.0, 0.0]], [0.0, 3.0, 3.0])
    array([0.        , 4.24264069])
    """
    x, v, single = _pairs(x, v)
    length, other = x.shape[1], v.shape[1]
    band = max(length, other)
    if window is not None:
        band = min(band, whole_number(window, "window", 0))
        if band < abs(length - other):
            raise SdcValueError(
                f"window must be at least the difference of the lengths, which are {length} and "
                f"{other}, received {window}: the last values could not be paired. Use "
                f"{abs(length - other)} or more, or None."
            )
    return _result(_dtw(x, v, band), single)


def slopes(x: ArrayLike, times: ArrayLike | None = None) -> Rows:
    """Return the slopes of series between an observation and the next.

    Parameters
    ----------
    x : array of numbers, shape (T,) or (n, T)
        One series, or one in every row; T is at least 2.
    times : array of T numbers, optional
        When the values were observed, ascending. By default they are 1 apart.

    Returns
    -------
    ndarray of float64, shape (T - 1,) or (n, T - 1)
        Differences of values divided by differences of times.

    Examples
    --------
    >>> slopes([[1.0, 2.0, 4.0], [0.0, 0.0, -3.0]])
    array([[ 1.,  2.],
           [ 0., -3.]])
    >>> slopes([1.0, 2.0, 4.0], times=[2000, 2001, 2005])
    array([1. , 0.5])
    """
    rows, single = as_rows(x, "x")
    found = _slopes(rows, _time_steps(times, rows.shape[1]))
    return found[0] if single else found


def as_rows(series: ArrayLike, name: str) -> tuple[Rows, bool]:
    """Return finite series as rows of a C-ordered float64 array, and whether there was just one."""
    array = _numbers(series, name)
    if array.ndim not in (1, 2) or array.shape[-1] == 0:
        raise SdcValueError(
            f"{name} must be one series, of shape (T,), or one in every row, of shape (n, T), with "
            f"at least one value, received an array of shape {array.shape}."
        )
    if not np.isfinite(array).all():
        missing, infinite = np.isnan(array).sum(), np.isinf(array).sum()
        raise SdcValueError(
            f"{name} must have finite values only, received {missing} missing and {infinite} "
            "infinite ones: fill them in, or leave those series out."
        )
    return np.ascontiguousarray(np.atleast_2d(array)), array.ndim == 1


def _numbers(values: ArrayLike, name: str) -> Rows:
    """Return numbers as float64."""
    try:
        array = np.asarray(values)
    except ValueError:
        raise SdcValueError(
            f"{name} must be an array, received a list whose parts have different lengths: pass "
            "series of one length."
        ) from None
    if array.dtype.kind not in "iuf":
        raise SdcTypeError(
            f"{name} must be real numbers, received dtype {array.dtype}: cast to float64."
        )
    with np.errstate(over="ignore"):  # of wider floats; the checks of values find it
        return array.astype(float, copy=False)


def _pairs(x: ArrayLike, v: ArrayLike) -> tuple[Rows, Rows, bool]:
    """Return series as rows, as many in both or one in one of them, and whether to return one."""
    rows, one = as_rows(x, "x")
    others, another = as_rows(v, "v")
    if len(rows) != len(others) and 1 not in (len(rows), len(others)):
        raise SdcValueError(
            f"x and v must have the same number of series, received {len(rows)} and "
            f"{len(others)}: pass a row for every pair, or one series to compare with all."
        )
    return rows, others, one and another


def _result(found: Rows, single: bool) -> float | Rows:
    return float(found[0]) if single else found


def _check_lengths(x: Rows, v: Rows) -> None:
    if x.shape[1] != v.shape[1]:
        raise SdcValueError(
            f"x and v must have series of one length, received {x.shape[1]} and {v.shape[1]} "
            "values: cut or fill them first, or use dtw, which compares different lengths."
        )


def _time_steps(times: ArrayLike | None, length: int) -> Rows:
    """Return the differences of times."""
    if length < 2:
        raise SdcValueError(
            f"slopes need series of at least 2 values, received {length}: use longer series."
        )
    if times is None:
        return np.ones(length - 1)
    array = _numbers(times, "times")
    if array.shape != (length,):
        raise SdcValueError(
            f"times must be one number for each of {length} values, received an array of shape "
            f"{array.shape}."
        )
    with np.errstate(over="ignore", invalid="ignore"):
        steps = np.diff(array)
    # What is missing or infinite, or too far apart, leaves a step that is not finite.
    wrong = np.count_nonzero(~(np.isfinite(steps) & (steps > 0)))
    if wrong:
        raise SdcValueError(
            f"times must be finite and ascend, received {wrong} steps that are not finite or not "
            "above 0: sort the values by time, and keep one value for each time."
        )
    return steps


def _slopes(rows: Rows, steps: Rows) -> Rows:
    found, beyond = _divide_differences(rows, steps)
    if beyond:
        raise SdcValueError(
            f"slopes must not exceed float64, received {beyond} that do: use smaller units for the "
            "values, or larger ones for times."
        )
    return found


@jit
def _divide_differences(rows: Any, steps: Any) -> Any:
    """Return the slopes of every row, and how many exceed float64."""
    n, m = rows.shape[0], steps.shape[0]
    found = np.empty((n, m))
    beyond = 0
    for i in range(n):
        for j in range(m):
            slope = (rows[i, j + 1] - rows[i, j]) / steps[j]
            if math.isinf(slope):
                # The difference of two large numbers may exceed float64, that of halves does not.
                slope = (rows[i, j + 1] / 2 - rows[i, j] / 2) / steps[j] * 2
                beyond += math.isinf(slope)
            found[i, j] = slope
    return found, beyond


@jit
def _euclidean(x: Any, v: Any) -> Any:
    n = max(x.shape[0], v.shape[0]) if min(x.shape[0], v.shape[0]) > 0 else 0
    found = np.empty(n)
    for i in range(n):
        one = x[i if x.shape[0] > 1 else 0]
        other = v[i if v.shape[0] > 1 else 0]
        total = _sum_of_squares(one, other, 1.0, 1.0)
        unit = 1.0
        if total == np.inf:
            total, unit = _sum_of_squares(one, other, 1 / _FAR, 1.0), _FAR
        elif total < _SMALL:
            total, unit = _sum_of_squares(one, other, 1.0, _FAR), 1 / _FAR
        found[i] = math.sqrt(total) * unit
    return found


@jit
def _sum_of_squares(one: Any, other: Any, inner: float, outer: float) -> Any:
    """Add up squared differences, multiplied before (inner) or after (outer) subtracting."""
    total = 0.0
    for j in range(one.shape[0]):
        difference = (one[j] * inner - other[j] * inner) * outer
        total += difference * difference
    return total


@jit
def _dtw(x: Any, v: Any, band: int) -> Any:
    n = max(x.shape[0], v.shape[0]) if min(x.shape[0], v.shape[0]) > 0 else 0
    found = np.empty(n)
    before = np.empty(v.shape[1] + 1)
    now = np.empty(v.shape[1] + 1)
    for i in range(n):
        one = x[i if x.shape[0] > 1 else 0]
        other = v[i if v.shape[0] > 1 else 0]
        total = _smallest_cost(one, other, band, before, now, 1.0, 1.0)
        unit = 1.0
        if total == np.inf:
            total, unit = _smallest_cost(one, other, band, before, now, 1 / _FAR, 1.0), _FAR
        elif total < _SMALL:
            total, unit = _smallest_cost(one, other, band, before, now, 1.0, _FAR), 1 / _FAR
        found[i] = math.sqrt(total) * unit
    return found


@jit
def _smallest_cost(
    one: Any, other: Any, band: int, before: Any, now: Any, inner: float, outer: float
) -> Any:
    """Return the smallest sum of squared differences along a path of pairs.

    `before` and `now` are two rows of costs: at j + 1 that of the best path to other[j].
    """
    m = other.shape[0]
    before[:] = np.inf
    before[0] = 0.0
    for i in range(one.shape[0]):
        first = max(0, i - band)
        end = min(m, i + band + 1)
        value = one[i] * inner
        left = np.inf
        now[first] = np.inf
        for j in range(first, end):
            best = left
            if before[j] < best:
                best = before[j]
            if before[j + 1] < best:
                best = before[j + 1]
            difference = (value - other[j] * inner) * outer
            left = best + difference * difference
            now[j + 1] = left
        if end < m:
            now[end + 1] = np.inf  # the next row reads one pair further
        before, now = now, before
    return before[m]
