"""Linkage within blocks: bounds between which the exact rate lies."""

from __future__ import annotations

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdc_dask import Microaggregation, RankSwap
from sdc_dask.kernels.boxes import box_tree, reaches_others
from sdc_dask.risk.attacks import reach

COLUMNS = ["x", "y", "z"]


def survey(n: int = 3_000, seed: int = 0) -> pd.DataFrame:
    """Skewed values, whole numbers with ties, and a column that goes with the first."""
    rng = np.random.default_rng(seed)
    x = rng.lognormal(0, 1, n)
    return pd.DataFrame({"x": x, "y": rng.integers(0, 30, n), "z": x + rng.normal(0, 1, n)})


def noisy(frame: pd.DataFrame, share: float, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return frame + rng.normal(size=frame.shape) * share * frame.std().to_numpy()


@pytest.mark.parametrize("share", [0, 0.01, 0.1, 1])
@pytest.mark.parametrize("standardize", [True, False])
def test_the_exact_rate_lies_between_the_bounds(share: float, standardize: bool) -> None:
    frame = survey()
    masked = noisy(frame, share)
    exact = frame.sdc.linkage(masked, standardize=standardize)
    blocked = frame.sdc.linkage(masked, standardize=standardize, blocking="tree", max_block=200)
    assert blocked.rate == blocked.low <= exact.rate <= blocked.high
    assert blocked.certain <= exact.certain
    assert blocked.tried == len(frame)
    assert "lower bound" in blocked.note
    assert blocked.attack.endswith("blocked")


def test_the_bounds_are_near_for_little_noise() -> None:
    frame = survey(15_000)
    masked = noisy(frame, 0.005)
    exact = frame.sdc.linkage(masked).rate
    blocked = frame.sdc.linkage(masked, blocking="tree", max_block=2_000)
    assert 50 < exact < 99
    assert blocked.low > 0.8 * exact
    assert blocked.high < exact + 1
    # In a single block nothing is left open.
    whole = frame.sdc.linkage(masked, blocking="tree", max_block=20_000)
    assert whole.low == whole.rate == whole.high == exact


@pytest.mark.parametrize("masking", ["microaggregate", "rank_swap"])
def test_masked_frames(masking: str) -> None:
    frame = survey()
    masked = getattr(frame.sdc, masking)(COLUMNS, 4)
    exact = frame.sdc.linkage(masked)
    blocked = frame.sdc.linkage(masked, blocking="tree", max_block=300)
    assert blocked.low <= exact.rate <= blocked.high
    assert blocked.high > 0


def test_many_equal_masked_records() -> None:
    frame = survey(2_000)
    masked = frame.copy()
    masked.loc[:1_499, COLUMNS] = [0.0, 0, 0.0]  # in a leaf that is cut in row order
    exact = frame.sdc.linkage(masked)
    blocked = frame.sdc.linkage(masked, blocking="tree", max_block=100)
    assert blocked.low <= exact.rate <= blocked.high
    assert blocked.low > 0


@settings(max_examples=40)
@given(
    n=st.integers(1, 200),
    values=st.integers(1, 20),
    size=st.integers(2, 60),
    seed=st.integers(0, 10**6),
)
def test_bounds_of_few_values(n: int, values: int, size: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, values, (n, 2)).astype(float), columns=["a", "b"])
    masked = frame + rng.integers(-2, 3, (n, 2)) * (rng.random((n, 2)) < 0.5)
    exact = frame.sdc.linkage(masked)
    blocked = frame.sdc.linkage(masked, blocking="tree", max_block=size)
    assert blocked.low <= exact.rate + 1e-9
    assert blocked.high >= exact.rate - 1e-9
    assert blocked.certain <= exact.certain


