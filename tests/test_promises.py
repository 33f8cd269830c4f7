"""What protect promises: the files hold what was asked for, whatever the source does."""

from __future__ import annotations

import logging
import os
import traceback
from collections import Counter
from pathlib import Path
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import default_client

import sdc_dask
from sdc_dask import FuzzyMicroaggregation, Mic1D, Microaggregation, RankSwap, SdcError, Spec
from sdc_dask.engine import spool
from sdc_dask.release import files as files_module

CANARY = "Zx9canaryQ7"

pytestmark = pytest.mark.filterwarnings("ignore:fuzzy microaggregation does not guarantee")


def refuse(error: type[Exception], folder: Path, specs: Any, **options: Any) -> str:
    """Expect that a source is refused, that nothing is left of it, and give the text."""
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(error) as caught:
        sdc_dask.protect(folder / "in.parquet", folder / "out", specs, **{"keep": "*"} | options)
    assert sorted(path.name for path in folder.iterdir()) == before
    assert isinstance(caught.value, SdcError)
    # A log would show the errors that led to it, too.
    assert CANARY not in "".join(traceback.format_exception(caught.value))
    return str(caught.value)


# Several maskings


@pytest.fixture
def survey(tmp_path: Path) -> Path:
    """A survey of three files."""
    path = tmp_path / "survey"
    sdc_dask.datasets.survey(1_500, npartitions=3).to_parquet(path, write_index=False)
    return path


SPECS: list[Spec] = [
    Microaggregation(["income", "tax"], 5, by="region"),
    RankSwap(["age", "interview"], 5, by="sex"),
    Mic1D(["wealth"], 100),
    FuzzyMicroaggregation(["hours"], 3, 1.5, 1.2),
]


def test_maskings_of_every_kind_at_once(scheduler: str, survey: Path) -> None:
    target = survey.with_name("release")
    summary = sdc_dask.protect(
        survey, target, SPECS, drop="person", random_state=7, keep="*", order="source"
    )
    original = dd.read_parquet(survey).compute()
    expected = original.sdc.mask(SPECS, random_state=7).drop(columns="person")
    result = dd.read_parquet(target).compute()
    pd.testing.assert_frame_equal(result, expected, check_exact=True)
    masked = [name for spec in SPECS for name in spec.masked]
    assert all(not result[name].equals(original[name]) for name in masked)

    assert [each.spec for each in summary.masked] == SPECS
    assert [each.checked for each in summary.masked] == ["k", "values", "rows", "rows"]
    assert [each.k_min >= 5 for each in summary.anonymity] == [True]
    assert summary.anonymity[0] == result.sdc.anonymity(["income", "tax", "region"], k=5)
    assert summary.joint == result.sdc.anonymity([*masked, "region", "sex"])
    shown = repr(summary)
    assert "k        5 reached, 5 asked for; counted on the files" in shown
    assert "values   those of the source, at other records; compared on the files" in shown
    assert shown.count("No k is promised") == 3
    assert "7" not in [str(value) for value in summary.to_dict().values()]


def test_a_list_of_one_is_the_one(survey: Path) -> None:
    for number, specs in enumerate((SPECS[1], [SPECS[1]])):
        sdc_dask.protect(
            survey,
            survey.with_name(f"out{number}"),
            specs,
            random_state=3,
            keep="*",
            order="source",
        )
    first, second = (dd.read_parquet(survey.with_name(f"out{n}")).compute() for n in (0, 1))
    pd.testing.assert_frame_equal(first, second)


def test_a_fresh_draw_each_time(survey: Path) -> None:
    for number in (0, 1):
        sdc_dask.protect(survey, survey.with_name(f"out{number}"), SPECS[1], keep="*")
    first, second = (dd.read_parquet(survey.with_name(f"out{n}")).compute() for n in (0, 1))
    assert not first["age"].equals(second["age"])


# Values that change places are those of the source


def write_numbers(folder: Path) -> None:
    table = pa.table({"x": np.arange(40.0), "t": [f"t{i}" for i in range(40)], "g": [0, 1] * 20})
    pq.write_table(table, folder / "in.parquet")


