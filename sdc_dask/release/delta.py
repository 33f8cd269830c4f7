"""A release that is a Delta table, too: one entry of a log, which names its files.

The entry is written here and read again by the package ``deltalake``, whose own writer would put
the path of the table and the extremes of columns into it.
"""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import pyarrow as pa

from sdc_dask import extras
from sdc_dask.errors import SdcRuntimeError, SdcTypeError, SdcValueError
from sdc_dask.release.layout import Layout
from sdc_dask.release.listing import levels_of
from sdc_dask.release.manifest import ReleasedFile, file_digest
from sdc_dask.release.places import Place

LOG = "_delta_log/00000000000000000000.json"

_NOT_IN_NAMES = frozenset(" ,;{}()\n\t=")  # by the protocol

_IS = pa.types
_LISTS = (_IS.is_list, _IS.is_large_list, _IS.is_fixed_size_list)
_TYPES = (
    *(_IS.is_signed_integer, _IS.is_float32, _IS.is_float64, _IS.is_boolean, _IS.is_date32),
    *(_IS.is_string, _IS.is_large_string, _IS.is_binary, _IS.is_large_binary),
)


def check_delta(target: Place) -> None:
    """Raise an error unless a Delta table can be made at a target."""
    _deltalake()
    if not target.is_local:
        raise SdcValueError(
            f"delta=True is for local targets, and {target.url!r} is in a store, where the log of "
            "a Delta table and the manifest cannot appear at once: release to a directory and "
            "copy it, or leave out delta=True (--delta)."
        )
    if "%" in target.path:
        raise SdcValueError(
            f"target {target.url!r} has a % in its path, and deltalake opens no tables there: "
            "choose another target, or leave out delta=True (--delta)."
        )


def check_columns(schema: pa.Schema) -> None:
    """Raise an error unless a Delta table can have these columns.

    The package takes some types for others, as unsigned integers for signed ones. Here, only those
    pass that are read as they were written.
    """
    folded = [name.casefold() for name in schema.names]
    for field in schema:
        is_double = folded.count(field.name.casefold()) > 1
        if is_double or any(_NOT_IN_NAMES & set(name) for name in _names(field)):
            raise SdcValueError(
                f"column {field.name!r} cannot be in a Delta table, where names have no spaces, "
                "none of , ; { } ( ) =, and differ in more than capital letters: rename it in the "
                "source, drop it, or leave out delta=True (--delta)."
            )
        unlike = next(_unlike(field.type), None)
        if unlike is not None:
            inner = "" if unlike.equals(field.type) else f", with {unlike} in it"
            raise SdcTypeError(
                f"column {field.name!r} is of type {field.type}{inner}, which Delta tables do not "
                f"have: {_remedy(field, unlike)}drop it, or leave out delta=True (--delta)."
            )


def _names(field: pa.Field) -> Iterator[str]:
    """Give the names of a column and of the fields of structs in it."""
    yield field.name
    for position in range(field.type.num_fields):
        yield from _names(field.type.field(position))


def _unlike(kind: pa.DataType) -> Iterator[pa.DataType]:
    """Give what a type has in it that Delta has not, or that readers take for another type."""
    if _IS.is_struct(kind) or _IS.is_map(kind) or any(is_list(kind) for is_list in _LISTS):
        for position in range(kind.num_fields):
            yield from _unlike(kind.field(position).type)
    elif _IS.is_timestamp(kind):
        if kind.unit != "us" or kind.tz not in (None, "UTC"):
            yield kind
    elif _IS.is_decimal128(kind):
        if not 0 <= kind.scale <= kind.precision:
            yield kind
    elif isinstance(kind, pa.BaseExtensionType) or not any(is_type(kind) for is_type in _TYPES):
        yield kind


