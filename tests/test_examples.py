"""The code of README, pages and examples runs as it stands, with fewer records at most."""

from __future__ import annotations

import contextlib
import importlib
import operator
import re
import runpy
import shlex
import sys
import tempfile
from pathlib import Path

import dask
import pytest

import sdc_dask
from sdc_dask import cli
from sdc_dask.release import cluster

ROOT = Path(__file__).parents[1]


def _blocks(language: str, document: str | Path = "README.md") -> list[str]:
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


# What the code of a page must have printed in the end, of all pages that have code.
SHOWN = {
    "advice": "FewValuesAdvice",
    "categories": "Anonymity",
    "guide_attack": "IntervalDisclosure",
    "guide_choosing": "times what no groups of 5 can be below",
    "guide_cluster": "Protected 2,000 rows",
    "guide_mixed": "Verified: 2,000 rows",
    "guide_release": 'masking = "rank_swap"',
    "guide_series": "Protected 600 rows",
    "measures": "swapped, p = 5",
    "methods": "GroupAnonymity of 10,000 records in 2 groups",
    "mixed": "below_k    0",
    "rank_swapping": "DisclosureRisk",
    "report": "for_users.html",
    "series": "72000 ['firm', 'month', 'sales']",
    "tutorial": "Verified: 5,000 rows",
    "tutorial_large": "Linkage",
}


def test_pages_with_code_are_known() -> None:
    assert {page.stem for page in ROOT.glob("docs/*.md") if _blocks("python", page)} == set(SHOWN)


@pytest.mark.parametrize("page", SHOWN)
def test_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], page: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    session: dict[str, object] = {}
    for number, code in enumerate(_blocks("python", f"docs/{page}.md")):
        exec(compile(code, f"docs/{page}.md, block {number}", "exec"), session)
    assert SHOWN[page] in capsys.readouterr().out


# Links


def _anchors(document: Path) -> set[str]:
    """Return the anchors of a page: its headings, as browsers have them in addresses."""
    text = re.sub(r"^```.*?^```", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    plain = [re.sub(r"[^\w\s-]", "", heading).strip().lower() for heading in headings]
    return {re.sub(r"[\s-]+", "-", heading) for heading in plain}


def test_links_of_documents_lead_somewhere() -> None:
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        text = document.read_text(encoding="utf-8")
        for path, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)#?([^)\s]*)\)", text):
            target = document.parent / path if path else document
            assert target.exists(), f"{document.name} links to {path}, which does not exist"
            if anchor:
                assert anchor in _anchors(target), f"{document.name}: no {anchor} in {path}"


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"(\w+)\.md$", (ROOT / "mkdocs.yml").read_text(), re.MULTILINE))
    made = {"index", "changelog", "contributing"}  # of files at the root
    assert {page.stem for page in ROOT.glob("docs/*.md")} == listed - made


def test_every_example_is_a_page() -> None:
    text = (ROOT / "docs" / "examples.md").read_text(encoding="utf-8")
    shown = set(re.findall(r"^\[(\w+)\.py\]\(\.\./examples/\1\.py\)$", text, re.MULTILINE))
    assert shown == {script.stem for script in ROOT.glob("examples/*.py")} == set(EXAMPLES)


# Scripts

EXAMPLES = {  # arguments, and what must be printed
    "attack_release": ([], "alignment"),
    "choose_a_masking": ([], "The least loss with a risk of at most 50 percent: "),
    "choose_parameters": ([], "how far values go"),
    "cluster_job": (["--workers", "1"], "Protected 2,000 rows"),
    "first_session": ([], "Protected 2,000 rows"),
    "mixed_release": ([], "Verified: 2,000 rows"),
    "object_store": ([], "Verified: 2,000 rows"),
    "release": ([], "Verified: 2,000 rows"),
    "reports": ([], "for_users.html release.html release_internal.html"),
    "time_series": ([], "Protected 2,000 rows"),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    arguments, shown = EXAMPLES[name]
    script = str(ROOT / "examples" / f"{name}.py")
    monkeypatch.setattr(sys, "argv", [script, "--rows", "2000", *arguments])
    runpy.run_path(script, run_name="__main__")
    assert shown in capsys.readouterr().out


# Names


def test_names_in_documents_exist() -> None:
    for document in [ROOT / "README.md", *ROOT.glob("docs/*.md")]:
        text = document.read_text(encoding="utf-8")
        for name in re.findall(r"\.sdc\.([a-z]\w*)", text):
            assert hasattr(sdc_dask.SdcAccessor, name), f"{document.name}: .sdc.{name}"
        for path in re.findall(r"(?<![\w/])sdc_dask((?:\.[A-Za-z]\w*)+)", text):
            assert _exists(path.lstrip(".")), f"{document.name}: sdc_dask{path}"


def _exists(path: str) -> bool:
    """Return whether a name is in the package: a module, or what is in one."""
    module, rest = f"sdc_dask.{path}", ""
    while module:
        with contextlib.suppress(ImportError, AttributeError):
            found = importlib.import_module(module)
            return not rest or bool(operator.attrgetter(rest)(found))
        module, _, name = module.rpartition(".")
        rest = f"{name}.{rest}".rstrip(".")
    return False


def test_every_masking_is_documented() -> None:
    pages = {
        name: (ROOT / "docs" / name).read_text() for name in ("api.md", "coming_from_sdcmicro.md")
    }
    for name in sdc_dask.__all__:
        thing = getattr(sdc_dask, name)
        if (
            isinstance(thing, type)
            and issubclass(thing, sdc_dask.Spec)
            and thing is not sdc_dask.Spec
        ):
            assert [page for page, text in pages.items() if name not in text] == [], name
