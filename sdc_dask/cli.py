"""The command line: from arguments to one call, and from what goes wrong to one line.

Messages never show a value of the data. An exception whose text cannot be trusted not to is named
by its type alone, unless ``--debug`` asks for everything.
"""

from __future__ import annotations

import argparse
import contextlib
import ipaddress
import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sdc_dask.errors import SdcError, SdcFileExistsError, SdcFileNotFoundError, SdcRuntimeError

if TYPE_CHECKING:
    from distributed import Client

PROGRAM = "sdc-dask"
FAILED, INTERRUPTED, TERMINATED = 1, 130, 143  # argparse exits with 2

_ADVICE = {
    "KilledWorker": "A worker process died, most likely for lack of memory: give workers more with "
    "--memory-limit, or start fewer with --workers.",
    "MemoryError": "Give workers more memory with --memory-limit, or start fewer with --workers.",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; by default those of this process.

    Returns
    -------
    int
        Exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.
    """
    try:
        arguments = _parser().parse_args(argv)
        _check_usage(arguments)
    except SystemExit as stop:
        return int(stop.code or 0)
    try:
        with _stopped_by_signals(), _logs_shown(arguments.debug):
            arguments.run(arguments)
    except (KeyboardInterrupt, SystemExit) as stop:
        terminated = isinstance(stop, SystemExit)
        _complain("terminated." if terminated else "interrupted.")
        return TERMINATED if terminated else INTERRUPTED
    except Exception as error:
        if arguments.debug:
            traceback.print_exception(error)
        _complain(f"error: {_one_line(error)}")
        return FAILED
    return 0


def _protect(arguments: argparse.Namespace) -> None:
    from sdc_dask.masking.microaggregation import Microaggregation
    from sdc_dask.release.protect import protect

    _check_json(arguments.json)
    with _client(arguments):
        spec = Microaggregation(
            arguments.columns,
            arguments.k,
            method=arguments.method,
            blocking=None if arguments.blocking == "none" else arguments.blocking,
            max_block=arguments.max_block,
            standardize=arguments.standardize,
            by=arguments.by,
            missing=arguments.missing,
            gain=arguments.gain,
            weights=arguments.weights,
            measure=arguments.measure,
        )
        summary = protect(
            arguments.source,
            arguments.target,
            spec,
            drop=arguments.drop,
            replace=arguments.replace,
            progress=False if arguments.quiet else None,
        )
    if not arguments.quiet:
        print(summary)
    if arguments.json is not None:
        text = json.dumps(summary.to_dict(), indent=2)
        arguments.json.write_text(text + "\n", encoding="utf-8")


def _demo(arguments: argparse.Namespace) -> None:
    from sdc_dask.demo import run

    with _client(arguments):
        run(arguments.rows, arguments.k, arguments.folder)


# Where the work runs


@contextlib.contextmanager
def _client(arguments: argparse.Namespace) -> Iterator[Client]:
    """Connect to the scheduler that was named, or start worker processes here."""
    if arguments.scheduler is None:
        from sdc_dask.release.cluster import local_cluster

        with contextlib.ExitStack() as stack:
            with _ctrl_c_ignored():
                cluster = local_cluster(arguments.workers, arguments.memory_limit or "auto")
                client = stack.enter_context(cluster)
            yield client
        return
    if not _is_private(arguments.scheduler):
        _complain(
            f"warning: the data goes to {arguments.scheduler} without encryption, and whoever "
            "reaches that scheduler can read it and run code on the workers. Use a tls:// address."
        )
    with _connected(arguments.scheduler) as client:
        yield client


def _connected(address: str) -> Client:
    from distributed import Client

    try:
        return Client(address)
    except (OSError, ValueError, TypeError) as error:
        raise SdcRuntimeError(
            f"no scheduler could be reached at {address!r} ({type(error).__name__}): check the "
            "address, such as tcp://host:8786, and that the scheduler runs."
        ) from error


def _is_private(address: str) -> bool:
    """Whether an address is encrypted, or does not leave this machine."""
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme in ("tls", "inproc") or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


@contextlib.contextmanager
def _stopped_by_signals() -> Iterator[None]:
    """Let SIGTERM and Ctrl-C unwind the program, so that nothing half-done is left behind."""
    stops: list[BaseException] = []

    def stop(number: int, _frame: FrameType | None) -> None:
        if not stops:
            terminated = number == signal.SIGTERM
            stops.append(SystemExit(TERMINATED) if terminated else KeyboardInterrupt())
        # Python drops what is raised in a callback of the garbage collector or a finalizer, and
        # a signal may meet one: raise again until the program unwinds, but never while it does,
        # since cleaning up must come to its end.
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        if not _is_unwinding(stops[0]):
            raise stops[0]

    numbers = (signal.SIGALRM, signal.SIGTERM, signal.SIGINT)
    with contextlib.ExitStack() as stack:
        for number in numbers:
            stack.enter_context(_handled(number, stop))
        try:
            yield
        finally:
            if stops:
                signal.setitimer(signal.ITIMER_REAL, 0)


def _is_unwinding(stop: BaseException) -> bool:
    """Whether an exception is being handled right now, or what followed from it."""
    error = sys.exception()
    while error is not None and error is not stop:
        error = error.__context__
    return error is stop


def _ctrl_c_ignored() -> contextlib.AbstractContextManager[None]:
    """Ignore Ctrl-C while processes start, which inherit this: a terminal signals them, too.

    The program alone is to be interrupted; it stops its workers, which have nothing to say then.
    """
    return _handled(signal.SIGINT, signal.SIG_IGN)


@contextlib.contextmanager
def _handled(number: int, handler: Any) -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():
        yield  # signals do not arrive here
        return
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


@contextlib.contextmanager
def _logs_shown(show: bool) -> Iterator[None]:
    """Show log records, which may quote exceptions and so data values, or do not."""
    before = logging.root.manager.disable
    logging.disable(before if show else logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


# What is said when it fails


def _complain(text: str) -> None:
    print(f"{PROGRAM}: {text}", file=sys.stderr, flush=True)


def _one_line(error: Exception) -> str:
    """Return what can be said of an exception without showing data."""
    if isinstance(error, SdcError):
        return " ".join(str(error).split())
    kind = type(error).__name__
    if isinstance(error, OSError) and error.errno is not None:
        where = f": {error.filename}" if isinstance(error.filename, str) else ""
        return f"{kind}: {os.strerror(error.errno)}{where}."
    advice = _ADVICE.get(kind, "Its text may show data values and is not printed.")
    return f"{kind}. {advice} --debug prints the traceback, which may show data values."


def _check_json(file: Path | None) -> None:
    """Refuse a file that could not be written in the end."""
    if file is None:
        return
    if file.is_dir():
        raise SdcFileExistsError(f"--json {str(file)!r} is a directory: give the name of a file.")
    if not file.parent.is_dir():
        raise SdcFileNotFoundError(
            f"the directory of --json {str(file)!r} does not exist: make it."
        )


# Arguments


def _parser() -> argparse.ArgumentParser:
    from sdc_dask import __version__

    parser = argparse.ArgumentParser(
        prog=PROGRAM,
        description="Statistical disclosure control of microdata that need not fit in memory.",
        allow_abbrev=False,
    )
    parser.add_argument("--version", action="version", version=f"{PROGRAM} {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    _add_protect(commands)
    _add_demo(commands)
    return parser


def _add_protect(commands: Any) -> None:
    from sdc_dask.engine.blocks import METHODS as BLOCKINGS
    from sdc_dask.masking.microaggregation import METHODS

    parser = commands.add_parser(
        "protect",
        help="microaggregate a parquet data set into a checked one",
        description="Microaggregate the parquet data set SOURCE, a file or a directory, into the "
        "directory TARGET. What is written is read again and checked before TARGET appears; if "
        "anything fails, there is no TARGET.",
        epilog="exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated",
        allow_abbrev=False,
    )
    parser.add_argument("source", type=Path, metavar="SOURCE")
    parser.add_argument("target", type=Path, metavar="TARGET")
    parser.add_argument(
        "--columns",
        type=_names,
        action="append",
        required=True,
        metavar="A,B,C",
        help="columns to mask; given several times, each is a group that is masked on its own",
    )
    _add_k(parser, required=True)
    parser.add_argument("--method", choices=list(METHODS), default="mdav", help="default: mdav")
    parser.add_argument(
        "--by",
        type=_names,
        action="extend",
        metavar="A,B",
        help="columns whose values groups never mix",
    )
    parser.add_argument(
        "--drop",
        type=_names,
        action="extend",
        metavar="A,B",
        help="columns that are not written, such as direct identifiers; all others are",
    )
    parser.add_argument(
        "--missing",
        choices=["error", "separate"],
        default="error",
        help="missing cells in masked columns: an error (default), or groups by their pattern",
    )
    parser.add_argument(
        "--max-block",
        type=_max_block,
        default="auto",
        metavar="N|auto",
        help="largest block of records that is searched for groups; default: auto",
    )
    parser.add_argument(
        "--blocking",
        choices=["auto", *BLOCKINGS, "none"],
        default="auto",
        help="default: auto, which is tree for mdav and vmdav, none for methods along an order",
    )
    parser.add_argument(
        "--gain",
        type=float,
        metavar="X",
        help="of vmdav: how readily a group takes more than k records; default: 0.2",
    )
    parser.add_argument(
        "--weights", type=_weights, metavar="X,Y,Z", help="of weighted_mean: one for each column"
    )
    parser.add_argument(
        "--measure",
        type=_measure,
        metavar="NAME:X",
        help="of owa, choquet, sugeno, twofold: the quantifier power:X, sigmoid:X or threshold:X",
    )
    parser.add_argument(
        "--no-standardize",
        dest="standardize",
        action="store_false",
        help="measure distances in the columns' own units",
    )
    parser.add_argument(
        "--replace", action="store_true", help="replace TARGET once the new data is checked"
    )
    _add_cluster(parser)
    parser.add_argument(
        "--scheduler",
        metavar="ADDRESS",
        help="run on this Dask scheduler, whose workers must reach SOURCE and TARGET under the "
        "same names; default: worker processes of this machine",
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the summary as JSON, too")
    parser.add_argument(
        "--quiet", action="store_true", help="print nothing but warnings and errors"
    )
    _add_debug(parser)
    parser.set_defaults(run=_protect, fail=parser.error)


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="protect a made-up survey and show what happened",
        description="Make a survey of persons, protect it, and show in plain words what was lost "
        "and what is risked.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--rows",
        type=_whole_number(1),
        default=300_000,
        metavar="N",
        help="number of persons; default: 300,000",
    )
    parser.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="keep the files here; default: a temporary folder that is removed",
    )
    _add_k(parser, default=5)
    _add_cluster(parser)
    _add_debug(parser)
    parser.set_defaults(run=_demo, fail=parser.error, scheduler=None)


def _add_k(parser: argparse.ArgumentParser, **options: Any) -> None:
    parser.add_argument("-k", type=_whole_number(2), metavar="K", help="smallest group", **options)


def _add_cluster(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--workers",
        type=_whole_number(1),
        metavar="N",
        help="worker processes to start; default: one for each processor",
    )
    parser.add_argument(
        "--memory-limit",
        type=_memory,
        metavar="SIZE",
        help="of each worker, such as 1GiB; default: its share of the machine's memory",
    )


def _add_debug(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--debug", action="store_true", help="print tracebacks, which may show data values"
    )


def _check_usage(arguments: argparse.Namespace) -> None:
    if arguments.scheduler and (arguments.workers or arguments.memory_limit):
        arguments.fail(
            "--workers and --memory-limit are for worker processes that are started here: leave "
            "them out with --scheduler."
        )


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(
            f"an empty name in {text!r}: give names with a comma between them, such as a,b"
        )
    return names


def _whole_number(smallest: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        number = int(text) if text.isdecimal() else -1
        if number < smallest:
            raise argparse.ArgumentTypeError(
                f"must be a whole number of at least {smallest}, received {text!r}"
            )
        return number

    return convert


def _max_block(text: str) -> int | str:
    return text if text == "auto" else _whole_number(2)(text)


def _weights(text: str) -> list[float]:
    try:
        return [float(each) for each in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be numbers with a comma between them, such as 0.5,0.3,0.2, received {text!r}"
        ) from None


def _measure(text: str) -> Any:
    from sdc_dask import aggregation

    families = {
        "power": aggregation.power,
        "sigmoid": aggregation.sigmoid,
        "threshold": aggregation.threshold,
    }
    name, _, parameter = text.partition(":")
    try:
        return families[name](float(parameter))
    except (KeyError, ValueError):
        raise argparse.ArgumentTypeError(
            "must be power:X with X above 0, sigmoid:X with X from 0 to 1, or threshold:X with X "
            f"from 0 to less than 1, received {text!r}"
        ) from None


def _memory(text: str) -> str:
    from dask.utils import parse_bytes

    try:
        parse_bytes(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"must be a size such as 1GiB or 500MB, received {text!r}"
        ) from None
    return text


if __name__ == "__main__":
    sys.exit(main())
