"""Long computations that show how far they are."""

from __future__ import annotations

import concurrent.futures
import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from dask.delayed import Delayed
from dask.diagnostics import ProgressBar
from distributed import Client, Future
from distributed.diagnostics.progressbar import TextProgressBar

from sdc_dask.engine.frames import on_cluster
from sdc_dask.release import watch

_LAST_LOOK = 1.0  # seconds in which a bar comes to its end


def say(text: str, show: bool) -> None:
    """Say which stage begins."""
    if show:
        print(text, file=sys.stderr, flush=True)


def compute(task: Delayed, show: bool) -> Any:
    """Compute a task, with a bar of the tasks that are done if it shall be shown.

    The cluster is watched, as :func:`sdc_dask.release.watch.compute` does.
    """
    if not show:
        return watch.compute(task)
    if on_cluster():
        return watch.compute(task, show=True, beside=_bar)
    with ProgressBar(out=sys.stderr):
        return watch.compute(task)


@contextlib.contextmanager
def _bar(client: Client, futures: list[Future]) -> Iterator[None]:
    """Show a bar on standard error, which waits for nobody."""
    with contextlib.redirect_stdout(sys.stderr):  # standard output is for results
        bar = TextProgressBar(futures, loop=client.loop, start=False)
        drawn = watch.begun(client, bar.listen())
        try:
            yield
            concurrent.futures.wait([drawn], _LAST_LOOK)
        finally:
            drawn.cancel()
            print()
