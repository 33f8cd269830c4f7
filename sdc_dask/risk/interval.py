"""Interval disclosure: how often the original value lies near the masked one.

J. Domingo-Ferrer, V. Torra, "A quantitative comparison of disclosure control methods for
microdata", in: Confidentiality, Disclosure, and Data Access, North-Holland, 2001.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, is_dask, map_reduce
from sdc_dask.engine.pairs import pair_columns, pair_frames, pair_values
from sdc_dask.engine.ranks import count_below, sample_borders, together
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.kernels.intervals import (
    Borders,
    borders_of,
    classify,
    ranks_between,
)
from sdc_dask.results import Result

PERCENTS = tuple(range(1, 11))


@dataclass(frozen=True, repr=False)
class IntervalDisclosure(Result):
    """How often original values lie in an interval around their masked values."""

    interval: float = field(metadata={"note": "percent of values disclosed: lower is safer"})
    rows: int = field(metadata={"note": "records"})
    by_width: dict[int, float] = field(metadata={"note": ""})  # by percent of the ranks
    by_column: dict[Hashable, float] = field(metadata={"note": ""})


@dataclass(frozen=True, repr=False)
class WidthDisclosure(Result):
    """How often original values lie within a share of the deviation from their masked values."""

    interval: float = field(metadata={"note": "percent of values disclosed: lower is safer"})
    drisk: float = field(metadata={"note": "percent of records disclosed in all columns"})
    width: float = field(metadata={"note": "half an interval, in deviations of the masked column"})
    rows: int = field(metadata={"note": "records"})
    by_column: dict[Hashable, float] = field(metadata={"note": ""})


# By rank


def interval_disclosure(
    original: Frame, masked: Frame, columns: Sequence[Hashable]
) -> IntervalDisclosure:
    """Measure rank intervals of 1 to 10 percent to both sides of the masked value.

    The interval of a masked value goes from the masked value so many ranks below to that so many
    ranks above, both included. Of equal masked values, which share several ranks, it is counted
    from the middle one; and no interval goes beyond the smallest or the largest masked value.
    Therefore a constant column discloses only what is equal to the constant, and large groups of
    equal values disclose less than small ones.

    A pandas frame is sorted. A Dask frame is never sorted as a whole: counts between a hundred
    thousand values of every column bound all ranks, which decides nearly all cases; the ranks of
    the rest are counted exactly. Both give the same numbers.
    """
    columns = list(columns)
    frames = pair_frames(original, masked, columns)
    if is_dask(original):
        rows, disclosed = _out_of_core(frames, columns)
    else:
        rows, disclosed = _in_memory(frames, columns)
    shares = 100 * disclosed / np.maximum(rows, 1)[:, None]
    return IntervalDisclosure(
        float(shares.mean()),
        int(rows.max()),
        {percent: float(share) for percent, share in zip(PERCENTS, shares.mean(0), strict=True)},
        {column: float(share) for column, share in zip(columns, shares.mean(1), strict=True)},
    )


def limits_of(rows: int) -> NDArray[np.int64]:
    """Return the ranks that 1 to 10 percent of the records are, rounded down."""
    return np.array([rows * percent // 100 for percent in PERCENTS], np.int64)


def _in_memory(
    frames: tuple[Frame, Frame], columns: list[Hashable]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of values by column, and of those disclosed by column and width."""
    old, new = pair_values(*frames, 0, columns)
    rows, disclosed = [], []
    for j in range(len(columns)):
        x, v = _present(old[:, j], new[:, j])
        order = np.sort(v)
        needed = ranks_between(
            np.searchsorted(order, x),
            np.searchsorted(order, x, side="right"),
            np.searchsorted(order, v),
            np.searchsorted(order, v, side="right"),
            len(v),
        )
        rows.append(len(v))
        disclosed.append([int((needed <= 2 * limit).sum()) for limit in limits_of(len(v))])
    _check_rows(rows, columns)
    return np.array(rows), np.array(disclosed)


