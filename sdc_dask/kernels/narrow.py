"""Which records are nearest, which is farthest, by a scan in single precision.

Numbers of half the size are read and compared in half the time. Their distances are wrong by no
more than a known amount, which leaves few records in doubt, and those are measured again in double
precision. So the answers are those of a scan in double precision, to the last tie.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part
from sdc_dask.kernels.live_index import NO_ROW, distances_to, insert

# Records are dealt to as many cells, and cells to as many columns. The first of each is found side
# by side, by vector instructions, and tells in which cells to look for records.
_CELLS = 256
_COLUMNS = 16
_ROUNDING = 2.0**-24  # of single precision, relative
# Between these, squares of distances neither overflow nor vanish beside the slack.
_LARGEST = 2.0**500
_SMALLEST = 2.0**-400
_WORTH_MEASURING = 16  # records in doubt, above which a new centre pays
# What a bit pattern of a distance is combined with. Numbers without a sign are in the order of
# their bits, and in the opposite order of the bits that they have not.
_NEAREST = np.int32(0)
_FARTHEST = np.int32(-1)


class Narrow(NamedTuple):
    """Records of which some are removed, in single precision. Those that are left are in front.

    Distances are in units: from the query, which was asked for last, and from a centre.
    """

    points: NDArray[np.float64]  # by row
    middle: NDArray[np.float64]  # of the box of all records
    unit: float  # a power of two: in no dimension is a record farther from the middle
    slack: float  # how many units a distance may be wrong,
    share: float  # and how much of it besides
    live: NDArray[np.float32]  # by dimension and place: units from the middle
    row: NDArray[np.int64]  # by place
    place: NDArray[np.int64]  # by row
    query: NDArray[np.float32]  # units from the middle
    square: NDArray[np.float32]  # by place: squared distance from the query
    centre: NDArray[np.float64]
    away: NDArray[np.float32]  # by place: squared distance from the centre
    first: NDArray[np.int32]  # by cell, and then by column of cells: patterns of distances
    least: NDArray[np.int32]  # a few patterns, in order
    limit: NDArray[np.float32]  # one number
    column: NDArray[np.int64]
    cell: NDArray[np.int64]
    doubtful: NDArray[np.int64]  # places


@jit
def new_narrow(points, k):
    """Take all records, of which up to k at a time will be asked for."""
    n, d = points.shape
    middle = np.empty(d)
    reach = 0.0
    for j in range(d):
        low = points[0, j]
        high = low
        for i in range(1, n):
            low = min(low, points[i, j])
            high = max(high, points[i, j])
        middle[j] = low / 2 + high / 2
        reach = max(reach, high - middle[j], middle[j] - low)
    narrow = Narrow(
        points,
        middle,
        math.ldexp(1.0, math.frexp(reach)[1]),
        # In each dimension, the coordinates of a record and of the query may be wrong by one
        # rounding of 1 at most, and their difference, up to 2, by two more.
        5 * _ROUNDING * math.sqrt(d),
        (d + 2) * _ROUNDING,  # by squares and their sum, and a limit that is rounded
        np.empty((d, n), np.float32),
        np.arange(n),
        np.arange(n),
        np.empty(d, np.float32),
        np.empty(n, np.float32),
        np.full(d, np.inf),
        np.empty(n, np.float32),
        np.empty(_CELLS + _COLUMNS, np.int32),
        np.empty(k, np.int32),
        np.empty(1, np.float32),
        np.empty(_COLUMNS + 1, np.int64),
        np.empty(_CELLS + 1, np.int64),
        np.empty(n + 1, np.int64),
    )
    if has_room(narrow):
        per_unit = 1.0 / narrow.unit  # a power of two, as the unit is
        for j in range(d):
            for i in range(n):
                narrow.live[j, i] = (points[i, j] - middle[j]) * per_unit
    return narrow


@jit_part
def has_room(narrow):
    """Whether single precision has room for the records. If not, nothing may be asked."""
    return _SMALLEST <= narrow.unit <= _LARGEST


@jit_part
def remove_from_narrow(narrow, row, left):
    """Take a record out, so that `left` remain."""
    hole = narrow.place[row]
    for j in range(len(narrow.live)):
        narrow.live[j, hole] = narrow.live[j, left]
    narrow.square[hole] = narrow.square[left]
    narrow.away[hole] = narrow.away[left]
    narrow.row[hole] = narrow.row[left]
    narrow.place[narrow.row[hole]] = hole


@jit_part
def nearest_narrow(narrow, seed, k, left, group_distance, group_id):
    """Write `seed` and the k - 1 rows of smallest (distance, row), in that order.

    Returns how many records were in doubt.
    """
    points = narrow.points
    d = points.shape[1]
    for j in range(d):
        narrow.query[j] = (points[seed, j] - narrow.middle[j]) / narrow.unit
    distances_to(narrow.live, left, narrow.query, narrow.square)
    _first_of_cells(narrow, narrow.square, left, _NEAREST)
    # Of k cells, the nearest records are at most as far as this. So are the k nearest of all, which
    # are at most so far in single precision.
    if 2 * k <= _COLUMNS:
        pattern = _kth(narrow.first[_CELLS:], narrow.least, k)
    else:
        pattern = _kth(narrow.first[:_CELLS], narrow.least, k)
    limit = math.sqrt(_distance_of(narrow, pattern))
    for _ in range(2):
        limit = limit * (1.0 + narrow.share) + narrow.slack
    group_distance[0] = -1.0
    group_id[0] = seed
    found = 1
    size = _up_to(narrow, narrow.square, left, limit * limit, _NEAREST)
    for i in range(size):
        row = narrow.row[narrow.doubtful[i]]
        distance = 0.0
        for j in range(d):
            gap = points[row, j] - points[seed, j]
            distance += gap * gap
        if row != seed and (
            found < k
            or distance < group_distance[k - 1]
            or (distance == group_distance[k - 1] and row < group_id[k - 1])
        ):
            insert(group_distance, group_id, min(found, k - 1), distance, row)
            found += 1
    return size


@jit_part
def farthest_narrow(narrow, seed, left):
    """Return the row that is farthest from the last seed, of equals the lowest.

    Records may have been removed since its nearest were asked for. The second number is how many
    were in doubt.
    """
    return _farthest(narrow, narrow.square, left, narrow.points[seed], 1.0, 0.0)


@jit_part
def outermost_narrow(narrow, centroid, scale, left):
    """Return the row whose `scale` times is farthest from `centroid`, of equals the lowest.

    The centroid hardly moves while records are removed on opposite sides. So the distances from
    where it was once answer for long: by the triangle inequality, only records are in doubt that
    are less ahead of the farthest than twice its way. When these become many, distances are
    measured anew. The second number is how many were in doubt.
    """
    moved = _moved(narrow, centroid, scale)
    if moved < 1.0:
        row, doubts = _farthest(narrow, narrow.away, left, centroid, scale, moved)
        if doubts <= _WORTH_MEASURING:
            return row, doubts
    for j in range(len(centroid)):
        # Rounding may have put the centroid of few records far outside of their box.
        least = narrow.middle[j] - narrow.unit
        narrow.centre[j] = min(max(centroid[j] / scale, least), least + 2 * narrow.unit)
        narrow.query[j] = (narrow.centre[j] - narrow.middle[j]) / narrow.unit
    distances_to(narrow.live, left, narrow.query, narrow.away)
    return _farthest(narrow, narrow.away, left, centroid, scale, _moved(narrow, centroid, scale))


@jit_part
def _moved(narrow, centroid, scale):
    """Return how many units the centroid is from the centre, or a little more."""
    square = 0.0
    largest = 0.0
    for j in range(len(centroid)):
        at = centroid[j] / scale
        gap = at - narrow.centre[j]
        square += gap * gap
        largest = max(largest, abs(at))
    return (math.sqrt(square) * (1.0 + 1e-10) + largest * 1e-14) / narrow.unit


@jit_part
def _farthest(narrow, squares, left, query, scale, moved):
    """Return the row whose `scale` times is farthest from `query`, and how many were in doubt.

    The squared distances are from a point that is `moved` units from the query.
    """
    _first_of_cells(narrow, squares, left, _FARTHEST)
    pattern = narrow.first[_CELLS]
    for column in range(1, _COLUMNS):
        pattern = min(pattern, narrow.first[_CELLS + column])
    # So far is one of the records at least, and the farthest in single precision.
    limit = math.sqrt(_distance_of(narrow, pattern ^ _FARTHEST))
    limit = limit * (1.0 - narrow.share) - narrow.slack
    limit = (limit - 2.0 * moved) * (1.0 - narrow.share) - narrow.slack
    limit = max(limit, 0.0)
    size = _up_to(narrow, squares, left, limit * limit, _FARTHEST)
    if size == 1:
        return narrow.row[narrow.doubtful[0]], size
    best = -1.0
    best_row = NO_ROW
    for i in range(size):
        row = narrow.row[narrow.doubtful[i]]
        distance = 0.0
        for j in range(len(query)):
            gap = scale * narrow.points[row, j] - query[j]
            distance += gap * gap
        if distance > best or (distance == best and row < best_row):
            best = distance
            best_row = row
    return best_row, size


# Patterns: distances as whole numbers, the smaller the sooner a record is asked for.


@jit_part
def _distance_of(narrow, pattern):
    """Return the distance that has a pattern."""
    narrow.limit.view(np.int32)[0] = pattern
    return np.float64(narrow.limit[0])


@jit_part
def _first_of_cells(narrow, squares, left, flip):
    """Write the first pattern of each cell, and behind them, of each column of cells."""
    patterns = squares.view(np.int32)
    narrow.first[:] = np.iinfo(np.int32).max
    _first_by_turns(patterns, left, flip, narrow.first, _CELLS)
    _first_by_turns(narrow.first, _CELLS, _NEAREST, narrow.first[_CELLS:], _COLUMNS)


@jit_part
def _first_by_turns(patterns, left, flip, first, width):
    """Deal patterns to as many piles as `width` says, and keep the first of each.

    Four turns at a time: reading and writing the piles would take most of the time.
    """
    four = 4 * width
    for begin in range(0, left // four * four, four):
        one = patterns[begin : begin + width]
        two = patterns[begin + width : begin + 2 * width]
        three = patterns[begin + 2 * width : begin + 3 * width]
        last = patterns[begin + 3 * width : begin + four]
        for i in range(width):
            first[i] = min(
                first[i],
                min(
                    min(one[i] ^ flip, two[i] ^ flip),
                    min(three[i] ^ flip, last[i] ^ flip),
                ),
            )
    for begin in range(left // four * four, left, width):
        some = patterns[begin : min(begin + width, left)]
        for i in range(len(some)):
            first[i] = min(first[i], some[i] ^ flip)


@jit_part
def _kth(patterns, least, k):
    """Return the pattern that k - 1 others come before, or are equal to."""
    least[:k] = np.iinfo(np.int32).max
    for pattern in patterns:
        if pattern < least[k - 1]:
            # No jumps, which would often be guessed wrongly.
            for i in range(k):
                before = min(least[i], pattern)
                pattern = max(least[i], pattern)
                least[i] = before
    return least[k - 1]


@jit_part
def _up_to(narrow, squares, left, limit, flip):
    """Write the places whose patterns come before that of a limit, or have it; return their number.

    Whether a place is taken is a number that is added, not a jump.
    """
    narrow.limit[0] = limit
    last = narrow.limit.view(np.int32)[0] ^ flip
    patterns = squares.view(np.int32)
    columns = 0
    for column in range(_COLUMNS):
        narrow.column[columns] = column
        columns += narrow.first[_CELLS + column] <= last
    cells = 0
    for i in range(columns):
        for cell in range(narrow.column[i], _CELLS, _COLUMNS):
            narrow.cell[cells] = cell
            cells += narrow.first[cell] <= last
    size = 0
    for i in range(cells):
        for place in range(narrow.cell[i], left, _CELLS):
            narrow.doubtful[size] = place
            size += patterns[place] ^ flip <= last
    return size
