"""Rows that wait on disk for whoever fetches them: those of one receiver together in a file.

A job that writes files has a directory that all workers reach. What goes through it is written once
and read once, where a shuffle would serialize, send and sort it.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.borders import count_below


@dataclass(frozen=True)
class BatchFile:
    """Rows of one sender, in batches for their receivers."""

    path: str
    receivers: NDArray[np.int64]  # by batch, ascending

    @classmethod
    def write(cls, path: str, rows: pa.Table, receivers: NDArray[np.int64]) -> BatchFile:
        """Write rows, of which each goes to a receiver; those of one keep their order."""
        order = _by_receiver(receivers)
        ordered = rows.take(order).combine_chunks()
        numbers, begins, counts = np.unique(receivers[order], return_index=True, return_counts=True)
        written = []
        # A task that runs twice never writes into a file that is being read.
        unfinished = f"{path}.{uuid.uuid4().hex}"
        with pa.OSFile(unfinished, "wb") as file, pa.ipc.new_file(file, rows.schema) as writer:
            for number, begin, count in zip(numbers, begins, counts, strict=True):
                # One batch, unless there are gigabytes of texts.
                for batch in ordered.slice(begin, count).to_batches():
                    writer.write_batch(batch)
                    written.append(number)
        os.replace(unfinished, path)
        return cls(path, np.array(written, np.int64))

    def read(self, number: int) -> list[pa.RecordBatch]:
        """Read the rows of a receiver, if there are any, and nothing else."""
        begin, end = np.searchsorted(self.receivers, [number, number + 1]).tolist()
        if begin == end:
            return []
        with pa.OSFile(self.path) as file:
            reader = pa.ipc.open_file(file)
            return [reader.get_batch(place) for place in range(begin, end)]

    @property
    def schema(self) -> pa.Schema:
        """Of its rows."""
        with pa.OSFile(self.path) as file:
            return pa.ipc.open_file(file).schema


def send(routed: pd.DataFrame, path: str, divisions: Sequence[int]) -> BatchFile:
    """Write routed rows for the partitions that their keys are of, by known divisions."""
    return BatchFile.write(path, _table(routed), _receivers(routed, divisions))


def _receivers(routed: pd.DataFrame, divisions: Sequence[int]) -> NDArray[np.int64]:
    """Return the partitions that the keys of rows are of."""
    receivers = count_below(np.asarray(divisions), routed["key"].to_numpy() + 1) - 1
    if ((receivers < 0) | (receivers >= len(divisions) - 1)).any():
        raise SdcRuntimeError("rows have keys beyond all partitions: they would be lost.")
    return receivers


def cut_by_key(
    routed: pd.DataFrame, divisions: Sequence[int], expected: Sequence[int]
) -> dict[int, pd.DataFrame]:
    """Return the routed rows of each partition that may get some, by known divisions."""
    receivers = _receivers(routed, divisions)
    by_receiver = routed.take(_by_receiver(receivers))
    ends = np.cumsum(np.bincount(receivers, minlength=len(divisions) - 1))
    begins = np.append(0, ends[:-1])
    if sum(int(ends[number] - begins[number]) for number in expected) < len(routed):
        raise SdcRuntimeError("rows have keys of partitions that expect none: they would be lost.")
    # Copies: a slice would hold the rows of all.
    return {n: by_receiver.iloc[begins[n] : ends[n]].copy() for n in expected}


def put_together(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows that came to a partition, sorted by their key, which becomes the index."""
    routed = pd.concat(parts, ignore_index=True)
    return routed.take(np.argsort(routed["key"].to_numpy())).set_index("key")


def _by_receiver(receivers: NDArray[np.int64]) -> NDArray[np.intp]:
    """Sort rows by their receiver; those of one keep their order."""
    # Sorting is by radix where numbers have 16 bits.
    few = receivers.max(initial=0) < 2**16
    return np.argsort(receivers.astype(np.uint16) if few else receivers, kind="stable")


def receive(files: Sequence[BatchFile], number: int, meta: pd.DataFrame) -> pd.DataFrame:
    """Read the rows that came to a partition, sorted by their key, which becomes the index.

    `meta` is an empty frame with the columns that were sent: numbers of numpy, or any of Arrow.
    """
    of_numpy = all(isinstance(dtype, np.dtype) for dtype in meta.dtypes)
    key, values = keyed_values(files, number, files[0].schema, None if of_numpy else pd.ArrowDtype)
    order = np.argsort(key)
    return values.take(order).set_axis(pd.Index(key[order], name="key"), axis="index")


def keyed_values(
    files: Sequence[BatchFile],
    number: int,
    schema: pa.Schema,
    dtype_of: Callable[[pa.DataType], Any] | None,
) -> tuple[NDArray[np.int64], pd.DataFrame]:
    """Return the column "key" of all rows of a receiver, and the other columns.

    Parameters
    ----------
    files : sequence of BatchFile
        Of all senders.
    number : int
        The receiver.
    schema : pyarrow.Schema
        Of the files.
    dtype_of : callable, optional
        From types of Arrow to dtypes of pandas; by default numbers are those of numpy.
    """
    batches = [batch for file in files for batch in file.read(number)]
    table = pa.Table.from_batches(batches, schema)
    values = table.drop_columns("key").to_pandas(types_mapper=dtype_of, ignore_metadata=True)
    return table.column("key").to_numpy(), values


def _table(routed: pd.DataFrame) -> pa.Table:
    arrays = [
        # As they are: a number that is none is not a missing cell here.
        pa.array(column.to_numpy() if isinstance(column.dtype, np.dtype) else column)
        for _, column in routed.items()
    ]
    return pa.table(arrays, list(routed.columns))
