"""Monthly sales of firms: from a long file, with a row per firm and month, to a wide release.

Run it with ``python examples/time_series.py``; it takes some seconds and leaves nothing behind.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import sdc_dask
from sdc_dask.series import to_long, to_wide


def main(rows: int) -> None:
    firms = sdc_dask.datasets.panel(rows, 12).compute()
    months = list(firms)
    firms["firm"] = [f"F{number:06d}" for number in range(len(firms))]

    print("Groups of firms with similar values, or with similar slopes")
    for distance in ("euclidean", "sts"):
        spec = sdc_dask.SeriesMicroaggregation(months, k=5, distance=distance)
        print(f"\n{spec}")
        print(firms.sdc.series_score(firms.sdc.mask(spec), months, sample=500, random_state=0))

    long = to_long(firms, {"sales": months}, "firm", time="month")
    wide = [name for name in to_wide(long, "firm", "month").columns if name != "firm"]
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "sales.parquet"), Path(folder, "release")
        long.to_parquet(source)
        # The source is made wide on the way; specs name the columns of the wide layout.
        print(
            sdc_dask.protect(
                source,
                target,
                sdc_dask.SeriesMicroaggregation(wide, k=5),
                long=sdc_dask.Long("firm", "month"),
                drop="firm",
            )
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000)
    main(parser.parse_args().rows)
