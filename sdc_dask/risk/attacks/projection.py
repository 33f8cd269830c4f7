"""Projected record linkage: records are compared by one number for each set of columns.

Columns that were masked together are projected as the masking projects them, originals and masked
records alike, and a record is linked to the nearest in the projected space. What masking keeps best
is what is compared.

J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, section 4.3.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.moments import co_moments
from sdc_dask.engine.projections import AGGREGATIONS, Aggregated, Axis, Single, principal_axis
from sdc_dask.engine.sort import Projection
from sdc_dask.errors import SdcValueError
from sdc_dask.masking.microaggregation import Microaggregation, parameters_of
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.attacks.distance import View, link_views
from sdc_dask.risk.attacks.intersection import Knowing
from sdc_dask.risk.attacks.reach import Reach
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names
from sdc_dask.risk.linkage import Linkage

Array = NDArray[np.float64]


@dataclass(frozen=True)
class ProjectionOptions(Knowing):
    """What an intruder knows of columns that were masked together, and how he projects them.

    Parameters
    ----------
    knows : Microaggregation, or list of specs
        Whose column sets are projected.
    projection : {"same", "pcp", "zscores"}, default "same"
        "same" is what the masking put records in order by; for MDAV, V-MDAV and other maskings it
        is "pcp", the first principal component.
    """

    projection: str = "same"

    def __post_init__(self) -> None:
        arguments.one_of(self.projection, "projection", ["same", "pcp", "zscores"])

    def reaches(self, columns: Names) -> list[Reach]:
        """Return nothing: all masked records are candidates."""
        return []


@dataclass(frozen=True)
class ProjectedSpace:
    """From values to one number for each set of columns."""

    parts: tuple[tuple[tuple[int, ...], Projection], ...]  # places of columns, and what they become

    @property
    def weight(self) -> Array:
        """What differences are multiplied by."""
        return np.ones(len(self.parts))

    def points(self, values: Array) -> Array:
        """Return the points of values."""
        columns = [project(np.ascontiguousarray(values[:, at])) for at, project in self.parts]
        return np.stack(columns, axis=1)

    masked_points = points

    def pairs(self, original: Array, masked: Array) -> tuple[Array, Array]:
        """Return the points of original and of masked records."""
        return self.points(original), self.points(masked)


def link_by_projection(
    encounter: Encounter, sets: Sequence[Names], options: ProjectionOptions
) -> list[Linkage]:
    """Link original records to the nearest masked ones in projected space.

    Parameters
    ----------
    encounter : Encounter
        As in an attack by distance.
    sets : sequence of tuples
        Columns that the intruder knows, for every attack. Those of one column set are projected
        to one number, by means, deviations and components of the original, as for masking.
    options : ProjectionOptions

    Returns
    -------
    list of Linkage

    Examples
    --------
    >>> import sdc_dask
    >>> df = sdc_dask.datasets.uniform(1_000, 6, seed=1).compute()
    >>> sets = [["x0", "x1"], ["x2", "x3"], ["x4", "x5"]]
    >>> spec = sdc_dask.Microaggregation(sets, k=5, method="zscores")
    >>> masked = df.sdc.mask(spec)
    >>> blind = df.sdc.linkage(masked, "distance")
    >>> df.sdc.linkage(masked, "projection", knows=spec).rate > 2 * blind.rate
    True
    """
    encounter.check()
    views = [View(each, _space(encounter, each, options)) for each in sets]
    name = f"projected distance, {options.projection}"
    return link_views(encounter, views, name)


def _space(encounter: Encounter, columns: Names, options: ProjectionOptions) -> ProjectedSpace:
    parts = []
    for spec in options.specs:
        for together in spec.column_sets:
            known = [name for name in together if name in columns]
            if known:
                places = tuple(columns.index(name) for name in known)
                parts.append((places, _projection(encounter, known, spec, options.projection)))
    return ProjectedSpace(tuple(parts))


def _projection(
    encounter: Encounter, columns: list[Hashable], spec: Spec, wanted: str
) -> Projection:
    """Return what the known columns of a set are projected by: as they were for masking."""
    method = wanted
    if wanted == "same":
        method = spec.method if isinstance(spec, Microaggregation) else "pcp"
        method = "pcp" if method in ("mdav", "vmdav") else method
    if len(columns) == 1 or method == "optimal":
        return Single()
    # Masking makes deviations smaller, and not those of all columns alike.
    standardized = encounter.before.coordinates(columns, standardize=True)
    if method == "zscores":
        return Axis(standardized, np.ones(len(columns)))
    if method in AGGREGATIONS:
        assert isinstance(spec, Microaggregation)
        if len(columns) < len(next(each for each in spec.columns if columns[0] in each)):
            raise SdcValueError(
                f"method={method!r} needs all columns of a set to be projected: name all of them "
                "in known=, or pass projection='pcp'."
            )
        low, high = encounter.before.bounds(columns)
        return Aggregated(method, parameters_of(spec), low, high)
    moments = co_moments(encounter.original, columns)
    return Axis(standardized, principal_axis(moments, standardize=True))
