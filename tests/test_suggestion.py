"""The chooser: what it tries, what dominates what, and that noise does not decide."""

from __future__ import annotations

import json
import re
from typing import Any

import dask
import dask.dataframe as dd
import pandas as pd
import pytest

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, Recode, Spec, errors
from sdc_dask.suggestion import Suggestion, grid, mixed_grid

COLUMNS = ["income", "wealth", "age"]
SPECS = [
    Microaggregation(COLUMNS, k=3),
    Microaggregation(COLUMNS, k=10),
    Microaggregation([[each] for each in COLUMNS], k=5, method="optimal"),
    RankSwap(COLUMNS, p=10),
]


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    return sdc_dask.datasets.survey(600, seed=1).compute()


@pytest.fixture(scope="module")
def found(survey: pd.DataFrame) -> Suggestion:
    return survey.sdc.suggest(COLUMNS, SPECS, records=300, random_state=1)


def test_what_is_dominated(found: Suggestion) -> None:
    assert (found.rows, found.records, len(found.trials)) == (600, 300, 4)
    for each in found.trials:
        better = {
            other.name
            for other in found.trials
            if other.risk <= each.risk and other.loss <= each.loss and other != each
        }
        assert (each.dominated_by in better) if better else each.dominated_by is None
        assert each.risk == 0.5 * each.linked + 0.5 * each.interval
        assert each.loss == 0.5 * each.il_scaled + 0.5 * each.sse
    losses = [each.loss for each in found.trials]
    assert losses == sorted(losses)
    # Groups by each column alone: whoever knows them finds nearly everybody.
    (alone,) = [each for each in found.trials if "alone" in each.name]
    assert alone.linked > 90 and alone.strongest.startswith("alignment")


def test_advice_is_given_once(survey: pd.DataFrame) -> None:
    df = survey[COLUMNS].assign(age=survey["age"].where(survey.index % 9 > 0, -9))
    specs = [Microaggregation(COLUMNS, k=3), Microaggregation(COLUMNS, k=10), RankSwap(COLUMNS, 9)]
    for _ in range(2):  # again in another call
        with pytest.warns(errors.CodedMissingAdvice) as told:
            df.sdc.suggest(COLUMNS, specs, records=300, random_state=1)
        assert len(told) == 1


def test_choosing(found: Suggestion) -> None:
    for limit in (20, 40, 60, 100):
        within = [each for each in found.trials if each.risk <= limit]
        if within:
            best = min(within, key=lambda each: each.loss)
            assert found.choose(max_risk=limit) == best.spec
    assert found.choose(max_loss=100) == min(found.trials, key=lambda each: each.risk).spec
    with pytest.raises(ValueError, match="no masking that was tried has a risk of at most 0"):
        found.choose(max_risk=0)
    with pytest.raises(TypeError, match="name one of them"):
        found.choose()


def test_it_is_shown(found: Suggestion) -> None:
    text = repr(found)
    assert "tried on 300 of 600 records" in text and "il1 comes mostly from values near 0" in text
    for number, each in enumerate(found.trials, 1):
        assert re.search(rf"{number} +{re.escape(each.name)} ", text)
        assert each.strongest in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 100
    assert list(found.to_frame().index) == [each.name for each in found.trials]
    assert json.loads(json.dumps(found.to_dict()))["trials"][0]["name"] == found.trials[0].name
    assert Spec.from_dict(found.to_dict()["trials"][0]["spec"]) == found.trials[0].spec


def test_dask_as_pandas(survey: pd.DataFrame, found: Suggestion) -> None:
    lazy = dd.from_pandas(survey, npartitions=3)
    with dask.config.set(scheduler="threads"):
        assert lazy.sdc.suggest(COLUMNS, SPECS, records=300, random_state=1) == found


def test_strata_and_specs_that_fail(survey: pd.DataFrame) -> None:
    found = survey.sdc.suggest(
        COLUMNS,
        {"few": Microaggregation(COLUMNS, k=500), "swap": RankSwap(COLUMNS, p=5, by="sex")},
        records=200,
        random_state=1,
    )
    assert [each.name for each in found.trials] == ["swap"]
    assert "fewer than k=500" in found.failed["few"]
    assert "no attack by an intruder who knows this masking" in found.trials[0].note
    with pytest.raises(ValueError, match="no masking could be tried: the frame has 200"):
        survey.sdc.suggest(COLUMNS, Microaggregation(COLUMNS, k=500), records=200)


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"columns": ["nobody"]}, KeyError, "does not have: 'nobody'"),
        (
            {"columns": ["region"], "tolerance": 0.2},
            TypeError,
            "tolerance can be set for numeric columns alone",
        ),
        ({"records": 5}, ValueError, "records must be at least 10"),
        ({"specs": ["mdav"]}, TypeError, "specs must be specs"),
        ({"specs": []}, ValueError, "specs is empty"),
        ({"specs": [RankSwap(["age"], p=5)]}, ValueError, "does not mask columns that are"),
        ({"specs": SPECS, "by": "sex"}, ValueError, "by has no meaning with specs"),
    ],
)
def test_wrong_arguments(
    survey: pd.DataFrame, options: dict[str, Any], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=re.escape(words)):
        survey.sdc.suggest(**{"columns": COLUMNS, **options})


