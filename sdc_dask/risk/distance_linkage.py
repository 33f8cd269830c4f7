"""Distance-based record linkage: an intruder links what is known to the nearest masked record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import Any

import dask
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from sdc_dask import arguments
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, is_dask, map_partitions, map_reduce, merge_tree
from sdc_dask.engine.pairs import pair_frames, pair_parts, pair_values
from sdc_dask.engine.scan import scan
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.neighbours import (
    Records,
    SearchTree,
    count_ties,
    distinct,
    search_tree,
    squared_distances,
)
from sdc_dask.risk.blocked_linkage import LARGEST_BLOCK, link_in_blocks
from sdc_dask.risk.linkage import Linkage, check_values, count_links, of_ties
from sdc_dask.risk.sampling import draw_rows
from sdc_dask.risk.space import Array, Space, space_of

MOST_VALUES = 25_000_000  # of different masked records that every worker holds: 200 MB
MOST_ASSIGNED = 5_000  # records: the matrix of their distances takes 200 MB

Columns = list[Hashable]
Frames = tuple[Frame, Frame]  # original and masked


def distance_linkage(
    original: Frame,
    masked: Frame,
    columns: Sequence[Hashable],
    *,
    distance: str = "euclidean",
    standardize: bool = True,
    sample: int | None = None,
    random_state: int | None = None,
    assignment: bool = False,
    blocking: str | None = None,
    max_block: int | str = "auto",
) -> Linkage:
    """Link original records to the nearest masked ones, and count how often that is right.

    The intruder knows the original values of `columns`. A link is right if no masked record is
    nearer to the original one than its own masked version; if t masked records are equally near,
    that one among them, the intruder has to guess, and the link counts 1/t.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
        Both of one kind, with the same rows; other orders are aligned by the index.
    columns : list
        Numeric columns that the intruder knows.
    distance : {"euclidean", "mahalanobis"}, default "euclidean"
        "mahalanobis" takes into account how columns go together in the original, by its
        covariance matrix. Columns must not be linear functions of each other.
    standardize : bool, default True
        Measure Euclidean distances in units of the columns' deviations, otherwise in the units
        of the columns. The Mahalanobis distance does not depend on units.
    sample : int, optional
        Try so many original records, drawn at random, against all masked ones. By default all
        are tried. Then every worker holds the different masked records of a Dask frame in memory,
        which must not have more than 25 million values: 5 million records of five columns.
    random_state : int, optional
        Of `sample`: the same number draws the same records from every partitioning. By default
        it is drawn afresh.
    assignment : bool, default False
        Link every masked record exactly once, such that the sum of all squared distances is as
        small as possible. For 5,000 records at most, all of which are tried.
    blocking : {"tree"}, optional
        Try all original records, each against the masked ones in the block of its own, for frames
        of any size and the Euclidean distance. The result is a lower bound: a link counts where no
        other block comes as near as the masked record that was found. ``high`` is an upper bound,
        which counts all links that are right within their block.
    max_block : int, default "auto"
        Of `blocking`: a leaf of the 2^d-tree with more masked records is split; 100,000 by default.
        As a rule, bounds come closer to each other with larger blocks.

    Returns
    -------
    Linkage

    Notes
    -----
    Both frames are measured in units of the original's population deviations; constant columns
    have the unit 1. J. Nin standardizes each frame by its own means and deviations. That weakens
    the attack where masking changes them: a record that was not masked at all is no longer at its
    own place. For rank swapping both are the same. Of his figures for the Census data, those for
    rank swapping with p up to 4 are met within 2 points, those for MDAV on groups of three or four
    columns with ``standardize=False`` only, which is a much weaker attack.

    Squared distances are sums of ((masked - original) / deviation)^2, computed in float64 in the
    order of the columns, and compared exactly: equal masked records are equally near, and so are
    whole numbers as far above as below. The search is exact, too. It uses a k-d tree, which is
    fast for few columns; beyond ten or so, many of the records have to be looked at. Partitions,
    threads and workers do not change the result.

    Dask frames are read twice, the original one three times for the Mahalanobis distance. With
    blocks, the masked frame is read for the scan, for every pass that counts the tree, and with
    the original for a shuffle of the columns of both. If masking takes long, write the masked
    frame, or call ``persist``, before.

    Of a one-to-one assignment, which equal masked record a link goes to is left to chance as
    above. Where several assignments have the same sum otherwise, it depends on the order of rows.

    References
    ----------
    D. Pagliuca, G. Seri, "Some results of individual ranking method on the system of enterprise
    accounts annual survey", Esprit SDC Project, 1999. J. Nin, *Contributions to Record Linkage for
    Disclosure Risk Assessment*, doctoral thesis, Universitat Autònoma de Barcelona, section 2.3.1.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> from sdc_dask.risk.distance_linkage import distance_linkage
    >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "rooms": [2, 1, 5, 4, 1, 3]})
    >>> masked = df.sdc.microaggregate(["age", "rooms"], k=3)
    >>> distance_linkage(df, masked, ["age", "rooms"])
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
    names = list(
        arguments.compared_columns(original, masked, arguments.name_list(columns, "columns"))
    )
    _check_arguments(distance, standardize, sample, random_state, assignment)
    size = _block_size(blocking, max_block, distance, sample, assignment)
    frames = pair_frames(original, masked, names)
    found = scan(frames[0], names, [])
    if found.n == 0:
        raise SdcValueError("the frames have no records: there is nothing to link.")
    check_values(found, "original")
    space = space_of(frames[0], names, found, distance, standardize)
    attack = f"{distance} distance"
    if distance == "euclidean" and standardize:
        attack = f"standardized {attack}"
    if blocking is not None:
        links = link_in_blocks(*frames, names, space, found.rows, size)
        note = (
            "rate and low are a lower bound, high is an upper one: all records were tried, within "
            "blocks of masked records"
        )
        possible = of_ties(attack, len(names), links.possible, found.n)
        lower = of_ties(f"{attack}, blocked", len(names), links.certain, found.n, note)
        return replace(lower, high=possible.rate)
    if assignment:
        ties = _assigned(frames, names, space, found.n)
        attack += ", one to one"
    elif sample is None or sample >= found.n:
        ties = _all_linked(frames, names, space)
    else:
        ties = _sample_linked(frames, names, space, found.rows, sample, random_state)
    tried = sum(ties.values())
    note = "all records were tried"
    if tried < found.n:
        note = f"a random sample of {found.n:,} records was tried"
    return of_ties(attack, len(names), ties, found.n, note)


