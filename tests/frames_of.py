"""Small frames of every kind and maskings of them, as strategies, and what may be said of both.

Frames have as many records as a few groups of k, and cells where things go wrong: ties, constants,
extremes, missing cells. Maskings are valid or nearly so. A case is a frame, the maskings that are
asked for, and where the frame is cut into partitions.
"""

from __future__ import annotations

import decimal
import itertools
import re
import traceback
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import strategies as st

from sdc_dask import (
    FuzzyMicroaggregation,
    Mic1D,
    Microaggregation,
    Noise,
    Pram,
    RankSwap,
    Recode,
    SeriesMicroaggregation,
    Spec,
    Suppress,
)
from sdc_dask.aggregation import power, sigmoid, threshold

LARGEST = np.finfo(np.float64).max
TINY = np.nextafter(0.0, 1.0)  # the smallest subnormal number
NAMES: list[Hashable] = ["key", "block", "__row_id", "0", "v0", "by0", "count", "index", "x", "y"]
ODD_NAMES: list[Hashable] = [0, ("a", 1), 1.5]

# Cells of columns, by kind. Those of one column are drawn from one of these lists.

_FLOATS: dict[str, list[Any]] = {
    "plain": [123456.789, 0.1, 2.5, -7.25, 33.0, 1e3, -0.5, 3.0],
    "tied": [1.0, 2.0],
    "grid": [0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5],
    "constant": [0.1],
    "zeros": [0.0, -0.0],
    "huge": [1e300, -1e300, LARGEST, -LARGEST, 1e200, 0.0],
    "tiny": [TINY, -TINY, 3 * TINY, 1e-310, 0.0, -0.0],
    "adjacent": [1.0, float(np.nextafter(1.0, 2.0)), float(np.nextafter(1.0, 0.0))],
    "mixed": [1e300, 1e-300, 2.0**53, -1.0, 0.0, 123456.789],
}
_INFINITE = [1.0, 2.0, np.inf, -np.inf]
_INTEGERS: dict[str, list[Any]] = {
    "plain": [0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89],
    "signed": [-100, -3, -2, -1, 0, 1, 2, 3, 100],
    "tied": [1, 2],
    "constant": [7],
    "exact": [2**53, -(2**53), 2**53 - 1, 0, 1, 1_234_567],
}
_INEXACT = [2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 2**64 - 1, 0, 1]
_TEXTS = ["Zx9canaryQ7", "a", "b", "", "Straße 17", "0"]
_DATES = pd.to_datetime(["2001-02-03", "1969-12-31", "2262-04-11", "1677-09-22", "2020-02-29"])
_OTHERS: dict[str, list[Any]] = {
    "bool": [True, False],
    "boolean": [True, False],
    "bool[pyarrow]": [True, False],
    "str": _TEXTS,
    "object": _TEXTS,
    "string": _TEXTS,
    "string[pyarrow]": _TEXTS,
    "category": _TEXTS,
    "ordered": _TEXTS,
    "binary[pyarrow]": [b"Zx9canaryQ7", b"", b"\xff\xfe"],
    "datetime64[ns]": list(_DATES),
    "datetime64[s]": list(_DATES),
    "datetime64[ns, UTC]": [date.tz_localize("UTC") for date in _DATES[:2]],
    "timedelta64[ns]": [pd.Timedelta(days=1), pd.Timedelta(-3, "ns")],
    "period[D]": [pd.Period("2001-02-03", "D"), pd.Period("1969-12-31", "D")],
    "timestamp[us][pyarrow]": list(_DATES),
    "date32[day][pyarrow]": [date.date() for date in _DATES],
    "duration[us][pyarrow]": [pd.Timedelta(days=1), pd.Timedelta(seconds=-3)],
    "decimal": [decimal.Decimal("123456.789"), decimal.Decimal("-0.001")],
}
# What neither an order nor a mean makes sense of.
_STRANGE: dict[str, list[Any]] = {
    "complex128": [complex(123456.789, 1), 1j],
    "mixed": [123456.789, "Zx9canaryQ7", True],
    "lists": [["Zx9canaryQ7"], []],
    "nested": [[123456.789], []],
    "interval": [pd.Interval(0, 1), pd.Interval(1, 123456)],
}
_DTYPES = {
    "ordered": pd.CategoricalDtype(_TEXTS, ordered=True),
    "decimal": pd.ArrowDtype(pa.decimal128(12, 3)),
    "mixed": np.dtype(object),
    "lists": np.dtype(object),
    "nested": pd.ArrowDtype(pa.list_(pa.float64())),
    "interval": pd.IntervalDtype("int64", "right"),
}
_NO_MISSING = "bool", "int", "uint", "complex"  # how numpy's dtypes without missing cells begin