@given(n=st.integers(1, 70), d=st.sampled_from([1, 2, 9]), seed=st.integers(0, 10**6))
def test_boxes_of_others(n: int, d: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    low = rng.integers(0, 30, (n, d)).astype(float)
    high = low + rng.integers(0, 5, (n, d))
    owner = np.sort(rng.integers(0, 6, n))
    points = rng.integers(0, 30, (50, d)).astype(float)
    squares = rng.integers(0, 40, 50).astype(float)
    own = rng.integers(0, 6, 50)
    weight = rng.choice([0.5, 1, 2], d)
    # What each point looks at: some of it on one side only, some of it nowhere near the boxes.
    begin = points - rng.choice([1, 4, np.inf], (50, d))
    end = points + rng.choice([0, 3, np.inf], (50, d))
    lowest, highest = np.maximum(low, begin[:, None]), np.minimum(high, end[:, None])
    with np.errstate(invalid="ignore"):
        gaps = (np.clip(points[:, None], lowest, highest) - points[:, None]) * weight
    near = (lowest <= highest).all(-1) & ((gaps**2).sum(-1) <= squares[:, None])
    expected = (near & (owner != own[:, None])).any(1)
    found = reaches_others(box_tree(low, high, owner), points, squares, weight, own, begin, end)
    assert np.array_equal(found, expected)


SPECS = {
    "rank_swap": RankSwap(COLUMNS, 4),
    "rank_swap with averaged ends": RankSwap(COLUMNS, 4, top=3, bottom=3),
    "intersection": Microaggregation([[name] for name in COLUMNS], 4, blocking=None),
    "intersection with rounding": Microaggregation(
        [[name] for name in COLUMNS], 4, blocking=None, decimals=1
    ),
    "alignment": Microaggregation([["x"], ["z"]], 4, method="optimal"),
}


@pytest.mark.parametrize("name", SPECS)
@pytest.mark.parametrize("size", [150, 3_000])
def test_whoever_knows_the_masking_is_between_the_bounds(name: str, size: int) -> None:
    frame, spec = survey(), SPECS[name]
    masked = frame.sdc.mask(spec, **({"random_state": 1} if isinstance(spec, RankSwap) else {}))
    options = {"columns": list(spec.masked), "knows": spec}
    exact = frame.sdc.linkage(masked, name.split(" ")[0], **options)
    blocked = frame.sdc.linkage(
        masked, name.split(" ")[0], blocking="tree", max_block=size, **options
    )
    assert blocked.low <= exact.rate <= blocked.high
    assert blocked.certain <= exact.certain
    assert blocked.tried == len(frame)
    if size == len(frame):  # one block, and quantiles that are all values
        assert (blocked.rate, blocked.certain, blocked.high) == (
            exact.rate,
            exact.certain,
            exact.rate,
        )
        assert (blocked.candidates, blocked.few) == (exact.candidates, exact.few)


@settings(max_examples=40)
@given(
    n=st.integers(2, 300),
    values=st.integers(1, 50),
    size=st.integers(2, 60),
    p=st.floats(1, 60),
    quantiles=st.integers(2, 40),
    seed=st.integers(0, 10**6),
)
def test_ends_are_rounded_outward(
    n: int, values: int, size: int, p: float, quantiles: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.integers(0, values, (n, 2)).astype(float), columns=["a", "b"])
    spec = RankSwap(["a", "b"], max(p, 101 / n))  # percent: a rank at least
    masked = frame.sdc.mask(spec, random_state=seed)
    exact = frame.sdc.linkage(masked, "rank_swap", knows=spec)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reach, "QUANTILES", quantiles)
        blocked = frame.sdc.linkage(
            masked, "rank_swap", knows=spec, blocking="tree", max_block=size
        )
    assert "not what the intruder" not in blocked.note
    assert blocked.low <= exact.rate + 1e-9
    assert blocked.high >= exact.rate - 1e-9
    assert blocked.certain <= exact.certain


@pytest.mark.filterwarnings("ignore::sdc_dask.errors.FractionAdvice")
def test_bounds_of_a_swap_that_is_known_are_near() -> None:
    frame = survey(15_000)
    spec = RankSwap(["x", "z"], 0.3)
    masked = frame.sdc.mask(spec, random_state=1)
    options = {"attack": "rank_swap", "knows": spec, "columns": ["x", "z"]}
    exact = frame.sdc.linkage(masked, **options)
    blocked = frame.sdc.linkage(masked, blocking="tree", max_block=2_000, **options)
    blind = frame.sdc.linkage(masked, columns=["x", "z"])
    assert blind.rate < 0.95 * exact.rate < blocked.low <= exact.rate <= blocked.high
    assert blocked.high < exact.rate + 2
    assert 0.9 * exact.certain < blocked.certain <= exact.certain


def test_a_wrong_guess_of_p_misses_records_in_blocks_too() -> None:
    frame = survey()
    masked = frame.sdc.mask(RankSwap(COLUMNS, 20), random_state=1)
    spec = RankSwap(COLUMNS, 5)
    exact = frame.sdc.linkage(masked, "rank_swap", knows=spec)
    blocked = frame.sdc.linkage(masked, "rank_swap", knows=spec, blocking="tree")
    assert "not what the intruder takes them" in exact.note
    assert exact.remarks[-1] in blocked.remarks
    assert blocked.rate == exact.rate


