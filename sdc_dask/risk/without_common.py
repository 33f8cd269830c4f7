"""Record linkage without common columns: two files of the same individuals are linked by structure.

An intruder aggregates the values of each record, whatever columns they are of, in several ways.
The vectors of these numbers, the representatives, have the same columns in both files, and are
linked as records are.

J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, chapter 5.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import aggregation, arguments
from sdc_dask.aggregation import power, sigmoid, threshold
from sdc_dask.engine.columns import check_numeric, is_numeric, to_float
from sdc_dask.engine.frames import Frame, from_partitions, map_partitions, map_reduce, meta_of
from sdc_dask.engine.scan import Expected, Scan, merge_scans, scan_partition
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.risk.chance import chance_of_at_least
from sdc_dask.risk.disclosure import linkage
from sdc_dask.risk.linkage import Linkage

FUNCTIONS = ("owa", "sugeno", "twofold")
NORMALIZATIONS = ("zscore", "range", None)
# The families of section 5.2 with their ten parameters each.
FAMILIES: dict[str, tuple[aggregation.Quantifier, ...]] = {
    "power": tuple(power(i / 5) for i in range(1, 11)),
    "sigmoid": tuple(sigmoid(i / 10) for i in range(10)),
    "threshold": tuple(threshold(i / 10) for i in range(10)),
}
NAMES = [f"r{i}" for i in range(1, 11)]  # of the columns of representatives

_ROUNDING = 1e-9  # of a sum of shares of right links
_OF_LINKAGE = {"probabilistic": {"unit": "deviation"}}  # what an attack has here by default

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class LinkageWithoutCommon(Linkage):
    """How many records of a file were linked to those of a file with other columns."""

    columns: int = field(metadata={"note": "representatives of each record"})
    tried: int = field(metadata={"note": "records that were linked"})
    representatives: str = field(metadata={"note": ""})
    chance: float = field(metadata={"note": "probability of as many right links at random"})


def linkage_without_common(
    frame: Frame,
    other: Frame,
    columns: Sequence[Hashable] | None = None,
    other_columns: Sequence[Hashable] | None = None,
    *,
    function: str = "owa",
    quantifiers: str | Sequence[str] = "threshold",
    normalize: str | None = "zscore",
    attack: str = "distance",
    sample: int | str | None = None,
    random_state: int | None = None,
    **options: Any,
) -> LinkageWithoutCommon:
    """Link the records of two frames of the same individuals by representatives.

    Parameters
    ----------
    frame, other : pandas or Dask DataFrame
        Of the same kind, with the same rows; other orders are aligned by the index.
    columns, other_columns : list, optional
        Numeric columns of `frame` and of `other`, by default all of each. None needs to be common.
    function, quantifiers, normalize
        As in :func:`representatives`.
    attack, sample, random_state, **options
        As in :func:`sdc_dask.risk.disclosure.linkage`. Values of a probabilistic attack agree
        within a tenth of a deviation of the representatives of `frame` by default.

    Returns
    -------
    LinkageWithoutCommon
        A :class:`~sdc_dask.risk.linkage.Linkage` with ``chance``, the probability that links at
        random are right as often, or more often.

    Notes
    -----
    For a Dask frame, a pass scans the columns of each, and representatives are computed anew in
    every pass of the attack: nothing is written, and nothing moves.

    ``chance`` is that of a random permutation, of which m records are looked at if a sample of m is
    tried. Links to the nearest record need not be a permutation; if each is drawn at random for
    itself, the number of right ones has nearly the same distribution, that of Poisson with mean
    m / n. A number of right links with a fraction, which ties give, is rounded up.

    Examples
    --------
    >>> import pandas as pd
    >>> firms = pd.DataFrame({"benefits": [2.0, 9.0, 4.0, 7.0], "costs": [1.0, 8.0, 5.0, 6.0]})
    >>> taxes = pd.DataFrame({"income_tax": [0.5, 2.8, 1.2, 2.0], "value_tax": [5, 19, 11, 14]})
    >>> linkage_without_common(firms, taxes)
    LinkageWithoutCommon
      attack          standardized euclidean distance
      columns         10                    representatives of each record
      tried           4                     records that were linked
      correct         4                     right links; one among t equal ones counts 1/t
      certain         4                     right links without any equal one
      rate            100                   percent of right links: lower is safer
      low             100                   of all records: 95% confidence interval, or bounds
      high            100                   the upper end
      note            all records were tried
      representatives owa, threshold, zscore
      chance          0.0416667             probability of as many right links at random
    """
    if type(frame) is not type(other):
        raise SdcTypeError(
            "other must be a frame of the kind of this one: link pandas with pandas, or Dask with "
            f"Dask, received {type(other).__module__.split('.')[0]} {type(other).__name__}."
        )
    families = _families(function, quantifiers)
    arguments.one_of(normalize, "normalize", NORMALIZATIONS)
    sides = [
        _Side.of(frame, columns, "columns", "this frame"),
        _Side.of(other, other_columns, "other_columns", "the other frame"),
    ]
    n, as_many = (side.found.n for side in sides)
    if n != as_many:
        raise SdcValueError(
            f"both frames must have the same records, received {n} and {as_many}: right links can "
            "be counted for individuals that are in both. Select these in both frames."
        )
    if n == 0:
        raise SdcValueError("the frames have no records: there is nothing to link.")
    one, two = (side.representatives(function, families, normalize) for side in sides)
    default = _OF_LINKAGE.get(attack, {}) if isinstance(attack, str) else {}
    try:
        links = linkage(
            one,
            two,
            attack,
            NAMES,
            sample=sample,
            random_state=random_state,
            **{**default, **options},
        )
    except SdcValueError as error:
        if "masked" not in str(error):
            raise
        raise SdcValueError(f"{error} (`other` is the masked frame here.)") from None
    right = math.ceil(links.correct - _ROUNDING)
    return LinkageWithoutCommon(
        **links.to_dict(),
        representatives=", ".join([function, *families, normalize or "not normalized"]),
        chance=chance_of_at_least(right, n, links.tried),
    )


def representatives(
    frame: Frame,
    columns: Sequence[Hashable] | None = None,
    *,
    function: str = "owa",
    quantifiers: str | Sequence[str] = "threshold",
    normalize: str | None = "zscore",
) -> Frame:
    """Return ten numbers per record that do not depend on what its columns are, or on their order.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    columns : list, optional
        Numeric columns; by default all. Missing cells are left out of the aggregation; every
        record must have one value at least.
    function : {"owa", "sugeno", "twofold"}, default "owa"
        The aggregation function, of :mod:`sdc_dask.aggregation`.
    quantifiers : {"power", "sigmoid", "threshold"}, or a pair of these, default "threshold"
        The family of quantifiers, with ten parameters: alpha is 1/5, 2/5, ..., 10/5 for "power",
        and 0, 0.1, ..., 0.9 for the others. A pair is for "twofold" alone: for the measures of
        Sugeno and of Choquet, which have the i-th parameter of both for the i-th number.
    normalize : {"zscore", "range"} or None, default "zscore"
        What is done with every column before: subtract its mean and divide by its population
        deviation, or scale it to [0, 1] by its smallest and largest value; a constant column
        becomes 0. With None, values are taken as they are, and must lie in [0, 1] for "sugeno" and
        "twofold".

    Returns
    -------
    DataFrame
        Of the kind of the input and with its index and partitions, lazy if it is: columns r1 to
        r10.

    Notes
    -----
    An integral of Sugeno compares values with measures, which are in [0, 1]. z-scores are not, and
    are compared with them all the same, as the definition for real numbers has it (definition 5 of
    the thesis): what is above 1 counts as 1 at most. The thesis does not say whether its figures
    were computed so; of the twofold integral they are nearer to this than to z-scores that are cut
    off to [0, 1]. Scaling each column of z-scores to [0, 1] would be the same as "range".

    Where cells are missing, the values that are present are aggregated, as proposition 3 of the
    thesis allows. In its experiments they were replaced by 0 after normalization.

    Examples
    --------
    >>> import pandas as pd
    >>> df = pd.DataFrame({"a": [0.2, 0.9], "b": [0.4, 0.2], "c": [0.2, 0.0], "d": [0.4, 0.0]})
    >>> found = representatives(df, quantifiers="power", normalize=None)
    >>> found[["r1", "r5", "r10"]].round(2)
         r1    r5   r10
    0  0.37  0.30  0.25
    1  0.70  0.28  0.09
    """
    families = _families(function, quantifiers)
    arguments.one_of(normalize, "normalize", NORMALIZATIONS)
    side = _Side.of(frame, columns, "columns", "the frame")
    return side.representatives(function, families, normalize)


def _families(function: Any, quantifiers: Any) -> tuple[str, ...]:
    """Return the name of a family of quantifiers, or of both that a twofold integral has."""
    arguments.one_of(function, "function", FUNCTIONS)
    pair = isinstance(quantifiers, (list, tuple))
    names = tuple(quantifiers) if pair else (quantifiers,)
    for name in names:
        arguments.one_of(name, "quantifiers", FAMILIES)
    if pair and function != "twofold":
        raise SdcValueError(
            f"function={function!r} takes one family of quantifiers: a pair has a meaning with "
            "function='twofold' alone."
        )
    if pair and len(names) != 2:
        raise SdcValueError(
            f"quantifiers must be one family or a pair of families, received {len(names)}: the "
            "first for the measure of Sugeno, the second for that of Choquet."
        )
    return names * 2 if function == "twofold" and not pair else names


@dataclass(frozen=True)
class _Side:
    """The columns of one of both files, scanned."""

    frame: Frame
    columns: tuple[Hashable, ...]
    found: Scan
    which: str  # of both files, in words

    @classmethod
    def of(cls, frame: Frame, columns: Any, argument: str, which: str) -> _Side:
        """Check and scan the columns of a file, in one pass over them."""
        names = _numeric(frame, columns, argument, which)
        found, empty = map_reduce(frame[list(names)], _scan, _merge, list(names))
        if found.n:
            try:
                found.check(missing="aggregate the rest")
            except SdcValueError as error:
                raise SdcValueError(f"{which} has {error}") from None
        if empty:
            raise SdcValueError(
                f"{which} has {empty} records without any value in {argument}: they have no "
                "representative. Drop them in both frames, or name more columns."
            )
        return cls(frame[list(names)], names, found, which)

    def representatives(
        self, function: str, families: tuple[str, ...], normalize: str | None
    ) -> Frame:
        """Return the frame of representatives."""
        low, high = self.found.bounds(self.columns)
        if normalize is None and function != "owa" and not ((low >= 0) & (high <= 1)).all():
            outside = [
                name
                for name, below, above in zip(self.columns, low, high, strict=True)
                if not 0 <= below <= above <= 1
            ]
            raise SdcValueError(
                f"function={function!r} without normalization is for values in [0, 1], and "
                f"{self.which} has others in columns: {arguments.listed(outside)}. Pass "
                "normalize='range' or normalize='zscore'."
            )
        step = _Step(
            self.columns,
            self.found.expected(self.columns),
            self.found.coordinates(self.columns, standardize=True),
            function,
            families,
            normalize,
        )
        meta = pd.DataFrame(
            {name: pd.Series(dtype="float64") for name in NAMES}, index=meta_of(self.frame).index
        )
        return from_partitions(map_partitions([self.frame], _represent, step), meta, self.frame)


@dataclass(frozen=True)
class _Step:
    """From the records of a partition to their representatives."""

    columns: tuple[Hashable, ...]
    expected: Expected
    coordinates: Coordinates
    function: str
    families: tuple[str, ...]
    normalize: str | None

    def __call__(self, values: Array) -> Array:
        """Return ten numbers per record."""
        # Sorted once: the ten functions find values in order.
        points = np.sort(self._normalized(values), axis=1)
        aggregate = getattr(aggregation, self.function)
        free = {} if self.function == "owa" else {"unbounded": self.normalize == "zscore"}
        found = np.empty((len(points), len(NAMES)))
        pairs = zip(*(FAMILIES[name] for name in self.families), strict=True)
        for j, measures in enumerate(pairs):
            found[:, j] = aggregate(points, *measures, **free)
        return found + 0.0  # no negative zero

    def _normalized(self, values: Array) -> Array:
        if self.normalize == "range":
            return aggregation.scale_to_unit(values, self.expected.low, self.expected.high)
        if self.normalize == "zscore":
            where = self.coordinates
            return (where.shrink(values) - where.centre) / where.scale
        return values


def _represent(part: pd.DataFrame, number: int, step: _Step) -> pd.DataFrame:
    values = to_float(part, step.columns)
    step.expected.check(number, values)
    return pd.DataFrame(step(values), index=part.index, columns=NAMES)


def _numeric(frame: Frame, columns: Any, argument: str, which: str) -> tuple[Hashable, ...]:
    """Return the numeric columns that are named, or all."""
    meta = arguments.unique_columns(frame)
    if columns is None:
        names = tuple(name for name in meta.columns if is_numeric(meta[name].dtype))
    else:
        names = arguments.name_list(columns, argument)
    if not names:
        raise SdcValueError(f"{argument} is empty: name numeric columns of {which}.")
    arguments.existing(meta, names, argument, which)
    if len(set(names)) < len(names):
        raise SdcValueError(f"{argument} names columns more than once: {arguments.listed(names)}.")
    check_numeric(meta, names)
    return names


_Found = tuple[Scan, int]


def _scan(part: pd.DataFrame, number: int, columns: list[Hashable]) -> _Found:
    empty = int(np.isnan(to_float(part, columns)).all(axis=1).sum())
    return scan_partition(part, number, columns, []), empty


def _merge(parts: list[_Found]) -> _Found:
    scans, empty = zip(*parts, strict=True)
    return merge_scans(list(scans)), sum(empty)
