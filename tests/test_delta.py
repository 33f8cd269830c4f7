"""Releases that are Delta tables, too: the same rows, and nothing else in the log."""

from __future__ import annotations

import datetime as dt
import json
import sys
from decimal import Decimal
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, SdcError
from sdc_dask.errors import SdcImportError
from sdc_dask.job import Job
from sdc_dask.release import delta
from sdc_dask.release import files as files_module
from sdc_dask.release import source as source_module
from sdc_dask.release.delta import LOG
from sdc_dask.release.manifest import Manifest

deltalake = pytest.importorskip("deltalake")

ROWS = 1_200
SPEC = Microaggregation(["x"], 5)


@pytest.fixture(autouse=True)
def _in_one_thread() -> Any:
    with dask.config.set(scheduler="sync"):
        yield


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file whose rows fill four."""
    rng = np.random.default_rng(5)
    table = pa.table(
        {
            "x": rng.normal(size=ROWS),
            "region": rng.choice(["north", "a b/c", "é%20"], ROWS),
            "day": pa.array(rng.integers(0, 3, ROWS).tolist(), pa.date32()),
            "text": pa.array([f"t{i}" if i % 7 else None for i in range(ROWS)], pa.large_string()),
            "when": pa.array(np.arange(ROWS), pa.timestamp("us", "UTC")),
            "list": [[i, None] for i in range(ROWS)],
            "number": np.arange(ROWS),
        }
    )
    pq.write_table(table, tmp_path / "source.parquet")
    size = source_module.open_source(tmp_path / "source.parquet").size
    monkeypatch.setattr(files_module, "PIECE_BYTES", -(-size // 4))
    return tmp_path / "source.parquet"


def actions_of(target: Path) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for line in (target / LOG).read_text().splitlines():
        for name, value in json.loads(line).items():
            found.setdefault(name, []).append(value)
    return found


def in_one_order(frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.sort_values("number").reset_index(drop=True)
    found["list"] = found["list"].map(repr)
    return found.astype({"region": str, "day": str, "text": str})[sorted(found.columns)]


@pytest.mark.parametrize("columns", [None, "region", ["region", "day"]])
def test_the_table_is_the_release(source: Path, columns: Any) -> None:
    target = source.with_name("out")
    how: dict[str, Any] = {"keep": "*", "partition_by": columns}
    summary = sdc_dask.protect(source, target, SPEC, delta=True, **how)
    assert summary.delta
    assert "it is a Delta table, too" in repr(summary)
    assert sdc_dask.verify(target).ok
    table = deltalake.DeltaTable(target)
    assert table.version() == 0
    released = pd.read_parquet(target)
    assert len(released) == ROWS
    pd.testing.assert_frame_equal(in_one_order(table.to_pandas()), in_one_order(released))
    manifest = Manifest.read(target)
    assert len(table.file_uris()) == len(manifest.files) >= 3
    # Readers of parquet pass over the log.
    assert manifest.rows == ROWS
    assert manifest.log is not None
    assert manifest.log.name == LOG


def test_the_log_tells_no_more_than_the_files(source: Path) -> None:
    target = source.with_name("out")
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True, partition_by="region")
    found = actions_of(target)
    assert set(found) == {"commitInfo", "protocol", "metaData", "add"}
    sizes = {path.stat().st_size for path in target.rglob("*.parquet")}
    for add in found["add"]:
        assert set(json.loads(add["stats"])) == {"numRecords"}
        assert add["size"] in sizes
    assert found["commitInfo"][0].keys() == {"timestamp", "operation", "engineInfo"}
    text = (target / LOG).read_text()
    for secret in (str(source.parent), source.name, ".partial", target.name + "/", "minValues"):
        assert secret not in text


def test_missing_values_in_paths(source: Path) -> None:
    table = pq.read_table(source)
    groups = pa.array([None if i % 3 else "b" for i in range(ROWS)])
    pq.write_table(table.append_column("group", groups), source)
    target = source.with_name("out")
    with pytest.warns(UserWarning, match="without a value"):
        sdc_dask.protect(source, target, SPEC, keep="*", delta=True, partition_by="group")
    found = deltalake.DeltaTable(target).to_pandas().sort_values("number")
    assert found["group"].isna().tolist() == [bool(i % 3) for i in range(ROWS)]


NOW = dt.datetime(1500, 1, 2, 3, 4, 5, 6)
TAKEN = [
    (pa.int8(), -3),
    (pa.int64(), 2**62),
    (pa.float32(), 1.5),
    (pa.bool_(), True),
    (pa.string(), "é"),
    (pa.large_binary(), b"\xff"),
    (pa.date32(), dt.date(1500, 1, 1)),
    (pa.timestamp("us"), NOW),
    (pa.timestamp("us", "UTC"), NOW.replace(tzinfo=dt.UTC)),
    (pa.decimal128(5, 2), Decimal("1.50")),
    (pa.list_(pa.timestamp("us")), [NOW, None]),
    (pa.large_list(pa.int64()), [1]),
    (pa.list_(pa.int64(), 2), [1, 2]),
    (pa.map_(pa.string(), pa.int64()), [("a", 1)]),
    (pa.struct([("a", pa.int64()), ("b", pa.list_(pa.string()))]), {"a": 1, "b": ["x"]}),
]


def test_types_that_are_taken_are_read_as_they_were(tmp_path: Path) -> None:
    columns = {
        f"c{number}": pa.array([value, None] * 5, kind)
        for number, (kind, value) in enumerate(TAKEN)
    }
    table = pa.table({"x": np.arange(10.0), "number": np.arange(10), **columns})
    pq.write_table(table, tmp_path / "source.parquet")
    target = tmp_path / "out"
    sdc_dask.protect(tmp_path / "source.parquet", target, SPEC, keep="*", delta=True)
    found = deltalake.DeltaTable(target).to_pyarrow_table().sort_by("number")
    for name in columns:
        assert found[name].to_pylist() == table[name].to_pylist()
    (protocol,) = actions_of(target)["protocol"]
    assert protocol["readerFeatures"] == ["timestampNtz"]


REFUSED = [
    (pa.array(["a"] * 10).dictionary_encode(), "string"),
    (pa.array([200] * 10, pa.uint8()), "int64"),
    (pa.array([1] * 10, pa.uint64()), "int64"),
    (pa.array([1_000] * 10, pa.timestamp("ns")), "timestamp[us]"),
    (pa.array([1] * 10, pa.timestamp("s")), "timestamp[us]"),
    (pa.array([1_000] * 10, pa.timestamp("us", "Europe/Zurich")), pa.timestamp("us", "UTC")),
    (pa.array(np.full(10, 1.5, "f2")), "float32"),
    (pa.array([1] * 10, pa.time32("s")), "string"),
    (pa.array([b"a"] * 10, pa.binary(1)), "binary"),
    (pa.array([1] * 10, pa.duration("s")), None),
    (pa.nulls(10), None),
    (pa.array([[1]] * 10, pa.list_(pa.uint8())), None),
    (pa.array([{"a": 1}] * 10, pa.struct([("a", pa.timestamp("ns"))])), None),
    (pa.array([Decimal(1)] * 10, pa.decimal256(50, 2)), None),
]


@pytest.mark.parametrize(
    ("column", "cast"), REFUSED, ids=lambda each: str(getattr(each, "type", each))
)
def test_types_that_are_refused(
    tmp_path: Path, column: pa.Array, cast: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pa.table({"x": np.arange(10.0), "other": column})
    source, target = tmp_path / "source.parquet", tmp_path / "out"
    pq.write_table(table, source)
    with monkeypatch.context() as patch:
        patch.setattr(sdc_dask.release.protect, "plan", None)  # no work is done
        with pytest.raises(TypeError, match="column 'other' is of type") as caught:
            sdc_dask.protect(source, target, SPEC, keep="*", delta=True)
    assert isinstance(caught.value, SdcError)
    assert [path.name for path in tmp_path.iterdir()] == ["source.parquet"]
    text = str(caught.value)
    if cast is None:
        assert "cast" not in text
        return
    said = "pyarrow.timestamp('us', 'UTC')" if isinstance(cast, pa.DataType) else repr(cast)
    assert f"cast={{'other': {said}}}" in text
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True, cast={"other": cast})
    assert sdc_dask.verify(target).ok
    read = deltalake.DeltaTable(target).to_pyarrow_table()["other"]
    stored = pq.read_table(next(target.glob("*.parquet")))["other"]
    assert read.to_pylist() == stored.to_pylist()


def test_types_are_those_of_the_release(tmp_path: Path) -> None:
    source, target = tmp_path / "source.parquet", tmp_path / "out"
    pq.write_table(pa.table({"x": pa.array(range(20), pa.uint8())}), source)
    sdc_dask.protect(source, target, SPEC, delta=True)  # means are floats
    with pytest.raises(TypeError, match="uint8"):
        sdc_dask.protect(source, tmp_path / "swapped", RankSwap(["x"], 10), delta=True)


@pytest.mark.parametrize(
    "names", [["a b"], ["a,b"], ["a", "A"], ["struct"]], ids=["space", "comma", "case", "inner"]
)
def test_names_that_are_refused(tmp_path: Path, names: list[str]) -> None:
    columns: dict[str, Any] = {name: np.arange(10) for name in names}
    if names == ["struct"]:
        columns = {"struct": [{"a b": 1}] * 10}
    source = tmp_path / "source.parquet"
    pq.write_table(pa.table({"x": np.arange(10.0), **columns}), source)
    with pytest.raises(ValueError, match="cannot be in a Delta table"):
        sdc_dask.protect(source, tmp_path / "out", SPEC, keep="*", delta=True)


def test_stores_are_refused(source: Path) -> None:
    with pytest.raises(ValueError, match="delta=True is for local targets"):
        sdc_dask.protect(source, "memory://delta/out", SPEC, keep="*", delta=True)
    with pytest.raises(ValueError, match="delta=True is for local targets"):
        Job(source, "memory://delta/out", SPEC, delta=True).check()  # before workers start


def test_paths_of_targets(source: Path) -> None:
    target = source.with_name("a b#é")
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True)
    assert len(deltalake.DeltaTable(target).to_pandas()) == ROWS
    with pytest.raises(ValueError, match="deltalake opens no tables there"):
        sdc_dask.protect(source, source.with_name("a%20b"), SPEC, keep="*", delta=True)


def test_without_the_package(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "deltalake", None)
    with pytest.raises(SdcImportError, match=r"pip install 'sdc-dask\[delta\]'"):
        sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*", delta=True)
    sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*")
    with pytest.raises(TypeError, match="delta must be True or False"):
        sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*", delta="yes")


@pytest.mark.parametrize("spoil", ["change", "remove", "add"])
def test_a_log_that_was_changed_is_found(source: Path, spoil: str) -> None:
    target = source.with_name("out")
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True)
    log = target / LOG
    if spoil == "change":
        log.write_text(log.read_text().replace("part-000000", "part-000001"))
    elif spoil == "remove":
        log.unlink()
    else:
        log.with_name(f"{1:020d}.json").write_text('{"commitInfo": {}}\n')
    found = sdc_dask.verify(target)
    assert not found.ok
    assert "_delta_log" in found.failed[0]


def test_tables_are_replaced(source: Path) -> None:
    target = source.with_name("out")
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True)
    first = deltalake.DeltaTable(target).metadata().id
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True, replace=True)
    assert deltalake.DeltaTable(target).metadata().id != first
    sdc_dask.protect(source, target, SPEC, keep="*", replace=True)
    assert not (target / LOG).exists()
    assert sdc_dask.verify(target).ok
    assert sorted(path.name for path in source.parent.iterdir()) == ["out", "source.parquet"]
    sdc_dask.protect(source, target, SPEC, keep="*", delta=True, replace=True)
    deltalake.write_deltalake(target, pd.read_parquet(target).head(1), mode="append")
    with pytest.raises(FileExistsError, match="with other entries"):
        sdc_dask.protect(source, target, SPEC, keep="*", replace=True)


@pytest.mark.parametrize("what", ["path", "schemaString"])
def test_a_log_that_is_not_as_meant_is_found(
    source: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    real = delta._actions

    def other(*arguments: Any) -> Any:
        for action in real(*arguments):
            (values,) = action.values()
            if what in values:
                values[what] = values[what].replace("part-000000", "p").replace("number", "n")
            yield action

    monkeypatch.setattr(delta, "_actions", other)
    with pytest.raises(RuntimeError, match="log of the Delta table has other columns or files"):
        sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*", delta=True)
    assert [path.name for path in source.parent.iterdir()] == ["source.parquet"]
