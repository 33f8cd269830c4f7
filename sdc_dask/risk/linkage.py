"""What attacks by record linkage return."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sdc_dask.errors import SdcValueError
from sdc_dask.results import Result

_Z = 1.959963984540054  # 95% of a normal distribution lie within so many deviations of its mean


@dataclass(frozen=True, repr=False)
class Linkage(Result):
    """How many original records an intruder linked to their masked versions."""

    attack: str = field(metadata={"note": ""})
    columns: int = field(metadata={"note": "columns that the intruder knows"})
    tried: int = field(metadata={"note": "original records that were linked"})
    correct: float = field(metadata={"note": "right links; one among t equal ones counts 1/t"})
    certain: int = field(metadata={"note": "right links without any equal one"})
    rate: float = field(metadata={"note": "percent of right links: lower is safer"})
    low: float = field(metadata={"note": "of all records: 95% confidence interval, or bounds"})
    high: float = field(metadata={"note": "the upper end"})
    note: str = field(metadata={"note": ""})

    @property
    def remarks(self) -> list[str]:
        """What the note says, one by one."""
        return self.note.split("; ") if self.note else []

    @property
    def limits(self) -> list[str]:
        """What limits the figures: all remarks except how many records were tried."""
        return [each for each in self.remarks if not each.endswith(" tried")]


def count_links(ties: NDArray[np.int64]) -> Counter[int]:
    """Count records by the number of masked ones that they are linked to; by 0 the wrong links.

    Parameters
    ----------
    ties : ndarray of int64
        By record, the number of masked ones at the distance of its own, -1 if one is nearer.

    Examples
    --------
    >>> count_links(np.array([1, 3, -1, 1]))
    Counter({1: 2, 0: 1, 3: 1})
    """
    found, records = np.unique(ties, return_counts=True)
    if 0 in found:
        # The masked version of a record is at its own distance, and so is found at least.
        raise SdcValueError(
            "the masked frame had other values when it was read again: write it, or call "
            "persist, and compare that."
        )
    return Counter(dict(zip(np.maximum(found, 0).tolist(), records.tolist(), strict=True)))


def of_ties(
    attack: str, columns: int, ties: Mapping[int, int], population: int, note: str = ""
) -> Linkage:
    """Sum up links.

    Parameters
    ----------
    attack : str
        How records were linked.
    columns : int
        Number of columns that the intruder knows.
    ties : mapping
        By t, how many records were linked to t masked records of which one is right; by 0, how
        many were linked to wrong ones only.
    population : int
        Number of original records, of which the ones that were tried are a random sample.
    note : str, optional
        What else there is to say.

    Returns
    -------
    Linkage

    Notes
    -----
    The confidence interval is Wilson's for the mean of the scores 1/t. It takes their variance
    to be that of scores 0 and 1, which is the largest that scores from 0 to 1 with this mean may
    have: with ties it is wider than it had to be. Sampling without replacement counts as a larger
    sample, with a factor of (population - 1) / (population - tried). If all records were tried,
    nothing is left to chance, and both ends are the rate.

    Examples
    --------
    >>> of_ties("guess", 2, {0: 60, 1: 30, 2: 10}, population=100, note="all records were tried")
    Linkage
      attack     guess
      columns    2                     columns that the intruder knows
      tried      100                   original records that were linked
      correct    35                    right links; one among t equal ones counts 1/t
      certain    30                    right links without any equal one
      rate       35                    percent of right links: lower is safer
      low        35                    of all records: 95% confidence interval, or bounds
      high       35                    the upper end
      note       all records were tried
    """
    tried = sum(ties.values())
    correct = math.fsum(records / t for t, records in ties.items() if t)
    rate = low = high = 100 * correct / tried
    if tried < population:
        size = tried * (population - 1) / (population - tried)
        low, high = 100 * _wilson(rate / 100, size), 100 - 100 * _wilson(1 - rate / 100, size)
    certain = ties.get(1, 0)
    return Linkage(attack, columns, tried, correct, certain, rate, low, high, note)


def _wilson(share: float, size: float) -> float:
    """Return the lower end of Wilson's interval; that of the complement gives the upper end."""
    root = math.sqrt(_Z * _Z + 4 * size * share * (1 - share))
    return (2 * size * share + _Z * _Z - _Z * root) / (2 * (size + _Z * _Z))


def mean_of(links: list[Linkage]) -> Linkage:
    """Average attacks on the same records, and count what is to be said of some of them."""
    if len(links) == 1:
        return links[0]
    count = len(links)
    remarks = Counter(remark for each in links for remark in each.remarks)
    said = [
        remark if times == count else f"in {times} of {count} attacks: {remark}"
        for remark, times in remarks.items()
    ]
    return Linkage(
        links[0].attack,
        max(each.columns for each in links),
        links[0].tried,
        sum(each.correct for each in links) / count,
        round(sum(each.certain for each in links) / count),
        sum(each.rate for each in links) / count,
        sum(each.low for each in links) / count,
        sum(each.high for each in links) / count,
        "; ".join([f"mean of {count} attacks", *said]),
    )
