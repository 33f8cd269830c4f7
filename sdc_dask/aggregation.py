"""Aggregation functions: one number for every record, between its smallest and largest value.

Means, ordered weighted averages and fuzzy integrals take an array of records by columns and work
row by row, so that a record's number depends on the record alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels import elementary

__all__ = [
    "arithmetic_mean",
    "check_quantifier",
    "choquet",
    "owa",
    "power",
    "scale_to_unit",
    "sigmoid",
    "sugeno",
    "threshold",
    "twofold",
    "weighted_mean",
]

Quantifier = Callable[[Any], Any]
Measure = Quantifier | ArrayLike
# The measure of {i-th smallest value and all above}, i = 1..N, and last that of the empty set:
# one number for all records, or one for each.
Levels = Sequence[NDArray[np.float64]] | NDArray[np.float64]
Kernel = Callable[..., NDArray[np.float64]]

ROUNDING = 1e-9  # what weights, measures and quantifiers may be off
GRID = 1001  # points at which a quantifier is checked


def arithmetic_mean(values: ArrayLike) -> NDArray[np.float64]:
    """Return the mean of every record.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns. NaN is a missing cell; the rest of the record counts.

    Returns
    -------
    ndarray of float64, shape (n,)
        One number for every record, NaN for a record without any value.

    Examples
    --------
    >>> arithmetic_mean([[1.0, 2.0, 6.0], [4.0, float("nan"), 5.0]])
    array([3. , 4.5])
    """
    values = _matrix(values)
    present = ~np.isnan(values)
    count = np.maximum(present.sum(axis=1), 1)
    with np.errstate(over="ignore", invalid="ignore"):
        mean = _sum_present(values, present) / count
        if not np.isfinite(mean).all():  # the sum left the range of float64, the mean does not
            careful = _sum_present(values / count[:, None], present)
            mean = np.where(np.isfinite(mean), mean, careful)
    return _within_record(mean, values)


def weighted_mean(values: ArrayLike, weights: ArrayLike) -> NDArray[np.float64]:
    """Return the weighted mean of every record.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns. NaN is a missing cell; the weights of the values that are present are
        then scaled to sum to 1.
    weights : array of numbers, shape (d,)
        One weight for every column, none below 0, that sum to 1.

    Returns
    -------
    ndarray of float64, shape (n,)
        One number for every record, NaN for a record in which no value with a weight above 0 is
        present.

    Examples
    --------
    >>> weighted_mean([[1.0, 2.0, 6.0], [4.0, float("nan"), 8.0]], [0.5, 0.25, 0.25])
    array([2.5       , 5.33333333])
    """
    values = _matrix(values)
    weights = _weights(weights, values.shape[1])
    present = ~np.isnan(values)
    sum_of_weights = _sum_present(np.broadcast_to(weights, values.shape), present)
    weighted = sum_of_weights > 0
    shares = weights / np.where(weighted, sum_of_weights, 1.0)[:, None]
    with np.errstate(over="ignore"):  # by rounding alone, at the largest float64
        mean = _sum_present(shares * values, present)
    return np.where(weighted, _within_record(mean, values), np.nan)


def owa(values: ArrayLike, quantifier: Quantifier) -> NDArray[np.float64]:
    """Return the ordered weighted average of every record.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns. NaN is a missing cell; the rest of the record counts.
    quantifier : callable
        A non-decreasing function Q from [0, 1] to [0, 1], such as :class:`power`. The i-th largest
        of N values has the weight Q(i/N) - Q((i-1)/N).

    Returns
    -------
    ndarray of float64, shape (n,)
        One number for every record, NaN for a record without any value.

    Notes
    -----
    The order of the columns does not matter. ``power(alpha)`` leads from the largest value (alpha
    near 0) over the mean (1) to the smallest (alpha to infinity).

    With :class:`sigmoid` the weights sum to Q(1) - Q(0), less than 1, so that a record of equal
    values is not averaged to that value.

    Sources: R. Yager, "On ordered weighted averaging aggregation operators in multi-criteria
    decision making", IEEE Transactions on Systems, Man, and Cybernetics 18, 1988; with quantifiers:
    J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis,
    Universitat Autònoma de Barcelona, 2008, definition 2.

    Examples
    --------
    >>> owa([[0.2, 0.4, 0.2, 0.4], [0.4, 0.2, 0.2, 0.4]], power(2)).round(4)
    array([0.25, 0.25])
    """
    values = _matrix(values)
    if not callable(quantifier):
        raise SdcTypeError(
            "quantifier must be a function from [0, 1] to [0, 1], such as power(2), received "
            f"{type(quantifier).__name__}. For a measure given by its values use choquet."
        )
    return _integrate(_owa, values, quantifier)


def choquet(values: ArrayLike, measure: Measure) -> NDArray[np.float64]:
    """Return the Choquet integral of every record.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns, no value below 0. NaN is a missing cell, allowed if `measure` is a
        quantifier; the rest of the record counts.
    measure : callable or array of 2**d numbers
        The weight of every set of columns. A quantifier Q gives a set of m of the N columns the
        weight Q(m/N). An array holds the weight of a set at the sum of 2**j over its columns j:
        0 for the empty set, 1 for all columns, and no less for a set than for its parts.

    Returns
    -------
    ndarray of float64, shape (n,)
        One number for every record, NaN for a record without any value.

    Notes
    -----
    With the values in ascending order, f_0 = 0 and A_i the columns of f_i and all above, it is
    the sum of (f_i - f_(i-1)) mu(A_i). A quantifier with Q(0) = 0 gives :func:`owa`; with
    :class:`sigmoid` this is larger than :func:`owa` by Q(0) times the largest value, as the
    empty set does not enter.

    Sources: G. Choquet, "Theory of capacities", Annales de l'Institut Fourier 5, 1954; J. Nin,
    "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis, Universitat
    Autònoma de Barcelona, 2008, definition 3.

    Examples
    --------
    Two columns that say much the same: each alone weighs 0.75.

    >>> choquet([[2.0, 6.0], [6.0, 2.0], [4.0, 4.0]], [0.0, 0.75, 0.75, 1.0])
    array([5., 5., 4.])
    """
    values = _matrix(values)
    _check_domain(values, 0.0, math.inf, "choquet is defined for values of at least 0")
    return _integrate(_choquet, values, measure)


def sugeno(values: ArrayLike, measure: Measure, *, unbounded: bool = False) -> NDArray[np.float64]:
    """Return the Sugeno integral of every record.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns, in [0, 1]. NaN is a missing cell, allowed if `measure` is a quantifier;
        the rest of the record counts.
    measure : callable or array of 2**d numbers
        The weight of every set of columns, as in :func:`choquet`.
    unbounded : bool, default False
        Take any numbers, such as z-scores, by the same formula. The result does not exceed 1.

    Returns
    -------
    ndarray of float64, shape (n,)
        One number for every record, NaN for a record without any value.

    Notes
    -----
    With the values in ascending order and A_i the columns of f_i and all above, it is the largest
    of min(f_i, mu(A_i)). With :class:`sigmoid` it does not exceed Q(1), less than 1.

    Sources: M. Sugeno, "Theory of fuzzy integrals and its applications", PhD thesis, Tokyo
    Institute of Technology, 1974; J. Nin, "Contributions to Record Linkage for Disclosure Risk
    Assessment", PhD thesis, Universitat Autònoma de Barcelona, 2008, definitions 4 and 5.

    Examples
    --------
    >>> sugeno([[0.2, 0.4, 0.9, 0.6], [0.3, 0.3, 0.3, 0.3]], power(1))
    array([0.5, 0.3])
    """
    values = _matrix(values)
    if not unbounded:
        _check_domain(values, 0.0, 1.0, "sugeno is defined for values in [0, 1]")
    return _integrate(_sugeno, values, measure)


def twofold(
    values: ArrayLike,
    sugeno_measure: Measure,
    choquet_measure: Measure,
    *,
    unbounded: bool = False,
) -> NDArray[np.float64]:
    """Return the twofold integral of every record, which generalizes Choquet's and Sugeno's.

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns, in [0, 1]. NaN is a missing cell, allowed if both measures are
        quantifiers; the rest of the record counts.
    sugeno_measure, choquet_measure : callable or array of 2**d numbers
        The weights of every set of columns, as in :func:`choquet`.
    unbounded : bool, default False
        Take any numbers, such as z-scores, by the same formula.

    Returns
    -------
    ndarray of float64, shape (n,)
        One number for every record, NaN for a record without any value.

    Notes
    -----
    With the values in ascending order, A_i the columns of f_i and all above, and s_i the largest
    of min(f_j, mu_S(A_j)) for j up to i, it is the sum of s_i (mu_C(A_i) - mu_C(A_(i+1))), where
    the last set is empty. A measure of 1 for all sets except the empty one, which is
    ``threshold(0)``, has no effect: as the measure of Sugeno it leaves the Choquet integral, as
    the measure of Choquet the Sugeno integral.

    With :class:`sigmoid` as the measure of Choquet, the empty set has the measure Q(0), as in
    :func:`owa`, and a record of equal values is not averaged to that value.

    Sources: V. Torra, "Twofold integral: a Choquet integral and Sugeno integral generalization",
    Butlletí de l'Associació Catalana d'Intel·ligència Artificial 29, 2003; Y. Narukawa and
    V. Torra, "Twofold integral and multi-step Choquet integral", Kybernetika 40(1), 2004; J. Nin,
    "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis, Universitat
    Autònoma de Barcelona, 2008, definition 6.

    Examples
    --------
    >>> twofold([[0.2, 0.4, 0.9, 0.6]], power(1), power(1))
    array([0.4])
    >>> twofold([[0.2, 0.4, 0.9, 0.6]], threshold(0), power(1))  # the mean
    array([0.525])
    >>> twofold([[0.2, 0.4, 0.9, 0.6]], power(1), threshold(0))  # Sugeno's
    array([0.5])
    """
    values = _matrix(values)
    if not unbounded:
        _check_domain(values, 0.0, 1.0, "twofold is defined for values in [0, 1]")
    return _integrate(_twofold, values, sugeno_measure, choquet_measure)


def scale_to_unit(
    values: ArrayLike, low: ArrayLike | None = None, high: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Scale columns linearly to [0, 1].

    Parameters
    ----------
    values : array of numbers, shape (n, d)
        Records by columns. NaN is a missing cell, and stays one.
    low, high : number or array of d numbers, optional
        What becomes 0 and what becomes 1, for all columns or for each. By default the smallest
        and the largest value of each column. Give them if the rows are scaled in parts, or if
        another file is to be scaled alike.

    Returns
    -------
    ndarray of float64, shape (n, d)
        Values in [0, 1]. A column whose bounds are equal becomes 0.

    Examples
    --------
    >>> scale_to_unit([[10.0, 7.0], [15.0, 7.0], [20.0, 7.0]])
    array([[0. , 0. ],
           [0.5, 0. ],
           [1. , 0. ]])
    >>> scale_to_unit([[10.0, 7.0]], low=0, high=[20, 28])
    array([[0.5 , 0.25]])
    """
    values = _matrix(values)
    d = values.shape[1]
    lows = values.min(0, initial=np.inf, where=~np.isnan(values))
    highs = values.max(0, initial=-np.inf, where=~np.isnan(values))
    empty = lows > highs
    lows = lows if low is None else _bounds(low, "low", d)
    highs = highs if high is None else _bounds(high, "high", d)
    if low is not None and high is not None and (lows > highs).any():
        raise SdcValueError(
            f"low must not exceed high, received {np.count_nonzero(lows > highs)} columns in "
            "which it does."
        )
    outside = np.count_nonzero((values < lows) | (values > highs))
    if outside:
        raise SdcValueError(
            f"values must lie between low and high, received {outside} that do not: widen the "
            "bounds, or clip the values to them first."
        )
    lows, highs = np.where(empty, 0.0, lows), np.where(empty, 0.0, highs)
    with np.errstate(over="ignore"):
        unit = np.where(np.isfinite(highs - lows), 1.0, 0.5)  # a wide range fits after halving
    width = highs * unit - lows * unit
    return (values * unit - lows * unit) / np.where(width > 0, width, 1.0)


