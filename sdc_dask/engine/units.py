"""Units: persons or households, of which several records may be one; k counts them.

A unit is known by 53 bits of a hash, which float64 holds. If two units had the same, they would
count as one, and groups would be larger than they need be: k holds in any case.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.blocking.fusion import fuse
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.classes import class_keys
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.coordinates import Coordinates

CODE_BITS = 53


def unit_codes(column: pd.Series) -> NDArray[np.float64]:
    """Return a number for each cell, equal for equal units."""
    return (_keys(column)[0] >> np.uint64(64 - CODE_BITS)).astype(np.float64)


def unit_keys(column: pd.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Return two words for each cell, equal for equal units; raise ValueError if one is missing."""
    missing = int(column.isna().sum())
    if missing:
        raise missing_units(column.name, missing)
    return _keys(column)


def missing_units(name: Hashable, missing: int) -> SdcValueError:
    """Return the error that says that records belong to no unit."""
    return SdcValueError(
        f"unit={name!r} has {missing} missing cells: whose record is it? Fill them, each with a "
        "value of its own if it is not known, or drop those records."
    )


def _keys(column: pd.Series) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    try:
        return class_keys(column.to_frame(), [column.name])
    except TypeError:
        # The original text may show a value.
        raise SdcTypeError(
            f"unit={column.name!r} holds values that cannot be compared, such as lists: name a "
            "column of texts or numbers."
        ) from None


@dataclass(frozen=True)
class _Seen:
    """Some units of each leaf: k different ones, or all if there are fewer."""

    missing: int
    leaf: NDArray[np.int64]
    code: NDArray[np.float64]


def fuse_by_units(
    frame: Frame, blocks: Blocks, coordinates: Coordinates, unit: Hashable, k: int
) -> Blocks:
    """Fuse blocks further until each has k different units: one pass over the data.

    The k smallest codes of a leaf say whether it has k different ones, and those of several leaves
    whether these have k together: all that is kept.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        For which the blocks were planned.
    blocks : Blocks
    coordinates : Coordinates
        For the distances between blocks.
    unit : column
    k : int
    """
    needed = list(dict.fromkeys([*blocks.needed(), unit]))
    seen = map_reduce(frame[needed], _look, _Merge(k), blocks, unit, k)
    if seen.missing:
        raise missing_units(unit, seen.missing)
    return fuse_leaves(blocks, coordinates, seen.leaf, seen.code, k)


def fuse_leaves(
    blocks: Blocks,
    coordinates: Coordinates,
    leaf: NDArray[np.int64],
    code: NDArray[np.float64],
    k: int,
) -> Blocks:
    """Fuse blocks further until each has k different units.

    Parameters
    ----------
    blocks : Blocks
    coordinates : Coordinates
        For the distances between blocks.
    leaf, code : ndarray
        Some units of each leaf: k different ones, or all if there are fewer.
    k : int
    """
    leaves = blocks.leaves
    held = leaves.count > 0
    points = coordinates.points(leaves.centroid)
    fused = blocks.fused
    while True:
        number = int(fused.max()) + 1
        different = smallest_codes(fused[leaf], code, k)[0]
        small = np.bincount(different, minlength=number) < k
        if not small.any():
            # Records in row order would cut units.
            return replace(blocks, fused=fused, whole_leaves=True)
        stratum = np.zeros(number, np.int64)
        stratum[fused[held]] = leaves.stratum[held]
        size = np.bincount(fused, weights=leaves.count, minlength=number)
        centre = np.stack(
            [
                np.bincount(fused, weights=leaves.count * x, minlength=number) / size
                for x in points.T
            ],
            axis=1,
        )
        merged = np.empty(number, np.int64)
        base = lacking = 0
        for each in range(len(blocks.strata)):
            members = np.flatnonzero(stratum == each)
            lacking += len(members) == 1 and bool(small[members[0]])
            merged[members] = base + fuse(centre[members], np.where(small[members], 1, k), k)
            base = int(merged[members].max()) + 1
        if lacking:
            raise SdcValueError(
                f"{lacking} of {len(blocks.strata)} strata (values of `by` or patterns of missing "
                f"cells, or the whole frame) have fewer than k={k} different units. Merge rare "
                "values, drop those records, or use a smaller k."
            )
        fused = merged[fused]


@dataclass(frozen=True)
class _Merge:
    k: int

    def __call__(self, parts: Sequence[_Seen]) -> _Seen:
        leaf = np.concatenate([part.leaf for part in parts])
        code = np.concatenate([part.code for part in parts])
        return _Seen(sum(part.missing for part in parts), *smallest_codes(leaf, code, self.k))


def _look(part: pd.DataFrame, _number: int, blocks: Blocks, unit: Hashable, k: int) -> _Seen:
    leaf = blocks.leaf_of(part, to_float(part, blocks.columns))
    missing = int(part[unit].isna().sum())
    return _Seen(missing, *smallest_codes(leaf, unit_codes(part[unit]), k))


def smallest_codes(
    leaf: NDArray[np.int64], code: NDArray[np.float64], k: int
) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Return the k smallest different codes of each leaf, or all."""
    order = np.lexsort((code, leaf))
    leaf, code = leaf[order], code[order]
    new = np.ones(len(leaf), bool)
    new[1:] = (leaf[1:] != leaf[:-1]) | (code[1:] != code[:-1])
    leaf, code = leaf[new], code[new]
    begin = np.flatnonzero(np.diff(leaf, prepend=-1))
    rank = np.arange(len(leaf)) - np.repeat(begin, np.diff(begin, append=len(leaf)))
    return leaf[rank < k], code[rank < k]
