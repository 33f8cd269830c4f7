"""Which attacks fit a masking that the intruder knows, and what each of them assumes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sdc_dask.errors import SdcValueError
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.attacks import ATTACKS
from sdc_dask.risk.attacks.intersection import (
    AlignmentOptions,
    IntersectionOptions,
    RankSwapOptions,
)
from sdc_dask.risk.attacks.projection import ProjectionOptions
from sdc_dask.risk.attacks.reach import check_specs
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names
from sdc_dask.risk.linkage import Linkage


@dataclass(frozen=True)
class Fitting:
    """An attack that makes sense against a masking."""

    attack: str
    options: Any
    assumes: str  # what the intruder has, besides original values of the known columns

    def link(self, encounter: Encounter, sets: Sequence[Names]) -> list[Linkage]:
        """Link the records of an encounter."""
        return ATTACKS[self.attack].link(encounter, sets, self.options)


def fitting_attacks(specs: Sequence[Spec], sets: Sequence[Names]) -> list[Fitting]:
    """Return the attacks of an intruder who knows the specs, as far as they say anything.

    Parameters
    ----------
    specs : sequence of Spec
        That mask all columns of the sets; none if the intruder does not know the masking.
    sets : sequence of tuples
        Columns that the intruder knows.
    """
    found: list[Fitting] = []
    if not specs:
        return found
    for attack, options, assumes in (
        ("rank_swap", RankSwapOptions(specs), "the method and p"),
        ("alignment", AlignmentOptions(specs), "the method, k, and all values of each column"),
        ("intersection", IntersectionOptions(specs), "the method and its parameters"),
        (
            "intersection",
            IntersectionOptions(specs, has_file=True),
            "the method, its parameters, and the whole original file",
        ),
    ):
        try:
            reaches = [reach for columns in sets for reach in options.reaches(columns)]
        except SdcValueError:
            continue  # says that the attack is for another masking
        if any(reach.kind != "free" for reach in reaches):
            found.append(Fitting(attack, options, assumes))
    # Where nothing is known to be repeatable, the file adds nothing to the parameters.
    found = [
        each
        for each in found
        if not getattr(each.options, "has_file", False)
        or any(reach.kind == "exact" for s in sets for reach in each.options.reaches(s))
    ]
    if any(each.attack == "rank_swap" for each in found):
        found = [e for e in found if e.attack != "intersection" or e.options.has_file]
    together = [
        len([name for name in each if name in columns])
        for spec in specs
        if isinstance(spec, Microaggregation)
        for each in spec.column_sets
        for columns in sets
    ]
    if any(count > 1 for count in together):
        found.append(Fitting("projection", ProjectionOptions(specs), "the method and column sets"))
    return found


def check_fitting(specs: Sequence[Spec], sets: Sequence[Names]) -> None:
    """Raise an error unless the specs mask all columns that are known."""
    for columns in sets:
        check_specs(specs, columns)
