"""protect() against moving the same data with plain Dask: read, route exactly, write.

The data has an id, a text, five float64 columns, or as many as --columns says, and as many nominal
columns as --nominal says; all are read and written by both, and moving routes all of them once.
Prints time, ratio, and the peak memory of every worker beside its limit.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from common import memory_watch, parser, save, show, timed

import sdc_dask
from sdc_dask.kernels.mdav_few import compile_from_now_on
from sdc_dask.release.cluster import local_cluster

ORDERS = {"random": "protect", "source": "in order of source"}


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--rows", type=int, help="default: 20 million, quick: 500,000")
    arguments.add_argument("--columns", type=int, default=5, help="of numbers that are masked")
    arguments.add_argument("--nominal", type=int, default=0, help="columns that are masked, too")
    arguments.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    arguments.add_argument("--memory-limit", default="1GiB", help="of every worker")
    arguments.add_argument("-k", type=int, default=5)
    arguments.add_argument("--max-block", default="auto")
    arguments.add_argument("--blocking", default="auto")
    arguments.add_argument(
        "--orders", nargs="+", choices=ORDERS, default=list(ORDERS), help="of the release"
    )
    arguments.add_argument("--folder", type=Path, help="for the data; default: a temporary one")
    options = arguments.parse_args()
    rows = options.rows or (500_000 if options.quick else 20_000_000)
    max_block = options.max_block if options.max_block == "auto" else int(options.max_block)
    spec = sdc_dask.Microaggregation(
        [*numbers(options.columns), *categories(options.nominal)],
        options.k,
        blocking=options.blocking,
        max_block=max_block,
    )

    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        source = generate(rows, options.columns, options.nominal)
        source.to_parquet(folder / "source", write_index=False)
        table: list[dict[str, Any]] = []
        summaries = []
        for workers in options.workers:
            with local_cluster(workers, options.memory_limit) as client:
                # Compile on every worker, so that no run pays for it.
                client.run(compile_from_now_on)
                small = warm_up(folder, options.columns, options.nominal)
                sdc_dask.protect(small, folder / "warm", spec, keep="*", replace=True)
                moving = watched(client, move, folder / "source", folder / "moved")
                moving.pop("result")
                runs = {"move": moving}
                for order in options.orders:
                    runs[ORDERS[order]] = watched(
                        client,
                        sdc_dask.protect,
                        folder / "source",
                        folder / "protected",
                        spec,
                        keep="*",
                        order=order,
                        replace=True,
                    )
                    summary = runs[ORDERS[order]].pop("result")
                    print(summary, flush=True)
                    summaries.append(summary.to_dict())
            for what, run in runs.items():
                table.append(
                    {
                        "workers": workers,
                        "what": what,
                        "rows": rows,
                        **run,
                        "over moving": run["seconds"] / moving["seconds"],
                        "limit": options.memory_limit,
                    }
                )
            shutil.rmtree(folder / "moved")
            shutil.rmtree(folder / "protected")
        show("protect against moving the same columns with plain Dask", table)
        save("end_to_end", {"table": table, "summaries": summaries})


def numbers(columns: int) -> list[str]:
    """Return the names of columns of numbers."""
    return [f"x{j}" for j in range(columns)]


def categories(nominal: int) -> list[str]:
    """Return the names of nominal columns."""
    return [f"c{j}" for j in range(nominal)]


def generate(rows: int, columns: int, nominal: int) -> dd.DataFrame:
    """Make the data: an id, a text, uniform columns, categories of which some are frequent."""
    frame = sdc_dask.datasets.uniform(rows, columns + nominal, seed=1)
    return frame.map_partitions(
        add_others, columns, nominal, meta=add_others(frame._meta, columns, nominal)
    )


def add_others(part: pd.DataFrame, columns: int, nominal: int) -> pd.DataFrame:
    """Add an id and a text to a partition, and make categories of its last columns."""
    number = part.index.to_numpy()
    texts = pd.Series(number % 1000, index=part.index).astype("str").radd("district ")
    part = part.assign(id=number, label=texts.astype("string[pyarrow]"))
    for j, name in enumerate(categories(nominal)):
        # 3, 6, 9 ... categories, the first of which is the most frequent.
        code = ((part.pop(f"x{columns + j}") / 10_000) ** 2 * 3 * (j + 1)).astype("int64")
        part[name] = code.astype("str").radd("category ").astype("string[pyarrow]")
    return part


def warm_up(folder: Path, columns: int, nominal: int) -> Path:
    """Write a small data set with the columns of the large one."""
    path = folder / "small"
    if not path.exists():
        small = generate(20_000, columns, nominal).repartition(npartitions=4)
        small.to_parquet(path, write_index=False)
    return path


def move(source: Path, target: Path, column: str = "x0") -> None:
    """Read, route every row to a known partition, and write: plain Dask."""
    frame = dd.read_parquet(source)
    n = frame.npartitions
    keyed = frame.map_partitions(add_key, n, column, meta=add_key(frame._meta, n, column))
    routed = keyed.set_index("key", divisions=list(range(n + 1)), shuffle_method="p2p")
    routed.to_parquet(target, write_index=False)


def add_key(part: pd.DataFrame, n: int, column: str) -> pd.DataFrame:
    """Give every row the partition that it goes to, which its value in a column decides."""
    scattered = part[column].to_numpy().view(np.int64) % n
    return part.assign(key=scattered.astype(np.int64))


def watched(client: Any, function: Any, *args: Any, **kwargs: Any) -> dict[str, Any]:
    """Run a function; return its time, result, peak memory a worker, and restarts."""
    pids = sorted(client.run(os.getpid).values())
    with memory_watch(pids) as peaks:
        seconds, result = timed(function, *args, **kwargs)
    after = sorted(client.run(os.getpid).values())
    return {
        "seconds": seconds,
        "peak MiB a worker": round(max(peaks.values()) / 2**20),
        "restarts": len(set(pids) - set(after)),
        "result": result,
    }


if __name__ == "__main__":
    main()
