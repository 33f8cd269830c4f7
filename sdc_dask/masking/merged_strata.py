"""Strata with fewer than k records join the nearest ones, and get their values of `by`.

How far strata are apart is what microaggregation takes records to be apart (`mixed.py`): the means
of numbers, dates and ranks differ in units of their deviations, and most frequent categories are
equal or one apart. The values of `by` are compared in the same way, each as a column of its kind.

All of it comes from counts and sums by stratum. Sums are of whole numbers, so that they are the
same for every partitioning.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.codecs import (
    DATE,
    NUMBER,
    ORDINAL,
    Asked,
    Coding,
    orders_of,
    taken_values,
)
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.combinations import MOST, Combinations
from sdc_dask.engine.dates import ticks_of
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.in_place import Allowed, Change, OneOf, Rows
from sdc_dask.engine.scan import Scan
from sdc_dask.engine.strata import Strata
from sdc_dask.engine.units import missing_units, smallest_codes, unit_codes
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.merging import Sites, merge_small
from sdc_dask.masking.mixed import NominalColumns, mixed_coordinates, nominal_columns

# Coordinates are rounded to this share of a deviation before they are added up. Those of a column
# have absolute values of 1 on average at most, and billions of them fit into 64 bits.
_UNITS = 2.0**20


@dataclass(frozen=True)
class MergedStrata(Change):
    """Gives records of small strata the values of those that they join."""

    combinations: Combinations
    leader: NDArray[np.int64]  # by stratum: the one whose place it takes
    orders: Mapping[Hashable, tuple[Any, ...]]  # of columns of ordered categories
    coding: Coding  # of columns whose missing cells tell strata apart

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The columns of `by`."""
        return self.combinations.columns

    @cached_property
    def cells(self) -> dict[Hashable, int]:
        """How many cells get another value, by column."""
        codes = self.combinations.codes()
        differ = codes != codes[self.leader]
        changed = (self.combinations.counts[:, None] * differ).sum(axis=0)
        return dict(zip(self.columns, changed.tolist(), strict=True))

    @property
    def notes(self) -> tuple[str, ...]:
        """How many strata were merged, and how many cells changed."""
        merged = int((self.leader != np.arange(len(self.leader))).sum())
        by = ", ".join(f"{column} {cells:,}" for column, cells in self.cells.items())
        return (f"strata   {merged:,} of {len(self.leader):,} joined others; cells changed: {by}",)

    @property
    def allowed(self) -> dict[Hashable, Allowed]:
        """Values of strata that are left, and no others."""
        return {
            column: OneOf(self._left(column).dropna().unique().tolist()) for column in self.columns
        }

    def strata(self) -> Strata:
        """Return the strata that are left."""
        found = self.combinations.strata
        kept, place = np.unique(self.leader, return_inverse=True)
        counts = np.bincount(place, weights=found.counts).astype(np.int64)
        return Strata(found.rule, found.table.iloc[kept].reset_index(drop=True), counts)

    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the values of the strata that the records of a partition are in afterwards."""
        at = self.leader[self.combinations.numbers(self.coding.encode(part), number)]
        return {
            column: taken_values(
                self._left(column), at, part[column].dtype, self.orders.get(column)
            )
            for column in self.columns
        }

    def _left(self, column: Hashable) -> pd.Series:
        """Return the value that each stratum has afterwards."""
        return self.combinations.values(column).take(self.leader).reset_index(drop=True)


def merge_strata(
    frame: Frame,
    coded: Frame,
    scanned: Scan,
    strata: Strata,
    columns: Sequence[Hashable],
    coding: Coding,
    asked: Mapping[Hashable, Asked],
    importance: Mapping[Hashable, float],
    k: int,
    unit: Hashable | None = None,
) -> MergedStrata:
    """Decide which strata join which: one pass over the data, if there may be small ones.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    coded : pandas or Dask DataFrame
        The same, with numbers in the columns that are masked.
    scanned : Scan
        Of the coded frame.
    strata : Strata
        As they were counted.
    columns : sequence
        All that are masked.
    coding : Coding
        How the coded frame was made.
    asked : mapping
        What the columns of `by` are taken for.
    importance : mapping
        By column.
    k : int
        Records, or units, that a stratum has at least.
    unit : column, optional
    """
    by = strata.rule.by
    orders = orders_of(frame, by)
    leader = np.arange(len(strata))
    if unit is not None or (strata.counts < k).any():
        coordinates = mixed_coordinates(scanned, coding, columns, importance, standardize=True)
        nominal = nominal_columns(coding, columns, importance)
        args = (strata, list(columns), coordinates, nominal, unit, k)
        used = [*columns, *by, *([] if unit is None else [unit])]
        found = map_reduce(coded[list(dict.fromkeys(used))], _look, _Merge(k), *args)
        if found.missing:
            assert unit is not None
            raise missing_units(unit, found.missing)
        given = [name for name in by if asked[name].order is not None]
        ranks = orders | orders_of(frame, given, asked)
        sites = _sites(found, strata, nominal, asked, importance, ranks)
        units = found.units(len(strata)) if unit is not None else None
        kind = _kinds(strata)
        leader = merge_small(sites, strata.counts, kind, k, units)
        _check(strata, leader, kind, k, units)
    rows = Rows(scanned.rows)
    return MergedStrata(
        Combinations(by, strata, rows), leader, orders, coding.of(strata.rule.pattern_of)
    )


@dataclass(frozen=True)
class _Seen:
    """What a pass finds of strata."""

    sums: NDArray[np.int64]  # of coordinates in small units, by stratum
    pairs: tuple[NDArray[np.int64], ...]  # by nominal column: stratum, category, records
    missing: int  # units
    stratum: NDArray[np.int64]  # of some units: k different ones of each, or all
    code: NDArray[np.float64]

    def units(self, strata: int) -> list[frozenset[float]]:
        """Return some units of each stratum."""
        found: list[set[float]] = [set() for _ in range(strata)]
        for stratum, code in zip(self.stratum.tolist(), self.code.tolist(), strict=True):
            found[stratum].add(code)
        return [frozenset(each) for each in found]


def _look(
    part: pd.DataFrame,
    _number: int,
    strata: Strata,
    columns: list[Hashable],
    coordinates: Coordinates,
    nominal: NominalColumns,
    unit: Hashable | None,
    k: int,
) -> _Seen:
    stratum = strata.of(part)
    values = to_float(part, columns)
    points = coordinates.points(values)
    sums = np.zeros((len(strata), len(columns)), np.int64)
    np.add.at(sums, stratum, np.rint(points * _UNITS).astype(np.int64))
    pairs = tuple(
        _counted(np.stack([stratum, np.nan_to_num(values[:, j]), np.ones(len(part))]))
        for j in nominal.places
    )
    none = np.empty(0, np.int64), np.empty(0)
    if unit is None:
        return _Seen(sums, pairs, 0, *none)
    missing = int(part[unit].isna().sum())
    return _Seen(sums, pairs, missing, *smallest_codes(stratum, unit_codes(part[unit]), k))


@dataclass(frozen=True)
class _Merge:
    k: int

    def __call__(self, parts: Sequence[_Seen]) -> _Seen:
        stratum = np.concatenate([part.stratum for part in parts])
        code = np.concatenate([part.code for part in parts])
        return _Seen(
            np.sum([part.sums for part in parts], axis=0),
            tuple(
                _counted(np.concatenate(each, axis=1))
                for each in zip(*(part.pairs for part in parts), strict=True)
            ),
            sum(part.missing for part in parts),
            *smallest_codes(stratum, code, self.k),
        )


def _counted(pairs: NDArray[Any]) -> NDArray[np.int64]:
    """Add up records by stratum and category."""
    stratum, category, records = pairs.astype(np.int64)
    width = int(category.max(initial=0)) + 1
    found, place = np.unique(stratum * width + category, return_inverse=True)
    if len(found) > MOST:
        raise SdcValueError(
            f"strata and a nominal column have more than {MOST:,} different combinations of "
            "values, which is more than is held at once: recode the column first, or name fewer "
            "columns in by=."
        )
    total = np.bincount(place, weights=records, minlength=len(found)).astype(np.int64)
    return np.stack([found // width, found % width, total])


def _sites(
    found: _Seen,
    strata: Strata,
    nominal: NominalColumns,
    asked: Mapping[Hashable, Asked],
    importance: Mapping[Hashable, float],
    orders: Mapping[Hashable, tuple[Any, ...]],
) -> Sites:
    """Return where strata are, by their means, most frequent categories and values of `by`."""
    means = np.delete(found.sums, nominal.places, axis=1) / _UNITS / strata.counts[:, None]
    codes = [_most_frequent(pairs, len(strata)) for pairs in found.pairs]
    weights, places, spans = list(nominal.weights), [], []
    for i, column in enumerate(strata.rule.by):
        values, weight = strata.table[f"by{i}"], importance.get(column, 1.0)
        numbers = _numbers(values, asked[column].kind, orders.get(column))
        if numbers is None:
            codes.append(pd.factorize(values)[0].astype(np.int64))
            weights.append(weight)
        else:
            places.append(np.sqrt(weight) * _standardized(numbers, strata.counts))
            spans.append(weight)
    n = len(strata)
    return Sites(
        means,
        np.stack(places, axis=1) if places else np.empty((n, 0)),
        np.array(spans, np.float64),
        np.stack(codes, axis=1) if codes else np.empty((n, 0), np.int64),
        np.array(weights, np.float64),
    )


def _most_frequent(pairs: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Return the category that most records of each stratum have, of equals the first."""
    stratum, category, records = pairs
    order = np.lexsort((category, -records, stratum))
    first = order[np.flatnonzero(np.diff(stratum[order], prepend=-1))]
    found = np.zeros(n, np.int64)
    found[stratum[first]] = category[first]
    return found


