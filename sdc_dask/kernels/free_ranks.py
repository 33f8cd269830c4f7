"""Which ranks are free: how many below a rank, and which is the i-th.

A bit tells whether a rank is free, and a Fenwick tree (P. M. Fenwick, "A new data structure for
cumulative frequency tables", Software: Practice and Experience 24, 1994) has the counts of blocks
of bits: all questions take logarithmic time, and a rank little more than a bit.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

_WORDS = 8  # of 64 bits, in a block: one line of cache


class FreeRanks(NamedTuple):
    """The ranks that are free, for the functions of this file."""

    bits: NDArray[np.uint64]
    tree: NDArray[np.int64]  # at i the free ranks of the blocks from i - (i & -i) to i - 1
    top: int  # the largest power of two that is an index of the tree


def all_free(n: int) -> FreeRanks:
    """Return n ranks that are free, n at least 1.

    Examples
    --------
    >>> free = all_free(1_000)
    >>> take(free, 600)
    >>> count_below(free, 700), find(free, 699)
    (699, 700)
    """
    block = 64 * _WORDS
    blocks = -(-n // block)
    bits = np.full(blocks * _WORDS, np.uint64(2**64 - 1))
    bits[n // 64 :] = 0
    if n % 64:
        bits[n // 64] = np.uint64((1 << n % 64) - 1)
    index = np.arange(blocks + 1)
    below = np.minimum(index * block, n)
    tree = below - below[index - (index & -index)]
    return FreeRanks(bits, tree, 1 << (blocks.bit_length() - 1))


@jit
def is_free(free, rank):
    """Whether a rank is free."""
    return (free.bits[rank >> 6] >> np.uint64(rank & 63)) & np.uint64(1) == 1


@jit
def take(free, rank):
    """Make a free rank one that is not."""
    free.bits[rank >> 6] &= ~(np.uint64(1) << np.uint64(rank & 63))
    i = (rank >> 6) // _WORDS + 1
    while i < free.tree.shape[0]:
        free.tree[i] -= 1
        i += i & -i


@jit
def count_below(free, rank):
    """Return how many ranks below one are free."""
    word = rank >> 6
    i = word // _WORDS
    count = 0
    for w in range(i * _WORDS, word):
        count += _ones(free.bits[w])
    if rank & 63:
        count += _ones(free.bits[word] << np.uint64(64 - (rank & 63)))
    while i > 0:
        count += free.tree[i]
        i -= i & -i
    return count


@jit
def find(free, index):
    """Return the free rank with so many free ones below it, -1 if there is none."""
    block = 0
    step = free.top
    while step > 0:
        if block + step < free.tree.shape[0] and free.tree[block + step] <= index:
            block += step
            index -= free.tree[block]
        step >>= 1
    word = block * _WORDS
    if word == free.bits.shape[0]:
        return -1
    ones = _ones(free.bits[word])
    while ones <= index:
        index -= ones
        word += 1
        ones = _ones(free.bits[word])
    left = free.bits[word]
    for _ in range(index):
        left &= left - np.uint64(1)  # without its lowest one
    return (word << 6) + _ones(~left & (left - np.uint64(1)))


@jit
def _ones(word):
    """Count the ones of a word, of neighbours together: of 2, of 4, of 8 bits, then of all."""
    word -= (word >> np.uint64(1)) & np.uint64(0x5555555555555555)
    twos = np.uint64(0x3333333333333333)
    word = (word & twos) + ((word >> np.uint64(2)) & twos)
    word = (word + (word >> np.uint64(4))) & np.uint64(0x0F0F0F0F0F0F0F0F)
    return np.int64((word * np.uint64(0x0101010101010101)) >> np.uint64(56))