def test_the_grid_masks_what_it_should() -> None:
    for columns in (("a",), ("a", "b", "c")):
        specs = grid(columns, "g")
        assert all(spec.masked == columns and spec.by == ("g",) for spec in specs)
        assert len({repr(spec) for spec in specs}) == len(specs)


# Columns of every kind

MIXED = ["age", "region", "sex"]


def test_columns_of_every_kind(survey: pd.DataFrame) -> None:
    specs = {"three": Microaggregation(MIXED, k=3), "ten": Microaggregation(MIXED, k=10)}
    found = survey.sdc.suggest(MIXED, specs, records=100, random_state=1)
    assert not found.failed and [each.k_min for each in found.trials] == [3, 10]
    (name, few), sample = next(iter(specs.items())), survey[MIXED].head(100)
    all_records = sample.sdc.suggest(MIXED, {name: few}).trials[0]
    masked = sample.sdc.mask(few)
    assert all_records.loss == sample.sdc.mixed_loss(masked).loss
    assert all_records.risk == sample.sdc.attack(masked, few).strongest.rate
    # Whoever has the file masks it again, and finds classes of k: more than the nearest are.
    assert all_records.risk > sample.sdc.linkage(masked, "gower").rate
    assert "the whole original file" in all_records.strongest
    text = repr(found)
    assert "mean Gower distance" in text and "interval" not in text
    assert max(map(len, text.splitlines())) <= 100
    assert {"interval", "sse"}.isdisjoint(found.to_frame())
    assert found.choose(max_risk=10.1) == specs["ten"]


def test_what_is_tried_of_columns_of_every_kind(survey: pd.DataFrame) -> None:
    kinds = {type(spec).__name__ for spec in mixed_grid(survey, ("age", "sex"))}
    assert kinds == {"Microaggregation"}
    kinds = {type(spec).__name__ for spec in mixed_grid(survey, ("region", "sex"))}
    assert kinds == {"Microaggregation", "Suppress"}
    # Numbers that become ranges are of every kind, too.
    ranges = Recode(["age"], bins=[0, 40, 130])
    found = survey.sdc.suggest(["age"], [ranges, RankSwap(["age"], p=5)], records=50)
    assert not found.failed and found.mixed


# The figures behind it


def test_loss_grows_with_k_whatever_small_divisors_say() -> None:
    frame = sdc_dask.datasets.survey(3_000, seed=2).compute()[COLUMNS]
    losses = [
        frame.sdc.information_loss(frame.sdc.microaggregate(COLUMNS, k=k)) for k in (3, 10, 30)
    ]
    scaled = [each.il_scaled for each in losses]
    assert scaled == sorted(scaled) and scaled[0] > 0 and scaled[-1] < 100
    assert all("il1 comes mostly from values near 0" in each.note for each in losses)
    assert all("note" in repr(each) for each in losses)


def test_parts_of_the_scaled_loss() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 6.0], "y": [10.0, 8.0, 9.0, 1.0]})
    other = frame.assign(x=[1.5, 1.5, 4.5, 4.5], y=[9.0, 9.0, 9.0, 1.0])
    found = frame.sdc.information_loss(other)
    deviations = frame.std(ddof=0)
    old, new = (each.cov(ddof=0) for each in (frame, other))
    variances = [abs(old.loc[c, c] - new.loc[c, c]) / old.loc[c, c] for c in "xy"]
    covariance = abs(old.loc["x", "y"] - new.loc["x", "y"]) / deviations.prod()
    parts = [
        ((frame - other).abs() / deviations).to_numpy().mean() / 2**0.5,
        ((frame.mean() - other.mean()).abs() / deviations).mean(),
        (sum(variances) + covariance) / 3,
        sum(variances) / 2,
        abs(frame.corr().loc["x", "y"] - other.corr().loc["x", "y"]),
    ]
    assert found.il_scaled == pytest.approx(100 * sum(parts) / 5)
    assert found.note == ""


def test_noise_is_named() -> None:
    frame = pd.DataFrame({"x": [-3.0, -1.0, 1.0, 3.01], "y": [10.0, 11.0, 11.0, 10.0]})
    found = frame.sdc.information_loss(frame.assign(x=[-3.0, -1.0, 1.0, 3.5]))
    assert "il2 comes mostly from means near 0" in found.note
    assert "il3 comes mostly from columns that are hardly correlated" in found.note
    score = frame.sdc.score(frame.assign(x=[-3.0, -1.0, 1.0, 3.5]))
    assert score.note.endswith(found.note) and score.il_scaled == found.il_scaled


def test_notes_of_attacks_survive(survey: pd.DataFrame) -> None:
    spec = RankSwap(COLUMNS, p=10, method="distribution")
    frame = survey[COLUMNS].astype(float)
    masked = frame.sdc.mask(spec, random_state=1)
    attacks = frame.sdc.attack(masked, knows=spec)
    said = "none is certain"
    assert said in repr(attacks) and any(said in note for note in attacks.to_frame()["note"])
    assert said in frame.sdc.disclosure_risk(masked, knows=spec).note
    assert said in frame.sdc.score(masked, knows=spec).note
    assert said in frame.sdc.compare({"a": masked}, knows={"a": spec}).loc["a", "note"]
