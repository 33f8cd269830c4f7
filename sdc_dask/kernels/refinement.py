"""How long groups are refined, and in which ways: all at once, then some of them apart."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.refine import FEW, Cycle, refine
from sdc_dask.kernels.refine_some import refine_neighbours, refine_worst

_MANY = 8  # coordinates in which warmth loses more than it finds


class Effort(NamedTuple):
    """What is done to groups, one thing after the other.

    Attributes
    ----------
    cycles : tuple of Cycle
        Over all groups.
    worst : tuple of Cycle
        Over those that lose most.
    rounds : int
        Over neighbours among groups.
    """

    cycles: tuple[Cycle, ...]
    worst: tuple[Cycle, ...] = ()
    rounds: int = 0


def strength(sweeps: int) -> Effort:
    """Return what takes a time that is known, for each record."""
    return Effort((Cycle(sweeps, 4.0, False),))


def quick(n: int) -> Effort:
    """Return what pays most for its time: a second at most for thousands of records."""
    if n > FEW:
        return strength(50)
    cycles = _several(max(20, min(200, 400_000 // n)))
    return Effort(cycles, cycles)


def thorough(n: int) -> Effort:
    """Return what takes some seconds for thousands of records, and finds what there is to find."""
    cycles = _several(max(50, min(2_000, 8_000_000 // n)))
    return Effort(cycles, _several(max(20, min(200, 800_000 // n))), min(1_500, 6_000_000 // n))


def cooler(effort: Effort, d: int) -> Effort:
    """Return what pays for groups that were refined elsewhere: as much time, with less warmth.

    So much that they are not lost, by benchmarks with d from 2 to 10 coordinates.

    Examples
    --------
    >>> cooler(strength(50), d=3).cycles
    (Cycle(sweeps=50, warmth=2.0, evenly=False),)
    """
    share = 0.5 if d < _MANY else 0.25
    cycles = [cycle._replace(warmth=share * cycle.warmth) for cycle in effort.cycles]
    return Effort(tuple(cycles))


def refined(
    points: NDArray[np.float64], labels: NDArray[np.int64], k: int, effort: Effort
) -> NDArray[np.int64]:
    """Return groups of at least k records with a smaller sum of squared errors.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Coordinates in which distances are Euclidean. Finite.
    labels : ndarray of int64, shape (n,)
        The group of every record, numbered from 0; groups have k to 2k - 1 records.
    k : int
        Smallest group.
    effort : Effort
        Time grows with it, and loss falls.

    Returns
    -------
    ndarray of int64, shape (n,)
        The group of every record, numbered by their first records; those that were given if none
        were found that lose less.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2], [9.0]])
    >>> refined(points, np.array([0, 0, 1, 1, 1, 2, 2]), 2, thorough(7))
    array([0, 0, 0, 1, 1, 2, 2])
    """
    labels = refine(points, labels, k, effort.cycles)
    if effort.worst:
        labels = refine_worst(points, labels, k, effort.worst)
    return refine_neighbours(points, labels, k, effort.rounds)


def _several(sweeps: int) -> tuple[Cycle, ...]:
    first = [Cycle(sweeps, warmth, False) for warmth in (8.0, 4.0)]
    return (*first, *(Cycle(2 * sweeps, warmth, True) for warmth in (8.0, 4.0, 2.0)))
