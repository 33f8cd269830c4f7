"""Bad parameters and awkward frames: what every method of masking and grouping does with them.

A bad parameter is refused before the data is read: the Dask frames that are passed along with one
fail if a partition is computed. Bad data is refused before anything is written. A frame that is
not the same each time that it is computed ends in a clear error, or in a correct result.
"""

from __future__ import annotations

import contextlib
import decimal
import itertools
import re
import threading
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal, assert_series_equal
from sdc_dask.masking.methods import METHODS

from sdc_dask import cli, grouping, protect
from sdc_dask.aggregation import power, sigmoid, threshold
from sdc_dask.masking import microaggregation
from sdc_dask.release import cluster
from sdc_dask.risk.groups import expected_anonymity

CANARY = 123456.789
CANARY_TEXT = "Zx9canaryQ7"
SEED = 918273645
FORBIDDEN = [str(CANARY), "123456", CANARY_TEXT, str(SEED)]

ORDERED = [name for name, method in METHODS.items() if method.ordered]
# Of two columns.
PARAMETERS: dict[str, dict[str, Any]] = {
    "weighted_mean": {"weights": [0.5, 0.5]},
    "owa": {"measure": power(2)},
    "choquet": {"measure": [0, 0.4, 0.5, 1]},
    "twofold": {"measure": (threshold(0.4), sigmoid(0.5))},
}
EXTRA = {"gain": 0.2, "weights": [0.5, 0.5], "measure": power(1)}
WAYS = [*METHODS, "mic1d", "fuzzy"]

every_way = pytest.mark.parametrize("way", WAYS)
every_order = pytest.mark.parametrize("method", ORDERED)
with_k = pytest.mark.parametrize("way", [way for way in WAYS if way != "mic1d"])

Refuse = Callable[..., str]


def people(n: int = 60, seed: int = 1) -> pd.DataFrame:
    """Two columns to mask, and three that stay as they are."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.lognormal(10.0, 1.0, n),
            "kept": rng.normal(size=n),
            "y": rng.normal(50.0, 9.0, n),
            "number": np.arange(n),
            "text": [f"person {i}" for i in range(n)],
        }
    )


def planted() -> pd.DataFrame:
    """Return a frame of values that no message may show."""
    return people().assign(x=CANARY, kept=CANARY)


def run(frame: Any, way: str, columns: Any = ("x", "y"), k: Any = 3, **options: Any) -> Any:
    """Mask a frame in one of WAYS, with the parameters that it needs unless others are given."""
    columns = list(columns) if isinstance(columns, tuple) else columns
    if way == "mic1d":
        return frame.sdc.mic1d(columns, **{"kappa": 20, **options})
    if way == "fuzzy":
        options = {"m1": 1.5, "m2": 1.2, "random_state": 1, **options}
        return frame.sdc.fuzzy_microaggregate(columns, k, **options)
    if way == "optimal" and not isinstance(columns[0], list):
        columns = grouping.individual(columns)
    return frame.sdc.microaggregate(
        columns, k, method=way, **{**PARAMETERS.get(way, {}), **options}
    )


def run_quietly(frame: Any, way: str, *args: Any, **options: Any) -> Any:
    """Mask a frame, without the warning that fuzzy clusters guarantee no k."""
    with warnings.catch_warnings(action="ignore"):
        return run(frame, way, *args, **options)


# What is refused


def _never(_number: int, columns: Any = None) -> pd.DataFrame:
    raise AssertionError("the data was read")


def unread(frame: pd.DataFrame) -> dd.DataFrame:
    """Return a Dask frame with the columns of a frame that fails if it is computed."""
    return dd.from_map(_never, range(3), meta=frame.iloc[:0])


def text_of(caught: pytest.ExceptionInfo[Exception], error: type[Exception]) -> str:
    """Return the text of an error of exactly this type that shows no planted value."""
    assert caught.type is error
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None or caught.value.__suppress_context__
    shown = "".join(traceback.format_exception(caught.value))
    assert not [value for value in FORBIDDEN if value in shown]
    return str(caught.value)


def refusal(
    error: type[Exception], function: Callable[..., Any], *args: Any, **options: Any
) -> str:
    """Expect a clean refusal and give its text."""
    with pytest.raises(error) as caught:
        function(*args, **options)
    return text_of(caught, error)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory of two parquet files."""
    folder = tmp_path_factory.mktemp("bad") / "source"
    folder.mkdir()
    frame = planted()
    frame[:25].to_parquet(folder / "0.parquet", index=False)
    frame[25:].to_parquet(folder / "1.parquet", index=False)
    return folder


