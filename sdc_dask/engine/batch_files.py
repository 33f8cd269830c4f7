"""Rows that wait on disk for whoever fetches them: those of one receiver together in a file.

A job that writes files has a directory that all workers reach. What goes through it is written once
and read once, where a shuffle would serialize, send and sort it.

A file begins with its index: where the batch of each receiver begins, and the end of the last. Who
fetches a batch reads two numbers and the batch, however many there are.
"""

from __future__ import annotations

import itertools
import os
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.receivers import by_receiver, places_by_receiver, put_rows

_WORD = 8
_TAKEN = 2**15  # rows of texts that are taken at a time


@dataclass(frozen=True)
class BatchFile:
    """Rows of one sender, in batches for their receivers.

    Attributes
    ----------
    path : str
    receivers : int
        One more than the last receiver that has a batch.
    """

    path: str
    receivers: int

    def _bytes_of(self, number: int) -> bytes:
        """Read the batch of a receiver, and nothing else."""
        if number >= self.receivers:
            return b""
        with open(self.path, "rb") as file:
            file.seek(_WORD * number)
            begin, end = np.frombuffer(_read(file, 2 * _WORD), np.int64).tolist()
            if begin == end:
                return b""
            file.seek(begin)
            return _read(file, end - begin)


@dataclass(frozen=True)
class WordFile(BatchFile):
    """Rows of words of 64 bits: numbers of numpy."""

    kinds: tuple[str, ...]  # dtypes of the columns

    @classmethod
    def write(cls, path: str, columns: list[NDArray], receivers: NDArray[np.int64]) -> WordFile:
        """Write columns of numbers of 64 bits, of which each row goes to a receiver.

        An array may be one column, or several.
        """
        number = int(receivers.max(initial=-1)) + 1
        place, begins = places_by_receiver(receivers, number)
        blocks = [each if each.ndim == 2 else each[:, None] for each in columns]
        kinds = tuple(block.dtype.str for block in blocks for _ in range(block.shape[1]))
        words = np.empty((len(place), len(kinds)), np.uint64)
        first = 0
        for block in blocks:
            put_rows(words, first, block.view(np.uint64), place)
            first += block.shape[1]

        def body(file: BinaryIO) -> NDArray[np.int64]:
            file.write(words.data if words.size else b"")
            return begins * _WORD * len(kinds)

        _write(path, number, body)
        return cls(path, number, kinds)

    def read(self, number: int) -> NDArray[np.uint64]:
        """Read the rows of a receiver, in their order."""
        return np.frombuffer(self._bytes_of(number), np.uint64).reshape(-1, len(self.kinds))


@dataclass(frozen=True)
class TableFile(BatchFile):
    """Rows of Arrow tables, of any types except dictionaries."""

    schema_size: int

    @classmethod
    def write(cls, path: str, rows: pa.Table, receivers: NDArray[np.int64]) -> TableFile:
        """Write rows, of which each goes to a receiver; those of one keep their order."""
        number = int(receivers.max(initial=-1)) + 1
        order, begins = by_receiver(receivers, number)
        ordered = taken_rows(rows, order)
        schema = rows.schema.serialize()

        def body(file: BinaryIO) -> NDArray[np.int64]:
            first = file.tell()
            file.write(schema)
            ends = [file.tell() - first]
            for begin, end in itertools.pairwise(begins.tolist()):
                # One batch, unless there are gigabytes of texts; none for nobody.
                for batch in ordered.slice(begin, end - begin).to_batches() if end > begin else ():
                    file.write(batch.serialize())
                ends.append(file.tell() - first)
            return np.array(ends, np.int64)

        _write(path, number, body)
        return cls(path, number, schema.size)

    def read(self, number: int, schema: pa.Schema) -> list[pa.RecordBatch]:
        """Read the rows of a receiver, if there are any, by the schema that all files have."""
        stored = self._bytes_of(number)
        stream = pa.BufferReader(stored)
        batches = []
        while stream.tell() < len(stored):
            batches.append(pa.ipc.read_record_batch(pa.ipc.read_message(stream), schema))
        return batches

    @property
    def schema(self) -> pa.Schema:
        """Of its rows."""
        with open(self.path, "rb") as file:
            file.seek(_WORD * (self.receivers + 1))
            return pa.ipc.read_schema(pa.py_buffer(_read(file, self.schema_size)))


def taken_rows(table: pa.Table, order: NDArray[np.int64]) -> pa.Table:
    """Return rows of a table in another order, in one chunk.

    Column by column, which takes Arrow half of the time that it takes for a table. Some rows at a
    time where their sizes differ: what grows while it is filled would be moved again and again.
    """
    indices = pa.array(order)
    some = [indices[i : i + _TAKEN] for i in range(0, max(1, len(indices)), _TAKEN)]
    whole = table.combine_chunks()
    columns = []
    for column in whole.columns:
        parts = [indices] if pa.types.is_primitive(column.type) else some
        taken = [column.take(part) for part in parts]
        columns.append(
            pa.chunked_array([each for part in taken for each in part.chunks], column.type)
        )
    return pa.table(columns, schema=table.schema).combine_chunks()


def _write(path: str, receivers: int, body: Callable[[BinaryIO], NDArray[np.int64]]) -> None:
    """Write a file: `body` writes all but the index, and returns where batches begin in it."""
    room = _WORD * (receivers + 1)
    # A task that runs twice never writes into a file that is being read.
    unfinished = f"{path}.{uuid.uuid4().hex}"
    with open(unfinished, "wb") as file:
        file.seek(room)
        begins = body(file) + room
        file.seek(0)
        file.write(begins.tobytes())
    os.replace(unfinished, path)


def _read(file: BinaryIO, size: int) -> bytes:
    found = file.read(size)
    if len(found) < size:
        raise SdcRuntimeError(
            f"a file in which rows wait was cut short: {len(found)} bytes are there of {size}. "
            "Is the disk full, or did another program change the directory?"
        )
    return found
