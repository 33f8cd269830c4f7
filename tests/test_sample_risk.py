"""Risk of samples and rare combinations, against published figures, integrals and plain loops."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from frames_of import cuts, partitioned
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

import sdc_dask
from sdc_dask.engine import class_tables
from sdc_dask.engine.class_tables import exponent_above, from_digits, to_digits
from sdc_dask.errors import SdcError, SdcRuntimeError
from sdc_dask.risk.sample_risk import individual_risk

KEYS = ["Key1", "Key2", "Key3", "Key4"]
NAN = float("nan")

# The example of sdcMicro's tests of indivRisk, without and with missing cells.
WEIGHTS = [18.0, 45.5, 39.0, 17.0, 92.0, 8.0, 123.5, 51.0]
B = [3, 3, 3, 3, 3, 3, 4, 3]
COMPLETE = pd.DataFrame(
    {"A": [2, 3, 2, 2, 3, 3, 1, 2], "B": B, "C": [1, 3, 1, 2, 1, 1, 1, 1], "w": WEIGHTS}
)
GAPS = pd.DataFrame(
    {"A": [2, 3, 2, 2, 3, 3, 1, NAN], "B": B, "C": [1, 3, NAN, 2, 1, 1, NAN, 1], "w": WEIGHTS}
)
PUBLISHED = {
    "approximation": (
        *([0.01369863, 0.08579129, 0.01369863, 0.17707583]),
        *([0.01877883, 0.01877883, 0.03931625, 0.01369863]),
    ),
    "exact": (
        *([0.01355297, 0.08579129, 0.01355297, 0.17707583]),
        *([0.01877883, 0.01877883, 0.03931625, 0.01355297]),
    ),
}
PUBLISHED_GAPS = {
    "approximation": (
        *([0.013698630, 0.085791288, 0.010554090, 0.032466112]),
        *([0.009836066, 0.009836066, 0.039316254, 0.005973716]),
    ),
    "exact": (
        *([0.013552968, 0.085791288, 0.010504889, 0.032466112]),
        *([0.009756889, 0.009756889, 0.039316254, 0.005962551]),
    ),
}


def test_frequencies_and_risks_of_francdat(reference: Callable[[str], pd.DataFrame]) -> None:
    francdat = reference("sdcmicro_francdat")
    found = francdat.sdc.sample_risk_by_record(KEYS, "w")
    assert found["frequency"].tolist() == [2, 2, 2, 1, 1, 1, 1, 2]
    assert found["population"].tolist() == [110, 84.5, 84.5, 17, 541, 8, 5, 110]
    # The guidelines of sdcMicro have risks of a version that lowered p = f / F by 0.0001.
    lowered = found["frequency"] / (found["frequency"] / found["population"] - 0.0001)
    risks = individual_risk(found["frequency"].to_numpy(), lowered.to_numpy())
    one, two, *others = 0.01705402, 0.02195396, 0.17686217, 0.01112028, 0.29690573, 0.40223299
    assert risks.round(8).tolist() == [one, two, two, *others, one]
    total = francdat.sdc.sample_risk(KEYS, "w", threshold=0.2)
    assert total.expected == math.fsum(found["risk"])
    assert total.percent == 100 * total.expected / 8
    assert (total.rows, total.population, total.uniques, total.pairs) == (8, 765.5, 4, 4)
    assert (total.above, total.highest) == (2, found["risk"].max())


def test_risks_of_the_practice_guide() -> None:
    # Table 4.1 of "Statistical disclosure control: a practice guide" (IHSN).
    weights = [180, 180, 215, 76, 186, 76, 180, 215, 186, 76]
    frame = pd.DataFrame({"key": list("aabcdcefgg"), "w": weights})
    found = frame.sdc.sample_risk_by_record(["key"], "w")
    assert found["population"].tolist() == [360, 360, 215, 152, 186, 152, 180, 215, 262, 262]
    published = [0.0054, 0.0054, 0.0251, 0.0126, 0.0282, 0.0126, 0.0290, 0.0251, 0.0074, 0.0074]
    # The guide rounds the risk of 262 up, which is 0.00736.
    assert found["risk"].round(4).tolist() == published


@pytest.mark.parametrize("method", ["approximation", "exact"])
def test_risks_of_sdcmicro(method: str) -> None:
    keys = ["A", "B", "C"]
    complete = COMPLETE.sdc.sample_risk_by_record(keys, "w", method=method)
    assert complete["risk"].round(8).tolist() == list(PUBLISHED[method])
    gaps = GAPS.sdc.sample_risk_by_record(keys, "w", method=method, missing="any")
    assert gaps["risk"].round(9).tolist() == list(PUBLISHED_GAPS[method])
    # Table 4.2 of the practice guide: a missing cell matches every value, and these match it.
    labour = pd.DataFrame({"sex": ["m"] * 3, "education": ["complete", "incomplete", None]})
    found = labour.sdc.sample_risk_by_record(list(labour), missing="any")
    assert found["frequency"].tolist() == [2, 2, 3]
    assert labour.sdc.sample_risk_by_record(list(labour))["frequency"].tolist() == [1, 1, 1]


def test_population_needs_no_weights() -> None:
    found = GAPS.sdc.sample_risk_by_record(["A", "B", "C"], missing="any")
    third = 1 / 3
    assert found["risk"].tolist() == [third, 1, 0.25, 0.5, third, third, 1, 0.2]
    whole = COMPLETE.assign(w=1.0).sdc.sample_risk_by_record(["A", "B", "C"], "w")
    assert whole["risk"].tolist() == (1 / whole["frequency"]).tolist()
    # Weights below 1 do not make risks of more than certainty.
    small = COMPLETE.assign(w=0.4).sdc.sample_risk(["A"], "w")
    assert small.highest == 1


@pytest.mark.parametrize("f", [1, 2, 3, 7, 50])
def test_exact_risk_is_the_mean_of_one_over_the_population(f: int) -> None:
    shares = [1e-6, 1e-5, 0.003, 0.1, 0.4999, 0.5001, 0.9, 0.99999, 1 - 1e-12]
    # The mean of 1 / F of a negative binomial F is an integral: each term is one of u**(F - 1).
    risks = [
        quad(
            lambda u, p=p: u ** (f - 1) * p / (p + (1 - p) * u),
            0,
            1,
            epsabs=0,
            points=[p],
            limit=200,
        )[0]
        for p in shares
    ]
    found = individual_risk(np.full(len(shares), f), f / np.array(shares), "exact")
    np.testing.assert_allclose(found, risks, rtol=1e-9)
    near = individual_risk(np.full(len(shares), f), f / np.array(shares))
    assert (near >= found).all() and (near <= 1.0404 * found).all()


def test_household_risk(reference: Callable[[str], pd.DataFrame]) -> None:
    data = reference("sdcmicro_testdata")
    keys = ["urbrur", "roof", "walls", "water", "electcon", "relat", "sex"]
    found = data.sdc.sample_risk_by_record(keys, "sampling_weight", household="ori_hid")
    safe = (1 - found["risk"]).groupby(data["ori_hid"]).transform("prod")
    np.testing.assert_allclose(found["household_risk"], 1 - safe, rtol=1e-10)
    total = data.sdc.sample_risk(keys, "sampling_weight", household="ori_hid", threshold=0.05)
    assert total.households == data["ori_hid"].nunique()
    assert total.household_expected == math.fsum(found["household_risk"])
    assert total.household_above == (found["household_risk"] > 0.05).sum()
    # One member who is certain to be found is enough.
    certain = pd.DataFrame({"key": [1, 2, 2], "w": [1.0, 1e9, 1e9], "home": ["x", "x", "y"]})
    risks = certain.sdc.sample_risk_by_record(["key"], "w", household="home")
    assert risks["household_risk"].tolist()[:2] == [1, 1]
    assert 0 < risks["household_risk"][2] < 1e-8


def plain(frame: pd.DataFrame, keys: list[str], anything: bool) -> tuple[list[int], list[float]]:
    """Return frequencies and sums of weights, by comparing all pairs."""
    cells = frame[keys].astype(object).where(frame[keys].notna(), None).to_numpy().tolist()

    def match(a: list, b: list) -> bool:
        return all(x == y or (anything and None in (x, y)) for x, y in zip(a, b, strict=True))

    matches = [[j for j, other in enumerate(cells) if match(cell, other)] for cell in cells]
    weights = frame["w"].tolist()
    return [len(each) for each in matches], [math.fsum(weights[j] for j in m) for m in matches]


CELL = st.sampled_from([None, "a", "b"])
RECORD = st.tuples(CELL, CELL, st.sampled_from([NAN, 0.0, 1.0, 2.0]), st.sampled_from([0.1, 3, 7]))


@settings(max_examples=12)
@given(st.lists(RECORD, min_size=1, max_size=20), st.data())
def test_matches_are_those_of_all_pairs(records: list, data: st.DataObject) -> None:
    frame = pd.DataFrame(records, columns=["x", "y", "z", "w"])
    frame["x"] = frame["x"].astype("category")
    frame["w"] = frame["w"].astype(float)
    keys = ["x", "y", "z"]
    missing = data.draw(st.sampled_from(["category", "any"]))
    frequencies, sums = plain(frame, keys, missing == "any")
    found = frame.sdc.sample_risk_by_record(keys, "w", missing=missing)
    assert found["frequency"].tolist() == frequencies
    np.testing.assert_allclose(found["population"], sums, rtol=1e-15)
    borders = data.draw(cuts(len(frame), 2))
    lazy = partitioned(frame, borders).sdc.sample_risk_by_record(keys, "w", missing=missing)
    pd.testing.assert_frame_equal(lazy.compute(scheduler="sync"), found, check_exact=True)


@pytest.mark.long_on_cluster
@pytest.mark.parametrize("npartitions", [4])
def test_dask_equals_pandas(
    scheduler: str, npartitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(class_tables, "PARTITIONS_A_RANGE", 2)
    people = sdc_dask.datasets.survey(2_000, npartitions=npartitions)
    people = people.assign(w=people["income"].abs() / 1e4 + 0.3, home=people["income"] // 1_000)
    pandas = people.compute(scheduler="sync")
    keys = ["region", "sex", "occupation"]
    options = {"weights": "w", "household": ["home"], "method": "exact", "missing": "any"}
    assert people.sdc.sample_risk(keys, **options) == pandas.sdc.sample_risk(keys, **options)
    lazy = people.sdc.sample_risk_by_record(keys, **options)
    expected = pandas.sdc.sample_risk_by_record(keys, **options)
    assert lazy.npartitions == npartitions
    pd.testing.assert_frame_equal(lazy.compute(), expected, check_exact=True)
    pd.testing.assert_frame_equal(lazy._meta, expected.iloc[:0])


@settings(max_examples=50)
@given(st.lists(st.floats(1e-6, 1e9), min_size=1, max_size=30), st.randoms())
def test_sums_of_digits_do_not_depend_on_order(values: list[float], random) -> None:
    exponent = exponent_above(max(values))

    def total(numbers: list[float]) -> float:
        return float(
            from_digits(to_digits(np.array(numbers), exponent).sum(axis=0)[None], exponent)[0]
        )

    shuffled = values.copy()
    random.shuffle(shuffled)
    assert total(values) == total(shuffled)
    assert total(values) == pytest.approx(math.fsum(values), rel=3e-16, abs=2.0 ** (exponent - 85))


def test_what_cannot_be_measured_is_refused() -> None:
    def refused(
        text: str, frame: pd.DataFrame = COMPLETE, *args: object, **options: object
    ) -> None:
        with pytest.raises(SdcError, match=text):
            frame.sdc.sample_risk(*(args or (["A", "B"], "w")), **options)

    for wrong, text in ((NAN, "1 weights that are missing"), (0, "not positive"), (-2, "positive")):
        refused(text, COMPLETE.assign(w=[wrong, *WEIGHTS[1:]]))
    refused("1 weights that are infinite", COMPLETE.assign(w=[math.inf, *WEIGHTS[1:]]))
    refused("no real numbers, as weights are", COMPLETE.assign(w="5"))
    refused("keys is empty", COMPLETE, [], "w")
    refused("keys names columns more than once", COMPLETE, ["A", "A"], "w")
    refused("does not have", COMPLETE, ["A"], "nobody")
    refused("does not have", COMPLETE, ["A"], "w", household="nobody")
    refused("which keys or household name, too", COMPLETE, ["A", "w"], "w")
    refused("has 1 missing cells in 'A'", GAPS, ["B"], "w", household="A")
    refused("threshold must be", threshold=2)
    refused("method must be one of", method="guess")
    refused("missing must be one of", missing="drop")
    refused("method='exact' has a meaning with weights alone", COMPLETE, ["A"], method="exact")
    refused("no records", COMPLETE.iloc[:0])
    refused("such as lists", COMPLETE.assign(A=[[1]] * 8))
    wide = pd.DataFrame(np.where(np.tril(np.ones((70, 70))), 1.0, NAN)).assign(w=1)
    refused("62 keys at most", wide, list(range(70)), "w", missing="any")
    narrow = pd.DataFrame([[NAN if i >> j & 1 else 1.0 for j in range(7)] for i in range(70)])
    refused("there are 70", narrow, list(range(7)), missing="any")


def test_frame_that_changes_is_refused() -> None:
    times = itertools.count()
    changing = dd.from_map(lambda _: COMPLETE + next(times), [0, 1], meta=COMPLETE.iloc[:0])
    with pytest.raises(SdcRuntimeError, match="other values when it was read again"):
        changing.sdc.sample_risk(["A"], "w")


def test_rare_combinations(reference: Callable[[str], pd.DataFrame]) -> None:
    data = reference("sdcmicro_testdata")
    keys = ["urbrur", "roof", "walls", "relat", "age"]
    found = data.sdc.rare_combinations(keys, k=3, size=[3, 1, 2])
    expected = []
    for size in (1, 2, 3):
        for subset in itertools.combinations(keys, size):
            counts = data.groupby(list(subset)).size()
            below = counts[counts < 3]
            expected.append((subset, len(counts), len(below), below.sum(), counts.min()))
    assert list(found.to_frame().itertuples(index=False, name=None)) == expected
    assert (found.rows, found.k) == (4_580, 3)
    assert "urbrur, roof, walls" in repr(found)


def test_rare_combinations_in_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    people = sdc_dask.datasets.survey(500, npartitions=3)
    keys = ["region", "sex", "occupation", "age"]
    expected = people.compute(scheduler="sync").sdc.rare_combinations(keys, k=4)
    monkeypatch.setattr("sdc_dask.risk.subsets.MOST_KEYS", 800)
    monkeypatch.setattr(class_tables, "PARTITIONS_A_RANGE", 1)
    assert people.sdc.rare_combinations(keys, k=4) == expected
    for size, text in ((5, "at most the number of keys"), ("2", "a text"), ([], "size is empty")):
        with pytest.raises(SdcError, match=text):
            people.sdc.rare_combinations(keys, k=4, size=size)