INTEGERS = [
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("Int8", "Int64", "UInt64", "int64[pyarrow]", "uint8[pyarrow]", "uint64[pyarrow]"),
]
FLOATS = [
    *("float16", "float32", "float64", "Float32", "Float64"),
    *("halffloat[pyarrow]", "float[pyarrow]", "double[pyarrow]"),
]
_WIDTHS = {"float16": 2, "halffloat": 2, "float32": 4, "float": 4}  # others have 8 bytes


def width_of(dtype: Any) -> int:
    """Return the bytes of a float dtype."""
    return _WIDTHS.get(str(dtype).lower().removesuffix("[pyarrow]"), 8)


@st.composite
def cells(draw: st.DrawFn, n: int, values: Sequence[Any], *, most: int = 8) -> list[Any]:
    """Draw n cells out of some of the values: a byte for each cell is fast, and shrinks well."""
    few = draw(st.lists(st.sampled_from(range(len(values))), min_size=1, max_size=most))
    return [values[few[byte % len(few)]] for byte in draw(st.binary(min_size=n, max_size=n))]


@st.composite
def with_missing(draw: st.DrawFn, found: list[Any], missing: Sequence[Any]) -> list[Any]:
    """Draw which cells are missing: none of them mostly, a few, half of them, or all."""
    one_of = draw(st.sampled_from([0] * 12 + [2, 2, 3, 30, 1]))
    if not one_of:
        return found
    bits = draw(st.binary(min_size=len(found), max_size=len(found)))
    return [
        missing[byte % len(missing)] if byte % one_of == 0 else cell
        for byte, cell in zip(bits, found, strict=True)
    ]


def array_of(values: list[Any], kind: str) -> Any:
    """Return cells as an array of a kind; None is missing, and NaN stays what it is."""
    dtype = _DTYPES.get(kind, kind)
    if kind in ("Float32", "Float64"):
        floats = np.array([np.nan if v is None else v for v in values], kind.lower())
        return pd.arrays.FloatingArray(floats, np.array([v is None for v in values], bool))
    if kind in FLOATS and "pyarrow" in kind:
        floats = np.array([np.nan if v is None else v for v in values], f"f{width_of(kind)}")
        there = np.array([v is None for v in values], bool)
        return pd.arrays.ArrowExtensionArray(pa.array(floats, mask=there))
    if kind in ("mixed", "lists"):
        objects = np.empty(len(values), object)
        objects[:] = values
        return objects
    return pd.Series(values, dtype=dtype).array


@st.composite
def numbers(draw: st.DrawFn, n: int) -> Any:
    """Draw a column of numbers: most can be masked, and some hold what cannot."""
    kind = draw(st.sampled_from(["float64", "int64", *INTEGERS, *FLOATS, "float64", "Float64"]))
    odd = draw(st.integers(0, 19)) == 0
    if kind in FLOATS:
        limit = float(np.finfo(f"f{width_of(kind)}").max)
        values = _INFINITE if odd else draw(st.sampled_from(list(_FLOATS.values())))
        values = [v for v in values if abs(v) <= limit or np.isinf(v)]
        nullable = kind.startswith("F") or "pyarrow" in kind
        missing = [None, np.nan] if nullable else [np.nan]
    else:
        limits = np.iinfo(kind.lower().removesuffix("[pyarrow]"))
        values = _INEXACT if odd else draw(st.sampled_from(list(_INTEGERS.values())))
        values = [v for v in values if limits.min <= v <= limits.max]
        missing = [None] if not kind.startswith(_NO_MISSING) or "pyarrow" in kind else []
    found = draw(cells(n, values))
    return array_of(draw(with_missing(found, missing)) if missing else found, kind)


