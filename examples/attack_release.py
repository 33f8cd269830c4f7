"""Attack your own release, from the weakest intruder to the strongest, before others do.

Run it with ``python examples/attack_release.py``; it takes some seconds.
"""

from __future__ import annotations

import argparse

import sdc_dask

COLUMNS = ["income", "wealth", "age"]


def main(rows: int) -> None:
    people = sdc_dask.datasets.survey(rows).compute()
    spec = sdc_dask.RankSwap(COLUMNS, p=5)
    masked = people.sdc.mask(spec, random_state=1)

    print("1. Who is alone in columns that were not masked?")
    print(masked.sdc.anonymity(["region", "sex", "occupation"], k=5))

    print("\n2. Somebody who knows original values takes the nearest masked record.")
    print(people.sdc.linkage(masked, "distance", COLUMNS, sample=500, random_state=0))

    print("\n3. Somebody who knows how the data was masked, too.")
    print(people.sdc.attack(masked, spec, COLUMNS, sample=500, random_state=0))

    print("\n4. Columns masked one by one lose least, and protect nobody.")
    ranked = sdc_dask.Microaggregation([[name] for name in COLUMNS], k=5, method="optimal")
    print(people.sdc.attack(people.sdc.mask(ranked), ranked, COLUMNS, sample=500, random_state=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    main(parser.parse_args().rows)
