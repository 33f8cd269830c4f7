"""l-diversity and t-closeness, against pandas, linear programs and published examples."""

from __future__ import annotations

import json
import math

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from sdc_dask.risk import diversity as module
from sdc_dask.risk.anonymity import anonymity
from sdc_dask.risk.diversity import AttributeDisclosure, attribute_disclosure, diversity

KNOWN = ["zip", "sex", "age"]
NUMBERS = ["income", "single", "hours", "unsigned", "arrow", "sparse"]
DATES = ["day", "zoned", "month", "length", "date32"]
TEXTS = ["illness", "object", "category", "grade", "owner", "decimal"]
CLOSE = {"a": {3, 5, 9}, "b": {6, 8, 11}, "c": {4, 7, 10}}
CANARY = "Zx9canaryQ7"


@pytest.fixture(scope="module")
def people() -> pd.DataFrame:
    """Confidential columns of every kind, with ties, and with missing cells in most of them."""
    rng = np.random.default_rng(7)
    n = 700
    day = pd.to_datetime("2020-01-01") + pd.to_timedelta(rng.integers(0, 60, n), unit="D")
    illness = rng.choice(["flu", "cold", "gout", "ulcer"], n, p=[0.6, 0.2, 0.15, 0.05])
    hours = rng.choice([0, 20, 38, 40], n)
    frame = pd.DataFrame(
        {
            "zip": rng.choice(["10", "20", "30", None], n),
            "sex": pd.Categorical(rng.choice(["f", "m"], n)),
            "age": rng.choice([20.0, 30.0, 40.0, np.nan], n),
            "income": np.round(rng.lognormal(8, 1, n), -2) * rng.choice([1, 0, -1], n),
            "single": rng.normal(size=n).astype("float32"),
            "hours": pd.array(hours, dtype="Int64"),
            "unsigned": hours.astype(np.uint64) + np.uint64(2**63),
            # pandas tells the zeros of Arrow apart by their signs, which it does nowhere else.
            "arrow": pd.array(np.round(rng.normal(size=n), 1) + 0.0, dtype="double[pyarrow]"),
            "sparse": pd.arrays.SparseArray(np.where(hours > 30, hours, 0)),
            "day": day,
            "zoned": day.tz_localize("Europe/Madrid"),
            "month": day.to_period("M"),
            "length": day - day.min(),
            "date32": pd.Series(day).astype("date32[pyarrow]"),
            "illness": illness,
            "object": pd.Series(illness, dtype=object),
            "category": pd.Categorical(illness),
            "grade": pd.Categorical(illness, ["flu", "ulcer", "gout", "cold"], ordered=True),
            "owner": rng.random(n) < 0.3,
            "decimal": pd.Series(hours).astype(pd.ArrowDtype(pa.decimal128(21, 2))),
        }
    )
    for column in ["income", "hours", "arrow", "day", "month", "illness", "object", "category"]:
        frame.loc[rng.random(n) < 0.1, column] = None
    return frame


def shares(frame: pd.DataFrame, columns: list, name: str, ordered: bool) -> tuple:
    """Return counts of values in the frame and in its classes by pandas; the last is missing."""
    values = frame[name]
    if isinstance(values.dtype, pd.SparseDtype):
        values = values.sparse.to_dense()
    codes, different = pd.factorize(values, sort=ordered)
    codes = np.where(codes < 0, len(different), codes)
    number = frame.groupby(columns, dropna=False, observed=True).ngroup()
    counts = pd.crosstab(number, codes).reindex(columns=range(len(different) + 1), fill_value=0)
    return counts.to_numpy(), counts.to_numpy().sum(axis=0)


def distance(p: np.ndarray, q: np.ndarray, ordered: bool) -> float:
    """Return the distance of two distributions, of which the last entry is that of missing."""
    p, q = p / p.sum(), q / q.sum()
    if not ordered:
        return float(np.abs(p - q).sum() / 2)
    between = 0.0
    if p[-1] < 1 and q[-1] < 1 and len(p) > 2:
        present, all_present = p[:-1] / (1 - p[-1]), q[:-1] / (1 - q[-1])
        between = np.abs(np.cumsum(present - all_present)).sum() / (len(p) - 2)
    return float(abs(p[-1] - q[-1]) + (1 - max(p[-1], q[-1])) * between)


