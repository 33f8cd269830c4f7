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

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.pairs import pair_frames, pair_parts
from sdc_dask.engine.scan import ColumnScan, Scan, scan
from sdc_dask.errors import SdcValueError, warn
from sdc_dask.kernels.agreement import (
    SMALLEST,
    Index,
    count_nodes,
    fit_mixture,
    index_records,
    pattern_of_pairs,
    patterns_of_nodes,
    patterns_within,
)
from sdc_dask.risk.linkage import Linkage, check_values, of_ties
from sdc_dask.risk.sampling import draw_rows

MOST_COLUMNS = 16  # a pattern is one of 2**d
MOST_RECORDS = 50_000  # of which all pairs are compared one by one unless a sample is asked for
CELLS = 2**22  # known records times patterns that are counted in one pass
_PAIRS_A_NODE = 100  # so many comparisons of a pair take the time of one node of an index

_CHANGE = 1e-5  # of an estimate in a step, below which EM has converged
_EQUAL = 1e-9  # weights, in bits, that differ by rounding only
_START = 0.9  # of m: a column of a match agrees
_MANY_TIMES = 10  # more or fewer matches than there are: EM has found something else


def probabilistic_linkage(
    original: Frame,
    masked: Frame,
    columns: Sequence[Hashable],
    *,
    tolerance: float = 0.0,
    false_match: float = 1.0,
    false_nonmatch: float = 0.0,
    sample: int | None = None,
    random_state: int | None = None,
    max_iterations: int = 10_000,
) -> Linkage:
    """Count the original records that probabilistic record linkage finds among the masked ones.

    A record is linked to the masked records with the highest weight, the ratio of the
    probabilities of their pattern of agreement among matches and among other pairs. If the right
    one is among t of them, that counts 1/t.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
        Of the same kind, with the same rows; other orders are aligned by the index.
    columns : list
        Numeric columns that the intruder knows, at most 16.
    tolerance : float
        Values agree if they are so far apart at most, in population deviations of the original
        column (a column without deviation is taken as it is). With 0 they must be equal.
    false_match : float
        Upper bound of the probability that a pair that is no match is taken for one. Patterns
        are taken for matches in the order of their weights as long as it holds. The default
        claims a link for every record, as distance-based linkage does.
    false_nonmatch : float
        Upper bound of the probability that a match is not taken for one: patterns are given up
        from the lowest weight on as long as it holds, even if `false_match` would allow them. The
        default gives up none.
    sample : int, optional
        Try so many records, drawn at random, against all masked records; all by default.
    random_state : int, optional
        Makes the sample reproducible, whatever the partitions are.
    max_iterations : int
        Steps of EM at most.

    Returns
    -------
    Linkage
        ``rate`` is the percentage of right links. ``note`` says how many links were claimed, if
        not all, and if few columns are telling (agree in some pairs and differ in others), EM
        has found other classes than the matches, or did not converge.

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
    matches, or columns depend on each other, these are not the matches, and the rate tells little
    of what another intruder would find; the note says so if EM's matches are ten times as many as
    there are, or as few. With fewer than three columns, many estimates fit the
    counts, and it depends on where EM starts (m = 0.9, u as if no pair were a match, one match a
    record) which are found.

    Pairs are not formed if agreement means equality: one pass counts the masked records by their
    values in every set of columns that a known record shares. It takes memory for 2**d counts of
    every known record of d columns, and another pass for every four million such counts: 131,072
    records of 5 columns, or 4,096 of 10. Counts of all n * n pairs are exact if all records are
    tried; with a sample, the pairs of the sample are counted, and weights are estimated from them:
    the confidence interval is that of an attack with these weights. With a tolerance, every known
    record is compared with every masked one.

    A Dask frame of originals is read three times, the masked one once for every pass of counting:
    write out a masked frame, or persist it, before it is measured.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.risk.probabilistic_linkage import probabilistic_linkage
    >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "rooms": [2, 1, 5, 4, 1, 3]})
    >>> probabilistic_linkage(df, df.assign(age=df["age"].round(-1)), ["age", "rooms"])
    Linkage
      attack     probabilistic
      columns    2                     columns that the intruder knows
      tried      6                     original records that were linked
      correct    5                     right links; one among t equal ones counts 1/t
      certain    4                     right links without any equal one
      rate       83.3333               percent of right links: lower is safer
      low        83.3333               of all records: 95% confidence interval, or bounds
      high       83.3333               the upper end
      note       all records were tried; fewer than 3 telling columns: EM's start decides
    """
    names = list(arguments.compared_columns(original, masked, columns))
    if len(names) > MOST_COLUMNS:
        raise SdcValueError(
            f"a probabilistic attack takes at most {MOST_COLUMNS} columns, received {len(names)}: "
            "d columns agree in 2**d patterns. Name those that an intruder is most likely to know, "
            "in columns= or known=."
        )
    tolerance = arguments.number(tolerance, "tolerance", 0)
    false_match = arguments.number(false_match, "false_match", 0, 1)
    false_nonmatch = arguments.number(false_nonmatch, "false_nonmatch", 0, 1)
    max_iterations = arguments.whole_number(max_iterations, "max_iterations", 1)
    if sample is not None:
        sample = arguments.whole_number(sample, "sample", 1)
    elif random_state is not None:
        raise SdcValueError("random_state has a meaning with sample alone: pass both, or none.")
    entropy = arguments.entropy(random_state)
    counts = count_patterns(original, masked, names, tolerance, sample, entropy)
    model = fit(counts.total(), counts.n, max_iterations)
    if not model.converged:
        warn(
            f"EM did not converge in {max_iterations} steps: weights, and so links, might still "
            "change. Pass more max_iterations."
        )
    ranks = model.ranks()
    best, ties = counts.best(ranks)
    claimed = model.links(ranks, false_match, false_nonmatch)[best]
    right = claimed & (ranks[counts.own] == best)
    sizes, rows = np.unique(np.where(right, ties, 0), return_counts=True)
    attack = f"probabilistic, within {tolerance:g} deviations" if tolerance else "probabilistic"
    notes = ["all records were tried"]
    if len(counts.own) < counts.n:
        notes = [
            f"a random sample of {counts.n:,} records was tried, and weights were estimated from "
            "it, which the interval leaves out"
        ]
    if not claimed.all():
        notes.append(f"{int(claimed.sum()):,} links were claimed")
    return of_ties(
        attack,
        len(names),
        dict(zip(sizes.tolist(), rows.tolist(), strict=True)),
        counts.n,
        "; ".join([*notes, *model.notes()]),
    )


