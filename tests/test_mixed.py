"""Microaggregation of numbers, dates, texts, booleans and categories together."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask import Microaggregation, SdcError, Spec, cli
from sdc_dask.engine import codecs
from sdc_dask.kernels.grid import centred
from sdc_dask.kernels.groups import medians, modes
from sdc_dask.kernels.mdav import mdav, mdav_brute
from sdc_dask.kernels.nominal import Nominal
from sdc_dask.kernels.vmdav import vmdav, vmdav_brute

SIZES = ["small", "medium", "large"]
COLUMNS = ["age", "income", "size", "job", "kind", "male", "born", "code"]


def people(n: int = 400) -> pd.DataFrame:
    """A frame with columns of every kind, and one that is not masked."""
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "income": rng.lognormal(9, 1, n),
            "size": pd.Categorical(rng.choice(SIZES, n), [*SIZES, "never"], ordered=True),
            "job": pd.array(
                rng.choice([f"job {i}" for i in range(40)], n), dtype="string[pyarrow]"
            ),
            "kind": pd.Categorical(rng.choice(["x", "y", "z"], n, p=[0.7, 0.2, 0.1])),
            "male": rng.random(n) < 0.4,
            "born": pd.Timestamp("1950-03-01") + pd.to_timedelta(rng.integers(0, 9_999, n), "D"),
            "code": rng.integers(1, 7, n),
            "untouched": rng.random(n),
        }
    )


def lost(frame: pd.DataFrame, masked: pd.DataFrame) -> float:
    """Add up squared distances of records to the centroids of their classes."""
    numbers = frame[["age", "income"]].assign(
        born=frame["born"].astype("int64"), size=frame["size"].cat.codes
    )
    numbers = (numbers - numbers.mean()) / numbers.std(ddof=0)
    hot = pd.get_dummies(frame[["job", "kind", "code"]].astype(str), dtype=float) * np.sqrt(0.5)
    points = pd.concat([numbers, frame["male"].astype(float), hot], axis=1)
    group = masked.groupby(COLUMNS, observed=True).ngroup()
    return float(((points - points.groupby(group).transform("mean")) ** 2).to_numpy().sum())


# Kernels


def one_hot(points: np.ndarray, nominal: Nominal) -> np.ndarray:
    """Coordinates whose squared distances are those of points and categories together."""
    parts = [
        np.eye(codes.max() + 1)[codes] * np.sqrt(weight / 2)
        for codes, weight in zip(*nominal, strict=True)
    ]
    return np.ascontiguousarray(np.hstack([points, *parts]))


@pytest.mark.parametrize("k", [2, 5])
def test_categories_are_grouped_as_one_hot_coordinates_are(k: int) -> None:
    rng = np.random.default_rng(k)
    for n in (k, 3 * k, 97, 250):
        points = rng.normal(size=(n, 2))
        codes = np.stack([rng.integers(0, 4, n), rng.integers(0, 60, n)])
        nominal = Nominal(codes, np.array([1.0, 0.37]))
        wide = centred(one_hot(points, nominal))
        np.testing.assert_array_equal(mdav(points, k, nominal), mdav_brute(wide, k))
        for gain in (0.0, 1.1):
            np.testing.assert_array_equal(
                vmdav(points, k, gain, nominal), vmdav_brute(wide, k, gain)
            )


def test_categories_alone_are_grouped() -> None:
    codes = np.array([[0, 1, 0, 1, 2, 2, 0]])
    labels = mdav(np.zeros((7, 1)), 2, Nominal(codes, np.ones(1)))
    assert all(len(set(labels[codes[0] == code])) == 1 for code in (1, 2))


def test_medians_and_modes_are_those_of_pandas() -> None:
    rng = np.random.default_rng(0)
    labels = rng.permutation(np.repeat(np.arange(30), 5))
    codes = rng.integers(0, 6, 150).astype(float)
    groups = pd.Series(codes).groupby(labels)
    np.testing.assert_array_equal(medians(codes, labels), groups.transform("median"))
    preference = rng.permutation(6)
    for label, group in groups:
        counts = group.value_counts()
        best = [code for code in counts.index if counts[code] == counts.max()]
        expected = min(best, key=lambda code: preference[int(code)])
        assert set(modes(codes, labels, preference)[labels == label]) == {expected}


# Frames


@pytest.mark.parametrize("method", ["mdav", "vmdav"])
def test_groups_get_means_medians_and_modes(method: str) -> None:
    frame = people()
    masked = frame.sdc.microaggregate(COLUMNS, 4, method=method, nominal="code", keep_integers=True)
    assert masked.dtypes.equals(frame.dtypes)
    pd.testing.assert_series_equal(masked["untouched"], frame["untouched"])
    frequent = {name: frame[name].value_counts() for name in ("job", "kind", "male", "code")}
    for _, rows in masked.groupby(COLUMNS, observed=True).groups.items():
        group, stands = frame.loc[rows], masked.loc[rows[0]]
        assert len(group) >= 4
        # A class may be of several groups with equal representatives, but rarely.
        if len(group) > 7:
            continue
        assert stands["age"] == np.rint(group["age"].mean())
        assert stands["income"] == pytest.approx(group["income"].mean())
        assert stands["born"] == group["born"].mean().round("D")
        ranks = group["size"].cat.codes.sort_values().to_numpy()
        middle = {ranks[(len(ranks) - 1) // 2], ranks[len(ranks) // 2]}
        assert [*SIZES, "never"].index(stands["size"]) in middle
        for name, overall in frequent.items():
            counts = group[name].value_counts()
            best = [value for value in counts.index if counts[value] == counts.max()]
            assert stands[name] in best
            assert overall[stands[name]] == max(overall[value] for value in best)


@pytest.mark.parametrize("blocking", [{"max_block": 60}, {"blocking": None}])
def test_dask_equals_pandas(scheduler: str, blocking: dict[str, Any]) -> None:
    frame = people()
    options = {"k": 4, "nominal": ["code"], "importance": {"age": 2, "job": 0.5}, **blocking}
    expected = frame.sdc.microaggregate(COLUMNS, **options)
    assert expected.sdc.anonymity(COLUMNS, 4).k_min >= 4
    masked = dd.from_pandas(frame, npartitions=5).sdc.microaggregate(COLUMNS, **options)
    pd.testing.assert_frame_equal(masked.compute(), expected, check_exact=True)
    pd.testing.assert_frame_equal(masked._meta, expected.iloc[:0])
    stayed = frame.sdc.microaggregate(COLUMNS, keep_order=False, **options)
    pd.testing.assert_frame_equal(stayed.sort_index(), expected, check_exact=True)


TEXTS = st.sampled_from(["a", "b", "c", "d"])
MAYBE = {
    "text": (st.none() | TEXTS, "object"),
    "string": (st.none() | TEXTS, "string[pyarrow]"),
    "category": (st.none() | TEXTS, "category"),
    "arrow": (st.none() | TEXTS, pd.ArrowDtype(pa.dictionary(pa.int8(), pa.string()))),
    "truth": (st.none() | st.booleans(), "boolean"),
    "day": (st.none() | st.integers(-9, 9), "datetime64[s]"),
    "zoned": (st.none() | st.integers(-9, 9), pd.ArrowDtype(pa.timestamp("us", tz="Asia/Tokyo"))),
    "rank": (st.none() | st.integers(1, 5), "Int64"),
    "number": (st.none() | st.floats(-9, 9), "float64"),
}


@st.composite
def frames(draw: st.DrawFn) -> pd.DataFrame:
    n = draw(st.integers(4, 24))
    names = draw(st.lists(st.sampled_from(list(MAYBE)), min_size=1, max_size=4, unique=True))
    found = {}
    for name in names:
        cells, dtype = MAYBE[name]
        values = draw(st.lists(cells, min_size=n, max_size=n))
        if name == "arrow":
            found[name] = pd.Series(
                pd.arrays.ArrowExtensionArray(
                    pa.array(values, pa.string()).dictionary_encode().cast(dtype.pyarrow_dtype)
                )
            )
        elif name == "zoned":
            found[name] = pd.Series(
                pd.arrays.ArrowExtensionArray(
                    pa.array(values, pa.int64()).cast(dtype.pyarrow_dtype)
                )
            )
        else:
            found[name] = pd.Series(values).astype(dtype)
    return pd.DataFrame(found)


def values_of(column: pd.Series) -> set[Any]:
    return set(column.dropna().astype(object))


@settings(max_examples=12)
@given(frames(), st.integers(1, 5), st.sampled_from(["mdav", "vmdav"]), st.booleans())
def test_what_holds_for_all_frames(
    frame: pd.DataFrame, npartitions: int, method: str, keep_integers: bool
) -> None:
    names = list(frame)
    orders = {"rank": [5, 3, 1, 2, 4]} if "rank" in names else {}
    options = {"method": method, "orders": orders, "missing": "separate", "max_block": 6}
    options["keep_integers"] = keep_integers
    config = {"scheduler": "sync", "dataframe.convert-string": False}

    def run(each: Any) -> Any:
        try:
            return each.sdc.microaggregate(names, 2, **options)
        except SdcError as error:
            return str(error)

    masked = run(frame)
    with dask.config.set(config):
        lazy = run(dd.from_pandas(frame, npartitions=npartitions, sort=False))
        if isinstance(masked, str):
            assert lazy == masked
            return
        pd.testing.assert_frame_equal(lazy.compute(), masked, check_exact=True)
    assert masked.dtypes.equals(frame.dtypes)
    assert masked.isna().equals(frame.isna())
    assert masked.sdc.anonymity(names, 2).below_k == 0
    for name in set(names) & {"text", "string", "category", "arrow", "truth", "rank"}:
        assert values_of(masked[name]) <= values_of(frame[name])


def test_partitions_may_know_only_their_own_categories() -> None:
    frame = people(60)[["income", "kind"]]
    parts = [frame.iloc[i : i + 12].copy() for i in range(0, 60, 12)]
    for part in parts:
        part["kind"] = part["kind"].cat.remove_unused_categories()
    lazy = dd.from_delayed(
        [dask.delayed(part) for part in parts], meta=frame.iloc[:0], verify_meta=False
    )
    masked = lazy.sdc.microaggregate(["income", "kind"], 5).compute()
    expected = frame.sdc.microaggregate(["income", "kind"], 5)
    pd.testing.assert_frame_equal(masked.astype({"kind": str}), expected.astype({"kind": str}))


def test_orders_of_partitions_are_one_order_or_refused() -> None:
    def ordered(*parts: list[str]) -> Any:
        cells = [
            pd.DataFrame({"size": pd.Categorical(each * 2, each, ordered=True)}) for each in parts
        ]
        made = [dask.delayed(part) for part in cells]
        return dd.from_delayed(made, meta=cells[0].iloc[:0], verify_meta=False)

    masked = ordered(SIZES[:2], SIZES[1:]).sdc.microaggregate(["size"], 4).compute()
    # The ranks of two small, four medium and two large ones; categories are those of partitions.
    assert masked["size"].astype(object).tolist() in (
        ["medium"] * 8,
        [*["small"] * 4, *["medium"] * 4],
    )
    for parts in ([SIZES[:2], SIZES[::2]], [SIZES[:2], SIZES[1::-1]]):
        with pytest.raises(ValueError, match=r"give no order of all: .* name it in orders="):
            ordered(*parts).sdc.microaggregate(["size"], 4)


def test_importance_says_what_is_kept() -> None:
    frame = people()
    kept = []
    for weight in (0.01, 100):
        masked = frame.sdc.microaggregate(["age", "income", "kind"], 5, importance={"kind": weight})
        kept.append(int((masked["kind"] == frame["kind"]).sum()))
    assert kept[0] < kept[1]
    assert kept[1] > len(frame) - 10


def test_times_are_rounded_to_what_all_are_multiples_of() -> None:
    hours = pd.Series(pd.date_range("2024-01-01", periods=9, freq="5h", tz="Europe/Madrid"))
    masked = pd.DataFrame({"when": hours}).sdc.microaggregate(["when"], 4)["when"]
    assert masked.dtype == hours.dtype
    assert (masked.dt.minute == 0).all()
    assert (masked.dt.hour != 0).any()
    fine = pd.DataFrame({"when": pd.to_datetime([1, 2**62] * 4)})
    with pytest.raises(ValueError, match="round them to microseconds first"):
        fine.sdc.microaggregate(["when"], 4)


# Files


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Sao_Paulo", "America/Havana", "+05:30"])
@pytest.mark.parametrize("unit", ["s", "us", "pyarrow"])
def test_days_of_a_zone_stay_days(zone: str, unit: str) -> None:
    # Clocks of Sao Paulo are put forward at midnight, those of Havana back to it.
    days = pd.DatetimeIndex(pd.date_range("1999-01-01", "2002-12-31")).as_unit(
        "us" if unit == "pyarrow" else unit
    )
    begins = days.tz_localize(zone, nonexistent="shift_forward", ambiguous=np.ones(len(days), bool))
    rng = np.random.default_rng(1)
    born = pd.Series(begins).sample(300, replace=True, random_state=1, ignore_index=True)
    frame = pd.DataFrame({"born": born, "x": rng.integers(0, 5, 300)})
    frame.loc[5:9, "born"] = pd.NaT
    if unit == "pyarrow":
        frame["born"] = frame["born"].astype(pd.ArrowDtype(pa.timestamp("us", tz=zone)))
    masked = frame.sdc.microaggregate(["born", "x"], k=3, missing="separate")
    assert masked["born"].dtype == frame["born"].dtype
    assert masked["born"].isna().sum() == 5
    found = masked["born"].dropna().astype(born.dtype)
    assert set(found) <= set(begins)
    assert found.nunique() > 50
    # Each is the day that is nearest to the mean of its group.
    wall = frame["born"].astype(born.dtype).dt.tz_localize(None).dt.normalize()
    number = (wall - wall.min()).dt.days
    other = (found.dt.tz_localize(None).dt.normalize() - wall.min()).dt.days
    means = number.groupby([masked["born"], masked["x"]]).transform("mean")
    assert (np.abs(means - other).dropna() <= 0.5).all()
    parts = dd.from_pandas(frame, npartitions=3)
    lazy = parts.sdc.microaggregate(["born", "x"], k=3, missing="separate")
    pd.testing.assert_frame_equal(lazy.compute(), masked)
    # Another time among them, and all are instants again.
    frame.loc[0, "born"] = frame.loc[0, "born"] + pd.Timedelta("15min")
    assert frame.sdc.microaggregate(["born", "x"], k=3, missing="separate").shape == frame.shape


def test_what_is_measured_is_of_all_masked_columns(tmp_path: Path) -> None:
    frame = people()[["age", "income", "job"]]
    frame.to_parquet(tmp_path / "data.parquet")
    spec = Microaggregation(list(frame), 5)
    summary = sdc_dask.protect(
        tmp_path / "data.parquet", tmp_path / "release", spec, order="source", measure=True
    )
    masked = pd.read_parquet(tmp_path / "release")
    numbers, loss, links = summary.measured
    assert numbers.il == frame.sdc.score(masked, ["age", "income"]).il
    assert loss.by_column == frame.sdc.mixed_loss(masked).by_column
    assert links.rate == frame.sdc.linkage(masked, "gower").rate
    assert "numbers alone: information loss" in repr(summary)
    assert f"{links.rate:.2f} % linked by an intruder who knows all 3" in repr(summary)


def test_files_hold_classes_of_k_and_no_category_that_is_gone(
    tmp_path: Path, smallest_class: Callable[..., int]
) -> None:
    frame = people()
    frame["kind"] = frame["kind"].cat.add_categories(["rarely", "never"])
    frame.loc[0, "kind"] = "rarely"
    frame["day"] = frame["born"].dt.date
    (tmp_path / "data").mkdir()
    for i in range(2):
        frame.iloc[200 * i : 200 * i + 200].to_parquet(tmp_path / "data" / f"{i}.parquet")
    columns = [*COLUMNS, "day"]
    spec = Microaggregation(columns, 5, nominal=["code"], keep_integers=True)
    for order in ("random", "source"):
        target = tmp_path / order
        summary = sdc_dask.protect(tmp_path / "data", target, spec, keep="*", order=order)
        assert summary.anonymity[0].k_min >= 5
        assert set(summary.sse.by_column) == {"age", "income"}
        assert sdc_dask.verify(target).ok
        table = pq.read_table(target)
        assert table.schema.field("day").type == pa.date32()
        assert table.schema.field("code").type == pa.int64()
        found = table.to_pandas()
        assert smallest_class(found, columns) >= 5
        assert found["size"].cat.ordered
        for name in ("size", "job", "kind", "code"):
            assert values_of(found[name]) <= values_of(frame[name])
        for file in target.glob("*.parquet"):
            assert b"never" not in file.read_bytes()
            assert b"rarely" not in file.read_bytes()
    expected = frame.drop(columns="day").sdc.microaggregate(
        COLUMNS, 5, nominal=["code"], keep_integers=True, importance={"born": 2}
    )
    # The day is the birthday again, whose squared difference counts twice then.
    for name in COLUMNS:
        assert found[name].astype(str).tolist() == expected[name].astype(str).tolist()


CENSUS: dict[str, tuple[list[str], dict[str, list[int]], list[str]]] = {
    "adult": (
        ["age", "hours_per_week"],
        {"education_num": list(range(1, 17))},
        ["sex", "race", "marital_status", "workclass", "occupation"],
    ),
    "sdcmicro_testdata": (
        ["age", "income"],
        {"walls": [2, 3, 9]},
        ["sex", "urbrur", "roof", "water", "relat"],
    ),
}


@pytest.mark.parametrize("k", [3, 5, 10])
@pytest.mark.parametrize("width", [5, 6, 7, 8])
@pytest.mark.parametrize("name", CENSUS)
def test_all_records_of_census_data_have_k_in_many_columns(
    name: str,
    k: int,
    width: int,
    reference: Callable[[str], pd.DataFrame],
    smallest_class: Callable[..., int],
    tmp_path: Path,
) -> None:
    numbers, orders, categories = CENSUS[name]
    others = categories[: width - len(numbers) - len(orders)]
    frame = reference(name)[[*numbers, *orders, *others]]
    assert frame.shape == ({"adult": 32_561, "sdcmicro_testdata": 4_580}[name], width)
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].fillna("?")
    frame.to_parquet(tmp_path / "data.parquet")
    spec = Microaggregation(
        list(frame), k, orders=orders, nominal=others, keep_integers=True, max_block=1_000
    )
    sdc_dask.protect(tmp_path / "data.parquet", tmp_path / "release", spec, order="source")
    released = pd.read_parquet(tmp_path / "release")
    assert len(released) == len(frame)
    assert smallest_class(released, list(frame)) >= k
    for column in (*orders, *others):
        assert set(released[column]) <= set(frame[column])
        # Most cells of a category stay, and some do not.
        assert 0.6 < (released[column] == frame[column]).mean() < 1


def test_a_category_that_was_not_in_the_data_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = people(60).assign(day=pd.Timestamp("2024-01-01"))[["age", "job", "male", "day"]]
    frame.loc[::2, "day"] += pd.Timedelta("36h")
    frame.to_parquet(tmp_path / "data.parquet")
    spec = Microaggregation(list(frame), 3, nominal=["age", "day"])
    release = sdc_dask.protect(tmp_path / "data.parquet", tmp_path / "release", spec)
    assert release.anonymity[0].k_min >= 3
    decode = codecs.Categories.decode

    def wrong(self: codecs.Categories, codes: np.ndarray, dtype: Any) -> Any:
        is_text = isinstance(self.values[0], str)
        return decode(replace(self, values=("new",) * 40) if is_text else self, codes, dtype)

    monkeypatch.setattr(codecs.Categories, "decode", wrong)
    with pytest.raises(RuntimeError, match=r"must not have: 'job' \(60\). Nothing is released"):
        sdc_dask.protect(tmp_path / "data.parquet", tmp_path / "other", spec)
    assert not (tmp_path / "other").exists()


# What is refused


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"orders": {"size": "abc"}}, TypeError, "must be a list of its values"),
        ({"orders": {"size": ["a"]}}, ValueError, "two values at least, received 1"),
        ({"orders": {"size": ["a", "b", "a"]}}, ValueError, "names 1 values more than once"),
        (
            {"orders": {"size": ["a", None]}},
            TypeError,
            "texts, numbers or booleans, received str, N",
        ),
        ({"orders": {"size": [1.0, float("nan")]}}, ValueError, "has a gap"),
        ({"orders": {"other": ["a", "b"]}}, ValueError, "not masked: 'other'"),
        ({"orders": ["size"]}, TypeError, "orders must be a dict from columns"),
        ({"orders": {"job": ["job 1", "job 2"]}}, ValueError, "has 38 different values that its"),
        ({"orders": {"code": ["1", "2"]}}, ValueError, "order names str, the column holds int"),
        ({"orders": {"code": [1, 2]}, "nominal": "code"}, ValueError, "an order, or none"),
        ({"nominal": "other"}, ValueError, "not masked: 'other'"),
        ({"importance": {"age": 0}}, ValueError, "must be above 0"),
        ({"importance": {"age": -1}}, ValueError, "at least 0"),
        ({"importance": {"age": "much"}}, TypeError, "must be a number"),
        ({"importance": {"age": 2}, "standardize": False}, ValueError, "in their own units"),
        ({"keep_integers": 1}, TypeError, "True or False"),
        ({"standardize": False}, ValueError, "for numbers alone.*'size', 'job'"),
        ({"refine": True, "nominal": ["age", "code"]}, ValueError, "up to 100 categories together"),
        ({"method": "pcp"}, TypeError, "'size' has dtype category.*as method='pcp' needs"),
        ({"method": "pcp", "nominal": "code"}, ValueError, "nominal has no meaning with method="),
    ],
)
def test_what_cannot_be_is_said(options: dict[str, Any], error: type, text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        people().sdc.microaggregate(COLUMNS, 4, **options)
    assert isinstance(caught.value, SdcError)


def test_values_that_are_no_categories(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = people(20).assign(mixed=[1, "a"] * 10, lag=pd.Timedelta("1h"), cut=1j)
    with pytest.raises(TypeError, match="holds other values than texts"):
        frame.sdc.microaggregate(["age", "mixed"], 4)
    for name in ("lag", "cut"):
        with pytest.raises(TypeError, match="neither a number, a date"):
            frame.sdc.microaggregate(["age", name], 4)
    monkeypatch.setattr(codecs, "MOST_CATEGORIES", 10)
    with pytest.raises(ValueError, match="'job' has more than 10 different values"):
        frame.sdc.microaggregate(["age", "job"], 4)


def test_specs_of_mixed_columns_are_values() -> None:
    spec = Microaggregation(
        ["a", "b", "c"], 3, orders={"a": ["x", "y"]}, nominal="b", importance={"c": 2}
    )
    assert eval(repr(spec)) == spec
    assert hash(eval(repr(spec))) == hash(spec)
    assert Spec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert spec.to_dict()["orders"] == {"a": ["x", "y"]}


def test_the_command_line_and_job_files_say_what_columns_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    options = [
        *("--columns", "age,size,code", "-k", "4", "--orders", "size=small,medium,large"),
        *("--nominal", "code", "--importance", "age=2", "--importance", "size=0.5"),
        *("--keep-integers", "--unit", "person", "--drop", "person", "--write-job", str(job)),
    ]
    people(40).assign(person=range(40))[["age", "size", "code", "person"]].to_parquet(
        tmp_path / "data.parquet"
    )
    program = ["protect", str(tmp_path / "data.parquet"), str(tmp_path / "target"), *options]
    assert cli.main(program) == 0
    (spec,) = sdc_dask.Job.read(job).specs
    assert spec == Microaggregation(
        ["age", "size", "code"],
        4,
        orders={"size": SIZES},
        nominal=["code"],
        importance={"age": 2, "size": 0.5},
        keep_integers=True,
        unit="person",
    )
    assert cli.main([*program[:-2], "--importance", "age"]) == 2
    assert "--importance takes a column, an equals sign" in capsys.readouterr().err


@pytest.mark.parametrize(
    "options",
    [
        {"refine": 30},
        {"refine": 10, "max_block": 60, "by": "untouched"},
        {"refine": 10, "max_block": 60, "borders": True},
        {"refine": 5, "max_block": 60, "borders": True, "unit": "untouched"},
    ],
)
def test_groups_of_every_kind_are_refined(options: dict[str, Any]) -> None:
    frame = people(600)
    frame["untouched"] = np.arange(len(frame)) // (300 if "by" in options else 2)
    options = {"columns": COLUMNS, "k": 4, "nominal": "code", **options}
    plain = {**options, "refine": False, "borders": False}
    before, after = (frame.sdc.microaggregate(**each) for each in (plain, options))
    assert after.groupby(COLUMNS, observed=True).size().min() >= 4
    # Records of a unit are not what is refined, but what stands for them.
    assert lost(frame, after) < (1.02 if "unit" in options else 0.97) * lost(frame, before)
    assert set(after["job"]) <= set(frame["job"])
    if "borders" in options:
        within = frame.sdc.microaggregate(**{**options, "borders": False})
        assert not within.equals(after)
    with dask.config.set({"scheduler": "sync", "dataframe.convert-string": False}):
        lazy = dd.from_pandas(frame, npartitions=4).sdc.microaggregate(**options)
        pd.testing.assert_frame_equal(lazy.compute(), after, check_exact=True)
