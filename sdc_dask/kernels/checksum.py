"""A checksum that tells whether the same values came in the same order."""

from __future__ import annotations

import numpy as np

from sdc_dask.kernels._jit import jit
from sdc_dask.kernels.classes import mix


@jit
def checksum(cells):
    """Add up scrambled cells, each with its position.

    Parameters
    ----------
    cells : ndarray of uint64, shape (n, d)
        Bits of the cells.

    Returns
    -------
    uint64
        Different for other cells or another order, except for a chance of 2**-64.
    """
    total = np.uint64(len(cells))
    # One loop, which the compiler turns into vector code.
    row_by_row = cells.ravel()
    for i in range(len(row_by_row)):
        position = np.uint64(i) * np.uint64(0x9E3779B97F4A7C15)
        total += mix(row_by_row[i] ^ mix(position))
    return total
