"""k, L and p: what each of them costs, and what it buys.

Run it with ``python examples/choose_parameters.py``; it takes some seconds.
"""

from __future__ import annotations

import argparse

import pandas as pd

import sdc_dask

COLUMNS = ["income", "wealth", "age"]


def main(rows: int) -> None:
    people = sdc_dask.datasets.survey(rows).compute()[COLUMNS]

    print("k: the smallest group. Loss is SSE / SST in percent; interval is interval disclosure.")
    found = {k: measured(people, sdc_dask.Microaggregation(COLUMNS, k=k)) for k in (3, 5, 10, 25)}
    print(pd.DataFrame(found).T.rename_axis("k"))

    print("\nL: the largest block. Smaller blocks lose more, and are masked faster.")
    blocks = {
        size: measured(people, sdc_dask.Microaggregation(COLUMNS, k=5, max_block=size))
        for size in (50, 200, 1_000)
    }
    print(pd.DataFrame(blocks).T.rename_axis("L"))

    print("\np: how far values go. Links are those of an intruder who knows p.")
    swaps = {p: measured(people, sdc_dask.RankSwap(COLUMNS, p=p)) for p in (1, 5, 15)}
    for p, row in swaps.items():
        spec = sdc_dask.RankSwap(COLUMNS, p=p)
        swapped = people.sdc.mask(spec, random_state=0)
        links = people.sdc.linkage(
            swapped, "rank_swap", COLUMNS, knows=spec, sample=300, random_state=0
        )
        row["links"] = round(links.rate, 1)
    print(pd.DataFrame(swaps).T.rename_axis("p"))


def measured(people: pd.DataFrame, spec: sdc_dask.Spec) -> dict[str, float]:
    """Mask, and return what was lost and what remains near."""
    seed = 0 if spec.draws else None  # the same chance for all, to compare them
    masked = people.sdc.mask(spec, random_state=seed)
    return {
        "loss": round(100 * people.sdc.sse(masked, COLUMNS).ratio, 2),
        "interval": round(people.sdc.interval_disclosure(masked, COLUMNS).interval, 1),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000)
    main(parser.parse_args().rows)
