"""Ties: on a grid, MDAV and V-MDAV form the groups of exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.grid import centred, exact_count, grid_unit
from sdc_dask.kernels.mdav import mdav, mdav_brute, mdav_indexed, mdav_narrow
from sdc_dask.kernels.vmdav import vmdav, vmdav_brute, vmdav_indexed

Record = list[Fraction]


def square(one: Record, other: Record) -> Fraction:
    return sum(((a - b) ** 2 for a, b in zip(one, other, strict=True)), Fraction(0))


def mean(records: list[Record]) -> Record:
    return [sum(column, Fraction(0)) / len(records) for column in zip(*records, strict=True)]


def farthest(records: list[Record], left: list[int], point: Record) -> int:
    return max(left, key=lambda row: (square(records[row], point), -row))


def nearest(records: list[Record], left: list[int], seed: int, k: int) -> list[int]:
    others = sorted(left, key=lambda row: (row != seed, square(records[row], records[seed]), row))
    return others[:k]


def exact_mdav(values: np.ndarray, k: int) -> list[int]:
    """MDAV as it is written down, in rational numbers; ties go to the lowest row."""
    records = [[Fraction(value) for value in row] for row in values.tolist()]
    labels = [-1] * len(records)
    left = list(range(len(records)))
    label = 0
    while len(left) >= 2 * k:
        turns = 2 if len(left) >= 3 * k else 1
        point = mean([records[row] for row in left])
        for _ in range(turns):
            seed = farthest(records, left, point)
            point = records[seed]
            for row in nearest(records, left, seed, k):
                labels[row] = label
                left.remove(row)
            label += 1
    return [label if each < 0 else each for each in labels]


def exact_vmdav(values: np.ndarray, k: int, gain: int) -> list[int]:
    """V-MDAV as it is written down, in rational numbers; ties go to the lowest row or group."""
    records = [[Fraction(value) for value in row] for row in values.tolist()]
    labels = [-1] * len(records)
    left = list(range(len(records)))
    centre = mean(records)
    groups: list[list[int]] = []
    while len(left) >= k:
        group = nearest(records, left, farthest(records, left, centre), k)
        left = [row for row in left if row not in group]
        while len(group) < 2 * k - 1 and len(left) > 1:
            inner, e = min((square(records[m], records[row]), row) for row in left for m in group)
            outer = min(square(records[e], records[row]) for row in left if row != e)
            if not inner < gain**2 * outer:
                break
            group.append(e)
            left.remove(e)
        groups.append(group)
    for label, group in enumerate(groups):
        for row in group:
            labels[row] = label
    centroids = [mean([records[row] for row in group]) for group in groups]
    for row in left:
        labels[row] = min(range(len(groups)), key=lambda g: (square(centroids[g], records[row]), g))
    return labels


@st.composite
def grids(draw: st.DrawFn) -> np.ndarray:
    """Draw records with many ties: multiples of a power of two, at any place."""
    n, d = draw(st.integers(6, 40)), draw(st.integers(1, 4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = rng.integers(0, draw(st.sampled_from([2, 3, 5, 30, 1000])), (n, d)).astype(float)
    values += draw(st.sampled_from([0, -7, 1_000_003]))
    return values * 2.0 ** draw(st.sampled_from([0, -3, 10]))


def coordinates_of(values: np.ndarray) -> Coordinates:
    low, high, deviation = values.min(axis=0), values.max(axis=0), values.std(axis=0)
    return Coordinates.of(low, high, values.mean(axis=0), deviation, standardize=False)


@settings(max_examples=60, deadline=None)
@given(values=grids(), k=st.integers(2, 5))
def test_mdav_is_exact_on_grids(values: np.ndarray, k: int) -> None:
    expected = exact_mdav(values, k)
    points = coordinates_of(values).points(values)
    assert mdav(points, k).tolist() == expected
    assert mdav_brute(centred(points), k).tolist() == expected
    assert mdav_narrow(centred(points), k).tolist() == expected
    assert mdav_indexed(centred(points), k).tolist() == expected


@settings(max_examples=50, deadline=None)
@given(values=grids(), k=st.integers(2, 5), gain=st.sampled_from([0, 1, 2]))
def test_vmdav_is_exact_on_grids(values: np.ndarray, k: int, gain: int) -> None:
    expected = exact_vmdav(values, k, gain)
    points = coordinates_of(values).points(values)
    assert vmdav(points, k, gain).tolist() == expected
    assert vmdav_brute(centred(points), k, float(gain)).tolist() == expected
    assert vmdav_indexed(centred(points), k, float(gain)).tolist() == expected


@settings(max_examples=40, deadline=None)
@given(values=grids(), k=st.integers(2, 5))
def test_frames_on_grids_have_the_groups_of_exact_arithmetic(values: np.ndarray, k: int) -> None:
    frame = pd.DataFrame(values).rename(columns=str)
    masked = frame.sdc.microaggregate(list(frame), k, standardize=False, blocking=None)
    expected = frame.groupby(exact_mdav(values, k)).transform("mean")
    np.testing.assert_allclose(masked, expected, rtol=1e-12, atol=0)


def test_equal_distances_to_the_centroid_go_to_the_first_row() -> None:
    values = np.array([[2, 0], [1, 2], [2, 0], [0, 1], [2, 1], [0, 1]])
    frame = pd.DataFrame(values, columns=["a", "b"])
    masked = frame.sdc.microaggregate(["a", "b"], 2, standardize=False)
    labels = masked.groupby(["a", "b"], sort=False).ngroup()
    assert labels.tolist() == [0, 1, 0, 1, 2, 2]
    assert exact_mdav(values, 2) == [0, 1, 0, 1, 2, 2]


def test_a_large_grid_is_exact() -> None:
    rng = np.random.default_rng(1)
    values = rng.integers(0, 4, (300, 2)).astype(float)
    points = centred(values)
    assert exact_count(points) > len(values)
    assert mdav_indexed(points, 7).tolist() == exact_mdav(values, 7)


@pytest.mark.parametrize(
    ("points", "unit"),
    [
        ([[1.0], [5.0]], 1),
        ([[-6.0, 4.0], [10.0, 0.0]], 2),
        ([[0.25], [3.0]], 0.25),
        ([[0.1], [3.0]], 0),
        ([[1.0], [2.0**26 + 1]], 0),  # squares are rounded
        ([[1.0], [2.0**25 + 1]], 1),
        ([[7.0], [7.0]], 0),  # no distance at all
        ([[2.0**30], [2.0**30 + 2.0**10]], 2.0**10),
        ([[2.0**70], [2.0**70 + 2.0**20]], 0),  # too far away
        ([[2.0**-600], [0.0]], 0),  # squares vanish
        ([[2.0**600], [0.0]], 0),  # squares are infinite
    ],
)
def test_the_unit_of_a_grid(points: list[list[float]], unit: float) -> None:
    assert grid_unit(np.array(points)) == unit


def test_exact_counts_are_exact() -> None:
    points = centred(np.random.default_rng(2).integers(0, 3_000, (20_000, 2)).astype(float))
    n = exact_count(points)
    assert 10_000 < n < 20_000
    kept = points[:n]
    found = ((n * kept - kept.sum(axis=0)) ** 2).sum(axis=1)
    whole = kept.astype(int)
    exact = [
        (n * a - s) ** 2 for a, s in zip(whole.T.astype(object), whole.sum(axis=0), strict=True)
    ]
    assert found.tolist() == [float(each) for each in sum(exact)]
    assert all(int(each) == other for each, other in zip(found, sum(exact), strict=True))


def test_other_data_is_centred_by_the_mean() -> None:
    values = np.random.default_rng(3).normal(size=(50, 3))
    np.testing.assert_array_equal(centred(values), values - values.mean(axis=0))
    np.testing.assert_array_equal(coordinates_of(values).centre, values.mean(axis=0))
    assert exact_count(values) == 0


def test_the_centre_of_a_grid_is_on_it() -> None:
    values = np.array([[0.0, 10.25, 3.3], [1.0, 10.5, 3.3], [5.0, 19.0, 3.3]])
    # The last column is constant, but not on a grid with the others.
    np.testing.assert_array_equal(coordinates_of(values).centre, values.mean(axis=0))
    centre = coordinates_of(values[:, :2]).centre
    assert (centre % [4, 8] == 0).all()
    assert all(abs(a - b) <= 4 for a, b in zip(centre, values.mean(axis=0), strict=False))


@pytest.mark.parametrize("levels", [2, 5, 40, 100_000])
@pytest.mark.parametrize("d", [1, 3, 10])
def test_kernels_agree_on_grids(levels: int, d: int) -> None:
    # Of the largest, few enough records for exact distances to the centroid are left in the end.
    rng = np.random.default_rng(levels + d)
    points = centred(rng.integers(0, levels, (2_000, d)).astype(float))
    assert (exact_count(points) >= len(points)) == (levels < 100_000)
    for k in (2, 7):
        np.testing.assert_array_equal(mdav_brute(points, k), mdav_indexed(points, k))
        np.testing.assert_array_equal(mdav_brute(points, k), mdav_narrow(points, k))
        np.testing.assert_array_equal(vmdav_brute(points, k, 1.1), vmdav_indexed(points, k, 1.1))
