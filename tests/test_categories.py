"""Recode, Pram and Noise, and lists of specs in which one sees what another leaves."""

from __future__ import annotations

import dataclasses
import datetime
import json
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sdc_dask
from sdc_dask import (
    Microaggregation,
    Noise,
    Pram,
    RankSwap,
    Recode,
    SdcError,
    Spec,
    Suppress,
    cli,
    errors,
)
from sdc_dask.masking.recode import Recoding
from sdc_dask.release.summary import Summary, checks_of

TOWNS = {"Bonn": "west", "Mainz": "west", "Jena": "east", "Gera": "east"}


def people(n: int = 900) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    town = rng.choice([*TOWNS], n, p=[0.5, 0.3, 0.15, 0.05])
    gaps = rng.random(n) < 0.05
    return pd.DataFrame(
        {
            "town": pd.Categorical(town, categories=["Gera", "Bonn", "Jena", "Mainz", "Nowhere"]),
            "text": pd.array(np.where(gaps, None, town), dtype="string"),
            "arrow": pd.array(np.where(gaps, None, town), dtype=pd.ArrowDtype(pa.string())),
            "age": rng.integers(0, 100, n),
            "hours": np.where(gaps, np.nan, rng.normal(30, 9, n)),
            "rent": pd.array(np.where(gaps, None, rng.integers(1, 900, n)), dtype="Int64"),
            "sex": pd.array(rng.choice(["f", "m"], n), dtype="string"),
        },
        index=pd.Index(np.arange(n) * 3, name="id"),
    )


def agreed(spec: Any, seed: int | None = None, cuts: tuple[int, ...] = (4,)) -> pd.DataFrame:
    """Mask with pandas, and compare with Dask: values, dtypes, index, order, other columns."""
    frame = people()
    masked = frame.sdc.mask(spec, random_state=seed)
    for cut in cuts:
        lazy = dd.from_pandas(frame, npartitions=cut).sdc.mask(spec, random_state=seed)
        pd.testing.assert_frame_equal(lazy.compute(), masked)
        assert (lazy.dtypes == masked.dtypes).all()
    specs = spec if isinstance(spec, list) else [spec]
    others = [name for name in frame if all(name not in each.masked for each in specs)]
    pd.testing.assert_frame_equal(masked[others], frame[others])
    return masked


# Recoding


def test_ranges() -> None:
    masked = agreed(Recode(["age"], bins=[0, 18, 65, 99], labels=["child", "adult", "old"]))
    plain = pd.cut(people()["age"], [-1, 17, 64, 99], labels=["child", "adult", "old"])
    pd.testing.assert_series_equal(masked["age"], plain)
    masked = agreed(Recode(["hours"], bins=[float("-inf"), 20, float("inf")]))
    assert masked["hours"].cat.categories.tolist() == ["[-inf, 20)", "[20, inf)"]
    assert masked["hours"].isna().equals(people()["hours"].isna())
    assert agreed(Recode(["rent"], bins=[0, 450, 900], labels=[1, 2]))["rent"].dtype == "Int64"


