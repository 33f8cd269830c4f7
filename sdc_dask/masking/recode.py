"""Global recoding: every value of a column becomes a coarser one."""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.columns import check_numeric, coded_values, one_form, to_float
from sdc_dask.engine.dates import (
    date_as,
    date_texts,
    has_zone,
    is_date,
    local_microseconds,
    local_text,
    microseconds,
    zone_of,
)
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.in_place import Allowed, Change, OneOf
from sdc_dask.engine.strata import comparable
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.masking.spec import Spec, needed, option, values

_MISSING, _UNKNOWN = -1, -2  # codes of cells


@dataclass(frozen=True, repr=False)
class Recode(Spec):
    """Replace values by coarser ones: ranges, groups of categories, or bounds at the ends.

    Parameters
    ----------
    columns : list
        Columns that are recoded alike.
    bins : list of numbers or dates, optional
        Edges of ranges, ascending, of columns of numbers, or of dates: a range begins at an edge
        and ends below the next; the last one has its end, too. Edges may be infinite. A value
        outside is an error.
    labels : list, optional
        Of the ranges: texts or whole numbers. By default they say the edges.
    mapping : dict, Series, DataFrame of two columns, or list of pairs, optional
        The coarser value of each value: texts or numbers. A value that it does not have is an
        error, or becomes `others`. Of a hierarchy of several levels, take two columns. (In job
        files, a table has texts for keys; numbers are a list of pairs.)
    others : str or number, optional
        The coarser value of all values that `mapping` does not have.
    top, bottom : number or date, optional
        Larger values become `top`, smaller ones `bottom`, in columns of numbers or of dates.

    Notes
    -----
    Dates are texts such as ``"1980-01-01"`` or ``"1980-01-01 06:30"``, or dates of Python, pandas
    and numpy, and have no zone: in a column with a zone, they are local times.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame({"age": [15, 40, 99], "town": ["Bonn", "Mainz", "Bonn"]})
    >>> ages = sdc_dask.Recode(["age"], bins=[0, 18, 65, 120], labels=["child", "adult", "old"])
    >>> towns = sdc_dask.Recode(["town"], mapping={"Bonn": "west", "Mainz": "west"})
    >>> df.sdc.mask([ages, towns])
         age  town
    0  child  west
    1  adult  west
    2    old  west
    """

    kind: ClassVar[str] = "recode"
    in_place: ClassVar[bool] = True
    by: ClassVar[tuple[Hashable, ...]] = ()  # type: ignore[misc]

    columns: Any = needed("columns to recode, all alike")
    _: KW_ONLY
    bins: Any = values("edges of ranges, such as 0,18,65,inf or 1950-01-01,2000-01-01")
    labels: Any = values("names of the ranges, such as child,adult,old")
    mapping: Any = values("coarser values, such as Bonn:west,Mainz:west")
    others: Any = values("the coarser value of all that the mapping does not have")
    top: float | str | None = option(None, "larger numbers or later dates become this one")
    bottom: float | str | None = option(None, "smaller numbers or earlier dates become this one")

    def __post_init__(self) -> None:
        kept: dict[str, Any] = {"columns": arguments.column_list(self.columns)}
        ends = {name: getattr(self, name) for name in ("top", "bottom")}
        given = [name for name in ("bins", "mapping") if getattr(self, name) is not None]
        given += ["top and bottom"] if any(end is not None for end in ends.values()) else []
        if len(given) != 1:
            raise SdcValueError(
                "a recoding needs one of bins, mapping, or top and bottom, received "
                f"{' and '.join(given) or 'none'}: name one, and use another Recode for others."
            )
        if self.labels is not None and self.bins is None:
            raise SdcValueError("labels has no meaning without bins: leave it out.")
        if self.others is not None and self.mapping is None:
            raise SdcValueError("others has no meaning without mapping: leave it out.")
        if self.bins is not None:
            kept["bins"] = _edges(self.bins)
            kept["labels"] = _labels(self.labels, kept["bins"])
        elif self.mapping is not None:
            kept["mapping"] = _pairs(self.mapping)
            kept["others"] = _others(self.others, kept["mapping"])
        else:
            kept |= _ends(ends)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns, which are recoded alike."""
        return (self.columns,)

    @property
    def measures_numbers(self) -> bool:
        """Whether numbers stay numbers that are near: where bounds alone are set."""
        return self.targets is None

    @property
    def targets(self) -> tuple[Any, ...] | None:
        """The different coarser values, in the order in which they are given."""
        if self.bins is not None:
            return tuple(dict.fromkeys(self.labels))
        if self.mapping is not None:
            last = () if self.others is None else (self.others,)
            return tuple(dict.fromkeys((*(coarse for _, coarse in self.mapping), *last)))
        return None

    @property
    def of_dates(self) -> bool:
        """Whether edges or bounds are dates."""
        return any(isinstance(each, str) for each in (*(self.bins or ()), self.top, self.bottom))

    def describe(self) -> str:
        """Return a few words for people."""
        if self.bins is not None:
            return f"recoding, {len(self.labels):,} ranges"
        if self.mapping is not None:
            rest = " and all others" if self.others is not None else ""
            return f"recoding, {len(self.mapping):,} values{rest} to {len(self.targets or ()):,}"
        ends = {"at least": self.bottom, "at most": self.top}
        named = (f"{name} {_shown(end)}" for name, end in ends.items() if end is not None)
        return f"recoding, {' and '.join(named)}"

    def dtype_of(self, column: Hashable, dtype: Any) -> Any:
        """Return the dtype of coarser values: texts in the place of numbers are categories."""
        targets = self.targets
        if targets is None:
            return dtype
        if isinstance(dtype, pd.CategoricalDtype):
            return pd.CategoricalDtype(list(targets), ordered=dtype.ordered)
        kind = _kind(targets)
        if isinstance(dtype, pd.ArrowDtype):
            return pd.ArrowDtype(_arrow_type(kind, dtype.pyarrow_dtype))
        plain = isinstance(dtype, np.dtype)
        if kind is str:
            is_text = isinstance(dtype, pd.StringDtype) or pd.api.types.is_object_dtype(dtype)
            return dtype if is_text else pd.CategoricalDtype(list(targets), self.bins is not None)
        if kind is float:
            return np.dtype("float64") if plain else pd.Float64Dtype()
        complete = plain and dtype.kind in "iub"  # no cell is missing
        return np.dtype("int64") if complete else pd.Int64Dtype()

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and their values can be recoded."""
        meta = arguments.unique_columns(frame)
        arguments.check_comparable(meta, self.columns, "columns")
        if self.mapping is None and not self.of_dates:
            check_numeric(meta, self.columns, ", as bins, top and bottom need (or name dates)")
        if self.of_dates:
            self._check_dates(meta)
            return
        for column in self.columns:
            whole = pd.api.types.is_integer_dtype(meta[column].dtype)
            broken = [
                each for each in (self.top, self.bottom) if isinstance(each, float) and each % 1
            ]
            if whole and broken:
                raise SdcValueError(
                    f"top and bottom must be whole numbers for column {column!r} of integers, "
                    f"received {broken[0]:g}."
                )

    def _check_dates(self, meta: pd.DataFrame) -> None:
        named = [each for each in (*(self.bins or ()), self.top, self.bottom) if each is not None]
        zoned = any(has_zone(each) for each in named if isinstance(each, str))
        for column in self.columns:
            dtype = meta[column].dtype
            if zoned and is_date(dtype) and not has_zone(dtype):
                raise SdcTypeError(
                    f"column {column!r} has dtype {dtype}, without a zone, and bins, top or bottom "
                    "have one: name local times."
                )
            if not is_date(dtype):
                raise SdcTypeError(
                    f"column {column!r} has dtype {dtype}, and bins, top or bottom are dates: name "
                    "columns of dates, or numbers."
                )
            for name in ("top", "bottom"):
                end = getattr(self, name)
                if end is not None and not _holds(dtype, end):
                    raise SdcValueError(
                        f"{name} must be a date that column {column!r} can hold, received "
                        f"{_shown(end)} for dtype {dtype}: name another."
                    )

    def plan(self, frame: Frame, entropy: int = 0) -> list[Change]:
        """Look whether all values can be recoded, in one pass."""
        if self.targets is not None:
            unknown = map_reduce(frame[list(self.columns)], _count_unknown, _add, self)
            for column, count in zip(self.columns, unknown.tolist(), strict=True):
                if count:
                    raise SdcValueError(f"column {column!r} has {self._outside(count)}")
        return [Recoding(self)]

    def _outside(self, count: int) -> str:
        if self.mapping is not None:
            return (
                f"{count:,} records with values that mapping does not have: add them, or say "
                "what all others become (others=). Texts and numbers differ: keys of a table in a "
                "job file are texts."
            )
        return (
            f"{count:,} values outside of the bins, below {_shown(self.bins[0])} or above "
            f"{_shown(self.bins[-1])}: move the first or the last edge, for instance to infinity."
        )

    def codes(self, part: pd.DataFrame, column: Hashable) -> NDArray[np.int64]:
        """Return the place of each cell's coarser value; a negative number if it has none."""
        targets = self.targets or ()
        place = {target: code for code, target in enumerate(targets)}
        if self.mapping is not None:
            dtype = part[column].dtype
            known = {_as_held(fine, dtype): place[coarse] for fine, coarse in self.mapping}
            code, different = _factorized(part[column])
            rest = _UNKNOWN if self.others is None else place[self.others]
            found = np.array([known.get(each, rest) for each in different] + [_MISSING])
            return found[code]
        numbers: NDArray[Any]
        if self.of_dates:
            numbers, missing = local_microseconds(part[column])
        else:
            numbers = to_float(part, [column])[:, 0]
            missing = np.isnan(numbers)
        zone = zone_of(part[column].dtype) if self.of_dates else None
        edges = np.array([_comparable_edge(each, zone) for each in self.bins])
        bin_of = np.searchsorted(edges, numbers, side="right") - 1
        bin_of[numbers == edges[-1]] = len(edges) - 2
        outside = (bin_of < 0) | (bin_of > len(edges) - 2)
        label = np.array([place[each] for each in self.labels])
        found = np.where(outside, _UNKNOWN, label[np.where(outside, 0, bin_of)])
        return np.where(missing, _MISSING, found)


