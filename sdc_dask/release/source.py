"""Parquet input as a list of pieces: a few row groups of one file each."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sdc_dask.engine.frames import Frame, frame_of
from sdc_dask.errors import SdcFileNotFoundError, SdcRuntimeError, SdcValueError

# Uncompressed size of a piece: a worker holds it, its copy with new values, and what it re-read.
PIECE_BYTES = 32 * 2**20

_UNNAMED_INDEX = re.compile(r"__null_dask_index__|__index_level_\d+__")


@dataclass(frozen=True)
class Piece:
    """Some row groups of a parquet file: one partition."""

    path: str
    row_groups: tuple[int, ...]
    rows: int

    def read(
        self, columns: Sequence[str] | None = None, *, by: Sequence[str], masked: Sequence[str]
    ) -> pa.Table:
        """Read columns as an Arrow table, all by default: those that are not masked in one form.

        Zero has no sign, and a number that is none has one pattern of bits: both could mark a
        record. In the columns of `by`, which are compared, it is a missing cell. Floats within
        lists and structs stay as they are.
        """
        with _named_errors(self.path), pq.ParquetFile(self.path) as file:
            table = file.read_row_groups(
                list(self.row_groups), columns=columns, use_threads=False, use_pandas_metadata=False
            )
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
class FileState:
    """What tells whether a file is the one that was opened."""

    path: str
    size: int
    changed: int  # nanoseconds
    number: int  # of its inode

    @classmethod
    def of(cls, path: Path) -> FileState:
        """Look at a file."""
        state = path.stat()
        return cls(str(path), state.st_size, state.st_mtime_ns, state.st_ino)


@dataclass(frozen=True)
class Source:
    """A parquet file, or a directory of parquet files with one schema."""

    path: Path
    schema: pa.Schema
    pieces: tuple[Piece, ...]
    files: tuple[FileState, ...]

    @property
    def rows(self) -> int:
        """Number of records."""
        return sum(piece.rows for piece in self.pieces)

    def check_unchanged(self) -> None:
        """Raise RuntimeError if files changed, came or went since the source was opened."""
        found = tuple(FileState.of(file) for file in _files(self.path))
        if found != self.files:
            raise SdcRuntimeError(
                f"files of source {str(self.path)!r} changed, came or went during the run. "
                "Nothing is released: run it again when the source is at rest."
            )

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


def is_parquet(file: Path) -> bool:
    """Whether a file's name is that of a parquet file."""
    return file.suffix in (".parquet", ".parq")


def open_source(path: Path) -> Source:
    """Look at the files of a source: their schemas and row groups, no data.

    Parameters
    ----------
    path : Path
        A parquet file, or a directory of them; files and directories whose names start with
        ``_`` or ``.`` are passed over, as everywhere.
    """
    if not path.exists():
        raise SdcFileNotFoundError(f"source {str(path)!r} does not exist.")
    files = _files(path)
    if not files:
        raise SdcFileNotFoundError(
            f"source {str(path)!r} holds no parquet file (*.parquet, *.parq)."
        )
    states = tuple(FileState.of(file) for file in files)
    schema = None
    pieces: list[Piece] = []
    for file in files:
        with _named_errors(str(file)):
            metadata = pq.read_metadata(file)
        own = metadata.schema.to_arrow_schema()
        if schema is None:
            schema = own
        elif not own.equals(schema):
            raise SdcValueError(
                f"file {str(file)!r} has another schema than {str(files[0])!r}: all files of a "
                "source must have the same columns and types. Rewrite it, or protect it alone."
            )
        pieces.extend(_pieces(file, metadata))
    assert schema is not None
    double = sorted({name for name in schema.names if schema.names.count(name) > 1})
    if double:
        raise SdcValueError(f"column names occur more than once: {', '.join(double)}. Rename them.")
    return Source(path, schema, tuple(pieces), states)


def _files(directory: Path) -> list[Path]:
    if not directory.is_dir():
        return [directory]
    files = []
    for file in sorted(directory.rglob("*"), key=lambda path: _natural(str(path))):
        parts = file.relative_to(directory).parts
        if file.is_dir() or any(part.startswith(("_", ".")) for part in parts):
            continue
        if any("=" in part for part in parts[:-1]):
            raise SdcValueError(
                f"source {str(directory)!r} is partitioned by directories (name=value), whose "
                "columns are not in the files. Write it without partitioning first."
            )
        if is_parquet(file):
            files.append(file)
    return files


def _natural(text: str) -> list[str | int]:
    """Return what puts part.2 before part.10, as Dask reads files: it numbers them like that."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]


@contextlib.contextmanager
def _named_errors(path: str) -> Iterator[None]:
    """Name the file that cannot be read, and leave out what was found in it."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise SdcValueError(
            f"file {path!r} cannot be read as parquet ({type(error).__name__}): it is truncated, "
            "corrupt or of another kind."
        ) from None


def _pieces(file: Path, metadata: pq.FileMetaData) -> list[Piece]:
    pieces: list[Piece] = []
    groups: list[int] = []
    size = rows = 0
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        if groups and size + group.total_byte_size > PIECE_BYTES:
            pieces.append(Piece(str(file), tuple(groups), rows))
            groups, size, rows = [], 0, 0
        groups.append(number)
        size += group.total_byte_size
        rows += group.num_rows
    if groups or not pieces:
        pieces.append(Piece(str(file), tuple(groups), rows))
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