@pytest.mark.parametrize("column", ["town", "text", "arrow"])
def test_hierarchies(column: str) -> None:
    masked = agreed(Recode([column], mapping=TOWNS))[column]
    before = people()[column].astype(object)
    assert masked.dropna().tolist() == before.map(TOWNS).dropna().tolist()
    assert masked.isna().equals(before.isna())
    if column == "town":
        assert masked.cat.categories.tolist() == ["west", "east"]
    else:
        assert masked.dtype == people()[column].dtype
    assert agreed(Recode(["age"], mapping={i: i // 10 for i in range(100)}))["age"].max() == 9
    # Two levels of a table of three.
    table = pd.DataFrame(
        [("Bonn Nord", "Bonn", "west"), ("Bonn Sued", "Bonn", "west"), ("Jena", "Jena", "east")],
        columns=["district", "town", "side"],
    )
    spec = Recode([column], mapping=table[["town", "side"]])
    assert spec == Recode([column], mapping={"Bonn": "west", "Jena": "east"})


def test_top_and_bottom() -> None:
    masked = agreed(Recode(["age", "rent"], top=80, bottom=20))
    frame = people()
    pd.testing.assert_series_equal(masked["age"], frame["age"].clip(20, 80))
    pd.testing.assert_series_equal(masked["rent"], frame["rent"].clip(20, 80))


def test_all_others() -> None:
    spec = Recode(["town"], mapping={"Bonn": "west"}, others="elsewhere")
    masked = agreed(spec)["town"]
    before = people()["town"].astype(object)
    assert masked.isna().equals(before.isna())
    assert (masked.dropna() == np.where(before.dropna() == "Bonn", "west", "elsewhere")).all()
    assert masked.cat.categories.tolist() == ["west", "elsewhere"]
    assert agreed(Recode(["age"], mapping={1: 1}, others=0))["age"].max() == 1


DATES = {
    "pandas": "datetime64[us]",
    "seconds": "datetime64[s]",
    "nanoseconds": "datetime64[ns]",
    "zone": "datetime64[us, Europe/Berlin]",
    "arrow": pd.ArrowDtype(pa.timestamp("ms")),
    "arrow zone": pd.ArrowDtype(pa.timestamp("us", tz="Asia/Tokyo")),
    "days": pd.ArrowDtype(pa.date32()),
}


def born(kind: str) -> tuple[pd.DataFrame, pd.Series]:
    """Local dates of a kind, some of which are missing, and the same without a zone."""
    days = pd.Series(pd.date_range("1939-12-30", "2000-01-03", periods=300).normalize())
    days[10:15] = pd.NaT
    dtype: Any = DATES[kind]
    zone = dtype.pyarrow_dtype.tz if kind == "arrow zone" else None
    zone = "Europe/Berlin" if kind == "zone" else zone
    local = days.dt.tz_localize(zone) if zone else days
    return pd.DataFrame({"born": local.astype(dtype)}), days


@pytest.mark.parametrize("kind", DATES)
def test_dates_are_recoded(kind: str, tmp_path: Path) -> None:
    frame, days = born(kind)
    edges = ["1900-01-01", pd.Timestamp("1960-01-01"), datetime.date(1980, 1, 1), float("inf")]
    ranges = Recode(["born"], bins=edges, labels=["old", "middle", "young"])
    bounds = Recode(["born"], bottom="1945-05-08", top=np.datetime64("1999-12-31"))
    some = Recode(["born"], mapping={days[20]: "one", str(days[30].date()): "two"}, others="rest")
    cut = pd.cut(days, pd.to_datetime(["1900", "1960", "1980", "2100"]), right=False, labels=False)
    expected = {
        ranges: cut.map(dict(enumerate(ranges.labels))),
        bounds: days.clip(pd.Timestamp("1945-05-08"), pd.Timestamp("1999-12-31")),
        some: pd.Series("rest", days.index).where(days.notna()).where(days != days[20], "one"),
    }
    expected[some][days == days[30]] = "two"
    pq.write_table(pa.Table.from_pandas(frame), tmp_path / "in.parquet")
    for number, (spec, meant) in enumerate(expected.items()):
        masked = frame.sdc.mask(spec)["born"]
        if spec is bounds:
            assert masked.dtype == frame["born"].dtype
            masked = pd.Series(pd.to_datetime(masked.astype(object)), masked.index)
            masked = masked.dt.tz_localize(None) if masked.dt.tz is not None else masked
        assert masked.isna().equals(days.isna())
        assert masked.dropna().tolist() == meant.dropna().tolist()
        lazy = dd.from_pandas(frame, npartitions=3).sdc.mask(spec).compute()
        pd.testing.assert_frame_equal(lazy, frame.sdc.mask(spec))
        assert Spec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
        assert eval(repr(spec), {**vars(sdc_dask), "float": float}) == spec
        target = tmp_path / str(number)
        sdc_dask.protect(tmp_path / "in.parquet", target, spec, order="source")
        released = pq.read_table(target)["born"].to_pandas().astype(object)
        kept = frame.sdc.mask(spec)["born"].astype(object)
        assert [str(each) for each in released.dropna()] == [str(each) for each in kept.dropna()]


def test_times_with_a_zone_are_recoded_as_local_ones() -> None:
    for kind in ("zone", "arrow zone"):
        frame, days = born(kind)
        zone = "Europe/Berlin" if kind == "zone" else "Asia/Tokyo"
        far = pd.Timestamp("1960-01-01").tz_localize(zone)
        for how in ({"top": far}, {"mapping": {far: "then"}, "others": "else"}):
            there = days.where(days != days[40], "1960-01-01")
            some = frame.assign(born=there.astype(days.dtype).dt.tz_localize(zone))
            some = some.astype(frame.dtypes)
            local = {
                name: far.tz_localize(None) if name == "top" else each for name, each in how.items()
            }
            if "mapping" in how:
                local["mapping"] = {"1960-01-01": "then"}
            masked = some.sdc.recode(["born"], **how)
            pd.testing.assert_frame_equal(masked, some.sdc.recode(["born"], **local))
            spec = Recode(["born"], **how)
            assert Spec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    bins = [far, far + pd.Timedelta("5D"), "inf"]
    assert Recode(["born"], bins=bins) == Recode(["born"], bins=[str(each) for each in bins])


def test_labels_of_dates_are_their_edges() -> None:
    frame, _ = born("zone")
    masked = frame.sdc.recode(["born"], bins=["1900-01-01", "1960-01-01 06:30", "inf"])["born"]
    labels = ["[1900-01-01, 1960-01-01 06:30:00)", "[1960-01-01 06:30:00, inf)"]
    assert masked.cat.categories.tolist() == labels and masked.cat.ordered


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": ["1980-06-31", "inf"]}, "a date that does not exist"),
        ({"bins": [0, "1980-06-30"]}, "numbers and dates"),
        ({"bins": ["1980-06-30", "1980-01-01"]}, "no gaps"),
        ({"bins": ["1980-06-30", "1981-01-01"]}, r"\d+ values outside of the bins, below 1980-06"),
        ({"top": pd.Timestamp("1980-01-01", tz="UTC")}, "without a zone"),
        ({"mapping": {"1980-01-01 00:00Z": "a"}}, "mapping holds times with a zone"),
        ({"bins": ["1980-01-01", "1990-01-01 00:00Z"]}, "with a zone and without"),
        ({"top": "1980-01-01", "bottom": 3}, "both numbers or both dates"),
        ({"top": "1980-01-01", "bottom": "1990-01-01"}, "received 1990-01-01 and 1980-01-01"),
        ({"top": "1980-01-01 06:00"}, "can hold, received 1980-01-01 06:00:00"),
        ({"top": 5}, "name dates"),
        ({"top": 5, "others": 3}, "others has no meaning without mapping"),
        ({"mapping": {"1980-01-01": "a"}, "others": 3}, "all texts or all numbers"),
    ],
)
def test_errors_of_recoding_dates(arguments: dict[str, Any], message: str) -> None:
    frame, _ = born("days")
    with pytest.raises(SdcError, match=message):
        frame.sdc.recode(["born"], **arguments)
    with pytest.raises(SdcError, match="top or bottom are dates"):
        people().sdc.recode(["age"], top="1980-01-01")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"bins": [0, 18]}, r"column 'age' has \d+ values outside"),
        ({"mapping": {1: 2}}, r"column 'age' has \d+ records with values that mapping"),
        ({"bins": [18, 0]}, "no gaps"),
        ({"bins": [0]}, "two edges or more"),
        ({"bins": [0, 1, 2], "labels": ["a"]}, "received 1 for 3 edges"),
        ({"bins": [0, 1, 2], "labels": ["a", 1]}, "all texts or all numbers"),
        ({"mapping": {"a": None}}, "texts or finite numbers"),
        ({"mapping": [(1, 2), (1, 3)]}, "a value twice"),
        ({"mapping": {}}, "empty"),
        ({"mapping": 3}, "a table of two columns, or a list of pairs, received int"),
        ({"mapping": pd.DataFrame({"a": [1], "b": [2], "c": [3]})}, "two columns, .* received 3"),
        ({"labels": ["a"], "top": 5}, "without bins"),
        ({"top": 5, "bottom": 9}, "below top"),
        ({"top": 5.5}, "whole numbers"),
        ({}, "received none"),
        ({"top": 5, "bins": [0, 1]}, "bins and top"),
    ],
)
def test_errors_of_recoding(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SdcError, match=message) as error:
        people().sdc.recode(["age"], **arguments)
    assert "99" not in str(error.value)  # no value of the data


