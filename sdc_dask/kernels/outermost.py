"""Which of the records that are left is farthest from their centroid.

The centroid hardly moves while records are removed on opposite sides. So a heap of the records by
their distance to where it was once answers for long: by the triangle inequality, only records that
are ahead of the farthest by less than the centroid has moved are looked at. When these become many,
the heap is made anew. It has the outer records alone: inner ones are asked for much later, if ever.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit, jit_part
from sdc_dask.kernels.live_index import NO_ROW, TINY

_WORTH_A_HEAP = 1  # looks per record that is left, after which a new heap pays
_OUTER = 8  # records that are left, per record of the heap, or fewer
_FEWEST = 256  # records of the heap, if so many are left
_RINGS = 64  # in which records are counted, to tell which are outer ones


class Outermost(NamedTuple):
    """A heap of records, the farthest first: those at 2i + 1 and 2i + 2 are not ahead of that at i.

    A record that was removed leaves the heap when it is the first.
    """

    centre: NDArray[np.float64]
    reach: NDArray[np.float64]  # distances to the centre
    row: NDArray[np.int64]
    size: NDArray[np.int64]  # one number: records in the heap
    looks: NDArray[np.int64]  # one number: records looked at since the heap was made
    beyond: NDArray[np.float64]  # one number: a distance below which records are not in the heap
    ring: NDArray[np.int64]  # records by ring around the centre, the innermost first
    stack: NDArray[np.int64]


@jit
def new_outermost(n, d):
    """Return an empty heap, for n records of d dimensions."""
    depth = 1
    while (n >> depth) > 0:
        depth += 1
    return Outermost(
        np.empty(d),
        np.empty(n),
        np.empty(n, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1, np.int64),
        np.zeros(1),
        np.empty(_RINGS, np.int64),
        np.empty(depth + 1, np.int64),
    )


@jit_part
def farthest_from_centroid(heap, points, labels, left, centroid, scale):
    """Return the row whose `scale` times is farthest from `centroid`; of equals the lowest.

    Parameters
    ----------
    heap : Outermost
    points : ndarray of float64, shape (n, d)
    labels : ndarray of int64, shape (n,)
        Below 0 for records that are left.
    left : int
        Number of these.
    centroid : ndarray of float64, shape (d,)
        `scale` times a point near that of the query before.
    scale : float
        From 1 on.
    """
    if heap.looks[0] > _WORTH_A_HEAP * left:
        heap.size[0] = 0
    while heap.size[0] > 0 and labels[heap.row[0]] >= 0:
        _drop_first(heap)
    if heap.size[0] > 0:
        moved = 0.0
        for j in range(len(centroid)):
            gap = centroid[j] / scale - heap.centre[j]
            moved += gap * gap
        moved = np.sqrt(moved)
        best, row = _first(heap, points, labels, centroid, scale, moved)
        if _bound(scale, heap.beyond[0], moved) < best:
            return row
    _fill(heap, points, labels, left, centroid, scale)
    return _first(heap, points, labels, centroid, scale, 0.0)[1]


@jit_part
def _bound(scale, reach, moved):
    """Return how far a record is at most, squared: with a slack for rounding, here and there."""
    bound = scale * (reach + moved)
    return bound * bound * (1.0 + 1e-10) + TINY


@jit_part
def _first(heap, points, labels, centroid, scale, moved):
    """Return the largest squared distance in the heap, and the row, of equals the lowest."""
    best = -1.0
    best_row = NO_ROW
    heap.stack[0] = 0
    size = 1
    while size > 0:
        size -= 1
        i = heap.stack[size]
        heap.looks[0] += 1
        if _bound(scale, heap.reach[i], moved) < best:
            continue
        row = heap.row[i]
        if labels[row] < 0:
            distance = 0.0
            for j in range(len(centroid)):
                gap = scale * points[row, j] - centroid[j]
                distance += gap * gap
            if distance > best or (distance == best and row < best_row):
                best = distance
                best_row = row
        for child in range(2 * i + 1, min(2 * i + 3, heap.size[0])):
            heap.stack[size] = child
            size += 1
    return best, best_row


@jit_part
def _fill(heap, points, labels, left, centroid, scale):
    """Make a heap of the outer records of those that are left, around their centroid."""
    for j in range(len(centroid)):
        heap.centre[j] = centroid[j] / scale
    count = 0
    farthest = 0.0
    for row in range(len(points)):
        if labels[row] < 0:
            square = 0.0
            for j in range(len(centroid)):
                gap = points[row, j] - heap.centre[j]
                square += gap * gap
            farthest = max(farthest, square)
            heap.reach[count] = square
            heap.row[count] = row
            count += 1
    least = _outer_ring(heap, count, farthest, max(_FEWEST, left // _OUTER))
    size = 0
    for i in range(count):
        if heap.reach[i] >= least:
            heap.reach[size] = np.sqrt(heap.reach[i])
            heap.row[size] = heap.row[i]
            size += 1
    heap.beyond[0] = np.sqrt(least)
    heap.size[0] = size
    heap.looks[0] = 0
    for i in range(size // 2 - 1, -1, -1):
        _sink(heap, i, heap.reach[i], heap.row[i])


@jit_part
def _outer_ring(heap, count, farthest, wanted):
    """Return a squared distance from which on there are as many records as wanted, or more."""
    if not (0.0 < farthest < np.inf):
        return 0.0
    heap.ring[:] = 0
    for i in range(count):
        heap.ring[min(np.int64(heap.reach[i] / farthest * _RINGS), _RINGS - 1)] += 1
    found = 0
    for ring in range(_RINGS - 1, 0, -1):
        found += heap.ring[ring]
        if found >= wanted:
            return farthest * (ring / _RINGS) * (1.0 - 1e-10)
    return 0.0


@jit_part
def _drop_first(heap):
    """Take the first record out of the heap."""
    heap.size[0] -= 1
    last = heap.size[0]
    _sink(heap, 0, heap.reach[last], heap.row[last])


@jit_part
def _sink(heap, i, reach, row):
    """Put a record at place i or below it, where it is in order."""
    size = heap.size[0]
    child = 2 * i + 1
    while child < size:
        if child + 1 < size and heap.reach[child + 1] > heap.reach[child]:
            child += 1
        if not heap.reach[child] > reach:
            break
        heap.reach[i] = heap.reach[child]
        heap.row[i] = heap.row[child]
        i = child
        child = 2 * i + 1
    heap.reach[i] = reach
    heap.row[i] = row
