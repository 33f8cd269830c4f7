"""sse and anonymity, against pandas."""

from __future__ import annotations

from collections.abc import Callable

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest

import sdc_dask
from sdc_dask.risk import anonymity


@pytest.mark.parametrize("npartitions", [1, 7])
def test_sse_equals_pandas(
    scheduler: str, npartitions: int, standardized_sse: Callable[..., float]
) -> None:
    frame = sdc_dask.datasets.uniform(3_000, 3).compute()
    masked = frame.sdc.microaggregate(list(frame.columns), 4, max_block=500)
    lazy, other = (dd.from_pandas(each, npartitions=npartitions) for each in (frame, masked))
    result = lazy.sdc.sse(other)
    assert result == frame.sdc.sse(masked)  # to the last bit
    assert result.sse == pytest.approx(standardized_sse(frame, masked), rel=1e-12)
    assert result.sst == 9_000
    assert result.ratio == result.sse / result.sst
    assert sum(result.by_column.values()) == pytest.approx(result.sse)


def test_sse_of_badly_scaled_data() -> None:
    rng = np.random.default_rng(0)
    small = pd.DataFrame({"x": np.round(rng.normal(size=500) * 2**16) / 2**16})
    masked = (small * 8).round() / 8  # exact in binary
    expected = small.sdc.sse(masked).sse
    moved = (small + 2**30).sdc.sse((small + 2**30) - (small - masked)).sse
    assert moved == pytest.approx(expected, rel=1e-9)
    huge = (small * 1e200).sdc.sse(masked * 1e200).sse
    assert huge == pytest.approx(expected, rel=1e-12)


def test_sse_of_missing_and_constant_columns() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, np.nan, 4.0], "c": 7.0})
    masked = frame.assign(x=[1.5, 1.5, np.nan, 4.0])
    result = frame.sdc.sse(masked)
    assert result.sst == 3
    assert result.by_column == {"x": pytest.approx(0.5 / np.nanvar(frame["x"])), "c": 0.0}
    with pytest.raises(ValueError, match=r"'x' has 1 cells that are missing in one frame"):
        frame.sdc.sse(masked.fillna(0.0))


def test_sse_of_one_group_is_sst() -> None:
    frame = sdc_dask.datasets.uniform(1_000, 2).compute()
    mean = frame * 0 + frame.mean()
    assert frame.sdc.sse(mean).ratio == pytest.approx(1)


def test_sse_refuses_frames_that_do_not_zip(scheduler: str) -> None:
    frame = sdc_dask.datasets.uniform(100, 2, npartitions=2)
    pandas = frame.compute()
    with pytest.raises(ValueError, match="2 partitions, the original 4"):
        sdc_dask.datasets.uniform(100, 2, npartitions=4).clear_divisions().sdc.sse(frame)
    with pytest.raises(TypeError, match="pandas with pandas"):
        frame.sdc.sse(pandas)
    with pytest.raises(ValueError, match="partition 0 of the masked frame has other rows"):
        pandas.sdc.sse(pandas.iloc[::-1].reset_index(drop=True).set_axis(range(1, 101)))
    with pytest.raises(ValueError, match="partition 0 of the masked frame has other rows"):
        pandas.set_axis([0] * 100).sdc.sse(pandas)
    with pytest.raises(ValueError, match="other divisions than the original"):
        frame.sdc.sse(dd.from_pandas(pandas.iloc[:50], npartitions=2))
    with pytest.raises(ValueError, match="99 rows against 100"):
        pandas.sdc.sse(pandas.iloc[1:])
    with pytest.raises(KeyError, match="does not have: 'x9'"):
        frame.sdc.sse(frame, ["x9"])


