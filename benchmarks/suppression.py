"""Local suppression: suppressed cells of reference data, and time by the number of rows.

reference  cells by column for k = 2, 3, 5 and 10, beside the records that are rare: a cell of each
           of these is the least there can be where a missing cell is a value of its own
growth     CPU seconds and memory of a made-up survey of 1 and 10 million rows, recoded and
           suppressed, lazily from the partitions that make it
"""

from __future__ import annotations

import os
import resource
import time
from pathlib import Path
from typing import Any

import pandas as pd
from common import parser, save, show

import sdc_dask
from sdc_dask import Recode, Suppress

DATA = Path(os.environ.get("SDC_DASK_DATA", Path(__file__).parents[2] / "shared" / "data"))
KEYS = ["urbrur", "roof", "walls", "water", "electcon", "sex"]
PLAN = [
    Recode(["age"], top=85),
    Suppress(["sex", "age", "region", "occupation"], k=5),
]


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    arguments.add_argument("--rows", nargs="+", type=int, default=[1_000_000, 10_000_000])
    options = arguments.parse_args()
    rows = [100_000, 200_000] if options.quick else options.rows
    for part in options.parts:
        table = PARTS[part](rows)
        save(f"suppression_{part}" + ("_quick" if options.quick else ""), {part: table})


def reference(_rows: list[int]) -> list[dict[str, Any]]:
    """Suppress cells of the test data of sdcMicro."""
    path = DATA / "sdcmicro_testdata.csv"
    if not path.exists():
        print(f"no reference data: {path.name} is not in SDC_DASK_DATA")
        return []
    frame = pd.read_csv(path)
    table = []
    for k in (2, 3, 5, 10):
        rare = int((frame.groupby(KEYS)["sex"].transform("size") < k).sum())
        for missing in ("value", "matches"):
            start = time.process_time()
            masked = frame.sdc.suppress(KEYS, k, missing=missing)
            seconds = time.process_time() - start
            cells = masked[KEYS].isna().sum()
            smallest = int(masked.groupby(KEYS, dropna=False).size().min())
            table.append(
                {"k": k, "missing": missing, "rare": rare, "cells": int(cells.sum())}
                | cells.to_dict()
                | {"smallest class": smallest, "seconds": seconds}
            )
    show(f"{len(frame):,} records of sdcMicro's test data", table)
    return table


def growth(rows: list[int]) -> list[dict[str, Any]]:
    """Suppress cells of surveys that grow."""
    table = []
    for n in rows:
        frame = sdc_dask.datasets.survey(n, seed=1)[["sex", "age", "region", "occupation"]]
        start = time.process_time()
        made = frame.map_partitions(len).sum().compute()
        making = time.process_time() - start
        start = time.process_time()
        masked = frame.sdc.mask(PLAN)
        planning = time.process_time() - start
        start = time.process_time()
        missing = masked.isna().sum().sum().compute()
        applying = time.process_time() - start
        cells = int(missing - frame.isna().sum().sum().compute())
        reached = masked.sdc.anonymity(list(masked.columns))
        table.append(
            {
                "rows": int(made),
                "making": making,
                "planning": planning,
                "masking": applying,
                "microseconds per row": 1e6 * (planning + applying) / n,
                "cells": cells,
                "classes": reached.classes,
                "k reached": reached.k_min,
                "peak MB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3,
            }
        )
    show("a survey, recoded and suppressed: CPU seconds", table)
    return table


PARTS = {"reference": reference, "growth": growth}

if __name__ == "__main__":
    main()
