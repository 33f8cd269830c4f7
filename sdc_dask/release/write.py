"""One piece of protected data: written, read again, and compared with what was meant."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from sdc_dask.engine.classes import class_keys
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.key_files import KeyFile, KeyFolder
from sdc_dask.engine.spool import Spool
from sdc_dask.engine.trip import Step
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.exact import exact_sum
from sdc_dask.masking.spec import Spec
from sdc_dask.release.manifest import ReleasedFile, file_digest
from sdc_dask.release.source import Piece, to_pandas
from sdc_dask.release.unique import Distinct
from sdc_dask.utility.sse import Sums, sum_differences


@dataclass(frozen=True)
class Layout:
    """What the protected files look like, and what is counted on them.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the files.
    masked : tuple
        All columns that are masked.
    numbers : tuple
        Those of them that are numbers, between which differences are measured.
    by : tuple
        All columns within whose values records were masked, kept or not.
    promised : tuple
        Sets of columns for which k is promised.
    together : tuple
        All masked columns, if they are several sets.
    summed : tuple
        Numbers of which the sums are known, so that they need not be added up again.
    known : tuple
        Sets of columns that an intruder may know, in which classes are counted on request.
    moved : tuple
        Sets of columns, of which the first keeps its values within those of the others.
    """

    schema: pa.Schema
    masked: tuple[str, ...]
    numbers: tuple[str, ...]
    by: tuple[str, ...]
    promised: tuple[tuple[str, ...], ...]
    together: tuple[str, ...]
    moved: tuple[tuple[str, ...], ...]
    summed: tuple[str, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(cls, schema: pa.Schema, specs: Sequence[Spec], drop: Sequence[str]) -> Layout:
        """Derive the layout from the schema of the source."""
        masked = [str(name) for spec in specs for name in spec.masked]
        means = {str(name) for spec in specs if not spec.keeps_dtypes for name in spec.masked}
        kept = [schema.field(name) for name in schema.names if name not in drop]
        fields = [
            pa.field(field.name, _mean_type(field.type)) if field.name in means else _bare(field)
            for field in kept
        ]
        by = tuple(dict.fromkeys(str(name) for spec in specs for name in spec.by))
        left = [name for name in by if name not in drop]
        sets = [
            (*map(str, columns), *(name for name in map(str, spec.by) if name in left))
            for spec in specs
            if spec.promise is not None
            for columns in spec.column_sets
        ]
        several = sum(len(spec.column_sets) for spec in specs) > 1
        together = (*masked, *left) if several else ()
        return cls(
            pa.schema(fields, metadata=_pandas_metadata(schema.metadata, fields, means)),
            tuple(masked),
            tuple(name for name in masked if _is_number(schema.field(name).type)),
            by,
            tuple(sets),
            together,
            tuple(
                (str(name), *map(str, spec.by))
                for spec in specs
                if spec.moves
                for name in spec.masked
            ),
        )

    @property
    def counted(self) -> list[tuple[str, ...]]:
        """Sets of columns in which classes of equal records are counted."""
        return [*self.promised, *([self.together] if self.together else []), *self.known]


# By set of columns: the sum of the keys of its records, in the source and in the files.
Fingerprints = NDArray[np.uint64]


@dataclass(frozen=True)
class Written:
    """What a piece's file holds, as it was read again."""

    file: ReleasedFile
    values: Sums  # of the source, by column of numbers
    differences: Sums  # to the source
    keys: tuple[KeyFile, ...]  # by set of columns in which classes are counted
    moved: Fingerprints  # by set of columns that keep their values
    distinct: dict[str, Distinct | None]  # by column that is kept


