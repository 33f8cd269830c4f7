"""2^d-tree blocking against univariate blocking, beside the published figures.

Published: J. Domingo-Ferrer, "Blocking methods for microdata protection", ESSnet-SDC, 2008,
chapter 3. Its data are drawn anew here, uniform from -10,000 to 10,000, so that SSE agrees in size
and not in digits. Parts:

leaves      Table 3.1: the number of blocks by L
dimensions  Table 3.2 and Figure 3.5: SSE by the number of columns
eia         Table 3.3: SSE of the EIA data, which are read from the folder SDC_DASK_DATA
            (default: ../shared/data beside the repository), file casc_eia.csv
sizes       Figures 3.2 to 3.4: SSE by L and by the number of records
halves      SSE of blocks by "halves" over that of "tree", by data, d and L: what blocking="auto"
            chooses by
auto        max_block="auto" against other L: time and SSE, uniform and survey data

SSE is that of standardized data.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from common import parser, save, show, timed
from numpy.typing import NDArray

import sdc_dask
from sdc_dask.datasets import uniform
from sdc_dask.kernels.mdav import mdav_brute, mdav_indexed

Rows = list[dict[str, Any]]
Part = Callable[[bool], dict[str, Any]]

K = 3
QUICK_RECORDS = 50_000
RECORDS = 2_500_000

# Table 3.1, by L: univariate blocks, and leaves of the tree.
PUBLISHED_LEAVES = {
    500: (5000, 16384),
    1000: (2500, 4096),
    2000: (1250, 4096),
    5000: (500, 1024),
    10000: (250, 1024),
}
# Table 3.2, by number of columns: SSE after univariate and after tree blocking, L = 10,000.
PUBLISHED_BY_DIMENSION = {
    2: (4.9, 4.55),
    3: (1155.54, 593.64),
    4: (21004.5, 7953.22),
    5: (99876.3, 37269.3),
    10: (1985030.0, 916119.0),
}
# Table 3.3, by L and k: SSE after univariate and after tree blocking.
PUBLISHED_EIA = {
    (100, 3): (663.435, 456.846),
    (200, 3): (503.281, 464.589),
    (100, 5): (1651.86, 713.095),
    (200, 5): (1179.25, 734.925),
}
PUBLISHED_EIA_WHOLE = {3: 217.38, 5: 750.21}
EIA_COLUMNS = [
    "UTILITYID",
    "RESREVENUE",
    "RESSALES",
    "COMREVENUE",
    "COMSALES",
    "INDREVENUE",
    "INDSALES",
    "OTHREVENUE",
    "OTHRSALES",
    "TOTREVENUE",
    "TOTSALES",
]
# "Quite similar values of SSE whatever the number of records": no number is given for "similar".
SIMILAR = 1.25


def main() -> None:
    """Run the benchmark."""
    arguments = parser(__doc__)
    arguments.add_argument("--parts", nargs="+", choices=list(PARTS), default=list(PARTS))
    options = arguments.parse_args()
    if options.quick:
        print("Quick run on small data: only the EIA figures are comparable with published ones.")
    for part in options.parts:
        tables = PARTS[part](options.quick)
        save(f"blocking_{part}" + ("_quick" if options.quick else ""), tables)


# Table 3.1


def leaves(quick: bool) -> dict[str, Any]:
    """Count leaves by L."""
    frame = records(QUICK_RECORDS if quick else RECORDS, 2)
    grid = finest_cells(frame)
    compile_kernels(2)
    table: Rows = []
    for published_l, (published_univariate, published_tree) in PUBLISHED_LEAVES.items():
        max_block = published_l * len(frame) // RECORDS
        row: dict[str, Any] = {"L": max_block}
        for method, published in (("univariate", published_univariate), ("tree", published_tree)):
            seconds, blocks = timed(
                frame.sdc.blocks, list(frame), K, max_block=max_block, method=method
            )
            row[f"{method} published"] = published
            row[method] = int((blocks.leaves.count > 0).sum())
            row[f"{method} seconds"] = seconds
        # The published numbers are those of full levels, 4^level.
        above = coarsened(grid, int(np.log2(published_tree)) // 2 - 1)
        row["level above"] = above.size
        row["of it over L"] = int((above > max_block).sum())
        row["by definition"] = leaves_by_definition(grid, max_block)
        table.append(row)
    show(f"Table 3.1: leaves of {len(frame):,} records, d = 2, k = {K}{remark(quick)}", table)
    note = note_on_full_levels(table[-1], coarsened(grid, 4))
    print(note)
    return {"records": len(frame), "leaves": table, "note": note}


def note_on_full_levels(row: dict[str, Any], above: NDArray[np.int64]) -> str:
    """Say why the last published number is not what the definition gives."""
    cells, over, max_block = row["level above"], row["of it over L"], row["L"]
    return (
        f"L = {max_block:,}: the published {row['tree published']:,} leaves are all cells of a "
        f"level, for which all {cells} cells of the level above have to be split.\nBy definition "
        f"a cell is split if it has more than L records: {over} of the {cells} have (mean "
        f"{above.mean():,.1f}, largest {above.max():,}), which makes "
        f"{cells} + 3 x {over} = {cells + 3 * over} leaves; the tree has {row['tree']:,}."
    )


def finest_cells(frame: pd.DataFrame, level: int = 10) -> NDArray[np.int64]:
    """Count the records of all cells of a level of the quadtree, without the package."""
    counts, _, _ = np.histogram2d(frame["x0"], frame["x1"], bins=2**level)
    return counts.astype(np.int64)


def coarsened(grid: NDArray[np.int64], level: int) -> NDArray[np.int64]:
    """Add up cells to those of a level above."""
    side = len(grid) >> level
    return grid.reshape(2**level, side, 2**level, side).sum(axis=(1, 3))


def leaves_by_definition(grid: NDArray[np.int64], max_block: int) -> int:
    """Count leaves with records: at most L records, in a parent with more."""
    found = 0
    split = np.ones((1, 1), bool)
    for level in range(int(np.log2(len(grid))) + 1):
        cells = coarsened(grid, level)
        found += int((split & (cells > 0) & (cells <= max_block)).sum())
        split = (split & (cells > max_block)).repeat(2, axis=0).repeat(2, axis=1)
    if split.any():
        raise ValueError("the finest cells have more than L records: count a lower level.")
    return found


# Table 3.2, Figure 3.5


def dimensions(quick: bool) -> dict[str, Any]:
    """Measure SSE by the number of columns."""
    n = QUICK_RECORDS if quick else RECORDS
    max_block = n // 250
    table: Rows = []
    for d in [2, 3, 4, 5, 10] if quick else range(2, 11):
        frame = records(n, d)
        compile_kernels(d)
        row: dict[str, Any] = {"d": d}
        published = dict(zip(BLOCKINGS, PUBLISHED_BY_DIMENSION.get(d, ()), strict=False))
        for blocking in BLOCKINGS:
            row[f"{blocking} published"] = published.get(blocking)
            row[blocking], row[f"{blocking} seconds"] = measure(frame, K, blocking, max_block)
        row["not above published"] = not_above(row["tree"], published.get("tree"), quick)
        row["below univariate"] = yes(row["tree"] < row["univariate"])
        table.append(row)
        print(f"d = {d}: done", flush=True)
    show(f"Table 3.2: SSE of {n:,} records, k = {K}, L = {max_block:,}{remark(quick)}", table)
    claims = [claim_below(table), claim_dimensions(table)]
    show("Figure 3.5: what the report says of SSE by d", claims)
    return {"records": n, "L": max_block, "sse": table, "claims": claims}


def claim_dimensions(table: Rows) -> dict[str, Any]:
    """Check that SSE grows with d."""
    growing = {blocking: rising([row[blocking] for row in table]) for blocking in BLOCKINGS}
    return {
        "claim": "SSE grows with d, for both",
        "here": ", ".join(f"{name}: {yes(grows)}" for name, grows in growing.items()),
        "holds": yes(all(growing.values())),
    }


# Table 3.3


def eia(quick: bool) -> dict[str, Any]:
    """Measure SSE of the EIA data."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    path = Path(os.environ.get("SDC_DASK_DATA", default)) / "casc_eia.csv"
    if not path.exists():
        print(f"\nTable 3.3: skipped, there is no {path}. Set SDC_DASK_DATA to its folder.")
        return {"skipped": f"no {path.name}"}
    frame = pd.read_csv(path)[EIA_COLUMNS].astype(float)
    compile_kernels(len(EIA_COLUMNS))
    whole = {k: measure(frame, k, None, "auto")[0] for k in PUBLISHED_EIA_WHOLE}
    table: Rows = []
    for (max_block, k), published in PUBLISHED_EIA.items():
        row: dict[str, Any] = {"L": max_block, "k": k}
        for blocking, value in zip(BLOCKINGS, published, strict=True):
            row[f"{blocking} published"] = value
            row[blocking], _ = measure(frame, k, blocking, max_block)
        row["whole published"] = PUBLISHED_EIA_WHOLE[k]
        row["whole"] = whole[k]
        row["not above published"] = not_above(row["tree"], row["tree published"], quick=False)
        row["below univariate"] = yes(row["tree"] < row["univariate"])
        table.append(row)
    show(f"Table 3.3: SSE of the EIA data, {len(frame):,} records, d = {frame.shape[1]}", table)
    by_attribute = eia_by_attribute(frame)
    show(
        "Univariate blocking of the EIA data by attribute: the report does not name it",
        by_attribute,
    )
    nearest = min(by_attribute[1:], key=lambda row: row["largest deviation"])
    note = f"Nearest to the published figures: {nearest['cut']} of {nearest['attribute']}."
    print(note)
    return {"sse": table, "univariate by attribute": by_attribute, "note": note}


