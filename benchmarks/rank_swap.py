"""Rank swapping: drawing partners, and swapping columns against sorting them with plain Dask.

permutation  time and memory of drawing the partners of 100 million ranks, by method
window       the kernel and a whole swap of a million rows for p = 1, 5, 20: p should not matter
end_to_end   three columns of 20 million rows, from parquet to parquet on two workers of 1 GiB,
             over sorting the same columns, each on its own, with plain Dask in the same run
"""

from __future__ import annotations

import multiprocessing
import os
import resource
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
from common import memory_watch, parser, save, show, timed

import sdc_dask
from sdc_dask.kernels.swaps import (
    BucketSwaps,
    DistributionSwaps,
    Sources,
    WindowSwaps,
    window_of,
)
from sdc_dask.release.cluster import local_cluster

COLUMNS = ["x0", "x1", "x2"]
PIECE = 2**18  # ranks that are drawn at a time, as on a cluster
SWAPS: dict[str, Callable[[int], Sources]] = {
    "standard, p = 1": lambda n: standard(n, 1),
    "standard, p = 5": lambda n: standard(n, 5),
    "standard, p = 20": lambda n: standard(n, 20),
    "distribution, p = 5": lambda n: DistributionSwaps(n, 5, np.random.default_rng(0)),
    "distribution, p = 20": lambda n: DistributionSwaps(n, 20, np.random.default_rng(0)),
    "buckets, 20": lambda n: BucketSwaps(n, 20, np.random.default_rng(0)),
    "buckets, 5": lambda n: BucketSwaps(n, 5, np.random.default_rng(0)),
}


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = arguments.parse_args()
    for part in options.parts:
        table = PARTS[part](options.quick)
        save(f"rank_swap_{part}" + ("_quick" if options.quick else ""), {part: table})


def standard(n: int, p: float) -> Sources:
    """Return standard swaps."""
    return WindowSwaps(n, window_of(n, p), np.random.default_rng(0))


def draw_all(swaps: Sources, n: int) -> None:
    """Draw the partners of n ranks as a cluster does, a piece at a time."""
    for begin in range(0, n, PIECE):
        swaps.draw(min(PIECE, n - begin))


def permutation(quick: bool) -> list[dict[str, Any]]:
    """Draw partners in a process each, whose peak memory is then that of the draw."""
    n = 1_000_000 if quick else 100_000_000
    table = []
    for name in SWAPS:
        with multiprocessing.get_context("spawn").Pool(1) as pool:
            seconds, bytes_held = pool.apply(draw, (name, n))
        table.append(
            {
                "method": name,
                "ranks": n,
                "seconds": seconds,
                "ns a rank": 1e9 * seconds / n,
                "peak MiB": round(bytes_held / 2**20),
                "bytes a rank": bytes_held / n,
            }
        )
    show("partners of ranks", table)
    return table


def draw(name: str, n: int) -> tuple[float, int]:
    """Return seconds and the memory that was needed beyond that of the program."""
    draw_all(SWAPS[name](1_000), 1_000)  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    seconds, _ = timed(lambda: draw_all(SWAPS[name](n), n))
    return seconds, 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)


def window(quick: bool) -> list[dict[str, Any]]:
    """Swap with windows of several sizes, in turn, the best of several times."""
    n = 100_000 if quick else 1_000_000
    frame = sdc_dask.datasets.uniform(n, 1).compute()
    best: dict[tuple[str, float], float] = {}
    for _ in range(5):
        for p in (1, 5, 20):
            for what, function in (
                ("kernel", lambda p=p: draw_all(standard(n, p), n)),
                ("rank_swap", lambda p=p: frame.sdc.rank_swap(["x0"], p)),
            ):
                seconds, _ = timed(function)
                best[what, p] = min(seconds, best.get((what, p), np.inf))
    table = [
        {"what": what, "rows": n, "p": p, "seconds": seconds, "over p = 1": seconds / best[what, 1]}
        for (what, p), seconds in sorted(best.items())
    ]
    show("does the window matter?", table)
    return table


def end_to_end(quick: bool) -> list[dict[str, Any]]:
    """Swap and sort the same columns in one run."""
    rows = 200_000 if quick else 20_000_000
    table = []
    with tempfile.TemporaryDirectory() as name, local_cluster(2, "1GiB") as client:
        folder = Path(name)
        sdc_dask.datasets.uniform(rows, 3, seed=1).to_parquet(folder / "source", write_index=False)
        small = sdc_dask.datasets.uniform(20_000, 3).repartition(npartitions=4)
        small.sdc.rank_swap(COLUMNS, 5).to_parquet(folder / "warm", write_index=False)
        runs: dict[str, Callable[[dd.DataFrame, Path], None]] = {
            "sort, plain Dask": sort,
            "rank_swap, standard": lambda df, to: swap(df, to, p=5),
            "rank_swap, distribution": lambda df, to: swap(df, to, p=5, method="distribution"),
            "rank_swap, buckets": lambda df, to: swap(df, to, method="buckets", buckets=20),
            "rank_swap, tree": lambda df, to: swap(df, to, p=5, blocking="tree"),
        }
        for what, run in runs.items():
            pids = sorted(client.run(os.getpid).values())
            with memory_watch(pids) as peaks:
                seconds, _ = timed(run, dd.read_parquet(folder / "source"), folder / "target")
            shutil.rmtree(folder / "target")
            restarts = len(set(pids) - set(client.run(os.getpid).values()))
            table.append(
                {
                    "what": what,
                    "rows": rows,
                    "columns": len(COLUMNS),
                    "seconds": seconds,
                    "over sorting": seconds / (table[0]["seconds"] if table else seconds),
                    "peak MiB a worker": round(max(peaks.values()) / 2**20),
                    "restarts": restarts,
                }
            )
            print(table[-1], flush=True)
    show("rank swapping over sorting the same columns, two workers with 1 GiB", table)
    return table


def sort(frame: dd.DataFrame, target: Path) -> None:
    """Sort every column on its own and write it."""
    for column in COLUMNS:
        frame[[column]].sort_values(column).to_parquet(target / column, write_index=False)


def swap(frame: dd.DataFrame, target: Path, **options: Any) -> None:
    """Swap all columns and write the frame."""
    frame.sdc.rank_swap(COLUMNS, **options).to_parquet(target, write_index=False)


PARTS = {"permutation": permutation, "window": window, "end_to_end": end_to_end}

if __name__ == "__main__":
    main()
