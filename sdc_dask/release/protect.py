"""Protect a data set from parquet to parquet: complete and checked, or not there."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from sdc_dask import arguments
from sdc_dask.engine.frames import Calls, Frame, Task, frame_of
from sdc_dask.engine.in_place import Change
from sdc_dask.engine.key_files import KeyFolder
from sdc_dask.engine.spool import Spool
from sdc_dask.engine.trip import Step, Trip
from sdc_dask.errors import (
    FEWEST_ADVISED,
    SdcError,
    SdcRuntimeError,
    SdcTypeError,
    SdcValueError,
    UniqueAdvice,
    warn,
)
from sdc_dask.keywords import knows_its_arguments
from sdc_dask.masking.afterwards import advise_unchanged
from sdc_dask.masking.run import Planned, changes_of, plan, spool
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.release.columns import counted_sets, dropped_columns
from sdc_dask.release.delta import check_columns, check_delta, write_log
from sdc_dask.release.directories import (
    FEWEST,
    Directories,
    count_rows,
    divided,
    path_columns,
)
from sdc_dask.release.files import Files, number_of_files, write_files
from sdc_dask.release.layout import Layout
from sdc_dask.release.listing import asked_places
from sdc_dask.release.long import Long, write_wide
from sdc_dask.release.manifest import Manifest, MatchPromise, Promise, ReleasedFile
from sdc_dask.release.measures import measures
from sdc_dask.release.outputs import check_writable
from sdc_dask.release.places import Place, is_remote
from sdc_dask.release.progress import compute, say
from sdc_dask.release.promises import allowed_values, is_noise, noise_of, rounded_noise
from sdc_dask.release.shuffle import Shuffle
from sdc_dask.release.signals import unwinding
from sdc_dask.release.source import Source, open_source, to_pandas
from sdc_dask.release.summary import MaskedSet, Summary, checks_of
from sdc_dask.release.target import check_target, output, working_directory, working_parent
from sdc_dask.release.watch import watched
from sdc_dask.release.workers import check_workers
from sdc_dask.release.write import Folder, Masked, masked_part
from sdc_dask.report.measured import Measured
from sdc_dask.report.of_release import ReleaseReport
from sdc_dask.report.roles import Role
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import of_sizes, of_units
from sdc_dask.stages import shown
from sdc_dask.utility.sse import of_sums

ORDERS = ("random", "source")


@knows_its_arguments
def protect(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    target: str | os.PathLike[str],
    specs: Spec | Sequence[Spec],
    *,
    keep: str | Sequence[str] | None = None,
    drop: str | Sequence[str] | None = None,
    long: Long | None = None,
    count: Sequence[Sequence[str]] | None = None,
    order: str = "random",
    partition_by: str | Sequence[str] | None = None,
    delta: bool = False,
    measure: bool = False,
    report: str | os.PathLike[str] | None = None,
    external_report: str | os.PathLike[str] | None = None,
    confidential: str | Sequence[str] | None = None,
    cast: Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    scratch: str | os.PathLike[str] | None = None,
    replace: bool = False,
    random_state: int | None = None,
    progress: bool | None = None,
) -> Summary:
    """Mask a parquet data set into another one that is checked before it appears.

    The work runs where Dask runs it: on the current ``distributed`` client if there is one, else
    on threads. Files are written into a hidden directory beside the target, read again, and
    compared: untouched columns must be as they were, every row must be there, and each spec must
    have kept its promise: every class of equal records has at least k, or every column has the
    values that it had, or those alone that the masking makes. A manifest is put beside them, by
    which :func:`verify` looks at the release again. Only then the directory gets the name of the
    target. If anything fails, there is no target. Ctrl-C and signals that end a program, such as
    SIGTERM, leave nothing behind, either, if this is called in the main thread.

    Parameters
    ----------
    source : path, URL, or list of them
        Parquet files, directories of them, or patterns such as ``"data/2024-*.parquet"``. What
        fsspec knows is a URL, such as ``s3://``, ``gs://``, ``abfs://`` or ``memory://``.
        Directories that are named like ``region=north`` give a column. Files beside them that are
        not parquet are an error, unless their names start with ``_`` or ``.``. Files may differ in
        the order of columns, in the width of numbers, and in columns that some have not: they are
        read as one then, and a warning says how.
    target : path or URL
        The directory, or prefix of a store, to make. In a store, where nothing can be renamed, a
        release is there when its manifest is.
    specs : spec, or list of specs
        What is masked, and how: :class:`Microaggregation`, :class:`SeriesMicroaggregation`,
        :class:`RankSwap`, :class:`Mic1D`, :class:`FuzzyMicroaggregation`, :class:`Recode`,
        :class:`Suppress`, :class:`Pram` or :class:`Noise`. Each of a list masks columns of its
        own, except that the last four go first, in their order, and all later ones see
        what they leave: see :meth:`~sdc_dask.SdcAccessor.mask`.
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
    order : {"random", "source"}, default "random"
        Of the rows, across all files. A random one is drawn afresh, and nobody can repeat it; files
        are of even size. That of the source shows whoever knows the position of a record there
        which record it is: one file for each piece of the source, as Dask reads them, files in
        order of the numbers in their names.
    partition_by : str or list of str, optional
        Kept columns, by whose values files go into directories such as ``region=north``. Readers
        take the column from the path, and find texts or numbers there. Every directory must have
        as many records as the largest k that is promised, or two if none is, and there are 1,000
        at most. Rows are in random order within each.
    delta : bool, default False
        Whether a local target is a Delta table, too, with one version. Needs the package
        ``deltalake``, and columns of types that Delta tables have.
    measure : bool, default False
        Whether loss and risk are measured, between rows of the source and the same rows as they are
        released, while it is known which are the same: see ``measured`` of the result. That takes
        some passes over both; records to be linked are a random sample.
    report, external_report : path, optional
        HTML pages that are written when the release is there, outside of source and target: the
        internal edition for those who decide on the release, which its owner alone can read, and
        the external one for those who use it. See :func:`sdc_dask.report`. What they show is
        measured as by `measure`; it cannot be measured later, when rows are in random order.
    confidential : str or list of str, optional
        Kept columns that must not be learned: the internal report says what classes of equal
        records reveal of them.
    cast : dict, optional
        Types by column of the source, as Arrow names them, such as ``{"price": "float64"}``: for
        what cannot be masked as it is, like decimals. A value that would change is an error.
    storage_options : dict, optional
        Of URLs, for fsspec. By default, stores are reached as the environment says.
    target_options : dict, optional
        Of the target, if it is reached in another way than the source, for which
        `storage_options` are then; an empty one is as the environment says.
    scratch : path, optional
        A directory that all workers reach, in which masked values wait: by default beside the
        target, or, for one in a store, where this machine has its temporary files.
    replace : bool, default False
        Whether a target that exists is replaced, once the new one is checked. Only a release
        is: a directory with a manifest, and no other files than those in it.
    random_state : int, optional
        Of maskings that draw; by default it is drawn afresh, and nobody can repeat the draw.
    progress : bool, optional
        Show stages and a bar; by default on a terminal and in a notebook, or as
        ``sdc-dask.progress`` of Dask's configuration says.

    Warns
    -----
    UniqueAdvice
        If kept columns are unique or nearly so: such a value identifies its record. It comes before
        the release is published, so that nothing is released if it is an error.
    UnchangedAdvice, UnitAdvice
        If all records keep their exact values in columns of numbers that were masked; if classes
        of k records are of a single household, by a column that is named like one. Before the
        release, too.

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
    arguments.flag(replace, "replace")
    arguments.flag(measure, "measure")
    arguments.flag(delta, "delta")
    arguments.one_of(order, "order", ORDERS)
    show = shown() if progress is None else arguments.flag(progress, "progress")
    if long is not None and not isinstance(long, Long):
        raise SdcTypeError(
            f"long must be sdc_dask.Long(id, time, ...), received {type(long).__name__}."
        )
    listed = spec_list(specs)
    for spec in listed:
        spec.to_dict()  # what cannot be written down is not released
    sources, goal, opened = opened_source(
        source, target, cast, storage_options, target_options, replace
    )
    local = [Path(each.path) for each in (*sources, goal) if each.is_local]
    reported = ReleaseReport.of(report, external_report, confidential, local)
    for page in reported.pages.values() if reported else ():
        check_writable(page, "report")
    if delta:
        check_delta(goal)
    check_workers(opened, goal, working_parent(goal, scratch))
    if opened.unified:
        warn(f"files of the source differ, and are read as one: {'; '.join(opened.unified)}.")
    with (
        unwinding(),
        watched(show=show),
        working_directory(goal, scratch) as work,
    ):
        check_target(sources, goal, replace)  # again: a release may have got its name back
        if long is not None:
            say("Making the source wide", show)
            (work / "wide").mkdir(mode=0o700)
            write_wide(opened, work / "wide", long, show)
            opened = open_source(work / "wide")
        opened = opened.without_codes(
            {
                str(name): spec.missing_values
                for spec in listed
                if spec.missing_values
                for name in spec.in_sets
            }
        )
        layout, dropped = layout_of(
            opened, goal, listed, keep, drop, count, order, partition_by, delta
        )
        if reported is not None:
            reported.check(layout.kept, opened.rows, listed)
        run = _Run(
            opened, goal, work, listed, layout, dropped, order, delta, measure, reported, show
        )
        return run.protect(replace, random_state)


