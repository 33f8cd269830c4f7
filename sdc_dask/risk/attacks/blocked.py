"""Linkage within blocks of masked records: bounds for frames of any size.

A record goes to the block of its masked version and is compared with the masked records there. If
one of them is nearer, the link is wrong, whatever is in other blocks. If none is, the link is right
for certain where no other block reaches as near as the masked version: what is in between is known
by the bounds of every block's records.

Whoever knows the masking looks at the records in a box only. His box, too, may reach into other
blocks.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.blocks import TREES, Blocks, parts_of, plan_blocks
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Calls, map_partitions
from sdc_dask.engine.masks import routed_frame
from sdc_dask.engine.pairs import pair_parts
from sdc_dask.engine.placement import Placement, place
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.space import Space
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.boxes import BoxTree, box_tree, reaches_others
from sdc_dask.kernels.candidates import count_candidates
from sdc_dask.kernels.neighbours import SearchTree, distinct, search_tree, squared_distances
from sdc_dask.risk.attacks.reach import Limits
from sdc_dask.risk.encounter import ONE_STRATUM, Encounter
from sdc_dask.risk.linkage import count_links

LARGEST_BLOCK = 100_000  # what max_block="auto" stands for

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]

BOUNDS = (
    "rate and low are a lower bound, high is an upper one: all records were tried, within blocks "
    "of masked records"
)


def check_blocking(blocking: str | None, max_block: int | str) -> None:
    """Raise an error unless blocks are of a tree, and their size is said where there are some."""
    arguments.one_of(blocking, "blocking", [*TREES, None])
    if blocking is None and not (isinstance(max_block, str) and max_block == "auto"):
        raise SdcValueError(
            "max_block has no meaning without blocks: leave it out, or pass blocking='tree'."
        )
    arguments.block_size(max_block, 2)


@dataclass(frozen=True)
class BlockedLinks:
    """How records were linked within blocks.

    Attributes
    ----------
    certain : Counter
        Records by the number of masked ones that they are linked to; by 0 the wrong links, and
        those that another block may make wrong.
    possible : Counter
        The same, with links that are right within their block counted as right.
    candidates : Counter
        Records by the number of masked ones within their block and box.
    alone : int
        Records whose box holds one masked record, and reaches into no other block.
    missed : int
        Records whose masked version is not in their box.
    """

    certain: Counter[int]
    possible: Counter[int]
    candidates: Counter[int]
    alone: int
    missed: int


def link_in_blocks(
    encounter: Encounter,
    columns: Sequence[Hashable],
    space: Space,
    blocking: str,
    max_block: int | str,
    limits: Sequence[Limits],
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
    blocking : {"tree", "halves"}
    max_block : int or "auto"
        L: a leaf of the tree with more records is split.
    limits : sequence of Limits
        For every column, which masked values a record can have.
    """
    names = list(columns)
    max_block = LARGEST_BLOCK if isinstance(max_block, str) else max_block
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
        method=blocking,
    )
    placement = place(masked, blocks, found, 1, planned_here=True)
    regions = _Regions.of(blocks, placement, space)
    call = Calls.of(masked)
    width = 2 * len(names)
    meta = routed_frame(np.empty(0, np.int64), np.empty((0, width)))
    left = map_partitions(
        [original, masked], _depart, names, placement, blocks.leaves.low, blocks.leaves.high
    )
    parts = call.route(left, meta, placement.divisions(len(left), width))
    shared = [call.share(e) for e in (placement.row_ids.bits, space, regions, tuple(limits))]
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
    def of(cls, blocks: Blocks, placement: Placement, space: Space) -> _Regions:
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
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> pd.DataFrame:
    """Send both versions of a record to the block of the masked one."""
    original, masked = pair_parts(original, masked, number)
    key, new = placement.depart(masked, number)
    old = to_float(original, columns)
    # What is certain stands on the bounds of leaves: a frame that has changed must not pass.
    leaf = placement.blocks.locator.leaf_of(new, np.zeros(len(new), np.int64))
    if ((new < low[leaf]) | (new > high[leaf])).any():
        raise SdcRuntimeError(
            f"masked records are outside the bounds of their leaves. {NOT_THE_SAME}"
        )
    return routed_frame(key, np.hstack([old, new]))


