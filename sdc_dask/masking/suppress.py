"""Local suppression: cells of rare records become missing until every class has k records."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.columns import nullable_dtype, one_form, without_cells
from sdc_dask.engine.combinations import Combinations, count_combinations
from sdc_dask.engine.frames import Frame, has_unknown_categories, map_reduce, meta_of
from sdc_dask.engine.in_place import Change
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.errors import (
    FEWEST_ADVISED,
    SdcRuntimeError,
    SdcValueError,
    SuppressedAdvice,
    warn,
)
from sdc_dask.kernels.suppression import Suppressions, decide, decide_matching
from sdc_dask.masking.spec import Spec, needed, option

MISSING = ("value", "matches")

MOST_SUPPRESSED = 0.5  # of the cells of a column; more of them make it useless


@dataclass(frozen=True, repr=False)
class Suppress(Spec):
    """Suppress cells of key columns until every combination of their values has k records.

    Parameters
    ----------
    columns : list
        Key columns, the most important first: of cells that cost the same, those of later columns
        are suppressed. They are of any kind whose values can be compared.
    k : int
        Records of every combination of values, at least: 2 or more.
    costs : list of float or dict, optional
        Of one suppressed cell, by column; by default all cost the same, which is 1. In a dict,
        such as ``{"sex": 3}``, columns that are not named cost 1. A column that costs much is
        suppressed where nothing else helps.
    missing : {"value", "matches"}, default "value"
        What a missing cell is to whoever looks for a record. "value": a value of its own, so that
        k holds for everybody who groups the records. "matches": it may be any value, and a record
        is protected if k records, with their missing cells, may be it. That takes fewer
        suppressions, and promises less: classes of equal records may be smaller than k.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame({"sex": list("ffffmm"), "job": list("aaaaab")})
    >>> df.sdc.mask(sdc_dask.Suppress(["sex", "job"], k=2))["job"].isna().tolist()
    [False, False, False, False, True, True]
    """

    kind: ClassVar[str] = "suppress"
    in_place: ClassVar[bool] = True
    by: ClassVar[tuple[Hashable, ...]] = ()  # type: ignore[misc]

    columns: Any = needed("key columns, the most important first")
    k: int = needed("records of every combination of values, at least")
    _: KW_ONLY
    costs: Any = option(None, "of a suppressed cell, by column, such as 3,1,1")
    missing: str = option("value", "value, or matches: a missing cell may be any value")

    def __post_init__(self) -> None:
        columns = arguments.column_list(self.columns)
        kept: dict[str, Any] = {
            "columns": columns,
            "k": arguments.whole_number(self.k, "k", 2),
            "costs": _costs(self.costs, columns),
        }
        arguments.one_of(self.missing, "missing", MISSING)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The key columns."""
        return (self.columns,)

    @property
    def promise(self) -> int | None:
        """The k of classes of equal records, if a missing cell is a value of its own."""
        return self.k if self.missing == "value" else None

    @property
    def matches(self) -> int | None:
        """The number of records that each may be, if a missing cell may be any value."""
        return self.k if self.missing == "matches" else None

    @property
    def makes_values(self) -> bool:
        """Cells become missing, and no others."""
        return False

    @property
    def measures_numbers(self) -> bool:
        """Numbers that are suppressed are not near to what they were."""
        return False

    def describe(self) -> str:
        """Return a few words for people."""
        how = ", where a missing cell matches any value" if self.missing == "matches" else ""
        return f"local suppression, k = {self.k:,}{how}"

    def dtype_of(self, column: Hashable, dtype: Any) -> Any:
        """Return a dtype that has missing cells."""
        return nullable_dtype(dtype)

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and their values compare."""
        meta = arguments.unique_columns(frame)
        arguments.check_comparable(meta, self.columns, "columns")

    def plan(self, frame: Frame, entropy: int = 0) -> list[Change]:
        """Count combinations of values, and decide on their table what is suppressed."""
        found = count_combinations(frame, self.columns)
        if found.rows.n < self.k:
            raise SdcValueError(
                f"the frame has {found.rows.n} records, fewer than k={self.k}: there is no class "
                "of k. Use a smaller k, or more records."
            )
        costs = self.costs or (1.0,) * len(self.columns)
        choose = decide if self.missing == "value" else decide_matching
        decided = choose(found.codes(), found.counts, self.k, costs)
        change = _suppression(frame, found, decided)
        _advise(found, change.cells)
        return [change]


def _costs(costs: Any, columns: Sequence[Hashable]) -> tuple[float, ...] | None:
    if costs is None:
        return None
    width = len(columns)
    if isinstance(costs, Mapping):
        named = dict(arguments.by_column(costs, "costs", columns, "{'sex': 3}"))
        listed: Any = [named.get(column, 1.0) for column in columns]
    else:
        listed = costs if isinstance(costs, (list, tuple)) else [costs]
    found = tuple(arguments.number(each, "costs", 0.0) for each in listed)
    if len(found) != width or min(found) <= 0:
        raise SdcValueError(
            f"costs must be one number above 0 for each of {width} columns, received {len(found)}"
            f"{', of which some are 0' if len(found) == width else ''}."
        )
    return found


def _advise(found: Combinations, cells: Sequence[int]) -> None:
    """Warn of columns of which little is left."""
    if found.rows.n < FEWEST_ADVISED:
        return
    there = (found.counts[:, None] * (found.codes() != -1)).sum(axis=0).tolist()
    lost = [
        f"{column!r} ({gone / present:.0%})"
        for column, gone, present in zip(found.columns, cells, there, strict=True)
        if present and gone >= MOST_SUPPRESSED * present
    ]
    if lost:
        warn(
            f"half of the cells or more are suppressed in columns: {', '.join(lost)}. Their "
            "combinations are too many for k: recode columns into fewer values first, name fewer "
            "of them, or say by costs= which are to be kept; microaggregate numbers such as "
            "incomes instead.",
            SuppressedAdvice,
        )


def _suppression(frame: Frame, found: Combinations, decided: Suppressions) -> Suppression:
    """Return the change that was decided: by combination, and by record where some differ."""
    pattern = decided.pattern
    first = np.unique(decided.combination, return_index=True)[1]
    own = np.zeros(len(found), np.int64)
    own[decided.combination[first]] = pattern[first]
    others = np.setdiff1d(np.arange(len(pattern)), first)
    rows = _rows_of(frame, found, decided.combination[others], decided.records[others])
    order = np.argsort(rows)
    stays = ((pattern[:, None] >> np.arange(len(found.columns))) & 1) == 0
    present = found.codes()[decided.combination] != -1
    return Suppression(
        found,
        own,
        rows[order],
        np.repeat(pattern[others], decided.records[others])[order],
        tuple(
            frozenset(found.values(column).iloc[decided.combination[stays[:, j]]].dropna())
            if isinstance(meta_of(frame)[column].dtype, pd.CategoricalDtype)
            else frozenset()
            for j, column in enumerate(found.columns)
        ),
        tuple((decided.records[:, None] * (present & ~stays)).sum(axis=0).tolist()),
    )


def _rows_of(
    frame: Frame, found: Combinations, lenders: NDArray[np.int64], records: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the rows of so many records of combinations, which ascend: the first of each."""
    if not len(lenders):
        return np.empty(0, np.int64)
    wanted = np.zeros(len(found), np.int64)
    np.add.at(wanted, lenders, records)
    rows = map_reduce(frame[list(found.columns)], _first_rows, _merge_first, found, wanted)
    if len(rows) != wanted.sum():
        raise SdcRuntimeError(f"there are not as many records as were counted. {NOT_THE_SAME}")
    return rows.sort_values("combination", kind="stable")["row"].to_numpy()


