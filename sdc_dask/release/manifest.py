"""What a release says of itself: its files, what was masked, and what was counted on the files.

The public part lies in the release, and a directory without a complete one is no release. It holds
nothing that is not in the files or in the documentation of a masking, and never a seed. What else
is known of the run stays with whoever made it: see :class:`~sdc_dask.release.summary.Summary`.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pyarrow as pa

from sdc_dask.errors import SdcFileNotFoundError, SdcValueError

# Readers of parquet data sets pass over names that begin with an underscore.
NAME = "_manifest.json"
FORMAT = 1  # one more when a manifest of now would mean something else
_PACKAGES = ("sdc_dask", "numpy", "pandas", "pyarrow")


@dataclass(frozen=True)
class ReleasedFile:
    """A file of a release."""

    name: str
    rows: int
    size: int  # bytes
    sha256: str


@dataclass(frozen=True)
class Promise:
    """Columns in which every class of equal records has k at least, and what was counted."""

    columns: tuple[str, ...]
    k: int
    smallest: int
    classes: int


@dataclass(frozen=True)
class MatchPromise:
    """Columns in which k records match each, where a missing cell matches any value.

    What was counted: how many match at least, and how many are equal in the smallest class.
    """

    columns: tuple[str, ...]
    k: int
    smallest: int
    smallest_class: int


@dataclass(frozen=True)
class Manifest:
    """The public part of what is known of a release.

    Attributes
    ----------
    rows : int
    files : tuple of ReleasedFile
    schema : dict
        Types of columns, as Arrow names them, by column and in order.
    specs : tuple of dict
        What was masked, and how.
    promises : tuple of Promise
        Classes of equal records, counted on the files.
    matches : tuple of MatchPromise
        Records that match, counted on the files.
    written : str
        When, in UTC.
    versions : dict
        Of what wrote it.
    partition_by : tuple of str
        Columns that are in the paths of files, and not in the files.
    log : ReleasedFile or None
        What makes a Delta table of the files, if it was asked for.
    """

    rows: int
    files: tuple[ReleasedFile, ...]
    schema: Mapping[str, str]
    specs: tuple[Mapping[str, Any], ...]
    promises: tuple[Promise, ...]
    written: str
    versions: Mapping[str, str]
    partition_by: tuple[str, ...] = ()
    log: ReleasedFile | None = None
    matches: tuple[MatchPromise, ...] = ()

    @classmethod
    def of(
        cls,
        files: Sequence[ReleasedFile],
        schema: pa.Schema,
        specs: Sequence[Mapping[str, Any]],
        promises: Sequence[Promise],
        partition_by: Sequence[str] = (),
        log: ReleasedFile | None = None,
        matches: Sequence[MatchPromise] = (),
    ) -> Manifest:
        """Describe files that were just written."""
        return cls(
            sum(file.rows for file in files),
            tuple(files),
            types_of(schema),
            tuple(specs),
            tuple(promises),
            datetime.now(UTC).isoformat(timespec="seconds"),
            {"python": platform.python_version()} | {name: version(name) for name in _PACKAGES},
            tuple(partition_by),
            log,
            tuple(matches),
        )

    @property
    def everything(self) -> tuple[ReleasedFile, ...]:
        """All that lies in a release besides the manifest itself."""
        return (*self.files, *([self.log] if self.log else []))

    @property
    def stored(self) -> dict[str, str]:
        """Types of the columns that are in the files."""
        return {name: kind for name, kind in self.schema.items() if name not in self.partition_by}

    def text(self) -> str:
        """Return it as JSON, with a checksum of itself."""
        values = {"format": FORMAT, **asdict(self)}
        return json.dumps(values | {"sha256": _digest(values)}, indent=1, ensure_ascii=False) + "\n"

    def write(self, directory: Path) -> None:
        """Write it into a directory, so that it lasts."""
        with (directory / NAME).open("x", encoding="utf-8") as file:
            file.write(self.text())
            file.flush()
            os.fsync(file.fileno())

    @classmethod
    def read(cls, directory: Path) -> Manifest:
        """Read the manifest of a release; raise an error if there is none, or not a whole one."""
        path = directory / NAME
        try:
            return cls.parse(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise no_manifest(str(directory)) from None
        except OSError as error:
            raise _unreadable(str(path), error) from None

    @classmethod
    def parse(cls, text: str | bytes, where: str) -> Manifest:
        """Make a manifest from what :meth:`text` returned; raise an error unless it is whole."""
        try:
            values = json.loads(text)
        except ValueError as error:
            raise _unreadable(where, error) from None
        return cls._from(values, where)

    @classmethod
    def _from(cls, values: Any, where: str) -> Manifest:
        number = values.get("format") if isinstance(values, dict) else None
        if isinstance(number, int) and number > FORMAT:
            raise SdcValueError(
                f"{where!r} has format {number}, and this version of sdc_dask reads up to "
                f"{FORMAT}: upgrade it."
            )
        digest = values.pop("sha256", None) if isinstance(values, dict) else None
        if number != FORMAT or digest != _digest(values):
            raise SdcValueError(
                f"{where!r} was changed after it was written, or is of another kind: its "
                "checksum does not fit."
            )
        return cls(
            values["rows"],
            tuple(ReleasedFile(**each) for each in values["files"]),
            values["schema"],
            tuple(values["specs"]),
            tuple(
                Promise(**{**each, "columns": tuple(each["columns"])})
                for each in values["promises"]
            ),
            values["written"],
            values["versions"],
            tuple(values.get("partition_by", ())),
            ReleasedFile(**values["log"]) if values.get("log") else None,
            tuple(
                MatchPromise(**{**each, "columns": tuple(each["columns"])})
                for each in values.get("matches", ())
            ),
        )


def no_manifest(directory: str) -> SdcFileNotFoundError:
    """Return the error of a directory without a manifest."""
    return SdcFileNotFoundError(
        f"{directory!r} has no {NAME}: it is no release of sdc_dask, or not a complete one."
    )


def _unreadable(where: str, error: Exception) -> SdcValueError:
    return SdcValueError(
        f"{where!r} cannot be read ({type(error).__name__}): it is truncated or of another kind."
    )


def types_of(schema: pa.Schema) -> dict[str, str]:
    """Return the types of columns as texts."""
    return {field.name: str(field.type) for field in schema}


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _digest(values: Mapping[str, Any]) -> str:
    text = json.dumps(values, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()