def _link(
    routed: pd.DataFrame,
    bits: int,
    space: Space,
    regions: _Regions,
    limits: tuple[Limits, ...],
) -> BlockedLinks:
    """Link the records of some blocks."""
    block = routed.index.to_numpy() >> bits
    values = np.hsplit(routed.to_numpy(), 2)
    old, new = (np.ascontiguousarray(each) for each in space.pairs(*values))
    weight = space.weight
    squares = squared_distances(old, new, weight)
    begins = np.flatnonzero(np.diff(block, prepend=-1))
    if not np.array_equal(np.diff(begins, append=len(block)), regions.counts[block[begins]]):
        raise SdcRuntimeError(f"blocks have other records than were counted. {NOT_THE_SAME}")
    low, high = _box(space, limits, values, inward=False)
    exact = all(each.inner is None for each in limits)
    smaller = (low, high) if exact else _box(space, limits, values, inward=True)
    inside, right, possible = np.empty((3, len(block)), np.int64)
    for begin, end in itertools.pairwise([*begins.tolist(), len(block)]):
        own = slice(begin, end)
        tree = search_tree(distinct(new[own]), weight)
        inside[own], right[own] = _count(tree, own, old, low, high, squares, weight)
        possible[own] = right[own]
        if not exact:
            _, possible[own] = _count(tree, own, old, *smaller, squares, weight)
    there = ((new >= low) & (new <= high)).all(axis=1)
    # Of what is in the smaller box, and may be without the record's own, none is nearer.
    possible = np.where(possible < 0, -1, np.maximum(possible, 1))
    possible[~there] = right[~there] = -1
    fused, whole = regions.fused[block], regions.whole[block]

    def are_open(rows: NDArray[np.int64], farthest: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Return where boxes reach into other blocks that are not too far away."""
        return ~whole[rows] | reaches_others(
            regions.boxes, old[rows], farthest, weight, fused[rows], low[rows], high[rows]
        )

    certain = right.copy()
    linked = np.flatnonzero(right > 0)
    certain[linked[are_open(linked, squares[linked])]] = -1
    single = np.flatnonzero(there & (inside == 1))
    anywhere = np.full(len(single), np.finfo(np.float64).max)
    alone = len(single) - int(are_open(single, anywhere).sum())
    numbers, records = np.unique(inside, return_counts=True)
    return BlockedLinks(
        count_links(certain),
        count_links(possible),
        Counter(dict(zip(numbers.tolist(), records.tolist(), strict=True))),
        alone,
        int((~there).sum()),
    )


def _count(
    tree: SearchTree,
    rows: slice,
    old: Array,
    low: Array,
    high: Array,
    squares: Array,
    weight: Array,
) -> tuple[Ranks, Ranks]:
    return count_candidates(tree, old[rows], low[rows], high[rows], squares[rows], weight)


def _box(
    space: Space, limits: tuple[Limits, ...], values: Sequence[Array], *, inward: bool
) -> tuple[Array, Array]:
    """Return the lowest and highest points that masked versions can have."""
    ends = [each.ends(*(v[:, j] for v in values), inward=inward) for j, each in enumerate(limits)]
    low, high = (space.points(np.stack(each, axis=1)) for each in zip(*ends, strict=True))
    return np.ascontiguousarray(low), np.ascontiguousarray(high)


def _merge(parts: list[BlockedLinks]) -> BlockedLinks:
    return BlockedLinks(
        sum((part.certain for part in parts), Counter()),
        sum((part.possible for part in parts), Counter()),
        sum((part.candidates for part in parts), Counter()),
        sum(part.alone for part in parts),
        sum(part.missed for part in parts),
    )