@pytest.fixture(params=["pandas", "dask", "files"])
def refuse(
    request: pytest.FixtureRequest, source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Refuse:
    """Return a function that expects a refusal of the arguments alone, and gives its text."""

    def refused(
        error: type[Exception], columns: Any = ("x", "y"), k: Any = 3, **options: Any
    ) -> str:
        columns = list(columns) if isinstance(columns, tuple) else columns
        frame = planted()
        if request.param == "files":
            monkeypatch.setattr(microaggregation, "plan", _never)
            text = refusal(error, protect, source, tmp_path / "target", columns, k, **options)
            assert list(tmp_path.iterdir()) == []
            return text
        frame = unread(frame) if request.param == "dask" else frame
        return refusal(error, frame.sdc.microaggregate, columns, k, **options)

    return refused


in_memory = pytest.mark.parametrize("make", [pd.DataFrame, unread], ids=["pandas", "dask"])


# Names of methods and blockings


@pytest.mark.parametrize("method", ["magic", "MDAV", "", None, 3, ["mdav"]], ids=str)
def test_unknown_methods(refuse: Refuse, method: Any) -> None:
    text = refuse(ValueError, method=method)
    assert text.startswith("method must be one of ")
    assert all(repr(name) in text for name in METHODS)
    # Only what cannot be data is shown.
    assert f"received {'list' if isinstance(method, list) else repr(method)}" in text


@pytest.mark.parametrize("blocking", ["magic", "Tree", "", 3, True], ids=str)
def test_unknown_blockings(refuse: Refuse, blocking: Any) -> None:
    for method in ("mdav", "pcp"):
        text = refuse(ValueError, method=method, blocking=blocking)
        assert "blocking must be one of 'auto', 'tree', 'univariate', None" in text
        assert f"received {blocking!r}" in text


@in_memory
def test_unknown_blockings_of_fuzzy_clusters(make: Callable[..., Any]) -> None:
    text = refusal(ValueError, run, make(people()), "fuzzy", blocking="magic")
    assert "blocking must be one of" in text
    assert "'tree', 'univariate', None" in text


# Parameters of one method alone


@pytest.mark.parametrize(
    ("method", "name"),
    [(method, name) for method in METHODS for name in EXTRA if METHODS[method].takes != name],
)
def test_parameters_of_other_methods(refuse: Refuse, method: str, name: str) -> None:
    options = {**PARAMETERS.get(method, {}), name: EXTRA[name]}
    columns = [["x"], ["y"]] if method == "optimal" else ["x", "y"]
    text = refuse(ValueError, columns, method=method, **options)
    assert f"{name} has no meaning with method={method!r}: leave it out" in text
    users = [user for user, other in METHODS.items() if other.takes == name]
    assert text.endswith(f"It belongs to {', '.join(map(repr, users))}.")


@pytest.mark.parametrize("name", list(EXTRA))
def test_parameters_of_other_methods_come_before_what_is_missing(refuse: Refuse, name: str) -> None:
    for method in PARAMETERS:
        if METHODS[method].takes != name:
            assert f"{name} has no meaning" in refuse(
                ValueError, method=method, **{name: EXTRA[name]}
            )


@pytest.mark.parametrize("way", ["mic1d", "fuzzy"])
@pytest.mark.parametrize("name", [*EXTRA, "method", "keep_order"])
def test_methods_of_their_own_have_no_such_parameters(way: str, name: str) -> None:
    text = refusal(TypeError, run, unread(people()), way, **{name: EXTRA.get(name, True)})
    assert f"unexpected keyword argument '{name}'" in text


@pytest.mark.parametrize("method", list(PARAMETERS))
def test_parameters_that_must_be_named(refuse: Refuse, method: str) -> None:
    text = refuse(ValueError, method=method)
    assert f"method={method!r} needs {METHODS[method].takes}=" in text


def test_sugeno_has_a_measure_by_default() -> None:
    default = people().sdc.microaggregate(["x", "y"], 3, method="sugeno")
    named = people().sdc.microaggregate(["x", "y"], 3, method="sugeno", measure=power(1))
    assert_frame_equal(default, named, check_exact=True)


# Numbers


NO_WHOLE_NUMBERS = [True, np.True_, 3.0, np.float64(3), np.nan, np.inf, "3", None, [3], 1 + 2j]


@in_memory
@with_k
def test_k(make: Callable[..., Any], way: str) -> None:
    frame = make(planted())
    for k in (1, 0, -3, np.int8(-3)):
        text = refusal(ValueError, run, frame, way, k=k)
        assert "k must be at least 2" in text
        assert f"received {k}." in text
    for k in NO_WHOLE_NUMBERS:
        text = refusal(TypeError, run, frame, way, k=k)
        assert "k must be a whole number of at least 2" in text
        assert f"received {type(k).__name__}." in text


@pytest.mark.parametrize("method", METHODS)
def test_k_of_files(method: str, source: Path, tmp_path: Path) -> None:
    options = {"method": method, **PARAMETERS.get(method, {})}
    for k, error in ((1, ValueError), (3.0, TypeError), (True, TypeError)):
        text = refusal(error, protect, source, tmp_path / "target", ["x"], k, **options)
        assert "at least 2" in text
    assert list(tmp_path.iterdir()) == []


@in_memory
def test_kappa(make: Callable[..., Any]) -> None:
    frame = make(planted())
    for kappa in (1, 0, -3, np.int8(-3)):
        text = refusal(ValueError, run, frame, "mic1d", kappa=kappa)
        assert "kappa must be at least 2" in text
        assert f"received {kappa}." in text
    for kappa in NO_WHOLE_NUMBERS:
        text = refusal(TypeError, run, frame, "mic1d", kappa=kappa)
        assert "kappa must be a whole number of at least 2" in text
        assert f"received {type(kappa).__name__}." in text


@pytest.mark.parametrize("npartitions", [0, 3])
def test_kappa_beyond_the_number_of_values(npartitions: int) -> None:
    frame: Any = people(30).assign(x=CANARY)
    frame = dd.from_pandas(frame, npartitions=npartitions) if npartitions else frame
    for kappa in (61, 10**30):
        text = refusal(ValueError, run, frame, "mic1d", kappa=kappa)
        assert "kappa must be from 2 to the number of values of the columns, 60" in text
        assert f"received {kappa}." in text
    assert len(run(frame, "mic1d", kappa=60)) == 30


@pytest.mark.parametrize("npartitions", [0, 3])
def test_kappa_beyond_the_values_of_a_stratum(npartitions: int) -> None:
    frame: Any = people(30).assign(x=CANARY, text=[CANARY_TEXT] * 4 + ["common"] * 26)
    frame = dd.from_pandas(frame, npartitions=npartitions) if npartitions else frame
    text = refusal(ValueError, run, frame, "mic1d", kappa=20, by="text")
    assert "kappa must be from 2 to the number of values of the smallest stratum, 8" in text
    assert "received 20." in text


def test_kappa_that_leaves_a_single_value() -> None:
    frame = people(30).assign(x=CANARY)
    text = refusal(ValueError, run, frame, "mic1d", kappa=59)
    assert "kappa=59 leaves a run of a single value" in text
    assert "1 of 1 strata: choose another kappa" in text
    frame["text"] = [CANARY_TEXT] * 13 + ["common"] * 17
    text = refusal(ValueError, run, frame, "mic1d", ["x"], kappa=12, by="text")
    assert "1 of 2 strata" in text


def test_small_kappa_warns_where_it_was_called() -> None:
    frame = people(30)
    for each in (frame, dd.from_pandas(frame, npartitions=2)):
        with pytest.warns(UserWarning, match="kappa=3 is small for 60 values") as caught:
            run(each, "mic1d", kappa=3)
        assert [warning.filename for warning in caught] == [__file__]


@pytest.mark.parametrize("gain", [-1, -1e-9, np.nan, np.inf, -np.inf, np.float32(-0.5)])
def test_gain_out_of_range(refuse: Refuse, gain: float) -> None:
    text = refuse(ValueError, method="vmdav", gain=gain)
    assert "gain must be a number of at least 0, and finite" in text
    assert f"received {gain:g}." in text


NO_NUMBERS = [True, np.True_, "0.2", [0.2], 1 + 2j, np.array(0.2), decimal.Decimal("1.5")]


@pytest.mark.parametrize("gain", NO_NUMBERS, ids=repr)
def test_gain_that_is_no_number(refuse: Refuse, gain: Any) -> None:
    text = refuse(TypeError, method="vmdav", gain=gain)
    assert "gain must be a number of at least 0" in text
    assert f"received {type(gain).__name__}." in text


@in_memory
@pytest.mark.parametrize("name", ["m1", "m2"])
def test_fuzziness(make: Callable[..., Any], name: str) -> None:
    frame = make(planted())
    for value in (0.99, 0, -1, np.nan, -np.inf, np.float32(0.5), np.int8(-1)):
        text = refusal(ValueError, run, frame, "fuzzy", **{name: value})
        assert f"{name} must be a number of at least 1" in text
        assert f"received {value:g}." in text
    for value in [*NO_NUMBERS, None]:
        text = refusal(TypeError, run, frame, "fuzzy", **{name: value})
        assert f"{name} must be a number of at least 1" in text
        assert f"received {type(value).__name__}." in text


def test_fuzziness_has_no_default() -> None:
    frame = unread(people())
    text = refusal(TypeError, frame.sdc.fuzzy_microaggregate, ["x"], 3)
    assert "'m1' and 'm2'" in text


@in_memory
def test_random_states_are_not_repeated(make: Callable[..., Any]) -> None:
    frame = make(planted())
    text = refusal(ValueError, run, frame, "fuzzy", random_state=-SEED)
    assert "random_state must be at least 0, received a negative number" in text
    sequence, generator = np.random.SeedSequence(SEED), np.random.default_rng(SEED)
    states = [float(SEED), str(SEED), [SEED], True, np.nan, sequence, generator]
    for random_state in states:
        text = refusal(TypeError, run, frame, "fuzzy", random_state=random_state)
        assert "random_state must be None or a whole number of at least 0" in text
        assert f"received {type(random_state).__name__}." in text


def test_numbers_of_numpy_are_numbers() -> None:
    frame = people()
    for way in METHODS:
        assert_frame_equal(run(frame, way, k=np.int8(4)), run(frame, way, k=4))
    for gain in (np.float32(0.5), np.float64(0.5)):
        assert_frame_equal(run(frame, "vmdav", gain=gain), run(frame, "vmdav", gain=0.5))
    assert_frame_equal(run(frame, "vmdav", gain=np.int64(0)), run(frame, "vmdav", gain=0))
    assert_frame_equal(run(frame, "mic1d", kappa=np.uint8(20)), run(frame, "mic1d", kappa=20))
    numbers = {"k": np.uint8(4), "m1": np.float32(1.5), "m2": np.int16(1)}
    result = run_quietly(frame, "fuzzy", **numbers, random_state=np.uint64(7))
    expected = run_quietly(frame, "fuzzy", k=4, m1=1.5, m2=1, random_state=7)
    assert_frame_equal(result, expected)
    weights = np.array([0.5, 0.5], np.float32)
    assert_frame_equal(run(frame, "weighted_mean", weights=weights), run(frame, "weighted_mean"))
    measure = np.array(PARAMETERS["choquet"]["measure"])
    assert_frame_equal(run(frame, "choquet", measure=measure), run(frame, "choquet"))


def test_infinite_fuzziness_is_allowed() -> None:
    result = run_quietly(people(), "fuzzy", m1=np.inf, m2=np.inf)
    assert np.isfinite(result[["x", "y"]]).all(axis=None)


@pytest.mark.parametrize("name", ["standardize", "keep_order"])
@pytest.mark.parametrize("value", [1, 0, "yes", None])
def test_flags(name: str, value: Any) -> None:
    for way in ("mdav", "pcp", *(["fuzzy"] if name == "standardize" else [])):
        text = refusal(TypeError, run, unread(people()), way, **{name: value})
        assert f"{name} must be True or False" in text
        assert f"received {type(value).__name__}." in text


@with_k
def test_ways_to_treat_missing_cells(way: str) -> None:
    for missing in ("drop", None, True):
        text = refusal(ValueError, run, unread(people()), way, missing=missing)
        assert "missing must be one of 'error', 'separate'" in text
        assert f"received {missing!r}" in text


# Weights


@pytest.mark.parametrize(
    ("weights", "error", "says"),
    [
        ([0.5], ValueError, "one number for each of 2 columns, received an array of shape (1,)"),
        ([0.5, 0.2, 0.3], ValueError, "each of 2 columns, received an array of shape (3,)"),
        ([[0.5, 0.5]], ValueError, "each of 2 columns, received an array of shape (1, 2)"),
        ([], ValueError, "each of 2 columns"),
        (1.0, ValueError, "one number for each of 2 columns"),
        ([1.5, -0.5], ValueError, "must not be below 0, received 1"),
        ([0.5, 0.6], ValueError, "must sum to 1, received a sum of 1.1: divide them"),
        ([0, 0], ValueError, "must sum to 1, received a sum of 0"),
        ([np.nan, 1.0], ValueError, "must be finite, received 1"),
        ([np.inf, -np.inf], ValueError, "must be finite, received 2"),
        ([True, False], TypeError, "must be numbers, received"),
        (["0.5", "0.5"], TypeError, "must be numbers, received"),
        ("half", TypeError, "must be numbers, received"),
        ([0.5, None], TypeError, "must be numbers, received"),
        ([0.5j, 1], TypeError, "must be numbers, received"),
        ({"x": 0.5, "y": 0.5}, TypeError, "must be numbers, received"),
    ],
    ids=str,
)
def test_weights(refuse: Refuse, weights: Any, error: type[Exception], says: str) -> None:
    text = refuse(error, method="weighted_mean", weights=weights)
    assert text.startswith("weights ")
    assert says in text


def test_weights_of_one_side_are_weights() -> None:
    frame = people()
    groups = run(frame, "weighted_mean", weights=[1, 0]).groupby(["x", "y"]).ngroup()
    spans = frame["x"].groupby(groups).agg(["min", "max"]).sort_values("min").to_numpy()
    assert (spans[:-1, 1] < spans[1:, 0]).all()


# Measures


def _dips(x: Any) -> Any:
    return np.where(np.asarray(x) < 0.5, np.asarray(x) * 1.8, x)


NO_QUANTIFIERS = {
    "begins at 1": (lambda x: 1 - x, ValueError, "Q(0) = 0, received Q(0) = 1"),
    "does not reach 1": (lambda x: x / 2, ValueError, "Q(1) = 1, received Q(1) = 0.5"),
    "falls": (_dips, ValueError, "must not decrease, received one that at 0.5 is below"),
    "not finite": (lambda x: x * np.nan, ValueError, "must be finite in [0, 1]"),
}


@pytest.mark.parametrize("case", list(NO_QUANTIFIERS))
@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].takes == "measure"])
def test_functions_that_are_no_quantifiers(refuse: Refuse, method: str, case: str) -> None:
    function, error, says = NO_QUANTIFIERS[case]
    text = refuse(error, method=method, measure=function)
    assert "a quantifier must" in text
    assert says in text
    if method == "twofold":
        for pair in ((function, power(1)), (power(1), function)):
            assert says in refuse(error, method=method, measure=pair)


