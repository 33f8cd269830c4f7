"""protect: from parquet to parquet, complete and checked, or nothing."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from dask.callbacks import Callback

import sdc_dask
from sdc_dask import Microaggregation
from sdc_dask.engine import masks
from sdc_dask.engine.unique import Uniqueness
from sdc_dask.errors import UniqueAdvice
from sdc_dask.kernels import groups
from sdc_dask.masking import centroids
from sdc_dask.release import protect as protect_module
from sdc_dask.release import source as source_module
from sdc_dask.release import target as target_module
from sdc_dask.release import write
from sdc_dask.release.cluster import local_cluster

COLUMNS = ["income", "tax", "wealth", "age"]


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A survey of six files."""
    path = tmp_path / "survey"
    sdc_dask.datasets.survey(6_000, npartitions=6).to_parquet(path, write_index=False)
    return path


def beside(path: Path) -> list[str]:
    """All names in the folder of a path, hidden ones too."""
    return sorted(each.name for each in path.parent.iterdir())


def refuse(source: Path) -> str:
    """Protect a source that is spoiled on the way: return what is said, and see nothing left."""
    # In this thread, where what a test has patched is seen.
    with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError) as caught:
        sdc_dask.protect(
            source, source.with_name("release"), Microaggregation(COLUMNS, 5), keep="*"
        )
    assert beside(source) == [source.name]
    return str(caught.value)


def test_files_hold_what_the_accessor_returns(scheduler: str, survey: Path) -> None:
    target = survey.with_name("release")
    summary = sdc_dask.protect(
        survey,
        target,
        Microaggregation(COLUMNS, 5, by="region"),
        drop="person",
        keep="*",
        order="source",
    )
    lazy = dd.read_parquet(survey)
    expected = lazy.sdc.microaggregate(COLUMNS, 5, by="region").compute().drop(columns="person")
    result = dd.read_parquet(target).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    assert beside(target) == ["release", "survey"]
    original = lazy.compute()
    assert summary.sse == original.sdc.sse(expected, COLUMNS)
    assert summary.anonymity[0] == expected.sdc.anonymity([*COLUMNS, "region"], k=5)
    assert (summary.rows, summary.files) == (6_000, 6)
    assert summary.kept == tuple(name for name in expected.columns if name not in COLUMNS)
    assert summary.dropped == ("person",)
    assert json.dumps(summary.to_dict())
    for words in ("6,000 rows", "5 reached", "SSE / SST", "income", "unmasked   region", "plan"):
        assert words in repr(summary)


@pytest.mark.long_on_cluster
def test_sets_and_missing_cells(scheduler: str, survey: Path) -> None:
    target = survey.with_name("release")
    sets = [["income", "tax"], ["rent", "wealth"]]
    summary = sdc_dask.protect(
        survey, target, Microaggregation(sets, 4, missing="separate"), keep="*", order="source"
    )
    lazy = dd.read_parquet(survey)
    expected = lazy.sdc.microaggregate(sets, 4, missing="separate").compute()
    pd.testing.assert_frame_equal(dd.read_parquet(target).compute(), expected, check_exact=True)
    assert [each.k_min >= 4 for each in summary.anonymity] == [True, True]
    assert [each.columns for each in summary.masked] == [("income", "tax"), ("rent", "wealth")]
    together = expected.sdc.anonymity(["income", "tax", "rent", "wealth"])
    assert summary.joint == together
    assert together.k_min < 4
    assert "k holds in each set of columns" in repr(summary)


def test_one_file_with_many_row_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "PIECE_BYTES", 20_000)
    frame = sdc_dask.datasets.uniform(5_000, 2).compute()
    frame.to_parquet(tmp_path / "one.parquet", row_group_size=500, index=False)
    summary = sdc_dask.protect(
        tmp_path / "one.parquet",
        tmp_path / "out",
        Microaggregation(["x0", "x1"], 3),
        keep="*",
        order="source",
    )
    assert summary.files > 2
    result = pd.concat(
        pd.read_parquet(file) for file in sorted((tmp_path / "out").glob("*.parquet"))
    )
    expected = frame.sdc.microaggregate(["x0", "x1"], 3)
    np.testing.assert_array_equal(result.to_numpy(), expected.to_numpy())


