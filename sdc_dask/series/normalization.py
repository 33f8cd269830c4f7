"""Time series on a common scale, as a whole or time by time."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdc_dask.arguments import one_of
from sdc_dask.series.distances import as_rows

__all__ = ["normalize"]


def normalize(
    series: ArrayLike, over: str = "series", method: str = "standard"
) -> NDArray[np.float64]:
    """Bring series to a common scale.

    Parameters
    ----------
    series : array of numbers, shape (n, T)
        A series in every row.
    over : {"series", "component"}, default "series"
        "series" takes all values together, so that series keep their shape. "component" takes each
        time on its own: what rises may seem to fall.
    method : {"standard", "range"}, default "standard"
        "standard" subtracts the mean and divides by the population deviation, "range" goes from
        the smallest value at 0 to the largest at 1. Where all values are equal, they become 0.

    Returns
    -------
    ndarray of float64, shape (n, T)

    Examples
    --------
    >>> import numpy as np
    >>> rising = np.array([[1.0, 2.0, 3.0], [1.0, 4.0, 7.0]])
    >>> normalize(rising, method="range").round(2)
    array([[0.  , 0.17, 0.33],
           [0.  , 0.5 , 1.  ]])
    >>> normalize(rising, over="component", method="range")
    array([[0., 0., 0.],
           [0., 1., 1.]])
    """
    axis = None if one_of(over, "over", ["series", "component"]) == "series" else 0
    one_of(method, "method", ["standard", "range"])
    rows, _ = as_rows(series, "series")
    if method == "standard":
        start, scale = rows.mean(axis=axis), rows.std(axis=axis)
    else:
        start = rows.min(axis=axis)
        scale = rows.max(axis=axis) - start
    return (rows - start) / np.where(scale > 0, scale, 1.0)
