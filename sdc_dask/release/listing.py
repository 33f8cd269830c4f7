"""The files of a source: those of a directory, a pattern or a list, in order, and their state."""

from __future__ import annotations

import glob
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from sdc_dask.errors import SdcFileNotFoundError, SdcTypeError, SdcValueError
from sdc_dask.release.places import Place
from sdc_dask.results import several

_WILD = frozenset("*?[")

# What shows in various stores whether a file is the same one, best first.
_MARKS = (
    ("ETag", "etag"),
    ("VersionId", "version_id", "generation"),
    ("LastModified", "last_modified", "mtime", "updated", "created"),
)

# The directory of records without a value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"

_DASK = "dask.dataframe.{}({}).to_parquet('parquet', write_index=False)"
_PANDAS = "pandas.{}({}).to_parquet('data.parquet', index=False)"

# How files of other kinds become parquet, by how their names end.
_CONVERSIONS = {
    (".csv", ".csv.gz", ".csv.zip", ".csv.bz2", ".csv.xz", ".csv.zst", ".tsv"): _DASK.format(
        "read_csv", "'*.csv', dtype={'age': 'int64', 'income': 'float64', 'region': 'string'}"
    ),
    (".json", ".json.gz", ".jsonl", ".ndjson"): _DASK.format("read_json", "'*.json', lines=True"),
    (".orc",): _DASK.format("read_orc", "'*.orc'"),
    (".xlsx", ".xls", ".ods"): _PANDAS.format("read_excel", "'data.xlsx'"),
    (".sas7bdat", ".xpt"): _PANDAS.format("read_sas", "'data.sas7bdat'"),
    (".sav", ".zsav"): _PANDAS.format("read_spss", "'data.sav'"),
    (".dta",): _PANDAS.format("read_stata", "'data.dta'"),
    (".feather", ".arrow"): _PANDAS.format("read_feather", "'data.feather'"),
}


_PACKED = (".gz", ".zip", ".bz2", ".xz", ".zst")


@dataclass(frozen=True)
class FileState:
    """What shows whether a file is the one that was opened."""

    path: str
    size: int
    mark: str  # time and inode of a local file; what the store has of another

    @classmethod
    def of(cls, place: Place, info: Mapping[str, Any] | None = None) -> FileState:
        """Look at a file, or at what a store says of it."""
        if info is None:
            state = os.stat(place.path)
            return cls(place.path, state.st_size, f"{state.st_mtime_ns} {state.st_ino}")
        marks = [
            next((str(info[name]).strip('"') for name in names if info.get(name)), "")
            for names in _MARKS
        ]
        # A time of the store says less than its tag, and is rounded in another way in each answer.
        return cls(place.url, int(info["size"] or 0), " ".join(marks[:2]).strip() or marks[2])


@dataclass(frozen=True)
class SourceFile:
    """A file of a source.

    Attributes
    ----------
    place : Place
    state : FileState
    levels : tuple
        Columns and values that directories give it, as in ``region=north/part.parquet``; a value
        is None if it is missing. Such names are in the paths that messages show: they are values
        of many records, known to whoever can list the directory.
    """

    place: Place
    state: FileState
    levels: tuple[tuple[str, str | None], ...]


def asked_places(source: Any, storage_options: Mapping[str, Any] | None = None) -> list[Place]:
    """Return the places of a path, a URL, a pattern of them, or a list of any of these."""
    if isinstance(source, (list, tuple)):
        if not source:
            raise SdcValueError("source is an empty list: name a file at least.")
        return [Place.of(each, storage_options) for each in source]
    if not isinstance(source, (str, os.PathLike, Place)):
        raise SdcTypeError(
            f"source must be a path, a URL or a list of them, received {type(source).__name__}."
        )
    return [Place.of(source, storage_options)]


def called(places: Sequence[Place]) -> str:
    """Return what a source is called in messages."""
    others = len(places) - 1
    return repr(places[0].url) + (f" and {others:,} others" if others else "")


def source_files(places: Sequence[Place]) -> list[SourceFile]:
    """Return all files of a source, as they are now: natural order within each place.

    Files and directories whose names start with ``_`` or ``.`` are passed over, as everywhere,
    unless they are named. Any other file that is not parquet is an error: its records would be
    missing, and nobody would know.
    """
    files = [file for place in places for file in _files_of(place)]
    _check_once(files)
    return files


def _files_of(place: Place) -> list[SourceFile]:
    info = None if place.is_local else place.info()
    if os.path.isdir(place.path) if place.is_local else info and info["type"] == "directory":
        return _in_directory(place)
    if os.path.exists(place.path) if place.is_local else info:
        _refuse_kinds([place.name], place)
        return [_file(place, base_of(place.parent.path), info)]
    if _WILD & set(place.path):
        return _matching(place)
    raise SdcFileNotFoundError(f"source {place.url!r} does not exist.")


def _in_directory(directory: Place) -> list[SourceFile]:
    """Return the parquet files below a directory."""
    below: dict[str, Mapping[str, Any] | None] = (
        dict.fromkeys(_walk(directory)) if directory.is_local else {**directory.files()}
    )
    seen = [name for name in below if not _is_hidden(name)]
    names = [name for name in seen if is_parquet(name)]
    if not names:
        _refuse_kinds(seen, directory)
    _refuse_others(seen, directory)
    if not names:
        raise SdcFileNotFoundError(
            f"source {directory.url!r} holds no parquet file (*.parquet, *.parq)."
        )
    base = base_of(directory.path)
    return [_file(directory / name, base, below[name]) for name in sorted(names, key=_natural)]


