"""Original and masked records side by side: the same rows, or an error."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, is_dask
from sdc_dask.errors import SdcValueError

_HOW = (
    "Compare frames with the same rows, as masking returns them, read both from files that were "
    "written alike, or give both an index with the same unique labels."
)


def pair_frames(original: Frame, masked: Frame, columns: Sequence[Hashable]) -> tuple[Frame, Frame]:
    """Return the columns of two frames that can be walked partition by partition.

    Dask frames with other partitions are brought to those of the original if both know their
    divisions, and refused otherwise. Whether rows are the same is seen when they are read, by
    :func:`pair_parts`.
    """
    one, other = original[list(columns)], masked[list(columns)]
    if not is_dask(original):
        return one, other
    if original.npartitions == masked.npartitions and (
        original.divisions == masked.divisions
        or not (original.known_divisions and masked.known_divisions)
    ):
        return one, other
    ends = [(each.divisions[0], each.divisions[-1]) for each in (original, masked)]
    if original.known_divisions and masked.known_divisions and ends[0] == ends[1]:
        return one, other.repartition(divisions=original.divisions)
    what = f"{masked.npartitions} partitions, the original {original.npartitions}"
    if original.npartitions == masked.npartitions:
        what = "other divisions than the original: labels of its index differ, or where it is cut"
    raise SdcValueError(
        f"the masked frame has {what}. Rows can be compared only partition by partition. {_HOW} "
        "Dask frames need the same partitions, or known divisions of the same index."
    )


def pair_parts(
    original: pd.DataFrame, masked: pd.DataFrame, number: int
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return two partitions whose rows are the same and in the same order.

    If labels are the same in another order, and unique, rows are aligned by them.
    """
    if original.index.equals(masked.index):
        return original, masked
    if (
        len(original) == len(masked)
        and original.index.is_unique
        and masked.index.is_unique
        and original.index.isin(masked.index).all()
    ):
        return original, masked.loc[original.index]
    check_pairs([len(masked)], [len(original)], number)
    raise SdcValueError(
        f"partition {number} of the masked frame has other rows than that of the original: of "
        f"{len(masked)} rows each, some labels of the index differ or are not unique. {_HOW}"
    )


def check_pairs(masked: Sequence[int], original: Sequence[int], first: int = 0) -> None:
    """Raise ValueError unless partitions, counted from `first` on, have as many rows."""
    for number, (one, other) in enumerate(zip(masked, original, strict=True), first):
        if one != other:
            raise SdcValueError(
                f"partition {number} of the masked frame has other rows than that of the original: "
                f"{one} rows against {other}. {_HOW}"
            )


def pair_values(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: Sequence[Hashable]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the values of two partitions with the same rows, NaN where both have no value.

    Raises
    ------
    ValueError
        If rows differ, values are infinite, or a cell is missing in one frame only.
    """
    original, masked = pair_parts(original, masked, number)
    old, new = to_float(original, columns), to_float(masked, columns)
    for j, column in enumerate(columns):
        _check_values(column, old[:, j], new[:, j])
    return old, new


def pair_columns(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: Sequence[Hashable]
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Yield what :func:`pair_values` returns, one column at a time."""
    original, masked = pair_parts(original, masked, number)
    for column in columns:
        old, new = to_float(original, [column])[:, 0], to_float(masked, [column])[:, 0]
        _check_values(column, old, new)
        yield old, new


def _check_values(column: Hashable, old: NDArray[np.float64], new: NDArray[np.float64]) -> None:
    if np.isfinite(old).all() and np.isfinite(new).all():
        return
    for values, name in ((old, "original"), (new, "masked")):
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise SdcValueError(
                f"column {column!r} of the {name} frame has {infinite} infinite values: their "
                "distance is not a number. Name other columns, or replace them in both frames."
            )
    differing = int((np.isnan(old) != np.isnan(new)).sum())
    if differing:
        raise SdcValueError(
            f"column {column!r} has {differing} cells that are missing in one frame and not in "
            "the other: their difference is not a number. Fill or drop them in both."
        )
