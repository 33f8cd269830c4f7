"""Attacks by intruders who know the masking, beside published tables, and their time.

Published: J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", doctoral
thesis, Universitat Autònoma de Barcelona. Parts:

swapping     RSLD beside DLD of Tables 4.3 to 4.5: rank swapping of the Census and EIA data
union        Table 4.6: intervals of 0.5 p and p for swapping by distribution, right links
alignment    Figures 4.8 and 4.9: columns microaggregated one by one, k = 50, 2 to 5 known columns
loss         Table 4.7: SSE of the same
projection   ProjLD and the scores of Tables 4.10 and 4.11
growth       time of rank swapping linkage of all of 100,000 and 1 million records, 5 columns
scale        10,000 intruders against 100 million records, two workers with 1 GiB, beside linkage
             by distance in the same run (swapped_data.py makes 8 GB of files and 2 GB of ranks in
             memory before)

Figures are in percent unless they are links. Real data are found as methods.py finds them.
"""

from __future__ import annotations

import argparse
import itertools
import math
import tempfile
import time
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import pandas as pd
from common import parser, save, show, timed
from end_to_end import watched
from methods import MissingError, consecutive
from paper_tables import real
from swapped_data import SwappedData

from sdc_dask import Microaggregation, RankSwap
from sdc_dask.datasets import uniform
from sdc_dask.release.cluster import local_cluster

Row = dict[str, Any]
Options = argparse.Namespace

# p or buckets, and RSLD and DLD of Census and of EIA.
TABLES: dict[str, str] = {
    "standard": """
        2 77.73 73.52 43.27 21.71
        10 29.21 23.64 5.60 5.19
        16 13.81 13.59 5.19 4.54""",
    "distribution": """
        2 40.90 71.63 10.74 18.78
        6 20.51 37.57 1.27 6.41
        10 11.69 19.42 0.39 4.81
        20 2.15 9.59 0.10 4.57""",
    "buckets": """
        75 36.24 58.08 5.35 10.90
        50 17.09 42.71 2.83 7.53
        25 5.26 20.18 0.78 4.90
        10 2.19 8.53 0.09 4.74""",
}

# p; right links by distance and with intervals of p/2 and p, for Census and for EIA.
TABLE_4_6 = """
    2 1048.2 752.8 1054.4 1267.2 771.5 1443.8
    6 723.6 285.3 686.6 130.4 118.4 159.4
    10 335.1 136.2 347.2 36.0 37.2 41.1
    20 47.8 33.7 54.3 7.0 8.3 9.4"""

# Right links with 2 and 5 known columns: alignment, probability, distance.
FIGURES = {"census": ((379, 1069), (374, 1057), (369, 1047)),
           "eia": ((1012, 3703), (1011, 3694), (469, 2353))}  # fmt: skip

TABLE_4_7 = {  # k: optimal and MDAV
    "census": {5: (7.44, 11.10), 20: (65.45, 69.92), 50: (176.82, 180.68)},
    "eia": {5: (1.91, 2.79), 20: (37.59, 39.78), 50: (128.20, 131.25)},
}

# Of Tables 4.10 and 4.11: DLD, PLD, ProjLD, by data, method, columns in a set and k.
PROJECTED = {
    ("census", "pcp", 4, 5): (6.48, 3.06, 18.43),
    ("census", "pcp", 4, 25): (2.92, 1.71, 12.87),
    ("census", "zscores", 2, 5): (21.24, 9.57, 99.59),
    ("census", "zscores", 4, 5): (11.25, 7.22, 53.75),
    ("census", "zscores", 4, 25): (5.69, 2.92, 21.85),
    ("census", "mdav", 3, 15): (22.75, 19.38, 60.03),
    ("census", "mdav", 4, 25): (11.20, 7.08, 34.63),
    ("eia", "pcp", 4, 5): (4.23, 4.81, 9.24),
    ("eia", "pcp", 4, 25): (1.93, 1.91, 6.01),
    ("eia", "zscores", 2, 5): (33.88, 44.25, 98.08),
    ("eia", "zscores", 2, 15): (32.05, 46.56, 94.13),
}


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    arguments.add_argument("--rows", type=int, help="of scale: 100 million, quick: 1 million")
    arguments.add_argument("--folder", type=Path, help="for large data; default: a temporary one")
    options = arguments.parse_args()
    options.rows = options.rows or (1_000_000 if options.quick else 100_000_000)
    tables = {}
    for part in options.parts:
        try:
            tables[part] = PARTS[part](options)
        except MissingError as error:
            print(f"\n{part}: left out, {error}")
    save("attack_tables", tables)


