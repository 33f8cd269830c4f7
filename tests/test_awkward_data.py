"""Awkward data: each road masks it all the same, or refuses it before anything is written.

A road is a way that records go to be masked: to blocks, along an order, as single cells, by an
exchange of values. What is masked is the same with pandas and Dask, bit for bit, and is checked by
pandas alone. A refusal names columns and counts, says what to do, and shows no value of the data.
"""

from __future__ import annotations

import dataclasses
import decimal
import itertools
import re
import traceback
from collections.abc import Sequence
from datetime import date
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pandas.testing import assert_frame_equal, assert_index_equal, assert_series_equal

from sdc_dask import FuzzyMicroaggregation, Mic1D, Microaggregation, RankSwap, SdcError, Spec
from sdc_dask.aggregation import power

CANARY = 123456.789
CANARY_TEXT = "Zx9canaryQ7"
CANARY_INTEGER = 2**53 + 123_456_789
FORBIDDEN = [str(CANARY), "123456", CANARY_TEXT, str(CANARY_INTEGER)]

MAX = np.finfo(np.float64).max
TINY = np.nextafter(0.0, 1.0)  # the smallest subnormal number

# For all of the module: a filter that is set in one thread may be taken back in another, where
# pandas sets its own.
pytestmark = pytest.mark.filterwarnings("ignore:fuzzy microaggregation does not guarantee")

XY = ["x", "y"]
ROADS: dict[str, Spec] = {
    "blocks": Microaggregation(XY, 3, max_block=12),
    "order": Microaggregation([["x"], ["y"]], 3, method="optimal"),
    "projection": Microaggregation(XY, 3, method="pcp"),
    "cells": Mic1D(XY, 20),
    "exchange": RankSwap(XY, 20),
    "swap in blocks": RankSwap(XY, 30, blocking="tree", max_block=15),
    "fuzzy": FuzzyMicroaggregation(XY, 3, 1.5, 1.2, max_block=20),
}
# Roads that have most of their way in common with another are long tests.
LONG = ("projection", "swap in blocks")
every_road = pytest.mark.parametrize(
    "road",
    [pytest.param(road, marks=pytest.mark.soak) if road in LONG else road for road in ROADS],
)


Cases = dict[str, Sequence[Any]]


def cases_of(name: str, quick: Cases, long: Cases) -> pytest.MarkDecorator:
    """Take some cases for every road, of which some are long tests."""
    return pytest.mark.parametrize(
        ("road", name),
        [
            *((road, case) for road, cases in quick.items() for case in cases),
            *(
                pytest.param(road, case, marks=pytest.mark.soak)
                for road, cases in long.items()
                for case in cases
                if case not in quick.get(road, ())
            ),
        ],
    )


needs_finite = pytest.mark.parametrize("road", [road for road in ROADS if road != "exchange"])
with_k = pytest.mark.parametrize("road", ["blocks", "order", "projection"])


