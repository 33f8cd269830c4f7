"""Which records an intruder is taken to know if not all of them are tried."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.errors import SdcValueError

AUTO = "auto"
MOST_OF_ALL = 10_000  # records up to which "auto" tries all
AUTO_SIZE = 5_000  # records that it draws from more


@dataclass(frozen=True)
class Sampling:
    """How many records are tried, and which: the same ones whenever it is asked.

    Examples
    --------
    >>> every = Sampling.of(None)
    >>> every.rows(4)
    array([0, 1, 2, 3])
    >>> some = Sampling.of("auto", random_state=1)
    >>> len(some.rows(10_000)), len(some.rows(10_001))
    (10000, 5000)
    """

    size: int | str | None
    entropy: int

    @classmethod
    def of(cls, sample: Any, random_state: Any = None) -> Sampling:
        """Check what a caller asks for; a random state of None is drawn here, once."""
        if isinstance(sample, str):
            if sample != AUTO:
                raise SdcValueError(
                    f"sample must be a whole number of at least 1, 'auto' or None, received "
                    f"{sample!r}."
                )
        elif sample is not None:
            sample = arguments.whole_number(sample, "sample", 1)
        elif random_state is not None:
            raise SdcValueError(
                "random_state has a meaning with sample alone: nothing is drawn if all records are "
                "tried."
            )
        return cls(sample, arguments.entropy(random_state))

    def rows(self, n: int) -> NDArray[np.int64]:
        """Return the rows of n that are tried, in order."""
        size = self.size
        if isinstance(size, str):
            size = None if n <= MOST_OF_ALL else AUTO_SIZE
        return draw_rows(n, size, self.entropy)


def draw_rows(n: int, sample: int | None, entropy: int) -> NDArray[np.int64]:
    """Draw rows without replacement; the same ones however the data is cut into partitions.

    Parameters
    ----------
    n : int
        Number of records.
    sample : int or None
        How many to draw; all if it is None or not less than n.
    entropy : int
        What the draw depends on, and nothing else.

    Returns
    -------
    ndarray of int64
        Row numbers from 0 to n - 1, sorted.

    Examples
    --------
    >>> draw_rows(1_000_000, 3, entropy=0).tolist() == draw_rows(1_000_000, 3, entropy=0).tolist()
    True
    >>> draw_rows(4, 10, entropy=0)
    array([0, 1, 2, 3])
    """
    if sample is None or sample >= n:
        return np.arange(n)
    return np.sort(np.random.default_rng(entropy).choice(n, sample, replace=False, shuffle=False))


def tried_of(tried: int, n: int) -> str:
    """Return how many of n records are tried, in words.

    Examples
    --------
    >>> tried_of(5_000, 20_000), tried_of(20_000, 20_000)
    ('a random sample of 5,000 of 20,000 records was tried', 'all records were tried')
    """
    if tried < n:
        return f"a random sample of {tried:,} of {n:,} records was tried"
    return "all records were tried"
