"""A target directory that is there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from sdc_dask.errors import SdcFileExistsError, SdcFileNotFoundError, SdcValueError, warn
from sdc_dask.release.signals import publishing
from sdc_dask.release.source import is_parquet


def check_paths(source: Path, target: Path, replace: bool) -> None:
    """Raise an error unless a target can be made beside what is there."""
    inner, outer = target.resolve(), source.resolve()
    if inner == outer or outer in inner.parents:
        raise SdcValueError(
            f"target {str(target)!r} is the source or lies inside it: choose another directory."
        )
    if inner in outer.parents:
        raise SdcValueError(
            f"source {str(source)!r} lies inside the target: choose another target directory."
        )
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
    """Raise FileExistsError unless what stands at a target is a data set like those made here.

    That is a directory of parquet files alone: nothing else is ever deleted.
    """
    what = None
    if target.is_symlink():
        what = "a link"
    elif not target.is_dir():
        what = "a file"
    else:
        others = sum(not _is_own_parquet(path) for path in target.iterdir())
        if others:
            what = f"a directory with other entries than parquet files ({others})"
    if what is not None:
        raise SdcFileExistsError(
            f"target {str(target)!r} is {what}, and only a directory of parquet files is replaced: "
            "choose another name, or remove it yourself."
        )


def _is_own_parquet(path: Path) -> bool:
    """Whether a directory has a parquet file here, not only a link to one."""
    return is_parquet(path) and path.is_file() and not path.is_symlink()


@contextlib.contextmanager
def written_beside(target: Path, replace: bool) -> Iterator[Path]:
    """Give a hidden directory beside the target that becomes the target, or disappears."""
    token = uuid.uuid4().hex
    directory = target.parent / f".{target.name}.{token}.partial"
    old = target.parent / f".{target.name}.{token}.old"
    parent = os.open(target.parent, os.O_RDONLY)
    try:
        directory.mkdir(mode=0o700)
        yield directory
        _sync(directory)
        with publishing():
            if replace and os.path.lexists(target):
                check_replaceable(target)  # again: the run may have taken hours
                target.rename(old)
            directory.rename(target)
    finally:
        # The second rename may fail: then the old target gets its name back.
        if os.path.lexists(old) and not os.path.lexists(target):
            old.rename(target)
        remove(directory)
        _finish(parent, old)


def remove(directory: Path) -> None:
    """Remove a directory into which tasks may still be writing; without it, they cannot go on."""
    for _ in range(100):
        shutil.rmtree(directory, ignore_errors=True)
        if not directory.exists():
            break
        time.sleep(0.1)


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
    """Make names in a directory last."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
