"""One piece of protected data: written, read again, and compared with what was meant."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sdc_dask.engine.classes import partition_classes
from sdc_dask.engine.columns import narrow, to_float
from sdc_dask.engine.spool import Spool
from sdc_dask.engine.strata import comparable
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.classes import ClassCounts
from sdc_dask.release.source import Piece, to_pandas
from sdc_dask.utility.sse import Sums, sum_differences


@dataclass(frozen=True)
class Layout:
    """What the protected files look like."""

    schema: pa.Schema
    groups: tuple[tuple[str, ...], ...]  # columns that are masked together
    by: tuple[str, ...]  # columns within whose values groups were formed, as far as they are kept

    @classmethod
    def of(
        cls,
        schema: pa.Schema,
        groups: Sequence[Sequence[str]],
        by: Sequence[str],
        drop: Sequence[str],
    ) -> Layout:
        """Derive the layout from the schema of the source."""
        masked = {name for group in groups for name in group}
        kept = [schema.field(name) for name in schema.names if name not in drop]
        fields = [
            pa.field(field.name, _masked_type(field.type)) if field.name in masked else _bare(field)
            for field in kept
        ]
        metadata = _pandas_metadata(schema.metadata, fields, masked)
        return cls(
            pa.schema(fields, metadata=metadata),
            tuple(tuple(group) for group in groups),
            tuple(name for name in by if name not in drop),
        )

    @property
    def counted(self) -> list[list[str]]:
        """Sets of columns in which equal records are counted: every group, and all together."""
        together = [self.masked] if len(self.groups) > 1 else []
        return [[*columns, *self.by] for columns in [*map(list, self.groups), *together]]

    @property
    def masked(self) -> list[str]:
        """All columns that are masked."""
        return [name for group in self.groups for name in group]


@dataclass(frozen=True)
class File:
    """A file that was written and checked."""

    name: str
    rows: int
    size: int  # bytes


@dataclass(frozen=True)
class Written:
    """What a piece's file holds, as it was read again."""

    file: File
    differences: Sums  # to the source, by column
    classes: tuple[ClassCounts, ...]  # by set of columns that are counted


def write_piece(
    piece: Piece, number: int, directory: str, layout: Layout, *spools: Spool
) -> Written:
    """Write one piece with its masked columns, and check the file.

    Parameters
    ----------
    piece : Piece
        Of the source.
    number : int
        Of the piece; it alone gives the file its name, so that a task that runs again overwrites
        its own file.
    directory : str
        Exists.
    layout : Layout
    *spools : Spool
        Masked values, by group of columns.
    """
    original = piece.read()
    masked = [spool.fetch(number, original.num_rows) for spool in spools]
    table = _protect(original, layout, masked)
    name = f"part-{number:06d}.parquet"
    # A task that runs twice never writes into a file that was checked.
    path = os.path.join(directory, f".{name}.{uuid.uuid4().hex}")
    # Centroids have too many different values for a dictionary, which would only take time.
    texts = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(table, path, use_dictionary=texts)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    written = _check(path, name, table, original, layout)
    os.replace(path, os.path.join(directory, name))
    return written