def test_every_kind_of_column_is_untouched(tmp_path: Path) -> None:
    n = 40
    rng = np.random.default_rng(0)
    table = pa.table(
        {
            "x": rng.normal(size=n),
            "single": pa.array(rng.normal(size=n), pa.float32()),
            "whole": pa.array([None if i % 10 == 0 else i for i in range(n)], pa.int64()),
            "nan": pa.array([np.nan, None, 1.0, 0.0] * 10, pa.float64()),
            "list": pa.array([[1.5, np.nan], None, [], [2.0]] * 10),
            "struct": pa.array([{"a": i, "b": str(i)} for i in range(n)]),
            "decimal": pa.array([None, 1, 2, 3] * 10).cast(pa.decimal128(24, 2)),
            "date": pa.array(range(n), pa.date32()),
            "instant": pa.array(range(n), pa.timestamp("ns", tz="Europe/Madrid")),
            "binary": pa.array([bytes([i]) for i in range(n)]),
            "code": pa.array(["u", "v", None, "u"] * 10).dictionary_encode(),
        }
    )
    pq.write_table(table, tmp_path / "in.parquet")
    sdc_dask.protect(
        tmp_path / "in.parquet",
        tmp_path / "out",
        Microaggregation(["x", "single"], 4),
        keep="*",
        order="source",
    )
    result = pq.read_table(tmp_path / "out")
    assert result.schema.names == table.schema.names
    for name in table.schema.names:
        assert result.schema.field(name).type == table.schema.field(name).type
        if name not in ("x", "single"):
            assert repr(result[name].to_pylist()) == repr(table[name].to_pylist())
    assert result.select(["x", "single"]).to_pandas().value_counts().min() >= 4


def footer(file: Path) -> bytes:
    """Return what readers see of a footer: a schema is in it as base64."""
    metadata = pq.read_metadata(file)
    texts = dict(metadata.metadata or {})
    schema = base64.b64decode(texts.pop(b"ARROW:schema", b""))
    return schema + repr(texts).encode() + str(metadata.to_dict()).encode()


def test_pandas_metadata_keeps_dtypes_and_nothing_else(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {"x": pd.array(range(30), "Int64"), "n": pd.array([1, None, 3] * 10, "Int64")},
        index=pd.Index([f"canary {i}" for i in range(30)], name="person"),
    )
    table = pa.Table.from_pandas(frame)
    pandas = json.loads(table.schema.metadata[b"pandas"])
    pandas |= {"creator": {"library": "canary", "version": "canary"}, "canary": 1}
    pandas["pandas_version"] = "canary"
    pandas["attributes"] = {"secret": "canary"}
    for column in pandas["columns"]:
        column |= {"metadata": {"note": "canary"}, "canary": 1}
    pandas["columns"].append(pandas["columns"][0] | {"field_name": "canary"})
    metadata = {b"pandas": json.dumps(pandas).encode(), b"canary": b"canary"}
    pq.write_table(table.replace_schema_metadata(metadata), tmp_path / "in.parquet")
    sdc_dask.protect(
        tmp_path / "in.parquet",
        tmp_path / "out",
        Microaggregation(["x"], 3),
        drop="person",
        keep="*",
    )
    (file,) = (tmp_path / "out").glob("*.parquet")
    assert b"canary" not in file.read_bytes() + footer(file)
    result = pd.read_parquet(file)
    assert result.dtypes.astype(str).to_dict() == {"x": "Float64", "n": "Int64"}


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"columns": 5}', '{"columns": [{}]}', '{"columns": [5]}']
)
def test_pandas_metadata_that_is_none(tmp_path: Path, text: str) -> None:
    table = pa.table({"x": np.arange(9.0)}).replace_schema_metadata({b"pandas": text.encode()})
    pq.write_table(table, tmp_path / "in.parquet")
    sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", Microaggregation(["x"], 3))
    (file,) = (tmp_path / "out").glob("*.parquet")
    assert b"pandas" not in (pq.read_schema(file).metadata or {})


