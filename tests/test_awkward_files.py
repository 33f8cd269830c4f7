"""Awkward files: protect masks them as the accessor does, or names what is wrong with them."""

from __future__ import annotations

import itertools
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pandas.testing import assert_frame_equal

from sdc_dask import Mic1D, Microaggregation, RankSwap, SdcError, Spec, protect

CANARY = 123456.789
CANARY_TEXT = "Zx9canaryQ7"

SPEC = Microaggregation(["x", "y"], 3, max_block=12)


def people(n: int = 60, seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "x": rng.lognormal(10.0, 1.0, n),
            "kept": rng.normal(size=n),
            "y": rng.normal(50.0, 9.0, n),
            "number": np.arange(n),
            "text": [f"person {i}" for i in range(n)],
        }
    )


def write_source(frame: pd.DataFrame, source: Path, files: int = 3) -> None:
    """Write a frame as a directory of some files."""
    source.mkdir()
    borders = np.linspace(0, len(frame), files + 1).astype(int)
    for i, (begin, end) in enumerate(itertools.pairwise(borders)):
        frame.iloc[begin:end].to_parquet(source / f"{i}.parquet", index=False)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return a directory of three good files."""
    write_source(people().assign(kept=CANARY), tmp_path / "source")
    return tmp_path / "source"


def contents(folder: Path) -> dict[str, bytes | None]:
    """Return all paths in a folder, hidden ones too, with what is in the files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in folder.rglob("*")
    }


def refuse(
    error: type[Exception], source: Path, target: Path, spec: Spec = SPEC, **options: Any
) -> str:
    """Expect a clean refusal that leaves the folder as it was; give its text."""
    before = contents(source.parent)
    with pytest.raises(error) as caught:
        protect(source, target, spec, **{"keep": "*"} | options)
    assert contents(source.parent) == before
    assert isinstance(caught.value, SdcError)
    shown = "".join(traceback.format_exception(caught.value))
    assert not [value for value in (str(CANARY), CANARY_TEXT) if value in shown]
    return str(caught.value)


def raw(folder: Path) -> bytes:
    return b"".join(each for each in contents(folder).values() if each)


# What is masked as by the accessor


