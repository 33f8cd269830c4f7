"""Specs: what is asked for is a value, checked once, before there is any data."""

from __future__ import annotations

import copy
import dataclasses
import decimal
import json
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sdc_dask import (
    FuzzyMicroaggregation,
    Mic1D,
    Microaggregation,
    RankSwap,
    SdcError,
    SeriesMicroaggregation,
    Spec,
)
from sdc_dask.aggregation import power, sigmoid, threshold
from sdc_dask.masking.microaggregation import METHODS

XY = ["x", "y"]
ARRAY = [0, 0.4, 0.5, 1]  # a measure of two columns

# Every spec, with every option that it has.
EVERY: dict[str, Spec] = {
    "plain": Microaggregation(XY, 3),
    "sets": Microaggregation([XY, ["z"]], 3),
    "names": Microaggregation([0, 1.5, "z", True], 3),
    "blocks": Microaggregation(
        XY, 3, blocking="univariate", max_block=50, standardize=False, by="g", missing="separate"
    ),
    "no blocks": Microaggregation(XY, 3, blocking=None, by=["g", "h"]),
    "small": Microaggregation(XY, 3, by="g", small="merge", nominal="g"),
    "gain": Microaggregation(XY, 3, method="vmdav", gain=0.5),
    "optimal": Microaggregation([["x"], ["y"]], 3, method="optimal"),
    "pcp": Microaggregation(XY, 3, method="pcp", blocking="tree", max_block=50),
    "weights": Microaggregation(XY, 3, method="weighted_mean", weights=[0.25, 0.75]),
    "power": Microaggregation(XY, 3, method="owa", measure=power(2)),
    "sigmoid": Microaggregation(XY, 3, method="choquet", measure=sigmoid(0.5)),
    "threshold": Microaggregation(XY, 3, method="sugeno", measure=threshold(0.25)),
    "array": Microaggregation(XY, 3, method="choquet", measure=ARRAY),
    "one of twofold": Microaggregation(XY, 3, method="twofold", measure=power(2)),
    "pair": Microaggregation(XY, 3, method="twofold", measure=(power(2), sigmoid(0.5))),
    "mixed pair": Microaggregation(XY, 3, method="twofold", measure=(ARRAY, power(1))),
    "pair of arrays": Microaggregation(XY, 3, method="twofold", measure=(ARRAY, ARRAY)),
    "series": SeriesMicroaggregation(XY, 3),
    "named series": SeriesMicroaggregation(
        {"x": ["x0", "x1"], "y": ["y0", "y1"]},
        3,
        distance="sts",
        normalize="component",
        times=[0, 2.5],
        max_block=50,
        by="g",
    ),
    "series in one block": SeriesMicroaggregation(XY, 3, blocking=None),
    "rounded": Microaggregation(XY, 3, decimals=-1),
    "refined": Microaggregation(XY, 3, refine="thorough"),
    "refined across blocks": Microaggregation(XY, 3, refine=5, borders=True),
    "mixed": Microaggregation(
        XY,
        3,
        orders={"x": ["low", "high"]},
        nominal="y",
        importance={"y": 2},
        keep_integers=True,
        unit="person",
        units_alike=True,
    ),
    "coded": Microaggregation(XY, 3, missing="separate", missing_values=[-9, 99.5]),
    "mic1d": Mic1D(XY, 20),
    "mic1d by": Mic1D(XY, 20, by=["g", "h"]),
    "fuzzy": FuzzyMicroaggregation(XY, 3, 1.5, 1.2),
    "fuzzy sets": FuzzyMicroaggregation(
        [["x"], ["y"]],
        3,
        math.inf,
        math.inf,
        blocking=None,
        standardize=False,
        by="g",
        missing="separate",
        missing_values=[-9],
    ),
    "fuzzy blocks": FuzzyMicroaggregation(XY, 3, 1, 2, blocking="univariate", max_block=50),
    "swap": RankSwap(XY, 5),
    "distribution": RankSwap(
        XY, 5, method="distribution", by="g", missing="error", missing_values=[-9]
    ),
    "buckets": RankSwap(XY, method="buckets", buckets=7),
    "swap in blocks": RankSwap(XY, 5, blocking="tree", max_block=50),
    "extremes": RankSwap(XY, 5, top=2, bottom=1.5),
}
every_spec = pytest.mark.parametrize("spec", EVERY.values(), ids=EVERY)
CODE = {
    each.__name__: each
    for each in (
        *(Microaggregation, SeriesMicroaggregation, Mic1D, FuzzyMicroaggregation, RankSwap),
        *(power, sigmoid, threshold, float),
    )
}


