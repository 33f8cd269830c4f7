"""Which masking loses least for the risk that is left: several of them in one table.

Run it with ``python examples/choose_a_masking.py``; it takes less than a minute.
"""

from __future__ import annotations

import argparse

import sdc_dask

COLUMNS = ["income", "wealth", "age"]


def main(rows: int) -> None:
    people = sdc_dask.datasets.survey(rows, npartitions=4)[COLUMNS].persist()
    maskings = {
        "MDAV, k = 5": people.sdc.microaggregate(COLUMNS, k=5),
        "MDAV, k = 25": people.sdc.microaggregate(COLUMNS, k=25),
        "by principal component, k = 5": people.sdc.microaggregate(COLUMNS, k=5, method="pcp"),
        "swapped, p = 2": people.sdc.rank_swap(COLUMNS, p=2),
        "swapped, p = 10": people.sdc.rank_swap(COLUMNS, p=10),
        "swapped in blocks, p = 10": people.sdc.rank_swap(COLUMNS, p=10, blocking="tree"),
    }
    # Masked frames are lazy, and measures read them several times: masked once, they are kept.
    maskings = {name: masked.persist() for name, masked in maskings.items()}
    table = people.sdc.compare(maskings, sample=1_000, random_state=0)
    print(f"The intruder knows {table.attrs['known']}; values agree {table.attrs['agreement']}.")
    print(table.drop(columns="note").sort_values("score").round(2).to_string())
    print("\n".join(f"{name}: {note}" for name, note in table["note"].items()))

    best = table["score"].idxmin()
    print(f"\nThe lowest score: {best}. What was lost by it, and what an intruder finds:")
    print(people.sdc.information_loss(maskings[best]))
    print(people.sdc.disclosure_risk(maskings[best], sample=1_000, random_state=0))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    main(parser.parse_args().rows)