def eia_by_attribute(frame: pd.DataFrame) -> Rows:
    """Measure SSE with every column as the one that is cut, into intervals or by rank."""
    published = {case: univariate for case, (univariate, _) in PUBLISHED_EIA.items()}
    table: Rows = [{"attribute": "(published)", "cut": "", **by_case(published)}]
    for name in frame:
        for cut, function in (("equal intervals", cut_range), ("runs of L records", cut_ranks)):
            sse = {case: function(frame, str(name), *case) for case in PUBLISHED_EIA}
            deviation = max(abs(sse[case] / published[case] - 1) for case in sse)
            table.append(
                {"attribute": name, "cut": cut, **by_case(sse), "largest deviation": deviation}
            )
    return table


def by_case(values: dict[tuple[int, int], float]) -> dict[str, float]:
    """Name columns after L and k."""
    return {f"L = {max_block}, k = {k}": value for (max_block, k), value in values.items()}


def cut_range(frame: pd.DataFrame, name: str, max_block: int, k: int) -> float:
    """Return SSE after cutting the range of a column into n/L intervals."""
    others = [column for column in frame if column != name]
    return measure(frame[[name, *others]], k, "univariate", max_block)[0]


def cut_ranks(frame: pd.DataFrame, name: str, max_block: int, k: int) -> float:
    """Return SSE after cutting the order by a column into runs of L records."""
    run = (frame[name].rank(method="first").astype(int) - 1) // max_block
    masked = frame.assign(run=run).sdc.microaggregate(list(frame), k, blocking=None, by="run")
    return float(frame.sdc.sse(masked[list(frame)]).sse)