@dataclass(frozen=True)
class Model:
    """What agreement tells of a pair, column by column.

    Attributes
    ----------
    m, u : ndarray of float64
        The probability that a column agrees in a match, and in a pair that is none.
    prior : float
        The probability that a pair is a match.
    n : int
        Masked records: one of n pairs is a match.
    telling : int
        Columns that agree in some pairs and differ in others. The rest weighs nothing.
    steps : int
        Of EM.
    converged : bool
    """

    m: NDArray[np.float64]
    u: NDArray[np.float64]
    prior: float
    n: int
    telling: int
    steps: int
    converged: bool

    def ranks(self) -> NDArray[np.int64]:
        """Rank patterns by weight, the highest first; 0, 1, ..., the same for equal weights."""
        agrees = _agrees(np.arange(2 ** len(self.m)), len(self.m))
        weights = np.where(
            agrees, np.log2(self.m / self.u), np.log2((1 - self.m) / (1 - self.u))
        ).sum(axis=1)
        order = np.argsort(-weights, kind="stable")
        ranks = np.empty(len(order), np.int64)
        ranks[order] = np.cumsum(np.diff(weights[order], prepend=weights[order[0]]) < -_EQUAL)
        return ranks

    def links(
        self, ranks: NDArray[np.int64], false_match: float, false_nonmatch: float
    ) -> NDArray[np.bool_]:
        """Tell which ranks are taken for matches within bounds of both errors."""
        if not self.telling:
            return np.array([True])
        agrees = _agrees(np.arange(len(ranks)), len(self.m))
        among_matches, among_others = (
            np.bincount(ranks, np.where(agrees, p, 1 - p).prod(axis=1)) for p in (self.m, self.u)
        )
        # Both errors with all patterns up to, or from, each rank. A bound of 1 holds for all of
        # them, though their sum may be rounded to more.
        as_links = np.cumsum(among_others)
        as_others = np.cumsum(among_matches[::-1])[::-1]
        taken = as_links <= false_match * (1 + _EQUAL)
        given_up = as_others <= false_nonmatch * (1 + _EQUAL)
        return taken & ~given_up

    def notes(self) -> list[str]:
        """Say what limits the estimates."""
        notes = []
        if not self.telling:
            notes.append("no telling column: links are left to chance")
        elif self.telling < 3:
            notes.append("fewer than 3 telling columns: EM's start decides")
        times = self.prior * self.n
        if not 1 / _MANY_TIMES <= times <= _MANY_TIMES:
            notes.append(
                f"EM took {times:.2g} times as many pairs for matches as there are: its weights "
                "are hardly those of matches, and the rate may be far too low"
            )
        if not self.converged:
            notes.append(f"EM did not converge in {self.steps} steps")
        return notes


