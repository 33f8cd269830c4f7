"""Strata below k that join others, and the values of `by` that their records get."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.dataframe.utils import clear_known_categories
from frames_of import partitioned
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, Recode, SdcError, Spec
from sdc_dask.kernels.merging import Sites, merge_small

GRADES = ["low", "middle", "high", "top"]


def people(n: int = 300, seed: int = 0) -> pd.DataFrame:
    """A frame with rare strata of several kinds."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "y": rng.lognormal(size=n),
            "job": pd.array(rng.choice(list("abcd"), n), dtype="string[pyarrow]"),
            "region": pd.Categorical(
                rng.choice(["n", "s", "e", "isle"], n, p=[0.5, 0.3, 0.19, 0.01])
            ),
            "grade": pd.Categorical(
                rng.choice(GRADES, n, p=[0.5, 0.4, 0.09, 0.01]), GRADES, ordered=True
            ),
            "size": rng.choice([1.0, 2.0, 50.0, np.nan], n, p=[0.5, 0.45, 0.04, 0.01]),
            "day": pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 3, n), "D"),
            "person": rng.integers(0, n // 2, n),
            "other": rng.random(n),
        }
    )


def plain(frame: pd.DataFrame, columns: list[str]) -> pd.DataFrame:
    """Return columns without categories."""
    return frame[columns].astype(object)


def texts(frame: pd.DataFrame, columns: list[str]) -> pd.Series:
    """Return a text for each record that tells its stratum."""
    return frame[columns].apply(lambda row: "|".join(map(str, row)), axis=1)


def check(frame: pd.DataFrame, masked: pd.DataFrame, columns: list[str], by: list[str], k: int):
    """Say what must hold of strata that were merged."""
    size = masked.groupby([*by, *columns], dropna=False, observed=True).size()
    assert size.min() >= k and size.sum() == len(frame)
    strata, after = texts(frame, by), texts(masked, by)
    assert set(after) <= set(strata)
    large = strata.map(strata.value_counts()) >= k
    differs = strata != after
    # A stratum that is large enough changes as a whole or not at all, and only if others joined.
    by_stratum = differs.groupby(strata)
    assert (by_stratum.nunique() == 1).all()
    assert not differs[large].any()
    pd.testing.assert_series_equal(frame["other"], masked["other"])


@pytest.mark.parametrize("method", ["mdav", "vmdav", "zscores"])
@pytest.mark.parametrize("by", [["region"], ["grade"], ["region", "grade", "size", "day"]])
def test_strata_get_k_records(by: list[str], method: str) -> None:
    frame = people()
    columns = ["x", "y"]
    masked = frame.sdc.microaggregate(columns, 5, by=by, small="merge", method=method)
    check(frame, masked, columns, by, 5)
    assert (plain(frame, by).astype(str) != plain(masked, by).astype(str)).any().any()


@given(st.integers(0, 2**32), st.sampled_from([2, 3, 7]), st.booleans())
@settings(max_examples=6)
def test_whatever_the_data_is(seed: int, k: int, by_unit: bool) -> None:
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2 * k, 60))
    frame = people(n, seed).assign(region=rng.choice(list("abcdefgh"), n))
    unit = "person" if by_unit and frame["person"].nunique() >= k else None
    columns, by = ["x", "job"], ["region", "size"]
    spec = Microaggregation(columns, k, by=by, small="merge", unit=unit)
    masked = frame.sdc.mask(spec)
    if unit is None:
        check(frame, masked, columns, by, k)
    else:
        groups = masked.groupby([*by, *columns], dropna=False)["person"]
        assert groups.nunique().min() >= k
    cuts = [0, *sorted(rng.integers(0, n, 3).tolist()), n]
    found = partitioned(frame, cuts).sdc.mask(spec).compute()
    pd.testing.assert_frame_equal(found, masked, check_exact=True)


@pytest.mark.parametrize("options", [{}, {"unit": "person"}, {"missing": "separate"}])
def test_dask_equals_pandas(scheduler: str, options: dict[str, Any]) -> None:
    frame = people()
    if "missing" in options:
        frame.loc[::7, "x"] = np.nan
        frame.loc[::14, "job"] = pd.NA
    spec = Microaggregation(["x", "job"], 5, by=["region", "grade"], small="merge", **options)
    masked = frame.sdc.mask(spec)
    size = masked.groupby(["region", "grade", "x", "job"], dropna=False, observed=True).size()
    assert size.min() >= 5
    for borders in ([0, 300], [0, 10, 10, 170, 300]):
        found = partitioned(frame, borders).sdc.mask(spec).compute()
        pd.testing.assert_frame_equal(found, masked, check_exact=True)
    rows = partitioned(frame, [0, 100, 300]).sdc.mask(spec, keep_order=False).compute()
    pd.testing.assert_frame_equal(rows.sort_index(), masked, check_exact=True)


