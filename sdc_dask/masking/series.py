"""Microaggregation of time series: series form groups of k, and become their mean series."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from sdc_dask import arguments
from sdc_dask.engine.blocks import plan_blocks
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.moments import co_moments
from sdc_dask.engine.placement import Placement, place
from sdc_dask.engine.projections import Axes, principal_axes
from sdc_dask.engine.scan import Scan
from sdc_dask.engine.strata import Strata
from sdc_dask.engine.trip import Step
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates, Slopes
from sdc_dask.masking import blockwise
from sdc_dask.masking.auto_block import auto_block
from sdc_dask.masking.centroids import MaskByCentroids, Mdav
from sdc_dask.masking.spec import Spec, needed, option

DISTANCES = ("euclidean", "sts")
NORMALIZATIONS = ("series", "component")
# Blocks are cut in so many principal components of the series. With one, slopes lose more; with
# three, values do (benchmarks/series_tables.py).
AXES = 2
# A block below this share of the largest is fused with another: far series have few neighbours.
_SMALLEST = 4


@dataclass(frozen=True, repr=False)
class SeriesMicroaggregation(Spec):
    """Replace time series by the mean series of groups of at least k similar ones.

    Parameters
    ----------
    series : list, or dict of names to lists
        The columns of one series, in order of time, or of several, each masked on its own. k holds
        for every series, not for their combination.
    k : int
        Smallest group, 2 or more.
    distance : {"euclidean", "sts"}, default "euclidean"
        Which series are similar: those whose values are near each other, or, by the short time
        series distance, those whose slopes are, on whatever level.
    normalize : {"series", "component"}, default "series"
        "series" has one scale for all times of a series, so that it keeps its shape. "component"
        standardizes every time on its own, so that times of little variation count as much.
    times : list of numbers, optional
        When values were observed, in ascending order, for slopes: 0, 1, 2, ... by default. All
        series have the same length then.
    blocking : {"auto", None}, default "auto"
        "auto" cuts records into blocks by a tree in the first two principal components of a
        series, once there are more than `max_block`; groups never cross blocks. None is one block
        for all, which must fit into one worker.
    max_block : int or "auto", default "auto"
        L: a leaf with more records is split. "auto" takes the largest for which masking a record
        costs about as much as moving it.
    by : name or list of names, optional
        Columns whose values groups never mix. Every combination needs at least k records.

    Notes
    -----
    Groups are those of MDAV, and means are taken time by time. J. Nin, *Contributions to Record
    Linkage for Disclosure Risk Assessment*, doctoral thesis, Universitat Autònoma de Barcelona,
    section 6.1. Missing cells are refused: a series with gaps has no distance to others.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame([[1, 2, 3], [9, 8, 7], [3, 2, 1], [7, 8, 9]], columns=["t0", "t1", "t2"])
    >>> level = sdc_dask.SeriesMicroaggregation(["t0", "t1", "t2"], k=2)
    >>> df.sdc.mask(level).to_numpy().tolist()
    [[2.0, 2.0, 2.0], [8.0, 8.0, 8.0], [2.0, 2.0, 2.0], [8.0, 8.0, 8.0]]
    >>> shape = sdc_dask.SeriesMicroaggregation(["t0", "t1", "t2"], k=2, distance="sts")
    >>> df.sdc.mask(shape).to_numpy().tolist()
    [[4.0, 5.0, 6.0], [6.0, 5.0, 4.0], [6.0, 5.0, 4.0], [4.0, 5.0, 6.0]]
    """

    kind: ClassVar[str] = "series_microaggregation"

    series: Sequence[Hashable] | Mapping[str, Sequence[Hashable]] = needed(
        "columns of a series in order of time, or NAME=A,B,...; again for another series"
    )
    k: int = needed("smallest group")
    _: KW_ONLY
    distance: str = option("euclidean", "euclidean or sts (slopes)")
    normalize: str = option("series", "series (one scale for all times) or component")
    times: Sequence[float] | None = option(None, "when values were observed; default: 0,1,2,...")
    blocking: str | None = option("auto", "auto (a tree) or none")
    max_block: int | str = option("auto", "largest leaf, or auto")
    by: Any = option(None, "columns whose values groups never mix")

    def __post_init__(self) -> None:
        object.__setattr__(self, "series", arguments.series_sets(self.series))
        kept = blockwise.check_options(self, ["auto", None])
        del kept["columns"]
        arguments.one_of(self.distance, "distance", DISTANCES)
        arguments.one_of(self.normalize, "normalize", NORMALIZATIONS)
        kept["times"] = self._checked_times()
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def _checked_times(self) -> tuple[float, ...] | None:
        if self.times is None:
            return None
        if self.distance != "sts":
            raise SdcValueError(
                f"times have no meaning with distance={self.distance!r}, which does not depend on "
                "them: leave them out, or use distance='sts'."
            )
        return arguments.time_stamps(self.times, self.columns)

    @property
    def columns(self) -> arguments.ColumnSets:
        """The columns of each series."""
        return arguments.series_sets(self.series).columns

    @property
    def missing(self) -> str:
        """Missing cells are refused."""
        return "error"

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns that are masked together: those of a series."""
        return self.columns

    @property
    def promise(self) -> int:
        """Every class of records whose whole series are equal has k records at least."""
        return self.k

    @property
    def in_blocks(self) -> bool:
        """Records are masked in blocks."""
        return True

    def describe(self) -> str:
        """Return a few words for people."""
        return f"microaggregation of series by {self.distance} distance, k = {self.k:,}"

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and these are numbers."""
        blockwise.check_frame(self, frame)

    def plan(self, frame: Frame, entropy: int = 0) -> list[Step]:
        """Scan a frame and plan its blocks: all passes over the data that come before masking."""
        scanned, strata = blockwise.survey(frame, self)
        return [
            self._step(frame, scanned, each, columns)
            for columns, each in zip(self.columns, strata, strict=True)
        ]

    def _step(
        self, frame: Frame, scanned: Scan, strata: Strata, columns: tuple[Hashable, ...]
    ) -> Step:
        coordinates = self.coordinates(scanned, columns)
        placement = self._place(frame, scanned, strata, columns, coordinates)
        mask = MaskByCentroids(self.k, coordinates, Mdav(self.k))
        return Step(placement, mask, sums=scanned.sums(columns))

    def coordinates(self, scanned: Scan, columns: Sequence[Hashable]) -> Coordinates:
        """Return the coordinates in which the distances between series are Euclidean."""
        # One scale for all times leaves distances as they are, except for their unit.
        found = scanned.coordinates(columns, standardize=self.normalize == "component")
        if self.distance == "euclidean":
            return found
        times = np.arange(len(columns)) if self.times is None else np.asarray(self.times)
        return Slopes(found.centre, found.scale, found.exponent, times.astype(np.float64))

    def _place(
        self,
        frame: Frame,
        scanned: Scan,
        strata: Strata,
        columns: tuple[Hashable, ...],
        coordinates: Coordinates,
    ) -> Placement:
        largest = auto_block(scanned.n, len(columns), self.k)
        size = largest if isinstance(self.max_block, str) else self.max_block
        whole = self.blocking is None or scanned.n <= size
        axes = None if whole else _axes(frame, scanned, columns, coordinates)
        blocks = plan_blocks(
            frame,
            scanned,
            strata,
            columns,
            # Distances between leaves: of what is cut, which one block is not.
            coordinates if axes is None else _plain_coordinates(axes.weights.shape[1]),
            k=self.k,
            max_block=size,
            method=blockwise.WHOLE if whole else "tree",
            axes=axes,
            smallest=max(self.k, size // _SMALLEST),
        )
        return place(frame, blocks, scanned, self.k, planned_here=True)


def _axes(
    frame: Frame, scanned: Scan, columns: Sequence[Hashable], coordinates: Coordinates
) -> Axes:
    """Return the first principal components of the points of series: one pass over the data."""
    deviation = np.array([each.deviation for each in scanned.sums(columns).values()])
    unit = np.ldexp(deviation, -coordinates.exponent) / coordinates.scale
    covariance = co_moments(frame, columns).correlation() * np.outer(unit, unit)
    if isinstance(coordinates, Slopes):
        # Slopes are linear in the values, and so is what they do to covariances.
        steps = np.diff(np.eye(len(columns)), axis=0) / np.diff(coordinates.times)[:, None]
        covariance = steps @ covariance @ steps.T
    return Axes(coordinates, principal_axes(covariance, min(AXES, len(covariance))))


def _plain_coordinates(d: int) -> Coordinates:
    """Return the coordinates of points in which distances are Euclidean already."""
    return Coordinates(np.zeros(d), np.ones(d), np.zeros(d, np.int64))
