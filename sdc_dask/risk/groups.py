"""Anonymity of data whose columns were masked in groups, by the groups that an intruder knows.

Masking a group of columns makes at least k records equal in it. Records that are equal in one
group differ in another, so that few are equal in several: how many is counted here.

References
----------
J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, section 3.1.1.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import getitem

import pandas as pd

from sdc_dask import arguments
from sdc_dask.engine.classes import merged_class_sizes, partition_classes
from sdc_dask.engine.frames import Calls, Frame, map_partitions
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.classes import ClassCounts
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import PARTITIONS_A_BUCKET, of_sizes


@dataclass(frozen=True, repr=False)
class ExpectedAnonymity(Result):
    """k' of random data that was masked in groups."""

    expected: float = field(metadata={"note": "k', records over expected distinct records"})
    low: float = field(metadata={"note": "by the upper bound of the literature"})
    high: float = field(metadata={"note": "by the lower bound of the literature"})


@dataclass(frozen=True, repr=False)
class GroupAnonymity(Result):
    """Classes of equal records for an intruder who knows the first r groups of columns.

    The entry r - 1 of a tuple is that of r known groups.
    """

    rows: int
    k: int | None
    groups: tuple[tuple[Hashable, ...], ...]
    classes: tuple[int, ...]
    k_min: tuple[int, ...]
    k_mean: tuple[float, ...]
    expected: tuple[float, ...] | None

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each number of known groups."""
        table = {
            "known": range(1, len(self.groups) + 1),
            "classes": self.classes,
            "k_min": self.k_min,
            "k_mean": self.k_mean,
        }
        if self.expected is not None:
            table["expected"] = self.expected
        return pd.DataFrame(table)

    def __repr__(self) -> str:
        """Show the table, and what its columns are."""
        asked = "" if self.k is None else f", k = {self.k:,}"
        lines = [f"GroupAnonymity of {self.rows:,} records in {len(self.groups)} groups{asked}"]
        show = {"classes": "{:,}".format, "k_min": "{:,}".format}
        table = self.to_frame().to_string(
            index=False, formatters=show, float_format="{:.6g}".format
        )
        lines += [f"  {line}" for line in table.splitlines()]
        notes = {
            "known": "the groups that an intruder knows, the first ones",
            "classes": "distinct records in their columns",
            "k_min": "records of the smallest class: higher is safer",
            "k_mean": "k', records over distinct records",
        }
        if self.expected is not None:
            notes["expected"] = "k' if the groups had nothing to do with each other"
        return "\n".join([*lines, *(f"  {name:<10} {note}" for name, note in notes.items())])


def group_anonymity(
    frame: Frame, groups: Sequence[Sequence[Hashable]], k: int | None = None
) -> GroupAnonymity:
    """Count classes of records that are equal in the first group, the first two, and so on.

    One pass for all of them. Numbers are compared by their bits, missing cells are equal to each
    other.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        Masked data.
    groups : list of lists
        The groups of columns that were masked, of any kind; the first ones are those that an
        intruder is taken to know first.
    k : int, optional
        The k that each group was masked with, to say what could be expected.

    Returns
    -------
    GroupAnonymity
        ``classes``, ``k_min`` (the smallest class), ``k_mean`` (k', records over distinct
        records) and ``expected`` (k' of random data, see :func:`expected_anonymity`), each a
        tuple with one entry for every number of known groups.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.risk.groups import group_anonymity
    >>> masked = pd.DataFrame({"a": [1, 1, 1, 2, 2, 2], "b": [3, 3, 4, 4, 4, 3]})
    >>> group_anonymity(masked, [["a"], ["b"]], k=3)
    GroupAnonymity of 6 records in 2 groups, k = 3
       known classes k_min  k_mean  expected
           1       2     3       3   3.04762
           2       4     1     1.5   1.82477
      known      the groups that an intruder knows, the first ones
      classes    distinct records in their columns
      k_min      records of the smallest class: higher is safer
      k_mean     k', records over distinct records
      expected   k' if the groups had nothing to do with each other
    """
    names = _check_groups(frame, groups)
    if k is not None:
        k = arguments.whole_number(k, "k", 1)
    known = list(accumulate(names))  # the columns of the first group, of the first two, ...
    call = Calls.of(frame)
    partials = map_partitions([frame[list(known[-1])]], _chunk, known)
    buckets = -(-len(partials) // PARTITIONS_A_BUCKET)
    by_known = [[call(getitem, partial, r) for partial in partials] for r in range(len(known))]
    sizes = call.compute([merged_class_sizes(call, each, buckets) for each in by_known])
    found = [of_sizes(each, None) for each in sizes]
    rows = found[0].rows
    expected = None
    if k is not None:
        expected = tuple(expected_anonymity(rows, k, r).expected for r in range(1, len(names) + 1))
    return GroupAnonymity(
        rows,
        k,
        names,
        tuple(each.classes for each in found),
        tuple(each.k_min for each in found),
        tuple(each.k_mean for each in found),
        expected,
    )


def expected_anonymity(n: int, k: int, r: int) -> ExpectedAnonymity:
    """Return k' of n random records after r groups of columns were masked with k.

    Each group has ceil(n/k) centroids, so that there are m = ceil(n/k)**r possible records. If
    the groups have nothing to do with each other, masking draws n of them with replacement. A
    record is not drawn with the probability (1 - 1/m)**n, and s = m (1 - (1 - 1/m)**n) different
    ones are expected: k' = n/s.

    Parameters
    ----------
    n : int
        Number of records.
    k : int
        Records of a masked group.
    r : int
        Number of groups of columns that an intruder knows.

    Returns
    -------
    ExpectedAnonymity
        ``expected`` is n/s. ``low`` and ``high`` are n/s with the bounds that the literature has
        for s, see Notes.

    Notes
    -----
    Real data mostly does better than this, for its columns have to do with each other. The model
    is a rough one: microaggregation makes floor(n/k) groups at most, with which k' would be a
    little higher, and for r = 1 all centroids occur, so that k' is not left to chance.

    Nin bounds s by m (1 - exp(-n/m)) + 0.1839 and + 0.3678 (equation 3.1, which has m/n for n/m
    in print; with n/m it gives the k' between 1.915 and 1.918 that he reports for n = 380, k = 25
    and r = 2). These bounds hold only where n is near m. In general s exceeds m (1 - exp(-n/m))
    by more than 0 and at most 1/e = 0.3679, for large m by (n/m) exp(-n/m) / 2, which is at most
    0.1839. So `expected` is often a little above `high`. It needs no bounds, since it is exact.

    Examples
    --------
    >>> from sdc_dask.risk.groups import expected_anonymity
    >>> expected_anonymity(380, k=25, r=2)
    ExpectedAnonymity
      expected   1.91776               k', records over expected distinct records
      low        1.91583               by the upper bound of the literature
      high       1.91761               by the lower bound of the literature
    """
    n = arguments.whole_number(n, "n", 1)
    k = arguments.whole_number(k, "k", 1)
    r = arguments.whole_number(r, "r", 1)
    possible = (-(-n // k)) ** r
    # m may be far beyond float64, its inverse then is 0: as many different records as records.
    ratio = n / possible
    limit = n * (-math.expm1(-ratio) / ratio) if ratio else float(n)
    return ExpectedAnonymity(_expected(n, possible), n / (limit + 0.3678), n / (limit + 0.1839))


def _expected(n: int, possible: int) -> float:
    if possible == 1:
        return float(n)
    share = 1 / possible
    return n * share / -math.expm1(n * math.log1p(-share)) if share else 1.0


def _chunk(
    part: pd.DataFrame, _number: int, known: list[tuple[Hashable, ...]]
) -> list[ClassCounts]:
    return [partition_classes(part, columns) for columns in known]


def _check_groups(
    frame: Frame, groups: Sequence[Sequence[Hashable]]
) -> tuple[tuple[Hashable, ...], ...]:
    """Return groups of existing columns of any kind."""
    meta = arguments.unique_columns(frame)
    if not isinstance(groups, (list, tuple)) or not all(
        isinstance(group, (list, pd.Index)) for group in groups
    ):
        raise SdcTypeError(
            "groups must be a list of lists of column names, as the columns were masked. For one "
            "group pass a list with one list."
        )
    names = tuple(tuple(group) for group in groups)
    if not names or not all(names):
        raise SdcValueError("groups is empty or has an empty group: name the columns of each.")
    named = [column for group in names for column in group]
    arguments.existing(meta, named, "groups")
    double = sorted({repr(column) for column in named if named.count(column) > 1})
    if double:
        raise SdcValueError(
            f"groups name columns more than once: {', '.join(double)}. A column belongs to one "
            "group."
        )
    return names
