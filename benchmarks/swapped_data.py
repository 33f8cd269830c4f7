"""Large data and its rank swap, made without sorting a column.

A column holds the numbers 0 to n - 1, each once, in random order: the rank of a value is the value
itself. The order is a bijection that gives the rank of any row by itself, so that files are made
one after the other. Which ranks change places is drawn by the kernel that masks real data
(:class:`sdc_dask.kernels.swaps.WindowSwaps`), which needs no values. So this is a standard rank
swap, drawn as ``RankSwap(columns, p=p)`` draws it, of evenly spread columns that do not depend on
each other.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.kernels.swaps import WindowSwaps, window_of

ROUNDS = 4
PIECE = 2**20  # ranks whose partners are drawn at a time
FILE_ROWS = 2**18


class Shuffled:
    """The numbers 0 to n - 1 in random order, any part of which can be made by itself.

    A number below a * a has two digits to the base a. In each round one digit is shifted by an
    amount that the other one decides, and the digits change places: a Feistel network, which can be
    undone, and so is a bijection. What comes out as n or more goes through it again.

    Parameters
    ----------
    n : int
        How many numbers.
    rng : numpy Generator
    """

    def __init__(self, n: int, rng: np.random.Generator) -> None:
        self.n, self.base = n, math.isqrt(n - 1) + 1
        self._shifts = rng.integers(self.base, size=(ROUNDS, self.base))

    def part(self, begin: int, end: int) -> NDArray[np.int64]:
        """Return the numbers at some places."""
        numbers = self._mixed(np.arange(begin, end))
        while len(beyond := np.flatnonzero(numbers >= self.n)):
            numbers[beyond] = self._mixed(numbers[beyond])
        return numbers

    def _mixed(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        high, low = np.divmod(numbers, self.base)
        for shift in self._shifts:
            high, low = low, (high + shift[low]) % self.base
        return high * self.base + low


class SwappedData:
    """Columns, and their masked versions. Keeps 4 bytes per value in memory.

    Parameters
    ----------
    n : int
        Number of rows, below 2**31.
    columns : list of str
    p : float
        Percent of the ranks that a value moves at most; so many that it is a rank at least.
    seed : int
        Equal seeds give equal data.
    """

    def __init__(self, n: int, columns: list[str], p: float, seed: int = 0) -> None:
        self.n = n
        rngs = [np.random.default_rng([seed, j]) for j in range(len(columns))]
        self._ranks = {name: Shuffled(n, rng) for name, rng in zip(columns, rngs, strict=True)}
        self._sources = {
            name: _sources(n, window_of(n, p), rng) for name, rng in zip(columns, rngs, strict=True)
        }

    def part(self, begin: int, end: int) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return some rows, original and masked."""
        original, masked = {}, {}
        for name, ranks in self._ranks.items():
            own = ranks.part(begin, end)
            original[name] = own.astype(np.float64)
            masked[name] = self._sources[name][own].astype(np.float64)
        index = pd.RangeIndex(begin, end)
        return pd.DataFrame(original, index=index), pd.DataFrame(masked, index=index)

    def write(self, paths: list[Path], file_rows: int = FILE_ROWS) -> None:
        """Write both versions to parquet files in directories of their own."""
        for path in paths:
            path.mkdir()
        for number, begin in enumerate(range(0, self.n, file_rows)):
            parts = self.part(begin, min(begin + file_rows, self.n))
            for path, part in zip(paths, parts, strict=True):
                # Readers put files in the order of the numbers in their names.
                part.to_parquet(path / f"part.{number}.parquet", index=False)


def _sources(n: int, window: int, rng: np.random.Generator) -> NDArray[Any]:
    """Return the rank whose value each rank gets."""
    swaps = WindowSwaps(n, window, rng)
    sources = np.empty(n, np.int32)
    for begin in range(0, n, PIECE):
        end = min(begin + PIECE, n)
        sources[begin:end] = swaps.draw(end - begin)
    return sources
