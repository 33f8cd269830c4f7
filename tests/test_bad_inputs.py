"""Bad inputs: each is masked all the same, or refused before anything is written.

A refusal has a definite type, names columns and counts, says what to do, and shows no value of
the data. What is masked is checked by pandas alone: groups of k, rows, untouched columns, means.
"""

from __future__ import annotations

import decimal
import itertools
import re
import traceback
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal, assert_index_equal

from sdc_dask import protect

CANARY = 123456.789
CANARY_TEXT = "Zx9canaryQ7"
CANARY_INTEGER = 2**53 + 123_456_789
FORBIDDEN = [str(CANARY), "123456", CANARY_TEXT, str(CANARY_INTEGER)]

MAX = np.finfo(np.float64).max
TINY = np.nextafter(0.0, 1.0)  # the smallest subnormal number

Refuse = Callable[..., str]
Mask = Callable[..., pd.DataFrame]


@pytest.fixture(autouse=True)
def _threads():
    with dask.config.set(scheduler="threads"):
        yield


def people(n: int = 60, seed: int = 1) -> pd.DataFrame:
    """Two columns to mask, and three that stay as they are."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.lognormal(10.0, 1.0, n),
            "kept": rng.normal(size=n),
            "y": rng.normal(50.0, 9.0, n),
            "number": np.arange(n),
            "text": [f"person {i}" for i in range(n)],
        }
    )


# What is refused


def _on_pandas(frame: pd.DataFrame, _: Path, columns: Any, k: Any, **options: Any) -> Any:
    return frame.sdc.microaggregate(columns, k, **options)


def _on_dask(frame: pd.DataFrame, _: Path, columns: Any, k: Any, **options: Any) -> Any:
    # Not computed: a refusal comes with the call.
    return dd.from_pandas(frame, npartitions=3, sort=False).sdc.microaggregate(
        columns, k, **options
    )


def _on_blocks(frame: pd.DataFrame, _: Path, columns: Any, k: Any, **options: Any) -> Any:
    return frame.sdc.blocks(columns, k, **options)


def _on_files(frame: pd.DataFrame, folder: Path, columns: Any, k: Any, **options: Any) -> Any:
    write_source(frame, folder / "source")
    return protect(folder / "source", folder / "target", columns, k, **options)


WAYS = {"pandas": _on_pandas, "dask": _on_dask, "blocks": _on_blocks, "files": _on_files}
in_memory = pytest.mark.parametrize("refuse", ["pandas", "dask", "blocks"], indirect=True)
on_pandas = pytest.mark.parametrize("refuse", ["pandas", "blocks"], indirect=True)


@pytest.fixture(params=list(WAYS))
def refuse(request: pytest.FixtureRequest, tmp_path: Path) -> Refuse:
    """Return a function that expects a clean refusal and gives its text."""

    def refused(
        error: type[Exception],
        frame: pd.DataFrame,
        columns: Any = ("x", "y"),
        k: Any = 3,
        **options: Any,
    ) -> str:
        columns = list(columns) if isinstance(columns, tuple) and columns else columns
        with pytest.raises(error) as caught:
            WAYS[request.param](frame, tmp_path, columns, k, **options)
        assert {path.name for path in tmp_path.iterdir()} <= {"source"}
        return text_of(caught, error)

    return refused


def text_of(caught: pytest.ExceptionInfo[Exception], error: type[Exception]) -> str:
    """Return the text of an error of exactly this type that shows no planted value."""
    assert caught.type is error
    # A log would show the errors that led to it, too.
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    shown = "".join(traceback.format_exception(caught.value))
    assert not [value for value in FORBIDDEN if value in shown]
    return str(caught.value)


# What is masked


def write_source(frame: pd.DataFrame, source: Path, files: int = 3) -> None:
    """Write a frame as a directory of some files."""
    source.mkdir()
    borders = np.linspace(0, len(frame), files + 1).astype(int)
    for i, (begin, end) in enumerate(itertools.pairwise(borders)):
        frame.iloc[begin:end].to_parquet(source / f"{i}.parquet", index=False)


def floats(column: pd.Series) -> np.ndarray:
    return np.ascontiguousarray(column.to_numpy(dtype="float64", na_value=np.nan))


def bits(frame: pd.DataFrame, columns: list[Any]) -> pd.DataFrame:
    """Return columns as the bits of their float64 values."""
    return pd.DataFrame({i: floats(frame[c]).view(np.int64) for i, c in enumerate(columns)})


def verify(
    before: pd.DataFrame,
    after: pd.DataFrame,
    groups: list[list[Any]],
    k: int,
    by: tuple[Any, ...] = (),
    precision: float = 1e-12,
) -> None:
    """Check a masked frame without help of the package."""
    masked = [column for group in groups for column in group]
    kept = [column for column in before.columns if column not in masked]
    assert len(after) == len(before)
    assert_index_equal(after.index, before.index, exact=True)
    assert list(after.columns) == list(before.columns)
    assert_frame_equal(after[kept], before[kept], check_exact=True)
    # An index may be named like a column, and pandas does not group by 16-bit floats.
    short = [column for column in masked if after[column].dtype == "float16"]
    classes = after.reset_index(drop=True).astype(dict.fromkeys(short, "float32"))
    for group in groups:
        sizes = classes.groupby([*group, *by], dropna=False, observed=True).size()
        assert sizes.sum() == len(before)
        assert sizes.min() >= k
        assert bits(after, group).groupby(list(range(len(group)))).size().min() >= k
    for column in masked:
        assert_means_equal(floats(before[column]), floats(after[column]), precision)


def assert_means_equal(before: np.ndarray, after: np.ndarray, precision: float) -> None:
    np.testing.assert_array_equal(np.isnan(after), np.isnan(before))
    before, after = before[~np.isnan(before)], after[~np.isnan(after)]
    # Powers of two keep the largest values from overflowing and the smallest from vanishing.
    exponent = np.frexp(np.abs(before).max())[1]
    difference = np.ldexp(before, -exponent).mean() - np.ldexp(after, -exponent).mean()
    assert abs(difference) <= precision + np.ldexp(TINY, -exponent)


@pytest.fixture
def mask(tmp_path: Path) -> Mask:
    """Return a function that masks with pandas, Dask and from files, and checks all of them.

    It asserts that the three give the same, and what :func:`verify` does of each.
    """

    def masked(
        frame: pd.DataFrame,
        columns: Any = ("x", "y"),
        k: int = 3,
        precision: float = 1e-12,
        **options: Any,
    ) -> pd.DataFrame:
        columns = list(columns)
        groups = columns if isinstance(columns[0], list) else [columns]
        by = options.get("by", ())
        by = (by,) if isinstance(by, str) else tuple(by)
        lazy = dd.from_pandas(frame, npartitions=4, sort=False)
        frame = lazy.compute()  # Dask has turned texts into strings of Arrow
        result = frame.sdc.microaggregate(columns, k, **options)
        verify(frame, result, groups, k, by, precision)
        lazy_result = lazy.sdc.microaggregate(columns, k, **options)
        assert_frame_equal(lazy_result.compute(), result, check_exact=True)
        pd.testing.assert_series_equal(lazy_result.dtypes, result.dtypes)

        write_source(frame, tmp_path / "source")
        protect(tmp_path / "source", tmp_path / "target", columns, k, **options)
        assert {path.name for path in tmp_path.iterdir()} == {"source", "target"}
        released = pd.read_parquet(tmp_path / "target")
        verify(pd.read_parquet(tmp_path / "source"), released, groups, k, by, precision)
        flat = [column for group in groups for column in group]
        assert_frame_equal(bits(released, flat), bits(result, flat))
        return result

    return masked


# Values


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "double[pyarrow]"])
def test_missing_cells_are_an_error_by_default(refuse: Refuse, dtype: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[3, 5, 50], "y"] = np.nan
    text = refuse(ValueError, frame.astype({"x": dtype, "y": dtype}))
    assert "'y' (3)" in text
    assert "'x'" not in text
    assert "Fill or drop them" in text
    assert "missing='separate'" in text


def test_missing_cells_are_kept_where_they_are_if_asked_for(mask: Mask) -> None:
    frame = people(80)
    frame.loc[frame.index % 4 == 0, "y"] = np.nan
    frame.loc[frame.index % 8 == 1, "x"] = np.nan
    result = mask(frame, missing="separate", max_block=12)
    assert_frame_equal(result.isna(), frame.isna())
    assert result[["x", "y"]].isna().sum().tolist() == [10, 20]


def test_missing_bits_are_canonical(mask: Mask) -> None:
    frame = people(40)
    payload = np.array([0x7FF8_0000_DEAD_BEEF, 0xFFF8_0000_0000_0001], np.uint64).view(np.float64)
    frame.loc[frame.index[:10], "y"] = np.resize(payload, 10)
    result = mask(frame, missing="separate")
    missing = result["y"].to_numpy()[result["y"].isna()]
    assert set(missing.view(np.uint64)) == {np.array([np.nan]).view(np.uint64)[0]}


def test_rare_pattern_of_missing_cells_is_an_error(refuse: Refuse) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[7, 9], "y"] = np.nan
    text = refuse(ValueError, frame, missing="separate")
    assert "1 of 2 strata" in text
    assert "k=3" in text
    assert "the smallest 2" in text
    assert "smaller k" in text


def test_column_without_any_value_is_an_error(refuse: Refuse) -> None:
    frame = people().assign(y=np.nan)
    text = refuse(ValueError, frame, missing="separate")
    assert "'y'" in text
    assert "Leave them out" in text


@pytest.mark.parametrize("dtype", ["str", "float64", "Int64", "int64[pyarrow]", "category"])
def test_missing_strata_are_strata(mask: Mask, dtype: str) -> None:
    strata = ["1", "2", None] if dtype in ("str", "category") else [1, 2, None]
    frame = people(60).assign(kept=pd.Series(np.resize(np.array(strata, object), 60), dtype=dtype))
    result = mask(frame, by="kept", max_block=12)
    # Means of every third row stay, so that the missing stratum was masked alone, as the others.
    third = np.arange(60) % 3
    np.testing.assert_allclose(
        result[["x", "y"]].groupby(third).mean(), frame[["x", "y"]].groupby(third).mean()
    )


def _table_with_nan_and_null() -> pa.Table:
    """Return 12 complete records, 6 with NaN and 6 with null: all 12 cells are missing ones."""
    rng = np.random.default_rng(3)
    y = pa.array([*rng.normal(size=12), *[float("nan")] * 6, *[None] * 6], pa.float64())
    assert y.null_count == 6
    return pa.table({"x": rng.normal(size=24), "y": y})


def test_nan_in_arrow_files_is_missing_like_null(tmp_path: Path) -> None:
    table = _table_with_nan_and_null()
    pq.write_table(table, tmp_path / "source.parquet")
    with pytest.raises(ValueError, match=re.escape("'y' (12)")):
        protect(tmp_path / "source.parquet", tmp_path / "target", ["x", "y"], 3)
    protect(tmp_path / "source.parquet", tmp_path / "target", ["x", "y"], 3, missing="separate")
    released = pq.read_table(tmp_path / "target").to_pandas()
    verify(table.to_pandas(), released, [["x", "y"]], 3)


@pytest.mark.parametrize("kind", ["arrow", "masked"])
def test_nan_in_nullable_columns_is_missing_like_null(kind: str) -> None:
    frame = _table_with_nan_and_null().to_pandas(types_mapper=pd.ArrowDtype)
    if kind == "masked":
        frame["y"] = pd.arrays.FloatingArray(floats(frame["y"]), np.arange(24) >= 18)
    with pytest.raises(ValueError, match=re.escape("'y' (12)")):
        frame.sdc.microaggregate(["x", "y"], 3)
    lazy = dd.from_pandas(frame, npartitions=3)
    for result in (
        frame.sdc.microaggregate(["x", "y"], 3, missing="separate"),
        lazy.sdc.microaggregate(["x", "y"], 3, missing="separate").compute(),
    ):
        verify(frame, result, [["x", "y"]], 3)


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "double[pyarrow]"])
def test_infinities_are_an_error(refuse: Refuse, dtype: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[2, 30], "x"] = np.inf
    frame.loc[59, "y"] = -np.inf
    text = refuse(ValueError, frame.astype({"x": dtype, "y": dtype}))
    assert "infinite" in text
    assert "'x' (2)" in text
    assert "'y' (1)" in text
    assert "Replace them by finite values or drop those records" in text


def test_infinities_are_an_error_beside_missing_cells(refuse: Refuse) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[5, "x"] = np.inf
    frame.loc[10:30, "y"] = np.nan
    assert "'x' (1)" in refuse(ValueError, frame, missing="separate")


@pytest.mark.parametrize("constant", [0.1, 0.0, -1e300, 1e-310])
@pytest.mark.parametrize("standardize", [True, False])
def test_constant_column_changes_nothing(mask: Mask, constant: float, standardize: bool) -> None:
    frame = people().assign(constant=constant)
    columns = ["x", "constant", "y"]
    result = mask(frame, columns, max_block=12, standardize=standardize)
    assert (result["constant"] == constant).all()
    if standardize:
        without = frame.sdc.microaggregate(["x", "y"], 3, max_block=12)
        assert_frame_equal(result[["x", "y"]], without[["x", "y"]], check_exact=True)


def test_all_columns_constant(mask: Mask) -> None:
    frame = people().assign(x=CANARY, y=0.3)
    result = mask(frame, max_block=5)
    assert_frame_equal(result[["x", "y"]], frame[["x", "y"]], check_exact=True)


@pytest.mark.parametrize("others", [0, 1, 40])
def test_identical_rows_beyond_the_largest_block(mask: Mask, others: int) -> None:
    equal = people(150, seed=2).assign(x=0.1, y=7.7)
    frame = pd.concat([equal, people(others)], ignore_index=True)
    frame = frame.sample(frac=1.0, random_state=3, ignore_index=True)
    result = mask(frame, max_block=10)
    blocks = frame.sdc.blocks(["x", "y"], 3, max_block=10)
    assert blocks.counts.sum() == len(frame)
    assert blocks.counts.min() >= 3
    if others != 1:  # one record has to lie with some of the equal ones
        equal_now = result[(frame["x"] == 0.1) & (frame["y"] == 7.7)]
        assert ((equal_now["x"] == 0.1) & (equal_now["y"] == 7.7)).sum() >= 150 - 3
        assert blocks.counts.max() < 20


@pytest.mark.parametrize("standardize", [True, False])
def test_values_whose_squares_overflow(mask: Mask, standardize: bool) -> None:
    frame = people(90)
    frame["x"] *= 1e200
    result = mask(frame, max_block=12, standardize=standardize)
    assert result["x"].between(frame["x"].min(), frame["x"].max()).all()
    assert result["x"].nunique() > 10


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("low", [1.6e308, -MAX])
def test_midpoints_near_the_largest_float(mask: Mask, low: float, standardize: bool) -> None:
    rng = np.random.default_rng(4)
    frame = people(90)
    frame["x"] = low * (1.0 - (t := rng.random(90))) + MAX * t
    frame.loc[[0, 1], "x"] = [low, MAX]
    result = mask(frame, max_block=12, standardize=standardize)
    assert np.isfinite(result["x"]).all()
    assert result["x"].nunique() > 10


@pytest.mark.parametrize("blocking", ["tree", "univariate", None])
def test_extremes_with_every_blocking(blocking: str | None) -> None:
    frame = people(90)
    frame["x"] = np.linspace(-1.0, 1.0, 90) * MAX
    frame["y"] = np.arange(90) * TINY
    result = frame.sdc.microaggregate(["x", "y"], 3, blocking=blocking)
    verify(frame, result, [["x", "y"]], 3)
    assert np.isfinite(result["x"]).all()


@pytest.mark.parametrize("standardize", [True, False])
@pytest.mark.parametrize("unit", [TINY, 1e-310])
def test_subnormal_values(mask: Mask, unit: float, standardize: bool) -> None:
    frame = people(90)
    frame["x"] = np.random.default_rng(5).integers(0, 60, 90) * unit
    result = mask(frame, ["x"], max_block=12, standardize=standardize)
    assert result["x"].nunique() > 10
    mask_columns = frame.sdc.microaggregate(["x", "y"], 3, max_block=12, standardize=standardize)
    verify(frame, mask_columns, [["x", "y"]], 3)


@pytest.mark.parametrize("centre", [0.0, 1e-160])
def test_variance_that_underflows(mask: Mask, centre: float) -> None:
    frame = people(90)
    frame["x"] = centre + np.random.default_rng(6).normal(size=90) * 1e-175
    result = mask(frame, max_block=12)
    assert result["x"].between(frame["x"].min(), frame["x"].max()).all()


def test_variance_lost_to_rounding(mask: Mask) -> None:
    frame = people(90)
    frame["x"] = 1e16 + 2.0 * np.random.default_rng(7).integers(0, 3, 90)
    result = mask(frame, max_block=12)
    assert result["x"].between(1e16, 1e16 + 4.0).all()
    assert result["x"].nunique() > 1


def test_negative_zero_becomes_zero(mask: Mask) -> None:
    frame = people(60)
    frame["x"] = np.where(frame.index % 2 == 0, -0.0, 0.0)
    frame["y"] = np.where(frame.index % 3 == 0, -0.0, frame.index // 30)
    result = mask(frame, max_block=12)
    zero = result[["x", "y"]].to_numpy() == 0
    assert zero.sum() > 60
    assert not np.signbit(result[["x", "y"]].to_numpy()[zero]).any()
    assert set(bits(result, ["x"])[0]) == {0}


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "Float32", "float[pyarrow]"])
def test_centroids_that_round_to_negative_zero_become_zero(mask: Mask, dtype: str) -> None:
    kind = {"float64": np.float64, "float16": np.float16}.get(dtype, np.float32)
    smallest = np.nextafter(kind(0), kind(-1))
    frame = people(60).assign(x=np.where(np.arange(60) % 20 == 0, smallest, kind(0)))
    # All means are rounded to zero, which is as near as the dtype can come to them.
    result = floats(mask(frame.astype({"x": dtype}), ["x"], k=10, precision=1.0)["x"])
    assert (result == 0).all()
    assert not np.signbit(result).any()


@pytest.mark.parametrize("low", [1.0, 0.0, -1.0, -TINY, 1e308, np.nextafter(MAX, 0.0)])
def test_adjacent_floats(mask: Mask, low: float) -> None:
    frame = people(90)
    frame["x"] = np.where(np.arange(90) % 2 == 0, low, np.nextafter(low, np.inf))
    result = mask(frame, ["x"], max_block=10)
    # The tree tells them apart, so that no group mixes them.
    assert_frame_equal(result[["x"]], frame[["x"]] + 0.0, check_exact=True)
    verify(frame, frame.sdc.microaggregate(["x", "y"], 3, max_block=10), [["x", "y"]], 3)


def test_extreme_skew(mask: Mask) -> None:
    n = 150
    frame = people(n)
    frame["x"] = np.ldexp(1.0, 6 * np.arange(n) - 3 * n)
    frame["y"] = np.ldexp(-1.0, -(np.arange(n) * 7 % n) * 3)
    mask(frame, max_block=6)
    blocks = frame.sdc.blocks(["x", "y"], 3, max_block=6)
    assert blocks.passes <= 64
    assert blocks.counts.min() >= 3


def test_one_outlier(mask: Mask) -> None:
    frame = people(200)
    frame.loc[17, "x"] = 1e300
    result = mask(frame, max_block=12)
    # Only the group of the outlier is drawn away.
    assert 3 <= (result["x"] > 1e290).sum() <= 5
    assert result.loc[17, "x"] > 1e290


def test_duplicate_rows(mask: Mask) -> None:
    frame = pd.concat([people(20)] * 7, ignore_index=True)
    result = mask(frame, max_block=12)
    # Seven equal records are two groups of three that do not change, and one that is left over.
    unchanged = (result[["x", "y"]] == frame[["x", "y"]]).all(axis=1)
    assert unchanged.sum() >= 20 * 6


# Parameters


@pytest.mark.parametrize("n", [1, 2, 6])
def test_fewer_records_than_k_are_an_error(refuse: Refuse, n: int) -> None:
    text = refuse(ValueError, people(n).assign(x=CANARY), k=7)
    assert re.search(rf"\b{n} records", text)
    assert "k=7" in text
    assert "smaller k" in text


def test_stratum_with_fewer_records_than_k_is_an_error(refuse: Refuse) -> None:
    frame = people().assign(x=CANARY, text="common")
    frame.loc[:1, "text"] = CANARY_TEXT
    text = refuse(ValueError, frame, by="text")
    assert "1 of 2 strata" in text
    assert "Merge rare values" in text


@pytest.mark.parametrize("n", [5, 6, 7, 8, 9])
def test_fewer_records_than_two_groups_form_one(mask: Mask, n: int) -> None:
    result = mask(people(n), k=5)
    assert len(result[["x", "y"]].drop_duplicates()) == 1


def test_twice_k_records_form_two_groups(mask: Mask) -> None:
    assert len(mask(people(10), k=5)[["x", "y"]].drop_duplicates()) == 2


@pytest.mark.parametrize("k", [1, 0, -3])
def test_k_below_two_is_an_error(refuse: Refuse, k: int) -> None:
    text = refuse(ValueError, people().assign(x=CANARY), k=k)
    assert "k must be at least 2" in text
    assert f"received {k}" in text


@pytest.mark.parametrize("k", [True, np.True_, 3.0, np.float64(3.0), "3", None, [3], 1 + 2j])
def test_k_that_is_no_whole_number_is_an_error(refuse: Refuse, k: Any) -> None:
    text = refuse(TypeError, people().assign(x=CANARY), k=k)
    assert "k must be a whole number" in text
    assert type(k).__name__ in text


def test_k_of_numpy_is_a_whole_number(mask: Mask) -> None:
    result = mask(people(), k=np.int8(4))[["x", "y"]]
    assert_frame_equal(result, people()[["x", "y"]].sdc.microaggregate(["x", "y"], 4))


@pytest.mark.parametrize("max_block", [2, 9])
def test_k_above_the_largest_block_is_an_error(refuse: Refuse, max_block: int) -> None:
    text = refuse(ValueError, people().assign(x=CANARY), k=10, max_block=max_block)
    assert "max_block must be at least k" in text
    assert f"max_block={max_block} with k=10" in text


def test_largest_block_of_k(mask: Mask) -> None:
    result = mask(people(100), k=5, max_block=5)
    # A block of 5 to 9 records is one group.
    assert result.groupby(["x", "y"]).size().between(5, 9).all()


@pytest.mark.parametrize("columns", [[], (), [[]], [["x"], []]])
def test_no_columns_are_an_error(refuse: Refuse, columns: Any) -> None:
    text = refuse(ValueError, people().assign(x=CANARY), columns)
    assert "columns is empty or has an empty group" in text
    assert "name the columns to mask" in text


@pytest.mark.parametrize("columns", ["x", None, 7, {"x": "y"}])
def test_columns_that_are_no_list_are_an_error(refuse: Refuse, columns: Any) -> None:
    text = refuse(TypeError, people().assign(x=CANARY), columns)
    assert "columns must be a list of names" in text
    assert type(columns).__name__ in text


@pytest.mark.parametrize("max_block", ["auto", 60])
def test_forty_columns(mask: Mask, max_block: int | str) -> None:
    values = np.random.default_rng(8).normal(size=(300, 40))
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(40)]).assign(kept=1)
    result = mask(frame, [f"x{j}" for j in range(40)], k=5, max_block=max_block)
    assert 2 <= len(result.drop_duplicates()) <= 300 // 5


# Types


TEXTS = ["str", "string", "string[pyarrow]", "object"]


@pytest.mark.parametrize("dtype", TEXTS)
def test_texts_are_an_error(refuse: Refuse, dtype: str) -> None:
    frame = people()
    frame["x"] = pd.Series([str(CANARY)] * len(frame), dtype=dtype)
    text = refuse(TypeError, frame)
    assert "'x'" in text
    assert "dtype" in text
    assert "cast it to float64" in text


@in_memory
@pytest.mark.parametrize("convert", [True, False])
@pytest.mark.parametrize("cells", [[CANARY, CANARY_TEXT, None], [1, 2.5, True], [{}, CANARY, "a"]])
def test_mixed_objects_are_an_error(refuse: Refuse, cells: list[Any], convert: bool) -> None:
    frame = people().assign(x=pd.Series(cells * 20, dtype=object))
    with dask.config.set({"dataframe.convert-string": convert}):
        text = refuse(TypeError, frame)
    assert "'x'" in text
    assert "cast it to float64" in text


def _partition_with_texts(number: int) -> pd.DataFrame:
    frame = people(20)
    return frame.assign(x=CANARY_TEXT) if number == 1 else frame


def test_texts_where_dask_was_told_numbers_show_no_value() -> None:
    lazy = dd.from_map(_partition_with_texts, [0, 1, 2], meta=people(0))
    with pytest.raises(Exception) as caught:
        lazy.sdc.microaggregate(["x", "y"], 3).compute()
    assert "'x'" in text_of(caught, TypeError)


NULLABLE = {
    "Float64": "Float64",
    "Float32": "Float32",
    "Int64": "Float64",
    "Int16": "Float64",
    "UInt64": "Float64",
    "UInt8": "Float64",
    "double[pyarrow]": "double[pyarrow]",
    "float[pyarrow]": "float[pyarrow]",
    "int64[pyarrow]": "double[pyarrow]",
    "int8[pyarrow]": "double[pyarrow]",
    "uint64[pyarrow]": "double[pyarrow]",
    "uint8[pyarrow]": "double[pyarrow]",
}


@pytest.mark.parametrize("missing", [True, False], ids=["missing", "complete"])
@pytest.mark.parametrize("dtype", list(NULLABLE))
def test_nullable_dtypes(mask: Mask, dtype: str, missing: bool) -> None:
    frame = people(60)
    values = np.random.default_rng(9).integers(0, 100, 60).astype(object)
    if missing:
        values[::5] = None
    frame["x"] = pd.array(values, dtype=dtype)
    precision = 1e-6 if "32" in dtype or dtype == "float[pyarrow]" else 1e-12
    result = mask(
        frame, max_block=12, missing="separate" if missing else "error", precision=precision
    )
    assert str(result["x"].dtype) == NULLABLE[dtype]
    assert result["x"].isna().sum() == (12 if missing else 0)


def test_values_under_missing_cells_do_not_survive() -> None:
    values = np.where(np.arange(40) % 4 == 0, CANARY, np.arange(40.0))
    hidden = np.arange(40) % 4 == 0
    frame = pd.DataFrame({"x": pd.arrays.FloatingArray(values, hidden), "y": np.arange(40.0)})
    arrow = pa.Array.from_buffers(
        pa.float64(),
        40,
        [pa.py_buffer(np.packbits(~hidden, bitorder="little")), pa.py_buffer(values)],
    )
    frame["z"] = pd.arrays.ArrowExtensionArray(pa.chunked_array([arrow]))
    result = frame.sdc.microaggregate(["x", "y", "z"], 3, missing="separate")
    verify(frame, result, [["x", "y", "z"]], 3)
    assert CANARY not in result["x"].array._data
    for chunk in result["z"].array.__arrow_array__().chunks:
        assert CANARY not in np.frombuffer(chunk.buffers()[1], np.float64)


@pytest.mark.parametrize("kind", ["object", "arrow"])
def test_decimals_are_an_error_until_they_are_cast(refuse: Refuse, kind: str) -> None:
    frame = people(6)
    decimals = [decimal.Decimal(str(CANARY))] * 6
    dtype = object if kind == "object" else pd.ArrowDtype(pa.decimal128(12, 3))
    frame["x"] = pd.Series(decimals, dtype=dtype)
    text = refuse(TypeError, frame)
    assert "'x'" in text
    assert "cast it to float64" in text
    cast = frame.astype({"x": "float64"})
    verify(cast, cast.sdc.microaggregate(["x", "y"], 3), [["x", "y"]], 3)


TIMES = {
    "datetime": pd.date_range("2001-02-03", periods=6).to_series(index=range(6)),
    "with zone": pd.date_range("2001-02-03", periods=6, tz="UTC").to_series(index=range(6)),
    "timedelta": pd.Series(pd.to_timedelta(range(6), unit="D")),
    "timestamp[pyarrow]": pd.Series(range(6), dtype="timestamp[ns][pyarrow]"),
    "date[pyarrow]": pd.Series([date(2001, 2, 3)] * 6, dtype=pd.ArrowDtype(pa.date32())),
    "duration[pyarrow]": pd.Series(range(6), dtype="duration[ns][pyarrow]"),
}


@pytest.mark.parametrize("kind", list(TIMES))
def test_times_are_an_error(refuse: Refuse, kind: str) -> None:
    text = refuse(TypeError, people(6).assign(x=TIMES[kind]))
    assert "'x'" in text
    assert "2001" not in text
    assert "convert it to a number first" in text


@pytest.mark.parametrize("dtype", ["bool", "boolean", "bool[pyarrow]"])
def test_truth_values_are_an_error(refuse: Refuse, dtype: str) -> None:
    frame = people(6).assign(x=pd.Series([True, False] * 3, dtype=dtype))
    text = refuse(TypeError, frame)
    assert "'x'" in text
    assert "cast it to int first" in text


@pytest.mark.parametrize("dtype", ["uint64", "UInt64", "uint64[pyarrow]"])
def test_unsigned_integers_do_not_wrap_around(mask: Mask, dtype: str) -> None:
    frame = people(60)
    values = np.random.default_rng(10).integers(0, 2**53, 60, dtype=np.uint64)
    values[:2] = [0, 2**53]
    frame["x"] = pd.Series(values).astype(dtype)
    result = mask(frame, max_block=12)
    assert (floats(result["x"]) >= 0).all()


INEXACT = {
    "int64": [CANARY_INTEGER, -CANARY_INTEGER, 2**53 + 1, -(2**53) - 1],
    "uint64": [CANARY_INTEGER, 2**53 + 1, 2**63, 2**64 - 1],
}


@pytest.mark.parametrize(
    "dtype", ["int64", "Int64", "int64[pyarrow]", "uint64", "UInt64", "uint64[pyarrow]"]
)
def test_integers_that_floats_cannot_hold_are_an_error(refuse: Refuse, dtype: str) -> None:
    kind = "uint64" if dtype.lower().startswith("u") else "int64"
    values = np.arange(60, dtype=kind)
    values[[1, 20, 40, 59]] = np.array(INEXACT[kind], dtype=kind)
    frame = people().assign(x=pd.Series(values).astype(dtype))
    text = refuse(ValueError, frame)
    assert "'x' (4)" in text
    assert "Leave identifiers out" in text
    assert "'y'" not in text
    assert not any(str(value) in text for value in INEXACT[kind])


def test_largest_exact_integers(mask: Mask) -> None:
    values = np.arange(60)
    values[:6] = [2**53, 2**53, 2**53, -(2**53), -(2**53), -(2**53)]
    result = mask(people().assign(x=values), ["x"], max_block=12)
    # Both extremes have groups of their own, in which nothing is rounded.
    assert result["x"].iloc[:6].tolist() == [2.0**53] * 3 + [-(2.0**53)] * 3


def test_masked_categories_are_an_error(refuse: Refuse) -> None:
    text = refuse(TypeError, people(6).assign(x=pd.Categorical([CANARY_TEXT] * 6)))
    assert "'x'" in text
    assert "leave it out" in text
    assert "`by`" in text


@in_memory  # a file holds categories that are numbers as plain numbers
def test_masked_categories_that_are_numbers_are_an_error(refuse: Refuse) -> None:
    text = refuse(TypeError, people(6).assign(x=pd.Categorical([CANARY] * 6)))
    assert "'x'" in text
    assert "`by`" in text


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("by", [None, "kind"])
def test_unused_categories_are_not_released(tmp_path: Path, by: str | None, ordered: bool) -> None:
    used = ["low", "middle", "high"]
    frame = people(60)
    categories = ["low", CANARY_TEXT, "middle", "high", CANARY_TEXT + "2"]
    frame["kind"] = pd.Categorical(np.resize(used, 60), categories=categories, ordered=ordered)
    frame.loc[10:12, "kind"] = np.nan if by is None else "high"
    write_source(frame, tmp_path / "source")
    assert CANARY_TEXT.encode() in b"".join(raw_files(tmp_path / "source"))

    protect(tmp_path / "source", tmp_path / "target", ["x", "y"], 3, by=by)
    assert CANARY_TEXT.encode() not in b"".join(raw_files(tmp_path / "target"))
    released = pd.read_parquet(tmp_path / "target")
    assert isinstance(released["kind"].dtype, pd.CategoricalDtype)
    assert list(released["kind"].cat.categories) == used
    assert released["kind"].cat.ordered == ordered
    before = pd.read_parquet(tmp_path / "source")
    texts = pd.CategoricalDtype(categories)
    verify(before.astype({"kind": texts}), released.astype({"kind": texts}), [["x", "y"]], 3)


def raw_files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_short_floats_keep_their_dtype_and_k(mask: Mask, dtype: str) -> None:
    frame = people(120).astype({"x": "float32", "y": dtype})
    # Sums and squares of these exceed the range of the dtype; 64-bit floats hold them.
    frame["x"] *= np.float32(1e33)
    result = mask(frame, max_block=12, precision=1e-6 if dtype == "float32" else 1e-3)
    assert result["x"].dtype == "float32"
    assert result["y"].dtype == dtype
    wide = frame.astype({"x": "float64", "y": "float64"})
    wide = wide.sdc.microaggregate(["x", "y"], 3, max_block=12)
    wide = wide.astype({"x": "float32", "y": dtype})
    assert_frame_equal(result[["x", "y"]], wide[["x", "y"]], check_exact=True)


@in_memory
@pytest.mark.parametrize("value", [complex(CANARY, 1.0), [CANARY], {"a": CANARY}], ids=type)
def test_complex_and_nested_values_are_an_error(refuse: Refuse, value: Any) -> None:
    text = refuse(TypeError, people(6).assign(x=pd.Series([value] * 6)))
    assert "'x'" in text
    assert "leave it out" in text


@pytest.mark.parametrize(
    "kind", [pa.list_(pa.float64()), pa.struct({"a": pa.float64()}), pa.binary()], ids=str
)
def test_nested_arrow_values_are_an_error(refuse: Refuse, kind: pa.DataType) -> None:
    value = {"list": [CANARY], "struct": {"a": CANARY}}.get(str(kind).partition("<")[0], b"123456")
    column = pd.Series([value] * 6, dtype=pd.ArrowDtype(kind))
    text = refuse(TypeError, people(6).assign(x=column))
    assert "'x'" in text
    assert "leave it out" in text


# Frames


@on_pandas
def test_duplicate_column_names_are_an_error(refuse: Refuse) -> None:
    frame = people().assign(x=CANARY)
    for double in ("x", "number"):  # masked or not
        text = refuse(ValueError, frame.rename(columns={"kept": double}))
        assert f"more than once: '{double}'" in text
        assert "Rename" in text


def test_duplicate_column_names_are_an_error_with_dask() -> None:
    def renamed(_: int) -> pd.DataFrame:
        return people().assign(x=CANARY).rename(columns={"kept": "number"})

    lazy = dd.from_map(renamed, [0, 1], meta=renamed(0).iloc[:0])
    with pytest.raises(ValueError, match="more than once: 'number'") as caught:
        lazy.sdc.microaggregate(["x", "y"], 3)
    text_of(caught, ValueError)


@pytest.mark.parametrize("double", ["x", "other"])
def test_duplicate_column_names_are_an_error_in_files(tmp_path: Path, double: str) -> None:
    columns = [pa.array([CANARY] * 9)] * 4
    table = pa.Table.from_arrays(columns, names=["x", "y", double, "other"])
    pq.write_table(table, tmp_path / "source.parquet")
    with pytest.raises(ValueError, match=f"more than once: {double}") as caught:
        protect(tmp_path / "source.parquet", tmp_path / "target", ["x", "y"], 3)
    assert "Rename" in text_of(caught, ValueError)
    assert [path.name for path in tmp_path.iterdir()] == ["source.parquet"]


@on_pandas
def test_several_levels_of_column_names_are_an_error(refuse: Refuse) -> None:
    names = pd.MultiIndex.from_product([["x"], ["a", "b"]])
    frame = pd.DataFrame(CANARY, index=range(9), columns=names)
    text = refuse(TypeError, frame, [("x", "a")])
    assert "MultiIndex of columns" in text
    assert "flatten the names" in text


def test_missing_columns_are_listed(refuse: Refuse) -> None:
    text = refuse(KeyError, people().assign(x=CANARY), ["x", "nowhere", "y", "absent"])
    assert "'nowhere', 'absent'" in text
    assert "It has: 'x', 'kept', 'y', 'number', 'text'" in text


def test_missing_strata_columns_are_listed(refuse: Refuse) -> None:
    text = refuse(KeyError, people().assign(x=CANARY), by=["text", "nowhere"])
    assert "by names columns that the frame does not have: 'nowhere'" in text


@pytest.mark.parametrize("columns", [[["x", "y"], ["kept", "y"]], [["x", "y", "y"]], ["y", "y"]])
def test_column_in_two_groups_is_an_error(refuse: Refuse, columns: Any) -> None:
    text = refuse(ValueError, people().assign(x=CANARY), columns)
    assert "more than once: 'y'" in text
    assert "belongs to one group" in text


def test_column_that_is_masked_and_a_stratum_is_an_error(refuse: Refuse) -> None:
    text = refuse(ValueError, people().assign(x=CANARY), by="y")
    assert "by names columns that are masked: 'y'" in text


def test_groups_of_columns_each_reach_k(mask: Mask) -> None:
    groups = [["x", "y"], ["kept"], ["number"]]
    result = mask(people(120), groups, k=4, max_block=20)
    assert all(result.groupby(group).size().min() >= 4 for group in groups)


def test_unknown_divisions() -> None:
    lazy = dd.from_pandas(people(100), npartitions=5)
    frame = lazy.compute()
    unknown = lazy.clear_divisions()
    assert not unknown.known_divisions
    masked = unknown.sdc.microaggregate(["x", "y"], 3, max_block=12)
    expected = frame.sdc.microaggregate(["x", "y"], 3, max_block=12)
    verify(frame, masked.compute(), [["x", "y"]], 3)
    assert_frame_equal(masked.compute(), expected, check_exact=True)
    assert lazy.sdc.microaggregate(["x", "y"], 3).divisions == lazy.divisions


PLACES = pd.MultiIndex.from_product([range(20), list("abc")])
INDEXES = {
    "levels": PLACES.set_names(["place", None]),
    "levels named like columns": PLACES.set_names(["x", "y"]),
    "duplicates": pd.Index([7, 7, 7, 8, 9] * 12, name="who"),
    "texts": pd.Index([f"p{i}" for i in range(60)]),
    "descending": pd.RangeIndex(60, 0, -1),
    "missing": pd.Index([np.nan, 1.0, 2.0] * 20),
}


@pytest.mark.parametrize("name", list(INDEXES))
def test_index_is_kept(name: str) -> None:
    frame = people(60).set_axis(INDEXES[name])
    result = frame.sdc.microaggregate(["x", "y"], 3, max_block=12)
    verify(frame, result, [["x", "y"]], 3)
    plain = people(60).sdc.microaggregate(["x", "y"], 3, max_block=12)
    assert_frame_equal(result.reset_index(drop=True), plain, check_exact=True)


@pytest.mark.parametrize("name", list(INDEXES))
def test_index_goes_with_its_row_where_order_is_not_kept(name: str) -> None:
    frame = people(60).set_axis(INDEXES[name])
    result = frame.sdc.microaggregate(["x", "y"], 3, max_block=12, keep_order=False)
    ordered = frame.sdc.microaggregate(["x", "y"], 3, max_block=12)
    assert_frame_equal(result.iloc[np.argsort(result["number"])], ordered, check_exact=True)


def _keep(part: pd.DataFrame, numbers: list[int]) -> pd.DataFrame:
    return part[part["number"].isin(numbers)]


@pytest.mark.parametrize("rows", [range(40, 60), range(0, 20), range(20, 40), [3, 30, 55, 99]])
def test_empty_partitions(rows: Any) -> None:
    lazy = dd.from_pandas(people(100), npartitions=10).map_partitions(_keep, list(rows))
    frame = lazy.compute()
    assert lazy.map_partitions(len).compute().min() == 0
    expected = frame.sdc.microaggregate(["x", "y"], 3, max_block=5)
    verify(frame, expected, [["x", "y"]], 3)
    masked = lazy.sdc.microaggregate(["x", "y"], 3, max_block=5)
    assert masked.npartitions == 10
    assert_frame_equal(masked.compute(), expected, check_exact=True)
    moved = lazy.sdc.microaggregate(["x", "y"], 3, max_block=5, keep_order=False).compute()
    assert_frame_equal(moved.sort_index(), expected, check_exact=True)


@pytest.mark.parametrize("by", [None, "text", "number"])
def test_empty_partitions_with_strata_and_missing_cells(by: str | None) -> None:
    frame = people(100).assign(text=lambda frame: "group " + (frame.index % 2).astype(str))
    frame.loc[frame["number"] % 3 == 0, "y"] = np.nan
    lazy = dd.from_pandas(frame, npartitions=10).map_partitions(_keep, list(range(30, 80)))
    lazy["number"] = lazy["number"] % 2
    frame = lazy.compute()
    options = {"by": by, "missing": "separate", "max_block": 6}
    expected = frame.sdc.microaggregate(["x", "y"], 3, **options)
    verify(frame, expected, [["x", "y"]], 3, () if by is None else (by,))
    result = lazy.sdc.microaggregate(["x", "y"], 3, **options).compute()
    assert_frame_equal(result, expected, check_exact=True)


@pytest.mark.parametrize("empty", ["0.parquet", "1.parquet", "9.parquet"])
def test_empty_files(tmp_path: Path, empty: str) -> None:
    frame = people(60)
    write_source(frame, tmp_path / "source", files=1)
    (tmp_path / "source" / "0.parquet").rename(tmp_path / "source" / "5.parquet")
    schema = pq.read_schema(tmp_path / "source" / "5.parquet")
    pq.write_table(schema.empty_table(), tmp_path / "source" / empty)
    with pq.ParquetWriter(tmp_path / "source" / "7.parquet", schema):
        pass  # not even an empty row group
    protect(tmp_path / "source", tmp_path / "target", ["x", "y"], 3, max_block=12)
    released = pd.read_parquet(tmp_path / "target")
    verify(pd.read_parquet(tmp_path / "source"), released, [["x", "y"]], 3)
    expected = frame.sdc.microaggregate(["x", "y"], 3, max_block=12)
    assert_frame_equal(bits(released, ["x", "y"]), bits(expected, ["x", "y"]))


@pytest.mark.parametrize("options", [{}, {"by": "text"}, {"missing": "separate"}], ids=str)
def test_empty_frame_is_an_error(refuse: Refuse, options: dict[str, Any]) -> None:
    text = refuse(ValueError, people(0), **options)
    assert "no records" in text


def test_frame_without_columns_is_an_error() -> None:
    with pytest.raises(KeyError, match="'x'"):
        pd.DataFrame(index=range(9)).sdc.microaggregate(["x"], 3)


INTERNAL = ["key", "v0", "row", "block", "c0", "i0", "count", "stratum", "by0", "missing0", "index"]


def _internal_names(n: int = 80) -> pd.DataFrame:
    rng = np.random.default_rng(11)
    return pd.DataFrame(rng.normal(size=(n, len(INTERNAL))), columns=INTERNAL)


@pytest.mark.parametrize("name", INTERNAL)
def test_masked_columns_with_internal_names(mask: Mask, name: str) -> None:
    other = INTERNAL[INTERNAL.index(name) - 1]
    result = mask(_internal_names(), [name, other], max_block=12)
    plain = _internal_names().rename(columns={name: "plain", other: "other"})
    plain = plain.sdc.microaggregate(["plain", "other"], 3, max_block=12)
    np.testing.assert_array_equal(result[[name, other]], plain[["plain", "other"]])


@pytest.mark.parametrize("name", INTERNAL)
def test_strata_and_missing_cells_with_internal_names(mask: Mask, name: str) -> None:
    frame = _internal_names()
    frame[name] = np.arange(80) % 2
    columns = [column for column in INTERNAL if column != name][:3]
    frame.loc[np.arange(80) % 5 == 0, columns[1]] = np.nan
    result = mask(frame, columns, by=name, missing="separate", max_block=12)
    assert np.array_equal(result[columns].isna(), frame[columns].isna())
    assert result[columns[1]].isna().sum() == 16


@pytest.mark.parametrize("name", INTERNAL)
def test_internal_names_where_order_is_not_kept(name: str) -> None:
    lazy = dd.from_pandas(_internal_names().rename_axis(name), npartitions=3)
    columns = [name, "v0"] if name != "v0" else [name, "key"]
    expected = lazy.compute().sdc.microaggregate(columns, 3, max_block=12)
    verify(lazy.compute(), expected, [columns], 3)
    for frame in (lazy.compute(), lazy):
        moved = frame.sdc.microaggregate(columns, 3, max_block=12, keep_order=False)
        moved = moved.compute() if frame is lazy else moved
        assert_frame_equal(moved.sort_index(), expected, check_exact=True)


def test_names_that_are_no_texts() -> None:
    frame = people(60).rename(columns={"x": 0, "y": 1.5, "kept": ("a", 1)})
    result = frame.sdc.microaggregate([0, 1.5, ("a", 1)], 3, max_block=12)
    verify(frame, result, [[0, 1.5, ("a", 1)]], 3)


# Files


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a directory of three good files."""
    write_source(people().assign(kept=CANARY), tmp_path / "source")
    return tmp_path / "source"


