"""Columns of every kind side by side.

Numbers, dates and ordered categories are numbers, all else are words that are equal or not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.classes import cell_words
from sdc_dask.engine.columns import is_numeric, is_time, missing_cells, one_form, to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.sort_keys import sort_keys
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.classes import count_keys, find_keys, record_keys
from sdc_dask.kernels.gower import ANY_NUMBER, ANY_WORD

NUMBER, DATE, ORDERED, NOMINAL = "number", "date", "ordered", "nominal"

# What lies outside of a column that is constant is as far as can be.
_FAR = 2.0


@dataclass(frozen=True)
class Reading:
    """How values of columns are read, where that is not what their dtypes say.

    Attributes
    ----------
    orders : mapping
        All values from the lowest to the highest, by column.
    nominal : collection
        Columns whose values are equal or different.
    open : collection
        Columns in which a missing masked cell may have been any value.
    """

    orders: Mapping[Hashable, tuple[Any, ...]] = field(default_factory=dict)
    nominal: Collection[Hashable] = ()
    open: Collection[Hashable] = ()

    def beside(self, other: Reading) -> Reading:
        """Return what this says and another, this one first."""
        return Reading(
            {**other.orders, **self.orders},
            (*self.nominal, *(name for name in other.nominal if name not in self.orders)),
            (*self.open, *other.open),
        )

    def concerns(self, names: Iterable[Hashable]) -> bool:
        """Whether it says anything of some columns."""
        said = {*self.orders, *self.nominal, *self.open}
        return any(name in said for name in names)


PLAIN = Reading()


class MixedColumn(NamedTuple):
    """A column of two frames, and how its values are compared."""

    name: Hashable
    kind: str
    dtype: Any  # of the original
    order: tuple[Any, ...] = ()  # all values of an ordered one
    words_of: Callable[[pd.Series], pd.Series] | None = None  # if dtypes differ, and values may not
    open: bool = False  # whether a missing masked cell may have been any value

    def numbers(self, part: pd.DataFrame) -> NDArray[np.float64]:
        """Return values that have an order as numbers, NaN where they are missing."""
        if self.kind == NUMBER:
            return to_float(part, [self.name])[:, 0]
        column = part[self.name]
        if self.kind == ORDERED:
            return _ranks(column, self.order)
        missing = missing_cells(column)
        found = np.full(len(part), np.nan)
        found[~missing] = sort_keys(column[~missing], self.dtype)
        return found

    def words(self, part: pd.DataFrame) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
        """Return two words for each cell, equal for equal cells."""
        column = part[self.name]
        return cell_words(column if self.words_of is None else self.words_of(column))


def mixed_columns(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    names: Sequence[Hashable],
    reading: Reading = PLAIN,
) -> list[MixedColumn]:
    """Say how columns of two frames are compared, by their dtypes and what is said of them.

    Values are compared by their order if both frames have one and the same, else as categories.
    Masked categories may be fewer than those of the original.
    """
    found = []
    for name in names:
        old, new = original[name].dtype, masked[name].dtype
        kind, order = _kind(old), reading.orders.get(name, ())
        if name in reading.nominal:
            kind = NOMINAL
        elif order:
            kind = ORDERED
        elif kind == ORDERED and _is_part(new, old):
            order = tuple(old.categories)
        elif kind == NUMBER:
            kind = kind if is_numeric(new) else NOMINAL
        elif old != new and not (kind == DATE and _unit_apart(old, new)):
            kind = NOMINAL
        words_of = _comparable_words(old, new) if kind == NOMINAL else None
        found.append(MixedColumn(name, kind, old, order, words_of, name in reading.open))
    return found


def _comparable_words(old: Any, new: Any) -> Callable[[pd.Series], pd.Series] | None:
    """Return what makes equal values of two dtypes equal words."""
    if is_numeric(old) and is_numeric(new):
        whole = [pd.api.types.is_integer_dtype(each) for each in (old, new)]
        return None if all(whole) else _as_floats
    return None if old == new else _as_objects


def _as_floats(column: pd.Series) -> pd.Series:
    return one_form(column.astype("Float64"))


def _as_objects(column: pd.Series) -> pd.Series:
    return column.astype(object)


def _ranks(column: pd.Series, order: tuple[Any, ...]) -> NDArray[np.float64]:
    """Return the places of values in their order, NaN where they are missing."""
    codes, values = pd.factorize(column)
    place = pd.Index(order, dtype=object).get_indexer(pd.Index(values).astype(object))
    # An entry more, for cells that are missing, whose code is -1.
    ranks = np.append(place, -1)[codes]
    missing = missing_cells(column)
    unknown = int(((ranks < 0) & ~missing).sum())
    if unknown:
        raise SdcValueError(
            f"column {column.name!r} has {unknown} cells with values that its order does not "
            "name: name all of them in orders=, from the lowest to the highest. (Of categories of "
            "a Dask frame, make them known first, with df.categorize().)"
        )
    return np.where(missing, np.nan, ranks)


def _kind(dtype: Any) -> str:
    if is_numeric(dtype):
        return NUMBER
    if is_time(dtype):
        return DATE
    ordered = isinstance(dtype, pd.CategoricalDtype) and dtype.ordered
    return ORDERED if ordered else NOMINAL


def _is_part(some: Any, of: pd.CategoricalDtype) -> bool:
    """Whether a dtype has ordered categories, all or some of those of another in their order."""
    if not isinstance(some, pd.CategoricalDtype) or not some.ordered:
        return False
    place = of.categories.get_indexer(some.categories)
    return bool((place >= 0).all() and (np.diff(place) > 0).all())


def _unit_apart(old: Any, new: Any) -> bool:
    """Whether dtypes of times differ in their unit at most."""
    both = isinstance(old, np.dtype) and isinstance(new, np.dtype)
    return both and old.kind == new.kind


class Extent(NamedTuple):
    """Rows by partition, and the ends of columns that have an order."""

    rows: tuple[int, ...]
    infinite: NDArray[np.int64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    present: NDArray[np.int64]


@dataclass(frozen=True)
class Scale:
    """Columns, and how those that have an order are scaled: the original's range is 1."""

    columns: tuple[MixedColumn, ...]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @property
    def in_order(self) -> list[MixedColumn]:
        """The columns whose values have an order."""
        return [each for each in self.columns if each.kind != NOMINAL]

    @property
    def nominal(self) -> list[MixedColumn]:
        """The columns of categories."""
        return [each for each in self.columns if each.kind == NOMINAL]

    def points(self, part: pd.DataFrame, *, released: bool = False) -> Points:
        """Return the records of a partition; what may have been any value in a released one."""
        numbers = np.empty((len(part), len(self.low)))
        for j, column in enumerate(self.in_order):
            values, low, high = column.numbers(part), self.low[j], self.high[j]
            _refuse_infinite(column.name, int(np.isinf(values).sum()))
            # By halves: the range of float64 is twice its largest number.
            if high > low:
                numbers[:, j] = (values / 2 - low / 2) / (high / 2 - low / 2)
            else:
                away = np.where(values == low, 0.0, _FAR)
                numbers[:, j] = np.where(np.isnan(values), np.nan, away)
            if released and column.open:
                numbers[np.isnan(values), j] = ANY_NUMBER
        words = np.empty((2, len(part), len(self.nominal)), np.uint64)
        for j, column in enumerate(self.nominal):
            words[0, :, j], words[1, :, j] = column.words(part)
            if released and column.open:
                words[:, missing_cells(part[column.name]), j] = ANY_WORD
        return Points(numbers, words[0], words[1])


