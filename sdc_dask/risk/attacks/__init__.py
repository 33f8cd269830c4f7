"""Attacks by record linkage, by name: each has options, and a function that links records.

The function takes an encounter, the sets of columns that intruders know, and options, and returns
a :class:`~sdc_dask.risk.linkage.Linkage` for every set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sdc_dask.risk.attacks.distance import DistanceOptions, link_by_distance
from sdc_dask.risk.attacks.probabilistic import ProbabilisticOptions, link_by_probability
from sdc_dask.risk.linkage import Linkage


class Attack(NamedTuple):
    """A way to link records."""

    options: type[Any]  # a frozen dataclass that checks its fields
    link: Callable[..., list[Linkage]]


ATTACKS = {
    "distance": Attack(DistanceOptions, link_by_distance),
    "probabilistic": Attack(ProbabilisticOptions, link_by_probability),
}
