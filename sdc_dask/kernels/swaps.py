"""Rank swapping: which rank gives its value to which, a matter of chance and of numbers alone.

A swap is told by sources: the record of rank r gets the value of rank ``sources[r]``. Every rank is
the source of exactly one. Values are not needed, so that the swaps of any column with n values can
be drawn before the column is seen.

In all methods the ranks are visited in ascending order, and each that has no partner yet is given
one among those that have none. So every value moves once, and none is left over: if the number of
ranks is odd, the first rank gets two partners, and the three values go round.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit


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


class WindowSwaps:
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

    Examples
    --------
    >>> swaps = WindowSwaps(6, 2)
    >>> swaps.draw(np.array([0.9, 0.1, 0.9, 0.5, 0.5, 0.5]))
    array([1, 0, 3, 2, 5, 4])
    """

    def __init__(self, n: int, window: int) -> None:
        self.n, self.window, self.rank = n, window, 0
        kind = np.int32 if n < 2**31 else np.int64
        # Of the ranks r ahead, at r % (window + 1): the source, or -1; and the place in the pool.
        self._source = np.full(window + 1, -1, kind)
        self._place = np.zeros(window + 1, kind)
        self._pool = np.empty(window + 1, kind)  # ranks of the window without a partner
        self._free = _fill_pool(self._pool, self._place, window)

    def __sizeof__(self) -> int:
        return self._source.nbytes + self._place.nbytes + self._pool.nbytes

    def draw(self, uniforms: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return the sources of the next ranks, one for each number of [0, 1) that is given."""
        sources = np.empty(len(uniforms), np.int64)
        self._free = _draw_in_window(
            sources,
            uniforms,
            self.rank,
            self.n,
            self.window,
            self._source,
            self._place,
            self._pool,
            self._free,
        )
        self.rank += len(uniforms)
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


def distribution_swaps(n: int, p: float, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rank swapping p-distribution: the distance to the partner is normally distributed.

    J. Nin, J. Herranz, V. Torra, "Rethinking rank swapping to decrease disclosure risk", Data and
    Knowledge Engineering 64 (2008). Mean and deviation of the distance are p/2 percent of the
    ranks, so that any rank can be the partner. A distance beyond the first or last rank is
    reflected there. If the rank that was hit has a partner already, the nearest one without takes
    its place, the upper one of two.

    Parameters
    ----------
    n : int
        Number of ranks.
    p : float
        Percent of the ranks.
    rng : numpy Generator

    Returns
    -------
    ndarray of int64, shape (n,)
        The source of every rank.
    """
    sources = np.full(n, -1, np.int64)
    levels = _all_set(n)
    half = n * p / 200
    for begin in range(0, n, CHUNK):
        count = min(CHUNK, n - begin)
        offsets = np.rint(rng.normal(half, half, count)).astype(np.int64)
        extra = np.rint(rng.normal(half, half, 1)).astype(np.int64)[0] if begin == 0 else 0
        _draw_nearest(sources, begin, offsets, extra, levels)
    return sources


CHUNK = 2**20  # ranks whose random numbers are drawn at a time
_WORD = 64


def _all_set(n: int) -> tuple[NDArray[np.uint64], ...]:
    """Return a bitmap of n ones, and above it bitmaps of the words that have ones, up to a word."""
    levels = []
    while True:
        words = -(-n // _WORD)
        level = np.full(words, np.uint64(2**64 - 1))
        if n % _WORD:
            level[-1] = np.uint64((1 << n % _WORD) - 1)
        levels.append(level)
        if words == 1:
            break
        n = words
    # Kernels are compiled for a number of levels: five reach over 2**30 ranks.
    while len(levels) < 6:
        levels.append(np.ones(1, np.uint64))
    return tuple(levels)


@jit
def _draw_nearest(sources, begin, offsets, extra, levels):
    n = sources.shape[0]
    for i in range(offsets.shape[0]):
        rank = begin + i
        if sources[rank] >= 0:
            continue
        _clear(levels, rank)
        partner = _nearest_set(levels, _reflect(rank + offsets[i], n))
        if partner < 0:
            sources[rank] = rank
            continue
        _clear(levels, partner)
        sources[rank] = partner
        sources[partner] = rank
        if rank == 0 and n % 2 == 1:
            third = _nearest_set(levels, _reflect(rank + extra, n))
            if third >= 0:
                _clear(levels, third)
                sources[partner] = third
                sources[third] = rank


@jit
def _reflect(rank, n):
    """Return a rank from 0 to n - 1, reflected at the ends as often as it takes."""
    period = max(1, 2 * (n - 1))
    rank = rank % period
    return rank if rank < n else period - rank


@jit
def _clear(levels, position):
    """Clear a bit, and the bits above it of words that became empty."""
    for level in range(len(levels)):
        word = position >> 6
        levels[level][word] &= ~(np.uint64(1) << np.uint64(position & 63))
        if levels[level][word] != 0 or levels[level].shape[0] == 1:
            break
        position = word


@jit
def _nearest_set(levels, position):
    """Return the set bit nearest to a position, the upper one of two; -1 if there is none."""
    above = _next_set(levels, position)
    below = _previous_set(levels, position)
    if above < 0:
        return below
    if below < 0 or above - position <= position - below:
        return above
    return below


@jit
def _next_set(levels, position):
    """Return the first set bit at or after a position, -1 if there is none."""
    for level in range(len(levels)):
        word = position >> 6
        if word >= levels[level].shape[0]:
            return -1
        left = levels[level][word] >> np.uint64(position & 63)
        if left != 0:
            position += _trailing_zeros(left)
            for lower in range(level - 1, -1, -1):
                position = (position << 6) + _trailing_zeros(levels[lower][position])
            return position
        if levels[level].shape[0] == 1:
            return -1
        position = word + 1
    return -1


@jit
def _previous_set(levels, position):
    """Return the last set bit at or before a position, -1 if there is none."""
    for level in range(len(levels)):
        word = position >> 6
        left = levels[level][word] << np.uint64(63 - (position & 63))
        if left != 0:
            position -= _leading_zeros(left)
            for lower in range(level - 1, -1, -1):
                position = (position << 6) + 63 - _leading_zeros(levels[lower][position])
            return position
        if word == 0:
            return -1
        position = word - 1
    return -1


@jit
def _trailing_zeros(word):
    count = 0
    step = 32
    while step > 0:
        low = word & ((np.uint64(1) << np.uint64(step)) - np.uint64(1))
        if low == 0:
            word >>= np.uint64(step)
            count += step
        step //= 2
    return count


@jit
def _leading_zeros(word):
    count = 0
    step = 32
    while step > 0:
        if word >> np.uint64(64 - step) == 0:
            word <<= np.uint64(step)
            count += step
        step //= 2
    return count


def bucket_swaps(n: int, buckets: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Rank swapping p-buckets: the partner is drawn from a bucket of ranks, a near one more likely.

    J. Nin, J. Herranz, V. Torra, "Rethinking rank swapping to decrease disclosure risk", Data and
    Knowledge Engineering 64 (2008). The ranks are cut into buckets of about equal size. A rank of
    bucket r draws bucket s >= r with the probability 1/2^(s-r+1), the last one with what is left,
    and from it a partner, all alike among those above it without one. If there is none, the next
    bucket above that has one takes its place, or else the next below.

    Parameters
    ----------
    n : int
        Number of ranks.
    buckets : int
        From 1 to n.
    rng : numpy Generator

    Returns
    -------
    ndarray of int64, shape (n,)
        The source of every rank.
    """
    borders = np.arange(buckets + 1) * n // buckets
    # In a bucket that is shuffled, the next rank without a partner is a draw from all that are.
    deck = np.arange(n, dtype=np.int32 if n < 2**31 else np.int64)
    for begin, end in itertools.pairwise(borders):
        rng.shuffle(deck[begin:end])
    sources = np.full(n, -1, np.int64)
    tops = borders[:-1].copy()
    bucket = 0
    for start in range(0, n, CHUNK):
        steps = rng.geometric(0.5, min(CHUNK, n - start)) - 1
        extra = rng.geometric(0.5) - 1
        bucket = _draw_in_buckets(sources, start, steps, extra, deck, borders, tops, bucket)
    return sources


@jit
def _draw_in_buckets(sources, begin, steps, extra, deck, borders, tops, bucket):
    n, buckets = sources.shape[0], tops.shape[0]
    for i in range(steps.shape[0]):
        rank = begin + i
        while rank >= borders[bucket + 1]:
            bucket += 1
        if sources[rank] >= 0:
            continue
        sources[rank] = rank
        partner = _draw_above(sources, rank, bucket, steps[i], deck, borders, tops, buckets)
        if partner < 0:
            continue
        sources[rank] = partner
        sources[partner] = rank
        if rank == 0 and n % 2 == 1:
            third = _draw_above(sources, rank, bucket, extra, deck, borders, tops, buckets)
            if third >= 0:
                sources[partner] = third
                sources[third] = rank
    return bucket


@jit
def _draw_above(sources, rank, bucket, step, deck, borders, tops, buckets):
    """Return a rank without a partner, -1 if there is none left."""
    wanted = min(bucket + step, buckets - 1)
    for turn in range(buckets - bucket):
        # Upwards from the bucket that was drawn, then downwards from it.
        s = wanted + turn
        if s >= buckets:
            s = wanted - (s - buckets + 1)
        while tops[s] < borders[s + 1]:
            drawn = deck[tops[s]]
            tops[s] += 1
            if sources[drawn] < 0:
                return drawn
    return -1