def _first_rows(
    part: pd.DataFrame, number: int, found: Combinations, wanted: NDArray[np.int64]
) -> pd.DataFrame:
    combination = found.numbers(part, number)
    at = np.flatnonzero(wanted[combination] > 0)
    row = found.rows.first(part, number) + at
    some = combination[at]
    return _merge_first([pd.DataFrame({"combination": some, "row": row, "wanted": wanted[some]})])


def _merge_first(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return as many rows of each combination as are wanted, those that come first."""
    rows = pd.concat(parts, ignore_index=True)
    return rows[rows.groupby("combination").cumcount() < rows["wanted"]]


@dataclass(frozen=True)
class Suppression(Change):
    """Makes cells missing, by the combination of values of a record or by its row."""

    combinations: Combinations
    pattern: NDArray[np.int64]  # by combination: columns that become missing, as bits
    rows: NDArray[np.int64]  # of records that are suppressed otherwise, ascending
    patterns: NDArray[np.int64]  # of these
    kept: tuple[frozenset[Any], ...]  # by column of categories: those that are left
    cells: tuple[int, ...]  # that are suppressed, by column

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The key columns."""
        return self.combinations.columns

    @property
    def notes(self) -> tuple[str, ...]:
        """How many cells are suppressed."""
        by = ", ".join(
            f"{column} {cells:,}"
            for column, cells in zip(self.columns, self.cells, strict=True)
            if cells
        )
        return (f"cells    {sum(self.cells):,} suppressed{f': {by}' if by else ''}",)

    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the key columns of a partition, without the cells that are suppressed."""
        pattern = self.pattern[self.combinations.numbers(part, number)]
        if number != NO_PARTITION:
            first = self.combinations.rows.first(part, number)
            begin, end = np.searchsorted(self.rows, [first, first + len(part)])
            pattern[self.rows[begin:end] - first] = self.patterns[begin:end]
        return {
            column: _used_categories(
                without_cells(one_form(part[column]), (pattern >> j & 1) == 1), kept
            )
            for j, (column, kept) in enumerate(zip(self.columns, self.kept, strict=True))
        }


def _used_categories(values: pd.Series, used: frozenset[Any]) -> pd.Series:
    """Leave out categories that no record of any partition has; the others keep their order."""
    if not isinstance(values.dtype, pd.CategoricalDtype) or has_unknown_categories(values.dtype):
        return values
    categories = values.cat.categories
    return values.cat.set_categories(categories[[each in used for each in categories]])
