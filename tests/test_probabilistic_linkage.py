"""Probabilistic linkage against all pairs one by one, and against plain EM."""

from __future__ import annotations

from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask.kernels.agreement import best_within, fit_mixture, ordered, patterns_within
from sdc_dask.risk.agreement import fit
from sdc_dask.risk.attacks import patterns as counting_module
from sdc_dask.risk.attacks import probabilistic as module
from sdc_dask.risk.attacks.patterns import count_patterns, tried_of
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.linkage import Linkage
from sdc_dask.sampling import Sampling, draw_rows


def linked(original: Any, masked: Any, columns: list, **options: Any) -> Linkage:
    """Link by equality, unless a tolerance is asked for."""
    options = {"tolerance": 0, **options}
    return original.sdc.linkage(masked, "probabilistic", columns, **options)


def pair_patterns(
    original: pd.DataFrame, masked: pd.DataFrame, tolerance: float = 0, unit: str = "value"
) -> np.ndarray:
    """Return the pattern of every pair, rows by columns."""
    patterns = np.zeros((len(original), len(masked)), np.int64)
    for j, column in enumerate(original):
        old, new = original[column].to_numpy(float), masked[column].to_numpy(float)
        reach = tolerance * (np.abs(old)[:, None] if unit == "value" else old.std() or 1.0)
        patterns |= (np.abs(old[:, None] - new) <= reach).astype(np.int64) << j
    return patterns


