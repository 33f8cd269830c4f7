"""Long computations that show how far they are."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

import dask
from dask.delayed import Delayed
from dask.diagnostics import ProgressBar
from distributed import default_client, progress

from sdc_dask.engine.frames import on_cluster


def say(text: str, show: bool) -> None:
    """Tell which stage begins."""
    if show:
        print(text, file=sys.stderr, flush=True)


def compute(task: Delayed, show: bool) -> Any:
    """Compute a task, with a bar of the tasks that are done if it shall be shown."""
    if not show:
        return dask.compute(task)[0]
    # Standard output is for results.
    with contextlib.redirect_stdout(sys.stderr):
        if on_cluster():
            future = default_client().compute(task)
            progress(future, notebook=False)
            print()
            return future.result()
        with ProgressBar(out=sys.stderr):
            return dask.compute(task)[0]
