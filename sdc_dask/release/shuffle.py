"""Rows in random order across all files of a release, in memory for one piece or file.

Every row of a piece goes to a file that is drawn for it, of those in its directory if there are
several; every file puts the rows that came to it in an order that is drawn. So all orders of the
rows of a directory are equally likely, its files are of even size, and neither says anything of the
source.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from sdc_dask.engine.batch_files import TableFile, taken_rows
from sdc_dask.release.directories import Directories


@dataclass(frozen=True)
class Shuffle:
    """Where rows go, which nobody can draw again.

    Attributes
    ----------
    directory : str
        In which rows wait, between the piece that they come from and the file that they go to.
    directories : Directories
        Of the release, with their files.
    entropy : int
        From which all is drawn: a task that runs twice must draw the same.
    """

    directory: str
    directories: Directories
    entropy: int = field(repr=False)

    @classmethod
    def into(cls, directory: str, directories: Directories) -> Shuffle:
        """Draw afresh. The seed of a masking has no part in it: whoever knows it knows no order."""
        return cls(directory, directories, secrets.randbits(128))

    @property
    def files(self) -> int:
        """Number of files of the release."""
        return sum(self.directories.files)

    def scatter(self, rows: pa.Table, number: int) -> TableFile:
        """Send the rows of a piece to files."""
        where = self.directories.of(rows)
        of_each = np.array(self.directories.files)[where]
        drawn = self._chance("piece", number).integers(of_each)
        goes_to = self.directories.begins[where] + drawn
        return TableFile.write(os.path.join(self.directory, f"{number:06d}"), rows, goes_to)

    def gather(self, parts: Sequence[TableFile], number: int) -> pa.Table:
        """Return the rows of a file, in random order."""
        schema = parts[0].schema
        # In one piece, so that batches are gone when rows are taken from it.
        rows = pa.Table.from_batches(
            [batch for part in parts for batch in part.read(number, schema)], schema
        ).combine_chunks()
        return taken_rows(rows, self._chance("file", number).permutation(rows.num_rows))

    def _chance(self, what: str, number: int) -> np.random.Generator:
        key = (("piece", "file").index(what), number)
        return np.random.default_rng(np.random.SeedSequence(self.entropy, spawn_key=key))
