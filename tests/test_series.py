"""Time series: groups of series, what is lost of them, and what intruders link."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

import sdc_dask
from sdc_dask import Job, Long, RankSwap, SdcError, SeriesMicroaggregation, protect
from sdc_dask.kernels.mdav import mdav
from sdc_dask.series import normalize, sts, to_long
from sdc_dask.utility.series_loss import variation

TIMES = [f"t{j}" for j in range(8)]


def panel(n: int = 300, length: int = 8, seed: int = 0) -> pd.DataFrame:
    return sdc_dask.datasets.panel(n, length, seed=seed).compute()


def two_series(n: int = 200) -> tuple[pd.DataFrame, dict[str, list[str]]]:
    price, volume = panel(n, seed=1), panel(n, seed=2).mul(1e6)
    series = {"price": [f"p{j}" for j in range(8)], "volume": [f"v{j}" for j in range(8)]}
    frame = pd.concat(
        [price.set_axis(series["price"], axis=1), volume.set_axis(series["volume"], axis=1)], axis=1
    )
    return frame.assign(region=np.arange(n) % 3), series


def classes(frame: pd.DataFrame, columns: list[str]) -> pd.Series:
    return frame.groupby(columns).size()


# What groups are made of

# Four series at two levels: at each, one goes up and one goes down.
LEVELS = pd.DataFrame(
    [[1, 2, 3, 4], [4, 3, 2, 1], [11, 12, 13, 14], [14, 13, 12, 11]], columns=list("abcd")
)


@pytest.mark.parametrize(
    ("distance", "pairs"), [("euclidean", [0, 0, 1, 1]), ("sts", [0, 1, 0, 1])]
)
def test_values_group_by_level_and_slopes_by_shape(distance: str, pairs: list[int]) -> None:
    masked = LEVELS.sdc.microaggregate_series(list("abcd"), k=2, distance=distance)
    expected = LEVELS.groupby(pairs).transform("mean")
    assert_frame_equal(masked, expected, check_dtype=False)


@pytest.mark.parametrize(("last", "pairs"), [(2, [0, 1, 0, 1]), (1_000, [0, 0, 1, 1])])
def test_slopes_are_over_the_times_that_are_given(last: int, pairs: list[int]) -> None:
    # The second step counts for little if it takes long.
    frame = pd.DataFrame([[0, 1, 1], [0, 1, 9], [0, 0, 0], [0, 0, 8]], columns=list("abc"))
    masked = frame.sdc.microaggregate_series(list("abc"), k=2, distance="sts", times=[0, 1, last])
    assert_frame_equal(masked, frame.groupby(pairs).transform("mean"), check_dtype=False)


@pytest.mark.parametrize("distance", ["euclidean", "sts"])
@pytest.mark.parametrize("normalize_by", ["series", "component"])
def test_groups_are_those_of_mdav_in_the_space_of_the_distance(
    distance: str, normalize_by: str
) -> None:
    frame = panel(120)
    values = frame.to_numpy()
    points = (values - values.mean(axis=0)) / (
        1 if normalize_by == "series" else values.std(axis=0)
    )
    points = np.diff(points, axis=1) if distance == "sts" else points
    labels = mdav(np.ascontiguousarray(points - points.mean(axis=0)), 4)
    masked = frame.sdc.microaggregate_series(TIMES, k=4, distance=distance, normalize=normalize_by)
    np.testing.assert_allclose(masked, frame.groupby(labels).transform("mean"), rtol=1e-12)


def test_one_scale_for_all_times_changes_no_group() -> None:
    frame = panel(120)
    spec = SeriesMicroaggregation(TIMES, 3)
    masked, larger = frame.sdc.mask(spec), frame.mul(1024).sdc.mask(spec)
    assert_frame_equal(masked.mul(1024), larger)


def test_each_series_is_masked_on_its_own() -> None:
    frame, series = two_series()
    masked = frame.sdc.microaggregate_series(series, k=4, by="region")
    for name, columns in series.items():
        alone = frame.sdc.microaggregate_series(columns, k=4, by="region")
        assert_frame_equal(masked[columns], alone[columns])
        assert classes(masked, [*columns, "region"]).min() >= 4, name
    assert_frame_equal(masked[["region"]], frame[["region"]])


def test_values_of_series_can_be_swapped() -> None:
    frame = panel(100)
    swapped = frame.sdc.mask(RankSwap(TIMES, p=10), random_state=1)
    assert all(sorted(swapped[name]) == sorted(frame[name]) for name in TIMES)


# Many partitions, blocks


@pytest.mark.long_on_cluster
@pytest.mark.parametrize("distance", ["euclidean", "sts"])
def test_dask_equals_pandas(distance: str, scheduler: str) -> None:
    frame, series = two_series(700)
    spec = SeriesMicroaggregation(series, 3, distance=distance, max_block=100, by="region")
    expected = frame.sdc.mask(spec)
    for npartitions in (1, 5):
        lazy = dd.from_pandas(frame, npartitions=npartitions).sdc.mask(spec)
        assert_frame_equal(lazy.compute(), expected, check_exact=True)
    for columns in series.values():
        assert classes(expected, [*columns, "region"]).min() >= 3


def test_blocks_cost_little() -> None:
    frame = panel(3_000, 12)
    times = list(frame)
    whole = frame.sdc.microaggregate_series(times, k=3, blocking=None)
    blocked = frame.sdc.microaggregate_series(times, k=3, max_block=300)
    assert not blocked.equals(whole)
    sse = [frame.sdc.sse(each, times).sse for each in (whole, blocked)]
    assert sse[1] < 1.15 * sse[0]


def test_in_block_order() -> None:
    frame = panel(500).assign(number=np.arange(500))
    kept = frame.sdc.microaggregate_series(TIMES, k=3, max_block=100)
    moved = frame.sdc.microaggregate_series(TIMES, k=3, max_block=100, keep_order=False)
    assert moved["number"].tolist() != kept["number"].tolist()
    assert_frame_equal(moved.sort_values("number"), kept)


# Bad input


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: SeriesMicroaggregation(["a"], 3), "two times at least"),
        (lambda: SeriesMicroaggregation({}, 3), "two times at least"),
        (lambda: SeriesMicroaggregation("ab", 3), "list of columns"),
        (lambda: SeriesMicroaggregation({"x": "ab"}, 3), "list of columns"),
        (lambda: SeriesMicroaggregation({1: ["a", "b"]}, 3), "texts for names"),
        (lambda: SeriesMicroaggregation({"x": ["a", "b"], "y": ["b", "c"]}, 3), "more than once"),
        (lambda: SeriesMicroaggregation(["a", "b"], 1), "k must be at least 2"),
        (lambda: SeriesMicroaggregation(["a", "b"], 3, distance="dtw"), "distance must be one of"),
        (lambda: SeriesMicroaggregation(["a", "b"], 3, normalize=None), "normalize must be one of"),
        (lambda: SeriesMicroaggregation(["a", "b"], 3, times=[0, 1]), "times have no meaning"),
        (lambda: _sts(times=[0]), "received 1 for 2 columns"),
        (lambda: _sts(times=[1, 1]), "must ascend"),
        (lambda: _sts(times=[0, np.nan]), "times must be a number"),
        (lambda: _sts(times="01"), "list of numbers"),
        (lambda: SeriesMicroaggregation(["a", "b"], 3, blocking=None, max_block=9), "max_block"),
        (lambda: SeriesMicroaggregation(["a", "b"], 3, blocking="tree"), "blocking must be one of"),
        (lambda: panel(9).sdc.microaggregate_series(["t0", "x"], k=3), "does not have: 'x'"),
        (lambda: panel(2).sdc.microaggregate_series(TIMES, k=3), "fewer than k=3"),
        (lambda: _with_a_gap().sdc.microaggregate_series(TIMES, k=3), "missing cells"),
        (lambda: _with_a_gap().sdc.series_loss(_with_a_gap(), TIMES), "has no forecast"),
        (lambda: panel(9).sdc.series_loss(panel(9), TIMES[:4]), "5"),
        (lambda: panel(9).sdc.series_risk(panel(9), TIMES, times=[1]), "received 1 for 8"),
        (lambda: panel(9).sdc.series_risk(panel(8), TIMES), "rows"),
        (lambda: panel(9).iloc[:0].sdc.series_loss(panel(9).iloc[:0], TIMES), "no records"),
    ],
)
def test_what_is_refused(call: Callable[[], Any], says: str) -> None:
    with pytest.raises(SdcError, match=says):
        call()


def _sts(**options: Any) -> SeriesMicroaggregation:
    return SeriesMicroaggregation(["a", "b"], 3, distance="sts", **options)


def _with_a_gap() -> pd.DataFrame:
    frame = panel(20)
    frame.loc[3, "t2"] = np.nan
    return frame


# What is lost


def test_nothing_is_lost_of_what_was_not_masked() -> None:
    frame, series = two_series()
    loss = frame.sdc.series_loss(frame, series)
    assert (loss.il, loss.il1, loss.il2, loss.il3, loss.rows, loss.series) == (0, 0, 0, 0, 200, 2)
    assert set(loss.forecasts.values()) == {0.0}


def test_all_is_lost_of_values_with_another_sign_or_none() -> None:
    frame = panel(50)
    for masked in (-frame, frame * 0.0):
        loss = frame.sdc.series_loss(masked, TIMES)
        assert loss.il1_mean == loss.il2 == 100.0
        assert loss.il3 > 99
    assert frame.sdc.series_loss(-frame, TIMES).il1_autocorrelation == 0.0
    assert frame.sdc.series_loss(frame * 0.0, TIMES).il1_autocorrelation == 100.0


@pytest.mark.parametrize("distance", ["euclidean", "sts"])
def test_more_is_lost_and_less_is_linked_with_larger_groups(distance: str) -> None:
    frame = panel(600)
    scores = [
        frame.sdc.series_score(
            frame.sdc.microaggregate_series(TIMES, k=k, distance=distance), TIMES
        )
        for k in (2, 5, 25)
    ]
    assert [s.il for s in scores] == sorted(s.il for s in scores)
    assert [s.dr for s in scores] == sorted((s.dr for s in scores), reverse=True)
    for k, score in zip((2, 5, 25), scores, strict=True):
        assert score.score == (score.il + score.dr) / 2
        # Of k equal series, one is the right one.
        assert max(score.euld, score.stsld) <= 100 / k + 1e-9


def test_loss_is_that_of_the_formulas() -> None:
    frame = panel(40)
    masked = frame.sdc.microaggregate_series(TIMES, k=3)
    loss = frame.sdc.series_loss(masked, TIMES)
    x, y = frame.to_numpy(), masked.to_numpy()

    def ratio(a: np.ndarray, b: np.ndarray) -> float:
        return float(np.mean(np.abs(a - b) / np.maximum(np.abs(a), np.abs(b)))) * 100

    def acf(values: np.ndarray, shift: int) -> np.ndarray:
        centred = values - values.mean(axis=1, keepdims=True)
        return (centred[:, : 8 - shift] * centred[:, shift:]).sum(axis=1) / 8

    shifts = [np.minimum(_ratios(acf(x, s), acf(y, s)), 1).mean() * 100 for s in (0, 2, 4, 6)]
    assert loss.il2 == pytest.approx(ratio(x, y))
    assert loss.il1_mean == pytest.approx(ratio(x.mean(axis=1), y.mean(axis=1)))
    assert loss.il1_autocorrelation == pytest.approx(np.mean(shifts))
    times = np.arange(8)
    ahead = [
        np.array([np.polyval(np.polyfit(times, row, 2), [8, 9, 10]) for row in v]) for v in (x, y)
    ]
    expected = np.minimum(_ratios(*ahead), 1).mean() * 100
    assert loss.forecasts["polynomial"] == pytest.approx(expected)
    assert loss.il3 == pytest.approx(np.mean(list(loss.forecasts.values())))
    assert loss.il == pytest.approx((loss.il1 + loss.il2 + loss.il3) / 3)


def _ratios(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.abs(a - b) / np.maximum(np.abs(a), np.abs(b))


def test_variations_of_zeros_signs_and_values_beyond_floats() -> None:
    one = np.array([0.0, 0.0, 1.0, -1.0, np.inf, np.inf, 1.7e308, 5e-324])
    other = np.array([0.0, 2.0, 1.0, 1.0, 1.0, np.inf, -1.7e308, 0.0])
    assert variation(one, other).tolist() == [0, 1, 0, 1, 1, 0, 1, 1]


# What is linked


def test_all_is_linked_of_what_was_not_masked_and_little_of_what_is_constant() -> None:
    frame, series = two_series()
    risk = frame.sdc.series_risk(frame, series)
    assert (risk.dr, risk.euld, risk.stsld, risk.interval) == (100, 100, 100, 100)
    flat = frame.assign(**{name: 1.0 for columns in series.values() for name in columns})
    risk = frame.sdc.series_risk(flat, series)
    assert risk.euld == risk.stsld == pytest.approx(0.5)
    assert risk.interval < 1


def test_links_are_those_of_all_distances() -> None:
    frame, series = two_series(80)
    masked = frame.sdc.microaggregate_series(series, k=3)
    risk = frame.sdc.series_risk(masked, series)
    expected: dict[str, list[float]] = {"euld": [], "stsld": []}
    for known in (1, 2):
        square = np.zeros((2, 80, 80))
        for columns in list(series.values())[:known]:
            x, y = frame[columns].to_numpy(), masked[columns].to_numpy()
            scale = x.std()
            square[0] += (((x[:, None] - y) / scale) ** 2).sum(axis=2)
            square[1] += (
                sts(np.repeat(x, 80, 0) / scale, np.tile(y, (80, 1)) / scale).reshape(80, 80) ** 2
            )
        for name, each in zip(expected, square, strict=True):
            own = np.diag(each)
            nearer = (each < own[:, None] * (1 - 1e-9)).any(axis=1)
            ties = (np.abs(each - own[:, None]) <= 1e-9 * own[:, None]).sum(axis=1)
            expected[name].append(100 * np.where(nearer, 0, 1 / ties).mean())
    assert risk.euld == pytest.approx(np.mean(expected["euld"]))
    assert risk.stsld == pytest.approx(np.mean(expected["stsld"]))


def test_intervals_are_those_of_the_definition() -> None:
    frame = pd.DataFrame([[100.0, 100.0, -100.0, 0.0, 5.0]] * 3, columns=list("abcde"))
    masked = frame.assign(a=104.0, b=120.0, c=-99.0, d=0.0, e=0.0)
    # 4 / 104 is within 4% to 10%, 20 / 120 within none, 1 / 99 within 2% to 10%, 0 is found at
    # once, and around 0 there is no interval.
    expected = 100 * (7 + 0 + 9 + 10 + 0) / 50
    assert frame.sdc.series_risk(masked, list("abcde")).interval == pytest.approx(expected)


@pytest.mark.long_on_cluster
def test_measures_do_not_depend_on_partitions(scheduler: str) -> None:
    frame, series = two_series(400)
    masked = frame.sdc.microaggregate_series(series, k=3)
    lazy, lazy_masked = (dd.from_pandas(each, npartitions=6) for each in (frame, masked))
    assert lazy.sdc.series_loss(lazy_masked, series) == frame.sdc.series_loss(masked, series)
    for sample in (None, 100):
        seed = None if sample is None else 1
        options = {"sample": sample, "random_state": seed}
        expected = frame.sdc.series_risk(masked, series, **options)
        assert lazy.sdc.series_risk(lazy_masked, series, **options) == expected
    assert expected.tried == 100
    assert expected.euld_low < expected.euld < expected.euld_high


@pytest.mark.parametrize("distance", ["euclidean", "sts"])
def test_competition_series_as_expected(m3: pd.DataFrame, distance: str) -> None:
    times = list(m3)
    scores = [
        m3.sdc.series_score(
            m3.sdc.microaggregate_series(times, k=k, distance=distance, blocking=None), times
        )
        for k in (2, 6, 12)
    ]
    for name, rises in (("il", True), ("il2", True), ("il3", True), ("dr", False)):
        found = [getattr(score, name) for score in scores]
        assert found == sorted(found, reverse=not rises), name
    for score in scores:
        # The distance that masked links more than the other.
        assert (score.euld >= score.stsld) == (distance == "euclidean")


# Normalization

PRICES = np.array(
    [
        [106.5, 110.3, 114.9, 117.9, 119.3, 121, 122.2, 124.1, 129],
        [102.7, 119.8, 147.8, 178.7, 130.8, 116.2, 133.6, 123.5, 114.4],
        [95.6, 101.9, 110.8, 116.4, 114.2, 119, 124.6, 126.4, 133.9],
        [101.1, 133.6, 162.8, 123.8, 121.3, 140.4, 149.8, 148.6, 177.6],
    ]
)


def test_component_wise_normalization_as_published() -> None:
    published = [
        [1.00, 0.26, 0.08, 0.02, 0.31, 0.20, 0.00, 0.02, 0.23],
        [0.65, 0.56, 0.71, 1.00, 1.00, 0.00, 0.41, 0.00, 0.00],
        [0.00, 0.00, 0.00, 0.00, 0.00, 0.12, 0.09, 0.12, 0.31],
        [0.50, 1.00, 1.00, 0.12, 0.43, 1.00, 1.00, 1.00, 1.00],
    ]
    found = normalize(PRICES, over="component", method="range")
    # Two cells are printed as no rounding gives them: 0.265 as 0.26, and 0.115 as 0.12.
    np.testing.assert_allclose(found, published, atol=0.0101)
    assert np.isclose(np.round(found, 2), published).sum() >= 33


def test_normalization_of_whole_series_keeps_their_shape() -> None:
    found = normalize(PRICES, over="series")
    assert found.mean() == pytest.approx(0)
    assert found.std() == pytest.approx(1)
    np.testing.assert_allclose(found, (PRICES - PRICES.mean()) / PRICES.std())
    # Bread became dearer every year; by components, it seems to become cheaper.
    assert (np.diff(found[0]) > 0).all()
    assert (np.diff(normalize(PRICES, over="component", method="range")[0]) < 0).sum() >= 5


# A release


@pytest.mark.parametrize("distance", ["euclidean", "sts"])
def test_a_release_of_series(tmp_path: Path, distance: str) -> None:
    frame, series = two_series(500)
    frame.to_parquet(tmp_path / "source.parquet", index=False, row_group_size=100)
    spec = SeriesMicroaggregation(series, 4, distance=distance, max_block=150, by="region")
    summary = protect(
        tmp_path / "source.parquet", tmp_path / "target", spec, keep="*", order="source"
    )
    released = pd.read_parquet(tmp_path / "target")
    assert_frame_equal(released, frame.sdc.mask(spec), check_exact=True)
    for (name, columns), reached in zip(series.items(), summary.anonymity, strict=True):
        sizes = classes(released, [*columns, "region"])
        assert (reached.k_min, reached.classes) == (sizes.min(), len(sizes)), name
        assert reached.k_min >= 4
    assert "microaggregation of series" in repr(summary)
    assert sdc_dask.verify(tmp_path / "target").ok


def long_layout(frame: pd.DataFrame, series: dict[str, list[str]]) -> pd.DataFrame:
    named = frame.assign(firm=[f"firm {i:05d}" for i in range(len(frame))])
    return to_long(named, series, "firm", time="month").sample(frac=1, random_state=1)


def test_a_release_of_a_long_source(tmp_path: Path) -> None:
    frame, series = two_series(120)
    source = tmp_path / "source.parquet"
    long_layout(frame, series).to_parquet(source, index=False, row_group_size=200)
    wide = {name: [f"{name}_{j}" for j in range(8)] for name in series}
    spec = SeriesMicroaggregation(wide, 3)
    long = Long("firm", "month")
    job = Job(source, tmp_path / "target", spec, drop=["firm"], long=long, order="source")
    job.write(tmp_path / "job.toml")
    again = Job.read(tmp_path / "job.toml")
    assert again == job
    summary = again.run()
    released = pd.read_parquet(tmp_path / "target")
    columns = [*wide["price"], *wide["volume"]]
    assert list(released) == columns
    expected = frame[[*series["price"], *series["volume"]]].set_axis(columns, axis=1).sdc.mask(spec)
    assert_frame_equal(released.astype(float), expected, check_exact=True)
    assert [each.k_min for each in summary.anonymity] == [3, 3]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "job.toml",
        "source.parquet",
        "target",
    ]


@pytest.mark.parametrize(
    ("long", "says"),
    [
        (Long("firm", "week"), "does not have: 'week'"),
        (Long("firm", "month", "cost"), "does not have: 'cost'"),
        ("firm", "long must be sdc_dask.Long"),
        (Long("firm", "month"), "2 of 20 records have other times"),
    ],
)
def test_a_long_source_that_is_refused_leaves_nothing(tmp_path: Path, long: Any, says: str) -> None:
    frame, series = two_series(20)
    made = long_layout(frame, series)
    made.drop(index=made.index[made["month"] == 3][:2]).to_parquet(tmp_path / "source.parquet")
    spec = SeriesMicroaggregation(["price_0", "price_1"], 3)
    with pytest.raises(SdcError, match=says):
        protect(tmp_path / "source.parquet", tmp_path / "target", spec, long=long, keep="*")
    assert [path.name for path in tmp_path.iterdir()] == ["source.parquet"]


def test_a_job_file_holds_series_of_any_name(tmp_path: Path) -> None:
    series = {"a b": ["x", "y"], 'with "quotes" = and dots.': ["u", "v"]}
    job = Job(tmp_path / "source", tmp_path / "target", SeriesMicroaggregation(series, 3))
    job.write(tmp_path / "job.toml")
    assert Job.read(tmp_path / "job.toml") == job


def test_long_is_checked_before_there_is_data() -> None:
    for bad in ({"id": 1, "time": "t"}, {"id": "i", "time": "t", "values": []}):
        with pytest.raises(SdcError):
            Long(**bad)
    for bad, says in (({"id": "i"}, "needs time"), ({"id": "i", "tiem": "t"}, "has no tiem")):
        with pytest.raises(SdcError, match=says):
            Long.from_dict(bad)
