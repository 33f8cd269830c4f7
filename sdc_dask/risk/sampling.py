"""Which records an intruder is taken to know if not all of them are tried."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def draw_rows(n: int, sample: int | None, entropy: int) -> NDArray[np.int64]:
    """Draw rows without replacement; the same ones however the data is cut into partitions.

    Parameters
    ----------
    n : int
        Number of records.
    sample : int or None
        How many to draw; all if it is None or not less than n.
    entropy : int
        What the draw depends on, and nothing else.

    Returns
    -------
    ndarray of int64
        Row numbers from 0 to n - 1, sorted.

    Examples
    --------
    >>> draw_rows(1_000_000, 3, entropy=0).tolist() == draw_rows(1_000_000, 3, entropy=0).tolist()
    True
    >>> draw_rows(4, 10, entropy=0)
    array([0, 1, 2, 3])
    """
    if sample is None or sample >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(entropy).choice(n, sample, replace=False, shuffle=False))
