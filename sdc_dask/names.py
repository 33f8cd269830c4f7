"""What the name of a column says: that it marks records, weighs them, or says who they belong to.

A name is a hint, and no more: what is made of it is advice, or a default that is said.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable
from typing import TypeVar

_Name = TypeVar("_Name", bound=Hashable)
_NUMBER = r"(?:[\s_.-]?(?:no|nr|num|number))"
# Whole words at the end of a name: "paid", "grid" and "hundredweight" are none of them.
_MARKS = re.compile(
    rf"""(?ix)
    (?: ^ | [\s_.-] )
    (?: id | ids | identifier | key | serial | uuid | uid | guid | ssn
      | hh | hid | pid | person | household | respondent
      | (?: hh | case | row | record | person | household | respondent ) id
      | (?: hh | id | case | row | record | pers | person | household | respondent | serial )
        {_NUMBER}
      | (?: hh | [adfhip] )? (?: weight | weights | wgt | wt )
    )$
    | ^ (?: nr | w | pw | hw ) $
    | (?-i: [a-z] (?: ID | Id | Weight ) ) $
    """
)
_UNITS = re.compile(
    rf"""(?ix)
    (?: ^ | [\s_.-] )
    (?: (?: hh | household | family | person | respondent | individual )
        (?: [\s_.-]? (?: id | key ) | {_NUMBER} )?
      | hid | pid
    )$
    """
)


def is_mark(name: Hashable) -> bool:
    """Whether a column looks like an identifier or a weight.

    Examples
    --------
    >>> [name for name in ["pid", "caseNo", "hhweight", "paid", "nr_rooms"] if is_mark(name)]
    ['pid', 'caseNo', 'hhweight']
    """
    return bool(_MARKS.search(str(name)))


def units_among(names: Iterable[_Name]) -> list[_Name]:
    """Return the columns that look like persons or households that records belong to.

    Examples
    --------
    >>> units_among(["household", "hh_size", "personId", "income"])
    ['household', 'personId']
    """
    return [name for name in names if _UNITS.search(str(name))]
