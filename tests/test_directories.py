"""Releases in directories by values of columns: all guarantees hold, with columns from paths."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from s3_server import Store

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, SdcError, cli
from sdc_dask.job import Job
from sdc_dask.release import directories as directories_module
from sdc_dask.release import files as files_module
from sdc_dask.release import source as source_module
from sdc_dask.release.directories import Directories, _paths, level_field, with_levels
from sdc_dask.release.listing import NO_VALUE
from sdc_dask.release.manifest import Manifest, Promise, ReleasedFile, file_digest

pytest_plugins = ["s3_server"]

ROWS = 3_000
SPEC = Microaggregation(["x", "y"], 5, by="region")
REGIONS = ["north", "a b/c", "é%20", "east"]


def people() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "region": pd.Categorical(rng.choice(REGIONS, ROWS, p=[0.7, 0.1, 0.1, 0.1])),
            "x": rng.normal(size=ROWS),
            "y": rng.integers(0, 90, ROWS),
            "sex": rng.integers(1, 3, ROWS),
            "text": [f"t{i}" if i % 7 else None for i in range(ROWS)],
            "list": [[i, i % 5] for i in range(ROWS)],
            "number": np.arange(ROWS),
        }
    )


def written(frame: pd.DataFrame, folder: Path, parts: int = 3) -> Path:
    folder.mkdir()
    for number, rows in enumerate(np.array_split(np.arange(len(frame)), parts)):
        frame.iloc[rows].to_parquet(folder / f"{number}.parquet", index=False)
    return folder


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three files, whose rows fill ten."""
    folder = written(people(), tmp_path / "source")
    size = source_module.open_source(folder).size
    monkeypatch.setattr(files_module, "PIECE_BYTES", -(-size // 10))
    return folder


def in_one_order(frame: pd.DataFrame) -> pd.DataFrame:
    found = frame.sort_values("number").reset_index(drop=True)
    found = found.astype({"region": str, "sex": "int64", "text": str})
    found["list"] = found["list"].map(list)
    return found[sorted(found.columns)]


def files_of(target: Path) -> dict[str, list[Path]]:
    """Return the files of each directory."""
    found: dict[str, list[Path]] = {}
    for path in sorted(target.rglob("*.parquet")):
        found.setdefault(path.parent.relative_to(target).as_posix(), []).append(path)
    return found


# What is released


def test_all_rows_are_in_their_directories(source: Path, scheduler: str) -> None:
    flat, target = source.with_name("flat"), source.with_name("out")
    sdc_dask.protect(source, flat, SPEC, keep="*", order="source")
    summary = sdc_dask.protect(source, target, SPEC, keep="*", partition_by=["region", "sex"])
    assert sdc_dask.verify(target).ok
    expected = in_one_order(pd.read_parquet(flat))
    with dask.config.set(scheduler="threads"):
        readers = [pd.read_parquet(target), dd.read_parquet(target).compute()]
    for found in readers:
        pd.testing.assert_frame_equal(in_one_order(found), expected)
    by_directory = files_of(target)
    assert len(by_directory) == summary.directories == 8
    assert {"region=a%20b%2Fc/sex=1", "region=%C3%A9%2520/sex=2"} < by_directory.keys()
    counts = expected.groupby(["region", "sex"]).size()
    assert summary.smallest_directory == counts.min()
    for files in by_directory.values():
        tables = [pq.ParquetFile(path).read() for path in files]
        for table in tables:
            assert table.column_names == ["x", "y", "text", "list", "number"]
        sizes = np.array([table.num_rows for table in tables])
        mean = sizes.mean()
        assert (np.abs(sizes - mean) <= 6 * np.sqrt(mean)).all()
        numbers = np.concatenate([table["number"].to_numpy() for table in tables])
        assert abs(np.corrcoef(numbers, np.arange(len(numbers)))[0, 1]) < 6 / np.sqrt(len(numbers))
    assert max(map(len, by_directory.values())) > 1
    assert "divided    by region, sex into 8 directories" in repr(summary)
    assert "random, within each directory" in repr(summary)
    assert summary.to_dict()["partition_by"] == ("region", "sex")


def test_footers_say_nothing_of_columns_in_paths(source: Path) -> None:
    target = source.with_name("out")
    sdc_dask.protect(source, target, SPEC, keep="*", partition_by="region")
    for files in files_of(target).values():
        footer = pq.read_metadata(files[0])
        assert b"region" not in footer.metadata[b"pandas"]
    manifest = Manifest.read(target)
    assert list(manifest.schema)[-1] == "region"
    assert manifest.schema["region"] == "string"
    assert manifest.partition_by == ("region",)
    names = {path.relative_to(target).as_posix() for path in target.rglob("*.parquet")}
    assert {file.name for file in manifest.files} == names


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (pa.array([7, -3, None], pa.int64()), pa.int64()),
        (pa.array([2**63, 1, 2], pa.uint64()), pa.uint64()),
        (pa.array([True, False, None]), pa.bool_()),
        (pa.array([0, 20_000, None], pa.date32()), pa.date32()),
        (pa.array(["1", "01", "x"], pa.large_string()), pa.string()),
        (pa.array(["a", None, "b"]).dictionary_encode(), pa.string()),
    ],
    ids=lambda value: str(getattr(value, "type", value)),
)
def test_kinds_of_columns(tmp_path: Path, values: pa.Array, kind: pa.DataType) -> None:
    rows = np.tile(np.arange(3), 20)
    table = pa.table({"x": np.arange(60.0), "g": values.take(rows), "number": np.arange(60)})
    pq.write_table(table, tmp_path / "source.parquet")
    spec = Microaggregation(["x"], 3, by="g")
    target = tmp_path / "out"
    # A column of `by` with missing cells has groups of its own for them.
    with dask.config.set(scheduler="sync"):
        if values.null_count:
            with pytest.warns(UserWarning, match=NO_VALUE):
                sdc_dask.protect(
                    tmp_path / "source.parquet", target, spec, keep="*", partition_by="g"
                )
        else:
            sdc_dask.protect(tmp_path / "source.parquet", target, spec, keep="*", partition_by="g")
        assert sdc_dask.verify(target).ok
        assert Manifest.read(target).schema["g"] == str(kind)
        types = {"g": kind}
        frame = source_module.open_source(target, cast=types).frame(["number"], ["g"]).compute()
    found = frame.sort_values("number")["g"].tolist()
    meant = table["g"].cast(kind).to_pandas(types_mapper=pd.ArrowDtype).tolist()
    assert repr(found) == repr(meant)
    hive = ds.partitioning(pa.schema([("g", kind)]), flavor="hive")
    read = ds.dataset(target, partitioning=hive).to_table().sort_by("number")
    assert read["g"].to_pylist() == table["g"].to_pylist()


