"""What the strongest intruder finds: every attack that fits a masking, in one table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sdc_dask.engine.frames import Frame
from sdc_dask.masking.spec import spec_list
from sdc_dask.results import Result
from sdc_dask.risk.attacks.distance import DistanceOptions
from sdc_dask.risk.attacks.fitting import Fitting, check_fitting, fitting_attacks
from sdc_dask.risk.attacks.intersection import CandidateLinkage
from sdc_dask.risk.attacks.probabilistic import MOST_COLUMNS, ProbabilisticOptions
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names, describe, known_columns
from sdc_dask.risk.linkage import Linkage, mean_of
from sdc_dask.sampling import Sampling


@dataclass(frozen=True, repr=False)
class Attacks(Result):
    """Attacks on a release, the strongest first."""

    rows: int  # records of the frame
    known: str  # the columns that the intruder knows
    attacks: tuple[str, ...]
    assumes: tuple[str, ...]  # what else he has, by attack
    links: tuple[Linkage, ...]

    @property
    def strongest(self) -> Linkage:
        """The links of the attack that found the most."""
        return self.links[0]

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each attack."""
        table = [
            {
                "attack": attack,
                "intruder knows": assumes,
                "tried": link.tried,
                "linked": link.rate,
                "low": link.low,
                "high": link.high,
                "certain": link.certain if isinstance(link, CandidateLinkage) else None,
                "candidates": getattr(link, "candidates", None),
                "note": link.note,
            }
            for attack, assumes, link in zip(self.attacks, self.assumes, self.links, strict=True)
        ]
        return pd.DataFrame(table).astype({"certain": "Int64"})

    def __repr__(self) -> str:
        lines = [
            f"Attacks on {self.rows:,} records by intruders who know original values of "
            f"{self.known}"
        ]
        table = (
            self.to_frame()
            .drop(columns="note")
            .to_string(index=False, float_format="{:.2f}".format, na_rep="-", justify="left")
        )
        lines += [f"  {line}" for line in table.splitlines()]
        lines += [
            "  linked: percent of records linked rightly; low, high: 95% confidence interval;",
            "  certain: records with a single candidate, where the intruder knows that he is right",
        ]
        lines += [
            f"  {attack}: {'; '.join(link.limits)}"
            for attack, link in zip(self.attacks, self.links, strict=True)
            if link.limits
        ]
        return "\n".join(lines)


def blind_attacks(sets: Sequence[Names]) -> list[Fitting]:
    """Return the attacks of an intruder who knows original values, and nothing of the masking."""
    found = [Fitting("distance", DistanceOptions(), "nothing else")]
    if max(len(each) for each in sets) <= MOST_COLUMNS:
        found.append(Fitting("probabilistic", ProbabilisticOptions(), "nothing else"))
    return found


def attacks_on(
    original: Frame,
    masked: Frame,
    knows: Any,
    columns: Sequence[Hashable],
    *,
    known: Any = None,
    groups: Any = None,
    sample: Any = "auto",
    random_state: Any = None,
) -> Attacks:
    """Run every attack that fits a masking, on the same records."""
    specs = spec_list(knows)
    sets = known_columns(list(columns), known, groups)
    check_fitting(specs, sets)
    sampling = Sampling.of(sample, random_state)
    encounter = Encounter.of(original, masked, max(sets, key=len), sampling)
    found = [
        (each, mean_of(each.link(encounter, sets)))
        for each in [*blind_attacks(sets), *fitting_attacks(specs, sets)]
    ]
    found.sort(key=lambda pair: -pair[1].rate)
    return Attacks(
        encounter.n,
        describe(columns, known, sets),
        tuple(each.attack for each, _ in found),
        tuple(each.assumes for each, _ in found),
        tuple(link for _, link in found),
    )
