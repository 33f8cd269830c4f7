"""A release says what it is, and can be looked at again by its files alone."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import dask
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, SdcError, cli, protect, verify
from sdc_dask.release import cluster
from sdc_dask.release.manifest import (
    NAME,
    Manifest,
    MatchPromise,
    Promise,
    ReleasedFile,
    file_digest,
)

COLUMNS = ["income", "tax"]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A release of several files, by two specs."""
    folder = tmp_path_factory.mktemp("made")
    with dask.config.set(scheduler="threads"):
        frame = sdc_dask.datasets.survey(3_000, npartitions=3, seed=4)
        frame.to_parquet(folder / "source", write_index=False)
        specs = [Microaggregation(COLUMNS, 5, by="region"), RankSwap(["age"], p=5)]
        protect(
            folder / "source",
            folder / "release",
            specs,
            drop="person",
            random_state=98765,
            keep="*",
            order="source",
        )
    return folder / "release"


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """A copy of it that may be spoiled."""
    return shutil.copytree(made, tmp_path / "release")


def test_a_release_that_nobody_touched(release: Path) -> None:
    found = verify(release)
    assert found.ok
    assert (found.rows, found.files, found.failed) == (3_000, 3, ())
    text = repr(found)
    for words in ("Verified", "3,000 rows", "SHA-256", "k = 5 in income, tax, region"):
        assert words in text
    assert json.dumps(found.to_dict())


def test_the_manifest_tells_what_the_files_hold(release: Path) -> None:
    manifest = Manifest.read(release)
    frame = pd.read_parquet(release)
    sizes = frame.groupby([*COLUMNS, "region"], observed=True).size()
    (promise,) = manifest.promises
    assert promise == Promise((*COLUMNS, "region"), 5, int(sizes.min()), len(sizes))
    assert list(manifest.schema) == list(frame.columns)
    assert manifest.rows == len(frame)
    for file in manifest.files:
        path = release / file.name
        assert (file.size, file.sha256) == (path.stat().st_size, file_digest(path))
        assert file.rows == pq.read_metadata(path).num_rows
    assert [sdc_dask.Spec.from_dict(each).kind for each in manifest.specs] == [
        "microaggregation",
        "rank_swap",
    ]
    assert manifest.versions["sdc_dask"] == sdc_dask.__version__


def test_nothing_internal_is_in_the_manifest(release: Path) -> None:
    text = (release / NAME).read_text(encoding="utf-8")
    # A seed, a dropped column, where the data came from, what was lost.
    for word in ("98765", "person", "source", '"sse"', "seconds", '"blocks"', str(release.parent)):
        assert word not in text


def _change_a_byte(release: Path) -> None:
    path = release / "part-000001.parquet"
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def _rewrite_with_other_values(release: Path) -> None:
    path = release / "part-000001.parquet"
    table = pq.read_table(path)
    pq.write_table(table.slice(1), path)


SPOILT: dict[str, tuple[Callable[[Path], object], str]] = {
    "a changed byte": (_change_a_byte, "'part-000001.parquet' has other contents"),
    "a file cut short": (
        lambda release: os.truncate(release / "part-000002.parquet", 100),
        "'part-000002.parquet' has 100 bytes",
    ),
    "a file less": (
        lambda release: (release / "part-000000.parquet").unlink(),
        "'part-000000.parquet' is missing",
    ),
    "a file more": (
        lambda release: shutil.copy(release / "part-000000.parquet", release / "part-9.parquet"),
        "1 entry is not in the manifest",
    ),
    "other rows": (_rewrite_with_other_values, "'part-000001.parquet' has"),
}


@pytest.mark.parametrize("what", SPOILT)
def test_what_was_spoilt_is_found(release: Path, what: str) -> None:
    spoil, says = SPOILT[what]
    spoil(release)
    found = verify(release)
    assert not found.ok
    assert any(says in text for text in found.failed), found.failed
    assert "NOT as released" in repr(found)


def test_a_file_that_is_a_link_is_found(release: Path) -> None:
    path = release / "part-000000.parquet"
    path.rename(release.parent / "elsewhere")
    path.symlink_to(release.parent / "elsewhere")
    assert any("is a link" in text for text in verify(release).failed)


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (lambda path: path.unlink(), "has no _manifest.json"),
        (lambda path: path.write_text("{"), "truncated or of another kind"),
        (lambda path: path.write_text("[]"), "checksum does not fit"),
        (
            lambda path: path.write_text(path.read_text().replace('"rows": 3000', '"rows": 3001')),
            "checksum does not fit",
        ),
        (
            lambda path: path.write_text(path.read_text().replace('"format": 1', '"format": 2')),
            "upgrade",
        ),
    ],
)
def test_without_a_whole_manifest_it_is_no_release(
    release: Path, spoil: Callable[[Path], object], says: str
) -> None:
    spoil(release / NAME)
    with pytest.raises(SdcError, match=says):
        verify(release)


