"""Advice that a look at the masked frame gives, where it is in memory anyway."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import pandas as pd

from sdc_dask import arguments
from sdc_dask.engine.columns import is_unchanged
from sdc_dask.engine.lone_units import LoneUnits
from sdc_dask.errors import FEWEST_ADVISED, UnchangedAdvice, warn
from sdc_dask.masking.spec import Spec
from sdc_dask.names import units_among


def advise(original: pd.DataFrame, masked: pd.DataFrame, specs: Sequence[Spec]) -> None:
    """Warn of sets of columns that are as they were, and of classes of a single household."""
    if len(original) < FEWEST_ADVISED:
        return
    sets = [(spec, columns) for spec in specs if not spec.in_place for columns in spec.column_sets]
    advise_unchanged(
        [
            (spec, columns, all(is_unchanged(original[name], masked[name]) for name in columns))
            for spec, columns in sets
        ]
    )
    for spec, columns in sets:
        k = spec.k_of_records
        if k is None:
            continue
        others = [name for name in masked.columns if name not in {*columns, *spec.by}]
        for unit in units_among(others):
            LoneUnits.of(masked, [*columns, *spec.by], unit).advise(k, unit)


def advise_unchanged(sets: Sequence[tuple[Spec, Sequence[Hashable], bool]]) -> None:
    """Warn of sets of columns in which every record has the values that it had.

    Each has its spec, and whether it is one. Whoever ranks several columns one by one expects that
    some of them have groups of equal values, such as ages, and gets no advice if others changed.
    """
    expected = {id(spec) for spec, _, same in sets if spec.ranks_alone and not same}
    kept = [columns for spec, columns, same in sets if same and id(spec) not in expected]
    if kept:
        listed = "; ".join(arguments.listed(columns) for columns in kept)
        warn(
            f"all records keep their exact values in columns: {listed}. They had so few values "
            "that masking changed none: whoever knows a record finds the class of its equals, "
            "which df.sdc.anonymity(columns, k) counts. Mask more columns together, or recode "
            "them first.",
            UnchangedAdvice,
        )
