"""Directories of runs: locked while the run lives, removed after it died."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sdc_dask.release.leftovers import LOCK, locked_directory, remove_dead

RUN = """
import sys, time
from pathlib import Path
from sdc_dask.release.leftovers import locked_directory

with locked_directory(Path(sys.argv[1])) as directory:
    (directory / "values").write_text("original")
    print("ready", flush=True)
    time.sleep(100)
"""


def aged(path: Path, seconds: float = 3600) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_a_directory_is_closed_to_others_and_goes_in_the_end(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with locked_directory(tmp_path / "run-1") as directory:
            assert directory.stat().st_mode & 0o777 == 0o700
            assert (directory / LOCK).stat().st_mode & 0o777 == 0o600
            (directory / "deep").mkdir()
            (directory / "deep" / "values").write_text("original")
            aged(directory)
            assert remove_dead(tmp_path, "run-*") == 0
            assert (directory / "deep" / "values").exists()
    finally:
        os.umask(before)
    assert list(tmp_path.iterdir()) == []


def test_it_goes_if_the_run_fails_and_stays_under_another_name(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked_directory(tmp_path / "run-1"):
        raise ZeroDivisionError
    assert list(tmp_path.iterdir()) == []
    with locked_directory(tmp_path / "run-1") as directory:
        (directory / LOCK).unlink()
        directory.rename(tmp_path / "release")
    assert [path.name for path in tmp_path.rglob("*")] == ["release"]


def test_what_is_there_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    with pytest.raises(FileExistsError), locked_directory(tmp_path / "run-1"):
        pass
    assert (tmp_path / "run-1").is_dir()


def test_the_directory_of_a_killed_run_is_removed_at_once(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path / "run-1")], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        assert remove_dead(tmp_path, "run-*") == 0
        process.kill()
    assert (tmp_path / "run-1" / "values").exists()
    assert remove_dead(tmp_path, "other-*") == 0
    assert remove_dead(tmp_path, "run-*") == 1
    assert list(tmp_path.iterdir()) == []


def test_a_directory_without_a_lock_has_a_minute_to_get_one(tmp_path: Path) -> None:
    for name in ("run-new", "run-old"):
        (tmp_path / name).mkdir()
    aged(tmp_path / "run-old", 61)
    assert remove_dead(tmp_path, "run-*") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run-new"]


def test_links_files_and_directories_of_others_are_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "values").write_text("precious")
    (outside / LOCK).touch()
    parent = tmp_path / "parent"
    parent.mkdir()
    (parent / "run-link").symlink_to(outside)
    (parent / "run-file").touch()
    dead = parent / "run-dead"
    dead.mkdir()
    (dead / "link").symlink_to(outside)
    (dead / LOCK).touch()
    linked = parent / "run-linked-lock"
    linked.mkdir()
    (linked / LOCK).symlink_to(outside / LOCK)
    for path in (outside, linked):
        aged(path)
    with monkeypatch.context() as other:
        other.setattr(os, "geteuid", lambda: dead.stat().st_uid + 1)
        assert remove_dead(parent, "run-*") == 0
    assert remove_dead(parent, "run-*") == 1
    assert sorted(path.name for path in parent.iterdir()) == [
        "run-file",
        "run-link",
        "run-linked-lock",
    ]
    assert (outside / "values").read_text() == "precious"


def test_where_there_are_no_locks_nothing_is_taken_for_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with locked_directory(tmp_path / "run-1") as directory:
        aged(directory)
        assert remove_dead(tmp_path, "run-*") == 0
        assert directory.exists()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_removed_is_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run-1").mkdir()
    (tmp_path / "run-1" / LOCK).touch()

    def refused(*_: object) -> None:
        raise PermissionError(errno.EACCES, "a text of others")

    monkeypatch.setattr(shutil, "rmtree", refused)
    with pytest.warns(UserWarning, match=r"run-1' was left behind .*\(Permission denied\)"):
        assert remove_dead(tmp_path, "run-*") == 0


def test_a_parent_that_is_not_there(tmp_path: Path) -> None:
    assert remove_dead(tmp_path / "absent", "*") == 0
