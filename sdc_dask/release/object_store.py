"""A release in a store where nothing can be renamed: there as a whole or not at all.

Files go under a prefix of their own beside the target and are read again from there. When all are
checked, the store copies them to their names, and the manifest is written last: it is the commit.
Without a manifest that names them, objects are no release.

Two runs to one target: the manifest is written on condition that there is none, or the one that
was there, so that one of them wins. A store without conditions is looked at just before instead.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import re
import shutil
import socket
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from sdc_dask.errors import (
    SdcError,
    SdcFileExistsError,
    SdcRuntimeError,
    SdcValueError,
    warn,
)
from sdc_dask.release.manifest import NAME, Manifest, no_manifest
from sdc_dask.release.places import Place
from sdc_dask.release.processes import Process
from sdc_dask.release.signals import publishing

# What is in memory of a file on its way: parts of an upload have 5 MiB at least.
BLOCK_BYTES = 8 * 2**20

# The object that says who writes under a prefix, and since when.
STARTED = "_started.json"

_REQUESTS = 8  # at once

_WEEK = timedelta(days=7)  # longer than a run takes

# Tokens of runs of this process that have not ended.
_running: set[str] = set()

T = TypeVar("T")
R = TypeVar("R")


# What is in a store


def objects_of(target: Place) -> dict[str, int]:
    """Return the sizes of all objects under a target, by their names from there."""
    return {name: int(info["size"] or 0) for name, info in target.files().items()}


def manifest_of(target: Place) -> Manifest:
    """Read the manifest of a release; raise an error if there is none, or not a whole one."""
    return _parse(_manifest_bytes(target), target)


def digest_of(place: Place) -> str:
    """Return the SHA-256 of an object, as it is in the store."""
    digest = hashlib.sha256()
    with place.errors(), place.open() as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()


def _manifest_bytes(target: Place) -> bytes | None:
    place = target / NAME
    with place.errors():
        target.fs.invalidate_cache()
        try:
            return target.fs.cat_file(place.path)
        except FileNotFoundError:
            return None


def _parse(content: bytes | None, target: Place) -> Manifest:
    if content is None:
        raise no_manifest(target.url)
    return Manifest.parse(content, (target / NAME).url)


def _known_names(content: bytes | None, target: Place) -> set[str]:
    """Return the names of all objects of a release, or none if there is no release."""
    if content is None:
        return set()
    return {NAME, *(file.name for file in _parse(content, target).everything)}


def check_store_target(target: Place, replace: bool) -> None:
    """Raise an error unless a release can be put there: only a release is replaced.

    That is a manifest, and no objects except those that it names. What runs that were killed, or
    have not ended, have put there does not count: it is no release, and goes when one is committed.

    Parameters
    ----------
    target : Place
        A prefix in a store; there may be nothing.
    replace : bool
        Whether a release that is there may go.
    """
    has_buckets = target.protocol != "memory"
    if not target.name or (has_buckets and not target.parent.path.strip("/")):
        raise SdcValueError(
            f"target {target.url!r} is a whole bucket: name a prefix in it, such as "
            f"'{target.url.rstrip('/')}/release'."
        )
    info = target.info()
    if info is not None and info["type"] != "directory":
        raise SdcFileExistsError(
            f"target {target.url!r} is an object, and only a release is replaced: choose another "
            "name, or remove it yourself."
        )
    found = set(objects_of(target))
    others = leftovers(target) if found else []
    for each in others:
        with contextlib.suppress(SdcValueError):  # a manifest that is not whole is told below
            found -= each.staging.abandoned(each.replaces)
    if not found:
        return
    if not replace:
        raise SdcFileExistsError(
            f"target {target.url!r} exists: choose another name, or replace it with "
            "replace=True (--replace on the command line)."
        )
    what = _what_is_there(target, found)
    if what is not None:
        raise SdcFileExistsError(
            f"target {target.url!r} is {what}, and only a release is replaced, which has a "
            f"{NAME} and the files in it alone: choose another name, or remove it yourself."
            + "".join(f" {each.described}." for each in others)
        )


def _what_is_there(target: Place, found: Iterable[str]) -> str | None:
    """Say what stands at a target, or None if it is a release."""
    try:
        known = _known_names(_manifest_bytes(target), target)
    except SdcValueError:
        known = set()
    if not known:
        return f"a prefix without a whole {NAME}"
    others = len(set(found) - known)
    return f"a prefix with other objects ({others})" if others else None


# On workers


@dataclass(frozen=True)
class Staging:
    """A prefix beside a target, for the files of one run. Workers send files there.

    Attributes
    ----------
    target : Place
    token : str
        Of the run, and of no other: names of files should have it, or a part of it, so that no
        two runs have the same.
    """

    target: Place
    token: str

    @classmethod
    def of(cls, target: Place) -> Staging:
        """Return a staging of a new run; nothing is written yet."""
        return cls(target, uuid.uuid4().hex)

    @property
    def place(self) -> Place:
        """The prefix."""
        return self.target.parent / f".{self.target.name}.{self.token}.partial"

    def send(self, local_path: str, name: str, sha256: str) -> None:
        """Put a checked file under the prefix, and compare what the store then has.

        A task that runs twice overwrites its own object. One whose run has ended meanwhile leaves
        nothing.

        Parameters
        ----------
        local_path : str
            Of the file.
        name : str
            Of the object.
        sha256 : str
            What the file must have.
        """
        self._check_alive()
        place = self.place / name
        with open(local_path, "rb") as file, place.errors(), _writing(place) as sent:
            shutil.copyfileobj(file, sent, BLOCK_BYTES)
        if digest_of(place) != sha256:
            raise SdcRuntimeError(
                f"{place.url!r} has other contents than the file that was sent: nothing is "
                "released. Look at the store, and run it again."
            )
        try:
            self._check_alive()
        except SdcRuntimeError:
            _remove([place])
            raise

    def _check_alive(self) -> None:
        if (self.place / STARTED).info() is None:
            raise SdcRuntimeError(f"{self.place.url!r} was removed: its run has ended.")

    def _start(self, replaced: Iterable[str] = ()) -> None:
        """Say who writes here, and what is replaced: whoever cleans up must know."""
        process = Process.this()
        text = json.dumps(
            {
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
                "host": socket.gethostname(),
                "process": process and asdict(process),
                "replaces": sorted(replaced),
            }
        )
        place = self.place / STARTED
        with place.errors():
            _put(place, text.encode())

    def abandoned(self, replaced: Iterable[str]) -> set[str]:
        """Return objects at the target that are of this run, and that no release has.

        These are copies of what is under the prefix, and what the run replaced: if its manifest
        is there, the others are no longer of use, and if it is not, its copies are not.
        """
        staged = set(objects_of(self.place)) - {STARTED}
        known = _known_names(_manifest_bytes(self.target), self.target)
        # Without a manifest, nobody knows what has become of a release that was there.
        ours = staged | set(replaced) if known else staged
        return ours & set(objects_of(self.target)) - known

    def _clear(self, replaced: Iterable[str]) -> None:
        """Remove objects at the target that no release has, and the prefix.

        What says what these are goes after them: if this is stopped, a later run knows.
        """
        self._forsake(replaced)
        # Without this, tasks that are still running cannot go on.
        _remove([self.place / STARTED])
        _remove([self.place / name for name in objects_of(self.place)])

    def _forsake(self, replaced: Iterable[str]) -> None:
        _remove([self.target / name for name in sorted(self.abandoned(replaced))])


@contextlib.contextmanager
def _writing(place: Place) -> Iterator[Any]:
    """Open an object to write it in parts."""
    options = {"block_size": BLOCK_BYTES} if place.fs.async_impl else {}
    with place.fs.open(place.path, "wb", **options) as file:
        yield file


# On the client


@dataclass
class Publication:
    """A release on its way to a store.

    Attributes
    ----------
    staging : Staging
        For workers.
    is_committed : bool
        Whether it is released.
    """

    staging: Staging
    _old: bytes | None  # manifest of what is replaced
    _replaced: frozenset[str]  # objects of what is replaced, except for the manifest
    _others: tuple[Leftover, ...] = ()  # runs that began before, and have not ended or were killed
    is_committed: bool = field(default=False, init=False)

    def commit(self, manifest: Manifest) -> None:
        """Release what was sent, as a whole.

        Parameters
        ----------
        manifest : Manifest
            Names all files that were sent, and no others.

        Raises
        ------
        SdcFileExistsError
            If another run has released there meanwhile.
        """
        target, staged = self.staging.target, self.staging.place
        sizes = {file.name: file.size for file in manifest.everything}
        found = objects_of(staged)
        found.pop(STARTED, None)
        self._compare(found, sizes, staged)
        there = objects_of(target)
        both = sorted(set(there) & set(sizes))
        if both:
            raise SdcFileExistsError(
                f"target {target.url!r} has {len(both)} objects of the same names, such as "
                f"{both[0]!r}: another run is at work there. Nothing is released by this one."
            )
        self._check_alone()
        with target.errors():
            _each(lambda name: _copy(staged / name, target / name), sizes)
        there = objects_of(target)
        self._compare({name: there[name] for name in sizes if name in there}, sizes, target)
        with publishing():
            self._put_manifest(manifest.text().encode())
            self.is_committed = True
            self.clear()

    def _compare(self, found: Mapping[str, int], sizes: Mapping[str, int], where: Place) -> None:
        if dict(found) != dict(sizes):
            raise SdcRuntimeError(
                f"objects under {where.url!r} are not those that were written and checked. "
                "Nothing is released."
            )

    def _check_alone(self) -> None:
        """Raise FileExistsError unless the manifest is the one that was there at the start."""
        if _manifest_bytes(self.staging.target) != self._old:
            raise self._lost()

    def _lost(self) -> SdcFileExistsError:
        return SdcFileExistsError(
            f"another run released to {self.staging.target.url!r} while this one was at work. "
            "Its release stands, and nothing of this one is left: choose another target, or "
            "replace it."
        )

    def _put_manifest(self, content: bytes) -> None:
        """Write the manifest, unless another one came first."""
        place = self.staging.target / NAME
        info = place.info()  # before the manifest is read: it shows if that changes afterwards
        self._check_alone()
        failed: Exception | None = None
        try:
            _put_if_unchanged(place, content, None if self._old is None else info)
        except Exception as error:
            failed = error
        # A store may have written it although no answer came, or another's in the same moment.
        try:
            found = _manifest_bytes(self.staging.target)
        except SdcError:
            raise SdcRuntimeError(
                f"{place.url!r} was written, and the store does not answer: whether this release "
                "stands is not known. Look at it with verify when the store is back."
            ) from None
        if found == content:
            return
        if failed is None or found != self._old:
            raise self._lost()
        with place.errors():
            raise failed

    def clear(self) -> None:
        """Remove what is no longer of use; that it fails is no reason to fail."""
        try:
            self.staging._clear(self._replaced)
            for each in self._others if self.is_committed else ():
                # They have lost, since the manifest is not the one that they knew: what they
                # copied would be read with the release.
                each.staging._forsake(each.replaces)
        except (SdcError, OSError) as error:
            warn(
                f"cleaning up failed ({type(error).__name__}); remove "
                f"{self.staging.place.url!r} if it is there."
            )


@contextlib.contextmanager
def published(target: Place, replace: bool) -> Iterator[Publication]:
    """Give a publication, which is released when it is committed, or else disappears.

    Parameters
    ----------
    target : Place
        A prefix in a store.
    replace : bool
        Whether a release that is there goes once the new one is committed.

    Examples
    --------
    >>> import hashlib, pathlib, tempfile
    >>> from sdc_dask.release.manifest import Manifest, ReleasedFile
    >>> from sdc_dask.release.object_store import objects_of, published
    >>> from sdc_dask.release.places import Place
    >>> import pyarrow as pa
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "part"
    >>> size = path.write_bytes(b"contents")
    >>> digest = hashlib.sha256(b"contents").hexdigest()
    >>> target = Place.of("memory://example/release")
    >>> with published(target, replace=False) as publication:
    ...     publication.staging.send(str(path), "part-1", digest)
    ...     file = ReleasedFile("part-1", rows=1, size=size, sha256=digest)
    ...     manifest = Manifest.of([file], pa.schema([]), [], [])
    ...     publication.commit(manifest)
    >>> sorted(objects_of(target))
    ['_manifest.json', 'part-1']
    """
    check_store_target(target, replace)
    old = _manifest_bytes(target)
    replaced = frozenset(_known_names(old, target) - {NAME})
    publication = Publication(Staging.of(target), old, replaced, tuple(leftovers(target)))
    _running.add(publication.staging.token)
    try:
        try:
            publication.staging._start(replaced)
        except SdcError:
            raise  # nothing is there to be removed
        except BaseException:
            publication.clear()
            raise
        try:
            yield publication
        finally:
            if not publication.is_committed:
                publication.clear()
    finally:
        _running.discard(publication.staging.token)


def _put_if_unchanged(place: Place, content: bytes, info: Mapping[str, Any] | None) -> None:
    """Write an object if there is none, or the one that is known, where a store can say so."""
    family = _family(place)
    conditions: dict[str, Any] = {}
    if info is None and family is not None:
        conditions = {"overwrite": False} if family == "azure" else {"mode": "create"}
    elif info is not None and family == "s3":
        conditions = {"IfMatch": info["ETag"]}
    try:
        _put(place, content, **conditions)
    except OSError as error:
        # Some stores have no conditions: then the look just before it must do.
        if error.errno != errno.ENOSYS or not conditions:
            raise
        _put(place, content)


def _family(place: Place) -> str | None:
    """Return which store it is, if it has conditions that are known here."""
    families = {
        "s3": ("s3", "s3a"),
        "google": ("gs", "gcs"),
        "azure": ("abfs", "abfss", "az"),
        "memory": ("memory",),
    }
    return next((name for name, known in families.items() if place.protocol in known), None)


def _put(place: Place, content: bytes, **conditions: Any) -> None:
    place.fs.pipe_file(place.path, content, **conditions)


def _copy(source: Place, target: Place) -> None:
    source.fs.cp_file(source.path, target.path)


def _remove(places: Iterable[Place]) -> None:
    """Remove objects that may be gone already."""
    _each(_remove_one, places)


def _remove_one(place: Place) -> None:
    # One at a time, since removing many expands patterns in their names.
    with place.errors(), contextlib.suppress(FileNotFoundError):
        place.fs.rm_file(place.path)


def _each(function: Callable[[T], R], items: Iterable[T]) -> list[R]:
    """Call a function for all items, some at once; when it returns or raises, none is running."""
    pool = ThreadPoolExecutor(_REQUESTS)
    try:
        return list(pool.map(function, items))
    finally:
        pool.shutdown(cancel_futures=True)


# What other runs left


@dataclass(frozen=True)
class Leftover:
    """A prefix of a run that has not ended, or was killed.

    Attributes
    ----------
    staging : Staging
    started : datetime or None
        None if its run began to remove it.
    host : str
        Of the run.
    process : Process or None
        Of the run, where that could be told.
    replaces : tuple of str
        Objects that it was to replace.
    """

    staging: Staging
    started: datetime | None
    host: str
    process: Process | None
    replaces: tuple[str, ...]

    @property
    def is_dead(self) -> bool:
        """Whether its run ended: a process of this machine that is gone, or one of last week.

        Whether a run of another machine lives cannot be known.
        """
        if self.started is None or self.started <= datetime.now(UTC) - _WEEK:
            return True
        if self.process is None:
            return False
        if self.process == Process.this():
            return self.staging.token not in _running
        return self.process.is_dead

    @property
    def described(self) -> str:
        """A sentence for whoever knows whether the run lives."""
        since = f", since {self.started:%Y-%m-%d %H:%M} UTC" if self.started else ""
        return (
            f"Another run (host {self.host!r}{since}) writes under {self.staging.place.url!r}, or "
            "was killed. What it put at the target goes when another run releases there; if it "
            "was killed, remove the prefix then"
        )

    def remove(self) -> None:
        """Remove it, and whatever its run left at the target that no release has."""
        self.staging._clear(self.replaces)


def leftovers(target: Place) -> list[Leftover]:
    """Return what runs to this target left that were killed, or have not ended, oldest first."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.([0-9a-f]{{32}})\.partial")
    with target.errors():
        target.fs.invalidate_cache()
        try:
            entries = target.fs.ls(target.parent.path, detail=False)
        except FileNotFoundError:
            return []
    names = [pattern.fullmatch(entry.rstrip("/").rpartition("/")[2]) for entry in entries]
    found = [_leftover(Staging(target, match[1])) for match in names if match]
    return sorted(found, key=lambda each: each.started or datetime.min.replace(tzinfo=UTC))


def _leftover(staging: Staging) -> Leftover:
    place = staging.place / STARTED
    with place.errors():
        try:
            values = json.loads(place.fs.cat_file(place.path))
            process = values.get("process")
            return Leftover(
                staging,
                datetime.fromisoformat(values["started"]),
                str(values["host"]),
                Process(**process) if process else None,
                tuple(map(str, values["replaces"])),
            )
        except (FileNotFoundError, ValueError, KeyError, TypeError, AttributeError):
            return Leftover(staging, None, "", None, ())
