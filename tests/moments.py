"""Moments of a job: a plugin of the scheduler that sends a signal when tasks have got so far.

The scheduler of a test imports this file, which therefore needs Dask alone.
"""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import psutil
from dask.utils import key_split
from distributed import Scheduler, Worker
from distributed.diagnostics.plugin import SchedulerPlugin

# Tasks of `protect` by phase, by how their keys begin.
PHASES: dict[str, str | tuple[str, ...]] = {
    "scan": "scan_partition",
    "transfer": "depart_to_file-",
    "unpack": "receive-",
    "mask": "mask_blocks",
    "write": ("scatter_piece", "write_piece"),
    "gather": "gather_file",
}


@dataclass
class Moment(SchedulerPlugin):
    """Signals a worker whenever tasks of one kind come into a state for a given time.

    Parameters
    ----------
    record : str
        A file that gets a line for every signal: the kind of task, and the process.
    begins : str or tuple of str
        How the keys of the tasks begin; all do with "".
    state : str
        Of the scheduler: "processing" when a worker has been chosen, "memory" when a result is
        there.
    times : tuple of int
        Which of these transitions count, from 1; every one if there are none.
    number : int
        The signal; 0 sends none, and leaves a line.
    after : float
        Seconds from the transition to the signal, so that the task has begun.
    """

    record: str
    begins: str | tuple[str, ...] = ""
    state: str = "processing"
    times: tuple[int, ...] = (1,)
    number: int = signal.SIGKILL
    after: float = 0.05
    name: str = "moment"
    seen: int = field(default=0, init=False)

    async def start(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler

    def transition(self, key: Any, start: str, finish: str, *_: Any, **__: Any) -> None:
        kind = key[0] if isinstance(key, tuple) else key
        if finish != self.state or start == finish or not kind.startswith(self.begins):
            return
        self.seen += 1
        if self.times and self.seen not in self.times:
            return
        task = self.scheduler.tasks[key]
        workers = [task.processing_on] if task.processing_on else list(task.who_has or ())
        for worker in workers[:1]:
            self.scheduler.loop.call_later(self.after, self._send, kind, worker.pid)

    def _send(self, kind: str, pid: int) -> None:
        try:
            os.kill(pid, self.number)
        except ProcessLookupError:
            return  # another signal was faster
        with open(self.record, "a") as file:
            file.write(f"{key_split(kind)} {pid}\n")


# Functions that a client runs on the scheduler or on workers


def worker_pids(dask_scheduler: Scheduler) -> dict[str, int]:
    """Return the processes of workers by their addresses."""
    return {address: worker.pid for address, worker in dask_scheduler.workers.items()}


def paused(dask_scheduler: Scheduler) -> int:
    """Count workers that are paused."""
    return sum(each.status.name == "paused" for each in dask_scheduler.workers.values())


def hold_memory(share: float, dask_worker: Worker) -> None:
    """Let a worker's process hold a share of its memory limit in all, until it is 0."""
    dask_worker.held_by_test = None
    limit = dask_worker.memory_manager.memory_limit
    more = int(share * limit) - psutil.Process().memory_info().rss
    if more > 0:
        dask_worker.held_by_test = np.ones(more, np.uint8)