def lines_of(text: str) -> list[list[float]]:
    """Return the numbers of a text, line by line."""
    return [[float(each) for each in line.split()] for line in text.strip().splitlines()]


def swapping(options: Options) -> list[Row]:
    """Compare who knows the window with who does not, half of the columns known."""
    table = []
    for data, method in itertools.product(("census", "eia"), TABLES):
        frame = real(data)
        for line in lines_of(TABLES[method])[: 1 if options.quick else None]:
            p, published = line[0], line[1:3] if data == "census" else line[3:5]
            how: Row = {"buckets": int(p)} if method == "buckets" else {"p": p}
            spec = RankSwap(list(frame), method=method, **how)
            masked = frame.sdc.mask(spec, random_state=1)
            # The thesis intersects twice as wide intervals where values may go anywhere.
            knowing = frame.sdc.linkage(masked, "rank_swap", knows=spec, known="half")
            row = {"data": data, "method": method, "p": p, "RSLD": knowing.rate}
            row |= {"published": published[0]}
            row |= {"DLD": frame.sdc.linkage(masked, "distance", known="half").rate}
            table.append(row | {"DLD published": published[1], "certain": knowing.certain})
    show("Rank swapping: right links by who knows it (RSLD) and who does not (DLD)", table)
    return table


def union(options: Options) -> list[Row]:
    """Link swaps by distribution to the records in the most intervals, half of the columns."""
    table = []
    for data in ("census", "eia"):
        frame = real(data)
        half = list(frame)[: (frame.shape[1] + 1) // 2]
        for line in lines_of(TABLE_4_6)[: 1 if options.quick else None]:
            p, old = line[0], line[1:4] if data == "census" else line[4:7]
            spec = RankSwap(list(frame), p=p, method="distribution")
            masked = frame.sdc.mask(spec, random_state=1)
            found = [frame.sdc.linkage(masked, "distance", half).correct]
            for factor in (0.5, 1.0):
                link = frame.sdc.linkage(masked, "rank_swap", half, knows=spec, factor=factor)
                found.append(link.correct)
            names = ("distance", "within p/2", "within p")
            both = {
                name: f"{new:.0f} / {was:.0f}"
                for name, new, was in zip(names, found, old, strict=True)
            }
            table.append({"data": data, "p": p} | both)
    show("Table 4.6: right links, ours / published", table)
    return table


def alignment(options: Options) -> list[Row]:
    """Link columns that were microaggregated one by one."""
    table = []
    for data, method in itertools.product(("census", "eia"), ("optimal", "mdav")):
        frame = real(data)
        spec = Microaggregation([[name] for name in frame], k=50, method=method, blocking=None)
        masked = frame.sdc.mask(spec)
        for r in (2, 5) if options.quick else (2, 3, 4, 5):
            known = list(frame)[:r]
            aligned = frame.sdc.linkage(masked, "alignment", known, knows=spec)
            beside = frame.sdc.linkage(masked, "intersection", known, knows=spec)
            row = {"data": data, "method": method, "known": r, "aligned": aligned.correct}
            row |= {"certain": aligned.certain, "neighbours": beside.correct}
            row |= {"neighbours certain": beside.certain}
            row |= {"distance": frame.sdc.linkage(masked, "distance", known).correct}
            if method == "optimal" and r in (2, 5):
                first, _, third = (each[r == 5] for each in FIGURES[data])
                row |= {"aligned published": first, "distance published": third}
            table.append(row)
    show("Microaggregation of single columns, k = 50: right links", table)
    return table


def loss(_options: Options) -> list[Row]:
    """Measure SSE of microaggregation of single columns, on several scales."""
    table = []
    for data, published in TABLE_4_7.items():
        frame = real(data)
        scaled = (frame - frame.min()) / (frame.max() - frame.min())
        for k, old in published.items():
            for method, was in zip(("optimal", "mdav"), old, strict=True):
                masked = frame.sdc.microaggregate(
                    [[name] for name in frame], k, method=method, blocking=None
                )
                whole = frame.sdc.sse(masked)
                ranged = ((masked - frame.min()) / (frame.max() - frame.min()) - scaled) ** 2
                table.append(
                    {
                        "data": data,
                        "k": k,
                        "method": method,
                        "published": was,
                        "in deviations": whole.sse,
                        "of ranges": float(ranged.sum().sum()),
                        "percent of SST": 100 * whole.ratio,
                    }
                )
    show("Table 4.7: SSE on several scales", table)
    return table


def projection(options: Options) -> list[Row]:
    """Link by projections, from two sets of columns to all."""
    table = []
    for (data, method, a, k), old in PROJECTED.items():
        if options.quick and k != 5:
            continue
        frame = real(data)
        sets = consecutive(list(frame), a)
        frame = frame[list(itertools.chain(*sets))]
        spec = Microaggregation(sets, k=k, method=method, blocking=None)
        masked = frame.sdc.mask(spec)
        schedule: Row = {"known": "groups", "groups": sets}
        risk = frame.sdc.disclosure_risk(masked, knows=spec, sample=None, **schedule)
        found = {
            each: frame.sdc.linkage(
                masked, "projection", knows=spec, projection=each, **schedule
            ).rate
            for each in ("pcp", "zscores")
        }
        score = frame.sdc.score(masked, knows=spec, sample=None, **schedule)
        row = {"data": data, "method": method, "a": a, "k": k, "DLD": risk.dld, "PLD": risk.pld}
        row |= {f"Proj {name}": rate for name, rate in found.items()}
        row |= dict(zip(("DLD publ.", "PLD publ.", "ProjLD publ."), old, strict=True))
        row |= {"score": score.score, "new": score.score_new, "max": score.score_max}
        table.append(row | {"strongest": risk.strongest.split(" ")[0]})
    show("Tables 4.10 and 4.11: projected linkage, and scores by who knows the masking", table)
    return table


def growth(options: Options) -> list[Row]:
    """Take the time of rank swapping linkage of all records to all."""
    table: list[Row] = []
    sizes = (10_000, 100_000) if options.quick else (100_000, 1_000_000)
    for p in (1, 2, 5):
        for n in sizes:
            frame = uniform(n, 5, seed=1).compute()
            spec = RankSwap(list(frame), p=p)
            masked = frame.sdc.mask(spec, random_state=1)
            if not table:
                frame.head(100).sdc.linkage(masked.head(100), "rank_swap", knows=spec)  # compiles
            # It runs on one core, whose time others who use the machine change less.
            start = time.process_time()
            link = frame.sdc.linkage(masked, "rank_swap", knows=spec)
            seconds = time.process_time() - start
            row = {"p": p, "records": n, "seconds": seconds, "rate": link.rate}
            row |= {"certain": link.certain, "candidates": link.candidates}
            if n == sizes[1]:
                ratio = seconds / table[-1]["seconds"]
                row |= {"exponent": math.log(ratio) / math.log(sizes[1] / sizes[0])}
            table.append(row)
    show("Rank swapping linkage of all records, 5 uniform columns", table)
    return table


def scale(options: Options) -> list[Row]:
    """Let a sample of intruders attack a large file, by window and by distance."""
    table = []
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        spec = RankSwap([f"x{j}" for j in range(5)], p=1, blocking=None)
        small = [folder / "small", folder / "small masked"]
        paths = [folder / "original", folder / "masked"]
        SwappedData(20_000, list(spec.masked), spec.p).write(small)
        seconds, _ = timed(write, options.rows, spec, paths)
        print(f"\n{options.rows:,} records made and written in {seconds:.1f} s", flush=True)
        with local_cluster(2, "1GiB") as client:
            for attack in ("distance", "rank_swap"):
                attacked(small, attack, spec)  # compiles
                run = watched(client, attacked, paths, attack, spec)
                link = run.pop("result")
                found = {"correct": link.correct, "certain": link.certain}
                found |= {"rate": link.rate, "low": link.low, "high": link.high}
                found["candidates"] = getattr(link, "candidates", None)
                table.append({"attack": attack, "rows": options.rows} | run | found)
                print(link, flush=True)
    show("10,000 intruders against all records, two workers with 1 GiB", table)
    return table


def write(rows: int, spec: RankSwap, paths: list[Path]) -> None:
    """Write records and their masked versions. What was drawn for them goes with this call."""
    SwappedData(rows, list(spec.masked), spec.p, seed=1).write(paths)


def attacked(paths: list[Path], attack: str, spec: RankSwap) -> Any:
    """Attack a masked data set."""
    frame, masked = (dd.read_parquet(path) for path in paths)
    known: Row = {"knows": spec} if attack == "rank_swap" else {}
    return frame.sdc.linkage(masked, attack, sample=10_000, random_state=1, **known)


PARTS = {
    "swapping": swapping,
    "union": union,
    "alignment": alignment,
    "loss": loss,
    "projection": projection,
    "growth": growth,
    "scale": scale,
}

if __name__ == "__main__":
    pd.set_option("display.width", 200)
    main()