def _numbers(
    values: pd.Series, kind: str, order: tuple[Any, ...] | None
) -> NDArray[np.float64] | None:
    """Return values as numbers whose differences count, NaN if missing; None if they have none."""
    if kind == ORDINAL:
        assert order is not None
        rank = pd.Index(order, dtype=object).get_indexer(values.astype(object))
        return np.where(rank < 0, np.nan, rank)
    if values.dtype == object:  # of partitions that do not agree on a dtype
        return None
    if kind == DATE:
        ticks, missing = ticks_of(values)
        return np.where(missing, np.nan, ticks.astype(np.float64))
    if kind == NUMBER:
        return to_float(values.to_frame("value"), ["value"])[:, 0]
    return None


def _standardized(values: NDArray[np.float64], counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return values in units of the deviation that they have over all records."""
    present = np.isfinite(values)
    values = np.where(present, values, np.nan)
    if not present.any():
        return values
    largest = np.abs(values[present]).max()
    scaled = values / largest if largest > 0 else values
    known, weight = scaled[present], counts[present]
    mean = np.average(known, weights=weight)
    deviation = np.sqrt(np.average((known - mean) ** 2, weights=weight))
    return (scaled - mean) / (deviation if deviation > 0 else 1.0)


def _kinds(strata: Strata) -> NDArray[np.int64]:
    """Return a number for each pattern of missing cells: those of different ones never join."""
    patterns = [name for name in strata.table.columns if str(name).startswith("missing")]
    if not patterns:
        return np.zeros(len(strata), np.int64)
    return strata.table.groupby(patterns, sort=False).ngroup().to_numpy(np.int64)


def _check(
    strata: Strata,
    leader: NDArray[np.int64],
    kind: NDArray[np.int64],
    k: int,
    units: Sequence[frozenset[float]] | None,
) -> None:
    """Raise ValueError if all strata of a kind together are too small."""
    counts, what = np.bincount(leader, weights=strata.counts), "records"
    if units is not None:
        what = "different units"
        together: dict[int, set[float]] = {}
        for each, known in zip(leader.tolist(), units, strict=True):
            together.setdefault(each, set()).update(known)
        counts = np.array([len(together.get(each, ())) for each in range(len(counts))])
    lacking = int((counts[np.unique(leader)] < k).sum())
    if lacking:
        raise SdcValueError(
            f"{lacking} of {int(kind.max()) + 1} patterns of missing cells (or the whole frame) "
            f"have fewer than k={k} {what}, whatever strata join. Fill missing cells, drop those "
            "records, or use a smaller k."
        )
