"""Which columns to mask together: groups of columns for ``df.sdc.microaggregate``.

Masking many columns as one group hides records well and distorts them much; masking each on its
own does neither. Between the two, it matters which columns share a group:

- :func:`individual`: every column alone;
- :func:`correlated`: columns that say much the same share a group, which keeps the data useful;
- :func:`spread`: columns that say much the same are dealt out over the groups. Records that are
  alike in one group are then alike in the others, so that more of them stay equal to each other:
  ``masked.sdc.group_anonymity`` counts how many.

References
----------
J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, section 3.1.2.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from numbers import Integral

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.columns import check_numeric
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.moments import co_moments
from sdc_dask.errors import SdcValueError

LEFTOVERS = ("group", "drop")

_DECIMALS = 12  # correlations that differ by less are ties, which go to the first column


def individual(columns: Sequence[Hashable]) -> list[list[Hashable]]:
    """Put every column into a group of its own (individual ranking).

    Parameters
    ----------
    columns : list
        Names of columns.

    Returns
    -------
    list of lists
        For ``columns=`` of ``df.sdc.microaggregate``.

    Examples
    --------
    >>> from sdc_dask import grouping
    >>> grouping.individual(["age", "income"])
    [['age'], ['income']]
    """
    names = arguments.name_list(columns, "columns")
    arguments.check_names(names, "columns")
    if not names:
        raise SdcValueError("columns is empty: name the columns to mask.")
    if len(set(names)) < len(names):
        raise SdcValueError("columns are named more than once: name each of them once.")
    return [[name] for name in names]


def correlated(
    frame: Frame, columns: Sequence[Hashable], size: int, *, leftover: str = "group"
) -> list[list[Hashable]]:
    """Put columns that are correlated with each other into the same group.

    Masking loses least this way, since records that are close in one column of a group are close
    in its others. In exchange, few records are equal in several groups.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        The data to be masked; one pass over `columns`.
    columns : list
        Numeric columns to group.
    size : int
        Columns of a group, from 1 to the number of columns.
    leftover : {"group", "drop"}, default "group"
        If `size` does not divide the number of columns: "group" makes a smaller last group,
        "drop" leaves columns out of all groups: masking will not protect them.

    Returns
    -------
    list of lists
        Columns of a group in the order of `columns`; groups in the order of their first column,
        the smaller one last.

    See Also
    --------
    spread : Groups that are correlated with each other.

    Notes
    -----
    Groups are to have a large sum of absolute correlations between their columns. Columns are cut
    into groups as they come; then two columns of different groups are exchanged, always those
    that gain most, for as long as this gains anything. This starts once from every column, and
    the best groups are taken, of equal ones the first. They need not be the best of all, but
    among a dozen columns they mostly are. What is left over is what the sum can spare: the smaller
    group counts in it, and columns that are dropped do not.

    A correlation is that of the records without missing cells in the two columns, and 0 with a
    constant column. It is computed without rounding: partitions do not change groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask import grouping
    >>> x, y = [1, 2, 3, 4], [1, -1, -1, 1]
    >>> df = pd.DataFrame({"a": x, "b": y, "c": x, "d": y})
    >>> grouping.correlated(df, ["a", "b", "c", "d"], 2)
    [['a', 'c'], ['b', 'd']]
    """
    names, size = _check(frame, columns, size, leftover)
    number, rest = divmod(len(names), size)
    sizes = [size] * number + [rest] * (leftover == "group" and rest > 0)
    return [[names[i] for i in members] for members in _sets(_strength(frame, names), sizes)]


def spread(
    frame: Frame, columns: Sequence[Hashable], size: int, *, leftover: str = "group"
) -> list[list[Hashable]]:
    """Make groups that are correlated with each other, of columns that need not be.

    The first columns of all groups are correlated, and so are the second ones, and so on. Records
    that are masked together in one group are likely to be together in the next, so that more
    records are equal in all of them: they are safer, and lose more, than with :func:`correlated`.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        The data to be masked; one pass over `columns`.
    columns : list
        Numeric columns to group.
    size : int
        Columns of a group, from 1 to the number of columns.
    leftover : {"group", "drop"}, default "group"
        If `size` does not divide the number of columns: "group" makes a smaller last group, of
        columns that are correlated with the first ones of the other groups; "drop" leaves columns
        out of all groups: masking will not protect them.

    Returns
    -------
    list of lists
        The groups. Columns at the same place in different groups belong together.

    See Also
    --------
    correlated : Groups of columns that are correlated with each other.

    Notes
    -----
    Sets of correlated columns, as many as a group has columns and each with as many columns as
    there are groups, are found as the groups of :func:`correlated` are. The first group takes the
    first column of every set, the second group the second, and so on.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask import grouping
    >>> x, y = [1, 2, 3, 4], [1, -1, -1, 1]
    >>> df = pd.DataFrame({"a": x, "b": y, "c": x, "d": y})
    >>> grouping.spread(df, ["a", "b", "c", "d"], 2)
    [['a', 'b'], ['c', 'd']]
    """
    names, size = _check(frame, columns, size, leftover)
    number, rest = divmod(len(names), size)
    larger = rest if leftover == "group" else 0
    sizes = [number + 1] * larger + [number] * (size - larger)
    sets = _sets(_strength(frame, names), sizes)
    return [
        [names[members[place]] for members in sets if place < len(members)]
        for place in range(sizes[0])
    ]


def _check(
    frame: Frame, columns: Sequence[Hashable], size: int, leftover: str
) -> tuple[tuple[Hashable, ...], int]:
    names = arguments.column_list(columns)
    meta = arguments.unique_columns(frame)
    arguments.existing(meta, names, "columns")
    check_numeric(meta, names)
    if isinstance(size, Integral) and not 1 <= size <= len(names):
        raise SdcValueError(
            f"size must be from 1 to {len(names)}, the number of columns, received {size}."
        )
    arguments.one_of(leftover, "leftover", LEFTOVERS)
    return names, arguments.whole_number(size, "size", 1)


def _strength(frame: Frame, names: Sequence[Hashable]) -> NDArray[np.float64]:
    """Return absolute correlations between columns, and 0 on the diagonal."""
    strength = np.abs(co_moments(frame, names).correlation()).round(_DECIMALS)
    np.fill_diagonal(strength, 0.0)
    return strength


def _sets(strength: NDArray[np.float64], sizes: Sequence[int]) -> list[list[int]]:
    """Put columns into sets of the given sizes, with strong pairs within.

    Returns
    -------
    list of lists of int
        Sorted sets: larger ones first, then by their first column.
    """
    columns = len(strength)
    outside = len(sizes)
    in_order = np.repeat(range(outside + 1), [*sizes, columns - sum(sizes)])
    found = [_exchange(strength, np.roll(in_order, first), outside) for first in range(columns)]
    _, place = max(found, key=lambda each: each[0])  # the first of equals
    sets = [np.flatnonzero(place == number).tolist() for number in range(outside)]
    return sorted(sets, key=lambda members: (-len(members), members[0]))


def _exchange(
    strength: NDArray[np.float64], start: NDArray[np.int64], outside: int
) -> tuple[float, NDArray[np.int64]]:
    """Exchange two columns of different sets for as long as the sum over the sets grows.

    Parameters
    ----------
    strength : ndarray, shape (d, d)
        What two columns of one set count; 0 on the diagonal.
    start : ndarray of int, shape (d,)
        Numbers of the columns' sets.
    outside : int
        The highest number, that of the columns in no set, which count nothing.

    Returns
    -------
    tuple of float and ndarray
        The sum, and the numbers of the columns' sets.
    """
    place = start.copy()
    while True:
        belongs = np.eye(outside + 1)[place]
        belongs[:, outside] = 0.0
        # What column i adds up to in the place of column j; on the diagonal, where it is.
        instead = (strength @ belongs)[:, place] - strength * (place != outside)
        now = instead.diagonal()
        gain = (instead + instead.T - now - now[:, None]).round(_DECIMALS)
        gain[place == place[:, None]] = 0.0
        i, j = np.unravel_index(gain.argmax(), gain.shape)
        if gain[i, j] <= 0:
            return round(float(now.sum()) / 2, _DECIMALS), place
        place[i], place[j] = place[j], place[i]
