"""Disclosure risk: what intruders link, and how near they come, in one figure.

J. Domingo-Ferrer, V. Torra, "A quantitative comparison of disclosure control methods for
microdata", in: Confidentiality, Disclosure, and Data Access, North-Holland, 2001.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcTypeError
from sdc_dask.keywords import nearest
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.masking.suppress import MISSING
from sdc_dask.results import Result
from sdc_dask.risk.attacks import ATTACKS
from sdc_dask.risk.attacks.distance import DistanceOptions, link_by_distance
from sdc_dask.risk.attacks.fitting import check_fitting, fitting_attacks
from sdc_dask.risk.attacks.gower import link_by_gower
from sdc_dask.risk.attacks.probabilistic import ProbabilisticOptions, link_by_probability
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.interval import interval_disclosure
from sdc_dask.risk.known import Names, describe, known_columns
from sdc_dask.risk.linkage import Linkage, mean_of
from sdc_dask.sampling import Sampling

GOWER = "gower"  # the attack on columns of every kind, which have no encounter of numbers
NAMES = *ATTACKS, GOWER


@dataclass(frozen=True, repr=False)
class DisclosureRisk(Result):
    """Percentages of what intruders find out: 0 is safe, 100 is everything."""

    dr: float = field(metadata={"note": "0.25 dld + 0.25 pld + 0.5 interval: lower is safer"})
    dld: float = field(metadata={"note": "right links by distance, percent"})
    pld: float = field(metadata={"note": "right links by probability, percent"})
    interval: float = field(metadata={"note": "values in intervals of their ranks, percent"})
    tried: int = field(metadata={"note": "records that were linked, per attack"})
    dld_low: float = field(metadata={"note": "95% confidence interval of dld"})
    dld_high: float = field(metadata={"note": "its upper end"})
    pld_low: float = field(metadata={"note": "95% confidence interval of pld"})
    pld_high: float = field(metadata={"note": "its upper end"})
    strongest: str = field(metadata={"note": ""})  # the attack with the most right links
    linked: float = field(metadata={"note": "its right links, percent"})
    dr_new: float | None = field(
        metadata={"note": "dr with links by the strongest intruder who knows the masking, too"}
    )
    dr_max: float = field(metadata={"note": "0.5 linked + 0.5 interval: lower is safer"})
    specific: dict[str, float]  # right links of those who know the masking, by attack
    known: str = field(metadata={"note": ""})  # what the intruder knew
    agreement: str = field(metadata={"note": ""})  # when values agreed, for pld
    note: str = field(metadata={"note": ""})


@dataclass(frozen=True)
class Intruder:
    """Who tries to find out what: known columns, and when values count as agreeing.

    Attributes
    ----------
    sets : list of tuples
        The columns that are known, for every attack.
    known : str
        The same in words.
    distance : DistanceOptions
    probability : ProbabilisticOptions
    sampling : Sampling
        Of the records that are tried.
    specs : list of Spec
        The masking, if the intruder knows it.
    """

    sets: list[Names]
    known: str
    distance: DistanceOptions
    probability: ProbabilisticOptions
    sampling: Sampling
    specs: list[Spec]

    @classmethod
    def of(
        cls,
        columns: Sequence[Hashable],
        *,
        known: Any = None,
        groups: Any = None,
        tolerance: Any = 0.1,
        unit: Any = "value",
        sample: Any = "auto",
        random_state: Any = None,
        knows: Any = None,
    ) -> Intruder:
        """Check what a caller says of an intruder; what is to be drawn is drawn here, once."""
        sets = known_columns(list(columns), known, groups)
        intruder = cls(
            sets,
            describe(columns, known, sets),
            DistanceOptions(),
            ProbabilisticOptions(tolerance=tolerance, unit=unit),
            Sampling.of(sample, random_state),
            [] if knows is None else spec_list(knows),
        )
        if intruder.specs:
            check_fitting(intruder.specs, sets)
        intruder.probability.check(intruder.sampling, sets)
        return intruder


def linkage(
    original: Frame,
    masked: Frame,
    attack: Any,
    columns: Sequence[Hashable],
    *,
    known: Any = None,
    groups: Any = None,
    sample: Any = None,
    random_state: Any = None,
    **options: Any,
) -> Linkage:
    """Link records by one kind of attack, and average over the sets of columns that are known."""
    if isinstance(attack, (list, tuple)):
        raise SdcTypeError(f"attack must be one of {', '.join(map(repr, NAMES))}: pass columns=.")
    if arguments.one_of(attack, "attack", NAMES) == GOWER:
        ordered, nominal = options.pop("orders", None), options.pop("nominal", None)
        missing = arguments.one_of(options.pop("missing", "value"), "missing", MISSING)
        given = {"known": known, "groups": groups, **options}
        unused = [name for name, value in given.items() if value is not None]
        if unused:
            raise SdcTypeError(
                f"attack={GOWER!r} takes no {', '.join(unused)}: name the columns that the "
                "intruder knows in columns."
            )
        reading = arguments.reading(ordered, nominal, columns)
        if missing == "matches":
            reading = replace(reading, open=tuple(columns))
        sampling = Sampling.of(sample, random_state)
        return link_by_gower(original, masked, columns, sampling, (), reading)
    make, link = ATTACKS[attack]
    valid = [each.name for each in fields(make)]
    unknown = [name for name in options if name not in valid]
    if unknown:
        near = nearest(unknown[0], ["columns", "known", "groups", "sample", "random_state", *valid])
        raise SdcTypeError(
            f"attack={attack!r} takes no {', '.join(unknown)}{near}: its options are "
            f"{', '.join(valid)}."
        )
    sets = known_columns(list(columns), known, groups)
    sampling = Sampling.of(sample, random_state)
    checked = make(**options)
    checked.check(sampling, sets)
    needed = max(sets, key=len)
    return mean_of(link(Encounter.of(original, masked, needed, sampling), sets, checked))


def disclosure_risk(
    original: Frame, masked: Frame, columns: Sequence[Hashable], **intruder: Any
) -> DisclosureRisk:
    """Measure linkage by distance and by probability, and interval disclosure."""
    who = Intruder.of(columns, **intruder)
    return risk_of(Encounter.of(original, masked, columns, who.sampling), who)


def risk_of(encounter: Encounter, intruder: Intruder) -> DisclosureRisk:
    """Measure the risks of an encounter."""
    intruder.probability.check_records(encounter)  # before the other attack takes its time
    dld = mean_of(link_by_distance(encounter, intruder.sets, intruder.distance))
    pld = mean_of(link_by_probability(encounter, intruder.sets, intruder.probability))
    near = interval_disclosure(encounter.original, encounter.masked, encounter.columns).interval
    specific = {
        f"{each.attack} ({each.assumes})": mean_of(each.link(encounter, intruder.sets))
        for each in fitting_attacks(intruder.specs, intruder.sets)
    }
    rates = {"distance": dld.rate, "probabilistic": pld.rate}
    rates |= {name: link.rate for name, link in specific.items()}
    strongest = max(rates, key=lambda name: rates[name])
    most = max((link.rate for link in specific.values()), default=None)
    remarks = dict.fromkeys([encounter.note, *dld.remarks, *pld.remarks])
    remarks |= dict.fromkeys(
        f"{name}: {remark}"
        for name, link in specific.items()
        for remark in link.remarks
        if remark not in remarks
    )
    remarks.pop(f"mean of {len(intruder.sets)} attacks", None)
    return DisclosureRisk(
        0.25 * dld.rate + 0.25 * pld.rate + 0.5 * near,
        dld.rate,
        pld.rate,
        near,
        dld.tried,
        dld.low,
        dld.high,
        pld.low,
        pld.high,
        strongest,
        rates[strongest],
        None if most is None else (dld.rate + pld.rate + most) / 6 + 0.5 * near,
        0.5 * rates[strongest] + 0.5 * near,
        {name: link.rate for name, link in specific.items()},
        intruder.known,
        intruder.probability.agreement,
        "; ".join(remarks),
    )