def test_an_index_without_a_name_is_not_released(tmp_path: Path) -> None:
    frame = sdc_dask.datasets.uniform(500, 2)
    frame.to_parquet(tmp_path / "dask")
    frame.compute().sample(frac=1.0, random_state=0).to_parquet(tmp_path / "pandas.parquet")
    for name in ("dask", "pandas.parquet"):
        summary = sdc_dask.protect(
            tmp_path / name, tmp_path / "out", Microaggregation(["x0"], 3), replace=True, keep="*"
        )
        assert pq.read_table(tmp_path / "out").column_names == ["x0", "x1"]
        assert len(summary.dropped) == 1


def fail(*_args: object, **_kwargs: object) -> None:
    raise OSError("no space left")


def test_a_failure_leaves_nothing(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = survey.with_name("release")
    with dask.config.set(scheduler="sync"):
        for module, name, error, text in (
            (write.pq, "write_table", RuntimeError, "a task failed: OSError"),
            (protect_module, "_verify", OSError, "no space left"),
        ):
            with monkeypatch.context() as patch:
                patch.setattr(module, name, fail)
                with pytest.raises(error, match=text):
                    sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 5), keep="*")
            assert beside(target) == ["survey"]


def test_a_failed_replacement_keeps_the_old_target(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = survey.with_name("release")
    sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 5), keep="*")
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    with monkeypatch.context() as patch, dask.config.set(scheduler="sync"):
        patch.setattr(write.pq, "write_table", fail)
        with pytest.raises(RuntimeError, match="a task failed: OSError"):
            sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 6), replace=True, keep="*")
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before
    summary = sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 6), replace=True, keep="*")
    assert summary.anonymity[0].k_min >= 6
    assert beside(target) == ["release", "survey"]


