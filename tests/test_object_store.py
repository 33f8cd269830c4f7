"""Releases in stores where nothing is renamed: there as a whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import signal
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import dask
import pyarrow as pa
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from s3_server import SECRET, Store

from sdc_dask import SdcError
from sdc_dask.release import object_store
from sdc_dask.release.manifest import NAME, Manifest, ReleasedFile
from sdc_dask.release.object_store import (
    STARTED,
    Publication,
    Staging,
    check_store_target,
    digest_of,
    leftovers,
    manifest_of,
    objects_of,
    published,
)
from sdc_dask.release.places import Place
from sdc_dask.release.processes import Process
from sdc_dask.release.signals import stoppable

pytest_plugins = ["s3_server"]


class Files:
    """Files of a run, as workers write them."""

    def __init__(self, folder: Path, run: str, count: int = 3, repeats: int = 1_000) -> None:
        folder.mkdir(exist_ok=True)
        self.paths = {f"part-{run}-{j}.parquet": folder / f"{run}-{j}" for j in range(count)}
        for j, (name, path) in enumerate(self.paths.items()):
            path.write_bytes(name.encode() * (j + 1) * repeats)
        self.files = [
            ReleasedFile(
                name, 1, path.stat().st_size, hashlib.sha256(path.read_bytes()).hexdigest()
            )
            for name, path in self.paths.items()
        ]
        self.manifest = Manifest.of(self.files, pa.schema([("x", pa.int64())]), [], [])
        self.text = self.manifest.text()
        self.sizes = {file.name: file.size for file in self.files}

    def send(self, staging: Staging) -> None:
        for file in self.files:
            staging.send(str(self.paths[file.name]), file.name, file.sha256)

    def publish(self, target: Place, replace: bool = False) -> None:
        with published(target, replace) as publication:
            self.send(pickle.loads(pickle.dumps(publication.staging)))
            publication.commit(self.manifest)

    def released(self, name: str = "release") -> dict[str, bytes]:
        """Return what a store with this release has."""
        contents = {f"{name}/{each}": path.read_bytes() for each, path in self.paths.items()}
        return contents | {f"{name}/{NAME}": self.text.encode()}


@pytest.fixture
def first(tmp_path: Path) -> Files:
    return Files(tmp_path / "files", "first")


@pytest.fixture
def second(tmp_path: Path) -> Files:
    return Files(tmp_path / "files", "second", 2)


def refusal(error: type[Exception], call: Callable[..., Any], *args: Any) -> str:
    with pytest.raises(error) as caught:
        call(*args)
    assert isinstance(caught.value, SdcError)
    assert SECRET not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# What is published


def test_a_release_is_there_as_a_whole(store: Store, first: Files) -> None:
    target = store.place("release")
    check_store_target(target, False)
    first.publish(target)
    assert store.contents() == first.released()
    assert manifest_of(target).files == tuple(first.files)
    assert objects_of(target) == first.sizes | {NAME: len(first.text.encode())}
    assert [digest_of(target / file.name) for file in first.files] == [
        file.sha256 for file in first.files
    ]


def test_there_is_no_release_before_the_commit(store: Store, first: Files) -> None:
    target = store.place("release")
    with published(target, False) as publication:
        first.send(publication.staging)
        assert objects_of(target) == {}
        assert len(store.contents()) == len(first.files) + 1
        with pytest.raises(FileNotFoundError, match="no release of sdc_dask"):
            manifest_of(target)
    assert store.contents() == {}  # it was never committed


def test_a_file_is_larger_than_a_block(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "BLOCK_BYTES", 5 * 2**20)
    files = Files(tmp_path / "files", "large", 1, repeats=600_000)
    assert sum(files.sizes.values()) > 10 * 2**20
    with published(store.place("release"), False) as publication:
        files.send(publication.staging)
        files.send(publication.staging)  # a task may run twice
        publication.commit(files.manifest)
    assert store.contents() == files.released()


def test_workers_send_files(s3: Store, first: Files, scheduler: str) -> None:
    target = s3.place("release")
    with published(target, False) as publication:
        dask.compute(
            dask.delayed(publication.staging.send)(str(first.paths[file.name]), file.name, digest)
            for file in first.files
            for digest in [file.sha256]
        )
        publication.commit(first.manifest)
    assert s3.contents() == first.released()


# What is refused


def test_only_a_release_is_replaced(store: Store, first: Files) -> None:
    target = store.place("release")
    first.publish(target)
    assert "exists: choose another name" in refusal(
        FileExistsError, check_store_target, target, False
    )
    check_store_target(target, True)
    stranger = target / "notes.txt"
    stranger.fs.pipe_file(stranger.path, b"mine")
    text = refusal(FileExistsError, check_store_target, target, True)
    assert "a prefix with other objects (1), and only a release is replaced" in text
    before = store.contents()
    refusal(FileExistsError, first.publish, target, True)
    assert store.contents() == before
    manifest = target / NAME
    manifest.fs.pipe_file(manifest.path, first.text.replace("first", "other").encode())
    text = refusal(FileExistsError, check_store_target, target, True)
    assert f"a prefix without a whole {NAME}" in text
    manifest.fs.pipe_file(manifest.path, b"\xff\xfe")
    assert "of another kind" in refusal(ValueError, manifest_of, target)
    assert "is an object" in refusal(FileExistsError, check_store_target, stranger, True)


def test_a_bucket_is_no_target(s3: Store) -> None:
    bucket = Place.of("s3://bucket", s3.options)
    text = refusal(ValueError, check_store_target, bucket, False)
    assert "name a prefix in it, such as 's3://bucket/release'" in text


def test_a_store_that_refuses_says_why(s3: Store, first: Files) -> None:
    wrong = Store(s3.url, s3.options | {"secret": "another-long-secret"})
    text = refusal(RuntimeError, first.publish, wrong.place("release"))
    assert "cannot be reached (PermissionError" in text
    nowhere = Place.of("s3://no-such-bucket/release", s3.options)
    assert "does not exist" in refusal(FileNotFoundError, first.publish, nowhere)


# Replacing


def test_a_release_is_replaced_when_the_new_one_is_committed(
    store: Store, first: Files, second: Files
) -> None:
    target = store.place("release")
    first.publish(target)
    with published(target, True) as publication:
        second.send(publication.staging)
        assert objects_of(target).keys() == first.sizes.keys() | {NAME}
        publication.commit(second.manifest)
    assert store.contents() == second.released()


def test_names_that_are_there_are_not_written_over(store: Store, first: Files) -> None:
    target = store.place("release")
    first.publish(target)
    before = store.contents()
    text = refusal(FileExistsError, first.publish, target, True)
    assert "has 3 objects of the same names, such as 'part-first-0.parquet'" in text
    assert store.contents() == before


# Failures: nothing is left, and an old release stays


class Failure(Exception):
    """What a test makes happen."""


def _fails(*_args: Any, **_options: Any) -> None:
    raise Failure


def _is_interrupted(*_args: Any, **_options: Any) -> None:
    raise KeyboardInterrupt


def _second_time(function: Callable[..., Any], then: Callable[..., Any]) -> Callable[..., Any]:
    calls = []

    def call(*args: Any, **options: Any) -> Any:
        calls.append(args)
        return then() if len(calls) == 2 else function(*args, **options)

    return call


@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
@pytest.mark.parametrize("moment", ["_copy", "_put_if_unchanged", "digest_of"])
@pytest.mark.parametrize("event", [_fails, _is_interrupted], ids=["failure", "interrupt"])
def test_what_fails_leaves_nothing(
    store: Store,
    first: Files,
    second: Files,
    monkeypatch: pytest.MonkeyPatch,
    replaces: bool,
    moment: str,
    event: Callable[..., Any],
) -> None:
    target = store.place("release")
    if replaces:
        first.publish(target)
    before = store.contents()
    function = getattr(object_store, moment)
    happens = event if moment == "_put_if_unchanged" else _second_time(function, event)
    monkeypatch.setattr(object_store, moment, happens)
    with pytest.raises((Failure, SdcError, KeyboardInterrupt)):
        second.publish(target, replaces)
    assert store.contents() == before


def test_other_contents_than_sent_are_an_error(
    store: Store, first: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(object_store, "digest_of", lambda place: "0" * 64)
    text = refusal(RuntimeError, first.publish, store.place("release"))
    assert "has other contents than the file that was sent" in text
    assert store.contents() == {}


@pytest.mark.parametrize("change", ["lost", "more", "cut"])
def test_other_objects_than_written_are_an_error(store: Store, first: Files, change: str) -> None:
    target = store.place("release")
    name = first.files[0].name
    with (
        pytest.raises(RuntimeError, match="not those that were written and checked"),
        published(target, False) as publication,
    ):
        first.send(publication.staging)
        place = publication.staging.place / ("more" if change == "more" else name)
        if change == "lost":
            place.fs.rm_file(place.path)
        else:
            place.fs.pipe_file(place.path, b"cut")
        publication.commit(first.manifest)
    assert store.contents() == {}


def test_a_task_of_a_run_that_has_ended_leaves_nothing(
    store: Store, first: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    with published(store.place("release"), False) as publication:
        late = publication.staging
        sent = object_store.digest_of

        def then_ends(place: Place) -> str:
            digest = sent(place)
            publication.clear()
            place.fs.pipe_file(place.path, b"late")
            return digest

        monkeypatch.setattr(object_store, "digest_of", then_ends)
        text = refusal(RuntimeError, first.send, late)
        assert "its run has ended" in text
        assert store.contents() == {}
        refusal(RuntimeError, first.send, late)
        assert store.contents() == {}


def test_a_release_stands_though_cleaning_up_fails(
    store: Store, first: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(place: Place) -> None:
        raise OSError(errno.EIO, "broken")

    with monkeypatch.context() as patch:
        patch.setattr(object_store, "_remove_one", broken)
        with pytest.warns(UserWarning, match="cleaning up failed"):
            first.publish(store.place("release"))
    assert store.contents().items() >= first.released().items()
    check_store_target(store.place("release"), True)
    (left,) = leftovers(store.place("release"))
    assert left.is_dead
    left.remove()
    assert store.contents() == first.released()


def test_an_answer_that_is_lost(
    store: Store, first: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = object_store._put_if_unchanged

    def without_answer(*args: Any) -> None:
        put(*args)
        raise OSError(errno.ECONNRESET, "reset")

    monkeypatch.setattr(object_store, "_put_if_unchanged", without_answer)
    first.publish(store.place("release"))
    assert store.contents() == first.released()


@pytest.mark.parametrize("moment", ["_copy", "_put_if_unchanged"])
def test_signals_stop_a_run_until_it_is_committed(
    store: Store, first: Files, moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    function = getattr(object_store, moment)

    def interrupted(*args: Any) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        function(*args)

    monkeypatch.setattr(object_store, moment, interrupted)
    with stoppable(releases=True) as stop:
        if moment == "_copy":
            with pytest.raises(KeyboardInterrupt):
                first.publish(store.place("release"))
        else:
            first.publish(store.place("release"))
    assert stop.published == (moment == "_put_if_unchanged")
    assert store.contents() == (first.released() if stop.published else {})


# Two runs


@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
def test_the_first_of_two_runs_wins(
    store: Store, tmp_path: Path, first: Files, second: Files, replaces: bool
) -> None:
    target = store.place("release")
    if replaces:
        Files(tmp_path / "files", "old").publish(target)
    with (
        pytest.raises(FileExistsError, match="another run released to") as caught,
        published(target, replaces) as slow,
    ):
        second.send(slow.staging)
        first.publish(target, replaces)
        slow.commit(second.manifest)
    assert isinstance(caught.value, SdcError)
    assert store.contents() == first.released()


@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
def test_runs_that_copy_at_the_same_time(
    memory: Store,
    tmp_path: Path,
    first: Files,
    second: Files,
    replaces: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = memory.place("release")
    if replaces:
        Files(tmp_path / "files", "old").publish(target)
    with published(target, replaces) as other:
        first.send(other.staging)
        put = Publication._put_manifest

        def after_the_other(self: Publication, content: bytes) -> None:
            monkeypatch.undo()
            other.commit(first.manifest)
            put(self, content)

        monkeypatch.setattr(Publication, "_put_manifest", after_the_other)
        text = refusal(FileExistsError, second.publish, target, replaces)
        assert "another run released to" in text
    assert memory.contents() == first.released()


class Conditional(MemoryFileSystem):
    """A store in memory that takes the conditions of S3, as its own does."""

    protocol = "s3"
    store: dict[str, Any] = {}  # noqa: RUF012
    pseudo_dirs: list[str] = [""]  # noqa: RUF012
    lock = threading.Lock()
    conditions: list[dict[str, Any]] = []  # noqa: RUF012
    knows_conditions = True

    def info(self, path: str, **options: Any) -> dict[str, Any]:
        found = super().info(path, **options)
        if found["type"] == "file":
            content = self.store[self._strip_protocol(path)].getvalue()
            found["ETag"] = f'"{hashlib.md5(content).hexdigest()}"'
        return found

    def pipe_file(self, path: str, value: bytes, mode: str = "overwrite", **more: Any) -> None:
        if path.endswith(NAME):
            self.conditions.append({"mode": mode} | more)
        if not self.knows_conditions and (more or mode == "create"):
            raise OSError(errno.ENOSYS, "A header you provided implies functionality")
        with self.lock:
            found = self.info(path)["ETag"] if self.exists(path) else None
            if (mode == "create" and found) or more.get("IfMatch", found) != found:
                raise OSError(errno.EINVAL, "At least one of the pre-conditions did not hold")
            super().pipe_file(path, value)

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return super()._strip_protocol(path.removeprefix("s3://"))


class ConditionalStore(Store):
    """A prefix in it."""

    def place(self, name: str) -> Place:
        return Place("s3", f"/bucket/{name}", Conditional())

    def contents(self) -> dict[str, bytes]:
        files = Conditional.store.items()
        return {path.removeprefix("/bucket/"): file.getvalue() for path, file in files}


@pytest.fixture
def conditional() -> Store:
    Conditional.store.clear()
    Conditional.conditions.clear()
    return ConditionalStore("s3://bucket", None)


@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
def test_a_manifest_that_came_after_the_last_look_is_not_written_over(
    conditional: Store,
    tmp_path: Path,
    first: Files,
    second: Files,
    replaces: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = conditional.place("release")
    if replaces:
        Files(tmp_path / "files", "old").publish(target)
    put = object_store._put_if_unchanged
    with published(target, replaces) as other:
        first.send(other.staging)

        def after_the_other(*args: Any) -> None:
            monkeypatch.undo()
            other.commit(first.manifest)
            put(*args)

        monkeypatch.setattr(object_store, "_put_if_unchanged", after_the_other)
        text = refusal(FileExistsError, second.publish, target, replaces)
        assert "another run released to" in text
    assert conditional.contents() == first.released()
    assert len(Conditional.conditions) == 2 + replaces
    expected = "IfMatch" if replaces else "mode"
    assert all(each.get(expected) != "overwrite" for each in Conditional.conditions[-2:])
    assert all(expected in each for each in Conditional.conditions[-2:])


def test_a_store_without_conditions(
    conditional: Store, first: Files, second: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Conditional, "knows_conditions", False)
    target = conditional.place("release")
    first.publish(target)
    second.publish(target, replace=True)
    assert conditional.contents() == second.released()


# Leftovers


def _die(publication: Publication) -> None:
    """Let a run end without a chance to clean up."""
    object.__setattr__(publication, "is_committed", True)


@pytest.mark.parametrize("moment", ["sent", "copied", "committed"])
@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
def test_leftovers_of_a_killed_run_are_found_and_removed(
    store: Store,
    first: Files,
    second: Files,
    moment: str,
    replaces: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = store.place("release")
    if replaces:
        first.publish(target)
    before = store.contents()
    with published(target, replaces) as publication:
        second.send(publication.staging)
        with monkeypatch.context() as patch:
            patch.setattr(Publication, "clear", lambda self: None)
            if moment == "copied":
                patch.setattr(Publication, "_put_manifest", _fails)
                with pytest.raises(Failure):
                    publication.commit(second.manifest)
            elif moment == "committed":
                publication.commit(second.manifest)
        _die(publication)
    assert len(store.contents()) > len(before)
    assert leftovers(store.place("other")) == []
    (left,) = leftovers(target)
    assert left.host
    assert left.is_dead
    with monkeypatch.context() as patch:
        patch.setattr(object_store, "_running", {left.staging.token})
        assert not left.is_dead
    assert left.started is not None
    assert datetime.now(UTC) - left.started < timedelta(days=1)
    left.remove()
    assert store.contents() == (second.released() if moment == "committed" else before)
    check_store_target(target, moment == "committed" or replaces)


def mark(staging: Staging, **changed: Any) -> None:
    """Write down a run as if it were another one."""
    values = {"started": datetime.now(UTC).isoformat(), "host": "h", "replaces": []} | changed
    place = staging.place / STARTED
    place.fs.pipe_file(place.path, json.dumps(values).encode())


def test_leftovers_are_told_by_their_age(store: Store) -> None:
    target = store.place("release")
    stagings = [Staging.of(target) for _ in range(3)]
    now = datetime.now(UTC)
    for staging, days in zip(stagings, (8, 20, 2), strict=True):
        mark(staging, started=(now - timedelta(days=days)).isoformat())
    assert [each.staging for each in leftovers(target)] == [stagings[j] for j in (1, 0, 2)]
    assert [each.is_dead for each in leftovers(target)] == [True, True, False]
    headless = Staging.of(target).place / "part"  # its run was killed when it cleaned up
    headless.fs.pipe_file(headless.path, b"part")
    assert [each.is_dead for each in leftovers(target)] == [True, True, True, False]
    for each in leftovers(target):
        each.remove()
    assert store.contents() == {}


def test_leftovers_are_told_by_their_process(memory: Store) -> None:
    target = memory.place("release")
    this = Process.this()
    assert this is not None
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        started = _started(process.pid)
        lives = replace(this, pid=process.pid, started=started)
        assert not lives.is_dead
        process.kill()
    of_others = [replace(lives, boot="other"), replace(lives, namespace="pid:[0]")]
    assert [each.is_dead for each in (lives, *of_others)] == [True, False, False]
    assert replace(this, started="1").is_dead  # its number was used again
    mark(Staging.of(target), process=asdict(lives))
    (left,) = leftovers(target)
    assert left.is_dead


def _started(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]


@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
def test_what_a_run_that_may_live_has_copied_goes_with_the_next_release(
    store: Store,
    tmp_path: Path,
    first: Files,
    second: Files,
    replaces: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    target = store.place("release")
    if replaces:
        Files(tmp_path / "files", "old").publish(target)
    with published(target, replaces) as publication:
        first.send(publication.staging)
        with monkeypatch.context() as patch:
            patch.setattr(Publication, "clear", lambda self: None)
            patch.setattr(Publication, "_put_manifest", _fails)
            with pytest.raises(Failure):
                publication.commit(first.manifest)
        _die(publication)
    mark(publication.staging, replaces=sorted(publication._replaced))
    second.publish(target, replaces)
    of_others = {name: content for name, content in store.contents().items() if ".partial/" in name}
    assert len(of_others) == len(first.files) + 1
    assert store.contents() == second.released() | of_others
    with pytest.raises(FileExistsError, match="exists: choose another name"):
        check_store_target(target, False)
    stranger = target / "notes.txt"
    stranger.fs.pipe_file(stranger.path, b"mine")
    text = refusal(FileExistsError, check_store_target, target, True)
    assert "other objects (1)" in text
    assert f"Another run (host 'h', since {datetime.now(UTC):%Y-}" in text
    assert f"writes under {publication.staging.place.url!r}, or was killed" in text
