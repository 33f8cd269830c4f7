"""Tasks that a network fails for a moment are tried again, and no others."""

from __future__ import annotations

import errno
import time
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from s3_server import Store

import sdc_dask
from sdc_dask.engine import patience
from sdc_dask.engine.frames import Calls, frame_of
from sdc_dask.engine.patience import is_passing, patiently
from sdc_dask.errors import SdcRuntimeError, SdcValueError

pytest_plugins = ["s3_server"]


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Give the seconds that are waited, which take none."""
    found: list[float] = []
    monkeypatch.setattr(time, "sleep", found.append)
    return found


class Fails:
    """Raises an error some times, and then returns how often it was called."""

    def __init__(self, error: BaseException, times: int) -> None:
        self.error, self.times, self.calls = error, times, 0

    def __call__(self) -> int:
        self.calls += 1
        if self.calls <= self.times:
            raise self.error
        return self.calls


def from_an_error(error: Exception) -> Exception:
    """Return an error of this package that came from another."""
    try:
        try:
            raise error
        except Exception:
            raise SdcRuntimeError("cannot be reached") from None
    except SdcRuntimeError as told:
        return told


class ServerDisconnectedError(Exception):
    """As that of a package that is not imported here."""


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(),
        BrokenPipeError(errno.EPIPE, ""),
        TimeoutError(),
        ServerDisconnectedError(),
        OSError(errno.ENETUNREACH, ""),
        OSError(errno.EIO, "an error inside"),
        from_an_error(ConnectionResetError(errno.ECONNRESET, "")),
        from_an_error(from_an_error(TimeoutError())),
    ],
)
def test_what_passes_is_tried_again(error: Exception, waits: list[float]) -> None:
    assert patiently(Fails(error, 2)) == 3
    assert waits == [1.0, 4.0]
    lasting = Fails(error, 100)
    with pytest.raises(type(error)):
        patiently(lasting)
    assert lasting.calls == 4


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, ""),
        OSError(errno.EROFS, ""),
        PermissionError(errno.EACCES, ""),
        FileNotFoundError(errno.ENOENT, ""),
        OSError("of Arrow"),
        SdcValueError("wrong"),
        from_an_error(PermissionError(errno.EACCES, "")),
        MemoryError(),
        KeyboardInterrupt(),
    ],
)
def test_what_stays_is_not(error: BaseException, waits: list[float]) -> None:
    assert not is_passing(error)
    failing = Fails(error, 1)
    with pytest.raises(type(error)):
        patiently(failing)
    assert (failing.calls, waits) == (1, [])


def _once(number: int, folder: str) -> pd.DataFrame:
    """Fail for the first time that a number is asked for, as far as files tell."""
    mark = Path(folder) / str(number)
    if not mark.exists():
        mark.touch()
        raise ConnectionResetError
    return pd.DataFrame({"x": [number]})


def _sum(parts: list[pd.DataFrame], more: int, folder: str) -> int:
    _once(-1, folder)
    return sum(int(part["x"].sum()) for part in parts) + more


def test_tasks_are_tried_again(
    scheduler: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if scheduler != "cluster":
        monkeypatch.setattr(patience, "_WAITS", (0.0,))
    frame = frame_of(_once, [1, 2], pd.DataFrame({"x": np.array([], np.int64)}), str(tmp_path))
    assert frame["x"].compute().tolist() == [1, 2]
    call = Calls(lazy=True)
    parts = [call(_once, number, str(tmp_path)) for number in (3, 4)]
    assert call.compute(call(_sum, parts, 5, str(tmp_path))) == 12


def test_a_store_that_fails_for_a_moment_does_not_end_a_run(
    memory: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, waits: list[float]
) -> None:
    sdc_dask.datasets.uniform(200, 1, npartitions=2).to_parquet(tmp_path / "in")
    source = memory.fill(tmp_path / "in", "in")
    failed = []
    real = MemoryFileSystem.cat_file

    def unreliable(self: MemoryFileSystem, path: str, *args: object, **options: object) -> bytes:
        # Footers are read before; the first piece is read after that.
        if ".partial/part" in path or path.endswith("part.1.parquet"):
            failed.append(path)
            if failed.count(path) == 3:
                raise ConnectionResetError
        return real(self, path, *args, **options)

    monkeypatch.setattr(MemoryFileSystem, "cat_file", unreliable)
    with dask.config.set(scheduler="sync"):
        spec = sdc_dask.Microaggregation(["x0"], 3)
        summary = sdc_dask.protect(source.url, f"{memory.url}/out", spec)
    assert summary.rows == 200
    assert waits == [1.0]
