"""Jobs that are disturbed: a cluster of processes, the program, and a look at what it left.

A scheduler and workers run as processes of their own on loopback, as those of other people do. The
program protects a made-up source on them, in which values are planted that must not be found
anywhere afterwards.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from distributed import Client
from moments import Moment, worker_pids

import sdc_dask

ROWS = 300_000
FILES = 8
K = 5
MASKED = ["income", "wealth", "age"]
KEPT = ["number", "region", "weight"]

# Planted: in a masked column, in a text and in a category that are dropped.
AMOUNTS = [987654.3210123457 + j / 7 for j in range(FILES)]
NAME = "Canary Serinus"
ILLNESS = "serinosis canaria"

LIMIT = 240  # seconds after which a job hangs

PROGRAM = "import sys, sdc_dask_start; sys.exit(sdc_dask_start.start())"  # as it is installed


# The source, and what is read of a release


def make_source(folder: Path, rows: int = ROWS) -> Path:
    """Write a data set of several files; a number of every row is kept, to put rows in order."""
    rng = np.random.default_rng(7)
    folder.mkdir()
    names = np.array([f"person {j}" for j in range(1_000)], object)
    illnesses = ["none", "cold", "fever", ILLNESS]
    for j, numbers in enumerate(np.array_split(np.arange(rows), FILES)):
        n = len(numbers)
        frame = pd.DataFrame(
            {
                "number": numbers,
                "region": rng.choice(["north", "south", "east"], n),
                "weight": rng.random(n),
                "income": np.round(rng.lognormal(10, 1, n)),
                "wealth": np.round(rng.standard_t(3, n) * 1e5),
                "age": rng.integers(16, 96, n),
                "name": rng.choice(names, n),
                "illness": pd.Categorical.from_codes(rng.integers(0, 3, n), illnesses),
            }
        )
        planted = np.arange(3) * (n // 3)
        frame.loc[planted, "income"] = AMOUNTS[j]
        frame.loc[planted, "name"] = NAME
        frame.loc[planted, "illness"] = ILLNESS
        frame.to_parquet(folder / f"part-{j}.parquet", index=False)
    return folder


def read_release(target: Path) -> pa.Table:
    """Read all files of a release, and put rows in the order of the source by their numbers."""
    tables = [pq.read_table(path) for path in sorted(target.glob("*.parquet"))]
    return pa.concat_tables(tables).combine_chunks().sort_by("number")


def row_hashes(table: pa.Table) -> tuple[int, int, int]:
    """Return the number of rows, and the sum and the xor of their 64-bit hashes, in any order."""
    hashes = pd.util.hash_pandas_object(table.select(KEPT).to_pandas(), index=False).to_numpy()
    return len(hashes), int(hashes.sum()), int(np.bitwise_xor.reduce(hashes))


def smallest_class(table: pa.Table) -> int:
    """Count classes of records that are equal bit for bit in what was masked."""
    bits = {name: table.column(name).to_numpy().view(np.int64) for name in MASKED}
    return int(pd.DataFrame(bits).groupby(MASKED).size().min())


def canaries_in(folder: Path) -> list[str]:
    """Name the files below a directory that hold a planted value, in any form."""
    forms = [text.encode(code) for text in (NAME, ILLNESS) for code in ("utf-8", "utf-16-le")]
    numbers = np.array(AMOUNTS)
    forms += [value.tobytes() for kind in ("<f8", ">f8") for value in numbers.astype(kind)]
    forms += [repr(value).encode() for value in AMOUNTS]
    found = []
    for path in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):  # gone while we look
            held = path.read_bytes() if path.is_file() else b""
            if any(form in held for form in forms):
                found.append(str(path))
    return found


def hidden_beside(target: Path) -> list[str]:
    """Name what runs left beside a target."""
    return sorted(path.name for path in target.parent.glob(".*"))


# Processes


def start(command: Sequence[str], log: Path, **environment: str) -> subprocess.Popen[bytes]:
    """Start a process in a group of its own that imports what tests do."""
    here = Path(__file__).parent
    paths = [str(Path(sdc_dask.__file__).parents[1]), str(here), os.environ.get("PYTHONPATH", "")]
    settings = {"PYTHONPATH": os.pathsep.join(filter(None, paths)), **environment}
    # If the tests themselves are killed, nobody is left to stop what they started.
    if setpriv := shutil.which("setpriv"):
        command = [setpriv, "--pdeathsig", "KILL", *command]
    with open(log, "ab") as file:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            cwd=log.parent,
            env={**os.environ, **settings},
            start_new_session=True,
        )


def ask_to_end(process: subprocess.Popen[bytes]) -> None:
    """Ask a process to end, even if it is frozen."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGCONT)
        process.terminate()