def plain(frame: pd.DataFrame, columns: list, name: str, ordered: bool) -> tuple:
    """Measure a confidential column class by class."""
    classes, whole = shares(frame, columns, name, ordered)
    many = (classes > 0).sum(axis=1)
    entropies = []
    for each in classes:
        share = each[each > 0] / each.sum()
        entropies.append(-(share * np.log(share)).sum())
    return (
        name,
        len(classes),
        many.min(),
        many.mean(),
        (many == 1).sum(),
        np.exp(min(entropies)),
        max(distance(each, whole, ordered) for each in classes),
    )


def lazy(frame: pd.DataFrame, npartitions: int) -> dd.DataFrame:
    return dd.from_pandas(frame, npartitions=npartitions, sort=False)


@pytest.mark.parametrize("known", [["sex"], ["zip", "age"], KNOWN])
def test_equals_pandas(people: pd.DataFrame, known: list[str]) -> None:
    found = diversity(people, known, [*NUMBERS, *DATES, *TEXTS])
    for result in found:
        expected = plain(people, known, result.column, result.column not in TEXTS)
        assert tuple(result.to_dict().values())[1:] == pytest.approx(expected[1:], rel=1e-12)
        assert result.column == expected[0]


@pytest.mark.parametrize("npartitions", [1, 5, 18])
def test_dask_equals_pandas(people: pd.DataFrame, npartitions: int) -> None:
    names = [*NUMBERS, *DATES, *TEXTS]
    expected = diversity(people, KNOWN, names)
    assert diversity(lazy(people, npartitions), KNOWN, names) == expected  # to the last bit


def test_order_of_rows_does_not_matter(people: pd.DataFrame) -> None:
    names = [*NUMBERS, *DATES, *TEXTS]
    shuffled = people.sample(frac=1, random_state=1)
    assert diversity(shuffled, KNOWN, names) == diversity(people, KNOWN, names)


def test_schedulers_agree(scheduler: str, people: pd.DataFrame) -> None:
    names = ["income", "illness"]
    result = attribute_disclosure(lazy(people, 17), KNOWN, names, k=8)
    assert result == attribute_disclosure(people, KNOWN, names, k=8)


def test_salaries_as_published() -> None:
    """Nine salaries of Li, Li and Venkatasubramanian: in similar classes, and in close ones."""
    frame = pd.DataFrame({"salary": [3, 4, 5, 6, 8, 11, 7, 9, 10], "similar": [*"aaabbbccc"]})
    frame["close"] = frame["salary"].map(
        {salary: name for name, each in CLOSE.items() for salary in each}
    )
    frame["disease"] = [
        *("gastric ulcer", "gastritis", "stomach cancer"),
        *("gastritis", "flu", "bronchitis"),
        *("bronchitis", "pneumonia", "stomach cancer"),
    ]
    for classes, t in (("similar", 0.375), ("close", 1 / 6)):
        (salary,) = diversity(frame, [classes], ["salary"])
        assert (salary.l_min, salary.l_mean, salary.homogeneous) == (3, 3, 0)
        assert salary.entropy_l == pytest.approx(3)
        assert salary.t == pytest.approx(t)
    (disease,) = diversity(frame, ["similar"], ["disease"])
    # A third of a class each, while one is a ninth of all and two are two ninths.
    assert disease.t == pytest.approx(1 - 5 / 9)


def test_patients_as_published() -> None:
    """The 4-anonymous and the 3-diverse table of Machanavajjhala et al."""
    frame = pd.DataFrame({"class": np.repeat([1, 2, 3], 4)})
    frame["anonymous"] = [*"hhvv", *"chvv", *"cccc"]  # heart disease, viral infection, cancer
    frame["diverse"] = [*"hvcc", *"chvv", *"hvcc"]
    anonymous, diverse = diversity(frame, ["class"], ["anonymous", "diverse"])
    assert (anonymous.l_min, anonymous.l_mean, anonymous.homogeneous) == (1, 2, 1)
    assert anonymous.entropy_l == 1
    assert anonymous.t == pytest.approx(1 - 5 / 12)  # all of a class have cancer, five of twelve do
    assert (diverse.l_min, diverse.l_mean, diverse.homogeneous) == (3, 3, 0)
    assert diverse.entropy_l == pytest.approx(2**1.5)  # shares of 1/2, 1/4 and 1/4
    assert diverse.t == pytest.approx(1 / 2 - 4 / 12)