# Figures 3.2 to 3.4


def sizes(quick: bool) -> dict[str, Any]:
    """Measure SSE by L and the number of records."""
    # The quick sizes keep L / sqrt(n): it says how thin the strips of univariate blocking are
    # beside the distance between neighbours.
    numbers = [12_500, 25_000, 37_500, 50_000] if quick else [500_000 * i for i in range(1, 5)]
    block_sizes = [80, 160, 320, 800, 1600] if quick else [500, 1000, 2000, 5000, 10000]
    compile_kernels(2)
    table: Rows = []
    for n in numbers:
        frame = records(n, 2)
        for max_block in block_sizes:
            row: dict[str, Any] = {"n": n, "L": max_block}
            for blocking in BLOCKINGS:
                row[blocking], row[f"{blocking} seconds"] = measure(frame, K, blocking, max_block)
            row["univariate / tree"] = row["univariate"] / row["tree"]
            table.append(row)
        print(f"n = {n:,}: done", flush=True)
    show(f"Figures 3.2 to 3.4: SSE by n and L, d = 2, k = {K}", table)
    by_size = [sse_by_number(table, max_block) for max_block in block_sizes]
    show("The same by L: SSE at the most records over SSE at the fewest, and its range", by_size)
    claims = [claim_below(table), claim_similar(by_size), *claims_growing(by_size)]
    show("Figures 3.2 to 3.4: what the report says", claims)
    return {"sse": table, "by L": by_size, "claims": claims}


