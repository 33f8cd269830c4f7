"""Pictures and tables for people who look: matplotlib, and HTML of notebooks."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot

import sdc_dask
from sdc_dask import plots


@pytest.fixture(autouse=True)
def _no_window() -> Iterator[None]:
    matplotlib.use("Agg")
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    return sdc_dask.datasets.uniform(400, 3, seed=1).compute()


def test_blocks(frame: pd.DataFrame) -> None:
    blocks = frame.sdc.blocks(list(frame), k=3, max_block=60)
    ax = blocks.plot("x2", "x0")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("x2", "x0")
    (boxes,) = ax.collections
    assert len(boxes.get_paths()) == len(blocks)
    assert boxes.get_array().sum() == 400
    assert blocks.plot(ax=ax) is ax
    with pytest.raises(KeyError, match="not made of 'x9'"):
        blocks.plot("x9")
    with pytest.raises(ValueError, match="blocks of one column"):
        frame.sdc.blocks(["x0"], k=3).plot()


def test_map_of_risk_and_loss(frame: pd.DataFrame) -> None:
    columns = list(frame)
    masked = {str(k): frame.sdc.microaggregate(columns, k=k) for k in (3, 30)}
    table = frame.sdc.compare(masked)
    ax = plots.risk_utility(table)
    assert [line.get_label() for line in ax.lines] == ["frontier"]
    np.testing.assert_array_equal(ax.lines[0].get_ydata(), table["risk"])
    found = frame.sdc.suggest(columns, [sdc_dask.Microaggregation(columns, k=3)])
    assert found.plot(ax) is ax
    with pytest.raises(ValueError, match="needs a table of compare or suggest"):
        plots.risk_utility(frame)


def test_a_column_before_and_after(frame: pd.DataFrame) -> None:
    ax = frame.sdc.plot(frame.sdc.microaggregate(list(frame), k=40), "x1", k=30)
    before, after = ax.patches
    assert min(before.get_data().values.min(), after.get_data().values.min()) > 0
    inner = before.get_data().edges[1:-1]
    for edge in (inner[0], inner[-1]):
        assert 30 <= (frame["x1"] <= edge).sum() <= 370
    with pytest.raises(ValueError, match="too few records"):
        frame.sdc.plot(frame, "x1", k=300)
    with pytest.raises(KeyError, match="does not have: 'nobody'"):
        frame.sdc.plot(frame, "nobody")


def test_no_matplotlib(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    really = builtins.__import__

    def without(name: str, *args: Any) -> Any:
        if name.startswith("matplotlib"):
            raise ImportError(name)
        return really(name, *args)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'sdc-dask\[plot\]'"):
        frame.sdc.plot(frame, "x1")


def test_html_of_results_and_specs(frame: pd.DataFrame) -> None:
    masked = frame.sdc.microaggregate(["x0"], k=3)
    html = frame.sdc.sse(masked, ["x0"])._repr_html_()
    assert html.startswith("<table>") and "sse / sst: the share" in html
    spec = sdc_dask.RankSwap(["<b>"], p=5)
    assert "&lt;b&gt;" in spec._repr_html_() and "<b>" not in spec._repr_html_()
    assert "percentage of the records" in spec._repr_html_()
    for other in (frame.sdc.information_loss(masked), frame.sdc.blocks(["x0"], k=3)):
        assert other._repr_html_().startswith("<pre>")
