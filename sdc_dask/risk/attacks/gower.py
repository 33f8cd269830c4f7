"""Linkage over columns of every kind, by the distance of Gower.

An intruder knows numbers, dates and categories of some persons, and takes the nearest masked record
for theirs.

References
----------
J. C. Gower, "A general coefficient of similarity and some of its properties", Biometrics 27 (1971).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame, map_reduce, meta_of
from sdc_dask.engine.in_place import changed
from sdc_dask.engine.mixed import (
    PLAIN,
    Points,
    Reading,
    Scale,
    extent_of,
    mixed_columns,
    scale_of,
)
from sdc_dask.engine.pairs import pair_frames, pair_parts
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.gower import count_near, pair_distances
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.recode import Recode
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.linkage import Linkage, count_links, of_ties
from sdc_dask.sampling import Sampling, tried_of

# Records that are all tried: each is compared with all different masked ones.
MOST_TRIED = 50_000

NAME = "Gower distance"
BLIND = "nothing else"  # what those have who do not know the masking

_Taken = tuple[Points, Points]  # original and masked records


def link_by_gower(
    original: Frame,
    masked: Frame,
    names: Sequence[Hashable],
    sampling: Sampling,
    specs: Sequence[Spec] = (),
    reading: Reading = PLAIN,
) -> Linkage:
    """Link records to the nearest masked ones, by the mean distance over columns of every kind.

    Numbers and dates are at the distance of their difference, over the range of the original;
    ordered categories at that of their ranks; all else at 0 or 1. Missing cells are a value of
    their own. No distance is larger than 1.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
        With the same rows.
    names : list
        Columns that the intruder knows.
    sampling : Sampling
        Which records are tried: all of up to 50,000, or a sample.
    specs : sequence of specs, optional
        That masked, as far as the intruder knows: what he knows is recoded as they say, since ages
        have no distance from ranges of ages. Nothing else is made use of.
    reading : Reading, optional
        What is said of columns. Where missing masked cells may have been any value, they are at no
        distance from it.

    Returns
    -------
    Linkage

    Notes
    -----
    Every record that is tried is compared with every different masked record of each partition, in
    one to two nanoseconds per pair, as most pairs are seen to be too far after a column or two:
    5,000 records with a million different ones take about 8 seconds of one core in six columns,
    and a fraction of that if many are equal. Distances within 1e-9 of each other are equal. The
    original is read twice, and so is the masked frame.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame({"age": [31, 33, 64, 62], "job": ["cook", "cook", "nurse", None]})
    >>> masked = df.assign(age=[32, 32, 63, 63])
    >>> df.sdc.linkage(masked, "gower").correct
    3.0
    """
    ties, n = ties_by_gower(_recoded(original, specs), masked, names, sampling, reading)
    return of_ties(NAME, len(names), count_links(ties), n, tried_of(len(ties), n))


def intruders(
    specs: Sequence[Spec], names: Sequence[Hashable], said: Reading = PLAIN
) -> list[tuple[str, Reading]]:
    """Return what intruders know besides values, in words, and how they read columns.

    All recode what they know as the specs say, and read columns as it is `said` and as the specs
    say. To the first a missing cell is a value of its own;
    if columns are suppressed, there is a second, to whom a missing cell in these may have been any
    value. Which of them links more depends on how many records are suppressed alike.
    """
    reading, recoded = said.beside(reading_of(specs, recoded=True)), ""
    if any(isinstance(spec, Recode) and set(spec.masked) & set(names) for spec in specs):
        recoded = "how columns were recoded"
    found = [(recoded or BLIND, replace(reading, open=()))]
    if set(reading.open) & set(names):
        suppressed = "in which columns cells were suppressed"
        found.append((" and ".join(filter(None, [recoded, suppressed])), reading))
    return found


def strongest_by_gower(
    original: Frame,
    masked: Frame,
    names: Sequence[Hashable],
    sampling: Sampling,
    specs: Sequence[Spec],
    said: Reading = PLAIN,
) -> tuple[str, Linkage]:
    """Return what the strongest of the :func:`intruders` knows, and his links."""
    found = [
        (knows, link_by_gower(original, masked, names, sampling, specs, reading))
        for knows, reading in intruders(specs, names, said)
    ]
    return max(found, key=lambda each: each[1].rate)


def ties_by_gower(
    original: Frame,
    masked: Frame,
    names: Sequence[Hashable],
    sampling: Sampling,
    reading: Reading = PLAIN,
) -> tuple[NDArray[np.int64], int]:
    """Return to how many masked records each that is tried is linked, and the number of all.

    It is -1 where a wrong one is nearer than the right one.
    """
    columns = mixed_columns(meta_of(original), meta_of(masked), names, reading)
    frames = pair_frames(original, masked, names)
    extent = extent_of(frames[0], columns)
    n = sum(extent.rows)
    tried = sampling.rows(n)
    if len(tried) > MOST_TRIED:
        raise SdcValueError(
            f"attack='gower' tries {MOST_TRIED:,} records at most, received {len(tried):,}: each "
            "is compared with all masked records. Pass sample=5_000 for a random sample."
        )
    scale = scale_of(columns, extent)
    old, new = map_reduce(frames, _take, _stack, scale, tried, extent.rows)
    limits = pair_distances(*old, *new)
    return map_reduce(frames[1], _search, _merge, scale, old, limits), n


def _recoded(frame: Frame, specs: Sequence[Spec]) -> Frame:
    for spec in specs:
        if isinstance(spec, Recode):
            frame = changed(frame, spec.plan(frame))
    return frame


def _take(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    scale: Scale,
    tried: NDArray[np.int64],
    rows: tuple[int, ...],
) -> _Taken:
    original, masked = pair_parts(original, masked, number)
    if len(original) != rows[number]:
        raise SdcRuntimeError(
            f"partition {number} has other rows than when it was first read: the frame gives "
            "something else each time it is computed. Write it out, or persist it, first."
        )
    start = sum(rows[:number])
    begin, end = np.searchsorted(tried, [start, start + len(original)])
    some = tried[begin:end] - start
    return scale.points(original.iloc[some]), scale.points(masked.iloc[some], released=True)


def _stack(parts: list[_Taken]) -> _Taken:
    old, new = zip(*parts, strict=True)
    return _concatenated(old), _concatenated(new)


def _concatenated(points: Sequence[Points]) -> Points:
    return Points(*(np.concatenate(each) for each in zip(*points, strict=True)))


def _search(
    part: pd.DataFrame,
    _number: int,
    scale: Scale,
    wanted: Points,
    limits: NDArray[np.float64],
) -> NDArray[np.int64]:
    points, counts = scale.points(part, released=True).distinct()
    return count_near(*wanted, limits, *points, counts)


def _merge(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.where(np.min(parts, axis=0) < 0, -1, np.sum(parts, axis=0))
