"""What is counted on files besides classes of k: values that may be there, and records that match.

Maskings without a k say what they do promise, and that is looked at.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
from scipy.special import gammainc, gammaincc

from sdc_dask.engine.codecs import Categories
from sdc_dask.engine.combinations import Combinations, merge_combinations
from sdc_dask.engine.in_place import Allowed, OneOf, Rows
from sdc_dask.engine.strata import StrataRule
from sdc_dask.kernels.exact import ExactSum
from sdc_dask.kernels.suppression import count_matches
from sdc_dask.masking.noise import AddNoise
from sdc_dask.masking.run import Planned

_NEVER = 1e-12  # the chance that a release is refused whose noise is right
_CLEARLY = 1e4  # times the precision of values: rounding adds nothing to squares that counts


@dataclass(frozen=True)
class Matches:
    """How many records each may be, if missing cells match any value, and if they do not."""

    smallest: int
    smallest_class: int


def allowed_values(planned: Iterable[Planned]) -> dict[Hashable, Allowed]:
    """Return what columns may hold at last: of the last spec that said so, if none came after."""
    found: dict[Hashable, Allowed] = {}
    for each in planned:
        if each.spec.makes_values:
            for column in each.spec.masked:
                found.pop(column, None)
        for change in each.changes:
            found |= change.allowed
        for step in each.steps:
            for column, codec in step.destinations.coding.codecs.items():
                if isinstance(codec, Categories):
                    present = np.flatnonzero(codec.counts)
                    found[column] = OneOf([codec.values[place] for place in present])
    return found


def noise_of(planned: Sequence[Planned]) -> dict[Hashable, float]:
    """Return the deviation of noise in columns that nothing else has masked."""
    masked = Counter(column for each in planned for column in each.spec.masked)
    return {
        column: deviation
        for each in planned
        for change in each.changes
        if isinstance(change, AddNoise)
        for column, deviation in change.deviations.items()
        if masked[column] == 1
    }


def rounded_noise(deviation: float, kind: pa.DataType, values: ExactSum) -> float | None:
    """Return the deviation that noise has in a column of a type; None if rounding may hide it.

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.kernels.exact import exact_sum
    >>> far = exact_sum(1e9 + np.arange(3.0))
    >>> rounded_noise(0.5, pa.float64(), far), rounded_noise(0.5, pa.float32(), far)
    (0.5, None)
    """
    if pa.types.is_integer(kind):
        return None if deviation < 1 else math.hypot(deviation, math.sqrt(1 / 12))
    # No value is rounded by more than its share of this, nor all of them by more on average.
    size = ExactSum(values.n, 0, values.squares).deviation
    precision = float(np.finfo(kind.to_pandas_dtype()).eps) * size
    return deviation if deviation > _CLEARLY * precision else None


def is_noise(differences: ExactSum, deviation: float) -> bool:
    """Whether differences to the source have the squares that normal noise has, as a rule.

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.kernels.exact import exact_sum
    >>> drawn = np.random.default_rng(0).normal(0, 2, 1_000)
    >>> is_noise(exact_sum(drawn), 2.0), is_noise(exact_sum(drawn), 3.0)
    (True, False)
    """
    if not differences.n:
        return True
    size = ExactSum(differences.n, 0, differences.squares).deviation / deviation
    half = differences.n / 2
    squares = half * size**2
    return bool(min(gammainc(half, squares), gammaincc(half, squares)) > _NEVER)


def combination_counts(part: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Count the combinations of values in some columns of a file."""
    return StrataRule(tuple(columns)).count(part)


def matches(columns: Sequence[str], counts: Sequence[pd.DataFrame]) -> Matches:
    """Return how many records each may be, by the combinations of all files."""
    rule = StrataRule(tuple(columns))
    strata = rule.strata(merge_combinations(list(counts)))
    return matches_of(Combinations(tuple(columns), strata, Rows(())))


def matches_of(found: Combinations) -> Matches:
    """Return how many records each may be, by the combinations of all records."""
    codes = found.codes()
    return Matches(int(count_matches(codes, codes, found.counts).min()), int(found.counts.min()))
