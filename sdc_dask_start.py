"""The program ``sdc-dask``: its help at once, and its commands from the package ``sdc_dask``.

Importing the package takes seconds, since it brings Dask and numba along. This module stands
beside it, so that help and wrong commands need not wait for that.
"""

from __future__ import annotations

import contextlib
import io
import os
import signal
import sys
from collections.abc import Iterator, Sequence
from types import FrameType

import click

PROGRAM = "sdc-dask"
INTERRUPTED, TERMINATED = 130, 143

_COMMANDS = {  # their names in sdc_dask.cli, and what help says of them
    "protect": "Mask a parquet data set into one that is checked.",
    "verify": "Look at a release again: files, rows, schema and k.",
    "warmup": "Compile all kernels ahead of their first use.",
    "demo": "Protect a made-up survey and show what happened.",
}


class _Commands(click.Group):
    """Commands that are imported when they are used."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        with _said("loading"):
            from sdc_dask import cli

        return getattr(cli, name)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group(cls=_Commands, no_args_is_help=False)
@click.version_option(package_name="sdc-dask", prog_name=PROGRAM, message="%(prog)s %(version)s")
def _program() -> None:
    """Statistical disclosure control of microdata that need not fit in memory."""


def start() -> int:
    """Run the command line as the program that this process is for.

    Returns
    -------
    int
        Exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted, 143 terminated.
    """
    # As long as only modules are imported, there is nothing to clean up.
    signal.signal(signal.SIGINT, _leave)
    signal.signal(signal.SIGTERM, _leave)
    return main(last=True)


@contextlib.contextmanager
def _said(text: str) -> Iterator[None]:
    """Show on a terminal what is going on, until it is done; not if it shall be quiet."""
    line = f"{PROGRAM}: {text} ..."
    if sys.stderr is None or not sys.stderr.isatty() or "--quiet" in sys.argv:
        yield
        return
    with contextlib.suppress(OSError, ValueError):
        print(line, end="\r", file=sys.stderr, flush=True)
    try:
        yield
    finally:
        with contextlib.suppress(OSError, ValueError):
            print(" " * len(line), end="\r", file=sys.stderr, flush=True)


def _leave(number: int, _frame: FrameType | None) -> None:
    interrupted = number == signal.SIGINT
    complain("interrupted." if interrupted else "terminated.")
    os._exit(INTERRUPTED if interrupted else TERMINATED)


def main(argv: Sequence[str] | None = None, *, last: bool = False) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the name of the program; by default those of this process.
    last : bool, default False
        Whether the process ends afterwards. If there is a release, signals then stay without
        effect to the end, which the exit code must reach.

    Returns
    -------
    int
        Exit code, as :func:`start` returns it.
    """
    arguments = None if argv is None else list(argv)
    try:
        # Only arguments are read here. The work comes afterwards, since click would turn some of
        # its exceptions into exit codes.
        work = _program.main(arguments, prog_name=PROGRAM, standalone_mode=False)
    except click.UsageError as error:
        command = error.ctx.command_path if error.ctx else PROGRAM
        text = " ".join(error.format_message().split())
        complain(f"error: {text} See '{command} --help'.")
        return error.exit_code
    except click.Abort:
        complain("interrupted.")
        return INTERRUPTED
    return work(last) if callable(work) else int(work or 0)


def complain(text: str) -> None:
    """Print a line to standard error, if there is one."""
    if sys.stderr is None:
        return
    try:
        print(f"{PROGRAM}: {text}", file=sys.stderr, flush=True)
    except (OSError, ValueError):
        sys.stderr = io.StringIO()  # the rest would fail again when the process ends


if __name__ == "__main__":
    sys.exit(start())