def test_missing_values_have_a_directory(tmp_path: Path) -> None:
    frame = people()
    frame["region"] = frame["region"].cat.add_categories("never")
    frame.loc[::3, "region"] = None
    source = written(frame, tmp_path / "source")
    target = tmp_path / "out"
    with pytest.warns(UserWarning, match="records without a value in region"):
        sdc_dask.protect(source, target, SPEC, keep="*", partition_by="region")
    assert f"region={NO_VALUE}" in files_of(target)
    assert "region=never" not in files_of(target)
    assert sdc_dask.verify(target).ok
    hive = ds.partitioning(flavor="hive")
    found = pd.read_parquet(target, partitioning=hive).sort_values("number")
    assert found["region"].isna().tolist() == frame["region"].isna().tolist()
    assert found.groupby(["x", "y", "region"], dropna=False).size().min() >= 5


texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.lists(st.one_of(st.none(), texts), min_size=1, max_size=8))
@settings(max_examples=40, deadline=None)
def test_paths_are_those_of_pyarrow(values: list[str | None]) -> None:
    table = pa.table({"g": pa.array(values, pa.string()), "x": np.arange(len(values))})
    codes, paths = _paths(table, ["g"])
    assert len(set(paths)) == len(set(values))
    hive = ds.partitioning(pa.schema([("g", pa.string())]), flavor="hive")
    field = level_field(table.schema.field("g"))
    for code, value in zip(codes, values, strict=True):
        assert hive.parse(f"/{paths[code]}/part.parquet").equals(
            ds.field("g").is_null() if value is None else ds.field("g") == value
        )
        found = with_levels(table.slice(0, 1).drop_columns("g"), f"{paths[code]}/part", [field])
        assert found["g"].to_pylist() == [value]


# What is refused


def refusal(source: Path, frame: pd.DataFrame | None = None, spec: Any = SPEC, **how: Any) -> str:
    """Return what is said, when nothing is written and no value is shown."""
    if frame is not None:
        source = written(frame, source.with_name("other"))
    target = how.pop("target", source.with_name("out"))
    before = sorted(source.parent.iterdir())
    with dask.config.set(scheduler="sync"), pytest.raises(SdcError) as caught:
        sdc_dask.protect(source, target, spec, **({"keep": "*"} | how))
    assert sorted(source.parent.iterdir()) == before
    text = str(caught.value)
    assert "secret" not in text
    return text


def test_small_directories_are_refused(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_args: Any) -> None:
        raise AssertionError("work began")

    monkeypatch.setattr(sdc_dask.release.protect, "plan", never)
    frame = people()
    frame["group"] = np.where(np.arange(ROWS) < 4, "secret", "others")
    frame.loc[10, "group"] = "secret, too"
    text = refusal(source, frame, partition_by="group")
    assert "2 of 3 directories by group would have fewer than 5 records, the smallest 1" in text


