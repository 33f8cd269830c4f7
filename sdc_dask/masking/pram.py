"""Post-randomization (PRAM): categories become others by chance, with known probabilities.

J. M. Gouweleeuw, P. Kooiman, L. C. R. J. Willenborg, P. P. de Wolf, "Post randomisation for
statistical disclosure control: theory and implementation", Journal of Official Statistics 14, 1998.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.codecs import orders_of, taken_values
from sdc_dask.engine.combinations import Combinations, count_combinations
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.in_place import Allowed, Change, OneOf
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.draws import row_uniforms
from sdc_dask.kernels.suppression import row_numbers
from sdc_dask.masking.spec import Spec, needed, option, values

MOST_VALUES = 2_000  # that a matrix is made for: as many squared are held
_TOLERANCE = 1e-9  # of the sums of probabilities

Triples: TypeAlias = tuple[tuple[Any, Any, float], ...]


@dataclass(frozen=True, repr=False)
class Pram(Spec):
    """Replace values of categories by others at random: no k is promised.

    Parameters
    ----------
    columns : list
        Columns of any kind whose values can be compared, each masked on its own.
    keep : float, optional
        The probability with which a value stays. Otherwise it is drawn anew by the frequencies of
        the column's values, and may be the same again. So all frequencies are expected to stay as
        they are: the transition matrix is *invariant*.
    matrix : dict of dicts, DataFrame, or list of triples, optional
        In the place of `keep`: the probability with which a value becomes another, by the one and
        the other. Those of a value add up to 1. It must have every value of the columns, and no
        other.
    by : name or list of names, optional
        Strata, with `keep`: a value becomes one that occurs in its stratum, by the frequencies
        there.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame({"job": ["a"] * 600 + ["b"] * 300 + ["c"] * 100})
    >>> masked = df.sdc.mask(sdc_dask.Pram(["job"], keep=0.8), random_state=1)
    >>> bool((masked["job"] == df["job"]).mean() > 0.8), sorted(masked["job"].unique())
    (True, ['a', 'b', 'c'])
    """

    kind: ClassVar[str] = "pram"
    draws: ClassVar[bool] = True
    keeps_dtypes: ClassVar[bool] = True
    in_place: ClassVar[bool] = True

    columns: Any = needed("columns of categories to mask, each on its own")
    _: KW_ONLY
    keep: float | None = option(None, "probability with which a value stays")
    matrix: Any = values("probabilities of becoming, such as a:a:0.9,a:b:0.1,b:b:1")
    by: Any = option(None, "columns within whose values frequencies stay")

    def __post_init__(self) -> None:
        columns = arguments.column_list(self.columns)
        kept: dict[str, Any] = {"columns": columns}
        kept["by"] = arguments.strata_columns(self.by, columns)
        if (self.keep is None) == (self.matrix is None):
            received = "none" if self.keep is None else "both"
            raise SdcValueError(f"pram needs one of keep and matrix, received {received}.")
        if self.keep is not None:
            kept["keep"] = arguments.number(self.keep, "keep", 0.0, 1.0)
            if kept["keep"] == 1:
                raise SdcValueError("keep must be below 1, received 1: nothing would be masked.")
        else:
            kept["matrix"] = _triples(self.matrix)
            if kept["by"]:
                raise SdcValueError(
                    "by has no meaning with matrix, which is the same everywhere: leave it out, or "
                    "name keep."
                )
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """Every column on its own."""
        return tuple((each,) for each in self.columns)

    @property
    def makes_values(self) -> bool:
        """Values become others of the column."""
        return False

    @property
    def measures_numbers(self) -> bool:
        """Numbers are categories here, of which none is near another."""
        return False

    def describe(self) -> str:
        """Return a few words for people."""
        if self.keep is None:
            return "post-randomization by a matrix"
        return f"post-randomization, {100 * self.keep:g} % stay at least, frequencies as expected"

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and their values compare."""
        meta = arguments.unique_columns(frame)
        arguments.check_comparable(meta, self.columns, "columns")
        arguments.check_strata_columns(meta, self.by)

    def plan(self, frame: Frame, entropy: int) -> list[Change]:
        """Count values, by stratum, in one pass for each column."""
        changes: list[Change] = []
        orders = orders_of(frame, self.columns)
        for stream, column in enumerate(self.columns):
            found = count_combinations(frame, [column, *self.by])
            if self.keep is not None:
                transition: Redraw | ByMatrix = Redraw.of(found, self.keep)
            else:
                transition = ByMatrix.of(found, self.matrix)
            order = orders.get(column)
            changes.append(Randomization(found, transition, entropy, stream, order))
        return changes