@pytest.mark.parametrize("column", ["x", "t"])
@pytest.mark.parametrize("spoil", ["lost", "other stratum"])
def test_a_value_that_is_not_of_the_source_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, column: str, spoil: str
) -> None:
    write_numbers(tmp_path)
    real = spool.WriteSpool.__call__

    def corrupt(self: spool.WriteSpool, rows: Any, values: pd.Series, number: int) -> Any:
        places = np.arange(len(values))
        # Another value comes twice, or values of the lowest and the highest stratum are exchanged.
        places[[0, -1]] = [-1, -1] if spoil == "lost" else [-1, 0]
        return real(self, rows, values.take(places).reset_index(drop=True), number)

    spec = RankSwap([column], 20, by="g")
    # In this thread, where what is patched is seen.
    with dask.config.set(scheduler="sync"):
        with monkeypatch.context() as patch:
            patch.setattr(spool.WriteSpool, "__call__", corrupt)
            text = refuse(RuntimeError, tmp_path, spec)
        sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")
    assert "1 columns whose values were to change places have other values in the files" in text


def test_means_of_extremes_are_no_values_of_the_source(tmp_path: Path) -> None:
    write_numbers(tmp_path)
    spec = RankSwap(["x"], 20, top=10)
    summary = sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")
    assert [each.checked for each in summary.masked] == ["rows"]
    assert pq.read_table(tmp_path / "out")["x"].to_numpy().max() == 37.5


# Strata as a reader of the files tells them apart


def bits_of(column: pa.ChunkedArray) -> list[Any]:
    """Return floats by their bits, with null apart from everything."""
    kind = {"float": np.uint32, "double": np.uint64}.get(str(column.type))
    if kind is None:
        return column.to_pylist()
    valid = column.is_valid().to_numpy()
    numbers = column.fill_null(0).to_numpy().view(kind).tolist()
    return [number if there else None for number, there in zip(numbers, valid, strict=True)]


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
@pytest.mark.parametrize("by", [["g"], ["g", "h"]], ids=str)
def test_k_is_what_a_reader_of_the_files_counts(
    tmp_path: Path, kind: pa.DataType, by: list[str]
) -> None:
    # Three records with NaN and three with null, three with each sign of zero.
    odd = [float("nan")] * 3 + [None] * 3 + [-0.0] * 3 + [0.0] * 3 + [1.0] * 6
    table = pa.table({"x": np.arange(18.0), "g": pa.array(odd, kind), "h": ["one"] * 18})
    pq.write_table(table, tmp_path / "in.parquet")
    spec = Microaggregation(["x"], 4, by=by)
    summary = sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")
    released = pq.read_table(tmp_path / "out")
    cells = zip(*(bits_of(released[name]) for name in ("x", *by)), strict=True)
    counts = Counter(cells)
    assert min(counts.values()) >= 4
    assert summary.anonymity[0].k_min == min(counts.values())
    assert summary.anonymity[0].classes == len(counts)
    assert Counter(bits_of(released["g"])) == {
        None: 6,
        0: 6,
        bits_of(pa.chunked_array([pa.array([1.0], kind)]))[0]: 6,
    }


@pytest.mark.parametrize("kind", [pa.float64(), pa.float32()], ids=str)
def test_kept_floats_have_one_zero_and_one_nan(tmp_path: Path, kind: pa.DataType) -> None:
    word = np.uint64 if kind == pa.float64() else np.uint32
    one = np.array([np.nan], kind.to_pandas_dtype()).view(word)
    marked = (one + word(77)).view(kind.to_pandas_dtype())  # a NaN that tells one record
    values = np.concatenate([[-0.0, 0.0, np.nan, 2.5], marked]).astype(kind.to_pandas_dtype())
    values[-1:] = marked
    kept = pa.array(np.tile(values, 2), kind, mask=np.arange(10) == 9)
    pq.write_table(pa.table({"x": np.arange(10.0), "kept": kept}), tmp_path / "in.parquet")
    sdc_dask.protect(
        tmp_path / "in.parquet", tmp_path / "out", Microaggregation(["x"], 3), keep="*"
    )
    released = pq.read_table(tmp_path / "out")["kept"]
    assert released.null_count == 1
    found = Counter(bits_of(released))
    assert found == {None: 1, 0: 4, int(one[0]): 3, int(values[3:4].view(word)[0]): 2}


# A source that changes


