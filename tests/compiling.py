"""Compile kernels before the tests run, each in one of the processes that run them.

Without this, every process compiles the same kernels at about the same time, for minutes.
"""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import dask

from sdc_dask.warmup import WORK


def compile_together(meeting: Path) -> None:
    """Compile what no other process has begun, and wait until all is compiled."""
    with warnings.catch_warnings(action="ignore"), dask.config.set(scheduler="sync"):
        for name, work in WORK.items():
            if _is_first(meeting / f"begun {name}"):
                work()
                (meeting / f"compiled {name}").touch()
    deadline = time.monotonic() + 120
    while len(list(meeting.glob("compiled *"))) < len(WORK) and time.monotonic() < deadline:
        time.sleep(0.1)


def _is_first(path: Path) -> bool:
    """Make a file, and return whether no other process has made it."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
