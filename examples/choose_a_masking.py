"""Which masking loses least for the risk that is left: a grid of them, tried on a sample.

Run it with ``python examples/choose_a_masking.py``; it takes less than a minute.
"""

from __future__ import annotations

import argparse

import sdc_dask

COLUMNS = ["income", "wealth", "age"]


def main(rows: int, max_risk: float) -> None:
    people = sdc_dask.datasets.survey(rows, npartitions=4)[COLUMNS].persist()
    found = people.sdc.suggest(COLUMNS, records=2_000, random_state=0)
    print(found)

    # No figure says which of the frontier is best: that depends on the risk that is accepted.
    spec = found.choose(max_risk=max_risk)
    print(f"\nThe least loss with a risk of at most {max_risk:g} percent: {spec}")
    # Masked frames are lazy, and measures read them several times: masked once, they are kept.
    masked = people.sdc.mask(spec).persist()
    print("What was lost by it on all records, and what intruders find:")
    print(people.sdc.sse(masked))
    print(people.sdc.information_loss(masked))
    print(people.sdc.attack(masked, knows=spec, sample=1_000, random_state=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--max-risk", type=float, default=50.0)
    options = parser.parse_args()
    main(options.rows, options.max_risk)
