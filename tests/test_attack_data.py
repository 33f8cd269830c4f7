"""The data of large attacks: a rank swap by its definition, whatever its parts."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask.kernels.swaps import window_of

COLUMNS = ["x0", "x1", "x2"]


@pytest.fixture(scope="module")
def made() -> ModuleType:
    """Import a file that is no part of the package."""
    path = Path(__file__).parent.parent / "benchmarks" / "swapped_data.py"
    spec = importlib.util.spec_from_file_location("swapped_data", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("n", [1, 2, 3, 10, 99, 100, 101, 5_000])
def test_shuffled_numbers_are_all_numbers_whatever_the_parts(made: ModuleType, n: int) -> None:
    shuffled = made.Shuffled(n, np.random.default_rng(n))
    whole = shuffled.part(0, n)
    np.testing.assert_array_equal(np.sort(whole), np.arange(n))
    parts = [shuffled.part(begin, min(begin + 7, n)) for begin in range(0, n, 7)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


def test_shuffled_numbers_follow_no_order(made: ModuleType) -> None:
    one, other = (made.Shuffled(5_000, np.random.default_rng(s)).part(0, 5_000) for s in (1, 2))
    for first, second in ((one[:-1], one[1:]), (one, np.arange(5_000)), (one, other)):
        assert abs(np.corrcoef(first, second)[0, 1]) < 0.06  # four deviations


@pytest.mark.parametrize(("n", "p"), [(100, 1), (1_000, 5), (4_999, 1), (300, 100)])
def test_masked_columns_are_rank_swaps(made: ModuleType, n: int, p: float) -> None:
    original, masked = made.SwappedData(n, COLUMNS, p, seed=3).part(0, n)
    for name in COLUMNS:
        np.testing.assert_array_equal(np.sort(original[name]), np.arange(n))
        np.testing.assert_array_equal(np.sort(masked[name]), np.arange(n))
        moved = (masked[name] - original[name]).abs()
        assert 0 < moved.max() <= window_of(n, p)
    assert not original["x0"].equals(original["x1"])


def test_partners_are_those_that_the_masking_draws(made: ModuleType) -> None:
    column = pd.DataFrame({"x0": np.arange(2_000.0)})
    original, masked = made.SwappedData(2_000, ["x0"], 5, seed=3).part(0, 2_000)
    steps = (masked["x0"] - original["x0"]).abs()
    expected = (column.sdc.rank_swap(["x0"], p=5, random_state=1)["x0"] - column["x0"]).abs()
    np.testing.assert_allclose(steps.mean(), expected.mean(), rtol=0.1)
    np.testing.assert_allclose(steps.std(), expected.std(), rtol=0.1)


def test_files_hold_the_rows_and_who_knows_the_swap_misses_none(
    made: ModuleType, tmp_path: Path
) -> None:
    data = made.SwappedData(3_000, COLUMNS, 2, seed=1)
    paths = [tmp_path / "original", tmp_path / "masked"]
    data.write(paths, file_rows=250)  # more than ten: 10 must not come before 2
    frames = [dd.read_parquet(path) for path in paths]
    for frame, part in zip(frames, data.part(0, 3_000), strict=True):
        assert frame.npartitions == 12
        pd.testing.assert_frame_equal(frame.compute().reset_index(drop=True), part)
    spec = sdc_dask.RankSwap(COLUMNS, p=2)
    knowing = frames[0].sdc.linkage(frames[1], "rank_swap", knows=spec)
    assert "not what the intruder takes" not in knowing.note
    assert knowing.rate >= frames[0].sdc.linkage(frames[1], "distance").rate