def test_categories_that_partitions_alone_know() -> None:
    frame = people()
    parts = [frame.iloc[:150], frame.iloc[150:]]
    parts = [part.assign(region=part["region"].cat.remove_unused_categories()) for part in parts]
    meta = frame.iloc[:0].assign(region=clear_known_categories(frame["region"].iloc[:0]))
    lazy = dd.from_map(lambda number: parts[number], [0, 1], meta=meta, enforce_metadata=False)
    spec = Microaggregation(["x"], 5, by="region", small="merge")
    found = lazy.sdc.mask(spec).compute()
    expected = frame.sdc.mask(spec)
    assert found["region"].astype(object).equals(expected["region"].astype(object))


def test_the_nearest_joins_and_the_largest_part_stands_for_all() -> None:
    frame = pd.DataFrame(
        {
            "x": [0.0] * 6 + [10.0] * 6 + [9.0] * 2 + [0.5],
            "town": ["a"] * 6 + ["b"] * 6 + ["c"] * 2 + ["d"],
        }
    )
    masked = frame.sdc.microaggregate(["x"], 3, by="town", small="merge")
    assert masked["town"].tolist() == ["a"] * 6 + ["b"] * 8 + ["a"]


def test_values_of_strata_count_as_columns_of_their_kind() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0] * 8, "code": [1] * 5 + [2] + [9] * 10})
    options: dict[str, Any] = {"by": "code", "small": "merge"}
    masked = frame.sdc.microaggregate(["x"], 3, **options)
    assert masked["code"].tolist() == [1] * 6 + [9] * 10  # 2 is nearer to 1 as a number
    frame.loc[frame["code"] == 9, "x"] = 1.0
    as_category = frame.sdc.microaggregate(["x"], 3, **options, nominal="code")
    assert as_category["code"].tolist() == [1] * 5 + [9] * 11  # and as a code, by x alone
    ordered = frame.sdc.microaggregate(["x"], 3, **options, orders={"code": [2, 9, 1]})
    assert ordered["code"].tolist() == [1] * 5 + [9] * 11
    weighed = {"orders": {"code": [9, 1, 2]}, "importance": {"code": 100}}
    ordered = frame.sdc.microaggregate(["x"], 3, **options, **weighed)
    assert ordered["code"].tolist() == [1] * 6 + [9] * 10


@pytest.mark.parametrize(("n", "categories"), [(40, 4), (250, 2), (250, 300)])
def test_a_plain_version_merges_the_same(n: int, categories: int) -> None:
    rng = np.random.default_rng(4)
    k = 6
    sites = Sites(
        np.round(rng.normal(size=(n, 2)), 1),
        np.where(rng.random((n, 1)) < 0.1, np.nan, rng.normal(size=(n, 1))),
        np.array([0.7]),
        rng.integers(-1, categories, (n, 2)),
        np.array([1.0, 0.3]),
    )
    count, kind = rng.integers(1, 12, n), rng.integers(0, 2, n)
    groups = {i: (sites.means[i], int(count[i]), i, {i}) for i in range(n)}  # by leader

    def apart(one: Any, other: Any) -> float:
        a, b = sites.places[one[2], 0], sites.places[other[2], 0]
        gap = (a - b) ** 2
        if np.isnan(gap):
            gap = 0.0 if np.isnan(a) and np.isnan(b) else 0.7
        differ = (sites.codes[one[2]] != sites.codes[other[2]]) @ sites.weights
        return ((one[0] - other[0]) ** 2).sum() + gap + differ

    while small := [g for g in groups.values() if g[1] < k]:
        one = min(small, key=lambda g: (g[1], g[2]))
        others = [g for g in groups.values() if g is not one and kind[g[2]] == kind[one[2]]]
        other = min(others, key=lambda g: (apart(one, g), g[2]))
        first, last = sorted([one, other], key=lambda g: (-count[g[2]], g[2]))
        mean = (first[0] * first[1] + last[0] * last[1]) / (first[1] + last[1])
        groups[first[2]] = (mean, first[1] + last[1], first[2], first[3] | last[3])
        del groups[last[2]]
    leader = merge_small(sites, count, kind, k)
    assert {g[2]: g[3] for g in groups.values()} == {
        each: set(np.flatnonzero(leader == each).tolist()) for each in np.unique(leader).tolist()
    }


