"""A release of numbers, dates and categories: recoded, suppressed, averaged and swapped.

Run it with ``python examples/mixed_release.py``; it takes a few seconds.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import sdc_dask

KEYS = ["sex", "region", "occupation", "age"]  # what an intruder may know
# Those that change records where they are go first: later ones see ranges in the place of ages.
PLAN = [
    sdc_dask.Recode(["age"], bins=[0, 18, 30, 45, 65, 120]),
    sdc_dask.Suppress(KEYS, k=3, costs={"occupation": 0.5}),
    sdc_dask.Microaggregation(["income", "wealth", "interview"], k=5),
    sdc_dask.RankSwap(["rent"], p=5),
]


def main(rows: int, folder: Path) -> None:
    people = sdc_dask.datasets.survey(rows).compute()
    people.to_parquet(folder / "survey.parquet", index=False)
    print("Before:", people.sdc.anonymity(KEYS, k=3), sep="\n")

    masked = people.sdc.mask(PLAN)
    print("\nAfter:", masked.sdc.anonymity(KEYS, k=3), sep="\n")
    recoded = people.sdc.mask(PLAN[0])  # an intruder recodes what he knows, too
    print("\nLinks by the keys alone:")
    print(recoded.sdc.linkage(masked, "gower", columns=KEYS, sample=500, random_state=0))

    print()
    print(
        sdc_dask.protect(
            folder / "survey.parquet",
            folder / "release",
            PLAN,
            drop=["person", "household", "tax"],
            keep=["hours"],
            count=[[*KEYS, "hours"]],
        )
    )
    print(sdc_dask.verify(folder / "release"))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--folder", type=Path, help="keep the files here; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.rows, given.folder or Path(temporary))
