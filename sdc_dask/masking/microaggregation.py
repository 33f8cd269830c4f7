"""Microaggregation: records form groups of at least k, and every record becomes its centroid."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from dask.delayed import Delayed

from sdc_dask.engine.blocks import WHOLE, Blocks, plan_blocks
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.moments import co_moments
from sdc_dask.engine.order import Order, Projection, plan_order
from sdc_dask.engine.placement import Placement, place
from sdc_dask.engine.route import Home, put_back, there, there_and_back
from sdc_dask.engine.scan import Scan, scan
from sdc_dask.engine.spool import there_and_spool
from sdc_dask.engine.strata import Strata
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.masking.auto_block import auto_block, linear_block
from sdc_dask.masking.centroids import Grouping, MaskByCentroids, Mdav, Ordered, Vmdav
from sdc_dask.masking.in_order import MaskInOrder
from sdc_dask.masking.methods import METHODS
from sdc_dask.masking.projections import Aggregated, Axis, Single, principal_axis
from sdc_dask.masking.request import Request


@dataclass(frozen=True)
class InBlocks:
    """A group of columns that is masked block by block."""

    destinations: Placement
    mask: MaskByCentroids

    @property
    def blocks(self) -> Blocks:
        """The blocks."""
        return self.destinations.blocks


@dataclass(frozen=True)
class InOrder:
    """A group of columns that is masked along one order of all records."""

    destinations: Order
    mask: MaskInOrder
    blocks: None = None


@dataclass(frozen=True)
class Plan:
    """A microaggregation that is planned for a frame: what remains is to move and to mask."""

    request: Request
    scan: Scan
    groups: tuple[InBlocks | InOrder, ...]


def plan(frame: Frame, request: Request) -> Plan:
    """Scan a frame and plan its blocks: all passes over the data that come before masking."""
    scanned, strata = survey(frame, request)
    groups = [
        _plan_group(frame, scanned, each, columns, request)
        for columns, each in zip(request.groups, strata, strict=True)
    ]
    return Plan(request, scanned, tuple(groups))


def survey(frame: Frame, request: Request) -> tuple[Scan, list[Strata]]:
    """Scan a frame and see whether it can be masked: one pass over the data."""
    rules = request.rules()
    scanned = scan(frame, request.columns, rules)
    _check_counts(scanned.n, request.k)
    scanned.check(
        request.missing,
        ", or pass missing='separate' to group records by their pattern of missing cells",
    )
    strata = scanned.strata(rules)
    for each in strata:
        _check_strata(each, request.k)
    return scanned, strata


def _plan_group(
    frame: Frame,
    scanned: Scan,
    strata: Strata,
    columns: tuple[Hashable, ...],
    request: Request,
) -> InBlocks | InOrder:
    coordinates = scanned.coordinates(columns, standardize=request.standardize)
    grouping: Grouping
    if METHODS[request.method].ordered:
        projection = _projection(frame, scanned, columns, request)
        if request.blocking is None:
            order = plan_order(frame, columns, strata, projection, scanned)
            return InOrder(order, MaskInOrder(request.k, coordinates, order))
        grouping = Ordered(request.k, projection)
    elif request.method == "vmdav":
        grouping = Vmdav(request.k, *request.parameters)
    else:
        grouping = Mdav(request.k)
    n, d, k = scanned.n, len(columns), request.k
    linear = METHODS[request.method].ordered
    largest = max(k, linear_block(d)) if linear else auto_block(n, d, k)
    placement = place_in_blocks(frame, scanned, strata, columns, coordinates, request, largest)
    return InBlocks(placement, MaskByCentroids(k, coordinates, grouping))


def place_in_blocks(
    frame: Frame,
    scanned: Scan,
    strata: Strata,
    columns: Sequence[Hashable],
    coordinates: Coordinates,
    request: Request,
    largest: int,
) -> Placement:
    """Tell the blocks of records, which are planned unless the request brings them along.

    `largest` is the block size that "auto" stands for.
    """
    blocking = request.blocking
    if isinstance(blocking, Blocks):
        return place(frame, blocking, scanned, request.k, planned_here=False)
    max_block = largest if isinstance(request.max_block, str) else request.max_block
    blocks = plan_blocks(
        frame,
        scanned,
        strata,
        columns,
        coordinates,
        k=request.k,
        max_block=max_block,
        method=blocking or WHOLE,
    )
    return place(frame, blocks, scanned, request.k, planned_here=True)


def _projection(
    frame: Frame, scanned: Scan, columns: tuple[Hashable, ...], request: Request
) -> Projection:
    """Return what records are put in order by. The first principal component takes a pass."""
    if request.method == "optimal":
        return Single()
    if request.method == "zscores":
        standardized = scanned.coordinates(columns, standardize=True)
        return Axis(standardized, np.ones(len(columns)))
    if request.method == "pcp":
        moments = co_moments(frame, columns)
        axis = principal_axis(moments, standardize=request.standardize)
        return Axis(scanned.coordinates(columns, standardize=request.standardize), axis)
    missing = sum(scanned.columns[column].missing for column in columns)
    if missing and not all(map(callable, request.parameters)) and request.method != "weighted_mean":
        raise SdcValueError(
            f"{missing} cells are missing, and a measure that is an array has no values for the "
            "columns that are left: use a quantifier, or fill the cells first."
        )
    return Aggregated(request.method, request.parameters, *scanned.bounds(columns))


def blocks_of(frame: Frame, request: Request) -> Blocks:
    """Plan the blocks of one group of columns, for a method that needs them."""
    (group,) = plan(frame, request).groups
    assert isinstance(group, InBlocks)
    return group.blocks


def spool_masked(frame: Frame, planned: Plan, directories: Sequence[Path]) -> list[Delayed]:
    """Mask every group of columns and spool the values into a directory each."""
    spools: list[Delayed] = []
    for group, directory in zip(planned.groups, directories, strict=True):
        after = spools[-1] if spools else None
        spools.append(there_and_spool(frame, group.destinations, group.mask, directory, after))
    return spools


def microaggregate(frame: Frame, request: Request) -> Frame:
    """Plan, and return the masked frame: lazily if the frame is a Dask frame."""
    groups = plan(frame, request).groups
    if not request.keep_order and isinstance(groups[0], InBlocks):
        return there(frame, groups[0].destinations, groups[0].mask)
    homes: list[Home] = []
    for group in groups:
        after = homes[-1].done if homes else None
        homes.append(there_and_back(frame, group.destinations, group.mask, after))
    return put_back(frame, homes, [group.destinations for group in groups])


def _check_counts(n: int, k: int) -> None:
    if n == 0:
        raise SdcValueError("the frame has no records: there is nothing to mask.")
    if n < k:
        raise SdcValueError(
            f"the frame has {n} records, fewer than k={k}: no group of k can be formed. "
            "Use a smaller k or more records."
        )


def _check_strata(strata: Strata, k: int) -> None:
    small = int((strata.counts < k).sum())
    if small:
        what = "values of `by` or patterns of missing cells"
        raise SdcValueError(
            f"{small} of {len(strata)} strata ({what}) have fewer than k={k} records, the "
            f"smallest {strata.counts.min()}. Merge rare values, drop those records, or use a "
            "smaller k."
        )
