"""Fusion: a leaf with fewer than k records joins the leaf with the nearest centroid.

Source: J. Domingo-Ferrer, "Blocking methods for microdata protection", ESSnet-SDC, 2008,
section 2.2. Before, small leaves may be packed with their neighbours in a tree.
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
        centre, size = centres(centre, size, merged)
        block = merged[block]
    return block


def pack(count: NDArray[np.int64], max_block: int) -> NDArray[np.int64]:
    """Pack leaves that follow each other in a tree into blocks of about the largest size.

    Blocks have at most L records, or a quarter more if one of what is put together has less than
    that quarter: no leaf of few records need stay alone.

    Parameters
    ----------
    count : ndarray of int64, shape (leaves,)
        Records by leaf, in the order of the tree.
    max_block : int
        L, the largest leaf.

    Returns
    -------
    ndarray of int64, shape (leaves,)
        The block of every leaf, in order.

    Examples
    --------
    >>> import numpy as np
    >>> pack(np.array([50, 40, 30, 80, 2, 99]), max_block=100)
    array([0, 0, 1, 2, 2, 3])
    """
    few = max_block // 4
    block = np.empty(len(count), np.int64)
    number, held = 0, 0
    for leaf, records in enumerate(count.tolist()):
        small = held < few or records < few
        if held + records > max_block + (few if small else 0):
            number, held = number + 1, 0
        block[leaf] = number
        held += records
    return block


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