@dataclass(frozen=True)
class Recoding(Change):
    """Replaces values by coarser ones."""

    spec: Recode

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns that are recoded."""
        return self.spec.columns

    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the coarser values of a partition."""
        return {column: self._recoded(part, column) for column in self.columns}

    def _recoded(self, part: pd.DataFrame, column: Hashable) -> Any:
        spec, before = self.spec, part[column]
        if spec.targets is None:
            return _bounded(one_form(before), spec.bottom, spec.top)
        codes = spec.codes(part, column)
        unknown = int((codes == _UNKNOWN).sum())
        if unknown:
            raise SdcValueError(f"column {column!r} has {spec._outside(unknown)}")
        return coded_values(codes, spec.targets, spec.dtype_of(column, before.dtype))

    @property
    def allowed(self) -> dict[Hashable, Allowed]:
        """The coarser values, or those between the bounds."""
        spec = self.spec
        rule = Within(spec.bottom, spec.top) if spec.targets is None else OneOf(spec.targets)
        return dict.fromkeys(self.columns, rule)


@dataclass(frozen=True)
class Within(Allowed):
    """Numbers or dates between bounds."""

    bottom: float | str | None
    top: float | str | None

    def count_others(self, values: pd.Series) -> int:
        """Count cells that hold something else."""
        present = values.dropna()
        outside = np.zeros(len(present), np.bool_)
        for far, _ in _beyond(present, self.bottom, self.top):
            outside |= far
        return int(outside.sum())