def plain_em(
    patterns: np.ndarray, counts: np.ndarray, d: int, n: int, steps: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Run EM as textbooks have it, without logarithms or any end but the number of steps."""
    agrees = (patterns[:, None] >> np.arange(d) & 1).astype(bool)
    m, u, prior = np.full(d, 0.9), np.average(agrees, axis=0, weights=counts), 1 / n
    for _ in range(steps):
        match = prior * np.where(agrees, m, 1 - m).prod(axis=1)
        other = (1 - prior) * np.where(agrees, u, 1 - u).prod(axis=1)
        share = match / (match + other)
        prior = np.average(share, weights=counts)
        m = np.average(agrees, axis=0, weights=counts * share)
        u = np.average(agrees, axis=0, weights=counts * (1 - share))
    return m, u, prior


def brute_force(
    patterns: np.ndarray, m: np.ndarray, u: np.ndarray, bounds: tuple[float, float] = (1, 0)
) -> tuple[float, int]:
    """Return the percentage of right links, and how many are claimed, pair by pair."""
    d = len(m)
    every = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)
    of_match = np.where(every, m, 1 - m).prod(axis=1)
    of_other = np.where(every, u, 1 - u).prod(axis=1)
    weights = np.round(np.log2(of_match / of_other), 7)
    links = set()
    for weight in weights:
        false_match = of_other[weights >= weight].sum()
        false_nonmatch = of_match[weights <= weight].sum()
        if false_match <= bounds[0] + 1e-12 and false_nonmatch > bounds[1]:
            links.add(weight)
    correct, claimed = 0.0, 0
    for i, row in enumerate(weights[patterns]):
        if row.max() in links:
            claimed += 1
            correct += (row[i] == row.max()) / (row == row.max()).sum()
    return 100 * correct / len(patterns), claimed


def noisy(n: int, kinds: tuple[int, ...], noise: float, seed: int) -> tuple[pd.DataFrame, ...]:
    """Return whole numbers of so many kinds, and the same with some cells drawn anew."""
    rng = np.random.default_rng(seed)
    original = pd.DataFrame({f"x{j}": rng.integers(0, kind, n) for j, kind in enumerate(kinds)})
    other = pd.DataFrame({f"x{j}": rng.integers(0, kind, n) for j, kind in enumerate(kinds)})
    return original, original.mask(rng.random(original.shape) < noise, other)


@pytest.fixture(params=["index", "index in batches", "pairs"])
def counting(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Count patterns in every way that there is, whatever the size of the data."""
    nodes = 10**9 if request.param == "pairs" else 0
    monkeypatch.setattr(counting_module, "_PAIRS_A_NODE", nodes)
    if request.param == "index in batches":
        monkeypatch.setattr(counting_module, "CELLS", 300)
    return request.param


@pytest.mark.parametrize("kinds", [(3,), (2, 3, 5, 7, 300), (2,) * 9])
def test_counts_are_those_of_all_pairs(counting: str, kinds: tuple[int, ...]) -> None:
    original, masked = noisy(120, kinds, 0.3, len(kinds))
    original = original.astype(float).replace(0.0, -0.0)  # equal to 0.0, with other bits
    pairs = pair_patterns(original, masked)
    encounter = Encounter.of(original, masked, list(original), Sampling.of(None))
    tried = tried_of(encounter, list(original), 0, "value")
    found = count_patterns(encounter, list(original), tried, equal=True)
    np.testing.assert_array_equal(found.total(), np.bincount(pairs.ravel(), None, 2 ** len(kinds)))
    np.testing.assert_array_equal(tried.own, pairs.diagonal())
    ranks = np.random.default_rng(0).integers(0, 4, (2 ** len(kinds), 2), dtype=np.int32)
    best, ties = found.best(ranks)
    for way in range(2):
        of_pairs = ranks[pairs, way]
        np.testing.assert_array_equal(best[:, way], of_pairs.min(axis=1))
        np.testing.assert_array_equal(
            ties[:, way], (of_pairs == of_pairs.min(axis=1)[:, None]).sum(axis=1)
        )


@settings(max_examples=40)
@given(
    n=st.integers(0, 70),
    q=st.integers(1, 9),
    d=st.sampled_from([1, 2, 5]),
    levels=st.sampled_from([3, 1_000]),
    rows=st.sampled_from([16, 2**14]),
    seed=st.integers(0, 99),
)
def test_pairs_within_reach(n: int, q: int, d: int, levels: int, rows: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    records, masked = (rng.integers(-levels, levels, (size, d)) / 7 for size in (q, n))
    reach = rng.integers(0, levels, (q, d)) / 7
    times = rng.integers(1, 5, q)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sdc_dask.kernels.agreement._ROWS", rows)
        in_order = ordered(masked)
    agrees = np.abs(records[:, None] - masked) <= reach[:, None]
    patterns = (agrees << np.arange(d)).sum(axis=2)
    expected = np.zeros(2**d, np.int64)
    np.add.at(expected, patterns, times[:, None])
    np.testing.assert_array_equal(patterns_within(records, reach, times, in_order), expected)
    ranks = rng.integers(0, 3, (2**d, 2), dtype=np.int32)
    best, ties = best_within(records, reach, in_order, ranks)
    if n:
        np.testing.assert_array_equal(best, ranks[patterns].min(axis=1))
        np.testing.assert_array_equal(ties, (ranks[patterns] == best[:, None]).sum(axis=1))
    else:
        assert not ties.any()


@pytest.mark.parametrize(
    ("tolerance", "unit", "said"),
    [
        (0.05, "value", "within 5% of the original value"),
        (0.4, "deviation", "within 0.4 deviations"),
    ],
)
def test_links_within_a_tolerance(tolerance: float, unit: str, said: str) -> None:
    rng = np.random.default_rng(1)
    original = pd.DataFrame(rng.normal(5, [1, 20, 3], (300, 3)), columns=list("abc"))
    original["constant"] = 2.0
    masked = original + rng.normal(0, [0.1, 1, 1, 0.3], (300, 4))
    pairs = pair_patterns(original, masked, tolerance, unit)
    model = fit(np.bincount(pairs.ravel(), None, 16), 300, 10_000)
    result = linked(original, masked, list(original), tolerance=tolerance, unit=unit)
    assert result.rate == pytest.approx(brute_force(pairs, model.m, model.u)[0])
    assert result.attack == f"probabilistic, {said}"


def test_zeros_agree_with_zeros_alone() -> None:
    original = pd.DataFrame({"x": [0.0, 0.0, 10.0, 20.0]})
    masked = pd.DataFrame({"x": [0.0, 1e-9, 11.0, 22.0]})
    encounter = Encounter.of(original, masked, ["x"], Sampling.of(None))
    assert tried_of(encounter, ["x"], 0.1, "value").own.tolist() == [1, 0, 1, 1]
    assert tried_of(encounter, ["x"], 0.1, "deviation").own.tolist() == [1, 1, 0, 0]


def test_links_of_some_columns_follow_from_all(counting: str) -> None:
    original, masked = noisy(200, (6, 12, 25, 40), 0.2, 3)
    for tolerance in (0, 0.1):
        mean = linked(original, masked, list(original), tolerance=tolerance, known="all")
        each = [
            linked(original, masked, list(original)[:r], tolerance=tolerance).rate
            for r in range(1, 5)
        ]
        assert mean.rate == pytest.approx(np.mean(each))


def test_less_is_linked_as_more_is_masked() -> None:
    frame = sdc_dask.datasets.survey(600, seed=2).compute()[["income", "wealth", "age"]]
    columns = list(frame)
    swapped = [
        linked(frame, frame.sdc.rank_swap(columns, p, random_state=1), columns, tolerance=0.1).rate
        for p in (1, 5, 25)
    ]
    assert (np.diff(swapped) < 0).all()
    # A constant release leaves every link to chance.
    constant = frame * 0 + frame.median()
    chance = linked(frame, constant, columns, tolerance=0.1)
    assert chance.rate == pytest.approx(100 / 600)


@pytest.mark.parametrize("kinds", [(60,), (5, 30), (6, 12, 25), (6, 12, 25, 40, 3)])
def test_estimates_are_those_of_plain_em(kinds: tuple[int, ...]) -> None:
    original, masked = noisy(150, kinds, 0.15, 7)
    d = len(kinds)
    patterns = pair_patterns(original, masked)
    occur, counts = np.unique(patterns, return_counts=True)
    agrees = (occur[:, None] >> np.arange(d) & 1).astype(bool)
    share = counts / counts.sum()
    start = np.full(d, 0.9), share @ agrees, 1 / 150
    # Before it leaps, it makes two steps of plain EM.
    m, u, prior, _, steps, _ = fit_mixture(agrees, share, *start, 0.0, 2)
    assert steps == 2
    first = plain_em(patterns.ravel(), np.ones(patterns.size), d, 150, 2)
    for estimate, expected in zip((m, u, prior), first, strict=True):
        np.testing.assert_allclose(estimate, expected, rtol=1e-10)
    # With fewer columns, many estimates fit the counts, and leaps end elsewhere.
    model = fit(np.bincount(patterns.ravel(), None, 2**d), 150, 10_000)
    assert model.converged
    assert ("EM's start decides" in " ".join(model.notes())) == (d < 3)
    if d >= 3:
        m, u, prior, *_ = fit_mixture(agrees, share, *start, 1e-10, 10_000)
        last = plain_em(occur, counts, d, 150, 20_000)
        for estimate, expected in zip((m, u, prior), last, strict=True):
            np.testing.assert_allclose(estimate, expected, rtol=1e-5)
        np.testing.assert_allclose(model.m, m, atol=1e-3)


def test_estimates_are_those_of_other_programs() -> None:
    # Of recordlinkage 0.16 (ECMClassifier, atol=1e-10) and of Splink 5.0.0 (em_convergence=1e-8),
    # which agree to five digits.
    counts = [64310, 12604, 5833, 1222, 2607, 571, 235, 115, 1731, 333, 134, 70, 59, 28, 13, 135]
    model = fit(np.array(counts), 300, 10_000)
    np.testing.assert_allclose(model.m, [0.95837, 0.89714, 0.76629, 0.65448], atol=3e-5)
    np.testing.assert_allclose(model.u, [0.164818, 0.083405, 0.039324, 0.025660], atol=1e-6)
    assert model.prior == pytest.approx(0.0034216, abs=1e-6)


def test_likelihood_never_falls() -> None:
    rng = np.random.default_rng(2)
    for d in (1, 2, 3, 5):
        agrees = (np.arange(2**d)[:, None] >> np.arange(d) & 1).astype(bool)
        for _ in range(5):
            share = rng.dirichlet(np.full(2**d, 0.3))
            start = *rng.uniform(0.01, 0.99, (2, d)), rng.uniform(0.01, 0.5)
            likelihood = [fit_mixture(agrees, share, *start, 0.0, k)[3] for k in range(1, 100)]
            assert np.diff(likelihood).min() > -1e-13
            assert likelihood[-1] > likelihood[0]


@pytest.mark.parametrize("bounds", [(1, 0), (0.05, 0), (0.02, 0.1), (1, 0.3), (1e-4, 0)])
def test_links_are_those_of_all_pairs(counting: str, bounds: tuple[float, float]) -> None:
    original, masked = noisy(150, (6, 12, 25, 40), 0.2, 3)
    patterns = pair_patterns(original, masked)
    model = fit(np.bincount(patterns.ravel(), None, 16), 150, 10_000)
    result = linked(
        original, masked, list(original), false_match=bounds[0], false_nonmatch=bounds[1]
    )
    rate, claimed = brute_force(patterns, model.m, model.u, bounds)
    assert result.rate == pytest.approx(rate)
    assert result.low == result.high == result.rate
    said = "" if claimed == 150 else f"; {claimed} links were claimed"
    assert result.note == f"all records were tried{said}"
    assert (claimed == 150) == (bounds[0] >= 0.05 and bounds[1] == 0)


def test_columns_that_weigh_the_same_are_ties() -> None:
    # Record 0 agrees with one masked record in the first column, with another in the second. Both
    # columns have the same counts, so that neither link is better. Record 1 agrees with none.
    original = pd.DataFrame({"x": [1, 2, 3, 4, 5, 6], "y": [1, 2, 3, 4, 5, 6]})
    masked = pd.DataFrame({"x": [1, 9, 3, 4, 5, 6], "y": [9, 1, 3, 4, 5, 6]})
    result = linked(original, masked, ["x", "y"])
    assert (result.correct, result.certain) == (pytest.approx(4 + 1 / 2 + 1 / 6), 4)


def test_bounds_of_errors_are_monotone() -> None:
    original, masked = noisy(400, (6, 12, 25, 40), 0.3, 5)
    rates = [
        [
            linked(original, masked, list(original), false_match=upper, false_nonmatch=lower).rate
            for upper in (0, 1e-5, 1e-3, 1e-2, 0.1, 1)
        ]
        for lower in (0, 0.01, 0.1, 0.3, 0.8, 1)
    ]
    assert (np.diff(rates, axis=1) >= 0).all()
    assert (np.diff(rates, axis=0) <= 0).all()
    assert np.ptp(rates[0]) > 1
    assert rates[0][0] == rates[-1][-1] == 0


def test_bounds_of_errors_hold() -> None:
    model = fit(np.array([80, 10, 12, 1, 9, 1, 2, 11]), 11, 1_000)
    ranks = model.ranks()
    every = (np.arange(8)[:, None] >> np.arange(3) & 1).astype(bool)
    of_match, of_other = (np.where(every, p, 1 - p).prod(axis=1) for p in (model.m, model.u))
    for bound in (0.0, 0.001, 0.01, 0.05, 0.2, 0.5, 1.0):
        links = model.links(ranks, bound, 0)[ranks]
        assert of_other[links].sum() <= bound + 1e-9
        assert links.all() == (bound == 1)
        links = model.links(ranks, 1, bound)[ranks]
        assert of_match[~links].sum() <= bound + 1e-9


@pytest.mark.parametrize("d", [1, 2, 5])
def test_data_that_is_not_masked(counting: str, d: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.random((200, d))).rename(columns=str)
    result = linked(frame, frame, list(frame))
    assert (result.rate, result.certain, result.columns) == (100, 200, d)
    fives = pd.DataFrame(np.repeat(frame.to_numpy(), 5, axis=0), columns=frame.columns)
    result = linked(fives, fives, list(fives))
    assert (result.rate, result.certain) == (pytest.approx(20), 0)


def test_data_that_tells_nothing(counting: str) -> None:
    same = pd.DataFrame({"x": np.full(80, 3), "y": 1.5})
    other = same + 1
    for masked in (same, other, same.assign(x=4)):
        result = linked(same, masked, ["x", "y"], false_match=0.01)
        assert result.rate == pytest.approx(100 / 80)
        assert "links are left to chance" in result.note
    one = same.iloc[:1]
    assert linked(one, one, ["x"]).rate == 100
    # A column that tells nothing changes nothing.
    original, masked = noisy(80, (6, 12, 25), 0.2, 3)
    more = linked(original.assign(c=1), masked.assign(c=2), [*original, "c"])
    assert more.rate == linked(original, masked, list(original)).rate


def test_microaggregated_data(tied: pd.DataFrame) -> None:
    frame = tied[["age", "hours", "income"]].iloc[:500]
    masked = frame.sdc.microaggregate(["age", "hours"], k=3)
    patterns = pair_patterns(frame, masked)
    model = fit(np.bincount(patterns.ravel(), None, 8), 500, 10_000)
    result = linked(frame, masked, list(frame))
    assert result.rate == pytest.approx(brute_force(patterns, model.m, model.u)[0])
    more = linked(frame, frame, list(frame)).rate
    assert 0 < result.rate < more
    # Means of different values are none of them: nothing agrees.
    distinct = sdc_dask.datasets.uniform(500, 2).compute()
    result = linked(distinct, distinct.sdc.microaggregate(["x0", "x1"], k=5), ["x0", "x1"])
    assert result.rate == pytest.approx(100 / 500)


def test_dask_equals_pandas(scheduler: str) -> None:
    original, masked = noisy(900, (6, 12, 25), 0.3, 11)
    lazy, other = (dd.from_pandas(each, npartitions=7) for each in (original, masked))
    columns = list(original)
    for options in (
        {},
        {"false_match": 0.02, "sample": 150, "random_state": 4},
        {"tolerance": 0.1, "sample": 150, "random_state": 4},
    ):
        expected = linked(original, masked, columns, **options)
        assert linked(lazy, other, columns, **options) == expected


def test_empty_partitions() -> None:
    original, masked = noisy(100, (6, 12, 25), 0.3, 11)
    lazy, other = (dd.from_pandas(each, npartitions=2) for each in (original, masked))
    columns = list(original)
    empty = dd.concat([lazy.partitions[:1].query("x0 > 99"), lazy])
    assert linked(empty, dd.concat([empty.partitions[:1], other]), columns) == (
        linked(original, masked, columns)
    )


def test_samples() -> None:
    original, masked = noisy(3_000, (6, 12, 25), 0.2, 13)
    columns = list(original)
    everything = linked(original, masked, columns)
    assert linked(original, masked, columns, sample=5_000) == everything
    first, again, second = (
        linked(original, masked, columns, sample=800, random_state=seed) for seed in (1, 1, 2)
    )
    assert first == again != second
    assert first.tried == len(draw_rows(3_000, 800, 1)) == 800
    assert "a random sample of 800 of 3,000 records was tried; weights are" in first.note
    assert first.low < first.rate < first.high
    assert first.low < everything.rate < first.high
    # One record, always the same: EM does not converge on every record that a fresh draw may give.
    assert linked(original, masked, columns, sample=1, random_state=1).tried == 1


def test_drawn_rows() -> None:
    rows = draw_rows(1_000, 300, 5)
    assert len(np.unique(rows)) == 300
    assert (np.diff(rows) > 0).all()
    assert rows[0] >= 0
    assert rows[-1] < 1_000
    np.testing.assert_array_equal(draw_rows(10, None, 5), np.arange(10))


def test_bad_arguments() -> None:
    frame = pd.DataFrame({f"x{j}": [1.0, 2.0, 3.0] for j in range(17)})
    with pytest.raises(ValueError, match=r"at most 16 columns, received 17"):
        linked(frame, frame, list(frame))
    with pytest.raises(ValueError, match="unit must be one of 'value', 'deviation'"):
        linked(frame, frame, ["x0"], unit="percent")
    for options, message in (
        ({"tolerance": -1}, "tolerance must be a number of at least 0"),
        ({"tolerance": np.inf}, "tolerance must be a number of at least 0"),
        ({"false_match": 1.5}, "false_match must be a number of at least 0 and at most 1"),
        ({"false_nonmatch": -0.1}, "false_nonmatch must be a number"),
        ({"sample": 0}, "sample must be at least 1"),
        ({"max_iterations": 0}, "max_iterations must be at least 1"),
        ({"random_state": 3}, "random_state has a meaning with sample alone"),
    ):
        with pytest.raises(ValueError, match=message):
            linked(frame, frame, ["x0"], **options)
    with pytest.raises(TypeError, match="sample must be a whole number"):
        linked(frame, frame, ["x0"], sample=0.5)
    with pytest.raises(KeyError, match="does not have: 'y'"):
        linked(frame, frame, ["y"])
    with pytest.raises(ValueError, match="no records"):
        linked(frame.iloc[:0], frame.iloc[:0], ["x0"])


@pytest.mark.parametrize("npartitions", [None, 2])
def test_bad_values(npartitions: int | None) -> None:
    good = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 3.0, 4.0]})
    missing = pd.DataFrame({"x": [1.0, np.nan, 3.0, np.nan], "y": [1.0, 2.0, 3.0, 4.0]})
    infinite = missing.fillna(np.inf)
    large = pd.DataFrame({"x": [1, 2, 3, 2**60], "y": 1})
    if npartitions:
        good, missing, infinite, large = (
            dd.from_pandas(each, npartitions=npartitions)
            for each in (good, missing, infinite, large)
        )
    for bad, what in ((missing, r"missing cells"), (infinite, "infinite values")):
        with pytest.raises(ValueError, match=rf"original frame has {what} in columns: 'x' \(2\)"):
            linked(bad, good, ["x", "y"])
        with pytest.raises(ValueError, match=rf"masked frame has {what} in columns: 'x' \(2\)"):
            linked(good, bad, ["x", "y"])
    with pytest.raises(ValueError, match=r"float64 cannot hold exactly in columns: 'x' \(1\)"):
        linked(large, good, ["x", "y"])


