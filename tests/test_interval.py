"""Interval disclosure: original values near their masked ones, by rank and by width."""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask.engine import ranks
from sdc_dask.kernels.intervals import borders_of, count_cells


@pytest.fixture
def survey() -> pd.DataFrame:
    """Columns of a survey that was made up."""
    columns = ["income", "tax", "wealth", "age", "hours"]
    return sdc_dask.datasets.survey(1_000, seed=1).compute()[columns].astype(float)


def by_rank(original: np.ndarray, masked: np.ndarray) -> float:
    """The definition, record by record: between the masked values within w ranks of the middle."""
    n, order = len(masked), np.sort(masked)
    ranks = np.arange(n)
    shares = []
    for percent in range(1, 11):
        w = n * percent // 100
        hits = 0
        for x, v in zip(original, masked, strict=True):
            middle = ranks[order == v].mean()
            near = np.append(order[np.abs(ranks - middle) <= w], v)
            hits += near.min() <= x <= near.max()
        shares.append(100 * hits / n)
    return float(np.mean(shares))


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(1, 150),
    levels=st.integers(1, 40),
    noise=st.integers(0, 12),
    npartitions=st.integers(1, 5),
    borders=st.sampled_from([1, 20, 1_000]),
    seed=st.integers(0, 99),
)
def test_ranks_as_defined(
    n: int, levels: int, noise: int, npartitions: int, borders: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    x = rng.integers(0, levels, n).astype(float)
    v = x + rng.integers(-noise, noise + 1, n)
    original, masked = pd.DataFrame({"x": x}), pd.DataFrame({"x": v})
    expected = original.sdc.interval_disclosure(masked)
    assert expected.interval == pytest.approx(by_rank(x, v))
    with pytest.MonkeyPatch.context() as patch:
        # With few borders, many ranks are not known before the last pass.
        patch.setattr(ranks, "BORDERS", borders)
        patch.setattr("sdc_dask.engine.splitters.SAMPLES_A_RANGE", 1)
        lazy = dd.from_pandas(original, npartitions=npartitions)
        other = dd.from_pandas(masked, npartitions=npartitions)
        assert lazy.sdc.interval_disclosure(other) == expected


any_finite = st.floats(allow_nan=False, allow_infinity=False)


@given(
    borders=st.lists(any_finite | st.sampled_from([0.0, -1e308, 1.7e308]), max_size=40),
    others=st.lists(any_finite | st.floats(-1, 1), max_size=40),
    shift=st.sampled_from([0.0, 1e9, -1e300]),
)
def test_cells_of_values(borders: list[float], others: list[float], shift: float) -> None:
    largest = np.finfo(float).max
    with np.errstate(over="ignore"):
        cut, more = (
            np.clip(np.array(each) + shift, -largest, largest) for each in (borders, others)
        )
    values = np.concatenate([more, cut])
    made = borders_of(cut)
    unique = np.unique(cut)
    assert np.array_equal(made.values, unique)
    below = np.searchsorted(unique, values)
    expected = np.bincount(
        below + np.searchsorted(unique, values, side="right"), minlength=2 * len(unique) + 1
    )
    counts = np.zeros(2 * len(unique) + 1, np.int64)
    count_cells(made, np.sort(values), counts)
    assert np.array_equal(counts, expected)


def test_dask_equals_pandas(scheduler: str, survey: pd.DataFrame) -> None:
    masked = survey.sdc.microaggregate(list(survey), 5)
    expected = survey.sdc.interval_disclosure(masked)
    for npartitions in (1, 5):
        lazy = dd.from_pandas(survey, npartitions=npartitions)
        other = dd.from_pandas(masked, npartitions=npartitions)
        assert lazy.sdc.interval_disclosure(other) == expected


@pytest.mark.parametrize(("p", "published"), [(2, 93.98), (10, 53.28)])
def test_published_rank_swapping_of_census(
    p: float, published: float, census: pd.DataFrame
) -> None:
    found = [
        census.sdc.interval_disclosure(
            census.sdc.rank_swap(list(census), p, random_state=seed)
        ).interval
        for seed in range(3)
    ]
    assert np.mean(found) == pytest.approx(published, abs=3)


def test_all_and_nothing(survey: pd.DataFrame) -> None:
    assert survey.sdc.interval_disclosure(survey).interval == 100
    constant = survey * 0 + survey.mean()
    assert survey.sdc.interval_disclosure(constant).interval == 0
    same = survey.sdc.interval_disclosure(survey * 0 + survey.iloc[0])
    assert same.by_column == {
        name: pytest.approx(100 * (survey[name] == survey[name].iloc[0]).mean()) for name in survey
    }
    # No interval goes beyond the masked values.
    assert survey.sdc.interval_disclosure(survey + 1e9).interval == 0


@pytest.mark.parametrize("method", ["mdav", "vmdav", "pcp", "zscores", "optimal"])
def test_less_is_disclosed_as_k_grows(method: str, survey: pd.DataFrame) -> None:
    groups = [[name] for name in survey] if method == "optimal" else list(survey)
    found = [
        survey.sdc.interval_disclosure(survey.sdc.microaggregate(groups, k, method=method)).interval
        for k in (3, 10, 50, 200)
    ]
    assert (np.diff(found) < 0).all()


def test_less_is_disclosed_as_p_grows(survey: pd.DataFrame) -> None:
    found = [
        survey.sdc.interval_disclosure(survey.sdc.rank_swap(list(survey), p, random_state=0))
        for p in (2, 8, 20, 50)
    ]
    assert (np.diff([each.interval for each in found]) < 0).all()
    # A wider interval discloses more.
    assert all((np.diff(list(each.by_width.values())) > 0).all() for each in found[2:])


def test_exact_ranks_of_many_columns_take_one_pass() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(400, 6)), columns=list("abcdef"))
    masked = frame + rng.normal(size=frame.shape) / 5
    passes = {}
    for columns in (["a"], list(frame)):
        calls = []

        def counted(part: pd.DataFrame, calls: list = calls) -> pd.DataFrame:
            calls.append(1)
            return part

        lazy, other = (dd.from_pandas(each, npartitions=2) for each in (frame, masked))
        other = other.map_partitions(counted, meta=frame.iloc[:0])
        with pytest.MonkeyPatch.context() as patch, dask.config.set(scheduler="sync"):
            patch.setattr(ranks, "BORDERS", 8)
            patch.setattr("sdc_dask.engine.splitters.SAMPLES_A_RANGE", 1)
            found = lazy.sdc.interval_disclosure(other, columns)
        assert found == frame.sdc.interval_disclosure(masked, columns)
        passes[len(columns)] = len(calls) // 2
    assert passes == {1: 4, 6: 4}