def test_distinct_values_as_in_sdcmicro() -> None:
    """The toy data of sdcMicro's guidelines, and that of its tests of ldiversity."""
    toy = pd.DataFrame({"sex": [1, 1, 1, 1, 2, 2], "race": [1, 1, 1, 2, 2, 2]})
    toy["sens"] = [50, 50, 42, 42, 62, 62]
    found = attribute_disclosure(toy, ["sex", "race"], ["sens"], k=2)
    assert (found.below_k, found.k_min) == (1, 1)
    frequencies = [(3, 2), (1, 1), (2, 1)]  # records and values of the classes, as published
    for (_, part), (size, values) in zip(toy.groupby(["sex", "race"]), frequencies, strict=True):
        each = attribute_disclosure(part, ["sex", "race"], ["sens"])
        assert (each.k_min, each.diversity[0].l_min) == (size, values)
    frame = pd.DataFrame({"sex": [*"fffmmff"], "ethnicity": [*"ooooomm"]})
    frame["occupation"] = [None, None, None, "teacher", "teacher", "nurse", "nurse"]
    frame["sensitive"] = [1, 0, 2, 1, 0, 0, 1]
    keys = ["sex", "occupation", "ethnicity"]
    (sensitive,) = diversity(frame, keys, ["sensitive"])
    assert (sensitive.classes, sensitive.l_min, sensitive.l_mean) == (3, 2, (3 + 2 + 2) / 3)
    (lacking,) = diversity(frame[frame["occupation"].isna()], keys, ["sensitive"])
    assert lacking.l_min == 3
    several = pd.DataFrame({"key": [1, 1, 1], "one": [*"ABA"], "two": [*"XYZ"]})
    assert [each.l_min for each in diversity(several, ["key"], ["one", "two"])] == [2, 3]


def earth_mover(p: np.ndarray, q: np.ndarray) -> float:
    """Solve the transport problem; the last entry is missing, at the distance 1 from all."""
    m = len(p) - 1
    cost = np.abs(np.subtract.outer(np.arange(m + 1), np.arange(m + 1))) / max(m - 1, 1)
    cost[-1], cost[:, -1], cost[-1, -1] = 1, 1, 0
    rows, columns = (np.kron(*pair) for pair in _marginals(m + 1))
    equal = np.vstack([rows, columns])
    result = linprog(cost.ravel(), A_eq=equal, b_eq=np.concatenate([p / p.sum(), q / q.sum()]))
    return float(result.fun)


def _marginals(n: int) -> tuple:
    return (np.eye(n), np.ones((1, n))), (np.ones((1, n)), np.eye(n))


@pytest.mark.parametrize("seed", range(6))
def test_distance_is_that_of_the_earth_mover(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"class": rng.integers(0, 3, 40), "x": rng.geometric(0.2, 40) ** 2.0})
    counts, whole = shares(frame, ["class"], "x", True)
    (found,) = diversity(frame, ["class"], ["x"])
    assert found.t == pytest.approx(max(earth_mover(each, whole) for each in counts))
    frame.loc[rng.random(40) < 0.3, "x"] = np.nan
    counts, whole = shares(frame, ["class"], "x", True)
    (found,) = diversity(frame, ["class"], ["x"])
    assert found.t >= max(earth_mover(each, whole) for each in counts) - 1e-9


def test_missing_cells_of_numbers() -> None:
    frame = pd.DataFrame({"class": [1, 1, 1, 2, 2, 2], "x": [5.0, 7.0, None, 5.0, 7.0, None]})
    (found,) = diversity(frame, ["class"], ["x"])
    assert (found.l_min, found.t) == (3, 0)
    frame["x"] = [None, None, None, 5.0, 5.0, 7.0]
    (found,) = diversity(frame, ["class"], ["x"])
    assert (found.l_min, found.homogeneous, found.t) == (1, 1, 0.5)
    frame["x"] = np.nan
    (found,) = diversity(frame, ["class"], ["x"])
    assert (found.l_min, found.homogeneous, found.t) == (1, 2, 0)


