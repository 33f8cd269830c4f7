"""Ranks and quantiles of columns of any size, as a service: counted between borders, never sorted.

One pass that counts the values between borders gives the ranks of the borders exactly, and bounds
those of all else. So the ranks of given values take one pass, and the values at given ranks a few.
Everything is exact, and the same for every partitioning.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, is_dask, map_reduce, partitions
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.engine.splitters import SAMPLES_A_RANGE, sample_positions
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.intervals import Borders, borders_of, cells_of, count_cells

Array = NDArray[np.float64]
Counts = NDArray[np.int64]

# Of a column's values, between which ranks are known within a cell's count.
BORDERS = 2**17
MOST_BORDERS = 2**20  # of all columns that are counted in one pass: each partition has a count each
MOST_COLLECTED = 2**21  # values that come to the client


def ranks_of(
    frame: Frame, columns: Sequence[Hashable], values: Sequence[Array]
) -> list[tuple[Counts, Counts]]:
    """Count the values of columns below given ones, and not above them.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        Numeric columns; missing cells are left out.
    values : sequence of ndarray of float64
        For every column, values of which the ranks are wanted: there is a pass over the data for
        every million of different ones.

    Returns
    -------
    list of tuple
        For every column, how many of its values are below each, and how many are not above.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> frame = pd.DataFrame({"x": [5.0, 3.0, 5.0, 9.0]})
    >>> ranks_of(frame, ["x"], [np.array([5.0, 6.0])])
    [(array([1, 3]), array([3, 3]))]
    """
    columns = list(columns)
    borders = [borders_of(each + 0.0) for each in values]
    found: dict[int, tuple[Counts, Counts]] = {}
    for some in together({j: len(each.values) for j, each in enumerate(borders)}):
        names = [columns[j] for j in some]
        counted = count_below(frame[names], names, [borders[j] for j in some])
        for j, before in zip(some, counted, strict=True):
            cells = cells_of(borders[j], values[j] + 0.0)
            found[j] = before[cells], before[cells + 1]
    return [found[j] for j in range(len(columns))]


def values_at(frame: Frame, columns: Sequence[Hashable], ranks: Sequence[Counts]) -> list[Array]:
    """Return the values of columns at given ranks: quantiles without interpolation.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        Numeric columns; missing cells have no rank.
    ranks : sequence of ndarray of int64
        For every column, ranks from 0 to the number of its values less 1.

    Returns
    -------
    list of ndarray of float64

    Notes
    -----
    A Dask frame is read for a sample, to count, and to collect the values between the borders that
    ranks fall between; once or twice more in between if these are too many for one place.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> frame = pd.DataFrame({"x": [5.0, 3.0, 5.0, 9.0]})
    >>> values_at(frame, ["x"], [np.array([0, 2, 3])])
    [array([3., 5., 9.])]
    """
    columns = list(columns)
    if not is_dask(frame):
        return [
            np.sort(_present(frame, column))[wanted]
            for column, wanted in zip(columns, ranks, strict=True)
        ]
    borders = sample_borders(frame, columns)
    open_ = [np.unique(wanted) for wanted in ranks]
    known: list[dict[int, float]] = [{} for _ in columns]
    while True:
        before = count_below(frame[columns], columns, borders)
        cells = []
        for j, wanted in enumerate(open_):
            cell = np.searchsorted(before[j], wanted, side="right") - 1
            at_border = cell % 2 == 1
            found = borders[j].values[cell[at_border] // 2]
            known[j].update(zip(wanted[at_border].tolist(), found.tolist(), strict=True))
            open_[j] = wanted[~at_border]
            cells.append(np.unique(cell[~at_border]))
        held = sum(
            int((counts[held + 1] - counts[held]).sum())
            for counts, held in zip(before, cells, strict=True)
        )
        if held <= MOST_COLLECTED:
            break
        borders = [_finer(each, held) for each, held in zip(borders, cells, strict=True)]
    collected = map_reduce(frame[columns], _collect, _stack, columns, borders, cells)
    for j, wanted in enumerate(open_):
        values = np.sort(collected[j])
        # The values of the cells follow each other, as the cells do.
        sizes = before[j][cells[j] + 1] - before[j][cells[j]]
        if len(values) != sizes.sum():
            raise SdcRuntimeError(f"there are not as many values as were counted. {NOT_THE_SAME}")
        own = np.searchsorted(before[j], wanted, side="right") - 1
        place = np.searchsorted(cells[j], own)
        begin = (np.cumsum(sizes) - sizes)[place]
        found = values[begin + wanted - before[j][own]]
        known[j].update(zip(wanted.tolist(), found.tolist(), strict=True))
    return [
        np.array([found[rank] for rank in wanted.tolist()])
        for found, wanted in zip(known, ranks, strict=True)
    ]


def sample_borders(frame: Frame, columns: Sequence[Hashable]) -> list[Borders]:
    """Draw about BORDERS values of every column, and take both ends: one pass over the data."""
    parts = len(partitions(frame))
    sample = map_reduce(frame, _sample, _stack, list(columns), parts)
    return [borders_of(_thinned(values)) for values in sample]


def count_below(frame: Frame, columns: list[Hashable], borders: list[Borders]) -> list[Counts]:
    """Return the number of values below each cell, and of all, by column: one pass."""
    counts = map_reduce(frame, _count_cells, _add_each, columns, borders)
    return [np.append(0, np.cumsum(each)) for each in counts]


def together(sizes: dict[int, int]) -> list[list[int]]:
    """Return which columns are counted in one pass: as many as have `MOST_BORDERS` together."""
    passes: list[list[int]] = []
    room = 0
    for column, size in sizes.items():
        if not passes or size > room:
            passes.append([])
            room = MOST_BORDERS
        passes[-1].append(column)
        room -= size
    return passes


def _present(frame: pd.DataFrame, column: Hashable) -> Array:
    """Return the values of a column that are there, none of them a negative zero."""
    values = to_float(frame, [column])[:, 0]
    values += 0.0
    missing = np.isnan(values)
    return values[~missing] if missing.any() else values


def _sample(part: pd.DataFrame, number: int, columns: list[Hashable], parts: int) -> list[Array]:
    share = -(-BORDERS // parts)
    picked = sample_positions(len(part), len(part), number, -(-share // SAMPLES_A_RANGE))
    samples = []
    for column in columns:
        values = to_float(part, [column])[:, 0]
        # Of values and NaN, these take values.
        ends = [np.fmin.reduce(values), np.fmax.reduce(values)] if len(values) else []
        drawn = np.append(values[picked], ends)
        samples.append(drawn[~np.isnan(drawn)] + 0.0)
    return samples


def _thinned(values: Array) -> Array:
    """Leave out values of a sample that has more than BORDERS, since partitions give some each.

    The smallest and the largest one stay: which values are beyond them is then decided.
    """
    values = np.unique(values)
    return np.append(values[:: max(1, -(-len(values) // BORDERS))], values[-1:])


def _finer(borders: Borders, cells: Counts) -> Borders:
    """Return borders within some cells, and at their ends."""
    if not len(cells):
        return borders_of(borders.values[:1])
    low, high = borders.values[cells // 2 - 1], borders.values[cells // 2]
    steps = max(3, MOST_BORDERS // (8 * len(cells)))
    share = np.arange(steps + 1) / steps
    within = low[:, None] * (1 - share) + high[:, None] * share
    return borders_of(np.clip(within, low[:, None], high[:, None]).ravel())


_Integers = list[NDArray[np.integer]]  # by column and cell


def _count_cells(
    part: pd.DataFrame, _number: int, columns: list[Hashable], borders: list[Borders]
) -> _Integers:
    counts: _Integers = []
    for column, each in zip(columns, borders, strict=True):
        # Small, since many of them wait to be added up.
        cells = np.zeros(2 * len(each.values) + 1, np.int32)
        count_cells(each, np.sort(_present(part, column)), cells)
        counts.append(cells)
    return counts


def _add_each(parts: list[_Integers]) -> _Integers:
    totals: _Integers = [counts.astype(np.int64) for counts in parts[0]]
    for part in parts[1:]:
        for total, counts in zip(totals, part, strict=True):
            total += counts
    return totals


def _collect(
    part: pd.DataFrame,
    _number: int,
    columns: list[Hashable],
    borders: list[Borders],
    cells: list[Counts],
) -> list[Array]:
    found = []
    for column, each, wanted in zip(columns, borders, cells, strict=True):
        values = _present(part, column)
        is_wanted = np.zeros(2 * len(each.values) + 1, bool)
        is_wanted[wanted] = True
        found.append(values[is_wanted[cells_of(each, values)]])
    return found


def _stack(parts: list[list[Array]]) -> list[Array]:
    return [np.concatenate(arrays) for arrays in zip(*parts, strict=True)]
