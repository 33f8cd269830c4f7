"""Forecasts of time series: the models in plain Python, statsmodels, and what always holds."""

from __future__ import annotations

import inspect
import math
import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sdc_dask.errors import SdcError, SdcTypeError, SdcValueError
from sdc_dask.series import forecasts
from sdc_dask.series.forecasts import MODELS, forecast

Rows = NDArray[np.float64]
NAN = math.nan
HUGE = np.finfo(float).max

every_model = pytest.mark.parametrize("model", MODELS)

few = settings(deadline=None, max_examples=15)

# The fewest values that a model, with what else it is told, can forecast from.
SHORTEST = [
    ("simple_smoothing", {}, 3),
    ("simple_smoothing", {"alpha": 0.5}, 1),
    ("double_smoothing", {}, 5),
    ("double_smoothing", {"alpha": 0.5}, 4),
    ("double_smoothing", {"beta": 0.5}, 4),
    ("double_smoothing", {"alpha": 0.5, "beta": 0.5}, 2),
    ("linear", {}, 2),
    ("multiple", {}, 5),
    ("multiple", {"order": 1}, 3),
    ("multiple", {"order": 4}, 9),
    ("polynomial", {}, 3),
    ("polynomial", {"degree": 1}, 2),
    ("polynomial", {"degree": 5}, 6),
]


def walks(n: int, length: int, seed: int = 0) -> Rows:
    """Return series of several kinds: random walks, noise, trends, and walks of the slope."""
    rng = np.random.default_rng(seed)
    series = rng.normal(size=(n, length))
    series[::4] = series[::4].cumsum(axis=1)
    series[1::4] += rng.normal(size=(len(series[1::4]), 1)) * np.arange(length)
    series[2::4] = series[2::4].cumsum(axis=1).cumsum(axis=1)
    return series


def plain_smoothing(
    series: list[float], alpha: float, beta: float | None = None
) -> tuple[float, float, float]:
    """Return the last level and trend, and the sum of squared errors one step ahead."""
    level, trend, total = series[0], 0.0, 0.0
    if beta is not None:
        trend = series[1] - series[0]
    for value in series[1:]:
        predicted = level + trend
        total += (value - predicted) ** 2
        before, level = level, alpha * value + (1 - alpha) * predicted
        if beta is not None:
            trend = beta * (level - before) + (1 - beta) * trend
    return level, trend, total


def fitted(series: Rows, model: str) -> list[dict[str, float]]:
    """Return alpha, and beta if the model has one, of every series."""
    double = model == "double_smoothing"
    search = forecasts._search(None, None if double else 0.0)
    _, found = forecasts._smooth(series, 1, double, *search)
    names = ("alpha", "beta") if double else ("alpha",)
    return [dict(zip(names, row, strict=False)) for row in found.tolist()]


def errors_of(series: Rows, parameters: list[dict[str, float]]) -> Rows:
    pairs = zip(series.tolist(), parameters, strict=True)
    return np.array([plain_smoothing(row, **each)[2] for row, each in pairs])


# The models


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_simple_smoothing_is_its_recursion(alpha: float) -> None:
    series = walks(40, 9)
    found = forecast(series, "simple_smoothing", 4, alpha=alpha)
    levels = [plain_smoothing(row, alpha)[0] for row in series.tolist()]
    np.testing.assert_allclose(found, np.tile(np.reshape(levels, (-1, 1)), 4), rtol=0, atol=1e-12)


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("beta", [0.0, 0.6, 1.0])
def test_double_smoothing_is_its_recursion(alpha: float, beta: float) -> None:
    series = walks(40, 9)
    found = forecast(series, "double_smoothing", 4, alpha=alpha, beta=beta)
    ends = [plain_smoothing(row, alpha, beta) for row in series.tolist()]
    expected = [[level + h * trend for h in (1, 2, 3, 4)] for level, trend, _ in ends]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-11)