def test_texts_have_no_ranges() -> None:
    with pytest.raises(SdcError, match="no real number"):
        people().sdc.recode(["text"], bins=[0, 1])


# Post-randomization


@pytest.mark.parametrize("column", ["town", "text", "arrow", "rent"])
def test_pram_keeps_categories_and_frequencies_about(column: str) -> None:
    masked = agreed(Pram([column], keep=0.6), seed=3)[column]
    before = people()[column]
    assert set(masked.dropna()) <= set(before.dropna())
    assert masked.isna().equals(before.isna())
    if column == "rent":
        return
    counts = before.value_counts()
    moved = masked.value_counts().reindex(counts.index, fill_value=0)
    # Of each value about four deviations of as many draws as there are records at most.
    assert ((moved - counts).abs() <= 4 * np.sqrt(counts) + 1).all()
    stayed = (masked.dropna().astype(object) == before.dropna().astype(object)).mean()
    shares = counts / counts.sum()
    assert abs(stayed - (0.6 + 0.4 * float((shares**2).sum()))) < 0.07
    if column == "town":
        assert masked.cat.categories.tolist() == ["Gera", "Bonn", "Jena", "Mainz"]


def test_pram_within_strata() -> None:
    frame = people()
    frame["arrow"] = frame["sex"] + frame["text"]
    masked = frame.sdc.pram(["arrow"], keep=0, by="sex", random_state=1)
    assert (masked["arrow"].dropna().str[0] == frame["sex"][frame["arrow"].notna()]).all()
    assert (masked["arrow"].dropna() != frame["arrow"].dropna()).mean() > 0.3