def test_files_say_what_changed(tmp_path: Path) -> None:
    frame = people()
    table = pa.Table.from_pandas(frame, preserve_index=False)
    pq.write_table(table, tmp_path / "source.parquet", row_group_size=70)
    by = ["region", "grade", "size"]
    spec = Microaggregation(["x", "job"], 5, by=by, small="merge")
    assert Spec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    options: dict[str, Any] = {"drop": "person", "keep": "*", "measure": True}
    summary = sdc_dask.protect(
        tmp_path / "source.parquet",
        tmp_path / "release",
        spec,
        order="source",
        report=tmp_path / "page.html",
        external_report=tmp_path / "other.html",
        **options,
    )
    released, masked = pd.read_parquet(tmp_path / "release"), frame.sdc.mask(spec)
    pd.testing.assert_frame_equal(plain(released, [*by, "job"]), plain(masked, [*by, "job"]))
    assert released["grade"].dtype == masked["grade"].dtype and released["grade"].cat.ordered
    changed = (plain(frame, by).astype(str) != plain(masked, by).astype(str)).sum()
    (found,) = summary.masked
    assert found.notes[0].endswith(
        "cells changed: " + ", ".join(f"{name} {changed[name]}" for name in by)
    )
    assert changed.sum() and found.notes[0] in str(summary).replace("    strata", "strata")
    assert set(by).isdisjoint(summary.kept)
    assert summary.anonymity[0].k_min >= 5
    assert sdc_dask.verify(tmp_path / "release").ok
    assert "region" in (tmp_path / "page.html").read_text()
    with pytest.raises(ValueError, match="masked"):
        sdc_dask.protect(
            tmp_path / "source.parquet", tmp_path / "no", spec, partition_by="region", **options
        )
    with pytest.raises(ValueError, match="masked"):
        sdc_dask.protect(
            tmp_path / "source.parquet", tmp_path / "no", spec, drop=["region", "person"], keep="*"
        )


def test_strata_after_recoding_with_units() -> None:
    frame = people()
    mapping = {"n": "north", "s": "south", "e": "south", "isle": "isle"}
    specs = [
        Recode(["region"], mapping=mapping),
        Microaggregation(["x", "y"], 4, by="region", small="merge", unit="person"),
        RankSwap(["other"], p=10),
    ]
    masked = frame.sdc.mask(specs, random_state=0)
    assert set(masked["region"]) == {"north", "south"}
    groups = masked.groupby(["region", "x", "y"], observed=True)["person"].nunique()
    assert groups.min() >= 4
    lazy = partitioned(frame, [0, 100, 300]).sdc.mask(specs, random_state=0).compute()
    pd.testing.assert_frame_equal(lazy, masked, check_exact=True)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"small": "merged"}, "small must be one of"),
        ({"small": "merge"}, "name their columns in by="),
        ({"small": "merge", "by": "region", "nominal": "day"}, "nominal"),
        ({"by": "region", "nominal": "region"}, "nominal"),
        ({"by": "region"}, "small='merge'"),
    ],
)
def test_what_is_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises(SdcError, match=text):
        people().sdc.microaggregate(["x", "y"], 5, **options)


def test_other_refusals() -> None:
    frame = people()
    merging: dict[str, Any] = {"by": "region", "small": "merge"}
    with pytest.raises(ValueError, match="one set of columns"):
        Microaggregation([["x"], ["y"]], 3, missing="separate", **merging)
    with pytest.raises(ValueError, match="blocks that are made"):
        blocks = frame.sdc.blocks(["x"], 3, by="day", max_block=100)
        Microaggregation(["x"], 3, blocking=blocks, by="day", small="merge")
    with pytest.raises(ValueError, match="another spec masks"):
        frame.sdc.mask([Microaggregation(["x"], 3, **merging), RankSwap(["y"], p=5, by="region")])
    frame.loc[0, "x"] = np.nan
    with pytest.raises(ValueError, match="patterns of missing cells"):
        frame.sdc.microaggregate(["x", "y"], 3, missing="separate", **merging)
    with pytest.raises(ValueError, match="order does not name"):
        frame.sdc.microaggregate(["y"], 5, by="size", small="merge", orders={"size": [1.0, 2.0]})
    frame["person"] = frame["person"].where(frame["person"] > 3)
    with pytest.raises(ValueError, match="missing cells: whose record"):
        frame.sdc.microaggregate(["y"], 5, unit="person", **merging)