def test_a_group_below_k_is_found_on_the_files(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def spoil(values: np.ndarray, labels: np.ndarray) -> None:
        groups.replace_by_centroids(values, labels)
        values[0, 0] += 1.0

    monkeypatch.setattr(centroids, "replace_by_centroids", spoil)
    assert re.search(r"a class of 1 equal records .* fewer than k=5", refuse(survey))


def test_a_lost_row_is_found(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = masks.mask_sorted

    def lose(*args: object) -> tuple[np.ndarray, np.ndarray]:
        rows, values = real(*args)
        return rows[1:], values[1:]

    monkeypatch.setattr(masks, "mask_sorted", lose)
    assert "rows were lost" in refuse(survey)


@pytest.mark.parametrize("column", ["sex", "income", "interview"])
def test_a_file_that_reads_differently_is_found(
    survey: Path, monkeypatch: pytest.MonkeyPatch, column: str
) -> None:
    real = pq.write_table

    def swap(table: pa.Table, path: str, **options: object) -> None:
        place = table.column_names.index(column)
        rolled = pa.chunked_array(
            [*table[column].slice(1).chunks, *table[column].slice(0, 1).chunks]
        )
        real(table.set_column(place, table.schema.field(column), rolled), path, **options)

    monkeypatch.setattr(write.pq, "write_table", swap)
    assert re.search(f"column '{column}' .* was not read back as written", refuse(survey))


def test_a_lost_file_is_found(survey: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = target_module._complete

    def lose(directory: Path, *args: object) -> None:
        next(iter(directory.glob("*.parquet"))).unlink()
        real(directory, *args)

    monkeypatch.setattr(target_module, "_complete", lose)
    assert "not those that were written" in refuse(survey)


def test_the_hidden_directory_is_closed_to_others(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    modes = []
    real = target_module._complete

    def look(directory: Path, *args: object) -> None:
        hidden = [path for path in directory.parent.iterdir() if path.name.startswith(".")]
        modes.extend(path.stat().st_mode & 0o777 for path in hidden if path.is_dir())
        real(directory, *args)

    monkeypatch.setattr(target_module, "_complete", look)
    sdc_dask.protect(survey, survey.with_name("release"), Microaggregation(COLUMNS, 5), keep="*")
    assert modes == [0o700, 0o700]


def test_pages_of_files_have_checksums(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(write, "_GROUP_ROWS", 100)
    frame = sdc_dask.datasets.uniform(300, 1).compute()
    frame["kind"] = pd.Categorical(["a", "b", "c"] * 100)
    frame["text"] = "same"
    frame.to_parquet(tmp_path / "in.parquet")
    spec = Microaggregation(["x0"], 3)
    sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")
    (file,) = (tmp_path / "out").glob("*.parquet")
    whole, metadata = file.read_bytes(), pq.read_metadata(file)
    assert (metadata.num_row_groups, metadata.num_columns) == (3, 3)
    for group in range(3):
        for column in range(3):
            chunk = metadata.row_group(group).column(column)
            content = bytearray(whole)
            start = chunk.dictionary_page_offset or chunk.data_page_offset
            content[start + chunk.total_compressed_size - 1] ^= 1  # the last byte of a page
            file.write_bytes(content)
            with (
                pq.ParquetFile(file, page_checksum_verification=True) as opened,
                pytest.raises(OSError, match="CRC checksum"),
            ):
                opened.read()


def test_names_of_tasks_and_of_what_waits_hold_no_values(tmp_path: Path) -> None:
    frame = pd.DataFrame(
        {
            "x": [987_654_321.5, 123_454_321.25] * 100,
            "age": [7_777_711, 7_777_722] * 100,
            "text": pd.Series(["canaryone", "canarytwo"] * 100),
            "kind": pd.Categorical(["canarythree", "canaryfour"] * 100),
            "by": ["canaryfive", "canarysix"] * 100,
            "unit": [f"canary{i}" for i in range(200)],
            "key": ["canaryseven", "canaryeight"] * 100,
        }
    )
    frame.to_parquet(tmp_path / "in.parquet", row_group_size=50)
    specs = [
        Microaggregation(["x", "kind"], 3, by="by", unit="unit", nominal=["kind"]),
        sdc_dask.RankSwap(["age", "text"], p=5),
        sdc_dask.Suppress(["key"], k=2),
    ]
    seen: set[str] = set()

    class Look(Callback):
        def _pretask(self, key: object, _dask: object, _state: object) -> None:
            seen.add(str(key))
            seen.update(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*"))

    with dask.config.set(scheduler="sync"), Look():
        sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", specs, drop="unit")
    assert len(seen) > 50
    assert any(".work/" in name for name in seen)
    canaries = ("canary", "987654321", "123454321", "7777711", "7777722")
    assert not [name for name in seen if any(each in name for each in canaries)]


def test_directories_of_others_in_scratch_stay(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    of_others = ["sdc-dask-results", f"sdc-dask-{'0' * 31}", f"sdc-dask-{'0' * 32}-copy"]
    dead = f"sdc-dask-{'0' * 32}"
    for name in (*of_others, dead):
        (scratch / name).mkdir()
        (scratch / name / "figures.csv").write_text("mine")
        os.utime(scratch / name, (0, 0))
    sdc_dask.datasets.uniform(100, 1).to_parquet(tmp_path / "in")
    spec = Microaggregation(["x0"], 3)
    sdc_dask.protect(tmp_path / "in", tmp_path / "out", spec, scratch=scratch)
    assert sorted(each.name for each in scratch.iterdir()) == sorted(of_others)
    assert all((scratch / name / "figures.csv").exists() for name in of_others)


def test_a_local_cluster_listens_on_loopback_only_and_leaves_no_files() -> None:
    with local_cluster(1, "1GiB") as client:
        scratch = client.run(lambda dask_worker: dask_worker.local_directory)
        (folder,) = (Path(path) for path in scratch.values())
        assert folder.exists()
        processes = [psutil.Process(), *psutil.Process().children(recursive=True)]
        addresses = {
            connection.laddr.ip
            for process in processes
            for connection in process.net_connections(kind="tcp")
            if connection.status == psutil.CONN_LISTEN
        }
    assert addresses == {"127.0.0.1"}
    assert not folder.exists()


def test_progress_is_shown_when_asked_for(
    survey: Path, capsys: pytest.CaptureFixture[str], smallest_class: Callable[..., int]
) -> None:
    sdc_dask.protect(
        survey, survey.with_name("release"), Microaggregation(COLUMNS, 5), progress=True, keep="*"
    )
    shown = capsys.readouterr()
    assert "Scanning the data and planning" in shown.err
    assert "100%" in shown.err
    assert shown.out == ""
    sdc_dask.protect(
        survey, survey.with_name("quiet"), Microaggregation(COLUMNS, 5), progress=False, keep="*"
    )
    assert capsys.readouterr() == ("", "")


def write_by(path: Path, keys: list[list], kind: pa.DataType) -> None:
    """Write files with a column of strata and numbers that are all different."""
    path.mkdir()
    start = 0
    for number, part in enumerate(keys):
        x = np.arange(start, start + len(part), dtype=float)
        start += len(part)
        pq.write_table(pa.table({"g": pa.array(part, kind), "x": x}), path / f"{number}.parquet")


@pytest.mark.parametrize(
    ("keys", "kind"),
    [
        ([[2**53, 2**53 + 1, None] * 8], pa.int64()),
        ([[1, 2] * 8, [1, None, 2, None] * 4], pa.int64()),
        ([[0.0, -0.0, 1.0] * 8], pa.float64()),
        ([["a", "b"] * 8, [None] * 16], pa.dictionary(pa.int32(), pa.string())),
        ([[True, None, False] * 8], pa.bool_()),
    ],
    ids=["large integers", "missing in one file", "negative zero", "categories", "bool"],
)
def test_strata_of_every_kind(tmp_path: Path, keys: list[list], kind: pa.DataType) -> None:
    write_by(tmp_path / "in", keys, kind)
    sdc_dask.protect(
        tmp_path / "in",
        tmp_path / "out",
        Microaggregation(["x"], 4, by="g"),
        keep="*",
        order="source",
    )
    table = pq.read_table(tmp_path / "out")
    classes: dict[tuple, int] = {}
    for key, value in zip(table["g"].to_pylist(), table["x"].to_pylist(), strict=True):
        classes[key, value] = classes.get((key, value), 0) + 1
    assert min(classes.values()) >= 4
    strata = pd.Series([key for part in keys for key in part], dtype=object)
    old = pd.Series(np.arange(len(strata), dtype=float)).groupby(strata, dropna=False).mean()
    new = pd.Series(table["x"].to_pylist()).groupby(strata, dropna=False).mean()
    np.testing.assert_allclose(new, old)


@pytest.mark.parametrize("change", ["rewritten", "added", "removed"])
def test_a_source_that_changes_is_not_released(
    survey: Path, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    real = protect_module._verify

    def disturb(*args: object) -> None:
        file = sorted(survey.glob("*.parquet"))[0]
        if change == "rewritten":
            file.write_bytes(file.read_bytes())
        elif change == "added":
            (survey / "zzz.parquet").write_bytes(file.read_bytes())
        else:
            file.unlink()
        real(*args)

    monkeypatch.setattr(protect_module, "_verify", disturb)
    assert "changed, came or went during the run" in refuse(survey)


def test_an_interrupt_between_the_renames_keeps_the_old_target(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = survey.with_name("release")
    sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 5), keep="*")
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    real = Path.rename

    def interrupt(path: Path, other: Path) -> Path:
        if path.name.endswith(".partial"):
            raise KeyboardInterrupt
        return real(path, other)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", interrupt)
        with pytest.raises(KeyboardInterrupt):
            sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 6), replace=True, keep="*")
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before
    assert beside(target) == ["release", "survey"]


def test_what_remains_of_an_old_target_is_a_warning(
    survey: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = survey.with_name("release")
    sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 5), keep="*")
    real = protect_module.shutil.rmtree

    def refuse(path: Path, **options: object) -> None:
        if str(path).endswith(".old"):
            raise PermissionError
        real(path, **options)

    monkeypatch.setattr(protect_module.shutil, "rmtree", refuse)
    with pytest.warns(UserWarning, match="cleaning up failed"):
        sdc_dask.protect(survey, target, Microaggregation(COLUMNS, 6), replace=True, keep="*")
    assert dd.read_parquet(target).compute().sdc.anonymity(COLUMNS).k_min >= 6


def test_source_files_that_are_links_into_the_target(tmp_path: Path) -> None:
    frame = sdc_dask.datasets.uniform(50, 2).compute()
    frame.to_parquet(tmp_path / "0.parquet", index=False)
    spec = Microaggregation(["x0"], 3)
    sdc_dask.protect(tmp_path / "0.parquet", tmp_path / "target", spec, keep="*")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "0.parquet").symlink_to(tmp_path / "target" / "part-000000.parquet")
    with pytest.raises(ValueError, match="1 files of the source are links into the target"):
        sdc_dask.protect(
            tmp_path / "source",
            tmp_path / "target",
            Microaggregation(["x0"], 3),
            replace=True,
            keep="*",
        )
    assert (tmp_path / "source" / "0.parquet").exists()


def test_metadata_of_fields_is_not_released(tmp_path: Path) -> None:
    secret = {"note": "canary"}
    inner = pa.struct([pa.field("a", pa.int64(), metadata=secret)])
    schema = pa.schema(
        [
            pa.field("x", pa.float64(), metadata=secret),
            pa.field("kept", pa.string(), metadata=secret),
            pa.field("nested", inner, metadata=secret),
            pa.field("list", pa.list_(pa.field("item", pa.int64(), metadata=secret))),
            pa.field("pair", pa.list_(pa.field("item", pa.int64(), metadata=secret), 2)),
            pa.field("map", pa.map_(pa.string(), pa.field("value", pa.int64(), metadata=secret))),
            pa.field("large", pa.large_list(pa.field("item", inner, metadata=secret))),
            pa.field("view", pa.list_view(pa.field("item", pa.int64(), metadata=secret))),
            pa.field("wide", pa.large_list_view(pa.field("item", inner, metadata=secret))),
        ],
        metadata=secret,
    )
    lists, deep = [[1, 2]] * 9, [[{"a": 1}, {"a": 2}]] * 9
    columns = [np.arange(9.0), ["text"] * 9, [{"a": 1}] * 9, lists, lists, [{"k": 1}] * 9]
    columns += [deep, lists, deep]
    table = pa.table(columns, schema=schema)
    pq.write_table(table, tmp_path / "in.parquet")
    assert b"canary" in footer(tmp_path / "in.parquet")
    sdc_dask.protect(
        tmp_path / "in.parquet", tmp_path / "out", Microaggregation(["x"], 3), keep="*"
    )
    (file,) = (tmp_path / "out").glob("*.parquet")
    assert b"canary" not in file.read_bytes() + footer(file)
    found = pq.read_table(file)
    assert found["nested"].to_pylist() == [{"a": 1}] * 9
    assert found["pair"].to_pylist() == [[1, 2]] * 9
    assert found["map"].to_pylist() == [[("k", 1)]] * 9
    assert found["view"].to_pylist() == lists
    assert found["large"].to_pylist() == found["wide"].to_pylist() == deep


class Tagged(pa.ExtensionType):
    """A type of others, with metadata in it."""

    def __init__(self, inner: pa.Field) -> None:
        super().__init__(pa.list_(inner), "tests.tagged")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""

    def __hash__(self) -> int:
        return hash(self.storage_type)

    @classmethod
    def __arrow_ext_deserialize__(cls, storage: pa.DataType, _serialized: bytes) -> Tagged:
        return cls(storage.value_field)


def test_metadata_of_fields_of_other_types_is_refused(tmp_path: Path) -> None:
    pa.register_extension_type(Tagged(pa.field("a", pa.int64())))
    try:
        for metadata in (None, {"note": "canary"}):
            kind = Tagged(pa.field("a", pa.int64(), metadata=metadata))
            other = pa.ExtensionArray.from_storage(kind, pa.array([[1]] * 9, kind.storage_type))
            table = pa.table({"x": np.arange(9.0), "other": other})
            pq.write_table(table, tmp_path / "in.parquet")
            with contextlib.ExitStack() as stack:
                if metadata:
                    refused = pytest.raises(ValueError, match="'other' has the nested type")
                    stack.enter_context(refused)
                sdc_dask.protect(
                    tmp_path / "in.parquet",
                    tmp_path / f"out-{metadata is None}",
                    Microaggregation(["x"], 3),
                    keep="*",
                )
    finally:
        pa.unregister_extension_type("tests.tagged")
    assert beside(tmp_path / "in.parquet") == ["in.parquet", "out-True"]


def test_categories_within_lists_are_refused(tmp_path: Path) -> None:
    codes = pa.array([["a"], ["b"]] * 5, pa.list_(pa.dictionary(pa.int32(), pa.string())))
    pq.write_table(pa.table({"x": np.arange(10.0), "codes": codes}), tmp_path / "in.parquet")
    with pytest.raises(ValueError, match="'codes' has categories in lists"):
        sdc_dask.protect(
            tmp_path / "in.parquet", tmp_path / "out", Microaggregation(["x"], 3), keep="*"
        )
    assert beside(tmp_path / "out") == ["in.parquet"]


def test_files_are_read_in_the_order_in_which_dask_reads_them(tmp_path: Path) -> None:
    # By their texts, part.10 would come before part.2.
    frame = sdc_dask.datasets.uniform(240, 2, npartitions=12)
    frame.to_parquet(tmp_path / "source", write_index=False)
    spec = Microaggregation(["x0"], 3)
    sdc_dask.protect(tmp_path / "source", tmp_path / "release", spec, keep="*", order="source")
    original, released = (dd.read_parquet(tmp_path / each) for each in ("source", "release"))
    assert original["x1"].compute().tolist() == released["x1"].compute().tolist()
    assert original.sdc.sse(released, ["x0"]).ratio < 0.01


@pytest.mark.parametrize(
    ("keep", "drop", "kept"),
    [
        ("*", None, ["id", "q_1", "q_2", "name", "g"]),
        ("*", "id", ["q_1", "q_2", "name", "g"]),
        ("q_*", ["id", "name"], ["q_1", "q_2", "g"]),
        (["q_1", "name"], "*", ["q_1", "name", "g"]),
        ("*", ["q_*", "g"], ["id", "name"]),  # what is dropped is dropped
        ("q_1", ["*", "g"], ["q_1"]),
        (["[in]*", "q_?"], None, ["id", "q_1", "q_2", "name", "g"]),
    ],
)
def test_columns_are_kept_and_dropped_as_declared(
    tmp_path: Path, keep: list[str], drop: list[str] | None, kept: list[str]
) -> None:
    names = ["id", "q_1", "x", "q_2", "name", "g"]
    frame = pd.DataFrame({name: np.arange(12) // 6 * 1.0 for name in names})
    frame.to_parquet(tmp_path / "source.parquet")
    spec = Microaggregation(["x"], 3, by="g")
    summary = sdc_dask.protect(
        tmp_path / "source.parquet", tmp_path / "release", spec, keep=keep, drop=drop
    )
    released = [name for name in names if name == "x" or name in kept]
    assert list(pd.read_parquet(tmp_path / "release")) == released
    assert summary.kept == tuple(name for name in released if name != "x")


def test_a_column_may_have_the_name_of_a_wildcard(tmp_path: Path) -> None:
    pd.DataFrame({"x": [1.0, 1.0], "*": [1, 2], "a": [3, 4]}).to_parquet(tmp_path / "s.parquet")
    spec = Microaggregation(["x"], 2)
    sdc_dask.protect(tmp_path / "s.parquet", tmp_path / "release", spec, keep="*", drop="a")
    assert list(pd.read_parquet(tmp_path / "release")) == ["x", "*"]


def test_kept_columns_that_are_nearly_unique_are_a_warning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(1)
    n = 30_000
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=n),
            "id": np.arange(n),
            "name": [f"person {i}" for i in rng.permutation(n)],
            "amount": rng.normal(size=n),
            "mostly": np.where(rng.random(n) < 0.3, 0, np.arange(n)),
            "half": np.where(rng.random(n) < 0.6, rng.integers(0, 100, n), np.arange(n) + n),
            "twice": np.arange(n) // 2,
            "wave": np.arange(n) % 100,  # unique in no file
            "again": np.tile(np.arange(n // 30), 30),  # unique in each file, and in all of them
            "code": pd.Categorical(rng.choice(list("abc"), n)),
            "few": pd.array([1, *[None] * (n - 1)], "Int64"),
            "list": [[i] for i in range(n)],
            "struct": [{"i": i} for i in range(n)],
        }
    )
    frame.to_parquet(tmp_path / "source.parquet", row_group_size=1_000)
    monkeypatch.setattr(source_module, "PIECE_BYTES", 1)
    spec = Microaggregation(["x"], 3, max_block=5_000)
    with pytest.warns(UniqueAdvice, match="kept columns are unique or nearly so") as caught:
        summary = sdc_dask.protect(tmp_path / "source.parquet", tmp_path / "out", spec, keep="*")
    assert set(summary.unique) == {"id", "name", "amount", "mostly"}
    assert summary.uncounted == ("list", "struct")
    assert "not counted: list, struct" in repr(summary)
    assert all(abs(summary.unique[name] - 1) < 0.15 for name in ("id", "name", "amount"))
    assert abs(summary.unique["mostly"] - 0.7) < 0.1
    (message,) = [str(each.message) for each in caught]
    assert "drop or mask them" in message
    assert caught[0].filename == __file__
    assert "unique   or nearly so: id, name, amount, mostly" in repr(summary)


def test_nothing_is_released_if_advice_is_an_error(tmp_path: Path) -> None:
    uuids = pa.array([bytes([i] * 16) for i in range(30)], pa.binary(16))
    ids = pa.ExtensionArray.from_storage(pa.uuid(), uuids)
    pq.write_table(pa.table({"x": np.arange(30.0), "id": ids}), tmp_path / "in.parquet")
    spec = Microaggregation(["x"], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UniqueAdvice)
        with pytest.raises(UniqueAdvice, match=r"'id' \(100%\)"):
            sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")
        assert beside(tmp_path / "out") == ["in.parquet"]
        warnings.simplefilter("ignore", UniqueAdvice)
        sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")


def test_shares_of_records_are_those_of_all_values() -> None:
    rng = np.random.default_rng(2)
    for values, at in ((500, 0.0), (2_000, 0.0), (20_000, 0.02), (200_000, 0.05)):
        drawn = rng.integers(0, values, 40_000)
        parts = [Uniqueness.of(pa.chunked_array([part])) for part in np.split(drawn, 8)]
        merged = Uniqueness.merged([part for part in parts if part is not None])
        _, counts = np.unique(drawn, return_counts=True)
        assert merged.rows == 40_000
        assert merged.share == pytest.approx((counts == 1).sum() / 40_000, abs=at + 1e-9)


def test_what_differs_in_few_records_is_no_warning(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    frame = pd.DataFrame({"x": np.arange(12.0), "id": np.arange(12)})
    frame.to_parquet(tmp_path / "source.parquet")
    spec = Microaggregation(["x"], 3)
    assert not sdc_dask.protect(
        tmp_path / "source.parquet", tmp_path / "out", spec, keep="id"
    ).unique
    assert not recwarn.list


def test_classes_of_columns_that_an_intruder_may_know_are_counted(survey: Path) -> None:
    target = survey.with_name("release")
    sets = [["age", "sex"], ["sex", "occupation", "interview", "income"], ["income", "tax"]]
    spec = Microaggregation(["income", "tax"], 5)
    summary = sdc_dask.protect(survey, target, spec, keep="*", count=sets)
    released = dd.read_parquet(target).compute()
    for columns in sets:
        sizes = released.groupby(columns, dropna=False, observed=True).size()
        found = summary.known[tuple(columns)]
        assert (found.classes, found.k_min) == (len(sizes), sizes.min())
        assert found.below_k == (sizes < 5).sum()
        assert f"known      {', '.join(columns)}: {len(sizes):,} classes" in repr(summary)
    assert json.dumps(summary.to_dict())
    # What is not promised is not in the manifest.
    assert "known" not in (target / "_manifest.json").read_text()