def sse_by_number(table: Rows, max_block: int) -> dict[str, Any]:
    """Sum up what the number of records does to SSE at one L."""
    row: dict[str, Any] = {"L": max_block}
    for blocking in BLOCKINGS:
        values = [each[blocking] for each in table if each["L"] == max_block]
        row[f"{blocking} growth"] = values[-1] / values[0]
        row[f"{blocking} range"] = max(values) / min(values)
        row[f"{blocking} rises at every n"] = yes(rising(values))
    return row


def claim_below(table: Rows) -> dict[str, Any]:
    """Check that the tree has the lower SSE."""
    below = sum(row["tree"] < row["univariate"] for row in table)
    return {
        "claim": "SSE of the tree is always below that of univariate",
        "here": f"in {below} of {len(table)} cases",
        "holds": yes(below == len(table)),
    }


def claim_similar(by_size: Rows) -> dict[str, Any]:
    """Check that the number of records does not matter to the tree."""
    ranges = [row["tree range"] for row in by_size]
    return {
        "claim": f"tree: SSE about the same for an L whatever n (range up to {SIMILAR})",
        "here": f"range {min(ranges):.3f} to {max(ranges):.3f}",
        "holds": yes(max(ranges) <= SIMILAR),
    }


def claims_growing(by_size: Rows) -> Rows:
    """Check that univariate blocking loses with the number of records, most at small L."""
    growth = [row["univariate growth"] for row in by_size]
    rises = sum(row["univariate rises at every n"] == "yes" for row in by_size)
    return [
        {
            "claim": "univariate: SSE grows with n",
            "here": f"at every n for {rises} of {len(by_size)} L",
            "holds": yes(rises == len(by_size)),
        },
        {
            "claim": "univariate: it grows most for small L",
            "here": "growth by L: " + ", ".join(f"{each:.3g}" for each in growth),
            "holds": yes(rising(growth[::-1])),
        },
    ]


# What "auto" chooses


