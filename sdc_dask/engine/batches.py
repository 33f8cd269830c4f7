"""Rows that wait on disk for whoever fetches them: those of one receiver together in a file.

A job that writes files has a directory that all workers reach. What goes through it is written once
and read once, where a shuffle would serialize, send and sort it.
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray


@dataclass(frozen=True)
class BatchFile:
    """Rows of one sender, in batches for their receivers."""

    path: str
    receivers: NDArray[np.int64]  # by batch, ascending

    @classmethod
    def write(cls, path: str, rows: pa.Table, receivers: NDArray[np.int64]) -> BatchFile:
        """Write rows, of which each goes to a receiver; those of one keep their order."""
        # Sorting is by radix where numbers have 16 bits.
        few = receivers.max(initial=0) < 2**16
        order = np.argsort(receivers.astype(np.uint16) if few else receivers, kind="stable")
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
