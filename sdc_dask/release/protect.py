"""Protect a data set from parquet to parquet: complete and checked, or not there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
from dask.delayed import Delayed, delayed

from sdc_dask import arguments
from sdc_dask.aggregation import Measure
from sdc_dask.engine.classes import lazy_class_sizes
from sdc_dask.engine.frames import merge_tree
from sdc_dask.errors import (
    SdcFileExistsError,
    SdcFileNotFoundError,
    SdcRuntimeError,
    SdcTypeError,
    SdcValueError,
    warn,
)
from sdc_dask.masking import microaggregation as ma
from sdc_dask.masking.request import Request, microaggregation_request
from sdc_dask.release.progress import compute, say
from sdc_dask.release.source import Source, open_source
from sdc_dask.release.summary import Summary
from sdc_dask.release.write import File, Layout, write_piece
from sdc_dask.risk.anonymity import Anonymity, of_sizes
from sdc_dask.utility.sse import SSE, merge_sums, of_sums

# The classes of so many records are merged in one place: at most 24 bytes each.
ROWS_A_BUCKET = 2**23


def protect(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    columns: Sequence[str] | Sequence[Sequence[str]],
    k: int,
    *,
    method: str = "mdav",
    blocking: str | None = "auto",
    max_block: int | str = "auto",
    standardize: bool = True,
    by: str | Sequence[str] | None = None,
    missing: str = "error",
    gain: float | None = None,
    weights: Sequence[float] | None = None,
    measure: Measure | tuple[Measure, Measure] | None = None,
    drop: str | Sequence[str] | None = None,
    replace: bool = False,
    progress: bool | None = None,
) -> Summary:
    """Microaggregate a parquet data set into another one that is checked before it appears.

    The work runs where Dask runs it: on the current ``distributed`` client if there is one, else
    on threads. Files are written into a hidden directory beside the target, read again, and
    compared: untouched columns must be as they were, every row must be there, and every class of
    equal records must have at least k. Only then the directory gets the name of the target. If
    anything fails, there is no target.

    Parameters
    ----------
    source : path
        A parquet file, or a directory of parquet files with one schema.
    target : path
        The directory to make. Row order is that of the source, one file a piece of it.
    columns : list of str, or list of lists of str
        The columns to mask: one group, or several that are masked each on its own.
    k : int
        Smallest group.
    method, blocking, max_block, standardize, by, missing, gain, weights, measure
        As in :meth:`microaggregate <sdc_dask.SdcAccessor.microaggregate>`.
    drop : str or list of str, optional
        Columns that are not written, for instance direct identifiers. An index without a name is
        never written, since it numbers the rows. All columns that are neither masked nor dropped
        are written as they are, an index that has a name too.
    replace : bool, default False
        Whether a target that exists is replaced, once the new one is checked.
    progress : bool, optional
        Show stages and a bar; by default on a terminal.

    Returns
    -------
    Summary
        Rows, blocks, groups, the k that was reached, SSE / SST, seconds by stage.

    Examples
    --------
    >>> import tempfile, pathlib, sdc_dask
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sdc_dask.datasets.survey(2_000, seed=1).to_parquet(folder / "survey")
    >>> summary = sdc_dask.protect(
    ...     folder / "survey", folder / "release", ["income", "wealth", "age"], k=5, drop="person"
    ... )
    >>> summary.rows, summary.anonymity[0].k_min >= 5
    (2000, True)
    """
    source, target = Path(source), Path(target)
    arguments.flag(replace, "replace")
    show = sys.stderr.isatty() if progress is None else arguments.flag(progress, "progress")
    _check_paths(source, target, replace)
    opened = open_source(source)
    _check_files(opened, target)
    everything = pd.DataFrame(columns=opened.schema.names)
    dropped = [str(name) for name in arguments.name_list(drop, "drop")]
    arguments.existing(everything, dropped, "drop")
    dropped += [name for name in opened.unnamed_index if name not in dropped]
    strata = [str(name) for name in arguments.name_list(by, "by")]
    arguments.existing(everything, strata, "by")
    frame = opened.frame(_named(columns, everything), strata)
    request = microaggregation_request(
        frame,
        columns,
        k,
        method=method,
        blocking=blocking,
        max_block=max_block,
        standardize=standardize,
        by=strata,
        missing=missing,
        gain=gain,
        weights=weights,
        measure=measure,
    )
    both = [name for name in dropped if name in request.columns]
    if both:
        raise SdcValueError(
            f"drop names columns that are masked: {', '.join(both)}. A column is masked or dropped."
        )
    groups = [[str(name) for name in group] for group in request.groups]
    layout = Layout.of(opened.schema, groups, strata, dropped)

    seconds: dict[str, float] = {}
    with _timed(seconds, "plan"):
        say("Scanning the data and planning blocks", show)
        planned = ma.plan(frame, request)
    with _written_beside(target, replace) as directory:
        with _timed(seconds, "mask and write"):
            say("Masking, writing and checking files", show)
            with _spools(directory, len(request.groups)) as folders:
                masked = ma.spool_masked(frame, planned, folders)
                task = _write_all(opened, masked, layout, directory)
                files, differences, sizes = compute(task, show)
        with _timed(seconds, "verify"):
            values = {name: column.sums for name, column in planned.scan.columns.items()}
            loss = of_sums(opened.rows, values, differences)
            counted = [of_sizes(each, request.k) for each in sizes]
            reached = tuple(counted[: len(groups)])
            _verify(directory, files, opened, reached, request)
    joint = counted[-1] if len(groups) > 1 else None
    return _summary(target, opened, planned, layout, dropped, files, reached, joint, loss, seconds)


def _named(columns: Any, everything: pd.DataFrame) -> list[str]:
    """Return the names in a list or a list of lists; the request checks the rest."""
    if isinstance(columns, str) or not isinstance(columns, Sequence):
        raise SdcTypeError(
            "columns must be a list of names, or a list of lists of names, received "
            f"{type(columns).__name__}."
        )
    lists = [each if isinstance(each, (list, tuple)) else [each] for each in columns]
    names = [name for each in lists for name in each]
    arguments.existing(everything, names, "columns")
    return list(dict.fromkeys(names))


def _check_paths(source: Path, target: Path, replace: bool) -> None:
    inner, outer = target.resolve(), source.resolve()
    if inner == outer or outer in inner.parents:
        raise SdcValueError(
            f"target {str(target)!r} is the source or lies inside it: choose another directory."
        )
    if inner in outer.parents:
        raise SdcValueError(
            f"source {str(source)!r} lies inside the target: choose another target directory."
        )
    if os.path.lexists(target) and not replace:
        raise SdcFileExistsError(
            f"target {str(target)!r} exists: choose another name, or replace it with replace=True "
            "(--replace on the command line)."
        )
    if not target.parent.is_dir():
        raise SdcFileNotFoundError(
            f"the directory of target {str(target)!r} does not exist: make it."
        )


def _check_files(source: Source, target: Path) -> None:
    """Raise ValueError if a file of the source is a link to one in the target."""
    inside = [
        file.path for file in source.files if target.resolve() in Path(file.path).resolve().parents
    ]
    if inside:
        raise SdcValueError(
            f"{len(inside)} files of the source are links into the target, the first is "
            f"{inside[0]!r}: choose another target directory."
        )


@contextlib.contextmanager
def _written_beside(target: Path, replace: bool) -> Iterator[Path]:
    """Give a hidden directory beside the target that becomes the target, or disappears."""
    token = uuid.uuid4().hex
    directory = target.parent / f".{target.name}.{token}.partial"
    old = target.parent / f".{target.name}.{token}.old"
    parent = os.open(target.parent, os.O_RDONLY)
    try:
        directory.mkdir(mode=0o700)
        yield directory
        _sync(directory)
        if replace and os.path.lexists(target):
            target.rename(old)
        directory.rename(target)
    finally:
        # An interrupt may come between the renames: then the old target gets its name back.
        if os.path.lexists(old) and not os.path.lexists(target):
            old.rename(target)
        _remove(directory)
        _finish(parent, old)


def _remove(directory: Path) -> None:
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
            shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
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


@contextlib.contextmanager
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start


@contextlib.contextmanager
def _spools(directory: Path, groups: int) -> Iterator[list[Path]]:
    """Give a directory for the spooled values of every group of columns, and remove them."""
    folders = [directory / f"spool-{group}" for group in range(groups)]
    for folder in folders:
        folder.mkdir(mode=0o700)
    yield folders
    for folder in folders:
        shutil.rmtree(folder)


def _write_all(source: Source, masked: list[Delayed], layout: Layout, directory: Path) -> Delayed:
    """Return the task that writes all pieces: their files, sums and sizes of classes."""
    shared = delayed(layout, pure=False, traverse=False)
    write = delayed(write_piece, pure=False)
    written = [
        write(piece, number, str(directory), shared, *masked)
        for number, piece in enumerate(source.pieces)
    ]
    buckets = -(-source.rows // ROWS_A_BUCKET)
    sizes = [
        lazy_class_sizes([each.classes[number] for each in written], buckets)
        for number in range(len(layout.counted))
    ]
    differences = merge_tree([each.differences for each in written], merge_sums)
    files = [each.file for each in written]
    return delayed(tuple, pure=False)([files, differences, sizes])


def _verify(
    directory: Path,
    files: list[File],
    source: Source,
    reached: tuple[Anonymity, ...],
    request: Request,
) -> None:
    """Raise RuntimeError unless all rows are there and every class has at least k."""
    for unfinished in directory.glob(".*"):
        unfinished.unlink()  # by a worker that was lost
    found = {path.name: path.stat().st_size for path in directory.iterdir()}
    if found != {file.name: file.size for file in files}:
        raise SdcRuntimeError("files in the output are not those that were written and checked.")
    source.check_unchanged()
    rows = sum(file.rows for file in files)
    if rows != source.rows:
        raise SdcRuntimeError(f"{rows} rows were written of {source.rows} in the source.")
    for group, each in zip(request.groups, reached, strict=True):
        if each.rows != rows or each.k_min < request.k:
            raise SdcRuntimeError(
                f"the files have a class of {each.k_min} equal records in the columns "
                f"{', '.join(map(str, group))}, fewer than k={request.k}. Nothing is released."
            )


def _summary(
    target: Path,
    source: Source,
    planned: ma.Plan,
    layout: Layout,
    dropped: Sequence[Any],
    files: list[File],
    reached: tuple[Anonymity, ...],
    joint: Anonymity | None,
    loss: SSE,
    seconds: dict[str, float],
) -> Summary:
    masked = set(layout.masked)
    blocks = [group.blocks for group in planned.groups]
    return Summary(
        target=str(target),
        rows=source.rows,
        files=len(files),
        size=sum(file.size for file in files),
        masked=layout.groups,
        kept=tuple(name for name in layout.schema.names if name not in masked),
        dropped=tuple(dropped),
        by=layout.by,
        k=planned.request.k,
        method=planned.request.method,
        blocks=tuple(len(each) if each else None for each in blocks),
        max_block=tuple(each.max_block if each else None for each in blocks),
        anonymity=reached,
        joint=joint,
        sse=loss,
        seconds=seconds,
    )
