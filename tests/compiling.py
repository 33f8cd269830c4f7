"""Compile kernels before the tests run, each in one of the processes that run them.

Without this, every process compiles the same kernels at about the same time, for minutes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from pathlib import Path

import dask
import numpy as np
import pandas as pd

import sdc_dask
from sdc_dask import Microaggregation, RankSwap
from sdc_dask.kernels.classes import class_sizes_of

N = 3_000


def _frame() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    return pd.DataFrame(rng.normal(size=(N, 2)), columns=["x", "y"])


def _trees() -> None:
    # The two methods have the tree of live records in common.
    frame = _frame()
    frame.sdc.microaggregate(["x", "y"], k=3, blocking=None)
    frame.sdc.microaggregate(["x", "y"], k=3, method="vmdav", blocking=None)


def _small_blocks() -> None:
    frame = _frame().head(300)
    frame.sdc.microaggregate(["x", "y"], k=3, max_block=50).sdc.anonymity(["x"])
    frame.sdc.microaggregate(["x", "y"], k=3, method="vmdav")


def _orders() -> None:
    frame = _frame().head(300)
    frame.sdc.microaggregate(["x", "y"], k=3, method="pcp")
    frame.sdc.microaggregate([["x"], ["y"]], k=3, method="optimal")
    frame.sdc.mic1d(["x", "y"], kappa=50)


def _fuzzy() -> None:
    for m1 in (1.5, 1.0):
        _frame().head(300).sdc.fuzzy_microaggregate(["x", "y"], 3, m1, 1.2, random_state=0)


def _swaps() -> None:
    frame = _frame().head(300)
    frame.sdc.rank_swap(["x", "y"], p=5, random_state=0)
    frame.sdc.rank_swap(["x"], p=5, method="distribution", random_state=0)
    frame.sdc.rank_swap(["x"], method="buckets", buckets=5, random_state=0)


def _attacks() -> None:
    frame, spec = _frame().head(300), RankSwap(["x", "y"], p=5)
    frame.sdc.attack(frame.sdc.mask(spec, random_state=0), knows=spec)


def _alignment() -> None:
    frame, spec = _frame().head(300), Microaggregation([["x"], ["y"]], 3, method="optimal")
    frame.sdc.attack(frame.sdc.mask(spec), knows=spec)


def _loss() -> None:
    frame = _frame().head(300)
    frame.sdc.information_loss(frame.sdc.microaggregate(["x", "y"], k=3))
    frame.sdc.interval_disclosure(frame)


def _bounds() -> None:
    frame, spec = _frame(), RankSwap(["x", "y"], p=5)
    frame.sdc.linkage(frame, "distance", blocking="tree", max_block=500)
    frame.sdc.linkage(frame, "rank_swap", knows=spec, blocking="tree", max_block=500)


def _classes() -> None:
    class_sizes_of(np.zeros((3, 2), np.uint64), 0)


def _missing() -> None:
    frame = _frame().head(300)
    frame.loc[::7, "x"] = np.nan
    frame.sdc.microaggregate(["x", "y"], k=3, missing="separate", max_block=50)


def _few_values() -> None:
    frame = _frame().round()
    frame.sdc.linkage(frame, "probabilistic", tolerance=0)


def _series() -> None:
    frame = sdc_dask.datasets.panel(300, 8).compute(scheduler="sync")
    frame.sdc.series_score(frame, list(frame))


# The longest first; what has trees in common with those that are compiled first, late.
WORK: list[Callable[[], None]] = [
    *(_trees, _fuzzy, _loss, _series, _small_blocks, _swaps, _attacks),
    *(_few_values, _orders, _bounds, _alignment, _missing, _classes),
]


def compile_together(meeting: Path) -> None:
    """Compile what no other process has begun, and wait until all is compiled."""
    with warnings.catch_warnings(action="ignore"), dask.config.set(scheduler="sync"):
        for work in WORK:
            if _is_first(meeting / f"begun{work.__name__}"):
                work()
                (meeting / f"compiled{work.__name__}").touch()
    deadline = time.monotonic() + 120
    while len(list(meeting.glob("compiled_*"))) < len(WORK) and time.monotonic() < deadline:
        time.sleep(0.1)


def _is_first(path: Path) -> bool:
    """Make a file, and tell whether no other process has made it."""
    try:
        path.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True
