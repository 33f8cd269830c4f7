"""Pieces of a source become files of a release: masked, written, read again, and compared.

In the order of the source, a piece becomes a file. In random order, its rows go to many, and those
that came to a file are put together.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sdc_dask.engine.batch_files import TableFile
from sdc_dask.engine.classes import class_keys
from sdc_dask.engine.columns import one_form, to_float
from sdc_dask.engine.in_place import Change, change_part
from sdc_dask.engine.key_files import KeyFile, KeyFolder
from sdc_dask.engine.lone_units import LoneUnits
from sdc_dask.engine.spool import Spool
from sdc_dask.engine.trip import Step
from sdc_dask.engine.unique import Uniqueness
from sdc_dask.engine.unit_classes import distinct_pairs
from sdc_dask.engine.units import unit_keys
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.exact import exact_sum
from sdc_dask.release.categories import Order, in_order, orders_of, plain, pruned
from sdc_dask.release.directories import with_levels
from sdc_dask.release.fingerprints import Fingerprint, fingerprint, table_fingerprint
from sdc_dask.release.layout import Layout
from sdc_dask.release.manifest import ReleasedFile, file_digest
from sdc_dask.release.object_store import Staging
from sdc_dask.release.promises import combination_counts
from sdc_dask.release.shuffle import Shuffle
from sdc_dask.release.source import Piece, to_pandas
from sdc_dask.utility.sse import Sums, sum_differences

# As many as pyarrow puts into one; those of a file are of even size.
_GROUP_ROWS = 2**20
_LOOKED_AT = 10_000  # cells that tell whether values repeat,
_COUNTED = (pa.types.is_integer, pa.types.is_string, pa.types.is_large_string)  # of these


@dataclass(frozen=True)
class Masked:
    """What became of the values of all pieces: how they were masked, and where they wait."""

    changes: tuple[Change, ...]
    steps: tuple[Step, ...]
    spools: tuple[Spool, ...]  # by step
    checksums: tuple[tuple[np.uint64, ...], ...]  # by step and piece, of what left

    def changed(self, part: pd.DataFrame, number: int) -> pd.DataFrame:
        """Return a piece after changes of its records where they are."""
        return change_part(part, number, self.changes)

    def restore(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the new arrays of a changed piece, after a look whether it is the same."""
        found: dict[Hashable, Any] = {
            column: part[column] for change in self.changes for column in change.columns
        }
        for step, spool, checksums in zip(self.steps, self.spools, self.checksums, strict=True):
            found |= step.restore(part, spool.fetch(number), checksums[number])
        return found


@dataclass(frozen=True)
class Compared:
    """What a piece is to become, compared with what it was."""

    values: Sums  # of the source, by column of numbers
    differences: Sums  # to the source
    moved: NDArray[np.uint64]  # fingerprints by set of columns, in the source and as released
    unique: dict[str, Uniqueness | None]  # by column that is kept
    orders: dict[str, Order]  # of categories of the source, by column that is released
    lone: tuple[LoneUnits, ...]  # by set of columns that is watched


@dataclass(frozen=True)
class Written:
    """What a file holds, as it was read again."""

    file: ReleasedFile
    keys: tuple[KeyFile, ...]  # by set of columns in which classes are counted, and units, twice
    combinations: tuple[pd.DataFrame, ...]  # by set of columns in which records match
    others: dict[str, int]  # cells that a column must not have


@dataclass(frozen=True)
class Scattered:
    """The rows of a piece, on their way to files."""

    rows: TableFile
    fingerprint: Fingerprint


@dataclass(frozen=True)
class Folder:
    """Where files of a release are written, and keys of their records beside them."""

    directory: str
    stem: str  # of the names of files
    keys: KeyFolder
    staging: Staging | None = None  # to which they are sent when they are checked


def write_piece(
    piece: Piece, number: int, layout: Layout, masked: Masked, folder: Folder
) -> tuple[Compared, Written]:
    """Write a piece as one file, and check it."""
    table, units, compared = _masked_piece(piece, number, layout, masked)
    return compared, _write(table, units, number, layout, folder)