def test_values_are_compared_as_numbers() -> None:
    big = 2**53
    frame = pd.DataFrame(
        {
            "class": 0,
            "zero": [0.0, -0.0, np.inf, -np.inf],
            "big": [big, big + 1, big + 2, big + 2],
            "nullable": pd.array([-(2**63), None, 2**63 - 1, 0], dtype="Int64"),
            "nan": pd.array([1.0, 2.0, 3.0, 4.0], dtype="Float64"),
        }
    )
    frame["nan"] = frame["nan"] - frame["nan"]
    frame["nan"] = frame["nan"] / frame["nan"]  # NaN that is not NA
    names = ["zero", "big", "nullable", "nan"]
    assert [each.l_min for each in diversity(frame, ["class"], names)] == [3, 3, 4, 1]
    frame["class"] = [-0.0, 0.0, 0.0, 0.0]  # classes differ by bits
    assert diversity(frame, ["class"], ["zero"])[0].classes == 2


def many_values() -> pd.DataFrame:
    """More different values than are ranked exactly, with one that is very frequent."""
    rng = np.random.default_rng(1)
    n = 400_000
    frame = pd.DataFrame({"class": rng.integers(0, 40, n), "x": rng.lognormal(8, 2, n)})
    frame["x"] += frame["class"] * 50
    frame.loc[rng.random(n) < 0.2, "x"] = 0.0
    return frame


def test_many_values_are_ranked_by_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = many_values()
    assert frame["x"].nunique() > module.MOST_RANKS
    (sampled,) = diversity(frame, ["class"], ["x"])
    codes, different = pd.factorize(frame["x"], sort=True)
    whole = np.bincount(codes) / len(frame)
    exact = max(
        np.abs(np.cumsum(np.bincount(each, minlength=len(different)) / len(each) - whole)).sum()
        for _, each in pd.Series(codes).groupby(frame["class"])
    ) / (len(different) - 1)
    assert sampled.t == pytest.approx(exact, abs=0.01)
    assert sampled.t != exact
    monkeypatch.setattr(module, "MOST_RANKS", len(different))
    (ranked,) = diversity(frame, ["class"], ["x"])
    assert ranked.t == pytest.approx(exact, rel=1e-10)
    assert (ranked.l_min, ranked.l_mean) == (sampled.l_min, sampled.l_mean)
    assert ranked.entropy_l == sampled.entropy_l


def test_samples_do_not_depend_on_partitions(
    people: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ["single", "income", "illness", "object"]
    exact = diversity(people, KNOWN, names)
    monkeypatch.setattr(module, "MOST_RANKS", 3)
    monkeypatch.setattr(module, "PARTITIONS_A_BUCKET", 3)
    sampled = diversity(people, KNOWN, names)
    assert sampled[2:] == exact[2:]  # texts have no ranks
    assert [each.l_min for each in sampled] == [each.l_min for each in exact]
    assert sampled[0].t != exact[0].t
    for npartitions in (2, 11):
        assert diversity(lazy(people, npartitions), KNOWN, names) == sampled


@settings(max_examples=20, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 3),
            st.one_of(st.none(), st.floats(allow_nan=True), st.sampled_from([1.0, 2.0, -0.0])),
            st.one_of(st.none(), st.sampled_from(["a", "b", "c"])),
        ),
        min_size=1,
        max_size=25,
    ),
    st.integers(1, 5),
)
def test_bounds_hold(rows: list[tuple], npartitions: int) -> None:
    frame = pd.DataFrame(rows, columns=["class", "x", "text"]).astype({"x": float, "text": "str"})
    with dask.config.set(scheduler="synchronous"):
        found = diversity(frame, ["class"], ["x", "text"])
        assert diversity(lazy(frame, npartitions), ["class"], ["x", "text"]) == found
    for each in found:
        assert 1 <= each.l_min <= each.l_mean
        assert 1 <= each.entropy_l <= each.l_min
        assert 0 <= each.t <= 1
        assert (each.homogeneous > 0) == (each.l_min == 1)
        expected = plain(frame, ["class"], each.column, each.column == "x")
        assert tuple(each.to_dict().values())[1:] == pytest.approx(expected[1:], abs=1e-12)


def test_one_class_tells_nothing() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame({"class": 1, "x": rng.normal(size=997), "text": rng.choice([*"abc"], 997)})
    assert [each.t for each in diversity(frame, ["class"], ["x", "text"])] == [0, 0]


