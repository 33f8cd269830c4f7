"""Memory of a worker that is free goes back to the system, before Dask pauses the worker for it."""

from __future__ import annotations

import ctypes
import sys
from typing import Any

from distributed import Worker, WorkerPlugin
from tornado.ioloop import PeriodicCallback

_EVERY = 100.0  # milliseconds
_SHARE = 0.6  # of the limit, above which memory is little


class GiveBack(WorkerPlugin):
    """Gives free pages back to the system, wherever they are, while a worker has little left.

    The C library keeps free memory below what is in use for the arrays to come, and Dask takes it
    for used. A worker that is paused for it would never go on: who does nothing frees nothing.

    Other C libraries than that of GNU do without.

    Examples
    --------
    >>> from distributed import Client
    >>> with Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as client:
    ...     _ = client.register_plugin(GiveBack())
    """

    name = "sdc-dask-give-back"

    def setup(self, worker: Worker) -> None:
        """Begin to look at the memory of a worker."""
        trim = _malloc_trim()
        limit = worker.memory_manager.memory_limit
        if trim is None or not limit:
            return

        def look() -> None:
            if worker.monitor.get_process_memory() > _SHARE * limit:
                trim(0)

        self._callback = PeriodicCallback(look, _EVERY)
        self._callback.start()

    def teardown(self, worker: Worker) -> None:
        """Stop looking."""
        callback: Any = getattr(self, "_callback", None)
        if callback is not None:
            callback.stop()


def _malloc_trim() -> Any:
    """Return the function of the C library, if it has it."""
    return getattr(ctypes.CDLL(None), "malloc_trim", None) if sys.platform == "linux" else None
