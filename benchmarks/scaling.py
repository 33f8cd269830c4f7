"""Pieces of a cost model for data that no machine here can hold: see docs/scaling.md.

- plan: plans with up to millions of leaves: building, fusing, sending, locating records.
- leaves: how many leaves the tree of uniform data of ten billion records would have.
- graph: frames of thousands of tiny partitions: time to plan, tasks, size and memory of a graph.
- tasks: what a task costs the scheduler and a worker.
- batches: rows of a piece that are written for many receivers, and what one of them reads.
- sets: one, two and four sets of five columns by protect: processor time and memory of workers.
- hot: data of which a share is equal in all columns, or lies in a corner: the largest block.
- slow: two workers of which one is stopped half of the time.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cloudpickle
import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import psutil
from common import memory_watch, parser, save, show, timed

import sdc_dask
from sdc_dask.blocking.tree import MAX_AXES, MAX_LEAVES
from sdc_dask.engine import row_ids
from sdc_dask.engine.batches import send
from sdc_dask.errors import SdcWarning
from sdc_dask.masking.auto_block import auto_block
from sdc_dask.masking.run import plan as plan_specs
from sdc_dask.masking.run import spool
from sdc_dask.release.cluster import local_cluster

MIB = 2**20


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    parts = {each.__name__: each for each in (plan, leaves, graph, tasks, batches, sets, hot, slow)}
    arguments.add_argument("--parts", nargs="+", choices=parts, default=list(parts))
    options = arguments.parse_args()
    warnings.simplefilter("ignore", SdcWarning)  # kept columns are unique: they are made up
    tables = {}
    for name in options.parts:
        tables[name] = parts[name](options.quick)
        show(parts[name].__doc__ or name, tables[name])
    save("scaling", tables)


def plan(quick: bool) -> list[dict[str, Any]]:
    """Plans of uniform data of two columns, k = 3, L = 8: as many leaves as possible."""
    table = []
    for records in [2**12, 2**16] if quick else [2**16, 2**20, 2**22, 2**23]:
        values = np.random.default_rng(0).random((records, 2))
        frame = pd.DataFrame(values, columns=["x", "y"])
        before = psutil.Process().memory_info().rss
        with memory_watch([os.getpid()]) as peak:
            seconds, blocks = cpu_timed(frame.sdc.blocks, ["x", "y"], 3, max_block=8)
        packing, packed = cpu_timed(pickle.dumps, blocks.locator, pickle.HIGHEST_PROTOCOL)
        unpacking, locator = cpu_timed(pickle.loads, packed)
        stratum = np.zeros(records, np.int64)
        locator.leaf_of(values[:10], stratum[:10])
        locating, _ = cpu_timed(locator.leaf_of, values, stratum)
        table.append(
            {
                "records": records,
                "leaves": len(blocks.leaves),
                "blocks": len(blocks),
                "CPU s": seconds,
                "peak MiB": (peak[os.getpid()] - before) / MIB,
                "locator MiB": len(packed) / MIB,
                "pickle s": packing,
                "unpickle s": unpacking,
                "locate ns per record": locating / records * 1e9,
            }
        )
    return table


def cpu_timed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> tuple[float, Any]:
    """Return the processor time in seconds that a call took, and its result."""
    start = time.process_time()
    result = function(*args, **kwargs)
    return time.process_time() - start, result


def leaves(quick: bool) -> list[dict[str, Any]]:
    """Leaves of uniform data, 10 billion records, k = 5 (computed, not measured)."""
    records, table = 10**10, []
    for columns in (2, 3, 5, 10, 20):
        for size in (auto_block(records, columns, 5), 10_000, 100_000):
            axes = min(columns, MAX_AXES)
            count, level = records, 0
            while count > size:
                level += 1
                count = records >> (axes * level)
            made = 2 ** (axes * level)
            table.append(
                {
                    "columns": columns,
                    "L": size,
                    "leaves": made,
                    "records per leaf": count,
                    "planned": "yes" if made <= MAX_LEAVES else "no: more than 2^22 leaves",
                }
            )
    return table


def tiny(number: int) -> pd.DataFrame:
    """Make a partition of a few records."""
    rng = np.random.default_rng(number)
    return pd.DataFrame(rng.random((20, 5)), columns=list("abcde"))


def graph(quick: bool) -> list[dict[str, Any]]:
    """Graphs of protect over tiny partitions, with half as many routed ones: nothing is masked."""
    return [graph_of(count) for count in ([50, 200] if quick else [1_000, 4_000, 10_000])]


def graph_of(count: int) -> dict[str, Any]:
    """Plan, and build the graph of one set of columns, for so many partitions."""
    spec = sdc_dask.Microaggregation(list("abcde"), 3, max_block=100)
    frame = dd.from_map(tiny, range(count), meta=tiny(0).iloc[:0])
    before = psutil.Process().memory_info().rss
    with dask.config.set(scheduler="sync"), small_routed_partitions(2 * 20 * 8 * 6):
        planning, planned = cpu_timed(plan_specs, frame, [spec])
        building, trips = cpu_timed(spool, frame, planned, ["masked"], "routed")
    made = dict(trips[0].back.dask)
    packing, packed = cpu_timed(cloudpickle.dumps, made)
    return {
        "partitions": count,
        "plan CPU s": planning,
        "graph CPU s": building,
        "tasks": len(made),
        "tasks per partition": len(made) / count,
        "graph MiB": len(packed) / MIB,
        "pickle CPU s": packing,
        "client MiB": (psutil.Process().memory_info().rss - before) / MIB,
    }


def tasks(quick: bool) -> list[dict[str, Any]]:
    """Tasks of a pass over tiny partitions, on a cluster of one worker."""
    count = 200 if quick else 1_000
    frame = dd.from_map(tiny, range(count), meta=tiny(0).iloc[:0])
    with local_cluster(1, "2GiB") as client:
        worker = psutil.Process(next(iter(client.run(os.getpid).values())))
        frame.sdc.sse(frame)  # compiles
        used = sum(worker.cpu_times()[:2])
        here, _ = cpu_timed(frame.map_partitions(len).compute)
        used = sum(worker.cpu_times()[:2]) - used
    return [
        {
            "tasks": count,
            "scheduler and client CPU ms per task": here / count * 1e3,
            "worker CPU ms per task": used / count * 1e3,
        }
    ]


@contextlib.contextmanager
def small_routed_partitions(size: int) -> Iterator[None]:
    """Let partitions of routed records be of so many bytes."""
    before, row_ids.TARGET_BYTES = row_ids.TARGET_BYTES, size
    try:
        yield
    finally:
        row_ids.TARGET_BYTES = before


def batches(quick: bool) -> list[dict[str, Any]]:
    """A piece of 200,000 records, a key and five values each, for so many receivers."""
    rows = 20_000 if quick else 200_000
    rng = np.random.default_rng(0)
    values = {f"v{j}": rng.random(rows) for j in range(5)}
    table = []
    with tempfile.TemporaryDirectory() as name:
        for receivers in (10, 100, 1_000, 10_000):
            key = rng.integers(0, receivers * 1_000, rows)
            routed = pd.DataFrame({"key": key, **values})
            divisions = list(range(0, receivers * 1_000 + 1, 1_000))
            writing, file = cpu_timed(send, routed, f"{name}/{receivers}", divisions)
            chosen = rng.integers(0, receivers, 200)
            reading, _ = cpu_timed(lambda file=file, some=chosen: [file.read(i) for i in some])
            table.append(
                {
                    "receivers": receivers,
                    "write CPU s": writing,
                    "MiB": os.path.getsize(file.path) / MIB,
                    "over values": os.path.getsize(file.path) / (rows * 48),
                    "read CPU us per receiver": reading / len(chosen) * 1e6,
                }
            )
    return table


def sets(quick: bool) -> list[dict[str, Any]]:
    """Sets of five columns of twenty by protect, k = 5, two workers with 1 GiB each."""
    rows = 50_000 if quick else 500_000
    names = [f"x{j}" for j in range(20)]
    table = []
    with tempfile.TemporaryDirectory() as name, local_cluster(2, "1GiB") as client:
        source = Path(name) / "source"
        sdc_dask.datasets.uniform(rows, 20, npartitions=16).to_parquet(source, write_index=False)
        workers = [psutil.Process(pid) for pid in client.run(os.getpid).values()]
        first = sdc_dask.Microaggregation(names[:5], 5, max_block=10_000)
        sdc_dask.protect(source, Path(name) / "warm", first, keep="*")  # compiles
        for count in (1, 2, 4):
            columns = [names[5 * i : 5 * i + 5] for i in range(count)]
            spec = sdc_dask.Microaggregation(columns, 5, max_block=10_000)
            used = sum(sum(each.cpu_times()[:2]) for each in workers)
            pids = [each.pid for each in workers]
            with memory_watch(pids) as peaks:
                seconds, _ = timed(
                    sdc_dask.protect, source, Path(name) / f"release{count}", spec, keep="*"
                )
            used = sum(sum(each.cpu_times()[:2]) for each in workers) - used
            table.append(
                {
                    "sets": count,
                    "rows": rows,
                    "seconds": seconds,
                    "worker CPU s": used,
                    "CPU us per record": used / rows * 1e6,
                    "peak MiB per worker": max(peaks.values()) / MIB,
                }
            )
    return table


def hot(quick: bool) -> list[dict[str, Any]]:
    """Data of five columns, k = 5, L = 10,000: blocks, and processor time to plan and mask."""
    rows = 50_000 if quick else 500_000
    rng = np.random.default_rng(0)
    uniform = rng.random((rows, 5))
    equal = uniform.copy()
    equal[: rows // 2] = 0.5
    corner = uniform**40
    corner[-1] = 1e6
    table = []
    for what, values in (("uniform", uniform), ("half are equal", equal), ("corner", corner)):
        frame = pd.DataFrame(values, columns=list("abcde"))
        frame.head(50).sdc.microaggregate(list("abcde"), k=5)
        planning, blocks = cpu_timed(frame.sdc.blocks, list("abcde"), 5, max_block=10_000)
        frame.sdc.microaggregate(list("abcde"), k=5, blocking=blocks)  # compiles
        masking, _ = cpu_timed(frame.sdc.microaggregate, list("abcde"), k=5, blocking=blocks)
        table.append(
            {
                "data": what,
                "blocks": len(blocks),
                "median": int(np.median(blocks.counts)),
                "largest": int(blocks.counts.max()),
                "passes": blocks.passes,
                "plan CPU s": planning,
                "mask CPU s": masking,
            }
        )
    return table


def slow(quick: bool) -> list[dict[str, Any]]:
    """Two workers, both free or one stopped half of the time: medians of three runs in turn."""
    rows = 50_000 if quick else 300_000
    found: dict[str, list[float]] = {"both free": [], "one at half speed": []}
    with tempfile.TemporaryDirectory() as name, local_cluster(2, "1GiB") as client:
        source = Path(name) / "source"
        sdc_dask.datasets.uniform(rows, 5, npartitions=32).to_parquet(source, write_index=False)
        spec = sdc_dask.Microaggregation([f"x{j}" for j in range(5)], 5, max_block=10_000)
        target = Path(name) / "release"
        sdc_dask.protect(source, target, spec)
        worker = next(iter(client.run(os.getpid).values()))
        for _ in range(1 if quick else 3):
            for what, times in found.items():
                with half_stopped(worker) if what != "both free" else contextlib.nullcontext():
                    seconds, _ = timed(sdc_dask.protect, source, target, spec, replace=True)
                times.append(seconds)
    free = statistics.median(found["both free"])
    return [
        {
            "workers": what,
            "seconds": statistics.median(times),
            "ratio": statistics.median(times) / free,
        }
        for what, times in found.items()
    ]


@contextlib.contextmanager
def half_stopped(pid: int) -> Iterator[None]:
    """Stop a process for 50 ms of every 100 ms."""
    done = threading.Event()

    def toggle() -> None:
        while not done.wait(0.05):
            os.kill(pid, signal.SIGSTOP)
            time.sleep(0.05)
            os.kill(pid, signal.SIGCONT)

    thread = threading.Thread(target=toggle, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


if __name__ == "__main__":
    main()
