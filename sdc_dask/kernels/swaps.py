"""Rank swapping: which rank gives its value to which, a matter of chance and of numbers alone.

A swap is given by sources: the record of rank r gets the value of rank ``sources[r]``. Every rank
is the source of exactly one. Values are not needed, so that the swaps of any column with n values
can be drawn before the column is seen.

In all methods the ranks are visited in ascending order, and each that has no partner yet is given
one among those that have none. So every value moves once, and none is left over: if the number of
ranks is odd, the first rank gets two partners, and the three values go round. Sources are drawn as
they are asked for, in pieces of any length, and are the same for all lengths.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.free_ranks import all_free, count_below, find, is_free, take


class Sources(ABC):
    """Which rank gets the value of which, rank after rank."""

    @abstractmethod
    def draw(self, count: int) -> NDArray[np.int64]:
        """Return the sources of the next ranks, of no more than there are."""


def share_of(n: int, percent: float) -> int:
    """Return how many of n are so many percent, rounded down.

    Examples
    --------
    >>> share_of(1_000, 2.3), share_of(1_000, 0.05)
    (23, 0)
    """
    # 2.3 percent of 1,000 are 23, though floats make 22.999999999999996 of it.
    return math.floor(n * percent / 100 * (1 + 1e-12))


def window_of(n: int, p: float) -> int:
    """Return the number of ranks in p percent of n, rounded down; not more than there are."""
    return min(n - 1, share_of(n, p))


class WindowSwaps(Sources):
    """Standard rank swapping: the partner is drawn from the ranks of the next window, all alike.

    R. A. Moore, "Controlled data swapping techniques for masking public use microdata sets", U.S.
    Bureau of the Census, 1996, in the form of J. Nin's thesis, section 2.4.1. No value moves by
    more than `window` ranks. With a window of one rank and an odd number of ranks, the last one has
    no partner and keeps its value.

    The partners are drawn in one pass that remembers a single window, however many ranks there
    are, and the time of a rank does not depend on the window.

    Parameters
    ----------
    n : int
        Number of ranks.
    window : int
        From 1 to n - 1.
    rng : numpy Generator

    Examples
    --------
    >>> swaps = WindowSwaps(6, 2, np.random.default_rng(1))
    >>> swaps.draw(4), swaps.draw(2)
    (array([1, 0, 4, 5]), array([2, 3]))
    """

    def __init__(self, n: int, window: int, rng: np.random.Generator) -> None:
        self.n, self.window, self.rank = n, window, 0
        self._rng = rng
        kind = np.int32 if n < 2**31 else np.int64
        # Of the ranks r ahead, at r % (window + 1): the source, or -1; and the place in the pool.
        self._source = np.full(window + 1, -1, kind)
        self._place = np.zeros(window + 1, kind)
        self._pool = np.empty(window + 1, kind)  # ranks of the window without a partner
        self._free = _fill_pool(self._pool, self._place, window)

    def __sizeof__(self) -> int:
        return self._source.nbytes + self._place.nbytes + self._pool.nbytes

    def draw(self, count: int) -> NDArray[np.int64]:
        """Return the sources of the next ranks."""
        sources = np.empty(count, np.int64)
        self._free = _draw_in_window(
            sources,
            self._rng.random(count),
            self.rank,
            self.n,
            self.window,
            self._source,
            self._place,
            self._pool,
            self._free,
        )
        self.rank += count
        return sources


@jit
def _fill_pool(pool, place, window):
    """Put the ranks 0 to `window` into the pool; return how many there are."""
    for rank in range(window + 1):
        pool[rank] = rank
        place[rank] = rank
    return window + 1


@jit
def _draw_in_window(sources, uniforms, start, n, window, source, place, pool, free):
    size = window + 1
    for i in range(sources.shape[0]):
        rank = start + i
        here = rank % size
        if source[here] < 0:
            free = _leave(pool, place, free, here, size)
            partner = rank
            if free > 0:
                partner = pool[min(int(uniforms[i] * free), free - 1)]
                free = _leave(pool, place, free, partner % size, size)
            source[partner % size] = rank
            source[here] = partner
            if rank == 0 and n % 2 == 1 and free > 0:
                # The digits of the number that chose the first partner choose the second.
                rest = uniforms[i] * (free + 1) % 1.0
                third = pool[min(int(rest * free), free - 1)]
                free = _leave(pool, place, free, third % size, size)
                source[partner % size] = third
                source[third % size] = rank
        sources[i] = source[here]
        # The rank that comes into the window takes the place of the one that leaves it.
        entering = rank + size
        if entering < n:
            source[here] = -1
            pool[free] = entering
            place[here] = free
            free += 1
    return free


@jit
def _leave(pool, place, free, here, size):
    """Take a rank out of the pool; return how many are left."""
    last = pool[free - 1]
    pool[place[here]] = last
    place[last % size] = place[here]
    return free - 1


class _FarSwaps(Sources):
    """Swaps whose partners may be far ahead.

    What must be remembered is a bit for every rank, and the sources of ranks ahead that have a
    partner.
    """

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.rank = n, 0
        self._rng = rng
        self._free = all_free(n)
        round_trip = []
        if n % 2 == 1:
            take(self._free, 0)
            round_trip = [0]
            while len(round_trip) < min(3, n):
                round_trip.append(self._partner_of_first())
                take(self._free, round_trip[-1])
        # Of ranks ahead that have a partner: the ranks, and their sources. Only those that are near
        # are looked through in every draw.
        kind = np.int32 if n < 2**31 else np.int64
        self._near = np.array([round_trip, np.roll(round_trip, -1)], kind)
        self._far: list[NDArray[np.integer]] = []
        self._horizon = 0

    def __sizeof__(self) -> int:
        arrays = [self._free.bits, self._free.tree, self._near, *self._far]
        return sum(array.nbytes for array in arrays)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Return the sources of the next ranks."""
        begin, end = self.rank, self.rank + count
        if end > self._horizon:
            self._horizon = end + self.n // 32
            known = np.concatenate([self._near, *self._far], axis=1)
            soon = known[0] < self._horizon
            self._near, self._far = known[:, soon], [known[:, ~soon]]
        sources = np.empty(count, np.int64)
        now = self._near[0] < end
        sources[self._near[0, now] - begin] = self._near[1, now]
        found = np.empty((2, count), self._near.dtype)
        found = found[:, : self._pair(begin, sources, found)]
        soon = found[0] < self._horizon
        self._near = np.concatenate([self._near[:, ~now], found[:, soon]], axis=1)
        self._far.append(found[:, ~soon])
        self.rank = end
        return sources

    @abstractmethod
    def _partner_of_first(self) -> int:
        """Draw a free rank for the first one."""

    @abstractmethod
    def _pair(self, begin: int, sources: NDArray[np.int64], found: NDArray[np.integer]) -> int:
        """Pair free ranks from `begin` on; return how many partners were found further ahead."""


