"""Rank intervals: how many ranks lie between an original value and its masked one.

Ranks are those of the masked values. With L(y) of them below y and E(y) not above it, the interval
that reaches w ranks to both sides of all ranks of the masked value v holds the original value x if
``E(x) > L(v) - w`` and ``L(x) < E(v) + w``: so w must be at least

    max(0, L(v) - E(x) + 1, L(x) - E(v) + 1).

Where L and E are known within bounds only, so is this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


class Borders(NamedTuple):
    """Values that cut a column into cells, and where to look for them.

    The range of the borders is cut into equal parts. A value is looked for among the borders of
    its part, which are few unless the values are extremely skewed.
    """

    values: NDArray[np.float64]  # ascending, all different
    first: NDArray[np.int32]  # by part: the number of borders in the parts before, and of all
    low: float  # where the first part begins
    scale: float  # parts a unit


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
        Without missing ones.
    counts : ndarray of integers
        Twice the number of borders, and one more. Updated.
    """
    for i in range(values.shape[0]):
        counts[_cell(borders, values[i])] += 1


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
    parts = borders.first.shape[0] - 1
    bounds = np.empty((parts, 2), np.int64)  # of L and E of all values of a part
    for part in range(parts):
        bounds[part, 0] = before[2 * borders.first[part]]
        bounds[part, 1] = before[2 * borders.first[part + 1] + 1]
    by_first = np.zeros(limits.shape[0] + 1, np.int64)  # by the first width that discloses
    for i in range(original.shape[0]):
        x = bounds[_part(borders, original[i])]
        v = bounds[_part(borders, masked[i])]
        low = max(0, v[0] - x[1] + 1, x[0] - v[1] + 1)
        high = max(0, v[1] - x[0] + 1, x[1] - v[0] + 1)
        first = _count_below(limits, low)
        if _count_below(limits, high) != first:
            # A few: their cells tell more than their parts.
            low, high = _needed(borders, before, original[i], masked[i])
            first = _count_below(limits, low)
            if _count_below(limits, high) != first:
                undecided[count] = i
                count += 1
                continue
        by_first[first] += 1
    total = 0
    for w in range(limits.shape[0]):
        total += by_first[w]
        disclosed[w] += total
    return count


@jit
def _needed(borders, before, original, masked):
    """Return the least and the largest number of ranks that an interval may have to reach."""
    if original == masked:
        return 0, 0
    x, v = _cell(borders, original), _cell(borders, masked)
    # L and E of each lie within its cell, and are exact at a border (odd cells).
    in_x, in_v = 1 - (x & 1), 1 - (v & 1)
    low = max(0, before[v] - before[x + 1] + 1, before[x] - before[v + 1] + 1)
    high = max(
        0,
        before[v + in_v] - before[x + 1 - in_x] + 1,
        before[x + in_x] - before[v + 1 - in_v] + 1,
    )
    return low, high


@jit
def _count_below(limits, value):
    count = 0
    for w in range(limits.shape[0]):
        count += limits[w] < value
    return count


@jit
def ranks_between(below_x, upto_x, below_v, upto_v):
    """Return how many ranks an interval must reach to both sides, from exact counts."""
    needed = np.empty(below_x.shape[0], np.int64)
    for i in range(below_x.shape[0]):
        needed[i] = max(0, below_v[i] - upto_x[i] + 1, below_x[i] - upto_v[i] + 1)
    return needed