def _raises(_x: Any) -> Any:
    raise ValueError("of its own")


@pytest.mark.parametrize("function", [_raises, lambda: 1, lambda _x: None, power])
@pytest.mark.parametrize("method", [name for name in METHODS if METHODS[name].takes == "measure"])
def test_functions_that_give_no_numbers(method: str, function: Callable[..., Any]) -> None:
    for frame in (people(), unread(people())):
        with pytest.raises(TypeError, match="a quantifier must give a number") as caught:
            frame.sdc.microaggregate(["x", "y"], 3, method=method, measure=function)
        # What went wrong in a function of the user is shown: it knows no data.
        assert re.search("received (ValueError|TypeError) from it", str(caught.value))


NO_MEASURES = {
    "short": ([0, 1], ValueError, "2**2 = 4 values, one for every set, received an array of shape"),
    "long": (np.linspace(0, 1, 8), ValueError, "2**2 = 4 values"),
    "table": ([[0, 0.5], [0.5, 1]], ValueError, "of shape (2, 2)"),
    "number": (0.5, ValueError, "2**2 = 4 values"),
    "empty set": ([0.1, 0.5, 0.5, 1], ValueError, "0 for the empty set, its first value"),
    "all columns": ([0, 0.5, 0.5, 0.9], ValueError, "1 for the set of all columns, its last value"),
    "above 1": ([0, 1.2, 0.5, 1], ValueError, "monotone"),
    "below 0": ([0, -0.2, 0.5, 1], ValueError, "monotone"),
    "nan": ([0, np.nan, 0.5, 1], ValueError, "must be finite, received 1"),
    "text": ("power", TypeError, "a quantifier, such as power(2), or an array of 4 numbers"),
    "texts": (["0", "1", "1", "1"], TypeError, "or an array of 4 numbers"),
    "truth": ([False, True, True, True], TypeError, "or an array of 4 numbers"),
    "dict": ({0: 1}, TypeError, "received dict"),
    "three": ((power(1),) * 3, TypeError, "received tuple"),
    "list of functions": ([power(1), power(2)], TypeError, "received list"),
}


@pytest.mark.parametrize("case", list(NO_MEASURES))
@pytest.mark.parametrize("method", ["choquet", "sugeno", "twofold"])
def test_arrays_that_are_no_measures(refuse: Refuse, method: str, case: str) -> None:
    measure, error, says = NO_MEASURES[case]
    text = refuse(error, method=method, measure=measure)
    assert "a measure" in text
    assert says in text


def test_arrays_that_fall_name_the_column(refuse: Refuse) -> None:
    measure = [0, 0.3, 0.2, 0.5, 0.6, 0.5, 0.7, 1]
    text = refuse(ValueError, ["x", "kept", "y"], method="choquet", measure=measure)
    assert "falls when column 0 joins, for 1 sets" in text


@pytest.mark.parametrize("case", ["short", "text", "dict", "number"])
def test_owa_takes_no_arrays(refuse: Refuse, case: str) -> None:
    measure = NO_MEASURES[case][0]
    text = refuse(TypeError, method="owa", measure=measure)
    assert "such as power(2)" in text
    assert f"received {type(measure).__name__}" in text
    assert "choquet" in text


@pytest.mark.parametrize("method", ["choquet", "sugeno", "owa"])
def test_pairs_of_measures_belong_to_twofold(refuse: Refuse, method: str) -> None:
    assert "received tuple" in refuse(TypeError, method=method, measure=(power(1), power(2)))


FAMILIES = [
    (power, [0, -1, np.nan, np.inf], "finite and above 0"),
    (sigmoid, [-0.1, 1.1, np.nan, np.inf], "from 0 to 1"),
    (threshold, [-0.1, 1, np.nan, np.inf], "from 0 to below 1"),
]


@pytest.mark.parametrize(("family", "values", "says"), FAMILIES)
def test_parameters_of_quantifiers(
    family: Callable[..., Any], values: list[float], says: str
) -> None:
    for alpha in values:
        text = refusal(ValueError, family, alpha)
        assert f"must be {says}, received {float(alpha)}" in text
    for alpha in (True, "1", None, [1]):
        assert f"received {type(alpha).__name__}" in refusal(TypeError, family, alpha)


@pytest.mark.parametrize("npartitions", [0, 3])
@pytest.mark.parametrize("method", ["choquet", "sugeno", "twofold"])
def test_array_measures_need_complete_records(method: str, npartitions: int) -> None:
    frame: Any = people().assign(kept=CANARY)
    frame.loc[::5, "y"] = np.nan
    frame = dd.from_pandas(frame, npartitions=npartitions) if npartitions else frame
    measure: Any = [0, 0.4, 0.5, 1]
    for each in (measure, (measure, power(1)), (power(1), measure)):
        if method != "twofold" and isinstance(each, tuple):
            continue
        text = refusal(ValueError, run, frame, method, missing="separate", measure=each)
        assert "12 cells are missing" in text
        assert "use a quantifier, or fill the cells first" in text


