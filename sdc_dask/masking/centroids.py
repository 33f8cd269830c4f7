"""Groups of records are replaced by their centroids, block by block."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
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
from sdc_dask.kernels.refine import quick, refine, strength, thorough
from sdc_dask.kernels.vmdav import vmdav
from sdc_dask.masking.mixed import NominalColumns, Representatives

THOROUGH = "thorough"  # how groups are refined

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
        Groups of k to 2k - 1 to begin with.
    k : int
    strength : True, int or "thorough"
        How long groups are refined.
    within : int, optional
        Larger blocks are cut in halves for the groups to begin with, and refined as a whole.
    """

    grouping: Grouping
    k: int
    strength: bool | int | str
    within: int | None = None

    def __call__(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> NDArray[np.int64]:
        """Return the group of every record."""
        n = len(points)
        if isinstance(self.strength, str):
            cycles = thorough(n)
        else:
            cycles = quick(n) if self.strength is True else strength(self.strength)
        return refine(points, self._begin(values, points), self.k, cycles)

    def _begin(self, values: NDArray[np.float64], points: NDArray[np.float64]) -> NDArray[np.int64]:
        if self.within is None or len(points) <= self.within:
            return self.grouping(values, points)
        tree = build_kd_tree(points, np.ones(points.shape[1]), max(self.within, 2 * self.k))
        labels = np.empty(len(points), np.int64)
        groups = 0
        for begin, end in itertools.pairwise(tree.start.tolist()):
            rows = np.sort(tree.rows[begin:end])
            some = self.grouping(values[rows], points[rows])
            labels[rows] = some + groups
            groups += int(some.max()) + 1
        return labels


@dataclass(frozen=True)
class MaskByCentroids(BlockMask):
    """Group the records of every block and replace them by the centroids of their groups.

    In columns whose means do not stand for a group, representatives replace them.
    """

    k: int
    coordinates: Coordinates
    grouping: Grouping
    decimals: int | None = None
    representatives: Representatives = field(default_factory=Representatives)

    def mask(
        self,
        values: NDArray[np.float64],
        bounds: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Mask the blocks of a partition."""
        check_size(int(np.diff(bounds).min(initial=self.k)), self.k)
        points = self.coordinates.points(values)
        labels = np.empty(len(values), np.int64)
        groups = 0
        for begin, end in itertools.pairwise(bounds):
            block = self.grouping(values[begin:end], points[begin:end])
            labels[begin:end] = block + groups
            groups += int(block.max()) + 1
        original = values.copy() if self.representatives else values
        means = centroids(values, labels, self.coordinates, self.k, self.decimals)
        return self.representatives(original, means, labels)


def check_size(records: int, k: int) -> None:
    """Raise RuntimeError if a set of records, which was planned to hold a group, cannot."""
    if records < k:
        raise SdcRuntimeError(f"a block has {records} records, fewer than k={k}. {NOT_THE_SAME}")


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
        with np.errstate(over="ignore", invalid="ignore"):
            rounded = np.round(values, decimals) + 0.0
        # A number that is too large to be scaled has no such digits.
        values = np.where(np.isfinite(rounded), rounded, values)
    # One bit pattern for all missing cells, whatever they were.
    values[np.isnan(values)] = np.nan
    return values
