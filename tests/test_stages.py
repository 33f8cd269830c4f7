"""Progress of long calls: a line where somebody looks, and silence elsewhere."""

from __future__ import annotations

import contextlib
import io
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import dask
import dask.dataframe as dd
import numba
import pandas as pd
import pytest
from distributed import Client, LocalCluster
from numba.core import event

import sdc_dask
import sdc_dask_start
from sdc_dask import stages
from sdc_dask.engine.frames import map_reduce
from sdc_dask.errors import SdcWarning
from sdc_dask.report import dossier


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    found = Screen()
    # Not sys.stderr, which pytest puts back before the test begins.
    monkeypatch.setattr(stages, "sys", SimpleNamespace(stderr=found, modules=sys.modules))
    monkeypatch.setattr(stages, "_FIRST", 0.0)
    monkeypatch.setattr(stages, "_NEXT", 0.01)
    return found


def _slow(part: pd.DataFrame, _number: int) -> int:
    time.sleep(0.1)
    return len(part)


def test_a_line_is_shown_and_taken_away(screen: Screen) -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": range(8)}), npartitions=4)
    with (
        dask.config.set(scheduler="threads", num_workers=1),
        stages.stage("Counting rows"),
        stages.stage("Something within"),
    ):
        assert map_reduce(frame, _slow, sum) == 8
    text = screen.getvalue()
    assert "Counting rows: pass 1 over the data" in text and "%" in text
    assert "Something within" not in text
    assert text.endswith("\r") and not text.rsplit("\r", 2)[1].strip()


def test_what_is_compiled_is_told(screen: Screen) -> None:
    @numba.njit
    def first(x: float) -> float:
        return x + 1

    with stages.stage("Adding"):
        assert first(1.0) == 2
        compiled = screen.getvalue()
        time.sleep(0.1)
    assert "\rCompiling kernels: 0 s" in compiled and "once" not in compiled
    assert "\rAdding: " in screen.getvalue()[len(compiled) :]
    # What is kept on disk is compiled no more.
    kernel = {"dispatcher": SimpleNamespace(stats=SimpleNamespace(cache_path="somewhere"))}
    with stages.stage("Adding"), event.trigger_event("numba:compile", data=kernel):
        time.sleep(0.1)
    assert "\rCompiling kernels, once for this environment: 0 s" in screen.getvalue()
    already = len(screen.getvalue())
    with stages.stage("Adding"):
        assert first(1.0) == 2
        time.sleep(0.1)
    assert "Compiling" not in screen.getvalue()[already:]


def test_calls_of_the_accessor_say_what_they_do(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    monkeypatch.setattr(stages, "_Line", lambda text: shown.append(text) or _Quiet())
    frame = sdc_dask.datasets.uniform(200, 2, seed=1).compute()
    masked = frame.sdc.microaggregate(["x0", "x1"], k=3)
    frame.sdc.score(masked)
    assert shown == ["Planning and masking", "Measuring loss and risk"]


def test_verify_says_what_it_does(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = sdc_dask.datasets.uniform(60, 2, seed=1).compute()
    frame.to_parquet(tmp_path / "source.parquet", index=False)
    spec = sdc_dask.Microaggregation(["x0", "x1"], k=3)
    sdc_dask.protect(tmp_path / "source.parquet", tmp_path / "out", spec, progress=False)
    shown: list[str] = []
    monkeypatch.setattr(stages, "_Line", lambda text: shown.append(text) or _Quiet())
    assert sdc_dask.verify(tmp_path / "out").ok
    assert shown == ["Looking at the files again"]


def test_the_program_says_that_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen()
    program = SimpleNamespace(stderr=screen, argv=["sdc-dask", "protect"])
    monkeypatch.setattr(sdc_dask_start, "sys", program)
    line = "sdc-dask: loading ...\r"
    with sdc_dask_start._said("loading"):
        assert screen.getvalue() == line
    assert screen.getvalue() == f"{line}{' ' * 21}\r"
    program.argv.append("--quiet")
    with sdc_dask_start._said("loading"):
        assert len(screen.getvalue()) == len(line) + 22


def test_reports_say_what_they_measure(
    tmp_path: Path, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("jinja2")
    said: list[str] = []
    monkeypatch.setattr(dossier, "say", said.append)
    frame = sdc_dask.datasets.uniform(60, 2, seed=1).compute()
    masked = frame.sdc.microaggregate(["x0", "x1"], k=3)
    sdc_dask.report(frame, {"a": masked, "b": masked}, tmp_path / "page.html")
    assert said == ["Measuring a for the report", "Measuring b for the report"]
    assert "Measuring for the report: " in screen.getvalue()


class _Quiet:
    text, passes = "", 0

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        return None

    def compute(self, task: object) -> object:
        return dask.compute(task)[0]


@pytest.mark.parametrize(
    ("terminal", "asked", "shows"),
    [
        (True, None, True),
        (True, False, False),
        (False, None, False),
        (False, True, True),
    ],
)
def test_who_sees_it(
    monkeypatch: pytest.MonkeyPatch, terminal: bool, asked: bool | None, shows: bool
) -> None:
    monkeypatch.setattr(sys, "stderr", Screen() if terminal else io.StringIO())
    with dask.config.set({"sdc-dask.progress": asked}):
        assert stages.shown() is shows


@pytest.mark.parametrize("seen", [True, False])
def test_a_cluster_without_workers_is_told(
    seen: bool, screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stages, "_LOOK", 0.05)
    monkeypatch.setattr(stages, "_UNSHOWN", 0.1)
    frame = dd.from_pandas(pd.DataFrame({"x": range(8)}), npartitions=2)
    told = contextlib.nullcontext() if seen else pytest.warns(SdcWarning, match="no worker at tcp")
    with (
        dask.config.set({"sdc-dask.progress": seen}),
        LocalCluster(n_workers=0, dashboard_address=None, silence_logs=50) as cluster,
        Client(cluster),
        told as warned,
    ):
        threading.Timer(0.5, cluster.scale, [1]).start()
        with stages.stage("Counting rows"):
            assert map_reduce(frame, _slow, sum) == 8
            text = screen.getvalue()
    if seen:
        assert f"Counting rows: no worker at {cluster.scheduler_address}, waiting, " in text
        assert "no worker" not in text.rsplit("\r", 2)[-1]
    else:
        assert len(warned) == 1 and not text


def test_what_fails_leaves_no_line(screen: Screen) -> None:
    with pytest.raises(ZeroDivisionError), stages.stage("Dividing"):
        time.sleep(0.05)
        _ = 1 / 0
    assert screen.getvalue().endswith("\r")
    assert stages._line.get() is None
