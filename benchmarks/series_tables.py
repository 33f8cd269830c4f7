"""Time series: loss and risk beside published tables, blocks beside none, and a large panel.

Published: J. Nin, "Contributions to Record Linkage for Disclosure Risk Assessment", doctoral
thesis, Universitat Autònoma de Barcelona. Parts:

m3           Table 6.5: 3,003 series of the M3 competition at 10 times, as one series and as two
stocks       a substitute for the data of Table 6.7: 32 companies, 220 days, as 2, 4 and 20 series
football     a substitute for the data of Table 6.6: teams by season, three series of 38 matches
blocking     SSE of blocks in 1 to 4 principal components over that of no blocks
scale        1 million series of length 24, two workers with 1 GiB: protect over moving the same
             data with plain Dask, memory, loss and risk in the same job; SSE beside no blocks

Figures are in percent. Real data are found as methods.py finds them.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
from common import parser, save, show
from end_to_end import move, watched
from methods import MissingError, reference

import sdc_dask
from sdc_dask import SeriesMicroaggregation
from sdc_dask.datasets import panel
from sdc_dask.masking import series as masking
from sdc_dask.release.cluster import local_cluster
from sdc_dask.series import resample

Row = dict[str, Any]
Options = argparse.Namespace
Series = dict[str, list[str]]

SIZES = (2, 3, 6, 9, 12)
PARTS_OF = ("il1", "il2", "il3", "il", "euld", "stsld", "interval", "dr", "score")

# Table 6.5 by distance: series, k, and IL1, IL2, IL3, IL, EULD, STSLD, ID, DR, score.
TABLE_6_5 = {
    "euclidean": """
        1 2 0.00 6.33 6.78 4.37 42.79 33.37 40.32 39.20 21.79
        1 3 0.00 8.32 9.27 5.86 25.67 17.32 39.20 30.35 18.11
        1 6 0.00 11.00 12.56 7.85 10.62 6.03 37.63 22.98 15.41
        1 9 0.00 12.57 14.20 8.92 7.19 3.33 36.52 20.89 14.91
        1 12 0.00 13.63 15.89 9.84 5.49 2.56 35.80 19.92 14.88
        2 2 0.00 26.27 29.44 18.57 28.37 22.56 28.41 26.94 22.75
        2 3 0.00 27.76 31.84 19.87 15.55 11.72 26.43 20.04 19.95
        2 6 0.00 26.12 32.30 19.47 7.74 5.11 26.42 16.43 17.95
        2 9 0.00 25.09 31.74 18.95 6.44 3.50 26.97 15.97 17.46
        2 12 0.00 24.41 30.34 18.25 5.44 2.56 27.76 15.88 17.07""",
    "sts": """
        1 2 0.00 10.16 7.88 6.01 30.67 42.12 38.14 37.27 21.64
        1 3 0.00 12.72 10.10 7.61 17.65 25.61 36.60 29.11 18.36
        1 6 0.00 16.53 13.39 9.97 7.16 10.92 34.05 21.55 15.76
        1 9 0.00 18.51 15.46 11.32 4.83 7.49 32.70 19.43 15.38
        1 12 0.00 20.41 17.10 12.50 3.26 5.19 31.39 17.81 15.16
        2 2 0.00 23.69 27.63 17.11 20.63 30.82 29.63 27.68 22.39
        2 3 0.00 26.01 29.40 18.47 11.39 17.62 27.80 21.15 19.81
        2 6 0.00 28.68 31.31 19.99 5.81 8.04 26.05 16.49 18.24
        2 9 0.00 30.30 32.78 21.03 3.70 5.61 24.93 14.79 17.91
        2 12 0.00 31.69 34.17 21.95 2.86 4.56 24.19 13.95 17.95""",
}


def main() -> None:
    """Run the parts."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    arguments.add_argument("--rows", type=int, help="of scale; default: 1 million, quick: 20,000")
    arguments.add_argument("--folder", type=Path, help="for large data; default: a temporary one")
    options = arguments.parse_args()
    options.rows = options.rows or (20_000 if options.quick else 1_000_000)
    tables = {}
    for part in options.parts:
        try:
            tables[part] = PARTS[part](options)
        except MissingError as error:
            print(f"\n{part}: left out, {error}")
    save("series_tables", tables)


def m3_frame() -> pd.DataFrame:
    """Return the series of the M3 competition at ten times."""
    series = reference("m3_series").groupby("series_id", sort=False)["value"]
    return _frame(resample([each.to_numpy() for _, each in series], 10))


def _frame(values: np.ndarray) -> pd.DataFrame:
    return pd.DataFrame(values, columns=[f"t{j}" for j in range(values.shape[1])])


def split(columns: list[str], parts: int) -> Series:
    """Cut one series into several of the same length."""
    length = len(columns) // parts
    return {f"part {i}": columns[i * length : (i + 1) * length] for i in range(parts)}


def measured(frame: pd.DataFrame, series: Series, k: int, distance: str) -> Row:
    """Mask, and measure loss and risk."""
    spec = SeriesMicroaggregation(series, k, distance=distance, blocking=None)
    found = frame.sdc.series_score(frame.sdc.mask(spec), series, sample=None)
    return {name: round(getattr(found, name), 2) for name in PARTS_OF}


def m3(options: Options) -> list[Row]:
    """Show the M3 series beside Table 6.5."""
    frame = m3_frame()
    table = []
    for distance, text in TABLE_6_5.items():
        for line in text.strip().splitlines()[:: 4 if options.quick else 1]:
            parts, k, *published = line.split()
            found = measured(frame, split(list(frame), int(parts)), int(k), distance)
            row: Row = {"distance": distance, "series": int(parts), "k": int(k)}
            for (name, value), printed in zip(found.items(), published, strict=True):
                row |= {name: value, f"({name})": float(printed)}
            table.append(row)
    show("M3 competition, in parentheses as published in Table 6.5", table)
    return table


