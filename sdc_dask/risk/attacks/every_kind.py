"""Attacks on columns of every kind, which have no encounter of numbers."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcValueError
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.attacks.gower import intruders, link_by_gower, ties_by_gower
from sdc_dask.risk.attacks.intersection import CandidateLinkage, of_candidates
from sdc_dask.risk.attacks.reach import reaches_of
from sdc_dask.risk.known import Names
from sdc_dask.risk.linkage import Linkage, count_links, mean_of
from sdc_dask.sampling import Sampling, tried_of

Found = tuple[str, str, Linkage]  # an attack, what else the intruder has, and what he links


def attacks_of_every_kind(
    original: Frame,
    masked: Frame,
    specs: Sequence[Spec],
    sets: Sequence[Names],
    sampling: Sampling,
) -> list[Found]:
    """Link records by all known columns, whatever their kinds are.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
        With the same rows.
    specs : sequence of specs
        That mask all columns of the sets.
    sets : sequence of tuples
        Columns that the intruder knows.
    sampling : Sampling
        Which records are tried.
    """
    found = [
        (
            "gower",
            knows,
            mean_of([link_by_gower(original, masked, each, sampling, specs, how) for each in sets]),
        )
        for knows, how in intruders(specs, max(sets, key=len))
    ]
    if all(_is_repeatable(specs, each) for each in sets):
        repeated = mean_of([link_by_repetition(masked, each, sampling) for each in sets])
        assumes = "the method, its parameters, and the whole original file"
        found.append(("intersection", assumes, repeated))
    return found


def _is_repeatable(specs: Sequence[Spec], columns: Names) -> bool:
    """Whether someone who has the whole file in some columns can mask them as they were."""
    try:
        reaches = reaches_of(specs, columns, has_file=True)
    except SdcValueError:
        return False  # says that it is not modelled
    return all(reach.kind == "exact" for reach in reaches)


def link_by_repetition(
    masked: Frame, columns: Sequence[Hashable], sampling: Sampling
) -> CandidateLinkage:
    """Link records by someone who has masked the original file again, and found what they became.

    The candidates are the masked records that are equal in all known columns.

    Examples
    --------
    >>> import pandas as pd
    >>> masked = pd.DataFrame({"age": [32, 32, 63], "job": ["cook", "cook", "nurse"]})
    >>> found = link_by_repetition(masked, ["age", "job"], Sampling.of(None))
    >>> found.correct, found.certain
    (2.0, 1)
    """
    ties, n = ties_by_gower(masked, masked, columns, sampling)
    counts = count_links(ties)
    return of_candidates(
        "among the equal ones, by the masking itself",
        len(columns),
        n,
        counts,
        counts,
        counts[1],
        [tried_of(len(ties), n)],
    )
