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
from sdc_dask.engine.masks import routed_frame
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.errors import SdcRuntimeError


@dataclass(frozen=True)
class SpoolFile:
    """Row ids and values of one masked partition, the rows of each home partition together."""

    path: str
    homes: NDArray[np.int64]  # numbers of the home partitions that have rows here, ascending
    ends: NDArray[np.int64]  # by these: where their rows end in the file

    def read(self, number: int) -> pa.Table:
        """Read the row ids and values of a home partition, and nothing else."""
        place = int(np.searchsorted(self.homes, number))
        begin = int(self.ends[place - 1]) if place else 0
        here = place < len(self.homes) and self.homes[place] == number
        end = int(self.ends[place]) if here else begin
        with pa.memory_map(self.path) as file:
            batch = pa.ipc.open_file(file).get_batch(0)
        return pa.Table.from_batches([batch.slice(begin, end - begin)])


@dataclass(frozen=True)
class Spool:
    """The masked values of all records, on disk."""

    files: tuple[SpoolFile, ...]
    row_ids: RowIds

    def fetch(self, number: int) -> pd.DataFrame:
        """Return the masked values of a home partition, indexed by their positions in it."""
        table = pa.concat_tables([file.read(number) for file in self.files])
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
    return Spool(tuple(files), row_ids)


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
        frame = routed_frame(rows, values).take(order)
        batch = pa.RecordBatch.from_pandas(frame, preserve_index=False)
        path = os.path.join(self.directory, f"{number:06d}")
        # A task that runs twice never writes into a file that is being read.
        unfinished = f"{path}.{uuid.uuid4().hex}"
        with pa.OSFile(unfinished, "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
            writer.write_batch(batch)
        os.replace(unfinished, path)
        homes, counts = np.unique(home, return_counts=True)
        return SpoolFile(path, homes, np.cumsum(counts))