def stocks(options: Options) -> list[Row]:
    """Show a panel of stock prices."""
    prices = reference("ibex_panel").iloc[-220:, 1:]
    frame = _frame(prices.to_numpy().T)
    return _show("32 stocks, 220 days", frame, [split(list(frame), i) for i in (2, 4, 20)], options)


def football(options: Options) -> list[Row]:
    """Show a panel of football teams."""
    matches = reference("football_laliga_panel").query("match_no <= 38")
    columns = ("cum_points", "cum_goals_for", "cum_goals_against")
    wide = matches.pivot(index=["season", "team"], columns="match_no", values=list(columns))
    series = {name: [f"{name}_{j}" for j in range(38)] for name in columns}
    names = [name for each in series.values() for name in each]
    frame = pd.DataFrame(wide.to_numpy(), columns=names)
    return _show(f"{len(frame)} teams and seasons, 38 matches", frame, [series], options)


def _show(title: str, frame: pd.DataFrame, all_series: list[Series], options: Options) -> list[Row]:
    table = [
        {"distance": distance, "series": len(series), "k": k} | measured(frame, series, k, distance)
        for series in all_series
        for distance in ("euclidean", "sts")
        for k in (SIZES[::4] if options.quick else SIZES)
    ]
    show(title, table)
    return table


def blocking(options: Options) -> list[Row]:
    """Compare blocks in some principal components with one block for all, by SSE."""
    table = []
    frames = {"panel": panel(5_000 if options.quick else 50_000, 24).compute()}
    try:
        frames["M3"] = m3_frame()
    except MissingError as error:
        print(f"\nM3: left out, {error}")
    for name, frame in frames.items():
        columns = list(frame)
        for distance in ("euclidean", "sts"):
            spec = SeriesMicroaggregation(columns, 3, distance=distance, blocking=None)
            whole = _sse(frame, spec)
            for max_block in (len(frame) // 25, len(frame) // 5):
                row: Row = {"data": name, "distance": distance, "largest block": max_block}
                for axes in (1, 2, 3, 4):
                    masking.AXES = axes
                    cut = SeriesMicroaggregation(columns, 3, distance=distance, max_block=max_block)
                    row[f"{axes} axes"] = round(_sse(frame, cut) / whole, 4)
                masking.AXES = 2
                table.append(row)
    show("SSE in the space of the distance, over that without blocks, k = 3", table)
    return table


def _sse(frame: pd.DataFrame, spec: SeriesMicroaggregation) -> float:
    """Return the squared distances between series and their means, as they were masked."""
    old, new = (each.to_numpy() for each in (frame, frame.sdc.mask(spec)))
    if spec.distance == "sts":
        old, new = np.diff(old, axis=1), np.diff(new, axis=1)
    return float(((old - new) ** 2).sum())


def scale(options: Options) -> list[Row]:
    """Protect a large panel, beside moving it; measure what was lost and what is risked."""
    table: list[Row] = []
    times = [f"t{j}" for j in range(24)]
    some = panel(min(options.rows, 50_000), 24).compute()
    with (
        tempfile.TemporaryDirectory(dir=options.folder) as name,
        local_cluster(2, "1GiB") as client,
    ):
        folder = Path(name)
        # Files that are one piece each, so that source and release have the same partitions.
        data = panel(options.rows, 24, npartitions=-(-options.rows // 50_000))
        data.to_parquet(folder / "source", write_index=False)
        panel(5_000, 24, npartitions=4).to_parquet(folder / "small", write_index=False)
        for distance in ("euclidean", "sts"):
            spec = SeriesMicroaggregation(times, 5, distance=distance)
            sdc_dask.protect(folder / "small", folder / "warm", spec, replace=True, keep="*")
            moving = watched(client, move, folder / "source", folder / f"moved-{distance}", "t0")
            moving.pop("result")
            run = watched(
                client,
                sdc_dask.protect,
                folder / "source",
                folder / distance,
                spec,
                order="source",  # to be compared with
            )
            summary = run.pop("result")
            print(summary, flush=True)
            judged = watched(client, judge, folder / "source", folder / distance, times)
            score = judged.pop("result")
            blocks = SeriesMicroaggregation(times, 5, distance=distance, max_block=2_000)
            whole = SeriesMicroaggregation(times, 5, distance=distance, blocking=None)
            table.append(
                {
                    "distance": distance,
                    "rows": options.rows,
                    "move s": moving["seconds"],
                    "protect s": run["seconds"],
                    "over moving": run["seconds"] / moving["seconds"],
                    "peak MiB a worker": run["peak MiB a worker"],
                    "restarts": run["restarts"],
                    "SSE over no blocks": _sse(some, blocks) / _sse(some, whole),
                    "loss and risk s": judged["seconds"],
                    "il": score.il,
                    "dr": score.dr,
                    "euld": score.euld,
                    "stsld": score.stsld,
                }
            )
    show("A large panel of series of length 24, k = 5, two workers with 1 GiB", table)
    return table


def judge(source: Path, target: Path, times: list[str]) -> Any:
    """Measure loss and risk of a release."""
    original, masked = (dd.read_parquet(path) for path in (source, target))
    return original.sdc.series_score(masked, times, sample=2_000, random_state=1)


PARTS = {
    "m3": m3,
    "stocks": stocks,
    "football": football,
    "blocking": blocking,
    "scale": scale,
}

if __name__ == "__main__":
    main()