# Importing statsmodels takes seconds; the recursion and the grid around these say the same.
@pytest.mark.soak
@pytest.mark.parametrize(("alpha", "beta"), [(0.1, 0.0), (0.35, 0.8), (0.9, 0.25)])
def test_smoothing_as_in_statsmodels(alpha: float, beta: float) -> None:
    from statsmodels.tsa.api import Holt, SimpleExpSmoothing

    # They take the start as that before the first value, and smooth it with this value.
    for series in walks(6, 15):
        simple = SimpleExpSmoothing(
            series, initialization_method="known", initial_level=series[0]
        ).fit(smoothing_level=alpha, optimized=False)
        found = forecast(series, "simple_smoothing", alpha=alpha)
        np.testing.assert_allclose(found, simple.forecast(3), rtol=0, atol=1e-9)
        double = Holt(
            series,
            initialization_method="known",
            initial_level=2 * series[0] - series[1],
            initial_trend=series[1] - series[0],
        ).fit(smoothing_level=alpha, smoothing_trend=beta, optimized=False)
        found = forecast(series, "double_smoothing", alpha=alpha, beta=beta)
        np.testing.assert_allclose(found, double.forecast(3), rtol=0, atol=1e-9)


@pytest.mark.soak
@pytest.mark.parametrize("model", ["simple_smoothing", "double_smoothing"])
def test_errors_are_no_larger_than_those_of_statsmodels(model: str) -> None:
    from statsmodels.tsa.api import Holt, SimpleExpSmoothing

    series = walks(24, 20, seed=1)
    theirs = []
    for row in series:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that their search did not converge
            if model == "simple_smoothing":
                result = SimpleExpSmoothing(
                    row, initialization_method="known", initial_level=row[0]
                ).fit()
            else:
                result = Holt(
                    row,
                    initialization_method="known",
                    initial_level=2 * row[0] - row[1],
                    initial_trend=row[1] - row[0],
                ).fit()
        theirs.append(result.sse)
    ours = errors_of(series, fitted(series, model))
    assert np.mean(ours <= np.array(theirs) * (1 + 1e-6)) >= 0.95
    assert (ours <= np.array(theirs) * 1.01).all()


@pytest.mark.parametrize("length", [5, 12, 30])
@pytest.mark.parametrize("model", ["simple_smoothing", "double_smoothing"])
def test_parameters_are_the_best_of_a_fine_grid(model: str, length: int) -> None:
    series = walks(200, length, seed=2)
    parameters = fitted(series, model)
    ours = errors_of(series, parameters)
    best = np.full(len(series), np.inf)
    betas = np.linspace(0, 1, 26) if model == "double_smoothing" else [0.0]
    for alpha in np.linspace(0, 1, 41):
        for beta in betas:
            level, total = series[:, 0], np.zeros(len(series))
            trend = series[:, 1] - level if model == "double_smoothing" else 0.0
            for values in series.T[1:]:
                error = values - level - trend
                level = level + trend + alpha * error
                trend = trend + alpha * beta * error
                total += error**2
            best = np.minimum(best, total)
    assert np.mean(ours <= best * (1 + 1e-9)) >= 0.99
    assert (ours <= best * 1.01).all()
    found = forecast(series, model)
    for row, each, expected in zip(series, parameters, found, strict=True):
        assert all(0 <= value <= 1 for value in each.values())
        np.testing.assert_array_equal(forecast(row, model, **each), expected)


