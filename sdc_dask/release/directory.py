"""A target directory that is there as a whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from pathlib import Path

from sdc_dask.errors import SdcFileExistsError, SdcFileNotFoundError, SdcValueError, warn
from sdc_dask.release.leftovers import remove
from sdc_dask.release.manifest import NAME, Manifest
from sdc_dask.release.signals import publishing


def check_directory(target: Path, replace: bool) -> None:
    """Raise an error unless a target can be made beside what is there."""
    if os.path.lexists(target):
        if not replace:
            raise SdcFileExistsError(
                f"target {str(target)!r} exists: choose another name, or replace it with "
                "replace=True (--replace on the command line)."
            )
        check_replaceable(target)
    if not target.parent.is_dir():
        raise SdcFileNotFoundError(
            f"the directory of target {str(target)!r} does not exist: make it."
        )


def check_replaceable(target: Path) -> None:
    """Raise FileExistsError unless what stands at a target is a release: nothing else is deleted.

    That is a directory with a whole manifest, and no entries except its files; or an empty one.
    """
    what = _what_is_there(target)
    if what is not None:
        raise SdcFileExistsError(
            f"target {str(target)!r} is {what}, and only a release is replaced, which has a "
            f"{NAME} and the files in it alone: choose another name, or remove it yourself."
        )


def _what_is_there(target: Path) -> str | None:
    """Say what stands at a target, or None if it is a release."""
    if target.is_symlink():
        return "a link"
    if not target.is_dir():
        return "a file"
    if not any(target.iterdir()):
        return None  # nothing is lost with it
    try:
        manifest = Manifest.read(target)
    except (SdcFileNotFoundError, SdcValueError):
        return f"a directory without a whole {NAME}"
    known = {NAME, *(file.name for file in manifest.everything)}
    others = sum(not is_file or name not in known for name, is_file in entries_of(target).items())
    return f"a directory with other entries ({others})" if others else None


def entries_of(directory: Path) -> dict[str, bool]:
    """Return all that lies below a directory, by its path from there, and whether it is a file.

    Links are no files. Directories are what lies in them; only empty ones are named.
    """
    found = {}
    for path in directory.rglob("*"):
        is_directory = path.is_dir() and not path.is_symlink()
        if not is_directory or not any(path.iterdir()):
            is_file = path.is_file() and not path.is_symlink()
            found[path.relative_to(directory).as_posix()] = is_file
    return found


@contextlib.contextmanager
def claimed(target: Path) -> Iterator[None]:
    """Keep other runs from a target, and clean up after those that died.

    A run holds the lock of a file beside the target. Who gets it is the only one: whatever else is
    there of a run has been left behind. A release that was to be replaced when its run died gets
    its name back.
    """
    with _lock(target) as is_locked:
        if is_locked:
            _clean_up(target)
        yield


def _clean_up(target: Path) -> None:
    """Remove what runs that died have left beside a target."""
    pattern = re.compile(rf"\.{re.escape(target.name)}\.[0-9a-f]{{32}}\.(partial|work|old)")
    for path in sorted(target.parent.iterdir()):
        found = pattern.fullmatch(path.name)
        if not found or path.is_symlink() or not path.is_dir():
            continue
        if found[1] == "old" and not os.path.lexists(target):
            path.rename(target)
        else:
            remove(path)
        if os.path.lexists(path):
            warn(f"{str(path)!r} was left behind by a run that died: remove it.")


@contextlib.contextmanager
def _lock(target: Path) -> Iterator[bool]:
    """Hold the lock of a target, or raise FileExistsError; give False where there are no locks."""
    file = target.with_name(f".{target.name}.lock")
    while True:
        handle = os.open(file, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise SdcFileExistsError(
                f"another run is writing to target {str(target)!r}: wait for it, stop it, or "
                "choose another target."
            ) from None
        except OSError:
            os.close(handle)
            yield False  # a file system without locks
            return
        # Its holder may have removed the file since it was opened.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(file)):
                break
        os.close(handle)
    try:
        yield True
    finally:
        file.unlink(missing_ok=True)
        os.close(handle)


@contextlib.contextmanager
def written_beside(target: Path, replace: bool) -> Iterator[Path]:
    """Give a hidden directory beside the target that becomes the target, or disappears."""
    directory = hidden(target, "partial")
    old = hidden(target, "old")
    parent = os.open(target.parent, os.O_RDONLY)
    try:
        directory.mkdir(mode=0o700)
        yield directory
        _sync(directory)
        with publishing():
            if os.path.lexists(target):
                if not replace:
                    raise SdcFileExistsError(
                        f"target {str(target)!r} appeared during the run. It was left as it is, "
                        "and nothing is released: choose another name."
                    )
                check_replaceable(target)  # again: the run may have taken hours
                target.rename(old)
            directory.rename(target)
    finally:
        # The second rename may fail: then the old target gets its name back.
        if os.path.lexists(old) and not os.path.lexists(target):
            old.rename(target)
        remove(directory)
        _finish(parent, old)


def hidden(target: Path, what: str) -> Path:
    """Return a new name beside a target, which a later run finds if this one dies."""
    return target.with_name(f".{target.name}.{uuid.uuid4().hex}.{what}")


def _finish(parent: int, old: Path) -> None:
    """Make names last and remove what was replaced; the target is there, so failing only warns."""
    try:
        os.fsync(parent)
        if os.path.lexists(old):
            shutil.rmtree(old)
    except OSError as error:
        warn(f"cleaning up failed ({type(error).__name__}); remove {str(old)!r} if it is there.")
    finally:
        os.close(parent)


def _sync(directory: Path) -> None:
    """Make names in a directory last, and in those below it."""
    for path, _, _ in os.walk(directory):
        handle = os.open(path, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
