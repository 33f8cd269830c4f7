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
from sdc_dask.engine.ranks import ranks_of, values_at
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.swaps import share_of, window_of
from sdc_dask.masking.fuzzy import FuzzyMicroaggregation
from sdc_dask.masking.mic1d import Mic1D
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.rank_swap import RankSwap
from sdc_dask.masking.series import SeriesMicroaggregation
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.encounter import Encounter

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
            # Among averaged extremes a value can have had any of their ranks.
            first = np.where(upto > n - highs, np.minimum(below, n - highs), below)
            first = np.where(below < lows, 0, first) - width
            last = np.where(below < lows, np.maximum(upto, lows), upto)
            last = np.where(upto > n - highs, n, last) - 1 + width
        return np.clip(first, 0, n - 1), np.clip(last, 0, n - 1)


def intervals(
    encounter: Encounter, columns: Sequence[Hashable], reaches: Sequence[Reach]
) -> tuple[Array, Array]:
    """Return the lowest and highest masked values that the tried records can have, by column.

    If all records are tried, their masked versions are all masked records. Otherwise ranks and
    values at ranks take some passes over the masked frame.
    """
    places = encounter.places(columns)
    old, new = (values[:, places] + 0.0 for values in encounter.drawn)
    low, high = np.full(old.shape, -np.inf), np.full(old.shape, np.inf)
    for j, reach in enumerate(reaches):
        if reach.kind == "exact":
            low[:, j] = high[:, j] = new[:, j]
    for frame, which, values in (
        (encounter.original, ("aligned",), old),
        (encounter.masked, ("window", "neighbours"), new),
    ):
        some = [j for j, reach in enumerate(reaches) if reach.kind in which]
        if not some:
            continue
        names = [columns[j] for j in some]
        if encounter.sampled:
            several = any(reaches[j].slack for j in some)
            ends = [reaches[j].ends(old[:, j])[: 1 + several] for j in some]
            both = ranks_of(frame, names, [each.ravel() for each in ends])
            tried = len(old)
            counted = [(below[:tried], upto[-tried:]) for below, upto in both]
        else:
            orders = [np.sort(values[:, j]) for j in some]
            counted = [
                _count(order, *reaches[j].ends(old[:, j]))
                for order, j in zip(orders, some, strict=True)
            ]
        found = [
            reaches[j].ranks(below, upto, encounter.n)
            for j, (below, upto) in zip(some, counted, strict=True)
        ]
        for (firsts, lasts), j in zip(
            _values(encounter, names, found, new[:, some]), some, strict=True
        ):
            low[:, j], high[:, j] = firsts, lasts
    return low, high


def _count(order: Array, low: Array, high: Array) -> tuple[Ranks, Ranks]:
    """Return how many sorted values are below the lower, and not above the upper, of two ends."""
    # In ascending order, searches meet values that are in the cache.
    ascending = np.argsort(low)
    below, upto = np.empty((2, len(low)), np.int64)
    below[ascending] = np.searchsorted(order, low[ascending], side="left")
    upto[ascending] = np.searchsorted(order, high[ascending], side="right")
    return below, upto


def _values(
    encounter: Encounter,
    names: Sequence[Hashable],
    ends: Sequence[tuple[Ranks, Ranks]],
    new: Array,
) -> list[tuple[Array, Array]]:
    """Return the masked values at ranks."""
    if not encounter.sampled:
        orders = [np.sort(new[:, j]) for j in range(new.shape[1])]
        return [(order[a], order[b]) for order, (a, b) in zip(orders, ends, strict=True)]
    found = values_at(encounter.masked, names, [np.concatenate(each) for each in ends])
    return [tuple(np.split(each, 2)) for each in found]  # type: ignore[misc]


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
    own = next(each for each in spec.column_sets if column in each)
    if has_file and all(name in columns for name in own):
        return Reach("exact")
    if isinstance(spec, Microaggregation) and len(own) == 1 and is_contiguous(spec):
        slack = 0.0 if spec.decimals is None else 0.5 * 10.0**-spec.decimals
        return Reach("neighbours", slack=slack)
    assert isinstance(spec, (Microaggregation, SeriesMicroaggregation, Mic1D))
    return Reach("free")


def is_contiguous(spec: Microaggregation) -> bool:
    """Whether the groups of a single column follow each other in the order of its values.

    They do along an order, and in one block for all records. Blocks of a tree may be cut in row
    order, and strata lie beside each other.
    """
    return spec.blocks_by is None and not spec.by and spec.method != "vmdav"


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
