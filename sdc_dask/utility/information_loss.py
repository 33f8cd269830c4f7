"""Information loss: how far statistics of masked data are from those of the original.

IL1 to IL5 compare values, means, covariances, variances and correlations; their mean is IL. Others
compare distributions, column by column, and the coefficients of a regression.

References
----------
J. Domingo-Ferrer, V. Torra, "A quantitative comparison of disclosure control methods for
microdata", in: Confidentiality, Disclosure and Data Access, North-Holland, 2001. J. Nin,
*Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis, Universitat
Autònoma de Barcelona, section 2.5.1. J. M. Mateo-Sanz, J. Domingo-Ferrer, F. Sebé, "Probabilistic
information loss measures in confidentiality protection of continuous microdata", Data Mining and
Knowledge Discovery 11 (2005).
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce, number_of_partitions
from sdc_dask.engine.moments import CoMoments, PairSums, co_moments_of
from sdc_dask.engine.pairs import pair_frames, pair_parts, pair_values
from sdc_dask.engine.scan import NOT_THE_SAME
from sdc_dask.errors import SdcKeyError, SdcRuntimeError, SdcTypeError, SdcValueError
from sdc_dask.kernels.differences import (
    Differences,
    Grid,
    classes_of,
    differences,
    quantiles_of,
)
from sdc_dask.results import Result

_PARTS = 20  # quantiles 5%, 10%, ..., 95%
_UNIT = 1074  # exact sums count units of 2**-1074
_GRIDS = 2  # on which columns are counted, of those that partitions have
_RUN = 2**17  # records that are read at once: what they are turned into stays in caches
_MORE = 64  # bits that roots have more than the integers that they are divided by or from
# A column of a regression follows from others if they leave this share of its variance, or less.
_COLLINEAR = Fraction(1, 10**14)
_INTERCEPT = "(intercept)"
_LITTLE = 0.1  # deviations, or correlation, below which a division says little
_COUNTS = 0.01  # a part of IL below this does no harm, whatever it is made of
_NOISY = {
    "il1": "il1 comes mostly from values near 0",
    "il2": "il2 comes mostly from means near 0",
    "il3": "il3 comes mostly from columns that are hardly correlated",
}


@dataclass(frozen=True)
class ColumnLoss:
    """What became of one column. Shifts are in units of the original's deviation.

    A shift is None if the original is constant and the shift is not 0.
    """

    il1: float | None
    unchanged: float
    mean: float
    masked_mean: float
    mean_shift: float | None
    deviation: float
    masked_deviation: float
    deviation_shift: float | None
    quantile_shift: float | None
    hellinger: float


@dataclass(frozen=True, repr=False)
class InformationLoss(Result):
    """How much masking has changed, in values, in statistics and in distributions.

    A figure is None if no term of it is defined. `columns` has the figures of each column,
    :attr:`table` shows them. `coefficients` has, for a regression, the coefficients of the
    original and of the masked frame and the standard errors of the former.
    """

    il: float = field(metadata={"note": "100 times the mean of il1 to il5: lower is better"})
    il1: float | None = field(metadata={"note": "mean relative difference of values"})
    il2: float | None = field(metadata={"note": "... of means"})
    il3: float | None = field(metadata={"note": "... of covariances, with variances"})
    il4: float | None = field(metadata={"note": "... of variances"})
    il5: float = field(metadata={"note": "mean difference of correlations"})
    il1_scaled: float | None = field(
        metadata={"note": "mean difference in deviations times root 2: lower is better"}
    )
    il_scaled: float = field(
        metadata={"note": "il by deviations, each term 1 at most: 0 to 100, lower is better"}
    )
    quantiles: float | None = field(
        metadata={"note": "largest shift of a quantile, in deviations: lower is better"}
    )
    hellinger: float = field(
        metadata={"note": "mean distance of distributions: 0 the same, 1 disjoint"}
    )
    unchanged: float = field(metadata={"note": "share of cells that kept their value"})
    regression: float | None = field(
        metadata={"note": "mean shift of coefficients, in standard errors: lower is better"}
    )
    rows: int = field(metadata={"note": "records"})
    zeros: int = field(metadata={"note": "cells left out of il1: 0 became another number"})
    undefined: int = field(
        metadata={"note": "left out of il2 to il4: means, (co)variances that were 0"}
    )
    constant: int = field(
        metadata={"note": "left out of il1_scaled: constant columns that changed"}
    )
    note: str = field(metadata={"note": ""})  # which parts of il are mostly noise
    columns: dict[Hashable, ColumnLoss]
    coefficients: dict[str, dict[Hashable, float]]

    @property
    def table(self) -> pd.DataFrame:
        """The figures of the columns, a row for each.

        ``il1`` is the mean relative difference, ``unchanged`` the share of cells that kept their
        value. ``mean_shift``, ``deviation_shift`` and ``quantile_shift`` are how far the mean, the
        deviation and that quantile of 5%, 10%, ..., 95% which moved most have moved, in units of
        the original's deviation; the first two have a sign. ``hellinger`` is the distance of the
        distributions. Deviations are those of populations.
        """
        index = pd.Index(list(self.columns), name="column", tupleize_cols=False)
        rows = [asdict(column) for column in self.columns.values()]
        return pd.DataFrame(rows, index=index, dtype="float64")

    def __repr__(self) -> str:
        # The last two fields are tables.
        lines = super().__repr__().split("\n  columns ")[0]
        statistics = ["mean", "masked_mean", "deviation", "masked_deviation"]
        tables = [self.table.drop(columns=statistics)]
        if self.coefficients:
            tables.append(pd.DataFrame(self.coefficients))
        return "\n".join([lines, *(_indented(table) for table in tables)])


def _indented(table: pd.DataFrame) -> str:
    table = table.rename_axis(index=None)
    text = table.to_string(float_format=lambda value: f"{value:.4g}", na_rep="-")
    return "\n".join(f"  {line}" for line in text.splitlines())


def information_loss(
    original: Frame, masked: Frame, columns: Sequence[Hashable], *, regression: str | None = None
) -> InformationLoss:
    """Compare the values, statistics and distributions of two frames, in one pass.

    Values, products and differences are added up without rounding, and values are counted on a
    grid that is made of the means and deviations. So the figures are the same bits for every
    partitioning, for pandas and Dask. Partitions that were counted on another grid than that of
    all records are read once more: those that are unlike all, as in a sorted frame, and few others.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
        With the same rows: a record is compared with what it became, and not with the nearest
        record, as some define IL1.
    columns : sequence
        Numeric columns of both frames, each once.
    regression : str, optional
        Such as ``"income ~ age + hours"``: a response and the columns, among `columns`, that
        explain it. Names that are not plain words go in backticks. There always is an intercept.

    Returns
    -------
    InformationLoss

    Raises
    ------
    ValueError
        If there are no records or a column has no value; if frames do not have the same rows, or
        cells are infinite, or missing in one frame only; if a regression is not determined.
    KeyError
        If the regression names other columns.

    Notes
    -----
    With x and x' the original and the masked value, and population statistics:

    - IL1 is the mean of abs(x - x') / abs(x) over all cells. A zero that stayed zero counts 0; one
      that became another number is left out and counted in ``zeros``.
    - IL2, IL3 and IL4 are the means of the relative differences of means, of the a (a + 1) / 2
      covariances and variances, and of variances alone. What was 0 and still is counts 0; what was
      0 and is no longer is left out and counted in ``undefined``. What was nearly 0 counts, and
      may be most of the figure.
    - IL5 is the mean difference of the a (a - 1) / 2 correlations, without a division: 0 for one
      column. The correlations of a constant column are 0.
    - IL is 100 times the mean of those five that are defined.
    - ``il1_scaled`` is the mean of abs(x - x') / (sqrt(2) s), with the deviation s of the column in
      the original. A constant column that changed is left out and counted in ``constant``.
    - ``il_scaled`` is IL without divisions by what may be about 0: of ``il1_scaled``, and of the
      differences of means over s, of covariances over the s of both columns, of variances over
      variances, and of correlations. Every term counts 1 at most, and constant columns that
      changed are left out. So it lies between 0 and 100, and does not jump from masking to masking.
    - ``note`` names those of IL1, IL2 and IL3 of which more than half comes from divisions by
      little: by values in columns where il1 is ten times the difference in deviations or more, by
      means below a tenth of s, by covariances of columns with a correlation below 0.1. What they
      say is mostly noise, and IL with them.

    Relative differences that exceed float64 are infinite, and so is their mean.

    Cells that are missing in both frames are left out; a covariance is that of the records which
    have both columns.

    Quantiles (5%, 10%, ..., 95%) and Hellinger distances come from counts of values on a grid,
    whose cells have the same width in z / (1 + abs(z)) for z = (x - mean) / s. So outliers do not
    make it coarse. A cell is a thousandth of s wide at the mean, 0.004 s at one deviation from it,
    and 0.03 s as far away as the 5% or the 95% quantile of any column can be; a shift is known to
    two cells' widths, mostly to one. The Hellinger distance is that of 63 classes of 33 cells.
    Borders of cells are rounded by up to 0.3 of a cell, to those of a grid around a round number.

    The regression is solved without rounding. Its figure is the mean of abs(b - b') / se(b) over
    the coefficients b, with the intercept, and grows with the root of the number of records if all
    else is the same. It is infinite if the original is fitted without error and the masked frame is
    not fitted by the same coefficients.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 5.0], "y": [2.0, 2.0, 8.0, 4.0]})
    >>> loss = information_loss(frame, frame.assign(x=[1.5, 1.5, 4.5, 4.5]), ["x", "y"])
    >>> round(loss.il, 3), loss.il2, loss.unchanged
    (8.857, 0.0, 0.5)
    """
    columns = list(columns)
    formula = None if regression is None else _parse(regression, columns)
    frames = pair_frames(original, masked, columns)
    (sums, old, new), counted = map_reduce(frames, _chunk, _merge, columns)
    _check(old, formula)
    shift, coefficients = (None, {}) if formula is None else _compare_fits(old, new, formula)
    grids = {column: _grid(old, new, column) for column in columns}
    counts = _counts_of_all(frames, counted, grids, {c: sums[c].n for c in columns})

    total = sum(sums.values(), Differences())
    means = [_change(old.sums[c].total, new.sums[c].total) for c in columns]
    variances = [_change(old.sums[c].spread, new.sums[c].spread) for c in columns]
    covariances = [_change(old.pairs[p].spread, new.pairs[p].spread) for p in old.pairs]
    correlations = [abs(old.pairs[p].correlation - new.pairs[p].correlation) for p in old.pairs]
    il5 = _mean(correlations) or 0.0
    losses = [total.mean_relative, _mean(means), _mean(variances + covariances), _mean(variances)]
    scaled = {c: _in_deviations(sums[c].absolute, old.sums[c].spread) for c in columns}
    by_column = {
        column: _column_loss(sums[column], old, new, column, counts[column]) for column in columns
    }
    shifts = [loss.quantile_shift for loss in by_column.values()]
    il1_scaled = _mean_of_cells(scaled, {c: sums[c].n for c in columns})
    parts = [
        il1_scaled,
        _mean_at_most_one([loss.mean_shift for loss in by_column.values()]),
        _mean_at_most_one([*variances, *(_in_both(old.pairs[p], new.pairs[p]) for p in old.pairs)]),
        _mean_at_most_one(variances),
        il5,
    ]
    values = {c: (sums[c].mean_relative, sums[c].n - sums[c].zeros) for c in columns}
    noisy = {
        "il1": _near_zero_values(values, scaled),
        "il2": _share(
            means, [abs(old.sums[c].mean) < _LITTLE * old.sums[c].deviation for c in columns]
        ),
        "il3": _share(
            variances + covariances,
            [False] * len(variances)
            + [abs(pair.correlation) < _LITTLE for pair in old.pairs.values()],
        ),
    }
    return InformationLoss(
        il=100 * (_mean([*losses, il5]) or 0.0),
        il1=losses[0],
        il2=losses[1],
        il3=losses[2],
        il4=losses[3],
        il5=il5,
        il1_scaled=il1_scaled,
        il_scaled=100 * (_mean_at_most_one(parts) or 0.0),
        quantiles=max((each for each in shifts if each is not None), default=None),
        hellinger=sum(loss.hellinger for loss in by_column.values()) / len(columns),
        unchanged=total.unchanged / total.n,
        regression=shift,
        rows=old.n,
        zeros=total.zeros,
        undefined=(means + variances + covariances).count(None),
        constant=list(scaled.values()).count(None),
        note="; ".join(
            _NOISY[part]
            for part, is_noisy in noisy.items()
            if is_noisy and (losses[int(part[2]) - 1] or 0.0) >= _COUNTS
        ),
        columns=by_column,
        coefficients=coefficients,
    )


# The pass over all partitions: exact sums, and counts.

_Sums = tuple[dict[Hashable, Differences], CoMoments, CoMoments]


@dataclass(frozen=True)
class _Counts:
    """Values of a column in the cells of a grid, of the original and the masked frame."""

    cells: NDArray[np.integer]
    partitions: frozenset[int]  # that were counted

    def __add__(self, other: _Counts) -> _Counts:
        cells = np.add(self.cells, other.cells, dtype=np.int64)
        return _Counts(_small(cells), self.partitions | other.partitions)


_Counted = dict[Hashable, dict[Grid, _Counts]]  # by column and grid


def _small(cells: NDArray[np.int64]) -> NDArray[np.integer]:
    """Return counts in half of the memory, if there is room for them: many wait to be merged."""
    return cells.astype(np.int32) if cells.sum(axis=1).max() < 2**31 else cells


def _chunk(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: list[Hashable]
) -> tuple[_Sums, _Counted]:
    original, masked = pair_parts(original, masked, number)
    runs = [slice(start, start + _RUN) for start in range(0, max(len(original), 1), _RUN)]
    found = _merge_sums([_sum_run(original[run], masked[run], columns) for run in runs])
    sums, old, new = found
    if any(each.invalid for each in sums.values()):
        # This reads the columns several times, and is worth it only for its error.
        pair_values(original, masked, number, columns)
    # Most likely, all data have the same grid as this partition.
    grids = {c: _grid(old, new, c).rounded() for c in columns if sums[c].n}
    return found, _count(original, masked, number, grids)


def _sum_run(original: pd.DataFrame, masked: pd.DataFrame, columns: list[Hashable]) -> _Sums:
    old = {column: to_float(original, [column])[:, 0] for column in columns}
    new = {column: to_float(masked, [column])[:, 0] for column in columns}
    sums = {column: differences(old[column], new[column]) for column in columns}
    return sums, co_moments_of(old, len(original)), co_moments_of(new, len(original))


def _merge_sums(parts: list[_Sums]) -> _Sums:
    sums, old, new = parts[0]
    for more, older, newer in parts[1:]:
        sums = {column: each + more[column] for column, each in sums.items()}
        old, new = old + older, new + newer
    return sums, old, new


def _count(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, grids: Mapping[Hashable, Grid]
) -> _Counted:
    return {
        column: {
            grid: _Counts(
                _small(
                    np.stack(
                        [grid.count(to_float(each, [column])[:, 0]) for each in (original, masked)]
                    )
                ),
                frozenset([number]),
            )
        }
        for column, grid in grids.items()
    }


def _merge(parts: list[tuple[_Sums, _Counted]]) -> tuple[_Sums, _Counted]:
    sums, counted = zip(*parts, strict=True)
    return _merge_sums(list(sums)), _merge_counted(list(counted))


def _merge_counted(parts: list[_Counted]) -> _Counted:
    """Put counts together; of many grids, those are kept that most partitions have."""
    merged: _Counted = {}
    for part in parts:
        for column, by_grid in part.items():
            found = merged.setdefault(column, {})
            for grid, counts in by_grid.items():
                found[grid] = found[grid] + counts if grid in found else counts
    return {
        column: dict(
            sorted(found.items(), key=lambda item: len(item[1].partitions), reverse=True)[:_GRIDS]
        )
        for column, found in merged.items()
    }


def _counts_of_all(
    frames: tuple[Frame, Frame],
    counted: _Counted,
    grids: Mapping[Hashable, Grid],
    values: Mapping[Hashable, int],
) -> dict[Hashable, NDArray[np.int64]]:
    """Return the counts of all values on grids.

    Partitions that were not counted on the rounded ones of these are read again.
    """
    finer = {column: grid.rounded() for column, grid in grids.items()}
    found = {c: [counted[c][grid]] if grid in counted[c] else [] for c, grid in finer.items()}
    every = frozenset(range(number_of_partitions(frames[0])))
    lacking = {c: every.difference(*(each.partitions for each in found[c])) for c in grids}
    some = [column for column in grids if lacking[column]]
    if some:
        wanted = {column: (finer[column], lacking[column]) for column in some}
        again: _Counted = map_reduce(
            [frame[some] for frame in frames],
            _count_again,
            _merge_counted,
            wanted,
            only=frozenset().union(*lacking.values()),
        )
        for column in some:
            found[column] += again[column].values()
    counts_of = {}
    for column, grid in grids.items():
        first, *more = found[column]
        both = sum(more, first).cells
        counts = np.stack([grid.gather(finer[column], each) for each in both])
        if (counts.sum(axis=1) != values[column]).any():
            raise SdcRuntimeError(
                f"column {column!r} has other numbers of values than when they were added up. "
                f"{NOT_THE_SAME}"
            )
        counts_of[column] = counts
    return counts_of


def _count_again(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    wanted: Mapping[Hashable, tuple[Grid, frozenset[int]]],
) -> _Counted:
    grids = {column: grid for column, (grid, numbers) in wanted.items() if number in numbers}
    return _count(original, masked, number, grids)


def _check(moments: CoMoments, formula: _Formula | None) -> None:
    """Raise ValueError if there is nothing to compare."""
    if not moments.n:
        raise SdcValueError("the frames have no records: there is nothing to compare.")
    empty = [column for column, sums in moments.sums.items() if not sums.n]
    if empty:
        raise SdcValueError(f"columns without any value: {_names(empty)}. Leave them out.")
    if formula is None:
        return
    missing = {column: moments.n - moments.sums[column].n for column in (formula[0], *formula[1])}
    if any(missing.values()):
        listed = ", ".join(f"{column!r} ({count})" for column, count in missing.items() if count)
        raise SdcValueError(
            f"regression names columns with missing cells: {listed}. Fill or drop them in both "
            "frames, or name other columns."
        )
    if moments.n < len(missing) + 1:
        raise SdcValueError(
            f"a regression on {len(missing) - 1} columns needs at least {len(missing) + 1} "
            f"records, received {moments.n}."
        )


def _grid(old: CoMoments, new: CoMoments, column: Hashable) -> Grid:
    """Return a grid around the mean of the original, in units of its deviation.

    A constant column has none: then it is what the masked column has, or how far that is away.
    """
    one, other = old.sums[column], new.sums[column]
    scale = one.deviation or max(other.deviation, abs(one.mean - other.mean)) or 1.0
    return Grid(one.mean, min(scale, sys.float_info.max))


# Figures, from integers as long as possible: nothing overflows, and equal sums differ by nothing.


def _change(old: int, new: int) -> float | None:
    """Return the relative difference of two sums."""
    return _in_units(abs(old - new), abs(old))


def _in_deviations(difference: int, spread: int) -> float | None:
    """Return the sum of n differences as their mean, in units of the deviation.

    The deviation is the root of the spread divided by n, which cancels out.
    """
    return _in_units(difference << _MORE, _root_of(spread))


def _root_of(spread: int) -> int:
    """Return the root, with so many more bits that rounding it down does no harm."""
    return math.isqrt(spread << 2 * _MORE)


def _in_units(difference: int, unit: int) -> float | None:
    """Return a difference in units: 0 if it is 0, None if only the unit is."""
    if not difference:
        return 0.0
    return _ratio(difference, unit) if unit else None


def _ratio(numerator: int, denominator: int) -> float:
    """Return a quotient, correctly rounded; infinite if it exceeds float64."""
    try:
        return numerator / denominator
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def _mean(terms: Sequence[float | None]) -> float | None:
    """Return the mean of the terms that are defined, None if none is."""
    defined = [term for term in terms if term is not None]
    return sum(defined) / len(defined) if defined else None


def _mean_at_most_one(terms: Sequence[float | None]) -> float | None:
    """Return the mean size of the terms that are defined, each of which counts 1 at most."""
    return _mean([None if term is None else min(abs(term), 1.0) for term in terms])


def _in_both(old: PairSums, new: PairSums) -> float | None:
    """Return the difference of two covariances in units of both deviations of the original."""
    unit = math.isqrt(old.first.spread * old.second.spread << 2 * _MORE)
    return _in_units(abs(old.spread - new.spread) << _MORE, unit)


def _share(terms: Sequence[float | None], little: Sequence[bool]) -> bool:
    """Whether more than half of the sum of the terms comes from those with a small divisor."""
    of_little = [term for term, small in zip(terms, little, strict=True) if small]
    return sum(filter(None, of_little)) > sum(filter(None, terms)) / 2


def _near_zero_values(
    relative: dict[Hashable, tuple[float | None, int]], scaled: dict[Hashable, float | None]
) -> bool:
    """Whether more than half of IL1 comes from columns of values that are mostly near 0."""
    terms = [None if mean is None else mean * n for mean, n in relative.values()]
    little = [
        mean is not None and mean * _LITTLE > (scaled[column] or 0.0)
        for column, (mean, _) in relative.items()
    ]
    return _share(terms, little)


def _mean_of_cells(
    scaled: dict[Hashable, float | None], cells: dict[Hashable, int]
) -> float | None:
    """Return the mean over the cells of all columns from the means of columns, over root 2."""
    defined = {column: mean for column, mean in scaled.items() if mean is not None}
    if not defined:
        return None
    total = sum(mean * cells[column] for column, mean in defined.items())
    return total / sum(cells[column] for column in defined) / math.sqrt(2)


def _column_loss(
    sums: Differences,
    old: CoMoments,
    new: CoMoments,
    column: Hashable,
    counts: NDArray[np.int64],
) -> ColumnLoss:
    one, other = old.sums[column], new.sums[column]
    root, other_root = _root_of(one.spread), _root_of(other.spread)
    quantiles, other_quantiles = (quantiles_of(each, _PARTS) for each in counts)
    quantile_shift = float(np.abs(quantiles - other_quantiles).max())
    roots, other_roots = (np.sqrt(classes_of(each)) for each in counts)
    distance = math.sqrt(((roots - other_roots) ** 2).sum() / (2 * sums.n))
    return ColumnLoss(
        il1=sums.mean_relative,
        unchanged=sums.unchanged / sums.n,
        mean=one.mean,
        masked_mean=other.mean,
        mean_shift=_in_deviations(other.total - one.total, one.spread),
        deviation=one.deviation,
        masked_deviation=other.deviation,
        deviation_shift=_in_units(other_root - root, root),
        quantile_shift=quantile_shift if one.spread or not quantile_shift else None,
        hellinger=min(distance, 1.0),
    )


# Regression.

_Formula = tuple[Hashable, tuple[Hashable, ...]]  # the response, and what explains it
_NAME = r"(?:`[^`]+`|[^\s~+`]+)"


def _parse(regression: Any, columns: Sequence[Hashable]) -> _Formula:
    """Return the columns that a formula names."""
    valid = 'regression must be a formula such as "income ~ age + hours"'
    if not isinstance(regression, str):
        raise SdcTypeError(f"{valid}, received {type(regression).__name__}.")
    if not re.fullmatch(rf"\s*{_NAME}\s*~\s*{_NAME}(\s*\+\s*{_NAME})*\s*", regression):
        raise SdcValueError(
            f"{valid}, received {regression!r}. Put names that are not plain words in backticks."
        )
    names = [name.strip("`") for name in re.findall(_NAME, regression)]
    by_name = {str(column): column for column in columns}
    by_name.update({column: column for column in columns if isinstance(column, str)})
    unknown = [name for name in names if name not in by_name]
    if unknown:
        raise SdcKeyError(
            f"regression names columns that are not compared: {_names(unknown)}. Compared are: "
            f"{_names(columns)}. A formula takes columns as they are, joined by +."
        )
    if len(set(names)) < len(names):
        raise SdcValueError(f"regression names a column more than once: {regression!r}.")
    return by_name[names[0]], tuple(by_name[name] for name in names[1:])


def _compare_fits(
    old: CoMoments, new: CoMoments, formula: _Formula
) -> tuple[float, dict[str, dict[Hashable, float]]]:
    """Return the mean shift of coefficients in standard errors, coefficients and errors."""
    coefficients, variances = _fit(old, formula, "original")
    others, _ = _fit(new, formula, "masked")
    shifts = []
    for b, c, variance in zip(coefficients, others, variances, strict=True):
        if b == c:
            shifts.append(0.0)
        else:
            shifts.append(_root((b - c) ** 2 / variance) if variance else math.inf)
    names = [_INTERCEPT, *formula[1]]
    table = {
        "original": [_ratio(b.numerator, b.denominator) for b in coefficients],
        "masked": [_ratio(c.numerator, c.denominator) for c in others],
        "error": [_root(variance) for variance in variances],
    }
    return sum(shifts) / len(shifts), {
        name: dict(zip(names, values, strict=True)) for name, values in table.items()
    }


def _fit(
    moments: CoMoments, formula: _Formula, frame: str
) -> tuple[list[Fraction], list[Fraction]]:
    """Return coefficients of least squares, the intercept first, and their variances.

    All is rational in the sums, and nothing is rounded. Spreads are n^2 times covariances.
    """
    response, predictors = formula
    n, p = moments.n, len(predictors)

    def spread(i: Hashable, j: Hashable) -> int:
        if i == j:
            return moments.sums[i].spread
        return (moments.pairs.get((i, j)) or moments.pairs[j, i]).spread

    inverse = _invert([[spread(i, j) for j in predictors] for i in predictors], predictors, frame)
    explained = [spread(i, response) for i in predictors]
    slopes = [_dot(row, explained) for row in inverse]
    totals = [moments.sums[i].total for i in predictors]
    intercept = (moments.sums[response].total - _dot(slopes, totals)) / (n << _UNIT)
    residual = (spread(response, response) - _dot(slopes, explained)) / (n - p - 1)
    leverage = 1 + _dot([_dot(row, totals) for row in inverse], totals)
    variances = [residual * inverse[i][i] for i in range(p)]
    return [intercept, *slopes], [residual * leverage / (n * n << 2 * _UNIT), *variances]


def _invert(
    matrix: list[list[int]], predictors: Sequence[Hashable], frame: str
) -> list[list[Fraction]]:
    """Return the inverse of a matrix of covariances by Gauss and Jordan."""
    p = len(matrix)
    rows = [
        [Fraction(v) for v in row] + [Fraction(i == j) for j in range(p)]
        for i, row in enumerate(matrix)
    ]
    for j in range(p):
        pivot = rows[j][j]  # what the columns before leave of the spread
        if pivot <= _COLLINEAR * matrix[j][j]:
            why = "is constant" if not matrix[j][j] else "follows from those named before it"
            raise SdcValueError(
                f"the regression is not determined: column {predictors[j]!r} of the {frame} frame "
                f"{why}. Leave it out of the formula."
            )
        rows[j] = [value / pivot for value in rows[j]]
        for i in range(p):
            if i != j:
                factor = rows[i][j]
                rows[i] = [a - factor * b for a, b in zip(rows[i], rows[j], strict=True)]
    return [row[p:] for row in rows]


def _dot(one: Sequence[Fraction], other: Sequence[int]) -> Fraction:
    return sum((a * b for a, b in zip(one, other, strict=True)), Fraction(0))


def _root(square: Fraction) -> float:
    """Return a square root, whatever the square would overflow or underflow to."""
    numerator, denominator = square.numerator, square.denominator
    shift = max(_MORE - (numerator.bit_length() - denominator.bit_length()) // 2, 0)
    return _ratio(math.isqrt((numerator << 2 * shift) // denominator), 1 << shift)


def _names(columns: Iterable[Hashable]) -> str:
    return ", ".join(repr(column) for column in columns)
