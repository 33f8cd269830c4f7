"""Groups that are refined across the borders of blocks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sdc_dask
from sdc_dask import Microaggregation
from sdc_dask.blocking.tree import _midpoints, _shifted
from sdc_dask.masking.borders import _share_units
from sdc_dask.risk.attacks.reach import reaches_of

Array = NDArray[np.float64]


def uniform(n: int, d: int, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(rng.random((n, d)), columns=[f"x{j}" for j in range(d)])


def people(n: int = 1_500) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a": np.exp(rng.normal(size=n)),
            "b": rng.normal(size=n),
            "ward": rng.choice([1, 2, 3], n, p=[0.6, 0.37, 0.03]),
            "person": rng.integers(0, n // 3, n),
        }
    )
    frame.loc[rng.random(n) < 0.2, "b"] = np.nan
    return frame


@pytest.mark.parametrize(("d", "most"), [(2, 0.95), (3, 0.95), (5, 0.97)])
def test_borders_cost_less(d: int, most: float) -> None:
    frame = uniform(4_000, d)
    options = {"columns": list(frame), "k": 5, "max_block": 200, "refine": 30}
    within = frame.sdc.microaggregate(**options)
    across = frame.sdc.microaggregate(**options, borders=True)
    assert across.sdc.anonymity(list(frame)).k_min >= 5
    lost, less = (frame.sdc.sse(each).sse for each in (within, across))
    assert less < most * lost
    # Means of groups add up to what records add up to.
    np.testing.assert_allclose(across.mean(), frame.mean())


@settings(max_examples=12)
@given(
    kind=st.sampled_from(["grid", "clusters", "skewed", "huge"]),
    n=st.integers(30, 200),
    k=st.integers(2, 5),
    blocking=st.sampled_from(["tree", "halves", "univariate"]),
    seed=st.integers(0, 10**6),
)
def test_groups_keep_k_and_lose_no_more(
    kind: str, n: int, k: int, blocking: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    values = {
        "grid": lambda: rng.integers(0, 3, (n, 2)).astype(float),
        "clusters": lambda: rng.integers(0, 3, (n, 1)) * 100.0 + rng.normal(size=(n, 2)),
        "skewed": lambda: np.exp(3 * rng.normal(size=(n, 2))),
        "huge": lambda: rng.choice([-1.7e308, 1.0, 1.7e308], (n, 2)) * rng.random((n, 2)),
    }[kind]()
    frame = pd.DataFrame(values, columns=["a", "b"])
    options = {"k": k, "blocking": blocking, "max_block": 4 * k, "refine": 3}
    within, across = (
        frame.sdc.microaggregate(["a", "b"], **options, borders=borders)
        for borders in (False, True)
    )
    assert across.sdc.anonymity(["a", "b"]).k_min >= k
    if kind != "huge":
        lost, less = (frame.sdc.sse(each).sse for each in (within, across))
        assert less <= lost * (1 + 1e-9)
    with dask.config.set(scheduler="sync"):
        lazy = dd.from_pandas(frame, npartitions=3).sdc.microaggregate(
            ["a", "b"], **options, borders=True
        )
        pd.testing.assert_frame_equal(lazy.compute(), across, check_exact=True)


OPTIONS: dict[str, dict[str, Any]] = {
    "strata and missing cells": {"by": "ward", "missing": "separate"},
    "units": {"columns": ["a"], "unit": "person", "by": "ward"},
    "an order, rounded": {"method": "pcp", "columns": ["a", "person"], "decimals": 1},
    "several sets": {"columns": [["a", "person"], ["b"]], "missing": "separate"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_every_partitioning_gives_the_same(name: str, scheduler: str) -> None:
    frame = people()
    options = {"columns": ["a", "b"], "k": 4, "max_block": 90, "refine": 5, "borders": True}
    options |= {"blocking": "tree", **OPTIONS[name]}
    expected = frame.sdc.microaggregate(**options)
    for npartitions in (1, 6):
        lazy = dd.from_pandas(frame, npartitions=npartitions).sdc.microaggregate(**options)
        pd.testing.assert_frame_equal(lazy.compute(), expected, check_exact=True)
    within = frame.sdc.microaggregate(**{**options, "borders": False})
    assert not within.equals(expected)
    assert expected[["ward", "b"]].isna().equals(frame[["ward", "b"]].isna())


def test_groups_stay_in_their_strata(smallest_class: Any) -> None:
    frame = people()
    options = {"k": 4, "by": "ward", "missing": "separate", "max_block": 60, "refine": 5}
    masked, within = (
        frame.sdc.microaggregate(["a", "b"], **options, borders=borders)
        for borders in (True, False)
    )
    assert smallest_class(masked, ["a", "b", "ward"]) >= 4
    stratum = [frame["ward"], frame["b"].isna()]
    before, after = (each.groupby(stratum)["a"].mean() for each in (frame, masked))
    np.testing.assert_allclose(after, before)
    # A stratum that is one block has no borders.
    small = frame["ward"] == 3
    pd.testing.assert_frame_equal(masked[small], within[small], check_exact=True)


@pytest.mark.parametrize("seed", range(3))
def test_units_are_counted_across_borders(seed: int) -> None:
    # Units have records in all blocks, so that groups of several blocks hold the same units.
    rng = np.random.default_rng(seed)
    frame = uniform(900, 2, seed).assign(person=rng.integers(0, 300, 900))
    options = {"k": 4, "unit": "person", "max_block": 60, "refine": 20, "borders": True}
    masked = frame.sdc.microaggregate(["x0", "x1"], **options)
    assert masked.groupby(["x0", "x1"])["person"].nunique().min() >= 4
    alone = frame.assign(person=np.arange(900))
    by_record = alone.sdc.microaggregate(["x0", "x1"], **{**options, "unit": None})
    by_unit = alone.sdc.microaggregate(["x0", "x1"], **options)
    # Where each has one record, units are records; blocks of the two plans are the same.
    pd.testing.assert_frame_equal(by_unit, by_record, check_exact=True)


def test_groups_that_share_units_are_told() -> None:
    unit = np.array([1.0, 1.0, 2.0, 3.0, 2.0, 4.0, 5.0, 5.0])
    labels = np.array([0, 0, 0, 1, 1, 2, 2, 2])
    assert _share_units(unit, labels).tolist() == [True, True, False]


def test_one_block_has_no_borders() -> None:
    frame = uniform(500, 2)
    within, across = (
        frame.sdc.microaggregate(list(frame), 4, refine=5, borders=borders)
        for borders in (False, True)
    )
    pd.testing.assert_frame_equal(across, within, check_exact=True)


def test_equal_records_are_cut_into_blocks_again() -> None:
    frame = uniform(2_000, 2)
    frame.iloc[::2] = 0.5
    masked = frame.sdc.microaggregate(list(frame), 4, max_block=50, refine=5, borders=True)
    assert masked.sdc.anonymity(list(frame)).k_min >= 4
    step = Microaggregation(list(frame), 4, max_block=50, refine=5, borders=True).plan(frame)[0]
    assert step.mask.onward.parts.max() >= 1_000 // 50


@given(low=st.floats(-1.7e308, 1.7e308), width=st.floats(0, 1.7e308))
def test_other_boxes_are_cut_elsewhere(low: float, width: float) -> None:
    high = min(low + width, 1.7e308)
    box = _shifted(np.array([low]), np.array([high]))
    assert np.isfinite(box).all()
    assert box[0] <= low
    assert high <= box[1]


def test_no_border_is_in_both_plans() -> None:
    borders = []
    for low, high in ((np.zeros(1), np.ones(1)), _shifted(np.zeros(1), np.ones(1))):
        found: list[float] = []
        for _ in range(6):
            middle = _midpoints(low, high)
            low, high = (np.sort(np.concatenate(each)) for each in ((low, middle), (middle, high)))
            found += middle.tolist()
        borders.append(np.array([each for each in found if 0 < each < 1]))
    gaps = np.abs(borders[0][:, None] - borders[1])
    # A third of the narrowest cell.
    assert gaps.min() > 0.33 / 64


def test_releases(tmp_path: Path) -> None:
    frame = people()[["a", "b", "ward"]].dropna()
    dd.from_pandas(frame, npartitions=4).to_parquet(tmp_path / "in", write_index=False)
    spec = Microaggregation(
        ["a", "b"], 4, by="ward", max_block=90, blocking="tree", refine=5, borders=True
    )
    summary = sdc_dask.protect(tmp_path / "in", tmp_path / "out", spec, order="source", keep="ward")
    expected = frame.sdc.mask(spec).reset_index(drop=True)
    released = pd.read_parquet(tmp_path / "out")
    pd.testing.assert_frame_equal(released, expected, check_exact=True, check_dtype=False)
    assert summary.masked[0].anonymity.k_min >= 4
    assert not [path for path in tmp_path.iterdir() if path.name not in ("in", "out")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "pass refine=True as well"),
        ({"refine": True, "blocking": None}, "makes one block"),
        ({"refine": True, "borders": "yes"}, "borders must be"),
    ],
)
def test_what_has_no_borders(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        Microaggregation(["a", "b"], 3, **{"borders": True, **options})


def test_what_cannot_be_refined_across_borders() -> None:
    frame = uniform(100, 2)
    blocks = frame.sdc.blocks(list(frame), k=3, max_block=20)
    with pytest.raises(ValueError, match="needs other blocks beside those that are made"):
        frame.sdc.microaggregate(list(frame), 3, blocking=blocks, refine=True, borders=True)
    with pytest.raises(ValueError, match="borders=True masks them in several"):
        frame.sdc.microaggregate(
            list(frame), 3, max_block=20, refine=1, borders=True, keep_order=False
        )


def test_specs_say_so() -> None:
    spec = Microaggregation(["a", "b"], 3, refine=True, borders=True)
    assert Microaggregation.from_dict(spec.to_dict()) == spec
    assert "borders=True" in repr(spec)
    assert "refined across blocks" in spec.describe()


def test_intruders_take_nothing_for_granted() -> None:
    # Groups of one column need not follow each other, and reach beyond any one block.
    spec = Microaggregation(["x0"], 3, max_block=50, refine=5, borders=True)
    assert reaches_of([spec], ["x0"], has_file=False)[0].kind == "free"
    frame = uniform(400, 1)
    found = frame.sdc.linkage(frame.sdc.mask(spec), "intersection", knows=spec)
    assert (found.candidates, found.certain) == (400, 0)
