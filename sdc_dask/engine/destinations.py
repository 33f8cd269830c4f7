"""Where the records of a frame go to be masked, and how they come back."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.codecs import NUMBERS, Coding
from sdc_dask.engine.columns import same_array, to_float
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.checksum import checksum

# What travels beside a key: the numbers of several columns, or one column of any dtype.
Values: TypeAlias = Any  # ndarray of float64, shape (n, d), or Series


class Destinations(ABC):
    """Where the values of some columns go; takes them back into their rows.

    Attributes
    ----------
    columns : tuple
        Columns that travel.
    by : tuple
        Columns of the user that define strata.
    row_ids : RowIds
        Numbers what travels.
    coding : Coding
        What columns travel as, if not as numbers.
    """

    columns: Any
    by: Any
    row_ids: RowIds
    coding: Coding = NUMBERS

    @abstractmethod
    def depart(self, part: pd.DataFrame, number: int) -> tuple[NDArray[np.int64], Values]:
        """Return the keys, place and row id in one integer, and values that a partition sends."""

    @abstractmethod
    def divisions(self, n_partitions: int) -> list[int]:
        """Return the first key of every partition to come, and one beyond the last."""

    def needed(self) -> list[Hashable]:
        """Return the columns that decide the place of a record."""
        return list(dict.fromkeys([*self.columns, *self.by]))

    def checksum(self, part: pd.DataFrame, values: Values | None = None) -> np.uint64:
        """Return a checksum of the values, and their order, that decide where rows go.

        `values` are those that depart, if they are at hand: they are not converted again then.
        """
        numbers = to_float(self.coding.encode(part), self.columns) if values is None else values
        return checksum_of(numbers.reshape(len(part), len(self.columns)), part, self.by)

    def restore(self, part: pd.DataFrame, back: pd.DataFrame, *, moved: bool) -> list[Any]:
        """Return the new arrays of the columns.

        Parameters
        ----------
        part : DataFrame
            The partition that they left from.
        back : DataFrame
            What came back, indexed by position: float64 columns.
        moved : bool
            Whether values only changed places, so that columns keep their dtypes.
        """
        check_positions(back, np.arange(len(part)))
        return self.arrays(part, back.to_numpy(), moved=moved)

    def arrays(self, part: pd.DataFrame, values: NDArray[np.float64], *, moved: bool) -> list[Any]:
        """Return numbers that came back as arrays of the dtypes that masked columns have.

        `part` has the columns with the dtypes that they had.
        """
        return [
            same_array(values[:, j], part[column].dtype)
            if moved
            else self.coding.array(column, values[:, j], part[column].dtype)
            for j, column in enumerate(self.columns)
        ]


def check_positions(back: pd.DataFrame, expected: NDArray[np.int64]) -> None:
    """Raise RuntimeError unless just those rows came back that left."""
    if not np.array_equal(back.index.to_numpy(), expected):
        raise SdcRuntimeError(
            f"{len(back)} masked values came back for {len(expected)}: rows were lost or doubled "
            f"on their way to where they are masked and back. {NOT_THE_SAME}"
        )


def checksum_of(
    numbers: NDArray[np.float64], part: pd.DataFrame, others: Sequence[Hashable]
) -> np.uint64:
    """Return a checksum of numbers and of other columns, and of the order of their rows."""
    cells = numbers.view(np.uint64)
    if others:
        hashed = pd.util.hash_pandas_object(part[list(others)], index=False)
        cells = np.hstack([cells, hashed.to_numpy(np.uint64)[:, None]])
    return checksum(cells)
