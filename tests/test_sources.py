"""Sources that people have: stores, patterns, lists, partitioned directories, other schemas."""

from __future__ import annotations

import os
import pickle
import struct
import traceback
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal
from s3_server import KEY, SECRET, Store

from sdc_dask import SdcError
from sdc_dask.errors import SdcImportError
from sdc_dask.release.places import Place, is_remote
from sdc_dask.release.schemas import wider
from sdc_dask.release.source import Source, open_source

pytest_plugins = ["s3_server"]

CANARY = 123456.789
CANARY_TEXT = "Zx9canaryQ7"


def write(path: Path, **columns: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def read(source: Source) -> pa.Table:
    """Read all pieces, as workers do."""
    pieces = pickle.loads(pickle.dumps(source.pieces))
    tables = [piece.read(by=[], masked=source.schema.names) for piece in pieces]
    assert all(table.num_rows == piece.rows for table, piece in zip(tables, pieces, strict=True))
    assert all(
        table.schema.equals(pa.schema(list(source.schema)), check_metadata=False)
        for table in tables
    )
    return pa.concat_tables(tables)


def refusal(error: type[Exception], *args: Any, **options: Any) -> str:
    with pytest.raises(error) as caught:
        read(open_source(*args, **options))
    assert isinstance(caught.value, SdcError)
    shown = "".join(traceback.format_exception(caught.value))
    assert not [value for value in (str(CANARY), CANARY_TEXT, SECRET) if value in shown]
    return str(caught.value)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a directory of twelve files, in another order by letters than by numbers."""
    for j in range(12):
        write(tmp_path / "data" / f"part.{j}.parquet", number=[2 * j, 2 * j + 1])
    (tmp_path / "data" / "_manifest.json").write_text("{}")
    return tmp_path / "data"


# Places


def test_places_can_be_sent_and_show_no_secret() -> None:
    options = {"key": KEY, "secret": SECRET, "client_kwargs": {"region_name": "north"}}
    place = pickle.loads(pickle.dumps(Place.of("s3://bucket/some/data/", options)))
    assert place == Place.of("s3://bucket/some/data", options)
    assert (place.url, place.name, place.is_local) == ("s3://bucket/some/data", "data", False)
    assert (place / "part").url == "s3://bucket/some/data/part"
    assert place.parent.url == "s3://bucket/some"
    assert not [secret for secret in (KEY, SECRET) if secret in f"{place} {place!r}"]


def test_local_places_are_absolute(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for where in ("x/y", Path("x/y"), f"file://{tmp_path}/x/y", tmp_path / "x" / "y"):
        place = Place.of(where)
        assert place.is_local
        assert place.url == place.path == str(tmp_path / "x" / "y")
        assert place.parent.path == str(tmp_path / "x")


@pytest.mark.parametrize(
    ("where", "options", "error", "text"),
    [
        ("gs://bucket/x", None, ImportError, "needs the package gcsfs, .* pip install gcsfs"),
        ("nonsense://x", None, ValueError, "'nonsense', which fsspec does not know"),
        (f"s3://me:{SECRET}@bucket/x", None, ValueError, "'s3://bucket/x' was given with a user"),
        ("x", {"key": 1}, ValueError, "storage_options have no meaning for 'x'"),
        ("memory://x", {"key": 1}, ValueError, "storage_options have no meaning"),
        ("s3://bucket/x", "key", TypeError, "storage_options must be a dict, received str"),
        (Path("s3://bucket/x"), None, ValueError, "was a URL before it was made a path"),
        ("", None, ValueError, "must not be empty"),
        (3, None, TypeError, "received int"),
        ([], None, ValueError, "source is an empty list"),
        ([3], None, TypeError, "must be a text, received int"),
        ("s3://bucket/x", {"nonsense": SECRET}, ValueError, "were not accepted .*'nonsense'"),
    ],
)
def test_places_that_are_none(where: Any, options: Any, error: type[Exception], text: str) -> None:
    pytest.importorskip("s3fs")
    with pytest.raises(error, match=text) as caught:
        open_source(where, options)
    assert isinstance(caught.value, SdcError)
    assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_reasons_of_a_store_show_no_secret() -> None:
    endpoint = "http://127.0.0.1:1"
    options = {"key": KEY, "client_kwargs": {"aws_secret": SECRET}, "endpoint_url": endpoint}
    options |= {"token": 1357911, "anon": False, "retries": 1}
    place = Place.of("s3://bucket/x", options)
    text = f"{KEY} and {SECRET} 1357911 were refused by http://me:word@127.0.0.1:1/x?sign=abc now"
    expected = "OSError: *** and *** *** were refused by http://127.0.0.1:1/x now"
    assert place.reason(OSError(text)) == expected


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(*_args: Any, **_options: Any) -> None:
        raise ImportError

    monkeypatch.setattr("fsspec.core.url_to_fs", missing)
    with pytest.raises(SdcImportError, match=r"needs the package s3fs, .* 'sdc-dask\[s3\]'"):
        Place.of("s3://bucket/x")


# Stores


def test_a_store_gives_the_same_table(store: Store, folder: Path) -> None:
    local = open_source(folder)
    place = store.fill(folder, "data")
    remote = open_source(place.url, store.options)
    assert read(remote).equals(read(local))
    assert [piece.rows for piece in remote.pieces] == [piece.rows for piece in local.pieces]
    assert (remote.size, remote.largest, remote.rows) == (local.size, local.largest, 24)
    remote.check_unchanged()
    frame = remote.frame([], ["number"]).compute()
    assert_frame_equal(frame, local.frame([], ["number"]).compute())
    assert frame["number"].tolist() == list(range(24))


def test_row_groups_of_a_store(store: Store, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(rng.normal(size=(20_000, 5)), columns=list("abcde"))
    (tmp_path / "data").mkdir()
    frame.to_parquet(tmp_path / "data" / "x.parquet", row_group_size=3_000)
    source = open_source((store.fill(tmp_path / "data", "data") / "x.parquet").url, store.options)
    assert_frame_equal(
        source.frame(["d", "b"], []).compute().astype(float), frame[["d", "b"]], check_exact=True
    )


def test_workers_read_a_store(s3: Store, tmp_path: Path, scheduler: str) -> None:
    for region in ("north", "south"):
        prices = decimals("1.50", "2.50")
        write(tmp_path / "data" / f"region={region}" / "x.parquet", price=prices)
    url = s3.fill(tmp_path / "data", "data").url
    found = open_source(url, s3.options, {"price": "float64"}).frame(["price"], ["region"])
    assert found.compute().to_numpy().tolist() == [
        [price, region] for region in ("north", "south") for price in (1.5, 2.5)
    ]


@pytest.mark.parametrize("change", ["came", "went", "changed"])
@pytest.mark.parametrize("kind", ["directory", "pattern", "list"])
def test_changes_in_a_store_are_noticed(store: Store, folder: Path, kind: str, change: str) -> None:
    url = store.fill(folder, "data").url
    names = sorted(path.name for path in folder.glob("*.parquet"))
    asked = {
        "directory": url,
        "pattern": f"{url}/part.*.parquet",
        "list": [f"{url}/{name}" for name in names] if change != "came" else [url],
    }
    source = open_source(asked[kind], store.options)
    source.check_unchanged()
    place = store.place("data") / ("part.99.parquet" if change == "came" else "part.3.parquet")
    if change == "went":
        place.fs.rm_file(place.path)
    else:
        other = write(folder.parent / "other.parquet", number=[8, 9])
        place.fs.pipe_file(place.path, other.read_bytes())
    with pytest.raises(RuntimeError, match="changed, came or went"):
        source.check_unchanged()


def test_files_of_a_store_that_cannot_be_read(store: Store, folder: Path) -> None:
    (folder / "part.3.parquet").write_text(CANARY_TEXT * 50)
    place = store.fill(folder, "data")
    text = refusal(ValueError, place.url, storage_options=store.options)
    assert f"{place.url}/part.3.parquet" in text
    assert "truncated, corrupt" in text
    text = refusal(FileNotFoundError, f"{store.url}/nowhere", storage_options=store.options)
    assert text == f"source '{store.url}/nowhere' does not exist."


def test_a_store_that_does_not_let_in(s3: Store) -> None:
    options = s3.options | {"secret": "another-long-secret"}
    text = refusal(RuntimeError, f"{s3.url}/data", storage_options=options)
    assert "cannot be reached (PermissionError: Forbidden)" in text
    assert "another-long-secret" not in text


# Patterns and lists


def test_patterns(folder: Path) -> None:
    assert read(open_source(f"{folder}/part.1*.parquet"))["number"].to_pylist() == [
        *(2, 3, 20, 21, 22, 23)
    ]
    assert open_source(folder.parent / "*").rows == 24  # a directory that matches
    assert open_source(f"{folder.parent}/**").rows == 24  # every file once
    assert "matches no parquet file" in refusal(FileNotFoundError, f"{folder}/none.*")
    assert "does not exist" in refusal(FileNotFoundError, f"{folder}/none.parquet")


def test_names_with_signs_of_patterns_are_names(tmp_path: Path) -> None:
    path = write(tmp_path / "data[1]" / "x*.parquet", x=[1])
    assert open_source(path).rows == 1
    assert open_source(path.parent).rows == 1


def test_lists_keep_their_order(folder: Path) -> None:
    names = [folder / "part.7.parquet", f"{folder}/part.[23].parquet", folder / "part.0.parquet"]
    source = open_source(names)
    assert read(source)["number"].to_pylist() == [14, 15, 4, 5, 6, 7, 0, 1]
    assert source.path == f"'{names[0]}' and 2 others"


def test_a_file_twice_is_an_error(folder: Path) -> None:
    text = refusal(ValueError, [folder, folder / "part.3.parquet"])
    assert f"file '{folder}/part.3.parquet' is in the source 2 times" in text
    (folder / "link.parquet").symlink_to(folder / "part.5.parquet")
    assert "part.5.parquet' is in the source 2 times" in refusal(ValueError, f"{folder}/*.parquet")


@pytest.mark.parametrize("change", ["came", "went", "changed"])
def test_changes_of_patterns_are_noticed(folder: Path, change: str) -> None:
    source = open_source([f"{folder}/part.1*.parquet", folder / "part.0.parquet"])
    source.check_unchanged()
    write(folder / "part.2.parquet", number=[5])  # it is not in the source
    source.check_unchanged()
    if change == "went":
        (folder / "part.0.parquet").unlink()
    else:
        path = folder / ("part.19.parquet" if change == "came" else "part.11.parquet")
        write(path, number=[20, 21])
        assert path.stat().st_size == (folder / "part.10.parquet").stat().st_size
    with pytest.raises(RuntimeError, match="changed, came or went"):
        source.check_unchanged()


@pytest.mark.parametrize("name", ["x.csv", "X.CSV.GZ", "x.json", "x.xlsx", "x.sas7bdat", "x.sav"])
def test_other_kinds_are_refused_with_the_line_that_converts(tmp_path: Path, name: str) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / name).write_text(CANARY_TEXT)
    for source in (tmp_path / "data" / name, tmp_path / "data", f"{tmp_path}/data/*"):
        text = refusal(ValueError, source)
        assert "only parquet is read" in text
        assert "to_parquet(" in text


def test_no_file_is_passed_over_without_a_word(store: Store, folder: Path) -> None:
    write(folder / "part.12.PARQUET", number=[24])
    write(folder / "region=north" / "part.13.Parq", number=[25])
    (folder / "region=north" / "_SUCCESS").touch()
    (folder / ".part.crc").touch()
    fs = {"storage_options": store.options}
    assert open_source(f"{folder}/*.[pP]*").rows == 25
    assert open_source(f"{folder}/region=*").rows == 1
    for name in ("part.2.parquet.gz", "more.csv", "deep/read", "part.parquet-2"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(CANARY_TEXT)
    store.fill(folder, "data")
    for source, options in (
        (folder, {}),
        (f"{folder.parent}/*", {}),
        (f"{folder}/**", {}),
        (f"{store.url}/data", fs),
        (f"{store.url}/data/**", fs),
    ):
        text = refusal(ValueError, source, **options)
        assert "has 4 files not named *.parquet or *.parq" in text, source
        assert "(.csv: 1, .parquet-2: 1, .parquet.gz: 1, no ending: 1)" in text
        assert "by a pattern such as 'data/**/*.parquet'" in text
    assert open_source(f"{folder}/**/*.parquet").rows == 24


def test_the_line_that_converts_csv_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pd.DataFrame({"age": [1], "income": [2.5], "region": ["a"]}).to_csv(tmp_path / "x.csv")
    monkeypatch.chdir(tmp_path)
    line = refusal(ValueError, "x.csv").splitlines()[1].strip()
    assert line.startswith("dask.dataframe.read_csv(")
    exec(f"import dask.dataframe; {line}")
    assert open_source("parquet").schema.field("income").type == pa.float64()


# Directories that give columns


@pytest.mark.parametrize(
    "values",
    [
        ["north", "south"],
        ["1", "02", "-3"],
        ["5000000000", "1"],
        ["1", "__HIVE_DEFAULT_PARTITION__"],
        ["a%20b", "c%2Fd", "é"],
        ["1.5", "2"],
        ["", "x"],
    ],
    ids=str,
)
def test_columns_of_directories_are_those_of_pyarrow(tmp_path: Path, values: list[str]) -> None:
    for j, value in enumerate(values):
        write(tmp_path / "data" / f"the%20key={value}" / "month=3" / "x.parquet", x=[j, j])
    source = open_source(tmp_path / "data")
    found = read(source)
    expected = ds.dataset(tmp_path / "data", partitioning="hive").to_table()
    assert found.schema.equals(expected.schema)
    assert found.sort_by("x").equals(expected.sort_by("x").combine_chunks())
    names = ["x", "the key", "month"]
    assert source.schema.names == names
    assert list(source.frame(["x"], ["the key"]).columns) == names[:2]
    assert source.pieces[0].read(["month"], by=[], masked=[]).column_names == ["month"]


@pytest.mark.parametrize("kind", ["directory", "level", "file", "pattern", "list"])
def test_directories_give_columns_however_they_are_named(tmp_path: Path, kind: str) -> None:
    root = tmp_path / "data"
    for region in ("north", "south"):
        write(root / f"region={region}" / "x.parquet", x=[1])
    asked: dict[str, Any] = {
        "directory": root,
        "level": root / "region=north",
        "file": root / "region=north" / "x.parquet",
        "pattern": f"{root}/region=*/x.parquet",
        "list": [root / "region=north" / "x.parquet", root / "region=south"],
    }
    found = read(open_source(asked[kind]))["region"].to_pylist()
    assert found == (["north"] if kind in ("level", "file") else ["north", "south"])


def test_directories_of_a_store_give_columns(store: Store, tmp_path: Path) -> None:
    for region in ("north", "south"):
        write(tmp_path / "data" / f"region={region}" / "x.parquet", x=[1])
    url = store.fill(tmp_path / "data", "data").url
    for asked in (url, f"{url}/region=*/*.parquet", f"{url}/region=*"):
        found = read(open_source(asked, store.options))
        assert found.to_pydict() == {"x": [1, 1], "region": ["north", "south"]}


def test_a_column_that_is_in_files_too(tmp_path: Path) -> None:
    write(tmp_path / "data" / "region=1" / "x.parquet", region=pa.array([1, 1]), x=[1, 2])
    write(tmp_path / "data" / "region=2" / "x.parquet", x=[3])
    found = read(open_source(tmp_path / "data"))
    assert found.to_pydict() == {"region": [1, 1, 2], "x": [1, 2, 3]}
    assert found.schema.field("region").type == pa.int64()
    write(tmp_path / "data" / "region=2" / "x.parquet", region=pa.array([2, 9]), x=[3, 4])
    text = refusal(ValueError, tmp_path / "data")
    assert "column 'region'" in text
    assert "has other values than the name of its directory" in text
    write(tmp_path / "data" / "region=north" / "x.parquet", region=pa.array([2]), x=[3])
    text = refusal(ValueError, tmp_path / "data")
    assert "column 'region' is of type int64" in text
    assert "region=north" in text


def test_a_column_of_directories_is_cast_from_its_text(tmp_path: Path) -> None:
    for code in ("01", "10"):
        write(tmp_path / "data" / f"code={code}" / "x.parquet", x=[1])
    found = read(open_source(tmp_path / "data", cast={"code": "string"}))
    assert found["code"].to_pylist() == ["01", "10"]


@pytest.mark.parametrize(
    "other",
    [
        "x.parquet",
        "region=2/x.parquet",
        "year=1/region=2/x.parquet",
        "region=2/year=1/a=3/x.parquet",
    ],
)
def test_levels_that_differ_are_an_error(tmp_path: Path, other: str) -> None:
    write(tmp_path / "data" / "region=1" / "year=1" / "x.parquet", x=[1])
    path = write(tmp_path / "data" / other, x=[1])
    text = refusal(ValueError, tmp_path / "data")
    assert str(path) in text
    assert "must have the same levels" in text


def test_one_column_of_two_levels_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "data" / "a=1" / "a=2" / "x.parquet", x=[1])
    assert "two directories of one column" in refusal(ValueError, tmp_path / "data")


def test_levels_with_an_underscore_are_not_passed_over(tmp_path: Path) -> None:
    write(tmp_path / "data" / "_region=1" / "x.parquet", x=[1])
    assert read(open_source(tmp_path / "data")).to_pydict() == {"x": [1], "_region": [1]}


# Schemas that differ

HARMLESS = {
    "integers": (pa.array([1, 2], pa.int32()), pa.array([3], pa.int64()), pa.int64()),
    "signs": (pa.array([1, 2], pa.uint8()), pa.array([-3], pa.int8()), pa.int16()),
    "floats": (pa.array([1.5], pa.float32()), pa.array([0.1]), pa.float64()),
    "null": (pa.nulls(2), pa.array(["a"]), pa.string()),
    "texts": (pa.array(["a"]), pa.array(["b"], pa.large_string()), pa.large_string()),
    "categories": (pa.array(["a"]).dictionary_encode(), pa.array(["b"]), pa.string()),
    "times": (
        pa.array([1], pa.timestamp("ms")),
        pa.array([2], pa.timestamp("us")),
        pa.timestamp("us"),
    ),
    "decimals": (
        pa.array([Decimal("1.50")], pa.decimal128(5, 2)),
        pa.array([Decimal("2.50")], pa.decimal128(9, 2)),
        pa.decimal128(9, 2),
    ),
}


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned"])
@pytest.mark.parametrize("name", HARMLESS)
def test_harmless_differences_are_unified_and_told(tmp_path: Path, name: str, turned: bool) -> None:
    *arrays, expected = HARMLESS[name]
    arrays = arrays[::-1] if turned else arrays
    for j, array in enumerate(arrays):
        write(tmp_path / f"{j}.parquet", before=pa.nulls(len(array), pa.int64()), x=array)
    source = open_source(tmp_path)
    assert source.schema.field("x").type == expected
    assert read(source)["x"].to_pylist() == [value for each in arrays for value in each.to_pylist()]
    (note,) = source.unified
    # Files have milliseconds at least, and categories by their metadata.
    stored = [pq.read_schema(tmp_path / f"{j}.parquet").field("x").type for j in range(2)]
    assert note == (
        f"column 'x' is {stored[0]} in 1 file and {stored[1]} in 1 file: read as {expected}"
    )


def test_columns_in_another_order_and_missing_ones(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", a=[1], b=["x"])
    write(tmp_path / "1.parquet", b=["y"], a=[2])
    write(tmp_path / "2.parquet", a=[3], c=[0.5])
    source = open_source(tmp_path)
    found = read(source)
    assert found.to_pydict() == {"a": [1, 2, 3], "b": ["x", "y", None], "c": [None, None, 0.5]}
    assert source.unified == (
        "column 'b' is not in 1 file: missing cells there",
        "column 'c' is not in 2 files: missing cells there",
        "columns are in another order in 1 file: read in the order of the first file",
    )
    assert source.pieces[2].read(["b"], by=["b"], masked=[])["b"].to_pylist() == [None]


def test_metadata_makes_no_difference(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": np.array([1, 2], np.int32), "y": [0.5, 1.5]})
    frame.to_parquet(tmp_path / "0.parquet", index=False)
    write(tmp_path / "1.parquet", x=pa.array([3], pa.int32()), y=[2.5])
    source = open_source(tmp_path)
    assert source.unified == ()
    assert all(piece.form is None for piece in source.pieces)  # read as they are
    write(tmp_path / "2.parquet", x=pa.array([4]), y=[2.5])
    source = open_source(tmp_path)
    assert source.schema.field("x").type == pa.int64()
    # pandas must not make integers of 32 bits of it.
    assert b'"int32"' not in source.schema.metadata[b"pandas"]
    assert b'"float64"' in source.schema.metadata[b"pandas"]


UNLIKE = {
    "int64 and double": (pa.array([1]), pa.array([CANARY])),
    "string and double": (pa.array([CANARY_TEXT]), pa.array([CANARY])),
    "int64 and bool": (pa.array([1]), pa.array([True])),
    "uint64 and int64": (pa.array([1], pa.uint64()), pa.array([1])),
    "timestamp[us, tz=UTC] and timestamp[us, tz=Europe/Madrid]": (
        pa.array([1], pa.timestamp("us", "UTC")),
        pa.array([1], pa.timestamp("us", "Europe/Madrid")),
    ),
    "decimal128(5, 2) and decimal128(5, 3)": (
        pa.array([Decimal("1.5")], pa.decimal128(5, 2)),
        pa.array([Decimal("1.5")], pa.decimal128(5, 3)),
    ),
}


@pytest.mark.parametrize("name", UNLIKE)
def test_other_differences_name_column_types_and_files(tmp_path: Path, name: str) -> None:
    for j, array in enumerate(UNLIKE[name]):
        write(tmp_path / f"{j}.parquet", price=array)
    text = refusal(ValueError, tmp_path)
    first, second = name.split(" and ")
    assert f"column 'price' is {first} in file '{tmp_path}/0.parquet' and {second} in" in text
    assert f"{tmp_path}/1.parquet" in text
    assert "cast={'price': 'float64'}" in text
    assert wider(*(each.type for each in UNLIKE[name])) is None


def test_a_column_that_is_never_missing(tmp_path: Path) -> None:
    schema = pa.schema([pa.field("x", pa.int64(), nullable=False), ("y", pa.int64())])
    pq.write_table(pa.table({"x": [1], "y": [1]}, schema=schema), tmp_path / "0.parquet")
    write(tmp_path / "1.parquet", y=[2])
    assert "says that it is never missing" in refusal(ValueError, tmp_path)


def test_a_time_that_does_not_fit_is_an_error(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", t=pa.array([10**14], pa.timestamp("ms")))
    write(tmp_path / "1.parquet", t=pa.array([1], pa.timestamp("ns")))
    text = refusal(ValueError, tmp_path)
    assert "column 't'" in text
    assert "0.parquet" in text


# Casts


def decimals(*values: str, precision: int = 38, scale: int = 2) -> pa.Array:
    return pa.array([Decimal(value) for value in values], pa.decimal128(precision, scale))


def test_decimals_are_cast(tmp_path: Path) -> None:
    write(tmp_path / "0.parquet", price=decimals("12.34", "0.10", "-99999999999.99"), other=[1] * 3)
    write(tmp_path / "1.parquet", price=decimals("0.1", scale=30), other=[2])
    write(tmp_path / "2.parquet", price=pa.array(["7.5"]), other=[3])
    source = open_source(tmp_path, cast={"price": "float64"})
    assert read(source)["price"].to_pylist() == [12.34, 0.1, -99999999999.99, 0.1, 7.5]
    assert source.unified == ()
    assert source.frame(["price"], []).dtypes["price"] == pd.ArrowDtype(pa.float64())


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (decimals("1234567890123456.78"), "float64"),
        (decimals("1.5"), "int64"),
        (pa.array([CANARY]), "float32"),
        (pa.array([1e300]), "float32"),
        (pa.array([2**53 + 1]), "float64"),
        (pa.array([300]), "int8"),
        (pa.array([-1]), "uint64"),
        (pa.array([float("nan")]), "int64"),
        (pa.array([CANARY_TEXT]), "double"),
        (pa.array([""]), "double"),
        (pa.array([10**15 + 1], pa.timestamp("us")), "date32"),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_a_cast_that_would_lose_something_is_an_error(
    tmp_path: Path, array: pa.Array, kind: str
) -> None:
    path = write(tmp_path / "0.parquet", price=array)
    text = refusal(ValueError, path, cast={"price": kind})
    assert "column 'price'" in text
    assert str(path) in text
    assert "would lose digits: choose another type" in text


@pytest.mark.parametrize(
    ("array", "kind"),
    [
        (decimals("2.00"), "int64"),
        (decimals("2.50"), "float32"),
        (pa.array([0.5, None, float("nan")]), "float32"),
        (pa.array([1, 2]), "double"),
        (pa.array([1.0, 2.0]), "int32"),
        (pa.array(["1.50"]).dictionary_encode(), "double"),
        (pa.array([86400 * 10**6], pa.timestamp("us")), "date32"),
        (pa.array([7]), "string"),
        (pa.nulls(2), "double"),
        (pa.array([], pa.string()), "double"),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_casts_that_lose_nothing(tmp_path: Path, array: pa.Array, kind: str) -> None:
    path = write(tmp_path / "0.parquet", price=array)
    found = read(open_source(path, cast={"price": kind}))["price"]
    assert found.type == pa.type_for_alias(kind)
    assert len(found) == len(array)


@pytest.mark.parametrize(
    ("cast", "error", "text"),
    [
        ({"nowhere": "float64"}, KeyError, "cast names columns that the source does not have"),
        ({"price": "nonsense"}, ValueError, "'nonsense' is no type of Arrow"),
        ({"price": 3}, ValueError, "3 is no type of Arrow"),
        ({3: "float64"}, TypeError, "cast must name columns by texts"),
        (["price"], TypeError, "cast must be a dict"),
        ({"places": "float64"}, TypeError, "there is none from list"),
    ],
    ids=str,
)
def test_casts_that_are_none(tmp_path: Path, cast: Any, error: type[Exception], text: str) -> None:
    path = write(tmp_path / "0.parquet", price=decimals("1"), places=[[1]])
    assert text in refusal(error, path, cast=cast)


# What was always so


def test_a_file_without_permission_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "0.parquet", x=[1])
    source = open_source(path)

    def denied(*_args: Any, **_options: Any) -> None:
        raise PermissionError(13, f"Permission denied: {CANARY_TEXT}")

    monkeypatch.setattr(pq, "ParquetFile", denied)
    with pytest.raises(ValueError, match=r"cannot be read \(Permission denied\)") as caught:
        read(source)
    assert CANARY_TEXT not in str(caught.value)


def test_paths_are_resolved_before_workers_start(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder.parent)
    source = open_source("data")
    monkeypatch.chdir(os.sep)
    assert read(source).num_rows == 24
    source.check_unchanged()


def test_sizes(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(3_000)})
    pq.write_table(table, tmp_path / "0.parquet", row_group_size=1_000)
    pq.write_table(table.slice(0, 500), tmp_path / "1.parquet")
    source = open_source(tmp_path)
    sizes: Callable[[Path], int] = lambda path: sum(  # noqa: E731
        pq.read_metadata(path).row_group(j).total_byte_size
        for j in range(pq.read_metadata(path).num_row_groups)
    )
    expected = [sizes(tmp_path / f"{j}.parquet") for j in range(2)]
    assert [piece.size for piece in source.pieces] == expected
    assert (source.size, source.largest) == (sum(expected), max(expected))


def test_graphs_hold_paths_and_no_values(tmp_path: Path) -> None:
    canary, number = "Zx9canaryQ7", 123456.789
    frame = pd.DataFrame({"x": [1.5, number, 2.5], "g": ["a", canary, "b"]})
    frame.to_parquet(tmp_path / "in.parquet")
    lazy = open_source(tmp_path / "in.parquet").frame(["x"], ["g"])
    graph = cloudpickle.dumps(dict(lazy.dask))
    assert b"in.parquet" in graph
    assert canary.encode() not in graph
    assert struct.pack("<d", number) not in graph
    assert lazy.compute()["x"].max() == number


def test_no_store_is_reached_to_see_whether_a_path_is_local() -> None:
    """Some file systems cannot be made without the options that go with their URL."""
    assert is_remote("abfs://box/survey")
    assert not is_remote("file:///data") and not is_remote(Path("data"))
    assert is_remote(Place.of("memory://box/survey"))
