"""The command line: options of every masking, job files, help, and one line of complaint."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import ssl
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pyarrow.parquet as pq
import pytest

import sdc_dask
from sdc_dask import (
    FuzzyMicroaggregation,
    Mic1D,
    Microaggregation,
    RankSwap,
    SeriesMicroaggregation,
    Spec,
    cli,
    warmup,
)
from sdc_dask import job as jobs
from sdc_dask.aggregation import power, threshold
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.job import Job
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
def asked(monkeypatch: pytest.MonkeyPatch, threads: list[tuple]) -> list[Any]:
    """Give the jobs that are asked for, with the options of each run, instead of running them."""
    found: list[Any] = []

    def run(job: Job, **options: object) -> str:
        found.append((job, options))
        return "done"

    monkeypatch.setattr(Job, "run", run)
    monkeypatch.setattr(Job, "check", lambda *_, **__: None)
    return found


def protect(source: Path, target: Path, *options: str) -> int:
    columns = ["--columns", "income,age", "--keep", "*"]
    return cli.main(["protect", str(source), str(target), *columns, *options])


# What is asked for


@pytest.mark.parametrize(
    ("options", "spec"),
    [
        ("--columns a,b -k 5", Microaggregation(["a", "b"], 5)),
        (
            "--masking series_microaggregation --series a,b -k 5 --distance sts --times 0,2.5",
            SeriesMicroaggregation(["a", "b"], 5, distance="sts", times=[0, 2.5]),
        ),
        (
            "--masking series_microaggregation --series p=a,b --series v=c,d -k 5 --by r",
            SeriesMicroaggregation({"p": ["a", "b"], "v": ["c", "d"]}, 5, by="r"),
        ),
        ("--columns 1,none --by 2 -k 5", Microaggregation(["1", "none"], 5, by="2")),
        (
            "--columns a,b --columns c -k 5 --by r --by s,t --blocking none --no-standardize",
            Microaggregation(
                [["a", "b"], ["c"]], 5, by=["r", "s", "t"], blocking=None, standardize=False
            ),
        ),
        (
            "--columns a -k 5 --max-block 500 --missing separate --method vmdav --gain .5",
            Microaggregation(["a"], 5, max_block=500, missing="separate", method="vmdav", gain=0.5),
        ),
        (
            "--columns a,b -k 5 --method weighted_mean --weights 0.25,.75",
            Microaggregation(["a", "b"], 5, method="weighted_mean", weights=[0.25, 0.75]),
        ),
        (
            "--columns a,b -k 5 --method twofold --fuzzy-measure power:2,threshold:0.5",
            Microaggregation(["a", "b"], 5, method="twofold", measure=(power(2), threshold(0.5))),
        ),
        ("--masking rank_swap --columns a -p 2.5 --top 1", RankSwap(["a"], 2.5, top=1)),
        ("--columns a --kappa 9 --masking=mic1d", Mic1D(["a"], 9)),
        (
            "--masking fuzzy_microaggregation --columns a -k 5 --m1 1.5 --m2 inf",
            FuzzyMicroaggregation(["a"], 5, 1.5, float("inf")),
        ),
    ],
)
def test_options_are_the_fields_of_a_spec(
    asked: list[Any], capsys: pytest.CaptureFixture[str], options: str, spec: Spec
) -> None:
    assert cli.main(["protect", "in", "out", *options.split(), "--drop", "p,q", "--drop", "r"]) == 0
    ((job, run),) = asked
    assert job == Job(Path("in"), Path("out"), spec, ["p", "q", "r"])
    none = ("storage_options", "target_options", "report", "external_report", "confidential")
    assert run == {"replace": False, "progress": None, **dict.fromkeys(none)}
    assert capsys.readouterr() == ("done\n", "")


def test_a_job_file(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    target, file, report = tmp_path / "release", tmp_path / "job.toml", tmp_path / "report.json"
    options = ["-k", "7", "--by", "sex", "--drop", "person", "--drop", "household,rent"]
    assert protect(survey, target, *options, "--write-job", str(file)) == 0
    assert list(tmp_path.iterdir()) == [file]
    assert protect(survey, target, *options, "--write-job", str(file)) == 2
    assert "job.toml' exists" in capsys.readouterr().err
    run = ["--json", str(report), "--workers", "3", "--memory-limit", "1GiB", "--quiet"]
    assert cli.main(["protect", str(file), *run]) == 0
    assert threads == [(3, "1GiB")]
    assert capsys.readouterr() == ("", "")
    released = pd.read_parquet(target)
    assert not {"person", "household", "rent"} & set(released.columns)
    assert released.groupby(["income", "age", "sex"]).size().min() >= 7
    summary = json.loads(report.read_text())
    assert summary["rows"] == 2_000
    assert summary["masked"][0]["spec"] == Job.read(file).specs[0].to_dict()
    # The job file itself is no place for the summary, and replacing is up to each call.
    assert cli.main(["protect", str(file), "--replace", "--json", str(file)]) == 1
    assert "is the job file" in capsys.readouterr().err
    assert cli.main(["protect", str(file)]) == 1
    assert "--replace" in capsys.readouterr().err
    assert cli.main(["protect", str(file), "--replace"]) == 0
    assert "Protected 2,000 rows" in capsys.readouterr().out


@pytest.mark.parametrize("said", [False, True])
def test_a_job_file_is_measured_if_it_or_the_call_says_so(
    tmp_path: Path, asked: list[Any], said: bool
) -> None:
    file = tmp_path / "job.toml"
    Job(tmp_path / "in", tmp_path / "out", Microaggregation(["a"], 5), measure=said).write(file)
    for flags in ([], ["--measure"]):
        assert cli.main(["protect", str(file), *flags]) == 0
    assert [job.measure for job, _ in asked] == [said, True]


@pytest.mark.parametrize(
    "option", ["--columns a", "-k 5", "--no-standardize", "--drop a", "--masking rank_swap"]
)
def test_what_a_job_file_says_is_not_said_twice(
    tmp_path: Path, asked: list[Any], capsys: pytest.CaptureFixture[str], option: str
) -> None:
    file = tmp_path / "job.toml"
    Job(tmp_path / "in", tmp_path / "out", Microaggregation(["a"], 5)).write(file)
    assert cli.main(["protect", str(file), *option.split()]) == 2
    flag = option.split()[0].replace("--no-", "--")
    assert f"a job file says what {flag} would say" in capsys.readouterr().err
    assert asked == []


# What is wrong


def test_a_missing_source_is_told_before_workers_start(
    tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    assert protect(tmp_path / "absent", tmp_path / "release", "-k", "5") == 1
    assert "absent' does not exist" in capsys.readouterr().err
    assert threads == []


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["--columns", "incme"], "did you mean 'income'?"),
        (["--columns", "income"], "columns are neither masked, kept nor dropped: "),
        (["--columns", "income", "--by", "regoin", "--keep", "*"], "by names columns that the"),
        (["--columns", "income", "--keep", "*", "--count", "rgion"], "'rgion'"),
        (["--columns", "income", "--keep", "*", "-k", "51"], "50 records, fewer than k=51"),
    ],
)
def test_wrong_columns_are_told_before_workers_start(
    tmp_path: Path,
    threads: list[tuple],
    capsys: pytest.CaptureFixture[str],
    given: list[str],
    words: str,
) -> None:
    sdc_dask.datasets.survey(50, seed=1).compute().to_parquet(tmp_path / "survey.parquet")
    paths = [str(tmp_path / "survey.parquet"), str(tmp_path / "release")]
    assert cli.main(["protect", *paths, "-k", "5", *given]) == 1
    assert words in capsys.readouterr().err
    assert threads == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("", "Missing command"),
        ("protct", "No such command 'protct'"),
        ("protect", "name SOURCE and TARGET, or a job file, received 0 paths"),
        ("protect a b c", "received 3 paths"),
        ("protect absent.toml", "job file 'absent.toml' does not exist"),
        ("protect .", "name a TARGET, too: a single path is a job file, and '.' is none"),
        ("protect s3://bucket/survey", "name a TARGET, too"),
        ("protect a out income age --keep a", "received 4 paths. Names of columns are separated"),
        ("protect a out --columns x -k 3 --masking mdav", "leave --masking out, and say --method"),
        ("protect a b --columns x", "masking 'microaggregation' needs k"),
        ("protect a b --columns x -k 1", "k must be at least 2, received 1"),
        ("protect a b --columns x -k five", "k must be a whole number"),
        ("protect a b --columns x,,y -k 5", "a name is empty"),
        ("protect a b --columns x -k 5 --method magic", "received 'magic'"),
        ("protect a b --columns x -k 5 --colums x", "did you mean '--columns'?"),
        ("protect a b --columns x -p 5", "The masking microaggregation has --columns, -k"),
        ("protect a b --masking rank_swap -k 5", "The masking rank_swap has --columns, -p"),
        ("protect a b --masking rank_swp", "did you mean 'rank_swap'?"),
        ("protect a b --masking", "--masking must be one of"),
        ("protect a b --masking pram --masking suppress", "--masking is given 2 times"),
        ("protect a b --columns x -k 5 --repl", "did you mean '--replace'?"),
        ("protect a b --columns x -k 5 --workers 0", "x>=1"),
        ("protect a b --columns x -k 5 --memory-limit much", "1GiB"),
        ("protect a b --columns x -k 5 --scheduler h:1 --workers 2", "leave them out with --sch"),
        ("protect a b --columns x -k 5 --scheduler h:1 --memory-limit 1GiB", "leave them out with"),
        ("protect a b --columns x -k 5 --write-job j.toml --replace", "--replace is for a run"),
        ("protect a b --columns x -k 5 --tls-cert c.pem", "--tls-cert is for an encrypted sch"),
        ("protect a b --columns x -k 5 --scheduler tcp://h:1 --tls-key c.key", "tls://host:8786"),
        ("demo --rows 0", "x>=1"),
    ],
)
def test_wrong_usage(
    asked: list[Any], capsys: pytest.CaptureFixture[str], arguments: str, words: str
) -> None:
    assert cli.main(arguments.split()) == 2
    shown = capsys.readouterr()
    assert words in shown.err
    assert shown.err.startswith("sdc-dask: error: ")
    assert "--help'.\n" in shown.err
    assert (shown.out, shown.err.count("\n"), asked) == ("", 1, [])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--drop", "nobody"], "error: drop names columns that the source does not have: 'nobody'"),
        (["--columns", "rent"], "error: missing cells in columns: 'rent'"),
        (["--json", "absent/report.json"], "absent/report.json' does not exist"),
        (["--json", "."], "is a directory"),
        (["--json", "{survey}/report.json"], "lies in the source or the target"),
        (["--json", "{survey}"], "is a directory"),
    ],
)
def test_what_fails_is_one_line(
    survey: Path,
    tmp_path: Path,
    threads: list[tuple],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    words: str,
) -> None:
    options = [each.format(survey=survey) for each in options]
    assert protect(survey, tmp_path / "release", "-k", "5", *options) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("sdc-dask: ")
    assert words in complaint
    assert complaint.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def _fail_in_pandas() -> None:
    pd.to_numeric(pd.Series([f"value {SECRET}"]))


def _fail_in_c() -> None:
    float(f"value {SECRET}")


def _fail_in_the_system() -> None:
    raise OSError(28, "No space left on device", "/data/release")


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch, threads: list[tuple]) -> Callable[..., int]:
    """Run the command line while `protect` raises what a function raises."""

    def fails(fail: Callable[[], object], *options: str) -> int:
        monkeypatch.setattr(jobs, "protect", lambda *_, **__: fail())
        monkeypatch.setattr(Job, "check", lambda *_, **__: None)
        monkeypatch.setattr(Job, "check", lambda *_, **__: None)
        return protect(Path("a"), Path("b"), "-k", "5", *options)

    return fails


@pytest.mark.parametrize("fail", [_fail_in_pandas, _fail_in_c])
def test_text_of_others_is_not_shown(
    failing: Callable[..., int], capsys: pytest.CaptureFixture[str], fail: Callable[[], None]
) -> None:
    assert failing(fail) == 1
    complaint = capsys.readouterr().err
    assert complaint.startswith("sdc-dask: error: ValueError. ")
    assert "--debug" in complaint
    assert str(SECRET) not in complaint
    assert complaint.count("\n") == 1
    assert failing(fail, "--debug") == 1
    complaint = capsys.readouterr().err
    assert "Traceback" in complaint
    assert str(SECRET) in complaint


def test_errors_of_the_system_are_named(
    failing: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert failing(_fail_in_the_system) == 1
    complaint = capsys.readouterr().err
    assert complaint == (
        "sdc-dask: error: OSError: No space left on device: /data/release: free space there, or "
        "choose another disk: TARGET says where files are written, TMPDIR where temporary ones "
        "are.\n"
    )


class KilledWorker(Exception):
    """As Dask names it, with a text of its own."""


class FlexibleChecksumError(Exception):
    """As the client of S3 names it."""


class P2POutOfDiskError(OSError):
    """As Dask names it."""


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (KilledWorker(f"task-{SECRET}"), "KilledWorker: worker processes died again and again"),
        (P2POutOfDiskError(f"{SECRET}"), "No space left on device in the temporary directory of a"),
        (PermissionError(13, f"{SECRET}", "/data"), "Permission denied: /data: ask for the perm"),
        (FlexibleChecksumError(f"{SECRET}"), "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required"),
        (MemoryError(f"{SECRET}"), "MemoryError: give workers more memory (--memory-limit)"),
        (OSError(f"{SECRET}"), "error: OSError. Its text may show data values"),
        (ssl.SSLError(1, f"{SECRET}"), "the connection could not be encrypted"),
    ],
)
def test_errors_of_others_say_what_to_do(
    failing: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    words: str,
) -> None:
    def fail() -> None:
        raise error

    assert failing(fail) == 1
    complaint = capsys.readouterr().err
    assert words in complaint
    assert str(SECRET) not in complaint
    assert complaint.count("\n") == 1


def test_debug_shows_what_is_hidden_otherwise(
    failing: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> None:
        try:
            _fail_in_c()
        except ValueError:
            raise SdcRuntimeError("a task failed: ValueError.") from None

    assert failing(fail) == 1
    assert str(SECRET) not in capsys.readouterr().err
    assert failing(fail, "--debug") == 1
    assert str(SECRET) in capsys.readouterr().err


# Help


def test_options_of_stores_are_what_they_mean(
    survey: Path, tmp_path: Path, asked: list[Any]
) -> None:
    texts = {
        "anon": ("false", False),
        "port": ("9000", 9000),
        "ratio": ("0.5", 0.5),
        "client_kwargs": ('{"verify": false, "x": ["y"]}', {"verify": False, "x": ["y"]}),
        "none": ("null", None),
        "endpoint_url": ("https://store:9000/?x=1", "https://store:9000/?x=1"),
        "key": ('"123"', "123"),
        "secret": ("12e4", "12e4"),
        "token": ("0123", "0123"),
        "text": ("{", "{"),
    }
    meant = {name: value for name, (_, value) in texts.items()}
    pairs = [f"{name}={text}" for name, (text, _) in texts.items()]
    flags = [text for pair in pairs for text in ("--storage-option", pair)]
    command = ["-k", "5", *flags, "--target-option", "anon=true"]
    assert protect(survey, tmp_path / "out", *command) == 0
    ((_, options),) = asked
    assert options["storage_options"] == meant
    assert all(type(options["storage_options"][name]) is type(meant[name]) for name in meant)
    assert options["target_options"] == {"anon": True}


@pytest.mark.parametrize("option", ["--json", "--report", "--external-report"])
def test_a_file_that_cannot_be_written_is_told_before_the_run(
    survey: Path,
    tmp_path: Path,
    threads: list[tuple],
    capsys: pytest.CaptureFixture[str],
    option: str,
) -> None:
    # A directory in which nobody makes files, whoever runs the tests.
    assert protect(survey, tmp_path / "out", "-k", "5", option, "/sys/made") == 1
    assert "'/sys/made' cannot be written (" in capsys.readouterr().err
    assert (threads, list(tmp_path.iterdir())) == ([], [])


def test_a_target_in_a_directory_that_is_read_only(
    survey: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    before = os.listdir("/sys")
    assert protect(survey, Path("/sys/release"), "-k", "5") == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith(("ask for the permission, or choose another place.", "be written to."))
    assert "/sys/" in line
    assert os.listdir("/sys") == before


def test_help_shows_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    for spec in (Microaggregation, RankSwap, Mic1D, FuzzyMicroaggregation):
        assert cli.main(["protect", "--masking", spec.kind, "--help"]) == 0
        shown = capsys.readouterr().out
        assert f"What is masked, by {spec.kind}:" in shown
        for field in dataclasses.fields(spec):
            flag = field.name.replace("_", "-")
            assert f"  {'-' if len(flag) == 1 else '--'}{flag} " in shown
        assert "Exit codes: 0 the release is there" in shown
    assert cli.main(["protect", "--help"]) == 0
    assert "What is masked, by microaggregation:" in capsys.readouterr().out
    assert cli.main(["demo", "--help"]) == 0
    assert "--folder" in capsys.readouterr().out


def test_reports_are_of_the_run(
    survey: Path, tmp_path: Path, asked: list[Any], capsys: pytest.CaptureFixture[str]
) -> None:
    pages = ["--report", str(tmp_path / "in.html"), "--external-report", str(tmp_path / "out.html")]
    assert protect(survey, tmp_path / "t", "-k", "5", *pages, "--confidential", "tax,rent") == 0
    ((_, options),) = asked
    assert options["report"] == tmp_path / "in.html"
    assert options["external_report"] == tmp_path / "out.html"
    assert options["confidential"] == ["tax", "rent"]
    inside = survey / "page.html"
    assert protect(survey, tmp_path / "t", "-k", "5", "--report", str(inside)) == 1
    assert "lies in the source or the target" in capsys.readouterr().err
    assert len(asked) == 1


@pytest.mark.parametrize(("option", "words"), [("--help", "Commands:"), ("--version", "sdc-dask ")])
def test_help_and_version_do_not_wait_for_imports(option: str, words: str) -> None:
    code = "import sdc_dask_start, sys; code = sdc_dask_start.start()\n"
    code += "assert not {'dask', 'numba', 'pandas', 'sdc_dask'} & set(sys.modules); sys.exit(code)"
    command = [sys.executable, "-c", code, option]
    found = subprocess.run(command, capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    assert words in found.stdout
    if option == "--version":
        assert found.stdout == f"sdc-dask {sdc_dask.__version__}\n"


# Where it runs


@pytest.mark.soak
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
        monkeypatch.setattr(cluster, "is_private", lambda _address: False)
        with warnings.catch_warnings():
            warnings.filterwarnings("default", "the data goes to")
            assert protect(survey, tmp_path / "second", *options, address, "--quiet") == 0
        (warning,) = capsys.readouterr().err.splitlines()
        assert warning.startswith("sdc-dask: warning: the data goes to tcp://127.0.0.1")
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


def test_warnings_are_told_in_one_line(
    survey: Path, tmp_path: Path, threads: list[tuple], capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(action="always"):
        assert protect(survey, tmp_path / "release", "-k", "5", "--quiet") == 0
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("sdc-dask: warning: kept columns are unique or nearly so")


def test_warmup_says_what_it_compiles(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = []
    monkeypatch.setattr(warmup, "WORK", {"swaps": lambda: done.append(1)})
    monkeypatch.setattr(warmup, "MANY", 200)
    assert cli.main(["warmup", "--columns", "2"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first == "compiling: swaps"
    assert second == "compiling: microaggregation and linkage of 2 columns"
    assert last.startswith("done in")
    assert done
    assert cli.main(["warmup", "--columns", "0"]) == 2
