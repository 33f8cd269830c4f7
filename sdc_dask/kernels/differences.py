"""What is added up to compare two versions of columns, exactly and a few nanoseconds per value.

Differences of values, and counts on a grid. All kernels read columns once and keep nothing of their
length.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.errors import SdcValueError
from sdc_dask.kernels._jit import jit, jit_part

_UNIT = 1074  # every float64 is a multiple of 2**-1074
_DIGIT = 27  # bits: as in sdc_dask.kernels.exact

# Cells of a grid are numbered from its middle, so that one has the mean in its middle. Runs of
# cells form classes, of which the same is true.
_CLASSES = 63
_CELLS_A_CLASS = 33
CELLS = _CLASSES * _CELLS_A_CLASS
_STEPS = (CELLS + 1) // 2
_FINENESS = 4  # of grids that are rounded
# Of a power of two: less is rounded to the one below. Neither 1, the deviation of what was
# standardized, nor that of uniform values from 0 to a power of ten is near it.
_ROUNDED_DOWN = 0.65


@dataclass(frozen=True)
class Differences:
    """Counts and exact sums of two versions of a column, which add up with ``+``.

    `absolute` and `relative` count units of 2**-1074.
    """

    n: int = 0  # cells with a value
    unchanged: int = 0
    zeros: int = 0  # that became another number
    infinite: int = 0  # relative differences that exceed float64
    invalid: int = 0  # cells that are infinite, or missing in one version only
    absolute: int = 0  # sum of |x - x'|
    relative: int = 0  # sum of |x - x'| / |x|, except for zeros

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

    @property
    def mean_relative(self) -> float | None:
        """Mean of the relative differences; None if all values are zeros that changed."""
        if self.n == self.zeros:
            return None
        return math.inf if self.infinite else self.relative / (self.n - self.zeros << _UNIT)


def differences(original: NDArray[np.float64], masked: NDArray[np.float64]) -> Differences:
    """Add up absolute and relative differences, and count the cells that are as they were.

    Every difference is rounded to float64, as is every relative one; their sums are exact.

    Parameters
    ----------
    original, masked : ndarray of float64, one-dimensional
        As many values in both, NaN where both have none.

    Returns
    -------
    Differences

    Examples
    --------
    >>> import numpy as np
    >>> found = differences(np.array([1.0, 2.0, 0.0, 5.0]), np.array([1.5, 2.0, 4.0, 4.0]))
    >>> found.absolute / 2**1074, found.unchanged, found.zeros
    (5.5, 1, 1)
    >>> round(found.mean_relative, 4)  # (0.5 + 0 + 0.2) / 3
    0.2333
    """
    if len(original) != len(masked):
        raise SdcValueError(f"versions of a column of {len(original)} and {len(masked)} values")
    counts, digits = _add_differences(np.ascontiguousarray(original), np.ascontiguousarray(masked))
    totals = [0, 0]
    for which, exponent in np.argwhere(digits.any(axis=1)):
        low, high = (int(digit) for digit in digits[which, :, exponent])
        # Subnormal numbers (exponent 0) have the unit of exponent 1.
        totals[which] += (low + (high << _DIGIT)) << max(int(exponent) - 1, 0)
    return Differences(*(int(count) for count in counts), *totals)


@jit
def _add_differences(original, masked):
    """Return counts in the order of the fields, and digits of both sums, a column an exponent.

    A mantissa has 53 bits, so that those of a run of 1,000 can be added in int64 as they are.
    Then the sums are cut into digits of 27 bits, of which 2**36 can be added.
    """
    run = 1000
    fraction = (np.int64(1) << 52) - 1
    hidden = np.int64(1) << 52
    low = (np.int64(1) << 27) - 1
    counts = np.zeros(5, np.int64)
    digits = np.zeros((2, 2, 2048), np.int64)
    absolute = np.empty(run)
    relative = np.empty(run)
    absolute_bits = absolute.view(np.int64)
    relative_bits = relative.view(np.int64)
    sums = np.zeros((2, 2048), np.int64)
    for start in range(0, len(original), run):
        old = original[start : start + run]
        new = masked[start : start + run]
        for i in range(len(old)):
            difference = abs(old[i] - new[i])
            absolute[i] = difference
            relative[i] = difference / abs(old[i]) if old[i] != 0 else 0.0
        unchanged = 0
        changed = 0
        zeros = 0
        first = np.int64(2047)
        last = np.int64(0)
        for i in range(len(old)):
            a = absolute_bits[i]
            if a == 0:
                unchanged += 1
                continue
            r = relative_bits[i]
            e = a >> 52
            f = r >> 52
            if e == 2047 or f == 2047:
                continue
            changed += 1
            sums[0, e] += (a & fraction) | (hidden if e > 0 else 0)
            # Two float64 that differ do so by a 2**54th at least: f is 0 for zeros alone.
            zeros += f == 0
            sums[1, f] += (r & fraction) | (hidden if f > 0 else 0)
            first = min(first, min(e, f if f > 0 else e))
            last = max(last, max(e, f))
        for e in range(first, last + 1):
            for which in range(2):
                digits[which, 0, e] += sums[which, e] & low
                digits[which, 1, e] += sums[which, e] >> 27
                sums[which, e] = 0
        counts[0] += unchanged + changed
        counts[1] += unchanged
        counts[2] += zeros
        if unchanged + changed < len(old):
            _add_special(old, new, counts, digits)
    return counts, digits


@jit
def _add_special(old, new, counts, digits):
    """Add the cells of a run that were passed over: a difference or its ratio is not finite."""
    value = np.empty(1)
    bits = value.view(np.int64)
    for i in range(len(old)):
        x = old[i]
        y = new[i]
        difference = abs(x - y)
        if difference == 0 or (difference < np.inf and (x == 0 or difference / abs(x) < np.inf)):
            continue
        if np.isnan(x) and np.isnan(y):
            continue
        if not (np.isfinite(x) and np.isfinite(y)):
            counts[4] += 1
            continue
        counts[0] += 1
        # Where the difference exceeds float64, its half is added, an exponent higher.
        doubled = 0
        if difference == np.inf:
            difference = abs(x / 2 - y / 2)
            doubled = 1
        value[0] = difference
        _add_digits(bits[0], doubled, digits[0])
        ratio = difference / abs(x)
        if ratio * (1 + doubled) == np.inf:
            counts[3] += 1
            continue
        value[0] = ratio
        _add_digits(bits[0], doubled, digits[1])


@jit
def _add_digits(bits, doubled, digits):
    exponent = bits >> 52
    mantissa = bits & ((np.int64(1) << 52) - 1)
    if exponent > 0:
        mantissa |= np.int64(1) << 52
    digits[0, exponent + doubled] += mantissa & ((np.int64(1) << 27) - 1)
    digits[1, exponent + doubled] += mantissa >> 27


@dataclass(frozen=True)
class Grid:
    """Cells of a line that is bent into an interval: narrow at the mean, wide far from it.

    With z = (x - mean) / scale, cells have the same width in z / (1 + abs(z)), which lies between
    -1 and 1. An outlier takes the last cell, and makes no other wider.
    """

    mean: float
    scale: float
    fineness: int = 1  # cells are so many times narrower, and there are about so many times as many

    def count(self, values: NDArray[np.float64]) -> NDArray[np.int64]:
        """Count the values in each cell; NaN counts nowhere.

        Examples
        --------
        >>> import numpy as np
        >>> counts = Grid(2.0, 1.0).count(np.array([2.0, 2.0, 1e300, np.nan]))
        >>> counts[CELLS // 2], counts[-1], counts.sum()
        (np.int64(2), np.int64(1), np.int64(3))
        """
        return _count(np.ascontiguousarray(values), *self._units(), self._steps)

    def values(self) -> NDArray[np.float64]:
        """Return the values in the middle of each cell.

        Examples
        --------
        >>> middles = Grid(2.0, 1.0).values()
        >>> middles[CELLS // 2], round(middles[CELLS // 2 + 1], 4)
        (np.float64(2.0), np.float64(2.001))
        """
        steps = np.arange(1 - self._steps, self._steps) / self._steps
        with np.errstate(over="ignore"):
            return self.mean + self.scale * (steps / (1 - np.abs(steps)))

    def rounded(self) -> Grid:
        """Return a finer grid around a round number, in a round unit.

        Parts of data whose means and deviations are about the same have the same one, so that
        they can be counted before those of all data are known.

        Examples
        --------
        >>> Grid(5003.0, 2880.0).rounded()
        Grid(mean=4096.0, scale=4096.0, fineness=4)
        >>> Grid(4996.0, 2893.0).rounded() == Grid(5003.0, 2880.0).rounded()
        True
        """
        share, exponent = math.frexp(self.scale)
        scale = math.ldexp(1.0, min(exponent - (share < _ROUNDED_DOWN), 1023))
        step = max(scale / 2, math.ulp(0.0))
        mean = float(self.mean)
        mean -= math.remainder(mean, step)
        largest = sys.float_info.max
        return Grid(min(max(mean, -largest), largest), scale, _FINENESS)

    def gather(self, finer: Grid, counts: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the counts in each cell from those of a finer grid, by the middles of its cells.

        Examples
        --------
        >>> import numpy as np
        >>> grid, values = Grid(2.1, 1.2), np.array([1.0, 2.1, 2.1, 4.0])
        >>> finer = grid.rounded()
        >>> bool((grid.gather(finer, finer.count(values)) == grid.count(values)).all())
        True
        """
        cells = _cells(finer.values(), *self._units(), self._steps)
        found = np.zeros(2 * self._steps, np.int64)
        np.add.at(found, cells, counts)
        return found[:-1]

    @property
    def _steps(self) -> int:
        return self.fineness * _STEPS

    def _units(self) -> tuple[float, float, float]:
        """Return a power of two, what the mean is times it, and the inverse of what the scale is.

        The power brings the scale near 1: differences and ratios stay within float64.
        """
        power = math.ldexp(1.0, min(-math.frexp(self.scale)[1], 1000))
        return power, self.mean * power, 1 / (self.scale * power)


def classes_of(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the counts of 63 classes from those of the cells."""
    return counts.reshape(_CLASSES, _CELLS_A_CLASS).sum(axis=1)


def quantiles_of(counts: NDArray[np.int64], parts: int) -> NDArray[np.float64]:
    """Return the z of the cells that hold the quantiles 1/parts, 2/parts, ...

    The quantile p of n values is the one of rank p n, rounded up.
    """
    seen = np.cumsum(counts)
    ranks = [-(-part * int(seen[-1]) // parts) for part in range(1, parts)]
    steps = (np.searchsorted(seen, ranks) - CELLS // 2) / _STEPS
    return steps / (1 - np.abs(steps))


@jit
def _count(values, power, mean, factor, steps):
    run = 1000
    most = 2 * steps - 1
    counts = np.zeros(most + 1, np.int64)
    cells = np.empty(run, np.int64)
    for start in range(0, len(values), run):
        some = values[start : start + run]
        for i in range(len(some)):
            cells[i] = _cell(some[i], power, mean, factor, steps)
        for i in range(len(some)):
            counts[cells[i]] += 1
    return counts[:most]


@jit
def _cells(values, power, mean, factor, steps):
    cells = np.empty(len(values), np.int64)
    for i in range(len(values)):
        cells[i] = _cell(values[i], power, mean, factor, steps)
    return cells


@jit_part
def _cell(value, power, mean, factor, steps):
    """Return the cell of a value; what is not a number has one beyond the last."""
    z = (value * power - mean) * factor
    middle = steps - 1
    step = min(int(steps * (1 - 1 / (1 + abs(z))) + 0.5), middle)
    if z != z:
        return 2 * steps - 1
    return middle + step if z >= 0 else middle - step