@dataclass(frozen=True)
class _Family:
    """A quantifier with one parameter."""

    alpha: float
    _range: ClassVar[str]

    def __post_init__(self) -> None:
        name = type(self).__name__
        if isinstance(self.alpha, bool) or not isinstance(self.alpha, Real):
            raise SdcTypeError(
                f"alpha of {name} must be a number, {self._range}, received "
                f"{type(self.alpha).__name__}."
            )
        object.__setattr__(self, "alpha", float(self.alpha))
        if not self._valid():
            raise SdcValueError(f"alpha of {name} must be {self._range}, received {self.alpha}.")

    def _valid(self) -> bool:
        raise NotImplementedError


class power(_Family):
    """The quantifier Q(x) = x**alpha.

    Parameters
    ----------
    alpha : float
        Above 0. With less than 1, large values weigh more; with more than 1, small values.

    Notes
    -----
    Source: J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis,
    Universitat Autònoma de Barcelona, 2008, section 5.2, where alpha is 1/5, 2/5, ..., 10/5.

    Examples
    --------
    >>> power(2)
    power(alpha=2.0)
    >>> power(2)([0.0, 0.5, 1.0])
    array([0.  , 0.25, 1.  ])
    """

    _range = "finite and above 0"

    def __call__(self, x: ArrayLike) -> Any:
        """Return x to the power of alpha."""
        return elementary.power(x, self.alpha)

    def _valid(self) -> bool:
        return 0 < self.alpha < math.inf


