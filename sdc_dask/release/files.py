"""All files of a release: the tasks that write them, and what they hold together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.batch_files import TableFile
from sdc_dask.engine.classes import ClassSizes
from sdc_dask.engine.frames import Calls, Task
from sdc_dask.engine.key_files import KeyFile
from sdc_dask.engine.lone_units import LoneUnits, merge_lone_units
from sdc_dask.engine.unique import nearly_unique
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.release.categories import merged_orders
from sdc_dask.release.fingerprints import Fingerprint
from sdc_dask.release.layout import Layout
from sdc_dask.release.manifest import ReleasedFile
from sdc_dask.release.promises import Matches, matches
from sdc_dask.release.shuffle import Shuffle
from sdc_dask.release.source import PIECE_BYTES, Source
from sdc_dask.release.write import (
    Compared,
    Folder,
    Masked,
    Scattered,
    Written,
    gather_file,
    scatter_piece,
    write_piece,
)
from sdc_dask.utility.sse import Sums, merge_sums


@dataclass(frozen=True)
class Files:
    """What all files hold, as they were read again."""

    files: list[ReleasedFile]
    values: Sums  # of the source, by column of numbers
    differences: Sums  # to the source
    moved: NDArray[np.uint64]  # fingerprints by set of columns, in the source and as released
    # By set of columns that are counted: records, then units, and then different records of units.
    sizes: list[ClassSizes]
    unique: dict[str, float]  # kept columns that are nearly unique, with the share of records
    uncounted: tuple[str, ...]  # kept columns whose values cannot be compared
    matches: list[Matches]  # by set of columns in which records match
    others: dict[str, int]  # cells that a column must not have
    lone: list[LoneUnits]  # by set of columns that is watched


def number_of_files(source: Source, rows: int) -> int:
    """Return how many files some rows of a source go to in random order: as many as they fill."""
    return max(1, min(rows, -(-source.size * rows // (max(1, source.rows) * PIECE_BYTES))))


def write_files(
    source: Source, layout: Layout, masked: Masked, folder: Folder, shuffle: Shuffle | None
) -> Task:
    """Return the task that writes all files, in the order of the source if there is no shuffle."""
    call = Calls(lazy=True)
    shared = [call.share(each) for each in (layout, masked)]
    pieces = enumerate(source.pieces)
    if shuffle is None:
        pairs = [call(write_piece, piece, number, *shared, folder) for number, piece in pieces]
        # A file is described by a few numbers: those of all are small enough for one place.
        compared, written = call.unzip(pairs)
    else:
        drawn = call.share(shuffle)
        pairs = [call(scatter_piece, piece, number, *shared, drawn) for number, piece in pieces]
        compared, sent = call.unzip(pairs)
        parts, orders = call(_parts, sent), call(_orders, compared)
        gathered = [
            call(gather_file, number, parts, orders, shared[0], drawn, folder)
            for number in range(shuffle.files)
        ]
        written, found = call.unzip(gathered)
        written = call(_nothing_lost, written, sent, found)
    sizes = [
        folder.keys.class_sizes(call, call(_keys, written, number))
        for number in range(len(layout.counted) + len(layout.by_unit) + len(layout.alike))
    ]
    return call(_together, compared, written, sizes, layout.matched)


def _parts(sent: Sequence[Scattered]) -> list[TableFile]:
    return [each.rows for each in sent]


def _orders(compared: Sequence[Compared]) -> dict[str, pa.Array]:
    return merged_orders([each.orders for each in compared])


def _keys(written: Sequence[Written], number: int) -> list[KeyFile]:
    return [each.keys[number] for each in written]


def _nothing_lost(
    written: list[Written], sent: Sequence[Scattered], found: Sequence[Fingerprint]
) -> list[Written]:
    """Raise RuntimeError unless the rows of all files are those of all pieces."""
    before = np.sum([each.fingerprint for each in sent], axis=0, dtype=np.uint64)
    after = np.sum(found, axis=0, dtype=np.uint64)
    if not np.array_equal(before, after):
        raise SdcRuntimeError(
            "files have other rows than those that were put in random order. Nothing is released."
        )
    return written


def _together(
    compared: Sequence[Compared],
    written: Sequence[Written],
    sizes: list[ClassSizes],
    matched: Sequence[Sequence[str]],
) -> Files:
    return Files(
        [each.file for each in written],
        merge_sums([each.values for each in compared]),
        merge_sums([each.differences for each in compared]),
        np.sum([each.moved for each in compared], axis=0, dtype=np.uint64),
        sizes,
        *nearly_unique(
            (name, [each.unique[name] for each in compared]) for name in compared[0].unique
        ),
        [
            matches(columns, [each.combinations[number] for each in written])
            for number, columns in enumerate(matched)
        ],
        {name: sum(each.others[name] for each in written) for name in written[0].others},
        [merge_lone_units(parts) for parts in zip(*(each.lone for each in compared), strict=True)],
    )