def _walk(directory: Place) -> list[str]:
    root = Path(directory.path)
    return [path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir()]


def _matching(pattern: Place) -> list[SourceFile]:
    """Return the files that match a pattern, and those in directories that do."""
    found: dict[str, Any]
    if pattern.is_local:
        found = dict.fromkeys(glob.glob(pattern.path, recursive=True))
    else:
        with pattern.errors():
            pattern.fs.invalidate_cache()
            found = pattern.fs.glob(pattern.path, detail=True)
    fixed = pattern.path[: min(pattern.path.index(sign) for sign in _WILD & set(pattern.path))]
    above = fixed.rpartition("/")[0]
    files: dict[str, SourceFile] = {}  # once, even if its directory matches, too
    others = []
    for path in sorted(found, key=_natural):
        place, info = pattern.at(path.rstrip("/")), found[path]
        if _is_hidden(place.path.removeprefix(above).lstrip("/")):
            continue
        is_directory = os.path.isdir(path) if info is None else info["type"] == "directory"
        if is_directory:
            inner = _files_if_any(place)
            matches = [_file(each.place, base_of(above), state=each.state) for each in inner]
        elif is_parquet(place.name):
            matches = [_file(place, base_of(above), info)]
        else:
            others.append(path)
            continue
        files |= {file.place.path: file for file in matches}
    if not files:
        _refuse_kinds(list(found), pattern)
        raise SdcFileNotFoundError(
            f"source {pattern.url!r} matches no parquet file (*.parquet, *.parq)."
        )
    _refuse_others(others, pattern)
    return list(files.values())


def _files_if_any(directory: Place) -> list[SourceFile]:
    try:
        return _in_directory(directory)
    except SdcFileNotFoundError:
        return []


def _file(
    place: Place,
    base: str,
    info: Mapping[str, Any] | None = None,
    state: FileState | None = None,
) -> SourceFile:
    levels = _levels(place, base)
    return SourceFile(place, FileState.of(place, info) if state is None else state, levels)


def base_of(directory: str) -> str:
    """Return the directory above those that are named like ``region=north``."""
    while _is_level(directory.rpartition("/")[2]):
        directory = directory.rpartition("/")[0]
    return directory


def _is_level(name: str) -> bool:
    return name.find("=") > 0


def levels_of(directory: str) -> tuple[tuple[str, str | None], ...]:
    """Return columns and values of directories in a path."""
    pairs = [part.partition("=") for part in directory.split("/") if _is_level(part)]
    return tuple(
        (unquote(key), None if value == NO_VALUE else unquote(value)) for key, _, value in pairs
    )


def _levels(place: Place, base: str) -> tuple[tuple[str, str | None], ...]:
    """Return columns and values of the directories between a base and a file."""
    levels = levels_of(place.parent.path.removeprefix(base))
    names = [name for name, _ in levels]
    if len(set(names)) < len(names):
        raise SdcValueError(
            f"file {place.url!r} lies in two directories of one column: each of "
            f"{', '.join(sorted(set(names)))} must be a level of its own."
        )
    return levels


def _is_hidden(name: str) -> bool:
    *directories, last = name.split("/")
    return last.startswith(("_", ".")) or any(
        part.startswith(".") or (part.startswith("_") and not _is_level(part))
        for part in directories
    )


def is_parquet(file: str | os.PathLike[str]) -> bool:
    """Whether a file's name is that of a parquet file."""
    return os.fspath(file).lower().endswith((".parquet", ".parq"))


def _refuse_others(names: Sequence[str], place: Place) -> None:
    """Raise ValueError if there are other files than parquet, which would be passed over."""
    endings = Counter(_ending(name) for name in names if not is_parquet(name))
    if not endings:
        return
    listed = ", ".join(f"{ending}: {count:,}" for ending, count in sorted(endings.items())[:5])
    raise SdcValueError(
        f"source {place.url!r} has {several(endings.total(), 'file')} not named *.parquet or "
        f"*.parq ({listed}{', ...' if len(endings) > 5 else ''}), and their records would be "
        "missing: convert or unpack them if they are data, or else remove them, or name the "
        "parquet files alone, by a list or by a pattern such as 'data/**/*.parquet'."
    )


def _ending(name: str) -> str:
    """Return how a name ends, with what was packed."""
    *others, last = ["", *Path(name).suffixes]
    return (others[-1] + last if last.lower() in _PACKED else last) or "no ending"


def _refuse_kinds(names: Sequence[str], place: Place) -> None:
    """Raise ValueError if there are files of a kind that must be converted."""
    for ends, line in _CONVERSIONS.items():
        count = sum(name.lower().endswith(ends) for name in names)
        if count:
            raise SdcValueError(
                f"source {place.url!r} is of another kind ({ends[0]}), and only parquet is read, "
                f"since it has types that are declared. Convert it once, for instance by\n    "
                f"{line}\nand name the result as the source."
            )


def _check_once(files: Sequence[SourceFile]) -> None:
    """Raise an error if a file was named twice, under whatever names."""
    counts = Counter(
        os.path.realpath(file.place.path) if file.place.is_local else file.place.url
        for file in files
    )
    path, count = counts.most_common(1)[0]
    if count > 1:
        raise SdcValueError(
            f"file {path!r} is in the source {count} times: its records would be, too. Name every "
            "file once."
        )


def _natural(text: str) -> list[str | int]:
    """Return what puts part.2 before part.10, as Dask reads files: it numbers them like that."""
    return [int(part) if part.isdecimal() else part for part in re.split(r"(\d+)", text)]
