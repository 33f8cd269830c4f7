"""Disclosure risk, score and comparison: the parts, their sums, and the orderings they show."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any
from uuid import uuid4

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask.evaluation import WEIGHTS
from sdc_dask.sampling import draw_rows


@pytest.fixture(scope="module")
def survey() -> pd.DataFrame:
    """Columns of a survey that was made up."""
    columns = ["income", "wealth", "age", "tax", "hours"]
    return sdc_dask.datasets.survey(400, seed=1).compute()[columns].astype(float)


@pytest.fixture(scope="module")
def grouped(survey: pd.DataFrame) -> pd.DataFrame:
    return survey.sdc.microaggregate(list(survey), 5)


def test_parts_add_up(survey: pd.DataFrame, grouped: pd.DataFrame) -> None:
    for known, said in (
        (None, "all 5 columns"),
        ("half", "half: the first 1 to 3 of 5 columns, mean of 3 attacks"),
        (["age", "tax"], "2 of 5 columns: age, tax"),
    ):
        risk = survey.sdc.disclosure_risk(grouped, known=known)
        rates = [
            survey.sdc.linkage(grouped, attack, known=known).rate
            for attack in ("distance", "probabilistic")
        ]
        assert [risk.dld, risk.pld] == rates
        assert risk.interval == survey.sdc.interval_disclosure(grouped).interval
        assert risk.dr == 0.25 * risk.dld + 0.25 * risk.pld + 0.5 * risk.interval
        assert (risk.known, risk.tried) == (said, 400)
    score = survey.sdc.score(grouped, known=known)
    loss = survey.sdc.information_loss(grouped)
    assert (score.il, score.il_scaled) == (loss.il, loss.il_scaled)
    assert score.score == pytest.approx(0.5 * score.il + 0.5 * risk.dr)
    assert (score.known, score.agreement) == (said, risk.agreement)
    assert score.note == f"{risk.note}; {loss.note}"
    only_risk = survey.sdc.score(grouped, known=known, weights={"dld": 0.5, "interval": 0.5})
    assert only_risk.score == 0.5 * risk.dld + 0.5 * risk.interval


def test_how_values_have_to_agree(survey: pd.DataFrame, grouped: pd.DataFrame) -> None:
    for options, said in (
        ({}, "within 10% of the original value"),
        ({"tolerance": 0.5, "unit": "deviation"}, "within 0.5 deviations"),
        ({"tolerance": 0}, "equal"),
    ):
        score = survey.sdc.score(grouped, **options)
        assert score.agreement == said
        assert said in repr(score)
        assert score.pld == survey.sdc.linkage(grouped, "probabilistic", **options).rate
        table = survey.sdc.compare({"mdav": grouped}, **options)
        assert table.loc["mdav", "pld"] == score.pld
        assert table.attrs == {"known": "all 5 columns", "agreement": said}


def test_known_columns_are_averaged(survey: pd.DataFrame) -> None:
    masked = survey.sdc.rank_swap(list(survey), 5, random_state=0)
    singles = [survey.sdc.linkage(masked, known=list(survey.columns[:r])).rate for r in range(1, 6)]
    mean = survey.sdc.linkage(masked, known="all")
    assert mean.rate == pytest.approx(np.mean(singles))
    assert "mean of 5 attacks" in mean.note
    groups = [["income", "wealth"], ["age"], ["tax", "hours"]]
    by_group = survey.sdc.linkage(masked, known="groups", groups=groups)
    assert by_group.rate == pytest.approx(np.mean([singles[2], singles[4]]))


@pytest.mark.long_on_cluster
def test_dask_equals_pandas(survey: pd.DataFrame, grouped: pd.DataFrame, scheduler: str) -> None:
    lazy, other = (dd.from_pandas(frame, npartitions=3) for frame in (survey, grouped))
    for options in ({}, {"known": "half", "sample": 100, "random_state": 2}):
        assert lazy.sdc.score(other, **options) == survey.sdc.score(grouped, **options)


class Counted:
    """Count how often the partitions of a frame are computed."""

    def __init__(self, frame: pd.DataFrame, npartitions: int = 2) -> None:
        self.calls = 0
        self.npartitions = npartitions
        lazy = dd.from_pandas(frame, npartitions=npartitions)
        # By its name, Dask would take one frame for another.
        token = f"counted-{uuid4().hex}"
        self.frame = lazy.map_partitions(self._count, meta=frame.iloc[:0], token=token)

    def _count(self, part: pd.DataFrame) -> pd.DataFrame:
        self.calls += 1
        return part

    @property
    def passes(self) -> float:
        return self.calls / self.npartitions


@pytest.mark.parametrize("options", [{"sample": None}, {"sample": 50, "random_state": 1}])
@pytest.mark.parametrize(
    "measure",
    [
        lambda x, y, **options: x.sdc.linkage(y, **options),
        lambda x, y, **options: x.sdc.linkage(y, "probabilistic", **options),
        lambda x, y, **options: x.sdc.disclosure_risk(y, **options),
        lambda x, y, **options: x.sdc.score(y, **options),
        lambda x, y, **options: x.sdc.compare({"one": y}, **options),
    ],
    ids=["distance", "probabilistic", "disclosure_risk", "score", "compare"],
)
def test_passes_do_not_depend_on_known_columns(
    measure: Callable[..., Any], options: dict, survey: pd.DataFrame, grouped: pd.DataFrame
) -> None:
    passes = {}
    for known in (None, "half", "all"):
        one, other = Counted(survey), Counted(grouped)
        with dask.config.set(scheduler="sync"):
            measure(one.frame, other.frame, known=known, **options)
        passes[known] = (one.passes, other.passes)
    assert passes["half"] == passes["all"] == passes[None]
    assert min(passes[None]) > 0
    assert max(passes[None]) <= 13


MEASURES: dict[str, Callable[[Any, Any], Any]] = {
    "sse": lambda x, y: x.sdc.sse(y, BADLY_SCALED),
    "information_loss": lambda x, y: x.sdc.information_loss(y, BADLY_SCALED),
    "regression": lambda x, y: x.sdc.information_loss(y, BADLY_SCALED, regression="far ~ tiny"),
    "intervals": lambda x, y: x.sdc.interval_disclosure(y, BADLY_SCALED),
    "widths": lambda x, y: x.sdc.interval_disclosure(y, BADLY_SCALED, width=0.1),
    "distance": lambda x, y: x.sdc.linkage(y, columns=BADLY_SCALED),
    "mahalanobis": lambda x, y: x.sdc.linkage(y, columns=BADLY_SCALED, distance="mahalanobis"),
    "sample": lambda x, y: x.sdc.linkage(y, columns=BADLY_SCALED, sample=50, random_state=1),
    "blocked": lambda x, y: x.sdc.linkage(y, columns=BADLY_SCALED, blocking="tree", max_block=60),
    "probabilistic": lambda x, y: x.sdc.linkage(y, "probabilistic", BADLY_SCALED),
    "score": lambda x, y: x.sdc.score(y, BADLY_SCALED),
    "anonymity": lambda x, y: y.sdc.anonymity(BADLY_SCALED, 4),
    "diversity": lambda x, y: y.sdc.anonymity(BADLY_SCALED, confidential=["kept"]),
}
BADLY_SCALED = ["far", "tiny", "huge"]


@pytest.fixture(scope="module")
def badly_scaled() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(5)
    base = rng.normal(size=300)
    frame = pd.DataFrame(
        {
            "far": 1e9 + base,
            "tiny": 1e-9 * (base + rng.normal(size=300)),
            "huge": 1e12 * rng.lognormal(0, 2, 300),
            "kept": rng.integers(0, 5, 300),
        }
    )
    return frame, frame.sdc.microaggregate(BADLY_SCALED, 4)


@pytest.mark.parametrize("measure", MEASURES)
def test_badly_scaled_values(measure: str, badly_scaled: tuple[pd.DataFrame, pd.DataFrame]) -> None:
    expected = MEASURES[measure](*badly_scaled)
    for partitions in (1, 7):
        lazy = (dd.from_pandas(each, npartitions=partitions) for each in badly_scaled)
        # To 1e-9 all of it; figures that are counted are the same.
        assert_close(MEASURES[measure](*lazy).to_dict(), expected.to_dict())


def assert_close(found: Any, expected: Any) -> None:
    """Compare numbers, and what lists and dicts hold of them."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key in expected:
            assert_close(found[key], expected[key])
    elif isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            assert_close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-9, abs=0, nan_ok=True)
    else:
        assert found == expected