class sigmoid(_Family):
    """The quantifier Q(x) = 1 / (1 + exp(10 (alpha - x))).

    Parameters
    ----------
    alpha : float
        Where the curve passes 1/2, from 0 to 1.

    Notes
    -----
    It does not reach 0 and 1, and is used as published all the same: :func:`owa` and
    :func:`twofold` then have weights that sum to Q(1) - Q(0), which is 0.987 with alpha = 0.5,
    and 0.5 with 0 or 1, and the result can leave the range of the record. Numbers that are only
    compared with each other may be computed so; averages may not.

    Source: J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis,
    Universitat Autònoma de Barcelona, 2008, section 5.2, where alpha is 0, 0.1, ..., 0.9.

    Examples
    --------
    >>> sigmoid(0.5)([0.0, 0.5, 1.0]).round(4)
    array([0.0067, 0.5   , 0.9933])
    """

    _range = "from 0 to 1"

    def __call__(self, x: ArrayLike) -> Any:
        """Return the height of the curve at x."""
        return 1 / (1 + elementary.exp((self.alpha - np.asarray(x, float)) * 10))

    def _valid(self) -> bool:
        return 0 <= self.alpha <= 1


class threshold(_Family):
    """The quantifier that is 0 up to alpha, and 1 above.

    Parameters
    ----------
    alpha : float
        From 0 to below 1. The average of N values is the i-th largest, with the smallest i for
        which i/N is above alpha: the largest value with 0.

    Notes
    -----
    Source: J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis,
    Universitat Autònoma de Barcelona, 2008, section 5.2, where alpha is 0, 0.1, ..., 0.9.

    Examples
    --------
    >>> threshold(0.5)([0.0, 0.5, 0.51, 1.0])
    array([0., 0., 1., 1.])
    """

    _range = "from 0 to below 1"

    def __call__(self, x: ArrayLike) -> Any:
        """Return 1 where x is above alpha, and 0 elsewhere."""
        return np.greater(x, self.alpha) * 1.0

    def _valid(self) -> bool:
        return 0 <= self.alpha < 1