def test_pram_by_a_matrix() -> None:
    matrix = {"f": {"f": 0.8, "m": 0.2}, "m": {"m": 1}}
    masked = agreed(Pram(["sex"], matrix=matrix), seed=1)["sex"]
    before = people()["sex"]
    assert (masked[before == "m"] == "m").all()
    assert abs((masked[before == "f"] == "m").mean() - 0.2) < 0.08
    table = pd.DataFrame(matrix).T.fillna(0)
    assert Pram(["sex"], matrix=table).matrix[0] == ("f", "f", 0.8)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "received none"),
        ({"keep": 0.5, "matrix": {"f": {"f": 1}}}, "received both"),
        ({"keep": 1}, "below 1"),
        ({"keep": 1.2}, "at most 1"),
        ({"matrix": {"f": {"f": 0.5, "m": 0.4}, "m": {"m": 1}}}, "not stochastic"),
        ({"matrix": {"f": {"f": 1}}}, "1 values, in [0-9]+ records, for which matrix has no"),
        ({"matrix": {"f": {"x": 1}, "m": {"m": 1}}}, "to 1 values that column 'sex' does not"),
        ({"matrix": {"f": {"f": -1, "m": 2}}}, "at least 0"),
        ({"matrix": [1]}, "dict of dicts"),
        ({"matrix": {"f": {"f": 1}, "m": {"m": 1}}, "by": "town"}, "by has no meaning"),
    ],
)
def test_errors_of_pram(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SdcError, match=message):
        people().sdc.pram(["sex"], **arguments)


# Noise


