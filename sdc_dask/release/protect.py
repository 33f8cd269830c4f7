"""Protect a data set from parquet to parquet: complete and checked, or not there."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

import numpy as np

from sdc_dask import arguments
from sdc_dask.engine.classes import ClassSizes
from sdc_dask.engine.frames import Calls, Task
from sdc_dask.engine.key_files import KeyFile, KeyFolder
from sdc_dask.engine.trip import Trip
from sdc_dask.errors import SdcRuntimeError, SdcTypeError, SdcValueError, warn
from sdc_dask.masking.run import Planned, plan, spool
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.release.columns import counted_sets, dropped_columns
from sdc_dask.release.directory import check_paths, written_beside
from sdc_dask.release.long import Long, made_wide
from sdc_dask.release.manifest import Manifest, Promise, ReleasedFile
from sdc_dask.release.progress import compute, say
from sdc_dask.release.source import Source, open_source
from sdc_dask.release.summary import MaskedSet, Summary
from sdc_dask.release.unique import nearly_unique
from sdc_dask.release.write import Fingerprints, Layout, Written, write_piece
from sdc_dask.risk.anonymity import of_sizes
from sdc_dask.utility.sse import Sums, merge_sums, of_sums


def protect(
    source: str | os.PathLike[str],
    target: str | os.PathLike[str],
    specs: Spec | Sequence[Spec],
    *,
    keep: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    long: Long | None = None,
    count: Sequence[Sequence[str]] | None = None,
    replace: bool = False,
    random_state: int | None = None,
    progress: bool | None = None,
) -> Summary:
    """Mask a parquet data set into another one that is checked before it appears.

    The work runs where Dask runs it: on the current ``distributed`` client if there is one, else
    on threads. Files are written into a hidden directory beside the target, read again, and
    compared: untouched columns must be as they were, every row must be there, and each spec must
    have kept its promise: every class of equal records has at least k, or every column has the
    values that it had. A manifest is put beside them, by which :func:`verify` looks at the release
    again. Only then the directory gets the name of the target. If anything fails, there is no
    target.

    Parameters
    ----------
    source : path
        A parquet file, or a directory of parquet files with one schema.
    target : path
        The directory to make. Row order is that of the source, one file for each piece of it, as
        Dask reads them: files in order of the numbers in their names.
    specs : spec, or list of specs
        What is masked, and how: :class:`Microaggregation`, :class:`SeriesMicroaggregation`,
        :class:`RankSwap`, :class:`Mic1D` or :class:`FuzzyMicroaggregation`. Each of a list masks
        columns of its own.
    keep, drop : str or list of str, optional
        Columns that are written as they are, and columns that are not written, for instance direct
        identifiers: names, or wildcards such as ``"q_*"`` for columns that are not named otherwise,
        of which those of `drop` go first. Every column is masked, kept or dropped; one that was not
        decided upon is an error. Columns of `by` are kept unless they are dropped by name, and an
        index without a name is dropped, since it numbers the rows. Kept columns are as they were,
        except that zeros of floats lose their sign and numbers that are none their bits, and are
        missing cells in a column of `by`.
    long : Long, optional
        Says that the source has a row for each record and time, as time series often come. It is
        made wide first, by :func:`sdc_dask.series.to_wide`; specs and `drop` name columns of the
        wide layout, in which it is released. A copy of the original values stands in a hidden
        directory beside the target during the run.
    count : list of lists of str, optional
        Sets of released columns, kept ones included, that an intruder may know: classes of equal
        records are counted for each, and the summary says how many are small. Nothing is promised
        of them.
    replace : bool, default False
        Whether a target that exists is replaced, once the new one is checked. Only a release
        is: a directory with a manifest, and no other files than those in it.
    random_state : int, optional
        Of maskings that draw; by default it is drawn afresh, and nobody can repeat the draw.
    progress : bool, optional
        Show stages and a bar; by default on a terminal.

    Warns
    -----
    UserWarning
        If kept columns are unique or nearly so: such a value tells which record it is.

    Returns
    -------
    Summary
        Rows, what was masked and what was checked of it, SSE / SST, seconds by stage.

    Examples
    --------
    >>> import tempfile, pathlib, sdc_dask
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> sdc_dask.datasets.survey(2_000, seed=1).to_parquet(folder / "survey")
    >>> plan = [
    ...     sdc_dask.Microaggregation(["income", "wealth"], k=5, by="region"),
    ...     sdc_dask.RankSwap(["age"], p=5),
    ... ]
    >>> summary = sdc_dask.protect(
    ...     folder / "survey", folder / "release", plan, drop=["person", "household"], keep="*"
    ... )
    >>> summary.rows, summary.anonymity[0].k_min >= 5, [each.checked for each in summary.masked]
    (2000, True, ['k', 'values'])
    """
    source, target = Path(source), Path(target)
    arguments.flag(replace, "replace")
    show = sys.stderr.isatty() if progress is None else arguments.flag(progress, "progress")
    listed = spec_list(specs)
    for spec in listed:
        spec.to_dict()  # what cannot be written down is not released
    check_paths(source, target, replace)
    with contextlib.ExitStack() as stack:
        if long is not None:
            if not isinstance(long, Long):
                raise SdcTypeError(
                    f"long must be sdc_dask.Long(id, time, ...), received {type(long).__name__}."
                )
            _check_files(open_source(source), target)
            say("Making the source wide", show)
            source = stack.enter_context(made_wide(source, target, long, show))
        return _protect(source, target, listed, keep, drop, count, replace, random_state, show)


def _protect(
    source: Path,
    target: Path,
    listed: list[Spec],
    keep: Any,
    drop: Any,
    count: Any,
    replace: bool,
    random_state: int | None,
    show: bool,
) -> Summary:
    opened = open_source(source)
    _check_files(opened, target)
    dropped = dropped_columns(opened, listed, keep, drop)
    layout = Layout.of(opened.schema, listed, dropped)
    layout = replace_fields(layout, known=counted_sets(layout.schema, count))
    frame = opened.frame(layout.masked, layout.by)

    seconds: dict[str, float] = {}
    with _timed(seconds, "plan"):
        say("Scanning the data and planning", show)
        planned = plan(frame, listed, random_state)
    known = {
        str(name): sums
        for each in planned
        for step in each.steps
        for name, sums in step.sums.items()
    }
    layout = replace_fields(layout, summed=tuple(known))
    with written_beside(target, replace) as directory:
        with _timed(seconds, "mask and write"):
            say("Masking, writing and checking files", show)
            steps = sum(len(each.steps) for each in planned)
            with _spools(directory, ["keys", *map(str, range(steps))]) as (keys, *folders):
                trips = spool(frame, planned, folders)
                key_folder = KeyFolder.of(keys, opened.rows)
                written = compute(_write_all(opened, trips, layout, directory, key_folder), show)
        with _timed(seconds, "verify"):
            written = replace_fields(written, values=written.values | known)
            summary = _summary(target, opened, planned, layout, dropped, written, seconds)
            _verify(directory, written.files, opened, summary, written.moved)
            _manifest(written.files, layout, listed, summary).write(directory)
    if summary.unique:
        named = ", ".join(f"{name!r} ({share:.0%})" for name, share in summary.unique.items())
        warn(
            f"kept columns are unique or nearly so, by the share of values that differ: {named}. "
            "Whoever knows such a value knows the record: drop or mask them, unless they mean "
            "nothing outside of the release."
        )
    return summary


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
def _timed(seconds: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    seconds[stage] = time.perf_counter() - start


@contextlib.contextmanager
def _spools(directory: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Give directories for what waits on disk, and remove them."""
    folders = [directory / f"spool-{name}" for name in names]
    for folder in folders:
        folder.mkdir(mode=0o700)
    yield [str(folder) for folder in folders]
    for folder in folders:
        shutil.rmtree(folder)