def _check_arguments(
    distance: Any, standardize: Any, sample: Any, random_state: Any, assignment: Any
) -> None:
    arguments.one_of(distance, "distance", ["euclidean", "mahalanobis"])
    if not arguments.flag(standardize, "standardize") and distance == "mahalanobis":
        raise SdcValueError(
            "standardize has no meaning with distance='mahalanobis', which does not depend on "
            "units: leave it out."
        )
    arguments.flag(assignment, "assignment")
    if sample is not None:
        arguments.whole_number(sample, "sample", 1)
        arguments.entropy(random_state)
        if assignment:
            raise SdcValueError(
                "sample has no meaning with assignment=True, which links all records: leave one "
                "of them out."
            )
    elif random_state is not None:
        raise SdcValueError(
            "random_state has a meaning with sample alone: nothing is drawn if all records are "
            "tried."
        )


def _block_size(blocking: Any, max_block: Any, distance: str, sample: Any, assignment: bool) -> int:
    """Return the largest leaf of a blocked linkage; its arguments go with no other variant."""
    arguments.one_of(blocking, "blocking", ["tree", None])
    if blocking is None:
        if not isinstance(max_block, str) or max_block != "auto":
            raise SdcValueError(
                "max_block has no meaning without blocks: leave it out, or pass blocking='tree'."
            )
    elif sample is not None or assignment:
        raise SdcValueError(
            "blocking='tree' tries all records: leave out sample and assignment, or leave it out."
        )
    elif distance != "euclidean":
        raise SdcValueError(
            "blocking='tree' has bounds for the Euclidean distance alone: leave it out, or use "
            "distance='euclidean'."
        )
    size = arguments.block_size(max_block, 2)
    return LARGEST_BLOCK if isinstance(size, str) else size


# All records


def _all_linked(frames: Frames, columns: Columns, space: Space) -> Counter[int]:
    """Link all records with one tree over all different masked ones."""
    if is_dask(frames[1]):
        tree = dask.persist(_lazy_tree(frames[1], columns, space))[0]
    else:
        tree = search_tree(_records(frames[1], 0, columns, space), space.weight)
    return map_reduce(frames, _link, _merge_counters, columns, space, tree)


