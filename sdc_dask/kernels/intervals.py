"""Rank intervals: how many ranks lie between an original value and its masked one.

Ranks 0, 1, ..., n - 1 are those of the masked values. With L(y) of them below y and E(y) not above
it, the equal masked values v have the ranks L(v) to E(v) - 1, and the middle one of these,
``r = (L(v) + E(v) - 1) / 2``, stands for all of them. An interval that reaches w ranks to both
sides goes from the smallest to the largest masked value whose rank is within w of r, both
included. It holds the original value x if ``E(x) - 1 >= r - w`` and ``L(x) <= r + w``, and x is
not beyond all masked values: there the intervals end. So twice w must be at least

    max(0, 2r + 2 - 2E(x), 2L(x) - 2r),

which is a whole number, or no w is enough, if E(x) = 0 or L(x) = n. Where L and E are known within
bounds only, so is this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

_BATCH = 1000
_RUNS = 2**12  # of parts, at most: their bounds take 64 KiB
NEVER = 2**62  # ranks that no interval reaches: the value is beyond all masked ones


class Borders(NamedTuple):
    """Values that cut a column into cells, and where to look for them.

    The range of the borders is cut into equal parts. A value is looked for among the borders of
    its part, which are few unless the values are extremely skewed.
    """

    values: NDArray[np.float64]  # ascending, all different
    first: NDArray[np.int32]  # by part: the number of borders in the parts before, and of all
    low: float  # where the first part begins
    scale: float  # parts per unit


def borders_of(values: NDArray[np.float64]) -> Borders:
    """Return the borders at finite values.

    Examples
    --------
    >>> borders = borders_of(np.array([8.0, 2.0, 4.0, 2.0]))
    >>> counts = np.zeros(7, np.int64)
    >>> count_cells(borders, np.array([1.0, 2.0, 2.0, 5.0, 8.0]), counts)
    >>> counts
    array([1, 2, 0, 0, 1, 1, 0])
    """
    values = np.unique(values)
    parts = 1 << max(0, len(values) - 1).bit_length()
    with np.errstate(over="ignore"):
        scale = np.float64(parts) / (values[-1] - values[0]) if len(values) > 1 else 0.0
    low = float(values[0]) if len(values) else 0.0
    borders = Borders(values, np.empty(parts + 1, np.int32), low, float(scale))
    _fill_parts(borders)
    return borders


@jit
def _fill_parts(borders):
    part = 0
    for b in range(borders.values.shape[0]):
        own = _part(borders, borders.values[b])
        while part <= own:
            borders.first[part] = b
            part += 1
    while part < borders.first.shape[0]:
        borders.first[part] = borders.values.shape[0]
        part += 1


@jit
def _part(borders, value):
    """Return the part of a value: of two values, the larger one is in no lower part."""
    parts = borders.first.shape[0] - 1
    place = (value - borders.low) * borders.scale
    if not place > 0:
        return 0  # also what is no number, 0 times infinity: then all or the lowest are in part 0
    return int(place) if place < parts else parts - 1


@jit
def count_cells(borders, values, counts):
    """Add values to the counts of cells: at each border (odd), and between borders (even).

    Parameters
    ----------
    borders : Borders
    values : ndarray of float64
        Ascending, without missing ones: sorting them takes far less than looking each up.
    counts : ndarray of integers
        Twice the number of borders, and one more. Updated.
    """
    i = 0
    for b in range(borders.values.shape[0]):
        border = borders.values[b]
        begin = i
        while i < values.shape[0] and values[i] < border:
            i += 1
        counts[2 * b] += i - begin
        begin = i
        while i < values.shape[0] and values[i] == border:
            i += 1
        counts[2 * b + 1] += i - begin
    counts[2 * borders.values.shape[0]] += values.shape[0] - i


@jit
def cells_of(borders, values):
    """Return the cell of every value, as :func:`count_cells` numbers them."""
    cells = np.empty(values.shape[0], np.int64)
    for i in range(values.shape[0]):
        cells[i] = _cell(borders, values[i])
    return cells


@jit
def _cell(borders, value):
    """Return the cell of a value: 2b + 1 at border b, 2b between borders b - 1 and b."""
    part = _part(borders, value)
    low, high = np.int64(borders.first[part]), np.int64(borders.first[part + 1])
    end = high
    while low < high:
        middle = (low + high) >> 1
        if borders.values[middle] < value:
            low = middle + 1
        else:
            high = middle
    if low < end and borders.values[low] == value:
        return 2 * low + 1
    return 2 * low


@jit
def classify(borders, before, original, masked, limits, disclosed, undecided):
    """Count the values that are disclosed by intervals of several widths.

    Parameters
    ----------
    borders : Borders
    before : ndarray of int64
        Masked values below each cell, and last the number of all.
    original, masked : ndarray of float64
    limits : ndarray of int64
        Ranks to both sides, by width, ascending.
    disclosed : ndarray of int64
        Updated: how many are surely disclosed, by width.
    undecided : ndarray of int64
        Overwritten with the rows for which a width is not decided.

    Returns
    -------
    int
        How many are undecided. They are not counted in `disclosed`.
    """
    count = 0
    n = before[-1]
    parts = borders.first.shape[0] - 1
    bounds = np.empty((parts, 2), np.int64)  # of L and E of all values of a part
    for part in range(parts):
        bounds[part, 0] = before[2 * borders.first[part]]
        bounds[part, 1] = before[2 * borders.first[part + 1] + 1]
    by_first = np.zeros(limits.shape[0] + 1, np.int64)  # by the first width that discloses
    # Most are decided by runs of parts, of which there are so few that all stay in a cache.
    shift = 0
    while (parts >> shift) > _RUNS:
        shift += 1
    runs = np.empty(((parts - 1 >> shift) + 1, 2), np.int64)
    for run in range(runs.shape[0]):
        runs[run, 0] = bounds[run << shift, 0]
        runs[run, 1] = bounds[min((run + 1) << shift, parts) - 1, 1]
    # A batch at a time, and in simple loops, of which the compiler makes vector code.
    x, v = np.empty(_BATCH, np.int32), np.empty(_BATCH, np.int32)
    low, high = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.int64)
    first, last = np.empty(_BATCH, np.int64), np.empty(_BATCH, np.int64)
    for start in range(0, original.shape[0], _BATCH):
        size = min(_BATCH, original.shape[0] - start)
        _write_parts(borders, original, start, size, x)
        _write_parts(borders, masked, start, size, v)
        for i in range(size):
            low[i], high[i] = _needed_by_parts(runs, x[i] >> shift, v[i] >> shift, n)
            first[i] = 0
            last[i] = 0
        for w in range(limits.shape[0]):
            twice = 2 * limits[w]
            for i in range(size):
                first[i] += twice < low[i]
                last[i] += twice < high[i]
        for i in range(size):
            width = first[i] if first[i] == last[i] else -1
            if width < 0:
                least, most = _needed_by_parts(bounds, x[i], v[i], n)
                width = _decided(limits, least, most)
            if width < 0:
                # A few: their cells say more than their parts.
                least, most = _needed(borders, before, original[start + i], masked[start + i])
                width = _decided(limits, least, most)
            if width < 0:
                undecided[count] = start + i
                count += 1
            else:
                by_first[width] += 1
    total = 0
    for w in range(limits.shape[0]):
        total += by_first[w]
        disclosed[w] += total
    return count


@jit
def _write_parts(borders, values, start, size, out):
    """Write the parts of some of the values, which are those of :func:`_part`."""
    last = borders.first.shape[0] - 2
    for i in range(size):
        place = (values[start + i] - borders.low) * borders.scale
        place = place if place > 0.0 else 0.0
        out[i] = np.int32(place if place < last else last)


@jit
def _needed_by_parts(bounds, x, v, n):
    """Return the least and the largest of what twice the reach of an interval may have to be.

    The bounds are those of L and E in the parts x, of the original value, and v, of the masked one.
    """
    # A masked value has L(v) < E(v), so that 2r is between twice L and twice E - 1.
    least = 2 * bounds[v, 0]
    most = 2 * bounds[v, 1] - 2
    return (
        _twice(bounds[x, 0], bounds[x, 1], least, most, n),
        _twice(bounds[x, 1], bounds[x, 0], most, least, n),
    )


@jit
def _needed(borders, before, original, masked):
    """Return the least and the largest of what twice the reach of an interval may have to be."""
    if original == masked:
        return 0, 0
    n = before[-1]
    x, v = _cell(borders, original), _cell(borders, masked)
    # L and E of each lie within its cell, and are exact at a border (odd cells).
    if v & 1:
        least = most = before[v] + before[v + 1] - 1
    else:
        least, most = 2 * before[v], 2 * before[v + 1] - 2
    if x & 1:
        below, upto = before[x], before[x + 1]
        return _twice(below, upto, least, most, n), _twice(below, upto, most, least, n)
    return (
        _twice(before[x], before[x + 1], least, most, n),
        _twice(before[x + 1], before[x], most, least, n),
    )


@jit
def _twice(below, upto, middle_above, middle_below, n):
    """Return twice the ranks that an interval must reach.

    It grows with L(x) and falls with E(x). It grows with 2r if x is below the masked value, for
    which `middle_above` is taken, and falls if x is above, for which `middle_below` is.
    """
    if upto == 0 or below == n:
        return NEVER
    return max(0, middle_above + 2 - 2 * upto, 2 * below - middle_below)


@jit
def _decided(limits, low, high):
    """Return the number of widths that are too small, -1 if it is not that of both bounds."""
    count = 0
    for w in range(limits.shape[0]):
        count += 2 * limits[w] < low
    return count if count == limits.shape[0] or high <= 2 * limits[count] else -1


@jit
def ranks_between(below_x, upto_x, below_v, upto_v, n):
    """Return twice the ranks that intervals must reach to both sides, from exact counts."""
    needed = np.empty(below_x.shape[0], np.int64)
    for i in range(below_x.shape[0]):
        middle = below_v[i] + upto_v[i] - 1
        needed[i] = _twice(below_x[i], upto_x[i], middle, middle, n)
    return needed
