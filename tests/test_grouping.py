"""Groups of columns: published examples, and what must always hold."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, combinations, product

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdc_dask import grouping

ANGLES = np.pi / 20 * np.array([1, 3, 5, 7, 9])
WATER = ["PH-E", "PH-P", "PH-D", "DQO-E", "COND-P", "COND-D", "DBO-S", "SS-S", "SED-S"]


@pytest.fixture
def sphere() -> pd.DataFrame:
    """Nin's example of three uncorrelated attributes, each of them three times."""
    points = np.array(
        [
            (np.cos(phi) * np.cos(theta), np.cos(phi) * np.sin(theta), np.sin(phi))
            for theta, phi in product(ANGLES, ANGLES)
        ]
    )
    signs = np.array(list(product([1, -1], repeat=3)))
    points = (points[:, None, :] * signs).reshape(-1, 3)
    assert len(points) == 200
    return pd.DataFrame(np.tile(points, 3), columns=[f"a{i}" for i in range(1, 10)])


def random_frame(seed: int, columns: int, *, factors: int = 3, n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, factors)) @ rng.normal(size=(factors, columns))
    return pd.DataFrame(values + 0.3 * rng.normal(size=values.shape)).rename(columns="c{}".format)


def inner_sum(frame: pd.DataFrame, groups: Sequence[Sequence[str]]) -> float:
    """Sum of absolute correlations within groups, by pandas."""
    strength = frame.corr().abs()
    return sum(strength.loc[a, b] for group in groups for a, b in combinations(group, 2))


def partitions_of(columns: list[str], sizes: list[int]) -> Iterator[list[list[str]]]:
    if not sizes:
        yield []
        return
    for group in combinations(columns, sizes[0]):
        rest = [column for column in columns if column not in group]
        yield from ([list(group), *others] for others in partitions_of(rest, sizes[1:]))


def test_individual_columns_stand_alone() -> None:
    assert grouping.individual(["b", "a", 3]) == [["b"], ["a"], [3]]
    assert grouping.individual(pd.Index(["x"])) == [["x"]]


def test_spheres_as_published(sphere: pd.DataFrame) -> None:
    columns = list(sphere)
    assert grouping.correlated(sphere, columns, 3) == [columns[i::3] for i in range(3)]
    assert grouping.spread(sphere, columns, 3) == [columns[:3], columns[3:6], columns[6:]]


def test_water_treatment_as_published(reference: Callable[[str], pd.DataFrame]) -> None:
    water = reference("water_treatment")
    for data in (water, water.dropna()):
        assert grouping.correlated(data, WATER, 3) == [WATER[:3], WATER[3:6], WATER[6:]]
        assert grouping.spread(data, WATER, 3) == [WATER[i::3] for i in range(3)]


def test_census_leaves_over_the_weight(census: pd.DataFrame) -> None:
    columns = list(census)
    groups = grouping.correlated(census, columns, 4)
    assert groups == [
        ["AGI", "FEDTAX", "STATETAX", "TAXINC"],
        ["EMCONTRB", "PTOTVAL", "POTHVAL", "INTVAL"],
        ["PEARNVAL", "FICA", "WSALVAL", "ERNVAL"],
        ["AFNLWGT"],
    ]
    assert grouping.correlated(census, columns, 4, leftover="drop") == groups[:-1]


@pytest.mark.long_on_cluster
@pytest.mark.parametrize("npartitions", [1, 7, 40])
def test_dask_equals_pandas(scheduler: str, npartitions: int) -> None:
    frame = random_frame(0, 8, n=300)
    frame.loc[::7, "c3"] = np.nan
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    for group, leftover in product((grouping.correlated, grouping.spread), grouping.LEFTOVERS):
        expected = group(frame, list(frame), 3, leftover=leftover)
        assert group(lazy, list(frame), 3, leftover=leftover) == expected
        assert group(frame.iloc[::-1], list(frame), 3, leftover=leftover) == expected


@settings(max_examples=30)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 3), st.data())
def test_groups_are_of_the_size_asked_for(
    columns: int, size: int, seed: int, data: st.DataObject
) -> None:
    frame = random_frame(seed, columns, factors=2, n=12)
    names = data.draw(st.permutations(list(frame)))
    size = min(size, columns)
    number, rest = divmod(columns, size)
    for group in (grouping.correlated, grouping.spread):
        whole = group(frame, names, size)
        assert [len(each) for each in whole] == [size] * number + [rest] * (rest > 0)
        assert sorted(chain.from_iterable(whole)) == sorted(names)
        some = group(frame, names, size, leftover="drop")
        assert [len(each) for each in some] == [size] * number
        assert len(set(chain.from_iterable(some))) == number * size
        if not rest:
            assert some == whole


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("leftover", grouping.LEFTOVERS)
def test_groups_are_about_the_best(seed: int, leftover: str) -> None:
    frame = random_frame(seed, 8)
    columns = list(frame)
    sizes = [3, 3, 2] if leftover == "group" else [3, 3]
    best = max(inner_sum(frame, groups) for groups in partitions_of(columns, sizes))
    groups = grouping.correlated(frame, columns, 3, leftover=leftover)
    assert 0.97 * best <= inner_sum(frame, groups) <= best + 1e-9


