"""What agreement of columns says of a pair: the weights of Fellegi and Sunter, estimated by EM.

I. P. Fellegi, A. B. Sunter, "A theory for record linkage", Journal of the American Statistical
Association 64 (1969).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.agreement import SMALLEST, fit_mixture

_CHANGE = 1e-5  # of an estimate in a step, below which EM has converged
_EQUAL = 1e-9  # weights, in bits, that differ by rounding only
_START = 0.9  # of m: a column of a match agrees
_MANY_TIMES = 10  # more or fewer matches than there are: EM has found something else


@dataclass(frozen=True)
class Model:
    """What agreement says of a pair, column by column.

    Attributes
    ----------
    m, u : ndarray of float64
        The probability that a column agrees in a match, and in a pair that is none.
    prior : float
        The probability that a pair is a match.
    n : int
        Masked records: one of n pairs is a match.
    informative : int
        Columns that agree in some pairs and differ in others. The rest weighs nothing.
    steps : int
        Of EM.
    converged : bool
    """

    m: NDArray[np.float64]
    u: NDArray[np.float64]
    prior: float
    n: int
    informative: int
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
        """Return which ranks are taken for matches within bounds of both errors."""
        if not self.informative:
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
        if not self.informative:
            notes.append("no informative column: links are left to chance")
        elif self.informative < 3:
            notes.append("fewer than 3 informative columns: EM's start decides")
        times = self.prior * self.n
        if not 1 / _MANY_TIMES <= times <= _MANY_TIMES:
            few = "few" if times < 1 else "many"
            notes.append(
                f"EM took {_MANY_TIMES} times too {few} pairs for matches: the rate may be too low"
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
    >>> from sdc_dask.risk.agreement import fit
    >>> model = fit(np.array([80, 10, 12, 1, 9, 1, 2, 11]), n=11, max_iterations=1_000)
    >>> model.m.round(2), model.u.round(2), round(model.prior, 2)
    (array([0.94, 1.  , 1.  ]), array([0.11, 0.13, 0.1 ]), 0.09)
    """
    d = (len(counts) - 1).bit_length()
    occur = np.flatnonzero(counts)
    agrees = _agrees(occur, d)
    share = counts[occur] / counts.sum()
    informative = agrees.any(axis=0) & ~agrees.all(axis=0)
    by_chance = np.clip((share[:, None] * agrees).sum(axis=0), SMALLEST, 1 - SMALLEST)
    m, u = by_chance.copy(), by_chance.copy()
    if not informative.any():
        return Model(m, u, 1 / n, n, 0, 0, True)
    m[informative], u[informative], prior, _, steps, converged = fit_mixture(
        np.ascontiguousarray(agrees[:, informative]),
        share,
        np.full(informative.sum(), _START),
        by_chance[informative],
        1 / n,
        _CHANGE,
        max_iterations,
    )
    if m.sum() < u.sum():
        m, u, prior = u, m, 1 - prior
    return Model(m, u, prior, n, int(informative.sum()), steps, converged)


def _agrees(patterns: NDArray[np.int64], d: int) -> NDArray[np.bool_]:
    return (patterns[:, None] >> np.arange(d) & 1).astype(bool)
