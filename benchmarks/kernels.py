"""MDAV as it is against MDAV by scanning all records for every question, and other packages.

The data are uniform and centred, k = 3. Kernels are compiled before they are timed; short runs
are repeated and the best time counts. Parts:

ratio      `mdav` and the scan on 100,000 records, and whether they form the same groups
growth     time by the number of records and of columns
million    how the time of `mdav` grows from 100,000 to a million records
crossover  which kernel is faster, beside the choice of `mdav`
reference  `mdav` and the scan on real data of many columns, which are read from SDC_DASK_DATA
peers      `mdav` against the MDAV of other packages from PyPI: time, SSE, groups
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import itertools
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import parser, save, show, timed
from numpy.typing import NDArray

from sdc_dask.datasets import uniform
from sdc_dask.kernels.grid import centred as around_origin
from sdc_dask.kernels.kd_tree import WORTH_UNROLLING
from sdc_dask.kernels.mdav import (
    _fewest,
    _most_narrow,
    mdav,
    mdav_brute,
    mdav_indexed,
    mdav_narrow,
)

Points = NDArray[np.float64]
Labels = NDArray[np.int64]
Kernel = Callable[[Points, int], Labels]
Peer = Callable[[pd.DataFrame, int], Labels]
Rows = list[dict[str, Any]]
Part = Callable[[bool], dict[str, Any]]

K = 3
REPETITIONS = 7
ENOUGH_SECONDS = 1.0


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = arguments.parse_args()
    for part in options.parts:
        tables = PARTS[part](options.quick)
        save(f"kernels_{part}" + ("_quick" if options.quick else ""), tables)


# Kernels


def ratio(quick: bool) -> dict[str, Any]:
    """Compare with the scan on one large block."""
    n = 10_000 if quick else 100_000
    table = [compared(centred(n, d)) for d in (3, 5, 10)]
    show(f"MDAV against MDAV by scan, {n:,} records, k = {K}", table)
    return {"ratio": table}


def growth(quick: bool) -> dict[str, Any]:
    """Measure how time grows with the numbers of records and of columns."""
    scanned = [1000, 3000, 10_000] if quick else [1000, 3000, 10_000, 30_000, 100_000]
    others = [20_000] if quick else [200_000, 500_000]
    by_number = [compared(centred(n, 3)) for n in scanned] + [mdav_only(n, 3) for n in others]
    for name in ("scan", "mdav"):
        add_exponents(by_number, name)
    show("By records, d = 3; time grows with n to the power of the exponent", by_number)
    n = 5000 if quick else 30_000
    by_dimension = [compared(centred(n, d)) for d in (1, 2, 3, 4, 5, 6, 8, 10)]
    show(f"By columns, n = {n:,}", by_dimension)
    return {"by records": by_number, "by columns": by_dimension}


def million(quick: bool) -> dict[str, Any]:
    """Measure how the time of `mdav` grows to a million records."""
    numbers = [3_000, 30_000] if quick else [100_000, 1_000_000]
    table: Rows = []
    for d in (2, 3, 5):
        rows = [mdav_only(n, d) for n in numbers]
        add_exponents(rows, "mdav")
        table += rows
    show("By records; time grows with n to the power of the exponent", table)
    return {"to a million": table}


def crossover(quick: bool) -> dict[str, Any]:
    """Compare the choice of `mdav` with the fastest kernel."""
    numbers = [500, 2000, 5000] if quick else [500, 1000, 2000, 5000, 10_000, 20_000, 50_000]
    kernels = {"scan": mdav_brute, "narrow": mdav_narrow, "tree": mdav_indexed}
    table: Rows = []
    for d in (1, 2, 3, 5, 8, 12):
        for n in numbers:
            points = centred(n, d)
            seconds = {
                name: best(kernel, points)[0]
                for name, kernel in kernels.items()
                if name != "scan" or n <= 10_000
            }
            fastest = min(seconds, key=lambda name: seconds[name])
            row: dict[str, Any] = {"n": n, "d": d}
            row |= {f"{name} seconds": each for name, each in seconds.items()}
            row["mdav takes"], row["fastest"] = chosen(n, d), fastest
            row["over the fastest"] = seconds[chosen(n, d)] / seconds[fastest]
            table.append(row)
    show("Crossover: the choice of mdav, and its time over that of the fastest kernel", table)
    right = sum(row["mdav takes"] == row["fastest"] for row in table)
    worst = max(table, key=lambda row: row["over the fastest"])
    summary = (
        f"mdav takes the fastest kernel in {right} of {len(table)} cases; at worst it takes "
        f"{worst['over the fastest']:.2f} times as long (n = {worst['n']:,}, d = {worst['d']})."
    )
    print(summary)
    return {"crossover": table, "summary": summary}


def chosen(n: int, d: int) -> str:
    """Return the kernel that `mdav` begins with."""
    if n < _fewest(d, K):
        return "scan"
    return "narrow" if n <= _most_narrow(d, K) else "tree"


def compared(points: Points) -> dict[str, Any]:
    """Time `mdav` and the scan on the same records."""
    n, d = points.shape
    # As `mdav` itself begins: rounding would break ties of other coordinates in other ways.
    scan_seconds, by_scan = best(mdav_brute, around_origin(points))
    seconds, found = best(mdav, points)
    return {
        "n": n,
        "d": d,
        "scan seconds": scan_seconds,
        "mdav seconds": seconds,
        "scan / mdav": scan_seconds / seconds,
        "same groups": yes(np.array_equal(by_scan, found)),
    }


def mdav_only(n: int, d: int) -> dict[str, Any]:
    """Time `mdav` where scanning takes too long."""
    seconds, _ = best(mdav, centred(n, d))
    return {"n": n, "d": d, "mdav seconds": seconds}


def add_exponents(table: Rows, name: str) -> None:
    """Add the exponent of the growth since the row before."""
    for before, row in itertools.pairwise(table):
        if f"{name} seconds" in row:
            times = row[f"{name} seconds"] / before[f"{name} seconds"]
            row[f"{name} exponent"] = math.log(times) / math.log(row["n"] / before["n"])


REFERENCE = (
    "california_housing",
    "adult",
    "abalone",
    "casc_eia",
    "casc_census",
    "wdbc",
    "ionosphere",
)


def reference(_quick: bool) -> dict[str, Any]:
    """Compare with the scan on all columns of numbers of real data."""
    folder = os.environ.get("SDC_DASK_DATA")
    if folder is None:
        print("\nSDC_DASK_DATA is not set: no reference data.")
        return {"reference": []}
    table: Rows = []
    for name in REFERENCE:
        frame = pd.read_csv(Path(folder) / f"{name}.csv").select_dtypes("number").dropna(axis=1)
        points = standardized(frame.loc[:, frame.nunique() > 1])
        table.append({"data": name} | compared(points) | {"mdav takes": chosen(*points.shape)})
    show(f"MDAV of real data against MDAV by scan, k = {K}", table)
    return {"reference": table}


# Other packages


def peers(quick: bool) -> dict[str, Any]:
    """Compare with other packages on data that they can handle."""
    table: Rows = []
    for n in [500, 1000] if quick else [1000, 2000, 5000]:
        frame = uniform(n, 3, seed=1).compute()
        own(frame, K)  # compiles
        seconds, labels = fastest(functools.partial(own, frame, K))
        table.append(peer_row("sdc_dask", frame, seconds, labels, seconds, labels))
        for name, (package, peer) in PEERS.items():
            if importlib.util.find_spec(package) is None:
                table.append({"n": n, "d": 3, "package": f"{name}: not installed"})
                continue
            peer(frame.head(10 * K), K)  # imports
            peer_seconds, found = timed(peer, frame, K)
            table.append(peer_row(name, frame, peer_seconds, found, seconds, labels))
    show(f"MDAV of other packages, k = {K}; each standardizes and forms groups", table)
    print(ANONYPYX_NOTE)
    return {"peers": table, "versions": versions(), "note": ANONYPYX_NOTE}


def peer_row(
    name: str,
    frame: pd.DataFrame,
    seconds: float,
    labels: Labels,
    own_seconds: float,
    own_labels: Labels,
) -> dict[str, Any]:
    """Describe what a package did."""
    sizes = np.bincount(labels)
    return {
        "n": len(frame),
        "d": frame.shape[1],
        "package": name,
        "seconds": seconds,
        "times sdc_dask": seconds / own_seconds,
        "SSE": sse(standardized(frame), labels),
        "groups": len(sizes),
        "smallest": int(sizes.min()),
        "largest": int(sizes.max()),
        "same groups": yes(np.array_equal(numbered(labels), numbered(own_labels))),
    }


def own(frame: pd.DataFrame, k: int) -> Labels:
    """Group by this package."""
    return mdav(standardized(frame), k)


def anonypyx(frame: pd.DataFrame, k: int) -> Labels:
    """Group by anonypyx."""
    from anonypyx.microaggregation import MDAVGeneric

    labels = np.empty(len(frame), np.int64)
    for label, rows in enumerate(MDAVGeneric(frame, list(frame)).partition(k)):
        labels[np.asarray(rows)] = label
    return labels


def anonypyx_with_category(frame: pd.DataFrame, k: int) -> Labels:
    """Group by anonypyx, with a constant category beside the numbers."""
    # The value is 0 because anonypyx writes codes in place of the categories.
    return anonypyx(frame.assign(constant=pd.Categorical([0] * len(frame))), k)


def versions() -> dict[str, str]:
    """Return the versions of the packages that are installed."""
    packages = {package for package, _ in PEERS.values()}
    return {
        package: importlib.metadata.version(package)
        for package in sorted(packages)
        if importlib.util.find_spec(package) is not None
    }


ANONYPYX_NOTE = (
    "anonypyx adds a distance of categories, which is NaN without any: it then takes the first\n"
    "record that is left in place of the farthest. A constant category makes it follow MDAV."
)
# By name: the package that has to be installed, and the function that calls it.
PEERS: dict[str, tuple[str, Peer]] = {
    "anonypyx": ("anonypyx", anonypyx),
    "anonypyx, constant category": ("anonypyx", anonypyx_with_category),
}
PARTS: dict[str, Part] = {
    "ratio": ratio,
    "growth": growth,
    "million": million,
    "crossover": crossover,
    "reference": reference,
    "peers": peers,
}


# What the parts share


def centred(n: int, d: int) -> Points:
    """Draw uniform data around the origin."""
    points = np.ascontiguousarray(uniform(n, d, seed=1).compute(), dtype=np.float64)
    return points - points.mean(axis=0)


def best(kernel: Kernel, points: Points) -> tuple[float, Labels]:
    """Compile a kernel for the width and the number of the data, and time it."""
    # Kernels for many records are others than those for few; the scan takes long.
    kernel(points[:WORTH_UNROLLING] if kernel is mdav_brute else points, K)
    return fastest(lambda: kernel(points, K))


def fastest(run: Callable[[], Labels]) -> tuple[float, Labels]:
    """Return the shortest time of several runs, of one run if it is long, and the result."""
    shortest, spent = math.inf, 0.0
    for _ in range(REPETITIONS):
        seconds, labels = timed(run)
        shortest, spent = min(shortest, seconds), spent + seconds
        if spent > ENOUGH_SECONDS:
            break
    return shortest, labels


def standardized(frame: pd.DataFrame) -> Points:
    """Return z-scores."""
    points = np.ascontiguousarray(frame, dtype=np.float64)
    return (points - points.mean(axis=0)) / points.std(axis=0)


def sse(points: Points, labels: Labels) -> float:
    """Return the within-groups sum of squares."""
    sizes = np.bincount(labels)
    centroids = np.stack(
        [np.bincount(labels, weights=column) / sizes for column in points.T], axis=1
    )
    return float(((points - centroids[labels]) ** 2).sum())


def numbered(labels: Labels) -> Labels:
    """Number groups in the order in which records name them, so that partitions compare."""
    return pd.factorize(labels)[0]


def yes(flag: bool) -> str:
    """Write a truth value in a table."""
    return "yes" if flag else "no"


if __name__ == "__main__":
    main()