def fit(counts: NDArray[np.int64], n: int, max_iterations: int) -> Model:
    """Estimate a model from the number of pairs by pattern.

    Parameters
    ----------
    counts : ndarray of int64, shape (2**d,)
        Pairs by pattern, a number with bit j set if column j agrees.
    n : int
        Number of masked records, of which one matches: EM starts with this.
    max_iterations : int
        Steps of EM at most.

    Returns
    -------
    Model

    Examples
    --------
    >>> import numpy as np
    >>> from sdc_dask.risk.probabilistic_linkage import fit
    >>> model = fit(np.array([80, 10, 12, 1, 9, 1, 2, 11]), n=11, max_iterations=1_000)
    >>> model.m.round(2), model.u.round(2), round(model.prior, 2)
    (array([0.94, 1.  , 1.  ]), array([0.11, 0.13, 0.1 ]), 0.09)
    """
    d = (len(counts) - 1).bit_length()
    occur = np.flatnonzero(counts)
    agrees = _agrees(occur, d)
    share = counts[occur] / counts.sum()
    telling = agrees.any(axis=0) & ~agrees.all(axis=0)
    by_chance = np.clip((share[:, None] * agrees).sum(axis=0), SMALLEST, 1 - SMALLEST)
    m, u = by_chance.copy(), by_chance.copy()
    if not telling.any():
        return Model(m, u, 1 / n, n, 0, 0, True)
    m[telling], u[telling], prior, _, steps, converged = fit_mixture(
        np.ascontiguousarray(agrees[:, telling]),
        share,
        np.full(telling.sum(), _START),
        by_chance[telling],
        1 / n,
        _CHANGE,
        max_iterations,
    )
    if m.sum() < u.sum():
        m, u, prior = u, m, 1 - prior
    return Model(m, u, prior, n, int(telling.sum()), steps, converged)


def _agrees(patterns: NDArray[np.int64], d: int) -> NDArray[np.bool_]:
    return (patterns[:, None] >> np.arange(d) & 1).astype(bool)