@pytest.mark.parametrize(("rows", "is_small"), [(1, True), (2, False)])
def test_without_a_promise_two_records_are_a_directory(
    source: Path, rows: int, is_small: bool
) -> None:
    frame = people()
    frame["group"] = np.where(np.arange(ROWS) < rows, "secret", "others")
    if is_small:
        text = refusal(source, frame, RankSwap(["y"], 5), partition_by="group")
        assert "fewer than 2 records" in text
    else:
        folder, target = written(frame, source.with_name("other")), source.with_name("out")
        sdc_dask.protect(folder, target, RankSwap(["y"], 5), keep="*", partition_by="group")
        assert sdc_dask.verify(target).ok


def test_the_largest_promise_counts(source: Path) -> None:
    frame = people()
    frame["group"] = np.where(np.arange(ROWS) < 8, "secret", "others")
    specs = [Microaggregation(["x"], 3), Microaggregation(["y"], 9)]
    text = refusal(source, frame, specs, partition_by="group")
    assert "fewer than 9 records, the smallest 8" in text


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"partition_by": "nowhere"}, "partition_by names columns that the source does not have"),
        ({"partition_by": ["sex", "sex"]}, "names a column twice"),
        ({"partition_by": "y"}, "names columns that are masked: y"),
        ({"partition_by": "sex", "drop": "sex"}, "names columns that are dropped: sex"),
        ({"partition_by": "sex", "order": "source"}, "order='source' writes the pieces"),
        ({"partition_by": "list"}, "'list', which is of type list"),
        ({"partition_by": "number"}, "more than 1,000 directories"),
        ({"partition_by": {"sex"}}, "partition_by must be a column name or a list of them"),
    ],
)
def test_what_cannot_be_divided(source: Path, how: dict[str, Any], says: str) -> None:
    assert says in refusal(source, **how)


def test_many_directories_of_several_columns(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directories_module, "MOST", 7)
    assert "more than 7 directories" in refusal(source, partition_by=["sex", "region"])


@pytest.mark.parametrize("name", ["_g", ".g", "a=b", "a/b", "a%20b", "a\nb"])
def test_names_that_readers_do_not_find(source: Path, name: str) -> None:
    frame = people().rename(columns={"sex": name})
    assert "rename the column in the source" in refusal(source, frame, partition_by=name)


@pytest.mark.parametrize("value", ["", NO_VALUE, "secret" * 50])
def test_values_that_are_no_names(source: Path, value: str) -> None:
    frame = people()
    frame["group"] = np.where(frame["sex"] == 1, value, "b")
    text = refusal(source, frame, partition_by="group")
    assert "column 'group' of partition_by has values that no directory can be named by" in text


def test_floats_need_a_cast(source: Path) -> None:
    frame = people()
    frame["half"] = frame["sex"] / 2
    text = refusal(source, frame, partition_by="half")
    assert "cast={'half': 'string'}" in text


def test_targets_named_by_the_column(source: Path) -> None:
    text = refusal(source, partition_by="sex", target=source.with_name("sex=1"))
    assert "lies in a directory of column 'sex'" in text


# What is checked


