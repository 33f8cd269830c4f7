"""Calls, routes and passes: what is done with partitions is the same at once and as tasks."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask.delayed import Delayed
from dask.highlevelgraph import HighLevelGraph
from distributed.utils import key_split_group

from sdc_dask.engine.frames import (
    Calls,
    fold,
    from_partitions,
    is_dask,
    map_partitions,
    map_reduce,
    meta_of,
    on_cluster,
    partitions,
)
from sdc_dask.errors import SdcRuntimeError

both = pytest.mark.parametrize("lazy", [True, False], ids=["tasks", "at once"])


def add(first: Any, second: Any) -> Any:
    return first + second


def join(parts: list[list[int]]) -> list[int]:
    return [each for part in parts for each in part]


@both
def test_calls_of_calls(lazy: bool) -> None:
    call = Calls(lazy)
    shared = call.share([10])
    summed = call(add, call(add, [1], [2]), shared)
    assert isinstance(summed, Delayed) == lazy
    assert call.compute(summed) == [1, 2, 10]
    assert call.compute(call.persist(summed)) == [1, 2, 10]
    assert call.compute(call(add, [call.share(3)], [summed])) == [3, [1, 2, 10]]


def test_what_waits_brings_no_graph() -> None:
    call = Calls(lazy=True)
    task = call(add, 1, 2)
    name = call.wait_for(task)
    assert (name.key, dict(name.dask)) == (task.key, {})
    assert Calls(lazy=False).wait_for(3) == 3


def test_dask_sees_which_tasks_are_alike() -> None:
    call = Calls(lazy=True)
    groups = [key_split_group(call(function, 1).key) for function in (abs, abs, round)]
    assert groups[0] == groups[1] != groups[2]
    assert groups[0] != key_split_group(Calls(lazy=True)(abs, 1).key)


@both
@pytest.mark.parametrize("count", [1, 2, 16, 17, 300])
def test_partial_results_are_merged_in_order(lazy: bool, count: int) -> None:
    call = Calls(lazy)
    partials = [call(add, [number], []) for number in range(count)]
    assert call.compute(call.merge(partials, join)) == list(range(count))


def keyed(n: int) -> pd.DataFrame:
    """Return rows with unique keys in random order, and a payload of several dtypes."""
    rng = np.random.default_rng(n)
    frame = pd.DataFrame({"key": rng.permutation(3 * n)[:n], "v0": rng.normal(size=n)})
    frame["text"] = pd.array([f"t{key}" if key % 5 else None for key in frame["key"]], "string")
    return frame.assign(whole=pd.array(np.where(frame["key"] % 7, frame["key"], None), "Int64"))


def test_routes_are_exact(scheduler: str) -> None:
    frame = keyed(500)
    parts = [frame.iloc[begin : begin + 90] for begin in range(0, 500, 90)]
    divisions = [0, 1, 400, 410, 1_000, 1_500]
    call = Calls(lazy=True)
    tasks = [call(add_nothing, part) for part in parts]
    routed = call.compute(call(list, call.route(tasks, frame.iloc[:0], divisions)))
    assert len(routed) == len(divisions) - 1
    for part, low, high in zip(routed, divisions[:-1], divisions[1:], strict=True):
        assert part.index.is_monotonic_increasing
        assert ((part.index >= low) & (part.index < high)).all()
    expected = frame.set_index("key").sort_index()
    pd.testing.assert_frame_equal(pd.concat(routed), expected)
    (at_once,) = Calls(lazy=False).route([frame], frame.iloc[:0], divisions)
    pd.testing.assert_frame_equal(at_once, expected)


@pytest.mark.parametrize("key", [-1, 1_500])
def test_rows_that_no_partition_expects_are_an_error(scheduler: str, key: int) -> None:
    frame = keyed(20).assign(key=lambda each: each["key"].where(each.index > 0, key))
    call = Calls(lazy=True)
    with pytest.raises(SdcRuntimeError, match="beyond all partitions"):
        call.compute(
            call(list, call.route([call(add_nothing, frame)], frame.iloc[:0], [0, 9, 1_500]))
        )


def add_nothing(part: pd.DataFrame) -> pd.DataFrame:
    return part


def see(part: pd.DataFrame, number: int, label: str) -> list[tuple[int, str, list[int]]]:
    return [(number, label, part["x"].tolist())]


def see_two(first: pd.DataFrame, second: pd.DataFrame, number: int) -> list[tuple[int, list, list]]:
    return [(number, first["x"].tolist(), second["x"].tolist())]


def test_a_pass_goes_through_partitions_in_order(scheduler: str) -> None:
    frame = pd.DataFrame({"x": range(40)})
    lazy = dd.from_pandas(frame, npartitions=20)
    assert map_reduce(frame, see, join, "one") == [(0, "one", list(range(40)))]
    expected = [(i, "many", [2 * i, 2 * i + 1]) for i in range(20)]
    assert map_reduce(lazy, see, join, "many") == expected
    assert map_reduce([lazy, lazy + 1], see_two, join)[3] == (3, [6, 7], [7, 8])
    assert fold(frame, see, join, "one") == [(0, "one", list(range(40)))]
    assert sorted(fold(lazy, see, join, "many")) == expected


def test_frames_side_by_side_have_equal_partitions() -> None:
    frame = pd.DataFrame({"x": range(40)})
    frames = [dd.from_pandas(frame, npartitions=n) for n in (2, 4)]
    with pytest.raises(ValueError, match="zip"):
        map_partitions(frames, see_two)


def test_partitions_are_the_same_for_every_choice_of_columns(tmp_path: Path) -> None:
    wide = pd.DataFrame({f"c{i}": np.arange(120) for i in range(30)}).assign(x=np.arange(120))
    dd.from_pandas(wide, npartitions=12).to_parquet(tmp_path / "wide", write_index=False)
    frame = dd.read_parquet(tmp_path / "wide", filesystem="arrow")
    # Dask's optimizer merges the partitions of files of which few columns are read.
    assert frame[["x"]].map_partitions(len).optimize().npartitions < 12
    whole = [part.compute()["x"].tolist() for part in partitions(frame)]
    assert [len(part) for part in whole] == [10] * 12
    for choice in (frame[["x"]], frame[["c3", "x"]], frame[frame["x"] >= 0][["x"]]):
        assert [part.compute()["x"].tolist() for part in partitions(choice)] == whole


def test_frames_of_partitions() -> None:
    frame = pd.DataFrame({"x": range(12)}, index=pd.RangeIndex(10, 22))
    lazy = dd.from_pandas(frame, npartitions=3)
    assert (is_dask(frame), is_dask(lazy)) == (False, True)
    pd.testing.assert_frame_equal(meta_of(frame), meta_of(lazy), check_index_type=False)
    made = from_partitions(partitions(lazy), meta_of(lazy), lazy)
    assert made.divisions == lazy.divisions
    pd.testing.assert_frame_equal(made.compute(), frame)
    moved = from_partitions(partitions(lazy)[::-1], meta_of(lazy), lazy, in_place=False)
    assert not moved.known_divisions
    assert from_partitions([frame], meta_of(frame), frame) is frame


def test_where_computations_go(scheduler: str) -> None:
    assert on_cluster() == (scheduler == "cluster")


def test_graphs_grow_with_partitions_and_not_with_their_square(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The time of a call is that of its own task: no graph is merged, culled or walked through.
    walked: list[int] = []
    cull = HighLevelGraph.cull

    def count(self: HighLevelGraph, *args: Any) -> HighLevelGraph:
        walked.append(len(self))
        return cull(self, *args)

    monkeypatch.setattr(HighLevelGraph, "cull", count)
    call = Calls(lazy=True)
    tasks = [call(max, number, 3) for number in range(200)]
    pairs = [call(sum, [one, other]) for one, other in itertools.pairwise(tasks)]
    total = call(sum, pairs)
    assert walked == []
    assert len(call.graph) == 200 + 199 + 1
    values = [max(number, 3) for number in range(200)]
    assert call.compute(total) == sum(one + other for one, other in itertools.pairwise(values))


def test_lists_of_tasks_are_lists_of_results() -> None:
    call = Calls(lazy=True)
    one, two = call(max, 1, 0), call(max, 2, 0)
    assert call.compute(call(_as_given, [one, two], 5, [two, 9], [3], (4,))) == (
        ([1, 2], 5, [2, 9], [3], (4,))
    )
    assert call.compute([one, [two]]) == [1, [2]]


def _as_given(*args: Any) -> tuple[Any, ...]:
    return args


def test_what_is_persisted_is_not_computed_again(scheduler: str) -> None:
    call = Calls(lazy=True)
    begun = call.persist([call(time.time_ns), [call(time.time_ns)]])
    first = call.compute(begun)
    again = call.compute([call(max, begun[0], 0), [call(max, [begun[1][0], 0])]])
    assert first == again
    # Another object's tasks, too.
    assert Calls(lazy=True).compute(Calls(lazy=True)(max, begun[0], 0)) == first[0]
