"""Advice at run time: what looks like a slip is told, with a remedy, and can be silenced."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask import Microaggregation, Noise, RankSwap, SdcAccessor, errors
from sdc_dask.engine.scan import scan

N = 200


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "income": rng.lognormal(10, 1, N),
            "age": rng.integers(16, 96, N),
            "sex": rng.integers(1, 3, N),
            "person_id": np.arange(N),
        }
    )


def coded(values: Any, code: float, cells: int) -> pd.Series:
    found = pd.Series(values).copy()
    found[found.index[: 3 * cells : 3]] = code
    return found


# Codes of missing cells


@pytest.mark.parametrize(
    ("column", "code", "cells", "told"),
    [
        ("income", -9, 8, 8),
        ("income", -9, 4, 0),  # too few for a pile
        ("age", 999, 10, 10),
        ("age", -1, 10, 0),  # a value as often as a code
        ("age", 97, 10, 0),  # next to 95 and 96
        ("income", 9_999_999, 10, 10),
    ],
)
def test_piles_of_codes(
    frame: pd.DataFrame, column: str, code: float, cells: int, told: int
) -> None:
    values = coded(frame[column].clip(16, 96) if column == "age" else frame[column], code, cells)
    if code == 97:
        values.iloc[1] = 96
    made = pd.DataFrame({"x": values})
    for npartitions in (1, 4):
        lazy = dd.from_pandas(made, npartitions=npartitions)
        assert scan(lazy, ["x"], []).columns["x"].ends.coded == told
    assert scan(made, ["x"], []).columns["x"].ends.coded == told


def test_several_codes_in_any_partitions(frame: pd.DataFrame) -> None:
    values = frame["age"].astype(float).to_numpy().copy()
    values[:6], values[50:57], values[100:120] = -9, -8, 99_999
    whole = pd.DataFrame({"x": values})
    assert scan(whole, ["x"], []).columns["x"].ends.coded == 33
    for npartitions in (2, 7, 50):
        lazy = dd.from_pandas(whole, npartitions=npartitions)
        assert scan(lazy, ["x"], []) != scan(whole, ["x"], [])  # rows by partition
        assert scan(lazy, ["x"], []).columns == scan(whole, ["x"], []).columns
    values[60] = -20.0  # a value among codes
    assert scan(pd.DataFrame({"x": values}), ["x"], []).columns["x"].ends.coded == 20


def test_codes_are_told_and_can_be_named(frame: pd.DataFrame) -> None:
    df = frame.assign(income=coded(frame["income"], -9, 12))
    with pytest.warns(errors.CodedMissingAdvice, match=r"'income' \(12 records.*\[-9\]"):
        df.sdc.microaggregate(["income", "age"], k=5)
    with pytest.raises(ValueError, match=r"missing cells in columns: 'income' \(12\)"):
        df.sdc.microaggregate(["income", "age"], k=5, missing_values=[-9])
    spec = Microaggregation(["income", "age"], k=5, missing_values=-9, missing="separate")
    masked = df.sdc.mask(spec)
    gone = df["income"] == -9
    assert masked["income"].isna().equals(gone)
    clean = df.assign(income=df["income"].mask(gone))
    expected = clean.sdc.microaggregate(["income", "age"], k=5, missing="separate")
    pd.testing.assert_frame_equal(masked.astype(float), expected.astype(float))
    with dask.config.set(scheduler="threads"):
        lazy = dd.from_pandas(df, npartitions=3).sdc.mask(spec).compute()
    pd.testing.assert_frame_equal(lazy, masked)
    assert sdc_dask.Spec.from_dict(spec.to_dict()) == spec
    assert repr(spec).endswith("missing='separate', missing_values=[-9.0])")


def test_codes_are_found_by_what_is_said_of_them(frame: pd.DataFrame) -> None:
    income, age = coded(frame["income"], -77, 8), coded(frame["age"], 998, 12)
    income.iloc[[1, 4, 7, 10, 13]] = -88
    income.iloc[[2, 5, 8, 11, 14, 17]] = 9_999_999
    df = pd.DataFrame({"income": income, "age": age})
    with pytest.warns(errors.CodedMissingAdvice) as told:
        df.sdc.microaggregate(["income", "age"], k=5)
    text = str(told[0].message)
    assert "'income' (13 records with its 2 smallest values)" in text
    assert "'income' (6 records with its largest value)" in text
    assert "'age' (12 records with its largest value)" in text
    assert not any(code in text for code in ("77", "88", "998", "9999999"))


def test_codes_are_told_whatever_masks_them(frame: pd.DataFrame) -> None:
    df = frame.assign(income=coded(frame["income"], -9, 12), text=frame["sex"].astype(str))
    told = pytest.warns(errors.CodedMissingAdvice, match=r"'income' \(12 records with its smallest")
    with dask.config.set(scheduler="threads"):
        for each in (df, dd.from_pandas(df, npartitions=3)):
            with told:
                each.sdc.rank_swap(["income", "text"], p=10)
            with told:
                each.sdc.rank_swap(["income"], p=10, blocking="tree")
            with told:
                each.sdc.add_noise(["income"], sd=0.1)
            # Where they cannot be named, nobody is told to.
            with pytest.warns(errors.CodedMissingAdvice, match="fill them or drop those records"):
                each.sdc.mic1d(["income"], kappa=20)


def test_codes_stay_out_of_noise(frame: pd.DataFrame) -> None:
    df = frame.assign(age=coded(frame["age"], 999, 10))
    clean = df.assign(age=df["age"].astype("Int64").mask(df["age"] == 999))
    masked = df.sdc.add_noise(["age"], 0.1, missing_values=999, random_state=1)
    expected = clean.sdc.add_noise(["age"], 0.1, random_state=1)
    pd.testing.assert_frame_equal(masked, expected)
    assert masked["age"].isna().equals(df["age"] == 999)
    whole = df.sdc.add_noise(["age"], 0.1, whole=True, missing_values=999, random_state=1)
    assert whole["age"].dtype == "Int64" and whole["age"].max() < 200


def test_codes_stay_out_of_swaps(frame: pd.DataFrame) -> None:
    df = frame.assign(age=coded(frame["age"], 999, 10))
    masked = df.sdc.rank_swap(["age"], p=20, missing_values=[999, -9], random_state=1)
    assert masked["age"].dtype == "Int64"
    assert masked["age"].isna().equals(df["age"] == 999)
    assert sorted(masked["age"].dropna()) == sorted(df.loc[df["age"] != 999, "age"])


def test_codes_in_files(tmp_path: Path, frame: pd.DataFrame) -> None:
    df = frame.assign(
        income=coded(frame["income"], -9, 12),
        age=coded(frame["age"].astype("int16"), 999, 15),
        hours=coded(frame["age"], -9, 11),
    )
    df.to_parquet(tmp_path / "source.parquet", index=False)
    plan = [
        Microaggregation(["income"], k=5, missing="separate", missing_values=[-9]),
        RankSwap(["age"], p=10, missing_values=[999, 1e9]),
        Noise(["hours"], sd=0.1, missing_values=[-9]),
    ]
    with dask.config.set(scheduler="threads"):
        sdc_dask.protect(
            tmp_path / "source.parquet", tmp_path / "release", plan, drop="person_id", keep="*"
        )
    released = pd.read_parquet(tmp_path / "release")
    assert released["income"].isna().sum() == 12 and released["age"].isna().sum() == 15
    assert released["hours"].isna().sum() == 11
    assert (released["income"].dropna() > 0).all() and (released["age"].dropna() < 999).all()
    assert sdc_dask.verify(tmp_path / "release").ok


@pytest.mark.parametrize("values", ["none", [True], [None], [float("nan")], [[1]]])
def test_codes_are_numbers(values: Any) -> None:
    for spec in (Microaggregation, RankSwap, Noise):
        with pytest.raises(TypeError, match="missing_values must be a list of finite numbers"):
            spec(["x"], 5, missing_values=values)


def test_codes_of_texts(frame: pd.DataFrame) -> None:
    with pytest.raises(TypeError, match="as missing_values need"):
        frame.assign(t="a").sdc.rank_swap(["t"], p=5, missing_values=[-9])


# Few values, fractions, columns


def test_few_values(frame: pd.DataFrame) -> None:
    with pytest.warns(errors.FewValuesAdvice, match="fractions: 'sex'.*decimals=0 rounds"):
        frame.sdc.microaggregate(["age", "sex"], k=5)
    with warnings.catch_warnings(action="error"):
        frame.sdc.microaggregate(["age", "sex"], k=5, decimals=0)
        frame.head(20).sdc.microaggregate(["age", "sex"], k=5)  # an example
        frame.assign(sex=frame["sex"].astype(float)).sdc.microaggregate(["age", "sex"], k=5)
    # Whoever means it says so, of this kind or of all.
    for kind in (errors.FewValuesAdvice, errors.Advice):
        with warnings.catch_warnings(action="error"):
            warnings.simplefilter("ignore", kind)
            frame.sdc.microaggregate(["age", "sex"], k=5)


def test_a_fraction_for_a_percentage(frame: pd.DataFrame) -> None:
    with pytest.warns(errors.FractionAdvice, match="p=0.75 is a percentage.*pass p=75"):
        frame.sdc.rank_swap(["income"], p=0.75, random_state=1)
    with pytest.warns(errors.FractionAdvice, match="sd=150 is a share.*pass sd=1.5"):
        frame.sdc.add_noise(["income"], sd=150, random_state=1)


def test_identifiers_and_weights_are_not_compared(frame: pd.DataFrame) -> None:
    df = frame.assign(surveyWeight=1.0, weight=2.0)[["income", "age", "person_id", "weight"]]
    masked = df.sdc.microaggregate(["income", "age"], k=5)
    with pytest.warns(errors.LeftOutAdvice, match="'person_id', 'weight'.*Name in columns="):
        found = df.sdc.sse(masked)
    assert found == df.sdc.sse(masked, ["income", "age"])
    names = ["ID", "hh_id", "personID", "Household", "sample-weight", "caseId", "wt", "hh", "hhid"]
    names += ["pid", "uid", "ssn", "nr", "caseno", "idno", "row_id", "rowid", "pweight", "pw", "w"]
    names += ["hhweight", "personNr", "case_number", "HHID", "survey.pid"]
    others = ["paid", "idle", "heavyweight", "hundredweight", "kids", "age", "avoid", "key_rate"]
    others += ["grid", "fluid", "rooms", "nr_rooms", "floor_no", "now", "view", "persons", "whh"]
    others += ["hh_size", "household_income", "number", "phone", "casework", "x", "weighted"]
    every = pd.DataFrame({name: [1.0, 2.0, 3.0] for name in names + others})
    with pytest.warns(errors.LeftOutAdvice):
        assert list(every.sdc.sse(every).by_column) == others


def test_what_is_left_out_is_said_once(frame: pd.DataFrame) -> None:
    df = frame[["income", "age", "person_id"]].head(40)
    masked = df.sdc.microaggregate(["income", "age"], k=5)
    with pytest.warns(errors.LeftOutAdvice) as told:
        df.sdc.compare({"one": masked, "two": masked})
    assert len(told) == 1


def test_columns_are_anything_that_lists_names(frame: pd.DataFrame) -> None:
    names = ["income", "age"]
    masked = frame.sdc.microaggregate(names, k=5)
    kinds = [pd.Index(names), pd.Series(names), np.array(names), dict.fromkeys(names).keys()]
    calls = {
        "microaggregate": lambda each: frame.sdc.microaggregate(each, k=5)["age"].sum(),
        "sets": lambda each: frame.sdc.microaggregate([each[:1]], k=5)["income"].sum(),
        "sse": lambda each: frame.sdc.sse(masked, each),
        "anonymity": lambda each: masked.sdc.anonymity(each, 5),
        "known": lambda each: frame.sdc.linkage(masked, columns=names, known=each),
    }
    for name, call in calls.items():
        expected = call(names)
        for each in kinds:
            if name == "sets" and not hasattr(each, "__getitem__"):
                continue
            assert call(each) == expected
    for wrong in ({"income"}, 5, (each for each in names), np.array([names])):
        with pytest.raises(TypeError, match="columns must be a list of names"):
            frame.sdc.microaggregate(wrong, k=5)
    with pytest.raises(ValueError, match="groups has a meaning with known='groups' alone"):
        frame.sdc.linkage(masked, columns=names, known=pd.Index(names), groups=[names])


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_that_nobody_masked(frame: pd.DataFrame, lazy: bool) -> None:
    masked = frame.assign(income=frame["income"] + 1, serial_nr=1, note=frame["person_id"])
    original = frame.assign(serial_nr=1, note=frame["person_id"])
    named = "'person_id', 'serial_nr'"
    if lazy:
        original, masked = (dd.from_pandas(each, npartitions=3) for each in (original, masked))
    with (
        dask.config.set(scheduler="threads"),
        pytest.warns(errors.LeftOutAdvice, match=named),
        pytest.warns(errors.UnchangedAdvice, match="the same in both frames: 'age', 'sex', 'note'"),
    ):
        original.sdc.sse(masked)
    if not lazy:
        with pytest.warns(errors.Advice):
            assert original.sdc.linkage(masked).rate == 100
    with dask.config.set(scheduler="threads"), warnings.catch_warnings(action="error"):
        original.sdc.sse(masked, ["income", "age"])  # whoever names a column means it
        original[["income"]].sdc.sse(masked[["income"]])
        itself = original[["income"]]
        assert itself.sdc.sse(itself).sse == 0


# Classes


@pytest.mark.parametrize("other", ["sex", "region"])
def test_records_that_keep_their_values(tmp_path: Path, frame: pd.DataFrame, other: str) -> None:
    df = frame.assign(sex=frame["sex"].astype(float), region=np.where(frame["sex"] == 1, "n", "s"))
    spec = Microaggregation([["income"], [other]], k=5)
    told = f"exact values in columns: '{other}'. .*anonymity"
    with pytest.warns(errors.UnchangedAdvice, match=told):
        df.sdc.mask(spec)
    if other == "sex":  # of numbers, files say it as well
        df.to_parquet(tmp_path / "source.parquet", index=False)
        with dask.config.set(scheduler="threads"), pytest.warns(errors.UnchangedAdvice, match=told):
            sdc_dask.protect(
                tmp_path / "source.parquet", tmp_path / "out", spec, drop="person_id", keep="*"
            )
    with warnings.catch_warnings(action="error"):
        df.head(20).sdc.mask(spec)  # an example
        df.sdc.mask(Microaggregation(["income", "sex"], k=5, decimals=0))


@pytest.mark.parametrize("lazy", [False, True])
def test_suppression_that_leaves_little(tmp_path: Path, frame: pd.DataFrame, lazy: bool) -> None:
    frame = frame.assign(age=frame["age"] // 20)
    given = dd.from_pandas(frame, npartitions=3) if lazy else frame
    told = r"suppressed in columns: 'income' \(100%\)\. .*recode columns.*name fewer.*costs="
    with dask.config.set(scheduler="threads"):
        with pytest.warns(errors.SuppressedAdvice, match=told):
            given.sdc.suppress(["sex", "income"], k=3)
        with warnings.catch_warnings(action="error"):
            given.sdc.suppress(["sex", "age"], k=3)
            given.head(20).sdc.suppress(["sex", "income"], k=3)  # an example


def test_individual_ranking_may_leave_columns_as_they_are(
    tmp_path: Path, frame: pd.DataFrame
) -> None:
    spec = Microaggregation([["income"], ["sex"]], k=5, method="optimal", decimals=0)
    frame.to_parquet(tmp_path / "source.parquet", index=False)
    with warnings.catch_warnings(action="error"), dask.config.set(scheduler="threads"):
        assert (frame.sdc.mask(spec)["sex"] == frame["sex"]).all()
        sdc_dask.protect(
            tmp_path / "source.parquet", tmp_path / "out", spec, drop="person_id", keep="*"
        )
    alone = Microaggregation([["sex"]], k=5, method="optimal", decimals=0)
    with pytest.warns(errors.UnchangedAdvice, match="exact values in columns: 'sex'"):
        frame.sdc.mask(alone)


def households(kinds: int) -> pd.DataFrame:
    rng = np.random.default_rng(5)
    df = pd.DataFrame({"rent": rng.lognormal(6, 1, 60), "household": np.arange(60) % kinds})
    return df.loc[df.index.repeat(5)].sample(frac=1, random_state=1, ignore_index=True)


def test_classes_of_a_single_household() -> None:
    df = households(60)
    told = "60 of 60 classes of k=5 records or more .* a single 'household' .*unit='household'"
    with (
        pytest.warns(errors.UnchangedAdvice),
        pytest.warns(errors.UnitAdvice, match=told),
    ):
        masked = df.sdc.microaggregate(["rent"], k=5)
    with dask.config.set(scheduler="threads"):
        for each in (masked, dd.from_pandas(masked, npartitions=4)):
            with pytest.warns(errors.UnitAdvice, match=told):
                found = each.sdc.anonymity(["rent"], k=5)
            assert found.k_min == 5
            assert each.sdc.anonymity(["rent"], k=5, unit="household").k_min == 1
    with warnings.catch_warnings(action="error"):
        masked.sdc.anonymity(["rent"])
        masked.rename(columns={"household": "household_size"}).sdc.anonymity(["rent"], k=5)
        households(6).sdc.anonymity(["rent"], k=5)  # kinds of households
        masked.assign(household=None).sdc.anonymity(["rent"], k=5)
        units = df.sdc.microaggregate(["rent"], k=5, unit="household")
        units.sdc.anonymity(["rent"], k=5)


@pytest.mark.parametrize("order", ["random", "source"])
def test_files_of_classes_of_a_single_household(tmp_path: Path, order: str) -> None:
    df = households(60).assign(rent=lambda df: df["rent"] + df.index / 1e6, sex=1)
    for number in range(3):
        df.iloc[number::3].to_parquet(tmp_path / f"source-{number}.parquet", index=False)
    plan = Microaggregation(["rent"], k=5, by="sex")
    told = "60 of 60 classes of k=5 records or more .* a single 'household'"
    options: dict[str, Any] = {"drop": "household", "order": order}
    with dask.config.set(scheduler="threads"):
        source = [tmp_path / f"source-{number}.parquet" for number in range(3)]
        with pytest.warns(errors.UnitAdvice, match=told):
            sdc_dask.protect(source, tmp_path / "one", plan, **options)
        plan = Microaggregation(["rent"], k=5, by="sex", unit="household")
        with warnings.catch_warnings(action="error"):
            sdc_dask.protect(source, tmp_path / "other", plan, **options)
            # Where k cannot count units, nobody is told to let it.
            options["keep"] = "sex"
            warnings.simplefilter("ignore", errors.SuppressedAdvice)
            sdc_dask.protect(source, tmp_path / "third", sdc_dask.Suppress(["rent"], 5), **options)


def test_classes_of_a_single_household_in_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdc_dask.engine.lone_units._SAMPLE", 30)
    df = households(60)
    texts = []
    for npartitions in (1, 3, 10):
        lazy = dd.from_pandas(df, npartitions=npartitions)
        with (
            dask.config.set(scheduler="threads"),
            pytest.warns(errors.UnitAdvice, match="30 of 30 .*that were looked at") as told,
        ):
            lazy.sdc.anonymity(["rent"], k=5)
        texts.append(str(told[0].message))
    assert len(set(texts)) == 1


def test_rows_below(frame: pd.DataFrame) -> None:
    sizes = frame.groupby("age")["age"].transform("size")
    found = frame.sdc.anonymity(["age"], k=4)
    assert found.rows_below == (sizes < 4).sum() > found.below_k > 0
    assert frame.sdc.anonymity(["age"]).rows_below is None
    pd.testing.assert_series_equal(frame.sdc.class_size(["age"]), sizes, check_names=False)


def test_class_sizes_of_a_dask_frame(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sdc_dask.risk.anonymity.PARTITIONS_A_BUCKET", 2)
    df = frame.assign(text=frame["sex"].astype(str)).set_index("person_id")
    expected = df.groupby(["age", "text"])["age"].transform("size")
    with dask.config.set(scheduler="threads"):
        found = dd.from_pandas(df, npartitions=7).sdc.class_size(["age", "text"]).compute()
    pd.testing.assert_series_equal(found, expected, check_names=False)
    with pytest.raises(ValueError, match="columns is empty"):
        df.sdc.class_size([])


def test_advice_has_a_remedy_in_the_documentation() -> None:
    text = (Path(__file__).parents[1] / "docs" / "advice.md").read_text()
    for kind in errors.Advice.__subclasses__():
        assert f"`{kind.__name__}`" in text
    assert SdcAccessor.class_size.__doc__
