"""The commands of the program: from arguments to one call, and from what goes wrong to one line.

Messages never show a value of the data: an exception whose text cannot be trusted not to is named
by its type alone, unless ``--debug`` asks for everything.
"""

from __future__ import annotations

import contextlib
import io
import json
import logging
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
from dask.utils import parse_bytes
from distributed import Client

from sdc_dask import messages
from sdc_dask.errors import (
    SdcError,
    SdcFileExistsError,
    SdcFileNotFoundError,
    SdcValueError,
    SdcWarning,
)
from sdc_dask.job import Job
from sdc_dask.masking_options import OF_NAMES, MaskingCommand, asked_spec, given_flags
from sdc_dask.release import cluster
from sdc_dask.release.outputs import check_writable
from sdc_dask.release.places import Place, is_remote
from sdc_dask.release.protect import ORDERS
from sdc_dask.release.signals import stoppable
from sdc_dask.release.summary import Summary
from sdc_dask.release.verify import release_manifest
from sdc_dask.release.verify import verify as verify_release
from sdc_dask.report.of_release import ReleaseReport
from sdc_dask.stages import stage
from sdc_dask.warmup import warmup as compile_kernels
from sdc_dask_start import INTERRUPTED, TERMINATED, complain, main

__all__ = ["demo", "main", "protect", "verify", "warmup"]

FAILED = 1
Work = Callable[[bool], int]  # of whether the process ends afterwards, to the exit code

_TLS = ("tls_ca_file", "tls_cert", "tls_key")
_WHERE = ("workers", "memory_limit", "scheduler", *_TLS)
_PAGES = ("report", "external_report", "confidential")
_STORES = ("storage_options", "target_options")
_OF_THE_RUN = ("replace", *_WHERE, *_STORES, *_PAGES, "json", "quiet", "debug")


# Options


def _memory(_context: Any, _option: Any, text: str | None) -> str:
    try:
        parse_bytes(text or "0")
    except ValueError:
        raise click.BadParameter(
            f"must be a size such as 1GiB or 500MB, received {text!r}."
        ) from None
    return text or "auto"


def _pairs(_context: Any, _option: Any, texts: Sequence[str]) -> dict[str, str]:
    pairs = [text.partition("=") for text in texts]
    if not all(name and sign for name, sign, _ in pairs):
        raise click.BadParameter("must be NAME=VALUE.")  # the text may be a secret
    return {name: value for name, _, value in pairs}


def _values(context: Any, option: Any, texts: Sequence[str]) -> dict[str, Any]:
    return {name: _value(text) for name, text in _pairs(context, option, texts).items()}


def _value(text: str) -> Any:
    """Return what a text means as JSON: a truth, a number, an object; any other as it is.

    A number is one only if it is written as numbers are: a key such as ``12e4`` is a text.
    """
    try:
        value = json.loads(text)
    except ValueError:
        return text
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return text if is_number and json.dumps(value) != text else value


_workers = click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    help="worker processes to start; default: one for each processor",
)
_memory_limit = click.option(
    "--memory-limit",
    callback=_memory,
    metavar="SIZE",
    help="of each worker, such as 1GiB; default: its share of the machine's memory",
)
_scheduler = click.option(
    "--scheduler",
    metavar="ADDRESS",
    help="run on this Dask scheduler, whose workers must reach SOURCE and TARGET under the same "
    "names; default: worker processes of this machine",
)
_tls_ca_file = click.option(
    "--tls-ca-file",
    metavar="FILE",
    help="certificates of the authorities that are trusted, for a tls:// scheduler; default: as "
    "Dask is configured",
)
_tls_cert = click.option("--tls-cert", metavar="FILE", help="certificate for a tls:// scheduler")
_tls_key = click.option(
    "--tls-key", metavar="FILE", help="key of that certificate, if it is in another file"
)
_storage_option = click.option(
    "--storage-option",
    "storage_options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_values,
    help="how stores are reached, such as endpoint_url=https://... or anon=true; a value that is "
    "JSON is what it means there, so that '\"123\"' is a text. Secrets are better left to the "
    "environment; again for others",
)
_target_option = click.option(
    "--target-option",
    "target_options",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_values,
    help="the same for TARGET alone, where --storage-option is then for SOURCE alone",
)
_debug = click.option("--debug", is_flag=True, help="print tracebacks, which may show data values")


# The command protect


