"""Fuzzy microaggregation: records become the centres of clusters that are drawn at random.

V. Torra, "A fuzzy microaggregation algorithm using fuzzy c-means", Proc. CCIA 2015, IOS Press.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.masks import BlockMask
from sdc_dask.engine.trip import Step
from sdc_dask.errors import warn
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.fuzzy import fuzzy_assign, fuzzy_centres
from sdc_dask.masking import blockwise
from sdc_dask.masking.spec import Spec, needed, option

# A block of n records has n/k centres, and every record is compared with each in every iteration:
# the time of a record grows with the block, as that of MDAV by brute force.
CENTRES_A_BLOCK = 500

# From this m1 on, most centres of data in up to three dimensions lie on a record each.
SETTLES = 3.0


_LARGEST = np.finfo(np.float64).max


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
            with np.errstate(over="ignore"):  # a mean of the largest floats may be rounded beyond
                found = np.clip(self.coordinates.values(centres), -_LARGEST, _LARGEST)
            masked[begin:end] = found[labels]
        masked[np.isnan(values)] = np.nan
        return masked


@dataclass(frozen=True, repr=False)
class FuzzyMicroaggregation(Spec):
    """Replace records by centres of fuzzy clusters, drawn at random: k is not guaranteed.

    Parameters
    ----------
    columns : list, or list of lists
        Numeric columns to mask: one set, or several that are masked each on its own.
    k : int
        Records in a cluster on average, 2 or more. Chance decides how many it gets.
    m1 : float
        Fuzziness of the clusters, from 1 (each record belongs to its nearest centre) to infinity
        (all centres lie at the mean of the block). Between 1 and 2 is sensible: from 3 on,
        centres of data with few columns settle on single records.
    m2 : float
        Fuzziness of the draw, from 1 (the nearest centre) to infinity (any centre, all alike).
        Between 1 and 1 + 2/d for d columns is sensible: beyond, most records go far.
    blocking : {"tree", "halves", "univariate", None} or Blocks, default "tree"
        How records are cut into blocks, which are masked each on its own.
    max_block : int or "auto", default "auto"
        L: a block with more records is split. "auto" is 500 k: the time of a record grows with
        the block.
    standardize : bool, default True
        Measure distances in units of the columns' population deviations over the whole frame.
    by : name or list of names, optional
        Strata: columns whose values blocks never mix.
    missing : {"error", "separate"}, default "error"
        "error" names the columns with missing cells. "separate" sets records apart by their
        pattern of missing cells, which stay missing; each pattern needs k records.
    missing_values : list of numbers, optional
        That stand for missing cells, such as -9 or 9999. These are missing in what is masked, and
        are treated as `missing` says. Measures compare it with a frame in which they are missing.

    Examples
    --------
    >>> from sdc_dask import FuzzyMicroaggregation
    >>> spec = FuzzyMicroaggregation(["income", "age"], k=5, m1=1.5, m2=1.2)
    >>> spec.promise is None
    True
    """

    kind: ClassVar[str] = "fuzzy_microaggregation"
    draws: ClassVar[bool] = True

    columns: Any = needed("numeric columns to mask; several sets are masked each on its own")
    k: int = needed("records in a cluster on average")
    m1: float = needed("fuzziness of the clusters, from 1 to inf")
    m2: float = needed("fuzziness of the draw, from 1 to inf")
    _: KW_ONLY
    blocking: str | Blocks | None = option("tree", "tree, halves, univariate or none")
    max_block: int | str = option("auto", "largest block of records")
    standardize: bool = option(True, "measure distances in units of the columns' deviations")
    by: Any = option(None, "columns whose values blocks never mix")
    missing: str = option("error", "error, or separate: records with the same missing cells")
    missing_values: Any = option(None, "numbers that stand for missing cells, such as -9")

    def __post_init__(self) -> None:
        kept = blockwise.check_options(self, blockwise.blockings())
        kept["standardize"] = arguments.flag(self.standardize, "standardize")
        kept["m1"] = arguments.number(self.m1, "m1", 1.0, infinite=True)
        kept["m2"] = arguments.number(self.m2, "m2", 1.0, infinite=True)
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns that are masked together."""
        return self.columns

    @property
    def in_blocks(self) -> bool:
        """Records are masked in blocks."""
        return True

    def describe(self) -> str:
        """Return a few words for people."""
        return f"fuzzy microaggregation, k = {self.k:,} on average"

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and these are numbers."""
        blockwise.check_frame(self, frame)

    def plan(self, frame: Frame, entropy: int) -> list[Step]:
        """Scan a frame and plan its blocks."""
        scanned, strata = blockwise.survey(frame, self)
        settled = (
            " With m1 of 3 and more and few columns, centres settle on single records, which are "
            "then released as they are: use a smaller m1."
        )
        warn(
            f"fuzzy microaggregation does not guarantee groups of k={self.k}: k sets the number of "
            "clusters, and chance how many records each gets. masked.sdc.anonymity(columns) counts "
            f"what was reached.{settled if SETTLES <= self.m1 < math.inf else ''}"
        )
        steps = []
        for stream, (columns, each) in enumerate(zip(self.columns, strata, strict=True)):
            coordinates = scanned.coordinates(columns, standardize=self.standardize)
            largest = CENTRES_A_BLOCK * self.k
            blocks = blockwise.blocks_for(
                frame, self, scanned, each, columns, coordinates, self.blocking, largest
            )
            placement = blockwise.place_in_blocks(frame, self, scanned, blocks)
            mask = FuzzyMask(self.k, self.m1, self.m2, coordinates, entropy, stream)
            steps.append(Step(placement, mask))
        return steps