def scatter_piece(
    piece: Piece, number: int, layout: Layout, masked: Masked, shuffle: Shuffle
) -> tuple[Compared, Scattered]:
    """Send the rows of a piece to files that are drawn for them."""
    table, units, compared = _masked_piece(piece, number, layout, masked)
    rows = _beside(plain(table), units)
    return compared, Scattered(shuffle.scatter(rows, number), table_fingerprint(rows))


def gather_file(
    number: int,
    parts: Sequence[TableFile],
    orders: Mapping[str, pa.Array],
    layout: Layout,
    shuffle: Shuffle,
    folder: Folder,
) -> tuple[Written, Fingerprint]:
    """Write the rows that came to a file, and check it."""
    rows = shuffle.gather(parts, number)
    table = in_order(rows, layout.schema, orders)
    where = shuffle.directories.path_of(number)
    units = rows.select([word for unit in layout.units for word in layout.unit_words(unit)])
    found = table_fingerprint(_beside(plain(table), units))
    return _write(table, units, number, layout, folder, where), found


def masked_part(
    numbered: tuple[int, Piece], layout: Layout, masked: Masked, others: tuple[str, ...] = ()
) -> pd.DataFrame:
    """Return the masked columns of a piece as they are released, and others, in its order."""
    number, piece = numbered
    needed = list(dict.fromkeys([*layout.masked, *layout.placing, *others]))
    original = piece.read(needed, by=layout.by, masked=layout.masked)
    part = to_pandas(original, list(layout.masked), layout.placing)
    schema = pa.schema([layout.schema.field(name) for name in (*layout.masked, *others)])
    arrays = masked.restore(masked.changed(part, number), number)
    table, _ = _released(original, schema, arrays)
    return to_pandas(table, list(layout.masked), list(others))


def _masked_piece(
    piece: Piece, number: int, layout: Layout, masked: Masked
) -> tuple[pa.Table, pa.Table, Compared]:
    """Return a piece as it is to be released, its units, and how it differs from what it was."""
    original = piece.read(by=layout.by, masked=layout.masked)
    before = to_pandas(original, list(layout.masked), layout.placing)
    changed = masked.changed(before, number)
    table, orders = _released(original, layout.schema, masked.restore(changed, number))
    kept = [name for name in layout.by if name in table.column_names]
    after = to_pandas(table, [], [*layout.masked, *kept])
    old, new = (_numbers(part, layout.numbers) for part in (before, after))
    compared = Compared(
        {
            name: exact_sum(values[~np.isnan(values)])
            for name, values in old.items()
            if name not in layout.summed
        },
        sum_differences(old, new),
        np.array(
            [_fingerprints(changed, columns, after, kept) for columns in layout.moved], np.uint64
        ).reshape(-1, 2, 2),
        {
            name: Uniqueness.of(table.column(name))
            for name in table.column_names
            if name not in layout.masked and name not in layout.by
        },
        orders,
        tuple(
            LoneUnits.of(_beside_unit(after, original, unit), columns, unit)
            for columns, _, unit in layout.watched
        ),
    )
    return table, _unit_words(before, layout), compared


def _numbers(part: pd.DataFrame, names: Sequence[str]) -> dict[Hashable, NDArray[np.float64]]:
    """Return columns of numbers one by one: the values of each lie side by side then."""
    return {name: to_float(part, [name])[:, 0] for name in names}


def _beside_unit(after: pd.DataFrame, original: pa.Table, unit: str) -> pd.DataFrame:
    """Return a piece as it is released, with a column of the source that need not be."""
    return after.assign(**{unit: to_pandas(original.select([unit]), [], [unit])[unit]})


