"""Groups of records are replaced by their centroids, block by block."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.masks import BlockMask
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.sort import Projection
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.groups import replace_by_centroids
from sdc_dask.kernels.kd_tree import build_kd_tree
from sdc_dask.kernels.mdav import mdav
from sdc_dask.kernels.ordered import ordered
from sdc_dask.kernels.refinement import Effort, cooler, quick, refined, strength, thorough
from sdc_dask.kernels.vmdav import vmdav
from sdc_dask.masking.mixed import NominalColumns, Representatives, rounded

THOROUGH = "thorough"  # how groups are refined
_ROWS_AT_A_TIME = 8192

# From the values and the coordinates of a block's records to their groups.
Grouping = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.int64]]


@dataclass(frozen=True)
class Mdav:
    """Groups of k by MDAV."""

    k: int
    nominal: NominalColumns = field(default_factory=NominalColumns)

    def __call__(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Tell the group of every record."""
        plain, nominal = self.nominal.split(values, points)
        return mdav(plain, self.k, nominal)


@dataclass(frozen=True)
class Vmdav:
    """Groups of k or more by V-MDAV."""

    k: int
    gain: float
    nominal: NominalColumns = field(default_factory=NominalColumns)

    def __call__(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Tell the group of every record."""
        plain, nominal = self.nominal.split(values, points)
        return vmdav(plain, self.k, self.gain, nominal)


@dataclass(frozen=True)
class Ordered:
    """Groups of k to 2k - 1 along the order of a projection."""

    k: int
    projection: Projection

    def __call__(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Tell the group of every record."""
        return ordered(points, self.projection(values), self.k)


@dataclass(frozen=True)
class Refined:
    """Groups that lose less than those of another method.

    Attributes
    ----------
    grouping : Grouping
        Groups to begin with. Those of 2k or more, as V-MDAV may form, are cut.
    k : int
    strength : True, int or "thorough"
        How long groups are refined.
    within : int, optional
        Larger blocks are cut in halves for the groups to begin with, and refined as a whole.
    nominal : NominalColumns
        Columns of few categories.
    """

    grouping: Grouping
    k: int
    strength: bool | int | str
    within: int | None = None
    nominal: NominalColumns = field(default_factory=NominalColumns)

    def __call__(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return the group of every record."""
        spread = self.nominal.spread(values, points)
        labels = _cut_large(self._begin(values, points, spread), spread, self.k)
        return refined(spread, labels, self.k, self._effort(len(points)))

    def again(
        self,
        values: NDArray[np.float64],
        points: NDArray[np.float64],
        labels: NDArray[np.int64],
    ) -> NDArray[np.int64]:
        """Return groups that lose less than others that were refined elsewhere, or these."""
        spread = self.nominal.spread(values, points)
        effort = cooler(self._effort(len(points)), spread.shape[1])
        return refined(spread, labels, self.k, effort)

    def _effort(self, n: int) -> Effort:
        if isinstance(self.strength, str):
            return thorough(n)
        return quick(n) if self.strength is True else strength(self.strength)

    def _begin(
        self,
        values: NDArray[np.float64],
        points: NDArray[np.float64],
        spread: NDArray[np.float64],
    ) -> NDArray[np.int64]:
        if self.within is None or len(points) <= self.within:
            return self.grouping(values, points)
        tree = build_kd_tree(spread, np.ones(spread.shape[1]), max(self.within, 2 * self.k))
        labels = np.empty(len(points), np.int64)
        groups = 0
        for begin, end in itertools.pairwise(tree.start.tolist()):
            rows = np.sort(tree.rows[begin:end])
            some = self.grouping(values[rows], points[rows])
            labels[rows] = some + groups
            groups += int(some.max()) + 1
        return labels


def _cut_large(labels: NDArray[np.int64], points: NDArray[np.float64], k: int) -> NDArray[np.int64]:
    """Cut groups of 2k records or more by MDAV, which loses less, so that all have k to 2k - 1."""
    size = np.bincount(labels)
    if size.max() < 2 * k:
        return labels
    labels, groups = labels.copy(), len(size)
    for label in np.flatnonzero(size >= 2 * k):
        members = np.flatnonzero(labels == label)
        parts = mdav(np.ascontiguousarray(points[members]), k)
        labels[members] = np.where(parts == 0, label, groups + parts - 1)
        groups += int(parts.max())
    return labels


@dataclass(frozen=True)
class MaskByCentroids(BlockMask):
    """Group the records of every block and replace them by the centroids of their groups.

    In columns whose means do not stand for a group, representatives replace them. If units are
    grouped, a unit is what stands for its records in the block, and these stay together.
    """

    k: int
    coordinates: Coordinates
    grouping: Grouping
    decimals: int | None = None
    representatives: Representatives = field(default_factory=Representatives)
    by_unit: bool = False  # whether the last value is the unit of a record

    def mask(
        self,
        values: NDArray[np.float64],
        bounds: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Mask the blocks of a partition: some at a time, which stay in the processor's cache."""
        begin = 0
        while begin < len(bounds) - 1:
            enough = int(np.searchsorted(bounds, bounds[begin] + _ROWS_AT_A_TIME))
            end = min(max(enough, begin + 1), len(bounds) - 1)
            some = values[bounds[begin] : bounds[end]]
            labels = self.groups(some, bounds[begin : end + 1] - bounds[begin])
            some[:] = self.represented(some, labels)
            begin = end
        return values

    def groups(self, values: NDArray[np.float64], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the group of every record; those of one block have other numbers than the next."""
        labels = np.empty(len(values), np.int64)
        points = None if self.by_unit else self.coordinates.points(values)
        groups = 0
        for begin, end in itertools.pairwise(bounds):
            if points is None:
                unit, units = self.units(values[begin:end])
                check_size(len(units), self.k, "units")
                block = self.grouping(units, self.coordinates.points(units))[unit]
            else:
                check_size(int(end - begin), self.k)
                block = self.grouping(values[begin:end], points[begin:end])
            labels[begin:end] = block + groups
            groups += int(block.max()) + 1
        return labels

    def units(self, values: NDArray[np.float64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the unit of every record, and what stands for the records of each.

        Units are numbered in the order of their first records.
        """
        unit = pd.factorize(values[:, -1])[0]
        first = np.unique(unit, return_index=True)[1]
        units = self._represented(values[:, :-1].copy(), unit)[first]
        return unit, np.ascontiguousarray(units)

    def represented(
        self, values: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Return what stands for the group of every record. May overwrite values."""
        if not self.by_unit:
            return self._represented(values, labels)
        masked = self._represented(np.ascontiguousarray(values[:, :-1]), labels)
        # Nothing of units leaves the place where records are masked.
        return np.column_stack([masked, np.zeros(len(masked))])

    def _represented(
        self, values: NDArray[np.float64], labels: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        if not self.representatives:
            return centroids(values, labels, self.coordinates, self.k, self.decimals)
        original = values.copy()
        means = centroids(values, labels, self.coordinates, self.k, None)
        return self.representatives(original, means, labels, self.decimals)


def check_size(number: int, k: int, what: str = "records") -> None:
    """Raise RuntimeError if a set of records, which was planned to hold a group, cannot."""
    if number < k:
        raise SdcRuntimeError(f"a block has {number} {what}, fewer than k={k}. {NOT_THE_SAME}")


def centroids(
    values: NDArray[np.float64],
    labels: NDArray[np.int64],
    coordinates: Coordinates,
    k: int,
    decimals: int | None,
) -> NDArray[np.float64]:
    """Return the centroid of every record's group, computed in the order of the records.

    Parameters
    ----------
    values : ndarray of float64, shape (n, d)
        May be overwritten.
    labels : ndarray of int64, shape (n,)
    coordinates : Coordinates
        Tells how large the values are.
    k : int
        Groups have about so many records.
    decimals : int or None
        To which they are rounded, if they are.
    """
    # Sums of a group's values may overflow where single ones do not.
    room = np.where(coordinates.exponent > 900, 4 + (2 * k).bit_length(), 0)
    values = np.ldexp(values, -room) if room.any() else values
    replace_by_centroids(values, labels)
    values = np.ldexp(values, room) + 0.0 if room.any() else values
    if decimals is not None:
        values = rounded(values, decimals)
    # One bit pattern for all missing cells, whatever they were.
    values[np.isnan(values)] = np.nan
    return values
