"""Faults in jobs: workers, schedulers, disks and networks that fail; nothing lost, nothing left.

Every job ends with the same bits as an undisturbed one, or with an error in plain words and no
trace of a release; and within a limit of time.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from faults import (
    Cluster,
    Job,
    begin,
    canaries_in,
    hidden_beside,
    make_source,
    nothing_lost,
    nothing_released,
    protect,
    read_release,
    stop,
    wait_until,
)
from moments import PHASES, hold_memory, paused
from s3_server import Store

import sdc_dask

pytest_plugins = ["s3_server"]

PATIENCE = {"DASK_SDC_DASK__PATIENCE": "15s"}  # of the program, with a cluster that does nothing


@dataclass(frozen=True)
class Case:
    """A source, and what an undisturbed job makes of it."""

    source: Path
    table: pa.Table
    seconds: float

    def tell(self, what: str, job: Job) -> None:
        """Print how long a disturbed job took."""
        ratio = job.seconds / self.seconds
        print(f"{what}: {job.seconds:.1f} s, {ratio:.2f} times the undisturbed {self.seconds:.1f}")


def undisturbed(folder: Path, rows: int) -> Case:
    """Protect a source without faults, the second time, when workers have all that they need."""
    source = make_source(folder / "source", rows)
    assert canaries_in(source)  # they can be found
    with Cluster(folder / "cluster") as cluster:
        for _ in range(2):
            job = protect(source, folder / "release", "--scheduler", cluster.address, "--replace")
    table = read_release(folder / "release")
    nothing_lost(job, source, table)
    assert cluster.left() == []
    return Case(source, table, job.seconds)


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """A source for tests that are quick."""
    source = make_source(tmp_path_factory.mktemp("small") / "source", 60_000)
    release = source.parent / "release"
    sdc_dask.protect(
        source,
        release,
        sdc_dask.Microaggregation(["income", "wealth", "age"], k=5, by="region", max_block=20_000),
        keep=["number", "weight"],
        drop="*",
    )
    return Case(source, read_release(release), 0)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Case:
    return undisturbed(tmp_path_factory.mktemp("large"), 300_000)


@pytest.fixture
def left_clean(tmp_path: Path) -> Iterator[Callable[..., Cluster]]:
    """Make clusters that are stopped in the end, and must leave nothing in scratch then."""
    made: list[Cluster] = []

    def make(**options: object) -> Cluster:
        made.append(Cluster(tmp_path / f"cluster-{len(made)}", **options))
        return made[-1].__enter__()

    try:
        yield make
        outside = [ip for cluster in made for ip in cluster.listening() if cluster.on_loopback]
    finally:
        for cluster in made:
            cluster.__exit__()
    assert outside == []
    for cluster in made:
        assert cluster.left() == []
        assert canaries_in(cluster.scratch) == []
        assert canaries_in(cluster.folder) == []  # logs


def no_originals(cluster: Cluster) -> None:
    """Wait until workers have removed what a job left with them, which must not take long."""
    wait_until(lambda: not cluster.left() and not canaries_in(cluster.scratch), 60)


# Quick ones: one cluster, whose workers come back


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with Cluster(tmp_path_factory.mktemp("shared")) as cluster:
        yield cluster
        assert cluster.listening() == []
    assert cluster.left() == []
    assert canaries_in(cluster.folder) == []


@pytest.mark.together
@pytest.mark.parametrize("phase", ["transfer", pytest.param("write", marks=pytest.mark.soak)])
def test_a_worker_is_killed(shared: Cluster, small: Case, tmp_path: Path, phase: str) -> None:
    shared.wait_for_workers(2)
    shared.at(PHASES[phase])
    job = protect(small.source, tmp_path / "release", "--scheduler", shared.address)
    assert len(shared.hits()) == 1
    shared.forget()
    nothing_lost(job, small.source, small.table)
    no_originals(shared)


@pytest.mark.soak
@pytest.mark.together
def test_the_client_is_killed(shared: Cluster, small: Case, tmp_path: Path) -> None:
    shared.wait_for_workers(2)
    shared.at(PHASES["write"], number=signal.SIGSTOP)  # so that the job cannot end before
    job = begin(small.source, tmp_path / "release", "--scheduler", shared.address)
    job.reach(shared.hits)
    stop(job.process, patience=0)
    for _, pid in shared.hits():
        os.kill(pid, signal.SIGCONT)
    shared.forget()
    assert not job.target.exists()
    job = protect(small.source, tmp_path / "release", "--scheduler", shared.address)
    nothing_lost(job, small.source, small.table)
    no_originals(shared)


# Workers: killed in each phase (F1 to F5), too often (F6), at random (F16), added and removed (F15)


@pytest.mark.soak
@pytest.mark.parametrize("phase", list(PHASES))
def test_a_worker_is_killed_in_a_phase(
    shared: Cluster, large: Case, tmp_path: Path, phase: str
) -> None:
    shared.wait_for_workers(2)
    shared.at(PHASES[phase])
    job = protect(large.source, tmp_path / "release", "--scheduler", shared.address)
    assert len(shared.hits()) == 1
    shared.forget()
    large.tell(f"killed in {phase}", job)
    nothing_lost(job, large.source, large.table)
    no_originals(shared)


@pytest.mark.soak
@pytest.mark.parametrize("phase", list(PHASES))
def test_a_worker_without_nanny_is_killed_in_a_phase(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path, phase: str
) -> None:
    cluster = left_clean(nanny=False)
    cluster.at(PHASES[phase])
    job = protect(large.source, tmp_path / "release", "--scheduler", cluster.address)
    assert len(cluster.hits()) == 1
    large.tell(f"killed in {phase}, without nanny", job)
    nothing_lost(job, large.source, large.table)
    # Nobody is there to remove what it left, until the next worker starts in the same place.
    cluster.add_worker()
    no_originals(cluster)


@pytest.mark.soak
def test_the_workers_of_a_task_are_killed_again_and_again(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path
) -> None:
    cluster = left_clean(DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES="1")
    cluster.at(PHASES["mask"], times=())
    job = protect(large.source, tmp_path / "release", "--scheduler", cluster.address, **PATIENCE)
    assert len(cluster.hits()) >= 2
    large.tell("killed again and again", job)
    nothing_released(job, "worker")
    cluster.forget()
    cluster.wait_for_workers(2)
    job = protect(large.source, tmp_path / "release", "--scheduler", cluster.address)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_workers_are_killed_at_random(
    shared: Cluster, large: Case, tmp_path: Path, seed: int
) -> None:
    """One to three kills, at the end of any tasks."""
    rng = np.random.default_rng(seed)
    times = rng.choice(np.arange(1, 100), int(rng.integers(1, 4)), replace=False).tolist()
    shared.wait_for_workers(2)
    shared.at("", "memory", times=tuple(times), after=float(rng.uniform(0, 0.3)))
    job = protect(large.source, tmp_path / "release", "--scheduler", shared.address)
    kills = len(shared.hits())
    assert kills
    shared.forget()
    large.tell(f"seed {seed}, {kills} kills", job)
    nothing_lost(job, large.source, large.table)
    no_originals(shared)


@pytest.mark.soak
def test_workers_come_and_go(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path
) -> None:
    cluster = left_clean()
    cluster.at(PHASES["transfer"], number=0)
    job = begin(large.source, tmp_path / "release", "--scheduler", cluster.address)
    job.reach(cluster.hits)
    cluster.forget()
    first = sorted(cluster.pids())
    cluster.add_worker()
    cluster.wait_for_workers(3)
    with cluster.client() as client:
        client.retire_workers(first[:1])
    job.end()
    large.tell("added and retired", job)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


@pytest.mark.soak
def test_all_workers_are_gone(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path
) -> None:
    cluster = left_clean(nanny=False)
    cluster.at(PHASES["mask"], times=())  # whichever gets the next one
    job = protect(
        large.source, tmp_path / "release", "--scheduler", cluster.address, limit=150, **PATIENCE
    )
    assert len({pid for _, pid in cluster.hits()}) == 2
    large.tell("all workers gone", job)
    nothing_released(job, "worker")
    cluster.add_worker()
    no_originals(cluster)


@pytest.mark.soak
def test_no_workers(left_clean: Callable[..., Cluster], large: Case, tmp_path: Path) -> None:
    cluster = left_clean(workers=0)
    job = protect(
        large.source, tmp_path / "release", "--scheduler", cluster.address, limit=150, **PATIENCE
    )
    nothing_released(job, "worker")


# The scheduler (F7) and the client (F14)


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["scan", "mask", "write"])
def test_the_scheduler_is_killed(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path, phase: str
) -> None:
    cluster = left_clean()
    cluster.at(PHASES[phase], number=0)
    job = begin(large.source, tmp_path / "release", "--scheduler", cluster.address, **PATIENCE)
    job.reach(cluster.hits)
    stop(cluster.scheduler, patience=0)
    job.end(150)
    large.tell(f"scheduler killed in {phase}", job)
    nothing_released(job, "scheduler")
    second = left_clean()
    job = protect(large.source, tmp_path / "release", "--scheduler", second.address)
    nothing_lost(job, large.source, large.table)


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["scan", "transfer", "mask", "write"])
def test_the_client_is_killed_in_a_phase(
    shared: Cluster, large: Case, tmp_path: Path, phase: str
) -> None:
    shared.wait_for_workers(2)
    shared.at(PHASES[phase], number=0)
    job = begin(large.source, tmp_path / "release", "--scheduler", shared.address)
    job.reach(shared.hits)
    shared.forget()
    stop(job.process, patience=0)
    no_originals(shared)
    assert not job.target.exists()
    job = protect(large.source, tmp_path / "release", "--scheduler", shared.address)
    nothing_lost(job, large.source, large.table)
    no_originals(shared)


TO_A_STORE = """
import json, os, signal, sys