def test_rows_that_change_places_while_they_are_masked_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    table = pa.table({"x": rng.normal(size=50), "person": np.arange(50)})
    source = tmp_path / "in.parquet"
    plain = {"compression": "none", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, source, **plain)
    real = files_module.scatter_piece

    def reorder(*args: Any) -> Any:
        before = source.stat()
        pq.write_table(table.take(np.arange(50)[::-1].copy()), tmp_path / "other", **plain)
        source.write_bytes((tmp_path / "other").read_bytes())
        (tmp_path / "other").unlink()
        os.utime(source, ns=(before.st_atime_ns, before.st_mtime_ns))
        after = source.stat()
        assert (after.st_size, after.st_ino) == (before.st_size, before.st_ino)
        assert after.st_mtime_ns == before.st_mtime_ns
        return real(*args)

    monkeypatch.setattr(files_module, "scatter_piece", reorder)
    with dask.config.set(scheduler="sync"):
        for spec in (Microaggregation(["x"], 5), RankSwap(["x"], 20), Mic1D(["x"], 10)):
            text = refuse(RuntimeError, tmp_path, spec)
            assert "other values, or another order, than when its rows left" in text
            pq.write_table(table, source, **plain)


# Values that cannot be compared or averaged


def not_utf8(n: int) -> pa.Array:
    """Return texts of which the last is not UTF-8."""
    texts = [b"fine"] * (n - 1) + [CANARY.encode() + b"\xff\xfe"]
    return pa.array(texts, pa.binary()).view(pa.string())


@pytest.mark.parametrize(
    "spec",
    [Microaggregation(["x"], 3, by="t"), RankSwap(["x"], 20, by="t"), RankSwap(["t"], 20)],
    ids=["by", "by of a swap", "swapped"],
)
def test_texts_that_are_not_utf8_are_not_shown(
    scheduler: str, tmp_path: Path, spec: Spec, caplog: pytest.LogCaptureFixture
) -> None:
    pq.write_table(pa.table({"x": np.arange(20.0), "t": not_utf8(20)}), tmp_path / "in.parquet")
    with caplog.at_level(logging.DEBUG):
        text = refuse(ValueError, tmp_path, spec)
    assert "column 't' of file" in text
    assert "texts that are not UTF-8" in text
    logs = caplog.text
    if scheduler == "cluster":
        logs += str(default_client().get_worker_logs())
        assert "not UTF-8" in logs
    assert CANARY not in logs


def test_texts_that_are_not_utf8_are_kept_as_they_are(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(20.0), "t": not_utf8(20)})
    pq.write_table(table, tmp_path / "in.parquet")
    sdc_dask.protect(
        tmp_path / "in.parquet",
        tmp_path / "out",
        Microaggregation(["x"], 3),
        keep="*",
        order="source",
    )
    released = pq.read_table(tmp_path / "out")["t"].combine_chunks()
    assert (
        released.view(pa.binary()).to_pylist()
        == table["t"].combine_chunks().view(pa.binary()).to_pylist()
    )


@pytest.mark.parametrize(
    "values", [[[CANARY]] * 12, [{"a": CANARY}] * 12], ids=["lists", "structs"]
)
def test_strata_of_lists_and_structs_are_refused(tmp_path: Path, values: list) -> None:
    pq.write_table(pa.table({"x": np.arange(12.0), "g": values}), tmp_path / "in.parquet")
    for spec in (Microaggregation(["x"], 3, by="g"), RankSwap(["x"], 50, by="g")):
        text = refuse(TypeError, tmp_path, spec)
        assert "column 'g' of `by` has dtype" in text
        assert "cannot be compared" in text


def test_infinite_extremes_have_no_mean(tmp_path: Path) -> None:
    x = np.arange(40.0)
    x[[3, 7]] = [np.inf, -np.inf]
    pq.write_table(pa.table({"x": x}), tmp_path / "in.parquet")
    text = refuse(ValueError, tmp_path, RankSwap(["x"], 20, top=10))
    assert "column 'x' has 1 infinite values among its extremes" in text
    text = refuse(ValueError, tmp_path, RankSwap(["x"], 20, bottom=10))
    assert "leave out bottom=" in text
    sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", RankSwap(["x"], 20), keep="*")


def test_booleans_are_the_same_beside_missing_ones(tmp_path: Path) -> None:
    (tmp_path / "source").mkdir()
    for number, flags in enumerate([[True] * 10, [True] * 5 + [None] * 5]):
        table = pa.table({"x": np.arange(10.0), "flag": pa.array(flags, pa.bool_())})
        pq.write_table(table, tmp_path / "source" / f"{number}.parquet")
    spec = sdc_dask.Microaggregation(["x"], 5)
    for order in ("source", "random"):
        target = tmp_path / f"in-{order}"
        summary = sdc_dask.protect(
            tmp_path / "source", target, spec, keep="flag", count=[["flag"]], order=order
        )
        found = summary.known["flag",]
        assert (found.classes, found.k_min) == (2, 5)