@click.command(
    cls=MaskingCommand,
    epilog="Exit codes: 0 the release is there, 1 failed, 2 wrong usage, 130 interrupted, 143 "
    "terminated.",
)
@click.argument("paths", nargs=-1, metavar="{SOURCE TARGET | JOB.toml}")
@click.option(
    "--keep", help="columns that are written as they are; * for all that are left", **OF_NAMES
)
@click.option("--drop", help="columns that are not written, such as direct identifiers", **OF_NAMES)
@click.option(
    "--count",
    help="columns that an intruder may know: count classes in them; again for others",
    **OF_NAMES,
)
@click.option(
    "--order",
    type=click.Choice(ORDERS),
    default="random",
    help="of rows, across all files; default: random. That of the source reveals positions",
)
@click.option(
    "--partition-by",
    help="kept columns by whose values files go into directories such as region=north",
    **OF_NAMES,
)
@click.option("--delta", is_flag=True, help="make a Delta table of TARGET, too")
@click.option(
    "--measure",
    "measured",
    is_flag=True,
    help="measure loss and risk, too: for the summary, not the release",
)
@click.option(
    "--cast",
    multiple=True,
    metavar="NAME=TYPE",
    callback=_pairs,
    help="read a column as another type, such as price=float64 for decimals; again for others",
)
@_storage_option
@_target_option
@click.option(
    "--scratch",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="where masked values wait, on a disk that all workers reach; default: beside TARGET",
)
@click.option(
    "--write-job",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="write all this as a job file, and run nothing",
)
@click.option("--replace", is_flag=True, help="replace TARGET once the new data is checked")
@_workers
@_memory_limit
@_scheduler
@_tls_ca_file
@_tls_cert
@_tls_key
@click.option(
    "--json",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="write all that is known of the run as JSON, too: it is no part of the release",
)
@click.option(
    "--report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="write an HTML page for those who decide on the release: risk and loss; keep it",
)
@click.option(
    "--external-report",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="write an HTML page for those who use the release: what was changed",
)
@click.option(
    "--confidential",
    help="kept columns that must not be learned: --report says what classes reveal of them",
    **OF_NAMES,
)
@click.option("--quiet", is_flag=True, help="print only warnings and errors")
@_debug
@click.pass_context
def protect(context: click.Context, /, paths: tuple[str, ...], **options: Any) -> Work:
    """Mask the parquet data set SOURCE, a file or a directory, into the directory TARGET.

    What is written is read again and checked before TARGET appears; if anything fails, there is no
    TARGET. A job file says what is read, masked and written instead of these options.
    """
    try:
        job = _job(context, paths, options)
        if options["write_job"] is not None:
            job.write(options["write_job"])
            return lambda _last: 0
    except SdcError as error:
        raise click.UsageError(str(error), context) from None

    def work() -> None:
        stores = {name: options[name] or None for name in _STORES}
        job.check(replace=options["replace"], **stores)
        taken = [*job.local_paths, *map(Path, paths)]
        _check_json(options["json"], taken)
        secret = [name for names in options["confidential"] for name in names]
        pages = {name: options[name] for name in ("report", "external_report")}
        pages["confidential"] = secret or None
        reported = ReleaseReport.of(**pages, outside=taken)  # before workers start
        for page in reported.pages.values() if reported else ():
            check_writable(page, "report")
        quiet = options["quiet"]
        with _client(**{name: options[name] for name in _WHERE}, quiet=quiet):
            progress = False if quiet or sys.stderr is None else None
            summary = job.run(replace=options["replace"], progress=progress, **stores, **pages)
            _report(summary, options["json"], quiet=quiet)

    return lambda last: _run(work, releases=True, debug=options["debug"], last=last)


