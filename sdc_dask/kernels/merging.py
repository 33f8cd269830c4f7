"""Small strata join the nearest ones, the smallest first, until none is too small.

A stratum is where its records are on average; of categories, and of the values that define it,
those of its largest part stand for all that have joined.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


@dataclass(frozen=True)
class Sites:
    """Where strata are. Squared distances add up over all columns of the arrays.

    Attributes
    ----------
    means : ndarray of float64, shape (strata, m)
        Coordinates that are averaged when strata join.
    places : ndarray of float64, shape (strata, p)
        Coordinates that those of the largest part stand for; NaN is one apart from all numbers.
    spans : ndarray of float64, shape (p,)
        What the squared distance to NaN counts in each of them.
    codes : ndarray of int64, shape (strata, q)
        Categories, for which those of the largest part stand.
    weights : ndarray of float64, shape (q,)
        What a difference of categories counts.
    """

    means: NDArray[np.float64]
    places: NDArray[np.float64]
    spans: NDArray[np.float64]
    codes: NDArray[np.int64]
    weights: NDArray[np.float64]


def merge_small(
    sites: Sites,
    count: NDArray[np.int64],
    kind: NDArray[np.int64],
    k: int,
    units: Sequence[frozenset[float]] | None = None,
) -> NDArray[np.int64]:
    """Return for each stratum the one whose place it takes: itself, if none.

    Parameters
    ----------
    sites : Sites
    count : ndarray of int64
        Records by stratum.
    kind : ndarray of int64
        Strata of different kinds never join.
    k : int
        Smallest stratum. One of which there is no other of its kind may stay smaller.
    units : sequence of frozenset, optional
        Some units of each stratum, k if there are so many: k counts these then.

    Examples
    --------
    >>> import numpy as np
    >>> none = np.zeros((4, 0))
    >>> means = np.array([[0.0], [1.0], [5.0], [6.0]])
    >>> sites = Sites(means, none, none[0], none.astype(int), none[0])
    >>> merge_small(sites, np.array([9, 1, 2, 1]), np.zeros(4, int), k=3)
    array([0, 0, 2, 2])
    """
    means, total = sites.means.copy(), count.astype(np.float64)
    leader = np.arange(len(count))
    alive = np.ones(len(count), np.bool_)
    known = None if units is None else [set(each) for each in units]
    reached = count.copy() if known is None else np.array([len(each) for each in known], np.int64)
    waiting = [(int(reached[i]), int(i)) for i in np.flatnonzero(reached < k)]
    heapq.heapify(waiting)
    while waiting:
        size, i = heapq.heappop(waiting)
        if not alive[i] or reached[i] != size:
            continue  # has joined, or been joined
        j = _nearest(i, alive, kind, means, *_fixed(sites))
        if j < 0:
            continue
        first, other = (i, j) if (count[i], -i) > (count[j], -j) else (j, i)
        both = total[first] + total[other]
        means[first] = (total[first] * means[first] + total[other] * means[other]) / both
        total[first] = both
        leader[other], alive[other] = first, False
        if known is None:
            reached[first] += reached[other]
        else:
            known[first] |= known[other]
            reached[first] = len(known[first])
        if reached[first] < k:
            heapq.heappush(waiting, (int(reached[first]), int(first)))
    while not np.array_equal(leader, leader[leader]):
        leader = leader[leader]
    return leader


def _fixed(sites: Sites) -> tuple[NDArray[np.generic], ...]:
    return sites.places, sites.spans, sites.codes, sites.weights


@jit
def _nearest(i, alive, kind, means, places, spans, codes, weights):
    """Return the nearest other stratum of a kind, of equally near ones the first, or -1."""
    best, found = np.inf, -1
    for j in range(len(alive)):
        if j == i or not alive[j] or kind[j] != kind[i]:
            continue
        distance = 0.0
        for d in range(means.shape[1]):
            distance += (means[j, d] - means[i, d]) ** 2
        for d in range(places.shape[1]):
            gap = (places[j, d] - places[i, d]) ** 2
            if np.isnan(places[i, d]) or np.isnan(places[j, d]):
                gap = 0.0 if np.isnan(places[i, d]) and np.isnan(places[j, d]) else spans[d]
            distance += gap
        for d in range(codes.shape[1]):
            if codes[j, d] != codes[i, d]:
                distance += weights[d]
        if distance < best:
            best, found = distance, j
    return found