def test_classes_are_those_of_anonymity(people: pd.DataFrame) -> None:
    for frame in (people, lazy(people, 5)):
        result = attribute_disclosure(frame, KNOWN, ["income", "illness"], k=9)
        expected = anonymity(people, KNOWN, 9)
        assert {name: getattr(result, name) for name in expected.to_dict()} == expected.to_dict()
        assert result.diversity == diversity(people, KNOWN, ["income", "illness"])
    assert attribute_disclosure(people, KNOWN, "illness").below_k is None


def test_dask_reads_the_data_once() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "x": [1, 2, 2, 2], "t": [*"abca"], "unused": 0})
    read = []

    def note(part: pd.DataFrame) -> pd.DataFrame:
        read.append(len(part))
        return part

    noted = lazy(frame, 2).map_partitions(note, meta=lazy(frame, 2)._meta)
    assert diversity(noted, ["a"], ["x", "t"]) == diversity(frame, ["a"], ["x", "t"])
    assert read == [2, 2]


def test_result_prints_and_converts() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2], "x": [1, 2, 2, 2], "t": [*"abca"]})
    result = attribute_disclosure(frame, ["a"], ["x", "t"], k=3)
    assert isinstance(result, AttributeDisclosure)
    text = repr(result)
    assert text.splitlines()[0] == "Anonymity"
    assert text.count("Diversity\n") == 2
    for note in ("higher is safer", "lower is safer", "0 is safe"):
        assert note in text
    table = result.to_frame()
    assert table["column"].tolist() == ["x", "t"]
    assert table["l_min"].tolist() == [1, 2]
    assert table["below_k"].tolist() == [2, 2]
    known = json.loads(json.dumps(result.to_dict()))
    assert known["k_min"] == 2
    assert known["diversity"][1]["homogeneous"] == 0
    assert math.isclose(known["diversity"][1]["entropy_l"], 2)
    (x, _) = result.diversity
    assert [type(value) for value in x.to_dict().values()] == [
        str,
        int,
        int,
        float,
        int,
        float,
        float,
    ]
    assert x.to_frame()["t"].tolist() == [x.t]


def test_arguments_are_checked() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": [1, 2], "c": [1, 2]})
    for each in (frame, lazy(frame, 2)):
        with pytest.raises(ValueError, match=r"share columns: 'b'\. A column is known"):
            diversity(each, ["a", "b"], ["b", "c"])
        with pytest.raises(KeyError, match=r"confidential names columns .* not have: 'z'"):
            diversity(each, ["a"], ["z"])
        with pytest.raises(KeyError, match=r"columns names columns .* not have: 'z'"):
            diversity(each, ["z"], ["b"])
        with pytest.raises(ValueError, match="confidential is empty: name the columns"):
            diversity(each, ["a"], [])
        with pytest.raises(ValueError, match="columns is empty: name the columns"):
            diversity(each, [], ["a"])
        with pytest.raises(ValueError, match="more than once: 'b', 'b'"):
            diversity(each, ["a"], ["b", "b"])
        with pytest.raises(TypeError, match="confidential must name columns, received list"):
            diversity(each, ["a"], [["b"]])
        with pytest.raises(TypeError, match="confidential must be a column name or a list"):
            diversity(each, ["a"], {"b": 1})
        with pytest.raises(ValueError, match="k must be at least 1, received 0"):
            attribute_disclosure(each, ["a"], ["b"], k=0)
        for column in "bc":
            with pytest.raises(ValueError, match="the frame has no records"):
                diversity(each[each["a"] > 2].astype({"c": str}), ["a"], [column])
    with pytest.raises(ValueError, match="column names occur more than once"):
        diversity(frame[["a", "b", "b"]], ["a"], ["b"])


def test_values_that_cannot_be_compared_are_refused() -> None:
    frame = pd.DataFrame({"a": [1, 2], "b": pd.Series([[CANARY], [2]], dtype=object)})
    for columns in (["a"], ["b"]), (["b"], ["a"]):
        with pytest.raises(TypeError, match="column 'b' holds values that cannot") as caught:
            diversity(frame, *columns)
        assert CANARY not in str(caught.value)
        assert caught.value.__suppress_context__


def test_partitions_of_another_dtype_are_refused() -> None:
    frame = pd.DataFrame({"a": [1, 2], "x": [1, 2]})
    other = lazy(frame, 1).map_partitions(lambda part: part.assign(x=[1.5, 1.7]), meta=frame[:0])
    with pytest.raises(TypeError, match=r"'x' has dtype float64 in some partitions, and int64"):
        diversity(other, ["a"], ["x"])
