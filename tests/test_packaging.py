"""What a wheel must hold and say, and which names of others are relied upon; nothing is built."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile
from importlib import metadata
from pathlib import Path

import pytest
from dask.dataframe.dask_expr._expr import Expr
from packaging.requirements import Requirement

import sdc_dask
from sdc_dask import extras
from sdc_dask.engine import expressions
from sdc_dask.errors import SdcImportError

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "sdc_dask"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_all_files_that_are_no_code_are_package_data() -> None:
    packed: set[Path] = set()
    for package, patterns in PROJECT["tool"]["setuptools"]["package-data"].items():
        folder = ROOT / package.replace(".", "/")
        for pattern in patterns:
            found = set(folder.glob(pattern))
            assert found, f"no file matches {pattern!r} of {package!r}"
            packed |= found
    there = {
        path for path in PACKAGE.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    }
    assert {path for path in there if path.suffix != ".py"} == packed
    assert PACKAGE / "py.typed" in packed
    folders = {path.parent for path in there if path.suffix == ".py"}
    assert [folder for folder in folders if not (folder / "__init__.py").exists()] == []


def test_there_is_one_version() -> None:
    assert sdc_dask.__version__ == metadata.version("sdc-dask") == PROJECT["project"]["version"]


def test_extras_that_messages_and_documents_name_exist() -> None:
    offered = PROJECT["project"]["optional-dependencies"]
    documents = [ROOT / "README.md", *ROOT.glob("docs/*.md"), *PACKAGE.rglob("*.py")]
    for document in documents:
        text = document.read_text(encoding="utf-8")
        for named in re.findall(r"'sdc-dask\[([a-z0-9,]+)\]'", text):
            assert set(named.split(",")) <= set(offered), f"{document.name} names {named}"
    for package, extra in extras.EXTRAS.items():
        brought = {Requirement(text).name for text in offered[extra]}
        assert package in brought, f"the extra {extra} does not bring {package}"


@pytest.mark.parametrize("package", sorted(extras.EXTRAS))
def test_a_missing_package_is_one_error(package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    wanted = (
        f"this needs the package {package}, which is not installed: "
        f"pip install 'sdc-dask[{extras.EXTRAS[package]}]'."
    )
    with pytest.raises(SdcImportError, match=f"^{re.escape(wanted)}$"):
        extras.load(package, "this")


def _private_names_of_dask(path: Path) -> set[str]:
    """Return the names of Dask in a file that are not public, as far as they can be seen."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and re.match(
            "(dask|distributed)(\\.|$)", node.module or ""
        ):
            names = [*(node.module or "").split("."), *(each.name for each in node.names)]
            found |= {name for name in names if name.startswith("_") or name == "dask_expr"}
        elif isinstance(node, ast.Attribute):
            found |= {node.attr} & {"_meta", "_divisions", "_expr", "expr", "simplify", "dask_expr"}
    return found


def test_private_names_of_dask_are_in_one_file() -> None:
    using = {path.name for path in PACKAGE.rglob("*.py") if _private_names_of_dask(path)}
    assert using == {"expressions.py"}


def test_dask_has_the_names_that_are_not_public() -> None:
    hooks = ("_meta", "_divisions", "_simplify_down", "_lower", "_parameters")
    changed = [name for name in hooks if not hasattr(Expr, name)]
    frame = sdc_dask.datasets.uniform(10, 1, npartitions=2)
    changed += [name for name in ("_meta", "expr", "simplify") if not hasattr(frame, name)]
    assert not changed, f"Dask has changed {changed}: look at sdc_dask/engine/expressions.py"
    made = expressions.reading(frame.copy(), frame)
    assert made.compute().equals(frame.compute())
    assert made.divisions == frame.divisions


MASKING = """
import pandas as pd, sdc_dask
df = pd.DataFrame({"x": [1.0, 2.0, 3.0, 10.0, 11.0, 12.0]})
masked = df.sdc.microaggregate(["x"], k=3)
print(sdc_dask.__file__, masked["x"].tolist(), masked.sdc.anonymity(["x"], k=3).below_k)
"""


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_a_wheel_works_where_nothing_else_is(tmp_path: Path) -> None:
    left_out = shutil.ignore_patterns(".*", "__pycache__", "*.egg-info", "build", "dist", "site")
    tree = shutil.copytree(ROOT, tmp_path / "tree", ignore=left_out)
    venv.create(tmp_path / "venv", with_pip=True)
    commands = tmp_path / "venv" / "bin"
    clean = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}

    def run(*command: str | Path) -> str:
        return subprocess.run(
            [commands / command[0], *command[1:]],
            **{"cwd": tmp_path, "env": clean, "text": True, "check": True},
            stdout=subprocess.PIPE,
        ).stdout

    try:
        run("python", "-m", "pip", "install", "--quiet", "build")
    except subprocess.CalledProcessError:
        pytest.skip("pip reaches no packages")
    run("python", "-m", "build", "--outdir", tmp_path / "dist", tree)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    (source,) = (tmp_path / "dist").glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as opened:
        packed = set(opened.namelist())
    assert {"sdc_dask/py.typed", "sdc_dask/report/templates/base.html"} <= packed
    assert not [name for name in packed if name.startswith(("tests", "benchmarks"))]
    with tarfile.open(source) as opened:
        inside = {name.partition("/")[2] for name in opened.getnames()}
    assert {"README.md", "LICENSE", "pyproject.toml", "sdc_dask/py.typed"} <= inside
    run("python", "-m", "pip", "install", "--quiet", wheel)
    assert "protect" in run("sdc-dask", "--help")
    place, values = run("python", "-c", MASKING).split(" ", 1)
    assert Path(place).is_relative_to(tmp_path / "venv")
    assert values.strip() == "[2.0, 2.0, 2.0, 11.0, 11.0, 11.0] 0"
