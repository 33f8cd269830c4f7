"""What a report measures of columns of every kind: cells, frequencies and associations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import missing_cells
from sdc_dask.engine.frames import Frame, map_reduce, meta_of
from sdc_dask.engine.mixed import Reading
from sdc_dask.errors import SdcError
from sdc_dask.report.categories import Categories, categories_of
from sdc_dask.utility.associations import BINS, Associations, associations
from sdc_dask.utility.frequencies import count_values, of_counts
from sdc_dask.utility.mixed_loss import MixedLoss, mixed_loss


@dataclass(frozen=True)
class Cells:
    """What became of the cells of a column."""

    column: Hashable
    kind: str  # how values are compared
    is_number: bool  # whether it is measured as a number, too
    loss: float  # mean distance of values, percent
    changed: float  # percent of cells
    missing: tuple[int, int]  # before and after
    moved: float | None  # percent of records in other categories; None if these are too many
    categories: Categories | None  # of columns that are not measured as numbers

    @property
    def suppressed(self) -> int:
        """How many more cells are missing than before."""
        return max(0, self.missing[1] - self.missing[0])


@dataclass(frozen=True)
class MixedFigures:
    """Loss over columns of every kind."""

    loss: MixedLoss
    columns: tuple[Cells, ...]
    associations: Associations
    notes: tuple[str, ...]  # what could not be measured, and why

    @property
    def others(self) -> tuple[Cells, ...]:
        """The columns that are not measured as numbers."""
        return tuple(each for each in self.columns if not each.is_number)

    @property
    def pairs(self) -> list[tuple[tuple[Hashable, Hashable], float, float, float]]:
        """Pairs of columns: records that moved, and bits that they share before and after."""
        found = self.associations
        return list(
            zip(
                found.pairs,
                found.moved,
                found.information,
                found.masked_information,
                strict=True,
            )
        )


def mixed_figures(
    original: Frame,
    masked: Frame,
    columns: Sequence[Hashable],
    numbers: Sequence[Hashable],
    least: int,
    reading: Reading,
) -> MixedFigures:
    """Measure columns of every kind, some of which are measured as numbers elsewhere.

    Nothing is shown of fewer records than `least`.
    """
    loss = mixed_loss(original, masked, columns, reading)
    related = associations(original, masked, columns, BINS, reading)
    names = list(columns)
    missing = [
        dict(zip(names, map_reduce(frame[names], _count_missing, _add, names), strict=True))
        for frame in (original, masked)
    ]
    counted = [name for name in names if name not in numbers]
    before, after = (count_values(frame, counted) for frame in (original, masked))
    metas = meta_of(masked), meta_of(original)
    found, notes = [], []
    for name in names:
        moved = shown = None
        if name in before:
            old, new = before[name], after[name]
            if isinstance(old, SdcError) or isinstance(new, SdcError):
                notes.append(
                    f"Frequencies of {name} are not shown: it has too many values, or "
                    "some that do not compare."
                )
            else:
                both = of_counts({name: old}, {name: new})
                dtypes = [meta[name].dtype for meta in metas]
                moved, shown = both.moved[name], categories_of(both.counts[name], dtypes, least)
        found.append(
            Cells(
                name,
                loss.kinds[name],
                name in numbers,
                loss.by_column[name],
                loss.changed[name],
                (int(missing[0][name]), int(missing[1][name])),
                moved,
                shown,
            )
        )
    return MixedFigures(loss, tuple(found), related, tuple(notes))


def categories_in(
    original: Frame, masked: Frame, column: Hashable, least: int
) -> Categories | None:
    """Return what may be shown of the frequencies of a column; None if it is too little.

    Raises
    ------
    SdcError
        If there are too many values, or some that do not compare.
    """
    before, after = (count_values(frame, [column])[column] for frame in (original, masked))
    if isinstance(before, SdcError):
        raise before
    if isinstance(after, SdcError):
        raise after
    dtypes = [meta_of(frame)[column].dtype for frame in (masked, original)]
    both = of_counts({column: before}, {column: after})
    return categories_of(both.counts[column], dtypes, least)


def _count_missing(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> NDArray[np.int64]:
    return np.array([missing_cells(part[name]).sum() for name in columns], np.int64)


def _add(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(parts, axis=0)
