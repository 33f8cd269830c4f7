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

from sdc_dask.kernels.site_tree import move_site, nearest_site, remove_site, site_tree


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
    # A kind is a category that is infinitely far from others.
    codes, weights = np.column_stack([sites.codes, kind]), np.append(sites.weights, np.inf)
    codes = np.ascontiguousarray(codes, np.int64)
    tree = site_tree(means, sites.places, codes, weights)
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
        j = nearest_site(tree, i, alive, means, sites.places, sites.spans, codes, weights)
        if j < 0:
            continue
        first, other = (i, j) if (count[i], -i) > (count[j], -j) else (j, i)
        both = total[first] + total[other]
        means[first] = (total[first] * means[first] + total[other] * means[other]) / both
        total[first] = both
        leader[other], alive[other] = first, False
        remove_site(tree, other)
        move_site(tree, first, means[first])
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
