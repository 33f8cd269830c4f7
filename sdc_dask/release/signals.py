"""Signals that stop a program: they unwind it, they wait, or they come too late.

A program that releases data stops at once as long as nothing is released, and not at all once the
release has its name: its exit code then says that the release is there.
"""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from multiprocessing import resource_tracker
from types import FrameType
from typing import Any

STOPPING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Stop:
    """The handler of signals that stop a program, by an exception that unwinds it.

    Parameters
    ----------
    releases : bool
        Whether the program has done its work when a release is published, so that signals come
        too late from then on.

    Attributes
    ----------
    published : bool
        Whether there is a release.
    """

    def __init__(self, *, releases: bool) -> None:
        self.releases = releases
        self.published = False
        self._error: BaseException | None = None

    def __call__(self, number: int, _frame: FrameType | None) -> None:
        """Remember the first signal, and raise what it stands for."""
        if self.published:
            return
        if self._error is None and number in STOPPING:
            self._error = KeyboardInterrupt() if number == signal.SIGINT else SystemExit()
        self.check()

    def check(self) -> None:
        """Raise what a signal stands for, if there was one.

        Python drops what is raised in a callback of the garbage collector or a finalizer, and a
        signal may meet one: it is raised again until the program unwinds, but never while it
        does, since cleaning up must come to its end.
        """
        if self._error is None:
            return
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        if not _is_unwinding(self._error):
            raise self._error

    def end(self) -> None:
        """Raise no more, if there was a signal."""
        if self._error is not None:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _is_unwinding(stop: BaseException) -> bool:
    """Whether an exception is being handled right now, or what followed from it."""
    error = sys.exception()
    while error is not None and error is not stop:
        error = error.__context__
    return error is stop


@contextlib.contextmanager
def stoppable(*, releases: bool, last: bool = False) -> Iterator[Stop]:
    """Let signals unwind the program, so that nothing half-done is left behind.

    Parameters
    ----------
    releases : bool
        Whether signals come too late once a release is published.
    last : bool, default False
        Whether the process ends afterwards: then signals that came too late still do.
    """
    stop = Stop(releases=releases)
    with contextlib.ExitStack() as stack:
        _handle((signal.SIGALRM,), stop, stack)
        stack.callback(stop.end)
        before = _handle(STOPPING, stop, stack)
        if before.get(signal.SIGHUP) == signal.SIG_IGN:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as nohup asks for
        try:
            yield stop
        finally:
            if last and stop.published:
                stack.pop_all()
                # What Python handles would end the process again when the interpreter is gone.
                for number in before:
                    signal.signal(number, signal.SIG_IGN)


@contextlib.contextmanager
def unwinding() -> Iterator[None]:
    """Let signals that would end the process at once unwind a block, as Ctrl-C does.

    They raise SystemExit with the code that a shell gives to them. What is handled otherwise, or is
    not the main thread, stays as it is.

    Examples
    --------
    >>> with unwinding():
    ...     signal.raise_signal(signal.SIGTERM)
    Traceback (most recent call last):
    SystemExit: 143
    """
    raised: list[SystemExit] = []

    def unwind(number: int, _frame: FrameType | None) -> None:
        if not raised:
            raised.append(SystemExit(128 + number))
        if not _is_unwinding(raised[0]):  # cleaning up must come to its end
            raise raised[0]

    with contextlib.ExitStack() as stack:
        ending = (signal.SIGTERM, signal.SIGHUP)
        numbers = [each for each in ending if signal.getsignal(each) == signal.SIG_DFL]
        _handle(numbers, unwind, stack)
        yield


@contextlib.contextmanager
def held() -> Iterator[Stop | None]:
    """Let signals wait until the end of a block. Gives the handler of a program, if it is ours."""
    waiting: dict[int, None] = {}  # in the order in which they came
    with contextlib.ExitStack() as stack:
        stack.callback(_send, waiting)
        before = _handle(STOPPING, lambda number, _frame: waiting.setdefault(number), stack)
        handler = before.get(signal.SIGINT)
        stop = handler if isinstance(handler, Stop) else None
        if stop:
            stop.check()  # a signal that was dropped just now
        yield stop


@contextlib.contextmanager
def publishing() -> Iterator[None]:
    """Let signals wait while a release gets its name: all or nothing of a block is done.

    Afterwards they come too late for a program that has done its work with this.
    """
    with held() as stop:
        yield
        if stop and stop.releases:
            stop.published = True


@contextlib.contextmanager
def blocked_in_new_threads() -> Iterator[None]:
    """Keep Ctrl-C and a closed terminal from the processes that threads started here start.

    A terminal signals them, too, but the program alone is to be stopped: it stops its workers.
    """
    resource_tracker.ensure_running()  # it would unblock signals when the first process starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGHUP})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _handle(
    numbers: Sequence[signal.Signals], handler: Any, stack: contextlib.ExitStack
) -> dict[int, Any]:
    """Handle signals until a stack unwinds, and return the handlers that there were."""
    if threading.current_thread() is not threading.main_thread():
        return {}  # signals do not arrive here
    before: dict[int, Any] = {number: signal.getsignal(number) for number in numbers}
    for number, each in before.items():
        stack.callback(signal.signal, number, each)
    for number in numbers:
        signal.signal(number, handler)
    return before


def _send(numbers: dict[int, None]) -> None:
    """Send signals to this process again."""
    for number in numbers:
        signal.raise_signal(number)
