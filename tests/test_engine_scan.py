"""Scans and strata: counted by partition, and the same for every partitioning."""

from __future__ import annotations

from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdc_dask import SdcError
from sdc_dask.engine.frames import map_reduce
from sdc_dask.engine.scan import NO_PARTITION, scan
from sdc_dask.engine.strata import StrataRule, merge_counts


def numbers(n: int = 50) -> pd.DataFrame:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"x": rng.normal(size=n) * 1e10, "i": np.arange(n) + 2**53 - 20})
    frame.loc[[3, 40], "x"] = [np.inf, -np.inf]
    frame.loc[[7, 8, 30], "x"] = np.nan
    return frame.assign(z=-0.0, g=np.arange(n) % 3)


def test_a_scan_counts_what_is_there(scheduler: str) -> None:
    frame = numbers()
    rule = StrataRule(("g",), ("x",))
    whole = scan(frame, ["x", "i", "z"], [rule])
    parts = scan(dd.from_pandas(frame, npartitions=6), ["x", "i", "z"], [rule])
    assert (whole.n, whole.rows) == (50, (50,))
    assert (parts.n, len(parts.rows)) == (50, 6)
    finite = frame["x"][np.isfinite(frame["x"])]
    for found in (whole, parts):
        x, i = found.columns["x"], found.columns["i"]
        assert (x.missing, x.infinite, x.inexact) == (3, 2, 0)
        assert (i.missing, i.infinite, i.inexact) == (0, 0, 29)
        assert (x.low, x.high) == (finite.min(), finite.max())
        assert x.sums.mean == pytest.approx(finite.mean(), rel=1e-12)
        # No order of adding up changes a bit.
        assert x.sums.mean == whole.columns["x"].sums.mean
        assert x.sums.deviation == whole.columns["x"].sums.deviation
        assert not np.signbit(found.bounds(["z"])).any()
    tables = [each.strata_counts[0] for each in (whole, parts)]
    pd.testing.assert_frame_equal(*tables)
    assert tables[0]["count"].sum() == 50


def test_what_cannot_be_masked_is_counted_by_column() -> None:
    frame = numbers()
    with pytest.raises(ValueError, match=r"infinite values in columns: 'x' \(2\)"):
        scan(frame, ["x", "i"], []).check()
    with pytest.raises(ValueError, match=r"beyond 9007199254740992, .* in columns: 'i' \(29\)"):
        scan(frame, ["i"], []).check()
    frame = frame.replace([np.inf, -np.inf], 0.0)
    with pytest.raises(ValueError, match=r"missing cells in columns: 'x' \(3\).*, or smile\."):
        scan(frame, ["x", "z"], []).check("error", ", or smile")
    scan(frame, ["x", "z"], []).check("separate")
    with pytest.raises(ValueError, match="columns without any value: 'x'"):
        scan(frame.assign(x=np.nan), ["x", "z"], []).check("separate")


def test_what_is_read_later_must_be_like_what_was_scanned() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan], "y": [5.0, 6.0, 7.0]})
    expected = scan(dd.from_pandas(frame, npartitions=1), ["x", "y"], []).expected(["x", "y"])
    values = frame.to_numpy()
    expected.check(0, values)
    expected.check(0, values[::-1])
    expected.check(NO_PARTITION, values[:0])
    others = [values[:2], np.vstack([values, values]), values + 0.5, values - 0.5]
    others.append(np.where(values == 6.0, np.nan, values))
    for other in others:
        with pytest.raises(RuntimeError, match=r"when it was scanned.*not the same") as caught:
            expected.check(0, other)
        assert isinstance(caught.value, SdcError)
    # A column that had missing cells may have others.
    expected.check(0, np.where(values == 2.0, np.nan, values))


# Strata


KEYS: dict[str, tuple[pd.Series, int]] = {
    "texts": (pd.Series(["a", None, "b", "a", None, "b"] * 4), 3),
    "zeros": (pd.Series([0.0, -0.0, 1.0, -0.0, 0.0, 1.0] * 4), 2),
    "nan": (pd.Series([np.nan, 1.0, 2.0] * 8), 3),
    "null": (pd.Series([None, 1, 2] * 8, dtype="Int64"), 3),
    "large": (pd.Series([2**53, 2**53 + 1, 2**53 + 2] * 8), 3),
    "dates": (pd.Series([pd.Timestamp("2020-01-01"), pd.NaT, pd.Timestamp("2021-01-01")] * 8), 3),
    "truth": (pd.Series([True, False, None] * 8, dtype="boolean"), 3),
    "categories": (pd.Series(pd.Categorical(["a", None, "b"] * 8, ["b", "never", "a"])), 3),
    "integer categories": (pd.Series(pd.Categorical([1, 2, None] * 8)), 3),
    "mixed objects": (pd.Series([1, "1", None] * 8, dtype=object), 3),
    "arrow": (pd.Series([1, None, 3] * 8, dtype="int64[pyarrow]"), 3),
}