# Groups of columns, blocks, and what does not go together


@pytest.mark.parametrize("columns", [[["x", "y"], ["kept"]], [["kept"], ["x", "y"]]], ids=str)
def test_group_widths_that_do_not_fit(refuse: Refuse, columns: Any) -> None:
    text = refuse(ValueError, columns, method="weighted_mean", weights=[0.5, 0.5])
    assert "each of 1 columns, received an array of shape (2,)" in text
    text = refuse(ValueError, columns, method="choquet", measure=[0, 0.4, 0.5, 1])
    assert "a measure of 1 columns must have 2**1 = 2 values" in text


@pytest.mark.parametrize(
    "columns", [["x", "y"], [["x", "y"]], [["x"], ["kept", "y"]]], ids=["flat", "one", "second"]
)
def test_optimal_names_methods_for_wider_groups(refuse: Refuse, columns: Any) -> None:
    text = refuse(ValueError, columns, method="optimal")
    assert "masks one column at a time, received a group of 2" in text
    assert "columns=[['a'], ['b'], ...]" in text
    assert all(repr(name) in text for name in METHODS if name != "optimal")


@every_order
@pytest.mark.parametrize("blocking", ["auto", None])
def test_order_is_kept_unless_there_are_blocks(method: str, blocking: str | None) -> None:
    for frame in (people(), unread(people())):
        text = refusal(ValueError, run, frame, method, keep_order=False, blocking=blocking)
        assert "keep_order=False" in text
        assert "use keep_order=True, or name a blocking" in text


def test_order_of_several_groups_is_kept() -> None:
    for way in ("mdav", "optimal"):
        frame = unread(people())
        text = refusal(
            ValueError, run, frame, way, [["x"], ["y"]], keep_order=False, blocking="tree"
        )
        assert "one group of columns, received 2" in text
        assert "Use keep_order=True" in text


@every_order
@pytest.mark.parametrize("blocking", ["auto", None])
def test_largest_block_without_blocks(refuse: Refuse, method: str, blocking: str | None) -> None:
    options = PARAMETERS.get(method, {})
    columns = [["x"], ["y"]] if method == "optimal" else ["x", "y"]
    text = refuse(ValueError, columns, method=method, blocking=blocking, max_block=50, **options)
    assert "max_block has no meaning without blocks: leave it out, or name a blocking" in text


@in_memory
@pytest.mark.parametrize("way", ["mdav", "vmdav", "fuzzy"])
def test_largest_block_without_blocking(make: Callable[..., Any], way: str) -> None:
    text = refusal(ValueError, run, make(people()), way, blocking=None, max_block=50)
    assert "max_block has no meaning without blocks" in text


@in_memory
@with_k
def test_largest_block_out_of_range(make: Callable[..., Any], way: str) -> None:
    frame = make(people())
    for max_block, says in ((2, "at least k, received max_block=2 with k=3"), (1, "at least 2")):
        text = refusal(ValueError, run, frame, way, blocking="tree", max_block=max_block)
        assert says in text
    for max_block in (20.0, True, None, [20]):
        text = refusal(TypeError, run, frame, way, blocking="tree", max_block=max_block)
        assert "max_block must be a whole number" in text
    text = refusal(ValueError, run, frame, way, blocking="tree", max_block="big")
    assert "'auto'" in text
    assert "received 'big'" in text


@pytest.mark.parametrize("way", ["mdav", "vmdav", "pcp", "sugeno", "fuzzy"])
def test_blocks_of_something_else(way: str) -> None:
    frame = people().assign(part=np.arange(60) % 2)
    blocks = frame.sdc.blocks(["x", "y"], 3, max_block=20)
    lazy = unread(frame)
    for columns in (["y", "x"], ["x"], [["x"], ["y"]], ["x", "kept"]):
        text = refusal(ValueError, run, lazy, way, columns, blocking=blocks)
        assert "blocks of other columns" in text
        assert "in that order, as one group" in text
    for options in ({"by": "part"}, {"missing": "separate"}):
        text = refusal(ValueError, run, lazy, way, blocking=blocks, **options)
        assert "`by` and `missing` must be those that the blocks were made with" in text
    text = refusal(ValueError, run, lazy, way, blocking=blocks, k=4)
    assert "made for k=3, received k=4" in text
    text = refusal(ValueError, run, lazy, way, blocking=blocks, max_block=30)
    assert "max_block has no meaning with blocks that are made" in text
    assert len(run_quietly(frame, way, blocking=blocks)) == 60


@pytest.mark.parametrize("way", ["mdav", "pcp", "fuzzy"])
def test_blocks_of_other_data(way: str) -> None:
    blocks = people().sdc.blocks(["x", "y"], 3, max_block=10)
    other = people(seed=2).assign(x=np.linspace(0, 1, 60) * CANARY)
    with warnings.catch_warnings(action="ignore"):
        text = refusal(ValueError, run, other, way, blocking=blocks)
    assert "blocks have fewer than k=3 records of this frame" in text
    assert "make the blocks from this frame" in text


# Columns


@in_memory
@every_way
def test_columns(make: Callable[..., Any], way: str) -> None:
    frame = make(planted())
    text = refusal(KeyError, run, frame, way, ["x", "nowhere", "absent"])
    assert "columns that the frame does not have: 'nowhere', 'absent'" in text
    assert "It has: 'x', 'kept', 'y', 'number', 'text'" in text
    text = refusal(TypeError, run, frame, way, ["x", "text"])
    assert "column 'text' has dtype" in text
    assert "cast it to float64 if it holds numbers, or leave it out" in text
    assert "more than once: 'x'" in refusal(ValueError, run, frame, way, [["x", "y", "x"]])
    for columns in ([[]], [["x"], []]):
        text = refusal(ValueError, run, frame, way, columns)
        assert "columns is empty or has an empty group" in text
    for columns in ({"x": 1}, np.array(["x"]), people()["x"]):
        if way == "optimal":
            continue  # made into groups by the test
        text = refusal(TypeError, run, frame, way, columns)
        assert "columns must be a list of names" in text
        assert f"received {type(columns).__name__}" in text
    assert "mixes names and lists" in refusal(TypeError, run, frame, way, [["x"], "y"])


def test_vectors_of_all_values_have_no_groups() -> None:
    text = refusal(ValueError, run, unread(people()), "mic1d", [["x"], ["y"]])
    assert "received 2 groups of columns" in text
    assert "pass one list of names, or call it once for each group" in text


@in_memory
@every_way
def test_strata(make: Callable[..., Any], way: str) -> None:
    frame = make(planted())
    text = refusal(KeyError, run, frame, way, by=["text", "nowhere"])
    assert "by names columns that the frame does not have: 'nowhere'" in text
    text = refusal(ValueError, run, frame, way, by="y")
    assert "by names columns that are masked: 'y'" in text
    assert "more than once" in refusal(ValueError, run, frame, way, by=["text", "text"])
    text = refusal(TypeError, run, frame, way, by={"text"})
    assert "by must be a column name or a list of them, received set" in text


@every_way
def test_names_that_are_not_unique(way: str) -> None:
    for name in ("x", "number"):
        frame = people().assign(kept=CANARY).rename(columns={"kept": name})
        for each in (frame, unread(frame)):
            text = refusal(ValueError, run, each, way)
            assert f"more than once: '{name}'. Rename them" in text
    names = pd.MultiIndex.from_product([["x", "y"], ["a", "b"]])
    frame = pd.DataFrame(CANARY, index=range(9), columns=names)
    text = refusal(TypeError, run, frame, way, [("x", "a"), ("y", "b")])
    assert "MultiIndex of columns: flatten the names first" in text


NOT_NUMERIC = {
    "object": (lambda: pd.Series([CANARY] * 60, dtype=object), "cast it to float64"),
    "decimal": (lambda: [decimal.Decimal(str(CANARY))] * 60, "cast it to float64"),
    "text": (lambda: CANARY_TEXT, "cast it to float64"),
    "complex": (lambda: complex(CANARY, 1), "cast it to float64"),
    "truth": (lambda: True, "cast it to int first"),
    "category": (lambda: pd.Categorical([CANARY_TEXT] * 60), "name it in `by`"),
    "time": (lambda: pd.Timestamp("2001-02-03"), "convert it to a number first"),
}


