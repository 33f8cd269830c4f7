"""Covariances and correlations of columns, from sums without rounding, in one pass."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.kernels.gram import exact_gram

_SQUARED_UNIT = 2 * 1074  # products and squares are multiples of 2**-2148


@dataclass(frozen=True)
class PairSums:
    """Exact sums of two columns over the records in which both are present.

    `products` counts units of 2**-2148, as the squares of the columns do.
    """

    first: ExactSum
    second: ExactSum
    products: int

    def __add__(self, other: PairSums) -> PairSums:
        return PairSums(
            self.first + other.first, self.second + other.second, self.products + other.products
        )

    @property
    def n(self) -> int:
        """Number of records in which both are present."""
        return self.first.n

    @property
    def spread(self) -> int:
        """n^2 times the population covariance: n sum(xy) - sum(x) sum(y), in 2**-2148."""
        return self.n * self.products - self.first.total * self.second.total

    @property
    def covariance(self) -> float:
        """Population covariance, correctly rounded; infinite if it exceeds float64.

        NaN if no record has both columns.
        """
        if not self.n:
            return math.nan
        spread = self.spread
        try:
            return spread / (self.n * self.n << _SQUARED_UNIT)
        except OverflowError:
            return math.inf if spread > 0 else -math.inf

    @property
    def correlation(self) -> float:
        """Pearson's correlation, whatever the squares would overflow or underflow to.

        Zero if a column is constant in the records that have both.
        """
        # The root has 64 bits more than the integers, so that rounding it down does no harm. It
        # is never below the integer |spread| << 64, and so is its floor: nothing needs clipping.
        root = math.isqrt(self.first.spread * self.second.spread << 128)
        return (self.spread << 64) / root if root else 0.0


@dataclass(frozen=True)
class CoMoments:
    """Exact sums by column and by pair of columns, which add up with ``+``.

    A pair has its sums over the records in which both columns are present, a column over those
    in which it is. Where nothing is missing, these are all records.
    """

    n: int  # records, with or without missing cells
    sums: dict[Hashable, ExactSum]
    pairs: dict[tuple[Hashable, Hashable], PairSums]  # in the order of the columns

    def __add__(self, other: CoMoments) -> CoMoments:
        return CoMoments(
            self.n + other.n,
            {column: each + other.sums[column] for column, each in self.sums.items()},
            {pair: each + other.pairs[pair] for pair, each in self.pairs.items()},
        )

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The columns, in the order of rows and columns of the matrices."""
        return tuple(self.sums)

    def covariance(self) -> NDArray[np.float64]:
        """Return the matrix of population covariances (divided by n), each correctly rounded.

        Infinite only where the covariance itself exceeds float64; NaN where no record has both
        columns. With missing cells the matrix need not be positive semidefinite.
        """
        variances = [PairSums(each, each, each.squares).covariance for each in self.sums.values()]
        return self._matrix(variances, [pair.covariance for pair in self.pairs.values()])

    def correlation(self) -> NDArray[np.float64]:
        """Return the matrix of correlations: 1 on the diagonal, 0 beside a constant column."""
        ones = [1.0] * len(self.sums)
        return self._matrix(ones, [pair.correlation for pair in self.pairs.values()])

    def _matrix(self, diagonal: list[float], upper: list[float]) -> NDArray[np.float64]:
        matrix = np.diag(np.array(diagonal, dtype=np.float64))
        rows, columns = np.triu_indices(len(diagonal), 1)
        matrix[rows, columns] = matrix[columns, rows] = upper
        return matrix


def co_moments(frame: Frame, columns: Sequence[Hashable]) -> CoMoments:
    """Add up columns, their squares and their products exactly, in one pass over the data.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : sequence
        Numeric columns, each once.

    Returns
    -------
    CoMoments
        The same bits for every partitioning.

    Raises
    ------
    ValueError
        If values are infinite.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [5.0, 5.0, 2.0]})
    >>> moments = co_moments(frame, ["x", "y"])
    >>> moments.covariance()
    array([[ 0.66666667, -1.        ],
           [-1.        ,  2.        ]])
    >>> moments.correlation()
    array([[ 1.       , -0.8660254],
           [-0.8660254,  1.       ]])
    """
    columns = list(columns)
    moments, infinite = map_reduce(frame[columns], _chunk, _merge, columns)
    if infinite.any():
        listed = ", ".join(
            f"{column!r} ({count})"
            for column, count in zip(columns, infinite, strict=True)
            if count
        )
        raise SdcValueError(
            f"infinite values in columns: {listed}. They have no covariance: replace them by "
            "finite values or drop those records first."
        )
    return moments


_Partial = tuple[CoMoments, NDArray[np.int64]]  # and the number of infinite values by column


def _chunk(part: pd.DataFrame, _number: int, columns: list[Hashable]) -> _Partial:
    values = {column: to_float(part, [column])[:, 0] for column in columns}
    infinite = np.array([np.isinf(values[column]).sum() for column in columns], np.int64)
    return co_moments_of(values, len(part)), infinite


def co_moments_of(values: Mapping[Hashable, NDArray[np.float64]], n: int) -> CoMoments:
    """Add up columns, their squares and their products exactly, except for what is not finite.

    Parameters
    ----------
    values : mapping
        The values of each column, NaN where there is none.
    n : int
        Number of records, which all columns have as many values as.

    Returns
    -------
    CoMoments
        Partial results of parts of the data add up with ``+``.
    """
    finite = {column: np.isfinite(some) for column, some in values.items()}
    complete = [column for column in values if finite[column].all()]
    known, products = exact_gram([values[column] for column in complete])
    place = {column: number for number, column in enumerate(complete)}
    sums = {
        column: known[place[column]] if column in place else exact_sum(some[finite[column]])
        for column, some in values.items()
    }
    pairs = {}
    for i, j in combinations(values, 2):
        if i in place and j in place:
            pairs[i, j] = PairSums(sums[i], sums[j], products[place[i], place[j]])
        else:
            both = finite[i] & finite[j]
            (first, second), product = exact_gram([values[i][both], values[j][both]])
            pairs[i, j] = PairSums(first, second, product[0, 1])
    return CoMoments(n, sums, pairs)


def _merge(parts: list[_Partial]) -> _Partial:
    moments, infinite = parts[0]
    for more, others in parts[1:]:
        moments, infinite = moments + more, infinite + others
    return moments, infinite
