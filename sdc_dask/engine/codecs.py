"""Columns that are no plain numbers travel as codes: ranks, numbers of categories, times.

A codec is made of what a pass finds in a column. It turns cells into float64 when records depart,
and back into cells of the column's dtype when they come home. No code stands for a value that the
column does not have, or that its order does not name.
"""

from __future__ import annotations

import graphlib
import itertools
import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.columns import (
    LARGEST_EXACT,
    advice_for,
    coded_values,
    is_numeric,
    masked_array,
    masked_dtype,
    same_array,
)
from sdc_dask.engine.dates import (
    NANOSECONDS,
    day_begins,
    is_date,
    local_days,
    ticks_of,
    unit_of,
    zone_of,
)
from sdc_dask.engine.frames import (
    Frame,
    from_partitions,
    has_unknown_categories,
    map_partitions,
    map_reduce,
    meta_of,
)
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.errors import SdcRuntimeError, SdcTypeError, SdcValueError

NUMBER, WHOLE, DATE, ORDINAL, NOMINAL = "number", "whole number", "date", "ordinal", "nominal"

# More categories are no categories, and a codec holds all of them.
MOST_CATEGORIES = 100_000

# What times are rounded to: the first of these that all of them are multiples of.
_STEPS = [86_400 * 10**9, 3_600 * 10**9, 60 * 10**9, 10**9, 10**6, 10**3, 1]


@dataclass(frozen=True)
class Asked:
    """What a column is taken for."""

    kind: str
    order: tuple[Any, ...] | None = None  # of an ordinal column; None: that of its categories


def kinds_of(
    meta: pd.DataFrame,
    columns: Sequence[Hashable],
    orders: Mapping[Hashable, Sequence[Any]],
    nominal: Sequence[Hashable],
    *,
    keep_integers: bool = False,
) -> dict[Hashable, Asked]:
    """Return what columns are taken for, by their dtypes and by what is said of them.

    Raises
    ------
    TypeError
        If a column is nothing that has a distance.
    """
    found = {}
    for column in columns:
        dtype = meta[column].dtype
        if column in orders:
            _check_categories(column, dtype)
            found[column] = Asked(ORDINAL, tuple(orders[column]))
        elif column in nominal:
            _check_categories(column, dtype)
            found[column] = Asked(NOMINAL)
        else:
            kind = _kind(dtype)
            if kind is None:
                raise SdcTypeError(
                    f"column {column!r} has dtype {dtype}, which is neither a number, a date, a "
                    f"text, a boolean nor a category: {advice_for(dtype)}"
                )
            whole = keep_integers and kind == NUMBER and pd.api.types.is_integer_dtype(dtype)
            found[column] = Asked(WHOLE if whole else kind)
    return found


def _check_categories(column: Hashable, dtype: Any) -> None:
    if _kind(dtype) is None:
        raise SdcTypeError(
            f"column {column!r} has dtype {dtype}, whose values are no categories: "
            f"{advice_for(dtype)}"
        )


def has_kind(dtype: Any) -> bool:
    """Whether a dtype is one of those that have distances."""
    return _kind(dtype) is not None


def _kind(dtype: Any) -> str | None:
    """Return what a dtype holds, or None."""
    if is_numeric(dtype):
        return NUMBER
    if is_date(dtype):
        return DATE
    if isinstance(dtype, pd.CategoricalDtype):
        return ORDINAL if dtype.ordered else NOMINAL
    if isinstance(dtype, pd.ArrowDtype):
        arrow, is_ = dtype.pyarrow_dtype, pa.types
        if is_.is_dictionary(arrow):
            known = _kind(pd.ArrowDtype(arrow.value_type)) is not None
            return (ORDINAL if arrow.ordered else NOMINAL) if known else None
        is_text = is_.is_string(arrow) or is_.is_large_string(arrow)
        return NOMINAL if is_text or is_.is_boolean(arrow) else None
    if isinstance(dtype, pd.SparseDtype):
        return None
    is_text = isinstance(dtype, pd.StringDtype) or pd.api.types.is_object_dtype(dtype)
    return NOMINAL if is_text or pd.api.types.is_bool_dtype(dtype) else None