def _bounded(before: pd.Series, bottom: float | str | None, top: float | str | None) -> Any:
    """Return numbers or dates that are moved to bounds; their dtype stays."""
    array = before.array.copy()
    for far, bound in _beyond(before, bottom, top):
        if far.any():
            array[far] = bound
    return array


def _beyond(
    values: pd.Series, bottom: float | str | None, top: float | str | None
) -> Iterator[tuple[NDArray[np.bool_], Any]]:
    """Yield for each bound which numbers or dates are beyond it, and what it is as one of them."""
    whole = pd.api.types.is_integer_dtype(values.dtype)
    for end, sign in ((bottom, -1), (top, 1)):
        if end is None:
            continue
        if isinstance(end, str):
            times, missing = local_microseconds(values)
            far = (sign * times > sign * microseconds(end, zone_of(values.dtype))) & ~missing
            yield far, date_as(end, values.dtype)[0]
        else:
            bound = int(end) if whole else end
            beyond = values.gt(bound) if sign > 0 else values.lt(bound)
            yield beyond.fillna(False).to_numpy(bool), bound


def _holds(dtype: Any, date: str) -> bool:
    """Whether a dtype can hold a date as it is."""
    try:
        shown, _ = local_microseconds(date_as(date, dtype))
    except (ValueError, OverflowError, pa.ArrowInvalid):
        return False  # a date that it cannot hold, or a time in a column of days
    return bool(shown[0] == microseconds(date, zone_of(dtype)))


