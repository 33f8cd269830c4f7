"""Microaggregation: records form groups of at least k, and every record becomes its centroid."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dask.delayed import Delayed
from numpy.typing import NDArray

from sdc_dask.engine.blocks import WHOLE, Blocks, plan_blocks
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.placement import Placement, place
from sdc_dask.engine.route import put_back, there, there_and_back
from sdc_dask.engine.scan import Scan, scan
from sdc_dask.engine.spool import there_and_spool
from sdc_dask.engine.strata import Strata
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.groups import replace_by_centroids
from sdc_dask.masking.auto_block import auto_block
from sdc_dask.masking.methods import METHODS
from sdc_dask.masking.request import Request


@dataclass(frozen=True)
class MaskByCentroids:
    """Group the records of every block and replace them by the centroids of their groups."""

    method: str
    k: int
    coordinates: Coordinates

    def __call__(
        self, values: NDArray[np.float64], bounds: NDArray[np.int64]
    ) -> NDArray[np.float64]:
        """Mask blocks: the records from one bound to the next, in row order."""
        smallest = int(np.diff(bounds).min(initial=self.k))
        if smallest < self.k:
            raise RuntimeError(
                f"a block has {smallest} records, fewer than k={self.k}: the frame is not the same "
                "each time that it is computed. Mask df.persist(), or write it to files first."
            )
        group = METHODS[self.method]
        points = self.coordinates.points(values)
        labels = np.empty(len(values), np.int64)
        groups = 0
        for begin, end in itertools.pairwise(bounds):
            block = group(points[begin:end], self.k)
            labels[begin:end] = block + groups
            groups += int(block.max()) + 1
        # Sums of a group's values may overflow where single ones do not.
        room = np.where(self.coordinates.exponent > 900, 4 + (2 * self.k).bit_length(), 0)
        values = np.ldexp(values, -room) if room.any() else values
        replace_by_centroids(values, labels)
        values = np.ldexp(values, room) + 0.0 if room.any() else values
        # One bit pattern for all missing cells, whatever they were.
        values[np.isnan(values)] = np.nan
        return values


@dataclass(frozen=True)
class Plan:
    """A microaggregation that is planned for a frame: what remains is to move and to mask."""

    request: Request
    scan: Scan
    placements: tuple[Placement, ...]
    masks: tuple[MaskByCentroids, ...]


def plan(frame: Frame, request: Request) -> Plan:
    """Scan a frame and plan its blocks: all passes over the data that come before masking."""
    rules = request.rules()
    scanned = scan(frame, request.columns, rules)
    _check_counts(scanned.n, request.k)
    scanned.check(request.missing)
    placements, masks = [], []
    for group, strata in zip(request.groups, scanned.strata(rules), strict=True):
        _check_strata(strata, request.k)
        coordinates = scanned.coordinates(group, standardize=request.standardize)
        if isinstance(request.blocking, Blocks):
            blocks, planned_here = request.blocking, False
        else:
            method = request.blocking or WHOLE
            blocks = _plan_group(frame, scanned, strata, group, coordinates, request, method)
            planned_here = True
        placements.append(place(frame, blocks, scanned.rows, request.k, planned_here=planned_here))
        masks.append(MaskByCentroids(request.method, request.k, coordinates))
    return Plan(request, scanned, tuple(placements), tuple(masks))


def _plan_group(
    frame: Frame,
    scanned: Scan,
    strata: Strata,
    group: Sequence[Hashable],
    coordinates: Coordinates,
    request: Request,
    method: str,
) -> Blocks:
    """Plan the blocks of one group of columns."""
    max_block = request.max_block
    if isinstance(max_block, str):
        max_block = auto_block(scanned.n, len(group), request.k)
    return plan_blocks(
        frame,
        scanned,
        strata,
        group,
        coordinates,
        k=request.k,
        max_block=max_block,
        method=method,
    )


def spool_masked(frame: Frame, planned: Plan, directories: Sequence[Path]) -> list[Delayed]:
    """Mask every group of columns and spool the values into a directory each."""
    return [
        there_and_spool(frame, placement, mask, directory)
        for placement, mask, directory in zip(
            planned.placements, planned.masks, directories, strict=True
        )
    ]


def microaggregate(frame: Frame, request: Request) -> Frame:
    """Plan, and return the masked frame: lazily if the frame is a Dask frame."""
    planned = plan(frame, request)
    if not request.keep_order:
        return there(frame, planned.placements[0], planned.masks[0])
    masked = [
        there_and_back(frame, placement, mask)
        for placement, mask in zip(planned.placements, planned.masks, strict=True)
    ]
    return put_back(frame, masked, list(planned.placements))


def _check_counts(n: int, k: int) -> None:
    if n == 0:
        raise ValueError("the frame has no records: there is nothing to mask.")
    if n < k:
        raise ValueError(
            f"the frame has {n} records, fewer than k={k}: no group of k can be formed. "
            "Use a smaller k or more records."
        )


def _check_strata(strata: Strata, k: int) -> None:
    small = int((strata.counts < k).sum())
    if small:
        what = "values of `by` or patterns of missing cells"
        raise ValueError(
            f"{small} of {len(strata)} strata ({what}) have fewer than k={k} records, the "
            f"smallest {strata.counts.min()}. Merge rare values, drop those records, or use a "
            "smaller k."
        )
