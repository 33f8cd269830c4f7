"""Forecasts of time series: exponential smoothing and regressions, for many series at once.

A series is a row of an array, and is forecast from itself alone, in loops of a fixed order: its
forecasts have the same bits whatever other rows there are. Kernels see a series as differences
from its first value, in a unit that is a power of two: no square over- or underflows, and a
constant series is forecast without rounding.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sdc_dask.arguments import number, one_of, whole_number
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels._jit import jit
from sdc_dask.series.distances import as_rows

__all__ = ["MODELS", "forecast"]

Rows = NDArray[np.float64]

_OPTIONS: dict[str, tuple[str, ...]] = {
    "simple_smoothing": ("alpha",),
    "double_smoothing": ("alpha", "beta"),
    "linear": (),
    "multiple": ("order",),
    "polynomial": ("degree",),
}

MODELS = ("simple_smoothing", "double_smoothing", "linear", "multiple", "polynomial")

# Where the search for alpha and beta begins. Minima are narrow near an alpha of 0.
_ALPHAS = np.linspace(0.0, 1.0, 21) ** 2
_BETAS = np.linspace(0.0, 1.0, 11)
_FAR = 2.0**600
_EPSILON = 2.0**-52


def forecast(
    series: ArrayLike,
    model: str,
    steps: int = 3,
    *,
    alpha: float | None = None,
    beta: float | None = None,
    order: int | None = None,
    degree: int | None = None,
) -> Rows:
    """Forecast the next values of series.

    Parameters
    ----------
    series : array of numbers, shape (T,) or (n, T)
        One series, or one in every row, observed at equal intervals.
    model : str
        One of `MODELS`:

        - 'simple_smoothing': the level follows the values by a share alpha of every error, and is
          the forecast. It starts at the first value.
        - 'double_smoothing': Holt's, with a trend that follows the changes of the level by a share
          beta. Level and trend start at the first value and at the first difference.
        - 'linear': the least squares line in time.
        - 'multiple': least squares regression of a value on the `order` values before it and an
          intercept; forecasts serve as values for the next.
        - 'polynomial': the least squares polynomial of `degree` in time.
    steps : int, default 3
        How many values to forecast.
    alpha, beta : float, optional
        Parameters of smoothing, from 0 to 1. By default they are chosen for every series, such
        that the sum of squared errors of forecasts one step ahead is smallest.
    order : int, optional
        For 'multiple', by default 2.
    degree : int, optional
        For 'polynomial', by default 2.

    Returns
    -------
    ndarray of float64, shape (steps,) or (n, steps)
        The forecasts, infinite where they exceed float64.

    Notes
    -----
    Forecasts of a + b x are a + b times the forecasts of x, for b above 0 and up to rounding.
    Rounding is relative to the largest value of the series.

    A series needs as many values as there are parameters to fit, and those that it starts from: 3
    for simple and 5 for double smoothing, fewer if parameters are given; 2 for a line; degree + 1
    for a polynomial; 2 order + 1 for a multiple regression.

    The search for alpha and beta starts from the best point of a grid, of 21 values of alpha and
    11 of beta, and descends by Newton's method, within [0, 1], to a minimum. Of random series,
    one or two in a thousand have a lower minimum elsewhere, by less than a hundredth. If several
    points of the grid are equally good, the search starts from the smallest alpha, then the
    smallest beta.

    Where a multiple regression has no unique solution, as for a straight line, the coefficients
    of smallest norm are used, apart from the intercept. Directions in which values before differ
    by no more than their rounding count as none.

    Sources: C. Holt, "Forecasting seasonals and trends by exponentially weighted moving averages",
    ONR Memorandum 52, 1957; G. Forsythe, "Generation and use of orthogonal polynomials for
    data-fitting with a digital computer", Journal of the SIAM 5, 1957; for all five models:
    J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", PhD thesis,
    Universitat Autònoma de Barcelona, 2008, section 2.2.2.

    Examples
    --------
    >>> forecast([1.0, 2.0, 3.0, 4.0, 5.0], "linear").round(6)
    array([6., 7., 8.])
    >>> forecast([[1.0, 4.0, 9.0, 16.0], [5.0, 5.0, 5.0, 5.0]], "polynomial", steps=2).round(6)
    array([[25., 36.],
           [ 5.,  5.]])
    >>> forecast([8.0, 4.0, 6.0], "simple_smoothing", steps=1, alpha=0.5)
    array([6.])
    """
    name = one_of(model, "model", MODELS)
    steps = whole_number(steps, "steps", 1)
    given = {"alpha": alpha, "beta": beta, "order": order, "degree": degree}
    for option, value in given.items():
        if value is not None and option not in _OPTIONS[name]:
            takes = " and ".join(_OPTIONS[name]) or "no options"
            raise SdcValueError(
                f"{option} has no meaning for model {name!r}, which takes {takes}: leave it out."
            )
    alpha = None if alpha is None else number(alpha, "alpha", 0, 1)
    beta = None if beta is None else number(beta, "beta", 0, 1)
    order = 2 if order is None else whole_number(order, "order", 1)
    degree = 2 if degree is None else whole_number(degree, "degree", 1)
    rows, single = as_rows(series, "series")
    length = rows.shape[1]

    if name == "simple_smoothing":
        _check_length(length, 1 if alpha is not None else 3, name)
        found, _ = _smooth(rows, steps, False, *_search(alpha, 0.0))
    elif name == "double_smoothing":
        free = (alpha is None) + (beta is None)
        _check_length(length, 3 + free if free else 2, name)
        found, _ = _smooth(rows, steps, True, *_search(alpha, beta))
    elif name == "multiple":
        _check_length(length, 2 * order + 1, f"{name} with order {order}")
        found = _regress_on_past(rows, steps, order)
    elif name == "linear":
        _check_length(length, 2, name)
        found = _combine(rows, _weights(length, steps, 1))
    else:
        _check_length(length, degree + 1, f"{name} with degree {degree}")
        found = _combine(rows, _weights(length, steps, degree))
    return found[0] if single else found


def _check_length(length: int, smallest: int, what: str) -> None:
    if length < smallest:
        raise SdcValueError(
            f"series must have at least {smallest} values for model {what}, received {length}: "
            "use longer series, or a model with fewer parameters."
        )


def _search(alpha: float | None, beta: float | None) -> tuple[Rows, Rows, bool, bool]:
    """Return the grid, alphas and betas of its points, and which of both are to be refined."""
    alphas = _ALPHAS if alpha is None else np.array([alpha])
    betas = _BETAS if beta is None else np.array([beta])
    return (
        np.repeat(alphas, len(betas)),
        np.tile(betas, len(alphas)),
        alpha is None,
        beta is None,
    )


def _weights(length: int, steps: int, degree: int) -> Rows:
    """Return the weight of every value (columns) in every forecast (rows) of a polynomial.

    The polynomials p_0, p_1, ... of Forsythe are orthogonal on the times of a series, so that the
    weight of time t in the forecast for s is the sum of p_k(t) p_k(s) / |p_k|^2. On times that are
    1 apart, around 0, p_(k+1)(t) = t p_k(t) - k^2 (T^2 - k^2) / (4 (4 k^2 - 1)) p_(k-1)(t).
    """
    # In units of half the length, in which polynomials of any degree stay of moderate size.
    half = length / 2
    times = (np.arange(length + steps) - (length - 1) / 2) / half
    weights = np.zeros((steps, length))
    before, now = np.zeros_like(times), np.ones_like(times)
    with np.errstate(over="ignore", invalid="ignore"):
        for k in range(degree + 1):
            size = math.fsum(now[:length] ** 2)
            weights += now[length:, None] * (now[:length] / size)
            ratio = k * k * (length**2 - k * k) / (4 * (4 * k * k - 1)) / half**2
            before, now = now, times * now - ratio * before
    if not np.isfinite(weights).all():
        raise SdcValueError(
            f"a polynomial of degree {degree} exceeds float64 within {steps} steps after "
            f"{length} values: use a smaller degree, or fewer steps."
        )
    return weights


@jit
def _to_unit(row: Any, unit: Any) -> Any:
    """Write differences from the first value, at most 1, to `unit`; return how to get back.

    A value is (first + its unit value * scale) * outer. Last comes the rounding of unit values.
    """
    largest = 0.0
    for t in range(row.shape[0]):
        largest = max(largest, abs(row[t]))
    inner, outer = 1.0, 1.0
    if largest > 2.0**900:
        inner, outer = 1 / _FAR, _FAR
    elif largest < 2.0**-400:
        inner, outer = _FAR, 1 / _FAR
    first = row[0] * inner
    spread = 0.0
    for t in range(row.shape[0]):
        unit[t] = row[t] * inner - first
        spread = max(spread, abs(unit[t]))
    scale = math.ldexp(1.0, math.frexp(spread)[1])
    for t in range(row.shape[0]):
        unit[t] /= scale
    return first, scale, outer, _EPSILON * largest * inner / scale


@jit
def _combine(rows: Any, weights: Any) -> Any:
    """Forecast by weighted sums of values."""
    n, length = rows.shape
    steps = weights.shape[0]
    found = np.empty((n, steps))
    unit = np.empty(length)
    for i in range(n):
        first, scale, outer, _ = _to_unit(rows[i], unit)
        for h in range(steps):
            total = 0.0
            for t in range(length):
                total += weights[h, t] * unit[t]
            found[i, h] = (first + total * scale) * outer
    return found


@jit
def _smooth(
    rows: Any, steps: int, trended: bool, alphas: Any, betas: Any, free_alpha: bool, free_beta: bool
) -> Any:
    """Forecast by smoothing; return forecasts, and alpha and beta of every row.

    Simple smoothing is Holt's with a first trend and a beta of 0.
    """
    n, length = rows.shape
    found = np.empty((n, steps))
    parameters = np.empty((n, 2))
    unit = np.empty(length)
    scratch = np.empty((4, alphas.shape[0]))
    for i in range(n):
        first, scale, outer, _ = _to_unit(rows[i], unit)
        slope = unit[1] if trended else 0.0
        alpha, beta = alphas[0], betas[0]
        if free_alpha or free_beta:
            best = _best_of_grid(unit, slope, alphas, betas, scratch)
            alpha, beta = _descend(unit, slope, alphas[best], betas[best], free_alpha, free_beta)
        parameters[i, 0] = alpha
        parameters[i, 1] = beta
        level, trend = 0.0, slope
        for t in range(1, length):
            predicted = level + trend
            error = unit[t] - predicted
            level = predicted + alpha * error
            trend += alpha * beta * error
        for h in range(steps):
            found[i, h] = (first + (level + (h + 1) * trend) * scale) * outer
    return found, parameters


@jit
def _best_of_grid(unit: Any, slope: float, alphas: Any, betas: Any, scratch: Any) -> Any:
    """Return the first point of the grid with the smallest sum of squared errors."""
    size = alphas.shape[0]
    level, trend, gain, total = scratch[0], scratch[1], scratch[2], scratch[3]
    for k in range(size):
        level[k] = 0.0
        trend[k] = slope
        gain[k] = alphas[k] * betas[k]
        total[k] = 0.0
    # Points in the inner loop, which does not wait for the last error, and works on several.
    for t in range(1, unit.shape[0]):
        for k in range(size):
            predicted = level[k] + trend[k]
            error = unit[t] - predicted
            level[k] = predicted + alphas[k] * error
            trend[k] += gain[k] * error
            total[k] += error * error
    best = 0
    for k in range(1, size):
        if total[k] < total[best]:
            best = k
    return best


@jit
def _descend(
    unit: Any, slope: float, alpha: float, beta: float, free_alpha: bool, free_beta: bool
) -> Any:
    """Return the minimum of the sum of squared errors that Newton's method leads to, in [0, 1]."""
    total, ga, gb, haa, hab, hbb = _derivatives(unit, slope, alpha, beta)
    for _ in range(50):
        # A parameter that would have to leave [0, 1] stays where it is.
        move_alpha = free_alpha and ga != 0 and (alpha > 0 or ga < 0) and (alpha < 1 or ga > 0)
        move_beta = free_beta and gb != 0 and (beta > 0 or gb < 0) and (beta < 1 or gb > 0)
        if not move_alpha and not move_beta:
            break
        if not move_alpha:
            ga, hab, haa = 0.0, 0.0, 1.0
        elif not move_beta:
            gb, hab, hbb = 0.0, 0.0, 1.0
        # Damping makes the matrix of second derivatives positive, and later shortens the step. It
        # is relative to the diagonal, since alpha often matters a hundred times as much as beta.
        sa = abs(haa) if haa != 0 else 1.0
        sb = abs(hbb) if hbb != 0 else 1.0
        lowest = (haa / sa + hbb / sb) / 2
        lowest -= math.hypot((haa / sa - hbb / sb) / 2, hab / math.sqrt(sa) / math.sqrt(sb))
        damping = 0.0 if lowest > 1e-9 else 1e-3 - lowest
        done = True
        for _ in range(30):
            a, b = haa + damping * sa, hbb + damping * sb
            determinant = a * b - hab * hab
            next_alpha = alpha - (b * ga - hab * gb) / determinant
            next_beta = beta - (a * gb - hab * ga) / determinant
            # Where the step leaves [0, 1] for one, the other takes the best step beside that.
            if next_beta < 0 or next_beta > 1:
                next_beta = min(max(next_beta, 0.0), 1.0)
                next_alpha = alpha - (ga + hab * (next_beta - beta)) / a
            elif next_alpha < 0 or next_alpha > 1:
                next_alpha = min(max(next_alpha, 0.0), 1.0)
                next_beta = beta - (gb + hab * (next_alpha - alpha)) / b
            next_alpha = min(max(next_alpha, 0.0), 1.0)
            next_beta = min(max(next_beta, 0.0), 1.0)
            step = max(abs(next_alpha - alpha), abs(next_beta - beta))
            if step < 1e-7:
                # What is left is the square of this: sums of squares cannot tell any more.
                alpha, beta = next_alpha, next_beta
                break
            there = _derivatives(unit, slope, next_alpha, next_beta)
            if there[0] < total:
                alpha, beta = next_alpha, next_beta
                total, ga, gb, haa, hab, hbb = there
                done = False
                break
            damping = max(4 * damping, 1e-3)
        if done:
            break
    return alpha, beta


