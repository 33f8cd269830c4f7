"""Some of the groups refined apart from the others: those that lose most, or neighbours of one.

Where few records far out lose most, a threshold that suits all records is none for these; and what
all groups together have settled in, a few of them may still leave. The others stay as they are, so
that the loss never grows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.refine import Cycle, below, by_first_record, draw, loss_of, refine

_SHARES = (0.95, 0.8, 0.9, 0.7)
_FEWEST, _MOST = 8, 40  # neighbours that are refined together
_SWEEPS = 100
_WARMTHS = (2.0, 4.0, 8.0, 4.0)


def refine_worst(
    points: NDArray[np.float64], labels: NDArray[np.int64], k: int, cycles: Sequence[Cycle]
) -> NDArray[np.int64]:
    """Refine the groups that lose most: as many as have a share of the loss, for several shares.

    Parameters and result are those of :func:`~sdc_dask.kernels.refine.refine`; groups that are
    given are numbered without gaps.

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.kernels.refine import Cycle
    >>> points = np.array([[0.0], [0.1], [5.0], [9.0], [5.1], [9.1]])
    >>> refine_worst(points, np.array([0, 0, 1, 1, 2, 2]), 2, [Cycle(100, 4.0, True)])
    array([0, 0, 1, 2, 1, 2])
    """
    for share in _SHARES:
        _, losses = _means_and_losses(points, labels)
        order = np.argsort(-losses, kind="stable")
        upto = np.cumsum(losses[order])
        many = np.searchsorted(upto, share * upto[-1]) + 1
        labels = _refine_apart(points, labels, k, cycles, order[:many])
    return labels


def refine_neighbours(
    points: NDArray[np.float64], labels: NDArray[np.int64], k: int, rounds: int
) -> NDArray[np.int64]:
    """Refine a group and its neighbours, many times: one that loses much in every other round.

    Parameters and result are those of :func:`refine_worst`. What chance decides is drawn from a
    fixed seed.
    """
    random = np.zeros(1, np.uint64)
    for number in range(rounds):
        chance = np.uint64(draw(random))
        means, losses = _means_and_losses(points, labels)
        upto = np.cumsum(losses if number % 2 else np.bincount(labels))
        if not upto[-1] > 0:
            return labels  # nothing is lost
        drawn = below(chance, 48, 2**16) / 2**16 * upto[-1]
        first = np.searchsorted(upto[:-1], drawn, side="right")
        distance = np.zeros(len(means))
        for column in means.T:  # one after the other, so that sums are rounded everywhere alike
            distance += (column - column[first]) ** 2
        many = _FEWEST + below(chance, 0, _MOST - _FEWEST)
        near = np.argsort(distance, kind="stable")[:many]
        warmth, evenly = _WARMTHS[below(chance, 16, 4)], bool(below(chance, 32, 2))
        labels = _refine_apart(points, labels, k, [Cycle(_SWEEPS, warmth, evenly)], near)
    return labels


def _means_and_losses(
    points: NDArray[np.float64], labels: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the means of groups, and the sums of squared distances to them."""
    size = np.bincount(labels)
    means = np.stack([np.bincount(labels, column) / size for column in points.T], axis=1)
    losses = np.zeros(len(size))
    for column, mean in zip(points.T, means.T, strict=True):
        losses += np.bincount(labels, (column - mean[labels]) ** 2)
    return means, losses


def _refine_apart(
    points: NDArray[np.float64],
    labels: NDArray[np.int64],
    k: int,
    cycles: Sequence[Cycle],
    chosen: NDArray[np.int64],
) -> NDArray[np.int64]:
    """Refine chosen groups, and keep what loses less."""
    groups = int(labels.max()) + 1
    is_chosen = np.zeros(groups, bool)
    is_chosen[chosen] = True
    rows = np.flatnonzero(is_chosen[labels])
    some = np.ascontiguousarray(points[rows])
    begin = by_first_record(labels[rows])
    found = refine(some, begin, k, cycles, surely=False)
    if not loss_of(some, found) < loss_of(some, begin):
        return labels
    together = labels.copy()
    together[rows] = groups + found
    return by_first_record(together)