def refuse_files(
    error: type[Exception], source: Path, target: Path, columns: Any = ("x", "y"), **options: Any
) -> str:
    """Expect a clean refusal that leaves the folder as it was; give its text."""
    columns = list(columns) if isinstance(columns, tuple) else columns
    folder = source.parent
    before = contents(folder)
    with pytest.raises(error) as caught:
        protect(source, target, columns, 3, **options)
    assert contents(folder) == before
    return text_of(caught, error)


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return all paths in a folder, hidden ones too, with what is in the files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


@pytest.fixture(params=["directory", "file", "empty directory", "link", "broken link"])
def existing(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a target that exists."""
    target = tmp_path / "target"
    if request.param == "file":
        target.write_text("old")
        return target
    if request.param == "broken link":
        target.symlink_to(tmp_path / "nowhere")
        return target
    folder = tmp_path / "elsewhere" if request.param == "link" else target
    folder.mkdir()
    if request.param != "empty directory":
        (folder / "old.txt").write_text("old")
    if request.param == "link":
        target.symlink_to(folder)
    return target


def test_existing_target_is_an_error(source: Path, existing: Path) -> None:
    text = refuse_files(FileExistsError, source, existing)
    assert "target" in text
    assert "exists" in text
    assert "replace=True" in text


def test_existing_target_is_replaced_if_asked_for(source: Path, existing: Path) -> None:
    before = {path.name for path in source.parent.iterdir()}
    protect(source, existing, ["x", "y"], 3, replace=True)
    assert {path.name for path in source.parent.iterdir()} == before
    assert all(path.suffix == ".parquet" for path in existing.iterdir())
    verify(pd.read_parquet(source), pd.read_parquet(existing), [["x", "y"]], 3)


def test_target_is_not_replaced_if_the_source_is_refused(source: Path, existing: Path) -> None:
    bad = people().assign(x=np.inf, kept=CANARY)
    bad.to_parquet(source / "bad.parquet", index=False)
    text = refuse_files(ValueError, source, existing, replace=True)
    assert "'x' (60)" in text


@pytest.mark.parametrize("replace", ["yes", 1, None])
def test_replace_is_true_or_false(source: Path, replace: Any) -> None:
    text = refuse_files(TypeError, source, source.parent / "target", replace=replace)
    assert "replace must be True or False" in text


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize(
    "place", ["source", "source/inside", "source/a/b", "source/../source", "source/0.parquet"]
)
def test_target_in_the_source_is_an_error(source: Path, place: str, replace: bool) -> None:
    text = refuse_files(ValueError, source, source.parent / place, replace=replace)
    assert "is the source or lies inside it" in text
    assert "choose another directory" in text


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("place", ["link", "link/inside"])
def test_target_in_the_source_by_a_link_is_an_error(
    source: Path, place: str, replace: bool
) -> None:
    (source.parent / "link").symlink_to(source)
    text = refuse_files(ValueError, source, source.parent / place, replace=replace)
    assert "is the source or lies inside it" in text


def test_target_equal_to_the_source_file_is_an_error(source: Path) -> None:
    file = source / "0.parquet"
    assert "is the source" in refuse_files(ValueError, file, file, replace=True)


@pytest.mark.parametrize("replace", [True, False])
@pytest.mark.parametrize("inner", ["source", "source/0.parquet"])
def test_source_in_the_target_is_an_error(source: Path, inner: str, replace: bool) -> None:
    folder = source.parent
    before = contents(folder)
    with pytest.raises(ValueError, match="lies inside the target") as caught:
        protect(folder / inner, folder, ["x", "y"], 3, replace=replace)
    assert "choose another target" in text_of(caught, ValueError)
    assert contents(folder) == before


def test_target_in_no_directory_is_an_error(source: Path) -> None:
    text = refuse_files(FileNotFoundError, source, source.parent / "nowhere" / "target")
    assert "does not exist" in text


@pytest.mark.parametrize("drop", ["nowhere", ["text", "nowhere"]])
def test_dropping_unknown_columns_is_an_error(source: Path, drop: Any) -> None:
    text = refuse_files(KeyError, source, source.parent / "target", drop=drop)
    assert "drop names columns that the frame does not have: 'nowhere'" in text
    assert "It has: 'x'" in text


@pytest.mark.parametrize("drop", ["y", ["text", "y"]])
def test_dropping_masked_columns_is_an_error(source: Path, drop: Any) -> None:
    text = refuse_files(ValueError, source, source.parent / "target", drop=drop)
    assert "drop names columns that are masked: y" in text
    assert "masked or dropped" in text


def test_dropped_columns_leave_no_trace(source: Path) -> None:
    people().assign(text=CANARY_TEXT).to_parquet(source / "3.parquet", index=False)
    target = source.parent / "target"
    protect(source, target, ["x", "y"], 3, drop="text")
    assert CANARY_TEXT.encode() in b"".join(raw_files(source))
    raw = b"".join(raw_files(target))
    assert CANARY_TEXT.encode() not in raw
    assert b"person 1" not in raw
    assert pq.read_schema(target / "part-000000.parquet").names == ["x", "kept", "y", "number"]


def test_columns_as_one_text_are_an_error(source: Path) -> None:
    text = refuse_files(TypeError, source, source.parent / "target", "x")
    assert "list of names" in text
    assert "str" in text


def test_missing_source_is_an_error(tmp_path: Path) -> None:
    text = refuse_files(FileNotFoundError, tmp_path / "nowhere", tmp_path / "target")
    assert "nowhere" in text
    assert "does not exist" in text


@pytest.mark.parametrize("name", ["notes.txt", "_hidden.parquet", ".hidden.parquet", None])
def test_source_without_files_is_an_error(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "empty").mkdir()
    if name:
        people().to_parquet(tmp_path / "empty" / name)
    text = refuse_files(FileNotFoundError, tmp_path / "empty", tmp_path / "target")
    assert "empty" in text
    assert "no parquet file" in text


OTHER_SCHEMAS = {
    "dtype": lambda frame: frame.astype({"x": "float32"}),
    "name": lambda frame: frame.rename(columns={"kept": "other"}),
    "order": lambda frame: frame[frame.columns[::-1]],
    "fewer": lambda frame: frame.drop(columns="kept"),
    "more": lambda frame: frame.assign(more=1),
}


@pytest.mark.parametrize("change", list(OTHER_SCHEMAS))
def test_differing_schemas_are_an_error(source: Path, change: str) -> None:
    other = OTHER_SCHEMAS[change](people().assign(x=CANARY))
    other.to_parquet(source / "other.parquet", index=False)
    text = refuse_files(ValueError, source, source.parent / "target")
    assert "other.parquet" in text
    assert "0.parquet" in text
    assert "same columns and types" in text


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _not_parquet(file: Path) -> None:
    file.write_text(f"x,y\n{CANARY},{CANARY_TEXT}\n" * 50)


def _break_footer(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    length = int.from_bytes(raw[-8:-4], "little")
    raw[-8 - length : -8 - length // 2] = b"\xff" * (length - length // 2)
    file.write_bytes(bytes(raw))


def _break_column(file: Path, number: int) -> None:
    raw = bytearray(file.read_bytes())
    column = pq.read_metadata(file).row_group(0).column(number)
    start = column.dictionary_page_offset or column.data_page_offset
    raw[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    file.write_bytes(bytes(raw))


def _break_masked_column(file: Path) -> None:
    _break_column(file, 0)


def _break_kept_column(file: Path) -> None:
    _break_column(file, 4)


@pytest.mark.parametrize(
    "spoil",
    [_truncate, _empty, _not_parquet, _break_footer, _break_masked_column, _break_kept_column],
    ids=lambda spoil: spoil.__name__[1:],
)
def test_corrupt_file_is_named(source: Path, spoil: Callable[[Path], None]) -> None:
    file = source / "1.parquet"
    spoil(file)
    text = refuse_files(ValueError, source, source.parent / "target")
    assert str(file) in text
    assert "truncated, corrupt" in text
