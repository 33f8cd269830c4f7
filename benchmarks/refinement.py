"""Refinement: how much smaller the SSE becomes, for how much time.

reference    Census and EIA, all columns, k = 3, 5, 10: MDAV, refine=True and "thorough"
strength     uniform data, k = 3, 5, 10: SSE by how often each record is tried elsewhere
survey       datasets.survey, which has few records far out
borders      uniform data: what borders of blocks cost, and what remains of it with borders=True
blocking     Table 3.2 of the 2^d-tree's authors: their SSE, and that of refined groups in blocks

Times are those of one core, of masking alone. Reference data is read from SDC_DASK_DATA.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import pandas as pd
from common import run_parts, show

import sdc_dask
from sdc_dask import Microaggregation
from sdc_dask.engine.frames import Calls
from sdc_dask.utility.sse import SSE

# What the lowest published results and the first sketches of this package have, by data and k.
REFERENCE = {
    ("census", 3): (5.28, 4.83),
    ("census", 5): (8.11, 7.42),
    ("census", 10): (12.29, 11.49),
    ("eia", 3): (0.366, 0.356),
    ("eia", 5): (0.781, 0.734),
    ("eia", 10): (2.00, 1.93),
}
COLUMNS = {
    "census": "AFNLWGT AGI EMCONTRB ERNVAL FEDTAX FICA INTVAL PEARNVAL POTHVAL PTOTVAL STATETAX "
    "TAXINC WSALVAL",
    "eia": "UTILITYID RESREVENUE RESSALES COMREVENUE COMSALES INDREVENUE INDSALES OTHREVENUE "
    "OTHRSALES TOTREVENUE TOTSALES",
}
# Table 3.2, by number of columns: SSE after tree blocking, and the share of it that is asked for.
PUBLISHED = {
    2: (4.55, 0.88),
    3: (593.64, 0.78),
    4: (7953.22, 0.68),
    5: (37269.3, 0.66),
    10: (916119.0, 0.85),
}
Rows = list[dict[str, Any]]


def reference(_quick: bool) -> Rows:
    """Mask the reference data."""
    folder = os.environ.get("SDC_DASK_DATA")
    if folder is None:
        print("\nSDC_DASK_DATA is not set: no reference data.")
        return []
    rows = []
    for (name, k), (asked, best) in REFERENCE.items():
        frame = pd.read_csv(Path(folder) / f"casc_{name}.csv")[COLUMNS[name].split()]
        bound = frame.sdc.sse_bound(list(frame), k, sample=None).bound
        for refine, wanted in ((False, None), (True, asked), ("thorough", best)):
            seconds, found = masked(frame, k, refine=refine, blocking=None)
            rows.append(
                {"data": name, "k": k, "refine": refine}
                | {"SSE/SST %": 100 * found.ratio, "asked": wanted}
                | {"times the bound": found.sse / bound, "seconds": seconds}
            )
    show("Reference data: SSE / SST in percent", rows)
    return rows


def strength(quick: bool) -> Rows:
    """Mask uniform data with more and more sweeps."""
    n = 10_000 if quick else 100_000
    frame = sdc_dask.datasets.uniform(n, 5, seed=0).compute()
    rows = []
    for k in (3, 5, 10):
        first, plain = masked(frame, k, blocking=None)
        for refine in (2, 5, 10, 20, 50, 100, 200, 500):
            seconds, found = masked(frame, k, refine=refine, blocking=None)
            rows.append(
                {"k": k, "sweeps": refine, "SSE %": 100 * (found.sse / plain.sse - 1)}
                | {"seconds": seconds, "times MDAV": seconds / first}
            )
    show(f"Uniform data, {n:,} x 5: SSE below that of MDAV", rows)
    return rows


def survey(quick: bool) -> Rows:
    """Mask a survey."""
    n = 20_000 if quick else 1_000_000
    frame = sdc_dask.datasets.survey(n, seed=1).compute()
    rows = []
    for columns in (["income", "wealth", "age"], ["age", "income"]):
        bound = frame.sdc.sse_bound(columns, 5, sample=5_000, random_state=0).bound
        for refine in (False, True):
            seconds, found = masked(frame[columns], 5, refine=refine)
            rows.append(
                {"columns": ", ".join(columns), "refine": refine, "SSE/SST %": 100 * found.ratio}
                | {"times the bound": found.sse / bound, "seconds": seconds}
            )
    show(f"datasets.survey, {n:,} records, k = 5", rows)
    return rows


def borders(quick: bool) -> Rows:
    """Mask uniform data in blocks, with and without a second pass over other blocks."""
    n = 10_000 if quick else 100_000
    sizes = (500, 2_000) if quick else (1_000, 10_000)
    rows = []
    for d in (2, 3, 5, 10):
        frame = sdc_dask.datasets.uniform(n, d, seed=0).compute()
        _, whole = masked(frame, 5, refine=50, blocking=None)
        _, longer = masked(frame, 5, refine=100, blocking=None)
        for max_block in sizes:
            # As much time is spent on blocks that are refined twice as long.
            for refine, across in ((50, False), (100, False), (50, True)):
                options = {"refine": refine, "max_block": max_block, "borders": across}
                with counted_bytes() as moved:
                    seconds, found = masked(frame, 5, **options)
                rows.append(
                    {"columns": d, "L": max_block, "sweeps": refine, "borders": across}
                    | {"SSE over one block's %": 100 * (found.sse / whole.sse - 1)}
                    | {"with 100 sweeps": 100 * (found.sse / longer.sse - 1)}
                    | {"seconds": seconds, "bytes moved per record": moved[-1] / n}
                )
    show(f"Uniform data, {n:,} records, k = 5: SSE of blocks over that of one block", rows)
    return rows


@contextlib.contextmanager
def counted_bytes() -> Iterator[list[int]]:
    """Count the bytes of rows that are routed in each masking of a pandas frame."""
    moved: list[int] = []
    route, plan = Calls.route, Microaggregation.plan

    def counting(self: Calls, parts: list[pd.DataFrame], *args: Any) -> Any:
        moved[-1] += int(parts[0].memory_usage(index=False).sum())
        return route(self, parts, *args)

    def planning(self: Microaggregation, *args: Any) -> Any:
        moved.append(0)
        return plan(self, *args)

    with (
        mock.patch.object(Calls, "route", counting),
        mock.patch.object(Microaggregation, "plan", planning),
    ):
        yield moved


def blocking(quick: bool) -> Rows:
    """Mask the data of Table 3.2: uniform in every column."""
    n = 50_000 if quick else 2_500_000
    rows = []
    for d, (published, asked) in PUBLISHED.items():
        frame = sdc_dask.datasets.uniform(n, d, seed=1).compute()
        for refine, across in ((False, False), (True, False), (True, True)):
            seconds, found = masked(frame, 3, refine=refine, borders=across)
            share = found.sse / published
            rows.append(
                {"columns": d, "refine": refine, "borders": across}
                | {"SSE": found.sse, "published": published}
                | {"share": None if quick else share, "asked": asked, "seconds": seconds}
            )
    show(f"Table 3.2: SSE of {n:,} records, k = 3, blocks of 'auto'", rows)
    return rows


def masked(frame: pd.DataFrame, k: int, **options: Any) -> tuple[float, SSE]:
    """Return seconds and SSE of a masking, the second time that it is done."""
    plain = {"refine": False, "borders": False}
    frame.iloc[:25_000].sdc.microaggregate(list(frame), k, **options | plain)
    if options.get("refine"):
        frame.iloc[:25_000].sdc.microaggregate(list(frame), k, **options | {"refine": 1})
    start = time.process_time()
    found = frame.sdc.microaggregate(list(frame), k, **options)
    seconds = time.process_time() - start
    assert found.sdc.anonymity(list(frame)).k_min >= k
    return seconds, frame.sdc.sse(found)


PARTS = {
    "reference": reference,
    "strength": strength,
    "survey": survey,
    "borders": borders,
    "blocking": blocking,
}

if __name__ == "__main__":
    run_parts("refinement", __doc__, PARTS)
