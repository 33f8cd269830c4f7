"""Which columns intruders know, one set of them for every attack."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import accumulate
from typing import Any

from sdc_dask import arguments
from sdc_dask.errors import SdcTypeError, SdcValueError

Names = tuple[Hashable, ...]


def known_columns(
    columns: Sequence[Hashable],
    known: str | Sequence[Hashable] | None,
    groups: Sequence[Sequence[Hashable]] | None = None,
) -> list[Names]:
    """Return the sets of columns that intruders know, one for each attack.

    A risk such as DLD is the mean of the rates of these attacks.

    Parameters
    ----------
    columns : list
        Columns that were masked, in the order in which they become known.
    known : {"half", "all", "groups"}, list or None
        - None: all columns, in a single attack;
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
    if groups is not None and not (isinstance(known, str) and known == "groups"):
        raise SdcValueError(
            "groups has a meaning with known='groups' alone: leave it out, or pass that."
        )
    if known is None:
        return [names]
    if isinstance(known, str):
        if known == "half":
            return [names[:r] for r in range(1, (len(names) + 1) // 2 + 1)]
        if known == "all":
            return [names[:r] for r in range(1, len(names) + 1)]
        if known == "groups":
            return _first_groups(names, groups)
        raise SdcValueError(
            f"known must be 'half', 'all', 'groups' or a list of columns, received {known!r}. "
            "Leave it out for an intruder who knows all columns."
        )
    chosen = _names(known, "known")
    _check_among(chosen, names, "known")
    return [chosen]


def describe(columns: Sequence[Hashable], known: Any, sets: Sequence[Names]) -> str:
    """Say in words which columns intruders know.

    Parameters
    ----------
    columns : sequence
        All columns that are compared.
    known
        What :func:`known_columns` was called with.
    sets : sequence of tuples
        What it returned.

    Examples
    --------
    >>> columns = ["age", "income", "wealth"]
    >>> for known in (None, "half", ["age", "income"]):
    ...     print(describe(columns, known, known_columns(columns, known)))
    all 3 columns
    half: the first 1 to 2 of 3 columns, mean of 2 attacks
    2 of 3 columns: age, income
    """
    count = len(columns)
    largest = len(sets[-1])
    if isinstance(known, str):
        several = len(sets) > 1
        which = "" if known == "groups" else "the first "
        which += f"{len(sets[0])} to {largest}" if several else f"{largest}"
        attacks = f"mean of {len(sets)} attacks" if several else "one attack"
        return f"{known}: {which} of {count} columns, {attacks}"
    if largest == count:
        return f"all {count} columns" if count > 1 else "the only column"
    return f"{largest} of {count} columns: {', '.join(map(str, sets[-1]))}"


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
    given = arguments.as_list(value)
    if given is None:
        raise SdcTypeError(f"{what} must be a list of columns, received {type(value).__name__}.")
    names = tuple(given)
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