@every_way
def test_columns_that_are_not_numeric(way: str) -> None:
    for make, advice in NOT_NUMERIC.values():
        frame = people().assign(x=make())
        for each in (frame, dd.from_pandas(frame, npartitions=2)):
            text = refusal(TypeError, run, each, way)
            assert "column 'x' has dtype" in text
            assert advice in text


def test_texts_where_dask_was_told_numbers_show_no_value() -> None:
    frame = people().assign(x=CANARY_TEXT)
    lazy = dd.from_delayed([dask.delayed(frame)], meta=people(0), verify_meta=False)
    for way in ("pcp", "optimal", "sugeno", "mic1d"):
        text = refusal(TypeError, run, lazy, way)
        assert "column 'x' holds values that are not numbers" in text


# Data


@pytest.fixture
def refuse_data(tmp_path: Path) -> Refuse:
    """Return a function that expects a frame to be refused as pandas, Dask and files alike."""

    def refused(error: type[Exception], frame: pd.DataFrame, way: str, **options: Any) -> str:
        with warnings.catch_warnings(action="ignore"):
            text = refusal(error, run, frame, way, **options)
            lazy = dd.from_pandas(frame, npartitions=2)
            assert refusal(error, run, lazy, way, **options) == text
        if way in METHODS:
            source, target = tmp_path / "source.parquet", tmp_path / "target"
            frame.to_parquet(source, index=False)
            columns = [["x"], ["y"]] if way == "optimal" else ["x", "y"]
            options = {"method": way, **PARAMETERS.get(way, {}), "k": 3, **options}
            assert refusal(error, protect, source, target, columns, **options) == text
            assert list(tmp_path.iterdir()) == [source]
        return text

    return refused


@every_way
def test_empty_frames(refuse_data: Refuse, way: str) -> None:
    assert "the frame has no records" in refuse_data(ValueError, people(0), way)


@with_k
@pytest.mark.parametrize("n", [1, 6])
def test_fewer_records_than_k(refuse_data: Refuse, way: str, n: int) -> None:
    text = refuse_data(ValueError, people(n).assign(x=CANARY), way, k=7)
    assert f"the frame has {n} records, fewer than k=7" in text
    assert "smaller k or more records" in text


@with_k
def test_strata_below_k(refuse_data: Refuse, way: str) -> None:
    frame = people().assign(x=CANARY, text=[CANARY_TEXT] * 2 + ["common"] * 58)
    text = refuse_data(ValueError, frame, way, by="text")
    assert "1 of 2 strata" in text
    assert "fewer than k=3 records, the smallest 2" in text
    assert "Merge rare values, drop those records, or use a smaller k" in text


@every_way
def test_infinite_values(refuse_data: Refuse, way: str) -> None:
    frame = people()
    frame.loc[[2, 30], "x"] = np.inf
    frame.loc[59, "y"] = -np.inf
    frame.loc[0, "x"] = CANARY
    text = refuse_data(ValueError, frame, way)
    assert "infinite values in columns: 'x' (2), 'y' (1)" in text
    assert "Replace them by finite values or drop those records" in text


@every_way
def test_missing_cells(refuse_data: Refuse, way: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[3, 5, 50], "y"] = np.nan
    text = refuse_data(ValueError, frame, way)
    assert "missing cells in columns: 'y' (3). Fill or drop them first" in text
    assert ("missing='separate'" in text) == (way != "mic1d")


@with_k
def test_rare_patterns_of_missing_cells(refuse_data: Refuse, way: str) -> None:
    frame = people()
    frame.loc[0, "x"] = CANARY
    frame.loc[[7, 9], "y"] = np.nan
    options = {"measure": power(2)} if way == "choquet" else {}
    text = refuse_data(ValueError, frame, way, missing="separate", **options)
    assert "1 of 2 strata" in text
    assert "the smallest 2" in text


@every_way
def test_integers_that_floats_cannot_hold(refuse_data: Refuse, way: str) -> None:
    frame = people().assign(x=np.arange(60) + 2**53 - 50)
    text = refuse_data(ValueError, frame, way)
    assert "'x' (9)" in text
    assert "Leave identifiers out" in text


@every_way
def test_constant_columns(way: str) -> None:
    frame = people()[["x", "y"]].assign(x=0.1)
    for values in (frame, frame.assign(y=7.7)):
        result = run_quietly(values, way)
        if way != "mic1d":  # which mixes columns
            np.testing.assert_allclose(result["x"], 0.1, rtol=1e-15)
        assert result.to_numpy().min() >= 0.1
        assert result.to_numpy().max() <= values.to_numpy().max()
        lazy = run_quietly(dd.from_pandas(values, npartitions=2), way).compute()
        assert_frame_equal(lazy, result, check_exact=True)


@with_k
def test_one_record(way: str) -> None:
    for frame in (people(1), dd.from_pandas(people(1), npartitions=1)):
        with warnings.catch_warnings(action="ignore"):
            text = refusal(ValueError, run, frame, way, k=2)
        assert "fewer than k=2" in text


def test_one_record_as_a_vector_of_values() -> None:
    text = refusal(ValueError, run, people(1), "mic1d", ["x"], kappa=2)
    assert "the number of values of the columns, 1, received 2" in text
    record = people(1).assign(x=1.0, y=3.0)
    lazy = run(dd.from_pandas(record, npartitions=1), "mic1d", kappa=2)
    for result in (run(record, "mic1d", kappa=2), lazy.compute()):
        assert result[["x", "y"]].to_numpy().tolist() == [[2.0, 2.0]]


@with_k
def test_as_many_records_as_k(way: str) -> None:
    frame = people(7)
    result = run_quietly(frame, way, k=7)
    np.testing.assert_allclose(result["x"], frame["x"].mean())
    lazy = run_quietly(dd.from_pandas(frame, npartitions=2), way, k=7).compute()
    assert_frame_equal(lazy[["x", "y"]], result[["x", "y"]], check_exact=True)


# Groups of columns that are made or counted


@pytest.mark.parametrize("group", [grouping.correlated, grouping.spread])
def test_groupings(group: Callable[..., Any]) -> None:
    frame = people().assign(kept=CANARY)
    for each in (frame, unread(frame)):
        columns = ["x", "kept", "y"]
        for size in (0, 4, -1, np.int8(-1), 10**30):
            text = refusal(ValueError, group, each, columns, size)
            assert "size must be from 1 to 3, the number of columns" in text
            assert f"received {size}." in text
        for size in [*NO_WHOLE_NUMBERS, decimal.Decimal(2)]:
            text = refusal(TypeError, group, each, columns, size)
            assert "size must be a whole number of at least 1" in text
            assert f"received {type(size).__name__}." in text
        for leftover in ("keep", None, True):
            text = refusal(ValueError, group, each, columns, 2, leftover=leftover)
            assert "leftover must be one of 'group', 'drop'" in text
            assert f"received {leftover!r}" in text
        assert "'nowhere'" in refusal(KeyError, group, each, ["x", "nowhere"], 1)
        assert "more than once: 'x'" in refusal(ValueError, group, each, ["x", "x"], 1)
        assert "'text' has dtype" in refusal(TypeError, group, each, ["x", "text"], 1)
        assert "columns is empty" in refusal(ValueError, group, each, [], 1)
        for names in ("x", None, np.array(["x"]), {"x": 1}):
            text = refusal(TypeError, group, each, names, 1)
            assert "columns must be a list of names, or a list of lists of names" in text
        text = refusal(ValueError, group, each, [["x"], ["y"]], 1)
        assert "one list of names, received 2 lists" in text
    double = frame.rename(columns={"number": "x"})
    assert "more than once: 'x'" in refusal(ValueError, group, double, ["y"], 1)
    assert group(frame, ["x", "y"], np.int8(2)) == [["x", "y"]]


@pytest.mark.parametrize("group", [grouping.correlated, grouping.spread])
@pytest.mark.parametrize("npartitions", [0, 3])
def test_groupings_of_infinite_values(group: Callable[..., Any], npartitions: int) -> None:
    frame: Any = people().assign(kept=CANARY)
    frame.loc[[1, 50], "kept"] = [np.inf, -np.inf]
    frame = dd.from_pandas(frame, npartitions=npartitions) if npartitions else frame
    text = refusal(ValueError, group, frame, ["x", "kept"], 1)
    assert "infinite values in columns: 'kept' (2)" in text
    assert "drop those records first" in text


