"""The microaggregation methods that form groups block by block, by name."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.mdav import mdav

# From the coordinates of a block and k to the group of every record.
Grouping = Callable[[NDArray[np.float64], int], NDArray[np.int64]]

METHODS: dict[str, Grouping] = {"mdav": mdav}