@pytest.mark.parametrize("seed", range(3))
def test_places_of_spread_groups_are_correlated(seed: int) -> None:
    frame = random_frame(seed, 8)
    columns = list(frame)
    groups = grouping.spread(frame, columns, 3)
    # The two larger sets have a column in the smaller group, too, and come first.
    sets = [[group[place] for group in groups if place < len(group)] for place in range(3)]
    assert [len(each) for each in sets] == [3, 3, 2]
    assert [sorted(each) for each in sets] == sets  # the names sort as the columns do
    best = max(inner_sum(frame, some) for some in partitions_of(columns, [3, 3, 2]))
    assert inner_sum(frame, sets) >= 0.97 * best


def test_the_sign_of_a_correlation_does_not_count() -> None:
    frame = random_frame(1, 6)
    turned = frame * [1, -1, 1, -1, -1, 1]
    for group in (grouping.correlated, grouping.spread):
        assert group(turned, list(frame), 2) == group(frame, list(frame), 2)


def test_ties_go_to_the_first_columns() -> None:
    frame = pd.DataFrame({name: [1.0, 2.0, 4.0] for name in "dabc"})
    assert grouping.correlated(frame, [*"dabc"], 2) == [["d", "a"], ["b", "c"]]
    assert grouping.correlated(frame, [*"dabc"], 3, leftover="drop") == [["d", "a", "b"]]
    assert grouping.spread(frame, [*"dabc"], 2) == [["d", "b"], ["a", "c"]]


def test_constant_and_incomplete_columns() -> None:
    x = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    frame = pd.DataFrame({"c": 7, "x": x, "e": np.nan, "y": np.where(x == 3, np.nan, 2 * x)})
    assert grouping.correlated(frame, list(frame), 2) == [["c", "e"], ["x", "y"]]
    assert grouping.correlated(frame, list(frame), 2, leftover="drop") == [["c", "e"], ["x", "y"]]
    assert grouping.correlated(frame, ["c", "x", "y"], 2, leftover="drop") == [["x", "y"]]


def test_sizes_at_both_ends() -> None:
    frame = random_frame(2, 5)
    columns = list(frame)
    for group in (grouping.correlated, grouping.spread):
        assert group(frame, columns, 1) == grouping.individual(columns)
        assert group(frame, columns, np.int64(5)) == [columns]


def test_arguments_are_checked() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [2.0, 1.0], "t": ["a", "b"], "i": [1.0, np.inf]})
    for group in (grouping.correlated, grouping.spread):
        for size in (0, 3, -1):
            with pytest.raises(ValueError, match=rf"size must be from 1 to 2, .*received {size}\."):
                group(frame, ["x", "y"], size)
        for size in (1.5, "2", True, None):
            with pytest.raises(TypeError, match="size must be a whole number of at least 1"):
                group(frame, ["x", "y"], size)
        with pytest.raises(ValueError, match="leftover must be one of 'group', 'drop', received"):
            group(frame, ["x", "y"], 1, leftover="keep")
        with pytest.raises(KeyError, match="does not have: 'z'"):
            group(frame, ["x", "z"], 1)
        with pytest.raises(ValueError, match="names columns more than once: 'x'"):
            group(frame, ["x", "y", "x"], 1)
        with pytest.raises(TypeError, match="'t' has dtype"):
            group(frame, ["x", "t"], 1)
        with pytest.raises(TypeError, match="columns must be a list"):
            group(frame, "x", 1)
        with pytest.raises(TypeError, match="one list of names, received a list of lists"):
            group(frame, [["x"], ["y"]], 1)
        with pytest.raises(ValueError, match=r"infinite values in columns: 'i' \(1\)"):
            group(frame, ["x", "i"], 1)
    with pytest.raises(ValueError, match="columns is empty"):
        grouping.individual([])
    with pytest.raises(ValueError, match="more than once"):
        grouping.individual(["x", "x"])
    with pytest.raises(TypeError, match="must name columns, received list for a name"):
        grouping.individual([["x"], ["y"]])