@pytest.mark.parametrize("group", [grouping.correlated, grouping.spread])
def test_groupings_of_awkward_frames(group: Callable[..., Any]) -> None:
    frame = people(30).rename(columns={"x": 0, "kept": ("a", 1), "y": 1.5})
    names = [0, ("a", 1), 1.5, "number"]
    expected = group(frame, names, 2)
    assert sorted(map(str, itertools.chain(*expected))) == sorted(map(str, names))
    for lazy in (
        dd.from_pandas(frame, npartitions=30),
        dd.from_pandas(frame, npartitions=4).clear_divisions(),
        dd.from_pandas(frame, npartitions=6).map_partitions(_later_rows),
    ):
        assert group(lazy, names, 2) == group(lazy.compute(), names, 2)
    constant = people(30).assign(x=1.0, kept=np.nan)
    assert group(constant, ["x", "kept", "y"], 3) == [["x", "kept", "y"]]


def _later_rows(part: pd.DataFrame) -> pd.DataFrame:
    return part[part["number"] >= 12]


def test_individual_groups() -> None:
    assert "columns is empty" in refusal(ValueError, grouping.individual, [])
    assert "more than once" in refusal(ValueError, grouping.individual, ["x", "x"])
    for columns in ([["x"], ["y"]], people(), people()["x"], np.array(["x"]), {"x": 1}):
        assert "columns must" in refusal(TypeError, grouping.individual, columns)


@in_memory
def test_groups_that_are_counted(make: Callable[..., Any]) -> None:
    count = make(planted()).sdc.group_anonymity
    for groups in ("x", ["x", "y"], [["x"], "y"], [("x", "y")], None, {"x": ["x"]}, people()):
        text = refusal(TypeError, count, groups)
        assert "groups must be a list of lists of column names" in text
        assert "For one group pass a list with one list" in text
    for groups in ([], [[]], [["x"], []]):
        assert "groups is empty or has an empty group" in refusal(ValueError, count, groups)
    text = refusal(KeyError, count, [["x"], ["nowhere"]])
    assert "groups names columns that the frame does not have: 'nowhere'" in text
    assert "It has: 'x', 'kept'" in text
    for groups in ([["x"], ["y", "x"]], [["x", "x"]]):
        text = refusal(ValueError, count, groups)
        assert "more than once: 'x'. A column belongs to one group" in text
    for k in (0, -1):
        text = refusal(ValueError, count, [["x"]], k)
        assert f"k must be at least 1, received {k}." in text
    for k in (True, 2.0, "2", [2], np.nan):
        text = refusal(TypeError, count, [["x"]], k)
        assert "k must be a whole number of at least 1" in text


def test_groups_that_are_counted_in_awkward_frames() -> None:
    for frame in (people(0), dd.from_pandas(people(0), npartitions=1)):
        text = refusal(ValueError, frame.sdc.group_anonymity, [["x"]])
        assert "the frame has no records" in text
    double = people().rename(columns={"kept": "x"})
    assert "Rename" in refusal(ValueError, double.sdc.group_anonymity, [["y"]])
    one = people(1).sdc.group_anonymity([["x"], ["y"]], np.int64(2))
    assert (one.rows, one.k_min) == (1, (1, 1))
    frame = people(30).assign(y=lambda each: each["number"] % 3)
    frame = frame.rename(columns={"y": 0, "text": ("a", 1)})
    lazy = dd.from_pandas(frame, npartitions=6).map_partitions(_later_rows)
    for each in (lazy, dd.from_pandas(frame, npartitions=30), lazy.clear_divisions()):
        expected = each.compute().sdc.group_anonymity([[0], [("a", 1)]], 2)
        assert each.sdc.group_anonymity([[0], [("a", 1)]], 2) == expected


def test_expected_anonymity() -> None:
    for place, name in enumerate(["n", "k", "r"]):
        arguments: list[Any] = [10, 2, 1]
        for value, error in (
            (0, ValueError),
            (-1, ValueError),
            (True, TypeError),
            (2.0, TypeError),
        ):
            arguments[place] = value
            assert name in refusal(error, expected_anonymity, *arguments).split(" ")[0]


# Names and flags


@pytest.mark.parametrize("name", [{"x"}, {"x": 1}, ("x", ["y"]), np.array(["x"])])
@pytest.mark.parametrize(
    "call",
    [
        lambda frame, name: frame.sdc.rank_swap([name], 20),
        lambda frame, name: frame.sdc.microaggregate(["x", name], 3),
        lambda frame, name: frame.sdc.microaggregate(["x"], 3, by=["y", name]),
        lambda frame, name: frame.sdc.sse(frame, ["x", name]),
        lambda frame, name: frame.sdc.linkage(frame, columns=["x", "y"], known=[name]),
        lambda frame, name: frame.sdc.information_loss(frame, [name]),
        lambda frame, name: frame.sdc.anonymity(["x", name]),
        lambda frame, name: grouping.individual([name]),
    ],
)
def test_what_cannot_be_a_name(call: Callable[[pd.DataFrame, Any], Any], name: Any) -> None:
    with pytest.raises(TypeError, match=f"received {type(name).__name__} for a name"):
        call(people(), name)


@pytest.mark.parametrize("name", [1, None, ("x", "y")])
def test_protect_with_a_name_that_is_no_text(tmp_path: Path, name: Any) -> None:
    people().to_parquet(tmp_path / "source.parquet")
    with pytest.raises((KeyError, TypeError), match="columns"):
        protect(tmp_path / "source.parquet", tmp_path / "target", ["x", name], 3)
    assert not (tmp_path / "target").exists()


def test_flags_of_numpy() -> None:
    frame = people()
    for flag in (np.True_, np.False_):
        found = frame.sdc.microaggregate(["x", "y"], 3, standardize=flag)
        assert_frame_equal(found, frame.sdc.microaggregate(["x", "y"], 3, standardize=bool(flag)))


@pytest.mark.parametrize("size", ["big", ""])
def test_max_block_as_a_word(size: str) -> None:
    with pytest.raises(ValueError, match="a whole number of at least 2, or 'auto', received"):
        people().sdc.microaggregate(["x", "y"], 3, max_block=size)


def test_a_quantifier_that_fails() -> None:
    def fails(x: Any) -> float:
        raise KeyError("whatever")

    with pytest.raises(TypeError, match="received KeyError from it"):
        people().sdc.microaggregate(["x", "y"], 3, method="owa", measure=fails)


# The command line


@pytest.fixture
def complain(
    source: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Callable[..., str]]:
    """Return a function that expects a complaint of the command line, and gives its last line."""
    monkeypatch.setattr(cluster, "local_cluster", lambda *_: contextlib.nullcontext())
    monkeypatch.setattr(microaggregation, "plan", _never)

    def complained(code: int, *options: str) -> str:
        command = ["protect", str(source), str(tmp_path / "target"), "--columns", "x,y"]
        assert cli.main([*command, "-k", "3", *options]) == code
        shown = capsys.readouterr()
        assert shown.out == ""
        assert list(tmp_path.iterdir()) == []
        assert not [value for value in FORBIDDEN if value in shown.err]
        assert "Traceback" not in shown.err
        if code == 1:
            assert shown.err.count("\n") == 1
        return shown.err.splitlines()[-1]

    with dask.config.set(scheduler="threads"):
        yield complained


def test_cli_names(complain: Callable[..., str]) -> None:
    line = complain(2, "--method", "magic")
    assert "--method: invalid choice: 'magic'" in line
    assert all(name in line for name in METHODS)
    line = complain(2, "--blocking", "magic")
    assert all(name in line for name in ("auto", "tree", "univariate", "none"))
    line = complain(1, "--method", "pcp", "--columns", "nowhere")
    assert "the frame does not have: 'nowhere'. It has: 'x', 'kept'" in line
    assert "column 'text' has dtype" in complain(1, "--method", "pcp", "--columns", "text")
    assert "more than once: 'x'" in complain(1, "--method", "pcp", "--columns", "x")