def _count(part: pd.DataFrame, _number: int, rule: StrataRule) -> pd.DataFrame:
    return rule.count(part)


def _part(part: pd.DataFrame) -> pd.DataFrame:
    return part


@pytest.mark.parametrize("case", KEYS)
def test_strata_have_the_same_numbers_for_every_partitioning(case: str) -> None:
    values, strata = KEYS[case]
    frame = pd.DataFrame({"g": values, "x": np.arange(24.0)})
    rule = StrataRule(("g",))
    whole = rule.strata(rule.count(frame))
    assert len(whole) == strata
    assert whole.counts.sum() == 24
    assert whole.counts.tolist() == np.bincount(whole.of(frame)).tolist()
    # In order of first appearance.
    assert whole.of(frame)[0] == 0
    assert pd.unique(whole.of(frame)).tolist() == list(range(strata))

    parts = [frame.iloc[:1], frame.iloc[1:1], frame.iloc[1:5], frame.iloc[5:]]
    if isinstance(values.dtype, pd.CategoricalDtype):
        parts = [part.assign(g=part["g"].cat.remove_unused_categories()) for part in parts]
    with dask.config.set({"dataframe.convert-string": False}):
        lazy = dd.from_map(_part, parts, meta=frame.iloc[:0], enforce_metadata=False)
        counts = map_reduce(lazy, _count, merge_counts, rule)
    cut = rule.strata(counts)
    assert cut.counts.tolist() == whole.counts.tolist()
    for strata_of in (whole, cut):
        numbers_of = np.concatenate([strata_of.of(part) for part in parts])
        assert np.array_equal(numbers_of, whole.of(frame))


def test_nan_beside_null_is_one_stratum_or_two_but_always_the_same() -> None:
    values = pa.array([float("nan"), None, 1.0] * 4, pa.float64())
    frame = pd.DataFrame({"g": pd.arrays.ArrowExtensionArray(pa.chunked_array([values]))})
    rule = StrataRule(("g",))
    whole = rule.strata(rule.count(frame))
    cut = rule.strata(merge_counts([rule.count(frame.iloc[i : i + 1]) for i in range(12)]))
    assert cut.counts.tolist() == whole.counts.tolist()
    for i in range(12):
        assert cut.of(frame.iloc[i : i + 1]) == whole.of(frame)[i]


def test_several_columns_and_patterns_of_missing_cells() -> None:
    frame = pd.DataFrame({"g": ["a", "b"] * 6, "h": [1, 1, 2] * 4, "x": [1.0, np.nan, 3.0] * 4})
    rule = StrataRule(("g", "h"), ("x",))
    strata = rule.strata(rule.count(frame))
    pattern = frame.assign(x=frame["x"].isna())
    expected = pattern.groupby(["g", "h", "x"], sort=False).ngroup()
    assert strata.of(frame).tolist() == expected.tolist()
    assert strata.counts.tolist() == expected.value_counts(sort=False).tolist()


def test_patterns_of_more_columns_than_an_integer_has_bits() -> None:
    columns = [f"x{i}" for i in range(130)]
    frame = pd.DataFrame(np.ones((131, 130)), columns=columns)
    for i in range(130):
        frame.iloc[i, i] = np.nan
    rule = StrataRule((), tuple(columns))
    strata = rule.strata(rule.count(frame))
    assert strata.of(frame).tolist() == list(range(131))


def test_without_columns_there_is_one_stratum() -> None:
    frame = pd.DataFrame({"x": np.arange(5.0)})
    rule = StrataRule()
    assert rule.keys(frame) is None
    strata = rule.strata(merge_counts([rule.count(frame), rule.count(frame.iloc[:0])]))
    assert strata.counts.tolist() == [5]
    assert strata.of(frame).tolist() == [0] * 5


def test_strata_that_were_not_counted_are_refused() -> None:
    canary = "Zx9canaryQ7"
    frame = pd.DataFrame({"g": ["a", "b"] * 3})
    strata = StrataRule(("g",)).strata(StrataRule(("g",)).count(frame))
    with pytest.raises(ValueError, match="2 records belong to strata that the blocks") as caught:
        strata.of(pd.DataFrame({"g": ["a", canary, canary]}))
    assert isinstance(caught.value, SdcError)
    assert canary not in str(caught.value)
    lists: Any = pd.DataFrame({"g": [[canary], [canary]]})
    with pytest.raises(TypeError, match="cannot be compared, such as lists") as caught:
        StrataRule(("g",)).count(lists)
    assert canary not in str(caught.value)
    assert caught.value.__suppress_context__
