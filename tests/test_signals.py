"""Signals and exit codes: 0 if and only if the release is there, and nothing half-done is left."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import pytest

import sdc_dask
from sdc_dask import cli
from sdc_dask.release import cluster, directory, signals
from sdc_dask.release import target as target_module
from sdc_dask.release.summary import Summary

OPTIONS = ["--columns", "income,age", "-k", "5", "--keep", "region,sex", "--drop", "*"]
CODES = {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGHUP: 143}


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("source") / "survey.parquet"
    sdc_dask.datasets.survey(500).compute(scheduler="threads").to_parquet(file, index=False)
    return file


@pytest.fixture(autouse=True)
def _usual_handlers() -> Iterator[None]:
    """Handle signals as at a terminal, whatever the tests run under."""
    usual = dict.fromkeys((signal.SIGTERM, signal.SIGHUP), signal.SIG_DFL)
    usual |= {signal.SIGINT: signal.default_int_handler}
    before = {number: signal.signal(number, handler) for number, handler in usual.items()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def release(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, bool]]:
    """Protect a survey on threads, and return the exit code and whether the release is there."""
    monkeypatch.setattr(cluster, "local_cluster", lambda *_: contextlib.nullcontext())

    def protect(*options: str) -> tuple[int, bool]:
        target = tmp_path / "release"
        before = {number: signal.getsignal(number) for number in CODES}
        code = cli.main(["protect", str(survey), str(target), *OPTIONS, "--quiet", *options])
        assert {number: signal.getsignal(number) for number in CODES} == before
        assert not 0 < signal.getitimer(signal.ITIMER_REAL)[0] < 1
        assert [path.name for path in tmp_path.glob(".*")] == []
        return code, target.exists()

    return protect


def send(number: int) -> None:
    os.kill(os.getpid(), number)
    time.sleep(0.01)


def called_with_signal(
    monkeypatch: pytest.MonkeyPatch,
    owner: object,
    name: str,
    number: int,
    when: Callable[..., bool] = lambda *_: True,
) -> None:
    """Send a signal as soon as a function has done its work."""
    real = getattr(owner, name)

    def call(*arguments: object, **options: object) -> object:
        found = real(*arguments, **options)
        if when(*arguments):
            send(number)
        return found

    monkeypatch.setattr(owner, name, call)


@pytest.mark.parametrize("number", list(CODES))
def test_before_the_release_a_signal_leaves_nothing(
    release: Callable[..., tuple[int, bool]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    number: int,
) -> None:
    called_with_signal(monkeypatch, directory, "_sync", number)
    assert release() == (CODES[number], False)
    said = "interrupted" if number == signal.SIGINT else "terminated"
    assert capsys.readouterr() == ("", f"sdc-dask: {said}.\n")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_in_python_a_signal_leaves_nothing_either(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def removed(path: Path) -> None:
        send(number)  # once more, while it cleans up
        remove(path)

    remove = target_module.remove
    monkeypatch.setattr(target_module, "remove", removed)
    called_with_signal(monkeypatch, directory, "_sync", number)
    spec = sdc_dask.Microaggregation(["income", "age"], 5)
    with pytest.raises(SystemExit) as ended:
        sdc_dask.protect(survey, tmp_path / "release", spec, drop="*")
    assert ended.value.code == 128 + number
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(number) == signal.SIG_DFL


def test_handlers_of_a_program_stay(
    survey: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _frame: seen.append(number))
    called_with_signal(monkeypatch, directory, "_sync", signal.SIGTERM)
    spec = sdc_dask.Microaggregation(["income", "age"], 5)
    sdc_dask.protect(survey, tmp_path / "release", spec, drop="*")
    assert seen == [signal.SIGTERM]


def test_nohup(release: Callable[..., tuple[int, bool]], monkeypatch: pytest.MonkeyPatch) -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    called_with_signal(monkeypatch, directory, "_sync", signal.SIGHUP)
    assert release() == (0, True)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("end", [".partial", ".old"])
def test_from_the_first_rename_on_a_signal_comes_too_late(
    release: Callable[..., tuple[int, bool]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    number: int,
    end: str,
) -> None:
    assert release() == (0, True)
    first = {path.stat().st_ino for path in (tmp_path / "release").iterdir()}
    called_with_signal(
        monkeypatch, Path, "rename", number, lambda *paths: any(str(p).endswith(end) for p in paths)
    )
    assert release("--replace", "-k", "7") == (0, True)
    assert first.isdisjoint(path.stat().st_ino for path in (tmp_path / "release").iterdir())
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_while_it_ends(
    release: Callable[..., tuple[int, bool]],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    number: int,
) -> None:
    for owner, name in ((directory, "_finish"), (cli, "_report"), (Path, "write_text")):
        called_with_signal(monkeypatch, owner, name, number)
    assert release("--json", str(tmp_path / "report.json")) == (0, True)
    assert (tmp_path / "report.json").stat().st_size > 0


def test_what_fails_after_the_release_is_a_warning(
    release: Callable[..., tuple[int, bool]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    @contextlib.contextmanager
    def fails_to_close(*_: object) -> Iterator[None]:
        yield
        raise TimeoutError("a text of others")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "report.json")

    monkeypatch.setattr(Summary, "write", full)
    monkeypatch.setattr(cluster, "local_cluster", fails_to_close)
    assert release("--json", str(tmp_path / "report.json")) == (0, True)
    first, second = capsys.readouterr().err.splitlines()
    assert first == (
        "sdc-dask: warning: the summary could not be written: OSError: No space left on device: "
        "report.json."
    )
    assert second.startswith("sdc-dask: warning: the release is there, but then: TimeoutError.")
    assert "a text of others" not in second


def test_a_rename_that_fails_is_no_release(
    release: Callable[..., tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        send(signal.SIGTERM)
        raise PermissionError(1, "no")

    monkeypatch.setattr(Path, "rename", fail)
    assert release() == (143, False)


def test_a_signal_that_python_drops_counts_all_the_same(
    release: Callable[..., tuple[int, bool]], monkeypatch: pytest.MonkeyPatch
) -> None:
    cleaned = []

    def dropped(*_: object) -> None:
        with contextlib.suppress(BaseException):  # as Python does in callbacks and finalizers
            send(signal.SIGINT)
        try:
            time.sleep(10)
        finally:
            send(signal.SIGINT)  # a second one does not disturb what is cleaned up
            time.sleep(0.3)
            cleaned.append(True)

    monkeypatch.setattr(directory, "_sync", dropped)
    assert release() == (130, False)
    assert cleaned

    def dropped_just_now(*_: object) -> None:
        with contextlib.suppress(BaseException):
            send(signal.SIGINT)

    monkeypatch.setattr(directory, "_sync", dropped_just_now)
    assert release() == (130, False)


def test_a_program_in_a_thread_has_no_signals(
    release: Callable[..., tuple[int, bool]],
) -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(release()))
    thread.start()
    thread.join(60)
    assert found == [(0, True)]


def test_held_signals_count_for_everybody_afterwards() -> None:
    done = []
    with pytest.raises(KeyboardInterrupt), signals.held():
        send(signal.SIGINT)
        done.append(True)
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# Processes of their own, with workers of their own


def run(
    code: str, folder: Path, *arguments: str, stdout: object = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Run the program after some code that plants a signal in it, as a terminal would."""
    driver = folder / "driver.py"
    driver.write_text(
        textwrap.dedent(code)
        + "\nif __name__ == '__main__':\n    import sdc_dask_start, sys\n"
        + "    sys.exit(sdc_dask_start.start())\n"
    )
    return subprocess.run(
        [sys.executable, str(driver), *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        timeout=120,
        env={**os.environ, "TMPDIR": str(folder)},
        start_new_session=True,
    )


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_while_modules_are_imported(tmp_path: Path, number: int) -> None:
    code = f"""
        import os, sys

        class Importing:
            def find_spec(self, name, *_):
                if name == "sdc_dask":
                    os.kill(os.getpid(), {number:d})

        sys.meta_path.insert(0, Importing())
    """
    found = run(code, tmp_path, "protect", "survey", "release", *OPTIONS)
    said = "interrupted" if number == signal.SIGINT else "terminated"
    assert (found.returncode, found.stderr) == (CODES[number], f"sdc-dask: {said}.\n")


def test_ctrl_c_while_workers_start(survey: Path, tmp_path: Path) -> None:
    code = """
        import os, signal, threading
        from sdc_dask.release import cluster

        real = cluster.LocalCluster

        def starting(*arguments, **options):
            os.killpg(0, signal.SIGINT)
            threading.Timer(0.5, os.killpg, (0, signal.SIGINT)).start()
            return real(*arguments, **options)

        cluster.LocalCluster = starting
    """
    target = tmp_path / "release"
    found = run(code, tmp_path, "protect", str(survey), str(target), *OPTIONS, "--workers", "1")
    assert (found.returncode, found.stdout, found.stderr) == (130, "", "sdc-dask: interrupted.\n")
    assert [path.name for path in tmp_path.iterdir()] == ["driver.py"]


def test_the_very_end(survey: Path, tmp_path: Path) -> None:
    code = """
        import atexit, contextlib, os, signal
        from sdc_dask.release import cluster

        cluster.local_cluster = lambda *_: contextlib.nullcontext()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            atexit.register(os.kill, os.getpid(), number)

        class Last:  # it goes when Python handles signals no more
            def __del__(self, kill=os.kill, pid=os.getpid(), number=signal.SIGINT):
                kill(pid, number)

        last = Last()
    """
    target = tmp_path / "release"
    with open("/dev/full", "w") as full:
        found = run(code, tmp_path, "protect", str(survey), str(target), *OPTIONS, stdout=full)
    assert found.returncode == 0
    assert found.stderr == (
        "sdc-dask: warning: the summary could not be printed: OSError: No space left on device.\n"
    )
    assert target.is_dir()


def test_ctrl_c_while_files_are_written(tmp_path: Path) -> None:
    """The terminal signals workers, too: they leave it to the program to stop them."""
    source, scratch = tmp_path / "survey", tmp_path / "scratch"
    scratch.mkdir()
    with dask.config.set(scheduler="threads"):
        made = sdc_dask.datasets.survey(150_000, npartitions=8)
        made.to_parquet(source, write_index=False)
    command = [sys.executable, "-m", "sdc_dask", "protect", str(source), str(tmp_path / "release")]
    command += ["--columns", "income,wealth,age", "-k", "5", "--keep", "*", "--workers", "1"]
    command += ["--max-block", "5000"]  # of which no other kernels are compiled
    with subprocess.Popen(
        command,
        env={**os.environ, "TMPDIR": str(scratch)},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        deadline = time.monotonic() + 150
        while not list(tmp_path.glob(".release.*.partial/*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        _, complaint = process.communicate(timeout=100)
    assert (process.returncode, complaint) == (130, "sdc-dask: interrupted.\n")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scratch", "survey"]
    assert list(scratch.iterdir()) == []
