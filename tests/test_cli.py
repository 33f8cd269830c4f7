"""The command line: exit codes, one line of complaint, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import dask
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sdc_dask
from sdc_dask import cli
from sdc_dask.release import cluster

SECRET = 987_654.25


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "survey"
    with dask.config.set(scheduler="threads"):
        made = sdc_dask.datasets.survey(2_000, npartitions=2)
        made.to_parquet(folder, write_index=False)
    return folder


@pytest.fixture
def threads(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple]]:
    """Run on threads instead of a cluster; gives the arguments that the cluster would get."""
    asked: list[tuple] = []

    def no_cluster(*arguments: object) -> contextlib.AbstractContextManager[None]:
        asked.append(arguments)
        return contextlib.nullcontext()

    monkeypatch.setattr(cluster, "local_cluster", no_cluster)
    with dask.config.set(scheduler="threads"):
        yield asked


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, threads: list[tuple]) -> Callable[..., None]:
    """Make `protect` raise what a function raises."""

    def let(fail: Callable[[], object]) -> None:
        def protect(*_arguments: object, **_options: object) -> None:
            fail()

        # The module: the package has the function under the same name.
        monkeypatch.setattr(sys.modules["sdc_dask.release.protect"], "protect", protect)

    return let


def protect(source: Path, target: Path, *options: str) -> int:
    return cli.main(["protect", str(source), str(target), "--columns", "income,age", *options])


def test_protects(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    target, report = tmp_path / "release", tmp_path / "report.json"
    options = ["-k", "7", "--by", "sex", "--drop", "person", "--drop", "household,rent"]
    assert protect(survey, target, *options, "--json", str(report), "--max-block", "500") == 0
    shown = capsys.readouterr()
    assert "Protected 2,000 rows" in shown.out
    assert shown.err == ""
    released = pd.read_parquet(target)
    assert not {"person", "household", "rent"} & set(released.columns)
    assert released.groupby(["income", "age", "sex"]).size().min() >= 7
    summary = json.loads(report.read_text())
    assert summary["rows"] == 2_000
    assert summary["masked"] == [["income", "age"]]
    assert summary["max_block"] == [500]
    assert summary["anonymity"][0]["k_min"] >= 7


def test_groups_and_quiet(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    report = tmp_path / "report.json"
    options = ["--columns", "wealth", "-k", "5", "--quiet", "--json", str(report)]
    options += ["--blocking", "none", "--no-standardize", "--workers", "3"]
    assert protect(survey, tmp_path / "release", *options, "--memory-limit", "1GiB") == 0
    assert capsys.readouterr() == ("", "")
    assert threads == [(3, "1GiB")]
    summary = json.loads(report.read_text())
    assert summary["masked"] == [["income", "age"], ["wealth"]]
    assert [each["k_min"] >= 5 for each in summary["anonymity"]] == [True, True]


def test_missing_cells(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["protect", str(survey), str(tmp_path / "release"), "--columns", "rent", "-k", "3"]
    assert cli.main(command) == 1
    assert capsys.readouterr().err.startswith("sdc-dask: error: missing cells in columns: 'rent'")
    assert cli.main([*command, "--missing", "separate"]) == 0


def test_existing_target_needs_replace(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "release"
    target.mkdir()
    (target / "old.txt").touch()
    assert protect(survey, target, "-k", "5") == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("sdc-dask: error: target ")
    assert complaint.count("\n") == 1
    assert "--replace" in complaint
    assert (target / "old.txt").exists()
    assert protect(survey, target, "-k", "5", "--replace") == 0
    assert not (target / "old.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_key_errors_are_shown_without_quotes(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    assert protect(survey, tmp_path / "release", "-k", "5", "--drop", "nobody") == 1
    complaint = capsys.readouterr().err
    start = "sdc-dask: error: drop names columns that the frame does not have: 'nobody'."
    assert complaint.startswith(start)
    assert complaint.rstrip().endswith(".")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("absent/report.json", "does not exist"), ("", "is a directory")],
)
def test_json_is_checked_first(
    survey: Path,
    tmp_path: Path,
    threads: list[tuple],
    capsys: pytest.CaptureFixture[str],
    name: str,
    words: str,
) -> None:
    report = str(tmp_path / name)
    assert protect(survey, tmp_path / "release", "-k", "5", "--json", report) == 1
    assert words in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def _fail_in_pandas() -> None:
    pd.to_numeric(pd.Series([f"value {SECRET}"]))


def _fail_in_c() -> None:
    float(f"value {SECRET}")


@pytest.mark.parametrize("fail", [_fail_in_pandas, _fail_in_c])
def test_text_of_others_is_not_shown(
    failing: Callable[..., None], capsys: pytest.CaptureFixture[str], fail: Callable[[], None]
) -> None:
    failing(fail)
    assert protect(Path("a"), Path("b"), "-k", "5") == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("sdc-dask: error: ValueError. ")
    assert "--debug" in complaint
    assert str(SECRET) not in complaint
    assert complaint.count("\n") == 1


def test_debug_shows_all(failing: Callable[..., None], capsys: pytest.CaptureFixture[str]) -> None:
    failing(_fail_in_c)
    assert protect(Path("a"), Path("b"), "-k", "5", "--debug") == 1
    complaint = capsys.readouterr().err
    assert "Traceback" in complaint
    assert str(SECRET) in complaint


def test_errors_of_the_system_are_named(
    failing: Callable[..., None], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        raise OSError(28, "No space left on device", "/data/release")

    failing(fail)
    assert protect(Path("a"), Path("b"), "-k", "5") == 1
    complaint = capsys.readouterr().err
    assert complaint == "sdc-dask: error: OSError: No space left on device: /data/release.\n"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals(
    failing: Callable[..., None], capsys: pytest.CaptureFixture[str], number: int, code: int
) -> None:
    before = signal.getsignal(number)
    cleaned = []

    def fail() -> None:
        with contextlib.suppress(BaseException):  # as Python does in callbacks and finalizers
            os.kill(os.getpid(), number)
            time.sleep(10)
        try:
            time.sleep(10)
        finally:
            os.kill(os.getpid(), number)
            time.sleep(0.3)
            cleaned.append(True)

    failing(fail)
    assert protect(Path("a"), Path("b"), "-k", "5") == code
    assert capsys.readouterr().err in ("sdc-dask: interrupted.\n", "sdc-dask: terminated.\n")
    assert cleaned
    assert signal.getsignal(number) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ([], "-k"),
        (["-k", "1"], "at least 2"),
        (["-k", "five"], "at least 2"),
        (["-k", "5", "--columns", "a,,b"], "empty name"),
        (["-k", "5", "--max-block", "0"], "at least 2"),
        (["-k", "5", "--method", "magic"], "invalid choice"),
        (["-k", "5", "--blocking", "magic"], "invalid choice"),
        (["-k", "5", "--missing", "magic"], "invalid choice"),
        (["-k", "5", "--memory-limit", "much"], "1GiB"),
        (["-k", "5", "--workers", "0"], "at least 1"),
        (["-k", "5", "--scheduler", "tcp://127.0.0.1:1", "--workers", "2"], "--scheduler"),
        (["-k", "5", "--scheduler", "tcp://127.0.0.1:1", "--memory-limit", "1GiB"], "--scheduler"),
        (["-k", "5", "--repl"], "unrecognized"),
    ],
)
def test_wrong_usage(capsys: pytest.CaptureFixture[str], options: list[str], words: str) -> None:
    assert protect(Path("a"), Path("b"), *options) == 2
    assert words in capsys.readouterr().err


def test_help_and_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    assert cli.main(["protect", "--help"]) == 0
    assert cli.main(["demo", "--help"]) == 0
    assert "exit codes" in capsys.readouterr().out
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out == f"sdc-dask {sdc_dask.__version__}\n"
    assert cli.main([]) == 2


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("localhost:8786", True),
        ("tcp://[::1]:8786", True),
        ("tls://host:8786", True),
        ("tcp://host:8786", False),
        ("host:8786", False),
        ("10.0.0.1:8786", False),
        ("tcp://127.example.com:8786", False),
    ],
)
def test_private_addresses(address: str, private: bool) -> None:
    assert cli._is_private(address) is private


def test_scheduler(
    survey: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    options = ["-k", "5", "--scheduler"]
    with cluster.local_cluster(1) as client:
        address = client.scheduler.addr
        assert protect(survey, tmp_path / "release", *options, address, "--quiet") == 0
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(cli, "_is_private", lambda _address: False)
        assert protect(survey, tmp_path / "release", *options, address) == 1
        warning, complaint = capsys.readouterr().err.splitlines()
        assert warning.startswith("sdc-dask: warning: the data goes to tcp://127.0.0.1")
        assert complaint.startswith("sdc-dask: error: target ")
    assert pq.read_table(tmp_path / "release").num_rows == 2_000
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}):
        assert protect(survey, tmp_path / "other", *options, address) == 1
    assert "no scheduler could be reached at" in capsys.readouterr().err


def test_demo(tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "demo"
    command = ["demo", "--rows", "5000", "-k", "3", "--folder", str(folder)]
    assert cli.main(command) == 0
    shown = capsys.readouterr().out
    for words in ("Protected 5,000 rows", "What was lost", "What is risked", "0.00% after"):
        assert words in shown
    assert sorted(path.name for path in folder.iterdir()) == ["release", "survey"]
    assert cli.main(command) == 1
    assert "has a 'survey' already" in capsys.readouterr().err


def test_sigterm_leaves_nothing(tmp_path: Path) -> None:
    """A process of its own is told to end while it writes."""
    source, scratch = tmp_path / "survey", tmp_path / "scratch"
    scratch.mkdir()
    with dask.config.set(scheduler="threads"):
        made = sdc_dask.datasets.survey(300_000, npartitions=8)
        made.to_parquet(source, write_index=False)
    command = [sys.executable, "-m", "sdc_dask", "protect", str(source), str(tmp_path / "release")]
    command += ["--columns", "income,wealth,age", "-k", "5", "--workers", "1"]
    environment = {**os.environ, "TMPDIR": str(scratch)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 150
        while not list(tmp_path.glob(".release.*.partial/*")):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.01)
        process.send_signal(signal.SIGTERM)
        _, complaint = process.communicate(timeout=100)
    assert process.returncode == 143
    assert "sdc-dask: terminated.\n" in complaint
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scratch", "survey"]
    assert list(scratch.iterdir()) == []
