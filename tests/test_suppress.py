"""Local suppression: k holds for whoever groups the result, and little else has changed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask import Recode, SdcError, Suppress
from sdc_dask.engine import combinations
from sdc_dask.kernels.suppression import (
    count_matches,
    decide,
    decide_matching,
    patterns_of,
    row_numbers,
    suppressed,
)

KEYS = ["urbrur", "roof", "walls", "water", "electcon", "sex"]


def smallest(frame: pd.DataFrame, keys: list[str]) -> int:
    """The smallest class, for a reader who has never heard of this package."""
    return int(frame.groupby(keys, dropna=False, observed=True).size().min())


def matching(frame: pd.DataFrame, keys: list[str]) -> int:
    """How many records match the record that fewest match, by comparing all with all."""
    cells = frame[keys].astype(object).where(frame[keys].notna(), None).to_numpy()
    unknown = cells == None  # noqa: E711 - cell by cell
    same = (cells[:, None] == cells[None]) | unknown[:, None] | unknown[None]
    return int(same.all(axis=2).sum(axis=1).min())


def survey(n: int = 700) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    sizes = rng.geometric(0.35, (n, 4)) - 1
    return pd.DataFrame(
        {
            "sex": pd.array(np.array(["f", "m"])[sizes[:, 0] % 2], dtype="string"),
            "job": pd.Categorical.from_codes(
                np.minimum(sizes[:, 1], 7), list("hgfedcba"), ordered=True
            ),
            "rooms": np.minimum(sizes[:, 2], 9),
            "size": np.where(sizes[:, 3] > 5, np.nan, sizes[:, 3]),
            "income": rng.normal(size=n),
        },
        index=pd.Index(np.arange(n) * 2, name="id"),
    )


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, int, list[float]]:
    """Codes of combinations with counts, k, and costs of columns."""
    width = draw(st.integers(1, 4))
    row = st.tuples(*[st.integers(-1, 3)] * width)
    rows = draw(st.lists(row, min_size=1, max_size=25, unique=True))
    counts = draw(st.lists(st.integers(1, 6), min_size=len(rows), max_size=len(rows)))
    k = draw(st.integers(2, max(2, min(7, sum(counts)))))
    costs = draw(st.lists(st.sampled_from([0.5, 1.0, 3.0]), min_size=width, max_size=width))
    return np.array(rows, np.int64), np.array(counts, np.int64), k, costs


@settings(max_examples=30)
@given(tables())
def test_every_class_has_k_records_and_none_is_lost(table: Any) -> None:
    codes, counts, k, costs = table
    if counts.sum() < k:
        return
    found = decide(codes, counts, k, costs)
    rows = suppressed(codes[found.combination], found.pattern)
    assert np.bincount(row_numbers(rows), weights=found.records).min() >= k
    together = np.bincount(found.combination, weights=found.records, minlength=len(counts))
    assert np.array_equal(together, counts)
    assert (found.records > 0).all()


@settings(max_examples=20)
@given(tables())
def test_k_records_match_each(table: Any) -> None:
    codes, counts, k, costs = table
    if counts.sum() < k:
        return
    now = suppressed(codes, decide_matching(codes, counts, k, costs).pattern)
    same = (now[:, None] == now[None]) | (now[:, None] == -1) | (now[None] == -1)
    matches = (same.all(axis=2) * counts).sum(axis=1)
    assert np.array_equal(matches, count_matches(now, now, counts))
    assert matches.min() >= k


def test_rare_records_are_not_worth_many_cells_of_frequent_ones() -> None:
    # One record beside a thousand: two of these are suppressed with it, not all of them.
    codes, counts = np.array([[0, 0], [0, 1]]), np.array([1_000, 1])
    found = decide(codes, counts, 3, [1.0, 1.0])
    assert found.records[found.pattern > 0].sum() == 3
    # What costs much is left alone, as long as something else helps.
    found = decide(codes, counts, 3, [1.0, 5.0])
    assert set(found.pattern[found.pattern > 0].tolist()) == {2}  # the other helps nothing
    found = decide(np.array([[0, 0], [0, 1], [1, 0], [1, 1]]), np.array([9, 1, 1, 9]), 2, [1, 5])
    assert set(found.pattern[found.pattern > 0].tolist()) == {1}


def test_patterns_of_many_columns_are_few_and_reach_all_cells() -> None:
    found = patterns_of([1.0] * 20)
    assert len(found) <= 520
    assert max(found)[0] == 2**20 - 1
    assert [cost for _, cost in found] == sorted(cost for _, cost in found)


def test_numbers_of_rows_beyond_64_bits() -> None:
    rows = np.array([[2**31] * 3, [5, 2**31, 1], [2**31] * 3, [5, 2**31, 2]])
    first, second, third, fourth = row_numbers(rows)
    assert first == third
    assert len({int(first), int(second), int(fourth)}) == 3


@pytest.mark.parametrize(("k", "most"), [(3, 75), (5, 199)])
def test_reference_data(reference: Callable[[str], pd.DataFrame], k: int, most: int) -> None:
    frame = reference("sdcmicro_testdata")
    rare = frame.groupby(KEYS)["sex"].transform("size") < k
    masked = frame.sdc.suppress(KEYS, k)
    assert smallest(masked, KEYS) >= k
    # A cell of each rare record at least; no more than were found when this was written.
    assert rare.sum() <= masked[KEYS].isna().sum().sum() <= most
    matched = frame.sdc.suppress(KEYS, k, missing="matches")
    assert matched[KEYS].isna().sum().sum() <= rare.sum()


@pytest.mark.parametrize("missing", ["value", "matches"])
def test_dask_and_pandas_agree_and_nothing_else_changes(missing: str) -> None:
    frame, keys = survey(), ["sex", "job", "rooms", "size"]
    spec = Suppress(keys, k=4, missing=missing)
    masked = frame.sdc.mask(spec)
    for cuts in (2, 9):
        lazy = dd.from_pandas(frame, npartitions=cuts).sdc.mask(spec)
        pd.testing.assert_frame_equal(lazy.compute(), masked)
        assert (lazy.dtypes == masked.dtypes).all()
    pd.testing.assert_series_equal(masked["income"], frame["income"])
    for key in keys:
        left = masked[key].dropna()
        assert (left == frame.loc[left.index, key]).all()
    assert masked["rooms"].dtype == "Int64"
    assert masked["job"].cat.ordered
    assert set(masked["job"].cat.categories) == set(masked["job"].dropna())
    if missing == "value":
        assert smallest(masked, keys) >= 4
    else:
        assert matching(masked, keys) >= 4
        assert smallest(masked, keys) < 4


@pytest.mark.parametrize(
    "dtype",
    ["int8", "uint64", "bool", "boolean", "object", "category", "datetime64[ns]", "float32"],
)
def test_dtypes(dtype: str) -> None:
    values = pd.Series([0] * 6 + [1] * 5 + [1], name="x").astype(dtype)
    frame = pd.DataFrame({"x": values, "y": [0] * 11 + [1]})
    masked = frame.sdc.suppress(["y", "x"], k=2, costs=[9, 1])
    assert smallest(masked, ["x", "y"]) >= 2
    kinds = {"int8": "Int8", "uint64": "UInt64", "bool": "boolean"}
    assert masked["x"].dtype == kinds.get(dtype, values.dtype)


def test_costs_by_column() -> None:
    listed = Suppress(["x", "y", "z"], k=2, costs=[1, 5, 1])
    assert Suppress(["x", "y", "z"], k=2, costs={"y": 5}) == listed
    as_dict = listed.to_dict() | {"costs": {"y": 5}}
    assert sdc_dask.Spec.from_dict(as_dict) == listed


def test_nothing_is_left_under_missing_cells() -> None:
    frame = pd.DataFrame(
        {
            "x": pd.array([7, 7, 7, 12345], dtype="Int64"),
            "y": pd.array([7, 7, 7, 12345], dtype=pd.ArrowDtype(pa.int64())),
        }
    )
    masked = frame.sdc.suppress(["x", "y"], k=2)
    assert masked["x"].isna().sum() >= 2
    assert 12345 not in masked["x"].array._data
    buffers = pa.array(masked["y"].array).buffers()
    assert (12345).to_bytes(8, "little") not in bytes(buffers[1])


def test_unknown_categories_of_dask_stay_unknown() -> None:
    frame = survey(400)
    lazy = dd.from_pandas(frame.assign(job=frame["job"].astype("string")), npartitions=3)
    lazy["job"] = lazy["job"].astype("category")
    masked = lazy.sdc.suppress(["sex", "job"], k=3)
    assert not masked["job"].cat.known
    assert smallest(masked.compute(), ["sex", "job"]) >= 3


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "Float32", "halffloat[pyarrow]", "float[pyarrow]"]
)
@pytest.mark.parametrize("missing", ["value", "matches"])
def test_signs_of_zeros_tell_no_records_apart(dtype: str, missing: str) -> None:
    frame = pd.DataFrame({"a": [0.0, -0.0, 0.0, 1.0, 1.0]}).astype(dtype)
    masked = frame.sdc.suppress(["a"], 2, missing=missing)
    assert masked["a"].dtype == dtype
    assert masked.sdc.anonymity(["a"], 2).k_min == 2
    assert masked["a"].tolist() == [0.0, 0.0, 0.0, 1.0, 1.0]


def test_protect_suppresses_what_was_recoded(tmp_path: Path) -> None:
    frame = sdc_dask.datasets.survey(3_000, seed=2, npartitions=3)
    frame[["age", "sex", "region", "rent"]].to_parquet(tmp_path / "survey", write_index=False)
    keys = ["sex", "age", "region"]
    plan = [Recode(["age"], bins=[0, 30, 65, 120]), Suppress(keys, k=5)]
    summary = sdc_dask.protect(tmp_path / "survey", tmp_path / "out", plan, keep="rent")
    released = pd.read_parquet(tmp_path / "out")
    assert smallest(released, keys) == summary.anonymity[0].k_min >= 5
    assert [each.checked for each in summary.masked] == ["values", "k"]
    assert f"{int(released[keys].isna().sum().sum()):,} suppressed" in str(summary)
    assert sdc_dask.verify(tmp_path / "out").ok
    # The same as on a frame, whose rows are in order.
    masked = frame.compute().sdc.mask(plan)
    for key in keys:
        assert released[key].value_counts().to_dict() == {
            value: count for value, count in masked[key].value_counts().items() if count
        }
    with pytest.raises(SdcError, match="promises k"):
        sdc_dask.protect(tmp_path / "survey", tmp_path / "no", plan[::-1], keep="rent")


def test_protect_counts_matches_both_ways(tmp_path: Path) -> None:
    frame = survey()[["sex", "job", "rooms"]]
    frame.to_parquet(tmp_path / "survey.parquet", index=False)
    spec = Suppress(list(frame), k=5, missing="matches")
    summary = sdc_dask.protect(tmp_path / "survey.parquet", tmp_path / "out", spec)
    released = pd.read_parquet(tmp_path / "out")
    (masked,) = summary.masked
    assert masked.matches is not None
    assert masked.matches.smallest == matching(released, list(frame)) >= 5
    assert masked.matches.smallest_class == smallest(released, list(frame)) < 5
    assert masked.checked == "matches"
    assert summary.to_dict()["masked"][0]["matches"]["smallest"] >= 5
    verified = sdc_dask.verify(tmp_path / "out")
    assert verified.ok
    assert (
        f"k = 5 in sex, job, rooms, where a missing cell matches any value: "
        f"{masked.matches.smallest} records match each; where it does not, "
        f"{masked.matches.smallest_class} are equal in the smallest class"
    ) in verified.checked


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"columns": ["nothing"], "k": 3}, "does not have"),
        ({"columns": ["sex"], "k": 1}, "at least 2"),
        ({"columns": ["sex"], "k": 3, "costs": [1, 2]}, "for each of 1 columns"),
        ({"columns": ["sex"], "k": 3, "costs": [0]}, "above 0"),
        ({"columns": ["sex"], "k": 3, "costs": {"sex": 0}}, "above 0"),
        ({"columns": ["sex"], "k": 3, "costs": {"job": 2}}, "costs"),
        ({"columns": ["sex"], "k": 3, "missing": "error"}, "missing must be one of"),
        ({"columns": ["sex"], "k": 500}, "fewer than k=500"),
    ],
)
def test_errors(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(SdcError, match=message):
        survey(400).sdc.suppress(**arguments)


def test_too_many_combinations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combinations, "MOST", 50)
    with pytest.raises(SdcError, match="more than 50 different combinations"):
        survey(400).sdc.suppress(["sex", "job", "rooms", "size"], k=3)