import sdc_dask
from sdc_dask.release import object_store

source, target, options, moment = sys.argv[1:]


def killed(*_):
    os.kill(os.getpid(), signal.SIGKILL)


if moment == "copy":
    copy = object_store._copy
    object_store._copy = lambda *places: (copy(*places), killed())
elif moment == "manifest":
    object_store.Publication._put_manifest = killed
elif moment == "clear":
    object_store.Publication.clear = killed
spec = sdc_dask.Microaggregation(["income", "wealth", "age"], k=5, by="region")
sdc_dask.protect(
    source, target, spec, keep=["number", "weight"], drop="*", replace=True,
    target_options=json.loads(options),
)
"""


@pytest.mark.soak
@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
@pytest.mark.parametrize("moment", ["copy", "manifest", "clear"])
def test_the_client_is_killed_in_a_commit_to_a_store(
    s3: Store, small: Case, tmp_path: Path, moment: str, replaces: bool
) -> None:
    url = f"{s3.url}/release"

    def run(moment: str) -> int:
        command = [sys.executable, "-c", TO_A_STORE, str(small.source), url]
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        asked = [json.dumps(s3.options), moment]
        return subprocess.run([*command, *asked], env=environment, timeout=200).returncode

    if replaces:
        assert run("never") == 0
    assert run(moment) == -signal.SIGKILL
    assert [name for name in s3.contents() if ".partial/" in name]
    assert list(tmp_path.iterdir())  # originals
    assert run("never") == 0
    assert sdc_dask.verify(url, storage_options=s3.options).failed == ()
    assert not [name for name in s3.contents() if ".partial/" in name]
    assert list(tmp_path.iterdir()) == []


# Memory: a worker over its limit (F8), paused for a while (F9), all paused for ever


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["transfer", "mask"])
def test_a_worker_over_its_memory_limit(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path, phase: str
) -> None:
    cluster = left_clean(memory="1GiB")
    before = cluster.pids()
    cluster.at(PHASES[phase], number=0)
    job = begin(large.source, tmp_path / "release", "--scheduler", cluster.address)
    job.reach(cluster.hits)
    with contextlib.suppress(OSError):  # it may be gone before it answers
        cluster.run(hold_memory, 1.0)
    job.end()
    wait_until(lambda: len(cluster.pids()) == 2, 60)
    assert len(set(cluster.pids().values()) & set(before.values())) == 1  # one was started again
    large.tell(f"over the memory limit in {phase}", job)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


@pytest.mark.soak
def test_a_worker_is_paused_for_a_while(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path
) -> None:
    cluster = left_clean(memory="1GiB")
    cluster.at(PHASES["mask"], number=0)
    job = begin(large.source, tmp_path / "release", "--scheduler", cluster.address)
    job.reach(cluster.hits)
    cluster.run(hold_memory, 0.87)
    with cluster.client() as client:
        wait_until(lambda: client.run_on_scheduler(paused) == 1, 30)
        time.sleep(5)
    cluster.run(hold_memory, 0.0)
    job.end()
    large.tell("paused for 5 s", job)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


@pytest.mark.soak
def test_all_workers_are_paused_for_ever(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path
) -> None:
    cluster = left_clean()  # with room for what it takes to ask a worker
    cluster.run(hold_memory, 0.83, workers=2)
    with cluster.client() as client:
        wait_until(lambda: client.run_on_scheduler(paused) == 2, 30)
    job = protect(
        large.source, tmp_path / "release", "--scheduler", cluster.address, limit=150, **PATIENCE
    )
    large.tell("all paused", job)
    nothing_released(job, "memory")


# Frozen workers (F10)


def thaw(cluster: Cluster) -> None:
    for _, pid in cluster.hits():
        with contextlib.suppress(ProcessLookupError):  # its nanny gave it up
            os.kill(pid, signal.SIGCONT)


@pytest.mark.soak
@pytest.mark.parametrize("phase", ["transfer", "mask", "write"])
def test_a_worker_is_frozen(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path, phase: str
) -> None:
    cluster = left_clean(DISTRIBUTED__SCHEDULER__WORKER_TTL="15s")
    cluster.at(PHASES[phase], number=signal.SIGSTOP)
    job = begin(large.source, tmp_path / "release", "--scheduler", cluster.address)
    try:
        job.reach(cluster.hits)
        job.end()
    finally:
        thaw(cluster)
    large.tell(f"frozen in {phase}", job)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


@pytest.mark.soak
def test_a_worker_is_frozen_for_a_while(
    left_clean: Callable[..., Cluster], large: Case, tmp_path: Path
) -> None:
    cluster = left_clean()
    cluster.at(PHASES["mask"], number=signal.SIGSTOP)
    job = begin(large.source, tmp_path / "release", "--scheduler", cluster.address)
    job.reach(cluster.hits)
    time.sleep(20)
    # What travels is on disk now, beside the target, and would be found.
    assert hidden_beside(job.target)
    thaw(cluster)
    job.end()
    large.tell("frozen for 20 s", job)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


# Full disks (F11, F12)


@pytest.fixture
def full_disk(tmp_path: Path) -> Iterator[Callable[[str], Path]]:
    """Mount small disks in memory, where this is allowed."""
    mounted: list[Path] = []

    def mount(size: str) -> Path:
        place = tmp_path / f"disk-{len(mounted)}"
        place.mkdir()
        asked = ["mount", "-t", "tmpfs", "-o", f"size={size},mode=0700", "none", str(place)]
        if shutil.which("mount") is None or subprocess.run(asked, capture_output=True).returncode:
            pytest.skip("no disk can be mounted here")
        mounted.append(place)
        return place

    try:
        yield mount
    finally:
        for place in mounted:
            subprocess.run(["umount", "-l", str(place)], check=True)


@pytest.mark.soak
def test_scratch_is_full(
    full_disk: Callable[[str], Path],
    left_clean: Callable[..., Cluster],
    large: Case,
    tmp_path: Path,
) -> None:
    cluster = left_clean()
    scratch = full_disk("2m")
    where = ["--scheduler", cluster.address, "--scratch", str(scratch)]
    job = protect(large.source, tmp_path / "release", *where)
    large.tell("scratch full", job)
    nothing_released(job, "No space left on device")
    no_originals(cluster)
    assert not canaries_in(scratch)


@pytest.mark.soak
def test_scratch_of_workers_is_full(
    full_disk: Callable[[str], Path],
    left_clean: Callable[..., Cluster],
    large: Case,
    tmp_path: Path,
) -> None:
    """Rows travel through files beside the target: a job needs no room with the workers."""
    cluster = left_clean(scratch=full_disk("1m"))
    job = protect(large.source, tmp_path / "release", "--scheduler", cluster.address)
    large.tell("scratch of workers full", job)
    nothing_lost(job, large.source, large.table)
    no_originals(cluster)


@pytest.mark.soak
def test_the_disk_of_the_target_is_full(
    full_disk: Callable[[str], Path], left_clean: Callable[..., Cluster], large: Case
) -> None:
    cluster = left_clean()
    disk = full_disk("6m")
    job = protect(large.source, disk / "release", "--scheduler", cluster.address)
    large.tell("disk of the target full", job)
    nothing_released(job, "No space left on device")
    assert [path.name for path in disk.iterdir()] == ["release.log"]
    no_originals(cluster)


# A network that is cut (F13)


@dataclass(frozen=True)
class Network:
    """Two network namespaces with a wire between them, and none to the outside."""

    names: tuple[str, str]
    hosts: tuple[str, str] = ("10.213.77.1", "10.213.77.2")

    def inside(self, end: int) -> list[str]:
        return ["ip", "netns", "exec", self.names[end]]

    def cut(self, *, off: bool) -> None:
        state = "down" if off else "up"
        subprocess.run([*self.inside(1), "ip", "link", "set", "wire1", state], check=True)


@pytest.fixture
def network() -> Iterator[Network]:
    made = Network((f"sdc{os.getpid()}a", f"sdc{os.getpid()}b"))
    if shutil.which("ip") is None:
        pytest.skip("no network namespaces here")
    try:
        for name in made.names:
            asked = subprocess.run(["ip", "netns", "add", name], capture_output=True)
            if asked.returncode:
                pytest.skip("network namespaces are not allowed here")
        ends = ["wire0", "netns", made.names[0], "type", "veth", "peer", "wire1", "netns"]
        subprocess.run(["ip", "link", "add", *ends, made.names[1]], check=True)
        for end, host in enumerate(made.hosts):
            ip = [*made.inside(end), "ip"]
            subprocess.run([*ip, "address", "add", f"{host}/24", "dev", f"wire{end}"], check=True)
            subprocess.run([*ip, "link", "set", "lo", "up"], check=True)
            subprocess.run([*ip, "link", "set", f"wire{end}", "up"], check=True)
        yield made
    finally:
        for name in made.names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


@pytest.mark.soak
@pytest.mark.parametrize("seconds", [20, 3600], ids=["for a while", "for ever"])
def test_the_network_is_cut(
    network: Network,
    left_clean: Callable[..., Cluster],
    large: Case,
    tmp_path: Path,
    seconds: int,
) -> None:
    """One of two workers is on the other side."""
    here = network.inside(0)
    cluster = left_clean(
        workers=1,
        inside=here,
        host=network.hosts[0],
        DISTRIBUTED__SCHEDULER__WORKER_TTL="15s",
        DISTRIBUTED__COMM__TIMEOUTS__TCP="15s",
    )
    cluster.add_worker(inside=network.inside(1), host=network.hosts[1])
    options = ["--scheduler", cluster.address]
    job = begin(large.source, tmp_path / "release", *options, inside=here)
    job.reach(lambda: list(tmp_path.glob(".release.*/*/*")))  # while it masks
    network.cut(off=True)
    try:
        if seconds < 60:
            time.sleep(seconds)
            network.cut(off=False)
        job.end(loopback=False)
    finally:
        network.cut(off=False)
    large.tell(f"network cut for {seconds} s", job)
    assert "without encryption" in job.said
    nothing_lost(job, large.source, large.table)


# Signals to the program, which starts workers of its own

MOMENTS = 40
BATCHES = 20  # moments of a batch are followed by one undisturbed run
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGKILL]


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Case:
    """What the program makes of a source with workers of its own, undisturbed."""
    folder = tmp_path_factory.mktemp("alone")
    source = make_source(folder / "source", 60_000)
    for _ in range(2):  # the second finds kernels compiled
        job = protect(source, folder / "release", "--workers", "2", "--replace")
    table = read_release(folder / "release")
    nothing_lost(job, source, table)
    return Case(source, table, job.seconds)


@pytest.fixture
def _usual_interrupt() -> Iterator[None]:
    """Let the program find Ctrl-C as at a terminal, even if the tests run in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.soak