def check_quantifier(quantifier: Quantifier) -> None:
    """Raise an error unless a function is a quantifier.

    Parameters
    ----------
    quantifier : callable
        A function Q of numbers in [0, 1], one by one or as an array. Q(0) must be 0, Q(1) must be
        1, and Q must not decrease, as far as 1001 points show. :class:`sigmoid` is accepted as it
        is published.

    Examples
    --------
    >>> check_quantifier(lambda x: x * x * (3 - 2 * x))
    >>> check_quantifier(lambda x: 1 - x)
    Traceback (most recent call last):
        ...
    sdc_dask.errors.SdcValueError: a quantifier must have Q(0) = 0, received Q(0) = 1.0.
    """
    if isinstance(quantifier, _Family):
        return
    if not callable(quantifier):
        raise SdcTypeError(
            "a quantifier must be a function from [0, 1] to [0, 1], such as power(2), received "
            f"{type(quantifier).__name__}."
        )
    grid = np.linspace(0.0, 1.0, GRID)
    values = _evaluate(quantifier, grid)
    if not np.isfinite(values).all():
        wrong = np.count_nonzero(~np.isfinite(values))
        raise SdcValueError(
            f"a quantifier must be finite in [0, 1], received one that is not at {wrong} of "
            f"{GRID} points."
        )
    for x, value in ((0, values[0]), (1, values[-1])):
        if abs(value - x) > ROUNDING:
            raise SdcValueError(f"a quantifier must have Q({x}) = {x}, received Q({x}) = {value}.")
    # Together with the ends this keeps Q in [0, 1].
    falls = np.flatnonzero(values < np.maximum.accumulate(values) - ROUNDING)
    if falls.size:
        raise SdcValueError(
            "a quantifier must not decrease, received one that at "
            f"{grid[falls[0]]:g} is below what it was before."
        )