# A spec is a value


def test_every_option_of_every_spec_is_among_those_tested() -> None:
    for kind in (Microaggregation, SeriesMicroaggregation, Mic1D, FuzzyMicroaggregation, RankSwap):
        specs = [spec for spec in EVERY.values() if type(spec) is kind]
        for field in dataclasses.fields(kind):
            if field.default is not dataclasses.MISSING:
                values = {getattr(spec, field.name) for spec in specs}
                assert len(values) > 1, (kind, field.name)


@every_spec
def test_copies_are_equal_and_others_are_not(spec: Spec) -> None:
    for same in (copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert same == spec
        assert hash(same) == hash(spec)
    assert [other for other in EVERY.values() if other == spec] == [spec]
    with pytest.raises(dataclasses.FrozenInstanceError):
        spec.columns = ["other"]  # type: ignore[misc]


@every_spec
def test_what_is_printed_is_code_that_makes_the_spec_again(spec: Spec) -> None:
    assert eval(repr(spec), dict(CODE)) == spec


def test_what_was_left_out_is_not_printed() -> None:
    assert repr(Microaggregation(XY, 3)) == "Microaggregation(columns=['x', 'y'], k=3)"
    assert repr(Mic1D(["x"], 9, by="g")) == "Mic1D(columns=['x'], kappa=9, by='g')"


@every_spec
def test_a_spec_goes_through_json(spec: Spec) -> None:
    text = json.dumps(spec.to_dict(), allow_nan=False)
    assert Spec.from_dict(json.loads(text)) == spec
    assert type(spec).from_dict(json.loads(text)) == spec


def test_a_dict_holds_what_was_asked_for() -> None:
    spec = RankSwap(["rent"], 5, by="region", top=1)
    assert spec.to_dict() == {
        "masking": "rank_swap",
        "columns": ["rent"],
        "p": 5.0,
        "method": "standard",
        "max_block": "auto",
        "by": ["region"],
        "missing": "keep",
        "top": 1.0,
    }
    assert EVERY["pair"].to_dict()["measure"] == [{"power": 2.0}, {"sigmoid": 0.5}]
    assert EVERY["fuzzy sets"].to_dict()["m1"] == "inf"
    assert EVERY["no blocks"].to_dict()["blocking"] == "none"


@every_spec
def test_there_is_no_seed_in_a_spec(spec: Spec) -> None:
    with pytest.raises(TypeError, match="has no argument 'random_state'"):
        dataclasses.replace(spec, random_state=1)  # type: ignore[call-arg]
    assert "random" not in repr(spec) + json.dumps(spec.to_dict())


def test_blocks_cannot_be_written() -> None:
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2})
    blocks = frame.sdc.blocks(XY, 10)
    specs = [
        Microaggregation(XY, 3, blocking=blocks),
        FuzzyMicroaggregation(XY, 3, 1.5, 1.2, blocking=blocks),
        RankSwap(XY, 30, blocking=blocks),
    ]
    for spec in specs:
        with pytest.raises(TypeError, match="blocking holds blocks that were made of data") as no:
            spec.to_dict()
        assert isinstance(no.value, SdcError)


