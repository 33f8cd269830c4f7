"""Where files lie: a local path, or a URL of any store that fsspec knows."""

from __future__ import annotations

import contextlib
import io
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import fsspec  # type: ignore[import-untyped]
from fsspec.registry import known_implementations  # type: ignore[import-untyped]

from sdc_dask import extras
from sdc_dask.errors import (
    SdcError,
    SdcFileNotFoundError,
    SdcImportError,
    SdcRuntimeError,
    SdcTypeError,
    SdcValueError,
)

# Options that may be shown where a store cannot be reached; any other may be a secret.
_SHOWN = {"account_name", "endpoint_url", "host", "port", "project", "region_name"}

_LONG = 5  # digits from which on a number may be a secret: True and 300 are in any text

_PROTOCOL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)(://|::)")
_LOST_SLASH = re.compile(r"([a-z][a-z0-9]+):/[^/]")

_LOCAL = ("file", "local")


def _protocol(where: Any) -> str:
    """Return the protocol of a URL, or that of a path."""
    found = _PROTOCOL.match(where) if isinstance(where, str) else None
    return found[1].lower() if found else "file"


def is_remote(where: Any) -> bool:
    """Whether something is a URL of what is not a disk; whether it can be used is not looked at."""
    return not where.is_local if isinstance(where, Place) else _protocol(where) not in _LOCAL


@dataclass(frozen=True, repr=False)
class Place:
    """A file, directory or prefix: on this machine, or in a store that fsspec knows.

    It can be sent to workers, with the options by which the store is reached. These are never
    shown: neither by its text nor by errors.

    Attributes
    ----------
    protocol : str
        ``"file"`` for local paths.
    path : str
        As the file system has it; a local path is absolute.
    fs : fsspec.AbstractFileSystem

    Examples
    --------
    >>> from sdc_dask.release.places import Place
    >>> place = Place.of("memory://office/survey")
    >>> (place / "part.parquet").url, place.name, place.parent.url, place.is_local
    ('memory://office/survey/part.parquet', 'survey', 'memory://office', False)
    """

    protocol: str
    path: str
    fs: Any

    @classmethod
    def of(
        cls,
        where: str | os.PathLike[str] | Place,
        storage_options: Mapping[str, Any] | None = None,
    ) -> Place:
        """Return the place of a path or URL; nothing is looked at yet.

        Parameters
        ----------
        where : path, URL or Place
            A path is that of this machine; ``s3://``, ``gs://``, ``abfs://``, ``memory://`` and
            others are what fsspec makes of them.
        storage_options : dict, optional
            For the file system of a URL, such as ``key``, ``secret`` and ``endpoint_url``.
        """
        if isinstance(where, Place):
            if storage_options:
                raise SdcValueError("storage_options go with a path or URL, not with a Place.")
            return where
        if storage_options is not None and not isinstance(storage_options, Mapping):
            raise SdcTypeError(
                f"storage_options must be a dict, received {type(storage_options).__name__}."
            )
        if not isinstance(where, (str, os.PathLike)) or isinstance(where, bytes):
            frame = hasattr(where, "to_parquet")
            instead = ": write the frame by to_parquet, or use df.sdc.mask" if frame else ""
            raise SdcTypeError(
                f"a path or URL must be a text, received {type(where).__name__}{instead}."
            )
        text, protocol = os.fspath(where), _protocol(where)
        if protocol in ("file", "local", "memory") and storage_options:
            raise SdcValueError(
                f"storage_options have no meaning for {text!r}: they are for stores such as s3://."
            )
        if protocol in _LOCAL:
            return cls._local(text)
        return cls._remote(text, protocol, dict(storage_options or {}))

    @classmethod
    def _local(cls, text: str) -> Place:
        lost = _LOST_SLASH.match(text)
        if lost and lost[1] in known_implementations and lost[1] not in ("file", "local"):
            raise SdcValueError(
                f"{text!r} was a URL before it was made a path: pass URLs as texts, such as "
                f"'{lost[1]}://bucket/name'."
            )
        for protocol in ("file://", "local://"):
            text = text.removeprefix(protocol)
        if not text:
            raise SdcValueError("a path or URL must not be empty.")
        return cls("file", str(Path(text).absolute()), fsspec.filesystem("file"))

    @classmethod
    def _remote(cls, text: str, protocol: str, options: dict[str, Any]) -> Place:
        shown = _without_secrets(text)
        if protocol not in fsspec.available_protocols():
            raise SdcValueError(
                f"{shown!r} has the protocol {protocol!r}, which fsspec does not know: name a "
                "path, or a URL such as 's3://bucket/name'."
            )
        try:
            fs, path = fsspec.core.url_to_fs(text, **options)
        except ImportError:
            raise _not_installed(protocol, shown) from None
        except Exception as error:
            raise SdcValueError(
                f"{shown!r} cannot be used as a URL with these storage_options "
                f"({_reason(error, options)})."
            ) from None
        if re.match(r"[^/]*:[^/]*@", path):
            raise SdcValueError(
                f"{shown!r} was given with a user and a password, which {protocol}:// does not "
                "take from a URL: pass them as storage_options."
            )
        return cls(protocol, path.rstrip("/") if path.strip("/") else path, fs)

    @property
    def is_local(self) -> bool:
        """Whether it is a path of this machine."""
        return self.protocol == "file"

    @property
    def url(self) -> str:
        """What it is called in messages: without user, password and query; a path if local."""
        if self.is_local:
            return self.path
        if "://" in self.path:
            return _without_secrets(self.path)
        return f"{self.protocol}://{self.path.lstrip('/')}"

    @property
    def name(self) -> str:
        """The last part of its path."""
        return self.path.rpartition("/")[2]

    @property
    def parent(self) -> Place:
        """What it lies in."""
        if self.is_local:
            return self.at(str(Path(self.path).parent))
        return self.at(self.path.rpartition("/")[0])

    def at(self, path: str) -> Place:
        """Return another place of the same file system, by its path there."""
        return Place(self.protocol, path, self.fs)

    def __truediv__(self, name: str) -> Place:
        return self.at(f"{self.path.rstrip('/')}/{name}")

    def __repr__(self) -> str:
        return f"Place({self.url!r})"

    def info(self) -> dict[str, Any] | None:
        """Return what the file system knows of it now, or None if there is nothing."""
        with self.errors():
            self.fs.invalidate_cache()
            try:
                return self.fs.info(self.path)
            except FileNotFoundError:
                return None

    def files(self) -> dict[str, dict[str, Any]]:
        """Return what is known of all files below it, by their paths from here."""
        with self.errors():
            self.fs.invalidate_cache()
            below = self.path.rstrip("/") + "/"
            try:
                found = self.fs.find(self.path, detail=True)
            except FileNotFoundError:
                return {}
        return {
            name.removeprefix(below): info
            for name, info in found.items()
            if name.startswith(below) and name != below
        }

    def open(self) -> IO[bytes]:
        """Open a file to read ranges of it, each from the store: whoever reads knows which."""
        if self.protocol == "memory":
            # The file system gives all readers one object, which has one position.
            return io.BytesIO(self.fs.cat_file(self.path))
        options = {"cache_type": "none"} if self.fs.async_impl else {}
        return self.fs.open(self.path, "rb", **options)

    @contextlib.contextmanager
    def errors(self) -> Iterator[None]:
        """Say in one sentence what a store answered; its errors may hold credentials."""
        try:
            yield
        except SdcError:
            raise
        except FileNotFoundError:
            raise SdcFileNotFoundError(f"{self.url!r} does not exist.") from None
        except TypeError as error:
            raise SdcValueError(
                f"storage_options of {self.url!r} were not accepted ({self.reason(error)})."
            ) from None
        except Exception as error:
            raise SdcRuntimeError(
                f"{self.url!r} cannot be reached ({self.reason(error)}). Look at its name, at "
                "storage_options and at your permissions."
            ) from None

    def reason(self, error: Exception) -> str:
        """Return the kind of an error and its text, without what may be a secret."""
        return _reason(error, self.fs.storage_options)


def _not_installed(protocol: str, shown: str) -> SdcImportError:
    """Return the error for a protocol whose package is missing."""
    known = known_implementations.get(protocol, {})
    package = known.get("class", "").partition(".")[0]
    if package and package != "fsspec":
        return extras.missing(package, repr(shown))
    why = known.get("err", "see the documentation of fsspec")
    return SdcImportError(f"{shown!r} needs a package that is not installed: {why}.")


def _reason(error: Exception, options: Mapping[str, Any]) -> str:
    text = " ".join(str(error).split())
    for secret in sorted(_secrets(options), key=len, reverse=True):
        text = text.replace(secret, "***")
    text = _without_secrets(text)
    return f"{type(error).__name__}: {text[:200]}" if text else type(error).__name__


def _secrets(options: Any) -> Iterator[str]:
    """Give all texts among options that may be secret."""
    if isinstance(options, Mapping):
        for name, value in options.items():
            if name not in _SHOWN:
                yield from _secrets(value)
    elif isinstance(options, (list, tuple)):
        for value in options:
            yield from _secrets(value)
    elif isinstance(options, str) and options:
        yield options
    elif isinstance(options, (int, float)) and len(str(options)) >= _LONG:
        yield str(options)


def _without_secrets(text: str) -> str:
    """Take users, passwords and queries out of the URLs in a text."""
    text = re.sub(r"://[^/@\s]*:[^/@\s]*@", "://", text)
    return re.sub(r"(https?://[^\s?]*)\?[^\s\"']*", r"\1", text)
