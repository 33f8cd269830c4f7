"""Distance-based record linkage, against plain numpy and against published figures."""

from __future__ import annotations

from itertools import permutations
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask.kernels import neighbours
from sdc_dask.kernels.neighbours import (
    count_ties,
    distinct,
    search_tree,
    squared_distances,
    whiten,
)
from sdc_dask.risk.attacks import distance as module
from sdc_dask.risk.known import describe, known_columns
from sdc_dask.risk.linkage import Linkage, of_ties


def distance_linkage(original: Any, masked: Any, columns: list, **options: Any) -> Linkage:
    return original.sdc.linkage(masked, "distance", columns, **options)


def plain_ties(old: np.ndarray, new: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The t of every record, 0 for a wrong link, from all distances."""
    squares = np.zeros((len(old), len(new)))
    for j in range(old.shape[1]):
        squares += ((new[:, j] - old[:, j, None]) * weight[j]) ** 2
    least = squares.min(axis=1)
    ties = (squares == least[:, None]).sum(axis=1)
    return np.where(np.diag(squares) == least, ties, 0)


def plain_linkage(frame: pd.DataFrame, masked: pd.DataFrame, standardize: bool = True) -> tuple:
    """``correct`` and ``certain`` of all records."""
    old, new = (each.to_numpy(dtype="float64") for each in (frame, masked))
    scale = old.std(axis=0) if standardize else np.ones(old.shape[1])
    ties = plain_ties(old, new, 1 / np.where(scale > 0, scale, 1))
    return (1 / ties[ties > 0]).sum(), (ties == 1).sum()


def lazy(npartitions: int, *frames: pd.DataFrame) -> tuple[dd.DataFrame, ...]:
    return tuple(dd.from_pandas(frame, npartitions=npartitions) for frame in frames)


# The kernels


@given(st.data())
@settings(deadline=None, max_examples=30)
def test_count_ties_equals_all_distances(data: st.DataObject) -> None:
    n, d = data.draw(st.integers(1, 80)), data.draw(st.sampled_from([1, 2, 3, 9]))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    values = data.draw(st.sampled_from([2, 5, 1000]))
    old, new = rng.integers(0, values, (2, n, d)).astype(float)
    weight = rng.choice([0.3, 1.0, 1 / 7], d)
    found = count_ties(
        search_tree(distinct(new), weight), old, squared_distances(old, new, weight), weight
    )
    assert (np.maximum(found, 0) == plain_ties(old, new, weight)).all()


def test_unrolled_loops_count_the_same() -> None:
    rng = np.random.default_rng(0)
    old, new = rng.integers(0, 9, (2, 500, 3)).astype(float)
    weight = np.ones(3)
    tree, squares = search_tree(distinct(new), weight), squared_distances(old, new, weight)
    rows = np.arange(500)
    unrolled = neighbours._count_ties((0,) * 3, tree, old, rows, squares, weight)
    assert (unrolled == neighbours._count_ties((), tree, old, rows, squares, weight)).all()


def test_distinct_records_in_order_with_counts() -> None:
    rng = np.random.default_rng(0)
    points = rng.integers(0, 5, (2_000, 3)) / 4
    records = distinct(points)
    unique, first, counts = np.unique(points, axis=0, return_index=True, return_counts=True)
    order = np.argsort(first)
    assert (records.points == unique[order]).all()
    assert (records.counts == counts[order]).all()
    again = distinct(np.concatenate([records.points] * 2), np.concatenate([records.counts] * 2))
    assert (again.counts == 2 * records.counts).all()


def test_a_tree_without_records_and_without_points() -> None:
    nothing, weight = np.empty((0, 2)), np.ones(2)
    tree = search_tree(distinct(nothing), weight)
    assert count_ties(tree, np.zeros((3, 2)), np.ones(3), weight).tolist() == [0, 0, 0]
    assert (
        len(count_ties(search_tree(distinct(np.ones((3, 2))), weight), nothing, weight, weight))
        == 0
    )


def test_whitened_records_are_the_same_bits_in_every_array() -> None:
    rng = np.random.default_rng(0)
    points = rng.normal(size=(1_001, 5))
    factor = np.linalg.cholesky(np.cov(points.T))
    whole = whiten(points, factor)
    assert whole == pytest.approx(np.linalg.solve(factor, points.T).T)
    assert (whole[700:703] == whiten(points[700:703].copy(), factor)).all()


# Known answers


def test_ties_count_their_share(tied: pd.DataFrame) -> None:
    frame = tied[["age", "hours", "income"]].iloc[:1_000]
    swapped = frame.sdc.rank_swap(list(frame.columns), 3, random_state=0)
    rounded = frame.assign(income=frame["income"].round(-4), age=frame["age"] // 5 * 5)
    for masked in (swapped, rounded):
        for standardize in (True, False):
            result = distance_linkage(frame, masked, list(frame), standardize=standardize)
            correct, certain = plain_linkage(frame, masked, standardize)
            assert result.correct == pytest.approx(correct)
            assert (result.certain, result.tried, result.columns) == (certain, 1_000, 3)
            assert result.rate == result.low == result.high == pytest.approx(correct / 10)


def test_records_as_far_above_as_below_are_ties() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.integers(0, 10**6, 400) * 2, "y": rng.integers(0, 50, 400) * 2})
    masked = frame.copy()
    masked.loc[::2, "x"] += 1
    masked.loc[1::2] = masked.loc[::2].to_numpy() - [2, 0]  # pairs around an even number
    frame.loc[1::2] = frame.loc[::2].to_numpy()
    result = distance_linkage(frame, masked, ["x", "y"])
    assert (result.rate, result.certain) == (50, 0)


def test_groups_of_k_far_from_each_other_leave_one_in_k() -> None:
    rng = np.random.default_rng(0)
    centres = np.repeat(np.arange(50)[:, None] * [1.0, -1.0, 2.0], 4, axis=0)
    frame = pd.DataFrame(centres + rng.random((200, 3)) / 10, columns=["x", "y", "z"])
    masked = frame.sdc.microaggregate(["x", "y", "z"], 4)
    result = distance_linkage(frame, masked, ["x", "y", "z"])
    assert (result.rate, result.correct, result.certain) == (25, 50, 0)


def test_unmasked_and_constant_data() -> None:
    frame = sdc_dask.datasets.uniform(500, 3).compute()
    columns = list(frame)
    for distance in ("euclidean", "mahalanobis"):
        same = distance_linkage(frame, frame, columns, distance=distance)
        assert (same.rate, same.certain) == (100, 500)
        twice = pd.concat([frame, frame], ignore_index=True)
        assert distance_linkage(twice, twice, columns, distance=distance).rate == 50
        constant = distance_linkage(frame, frame * 0 + 7, columns, distance=distance)
        assert (constant.correct, constant.certain) == (pytest.approx(1), 0)
    assert distance_linkage(frame * 0, frame, columns).certain == 1
    one = distance_linkage(frame.iloc[:1], frame.iloc[1:2].set_index(frame.index[:1]), columns)
    assert (one.tried, one.rate, one.low, one.high) == (1, 100, 100, 100)


def test_records_that_were_not_masked_are_found_among_many_that_were() -> None:
    frame = pd.DataFrame({"x": np.random.default_rng(0).random(20_000)})
    masked = frame.assign(x=frame["x"] + (frame.index % 10 == 0))  # another mean and deviation
    assert distance_linkage(frame, masked, ["x"]).correct >= 18_000


@pytest.mark.parametrize("power", [-1_000, -500, 0, 500, 1_000])
def test_extreme_units_change_nothing(power: int) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(300, 2)), columns=["x", "y"])
    masked = frame + rng.normal(scale=0.1, size=frame.shape)
    for kind in ({}, {"standardize": False}, {"distance": "mahalanobis"}):
        expected = distance_linkage(frame, masked, ["x", "y"], **kind)
        scaled = [each.apply(lambda column: np.ldexp(column, power)) for each in (frame, masked)]
        assert distance_linkage(*scaled, ["x", "y"], **kind) == expected


def test_mahalanobis_equals_the_plain_formula() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(size=(400, 3)) @ rng.normal(size=(3, 3)), columns=list("xyz"))
    masked = frame + rng.normal(scale=0.3, size=frame.shape)
    old, new = frame.to_numpy(), masked.to_numpy()
    inverse = np.linalg.inv(np.cov(old.T, bias=True))
    gaps = new[None] - old[:, None]
    squares = np.einsum("abi,ij,abj->ab", gaps, inverse, gaps)
    right = int((squares.argmin(axis=1) == np.arange(400)).sum())
    result = distance_linkage(frame, masked, list("xyz"), distance="mahalanobis")
    assert 0 < right < 400
    assert (result.correct, result.attack) == (right, "mahalanobis distance")
    assert right != distance_linkage(frame, masked, list("xyz")).correct
    # A constant column has no part in it unless masking has changed it.
    wide = [each.assign(c=1.0) for each in (frame, masked)]
    assert distance_linkage(*wide, [*"xyz", "c"], distance="mahalanobis").correct == right


# Dask


@pytest.mark.long_on_cluster
def test_dask_equals_pandas(scheduler: str, tied: pd.DataFrame) -> None:
    columns = ["age", "hours", "income"]
    frame = tied.iloc[:2_000]
    masked = frame.sdc.rank_swap(columns, 1, random_state=0)
    some = {"sample": 300, "random_state": 3}
    for kind in (
        {},
        {"distance": "mahalanobis"},
        some,
        {**some, "distance": "mahalanobis"},
        {**some, "known": "all"},
        {"known": "all"},
    ):
        expected = distance_linkage(frame, masked, columns, **kind)
        assert 0 < expected.rate < 100
        assert expected.certain < expected.correct
        for npartitions in (1, 7):
            assert distance_linkage(*lazy(npartitions, frame, masked), columns, **kind) == expected


def test_sets_of_columns_that_do_not_fit_into_memory_together(
    tied: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = ["age", "hours", "income"]
    frame = tied.iloc[:500]
    masked = frame.sdc.rank_swap(columns, 1, random_state=0)
    expected = distance_linkage(frame, masked, columns, known="all")
    monkeypatch.setattr(module, "MOST_VALUES", 1_600)
    assert distance_linkage(frame, masked, columns, known="all") == expected


def test_empty_partitions_and_other_partitions_of_the_masked_frame() -> None:
    frame = sdc_dask.datasets.uniform(600, 2).compute().reset_index(drop=True)
    masked = frame.sdc.rank_swap(["x0", "x1"], 2, random_state=0)
    expected = [
        distance_linkage(frame.iloc[:150], masked.iloc[:150], ["x0", "x1"], **kind)
        for kind in ({}, {"sample": 50, "random_state": 0})
    ]
    parts = [each.loc[:149] for each in lazy(8, frame, masked)]
    empty = [
        dd.concat([part, each[each["x0"] < -1e9]])
        for part, each in zip(parts, lazy(2, frame, masked), strict=True)
    ]
    other = [lazy(3, frame.iloc[:150])[0], lazy(2, masked.iloc[:150])[0]]
    for pair in (parts, empty, other):
        assert distance_linkage(*pair, ["x0", "x1"]) == expected[0]
        assert distance_linkage(*pair, ["x0", "x1"], sample=50, random_state=0) == expected[1]


# Samples


def test_intervals_of_samples_cover_the_rate() -> None:
    frame = sdc_dask.datasets.uniform(1_000, 2).compute()
    swapped = frame.sdc.rank_swap(["x0", "x1"], 3, random_state=0)
    grouped = frame.sdc.microaggregate(["x0", "x1"], 3)
    for masked in (swapped, grouped):
        rate = distance_linkage(frame, masked, ["x0", "x1"]).rate
        samples = [
            distance_linkage(frame, masked, ["x0", "x1"], sample=200, random_state=seed)
            for seed in range(40)
        ]
        covered = [each.low <= rate <= each.high for each in samples]
        assert np.mean(covered) >= 0.9
        assert np.mean([each.rate for each in samples]) == pytest.approx(rate, rel=0.05)
        assert {each.tried for each in samples} == {200}
        assert len({each.correct for each in samples}) > 10


def test_a_sample_of_all_records_is_all_of_them() -> None:
    frame = sdc_dask.datasets.uniform(300, 2).compute()
    masked = frame.sdc.rank_swap(["x0", "x1"], 5, random_state=0)
    everything = distance_linkage(frame, masked, ["x0", "x1"])
    assert distance_linkage(frame, masked, ["x0", "x1"], sample=300) == everything
    most = distance_linkage(frame, masked, ["x0", "x1"], sample=299, random_state=0)
    assert most.note == "a random sample of 299 of 300 records was tried"
    assert most.high - most.low < 2
    assert most.low <= everything.rate <= most.high


def test_intervals_narrow_to_nothing_and_stay_within_0_and_100() -> None:
    none, every = (of_ties("", 1, {t: 50}, 1_000) for t in (0, 1))
    assert none.rate == none.low == 0 < none.high < 10
    assert every.rate == every.high == 100 > every.low > 90
    assert every.high - every.low == pytest.approx(none.high - none.low)
    # Wilson's interval of 12 out of 50, of an endless population.
    wilson = of_ties("", 1, {0: 38, 1: 12}, 10**15)
    assert (wilson.low, wilson.high) == (
        pytest.approx(14.3, abs=0.05),
        pytest.approx(37.4, abs=0.05),
    )


# One to one


def test_assignment_is_the_best_of_all_permutations() -> None:
    rng = np.random.default_rng(0)
    rights = set()
    for _ in range(20):
        frame = pd.DataFrame(rng.normal(size=(6, 2)), columns=["x", "y"])
        masked = frame + rng.normal(size=frame.shape)
        old, new = (each.to_numpy() / frame.std(ddof=0).to_numpy() for each in (frame, masked))
        best = min(permutations(range(6)), key=lambda order: ((old - new[list(order)]) ** 2).sum())
        result = distance_linkage(frame, masked, ["x", "y"], assignment=True)
        assert result.correct == sum(i == j for i, j in enumerate(best))
        assert distance_linkage(*lazy(3, frame, masked), ["x", "y"], assignment=True) == result
        rights.add(result.correct)
    assert len(rights) > 2


def test_assignment_shares_equal_records() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, 2.0, 10.0, 11.0, 30.0]})
    masked = pd.DataFrame({"x": [1.0, 1.0, 1.0, 10.5, 10.5, 30.0]})
    result = distance_linkage(frame, masked, ["x"], assignment=True)
    assert (result.correct, result.certain) == (3, 1)
    assert result.attack == "standardized euclidean distance, one to one"
    # Every masked record is taken once: the second original has to leave the first its own.
    moved = frame + 0.9
    assert distance_linkage(frame, moved, ["x"], assignment=True).correct == 6
    assert distance_linkage(frame, moved, ["x"]).correct < 6


# Published figures


def test_census_comes_near_published_linkage(census: pd.DataFrame) -> None:
    frame = census[sorted(census)]  # the order of the thesis, table 2.5

    def linked(masked: pd.DataFrame, sets: list, **kind: bool) -> float:
        return np.mean([distance_linkage(frame, masked, list(s), **kind).rate for s in sets])

    columns = list(frame)
    for p, published in ((2, 73.52), (4, 58.40)):  # table 4.3
        swapped = frame.sdc.rank_swap(columns, p, random_state=0)
        assert linked(swapped, known_columns(columns, "half")) == pytest.approx(published, abs=2)
    # Table 4.8 is that of distances in the units of the columns.
    for size, k, published in ((3, 5, 37.44), (3, 15, 22.75), (4, 5, 31.9), (4, 25, 11.2)):
        groups = [columns[i : i + size] for i in range(0, 12, size)]
        masked = frame.sdc.microaggregate(groups, k, blocking=None)
        sets = known_columns(columns, "groups", groups)
        assert linked(masked, sets, standardize=False) == pytest.approx(published, abs=2)
        assert linked(masked, sets) > 2 * published


# What is refused


def test_values_without_a_distance_are_refused(scheduler: str) -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [1.0, 2.0, 2.0, 5.0]})
    hole, infinite = frame.assign(x=[1.0, np.nan, np.nan, 4.0]), frame.assign(y=[1, 2, np.inf, 5])
    for kind in ({}, {"sample": 2, "random_state": 0}, {"assignment": True}):
        for pair in ((frame, hole), lazy(1, frame, hole)):
            with pytest.raises(ValueError, match=r"masked frame has missing cells in columns: 'x'"):
                distance_linkage(*pair, ["x", "y"], **kind)
        with pytest.raises(ValueError, match=r"missing cells in columns: 'x' \(2\)"):
            distance_linkage(*lazy(2, hole, frame), ["x", "y"], **kind)
        with pytest.raises(ValueError, match=r"masked frame has infinite values in columns: 'y'"):
            distance_linkage(frame, infinite, ["x", "y"], **kind)
        with pytest.raises(ValueError, match=r"infinite values in columns: 'y' \(1\)"):
            distance_linkage(infinite, frame, ["x", "y"], **kind)
        with pytest.raises(ValueError, match="exceeds float64"):
            distance_linkage(frame, frame * 1e200, ["x", "y"], **kind)
        with pytest.raises(ValueError, match="no records"):
            distance_linkage(frame.iloc[:0], frame.iloc[:0], ["x"], **kind)


def test_frames_that_do_not_zip_are_refused() -> None:
    frame = sdc_dask.datasets.uniform(100, 2).compute()
    for kind in ({}, {"sample": 10}, {"assignment": True}):
        with pytest.raises(ValueError, match="other rows than that of the original"):
            distance_linkage(frame, frame.iloc[:-1], ["x0"], **kind)
        with pytest.raises(TypeError, match="pandas with pandas"):
            distance_linkage(lazy(2, frame)[0], frame, ["x0"], **kind)
    with pytest.raises(KeyError, match="'x7'"):
        distance_linkage(frame, frame, ["x7"])
    with pytest.raises(ValueError, match="columns is empty"):
        distance_linkage(frame, frame, [])


def test_arguments_without_a_meaning_are_refused() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "name": ["a", "b"]})
    refused: list[tuple[type[Exception], str, dict]] = [
        (ValueError, "distance must be one of", {"distance": "manhattan"}),
        (
            ValueError,
            "standardize has no meaning",
            {"distance": "mahalanobis", "standardize": False},
        ),
        (TypeError, "standardize must be True or False", {"standardize": 1}),
        (TypeError, "assignment must be True or False", {"assignment": "yes"}),
        (ValueError, "sample must be at least 1", {"sample": 0}),
        (TypeError, "sample must be a whole number", {"sample": 0.5}),
        (ValueError, "sample has no meaning", {"sample": 1, "assignment": True}),
        (ValueError, "random_state has a meaning", {"random_state": 0}),
        (TypeError, "random_state must be None", {"random_state": "x", "sample": 1}),
    ]
    for error, text, kind in refused:
        with pytest.raises(error, match=text):
            distance_linkage(frame, frame, ["x"], **kind)
    with pytest.raises(TypeError, match="'name'"):
        distance_linkage(frame, frame, ["name"])


def test_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = sdc_dask.datasets.uniform(5_001, 1).compute()
    with pytest.raises(ValueError, match=r"5,000 records at most, received 5,001"):
        distance_linkage(frame, frame, ["x0"], assignment=True)
    monkeypatch.setattr(module, "MOST_VALUES", 1_000)
    one, other, few = lazy(9, frame, frame, frame.round(-2))
    with pytest.raises(ValueError, match=r"more than 1,000 different .* sample=10_000"):
        distance_linkage(one, other, ["x0"])
    assert distance_linkage(one, other, ["x0"], sample=10, random_state=0).rate == 100
    assert distance_linkage(one, few, ["x0"]).tried == 5_001


def test_linear_functions_have_no_mahalanobis_distance() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.integers(0, 1000, (200, 2)), columns=["wage", "other"])
    frame["total"] = frame["wage"] + frame["other"]
    with pytest.raises(ValueError, match=r"linear functions of those before them: 'total'\."):
        distance_linkage(frame, frame, ["wage", "other", "total"], distance="mahalanobis")
    assert distance_linkage(frame, frame, ["wage", "total"], distance="mahalanobis").rate > 99


def test_a_masked_frame_that_changes_is_noticed() -> None:
    frame = sdc_dask.datasets.uniform(200, 2).compute()
    rng = np.random.default_rng(0)

    def mask(part: pd.DataFrame) -> pd.DataFrame:
        return part + rng.random(part.shape) * 1e-6  # other values whenever it is asked for

    one, other = lazy(2, frame, frame)
    masked = other.map_partitions(mask, meta=frame.iloc[:0], enforce_metadata=False)
    for kind in ({}, {"sample": 50}):
        with pytest.raises(ValueError, match="other values when it was read again"):
            distance_linkage(one, masked, ["x0", "x1"], **kind)


# Columns that are known


def test_known_columns() -> None:
    letters = ["a", "b", "c", "d", "e"]
    assert known_columns(letters, "half") == [("a",), ("a", "b"), ("a", "b", "c")]
    assert known_columns(letters[:4], "half") == [("a",), ("a", "b")]
    assert known_columns(["a"], "half") == known_columns(["a"], "all") == [("a",)]
    assert known_columns(letters, "all")[-1] == tuple(letters)
    assert len(known_columns(letters, "all")) == 5
    groups = [["b", "a"], ["d"], ["c"]]
    assert known_columns(letters, "groups", groups) == [("b", "a", "d"), ("b", "a", "d", "c")]
    assert known_columns(letters, "groups", groups[:1]) == [("b", "a")]
    assert known_columns(letters, ["d", "b"]) == [("d", "b")]
    assert known_columns(letters, None) == [tuple(letters)]


@pytest.mark.parametrize(
    ("count", "known", "said"),
    [
        (3, None, "all 3 columns"),
        (1, None, "the only column"),
        (3, ["a", "c"], "2 of 3 columns: a, c"),
        (13, "half", "half: the first 1 to 7 of 13 columns, mean of 7 attacks"),
        (2, "half", "half: the first 1 of 2 columns, one attack"),
        (3, "all", "all: the first 1 to 3 of 3 columns, mean of 3 attacks"),
    ],
)
def test_known_columns_in_words(count: int, known: Any, said: str) -> None:
    columns = list("abcdefghijklm")[:count]
    assert describe(columns, known, known_columns(columns, known)) == said


def test_known_columns_that_are_refused() -> None:
    refused: list[tuple[type[Exception], str, tuple]] = [
        (ValueError, "known must be 'half'", (["a"], "some")),
        (ValueError, "not among the masked ones: 'z'", (["a"], ["z"])),
        (ValueError, "not among the masked ones: 'z'", (["a"], "groups", [["a"], ["z"]])),
        (ValueError, "known='groups' alone", (["a"], "all", [["a"]])),
        (ValueError, "needs groups", (["a"], "groups")),
        (TypeError, "list of lists", (["a"], "groups", [])),
        (TypeError, "a group must be a list", (["a"], "groups", ["a"])),
        (ValueError, "one group", (["a", "b"], "groups", [["a"], ["a", "b"]])),
        (ValueError, "known is empty", (["a"], [])),
        (ValueError, "more than once", (["a", "a"], "all")),
        (TypeError, "columns must be a list", ("a", "all")),
        (TypeError, "must name columns, received list for a name", ([["a"]], "all")),
    ]
    for error, text, received in refused:
        with pytest.raises(error, match=text):
            known_columns(*received)


def test_results_are_plain_numbers() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 5.0]})
    result = distance_linkage(frame, frame.sdc.microaggregate(["x"], 2), ["x"])
    kinds = [str, int, int, float, int, float, float, float, str]
    assert [type(value) for value in result.to_dict().values()] == kinds
    assert result == Linkage(
        "standardized euclidean distance", 1, 4, 2.0, 0, 50.0, 50.0, 50.0, "all records were tried"
    )
