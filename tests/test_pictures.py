"""Pictures and tables for people who look: matplotlib, and HTML of notebooks."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator

import dask
import dask.dataframe as dd
import matplotlib
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot
from matplotlib.text import Text

import sdc_dask
from sdc_dask import plots
from sdc_dask.errors import SdcError


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
    with pytest.raises(TypeError, match=r"ax must be axes of matplotlib.*savefig"):
        blocks.plot(ax="blocks.png")
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


def test_numbers_of_points_can_be_read() -> None:
    # Points in a heap, some of them in one place, and others far away.
    near = [5 + 0.02 * (number // 2) for number in range(10)]
    table = pd.DataFrame({"risk": [90, *near, 1], "loss": [1, *near, 90]})
    ax = plots.risk_utility(table)
    ax.figure.draw_without_rendering()
    drawn = ax.figure.canvas.get_renderer()
    assert [text.get_text() for text in ax.texts[1:]] == [str(n) for n in range(1, 13)]
    # Without the lines that lead to points, and the room for letters that go below the line.
    boxes = [Text.get_window_extent(text, drawn).shrunk(0.9, 0.8) for text in ax.texts[1:]]
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))
    points = ax.transData.transform(table[["loss", "risk"]].to_numpy())
    assert not any(box.contains(x, y) for box in boxes for x, y in points)


def test_a_column_before_and_after(frame: pd.DataFrame) -> None:
    ax = frame.sdc.plot(frame.sdc.microaggregate(list(frame), k=40), "x1", k=30)
    before, after = ax.patches
    assert min(before.get_data().values.min(), after.get_data().values.min()) > 0
    inner = before.get_data().edges[1:-1]
    for edge in (inner[0], inner[-1]):
        assert 30 <= (frame["x1"] <= edge).sum() <= 370
    with pytest.raises(ValueError, match="too few records"):
        frame.sdc.plot(frame, "x1", k=300)
    with pytest.raises(SdcError, match="values"):
        many = pd.DataFrame({"x": [f"name {number}" for number in range(10_050)]})
        many.sdc.plot(many, "x")
    with pytest.raises(KeyError, match="does not have: 'nobody'"):
        frame.sdc.plot(frame, "nobody")


@pytest.mark.parametrize(
    "dtype",
    ["datetime64[ns]", "datetime64[s]", "datetime64[us, Europe/Madrid]", "date32[day][pyarrow]"],
)
def test_dates_before_and_after(dtype: str) -> None:
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(np.arange(400) * 3 % 997, "D")
    zone = "Europe/Madrid" if "Madrid" in dtype else None
    df = pd.DataFrame({"day": pd.Series(days.tz_localize(zone)).astype(dtype)})
    masked = df.iloc[::-1].set_axis(df.index)
    for frames in ((df, masked), [dd.from_pandas(each, npartitions=3) for each in (df, masked)]):
        with dask.config.set(scheduler="threads"):
            ax = frames[0].sdc.plot(frames[1], "day")
        before, after = ax.patches
        assert (before.get_data().values == after.get_data().values).all()
        ax.figure.draw_without_rendering()
        assert "2021" in {label.get_text() for label in ax.get_xticklabels()}


def test_categories_before_and_after() -> None:
    jobs = ["cook"] * 40 + ["nurse"] * 30 + ["mayor"] + ["judge"] * 4
    df = pd.DataFrame({"job": jobs, "same": 1, "age": range(75)})
    masked = df.copy()
    masked.loc[:2, "job"] = "nurse"
    for frames in ((df, masked), [dd.from_pandas(each, npartitions=3) for each in (df, masked)]):
        with dask.config.set(scheduler="threads"):
            ax = frames[0].sdc.plot(frames[1], "job")
        names = [label.get_text() for label in ax.get_yticklabels()]
        assert names == ["cook", "nurse", "(all others)"]
        before, after = ([bar.get_width() for bar in bars] for bars in ax.containers)
        assert before == [40, 30, 5] and after == [37, 33, 5]
    ax = df.sdc.plot(df, "same")  # numbers that have no histogram
    assert [label.get_text() for label in ax.get_yticklabels()] == ["1"]
    recoded = df.sdc.recode(["age"], bins=[0, 30, 80], labels=["young", "old"])
    (after,) = df.sdc.plot(recoded, "age").containers  # no value is what it was
    assert [bar.get_width() for bar in after] == [30, 45]


def test_no_matplotlib(frame: pd.DataFrame, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
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
