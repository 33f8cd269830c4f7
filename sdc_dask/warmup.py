"""Compile kernels ahead of their first use: for images, and for workers that share a cache.

numba compiles a kernel when it is called for the first time, which takes seconds, and keeps it on
disk. Calling all that people call first, with small data, leaves a cache with which the first call
of a process takes no longer than any other.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence

import dask
import numpy as np
import pandas as pd

from sdc_dask import datasets
from sdc_dask.kernels.classes import class_sizes_of
from sdc_dask.kernels.mdav_few import compile_from_now_on
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.rank_swap import RankSwap

FEW = 3_000  # records, which are scanned: so many have no tree
SOME = 15_000  # for which loops over columns are not unrolled
MANY = 20_000  # for which they are


def _frame(records: int = FEW) -> pd.DataFrame:
    return (
        datasets.uniform(records, 2, seed=0).compute(scheduler="sync").set_axis(["x", "y"], axis=1)
    )


def _trees() -> None:
    # The two methods have the tree of live records in common, and what is left in the end is few.
    frame = _frame(SOME)
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


def _samples() -> None:
    frame = _frame().head(300).round(1).assign(w=2.5)
    frame.sdc.sample_risk(["x", "y"], "w", household="x")
    frame.sdc.suda(["x", "y"])


def _mixed() -> None:
    frame = _frame().head(300).assign(c="a")
    frame.sdc.compare({"same": frame}, list(frame))


def _missing() -> None:
    frame = _frame().head(300)
    frame.loc[::7, "x"] = np.nan
    frame.sdc.microaggregate(["x", "y"], k=3, missing="separate", max_block=50)


def _few_values() -> None:
    frame = _frame().round()
    frame.sdc.linkage(frame, "probabilistic", tolerance=0)


def _series() -> None:
    frame = datasets.panel(300, 8).compute(scheduler="sync")
    frame.sdc.series_score(frame, list(frame))


def _refined() -> None:
    frame = _frame().head(300)
    frame.sdc.microaggregate(["x", "y"], k=3, refine=1)
    frame.sdc.sse_bound(["x", "y"], 3)


# What is compiled, in words. The longest first; what has trees in common with those, late.
WORK: dict[str, Callable[[], None]] = {
    "microaggregation": _trees,
    "fuzzy microaggregation": _fuzzy,
    "information loss": _loss,
    "time series": _series,
    "small blocks": _small_blocks,
    "rank swapping": _swaps,
    "attacks on swaps": _attacks,
    "probabilistic linkage": _few_values,
    "orders": _orders,
    "linkage in blocks": _bounds,
    "attacks on microaggregation": _alignment,
    "refinement": _refined,
    "missing cells": _missing,
    "classes": _classes,
    "risk of samples": _samples,
    "columns of every kind": _mixed,
}


def warmup(columns: Sequence[int] = (), say: Callable[[str], None] = lambda text: None) -> None:
    """Compile kernels, those that are compiled already excepted.

    Parameters
    ----------
    columns : sequence of int, optional
        Numbers of columns for which loops are unrolled as well, as they are for 20,000 records and
        more.
    say : callable, optional
        Called with the name of what is compiled next.
    """
    compile_from_now_on()
    with warnings.catch_warnings(action="ignore"), dask.config.set(scheduler="sync"):
        for name, work in WORK.items():
            say(name)
            work()
        for d in columns:
            say(f"microaggregation and linkage of {d} columns")
            frame = datasets.uniform(MANY, d, seed=0).compute()
            for method in ("mdav", "vmdav"):
                frame.sdc.microaggregate(list(frame), 5, method=method, blocking=None)
            masked = frame.sdc.microaggregate(list(frame), 5, blocking=None, refine=1)
            frame.sdc.linkage(masked, sample=10, random_state=0)