def _unit_words(part: pd.DataFrame, layout: Layout) -> pa.Table:
    """Return the keys of units, which go with rows until these are counted."""
    words: dict[str, NDArray[np.uint64]] = {}
    for unit in layout.units:
        words |= dict(zip(layout.unit_words(unit), unit_keys(part[unit]), strict=True))
    return pa.table(words)


def _beside(rows: pa.Table, units: pa.Table) -> pa.Table:
    for name in units.column_names:
        rows = rows.append_column(name, units.column(name))
    return rows


def _released(
    original: pa.Table, schema: pa.Schema, masked: Mapping[Hashable, Any]
) -> tuple[pa.Table, dict[str, Order]]:
    """Replace masked columns, leave out dropped ones, prune categories, and tell their orders."""
    arrays: list[Any] = []
    orders: dict[str, Order] = {}
    for field in schema:
        if field.name in masked:
            array = pa.array(masked[field.name], from_pandas=True).cast(field.type)
            if pa.types.is_floating(field.type):
                # A mean of no value is missing, whatever pandas makes of it; zero has no sign.
                array = _without_sign(array)
                if pc.any(pc.is_nan(array)).as_py():
                    array = pc.if_else(pc.is_nan(array), pa.scalar(None, field.type), array)
            arrays.append(array)
        else:
            column = original.column(field.name)
            # Of another type are texts and categories by which there are directories.
            arrays.append(column if column.type.equals(field.type) else column.cast(field.type))
        if pa.types.is_dictionary(field.type):
            orders |= orders_of(pa.table({field.name: arrays[-1]}), [field.name])
            arrays[-1] = pruned(arrays[-1])
    return pa.table(arrays, schema=schema), orders


def _without_sign(floats: pa.Array) -> pa.Array:
    """Return floats of which no zero has a sign."""
    if pa.types.is_float16(floats.type):  # which Arrow does not add
        return _without_sign(floats.cast(pa.float32())).cast(floats.type)
    return pc.add(floats, pa.scalar(0, floats.type))


