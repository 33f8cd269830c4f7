"""Disclosure risk, score and comparison: the parts, their sums, and the orderings they show."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask.evaluation import WEIGHTS


@pytest.fixture(autouse=True)
def _unfinished_estimates() -> Iterator[None]:
    """Masked data may leave nothing to estimate; that links say so is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="EM did not converge")
        yield


@pytest.fixture
def some(census: pd.DataFrame) -> pd.DataFrame:
    return census.iloc[:400, :5]


def test_parts_add_up(some: pd.DataFrame) -> None:
    masked = some.sdc.microaggregate(list(some), 5)
    risk = some.sdc.disclosure_risk(masked)
    rates = [
        some.sdc.linkage(masked, attack, known="half").rate
        for attack in ("distance", "probabilistic")
    ]
    assert (risk.dld, risk.pld) == tuple(rates)
    assert risk.interval == some.sdc.interval_disclosure(masked).interval
    assert risk.dr == 0.25 * risk.dld + 0.25 * risk.pld + 0.5 * risk.interval
    assert (risk.attacks, risk.tried) == (3, 400)
    score = some.sdc.score(masked)
    assert score.il == some.sdc.information_loss(masked).il
    assert score.score == pytest.approx(0.5 * score.il + 0.5 * risk.dr)
    only_risk = some.sdc.score(masked, weights={"dld": 0.5, "interval": 0.5})
    assert only_risk.score == 0.5 * risk.dld + 0.5 * risk.interval


def test_known_columns_are_averaged(some: pd.DataFrame) -> None:
    masked = some.sdc.rank_swap(list(some), 5, random_state=0)
    singles = [some.sdc.linkage(masked, known=list(some.columns[:r])).rate for r in range(1, 6)]
    mean = some.sdc.linkage(masked, known="all")
    assert mean.rate == pytest.approx(np.mean(singles))
    assert "mean of 5 attacks" in mean.note
    groups = [["AFNLWGT", "AGI"], ["EMCONTRB"], ["FEDTAX", "PTOTVAL"]]
    by_group = some.sdc.linkage(masked, known="groups", groups=groups)
    assert by_group.rate == pytest.approx(np.mean([singles[2], singles[4]]))


def test_dask_equals_pandas(some: pd.DataFrame, scheduler: str) -> None:
    masked = some.sdc.microaggregate(list(some), 5)
    lazy, other = (dd.from_pandas(frame, npartitions=3) for frame in (some, masked))
    expected, found = (frame.sdc.score(new) for frame, new in ((some, masked), (lazy, other)))
    pd.testing.assert_frame_equal(found.to_frame(), expected.to_frame(), rtol=1e-9)


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


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("partitions", [1, 4, 11])
def test_badly_scaled_values(measure: str, partitions: int) -> None:
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
    masked = frame.sdc.microaggregate(BADLY_SCALED, 4)
    lazy, other = (dd.from_pandas(each, npartitions=partitions) for each in (frame, masked))
    found, expected = MEASURES[measure](lazy, other), MEASURES[measure](frame, masked)
    # To 1e-9 all of it; figures that are counted are the same.
    assert_close(found.to_dict(), expected.to_dict())


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


def test_a_sample_is_drawn_once(some: pd.DataFrame) -> None:
    masked = some.sdc.rank_swap(list(some), 10, random_state=0)
    risk = some.sdc.disclosure_risk(masked, sample=100, random_state=3)
    assert risk.tried == 100
    assert risk.dld_low < risk.dld < risk.dld_high
    full = some.sdc.disclosure_risk(masked)
    assert risk.dld_low <= full.dld <= risk.dld_high
    assert full.dld_low == full.dld == full.dld_high
    # The same masking twice is attacked on the same records.
    table = some.sdc.compare({"one": masked, "two": masked}, sample=100)
    assert table.loc["one"].equals(table.loc["two"])


def test_what_is_risked_falls_and_what_is_lost_grows(census: pd.DataFrame) -> None:
    columns = list(census.columns)
    maskings = {f"mdav {k}": census.sdc.microaggregate(columns, k) for k in (3, 10, 50)} | {
        f"swap {p}": census.sdc.rank_swap(columns, p, random_state=0) for p in (2, 8, 20)
    }
    maskings["individual"] = census.sdc.microaggregate(
        sdc_dask.grouping.individual(columns), 5, method="optimal"
    )
    maskings["mdav 5"] = census.sdc.microaggregate(columns, 5)
    table = census.sdc.compare(maskings)
    for method, levels in (("mdav", (3, 5, 10, 50)), ("swap", (2, 8, 20))):
        rows = table.loc[[f"{method} {level}" for level in levels]]
        assert rows["il"].is_monotonic_increasing
        assert rows["sse"].is_monotonic_increasing
        assert rows["interval"].is_monotonic_decreasing
        assert rows["dld"].is_monotonic_decreasing
    # Masking each column alone leaves most records in reach, and changes least.
    assert table["dld"].idxmax() == "individual"
    assert table["sse"].idxmin() == "individual"
    assert table.loc[[f"mdav {k}" for k in (3, 5, 10, 50)], "k_min"].tolist() == [3, 5, 10, 50]


def test_unmasked_data_is_all_risk_and_no_loss(some: pd.DataFrame) -> None:
    score = some.sdc.score(some, known=list(some))
    assert score.il == 0
    assert score.dr == pytest.approx(100)
    assert score.score == pytest.approx(50)
    assert score.weights == WEIGHTS


def test_bad_input(some: pd.DataFrame) -> None:
    with pytest.raises(ValueError, match="attack must be one of 'distance', 'probabilistic'"):
        some.sdc.linkage(some, "guess")
    with pytest.raises(TypeError, match="takes no tolerance: its options are distance,"):
        some.sdc.linkage(some, "distance", tolerance=1)
    with pytest.raises(ValueError, match="known must be 'half', 'all', 'groups' or a list"):
        some.sdc.disclosure_risk(some, known="most")
    with pytest.raises(TypeError, match="weights must be a dict with the keys 'il', 'dld'"):
        some.sdc.score(some, weights=[0.5, 0.5])
    with pytest.raises(ValueError, match="unknown parts: 'sse'"):
        some.sdc.score(some, weights={"sse": 1})
    with pytest.raises(ValueError, match=r"sum to 1, received a sum of 0\.6"):
        some.sdc.score(some, weights={"il": 0.3, "dld": 0.3})
    with pytest.raises(TypeError, match="masked must be a dict of masked frames"):
        some.sdc.compare(some)
    with pytest.raises(TypeError, match="masked must be a dict of masked frames"):
        some.sdc.compare({})
    with pytest.raises(ValueError, match="do not have the same numeric columns"):
        some.sdc.compare({"a": some, "b": some.iloc[:, :2]})
    with pytest.raises(ValueError, match="other rows"):
        some.sdc.score(some.iloc[1:])
