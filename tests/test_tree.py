"""The 2^d-tree that counts, against one that is built over records in memory."""

from __future__ import annotations

import pickle
import tracemalloc

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask.blocking import tree
from sdc_dask.blocking.cells import bytes_of_a_cell, count_cells, merge_cells
from sdc_dask.blocking.fusion import fuse
from sdc_dask.blocking.tree import MAX_AXES
from sdc_dask.engine import blocks as engine_blocks
from sdc_dask.engine.placement import place
from sdc_dask.engine.scan import scan
from sdc_dask.engine.strata import StrataRule


def plain_tree(points: np.ndarray, limit: int) -> list[np.ndarray]:
    """Split boxes at their midpoints while they hold more than `limit` records, recursively."""

    def split(rows: np.ndarray, low: np.ndarray, high: np.ndarray) -> list[np.ndarray]:
        if len(rows) <= limit or (points[rows] == points[rows[0]]).all():
            return [rows]
        middle = low / 2 + high / 2
        middle = np.where(middle <= low, high, middle)
        upper = points[rows] >= middle
        leaves = []
        for child in np.unique(upper, axis=0):
            inside = (upper == child).all(axis=1)
            leaves += split(
                rows[inside], np.where(child, middle, low), np.where(child, high, middle)
            )
        return leaves

    return split(np.arange(len(points)), points.min(axis=0), points.max(axis=0))


def plain_halves(points: np.ndarray, limit: int, unit: np.ndarray) -> list[np.ndarray]:
    """Halve the widest dimension of boxes while they hold more than `limit` records."""

    def split(
        rows: np.ndarray, low: np.ndarray, high: np.ndarray, width: np.ndarray
    ) -> list[np.ndarray]:
        inside = points[rows]
        differs = (inside != inside[0]).any(axis=0)
        if len(rows) <= limit or not differs.any():
            return [rows]
        widest = np.argmax(np.where(differs, width, -1))
        middle = low[widest] / 2 + high[widest] / 2
        middle = high[widest] if middle <= low[widest] else middle
        upper = inside[:, widest] >= middle
        below, above, half = high.copy(), low.copy(), width.copy()
        below[widest] = above[widest] = middle
        half[widest] /= 2
        leaves = []
        for child, box in ((rows[~upper], (low, below)), (rows[upper], (above, high))):
            leaves += split(child, *box, half) if len(child) else []
        return leaves

    low, high = points.min(axis=0), points.max(axis=0)
    return split(np.arange(len(points)), low, high, (high - low) / unit)


def leaves_of(blocks: sdc_dask.Blocks, points: np.ndarray) -> np.ndarray:
    return blocks.locator.leaf_of(points, np.zeros(len(points), np.int64))


def same_partition(a: np.ndarray, leaves: list[np.ndarray]) -> bool:
    b = np.empty(len(a), np.int64)
    for number, rows in enumerate(leaves):
        b[rows] = number
    pairs = pd.DataFrame({"a": a, "b": b}).drop_duplicates()
    return len(pairs) == pairs["a"].nunique() == pairs["b"].nunique()


