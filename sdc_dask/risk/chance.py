"""How many right links chance gives: the fixed points of a random permutation.

An intruder who links n records to the n records of the same individuals at random, each to another
one, is right as often as a random permutation leaves something in its place.
"""

from __future__ import annotations

import math

import numpy as np

from sdc_dask import arguments
from sdc_dask.errors import SdcValueError

# Terms of the alternating sum, and of the sum over more links: 1/30! is below all rounding.
_TERMS = 30
_MOST_LINKS = 200  # 1/200! is below the range of float64

__all__ = ["chance_of_at_least", "chance_of_exactly"]


def chance_of_exactly(links: int, n: int, tried: int | None = None) -> float:
    """Return the probability that random links are right for exactly so many records.

    Parameters
    ----------
    links : int
        Number of right links.
    n : int
        Number of records in each of two files of the same individuals.
    tried : int, optional
        How many of them are linked; by default all.

    Returns
    -------
    float
        Correct to about 14 digits, however large `n` is; 0 where it is below the range of float64.

    Notes
    -----
    Of all n records, r are linked rightly with the probability (1/r!) times the sum of (-1)^v / v!
    for v = 0, ..., n - r. The sum is 1/e to 16 digits as soon as n - r exceeds 17: the number of
    right links then has a Poisson distribution with mean 1, for a thousand records as for a
    billion. If m of them are tried, every term has a factor, the product of (m - i) / (n - i) for
    i = 0, ..., r + v - 1.

    Source: J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral
    thesis, Universitat Autònoma de Barcelona, proposition 4.

    Examples
    --------
    >>> [round(chance_of_exactly(links, 3), 4) for links in range(4)]
    [0.3333, 0.5, 0.0, 0.1667]
    >>> chance_of_exactly(10, 100)  # doctest: +ELLIPSIS
    1.01377...e-07
    """
    return _exactly(*_checked(links, n, tried))


def chance_of_at_least(links: int, n: int, tried: int | None = None) -> float:
    """Return the probability that random links are right for so many records or more.

    Parameters
    ----------
    links, n, tried
        As in :func:`chance_of_exactly`.

    Returns
    -------
    float
        As precise as :func:`chance_of_exactly`, since nothing is subtracted from 1.

    Examples
    --------
    >>> [round(chance_of_at_least(links, 3), 4) for links in range(4)]
    [1.0, 0.6667, 0.1667, 0.1667]
    >>> round(chance_of_at_least(5, 1_000_000_000), 5)
    0.00366
    """
    links, n, tried = _checked(links, n, tried)
    if links == 0:
        return 1.0
    last = min(tried, links + _TERMS)
    return math.fsum(_exactly(more, n, tried) for more in range(links, last + 1))


def _checked(links: int, n: int, tried: int | None) -> tuple[int, int, int]:
    n = arguments.whole_number(n, "n", 1)
    tried = n if tried is None else arguments.whole_number(tried, "tried", 0)
    links = arguments.whole_number(links, "links", 0)
    if tried > n:
        raise SdcValueError(f"tried must not exceed n, received {tried} of {n} records.")
    if links > tried:
        raise SdcValueError(
            f"links must not exceed the records that are tried, received {links} of {tried}."
        )
    return links, n, tried


def _exactly(links: int, n: int, tried: int) -> float:
    if links > _MOST_LINKS:
        return 0.0
    i = np.arange(links)
    first = float(np.prod((tried - i) / ((n - i) * (i + 1.0))))
    terms, term = [], 1.0
    for v in range(min(_TERMS, tried - links) + 1):
        terms.append(term)
        j = links + v
        term *= -(tried - j) / max(n - j, 1) / (v + 1)
    return first * math.fsum(terms)
