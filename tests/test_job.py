"""Job files: what is written is read again, and what is wrong is named before anything runs."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any

import pytest

import sdc_dask
from sdc_dask import FuzzyMicroaggregation, Mic1D, Microaggregation, RankSwap
from sdc_dask.aggregation import power, sigmoid
from sdc_dask.job import FORMAT, Job

TEXT = """
format = 1
source = "survey"
target = "../release"
drop = ["person"]
keep = ["*"]

[[mask]]
masking = "microaggregation"
columns = ["income", "wealth"]
k = 5
by = "region"

[[mask]]
masking = "rank_swap"
columns = ["rent"]
p = 5
"""
SPECS = (Microaggregation(["income", "wealth"], k=5, by="region"), RankSwap(["rent"], p=5))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "jobs").mkdir()
    return tmp_path / "jobs" / "job.toml"


def test_paths_start_at_the_file(file: Path) -> None:
    file.write_text(TEXT)
    job = Job.read(file)
    assert job == Job(
        file.parent / "survey", file.parent / "../release", SPECS, ("person",), ("*",)
    )
    absolute = Job(Path("/data/survey"), Path("/data/release"), SPECS)
    file.unlink()
    absolute.write(file)
    assert Job.read(file) == absolute


@pytest.mark.parametrize(
    "specs",
    [
        SPECS,
        Microaggregation([["a", "b"], ["c"]], k=3, blocking=None, standardize=False),
        Microaggregation(["a", "b"], k=3, method="weighted_mean", weights=[0.25, 0.75]),
        Microaggregation(["a", "b"], k=3, method="twofold", measure=(power(2), sigmoid(0.5))),
        Mic1D(['quoted "name"', "back\\slash", "ünï\x7f\n\t😀", "none", "1", "a,b"], kappa=10),
        FuzzyMicroaggregation(["a"], k=3, m1=1.5, m2=float("inf"), max_block=1000),
        RankSwap(["a"], method="buckets", buckets=7, top=1e-7),
    ],
    ids=lambda specs: type(specs).__name__,
)
def test_what_is_written_is_read_again(
    file: Path, monkeypatch: pytest.MonkeyPatch, specs: Any
) -> None:
    monkeypatch.chdir(file.parent.parent)
    job = Job("survey", "out/release", specs, drop=["per son"])
    job.write(file)
    values = tomllib.loads(file.read_text(encoding="utf-8"))
    assert list(values) == ["format", "source", "target", "drop", "mask"]
    assert values["format"] == FORMAT
    assert (values["source"], values["target"]) == ("../survey", "../out/release")
    found = Job.read(file)
    assert (found.specs, found.drop) == (job.specs, ("per son",))
    for mine, read in ((job.source, found.source), (job.target, found.target)):
        assert os.path.abspath(mine) == os.path.abspath(read)
    with pytest.raises(FileExistsError, match="exists: choose another name"):
        job.write(file)
    with pytest.raises(FileNotFoundError, match="does not exist: make it"):
        job.write("absent/job.toml")


def test_run(file: Path) -> None:
    people = sdc_dask.datasets.survey(2_000, seed=1).compute()
    people.to_parquet(file.parent / "survey.parquet", index=False)
    file.write_text(TEXT.replace('"survey"', '"survey.parquet"'))
    job = Job.read(file)
    summary = job.run(random_state=1)
    assert summary.rows == 2_000
    assert summary.dropped == ("person",)
    assert [each.checked for each in summary.masked] == ["k", "values"]
    with pytest.raises(FileExistsError):
        job.run()
    assert job.run(replace=True, progress=False).rows == 2_000


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("format = 1\n", "", "needs format = 1"),
        ("format = 1\n", "format = 2\n", "format 2 is newer .* reads up to 1: upgrade it"),
        ("format = 1\n", "format = 0\n", "format must be 1, received 0"),
        ("format = 1\n", "format = '1'\n", "format must be 1, received '1'"),
        ("format = 1\n", "format = true\n", "format must be 1, received True"),
        ("source =", "sorce =", "no 'sorce' \\(did you mean 'source'\\?\\)"),
        ("source =", "# source =", "needs source: name it"),
        ('"survey"', "5", "source must be a path as text, received 5"),
        ('"survey"', '""', "source must be a path as text, received ''"),
        ('["person"]', '"person"', "drop must be a list of column names.*received 'person'"),
        ('["person"]', "[1, 'a']", "drop must be a list of column names.*list of int, str"),
        ("drop =", "workers =", "has no 'workers', which belongs to the run"),
        ("drop =", "random_state =", "has no 'random_state', which belongs to the run"),
        ("drop =", "mask = 5\n#", "not TOML"),
        ("format = 1", "format 1", r"not TOML: .*at line 2"),
        ("[[mask]]", "[mask]", "not TOML"),
        ('"rank_swap"', '"rank_swp"', "mask 2: masking must be .*did you mean 'rank_swap'"),
        ("p = 5", "q = 5", "mask 2: masking 'rank_swap' has no 'q'"),
        ("k = 5", "", "mask 1: masking 'microaggregation' needs k"),
        ("k = 5", "k = '5'", "mask 1: k must be a whole number of at least 2, received str"),
        ("k = 5", "k = 5\nrandom_state = 1", "mask 1: masking 'microaggregation' has no 'random_s"),
        ('["rent"]', '["income"]', "masked by more than one spec: 'income'"),
    ],
)
def test_what_is_wrong_is_named(file: Path, old: str, new: str, words: str) -> None:
    assert old in TEXT
    file.write_text(TEXT.replace(old, new))
    with pytest.raises(sdc_dask.SdcError, match=words) as wrong:
        Job.read(file)
    assert str(wrong.value).startswith(f"job file {str(file)!r}")


@pytest.mark.parametrize(
    ("masks", "words"),
    [
        ("", "needs mask: name it"),
        ("mask = []", "list of specs is empty"),
        ("[mask]", "mask must be a list of tables, each .*received dict"),
        ("mask = [1]", "mask must be a list of tables, each .*received list of int"),
    ],
)
def test_a_job_needs_tables_of_masks(file: Path, masks: str, words: str) -> None:
    file.write_text(TEXT[: TEXT.index("[[mask]]")] + masks)
    with pytest.raises(sdc_dask.SdcError, match=words):
        Job.read(file)


def test_files_that_cannot_be_read(file: Path) -> None:
    with pytest.raises(FileNotFoundError, match="does not exist"):
        Job.read(file)
    with pytest.raises(FileNotFoundError, match=r"cannot be read \(IsADirectoryError\)"):
        Job.read(file.parent)
    file.write_bytes(b"format = 1 # \xff")
    with pytest.raises(FileNotFoundError, match=r"cannot be read \(UnicodeDecodeError\)"):
        Job.read(file)