CLI_EXTRA = {"gain": "0.2", "weights": "0.5,0.5", "measure": "power:1"}


@pytest.mark.parametrize("name", list(CLI_EXTRA))
def test_cli_parameters_of_other_methods(complain: Callable[..., str], name: str) -> None:
    users = [user for user, other in METHODS.items() if other.takes == name]
    for method in METHODS:
        if method not in users:
            line = complain(1, "--method", method, f"--{name}", CLI_EXTRA[name])
            assert f"{name} has no meaning with method={method!r}" in line
            assert line.endswith(f"It belongs to {', '.join(map(repr, users))}.")


@pytest.mark.parametrize("method", list(PARAMETERS))
def test_cli_parameters_that_must_be_named(complain: Callable[..., str], method: str) -> None:
    assert f"needs {METHODS[method].takes}" in complain(1, "--method", method)


@pytest.mark.parametrize(
    ("code", "options", "says"),
    [
        (1, "--method vmdav --gain -1", "gain must be a number of at least 0, and finite"),
        (1, "--method vmdav --gain nan", "received nan"),
        (1, "--method vmdav --gain inf", "received inf"),
        (2, "--method vmdav --gain much", "--gain"),
        (1, "--method weighted_mean --weights 0.5", "one number for each of 2 columns"),
        (1, "--method weighted_mean --weights=-0.5,1.5", "must not be below 0"),
        (1, "--method weighted_mean --weights 0.6,0.6", "must sum to 1, received a sum of 1.2"),
        (1, "--method weighted_mean --weights nan,1", "must be finite"),
        (2, "--method weighted_mean --weights 0.5,,0.5", "such as 0.5,0.3,0.2"),
        (2, "--method weighted_mean --weights half", "received 'half'"),
        (1, "--method optimal", "masks one column at a time"),
        (1, "--method pcp --max-block 20", "max_block has no meaning without blocks"),
        (1, "--method pcp --blocking none --max-block 20", "max_block has no meaning"),
        (1, "--method mdav --blocking none --max-block 20", "max_block has no meaning"),
        (1, "--method pcp --blocking tree --max-block 2", "at least k"),
        (2, "-k 2.5", "a whole number of at least 2, received '2.5'"),
        (2, "-k 1", "a whole number of at least 2, received '1'"),
    ],
)
def test_cli_values(complain: Callable[..., str], code: int, options: str, says: str) -> None:
    assert says in complain(code, *options.split())


@pytest.mark.parametrize(
    "measure",
    [
        *("power", "power:", "power:0", "power:-1", "power:nan", "power:inf", "power:1:2"),
        *("magic:1", "sigmoid:2", "threshold:1", "threshold:-0.1", ":1", "", "0,0.5,0.5,1"),
    ],
)
def test_cli_measures(complain: Callable[..., str], measure: str) -> None:
    line = complain(2, "--method", "owa", "--measure", measure)
    assert "power:X with X above 0, sigmoid:X with X from 0 to 1, or threshold:X" in line
    assert f"received {measure!r}" in line


# Partitions and names


def _with_gaps(frame: pd.DataFrame) -> dd.DataFrame:
    """Return partitions of many sizes, the first, some in the middle and the last one empty."""
    borders = [0, 0, 1, 9, 9, 40, len(frame), len(frame)]
    parts = [frame.iloc[begin:end] for begin, end in itertools.pairwise(borders)]
    parts = [dask.delayed(part) for part in parts]
    return dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)


@every_way
def test_empty_partitions(way: str) -> None:
    frame = people().assign(part=lambda each: each["number"] % 2)[["x", "y", "number", "part"]]
    lazy = _with_gaps(frame)
    result = run_quietly(lazy, way, by="part")
    assert result.npartitions == lazy.npartitions
    assert_frame_equal(result.compute(), run_quietly(frame, way, by="part"), check_exact=True)


@every_way
def test_unknown_divisions_and_k_beyond_a_partition(way: str) -> None:
    frame = people(40)[["x", "y"]]
    lazy = dd.from_pandas(frame, npartitions=5).clear_divisions()
    assert not lazy.known_divisions
    expected = run_quietly(frame, way, k=13)
    assert_frame_equal(run_quietly(lazy, way, k=13).compute(), expected, check_exact=True)
    if way in METHODS:
        assert expected.groupby(["x"] if way == "optimal" else ["x", "y"]).size().min() >= 13


@every_way
def test_one_row_a_partition(way: str) -> None:
    frame = people(11)[["x", "y"]]
    lazy = dd.from_pandas(frame, npartitions=11)
    assert lazy.map_partitions(len).compute().max() == 1
    expected = run_quietly(frame, way)
    assert_frame_equal(run_quietly(lazy, way).compute(), expected, check_exact=True)


@every_way
def test_names_that_are_no_texts(way: str) -> None:
    plain = people()[["x", "y", "number"]]
    expected = run_quietly(plain, way)
    for names in ([0, 1.5], [("a", 1), ("b", 2)], ["checksum", "key"], ["v1", "v0"]):
        columns = pd.Index([*names, "number"], tupleize_cols=False)
        frame = plain.set_axis(columns, axis="columns")
        result = run_quietly(frame, way, list(names))
        assert list(result.columns) == list(columns)
        np.testing.assert_array_equal(result.to_numpy(), expected.to_numpy())
        lazy = run_quietly(dd.from_pandas(frame, npartitions=2), way, list(names)).compute()
        assert_frame_equal(lazy, result, check_exact=True)


DTYPES = {
    "float32": "float32",
    "float16": "float16",
    "int8": "float64",
    "uint64": "float64",
    "Float64": "Float64",
    "Float32": "Float32",
    "Int64": "Float64",
    "UInt8": "Float64",
    "double[pyarrow]": "double[pyarrow]",
    "float[pyarrow]": "float[pyarrow]",
    "int64[pyarrow]": "double[pyarrow]",
    "uint8[pyarrow]": "double[pyarrow]",
}


@pytest.mark.parametrize("way", ["optimal", "pcp", "sugeno", "vmdav", "mic1d", "fuzzy"])
@pytest.mark.parametrize("dtype", list(DTYPES))
def test_dtypes(way: str, dtype: str) -> None:
    values = np.random.default_rng(9).integers(0, 100, 60)
    frame = people()[["x", "y"]].assign(x=pd.array(values, dtype=dtype))
    result = run_quietly(frame, way)
    assert [str(each) for each in result.dtypes] == [DTYPES[dtype], "float64"]
    wide = run_quietly(frame.assign(x=values.astype(float)), way)
    expected = wide["x"].astype("float32").astype("float16") if dtype == "float16" else wide["x"]
    assert_series_equal(result["x"], expected.astype(DTYPES[dtype]), rtol=1e-3)
    lazy = run_quietly(dd.from_pandas(frame, npartitions=2), way)
    assert_series_equal(lazy.dtypes, result.dtypes)
    assert_frame_equal(lazy.compute(), result, check_exact=True)


@pytest.mark.parametrize("way", ["optimal", "zscores", "owa", "fuzzy"])
@pytest.mark.parametrize("dtype", ["Float64", "Int64", "double[pyarrow]", "int64[pyarrow]"])
def test_missing_cells_of_nullable_dtypes(way: str, dtype: str) -> None:
    values = np.random.default_rng(9).integers(0, 100, 60).astype(object)
    values[::5] = None
    frame = people()[["x", "y"]].assign(x=pd.array(values, dtype=dtype))
    text = refusal(ValueError, run_quietly, frame, way)
    assert "missing cells in columns: 'x' (12)" in text
    result = run_quietly(frame, way, missing="separate")
    assert str(result["x"].dtype) == DTYPES[dtype]
    assert_series_equal(result["x"].isna(), frame["x"].isna())
    lazy = run_quietly(dd.from_pandas(frame, npartitions=3), way, missing="separate")
    assert_frame_equal(lazy.compute(), result, check_exact=True)