def _evaluate(quantifier: Quantifier, points: NDArray[np.float64]) -> NDArray[np.float64]:
    """Evaluate a function that takes an array, or one number at a time."""
    try:
        values = np.asarray(quantifier(points))
        if values.shape == points.shape and values.dtype.kind in "biuf":
            return values.astype(float)
    except Exception:  # whatever a function raises that takes single numbers only
        pass
    try:
        return np.array([float(quantifier(x)) for x in points.tolist()])
    except Exception as error:
        raise SdcTypeError(
            "a quantifier must give a number for a number in [0, 1], received "
            f"{type(error).__name__} from it: {error}"
        ) from error


def _integrate(
    kernel: Kernel, values: NDArray[np.float64], *measures: Measure
) -> NDArray[np.float64]:
    """Sort records, look up the measures along their order, and run `kernel` on both."""
    n, d = values.shape
    checked = [_measure(each, d) for each in measures]
    quantifiers = [each for each in checked if callable(each)]
    if len(quantifiers) < len(checked):
        missing = np.count_nonzero(np.isnan(values))
        if missing:
            raise SdcValueError(
                f"a measure given by its values needs complete records, received {missing} missing "
                "cells: leave those records out, or use a quantifier, which takes what is there."
            )
        order = np.argsort(values, axis=1, kind="stable")
        values = np.take_along_axis(values, order, axis=1)
        levels = [
            _levels_of_quantifier(each, d) if callable(each) else _levels_of_array(each, order)
            for each in checked
        ]
        return kernel(values, *levels)
    values = np.sort(values, axis=1)  # missing cells last
    present = d - np.isnan(values).sum(axis=1)
    result = np.full(n, np.nan)
    for count in np.flatnonzero(np.bincount(present)).tolist():
        if count > 0:
            rows = present == count
            levels = [_levels_of_quantifier(each, count) for each in quantifiers]
            result[rows] = kernel(values[rows, :count], *levels)
    return result


