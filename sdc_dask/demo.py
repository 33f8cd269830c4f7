"""The demonstration: a made-up survey is protected, and figures say what it cost and what it left.

What was lost is measured between the files; what is risked is counted on them.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import dask
import dask.dataframe as dd
import pandas as pd

from sdc_dask.datasets import survey
from sdc_dask.errors import SdcFileExistsError
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.release.protect import protect
from sdc_dask.release.summary import Summary

MASKED = ("income", "tax", "wealth", "age", "hours")
WITHIN = "region"
IDENTIFIER = "person"
FILES = 8


def run(rows: int, k: int, folder: Path | None = None) -> None:
    """Make a survey, protect it, and print what was lost and what is risked.

    Parameters
    ----------
    rows : int
        Number of persons.
    k : int
        Smallest group.
    folder : Path, optional
        Where the files stay, as ``survey`` and ``release``; by default they are removed.
    """
    with _kept_or_temporary(folder) as place:
        source, target = place / "survey", place / "release"
        print(f"Making a survey of {rows:,} persons: {source}", flush=True)
        made = survey(rows, npartitions=min(rows, FILES))
        # The index numbers the persons: it would be released with the other columns.
        made.to_parquet(source, write_index=False)
        print(
            f"Protecting {', '.join(MASKED)} in groups of at least {k} persons of one {WITHIN}, "
            f"without {IDENTIFIER}\n",
            flush=True,
        )
        summary = protect(
            source, target, Microaggregation(list(MASKED), k, by=WITHIN), drop=IDENTIFIER, keep="*"
        )
        print(f"{summary}\n", flush=True)
        original, released = dd.read_parquet(source), dd.read_parquet(target)
        print(_lost(original, released, summary), end="\n\n", flush=True)
        print(_risked(original, released, summary), flush=True)
        if folder is not None:
            print(f"\nThe files are kept in {place}.")


@contextlib.contextmanager
def _kept_or_temporary(folder: Path | None) -> Iterator[Path]:
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="sdc-dask-demo-") as temporary:
            yield Path(temporary)
        return
    for name in ("survey", "release"):
        if (folder / name).exists():
            raise SdcFileExistsError(
                f"folder {str(folder)!r} has a {name!r} already: remove it, or choose another one."
            )
    folder.mkdir(parents=True, exist_ok=True)
    yield folder


def _lost(original: dd.DataFrame, released: dd.DataFrame, summary: Summary) -> str:
    """Say how far the released data is from the original one."""
    assert summary.sse is not None
    changes = _changes(original[list(MASKED)], released[list(MASKED)])
    lines = [
        "What was lost",
        f"  {_percent(summary.sse.ratio)} of the variation in the masked columns (SSE / SST): what "
        "differs within groups.",
        f"  {'':<10}{'mean':>12}{'change':>12}{'deviation':>14}{'change':>12}{'lost':>11}",
    ]
    for name, row in changes.iterrows():
        lost = summary.sse.by_column[name] / summary.rows
        lines.append(
            f"  {name:<10}{row['mean']:>12,.1f}{row['mean change']:>+12.4%}"
            f"{row['deviation']:>14,.1f}{row['deviation change']:>+12.4%}{lost:>11.4%}"
        )
    return "\n".join(lines)


def _changes(original: dd.DataFrame, released: dd.DataFrame) -> pd.DataFrame:
    """Compare means and standard deviations, in one pass over both frames."""
    mean, deviation, new_mean, new_deviation = dask.compute(
        original.mean(), original.std(ddof=0), released.mean(), released.std(ddof=0)
    )
    return pd.DataFrame(
        {
            "mean": mean,
            "mean change": new_mean / mean - 1,
            "deviation": deviation,
            "deviation change": new_deviation / deviation - 1,
        }
    )


def _risked(original: dd.DataFrame, released: dd.DataFrame, summary: Summary) -> str:
    """Say how far records can still be told apart."""
    (reached,) = summary.anonymity
    columns = [*MASKED, WITHIN]
    unmasked = [name for name in summary.kept if name != WITHIN]
    return "\n".join(
        [
            "What is risked",
            f"  Every person shares masked values and {WITHIN} with at least {reached.k_min - 1} "
            f"others: {reached.classes:,} classes, {reached.k_mean:.2f} persons on average.",
            f"  Persons who are alone with these values: {_percent(_alone(original, columns))} "
            f"before, {_percent(_alone(released, columns))} after.",
            f"  Not masked: {', '.join(unmasked)}. They single out persons as before: "
            f"{_percent(_alone(released, unmasked))} are alone with their values of these.",
            "  Columns that someone may know of a person are to be masked, coarsened or dropped.",
        ]
    )


def _alone(frame: dd.DataFrame, columns: Sequence[str]) -> float:
    """Return the share of records that no other record equals in some columns."""
    counted = frame.sdc.anonymity(list(columns), k=2)
    return counted.below_k / counted.rows


def _percent(share: float) -> str:
    return f"{share:.2%}"
