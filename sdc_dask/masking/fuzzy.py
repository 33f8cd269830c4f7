"""Fuzzy microaggregation: records become the centres of clusters that are drawn at random.

V. Torra, "A fuzzy microaggregation algorithm using fuzzy c-means", Proc. CCIA 2015, IOS Press.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.masks import BlockMask
from sdc_dask.engine.placement import Placement
from sdc_dask.engine.route import Home, put_back, there_and_back
from sdc_dask.errors import warn
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.fuzzy import fuzzy_assign, fuzzy_centres
from sdc_dask.masking.microaggregation import place_in_blocks, survey
from sdc_dask.masking.request import Request

# A block of n records has n/k centres, and every record is compared with each in every iteration:
# the time of a record grows with the block, as that of MDAV by brute force.
CENTRES_A_BLOCK = 500

# From this m1 on, most centres of data in up to three dimensions lie on a record each.
SETTLES = 3.0


@dataclass(frozen=True)
class FuzzyMask(BlockMask):
    """Replace the records of a block by centres of fuzzy c-means, drawn by their memberships."""

    k: int
    m1: float
    m2: float
    coordinates: Coordinates
    entropy: int = field(repr=False)
    stream: int  # groups of columns draw independently

    def mask(
        self,
        values: NDArray[np.float64],
        bounds: NDArray[np.int64],
        numbers: NDArray[np.int64],
    ) -> NDArray[np.float64]:
        """Mask the blocks of a partition."""
        points = self.coordinates.points(values)
        masked = np.empty_like(values)
        for number, (begin, end) in zip(numbers, itertools.pairwise(bounds), strict=True):
            # What is drawn for a block depends on its number, which no partitioning changes.
            seed = np.random.SeedSequence(self.entropy, spawn_key=(self.stream, int(number)))
            rng = np.random.default_rng(seed)
            block = points[begin:end]
            count = -(-len(block) // self.k)
            centres, _, _ = fuzzy_centres(block, count, self.m1, rng)
            labels = fuzzy_assign(block, centres, self.m2, rng.random(len(block)))
            masked[begin:end] = self.coordinates.values(centres)[labels]
        masked[np.isnan(values)] = np.nan
        return masked


def fuzzy_microaggregate(
    frame: Frame, request: Request, m1: Any, m2: Any, random_state: Any
) -> Frame:
    """Plan, and return the masked frame: lazily if the frame is a Dask frame."""
    m1 = arguments.number(m1, "m1", 1.0, infinite=True)
    m2 = arguments.number(m2, "m2", 1.0, infinite=True)
    entropy = arguments.entropy(random_state)
    scanned, strata = survey(frame, request)
    settled = (
        " With m1 of 3 and more and few columns, centres settle on single records, which are then "
        "released as they are: use a smaller m1."
    )
    warn(
        f"fuzzy microaggregation does not guarantee groups of k={request.k}: k sets the number of "
        "clusters, and chance how many records each gets. masked.sdc.anonymity(columns) counts "
        f"what was reached.{settled if SETTLES <= m1 < math.inf else ''}"
    )
    destinations: list[Placement] = []
    homes: list[Home] = []
    for stream, (columns, each) in enumerate(zip(request.groups, strata, strict=True)):
        coordinates = scanned.coordinates(columns, standardize=request.standardize)
        largest = CENTRES_A_BLOCK * request.k
        placement = place_in_blocks(frame, scanned, each, columns, coordinates, request, largest)
        mask = FuzzyMask(request.k, m1, m2, coordinates, entropy, stream)
        destinations.append(placement)
        after = homes[-1].done if homes else None
        homes.append(there_and_back(frame, placement, mask, after))
    return put_back(frame, homes, destinations)
