"""Groups along an order: the cheapest ones, however the order is torn."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdc_dask.engine.splitters import Splitters
from sdc_dask.kernels.ordered import REBASE, cuts, extend, ordered, stable_argsort


def cost(points: np.ndarray) -> float:
    return float(((points - points.mean(0)) ** 2).sum())


def cheapest(points: np.ndarray, k: int) -> float:
    """The smallest cost of groups of k to 2k - 1 along a sequence, by plain recursion."""

    @functools.cache
    def up_to(end: int) -> float:
        if end == 0:
            return 0.0
        sizes = range(k, min(end, 2 * k - 1) + 1)
        return min((up_to(end - s) + cost(points[end - s : end]) for s in sizes), default=np.inf)

    return up_to(len(points))


def total_cost(points: np.ndarray, labels: np.ndarray) -> float:
    return sum(cost(points[labels == group]) for group in np.unique(labels))


@pytest.mark.parametrize(
    ("n", "k", "d"), [(4, 2, 1), (9, 5, 2), (60, 3, 1), (60, 4, 3), (200, 9, 2)]
)
@pytest.mark.parametrize("tied", [False, True])
def test_no_groups_along_the_order_are_cheaper(n: int, k: int, d: int, tied: bool) -> None:
    rng = np.random.default_rng(n + d)
    points = rng.integers(0, 5, (n, d)).astype(float) if tied else rng.normal(size=(n, d))
    projection = points.sum(1)
    labels = ordered(points, projection, k)
    order = np.argsort(projection, kind="stable")
    assert total_cost(points, labels) == pytest.approx(cheapest(points[order], k), abs=1e-12)
    # Groups are runs of the order, numbered as they come.
    assert (np.diff(labels[order]) >= 0).all()
    sizes = np.bincount(labels)
    assert sizes.min() >= k
    assert sizes.max() < 2 * k


@pytest.mark.parametrize("n", [4, 5, 6, 7])
def test_no_groups_at_all_are_cheaper_than_the_optimal_ones(n: int) -> None:
    values = np.random.default_rng(n).normal(size=n)[:, None]
    sizes = [np.bincount(labels) for labels in itertools.product(range(n // 2), repeat=n)]
    best = min(
        total_cost(values, np.array(labels))
        for labels, size in zip(itertools.product(range(n // 2), repeat=n), sizes, strict=True)
        if size[size > 0].min() >= 2
    )
    mine = total_cost(values, ordered(values, values[:, 0], 2))
    assert mine == pytest.approx(best, rel=1e-12)


def sample(kind: str, n: int) -> np.ndarray:
    """Sorted values, and centred, since others sum squares."""
    rng = np.random.default_rng(n)
    values = {
        "normal": rng.normal(size=n),
        "skewed": rng.lognormal(0, 2, n),
        "ties": rng.integers(0, 60, n).astype(float),
        "one value": np.full(n, 3.25),
        "far from zero": 1e9 + rng.normal(size=n),
    }[kind]
    values = np.sort(values)
    return values - values.mean()


every_kind = pytest.mark.parametrize(
    "kind", ["normal", "skewed", "ties", "one value", "far from zero"]
)


@pytest.mark.parametrize("k", [2, 5, 25])
@every_kind
def test_values_of_any_kind_get_the_cheapest_groups(k: int, kind: str) -> None:
    values = sample(kind, 298)[:, None]
    mine = total_cost(values, ordered(values, values[:, 0], k))
    assert mine == pytest.approx(cheapest(values, k), rel=1e-7, abs=1e-20)


# Importing microagg1d compiles all of it, which takes longer than compiling this package.
@pytest.mark.soak
@pytest.mark.parametrize("k", [2, 3, 5, 10, 25, 50])
@every_kind
def test_as_cheap_as_microagg1d(k: int, kind: str) -> None:
    from microagg1d import univariate_microaggregation

    values = sample(kind, 997)
    # Its method "simple" with stable=1, the default up to k = 21, does not always find the
    # cheapest groups.
    theirs = univariate_microaggregation(values.copy(), k, method="galil_park", stable=1)
    mine = total_cost(values[:, None], ordered(values[:, None], values, k))
    assert mine == pytest.approx(total_cost(values[:, None], theirs), rel=1e-7, abs=1e-20)


def test_costs_far_from_zero_do_not_cancel() -> None:
    far = 1e9 + np.random.default_rng(0).normal(size=500)
    moved = far - 1e9  # what is left of the values, exactly
    assert np.array_equal(ordered(far[:, None], far, 3), ordered(moved[:, None], moved, 3))


def test_expensive_groups_do_not_swallow_later_ones() -> None:
    tail = np.sort(np.random.default_rng(1).normal(size=4 * REBASE))
    values = np.concatenate([[-1e12, -7e11, -3e11], tail])
    labels = ordered(values[:, None], values, 3)
    alone = total_cost(tail[-2 * REBASE :, None], labels[-2 * REBASE :])
    assert alone <= 1.1 * cheapest_of(tail[-2 * REBASE :], 3)


def cheapest_of(values: np.ndarray, k: int) -> float:
    return total_cost(values[:, None], ordered(values[:, None], values, k))


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(2, 700),
    k=st.integers(2, 40),
    d=st.integers(1, 2),
    cut=st.lists(st.integers(0, 700), max_size=6),
    tied=st.booleans(),
)
def test_torn_anywhere_the_choices_are_the_same(
    n: int, k: int, d: int, cut: list[int], tied: bool
) -> None:
    same_if_torn(n, k, d, cut, tied)


@settings(deadline=None, max_examples=30)
@given(
    n=st.integers(600, 1500),
    k=st.integers(REBASE, 2 * REBASE),
    cut=st.lists(st.integers(0, 1500), max_size=6),
    tied=st.booleans(),
)
def test_so_are_those_of_large_groups(n: int, k: int, cut: list[int], tied: bool) -> None:
    same_if_torn(n, k, 1, cut, tied)


def same_if_torn(n: int, k: int, d: int, cut: list[int], tied: bool) -> None:
    rng = np.random.default_rng(n)
    points = rng.integers(0, 9, (n, d)).astype(float) if tied else rng.normal(size=(n, d))
    points.sort(axis=0)
    whole_costs, whole = extend(np.empty((0, d)), points, np.zeros(1), 0, k)
    borders = sorted({0, n, *(min(each, n) for each in cut)})
    lead, costs, pieces = np.empty((0, d)), np.zeros(1), []
    for begin, end in itertools.pairwise(borders):
        costs, choices = extend(lead, points[begin:end], costs, begin, k)
        lead = np.vstack([lead, points[begin:end]])[-(2 * k - 2) :]
        pieces.append(choices)
    assert np.array_equal(np.concatenate(pieces), whole)
    assert np.array_equal(costs, whole_costs)


def every_size(values: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Costs and choices of a column when every group of k to 2k - 1 is looked at, to the bit."""
    n = len(values)
    ends = np.arange(1, n + 1)
    mean, within = values.copy(), np.zeros(n)
    squares = np.full((2 * k, n + 1), np.inf)
    for s in range(1, 2 * k):
        grown = ends[ends >= s]
        x = values[grown - s]
        difference = x - mean[grown - 1]
        mean[grown - 1] += difference * (1.0 / s)
        within[grown - 1] += difference * (x - mean[grown - 1])
        squares[s, grown] = within[grown - 1]
    costs, choices = np.full(n + 1, np.inf), np.zeros(n, np.int32)
    costs[0] = 0.0
    for end in range(1, n + 1):
        if (end - 1) % REBASE == 0:
            window = costs[max(0, end - (2 * k - 1)) : end]
            if window.min() < np.inf:
                window -= window.min()
        sizes = np.arange(k, min(end, 2 * k - 1) + 1)
        totals = costs[end - sizes] + squares[sizes, end]
        if len(sizes) and totals.min() < np.inf:
            costs[end] = totals.min()
            choices[end - 1] = sizes[totals.argmin()]
    return costs[max(0, n - (2 * k - 2)) :], choices


