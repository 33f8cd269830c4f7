"""Where a release goes: a directory that gets its name in the end, or a prefix of a store.

Either is there as a whole or not at all. What waits on the way lies in a directory of this run's
own, on a file system that all workers reach.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sdc_dask.errors import SdcFileNotFoundError, SdcRuntimeError, SdcValueError, warn
from sdc_dask.release.directory import (
    check_directory,
    claimed,
    entries_of,
    hidden,
    written_beside,
)
from sdc_dask.release.leftovers import remove, run_directory
from sdc_dask.release.manifest import Manifest
from sdc_dask.release.object_store import (
    Staging,
    check_store_target,
    leftovers,
    published,
)
from sdc_dask.release.places import Place


def check_target(sources: Sequence[Place], target: Place, replace: bool) -> None:
    """Raise an error unless a release can be made there, beside what is there and what is read."""
    for source in sources:
        if source.protocol != target.protocol:
            continue
        inner, outer = _resolved(target), _resolved(source)
        if inner == outer or inner.startswith(f"{outer}/"):
            raise SdcValueError(
                f"target {target.url!r} is the source or lies inside it: choose another directory."
            )
        if outer.startswith(f"{inner}/"):
            raise SdcValueError(
                f"source {source.url!r} lies inside the target: choose another target directory."
            )
    if target.is_local:
        check_directory(Path(target.path), replace)
    else:
        check_store_target(target, replace)


def _resolved(place: Place) -> str:
    return os.path.realpath(place.path) if place.is_local else place.path.rstrip("/")


def working_parent(target: Place, scratch: str | os.PathLike[str] | None) -> Path:
    """Return the directory that holds the one in which values wait, or raise an error."""
    if scratch is not None:
        parent = Path(scratch).absolute()
        if not parent.is_dir():
            raise SdcFileNotFoundError(
                f"scratch {str(parent)!r} is no directory: make it, or name another."
            )
        return parent
    return Path(target.path).parent if target.is_local else Path(tempfile.gettempdir())


@contextlib.contextmanager
def working_directory(target: Place, scratch: str | os.PathLike[str] | None) -> Iterator[Path]:
    """Keep other runs from a target, and give a directory in which values wait.

    What runs that died have left of either is removed. In a store, nobody knows whether a run of
    another machine is dead: what is older than a week is, and of what is younger there is a
    warning.
    """
    parent = working_parent(target, scratch)
    with contextlib.ExitStack() as stack:
        if target.is_local:
            stack.enter_context(claimed(Path(target.path)))
        else:
            _clean_up(target)
        if target.is_local and scratch is None:
            directory = hidden(Path(target.path), "work")
            stack.callback(remove, directory)
            directory.mkdir(mode=0o700)
        else:
            directory = stack.enter_context(run_directory(parent))
        yield directory


def _clean_up(target: Place) -> None:
    """Remove what runs that died have left in a store, and name what others write there."""
    for each in leftovers(target):
        if each.is_dead:
            each.remove()
        else:
            warn(f"{each.described}. Of runs to one target, the first that releases wins.")


@dataclass(frozen=True)
class Output:
    """Where the files of a release are written and checked, and what makes a release of them."""

    directory: Path
    staging: Staging | None  # to which workers send them then, if the target is in a store
    publish: Callable[[Manifest], None]

    @property
    def stem(self) -> str:
        """What names of files begin with: in a store, those of two runs must not meet."""
        return f"part-{self.staging.token[:8]}" if self.staging else "part"


@contextlib.contextmanager
def output(target: Place, replace: bool, work: Path) -> Iterator[Output]:
    """Give the output of a target: released if it is published, or else nothing is left."""
    if target.is_local:
        with written_beside(Path(target.path), replace) as directory:
            yield Output(directory, None, lambda manifest: _complete(directory, manifest))
        return
    directory = work / "files"
    directory.mkdir(mode=0o700)
    with published(target, replace) as publication:
        yield Output(directory, publication.staging, publication.commit)


def _complete(directory: Path, manifest: Manifest) -> None:
    """Raise RuntimeError unless a directory has the files of a manifest, and write it there."""
    for unfinished in directory.glob(".*"):
        unfinished.unlink()  # by a worker that was lost
    found = {name: (directory / name).stat().st_size for name in entries_of(directory)}
    if found != {file.name: file.size for file in manifest.everything}:
        raise SdcRuntimeError("files in the output are not those that were written and checked.")
    manifest.write(directory)
