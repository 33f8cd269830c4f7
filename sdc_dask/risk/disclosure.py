"""Disclosure risk: what intruders link, and how near they come, in one figure.

J. Domingo-Ferrer, V. Torra, "A quantitative comparison of disclosure control methods for
microdata", in: Confidentiality, Disclosure, and Data Access, North-Holland, 2001.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcTypeError
from sdc_dask.results import Result
from sdc_dask.risk.distance_linkage import distance_linkage
from sdc_dask.risk.interval import interval_disclosure
from sdc_dask.risk.linkage import Linkage, known_columns
from sdc_dask.risk.probabilistic_linkage import probabilistic_linkage

_NAMED = Parameter.KEYWORD_ONLY
ATTACKS: dict[str, Callable[..., Linkage]] = {
    "distance": distance_linkage,
    "probabilistic": probabilistic_linkage,
}


@dataclass(frozen=True, repr=False)
class DisclosureRisk(Result):
    """Percentages of what intruders find out: 0 is safe, 100 is everything."""

    dr: float = field(metadata={"note": "0.25 dld + 0.25 pld + 0.5 interval: lower is safer"})
    dld: float = field(metadata={"note": "right links by distance, percent"})
    pld: float = field(metadata={"note": "right links by probability, percent"})
    interval: float = field(metadata={"note": "values in intervals of their ranks, percent"})
    attacks: int = field(metadata={"note": "sets of known columns that were tried"})
    tried: int = field(metadata={"note": "records an attack"})
    dld_low: float = field(metadata={"note": "95% confidence interval of dld"})
    dld_high: float = field(metadata={"note": "its upper end"})
    pld_low: float = field(metadata={"note": "95% confidence interval of pld"})
    pld_high: float = field(metadata={"note": "its upper end"})


def linkage(
    original: Frame,
    masked: Frame,
    attack: Any,
    columns: Sequence[Hashable],
    *,
    known: Any = None,
    groups: Any = None,
    **options: Any,
) -> Linkage:
    """Link records by one kind of attack, and average over the sets of columns that are known."""
    if isinstance(attack, (list, tuple)):
        raise SdcTypeError(f"attack must be one of {', '.join(map(repr, ATTACKS))}: pass columns=.")
    link = ATTACKS[arguments.one_of(attack, "attack", ATTACKS)]
    valid = [name for name, each in signature(link).parameters.items() if each.kind == _NAMED]
    unknown = [name for name in options if name not in valid]
    if unknown:
        raise SdcTypeError(
            f"attack={attack!r} takes no {', '.join(unknown)}: its options are {', '.join(valid)}."
        )
    sets = known_columns(list(columns), list(columns) if known is None else known, groups)
    links = [link(original, masked, list(some), **options) for some in sets]
    return links[0] if len(links) == 1 else _mean_of(links)


def _mean_of(links: list[Linkage]) -> Linkage:
    """Average attacks on the same records."""
    count = len(links)
    notes = dict.fromkeys(each.note for each in links if each.note)
    return Linkage(
        links[0].attack,
        max(each.columns for each in links),
        links[0].tried,
        sum(each.correct for each in links) / count,
        round(sum(each.certain for each in links) / count),
        sum(each.rate for each in links) / count,
        sum(each.low for each in links) / count,
        sum(each.high for each in links) / count,
        "; ".join([f"mean of {count} attacks", *notes]),
    )


def drawn_once(sample: Any, random_state: Any) -> dict[str, Any]:
    """Return options by which several attacks try the same records."""
    if sample is None:
        return {"sample": None, "random_state": random_state}
    return {"sample": sample, "random_state": arguments.entropy(random_state)}


def disclosure_risk(
    original: Frame,
    masked: Frame,
    columns: Sequence[Hashable],
    *,
    known: Any = "half",
    groups: Any = None,
    sample: Any = None,
    random_state: Any = None,
) -> DisclosureRisk:
    """Measure linkage by distance and by probability, and interval disclosure."""
    options = drawn_once(sample, random_state)
    dld, pld = (
        linkage(original, masked, attack, columns, known=known, groups=groups, **options)
        for attack in ATTACKS
    )
    near = interval_disclosure(original, masked, columns).interval
    return DisclosureRisk(
        0.25 * dld.rate + 0.25 * pld.rate + 0.5 * near,
        dld.rate,
        pld.rate,
        near,
        len(known_columns(list(columns), known, groups)),
        dld.tried,
        dld.low,
        dld.high,
        pld.low,
        pld.high,
    )
