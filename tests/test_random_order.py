"""Rows of a release are in random order across all files, and none is lost on the way."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import sdc_dask
from sdc_dask import Microaggregation, RankSwap
from sdc_dask.engine.batch_files import TableFile, WordFile
from sdc_dask.engine.batches import words_of
from sdc_dask.release import files as files_module
from sdc_dask.release import source as source_module
from sdc_dask.release.categories import Order, merged_orders
from sdc_dask.release.directories import Directories
from sdc_dask.release.shuffle import Shuffle

ROWS = 4_000
SPEC = Microaggregation(["x", "y"], 5)
LEVELS = ["low", "middle", "high"]


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four files of 1,000 rows, of which each is read as a piece, and written as four again."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "x": rng.normal(size=ROWS),
            "y": rng.integers(0, 90, ROWS),
            "number": np.arange(ROWS),
            "text": [f"t{i}" if i % 7 else None for i in range(ROWS)],
            "list": [[i, i % 5] for i in range(ROWS)],
            # No piece has all levels, and the first has the outer ones.
            "level": pd.Categorical(
                np.where(np.arange(ROWS) < 1_000, "high", "middle"), LEVELS, ordered=True
            ),
        }
    )
    frame.loc[::11, "level"] = "low"
    (tmp_path / "source").mkdir()
    for number in range(4):
        part = frame.iloc[1_000 * number : 1_000 * (number + 1)]
        part.to_parquet(tmp_path / "source" / f"{number}.parquet", index=False)
    size = source_module.open_source(tmp_path / "source").size
    monkeypatch.setattr(files_module, "PIECE_BYTES", -(-size // 4))
    return tmp_path / "source"


def released(target: Path) -> pd.DataFrame:
    return pd.read_parquet(target)


def in_one_order(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.sort_values("number").reset_index(drop=True)


@pytest.mark.parametrize("spec", [SPEC, RankSwap(["y"], 10)], ids=["centroids", "swaps"])
def test_rows_are_those_in_the_order_of_the_source(source: Path, spec: Any, scheduler: str) -> None:
    draw = {"random_state": 5} if spec.draws else {}
    for order in ("source", "random"):
        target = source.with_name(f"in-{order}")
        summary = sdc_dask.protect(source, target, spec, keep="*", order=order, **draw)
        assert summary.order == order
        assert sdc_dask.verify(target).ok
    straight, mixed = (released(source.with_name(f"in-{order}")) for order in ("source", "random"))
    assert straight["number"].is_monotonic_increasing
    assert not mixed["number"].is_monotonic_increasing
    assert mixed["level"].cat.ordered
    assert list(mixed["level"].cat.categories) == LEVELS
    # Readers of files with other levels each put these in the order in which they come.
    straight["level"] = straight["level"].cat.reorder_categories(LEVELS)
    pd.testing.assert_frame_equal(in_one_order(mixed), in_one_order(straight))


def test_positions_say_nothing(source: Path) -> None:
    sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*")
    number = released(source.with_name("out"))["number"].to_numpy()
    positions = np.arange(ROWS)
    # By chance one of all rows is where it was, with a deviation of one.
    assert (number == positions).sum() <= 8
    assert abs(np.corrcoef(number, positions)[0, 1]) < 6 / np.sqrt(ROWS)
    # Neighbours of the source are neighbours of the release no more often than others are.
    assert (np.abs(np.diff(number)) == 1).sum() <= 2 + 8 * 2
    # Files have rows of all pieces in equal shares.
    found = pd.crosstab(number // 1_000, positions // 1_000).to_numpy()
    assert ((found - 250) ** 2 / 250).sum() < 40


def test_orders_are_drawn_afresh_whatever_the_seed(source: Path) -> None:
    orders = []
    for name in ("one", "two"):
        target = source.with_name(name)
        sdc_dask.protect(source, target, RankSwap(["y"], 10), keep="*", random_state=1)
        orders.append(released(target))
    assert not orders[0]["number"].equals(orders[1]["number"])
    pd.testing.assert_frame_equal(in_one_order(orders[0]), in_one_order(orders[1]))


def test_files_and_row_groups_are_even(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Nothing of the source: it is cut into one large file and many small ones.
    frame = pd.read_parquet(source)
    for file in source.iterdir():
        file.unlink()
    frame.iloc[:3_000].to_parquet(source / "large.parquet", index=False)
    for start in range(3_000, ROWS, 50):
        part = frame.iloc[start : start + 50]
        part.to_parquet(source / f"small{start}.parquet", index=False)
    monkeypatch.setattr(sdc_dask.release.write, "_GROUP_ROWS", 400)
    size = source_module.open_source(source).size
    monkeypatch.setattr(files_module, "PIECE_BYTES", -(-size // 4))
    summary = sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*")
    assert summary.files == 4
    for file in sorted(source.with_name("out").glob("*.parquet")):
        metadata = pq.read_metadata(file)
        groups = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
        assert abs(sum(groups) - 1_000) < 6 * np.sqrt(750)
        assert len(groups) == 3
        assert max(groups) - min(groups) <= 2


def test_a_row_that_is_lost_or_changed_on_the_way_is_found(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Shuffle.gather

    def twice(table: pa.Table) -> pa.Table:
        return table.take([0, *range(table.num_rows - 1)])

    def other(table: pa.Table) -> pa.Table:
        lists = table.column("list").to_pylist()
        return table.set_column(
            table.column_names.index("list"), "list", pa.array([[0, 0], *lists[1:]])
        )

    for spoil in (twice, other):

        def gather(self: Shuffle, *args: Any, spoil: Any = spoil) -> pa.Table:
            return spoil(real(self, *args))

        monkeypatch.setattr(Shuffle, "gather", gather)
        with dask.config.set(scheduler="sync"), pytest.raises(RuntimeError, match="other rows"):
            sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*")
        assert [path.name for path in source.parent.iterdir()] == ["source"]


def test_a_task_that_runs_again_sends_the_same_rows(tmp_path: Path) -> None:
    rows = pa.table({"x": np.arange(1_000)})
    shuffle = Shuffle.into(str(tmp_path), Directories.one(1_000, 7))
    sent = shuffle.scatter(rows, 3)
    first = [shuffle.gather([sent], number) for number in range(7)]
    assert shuffle.scatter(rows, 3).path == sent.path
    again = [shuffle.gather([sent], number) for number in range(7)]
    assert all(one.equals(other) for one, other in zip(first, again, strict=True))
    assert sorted(pa.concat_tables(first)["x"].to_pylist()) == list(range(1_000))
    assert shuffle.scatter(rows, 4).receivers <= 7
    assert "entropy" not in repr(shuffle)


def test_batches_of_receivers(tmp_path: Path) -> None:
    rows = pa.table({"x": [5, 6, 7, 8], "y": ["a", None, "c", "d"]})
    file = TableFile.write(str(tmp_path / "file"), rows, np.array([2, 0, 2, 9]))
    assert file.schema == rows.schema
    read = {number: file.read(number, rows.schema) for number in range(12)}
    assert [number for number, batches in read.items() if batches] == [0, 2, 9]
    assert [batch.to_pydict() for batch in read[2]] == [{"x": [5, 7], "y": ["a", "c"]}]
    nobody = TableFile.write(str(tmp_path / "none"), rows.slice(0, 0), np.array([], np.int64))
    assert nobody.read(0, rows.schema) == []
    assert nobody.schema == rows.schema
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "none"]


def test_batches_of_words(tmp_path: Path) -> None:
    keys, odd = np.array([3, -1, 2**62, 0]), np.array([-0.0, np.nan, 1.5, -np.inf])
    file = WordFile.write(str(tmp_path / "file"), [keys, odd], np.array([2, 0, 2, 9]))
    read = {number: file.read(number) for number in range(12)}
    assert [number for number, words in read.items() if len(words)] == [0, 2, 9]
    assert read[2].view(np.int64)[:, 0].tolist() == [3, 2**62]
    assert np.array_equal(read[2][:, 1], odd[[0, 2]].view(np.uint64))
    nobody = WordFile.write(str(tmp_path / "none"), [keys[:0]], np.array([], np.int64))
    assert nobody.read(0).shape == (0, 1)


def test_words_are_never_taken_for_others(tmp_path: Path) -> None:
    to, keys = np.zeros(2, np.int64), np.arange(2)
    one = WordFile.write(str(tmp_path / "one"), [keys, np.array([1.0, 2.0])], to)
    whole = WordFile.write(str(tmp_path / "whole"), [keys, np.array([1, 2])], to)
    table = TableFile.write(str(tmp_path / "table"), pa.table({"key": keys, "v": [1, 2]}), to)
    for other in (whole, table):
        for files in ([one, other], [other, one]):
            with pytest.raises(RuntimeError, match="not the same dtypes in all partitions"):
                words_of(files, 0)


def test_a_file_of_batches_that_was_cut_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file"
    file = WordFile.write(str(path), [np.arange(100)], np.arange(100) % 7)
    path.write_bytes(path.read_bytes()[:-1])
    assert len(file.read(5)) == 14
    with pytest.raises(RuntimeError, match="cut short"):
        file.read(6)


def test_orders_of_categories_are_merged() -> None:
    def order(*values: str, used: int | None = None) -> dict[str, Order]:
        return {"x": Order(pa.array(values), pa.array(values[:used]))}

    one, two = order("low", "high"), order("low", "middle", "high", "never", used=2)
    assert merged_orders([one, two, one])["x"].to_pylist() == LEVELS
    assert merged_orders([two])["x"].to_pylist() == LEVELS[:2]
    with pytest.raises(ValueError, match="'x' has ordered categories") as caught:
        merged_orders([one, order("high", "low")])
    assert "low" not in str(caught.value)


def test_an_order_that_there_is_not(source: Path) -> None:
    with pytest.raises(ValueError, match="order must be one of 'random', 'source'"):
        sdc_dask.protect(source, source.with_name("out"), SPEC, keep="*", order="sorted")


def test_what_is_measured(source: Path) -> None:
    target = source.with_name("out")
    summary = sdc_dask.protect(source, target, SPEC, keep="*", measure=True)
    score, gap = summary.measured
    straight = source.with_name("straight")
    sdc_dask.protect(source, straight, SPEC, keep="*", order="source")
    original, masked = pd.read_parquet(source), pd.read_parquet(straight)
    assert score == original.sdc.score(masked, ["x", "y"], knows=SPEC)
    assert f"information loss {score.il:.2f}" in repr(summary)
    assert score.strongest in repr(summary)
    assert gap.sse == pytest.approx(original.sdc.sse(masked, ["x", "y"]).sse)
    # It says how well rows are hidden, and is no part of the release.
    assert summary.to_dict()["measured"][0]["dr"] == score.dr
    assert "dr" not in (target / "_manifest.json").read_text()
    file = source.with_name("internal.json")
    summary.write(file)
    assert file.stat().st_mode & 0o777 == 0o600
    assert '"dr"' in file.read_text()


def test_what_cannot_be_measured_is_a_warning(source: Path) -> None:
    frame = pd.read_parquet(source / "0.parquet").drop(columns=["list", "text"])
    frame["x"] = frame["x"].where(frame.index % 3 > 0)
    frame.to_parquet(source.with_name("gaps.parquet"), index=False)
    spec = Microaggregation(["x", "y"], 5, missing="separate")
    with pytest.warns(UserWarning, match="could not be measured"):
        summary = sdc_dask.protect(
            source.with_name("gaps.parquet"), source.with_name("out"), spec, keep="*", measure=True
        )
    assert summary.measured == ()
    assert sdc_dask.verify(source.with_name("out")).ok