def write_piece(
    piece: Piece,
    number: int,
    directory: str,
    key_folder: KeyFolder,
    layout: Layout,
    steps: Sequence[Step],
    checksums: Sequence[np.uint64],
    spools: Sequence[Spool],
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
    key_folder : KeyFolder
        For the keys of records, of which classes are counted.
    layout : Layout
    steps : sequence of Step
        That masked the columns.
    checksums : sequence of uint64
        Of the piece when the columns of each step left.
    spools : sequence of Spool
        Masked values, by step.
    """
    original = piece.read(by=layout.by, masked=layout.masked)
    part = to_pandas(original, list(layout.masked), list(layout.by))
    masked: dict[Hashable, Any] = {}
    for step, checksum, spool in zip(steps, checksums, spools, strict=True):
        masked |= step.restore(part, spool.fetch(number), checksum)
    table = _protect(original, layout, masked)
    name = f"part-{number:06d}.parquet"
    # A task that runs twice never writes into a file that was checked.
    path = os.path.join(directory, f".{name}.{uuid.uuid4().hex}")
    # Centroids have too many different values for a dictionary, which would only take time.
    texts = [field.name for field in table.schema if not pa.types.is_floating(field.type)]
    pq.write_table(table, path, use_dictionary=texts)
    with open(path, "rb") as file:
        os.fsync(file.fileno())
    written = _check(path, name, table, part, layout, key_folder)
    os.replace(path, os.path.join(directory, name))
    return written


def _protect(original: pa.Table, layout: Layout, masked: Mapping[Hashable, Any]) -> pa.Table:
    """Replace masked columns, leave out dropped ones, prune categories."""
    arrays = []
    for field in layout.schema:
        if field.name in masked:
            array = pa.array(masked[field.name], from_pandas=True).cast(field.type)
            if pa.types.is_floating(field.type):
                # A mean of no value is missing, whatever pandas makes of it; zero has no sign.
                array = pc.add(array, pa.scalar(0, field.type))
                if pc.any(pc.is_nan(array)).as_py():
                    array = pc.if_else(pc.is_nan(array), pa.scalar(None, field.type), array)
            arrays.append(array)
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


def _check(
    path: str,
    name: str,
    meant: pa.Table,
    before: pd.DataFrame,
    layout: Layout,
    key_folder: KeyFolder,
) -> Written:
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
    kept = [column for column in layout.by if column in found.column_names]
    known = {column for columns in layout.known for column in columns}
    others = [*kept, *sorted(known - {*layout.masked, *kept})]
    after = to_pandas(found, list(layout.masked), others)
    numbers = list(layout.numbers)
    old, new = to_float(before, numbers), to_float(after, numbers)
    return Written(
        ReleasedFile(name, found.num_rows, os.path.getsize(path), file_digest(path)),
        {
            each: exact_sum(old[~np.isnan(old[:, j]), j])
            for j, each in enumerate(numbers)
            if each not in layout.summed
        },
        sum_differences(old, new, numbers),
        tuple(
            key_folder.write(class_keys(after, columns), f"{name}-{number}")
            for number, columns in enumerate(layout.counted)
        ),
        np.array(
            [_fingerprint(before, columns, after, kept) for columns in layout.moved], np.uint64
        ).reshape(-1, 2, 2),
        {
            column: Distinct.of(found.column(column))
            for column in found.column_names
            if column not in layout.masked and column not in layout.by
        },
    )


def _one_form(values: pd.Series) -> pd.Series:
    """Return floats as they are written: no sign of zero, and missing if they are no number."""
    floats = values.to_numpy(dtype=np.float64, na_value=np.nan) + 0.0
    return pd.Series(
        pa.array(floats, from_pandas=True)
        .cast(values.dtype.pyarrow_dtype)
        .to_pandas(types_mapper=pd.ArrowDtype)
    )


def _fingerprint(
    before: pd.DataFrame, columns: Sequence[str], after: pd.DataFrame, kept: Sequence[str]
) -> list[NDArray[np.uint64]]:
    """Return sums of keys of a column's values, in the source and as they were read again.

    They are equal if and only if the values are, whatever their order, except for a chance of
    2**-128. Strata that are dropped are those of the source in both.
    """
    column, *by = columns
    if pd.api.types.is_float_dtype(before[column].dtype):
        before = before.assign(**{column: _one_form(before[column])})
    sums = []
    for frame in (before, after):
        cells = pd.concat(
            [frame[[column]], *((frame if each in kept else before)[[each]] for each in by)], axis=1
        )
        sums.append(np.array([keys.sum(dtype=np.uint64) for keys in class_keys(cells, columns)]))
    return sums


def _same(found: pa.ChunkedArray, meant: pa.ChunkedArray) -> bool:
    """Whether two columns are equal, with every NaN equal to itself."""
    if pa.types.is_dictionary(meant.type):
        found, meant = found.cast(meant.type.value_type), meant.cast(meant.type.value_type)
    if found.equals(meant) and not pa.types.is_floating(meant.type):
        return True
    if pa.types.is_floating(meant.type):
        # By their bits: zeros with a sign are equal, and numbers that are none are not.
        nulls = meant.is_null()
        return found.is_null().equals(nulls) and np.array_equal(_bits(found), _bits(meant))
    return _has_floats(meant.type) and repr(found.to_pylist()) == repr(meant.to_pylist())


def _bits(column: pa.ChunkedArray) -> NDArray[np.unsignedinteger]:
    floats = column.fill_null(pa.scalar(0, column.type)).to_numpy()
    return floats.view(f"u{floats.dtype.itemsize}")


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


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


def _mean_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of centroids: floats keep theirs, integers become 64-bit ones."""
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
