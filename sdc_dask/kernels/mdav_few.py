"""MDAV of few records in numpy: there is nothing to compile, which would take longer than the work.

The groups are those of the compiled kernels (:mod:`~sdc_dask.kernels.mdav`) to the last tie: the
same distances are rounded in the same order.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.grid import centred, exact_count

# Seconds that a process spends here at most. Compiling takes two to three times as long; who has
# spent them has work enough for it.
_BUDGET = 5.0
_spent = 0.0


def sooner_than_compiled(n: int, d: int, k: int) -> bool:
    """Whether records are grouped sooner here than by a kernel that has to be compiled first.

    What is done here is counted, so that a process with many small blocks compiles in the end.
    """
    global _spent
    seconds = n / k * (6e-5 + n * (16 + 3 * d) * 1e-9)
    if _spent + seconds > _BUDGET:
        return False
    _spent += seconds
    return True


def compile_from_now_on() -> None:
    """Let this process group no more records here: for what is to have compiled kernels."""
    global _spent
    _spent = _BUDGET


def mdav_few(points: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Group records by MDAV-generic: parameters, result and rule of :func:`~.mdav.mdav`.

    Examples
    --------
    >>> import numpy as np
    >>> mdav_few(np.array([[0.0], [0.1], [5.0], [5.1], [9.0], [9.1]]), k=2)
    array([0, 0, 2, 2, 1, 1])
    """
    points = centred(points)
    exact = exact_count(points)
    total = np.add.accumulate(points)[-1]  # one record after the other, as kernels add them up
    labels = np.empty(len(points), np.int64)
    rows = np.arange(len(points))  # of the records that are left
    live = np.ascontiguousarray(points.T)
    label = 0
    while len(rows) >= 2 * k:
        pair = len(rows) >= 3 * k
        if len(rows) <= exact:
            distance = _squares(len(rows) * live, total)
        else:
            distance = _squares(live, total / len(rows))
        for _ in range(2 if pair else 1):
            place = int(np.argmax(distance))  # farthest from the centroid, then from that record
            distance = _squares(live, live[:, place])
            distance[place] = -1.0  # it comes before records that are equal to it
            group = _smallest(distance, k)
            labels[rows[group]] = label
            label += 1
            for record in live[:, group].T:
                total -= record
            kept = np.ones(len(rows), bool)
            kept[group] = False
            rows, live, distance = rows[kept], live[:, kept], distance[kept]
    labels[rows] = label
    return labels


def _squares(live: NDArray[np.float64], query: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return squared distances, added up in the order of the columns."""
    total = np.zeros(live.shape[1])
    for column, coordinate in zip(live, query, strict=True):
        gap = column - coordinate
        total += gap * gap
    return total


def _smallest(distance: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Return the places of the k smallest of (distance, place), in that order."""
    border = np.partition(distance, k - 1)[k - 1]
    near = np.flatnonzero(distance <= border)
    return near[np.argsort(distance[near], kind="stable")[:k]]