@st.composite
def others(draw: st.DrawFn, n: int, *, most: int = 6, strange: bool = True) -> Any:
    """Draw a column of anything but numbers; texts and dates of all kinds."""
    table = _OTHERS | (_STRANGE if strange and draw(st.integers(0, 9)) == 0 else {})
    kind = draw(st.sampled_from(list(table)))
    found = draw(cells(n, table[kind], most=most))
    can_miss = not kind.startswith(_NO_MISSING) or "pyarrow" in kind or kind == "boolean"
    missing = [None, np.nan] if kind == "object" else [None]
    return array_of(draw(with_missing(found, missing)) if can_miss else found, kind)


@st.composite
def strata(draw: st.DrawFn, n: int) -> Any:
    """Draw a column of few values, so that each may have k records."""
    if draw(st.booleans()):
        return draw(others(n, most=2))
    kind = draw(st.sampled_from(["int64", "float64", "Int64", "Float64", "double[pyarrow]"]))
    values = [2**53, 2**53 + 1] if "nt" in kind else [0.0, -0.0, 1.5, np.nan]
    found = draw(cells(n, values, most=3))
    return array_of(found if kind == "int64" else draw(with_missing(found, [None])), kind)


INDEXES = ["range", "dates", "duplicates", "texts", "missing", "categories", "named", "levels"]