def frame_of(points: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(points, columns=[f"x{j}" for j in range(points.shape[1])])


N = 1_500
SHAPES = {
    "uniform": lambda rng, d: rng.uniform(-1e4, 1e4, (N, d)),
    "skewed": lambda rng, d: rng.lognormal(0, 4, (N, d)),
    "ties": lambda rng, d: rng.integers(0, 9, (N, d)).astype(float),
    "outlier": lambda rng, d: np.vstack([rng.normal(size=(N - 1, d)), np.full((1, d), 1e15)]),
    "clusters": lambda rng, d: rng.integers(0, 3, (N, 1)) * 1e6 + rng.normal(size=(N, d)),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("d", [1, 2, 3, 5, 11])
@pytest.mark.parametrize("limit", [20, 300])
def test_leaves_are_those_of_the_plain_tree(shape: str, d: int, limit: int) -> None:
    points = SHAPES[shape](np.random.default_rng(d), d)
    frame = frame_of(points)
    blocks = frame.sdc.blocks(list(frame.columns), 2, max_block=limit)
    assert same_partition(leaves_of(blocks, points), plain_tree(points, limit))
    np.testing.assert_array_equal(
        np.bincount(leaves_of(blocks, points), minlength=len(blocks.leaves)), blocks.leaves.count
    )


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("d", "limit"), [(1, 20), (3, 300), (11, 20), (20, 300)])
def test_leaves_are_those_of_plain_halves(shape: str, d: int, limit: int) -> None:
    points = SHAPES[shape](np.random.default_rng(d), d)
    frame = frame_of(points)
    # An outlier makes all dimensions equally wide in deviations, as far as these can be rounded.
    standardize = shape != "outlier"
    unit = points.std(axis=0) if standardize else np.ones(d)
    options = {"max_block": limit, "method": "halves", "standardize": standardize}
    blocks = frame.sdc.blocks(list(frame.columns), 2, **options)
    assert same_partition(leaves_of(blocks, points), plain_halves(points, limit, unit))
    # Of two neighbours in the tree, one block would be made if it had no more than L records.
    assert len(blocks) <= 2 * N / limit + 1
    assert blocks.counts.max() <= 1.25 * limit or shape == "ties"
    again = dd.from_pandas(frame, npartitions=3).sdc.blocks(list(frame.columns), 2, **options)
    assert np.array_equal(again.fused, blocks.fused)
    assert np.array_equal(again.leaves.centroid, blocks.leaves.centroid)


def test_halves_are_the_same_in_any_number_of_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = frame_of(SHAPES["skewed"](np.random.default_rng(0), 4))
    columns, passes, found = list(frame.columns), [], []
    for more in (0, 9):
        monkeypatch.setattr(tree, "MORE_HALVES", more)
        blocks = frame.sdc.blocks(columns, 2, max_block=50, method="halves")
        passes.append(blocks.passes)
        found.append(leaves_of(blocks, frame.to_numpy()))
    assert passes[0] > passes[1]
    assert same_partition(found[0], [np.flatnonzero(found[1] == leaf) for leaf in set(found[1])])


def test_auto_takes_the_tree_that_loses_less() -> None:
    for d, blocking in ((3, "tree"), (6, "halves")):
        frame = sdc_dask.datasets.uniform(2_000, d).compute()
        sse = {}
        for each in ("auto", "tree", "halves"):
            masked = frame.sdc.microaggregate(list(frame), 3, blocking=each, max_block=600)
            sse[each] = frame.sdc.sse(masked).sse
        assert sse["auto"] == sse[blocking]
    assert sse["halves"] < 0.95 * sse["tree"]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(*[st.floats(allow_nan=False, allow_infinity=False) for _ in range(2)]),
        min_size=4,
        max_size=60,
    ),
    st.integers(2, 8),
)
def test_leaves_of_any_floats(records: list[tuple[float, float]], limit: int) -> None:
    points = np.array(records) + 0.0
    frame = frame_of(points)
    blocks = frame.sdc.blocks(["x0", "x1"], 2, max_block=limit)
    assert same_partition(leaves_of(blocks, points), plain_tree(points, limit))
    assert blocks.counts.sum() == len(points)
    assert blocks.counts.min() >= 2


@pytest.mark.parametrize(
    "published",
    [
        pytest.param({1000: 4096}, id="one"),
        pytest.param({500: 16384, 2000: 4096, 5000: 1024}, id="others", marks=pytest.mark.soak),
    ],
)
def test_published_numbers_of_leaves(published: dict[int, int]) -> None:
    frame = sdc_dask.datasets.uniform(2_500_000, 2).compute()
    for limit, leaves in published.items():
        blocks = frame.sdc.blocks(["x0", "x1"], 3, max_block=limit)
        assert len(blocks.leaves) == leaves


@pytest.mark.soak
def test_a_published_number_of_leaves_that_the_definition_does_not_give() -> None:
    frame = sdc_dask.datasets.uniform(2_500_000, 2).compute()
    # The published 1024 for L = 10000 would split cells that hold fewer records than L. By the
    # definition, only those of the 256 with more than 10000 records are split into four.
    blocks = frame.sdc.blocks(["x0", "x1"], 3, max_block=10_000)
    coarse = np.floor((frame - frame.min()) / (frame.max() - frame.min()) * 16).clip(upper=15)
    above = int((coarse.value_counts() > 10_000).sum())
    assert len(blocks.leaves) == 256 + 3 * above
    assert len(blocks.leaves) < 300


def test_an_outlier_costs_no_passes() -> None:
    rng = np.random.default_rng(0)
    points = np.vstack([rng.normal(size=(5_000, 2)), np.full((1, 2), 1e18)])
    frame = frame_of(points)
    assert frame.sdc.blocks(["x0", "x1"], 3, max_block=200).passes <= 4


def test_many_dimensions_split_the_widest() -> None:
    rng = np.random.default_rng(1)
    points = rng.normal(size=(5_000, 40))
    frame = frame_of(points)
    blocks = frame.sdc.blocks(list(frame.columns), 3, max_block=500)
    arrays = blocks.locator.arrays
    assert np.diff(arrays.first_axis).max() <= MAX_AXES
    assert blocks.counts.min() >= 3
    assert blocks.counts.sum() == 5_000


def test_equal_records_are_cut_in_row_order(smallest_class: object) -> None:
    frame = pd.DataFrame({"x": np.repeat([1.0, 2.0], [10_000, 7]), "y": 3.0})
    blocks = frame.sdc.blocks(["x", "y"], 5, max_block=100)
    assert blocks.counts.max() < 200
    assert blocks.counts.sum() == len(frame)
    masked = frame.sdc.microaggregate(["x", "y"], 5, max_block=100)
    pd.testing.assert_frame_equal(masked, frame)


