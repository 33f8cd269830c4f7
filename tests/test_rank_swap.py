"""df.sdc.rank_swap: values move, within limits, and nothing else happens to them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdc_dask.kernels.swaps import BucketSwaps, DistributionSwaps, Sources, WindowSwaps, window_of
from sdc_dask.release.cluster import local_cluster

# The method and what it needs, for frames of some hundred rows.
METHODS: list[dict[str, Any]] = [
    {"p": 5},
    {"p": 5, "method": "distribution"},
    {"method": "buckets", "buckets": 8},
]


def kinds(n: int = 900) -> pd.DataFrame:
    """A frame with columns of every kind that has an order."""
    rng = np.random.default_rng(4)
    gaps = rng.random(n) < 0.1
    return pd.DataFrame(
        {
            "number": np.where(gaps, np.nan, rng.normal(size=n)),
            "small": rng.normal(size=n).astype("float32"),
            "whole": rng.integers(-5, 60, n),
            "large": rng.integers(2**60, 2**64, n, dtype="uint64"),
            "nullable": pd.array(np.where(gaps, None, rng.integers(0, 99, n)), dtype="Int64"),
            "arrow": pd.array(rng.integers(0, 99, n), dtype=pd.ArrowDtype(pa.int32())),
            "text": pd.array(
                np.where(gaps, None, [f"name {i % 300}" for i in range(n)]), dtype="string[pyarrow]"
            ),
            "kind": pd.Categorical(
                rng.choice(["low", "high", "mid"], n),
                categories=["low", "mid", "high"],
                ordered=True,
            ),
            "when": pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 9_999, n), "h"),
            "day": pd.array(
                (pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 999, n), "D")).date,
                dtype=pd.ArrowDtype(pa.date32()),
            ),
            "flag": pd.array(rng.choice([True, False], n), dtype="boolean"),
            "region": pd.array(rng.choice(["north", "south"], n), dtype="string[pyarrow]"),
        },
        index=pd.Index(np.arange(n) * 3 + 1, name="id"),
    )


ALL = [column for column in kinds(2).columns if column != "region"]


def ranks(values: np.ndarray) -> np.ndarray:
    """Rank of every value, ties in row order."""
    result = np.empty(len(values), int)
    result[np.argsort(values, kind="stable")] = np.arange(len(values))
    return result


def admissible(original: np.ndarray, masked: np.ndarray, window: int) -> bool:
    """Whether standard rank swapping of distinct values can have this result.

    Every rank has exchanged its value with one at most `window` ranks away; if their number is
    odd, the lowest rank and two others of the first window have gone round instead.
    """
    order = np.argsort(original)
    sources = np.searchsorted(original[order], masked[order])
    if not np.array_equal(original[order][sources], masked[order]):
        return False
    places = np.arange(len(sources))
    if (np.abs(sources - places) > window).any():
        return False
    if len(sources) % 2 == 1 and window > 1:
        round_trip = [0, sources[0], sources[sources[0]]]
        if sources[round_trip[2]] != 0 or len(set(round_trip)) < 3 or max(round_trip) > window:
            return False
        others = np.setdiff1d(places, round_trip)
    else:
        others = places[: len(places) - len(places) % 2]
    return bool((sources[sources[others]] == others).all() and (sources[others] != others).all())


# The example of table 2.1 of J. Nin's thesis: ten records, and a window of two ranks.
ORIGINAL = np.array(
    [
        [8, 6, 10, 7, 9, 2, 1, 4, 5, 3],
        [9, 7, 3, 1, 4, 2, 10, 8, 5, 6],
        [1, 10, 4, 2, 6, 8, 3, 7, 5, 9],
        [3, 2, 1, 6, 4, 8, 9, 10, 5, 7],
    ]
)
PUBLISHED = np.array(
    [
        [10, 5, 8, 9, 7, 4, 3, 2, 6, 1],
        [10, 5, 4, 2, 3, 1, 9, 6, 7, 8],
        [3, 8, 2, 4, 5, 10, 1, 9, 6, 7],
        [5, 1, 2, 4, 6, 10, 7, 8, 3, 9],
    ]
)


@pytest.mark.parametrize("column", range(4))
def test_the_published_example_is_admissible(column: int) -> None:
    original, published = ORIGINAL[column], PUBLISHED[column]
    assert admissible(original, published, 2)
    assert not admissible(original, original, 2)
    assert not admissible(original, published, 1)
    spoiled = published.copy()
    spoiled[[0, 1]] = spoiled[[1, 0]]
    assert not admissible(original, spoiled, 2)


def test_the_published_example_is_drawn() -> None:
    # Two ranks of ten are p = 20 percent. Each of its columns is one of the results of chance.
    rng = np.random.default_rng(0)
    results = {tuple(WindowSwaps(10, 2, rng).draw(10)) for _ in range(500)}
    for original, published in zip(ORIGINAL, PUBLISHED, strict=True):
        assert tuple(published[np.argsort(original)] - 1) in results
        swapped = pd.DataFrame({"x": original}).sdc.rank_swap(["x"], 20)
        assert admissible(original, swapped["x"].to_numpy(), 2)


# The swaps alone


def drawn(swaps: Sources, *pieces: int) -> np.ndarray:
    """The sources of ranks, drawn in pieces."""
    return np.concatenate([swaps.draw(count) for count in pieces])


@settings(deadline=None, max_examples=60)
@given(n=st.integers(2, 300), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_standard_swaps(n: int, share: float, seed: int) -> None:
    window = 1 + int(share * (n - 2))
    whole, pieces = (WindowSwaps(n, window, np.random.default_rng(seed)) for _ in range(2))
    sources = whole.draw(n)
    assert admissible(np.arange(n), sources, window)
    cut = seed % (n + 1)
    assert np.array_equal(drawn(pieces, cut, n - cut), sources)


@settings(deadline=None, max_examples=60)
@given(n=st.integers(1, 3_000), buckets=st.integers(1, 300), seed=st.integers(0, 10**6))
def test_other_swaps_leave_nothing_where_it_was(n: int, buckets: int, seed: int) -> None:
    for make in (
        lambda: DistributionSwaps(n, 0.1 + seed % 100, np.random.default_rng(seed)),
        lambda: BucketSwaps(n, min(n, buckets), np.random.default_rng(seed)),
    ):
        sources = make().draw(n)
        assert np.array_equal(np.sort(sources), np.arange(n))
        assert n == 1 or (sources != np.arange(n)).all()
        # All but the three that go round are exchanges.
        assert (sources[sources] != np.arange(n)).sum() == (3 if n % 2 and n > 1 else 0)
        cut = seed % (n + 1)
        assert np.array_equal(drawn(make(), cut // 2, cut - cut // 2, n - cut), sources)


def test_partners_in_the_window_are_all_alike() -> None:
    rng = np.random.default_rng(0)
    first = [WindowSwaps(10, 4, rng).draw(10)[0] for _ in range(20_000)]
    counts = np.bincount(first, minlength=5)
    assert counts[0] == 0
    assert ((counts[1:] - 5_000) ** 2 / 5_000).sum() < 20  # chi-square, 3 degrees of freedom


def test_every_distance_occurs() -> None:
    n = 12
    distances: dict[str, set[int]] = {"distribution": set(), "buckets": set()}
    for seed in range(3_000):
        rng = np.random.default_rng(seed)
        distances["distribution"] |= set(
            np.abs(DistributionSwaps(n, 60, rng).draw(n) - np.arange(n))
        )
        distances["buckets"] |= set(np.abs(BucketSwaps(n, 4, rng).draw(n) - np.arange(n)))
    assert all(found == set(range(1, n)) for found in distances.values())


def test_distances_of_the_distribution() -> None:
    n, p = 100_000, 10
    sources = DistributionSwaps(n, p, np.random.default_rng(1)).draw(n)
    # Of ranks that were visited first, far from the ends.
    visited = np.flatnonzero(sources > np.arange(n))
    visited = visited[visited < n // 2]
    distance = (sources - np.arange(n))[visited] / n * 100
    # Half of the normal distribution lies above p / 2; what is below 0 finds a neighbour.
    assert np.mean(distance > p / 2) == pytest.approx(0.5, abs=0.06)
    assert distance.max() > 1.5 * p


def test_probabilities_of_buckets() -> None:
    n, buckets = 1_000, 5
    chosen = np.zeros(buckets)
    for seed in range(4_000):
        chosen[BucketSwaps(n, buckets, np.random.default_rng(seed)).draw(1)[0] // 200] += 1
    np.testing.assert_allclose(chosen / 4_000, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 16], atol=0.03)


def test_window_of_percentages() -> None:
    assert window_of(1_000, 2.3) == 23
    assert window_of(10, 100) == 9
    assert window_of(50, 1) == 0


# Frames


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("by", [None, "region"])
def test_a_column_holds_exactly_its_values(options: dict[str, Any], by: str | None) -> None:
    frame = kinds()
    swapped = frame.sdc.rank_swap(ALL, by=by, **options)
    assert (swapped.dtypes == frame.dtypes).all()
    assert swapped.index.equals(frame.index)
    pd.testing.assert_series_equal(swapped["region"], frame["region"])
    parts = [frame.index] if by is None else frame.groupby(by).groups.values()
    for column, rows in itertools.product(ALL, parts):
        before, after = frame.loc[rows, column], swapped.loc[rows, column]
        assert np.array_equal(before.isna(), after.isna())
        pd.testing.assert_series_equal(
            before.sort_values(ignore_index=True), after.sort_values(ignore_index=True)
        )
        assert not after.equals(before)


@pytest.mark.filterwarnings("ignore:p=0.5 is a percentage")
@pytest.mark.parametrize("p", [0.5, 3, 20, 100])
def test_no_value_moves_farther_than_p(p: float) -> None:
    frame = kinds()[["small", "whole"]]
    window = window_of(len(frame), p)
    swapped = frame.sdc.rank_swap(["small", "whole"], p)
    for column in frame:
        values = frame[column].to_numpy()
        rank, order = ranks(values), np.sort(values)
        # The ranks at which the new value occurs, the nearest of which counts.
        low = np.searchsorted(order, swapped[column], side="left")
        high = np.searchsorted(order, swapped[column], side="right") - 1
        distance = np.maximum(0, np.maximum(low - rank, rank - high))
        assert distance.max() <= window
    assert admissible(frame["small"].to_numpy(), swapped["small"].to_numpy(), window)


@pytest.mark.parametrize("options", METHODS)
def test_moments_stay_and_correlations_fall(options: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=4_000)
    frame = pd.DataFrame({"x": x, "y": x + 0.1 * rng.normal(size=4_000)})
    swapped = frame.sdc.rank_swap(["x", "y"], random_state=0, **options)
    np.testing.assert_allclose(swapped.mean(), frame.mean(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(swapped.var(), frame.var(), rtol=1e-12)
    assert swapped.corr().loc["x", "y"] < frame.corr().loc["x", "y"]


def test_more_is_lost_as_p_grows() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=4_000)
    frame = pd.DataFrame({"x": x, "y": x + 0.1 * rng.normal(size=4_000)})
    for method in ("standard", "distribution"):
        correlations = [
            frame.sdc.rank_swap(["x", "y"], p, method=method, random_state=0).corr().loc["x", "y"]
            for p in (1, 5, 20, 60)
        ]
        assert correlations == sorted(correlations, reverse=True)


def test_blocks_keep_relations_that_ranks_of_all_lose() -> None:
    rng = np.random.default_rng(3)
    angle = rng.uniform(0, 2 * np.pi, 4_000)
    frame = pd.DataFrame({"x": np.cos(angle), "y": np.sin(angle)})
    off_circle = {}
    for blocking in (None, "tree"):
        swapped = frame.sdc.rank_swap(["x", "y"], 20, blocking=blocking, random_state=1)
        off_circle[blocking] = (np.hypot(swapped["x"], swapped["y"]) - 1).abs().mean()
    assert off_circle["tree"] < off_circle[None] / 2


@pytest.mark.parametrize("options", METHODS)
@pytest.mark.parametrize("blocking", [None, "tree"])
@pytest.mark.parametrize("npartitions", [1, 6])
def test_dask_equals_pandas(
    options: dict[str, Any], blocking: str | None, npartitions: int, scheduler: str
) -> None:
    frame = kinds()
    columns = ["number", "small", "whole"] if blocking else ["number", "text"]
    arguments = {"by": "region", "blocking": blocking, "random_state": 6, **options}
    expected = frame.sdc.rank_swap(columns, **arguments)
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    swapped = lazy.sdc.rank_swap(columns, **arguments)
    pd.testing.assert_frame_equal(swapped.compute(), expected, check_exact=True)
    pd.testing.assert_frame_equal(swapped._meta, expected.iloc[:0])
    assert swapped.divisions == lazy.divisions


@pytest.mark.long_on_cluster
def test_dask_equals_pandas_for_every_kind(scheduler: str) -> None:
    frame = kinds()
    expected = frame.sdc.rank_swap(ALL, 5, random_state=6)
    swapped = dd.from_pandas(frame, npartitions=2).sdc.rank_swap(ALL, 5, random_state=6)
    pd.testing.assert_frame_equal(swapped.compute(), expected, check_exact=True)


@pytest.mark.parametrize(
    ("workers", "partitionings", "methods"),
    [pytest.param(w, [1, 7, 32], METHODS, marks=pytest.mark.soak) for w in (1, 2, 4)],
)
def test_one_answer_on_clusters_of_any_size(
    workers: int, partitionings: list[int], methods: list[dict[str, Any]]
) -> None:
    frame = kinds(6_000)
    columns = ["number", "text"]
    arguments = [{"by": "region", "random_state": 9, **options} for options in methods]
    expected = [frame.sdc.rank_swap(columns, **each) for each in arguments]
    with local_cluster(workers, "1GiB"), dask.config.set({"dataframe.shuffle.method": None}):
        for npartitions, (each, result) in itertools.product(
            partitionings, zip(arguments, expected, strict=True)
        ):
            lazy = dd.from_pandas(frame, npartitions=npartitions)
            swapped = lazy.sdc.rank_swap(columns, **each).compute()
            pd.testing.assert_frame_equal(swapped, result, check_exact=True)


@settings(deadline=None, max_examples=8)
@given(
    n=st.integers(2, 40),
    npartitions=st.integers(1, 9),
    options=st.sampled_from([{"p": 60}, {"p": 70, "method": "distribution"}]),
    seed=st.integers(0, 99),
)
@pytest.mark.soak
def test_small_frames_in_many_pieces(
    n: int, npartitions: int, options: dict[str, Any], seed: int
) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"x": rng.integers(0, 5, n), "y": rng.normal(size=n)})
    expected = frame.sdc.rank_swap(["x", "y"], random_state=seed, **options)
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    result = lazy.sdc.rank_swap(["x", "y"], random_state=seed, **options).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)


# Chance


def test_chance() -> None:
    frame = kinds()[["small"]].assign(again=kinds()["small"])
    first = frame.sdc.rank_swap(["small", "again"], 5, random_state=1)
    # Columns draw independently, even if they are equal.
    assert not first["small"].equals(first["again"].rename("small"))
    pd.testing.assert_frame_equal(first, frame.sdc.rank_swap(["small", "again"], 5, random_state=1))
    assert not first.equals(frame.sdc.rank_swap(["small", "again"], 5, random_state=2))
    fresh = [frame.sdc.rank_swap(["small"], 5) for _ in range(2)]
    assert not fresh[0].equals(fresh[1])
    lazy = dd.from_pandas(frame, npartitions=3).sdc.rank_swap(["small"], 5)
    pd.testing.assert_frame_equal(lazy.compute(), lazy.compute())


def test_the_seed_shows_nowhere() -> None:
    seed = 918273645546372819
    lazy = dd.from_pandas(kinds(), npartitions=2).sdc.rank_swap(["small"], 5, random_state=seed)
    keys = " ".join(map(str, lazy.__dask_graph__()))
    assert str(seed) not in keys + repr(lazy)
    with pytest.raises(ValueError, match="at least 0") as caught:
        kinds().sdc.rank_swap(["small"], 5, random_state=-seed)
    assert str(seed) not in str(caught.value)


# Extremes


@pytest.mark.parametrize("npartitions", [None, 5])
def test_extremes_are_averaged_before(npartitions: int | None) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.lognormal(8, 2, 1_000), "i": rng.integers(0, 10**6, 1_000)})
    expected = frame.copy()
    for column in frame:
        order = np.argsort(frame[column].to_numpy(), kind="stable")
        for extremes in (order[:20], order[-50:]):
            mean = frame[column].iloc[extremes].mean()
            expected.loc[extremes, column] = round(mean) if column == "i" else mean
    source = frame if npartitions is None else dd.from_pandas(frame, npartitions=npartitions)
    swapped = source.sdc.rank_swap(["x", "i"], 5, bottom=2, top=5, random_state=1)
    swapped = swapped if npartitions is None else swapped.compute()
    assert (swapped.dtypes == frame.dtypes).all()
    for column in frame:
        np.testing.assert_allclose(np.sort(swapped[column]), np.sort(expected[column]), rtol=1e-14)
        assert swapped[column].max() < frame[column].max()
    plain = frame.sdc.rank_swap(["x"], 5, random_state=1)
    assert plain["x"].max() == frame["x"].max()


# What is refused


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({"method": "buckets", "buckets": 901}, ValueError, "must not exceed the number of values"),
        (
            {"p": 0.05},
            ValueError,
            "less than one rank of column 'small'.*for 5 percent pass p=5. Use at least 0.12",
        ),
        ({"p": 5, "blocking": "tree", "max_block": 10}, ValueError, "must be at least 20"),
        ({"p": 5, "top": 0.1}, ValueError, "top=0.1 percent are fewer than two values"),
    ],
)
@pytest.mark.parametrize("npartitions", [None, 3])
def test_bad_arguments(
    arguments: dict[str, Any], error: type[Exception], text: str, npartitions: int | None
) -> None:
    frame = kinds()[["small"]]
    source = frame if npartitions is None else dd.from_pandas(frame, npartitions=npartitions)
    with pytest.raises(error, match=text):
        source.sdc.rank_swap(["small"], **arguments)


@pytest.mark.parametrize(
    ("frame", "columns", "error", "text"),
    [
        (kinds(0), ["small"], ValueError, "no records"),
        (kinds(1), ["small"], ValueError, "a single value of column 'small'"),
        (pd.DataFrame({"x": [None, None]}, dtype="float64"), ["x"], ValueError, "has no values"),
        (pd.DataFrame({"x": pd.Categorical(["a", "b"])}), ["x"], TypeError, "without an order"),
        (pd.DataFrame({"x": [1j, 2j]}), ["x"], TypeError, "have no order"),
        (
            pd.DataFrame({"x": pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))}),
            ["x"],
            TypeError,
            "have no order",
        ),
        (pd.DataFrame({"x": ["a", 2]}, dtype=object), ["x"], TypeError, "other values than texts"),
    ],
)
def test_bad_frames(frame: pd.DataFrame, columns: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        frame.sdc.rank_swap(columns, 60)


def test_missing_cells_are_an_error_on_request() -> None:
    with pytest.raises(ValueError, match=r"missing cells in columns: 'number' \(\d+\)"):
        kinds().sdc.rank_swap(["number", "whole"], 5, missing="error")
    with pytest.raises(ValueError, match=r"missing cells in columns: 'number' \(\d+\).*'keep'"):
        kinds().sdc.rank_swap(["number", "whole"], 5, missing="error", blocking="tree")


def test_a_stratum_of_one_is_refused() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "by": ["a", "a", "b"]})
    with pytest.raises(ValueError, match="in 1 of 2 strata: it cannot be swapped"):
        frame.sdc.rank_swap(["x"], 60, by="by")


def test_texts_cannot_be_swapped_in_blocks() -> None:
    with pytest.raises(TypeError, match="column 'text' has dtype"):
        kinds().sdc.rank_swap(["text"], 5, blocking="tree")


def test_blocks_of_other_columns_are_refused() -> None:
    frame = kinds()
    blocks = frame.sdc.blocks(["small"], 20, max_block=100)
    with pytest.raises(ValueError, match="blocks of other columns"):
        frame.sdc.rank_swap(["whole"], 5, blocking=blocks)
    swapped = frame.sdc.rank_swap(["small"], 5, blocking=blocks)
    assert np.array_equal(np.sort(swapped["small"]), np.sort(frame["small"]))


@pytest.mark.parametrize("change", [-1, 1])
@pytest.mark.parametrize("options", METHODS)
def test_a_frame_that_changes_is_found(change: int, options: dict[str, Any]) -> None:
    calls = itertools.count()

    def part(number: int, name: str) -> pd.DataFrame:
        # The lengths that are counted first are not those that come later.
        rows = 100 + (change if next(calls) > 3 else 0)
        return pd.DataFrame({"x": np.random.default_rng(number).normal(size=rows)})

    # Dask takes functions of equal code for equal, unless an argument tells them apart.
    meta = pd.DataFrame({"x": np.empty(0)})
    frame = dd.from_map(part, [0, 1], name=f"{change} {options}", meta=meta)
    with (
        dask.config.set(scheduler="sync"),
        pytest.raises(RuntimeError, match="not the same each time"),
    ):
        frame.sdc.rank_swap(["x"], **options).compute()


def test_texts_among_numbers_are_not_shown(tmp_path: Path) -> None:
    for name, values in (("one", [1.0, 2.0, 3.0]), ("two", ["Zx9canaryQ7", "a", "b"])):
        pd.DataFrame({"x": values}).to_parquet(tmp_path / f"{name}.parquet")
    files = [tmp_path / "one.parquet", tmp_path / "two.parquet"]
    with pytest.raises(TypeError, match="column 'x' holds other values than its dtype") as caught:
        dd.read_parquet(files).sdc.rank_swap(["x"], 50).compute()
    assert "Zx9canaryQ7" not in str(caught.value)


def test_columns_of_objects_keep_their_dtype() -> None:
    frame = pd.DataFrame({"x": pd.Series(list("fedcba"), dtype=object)})
    swapped = frame.sdc.rank_swap(["x"], 50)
    assert swapped["x"].dtype == object
    assert sorted(swapped["x"]) == list("abcdef")


def test_in_blocks_nothing_stays_though_few_values_are_there() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({"x": rng.normal(size=2_000), "y": rng.normal(size=2_000)})
    frame.loc[rng.random(2_000) < 0.97, "y"] = np.nan
    swapped = frame.sdc.rank_swap(["x", "y"], 5, blocking="tree", max_block=1_000)
    present = frame["y"].notna()
    assert present.sum() > 30
    assert (swapped.loc[present, "y"] != frame.loc[present, "y"]).all()


def test_blocks_that_are_too_small_for_p_are_refused() -> None:
    frame = kinds()
    blocks = frame.sdc.blocks(["small", "whole"], k=3, max_block=30)
    with pytest.raises(ValueError, match="p=5 needs 20: make the blocks with k=20"):
        frame.sdc.rank_swap(["small", "whole"], 5, blocking=blocks)
    enough = frame.sdc.blocks(["small", "whole"], k=20, max_block=60)
    swapped = frame.sdc.rank_swap(["small", "whole"], 5, blocking=enough)
    assert not swapped["small"].equals(frame["small"])
