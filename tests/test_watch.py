"""Waiting for a cluster: what is told, when it ends, and what is left of it."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import dask
import pandas as pd
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster, Status

from sdc_dask.engine.frames import Calls, frame_of, map_reduce
from sdc_dask.errors import SdcRuntimeError, SdcValueError, SdcWarning
from sdc_dask.release import cluster, progress, watch
from sdc_dask.release.watch import Watch, compute, watched

# How often there is time for a look, and so for a warning, depends on the machine.
pytestmark = pytest.mark.filterwarnings("ignore:.*waiting for up to:UserWarning")

SECRET = "value 987654.25"


# What is seen, by a clock that waits for nobody


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def monotonic(self) -> float:
        return self.now


def worker(
    status: str = "running", executing: int = 0, memory: int = 0, seen: float = 0.0
) -> dict[str, Any]:
    counts = {"executing": executing, "memory": memory}
    return {
        "status": status,
        "metrics": {"task_counts": counts},
        "last_seen": seen,
        "memory_limit": 512 * 2**20,
    }


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Watch]]:
    """Let a watch see states of workers for some seconds each."""
    clock = Clock()
    monkeypatch.setattr(watch, "time", clock)
    state: dict[str, Any] = {}

    def sync(*_: object, **__: object) -> dict[str, Any]:
        if state["workers"] is None:
            raise TimeoutError
        return {"workers": state["workers"]}

    scheduler = SimpleNamespace(address="tcp://127.0.0.1:1", identity=None)
    client: Any = SimpleNamespace(status="running", scheduler=scheduler, sync=sync)
    watches: list[Watch] = []

    def see(seconds: int, workers: Callable[[int], Any] | Any, *, show: bool = False) -> Watch:
        if not watches or watches[0].show != show:
            watches[:] = [Watch(client, show=show)]
        for second in range(seconds):
            state["workers"] = workers(second) if callable(workers) else workers
            watches[0].look()
            clock.now += 1
        return watches[0]

    yield see


def test_work_that_goes_on_is_not_disturbed(
    seen: Callable[..., Watch], capsys: pytest.CaptureFixture[str]
) -> None:
    seen(1_000, lambda second: {"a": worker(executing=1, memory=second // 20, seen=second)})
    seen(1_000, lambda second: {"a": worker(executing=1, seen=second)})  # a long task
    assert capsys.readouterr() == ("", "")


def test_a_long_task_is_told_where_progress_is_shown(
    seen: Callable[..., Watch], capsys: pytest.CaptureFixture[str]
) -> None:
    def two(second: int) -> dict[str, Any]:
        return {
            "tcp://a": worker(executing=1, seen=second),
            "tcp://b": worker(executing=2, memory=min(second, 20), seen=second),
        }

    seen(130, two, show=True)
    told = capsys.readouterr().err.split("\n\n")
    assert len(told) == 3
    assert "Still working: 3 tasks are running, the longest for at least 51 s at tcp://a" in told[0]


@pytest.mark.parametrize(
    ("workers", "words", "seconds"),
    [
        ({}, "there is no worker at tcp://127.0.0.1:1, for 60 s: start workers", 60),
        (None, "the scheduler at tcp://127.0.0.1:1 does not answer, for 60 s", 60),
        (
            lambda second: {
                "a": worker("paused", seen=second),
                "b": worker("paused", memory=4, seen=second),
            },
            "2 of 2 workers are paused, since they have used up their memory of 512.00 MiB, for "
            r"60 s: give workers more memory, such as 1.00 GiB \(--memory-limit\)",
            62,
        ),
        (
            lambda second: {"a": worker("paused", seen=second), "b": worker(seen=second)},
            "1 of 2 workers are paused",
            62,
        ),
        (
            lambda second: {"a": worker("paused", executing=1, seen=second)},
            "1 of 1 workers are paused",
            302,
        ),
        (lambda second: {"a": worker(seen=second)}, "have nothing to do, for 300 s", 331),
        (
            lambda second: {"a": worker(seen=second), "tcp://b": worker(executing=1)},
            "the worker at tcp://b does not answer, and nothing goes on without it, for 600 s: "
            "end it, and let the scheduler give up such workers sooner",
            631,
        ),
    ],
)
def test_what_cannot_go_on_ends(
    seen: Callable[..., Watch],
    capsys: pytest.CaptureFixture[str],
    workers: Any,
    words: str,
    seconds: int,
) -> None:
    with pytest.warns(SdcWarning, match="waiting for up to") as warned:
        seen(seconds, workers)
    assert len(warned) == 1
    with pytest.raises(SdcRuntimeError, match=words):
        seen(1, lambda _: workers(seconds) if callable(workers) else workers)
    with pytest.raises(SdcRuntimeError, match=words):
        seen(seconds + 1, workers, show=True)
    assert "waiting for up to" in capsys.readouterr().err.lower()


def test_trouble_that_passes_counts_anew(seen: Callable[..., Watch]) -> None:
    for _ in range(3):
        with pytest.warns(SdcWarning, match="no worker"):
            seen(59, {})
        seen(1, {"a": worker(executing=1)})
    with pytest.warns(SdcWarning, match="of 1 that there were"):
        seen(59, {})


def test_trouble_of_a_moment_is_not_told(seen: Callable[..., Watch]) -> None:
    for _ in range(5):
        seen(9, {})
        seen(1, {"a": worker(executing=1)})


def test_it_is_told_at_once_where_progress_is_shown(
    seen: Callable[..., Watch], capsys: pytest.CaptureFixture[str]
) -> None:
    seen(1, {}, show=True)
    assert capsys.readouterr().err == (
        "\nThere is no worker at tcp://127.0.0.1:1: waiting for up to 60 s more\n"
    )


# Clusters in this process


@pytest.fixture
def small(request: pytest.FixtureRequest) -> Iterator[tuple[LocalCluster, Client]]:
    """Start workers in threads of this process, whose scheduler is reached over loopback."""
    settings = {
        "scheduler": None,
        "sdc-dask.patience": "1s",
        "distributed.worker.memory.pause": False,
        "distributed.comm.timeouts.connect": "2s",
    }
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=getattr(request, "param", 1),
            threads_per_worker=1,
            processes=False,
            protocol="tcp",
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
            memory_limit="512MiB",
        ) as local,
        Client(local) as client,
    ):
        yield local, client


def _slow(seconds: float) -> float:
    time.sleep(seconds)
    return seconds


def _pause(dask_worker: Any) -> None:
    dask_worker.status = Status.paused


def _number_of_tasks(dask_scheduler: Any) -> int:
    return len(dask_scheduler.tasks)


def assert_forgotten(client: Client) -> None:
    """Wait until a scheduler has no tasks."""
    deadline = time.monotonic() + 20
    while client.run_on_scheduler(_number_of_tasks):
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("small", [0], indirect=True)
def test_no_workers(small: tuple[LocalCluster, Client], capsys: pytest.CaptureFixture[str]) -> None:
    local, client = small
    with pytest.raises(SdcRuntimeError, match="there is no worker at tcp://127") as failed:
        compute(delayed(_slow)(0), show=True)
    assert "There is no worker at" in capsys.readouterr().err
    assert failed.value.__cause__ is None
    assert_forgotten(client)
    with dask.config.set({"sdc-dask.patience": "60s"}):
        late = threading.Timer(0.2, local.scale, (1,))
        late.start()
        assert compute(delayed(_slow)(0)) == 0
        late.join()


def test_workers_that_are_paused(small: tuple[LocalCluster, Client]) -> None:
    _local, client = small
    client.run(_pause)
    with pytest.raises(SdcRuntimeError, match=r"1 of 1 workers are paused.* 512.00 MiB"):
        compute(delayed(_slow)(0))
    assert_forgotten(client)


def test_a_scheduler_that_is_lost(small: tuple[LocalCluster, Client]) -> None:
    local, client = small
    address = client.scheduler.address
    lose = threading.Timer(0.5, local.sync, (local.scheduler.close,))
    lose.start()
    with pytest.raises(
        SdcRuntimeError, match=f"the scheduler at {address} was lost .*Connection refused.*run this"
    ):
        compute(delayed(_slow)(5))
    lose.join()


def test_ctrl_c(small: tuple[LocalCluster, Client], request: pytest.FixtureRequest) -> None:
    _local, client = small
    # A process that was started in the background ignores it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    press = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    press.start()
    with pytest.raises(KeyboardInterrupt):
        compute([delayed(_slow)(0.5 + i / 10) for i in range(10)])
    press.join()
    assert_forgotten(client)


def _fail(kind: str) -> None:
    if kind == "ours":
        raise SdcValueError("column 'a' has missing cells.")
    if kind == "system":
        raise OSError(28, SECRET, "/data/out")
    try:
        raise KeyError(SECRET)
    except KeyError as error:
        raise ValueError(SECRET) from error


@pytest.mark.parametrize("where", ["threads", "cluster"])
def test_no_text_of_others_passes(where: str, request: pytest.FixtureRequest) -> None:
    if where == "cluster":
        request.getfixturevalue("small")
    with pytest.raises(SdcValueError, match="column 'a' has missing cells"):
        compute(delayed(_fail)("ours"))
    with pytest.raises(SdcRuntimeError, match="No space left on device: /data/out: free") as failed:
        compute(delayed(_fail)("system"))
    assert SECRET not in str(failed.value)
    with pytest.raises(SdcRuntimeError, match=r"a task failed: ValueError\. Its text") as failed:
        compute(delayed(_fail)("other"))
    assert SECRET not in str(failed.value)
    assert failed.value.__suppress_context__
    assert str(failed.value.__context__) == SECRET


def test_lists_of_tasks(small: tuple[LocalCluster, Client]) -> None:
    call = Calls(lazy=True)
    tasks = [call(max, i, 3) for i in range(6)]
    assert compute(tasks) == [3, 3, 3, 3, 4, 5]
    assert compute([tasks[:2], tasks[4:]]) == [[3, 3], [4, 5]]


def test_the_engine_is_watched(small: tuple[LocalCluster, Client]) -> None:
    _local, client = small
    frame = frame_of(_part, [1, 2, 3], _part(0))
    with watched():
        assert map_reduce(frame, _rows, sum) == 6
        client.run(_pause)
        with pytest.raises(SdcRuntimeError, match="paused"):
            map_reduce(frame, _rows, sum)


def _part(rows: int) -> pd.DataFrame:
    return pd.DataFrame({"a": [1.0] * rows})


def _rows(part: pd.DataFrame, _number: int) -> int:
    return len(part)


def test_a_bar(small: tuple[LocalCluster, Client], capsys: pytest.CaptureFixture[str]) -> None:
    assert progress.compute(delayed(_slow)(0.5), show=True) == 0.5
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "Completed" in shown.err
    with dask.config.set(scheduler="threads"):
        assert progress.compute(delayed(_slow)(0), show=True) == 0
    assert "Completed" in capsys.readouterr().err
    assert progress.compute(delayed(_slow)(0), show=False) == 0
    assert capsys.readouterr() == ("", "")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("scheduler", ["threads", "distributed"])
def test_a_bar_is_gone_in_the_end(
    small: tuple[LocalCluster, Client], monkeypatch: pytest.MonkeyPatch, scheduler: str
) -> None:
    screen = Screen()
    monkeypatch.setattr(sys, "stderr", screen)
    with dask.config.set(scheduler=scheduler):
        assert progress.compute(delayed(_slow)(0.2), show=True) == 0.2
    text = screen.getvalue()
    assert "Completed" in text and "\n" not in text
    *drawn, blank, last = text.split("\r")
    assert (blank.strip(), last) == ("", "") and len(blank) >= max(map(len, drawn))


# Processes


def _die() -> None:
    os._exit(1)


def test_workers_that_die_at_a_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(cluster._SETTINGS, "distributed.scheduler.allowed-failures", 0)
    with dask.config.set(scheduler=None), cluster.local_cluster(1) as client:
        with pytest.raises(SdcRuntimeError, match=r"^1 workers died one after the other .*memory"):
            compute(delayed(_die)())
        assert_forgotten(client)
