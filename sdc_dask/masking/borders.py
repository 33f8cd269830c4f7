"""Groups across the borders of blocks: refined within them, and once more in blocks cut elsewhere.

Groups cannot take members from beyond the border of their block, which costs the more the smaller
blocks are. Therefore records go on with their group, each group as a whole, to blocks that have
other borders. There groups are refined again, and replaced by what stands for them.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.frames import Calls, Task
from sdc_dask.engine.masks import Then, routed_frame, routed_numbers
from sdc_dask.engine.onward import Onward
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.masking.centroids import MaskByCentroids, Refined, centroids

_GROUP = "group"  # the column of the group that a record belongs to


@dataclass(frozen=True)
class MaskAcrossBorders:
    """Masks records in blocks, after their groups were formed in others."""

    mask: MaskByCentroids
    refined: Refined  # the grouping of the mask
    onward: Onward
    width: int  # values of a record

    def run(self, call: Calls, parts: list[Task], row_ids: RowIds, then: Then) -> list[Task]:
        """Form groups in partitions side by side, send them on, and mask them there."""
        shared = call.share(self)
        left = [call(_form, part, row_ids, shared) for part in parts]
        nothing = np.empty(0, np.int64)
        meta = _with_groups(nothing, np.empty((0, self.width)), nothing)
        divisions = self.onward.divisions(row_ids, self.width + 1, len(parts))
        return [
            call(_mask, part, number, row_ids, shared, then)
            for number, part in enumerate(call.route(left, meta, divisions))
        ]

    def form(
        self,
        values: NDArray[np.float64],
        rows: NDArray[np.int64],
        block: NDArray[np.int64],
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the block to which every record goes, and its group, by its first row."""
        begins = np.flatnonzero(np.diff(block, prepend=-1))
        labels = self.mask.groups(values, np.append(begins, len(block)))
        first = np.unique(labels, return_index=True)[1]
        numbers = np.array(values[:, :-1] if self.mask.by_unit else values, order="C")
        means = centroids(numbers, labels, self.mask.coordinates, self.mask.k, None)
        place = self.onward.place_of(means[first], block[first])
        return place[labels], rows[first][labels]

    def regroup(
        self, values: NDArray[np.float64], place: NDArray[np.int64], groups: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the new group of every record, numbered from 0."""
        labels = np.empty(len(place), np.int64)
        begins = np.flatnonzero(np.diff(place, prepend=-1))
        count = 0
        for begin, end in itertools.pairwise([*begins.tolist(), len(place)]):
            # In the order of their first rows, whatever the partitions are.
            found = np.unique(groups[begin:end], return_inverse=True)[1]
            if not self.onward.alone[place[begin]]:
                found = self._again(values[begin:end], found)
            labels[begin:end] = found + count
            count += int(found.max()) + 1
        return labels

    def _again(self, values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self.mask.by_unit:
            return self._refined(values, labels)
        is_free = ~_share_units(values[:, -1], labels)[labels]
        if not is_free.any():
            return labels
        unit, units = self.mask.units(values[is_free])
        given = np.unique(labels[is_free], return_inverse=True)[1]
        found = self._refined(units, given[np.unique(unit, return_index=True)[1]])[unit]
        labels = np.where(is_free, 0, labels + int(found.max()) + 1)
        labels[is_free] = found
        return np.unique(labels, return_inverse=True)[1]

    def _refined(self, values: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.int64]:
        return self.refined.again(values, self.mask.coordinates.points(values), labels)


def _share_units(unit: NDArray[np.float64], labels: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which groups have records of a unit that another group has, too.

    Blocks may have parted them. If they were to meet in one group, it would have fewer units than
    it seems to have: such groups are left as they are.
    """
    pairs = pd.DataFrame({"unit": unit, "group": labels}).drop_duplicates()
    shared = pairs.loc[pairs["unit"].duplicated(keep=False), "group"]
    return np.bincount(shared, minlength=int(labels.max()) + 1) > 0


def _with_groups(
    key: NDArray[np.int64], values: NDArray[np.float64], groups: NDArray[np.int64]
) -> pd.DataFrame:
    routed = routed_frame(key, values)
    routed[_GROUP] = groups
    return routed


def _form(routed: pd.DataFrame, row_ids: RowIds, across: MaskAcrossBorders) -> pd.DataFrame:
    block, rows = row_ids.split(routed.index.to_numpy())
    values = routed_numbers(routed)
    place, groups = across.form(values, rows, block)
    return _with_groups(row_ids.key(place, rows), values, groups)


def _mask(
    routed: pd.DataFrame, number: int, row_ids: RowIds, across: MaskAcrossBorders, then: Then
) -> Any:
    place, rows = row_ids.split(routed.index.to_numpy())
    values = routed_numbers(routed)
    labels = across.regroup(values, place, routed[_GROUP].to_numpy())
    return then(rows, across.mask.represented(values, labels), number)