@pytest.mark.parametrize("d", [1, 2, 6])
def test_fusion_leaves_no_small_block(d: int) -> None:
    rng = np.random.default_rng(d)
    centroid = rng.normal(size=(500, d))
    count = rng.integers(1, 12, 500)
    block = fuse(centroid, count, 10)
    assert np.bincount(block, weights=count).min() >= 10
    assert (block == fuse(centroid, count, 10)).all()
    # One round by hand: every small leaf is with its nearest neighbour.
    distance = ((centroid[:, None] - centroid[None]) ** 2).sum(axis=2)
    np.fill_diagonal(distance, np.inf)
    small = count < 10
    assert (block[small] == block[distance.argmin(axis=1)[small]]).all()


def test_fusion_keeps_large_leaves_apart() -> None:
    block = fuse(np.array([[0.0], [0.1], [9.0]]), np.array([10, 10, 10]), 10)
    assert block.tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("limit", "k", "published"),
    [(100, 3, 456.846), (200, 3, 464.589), (100, 5, 713.095), (200, 5, 734.925)],
)
def test_published_sse_of_eia(
    eia: pd.DataFrame, limit: int, k: int, published: float, standardized_sse: object
) -> None:
    masked = eia.sdc.microaggregate(list(eia.columns), k, blocking="tree", max_block=limit)
    assert standardized_sse(eia, masked) < 1.02 * published


def test_univariate_blocks_are_equal_intervals() -> None:
    points = np.random.default_rng(2).uniform(0, 1, (10_000, 2))
    frame = frame_of(points)
    blocks = frame.sdc.blocks(["x0", "x1"], 3, max_block=1_000, method="univariate")
    assert len(blocks) == 10
    low, high = points[:, 0].min(), points[:, 0].max()
    expected = ((points[:, 0] - low) / (high - low) * 10).astype(int).clip(max=9)
    np.testing.assert_array_equal(leaves_of(blocks, points), expected)


def test_univariate_fuses_and_skips_empty_intervals() -> None:
    frame = pd.DataFrame({"x": np.r_[np.linspace(0, 1, 500), 40.0, 100.0], "y": 0.0})
    blocks = frame.sdc.blocks(["x", "y"], 3, max_block=50, method="univariate")
    assert blocks.counts.min() >= 3
    assert blocks.counts.sum() == 502


def test_a_plan_tells_how_many_leaves_were_too_small() -> None:
    # Of the quarters of the square one has 8 records, one has 2, and two have 1.
    corners = {(0.0, 0.0): 8, (0.0, 1.0): 2, (1.0, 0.0): 1, (1.0, 1.0): 1}
    frame = pd.DataFrame(
        [point for point, n in corners.items() for _ in range(n)], columns=["x", "y"]
    )
    blocks = frame.sdc.blocks(["x", "y"], k=3, max_block=8)
    assert "leaves    4, of which 3 had fewer than k records and were fused" in repr(blocks)


def test_a_plan_equals_itself_alone() -> None:
    frame = sdc_dask.datasets.uniform(100, 2).compute()
    one, other = (frame.sdc.blocks(["x0", "x1"], k=3) for _ in range(2))
    assert one == one
    assert one != other
    assert len({one, other}) == 2


def test_counts_that_are_too_many_for_a_pass_take_several(monkeypatch: pytest.MonkeyPatch) -> None:
    skewed = np.exp(2 * np.random.default_rng(1).normal(size=(4_000, 3)))
    frame = pd.DataFrame(skewed, columns=["a", "b", "c"])
    columns = list(frame)
    expected = frame.sdc.blocks(columns, 3, max_block=30)
    monkeypatch.setattr(engine_blocks, "MOST_BYTES", 5_000)
    blocks = dd.from_pandas(frame, npartitions=9).sdc.blocks(columns, 3, max_block=30)
    assert blocks.passes > expected.passes + 3
    assert np.array_equal(blocks.fused, expected.fused)
    for name in ("count", "low", "high", "centroid"):
        assert np.array_equal(getattr(blocks.leaves, name), getattr(expected.leaves, name))


def test_merging_counts_takes_little_more_memory_than_their_result() -> None:
    rng = np.random.default_rng(0)
    node, code = (rng.integers(0, 2**8, 40_000) for _ in range(2))
    points = rng.uniform(size=(40_000, 10))
    low, high = np.zeros((2**8, 10)), np.ones((2**8, 10))
    halves = [
        count_cells(node[rows], code[rows], rows, points, low, high)
        for rows in (np.arange(36_000), np.arange(36_000, 40_000))
    ]
    whole = count_cells(node, code, np.arange(40_000), points, low, high)
    tracemalloc.start()
    try:
        merged = merge_cells(halves[::-1])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    for name in ("node", "code", "count", "low", "high", "position"):
        assert np.array_equal(getattr(merged, name), getattr(whole, name))
    assert peak < 1.5 * len(merged) * bytes_of_a_cell(10)


def test_what_tasks_get_has_no_bounds_of_leaves() -> None:
    frame = sdc_dask.datasets.uniform(20_000, 8).compute()
    columns = list(frame)
    blocks = frame.sdc.blocks(columns, 2, max_block=100)
    placement = place(frame, blocks, scan(frame, columns, [StrataRule()]), 2, planned_here=True)
    assert blocks.leaves.low.shape == (len(blocks.leaves), 8)
    assert len(pickle.dumps(placement)) < len(pickle.dumps(blocks)) / 3
