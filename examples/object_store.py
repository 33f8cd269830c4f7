"""A release from and to a store. Here it is the memory of this process, so that nothing is needed.

Run it with ``python examples/object_store.py``. With ``--place s3://bucket/prefix`` it is S3, which
is reached as the environment says (``pip install 'sdc-dask[s3]'``).
"""

from __future__ import annotations

import argparse

import sdc_dask


def main(rows: int, place: str) -> None:
    source, target = f"{place}/survey", f"{place}/release"
    survey = sdc_dask.datasets.survey(rows, npartitions=4)
    survey.to_parquet(source, write_index=False)

    spec = sdc_dask.Microaggregation(["income", "wealth", "age"], k=10, by="sex")
    # Files go under a prefix beside the target and are read again. The manifest is written last:
    # a prefix without one is no release.
    summary = sdc_dask.protect(
        source, target, spec, drop=["person", "household"], keep="*", replace=True
    )
    print(summary)
    print(sdc_dask.verify(target))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000)
    parser.add_argument("--place", default="memory://office", help="a URL that fsspec knows")
    given = parser.parse_args()
    main(given.rows, given.place)
