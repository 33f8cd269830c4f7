"""All methods of microaggregation: published figures, real data, growth, and another package.

Published: J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", doctoral
thesis, Universitat Autònoma de Barcelona, chapter 3. Parts:

examples    Section 3.1.3: information loss on the circle and on the sphere, for groups of
            correlated columns and for correlated groups
real        every method on the Census and EIA data, groups of 2, 3 and 4 columns: SSE, k', time
growth      time of 1 and 10 million records, parquet to parquet, beside moving them
univariate  method="optimal" against the package microagg1d: time and SSE
anonymity   Tables 3.5 and 3.6: SSE and k' of the Water Treatment and EIA data by known groups

SSE is that of standardized data, and k' the number of records over that of distinct ones. Real data
are read from the folder SDC_DASK_DATA (default: ../shared/data beside the repository), files
casc_census.csv, casc_eia.csv and water_treatment.csv.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.util
import itertools
import math
import os
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from common import parser, save, show, timed
from end_to_end import move, watched
from numpy.typing import NDArray

from sdc_dask import grouping
from sdc_dask.aggregation import power, sigmoid, threshold
from sdc_dask.datasets import uniform
from sdc_dask.kernels.ordered import ordered
from sdc_dask.masking.microaggregation import METHODS
from sdc_dask.release.cluster import local_cluster

Array = NDArray[np.float64]
Labels = NDArray[np.int64]
Groups = list[list[str]]
Row = dict[str, Any]
Tables = dict[str, Any]


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = arguments.parse_args()
    for part in options.parts:
        try:
            tables = PARTS[part](options.quick)
        except MissingError as error:
            print(f"\n{part}: skipped, {error}")
            tables = {"skipped": str(error)}
        save(f"methods_{part}" + ("_quick" if options.quick else ""), tables)


# Section 3.1.3

ANGLES = np.pi / 20 * np.array([1, 3, 5, 7, 9])
ROUNDING = 1e-12  # what is smaller than this, beside the values it was computed from, is 0
LOSS_NOTE = """\
IL: 100 times the mean of IL1 to IL5, as section 2.5.1 defines them; IL1 compares a record with the
nearest masked one. Where a mean or covariance is 0, differences count as they are, no shares."""


def examples(quick: bool) -> Tables:
    """Measure what two ways to group columns lose and protect."""
    cases = {"circle": (circle(), 2, 2, (0.0, 26.38)), "sphere": (sphere(), 3, 4, (0.0, 31.52))}
    table: list[Row] = []
    for name, (frame, size, k, published) in cases.items():
        for strategy, loss in zip((grouping.correlated, grouping.spread), published, strict=True):
            groups = strategy(frame, list(frame), size)
            masked = frame.sdc.microaggregate(groups, k, method="mdav")
            table.append(
                {
                    "data": name,
                    "n": len(frame),
                    "k": k,
                    "groups": f"{strategy.__name__} " + " ".join(map("".join, groups)),
                    "IL published": loss,
                    **information_loss(frame.to_numpy(), masked.to_numpy()),
                    "k'": masked.sdc.group_anonymity(groups).k_mean[-1],
                    "SSE": float(frame.sdc.sse(masked).sse),
                }
            )
    show("Section 3.1.3: MDAV of correlated columns, and of columns that are spread", table)
    print(LOSS_NOTE)
    return {"examples": table, "note": LOSS_NOTE}


def circle() -> pd.DataFrame:
    """Make 20 points of the circle, with every attribute twice."""
    signs = itertools.product((1, -1), repeat=2)
    points = [(u * np.cos(t), v * np.sin(t)) for t, (u, v) in itertools.product(ANGLES, signs)]
    return pd.DataFrame(np.tile(points, 2)).rename(columns=lambda j: f"a{j + 1}")


def sphere() -> pd.DataFrame:
    """Make 200 points of the sphere, with every attribute three times."""
    signs = itertools.product((1, -1), repeat=3)
    points = [
        (u * np.cos(p) * np.cos(t), v * np.cos(p) * np.sin(t), w * np.sin(p))
        for t, p, (u, v, w) in itertools.product(ANGLES, ANGLES, signs)
    ]
    return pd.DataFrame(np.tile(points, 3)).rename(columns=lambda j: f"a{j + 1}")


def information_loss(x: Array, y: Array) -> dict[str, float]:
    """Return IL in percent, and the five measures that it is the mean of."""
    nearest = ((x[:, None] - y) ** 2).sum(axis=2).argmin(axis=1)
    largest = np.abs(x).max(axis=0)
    v, w = np.cov(x.T), np.cov(y.T)
    covariances = variation(v, w, np.sqrt(np.outer(v.diagonal(), v.diagonal())))
    correlations = np.abs(np.corrcoef(x.T) - np.corrcoef(y.T))
    losses = {
        "IL1": variation(x, y[nearest], largest).mean(),
        "IL2": variation(x.mean(axis=0), y.mean(axis=0), largest).mean(),
        "IL3": covariances[np.triu_indices(len(v))].mean(),
        "IL4": covariances.diagonal().mean(),
        "IL5": correlations[np.triu_indices(len(v), 1)].mean(),
    }
    losses = {name: round(float(loss), 12) for name, loss in losses.items()}
    return {"IL": 100 * sum(losses.values()) / 5, **losses}


def variation(x: Array, y: Array, scale: Array) -> Array:
    """Return differences relative to x, and as they are where x is 0 beside `scale`."""
    return np.abs(x - y) / np.where(np.abs(x) > ROUNDING * scale, np.abs(x), 1.0)


# Section 3.2.2: every method on real data

EIA_COLUMNS = [
    "UTILITYID",
    *(f"{who}{what}" for who in ("RES", "COM", "IND") for what in ("REVENUE", "SALES")),
    *("OTHREVENUE", "OTHRSALES", "TOTREVENUE", "TOTSALES"),
]
# The thesis has kappa for EIA. Those for Census are the same shares of the number of values.
KAPPAS = {"census": (1_560, 1_872, 2_184), "eia": (5_000, 6_000, 7_000)}
REAL_NOTE = """\
Groups of a consecutive columns, the rest is left out. One figure for each k, or kappa of mic1d. k':
all groups known. smallest: class within a group; at least k is checked but for fuzzy and mic1d,
which do not promise it. seconds: without compilation."""


def real(quick: bool) -> Tables:
    """Measure every method on both data sets."""
    tables: Tables = {}
    for name, kappas in KAPPAS.items():
        frame = reference(f"casc_{name}")
        frame = frame[EIA_COLUMNS] if name == "eia" else frame
        columns = list(frame)
        table: list[Row] = []
        for k in (5, 25) if quick else (5, 15, 25):
            for method, a in itertools.product([*METHODS, "fuzzy"], (2, 3, 4)):
                if method != "optimal":
                    table.append(masked_row(frame, method, consecutive(columns, a), k))
            table.append(masked_row(frame, "optimal", grouping.individual(columns), k))
        table += [masked_row(frame, "mic1d", [columns], kappa) for kappa in kappas]
        tables[name] = table
        show(f"{name}: {len(frame):,} records, {len(columns)} columns", side_by_side(table))
    print(REAL_NOTE)
    return tables


def masked_row(frame: pd.DataFrame, method: str, groups: Groups, k: int) -> Row:
    """Mask a frame twice, and describe the second time."""
    run = functools.partial(mask, frame, method, groups, k)
    run()  # compiles
    seconds, masked = timed(run)
    columns = [column for group in groups for column in group]
    smallest = min(int(masked.sdc.anonymity(group).k_min) for group in groups)
    if method in METHODS and smallest < k:
        raise RuntimeError(f"{method}, k = {k}: a class of {smallest} records.")
    return {
        "method": method,
        "a": len(groups[0]),
        "k": k,
        "SSE %": 100 * float(frame.sdc.sse(masked, columns).ratio),
        "k'": float(masked.sdc.group_anonymity(groups).k_mean[-1]),
        "smallest": smallest,
        "seconds": seconds,
    }


def mask(frame: Any, method: str, groups: Groups, k: int) -> Any:
    """Mask groups of columns, all of the same size, by any method; k is kappa of mic1d."""
    if method == "mic1d":
        return frame.sdc.mic1d(groups[0], k)
    if method == "fuzzy":
        with warnings.catch_warnings(action="ignore"):  # that k is not guaranteed
            return frame.sdc.fuzzy_microaggregate(groups, k, m1=1.5, m2=1.2, random_state=1)
    a = len(groups[0])
    weights = np.arange(1, a + 1) / (a * (a + 1) / 2)
    sets = np.arange(2**a)[:, None] >> np.arange(a) & 1
    parameters: dict[str, Row] = {
        "weighted_mean": {"weights": weights.tolist()},
        "owa": {"measure": power(2)},
        "choquet": {"measure": (sets @ weights) ** 2},
        "twofold": {"measure": (threshold(0.4), sigmoid(0.5))},
    }
    return frame.sdc.microaggregate(groups, k, method=method, **parameters.get(method, {}))


def consecutive(columns: list[str], a: int) -> Groups:
    """Cut columns into groups of a, and leave out the rest."""
    return [columns[i : i + a] for i in range(0, len(columns) - a + 1, a)]


def side_by_side(table: list[Row]) -> list[Row]:
    """Put the figures of a method and a into one row."""
    rows: dict[tuple[str, int], list[Row]] = {}
    for row in table:
        rows.setdefault((row["method"], row["a"]), []).append(row)
    names = list(table[0])[2:]
    return [
        {"method": method, "a": a}
        | {name: "  ".join(f"{row[name]:>6.4g}" for row in same) for name in names}
        for (method, a), same in rows.items()
    ]


# Growth

GROWING = ["move", "mdav", "vmdav", "optimal", "pcp", "zscores", "sugeno", "owa", "mic1d", "fuzzy"]
COLUMNS = ["x0", "x1", "x2"]
K = 5


def growth(quick: bool) -> Tables:
    """Time methods from parquet to parquet on two workers."""
    small, large = (20_000, 200_000) if quick else (1_000_000, 10_000_000)
    with tempfile.TemporaryDirectory() as name, local_cluster(2, "2GiB") as client:
        growth_rows(client, Path(name), 20_000, GROWING)  # compiles
        table = growth_rows(client, Path(name), small, GROWING)
        before = {row["method"]: row["seconds"] for row in table}
        for row in growth_rows(client, Path(name), large, [m for m in GROWING if m != "fuzzy"]):
            table.append({**row, "growth": row["seconds"] / before[row["method"]]})
    table.sort(key=lambda row: GROWING.index(row["method"]))
    show(f"Growth: uniform data, 3 columns, k = {K}, 2 workers, parquet to parquet", table)
    print(GROWTH_NOTE)
    return {"growth": table, "note": GROWTH_NOTE}


GROWTH_NOTE = """\
move: plain Dask reads, routes every row once and writes. growth: seconds over those of the smaller
n. optimal masks each column on its own; mic1d has kappa = 10 roots of the number of values; L of
mdav and vmdav is that of max_block="auto", which falls with n. CPU seconds are of both workers."""


def growth_rows(client: Any, folder: Path, n: int, methods: list[str]) -> list[Row]:
    """Make data and run methods on them, first of all "move"."""
    source = folder / "source"
    frame = uniform(n, len(COLUMNS), seed=1, npartitions=max(4, n // 2**18))
    frame.to_parquet(source, write_index=False, overwrite=True)
    rows: list[Row] = []
    for method in methods:
        row = growth_row(client, method, source, n)
        rows.append({**row, "over moving": row["seconds"] / (rows or [row])[0]["seconds"]})
        print(f"n = {n:,}: {method} done in {row['seconds']:.1f} s", flush=True)
    return rows


def growth_row(client: Any, method: str, source: Path, n: int) -> Row:
    """Mask files, or move them, and describe what came out."""
    target = source.with_name("target")
    groups = grouping.individual(COLUMNS) if method == "optimal" else [COLUMNS]
    kappa = 10 * math.isqrt(3 * n)
    kappa += 3 * n % kappa == 1  # a run of one value is refused
    call: tuple[Any, ...] = (move, source, target)
    if method != "move":
        call = (mask_files, source, target, method, groups, kappa if method == "mic1d" else K)
    before = sum(client.run(time.process_time).values())
    row = {"method": method, "n": n, **watched(client, *call)}
    row.pop("result")
    row["CPU seconds"] = sum(client.run(time.process_time).values()) - before
    row["seconds / million"] = row["seconds"] / n * 1e6
    if method != "move":
        masked = dd.read_parquet(target)
        row["SSE / SST %"] = 100 * float(dd.read_parquet(source).sdc.sse(masked).ratio)
        row["smallest"] = min(int(masked.sdc.anonymity(group).k_min) for group in groups)
    shutil.rmtree(target)
    return row


def mask_files(source: Path, target: Path, method: str, groups: Groups, k: int) -> None:
    """Read, mask and write."""
    mask(dd.read_parquet(source), method, groups, k).to_parquet(target, write_index=False)


# Another package

PEER = "microagg1d"
PEER_NOTE = """\
microagg1d: "auto" is "simple" up to k = 21 and "wilber" beyond; stable=0 takes squares from sums
over all values, which cancel. excess: over the smallest SSE."""


def univariate(quick: bool) -> Tables:
    """Compare optimal groups of one column, sorting included."""
    if importlib.util.find_spec(PEER) is None:
        raise MissingError(f"{PEER} is not installed.")
    from microagg1d import univariate_microaggregation

    programs: dict[str, Callable[[Array, int], Labels]] = {
        "sdc_dask": lambda x, k: ordered(x[:, None], x, k)
    }
    for method, stable in itertools.product(("auto", "galil_park", "wilber", "staggered"), (1, 0)):
        programs[f"{PEER} {method}, stable={stable}"] = functools.partial(
            univariate_microaggregation, method=method, stable=stable
        )
    x = np.random.default_rng(1).normal(size=50_000 if quick else 1_000_000)
    table: list[Row] = []
    for k in (3, 5, 10, 50, 200, 1000):
        seconds: dict[str, list[float]] = {name: [] for name in programs}
        labels: dict[str, Labels] = {}
        for program in programs.values():
            program(x[:5_000], k)  # compiles
        for _, name in itertools.product(range(3), programs):
            spent, labels[name] = timed(programs[name], x, k)
            seconds[name].append(spent)
        losses = {name: within(x, labels[name]) for name in programs}
        for name in programs:
            row: Row = {"k": k, "program": name, "seconds": min(seconds[name])}
            row["over sdc_dask"] = row["seconds"] / min(seconds["sdc_dask"])
            row["SSE"] = losses[name]
            row["excess"] = losses[name] / min(losses.values()) - 1
            row["smallest"] = int(np.bincount(labels[name]).min())
            table.append(row)
    show(f"Univariate: {len(x):,} normal values, best of 3, sorting included", table)
    print(PEER_NOTE)
    return {"univariate": table, "version": importlib.metadata.version(PEER), "note": PEER_NOTE}


def within(x: Array, labels: Labels) -> float:
    """Return the within-groups sum of squares."""
    means = np.bincount(labels, weights=x) / np.bincount(labels)
    return math.fsum((x - means[labels]) ** 2)


# Tables 3.5 and 3.6

WATER = ["PH-E", "PH-P", "PH-D", "DQO-E", "COND-P", "COND-D", "DBO-S", "SS-S", "SED-S"]
EIA = [
    *("UTILITYID", "UTILNAME", "YEAR", "RESSALES", "COMREVENUE", "COMSALES"),
    *("MONTH", "RESREVENUE", "INDREVENUE"),
]
# By data and groups, a line for each k: SSE and k' by the number of known groups, of each method.
# (The last two SSE of MDAV in spread groups of Water Treatment are exchanged in Table 3.11.)
PUBLISHED_METHODS = ("mdav", "pcp", "zscores")
PUBLISHED = {
    ("water", "correlated"): """
          5   28.18   5.28  1.02 1.00   28.59   5.35  1.04 1.00   23.78   5.43  1.03 1.00
         10   46.14  10.00  1.15 1.01   49.61  10.00  1.11 1.00   49.05  10.00  1.16 1.01
         15   72.03  15.20  1.38 1.01   71.99  15.20  1.30 1.01   72.23  15.20  1.33 1.02
         20   94.24  20.00  1.64 1.03   91.96  20.00  1.66 1.03   93.10  20.00  1.62 1.03
         25  114.56  25.33  2.11 1.09  110.91  25.33  2.09 1.04  111.69  25.33  2.15 1.07""",
    ("water", "spread"): """
          5   69.51   5.00  1.16 1.01   93.67   5.07  1.04 1.00   73.52   5.00  1.06 1.01
         10  126.21  10.00  1.84 1.13  133.83  10.00  1.18 1.01  115.77  10.00  1.35 1.05
         15  173.96  15.20  2.66 1.38  170.12  15.20  1.41 1.02  160.30  15.20  1.84 1.10
         20  259.07  20.00  3.76 1.50  206.74  20.00  1.78 1.06  197.20  20.00  2.59 1.26
         25  247.58  25.33  4.87 1.87  229.50  25.33  2.16 1.12  231.81  25.33  3.62 1.43""",
    ("eia", "correlated"): """
          5   28.74   5.12  1.10 1.03  141.29   5.27  1.02 1.00   50.65   5.18  1.02 1.01
         25  145.36  25.42  1.83 1.26  203.81  25.42  1.27 1.04  140.70  25.26  1.44 1.06
         50  219.45  50.52  3.20 1.57  330.19  50.52  1.91 1.15  184.19  50.52  2.59 1.28
         75  313.31  75.78  4.95 1.92  469.74  75.78  2.87 1.30  287.95  75.78  4.45 1.58
        100  397.48 102.30  7.54 2.57  649.49 102.30  4.28 1.53  378.51 102.30  6.90 2.02""",
    ("eia", "spread"): """
          5   45.18   5.01  1.15 1.06  124.83   5.14  1.02 1.01  111.97   5.08  1.03 1.01
         25  212.44  25.10  2.06 1.28  251.99  25.10  1.33 1.06  212.47  25.10  1.65 1.12
         50  361.38  50.52  4.43 1.81  369.73  50.52  2.16 1.20  336.68  50.52  3.45 1.52
         75  468.30  75.78  7.08 2.30  482.05  75.78  3.39 1.40  439.99  75.78  6.13 2.18
        100  569.66 102.30 10.94 3.17  608.82 102.30  5.00 1.73  553.89 102.30  9.79 3.16""",
}
PUBLISHED_NOTE = """\
1G, 2G, 3G: k' if so many groups are known; random: what is expected of random data. The thesis
does not say in which unit its SSE is: it does not compare with SSE of standardized data. Its 1G is
that of n/k groups; those of pcp and zscores have k to 2k - 1 records here, whichever lose least."""


def anonymity(quick: bool) -> Tables:
    """Measure SSE and k' by the number of groups that are known."""
    names = reference("casc_eia")["UTILNAME"].rank(method="dense")  # the place in the alphabet
    frames = {
        "water": reference("water_treatment").dropna()[WATER].reset_index(drop=True),
        "eia": reference("casc_eia").assign(UTILNAME=names)[EIA],
    }
    tables: Tables = {}
    for (data, strategy), text in PUBLISHED.items():
        frame = frames[data]
        columns = list(frame)
        spread = [columns[j::3] for j in range(3)]
        groups = spread if strategy == "spread" else consecutive(columns, 3)
        published = np.array(text.split(), float).reshape(-1, 1 + 4 * len(PUBLISHED_METHODS))
        table = [
            anonymity_row(frame, method, groups, int(row[0]), row[1 + 4 * i :][:4])
            for i, method in enumerate(PUBLISHED_METHODS)
            for row in published
        ]
        tables[f"{data}, groups {strategy}"] = table
        show(f"Tables 3.5 and 3.6: {data}, {len(frame):,} records, groups {strategy}", table)
    print(PUBLISHED_NOTE)
    return {**tables, "note": PUBLISHED_NOTE}


def anonymity_row(frame: pd.DataFrame, method: str, groups: Groups, k: int, old: Array) -> Row:
    """Put figures beside those that are published, and k' beside that of random data."""
    masked = frame.sdc.microaggregate(groups, k, method=method, blocking=None)
    reached = masked.sdc.group_anonymity(groups, k)
    row = {"method": method, "k": k, "SSE published": float(old[0])}
    row["SSE"] = float(frame.sdc.sse(masked).sse)
    for j, expected in enumerate(reached.expected or ()):
        row[f"{j + 1}G published"] = float(old[j + 1])
        row[f"{j + 1}G"] = round(reached.k_mean[j], 2)
        row[f"{j + 1}G random"] = round(expected, 2)
    return row


# What the parts share

PARTS = {part.__name__: part for part in (examples, real, growth, univariate, anonymity)}


class MissingError(Exception):
    """A part needs what is not there."""


def reference(name: str) -> pd.DataFrame:
    """Read a reference data set."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("SDC_DASK_DATA", default)) / f"{name}.csv"
    if not path.exists():
        raise MissingError(f"there is no {path.name}: set SDC_DASK_DATA to its folder.")
    return pd.read_csv(path)


if __name__ == "__main__":
    main()