def stop(process: subprocess.Popen[bytes], patience: float = 30) -> None:
    """End a process and all that it started, in peace if it can be done."""
    if patience:
        ask_to_end(process)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(patience)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait(30)


def tree(process: subprocess.Popen[bytes]) -> list[psutil.Process]:
    """Return a process and all that it started."""
    try:
        root = psutil.Process(process.pid)
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def open_to_others(processes: Sequence[psutil.Process]) -> list[str]:
    """Return addresses other than loopback at which processes listen."""
    found = set()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            for each in process.net_connections("inet"):
                if each.status == psutil.CONN_LISTEN:
                    found.add(each.laddr.ip)
    return sorted(ip for ip in found if not ipaddress.ip_address(ip).is_loopback)


def _lives(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def wait_until(condition: Callable[[], Any], limit: float = LIMIT) -> Any:
    """Wait until a condition holds, and return what it returned."""
    deadline = time.monotonic() + limit
    while not (found := condition()):
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.05)
    return found


# The cluster


class Cluster:
    """A scheduler and workers with one thread each, as processes on loopback.

    Parameters
    ----------
    folder : Path
        For logs, and for the scratch of workers.
    workers : int, default 2
    nanny : bool, default True
        Whether workers that die are started again.
    memory : str, default "2GiB"
        Limit of each worker.
    scratch : Path, optional
        Where workers write what they do not hold; by default in the folder.
    inside : sequence of str, optional
        A command that the scheduler is started by, such as one that enters a network namespace.
    host : str, default "127.0.0.1"
        Where the scheduler listens.
    **settings
        Dask's, as the names of its environment variables have them, without ``DASK_``.
    """

    def __init__(
        self,
        folder: Path,
        workers: int = 2,
        *,
        nanny: bool = True,
        memory: str = "2GiB",
        scratch: Path | None = None,
        inside: Sequence[str] = (),
        host: str = "127.0.0.1",
        **settings: str,
    ) -> None:
        folder.mkdir(exist_ok=True)
        self.folder, self.nanny, self.memory = folder, nanny, memory
        self.scratch = scratch or folder / "scratch"
        self.record = folder / "record"
        self.host = host
        self.settings = {f"DASK_{name}": value for name, value in settings.items()}
        self.processes: list[subprocess.Popen[bytes]] = []
        self.scheduler: subprocess.Popen[bytes]
        self._asked = (workers, tuple(inside))
        self._moments: list[str] = []

    @property
    def on_loopback(self) -> bool:
        """Whether it must not be reached by others."""
        return ipaddress.ip_address(self.host).is_loopback

    def __enter__(self) -> Cluster:
        count, inside = self._asked
        self.scratch.mkdir(exist_ok=True)
        file = self.folder / "scheduler.json"
        options = ["--host", self.host, "--port", "0", "--scheduler-file", str(file)]
        options += ["--no-dashboard", "--dashboard-address", f"{self.host}:0"]
        self.scheduler = self._start("scheduler", options, inside)
        try:
            wait_until(lambda: file.exists() and file.read_text().endswith("}"), 60)
            self.address = json.loads(file.read_text())["address"]
            for _ in range(count):
                self.add_worker(inside=inside)
            if not inside:
                self.wait_for_workers(count)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        workers = [each for each in self.processes if each is not self.scheduler]
        for process in workers:
            ask_to_end(process)
        for process in [*workers, self.scheduler]:
            stop(process)

    def add_worker(
        self, *, inside: Sequence[str] = (), host: str | None = None, nanny: bool | None = None
    ) -> subprocess.Popen[bytes]:
        """Start one more worker, and do not wait for it."""
        host = host or self.host
        options = [self.address, "--host", host, "--nthreads", "1", "--memory-limit", self.memory]
        options += ["--local-directory", str(self.scratch), "--no-dashboard"]
        options += ["--dashboard-address", f"{host}:0"]
        options += ["--nanny" if (self.nanny if nanny is None else nanny) else "--no-nanny"]
        return self._start("worker", options, inside)

    def _start(
        self, kind: str, options: Sequence[str], inside: Sequence[str]
    ) -> subprocess.Popen[bytes]:
        log = self.folder / f"{kind}-{len(self.processes)}.log"
        command = [*inside, sys.executable, "-m", "dask", kind, *options]
        process = start(command, log, **self.settings)
        self.processes.append(process)
        return process

    @contextlib.contextmanager
    def client(self) -> Iterator[Client]:
        """Connect to the scheduler, for a moment."""
        with Client(self.address, set_as_default=False, timeout=30) as client:
            yield client

    def wait_for_workers(self, count: int) -> None:
        """Wait until there are so many workers, and no others that are about to be missed."""
        with self.client() as client:
            wait_until(lambda: len(self._pids(client)) == count, 120)

    def _pids(self, client: Client) -> dict[str, int]:
        return client.run_on_scheduler(worker_pids)

    def pids(self) -> dict[str, int]:
        """Return the processes of workers by their addresses."""
        with self.client() as client:
            return self._pids(client)

    def at(self, begins: str | tuple[str, ...], state: str = "processing", **options: Any) -> None:
        """Send signals at a moment of the next job, in place of those that were asked for."""
        self.forget()
        moment = Moment(str(self.record), begins, state, **options)
        with self.client() as client:
            client.register_plugin(moment, name=moment.name)
        self._moments.append(moment.name)

    def forget(self) -> None:
        """Send no more signals."""
        self.record.unlink(missing_ok=True)
        if self._moments:
            with self.client() as client:
                client.unregister_scheduler_plugin(self._moments.pop())

    def hits(self) -> list[tuple[str, int]]:
        """Return the signals that were sent: the kind of task, and the process that got it."""
        if not self.record.exists():
            return []
        lines = [line.rpartition(" ") for line in self.record.read_text().splitlines()]
        return [(kind, int(pid)) for kind, _, pid in lines]

    def run(self, function: Callable[..., Any], *arguments: Any, workers: int = 1) -> None:
        """Run a function at once on some workers, whatever their tasks do."""
        with self.client() as client:
            chosen = sorted(self._pids(client))[:workers]
            client.run(function, *arguments, workers=chosen)

    def listening(self) -> list[str]:
        """Return addresses other than loopback at which the cluster listens."""
        return open_to_others([each for process in self.processes for each in tree(process)])

    def left(self) -> list[str]:
        """Name files in scratch, except locks of Dask."""
        return [
            str(path)
            for path in self.scratch.rglob("*")
            if path.is_file() and not path.name.endswith((".lock", ".dirlock"))
        ]


