"""Data sets: partitioning and projection must not change a value; columns are as documented."""

from __future__ import annotations

import pickle
from typing import Any

import dask
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal

from sdc_dask import datasets
from sdc_dask.datasets import CHUNK_ROWS, panel, survey, uniform

N = CHUNK_ROWS + 5_003


@pytest.fixture(autouse=True)
def _one_thread():
    with dask.config.set(scheduler="synchronous"):
        yield


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    return survey(N, npartitions=1).compute(scheduler="synchronous")


@pytest.fixture(scope="module")
def points() -> pd.DataFrame:
    return uniform(N, 3, npartitions=1).compute(scheduler="synchronous")


# One file whatever the partitions


@pytest.mark.parametrize("npartitions", [7, 20])
def test_partitions_do_not_change_survey(people: pd.DataFrame, npartitions: int) -> None:
    frame = survey(N, npartitions=npartitions)
    assert frame.npartitions == npartitions
    assert_frame_equal(frame.compute(), people)


@pytest.mark.parametrize("npartitions", [7, 20])
def test_partitions_do_not_change_uniform(points: pd.DataFrame, npartitions: int) -> None:
    frame = uniform(N, 3, npartitions=npartitions)
    assert frame.npartitions == npartitions
    assert_frame_equal(frame.compute(), points)


def test_partitions_and_columns_do_not_change_a_panel() -> None:
    whole = panel(70_000, 6, npartitions=1).compute(scheduler="synchronous")
    assert_frame_equal(panel(70_000, 6, npartitions=7).compute(), whole)
    assert_frame_equal(panel(70_000, 6)[["t4", "t1"]].compute(), whole[["t4", "t1"]])


@pytest.mark.parametrize("make", [lambda n: survey(n), lambda n: uniform(n, 3)])
def test_shorter_file_is_the_beginning_of_a_longer_one(make: Any) -> None:
    longer = make(N).compute()
    assert_frame_equal(make(N - 100).compute(), longer.iloc[:-100])
    assert_frame_equal(make(5).compute(), longer.iloc[:5])


def test_fewer_uniform_columns_are_the_first_of_more(points: pd.DataFrame) -> None:
    assert_frame_equal(uniform(N, 2).compute(), points[["x0", "x1"]])


def test_uniform_values_come_from_the_documented_streams(points: pd.DataFrame) -> None:
    second = np.random.SeedSequence([0, 1]).spawn(3)[2]
    expected = np.random.Generator(np.random.PCG64(second)).random(N - CHUNK_ROWS)
    np.testing.assert_array_equal(points["x2"][CHUNK_ROWS:], expected * 20_000.0 - 10_000.0)


def test_chunks_and_columns_have_different_streams(points: pd.DataFrame) -> None:
    tail = N - CHUNK_ROWS
    starts = [points[c].to_numpy()[:tail] for c in points]
    starts += [points[c].to_numpy()[CHUNK_ROWS:] for c in points]
    correlations = np.corrcoef(starts)[~np.eye(6, dtype=bool)]
    assert abs(correlations).max() < 0.08


# Lazy frame


@pytest.mark.parametrize("npartitions", [1, 7, 64])
def test_divisions_are_known_and_true(npartitions: int) -> None:
    frame = survey(N, npartitions=npartitions)[["age"]]
    assert frame.known_divisions
    assert frame.divisions[0] == 0
    assert frame.divisions[-1] == N - 1
    parts = dask.compute(*frame.to_delayed())
    assert [part.index[0] for part in parts] == list(frame.divisions[:-1])
    sizes = [len(part) for part in parts]
    assert sum(sizes) == N
    assert max(sizes) - min(sizes) <= 1


def test_index_counts_the_rows(people: pd.DataFrame, points: pd.DataFrame) -> None:
    pd.testing.assert_index_equal(people.index, pd.RangeIndex(N))
    pd.testing.assert_index_equal(points.index, pd.RangeIndex(N))


@pytest.mark.parametrize(
    ("n", "npartitions"), [(1, 1), (2**18, 1), (2**18 + 1, 2), (10 * 2**18, 10)]
)
def test_default_partitions(n: int, npartitions: int) -> None:
    assert survey(n).npartitions == npartitions
    assert uniform(n, 1).npartitions == npartitions


def test_a_partition_a_row() -> None:
    assert_frame_equal(uniform(4, 2, npartitions=4).compute(), uniform(4, 2).compute())


