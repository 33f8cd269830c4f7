"""SSE: squared distance between original and masked records, in units of deviation."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
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


# By column: the sums of the original's values and of the differences.
Partial = dict[Hashable, tuple[ExactSum, ExactSum]]


def sse(original: Frame, masked: Frame, columns: Sequence[Hashable]) -> SSE:
    """Compare frames row by row, in one pass."""
    columns = list(columns)
    frames = [original[columns], masked[columns]]
    rows, sums = map_reduce(frames, _chunk, merge_squares, columns)
    return of_squares(rows, sums)


def _chunk(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: list[Hashable]
) -> tuple[int, Partial]:
    if len(original) != len(masked) or not original.index.equals(masked.index):
        raise ValueError(
            f"partition {number} of the masked frame has other rows than that of the original: "
            f"{len(masked)} rows against {len(original)}, or another index. Compare frames with "
            "the same rows in the same order, as masking with keep_order=True returns them."
        )
    return partition_squares(to_float(original, columns), to_float(masked, columns), columns)


def partition_squares(
    original: NDArray[np.float64], masked: NDArray[np.float64], columns: Sequence[Hashable]
) -> tuple[int, Partial]:
    """Return the number of rows and the sums of one partition."""
    sums: Partial = {}
    for j, column in enumerate(columns):
        old, new = original[:, j], masked[:, j]
        present = ~np.isnan(old)
        differing = int((present == np.isnan(new)).sum())
        if differing:
            raise ValueError(
                f"column {column!r} has {differing} cells that are missing in one frame and not in "
                "the other: their difference is not a number. Fill or drop them in both."
            )
        old, new = old[present], new[present]
        sums[column] = exact_sum(old), _sum_of_differences(old, new)
    return len(original), sums


def _sum_of_differences(old: NDArray[np.float64], new: NDArray[np.float64]) -> ExactSum:
    with np.errstate(over="ignore"):
        difference = old - new
    if np.isfinite(difference).all():
        return exact_sum(difference)
    halves = exact_sum(old / 2 - new / 2)
    return replace(halves, total=2 * halves.total, squares=4 * halves.squares)


def merge_squares(parts: Sequence[tuple[int, Partial]]) -> tuple[int, Partial]:
    """Add up the sums of partitions."""
    rows, sums = parts[0]
    for more_rows, more in parts[1:]:
        rows += more_rows
        sums = {
            column: (old + more[column][0], difference + more[column][1])
            for column, (old, difference) in sums.items()
        }
    return rows, sums


def of_squares(rows: int, sums: Partial) -> SSE:
    """Standardize and add up. A constant column has the scale 1 and no share in SST."""
    by_column = {
        column: difference.sum_of_squares
        if original.spread == 0
        else difference.squares * original.n**2 / original.spread
        for column, (original, difference) in sums.items()
    }
    total = sum(by_column.values())
    sst = float(sum(original.n for original, _ in sums.values() if original.spread))
    return SSE(total, sst, total / sst if sst else 0.0, rows, by_column)