def _present(
    x: NDArray[np.float64], v: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return values that are there in both, none of them a negative zero."""
    x, v = x + 0.0, v + 0.0
    there = ~np.isnan(v)
    return (x, v) if there.all() else (x[there], v[there])


def _check_rows(rows: Sequence[int], columns: Sequence[Hashable]) -> None:
    empty = [column for column, count in zip(columns, rows, strict=True) if count == 0]
    if empty:
        raise SdcValueError(
            f"columns without any value: {', '.join(map(repr, empty))}. There is nothing to "
            "disclose: leave them out."
        )


def _out_of_core(
    frames: tuple[Frame, Frame], columns: list[Hashable]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    borders = sample_borders(frames[1], columns)
    before = count_below(frames[1], columns, borders)
    rows = np.array([each[-1] for each in before])
    _check_rows(rows.tolist(), columns)
    limits = [limits_of(int(count)) for count in rows]
    found = map_reduce(frames, _classify, _merge_found, columns, borders, before, limits)
    for column, each, count in zip(columns, found, rows.tolist(), strict=True):
        _check_same(column, each.rows, count)
    disclosed = np.array([each.disclosed for each in found])
    # What is left needs exact ranks: its own values are the borders now.
    exact = {
        j: borders_of(np.concatenate([each.original, each.masked]))
        for j, each in enumerate(found)
        if len(each.masked)
    }
    for some in together({j: len(each.values) for j, each in exact.items()}):
        names = [columns[j] for j in some]
        counts = count_below(frames[1][names], names, [exact[j] for j in some])
        for j, upto in zip(some, counts, strict=True):
            each = found[j]
            _check_same(columns[j], int(upto[-1]), each.rows)
            undecided = np.empty(len(each.masked), np.int64)  # none, at borders
            classify(exact[j], upto, each.original, each.masked, limits[j], disclosed[j], undecided)
    return rows, disclosed


def _check_same(column: Hashable, now: int, before: int) -> None:
    """Raise RuntimeError if a pass has met other numbers of values than one before."""
    if now != before:
        raise SdcRuntimeError(
            f"column {column!r} of the masked frame has {now} values, and had {before} when it was "
            "read before: write it, or call persist, and compare that."
        )


@dataclass(frozen=True)
class _Found:
    """Of one column: values, those surely disclosed by width, and pairs of which it is open."""

    rows: int
    disclosed: NDArray[np.int64]
    original: NDArray[np.float64]
    masked: NDArray[np.float64]


def _classify(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    borders: list[Borders],
    before: list[NDArray[np.int64]],
    limits: list[NDArray[np.int64]],
) -> list[_Found]:
    found = []
    for j, (old, new) in enumerate(pair_columns(original, masked, number, columns)):
        x, v = _present(old, new)
        disclosed = np.zeros(len(PERCENTS), np.int64)
        undecided = np.empty(len(x), np.int64)
        count = classify(borders[j], before[j], x, v, limits[j], disclosed, undecided)
        left = undecided[:count]
        found.append(_Found(len(x), disclosed, x[left], v[left]))
    return found


def _merge_found(parts: list[list[_Found]]) -> list[_Found]:
    return [
        _Found(
            sum(each.rows for each in column),
            np.sum([each.disclosed for each in column], axis=0),
            np.concatenate([each.original for each in column]),
            np.concatenate([each.masked for each in column]),
        )
        for column in zip(*parts, strict=True)
    ]


# By width


def width_disclosure(
    original: Frame, masked: Frame, columns: Sequence[Hashable], width: float
) -> WidthDisclosure:
    """Measure intervals of a share of the masked column's deviation: two passes.

    ``drisk`` is what sdcMicro's dRisk returns since 2020, in percent: records of which all values
    lie inside. Deviations are those of a sample, of n - 1 degrees of freedom.
    """
    columns = list(columns)
    frames = pair_frames(original, masked, columns)
    sums: list[ExactSum] = map_reduce(frames[1], _sums, _add_sums, columns)
    _check_rows([each.n for each in sums], columns)
    of_sample = [math.sqrt(each.n / max(1, each.n - 1)) for each in sums]
    reach = np.array([width * r * each.deviation for r, each in zip(of_sample, sums, strict=True)])
    rows, values, within, whole = map_reduce(frames, _within, _add_within, columns, reach)
    shares = 100 * within / values
    return WidthDisclosure(
        float(shares.mean()),
        100 * whole / rows,
        width,
        rows,
        {column: float(share) for column, share in zip(columns, shares, strict=True)},
    )


def _sums(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> list[ExactSum]:
    values = to_float(part, columns)
    return [exact_sum(values[np.isfinite(values[:, j]), j]) for j in range(len(columns))]


def _add_sums(parts: list[list[ExactSum]]) -> list[ExactSum]:
    return [sum(column, ExactSum()) for column in zip(*parts, strict=True)]


# Rows; values and those disclosed, by column; rows of which all values are.
_Within = tuple[int, NDArray[np.int64], NDArray[np.int64], int]


def _within(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    reach: NDArray[np.float64],
) -> _Within:
    old, new = pair_values(original, masked, number, columns)
    with np.errstate(over="ignore"):
        near = np.abs(old - new) <= reach
    there = ~np.isnan(old)
    return len(old), there.sum(0), (near & there).sum(0), int((near | ~there).all(1).sum())


def _add_within(parts: list[_Within]) -> _Within:
    rows, values, within, whole = zip(*parts, strict=True)
    return sum(rows), np.sum(values, axis=0), np.sum(within, axis=0), sum(whole)
