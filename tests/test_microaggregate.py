"""df.sdc.microaggregate: pandas is the oracle, and what it must hold."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask.release.cluster import local_cluster


def mixed(n: int = 2_000) -> pd.DataFrame:
    """A frame with columns of every kind."""
    rng = np.random.default_rng(11)
    frame = pd.DataFrame(
        {
            "number": rng.normal(size=n),
            "small": rng.normal(size=n).astype("float32"),
            "whole": rng.integers(-5, 60, n),
            "byte": rng.integers(0, 200, n).astype("uint8"),
            "nullable": pd.array(rng.integers(0, 99, n), dtype="Int64"),
            "arrow": pd.array(rng.integers(0, 99, n), dtype=pd.ArrowDtype(pa.int32())),
            "text": pd.array([f"name {i}" for i in range(n)], dtype="string[pyarrow]"),
            "kind": pd.Categorical(rng.choice(["a", "b"], n), categories=["b", "a", "never"]),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "h"),
            "maybe": pd.array(rng.choice([True, False, None], n), dtype="boolean"),
        },
        index=pd.Index(np.arange(n) * 3 + 7, name="id"),
    )
    return frame


MASKED = ["number", "small", "whole", "byte", "nullable", "arrow"]


@pytest.mark.parametrize("npartitions", [1, pytest.param(7, marks=pytest.mark.soak), 33])
@pytest.mark.parametrize("keep_order", [True, False])
def test_dask_equals_pandas(scheduler: str, npartitions: int, keep_order: bool) -> None:
    frame = mixed()
    expected = frame.sdc.microaggregate(MASKED, 4, max_block=300, keep_order=keep_order)
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    masked = lazy.sdc.microaggregate(MASKED, 4, max_block=300, keep_order=keep_order)
    result = masked.compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    pd.testing.assert_frame_equal(masked._meta, expected.iloc[:0])


@pytest.mark.long_on_cluster
def test_keep_order_keeps_all_but_the_values(scheduler: str) -> None:
    frame = mixed()
    lazy = dd.from_pandas(frame, npartitions=5)
    masked = lazy.sdc.microaggregate(MASKED, 4, max_block=300)
    assert masked.divisions == lazy.divisions
    assert masked.npartitions == lazy.npartitions
    lengths = lazy.map_partitions(len, meta=(None, "i8")).compute().tolist()
    assert masked.map_partitions(len, meta=(None, "i8")).compute().tolist() == lengths
    result = masked.compute()
    others = [column for column in frame.columns if column not in MASKED]
    pd.testing.assert_frame_equal(result[others], frame[others])
    assert list(result.columns) == list(frame.columns)
    assert result.index.equals(frame.index)


def test_dtypes_of_centroids() -> None:
    masked = mixed().sdc.microaggregate(MASKED, 4)
    assert masked.dtypes[MASKED].astype(str).tolist() == [
        "float64",
        "float32",
        "float64",
        "float64",
        "Float64",
        "double[pyarrow]",
    ]


def test_block_order_has_the_rows_of_kept_order() -> None:
    frame = mixed()
    kept = frame.sdc.microaggregate(MASKED, 4, max_block=300)
    moved = frame.sdc.microaggregate(MASKED, 4, max_block=300, keep_order=False)
    assert not moved.index.equals(kept.index)
    pd.testing.assert_frame_equal(moved.sort_index(), kept, check_exact=True)


@pytest.mark.parametrize("npartitions", [1, 7, pytest.param(64, marks=pytest.mark.soak)])
def test_one_answer_on_threads(npartitions: int, eia: pd.DataFrame, tied: pd.DataFrame) -> None:
    uniform = sdc_dask.datasets.uniform(20_000, 3).compute()
    for frame in (uniform, eia, tied[["age", "hours", "income"]]):
        columns = list(frame.columns)
        expected = frame.sdc.microaggregate(columns, 5, max_block=500)
        lazy = dd.from_pandas(frame, npartitions=npartitions)
        result = lazy.sdc.microaggregate(columns, 5, max_block=500).compute()
        pd.testing.assert_frame_equal(result, expected, check_exact=True)


@pytest.mark.soak
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_one_answer_on_clusters_of_any_size(
    workers: int, eia: pd.DataFrame, tied: pd.DataFrame
) -> None:
    uniform = sdc_dask.datasets.uniform(20_000, 3).compute()
    with local_cluster(workers, "1GiB"), dask.config.set({"dataframe.shuffle.method": None}):
        for frame in (uniform, eia, tied[["age", "hours", "income"]]):
            columns = list(frame.columns)
            expected = frame.sdc.microaggregate(columns, 5, max_block=500)
            for npartitions in (1, 7, 64):
                lazy = dd.from_pandas(frame, npartitions=npartitions)
                result = lazy.sdc.microaggregate(columns, 5, max_block=500).compute()
                pd.testing.assert_frame_equal(result, expected, check_exact=True)


@settings(max_examples=15, deadline=None)
@given(
    n=st.integers(10, 400),
    d=st.integers(1, 4),
    k=st.integers(2, 7),
    limit=st.integers(8, 200),
    npartitions=st.integers(1, 9),
    ties=st.booleans(),
    seed=st.integers(0, 99),
)
def test_what_must_always_hold(
    smallest_class: Callable[..., int],
    n: int,
    d: int,
    k: int,
    limit: int,
    npartitions: int,
    ties: bool,
    seed: int,
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (n, d)).astype(float) if ties else rng.lognormal(0, 2, (n, d))
    frame = pd.DataFrame(values, columns=list("abcd")[:d]).assign(rest=np.arange(n))
    columns = list(frame.columns[:-1])
    masked = frame.sdc.microaggregate(columns, k, max_block=limit)
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    result = lazy.sdc.microaggregate(columns, k, max_block=limit).compute(scheduler="sync")
    pd.testing.assert_frame_equal(result, masked, check_exact=True)
    assert smallest_class(masked, columns) >= k
    assert masked["rest"].tolist() == list(range(n))
    np.testing.assert_allclose(masked.mean(), frame.mean(), rtol=1e-9)
    assert (masked[columns].min() >= frame[columns].min() - 1e-9).all()
    assert (masked[columns].max() <= frame[columns].max() + 1e-9 * frame[columns].max()).all()


@pytest.mark.long_on_cluster
def test_groups_of_columns_are_masked_each_on_its_own(scheduler: str) -> None:
    frame = mixed()
    groups = [["number", "whole"], ["nullable"], ["arrow", "byte"]]
    expected = frame
    for group in groups:
        expected = expected.sdc.microaggregate(group, 4, max_block=300)
    lazy = dd.from_pandas(frame, npartitions=6)
    result = lazy.sdc.microaggregate(groups, 4, max_block=300).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    pd.testing.assert_frame_equal(
        frame.sdc.microaggregate(groups, 4, max_block=300), expected, check_exact=True
    )


@pytest.mark.long_on_cluster
def test_strata_are_never_mixed(scheduler: str, smallest_class: Callable[..., int]) -> None:
    frame = sdc_dask.datasets.survey(6_000, npartitions=4)
    columns = ["income", "wealth", "age"]
    pandas = frame.compute()
    expected = pandas.sdc.microaggregate(columns, 5, by=["region", "sex"], max_block=400)
    result = frame.sdc.microaggregate(columns, 5, by=["region", "sex"], max_block=400).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    assert smallest_class(expected, [*columns, "region", "sex"]) >= 5
    means = expected.groupby(["region", "sex"], observed=True)[columns].mean()
    old = pandas.groupby(["region", "sex"], observed=True)[columns].mean()
    np.testing.assert_allclose(means, old, rtol=1e-9)


@pytest.mark.long_on_cluster
def test_strata_with_missing_values_and_other_categories_a_partition(scheduler: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=900),
            "text": rng.choice(["u", "v", None], 900),
            "code": rng.choice([1.0, np.nan], 900),
        }
    )
    lazy = dd.from_pandas(frame, npartitions=6)
    frame = lazy.compute()
    parts = [frame.iloc[i : i + 150] for i in range(0, 900, 150)]
    categorical = dd.concat(
        [dd.from_pandas(part.astype({"text": "category"}), npartitions=1) for part in parts]
    )
    expected = frame.sdc.microaggregate(["x"], 3, by=["text", "code"], max_block=50)
    result = lazy.sdc.microaggregate(["x"], 3, by=["text", "code"], max_block=50).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    other = categorical.sdc.microaggregate(["x"], 3, by=["text", "code"], max_block=50).compute()
    np.testing.assert_array_equal(other["x"], expected["x"])
    one = frame[frame["text"].isna() & frame["code"].isna()]
    alone = expected.loc[one.index]
    assert alone["x"].mean() == pytest.approx(one["x"].mean())


@pytest.mark.long_on_cluster
def test_missing_cells_are_grouped_by_their_pattern(
    scheduler: str, smallest_class: Callable[..., int]
) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(size=(3_000, 3)), columns=list("abc"))
    frame = frame.mask(rng.random(frame.shape) < 0.2)
    expected = frame.sdc.microaggregate(list("abc"), 4, missing="separate", max_block=200)
    lazy = dd.from_pandas(frame, npartitions=5)
    result = lazy.sdc.microaggregate(list("abc"), 4, missing="separate", max_block=200).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    pd.testing.assert_frame_equal(expected.isna(), frame.isna())
    assert smallest_class(expected, list("abc")) >= 4
    pattern = [frame[column].isna() for column in frame]
    means = expected.groupby(pattern).mean()
    np.testing.assert_allclose(means, frame.groupby(pattern).mean(), atol=1e-12)


def test_standardize_concerns_distances_only() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"a": rng.normal(size=400), "b": 1e6 * rng.normal(size=400)})
    scaled = frame.sdc.microaggregate(["a", "b"], 4)
    raw = frame.sdc.microaggregate(["a", "b"], 4, standardize=False)
    by_hand = (frame / frame.std(ddof=0)).sdc.microaggregate(["a", "b"], 4, standardize=False)
    np.testing.assert_allclose(scaled, by_hand * frame.std(ddof=0), rtol=1e-9)
    assert frame.sdc.sse(raw).sse > 1.5 * frame.sdc.sse(scaled).sse
    alone = frame[["b"]].sdc.microaggregate(["b"], 4)
    assert frame.sdc.sse(raw, ["b"]).sse < 3 * frame[["b"]].sdc.sse(alone).sse


def test_whole_frame_as_one_block(scheduler: str, tied: pd.DataFrame) -> None:
    columns = ["age", "hours", "income"]
    expected = tied[columns].sdc.microaggregate(columns, 3, blocking=None)
    lazy = dd.from_pandas(tied[columns], npartitions=4)
    result = lazy.sdc.microaggregate(columns, 3, blocking=None).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)


def test_a_stratum_alone_with_the_scales_of_all(tied: pd.DataFrame) -> None:
    columns = ["a", "b"]
    frame = tied[["region"]].assign(
        **sdc_dask.datasets.uniform(3_000, 2).compute().rename(columns={"x0": "a", "x1": "b"})
    )
    frame["b"] *= 7
    masked = frame.sdc.microaggregate(columns, 3, blocking=None, by="region")
    scale = frame[columns].std(ddof=0)
    for _, rows in frame.groupby("region"):
        alone = (rows[columns] / scale).sdc.microaggregate(
            columns, 3, blocking=None, standardize=False
        )
        np.testing.assert_allclose(masked.loc[rows.index, columns], alone * scale)


@pytest.mark.long_on_cluster
def test_blocks_can_be_looked_at_reused_and_pickled(scheduler: str, tied: pd.DataFrame) -> None:
    columns = ["age", "income"]
    lazy = dd.from_pandas(tied, npartitions=4)
    blocks = lazy.sdc.blocks(columns, 4, max_block=200, by="region")
    assert blocks.counts.sum() == len(tied)
    assert len(blocks.table) == len(blocks) == len(blocks.counts)
    assert (blocks.table["records"] == blocks.counts).all()
    assert blocks.table["age low"].min() == tied["age"].min()
    assert blocks.table["income high"].max() == tied["income"].max()
    assert "Blocks by tree: 3,000 records" in repr(blocks)
    few = repr(tied.head(50).sdc.blocks(columns, k=3))
    assert "50 records in 1 block\n" in few and few.endswith("planned   by the scan alone")
    copy = pickle.loads(pickle.dumps(blocks))
    expected = lazy.sdc.microaggregate(columns, 4, max_block=200, by="region").compute()
    result = lazy.sdc.microaggregate(columns, 4, blocking=copy, by="region").compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    smaller = lazy.sdc.microaggregate(columns, 3, blocking=copy, by="region").compute()
    assert smaller.sdc.anonymity([*columns, "region"]).k_min >= 3


def test_blocks_of_another_frame_are_counted_again(tied: pd.DataFrame) -> None:
    blocks = tied.sdc.blocks(["age", "income"], 4, max_block=100)
    with pytest.raises(ValueError, match="fewer than k=4 records of this frame"):
        tied.iloc[:200].sdc.microaggregate(["age", "income"], 4, blocking=blocks)
    twice = pd.concat([tied, tied], ignore_index=True)
    masked = twice.sdc.microaggregate(["age", "income"], 4, blocking=blocks)
    assert masked.sdc.anonymity(["age", "income"]).k_min >= 4


@pytest.mark.long_on_cluster
def test_large_leaves_of_equal_records_are_cut_by_global_rank(scheduler: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.choice([0.0, 1.0, 5.0], 4_000, p=[0.7, 0.2, 0.1])})
    frame["y"] = np.where(frame["x"] == 0, 2.0, rng.normal(size=4_000))
    expected = frame.sdc.microaggregate(["x", "y"], 3, max_block=50)
    for npartitions in (1, 6):
        lazy = dd.from_pandas(frame, npartitions=npartitions)
        result = lazy.sdc.microaggregate(["x", "y"], 3, max_block=50).compute()
        pd.testing.assert_frame_equal(result, expected, check_exact=True)
    blocks = frame.sdc.blocks(["x", "y"], 3, max_block=50)
    assert blocks.counts.max() < 2 * 50


@pytest.mark.long_on_cluster
def test_parquet_frames_with_merged_partitions(scheduler: str, tmp_path: object) -> None:
    frame = sdc_dask.datasets.survey(4_000, npartitions=6)
    frame.to_parquet(tmp_path / "survey", write_index=False)
    lazy = dd.read_parquet(tmp_path / "survey")
    columns = ["income", "age"]
    expected = lazy.compute().sdc.microaggregate(columns, 3, max_block=100)
    masked = lazy.sdc.microaggregate(columns, 3, max_block=100)
    pd.testing.assert_frame_equal(masked.compute(), expected, check_exact=True)
    # Dask merges the partitions of files of which few columns are read.
    pd.testing.assert_frame_equal(masked[["age"]].compute(), expected[["age"]], check_exact=True)
    few = lazy[[*columns, "sex"]]
    result = few.sdc.microaggregate(columns, 3, max_block=100).compute()
    pd.testing.assert_frame_equal(result, expected[[*columns, "sex"]], check_exact=True)
    some = lazy[lazy["age"] > 30]
    result = some.sdc.microaggregate(columns, 3, max_block=100).compute()
    oracle = some.compute().sdc.microaggregate(columns, 3, max_block=100)
    pd.testing.assert_frame_equal(result, oracle, check_exact=True)


def test_masking_does_not_change_the_input(tied: pd.DataFrame) -> None:
    before = tied.copy(deep=True)
    tied.sdc.microaggregate(["age", "income"], 4)
    pd.testing.assert_frame_equal(tied, before)


def test_rows_in_block_order_have_no_known_divisions(scheduler: str) -> None:
    frame = sdc_dask.datasets.uniform(1_000, 2, npartitions=5)
    moved = frame.sdc.microaggregate(["x0", "x1"], 3, max_block=50, keep_order=False)
    assert not moved.known_divisions
    joined = moved.merge(frame, left_index=True, right_index=True).compute()
    assert len(joined) == 1_000


@pytest.mark.parametrize("standardize", [True, False])
def test_small_values_beside_huge_ones_stay(standardize: bool) -> None:
    frame = pd.DataFrame({"a": [1e200] * 5 + [1e-150] * 5, "b": np.linspace(1e-130, 2e-130, 10)})
    masked = frame.sdc.microaggregate(["a", "b"], 5, standardize=standardize)
    assert masked["a"].tolist() == frame["a"].tolist()
    assert masked["b"].min() >= 1e-130


def test_attributes_do_not_pass() -> None:
    frame = pd.DataFrame({"x": np.arange(9.0)})
    frame.attrs["largest"] = 8.0
    for keep_order in (True, False):
        assert frame.sdc.microaggregate(["x"], 3, keep_order=keep_order).attrs == {}


def test_ranks_are_kept_of_cut_leaves_only() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": np.where(rng.random(9_000) < 0.2, 0.0, rng.normal(size=9_000))})
    spec = sdc_dask.Microaggregation(["x"], 3, max_block=20)
    (step,) = spec.plan(dd.from_pandas(frame, npartitions=9))
    placement = step.destinations
    assert len(placement.cut) < len(placement.counts) / 10
    assert {len(ranks) for ranks in placement.rank_start.values()} == {len(placement.cut)}


@pytest.mark.parametrize(
    "mask",
    [
        lambda df: df.sdc.microaggregate(["x0", "x1"], 5),
        lambda df: df.sdc.microaggregate(["x0", "x1"], 5, keep_order=False),
        lambda df: df.sdc.microaggregate(["x0", "x1"], 5, method="pcp"),
        lambda df: df.sdc.mic1d(["x0", "x1"], 150),
        lambda df: df.sdc.rank_swap(["x0"], 5)[["x0"]],
        lambda df: df.sdc.rank_swap(["x0", "x1"], 5, blocking="tree").sdc.rank_swap(["x0"], 5),
    ],
)
def test_a_source_that_is_still_read_is_not_overwritten(
    mask: Callable[[dd.DataFrame], dd.DataFrame], tmp_path: Path
) -> None:
    source = tmp_path / "source"
    sdc_dask.datasets.uniform(500, 2, npartitions=3).to_parquet(source, write_index=False)
    masked = mask(dd.read_parquet(source))
    with pytest.raises(ValueError, match="Cannot overwrite a path that you are reading from"):
        masked.to_parquet(source, overwrite=True)
    masked.to_parquet(tmp_path / "target", overwrite=True)
    assert len(dd.read_parquet(source)) == len(dd.read_parquet(tmp_path / "target")) == 500


# Rounded centroids


def test_rounded_centroids_do_not_tell_how_many_they_are_of(
    smallest_class: Callable[..., int],
) -> None:
    rng = np.random.default_rng(8)
    frame = pd.DataFrame({"a": rng.integers(0, 90, 400), "b": rng.normal(0, 300, 400)})
    for method in ("mdav", "vmdav", "pcp"):
        exact = frame.sdc.microaggregate(["a", "b"], 5, method=method)
        for decimals in (-1, 0, 2):
            masked = frame.sdc.microaggregate(["a", "b"], 5, method=method, decimals=decimals)
            pd.testing.assert_frame_equal(masked, exact.round(decimals) + 0.0)
            assert smallest_class(masked, ["a", "b"]) >= 5
            lazy = dd.from_pandas(frame, npartitions=3)
            again = lazy.sdc.microaggregate(["a", "b"], 5, method=method, decimals=decimals)
            pd.testing.assert_frame_equal(again.compute(), masked)
    large = pd.DataFrame({"a": rng.normal(size=20) * 1e306})
    masked = large.sdc.microaggregate(["a"], 5, decimals=300)
    pd.testing.assert_frame_equal(masked, large.sdc.microaggregate(["a"], 5))


@pytest.mark.parametrize("decimals", [301, -301])
def test_decimals_that_there_are_not(decimals: int) -> None:
    with pytest.raises(ValueError, match="decimals must be at"):
        sdc_dask.Microaggregation(["a"], 5, decimals=decimals)
