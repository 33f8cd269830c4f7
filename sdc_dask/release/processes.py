"""Processes of this machine: whether the one that began something is known to have ended."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_ENDED = ("Z", "X")  # states of processes that were not waited for yet


@dataclass(frozen=True)
class Process:
    """A process, by what no other has: since the machine started, in a container or outside.

    Attributes
    ----------
    boot : str
        Of the start of the machine.
    namespace : str
        In which the number counts: each container has its own.
    pid : int
    started : str
        When, since numbers are used again.

    Examples
    --------
    >>> from sdc_dask.release.processes import Process
    >>> Process.this().is_dead, Process("another machine", "", 1, "").is_dead
    (False, False)
    """

    boot: str
    namespace: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Process | None:
        """Return the process that asks, or None where that cannot be told."""
        pid = os.getpid()
        state = _state(pid)
        try:
            boot, namespace = _BOOT.read_text().strip(), os.readlink("/proc/self/ns/pid")
        except OSError:
            return None
        return cls(boot, namespace, pid, state[1]) if state else None

    @property
    def is_dead(self) -> bool:
        """Whether it has ended for certain: of another machine or container, nothing is known."""
        here = Process.this()
        if here is None or (here.boot, here.namespace) != (self.boot, self.namespace):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # of another user
        state = _state(self.pid)
        return state is not None and (state[0] in _ENDED or state[1] != self.started)


def _state(pid: int) -> tuple[str, str] | None:
    """Return the state of a process, and when it started."""
    with contextlib.suppress(OSError):
        # The name before it may hold anything.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[19]
    return None