def test_frames_that_do_not_zip(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, _ = noisy(100, (6, 12), 0.0, 0)
    with pytest.raises(ValueError, match="99 rows against 100"):
        linked(frame, frame.iloc[1:], ["x0", "x1"])
    with pytest.raises(TypeError, match="pandas with pandas"):
        linked(frame, dd.from_pandas(frame, npartitions=2), ["x0"])
    monkeypatch.setattr(module, "MOST_RECORDS", 99)
    with pytest.raises(ValueError, match=r"100 records are more than 99\. Pass a sample"):
        linked(frame, frame, ["x0"], tolerance=0.1)
    assert linked(frame, frame, ["x0"], tolerance=0.1, sample=5).tried == 5


def test_frames_that_change_between_passes() -> None:
    frame, _ = noisy(100, (6, 12), 0.0, 0)
    calls = []

    def shorter(part: pd.DataFrame) -> pd.DataFrame:
        calls.append(1)
        return part.iloc[len(calls) :]

    lazy = dd.from_pandas(frame, npartitions=1).map_partitions(shorter, meta=frame.iloc[:0])
    with pytest.raises(ValueError, match="other rows than"):
        linked(lazy, lazy, ["x0", "x1"])


def test_classes_that_are_not_the_matches() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({name: rng.integers(0, 40, 2_000) for name in "abcd"})
    frame["e"] = frame["a"] // 2  # agrees wherever `a` does
    hardly = "times too"
    assert hardly not in linked(frame, frame, list("bcd")).note
    masked = frame.assign(**{name: frame[name] + 0.5 for name in "bcd"})
    masked["a"] = frame["a"].sample(frac=1, random_state=1).to_numpy()
    masked["e"] = masked["a"] // 2
    found = linked(frame, masked, list(frame))
    assert hardly in found.note
    assert found.rate < 1


def test_estimates_that_do_not_converge_are_told() -> None:
    original, masked = noisy(300, (6, 12, 25), 0.3, 11)
    with pytest.warns(UserWarning, match="EM did not converge in 2 steps"):
        result = linked(original, masked, list(original), max_iterations=2)
    assert "EM did not converge in 2 steps" in result.note


def test_census_comes_near_published_linkage(census: pd.DataFrame) -> None:
    frame = census[sorted(census)]  # the order of the thesis, table 2.5
    for p, published in ((4, 42.92), (10, 6.03)):  # table 4.3
        masked = frame.sdc.rank_swap(list(frame), p, random_state=0)
        # Of two columns to half of them: one column alone links next to nothing.
        rates = [linked(frame, masked, list(frame)[:r], tolerance=0.1).rate for r in range(2, 8)]
        assert np.mean(rates) == pytest.approx(published, abs=5)