@dataclass(frozen=True)
class _All:
    """What all files hold, as they were read again."""

    files: list[ReleasedFile]
    values: Sums
    differences: Sums
    moved: Fingerprints
    sizes: list[ClassSizes]  # by set of columns that are counted
    unique: dict[str, float]  # kept columns that are nearly unique, with the share that differs


def _write_all(
    source: Source,
    trips: Sequence[Trip],
    layout: Layout,
    directory: Path,
    key_folder: KeyFolder,
) -> Task:
    """Return the task that writes all pieces: their files, sums and sizes of classes."""
    call = Calls(lazy=True)
    shared = call.share(layout)
    steps = call.share([trip.step for trip in trips])
    spools = [trip.back for trip in trips]
    written = [
        call(
            write_piece,
            piece,
            number,
            str(directory),
            key_folder,
            shared,
            steps,
            [trip.checksums[number] for trip in trips],
            spools,
        )
        for number, piece in enumerate(source.pieces)
    ]
    # What is written is told in a few numbers per file: small enough for one place.
    gathered = call(list, written)
    sizes = [
        key_folder.class_sizes(call, call(_keys, gathered, number))
        for number in range(len(layout.counted))
    ]
    return call(_summed, gathered, sizes)


def _keys(written: list[Written], number: int) -> list[KeyFile]:
    return [each.keys[number] for each in written]


