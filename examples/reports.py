"""Reports: of two maskings to choose from, of the one that was chosen, and of a release.

Run it with ``python examples/reports.py --folder reports`` to keep the pages. It needs jinja2:
``pip install 'sdc-dask[report]'``.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import sdc_dask

COLUMNS = ["income", "wealth", "age"]
SPECS = {
    "groups of 5": sdc_dask.Microaggregation(COLUMNS, k=5),
    "swapped by 5 percent": sdc_dask.RankSwap(COLUMNS, p=5),
}


def main(rows: int, folder: Path) -> None:
    people = sdc_dask.datasets.survey(rows).compute()
    released = people.drop(columns=["person", "household"])
    masked = {name: released.sdc.mask(spec) for name, spec in SPECS.items()}

    # Risk and loss of both in one table, then each in full.
    print(sdc_dask.report(people, masked, folder / "choice.html", knows=SPECS, sample=500))

    # For those who use what was chosen: nothing of risk.
    chosen = "groups of 5"
    print(
        sdc_dask.report(
            people,
            masked[chosen],
            folder / "for_users.html",
            knows=SPECS[chosen],
            edition="external",
        )
    )

    # Of a release, while it is known which rows are the same.
    people.to_parquet(folder / "survey.parquet", index=False)
    sdc_dask.protect(
        folder / "survey.parquet",
        folder / "release",
        SPECS[chosen],
        drop=["person", "household"],
        keep="*",
        report=folder / "release_internal.html",
        external_report=folder / "release.html",
        confidential="occupation",
    )
    print(*sorted(page.name for page in folder.glob("*.html")))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=3_000)
    parser.add_argument("--folder", type=Path, help="keep the pages here; default: a temporary one")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        main(given.rows, given.folder or Path(temporary))