def test_a_sample_is_drawn_once(survey: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    masked = survey.sdc.rank_swap(list(survey), 10, random_state=0)
    risk = survey.sdc.disclosure_risk(masked, sample=100, random_state=3)
    assert risk.tried == 100
    assert risk.dld_low < risk.dld < risk.dld_high
    full = survey.sdc.disclosure_risk(masked)
    assert risk.dld_low <= full.dld <= risk.dld_high
    assert full.dld_low == full.dld == full.dld_high
    # The same masking twice is attacked on the same records.
    table = survey.sdc.compare({"one": masked, "two": masked}, sample=100, random_state=4)
    assert table.loc["one"].equals(table.loc["two"])
    # So are all sets of known columns.
    drawn = []

    def draw(*args: int) -> np.ndarray:
        drawn.append(draw_rows(*args))
        return drawn[-1]

    monkeypatch.setattr("sdc_dask.sampling.draw_rows", draw)
    survey.sdc.linkage(masked, known="all", sample=100)
    assert len(drawn) == 1
    survey.sdc.compare({"one": masked, "two": survey}, known="all", sample=100)
    assert len(drawn) == 3
    assert (drawn[1] == drawn[2]).all()


def test_large_frames_are_sampled_unless_all_are_asked_for() -> None:
    frame = pd.DataFrame({"x": np.arange(10_001.0)})
    risk = frame.sdc.disclosure_risk(frame)
    assert risk.tried == 5_000
    assert "a random sample of 5,000 of 10,001 records was tried" in risk.note
    assert "a random sample of 5,000 of" in frame.sdc.compare({"one": frame}).loc["one", "note"]
    assert frame.sdc.disclosure_risk(frame, sample=None).tried == 10_001
    assert frame.iloc[1:].sdc.score(frame.iloc[1:]).tried == 10_000


def test_a_comparison_is_a_frame_that_fits_the_screen(survey: pd.DataFrame) -> None:
    columns = ["income", "age"]
    some = survey[columns].head(50)
    spec = sdc_dask.Microaggregation(columns, k=5)
    masked = some.sdc.mask(spec)
    names = [f"masking number {number}" for number in range(6)]
    found = some.sdc.compare(dict.fromkeys(names, masked), knows={names[0]: spec})
    lines = repr(found).splitlines()
    assert max(map(len, lines)) <= 100 and not any("\\" in line for line in lines)
    text = " ".join(" ".join(lines).split())
    for said in [*names, *found.columns.drop(["strongest", "note"]), found["note"].iloc[0]]:
        assert said in text
    assert f"strongest attack on {names[0]}: {found['strongest'].iloc[0]}" in text
    # In all else it is a frame, and what is made of it is printed as usual.
    assert isinstance(found, pd.DataFrame) and type(found[["il"]]) is pd.DataFrame
    pd.testing.assert_frame_equal(pickle.loads(pickle.dumps(found)), found)


def test_what_is_risked_falls_and_what_is_lost_grows(survey: pd.DataFrame) -> None:
    columns = list(survey)
    maskings = {f"mdav {k}": survey.sdc.microaggregate(columns, k) for k in (3, 10, 50)} | {
        f"swap {p}": survey.sdc.rank_swap(columns, p, random_state=0) for p in (2, 8, 25)
    }
    maskings["individual"] = survey.sdc.microaggregate(
        sdc_dask.grouping.individual(columns), 3, method="optimal"
    )
    table = survey.sdc.compare(maskings)
    for rows in (table.iloc[:3], table.iloc[3:6]):
        for lost in ("sse", "il1_scaled"):
            assert (np.diff(rows[lost]) > 0).all()
        for risked in ("dld", "interval", "dr"):
            assert (np.diff(rows[risked]) < 0).all()
    # Masking each column alone leaves most records in reach, and changes least.
    assert table["dld"].idxmax() == "individual"
    assert table["sse"].idxmin() == "individual"
    assert table["k_min"].tolist()[:3] == [3, 10, 50]


def test_all_risk_and_no_risk(survey: pd.DataFrame) -> None:
    score = survey.sdc.score(survey)
    assert score.il == 0
    assert score.interval == 100
    assert score.dr > 98  # of records that are equal, one is as good as another
    assert score.weights == WEIGHTS
    mean = survey.sdc.score(survey * 0 + survey.mean())
    assert (mean.interval, mean.dld) == (0, pytest.approx(100 / 400))
    assert mean.dr < 1


def test_results_are_printed_within_100_columns(survey: pd.DataFrame) -> None:
    columns = ["income", "age"]
    masked = survey.sdc.microaggregate(columns, k=3)
    spec = sdc_dask.Microaggregation(columns, k=3)
    for found in (survey.sdc.score(masked, columns), survey.sdc.attack(masked, spec, columns)):
        assert max(map(len, repr(found).splitlines())) <= 100
    told = survey.sdc.attack(masked, spec, columns)
    assert " ".join(repr(told).split()).count("whole original file") == 1
    assert repr(survey.sdc.disclosure_risk(masked, columns)).count("specific   -") == 1


def test_bad_input(survey: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="attack must be one of 'distance', 'probabilistic'"):
        survey.sdc.linkage(survey, "guess")
    with pytest.raises(TypeError, match="takes no tolerance: its options are distance,"):
        survey.sdc.linkage(survey, "distance", tolerance=1)
    with pytest.raises(ValueError, match="known must be 'half', 'all', 'groups' or a list"):
        survey.sdc.disclosure_risk(survey, known="most")
    with pytest.raises(ValueError, match="sample must be a whole number of at least 1, 'auto' or"):
        survey.sdc.score(survey, sample="all")
    with pytest.raises(ValueError, match="random_state has a meaning with sample alone"):
        survey.sdc.compare({"one": survey}, sample=None, random_state=1)
    with pytest.raises(TypeError, match="weights must be a dict with the keys 'il', 'dld'"):
        survey.sdc.score(survey, weights=[0.5, 0.5])
    with pytest.raises(ValueError, match="unknown parts: 'sse'"):
        survey.sdc.score(survey, weights={"sse": 1})
    with pytest.raises(ValueError, match=r"sum to 1, received a sum of 0\.6"):
        survey.sdc.score(survey, weights={"il": 0.3, "dld": 0.3})
    recoded = survey.assign(income=survey["income"].astype(str))
    with pytest.raises(TypeError, match="not in the masked frame, as after recoding: 'income'"):
        survey.sdc.information_loss(recoded, ["income"])
    with pytest.raises(TypeError, match="masked must be a dict of masked frames"):
        survey.sdc.compare(survey)
    with pytest.raises(TypeError, match="masked must be a dict of masked frames"):
        survey.sdc.compare({})
    with pytest.raises(ValueError, match="do not have the same numeric columns"):
        survey.sdc.compare({"a": survey, "b": survey.iloc[:, :2]})
    with pytest.raises(ValueError, match="other rows"):
        survey.sdc.score(survey.iloc[1:])
