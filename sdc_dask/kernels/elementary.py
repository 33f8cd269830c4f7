"""Logarithms, exponentials, powers and sines of arrays, of the same bits on all workers.

numpy has several versions of these functions and takes the one that suits the processor. Their last
bits differ, so that workers with other processors than that of the session, or that do without some
of its instructions, would return other numbers. Here each value goes through the same function of
the C library.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdc_dask.kernels._jit import jit


def _over(function: Callable[[float], float]) -> Any:
    """Return a kernel that calls a function with each value of a flat array."""

    @jit
    def kernel(values):
        found = np.empty(len(values))
        for i in range(len(values)):
            found[i] = function(values[i])
        return found

    return kernel


_log, _log1p, _exp, _expm1, _sin = map(
    _over, (math.log, math.log1p, math.exp, math.expm1, math.sin)
)


@jit
def _power(values, exponent):
    found = np.empty(len(values))
    for i in range(len(values)):
        found[i] = values[i] ** exponent
    return found


def log(values: ArrayLike) -> Any:
    """Return natural logarithms: -inf of 0.

    Examples
    --------
    >>> log([1.0, 0.0])
    array([  0., -inf])
    """
    return _each(_log, values)


def log1p(values: ArrayLike) -> Any:
    """Return the logarithms of 1 + x.

    Examples
    --------
    >>> log1p([0.0, 1e-300])
    array([0.e+000, 1.e-300])
    """
    return _each(_log1p, values)


def exp(values: ArrayLike) -> Any:
    """Return e to the power of values.

    Examples
    --------
    >>> exp([0.0, 1000.0])
    array([ 1., inf])
    """
    return _each(_exp, values)


def expm1(values: ArrayLike) -> Any:
    """Return e to the power of values, less 1.

    Examples
    --------
    >>> expm1([0.0, 1e-300])
    array([0.e+000, 1.e-300])
    """
    return _each(_expm1, values)


def power(values: ArrayLike, exponent: float) -> Any:
    """Return values to the power of a number.

    Examples
    --------
    >>> power([0.0, 4.0], 0.5), power(9.0, 0.5)
    (array([0., 2.]), np.float64(3.0))
    """
    return _each(_power, values, float(exponent))


def sin(values: ArrayLike) -> Any:
    """Return sines.

    Examples
    --------
    >>> sin([0.0, np.pi / 2])
    array([0., 1.])
    """
    return _each(_sin, values)


def _each(kernel: Callable[..., NDArray[np.float64]], values: ArrayLike, *args: float) -> Any:
    """Call a kernel of a flat array; return an array of the shape of the values, or a number."""
    array = np.asarray(values, np.float64)
    return kernel(array.ravel(), *args).reshape(array.shape)[()]