def by_hand(folder: Path, values: list[float | None], promise: Promise | MatchPromise) -> Path:
    """Make a release whose manifest fits its files, whatever they hold."""
    folder.mkdir()
    table = pa.table({"x": values})
    path = folder / "part-000000.parquet"
    pq.write_table(table, path)
    file = ReleasedFile(path.name, len(values), path.stat().st_size, file_digest(path))
    promises, matches = ([promise], []) if isinstance(promise, Promise) else ([], [promise])
    Manifest.of([file], table.schema, [], promises, matches=matches).write(folder)
    return folder


@pytest.mark.parametrize(
    ("values", "promise", "ok"),
    [
        ([1.0, 1.0, 2.0, 2.0], Promise(("x",), 2, 2, 2), True),
        ([1.0, 1.0, 1.0, 2.0], Promise(("x",), 2, 2, 2), False),  # a class below k
        ([1.0, 1.0, 1.0, 2.0], Promise(("x",), 2, 1, 2), False),  # and the manifest says so
        ([1.0, 1.0, 1.0, 1.0], Promise(("x",), 2, 2, 2), False),  # others than were counted
        ([0.0, -0.0, 1.0, 1.0], Promise(("x",), 2, 2, 2), True),  # equal values are equal
        ([1.0, 1.0, 2.0, None], MatchPromise(("x",), 2, 2, 1), True),  # 2 and the missing one
        ([1.0, 1.0, 2.0, 3.0], MatchPromise(("x",), 2, 2, 1), False),
        ([1.0, 1.0, 2.0, 3.0], MatchPromise(("x",), 2, 1, 1), False),
        ([1.0, 1.0, None, None], MatchPromise(("x",), 2, 2, 1), False),
    ],
)
def test_k_is_counted_again(
    tmp_path: Path, values: list[float | None], promise: Promise | MatchPromise, ok: bool
) -> None:
    found = verify(by_hand(tmp_path / "release", values, promise))
    assert found.ok == ok
    assert any("k = 2 in x" in text for text in (found.checked if ok else found.failed))


def test_rows_and_schema_are_those_of_the_manifest(tmp_path: Path) -> None:
    release = by_hand(tmp_path / "release", [1.0, 1.0], Promise(("x",), 2, 2, 1))
    manifest = Manifest.read(release)
    for wrong, says in (
        ({"schema": {"x": "int64"}}, "other columns or types"),
        ({"rows": 3}, "the manifest says 3"),
        ({"files": (dataclasses.replace(manifest.files[0], rows=5),), "rows": 5}, "2 rows"),
    ):
        (release / NAME).unlink()
        dataclasses.replace(manifest, **wrong).write(release)
        assert any(says in text for text in verify(release).failed)


def test_what_is_not_there() -> None:
    with pytest.raises(SdcError, match="is no directory"):
        verify("nowhere")


def test_the_command_ends_with_what_was_found(
    release: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import contextlib

    monkeypatch.setattr(cluster, "local_cluster", lambda *_: contextlib.nullcontext())
    file = release.parent / "found.json"
    with dask.config.set(scheduler="threads"):
        assert cli.main(["verify", str(release), "--json", str(file)]) == 0
        assert "Verified: 3,000 rows" in capsys.readouterr().out
        assert json.loads(file.read_text())["failed"] == []
        _change_a_byte(release)
        assert cli.main(["verify", str(release)]) == 1
        shown = capsys.readouterr()
        assert "FAILED     file 'part-000001.parquet'" in shown.out
        assert "1 checks of the release failed" in shown.err
        (release / NAME).unlink()
        assert cli.main(["verify", str(release)]) == 1
        assert "is no release" in capsys.readouterr().err


# What is replaced


def test_only_a_release_is_replaced(release: Path) -> None:
    source = release.parent / "source.parquet"
    pd.DataFrame({"x": [1.0, 1.0, 2.0, 2.0]}).to_parquet(source)
    spec = Microaggregation(["x"], 2)
    (release / "notes.txt").write_text("mine")
    with pytest.raises(SdcError, match="other entries"):
        protect(source, release, spec, replace=True, keep="*")
    (release / "notes.txt").unlink()
    protect(source, release, spec, replace=True, keep="*")
    assert verify(release).ok
    (release / NAME).unlink()
    with pytest.raises(SdcError, match="without a whole _manifest"):
        protect(source, release, spec, replace=True, keep="*")
    assert (release / "part-000000.parquet").exists()