@jit
def _derivatives(unit: Any, slope: float, alpha: float, beta: float) -> Any:
    """Return half the sum of squared errors, and its derivatives in alpha and beta.

    With c = alpha * beta, level and trend follow an error e by alpha * e and c * e, so that
    derivatives in alpha (a) and c follow the same recursion. At the end c is replaced by beta.
    """
    c = alpha * beta
    level, trend = 0.0, slope
    la, lc, laa, lac, lcc = 0.0, 0.0, 0.0, 0.0, 0.0
    ta, tc, taa, tac, tcc = 0.0, 0.0, 0.0, 0.0, 0.0
    total, fa, fc, faa, fac, fcc = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for t in range(1, unit.shape[0]):
        level += trend
        la += ta
        lc += tc
        laa += taa
        lac += tac
        lcc += tcc
        # The error has the derivatives of the predicted level, with the other sign.
        e, ea, ec = unit[t] - level, -la, -lc
        eaa, eac, ecc = -laa, -lac, -lcc
        total += e * e
        fa += e * ea
        fc += e * ec
        faa += ea * ea + e * eaa
        fac += ea * ec + e * eac
        fcc += ec * ec + e * ecc
        level += alpha * e
        la += e + alpha * ea
        lc += alpha * ec
        laa += 2 * ea + alpha * eaa
        lac += ec + alpha * eac
        lcc += alpha * ecc
        trend += c * e
        ta += c * ea
        tc += e + c * ec
        taa += c * eaa
        tac += ea + c * eac
        tcc += 2 * ec + c * ecc
    return (
        total / 2,
        fa + beta * fc,
        alpha * fc,
        faa + beta * (2 * fac + beta * fcc),
        fc + alpha * (fac + beta * fcc),
        alpha * alpha * fcc,
    )