@pytest.mark.parametrize(
    ("spec", "says"),
    [
        (Microaggregation([("a", 1), ("b", 2)], 3), "columns holds"),
        (Microaggregation(["x"], 3, by=[None]), "by holds"),
        (Mic1D([pd.Timestamp("2020-01-01")], 3), "columns holds"),
        (Microaggregation(XY, 3, method="owa", measure=np.sqrt), "measure holds a ufunc"),
    ],
    ids=["tuples", "none", "times", "function"],
)
def test_what_has_no_text_cannot_be_written(spec: Spec, says: str) -> None:
    with pytest.raises(TypeError, match=f"{says}.*cannot be written") as caught:
        spec.to_dict()
    assert isinstance(caught.value, SdcError)


# From dicts


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"masking": "rank_swap", "columns": ["x"], "pp": 5}, "did you mean 'p'?"),
        ({"masking": "rank_swap", "colums": ["x"]}, "has no 'colums' (did you mean 'columns'?)"),
        ({"masking": "mic1d", "columns": ["x"], "kapa": 5}, "did you mean 'kappa'?"),
        ({"masking": "mic1d", "columns": ["x"], "zzz": 5}, "has no 'zzz'. It has: columns, kappa"),
        ({"masking": "mic1d", "columns": ["x"], 7: 5}, "has no int. It has: "),
        ({"masking": "rank_swop", "columns": ["x"]}, "did you mean 'rank_swap'?"),
        ({"masking": "zzz"}, "masking must be one of"),
        ({"masking": 3}, "received int"),
        ({"columns": ["x"], "k": 3}, "received None"),
        ({"masking": "microaggregation"}, "needs columns, k: name it"),
        ({"masking": "fuzzy_microaggregation", "columns": ["x"], "k": 3}, "needs m1, m2"),
        (
            {"masking": "microaggregation", "columns": ["x"], "k": 3, "random_state": 1},
            "has no 'random_state'",
        ),
        (
            {"masking": "microaggregation", "columns": XY, "k": 3, "measure": {"pover": 2}},
            "measure must be a quantifier such as {'power': 2}",
        ),
        (
            {"masking": "microaggregation", "columns": XY, "k": 3, "measure": {}},
            "measure must be a quantifier",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_dicts_that_are_no_specs(given: dict, says: str) -> None:
    with pytest.raises(ValueError) as caught:
        Spec.from_dict(given)
    assert isinstance(caught.value, SdcError)
    assert says in str(caught.value)


def test_a_spec_of_another_kind() -> None:
    given = Mic1D(["x"], 5).to_dict()
    with pytest.raises(ValueError, match="masking must be 'rank_swap' for RankSwap, received"):
        RankSwap.from_dict(given)
    del given["masking"]
    assert Mic1D.from_dict(given) == Mic1D(["x"], 5)
    for other in (None, "mic1d", [given]):
        with pytest.raises(TypeError, match="a masking must be a dict"):
            Spec.from_dict(other)  # type: ignore[arg-type]


def test_values_in_dicts_are_checked_like_others() -> None:
    with pytest.raises(ValueError, match="k must be at least 2, received 1"):
        Spec.from_dict({"masking": "microaggregation", "columns": ["x"], "k": 1})
    with pytest.raises(TypeError, match="columns must be a list of names"):
        Spec.from_dict({"masking": "microaggregation", "columns": "x", "k": 3})
    quantifier = {"masking": "microaggregation", "columns": XY, "k": 3, "method": "owa"}
    with pytest.raises(ValueError, match="finite and above 0"):
        Spec.from_dict(quantifier | {"measure": {"power": 0}})


# What a spec says of itself


def test_promises() -> None:
    assert EVERY["sets"].promise == 3
    assert EVERY["sets"].column_sets == (("x", "y"), ("z",))
    assert EVERY["sets"].masked == ("x", "y", "z")
    assert EVERY["swap"].column_sets == (("x",), ("y",))
    assert EVERY["swap in blocks"].column_sets == (("x", "y"),)
    for name, spec in EVERY.items():
        is_micro = isinstance(spec, (Microaggregation, SeriesMicroaggregation))
        assert spec.promise == (3 if is_micro else None), name
        assert spec.moves == (isinstance(spec, RankSwap) and name != "extremes"), name
        assert spec.draws == isinstance(spec, (RankSwap, FuzzyMicroaggregation)), name
        keeps = isinstance(spec, RankSwap) or name == "mixed"
        assert spec.keeps_dtypes == keeps, name
    ordered = {name for name, spec in EVERY.items() if not spec.in_blocks}
    assert {"optimal", "weights", "mic1d", "swap"} <= ordered
    assert not ordered & {"plain", "no blocks", "gain", "pcp", "fuzzy", "swap in blocks"}


@every_spec
def test_a_few_words(spec: Spec) -> None:
    words = spec.describe()
    assert 5 < len(words) < 60
    assert "\n" not in words


def test_numbers_of_numpy_are_plain_numbers() -> None:
    pairs = [
        (
            Microaggregation(XY, np.int8(4), max_block=np.uint16(50), standardize=np.False_),
            Microaggregation(XY, 4, max_block=50, standardize=False),
        ),
        (
            Microaggregation(XY, 4, method="vmdav", gain=np.float32(0.5)),
            Microaggregation(XY, 4, method="vmdav", gain=0.5),
        ),
        (
            Microaggregation(XY, 4, method="weighted_mean", weights=np.array([0.5, 0.5], "f4")),
            Microaggregation(XY, 4, method="weighted_mean", weights=(0.5, 0.5)),
        ),
        (
            Microaggregation(XY, 4, method="choquet", measure=np.array(ARRAY)),
            Microaggregation(XY, 4, method="choquet", measure=ARRAY),
        ),
        (Mic1D(pd.Index(XY), np.int64(9)), Mic1D(XY, 9)),
        (
            FuzzyMicroaggregation(
                XY, np.int8(4), np.float32(1.5), np.int16(1), standardize=np.True_
            ),
            FuzzyMicroaggregation(XY, 4, 1.5, 1),
        ),
        (RankSwap(XY, np.float32(5), top=np.int8(2)), RankSwap(XY, 5, top=2)),
        (
            RankSwap(XY, method="buckets", buckets=np.uint8(7)),
            RankSwap(XY, method="buckets", buckets=7),
        ),
    ]
    for numpy, plain in pairs:
        assert numpy == plain
        assert repr(numpy) == repr(plain)
        assert json.dumps(numpy.to_dict()) == json.dumps(plain.to_dict())


def test_defaults_of_methods_are_filled_in() -> None:
    vmdav = Microaggregation(XY, 3, method="vmdav")
    assert vmdav == Microaggregation(XY, 3, method="vmdav", gain=0.2)
    sugeno = Microaggregation(XY, 3, method="sugeno")
    assert sugeno == Microaggregation(XY, 3, method="sugeno", measure=power(1))
    one, two = (
        EVERY["one of twofold"],
        Microaggregation(XY, 3, method="twofold", measure=(power(2), power(2))),
    )
    assert one == two


# Every bad value, once


def micro(**options: Any) -> Callable[[], Spec]:
    return lambda: Microaggregation(**{"columns": XY, "k": 3, **options})


def fuzzy(**options: Any) -> Callable[[], Spec]:
    return lambda: FuzzyMicroaggregation(**{"columns": XY, "k": 3, "m1": 1.5, "m2": 1.2, **options})


def mic1d(**options: Any) -> Callable[[], Spec]:
    return lambda: Mic1D(**{"columns": XY, "kappa": 9, **options})


def swap(**options: Any) -> Callable[[], Spec]:
    return lambda: RankSwap(**{"columns": XY, "p": 5, **options})


def refusal(error: type[Exception], make: Callable[[], Any]) -> str:
    """Expect an error of this package, of a kind that Python users catch; give its text."""
    with pytest.raises(error) as caught:
        make()
    assert isinstance(caught.value, SdcError)
    return str(caught.value)


NO_WHOLE_NUMBERS = [True, np.True_, 3.0, np.float64(3), math.nan, "3", None, [3], 1 + 2j]
NO_NUMBERS = [True, np.True_, "2", [2], 1 + 2j, np.array(2), decimal.Decimal("1.5")]

WHOLE = {
    "k": (micro, 2),
    "kappa": (mic1d, 2),
    "max_block": (micro, 2),
    "buckets": (lambda **given: swap(p=None, method="buckets", **given), 1),
}


@pytest.mark.parametrize("name", WHOLE)
def test_whole_numbers(name: str) -> None:
    make, smallest = WHOLE[name]
    for value in (smallest - 1, 0, -3, np.int8(-3)):
        text = refusal(ValueError, make(**{name: value}))
        assert text == f"{name} must be at least {smallest}, received {value}."
    for value in NO_WHOLE_NUMBERS:
        if name in ("max_block", "buckets") and (value is None or isinstance(value, str)):
            continue  # None leaves it out, and there is a word for blocks
        text = refusal(TypeError, make(**{name: value}))
        assert f"{name} must be a whole number of at least {smallest}" in text
        assert text.endswith(f"received {type(value).__name__}.")


@pytest.mark.parametrize("make", [micro, fuzzy])
def test_k_is_checked_by_every_spec_that_has_one(make: Callable[..., Any]) -> None:
    assert "k must be at least 2" in refusal(ValueError, make(k=1))


NUMBERS: dict[str, tuple[Callable[..., Any], str, list[float]]] = {
    "gain": (
        lambda **given: micro(method="vmdav", **given),
        "gain must be a number of at least 0, and finite",
        [-1, -1e-9, math.nan, math.inf, -math.inf, np.float32(-0.5)],
    ),
    "m1": (fuzzy, "m1 must be a number of at least 1", [0.99, 0, -1, math.nan, -math.inf]),
    "m2": (fuzzy, "m2 must be a number of at least 1", [0.99, 0, -1, math.nan, -math.inf]),
    "p": (swap, "p must be a percentage above 0 and at most 100", [0, -1, 101, math.nan, math.inf]),
    "top": (swap, "top must be a percentage above 0 and at most 100", [0, -1, 101, math.nan]),
    "bottom": (swap, "bottom must be a percentage above 0 and at most 100", [0, -1, 101]),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers(name: str) -> None:
    make, says, values = NUMBERS[name]
    for value in values:
        text = refusal(ValueError, make(**{name: value}))
        assert text == f"{says}, received {value:g}."
    for value in NO_NUMBERS:
        text = refusal(TypeError, make(**{name: value}))
        assert text == f"{says}, received {type(value).__name__}."
    assert says in refusal(ValueError, make(**{name: 10**400}))


@pytest.mark.parametrize("make", [micro, fuzzy])
@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_flags(make: Callable[..., Any], value: Any) -> None:
    text = refusal(TypeError, make(standardize=value))
    assert text == f"standardize must be True or False, received {type(value).__name__}."


MICRO_BLOCKINGS = "'auto', 'tree', 'halves', 'univariate', None"
CHOICES = {
    "method": (micro, ", ".join(map(repr, METHODS)), ["magic", "MDAV", "", None, 3, ["mdav"]]),
    "method of swaps": (swap, "'standard', 'distribution', 'buckets'", ["far", None]),
    "blocking": (micro, MICRO_BLOCKINGS, ["magic", "Tree", "", 3, True, {"tree"}]),
    "blocking of fuzzy": (fuzzy, "'tree', 'halves', 'univariate', None", ["auto", 3]),
    "blocking of swaps": (swap, "'tree', 'halves', 'univariate', None", ["auto", 3]),
    "missing": (micro, "'error', 'separate'", ["keep", None, True]),
    "missing of fuzzy": (fuzzy, "'error', 'separate'", ["keep"]),
    "missing of swaps": (swap, "'keep', 'error'", ["separate", None]),
}


@pytest.mark.parametrize("case", CHOICES)
def test_choices(case: str) -> None:
    make, valid, values = CHOICES[case]
    name = case.split()[0]
    for value in values:
        text = refusal(ValueError, make(**{name: value}))
        # Only what cannot be data is shown.
        shown = type(value).__name__ if isinstance(value, (list, set)) else repr(value)
        assert text == f"{name} must be one of {valid}, received {shown}."


COLUMNS: list[tuple[Any, type[Exception], str]] = [
    ([], ValueError, "columns is empty or has an empty set: name the columns to mask"),
    ((), ValueError, "columns is empty"),
    ("x", TypeError, "columns must be a list of names, or a list of lists of names, received str"),
    (None, TypeError, "columns must be a list of names"),
    (7, TypeError, "received int"),
    ({"x": 1}, TypeError, "received dict"),
    (np.array([XY]), TypeError, "received ndarray"),
    (set(XY), TypeError, "received set"),
    (["x", "y", "x"], ValueError, "columns names columns more than once: 'x'"),
    ([{"x"}], TypeError, "columns must name columns, received set for a name"),
    ([("x", ["y"])], TypeError, "received tuple for a name"),
]
SETS: list[tuple[Any, type[Exception], str]] = [
    ([[]], ValueError, "columns is empty or has an empty set"),
    ([["x"], []], ValueError, "columns is empty or has an empty set"),
    ([["x"], "y"], TypeError, "columns mixes names and lists of names"),
    ([["x", "y"], ["z", "y"]], ValueError, "columns names columns more than once: 'y'"),
]


@pytest.mark.parametrize("make", [micro, fuzzy, mic1d, swap])
def test_columns(make: Callable[..., Any]) -> None:
    for columns, error, says in COLUMNS:
        assert says in refusal(error, make(columns=columns))


@pytest.mark.parametrize("make", [micro, fuzzy])
def test_sets_of_columns(make: Callable[..., Any]) -> None:
    for columns, error, says in SETS:
        assert says in refusal(error, make(columns=columns))


@pytest.mark.parametrize("make", [mic1d, swap])
def test_lists_of_lists_where_columns_are_one_list(make: Callable[..., Any]) -> None:
    for columns in ([["x"]], [["x"], ["y"]], [["x"], "y"]):
        text = refusal(TypeError, make(columns=columns))
        assert text == (
            "columns must be one list of names, received a list of lists: use a masking for each."
        )


@pytest.mark.parametrize("make", [micro, fuzzy, mic1d, swap])
def test_strata(make: Callable[..., Any]) -> None:
    text = refusal(ValueError, make(by="y"))
    assert "by names columns that are masked: 'y'. A column is masked, or it defines strata" in text
    assert "by names columns more than once: 'g'" in refusal(ValueError, make(by=["g", "g"]))
    text = refusal(TypeError, make(by={"g"}))
    assert text == "by must be a column name or a list of them, received set."
    assert "received list for a name" in refusal(TypeError, make(by=["g", ["h"]]))


# What does not go together


EXTRA = {"gain": 0.2, "weights": [0.5, 0.5], "measure": power(1)}


@pytest.mark.parametrize("method", METHODS)
def test_options_of_other_methods(method: str) -> None:
    for name, value in EXTRA.items():
        if METHODS[method][1] == name:
            continue
        users = [user for user, (_, takes, _) in METHODS.items() if takes == name]
        text = refusal(ValueError, micro(method=method, columns=["x"], **{name: value}))
        assert text == (
            f"{name} has no meaning with method={method!r}: leave it out. It belongs to "
            f"{', '.join(map(repr, users))}."
        )


@pytest.mark.parametrize("method", ["weighted_mean", "owa", "choquet", "twofold"])
def test_options_that_must_be_named(method: str) -> None:
    takes = METHODS[method][1]
    assert (
        refusal(ValueError, micro(method=method)) == f"method={method!r} needs {takes}=: name it."
    )


TOGETHER: list[tuple[Callable[[], Spec], type[Exception], str]] = [
    (micro(k=10, max_block=9), ValueError, "at least k, received max_block=9 with k=10"),
    (micro(max_block="big"), ValueError, "at least 2, or 'auto', received 'big'"),
    (micro(blocking=None, max_block=50), ValueError, "max_block has no meaning without blocks"),
    (micro(method="pcp", max_block=50), ValueError, "max_block has no meaning without blocks"),
    (fuzzy(blocking=None, max_block=50), ValueError, "max_block has no meaning without blocks"),
    (swap(max_block=50), ValueError, "max_block has no meaning without blocks"),
    (micro(method="optimal"), ValueError, "one column at a time, received a set of 2"),
    (
        micro(columns=[["x"], ["y", "z"]], method="optimal"),
        ValueError,
        "pass columns=[['a'], ['b'], ...], or use a method for several columns: 'mdav', 'vmdav'",
    ),
    (swap(p=None), ValueError, "method='standard' needs p=, a percentage of the ranks"),
    (swap(buckets=3), ValueError, "buckets has no meaning with method='standard'"),
    (swap(method="buckets", buckets=3), ValueError, "p has no meaning with method='buckets'"),
    (swap(p=None, method="buckets"), ValueError, "method='buckets' needs buckets="),
    (swap(top=60, bottom=50), ValueError, "must not exceed 100 percent together, received 110"),
    (swap(top=5, blocking="tree"), ValueError, "use blocking=None"),
]


@pytest.mark.parametrize(("make", "error", "says"), TOGETHER, ids=[each[2] for each in TOGETHER])
def test_what_does_not_go_together(
    make: Callable[[], Spec], error: type[Exception], says: str
) -> None:
    assert says in refusal(error, make)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame(rng.normal(size=(60, 2)), columns=XY).assign(g=np.arange(60) % 2)


@pytest.mark.parametrize("make", [micro, fuzzy])
def test_blocks_of_something_else(make: Callable[..., Any], frame: pd.DataFrame) -> None:
    blocks = frame.sdc.blocks(XY, 3, max_block=20)
    for columns in (["y", "x"], ["x"], [["x"], ["y"]], ["x", "z"]):
        text = refusal(ValueError, make(columns=columns, blocking=blocks))
        assert "blocks of other columns" in text
        assert "in that order, as one set" in text
    for options in ({"by": "g"}, {"missing": "separate"}):
        text = refusal(ValueError, make(blocking=blocks, **options))
        assert "`by` and `missing` must be those that the blocks were made with" in text
    text = refusal(ValueError, make(blocking=blocks, k=4))
    assert "made for k=3, received k=4" in text
    text = refusal(ValueError, make(blocking=blocks, max_block=30))
    assert "max_block has no meaning with blocks that are made" in text
    assert make(blocking=blocks, k=2)().blocking is blocks


def test_blocks_of_something_else_for_swaps(frame: pd.DataFrame) -> None:
    blocks = frame.sdc.blocks(XY, 20, by="g")
    text = refusal(ValueError, swap(columns=["y", "x"], by="g", blocking=blocks))
    assert "blocks of other columns" in text
    assert "`by` must be that" in refusal(ValueError, swap(blocking=blocks))
    text = refusal(ValueError, swap(by="g", blocking=blocks, max_block=30))
    assert "max_block has no meaning" in text
    apart = frame.sdc.blocks(XY, 20, by="g", missing="separate")
    assert "must not be separate" in refusal(ValueError, swap(by="g", blocking=apart))
    assert swap(by="g", blocking=blocks)().blocking is blocks


# Weights and measures, for every set of columns


WEIGHTS: list[tuple[Any, type[Exception], str]] = [
    ([0.5], ValueError, "one number for each of 2 columns, received an array of shape (1,)"),
    ([[0.5, 0.5]], ValueError, "each of 2 columns, received an array of shape (1, 2)"),
    (1.0, ValueError, "one number for each of 2 columns"),
    ([1.5, -0.5], ValueError, "must not be below 0, received 1"),
    ([0.5, 0.6], ValueError, "must sum to 1, received a sum of 1.1: divide them"),
    ([math.nan, 1.0], ValueError, "must be finite, received 1"),
    ([True, False], TypeError, "must be numbers, received"),
    ("half", TypeError, "must be numbers, received"),
    ({"x": 0.5, "y": 0.5}, TypeError, "must be numbers, received"),
]


@pytest.mark.parametrize(("weights", "error", "says"), WEIGHTS, ids=[str(w[0]) for w in WEIGHTS])
def test_weights(weights: Any, error: type[Exception], says: str) -> None:
    assert says in refusal(error, micro(method="weighted_mean", weights=weights))


def _dips(x: Any) -> Any:
    return np.where(np.asarray(x) < 0.5, np.asarray(x) * 1.8, x)


def _fails(_x: Any) -> float:
    raise KeyError("whatever")


MEASURES: dict[str, tuple[Any, type[Exception], str]] = {
    "begins at 1": (lambda x: 1 - x, ValueError, "Q(0) = 0, received Q(0) = 1"),
    "falls": (_dips, ValueError, "must not decrease, received one that at 0.5 is below"),
    "not finite": (lambda x: x * np.nan, ValueError, "must be finite in [0, 1]"),
    "fails": (_fails, TypeError, "received KeyError from it"),
    "no number": (lambda _x: None, TypeError, "a quantifier must give a number"),
    "class": (power, TypeError, "a quantifier must give a number"),
    "short": ([0, 1], ValueError, "2**2 = 4 values, one for every set, received an array of shape"),
    "table": ([[0, 0.5], [0.5, 1]], ValueError, "of shape (2, 2)"),
    "empty set": ([0.1, 0.5, 0.5, 1], ValueError, "0 for the empty set, its first value"),
    "all columns": ([0, 0.5, 0.5, 0.9], ValueError, "1 for the set of all columns, its last value"),
    "above 1": ([0, 1.2, 0.5, 1], ValueError, "monotone"),
    "nan": ([0, math.nan, 0.5, 1], ValueError, "must be finite, received 1"),
    "text": ("power", TypeError, "a quantifier, such as power(2), or an array of 4 numbers"),
    "dict": ({0: 1}, TypeError, "received dict"),
    "three": ((power(1),) * 3, TypeError, "received tuple"),
}


@pytest.mark.parametrize("case", MEASURES)
def test_measures(case: str) -> None:
    measure, error, says = MEASURES[case]
    for method in ("choquet", "sugeno"):
        assert says in refusal(error, micro(method=method, measure=measure))
    if case != "three":
        for pair in ((measure, power(1)), (power(1), measure)):
            assert says in refusal(error, micro(method="twofold", measure=pair))


def test_measures_that_belong_to_other_methods() -> None:
    assert "choquet" in refusal(TypeError, micro(method="owa", measure=ARRAY))
    for method in ("choquet", "sugeno", "owa"):
        text = refusal(TypeError, micro(method=method, measure=(power(1), power(2))))
        assert "received tuple" in text


def test_options_must_fit_every_set_of_columns() -> None:
    for columns in ([XY, ["z"]], [["z"], XY]):
        text = refusal(
            ValueError, micro(columns=columns, method="weighted_mean", weights=[0.5, 0.5])
        )
        assert "each of 1 columns, received an array of shape (2,)" in text
        text = refusal(ValueError, micro(columns=columns, method="choquet", measure=ARRAY))
        assert "a measure of 1 columns must have 2**1 = 2 values" in text


@pytest.mark.parametrize(
    ("family", "values", "says"),
    [
        (power, [0, -1, math.nan, math.inf], "finite and above 0"),
        (sigmoid, [-0.1, 1.1, math.nan, math.inf], "from 0 to 1"),
        (threshold, [-0.1, 1, math.nan, math.inf], "from 0 to below 1"),
    ],
)
def test_families_of_quantifiers(
    family: Callable[[Any], Any], values: list[float], says: str
) -> None:
    for alpha in values:
        text = refusal(ValueError, lambda alpha=alpha: family(alpha))
        assert f"must be {says}, received {float(alpha)}" in text
    for alpha in (True, "1", None, [1]):
        text = refusal(TypeError, lambda alpha=alpha: family(alpha))
        assert f"received {type(alpha).__name__}" in text