@pytest.mark.parametrize("way", ["optimal", "pcp", "sugeno", "vmdav", "mic1d", "fuzzy"])
def test_many_strata(way: str) -> None:
    n = 1_200 * 5
    rng = np.random.default_rng(4)
    strata = rng.permutation(np.repeat(np.arange(1_200), 5))
    frame = pd.DataFrame({"x": rng.normal(size=n), "y": rng.normal(size=n), "part": strata})
    options = {"kappa": 5} if way == "mic1d" else {}
    result = run_quietly(frame, way, by="part", **options)
    lazy = run_quietly(dd.from_pandas(frame, npartitions=5), way, by="part", **options)
    assert_frame_equal(lazy.compute(), result, check_exact=True)
    if way in METHODS:
        sizes = result.groupby(["part", "x"]).size()
        assert sizes.min() >= 3
        means = result.groupby("part").mean() - frame.groupby("part").mean()
        assert means.abs().max(axis=None) < 1e-12
    if way == "mic1d":
        some = frame[frame["part"] < 3]
        alone = run_quietly(some, way, by="part", **options)
        assert_frame_equal(result.loc[some.index], alone, check_exact=True)


# Frames that are not the same each time


class Unstable:
    """Partitions that change after they were computed so many times."""

    def __init__(self, change: Callable[..., pd.DataFrame], after: int, parts: list[int]) -> None:
        self.change, self.after, self.parts = change, after, parts
        self.computed: Counter[int] = Counter()
        self.lock = threading.Lock()

    def partition(self, number: int) -> pd.DataFrame:
        with self.lock:
            times = self.computed[number]
            self.computed[number] += 1
        frame = stable_part(number)
        changes = times >= self.after and number in self.parts
        return self.change(frame, 10 * number + times) if changes else frame


UNSTABLE: dict[str, Unstable] = {}
KAPPA = {"mic1d": {"kappa": 10}}  # no change leaves a run of a single value


def stable_part(number: int) -> pd.DataFrame:
    """Return 8 records; originals go along in columns that are not masked."""
    rng = np.random.default_rng(number)
    frame = pd.DataFrame({"x": rng.normal(size=8), "y": rng.normal(size=8), "part": [0, 1] * 4})
    return frame.assign(old_x=frame["x"], old_y=frame["y"])


def _computed_apart(number: int, name: str, columns: list[str] | None = None) -> pd.DataFrame:
    # Dask passes on which columns it needs: what leaves and what stays is computed apart.
    frame = UNSTABLE[name].partition(number)
    return frame if columns is None else frame[columns]


def unstable_frame(unstable: Unstable, *, apart: bool) -> dd.DataFrame:
    """Return a frame of 3 partitions that are computed once a pass, or twice in the last."""
    meta = stable_part(0).iloc[:0]
    if apart:
        name = f"unstable {len(UNSTABLE)}"
        UNSTABLE[name] = unstable
        return dd.from_map(_computed_apart, range(3), name=name, meta=meta)
    parts = [dask.delayed(unstable.partition, pure=False)(number) for number in range(3)]
    return dd.from_delayed(parts, meta=meta, verify_meta=False)


def _shuffle(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    return frame.sample(frac=1.0, random_state=seed)


def _other_values(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    # Other records within the old bounds.
    x = np.random.default_rng(seed).permutation(frame["x"].to_numpy())
    return frame.assign(x=x, old_x=x)


def _other_strata(frame: pd.DataFrame, _seed: int) -> pd.DataFrame:
    return frame.assign(part=1 - frame["part"])


def _fewer_rows(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    return frame.iloc[: 2 * (seed % 4)]


def _no_rows(frame: pd.DataFrame, _seed: int) -> pd.DataFrame:
    return frame.iloc[:0]


def _more_rows(frame: pd.DataFrame, seed: int) -> pd.DataFrame:
    # Few more, or more than there are numbers for.
    return pd.concat([frame, frame.iloc[: 2 + 6 * (seed % 2)]], ignore_index=True)


CHANGES = {
    change.__name__[1:]: change
    for change in (
        *(_shuffle, _other_values, _other_strata),
        *(_fewer_rows, _no_rows, _more_rows),
    )
}


def check_unstable(result: pd.DataFrame, way: str, by: str | None) -> None:
    """Check that a result is right for the records that it has."""
    old = result.assign(x=result["old_x"], y=result["old_y"])
    columns = ["x", "y"]
    assert np.isfinite(result[columns]).all(axis=None)
    if way == "mic1d":
        expected = run_quietly(old, way, by=by, **KAPPA[way])
        assert_frame_equal(result, expected, check_exact=True)
        return
    if way == "fuzzy":
        assert (result["x"] != result["old_x"]).all()
        return
    columns = ["x"] if way == "optimal" else columns
    groups = result.groupby([*columns, *([by] if by else [])])
    assert groups.size().min() >= 3
    means = groups[[f"old_{column}" for column in columns]].transform("mean")
    np.testing.assert_allclose(means, result[columns], atol=1e-12)


def run_unstable(frame: dd.DataFrame, way: str, by: str | None) -> pd.DataFrame | None:
    """Mask a frame, or see that a clear error says why not."""
    columns = ["x"] if way == "optimal" else ["x", "y"]
    try:
        result = run_quietly(frame, way, columns, by=by, **KAPPA.get(way, {}))
        return result.compute()
    except RuntimeError as error:
        assert type(error) is RuntimeError
        assert "not the same each time that it is computed" in str(error)
        assert "df.persist(), or write it to files first" in str(error)
        return None


@pytest.mark.parametrize("change", list(CHANGES))
@pytest.mark.parametrize("way", ["optimal", "owa", "mic1d", "fuzzy"])
def test_unstable_frames_are_masked_well_or_refused(way: str, change: str) -> None:
    # Before the last pass or in it; what leaves and what stays together or apart; some of the
    # partitions or all; with strata or without.
    for after, apart, parts, by in (
        (1, False, [1], None),
        (2, True, [0, 1, 2], "part"),
        (3, True, [2], None),
    ):
        parts = parts[:1] if change == "no_rows" else parts
        frame = unstable_frame(Unstable(CHANGES[change], after, parts), apart=apart)
        result = run_unstable(frame, way, by)
        if result is not None:
            check_unstable(result, way, by)


# The passes before the last; what stays is computed once more.
PASSES = {"optimal": 2, "pcp": 3, "sugeno": 2, "mic1d": 2}


@pytest.mark.parametrize("change", [name for name in CHANGES if name != "other_strata"])
@pytest.mark.parametrize("way", list(PASSES))
def test_rows_that_change_behind_those_that_left_are_an_error(way: str, change: str) -> None:
    unstable = Unstable(CHANGES[change], PASSES[way] + 1, [1])
    frame = unstable_frame(unstable, apart=True)
    columns = ["x"] if way == "optimal" else ["x", "y"]
    lazy = run(frame, way, columns, **KAPPA.get(way, {}))
    assert set(unstable.computed.values()) == {PASSES[way]}
    with pytest.raises(RuntimeError, match="not the same each time that it is computed") as caught:
        lazy.compute()
    assert caught.type is RuntimeError
    assert unstable.computed[1] == PASSES[way] + 2


def _beyond_the_bounds(frame: pd.DataFrame, _seed: int) -> pd.DataFrame:
    x = 100 * frame["x"] + 5
    return frame.assign(x=x, old_x=x)


@pytest.mark.parametrize("way", ["optimal", "pcp", "zscores", "mic1d"])
def test_values_beyond_the_bounds_that_were_scanned(way: str) -> None:
    for after, apart in ((1, False), (3, True)):
        unstable = Unstable(_beyond_the_bounds, after, [0, 2])
        result = run_unstable(unstable_frame(unstable, apart=apart), way, None)
        if result is not None:
            check_unstable(result, way, None)


@pytest.mark.parametrize("way", ["pcp", "mic1d"])
def test_random_frames(way: str, scheduler: str) -> None:
    def draw(_number: int, columns: list[str] | None = None) -> pd.DataFrame:
        rng = np.random.default_rng()
        frame = pd.DataFrame(rng.normal(size=(8, 2)), columns=["x", "y"])
        frame = frame.assign(part=0, old_x=frame["x"], old_y=frame["y"])
        return frame if columns is None else frame[columns]

    frame = dd.from_map(draw, range(3), meta=stable_part(0).iloc[:0])
    assert run_unstable(frame, way, None) is None
    once = frame.persist()
    result = run_unstable(once, way, None)
    assert result is not None
    check_unstable(result, way, None)
    assert_frame_equal(result[["old_x", "old_y"]], once[["old_x", "old_y"]].compute())
