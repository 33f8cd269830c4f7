"""What the strongest intruder finds: every attack that fits a masking, in one table."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Any

import pandas as pd

from sdc_dask.engine.columns import is_numeric
from sdc_dask.engine.frames import Frame, meta_of
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import anonymity
from sdc_dask.risk.attacks.distance import DistanceOptions
from sdc_dask.risk.attacks.every_kind import Found, attacks_of_every_kind
from sdc_dask.risk.attacks.fitting import Fitting, check_fitting, fitting_attacks
from sdc_dask.risk.attacks.gower import BLIND
from sdc_dask.risk.attacks.intersection import CandidateLinkage
from sdc_dask.risk.attacks.probabilistic import MOST_COLUMNS, ProbabilisticOptions
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names, describe, known_columns
from sdc_dask.risk.linkage import Linkage, mean_of
from sdc_dask.sampling import Sampling

_WIDEST = 100  # characters of a line


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
        table = self.to_frame().drop(columns="note").astype({"certain": object})
        table = table.astype({"candidates": object}).where(table.notna(), "-")
        assumed = ["intruder knows", *table.pop("intruder knows")]
        text = table.to_string(index=False, float_format="{:.2f}".format, justify="left")
        for left, right in zip(text.splitlines(), assumed, strict=True):
            start = f"  {left}  "
            lines += wrap(start + right, _WIDEST, subsequent_indent=" " * len(start))
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
    found = [Fitting("distance", DistanceOptions(), BLIND)]
    if max(len(each) for each in sets) <= MOST_COLUMNS:
        found.append(Fitting("probabilistic", ProbabilisticOptions(), BLIND))
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
    """Run every attack that fits a masking, on the same records.

    Where columns are not all numbers, or the specs say that some are read in another way, records
    are linked by all of them, and by the numbers alone.
    """
    specs = spec_list(knows)
    sets = known_columns(list(columns), known, groups)
    check_fitting(specs, sets)
    sampling = Sampling.of(sample, random_state)
    needed = max(sets, key=len)
    numbers = _numbers(original, masked, needed)
    who = describe(columns, known, sets)
    if len(numbers) == len(needed) and not reading_of(specs).concerns(needed):
        encounter = Encounter.of(original, masked, needed, sampling)
        n, found = encounter.n, _attacks_on_numbers(encounter, specs, sets)
    else:
        n = anonymity(masked, needed, None).rows
        found = attacks_of_every_kind(original, masked, specs, sets, sampling)
        numbers, others = _beside(original, masked, specs, sets, numbers, sampling)
        found += [(attack, f"{assumes}; numbers alone", link) for attack, assumes, link in others]
        who += f"; numbers alone: {', '.join(map(str, numbers))}" if numbers else ""
    found.sort(key=lambda each: -each[2].rate)
    attacks, assumes, links = zip(*found, strict=True)
    return Attacks(n, who, attacks, assumes, links)


def _attacks_on_numbers(
    encounter: Encounter, specs: Sequence[Spec], sets: Sequence[Names]
) -> list[Found]:
    return [
        (each.attack, each.assumes, mean_of(each.link(encounter, sets)))
        for each in [*blind_attacks(sets), *fitting_attacks(specs, sets)]
    ]


def _beside(
    original: Frame,
    masked: Frame,
    specs: Sequence[Spec],
    sets: Sequence[Names],
    numbers: Names,
    sampling: Sampling,
) -> tuple[Names, list[Found]]:
    """Return the numbers among the known columns that are always there, and attacks by these."""
    if not numbers:
        return (), []
    encounter = Encounter.of(original, masked, numbers, sampling)
    # Missing cells have no distance here. The attack on all columns knows what to do with them.
    complete = tuple(
        name
        for name in numbers
        if not any(
            scan.columns[name].missing or scan.columns[name].inexact
            for scan in (encounter.before, encounter.after)
        )
    )
    if not complete:
        return (), []
    if complete != numbers:
        encounter = Encounter.of(original, masked, complete, sampling)
    known = [tuple(name for name in each if name in complete) for each in sets]
    return complete, _attacks_on_numbers(encounter, specs, [each for each in known if each])


def _numbers(original: Frame, masked: Frame, columns: Names) -> Names:
    """Return the columns that are numbers in both frames."""
    metas = meta_of(original), meta_of(masked)
    return tuple(name for name in columns if all(is_numeric(meta[name].dtype) for meta in metas))
