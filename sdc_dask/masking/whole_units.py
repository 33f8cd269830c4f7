"""All records of a unit are treated alike: they go to one block together, and get the same values.

Records meet those of their unit first, wherever blocks would part them. The unit goes on as a
whole, to the block of that of its records which is nearest to what stands for all of them. So a
block has no more units than it was planned to have records, and is as near to them as it can be.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.codecs import NUMBERS
from sdc_dask.engine.destinations import Values
from sdc_dask.engine.frames import Calls, Frame, Task, map_partitions, meta_of
from sdc_dask.engine.masks import Mask, Then, routed_frame, routed_numbers
from sdc_dask.engine.placement import packed
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.engine.unit_places import UnitPlaces
from sdc_dask.engine.units import fuse_leaves, smallest_codes
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.masking.centroids import MaskByCentroids
from sdc_dask.masking.mixed import NominalColumns


@dataclass(frozen=True)
class Homes:
    """Tells the leaf of a unit.

    Attributes
    ----------
    blocks : Blocks
    mask : MaskByCentroids
        Knows what stands for the records of a unit.
    nominal : NominalColumns
    """

    blocks: Blocks
    mask: MaskByCentroids
    nominal: NominalColumns

    def of(
        self, values: NDArray[np.float64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]]:
        """Return the unit of every record, and of every unit its leaf, and whether it is parted.

        Parameters
        ----------
        values : ndarray of float64
            In row order, beside the code of the unit, and then the stratum.
        """
        stratum = values[:, -1].astype(np.int64)
        records = np.ascontiguousarray(values[:, :-2])
        unit, units = self.mask.units(np.ascontiguousarray(values[:, :-1]))
        order = np.lexsort((self._distance(records, units[unit]), unit))
        nearest = order[np.flatnonzero(np.diff(unit[order], prepend=-1))]
        leaf = self.blocks.leaf_at(records[nearest], stratum[nearest])
        parted = np.zeros(len(units), np.bool_)
        parted[unit[stratum != stratum[nearest][unit]]] = True
        return unit, leaf, parted

    def _distance(
        self, records: NDArray[np.float64], others: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return squared distances, column by column, so that they are the same for any rows."""
        weights = dict(zip(self.nominal.places, self.nominal.weights, strict=True))
        gaps = self.mask.coordinates.points(records) - self.mask.coordinates.points(others)
        distance = np.zeros(len(records))
        for j in range(records.shape[1]):
            distance += (
                weights[j] * (records[:, j] != others[:, j]) if j in weights else gaps[:, j] ** 2
            )
        return distance


@dataclass(frozen=True)
class MaskWholeUnits:
    """Sends units on to their blocks, where another mask masks them."""

    mask: Mask
    homes: Homes
    counts: NDArray[np.int64]  # records that come to each block
    width: int  # values of a record, with its unit

    def run(self, call: Calls, parts: list[Task], row_ids: RowIds, then: Then) -> list[Task]:
        """Send the units of partitions on, and mask them."""
        shared = call.share(self.homes)
        left = [call(_send_on, part, row_ids, shared) for part in parts]
        meta = routed_frame(np.empty(0, np.int64), np.empty((0, self.width)))
        divisions = packed(self.counts, row_ids, self.width, len(parts))
        return self.mask.run(call, call.route(left, meta, divisions), row_ids, _AsWide(then))


@dataclass(frozen=True)
class _AsWide:
    """Does what comes then with as many values as records left with."""

    then: Then

    def __call__(self, rows: NDArray[np.int64], values: Values, number: int) -> Any:
        return self.then(rows, np.column_stack([values, np.zeros(len(values))]), number)


def plan_homes(
    frame: Frame, places: UnitPlaces, blocks: Blocks, homes: Homes, k: int
) -> tuple[Blocks, NDArray[np.int64]]:
    """Fuse blocks until k units have their home in each: one pass and a shuffle of the frame.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        Of numbers.
    places : UnitPlaces
        Where records meet those of their unit.
    blocks : Blocks
        Planned for the frame, with bounds and centroids of leaves.
    homes : Homes
        In these blocks.
    k : int

    Returns
    -------
    tuple
        The blocks, and how many records come to each.
    """
    call, there = Calls.of(frame), replace(places, coding=NUMBERS)
    left = map_partitions([frame[there.needed()]], _depart, there)
    meta = _depart(meta_of(frame), NO_PARTITION, there)
    shared = call.share(homes)
    looked = [
        call(_look, part, shared, len(blocks.leaves), k)
        for part in call.route(left, meta, there.divisions(len(left)))
    ]
    seen = call.compute(call.merge(looked, _Merge(k)))
    if seen.parted:
        raise SdcValueError(
            f"units_alike=True, and {seen.parted} units have records in several strata (values of "
            "`by` or patterns of missing cells), which are never mixed: leave out units_alike, "
            "or name other strata, or make the values of each unit the same."
        )
    fused = fuse_leaves(blocks, homes.mask.coordinates, seen.leaf, seen.code, k)
    return fused, np.bincount(fused.fused, weights=seen.records).astype(np.int64)


@dataclass(frozen=True)
class _Seen:
    """What is known of units when they have met."""

    parted: int  # units with records in several strata
    records: NDArray[np.int64]  # by leaf: of units whose home it is
    leaf: NDArray[np.int64]  # of some units: k different ones of each leaf, or all
    code: NDArray[np.float64]


def _depart(part: pd.DataFrame, number: int, there: UnitPlaces) -> pd.DataFrame:
    return routed_frame(*there.depart(part, number))


def _look(routed: pd.DataFrame, homes: Homes, leaves: int, k: int) -> _Seen:
    values = routed_numbers(routed)
    unit, leaf, parted = homes.of(values)
    code = values[np.unique(unit, return_index=True)[1], -2]
    records = np.bincount(leaf[unit], minlength=leaves)
    return _Seen(int(parted.sum()), records, *smallest_codes(leaf, code, k))


@dataclass(frozen=True)
class _Merge:
    k: int

    def __call__(self, parts: Sequence[_Seen]) -> _Seen:
        leaf = np.concatenate([part.leaf for part in parts])
        code = np.concatenate([part.code for part in parts])
        return _Seen(
            sum(part.parted for part in parts),
            np.sum([part.records for part in parts], axis=0),
            *smallest_codes(leaf, code, self.k),
        )


def _send_on(routed: pd.DataFrame, row_ids: RowIds, homes: Homes) -> pd.DataFrame:
    values = routed_numbers(routed)
    unit, leaf, parted = homes.of(values)
    if parted.any():
        raise SdcRuntimeError(f"a unit has records in several strata. {NOT_THE_SAME}")
    rows = row_ids.split(routed.index.to_numpy())[1]
    block = homes.blocks.fused[leaf][unit]
    return routed_frame(row_ids.key(block, rows), values[:, :-1])
