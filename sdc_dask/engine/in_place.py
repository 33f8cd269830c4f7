"""Records change where they are: nothing travels, and nothing comes back.

A change makes new columns of a partition from the partition itself and its number, after whatever
had to be counted before. So a frame that has changed can be what others are planned on, without
being computed first: changes are made anew in each pass, and last where the records stay.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sdc_dask.engine.columns import one_form, with_columns
from sdc_dask.engine.frames import Frame, from_partitions, map_partitions, meta_of
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.engine.strata import comparable
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.exact import ExactSum


class Allowed(ABC):
    """What a column may hold after a change, as far as that is known."""

    @abstractmethod
    def count_others(self, values: pd.Series) -> int:
        """Count cells that hold something else; missing cells are allowed."""


@dataclass(frozen=True)
class OneOf(Allowed):
    """Some values, and no others."""

    values: Sequence[Any]

    def count_others(self, values: pd.Series) -> int:
        """Count cells that hold something else."""
        present = comparable(values).dropna()
        return int((~present.isin(list(self.values))).sum())


class Change(ABC):
    """What is done to columns of a partition, without regard to other partitions.

    Attributes
    ----------
    columns : tuple
        That it replaces.
    """

    columns: Any

    @abstractmethod
    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the new arrays of the columns of a partition, which may be empty."""

    @property
    def allowed(self) -> Mapping[Hashable, Allowed]:
        """What columns may hold afterwards, for a check of what was written."""
        return {}

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person may want to know of it, a few words each."""
        return ()

    @property
    def blocks(self) -> None:
        """No records go to blocks."""
        return None

    @property
    def sums(self) -> Mapping[Hashable, ExactSum]:
        """Sums of the original values, of which there are none."""
        return {}

    def result_meta(self, meta: pd.DataFrame) -> dict[Hashable, Any]:
        """Return empty columns with the dtypes that the columns will have."""
        return self.arrays(meta, NO_PARTITION)


@dataclass(frozen=True)
class OneForm(Change):
    """Gives floats one zero, and one way of being missing."""

    columns: tuple[Hashable, ...]

    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the columns of a partition."""
        return {column: one_form(part[column]) for column in self.columns}


def change_part(part: pd.DataFrame, number: int, changes: Sequence[Change]) -> pd.DataFrame:
    """Return a partition after changes, one after the other."""
    for change in changes:
        part = with_columns(part, change.arrays(part, number))
    return part


def changed(frame: Frame, changes: Sequence[Change]) -> Frame:
    """Return a frame after changes: lazily if it is a Dask frame."""
    if not changes:
        return frame
    parts = map_partitions([frame], change_part, list(changes))
    meta = change_part(meta_of(frame), NO_PARTITION, changes)
    return from_partitions(parts, meta, frame)


@dataclass(frozen=True)
class Rows:
    """Numbers of rows by partition, from which each row has a number whatever the partitions."""

    counts: tuple[int, ...]

    @property
    def n(self) -> int:
        """Number of all rows."""
        return sum(self.counts)

    def first(self, part: pd.DataFrame, number: int) -> int:
        """Return the number of a partition's first row; it must have as many as were counted."""
        if number == NO_PARTITION:
            return 0
        if len(part) != self.counts[number]:
            raise SdcRuntimeError(
                f"partition {number} has {len(part)} rows, and had {self.counts[number]} when they "
                f"were counted. {NOT_THE_SAME}"
            )
        return sum(self.counts[:number])