def column(kind: str, n: int, seed: int) -> np.ndarray:
    """Values in an order that need not be sorted."""
    rng = np.random.default_rng(seed)
    return {
        "normal": lambda: np.sort(rng.normal(size=n)),
        "skewed": lambda: np.sort(rng.lognormal(0, 3, n)),
        "few": lambda: np.sort(rng.integers(0, 5, n).astype(float)),
        "integers": lambda: np.sort(rng.integers(0, 1 + n // 2, n).astype(float)),
        "even": lambda: np.arange(n) / 10,
        "one value": lambda: np.full(n, 0.1),
        "far from zero": lambda: np.sort(1e9 + rng.normal(size=n) / 1e4),
        "far integers": lambda: np.sort(1e9 + rng.integers(0, 9, n)),
        "clusters": lambda: np.sort(rng.integers(0, 4, n) * 1e6 + rng.normal(size=n)),
        "tiny": lambda: np.sort(rng.integers(-9, 9, n) * 5e-324),
        "falling": lambda: -np.sort(rng.normal(size=n)),
        "unsorted": lambda: rng.normal(size=n),
    }[kind]()


KINDS = [
    *("normal", "skewed", "few", "integers", "even", "one value", "far from zero"),
    *("far integers", "clusters", "tiny", "falling", "unsorted"),
]


def same_as_every_size(values: np.ndarray, k: int) -> None:
    costs, choices = extend(np.empty((0, 1)), values[:, None], np.zeros(1), 0, k)
    plain_costs, plain_choices = every_size(values, k)
    assert np.array_equal(choices, plain_choices)
    assert np.array_equal(costs, plain_costs)


@settings(deadline=None, max_examples=80)
@given(
    n=st.integers(1, 600),
    k=st.integers(1, 70),
    kind=st.sampled_from(KINDS),
    seed=st.integers(0, 99),
)
def test_sizes_of_one_column_are_left_out_without_a_bit_of_difference(
    n: int, k: int, kind: str, seed: int
) -> None:
    same_as_every_size(column(kind, n, seed), k)


@settings(deadline=None, max_examples=50)
@given(
    k=st.integers(1, 30),
    beyond=st.integers(-3, 3),
    twice=st.booleans(),
    kind=st.sampled_from(KINDS),
)
def test_so_it_is_around_k_and_2k(k: int, beyond: int, twice: bool, kind: str) -> None:
    same_as_every_size(column(kind, max(1, (1 + twice) * k + beyond), k), k)


@pytest.mark.parametrize("k", [2, 3, 8, 127, 128, 129, 255])
@pytest.mark.parametrize("kind", KINDS)
def test_so_it_is_over_many_turns(k: int, kind: str) -> None:
    same_as_every_size(column(kind, 2500, k), k)


# Those larger than what lies between two rebasings share sums, which are rounded otherwise.
@pytest.mark.parametrize("k", [256, 257, 400, 1000])
@pytest.mark.parametrize("kind", KINDS)
def test_large_groups_are_as_cheap(k: int, kind: str) -> None:
    values = column(kind, 2500, k)
    _, choices = extend(np.empty((0, 1)), values[:, None], np.zeros(1), 0, k)
    costs = []
    for each in (choices, every_size(values, k)[1]):
        sizes = np.diff([*cuts(each, len(values)), len(values)])
        assert sizes.min() >= k
        labels = np.repeat(np.arange(len(sizes)), sizes)
        costs.append(total_cost(values[:, None] - values.mean(), labels))
    # Far from zero, means have few digits of what is between values, in whatever order they add up.
    assert costs[0] <= costs[1] * (1.01 if kind == "far from zero" else 1 + 1e-9) + 1e-20


@settings(deadline=None, max_examples=50)
@given(
    values=st.lists(st.sampled_from([-1.5, -0.0, 0.0, 0.1, 7.0]) | st.floats(-9, 9), max_size=200)
)
def test_of_equal_values_the_first_row_comes_first(values: list[float]) -> None:
    array = np.array(values, float)
    assert np.array_equal(stable_argsort(array), np.argsort(array, kind="stable"))


def test_cuts_walk_back_beyond_the_piece() -> None:
    choices = np.array([0, 3, 2, 2, 3], np.int32)
    assert cuts(choices, 5).tolist() == [-1, 2]
    assert cuts(choices, 4).tolist() == [-1, 2]


@settings(deadline=None, max_examples=50)
@given(
    keys=st.lists(st.integers(0, 6), min_size=1, max_size=80),
    strata=st.integers(1, 3),
    ranges=st.integers(2, 12),
    seed=st.integers(0, 9),
)
def test_buckets_follow_the_order_and_strata(
    keys: list[int], strata: int, ranges: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    n = len(keys)
    key, ids = np.array(keys, float), rng.permutation(1 << 10)[:n]
    stratum = rng.integers(0, strata, n)
    picked = rng.integers(0, n, 4 * ranges)
    sample = (stratum[picked], key[picked], ids[picked])
    splitters = Splitters.of_sample(sample, strata, 10, ranges)
    bucket = splitters.bucket_of(stratum, key, ids)
    order = np.lexsort((ids, key, stratum))
    assert (np.diff(bucket[order]) >= 0).all()
    assert bucket.min() >= 0
    assert bucket.max() < len(splitters)
    assert np.array_equal(splitters.stratum_of(bucket), stratum)
    # Every border begins a bucket: its record is the first of it.
    for border in range(len(splitters.key)):
        at = (stratum == splitters.stratum[border]) & (ids == splitters.ids[border])
        assert splitters.ranges[border + 1] == bucket[at][0]
        before = order[: int(np.flatnonzero(at[order])[0])]
        assert (bucket[before] < bucket[at][0]).all()
    assert splitters.ranges[0] == 0
    assert splitters.ranges == sorted(splitters.ranges)


def test_ranges_of_equal_values_are_even() -> None:
    n = 10_000
    ids, zeros = np.arange(n), np.zeros(n, np.int64)
    splitters = Splitters.of_sample((zeros, zeros.astype(float), ids), 1, 14, 8)
    counts = pd.Series(splitters.bucket_of(zeros, zeros.astype(float), ids)).value_counts()
    assert counts.min() == counts.max() == n // 8