def _remedy(field: pa.Field, unlike: pa.DataType) -> str:
    """Say what a column can be read as."""
    if not unlike.equals(field.type):
        return ""
    kind = None
    if _IS.is_dictionary(unlike):
        kind = repr(str(unlike.value_type))
    elif _IS.is_unsigned_integer(unlike):
        kind = "'int64'"
    elif _IS.is_timestamp(unlike):
        kind = "'timestamp[us]'" if unlike.tz is None else "pyarrow.timestamp('us', 'UTC')"
    elif _IS.is_float16(unlike):
        kind = "'float32'"
    elif _IS.is_time(unlike) or _IS.is_string_view(unlike):
        kind = "'string'"
    elif _IS.is_fixed_size_binary(unlike) or _IS.is_binary_view(unlike):
        kind = "'binary'"
    return f"read it as another one, as in cast={{{field.name!r}: {kind}}}, " if kind else ""


def write_log(directory: Path, files: Sequence[ReleasedFile], layout: Layout) -> ReleasedFile:
    """Make a Delta table of files, and check that it has these and no others.

    Parameters
    ----------
    directory : Path
        That has the files, and will get the name of the target.
    files : sequence of ReleasedFile
    layout : Layout

    Returns
    -------
    ReleasedFile
        The entry of the log. It has the names and sizes of files and numbers of rows, and neither
        bounds of columns nor a path of this machine.
    """
    schema = json.loads(_deltalake().Schema.from_arrow(layout.schema.remove_metadata()).to_json())
    path = directory / LOG
    path.parent.mkdir()
    with path.open("x", encoding="utf-8") as file:
        for action in _actions(schema, files, layout.partition_by):
            file.write(json.dumps(action) + "\n")
        file.flush()
        os.fsync(file.fileno())
    _check(directory, schema, files)
    return ReleasedFile(LOG, 0, path.stat().st_size, file_digest(path))


def _actions(
    schema: Any, files: Sequence[ReleasedFile], partition_by: Sequence[str]
) -> Iterator[dict[str, Any]]:
    """Give the lines of the first entry of a log, as the protocol of Delta tables says."""
    now = time.time_ns() // 1_000_000
    text = json.dumps(schema)
    engine = f"sdc_dask {version('sdc_dask')}"
    yield {"commitInfo": {"timestamp": now, "operation": "CREATE TABLE", "engineInfo": engine}}
    if '"timestamp_ntz"' in text:
        features = {"readerFeatures": ["timestampNtz"], "writerFeatures": ["timestampNtz"]}
        yield {"protocol": {"minReaderVersion": 3, "minWriterVersion": 7, **features}}
    else:
        yield {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
    yield {
        "metaData": {
            "id": str(uuid.uuid4()),
            "format": {"provider": "parquet", "options": {}},
            "schemaString": text,
            "partitionColumns": list(partition_by),
            "configuration": {},
            "createdTime": now,
        }
    }
    for file in files:
        yield {
            "add": {
                # It is encoded once more, as that of a URL.
                "path": quote(file.name, safe="/=~"),
                "partitionValues": dict(levels_of(os.path.dirname(file.name))),
                "size": file.size,
                "modificationTime": now,
                "dataChange": True,
                "stats": json.dumps({"numRecords": file.rows}),
            }
        }


def _check(directory: Path, schema: Any, files: Sequence[ReleasedFile]) -> None:
    """Raise RuntimeError unless the table, as it is read again, has these columns and files."""
    try:
        table = _deltalake().DeltaTable(directory.absolute().as_uri())
        paths = pa.table(table.get_add_actions())["path"].to_pylist()
        same = json.loads(table.schema().to_json()) == schema
    except Exception as error:
        raise SdcRuntimeError(
            f"the log of the Delta table cannot be read again ({type(error).__name__}). Nothing "
            "is released."
        ) from None
    if not same or sorted(map(unquote, paths)) != sorted(file.name for file in files):
        raise SdcRuntimeError(
            "the log of the Delta table has other columns or files than meant. Nothing is released."
        )


def _deltalake() -> Any:
    return extras.load("deltalake", "delta=True (--delta)")