@jit
def _exchange(free, begin, sources, found, size, rank, partner):
    """Make two ranks each other's sources; return how many are known further ahead."""
    take(free, partner)
    sources[rank - begin] = partner
    if partner < begin + sources.shape[0]:
        sources[partner - begin] = rank
        return size
    found[0, size] = partner
    found[1, size] = rank
    return size + 1


class DistributionSwaps(_FarSwaps):
    """Rank swapping p-distribution: the distance to the partner is normally distributed.

    J. Nin, J. Herranz, V. Torra, "Rethinking rank swapping to decrease disclosure risk", Data and
    Knowledge Engineering 64 (2008). Mean and deviation of the distance are p/2 percent of the
    ranks, so that any rank can be the partner. A distance beyond the first or last rank is
    reflected there. If the rank that was hit has a partner already, the nearest one without takes
    its place, the upper one of two.

    Parameters
    ----------
    n : int
        Number of ranks, at least 1.
    p : float
        Percent of the ranks.
    rng : numpy Generator

    Examples
    --------
    >>> swaps = DistributionSwaps(6, 50, np.random.default_rng(1))
    >>> swaps.draw(4), swaps.draw(2)
    (array([2, 4, 0, 5]), array([1, 3]))
    """

    def __init__(self, n: int, p: float, rng: np.random.Generator) -> None:
        self._half = n * p / 200
        super().__init__(n, rng)

    def _offsets(self, count: int) -> NDArray[np.int64]:
        return np.rint(self._rng.normal(self._half, self._half, count)).astype(np.int64)

    def _partner_of_first(self) -> int:
        return _nearest(self._free, _reflect(self._offsets(1)[0], self.n))

    def _pair(self, begin: int, sources: NDArray[np.int64], found: NDArray[np.integer]) -> int:
        offsets = self._offsets(len(sources))
        return _pair_nearest(self._free, begin, sources, found, self.n, offsets)