def test_noise_has_the_deviation_that_was_asked_for() -> None:
    masked = agreed(Noise(["age", "hours", "rent"], sd=0.2), seed=1)
    frame = people()
    for column in ("age", "hours", "rent"):
        noise = (masked[column] - frame[column]).dropna().astype(float)
        assert 0.17 < noise.std() / frame[column].std() < 0.23
        assert abs(noise.mean()) < 4 * noise.std() / np.sqrt(len(noise))
        assert masked[column].isna().equals(frame[column].isna())
    assert masked["age"].dtype == "float64"
    whole = agreed(Noise(["age", "rent"], sd=0.2, whole=True), seed=1)
    assert (whole["age"].dtype, whole["rent"].dtype) == ("int64", "Int64")
    assert (whole["age"] - masked["age"]).abs().max() < 40  # other draws, of the same size


def test_correlated_noise_has_the_correlations_of_the_columns() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(5_000, 2))
    frame = pd.DataFrame({"a": x[:, 0], "b": 100 * (x[:, 0] + 0.5 * x[:, 1]), "c": 3 * x[:, 0]})
    masked = frame.sdc.add_noise(["a", "b", "c"], sd=0.5, correlated=True, random_state=1)
    noise = (masked - frame).corr().to_numpy()
    np.testing.assert_allclose(noise, frame.corr().to_numpy(), atol=0.03)
    np.testing.assert_allclose(masked.std() / frame.std(), np.sqrt(1.25), rtol=0.03)
    apart = frame.sdc.add_noise(["a", "b", "c"], sd=0.5, random_state=1)
    assert abs((apart - frame).corr().loc["a", "b"]) < 0.05


@pytest.mark.filterwarnings("ignore:kept columns are unique")
def test_rounding_that_hides_noise_is_no_reason_to_refuse_it(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    far = (1e6 + rng.normal(size=20_000)).astype("float32")  # one of 16 values, mostly
    pd.DataFrame({"far": far}).to_parquet(tmp_path / "source.parquet", index=False)
    spec = Noise(["far"], sd=0.05)
    summary = sdc_dask.protect(tmp_path / "source.parquet", tmp_path / "release", spec)
    assert "as much noise" not in repr(summary)


@pytest.mark.parametrize("dtype", ["float64", "float16", "Float32", "float[pyarrow]"])
def test_noise_beyond_a_dtype_is_an_error(dtype: str) -> None:
    width = {"float64": "float64", "float16": "float16"}.get(dtype, "float32")
    largest = float(np.finfo(width).max)
    frame = pd.DataFrame({"x": np.array([largest, largest, -largest, 0.0] * 5)}).astype(dtype)
    with pytest.raises(SdcError, match=r"values of column 'x' are beyond what \S+ holds"):
        frame.sdc.add_noise(["x"], sd=0.5, random_state=1)


def test_noise_whose_deviation_is_beyond_floats_is_an_error() -> None:
    frame = pd.DataFrame({"x": [1e300, 1.7e308], "y": [1.0, 2.0]})
    with pytest.raises(SdcError, match=r"noise of sd=3 deviations is beyond .*: 'x'\. Divide"):
        frame.sdc.add_noise(["x", "y"], sd=3, random_state=1)


def test_errors_of_noise() -> None:
    frame = people()
    with pytest.raises(SdcError, match="above 0"):
        frame.sdc.add_noise(["age"], sd=0)
    with pytest.raises(SdcError, match="no real number"):
        frame.sdc.add_noise(["sex"], sd=1)
    with pytest.raises(SdcError, match="single column"):
        frame.sdc.add_noise(["age"], sd=1, correlated=True)
    with pytest.raises(SdcError, match=r"missing cells in columns: 'hours' .* correlated=False"):
        frame.sdc.add_noise(["age", "hours"], sd=1, correlated=True)
    with pytest.raises(SdcError, match="none has integers"):
        frame.sdc.add_noise(["hours"], sd=1, whole=True)
    with pytest.raises(SdcError, match="columns of a single value: 'age'"):
        frame.assign(age=1).sdc.add_noise(["age"], sd=1)
    with pytest.raises(SdcError, match="beyond what uint8 holds"):
        frame.astype({"age": "uint8"}).sdc.add_noise(["age"], sd=1, whole=True)


# Lists, in which one sees what another leaves


@pytest.mark.long_on_cluster
def test_those_in_place_come_first(scheduler: str) -> None:
    frame = people()
    plan: list[Spec] = [
        Recode(["age"], bins=[0, 30, 100]),
        Recode(["rent"], top=700),
        Suppress(["town", "age"], k=9),
        Microaggregation(["hours"], k=3, by="age", missing="separate"),
        RankSwap(["rent"], p=9),
    ]
    masked = frame.sdc.mask(plan, random_state=2)
    step = frame.sdc.mask(plan[0]).sdc.mask(plan[1]).sdc.mask(plan[2]).sdc.mask(plan[3])
    pd.testing.assert_frame_equal(step.sdc.mask(plan[4], random_state=2), masked)
    lazy = dd.from_pandas(frame, npartitions=3).sdc.mask(plan, random_state=2)
    pd.testing.assert_frame_equal(lazy.compute(), masked)


def test_changes_and_counts_are_the_same_everywhere(scheduler: str) -> None:
    frame = people(300)
    keys = ["town", "sex", "age"]
    plan: list[Spec] = [
        Suppress(["town", "age"], k=4, missing="matches"),
        Pram(["sex"], keep=0.7, by="text"),
        Noise(["rent"], sd=0.2),
        Noise(["hours"], sd=0.1),
    ]
    lazy = dd.from_pandas(frame, npartitions=3)
    masked = frame.sdc.mask(plan, random_state=4)
    pd.testing.assert_frame_equal(lazy.sdc.mask(plan, random_state=4).compute(), masked)
    assert lazy.sdc.rare_combinations(keys, k=4) == frame.sdc.rare_combinations(keys, k=4)
    links = frame.sdc.linkage(masked, "gower", keys, missing="matches")
    parts = dd.from_pandas(masked, npartitions=3)
    assert lazy.sdc.linkage(parts, "gower", keys, missing="matches") == links


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ([Microaggregation(["age"], 3), Recode(["age"], top=80)], "put that first"),
        ([Suppress(["age"], 3), Noise(["age"], 1)], "promises k"),
        ([Suppress(["age"], 3, missing="matches"), Noise(["age"], 1)], "promises k"),
        ([Pram(["sex"], keep=0.5, by="age"), Recode(["age"], top=80)], "by names columns"),
        ([Microaggregation(["rent"], 3, by="age"), Recode(["age"], top=80)], "by names columns"),
    ],
)
def test_lists_that_undo_themselves(plan: list[Spec], message: str) -> None:
    with pytest.raises(SdcError, match=message):
        people().sdc.mask(plan)


