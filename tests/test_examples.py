"""The README's code and the examples run as they stand, with fewer records at most."""

from __future__ import annotations

import contextlib
import re
import runpy
import shlex
import sys
from pathlib import Path

import dask
import pytest

from sdc_dask import cli
from sdc_dask.release import cluster

ROOT = Path(__file__).parents[1]


def _blocks(language: str, document: str = "README.md") -> list[str]:
    text = (ROOT / document).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def test_readme(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # That the program starts workers is tested elsewhere, and by an example below.
    monkeypatch.setattr(cluster, "local_cluster", lambda *_: contextlib.nullcontext())
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    codes = _blocks("python")
    assert len(codes) == 4
    with dask.config.set(scheduler="threads"):
        for number, code in enumerate(codes):
            # With fewer records there are no blocks for which more kernels are compiled.
            code = code.replace("survey(100_000", "survey(20_000")
            exec(compile(code, f"README.md, block {number}", "exec"), session)
    shown = capsys.readouterr().out
    assert "below_k    0" in shown
    assert "Protected 20,000 rows" in shown
    # What the command line is given is what the last block has written.
    commands = re.findall(r"^\$ sdc-dask (.*)$", "".join(_blocks("console")), re.MULTILINE)
    assert [command.split()[0] for command in commands] == ["protect", "verify"]
    for command in commands:
        assert cli.main([*shlex.split(command), "--workers", "1"]) == 0
    assert "Verified: 20,000 rows" in capsys.readouterr().out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["published", "release", "survey"]


@pytest.mark.parametrize(
    ("document", "count", "shown"),
    [
        ("docs/methods.md", 4, "GroupAnonymity of 10,000 records in 2 groups"),
        ("docs/mixed.md", 1, "below_k    0"),
        ("docs/rank_swapping.md", 2, "DisclosureRisk"),
        ("docs/categories.md", 1, "Anonymity"),
        ("docs/measures.md", 6, "swapped, p = 5"),
        ("docs/advice.md", 1, ""),
        ("docs/series.md", 2, "72000 ['firm', 'month', 'sales']"),
        ("docs/report.md", 1, "for_users.html"),
    ],
)
def test_documents(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    document: str,
    count: int,
    shown: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    session: dict[str, object] = {}
    codes = _blocks("python", document)
    assert len(codes) == count
    for number, code in enumerate(codes):
        exec(compile(code, f"{document}, block {number}", "exec"), session)
    assert shown in capsys.readouterr().out


def test_links_of_documents_exist() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        links = re.findall(r"\]\((?!https?:)([^)#]+)", document.read_text(encoding="utf-8"))
        assert [link for link in links if not (document.parent / link).exists()] == []


@pytest.mark.parametrize(
    ("name", "arguments", "shown"),
    [
        ("first_session", [], "Protected 2,000 rows"),
        ("cluster_job", ["--workers", "1"], "Protected 2,000 rows"),
        ("choose_a_masking", [], "The least loss with a risk of at most 50 percent: "),
    ],
)
def test_examples(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    name: str,
    arguments: list[str],
    shown: str,
) -> None:
    script = str(ROOT / "examples" / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, "--rows", "2000", *arguments])
    runpy.run_path(script, run_name="__main__")
    assert shown in capsys.readouterr().out
