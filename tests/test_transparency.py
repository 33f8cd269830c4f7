"""Attacks by intruders who know how the data was masked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sdc_dask import FuzzyMicroaggregation, Mic1D, Microaggregation, RankSwap, SdcError
from sdc_dask.engine import ranks
from sdc_dask.kernels.candidates import count_candidates, count_in_most
from sdc_dask.kernels.neighbours import distinct, search_tree, squared_distances
from sdc_dask.risk.attacks.reach import Reach, intervals, window_of_swap
from sdc_dask.risk.encounter import Encounter
from sdc_dask.sampling import Sampling

# Table 4.1 of J. Nin's thesis: standard rank swapping of ten records, by two ranks at most.
ORIGINAL = [
    (8, 9, 1, 3), (6, 7, 10, 2), (10, 3, 4, 1), (7, 1, 2, 6), (9, 4, 6, 4),
    (2, 2, 8, 8), (1, 10, 3, 9), (4, 8, 7, 10), (5, 5, 5, 5), (3, 6, 9, 7),
]  # fmt: skip
MASKED = [
    (10, 10, 3, 5), (5, 5, 8, 1), (8, 4, 2, 2), (9, 2, 4, 4), (7, 3, 5, 6),
    (4, 1, 10, 10), (3, 9, 1, 7), (2, 6, 9, 8), (6, 7, 6, 3), (1, 8, 7, 9),
]  # fmt: skip
NAMES = ["a", "b", "c", "d"]


def table_4_1() -> tuple[pd.DataFrame, pd.DataFrame]:
    return pd.DataFrame(ORIGINAL, columns=NAMES), pd.DataFrame(MASKED, columns=NAMES)


def normal(n: int, d: int, seed: int = 1) -> pd.DataFrame:
    """Correlated columns, one of them with ties."""
    rng = np.random.default_rng(seed)
    common = rng.normal(size=n)
    columns = {f"x{j}": common + rng.normal(size=n) for j in range(d)}
    return pd.DataFrame(columns | {"x0": np.round(2 * columns["x0"])})


# Boxes


@pytest.mark.parametrize("d", [1, 2, 5, 9])
def test_candidates_in_boxes_are_those_of_a_scan(d: int) -> None:
    rng = np.random.default_rng(d)
    records = rng.integers(0, 8, (300, d)).astype(float)
    points = rng.integers(0, 8, (80, d)).astype(float)
    low, high = points - rng.integers(0, 3, (80, d)), points + rng.integers(0, 3, (80, d))
    low[0], high[0] = -np.inf, np.inf
    own = records[rng.integers(0, 300, 80)]
    weight = np.linspace(1, 2, d)
    squares = squared_distances(points, own, weight)
    tree = search_tree(distinct(records), weight)
    inside, ties = count_candidates(tree, points, low, high, squares, weight)
    agreeing = ((own >= low) & (own <= high)).sum(axis=1)
    most = count_in_most(tree, points, low, high, agreeing, squares, weight)
    for i in range(80):
        within = (records >= low[i]) & (records <= high[i])
        distance = squared_distances(np.tile(points[i], (300, 1)), records, weight)
        box = distance[within.all(axis=1)]
        assert inside[i] == len(box)
        assert ties[i] == (-1 if (box < squares[i]).any() else (box == squares[i]).sum())
        agree = within.sum(axis=1)
        as_good = (agree == agreeing[i]) & (distance == squares[i])
        better = (agree > agreeing[i]) | ((agree == agreeing[i]) & (distance < squares[i]))
        assert most[i] == (-1 if better.any() else as_good.sum())


# Rank swapping


def test_candidates_of_example_4_1() -> None:
    original, masked = table_4_1()
    encounter = Encounter.of(original, masked, NAMES, Sampling.of(None))
    reach = window_of_swap(RankSwap(NAMES, p=20))
    low, high = intervals(encounter, NAMES, [reach] * 4)
    row = ORIGINAL.index((6, 7, 10, 2))
    found = [{r for r in MASKED if low[row, j] <= r[j] <= high[row, j]} for j in range(4)]
    assert found == [
        {(4, 1, 10, 10), (5, 5, 8, 1), (6, 7, 6, 3), (7, 3, 5, 6), (8, 4, 2, 2)},
        {(5, 5, 8, 1), (2, 6, 9, 8), (6, 7, 6, 3), (1, 8, 7, 9), (3, 9, 1, 7)},
        {(5, 5, 8, 1), (2, 6, 9, 8), (4, 1, 10, 10)},
        {(5, 5, 8, 1), (8, 4, 2, 2), (6, 7, 6, 3), (9, 2, 4, 4)},
    ]
    assert set.intersection(*found) == {(5, 5, 8, 1)}


def test_links_of_table_4_2() -> None:
    original, masked = table_4_1()
    spec = RankSwap(NAMES, p=20)
    links = [
        original.sdc.linkage(masked, "rank_swap", knows=spec, known=NAMES[:r]) for r in (1, 2, 3, 4)
    ]
    # By the definition; the thesis prints 8 for all four columns.
    assert [link.correct for link in links] == [0, 2, 7, 7]
    assert [link.certain for link in links] == [0, 1, 5, 7]
    assert links[-1].candidates == 1.3
    assert links[-1].alone == 70


def test_what_must_link_all_and_what_must_link_none() -> None:
    frame = normal(200, 3)
    columns = ["x1", "x2"]
    kept = frame.sdc.linkage(frame, "rank_swap", knows=RankSwap(columns, p=1))
    assert kept.rate == 100
    constant = frame.assign(x1=0.0, x2=0.0)
    spec = Microaggregation(columns, k=200, blocking=None)
    blind = frame.sdc.linkage(constant, "intersection", knows=spec, has_file=True)
    assert blind.rate == pytest.approx(100 / 200)
    assert (blind.certain, blind.candidates) == (0, 200)


def test_who_knows_the_window_links_more_and_less_with_p() -> None:
    frame = normal(2_000, 4, seed=3)[["x1", "x2", "x3"]]
    rates = []
    for p in (2, 5, 10, 20):
        spec = RankSwap(list(frame), p=p)
        masked = frame.sdc.mask(spec, random_state=1)
        knowing = frame.sdc.linkage(masked, "rank_swap", knows=spec)
        blind = frame.sdc.linkage(masked, "distance")
        assert knowing.correct >= blind.correct
        # An upper bound for p is weaker than p, and still right.
        bound = frame.sdc.linkage(masked, "rank_swap", knows=RankSwap(list(frame), p=2 * p))
        assert bound.certain <= knowing.certain
        assert bound.candidates > knowing.candidates
        rates.append(knowing.rate)
    assert rates == sorted(rates, reverse=True)


@pytest.mark.parametrize(
    "options", [{"method": "distribution", "p": 5}, {"method": "buckets", "buckets": 20}]
)
def test_far_swaps_leave_nothing_certain(options: dict[str, Any]) -> None:
    frame = normal(1_000, 4)
    columns = ["x1", "x2", "x3"]
    spec = RankSwap(columns, **options)
    masked = frame.sdc.mask(spec, random_state=1)
    wide = frame.sdc.linkage(masked, "rank_swap", knows=spec, factor=1)
    narrow = frame.sdc.linkage(masked, "rank_swap", knows=spec, factor=0.5)
    assert wide.certain == narrow.certain == 0
    assert "none is certain" in wide.note
    # Intervals that no value leaves are no help: the nearest of all records is taken.
    everything = frame.sdc.linkage(masked, "rank_swap", knows=spec, factor=100)
    assert everything.correct == frame.sdc.linkage(masked, "distance", columns).correct


def test_averaged_extremes_are_within_reach() -> None:
    frame = normal(500, 3)
    spec = RankSwap(["x1", "x2"], p=3, top=4, bottom=2)
    link = frame.sdc.linkage(frame.sdc.mask(spec, random_state=2), "rank_swap", knows=spec)
    assert "are not what the intruder takes them" not in link.note


# Microaggregation


@pytest.mark.parametrize("method", ["optimal", "mdav"])
def test_alignment_finds_at_least_what_distance_finds(method: str) -> None:
    frame = normal(1_000, 4, seed=2)
    spec = Microaggregation([[name] for name in frame], k=20, method=method, blocking=None)
    masked = frame.sdc.mask(spec)
    aligned = frame.sdc.linkage(masked, "alignment", knows=spec)
    beside = frame.sdc.linkage(masked, "intersection", knows=spec)
    distance = frame.sdc.linkage(masked, "distance")
    assert aligned.correct > beside.correct >= distance.correct
    assert aligned.certain > beside.certain > 0


def test_who_has_the_file_repeats_the_masking() -> None:
    frame = normal(600, 4)
    spec = Microaggregation([["x0", "x1"], ["x2", "x3"]], k=4)
    masked = frame.sdc.mask(spec)
    link = frame.sdc.linkage(masked, "intersection", knows=spec, has_file=True)
    classes = masked.groupby(list(masked)).size()
    assert link.correct == pytest.approx(len(classes))
    assert link.certain == (classes == 1).sum()
    # Of a set of which one column is unknown nothing can be repeated.
    part = frame.sdc.linkage(
        masked, "intersection", knows=spec, has_file=True, known=["x0", "x1", "x2"]
    )
    first = masked.groupby(["x0", "x1"]).size()
    assert part.candidates == pytest.approx((first**2).sum() / len(frame))


@pytest.mark.parametrize("method", ["pcp", "zscores"])
def test_projections_that_match_find_more_than_distance(method: str) -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.random((800, 6)), columns=list("abcdef"))
    spec = Microaggregation([["a", "b"], ["c", "d"], ["e", "f"]], k=5, method=method)
    masked = frame.sdc.mask(spec)
    projected = frame.sdc.linkage(masked, "projection", knows=spec)
    assert projected.rate > 1.5 * frame.sdc.linkage(masked, "distance").rate


# What always holds

DATA = st.sampled_from(["normal", "ties", "few"])
SPECS = st.sampled_from(
    [
        RankSwap(["a", "b"], p=5),
        RankSwap(["a", "b"], p=20, top=10, bottom=5),
        RankSwap(["a", "b"], p=100),
        Microaggregation([["a"], ["b"]], k=2, method="optimal"),
        Microaggregation([["a"], ["b"]], k=5, method="mdav", blocking=None),
        Microaggregation([["a"], ["b"]], k=5, blocking=None, decimals=1),
        Microaggregation(["a", "b"], k=3),
        [Microaggregation(["a"], k=3, method="optimal"), RankSwap(["b"], p=10)],
        [Microaggregation(["a"], k=3, method="vmdav"), RankSwap(["b"], p=10)],
    ]
)


@settings(max_examples=60)
@given(DATA, SPECS, st.integers(40, 140), st.integers(0, 10**6), st.booleans())
def test_certain_links_are_right_links(
    kind: str, spec: Any, n: int, seed: int, has_file: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(n, 2))
    if kind == "ties":
        values = np.round(values * 3)
    elif kind == "few":
        values = rng.integers(0, 4, (n, 2)).astype(float)
    frame = pd.DataFrame(values, columns=["a", "b"])
    masked = frame.sdc.mask(spec, random_state=seed if _draws(spec) else None)
    link = frame.sdc.linkage(masked, "intersection", knows=spec, has_file=has_file)
    # Every masked version is among its candidates: so a single candidate is the right one.
    assert "are not what the intruder takes them" not in link.note
    assert link.certain <= link.correct + 1e-9


def _draws(spec: Any) -> bool:
    return any(each.draws for each in (spec if isinstance(spec, list) else [spec]))


@settings(max_examples=40)
@given(DATA, st.sampled_from(["optimal", "mdav"]), st.integers(20, 120), st.integers(0, 10**6))
def test_aligned_candidates_hold_the_masked_version(
    kind: str, method: str, n: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    scale = {"normal": 1e9, "ties": 3, "few": 1}[kind]
    frame = pd.DataFrame(np.round(rng.normal(size=(n, 2)) * scale), columns=["a", "b"])
    spec = Microaggregation([["a"], ["b"]], k=4, method=method, blocking=None)
    link = frame.sdc.linkage(frame.sdc.mask(spec), "alignment", knows=spec)
    assert "are not what the intruder takes them" not in link.note


# Dask


@pytest.mark.parametrize("sample", [None, 300])
@pytest.mark.parametrize("attack", ["rank_swap", "alignment", "intersection", "projection"])
def test_dask_links_what_pandas_links(
    attack: str, sample: int | None, scheduler: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranks, "BORDERS", 64)
    frame = normal(1_000, 4)
    columns = list(frame)
    spec: Any = RankSwap(columns, p=5)
    if attack in ("alignment", "intersection"):
        spec = Microaggregation([[name] for name in columns], k=5, method="optimal")
    elif attack == "projection":
        spec = Microaggregation([columns[:2], columns[2:]], k=5, method="zscores")
    masked = frame.sdc.mask(spec, random_state=1 if _draws(spec) else None)
    options: dict[str, Any] = {"knows": spec, "known": "half", "sample": sample}
    if sample:
        options["random_state"] = 7
    expected = frame.sdc.linkage(masked, attack, **options)
    for parts in (1, 5):
        lazy, other = (dd.from_pandas(each, npartitions=parts) for each in (frame, masked))
        assert lazy.sdc.linkage(other, attack, **options) == expected


# Several attacks


def test_every_attack_that_fits_is_run_and_the_strongest_is_named() -> None:
    frame = normal(600, 4)
    swap = RankSwap(["x1", "x2", "x3"], p=4)
    swapped = frame.sdc.mask(swap, random_state=1)
    found = frame.sdc.attack(swapped, knows=swap)
    assert set(found.attacks) == {"distance", "probabilistic", "rank_swap"}
    rates = found.to_frame()["linked"].tolist()
    assert rates == sorted(rates, reverse=True)
    assert found.strongest.attack.startswith("nearest in the box")
    assert "who know original values of all 3 columns" in repr(found)

    groups = Microaggregation([["x0", "x1"], ["x2", "x3"]], k=5)
    masked = frame.sdc.mask(groups)
    found = frame.sdc.attack(masked, knows=groups)
    assert set(found.attacks) == {"distance", "probabilistic", "intersection", "projection"}
    assert found.attacks[0] == "intersection"  # by who has the file

    fuzzy = FuzzyMicroaggregation(["x1", "x2"], k=5, m1=1.5, m2=1.1)
    with pytest.warns(UserWarning, match="does not guarantee"):
        masked = frame.sdc.mask(fuzzy, random_state=1)
    assert set(frame.sdc.attack(masked, knows=fuzzy).attacks) == {"distance", "probabilistic"}


def test_columns_of_every_kind_are_attacked_by_all_and_by_their_numbers() -> None:
    frame = normal(80, 3).assign(
        job=pd.Categorical(list("abcd") * 20),
        size=pd.Categorical(["S", "M"] * 40, ["S", "M", "L"], ordered=True),
        born=pd.Timestamp("2001-02-03") + pd.to_timedelta(range(80), "D"),
        gap=pd.array([1.5, None] * 40, "Float64"),
    )
    together = ["x0", "x1", "job", "size", "born", "gap"]
    spec = Microaggregation(together, k=4, missing="separate")
    masked = frame.sdc.mask(spec)
    found = frame.sdc.attack(masked, spec)
    assert "all 6 columns; numbers alone: x0, x1\n" in repr(found)  # none with missing cells
    by_name = dict(zip(zip(found.attacks, found.assumes, strict=True), found.links, strict=True))
    assert by_name["gower", "nothing else"] == frame.sdc.linkage(masked, "gower", together)
    numbers = frame.sdc.linkage(masked, "distance", ["x0", "x1"])
    assert by_name["distance", "nothing else; numbers alone"] == numbers
    # With the file, the masking is repeated: what is left to guess are the classes.
    assert found.attacks[0] == "intersection" and found.strongest.certain == 0
    classes = masked.sdc.anonymity(together)
    assert found.strongest.correct == pytest.approx(classes.classes)
    rates = found.to_frame()["linked"].tolist()
    assert rates == sorted(rates, reverse=True)

    lazy, other = (dd.from_pandas(each, npartitions=3) for each in (frame, masked))
    assert lazy.sdc.attack(other, spec) == found
    # Who knows some columns alone cannot repeat it.
    some = frame.sdc.attack(masked, spec, known=["job", "born"])
    assert (some.attacks, some.assumes) == (("gower",), ("nothing else",))
    assert some.strongest == frame.sdc.linkage(masked, "gower", ["job", "born"])


def test_risk_and_score_by_the_strongest_intruder() -> None:
    frame = normal(600, 4)
    columns = ["x1", "x2", "x3"]
    spec = RankSwap(columns, p=4)
    masked = frame.sdc.mask(spec, random_state=1)
    blind = frame.sdc.disclosure_risk(masked, columns)
    risk = frame.sdc.disclosure_risk(masked, knows=spec)
    (specific,) = risk.specific.values()
    assert (blind.specific, blind.dr_new) == ({}, None)
    assert blind.linked == max(blind.dld, blind.pld)
    assert risk.strongest.startswith("rank_swap")
    assert risk.linked == specific > blind.linked
    assert risk.dr == blind.dr
    assert risk.dr_new == pytest.approx((risk.dld + risk.pld + specific) / 6 + risk.interval / 2)
    assert risk.dr_max == pytest.approx(specific / 2 + risk.interval / 2)
    score = frame.sdc.score(masked, knows=spec)
    assert score.score_new == pytest.approx(score.il / 2 + risk.dr_new / 2)
    assert score.score_max == pytest.approx(score.il / 2 + risk.dr_max / 2)
    table = frame[columns].sdc.compare(
        {"known": masked[columns], "secret": masked[columns]}, knows={"known": spec}
    )
    assert table.loc["known", "linked"] == specific
    assert table.loc["known", "strongest"].startswith("rank_swap")
    assert table.loc["secret", "linked"] == blind.linked


# Bad input

UNKNOWN = "is masked by none of the specs"


@pytest.mark.parametrize(
    ("attack", "options", "message"),
    [
        ("rank_swap", {}, "needs knows="),
        ("rank_swap", {"knows": "swap"}, "must be a spec"),
        ("rank_swap", {"knows": RankSwap(["x1"], p=5), "columns": ["x1", "x2"]}, UNKNOWN),
        ("rank_swap", {"knows": Microaggregation(["x1"], k=3)}, "is for swapped columns"),
        ("rank_swap", {"knows": RankSwap(["x1"], p=5, blocking="tree")}, "not modelled"),
        ("rank_swap", {"knows": RankSwap(["x1"], p=5, by="x0")}, "not modelled"),
        ("rank_swap", {"knows": RankSwap(["x1"], p=5), "factor": 2}, "factor has no meaning"),
        ("alignment", {"knows": Microaggregation(["x1", "x2"], k=3)}, "one by one"),
        ("alignment", {"knows": Microaggregation(["x1"], k=3)}, "without blocks"),
        ("alignment", {"knows": Mic1D(["x1"], kappa=9)}, "one by one"),
        ("intersection", {"knows": RankSwap(["x1"], p=5), "has_file": 1}, "has_file must be"),
        ("projection", {"knows": RankSwap(["x1"], p=5), "projection": "x"}, "projection must be"),
        ("projection", {"knows": RankSwap(["x9"], p=5)}, "does not have"),
        ("distance", {"knows": RankSwap(["x1"], p=5)}, "takes no knows"),
    ],
)
def test_bad_input(attack: str, options: dict[str, Any], message: str) -> None:
    frame = normal(50, 3)
    with pytest.raises((TypeError, ValueError, KeyError), match=message):
        frame.sdc.linkage(frame, attack, **options)


def test_maskings_that_are_compared_need_names_of_theirs() -> None:
    frame = normal(50, 3)
    with pytest.raises(TypeError, match="knows must be a dict"):
        frame.sdc.compare({"a": frame}, knows=RankSwap(["x1"], p=5))
    with pytest.raises(ValueError, match="not compared: 'b'"):
        frame.sdc.compare({"a": frame}, knows={"b": RankSwap(["x1"], p=5)})


def test_a_window_is_clipped_at_both_ends() -> None:
    first, last = Reach("window", 10).ranks(np.array([0, 5, 9]), np.array([1, 6, 10]), 10)
    assert (first.tolist(), last.tolist()) == ([0, 4, 8], [1, 6, 9])
    first, last = Reach("neighbours").ranks(np.array([0, 4]), np.array([0, 6]), 10)
    assert (first.tolist(), last.tolist()) == ([0, 3], [0, 6])


# Published figures


def test_swapped_census(census: pd.DataFrame) -> None:
    columns = list(census)
    for p in (2, 10, 20):
        spec = RankSwap(columns, p=p)
        masked = census.sdc.mask(spec, random_state=1)
        knowing = census.sdc.linkage(masked, "rank_swap", knows=spec, known="half")
        blind = census.sdc.linkage(masked, "distance", known="half")
        assert knowing.rate >= blind.rate
        published = {2: 77.73, 10: 29.21, 20: None}[p]
        assert published is None or abs(knowing.rate - published) < 4


@pytest.mark.parametrize("data", ["census", "eia"])
def test_aligned_univariate_microaggregation(
    data: str, request: pytest.FixtureRequest, reference: Callable[[str], pd.DataFrame]
) -> None:
    frame = request.getfixturevalue(data)
    columns = list(frame)[:5]
    spec = Microaggregation([[name] for name in columns], k=50, method="optimal")
    masked = frame.sdc.mask(spec)
    for r in (2, 3, 4, 5):
        aligned = frame.sdc.linkage(masked, "alignment", knows=spec, known=columns[:r])
        assert aligned.correct >= frame.sdc.linkage(masked, "distance", columns[:r]).correct


@pytest.mark.parametrize("attack", ["intersection", "alignment"])
@pytest.mark.parametrize(
    "options",
    [
        {"keep_integers": True},
        {"keep_integers": True, "decimals": 1},
        {"unit": "person"},
        {"nominal": ["a", "b"]},
        {"orders": {"a": [*range(1, 12), 0], "b": [*range(1, 12), 0]}},
    ],
    ids=["integers", "decimals", "units", "categories", "orders"],
)
def test_groups_that_are_out_of_order_are_not_taken_for_others(
    options: dict[str, Any], attack: str
) -> None:
    """No record is looked for where it cannot be, which would make a masking look safe."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.integers(0, 12, (90, 2)), columns=["a", "b"])
    frame["person"] = np.arange(90) // 2
    spec = Microaggregation([["a"], ["b"]], 3, blocking=None, **options)
    masked = frame.sdc.mask(spec)
    asked = {"attack": attack, "knows": spec, "columns": ["a", "b"]}
    if attack == "alignment" and "keep_integers" not in options:
        with pytest.raises(SdcError, match="without blocks, strata and units"):
            frame.sdc.linkage(masked, **asked)
        return
    link = frame.sdc.linkage(masked, **asked)
    assert "are not what the intruder takes them" not in link.note
    assert link.certain <= link.correct + 1e-9
    assert link.rate >= frame.sdc.linkage(masked, columns=["a", "b"]).rate - 1e-9
