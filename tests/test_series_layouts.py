"""Layouts of panels: to_wide and to_long, against pandas, for rows in any partition."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from sdc_dask.series import layouts
from sdc_dask.series.layouts import resample, series_columns, to_long, to_wide


def panel(n: int = 60, width: int = 5) -> pd.DataFrame:
    """A long frame of two series, its rows in no order."""
    rng = np.random.default_rng(n)
    frame = pd.DataFrame(
        {
            "day": np.tile(pd.date_range("2024-02-27", periods=width), n),
            "price": rng.normal(size=n * width),
            "shop": np.repeat(rng.permutation(n) - 20, width),
            "sales": rng.integers(-(2**60), 2**60, n * width),
            "note": "of no use",
        }
    )
    return frame.sample(frac=1, random_state=0)


def in_parts(frame: pd.DataFrame, npartitions: int) -> dd.DataFrame:
    """Cut a frame in the order that its rows have."""
    return dd.from_pandas(frame.reset_index(drop=True), npartitions=npartitions, sort=False)


def computed(frame: dd.DataFrame) -> pd.DataFrame:
    return frame.compute().reset_index(drop=True)


def same(result: pd.DataFrame, expected: pd.DataFrame) -> None:
    # Dask makes strings of its own of texts.
    texts = {name: t for name, t in result.dtypes.items() if isinstance(t, pd.StringDtype)}
    expected = expected.astype(texts)
    pd.testing.assert_frame_equal(result, expected, check_exact=True, check_freq=False)


def with_ids(frame: pd.DataFrame, ids: Callable[[pd.Series], Any]) -> pd.DataFrame:
    return frame.assign(shop=ids(frame["shop"]))


IDS: dict[str, Callable[[pd.Series], Any]] = {
    "integer": lambda ids: ids,
    "large": lambda ids: ids.astype("uint64") + np.uint64(2**63),
    "float": lambda ids: ids / 7,
    "date": lambda ids: pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(ids, unit="h"),
    "nullable": lambda ids: ids.astype("Int64"),
    "category": lambda ids: ids.astype(pd.CategoricalDtype(range(80, -30, -1), ordered=True)),
    "arrow": lambda ids: ids.astype(str).astype("string[pyarrow]"),
    "object": lambda ids: ids.map(lambda each: f"n{each}").astype(object),
    "text": lambda ids: ids.map(lambda each: f"ñ{each}"),
}


@pytest.mark.parametrize("ids", IDS)
def test_wide_is_a_pivot(ids: str, scheduler: str) -> None:
    frame = with_ids(panel(), IDS[ids])
    wide = to_wide(frame, "shop", "day", ["price", "sales"])
    days = [f"2024-02-{day}" for day in (27, 28, 29)] + ["2024-03-01", "2024-03-02"]
    assert list(wide.columns) == [
        "shop",
        *(f"{name}_{day}" for name in ("price", "sales") for day in days),
    ]
    assert wide.index.equals(pd.RangeIndex(60))
    assert wide["shop"].dtype == frame["shop"].dtype
    pivot = frame.pivot(index="shop", columns="day", values=["price"]).sort_index()
    assert list(wide["shop"]) == list(pivot.index)
    np.testing.assert_array_equal(wide.iloc[:, 1:6].to_numpy(), pivot.to_numpy())
    assert (wide.dtypes.iloc[6:] == "int64").all()
    result = to_wide(in_parts(frame, 4), "shop", "day", ["price", "sales"])
    assert isinstance(result, dd.DataFrame)
    assert result.npartitions == 4
    made = computed(result)
    same(result._meta, made.iloc[:0])
    same(made, wide)


@pytest.mark.parametrize("npartitions", [1, 5])
@pytest.mark.parametrize("length", [None, 3])
def test_partitions_change_nothing(npartitions: int, length: int | None) -> None:
    frame = panel()
    expected = to_wide(frame, "shop", "day", length=length)
    assert list(expected.columns[[1, -1]]) == (
        ["price_2024-02-27", "sales_2024-03-02"] if length is None else ["price_0", "sales_2"]
    )
    for order in (frame, frame.sort_values(["day", "shop"], ascending=False)):
        lazy = to_wide(in_parts(order, npartitions), "shop", "day", length=length)
        same(computed(lazy), expected)
        sizes = lazy.map_partitions(len).compute()
        assert sizes.max() <= 3 * 60 / lazy.npartitions + 3
    # Any partition can be computed by itself.
    same(lazy.partitions[0].compute(), expected.iloc[: sizes.iloc[0]])
    empty = dd.concat([in_parts(frame, 2), in_parts(frame, 1).query("price > 99")])
    same(computed(to_wide(empty, "shop", "day", length=length)), expected)


@pytest.mark.parametrize("dtype", ["int8", "float32", "Int64", "Float32", "int64[pyarrow]"])
def test_dtypes_stay(dtype: str) -> None:
    frame = panel().assign(price=lambda df: (df["price"] * 10).round().astype(dtype))
    wide = to_wide(frame, "shop", "day", "price")
    assert (wide.dtypes.iloc[1:] == dtype).all()
    assert (to_wide(frame, "shop", "day", "price", length=2).dtypes.iloc[1:] == "float64").all()
    long = to_long(wide, series_columns(wide, "price"), "shop", "day")
    assert long["price"].dtype == dtype
    same(computed(to_wide(in_parts(frame, 3), "shop", "day", "price")), wide)


def test_round_trip() -> None:
    rng = np.random.default_rng(3)
    columns = {name: [f"{name}_{t}" for t in range(12)] for name in ("x", "x_y")}
    wide = pd.DataFrame(rng.normal(size=(50, 24)), columns=[*columns["x"], *columns["x_y"]])
    wide.insert(0, "id", [f"r{i:02}" for i in range(50)])
    assert series_columns(wide, ["x", "x_y"]) == columns
    long = to_long(wide, columns, "id")
    assert list(long.columns) == ["id", "time", "x", "x_y"]
    assert list(long["time"][:13]) == [*range(12), 0]
    assert list(long["id"][11:13]) == ["r00", "r01"]
    same(to_wide(long, "id", "time"), wide)
    for npartitions in (1, 4):
        lazy = to_long(in_parts(wide, npartitions), columns, "id")
        same(computed(lazy), long)
        same(lazy._meta, long.iloc[:0])
        same(computed(to_wide(lazy, "id", "time")), wide)
        same(computed(to_wide(in_parts(long.sample(frac=1), npartitions), "id", "time")), wide)


@pytest.mark.parametrize(
    ("times", "texts"),
    [
        (pd.to_datetime(["2024-01-31", "2023-12-31"]), ["2023-12-31", "2024-01-31"]),
        (
            pd.to_datetime(["2024-01-31 12:00", "2024-01-31 00:00"]),
            ["2024-01-31T00:00:00", "2024-01-31T12:00:00"],
        ),
        (pd.PeriodIndex(["2024Q2", "2024Q1"], freq="Q"), ["2024Q1", "2024Q2"]),
        (pd.Series(["2024-01-31", "2023-12-31"], dtype="date32[pyarrow]"), None),
        (pd.Categorical(["late", "early"], ["early", "late"], ordered=True), ["early", "late"]),
        ([10, 9], ["9", "10"]),
        ([0.5, -0.0], ["0.0", "0.5"]),
        (["b", "a"], ["a", "b"]),
    ],
)
def test_texts_of_times(times: Any, texts: list[str] | None) -> None:
    wide = pd.DataFrame({"id": [1, 2, 3], "a": [1, 2, 3], "b": [4, 5, 6]})
    for frame in (wide, in_parts(wide, 2)):
        long = to_long(frame, {"v": ["a", "b"]}, "id", "when", times)
        made = to_wide(long, "id", "when")
        # The second time comes first.
        assert list(made.columns[1:]) == [f"v_{t}" for t in texts or ["2023-12-31", "2024-01-31"]]
        made = made if frame is wide else computed(made)
        assert made.iloc[:, 1].tolist() == [4, 5, 6]


def test_resample_is_interp() -> None:
    rng = np.random.default_rng(0)
    series = [rng.normal(size=n) for n in (2, 3, 7, 10, 31)]
    for length in (2, 3, 10, 50):
        result = resample(series, length)
        assert result.shape == (5, length)
        for row, values in zip(result, series, strict=True):
            at = np.linspace(0, len(values) - 1, length)
            np.testing.assert_allclose(row, np.interp(at, np.arange(len(values)), values), 1e-12)
            assert (row[0], row[-1]) == (values[0], values[-1])
    np.testing.assert_array_equal(resample(series[2], 7), [series[2]])
    np.testing.assert_array_equal(resample(series[2], 13)[0, ::2], series[2])
    np.testing.assert_array_equal(
        resample(pd.DataFrame([[1, 3], [0, 1]]).to_numpy(), 3)[:, 1], [2, 0.5]
    )


@pytest.mark.long_on_cluster
def test_gaps_are_resampled(scheduler: str) -> None:
    frame = panel(40, 9)
    frame = frame[(frame["sales"] % 3 > 0) | (frame["day"].dt.day < 2)]
    expected = to_wide(frame, "shop", "day", "price", length=6)
    by_shop = frame.sort_values("day").groupby("shop")["price"].agg(list)
    assert len(set(map(len, by_shop))) > 2
    np.testing.assert_array_equal(expected.iloc[:, 1:], resample(by_shop.tolist(), 6))
    for times in (frame["day"], frame["day"].dt.strftime("%Y-%m-%d")):
        lazy = in_parts(frame.assign(day=times), 4)
        same(computed(to_wide(lazy, "shop", "day", "price", length=6)), expected)
    for each in (frame, in_parts(frame, 4)):
        with pytest.raises(ValueError, match=r"\d+ of 40 records have other times .* length="):
            to_wide(each, "shop", "day", "price")
    alone = pd.concat([frame, frame.iloc[:1].assign(shop=99)])
    with pytest.raises(ValueError, match="1 of 41 records have fewer than 2 rows"):
        to_wide(alone, "shop", "day", "price", length=6)
    lazy = to_wide(in_parts(alone, 4), "shop", "day", "price", length=6)
    with pytest.raises(ValueError, match=r"1 of \d+ records in partition 3 of the result have few"):
        lazy.compute()


def test_records_that_differ_are_counted() -> None:
    frame = panel(20, 4)
    last = frame["day"] == frame["day"].max()
    extra = frame[frame["shop"].isin([-3, -4]) & last]
    cases = {
        3: frame[~(frame["shop"].isin([-3, -4, -5]) & last)],  # too few
        2: pd.concat([frame, extra.assign(day=extra["day"] + pd.Timedelta("1D"))]),  # too many
    }
    for count, each in cases.items():
        for frame_ in (each, in_parts(each, 3)):
            with pytest.raises(ValueError, match=rf"^{count} of 20 records have other times"):
                to_wide(frame_, "shop", "day")
    # As many rows at each time: records are incomplete all the same.
    position = (frame["day"] - frame["day"].min()).dt.days
    even = frame[frame["shop"] + 20 != position]  # each of four lacks another time
    with pytest.raises(ValueError, match=r"^4 of 20 records have other times"):
        to_wide(even, "shop", "day")
    lazy = to_wide(in_parts(even, 3), "shop", "day")
    with pytest.raises(ValueError, match=r"^\d of \d+ records in partition 0 of the result have"):
        lazy.compute()
    # Within each range of ids, all have the same times.
    halves = frame[(frame["shop"] < -10) == (frame["day"].dt.day < 29)]
    with pytest.raises(ValueError, match=r"^10 of 20 records have other times"):
        to_wide(halves, "shop", "day")
    with pytest.raises(ValueError, match=r"\d+ of \d+ records in partition \d of the result have"):
        to_wide(in_parts(halves, 2), "shop", "day").compute()


@pytest.mark.parametrize("length", [None, 3])
def test_rows_that_repeat_others_are_refused(length: int | None) -> None:
    frame = panel()
    some = pd.concat([frame, frame.iloc[:3]])  # far from each other
    near = some.sort_values("shop")
    twice = pd.concat([frame, frame])
    for each, count in ((some, 3), (near, 3), (twice, 300)):
        with pytest.raises(ValueError, match=f"^{count} rows repeat the id and the time"):
            to_wide(each, "shop", "day", length=length)
        with pytest.raises(ValueError, match=r"^\d+ rows.* repeat the id and the time") as caught:
            to_wide(in_parts(each, 3), "shop", "day", length=length).compute()
        if length is None and each is not twice:
            assert str(caught.value).startswith("3 rows repeat")


def test_nothing_is_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = in_parts(panel(), 4)
    monkeypatch.setattr(layouts, "_first", lambda leaving, _after: leaving.iloc[5:])
    with pytest.raises(RuntimeError, match=r"^\d+ rows came to a partition that \d+ were sent to"):
        to_wide(frame, "shop", "day").compute()
    monkeypatch.undo()
    monkeypatch.setattr(layouts, "MOST_TIMES", 4)
    with pytest.raises(ValueError, match=r"more than 4 different times.* length="):
        to_wide(frame, "shop", "day")
    same(
        computed(to_wide(frame, "shop", "day", length=2)), to_wide(panel(), "shop", "day", length=2)
    )


def test_rows_are_read_twice_only(tmp_path: Any) -> None:
    """Once for the scan, and once for the result, whatever is counted."""
    log = tmp_path / "reads"

    def read(part: pd.DataFrame) -> pd.DataFrame:
        with log.open("a") as file:
            file.write("x")
        return part

    pandas = panel()
    frame = in_parts(pandas, 4)
    frame = frame.map_partitions(read, meta=frame._meta)
    wide = to_wide(frame, "shop", "day")
    assert len(log.read_text()) == 4
    same(computed(wide), to_wide(pandas, "shop", "day"))
    assert len(log.read_text()) == 8


LONG = pd.DataFrame({"id": [1, 1, 2, 2], "t": [0, 1, 0, 1], "v": [1.5, 2, 3, 4], "s": list("abcd")})
WIDE = pd.DataFrame({"id": [1, 2], "a_0": [1, 2], "a_1": [3, 4], "b": [5, 6], "s": ["x", "y"]})


@pytest.mark.parametrize("kind", [lambda f: f, lambda f: in_parts(f, 2)], ids=["pandas", "dask"])
@pytest.mark.parametrize(
    ("changes", "arguments", "error", "match"),
    [
        ({}, {"id": "no"}, KeyError, "id names columns that the frame does not have: 'no'"),
        ({}, {"time": "no"}, KeyError, "time names columns that the frame does not have"),
        ({}, {"values": ["v", "no"]}, KeyError, "values names columns"),
        ({}, {"time": "id"}, ValueError, "must all be different, received 'id', 'id'"),
        ({}, {"values": ["v", "v"]}, ValueError, "must all be different"),
        ({}, {"values": []}, ValueError, "values is empty"),
        ({}, {"values": "s"}, TypeError, "column 's' has dtype .*, which holds no real numbers"),
        ({}, {"length": 1}, ValueError, "length must be at least 2, received 1"),
        ({}, {"length": 2.5}, TypeError, "length must be a whole number"),
        ({"id": [1, None, 2, 2]}, {}, ValueError, r"missing values in columns: 'id' \(1\)"),
        ({"t": [None, 1, 0, None]}, {}, ValueError, r"missing values in columns: 't' \(2\)"),
        ({"v": [1.0, 2, np.nan, 4]}, {}, ValueError, r"missing values in columns: 'v' \(1\)"),
        ({"v": [1.0, 2, 3, np.inf]}, {}, ValueError, r"infinite values in columns: 'v' \(1\)"),
        ({"id": pd.Categorical([1, 1, 2, 2])}, {}, TypeError, "categories without an order"),
    ],
)
def test_bad_long_frames(
    kind: Callable, changes: dict, arguments: dict, error: type[Exception], match: str
) -> None:
    with pytest.raises(error, match=match):
        to_wide(kind(LONG.assign(**changes)), **{"id": "id", "time": "t"} | arguments)


def test_names_that_would_meet_are_refused() -> None:
    with pytest.raises(ValueError, match="columns of the result would have the same name") as error:
        to_wide(LONG.rename(columns={"id": "v_0"}), "v_0", "t", "v")
    assert "v_0" not in str(error.value)
    with pytest.raises(ValueError, match="the frame has no rows"):
        to_wide(LONG.iloc[:0], "id", "t")


@pytest.mark.parametrize(
    ("arguments", "error", "match"),
    [
        ({"id": "no"}, KeyError, "id names columns"),
        ({"series": {"a": ["a_0", "a_2"]}}, KeyError, "series names columns"),
        ({"series": ["a_0", "a_1"]}, TypeError, "series must be a dict .* received list"),
        ({"series": {"a": "a_0"}}, TypeError, "series must be a dict of names and lists"),
        ({"series": {}}, ValueError, "series is empty"),
        ({"series": {"a": ["a_0", "a_1"], "b": ["b"]}}, ValueError, "received 2, 1"),
        ({"series": {"a": ["a_0"], "b": ["a_0"]}}, ValueError, "must all be different"),
        ({"series": {"a": ["s"]}}, TypeError, "no real number"),
        ({"time": "a"}, ValueError, "id, time and the names of series must all be different"),
        ({"times": [1, 2, 3]}, ValueError, "each of the 2 columns of a series, received 3"),
        ({"times": [1, 1]}, ValueError, "labels that are missing or equal"),
    ],
)
def test_bad_wide_frames(arguments: dict, error: type[Exception], match: str) -> None:
    good: dict[str, Any] = {"series": {"a": ["a_0", "a_1"]}, "id": "id"}
    with pytest.raises(error, match=match):
        to_long(WIDE, **good | arguments)


def test_ids_of_wide_frames_are_unique() -> None:
    series = series_columns(WIDE, "a")
    with pytest.raises(ValueError, match="1 ids in column 'id' are missing or occur before"):
        to_long(WIDE.assign(id=7), series, "id")
    apart = to_long(in_parts(WIDE.assign(id=7), 2), series, "id")
    assert len(apart) == 4
    with pytest.raises(ValueError, match="2 rows in partition 0 of the result repeat"):
        to_wide(apart, "id", "time").compute()
    with pytest.raises(KeyError, match="no columns begin with the names of series: 'c'"):
        series_columns(WIDE, ["a", "c"])


@pytest.mark.parametrize(
    ("values", "error", "match"),
    [
        ([], ValueError, "1 of 1 series have fewer than 2 values"),
        ([[1, 2], [3]], ValueError, "1 of 2 series have fewer than 2 values"),
        ([1, np.nan], ValueError, "1 values are missing or infinite"),
        (["a", "b"], TypeError, "received something else in list"),
        ([[1, 2], 3], TypeError, "received something else in list"),
        (3, TypeError, "received something else in int"),
    ],
)
def test_bad_series(values: Any, error: type[Exception], match: str) -> None:
    with pytest.raises(error, match=match):
        resample(values, 4)