@dataclass(frozen=True)
class _Run:
    """What is asked for, checked, and the stages in which it is done."""

    source: Source
    target: Place
    work: Path
    specs: list[Spec]
    layout: Layout
    dropped: tuple[str, ...]
    order: str
    delta: bool
    measure: bool
    report: ReleaseReport | None
    show: bool
    seconds: dict[str, float] = field(default_factory=dict)

    def protect(self, replace: bool, random_state: int | None) -> Summary:
        """Go through all stages."""
        frame = self.source.frame(self.layout.masked, self.layout.placing)
        directories = self._directories()
        with self._stage("plan", "Scanning the data and planning"):
            planned = plan(frame, self.specs, random_state)
        steps = [step for each in planned for step in each.steps]
        changed = {name for change in changes_of(planned) for name in change.columns}
        sums = {
            str(name): sums
            for step in steps
            for name, sums in step.sums.items()
            if name not in changed  # of the source
        }
        allowed = {str(name): rule for name, rule in allowed_values(planned).items()}
        layout = replace_fields(self.layout, summed=tuple(sums), allowed=allowed)
        waiting = ["keys", "rows", *map(str, range(len(steps)))]
        with contextlib.ExitStack() as pages, output(self.target, replace, self.work) as out:
            with _spools(self.work, waiting) as (keys, rows, *folders):
                with (
                    self._stage("mask", "Masking"),
                    _spools(self.work, ["originals"]) as (originals,),
                ):
                    trips = spool(frame, planned, folders, originals)
                    masked = compute(_masked(planned, trips), self.show)
                measured: tuple[Result, ...] = ()
                if self.measure:
                    with self._stage("measure", "Measuring loss and risk"):
                        measured = measures(frame, self._masked_frame(masked), self.specs, layout)
                reported = self._reported(masked)
                with self._stage("write", "Writing and checking files"):
                    folder = Folder(
                        str(out.directory),
                        out.stem,
                        KeyFolder.of(keys, self.source.rows),
                        out.staging,
                    )
                    if out.staging is None:
                        directories.make(out.directory)
                    shuffle = Shuffle.into(rows, directories) if self.order == "random" else None
                    task = write_files(self.source, layout, masked, folder, shuffle)
                    written = compute(task, self.show)
            with self._stage("release", ""):
                written = replace_fields(written, values=written.values | sums)
                summary = self._summary(planned, written, measured, directories)
                _verify(self.source, written, summary)
                # While there is no release: a warning may be an error.
                _advise(summary, layout, written)
                directories.check(written.files)
                log = write_log(out.directory, written.files, layout) if self.delta else None
                manifest = _manifest(written.files, layout, self.specs, summary, log)
                pages.enter_context(self._pages(reported, summary))
                out.publish(manifest)
        return summary

    def _reported(self, masked: Masked) -> Measured | None:
        """Measure what a report shows, if one is asked for."""
        if self.report is None:
            return None
        layout, secret = self.layout, list(self.report.confidential)
        roles = tuple(
            Role.masked_by(name, self.specs)
            or Role(name, "dropped" if name in self.dropped else "kept")
            for name in self.source.schema.names
        )
        others = [name for name in layout.masked if name not in layout.numbers]
        with self._stage("report", "Measuring for the report"):
            frame = self.source.frame(layout.masked, list(dict.fromkeys([*layout.by, *secret])))
            other = self._masked_frame(masked, secret)
            try:
                return self.report.measure(frame, other, self.specs, roles, layout.numbers, others)
            except SdcError as error:
                warn(f"there is no report, since what it shows could not be measured: {error}")
                return None

    @contextlib.contextmanager
    def _pages(self, reported: Measured | None, summary: Summary) -> Iterator[None]:
        """Write the pages of a report, which appear if there is a release in the end."""
        if self.report is None or reported is None:
            yield
            return
        with self.report.written(reported, self.source.rows, checks_of(summary)) as publish:
            yield
            publish()

    def _directories(self) -> Directories:
        """Return where files go: to one directory, or by values that are counted first."""
        source, columns = self.source, self.layout.partition_by
        files = functools.partial(number_of_files, source)
        if not columns:
            return Directories.one(source.rows, files(source.rows))
        with self._stage("count", "Counting the records of directories"):
            rows = compute(count_rows(source, columns, self.layout.by), self.show)
        return divided(columns, rows, max(FEWEST, self._k or 0), files)

    @property
    def _k(self) -> int | None:
        """The largest that a spec promises."""
        return max((spec.promise or 0 for spec in self.specs), default=0) or None

    @contextlib.contextmanager
    def _stage(self, name: str, text: str) -> Iterator[None]:
        """Say what begins, and take the time."""
        if text:
            say(text, self.show)
        start = time.perf_counter()
        yield
        self.seconds[name] = time.perf_counter() - start

    def _masked_frame(self, masked: Masked, others: Sequence[str] = ()) -> Frame:
        """Return the masked columns as they are released, and others, in the source's order."""
        columns = [*self.layout.masked, *others]
        schema = pa.schema([self.layout.schema.field(name) for name in columns])
        meta = to_pandas(schema.empty_table(), list(self.layout.masked), list(others))
        pieces = list(enumerate(self.source.pieces))
        return frame_of(masked_part, pieces, meta, self.layout, masked, tuple(others))

    def _without_noise(
        self, spec: Spec, noise: Mapping[Hashable, float], written: Files
    ) -> tuple[str, ...] | None:
        """Return the columns of a spec that have other noise; None if none could be looked at."""
        looked_at = {}
        for name in (str(each) for each in spec.masked if each in noise):
            kind = self.layout.schema.field(name).type
            found = rounded_noise(noise[name], kind, written.values[name])
            if found is not None:
                looked_at[name] = found
        if not looked_at:
            return None
        return tuple(
            name
            for name, deviation in looked_at.items()
            if not is_noise(written.differences[name], deviation)
        )

    def _summary(
        self,
        planned: Sequence[Planned],
        written: Files,
        measured: tuple[Result, ...],
        directories: Directories,
    ) -> Summary:
        layout = self.layout
        sizes, matching = iter(written.sizes), iter(written.matches)
        units = iter(written.sizes[len(layout.counted) :])
        of_one = iter(written.sizes[len(layout.counted) + len(layout.by_unit) :])
        noise = noise_of(planned)
        sets = []
        for each in planned:
            spec, parts = each.spec, each.by_set
            if spec.promise is None:
                found = next(matching) if spec.matches is not None else None
                looked_at = all(str(name) in written.others for name in spec.masked)
                lacking = self._without_noise(spec, noise, written)
                sets.append(
                    MaskedSet.of(
                        spec,
                        spec.masked,
                        parts[0],
                        None,
                        found,
                        looked_at=looked_at,
                        noise=lacking,
                    )
                )
                continue
            # One part for each set of columns, which have a k each.
            for columns, part in zip(spec.column_sets, parts, strict=True):
                classes = of_sizes(next(sizes), spec.promise)
                of_each = parted = None
                if spec.unit is not None:
                    of_each = of_units(classes, next(units), spec.promise)
                if spec.units_alike:
                    different = next(of_one)
                    parted = int(different.classes[different.sizes > 1].sum())
                notes = each.notes
                sets.append(
                    MaskedSet.of(
                        spec, columns, part, classes, units=of_each, parted=parted, notes=notes
                    )
                )
        joint = of_sizes(next(sizes), None) if layout.together else None
        rows = self.source.rows
        loss = of_sums(rows, written.values, written.differences) if layout.numbers else None
        return Summary(
            target=self.target.url,
            rows=rows,
            files=len(written.files),
            size=sum(file.size for file in written.files),
            order=self.order,
            masked=tuple(sets),
            kept=layout.kept,
            dropped=self.dropped,
            joint=joint,
            known={columns: of_sizes(next(sizes), self._k) for columns in layout.known},
            sse=loss,
            seconds=self.seconds,
            unique=written.unique,
            uncounted=written.uncounted,
            partition_by=layout.partition_by,
            directories=len(directories.rows),
            smallest_directory=min(directories.rows.values()) if layout.partition_by else None,
            delta=self.delta,
            measured=measured,
        )


