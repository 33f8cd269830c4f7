"""A cluster of this machine's own processes, closed to others and gone without a trace."""

from __future__ import annotations

import contextlib
import logging
import os
import tempfile
from collections.abc import Iterator

import dask
from distributed import Client, LocalCluster

from sdc_dask.release import signals


@contextlib.contextmanager
def local_cluster(workers: int | None = None, memory_limit: str = "auto") -> Iterator[Client]:
    """Start worker processes with one thread each, on loopback alone.

    Parameters
    ----------
    workers : int, optional
        By default one for each processor that this process may use.
    memory_limit : str, default "auto"
        Of every worker, such as ``"1GiB"``; "auto" shares out the machine's memory.

    Yields
    ------
    distributed.Client
    """
    environment = dask.config.get("distributed.nanny.pre-spawn-environ", {})
    with (
        # Shuffles and spilling write original values: into a directory of this run's own, mode
        # 0700.
        tempfile.TemporaryDirectory(prefix="sdc-dask-", ignore_cleanup_errors=True) as scratch,
        dask.config.set(
            {
                "temporary-directory": scratch,
                "scheduler": None,
                # What workers do not manage must be small: memory of arrays goes back to the
                # system when they are gone, and a shuffle waits rather than buffers.
                "distributed.nanny.pre-spawn-environ": {
                    **environment,
                    "MALLOC_MMAP_THRESHOLD_": 2**20,
                },
                "distributed.p2p.comm.buffer": "64 MiB",
            }
        ),
        contextlib.ExitStack() as stack,
    ):
        # A signal that comes now counts as soon as all is there that must be closed.
        with signals.held(), signals.blocked_in_new_threads():
            cluster = LocalCluster(
                n_workers=workers or len(os.sched_getaffinity(0)),
                threads_per_worker=1,
                memory_limit=memory_limit,
                host="127.0.0.1",
                dashboard_address="127.0.0.1:0",
                local_directory=scratch,
                # A log of a failed task shows its exception, which may show values.
                silence_logs=logging.CRITICAL,
                scheduler_kwargs={"dashboard": False},
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
        yield client