@pytest.mark.usefixtures("_usual_interrupt")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_signals_at_any_moment(alone: Case, tmp_path: Path, batch: int) -> None:
    """There is a whole release or none, and after the next undisturbed run nothing else is left."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    target = tmp_path / "release"
    for turn in range(batch, MOMENTS, BATCHES):
        moment = 0.2 + (alone.seconds - 0.2) * turn / (MOMENTS - 1)
        number = SIGNALS[turn % len(SIGNALS)]
        job = begin(alone.source, target, "--workers", "2", TMPDIR=str(scratch))
        time.sleep(max(0.0, job.began + moment - time.monotonic()))
        sent = job.process.poll() is None
        if sent and number == signal.SIGINT:
            os.killpg(job.process.pid, number)  # as a terminal does
        elif sent:
            job.process.send_signal(number)
        job.end()
        wait_until(lambda job=job: not job.outlived_by(), 60)
        what = f"{number.name} after {moment:.1f} s: code {job.code}, {job.said!r}"
        print(what, sorted(path.name for path in scratch.iterdir()), hidden_beside(target))
        assert target.exists() or job.code != 0, what
        if number != signal.SIGKILL:
            assert (job.code == 0) == target.exists(), what
            assert hidden_beside(target) == [], what
            assert list(scratch.iterdir()) == [], what
        if target.exists():
            assert sdc_dask.verify(target).failed == (), what
            shutil.rmtree(target)
    job = protect(alone.source, target, "--workers", "2", TMPDIR=str(scratch))
    nothing_lost(job, alone.source, alone.table)
    assert list(scratch.iterdir()) == []
