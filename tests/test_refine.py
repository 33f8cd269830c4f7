"""Groups that are refined, and what no groups can be below."""

from __future__ import annotations

from pathlib import Path

import click
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import sdc_dask
from sdc_dask import Microaggregation, masking_options
from sdc_dask.kernels.kd_tree import build_kd_tree
from sdc_dask.kernels.mdav import mdav
from sdc_dask.kernels.nearest import nearest_slots, nearest_squares
from sdc_dask.kernels.refinement import Effort, quick, refined, strength, thorough
from sdc_dask.masking.centroids import Refined, Vmdav
from sdc_dask.risk.attacks.reach import reaches_of

Array = NDArray[np.float64]


def loss(points: Array, labels: NDArray[np.int64]) -> float:
    frame = pd.DataFrame(points)
    return float(((frame - frame.groupby(labels).transform("mean")) ** 2).to_numpy().sum())


def random_points(kind: str, n: int, d: int, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if kind == "grid":
        return rng.integers(0, 4, (n, d)).astype(float)
    if kind == "clusters":
        return rng.integers(0, 3, (n, 1)) * 100.0 + rng.normal(size=(n, d))
    if kind == "constant":
        return np.zeros((n, d))
    return np.exp(3 * rng.normal(size=(n, d)))


@settings(max_examples=30)
@given(
    kind=st.sampled_from(["grid", "clusters", "constant", "skewed"]),
    n=st.integers(4, 120),
    d=st.integers(1, 4),
    k=st.integers(2, 7),
    sweeps=st.integers(1, 40),
    apart=st.booleans(),
    seed=st.integers(0, 10**6),
)
def test_groups_keep_k_and_lose_no_more(
    kind: str, n: int, d: int, k: int, sweeps: int, apart: bool, seed: int
) -> None:
    k = min(k, n)
    points = random_points(kind, n, d, seed)
    given_labels = mdav(points, k)
    effort = strength(sweeps)
    if apart:
        effort = Effort(effort.cycles, worst=effort.cycles, rounds=sweeps)
    labels = refined(points, given_labels, k, effort)
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k
    before, after = loss(points, given_labels), loss(points, labels)
    assert after <= before * (1 + 1e-9)
    assert np.array_equal(labels, refined(points, given_labels, k, effort))


def test_strength_buys_quality() -> None:
    points = np.random.default_rng(1).random((3_000, 3))
    begin = mdav(points, 5)
    found = [loss(points, refined(points, begin, 5, strength(sweeps))) for sweeps in (2, 20, 200)]
    losses = [loss(points, begin), *found]
    assert losses == sorted(losses, reverse=True)
    assert losses[2] < 0.88 * losses[0]
    assert losses[3] < 0.82 * losses[0]


@pytest.mark.parametrize("what", ["worst", "rounds"])
def test_some_groups_apart_lose_less_than_all_at_once(what: str) -> None:
    points = np.exp(1.5 * np.random.default_rng(5).normal(size=(1_000, 4)))
    begin = mdav(points, 5)
    effort = strength(100)
    extra = {"worst": effort.cycles} if what == "worst" else {"rounds": 100}
    at_once = refined(points, begin, 5, effort)
    assert loss(points, at_once) < loss(points, begin)
    apart = refined(points, begin, 5, effort._replace(**extra))
    assert loss(points, apart) < 0.998 * loss(points, at_once)


def test_thorough_comes_near_the_best_possible() -> None:
    # The best groups are known: five equal records at each place.
    rng = np.random.default_rng(0)
    places = rng.random((60, 2))
    points = np.repeat(places, 5, axis=0)[rng.permutation(300)]
    wrong = np.repeat(np.arange(60), 5)  # whoever comes first
    assert loss(points, wrong) > 1
    assert loss(points, refined(points, wrong, 5, thorough(300))) < 0.01 * loss(points, wrong)


def test_groups_are_dissolved_and_formed_where_they_are_needed() -> None:
    # Seven records at each of 30 places: MDAV cuts them in threes, and mixes what is left over.
    rng = np.random.default_rng(3)
    points = np.repeat(rng.random((30, 2)) * 1_000, 7, axis=0) + rng.random((210, 2))
    begin = mdav(points, 3)
    labels = refined(points, begin, 3, thorough(210))
    assert begin.max() + 1 == 70
    assert labels.max() + 1 == 60
    assert loss(points, labels) < 1e-3 * loss(points, begin)


def test_few_records_far_out_do_no_harm() -> None:
    # They have nearly all of the SSE, and their groups are the best: all others can gain little.
    rng = np.random.default_rng(4)
    x = rng.lognormal(0, 1, 2_000)
    points = np.stack([x, x + rng.random(2_000)], axis=1)
    begin = mdav(points, 4)
    assert loss(points, refined(points, begin, 4, quick(2_000))) < loss(points, begin)


def test_groups_that_are_too_large_are_refused() -> None:
    with pytest.raises(RuntimeError, match="more than 2k - 1 = 3 records"):
        refined(np.arange(8.0)[:, None], np.zeros(8, np.int64), 2, strength(1))


@given(
    kind=st.sampled_from(["grid", "skewed"]),
    n=st.integers(2, 80),
    d=st.integers(1, 7),
    seed=st.integers(0, 10**6),
)
def test_nearest_neighbours(kind: str, n: int, d: int, seed: int) -> None:
    points = random_points(kind, n, d, seed)
    count = min(n - 1, 6)
    tree = build_kd_tree(points, np.ones(d), 4)
    squares = np.zeros((n, n))
    for j in range(d):
        squares += (tree.points[:, j] - tree.points[:, j, None]) ** 2
    np.fill_diagonal(squares, np.inf)
    order = np.argsort(squares, axis=1, kind="stable")[:, :count]
    slots, found = nearest_slots(tree, count)
    assert np.array_equal(slots, order)
    assert np.array_equal(found, np.take_along_axis(squares, order, 1))
    np.fill_diagonal(squares, 0)
    wanted = np.full((n, 9), np.inf)
    wanted[:, : min(9, n)] = np.sort(squares, axis=1)[:, :9]
    assert np.array_equal(nearest_squares(tree, tree.points, 9), wanted)


# The masking


def survey(n: int = 2_000) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    x = rng.normal(size=n)
    return pd.DataFrame({"x": x, "y": x + rng.random(n), "g": rng.integers(0, 2, n)})


OPTIONS = {
    "mdav": {},
    "one block": {"blocking": None, "refine": 20},
    "small blocks": {"max_block": 300, "refine": 20},
    "strata": {"by": "g", "refine": 20},
    "vmdav": {"method": "vmdav", "refine": 20},
    "along an order in blocks": {"method": "pcp", "blocking": "tree", "refine": 20},
    "thorough": {"refine": "thorough", "max_block": 200},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_masks_lose_less_and_keep_k(name: str) -> None:
    options = {"refine": True, **OPTIONS[name]}
    frame = survey(400 if name == "thorough" else 2_000)
    plain = frame.sdc.microaggregate(["x", "y"], 4, **{**options, "refine": False})
    refined = frame.sdc.microaggregate(["x", "y"], 4, **options)
    by = [*np.atleast_1d(options.get("by", []))]
    assert refined.sdc.anonymity(["x", "y", *by]).k_min >= 4
    lost, less = (frame.sdc.sse(each, ["x", "y"]).sse for each in (plain, refined))
    assert less < 0.97 * lost
    assert refined[["g"]].equals(frame[["g"]])


@pytest.mark.parametrize("name", ["small blocks", "strata"])
def test_dask_gives_what_pandas_gives(name: str, scheduler: str) -> None:
    frame = survey()
    options = {"refine": True, **OPTIONS[name]}
    expected = frame.sdc.microaggregate(["x", "y"], 4, **options)
    lazy = dd.from_pandas(frame, npartitions=7).sdc.microaggregate(["x", "y"], 4, **options)
    pd.testing.assert_frame_equal(lazy.compute(), expected, check_exact=True)


def test_borders_within_blocks_cost_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((4_000, 2)), columns=["a", "b"])
    options = {"k": 5, "refine": 50}
    whole = frame.sdc.sse(frame.sdc.microaggregate(["a", "b"], blocking=None, **options)).sse
    # MDAV begins with halves of halves; what is refined is the block.
    module = "sdc_dask.masking.microaggregation.auto_block"
    monkeypatch.setattr(module, lambda *args, **options: 100)
    cut = frame.sdc.sse(frame.sdc.microaggregate(["a", "b"], blocking=None, **options)).sse
    assert cut < 1.02 * whole
    small = frame.sdc.sse(frame.sdc.microaggregate(["a", "b"], max_block=100, **options)).sse
    assert small > 1.03 * whole


def test_groups_of_vmdav_that_its_last_records_made_large_are_cut() -> None:
    large = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        points = np.ascontiguousarray(rng.normal(size=(29, 2)))
        grouping = Vmdav(4, 1.1)
        before = grouping(points, points)
        large += np.bincount(before).max() > 7
        after = Refined(grouping, 4, 3)(points, points)
        sizes = np.bincount(after)
        assert sizes.min() >= 4 and sizes.max() <= 7
    assert large > 0


def test_missing_cells_are_apart() -> None:
    frame = survey(600)
    frame.loc[::3, "y"] = np.nan
    masked = frame.sdc.microaggregate(["x", "y"], 4, missing="separate", refine=True)
    assert masked.isna().equals(frame.isna())
    assert masked.sdc.anonymity(["x", "y"]).k_min >= 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"refine": "fast"}, "refine must be one of 'thorough', True, False"),
        ({"refine": 0}, "refine must be at least 1"),
        ({"refine": 1.5}, "refine must be a whole number"),
        ({"refine": True, "method": "pcp"}, "refine works within blocks"),
        ({"refine": "thorough", "method": "optimal"}, "smallest SSE already"),
    ],
)
def test_what_cannot_be_refined(options: dict, message: str) -> None:
    columns = [["x"]] if options.get("method") == "optimal" else ["x", "y"]
    with pytest.raises((ValueError, TypeError), match=message):
        Microaggregation(columns, 3, **options)


