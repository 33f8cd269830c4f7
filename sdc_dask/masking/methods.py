"""The microaggregation methods by name, and the parameters that belong to each."""

from __future__ import annotations

from dataclasses import dataclass

from sdc_dask.aggregation import power


@dataclass(frozen=True)
class Method:
    """A way to form groups of at least k records.

    Attributes
    ----------
    ordered : bool
        Whether records are put in order and cut into groups. The order is that of all records
        unless they are cut into blocks. Other methods compare records within a block.
    takes : str or None
        The parameter of its own, besides those of every method.
    default : object
        Of that parameter; None if the user must name it.
    """

    ordered: bool
    takes: str | None = None
    default: object = None


METHODS = {
    "mdav": Method(ordered=False),
    "vmdav": Method(ordered=False, takes="gain", default=0.2),
    "optimal": Method(ordered=True),
    "pcp": Method(ordered=True),
    "zscores": Method(ordered=True),
    "mean": Method(ordered=True),
    "weighted_mean": Method(ordered=True, takes="weights"),
    "owa": Method(ordered=True, takes="measure"),
    "choquet": Method(ordered=True, takes="measure"),
    "sugeno": Method(ordered=True, takes="measure", default=power(1)),
    "twofold": Method(ordered=True, takes="measure"),
}
