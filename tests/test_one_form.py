"""Floats that maskings compare have one zero and one way of missing: k holds for bits, too."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from frames_of import FLOATS, array_of, cells, texts_of
from hypothesis import given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

import sdc_dask
from sdc_dask import Microaggregation, RankSwap, Recode, Suppress

ODD = [np.nan] * 3 + [None] * 3 + [-0.0] * 3 + [0.0] * 3 + [1.5] * 6
SPECS = [
    Microaggregation(["x"], k=6, by="g"),
    Microaggregation(["x"], k=6, by="g", small="merge"),
    RankSwap(["x"], p=20, by="g"),
    Suppress(["g"], k=6),
    Recode(["g"], top=5.0),
]


def name_of(spec: Any) -> str:
    return spec.kind + ("-merge" if getattr(spec, "small", None) == "merge" else "")


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
@pytest.mark.parametrize("dtype", FLOATS)
def test_whoever_sees_bits_counts_k(spec: Any, dtype: str) -> None:
    frame = pd.DataFrame({"x": np.arange(18.0), "g": array_of(ODD, dtype)})
    before = texts_of(frame["g"])
    result = frame.sdc.mask(spec, random_state=1 if spec.draws else None)
    assert texts_of(frame["g"]) == before
    assert result["g"].dtype == frame["g"].dtype
    assert sorted(Counter(texts_of(result["g"])).values()) == [6, 6, 6]
    assert result.sdc.anonymity(["g"], k=6).below_k == 0
    parts = dd.from_pandas(frame, npartitions=4)
    masked = parts.sdc.mask(spec, random_state=1 if spec.draws else None)
    assert_frame_equal(masked.compute(), result)


@pytest.mark.parametrize("spec", SPECS, ids=name_of)
def test_files_are_as_frames_are(spec: Any, tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.arange(18.0), "g": pa.array(ODD)}), tmp_path / "in.parquet")
    frame = pd.read_parquet(tmp_path / "in.parquet", dtype_backend="pyarrow")
    seed = {"random_state": 1} if spec.draws else {}
    sdc_dask.protect(
        tmp_path / "in.parquet", tmp_path / "out", spec, keep="*", order="source", **seed
    )
    released = pd.read_parquet(tmp_path / "out", dtype_backend="pyarrow")
    assert_frame_equal(released, frame.sdc.mask(spec, **seed))


@settings(max_examples=40)
@given(st.data())
def test_suppression_of_floats_of_both_kinds(data: st.DataObject) -> None:
    n = data.draw(st.integers(6, 30))
    kinds = [data.draw(st.sampled_from(FLOATS)) for _ in range(2)]
    frame = pd.DataFrame(
        {
            name: array_of(data.draw(cells(n, [0.0, -0.0, 1.5, np.nan, None])), kind)
            for name, kind in zip("ab", kinds, strict=True)
        }
    )
    masked = frame.sdc.suppress(["a", "b"], k=3)
    seen = Counter(zip(*(texts_of(masked[name]) for name in "ab"), strict=True))
    assert min(seen.values()) >= 3
