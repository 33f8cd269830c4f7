"""Records meet those of their unit, wherever their own values would lead them.

The place of a record is decided by the code of its unit alone. What is seen there is a unit as a
whole, from where it can go on as one.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.destinations import Values, checksum_of
from sdc_dask.engine.placement import Placement
from sdc_dask.engine.row_ids import check_bits, partitions_wanted
from sdc_dask.engine.units import CODE_BITS

_BITS = 31  # of a code, by which units are spread


@dataclass(frozen=True)
class UnitPlaces(Placement):
    """Places of units. The code of a record's unit and its stratum travel beside its values."""

    places: int = 1

    def depart(
        self, part: pd.DataFrame, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return place and row id of every record of a partition in one integer, and values."""
        values = self._travelling(part)
        self.expected.check(number, np.ascontiguousarray(values[:, : len(self.columns)]))
        leading = values[:, -2].astype(np.int64) >> (CODE_BITS - _BITS)
        place = (leading * self.places) >> _BITS
        return self.row_ids.key(place, self.row_ids.ids(number, len(part))), values

    def checksum(self, part: pd.DataFrame, values: Values | None = None) -> np.uint64:
        """Return a checksum of the values, and their order, that decide where rows go."""
        return checksum_of(self._travelling(part) if values is None else values, part, self.by)

    def _travelling(self, part: pd.DataFrame) -> NDArray[np.float64]:
        coded = self.coding.encode(part)
        values = self._with_units(part, to_float(coded, self.columns))
        return np.column_stack([values, self.blocks.strata.of(coded)])

    def divisions(self, n_partitions: int, width: int | None = None) -> list[int]:
        """Return the first key of every place, each a partition, and one beyond the last."""
        return self.row_ids.first_keys(range(self.places + 1))


def unit_places(placement: Placement, n_partitions: int) -> UnitPlaces:
    """Return places of the units of a frame, whose records would go to blocks otherwise.

    Parameters
    ----------
    placement : Placement
        Of a frame, with a unit.
    n_partitions : int
        Of the frame.
    """
    width = len(placement.columns) + 2
    places = partitions_wanted(int(placement.counts.sum()), width, n_partitions)
    check_bits(places, placement.row_ids)
    known = {each.name: getattr(placement, each.name) for each in fields(Placement)}
    return UnitPlaces(**known, places=places)
