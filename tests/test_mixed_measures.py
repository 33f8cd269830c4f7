"""Measures of columns of every kind, against plain loops over records and known values."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from scipy.stats import entropy

import sdc_dask
from sdc_dask.engine import class_tables
from sdc_dask.errors import SdcError, SuppressedAdvice
from sdc_dask.utility import associations, frequencies

GRADES = pd.CategoricalDtype(["low", "middle", "high", "top"], ordered=True)
N = 90


@pytest.fixture
def both() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Columns of every kind, with missing cells, and a masked version of them."""
    rng = np.random.default_rng(3)

    def frame() -> pd.DataFrame:
        made = pd.DataFrame(
            {
                "age": rng.integers(20, 40, N),
                "income": pd.array(rng.choice([1.5, 2.5, 7.0], N), "Float64"),
                "born": pd.Timestamp("2001-02-03") + pd.to_timedelta(rng.integers(0, 50, N), "D"),
                "grade": pd.Categorical.from_codes(rng.integers(-1, 4, N), dtype=GRADES),
                "job": rng.choice(["cook", "nurse", "pilot"], N),
                "town": pd.Categorical(rng.choice(["a", "b"], N)),
                "owner": rng.random(N) < 0.3,
                "constant": 5,
            },
            index=pd.Index(range(100, 100 + N), name="person"),
        )
        made.loc[rng.random(N) < 0.1, ["income", "born", "job"]] = None
        return made

    original, other = frame(), frame()
    kept = rng.random((N, original.shape[1])) < 0.7
    masked = other.copy()
    for j, name in enumerate(original):
        masked[name] = other[name].where(~kept[:, j], original[name])
    masked["age"] = masked["age"] + 0.5
    masked["born"] = masked["born"].astype("datetime64[s]")
    masked["town"] = masked["town"].astype(str)
    masked.loc[101, "constant"] = 6
    return original, masked


def cells(frame: pd.DataFrame) -> list[list[Any]]:
    """Return records as lists of Python objects, None for missing cells."""
    return [
        [None if pd.isna(cell) else cell for cell in row]
        for row in zip(*(frame[name].astype(object) for name in frame), strict=True)
    ]


def distances(original: pd.DataFrame) -> list:
    """Return the function of distance of each column, by the book."""

    def apart(a: Any, b: Any, width: Any) -> float:
        if a is None or b is None:
            return float(a is not b)
        if not width:
            return float(a != b)
        return min(abs(b - a) / width, 1.0)

    found = []
    for name in original:
        column = original[name]
        if name == "grade":
            rank = {grade: i for i, grade in enumerate(GRADES.categories)} | {None: None}
            found.append(lambda a, b, rank=rank: apart(rank[a], rank[b], 3))
        elif name in ("age", "income", "born", "constant"):
            width = column.max() - column.min()
            found.append(lambda a, b, width=width: apart(a, b, width))
        else:
            found.append(lambda a, b: float(a != b))
    return found


def cut(frame: pd.DataFrame, npartitions: int) -> dd.DataFrame:
    return dd.from_pandas(frame, npartitions=npartitions)