# Codecs


class Codec(ABC):
    """Turns the cells of one column into numbers and back."""

    kind: ClassVar[str]

    @abstractmethod
    def encode(self, column: pd.Series) -> pd.Series:
        """Return numbers, NaN for missing cells."""

    @abstractmethod
    def decode(self, codes: NDArray[np.float64], dtype: Any) -> Any:
        """Return an array of the column's dtype, missing where a code is NaN."""


@dataclass(frozen=True)
class Whole(Codec):
    """Integers that stay integers: they travel as numbers, and their means are rounded."""

    kind: ClassVar[str] = WHOLE

    def encode(self, column: pd.Series) -> pd.Series:
        """Return the column, which is numbers."""
        return column

    def decode(self, codes: NDArray[np.float64], dtype: Any) -> Any:
        """Return whole numbers."""
        return same_array(codes, dtype)


@dataclass(frozen=True)
class Dates(Codec):
    """Times as numbers of steps since the first: days, if all are whole days.

    Attributes
    ----------
    unit : str
        Of the column's ticks.
    step : int
        Ticks in a step.
    origin : int
        The first time, in steps.
    zone : tzinfo or str, optional
        Steps are days of this zone then, and all times are when these begin.
    """

    kind: ClassVar[str] = DATE
    unit: str
    step: int
    origin: int
    zone: Any = None

    def encode(self, column: pd.Series) -> pd.Series:
        """Return steps since the first time."""
        ticks, missing = ticks_of(column)
        same = unit_of(column.dtype) == self.unit
        if same and self.zone is not None:
            ticks, begins = local_days(np.where(missing, 0, ticks), self.unit, self.zone)
            ticks, same = ticks * self.step, bool((begins | missing).all())
        if not same or (ticks[~missing] % self.step).any():
            raise SdcRuntimeError(
                f"column {column.name!r} has times of another unit than when it was scanned. "
                f"{NOT_THE_SAME}"
            )
        steps = (ticks // self.step - self.origin).astype(np.float64)
        return pd.Series(np.where(missing, np.nan, steps), index=column.index)

    def decode(self, codes: NDArray[np.float64], dtype: Any) -> Any:
        """Return times."""
        missing = np.isnan(codes)
        steps = np.where(missing, 0, codes).astype(np.int64)
        ticks = (steps + self.origin) * self.step
        if self.zone is not None:
            ticks = day_begins(steps + self.origin, self.unit, self.zone)
        if isinstance(dtype, pd.ArrowDtype):
            arrow = dtype.pyarrow_dtype
            whole = pa.array(ticks, mask=missing)
            days = pa.types.is_date32(arrow)
            return pd.arrays.ArrowExtensionArray(
                (whole.cast(pa.int32()) if days else whole).cast(arrow)
            )
        times = ticks.view(f"M8[{self.unit}]").copy()
        times[missing] = np.datetime64("NaT")
        index = pd.DatetimeIndex(times)
        if isinstance(dtype, pd.DatetimeTZDtype):
            index = index.tz_localize("UTC").tz_convert(dtype.tz)
        return index.array


@dataclass(frozen=True, eq=False)
class Categories(Codec):
    """Values as numbers: positions among all that a column may have.

    Attributes
    ----------
    values : tuple
        In their order; without one, sorted.
    counts : ndarray of int64
        How many cells have each.
    """

    values: tuple[Any, ...]
    counts: NDArray[np.int64] = field(repr=False)

    @cached_property
    def _index(self) -> pd.Index:
        return pd.Index(self.values, dtype=object)

    @property
    def preference(self) -> NDArray[np.int64]:
        """The place of each value if the most frequent comes first, and of equals the first."""
        place = np.empty(len(self.values), np.int64)
        place[np.argsort(-self.counts, kind="stable")] = np.arange(len(self.values))
        return place

    def encode(self, column: pd.Series) -> pd.Series:
        """Return the positions of values."""
        codes, values = _factorize(column)
        # An entry more, for cells that are missing, whose code is -1.
        places = np.append(self._index.get_indexer(values).astype(np.float64), np.nan)
        found = places[codes]
        unknown = int((found < 0).sum())
        if unknown:
            raise SdcRuntimeError(
                f"{unknown} cells of column {column.name!r} have values that were not there when "
                f"it was scanned. {NOT_THE_SAME}"
            )
        return pd.Series(found, index=column.index)

    def decode(self, codes: NDArray[np.float64], dtype: Any) -> Any:
        """Return the values at positions."""
        missing = np.isnan(codes)
        used, places = np.unique(np.where(missing, 0, codes).astype(np.int64), return_inverse=True)
        values = [self.values[code] for code in used]
        places = np.where(missing, -1, places)
        if isinstance(dtype, pd.ArrowDtype):
            arrow = dtype.pyarrow_dtype
            if pa.types.is_dictionary(arrow) and arrow.ordered:
                # All of them say where each stands, in partitions that do not have them, too.
                values, places = list(self.values), np.where(missing, -1, codes).astype(np.int64)
            return _arrow_array(values, places, missing, arrow)
        if isinstance(dtype, pd.CategoricalDtype):
            dtype = self._with_all(dtype)
            table = np.append(pd.Index(dtype.categories).get_indexer(values), -1)
            return pd.Categorical.from_codes(table[places], dtype=dtype)
        if pd.api.types.is_object_dtype(dtype):
            table = np.empty(len(values) + 1, object)
            table[:-1] = values  # and None, which is missing
            return pd.Series(table[places], dtype=object)
        return pd.array(values, dtype=dtype).take(places, allow_fill=bool(missing.any()))

    def _with_all(self, dtype: pd.CategoricalDtype) -> pd.CategoricalDtype:
        """Return a dtype that has all categories of the column: a partition's may have a few."""
        known = pd.Index(dtype.categories)
        present = self._index[self.counts > 0]
        lacking = present[known.get_indexer(present) < 0]
        if not len(lacking):
            return dtype
        return pd.CategoricalDtype(
            self.values if dtype.ordered else known.append(lacking), dtype.ordered
        )


class Ordinals(Categories):
    """Values whose positions are ranks."""

    kind: ClassVar[str] = ORDINAL


class Nominals(Categories):
    """Values that are equal or different."""

    kind: ClassVar[str] = NOMINAL


def _arrow_array(
    values: list[Any], places: NDArray[np.int64], missing: NDArray[np.bool_], arrow: pa.DataType
) -> Any:
    """Return values at places."""
    indices = pa.array(places, mask=missing)
    if pa.types.is_dictionary(arrow):
        kept = pa.array(values, arrow.value_type)
        return pd.arrays.ArrowExtensionArray(
            pa.DictionaryArray.from_arrays(
                indices.cast(arrow.index_type), kept, ordered=arrow.ordered
            )
        )
    return pd.arrays.ArrowExtensionArray(pa.array(values, arrow).take(indices))


def taken_values(
    plain: pd.Series,
    number: NDArray[np.int64],
    dtype: Any,
    order: tuple[Any, ...] | None = None,
) -> pd.Series:
    """Return values by their numbers as a column of a dtype, without categories that none has.

    Parameters
    ----------
    plain : Series
        The values, whatever partition has them.
    number : ndarray of int64
        By record.
    dtype : dtype
        Of the column in a partition, which need not have all categories.
    order : tuple, optional
        All values from the lowest to the highest, if the column is ordered.
    """
    if isinstance(dtype, pd.CategoricalDtype):
        if has_unknown_categories(dtype):
            return pd.Series([], dtype=dtype)
        used = plain.dropna().unique()
        listed = list(order) if dtype.ordered and order is not None else list(dtype.categories)
        listed += [each for each in used if each not in set(listed)]
        some = set(used)
        kept = pd.CategoricalDtype([each for each in listed if each in some], dtype.ordered)
        return coded_values(kept.categories.get_indexer(plain)[number], [], kept)
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_dictionary(dtype.pyarrow_dtype):
        some = set(plain.dropna().unique())
        listed = [each for each in (plain.dropna().unique() if order is None else order)]
        kept_values = [each for each in listed if each in some]
        codes = pd.Index(kept_values, dtype=object).get_indexer(plain.astype(object))
        return coded_values(codes[number], kept_values, dtype)
    return plain.take(number).reset_index(drop=True).astype(dtype)


# All columns of a set


@dataclass(frozen=True, eq=False)
class Coding:
    """The codecs of columns; a column that has none is numbers, and becomes means."""

    codecs: Mapping[Hashable, Codec] = field(default_factory=dict)

    def of(self, columns: Sequence[Hashable]) -> Coding:
        """Return the coding of some of the columns."""
        return Coding({name: self.codecs[name] for name in columns if name in self.codecs})

    def kind(self, column: Hashable) -> str:
        """Return what a column is."""
        codec = self.codecs.get(column)
        return NUMBER if codec is None else codec.kind

    def encode(self, part: pd.DataFrame) -> pd.DataFrame:
        """Return a partition with numbers in the columns that have codecs."""
        if not self.codecs:
            return part
        coded = part.copy(deep=False)
        for column, codec in self.codecs.items():
            coded[column] = codec.encode(part[column])
        return coded

    def frame(self, frame: Frame) -> Frame:
        """Return a frame with numbers in the columns that have codecs: lazily for a Dask frame."""
        if not self.codecs:
            return frame
        parts = map_partitions([frame], _encode, self)
        return from_partitions(parts, self.encode(meta_of(frame)), frame)

    def dtype(self, column: Hashable, dtype: Any) -> Any:
        """Return the dtype that a column has when it is masked."""
        return dtype if column in self.codecs else masked_dtype(dtype)

    def array(self, column: Hashable, values: NDArray[np.float64], dtype: Any) -> Any:
        """Return what a column of a dtype becomes, from the numbers that came back."""
        codec = self.codecs.get(column)
        return (
            masked_array(values, masked_dtype(dtype))
            if codec is None
            else codec.decode(values, dtype)
        )


NUMBERS = Coding()


def _encode(part: pd.DataFrame, _number: int, coding: Coding) -> pd.DataFrame:
    return coding.encode(part)


# What a pass finds


@dataclass(frozen=True)
class _Values:
    """The categories of a column, and how many cells have each."""

    counts: Counter[Any]
    orders: frozenset[tuple[Any, ...]]  # of ordered categories

    def __add__(self, other: _Values) -> _Values:
        return _Values(self.counts + other.counts, self.orders | other.orders)

    @classmethod
    def of(cls, column: pd.Series) -> _Values:
        codes, values = _factorize(column)
        counted = np.bincount(codes[codes >= 0], minlength=len(values))
        # Some more than are allowed say that there are too many.
        used = np.flatnonzero(counted)[: MOST_CATEGORIES + 1]
        counts = Counter({values[at]: int(counted[at]) for at in used})
        return cls(counts, frozenset(_orders(column)))


@dataclass(frozen=True)
class _Times:
    """The first and the last time of a column, and what all of them are multiples of, in ticks."""

    units: frozenset[str]
    low: int
    high: int
    divisor: int
    days: bool = True  # whether all are when a day begins in the zone of the column

    def __add__(self, other: _Times) -> _Times:
        return _Times(
            self.units | other.units,
            min(self.low, other.low),
            max(self.high, other.high),
            math.gcd(self.divisor, other.divisor),
            self.days and other.days,
        )

    @classmethod
    def of(cls, column: pd.Series) -> _Times:
        ticks, missing = ticks_of(column)
        present = ticks[~missing]
        if not len(present):
            return cls(frozenset([unit_of(column.dtype)]), 2**63, -(2**63), 0)
        divisor = abs(int(np.gcd.reduce(present)))
        unit, zone = unit_of(column.dtype), zone_of(column.dtype)
        days = zone is not None and bool(local_days(present, unit, zone)[1].all())
        return cls(frozenset([unit]), int(present.min()), int(present.max()), divisor, days)


def coding_of(frame: Frame, asked: Mapping[Hashable, Asked]) -> Coding:
    """Look at the columns that are no plain numbers, and return their codecs.

    One pass over the data, if there are such columns.
    """
    codecs: dict[Hashable, Codec] = {
        column: Whole() for column, each in asked.items() if each.kind == WHOLE
    }
    wanted = {
        column: each for column, each in asked.items() if each.kind in (DATE, ORDINAL, NOMINAL)
    }
    if wanted:
        found = map_reduce(frame[list(wanted)], _look, _together, wanted)
        for column, each in wanted.items():
            seen = found[column]
            if each.kind == DATE:
                codecs[column] = _dates(column, seen, zone_of(meta_of(frame)[column].dtype))
            else:
                codecs[column] = _categories(column, each, seen)
    return Coding(codecs)


def orders_of(
    frame: Frame, columns: Sequence[Hashable], asked: Mapping[Hashable, Asked] | None = None
) -> dict[Hashable, tuple[Any, ...]]:
    """Return the values of ordered columns from the lowest to the highest.

    One pass over the data, if partitions know alone what categories there are.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        Of which some may be ordered.
    asked : mapping, optional
        What they are taken for: by default, what their dtypes say.
    """
    meta = meta_of(frame)
    found: dict[Hashable, tuple[Any, ...]] = {}
    unknown: dict[Hashable, Asked] = {}
    for column in columns:
        dtype = meta[column].dtype
        each = asked[column] if asked is not None else Asked(_kind(dtype) or NOMINAL)
        if each.kind != ORDINAL:
            continue
        known = isinstance(dtype, pd.CategoricalDtype) and not has_unknown_categories(dtype)
        if known and each.order is None:
            found[column] = tuple(dtype.categories)
        else:
            unknown[column] = each
    coding = coding_of(frame, unknown)
    for column in unknown:
        codec = coding.codecs[column]
        assert isinstance(codec, Categories)
        found[column] = codec.values
    return found


def _look(
    part: pd.DataFrame, _number: int, wanted: Mapping[Hashable, Asked]
) -> dict[Hashable, Any]:
    found: dict[Hashable, Any] = {}
    for column, each in wanted.items():
        cells = part[column]
        is_date = each.kind == DATE
        if _kind(cells.dtype) is None or (is_date and _kind(cells.dtype) != DATE):
            raise SdcTypeError(
                f"column {column!r} has dtype {cells.dtype} in some partitions, whatever the dtype "
                "of the frame says: cast it first."
            )
        found[column] = _Times.of(cells) if is_date else _Values.of(cells)
    return found


def _together(parts: list[dict[Hashable, Any]]) -> dict[Hashable, Any]:
    merged = dict(parts[0])
    for part in parts[1:]:
        for column, seen in part.items():
            merged[column] += seen
    return merged


def _dates(column: Hashable, seen: _Times, zone: Any) -> Dates:
    if len(seen.units) > 1:
        raise SdcTypeError(
            f"column {column!r} has times of different units in some partitions: "
            f"{', '.join(sorted(seen.units))}. Cast it to one dtype first."
        )
    (unit,) = seen.units
    ticks = [step // NANOSECONDS[unit] for step in _STEPS if step >= NANOSECONDS[unit]]
    step = next(step for step in ticks if seen.divisor % step == 0)
    if seen.low > seen.high:
        return Dates(unit, step, 0)  # which has no values, as the scan will say
    if zone is not None and seen.days:
        first = int(local_days(np.array([seen.low]), unit, zone)[0][0])
        return Dates(unit, ticks[0], first, zone)
    if (seen.high - seen.low) // step > LARGEST_EXACT:
        raise SdcValueError(
            f"column {column!r} has times to the nanosecond that lie too far apart for float64 to "
            "hold them exactly: round them to microseconds first, for instance with dt.floor('us')."
        )
    return Dates(unit, step, seen.low // step)


def _categories(column: Hashable, asked: Asked, seen: _Values) -> Categories:
    present = seen.counts
    if len(present) > MOST_CATEGORIES:
        raise SdcValueError(
            f"column {column!r} has more than {MOST_CATEGORIES:,} different values, too many to be "
            "categories: leave it out, for instance if it is an identifier, or recode it into "
            "fewer first."
        )
    if asked.kind == NOMINAL:
        values = _sorted(present)
        return Nominals(values, np.array([present[value] for value in values], np.int64))
    order = asked.order
    if order is None:
        order = _one_order(column, seen.orders)
    unknown = len(present.keys() - set(order))
    if unknown:
        held = sorted({type(value).__name__ for value in present})
        named = sorted({type(value).__name__ for value in order})
        raise SdcValueError(
            f"column {column!r} has {unknown} different values that its order does not name. The "
            f"order names {', '.join(named)}, the column holds {', '.join(held)}: name all values "
            "in orders=, from the lowest to the highest."
        )
    return Ordinals(order, np.array([present[value] for value in order], np.int64))


def _sorted(values: Iterable[Any]) -> tuple[Any, ...]:
    listed = list(values)
    try:
        return tuple(sorted(listed))
    except TypeError:  # categories of several types
        return tuple(sorted(listed, key=lambda value: (type(value).__name__, value)))


def _one_order(column: Hashable, orders: frozenset[tuple[Any, ...]]) -> tuple[Any, ...]:
    """Return the order of all categories, which partitions know all or some of."""
    after: graphlib.TopologicalSorter[Any] = graphlib.TopologicalSorter()
    follows = set()
    for values in orders:
        for position, value in enumerate(values):
            after.add(value, *values[max(0, position - 1) : position])
        follows |= set(itertools.pairwise(values))
    try:
        order = tuple(after.static_order())
    except graphlib.CycleError:
        order = ()  # the text of the error shows values
    # One order alone is in line with all: whatever comes next does so in some partition.
    if not order or not follows.issuperset(itertools.pairwise(order)):
        raise SdcValueError(
            f"column {column!r} has ordered categories that are not the same in all partitions, "
            f"and give no order of all: write all of them in each, or name it in "
            f"orders={{{column!r}: [...]}}, if the masking has that."
        )
    return order


# Cells


def _factorize(column: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.object_]]:
    """Return the number of each cell's value, -1 if it is missing, and the values."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype):
        return column.cat.codes.to_numpy(np.int64), dtype.categories.to_numpy(object)
    if isinstance(dtype, pd.ArrowDtype) and pa.types.is_dictionary(dtype.pyarrow_dtype):
        column = column.astype(pd.ArrowDtype(dtype.pyarrow_dtype.value_type))
    if pd.api.types.is_float_dtype(column.dtype):
        # A NaN that a nullable column does not count as missing is missing; zero has no sign.
        column = pd.Series(column.to_numpy(dtype="float64", na_value=np.nan) + 0.0)
    if pd.api.types.is_object_dtype(column.dtype):
        present = column.dropna()
        if not all(isinstance(value, str) for value in present):
            raise SdcTypeError(
                f"column {column.name!r} has dtype {dtype} and holds other values than texts: "
                "convert it to a dtype of its own, such as numbers, dates or string."
            )
    codes, values = pd.factorize(column)
    return codes.astype(np.int64), pd.Index(values).to_numpy(object)


def _orders(column: pd.Series) -> Iterable[tuple[Any, ...]]:
    """Return the ordered categories of a column, if it has any."""
    dtype = column.dtype
    if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
        yield tuple(dtype.categories)
    elif isinstance(dtype, pd.ArrowDtype) and pa.types.is_dictionary(dtype.pyarrow_dtype):
        found = pa.array(column.array)
        for chunk in found.chunks if isinstance(found, pa.ChunkedArray) else [found]:
            yield tuple(chunk.dictionary.to_pylist())
