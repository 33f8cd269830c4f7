"""The nearest site among those that are left, while sites join others and move.

A tree of boxes, which grow when a site moves out of them. No site of a box is nearer than the box,
and a box without sites that are left is not looked into. So what is found is exact, rounding
included: a bound adds up the same terms in the same order as a distance does, each no larger.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

_LEAF = 16  # sites of a leaf, at most
_FEW = 64  # sites with a category that are looked at one by one


class SiteTree(NamedTuple):
    """Boxes of sites, those of all in the first one; the children of box b are 2b + 1 and 2b + 2.

    Attributes
    ----------
    order : ndarray of int64
        Sites, those of a leaf side by side.
    begin, end : ndarray of int64
        Where the sites of each box are in this order.
    leaf : ndarray of int64
        The leaf of each site.
    left : ndarray of int64
        How many sites of each box are left.
    low, high : ndarray of float64, shape (boxes, m + p)
        The ends of numbers, without those that are NaN.
    gap : ndarray of bool, shape (boxes, m + p)
        Whether some number is NaN.
    first, last : ndarray of int64, shape (boxes, q)
        The ends of categories.
    alike : ndarray of int64, shape (q, n)
        Sites, those of a category side by side.
    alike_begin, alike_end : ndarray of int32, shape (n, q)
        Where those with the category of each site are among these.
    """

    order: NDArray[np.int64]
    begin: NDArray[np.int64]
    end: NDArray[np.int64]
    leaf: NDArray[np.int64]
    left: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    gap: NDArray[np.bool_]
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    alike: NDArray[np.int64]
    alike_begin: NDArray[np.int32]
    alike_end: NDArray[np.int32]


def site_tree(
    means: NDArray[np.float64],
    places: NDArray[np.float64],
    codes: NDArray[np.int64],
    weights: NDArray[np.float64],
) -> SiteTree:
    """Return a tree of all sites, each box of which is halved along its widest side."""
    n = len(means)
    depth = 0
    while (n >> depth) > _LEAF:
        depth += 1
    boxes = 2 ** (depth + 1) - 1
    numbers = np.hstack([means, places])
    alike = np.empty((codes.shape[1], n), np.int64)
    ends = np.empty((2, n, codes.shape[1]), np.int32)
    for d, of_sites in enumerate(codes.T):
        alike[d] = np.argsort(of_sites, kind="stable")
        ends[0, :, d] = np.searchsorted(of_sites[alike[d]], of_sites, "left")
        ends[1, :, d] = np.searchsorted(of_sites[alike[d]], of_sites, "right")
    tree = SiteTree(
        np.arange(n),
        np.zeros(boxes, np.int64),
        np.full(boxes, n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(boxes, np.int64),
        np.full((boxes, numbers.shape[1]), np.inf),
        np.full((boxes, numbers.shape[1]), -np.inf),
        np.zeros((boxes, numbers.shape[1]), np.bool_),
        np.full((boxes, codes.shape[1]), np.iinfo(np.int64).max),
        np.full((boxes, codes.shape[1]), np.iinfo(np.int64).min),
        alike,
        ends[0],
        ends[1],
    )
    # To halve boxes by categories of few sites would say nothing of their distances.
    common = [len(np.unique(of_sites)) * _FEW <= n for of_sites in codes.T]
    _build(tree, numbers, codes, np.where(common, weights, 0.0))
    return tree


@jit
def _build(tree, numbers, codes, weights):
    """Fill in all boxes, from the first to the leaves."""
    boxes = len(tree.begin)
    for b in range(boxes):
        begin, end = tree.begin[b], tree.end[b]
        tree.left[b] = end - begin
        for s in tree.order[begin:end]:
            _enclose(tree, b, numbers[s], codes[s])
        if 2 * b + 2 >= boxes:
            tree.leaf[tree.order[begin:end]] = b
            continue
        widest, side = 0.0, -1
        for d in range(numbers.shape[1]):
            width = tree.high[b, d] - tree.low[b, d]
            if width * width > widest:
                widest, side = width * width, d
        for d in range(codes.shape[1]):
            if tree.last[b, d] > tree.first[b, d] and weights[d] > widest:
                widest, side = weights[d], numbers.shape[1] + d
        if side >= 0:
            some = tree.order[begin:end].copy()
            if side < numbers.shape[1]:
                tree.order[begin:end] = some[np.argsort(numbers[some, side], kind="mergesort")]
            else:
                by = codes[some, side - numbers.shape[1]]
                tree.order[begin:end] = some[np.argsort(by, kind="mergesort")]
        middle = (begin + end) // 2
        tree.begin[2 * b + 1], tree.end[2 * b + 1] = begin, middle
        tree.begin[2 * b + 2], tree.end[2 * b + 2] = middle, end


@jit
def _enclose(tree, b, numbers, codes):
    """Let a box grow so that a site is in it."""
    for d in range(len(numbers)):
        if np.isnan(numbers[d]):
            tree.gap[b, d] = True
        else:
            tree.low[b, d] = min(tree.low[b, d], numbers[d])
            tree.high[b, d] = max(tree.high[b, d], numbers[d])
    for d in range(len(codes)):
        tree.first[b, d] = min(tree.first[b, d], codes[d])
        tree.last[b, d] = max(tree.last[b, d], codes[d])


@jit
def move_site(tree, site, mean):
    """Let the boxes of a site, whose mean is another, enclose it."""
    b = tree.leaf[site]
    while True:
        for d in range(len(mean)):
            tree.low[b, d] = min(tree.low[b, d], mean[d])
            tree.high[b, d] = max(tree.high[b, d], mean[d])
        if b == 0:
            return
        b = (b - 1) // 2


@jit
def remove_site(tree, site):
    """Take a site that has joined another out of its boxes."""
    b = tree.leaf[site]
    tree.left[b] -= 1
    while b > 0:
        b = (b - 1) // 2
        tree.left[b] -= 1


@jit
def _bound(tree, b, i, means, places, spans, codes, weights, alone):
    """Return what no site of a box is nearer to a site than."""
    m = means.shape[1]
    distance = 0.0
    for d in range(m):
        x = means[i, d]
        distance += max(tree.low[b, d] - x, x - tree.high[b, d], 0.0) ** 2
    for d in range(places.shape[1]):
        x = places[i, d]
        if np.isnan(x):
            distance += 0.0 if tree.gap[b, m + d] else spans[d]
        else:
            away = max(tree.low[b, m + d] - x, x - tree.high[b, m + d], 0.0) ** 2
            distance += min(away, spans[d]) if tree.gap[b, m + d] else away
    for d in range(codes.shape[1]):
        c = codes[i, d]
        if alone[d] or c < tree.first[b, d] or c > tree.last[b, d]:
            distance += weights[d]
    return distance


@jit
def nearest_site(tree, i, alive, means, places, spans, codes, weights):
    """Return the nearest other site that is alive, of equally near ones the first, or -1.

    Parameters
    ----------
    tree : SiteTree
    i : int
        A site.
    alive : ndarray of bool
        Which sites are left.
    means, places, spans, codes, weights
        As in :class:`~sdc_dask.kernels.merging.Sites`.
    """
    boxes = len(tree.begin)
    best, found = np.inf, -1
    # The few with a category of the site come first. All others of interest have another one.
    alone = np.zeros(codes.shape[1], np.bool_)
    for d in range(codes.shape[1]):
        begin, end = tree.alike_begin[i, d], tree.alike_end[i, d]
        alone[d] = end - begin <= _FEW
        if alone[d]:
            for j in tree.alike[d, begin:end]:
                if j != i and alive[j]:
                    distance = _distance(i, j, means, places, spans, codes, weights)
                    if distance < best or (distance == best and j < found):
                        best, found = distance, j
    stack = np.empty(128, np.int64)
    bounds = np.empty(128)
    stack[0], bounds[0], depth = 0, 0.0, 1
    while depth:
        depth -= 1
        b = stack[depth]
        if bounds[depth] > best or bounds[depth] == np.inf or tree.left[b] == 0:
            continue
        if 2 * b + 2 < boxes:
            one = _bound(tree, 2 * b + 1, i, means, places, spans, codes, weights, alone)
            other = _bound(tree, 2 * b + 2, i, means, places, spans, codes, weights, alone)
            # What is nearer comes last, and so is looked into first.
            near = 0 if one <= other else 1
            stack[depth], bounds[depth] = 2 * b + 2 - near, max(one, other)
            stack[depth + 1], bounds[depth + 1] = 2 * b + 1 + near, min(one, other)
            depth += 2
            continue
        for j in tree.order[tree.begin[b] : tree.end[b]]:
            if j == i or not alive[j]:
                continue
            distance = _distance(i, j, means, places, spans, codes, weights)
            if distance < best or (distance == best and j < found):
                best, found = distance, j
    return found


@jit
def _distance(i, j, means, places, spans, codes, weights):
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
    return distance
