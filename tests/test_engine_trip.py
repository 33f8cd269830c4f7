"""Trips: columns leave, are masked, and come back to their rows, or there is an error."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdc_dask import Microaggregation, RankSwap, SdcError, Spec
from sdc_dask.engine.batches import send
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.destinations import Destinations, check_positions, checksum_of
from sdc_dask.engine.frames import Calls, partitions
from sdc_dask.engine.row_ids import RowIds, check_bits, partitions_wanted
from sdc_dask.engine.spool import WriteSpool, gather_spool
from sdc_dask.engine.trip import Step, put_home, stay_in_blocks, travel_home, travel_to_files

N = 24


@dataclass(frozen=True)
class Places(Destinations):
    """Sends every third row to the same place, with a column of any dtype."""

    columns: tuple[str, ...]
    row_ids: RowIds
    by: tuple[str, ...] = ()

    def depart(self, part: pd.DataFrame, number: int) -> tuple[np.ndarray, pd.Series]:
        ids = self.row_ids.ids(number, len(part))
        return self.row_ids.key(ids % 3, ids), part[self.columns[0]].reset_index(drop=True)

    def divisions(self, _n_partitions: int) -> list[int]:
        return self.row_ids.first_keys([0, 1, 3])

    def checksum(self, part: pd.DataFrame, values: Any = None) -> np.uint64:
        return checksum_of(np.empty((len(part), 0)), part, self.columns)

    def restore(self, part: pd.DataFrame, back: pd.DataFrame, *, moved: bool) -> list[Any]:
        check_positions(back, np.arange(len(part)))
        return [back["v0"].astype(part[self.columns[0]].dtype)]


@dataclass(frozen=True)
class Unmasked:
    """Gives values back as they came; loses, doubles or exchanges some if it is told to."""

    spoil: str = ""

    def run(self, call: Calls, parts: list[Any], row_ids: RowIds, then: Any) -> list[Any]:
        return [
            call(_same, part, number, row_ids, then, self.spoil)
            for number, part in enumerate(parts)
        ]


def _same(part: pd.DataFrame, number: int, row_ids: RowIds, then: Any, spoil: str) -> Any:
    _, rows = row_ids.split(part.index.to_numpy())
    values = part["v0"].reset_index(drop=True)
    places = np.arange(len(rows))
    if number == 0 and spoil:
        places = {"lost": places[1:], "doubled": np.append(places, 0)}[spoil]
    return then(rows[places], values.take(places).reset_index(drop=True), number)


PAYLOADS: dict[str, Any] = {
    "floats": np.where(np.arange(N) % 5, np.arange(N) / 3, np.nan),
    "integers": np.arange(N) + 2**60,
    "nullable": pd.array([None if i % 4 == 0 else i for i in range(N)], "Int64"),
    "texts": pd.array([None if i % 4 == 0 else f"é{i}" for i in range(N)], "string[pyarrow]"),
    "categories": pd.Categorical([["b", "a", None][i % 3] for i in range(N)], ["b", "a", "never"]),
    "dates": pd.date_range("2020-01-01", periods=N, tz="Europe/Madrid"),
    "durations": pd.to_timedelta(np.arange(N), "h"),
    "truth": pd.array([[True, False, None][i % 3] for i in range(N)], "boolean"),
    "arrow dates": pd.array(range(N), pd.ArrowDtype(pa.date32())),
}


def planned(frame: Any, rows: list[int], spoil: str = "") -> Step:
    return Step(Places(("p",), RowIds.of(rows)), Unmasked(spoil), moved=True)


@pytest.mark.parametrize("payload", PAYLOADS)
def test_any_payload_goes_there_and_back(payload: str) -> None:
    frame = pd.DataFrame({"p": PAYLOADS[payload], "kept": np.arange(N)}, index=np.arange(N) * 2)
    home = put_home(frame, [travel_home(frame, planned(frame, [N]))])
    pd.testing.assert_frame_equal(home, frame)
    lazy = dd.from_pandas(frame, npartitions=4)
    trip = travel_home(lazy, planned(lazy, [6] * 4))
    result = put_home(lazy, [trip])
    pd.testing.assert_frame_equal(result.compute(), frame)
    pd.testing.assert_frame_equal(result._meta, frame.iloc[:0])
    assert result.divisions == lazy.divisions


def test_payloads_travel_on_a_cluster_too(scheduler: str) -> None:
    for payload in ("nullable", "texts", "dates"):
        frame = pd.DataFrame({"p": PAYLOADS[payload], "kept": np.arange(N)})
        lazy = dd.from_pandas(frame, npartitions=4)
        result = put_home(lazy, [travel_home(lazy, planned(lazy, [6] * 4))])
        pd.testing.assert_frame_equal(result.compute(), frame)


@pytest.mark.parametrize("spoil", ["lost", "doubled"])
def test_rows_that_are_lost_or_doubled_are_refused(spoil: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"p": np.arange(float(N))})
    lazy = dd.from_pandas(frame, npartitions=4)
    result = put_home(lazy, [travel_home(lazy, planned(lazy, [6] * 4, spoil))])
    with pytest.raises(RuntimeError, match="rows were lost or doubled on their way") as caught:
        result.compute()
    assert isinstance(caught.value, SdcError)
    step = planned(lazy, [6] * 4, spoil)
    trip = travel_to_files(lazy, step, *_folders(tmp_path))
    spool = trip.back.compute()
    with pytest.raises(RuntimeError, match=r"rows were lost or doubled|came back twice"):
        step.restore(frame.iloc[:6], spool.fetch(0), step.destinations.checksum(frame.iloc[:6]))


def test_a_partition_that_changed_is_refused() -> None:
    frame = pd.DataFrame({"p": PAYLOADS["texts"], "kept": np.arange(N)})
    step = planned(frame, [N])
    trip = travel_home(frame, step)
    (back,), (checksum,) = trip.back, trip.checksums
    assert step.restore(frame, back, checksum)["p"].tolist() == frame["p"].tolist()
    others = [frame.iloc[::-1], frame.assign(p=frame["p"].fillna("other")), frame.iloc[:-1]]
    for other in others:
        with pytest.raises(RuntimeError, match="other values, or another order") as caught:
            step.restore(other, back, checksum)
        assert "mask df.persist()" in str(caught.value)


def test_checksums_see_values_bits_and_order() -> None:
    frame = pd.DataFrame({"x": [0.0, 1.0, np.nan], "y": [1.0, 0.0, 2.0], "t": ["a", "b", None]})
    others = [
        frame.iloc[[1, 0, 2]],
        frame.assign(x=[-0.0, 1.0, np.nan]),
        frame.assign(x=frame["y"], y=frame["x"]),
        frame.assign(t=["a", None, "b"]),
        frame.assign(t=["b", "a", None]),
        pd.concat([frame, frame.iloc[:1]]),
    ]

    def of(each: pd.DataFrame) -> int:
        return int(checksum_of(to_float(each, ["x", "y"]), each, ["t"]))

    sums = {of(each) for each in (frame, *others)}
    assert len(sums) == 1 + len(others)
    same = frame.set_axis([7, 8, 9])
    assert of(same) == of(frame)


# All endings


@pytest.mark.parametrize(
    "spec",
    [
        Microaggregation(["x", "y"], 3, max_block=15),
        RankSwap(["x", "y"], 30, blocking="tree", max_block=15),
    ],
    ids=["means", "moved"],
)
def test_all_endings_give_the_same_values(scheduler: str, spec: Spec, tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({"x": rng.normal(size=70), "y": rng.integers(0, 9, 70), "id": range(70)})
    lazy = dd.from_pandas(frame, npartitions=5)
    (step,) = spec.plan(lazy, 5)
    home = put_home(lazy, [travel_home(lazy, step)]).compute()
    (alone,) = spec.plan(frame, 5)
    pd.testing.assert_frame_equal(put_home(frame, [travel_home(frame, alone)]), home)

    stayed = stay_in_blocks(lazy, step).compute()
    assert stayed["id"].tolist() != list(range(70))
    pd.testing.assert_frame_equal(stayed.sort_index(), home)
    pd.testing.assert_frame_equal(stay_in_blocks(frame, alone), stayed)

    trip = travel_to_files(lazy, step, *_folders(tmp_path))
    call = Calls(lazy=True)
    spool, checksums = call.compute(call(_pair, trip.back, trip.checksums))
    for number, part in enumerate(partitions(lazy)):
        arrays = step.restore(part.compute(), spool.fetch(number), checksums[number])
        begin = sum(map(len, [each.compute() for each in partitions(lazy)[:number]]))
        for name, array in arrays.items():
            expected = home[name].iloc[begin : begin + len(array)]
            np.testing.assert_array_equal(np.asarray(array), expected.to_numpy())


def _folders(path: Path) -> list[str]:
    folders = [path / "masked", path / "originals"]
    for folder in folders:
        folder.mkdir()
    return list(map(str, folders))


def _pair(first: Any, second: Any) -> tuple[Any, Any]:
    return first, second


def test_blocks_that_get_other_rows_are_refused() -> None:
    frame = dd.from_pandas(pd.DataFrame({"x": np.arange(40.0)}), npartitions=4)
    (step,) = Microaggregation(["x"], 3, max_block=10).plan(frame)
    fewer = dataclasses.replace(step.destinations, counts=step.destinations.counts + 1)
    with pytest.raises(RuntimeError, match="rows came to blocks of"):
        stay_in_blocks(frame, dataclasses.replace(step, destinations=fewer)).compute()


# Spools


SPOOLED: dict[str, pa.DataType] = {
    "texts": pa.string(),
    "integers": pa.int64(),
    "small": pa.int8(),
    "dates": pa.date32(),
    "times": pa.timestamp("us", tz="UTC"),
    "truth": pa.bool_(),
    "single": pa.float32(),
    "double": pa.float64(),
}


@pytest.mark.parametrize("kind", SPOOLED)
def test_spools_hold_any_dtype_for_several_homes(kind: str, tmp_path: Path) -> None:
    row_ids = RowIds.of([5, 0, 7])
    rows = np.concatenate([row_ids.ids(0, 5), row_ids.ids(2, 7)])
    numbers = pa.array(np.arange(12) % 2 if kind == "truth" else np.arange(12))
    numbers = numbers.cast(pa.int32()) if kind == "dates" else numbers
    values = pd.Series(numbers.cast(SPOOLED[kind]), dtype=pd.ArrowDtype(SPOOLED[kind]))
    write = WriteSpool(str(tmp_path), row_ids)
    order = np.random.default_rng(1).permutation(12)
    files = [
        write(rows[some], values.take(some).reset_index(drop=True), number)
        for number, some in enumerate((order[:4], order[4:4], order[4:]))
    ]
    # A task that runs twice writes the same file.
    files[0] = write(rows[order[:4]], values.take(order[:4]).reset_index(drop=True), 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["000000", "000001", "000002"]
    spool = gather_spool(files, row_ids)
    for home, (begin, end) in enumerate(((0, 5), (5, 5), (5, 12))):
        fetched = spool.fetch(home)
        assert fetched.index.tolist() == list(range(end - begin))
        expected = values.iloc[begin:end].tolist()
        assert fetched["v0"].astype(values.dtype).tolist() == expected


@pytest.mark.parametrize("kind", ["numbers", *SPOOLED])
def test_rows_are_routed_through_files_as_by_a_shuffle(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    keys = rng.permutation(60)
    keys[keys >= 7] += 10
    if kind == "numbers":
        values: dict[str, Any] = {"v0": rng.normal(size=60), "v1": np.arange(60)}
        values["v0"][:5] = np.nan
    else:
        numbers = pa.array(np.arange(60) % 2 if kind == "truth" else np.arange(60))
        numbers = numbers.cast(pa.int32()) if kind == "dates" else numbers
        values = {"v0": pd.Series(numbers.cast(SPOOLED[kind]), dtype=pd.ArrowDtype(SPOOLED[kind]))}
    whole = pd.DataFrame({"key": keys} | values)
    frame = dd.from_pandas(whole, npartitions=4)
    divisions = [0, 7, 17, 50, 70]  # nothing goes to the second
    found = []
    for folder in (str(tmp_path), None):
        call = Calls(lazy=True, folder=folder)
        parts = call.route(partitions(frame), whole.iloc[:0], divisions)
        found.append(call.compute(call(list, parts)))
    assert [len(part) for part in found[0]] == [7, 0, 33, 20]
    for by_files, shuffled in zip(*found, strict=True):
        pd.testing.assert_frame_equal(by_files, shuffled)


def test_rows_beyond_all_partitions_are_not_routed(tmp_path: Path) -> None:
    for key in (-1, 3):
        rows = pd.DataFrame({"key": [0, key], "v0": [1.0, 2.0]})
        with pytest.raises(SdcError, match="beyond all partitions"):
            send(rows, str(tmp_path / "file"), [0, 2, 3])


def test_rows_in_two_files_of_a_spool_are_refused(tmp_path: Path) -> None:
    row_ids = RowIds.of([5])
    write = WriteSpool(str(tmp_path), row_ids)
    ids, values = row_ids.ids(0, 5), np.arange(10.0).reshape(5, 2)
    files = [write(ids[:3], values[:3], 0), write(ids[2:], values[2:], 1)]
    with pytest.raises(RuntimeError, match="1 masked rows came back twice") as caught:
        gather_spool(files, row_ids).fetch(0)
    assert isinstance(caught.value, SdcError)
    whole = gather_spool([write(ids[::-1].copy(), values[::-1].copy(), 2)], row_ids).fetch(0)
    np.testing.assert_array_equal(whole.to_numpy(), values)


# Row ids


def test_row_ids_hold_partition_and_position() -> None:
    row_ids = RowIds.of([3, 0, 1_000])
    for number, count in enumerate([3, 0, 1_000]):
        ids = row_ids.ids(number, count)
        assert (row_ids.partition(ids) == number).all()
        assert np.array_equal(row_ids.position(ids), np.arange(count))
        place, back = row_ids.split(row_ids.key(np.full(count, 9), ids))
        assert (place == 9).all()
        assert np.array_equal(back, ids)
    assert row_ids.divisions(3) == sorted(set(row_ids.divisions(3)))


def test_places_that_cannot_be_numbered_are_refused() -> None:
    row_ids = RowIds.of([2**40])
    check_bits(2**20, row_ids)
    with pytest.raises(ValueError, match="more than can be numbered"):
        check_bits(2**40, row_ids)
    assert partitions_wanted(10, 1, 40) == 16
    assert partitions_wanted(10**9, 4, 2) > 1_000
