"""k counts units: persons or households, of which several records may be one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask import Microaggregation
from sdc_dask.engine.units import unit_keys
from sdc_dask.release import write


def visits(n: int = 600) -> pd.DataFrame:
    """Records of persons, of whom some have many."""
    rng = np.random.default_rng(8)
    person = (120 * rng.random(n) ** 2).astype(int)
    return pd.DataFrame(
        {
            "age": rng.integers(18, 90, n),
            "cost": rng.lognormal(5, 1, n),
            "job": rng.choice(list("abcdef"), n),
            "ward": rng.choice(["north", "south"], n),
            "person": [f"id {each}" for each in person],
        }
    )


def fewest_units(frame: pd.DataFrame, masked: pd.DataFrame, columns: list[str]) -> int:
    """Count the units of classes with pandas alone."""
    units = masked.assign(person=frame["person"].to_numpy())
    return int(units.groupby(columns, dropna=False)["person"].nunique().min())


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["age", "cost", "job"]},
        {"columns": ["age", "cost", "job"], "max_block": 20, "by": "ward"},
        {"columns": ["age", "cost"], "max_block": 30, "method": "vmdav"},
        {"columns": ["age"], "max_block": 10},
        {"columns": ["age", "cost"], "refine": 2},
    ],
)
def test_k_counts_units(options: dict[str, Any]) -> None:
    frame = visits()
    columns = [*options["columns"], *([options["by"]] if "by" in options else [])]
    masked = frame.sdc.microaggregate(k=4, unit="person", **options)
    fewest = fewest_units(frame, masked, columns)
    assert fewest >= 4
    found = masked.sdc.anonymity(columns, 4, unit="person")
    assert (found.k_min, found.below_k, found.rows) == (fewest, 0, len(frame))
    with dask.config.set({"scheduler": "sync", "dataframe.convert-string": False}):
        lazy = dd.from_pandas(frame, npartitions=4).sdc.microaggregate(
            k=4, unit="person", **options
        )
        pd.testing.assert_frame_equal(lazy.compute(), masked, check_exact=True)
        assert lazy.sdc.anonymity(columns, 4, unit="person") == found
    if "max_block" not in options:
        # Without blocks, the records of a unit are alike.
        classes = masked.groupby(columns).ngroup()
        assert (classes.groupby(frame["person"]).nunique() == 1).all()


def test_records_alone_would_not_do() -> None:
    frame = visits()
    masked = frame.sdc.microaggregate(["age", "cost"], 4)
    assert fewest_units(frame, masked, ["age", "cost"]) < 4


def test_records_of_nobody_are_not_counted() -> None:
    frame = visits()
    frame.loc[:2, "person"] = None
    for each in (frame, dd.from_pandas(frame, npartitions=2)):
        with pytest.raises(ValueError, match="unit='person' has 3 missing cells: whose record"):
            each.sdc.anonymity(["age"], 4, unit="person")


@pytest.mark.parametrize("order", ["random", "source"])
def test_units_are_counted_on_the_files(tmp_path: Path, order: str) -> None:
    frame = visits()
    (tmp_path / "data").mkdir()
    for i in range(2):
        frame.iloc[300 * i : 300 * i + 300].to_parquet(tmp_path / "data" / f"{i}.parquet")
    spec = Microaggregation(["age", "cost", "job"], 4, by="ward", unit="person", max_block=40)
    target = tmp_path / "target"
    summary = sdc_dask.protect(tmp_path / "data", target, spec, drop="person", order=order)
    columns = ["age", "cost", "job", "ward"]
    expected = frame.sdc.mask(spec)
    assert summary.masked[0].units.k_min == fewest_units(frame, expected, columns) >= 4
    assert "different person reached, 4 asked for; counted on the files" in repr(summary)
    verified = sdc_dask.verify(target)
    assert verified.ok
    assert "(records, not units, which are no part of a release)" in repr(verified)
    found = pq.read_table(target).to_pandas()
    assert set(found) == set(columns)
    assert sorted(found["cost"]) == sorted(expected["cost"])


def parted(frame: pd.DataFrame, masked: pd.DataFrame, columns: list[str]) -> int:
    """Count units whose records are not equal, with pandas alone."""
    classes = masked.groupby(columns, dropna=False).ngroup()
    return int((classes.groupby(frame["person"].to_numpy()).nunique() > 1).sum())


@pytest.mark.parametrize(
    "options",
    [
        {"columns": ["age", "cost"], "max_block": 30, "method": "vmdav", "missing": "separate"},
        {"columns": ["age", "cost", "job"], "max_block": 60, "refine": 2, "borders": True},
        {"columns": ["age", "cost", "job"], "max_block": 20, "by": "own"},
    ],
)
def test_all_records_of_a_unit_are_alike(scheduler: str, options: dict[str, Any]) -> None:
    frame = visits()
    frame["own"] = frame.groupby("person")["ward"].transform("first")
    if "missing" in options:
        frame["cost"] = frame["cost"].where(frame["own"] == "north")
    columns = [*options["columns"], *([options["by"]] if "by" in options else [])]
    options = {"k": 4, "unit": "person", **options}
    assert parted(frame, frame.sdc.microaggregate(**options), columns) > 0
    masked = frame.sdc.microaggregate(**options, units_alike=True)
    assert parted(frame, masked, columns) == 0
    assert fewest_units(frame, masked, columns) >= 4
    # Blocks are of use: there are as many groups as units make, or nearly.
    assert masked.groupby(columns, dropna=False).ngroups > 0.7 * frame["person"].nunique() / 4
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_pandas(frame, npartitions=2)
        found = lazy.sdc.microaggregate(**options, units_alike=True).compute()
    pd.testing.assert_frame_equal(found, masked, check_exact=True)


@settings(max_examples=12)
@given(st.integers(0, 2**32), st.integers(2, 60), st.integers(2, 12))
def test_units_are_alike_whatever_the_data_is(seed: int, n: int, units: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "x": rng.integers(0, 9, n),
            "job": rng.choice(list("abcd"), n),
            "person": rng.integers(0, units, n),
        }
    )
    options = {"columns": ["x", "job"], "k": 2, "unit": "person", "max_block": 2}
    if frame["person"].nunique() < 2:
        return
    masked = frame.sdc.microaggregate(**options, units_alike=True)
    assert parted(frame, masked, ["x", "job"]) == 0
    assert fewest_units(frame, masked, ["x", "job"]) >= 2
    assert set(masked["job"]) <= set(frame["job"])
    if seed % 8 == 0:
        # Some places have no unit then.
        with dask.config.set({"scheduler": "sync", "dataframe.convert-string": False}):
            lazy = dd.from_pandas(frame, npartitions=1 + seed // 8 % 5)
            found = lazy.sdc.microaggregate(**options, units_alike=True).compute()
        pd.testing.assert_frame_equal(found, masked, check_exact=True)


def test_units_are_alike_on_the_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = visits()
    frame.to_parquet(tmp_path / "data.parquet", row_group_size=200)
    columns = ["age", "cost", "job"]
    spec = Microaggregation(columns, 4, unit="person", units_alike=True, max_block=40)

    def run(name: str, **options: Any) -> sdc_dask.Summary:
        return sdc_dask.protect(
            tmp_path / "data.parquet", tmp_path / name, spec, keep="*", **options
        )

    summary = run("kept", order="source")
    assert "alike    all records of each person; counted on the files" in repr(summary)
    assert summary.to_dict()["masked"][0]["parted"] == 0
    released = pd.read_parquet(tmp_path / "kept")
    pd.testing.assert_frame_equal(released, frame.sdc.mask(spec), check_dtype=False)
    assert parted(frame, released, columns) == 0
    # As if blocks parted units.
    monkeypatch.setattr(sdc_dask.Blocks, "__len__", lambda _: 1)
    with pytest.raises(RuntimeError, match=r"files have \d+ units whose records are not equal in"):
        run("other")
    assert not (tmp_path / "other").exists()


def test_a_class_of_too_few_units_is_not_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As if records were grouped, and not units.
    monkeypatch.setattr(write, "unit_keys", lambda column: unit_keys(column.str[:4]))
    visits().to_parquet(tmp_path / "data.parquet")
    spec = Microaggregation(["age", "cost"], 4, unit="person")
    with pytest.raises(RuntimeError, match="different units in the columns age, cost, fewer than"):
        sdc_dask.protect(
            tmp_path / "data.parquet", tmp_path / "target", spec, drop="person", keep="*"
        )
    assert not (tmp_path / "target").exists()


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"unit": ["person"]}, TypeError, "unit must be the name of one column, received list"),
        ({"unit": "age"}, ValueError, "unit names a column that is masked"),
        ({"unit": "absent"}, KeyError, "unit names columns that the frame does not have"),
        ({"unit": "person", "method": "pcp"}, ValueError, "unit has no meaning with method='pcp'"),
        ({"unit": "lost"}, ValueError, "unit='lost' has 3 missing cells"),
        ({"unit": "lost", "units_alike": True}, ValueError, "unit='lost' has 3 missing cells"),
        ({"units_alike": True}, ValueError, "name the column of persons or households in unit="),
        ({"unit": "person", "units_alike": 1}, TypeError, "units_alike must be True or False"),
        (
            {"unit": "person", "units_alike": True, "by": "ward"},
            ValueError,
            r"\d+ units have records in several strata",
        ),
        (
            {"unit": "person", "units_alike": True, "keep_order": False},
            ValueError,
            "units_alike=True sends units elsewhere",
        ),
        ({"unit": "ward"}, ValueError, "1 of 1 strata .* have fewer than k=4 different units"),
    ],
)
def test_units_that_cannot_be(options: dict[str, Any], error: type, text: str) -> None:
    frame = visits().assign(lost=np.where(np.arange(600) < 3, np.nan, np.arange(600)))
    with pytest.raises(error, match=text):
        frame.sdc.microaggregate(["age", "cost"], 4, **options)
