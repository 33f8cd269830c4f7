"""Columns of several kinds in one set: how far records are apart, and what stands for a group.

Squared distances add up over columns. Numbers and dates differ in units of their deviations, and
so do ordinal categories in their ranks: on average, two records differ by as much in each such
column. Nominal categories, texts and booleans are equal, or one apart. Weights multiply squares.

A group is represented by its means of numbers and dates, its medians of ordinal categories, and
its most frequent nominal ones.

Source: J. Domingo-Ferrer and V. Torra, "Ordinal, continuous and heterogeneous k-anonymity through
microaggregation", Data Mining and Knowledge Discovery 11(2):195-212, 2005.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sdc_dask.engine.codecs import DATE, NOMINAL, NUMBER, ORDINAL, WHOLE, Categories, Coding
from sdc_dask.engine.scan import Scan
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.groups import medians, modes
from sdc_dask.kernels.nominal import Nominal, spread


@dataclass(frozen=True)
class NominalColumns:
    """The places of columns that are compared by category, and what a difference counts."""

    places: tuple[int, ...] = ()
    weights: tuple[float, ...] = ()
    categories: tuple[int, ...] = ()  # how many each has

    def split(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> tuple[NDArray[np.float64], Nominal | None]:
        """Return the coordinates of records without these columns, and their categories."""
        if not self.places:
            return points, None
        plain = np.delete(points, self.places, axis=1)
        if not plain.shape[1]:
            plain = np.zeros((len(points), 1))
        # Numbered anew, as a block may have few of many categories. All of a block are missing or
        # none, which makes no difference.
        codes = [
            np.unique(np.nan_to_num(values[:, j]), return_inverse=True)[1] for j in self.places
        ]
        nominal = Nominal(np.array(codes, np.int64), np.array(self.weights))
        return np.ascontiguousarray(plain), nominal

    def spread(
        self, values: NDArray[np.float64], points: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """Return coordinates in which distances are Euclidean, one for each category."""
        plain, nominal = self.split(values, points)
        return points if nominal is None else spread(plain, nominal)


@dataclass(frozen=True)
class Representatives:
    """What stands for a group in columns whose means do not.

    Attributes
    ----------
    numbers : tuple
        Places of columns whose means are numbers.
    rounded : tuple
        Places of columns whose means are rounded to whole numbers.
    medians : tuple
        Places of columns of ranks.
    modes : tuple
        Places of columns of categories, and which of equally frequent ones come first.
    """

    numbers: tuple[int, ...] = ()
    rounded: tuple[int, ...] = ()
    medians: tuple[int, ...] = ()
    modes: tuple[tuple[int, NDArray[np.int64]], ...] = ()

    def __call__(
        self,
        original: NDArray[np.float64],
        means: NDArray[np.float64],
        labels: NDArray[np.int64],
        decimals: int | None,
    ) -> NDArray[np.float64]:
        """Put representatives into the place of means; missing cells stay missing.

        Numbers alone have `decimals` to which they are rounded.
        """
        if decimals is not None:
            for j in self.numbers:
                means[:, j] = rounded(means[:, j], decimals)
        for j in self.rounded:
            means[:, j] = np.rint(means[:, j]) + 0.0
        preferences = dict(self.modes)
        for j in (*self.medians, *preferences):
            present = ~np.isnan(original[:, j])
            codes = original[present, j]
            if not len(codes):
                continue
            # Groups are all there or all missing.
            group = np.unique(labels[present], return_inverse=True)[1]
            means[present, j] = (
                modes(codes, group, preferences[j]) if j in preferences else medians(codes, group)
            )
        return means

    def __bool__(self) -> bool:
        return bool(self.rounded or self.medians or self.modes)


def rounded(values: NDArray[np.float64], decimals: int) -> NDArray[np.float64]:
    """Return numbers with so many digits after the decimal point; no zero has a sign."""
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.round(values, decimals) + 0.0
    # A number that is too large to be scaled has no such digits.
    return np.where(np.isfinite(found), found, values)


def nominal_columns(
    coding: Coding, columns: Sequence[Hashable], importance: Mapping[Hashable, float]
) -> NominalColumns:
    """Return the columns that are compared by category.

    Two categories are 0 and 1, and are a coordinate as any other.
    """
    found = []
    for j, name in enumerate(columns):
        codec = coding.codecs.get(name)
        if _is_many(coding, name) and isinstance(codec, Categories):
            found.append((j, importance.get(name, 1.0), len(codec.values)))
    return NominalColumns(*zip(*found, strict=True))


def mixed_coordinates(
    scanned: Scan,
    coding: Coding,
    columns: Sequence[Hashable],
    importance: Mapping[Hashable, float],
    *,
    standardize: bool,
) -> Coordinates:
    """Return the coordinates in which columns are compared, except those by category."""
    found = scanned.coordinates(columns, standardize=standardize)
    scale = found.scale.copy()
    for j, name in enumerate(columns):
        if coding.kind(name) == NOMINAL and not _is_many(coding, name):
            scale[j] = 1.0
        scale[j] /= np.sqrt(importance.get(name, 1.0))
    return replace(found, scale=scale)


def representatives(coding: Coding, columns: Sequence[Hashable]) -> Representatives:
    """Return what stands for groups in these columns."""
    kinds = [coding.kind(name) for name in columns]
    chosen = []
    for j, name in enumerate(columns):
        codec = coding.codecs.get(name)
        if kinds[j] == NOMINAL and isinstance(codec, Categories):
            chosen.append((j, codec.preference))
    return Representatives(
        tuple(j for j, kind in enumerate(kinds) if kind in (NUMBER, WHOLE)),
        tuple(j for j, kind in enumerate(kinds) if kind in (DATE, WHOLE)),
        tuple(j for j, kind in enumerate(kinds) if kind == ORDINAL),
        tuple(chosen),
    )


def _is_many(coding: Coding, column: Hashable) -> bool:
    codec = coding.codecs.get(column)
    return isinstance(codec, Categories) and codec.kind == NOMINAL and len(codec.values) > 2