def test_a_frame_that_is_not_the_same_each_time_is_an_error() -> None:
    calls = iter(range(100))

    def longer(part: pd.DataFrame) -> pd.DataFrame:
        return part.iloc[next(calls) % 2 :] if len(part) else part

    lazy = dd.from_pandas(people(), npartitions=1)
    lazy = lazy.map_partitions(longer, meta=lazy._meta)
    with pytest.raises(SdcError, match="not the same each time"):
        lazy.sdc.pram(["sex"], keep=0.5).compute()


SPECS = [
    Recode(["age"], bins=[0, 18, float("inf")], labels=["none", "inf"]),
    Recode(["age"], mapping={1: 10, 2: 10}),
    Recode(["town"], mapping=TOWNS),
    Recode(["age"], top=80),
    Recode(["town"], mapping={"Bonn": "none"}, others="inf"),
    Recode(["born"], top="1999-12-31", bottom="1950-01-01"),
    Suppress(["sex", "age"], 3, costs=[2, 1], missing="matches"),
    Pram(["sex"], matrix={"f": {"f": 0.5, "m": 0.5}, "m": {"m": 1}}),
    Pram(["sex"], keep=0.5, by="town"),
    Noise(["age"], 0.1, whole=True),
]


@pytest.mark.parametrize("spec", SPECS, ids=repr)
def test_specs_go_to_files_and_back(spec: Spec, tmp_path: Path) -> None:
    assert Spec.from_dict(spec.to_dict()) == spec
    assert eval(repr(spec), {**vars(sdc_dask), "float": float}) == spec
    job = sdc_dask.Job("survey", "release", spec)
    job.write(tmp_path / "job.toml")
    assert sdc_dask.Job.read(tmp_path / "job.toml").specs == (spec,)