@pytest.mark.long_on_cluster
def test_dask_gives_what_pandas_gives(scheduler: str) -> None:
    frame = survey()
    for masked in (frame.sdc.microaggregate(COLUMNS, 4), noisy(frame, 0.05)):
        expected = frame.sdc.linkage(masked, blocking="tree", max_block=200)
        for partitions in (1, 11):
            lazy = [dd.from_pandas(each, npartitions=partitions) for each in (frame, masked)]
            assert lazy[0].sdc.linkage(lazy[1], blocking="tree", max_block=200) == expected
    spec = SPECS["rank_swap"]
    masked = frame.sdc.mask(spec, random_state=1)
    options = {"attack": "rank_swap", "knows": spec, "blocking": "tree", "max_block": 200}
    lazy = [dd.from_pandas(each, npartitions=7) for each in (frame, masked)]
    assert lazy[0].sdc.linkage(lazy[1], **options) == frame.sdc.linkage(masked, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_block": 100}, "max_block has no meaning without blocks"),
        ({"blocking": "tree", "sample": 10}, "leave out sample and assignment"),
        ({"blocking": "tree", "assignment": True}, "leave out sample and assignment"),
        ({"blocking": "tree", "distance": "mahalanobis"}, "Euclidean distance alone"),
        ({"blocking": "univariate"}, "blocking must be one of"),
        ({"blocking": "tree", "max_block": 1}, "max_block must be at least 2"),
        ({"attack": "rank_swap", "knows": SPECS["rank_swap"], "max_block": 9}, "has no meaning"),
        (
            {
                "attack": "rank_swap",
                "knows": SPECS["rank_swap"],
                "blocking": "tree",
                "sample": 9,
            },
            "leave out one of blocking and sample",
        ),
        (
            {
                "attack": "rank_swap",
                "knows": RankSwap(COLUMNS, 4, method="distribution"),
                "blocking": "tree",
            },
            "sets none",
        ),
    ],
)
def test_arguments_that_do_not_go_together(options: dict, message: str) -> None:
    frame = survey(50)
    with pytest.raises(ValueError, match=message):
        frame.sdc.linkage(frame, **options)


@pytest.mark.parametrize(("value", "message"), [(np.nan, "missing"), (np.inf, "infinite")])
@pytest.mark.parametrize("side", ["original", "masked"])
def test_values_without_a_distance(value: float, message: str, side: str) -> None:
    frames = {"original": survey(50), "masked": survey(50)}
    frames[side].loc[7, "x"] = value
    with pytest.raises(ValueError, match=f"the {side} frame has {message}"):
        frames["original"].sdc.linkage(frames["masked"], blocking="tree")


def test_masked_values_that_are_too_far() -> None:
    frame = survey(50) * 1e-300
    masked = frame.copy()
    masked.loc[3, "x"] = 1e20
    with pytest.raises(ValueError, match="their distance exceeds float64"):
        frame.sdc.linkage(masked, blocking="tree")


def test_scales_far_from_one() -> None:
    frame = survey(2_000) * [1e300, 1.0, 1e-300]
    masked = noisy(frame / [1e300, 1.0, 1e-300], 0.05) * [1e300, 1.0, 1e-300]
    exact = frame.sdc.linkage(masked)
    blocked = frame.sdc.linkage(masked, blocking="tree", max_block=200)
    assert 0 < blocked.low <= exact.rate <= blocked.high < 100


def test_empty_partitions() -> None:
    frame = survey(400)
    masked = noisy(frame, 0.05)
    expected = frame.sdc.linkage(masked, blocking="tree", max_block=50)
    kept = [
        dd.concat([dd.from_pandas(each, 3), dd.from_pandas(each, 2).query("y < -1000")])
        for each in (frame, masked)
    ]
    assert kept[0].sdc.linkage(kept[1], blocking="tree", max_block=50) == expected


def test_frames_of_different_length() -> None:
    frame = survey(100)
    for rows in (0, 99):
        with pytest.raises(ValueError, match=f"{rows} rows against 100"):
            frame.sdc.linkage(frame.iloc[:rows], blocking="tree")


@pytest.mark.parametrize("size", [50, 200])
def test_a_masked_frame_that_changes_is_an_error(size: int) -> None:
    rng = np.random.default_rng(2)
    original = pd.DataFrame(rng.random((4_000, 2)), columns=["a", "b"])
    first = (original * 5).round() / 5
    later = (original + rng.normal(0, 0.02, original.shape)).clip(0, 1)
    later.iloc[:2] = [[0, 0], [1, 1]]
    calls = []

    def change(part: pd.DataFrame) -> pd.DataFrame:
        calls.append(len(part))
        return (first if len(calls) <= 4 else later).loc[part.index]

    lazy = dd.from_pandas(original, npartitions=2)
    # By its name, Dask would take the frame of the other size for this one.
    masked = lazy.map_partitions(change, meta=original.iloc[:0], token=f"change-{size}")
    with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError, match="is not the same"):
        lazy.sdc.linkage(masked, blocking="tree", max_block=size)
