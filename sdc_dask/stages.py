"""What long calls are doing, in one line that is there within a second and gone in the end.

It is shown on a terminal and in a notebook, on standard error, and nowhere else. Dask's
configuration decides otherwise: ``dask.config.set({"sdc-dask.progress": False})`` is quiet, True
shows it anywhere. While kernels are compiled, which takes seconds at the first call of an
environment, it says that; workers compile in processes of their own, of which nothing is seen here.
A cluster without workers is said in any case: where there is no line, by a warning.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any, TypeVar

import dask
from dask.callbacks import Callback
from distributed import default_client, wait

from sdc_dask.engine.frames import Task, computing, on_cluster, scheduler_without_workers
from sdc_dask.errors import warn
from sdc_dask.kernels._jit import compiling

_FIRST = 0.5  # seconds before the line is shown: short calls say nothing
_NEXT = 0.25  # seconds between looks
_WIDTH = 79
_LOOK = 1.0  # seconds between looks whether a cluster has workers
_UNSHOWN = 10.0  # seconds without any after which it is said where no line is

_line: ContextVar[_Unshown | None] = ContextVar("line", default=None)
_Call = TypeVar("_Call", bound=Callable[..., Any])


def shown() -> bool:
    """Whether somebody looks at what is going on, or asked to see it.

    Examples
    --------
    >>> with dask.config.set({"sdc-dask.progress": False}):
    ...     shown()
    False
    """
    asked = dask.config.get("sdc-dask.progress", None)
    if asked is not None:
        return bool(asked)
    return sys.stderr is not None and (sys.stderr.isatty() or _in_notebook())


def _in_notebook() -> bool:
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return shell is not None and "IPKernelApp" in getattr(shell, "config", {})


@contextlib.contextmanager
def stage(text: str) -> Iterator[None]:
    """Show what goes on in a block, with the passes over the data and how far each is.

    A stage within another one shows nothing of its own.
    """
    if _line.get() is not None or not (shown() or on_cluster()):
        yield
        return
    line = _Line(text) if shown() else _Unshown(text)
    token = _line.set(line)
    try:
        with line, computing(line.compute):
            yield
    finally:
        _line.reset(token)


def say(text: str) -> None:
    """Change what the line says, if there is one."""
    line = _line.get()
    if line is not None:
        line.text, line.passes = text, 0


def staged(text: str) -> Callable[[_Call], _Call]:
    """Make a function show a stage while it runs."""

    def decorate(function: _Call) -> _Call:
        @functools.wraps(function)
        def run(*args: Any, **options: Any) -> Any:
            with stage(text):
                return function(*args, **options)

        return run  # type: ignore[return-value]

    return decorate


class _Unshown:
    """What is known of a stage, of which nothing is shown unless it cannot go on."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.passes = 0
        self._lonely: str | None = None  # the address of a scheduler without workers
        self._since = time.monotonic()  # when there was a worker
        self._told = False

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_error: object) -> None:
        pass

    def compute(self, task: Task) -> Any:
        """Compute a task, and count it as a pass."""
        self.passes += 1
        return self._on_cluster(task) if on_cluster() else self._here(task)

    def _here(self, task: Task) -> Any:
        return dask.compute(task)[0]

    def _on_cluster(self, task: Task) -> Any:
        """Compute a task on workers, and look every second whether there are any."""
        (future,) = default_client().compute([task])
        try:
            while True:
                with contextlib.suppress(TimeoutError):
                    wait(future, timeout=_LOOK)
                if future.done():
                    return future.result()
                self._lonely = scheduler_without_workers()
                self._say_lonely()
        finally:
            # An exception keeps the frame alive that holds it, and so the cluster at work.
            future.release()

    def _say_lonely(self) -> None:
        """Warn once that there are no workers, if there have been none for some time."""
        now = time.monotonic()
        if self._lonely is None:
            self._since = now
        elif now - self._since >= _UNSHOWN and not self._told:
            self._told = True
            warn(
                f"there is no worker at {self._lonely}, and the call waits for one: start workers "
                "there, or close the client and run this again."
            )


class _Line(_Unshown):
    """A line of standard error that a thread of its own writes anew."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._began = time.monotonic()
        self._tasks: dict[str, Any] = {}  # of the pass that runs, as Dask's threads know them
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_error: object) -> None:
        self._ended.set()
        self._thread.join()

    def _here(self, task: Task) -> Any:
        self._tasks = {}
        with Callback(start_state=self._follow):
            return dask.compute(task)[0]

    def _say_lonely(self) -> None:
        pass  # the line does

    def _follow(self, _graph: Any, state: dict[str, Any]) -> None:
        self._tasks = state

    def _run(self) -> None:
        drawn = False
        wait = _FIRST
        while not self._ended.wait(wait):
            self._write(self._shown())
            drawn, wait = True, _NEXT
        if drawn:
            self._write("")

    def _shown(self) -> str:
        parts = []
        compiled = compiling()
        if self._lonely:
            parts.append(f"no worker at {self._lonely}, waiting")
        elif self.passes and not compiled:
            state = self._tasks
            done = len(state.get("finished", ()))
            left = sum(len(state.get(name, ())) for name in ("ready", "waiting", "running"))
            share = f", {100 * done // (done + left)} %" if done + left else ""
            parts.append(f"pass {self.passes} over the data{share}")
        parts.append(f"{time.monotonic() - self._began:.0f} s")
        rest = f": {', '.join(parts)}"
        return (compiled or self.text)[: _WIDTH - len(rest)] + rest

    def _write(self, text: str) -> None:
        # Standard error may be closed, and the work must go on.
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(f"\r{text:<{_WIDTH}}\r" if not text else f"\r{text:<{_WIDTH}}")
            sys.stderr.flush()
