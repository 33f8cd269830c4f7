"""Frames that are not the same each time that they are computed: refused, or masked rightly.

All runs in this thread, where partitions are computed in one order: a test decides which of the
passes sees what has changed.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from sdc_dask import FuzzyMicroaggregation, Mic1D, Microaggregation, RankSwap, SdcError, Spec

# For all of the module: a filter that is set in one thread may be taken back in another, where
# pandas sets its own.
pytestmark = pytest.mark.filterwarnings("ignore:fuzzy microaggregation does not guarantee")

XY = ["x", "y"]
ROADS: dict[str, Spec] = {
    "blocks": Microaggregation(XY, 3, max_block=10),
    "order": Microaggregation(["x"], 3, method="optimal"),
    "projection": Microaggregation(XY, 3, method="pcp"),
    "cells": Mic1D(XY, 10),
    "exchange": RankSwap(["x"], 30),
    "swap in blocks": RankSwap(XY, 50, blocking="tree", max_block=10),
    "fuzzy": FuzzyMicroaggregation(XY, 3, 1.5, 1.2),
}
PARTS, ROWS = 3, 8


@pytest.fixture(autouse=True)
def _in_this_thread() -> Iterator[None]:
    with dask.config.set(scheduler="sync"):
        yield


def stable_part(number: int) -> pd.DataFrame:
    """Return some records; what they are goes along in columns that are not masked."""
    rng = np.random.default_rng(number)
    frame = pd.DataFrame(rng.normal(size=(ROWS, 2)), columns=XY).assign(part=[0, 1] * (ROWS // 2))
    return frame.assign(old_x=frame["x"], old_y=frame["y"], number=number * ROWS + np.arange(ROWS))


def _shuffled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[[3, 0, 1, 2, 7, 6, 5, 4]]


def _other_values(frame: pd.DataFrame) -> pd.DataFrame:
    # Other records within the old bounds.
    x = np.roll(frame["x"].to_numpy(), 1)
    return frame.assign(x=x, old_x=x)


def _other_strata(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(part=1 - frame["part"])


def _fewer_rows(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[:6]


def _no_rows(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.iloc[:0]


def _more_rows(frame: pd.DataFrame) -> pd.DataFrame:
    return pd.concat([frame, frame.iloc[:2]], ignore_index=True)


def _twice_the_rows(frame: pd.DataFrame) -> pd.DataFrame:
    # More than there are numbers for.
    return pd.concat([frame, frame], ignore_index=True)


def _beyond_the_bounds(frame: pd.DataFrame) -> pd.DataFrame:
    x = 100 * frame["x"] + 5
    return frame.assign(x=x, old_x=x)


def _missing(frame: pd.DataFrame) -> pd.DataFrame:
    x = frame["x"].where(np.arange(len(frame)) > 0)
    return frame.assign(x=x, old_x=x)


CHANGES: dict[str, Callable[[pd.DataFrame], pd.DataFrame]] = {
    change.__name__[1:]: change
    for change in (
        *(_shuffled, _other_values, _other_strata, _beyond_the_bounds, _missing),
        *(_fewer_rows, _no_rows, _more_rows, _twice_the_rows),
    )
}
# All changes of what goes to blocks and of what is exchanged; some on every other road. Roads that
# have most of their way in common with another are long tests.
SOME = ["shuffled", "other_values", "fewer_rows"]
FULL = ("blocks", "exchange")
LONG = ("projection", "swap in blocks")
roads_and_changes = pytest.mark.parametrize(
    ("road", "change"),
    [
        pytest.param(road, change, marks=pytest.mark.soak if road in LONG else ())
        for road in ROADS
        for change in (CHANGES if road in FULL else SOME)
    ],
)


class Unstable:
    """Partitions, of which one changes when it was computed so many times."""

    def __init__(self, change: str, after: float, number: int = 1) -> None:
        self.change, self.after, self.number = CHANGES[change], after, number
        self.computed: Counter[int] = Counter()

    def partition(self, number: int) -> pd.DataFrame:
        times = self.computed[number]
        self.computed[number] += 1
        frame = stable_part(number)
        changes = times >= self.after and number == self.number
        return self.change(frame) if changes else frame

    @property
    def passes(self) -> int:
        return max(self.computed.values(), default=0)


UNSTABLE: list[Unstable] = []


def _read(number: int, which: int, columns: list[str] | None = None) -> pd.DataFrame:
    # Dask passes on which columns it needs: what leaves and what stays is computed apart.
    frame = UNSTABLE[which].partition(number)
    return frame if columns is None else frame[columns]


def frame_of(unstable: Unstable, *, apart: bool) -> dd.DataFrame:
    """Return a frame whose partitions are computed once a pass, or twice in the last."""
    meta = stable_part(0).iloc[:0]
    if apart:
        UNSTABLE.append(unstable)
        return dd.from_map(_read, range(PARTS), which=len(UNSTABLE) - 1, meta=meta)
    parts = [dask.delayed(unstable.partition, pure=False)(number) for number in range(PARTS)]
    return dd.from_delayed(parts, meta=meta, verify_meta=False)


def run(frame: Any, spec: Spec) -> Any:
    return frame.sdc.mask(spec, random_state=1 if spec.draws else None)


@functools.cache
def passes_of(spec: Spec) -> int:
    """Return how many passes over the data are made before the last."""
    unstable = Unstable("no_rows", after=np.inf)
    run(frame_of(unstable, apart=True), spec)
    return unstable.passes


def check(result: pd.DataFrame, spec: Spec) -> None:
    """Check that a result is right for the records that it has."""
    old = result.assign(x=result["old_x"], y=result["old_y"])
    if not spec.draws:
        for columns in spec.column_sets if spec.promise else ():
            groups = result.groupby([*columns, *spec.by])
            assert groups.size().min() >= 3
            means = groups[[f"old_{column}" for column in columns]].transform("mean")
            np.testing.assert_allclose(means, result[list(columns)], atol=1e-12)
        if spec.promise is None:
            assert_frame_equal(result, run(old, spec), check_exact=True)
    elif spec.moves:
        for column in spec.masked:
            assert sorted(result[column]) == sorted(result[f"old_{column}"])
    else:
        assert np.isfinite(result[XY]).all(axis=None)
        low, high = old[XY].min(), old[XY].max()
        assert (result[XY] >= low - 1e-9).all(axis=None)
        assert (result[XY] <= high + 1e-9).all(axis=None)


def refused(call: Callable[[], Any]) -> bool:
    """Whether a call ends in the error that says what to do."""
    try:
        call()
    except RuntimeError as error:
        assert isinstance(error, SdcError)
        assert "not the same each time that it is computed" in str(error)
        assert "mask df.persist(), or write it to files first" in str(error)
        return True
    return False


@roads_and_changes
def test_a_change_behind_what_has_left_is_refused(road: str, change: str) -> None:
    spec = dataclasses.replace(ROADS[road], by="part")
    # The last pass computes a partition twice: as it leaves, and where its values come back to.
    unstable = Unstable(change, after=passes_of(spec) + 1)
    lazy = run(frame_of(unstable, apart=True), spec)
    assert refused(lazy.compute)
    assert unstable.computed[1] == passes_of(spec) + 2


@roads_and_changes
def test_a_change_between_passes_is_refused_or_masked_rightly(road: str, change: str) -> None:
    by = {"by": "part"} if change == "other_strata" else {}
    spec = dataclasses.replace(ROADS[road], **by)
    passes = passes_of(spec)
    results = []
    for after in range(1, passes + 1):
        frame = frame_of(Unstable(change, after), apart=False)
        if not refused(lambda frame=frame: results.append(run(frame, spec).compute())):
            check(results[-1], spec)
    # What has other values or rows than those that were scanned is always found.
    if change in ("beyond_the_bounds", "missing", "fewer_rows", "more_rows", "twice_the_rows"):
        assert not results or road == "exchange"


def test_rows_that_stay_at_their_blocks_are_checked_too() -> None:
    spec = ROADS["blocks"]
    for change, after in itertools.product(("fewer_rows", "beyond_the_bounds"), (1, 2)):
        frame = frame_of(Unstable(change, after), apart=False)
        assert refused(lambda frame=frame: frame.sdc.mask(spec, keep_order=False).compute())


def test_values_that_crowd_together_do_not_make_blocks_below_k() -> None:
    reads = itertools.count()

    def part(_number: int, name: str) -> pd.DataFrame:
        # Scanned and counted as it is, then masked as what it became.
        return pd.DataFrame({"x": np.linspace(0, 1, 200) ** (1 if next(reads) < 2 else 9)})

    for keep_order in (True, False):
        frame = dd.from_map(
            part, [0], name=str(keep_order), meta=pd.DataFrame({"x": [0.0]}).iloc[:0]
        )
        reads = itertools.count()
        masked = frame.sdc.microaggregate(["x"], 5, max_block=20, keep_order=keep_order)
        assert refused(masked.compute)


@pytest.mark.long_on_cluster
def test_what_is_persisted_is_masked(scheduler: str) -> None:
    def draw(_number: int, columns: list[str] | None = None) -> pd.DataFrame:
        rng = np.random.default_rng()
        frame = pd.DataFrame(rng.normal(size=(ROWS, 2)), columns=XY)
        frame = frame.assign(part=0, old_x=frame["x"], old_y=frame["y"], number=0)
        return frame if columns is None else frame[columns]

    frame = dd.from_map(draw, range(PARTS), meta=stable_part(0).iloc[:0])
    with dask.config.set(scheduler=None if scheduler == "cluster" else "threads"):
        assert refused(lambda: run(frame, ROADS["blocks"]).compute())
        once = frame.persist()
        result = run(once, ROADS["blocks"]).compute()
        check(result, ROADS["blocks"])
        assert_frame_equal(result[["old_x", "old_y"]], once[["old_x", "old_y"]].compute())


def test_rows_in_another_order_each_time_are_refused() -> None:
    # As after Dask's shuffle on disk, whose order depends on which task comes first.
    times = itertools.count()

    def part(number: int, columns: list[str] | None = None) -> pd.DataFrame:
        frame = pd.DataFrame({"x": np.arange(100.0) + 100 * number})
        frame = frame.sample(frac=1.0, random_state=next(times))
        return frame.assign(old=frame["x"])[columns or ["x", "old"]]

    meta = pd.DataFrame({"x": [0.0], "old": [0.0]}).iloc[:0]
    frame = dd.from_map(part, range(3), meta=meta)
    assert refused(lambda: frame.sdc.microaggregate(["x"], 3).compute())
    result = frame.persist().sdc.microaggregate(["x"], 3).compute()
    assert (result["x"] - result["old"]).abs().max() <= 4