@jit
def _pair_nearest(free, begin, sources, found, n, offsets):
    size = 0
    for rank in range(begin, begin + sources.shape[0]):
        if is_free(free, rank):
            take(free, rank)
            partner = _nearest(free, _reflect(rank + offsets[rank - begin], n))
            size = _exchange(free, begin, sources, found, size, rank, partner)
    return size


@jit
def _reflect(rank, n):
    """Return a rank from 0 to n - 1, reflected at the ends as often as it takes."""
    period = max(1, 2 * (n - 1))
    rank = rank % period
    return rank if rank < n else period - rank


@jit
def _nearest(free, rank):
    """Return the free rank nearest to one, the upper one of two."""
    if is_free(free, rank):
        return rank
    index = count_below(free, rank)
    above = find(free, index)
    if index == 0:
        return above
    below = find(free, index - 1)
    return below if above < 0 or rank - below < above - rank else above


class BucketSwaps(_FarSwaps):
    """Rank swapping p-buckets: the partner is drawn from a bucket of ranks, a near one more likely.

    J. Nin, J. Herranz, V. Torra, "Rethinking rank swapping to decrease disclosure risk", Data and
    Knowledge Engineering 64 (2008). The ranks are cut into buckets of about equal size. A rank of
    bucket r draws bucket s >= r with the probability 1/2^(s-r+1), the last one with what is left,
    and from it a partner, all alike among those above it without one. If there is none, the next
    bucket above that has one takes its place, or else the next below.

    Parameters
    ----------
    n : int
        Number of ranks, at least 1.
    buckets : int
        From 1 to n.
    rng : numpy Generator

    Examples
    --------
    >>> swaps = BucketSwaps(6, 2, np.random.default_rng(1))
    >>> swaps.draw(4), swaps.draw(2)
    (array([2, 5, 0, 4]), array([3, 1]))
    """

    def __init__(self, n: int, buckets: int, rng: np.random.Generator) -> None:
        self._borders = np.arange(buckets + 1) * n // buckets
        super().__init__(n, rng)

    def _partner_of_first(self) -> int:
        return _from_bucket(self._free, self._borders, 0, *self._rng.random(2))

    def _pair(self, begin: int, sources: NDArray[np.int64], found: NDArray[np.integer]) -> int:
        chances = self._rng.random((len(sources), 2))
        return _pair_in_buckets(self._free, begin, sources, found, self._borders, chances)


@jit
def _pair_in_buckets(free, begin, sources, found, borders, chances):
    size = 0
    for rank in range(begin, begin + sources.shape[0]):
        if is_free(free, rank):
            take(free, rank)
            nearness, choice = chances[rank - begin]
            partner = _from_bucket(free, borders, rank, nearness, choice)
            size = _exchange(free, begin, sources, found, size, rank, partner)
    return size


@jit
def _from_bucket(free, borders, rank, nearness, choice):
    """Return a free rank that two numbers of [0, 1) choose: one the bucket, one the rank in it.

    All ranks below the one that asks have partners, so that what is found lies above it.
    """
    # The first is 1/2 or more: the own bucket; 1/4 or more: the next.
    steps = -math.frexp(nearness)[1]
    bucket = min(_bucket_of(borders, rank) + steps, borders.shape[0] - 2)
    before = count_below(free, borders[bucket])
    count = count_below(free, borders[bucket + 1]) - before
    if count == 0:
        other = find(free, before)
        if other < 0:
            other = find(free, before - 1)
        bucket = _bucket_of(borders, other)
        before = count_below(free, borders[bucket])
        count = count_below(free, borders[bucket + 1]) - before
    return find(free, before + min(int(choice * count), count - 1))


@jit
def _bucket_of(borders, rank):
    return np.searchsorted(borders, rank, side="right") - 1
