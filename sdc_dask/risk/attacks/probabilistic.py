"""Probabilistic record linkage: links by the columns in which records agree, weighted by EM.

An intruder compares every known record with every masked one. Columns in which both agree speak
for a match, the more so the less often they agree by chance. How much is estimated from the
pairs themselves, without knowing which are matches.

References
----------
I. P. Fellegi, A. B. Sunter, "A theory for record linkage", Journal of the American Statistical
Association 64 (1969).

M. A. Jaro, "Advances in record-linkage methodology as applied to matching the 1985 census of
Tampa, Florida", Journal of the American Statistical Association 84 (1989).

J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, sections 2.3.2 and 2.5.2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.errors import SdcValueError, warn
from sdc_dask.risk.agreement import fit
from sdc_dask.risk.attacks.patterns import count_patterns, tried_of
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.known import Names
from sdc_dask.risk.linkage import Linkage, of_ties
from sdc_dask.sampling import Sampling

MOST_COLUMNS = 16  # a pattern is one of 2**d
MOST_RECORDS = 50_000  # of which all pairs are compared one by one unless a sample is asked for


@dataclass(frozen=True)
class ProbabilisticOptions:
    """When values agree, and which links are claimed.

    Parameters
    ----------
    tolerance : float, default 0.1
        Values agree if they are so far apart at most, in units of `unit`. With 0 they must be
        equal, which few masked numbers are.
    unit : {"value", "deviation"}, default "value"
        "value": a tolerance of 0.1 is 10 percent of the original value, above and below; a zero
        agrees with zeros alone. "deviation": it is a tenth of the population deviation of the
        original column (a column without deviation is taken as it is).
    false_match : float, default 1
        Upper bound of the probability that a pair that is no match is taken for one. Patterns
        are taken for matches in the order of their weights as long as it holds. The default
        claims a link for every record, as distance-based linkage does.
    false_nonmatch : float, default 0
        Upper bound of the probability that a match is not taken for one: patterns are given up
        from the lowest weight on as long as it holds, even if `false_match` would allow them. The
        default gives up none.
    max_iterations : int, default 10,000
        Steps of EM at most.
    """

    tolerance: float = 0.1
    unit: str = "value"
    false_match: float = 1.0
    false_nonmatch: float = 0.0
    max_iterations: int = 10_000

    def __post_init__(self) -> None:
        arguments.number(self.tolerance, "tolerance", 0)
        arguments.one_of(self.unit, "unit", ["value", "deviation"])
        arguments.number(self.false_match, "false_match", 0, 1)
        arguments.number(self.false_nonmatch, "false_nonmatch", 0, 1)
        arguments.whole_number(self.max_iterations, "max_iterations", 1)

    def check(self, _sampling: Sampling, sets: Sequence[Names]) -> None:
        """Raise ValueError if columns are too many."""
        most = max(len(each) for each in sets)
        if most > MOST_COLUMNS:
            raise SdcValueError(
                f"a probabilistic attack takes at most {MOST_COLUMNS} columns, received {most}: d "
                "columns agree in 2**d patterns. Name those that an intruder is most likely to "
                "know, in columns= or known=."
            )

    def check_records(self, encounter: Encounter) -> None:
        """Raise ValueError if pairs are too many to compare one by one."""
        if self.tolerance and not encounter.sampled and encounter.n > MOST_RECORDS:
            raise SdcValueError(
                f"with a tolerance every pair of records is compared, and {encounter.n} records "
                f"are more than {MOST_RECORDS}. Pass a sample, for example sample=5_000, or "
                "tolerance=0, which compares for equality."
            )

    @property
    def agreement(self) -> str:
        """When values agree, in words."""
        if not self.tolerance:
            return "equal"
        if self.unit == "value":
            return f"within {100 * self.tolerance:g}% of the original value"
        return f"within {self.tolerance:g} deviations"


def link_by_probability(
    encounter: Encounter, sets: Sequence[Names], options: ProbabilisticOptions
) -> list[Linkage]:
    """Count the original records that probabilistic record linkage finds among the masked ones.

    A record is linked to the masked records with the highest weight, the ratio of the
    probabilities of their pattern of agreement among matches and among other pairs. If the right
    one is among t of them, that counts 1/t.

    Parameters
    ----------
    encounter : Encounter
        With a tolerance, all records are tried of 50,000 at most, or a sample of more.
    sets : sequence of tuples
        Columns that the intruder knows, at most 16, for every attack. Each set holds those before
        it.
    options : ProbabilisticOptions

    Returns
    -------
    list of Linkage
        One for every set. ``rate`` is the percentage of right links. ``note`` says how many links
        were claimed, if not all, and if few columns are informative (agree in some pairs and
        differ in others), EM has found other classes than the matches, or did not converge.

    Warns
    -----
    UserWarning
        If EM did not converge.

    Notes
    -----
    EM estimates m, u (the probabilities that a column agrees in a match, and in another pair) and
    the share of matches from the counts of all patterns, for columns that are independent within
    matches and within other pairs. The class of pairs that agree in more columns is that of the
    matches. EM finds some two classes of pairs in any case: if masking has left few agreements in
    matches, or columns depend on each other, these are not the matches, and the rate says little
    of what another intruder would find; the note says so if EM's matches are ten times as many as
    there are, or as few. With fewer than three columns, many estimates fit the counts, and it
    depends on where EM starts (m = 0.9, u as if no pair were a match, one match per record) which
    are found.

    With a tolerance, every known record is compared with every masked one, twice: a few seconds
    for 10,000 records and as many masked ones of 13 columns. Dask frames are read twice after the
    scan, the masked one once more. Without a tolerance, frames of many records are counted without
    forming pairs: a pass counts the masked records by their values in every set of columns that a
    known record shares. It takes memory for 2**d counts of every known record of d columns, and
    another pass for every four million such counts: 131,072 records of 5 columns, or 4,096 of 10.
    In both cases all sets are counted together. Counts of all n * n pairs are exact if all records
    are tried; with a sample, the pairs of the sample are counted, and weights are estimated from
    them: the confidence interval is that of an attack with these weights; another sample would give
    others.

    Examples
    --------
    >>> import pandas as pd, sdc_dask
    >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "rooms": [2, 1, 5, 4, 1, 3]})
    >>> df.sdc.linkage(df.assign(age=df["age"].round(-1)), "probabilistic")
    Linkage
      attack     probabilistic, within 10% of the original value
      columns    2                     columns that the intruder knows
      tried      6                     original records that were linked
      correct    5.5                   right links; one among t equal ones counts 1/t
      certain    5                     right links without any equal one
      rate       91.6667               percent of right links: lower is safer
      low        91.6667               of all records: 95% confidence interval, or bounds
      high       91.6667               the upper end
      note       all records were tried; fewer than 3 informative columns: EM's start decides
    """
    encounter.check()
    options.check_records(encounter)
    n = encounter.n
    columns = max(sets, key=len)
    tried = tried_of(encounter, columns, options.tolerance, options.unit)
    patterns = count_patterns(encounter, columns, tried, equal=not options.tolerance)
    parts = [_part_of(columns, each) for each in sets]
    total = patterns.total()
    models = []
    for part in parts:
        counts = np.zeros(part.max() + 1, np.int64)
        np.add.at(counts, part, total)
        models.append(fit(counts, n, options.max_iterations))
    if not all(model.converged for model in models):
        warn(
            f"EM did not converge in {options.max_iterations} steps: weights, and so links, might "
            "still change. Pass more max_iterations."
        )
    ranks = [model.ranks() for model in models]
    best, ties = patterns.best(
        np.stack([each[part] for each, part in zip(ranks, parts, strict=True)], axis=1).astype(
            np.int32
        )
    )
    links = []
    for way, (part, model, rank) in enumerate(zip(parts, models, ranks, strict=True)):
        claimed = model.links(rank, options.false_match, options.false_nonmatch)[best[:, way]]
        right = claimed & (rank[part[tried.own]] == best[:, way])
        sizes, rows = np.unique(np.where(right, ties[:, way], 0), return_counts=True)
        remarks = [encounter.note]
        if encounter.sampled:
            remarks.append("weights are those of the sample")
        if not claimed.all():
            remarks.append(f"{int(claimed.sum()):,} links were claimed")
        links.append(
            of_ties(
                f"probabilistic, {options.agreement}" if options.tolerance else "probabilistic",
                len(sets[way]),
                dict(zip(sizes.tolist(), rows.tolist(), strict=True)),
                n,
                "; ".join([*remarks, *model.notes()]),
            )
        )
    return links


def _part_of(columns: Names, some: Names) -> NDArray[np.int64]:
    """Return what the patterns of columns are of some of them."""
    patterns = np.arange(2 ** len(columns))
    part = np.zeros_like(patterns)
    for j, column in enumerate(some):
        part |= (patterns >> columns.index(column) & 1) << j
    return part
