"""What may stand at a target: nothing, or with `replace` a release."""

from __future__ import annotations

import errno
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import sdc_dask
from sdc_dask.release import directory as directory_module
from sdc_dask.release.directory import check_directory, claimed, hidden, written_beside
from sdc_dask.release.manifest import Manifest, ReleasedFile, file_digest

SPEC = sdc_dask.Microaggregation(["x0", "x1"], k=3)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "source.parquet"
    sdc_dask.datasets.uniform(50, 2, seed=1).compute().to_parquet(file, index=False)
    return file


def _file(target: Path) -> None:
    target.write_text("mine")


def _link(target: Path) -> None:
    elsewhere = target.with_name("elsewhere")
    elsewhere.mkdir()
    target.symlink_to(elsewhere)


def _broken_link(target: Path) -> None:
    target.symlink_to(target.with_name("nowhere"))


def _data_set(target: Path) -> None:
    target.mkdir()
    (target / "part.0.parquet").touch()


def _release(target: Path) -> None:
    target.mkdir()
    content = b"as good as a table"
    (target / "part-0.parquet").write_bytes(content)
    digest = file_digest(target / "part-0.parquet")
    Manifest.of(
        [ReleasedFile("part-0.parquet", 1, len(content), digest)], pa.schema([]), [], []
    ).write(target)


def _other_file(target: Path) -> None:
    _release(target)
    (target / "notes.txt").write_text("mine")


def _hidden_file(target: Path) -> None:
    target.mkdir()
    (target / ".git").write_text("mine")


def _directory(target: Path) -> None:
    _release(target)
    (target / "year.parquet").mkdir()


def _linked_file(target: Path) -> None:
    _release(target)
    (target / "part-0.parquet").unlink()
    (target / "part-0.parquet").symlink_to(target.with_name("source.parquet"))


@pytest.mark.parametrize(
    ("make", "what"),
    [
        (_file, "is a file"),
        (_link, "is a link"),
        (_broken_link, "is a link"),
        (_data_set, "without a whole _manifest"),
        (_hidden_file, "without a whole _manifest"),
        (_other_file, r"other entries \(1\)"),
        (_directory, r"other entries \(1\)"),
        (_linked_file, r"other entries \(1\)"),
    ],
)
def test_what_is_not_replaced(
    source: Path,
    make: Callable[[Path], None],
    what: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = source.with_name("release")
    make(target)
    before = _everything(source.parent)
    monkeypatch.setattr(sdc_dask.Microaggregation, "plan", None)  # nothing runs
    with pytest.raises(FileExistsError, match=what) as refused:
        sdc_dask.protect(source, target, SPEC, replace=True, keep="*")
    assert "only a release is replaced" in str(refused.value)
    with pytest.raises(FileExistsError, match="exists: choose another name"):
        sdc_dask.protect(source, target, SPEC, keep="*")
    assert _everything(source.parent) == before


def test_what_is_replaced(source: Path) -> None:
    target = source.with_name("release")
    target.mkdir()  # empty
    for k in (3, 7):
        spec = sdc_dask.Microaggregation(["x0", "x1"], k=k)
        summary = sdc_dask.protect(source, target, spec, replace=True, keep="*")
        assert summary.anonymity[0].k_min >= k
    assert sorted(path.name for path in source.parent.iterdir()) == ["release", "source.parquet"]


def test_a_target_that_changed_meanwhile_is_kept(source: Path) -> None:
    target = source.with_name("release")
    sdc_dask.protect(source, target, SPEC, keep="*")
    check_directory(target, replace=True)
    with (
        pytest.raises(FileExistsError, match="other entries"),
        written_beside(target, replace=True) as directory,
    ):
        (directory / "part.0.parquet").touch()
        (target / "notes.txt").write_text("mine")
    assert (target / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in source.parent.iterdir()) == ["release", "source.parquet"]


def test_a_target_that_came_meanwhile_is_kept(source: Path) -> None:
    target = source.with_name("release")
    with (
        pytest.raises(FileExistsError, match="appeared during the run"),
        written_beside(target, replace=False),
    ):
        _other_file(target)
    assert (target / "notes.txt").read_text() == "mine"
    assert sorted(path.name for path in source.parent.iterdir()) == ["release", "source.parquet"]


def _everything(folder: Path) -> dict[str, object]:
    return {
        str(path): path.read_bytes() if path.is_file() else path.is_symlink()
        for path in folder.rglob("*")
    }


# Runs that died, and runs at the same time


def left_behind(target: Path, what: str) -> Path:
    """Leave a directory as a run does that is killed."""
    directory = hidden(target, what)
    directory.mkdir(mode=0o700)
    (directory / "part-000000.parquet").write_bytes(b"original values")
    return directory


def test_what_dead_runs_left_is_removed_by_the_next(source: Path) -> None:
    target = source.with_name("release")
    for what in ("partial", "work"):
        left_behind(target, what)
    others = [
        left_behind(source.with_name("other"), "partial"),
        source.with_name(f".{target.name}.backup.partial"),
        source.with_name(f".{target.name}.{'0' * 32}.partial"),
    ]
    others[1].mkdir()
    others[2].symlink_to(others[0])
    (source.parent / f".{target.name}.lock").touch()
    sdc_dask.protect(source, target, SPEC, keep="*")
    expected = {source.name, target.name, *(path.name for path in others)}
    assert {path.name for path in source.parent.iterdir()} == expected


def test_a_release_that_a_dead_run_was_replacing_gets_its_name_back(source: Path) -> None:
    target = source.with_name("release")
    sdc_dask.protect(source, target, SPEC, keep="*")
    target.rename(hidden(target, "old"))
    left_behind(target, "partial")
    with pytest.raises(FileExistsError, match="exists: choose another name"):
        sdc_dask.protect(source, target, SPEC, keep="*")
    assert sdc_dask.verify(target).ok
    assert {path.name for path in source.parent.iterdir()} == {source.name, target.name}
    left_behind(target, "old")
    sdc_dask.protect(source, target, SPEC, keep="*", replace=True)
    assert {path.name for path in source.parent.iterdir()} == {source.name, target.name}


def test_of_two_runs_to_one_target_the_second_is_refused(source: Path) -> None:
    target = source.with_name("release")
    with claimed(target), pytest.raises(FileExistsError, match="another run is writing to target"):
        sdc_dask.protect(source, target, SPEC, keep="*")
    with claimed(target):  # those of others are not kept off
        sdc_dask.protect(source, source.with_name("other"), SPEC, keep="*")
    sdc_dask.protect(source, target, SPEC, keep="*")
    names = {path.name for path in source.parent.iterdir()}
    assert names == {source.name, target.name, "other"}


def test_where_there_are_no_locks_nothing_is_removed(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(directory_module.fcntl, "flock", refuse)
    target = source.with_name("release")
    left = left_behind(target, "partial")
    sdc_dask.protect(source, target, SPEC, keep="*")
    assert left.exists()
    assert sdc_dask.verify(target).ok
