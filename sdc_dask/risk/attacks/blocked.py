"""Distance-based linkage within blocks of masked records: bounds for frames of any size.

A record goes to the block of its masked version and is compared with the masked records there. If
one of them is nearer, the link is wrong, whatever is in other blocks. If none is, the link is right
for certain where no other block reaches as near as the masked version: what is in between is known
by the bounds of every block's records.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.blocks import parts_of, plan_blocks
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Calls, map_partitions
from sdc_dask.engine.masks import routed_frame
from sdc_dask.engine.pairs import pair_parts
from sdc_dask.engine.placement import Placement, place
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.space import Space
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.boxes import BoxTree, box_tree, reaches_others
from sdc_dask.kernels.neighbours import count_ties, distinct, search_tree, squared_distances
from sdc_dask.risk.encounter import ONE_STRATUM, Encounter
from sdc_dask.risk.linkage import count_links

LARGEST_BLOCK = 100_000  # what max_block="auto" stands for


@dataclass(frozen=True)
class BlockedLinks:
    """Records by the number of masked ones that they are linked to; by 0 the wrong links."""

    certain: Counter[int]  # by 0 also what another block may make wrong
    possible: Counter[int]


def link_in_blocks(
    encounter: Encounter, columns: Sequence[Hashable], space: Space, max_block: int
) -> BlockedLinks:
    """Link all records within blocks of a 2^d-tree over the masked ones.

    Parameters
    ----------
    encounter : Encounter
        With values that all have a distance.
    columns : sequence
        That the intruder knows.
    space : Space
        With the Euclidean distance.
    max_block : int
        L: a leaf of the tree with more records is split.
    """
    names = list(columns)
    original, masked, found = encounter.original[names], encounter.masked[names], encounter.after
    (strata,) = found.strata([ONE_STRATUM])
    blocks = plan_blocks(
        masked,
        found,
        strata,
        names,
        found.coordinates(names, standardize=True),
        # Cells of few records are fused with others: as a rule, more is certain in larger blocks.
        k=min(found.n, max(1, max_block // 4)),
        max_block=max_block,
        method="tree",
    )
    placement = place(masked, blocks, found, 1, planned_here=True)
    regions = _Regions.of(placement, space)
    call = Calls.of(masked)
    meta = routed_frame(np.empty(0, np.int64), np.empty((0, 2 * len(names))))
    left = map_partitions([original, masked], _depart, names, placement, space)
    parts = call.route(left, meta, placement.divisions(len(left), 2 * len(names)))
    shared = [call.share(each) for each in (placement.row_ids.bits, space.weight, regions)]
    links = [call(_link, part, *shared) for part in parts]
    result: BlockedLinks = call.compute(call.merge(links, _merge))
    if sum(result.possible.values()) != found.n:
        raise SdcRuntimeError(f"records were lost on their way to the blocks. {NOT_THE_SAME}")
    return result


@dataclass(frozen=True)
class _Regions:
    """Where the masked records of all blocks are."""

    boxes: BoxTree  # of leaves, owned by fused leaves
    fused: NDArray[np.int64]  # by block
    whole: NDArray[np.bool_]  # by block: whether it is all of a fused leaf, not cut in row order
    counts: NDArray[np.int64]  # by block

    @classmethod
    def of(cls, placement: Placement, space: Space) -> _Regions:
        blocks = placement.blocks
        held = blocks.leaves.count > 0
        with np.errstate(over="ignore"):  # refused when the records depart
            low, high = (space.points(e[held]) for e in (blocks.leaves.low, blocks.leaves.high))
        parts = parts_of(placement.counts, blocks)
        fused = np.repeat(np.arange(len(parts)), parts)
        boxes = box_tree(low, high, blocks.fused[held])
        return cls(boxes, fused, parts[fused] == 1, placement.block_counts)


def _depart(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    placement: Placement,
    space: Space,
) -> pd.DataFrame:
    """Send the points of both versions of a record to the block of the masked one."""
    original, masked = pair_parts(original, masked, number)
    key, new = placement.depart(masked, number)
    old = to_float(original, columns)
    # What is certain stands on the bounds of leaves: a frame that has changed must not pass.
    blocks = placement.blocks
    leaf = blocks.locator.leaf_of(new, np.zeros(len(new), np.int64))
    if ((new < blocks.leaves.low[leaf]) | (new > blocks.leaves.high[leaf])).any():
        raise SdcRuntimeError(
            f"masked records are outside the bounds of their leaves. {NOT_THE_SAME}"
        )
    return routed_frame(key, np.hstack(space.pairs(old, new)))


def _link(
    routed: pd.DataFrame,
    bits: int,
    weight: NDArray[np.float64],
    regions: _Regions,
) -> BlockedLinks:
    """Link the records of some blocks."""
    block = routed.index.to_numpy() >> bits
    width = routed.shape[1] // 2
    points = routed.to_numpy()
    old, new = (np.ascontiguousarray(each) for each in (points[:, :width], points[:, width:]))
    squares = squared_distances(old, new, weight)
    possible = np.empty(len(block), np.int64)
    begins = np.flatnonzero(np.diff(block, prepend=-1))
    if not np.array_equal(np.diff(begins, append=len(block)), regions.counts[block[begins]]):
        raise SdcRuntimeError(f"blocks have other records than were counted. {NOT_THE_SAME}")
    for begin, end in itertools.pairwise([*begins.tolist(), len(block)]):
        tree = search_tree(distinct(new[begin:end]), weight)
        possible[begin:end] = count_ties(tree, old[begin:end], squares[begin:end], weight)
    certain = np.where(regions.whole[block], possible, -1)
    open_ = np.flatnonzero(certain > 0)
    reached = reaches_others(
        regions.boxes, old[open_], squares[open_], weight, regions.fused[block[open_]]
    )
    certain[open_[reached]] = -1
    return BlockedLinks(count_links(certain), count_links(possible))


def _merge(parts: list[BlockedLinks]) -> BlockedLinks:
    return BlockedLinks(
        sum((part.certain for part in parts), Counter()),
        sum((part.possible for part in parts), Counter()),
    )
