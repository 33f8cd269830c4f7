"""Exact sums against Python's fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdc_dask.kernels.exact import ExactSum, exact_sum

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
