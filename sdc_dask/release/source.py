"""Parquet input as a list of pieces: a few row groups of one file each."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame, frame_of
from sdc_dask.errors import SdcError, SdcRuntimeError, SdcValueError
from sdc_dask.release.listing import FileState, SourceFile, asked_places, called, source_files
from sdc_dask.release.listing import is_parquet as is_parquet
from sdc_dask.release.places import Place
from sdc_dask.release.schemas import cast_types, check_casts, exact_cast, unify, variants

# Uncompressed size of a piece: a worker holds it, its copy with new values, and what it re-read.
PIECE_BYTES = 32 * 2**20

# Footers of a store that are asked for at once: each takes some round trips.
_FOOTERS = 16

_UNNAMED_INDEX = re.compile(r"__null_dask_index__|__index_level_\d+__")


@dataclass(frozen=True)
class Form:
    """How the columns of a file become those of a source.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the source.
    levels : dict
        Values of columns that the names of directories give.
    """

    schema: pa.Schema
    levels: Mapping[str, pa.Scalar]

    def stored(self, columns: Sequence[str] | None, names: Sequence[str]) -> list[str]:
        """Return the columns that a file with these names has of those that are wanted."""
        return [name for name in self._wanted(columns) if name in names]

    def _wanted(self, columns: Sequence[str] | None) -> Sequence[str]:
        return self.schema.names if columns is None else columns

    def of(self, table: pa.Table, columns: Sequence[str] | None, rows: int, file: str) -> pa.Table:
        """Return a table of columns as they are in the source."""
        fields = [self.schema.field(name) for name in self._wanted(columns)]
        arrays = []
        for field in fields:
            level = self.levels.get(field.name)
            if field.name in table.column_names:
                found = exact_cast(table.column(field.name), field.type, field.name, file)
                if level is not None:
                    _check_level(found, level, field.name, file)
            elif level is not None:
                found = pa.repeat(level, rows)
            else:
                found = pa.nulls(rows, field.type)
            arrays.append(found)
        return pa.table(arrays, schema=pa.schema(fields))


@dataclass(frozen=True)
class Piece:
    """Some row groups of a parquet file: one partition."""

    path: str
    row_groups: tuple[int, ...]
    rows: int
    size: int  # bytes of its row groups, uncompressed
    place: Place | None = None  # of a file that is not local
    form: Form | None = None  # of a file whose columns are not just those of the source
    codes: Mapping[str, Sequence[float]] | None = None  # of missing cells, by column

    def read(
        self, columns: Sequence[str] | None = None, *, by: Sequence[str], masked: Sequence[str]
    ) -> pa.Table:
        """Read columns as an Arrow table, all by default: those that are not masked in one form.

        Zero has no sign, and a number that is none has one pattern of bits: both could mark a
        record. In the columns of `by`, which are compared, it is a missing cell. Floats within
        lists and structs stay as they are.
        """
        with _opened(self.path, self.place) as file:
            names = columns
            if self.form is not None:
                names = self.form.stored(columns, file.schema_arrow.names)
            table = file.read_row_groups(
                list(self.row_groups), columns=names, use_threads=False, use_pandas_metadata=False
            )
            if self.form is not None:
                table = self.form.of(table, columns, self.rows, self.path)
        for name, codes in (self.codes or {}).items():
            if name in table.column_names:
                table = _without_codes(table, name, codes)
        for position, field in enumerate(table.schema):
            if pa.types.is_floating(field.type) and field.name not in masked:
                column = _canonical(table.column(position), as_missing=field.name in by)
                table = table.set_column(position, field, column)
        return table

    def check_texts(self, table: pa.Table, columns: Sequence[str]) -> None:
        """Raise ValueError if texts that are compared are not UTF-8."""
        for name in columns:
            try:
                table.column(name).validate(full=True)
            except pa.ArrowInvalid:
                # The original text, or a later one, may show a value.
                raise SdcValueError(
                    f"column {name!r} of file {self.path!r} holds texts that are not UTF-8 or "
                    "other invalid values, which cannot be compared: write it anew as valid texts, "
                    "or as binary, or leave it out."
                ) from None


@dataclass(frozen=True)
class Source:
    """Parquet files with one schema, or with schemas that differ in harmless ways.

    Attributes
    ----------
    path : str
        What it is called.
    schema : pyarrow.Schema
        Of all files: columns that the names of directories give come last.
    pieces : tuple of Piece
    files : tuple of FileState
        As they were when the source was opened.
    asked : tuple of Place
        Files, directories and patterns.
    unified : tuple of str
        What was done to files whose schemas differ, a sentence each.
    """

    path: str
    schema: pa.Schema
    pieces: tuple[Piece, ...]
    files: tuple[FileState, ...]
    asked: tuple[Place, ...]
    unified: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(piece.rows for piece in self.pieces)

    @property
    def size(self) -> int:
        """Bytes of all pieces, uncompressed."""
        return sum(piece.size for piece in self.pieces)

    @property
    def largest(self) -> int:
        """Bytes of the largest piece, uncompressed: what a worker must hold at once."""
        return max(piece.size for piece in self.pieces)

    def check_unchanged(self) -> None:
        """Raise RuntimeError if files changed, came or went since the source was opened."""
        try:
            found = tuple(file.state for file in source_files(self.asked))
        except (FileNotFoundError, SdcValueError):
            found = ()
        if found != self.files:
            raise SdcRuntimeError(
                f"files of source {self.path} changed, came or went during the run. "
                "Nothing is released: run it again when the source is at rest."
            )

    def without_codes(self, codes: Mapping[str, Sequence[float]]) -> Source:
        """Return the source, of which cells are missing that codes stand for, by column."""
        found = {name: each for name, each in codes.items() if each and name in self.schema.names}
        if not found:
            return self
        schema = self.schema
        for name in found:
            place = schema.names.index(name)
            schema = schema.set(place, schema.field(name).with_nullable(True))
        pieces = tuple(replace(piece, codes=found) for piece in self.pieces)
        return replace(self, schema=schema, pieces=pieces)

    @property
    def unnamed_index(self) -> list[str]:
        """Columns in which pandas or Dask stored an index that has no name: row numbers."""
        return [name for name in self.schema.names if _UNNAMED_INDEX.fullmatch(name)]

    def frame(self, numbers: Sequence[str], others: Sequence[str]) -> Frame:
        """Return a lazy frame of some columns, one partition a piece.

        Columns keep their Arrow types, so that integers with missing cells stay integers; of
        categories there are the values.
        """
        meta = to_pandas(self.schema.empty_table(), list(numbers), list(others))
        return frame_of(_read_frame, self.pieces, meta, list(numbers), list(others))


def _without_codes(table: pa.Table, name: str, codes: Sequence[float]) -> pa.Table:
    """Return a table in which cells of a column are missing that codes stand for."""
    place = table.column_names.index(name)
    column, kind = table.column(name), table.schema.field(name).type
    fitting = []
    for code in codes:
        with contextlib.suppress(pa.ArrowInvalid, OverflowError):
            fitting.append(pa.scalar(code).cast(kind).as_py())
    found = pc.is_in(column, value_set=pa.array(fitting, kind))
    kept = pc.if_else(found, pa.scalar(None, kind), column)
    return table.set_column(place, table.schema.field(name).with_nullable(True), kept)


def _canonical(column: pa.ChunkedArray, *, as_missing: bool) -> pa.ChunkedArray:
    """Return floats without negative zeros, with one NaN or none; the same ones if they are so."""
    values = column.to_numpy()
    odd = np.isnan(values)
    if not odd.any() and not (np.signbit(values) & (values == 0)).any():
        return column
    missing = column.is_null()
    found = pa.chunked_array([pa.array(np.where(odd, np.nan, values + 0.0), column.type)])
    if as_missing:
        missing = pc.or_(missing, pa.chunked_array([pa.array(odd)]))
    return pc.if_else(missing, pa.scalar(None, column.type), found)


def open_source(
    source: str | os.PathLike[str] | Place | Sequence[str | os.PathLike[str] | Place],
    storage_options: Mapping[str, Any] | None = None,
    cast: Mapping[str, Any] | None = None,
) -> Source:
    """Look at the files of a source: their schemas and row groups, no data.

    Parameters
    ----------
    source : path, URL or list of them
        Parquet files, directories of them, or patterns such as ``"data/2024-*.parquet"``. Files
        and directories whose names start with ``_`` or ``.`` are passed over, as everywhere; any
        other file that is not parquet is an error.
        Directories that are named like ``region=north`` give a column, which is a number if all
        are whole numbers. Files of a directory or pattern are read in natural order, and those of
        a list in its order.
    storage_options : dict, optional
        For the file system of URLs.
    cast : dict, optional
        Types by column, as Arrow names them, such as ``{"price": "float64"}``: what cannot be
        masked as it is, like decimals, or differs between files. Values that would change are an
        error.

    Examples
    --------
    >>> import tempfile, pathlib, pandas as pd
    >>> from sdc_dask.release.source import open_source
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> frame = pd.DataFrame({"age": [30, 40], "region": ["north", "south"]})
    >>> frame.to_parquet(folder / "survey", partition_cols=["region"])
    >>> open_source(folder / "survey", cast={"age": "float64"}).schema.names
    ['age', 'region']
    """
    casts = cast_types(cast)
    places = asked_places(source, storage_options)
    files = source_files(places)
    footers = _footers(files)
    found = variants([file.place.url for file in files], [each.schema for each in footers])
    for each in found:
        names = each.schema.names
        double = sorted({name for name in names if names.count(name) > 1})
        if double:
            raise SdcValueError(
                f"column names occur more than once: {', '.join(double)}. Rename them."
            )
    check_casts(found, casts)
    schema, notes = unify(found, casts)
    schema = _with_levels(schema, files, casts)
    arguments.existing(pd.DataFrame(columns=schema.names), list(casts), "cast", "the source")
    plain = pa.schema(list(schema))
    pieces: list[Piece] = []
    for file, footer in zip(files, footers, strict=True):
        is_plain = not file.levels and footer.schema.equals(plain)
        form = None if is_plain else Form(plain, _values(file, plain))
        pieces.extend(_pieces(file.place, footer, form))
    states = tuple(file.state for file in files)
    return Source(called(places), schema, tuple(pieces), states, tuple(places), notes)


# Columns that directories give


def _with_levels(
    schema: pa.Schema, files: Sequence[SourceFile], casts: Mapping[str, pa.DataType]
) -> pa.Schema:
    """Add the columns that names of directories give, with types as pyarrow finds them."""
    names = [name for name, _ in files[0].levels]
    for file in files:
        others = [name for name, _ in file.levels]
        if others != names:
            raise SdcValueError(
                f"file {file.place.url!r} lies in directories of {_listed(others)}, and file "
                f"{files[0].place.url!r} in those of {_listed(names)}: all files of a source must "
                "have the same levels (name=value) in the same order."
            )
    for position, name in enumerate(names):
        texts = {file.levels[position][1] for file in files} - {None}
        is_whole = texts and all(re.fullmatch(r"-?[0-9]+", str(text)) for text in texts)
        # Like pyarrow: numbers of 32 bits, or else texts.
        fits = is_whole and all(-(2**31) <= int(str(text)) < 2**31 for text in texts)
        if name not in schema.names:
            kind = casts.get(name, pa.int32() if fits else pa.string())
            schema = schema.append(pa.field(name, kind))
        elif pa.types.is_dictionary(schema.field(name).type):
            plain = pa.field(name, schema.field(name).type.value_type)
            schema = schema.set(schema.names.index(name), plain)
    return schema


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if names else "no column"


def _values(file: SourceFile, schema: pa.Schema) -> dict[str, pa.Scalar]:
    """Return the values of columns that the names of a file's directories give."""
    values = {}
    for name, text in file.levels:
        kind = schema.field(name).type
        try:
            values[name] = pa.scalar(text, pa.string()).cast(kind)
        except pa.ArrowException:
            raise SdcValueError(
                f"column {name!r} is of type {kind}, and the name of the directory of file "
                f"{file.place.url!r} gives none: rename it, or cast the column to string."
            ) from None
    return values


