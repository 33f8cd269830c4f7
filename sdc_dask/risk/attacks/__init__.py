"""Attacks by record linkage, by name: each has options, and a function that links records.

The function takes an encounter, the sets of columns that intruders know, and options, and returns
a :class:`~sdc_dask.risk.linkage.Linkage` for every set.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from sdc_dask.risk.attacks.distance import DistanceOptions, link_by_distance
from sdc_dask.risk.attacks.intersection import (
    AlignmentOptions,
    IntersectionOptions,
    RankSwapOptions,
    link_by_intersection,
)
from sdc_dask.risk.attacks.probabilistic import ProbabilisticOptions, link_by_probability
from sdc_dask.risk.attacks.projection import ProjectionOptions, link_by_projection
from sdc_dask.risk.linkage import Linkage


class Attack(NamedTuple):
    """A way to link records."""

    options: type[Any]  # a frozen dataclass that checks its fields
    link: Callable[..., list[Linkage]]


ATTACKS = {
    "distance": Attack(DistanceOptions, link_by_distance),
    "probabilistic": Attack(ProbabilisticOptions, link_by_probability),
    "intersection": Attack(IntersectionOptions, link_by_intersection),
    "rank_swap": Attack(RankSwapOptions, link_by_intersection),
    "alignment": Attack(AlignmentOptions, link_by_intersection),
    "projection": Attack(ProjectionOptions, link_by_projection),
}
