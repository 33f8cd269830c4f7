"""Where groups go from the blocks in which they were formed: to blocks that are cut elsewhere.

A group goes as a whole, to the block of its centroid, and never leaves its stratum. What was near a
border of the first blocks is in the middle of one of the others, as a rule.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.blocks import Blocks, parts_of
from sdc_dask.engine.placement import Placement, packed
from sdc_dask.engine.row_ids import RowIds, check_bits


@dataclass(frozen=True)
class Onward:
    """The way from blocks to others.

    Attributes
    ----------
    blocks : Blocks
        To which groups go.
    parts : ndarray of int64
        Into how many each fused leaf of these is cut.
    stratum : ndarray of int64
        By block from which they come.
    alone : ndarray of bool
        By block to which they go: whether its stratum had one block, which had no borders.
    """

    blocks: Blocks
    parts: NDArray[np.int64]
    stratum: NDArray[np.int64]
    alone: NDArray[np.bool_]

    def place_of(
        self, centroids: NDArray[np.float64], block: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """Return the blocks to which groups go, by their centroids and where they come from.

        Where many records are equal, there is no border to cut them elsewhere: blocks that were cut
        in row order are put together as they come.
        """
        fused = self.blocks.fused[self.blocks.leaf_at(centroids, self.stratum[block])]
        first = np.cumsum(self.parts) - self.parts
        return first[fused] + block % self.parts[fused]

    def divisions(self, row_ids: RowIds, width: int, n_partitions: int) -> list[int]:
        """Return the first key of every partition that is gone to, and one beyond the last."""
        return packed(self.blocks.counts, row_ids, width, n_partitions)


def has_borders(placement: Placement) -> bool:
    """Whether a stratum has several blocks."""
    stratum = _strata_of_blocks(placement)
    return len(np.unique(stratum)) < len(stratum)


def onward(placement: Placement, blocks: Blocks) -> Onward:
    """Return the way from the blocks of a placement to others.

    Parameters
    ----------
    placement : Placement
        Of a frame.
    blocks : Blocks
        Planned for the same frame, with the same strata.
    """
    stratum = _strata_of_blocks(placement)
    parts = parts_of(blocks.fused_counts, blocks)
    check_bits(int(parts.sum()), placement.row_ids)
    alone = np.bincount(stratum, minlength=len(blocks.strata)) == 1
    slim = replace(blocks, leaves=blocks.leaves.counts_alone())
    return Onward(slim, parts, stratum, alone[_by_block(blocks, parts)])


def _strata_of_blocks(placement: Placement) -> NDArray[np.int64]:
    return _by_block(placement.blocks, parts_of(placement.counts, placement.blocks))


def _by_block(blocks: Blocks, parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the stratum of every block, if fused leaves are cut into so many."""
    stratum = np.zeros(len(parts), np.int64)
    held = blocks.leaves.count > 0
    stratum[blocks.fused[held]] = blocks.leaves.stratum[held]
    return np.repeat(stratum, parts)
