"""Long computations that show how far they are.

The stages of a release stay on the screen, and the bar of each is gone when it ends. What is no
terminal keeps the bars, since nothing can be taken back there.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import io
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
_WIDTH = 79  # of a bar at most


def say(text: str, show: bool) -> None:
    """Say which stage begins."""
    if show:
        print(text, file=sys.stderr, flush=True)


class _Bars(io.TextIOBase):
    """Standard error for bars: the end of a bar, which is the end of a line, takes it away."""

    def write(self, text: str) -> int:
        gone = text == "\n" and sys.stderr.isatty()
        return sys.stderr.write(f"\r{'':<{_WIDTH}}\r" if gone else text)

    def flush(self) -> None:
        sys.stderr.flush()


def compute(task: Delayed, show: bool) -> Any:
    """Compute a task, with a bar of the tasks that are done if it shall be shown.

    The cluster is watched, as :func:`sdc_dask.release.watch.compute` does.
    """
    if not show:
        return watch.compute(task)
    if on_cluster():
        return watch.compute(task, show=True, beside=_bar)
    with ProgressBar(out=_Bars()):
        return watch.compute(task)


@contextlib.contextmanager
def _bar(client: Client, futures: list[Future]) -> Iterator[None]:
    """Show a bar on standard error, which waits for nobody."""
    with contextlib.redirect_stdout(_Bars()):  # standard output is for results
        bar = TextProgressBar(futures, loop=client.loop, start=False)
        drawn = watch.begun(client, bar.listen())
        try:
            yield
            concurrent.futures.wait([drawn], _LAST_LOOK)
        finally:
            drawn.cancel()
            print()
