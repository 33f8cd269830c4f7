"""What attacks by record linkage return, and which columns their intruders know."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.scan import Scan
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.results import Result

_Z = 1.959963984540054  # 95% of a normal distribution lie within so many deviations of its mean

Names = tuple[Hashable, ...]


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


def check_values(found: Scan, which: str) -> None:
    """Raise ValueError if the original or the masked frame has values without a distance."""
    try:
        found.check(
            advice=", in both frames, for instance with ok = df.notna().all(axis=1); or name other "
            "columns"
        )
    except ValueError as error:
        raise SdcValueError(f"the {which} frame has {error}") from None


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


def known_columns(
    columns: Sequence[Hashable],
    known: str | Sequence[Hashable],
    groups: Sequence[Sequence[Hashable]] | None = None,
) -> list[Names]:
    """Return the sets of columns that intruders know, one for each attack.

    A risk such as DLD is the mean of the rates of these attacks.

    Parameters
    ----------
    columns : list
        Columns that were masked, in the order in which they become known.
    known : {"half", "all", "groups"} or list
        - "half": the first column, the first two, and so on to half of them (rounded up);
        - "all": the first column, the first two, and so on to all of them;
        - "groups": the columns of the first two groups, of the first three, and so on to all
          groups; if there is one group only, its columns;
        - a list of columns: these, in a single attack.
    groups : list of lists, optional
        The groups that were masked each on its own, of "groups" alone.

    Returns
    -------
    list of tuples

    Notes
    -----
    J. Nin (*Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
    Universitat Autònoma de Barcelona) lets intruders know from one to half of the columns (section
    2.5.2), and of columns masked in groups from two groups to all (section 4.3.1), but does not
    say which. The first ones in the order of his tables, and half of 13 taken to be 7, come
    closest to his figures for rank swapping.

    Examples
    --------
    >>> known_columns(["a", "b", "c"], "half")
    [('a',), ('a', 'b')]
    >>> known_columns(["a", "b", "c", "d"], "groups", [["a", "b"], ["c"], ["d"]])
    [('a', 'b', 'c'), ('a', 'b', 'c', 'd')]
    >>> known_columns(["a", "b", "c"], ["a", "c"])
    [('a', 'c')]
    """
    names = _names(columns, "columns")
    if groups is not None and known != "groups":
        raise SdcValueError(
            "groups has a meaning with known='groups' alone: leave it out, or pass that."
        )
    if isinstance(known, str):
        if known == "half":
            return [names[:r] for r in range(1, (len(names) + 1) // 2 + 1)]
        if known == "all":
            return [names[:r] for r in range(1, len(names) + 1)]
        if known == "groups":
            return _first_groups(names, groups)
        raise SdcValueError(
            f"known must be 'half', 'all', 'groups' or a list of columns, received {known!r}."
        )
    chosen = _names(known, "known")
    _check_among(chosen, names, "known")
    return [chosen]


def _first_groups(names: Names, groups: Sequence[Sequence[Hashable]] | None) -> list[Names]:
    if groups is None:
        raise SdcValueError("known='groups' needs groups: a list of lists of columns.")
    if not isinstance(groups, (list, tuple)) or not groups:
        raise SdcTypeError("groups must be a list of lists of columns, with at least one list.")
    each = [_names(group, "a group") for group in groups]
    named = [name for group in each for name in group]
    _check_among(named, names, "groups")
    if len(set(named)) < len(named):
        raise SdcValueError("groups name a column more than once. A column belongs to one group.")
    first = list(accumulate(each))
    return first[1:] or first


def _names(value: Any, what: str) -> Names:
    if isinstance(value, str) or not isinstance(value, (list, tuple, pd.Index)):
        raise SdcTypeError(f"{what} must be a list of columns, received {type(value).__name__}.")
    names = tuple(value)
    arguments.check_names(names, what)
    if not names:
        raise SdcValueError(f"{what} is empty: name the columns that an intruder knows.")
    if len(set(names)) < len(names):
        raise SdcValueError(f"{what} names a column more than once.")
    return names


def _check_among(chosen: Sequence[Hashable], names: Names, what: str) -> None:
    others = [name for name in chosen if name not in names]
    if others:
        listed = ", ".join(repr(name) for name in others)
        raise SdcValueError(
            f"{what} names columns that are not among the masked ones: {listed}. Name them in "
            "columns, too, or leave them out."
        )
