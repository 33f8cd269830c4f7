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
    block = np.arange(len(count))
    centre = centroid.astype(float)
    size = count.astype(np.int64)
    while len(size) > 1 and (size < k).any():
        small = np.flatnonzero(size < k)
        # The nearest of all is the leaf itself, or one that coincides with it.
        _, near = KDTree(centre).query(centre[small], k=2)
        partner = np.where(near[:, 0] == small, near[:, 1], near[:, 0])
        links = coo_array(
            (np.ones(len(small), np.int8), (small, partner)), shape=(len(size), len(size))
        )
        _, merged = connected_components(links, directed=False)
        merged = _number_by_first(merged)
        total = np.bincount(merged, weights=size)
        centre = np.stack(
            [np.bincount(merged, weights=size * column) / total for column in centre.T], axis=1
        )
        size = total.astype(np.int64)
        block = merged[block]
    return block


def _number_by_first(labels: NDArray[np.integer]) -> NDArray[np.int64]:
    """Give labels new numbers, in the order in which they first occur."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int64)
    rank[np.argsort(first)] = np.arange(len(first))
    return rank[inverse]