@pytest.mark.parametrize(
    "spec",
    [
        Microaggregation(["x", "y"], 3, max_block=12, missing="separate", by="text"),
        Microaggregation([["x"], ["y"]], 3, method="optimal", missing="separate"),
        Mic1D(["number"], 20),
        RankSwap(["x", "y", "text"], 20, by="number"),
    ],
    ids=lambda spec: spec.describe().partition(",")[0],
)
def test_files_hold_what_the_accessor_returns(tmp_path: Path, spec: Spec) -> None:
    frame = people().assign(number=lambda each: each["number"] % 2)
    frame["text"] = "part " + (frame["number"] // 3 % 2).astype(str)
    frame.loc[::4, "y"] = np.nan
    write_source(frame, tmp_path / "source")
    random = {"random_state": 4} if spec.draws else {}
    protect(tmp_path / "source", tmp_path / "target", spec, keep="*", order="source", **random)
    released = pd.read_parquet(tmp_path / "target")
    expected = pd.read_parquet(tmp_path / "source").sdc.mask(spec, **random)
    assert_frame_equal(released, expected, check_exact=True)


@pytest.mark.parametrize("empty", ["0.parquet", "9.parquet"])
def test_empty_files(tmp_path: Path, empty: str) -> None:
    frame = people(60)
    write_source(frame, tmp_path / "source", files=1)
    (tmp_path / "source" / "0.parquet").rename(tmp_path / "source" / "5.parquet")
    schema = pq.read_schema(tmp_path / "source" / "5.parquet")
    pq.write_table(schema.empty_table(), tmp_path / "source" / empty)
    with pq.ParquetWriter(tmp_path / "source" / "7.parquet", schema):
        pass  # not even an empty row group
    protect(tmp_path / "source", tmp_path / "target", SPEC, keep="*", order="source")
    released = pd.read_parquet(tmp_path / "target")
    assert_frame_equal(released[["x", "y"]], frame.sdc.mask(SPEC)[["x", "y"]], check_exact=True)
    assert len(list((tmp_path / "target").glob("*.parquet"))) == 3


def test_files_without_records_are_an_error(tmp_path: Path) -> None:
    write_source(people(0), tmp_path / "source")
    for spec in (SPEC, RankSwap(["x"], 5)):
        text = refuse(ValueError, tmp_path / "source", tmp_path / "target", spec)
        assert "no records" in text


def test_bad_values_are_counted_before_anything_is_written(source: Path) -> None:
    bad = people().assign(kept=CANARY)
    bad.loc[[2, 30], "x"] = np.inf
    bad.to_parquet(source / "bad.parquet", index=False)
    text = refuse(ValueError, source, source.parent / "target")
    assert "infinite values in columns: 'x' (2)" in text


@pytest.mark.parametrize("ordered", [True, False])
@pytest.mark.parametrize("by", [None, "kind"])
def test_unused_categories_are_not_released(tmp_path: Path, by: str | None, ordered: bool) -> None:
    used = ["low", "middle", "high"]
    frame = people(60)
    categories = ["low", CANARY_TEXT, "middle", "high", CANARY_TEXT + "2"]
    frame["kind"] = pd.Categorical(np.resize(used, 60), categories=categories, ordered=ordered)
    frame.loc[10:12, "kind"] = np.nan if by is None else "high"
    write_source(frame, tmp_path / "source")
    assert CANARY_TEXT.encode() in raw(tmp_path / "source")
    spec = Microaggregation(["x", "y"], 3, by=by)
    protect(tmp_path / "source", tmp_path / "target", spec, keep="*", order="source")
    assert CANARY_TEXT.encode() not in raw(tmp_path / "target")
    released = pd.read_parquet(tmp_path / "target")
    assert list(released["kind"].cat.categories) == used
    assert released["kind"].cat.ordered == ordered
    assert released["kind"].astype(object).equals(frame["kind"].astype(object))


def test_dropped_columns_leave_no_trace(source: Path) -> None:
    people().assign(text=CANARY_TEXT).to_parquet(source / "3.parquet", index=False)
    target = source.parent / "target"
    protect(source, target, SPEC, drop="text", keep="*")
    assert CANARY_TEXT.encode() in raw(source)
    assert CANARY_TEXT.encode() not in raw(target)
    assert b"person 1" not in raw(target)
    assert pq.read_schema(target / "part-000000.parquet").names == ["x", "kept", "y", "number"]


def test_names_that_are_no_texts_are_in_no_file(source: Path) -> None:
    for name in (1, ("x", "y")):
        with pytest.raises((KeyError, TypeError), match="columns"):
            protect(source, source.parent / "target", Microaggregation(["x", name], 3), keep="*")
    assert not (source.parent / "target").exists()


# Paths


@pytest.mark.parametrize(
    "place", ["source", "source/inside", "source/../source", "source/0.parquet", "link/inside"]
)
def test_a_target_in_the_source_is_an_error(source: Path, place: str) -> None:
    (source.parent / "link").symlink_to(source)
    for replace in (True, False):
        text = refuse(ValueError, source, source.parent / place, replace=replace)
        assert "is the source or lies inside it: choose another directory" in text


def test_a_source_in_the_target_is_an_error(source: Path) -> None:
    for inner in (source, source / "0.parquet"):
        text = refuse(ValueError, inner, source.parent, replace=True)
        assert "lies inside the target: choose another target" in text


def test_a_target_that_exists_is_an_error(source: Path) -> None:
    target = source.parent / "target"
    target.mkdir()
    text = refuse(FileExistsError, source, target)
    assert "exists: choose another name, or replace it with replace=True" in text
    (target / "old.txt").write_text("old")
    text = refuse(FileExistsError, source, target, replace=True)
    assert "a directory without a whole _manifest.json" in text
    (target / "old.txt").unlink()
    for _ in range(2):
        protect(source, target, SPEC, replace=True, keep="*")
        assert (target / "part-000000.parquet").exists()


def test_paths_that_are_not_there(source: Path) -> None:
    folder = source.parent
    text = refuse(FileNotFoundError, source, folder / "nowhere" / "target")
    assert "does not exist: make it" in text
    text = refuse(FileNotFoundError, folder / "nowhere", folder / "target")
    assert "nowhere' does not exist" in text


@pytest.mark.parametrize("name", ["_hidden.parquet", ".hidden.parquet", None])
def test_a_source_without_files_is_an_error(tmp_path: Path, name: str | None) -> None:
    (tmp_path / "empty").mkdir()
    if name:
        people().to_parquet(tmp_path / "empty" / name)
    text = refuse(FileNotFoundError, tmp_path / "empty", tmp_path / "target")
    assert "empty' holds no parquet file" in text


# Schemas


def test_column_names_that_are_not_unique_are_an_error(tmp_path: Path) -> None:
    for double in ("x", "other"):
        columns = [pa.array([CANARY] * 9)] * 4
        table = pa.Table.from_arrays(columns, names=["x", "y", double, "other"])
        pq.write_table(table, tmp_path / "source.parquet")
        text = refuse(ValueError, tmp_path / "source.parquet", tmp_path / "target")
        assert text == f"column names occur more than once: {double}. Rename them."


# Files that cannot be read


def _truncate(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def _empty(file: Path) -> None:
    file.write_bytes(b"")


def _not_parquet(file: Path) -> None:
    file.write_text(f"x,y\n{CANARY},{CANARY_TEXT}\n" * 50)


def _break_footer(file: Path) -> None:
    content = bytearray(file.read_bytes())
    length = int.from_bytes(content[-8:-4], "little")
    content[-8 - length : -8 - length // 2] = b"\xff" * (length - length // 2)
    file.write_bytes(bytes(content))


def _break_column(file: Path, number: int) -> None:
    content = bytearray(file.read_bytes())
    column = pq.read_metadata(file).row_group(0).column(number)
    start = column.dictionary_page_offset or column.data_page_offset
    content[start : start + column.total_compressed_size] = b"\xff" * column.total_compressed_size
    file.write_bytes(bytes(content))


def _break_masked_column(file: Path) -> None:
    _break_column(file, 0)


def _break_kept_column(file: Path) -> None:
    _break_column(file, 4)


@pytest.mark.parametrize(
    "spoil",
    [_truncate, _empty, _not_parquet, _break_footer, _break_masked_column, _break_kept_column],
    ids=lambda spoil: spoil.__name__[1:],
)
def test_a_corrupt_file_is_named(source: Path, spoil: Callable[[Path], None]) -> None:
    file = source / "1.parquet"
    spoil(file)
    text = refuse(ValueError, source, source.parent / "target")
    assert str(file) in text
    assert "truncated, corrupt" in text