def _lazy_tree(masked: Frame, columns: Columns, space: Space) -> Delayed:
    level = map_partitions([masked], _records, columns, space)
    merge = delayed(_merge_records, pure=False)
    while len(level) > 1:
        # Two at a time: too many records are refused before they fill the memory of a worker.
        level = [merge(level[i : i + 2]) for i in range(0, len(level), 2)]
    return delayed(search_tree, pure=False)(level[0], space.weight)


def _records(part: pd.DataFrame, _number: int, columns: Columns, space: Space) -> Records:
    return distinct(space.masked_points(to_float(part, columns), columns))


def _merge_records(parts: list[Records]) -> Records:
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
    columns: Columns,
    space: Space,
    tree: SearchTree,
) -> Counter[int]:
    old, new = space.pairs(*pair_values(original, masked, number, columns), columns)
    squares = squared_distances(old, new, space.weight)
    return count_links(count_ties(tree, old, squares, space.weight))


def _merge_counters(parts: list[Counter[int]]) -> Counter[int]:
    return sum(parts, Counter())


# A sample of the records


def _sample_linked(
    frames: Frames,
    columns: Columns,
    space: Space,
    rows: Sequence[int],
    sample: int,
    random_state: int | None,
) -> Counter[int]:
    """Link some records with a tree over the masked ones of every partition in turn.

    A record is linked rightly if no partition has a nearer masked one than its own. That one is
    looked up first, so that a search needs to go no farther.
    """
    drawn = draw_rows(sum(rows), sample, arguments.entropy(random_state))
    begin = np.concatenate([[0], np.cumsum(rows)])
    local = [
        drawn[slice(*np.searchsorted(drawn, (begin[p], begin[p + 1])))] - begin[p]
        for p in range(len(rows))
    ]
    if is_dask(frames[0]):
        # Left on the cluster, if there is one, where the search needs it.
        partials = map_partitions(frames, _draw, columns, space, local)
        sampled = dask.persist(merge_tree(partials, _merge_drawn))[0]
    else:
        sampled = _draw(*frames, 0, columns, space, local)
    ties = map_reduce(frames[1], _search, _merge_ties, columns, space, sampled)
    return count_links(ties)


Drawn = tuple[Array, Array]  # points of original records, squared distances to their masked ones


def _draw(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    columns: Columns,
    space: Space,
    local: list[NDArray[np.int64]],
) -> Drawn:
    original, masked = (each.iloc[local[number]] for each in pair_parts(original, masked, number))
    old, new = space.pairs(*pair_values(original, masked, number, columns), columns)
    return old, squared_distances(old, new, space.weight)


def _merge_drawn(parts: list[Drawn]) -> Drawn:
    points, squares = zip(*parts, strict=True)
    return np.concatenate(points), np.concatenate(squares)


def _search(
    part: pd.DataFrame, number: int, columns: Columns, space: Space, sampled: Drawn
) -> NDArray[np.int64]:
    tree = search_tree(_records(part, number, columns, space), space.weight)
    return count_ties(tree, *sampled, space.weight)


def _merge_ties(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.where(np.min(parts, axis=0) < 0, -1, np.sum(parts, axis=0))


# One to one


def _assigned(frames: Frames, columns: Columns, space: Space, n: int) -> Counter[int]:
    """Link every record to another one, at the smallest sum of squared distances."""
    if n > MOST_ASSIGNED:
        raise SdcValueError(
            f"assignment=True is for {MOST_ASSIGNED:,} records at most, received {n:,}: its time "
            "grows with the cube of their number. Leave it out, or link some of the records."
        )
    old, new = map_reduce(frames, _points, _merge_drawn, columns, space)
    squares = np.zeros((n, n))
    for j, weight in enumerate(space.weight):
        squares += ((new[:, j] - old[:, j, None]) * weight) ** 2
    _, linked = linear_sum_assignment(squares)
    _, kind, counts = np.unique(new, axis=0, return_inverse=True, return_counts=True)
    # Equal masked records could change places: each of them is as likely to be the right one.
    return count_links(np.where(kind[linked] == kind, counts[kind], -1))


def _points(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: Columns, space: Space
) -> tuple[Array, Array]:
    return space.pairs(*pair_values(original, masked, number, columns), columns)
