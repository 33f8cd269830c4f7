"""What a value can have become: intervals of masked values, for whoever knows the masking.

The masked version of a record lies in an interval of each column that is known, by the way in
which the column was masked. The intervals of several columns are a box, and the candidates are the
masked records in it.

V. Torra, "Fuzzy microaggregation for the transparency principle", Journal of Applied Logic 23
(2017), definition 4.1; J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*,
doctoral thesis, Universitat Autònoma de Barcelona, sections 4.1 and 4.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.ranks import count_below, ranks_of, values_at
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.intervals import Borders, borders_of, cells_of
from sdc_dask.kernels.swaps import share_of, window_of
from sdc_dask.masking.fuzzy import FuzzyMicroaggregation
from sdc_dask.masking.mic1d import Mic1D
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.rank_swap import RankSwap
from sdc_dask.masking.series import SeriesMicroaggregation
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.encounter import Encounter

QUANTILES = 10_000  # of a column, to which ends of intervals are rounded

Ranks = NDArray[np.int64]
Array = NDArray[np.float64]


@dataclass(frozen=True)
class Reach:
    """How far the masked version of a value can be, among the masked values of its column.

    Attributes
    ----------
    kind : str
        - "window": so many ranks at most, since values changed places;
        - "neighbours": the masked values next to it, since groups lie side by side;
        - "aligned": the masked values at its rank in the original column;
        - "exact": one value, since whoever has the file can mask it again;
        - "free": anywhere.
    percent : float
        Of a window, to both sides.
    top, bottom : float
        Of a window: percentages of the ranks whose values were averaged.
    sure : bool
        Whether every masked version is within reach, and not most of them alone.
    slack : float
        Of neighbours: by how much a masked value may have been rounded.
    """

    kind: str
    percent: float = 0.0
    top: float = 0.0
    bottom: float = 0.0
    sure: bool = True
    slack: float = 0.0

    def ends(self, values: Array) -> Array:
        """Return the lowest and the highest values between which each value may stand."""
        if not self.slack:
            return np.stack([values, values])
        low, high = values - self.slack, values + self.slack
        return np.stack([np.nextafter(low, -np.inf), np.nextafter(high, np.inf)])

    def ranks(self, below: Ranks, upto: Ranks, n: int) -> tuple[Ranks, Ranks]:
        """Return the first and the last rank that masked versions can have.

        Parameters
        ----------
        below, upto : ndarray of int64
            Values below the lower end of each, and not above its upper end: of the original
            column for "aligned", of the masked one otherwise.
        n : int
            Number of values.
        """
        if self.kind == "neighbours":
            first, last = below - 1, upto
        elif self.kind == "aligned":
            first, last = below, upto - 1
        else:
            width = window_of(n, self.percent)
            lows, highs = share_of(n, self.bottom), share_of(n, self.top)
            first, last = below, upto
            # Among averaged extremes a value can have had any of their ranks.
            if lows or highs:
                first = np.where(upto > n - highs, np.minimum(below, n - highs), below)
                first = np.where(below < lows, 0, first)
                last = np.where(below < lows, np.maximum(upto, lows), upto)
                last = np.where(upto > n - highs, n, last)
            first, last = first - width, last - 1 + width
        return np.clip(first, 0, n - 1), np.clip(last, 0, n - 1)


def intervals(
    encounter: Encounter, columns: Sequence[Hashable], reaches: Sequence[Reach]
) -> tuple[Array, Array]:
    """Return the lowest and highest masked values that the tried records can have, by column.

    If all records are tried, their masked versions are all masked records. Otherwise ranks and
    values at ranks take some passes over the masked frame.
    """
    places = encounter.places(columns)
    # Column by column in memory, as they are filled.
    low, high = (np.full((len(columns), len(encounter.tried)), end).T for end in (-np.inf, np.inf))
    ranked = []
    for j, reach in enumerate(reaches):
        if reach.kind == "exact":
            low[:, j] = high[:, j] = _column(encounter.drawn[1], places[j])
        elif reach.kind != "free":
            ranked.append(j)
    if not encounter.sampled:
        for j in ranked:
            _fill(encounter, places[j], reaches[j], low[:, j], high[:, j])
        return low, high
    tried = len(encounter.tried)
    for frame, aligned in ((encounter.original, True), (encounter.masked, False)):
        some = [j for j in ranked if (reaches[j].kind == "aligned") is aligned]
        if not some:
            continue
        names = [columns[j] for j in some]
        several = any(reaches[j].slack for j in some)
        sought = [
            reaches[j].ends(_column(encounter.drawn[0], places[j]))[: 1 + several].ravel()
            for j in some
        ]
        ranks = [
            np.concatenate(reaches[j].ranks(below[:tried], upto[-tried:], encounter.n))
            for j, (below, upto) in zip(some, ranks_of(frame, names, sought), strict=True)
        ]
        for j, found in zip(some, values_at(encounter.masked, names, ranks), strict=True):
            low[:, j], high[:, j] = np.split(found, 2)
    return low, high


def _column(values: Array, place: int) -> Array:
    return values[:, place] + 0.0


def _fill(encounter: Encounter, place: int, reach: Reach, low: Array, high: Array) -> None:
    """Fill in the ends of a column's intervals, where all records are tried."""
    old, new = (_column(values, place) for values in encounter.drawn)
    # In ascending order, whatever is looked up is near what was looked up before.
    ascending = np.argsort(old)
    old, new = old[ascending], np.sort(new)
    among = old if reach.kind == "aligned" else new
    lowest, highest = reach.ends(old)
    below = np.searchsorted(among, lowest, side="left")
    upto = np.searchsorted(among, highest, side="right")
    first, last = reach.ranks(below, upto, encounter.n)
    low[ascending], high[ascending] = new[first], new[last]


