"""SSE: squared distance between original and masked records, in units of deviation."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.pairs import pair_frames, pair_values
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.results import Result


@dataclass(frozen=True, repr=False)
class SSE(Result):
    """Within-groups sum of squares of masked data, standardized by the original's deviations."""

    sse: float = field(metadata={"note": "lower is better"})
    sst: float = field(metadata={"note": "what one group for all records would give"})
    ratio: float = field(metadata={"note": "sse / sst: the share of variation that was lost"})
    rows: int = field(metadata={"note": "records"})
    by_column: dict[Hashable, float] = field(metadata={"note": ""})


# By column: exact sums of values or of differences.
Sums = dict[Hashable, ExactSum]


def sse(original: Frame, masked: Frame, columns: Sequence[Hashable]) -> SSE:
    """Compare frames row by row, in one pass."""
    columns = list(columns)
    frames = pair_frames(original, masked, columns)
    rows, values, differences = map_reduce(frames, _chunk, _merge, columns)
    return of_sums(rows, values, differences)


def _chunk(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: list[Hashable]
) -> tuple[int, Sums, Sums]:
    old, new = pair_values(original, masked, number, columns)
    values = {column: exact_sum(old[~np.isnan(old[:, j]), j]) for j, column in enumerate(columns)}
    by_column = (dict(zip(columns, each.T, strict=True)) for each in (old, new))
    return len(old), values, sum_differences(*by_column)


def _merge(parts: list[tuple[int, Sums, Sums]]) -> tuple[int, Sums, Sums]:
    rows, values, differences = zip(*parts, strict=True)
    return sum(rows), merge_sums(values), merge_sums(differences)


def sum_differences(
    original: Mapping[Hashable, NDArray[np.float64]], masked: Mapping[Hashable, NDArray[np.float64]]
) -> Sums:
    """Return the sums of the differences between columns."""
    sums: Sums = {}
    for column, old in original.items():
        new = masked[column]
        present = ~np.isnan(old)
        differing = int((present == np.isnan(new)).sum())
        if differing:
            raise SdcValueError(
                f"column {column!r} has {differing} cells that are missing in one frame and not in "
                "the other: their difference is not a number. Fill or drop them in both."
            )
        whole = bool(present.all())
        sums[column] = _sum_of_differences(*((old, new) if whole else (old[present], new[present])))
    return sums


def _sum_of_differences(old: NDArray[np.float64], new: NDArray[np.float64]) -> ExactSum:
    with np.errstate(over="ignore"):
        difference = old - new
    if np.isfinite(difference).all():
        return exact_sum(difference)
    halves = exact_sum(old / 2 - new / 2)
    return replace(halves, total=2 * halves.total, squares=4 * halves.squares)


def merge_sums(parts: Sequence[Sums]) -> Sums:
    """Add up the sums of partitions."""
    total = dict(parts[0])
    for part in parts[1:]:
        for column, sums in part.items():
            total[column] += sums
    return total


def of_sums(rows: int, values: Sums, differences: Sums) -> SSE:
    """Standardize and add up. A constant column has the scale 1 and no share in SST.

    Parameters
    ----------
    rows : int
        Number of records.
    values : dict
        Sums of the original's values, by column.
    differences : dict
        Sums of the differences between original and masked values, by column.
    """
    by_column = {}
    for column, difference in differences.items():
        original = values[column]
        if original.spread:
            try:
                by_column[column] = difference.squares * original.n**2 / original.spread
            except OverflowError:
                by_column[column] = math.inf
        else:
            by_column[column] = difference.sum_of_squares
    total = sum(by_column.values())
    sst = float(sum(values[column].n for column in differences if values[column].spread))
    return SSE(total, sst, total / sst if sst else 0.0, rows, by_column)