def people(n: int = 60, seed: int = 1) -> pd.DataFrame:
    """Two columns to mask, and three that stay as they are."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.lognormal(10.0, 1.0, n),
            "kept": rng.normal(size=n),
            "y": rng.normal(50.0, 9.0, n),
            "number": np.arange(n),
            "text": pd.array([f"person {i}" for i in range(n)], dtype="string[pyarrow]"),
        }
    )


def run(frame: Any, spec: Spec) -> Any:
    return frame.sdc.mask(spec, random_state=5 if spec.draws else None)


def refuse(error: type[Exception], frame: pd.DataFrame, spec: Spec) -> str:
    """Expect that pandas and Dask refuse a frame alike, with the call; give the text."""
    texts = []
    for each in (frame, dd.from_pandas(frame, npartitions=2, sort=False)):
        with pytest.raises(error) as caught:
            run(each, spec)
        texts.append(clean_text(caught))
    assert texts[0] == texts[1]
    return texts[0]


def clean_text(caught: pytest.ExceptionInfo[Exception]) -> str:
    """Return the text of an error of ours, whose traceback shows no planted value either."""
    assert isinstance(caught.value, SdcError)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    shown = "".join(traceback.format_exception(caught.value))
    assert not [value for value in FORBIDDEN if value in shown]
    return str(caught.value)


def floats(column: pd.Series) -> np.ndarray:
    return np.ascontiguousarray(column.to_numpy(dtype="float64", na_value=np.nan))


def mask_and_check(frame: pd.DataFrame, spec: Spec, precision: float = 1e-12) -> pd.DataFrame:
    """Mask with pandas and Dask, which must agree; check what the spec must hold."""
    before = frame.copy()
    result = run(frame, spec)
    assert_frame_equal(frame, before)
    lazy = run(dd.from_pandas(frame, npartitions=2, sort=False), spec)
    assert_frame_equal(lazy.compute(), result, check_exact=True)
    assert_series_equal(lazy.dtypes, result.dtypes)
    kept = [column for column in frame.columns if column not in spec.masked]
    assert_index_equal(result.index, frame.index, exact=True)
    assert list(result.columns) == list(frame.columns)
    assert_frame_equal(result[kept], frame[kept], check_exact=True)
    for column in spec.masked:
        check_column(frame, result, column, spec, precision)
    if spec.promise is not None:
        for columns in spec.column_sets:
            bits = {i: floats(result[name]).view(np.int64) for i, name in enumerate(columns)}
            by = {f"by{i}": result[name].to_numpy() for i, name in enumerate(spec.by)}
            classes = pd.DataFrame(bits | by).groupby([*bits, *by], dropna=False).size()
            assert classes.sum() == len(frame)
            assert classes.min() >= spec.promise
    return result


def check_column(
    frame: pd.DataFrame, result: pd.DataFrame, column: Any, spec: Spec, precision: float
) -> None:
    """Check that a column has its values, its mean, or values within its range."""
    old, new = floats(frame[column]), floats(result[column])
    np.testing.assert_array_equal(np.isnan(new), np.isnan(old))
    old, new = old[~np.isnan(old)], new[~np.isnan(new)]
    if spec.moves:
        assert np.array_equal(np.sort(old), np.sort(new))
        return
    # Powers of two keep the largest values from overflowing and the smallest from vanishing.
    exponent = np.frexp(np.abs(old).max())[1]
    old, new = np.ldexp(old, -exponent), np.ldexp(new, -exponent)
    slack = precision + np.ldexp(TINY, -exponent)
    assert np.isfinite(new).all()
    if spec.promise is not None:
        assert abs(old.mean() - new.mean()) <= slack
    if not isinstance(spec, Mic1D):  # which mixes columns
        assert new.min() >= old.min() - slack
        assert new.max() <= old.max() + slack


# Missing and infinite values


@pytest.mark.parametrize("dtype", ["float64", "float32", "Float64", "double[pyarrow]"])
def test_missing_cells_are_counted(dtype: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[3, 5, 50], "y"] = np.nan
    text = refuse(ValueError, frame.astype({"x": dtype, "y": dtype}), ROADS["blocks"])
    assert text.startswith("missing cells in columns: 'y' (3). Fill or drop them first")


@every_road
def test_missing_cells_are_an_error(road: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[3, 5, 50], "y"] = np.nan
    spec = ROADS[road]
    if isinstance(spec, RankSwap):
        mask_and_check(frame, spec)  # which leaves them where they are
        spec = dataclasses.replace(spec, missing="error")
    text = refuse(ValueError, frame, spec)
    assert "missing cells in columns: 'y' (3). Fill or drop them first" in text
    assert ("missing='keep'" in text) == isinstance(spec, RankSwap)
    assert ("missing='separate'" in text) == hasattr(spec, "k")


@pytest.mark.parametrize("road", ["blocks", "order", "projection", "fuzzy"])
def test_missing_cells_are_kept_where_they_are(road: str) -> None:
    frame = people(80)
    frame.loc[frame.index % 4 == 0, "y"] = np.nan
    frame.loc[frame.index % 8 == 1, "x"] = np.nan
    spec = dataclasses.replace(ROADS[road], missing="separate")
    result = mask_and_check(frame, spec)
    assert result[XY].isna().sum().tolist() == [10, 20]
    frame.loc[[7, 9], XY] = [CANARY, np.nan]
    frame.loc[~frame.index.isin([7, 9]), "y"] = 1.0
    text = refuse(ValueError, frame, dataclasses.replace(spec, columns=["y"], k=4))
    assert "1 of 2 strata" in text
    assert "fewer than k=4 records, the smallest 2. Merge rare values" in text


@pytest.mark.parametrize("road", ["blocks", "fuzzy"])
def test_missing_bits_are_canonical(road: str) -> None:
    frame = people(40)
    payload = np.array([0x7FF8_0000_DEAD_BEEF, 0xFFF8_0000_0000_0001], np.uint64).view(np.float64)
    frame.loc[frame.index[:10], "y"] = np.resize(payload, 10)
    result = run(frame, dataclasses.replace(ROADS[road], missing="separate"))
    missing = result["y"].to_numpy()[result["y"].isna()]
    assert set(missing.view(np.uint64)) == {np.array([np.nan]).view(np.uint64)[0]}


@pytest.mark.parametrize("road", ["blocks", "order", "projection", "exchange", "swap in blocks"])
def test_columns_without_any_value_are_an_error(road: str) -> None:
    spec = ROADS[road]
    missing = "keep" if isinstance(spec, RankSwap) else "separate"
    text = refuse(ValueError, people().assign(y=np.nan), dataclasses.replace(spec, missing=missing))
    assert re.search("columns without any value: 'y'|column 'y' has no values", text)


@pytest.mark.parametrize("kind", ["arrow", "masked"])
@pytest.mark.parametrize("road", ["blocks", "order", "exchange"])
def test_nan_beside_null_is_missing_like_it(road: str, kind: str) -> None:
    values = [*np.random.default_rng(3).normal(size=12), *[float("nan")] * 6, *[None] * 6]
    frame = people(24).assign(
        y=pd.arrays.ArrowExtensionArray(pa.chunked_array([pa.array(values, pa.float64())]))
    )
    if kind == "masked":
        frame["y"] = pd.arrays.FloatingArray(floats(frame["y"]), np.arange(24) >= 18)
    spec = ROADS[road]
    if isinstance(spec, RankSwap):
        error = dataclasses.replace(spec, missing="error")
    else:
        error, spec = spec, dataclasses.replace(spec, missing="separate")
    assert "'y' (12)" in refuse(ValueError, frame, error)
    result = run(frame, spec)
    assert_frame_equal(run(dd.from_pandas(frame, npartitions=3), spec).compute(), result)
    np.testing.assert_array_equal(np.isnan(floats(result["y"])), np.arange(24) >= 12)


@needs_finite
def test_infinities_are_an_error(road: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[2, 30], "x"] = np.inf
    frame.loc[59, "y"] = -np.inf
    text = refuse(ValueError, frame, ROADS[road])
    assert "infinite values in columns: 'x' (2), 'y' (1)" in text
    assert "Replace them by finite values or drop those records" in text


def test_infinities_are_found_beside_missing_cells_and_in_other_dtypes() -> None:
    frame = people()
    frame.loc[5, "x"] = np.inf
    frame.loc[10:30, "y"] = np.nan
    spec = dataclasses.replace(ROADS["blocks"], missing="separate")
    for dtype in ("float32", "Float64", "double[pyarrow]"):
        assert "'x' (1)" in refuse(ValueError, frame.astype({"x": dtype}), spec)


def test_infinities_can_be_swapped_unless_they_are_averaged() -> None:
    frame = people()
    frame.loc[[2, 30], "x"] = [np.inf, -np.inf]
    mask_and_check(frame, ROADS["exchange"])
    for side in ("top", "bottom"):
        spec = dataclasses.replace(ROADS["exchange"], **{side: 10})
        # Which values are extremes is known when the column is in order.
        for each in (frame, dd.from_pandas(frame, npartitions=2)):
            with pytest.raises(ValueError) as caught:
                getattr(run(each, spec), "compute", dict)()
            text = clean_text(caught)
            assert "column 'x' has 1 infinite values among its extremes, which have no mean" in text
            assert f"leave out {side}=" in text


# Numbers at the edges of floats


NUMBERS: dict[str, Any] = {
    "all equal": lambda n: np.full(n, 0.1),
    "zeros": lambda n: np.zeros(n),
    "huge and equal": lambda n: np.full(n, -1e300),
    "squares overflow": lambda n: np.random.default_rng(2).normal(size=n) * 1e200,
    "near the largest": lambda n: np.random.default_rng(4).uniform(1.6e308, MAX, n),
    "all of the range": lambda n: np.linspace(-1.0, 1.0, n) * MAX,
    "subnormal": lambda n: np.random.default_rng(5).integers(0, 60, n) * TINY,
    "variance underflows": lambda n: np.random.default_rng(6).normal(size=n) * 1e-175,
    "variance rounds away": lambda n: 1e16 + 2.0 * np.random.default_rng(7).integers(0, 3, n),
    "adjacent": lambda n: np.where(np.arange(n) % 2 == 0, 1.0, np.nextafter(1.0, 2.0)),
    "adjacent at the end": lambda n: np.where(np.arange(n) % 2 == 0, np.nextafter(MAX, 0.0), MAX),
    "powers": lambda n: np.ldexp(1.0, 6 * np.arange(n) - 3 * n),
    "one outlier": lambda n: np.where(np.arange(n) == 17, 1e300, np.arange(n) % 13),
    "repeated": lambda n: np.arange(n) % 7 + 0.1,
}


FEW = ["huge and equal", "all of the range", "subnormal", "adjacent", "powers"]


# Swaps compare values, and do no more with them.
@cases_of(
    "case",
    quick={
        "blocks": list(NUMBERS),
        **{road: FEW for road in ("order", "projection", "cells", "fuzzy")},
        "exchange": ["all of the range", "subnormal"],
    },
    long={"projection": list(NUMBERS), "exchange": FEW, "swap in blocks": FEW},
)
def test_numbers_at_the_edges_of_floats(road: str, case: str) -> None:
    mask_and_check(people(90).assign(x=NUMBERS[case](90)), ROADS[road])


def test_values_are_told_apart_however_they_are_scaled() -> None:
    for case in ("squares overflow", "near the largest", "all of the range", "subnormal"):
        frame = people(90).assign(x=NUMBERS[case](90))
        assert run(frame, ROADS["blocks"])["x"].nunique() > 10
        result = mask_and_check(frame, dataclasses.replace(ROADS["blocks"], standardize=False))
        assert result["x"].nunique() > 10
    frame = people(90).assign(x=NUMBERS["variance rounds away"](90))
    assert run(frame, ROADS["blocks"])["x"].nunique() > 1


def test_adjacent_floats_are_told_apart() -> None:
    for low in (0.0, -1.0, -TINY, np.nextafter(MAX, 0.0)):
        frame = people(90)
        frame["x"] = np.where(np.arange(90) % 2 == 0, low, np.nextafter(low, np.inf))
        result = mask_and_check(frame, Microaggregation(["x"], 3, max_block=10))
        assert_frame_equal(result[["x"]], frame[["x"]] + 0.0, check_exact=True)


def test_an_outlier_draws_its_own_group_alone() -> None:
    result = mask_and_check(people(90).assign(x=NUMBERS["one outlier"](90)), ROADS["blocks"])
    assert 3 <= (result["x"] > 1e290).sum() <= 5


@pytest.mark.parametrize("blocking", ["tree", "halves", "univariate", None])
def test_extremes_with_every_blocking(blocking: str | None) -> None:
    frame = people(90).assign(x=NUMBERS["all of the range"](90), y=np.arange(90) * TINY)
    mask_and_check(frame, Microaggregation(XY, 3, blocking=blocking))


def test_a_constant_column_changes_nothing() -> None:
    frame = people().assign(constant=1e-310)
    spec = Microaggregation(["x", "constant", "y"], 3, max_block=12)
    without = run(frame, ROADS["blocks"])
    assert_frame_equal(mask_and_check(frame, spec)[XY], without[XY], check_exact=True)


@pytest.mark.parametrize("road", ["blocks", "order", "projection", "cells", "fuzzy"])
def test_means_have_no_negative_zeros(road: str) -> None:
    frame = people(60)
    frame["x"] = np.where(frame.index % 2 == 0, -0.0, 0.0)
    frame["y"] = np.where(frame.index % 3 == 0, -0.0, frame.index // 30)
    result = mask_and_check(frame, ROADS[road])[XY].to_numpy()
    assert (result == 0).sum() > 20
    assert not np.signbit(result[result == 0]).any()


@pytest.mark.parametrize("dtype", ["float16", "float32", "halffloat[pyarrow]"])
def test_narrow_floats_are_strata_and_keys(dtype: str) -> None:
    frame = pd.DataFrame({"a": [1.5, 1.5, -0.0, 0.0, 2.5, 2.5], "x": range(6)})
    frame["a"] = frame["a"].astype(dtype)
    masked = frame.sdc.microaggregate(["x"], 2, by="a")
    assert masked["x"].tolist() == [0.5, 0.5, 2.5, 2.5, 4.5, 4.5]
    assert frame.sdc.suppress(["a"], 3)["a"].isna().all()
    assert not frame.sdc.suppress(["a"], 2)["a"].isna().any()


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "Float32", "float[pyarrow]"])
def test_means_that_round_to_negative_zero_become_zero(dtype: str) -> None:
    kind = {"float64": np.float64, "float16": np.float16}.get(dtype, np.float32)
    smallest = np.nextafter(kind(0), kind(-1))
    frame = people(60).assign(x=np.where(np.arange(60) % 20 == 0, smallest, kind(0)))
    # All means are rounded to zero, which is as near as the dtype can come to them.
    result = mask_and_check(frame.astype({"x": dtype}), Microaggregation(["x"], 10), precision=1.0)
    assert (floats(result["x"]) == 0).all()
    assert not np.signbit(floats(result["x"])).any()


# Few records, many, equal ones


@every_road
def test_empty_frames_are_an_error(road: str) -> None:
    assert "the frame has no records" in refuse(ValueError, people(0), ROADS[road])


@pytest.mark.parametrize("n", [1, 6])
@pytest.mark.parametrize("road", ["blocks", "order", "projection", "fuzzy"])
def test_fewer_records_than_k_are_an_error(road: str, n: int) -> None:
    spec = dataclasses.replace(ROADS[road], k=7)
    text = refuse(ValueError, people(n).assign(x=CANARY), spec)
    assert f"the frame has {n} records, fewer than k=7" in text
    assert "smaller k or more records" in text


def test_too_few_records_for_other_methods() -> None:
    frame = people(1).assign(x=CANARY)
    assert "number of values of the columns, 1, received 20" in refuse(
        ValueError, frame, Mic1D(["x"], 20)
    )
    assert "a single value of column 'x'" in refuse(ValueError, frame, ROADS["exchange"])
    assert "1 of 1 strata have fewer than 4 records, which is what p=30 needs" in refuse(
        ValueError, frame, ROADS["swap in blocks"]
    )
    text = refuse(ValueError, people().assign(x=CANARY), RankSwap(["x"], 1))
    assert "p=1 percent of 60 values is less than one rank of column 'x'" in text
    assert "Use p of at least 1.7" in text


@pytest.mark.parametrize("road", ["blocks", "order", "fuzzy", "cells", "exchange"])
def test_strata_with_too_few_records_are_an_error(road: str) -> None:
    frame = people().assign(x=CANARY, text=[CANARY_TEXT] + ["common"] * 59)
    text = refuse(ValueError, frame, dataclasses.replace(ROADS[road], by="text"))
    assert re.search("1 of 2 strata|of the smallest stratum, 2, received 20", text)


def test_kappa_that_leaves_a_single_value_is_an_error() -> None:
    frame = people(30).assign(x=CANARY)
    text = refuse(ValueError, frame, Mic1D(XY, 59))
    assert "kappa=59 leaves a run of a single value" in text
    assert "1 of 1 strata: choose another kappa" in text
    frame["text"] = ["a"] * 13 + ["b"] * 17
    assert "1 of 2 strata" in refuse(ValueError, frame, Mic1D(["x"], 12, by="text"))
    record = people(1).assign(x=1.0, y=3.0)
    assert mask_and_check(record, Mic1D(XY, 2))[XY].to_numpy().tolist() == [[2.0, 2.0]]


@with_k
@pytest.mark.parametrize(("n", "groups"), [(5, 1), (9, 1), (10, 2)])
def test_fewer_records_than_two_groups_form_one(road: str, n: int, groups: int) -> None:
    result = mask_and_check(people(n), dataclasses.replace(ROADS[road], k=5))
    assert len(result[["x"]].drop_duplicates()) == groups


@cases_of(
    "others",
    quick={"blocks": [0, 1, 40], "fuzzy": [0, 40], "projection": [40], "exchange": [40]},
    long={road: [0, 1, 40] for road in ("fuzzy", "projection", "exchange")},
)
def test_identical_rows_beyond_the_largest_block(road: str, others: int) -> None:
    equal = people(150, seed=2).assign(x=0.1, y=7.7)
    frame = pd.concat([equal, people(others)], ignore_index=True)
    frame = frame.sample(frac=1.0, random_state=3, ignore_index=True)
    result = mask_and_check(frame, ROADS[road])
    if road == "blocks" and others != 1:  # one record has to lie with some of the equal ones
        now = result[(frame["x"] == 0.1) & (frame["y"] == 7.7)]
        assert ((now["x"] == 0.1) & (now["y"] == 7.7)).sum() >= 150 - 3
        assert frame.sdc.blocks(XY, 3, max_block=12).counts.max() < 24


def test_a_skewed_tree_ends() -> None:
    n = 150
    frame = people(n).assign(x=np.ldexp(1.0, 6 * np.arange(n) - 3 * n))
    frame["y"] = np.ldexp(-1.0, -(np.arange(n) * 7 % n) * 3)
    blocks = frame.sdc.blocks(XY, 3, max_block=6)
    assert 10 < blocks.passes <= 64
    assert blocks.counts.min() >= 3


def test_forty_columns() -> None:
    names = [f"x{j}" for j in range(40)]
    values = np.random.default_rng(8).normal(size=(120, 40))
    frame = pd.DataFrame(values, columns=names).assign(kept=1)
    mask_and_check(frame, Microaggregation(names, 5, max_block=60))
    mask_and_check(frame, Mic1D(names, 100))


@pytest.mark.parametrize("road", ["blocks", "order", "cells", "exchange"])
def test_many_strata(road: str) -> None:
    rng = np.random.default_rng(4)
    strata = rng.permutation(np.repeat(np.arange(300), 5))
    frame = pd.DataFrame(rng.normal(size=(1_500, 2)), columns=XY).assign(part=strata)
    options = {"kappa": 5} if road == "cells" else {}
    result = mask_and_check(frame, dataclasses.replace(ROADS[road], by="part", **options))
    if road != "cells":
        means = result.groupby("part").mean() - frame.groupby("part").mean()
        assert means.abs().max(axis=None) < 1e-12


# Types


NOT_NUMERIC: dict[str, tuple[Any, str]] = {
    "str": (pd.Series([str(CANARY)] * 6), "cast it to float64"),
    "mixed": (pd.Series([1, 2.5, True] * 2, dtype=object), "cast it to float64"),
    "decimal": (
        pd.Series([decimal.Decimal(str(CANARY))] * 6, dtype=pd.ArrowDtype(pa.decimal128(12, 3))),
        "cast it to float64",
    ),
    "complex": (pd.Series([complex(CANARY, 1)] * 6), "or leave it out"),
    "bool": (pd.Series([True, False] * 3), "cast it to int first"),
    "boolean": (pd.Series([True, False] * 3, dtype="boolean"), "cast it to int first"),
    "bool[pyarrow]": (pd.Series([True, False] * 3, dtype="bool[pyarrow]"), "cast it to int first"),
    "category": (pd.Series(pd.Categorical([CANARY_TEXT] * 6)), "name it in `by`"),
    "category of numbers": (pd.Series(pd.Categorical([CANARY] * 6)), "name it in `by`"),
    "datetime": (pd.Series(pd.date_range("2001-02-03", periods=6)), "convert it to a number"),
    "zone": (pd.Series(pd.date_range("2001-02-03", periods=6, tz="UTC")), "convert it to a number"),
    "timedelta": (pd.Series(pd.to_timedelta(range(6), unit="D")), "convert it to a number"),
    "timestamp[pyarrow]": (pd.Series(range(6), dtype="timestamp[ns][pyarrow]"), "to a number"),
    "date[pyarrow]": (
        pd.Series([date(2001, 2, 3)] * 6, dtype=pd.ArrowDtype(pa.date32())),
        "convert it to a number",
    ),
    "list": (
        pd.Series([[CANARY]] * 6, dtype=pd.ArrowDtype(pa.list_(pa.float64()))),
        "leave it out",
    ),
    "struct": (
        pd.Series([{"a": CANARY}] * 6, dtype=pd.ArrowDtype(pa.struct({"a": pa.float64()}))),
        "leave it out",
    ),
    "binary": (pd.Series([b"123456"] * 6, dtype=pd.ArrowDtype(pa.binary())), "leave it out"),
}


@pytest.mark.parametrize("case", NOT_NUMERIC)
def test_columns_that_are_no_numbers(case: str) -> None:
    values, advice = NOT_NUMERIC[case]
    frame = people(6).assign(x=values)
    with dask.config.set({"dataframe.convert-string": False}):
        text = refuse(TypeError, frame, ROADS["projection"])
    assert "column 'x' has dtype" in text
    assert advice in text
    assert "2001" not in text


def test_columns_without_an_order_cannot_be_swapped() -> None:
    cases: dict[str, Any] = {
        "categories without an order": pd.Categorical([CANARY_TEXT] * 6),
        "whose values have no order": pd.Series([complex(CANARY, 1)] * 6),
        "other values than texts": pd.Series([CANARY, CANARY_TEXT] * 3, dtype=object),
    }
    with dask.config.set({"dataframe.convert-string": False}):
        for says, values in cases.items():
            text = refuse(TypeError, people(6).assign(x=values), RankSwap(["x"], 50))
            assert "column 'x' has" in text
            assert says in text
    text = refuse(TypeError, people(6), RankSwap(["text"], 50, blocking="tree"))
    assert "no real numbers, as blocks need" in text


def _told_numbers(number: int) -> pd.DataFrame:
    return people(20).assign(x=CANARY_TEXT) if number == 1 else people(20)


@every_road
def test_texts_where_dask_was_told_numbers_are_not_shown(road: str) -> None:
    lazy = dd.from_map(_told_numbers, [0, 1, 2], meta=people(0), enforce_metadata=False)
    with pytest.raises(TypeError) as caught:
        run(lazy, ROADS[road]).compute()
    assert "column 'x' holds" in clean_text(caught)


DTYPES = {
    "float32": "float32",
    "float16": "float16",
    "int8": "float64",
    "uint64": "float64",
    "Float64": "Float64",
    "Float32": "Float32",
    "Int64": "Float64",
    "UInt8": "Float64",
    "double[pyarrow]": "double[pyarrow]",
    "float[pyarrow]": "float[pyarrow]",
    "int64[pyarrow]": "double[pyarrow]",
    "uint8[pyarrow]": "double[pyarrow]",
}


SOME = ["float16", "Int64", "float[pyarrow]"]


@cases_of(
    "dtype",
    quick={
        "blocks": list(DTYPES),
        "exchange": [*SOME, "uint64"],
        **{road: SOME for road in ("order", "cells", "fuzzy")},
    },
    long={"exchange": list(DTYPES), "swap in blocks": SOME},
)
def test_dtypes_come_back(road: str, dtype: str) -> None:
    values = np.random.default_rng(9).integers(0, 100, 60)
    # Dask takes nullable columns of equal values and different dtypes for the same.
    frame = people(seed=list(DTYPES).index(dtype)).assign(x=pd.array(values, dtype=dtype))
    precision = 1e-3 if "16" in dtype else 1e-6 if dtype in ("float32", "Float32") else 1e-12
    precision = 1e-6 if dtype == "float[pyarrow]" else precision
    result = mask_and_check(frame, ROADS[road], precision)
    assert str(result["x"].dtype) == (dtype if ROADS[road].keeps_dtypes else DTYPES[dtype])
    wide = run(frame.assign(x=values.astype(float)), ROADS[road])
    np.testing.assert_allclose(floats(result["x"]), wide["x"], rtol=1e-3)


NULLABLE = ["Float64", "Int64", "int64[pyarrow]"]


@cases_of(
    "dtype",
    quick={"blocks": NULLABLE, "exchange": NULLABLE, "order": ["Int64"], "fuzzy": ["Int64"]},
    long={road: NULLABLE for road in ("order", "fuzzy", "swap in blocks")},
)
def test_missing_cells_of_nullable_dtypes(road: str, dtype: str) -> None:
    values = np.random.default_rng(9).integers(0, 100, 60).astype(object)
    values[::5] = None
    frame = people(seed=list(DTYPES).index(dtype)).assign(x=pd.array(values, dtype=dtype))
    spec = ROADS[road]
    if not isinstance(spec, RankSwap):
        spec = dataclasses.replace(spec, missing="separate")
    result = mask_and_check(frame, spec)
    assert str(result["x"].dtype) == (dtype if spec.keeps_dtypes else DTYPES[dtype])
    assert result["x"].isna().sum() == 12


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
    result = run(frame, Microaggregation(["x", "y", "z"], 3, missing="separate"))
    assert CANARY not in result["x"].array._data
    for chunk in result["z"].array.__arrow_array__().chunks:
        assert CANARY not in np.frombuffer(chunk.buffers()[1], np.float64)


def test_short_floats_are_computed_as_long_ones() -> None:
    frame = people(120).astype({"x": "float32", "y": "float16"})
    # Sums and squares of these exceed the range of the dtype.
    frame["x"] *= np.float32(1e33)
    result = mask_and_check(frame, ROADS["blocks"], precision=1e-3)
    wide = run(frame.astype({"x": "float64", "y": "float64"}), ROADS["blocks"])
    wide = wide.astype({"x": "float32", "y": "float16"})
    assert_frame_equal(result[XY], wide[XY], check_exact=True)


INEXACT = {
    "int64": [CANARY_INTEGER, -CANARY_INTEGER, 2**53 + 1, -(2**53) - 1],
    "uint64": [CANARY_INTEGER, 2**53 + 1, 2**63, 2**64 - 1],
}


@pytest.mark.parametrize("dtype", ["int64", "Int64", "int64[pyarrow]", "uint64", "UInt64"])
def test_integers_that_floats_cannot_hold(dtype: str) -> None:
    kind = "uint64" if dtype.lower().startswith("u") else "int64"
    values = np.arange(60, dtype=kind)
    values[[1, 20, 40, 59]] = np.array(INEXACT[kind], dtype=kind)
    frame = people().assign(x=pd.Series(values).astype(dtype))
    others = ("order", "cells", "swap in blocks", "fuzzy") if dtype == "int64" else ()
    for road in ("blocks", *others):
        text = refuse(ValueError, frame, ROADS[road])
        assert "which float64 cannot hold exactly in columns: 'x' (4). Leave identifiers" in text
    result = run(frame, ROADS["exchange"])  # which moves values and computes nothing
    assert sorted(result["x"].tolist()) == sorted(values.tolist())


def test_largest_exact_integers() -> None:
    values = np.arange(60)
    values[:6] = [2**53, 2**53, 2**53, -(2**53), -(2**53), -(2**53)]
    result = mask_and_check(people().assign(x=values), Microaggregation(["x"], 3, max_block=12))
    # Both extremes have groups of their own, in which nothing is rounded.
    assert result["x"].iloc[:6].tolist() == [2.0**53] * 3 + [-(2.0**53)] * 3
    unsigned = np.random.default_rng(10).integers(0, 2**53, 60, dtype=np.uint64)
    result = mask_and_check(people().assign(x=unsigned), ROADS["blocks"])
    assert (result["x"] >= 0).all()


def test_measures_that_are_arrays_need_complete_records() -> None:
    frame = people().assign(kept=CANARY)
    frame.loc[::5, "y"] = np.nan
    array = [0, 0.4, 0.5, 1]
    for method, measure in (("choquet", array), ("twofold", (power(1), array))):
        spec = Microaggregation(XY, 3, method=method, measure=measure, missing="separate")
        text = refuse(ValueError, frame, spec)
        assert "12 cells are missing" in text
        assert "use a quantifier, or fill the cells first" in text


# Strata


STRATA = {
    "texts": (["1", "2", None], "string[pyarrow]"),
    "floats": ([1, 2, None], "float64"),
    "integers": ([1, 2, None], "Int64"),
    "arrow": ([1, 2, None], "int64[pyarrow]"),
    "categories": (["1", "2", None], "category"),
    "truth": ([True, False, None], "boolean"),
    "large": ([2**53, 2**53 + 1, 2**53 + 2], "int64"),
}


# Strata are numbered in one way for all roads.
@cases_of(
    "case",
    quick={"blocks": list(STRATA), "cells": ["texts", "large"], "exchange": ["texts", "large"]},
    long={road: list(STRATA) for road in ("cells", "exchange")},
)
def test_strata_of_every_kind(road: str, case: str) -> None:
    values, dtype = STRATA[case]
    keys = pd.Series(np.resize(np.array(values, object), 90), dtype=dtype)
    frame = people(90).assign(kept=keys)
    result = mask_and_check(frame, dataclasses.replace(ROADS[road], by="kept"))
    # Every third row is a stratum: it is masked as if it were alone.
    third = np.arange(90) % 3
    old, new = (each[XY].groupby(third).mean() for each in (frame, result))
    if road != "cells":
        np.testing.assert_allclose(new, old)
    if road == "cells":
        alone = run(frame[third == 2], Mic1D(XY, 20))
        assert_frame_equal(result.loc[third == 2, XY], alone[XY], check_exact=True)


def test_strata_that_cannot_be_compared_are_an_error() -> None:
    lists = pd.Series([[CANARY]] * 6, dtype=pd.ArrowDtype(pa.list_(pa.float64())))
    for road in ("blocks", "exchange", "cells"):
        spec = dataclasses.replace(ROADS[road], by="g")
        text = refuse(TypeError, people(6).assign(g=lists), spec)
        assert "column 'g' of `by` has dtype list" in text
        with dask.config.set({"dataframe.convert-string": False}):
            text = refuse(TypeError, people(60).assign(g=[[CANARY]] * 60), spec)
        assert "cannot be compared, such as lists" in text


# Frames


PLACES = pd.MultiIndex.from_product([range(20), list("abc")])
INDEXES = {
    "levels": PLACES.set_names(["place", None]),
    "levels named like columns": PLACES.set_names(["x", "y"]),
    "duplicates": pd.Index([7, 7, 7, 8, 9] * 12, name="who"),
    "texts": pd.Index([f"p{i}" for i in range(60)]),
    "missing": pd.Index([np.nan, 1.0, 2.0] * 20),
}


@pytest.mark.parametrize("name", INDEXES)
def test_any_index_is_kept(name: str) -> None:
    frame = people(60).set_axis(INDEXES[name])
    for road in ("blocks", "order", "exchange"):
        result = run(frame, ROADS[road])
        assert_index_equal(result.index, frame.index, exact=True)
        plain = run(people(60), ROADS[road])
        assert_frame_equal(result.reset_index(drop=True), plain, check_exact=True)
    ordered = run(frame, ROADS["blocks"])
    moved = frame.sdc.mask(ROADS["blocks"], keep_order=False)
    assert_frame_equal(moved.iloc[np.argsort(moved["number"])], ordered, check_exact=True)


def _with_gaps(frame: pd.DataFrame) -> dd.DataFrame:
    """Return partitions of many sizes, the first, some in the middle and the last one empty."""
    borders = [0, 0, 1, 9, 9, 40, len(frame), len(frame)]
    parts = [frame.iloc[begin:end] for begin, end in itertools.pairwise(borders)]
    parts = [dask.delayed(part) for part in parts]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


@cases_of(
    "by",
    quick={road: ["part"] for road in ROADS if road not in LONG} | {"blocks": [None, "part"]},
    long={road: [None, "part"] for road in ROADS},
)
def test_empty_partitions_and_unknown_divisions(road: str, by: str | None) -> None:
    frame = people().assign(part=lambda each: each["number"] % 2)
    spec = dataclasses.replace(ROADS[road], by=by)
    lazy = _with_gaps(frame)
    assert not lazy.known_divisions
    result = run(lazy, spec)
    assert result.npartitions == lazy.npartitions
    assert_frame_equal(result.compute(), run(frame, spec), check_exact=True)


@pytest.mark.parametrize("road", ["blocks", "projection", "cells"])
def test_one_row_a_partition(road: str) -> None:
    frame = people(13)[XY]
    spec = ROADS[road]
    result = run(dd.from_pandas(frame, npartitions=13), spec)
    assert result.npartitions == 13
    assert_frame_equal(result.compute(), run(frame, spec), check_exact=True)


INTERNAL = ["key", "v0", "row", "block", "c0", "i0", "count", "by0", "missing0", "index"]


@every_road
def test_columns_may_have_internal_names(road: str) -> None:
    rng = np.random.default_rng(11)
    frame = pd.DataFrame(rng.normal(size=(60, len(INTERNAL))), columns=INTERNAL)
    plain = frame.set_axis([f"name {i}" for i in range(len(INTERNAL))], axis=1)
    frame["by0"] = plain["name 7"] = np.arange(60) % 2
    pairs = ([["key", "v0"], [0, 1]], [["count", "missing0"], [6, 8]])
    for names, places in pairs:
        names_of = [[name] for name in names] if road == "order" else names
        spec = dataclasses.replace(ROADS[road], columns=names_of, by="by0")
        others: list = [f"name {i}" for i in places]
        others = [[name] for name in others] if road == "order" else others
        other = dataclasses.replace(ROADS[road], columns=others, by="name 7")
        result = mask_and_check(frame.rename_axis("key"), spec)
        np.testing.assert_array_equal(result.to_numpy(), run(plain, other).to_numpy())


def test_internal_names_where_rows_stay_at_their_blocks() -> None:
    rng = np.random.default_rng(11)
    frame = pd.DataFrame(rng.normal(size=(60, len(INTERNAL))), columns=INTERNAL)
    for name in ("key", "v0", "c0", "i0"):
        spec = Microaggregation([name, "count"], 3, max_block=12)
        expected = run(frame.rename_axis(name), spec)
        lazy = dd.from_pandas(frame.rename_axis(name), npartitions=3)
        moved = lazy.sdc.mask(spec, keep_order=False).compute()
        assert_frame_equal(moved.sort_index(), expected, check_exact=True)


@every_road
def test_names_may_be_no_texts(road: str) -> None:
    plain = people()[["x", "y", "number"]]
    expected = run(plain, ROADS[road])
    for names in ([0, 1.5], [("a", 1), ("b", 2)]):
        frame = plain.set_axis(pd.Index([*names, "number"], tupleize_cols=False), axis="columns")
        columns: list = [[name] for name in names] if road == "order" else names
        result = mask_and_check(frame, dataclasses.replace(ROADS[road], columns=columns))
        np.testing.assert_array_equal(result.to_numpy(), expected.to_numpy())


def test_a_frame_without_columns_is_an_error() -> None:
    with pytest.raises(KeyError, match="does not have: 'x', 'y'"):
        pd.DataFrame(index=range(9)).sdc.mask(ROADS["blocks"])


def test_blocks_of_other_data_are_an_error() -> None:
    blocks = people().sdc.blocks(XY, 3, max_block=10)
    other = people(seed=2).assign(x=np.linspace(0, 1, 60) * CANARY)
    specs = [
        Microaggregation(XY, 3, blocking=blocks),
        FuzzyMicroaggregation(XY, 3, 1.5, 1.2, blocking=blocks),
    ]
    for spec in specs:
        text = refuse(ValueError, other, spec)
        assert "blocks have fewer than k=3 records of this frame" in text
        assert "make the blocks from this frame" in text