def _job(context: click.Context, paths: Sequence[str], options: dict[str, Any]) -> Job:
    """Return the job that arguments ask for, from a file or from options."""
    given = given_flags(context)
    of_the_run = [given[name] for name in _OF_THE_RUN if name in given]
    of_both = ("measured", "paths")  # a release is the same, whether it is measured or not
    of_the_job = [given[name] for name in given if name not in (*_OF_THE_RUN, *of_both)]
    if "scheduler" in given and {"workers", "memory_limit"} & given.keys():
        raise SdcValueError(
            "--workers and --memory-limit are for worker processes that are started here: leave "
            "them out with --scheduler."
        )
    of_tls = [given[name] for name in _TLS if name in given]
    if of_tls and not (options["scheduler"] or "").startswith("tls://"):
        raise SdcValueError(
            f"{', '.join(of_tls)} is for an encrypted scheduler: give its address, such as "
            "--scheduler tls://host:8786."
        )
    if "write_job" in given and of_the_run:
        raise SdcValueError(
            f"--write-job runs nothing, and {', '.join(of_the_run)} is for a run: leave it out."
        )
    if len(paths) == 1:
        if is_remote(paths[0]) or Path(paths[0]).is_dir() or Path(paths[0]).suffix == ".parquet":
            raise SdcValueError(
                f"name a TARGET, too: a single path is a job file, and {paths[0]!r} is none."
            )
        if of_the_job:
            raise SdcValueError(
                f"a job file says what {', '.join(of_the_job)} would say: leave it out, or change "
                "the file. Without a job file, name SOURCE and TARGET."
            )
        job = Job.read(paths[0])
        return replace(job, measure=True) if options["measured"] else job
    if len(paths) != 2:
        several = (
            " Names of columns are separated by commas without spaces, and * is quoted "
            "(--keep '*'), since the shell makes names of files of it."
        )
        raise SdcValueError(
            f"name SOURCE and TARGET, or a job file, received {len(paths)} paths."
            f"{several if len(paths) > 2 else ''}"
        )
    keep, drop, levels = (
        tuple(name for names in options[which] for name in names)
        for which in ("keep", "drop", "partition_by")
    )
    count = tuple(tuple(names) for names in options["count"])
    how = {name: options[name] for name in ("order", "delta", "cast", "scratch")} | {
        "partition_by": levels,
        "measure": options["measured"],
    }
    source, target = paths
    return Job(source, target, (asked_spec(context),), drop, keep, count, **how)


def _check_json(file: Path | None, taken: Sequence[Path]) -> None:
    """Refuse a file that could not be written in the end, or must not be."""
    if file is None:
        return
    if file.is_dir():
        raise SdcFileExistsError(f"--json {str(file)!r} is a directory: give the name of a file.")
    if not file.parent.is_dir():
        raise SdcFileNotFoundError(
            f"the directory of --json {str(file)!r} does not exist: make it."
        )
    place = file.resolve()
    if any(each.resolve() in (place, *place.parents) for each in taken):
        raise SdcValueError(
            f"--json {str(file)!r} is the job file, or lies in the source or the target: choose "
            "another file."
        )
    check_writable(file, "--json")


def _report(summary: Summary, file: Path | None, *, quiet: bool) -> None:
    """Say what was done. The release is there, so that failing here only warns."""
    try:
        if not quiet:
            print(summary, flush=True)
    except (OSError, ValueError) as error:
        sys.stdout = io.StringIO()  # the rest would fail again when the process ends
        complain(f"warning: the summary could not be printed: {_reason(error)}.")
    if file is None:
        return
    try:
        summary.write(file)
    except OSError as error:
        complain(f"warning: the summary could not be written: {_reason(error)}.")


# The command verify


@click.command(epilog="Exit codes: 0 all is as it was released, 1 something is not, 2 wrong usage.")
@click.argument("target")
@_storage_option
@click.option(
    "--json",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="write what was found as JSON, too",
)
@_workers
@_memory_limit
@_debug
def verify(
    target: str, workers: int | None, memory_limit: str, debug: bool, **options: Any
) -> Work:
    """Look at the release TARGET again, whether files are whole and unchanged, and k is kept.

    This needs its files alone, with the manifest among them.
    """

    def work() -> None:
        file = options["json"]
        stores = options["storage_options"] or None
        place = Place.of(target, stores)
        _check_json(file, [Path(target)] if place.is_local else [])
        release_manifest(place)  # before workers start
        with _client(workers, memory_limit):
            found = verify_release(target, storage_options=stores)
        print(found, flush=True)
        if file is not None:
            file.write_text(json.dumps(found.to_dict(), indent=2) + "\n", encoding="utf-8")
        if not found.ok:
            raise SdcValueError(f"{len(found.failed)} checks of the release failed.")

    return lambda last: _run(work, releases=False, debug=debug, last=last)


# The command warmup