def _comparable_edge(edge: float | str, zone: Any = None) -> float | int:
    """Return an edge as what values are compared with."""
    return microseconds(edge, zone) if isinstance(edge, str) else edge


def _as_held(fine: Any, dtype: Any) -> Any:
    """Return a value that is mapped as :func:`_factorized` has it of a column."""
    date = arguments.date(fine, "mapping") if is_date(dtype) else None
    if date is None:
        return fine
    if has_zone(date) and not has_zone(dtype):
        raise SdcTypeError(
            f"mapping holds times with a zone, and a column has dtype {dtype}, without one: name "
            "local times."
        )
    return local_text(date, zone_of(dtype))


def _shown(edge: float | str) -> str:
    return edge if isinstance(edge, str) else f"{edge:g}"


def _count_unknown(part: pd.DataFrame, _number: int, spec: Recode) -> NDArray[np.int64]:
    return np.array([(spec.codes(part, each) == _UNKNOWN).sum() for each in spec.columns])


def _add(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(parts, axis=0)


def _factorized(column: pd.Series) -> tuple[NDArray[np.int64], list[Any]]:
    """Return numbers of different values, -1 for a missing cell, and these values."""
    try:
        codes, different = pd.factorize(comparable(column))
        if is_date(column.dtype):
            return codes, date_texts(pd.Series(different))
    except (TypeError, NotImplementedError):
        # The original text may show a value.
        raise SdcTypeError(
            f"column {column.name!r} holds values that cannot be compared, such as lists: leave it "
            "out."
        ) from None
    return codes, different.tolist()


# What users pass


def _edges(bins: Any) -> tuple[float | str, ...]:
    if isinstance(bins, str) or not isinstance(bins, (list, tuple, np.ndarray, pd.Index)):
        raise SdcTypeError(
            f"bins must be a list of edges, such as [0, 18, 65, 120], received "
            f"{type(bins).__name__}."
        )
    read = [float(each) if each in ("inf", "-inf") else _end(each, "bins") for each in bins]
    edges = tuple(read)
    if len(_kinds_of(edges)) > 1:
        raise SdcTypeError(
            "bins holds numbers and dates, or dates with a zone and without: name edges of one "
            "kind."
        )
    places = [_comparable_edge(each) for each in edges]
    if len(edges) < 2 or any(b <= a for a, b in itertools.pairwise(places)):
        raise SdcValueError(
            f"bins must be two edges or more that ascend, received {len(edges)}"
            f"{' that do not' if len(edges) > 1 else ''}: a range ends where the next begins, so "
            "that there are no gaps."
        )
    return edges


def _labels(labels: Any, edges: tuple[float | str, ...]) -> tuple[Any, ...]:
    if labels is None:
        ends = [_edge(each) for each in edges]
        closing = [")"] * (len(edges) - 2) + [")" if edges[-1] == math.inf else "]"]
        return tuple(
            f"[{a}, {b}{close}"
            for (a, b), close in zip(itertools.pairwise(ends), closing, strict=True)
        )
    if isinstance(labels, str) or not isinstance(labels, (list, tuple, np.ndarray, pd.Index)):
        raise SdcTypeError(
            f"labels must be a list, such as ['child', 'adult'], received {type(labels).__name__}."
        )
    found = tuple(arguments.plain_value(each, "labels") for each in labels)
    if len(found) != len(edges) - 1:
        raise SdcValueError(
            f"labels must be one fewer than the edges of bins, received {len(found)} for "
            f"{len(edges)} edges."
        )
    _kind(found)
    return found


def _kinds_of(edges: Iterable[float | str]) -> set[str]:
    """Return what finite edges are: one kind of them compares."""
    return {
        "number" if not isinstance(each, str) else "time" if has_zone(each) else "date"
        for each in edges
        if isinstance(each, str) or math.isfinite(each)
    }


def _end(value: Any, name: str) -> float | str:
    """Return an edge or a bound: a number, or a date as a text."""
    date = arguments.date(value, name)
    return arguments.number(value, name, -math.inf, infinite=True) if date is None else date


def _edge(edge: float | str) -> str:
    if isinstance(edge, str):
        return edge
    is_whole = edge.is_integer() and abs(edge) < 1e15
    return str(int(edge)) if is_whole else repr(edge)


def _pairs(mapping: Any) -> tuple[tuple[Any, Any], ...]:
    if isinstance(mapping, pd.DataFrame):
        if mapping.shape[1] != 2:
            raise SdcValueError(
                "mapping as a table has two columns, of values and of coarser ones, received "
                f"{mapping.shape[1]}: choose two, such as table[['town', 'region']]."
            )
        # A table of several levels says the same of a value again where a finer one differs.
        mapping = list(mapping.drop_duplicates().itertuples(index=False, name=None))
    if isinstance(mapping, pd.Series):
        mapping = mapping.to_dict()
    listed = list(mapping.items()) if isinstance(mapping, Mapping) else mapping
    if not isinstance(listed, (list, tuple)) or not all(
        isinstance(each, (list, tuple)) and len(each) == 2 for each in listed
    ):
        raise SdcTypeError(
            "mapping must be a dict of coarser values, such as {'Bonn': 'west'}, a table of two "
            f"columns, or a list of pairs, received {type(mapping).__name__}."
        )
    pairs = tuple(
        (_fine(fine), arguments.plain_value(coarse, "mapping")) for fine, coarse in listed
    )
    if len({fine for fine, _ in pairs}) < len(pairs):
        raise SdcValueError("mapping has a value twice: name the coarser value of each once.")
    if not pairs:
        raise SdcValueError("mapping is empty: name the coarser value of each value.")
    _kind([coarse for _, coarse in pairs])
    return pairs


def _fine(value: Any) -> Any:
    """Return a value that is mapped: a text, which may stand for a date, or a number."""
    date = None if isinstance(value, str) else arguments.date(value, "mapping")
    return arguments.plain_value(value, "mapping") if date is None else date


def _others(value: Any, pairs: Sequence[tuple[Any, Any]]) -> Any:
    """Return the coarser value of all others, of the kind of those that are named."""
    if value is None:
        return None
    # Options of values are lists on the command line.
    (given,) = value if isinstance(value, (list, tuple)) and len(value) == 1 else (value,)
    found = arguments.plain_value(given, "others")
    _kind([*(coarse for _, coarse in pairs), found])
    return found


def _kind(targets: Sequence[Any]) -> type:
    """Return the kind of values, which is one: texts, whole numbers or numbers."""
    kinds = {type(each) for each in targets}
    if kinds <= {int, float}:
        return int if kinds == {int} else float
    if kinds == {str}:
        return str
    raise SdcTypeError(
        "the coarser values must be all texts or all numbers, received "
        f"{', '.join(sorted(kind.__name__ for kind in kinds))}."
    )


def _arrow_type(kind: type, before: pa.DataType) -> pa.DataType:
    plain = {str: pa.string(), int: pa.int64(), float: pa.float64()}[kind]
    if pa.types.is_dictionary(before):
        return pa.dictionary(before.index_type, plain, before.ordered)
    is_large = pa.types.is_large_string(before) and kind is str
    return before if is_large else plain


def _ends(ends: dict[str, Any]) -> dict[str, float | str]:
    found = {name: _end(end, name) for name, end in ends.items() if end is not None}
    if len(_kinds_of(found.values())) > 1:
        raise SdcTypeError(
            "top and bottom must be both numbers or both dates, with a zone or without."
        )
    places = {name: _comparable_edge(end) for name, end in found.items()}
    if any(math.isinf(place) for place in places.values()):
        raise SdcValueError("top and bottom must be finite: leave out the one without a bound.")
    if len(places) == 2 and places["bottom"] >= places["top"]:
        raise SdcValueError(
            f"bottom must be below top, received {_shown(found['bottom'])} and "
            f"{_shown(found['top'])}."
        )
    return found