# For all records of frames of any size


@dataclass(frozen=True)
class Limits:
    """The ends of a column's intervals as functions of its values, where records are not collected.

    Ends are rounded to quantiles of the masked column: outward, so that no masked version is lost,
    and inward, so that no other record is taken for a candidate.
    """

    reach: Reach
    borders: Borders | None = None  # between which values have the same ends
    outer: tuple[Array, Array] | None = None  # lowest and highest masked value, by cell
    inner: tuple[Array, Array] | None = None

    def ends(self, old: Array, new: Array, *, inward: bool) -> tuple[Array, Array]:
        """Return the lowest and highest masked values that records can have."""
        if self.reach.kind == "exact":
            return new, new
        found = self.inner if inward else self.outer
        if self.borders is None or found is None:
            return np.full(len(old), -np.inf), np.full(len(old), np.inf)
        lowest, highest = (cells_of(self.borders, each) for each in self.reach.ends(old + 0.0))
        return found[0][lowest], found[1][highest]


def limits(
    encounter: Encounter, columns: Sequence[Hashable], reaches: Sequence[Reach]
) -> list[Limits]:
    """Return the ends of intervals for whatever values: some passes over the frames."""
    n = encounter.n
    found = [Limits(reach) for reach in reaches]
    ranked = [j for j, reach in enumerate(reaches) if reach.kind not in ("exact", "free")]
    aligned = [j for j in ranked if reaches[j].kind == "aligned"]
    masked = _counted(encounter, encounter.masked, columns, ranked)
    original = _counted(encounter, encounter.original, columns, aligned)
    for j in ranked:
        borders, before = original[j] if j in original else masked[j]
        others, below = masked[j]
        values = np.concatenate([[-np.inf], others.values, [np.inf]])
        # By cell: how many values may be below those in it, and how many not above.
        fewest, most = before[:-1], before[1:]
        first, last = (
            np.searchsorted(below, ranks, side="right")
            for ranks in reaches[j].ranks(fewest, most, n)
        )
        outer = values[first // 2], values[(last + 1) // 2]
        # At a border, as in every other cell, both are known.
        at_border = np.arange(len(fewest)) % 2 == 1
        first, last = (
            np.searchsorted(below, ranks, side="right")
            for ranks in reaches[j].ranks(
                np.where(at_border, fewest, most), np.where(at_border, most, fewest), n
            )
        )
        inner = values[(first + 1) // 2], values[last // 2]
        found[j] = Limits(reaches[j], borders, outer, inner)
    return found


def _counted(
    encounter: Encounter, frame: Frame, columns: Sequence[Hashable], places: Sequence[int]
) -> dict[int, tuple[Borders, Ranks]]:
    """Return quantiles of columns, and how many values are below each cell between them."""
    if not places:
        return {}
    names = [columns[j] for j in places]
    ranks = np.unique(np.linspace(0, encounter.n - 1, QUANTILES).astype(np.int64))
    borders = [borders_of(values) for values in values_at(frame, names, [ranks] * len(names))]
    counts = count_below(frame[names], names, borders)
    return dict(zip(places, zip(borders, counts, strict=True), strict=True))


# From what was done to what can have become of a value


def reaches_of(
    specs: Sequence[Spec], columns: Sequence[Hashable], *, has_file: bool
) -> list[Reach]:
    """Return what can have become of the values of columns, by the specs that masked them.

    Parameters
    ----------
    specs : sequence of Spec
    columns : sequence
        That the intruder knows.
    has_file : bool
        Whether he has the whole original file in these columns, and not some records alone.
    """
    return [_reach_of(_spec_of(specs, column), column, columns, has_file) for column in columns]


def _spec_of(specs: Sequence[Spec], column: Hashable) -> Spec:
    for spec in specs:
        if column in spec.masked:
            return spec
    listed = arguments.listed(name for spec in specs for name in spec.masked)
    raise SdcValueError(
        f"column {column!r} is masked by none of the specs that the intruder knows, which mask "
        f"{listed}: name the columns that were masked in columns= or known=, or pass all specs."
    )


def check_specs(specs: Sequence[Spec], columns: Sequence[Hashable]) -> None:
    """Raise ValueError if a column was masked by no spec."""
    for column in columns:
        _spec_of(specs, column)


def _reach_of(spec: Spec, column: Hashable, columns: Sequence[Hashable], has_file: bool) -> Reach:
    if isinstance(spec, RankSwap):
        reach = window_of_swap(spec)
        return reach if reach.sure else Reach("free")
    if isinstance(spec, FuzzyMicroaggregation):
        return Reach("free")  # chance may have taken a record anywhere
    if spec.in_place and spec.draws:
        return Reach("free")
    if spec.in_place:
        raise SdcValueError(
            f"an intruder who knows of {spec.describe()} is not modelled, as it was done to column "
            f"{column!r}: do the same to his file, which is what he would do, and compare by "
            "attack='distance'."
        )
    own = next((each for each in spec.column_sets if column in each), None)
    if own is None:
        # A stratum may have joined any other, for reasons that the whole file alone shows.
        known = has_file and all(name in columns for name in spec.masked)
        return Reach("exact" if known else "free")
    if has_file and all(name in columns for name in own):
        return Reach("exact")
    if isinstance(spec, Microaggregation) and len(own) == 1 and is_contiguous(spec, column):
        slack = 0.0 if spec.decimals is None else 0.5 * 10.0**-spec.decimals
        return Reach("neighbours", slack=slack + 0.5 * spec.keep_integers)
    assert isinstance(spec, (Microaggregation, SeriesMicroaggregation, Mic1D))
    return Reach("free")


def is_contiguous(spec: Microaggregation, column: Hashable) -> bool:
    """Whether the groups of a single column follow each other in the order of its values.

    They do along an order, and in one block for all records. Blocks of a tree may be cut in row
    order, strata lie beside each other, and what is refined by chance may be out of order. Records
    of a unit are together wherever they are, and categories and given orders are not those of
    numbers.
    """
    plain = not spec.by and not spec.refine and spec.unit is None
    plain = plain and column not in spec.categories
    return plain and spec.blocks_by is None and spec.method != "vmdav"


def window_of_swap(spec: RankSwap, factor: float = 1.0) -> Reach:
    """Return how far standard rank swapping moves values; other methods most values."""
    if spec.by or spec.blocking is not None:
        raise SdcValueError(
            "an intruder who knows ranks within strata or blocks is not modelled: pass the spec of "
            "a swap over all records (without by= and blocking=), or use attack='distance'."
        )
    if spec.method == "buckets":
        assert spec.buckets is not None
        percent = 100 / spec.buckets
    else:
        assert spec.p is not None
        percent = spec.p
    return Reach(
        "window",
        min(100.0, factor * percent),
        spec.top or 0.0,
        spec.bottom or 0.0,
        spec.method == "standard",
    )
