"""How small the SSE of any groups of k records could be: a gap to show beside the loss.

The SSE of a group of m records is the sum of squared distances over its ordered pairs, over 2m. To
each of its records belong at least the m - 1 smallest of its distances to all others; the sum of
these over m does not fall with m. So with s_1 <= s_2 <= ... the squared distances of record i,

    SSE >= 1 / (2k) * sum over i of (s_1 + ... + s_(k-1)).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.scan import Expected, scan
from sdc_dask.engine.strata import StrataRule
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.exact import exact_sum
from sdc_dask.kernels.kd_tree import build_kd_tree
from sdc_dask.kernels.nearest import nearest_squares
from sdc_dask.results import Result
from sdc_dask.sampling import Sampling
from sdc_dask.utility.sse import sse

MOST_VALUES = 25_000_000  # of all records, if all are looked at: they come to the client
_LEAF_SIZE = 8
_Z = 1.959963984540054  # 95% of a normal distribution lie within so many deviations of its mean

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class SSEBound(Result):
    """What no groups of k records can be below, in units of the columns' deviations."""

    bound: float = field(metadata={"note": "no groups of k records have a smaller SSE"})
    low: float = field(metadata={"note": "95% confidence interval, if records were drawn"})
    high: float = field(metadata={"note": "the upper end"})
    k: int = field(metadata={"note": "smallest group"})
    rows: int = field(metadata={"note": "records"})
    tried: int = field(metadata={"note": "records whose neighbours were looked for"})


@dataclass(frozen=True, repr=False)
class SSEGap(Result):
    """How far from the best possible a microaggregation is, at most."""

    columns: tuple[Hashable, ...] = field(metadata={"note": ""})
    sse: float = field(metadata={"note": "of these columns"})
    bound: float = field(metadata={"note": "no groups of k records have a smaller SSE"})
    times: float = field(metadata={"note": "sse / bound: 1 would be the best possible"})


def sse_gap(
    original: Frame, masked: Frame, columns: Sequence[Hashable], k: int, sampling: Sampling
) -> SSEGap:
    """Measure the SSE of columns that were masked together, and compare it with its bound."""
    lost = sse(original, masked, columns).sse
    bound = sse_bound(original, columns, k, sampling).bound
    times = lost / bound if bound else (1.0 if not lost else math.inf)
    return SSEGap(tuple(columns), lost, bound, times)


def sse_bound(frame: Frame, columns: Sequence[Hashable], k: int, sampling: Sampling) -> SSEBound:
    """Look for the k - 1 nearest neighbours of records, and add up their squared distances.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        Numeric, without missing cells.
    k : int
    sampling : Sampling
        The records whose neighbours are looked for, among all.
    """
    names = list(columns)
    found = scan(frame, names, [StrataRule(())])
    if found.n < k:
        raise SdcValueError(
            f"the frame has {found.n} records, fewer than k={k}: no group of k can be formed. Use "
            "a smaller k or more records."
        )
    found.check(advice=", or name other columns")
    coordinates = found.coordinates(names, standardize=True)
    expected = found.expected(names)
    tried = sampling.rows(found.n)
    if len(tried) * len(names) > MOST_VALUES:
        raise SdcValueError(
            f"{len(tried):,} records of {len(names)} columns are too many to look at each: pass "
            "sample=10_000 to look at a random sample."
        )
    if len(tried) == found.n:
        points = _taken(frame, names, coordinates, expected, tried)
        bound = exact_sum(_shares(_among(points, points, k))).mean * found.n
        return SSEBound(bound, bound, bound, k, found.n, found.n)
    borders = np.cumsum([0, *expected.rows])
    _, far, _ = map_reduce(
        frame[names], _far, _merge_far, names, coordinates, expected, borders, len(tried)
    )
    others = np.setdiff1d(tried, far, assume_unique=True)
    points = _taken(frame, names, coordinates, expected, np.union1d(far, others))
    squares = map_reduce(frame[names], _nearest, _merge, names, coordinates, expected, points, k)
    is_far = np.isin(np.union1d(far, others), far)
    shares = _shares(squares)
    surely, drawn = exact_sum(shares[is_far]), exact_sum(shares[~is_far])
    rest = found.n - len(far)
    sure = surely.mean * len(far)
    bound = sure + drawn.mean * rest
    # Of those that are not far out, as many as the others are a random sample.
    left = (rest - len(others)) / max(1, rest - 1)
    error = _Z * drawn.deviation * math.sqrt(left / max(1, len(others) - 1)) * rest
    low = sure + max(0.0, drawn.mean * rest - error)
    return SSEBound(bound, low, bound + error, k, found.n, len(points))


def _shares(squares: Array) -> Array:
    """Return what records have of the bound; each is its own nearest, at no distance."""
    return np.array([math.fsum(each) for each in squares]) / (2 * squares.shape[1])


def _taken(
    frame: Frame,
    columns: list[Hashable],
    coordinates: Coordinates,
    expected: Expected,
    rows: NDArray[np.int64],
) -> Array:
    """Return the points of some rows, in their order: one pass."""
    borders = np.cumsum([0, *expected.rows])
    local = [
        rows[slice(*np.searchsorted(rows, borders[part : part + 2]))] - borders[part]
        for part in range(len(expected.rows))
    ]
    return map_reduce(frame[columns], _take, _stack, columns, coordinates, expected, local)


# Squared distances to the mean, rows, and how many are sought.
_Far = tuple[Array, NDArray[np.int64], int]


def _far(
    part: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    coordinates: Coordinates,
    expected: Expected,
    borders: NDArray[np.int64],
    count: int,
) -> _Far:
    points = _points(part, number, columns, coordinates, expected)
    squares = np.zeros(len(points))
    for j in range(points.shape[1]):
        squares += points[:, j] ** 2
    return _farthest(squares, np.arange(len(points)) + borders[number], count)


def _merge_far(parts: list[_Far]) -> _Far:
    squares, rows, counts = zip(*parts, strict=True)
    return _farthest(np.concatenate(squares), np.concatenate(rows), counts[0])


def _farthest(squares: Array, rows: NDArray[np.int64], count: int) -> _Far:
    """Return the rows that are farthest out; of equal ones, the first."""
    order = np.lexsort((rows, -squares))[:count]
    return squares[order], rows[order], count


def _points(
    part: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    coordinates: Coordinates,
    expected: Expected,
) -> Array:
    values = to_float(part, columns)
    expected.check(number, values)
    return coordinates.points(values)


def _take(
    part: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    coordinates: Coordinates,
    expected: Expected,
    local: list[NDArray[np.int64]],
) -> Array:
    return _points(part, number, columns, coordinates, expected)[local[number]]


def _stack(parts: list[Array]) -> Array:
    return np.concatenate(parts)


def _nearest(
    part: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    coordinates: Coordinates,
    expected: Expected,
    points: Array,
    k: int,
) -> Array:
    return _among(_points(part, number, columns, coordinates, expected), points, k)


def _among(records: Array, points: Array, k: int) -> Array:
    """Return the squared distances of points to the k nearest records, the smallest first."""
    weight = np.ones(points.shape[1])
    tree = build_kd_tree(np.ascontiguousarray(records), weight, _LEAF_SIZE)
    # Points that follow each other are near each other, and meet the same nodes.
    sought = build_kd_tree(np.ascontiguousarray(points), weight, _LEAF_SIZE)
    squares = np.empty((len(points), k))
    squares[sought.rows] = nearest_squares(tree, sought.points, k)
    return squares


def _merge(parts: list[Array]) -> Array:
    return np.sort(np.concatenate(parts, axis=1), axis=1)[:, : parts[0].shape[1]]
