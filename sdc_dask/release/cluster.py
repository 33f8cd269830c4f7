"""Where the work runs: processes of this machine, closed to others, or a cluster that is there."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import itertools
import logging
import os
import tempfile
import uuid
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakSet

import dask
from dask.utils import format_bytes
from distributed import Client, LocalCluster, Security, default_client
from distributed.comm import CommClosedError

from sdc_dask import messages
from sdc_dask.engine.frames import on_cluster
from sdc_dask.errors import SdcFileNotFoundError, SdcRuntimeError, SdcValueError, warn
from sdc_dask.release import signals
from sdc_dask.release.heap import GiveBack
from sdc_dask.release.leftovers import run_directory
from sdc_dask.release.processor import slow_features
from sdc_dask.release.watch import waited

_SETTINGS = {
    # What workers do not manage must be small: a shuffle waits rather than buffers.
    "distributed.p2p.comm.buffer": "64 MiB",
    # A worker that froze is given up after one minute to two. Kernels release the lock of the
    # interpreter, so that one that computes is heard of all the time; importing takes longest.
    "distributed.scheduler.worker-ttl": "60s",
    # Every task that waits at a worker that dies counts as failed once.
    "distributed.scheduler.allowed-failures": 5,
    "distributed.comm.retry.count": 3,
    # Workers that watch what they do a hundred times a second show it on pages that nobody sees.
    "distributed.worker.profile.enabled": False,
    # Pages show exceptions of tasks, which may show values.
    "distributed.scheduler.http.routes": [],
    "distributed.worker.http.routes": [],
}
# Pages that come and go with every array take a third of the time, and huge pages little of it.
_HUGE_PAGES = "glibc.malloc.hugetlb=1"
# Arrays of 2 MiB and more go back to the system one by one, and others by `GiveBack`: pools of
# Arrow and of every thread would keep what is free, and Dask would pause a worker for it.
_MEMORY = {
    "MALLOC_MMAP_THRESHOLD_": 2 * 2**20,
    "MALLOC_TRIM_THRESHOLD_": 16 * 2**20,
    "MALLOC_ARENA_MAX": 1,
    "ARROW_DEFAULT_MEMORY_POOL": "system",
}
_FEATURES = "NPY_DISABLE_CPU_FEATURES"
# Memory of a worker as it was measured: the process with all that it imports and compiles; for
# each thread what is routed to it, which is bounded, and copies of a piece.
_PROCESS = 375 * 2**20
_ROUTED, _ROUTED_TIMES = 110 * 2**20, 20
_PIECE_TIMES = 4
_told_open: WeakSet[Client] = WeakSet()


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
    with (
        # Shuffles and spilling write original values: into a directory of this run's own.
        run_directory(Path(tempfile.gettempdir())) as scratch,
        dask.config.set(
            {
                **_SETTINGS,
                "temporary-directory": str(scratch),
                "scheduler": None,
                "distributed.nanny.pre-spawn-environ": _environment(),
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
                local_directory=str(scratch),
                # A log of a failed task shows its exception, which may show values.
                silence_logs=logging.CRITICAL,
                scheduler_kwargs={"dashboard": False},
            )
            client = stack.enter_context(Client(stack.enter_context(cluster)))
            client.register_plugin(GiveBack())
        yield client


def _environment() -> dict[str, Any]:
    """Return what workers start with: what is configured, and how they use memory and sort."""
    environment = {**dask.config.get("distributed.nanny.pre-spawn-environ", {}), **_MEMORY}
    tunables = environment.get("GLIBC_TUNABLES") or os.environ.get("GLIBC_TUNABLES")
    environment["GLIBC_TUNABLES"] = ":".join(filter(None, [tunables, _HUGE_PAGES]))
    slow = slow_features()
    if slow and _FEATURES not in os.environ:
        environment.setdefault(_FEATURES, slow)
    return environment


# What a cluster must have


def check_memory(largest_piece: int) -> None:
    """Raise SdcValueError if workers of the current client have too little memory for a source.

    They would be paused as soon as they have begun, since what they need at least is above the
    share of their limit up to which Dask lets them work. Without a cluster, or a limit, there is
    nothing to check.

    Parameters
    ----------
    largest_piece : int
        Bytes of the largest piece of the source, uncompressed.
    """
    if not on_cluster():
        return
    client = default_client()
    workers = waited(client, client.scheduler.identity(n_workers=-1))["workers"]
    for address, each in workers.items():
        needed = needed_memory(largest_piece, each["nthreads"])
        if each["memory_limit"] and each["memory_limit"] < needed:
            raise SdcValueError(
                f"the worker at {address} has a memory limit of "
                f"{format_bytes(each['memory_limit'])}, and needs {needed // 2**20} MiB for this "
                f"source, whose largest row group or piece has {format_bytes(largest_piece)}: give "
                f"each worker more memory (--memory-limit {needed // 2**20}MiB) and start fewer, "
                "or write the source with smaller row groups."
            )


def needed_memory(largest_piece: int, threads: int = 1) -> int:
    """Return the memory limit in bytes that a worker needs at least for a source.

    Examples
    --------
    >>> needed_memory(250_000) // 2**20, needed_memory(32_000_000) // 2**20
    (480, 768)
    """
    each = min(_ROUTED, _ROUTED_TIMES * largest_piece) + _PIECE_TIMES * largest_piece
    paused = dask.config.get("distributed.worker.memory.pause") or 1.0
    step = 64 * 2**20 // 4
    return -int(-(_PROCESS + threads * each) / paused // step) * step


# A cluster that is there


def connected(
    address: str,
    *,
    ca_file: str | os.PathLike[str] | None = None,
    cert: str | os.PathLike[str] | None = None,
    key: str | os.PathLike[str] | None = None,
) -> Client:
    """Connect to a scheduler, with certificates if they are given, else as Dask is configured.

    Parameters
    ----------
    address : str
        Such as ``"tls://host:8786"``.
    ca_file : path, optional
        Certificates of the authorities that are trusted.
    cert, key : path, optional
        Certificate of this client, and its key, if that is in another file.

    Raises
    ------
    SdcRuntimeError
        If no scheduler can be reached, with the reason.
    """
    security = None
    if any(file is not None for file in (ca_file, cert, key)):
        security = _security(address, ca_file, cert, key)
    try:
        return Client(address, security=security)
    except Exception as error:
        why = _why(address, error)
    # Here the client that failed is gone: an exception that holds it would have it closed later,
    # when the collector of garbage comes, which may be while Dask holds a lock.
    raise SdcRuntimeError(
        f"no scheduler could be reached at {address!r} ({why}): check the address, such as "
        "tcp://host:8786, and that the scheduler runs; if it is encrypted (tls://), that both "
        "sides have certificates of one authority."
    )


def _why(address: str, error: Exception) -> str:
    """Return why a scheduler cannot be reached, in words without data."""
    if address.startswith("tls://") and isinstance(error, TypeError):
        return "no certificates are given, or configured for Dask"
    reason = messages.reason(error) or messages.reason_at(address)
    if reason is None and address.startswith("tls://") and isinstance(error, CommClosedError):
        return "the connection could not be encrypted: the other side refuses the certificate"
    return reason or type(error).__name__


def _security(address: str, ca_file: Any, cert: Any, key: Any) -> Security:
    """Return how connections are encrypted, once the files are looked at."""
    if not address.startswith("tls://"):
        raise SdcValueError(
            f"certificates are for an encrypted connection, received the address {address!r}: use "
            "tls://host:port, or leave them out."
        )
    if ca_file is None or cert is None:
        raise SdcValueError(
            "an encrypted connection needs the certificate of the authority and that of the "
            "client, and its key if that is in another file: give the one that is missing."
        )
    files = [str(file) for file in (ca_file, cert, key) if file is not None]
    missing = [file for file in files if not os.path.isfile(file)]
    if missing:
        raise SdcFileNotFoundError(
            f"the certificate or key {missing[0]!r} does not exist, or is no file."
        )
    security = Security(
        tls_ca_file=str(ca_file),
        tls_client_cert=str(cert),
        tls_client_key=None if key is None else str(key),
        require_encryption=True,
    )
    try:
        security.get_connection_args("client")  # which reads them
    except (OSError, ValueError) as error:
        raise SdcValueError(
            f"the certificates {', '.join(map(repr, files))} cannot be used "
            f"({messages.reason(error) or type(error).__name__}): they must be PEM files, and the "
            "key must be that of the certificate."
        ) from None
    return security


def warn_if_open(client: Client) -> None:
    """Warn, once for each client, if data goes to its scheduler without encryption.

    Examples
    --------
    >>> with Client(processes=False, n_workers=1, dashboard_address="127.0.0.1:0") as client:
    ...     warn_if_open(client)  # within this process
    """
    address = client.scheduler.address
    if client in _told_open or is_private(address):
        return
    _told_open.add(client)
    warn(
        f"the data goes to {address} without encryption, and whoever reaches that scheduler can "
        "read it and run code on the workers. Use a tls:// address."
    )


def is_private(address: str) -> bool:
    """Whether an address is encrypted, or does not leave this machine.

    Examples
    --------
    >>> is_private("tcp://127.0.0.1:8786"), is_private("tls://host:8786"), is_private("host:8786")
    (True, True, False)
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    if parts.scheme in ("tls", "inproc") or parts.hostname == "localhost":
        return True
    try:
        return ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False


