"""Cells that look like codes of missing ones, such as -9 or 9999: piles at the ends of a column.

They are found in passes that are made for something else. Partial results add up with ``+``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sdc_dask.errors import FEWEST_ADVISED, CodedMissingAdvice, warn

# Values that stand for missing cells in many files. -1 is too often a value.
_CODES = frozenset(
    [
        *(
            sign * float(str(digit) * times)
            for digit in (8, 9)
            for times in range(1, 8)
            for sign in (-1, 1)
        ),
        *(-7.0, -77.0, -777.0, -97.0, -98.0, 97.0, 98.0, 998.0, 9998.0),
    ]
)
_FEWEST_CODED = 5  # cells that make a pile, or a thousandth of all


@dataclass(frozen=True)
class Ends:
    """Both ends of a column's values."""

    n: int  # values
    low: float
    below: Pile
    above: Pile

    @classmethod
    def of(cls, values: NDArray[np.float64]) -> Ends:
        """Look at finite values of a partition."""
        low = float(values.min(initial=np.inf))
        return cls(len(values), low, Pile.of(values, -1), Pile.of(values, 1))

    def __add__(self, other: Ends) -> Ends:
        return Ends(
            self.n + other.n,
            min(self.low, other.low),
            self.below + other.below,
            self.above + other.above,
        )

    @property
    def piles(self) -> list[Pile]:
        """The ends at which cells look like codes of missing ones.

        They are many, and lie beyond a gap: where all other values are at least 0, or where the
        next is more than 1 away.
        """
        if self.n < FEWEST_ADVISED:
            return []
        fewest = max(_FEWEST_CODED, self.n // 1000)
        apart = (
            (self.below, self.below.inner >= 0 > self.low),
            (self.above, self.above.inner >= 0 and self.above.gap > 1),
        )
        return [pile for pile, is_apart in apart if is_apart and pile.count >= fewest]

    @property
    def coded(self) -> int:
        """How many cells look like codes of missing ones."""
        return sum(pile.count for pile in self.piles)


@dataclass(frozen=True)
class Pile:
    """Cells at one end of a column whose values are usual codes of missing cells.

    Partial results of partitions add up with ``+``.
    """

    side: int  # -1 below, 1 above
    codes: tuple[tuple[float, int], ...]  # values and cells, by value
    rest: float  # the value at this end without them, times the side; -inf if there is none

    @classmethod
    def of(cls, values: NDArray[np.float64], side: int) -> Pile:
        """Look at one end of the values of a partition, again as long as there is a code."""
        least, ends = (np.inf, np.min) if side < 0 else (-np.inf, np.max)
        found = []
        end = float(ends(values, initial=least))
        while end in _CODES:
            found.append((end, int((values == end).sum())))
            end = float(ends(values[values * side < end * side], initial=least))
        return cls(side, tuple(sorted(found)), end * side)

    def __add__(self, other: Pile) -> Pile:
        rest = max(self.rest, other.rest)
        cells = Counter(dict(self.codes)) + Counter(dict(other.codes))
        # What is not beyond all other values is one of them.
        codes = sorted(each for each in cells.items() if each[0] * self.side > rest)
        return Pile(self.side, tuple(codes), rest)

    @property
    def count(self) -> int:
        """Cells of codes."""
        return sum(cells for _, cells in self.codes)

    @property
    def where(self) -> str:
        """Where the codes are found, in words that show none of them."""
        end = "smallest" if self.side < 0 else "largest"
        return f"its {end} value" if len(self.codes) == 1 else f"its {len(self.codes)} {end} values"

    @property
    def inner(self) -> float:
        """The value at this end without codes."""
        return self.rest * self.side

    @property
    def gap(self) -> float:
        """How far the next code is from there; 0 if there is none."""
        return min((abs(code - self.inner) for code, _ in self.codes), default=0.0)


def advise_coded(columns: Mapping[Hashable, Ends], *, named: bool = True) -> None:
    """Warn of cells that look like codes of missing ones, and are masked as values.

    They can be `named` in missing_values= of most maskings.
    """
    coded = [
        f"{name!r} ({pile.count} records with {pile.where})"
        for name, ends in columns.items()
        for pile in ends.piles
    ]
    if coded:
        warn(
            f"cells look like codes of missing ones, such as -9 or 9999: {', '.join(coded)}. "
            "They are masked as values. If they are codes, "
            + (
                "name them, for instance missing_values=[-9]."
                if named
                else "fill them or drop those records first."
            ),
            CodedMissingAdvice,
        )