def test_a_row_in_another_directory_is_found(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Directories.of

    def other(self: Directories, rows: pa.Table) -> np.ndarray:
        found = real(self, rows)
        found[0] = 1 - found[0]
        return found

    monkeypatch.setattr(Directories, "of", other)
    text = refusal(source, partition_by="sex")
    assert "column 'sex' of file 'part-" in text
    assert "was not read back as written" in text


def test_directories_that_are_not_as_counted_are_found() -> None:
    directories = Directories(("g",), {"g=1": 3, "g=2": 4}, (1, 1))
    files = [ReleasedFile("g=1/a", 3, 1, ""), ReleasedFile("g=2/b", 4, 1, "")]
    directories.check(files)
    with pytest.raises(RuntimeError, match="other numbers of rows"):
        directories.check([*files[:1], ReleasedFile("g=1/b", 4, 1, "")])
    with pytest.raises(RuntimeError, match="have other values than at the start"):
        directories.of(pa.table({"g": [1, 3]}))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    source = written(people(), folder / "source")
    with dask.config.set(scheduler="threads"):
        sdc_dask.protect(source, folder / "out", SPEC, keep="*", partition_by="sex")
    return folder / "out"


@pytest.fixture
def release(made: Path, tmp_path: Path) -> Path:
    """A copy of a release in directories."""
    for path in made.rglob("*"):
        if path.is_file():
            copy = tmp_path / "out" / path.relative_to(made)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    return tmp_path / "out"


def _rename(release: Path) -> None:
    (release / "sex=1").rename(release / "sex=3")


def _add_directory(release: Path) -> None:
    (release / "sex=3").mkdir()


def _link(release: Path) -> None:
    (release / "sex=1").rename(release.parent / "elsewhere")
    (release / "sex=1").symlink_to(release.parent / "elsewhere")


def _change(release: Path) -> None:
    path = next((release / "sex=1").iterdir())
    path.write_bytes(path.read_bytes()[:-1] + b"x")


@pytest.mark.parametrize("spoil", [_rename, _add_directory, _link, _change])
def test_what_was_spoilt_is_found(release: Path, spoil: Any) -> None:
    assert sdc_dask.verify(release).ok
    spoil(release)
    assert not sdc_dask.verify(release).ok


@pytest.mark.parametrize("spoil", [_rename, _add_directory, _link])
def test_only_a_release_is_replaced(release: Path, tmp_path: Path, spoil: Any) -> None:
    source = written(people(), tmp_path / "source")
    spoil(release)
    with pytest.raises(FileExistsError, match="with other entries"):
        sdc_dask.protect(source, release, SPEC, keep="*", replace=True)


def test_a_release_is_replaced_in_either_form(release: Path, tmp_path: Path) -> None:
    source = written(people(), tmp_path / "source")
    for levels in (None, "region"):
        sdc_dask.protect(source, release, SPEC, keep="*", partition_by=levels, replace=True)
        assert sdc_dask.verify(release).ok
        assert (release / "region=north").is_dir() == (levels is not None)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


@pytest.mark.parametrize(("columns", "is_kept"), [(("x",), True), (("x", "g"), False)])
def test_k_is_counted_again_with_columns_from_paths(
    tmp_path: Path, columns: tuple[str, ...], is_kept: bool
) -> None:
    table = pa.table({"x": [1.0, 1.0]})
    files = []
    for level in ("g=1", "g=01"):
        (tmp_path / level).mkdir()
        path = tmp_path / level / "part.parquet"
        pq.write_table(table, path)
        files.append(
            ReleasedFile(f"{level}/part.parquet", 2, os.path.getsize(path), file_digest(path))
        )
    schema = pa.schema([("x", pa.float64()), ("g", pa.string())])
    promise = Promise(columns, 4, 4, 1)
    Manifest.of(files, schema, [], [promise], ["g"]).write(tmp_path)
    found = sdc_dask.verify(tmp_path)
    assert found.ok == is_kept
    if not is_kept:
        assert "the smallest of 2 classes has 2 records" in found.failed[0]


def test_manifests_without_directories_are_read(release: Path) -> None:
    values = json.loads(Manifest.read(release).text())
    for name in ("sha256", "partition_by", "log"):
        del values[name]
    from sdc_dask.release.manifest import _digest

    text = json.dumps(values | {"sha256": _digest(values)})
    assert Manifest.parse(text, "there").partition_by == ()


# Stores and surfaces


def test_in_a_store(store: Store, tmp_path: Path) -> None:
    source = written(people(), tmp_path / "source")
    url = f"{store.url}/release"
    options: dict[str, Any] = {"keep": "*", "scratch": tmp_path}
    if store.options:
        options["storage_options"] = store.options
    for column in ("region", "sex"):
        sdc_dask.protect(source, url, SPEC, partition_by=column, replace=column == "sex", **options)
        assert sdc_dask.verify(url, storage_options=store.options).ok
        levels = {name.split("/")[1].split("=")[0] for name in store.contents()}
        assert levels == {"_manifest.json", column}
        place = store.place("release")
        dataset = ds.dataset(place.path, filesystem=place.fs, partitioning="hive")
        found = dataset.to_table().to_pandas().sort_values("number")
        assert found[column].tolist() == people()[column].tolist()
    assert [path.name for path in tmp_path.iterdir()] == ["source"]
    name = next(name for name in store.contents() if "sex=1" in name)
    place = store.place(name)
    place.fs.mv(place.path, place.path.replace("sex=1", "sex=2"))
    assert not sdc_dask.verify(url, storage_options=store.options).ok


def test_jobs_and_flags(tmp_path: Path) -> None:
    job = Job("survey", "release", SPEC, partition_by=["region", "sex"], delta=True)
    assert job.partition_by == ("region", "sex")
    assert Job.from_dict(job.to_dict()) == job
    assert "partition_by" not in Job("survey", "release", SPEC).to_dict()
    with pytest.raises(TypeError, match="partition_by must be a list of column names"):
        Job("survey", "release", SPEC, partition_by="region")
    file = tmp_path / "job.toml"
    arguments = "survey release --columns x,y -k 5 --by region --partition-by region,sex --delta"
    found = CliRunner().invoke(
        cli.protect, [*arguments.split(), "--write-job", str(file)], standalone_mode=False
    )
    assert found.exception is None
    written_job = Job.read(file)
    assert (written_job.partition_by, written_job.delta) == (("region", "sex"), True)
