"""Fusion: a leaf with fewer than k records joins the leaf with the nearest centroid.

Source: J. Domingo-Ferrer, "Blocking methods for microdata protection", ESSnet-SDC, 2008,
section 2.2.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import KDTree


def fuse(
    centroid: NDArray[np.float64],
    count: NDArray[np.int64],
    k: int,
) -> NDArray[np.int64]:
    """Fuse leaves until each has at least k records.

    Parameters
    ----------
    centroid : ndarray of float64, shape (leaves, d)
        In coordinates in which distances are Euclidean.
    count : ndarray of int64, shape (leaves,)
        Records by leaf; k or more in all.
    k : int
        Smallest block.

    Returns
    -------
    ndarray of int64, shape (leaves,)
        The block of every leaf. Blocks are numbered in the order of their first leaf.

    Examples
    --------
    >>> import numpy as np
    >>> fuse(np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([9, 1, 1, 1]), k=2)
    array([0, 0, 1, 1])
    """
    made = _Made(centroid, count)
    while len(made.size) > 1 and (made.size < k).any():
        small = np.flatnonzero(made.size < k)
        partner, _ = made.nearest(small, np.arange(len(made.size)))
        made.join(small, partner)
    return made.block


def fill(
    centroid: NDArray[np.float64],
    count: NDArray[np.int64],
    few: int,
    largest: int,
) -> NDArray[np.int64]:
    """Fuse leaves with few records, the smallest first, as long as blocks do not become too large.

    Parameters
    ----------
    centroid, count : ndarray
        As in :func:`fuse`.
    few : int
        Blocks with fewer records join others.
    largest : int
        Blocks with more records are joined no more.

    Returns
    -------
    ndarray of int64, shape (leaves,)
        As in :func:`fuse`.

    Examples
    --------
    >>> import numpy as np
    >>> fill(np.array([[0.0], [1.0], [5.0], [6.0]]), np.array([9, 2, 2, 3]), few=4, largest=8)
    array([0, 1, 1, 1])
    """
    made = _Made(centroid, count)
    while made.size.min() < few:
        small = np.flatnonzero(made.size < min(few, 2 * made.size.min()))
        others = np.flatnonzero(made.size <= largest)
        if len(others) < 2:
            break
        partner, distance = made.nearest(small, others)
        # If all joined at once, those around a dense region would make one huge block.
        order = np.argsort(distance, kind="stable")
        _, first = np.unique(partner[order], return_index=True)
        made.join(small[order[first]], partner[order[first]])
    return made.block


class _Made:
    """Blocks as they are made of leaves."""

    def __init__(self, centroid: NDArray[np.float64], count: NDArray[np.int64]) -> None:
        self.block = np.arange(len(count))
        self.centre = centroid.astype(float)
        self.size = count.astype(np.int64)

    def nearest(
        self, small: NDArray[np.int64], others: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the nearest of others, which small blocks are among, and how far it is."""
        # The nearest of all is the block itself, or one that coincides with it.
        distance, near = KDTree(self.centre[others]).query(self.centre[small], k=2)
        near = others[near]
        return np.where(near[:, 0] == small, near[:, 1], near[:, 0]), distance[:, 1]

    def join(self, small: NDArray[np.int64], partner: NDArray[np.int64]) -> None:
        """Join blocks with their partners."""
        n = len(self.size)
        links = coo_array((np.ones(len(small), np.int8), (small, partner)), shape=(n, n))
        _, merged = connected_components(links, directed=False)
        merged = _number_by_first(merged)
        self.centre, self.size = centres(self.centre, self.size, merged)
        self.block = merged[self.block]


def centres(
    centroid: NDArray[np.float64], count: NDArray[np.int64], block: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return the centroids and the numbers of records of blocks of leaves."""
    total = np.bincount(block, weights=count)
    centre = [np.bincount(block, weights=count * column) / total for column in centroid.T]
    return np.stack(centre, axis=1), total.astype(np.int64)


def _number_by_first(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Give labels new numbers, in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
