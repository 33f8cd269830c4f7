"""Clusters that are started here: closed to others, gone without a trace; paths that they see."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import dask
import psutil
import pytest
from distributed import Client

import sdc_dask
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.release import cluster
from sdc_dask.release.cluster import (
    check_memory,
    check_visible,
    local_cluster,
    needed_memory,
)
from sdc_dask.release.source import open_source

pytestmark = pytest.mark.together

PAGES = ("info/main/exceptions.html", "info/main/workers.html", "metrics", "health", "status", "")

KILLED = """
import os, signal
from sdc_dask.release.cluster import local_cluster

if __name__ == "__main__":
    with local_cluster(1) as client:
        client.run(os.getpid)
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder = tmp_path_factory.mktemp("temporary")
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(tempfile, "tempdir", str(folder))
        with local_cluster(1) as started:
            yield started
        assert list(folder.iterdir()) == []


@pytest.fixture
def current(client: Client) -> Iterator[Client]:
    with dask.config.set(scheduler=None), client.as_current():
        yield client


def test_no_page_is_served(client: Client) -> None:
    info = client.scheduler_info()
    ports = [info["services"]["dashboard"]]
    ports += [each["services"]["dashboard"] for each in info["workers"].values()]
    assert len(ports) == 2
    for port in ports:
        for page in PAGES:
            with pytest.raises(urllib.error.HTTPError, match="404") as refused:
                urllib.request.urlopen(f"http://127.0.0.1:{port}/{page}", timeout=20)
            refused.value.close()


def test_sockets_are_on_loopback_alone(client: Client) -> None:
    this = psutil.Process()
    found = [
        each.laddr.ip
        for process in (this, *this.children(recursive=True))
        for each in process.net_connections("inet")
        if each.status == psutil.CONN_LISTEN
    ]
    assert len(found) >= 4  # scheduler, worker and nanny, and pages that show nothing
    assert set(found) <= {"127.0.0.1", "::1"}


def test_scratch_is_closed_to_others(client: Client) -> None:
    (scratch,) = Path(tempfile.gettempdir()).iterdir()
    assert scratch.stat().st_mode & 0o777 == 0o700
    assert (scratch / ".lock").exists()
    (worker,) = client.scheduler_info()["workers"].values()
    assert scratch in Path(worker["local_directory"]).parents


def test_settings(client: Client) -> None:
    found = client.run_on_scheduler(lambda dask_scheduler: dask_scheduler.worker_ttl)
    assert found == 60
    # Nobody can look at what workers would see of themselves.
    (watching,) = client.run(lambda dask_worker: set(dask_worker.periodic_callbacks)).values()
    assert watching
    assert "profile" not in watching


@pytest.mark.soak
def test_scratch_of_a_killed_run_is_removed_at_the_next_start(tmp_path: Path) -> None:
    script = tmp_path / "run.py"
    script.write_text(KILLED)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mine = scratch / "sdc-dask-results"  # of the user
    mine.mkdir()
    os.utime(mine, (0, 0))
    environment = {**os.environ, "TMPDIR": str(scratch)}
    found = subprocess.run([sys.executable, str(script)], env=environment, timeout=200)
    assert found.returncode == -9
    assert len(list(scratch.iterdir())) == 2
    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(tempfile, "tempdir", str(scratch))
        with local_cluster(1):
            assert len(list(scratch.iterdir())) == 2
    assert list(scratch.iterdir()) == [mine]


# Paths


def test_paths_that_workers_see(current: Client, tmp_path: Path) -> None:
    file = tmp_path / "values"
    file.write_text("1,2,3")
    check_visible([tmp_path, file])
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("seen", [6, True])
def test_paths_that_workers_do_not_see(
    current: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seen: int | bool
) -> None:
    (worker,) = current.scheduler_info()["workers"]
    file = tmp_path / "values"
    file.write_text("1,2,3")
    mark = file if seen == 6 else tmp_path / "absent"  # of another size, and not at all
    marked = contextlib.nullcontext({str(mark): seen})
    monkeypatch.setattr(cluster, "_marked", lambda _path: marked)
    with pytest.raises(SdcRuntimeError, match="as this process does: use a path") as failed:
        check_visible([tmp_path])
    assert f"the worker at {worker} does not see {str(tmp_path)!r}" in str(failed.value)


def test_workers_must_see_all_directories_of_a_release(
    current: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = sdc_dask.datasets.uniform(20, 1).compute()
    for place in ("a/1.parquet", "a/2.parquet", "b/c/1.parquet"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        frame.to_parquet(tmp_path / place)
    marked, seen = cluster._marked, []

    def hidden(path: str) -> AbstractContextManager[Any]:
        seen.append(Path(path).relative_to(tmp_path).as_posix())
        return contextlib.nullcontext({f"{path}.absent": True}) if path in gone else marked(path)

    monkeypatch.setattr(cluster, "_marked", hidden)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "to").mkdir()
    for gone in ([str(tmp_path / "to")], [str(tmp_path / "b/c/1.parquet")]):
        seen.clear()
        with pytest.raises(SdcRuntimeError, match=f"does not see '{gone[0]}' as this process"):
            sdc_dask.protect(
                [tmp_path / "a", tmp_path / "b/c/1.parquet"],
                tmp_path / "to" / "release",
                sdc_dask.Microaggregation(["x0"], k=3),
                scratch=tmp_path / "scratch",
            )
        assert seen == ["a/2.parquet", "b/c/1.parquet", "to", "scratch"]


def test_a_directory_that_cannot_be_written_to(
    current: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "values"
    file.write_text("1,2,3")

    def refused(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as changed:
        changed.setattr(os, "open", refused)
        with cluster._marked(str(tmp_path)) as marks:
            assert marks == {str(tmp_path): True, str(file): True}


def test_without_a_cluster_there_is_nothing_to_see() -> None:
    check_visible(["/absent"])


# Memory


def test_a_memory_limit_that_cannot_do_is_refused(
    current: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_memory(32 * 2**20)
    (worker,) = current.scheduler_info()["workers"].values()
    too_much = worker["memory_limit"]
    with pytest.raises(SdcValueError, match=r"has a memory limit of .* and needs") as failed:
        check_memory(too_much)
    assert f"--memory-limit {needed_memory(too_much) // 2**20}MiB" in str(failed.value)
    monkeypatch.setattr(cluster, "_PROCESS", too_much)
    with pytest.raises(SdcValueError, match="write the source with smaller row groups"):
        check_memory(1)


@pytest.mark.soak
def test_the_least_memory_that_is_not_refused_is_enough(tmp_path: Path) -> None:
    frame = sdc_dask.datasets.uniform(400_000, 5, seed=1, npartitions=60)
    frame.to_parquet(tmp_path / "source", write_index=False)
    limit = needed_memory(open_source(tmp_path / "source").largest)
    spec = sdc_dask.Microaggregation(list(frame.columns), k=5)
    with local_cluster(2, str(limit)):
        summary = sdc_dask.protect(tmp_path / "source", tmp_path / "release", spec)
    assert summary.rows == 400_000


def test_needed_memory_grows_with_pieces_and_threads() -> None:
    needed = [needed_memory(size) for size in (0, 10_000, 2**20, 2**25, 2**28)]
    assert needed == sorted(needed)
    assert all(each % 2**24 == 0 for each in needed)
    assert needed_memory(2**25, threads=4) > needed_memory(2**25) + 3 * 4 * 2**25
    with dask.config.set({"distributed.worker.memory.pause": False}):
        assert needed_memory(2**25) < needed[3]


def test_without_a_cluster_there_is_memory() -> None:
    check_memory(2**60)
