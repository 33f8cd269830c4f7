"""The methods of microaggregation: published examples, and what each must hold."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask import aggregation, grouping
from sdc_dask.aggregation import power, sigmoid, threshold
from sdc_dask.masking.microaggregation import METHODS

# For all of the module: a filter that is set in one thread may be taken back in another, where
# pandas sets its own.
pytestmark = pytest.mark.filterwarnings("ignore:fuzzy microaggregation does not guarantee")

# The example data set of tables 2.2 to 2.4 of J. Nin's thesis.
EXAMPLE = pd.DataFrame({"a": [1, 2, 3, 6, 7, 8, 9], "b": [4, 15, 5, 17, 6, 18, 16]})

PARAMETERS: dict[str, dict[str, Any]] = {
    "vmdav": {"gain": 0.5},
    "weighted_mean": {"weights": [0.5, 0.2, 0.3]},
    "owa": {"measure": power(2)},
    "choquet": {"measure": [0, 0.2, 0.3, 0.6, 0.3, 0.5, 0.7, 1]},
    "twofold": {"measure": (threshold(0.4), sigmoid(0.5))},
}


def parameters(method: str) -> dict[str, Any]:
    """Parameters for a group of three columns."""
    return {"method": method, **PARAMETERS.get(method, {})}


def columns_for(method: str, columns: list[str]) -> list:
    return grouping.individual(columns) if method == "optimal" else columns


@pytest.fixture
def people() -> pd.DataFrame:
    """Columns of several kinds with many ties, and strata."""
    rng = np.random.default_rng(8)
    n = 1_500
    return pd.DataFrame(
        {
            "age": rng.integers(16, 90, n),
            "income": np.round(rng.lognormal(8, 1, n), -1),
            "hours": rng.choice([0.0, 20.0, 37.5, 40.0], n).astype("float32"),
            "region": rng.choice(["north", "south", "east"], n, p=[0.6, 0.3, 0.1]),
        },
        index=pd.Index(np.arange(n) * 2 + 5, name="id"),
    )


NUMBERS = ["age", "income", "hours"]


# Published examples


def test_table_2_2_optimal_univariate() -> None:
    masked = EXAMPLE.sdc.microaggregate([["a"], ["b"]], 2, method="optimal")
    assert masked["a"].tolist() == [2, 2, 2, 6.5, 6.5, 8.5, 8.5]
    assert masked["b"].tolist() == [5, 15.5, 5, 17.5, 5, 17.5, 15.5]


def test_table_2_3_principal_component_of_values_as_they_are() -> None:
    masked = EXAMPLE.sdc.microaggregate(["a", "b"], 2, method="pcp", standardize=False)
    assert masked["a"].round(2).tolist() == [3.67, 4.0, 3.67, 4.0, 3.67, 8.5, 8.5]
    assert masked["b"].round(2).tolist() == [5.0, 16.0, 5.0, 16.0, 5.0, 17.0, 17.0]


def test_table_2_3_zscores() -> None:
    masked = EXAMPLE.sdc.microaggregate(["a", "b"], 2, method="zscores")
    assert masked["a"].round(2).tolist() == [2.0, 4.5, 2.0, 7.67, 4.5, 7.67, 7.67]
    assert masked["b"].round(2).tolist() == [4.5, 10.5, 4.5, 17.0, 10.5, 17.0, 17.0]


def test_table_2_4_mdav_column_by_column() -> None:
    masked = EXAMPLE.sdc.microaggregate([["a"], ["b"]], 2, method="mdav", blocking=None)
    assert masked["a"].round(2).tolist() == [1.5, 1.5, 5.33, 5.33, 5.33, 8.5, 8.5]
    assert masked["b"].round(2).tolist() == [4.5, 12.33, 4.5, 17.5, 12.33, 17.5, 12.33]


def circle() -> pd.DataFrame:
    """20 points on the circle, in two pairs of equal attributes."""
    angles = np.pi / 20 * np.array([1, 3, 5, 7, 9])
    points = [
        (u * np.cos(angle), v * np.sin(angle))
        for angle in angles
        for u, v in itertools.product((1, -1), repeat=2)
    ]
    x, y = np.array(points).T
    return pd.DataFrame({"a1": x, "a2": y, "a3": x, "a4": y})


def sphere() -> pd.DataFrame:
    """200 points on the sphere, in three triples of equal attributes."""
    angles = np.pi / 20 * np.array([1, 3, 5, 7, 9])
    points = [
        (u * np.cos(p) * np.cos(t), v * np.cos(p) * np.sin(t), w * np.sin(p))
        for t, p in itertools.product(angles, repeat=2)
        for u, v, w in itertools.product((1, -1), repeat=3)
    ]
    return pd.DataFrame(np.tile(points, 3), columns=[f"a{j}" for j in range(1, 10)])


def test_correlated_attributes_on_the_circle_lose_nothing_and_protect_nothing() -> None:
    frame = circle()
    groups = grouping.correlated(frame, list(frame), 2)
    assert groups == [["a1", "a3"], ["a2", "a4"]]
    masked = frame.sdc.microaggregate(groups, 2)
    assert frame.sdc.sse(masked).sse < 1e-25
    assert masked.sdc.group_anonymity(groups).k_mean[-1] == 1.0
    groups = grouping.spread(frame, list(frame), 2)
    assert groups == [["a1", "a2"], ["a3", "a4"]]
    masked = frame.sdc.microaggregate(groups, 2)
    assert frame.sdc.sse(masked).sse > 1
    assert masked.sdc.group_anonymity(groups).k_mean[-1] >= 2.0


def test_correlated_attributes_on_the_sphere() -> None:
    frame = sphere()
    groups = grouping.correlated(frame, list(frame), 3)
    assert groups == [["a1", "a4", "a7"], ["a2", "a5", "a8"], ["a3", "a6", "a9"]]
    masked = frame.sdc.microaggregate(groups, 4)
    spread = grouping.spread(frame, list(frame), 3)
    others = frame.sdc.microaggregate(spread, 4)
    assert frame.sdc.sse(masked).sse < frame.sdc.sse(others).sse
    assert masked.sdc.group_anonymity(groups).k_mean[-1] == 1.0
    assert others.sdc.group_anonymity(spread).k_mean[-1] >= 4.0


# What every method must hold


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("blocking", ["auto", "tree"])
def test_groups_means_and_rows(
    method: str, blocking: str, people: pd.DataFrame, smallest_class: Callable[..., int]
) -> None:
    columns = columns_for(method, NUMBERS)
    limit = {"max_block": 200} if blocking == "tree" else {}
    masked = people.sdc.microaggregate(columns, 7, blocking=blocking, **limit, **parameters(method))
    for group in columns if method == "optimal" else [columns]:
        assert smallest_class(masked, list(group)) >= 7
    means = people[NUMBERS].astype(float).mean()
    np.testing.assert_allclose(masked[NUMBERS].astype(float).mean(), means, rtol=1e-6)
    pd.testing.assert_series_equal(masked["region"], people["region"])
    assert masked.index.equals(people.index)
    assert not masked[NUMBERS].equals(people[NUMBERS])


@pytest.mark.parametrize(
    ("method", "npartitions"),
    [*itertools.product(METHODS, [6]), ("mdav", 1), ("pcp", 1), ("pcp", 11)],
)
@pytest.mark.long_on_cluster
def test_dask_equals_pandas(
    method: str, npartitions: int, scheduler: str, people: pd.DataFrame
) -> None:
    columns = columns_for(method, NUMBERS)
    options = {"by": "region", **parameters(method)}
    expected = people[[*NUMBERS, "region"]].sdc.microaggregate(columns, 7, **options)
    lazy = dd.from_pandas(people, npartitions=npartitions)
    result = lazy.sdc.microaggregate(columns, 7, **options).compute()
    pd.testing.assert_frame_equal(result[NUMBERS], expected[NUMBERS], check_exact=True)


@pytest.mark.parametrize("method", METHODS)
def test_groups_never_cross_strata(method: str, people: pd.DataFrame) -> None:
    columns = columns_for(method, NUMBERS)
    masked = people.sdc.microaggregate(columns, 7, by="region", **parameters(method))
    for region, part in people.groupby("region"):
        found = masked.loc[part.index, NUMBERS].astype(float).mean()
        np.testing.assert_allclose(found, part[NUMBERS].astype(float).mean(), rtol=1e-6)
        reached = masked.loc[part.index].sdc.anonymity(
            NUMBERS[:1] if method == "optimal" else NUMBERS
        )
        assert reached.k_min >= 7, region


@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name][0]])
def test_missing_cells_stay_missing(method: str, people: pd.DataFrame) -> None:
    people.loc[people.index[::9], "income"] = np.nan
    people.loc[people.index[::50], ["age", "income", "hours"]] = np.nan
    columns = columns_for(method, NUMBERS)
    options = {"missing": "separate", **parameters(method)}
    if method == "choquet":
        with pytest.raises(ValueError, match="a measure that is an array has no values"):
            people.sdc.microaggregate(columns, 7, **options)
        options["measure"] = power(2)
    expected = people.sdc.microaggregate(columns, 7, **options)
    assert np.array_equal(expected[NUMBERS].isna(), people[NUMBERS].isna())
    reached = expected.sdc.anonymity(["income"] if method == "optimal" else NUMBERS)
    assert reached.k_min >= 7
    lazy = dd.from_pandas(people[NUMBERS], npartitions=5)
    result = lazy.sdc.microaggregate(columns, 7, **options).compute()
    pd.testing.assert_frame_equal(result, expected[NUMBERS], check_exact=True)


@settings(deadline=None, max_examples=25)
@given(
    n=st.integers(2, 60),
    k=st.integers(2, 9),
    npartitions=st.integers(1, 9),
    method=st.sampled_from(["optimal", "pcp", "zscores", "sugeno"]),
    tied=st.booleans(),
    seed=st.integers(0, 99),
)
@pytest.mark.soak
def test_small_frames_in_many_pieces(
    n: int, k: int, npartitions: int, method: str, tied: bool, seed: int
) -> None:
    # Partitions are smaller than groups here, so that a group runs through several.
    k = min(k, n)
    rng = np.random.default_rng(seed)
    values = rng.integers(0, 4, (n, 2)) if tied else rng.normal(size=(n, 2))
    frame = pd.DataFrame(values, columns=["x", "y"])
    columns = columns_for(method, ["x", "y"])
    expected = frame.sdc.microaggregate(columns, k, method=method)
    lazy = dd.from_pandas(frame, npartitions=npartitions)
    result = lazy.sdc.microaggregate(columns, k, method=method).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    for group in columns if method == "optimal" else [columns]:
        assert expected.sdc.anonymity(group).k_min >= k


def test_equal_records_are_sorted_into_even_partitions() -> None:
    # All sort keys are equal, so that nothing but the row can tell partitions apart.
    frame = pd.DataFrame({"x": np.zeros(5_000)})
    lazy = dd.from_pandas(frame, npartitions=10)
    masked = lazy.sdc.microaggregate(["x"], 3, method="optimal")
    assert (masked.compute()["x"] == 0).all()


# Optimal, and the orders


def test_optimal_is_never_worse_than_other_methods(census: pd.DataFrame) -> None:
    for column in census.columns[:6]:
        loss = {
            method: census.sdc.sse(
                census.sdc.microaggregate([column], 5, method=method), [column]
            ).sse
            for method in ("optimal", "mdav", "vmdav")
        }
        assert loss["optimal"] <= min(loss.values()) + 1e-12


def test_projections_of_one_column_are_optimal(people: pd.DataFrame) -> None:
    expected = people.sdc.microaggregate(["income"], 7, method="optimal")
    for method in ("pcp", "zscores", "mean"):
        result = people.sdc.microaggregate(["income"], 7, method=method)
        pd.testing.assert_frame_equal(result, expected, check_exact=True)


def test_zscores_is_the_order_of_standardized_sums(people: pd.DataFrame) -> None:
    frame = people[NUMBERS].astype(float)
    frame["z"] = ((frame - frame.mean()) / frame.std(ddof=0)).sum(axis=1)
    masked = people.sdc.microaggregate(NUMBERS, 7, method="zscores")
    groups = masked.groupby(NUMBERS)
    spans = frame.groupby(groups.ngroup())["z"].agg(["min", "max", "size"]).sort_values("min")
    assert (spans["max"].to_numpy()[:-1] <= spans["min"].to_numpy()[1:] + 1e-9).all()
    assert spans["size"].min() >= 7


def test_pcp_is_the_order_of_the_first_component(census: pd.DataFrame) -> None:
    columns = list(census.columns[:4])
    standard = (census[columns] - census[columns].mean()) / census[columns].std(ddof=0)
    _, _, axes = np.linalg.svd(standard, full_matrices=False)
    component = standard.to_numpy() @ axes[0]
    masked = census.sdc.microaggregate(columns, 5, method="pcp")
    spans = pd.Series(component).groupby(masked.groupby(columns).ngroup().to_numpy())
    spans = spans.agg(["min", "max"]).sort_values("min")
    assert (spans["max"].to_numpy()[:-1] <= spans["min"].to_numpy()[1:] + 1e-9).all()


def test_aggregations_are_the_orders_of_their_functions(people: pd.DataFrame) -> None:
    scaled = aggregation.scale_to_unit(people[NUMBERS].to_numpy(float))
    orders = {
        "mean": aggregation.arithmetic_mean(scaled),
        "weighted_mean": aggregation.weighted_mean(scaled, [0.5, 0.2, 0.3]),
        "owa": aggregation.owa(scaled, power(2)),
        "choquet": aggregation.choquet(scaled, PARAMETERS["choquet"]["measure"]),
        "sugeno": aggregation.sugeno(scaled, power(1)),
        "twofold": aggregation.twofold(scaled, threshold(0.4), sigmoid(0.5)),
    }
    for method, projected in orders.items():
        masked = people.sdc.microaggregate(NUMBERS, 7, **parameters(method))
        number = masked.groupby(NUMBERS).ngroup().to_numpy()
        spans = pd.Series(projected).groupby(number).agg(["min", "max"]).sort_values(["min", "max"])
        assert (spans["max"].to_numpy()[:-1] <= spans["min"].to_numpy()[1:]).all(), method


def test_twofold_takes_one_measure_for_both(people: pd.DataFrame) -> None:
    one = people.sdc.microaggregate(NUMBERS, 7, method="twofold", measure=power(2))
    two = people.sdc.microaggregate(NUMBERS, 7, method="twofold", measure=(power(2), power(2)))
    other = people.sdc.microaggregate(NUMBERS, 7, method="twofold", measure=(power(2), power(1)))
    pd.testing.assert_frame_equal(one, two)
    assert not one.equals(other)


def test_a_block_order_is_not_the_order_of_all(people: pd.DataFrame) -> None:
    whole = people.sdc.microaggregate(NUMBERS, 7, method="pcp")
    blocks = people.sdc.blocks(NUMBERS, 7, max_block=100)
    tree = people.sdc.microaggregate(NUMBERS, 7, method="pcp", blocking=blocks)
    assert people.sdc.sse(tree).sse < people.sdc.sse(whole).sse


@pytest.mark.parametrize("method", METHODS)
def test_extreme_and_badly_scaled_values(method: str) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "huge": rng.normal(size=90) * 1e307,
            "tiny": rng.normal(size=90) * 1e-307,
            "far": 1e9 + rng.normal(size=90),
        }
    )
    columns = columns_for(method, list(frame))
    masked = frame.sdc.microaggregate(columns, 4, **parameters(method))
    assert np.isfinite(masked).all().all()
    for group in columns if method == "optimal" else [columns]:
        assert masked.sdc.anonymity(group).k_min >= 4
    assert masked["far"].mean() == pytest.approx(frame["far"].mean(), rel=1e-15)


# Vectors of all values


def in_steps(values: np.ndarray, kappa: int) -> dict[str, np.ndarray]:
    """Mic1D-kappa as it is published, step by step."""
    vector = values.ravel()
    cells = np.arange(vector.size)

    def scale(vector: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        order = np.lexsort((cells, vector))
        run = np.empty(vector.size, int)
        run[order] = cells // kappa
        by_run = pd.Series(vector).groupby(run)
        low, high = by_run.transform("min").to_numpy(), by_run.transform("max").to_numpy()
        with np.errstate(invalid="ignore"):
            return np.where(high > low, (vector - low) / (high - low), 0.5), low, high, run

    scaled, low, high, _ = scale(vector)
    again, low_again, high_again, run = scale(scaled)
    mean = pd.Series(again).groupby(run).transform("mean").to_numpy()
    spread = high_again > low_again
    back = np.where(spread, low_again + mean * (high_again - low_again), low_again)
    masked = low + back * (high - low)
    return {"scaled": scaled, "masked": masked.reshape(values.shape)}


# The example data set of table 3.8 of the thesis.
PERSONS = pd.DataFrame(
    {
        "age": [23, 23, 55, 80, 30],
        "height": [159, 177, 173, 155, 180],
        "weight": [52, 75, 79, 55, 70],
        "income": [12000, 7000, 50000, 5000, 30000],
    }
)


def test_examples_3_1_to_3_4_of_mic1d(monkeypatch: pytest.MonkeyPatch) -> None:
    from sdc_dask.masking import mic1d

    pieces: list[np.ndarray] = []
    scaled: list[np.ndarray] = []
    forward, backward = mic1d.ScaleRuns.forward, mic1d.ScaleRuns.backward

    def see_forward(self: Any, piece: Any, state: Any) -> Any:
        pieces.append(piece.values[:, 0].copy())
        return forward(self, piece, state)

    def see_backward(self: Any, piece: Any, kept: Any, state: Any) -> Any:
        result = backward(self, piece, kept, state)
        scaled.append(result[0])
        return result

    monkeypatch.setattr(mic1d.ScaleRuns, "forward", see_forward)
    monkeypatch.setattr(mic1d.ScaleRuns, "backward", see_backward)
    masked = PERSONS.sdc.mic1d(list(PERSONS), 8)
    # Examples 3.1 and 3.2: all values in one vector, sorted.
    assert pieces[0].tolist() == [
        *[23, 23, 30, 52, 55, 55, 70, 75, 79, 80, 155, 159, 173, 177, 180],
        *[5000, 7000, 12000, 30000, 50000],
    ]
    # Example 3.3: runs of 8, 8 and 4 values, by their bounds.
    assert scaled[0][:, 1].tolist() == [23] * 8 + [79] * 8 + [7000] * 4
    assert scaled[0][:, 2].tolist() == [75] * 8 + [5000] * 8 + [50000] * 4
    # Example 3.4, where 0.015, 0.016, 0.019, 0.020 are printed with two or three digits, the
    # third of them cut off, and 12000 of [7000, 50000] as 0.12.
    published = [
        *[0, 0, 0.13, 0.56, 0.62, 0.62, 0.90, 1],
        *[0, 0.0002, 0.015, 0.016, 0.019, 0.020, 0.020, 1],
        *[0, 0.12, 0.53, 1],
    ]
    np.testing.assert_allclose(scaled[0][:, 0], published, atol=0.006)
    np.testing.assert_allclose(scaled[0][8:15, 0], published[8:15], atol=0.0006)
    expected = in_steps(PERSONS.to_numpy(float), 8)["masked"]
    np.testing.assert_allclose(masked, expected, rtol=1e-12)


# Every number of partitions, and every kappa.
MIC1D_QUICK = [(1, 4_500), (4, 700), (13, 70), (13, 4_500)]


@pytest.mark.parametrize(
    ("npartitions", "kappa"),
    [
        pytest.param(*case, marks=() if case in MIC1D_QUICK else pytest.mark.soak)
        for case in itertools.product([1, 4, 13], [70, 700, 4_500])
    ],
)
@pytest.mark.long_on_cluster
def test_mic1d_of_dask_equals_pandas_equals_the_steps(
    kappa: int, npartitions: int, scheduler: str, people: pd.DataFrame
) -> None:
    columns = [*NUMBERS]
    frame = people[columns]
    expected = frame.sdc.mic1d(columns, kappa)
    steps = in_steps(frame.to_numpy(float), kappa)["masked"]
    np.testing.assert_allclose(expected, steps, rtol=1e-6)
    result = dd.from_pandas(frame, npartitions=npartitions).sdc.mic1d(columns, kappa).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)


@pytest.mark.parametrize("npartitions", [1, 7])
def test_mic1d_within_strata(npartitions: int, people: pd.DataFrame) -> None:
    masked = people.sdc.mic1d(NUMBERS, 89, by="region")
    for _, part in people.groupby("region"):
        alone = part.sdc.mic1d(NUMBERS, 89)
        pd.testing.assert_frame_equal(masked.loc[part.index], alone, check_exact=True)
    lazy = dd.from_pandas(people, npartitions=npartitions).sdc.mic1d(NUMBERS, 89, by="region")
    pd.testing.assert_frame_equal(lazy.compute()[NUMBERS], masked[NUMBERS], check_exact=True)


def test_mic1d_of_extremes() -> None:
    frame = pd.DataFrame({"x": [1.7e308, -1.7e308, 0.0, 5.0], "y": [1e-300, 2.0, 3.0, -0.0]})
    masked = frame.sdc.mic1d(["x", "y"], 4)
    assert np.isfinite(masked).all().all()


def test_mic1d_warns_of_a_small_kappa() -> None:
    frame = pd.DataFrame({"x": np.arange(20.0), "y": np.arange(20.0) * 100 + 7})
    with pytest.warns(UserWarning, match="above the root of the number of values"):
        masked = frame.sdc.mic1d(["x", "y"], 2)
    # Every value is the smallest or the largest of its run of two.
    pd.testing.assert_frame_equal(masked, frame)


# Fuzzy clusters


def fuzzy(frame: Any, *args: Any, **options: Any) -> Any:
    return frame.sdc.fuzzy_microaggregate(*args, **options)


@pytest.mark.parametrize("npartitions", [1, 4, 13])
@pytest.mark.long_on_cluster
def test_fuzzy_of_dask_equals_pandas(
    npartitions: int, scheduler: str, people: pd.DataFrame
) -> None:
    options = {"m1": 1.5, "m2": 1.8, "max_block": 200, "by": "region", "random_state": 3}
    groups = [["age", "income"], ["hours"]]
    expected = fuzzy(people, groups, 6, **options)
    result = fuzzy(dd.from_pandas(people, npartitions=npartitions), groups, 6, **options).compute()
    pd.testing.assert_frame_equal(result[NUMBERS], expected[NUMBERS], check_exact=True)
    pd.testing.assert_series_equal(expected["region"], people["region"])


def test_fuzzy_warns_once_that_k_is_not_guaranteed(people: pd.DataFrame) -> None:
    with pytest.warns(UserWarning) as caught:
        masked = people.sdc.fuzzy_microaggregate(NUMBERS, 6, 1.5, 2)
    assert len(caught) == 1
    assert "does not guarantee groups of k=6" in str(caught[0].message)
    assert caught[0].filename == __file__
    assert masked.sdc.anonymity(NUMBERS, k=6).below_k > 0


def test_fuzzy_chance(people: pd.DataFrame) -> None:
    first = fuzzy(people, NUMBERS, 6, m1=1.5, m2=2, random_state=1)
    pd.testing.assert_frame_equal(first, fuzzy(people, NUMBERS, 6, m1=1.5, m2=2, random_state=1))
    assert not first.equals(fuzzy(people, NUMBERS, 6, m1=1.5, m2=2, random_state=2))
    fresh = [fuzzy(people, NUMBERS, 6, m1=1.5, m2=2) for _ in range(2)]
    assert not fresh[0].equals(fresh[1])
    # A lazy frame that is computed twice has drawn once.
    lazy = fuzzy(dd.from_pandas(people, npartitions=3), NUMBERS, 6, m1=1.5, m2=2)
    pd.testing.assert_frame_equal(lazy.compute(), lazy.compute())


def test_fuzzy_groups_of_columns_draw_independently(people: pd.DataFrame) -> None:
    frame = people[["income"]].assign(again=people["income"])
    masked = fuzzy(frame, [["income"], ["again"]], 6, m1=1.5, m2=2, random_state=1)
    assert not np.array_equal(masked["income"], masked["again"])


def test_the_seed_shows_nowhere(people: pd.DataFrame) -> None:
    seed = 918273645546372819
    lazy = fuzzy(dd.from_pandas(people, npartitions=2), NUMBERS, 6, m1=1.5, m2=2, random_state=seed)
    keys = " ".join(map(str, lazy.__dask_graph__()))
    assert str(seed) not in keys + repr(lazy) + str(lazy.compute().attrs)


def test_fuzzy_limits(people: pd.DataFrame) -> None:
    frame = people[NUMBERS].astype(float)
    # m1 = m2 large: all records become the mean.
    masked = fuzzy(frame, NUMBERS, 6, m1=np.inf, m2=np.inf, blocking=None, random_state=0)
    np.testing.assert_allclose(masked, np.tile(frame.mean(), (len(frame), 1)), rtol=1e-9)
    # m2 = 1: every record becomes the nearest of the centres that were released.
    masked = fuzzy(frame, NUMBERS, 6, m1=1.5, m2=1, blocking=None, random_state=0)
    scale = frame.std(ddof=0).to_numpy()
    centres = masked.drop_duplicates().to_numpy() / scale
    points = frame.to_numpy() / scale
    distance = ((points[:, None] - centres) ** 2).sum(2)
    own = ((points - masked.to_numpy() / scale) ** 2).sum(1)
    np.testing.assert_allclose(own, distance.min(1), atol=1e-9)
    # m2 large: any centre, all alike; the masked data has nothing to do with the original.
    masked = fuzzy(frame, NUMBERS, 6, m1=1.5, m2=np.inf, blocking=None, random_state=0)
    assert abs(np.corrcoef(masked["income"], frame["income"])[0, 1]) < 0.1


def test_helpers_are_found_at_the_top() -> None:
    assert sdc_dask.grouping is grouping
    assert sdc_dask.aggregation is aggregation
