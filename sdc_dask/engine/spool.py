"""The way back by files: masked values wait on disk until the writer of their rows fetches them.

A job that writes files has a directory that all workers reach. Spooling masked values there moves
them once, where a second shuffle would serialize, send and sort them. Only masked values and row
ids are spooled, never an original beside its row.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.destinations import Values
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.errors import SdcRuntimeError


@dataclass(frozen=True)
class SpoolFile:
    """Row ids and values of one masked partition, the rows of each home partition together."""

    path: str
    homes: NDArray[np.int64]  # numbers of the home partitions that have rows here, ascending

    def read(self, number: int) -> list[pa.RecordBatch]:
        """Read the row ids and values of a home partition, if there are any, and nothing else."""
        place = int(np.searchsorted(self.homes, number))
        if place == len(self.homes) or self.homes[place] != number:
            return []
        with pa.OSFile(self.path) as file:
            return [pa.ipc.open_file(file).get_batch(place)]


@dataclass(frozen=True)
class Spool:
    """The masked values of all records, on disk."""

    files: tuple[SpoolFile, ...]
    schema: pa.Schema
    row_ids: RowIds

    def fetch(self, number: int) -> pd.DataFrame:
        """Return the masked values of a home partition, indexed by their positions in it."""
        batches = [batch for file in self.files for batch in file.read(number)]
        table = pa.Table.from_batches(batches, self.schema)
        position = self.row_ids.position(table.column("key").to_numpy())
        place = np.full(int(position.max(initial=-1)) + 1, -1, np.int64)
        place[position] = np.arange(len(position))
        order = place[place >= 0]
        if len(order) < len(position):
            raise SdcRuntimeError(
                f"{len(position) - len(order)} masked rows came back twice: nothing is released."
            )
        values = table.drop_columns("key").to_pandas(types_mapper=_dtype_of, ignore_metadata=True)
        return values.take(order).set_axis(position[order], axis="index")


def _dtype_of(kind: pa.DataType) -> pd.ArrowDtype | None:
    """Return the dtype of spooled values: numbers of means are those of numpy."""
    return None if pa.types.is_float64(kind) else pd.ArrowDtype(kind)


def gather_spool(files: Sequence[SpoolFile], row_ids: RowIds) -> Spool:
    """Put the files of all partitions together."""
    with pa.OSFile(files[0].path) as file:
        schema = pa.ipc.open_file(file).schema
    return Spool(tuple(files), schema, row_ids)


def _batch(rows: NDArray[np.int64], values: Values, order: NDArray[np.int64]) -> pa.RecordBatch:
    """Return row ids and values, which are put in order."""
    if isinstance(values, pd.Series):
        columns = [pa.array(values.take(order), from_pandas=True)]
    else:
        columns = [pa.array(values[order, j]) for j in range(values.shape[1])]
    names = ["key", *(f"v{j}" for j in range(len(columns)))]
    return pa.RecordBatch.from_arrays([pa.array(rows), *columns], names)


@dataclass(frozen=True)
class WriteSpool:
    """Writes the masked values of a partition, ordered by home partition."""

    directory: str
    row_ids: RowIds

    def __call__(self, rows: NDArray[np.int64], values: Values, number: int) -> SpoolFile:
        """Write one file, and say where the rows of each home partition are in it."""
        home = self.row_ids.partition(rows)
        # Sorting is by radix where keys have 16 bits.
        few = home.max(initial=0) < 2**16
        order = np.argsort(home.astype(np.uint16) if few else home, kind="stable")
        batch = _batch(rows[order], values, order)
        path = os.path.join(self.directory, f"{number:06d}")
        # A task that runs twice never writes into a file that is being read.
        unfinished = f"{path}.{uuid.uuid4().hex}"
        homes, counts = np.unique(home, return_counts=True)
        begins = np.cumsum(counts) - counts
        with pa.OSFile(unfinished, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            # One batch for each home partition: who fetches its rows reads no others.
            for begin, count in zip(begins.tolist(), counts.tolist(), strict=True):
                writer.write_batch(batch.slice(begin, count))
        os.replace(unfinished, path)
        return SpoolFile(path, homes)