def halves(quick: bool) -> dict[str, Any]:
    """Measure SSE of blocks that are halved in one dimension at a time, and in all."""
    n = 10_000 if quick else 40_000
    rng = np.random.default_rng(1)
    survey = sdc_dask.datasets.survey(n)[["income", "tax", "wealth", "age", "hours"]].compute()
    frames = {f"survey, d = {d}": survey.iloc[:, :d] for d in (3, 4, 5)}
    for d in (2, 3, 4, 5, 7, 10):
        normal = rng.normal(size=(n, d))
        mixed = normal @ (rng.normal(size=(d, d)) * np.linspace(1, 0.2, d))
        drawn = {"uniform": rng.uniform(size=(n, d)), "lognormal": np.exp(normal), "normal": mixed}
        for name, values in drawn.items():
            names = [f"x{j}" for j in range(d)]
            frames[f"{name}, d = {d}"] = pd.DataFrame(values, columns=names)
    table: Rows = []
    for name, frame in frames.items():
        for max_block in (n // 30, n // 7, n // 3):
            row: dict[str, Any] = {"data": name, "L": max_block}
            for method in ("tree", "halves"):
                blocks = frame.sdc.blocks(list(frame), K, max_block=max_block, method=method)
                row[f"{method} blocks"] = len(blocks)
                masked = frame.sdc.microaggregate(list(frame), K, blocking=blocks)
                row[f"{method} SSE / SST %"] = 100 * frame.sdc.sse(masked).ratio
            row["halves / tree"] = row["halves SSE / SST %"] / row["tree SSE / SST %"]
            table.append(row)
    show(f"Blocks by halves and by the 2^d-tree, {n:,} records, k = {K}", table)
    return {"records": n, "halves": table}


def auto(quick: bool) -> dict[str, Any]:
    """Time and SSE by L, and what "auto" chooses."""
    n = QUICK_RECORDS if quick else 1_000_000
    survey = sdc_dask.datasets.survey(n)[["income", "tax", "wealth", "age", "hours"]].compute()
    frames = {f"uniform, d = {d}": records(n, d) for d in (2, 3, 5, 10)}
    table: Rows = []
    for name, frame in (frames | {"survey, d = 5": survey}).items():
        compile_kernels(frame.shape[1])
        for max_block in (1_000, 10_000, 100_000, "auto"):
            blocks = frame.sdc.blocks(list(frame.columns), 5, max_block=max_block)
            seconds, masked = timed(
                frame.sdc.microaggregate, list(frame.columns), 5, blocking=blocks
            )
            table.append(
                {
                    "data": name,
                    "n": n,
                    "max_block": max_block,
                    "L": blocks.max_block,
                    "blocks": len(blocks),
                    "largest": int(blocks.counts.max()),
                    "seconds": seconds,
                    "microseconds a record": seconds / n * 1e6,
                    "SSE / SST %": 100 * frame.sdc.sse(masked).ratio,
                }
            )
    show('max_block="auto" against other L, k = 5', table)
    return {"auto": table}


# What the parts share

BLOCKINGS = ("univariate", "tree")
PARTS: dict[str, Part] = {
    "leaves": leaves,
    "dimensions": dimensions,
    "eia": eia,
    "sizes": sizes,
    "halves": halves,
    "auto": auto,
}


def records(n: int, d: int) -> pd.DataFrame:
    """Draw the data of the report."""
    return uniform(n, d, seed=1).compute()


def compile_kernels(d: int) -> None:
    """Compile what depends on the number of columns, so that no measured run pays for it."""
    frame = records(1000, d)
    for blocking in BLOCKINGS:
        measure(frame, K, blocking, 100)
    points = np.ascontiguousarray(frame)
    mdav_brute(points, K)
    mdav_indexed(points, K)


def measure(
    frame: pd.DataFrame, k: int, blocking: str | None, max_block: int | str
) -> tuple[float, float]:
    """Mask all columns; return SSE, and the seconds that masking took."""
    seconds, masked = timed(
        frame.sdc.microaggregate, list(frame), k, blocking=blocking, max_block=max_block
    )
    return float(frame.sdc.sse(masked).sse), seconds


def not_above(ours: float, published: float | None, quick: bool) -> str | None:
    """Compare with a published figure, if there is one for data of this size."""
    if published is None:
        return None
    return "not comparable" if quick else yes(ours <= published)


def rising(values: list[float]) -> bool:
    """Tell whether every value exceeds the one before."""
    return all(a < b for a, b in itertools.pairwise(values))


def remark(quick: bool) -> str:
    """Warn of published figures beside those of small data."""
    return " (quick: published figures are not comparable)" if quick else ""


def yes(flag: bool) -> str:
    """Write a truth value in a table."""
    return "yes" if flag else "no"


if __name__ == "__main__":
    main()