@dataclass(frozen=True)
class Counts:
    """Masked records by pattern of agreement with every known record.

    Known records that are equal are counted once. The patterns of known record r that occur are
    those from ``begin[r]`` to ``begin[r + 1]``.
    """

    n: int  # masked records
    d: int  # columns
    begin: NDArray[np.int64]
    patterns: NDArray[np.int64]
    counts: NDArray[np.int64]
    record: NDArray[np.int64]  # which known record each row that is tried is
    own: NDArray[np.int64]  # the pattern of each row with its own masked version

    def total(self) -> NDArray[np.int64]:
        """Count the pairs of all rows that are tried with all masked records, by pattern."""
        times = np.repeat(np.bincount(self.record), np.diff(self.begin))
        total = np.zeros(2**self.d, np.int64)
        np.add.at(total, self.patterns, self.counts * times)
        return total

    def best(self, ranks: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the best rank of a pattern of each row, and how many masked records have it."""
        rank = ranks[self.patterns]
        best = np.minimum.reduceat(rank, self.begin[:-1])
        is_best = rank == np.repeat(best, np.diff(self.begin))
        ties = np.add.reduceat(np.where(is_best, self.counts, 0), self.begin[:-1])
        return best[self.record], ties[self.record]


@dataclass(frozen=True)
class _Attack:
    """What a pass over the data needs to know."""

    columns: list[Hashable]
    borders: NDArray[np.int64]  # the first row of every partition, and the number of rows
    rows: NDArray[np.int64]  # that are tried
    known: NDArray[np.float64]  # some different records of them
    reach: NDArray[np.float64]
    index: Index | None  # of the known records, unless pairs are compared one by one

    def tried(self, original: pd.DataFrame, number: int) -> NDArray[np.int64]:
        """Return which rows of a partition are tried."""
        begin, end = self.borders[number], self.borders[number + 1]
        if len(original) != end - begin:
            raise SdcValueError(
                f"partition {number} has other rows than when it was first read: the frame gives "
                "something else each time it is computed. Write it out, or persist it, first."
            )
        return self.rows[slice(*np.searchsorted(self.rows, [begin, end]))] - begin


@dataclass(frozen=True)
class _Part:
    """What a partition, or several, tell of an attack."""

    counts: NDArray[np.int64]
    own: NDArray[np.int64]
    scan: Scan


def count_patterns(
    original: Frame,
    masked: Frame,
    columns: Sequence[Hashable],
    tolerance: float = 0.0,
    sample: int | None = None,
    entropy: int = 0,
) -> Counts:
    """Count masked records by pattern of agreement with each original record, or with some.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
    columns : sequence
        Numeric columns, not too many for 2**d patterns.
    tolerance : float
        Values agree if they are so many deviations apart, at most.
    sample : int, optional
        The number of original records; all by default.
    entropy : int
        What the sample depends on.
    """
    columns = list(columns)
    frames = pair_frames(original, masked, columns)
    found = scan(frames[0], columns, [])
    if found.n == 0:
        raise SdcValueError("the frames have no records: there is nothing to link.")
    check_values(found, "original")
    if tolerance and sample is None and found.n > MOST_RECORDS:
        raise SdcValueError(
            f"with a tolerance every pair of records is compared, and {found.n} records are more "
            f"than {MOST_RECORDS}. Pass a sample, for example sample=1000, or tolerance=0."
        )
    borders = np.cumsum([0, *found.rows])
    rows = draw_rows(found.n, sample, entropy)
    deviations = [found.columns[column].sums.deviation or 1.0 for column in columns]
    attack = _Attack(
        columns, borders, rows, np.empty((0, 0)), tolerance * np.array(deviations), None
    )
    tried = map_reduce(frames[0], _take_tried, np.concatenate, attack)
    table = pd.DataFrame(tried + 0.0)  # without negative zeros
    record = table.groupby(list(table.columns), sort=False).ngroup().to_numpy()
    known = np.array(table.drop_duplicates(), order="C")

    d = len(columns)
    one_by_one = tolerance > 0 or found.n < _PAIRS_A_NODE * 2**d
    sizes, patterns, counts = [], [], []
    batch = max(1, CELLS >> d)
    for begin in range(0, len(known), batch):
        some = known[begin : begin + batch]
        index, nodes = (None, None) if one_by_one else index_records(some)
        part = map_reduce(frames, _compare, _merge, replace(attack, known=some, index=index))
        check_values(part.scan, "masked")
        exact = part.counts if nodes is None else patterns_of_nodes(nodes, part.counts)
        which, pattern = np.nonzero(exact)
        sizes.append(np.bincount(which, minlength=len(some)))
        patterns.append(pattern)
        counts.append(exact[which, pattern])
    begins = np.cumsum(np.concatenate([[0], *sizes]))
    return Counts(
        found.n,
        d,
        begins,
        np.concatenate(patterns),
        np.concatenate(counts),
        record,
        part.own,
    )


def _take_tried(original: pd.DataFrame, number: int, attack: _Attack) -> NDArray[np.float64]:
    return to_float(original.iloc[attack.tried(original, number)], attack.columns)


def _compare(original: pd.DataFrame, masked: pd.DataFrame, number: int, attack: _Attack) -> _Part:
    original, masked = pair_parts(original, masked, number)
    new = to_float(masked, attack.columns)
    tried = attack.tried(original, number)
    old = to_float(original.iloc[tried], attack.columns)
    columns = {
        column: ColumnScan.of(masked[column], new[:, j]) for j, column in enumerate(attack.columns)
    }
    return _Part(
        patterns_within(attack.known, new, attack.reach)
        if attack.index is None
        else count_nodes(attack.index, new),
        pattern_of_pairs(old, new[tried], attack.reach),
        Scan((len(masked),), columns, ()),
    )


def _merge(parts: list[_Part]) -> _Part:
    counts = parts[0].counts.copy()
    columns = dict(parts[0].scan.columns)
    for part in parts[1:]:
        counts += part.counts
        for name, column in part.scan.columns.items():
            columns[name] += column
    rows = tuple(rows for part in parts for rows in part.scan.rows)
    return _Part(counts, np.concatenate([part.own for part in parts]), Scan(rows, columns, ()))
