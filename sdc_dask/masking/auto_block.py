"""max_block="auto": how large blocks may be."""

from __future__ import annotations


def auto_block(n: int, d: int, k: int) -> int:
    """Choose L from the number of records, columns and the group size."""
    return max(2 * k, 10_000)