# The program


@dataclass
class Job:
    """A run of the program, in a process of its own."""

    process: subprocess.Popen[bytes]
    target: Path
    log: Path
    began: float
    seconds: float = 0.0

    @property
    def said(self) -> str:
        """What it printed."""
        return self.log.read_text()

    @property
    def code(self) -> int:
        """Its exit code."""
        return self.process.wait(0)

    def reach(self, condition: Callable[[], Any]) -> None:
        """Wait until a condition holds, which must be before its end."""
        wait_until(lambda: condition() or self.process.poll() is not None)
        assert self.process.poll() is None, self.said

    def end(self, limit: float = LIMIT, *, loopback: bool = True) -> Job:
        """Wait for its end, and look meanwhile that it listens on loopback alone."""
        deadline = time.monotonic() + limit
        looked = 0.0
        try:
            while self.process.poll() is None:
                assert time.monotonic() < deadline, f"did not end in {limit} s: {self.said}"
                if loopback and time.monotonic() - looked > 1:
                    assert open_to_others(tree(self.process)) == []
                    looked = time.monotonic()
                time.sleep(0.02)
            self.seconds = time.monotonic() - self.began
        finally:
            if self.process.poll() is None:
                stop(self.process, patience=0)
        return self

    def outlived_by(self) -> list[int]:
        """Return processes that it started and that are still there."""
        found = []
        for pid in psutil.pids():
            with contextlib.suppress(ProcessLookupError):
                if os.getpgid(pid) == self.process.pid and _lives(pid):
                    found.append(pid)
        return found