def test_nothing_is_made_before_compute(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    real = datasets._stream
    monkeypatch.setattr(datasets, "_stream", lambda *where: drawn.append(where) or real(*where))
    frame = uniform(10**12, 2, npartitions=10), survey(10**12, npartitions=10)
    assert not drawn
    assert len(frame[0].columns) == 2
    uniform(10, 1).compute()
    assert drawn == [(0, 0, 0)]


@pytest.mark.parametrize("convert", [True, False])
def test_computed_dtypes_are_those_of_the_meta(people: pd.DataFrame, convert: bool) -> None:
    with dask.config.set({"dataframe.convert-string": convert}):
        for frame in (survey(100, npartitions=3), uniform(100, 2, npartitions=3)):
            computed = frame.compute()
            assert_series_equal(computed.dtypes, frame.dtypes)
            assert computed.index.dtype == frame.index.dtype
            assert list(computed.columns) == list(frame.columns)
        assert_series_equal(survey(100).compute().dtypes, people.dtypes)


def test_dtypes_are_those_documented(people: pd.DataFrame) -> None:
    expected = {
        "person": pd.StringDtype("pyarrow"),
        "region": pd.CategoricalDtype(people["region"].cat.categories),
        "sex": pd.StringDtype("pyarrow"),
        "occupation": pd.StringDtype("pyarrow"),
        "interview": np.dtype("datetime64[us]"),
        "household": pd.Int64Dtype(),
        "age": np.dtype("int64"),
        "hours": np.dtype("float64"),
        "income": np.dtype("float64"),
        "tax": np.dtype("float64"),
        "wealth": np.dtype("float64"),
        "rent": np.dtype("float64"),
    }
    assert people.dtypes.to_dict() == expected


def test_equal_arguments_give_equal_names_and_graphs_travel() -> None:
    assert survey(100)._name == survey(100)._name
    assert survey(100)._name != survey(100, seed=1)._name
    travelled = pickle.loads(pickle.dumps(survey(100)))
    assert_frame_equal(travelled.compute(), survey(100).compute())


# Projection


@pytest.mark.parametrize("column", list(survey(1).columns))
def test_survey_column_alone_is_the_same(people: pd.DataFrame, column: str) -> None:
    assert_series_equal(survey(N, npartitions=3)[column].compute(), people[column])


def test_projection_keeps_the_order_asked_for(people: pd.DataFrame, points: pd.DataFrame) -> None:
    assert_frame_equal(survey(N)[["tax", "age"]].compute(), people[["tax", "age"]])
    assert_frame_equal(uniform(N, 3)[["x2", "x0"]].compute(), points[["x2", "x0"]])
    assert survey(N)[[]].compute().shape == (N, 0)
    assert len(survey(N)) == N


def test_projection_makes_only_what_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    streams = set()
    real = datasets._stream
    monkeypatch.setattr(datasets, "_stream", lambda *where: streams.add(where[2]) or real(*where))
    names = list(survey(1).columns)
    survey(10)["region"].compute()
    assert {names[i] for i in streams} == {"region"}
    streams.clear()
    survey(10)["tax"].compute()
    assert {names[i] for i in streams} == {"age", "hours", "income", "tax"}
    streams.clear()
    uniform(10, 5)["x3"].compute()
    assert streams == {3}


# Seed and values


def test_seed_changes_every_random_column(people: pd.DataFrame, points: pd.DataFrame) -> None:
    other = survey(N, seed=1).compute()
    changed = [c for c in people.columns if not people[c].equals(other[c])]
    assert changed == [c for c in people.columns if c != "person"]
    assert (uniform(N, 3, seed=1).compute() != points).all(axis=None)


def test_uniform_fills_its_range() -> None:
    values = uniform(N, 2, low=-1.0, high=3.0).compute()
    assert -1.0 <= values.min().min() < -0.999
    assert 2.999 < values.max().max() <= 3.0
    np.testing.assert_allclose(values.mean(), 1.0, atol=0.03)
    np.testing.assert_allclose(values.std(), 4.0 / np.sqrt(12.0), rtol=0.01)


def test_persons_are_unique(people: pd.DataFrame) -> None:
    assert people["person"].is_unique
    assert people["person"].iloc[12] == "P000000012"


def test_persons_beyond_nine_digits() -> None:
    rows = datasets._survey_rows(10**9 - 2, 10**9 + 2, columns=["person"], seed=0)
    assert rows["person"].tolist() == [
        "P999999998",
        "P999999999",
        "P1000000000",
        "P1000000001",
    ]


def test_regions_are_skewed_and_known(people: pd.DataFrame) -> None:
    frame = survey(10)
    assert frame["region"].cat.known
    assert len(frame["region"].cat.categories) == 12
    counts = people["region"].value_counts()
    assert counts.min() > 0
    assert counts["Capital"] == counts.max() > 20 * counts["Border"]


def test_amounts_are_plausible(people: pd.DataFrame) -> None:
    assert people["age"].min() == 16
    assert people["age"].max() == 95
    assert set(people["sex"]) == {"female", "male"}
    assert people["interview"].between("2025-01-01", "2025-12-31").all()
    assert (people["income"] >= 0).all()
    assert people["tax"].between(0, people["income"]).all()
    for whole in ("income", "tax", "wealth"):
        assert (people[whole] % 1 == 0).all(), whole
    assert people["income"].skew() > 2
    assert 0.1 < (people["wealth"] < 0).mean() < 0.5
    assert people["wealth"].kurt() > 100
    assert people["income"].corr(people["tax"]) > 0.9
    assert people["income"].corr(people["hours"]) > 0.4
    assert people["rent"].corr(people["income"]) > 0.5


def test_ties(people: pd.DataFrame) -> None:
    assert people["age"].nunique() == 80
    assert people["hours"].nunique() <= 15
    common = people["hours"].value_counts(normalize=True)
    assert common[[0.0, 37.5, 40.0]].min() > 0.1


def test_missing_values(people: pd.DataFrame) -> None:
    missing = people.isna().mean()
    assert set(missing[missing > 0].index) == {"occupation", "household", "rent"}
    assert 0.025 < missing["rent"] < 0.035
    assert 0.015 < missing["household"] < 0.025
    pd.testing.assert_series_equal(
        people["occupation"].isna(), people["hours"] == 0, check_names=False
    )


def test_households_are_small_and_do_not_cross_chunks(people: pd.DataFrame) -> None:
    sizes = people["household"].value_counts()
    assert 1.5 < sizes.mean() < 3.0
    first, second = people["household"][:CHUNK_ROWS], people["household"][CHUNK_ROWS:]
    assert first.max() < second.min()


# Wrong arguments

BOTH = [lambda **k: survey(**{"n": 10, **k}), lambda **k: uniform(**{"n": 10, "d": 2, **k})]


@pytest.mark.parametrize("make", BOTH, ids=["survey", "uniform"])
@pytest.mark.parametrize(
    ("argument", "error", "says"),
    [
        ({"n": 0}, ValueError, "n must be at least 1; received 0.*Give the number of rows"),
        ({"n": -3}, ValueError, "n must be at least 1; received -3"),
        ({"n": True}, TypeError, "n must be an integer; received True of type bool"),
        ({"n": 10.0}, TypeError, "n must be an integer; received 10.0 of type float"),
        ({"n": "10"}, TypeError, "n must be an integer; received '10' of type str"),
        ({"n": None}, TypeError, "n must be an integer; received None"),
        ({"npartitions": 0}, ValueError, "npartitions must be at least 1; received 0"),
        ({"npartitions": 11}, ValueError, "received npartitions=11 for n=10.*fewer"),
        ({"npartitions": 2.0}, TypeError, "npartitions must be an integer; received 2.0"),
        ({"npartitions": False}, TypeError, "npartitions must be an integer; received False"),
        ({"seed": -1}, ValueError, "seed must not be negative; received -1.*0 or more"),
        ({"seed": 1.5}, TypeError, "seed must be an integer; received 1.5"),
        ({"seed": None}, TypeError, "seed must be an integer; received None"),
        ({"seed": True}, TypeError, "seed must be an integer; received True"),
    ],
)
def test_wrong_arguments(
    make: Any, argument: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        make(**argument)


@pytest.mark.parametrize(
    ("argument", "error", "says"),
    [
        ({"d": 0}, ValueError, "d must be at least 1; received 0"),
        ({"d": True}, TypeError, "d must be an integer; received True"),
        ({"d": 1.0}, TypeError, "d must be an integer; received 1.0"),
        ({"low": 2.0, "high": 1.0}, ValueError, "received low=2.0 and high=1.0. Exchange"),
        ({"low": 1.0, "high": 1.0}, ValueError, "low must be less than high"),
        ({"low": -1.7e308, "high": 1.7e308}, ValueError, "high - low must be finite"),
        ({"low": float("nan")}, ValueError, "low must be finite; received nan"),
        ({"high": float("inf")}, ValueError, "high must be finite; received inf"),
        ({"low": "0"}, TypeError, "low must be a number; received '0' of type str"),
        ({"high": True}, TypeError, "high must be a number; received True"),
    ],
)
def test_wrong_uniform_arguments(
    argument: dict[str, Any], error: type[Exception], says: str
) -> None:
    with pytest.raises(error, match=says):
        uniform(**{"n": 10, "d": 2, **argument})


def test_numpy_numbers_are_welcome() -> None:
    frame = uniform(
        np.int64(10),
        np.int32(2),
        low=np.float64(0),
        high=1,
        npartitions=np.int8(2),
        seed=np.uint8(3),
    )
    assert_frame_equal(
        frame.compute(), uniform(10, 2, low=0.0, high=1.0, npartitions=2, seed=3).compute()
    )
