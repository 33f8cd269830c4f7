"""A release from parquet to parquet: every column decided upon, checked, and looked at again.

Run it with ``python examples/release.py``; it takes a few seconds and leaves nothing behind.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import sdc_dask

# What is masked, and how. Groups never mix regions; rents change places with similar ones.
PLAN = [
    sdc_dask.Microaggregation(["income", "wealth", "age"], k=5, by="region"),
    sdc_dask.RankSwap(["rent"], p=5),
]


def main(rows: int, folder: Path) -> None:
    source, target = folder / "survey", folder / "release"
    survey = sdc_dask.datasets.survey(rows, npartitions=4)
    survey.to_parquet(source, write_index=False)

    # A column that was forgotten is an error, before anything is masked.
    try:
        sdc_dask.protect(source, target, PLAN, drop="person")
    except sdc_dask.SdcError as error:
        print(f"Refused: {error}\n")

    job = sdc_dask.Job(
        source,
        target,
        PLAN,
        drop=["person", "household"],
        keep=["sex", "occupation", "interview", "hours", "tax"],
        count=[["region", "sex", "occupation"]],  # what an intruder may know of kept columns
    )
    job.write(folder / "job.toml")  # to be reviewed, and run again: sdc-dask protect job.toml
    print(job.run())

    # By its files alone, at any time and on any machine.
    print(sdc_dask.verify(target))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--folder", type=Path, help="keep the files here; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.rows, given.folder or Path(temporary))
