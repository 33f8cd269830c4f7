"""Attacks by intruders who know how the data was masked: candidates are the records in a box.

For every known column there is an interval of masked values that a record can have become
(:mod:`sdc_dask.risk.attacks.reach`). The intruder looks at the masked records that are in all of
them, and links to the nearest. If there is one only, he knows that he is right.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import map_reduce
from sdc_dask.engine.space import Space, euclidean
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.candidates import count_candidates, count_in_most
from sdc_dask.kernels.neighbours import distinct, search_tree, squared_distances
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.rank_swap import RankSwap
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.risk.attacks.blocked import BOUNDS, check_blocking, link_in_blocks
from sdc_dask.risk.attacks.reach import (
    Reach,
    check_specs,
    intervals,
    is_contiguous,
    limits,
    reaches_of,
    window_of_swap,
)
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names
from sdc_dask.risk.linkage import Linkage, of_ties
from sdc_dask.sampling import Sampling

MOST_VALUES = 25_000_000  # of all records, if all are tried: they come to the client
_BOX = "nearest in the box of what each column can have become"
FEW = 5  # candidates: a record with fewer is nearly found

Array = NDArray[np.float64]
Ranks = NDArray[np.int64]


@dataclass(frozen=True, repr=False)
class CandidateLinkage(Linkage):
    """How many original records an intruder linked who knows the masking, and how few are left."""

    certain: int = field(
        metadata={"note": "records with one candidate: the intruder knows that he is right"}
    )
    candidates: float = field(metadata={"note": "masked records that a record can be, on average"})
    alone: float = field(metadata={"note": "percent of records with one candidate"})
    few: float = field(metadata={"note": f"percent of records with fewer than {FEW} candidates"})


@dataclass(frozen=True)
class Knowing:
    """What an intruder knows of the masking."""

    knows: Spec | Sequence[Spec] | None = None

    @property
    def specs(self) -> list[Spec]:
        """The specs, one or several."""
        if self.knows is None:
            raise SdcValueError(
                "this attack needs knows=, the spec or the list of specs that the data was masked "
                "by, such as sdc_dask.RankSwap(['income'], p=5)."
            )
        return spec_list(self.knows)

    def check(self, _sampling: Sampling, sets: Sequence[Names]) -> None:
        """Raise an error unless the specs mask all columns that are known."""
        for columns in sets:
            check_specs(self.specs, columns)
            self.reaches(columns)

    def reaches(self, columns: Names) -> list[Reach]:
        """Return what can have become of the values of columns."""
        raise NotImplementedError


@dataclass(frozen=True)
class Boxing(Knowing):
    """What an intruder knows of what can have become of values, and how all records are tried.

    Parameters
    ----------
    blocking : {"tree", "halves"}, optional
        Try all original records, each against the masked ones in the block of its own, for frames
        of any size and maskings with a hard limit. The result is a lower bound, as that of an
        attack by distance; candidates are those within the block, of which there are more in all.
    max_block : int, default "auto"
        Of `blocking`: a leaf of the 2^d-tree with more masked records is split; 100,000 by default.
    """

    blocking: str | None = field(default=None, kw_only=True)
    max_block: int | str = field(default="auto", kw_only=True)

    def __post_init__(self) -> None:
        check_blocking(self.blocking, self.max_block)

    def check(self, sampling: Sampling, sets: Sequence[Names]) -> None:
        """Raise an error unless the specs mask all columns that are known, and can be met so."""
        super().check(sampling, sets)
        if self.blocking is None:
            return
        if sampling.size is not None:
            raise SdcValueError(
                "blocking='tree' tries all records: leave out one of blocking and sample."
            )
        if not all(reach.sure for each in sets for reach in self.reaches(each)):
            raise SdcValueError(
                "blocking='tree' is for maskings that set a hard limit, and rank swapping by "
                "'distribution' or 'buckets' sets none: pass sample=10_000 instead."
            )


@dataclass(frozen=True)
class IntersectionOptions(Boxing):
    """What an intruder knows, of any masking.

    Parameters
    ----------
    knows : spec, or list of specs
        That the data was masked by.
    has_file : bool, default False
        Whether the intruder has the whole original file in the columns that he knows. Then he can
        repeat every masking without chance of which he knows all columns, and knows the masked
        version of each record. Otherwise he has single records.
    """

    has_file: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        arguments.flag(self.has_file, "has_file")

    def reaches(self, columns: Names) -> list[Reach]:
        """Return what can have become of the values of columns."""
        return reaches_of(self.specs, columns, has_file=self.has_file)


@dataclass(frozen=True)
class RankSwapOptions(Boxing):
    """What an intruder knows of a rank swapping.

    Parameters
    ----------
    knows : RankSwap, or list of specs
        That the data was masked by. If p is secret, one with an upper bound for it.
    factor : float, default 1
        Of "distribution" and "buckets", where values may go anywhere: intervals reach so many times
        p (or the size of a bucket) to both sides, and the intruder looks at the records that are
        in the most of them.
    """

    factor: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.factor is not None:
            arguments.number(self.factor, "factor", 0.0)

    def reaches(self, columns: Names) -> list[Reach]:
        """Return the windows of columns."""
        reaches = []
        for column in columns:
            spec = next(each for each in self.specs if column in each.masked)
            if not isinstance(spec, RankSwap):
                raise SdcValueError(
                    f"attack='rank_swap' is for swapped columns, and {column!r} was masked by "
                    f"{spec.describe()}: name the swapped columns in known=, or use "
                    "attack='intersection'."
                )
            if spec.method == "standard" and self.factor is not None:
                raise SdcValueError(
                    "factor has no meaning with standard rank swapping, which has a hard limit: "
                    "leave it out."
                )
            reaches.append(window_of_swap(spec, 1.0 if self.factor is None else self.factor))
        return reaches


@dataclass(frozen=True)
class AlignmentOptions(Boxing):
    """What an intruder knows of columns that were microaggregated one by one.

    Parameters
    ----------
    knows : Microaggregation, or list of specs
        That the data was masked by: sets of one column each, along an order or by MDAV, without
        blocks and strata.

    Notes
    -----
    Groups of one column lie side by side, and how many records have a centroid shows in the
    release. So the cheapest alignment of the sorted originals with the sorted centroids, k to
    2k - 1 for each, which dynamic time warping would find, is known: the value of rank r has become
    the masked value of rank r. For MDAV, of which the thesis takes the neighbouring centroids only,
    this holds as well. Equal values have several ranks, and may be in any group that has one of
    them.
    """

    def reaches(self, columns: Names) -> list[Reach]:
        """Return that values have the ranks of their masked versions."""
        for column in columns:
            spec = next(each for each in self.specs if column in each.masked)
            single = isinstance(spec, Microaggregation) and (column,) in spec.column_sets
            if not (single and isinstance(spec, Microaggregation) and is_contiguous(spec, column)):
                raise SdcValueError(
                    f"attack='alignment' is for numbers that were microaggregated one by one, "
                    f"without blocks, strata and units, and {column!r} was masked by "
                    f"{spec.describe()}: name others in known=, or use attack='intersection'."
                )
        return [Reach("aligned")] * len(columns)


def link_by_intersection(
    encounter: Encounter, sets: Sequence[Names], options: Boxing
) -> list[Linkage]:
    """Link original records to the nearest of the masked ones that they can have become.

    Parameters
    ----------
    encounter : Encounter
        If all its records are tried without blocks, these come to the client, and must not have
        more than 25 million values.
    sets : sequence of tuples
        Columns that the intruder knows, for every attack.
    options : IntersectionOptions, RankSwapOptions or AlignmentOptions

    Returns
    -------
    list of CandidateLinkage
        One for every set.

    Notes
    -----
    Distances are standardized, as in an attack by distance. Boxes are looked up in a k-d tree: the
    time of a record grows with the number of candidates far less than linearly.

    A sample of a Dask frame takes a pass to draw, one to count ranks, three or four to find the
    ends of intervals, and one to search, however many sets there are. With blocks, three or four
    passes of the masked frame give the ends of a set's intervals, rounded outward to 10,000
    quantiles of each column, and both frames are read and shuffled once for each set.

    Examples
    --------
    >>> import sdc_dask
    >>> df = sdc_dask.datasets.uniform(1_000, 4, seed=1).compute()
    >>> spec = sdc_dask.RankSwap(list(df.columns), p=10)
    >>> masked = df.sdc.mask(spec, random_state=1)
    >>> blind, knowing = (
    ...     df.sdc.linkage(masked, "distance"),
    ...     df.sdc.linkage(masked, "rank_swap", knows=spec),
    ... )
    >>> knowing.rate > blind.rate, knowing.certain > 0
    (True, True)
    """
    encounter.check()
    if options.blocking is not None:
        return [_within_blocks(encounter, each, options) for each in sets]
    widest = max(sets, key=len)
    if not encounter.sampled and encounter.n * len(widest) > MOST_VALUES:
        raise SdcValueError(
            f"{encounter.n:,} records of {len(widest)} columns are too many to try all: pass "
            "sample=10_000 to try a random sample against all masked records, or blocking='tree' "
            "for bounds."
        )
    needed = list(dict.fromkeys(name for each in sets for name in each))
    reaches = {name: options.reaches(each)[j] for each in sets for j, name in enumerate(each)}
    # With the whole file, what a set can repeat depends on the columns that are known.
    if isinstance(options, IntersectionOptions) and options.has_file:
        return [_link_one(encounter, each, options.reaches(each)) for each in sets]
    low, high = intervals(encounter, needed, [reaches[name] for name in needed])
    places = {name: j for j, name in enumerate(needed)}
    views = []
    for each in sets:
        at = [places[name] for name in each]
        views.append(_view(encounter, each, low[:, at], high[:, at], [reaches[n] for n in each]))
    return _linked(encounter, views)


def _within_blocks(encounter: Encounter, columns: Names, options: Boxing) -> CandidateLinkage:
    space = euclidean(encounter.before, columns, standardize=True)
    reach = limits(encounter, columns, options.reaches(columns))
    assert options.blocking is not None
    links = link_in_blocks(encounter, columns, space, options.blocking, options.max_block, reach)
    found = of_candidates(
        f"{_BOX}, blocked",
        len(columns),
        encounter.n,
        links.certain,
        links.candidates,
        links.alone,
        [BOUNDS, "candidates are those within blocks", *_missed(links.missed)],
    )
    possible = of_ties("", len(columns), links.possible, encounter.n)
    return replace(found, high=possible.rate)


def _link_one(encounter: Encounter, columns: Names, reaches: list[Reach]) -> Linkage:
    low, high = intervals(encounter, columns, reaches)
    (link,) = _linked(encounter, [_view(encounter, columns, low, high, reaches)])
    return link


@dataclass(frozen=True)
class _View:
    """What an intruder looks for: the points of records, and the boxes of their masked versions."""

    columns: Names
    space: Space
    points: Array
    low: Array
    high: Array
    agreeing: Ranks  # intervals that the own masked version is in
    squares: Array  # of the distance to it
    sure: bool  # whether candidates are those in all intervals, or those in the most

    def search(self, values: Array) -> tuple[Ranks, Ranks]:
        """Return candidates, and those as near as the right one, among some masked records."""
        weight = self.space.weight
        tree = search_tree(distinct(self.space.masked_points(values)), weight)
        if self.sure:
            return count_candidates(tree, self.points, self.low, self.high, self.squares, weight)
        ties = count_in_most(
            tree, self.points, self.low, self.high, self.agreeing, self.squares, weight
        )
        return np.maximum(ties, 0), ties


def _view(
    encounter: Encounter, columns: Names, low: Array, high: Array, reaches: Sequence[Reach]
) -> _View:
    space = euclidean(encounter.before, columns, standardize=True)
    places = encounter.places(columns)
    old, new = (np.ascontiguousarray(values[:, places]) for values in encounter.drawn)
    points, others = space.pairs(old, new)
    shrink = space.coordinates.shrink
    low, high = (np.ascontiguousarray(shrink(each)) for each in (low, high))
    agreeing = ((others >= low) & (others <= high)).sum(axis=1)
    squares = squared_distances(points, others, space.weight)
    sure = all(reach.sure for reach in reaches)
    return _View(columns, space, points, low, high, agreeing, squares, sure)


def _linked(encounter: Encounter, views: list[_View]) -> list[Linkage]:
    if encounter.sampled:
        columns = list(dict.fromkeys(name for view in views for name in view.columns))
        found = map_reduce(encounter.masked[columns], _search, _merge, views)
    else:
        masked = encounter.drawn[1]
        found = [view.search(masked[:, encounter.places(view.columns)]) for view in views]
    return [
        _summed(encounter, view, inside, ties)
        for view, (inside, ties) in zip(views, found, strict=True)
    ]


def _search(part: pd.DataFrame, _number: int, views: list[_View]) -> list[tuple[Ranks, Ranks]]:
    return [view.search(to_float(part, view.columns)) for view in views]


def _merge(parts: list[list[tuple[Ranks, Ranks]]]) -> list[tuple[Ranks, Ranks]]:
    merged = []
    for each in zip(*parts, strict=True):
        inside, ties = zip(*each, strict=True)
        worse = np.min(ties, axis=0) < 0
        merged.append((np.sum(inside, axis=0), np.where(worse, -1, np.sum(ties, axis=0))))
    return merged


def _summed(encounter: Encounter, view: _View, inside: Ranks, ties: Ranks) -> CandidateLinkage:
    """Sum up links. A masked version outside of its intervals is never found."""
    there = view.agreeing == len(view.columns) if view.sure else np.ones(len(ties), bool)
    notes = [encounter.note]
    if not view.sure:
        notes.append("candidates are the records in the most intervals, and none is certain")
    return of_candidates(
        _BOX if view.sure else "nearest in the most intervals",
        len(view.columns),
        encounter.n,
        _count(np.where(there, np.maximum(ties, 0), 0)),
        _count(inside),
        int((there & (inside == 1)).sum()) if view.sure else 0,
        notes + _missed(int((~there).sum())),
    )


def _count(numbers: Ranks) -> dict[int, int]:
    found, records = np.unique(numbers, return_counts=True)
    return dict(zip(found.tolist(), records.tolist(), strict=True))


def _missed(records: int) -> list[str]:
    taken = "records are not what the intruder takes them to have become"
    return [f"{records:,} {taken}"] if records else []


def of_candidates(
    attack: str,
    columns: int,
    population: int,
    ties: Mapping[int, int],
    candidates: Mapping[int, int],
    alone: int,
    notes: list[str],
) -> CandidateLinkage:
    """Sum up links, by the numbers of records that they are to and of those that they may be to."""
    found = of_ties(attack, columns, ties, population, "; ".join(notes))
    base = {each.name: getattr(found, each.name) for each in fields(Linkage)} | {"certain": alone}
    few = sum(records for number, records in candidates.items() if number < FEW)
    return CandidateLinkage(
        **base,
        candidates=sum(number * records for number, records in candidates.items()) / found.tried,
        alone=100 * alone / found.tried,
        few=100 * few / found.tried,
    )