def _write(
    table: pa.Table,
    units: pa.Table,
    number: int,
    layout: Layout,
    folder: Folder,
    where: str = "",
) -> Written:
    """Write a file, which gets its name when it was read again and holds what was meant.

    Its number alone gives it the name, so that a task that runs again overwrites its own file.
    """
    own = f"{folder.stem}-{number:06d}.parquet"
    name = os.path.join(where, own)
    # A task that runs twice never writes into a file that was checked.
    path = os.path.join(folder.directory, f".{own}.{uuid.uuid4().hex}")
    stored = table.drop_columns(list(layout.partition_by))
    repeated = [each for each in stored.column_names if _repeats(stored.column(each))]
    groups = max(1, -(-table.num_rows // _GROUP_ROWS))
    pq.write_table(
        stored,
        path,
        row_group_size=max(1, -(-table.num_rows // groups)),
        use_dictionary=repeated,
        write_page_checksum=True,
    )
    with ThreadPoolExecutor(1) as beside:
        # The disk is waited for while the file is looked at.
        stored_for_good = beside.submit(_sync, path)
        written = _looked_at(path, name, own, table, units, layout, folder.keys)
        stored_for_good.result()
    if folder.staging is None:
        os.replace(path, os.path.join(folder.directory, name))
    else:
        folder.staging.send(path, name, written.file.sha256)
        os.unlink(path)
    return written


def _sync(path: str) -> None:
    with open(path, "rb") as file:
        os.fsync(file.fileno())


def _looked_at(
    path: str,
    name: str,
    own: str,
    table: pa.Table,
    units: pa.Table,
    layout: Layout,
    keys: KeyFolder,
) -> Written:
    """Read a file again, compare it with what was meant, and return what it holds."""
    found = _read_again(path, name, table, layout)
    others = sorted({each for columns in layout.counted for each in columns} - {*layout.masked})
    after = to_pandas(found, [], [*layout.masked, *others])
    return Written(
        ReleasedFile(name, found.num_rows, os.path.getsize(path), file_digest(path)),
        tuple(
            keys.write(class_keys(after, columns), f"{own}-{count}")
            for count, columns in enumerate(layout.counted)
        )
        + tuple(
            keys.write_pairs(
                _pairs(after, columns, units, layout.unit_words(unit)), f"{own}-unit-{count}"
            )
            for count, (columns, unit) in enumerate(layout.by_unit)
        )
        + tuple(
            keys.write_pairs(
                _pairs(after, columns, units, layout.unit_words(unit), swapped=True),
                f"{own}-alike-{count}",
            )
            for count, (columns, unit) in enumerate(layout.alike)
        ),
        tuple(combination_counts(after, columns) for columns in layout.matched),
        {name: rule.count_others(after[name]) for name, rule in layout.allowed.items()},
    )


def _repeats(column: pa.ChunkedArray) -> bool:
    """Whether a dictionary of its values may be worth its time: not if most of them differ."""
    kind = column.type
    if pa.types.is_floating(kind):
        return False  # centroids have too many different values
    if not any(is_kind(kind) for is_kind in _COUNTED):
        return True
    some = column.slice(0, _LOOKED_AT)
    return pc.count_distinct(some).as_py() <= len(some) // 2


def _pairs(
    after: pd.DataFrame,
    columns: Sequence[str],
    units: pa.Table,
    words: Sequence[str],
    *,
    swapped: bool = False,
) -> NDArray[np.uint64]:
    """Return the keys of what was read again beside those of the units of its rows.

    If they are swapped, what is counted by them are the different records of each unit.
    """
    of_units = [units.column(word).to_numpy() for word in words]
    of_records = class_keys(after, columns)
    both = [*of_units, *of_records] if swapped else [*of_records, *of_units]
    return distinct_pairs(np.column_stack(both))


def _read_again(path: str, name: str, meant: pa.Table, layout: Layout) -> pa.Table:
    """Read a file, with columns that its name gives; raise RuntimeError unless it is as meant."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        found = with_levels(file.read(use_threads=False), name, layout.levels)
    if not found.schema.equals(meant.schema) or found.num_rows != meant.num_rows:
        raise SdcRuntimeError(
            f"file {os.path.basename(name)!r} has other columns or rows than meant."
        )
    for column in meant.column_names:
        if not _same(found.column(column), meant.column(column)):
            raise SdcRuntimeError(
                f"column {column!r} of file {os.path.basename(name)!r} was not read back as "
                "written."
            )
    return found


def _fingerprints(
    before: pd.DataFrame, columns: Sequence[str], after: pd.DataFrame, kept: Sequence[str]
) -> list[Fingerprint]:
    """Return fingerprints of a column's values within strata, in the source and as released.

    Strata that are dropped are those of the source in both.
    """
    column, *by = columns
    before = before.assign(**{column: one_form(before[column])})
    return [
        fingerprint(
            pd.concat(
                [frame[[column]], *((frame if each in kept else before)[[each]] for each in by)],
                axis=1,
            ),
            columns,
        )
        for frame in (before, after)
    ]


def _same(found: pa.ChunkedArray, meant: pa.ChunkedArray) -> bool:
    """Whether two columns are equal, with every NaN equal to itself."""
    if pa.types.is_dictionary(meant.type):
        found, meant = found.cast(meant.type.value_type), meant.cast(meant.type.value_type)
    if pa.types.is_floating(meant.type):
        # By their bits: zeros with a sign are equal, and numbers that are none are not.
        nulls = meant.is_null()
        return found.is_null().equals(nulls) and np.array_equal(_bits(found), _bits(meant))
    if found.equals(meant):
        return True
    return _has_floats(meant.type) and repr(found.to_pylist()) == repr(meant.to_pylist())


def _bits(column: pa.ChunkedArray) -> NDArray[np.unsignedinteger]:
    filled = column.fill_null(pa.scalar(0, column.type)) if column.null_count else column
    floats = filled.to_numpy()
    return floats.view(f"u{floats.dtype.itemsize}")


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    return any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))