def begin(source: Path, target: Path, *options: str, inside: Sequence[str] = (), **env: str) -> Job:
    """Begin to protect a source by the command of the program."""
    log = target.parent / f"{target.name}.log"
    log.unlink(missing_ok=True)
    command = [*inside, sys.executable, "-c", PROGRAM, "protect", str(source), str(target)]
    command += ["--columns", ",".join(MASKED), "-k", str(K), "--by", "region"]
    command += ["--keep", ",".join(KEPT), "--drop", "*", "--max-block", "20000", *options]
    began = time.monotonic()
    return Job(start(command, log, **env), target, log, began)


def protect(source: Path, target: Path, *options: str, limit: float = LIMIT, **env: str) -> Job:
    """Protect a source by the command of the program, and wait for its end."""
    return begin(source, target, *options, **env).end(limit)


# What must hold


def nothing_lost(job: Job, source: Path, undisturbed: pa.Table) -> None:
    """Fail unless a job has made a whole release, equal to that of an undisturbed job."""
    assert job.code == 0, job.said
    released = read_release(job.target)
    original = pa.concat_tables(pq.read_table(path) for path in sorted(source.iterdir()))
    assert row_hashes(released) == row_hashes(original), "rows were lost, doubled or changed"
    assert smallest_class(released) >= K, "a class is too small"
    assert same_bits(released, undisturbed), "not the bits of an undisturbed job"
    assert sdc_dask.verify(job.target).failed == (), "not as the manifest says"
    assert not (left := hidden_beside(job.target)), f"left beside the target: {left}"
    assert not (found := canaries_in(job.target)), f"originals in {found}"


def nothing_released(job: Job, *words: str) -> None:
    """Fail unless a job ended without a trace, and with an error that has words in it."""
    assert job.code == 1, job.said
    assert not os.path.lexists(job.target), "a target without success"
    assert not (left := hidden_beside(job.target)), f"left beside the target: {left}"
    errors = [line for line in job.said.splitlines() if line.startswith("sdc-dask: error: ")]
    assert len(errors) == 1, job.said
    assert all(word in errors[0] for word in words), errors[0]
    assert "may show data values" not in errors[0], errors[0]


def same_bits(one: pa.Table, other: pa.Table) -> bool:
    """Whether two tables are equal, floats bit for bit."""
    if one.schema != other.schema or one.num_rows != other.num_rows:
        return False
    return all(
        np.array_equal(_bits(one.column(name)), _bits(other.column(name)))
        for name in one.column_names
    )


def _bits(column: pa.ChunkedArray) -> np.ndarray:
    values = column.to_numpy()
    return values.view(np.int64) if pa.types.is_floating(column.type) else values
