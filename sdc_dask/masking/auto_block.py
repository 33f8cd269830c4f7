"""max_block="auto": the largest blocks that a budget of time and memory allows.

Larger blocks lose less: groups near the border of a block cannot take members from beyond it. The
price is MDAV's time, which grows with the block. The budget is that masking a record may cost
about as much as moving it, or ten seconds in all where that is more.
"""

from __future__ import annotations

import math

FEW_COLUMNS = 3
MICROSECONDS_A_RECORD = 1.0
SECONDS_IN_ALL = 10.0
LARGEST_CELLS = 2**21  # of a block: values, coordinates and the index fit into some 100 MB


def auto_blocking(d: int) -> str:
    """Choose how blocks of so many columns are cut: by the tree that loses less.

    With more columns, 2^d children at a time leave blocks far below L. With few, the two trees
    differ little on uniform data, and the 2^d-tree of the literature stays.

    Examples
    --------
    >>> auto_blocking(3), auto_blocking(4)
    ('tree', 'halves')
    """
    return "tree" if d <= FEW_COLUMNS else "halves"


def auto_block(n: int, d: int, k: int, *, indexed: bool = True) -> int:
    """Choose L from the number of records, of columns, and the group size.

    Where records cannot be `indexed`, as categories cannot, they are scanned.

    Examples
    --------
    >>> auto_block(20_000_000, 5, 5), auto_block(1_000_000, 5, 5), auto_block(1_000_000, 20, 5)
    (7400, 410000, 17000)
    """
    budget = max(MICROSECONDS_A_RECORD, SECONDS_IN_ALL * 1e6 / n)
    size = _brute_size(budget, d, k)
    if indexed:
        size = max(size, _indexed_size(budget, d, k))
    size = min(size, LARGEST_CELLS / d)
    return max(10 * k, _two_digits(size))


def linear_block(d: int) -> int:
    """Choose L for a method whose time grows with the records alone: as many as memory allows.

    Examples
    --------
    >>> linear_block(3)
    690000
    """
    return _two_digits(LARGEST_CELLS / d)


# Both models were fitted to benchmarks/kernels.py: uniform data, k = 3, one core.


def _brute_size(budget: float, d: int, k: int) -> float:
    """Return the records of a block that the scan masks in `budget` microseconds each."""
    return 20_000 * budget * (k / 3) / (3 + 0.8 * d)


def _indexed_size(budget: float, d: int, k: int) -> float:
    """Return the records of a block that the k-d tree masks in `budget` microseconds each."""
    at_20_000 = 0.35 * 1.43**d * (3 / k) ** 0.7
    power = math.log(budget / at_20_000) / (0.16 + 0.045 * d)
    return 20_000 * math.exp(min(power, 20.0))


def _two_digits(size: float) -> int:
    unit = 10 ** max(0, math.floor(math.log10(size)) - 1)
    return int(size // unit * unit)