@pytest.mark.parametrize("value", [True, "thorough", 25])
def test_specs_say_how_groups_are_refined(value: bool | str | int) -> None:
    spec = Microaggregation(["x", "y"], 3, refine=value)
    assert Microaggregation.from_dict(spec.to_dict()) == spec
    assert f"refine={value!r}" in repr(spec)
    assert "refined" in spec.describe()
    command = masking_options.MaskingCommand("protect")
    with click.Context(command) as context:
        command.parse_args(context, ["--columns", "x,y", "-k", "3", "--refine", str(value).lower()])
        assert masking_options.asked_spec(context) == spec


def test_an_intruder_knows_nothing_of_the_order_of_refined_groups() -> None:
    known = [
        reaches_of(
            [Microaggregation(["x"], 3, blocking=None, refine=value)], ["x"], has_file=False
        )[0].kind
        for value in (False, True)
    ]
    assert known == ["neighbours", "free"]


# The bound


@settings(max_examples=40)
@given(
    kind=st.sampled_from(["grid", "clusters", "skewed"]),
    n=st.integers(6, 100),
    k=st.integers(2, 6),
    seed=st.integers(0, 10**6),
)
def test_nothing_is_below_the_bound(kind: str, n: int, k: int, seed: int) -> None:
    frame = pd.DataFrame(random_points(kind, n, 2, seed), columns=["a", "b"])
    bound = frame.sdc.sse_bound(["a", "b"], k)
    masked = frame.sdc.microaggregate(["a", "b"], k, blocking=None, refine=20)
    assert frame.sdc.sse(masked).sse >= bound.bound * (1 - 1e-9)
    assert bound.low == bound.bound == bound.high
    assert frame.sdc.sse_bound(["a", "b"], 2).bound <= bound.bound * (1 + 1e-9)