@jit
def _regress_on_past(rows: Any, steps: int, order: int) -> Any:
    """Forecast by regression of a value on those before it, fed with its own forecasts."""
    n, length = rows.shape
    count = length - order
    found = np.empty((n, steps))
    values = np.empty(length + steps)  # a series and its forecasts, in units
    past = np.empty((order, count))
    means = np.empty(order)
    turns = np.empty((order, order))
    coefficients = np.empty(order)
    for i in range(n):
        first, scale, outer, rounding = _to_unit(rows[i], values[:length])
        mean = 0.0
        for t in range(count):
            mean += values[order + t]
        mean /= count
        for k in range(order):
            means[k] = 0.0
            for t in range(count):
                past[k, t] = values[order + t - 1 - k]
                means[k] += past[k, t]
            means[k] /= count
            for t in range(count):
                past[k, t] -= means[k]
        _make_orthogonal(past, turns)
        largest = 0.0
        for k in range(order):
            largest = max(largest, _product(past[k], past[k]))
        noise = max(rounding, _EPSILON * math.sqrt(largest)) * length
        coefficients[:] = 0.0
        for j in range(order):
            square = _product(past[j], past[j])
            if square > noise * noise:
                share = 0.0
                for t in range(count):
                    share += past[j, t] * (values[order + t] - mean)
                for k in range(order):
                    coefficients[k] += share / square * turns[j, k]
        for h in range(length, length + steps):
            value = mean
            for k in range(order):
                value += coefficients[k] * (values[h - 1 - k] - means[k])
            # Forecasts that grow without bound end as inf - inf.
            values[h] = values[h - 1] if math.isnan(value) else value
            found[i, h - length] = (first + values[h] * scale) * outer
    return found


