"""The way back by files: masked values wait on disk until the writer of their rows fetches them.

Only masked values and row ids are spooled, never an original beside its row.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.batch_files import BatchFile, TableFile, WordFile
from sdc_dask.engine.batches import schema_of, table_of, words_of
from sdc_dask.engine.destinations import Values
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.receivers import taken


@dataclass(frozen=True)
class Spool:
    """The masked values of all records, on disk."""

    files: tuple[BatchFile, ...]
    schema: pa.Schema | None  # of values that are no words
    row_ids: RowIds

    def fetch(self, number: int) -> pd.DataFrame:
        """Return the masked values of a home partition, indexed by their positions in it."""
        found = words_of(self.files, number)
        if found is None:
            key, values = table_of(self.files, number, self.schema, _dtype_of)
        else:
            key = found[0][:, 0].view(np.int64)
        position = self.row_ids.position(key)
        place = np.full(int(position.max(initial=-1)) + 1, -1, np.int64)
        place[position] = np.arange(len(position))
        order = place[place >= 0]
        if len(order) < len(position):
            raise SdcRuntimeError(
                f"{len(position) - len(order)} masked rows came back twice: nothing is released."
            )
        if found is None:
            return values.take(order).set_axis(position[order], axis="index")
        words, (_, dtype, *_) = found
        numbers = taken(words, order)[:, 1:].view(dtype)
        names = [f"v{j}" for j in range(numbers.shape[1])]
        return pd.DataFrame(numbers, position[order], names, copy=False)


def _dtype_of(kind: pa.DataType) -> pd.ArrowDtype | None:
    """Return the dtype of spooled values: numbers of means are those of numpy."""
    return None if pa.types.is_float64(kind) else pd.ArrowDtype(kind)


def gather_spool(files: Sequence[BatchFile], row_ids: RowIds) -> Spool:
    """Put the files of all partitions together."""
    return Spool(tuple(files), schema_of(files), row_ids)


@dataclass(frozen=True)
class WriteSpool:
    """Writes the masked values of a partition, ordered by home partition."""

    directory: str
    row_ids: RowIds

    def __call__(self, rows: NDArray[np.int64], values: Values, number: int) -> BatchFile:
        """Write one file, with a batch for each home partition."""
        path = os.path.join(self.directory, f"{number:06d}")
        homes = self.row_ids.partition(rows)
        if isinstance(values, pd.Series):
            table = pa.table({"key": rows, "v0": pa.array(values, from_pandas=True)})
            return TableFile.write(path, table, homes)
        return WordFile.write(path, [rows, values], homes)
