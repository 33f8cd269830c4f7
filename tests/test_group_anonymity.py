"""Anonymity by the number of known groups, against pandas, fractions and published figures."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask import grouping
from sdc_dask.risk.groups import expected_anonymity, group_anonymity

GROUPS = [["region", "sex"], ["age"], ["household", "occupation"], ["rent", "interview"]]


@pytest.fixture
def circle() -> pd.DataFrame:
    """Nin's example of two uncorrelated attributes, each of them twice."""
    angles = np.pi / 20 * np.array([1, 3, 5, 7, 9])
    x = np.concatenate([np.cos(angles), np.cos(angles), -np.cos(angles), -np.cos(angles)])
    y = np.concatenate([np.sin(angles), -np.sin(angles), np.sin(angles), -np.sin(angles)])
    return pd.DataFrame({"a1": x, "a2": y, "a3": x, "a4": y})


def distinct(m: int, n: int) -> Fraction:
    """Return the expected number of distinct ones of n draws from m, without rounding."""
    return m * (1 - (1 - Fraction(1, m)) ** n)


@pytest.mark.long_on_cluster
@pytest.mark.parametrize("npartitions", [1, 7])
def test_classes_equal_pandas(
    scheduler: str, npartitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sdc_dask.risk.groups.PARTITIONS_A_BUCKET", 3)
    frame = sdc_dask.datasets.survey(3_000, npartitions=npartitions)
    pandas = frame.compute()
    result = group_anonymity(pandas, GROUPS, k=4)
    assert group_anonymity(frame, GROUPS, k=4) == result
    assert (result.rows, result.k) == (3_000, 4)
    assert result.groups == tuple(tuple(group) for group in GROUPS)
    for known in range(1, 5):
        columns = [column for group in GROUPS[:known] for column in group]
        sizes = pandas.groupby(columns, dropna=False, observed=True).size()
        assert result.classes[known - 1] == len(sizes)
        assert result.k_min[known - 1] == sizes.min()
        assert result.k_mean[known - 1] == 3_000 / len(sizes)
        assert pandas.sdc.anonymity(columns).classes == len(sizes)


def test_circle_as_published(circle: pd.DataFrame) -> None:
    columns = list(circle)
    correlated = grouping.correlated(circle, columns, 2)
    assert correlated == [["a1", "a3"], ["a2", "a4"]]
    masked = circle.sdc.microaggregate(correlated, 2)
    assert circle.sdc.sse(masked).sse == 0
    assert group_anonymity(masked, correlated).k_mean == (2, 1)
    spread = grouping.spread(circle, columns, 2)
    assert spread == [["a1", "a2"], ["a3", "a4"]]
    masked = circle.sdc.microaggregate(spread, 2)
    assert circle.sdc.sse(masked).sse > 0
    assert group_anonymity(masked, spread).k_mean == (2, 2)


@pytest.mark.parametrize(("k", "first"), [(10, 10.0), (15, 15.2), (20, 20.0), (25, 25.33)])
def test_water_treatment_as_published(
    reference: Callable[[str], pd.DataFrame], k: int, first: float
) -> None:
    water = reference("water_treatment").dropna().reset_index(drop=True)
    assert len(water) == 380
    columns = ["PH-E", "PH-P", "PH-D", "DQO-E", "COND-P", "COND-D", "DBO-S", "SS-S", "SED-S"]
    found = []
    for group in (grouping.correlated, grouping.spread):
        groups = group(water, columns, 3)
        masked = water.sdc.microaggregate(groups, k, blocking=None)
        found.append(group_anonymity(masked, groups, k))
        assert found[-1].k_mean[0] == pytest.approx(first, abs=0.005)
        assert found[-1].k_min[0] >= k
    correlated, spread = found
    # Groups that are correlated with each other keep more records equal.
    assert spread.k_mean[1] > correlated.k_mean[1] + 0.1
    assert spread.k_mean[2] > correlated.k_mean[2]
    assert spread.k_mean[1] > spread.expected[1]


def test_expected_anonymity_as_published() -> None:
    result = expected_anonymity(380, 25, 2)
    assert 1.915 <= result.low <= result.high <= 1.918
    assert 1.915 <= result.expected <= 1.918
    assert result.expected == pytest.approx(float(380 / distinct(256, 380)), rel=1e-14)


@pytest.mark.parametrize("n", [1, 2, 7, 50, 333])
@pytest.mark.parametrize("k", [1, 3, 10])
@pytest.mark.parametrize("r", [1, 2, 5])
def test_expected_anonymity_is_exact(n: int, k: int, r: int) -> None:
    m = math.ceil(n / k) ** r
    expected = distinct(m, n)
    assert expected_anonymity(n, k, r).expected == pytest.approx(float(n / expected), rel=1e-13)
    # What the docstring says of the bounds: an excess from 0 to 1/e, and not from 0.1839.
    excess = float(expected) + m * math.expm1(-n / m)
    assert -1e-9 <= excess <= 1 / math.e + 1e-9


def test_published_bounds_hold_where_draws_are_as_many_as_records() -> None:
    for n in (2, 10, 100, 1_000):
        result = expected_anonymity(n, 1, 1)  # m = n
        assert result.low <= result.expected <= result.high
    result = expected_anonymity(100, 10, 3)  # m = 10 n
    assert result.expected > result.high


def test_expected_anonymity_of_extremes() -> None:
    assert expected_anonymity(1_000, 1_000, 3).expected == 1_000
    assert expected_anonymity(1_000, 5_000, 1).expected == 1_000
    assert expected_anonymity(10**9, 3, 60).expected == 1  # 10**511 possible records
    assert expected_anonymity(10**9, 3, 60).high == pytest.approx(1)
    assert expected_anonymity(10**9, 10, 2).expected == pytest.approx(1 + 5e-8, rel=1e-10)
    values = [expected_anonymity(10_000, 100, r).expected for r in range(1, 8)]
    assert values == sorted(values, reverse=True)
    assert type(values[0]) is float


def test_data_without_correlation_is_as_expected() -> None:
    rng = np.random.default_rng(0)
    n, k = 20_000, 100
    masked = pd.DataFrame({name: rng.permutation(np.arange(n) // k) for name in "abc"})
    result = group_anonymity(masked, [["a"], ["b"], ["c"]], k)
    assert result.k_min[0] == k
    assert result.k_mean == pytest.approx(result.expected, rel=0.01)


def test_result_prints_and_converts() -> None:
    masked = pd.DataFrame({"a": [1, 1, 2, 2], "b": ["x", "x", "x", "y"], "c": 0.0})
    result = group_anonymity(masked, [["a"], ["b", "c"]])
    assert result.expected is None
    assert result.to_frame().to_dict("list") == {
        "known": [1, 2],
        "classes": [2, 3],
        "k_min": [2, 1],
        "k_mean": [2.0, 4 / 3],
    }
    assert "expected" not in repr(result)
    known = json.loads(json.dumps(result.to_dict()))
    assert known["k_mean"] == [2.0, 4 / 3]
    assert known["groups"] == [["a"], ["b", "c"]]
    asked = group_anonymity(masked, [["a"], ["b", "c"]], k=np.int64(2))
    assert asked.to_frame()["expected"].tolist() == list(asked.expected)
    assert "4 records in 2 groups, k = 2" in repr(asked)


def test_arguments_are_checked() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2]})
    for groups in (["a", "b"], "a", [["a"], "b"], None, frame):
        with pytest.raises(TypeError, match="groups must be a list of lists of column names"):
            group_anonymity(frame, groups)
    for groups in ([], [[]], [["a"], []]):
        with pytest.raises(ValueError, match="groups is empty or has an empty group"):
            group_anonymity(frame, groups)
    with pytest.raises(KeyError, match=r"groups names columns .* does not have: 'z'"):
        group_anonymity(frame, [["a"], ["z"]])
    with pytest.raises(ValueError, match=r"more than once: 'a'\. A column belongs"):
        group_anonymity(frame, [["a"], ["b", "a"]])
    with pytest.raises(ValueError, match="k must be at least 1, received 0"):
        group_anonymity(frame, [["a"]], k=0)
    with pytest.raises(ValueError, match="the frame has no records"):
        group_anonymity(frame[:0], [["a"]])
    for name, values in (("n", (0, 2, 1)), ("k", (9, 0, 1)), ("r", (9, 2, 0))):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, received 0"):
            expected_anonymity(*values)


def test_dask_reads_the_data_once() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "b": [1, 2, 2, 2], "unused": 0})
    read = []

    def note(part: pd.DataFrame) -> pd.DataFrame:
        read.append(list(part.columns))
        return part

    lazy = dd.from_pandas(frame, npartitions=2).map_partitions(note, meta=frame)
    result = group_anonymity(lazy, [["a"], ["b"]])
    assert result == group_anonymity(frame, [["a"], ["b"]])
    assert len(read) == 2  # once a partition
