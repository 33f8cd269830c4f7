"""Files of a release in directories by values of columns, as in ``region=north``.

Readers take such a column from the path, and pass over directories that they do not need. A path
shows values to whoever lists the release, so that every directory holds at least k records.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.frames import Calls, Task
from sdc_dask.errors import SdcRuntimeError, SdcTypeError, SdcValueError, warn
from sdc_dask.release.listing import NO_VALUE, base_of, levels_of
from sdc_dask.release.manifest import ReleasedFile
from sdc_dask.release.places import Place
from sdc_dask.release.source import Piece, Source

# More are files of a few records each, which no reader likes.
MOST = 1_000

# Fewer records would be a directory for one, if no spec promises more.
FEWEST = 2

_NAME_BYTES = 255  # of a directory, on all usual file systems
_NOT_IN_NAMES = frozenset("=/%\\")  # of columns, which are not encoded

_TEXTS = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
_KINDS = (*_TEXTS, pa.types.is_integer, pa.types.is_boolean, pa.types.is_date32)


@dataclass(frozen=True)
class Directories:
    """The directories of a release, and how many files each has.

    Attributes
    ----------
    columns : tuple of str
        Whose values they are named by; without any, there is one directory that has no name.
    rows : dict
        Records by path from the target, in order of paths.
    files : tuple of int
        By directory.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sdc_dask.release.directories import Directories
    >>> rows = {"region=north": 5, "region=south": 7}
    >>> directories = Directories(("region",), rows, (1, 2))
    >>> directories.of(pa.table({"region": ["south", "north", "south"]}))
    array([1, 0, 1])
    >>> [directories.path_of(file) for file in range(3)]
    ['region=north', 'region=south', 'region=south']
    """

    columns: tuple[str, ...]
    rows: Mapping[str, int]
    files: tuple[int, ...]

    @classmethod
    def one(cls, rows: int, files: int) -> Directories:
        """Return the directory of a release that is not divided."""
        return cls((), {"": rows}, (files,))

    @cached_property
    def begins(self) -> NDArray[np.int64]:
        """Number of the first file of each directory, and of all files."""
        return np.concatenate([[0], np.cumsum(self.files)]).astype(np.int64)

    def of(self, rows: pa.Table) -> NDArray[np.int64]:
        """Return the number of the directory of each row."""
        if not self.columns:
            return np.zeros(rows.num_rows, np.int64)
        codes, paths = _paths(rows, self.columns)
        places = {path: place for place, path in enumerate(self.rows)}
        if not places.keys() >= set(paths):
            raise SdcRuntimeError(
                f"columns {', '.join(self.columns)} have other values than at the start: the "
                "source changed. Nothing is released: run it again when it is at rest."
            )
        return np.array([places[path] for path in paths], np.int64)[codes]

    def path_of(self, file: int) -> str:
        """Return the directory of a file, by the number of the file."""
        return list(self.rows)[int(np.searchsorted(self.begins, file, side="right")) - 1]

    def make(self, parent: Path) -> None:
        """Make them. Workers do not: one that is late must not bring back what was removed."""
        for path in self.rows:
            (parent / path).mkdir(parents=True, exist_ok=True)

    def check(self, files: Sequence[ReleasedFile]) -> None:
        """Raise RuntimeError unless files have the rows that each directory was to get."""
        found: Counter[str] = Counter()
        for file in files:
            found[os.path.dirname(file.name)] += file.rows
        if found != Counter(self.rows):
            raise SdcRuntimeError(
                "directories have other numbers of rows than were counted. Nothing is released."
            )


# Before data is read


def path_columns(
    partition_by: Any,
    schema: pa.Schema,
    *,
    masked: Sequence[str],
    dropped: Sequence[str],
    order: str,
    target: Place,
) -> tuple[str, ...]:
    """Return the columns by whose values there are directories, or raise an error.

    Parameters
    ----------
    partition_by : str, list of str or None
        As given.
    schema : pyarrow.Schema
        Of the source.
    masked, dropped : sequence of str
        Columns that are released in another way, or not at all.
    order : str
        Of rows.
    target : Place
        Where the release goes.
    """
    names = tuple(str(name) for name in arguments.name_list(partition_by, "partition_by"))
    if not names:
        return ()
    arguments.existing(pd.DataFrame(columns=schema.names), names, "partition_by", "the source")
    if len(set(names)) < len(names):
        raise SdcValueError(f"partition_by names a column twice: {', '.join(names)}.")
    for what, others in (("masked", masked), ("dropped", dropped)):
        both = [name for name in names if name in others]
        if both:
            raise SdcValueError(
                f"partition_by names columns that are {what}: {', '.join(both)}. Directories are "
                "by values of columns that are kept: choose another one."
            )
    if order != "random":
        raise SdcValueError(
            f"order={order!r} writes the pieces of the source, and partition_by divides them: "
            "leave out one of the two."
        )
    for name in names:
        _check_name(name)
        _check_type(name, schema.field(name).type)
    above = [name for name, _ in levels_of(target.path.removeprefix(base_of(target.path)))]
    both = [name for name in names if name in above]
    if both:
        raise SdcValueError(
            f"target {target.url!r} lies in a directory of column {both[0]!r}, by which there are "
            "directories in it, too: choose another target."
        )
    return names


def _check_name(name: str) -> None:
    """Raise ValueError if readers would not find a column of this name."""
    if name.startswith(("_", ".")) or not name.isprintable() or _NOT_IN_NAMES & set(name):
        raise SdcValueError(
            f"partition_by names column {name!r}, and readers pass over directories of such a "
            "name, or find another one in it: rename the column in the source. It must not begin "
            "with _ or a dot, nor have one of = / % \\ in it."
        )


def _check_type(name: str, kind: pa.DataType) -> None:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if not any(is_kind(plain) for is_kind in _KINDS):
        raise SdcTypeError(
            f"partition_by names column {name!r}, which is of type {kind}: directories are named "
            "by texts, categories, integers, booleans and days. Read it as another type, as in "
            f"cast={{{name!r}: 'string'}} (--cast), or choose another column."
        )


def level_field(field: pa.Field) -> pa.Field:
    """Return a column as it is when it comes from paths: no categories, and texts of one kind."""
    kind = field.type.value_type if pa.types.is_dictionary(field.type) else field.type
    return pa.field(field.name, pa.string() if any(is_text(kind) for is_text in _TEXTS) else kind)


# Counting


def count_rows(source: Source, columns: Sequence[str], by: Sequence[str]) -> Task:
    """Return the task that counts the records of each directory, by path and in order of paths."""
    call = Calls(lazy=True)
    counts = [call(_count, piece, list(columns), list(by)) for piece in source.pieces]
    return call.merge(counts, _merged)


def divided(
    columns: tuple[str, ...], rows: Mapping[str, int], k: int, files: Callable[[int], int]
) -> Directories:
    """Return the directories of a release; raise ValueError if one is too small.

    Parameters
    ----------
    columns : tuple of str
    rows : dict
        Records by path.
    k : int
        Each must have so many at least.
    files : callable
        Of a number of records, to the number of files that they fill.
    """
    small = sum(count < k for count in rows.values())
    if small:
        raise SdcValueError(
            f"{small:,} of {len(rows):,} directories by {', '.join(columns)} would have fewer than "
            f"{k:,} records, the smallest {min(rows.values()):,}, and a directory shows its values "
            "to whoever lists the release. Name fewer columns in partition_by, or coarser ones, "
            "or leave it out."
        )
    lacking = {name for path in rows for name, value in levels_of(path) if value is None}
    if lacking:
        warn(
            f"records without a value in {', '.join(sorted(lacking))} are in directories that are "
            f"named {NO_VALUE}, which pandas and Dask cannot read with some versions of pyarrow: "
            "pandas.read_parquet(target, partitioning=pyarrow.dataset.partitioning(flavor='hive')) "
            "can."
        )
    return Directories(columns, rows, tuple(files(count) for count in rows.values()))


def _count(piece: Piece, columns: list[str], by: list[str]) -> dict[str, int]:
    table = piece.read(columns, by=by, masked=[])
    piece.check_texts(table, columns)
    codes, paths = _paths(table, columns)
    return dict(zip(paths, np.bincount(codes, minlength=len(paths)).tolist(), strict=True))


def _merged(counts: Sequence[Mapping[str, int]]) -> dict[str, int]:
    total: Counter[str] = Counter()
    for each in counts:
        total.update(each)
    _check_number(len(total))
    return dict(sorted(total.items()))


def _check_number(directories: int) -> None:
    if directories > MOST:
        raise SdcValueError(
            f"partition_by gives more than {MOST:,} directories: name fewer columns, or such as "
            "have fewer values."
        )


# Paths


def _paths(table: pa.Table, columns: Sequence[str]) -> tuple[NDArray[np.int64], list[str]]:
    """Return the path of every row, as a number, and the paths of these numbers."""
    codes = np.zeros(table.num_rows, np.int64)
    paths = [""]
    for name in columns:
        kind = level_field(table.schema.field(name)).type
        coded = table.column(name).cast(kind).combine_chunks().dictionary_encode()
        if isinstance(coded, pa.ChunkedArray):
            coded = coded.unify_dictionaries().combine_chunks()
        _check_number(len(coded.dictionary))
        names = [f"{name}={text}" for text in _texts(coded.dictionary, name)]
        names.append(f"{name}={NO_VALUE}")
        own = coded.indices.fill_null(len(names) - 1).to_numpy(zero_copy_only=False)
        found, codes = np.unique(codes * len(names) + own, return_inverse=True)
        _check_number(len(found))
        pairs = [divmod(each, len(names)) for each in found.tolist()]
        paths = [f"{paths[above]}/{names[below]}".lstrip("/") for above, below in pairs]
    return codes, paths


def _texts(values: pa.Array, name: str) -> list[str]:
    """Return values as parts of a path, encoded as pyarrow does; each must be found in it again."""
    texts = values.cast(pa.string())
    try:
        is_found = texts.cast(values.type).equals(values)
    except pa.ArrowException:
        is_found = False  # the text of the error shows a value
    encoded = [quote(text, safe="") for text in texts.to_pylist()]
    longest = max((len(f"{name}={text}".encode()) for text in encoded), default=0)
    if not is_found or {"", NO_VALUE} & set(encoded) or longest > _NAME_BYTES:
        raise SdcValueError(
            f"column {name!r} of partition_by has values that no directory can be named by, such "
            f"as empty texts, {NO_VALUE}, or texts of more than {_NAME_BYTES} bytes: change them "
            "in the source, or choose another column."
        )
    return encoded


def with_levels(table: pa.Table, path: str, fields: Sequence[pa.Field]) -> pa.Table:
    """Return what a file holds with the columns that its path gives, as readers find them."""
    levels = dict(levels_of(os.path.dirname(path)))
    for field in fields:
        value = pa.scalar(levels[field.name], pa.string()).cast(field.type)
        table = table.append_column(field, pa.repeat(value, table.num_rows))
    return table