def _check_level(column: pa.ChunkedArray, level: pa.Scalar, name: str, file: str) -> None:
    """Raise ValueError unless a file has the value that its directory has."""
    if level.is_valid:
        same = pc.all(pc.fill_null(pc.equal(column, level), False), min_count=0).as_py()
    else:
        same = column.null_count == len(column)
    if not same:
        raise SdcValueError(
            f"column {name!r} of file {file!r} has other values than the name of its directory: "
            "rename the directory, or write the file without the column."
        )


# Reading


@dataclass(frozen=True)
class _Footer:
    """What is needed of a footer; the rest of it may be large."""

    schema: pa.Schema
    groups: tuple[tuple[int, int], ...]  # rows and bytes, uncompressed


def _footers(files: Sequence[SourceFile]) -> list[_Footer]:
    if files[0].place.is_local:
        return [_footer(file) for file in files]
    pool = ThreadPoolExecutor(_FOOTERS)
    try:
        return list(pool.map(_footer, files))
    finally:
        pool.shutdown(cancel_futures=True)


def _footer(file: SourceFile) -> _Footer:
    place = file.place
    with _opened(place.url, None if place.is_local else place) as opened:
        metadata = opened.metadata
        groups = [metadata.row_group(number) for number in range(metadata.num_row_groups)]
        return _Footer(
            metadata.schema.to_arrow_schema(),
            tuple((group.num_rows, group.total_byte_size) for group in groups),
        )