def check_visible(paths: Sequence[str | os.PathLike[str]]) -> None:
    """Raise SdcRuntimeError unless every worker sees the same files as this process.

    Without a cluster there is nothing to check.

    Parameters
    ----------
    paths : sequence of path
        Of files and directories that exist. A worker must see the size of a file, and in a
        directory a file that is put there for a moment, or the names that are there if this
        process cannot write to it.
    """
    if not on_cluster():
        return
    client = default_client()
    with contextlib.ExitStack() as stack:
        marks = [
            (path, mark, seen)
            for path in dict.fromkeys(map(os.path.abspath, paths))
            for mark, seen in stack.enter_context(_marked(path)).items()
        ]
        answers = waited(client, _looks(client, [(mark, seen) for _, mark, seen in marks]))
        for (path, _, seen), by_worker in zip(marks, answers, strict=True):
            for worker, found in by_worker.items():
                if found != seen and not isinstance(found, CommClosedError):
                    raise SdcRuntimeError(
                        f"the worker at {worker} does not see {path!r} as this process does: use a "
                        "path on a disk that all machines share under one name, with the same "
                        "permissions, or an object store."
                    )


async def _looks(client: Client, marks: Sequence[tuple[str, int | bool]]) -> list[dict[str, Any]]:
    """Ask all workers for all marks at once: whether they are there, or their sizes."""
    return await asyncio.gather(
        *(
            client.run(
                # A function of Python itself: a worker that imports a package answers nobody.
                os.path.lexists if seen is True else os.path.getsize,
                mark,
                on_error="return",
                asynchronous=True,
            )
            for mark, seen in marks
        )
    )


@contextlib.contextmanager
def _marked(path: str) -> Iterator[Mapping[str, int | bool]]:
    """Give paths that distinguish a file or directory from one of its name on another machine.

    With each comes the size that must be found, or True if something must be there.
    """
    if not os.path.isdir(path):
        yield {path: os.path.getsize(path)}
        return
    # Dask and others pass over names with a dot.
    token = os.path.join(path, f".{uuid.uuid4().hex}.visible")
    try:
        os.close(os.open(token, os.O_CREAT | os.O_EXCL, 0o600))
    except OSError:
        with os.scandir(path) as entries:
            yield {path: True} | {entry.path: True for entry in itertools.islice(entries, 5)}
        return
    try:
        yield {token: True}
    finally:
        with contextlib.suppress(OSError):
            os.unlink(token)