@pytest.mark.parametrize("fixed", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("name", ["alpha", "beta"])
def test_one_parameter_may_be_given(name: str, fixed: float) -> None:
    series = walks(20, 12)
    given = {"alpha": None, "beta": None} | {name: fixed}
    _, found = forecasts._smooth(series, 1, True, *forecasts._search(**given))
    for row, (alpha, beta) in zip(series, found, strict=True):
        assert (alpha if name == "alpha" else beta) == fixed
        total = plain_smoothing(row.tolist(), alpha, beta)[2]
        for other in np.linspace(0, 1, 51):
            both = {"alpha": other, "beta": other} | {name: fixed}
            assert total <= plain_smoothing(row.tolist(), **both)[2] * (1 + 1e-9)
        np.testing.assert_array_equal(
            forecast(row, "double_smoothing", **{name: fixed}),
            forecast(row, "double_smoothing", alpha=alpha, beta=beta),
        )


def test_equal_errors_leave_the_smallest_parameters() -> None:
    """The last value alone is a surprise, of which no parameter is to blame."""
    assert forecast([4.0, 4.0, 4.0, 9.0], "simple_smoothing").tolist() == [4.0] * 3
    assert forecast([1.0, 2.0, 3.0, 4.0, 9.0], "double_smoothing").tolist() == [6.0, 7.0, 8.0]


@pytest.mark.parametrize(
    ("model", "options", "degree"),
    [("linear", {}, 1), ("polynomial", {}, 2), ("polynomial", {"degree": 5}, 5)],
)
def test_regression_on_time_has_the_least_squares(
    model: str, options: dict[str, int], degree: int
) -> None:
    length, steps = 17, 4
    time = np.arange(length + steps) / length
    powers = np.vander(time, degree + 1)
    for series in walks(8, length):
        coefficients = np.linalg.lstsq(powers[:length], series)[0]
        expected = powers[length:] @ coefficients
        found = forecast(series, model, steps, **options)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("order", [1, 2, 3, 5])
def test_regression_on_the_past_has_the_least_squares(order: int) -> None:
    for series in walks(8, 24):
        lags = np.column_stack([series[order - k : len(series) - k] for k in range(1, order + 1)])
        design = np.column_stack([np.ones(len(lags)), lags])
        coefficients = np.linalg.lstsq(design, series[order:])[0]
        values = series.tolist()
        for _ in range(4):
            values.append(float(coefficients @ [1.0, *values[: -order - 1 : -1]]))
        found = forecast(series, "multiple", 4, order=order)
        np.testing.assert_allclose(found, values[-4:], rtol=1e-9, atol=1e-9)
        if order == 2:
            np.testing.assert_array_equal(forecast(series, "multiple", 4), found)


@pytest.mark.parametrize(
    "series",
    [
        np.tile([1.0, 5.0], 6),
        np.tile([1.0, 5.0, 2.0], 4),
        1.5 ** np.arange(12),
        [0.0] * 11 + [1.0],
        [3.0] + [1.0] * 11,
    ],
)
@pytest.mark.parametrize("order", [2, 3, 5])
def test_singular_regressions_have_coefficients_of_smallest_norm(
    series: list[float], order: int
) -> None:
    values = list(map(float, series))
    lags = np.array([values[t - order : t][::-1] for t in range(order, 12)])
    targets = np.array(values[order:])
    means, mean = lags.mean(axis=0), targets.mean()
    coefficients = np.linalg.lstsq(lags - means, targets - mean, rcond=1e-12)[0]
    for _ in range(5):
        values.append(mean + coefficients @ (np.array(values[: -order - 1 : -1]) - means))
    found = forecast(series, "multiple", 5, order=order)
    np.testing.assert_allclose(found, values[-5:], rtol=1e-9, atol=1e-9)
    # Rounding in the values is not taken for a reason: a shift leaves the forecasts alike.
    shifted = forecast(np.add(series, 1000.1), "multiple", 5, order=order)
    np.testing.assert_allclose(shifted - 1000.1, found, rtol=1e-9, atol=1e-8)


def test_polynomials_of_the_highest_degree_pass_through_all_values() -> None:
    for degree in (1, 2, 5, 9):
        roots = np.arange(1, degree + 1) - 2.5
        time = np.arange(degree + 1 + 2.0)
        series = np.prod(time[:, None] / degree - roots / degree, axis=1)
        found = forecast(series[:-2], "polynomial", 2, degree=degree)
        np.testing.assert_allclose(found, series[-2:], rtol=1e-8)


# What always holds


@every_model
@few
@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(5, 30))
def test_constant_series_stay_constant(model: str, value: float, length: int) -> None:
    assert forecast(np.full(length, value), model, 4).tolist() == [value] * 4


