"""Distance-based record linkage: an intruder links what is known to the nearest masked record.

D. Pagliuca, G. Seri, "Some results of individual ranking method on the system of enterprise
accounts annual survey", Esprit SDC Project, 1999.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sdc_dask import arguments
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Calls, Task, map_partitions, map_reduce
from sdc_dask.engine.pairs import pair_values
from sdc_dask.engine.space import Array, euclidean, mahalanobis
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.neighbours import (
    Records,
    SearchTree,
    count_ties,
    distinct,
    search_tree,
    squared_distances,
)
from sdc_dask.risk.attacks.blocked import BOUNDS, check_blocking, link_in_blocks
from sdc_dask.risk.attacks.reach import Limits, Reach
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names
from sdc_dask.risk.linkage import Linkage, count_links, of_ties
from sdc_dask.sampling import Sampling

MOST_VALUES = 25_000_000  # of different masked records that every worker holds: 200 MB
MOST_ASSIGNED = 5_000  # records: the matrix of their distances takes 200 MB


@dataclass(frozen=True)
class DistanceOptions:
    """How distances are measured and links are chosen.

    Parameters
    ----------
    distance : {"euclidean", "mahalanobis"}, default "euclidean"
        "mahalanobis" takes into account how columns go together in the original, by its
        covariance matrix. Columns must not be linear functions of each other.
    standardize : bool, default True
        Measure Euclidean distances in units of the columns' deviations, otherwise in the units
        of the columns. The Mahalanobis distance does not depend on units.
    assignment : bool, default False
        Link every masked record exactly once, such that the sum of all squared distances is as
        small as possible. For 5,000 records at most, all of which are tried.
    blocking : {"tree", "halves"}, optional
        Try all original records, each against the masked ones in the block of its own, for frames
        of any size and the Euclidean distance. The result is a lower bound: a link counts where no
        other block comes as near as the masked record that was found. ``high`` is an upper bound,
        which counts all links that are right within their block.
    max_block : int, default "auto"
        Of `blocking`: a leaf of the 2^d-tree with more masked records is split; 100,000 by default.
        As a rule, bounds come closer to each other with larger blocks.
    """

    distance: str = "euclidean"
    standardize: bool = True
    assignment: bool = False
    blocking: str | None = None
    max_block: int | str = "auto"

    def __post_init__(self) -> None:
        arguments.one_of(self.distance, "distance", ["euclidean", "mahalanobis"])
        if not arguments.flag(self.standardize, "standardize") and self.distance == "mahalanobis":
            raise SdcValueError(
                "standardize has no meaning with distance='mahalanobis', which does not depend on "
                "units: leave it out."
            )
        arguments.flag(self.assignment, "assignment")
        check_blocking(self.blocking, self.max_block)
        if self.blocking is not None and self.distance != "euclidean":
            raise SdcValueError(
                "blocking='tree' has bounds for the Euclidean distance alone: leave it out, or use "
                "distance='euclidean'."
            )

    def check(self, sampling: Sampling, _sets: Sequence[Names]) -> None:
        """Raise ValueError if records are drawn where all are tried."""
        if self.blocking is not None and (sampling.size is not None or self.assignment):
            raise SdcValueError(
                "blocking='tree' tries all records: leave out sample and assignment, or leave it "
                "out."
            )
        if self.assignment and sampling.size is not None:
            raise SdcValueError(
                "sample has no meaning with assignment=True, which links all records: leave one "
                "of them out."
            )

    @property
    def name(self) -> str:
        """What the attack is called."""
        scaled = self.distance == "euclidean" and self.standardize
        return f"{'standardized ' if scaled else ''}{self.distance} distance"


def link_by_distance(
    encounter: Encounter, sets: Sequence[Names], options: DistanceOptions
) -> list[Linkage]:
    """Link original records to the nearest masked ones, and count how often that is right.

    The intruder knows the original values of some columns. A link is right if no masked record is
    nearer to the original one than its own masked version; if t masked records are equally near,
    that one among them, the intruder has to guess, and the link counts 1/t.

    Parameters
    ----------
    encounter : Encounter
        If all its records are tried, every worker holds the different masked records in memory,
        which must not have more than 25 million values: 5 million records of five columns.
    sets : sequence of tuples
        Columns that the intruder knows, for every attack.
    options : DistanceOptions

    Returns
    -------
    list of Linkage
        One for every set.

    Notes
    -----
    Both frames are measured in units of the original's population deviations; constant columns
    have the unit 1. J. Nin (*Contributions to Record Linkage for Disclosure Risk Assessment*,
    doctoral thesis, Universitat Autònoma de Barcelona, section 2.3.1) standardizes each frame by
    its own means and deviations. That weakens the attack where masking changes them: a record that
    was not masked at all is no longer at its own place. For rank swapping both are the same. Of his
    figures for the Census data, those for rank swapping with p up to 4 are met within 2 points,
    those for MDAV on groups of three or four columns with ``standardize=False`` only, which is a
    much weaker attack.

    Squared distances are sums of ((masked - original) / deviation)^2, computed in float64 in the
    order of the columns, and compared exactly: equal masked records are equally near, and so are
    whole numbers as far above as below. The search is exact, too. It uses a k-d tree, which is
    fast for few columns; beyond ten or so, many of the records have to be looked at. Partitions,
    threads and workers do not change the result.

    Dask frames are read twice more after the scan, for all sets together as long as their records
    fit into memory; the original once more for the Mahalanobis distance. With blocks, the masked
    frame is read for every pass that counts the tree of a set, and with the original for a shuffle
    of the columns of both. If masking takes long, write the masked frame, or call ``persist``,
    before.

    Of a one-to-one assignment, which equal masked record a link goes to is left to chance as
    above. Where several assignments have the same sum otherwise, it depends on the order of rows.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "rooms": [2, 1, 5, 4, 1, 3]})
    >>> df.sdc.linkage(df.sdc.microaggregate(["age", "rooms"], k=3), "distance")
    Linkage
      attack     standardized euclidean distance
      columns    2                     columns that the intruder knows
      tried      6                     original records that were linked
      correct    2                     right links; one among t equal ones counts 1/t
      certain    0                     right links without any equal one
      rate       33.3333               percent of right links: lower is safer
      low        33.3333               of all records: 95% confidence interval, or bounds
      high       33.3333               the upper end
      note       all records were tried
    """
    encounter.check()
    if options.distance == "euclidean":
        spaces = [euclidean(encounter.before, s, standardize=options.standardize) for s in sets]
    else:
        spaces = [mahalanobis(encounter.before, s, encounter.moments) for s in sets]
    views = [View(s, space) for s, space in zip(sets, spaces, strict=True)]
    if options.blocking is not None:
        return [_within_blocks(encounter, view, options) for view in views]
    if options.assignment:
        ties = _assigned(encounter, views)
        return _summed(encounter, views, ties, f"{options.name}, one to one")
    return link_views(encounter, views, options.name)


def link_views(encounter: Encounter, views: list[View], name: str) -> list[Linkage]:
    """Link records to the nearest masked ones, as intruders see them."""
    linked = _sample_linked if encounter.sampled else _all_linked
    return _summed(encounter, views, linked(encounter, views), name)


def _summed(
    encounter: Encounter, views: list[View], ties: list[Counter[int]], name: str
) -> list[Linkage]:
    return [
        of_ties(name, len(view.columns), each, encounter.n, encounter.note)
        for view, each in zip(views, ties, strict=True)
    ]


@dataclass(frozen=True)
class View:
    """What an intruder sees of records: the points of some columns."""

    columns: Names
    space: Any  # Space, or what has its methods

    def records(self, part: pd.DataFrame) -> Records:
        """Return the different masked records of a partition."""
        return distinct(self.space.masked_points(to_float(part, self.columns)))

    def pairs(self, encounter: Encounter) -> tuple[Array, Array]:
        """Return the points of the records that were drawn, original and masked."""
        places = encounter.places(self.columns)
        old, new = (np.ascontiguousarray(values[:, places]) for values in encounter.drawn)
        return self.space.pairs(old, new)


def _within_blocks(encounter: Encounter, view: View, options: DistanceOptions) -> Linkage:
    anywhere = [Limits(Reach("free"))] * len(view.columns)
    assert options.blocking is not None
    links = link_in_blocks(
        encounter, view.columns, view.space, options.blocking, options.max_block, anywhere
    )
    d = len(view.columns)
    possible = of_ties(options.name, d, links.possible, encounter.n)
    lower = of_ties(f"{options.name}, blocked", d, links.certain, encounter.n, BOUNDS)
    return replace(lower, high=possible.rate)


# All records


def _all_linked(encounter: Encounter, views: list[View]) -> list[Counter[int]]:
    """Link all records with one tree per view, over all different masked ones."""
    found: list[Counter[int]] = []
    for some in _batches(views, encounter.n):
        columns = list(dict.fromkeys(name for view in some for name in view.columns))
        original, masked = encounter.original[columns], encounter.masked[columns]
        call = Calls.of(masked)
        trees = call.persist(_trees(call, map_partitions([masked], _records, some), some))
        found += map_reduce([original, masked], _link, _merge_counters, some, trees)
    return found


def _batches(views: list[View], n: int) -> Iterator[list[View]]:
    """Put together the views whose records are sure to fit into memory at the same time."""
    batch: list[View] = []
    room = MOST_VALUES
    for view in views:
        size = n * len(view.columns)
        if batch and size > room:
            yield batch
            batch, room = [], MOST_VALUES
        batch.append(view)
        room -= size
    yield batch


def _trees(call: Calls, level: list[Task], views: list[View]) -> Task:
    while len(level) > 1:
        # Two at a time: too many records are refused before they fill the memory of a worker.
        level = [call(_merge_records, level[i : i + 2]) for i in range(0, len(level), 2)]
    return call(_search_trees, level[0], [view.space.weight for view in views])


def _search_trees(records: list[Records], weights: list[Array]) -> list[SearchTree]:
    return [search_tree(each, weight) for each, weight in zip(records, weights, strict=True)]


def _records(part: pd.DataFrame, _number: int, views: list[View]) -> list[Records]:
    return [view.records(part) for view in views]


def _merge_records(parts: list[list[Records]]) -> list[Records]:
    return [_merged(list(each)) for each in zip(*parts, strict=True)]


def _merged(parts: list[Records]) -> Records:
    merged = parts[0]
    if len(parts) > 1:
        merged = distinct(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))
    if merged.points.size > MOST_VALUES:
        raise SdcValueError(
            f"there are more than {MOST_VALUES // merged.points.shape[1]:,} different masked "
            "records, too many to hold in the memory of every worker: pass sample=10_000 to try a "
            "random sample of the original records against all masked ones, or blocking='tree' for "
            "bounds."
        )
    return merged


def _link(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    views: list[View],
    trees: list[SearchTree],
) -> list[Counter[int]]:
    links = []
    for view, tree in zip(views, trees, strict=True):
        old, new = view.space.pairs(*pair_values(original, masked, number, view.columns))
        squares = squared_distances(old, new, view.space.weight)
        links.append(count_links(count_ties(tree, old, squares, view.space.weight)))
    return links


def _merge_counters(parts: list[list[Counter[int]]]) -> list[Counter[int]]:
    return [sum(each, Counter()) for each in zip(*parts, strict=True)]


# A sample of the records

_Drawn = tuple[Array, Array]  # points of original records, squared distances to their masked ones


def _sample_linked(encounter: Encounter, views: list[View]) -> list[Counter[int]]:
    """Link some records with a tree over the masked ones of every partition in turn.

    A record is linked rightly if no partition has a nearer masked one than its own. That one is
    looked up first, so that a search needs to go no farther.
    """
    drawn: list[_Drawn] = []
    for view in views:
        old, new = view.pairs(encounter)
        drawn.append((old, squared_distances(old, new, view.space.weight)))
    columns = list(dict.fromkeys(name for view in views for name in view.columns))
    ties = map_reduce(encounter.masked[columns], _search, _merge_ties, views, drawn)
    return [count_links(each) for each in ties]


def _search(
    part: pd.DataFrame, _number: int, views: list[View], drawn: list[_Drawn]
) -> list[NDArray[np.int64]]:
    found = []
    for view, each in zip(views, drawn, strict=True):
        tree = search_tree(view.records(part), view.space.weight)
        found.append(count_ties(tree, *each, view.space.weight))
    return found


def _merge_ties(parts: list[list[NDArray[np.int64]]]) -> list[NDArray[np.int64]]:
    return [
        np.where(np.min(each, axis=0) < 0, -1, np.sum(each, axis=0))
        for each in zip(*parts, strict=True)
    ]


# One to one


def _assigned(encounter: Encounter, views: list[View]) -> list[Counter[int]]:
    """Link every record to another one, at the smallest sum of squared distances."""
    n = encounter.n
    if n > MOST_ASSIGNED:
        raise SdcValueError(
            f"assignment=True is for {MOST_ASSIGNED:,} records at most, received {n:,}: its time "
            "grows with the cube of their number. Leave it out, or link some of the records."
        )
    found = []
    for view in views:
        old, new = view.pairs(encounter)
        squares = np.zeros((n, n))
        for j, weight in enumerate(view.space.weight):
            squares += ((new[:, j] - old[:, j, None]) * weight) ** 2
        _, linked = linear_sum_assignment(squares)
        _, kind, counts = np.unique(new, axis=0, return_inverse=True, return_counts=True)
        # Equal masked records could change places: each of them is as likely to be the right one.
        found.append(count_links(np.where(kind[linked] == kind, counts[kind], -1)))
    return found
