"""Free ranks: counted and found as in a list of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sdc_dask.kernels.free_ranks import all_free, count_below, find, is_free, take


@pytest.mark.parametrize("n", [1, 63, 64, 65, 511, 512, 513, 1_024, 1_537, 5_000])
def test_all_are_free_at_first(n: int) -> None:
    free = all_free(n)
    assert [find(free, i) for i in range(n)] == list(range(n))
    assert [count_below(free, rank) for rank in range(n + 1)] == list(range(n + 1))
    assert find(free, n) == -1


@given(n=st.integers(1, 4_000), share=st.floats(0, 1), seed=st.integers(0, 10**6))
def test_what_is_left(n: int, share: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    taken = rng.choice(n, int(share * n), replace=False)
    free = all_free(n)
    for rank in taken:
        take(free, rank)
    left = np.setdiff1d(np.arange(n), taken)
    assert [is_free(free, rank) for rank in range(n)] == np.isin(np.arange(n), left).tolist()
    assert [find(free, i) for i in range(len(left))] == left.tolist()
    assert find(free, len(left)) == -1
    below = np.searchsorted(left, np.arange(n + 1)).tolist()
    assert [count_below(free, rank) for rank in range(n + 1)] == below
