"""Ranks and quantiles by counting, against sorting with numpy."""

from __future__ import annotations

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

from sdc_dask.engine import ranks
from sdc_dask.engine.ranks import ranks_of, values_at


def columns_of(n: int) -> pd.DataFrame:
    """Values with and without ties, skewed ones, and missing cells."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "even": rng.normal(size=n),
            "tied": rng.integers(0, 7, n).astype(float),
            "skewed": rng.lognormal(0, 9, n),
            "some": np.where(rng.random(n) < 0.3, np.nan, rng.normal(size=n)),
        }
    )
    frame.loc[0, "tied"] = -0.0
    return frame


@pytest.mark.parametrize("parts", [None, 1, 7])
def test_ranks_are_those_of_a_sort(parts: int | None) -> None:
    frame = columns_of(2_000)
    sought = [np.append(frame[name].dropna().to_numpy()[:50], [-1e9, 0.5, 1e9]) for name in frame]
    given = frame if parts is None else dd.from_pandas(frame, npartitions=parts)
    for name, values, (below, upto) in zip(
        frame, sought, ranks_of(given, list(frame), sought), strict=True
    ):
        order = np.sort(frame[name].dropna().to_numpy())
        np.testing.assert_array_equal(below, np.searchsorted(order, values))
        np.testing.assert_array_equal(upto, np.searchsorted(order, values, side="right"))


@pytest.mark.parametrize("parts", [None, 1, 7])
@pytest.mark.parametrize("narrow", [False, True], ids=["in one go", "in several"])
def test_values_at_ranks_are_those_of_a_sort(
    parts: int | None, narrow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if narrow:
        # Few borders and little room, so that cells have to be cut again and again.
        monkeypatch.setattr(ranks, "BORDERS", 8)
        monkeypatch.setattr(ranks, "MOST_BORDERS", 300)
        monkeypatch.setattr(ranks, "MOST_COLLECTED", 150)
    frame = columns_of(2_000)
    wanted = [np.array([0, 5, 5, 700, len(frame[name].dropna()) - 1]) for name in frame]
    given = frame if parts is None else dd.from_pandas(frame, npartitions=parts)
    for name, places, found in zip(
        frame, wanted, values_at(given, list(frame), wanted), strict=True
    ):
        order = np.sort(frame[name].dropna().to_numpy() + 0.0)
        np.testing.assert_array_equal(found, order[places])


def test_passes_count_as_many_borders_as_fit() -> None:
    most = ranks.MOST_BORDERS
    assert ranks.together({0: 1, 1: most - 1, 2: 1, 3: 2 * most}) == [[0, 1], [2], [3]]