def test_command_line(tmp_path: Path) -> None:
    cases: dict[str, Spec] = {
        "--masking recode --columns age --bins 0,18,inf --labels child,adult": Recode(
            ["age"], bins=[0, 18, float("inf")], labels=["child", "adult"]
        ),
        "--masking recode --columns town --mapping a:b,c:b": Recode(
            ["town"], mapping={"a": "b", "c": "b"}
        ),
        "--masking recode --columns age --mapping 1:10,2:10 --others 0": Recode(
            ["age"], mapping={1: 10, 2: 10}, others=0
        ),
        "--masking recode --columns born --bins 1950-01-01,2000-01-01,inf": Recode(
            ["born"], bins=["1950-01-01", "2000-01-01", float("inf")]
        ),
        "--masking recode --columns born --top 2000-01-01": Recode(["born"], top="2000-01-01"),
        "--masking pram --columns sex --matrix f:f:1,m:m:0.5,m:f:0.5": Pram(
            ["sex"], matrix=[("f", "f", 1), ("m", "m", 0.5), ("m", "f", 0.5)]
        ),
        "--masking suppress --columns sex,age -k 3 --costs 2,1": Suppress(
            ["sex", "age"], 3, costs=[2, 1]
        ),
        "--masking noise --columns age --sd 0.1 --whole": Noise(["age"], 0.1, whole=True),
    }
    for number, (text, spec) in enumerate(cases.items()):
        file = tmp_path / f"{number}.toml"
        arguments = ["survey", "release", *text.split(), "--write-job", str(file)]
        cli.protect(arguments, standalone_mode=False)
        assert sdc_dask.Job.read(file).specs == (spec,)


def test_job_files_take_tables() -> None:
    table = {"masking": "recode", "columns": ["town"], "mapping": TOWNS}
    assert Spec.from_dict(table) == Recode(["town"], mapping=TOWNS)


def test_protect(tmp_path: Path) -> None:
    frame = people()
    frame["grade"] = pd.Categorical(
        frame["town"].tolist(), ["Jena", "Bonn", "Gera", "Mainz"], ordered=True
    )
    frame.to_parquet(tmp_path / "people.parquet", index=False, row_group_size=300)
    plan = [
        Recode(["town", "text"], mapping=TOWNS),
        Recode(["age"], top=80),
        Noise(["hours"], sd=0.1),
        Pram(["arrow"], keep=0.5, by="town"),
        Suppress(["grade"], k=100),
        Microaggregation(["age", "rent"], k=5, by="sex", missing="separate"),
    ]
    summary = sdc_dask.protect(tmp_path / "people.parquet", tmp_path / "out", plan)
    checked = {each.columns: each.checked for each in summary.masked}
    assert checked == {
        ("town", "text"): "values",
        ("age",): "rows",  # which microaggregation has masked again
        ("hours",): "noise",
        ("arrow",): "values",
        ("grade",): "k",
        ("age", "rent"): "k",
    }
    assert summary.sse is not None
    assert set(summary.sse.by_column) == {"age", "hours", "rent"}
    released = pd.read_parquet(tmp_path / "out")
    assert sorted(released["town"].cat.categories) == ["east", "west"]  # rows are in random order
    assert released["grade"].cat.ordered
    assert released["grade"].cat.categories.tolist() == ["Jena", "Bonn", "Mainz"]
    assert released["age"].max() <= 80
    raw = b"".join(file.read_bytes() for file in (tmp_path / "out").glob("*.parquet"))
    assert b"Nowhere" not in raw
    assert "record by record" in str(summary)
    said = dict(each.split(": ", 1) for each in checks_of(summary) if ": " in each)
    assert said["town, text"].startswith("the files have values that the masking makes")
    assert said["hours"].startswith("the files differ from the source by as much noise")
    assert sdc_dask.verify(tmp_path / "out").ok