@jit
def _product(one: Any, other: Any) -> Any:
    total = 0.0
    for t in range(one.shape[0]):
        total += one[t] * other[t]
    return total


@jit
def _make_orthogonal(vectors: Any, turns: Any) -> Any:
    """Turn vectors, the rows, until they are orthogonal (one-sided Jacobi).

    They become `turns` @ vectors, and `turns` is orthogonal: with the norms of the new vectors
    this is a singular value decomposition.
    """
    size = vectors.shape[0]
    turns[:] = 0.0
    for k in range(size):
        turns[k, k] = 1.0
    for _ in range(30):
        turned = False
        for j in range(size - 1):
            for k in range(j + 1, size):
                one = _product(vectors[j], vectors[j])
                other = _product(vectors[k], vectors[k])
                both = _product(vectors[j], vectors[k])
                if both == 0 or abs(both) <= 1e-15 * math.sqrt(one) * math.sqrt(other):
                    continue
                turned = True
                zeta = (other - one) / (2 * both)
                tangent = math.copysign(1.0, zeta) / (abs(zeta) + math.hypot(1.0, zeta))
                cosine = 1 / math.hypot(1.0, tangent)
                sine = cosine * tangent
                _turn(vectors[j], vectors[k], cosine, sine)
                _turn(turns[j], turns[k], cosine, sine)
        if not turned:
            break


@jit
def _turn(one: Any, other: Any, cosine: float, sine: float) -> Any:
    for t in range(one.shape[0]):
        a, b = one[t], other[t]
        one[t] = cosine * a - sine * b
        other[t] = sine * a + cosine * b
