"""Frequencies of categories before and after masking, as far as they may be shown.

A category is shown if no record or enough of them have it, before and after masking; all others are
one, which is enlarged until the same holds for it.
"""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sdc_dask.engine.frames import has_unknown_categories

MOST = 12  # categories of a picture

_MISSING = "(missing)"
_OTHERS = "(all others)"


@dataclass(frozen=True)
class Category:
    """How many records have a value before and after masking."""

    label: str
    before: int
    after: int


@dataclass(frozen=True)
class Categories:
    """What may be shown of the frequencies of one column.

    Attributes
    ----------
    rows : int
        Records.
    shown : tuple of Category
        In their order if they have one, otherwise the most frequent first. What is pooled and
        missing cells come last.
    renamed : bool
        Whether no value before masking occurs after it: then only the values after masking are in
        `shown`.
    """

    rows: int
    shown: tuple[Category, ...]
    renamed: bool


def categories_of(
    counts: Mapping[Any, tuple[int, int]], dtypes: Iterable[Any], least: int
) -> Categories | None:
    """Choose the categories that may be shown; None if these are less than half of the records.

    Parameters
    ----------
    counts : mapping
        Records before and after masking, by value; by None the missing cells.
    dtypes : iterable of dtypes
        Of the column: the first that gives its categories an order decides it.
    least : int
        How many records a category has at least.

    Examples
    --------
    >>> counts = {"cook": (20, 23), "nurse": (12, 11), "mayor": (1, 0), "judge": (2, 1)}
    >>> for each in categories_of(counts, [], least=3).shown:
    ...     print(each.label, each.before, each.after)
    cook 20 23
    (all others) 15 12
    """
    present = [value for value in counts if value is not None]
    both = [value for value in present if min(counts[value]) > 0]
    renamed = bool(present) and not both
    figures = {
        value: (0 if renamed else before, after) for value, (before, after) in counts.items()
    }
    ranked = sorted(figures, key=lambda value: (-max(figures[value]), str(value)))
    fit = [value for value in ranked if _enough(figures[value], least)]
    shown = fit[:MOST]
    rest = [value for value in ranked if value not in set(shown) and any(figures[value])]
    pool = _sum(figures[value] for value in rest)
    while rest and shown and not _enough(pool, least):
        last = shown.pop()
        pool = pool[0] + figures[last][0], pool[1] + figures[last][1]
    rows = sum(after for _, after in counts.values())
    # A few of many dates say nothing of a column, and each of them says something of few records.
    if not shown or max(pool) > rows / 2:
        return None
    named = _in_order([value for value in shown if value is not None], dtypes)
    found = [Category(_label(value), *figures[value]) for value in named]
    if rest:
        found.append(Category(_OTHERS, *pool))
    if None in shown:
        found.append(Category(_MISSING, *figures[None]))
    return Categories(rows, tuple(found), renamed)


def _label(value: Any) -> str:
    """Return a value as a text; a date without a time of day."""
    if isinstance(value, pd.Timestamp) and value == value.normalize():
        return str(value.date())
    return str(value)


def _enough(both: tuple[int, int], least: int) -> bool:
    return any(both) and all(count == 0 or count >= least for count in both)


def _sum(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    before = after = 0
    for one, other in pairs:
        before, after = before + one, after + other
    return before, after


def _in_order(values: list[Any], dtypes: Iterable[Any]) -> list[Any]:
    """Return values in the order that they have, if they have one."""
    for kinds in ((int, float), pd.Timestamp, datetime.date):
        if all(isinstance(value, kinds) for value in values):
            return sorted(values)
    for dtype in dtypes:
        if isinstance(dtype, pd.CategoricalDtype) and dtype.ordered:
            if has_unknown_categories(dtype):
                continue
            place = {value: number for number, value in enumerate(dtype.categories)}
            if all(value in place for value in values):
                return sorted(values, key=place.__getitem__)
    return values
