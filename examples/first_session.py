"""A first session: the same lines on pandas and on Dask, then from parquet to parquet.

Run it with ``python examples/first_session.py``; it takes a few seconds and leaves nothing behind.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import sdc_dask

COLUMNS = ["income", "wealth", "age"]


def main(rows: int) -> None:
    people = sdc_dask.datasets.survey(rows, npartitions=4)  # a Dask frame

    print("In memory, with pandas")
    small = people.head(1_000, npartitions=-1)
    masked = small.sdc.microaggregate(COLUMNS, k=5)
    print(small[COLUMNS].head(3), masked[COLUMNS].head(3), sep="\n")

    print("\nThe same with Dask, where data need not fit in memory")
    masked = people.sdc.microaggregate(COLUMNS, k=5)  # lazy
    print(people.sdc.sse(masked, COLUMNS))
    print(masked.sdc.anonymity(COLUMNS, k=5))

    print("\nFrom parquet to parquet, checked before it appears")
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder, "survey"), Path(folder, "release")
        people.to_parquet(source, write_index=False)
        spec = sdc_dask.Microaggregation(COLUMNS, k=5)
        print(sdc_dask.protect(source, target, spec, drop="person", keep="*"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    main(parser.parse_args().rows)