def test_the_bound_is_met_where_groups_are_apart() -> None:
    # Equilateral triangles far from each other: each group is as good as its bound.
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
    places = [[50 * i, 50 * j] for i in range(3) for j in range(3)]
    points = np.concatenate([corners + np.array(place) for place in places])
    # Standardized, columns of about the same deviation leave triangles as they are, nearly.
    frame = pd.DataFrame(points, columns=["a", "b"])
    masked = frame.sdc.microaggregate(["a", "b"], 3)
    assert frame.sdc.sse(masked).sse == pytest.approx(
        frame.sdc.sse_bound(["a", "b"], 3).bound, rel=1e-3
    )


def test_a_sample_of_the_bound(scheduler: str) -> None:
    frame = np.exp(survey(12_000))  # of which few records have most of the SSE
    whole = frame.sdc.sse_bound(["x", "y"], 5, sample=None)
    part = frame.sdc.sse_bound(["x", "y"], 5, sample=3_000, random_state=1)
    assert part.low <= whole.bound <= part.high
    assert 5_000 < part.tried < 6_000
    assert part.rows == 12_000
    assert part.high - part.low < 0.05 * whole.bound
    lazy = dd.from_pandas(frame, npartitions=5)
    assert lazy.sdc.sse_bound(["x", "y"], 5, sample=3_000, random_state=1) == part
    assert lazy.sdc.sse_bound(["x", "y"], 5, sample=None) == whole
    assert frame.sdc.sse_bound(["x", "y"], 5).tried > 5_000


def test_the_bound_of_what_has_none() -> None:
    frame = survey(20)
    with pytest.raises(ValueError, match="fewer than k=21"):
        frame.sdc.sse_bound(["x"], 21)
    with pytest.raises(ValueError, match="missing"):
        frame.assign(x=frame["x"].mask(frame.index == 3)).sdc.sse_bound(["x"], 3)
    with pytest.raises(KeyError, match="'nowhere'"):
        frame.sdc.sse_bound(["nowhere"], 3)


def test_a_release_says_how_far_from_the_best_it_is(tmp_path: Path) -> None:
    frame = survey(500)
    frame[["x", "y"]].to_parquet(tmp_path / "in.parquet")
    spec = Microaggregation(["x", "y"], 4, refine=True)
    summary = sdc_dask.protect(
        tmp_path / "in.parquet", tmp_path / "out", spec, measure=True, order="source"
    )
    gap = summary.measured[-1]
    masked = pd.read_parquet(tmp_path / "out")
    assert gap.sse == pytest.approx(frame[["x", "y"]].sdc.sse(masked).sse)
    assert gap.times == gap.sse / frame.sdc.sse_bound(["x", "y"], 4).bound
    assert 1 < gap.times < 3
    assert f"the SSE is {gap.times:.2f} times" in repr(summary)
    assert summary.masked[0].anonymity.k_min >= 4
