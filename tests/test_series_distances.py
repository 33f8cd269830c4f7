"""Distances of time series: the definitions in plain Python, and what always holds."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from sdc_dask.errors import SdcError, SdcTypeError, SdcValueError
from sdc_dask.series.distances import dtw, euclidean, slopes, sts

Rows = NDArray[np.float64]
NAN = math.nan
HUGE = np.finfo(float).max

DISTANCES: dict[str, Callable[..., float | Rows]] = {
    "euclidean": euclidean,
    "sts": sts,
    "sts with times": partial(sts, times=[0, 1, 3, 3.5, 7, 8]),
    "dtw": dtw,
    "dtw with window": partial(dtw, window=2),
}
every_distance = pytest.mark.parametrize("distance", DISTANCES.values(), ids=DISTANCES.keys())

few = settings(deadline=None, max_examples=15)
values = st.floats(-1e6, 1e6, allow_subnormal=False)
series = arrays(float, 6, elements=values)


def plain_dtw(x: list[float], v: list[float], window: int | None = None) -> float:
    """Walk all paths from the last pair back to the first."""

    def cost(i: int, j: int) -> float:
        if i < 0 or j < 0 or (window is not None and abs(i - j) > window):
            return math.inf
        here = (x[i] - v[j]) ** 2
        if i == j == 0:
            return here
        return here + min(cost(i - 1, j), cost(i, j - 1), cost(i - 1, j - 1))

    return math.sqrt(cost(len(x) - 1, len(v) - 1))


def plain_sts(x: list[float], v: list[float], times: list[float]) -> float:
    total = 0.0
    for k in range(len(x) - 1):
        step = times[k + 1] - times[k]
        total += ((v[k + 1] - v[k]) / step - (x[k + 1] - x[k]) / step) ** 2
    return math.sqrt(total)


@pytest.mark.parametrize("window", [None, 0, 1, 2, 3, 9])
@pytest.mark.parametrize(("length", "other"), [(1, 1), (1, 3), (5, 5), (6, 4), (3, 6), (2, 5)])
def test_dtw_is_the_cheapest_of_all_paths(length: int, other: int, window: int | None) -> None:
    rng = np.random.default_rng(length)
    x, v = rng.normal(size=(10, length)), rng.normal(size=(10, other))
    if window is not None and window < abs(length - other):
        with pytest.raises(SdcValueError, match=f"lengths, which are {length} and {other}"):
            dtw(x, v, window)
        return
    expected = [plain_dtw(a, b, window) for a, b in zip(x.tolist(), v.tolist(), strict=True)]
    np.testing.assert_allclose(dtw(x, v, window), expected, rtol=1e-14)


def test_dtw_of_long_series_in_a_narrow_window() -> None:
    """A full table of costs, in which pairs outside the window are infinite."""
    rng = np.random.default_rng(0)
    for length, other, window in [(40, 40, 0), (40, 40, 3), (40, 45, 5), (45, 40, 6), (40, 40, 39)]:
        x, v = rng.normal(size=length).cumsum(), rng.normal(size=other).cumsum()
        costs = np.full((length + 1, other + 1), np.inf)
        costs[0, 0] = 0
        for i in range(length):
            for j in range(other):
                if abs(i - j) <= window:
                    best = min(costs[i, j], costs[i, j + 1], costs[i + 1, j])
                    costs[i + 1, j + 1] = (x[i] - v[j]) ** 2 + best
        assert dtw(x, v, window) == pytest.approx(math.sqrt(costs[-1, -1]), rel=1e-14)


@few
@given(series, series)
def test_definitions(x: Rows, v: Rows) -> None:
    close = partial(pytest.approx, rel=1e-12)
    assert euclidean(x, v) == close(math.dist(x, v))
    assert sts(x, v) == close(plain_sts(x.tolist(), v.tolist(), list(range(6))))
    times = [-2.0, 0.5, 1.0, 4.0, 4.25, 10.0]
    assert sts(x, v, times) == close(plain_sts(x.tolist(), v.tolist(), times))
    np.testing.assert_array_equal(slopes(x), np.diff(x))
    np.testing.assert_array_equal(slopes(x, times), np.diff(x) / np.diff(times))


@few
@given(series, series)
def test_windows_lead_from_euclidean_to_dtw(x: Rows, v: Rows) -> None:
    by_window = [dtw(x, v, window) for window in range(6)]
    assert by_window[0] == euclidean(x, v)
    assert by_window[-1] == dtw(x, v)
    assert all(a >= b for a, b in pairwise(by_window))


@every_distance
@few
@given(series, series)
def test_symmetric_and_zero_for_itself(distance: Callable, x: Rows, v: Rows) -> None:
    assert distance(x, v) == distance(v, x) >= 0
    assert distance(x, x) == 0


def test_a_peak_may_shift_and_a_level_may_not() -> None:
    peak, later = [0.0, 0.0, 5.0, 0.0, 0.0], [0.0, 0.0, 0.0, 5.0, 0.0]
    assert dtw(peak, later) == dtw(peak, later, 1) == 0
    assert euclidean(peak, later) == pytest.approx(math.sqrt(50))
    higher = np.add(peak, 2.0)
    assert sts(peak, higher) == 0
    assert dtw(peak, higher) > 0


@every_distance
def test_one_against_many(distance: Callable) -> None:
    rng = np.random.default_rng(3)
    x, v = rng.normal(size=(7, 6)), rng.normal(size=(7, 6))
    found = distance(x, v)
    assert found.shape == (7,) and found.dtype == float
    assert isinstance(distance(x[0], v[0]), float)
    assert found.tolist() == [distance(a, b) for a, b in zip(x, v, strict=True)]
    against = [distance(a, v[0]) for a in x]
    for one in (v[0], v[:1]):
        assert distance(x, one).tolist() == against
        assert distance(one, x).tolist() == against
    assert distance(x[0], v[:1]).shape == (1,)
    for pair in ((x[:0], v[:0]), (x[:0], v[0]), (x[0], v[:0])):
        assert distance(*pair).shape == (0,)


@every_distance
def test_layout_and_type_of_arrays_do_not_matter(distance: Callable) -> None:
    rng = np.random.default_rng(4)
    x, v = rng.integers(-9, 9, (2, 50, 6))
    found = distance(x, v)
    for change in (np.asfortranarray, lambda a: a.astype(np.float32), lambda a: a.tolist()):
        np.testing.assert_array_equal(distance(change(x), change(v)), found)
    part = distance(x[10:20], v[10:20])
    np.testing.assert_array_equal(part, found[10:20])
    kept = x.astype(float), v.astype(float)
    copies = kept[0].copy(), kept[1].copy()
    distance(*kept)
    np.testing.assert_array_equal(kept, copies)


@pytest.mark.parametrize("power", [-1040, -700, -500, 500, 700, 1000])
@every_distance
def test_no_square_leaves_float64(distance: Callable, power: int) -> None:
    x, v = np.random.default_rng(5).integers(-1000, 1000, (2, 6)).astype(float)
    scaled = distance(np.ldexp(x, power), np.ldexp(v, power))
    # Numbers below 2**-1022 have fewer digits.
    assert scaled == pytest.approx(
        math.ldexp(distance(x, v), power), rel=1e-7 if power < -1000 else 1e-15
    )


def test_the_ends_of_float64() -> None:
    assert euclidean([HUGE, 0.0], [0.0, 0.0]) == pytest.approx(HUGE)
    assert euclidean([5e-324, 0.0], [0.0, 0.0]) == 5e-324
    assert euclidean([HUGE], [-HUGE]) == dtw([HUGE], [-HUGE]) == math.inf
    assert dtw([HUGE, 1e-200], [HUGE, 3e-200]) == pytest.approx(2e-200)
    assert slopes([-HUGE, HUGE], times=[0, 2]).tolist() == [HUGE]
    with pytest.raises(SdcValueError, match="slopes must not exceed float64, received 1 that do"):
        slopes([-HUGE, HUGE])


def test_slopes_of_many() -> None:
    x = np.random.default_rng(6).normal(size=(4, 5))
    times = [1, 2, 4, 8, 16]
    found = slopes(x, times)
    assert found.shape == (4, 4)
    np.testing.assert_array_equal(found[2], slopes(x[2], times))
    assert slopes(x[:0]).shape == (0, 4)
    assert slopes([3, 5]).tolist() == [2.0]


@pytest.mark.parametrize(
    ("x", "error", "says"),
    [
        (7.25, SdcValueError, r"x must be one series, of shape \(T,\).*received.* shape \(\)"),
        ([], SdcValueError, r"at least one value, received an array of shape \(0,\)"),
        (np.zeros((2, 0)), SdcValueError, r"received an array of shape \(2, 0\)"),
        (np.zeros((2, 2, 6)), SdcValueError, r"received an array of shape \(2, 2, 6\)"),
        ([7.25, NAN, math.inf, 1, 2, 3], SdcValueError, "received 1 missing and 1 infinite ones"),
        ([[7.25, 1.0], [7.25]], SdcValueError, "parts have different lengths: pass series of one"),
        (["7.25"] * 6, SdcTypeError, "x must be real numbers, received dtype <U4: cast"),
        ([True] * 6, SdcTypeError, "x must be real numbers, received dtype bool"),
        ([7.25j] * 6, SdcTypeError, "x must be real numbers, received dtype complex128"),
        (None, SdcTypeError, "x must be real numbers, received dtype object"),
    ],
)
@every_distance
def test_bad_series(distance: Callable, x: object, error: type[SdcError], says: str) -> None:
    with pytest.raises(error, match=says) as first:
        distance(x, np.zeros(6))
    with pytest.raises(error, match=says.replace("x must", "v must")):
        distance(np.zeros(6), x)
    assert "7.25" not in str(first.value)
    if distance is sts:
        with pytest.raises(error, match=says):
            slopes(x)


@every_distance
def test_series_that_do_not_pair(distance: Callable) -> None:
    with pytest.raises(SdcValueError, match="same number of series, received 2 and 3: pass a row"):
        distance(np.zeros((2, 6)), np.zeros((3, 6)))
    if distance in (euclidean, sts):
        with pytest.raises(SdcValueError, match=r"one length, received 6 and 5 values.*or use dtw"):
            distance(np.zeros((3, 6)), np.zeros(5))


@pytest.mark.parametrize(
    ("times", "error", "says"),
    [
        ([0, 1], SdcValueError, r"one number for each of 3 values, received.* shape \(2,\)"),
        (5, SdcValueError, r"received an array of shape \(\)"),
        ([0, 1, 1], SdcValueError, "must be finite and ascend, received 1 steps.*: sort"),
        ([7.25, 1, 0], SdcValueError, "received 2 steps"),
        ([0, NAN, 1], SdcValueError, "received 2 steps"),
        ([0, 1, math.inf], SdcValueError, "received 1 steps"),
        ([math.inf, math.inf, math.inf], SdcValueError, "received 2 steps"),
        ([-HUGE, HUGE, math.inf], SdcValueError, "received 2 steps"),
        (["a", "b", "c"], SdcTypeError, "times must be real numbers, received dtype <U1"),
        (np.array(["2001", "2002", "2003"], "M8[Y]"), SdcTypeError, "received dtype datetime64"),
    ],
)
def test_bad_times(times: object, error: type[SdcError], says: str) -> None:
    with pytest.raises(error, match=says) as found:
        sts(np.zeros(3), np.ones((2, 3)), times)
    assert "7.25" not in str(found.value)
    with pytest.raises(error, match=says):
        slopes(np.zeros(3), times)


def test_slopes_need_two_values() -> None:
    for call in (slopes, lambda x: sts(x, x)):
        with pytest.raises(SdcValueError, match="at least 2 values, received 1: use longer"):
            call([7.25])


@pytest.mark.parametrize(
    ("window", "error", "says"),
    [
        (-1, SdcValueError, "window must be at least 0, received -1"),
        (1.5, SdcTypeError, "window must be a whole number of at least 0, received float"),
        (True, SdcTypeError, "received bool"),
        (1, SdcValueError, "are 3 and 5, received 1: the last values.*Use 2 or more, or None"),
    ],
)
def test_bad_windows(window: object, error: type[SdcError], says: str) -> None:
    with pytest.raises(error, match=says):
        dtw(np.zeros(3), np.zeros(5), window)