def layout_of(
    source: Source,
    target: Place,
    specs: list[Spec],
    keep: Any,
    drop: Any,
    count: Any,
    order: str,
    partition_by: Any,
    delta: bool,
) -> tuple[Layout, tuple[str, ...]]:
    """Return what becomes of each column, and those that are dropped; raise an error if open."""
    dropped = dropped_columns(source, specs, keep, drop)
    masked = [str(name) for spec in specs for name in spec.masked]
    levels = path_columns(
        partition_by, source.schema, masked=masked, dropped=dropped, order=order, target=target
    )
    layout = Layout.of(source.schema, specs, dropped, levels)
    layout = replace_fields(layout, known=counted_sets(layout.schema, count))
    if delta:
        check_columns(layout.schema)
    return layout, dropped


def opened_source(
    source: Any,
    target: Any,
    cast: Mapping[str, str] | None = None,
    storage_options: Mapping[str, Any] | None = None,
    target_options: Mapping[str, Any] | None = None,
    replace: bool = False,
) -> tuple[list[Place], Place, Source]:
    """Return where to read and to write, and the source; raise an error if either cannot be.

    Options are for what is not of this machine.
    """
    read = list(source) if isinstance(source, (list, tuple)) else [source]
    own = target_options is not None
    if own and not isinstance(target_options, Mapping):
        raise SdcTypeError(
            f"target_options must be a dict, received {type(target_options).__name__}."
        )
    if storage_options and not any(map(is_remote, read if own else [*read, target])):
        raise SdcValueError(
            "storage_options are for URLs such as 's3://bucket/name', and there is none"
            f"{' besides the target, which has options of its own' if own else ''}: leave them out."
        )
    if own and not is_remote(target):
        raise SdcValueError(
            "target_options are for a target with a URL such as 's3://bucket/name', and it has "
            "none: leave them out."
        )
    places = [Place.of(each, storage_options if is_remote(each) else None) for each in read]
    there = target_options if own else storage_options
    goal = Place.of(target, there if is_remote(target) else None)
    sources = asked_places(places)
    check_target(sources, goal, replace)
    opened = open_source(sources, cast=cast)
    _check_files(opened, goal)
    return sources, goal, opened