def test_rows_in_another_order_are_aligned_by_their_index() -> None:
    pandas = sdc_dask.datasets.uniform(100, 2).compute()
    masked = pandas.sdc.microaggregate(["x0", "x1"], 4)
    expected = pandas.sdc.sse(masked)
    assert pandas.sdc.sse(masked.iloc[::-1]) == expected
    assert pandas.sdc.sse(masked.sample(frac=1, random_state=0)) == expected
    lazy = dd.from_pandas(pandas, npartitions=4)
    assert lazy.sdc.sse(dd.from_pandas(masked, npartitions=7)) == expected
    backwards = dd.from_pandas(masked, npartitions=4).map_partitions(lambda part: part.iloc[::-1])
    assert lazy.sdc.sse(backwards) == expected


@pytest.mark.parametrize("npartitions", [1, 7])
@pytest.mark.long_on_cluster
def test_anonymity_equals_pandas(
    scheduler: str, npartitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(anonymity, "PARTITIONS_A_BUCKET", 3)
    frame = sdc_dask.datasets.survey(5_000, npartitions=npartitions)
    columns = ["region", "sex", "age", "hours", "household", "occupation", "rent", "interview"]
    pandas = frame.compute()
    for some in (columns[:2], columns[4:6], columns):
        sizes = pandas.groupby(some, dropna=False, observed=True).size()
        small = sizes[sizes < 3]
        expected = (5_000, len(sizes), sizes.min(), 5_000 / len(sizes), 3, len(small), small.sum())
        own = (
            pandas.groupby(some, dropna=False, observed=True)["person"]
            .transform("size")
            .astype("int64")
        )
        for each in (frame, pandas):
            result = each.sdc.anonymity(some, k=3)
            assert tuple(result.to_dict().values()) == pytest.approx(expected)
            of_records = each.sdc.class_size(some)
            found = of_records if each is pandas else of_records.compute()
            pd.testing.assert_series_equal(found, own, check_names=False)


def test_anonymity_compares_bits() -> None:
    frame = pd.DataFrame({"x": [0.0, -0.0, 0.1 + 0.2, 0.3, 0.3]})
    assert frame.sdc.anonymity(["x"]).classes == 4
    assert frame.sdc.anonymity(["x"]).below_k is None


def test_anonymity_of_many_classes_and_of_one() -> None:
    many = pd.DataFrame({"x": np.arange(300_000)})
    assert many.sdc.anonymity(["x"]).classes == 300_000
    one = pd.DataFrame({"x": np.full(300_000, 7), "y": "same"})
    assert one.sdc.anonymity(["x", "y"]).k_min == 300_000
    lazy = dd.from_pandas(many // 3, npartitions=100)
    result = lazy.sdc.anonymity(["x"], k=4)
    assert (result.classes, result.k_min, result.below_k) == (100_000, 3, 100_000)


def test_results_are_plain_numbers() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 5.0]})
    result = frame.sdc.sse(frame.sdc.microaggregate(["x"], 2))
    assert type(result.sse) is float
    assert result.to_frame()["sse"].tolist() == [result.sse]
    assert "lower is better" in repr(result)
    classes = frame.sdc.anonymity(["x"])
    assert [type(value) for value in classes.to_dict().values()][:4] == [int, int, int, float]


def test_sse_refuses_infinite_values_and_double_names() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, np.inf]})
    with pytest.raises(ValueError, match=r"'x' of the original frame has 1 infinite values"):
        frame.sdc.sse(frame)
    with pytest.raises(ValueError, match="named more than once"):
        frame.sdc.sse(frame, ["x", "x"])


def test_anonymity_of_mixed_objects_and_of_any_nan() -> None:
    mixed = pd.DataFrame({"x": pd.Series([1, "1", 1, "1"], dtype=object)})
    assert mixed.sdc.anonymity(["x"]).classes == 2
    nan = pd.DataFrame({"x": [np.nan, -np.nan, np.nan, -np.nan]})
    assert nan.sdc.anonymity(["x"]).k_min == 4


def test_results_of_many_columns_are_wrapped() -> None:
    frame = sdc_dask.datasets.uniform(50, 30).compute()
    lines = repr(frame.sdc.sse(frame + 0.5)).splitlines()
    assert max(map(len, lines)) <= 100
    shown = " ".join(lines)
    assert all(f"x{j}: " in shown for j in range(30))