@pytest.mark.parametrize("model", ["double_smoothing", "linear", "multiple", "polynomial"])
@pytest.mark.parametrize("length", [5, 6, 24, 100])
def test_lines_continue(model: str, length: int) -> None:
    time = np.arange(length + 4)
    slopes = np.array([[1.0], [-0.1], [1e-9], [1e5 / 3]])
    lines = np.array([[0.0], [3.3], [-2e-8], [7e7]]) + slopes * time
    found = forecast(lines[:, :length], model, 4)
    scale = np.abs(lines).max(axis=1, keepdims=True)
    np.testing.assert_allclose(found / scale, lines[:, length:] / scale, rtol=0, atol=1e-12)


@every_model
def test_the_unit_and_the_zero_do_not_matter(model: str) -> None:
    series = walks(400, 16, seed=3)
    spread = np.ptp(series, axis=1)[:, None]
    expected = forecast(series, model) / spread
    for shift, factor in [(0, 8.0), (0, 1 / 3), (50.7, 1.0), (-1e3, 7.7), (0, 1e-290), (0, 1e290)]:
        found = forecast(shift + factor * series, model)
        np.testing.assert_allclose((found - shift) / factor / spread, expected, atol=1e-7, rtol=0)
    # A power of two leaves the bits as they are.
    for power in (-500, 3, 700):
        found = forecast(np.ldexp(series, power), model)
        np.testing.assert_array_equal(np.ldexp(found, -power), forecast(series, model))


@every_model
@few
@given(arrays(float, (3, 6), elements=st.floats(allow_nan=False, allow_infinity=False)))
def test_all_of_float64_has_forecasts(model: str, series: Rows) -> None:
    found = forecast(series, model)
    assert not np.isnan(found).any()
    if np.abs(series).max() < 1e290:
        assert np.isfinite(found).all()


def test_forecasts_beyond_float64_are_infinite() -> None:
    line = np.array([0.2, 0.4, 0.6, 0.8, 1.0]) * HUGE
    for model in ("double_smoothing", "linear", "polynomial"):
        assert forecast(line, model).tolist() == [math.inf] * 3
        assert forecast(-line, model).tolist() == [-math.inf] * 3
    # An explosive regression, whose forecasts alternate, and end as infinite as they became.
    explosive = forecast((-3.0) ** np.arange(12), "multiple", 1000)
    assert not np.isnan(explosive).any()
    assert np.isfinite(explosive[:500]).all() and np.isinf(explosive[-1])


@every_model
def test_a_row_does_not_depend_on_the_others(model: str) -> None:
    series = walks(300, 13, seed=4)
    series[5], series[6] = 2.5, np.arange(13.0)
    series[7] *= 1e-300
    series[8] *= 1e300
    found = forecast(series, model, 5)
    assert found.shape == (300, 5) and found.dtype == float
    for i, row in enumerate(series):
        np.testing.assert_array_equal(forecast(row, model, 5), found[i])
    np.testing.assert_array_equal(forecast(series[10:17], model, 5), found[10:17])
    np.testing.assert_array_equal(forecast(np.asfortranarray(series), model, 5), found)
    np.testing.assert_array_equal(forecast(series[::-1], model, 5), found[::-1])
    np.testing.assert_array_equal(forecast(series, model, 2), found[:, :2])


@every_model
def test_shapes_and_types(model: str) -> None:
    series = np.random.default_rng(5).integers(-9, 9, (4, 8))
    kept = series.astype(float)
    found = forecast(kept, model)
    np.testing.assert_array_equal(kept, series)
    assert found.shape == (4, 3)
    assert forecast(series[0], model, 7).shape == (7,)
    assert forecast(series[:0], model).shape == (0, 3)
    assert forecast(series[:1], model, 1).shape == (1, 1)
    for other in (series, series.tolist(), series.astype(np.float32)):
        np.testing.assert_array_equal(forecast(other, model), found)