def _owa(values: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
    total = np.zeros(len(values))
    with np.errstate(over="ignore"):  # by rounding alone, at the largest float64
        for i in reversed(range(values.shape[1])):
            total += (levels[i] - levels[i + 1]) * values[:, i]
    whole = levels[0] - levels[-1]
    # Rounding must not carry an average of equal values away from them.
    return np.clip(total, whole * values[:, 0], whole * values[:, -1])


def _choquet(values: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
    total = levels[0] * values[:, 0]
    with np.errstate(over="ignore"):
        for i in range(1, values.shape[1]):
            total += (values[:, i] - values[:, i - 1]) * levels[i]
    return np.clip(total, levels[0] * values[:, 0], levels[0] * values[:, -1])


def _sugeno(values: NDArray[np.float64], levels: Levels) -> NDArray[np.float64]:
    largest = np.minimum(values[:, 0], levels[0])
    for i in range(1, values.shape[1]):
        np.maximum(largest, np.minimum(values[:, i], levels[i]), out=largest)
    return largest


def _twofold(
    values: NDArray[np.float64], sugeno_levels: Levels, choquet_levels: Levels
) -> NDArray[np.float64]:
    smallest = np.minimum(values[:, 0], sugeno_levels[0])
    largest = smallest.copy()
    total = np.zeros(len(values))
    for i in range(values.shape[1]):
        np.maximum(largest, np.minimum(values[:, i], sugeno_levels[i]), out=largest)
        total += largest * (choquet_levels[i] - choquet_levels[i + 1])
    whole = choquet_levels[0] - choquet_levels[-1]
    return np.clip(total, whole * smallest, whole * largest)


def _levels_of_quantifier(quantifier: Quantifier, count: int) -> Levels:
    levels = _evaluate(quantifier, np.arange(count + 1) / count)
    # Rounding must not leave a weight below 0, or weights that do not sum to 1.
    if not isinstance(quantifier, sigmoid):
        levels[0], levels[-1] = 0.0, 1.0
    return np.maximum.accumulate(np.clip(levels, 0.0, 1.0))[::-1]


def _levels_of_array(measure: NDArray[np.float64], order: NDArray[np.int64]) -> Levels:
    n, d = order.shape
    members = np.full(n, 2**d - 1)
    levels = [measure[members]]
    for i in range(d):
        members ^= 1 << order[:, i]
        levels.append(measure[members])
    return levels


def _measure(measure: Measure, d: int) -> Quantifier | NDArray[np.float64]:
    """Return a quantifier that is one, or a measure of 2**d values that is one."""
    if callable(measure):
        check_quantifier(measure)
        return measure
    array = np.asarray(measure)
    if array.dtype.kind not in "iuf":
        raise SdcTypeError(
            f"a measure must be a quantifier, such as power(2), or an array of {2**d} numbers, "
            f"received {type(measure).__name__} of dtype {array.dtype}."
        )
    if array.shape != (2**d,):
        raise SdcValueError(
            f"a measure of {d} columns must have 2**{d} = {2**d} values, one for every set, "
            f"received an array of shape {array.shape}."
        )
    array = array.astype(float)
    if not np.isfinite(array).all():
        wrong = np.count_nonzero(~np.isfinite(array))
        raise SdcValueError(f"a measure must be finite, received {wrong} values that are not.")
    if abs(array[0]) > ROUNDING:
        raise SdcValueError(
            f"a measure must be 0 for the empty set, its first value, received {array[0]}."
        )
    if abs(array[-1] - 1) > ROUNDING:
        raise SdcValueError(
            f"a measure must be 1 for the set of all columns, its last value, received {array[-1]}."
        )
    for j in range(d):
        without, joined = np.moveaxis(array.reshape(-1, 2, 2**j), 1, 0)
        falls = np.count_nonzero(joined < without - ROUNDING)
        if falls:
            raise SdcValueError(
                "a measure must be monotone, no less for a set than for its parts, received one "
                f"that falls when column {j} joins, for {falls} sets."
            )
    array[0], array[-1] = 0.0, 1.0
    return np.clip(array, 0.0, 1.0)


def _matrix(values: ArrayLike) -> NDArray[np.float64]:
    """Return records by columns as float64 of their own, finite or NaN."""
    array = np.asarray(values)
    if array.dtype.kind not in "iuf":
        raise SdcTypeError(
            f"values must be real numbers, received dtype {array.dtype}: cast them to float64."
        )
    if array.ndim != 2 or array.shape[1] == 0:
        raise SdcValueError(
            "values must be records by columns, with at least one column, received an array of "
            f"shape {array.shape}. For one record pass values[None, :]."
        )
    # Adding 0 makes one zero of two, of which sorting would leave now this, now that one first.
    array = array.astype(float) + 0.0
    infinite = np.count_nonzero(np.isinf(array))
    if infinite:
        raise SdcValueError(
            f"values must be finite, or NaN if missing, received {infinite} infinite ones: replace "
            "them first."
        )
    return array


def _check_domain(values: NDArray[np.float64], low: float, high: float, rule: str) -> None:
    outside = np.count_nonzero((values < low) | (values > high))
    if outside:
        raise SdcValueError(
            f"{rule}, received {outside} values outside: scale them first with scale_to_unit."
        )


def _weights(weights: ArrayLike, d: int) -> NDArray[np.float64]:
    array = np.asarray(weights)
    if array.dtype.kind not in "iuf":
        raise SdcTypeError(f"weights must be numbers, received dtype {array.dtype}.")
    if array.shape != (d,):
        raise SdcValueError(
            f"weights must be one number for each of {d} columns, received an array of shape "
            f"{array.shape}."
        )
    array = array.astype(float)
    if not np.isfinite(array).all():
        wrong = np.count_nonzero(~np.isfinite(array))
        raise SdcValueError(f"weights must be finite, received {wrong} that are not.")
    if (array < 0).any():
        raise SdcValueError(
            f"weights must not be below 0, received {np.count_nonzero(array < 0)} that are."
        )
    total = math.fsum(array)
    if abs(total - 1) > ROUNDING:
        raise SdcValueError(
            f"weights must sum to 1, received a sum of {total:.12g}: divide them by their sum."
        )
    return array


def _bounds(bounds: ArrayLike, name: str, d: int) -> NDArray[np.float64]:
    array = np.asarray(bounds)
    if array.dtype.kind not in "iuf":
        raise SdcTypeError(f"{name} must be numbers, received dtype {array.dtype}.")
    if array.shape not in ((), (d,)):
        raise SdcValueError(
            f"{name} must be one number, or one for each of {d} columns, received an array of "
            f"shape {array.shape}."
        )
    array = np.broadcast_to(array.astype(float), d)
    if not np.isfinite(array).all():
        wrong = np.count_nonzero(~np.isfinite(array))
        raise SdcValueError(f"{name} must be finite, received {wrong} that are not.")
    return array


def _sum_present(values: NDArray[np.float64], present: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Add up rows column by column, which rounds alike for every number of rows."""
    return reduce(np.add, np.where(present, values, 0.0).T)


def _within_record(mean: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Undo rounding beyond the smallest and largest value; NaN where there is none."""
    return np.clip(mean, np.fmin.reduce(values, axis=1), np.fmax.reduce(values, axis=1))
