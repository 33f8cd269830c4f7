"""A release from and to a store is the one from and to directories."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any

import dask
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pytest
from s3_server import Store

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, cli
from sdc_dask.job import Job
from sdc_dask.release import cluster, object_store
from sdc_dask.release.places import Place

pytest_plugins = ["s3_server"]

SPECS = [Microaggregation(["income", "tax"], 5, by="region"), RankSwap(["age"], 5)]


@pytest.fixture(scope="module")
def survey(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("source") / "survey"
    with dask.config.set(scheduler="threads"):
        sdc_dask.datasets.survey(1_500, npartitions=3, seed=2).to_parquet(folder, write_index=False)
    return folder


def table_of(url: str, store: Store) -> pa.Table:
    place = store.place(url)
    return ds.dataset(place.path, filesystem=place.fs, format="parquet").to_table()


def test_same_bits_from_and_to_a_store(
    survey: Path, s3: Store, tmp_path: Path, scheduler: str
) -> None:
    s3.fill(survey, "survey")
    options = {"keep": "*", "drop": "person", "random_state": 3, "order": "source"}
    local = sdc_dask.protect(survey, tmp_path / "release", SPECS, **options)
    url = f"{s3.url}/release"
    far = sdc_dask.protect(
        f"{s3.url}/survey", url, SPECS, storage_options=s3.options, scratch=tmp_path, **options
    )
    assert far.target == url
    assert (far.rows, far.sse, far.masked) == (local.rows, local.sse, local.masked)
    there = {name: content for name, content in s3.contents().items() if "release" in name}
    manifest = json.loads(there["release/_manifest.json"])
    named = [file["name"] for file in manifest["files"]]
    assert sorted(there) == sorted(["release/_manifest.json", *(f"release/{n}" for n in named)])
    for name, file in zip(named, sorted((tmp_path / "release").glob("*.parquet")), strict=True):
        assert there[f"release/{name}"] == file.read_bytes()
    assert sdc_dask.verify(url, storage_options=s3.options).ok
    # What waited is gone.
    assert [path.name for path in tmp_path.iterdir()] == ["release"]


def test_a_release_in_a_store_is_random_replaced_and_verified(
    survey: Path, s3: Store, tmp_path: Path
) -> None:
    options = {"keep": "*", "drop": "person", "storage_options": s3.options, "scratch": tmp_path}
    url = f"{s3.url}/release"
    sdc_dask.protect(survey, url, SPECS, random_state=1, **options)
    first = s3.contents()
    with pytest.raises(FileExistsError, match="exists: choose another name"):
        sdc_dask.protect(survey, url, SPECS, **options)
    assert s3.contents() == first
    sdc_dask.protect(survey, url, SPECS, random_state=1, replace=True, **options)
    second = s3.contents()
    assert len(second) == len(first)
    assert not (set(first) & set(second)) - {"release/_manifest.json"}
    assert sdc_dask.verify(url, storage_options=s3.options).ok
    released = table_of("release", s3).to_pandas()
    assert len(released) == 1_500
    assert released.groupby(["income", "tax", "region"], dropna=False).size().min() >= 5
    (name,) = (name for name in second if name.endswith(".parquet"))
    place = s3.place(name)
    place.fs.pipe_file(place.path, second[name][:-1])
    assert not sdc_dask.verify(url, storage_options=s3.options).ok


def test_what_fails_leaves_nothing_in_a_store(
    survey: Path, s3: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_args: object) -> None:
        raise RuntimeError("no k")

    monkeypatch.setattr(sdc_dask.release.protect, "_verify", fail)
    with pytest.raises(RuntimeError, match="no k"):
        sdc_dask.protect(
            survey, f"{s3.url}/out", SPECS, keep="*", storage_options=s3.options, scratch=tmp_path
        )
    assert s3.contents() == {}
    assert list(tmp_path.iterdir()) == []


class Killed(BaseException):
    """Ends a run that has no chance to clean up."""


@pytest.mark.parametrize("of_this_machine", [True, False], ids=["here", "elsewhere"])
@pytest.mark.parametrize("replaces", [False, True], ids=["new", "replaces"])
@pytest.mark.parametrize("moment", ["_copy", "_put_manifest", "_clear"])
def test_a_run_that_was_killed_in_the_commit_blocks_no_other(
    survey: Path,
    memory: Store,
    moment: str,
    replaces: bool,
    of_this_machine: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    url = f"{memory.url}/release"

    def protect(replace: bool) -> None:
        with dask.config.set(scheduler="sync"):
            sdc_dask.protect(survey, url, SPECS[1], keep="*", drop="person", replace=replace)

    if replaces:
        protect(False)
    copy = object_store._copy

    def killed(*_args: object) -> None:
        raise Killed

    def copied(*args: Place) -> None:
        copy(*args)
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(object_store.Publication, "clear", lambda self: None)
        if moment == "_copy":
            patch.setattr(object_store, "_copy", copied)
        elif moment == "_put_manifest":
            patch.setattr(object_store.Publication, "_put_manifest", killed)
        else:
            patch.setattr(object_store.Publication, "clear", killed)
        with pytest.raises(Killed):
            protect(replaces)
    (left,) = object_store.leftovers(memory.place("release"))
    if not of_this_machine:
        started = left.staging.place / object_store.STARTED
        values = json.loads(started.fs.cat_file(started.path))
        values["process"]["boot"] = "another"
        started.fs.pipe_file(started.path, json.dumps(values).encode())
    if moment == "_clear" and replaces:
        failed = sdc_dask.verify(url).failed  # what was replaced is there, too
        assert "1 entry is not in the manifest" in failed[0]
        assert "goes when another run releases there" in failed[1]
    warned = contextlib.nullcontext() if of_this_machine else pytest.warns(match="or was killed")
    with warned:
        protect(replaces or moment == "_clear")
    assert sdc_dask.verify(url).ok
    staged = [name for name in memory.contents() if ".partial/" in name]
    assert bool(staged) != of_this_machine


def test_the_command_with_a_store(
    survey: Path, s3: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "local_cluster", lambda *_: contextlib.nullcontext())
    # What the fixture says in nested options.
    monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")
    monkeypatch.setenv("AWS_RESPONSE_CHECKSUM_VALIDATION", "when_required")
    assert s3.options is not None
    pairs = [f"{name}={s3.options[name]}" for name in ("endpoint_url", "key", "secret")]
    stores = [text for pair in pairs for text in ("--storage-option", pair)]
    asked = ["--columns", "income,tax", "-k", "5", "--keep", "*", "--scratch", str(tmp_path)]
    url = f"{s3.url}/release"
    assert cli.main(["protect", str(survey), url, *asked, *stores, "--quiet"]) == 0
    assert cli.main(["verify", url, *stores]) == 0
    assert cli.main(["protect", str(survey), url, *asked, *stores, "--quiet"]) == 1
    of_target = [text.replace("--storage-option", "--target-option") for text in stores]
    command = ["protect", str(survey), url, *asked, *of_target, "--quiet"]
    assert cli.main([*command, "--replace"]) == 0


def test_source_and_target_are_reached_in_their_own_ways(
    survey: Path, s3: Store, memory: Store, tmp_path: Path
) -> None:
    s3.fill(survey, "survey")
    options: dict[str, Any] = {"keep": "*", "drop": "person", "scratch": tmp_path}
    there, back = f"{memory.url}/there", f"{s3.url}/back"
    sdc_dask.protect(
        f"{s3.url}/survey",
        there,
        SPECS[1],
        storage_options=s3.options,
        target_options={},
        **options,
    )
    job = Job(there, back, SPECS[1], keep=["*"], scratch=tmp_path)
    job.check(target_options=s3.options)
    job.run(target_options=s3.options)
    assert sdc_dask.verify(there).ok
    assert sdc_dask.verify(back, storage_options=s3.options).ok
    with pytest.raises(ValueError, match="none besides the target, which has options of its own"):
        sdc_dask.protect(
            survey, back, SPECS, storage_options={"key": "x"}, target_options={}, **options
        )


def test_options_of_stores_without_one(survey: Path, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="storage_options are for URLs"):
        sdc_dask.protect(
            survey, tmp_path / "out", SPECS, keep="*", storage_options={"key": "secret"}
        )
    with pytest.raises(FileNotFoundError, match="is no directory: make it"):
        sdc_dask.protect(survey, tmp_path / "out", SPECS, keep="*", scratch=tmp_path / "none")


# Sources as people have them


def test_directories_casts_and_lists(survey: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(survey)
    frame["region"] = frame["region"].astype(str)
    table = pa.Table.from_pandas(frame, preserve_index=False)
    income = table.schema.get_field_index("income")
    decimals = table.column("income").cast(pa.decimal128(20, 2))
    table = table.set_column(income, "income", decimals)
    ds.write_dataset(
        table,
        tmp_path / "hive",
        format="parquet",
        partitioning=["region"],
        partitioning_flavor="hive",
    )
    spec = Microaggregation(["income", "tax"], 5, by="region")
    with pytest.raises(TypeError, match="cast"):
        sdc_dask.protect(tmp_path / "hive", tmp_path / "out", spec, keep="*")
    summary = sdc_dask.protect(
        sorted((tmp_path / "hive").iterdir()),
        tmp_path / "out",
        spec,
        keep="*",
        cast={"income": "float64"},
    )
    assert summary.rows == 1_500
    released = pd.read_parquet(tmp_path / "out")
    assert released["region"].value_counts().to_dict() == frame["region"].value_counts().to_dict()
    assert released.groupby(["income", "tax", "region"], dropna=False).size().min() >= 5


def test_files_that_differ_are_read_as_one_and_it_is_said(survey: Path, tmp_path: Path) -> None:
    frame = pd.read_parquet(survey)[["income", "age", "hours"]]
    frame["age"] = frame["age"].astype("int32")
    frame.iloc[:700].to_parquet(tmp_path / "1.parquet", index=False)
    other = frame.iloc[700:].astype({"age": "int64"})[["hours", "income", "age"]]
    other.to_parquet(tmp_path / "2.parquet", index=False)
    spec = Microaggregation(["income"], 5)
    with pytest.warns(UserWarning, match="files of the source differ.*'age'"):
        sdc_dask.protect(tmp_path / "*.parquet", tmp_path / "out", spec, keep="*", order="source")
    released = pd.read_parquet(tmp_path / "out")
    pd.testing.assert_series_equal(released["age"], frame["age"].astype("int64"), check_index=False)
