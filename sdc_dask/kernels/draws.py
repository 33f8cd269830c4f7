"""Random numbers by the number of a row: the same ones however rows are cut into partitions.

Philox is a counter-based generator: its n-th number costs no more than the first.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_WORDS = 4  # for each count


def row_uniforms(
    entropy: int, stream: int, first: int, rows: int, width: int = 1
) -> NDArray[np.float64]:
    """Return numbers between 0 and 1, neither of which occurs, for some rows.

    Parameters
    ----------
    entropy : int
        What is drawn depends on it.
    stream : int
        Streams of one entropy have nothing to do with each other.
    first : int
        The number of the first row.
    rows : int
    width : int
        Numbers for each row.

    Examples
    --------
    >>> whole = row_uniforms(1, 0, 0, 10, 3)
    >>> np.array_equal(row_uniforms(1, 0, 7, 3, 3), whole[7:])
    True
    """
    key = np.random.SeedSequence(entropy, spawn_key=(stream,)).generate_state(2, np.uint64)
    count, skipped = divmod(first * width, _WORDS)
    words = np.random.Philox(key=key, counter=count).random_raw(skipped + rows * width)[skipped:]
    # The upper bits, in the middle of their cell: 53 of them and a half are exact.
    uniforms = ((words >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return uniforms.reshape(rows, width)