def _check_files(source: Source, target: Place) -> None:
    """Raise ValueError if a file of the source is a link to one in the target."""
    goal = Path(target.path).resolve()
    inside = [
        file.path
        for file in source.files
        if target.is_local and goal in Path(file.path).resolve().parents
    ]
    if inside:
        raise SdcValueError(
            f"{len(inside)} files of the source are links into the target, the first is "
            f"{inside[0]!r}: choose another target directory."
        )


@contextlib.contextmanager
def _spools(directory: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Give directories for what waits on disk, and remove them."""
    folders = [directory / f"spool-{name}" for name in names]
    for folder in folders:
        folder.mkdir(mode=0o700)
    yield [str(folder) for folder in folders]
    for folder in folders:
        shutil.rmtree(folder)


def _masked(planned: Sequence[Planned], trips: Sequence[Trip]) -> Task:
    """Return the task that masks all columns, and says where their values wait."""
    call = Calls(lazy=True)
    changes = call.share(changes_of(planned))
    steps = call.share([trip.step for trip in trips])
    checksums = [call(list, trip.checksums) for trip in trips]
    return call(_together, changes, steps, [trip.back for trip in trips], checksums)


def _together(
    changes: list[Change],
    steps: list[Step],
    spools: list[Spool],
    checksums: list[list[np.uint64]],
) -> Masked:
    return Masked(tuple(changes), tuple(steps), tuple(spools), tuple(map(tuple, checksums)))


def _verify(source: Source, written: Files, summary: Summary) -> None:
    """Raise RuntimeError unless all rows are there and every promise is kept on the files."""
    files, moved = written.files, written.moved
    source.check_unchanged()
    rows = sum(file.rows for file in files)
    if rows != source.rows:
        raise SdcRuntimeError(f"{rows} rows were written of {source.rows} in the source.")
    for each in summary.masked:
        k = each.spec.promise
        for reached, what in ((each.anonymity, "equal records"), (each.units, "different units")):
            if reached is not None and (reached.rows != rows or reached.k_min < (k or 0)):
                raise SdcRuntimeError(
                    f"the files have a class of {reached.k_min} {what} in the columns "
                    f"{', '.join(each.columns)}, fewer than k={k}. Nothing is released."
                )
        if each.parted:
            raise SdcRuntimeError(
                f"the files have {each.parted} units whose records are not equal in the columns "
                f"{', '.join(each.columns)}, as units_alike=True says. Nothing is released."
            )
    for each in summary.masked:
        if each.noise:
            raise SdcRuntimeError(
                f"the files have more or less noise than was asked for in columns: "
                f"{', '.join(each.noise)}. Nothing is released."
            )
        found, k = each.matches, each.spec.matches
        if found is not None and found.smallest < (k or 0):
            raise SdcRuntimeError(
                f"the files have a record that {found.smallest} records match in the columns "
                f"{', '.join(each.columns)}, fewer than k={k}. Nothing is released."
            )
    strange = {name: count for name, count in written.others.items() if count}
    if strange:
        listed = ", ".join(f"{name!r} ({count})" for name, count in strange.items())
        raise SdcRuntimeError(
            f"the files have values that masked columns must not have: {listed}. Nothing is "
            "released."
        )
    changed = int((moved[:, 0] != moved[:, 1]).any(axis=1).sum())
    if changed:
        raise SdcRuntimeError(
            f"{changed} columns whose values were to change places have other values in the files "
            "than in the source. Nothing is released."
        )


def _advise(summary: Summary, layout: Layout, written: Files) -> None:
    """Warn of what was most likely not meant."""
    if summary.rows >= FEWEST_ADVISED:
        advise_unchanged(summary.unchanged)
    for (_, k, unit), lone in zip(layout.watched, written.lone, strict=True):
        lone.advise(k, unit)
    if not summary.unique:
        return
    named = ", ".join(f"{name!r} ({share:.0%})" for name, share in summary.unique.items())
    warn(
        "kept columns are unique or nearly so, by the share of records that have a value of their "
        f"own: {named}. Whoever knows such a value knows the record: drop or mask them, unless "
        "they mean nothing outside of the release.",
        UniqueAdvice,
    )


def _manifest(
    files: Sequence[ReleasedFile],
    layout: Layout,
    specs: Sequence[Spec],
    summary: Summary,
    log: ReleasedFile | None,
) -> Manifest:
    """Return what the release says of itself."""
    counted = [each for each in summary.masked if each.anonymity is not None]
    promises = [
        Promise(columns, each.spec.promise, each.anonymity.k_min, each.anonymity.classes)
        for columns, each in zip(layout.promised, counted, strict=True)
        if each.anonymity is not None and each.spec.promise is not None
    ]
    matches = [
        MatchPromise(each.columns, each.spec.matches, *astuple(each.matches))
        for each in summary.masked
        if each.matches is not None and each.spec.matches is not None
    ]
    masked = [spec.to_dict() for spec in specs]
    return Manifest.of(files, layout.schema, masked, promises, layout.partition_by, log, matches)