def _summed(written: list[Written], sizes: list[ClassSizes]) -> _All:
    return _All(
        [each.file for each in written],
        merge_sums([each.values for each in written]),
        merge_sums([each.differences for each in written]),
        np.sum([each.moved for each in written], axis=0, dtype=np.uint64),
        sizes,
        nearly_unique(
            (name, [each.distinct[name] for each in written]) for name in written[0].distinct
        ),
    )


def _verify(
    directory: Path,
    files: list[ReleasedFile],
    source: Source,
    summary: Summary,
    moved: Fingerprints,
) -> None:
    """Raise RuntimeError unless all rows are there and every promise is kept on the files."""
    for unfinished in directory.glob(".*"):
        unfinished.unlink()  # by a worker that was lost
    found = {path.name: path.stat().st_size for path in directory.iterdir()}
    if found != {file.name: file.size for file in files}:
        raise SdcRuntimeError("files in the output are not those that were written and checked.")
    source.check_unchanged()
    rows = sum(file.rows for file in files)
    if rows != source.rows:
        raise SdcRuntimeError(f"{rows} rows were written of {source.rows} in the source.")
    for each in summary.masked:
        reached, k = each.anonymity, each.spec.promise
        if reached is not None and (reached.rows != rows or reached.k_min < (k or 0)):
            raise SdcRuntimeError(
                f"the files have a class of {reached.k_min} equal records in the columns "
                f"{', '.join(each.columns)}, fewer than k={k}. Nothing is released."
            )
    changed = int((moved[:, 0] != moved[:, 1]).any(axis=1).sum())
    if changed:
        raise SdcRuntimeError(
            f"{changed} columns whose values were to change places have other values in the files "
            "than in the source. Nothing is released."
        )


def _manifest(
    files: Sequence[ReleasedFile], layout: Layout, specs: Sequence[Spec], summary: Summary
) -> Manifest:
    """Return what the release says of itself."""
    counted = [each for each in summary.masked if each.anonymity is not None]
    promises = [
        Promise(columns, each.spec.promise, each.anonymity.k_min, each.anonymity.classes)
        for columns, each in zip(layout.promised, counted, strict=True)
        if each.anonymity is not None and each.spec.promise is not None
    ]
    return Manifest.of(files, layout.schema, [spec.to_dict() for spec in specs], promises)


def _summary(
    target: Path,
    source: Source,
    planned: Sequence[Planned],
    layout: Layout,
    dropped: Sequence[str],
    written: _All,
    seconds: dict[str, float],
) -> Summary:
    sizes = iter(written.sizes)
    masked = []
    for each in planned:
        spec, steps = each.spec, each.steps
        if spec.promise is None:
            masked.append(MaskedSet.of(spec, spec.masked, steps[0], None))
            continue
        # One step for each set of columns, which have a k each.
        for columns, step in zip(spec.column_sets, steps, strict=True):
            masked.append(MaskedSet.of(spec, columns, step, of_sizes(next(sizes), spec.promise)))
    joint = of_sizes(next(sizes), None) if layout.together else None
    k = max((spec.promise or 0 for spec in (each.spec for each in planned)), default=0) or None
    known = {columns: of_sizes(next(sizes), k) for columns in layout.known}
    loss = of_sums(source.rows, written.values, written.differences) if layout.numbers else None
    return Summary(
        target=str(target),
        rows=source.rows,
        files=len(written.files),
        size=sum(file.size for file in written.files),
        masked=tuple(masked),
        kept=tuple(name for name in layout.schema.names if name not in layout.masked),
        dropped=tuple(dropped),
        joint=joint,
        known=known,
        sse=loss,
        seconds=seconds,
        unique=written.unique,
    )
