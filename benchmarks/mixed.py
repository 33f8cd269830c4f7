"""Mixed columns: k that is reached, what is lost, cells that change, and what blocks cost.

reference    Adult and the test data of sdcMicro, 8 columns, k = 3, 5, 10: masked as a whole, and
             numbers alone within combinations of the other columns, as far as these have k records
blocking     Adult, k = 5: loss in blocks of a 2^d-tree over all columns, beside no blocking
kernel       MDAV by number of categories: a scan of categories beside one of one-hot coordinates

The loss is the squared distance between records and what became of them, as a share of that to
one group of all. What is reached is counted on the files of a release, where all columns are
masked. Times are those of one core, of masking. Reference data is read from
SDC_DASK_DATA.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import run_parts, show

import sdc_dask
from sdc_dask.kernels.grid import centred
from sdc_dask.kernels.mdav import mdav, mdav_brute
from sdc_dask.kernels.nominal import Nominal

EDUCATION = [
    *("Preschool", "1st-4th", "5th-6th", "7th-8th", "9th", "10th", "11th", "12th", "HS-grad"),
    *("Some-college", "Assoc-voc", "Assoc-acdm", "Bachelors", "Masters", "Prof-school"),
    "Doctorate",
]
# By data set: numbers, ordered columns, nominal ones.
SETS: dict[str, tuple[list[str], dict[str, list[Any]], list[str]]] = {
    "adult": (
        ["age", "hours_per_week"],
        {"education": EDUCATION},
        ["workclass", "marital_status", "occupation", "race", "sex"],
    ),
    "sdcmicro_testdata": (
        ["age", "income"],
        {"walls": [2, 3, 9]},
        ["urbrur", "roof", "water", "relat", "sex"],
    ),
}
Rows = list[dict[str, Any]]


def reference(quick: bool) -> Rows:
    """Mask the reference data as a whole, and as those do who mask numbers alone."""
    rows = []
    for name, (numbers, orders, nominal) in SETS.items():
        frame = _read(name, quick)
        columns = [*numbers, *orders, *nominal]
        others = [*orders, *nominal]
        for k in (3, 5, 10):
            seconds, masked = _timed(frame, columns, k, orders=orders, nominal=nominal)
            rows.append(
                {"data": name, "records": len(frame), "way": "mixed", "k": k}
                | {"reached": _on_files(frame, columns, k, orders=orders, nominal=nominal)}
                | {
                    "loss %": 100 * _loss(frame, masked, name),
                    "seconds": seconds,
                    "left out %": 0.0,
                }
                | {
                    f"changed {each}": f"{(masked[each] != frame[each]).mean():.0%}"
                    for each in others
                }
            )
            size = frame.groupby(others, observed=True)[others[0]].transform("size")
            kept = frame[size >= k]
            seconds, masked = _timed(kept, numbers, k, by=others)
            rows.append(
                {"data": name, "records": len(frame), "way": "numbers, by", "k": k}
                | {"reached": masked.sdc.anonymity(columns).k_min}
                | {"loss %": 100 * _loss(kept, masked, name), "seconds": seconds}
                | {"left out %": 100 * (1 - len(kept) / len(frame))}
            )
    # Columns of two data sets: a table for each.
    for name in SETS:
        show(f"Mixed microaggregation of {name}", [row for row in rows if row["data"] == name])
    return rows


def blocking(quick: bool) -> Rows:
    """Mask in blocks of several sizes."""
    numbers, orders, nominal = SETS["adult"]
    frame = _read("adult", quick)
    columns = [*numbers, *orders, *nominal]
    rows: Rows = []
    for size in (None, 20_000, 5_000, 1_000, 200):
        options: dict[str, Any] = {"blocking": None} if size is None else {"max_block": size}
        seconds, masked = _timed(frame, columns, 5, orders=orders, nominal=nominal, **options)
        loss = _loss(frame, masked, "adult")
        rows.append({"max_block": size or "none", "loss %": 100 * loss, "seconds": seconds})
        rows[-1]["times the loss"] = loss / rows[0]["loss %"] * 100
    show("Blocks of mixed columns, k = 5", rows)
    return rows


def kernel(quick: bool) -> Rows:
    """Group records with nominal columns of more and more categories."""
    rng = np.random.default_rng(0)
    n, rows = 2_000 if quick else 20_000, []
    points = rng.normal(size=(n, 4))
    for categories in (3, 10, 100, 1_000, 10_000):
        codes = rng.integers(0, categories, (4, n))
        codes = np.stack([np.unique(each, return_inverse=True)[1] for each in codes])
        start = time.process_time()
        mdav(points, 5, Nominal(codes, np.ones(4)))
        row = {"records": n, "categories": categories, "scan s": time.process_time() - start}
        if categories <= 10:
            wide = [np.eye(each.max() + 1)[each] / np.sqrt(2) for each in codes]
            wide_points = centred(np.ascontiguousarray(np.hstack([points, *wide])))
            start = time.process_time()
            mdav_brute(wide_points, 5)
            row["one-hot s"] = time.process_time() - start
        rows.append(row)
    show("MDAV of 4 numbers and 4 nominal columns, k = 5", rows)
    return rows


PARTS = {"reference": reference, "blocking": blocking, "kernel": kernel}


def _read(name: str, quick: bool) -> pd.DataFrame:
    folder = Path(os.environ.get("SDC_DASK_DATA", Path(__file__).parents[2] / "shared" / "data"))
    numbers, orders, nominal = SETS[name]
    frame = pd.read_csv(folder / f"{name}.csv")[[*numbers, *orders, *nominal]]
    texts = frame.select_dtypes(exclude="number").columns
    frame[texts] = frame[texts].fillna("?")
    return frame.head(2_000) if quick else frame


def _on_files(frame: pd.DataFrame, columns: list[str], k: int, **options: Any) -> int:
    """Return the k that a release has, as it is counted on its files."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        frame.to_parquet(folder / "source.parquet", index=False)
        spec = sdc_dask.Microaggregation(columns, k, **options)
        summary = sdc_dask.protect(folder / "source.parquet", folder / "release", spec)
    return summary.anonymity[0].k_min


def _timed(frame: pd.DataFrame, *args: Any, **options: Any) -> tuple[float, pd.DataFrame]:
    frame.head(200).sdc.microaggregate(list(args[0]), 2, **_for_few(options))  # compiles
    start = time.process_time()
    masked = frame.sdc.microaggregate(*args, **options)
    return time.process_time() - start, masked


def _for_few(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if name != "by"}


def _loss(frame: pd.DataFrame, masked: pd.DataFrame, name: str) -> float:
    """Return the squared distance to what records became, as a share of that to one group."""
    numbers, orders, nominal = SETS[name]
    lost = total = 0.0
    for column in [*numbers, *orders]:
        old, new = frame[column], masked[column]
        if column in orders:
            rank = {value: place for place, value in enumerate(orders[column])}
            old, new = old.map(rank), new.map(rank)
        deviation = old.std(ddof=0)
        lost += float((((old - new) / deviation) ** 2).sum())
        total += len(frame)
    for column in nominal:
        lost += float((frame[column] != masked[column]).sum())
        total += float((frame[column] != frame[column].mode()[0]).sum())
    return lost / total


if __name__ == "__main__":
    run_parts("mixed", __doc__, PARTS)
