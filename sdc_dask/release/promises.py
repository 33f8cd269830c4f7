"""What is counted on files besides classes of k: values that may be there, and records that match.

Maskings without a k say what they do promise, and that is looked at.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass

import pandas as pd

from sdc_dask.engine.combinations import Combinations, merge_combinations
from sdc_dask.engine.in_place import Allowed, Rows
from sdc_dask.engine.strata import StrataRule
from sdc_dask.kernels.suppression import count_matches
from sdc_dask.masking.run import Planned


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
    return found


def combination_counts(part: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """Count the combinations of values in some columns of a file."""
    return StrataRule(tuple(columns)).count(part)


def matches(columns: Sequence[str], counts: Sequence[pd.DataFrame]) -> Matches:
    """Return how many records each may be, by the combinations of all files."""
    rule = StrataRule(tuple(columns))
    found = Combinations(tuple(columns), rule.strata(merge_combinations(list(counts))), Rows(()))
    codes = found.codes()
    return Matches(int(count_matches(codes, codes, found.counts).min()), int(found.counts.min()))