@dataclass(frozen=True)
class Redraw:
    """Draws values by the frequencies of their stratum, unless they stay.

    Values are numbers of combinations.
    """

    keep: float
    stratum: NDArray[np.int64]  # of each combination
    order: NDArray[np.int64]  # combinations, those of a stratum side by side
    upto: NDArray[np.int64]  # records up to each of these
    begin: NDArray[np.int64]  # records before each stratum, and of all
    width: ClassVar[int] = 2

    @classmethod
    def of(cls, found: Combinations, keep: float) -> Redraw:
        """Put the values of each stratum side by side."""
        codes = found.codes()
        stratum = row_numbers(codes[:, 1:])
        present = np.flatnonzero(codes[:, 0] >= 0)
        order = present[np.argsort(stratum[present], kind="stable")]
        upto = np.cumsum(found.counts[order])
        size = int(stratum.max()) + 1
        records = np.bincount(stratum[order], weights=found.counts[order], minlength=size)
        begin = np.concatenate([[0], np.cumsum(records)]).astype(np.int64)
        return cls(keep, stratum, order, upto, begin)

    def drawn(self, value: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return what values become."""
        stratum = self.stratum[value]
        begin, end = self.begin[stratum], self.begin[stratum + 1]
        place = begin + (chance[:, 1] * (end - begin)).astype(np.int64)
        new = self.order[np.searchsorted(self.upto, np.minimum(place, end - 1), side="right")]
        return np.where(chance[:, 0] < self.keep, value, new)


@dataclass(frozen=True)
class ByMatrix:
    """Draws values by given probabilities."""

    upto: NDArray[np.float64]  # by value: probabilities of values up to each
    width: ClassVar[int] = 1

    @classmethod
    def of(cls, found: Combinations, matrix: Triples) -> ByMatrix:
        """Put probabilities into the order of values; raise an error if these are others."""
        (column,) = found.columns
        plain = found.values(column)
        place = {value: at for at, value in enumerate(plain.tolist()) if not pd.isna(value)}
        known = {value for value, _, _ in matrix}
        lacking = [at for value, at in place.items() if value not in known]
        if lacking:
            raise SdcValueError(
                f"column {column!r} has {len(lacking):,} values, in "
                f"{int(found.counts[lacking].sum()):,} records, for which matrix has no "
                "probabilities: add them."
            )
        others = {new for _, new, share in matrix if share > 0 and new not in place}
        if others:
            raise SdcValueError(
                f"matrix gives probabilities to {len(others):,} values that column {column!r} does "
                "not have, and only values that occur are released: leave them out."
            )
        if len(found) > MOST_VALUES:
            raise SdcValueError(
                f"column {column!r} has {len(found):,} values, more than the {MOST_VALUES:,} that "
                "a matrix is made for: recode it first, or name keep."
            )
        shares = np.zeros((len(found), len(found)))
        for value, new, share in matrix:
            if value in place and share > 0:
                shares[place[value], place[new]] += share
        return cls(np.cumsum(shares, axis=1))

    def drawn(self, value: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.int64]:
        """Return what values become."""
        new = value.copy()
        for each in np.unique(value):
            at = np.flatnonzero(value == each)
            upto = self.upto[each]
            # Rounding of the sum must not lead beyond the last value that has a probability.
            last = np.searchsorted(upto, upto[-1])
            new[at] = np.minimum(np.searchsorted(upto, chance[at, 0], side="right"), last)
        return new


@dataclass(frozen=True)
class Randomization(Change):
    """Draws a value for each record, which depends on the number of its row."""

    combinations: Combinations
    transition: Redraw | ByMatrix
    entropy: int = field(repr=False)
    stream: int  # columns draw independently
    order: tuple[Any, ...] | None = None  # of all values, if the column is ordered

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """The column that is masked."""
        return self.combinations.columns[:1]

    @property
    def allowed(self) -> dict[Hashable, Allowed]:
        """Values that the column has had, and no others."""
        (column,) = self.columns
        return {column: OneOf(self.combinations.values(column).dropna().tolist())}

    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the values that are drawn for the records of a partition."""
        (column,), found = self.columns, self.combinations
        value = found.numbers(part, number).copy()
        present = np.flatnonzero(found.values(column).notna().to_numpy()[value])
        first = found.rows.first(part, number)
        width = self.transition.width
        chance = row_uniforms(self.entropy, self.stream, first, len(part), width)
        value[present] = self.transition.drawn(value[present], chance[present])
        dtype = part[column].dtype
        return {column: taken_values(found.values(column), value, dtype, self.order)}


# What users pass


def _triples(matrix: Any) -> Triples:
    """Return values, what they become, and the probability of it."""
    if isinstance(matrix, pd.DataFrame):
        matrix = matrix.to_dict(orient="index")
    if isinstance(matrix, Mapping) and all(isinstance(row, Mapping) for row in matrix.values()):
        listed: Any = [(a, b, share) for a, row in matrix.items() for b, share in row.items()]
    else:
        listed = matrix
    if not isinstance(listed, (list, tuple)) or not all(
        isinstance(each, (list, tuple)) and len(each) == 3 for each in listed
    ):
        raise SdcTypeError(
            "matrix must be a dict of dicts, such as {'a': {'a': 0.9, 'b': 0.1}, ...}, a DataFrame "
            "or a list of triples (value, new value, probability), received "
            f"{type(matrix).__name__}."
        )
    found = tuple(
        (
            arguments.plain_value(a, "matrix"),
            arguments.plain_value(b, "matrix"),
            arguments.number(share, "a probability of matrix", 0.0, 1.0),
        )
        for a, b, share in listed
    )
    if not found:
        raise SdcValueError("matrix is empty: name what values become.")
    if len({(a, b) for a, b, _ in found}) < len(found):
        raise SdcValueError("matrix has a pair of values twice: name each probability once.")
    sums: dict[Any, list[float]] = {}
    for a, _, share in found:
        sums.setdefault(a, []).append(share)
    off = [math.fsum(shares) for shares in sums.values()]
    off = [total for total in off if abs(total - 1) > _TOLERANCE]
    if off:
        raise SdcValueError(
            f"matrix is not stochastic: the probabilities of {len(off)} values do not add up to 1, "
            f"of the first to {off[0]:g}. Name those of all that a value becomes, itself included."
        )
    return found
