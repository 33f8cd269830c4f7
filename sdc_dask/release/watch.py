"""Waiting for a cluster with an eye on it: never in silence, and not for ever.

A cluster can be without workers, have workers that died, froze or wait for memory, or lose its
scheduler, and Dask waits then as it does for work that goes on. Here the scheduler is asked every
second. What cannot go on ends after ``sdc-dask.patience`` of Dask's configuration, 60 s by default,
with an error that says why.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager
from typing import Any

import dask
from dask.utils import format_bytes, parse_timedelta
from distributed import CancelledError, Client, Future, KilledWorker, default_client

from sdc_dask import messages
from sdc_dask.engine.frames import Task, computing, on_cluster
from sdc_dask.errors import SdcError, SdcRuntimeError, SdcWarning, warn

_PATIENCE = "60s"
_INTERVAL = 1.0  # seconds between looks
_ASKED = 5.0  # seconds in which a scheduler answers, unless it is busy
_UNSHOWN = 10.0  # seconds after which trouble is a warning where progress is not shown
_REPEAT = 30.0  # seconds between messages on the same state
_LONGER = 5  # times the patience, where it may be that work goes on out of sight


def patience() -> float:
    """Return the seconds after which a cluster that cannot go on is given up.

    Examples
    --------
    >>> patience()
    60.0
    >>> with dask.config.set({"sdc-dask.patience": "5 minutes"}):
    ...     patience()
    300.0
    """
    return float(parse_timedelta(dask.config.get("sdc-dask.patience", _PATIENCE)))


def compute(
    task: Task,
    *,
    show: bool = False,
    beside: Callable[[Client, list[Future]], AbstractContextManager[None]] | None = None,
) -> Any:
    """Compute a task, or a list of them, and watch the cluster that does it, if there is one.

    Parameters
    ----------
    task : Delayed or list of Delayed
    show : bool, default False
        Whether to say on standard error what is waited for. Otherwise only trouble is shown, as a
        warning.
    beside : callable, optional
        From the client and the futures on a cluster to a context that is open meanwhile.

    Raises
    ------
    SdcRuntimeError
        If the work cannot go on, or if a task raised an exception of others: its text may show
        data values, so that it is in ``__context__`` alone.
    """
    with clean_errors():
        if not on_cluster():
            return dask.compute(task)[0]
        client = default_client()
        address = client.scheduler.address
        (future,) = futures = client.compute([task])
        try:
            with beside(client, futures) if beside else contextlib.nullcontext():
                # What failed is left out, since it is raised below with what is known of it.
                gathered = client.gather(futures, errors="skip", asynchronous=True)
                found = waited(client, gathered, show=show)
                if found:
                    return found[0]
                if future.cancelled():
                    raise SdcRuntimeError(_lost(address))
                raise future.exception().with_traceback(future.traceback())
        except KilledWorker as error:
            raise SdcRuntimeError(
                f"{error.allowed_failures + 1} workers died one after the other while they ran "
                f"the same task, the last at {error.last_worker.address}, most likely for lack of "
                f"memory: {messages.MORE_MEMORY}"
            ) from None
        finally:
            # An exception keeps the frame alive that holds it, and so the cluster at work.
            future.release()


@contextlib.contextmanager
def watched(*, show: bool = False) -> Iterator[None]:
    """Watch the cluster during all computations of the engine in a block.

    Examples
    --------
    >>> from sdc_dask.engine.frames import Calls
    >>> call = Calls(lazy=True)
    >>> with watched():
    ...     call.compute(call(max, 3, 5))
    5
    """
    with computing(functools.partial(compute, show=show)):
        yield


def waited(client: Client, work: Coroutine[Any, Any, Any], *, show: bool = False) -> Any:
    """Return what a coroutine of a client returns, and look at the cluster until then."""
    address = client.scheduler.address
    waiting = begun(client, work)
    watch = Watch(client, show=show)
    try:
        # A wait of this thread, which signals interrupt.
        while not concurrent.futures.wait([waiting], _INTERVAL).done:
            watch.look()
        return waiting.result()
    except (CancelledError, OSError):
        raise SdcRuntimeError(_lost(address)) from None
    finally:
        waiting.cancel()


def begun(client: Client, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
    """Let a coroutine run beside this thread, in that of a client."""
    loop: Any = client.loop
    return asyncio.run_coroutine_threadsafe(work, loop.asyncio_loop)


@contextlib.contextmanager
def clean_errors() -> Iterator[None]:
    """Let no text of others pass that may show data values."""
    try:
        yield
    except (SdcError, SdcWarning):
        raise
    except Exception as error:
        hint = "" if messages.is_told(error) else " It is in __context__ of this error."
        raise SdcRuntimeError(f"a task failed: {messages.one_line(error)}{hint}") from None


class Watch:
    """What is seen of a cluster while somebody waits for it.

    Parameters
    ----------
    client : Client
    show : bool
        Whether to show each state on standard error.
    """

    def __init__(self, client: Client, *, show: bool) -> None:
        self.client = client
        self.show = show
        self.patience = patience()
        self._address = client.scheduler.address
        self._state = "working"
        self._since = self._told = time.monotonic()
        self._workers: dict[str, _Worker] = {}
        self._most = 0  # workers at a time

    def look(self) -> None:
        """Ask the scheduler how it is; raise SdcRuntimeError if there is no hope."""
        workers = self._asked()
        if workers is None:
            self._trouble(
                "silent",
                f"the scheduler at {self._address} does not answer",
                "see whether it runs and can be reached, and run this again.",
            )
            return
        self._update(workers)
        if not workers:
            were = f", of {self._most} that there were" if self._most else ""
            self._trouble(
                "empty",
                f"there is no worker at {self._address}{were}",
                "start workers there"
                + (", with more memory if that is why they ended" if were else "")
                + ", and run this again.",
            )
            return
        self._look_at_workers(time.monotonic())

    def _look_at_workers(self, now: float) -> None:
        workers = self._workers
        paused = [each for each in workers.values() if each.status == "paused"]
        still = now - max(each.changed for each in workers.values())
        busy = sum(each.executing for each in workers.values())
        frozen = max(workers, key=lambda address: now - workers[address].heard)
        silence = now - workers[frozen].heard
        if paused and (len(paused) == len(workers) or not busy) and still > _INTERVAL:
            limit = max(each.memory_limit for each in paused)
            self._trouble(
                "paused",
                f"{len(paused)} of {len(workers)} workers are paused, since they have used up "
                f"their memory of {format_bytes(limit)}",
                f"give workers more memory, such as {format_bytes(2 * limit)} (--memory-limit), "
                "or start fewer of them (--workers).",
                times=_LONGER if busy else 1,
            )
        elif silence > min(_REPEAT, self.patience) and silence >= still:
            self._trouble(
                "frozen",
                f"the worker at {frozen} does not answer, and nothing goes on without it",
                "end it, and let the scheduler give up such workers sooner, by "
                "distributed.scheduler.worker-ttl of its configuration, such as 30s.",
                times=2 * _LONGER,
            )
        elif not busy and still > _REPEAT:
            self._trouble(
                "idle",
                f"the workers at {self._address} have nothing to do",
                "look at the scheduler's log, and run this again.",
                times=_LONGER,
            )
        elif still > _REPEAT:
            longest = max(
                (address for address in workers if workers[address].executing),
                key=lambda address: now - workers[address].changed,
            )
            self._enter("still")
            self._say(
                f"Still working: {busy} tasks are running, the longest for at least "
                f"{now - workers[longest].changed:.0f} s at {longest}"
            )
        else:
            self._enter("working")

    def _asked(self) -> dict[str, Any] | None:
        """Return the workers that the scheduler knows, or None if it does not answer."""
        if self.client.status != "running":  # Dask forgets all that was asked for then
            raise SdcRuntimeError(_lost(self._address))
        try:
            found = self.client.sync(
                self.client.scheduler.identity, n_workers=-1, callback_timeout=_ASKED
            )
        except (OSError, TimeoutError):
            return None
        return found["workers"]

    def _update(self, found: dict[str, Any]) -> None:
        """Note what changed of workers since the last look."""
        now = time.monotonic()
        new = {}
        for address, each in found.items():
            worker = new[address] = self._workers.get(address) or _Worker(now)
            worker.update(each, now)
        self._workers = new
        self._most = max(self._most, len(new))

    def _trouble(self, state: str, what: str, remedy: str, *, times: float = 1) -> None:
        """Say what is wrong, or raise it if it has been so for too long."""
        self._enter(state)
        limit = times * self.patience
        lasted = time.monotonic() - self._since
        if lasted >= limit:
            raise SdcRuntimeError(f"{what}, for {lasted:.0f} s: {remedy}")
        text = f"{what}: waiting for up to {limit - lasted:.0f} s more"
        if self.show:
            self._say(text[0].upper() + text[1:])
        elif lasted >= min(_UNSHOWN, limit / 2) and self._told <= self._since:
            self._told = time.monotonic()
            warn(f"{text}.")

    def _enter(self, state: str) -> None:
        if state != self._state:
            self._state = state
            self._since = time.monotonic()
            self._told = float("-inf")

    def _say(self, text: str) -> None:
        now = time.monotonic()
        if self.show and now - self._told >= _REPEAT:
            self._told = now
            # A bar may stand in this line.
            print(f"\n{text}", file=sys.stderr, flush=True)


class _Worker:
    """What was seen of a worker."""

    def __init__(self, now: float) -> None:
        self.changed = self.heard = now
        self.status = ""
        self.executing = 0
        self.memory_limit = 0
        self._counts: dict[str, int] = {}
        self._last_seen = 0.0

    def update(self, found: dict[str, Any], now: float) -> None:
        """Note its state, and whether it is another one than before."""
        counts = dict(found["metrics"].get("task_counts", {}))
        if (found["status"], counts) != (self.status, self._counts):
            self.changed = now
        if found["last_seen"] != self._last_seen:
            self.heard = now
        self.status, self._counts, self._last_seen = found["status"], counts, found["last_seen"]
        self.executing = sum(
            counts.get(state, 0) for state in ("executing", "long-running", "flight")
        )
        self.memory_limit = found["memory_limit"]


def _lost(address: str) -> str:
    """Say that a scheduler was lost, and why as far as that can be seen from here."""
    why = messages.reason_at(address) or "it was started anew, or the connection was cut"
    return (
        f"the scheduler at {address} was lost ({why}), and with it all that was computed: see "
        "that it runs, and run this again."
    )
