"""What all benchmarks share: tables, JSON files, arguments and the watch on memory."""

from __future__ import annotations

import argparse
import contextlib
import datetime
import json
import os
import platform
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil

from sdc_dask.kernels.mdav_few import compile_from_now_on

compile_from_now_on()  # what is called first, and not timed, compiles

RESULTS = Path(__file__).parent / "results"


def parser(doc: str) -> argparse.ArgumentParser:
    """Return a parser with the option that all benchmarks have."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it runs")
    return parser


def run_parts(name: str, doc: str | None, parts: dict[str, Callable[[bool], Any]]) -> None:
    """Run the parts of a benchmark that are asked for, and keep their tables as one run."""
    arguments = parser(doc or "")
    arguments.add_argument("--parts", nargs="+", choices=list(parts), default=list(parts))
    options = arguments.parse_args()
    tables = {part: parts[part](options.quick) for part in options.parts}
    save(name + ("_quick" if options.quick else ""), tables)


def show(title: str, rows: list[dict[str, Any]]) -> None:
    """Print a table."""
    print(f"\n{title}")
    names = list(dict.fromkeys(name for row in rows for name in row))
    cells = [[_text(row.get(name)) for name in names] for row in rows]
    widths = [max(len(name), *(len(row[i]) for row in cells)) for i, name in enumerate(names)]
    print("  ".join(name.rjust(width) for name, width in zip(names, widths, strict=True)))
    for row in cells:
        print("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)))


def save(name: str, tables: dict[str, Any]) -> None:
    """Write tables as JSON, with machine and commit, beside those of the runs before."""
    now = datetime.datetime.now(datetime.UTC)
    commit = _commit()
    folder = RESULTS / name
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{now:%Y-%m-%d-%H%M%S}-{commit[:9]}.json"
    machine = {
        "python": platform.python_version(),
        "processor": platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "memory": psutil.virtual_memory().total,
    }
    run = {"time": now.isoformat(timespec="seconds"), "commit": commit, "machine": machine}
    path.write_text(json.dumps({"run": run, **tables}, indent=1))
    print(f"\nwritten: {path}")


def _commit() -> str:
    """Return the commit that is measured, and whether files differ from it."""
    command = ["git", "describe", "--always", "--abbrev=40", "--dirty", "--exclude=*"]
    try:
        found = subprocess.run(
            command, cwd=RESULTS.parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()


def timed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """Return the seconds that a call took, and its result."""
    start = time.perf_counter()
    result = function(*args, **kwargs)
    return time.perf_counter() - start, result


@contextlib.contextmanager
def memory_watch(pids: list[int]) -> Iterator[dict[int, int]]:
    """Record the peak resident memory of processes, in bytes, twenty times a second."""
    peaks = dict.fromkeys(pids, 0)
    stop = threading.Event()

    def watch() -> None:
        while not stop.wait(0.05):
            for pid in pids:
                with contextlib.suppress(psutil.NoSuchProcess):
                    peaks[pid] = max(peaks[pid], psutil.Process(pid).memory_info().rss)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield peaks
    finally:
        stop.set()
        thread.join()


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.1f}"
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    return str(value)
