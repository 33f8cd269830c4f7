"""Directories that hold data of a run: locked while it lives, removed by a later run if it died.

A run that is killed cannot clean up, but the system drops its lock. A directory whose lock is free
is therefore one that nobody uses any more, however long ago it was made.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import fnmatch
import os
import shutil
import stat
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from sdc_dask.errors import warn

LOCK = ".lock"

# Names of directories in places that are not ours alone: nobody else has one of these.
_PREFIX = "sdc-dask-"
_OF_RUNS = _PREFIX + "[0-9a-f]" * 32

_STARTING_SECONDS = 60  # a directory without a lock that is younger may get one yet
_NO_LOCKS_HERE = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)


@contextlib.contextmanager
def run_directory(parent: Path) -> Iterator[Path]:
    """Make a locked directory for a run, and remove those that runs that died have left beside it.

    Parameters
    ----------
    parent : Path
        Where others may have files and directories, too, such as that of temporary files.

    Yields
    ------
    Path
    """
    remove_dead(parent, _OF_RUNS)
    with locked_directory(parent / f"{_PREFIX}{uuid.uuid4().hex}") as directory:
        yield directory


@contextlib.contextmanager
def locked_directory(path: Path) -> Iterator[Path]:
    """Make a directory of mode 0700 that is locked by this process, and remove it in the end.

    The lock is that of the file :data:`LOCK` in it. Whoever gives the directory another name, under
    which it stays, removes this file just before. Where the file system has no locks, the
    directory is never taken for one that was left behind.

    Parameters
    ----------
    path : Path
        Nothing may be there yet except its parent.

    Yields
    ------
    Path
        The same path.

    Examples
    --------
    >>> import tempfile
    >>> parent = Path(tempfile.mkdtemp())
    >>> with locked_directory(parent / "sdc-dask-1") as directory:
    ...     _ = (directory / "values").write_text("...")
    ...     remove_dead(parent, "sdc-dask-*"), sorted(file.name for file in directory.iterdir())
    (0, ['.lock', 'values'])
    >>> list(parent.iterdir())
    []
    """
    path.mkdir(mode=0o700)
    try:
        with _lock_made(path):
            yield path
    finally:
        remove(path)


def remove_dead(parent: Path, pattern: str) -> int:
    """Remove directories of runs that died.

    Only those that belong to this user are looked at, no links, and none without a lock that was
    changed in the last minute, since its run may be starting.

    Parameters
    ----------
    parent : Path
        The directory that they are in.
    pattern : str
        Of their names: one that fits nothing else that a user may have there, such as a prefix
        and ``"[0-9a-f]" * 32``. A name that is part of it goes through :func:`glob.escape`.

    Returns
    -------
    int
        How many were removed.

    Warns
    -----
    UserWarning
        If one cannot be removed.
    """
    try:
        names = [name for name in os.listdir(parent) if fnmatch.fnmatchcase(name, pattern)]
    except OSError:
        return 0  # what cannot be listed is reported by whoever writes there
    return sum(_removed_if_dead(parent / name) for name in names)


def remove(directory: Path) -> None:
    """Remove a directory into which others may still be writing; without it, they cannot go on."""
    for _ in range(100):
        shutil.rmtree(directory, ignore_errors=True)
        if not os.path.lexists(directory):
            break
        time.sleep(0.1)


@contextlib.contextmanager
def _lock_made(directory: Path) -> Iterator[None]:
    """Hold the lock of a directory, which appears in it when it is held."""
    new = directory / f"{LOCK}.new"
    handle = os.open(new, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX)
        except OSError as error:
            if error.errno not in _NO_LOCKS_HERE:
                raise
        new.rename(directory / LOCK)
        yield
    finally:
        os.close(handle)


def _removed_if_dead(directory: Path) -> bool:
    """Remove a directory of this user if its run died, and say whether that was done."""
    with contextlib.ExitStack() as stack:
        try:
            found = os.lstat(directory)
            if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
                return False
            handle = os.open(directory / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except FileNotFoundError:
            if not _is_old(directory):
                return False
        except OSError:
            return False  # a lock that is none of ours
        else:
            stack.callback(os.close, handle)
            try:
                # Held until all is removed, so that of two runs that begin one does it.
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return False
        try:
            shutil.rmtree(directory)
        except FileNotFoundError:
            return False  # another run was faster
        except OSError as error:
            reason = os.strerror(error.errno) if error.errno else type(error).__name__
            warn(
                f"directory {str(directory)!r} was left behind by a run that died, may hold "
                f"original values, and cannot be removed ({reason}): remove it."
            )
            return False
    return True


def _is_old(directory: Path) -> bool:
    """Whether a directory has been as it is for so long that it is not about to get a lock."""
    try:
        return time.time() - os.lstat(directory).st_mtime > _STARTING_SECONDS
    except FileNotFoundError:
        return False
