"""The way back by files: masked values wait on disk until the writer of their rows fetches them.

A job that writes files has a directory that all workers reach. Spooling masked values there moves
them once, where a second shuffle would serialize, send and sort them. Only masked values and row
ids are spooled, never an original.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame
from sdc_dask.engine.masks import Mask
from sdc_dask.engine.placement import RowIds
from sdc_dask.engine.route import Destinations, at_places
from sdc_dask.errors import SdcRuntimeError


@dataclass(frozen=True)
class SpoolFile:
    """Row ids and values of one partition of blocks, the rows of each home partition together."""

    path: str
    begins: NDArray[np.int64]  # by home partition, and one more: its rows in the file

    def read(self, number: int, width: int) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Read the row ids and values of a home partition."""
        begin, end = int(self.begins[number]), int(self.begins[number + 1])
        with open(self.path, "rb") as file:
            file.seek(8 * begin)
            rows = np.fromfile(file, np.int64, end - begin)
            file.seek(8 * (int(self.begins[-1]) + begin * width))
            values = np.fromfile(file, np.float64, (end - begin) * width)
        return rows, values.reshape(-1, width)


@dataclass(frozen=True)
class Spool:
    """The masked values of all records, on disk."""

    files: tuple[SpoolFile, ...]
    row_ids: RowIds
    width: int

    def fetch(self, number: int, count: int) -> NDArray[np.float64]:
        """Return the masked values of a home partition, its rows in their old order."""
        values = np.empty((count, self.width))
        seen = np.zeros(count, bool)
        total = 0
        for file in self.files:
            rows, part = file.read(number, self.width)
            position = rows & ((1 << self.row_ids.position_bits) - 1)
            if len(position) and position.max() >= count:
                break
            values[position] = part
            seen[position] = True
            total += len(position)
        if total != count or not seen.all():
            raise SdcRuntimeError(
                f"{total} masked rows came back for {count}: rows were lost or doubled, or the "
                "source changed while it was read. Nothing is released."
            )
        return values


def there_and_spool(
    frame: Frame, destinations: Destinations, mask: Mask, directory: Path, after: Delayed | None
) -> Delayed:
    """Mask columns where their records go, and spool the values.

    Parameters
    ----------
    frame : Dask DataFrame
    destinations : Destinations
        Of this frame.
    mask : Mask
    directory : Path
        Empty, and reached by all workers; whoever made it removes it.
    after : Delayed or None
        What must be done before records depart.

    Returns
    -------
    Delayed
        A Spool.
    """
    routed, homes = at_places(frame, destinations, after)
    spool = _WriteFile(str(directory), destinations.row_ids, homes)
    files = mask.run(routed.to_delayed(), destinations.row_ids, spool, lazy=True)
    width = len(destinations.columns)
    return delayed(_gather, pure=False)(files, destinations.row_ids, width)


def _gather(files: Sequence[SpoolFile], row_ids: RowIds, width: int) -> Spool:
    return Spool(tuple(files), row_ids, width)


@dataclass(frozen=True)
class _WriteFile:
    """Writes the masked values of a partition, ordered by home partition."""

    directory: str
    row_ids: RowIds
    homes: int

    def __call__(
        self, rows: NDArray[np.int64], values: NDArray[np.float64], number: int
    ) -> SpoolFile:
        home = rows >> self.row_ids.position_bits
        # Sorting is by radix where keys have 16 bits.
        order = np.argsort(home.astype(np.uint16) if self.homes <= 2**16 else home, kind="stable")
        path = os.path.join(self.directory, f"{number:06d}")
        # A task that runs twice never writes into a file that is being read.
        unfinished = f"{path}.{uuid.uuid4().hex}"
        with open(unfinished, "wb") as file:
            rows[order].tofile(file)
            values[order].tofile(file)
        os.replace(unfinished, path)
        return SpoolFile(path, np.append(0, np.cumsum(np.bincount(home, minlength=self.homes))))
