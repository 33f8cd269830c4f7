"""A job on a cluster: worker processes of this machine, or a scheduler that runs elsewhere.

``python examples/cluster_job.py`` starts one worker for each processor. With ``--scheduler`` the
same job runs there; its workers must have sdc_dask and reach the files under the same names.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from distributed import Client

import sdc_dask
from sdc_dask.release.cluster import local_cluster

# What is masked, and how: each set of columns on its own.
PLAN = [
    sdc_dask.Microaggregation([["income", "tax", "wealth"], ["age", "hours"]], k=10, by="sex"),
    sdc_dask.RankSwap(["rent"], p=5),
]


def main(scheduler: str | None, workers: int | None, folder: Path, rows: int) -> None:
    source, target = folder / "survey", folder / "release"
    with Client(scheduler) if scheduler else local_cluster(workers):
        sdc_dask.datasets.survey(rows, npartitions=8).to_parquet(source, write_index=False)
        print(sdc_dask.protect(source, target, PLAN, drop="person", keep="*"))


# Worker processes import this file: without this line each would start a cluster of its own.
if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scheduler", help="such as tls://host:8786")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--folder", type=Path, help="shared by all workers; default: a temporary")
    parser.add_argument("--rows", type=int, default=200_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.scheduler, given.workers, given.folder or Path(temporary), given.rows)