def test_values_that_must_not_be_there_are_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people()[["age"]].to_parquet(tmp_path / "people.parquet", index=False)
    spec = Recode(["age"], top=50)
    wrong = Recoding(dataclasses.replace(spec, top=40)).allowed
    monkeypatch.setattr("sdc_dask.release.protect.allowed_values", lambda planned: wrong)
    with pytest.raises(SdcError, match=r"must not have: 'age' \([0-9]+\)"):
        sdc_dask.protect(tmp_path / "people.parquet", tmp_path / "out", spec)
    assert not (tmp_path / "out").exists()


def test_noise_that_is_not_there_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people()[["age", "hours"]].to_parquet(tmp_path / "people.parquet", index=False)

    def run(**options: Any) -> Summary:
        spec = Noise(["age", "hours"], **options)
        return sdc_dask.protect(tmp_path / "people.parquet", tmp_path / "out", spec, replace=True)

    for options in ({"sd": 0.2}, {"sd": 0.1, "whole": True}, {"sd": 0.001, "whole": True}):
        assert "noise    as much as was asked for; compared" in repr(run(**options))
    monkeypatch.setattr("sdc_dask.masking.noise.ndtri", lambda drawn: np.zeros_like(drawn))
    with pytest.raises(SdcError, match="more or less noise than was asked for in columns: age, h"):
        run(sd=0.2)


def test_attacks_refuse_in_words_or_know_nothing_more() -> None:
    frame = sdc_dask.datasets.uniform(300, 2).compute()
    noise = Noise(["x0", "x1"], sd=0.1)
    found = frame.sdc.attack(frame.sdc.mask(noise, random_state=1), knows=noise)
    assert set(found.attacks) == {"distance", "probabilistic"}
    top = Recode(["x0"], top=5_000)
    masked = frame.sdc.mask(top)
    assert set(frame.sdc.attack(masked, knows=top).attacks) == {"distance", "probabilistic"}
    with pytest.raises(SdcError, match="not modelled"):
        frame.sdc.linkage(masked, "intersection", knows=top)
    suppressed = Suppress(["x0"], k=300)
    with pytest.warns(errors.SuppressedAdvice, match=r"'x0' \(100%\)"):
        gone = frame.sdc.mask(suppressed)
    found = frame.sdc.attack(gone, knows=suppressed)
    assert set(found.attacks) == {"gower"}
    assert [link.correct for link in found.links] == [1.0, 1.0]  # all cells are missing
    # Ranges have no distance from numbers: what is known is recoded, too.
    ranges = Recode(["x0"], bins=[-1e4, 0, 1e4])
    found = frame.sdc.attack(frame.sdc.mask(ranges), knows=ranges)
    assert (found.attacks, found.assumes) == (("gower",), ("how columns were recoded",))
    assert found.strongest.correct == pytest.approx(frame.sdc.mask(ranges)["x0"].nunique())


def test_pram_keeps_an_order_that_no_piece_of_a_file_knows_alone(tmp_path: Path) -> None:
    grades = ["low", "middle", "high", "top"]
    values = ["low", "middle"] * 50 + ["middle", "high", "top"] * 40
    frame = pd.DataFrame({"grade": pd.Categorical(values, grades, ordered=True)})
    for number, part in enumerate([frame[:100], frame[100:]]):
        (tmp_path / "source").mkdir(exist_ok=True)
        part = part.assign(grade=part["grade"].cat.remove_unused_categories())
        part.to_parquet(tmp_path / "source" / f"{number}.parquet", index=False)
    spec = Pram(["grade"], keep=0.5)
    options: dict[str, Any] = {"order": "source", "random_state": 1}
    sdc_dask.protect(tmp_path / "source", tmp_path / "release", spec, **options)
    released = pd.read_parquet(tmp_path / "release")["grade"]
    assert released.cat.ordered and released.cat.categories.tolist() == grades
    pd.testing.assert_series_equal(released, frame.sdc.mask(spec, random_state=1)["grade"])
    first, second = (
        pd.read_parquet(path)["grade"].cat.categories.tolist()
        for path in sorted((tmp_path / "release").glob("*.parquet"))
    )
    for each in (first, second):
        assert each == [grade for grade in grades if grade in each]