# Ends and bad arguments


@pytest.mark.parametrize(("model", "options", "shortest"), SHORTEST)
def test_shortest_series(model: str, options: dict[str, Any], shortest: int) -> None:
    series = walks(8, shortest)
    found = forecast(series, model, **options)
    assert np.isfinite(found).all()
    if shortest > 1:
        says = rf"at least {shortest} values for model {model}.*, received {shortest - 1}: use"
        with pytest.raises(SdcValueError, match=says):
            forecast(series[:, 1:], model, **options)


def test_two_values_make_a_line() -> None:
    np.testing.assert_allclose(forecast([1.0, 3.0], "linear"), [5, 7, 9])
    np.testing.assert_allclose(forecast([1.0, 3.0], "double_smoothing", alpha=0, beta=0), [5, 7, 9])
    assert forecast([7.0], "simple_smoothing", 2, alpha=0.3).tolist() == [7, 7]


def test_models_and_options_are_those_of_the_signature() -> None:
    assert tuple(forecasts._OPTIONS) == MODELS
    parameters = inspect.signature(forecast).parameters
    named = {option for options in forecasts._OPTIONS.values() for option in options}
    assert named == {name for name, each in parameters.items() if each.kind == each.KEYWORD_ONLY}


@every_model
@pytest.mark.parametrize("option", ["alpha", "beta", "order", "degree"])
def test_options_of_other_models(model: str, option: str) -> None:
    if option in forecasts._OPTIONS[model]:
        return
    with pytest.raises(SdcValueError, match=f"{option} has no meaning for model '{model}', which"):
        forecast(np.zeros(9), model, **{option: 1})


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"model": "arima"}, SdcValueError, "model must be one of 'simple_smoothing', .*'arima'"),
        ({"model": None}, SdcValueError, "model must be one of .* received None"),
        ({"steps": 0}, SdcValueError, "steps must be at least 1, received 0"),
        ({"steps": 2.0}, SdcTypeError, "steps must be a whole number.* received float"),
        ({"alpha": 1.5}, SdcValueError, "alpha must be a number of at least 0 and at most 1"),
        ({"alpha": "auto"}, SdcTypeError, "alpha must be a number.* received str"),
        ({"beta": -0.1}, SdcValueError, "beta must be a number of at least 0 and at most 1"),
        ({"beta": NAN}, SdcValueError, "beta must be a number.* received nan"),
        ({"model": "multiple", "order": 0}, SdcValueError, "order must be at least 1"),
        ({"model": "multiple", "order": 2.5}, SdcTypeError, "order must be a whole number"),
        ({"model": "polynomial", "degree": 0}, SdcValueError, "degree must be at least 1"),
        ({"model": "polynomial", "degree": True}, SdcTypeError, "degree must be a whole number"),
        ({"series": 7.25}, SdcValueError, r"series must be one series.* shape \(\)"),
        ({"series": [[[7.25]]]}, SdcValueError, r"received an array of shape \(1, 1, 1\)"),
        ({"series": [7.25, NAN] * 5}, SdcValueError, "received 5 missing and 0 infinite ones"),
        ({"series": [7.25, -math.inf] * 5}, SdcValueError, "received 0 missing and 5 infinite"),
        ({"series": ["7.25"] * 9}, SdcTypeError, "series must be real numbers, received dtype <U4"),
        ({"series": [[1.0, 2.0], [7.25]]}, SdcValueError, "parts have different lengths"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[SdcError], says: str) -> None:
    with pytest.raises(error, match=says) as found:
        forecast(**{"series": np.zeros(9), "model": "double_smoothing"} | arguments)
    assert "7.25" not in str(found.value)


def test_polynomials_that_exceed_float64() -> None:
    with pytest.raises(SdcValueError, match="degree 150 exceeds float64 within 9999 steps after"):
        forecast(np.zeros(151), "polynomial", 9999, degree=150)