@contextlib.contextmanager
def _opened(path: str, place: Place | None) -> Iterator[pq.ParquetFile]:
    with _named_errors(path, place):
        if place is None:
            with pq.ParquetFile(path) as file:
                yield file
        else:
            with place.open() as raw, pq.ParquetFile(raw, pre_buffer=True) as file:
                yield file


@contextlib.contextmanager
def _named_errors(path: str, place: Place | None) -> Iterator[None]:
    """Name the file that cannot be read, and leave out what was found in it."""
    try:
        yield
    except SdcError:
        raise
    except Exception as error:
        is_arrows = isinstance(error, pa.ArrowException) or (
            type(error) is OSError and error.errno is None
        )
        if is_arrows:
            raise SdcValueError(
                f"file {path!r} cannot be read as parquet ({type(error).__name__}): it is "
                "truncated, corrupt or of another kind."
            ) from None
        if place is not None:
            raise SdcRuntimeError(
                f"file {path!r} cannot be read ({place.reason(error)})."
            ) from None
        if not isinstance(error, OSError):
            raise
        reason = os.strerror(error.errno) if error.errno else type(error).__name__
        raise SdcValueError(f"file {path!r} cannot be read ({reason}).") from None


def _pieces(place: Place, footer: _Footer, form: Form | None) -> list[Piece]:
    def piece() -> Piece:
        where = None if place.is_local else place
        return Piece(place.url, tuple(groups), rows, size, where, form)

    pieces: list[Piece] = []
    groups: list[int] = []
    size = rows = 0
    for number, (group_rows, group_size) in enumerate(footer.groups):
        if groups and size + group_size > PIECE_BYTES:
            pieces.append(piece())
            groups, size, rows = [], 0, 0
        groups.append(number)
        size += group_size
        rows += group_rows
    if groups or not pieces:
        pieces.append(piece())
    return pieces


def _read_frame(piece: Piece, numbers: list[str], others: list[str]) -> pd.DataFrame:
    table = piece.read([*numbers, *others], by=others, masked=numbers)
    piece.check_texts(table, [*numbers, *others])
    return to_pandas(table, numbers, others)


def to_pandas(table: pa.Table, numbers: list[str], others: list[str]) -> pd.DataFrame:
    """Return columns of a table as a frame with Arrow types; `others` may have categories."""
    arrays = {name: table.column(name) for name in numbers}
    for name in others:
        column = table.column(name)
        is_coded = pa.types.is_dictionary(column.type)
        arrays[name] = column.cast(column.type.value_type) if is_coded else column
    return pa.table(arrays).to_pandas(types_mapper=pd.ArrowDtype, ignore_metadata=True)