def test_loss_is_the_mean_distance(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    original, masked = both
    found = original.sdc.mixed_loss(masked)
    apart = np.array(
        [
            [far(a, b) for far, a, b in zip(distances(original), old, new, strict=True)]
            for old, new in zip(cells(original), cells(masked), strict=True)
        ]
    )
    np.testing.assert_allclose(list(found.by_column.values()), 100 * apart.mean(axis=0))
    assert found.loss == pytest.approx(100 * apart.mean())
    assert found.unchanged == pytest.approx(100 * (apart == 0).mean())
    np.testing.assert_allclose(found.to_frame()["changed"], 100 * (apart > 0).mean(axis=0))
    kinds = ["number", "number", "date", "ordered", "nominal", "nominal", "nominal", "number"]
    assert list(found.kinds.values()) == kinds
    assert cut(original, 4).sdc.mixed_loss(cut(masked, 4)) == found
    # Rows are aligned by their index.
    assert original.sdc.mixed_loss(masked.iloc[::-1]) == found
    nothing = original.sdc.mixed_loss(original)
    assert (nothing.loss, nothing.unchanged) == (0, 100)


def test_links_are_those_of_all_pairs(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    original, masked = both
    names = ["grade", "income", "job", "town", "owner"]
    original, masked = original[names], masked[names]
    far = distances(original)
    sums = [
        [sum(f(a, b) for f, a, b in zip(far, old, new, strict=True)) for new in cells(masked)]
        for old in cells(original)
    ]
    correct = certain = 0.0
    for i, row in enumerate(sums):
        nearest = [j for j, each in enumerate(row) if each <= min(row) + 1e-9]
        correct += (i in nearest) / len(nearest)
        certain += nearest == [i]
    found = original.sdc.linkage(masked, "gower")
    assert found.correct == pytest.approx(correct)
    assert (found.certain, found.tried, found.columns) == (certain, N, 5)
    assert cut(original, 3).sdc.linkage(cut(masked, 3), "gower") == found
    some = original.sdc.linkage(masked, "gower", sample=40, random_state=1)
    lazy = cut(original, 3).sdc.linkage(cut(masked, 3), "gower", sample=40, random_state=1)
    assert some == lazy and some.tried == 40 and some.low < some.rate < some.high
    assert original.sdc.linkage(original, "gower", ["job"]).certain == 0


def test_frequencies(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    original, masked = both
    found = original.sdc.frequencies(masked)
    assert list(found.counts) == ["grade", "job", "town", "owner"]
    for name, counts in found.counts.items():
        old, new = (Counter(row[0] for row in cells(frame[[name]])) for frame in both)
        assert counts == {value: (old[value], new[value]) for value in old | new}
        moved = sum(abs(a - b) for a, b in counts.values()) / 2
        assert found.moved[name] == pytest.approx(100 * moved / N)
        assert found.table.loc[name, "values"] == len(old)
    # The order of rows and partitions has no part in it.
    assert cut(original, 3).sdc.frequencies(cut(masked.iloc[::-1].sort_index(), 2)) == found
    assert found.to_dict()["counts"]["job"]["cook"] == list(found.counts["job"]["cook"])
    # Whole numbers are the same values as floats.
    codes = original.sdc.frequencies(original.astype({"age": float}), ["age"])
    assert codes.moved == {"age": 0}
    assert codes.to_frame()["before"].sum() == N


def test_associations(
    both: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, masked = both
    found = original.sdc.associations(masked, bins=4)
    codes = []
    for frame in both:
        coded = pd.DataFrame(index=frame.index)
        for name, kind in original.sdc.mixed_loss(masked).kinds.items():
            column, old = frame[name], original[name]
            if kind == "nominal":
                coded[name] = column.astype(object).where(column.notna(), "-").astype(str)
                continue
            if kind == "ordered":
                column, old = (
                    each.cat.codes.astype(float).replace(-1, np.nan) for each in (column, old)
                )
            present = np.sort(old.dropna().to_numpy())
            cuts = np.unique(present[[len(present) * i // 4 for i in (1, 2, 3)]])
            coded[name] = [
                "-" if pd.isna(value) else str((np.asarray(cuts) <= value).sum())
                for value in column
            ]
        codes.append(coded)
    table = found.to_frame().set_index(["first", "second"])
    for first, second in itertools.combinations(original, 2):
        tables = [coded.groupby([first, second]).size() for coded in codes]
        difference = tables[0].sub(tables[1], fill_value=0).abs().sum() / 2
        row = table.loc[(first, second)]
        assert row["moved"] == pytest.approx(100 * difference / N)
        for name, counts in zip(("information", "masked_information"), tables, strict=True):
            marginal = [counts.groupby(level=i).sum() for i in (0, 1)]
            shared = sum(entropy(each, base=2) for each in marginal) - entropy(counts, base=2)
            assert row[name] == pytest.approx(shared, abs=1e-12)
    assert found.mean_moved == pytest.approx(table["moved"].mean())
    assert found.columns["owner"] == pytest.approx(original.sdc.frequencies(masked).moved["owner"])
    monkeypatch.setattr(class_tables, "PARTITIONS_A_RANGE", 2)
    monkeypatch.setattr(associations, "MOST_CLASSES", 100)
    assert cut(original, 4).sdc.associations(cut(masked, 3), bins=4) == found


def test_mutual_information_of_known_tables() -> None:
    # Two fair coins that are the same have one bit in common, and two throws have none.
    same = pd.DataFrame({"x": [0, 0, 1, 1], "y": [*"aabb"]})
    found = same.sdc.associations(same.assign(y=[*"abab"]))
    assert found.information == (1,) and found.masked_information == (0,)
    # The joint distribution of example 2.2.1 of Cover and Thomas, in 32 records.
    joint = [[4, 2, 1, 1], [2, 4, 1, 1], [2, 2, 2, 2], [8, 0, 0, 0]]
    records = [(str(x), str(y)) for y in range(4) for x in range(4) for _ in range(joint[y][x])]
    book = pd.DataFrame(records, columns=["x", "y"])
    assert book.sdc.associations(book).information[0] == pytest.approx(3 / 8)
    alone = same.sdc.associations(same, ["x"])
    assert (alone.pairs, alone.mean_moved, alone.mean_shift) == ((), None, None)
    lacking = pd.DataFrame({"x": [math.nan] * 3, "y": [1.0, 2.0, 3.0]})
    assert lacking.sdc.associations(lacking).information == (0,)


def test_compare_takes_columns_of_every_kind(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    original, masked = both
    names = ["age", "born", "grade", "job"]
    table = original.sdc.compare({"nothing": original, "masked": masked}, names)
    loss = original.sdc.mixed_loss(masked, names)
    links = original.sdc.linkage(masked, "gower", names)
    row = table.loc["masked"]
    assert (row["loss"], row["linked"]) == (loss.loss, links.rate)
    assert row["score"] == (loss.loss + links.rate) / 2
    assert row["k_min"] == masked.sdc.anonymity(names).k_min
    assert row["information"] == original.sdc.associations(masked, names).mean_shift
    nothing = table.loc["nothing"]
    measured = ["loss", "unchanged", "moved", "pairs_moved", "information"]
    assert nothing[measured].tolist() == [0, 100, 0, 0, 0]
    with pytest.raises(SdcError, match="weights, tolerance have a meaning for numeric columns"):
        original.sdc.compare({"one": masked}, names, weights={"il": 1}, tolerance=0.2)


@pytest.mark.usefixtures("scheduler")
def test_dask_equals_pandas(both: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    original, masked = both
    lazy, lazy_masked = cut(original, 4), cut(masked, 3)
    for measure in ("mixed_loss", "frequencies", "associations"):
        expected = getattr(original.sdc, measure)(masked)
        assert getattr(lazy.sdc, measure)(lazy_masked) == expected
    names = ["age", "born", "grade", "job"]
    pd.testing.assert_frame_equal(
        lazy.sdc.compare({"masked": lazy_masked}, names),
        original.sdc.compare({"masked": masked}, names),
        check_exact=True,
    )


def test_what_cannot_be_measured_is_refused(
    both: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    original, masked = both
    infinite = masked.assign(age=math.inf)
    for measure in ("mixed_loss", "linkage"):
        options = {"attack": "gower"} if measure == "linkage" else {}
        with pytest.raises(SdcError, match="column 'age' has 90 infinite values"):
            getattr(original.sdc, measure)(infinite, **options)
        with pytest.raises(SdcError, match="does not have"):
            getattr(original.sdc, measure)(masked, columns=["nobody"], **options)
        with pytest.raises(SdcError, match="no records"):
            getattr(original.iloc[:0].sdc, measure)(masked.iloc[:0], **options)
    with pytest.raises(SdcError, match="takes no known, distance"):
        original.sdc.linkage(masked, "gower", known=["age"], distance="euclidean")
    monkeypatch.setattr("sdc_dask.risk.attacks.gower.MOST_TRIED", 50)
    with pytest.raises(SdcError, match="tries 50 records at most, received 90"):
        original.sdc.linkage(masked, "gower")
    for measure in ("frequencies", "associations"):
        with pytest.raises(SdcError, match="has 89 records, the original 90"):
            getattr(original.sdc, measure)(masked.iloc[1:])
        with pytest.raises(SdcError, match="such as lists"):
            getattr(original.assign(job=[[1]] * N).sdc, measure)(masked, ["job"])
    with pytest.raises(SdcError, match="numbers and dates alone"):
        original[["age"]].sdc.frequencies(masked)
    with pytest.raises(SdcError, match="bins must be at least 2"):
        original.sdc.associations(masked, bins=1)
    monkeypatch.setattr(frequencies, "MOST_VALUES", 2)
    with pytest.raises(SdcError, match="'job' has more than 2 different values"):
        original.sdc.frequencies(masked, ["job"])


# What is said of columns


def codes() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Codes and texts that have an order, and masked ones: floats for integers."""
    rng = np.random.default_rng(5)
    grades = np.array(["low", "middle", "high", "top"])
    original = pd.DataFrame(
        {"zone": rng.integers(1, 9, N), "grade": grades[rng.integers(0, 4, N)], "x": rng.random(N)}
    )
    moved = original.sample(frac=1, random_state=1).reset_index(drop=True)
    masked = original.where(rng.random((N, 3)) < 0.6, moved)
    return original, masked.astype({"zone": "Float64"})


def test_codes_and_orders_are_what_is_said_of_them() -> None:
    original, masked = codes()
    said: dict[str, Any] = {"orders": {"grade": list(GRADES.categories)}, "nominal": ["zone"]}

    def meant(frame: pd.DataFrame) -> pd.DataFrame:
        zone = frame["zone"].astype("int64").astype(str)
        return frame.assign(zone=zone, grade=frame["grade"].astype(GRADES))

    first, second = meant(original), meant(masked)
    loss = original.sdc.mixed_loss(masked, **said)
    assert loss.by_column == first.sdc.mixed_loss(second).by_column
    assert loss.kinds == {"zone": "nominal", "grade": "ordered", "x": "number"}
    assert cut(original, 3).sdc.mixed_loss(cut(masked, 3), **said) == loss
    links = original.sdc.linkage(masked, "gower", **said)
    assert links == first.sdc.linkage(second, "gower")
    assert links != original.sdc.linkage(masked, "gower")
    pairs = original.sdc.associations(masked, **said)
    assert pairs == first.sdc.associations(second)
    counts = original.sdc.frequencies(masked, nominal="zone")
    assert list(counts.counts) == ["zone", "grade"]
    assert list(counts.moved.values()) == list(first.sdc.frequencies(second).moved.values())
    table = original.sdc.compare({"a": masked}, ["zone", "x"], nominal="zone")
    assert (
        table.loc["a", "loss"]
        == original.sdc.mixed_loss(masked, ["zone", "x"], nominal="zone").loss
    )


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"nominal": "town"}, "nominal names columns that are not compared: 'town'"),
        ({"orders": {"grade": ["low", "top"]}}, "cells with values that its order does not name"),
        (
            {"orders": {"zone": [1, 2]}, "nominal": ["zone"]},
            "orders and nominal both name columns: 'zone'",
        ),
    ],
)
def test_errors_of_what_is_said(said: dict[str, Any], message: str) -> None:
    original, masked = codes()
    with pytest.raises(SdcError, match=message):
        original.sdc.mixed_loss(masked, **said)
    with pytest.raises(SdcError, match=message):
        original.sdc.linkage(masked, "gower", **said)


def test_ordered_categories_that_become_fewer_keep_their_ranks() -> None:
    original = pd.DataFrame(
        {
            "grade": pd.Categorical(
                ["low", "middle", "high", "top"] * 3, GRADES.categories, ordered=True
            )
        }
    )
    original = original.astype({"grade": GRADES})
    masked = original.assign(grade=original["grade"].replace("low", "middle"))
    masked["grade"] = masked["grade"].cat.remove_unused_categories()
    found = original.sdc.mixed_loss(masked)
    assert (found.kinds["grade"], found.loss) == ("ordered", pytest.approx(100 / 12))
    assert cut(original, 2).sdc.mixed_loss(cut(masked, 2)) == found
    assert original.sdc.associations(masked, ["grade"]).columns == {"grade": 25.0}
    backwards = masked["grade"].cat.reorder_categories(["top", "high", "middle"])
    assert original.sdc.mixed_loss(masked.assign(grade=backwards)).kinds["grade"] == "nominal"


def test_a_missing_cell_may_have_been_any_value() -> None:
    rng = np.random.default_rng(2)
    original = pd.DataFrame(
        {
            "sex": rng.choice(["f", "m"], N),
            "job": rng.choice(["cook", "nurse", "pilot", "judge"], N),
            "age": rng.integers(20, 30, N),
            "born": pd.Timestamp("2001-02-03") + pd.to_timedelta(rng.integers(0, 5, N), "D"),
        }
    )
    names = list(original)
    with pytest.warns(SuppressedAdvice):
        masked = original.sdc.suppress(["sex", "job", "age"], k=3)
    masked.loc[3, "born"] = None
    far = distances(original)
    sums = np.array(
        [
            [
                sum(0 if b is None else f(a, b) for f, a, b in zip(far, old, new, strict=True))
                for new in cells(masked)
            ]
            for old in cells(original)
        ]
    )
    assert (np.diag(sums) == 0).all()
    found = original.sdc.linkage(masked, "gower", missing="matches")
    assert found.correct == pytest.approx((1 / (sums == 0).sum(axis=1)).sum())
    assert cut(original, 3).sdc.linkage(cut(masked, 3), "gower", missing="matches") == found
    blind = original.sdc.linkage(masked, "gower")
    assert found.rate != blind.rate

    spec = sdc_dask.Suppress(["sex", "job", "age"], k=3)
    attacks = original.sdc.attack(masked, knows=spec, columns=names[:3])
    both = {
        assumes: link.rate for assumes, link in zip(attacks.assumes, attacks.links, strict=True)
    }
    some = [
        original.sdc.linkage(masked, "gower", names[:3], missing=how).rate
        for how in ("value", "matches")
    ]
    assert [
        both[name] for name in ("nothing else", "in which columns cells were suppressed")
    ] == some
    table = original.sdc.compare({"a": masked}, names[:3], knows={"a": spec})
    assert table.loc["a", "linked"] == max(some)
    with pytest.raises(SdcError, match="missing must be"):
        original.sdc.linkage(masked, "gower", missing="any")


def test_what_specs_say_of_columns_is_known() -> None:
    original, _ = codes()
    order = list(GRADES.categories)
    spec = sdc_dask.Microaggregation(
        ["zone", "grade", "x"], k=3, nominal="zone", orders={"grade": order}
    )
    masked = original.sdc.mask(spec)
    said: dict[str, Any] = {"orders": {"grade": order}, "nominal": ["zone"]}
    links = original.sdc.linkage(masked, "gower", **said)
    found = original.sdc.attack(masked, knows=spec)
    assert found.links[found.attacks.index("gower")].rate == links.rate
    assert original.sdc.compare({"a": masked}, knows={"a": spec}).loc["a", "linked"] == links.rate
    # Columns that are numbers by their dtypes alone.
    codes_alone = sdc_dask.Microaggregation(["zone", "x"], k=3, nominal="zone")
    trial = original.sdc.suggest(["zone", "x"], [codes_alone], records=N, random_state=1).trials[0]
    kept = original.sdc.mask(codes_alone)
    assert trial.loss == pytest.approx(
        original.sdc.mixed_loss(kept, ["zone", "x"], nominal="zone").loss
    )
    randomized = sdc_dask.Pram(["zone"], keep=0.5)
    swapped = original.sdc.mask(randomized, random_state=1)
    assert (
        original.sdc.attack(swapped, knows=randomized).links[0].rate
        == original.sdc.linkage(swapped, "gower", ["zone"], nominal="zone").rate
    )
