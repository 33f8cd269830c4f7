"""Exact sums against Python's fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdc_dask.kernels.exact import ExactSum, exact_products, exact_sum

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite, max_size=30))
def test_sums_are_exact(values: list[float]) -> None:
    sums = exact_sum(np.array(values, float))
    assert sums.n == len(values)
    assert Fraction(sums.total, 2**1074) == sum(map(Fraction, values))
    assert Fraction(sums.squares, 2**2148) == sum(Fraction(value) ** 2 for value in values)


@given(st.lists(finite, min_size=1, max_size=30), st.integers(0, 30))
def test_parts_add_up_to_the_whole(values: list[float], cut: int) -> None:
    array = np.array(values, float)
    assert exact_sum(array[:cut]) + exact_sum(array[cut:]) == exact_sum(array)
    assert exact_sum(array[::-1]) == exact_sum(array)


@given(st.lists(finite, min_size=1, max_size=20))
def test_moments_are_correctly_rounded(values: list[float]) -> None:
    sums = exact_sum(np.array(values, float))
    mean = sum(map(Fraction, values)) / len(values)
    assert sums.mean == float(mean)
    variance = sum((Fraction(value) - mean) ** 2 for value in values) / len(values)
    if variance == 0:
        assert sums.deviation == 0
    elif 1e-300 < variance < 1e300:
        assert sums.deviation == pytest.approx(math.sqrt(float(variance)), rel=1e-15)


@pytest.mark.parametrize("scale", [1e-320, 1e-200, 1.0, 1e200, 5e307])
def test_deviation_of_extreme_values(scale: float) -> None:
    values = np.array([-3.0, -1.0, 1.0, 3.0]) * scale
    assert exact_sum(values).deviation == pytest.approx(math.sqrt(5) * scale, rel=1e-3)


def test_offset_does_not_drown_the_spread() -> None:
    rng = np.random.default_rng(0)
    small = np.round(rng.normal(size=10_000) * 2**20) / 2**20
    assert exact_sum(2.0**30 + small).deviation == exact_sum(small).deviation


def test_nothing_adds_nothing() -> None:
    assert exact_sum(np.empty(0)) + ExactSum() == ExactSum(0, 0, 0)


@given(st.lists(st.tuples(finite, finite), max_size=30), st.integers(0, 30))
def test_sums_of_products_are_exact(pairs: list[tuple[float, float]], cut: int) -> None:
    first, second = np.array(pairs, float).reshape(-1, 2).T
    products = exact_products(first, second)
    assert Fraction(products, 2**2148) == sum(Fraction(x) * Fraction(y) for x, y in pairs)
    assert products == exact_products(second[::-1], first[::-1])
    assert products == sum(exact_products(first[part], second[part]) for part in cuts(cut))
    assert exact_products(first, first) == exact_sum(first).squares


def cuts(at: int) -> list[slice]:
    return [slice(None, at), slice(at, None)]


@pytest.mark.parametrize("scale", [5e-324, 1e-310, 2.0**-1022, 1e-160, 1.0, 1e160, 1e308])
@pytest.mark.parametrize("other", [-5e-324, -1.0, 1.7e308])
def test_products_of_extreme_values(scale: float, other: float) -> None:
    first = np.array([1.0, -0.9999999999999999, 0.5, 0.0, -0.0, 1 / 3]) * scale
    second = np.array([1.0, 1.0, -0.9999999999999999, 1.0, -1.0, 0.25]) * other
    expected = sum(Fraction(x) * Fraction(y) for x, y in zip(first, second, strict=True))
    assert Fraction(exact_products(first, second), 2**2148) == expected


def test_products_of_strided_columns_and_of_none() -> None:
    table = np.arange(12.0).reshape(4, 3)
    assert exact_products(table[:, 0], table[:, 2]) == int(table[:, 0] @ table[:, 2]) << 2148
    assert exact_products(np.empty(0), np.empty(0)) == 0
    with pytest.raises(ValueError, match="of 4, 3"):
        exact_products(table[:, 0], table[0])


@given(st.integers(0, 2**32), st.integers(-1060, 1000), st.integers(0, 40))
def test_values_of_similar_size_are_added_exactly(seed: int, power: int, width: int) -> None:
    # As many as fill two runs of the kernel, with extreme mantissas, signs and zeros among them.
    rng = np.random.default_rng(seed)
    mantissas = rng.integers(2**52, 2**53, 600)
    mantissas[rng.random(600) < 0.3] = 2**53 - 1
    mantissas[rng.random(600) < 0.1] = 0
    signs = rng.choice([-1, 1], 600) if seed % 2 else np.ones(600, np.int64)
    powers = np.minimum(power + rng.integers(0, width + 1, 600), 1023) - 52
    values = np.ldexp((signs * mantissas).astype(float), powers)
    sums = exact_sum(values)
    assert Fraction(sums.total, 2**1074) == sum(map(Fraction, values.tolist()))
    assert Fraction(sums.squares, 2**2148) == sum(Fraction(v) ** 2 for v in values.tolist())