def index_of(kind: str, n: int, name: Hashable) -> pd.Index:
    """Return an index of a kind, for n records; some have the name of a column."""
    place = np.arange(n)
    if kind == "dates":
        return pd.date_range("2001-02-03", periods=n, freq="D", name="when")
    if kind == "duplicates":
        return pd.Index(place // 3 * 7 % 4)
    if kind == "texts":
        return pd.Index([f"person {i}" for i in place])
    if kind == "missing":
        return pd.Index(np.where(place % 3 == 0, np.nan, place), dtype="float64")
    if kind == "categories":
        return pd.CategoricalIndex(np.array(["b", "a"])[place % 2])
    if kind == "named":
        return pd.RangeIndex(5, 5 + 2 * n, 2, name=name)
    if kind == "levels":
        return pd.MultiIndex.from_arrays([place % 2, place // 2], names=[name, None])
    return pd.RangeIndex(n)


# Maskings


@dataclass(frozen=True)
class Asked:
    """A spec that is not made yet, since it may be refused."""

    kind: type[Spec]
    options: dict[str, Any]

    def make(self) -> Spec:
        return self.kind(**self.options)


METHODS: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "mdav": {},
    "vmdav": {"gain": st.sampled_from([None, 0.0, 0.2, 1.1, 1e300])},
    "optimal": {},
    "pcp": {},
    "zscores": {},
    "mean": {},
    "weighted_mean": {"weights": st.just("of columns")},
    **{
        method: {"measure": st.sampled_from([power(1), power(0.5), sigmoid(0.5), threshold(0.5)])}
        for method in ("owa", "choquet", "sugeno", "twofold")
    },
}


@st.composite
def microaggregations(draw: st.DrawFn, columns: list[Hashable], k: int) -> dict[str, Any]:
    """Draw a method and its options, for one set of columns or several."""
    method = draw(st.sampled_from(list(METHODS)))
    sets = draw(st.sampled_from([[columns], [columns[:1], columns[1:]], [[c] for c in columns]]))
    sets = [[c] for c in columns] if method == "optimal" else [each for each in sets if each]
    found: dict[str, Any] = {"columns": sets if len(sets) > 1 else sets[0], "method": method}
    for name, option in METHODS[method].items():
        found[name] = draw(option)
    if method == "weighted_mean":
        found["columns"] = columns
        found["weights"] = [1 / len(columns)] * len(columns)
    if method == "twofold" and draw(st.booleans()):
        found["measure"] = (found["measure"], power(2))
    in_order = method not in ("mdav", "vmdav")
    found["blocking"] = draw(st.sampled_from(["auto", "tree", "halves", "univariate", None]))
    if found["blocking"] in ("tree", "halves", "univariate") or (
        found["blocking"] == "auto" and not in_order
    ):
        found["max_block"] = draw(st.sampled_from(["auto", k, k + 1, 2 * k, 3 * k + 1]))
    found["standardize"] = draw(st.booleans())
    found["missing"] = draw(st.sampled_from(["error", "separate", "separate"]))
    found["decimals"] = draw(st.sampled_from([None, None, None, 0, 2, -1]))
    return found


@st.composite
def series_microaggregations(draw: st.DrawFn, columns: list[Hashable], k: int) -> dict[str, Any]:
    """Draw a distance and its options, for one series, with or without a name."""
    named = {"price": list(columns)}
    found: dict[str, Any] = {
        "series": draw(st.sampled_from([list(columns), named])),
        "distance": draw(st.sampled_from(["euclidean", "sts"])),
        "normalize": draw(st.sampled_from(["series", "component"])),
        "blocking": draw(st.sampled_from(["auto", None])),
    }
    if found["distance"] == "sts":
        times = [[0.0, 0.5, 4.0, 9.0][: len(columns)], [-1e9, 0.0, 1e-9, 1.0][: len(columns)]]
        found["times"] = draw(st.sampled_from([None, *times]))
    if found["blocking"] == "auto":
        found["max_block"] = draw(st.sampled_from(["auto", k, 2 * k]))
    return found


@st.composite
def rank_swaps(draw: st.DrawFn, columns: list[Hashable]) -> dict[str, Any]:
    """Draw a method and its reach, over all ranks or in blocks."""
    found: dict[str, Any] = {"columns": list(columns)}
    found["method"] = draw(st.sampled_from(["standard", "distribution", "buckets"]))
    if found["method"] == "buckets":
        found["buckets"] = draw(st.sampled_from([1, 2, 3]))
    else:
        found["p"] = draw(st.sampled_from([5, 20, 50.0, 99.9, 100]))
    found["missing"] = draw(st.sampled_from(["keep", "keep", "error"]))
    found["blocking"] = draw(st.sampled_from([None, None, "tree", "halves", "univariate"]))
    if found["blocking"] is not None:
        found["max_block"] = draw(st.sampled_from(["auto", 6, 20]))
    elif draw(st.integers(0, 3)) == 0:
        found["top"] = draw(st.sampled_from([None, 25, 50]))
        found["bottom"] = draw(st.sampled_from([None, 25, 50]))
    return found


@st.composite
def fuzzy_microaggregations(draw: st.DrawFn, columns: list[Hashable], k: int) -> dict[str, Any]:
    """Draw fuzziness and blocks."""
    found: dict[str, Any] = {
        "columns": list(columns),
        "m1": draw(st.sampled_from([1, 1.1, 1.5, 2.0, 4.0, float("inf")])),
        "m2": draw(st.sampled_from([1, 1.2, 2.0, float("inf")])),
        "blocking": draw(st.sampled_from(["tree", "halves", "univariate", None])),
        "standardize": draw(st.booleans()),
        "missing": draw(st.sampled_from(["error", "separate"])),
    }
    if found["blocking"] is not None:
        found["max_block"] = draw(st.sampled_from(["auto", k, 2 * k]))
    return found


@st.composite
def in_place(
    draw: st.DrawFn, kind: type[Spec], columns: list[Hashable], sortable: Sequence[Hashable], k: int
) -> dict[str, Any]:
    """Draw options of what changes records where they are; some take columns of any kind."""
    if kind is Recode:
        bins = [
            -np.inf,
            *draw(st.sampled_from([[0.0], [1.5, 100.0], [-1e300, 0.1, 1e300]])),
            np.inf,
        ]
        ends = draw(st.sampled_from([{"top": 2}, {"bottom": -1}, {"top": 3, "bottom": 0}]))
        return {"columns": columns, **draw(st.sampled_from([{"bins": bins}, ends]))}
    if kind is Noise:
        found: dict[str, Any] = {"columns": columns, "sd": draw(st.sampled_from([0.01, 0.5, 3.0]))}
        if len(columns) > 1:
            found["correlated"] = draw(st.booleans())
        found["whole"] = draw(st.sampled_from([False, False, True]))
        return found
    found = {"columns": [*columns, *sortable]}
    if kind is Pram:
        return found | {"keep": draw(st.sampled_from([0, 0.5, 0.9]))}
    costs = draw(st.sampled_from([None, [1.0 + place for place in range(len(found["columns"]))]]))
    missing = draw(st.sampled_from(["value", "value", "matches"]))
    return found | {"k": k, "costs": costs, "missing": missing}


# Values with which a spec, or a frame, is refused.
_WRONG: dict[str, list[Any]] = {
    "k": [1, 0, -3, True, 2.5, "3", None, 1_000, 2**70],
    "kappa": [1, True, 2.5, 1_000],
    "columns": [[], [[]], "x", None, ["no such"], ["x", "x"], [["x"], "y"], [["x"], ["x"]], [{}]],
    "series": [[], ["x"], {}, {"a": []}, {0: ["x", "y"]}, "x", [["x", "y"]], ["no such", "x"]],
    "by": ["no such", ["no such"], {}, [[]], ["kept", "kept"]],
    "max_block": [1, 0, True, 2.5, "all", None],
    "blocking": ["trees", 7, True],
    "missing": ["drop", None, "separate", "keep"],
    "method": ["mean", "mdva", None, "buckets"],
    "distance": ["dtw", None],
    "normalize": ["none", 1],
    "times": [[0, 1], [3, 2, 1], [0, 1, float("nan")], "now", [0, 1, float("inf")]],
    "p": [0, -1, 100.5, float("nan"), True, "5", None, 10**400],
    "buckets": [0, True, 2.5, 1_000],
    "top": [0, 101, float("nan"), "5", 80],
    "bottom": [0, -1, True, 80],
    "m1": [0.5, float("nan"), True, "1", None],
    "m2": [0.99, -float("inf"), None],
    "gain": [-0.1, float("inf"), float("nan"), True, "0"],
    "weights": [[0.5], [2.0, -1.0, 0.0], [float("nan")] * 3, "half", None, [[1]], 0.5],
    "measure": [0.5, "power", [0, 1], [0, 0.5, 0.4, 1], None, (power(1),) * 3, [float("nan")] * 4],
    "standardize": ["yes", None, 2],
    "decimals": [0.5, True, "2", 10**6, -(10**6)],
    "bins": [[], [0], [1, 0], [0, float("nan")], "x", 7],
    "keep": [1, -0.1, float("nan"), "half", True],
    "sd": [0, -1, float("nan"), float("inf"), True, "1", None],
    "costs": [[], [0.0] * 3, [-1.0] * 3, "x", {"no such": 2}],
}


@st.composite
def specs(
    draw: st.DrawFn,
    columns: list[Hashable],
    by: Sequence[Hashable],
    k: int,
    *,
    sortable: Sequence[Hashable] = (),
    promising: bool = False,
    wrong: bool = True,
) -> Asked:
    """Draw a masking of columns; now and then one option of it is wrong.

    Parameters
    ----------
    columns : list
        Of numbers.
    by : sequence
        Columns that may define strata.
    k : int
        Of maskings that have one.
    sortable : sequence
        Other columns, which can be swapped, suppressed or drawn anew at most.
    promising : bool
        Whether the masking promises k.
    wrong : bool
        Whether an option may be wrong.
    """
    kinds: list[type[Spec]] = [Microaggregation, Microaggregation]
    kinds += [SeriesMicroaggregation] if len(columns) > 1 else []
    kinds += [] if promising else [RankSwap, Mic1D, FuzzyMicroaggregation]
    kinds += [] if promising else [Recode, Suppress, Pram, Noise]
    kind = draw(st.sampled_from(kinds))
    if kind is Microaggregation:
        options = draw(microaggregations(columns, k))
    elif kind is SeriesMicroaggregation:
        options = draw(series_microaggregations(columns, k))
    elif kind is RankSwap:
        options = draw(rank_swaps([*columns, *sortable]))
    elif kind is Mic1D:
        options = {"columns": list(columns), "kappa": draw(st.sampled_from([2, 3, 5, 12]))}
    elif kind.in_place:
        options = draw(in_place(kind, list(columns), sortable, k))
    else:
        options = draw(fuzzy_microaggregations(columns, k))
    if kind not in (RankSwap, Mic1D) and not kind.in_place:
        options["k"] = k
    if kind is Pram or not kind.in_place:
        options["by"] = draw(st.sampled_from([None, None, *([each] for each in by), list(by)]))
    if wrong and draw(st.integers(0, 9)) == 0:
        name = draw(st.sampled_from([name for name in options if name in _WRONG]))
        options[name] = draw(st.sampled_from(_WRONG[name]))
    return Asked(kind, options)


# Frames with maskings of them


@dataclass(frozen=True)
class Case:
    """A frame, what is asked of it, and where it is cut into partitions."""

    frame: pd.DataFrame
    asked: list[Asked]
    borders: list[int]
    random_state: int

    def make(self) -> list[Spec]:
        """Make the specs, any of which may be refused."""
        return [each.make() for each in self.asked]

    def partitioned(self) -> dd.DataFrame:
        """Return the frame in partitions, some of which may be empty."""
        return partitioned(self.frame, self.borders)


def partitioned(frame: pd.DataFrame, borders: Sequence[int]) -> dd.DataFrame:
    """Cut a frame at borders, from 0 to its number of records."""
    parts = [frame.iloc[begin:end] for begin, end in itertools.pairwise(borders)]
    # With names of their own: Dask takes nullable arrays of equal values for the same.
    made = [dask.delayed(part, pure=False) for part in parts]
    return dd.from_delayed(made, meta=frame.iloc[:0], verify_meta=False)


@st.composite
def sizes(draw: st.DrawFn, k: int) -> int:
    """Draw a number of records, most of them near k, 2k or 3k."""
    if draw(st.integers(0, 9)) == 0:
        return draw(st.sampled_from([0, 1, 2, 60]))
    return draw(st.sampled_from([1, 2, 2, 3, 3, 4, 6])) * k + draw(st.sampled_from([0, 0, -1, 1]))


@st.composite
def cuts(draw: st.DrawFn, n: int, most: int = 4) -> list[int]:
    """Draw borders of partitions or row groups of n records; some are empty."""
    inner = draw(st.lists(st.integers(0, n), max_size=most))
    return [0, *sorted(inner), n]


@st.composite
def cases(
    draw: st.DrawFn, *, for_dask: bool = False, for_files: bool = False, wrong: bool = True
) -> Case:
    """Draw a frame of any kind and one masking or two.

    Parameters
    ----------
    for_dask : bool
        Whether Dask can have the frame: an index of one level.
    for_files : bool
        Whether parquet files can hold it: names that are texts, values that Arrow knows.
    wrong : bool
        Whether options of maskings may be wrong.
    """
    k = draw(st.sampled_from([2, 3, 3, 4, 5]))
    n = max(draw(sizes(k)), 1 if for_files else 0)
    pool = NAMES if for_files else [*NAMES, *ODD_NAMES]
    names = draw(st.permutations(pool))[:6]
    width = draw(st.sampled_from([1, 2, 2, 3]))
    columns: dict[Hashable, Any] = {name: draw(numbers(n)) for name in names[:width]}
    masked, kept = names[:width], names[width : width + 3]
    columns[kept[0]] = draw(strata(n)) if not for_files else draw(file_strata(n))
    columns[kept[1]] = draw(others(n, strange=not for_files))
    columns[kept[2]] = draw(numbers(n))
    places = draw(st.permutations(list(columns)))
    kinds = INDEXES[:1] if for_files else INDEXES[:-1] if for_dask else INDEXES
    index = index_of(draw(st.sampled_from(kinds)), n, names[0])
    # Not from a dict: a frame takes its tuples for levels of names.
    frame = pd.concat([pd.Series(columns[name], index=index) for name in places], axis=1)
    frame.columns = pd.Index(places, tupleize_cols=False)
    by = kept[:1]
    sortable = draw(st.sampled_from([[], [kept[1]]]))
    options: dict[str, Any] = {"wrong": wrong}
    if width == 3 and draw(st.booleans()):
        first = draw(specs(masked[:2], by, k, **options))
        asked = [first, draw(specs(masked[2:], by, k, sortable=sortable, **options))]
    else:
        asked = [draw(specs(masked, by, k, sortable=sortable, **options))]
    return Case(frame, asked, draw(cuts(n)), draw(st.integers(0, 2**64)))


@st.composite
def file_strata(draw: st.DrawFn, n: int) -> Any:
    """Draw strata of which Arrow knows the values."""
    if draw(st.booleans()):
        return draw(others(n, most=2, strange=False))
    kind = draw(st.sampled_from(["int64", "double[pyarrow]", "float[pyarrow]"]))
    values = [2**53, 2**53 + 1] if kind == "int64" else [0.0, -0.0, 1.5, np.nan]
    found = draw(cells(n, values, most=3))
    return array_of(found if kind == "int64" else draw(with_missing(found, [None])), kind)


# What is compared


def texts_of(column: pd.Series) -> list[str]:
    """Return a text for every cell that says its type and all of its bits, or how it is missing."""
    return [f"{type(cell).__name__} {cell!r}" for cell in column.astype(object)]


def missing_in(column: pd.Series) -> list[bool]:
    """Tell which cells are missing; NaN is, also in a nullable column that holds it."""
    # A list is no missing cell, though all of what it holds may be.
    return [
        not isinstance(cell, list) and bool(pd.isna(cell) or cell != cell)
        for cell in column.astype(object)
    ]


def in_one_form(column: pd.Series) -> list[str]:
    """Return texts of cells, where a float that is missing or zero is so in one way."""
    texts = texts_of(pd.Series([unsigned(cell) for cell in column.astype(object)], dtype=object))
    if not pd.api.types.is_float_dtype(column.dtype):
        return texts
    return [
        "missing" if gone else text for text, gone in zip(texts, missing_in(column), strict=True)
    ]


def classes(frame: pd.DataFrame, columns: Sequence[Hashable], by: Sequence[Hashable]) -> list[Any]:
    """Return what tells the class of every record: bits of masked cells, and values of strata.

    Missing cells are equal. Zeros of strata are equal whatever their sign.
    """
    found = []
    for name in [*columns, *by]:
        cells = frame[name].astype(object)
        if name in by:
            cells = pd.Series([unsigned(cell) for cell in cells], dtype=object)
        pairs = zip(texts_of(cells), missing_in(cells), strict=True)
        found.append(["missing" if missing else text for text, missing in pairs])
    return list(zip(*found, strict=True))


def unsigned(cell: Any) -> Any:
    """Return a cell whose zero, if it is one, has no sign."""
    return cell + 0.0 if isinstance(cell, (float, np.floating)) else cell


def smallest_class(
    frame: pd.DataFrame, columns: Sequence[Hashable], by: Sequence[Hashable] = ()
) -> int:
    """Return the number of records in the smallest class.

    Floats are told apart by all that can be seen of them: NaN from null, and zeros by their sign.
    """
    seen = [
        texts_of(frame[name])
        for name in [*columns, *by]
        if pd.api.types.is_float_dtype(frame[name].dtype)
    ]
    return min(Counter(zip(classes(frame, columns, by), *seen, strict=True)).values())


def shown_values(error: BaseException, frame: pd.DataFrame) -> list[str]:
    """Return values of a frame that an error shows to whoever logs it.

    Short ones are left out, which any sentence may hold, and names of columns.
    """
    shown = "".join(traceback.format_exception(error)[-1:])
    chained = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    while chained is not None:
        shown += str(chained)
        chained = chained.__cause__ or chained.__context__
    known = {str(name) for name in frame.columns} | {str(2**53)}
    values = {str(cell) for name in frame.columns for cell in frame[name].astype(object)}
    values = {value for value in values if len(value) >= 6} - known
    return [value for value in values if re.search(rf"(?<!\w){re.escape(value)}(?!\w)", shown)]