def _protect(original: pa.Table, layout: Layout, masked: Sequence[NDArray[np.float64]]) -> pa.Table:
    """Replace masked columns, leave out dropped ones, prune categories."""
    values: dict[str, NDArray[np.float64]] = {}
    for array, group in zip(masked, layout.groups, strict=True):
        values |= {name: array[:, j] for j, name in enumerate(group)}
    arrays = []
    for field in layout.schema:
        if field.name in values:
            floats = narrow(values[field.name], field.type.bit_width // 8)
            arrays.append(pa.array(floats, field.type, from_pandas=True))
        elif pa.types.is_dictionary(field.type):
            arrays.append(_prune(original.column(field.name).combine_chunks()))
        else:
            arrays.append(original.column(field.name))
    return pa.table(arrays, schema=layout.schema)


def _prune(column: pa.Array) -> pa.Array:
    """Leave out categories that no record has; the others keep their order."""
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else column.type.empty()
    used = np.unique(column.indices.drop_null().to_numpy(zero_copy_only=False))
    place = np.zeros(len(column.dictionary) + 1, np.int64)
    place[used] = np.arange(len(used))
    missing = column.is_null().to_numpy(zero_copy_only=False)
    old = column.indices.fill_null(0).to_numpy(zero_copy_only=False)
    indices = pa.array(place[old], column.type.index_type, mask=missing)
    return pa.DictionaryArray.from_arrays(
        indices, column.dictionary.take(pa.array(used, pa.int64())), ordered=column.type.ordered
    )


def _check(path: str, name: str, meant: pa.Table, original: pa.Table, layout: Layout) -> Written:
    """Read a file again; raise RuntimeError unless it holds what was meant."""
    with pq.ParquetFile(path) as file:
        found = file.read(use_threads=False)
    if not found.schema.equals(meant.schema) or found.num_rows != meant.num_rows:
        raise SdcRuntimeError(f"file {name!r} has other columns or rows than meant.")
    for column in meant.column_names:
        if not _same(found.column(column), meant.column(column)):
            raise SdcRuntimeError(
                f"column {column!r} of file {name!r} was not read back as written."
            )
    masked = layout.masked
    frame = to_pandas(found, masked, list(layout.by))
    for column in layout.by:
        frame[column] = comparable(frame[column])
    before = to_pandas(original, masked, [])
    return Written(
        File(name, found.num_rows, os.path.getsize(path)),
        sum_differences(to_float(before, masked), to_float(frame, masked), masked),
        tuple(partition_classes(frame, columns) for columns in layout.counted),
    )


def _same(found: pa.ChunkedArray, meant: pa.ChunkedArray) -> bool:
    """Whether two columns are equal, with every NaN equal to itself."""
    if pa.types.is_dictionary(meant.type):
        found, meant = found.cast(meant.type.value_type), meant.cast(meant.type.value_type)
    if found.equals(meant):
        return True
    if pa.types.is_floating(meant.type):
        nan = pc.is_nan(meant)
        return pc.is_nan(found).equals(nan) and _zeroed(found, nan).equals(_zeroed(meant, nan))
    return _has_floats(meant.type) and repr(found.to_pylist()) == repr(meant.to_pylist())


def _zeroed(column: pa.ChunkedArray, where: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.if_else(where, pa.scalar(0, column.type), column)


def _has_floats(kind: pa.DataType) -> bool:
    if pa.types.is_floating(kind):
        return True
    return any(_has_floats(kind.field(i).type) for i in range(kind.num_fields))


def _bare(field: pa.Field) -> pa.Field:
    """Return a field without metadata, which may hold anything."""
    if _has_inner_categories(field.type):
        raise SdcValueError(
            f"column {field.name!r} has categories in lists or structs: those that no record "
            "has would be released with it. Drop it, or write its values as plain texts first."
        )
    return pa.field(field.name, _bare_type(field.type), field.nullable)


def _bare_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_struct(kind):
        return pa.struct([_bare(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_bare(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_bare(kind.value_field))
    return kind


def _has_inner_categories(kind: pa.DataType) -> bool:
    children = [kind.field(i).type for i in range(kind.num_fields)]
    return any(pa.types.is_dictionary(each) or _has_inner_categories(each) for each in children)


def _masked_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of centroids: floats keep theirs, integers become 64-bit floats."""
    return kind if pa.types.is_floating(kind) else pa.float64()


def _pandas_metadata(
    metadata: dict[bytes, bytes] | None, fields: list[pa.Field], masked: set[str]
) -> dict[bytes, bytes] | None:
    """Keep what tells pandas the dtypes of columns that are left; nothing else passes.

    The attributes of a frame, its index and the numbers of its categories are not released.
    """
    if not metadata or b"pandas" not in metadata:
        return None
    pandas = json.loads(metadata[b"pandas"])
    kept = {field.name for field in fields}
    columns: list[dict[str, Any]] = []
    for column in pandas.get("columns", []):
        if column.get("field_name") not in kept or column.get("pandas_type") == "categorical":
            continue
        if column["field_name"] in masked:
            nullable = column["numpy_type"][0].isupper()
            column = column | {"pandas_type": "float64"}
            if not column["numpy_type"].lower().startswith("float"):
                column["numpy_type"] = "Float64" if nullable else "float64"
        columns.append(column | {"name": column["field_name"]})
    clean = {
        "index_columns": [],
        "column_indexes": [],
        "columns": columns,
        "creator": pandas.get("creator"),
        "pandas_version": pandas.get("pandas_version"),
    }
    return {b"pandas": json.dumps(clean).encode()}