def test_width_as_defined(survey: pd.DataFrame) -> None:
    masked = survey.sdc.microaggregate(list(survey), 5)
    near = (survey - masked).abs() <= 0.1 * masked.std()
    result = survey.sdc.interval_disclosure(masked, width=0.1)
    assert result.interval == pytest.approx(100 * near.to_numpy().mean())
    assert result.drisk == pytest.approx(100 * near.all(axis=1).mean())
    assert result.width == 0.1
    lazy = dd.from_pandas(survey, npartitions=4)
    assert lazy.sdc.interval_disclosure(dd.from_pandas(masked, npartitions=4), width=0.1) == result


def test_drisk_is_that_of_sdcmicro() -> None:
    # Of sdcMicro 5.8.1: dRisk(data.frame(a, b), data.frame(c(9, 1, 2, 3), b), k = 0.05) is 0.75.
    frame = pd.DataFrame({"a": [0.0, 1, 2, 3], "b": [0.0, 1, 2, 3]})
    masked = frame.assign(a=[9.0, 1, 2, 3])
    assert frame.sdc.interval_disclosure(masked, width=0.05).drisk == 75
    assert frame.sdc.interval_disclosure(frame, width=0).drisk == 100
    far = frame.assign(b=frame["b"] + 9)
    assert frame.sdc.interval_disclosure(far, width=1).drisk == 0
    wider = [frame.sdc.interval_disclosure(masked, width=w).drisk for w in (0.05, 1, 10)]
    assert wider == [75, 75, 100]


def test_missing_cells_are_left_out() -> None:
    frame = pd.DataFrame({"x": [1.0, np.nan, 3.0, 8.0], "y": [1.0, 2.0, 3.0, 4.0]})
    part = frame.dropna()
    assert (
        frame.sdc.interval_disclosure(frame + 1).by_column["x"]
        == (part.sdc.interval_disclosure(part + 1).by_column["x"])
    )
    with pytest.raises(ValueError, match="'x' has 1 cells that are missing in one frame"):
        frame.sdc.interval_disclosure(frame.fillna(0))


def test_bad_input(survey: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="width must be a number of at least 0"):
        survey.sdc.interval_disclosure(survey, width=-1)
    with pytest.raises(ValueError, match="infinite"):
        survey.sdc.interval_disclosure(survey.replace(survey.iloc[0, 0], np.inf))
    with pytest.raises(ValueError, match="columns without any value: 'x'"):
        empty = pd.DataFrame({"x": [np.nan]})
        empty.sdc.interval_disclosure(empty)
    with pytest.raises(ValueError, match="other rows"):
        survey.sdc.interval_disclosure(survey.iloc[1:])


@pytest.mark.parametrize("passes", [2, 3])
def test_values_that_vanish_between_passes_are_an_error(passes: int) -> None:
    # The first passes sample and count, the third compares; the last one counts exactly.
    frame = pd.DataFrame({"x": np.arange(500.0)})
    calls = {"original": 0, "masked": 0}

    def vanish(part: pd.DataFrame, which: str) -> pd.DataFrame:
        calls[which] += 1
        gone = calls[which] > 2 * (passes if which == "masked" else passes - 2)
        return part.assign(x=part["x"].where(part.index != 7)) if gone else part

    lazy = dd.from_pandas(frame, npartitions=2)
    original, masked = (
        (lazy + shift).map_partitions(vanish, which, meta=frame.iloc[:0])
        for shift, which in ((0, "original"), (9, "masked"))
    )
    with (
        pytest.MonkeyPatch.context() as patch,
        dask.config.set(scheduler="sync"),
        pytest.raises(RuntimeError, match="of the masked frame has 499 values, and had 500"),
    ):
        patch.setattr(ranks, "BORDERS", 2)
        patch.setattr("sdc_dask.engine.splitters.SAMPLES_A_RANGE", 1)
        original.sdc.interval_disclosure(masked)


def test_rows_that_vanish_between_passes_are_an_error() -> None:
    calls = []

    def shrink(part: pd.DataFrame) -> pd.DataFrame:
        calls.append(len(part))
        return part if len(calls) <= 2 else part.iloc[1:]

    frame = pd.DataFrame({"x": np.arange(500.0)})
    lazy = dd.from_pandas(frame, npartitions=2)
    unstable = lazy.map_partitions(shrink, meta=frame.iloc[:0])
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(ValueError, match="has other rows than that of the original: 249 rows"),
    ):
        lazy.sdc.interval_disclosure(unstable)
    assert len(calls) > 2
