"""Covariances and correlations, against numpy, pandas and fractions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdc_dask.engine.moments import CoMoments, co_moments

finite = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture
def mixed() -> pd.DataFrame:
    """Columns of several kinds and scales, some with missing cells."""
    rng = np.random.default_rng(3)
    n = 400
    base = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": base,
            "y": 1e9 + base + 0.1 * rng.normal(size=n),
            "count": pd.array(rng.integers(-5, 50, n), dtype="Int64"),
            "small": pd.array(1e-300 * rng.normal(size=n), dtype="double[pyarrow]"),
            "single": rng.normal(size=n).astype("float32"),
            "constant": 7,
        }
    )
    frame.loc[rng.random(n) < 0.1, "x"] = np.nan
    frame.loc[rng.random(n) < 0.1, "count"] = pd.NA
    return frame


def exact_covariance(first: Sequence[float], second: Sequence[float]) -> Fraction:
    x, y = [Fraction(value) for value in first], [Fraction(value) for value in second]
    n = len(x)
    mean_x, mean_y = sum(x) / n, sum(y) / n
    return sum(((a - mean_x) * (b - mean_y) for a, b in zip(x, y, strict=True)), Fraction(0)) / n


def test_moments_equal_numpy() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(2_000, 5)) @ rng.normal(size=(5, 5)), columns=[*"abcde"])
    moments = co_moments(frame, [*"abcde"])
    assert moments.n == 2_000
    assert moments.columns == tuple("abcde")
    expected = np.cov(frame.to_numpy().T, ddof=0)
    np.testing.assert_allclose(moments.covariance(), expected, rtol=1e-12)
    np.testing.assert_allclose(moments.correlation(), np.corrcoef(frame.to_numpy().T), rtol=1e-12)


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=15))
def test_covariances_are_correctly_rounded(rows: list[tuple[float, float]]) -> None:
    frame = pd.DataFrame(rows, columns=["x", "y"], dtype="float64")
    covariance = co_moments(frame, ["x", "y"]).covariance()
    for i, x in enumerate(frame):
        for j, y in enumerate(frame):
            assert covariance[i, j] == rounded(exact_covariance(frame[x], frame[y]))


def rounded(value: Fraction) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf if value > 0 else -math.inf


@given(st.lists(st.tuples(finite, finite), min_size=1, max_size=15))
def test_correlations_are_within_bounds(rows: list[tuple[float, float]]) -> None:
    frame = pd.DataFrame(rows, columns=["x", "y"], dtype="float64")
    correlation = co_moments(frame, ["x", "y"]).correlation()
    assert (correlation == correlation.T).all()
    assert (correlation.diagonal() == 1).all()
    r = Fraction(correlation[0, 1])
    assert abs(r) <= 1
    numerator = exact_covariance(frame["x"], frame["y"])
    product = exact_covariance(frame["x"], frame["x"]) * exact_covariance(frame["y"], frame["y"])
    if product == 0:
        assert r == 0
    else:
        assert r * numerator >= 0
        # As relative an error as float64 has, where the correlation is not below its range.
        error = abs(r * r * product - numerator**2) / product
        assert error <= Fraction(1e-15) * r * r + Fraction(1, 10**600)


def test_a_large_offset_drowns_nothing() -> None:
    rng = np.random.default_rng(1)
    base = rng.normal(size=300)
    frame = pd.DataFrame({"x": 1e9 + 1e-4 * base, "y": -1e9 + 1e-4 * (base + rng.normal(size=300))})
    moments = co_moments(frame, ["x", "y"])
    exact = exact_covariance(frame["x"], frame["y"])
    assert moments.covariance()[0, 1] == float(exact)
    product = exact_covariance(frame["x"], frame["x"]) * exact_covariance(frame["y"], frame["y"])
    expected = float(exact) / math.sqrt(product)
    assert moments.correlation()[0, 1] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("scale", [1e-300, 1e-160, 1e160, 1e300])
def test_correlation_of_extreme_values(scale: float) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=100)
    frame = pd.DataFrame({"x": x, "y": x + rng.normal(size=100), "z": -x})
    expected = co_moments(frame, ["x", "y", "z"]).correlation()
    assert expected[0, 2] == -1
    scaled = frame.assign(x=frame["x"] * scale)
    np.testing.assert_allclose(
        co_moments(scaled, ["x", "y", "z"]).correlation(), expected, rtol=1e-12
    )
    covariance = co_moments(frame * scale, ["x", "y", "z"]).covariance()
    if scale > 1:
        np.testing.assert_array_equal(covariance, np.sign(expected) * np.inf)
    else:
        np.testing.assert_allclose(covariance, 0, atol=1e-318)


@pytest.mark.parametrize("npartitions", [1, 7, 40])
def test_partitions_change_no_bit(scheduler: str, npartitions: int, mixed: pd.DataFrame) -> None:
    columns = list(mixed)
    expected = co_moments(mixed, columns)
    result = co_moments(dd.from_pandas(mixed, npartitions=npartitions), columns)
    assert result == expected
    assert result.covariance().tobytes() == expected.covariance().tobytes()
    assert result.correlation().tobytes() == expected.correlation().tobytes()
    reverse = co_moments(mixed.iloc[::-1], columns)
    assert reverse == expected


def test_missing_cells_drop_a_record_from_its_pairs_alone(mixed: pd.DataFrame) -> None:
    columns = list(mixed)
    moments = co_moments(mixed, columns)
    assert moments.n == len(mixed)
    assert moments.sums["x"].n == mixed["x"].count()
    assert moments.pairs["x", "count"].n == mixed[["x", "count"]].notna().all(axis=1).sum()
    values = mixed.astype("float64")
    present = values.notna().astype(int)
    n = (present.T @ present).to_numpy()
    # pandas divides by n - 1 wherever a cell is missing, whatever ddof says.
    expected = values.cov(ddof=1) * (n - 1) / n
    np.testing.assert_allclose(moments.covariance(), expected, rtol=1e-6)
    # pandas has no correlation for a constant column, and loses the smallest numbers.
    values["small"] *= 1e300
    expected = values.corr().fillna(0.0)
    expected.loc["constant", "constant"] = 1.0
    np.testing.assert_allclose(moments.correlation(), expected, rtol=1e-6)


def test_pairs_without_a_common_record() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan, np.nan], "y": [np.nan, np.nan, 3.0, 5.0]})
    moments = co_moments(frame, ["x", "y"])
    np.testing.assert_array_equal(moments.covariance(), [[0.25, np.nan], [np.nan, 1.0]])
    np.testing.assert_array_equal(moments.correlation(), np.eye(2))


def test_parts_add_up_and_one_column_will_do() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": [0.0, 1.0, 0.0]})
    whole = co_moments(frame, ["x", "y"])
    assert isinstance(whole, CoMoments)
    assert co_moments(frame[:1], ["x", "y"]) + co_moments(frame[1:], ["x", "y"]) == whole
    one = co_moments(frame, ["y"])
    assert one.correlation().tolist() == [[1.0]]
    assert one.covariance().tolist() == [[2 / 9]]


def test_infinite_values_are_named_and_counted(scheduler: str) -> None:
    frame = pd.DataFrame({"x": [1.0, np.inf, 2.0, -np.inf], "y": 1.0, "z": [np.inf, 1.0, 2.0, 3.0]})
    for each in (frame, dd.from_pandas(frame, npartitions=3)):
        with pytest.raises(ValueError, match=r"columns: 'x' \(2\), 'z' \(1\)\. They have no"):
            co_moments(each, ["x", "y", "z"])