class Points(NamedTuple):
    """Records: scaled numbers, and two words for each category."""

    numbers: NDArray[np.float64]
    first: NDArray[np.uint64]
    second: NDArray[np.uint64]

    def distinct(self) -> tuple[Points, NDArray[np.int64]]:
        """Return the different records, and how many there are of each."""
        # One NaN, one zero: what is at no distance is equal.
        bits = np.where(np.isnan(self.numbers), np.nan, self.numbers + 0.0).view(np.uint64)
        keys = record_keys(
            [
                *((column, column) for column in bits.T),
                *zip(self.first.T, self.second.T, strict=True),
            ]
        )
        classes = count_keys(*keys)
        rows = np.empty(len(classes.first), np.int64)
        rows[find_keys(classes.first, classes.second, *keys)] = np.arange(len(self.numbers))
        return Points(self.numbers[rows], self.first[rows], self.second[rows]), classes.counts


def extent_of(frame: Frame, columns: Sequence[MixedColumn]) -> Extent:
    """Scan the columns of the original that have an order, in one pass."""
    in_order = [each for each in columns if each.kind != NOMINAL]
    extent = map_reduce(frame[[each.name for each in columns]], _scan, _merge, in_order)
    for column, infinite in zip(in_order, extent.infinite, strict=True):
        _refuse_infinite(column.name, int(infinite))
    if sum(extent.rows) == 0:
        raise SdcValueError("the frames have no records: there is nothing to compare.")
    return extent


def _refuse_infinite(name: Hashable, number: int) -> None:
    if number:
        raise SdcValueError(
            f"column {name!r} has {number} infinite values: their distance is not a number. Name "
            "other columns, or replace them in both frames."
        )


def scale_of(columns: Sequence[MixedColumn], extent: Extent) -> Scale:
    """Scale columns by their range in the original; ordered categories by all that there are."""
    low, high = extent.low.copy(), extent.high.copy()
    for j, column in enumerate(each for each in columns if each.kind != NOMINAL):
        if column.kind == ORDERED:
            low[j], high[j] = 0, len(column.order) - 1
    return Scale(tuple(columns), low, high)


def _scan(part: pd.DataFrame, _number: int, columns: list[MixedColumn]) -> Extent:
    values = [column.numbers(part) for column in columns]
    present = [each[~np.isnan(each)] for each in values]
    return Extent(
        (len(part),),
        np.array([np.isinf(each).sum() for each in present], np.int64),
        # A zero has no sign: bounds do not depend on which came first.
        np.array([each.min(initial=np.inf) + 0.0 for each in present]),
        np.array([each.max(initial=-np.inf) + 0.0 for each in present]),
        np.array([len(each) for each in present], np.int64),
    )


def _merge(parts: list[Extent]) -> Extent:
    rows, infinite, low, high, present = zip(*parts, strict=True)
    return Extent(
        tuple(each for part in rows for each in part),
        np.sum(infinite, axis=0),
        np.min(low, axis=0),
        np.max(high, axis=0),
        np.sum(present, axis=0),
    )