@click.command()
@click.option(
    "--columns",
    type=click.IntRange(1, 20),
    multiple=True,
    metavar="N",
    help="unroll loops for so many columns, too, as for large data; again for other numbers",
)
@_debug
def warmup(columns: tuple[int, ...], debug: bool) -> Work:
    """Compile all kernels ahead of their first use, which takes a minute or two.

    They are kept beside the package, or where NUMBA_CACHE_DIR says, for all processes that come
    later: run this when an image is made, or before many workers start at once.
    """

    def work() -> None:
        began = time.perf_counter()
        compile_kernels(columns, say=lambda text: print(f"compiling: {text}", flush=True))
        print(f"done in {time.perf_counter() - began:.0f} s", flush=True)

    return lambda last: _run(work, releases=False, debug=debug, last=last)


# The command demo


@click.command()
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=300_000,
    metavar="N",
    help="number of persons; default: 300,000",
)
@click.option(
    "-k", type=click.IntRange(2), default=5, metavar="N", help="smallest group; default: 5"
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="keep the files here; default: a temporary folder that is removed",
)
@_workers
@_memory_limit
@_debug
def demo(
    rows: int, k: int, folder: Path | None, workers: int | None, memory_limit: str, debug: bool
) -> Work:
    """Make a survey of persons, protect it, and show what was lost and what is risked."""
    from sdc_dask.demo import run

    def work() -> None:
        with _client(workers, memory_limit):
            run(rows, k, folder)

    return lambda last: _run(work, releases=False, debug=debug, last=last)


# Where the work runs


@contextlib.contextmanager
def _client(
    workers: int | None,
    memory_limit: str,
    scheduler: str | None = None,
    tls_ca_file: str | None = None,
    tls_cert: str | None = None,
    tls_key: str | None = None,
    *,
    quiet: bool = False,
) -> Iterator[Client]:
    """Connect to the scheduler that was named, or start worker processes here."""
    with contextlib.ExitStack() as stack:
        if scheduler is None:
            with contextlib.nullcontext() if quiet else stage("Starting worker processes"):
                client = stack.enter_context(cluster.local_cluster(workers, memory_limit))
        else:
            tls = {"ca_file": tls_ca_file, "cert": tls_cert, "key": tls_key}
            client = stack.enter_context(cluster.connected(scheduler, **tls))
            cluster.warn_if_open(client)
        yield client


# How it ends


def _run(work: Callable[[], None], *, releases: bool, debug: bool, last: bool) -> int:
    """Do the work of a command, and return the exit code: 0 if there is a release."""
    stop = None
    try:
        with _logs_shown(debug), _warnings_told(), stoppable(releases=releases, last=last) as stop:
            work()
    except BaseException as error:
        if debug:
            _print_all(error)
        if stop and stop.published:
            complain(f"warning: the release is there, but then: {_one_line(error)}")
            return 0
        if isinstance(error, Exception):
            complain(f"error: {_one_line(error)}")
            return FAILED
        interrupted = isinstance(error, KeyboardInterrupt)
        complain("interrupted." if interrupted else "terminated.")
        return INTERRUPTED if interrupted else TERMINATED
    return 0


@contextlib.contextmanager
def _warnings_told() -> Iterator[None]:
    """Print warnings of this package as the program's own, without a line of its code."""
    shown = warnings.showwarning

    def tell(message: Any, category: type[Warning], *where: Any, **options: Any) -> None:
        if issubclass(category, SdcWarning):
            complain(f"warning: {message}")
        else:
            shown(message, category, *where, **options)

    warnings.showwarning = tell
    try:
        yield
    finally:
        warnings.showwarning = shown


@contextlib.contextmanager
def _logs_shown(show: bool) -> Iterator[None]:
    """Show log records, which may quote exceptions and so data values, or do not."""
    before = logging.root.manager.disable
    logging.disable(before if show else logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


def _reason(error: Exception) -> str:
    """Return why an output failed: its type, and what the system says."""
    reason = messages.reason(error)
    return type(error).__name__ + (f": {reason}" if reason else "")


def _print_all(error: BaseException) -> None:
    """Print a traceback, and those of exceptions that are not shown otherwise."""
    each: BaseException | None = error
    while each is not None:
        each.__suppress_context__ = False
        each = each.__cause__ or each.__context__
    traceback.print_exception(error)


def _one_line(error: BaseException) -> str:
    """Return what can be said of an exception without showing data."""
    said = messages.one_line(error)
    if messages.is_told(error):
        return said
    return f"{said} --debug prints the traceback, which may show data values."
