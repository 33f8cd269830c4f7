"""Accessor, mask and protect pass on what specs and their checks say, before any data is read."""

from __future__ import annotations

import dataclasses
import inspect
import itertools
import math
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask import (
    FuzzyMicroaggregation,
    Mic1D,
    Microaggregation,
    RankSwap,
    SdcError,
    Spec,
    accessor,
    protect,
)
from sdc_dask.accessor import SdcAccessor
from sdc_dask.aggregation import power
from sdc_dask.errors import SdcTypeError
from sdc_dask.masking import run
from sdc_dask.release import source as source_module

METHODS: dict[str, type[Spec]] = {
    "microaggregate": Microaggregation,
    "mic1d": Mic1D,
    "fuzzy_microaggregate": FuzzyMicroaggregation,
    "rank_swap": RankSwap,
}
every_method = pytest.mark.parametrize("method", METHODS)


def people(n: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "x": rng.lognormal(10.0, 1.0, n),
            "y": rng.normal(50.0, 9.0, n),
            "g": np.arange(n) % 2,
            "text": [f"person {i}" for i in range(n)],
        }
    )


def _never(*_args: Any, **_options: Any) -> Any:
    raise AssertionError("the data was read")


def unread(frame: pd.DataFrame | None = None) -> dd.DataFrame:
    """Return a Dask frame that fails if a partition is computed."""
    meta = (people() if frame is None else frame).iloc[:0]
    return dd.from_map(_never, range(3), meta=meta)


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a source whose rows cannot be read."""
    people().to_parquet(tmp_path / "source.parquet", index=False)
    monkeypatch.setattr(source_module.Piece, "read", _never)
    return tmp_path / "source.parquet"


@pytest.fixture(params=["pandas", "dask", "files"])
def mask(request: pytest.FixtureRequest, source: Path) -> Callable[..., Any]:
    """Return what masks by specs, on data that cannot be read: frames, or a source."""
    if request.param == "files":
        return lambda specs, **options: protect(
            source, source.with_name("target"), specs, keep="*", **options
        )
    return (people() if request.param == "pandas" else unread()).sdc.mask


def refusal(function: Callable[..., Any], *args: Any, **options: Any) -> tuple[type, str]:
    """Expect an error of this package; give its type and text."""
    with pytest.raises(SdcError) as caught:
        function(*args, **options)
    return caught.type, str(caught.value)


# The accessor builds specs


@every_method
def test_signatures_show_the_options_of_the_spec(method: str) -> None:
    built = inspect.signature(getattr(SdcAccessor, method)).parameters
    options = inspect.signature(METHODS[method]).parameters
    assert list(built)[: 1 + len(options)] == ["self", *options]
    for name, option in options.items():
        assert (built[name].default, built[name].kind) == (option.default, option.kind)
    own = list(built)[1 + len(options) :]
    draws = METHODS[method].draws
    assert own == (["random_state"] if draws else ["keep_order"] * (method == "microaggregate"))


@every_method
def test_docstrings_describe_the_options_of_the_spec(method: str) -> None:
    text = inspect.getdoc(getattr(SdcAccessor, method)) or ""
    assert "{parameters}" not in text
    parameters = text.partition("Parameters\n----------\n")[2].partition("\nReturns\n")[0]
    described = re.findall(r"^([a-z_0-9, ]+) : ", parameters, re.MULTILINE)
    names = [name for line in described for name in line.split(", ")]
    assert names == list(inspect.signature(getattr(SdcAccessor, method)).parameters)[1:]


# Of each spec: what must be given, and another value for every option.
OPTIONS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "microaggregate": (
        {"columns": ["x", "y"], "k": 3},
        {
            "method": "pcp",
            "blocking": "tree",
            "max_block": 40,
            "standardize": False,
            "by": "g",
            "small": {"small": "merge", "by": "g"},
            "missing": "separate",
            "missing_values": [-9],
            "decimals": 2,
            "refine": 7,
            "borders": {"refine": 7, "borders": True},
            "orders": {"orders": {"x": [1, 2]}},
            "nominal": "x",
            "importance": {"importance": {"x": 2}},
            "keep_integers": True,
            "unit": "g",
            "units_alike": {"unit": "g", "units_alike": True},
            "gain": {"method": "vmdav", "gain": 0.7},
            "weights": {"method": "weighted_mean", "weights": [0.25, 0.75]},
            "measure": {"method": "owa", "measure": power(3)},
        },
    ),
    "mic1d": ({"columns": ["x", "y"], "kappa": 20}, {"by": "g"}),
    "fuzzy_microaggregate": (
        {"columns": ["x", "y"], "k": 3, "m1": 1.5, "m2": 1.2},
        {
            "blocking": None,
            "max_block": 40,
            "standardize": False,
            "by": "g",
            "missing": "separate",
            "missing_values": [-9],
        },
    ),
    "rank_swap": (
        {"columns": ["x", "y"], "p": 5},
        {
            "method": "distribution",
            "buckets": {"p": None, "method": "buckets", "buckets": 4},
            "blocking": "tree",
            "max_block": {"blocking": "tree", "max_block": 40},
            "by": "g",
            "missing": "error",
            "missing_values": [-9],
            "top": 5,
            "bottom": 5,
        },
    ),
}


@every_method
def test_every_option_gets_into_the_spec(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[Spec] = []

    def see(_frame: Any, spec: Spec, **_options: Any) -> None:
        found.append(spec)

    monkeypatch.setattr(accessor, "mask", see)
    needed, others = OPTIONS[method]
    kind = METHODS[method]
    assert set(needed) | set(others) == {field.name for field in dataclasses.fields(kind)}
    call = getattr(people().sdc, method)
    call(**needed)
    call(*needed.values())
    assert found == [kind(**needed)] * 2
    for name, value in others.items():
        given = needed | (value if isinstance(value, dict) else {name: value})
        call(**given)
        assert found[-1] == kind(**given)
        assert getattr(found[-1], name) != getattr(found[0], name)


@every_method
def test_what_concerns_the_run_gets_there(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[dict[str, Any]] = []
    monkeypatch.setattr(accessor, "mask", lambda _frame, _spec, **run: found.append(run))
    given = {"random_state": 7} if METHODS[method].draws else {}
    given |= {"keep_order": False} if method == "microaggregate" else {}
    getattr(people().sdc, method)(**OPTIONS[method][0], **given)
    assert found == [{"keep_order": True, "random_state": None} | given]


@every_method
def test_an_option_that_there_is_not_is_an_error(method: str) -> None:
    call = getattr(unread().sdc, method)
    with pytest.raises(SdcTypeError, match=f"{method} has no argument 'colour'"):
        call(**OPTIONS[method][0], colour="blue")
    if method != "microaggregate":
        with pytest.raises(SdcTypeError, match="has no argument 'keep_order'"):
            call(**OPTIONS[method][0], keep_order=True)
    with pytest.raises(
        SdcTypeError, match=rf"{method} needs columns.*: name it\. It has: columns,"
    ):
        call()


def test_a_misspelled_argument_is_told() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    methods = {name: method for name, method in vars(SdcAccessor).items() if name[0] != "_"}
    for name, method in methods.items():
        last = list(inspect.signature(method).parameters)[-1]
        if last != "options":
            with pytest.raises(SdcTypeError, match=rf"{name} has no .*did you mean '{last}'\?"):
                getattr(frame.sdc, name)(**{f"{last}s": 1})
    with pytest.raises(SdcTypeError, match=r"takes no colums .did you mean 'columns'"):
        frame.sdc.linkage(frame, colums=["x"])
    for call, said in (
        (lambda: sdc_dask.report(frame, frame, know=1), "report has no .*mean 'knows'"),
        (lambda: sdc_dask.protect("a", "b", [], kep="*"), "protect has no .*mean 'keep'"),
        (lambda: sdc_dask.Job("a", "b", [], kep="*"), "Job has no .*mean 'keep'"),
        (lambda: sdc_dask.RankSwap(["x"], pp=5), "RankSwap has no .*mean 'p'"),
    ):
        with pytest.raises(SdcTypeError, match=said):
            call()


def test_too_few_and_too_many_arguments_are_told() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0]})
    for call, said in (
        (lambda: frame.sdc.attack(frame), "attack needs knows: name it. It has: masked, knows,"),
        (lambda: frame.sdc.pram(["x"], 0.8), "pram takes columns alone without a name, received 2"),
        (lambda: sdc_dask.protect("a", "b"), "protect needs specs: name it"),
        (lambda: sdc_dask.report(frame), "report needs masked: name it"),
    ):
        with pytest.raises(SdcTypeError, match=said):
            call()


@every_method
def test_what_a_spec_says_is_passed_on(method: str) -> None:
    needed, _ = OPTIONS[method]
    bad = [{"columns": []}, {"by": "x"}, {"columns": "x"}, {list(needed)[1]: -1}]
    for frame, change in itertools.product((people(), unread()), bad):
        expected = refusal(METHODS[method], **needed | change)
        assert refusal(getattr(frame.sdc, method), **needed | change) == expected


# What does not fit the frame


SPECS = {method: METHODS[method](**OPTIONS[method][0]) for method in METHODS}
every_spec = pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)


def with_columns(spec: Spec, *columns: str, **options: Any) -> Spec:
    return dataclasses.replace(spec, columns=list(columns), **options)


@every_spec
def test_columns_that_are_not_there(spec: Spec, mask: Callable[..., Any]) -> None:
    kind, text = refusal(mask, with_columns(spec, "x", "nowhere", "absent"))
    assert issubclass(kind, KeyError)
    assert re.fullmatch(
        "columns names columns that the (frame|source) does not have: 'nowhere', 'absent'. "
        "It has: 'x', 'y', 'g', 'text'.",
        text,
    )
    kind, text = refusal(mask, dataclasses.replace(spec, by=["g", "nowhere"]))
    assert issubclass(kind, KeyError)
    assert re.match("by names columns that the (frame|source) does not have: 'nowhere'", text)


@every_spec
def test_columns_of_other_dtypes(spec: Spec, mask: Callable[..., Any]) -> None:
    if isinstance(spec, RankSwap):  # texts have an order, but neither means nor blocks
        spec = dataclasses.replace(spec, top=5)
    if isinstance(spec, Microaggregation):  # which takes texts, unless it puts them in order
        spec = dataclasses.replace(spec, method="zscores")
    kind, text = refusal(mask, with_columns(spec, "x", "text"))
    assert issubclass(kind, TypeError)
    assert "column 'text' has dtype" in text
    assert "cast it to float64 if it holds numbers" in text


@every_spec
def test_names_that_are_not_unique(spec: Spec) -> None:
    for name in ("x", "g"):
        frame = people().rename(columns={"text": name})
        for each in (frame, unread(frame)):
            kind, text = refusal(each.sdc.mask, spec)
            assert issubclass(kind, ValueError)
            assert text == f"column names occur more than once: '{name}'. Rename them."
    names = pd.MultiIndex.from_product([["x", "y"], ["a", "b"]])
    frame = pd.DataFrame(1.0, index=range(9), columns=names)
    kind, text = refusal(frame.sdc.mask, dataclasses.replace(spec, columns=[("x", "a")]))
    assert issubclass(kind, TypeError)
    assert "MultiIndex of columns: flatten the names first" in text


# Lists of specs


LISTS: list[tuple[Any, type[Exception], str]] = [
    (None, TypeError, "what masks must be a spec.*or a list of specs, received NoneType"),
    (["x"], TypeError, "received a list with str"),
    (["x", SPECS["mic1d"], 3], TypeError, "received a list with str, int"),
    (SPECS["mic1d"].to_dict(), TypeError, "received dict"),
    ([], ValueError, "the list of specs is empty"),
    (
        [Microaggregation(["x"], 3), RankSwap(["y", "x"], 5)],
        ValueError,
        "masked by more than one spec: 'x'",
    ),
    (
        [Microaggregation(["x"], 3, by="g"), RankSwap(["g"], 5)],
        ValueError,
        "by names columns that another spec masks: 'g'",
    ),
    (
        [RankSwap(["g"], 5), Microaggregation(["x"], 3, by="g")],
        ValueError,
        "by names columns that another spec masks: 'g'",
    ),
]


@pytest.mark.parametrize(("specs", "error", "says"), LISTS, ids=[each[2] for each in LISTS])
def test_what_is_no_list_of_specs(
    specs: Any, error: type[Exception], says: str, mask: Callable[..., Any]
) -> None:
    kind, text = refusal(mask, specs)
    assert issubclass(kind, error)
    assert re.search(says, text)


def test_a_list_is_checked_before_anything_is_masked(mask: Callable[..., Any]) -> None:
    specs = [Microaggregation(["x"], 3), Mic1D(["nowhere"], 3)]
    _, text = refusal(mask, specs)
    assert "does not have: 'nowhere'" in text


def test_random_states(mask: Callable[..., Any]) -> None:
    seed = 918273645
    kind, text = refusal(mask, SPECS["mic1d"], random_state=1)
    assert (issubclass(kind, ValueError), "chance has no part" in text) == (True, True)
    kind, text = refusal(mask, SPECS["rank_swap"], random_state=-seed)
    assert issubclass(kind, ValueError)
    assert text == "random_state must be at least 0, received a negative number."
    states = [float(seed), str(seed), [seed], True, math.nan, np.random.SeedSequence(seed)]
    for state in states:
        kind, text = refusal(mask, SPECS["rank_swap"], random_state=state)
        assert issubclass(kind, TypeError)
        assert "random_state must be None or a whole number of at least 0" in text
        assert text.endswith(f"received {type(state).__name__}.")
        assert str(seed) not in text


# What concerns the run alone


@pytest.mark.parametrize("frame", [people(), unread()], ids=["pandas", "dask"])
def test_rows_that_cannot_stay_at_their_blocks(frame: Any) -> None:
    for value in (1, None, "no"):
        kind, text = refusal(frame.sdc.mask, SPECS["microaggregate"], keep_order=value)
        assert issubclass(kind, TypeError)
        assert "keep_order must be True or False" in text
    ordered = [Microaggregation(["x", "y"], 3, method="pcp"), Mic1D(["x"], 9), RankSwap(["x"], 5)]
    for spec in ordered:
        kind, text = refusal(frame.sdc.mask, spec, keep_order=False)
        assert issubclass(kind, ValueError)
        assert "there are none: use keep_order=True, or name a blocking" in text
    several = [
        Microaggregation([["x"], ["y"]], 3),
        [Microaggregation(["x"], 3), Microaggregation(["y"], 3)],
    ]
    for specs in several:
        _, text = refusal(frame.sdc.mask, specs, keep_order=False)
        assert "keep_order=False takes one set of columns, received 2" in text


def test_options_of_protect(source: Path) -> None:
    spec, target = SPECS["microaggregate"], source.with_name("target")
    cases: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({}, ValueError, "neither masked, kept nor dropped: g, text"),
        ({"keep": "g"}, ValueError, "neither masked, kept nor dropped: text"),
        ({"drop": "t*"}, ValueError, "neither masked, kept nor dropped: g. "),
        ({"keep": "nowhere"}, KeyError, "keep names columns that the source does not have"),
        ({"keep": ["g", "x"]}, ValueError, "keep names columns that are masked: x"),
        ({"keep": ["g", "text"], "drop": "g"}, ValueError, "keep and drop both name columns: g"),
        ({"keep": ["*", "q_*"]}, ValueError, "keep='q_*' matches no column that is left"),
        ({"keep": {"g"}}, TypeError, "keep must be a column name or a list of them"),
        ({"drop": "nowhere"}, KeyError, "drop names columns that the source does not have"),
        ({"drop": ["g", "y"]}, ValueError, "drop names columns that are masked: y"),
        ({"drop": {"g"}}, TypeError, "drop must be a column name or a list of them"),
        ({"keep": "*", "count": ["g"]}, TypeError, "count must be a list of lists of columns"),
        ({"keep": "*", "count": [["g", "h"]]}, KeyError, "count names columns that the release"),
        ({"keep": "*", "count": [["g", "g"]]}, ValueError, "count names a column twice in a set"),
        ({"drop": "g", "keep": "*", "count": [["g"]]}, KeyError, "count names columns that the"),
        ({"target_options": {"key": 1}}, ValueError, "target_options are for a target with a URL"),
        ({"target_options": "key"}, TypeError, "target_options must be a dict, received str"),
        ({"replace": 1}, TypeError, "replace must be True or False, received int"),
        ({"progress": "yes"}, TypeError, "progress must be True or False, received str"),
    ]
    for options, error, says in cases:
        kind, text = refusal(protect, source, target, spec, **options)
        assert issubclass(kind, error)
        assert says in text
    assert [path.name for path in source.parent.iterdir()] == [source.name]


def test_protect_takes_no_blocks_that_were_made(source: Path) -> None:
    spec = Microaggregation(["x", "y"], 3, blocking=people().sdc.blocks(["x", "y"], 3))
    kind, text = refusal(protect, source, source.with_name("target"), spec, keep="*")
    assert issubclass(kind, TypeError)
    assert "blocks that were made of data" in text


def test_blocks_check_what_they_are_given() -> None:
    for frame in (people(), unread()):
        blocks = frame.sdc.blocks
        assert (
            "'tree', 'halves', 'univariate', received 'magic'"
            in refusal(blocks, ["x"], 3, method="magic")[1]
        )
        assert "received None" in refusal(blocks, ["x"], 3, method=None)[1]
        assert "k must be at least 2" in refusal(blocks, ["x"], 1)[1]
        assert "one set of columns, received 2" in refusal(blocks, [["x"], ["y"]], 3)[1]
        assert "does not have: 'nowhere'" in refusal(blocks, ["nowhere"], 3)[1]


# Warnings


def test_warnings_point_at_the_line_of_the_caller(tmp_path: Path) -> None:
    frame = people()
    lazy = dd.from_pandas(frame, npartitions=2)
    frame.to_parquet(tmp_path / "source.parquet", index=False)
    paths = tmp_path / "source.parquet", tmp_path / "target"
    fuzzy, small = SPECS["fuzzy_microaggregate"], Mic1D(["x", "y"], 3)
    calls: list[Callable[[], Any]] = [
        lambda: frame.sdc.fuzzy_microaggregate(["x"], 3, 1.5, 1.2),
        lambda: lazy.sdc.fuzzy_microaggregate(["x"], 3, 1.5, 1.2),
        lambda: frame.sdc.mic1d(["x", "y"], 3),
        lambda: lazy.sdc.mic1d(["x", "y"], 3),
        lambda: frame.sdc.mask(fuzzy),
        lambda: lazy.sdc.mask([small]),
        lambda: run.mask(frame, [fuzzy]),
        lambda: protect(*paths, fuzzy, replace=True, keep="g", drop="text"),
        lambda: protect(*paths, small, replace=True, keep="g", drop="text"),
    ]
    for call in calls:
        with warnings.catch_warnings(record=True, action="always") as caught:
            call()
        assert len(caught) == 1
        assert re.search(
            "does not guarantee groups of k=3|kappa=3 is small", str(caught[0].message)
        )
        line = call.__code__.co_firstlineno
        assert (caught[0].filename, caught[0].lineno) == (__file__, line)


def test_m1_that_settles_on_records_is_warned_of() -> None:
    with pytest.warns(UserWarning, match="centres settle on single records"):
        people().sdc.fuzzy_microaggregate(["x"], 3, 3, 1)


def test_names_at_the_top() -> None:
    assert set(sdc_dask.__all__) <= set(dir(sdc_dask))
    assert "microaggregate" in repr(people().sdc)
    assert repr(unread().sdc).startswith("<sdc of a Dask DataFrame with 4 columns")
