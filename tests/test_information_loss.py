"""Information loss, against the definitions in numpy, fractions and least squares."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import combinations
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import sdc_dask.utility.information_loss as information_loss_module
from sdc_dask.kernels.differences import CELLS, Grid, differences, quantiles_of
from sdc_dask.kernels.exact import exact_products, exact_sum
from sdc_dask.kernels.gram import exact_gram
from sdc_dask.utility.information_loss import InformationLoss, information_loss

finite = st.floats(allow_nan=False, allow_infinity=False)


def plain_losses(x: np.ndarray, y: np.ndarray) -> list[float]:
    """IL1 to IL5, IL and IL1s, as they are defined, for data without zeros."""
    v, w = np.cov(x.T, ddof=0), np.cov(y.T, ddof=0)
    upper = np.triu_indices(len(v))
    losses = [
        (np.abs(x - y) / np.abs(x)).mean(),
        (np.abs(x.mean(axis=0) - y.mean(axis=0)) / np.abs(x.mean(axis=0))).mean(),
        (np.abs(v - w) / np.abs(v))[upper].mean(),
        (np.abs(v - w) / np.abs(v)).diagonal().mean(),
        np.abs(np.corrcoef(x.T) - np.corrcoef(y.T))[np.triu_indices(len(v), 1)].mean(),
    ]
    scaled = (np.abs(x - y) / (math.sqrt(2) * x.std(axis=0))).mean()
    return [*losses, 100 * float(np.mean(losses)), scaled]


def plain_hellinger(x: np.ndarray, y: np.ndarray, *, rounding: bool = True) -> float:
    """Hellinger distance on classes of z / (1 + |z|), of which 0 is in the middle of one."""
    shares = []
    for values in (x, y):
        z = bent((rounded(values, x) if rounding else values) - x.mean(), x.std())
        counts = np.histogram(z, (np.arange(64) - 31.5) * 33 / 1040)[0]
        shares.append(np.sqrt(counts / len(x)))
    return math.sqrt(((shares[0] - shares[1]) ** 2).sum() / 2)


def rounded(values: np.ndarray, original: np.ndarray) -> np.ndarray:
    """The middles of the cells of a finer grid: powers of two are its unit and its origin's."""
    exponent = math.floor(math.log2(original.std() / 1.3)) + 1
    scale = 2.0**exponent
    origin = np.rint(original.mean() / scale * 2) * scale / 2
    cells = np.rint(4160 * bent(values - origin, scale)) / 4160
    return origin + scale * cells / (1 - np.abs(cells))


def bent(distance: np.ndarray, scale: float) -> np.ndarray:
    z = distance / scale
    return z / (1 + np.abs(z))


def figures(loss: InformationLoss) -> list[float | None]:
    return [loss.il1, loss.il2, loss.il3, loss.il4, loss.il5, loss.il, loss.il1_scaled]


def same(loss: InformationLoss, other: InformationLoss) -> bool:
    """Whether two results have the same bits, of which repr tells."""
    return json.dumps(loss.to_dict()) == json.dumps(other.to_dict())


@pytest.fixture
def mixed() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Columns of several kinds and scales, with missing cells, zeros and a constant one."""
    rng = np.random.default_rng(3)
    n = 400
    base = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "x": base,
            "y": 1e9 + base + 0.1 * rng.normal(size=n),
            "count": pd.array(rng.integers(0, 5, n), dtype="Int64"),
            "small": pd.array(1e-300 * rng.normal(size=n), dtype="double[pyarrow]"),
            "huge": 1e300 * rng.lognormal(0, 2, n),
            "single": rng.normal(size=n).astype("float32"),
            "constant": 7,
        }
    )
    masked = frame.assign(**{c: frame[c] * rng.choice([1.0, 0.9, 1.2], n) for c in list(frame)[:6]})
    masked["count"] = frame["count"].to_numpy()[::-1]
    missing = rng.random(n) < 0.1
    for each in (frame, masked):
        each.loc[missing, "x"] = np.nan
        each.loc[missing[::-1], "count"] = pd.NA
    return frame, masked


@pytest.fixture(scope="module")
def incomes() -> pd.DataFrame:
    """Positive, skewed values in nine columns that go together, more or less."""
    rng = np.random.default_rng(8)
    common = rng.normal(size=(600, 1))
    logs = 9 + rng.uniform(0.3, 1, 9) * common + 0.4 * rng.normal(size=(600, 9))
    return pd.DataFrame(np.exp(logs).round(), columns=list("abcdefghi"))


# Against plain versions


@pytest.mark.parametrize("method", ["microaggregate", "rank_swap"])
def test_figures_are_those_of_the_definitions(incomes: pd.DataFrame, method: str) -> None:
    columns = list(incomes)
    if method == "microaggregate":
        masked = incomes.sdc.microaggregate([columns[:3], columns[3:5], columns[5:]], 7)
    else:
        masked = incomes.sdc.rank_swap(columns, 12, random_state=5)
    loss = information_loss(incomes, masked, columns)
    x, y = incomes.to_numpy(dtype=float), masked.to_numpy(dtype=float)
    assert figures(loss) == pytest.approx(plain_losses(x, y), rel=1e-9, abs=1e-15)
    assert loss.unchanged == (x == y).mean()
    assert (loss.rows, loss.zeros, loss.undefined, loss.constant) == (len(x), 0, 0, 0)
    table = loss.table
    assert list(table.index) == columns
    expected = (np.abs(x - y) / x).mean(axis=0)
    np.testing.assert_allclose(table["il1"], expected, rtol=1e-12)
    np.testing.assert_allclose(table["unchanged"], (x == y).mean(axis=0))
    np.testing.assert_allclose(table["mean"], x.mean(axis=0))
    np.testing.assert_allclose(table["masked_deviation"], y.std(axis=0))
    shift = (y.mean(axis=0) - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(table["mean_shift"], shift, atol=1e-12)
    shift = y.std(axis=0) / x.std(axis=0) - 1
    np.testing.assert_allclose(table["deviation_shift"], shift, atol=1e-12)
    hellinger = [plain_hellinger(x[:, j], y[:, j]) for j in range(x.shape[1])]
    np.testing.assert_allclose(table["hellinger"], hellinger, atol=1e-12)
    assert loss.hellinger == pytest.approx(np.mean(hellinger))
    hellinger = [plain_hellinger(x[:, j], y[:, j], rounding=False) for j in range(x.shape[1])]
    np.testing.assert_allclose(table["hellinger"], hellinger, atol=0.002)
    parts = np.arange(1, 20) / 20
    quantiles = [np.quantile(each, parts, axis=0, method="inverted_cdf") for each in (x, y)]
    z = [(each - x.mean(axis=0)) / x.std(axis=0) for each in quantiles]
    # Half a cell of each of the two quantiles that are subtracted.
    width = ((1 + np.abs(z)) ** 2 / 1040).max(axis=(0, 1))
    largest = np.abs(z[0] - z[1]).max(axis=0)
    assert (np.abs(table["quantile_shift"] - largest) <= width).all()
    assert loss.quantiles == table["quantile_shift"].max()


def test_rank_swapping_keeps_distributions(incomes: pd.DataFrame) -> None:
    columns = list(incomes)
    loss = information_loss(incomes, incomes.sdc.rank_swap(columns, 10, random_state=1), columns)
    assert loss.il2 == loss.il4 == loss.hellinger == loss.quantiles == 0
    assert min(loss.il1 or 0, loss.il3 or 0, loss.il5, loss.il1_scaled or 0) > 0


def test_more_masking_loses_more(incomes: pd.DataFrame) -> None:
    columns = list(incomes)
    for masked in (
        [incomes.sdc.microaggregate(columns, k) for k in (3, 10, 50)],
        [incomes.sdc.rank_swap(columns, p, random_state=2) for p in (2, 10, 40)],
    ):
        losses = [information_loss(incomes, each, columns) for each in masked]
        for name in ("il", "il1", "il3", "il5", "il1_scaled"):
            values = [getattr(loss, name) for loss in losses]
            assert values == sorted(values), name


def test_nothing_is_lost_if_nothing_changes(incomes: pd.DataFrame) -> None:
    loss = information_loss(incomes, incomes, list(incomes), regression="a ~ b + c")
    assert figures(loss) == [0.0] * 7
    assert loss.regression == loss.quantiles == loss.hellinger == 0
    assert loss.unchanged == 1


# Partitions and scales


@pytest.mark.parametrize("npartitions", [1, 7])
def test_partitions_change_no_bit(
    scheduler: str, npartitions: int, mixed: tuple[pd.DataFrame, pd.DataFrame]
) -> None:
    columns = list(mixed[0])
    lazy = [dd.from_pandas(each, npartitions=npartitions) for each in mixed]
    formula = "y ~ small + single + huge"
    result = information_loss(*lazy, columns, regression=formula)
    assert same(result, information_loss(*mixed, columns, regression=formula))


@pytest.mark.parametrize(("order", "again"), [("random", 0), ("sorted", 6)])
def test_partitions_are_read_again_only_where_they_are_unlike_all(
    order: str, again: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(100.3, 2.1, (60_000, 2)), columns=["x", "y"])
    if order == "sorted":
        # More grids than are kept.
        frame["x"] = np.sort(frame["x"].to_numpy())
    masked = (frame * 2).round() / 2
    read: list[int] = []
    count_again = information_loss_module._count_again

    def counting(original: pd.DataFrame, other: pd.DataFrame, number: int, grids: dict) -> object:
        read.append(number)
        assert list(original) == ["x"]  # the other column was counted
        return count_again(original, other, number, grids)

    monkeypatch.setattr(information_loss_module, "_count_again", counting)
    lazy = [dd.from_pandas(each, npartitions=6) for each in (frame, masked)]
    with dask.config.set(scheduler="threads"):
        result = information_loss(*lazy, ["x", "y"])
    assert len(read) == again
    assert same(result, information_loss(frame, masked, ["x", "y"]))
    assert len(read) == again  # pandas has one partition, which is like all


def test_order_of_rows_and_runs_change_no_bit(
    mixed: tuple[pd.DataFrame, pd.DataFrame], monkeypatch: pytest.MonkeyPatch
) -> None:
    columns = list(mixed[0])
    expected = information_loss(*mixed, columns)
    frame, masked = (each.iloc[::-1] for each in mixed)
    assert same(information_loss(frame, masked, columns), expected)
    assert same(information_loss(frame, mixed[1], columns), expected)  # aligned by labels
    monkeypatch.setattr("sdc_dask.utility.information_loss._RUN", 33)
    assert same(information_loss(*mixed, columns), expected)


@pytest.mark.parametrize("scale", [2.0**-960, 2.0**1000])
def test_units_change_nothing(scale: float) -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.normal(2, 1, (500, 3)), columns=[*"abc"])
    masked = frame + 0.3 * rng.normal(size=frame.shape)
    loss = information_loss(frame, masked, [*"abc"], regression="a ~ b + c")
    scaled = information_loss(frame * scale, masked * scale, [*"abc"], regression="a ~ b + c")
    assert figures(scaled) == figures(loss)
    assert (scaled.quantiles, scaled.hellinger) == (loss.quantiles, loss.hellinger)
    assert scaled.regression == loss.regression
    slopes = scaled.coefficients["original"]
    assert slopes["b"] == loss.coefficients["original"]["b"]
    assert slopes["(intercept)"] == loss.coefficients["original"]["(intercept)"] * scale


def test_a_large_offset_drowns_nothing() -> None:
    rng = np.random.default_rng(2)
    frame = pd.DataFrame(np.round(rng.normal(size=(300, 3)) * 2**16) / 2**16, columns=[*"abc"])
    masked = (frame * 4).round() / 4  # exact in binary, as is the offset
    loss = information_loss(frame, masked, [*"abc"], regression="a ~ b + c")
    far = information_loss(frame + 2**30, masked + 2**30, [*"abc"], regression="a ~ b + c")
    for name in ("il3", "il4", "il5", "il1_scaled", "unchanged"):
        assert getattr(far, name) == getattr(loss, name), name
    assert far.coefficients["masked"]["c"] == loss.coefficients["masked"]["c"]
    assert far.coefficients["error"]["b"] == loss.coefficients["error"]["b"]
    # The mean, the grid's middle, is rounded.
    assert far.hellinger == pytest.approx(loss.hellinger, rel=1e-3)
    assert far.quantiles == pytest.approx(loss.quantiles, abs=0.01)


def test_the_largest_values_are_counted() -> None:
    most = np.finfo(float).max
    frame = pd.DataFrame({"x": [most] * 4})
    assert information_loss(frame, -frame, ["x"]).hellinger == 1
    frame = pd.DataFrame({"x": [most] * 99 + [0.0]})
    masked = pd.DataFrame({"x": [most] * 60 + [0.0] * 40})
    assert information_loss(frame, masked, ["x"]).hellinger == pytest.approx(
        math.sqrt(1 - math.sqrt(0.99 * 0.6) - math.sqrt(0.01 * 0.4))
    )


def test_a_frame_that_changes_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    count = information_loss_module._count

    def lossy(original: pd.DataFrame, *args: Any) -> Any:
        return count(original.iloc[1:], *args)

    monkeypatch.setattr(information_loss_module, "_count", lossy)
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]})
    with pytest.raises(RuntimeError, match="'x' has other numbers of values"):
        information_loss(frame, frame, ["x"])


def test_the_largest_differences_are_finite() -> None:
    most = np.finfo(float).max
    frame = pd.DataFrame({"x": [most, -most, most, 1.0], "y": [1.0, 2.0, 3.0, 4.0]})
    masked = frame.assign(x=[-most, most, most, 2.0])
    loss = information_loss(frame, masked, ["x", "y"], regression="y ~ x")
    assert loss.columns["x"].il1 == (2 + 2 + 0 + 1) / 4
    assert loss.columns["x"].deviation_shift == pytest.approx(0)
    assert all(math.isfinite(value) for value in figures(loss) if value is not None)
    # A relative difference beyond float64.
    loss = information_loss(frame.assign(x=1e-300), frame.assign(x=1e300), ["x"])
    assert loss.il1 == loss.il == math.inf
    assert loss.il1_scaled is None
    # From narrow to wide: in deviations, less than the square of them.
    narrow = pd.DataFrame({"x": [1e-160, 2e-160]})
    loss = information_loss(narrow, pd.DataFrame({"x": [1e100, 2e100]}), ["x"])
    assert loss.il4 == math.inf
    assert loss.columns["x"].deviation_shift == pytest.approx(1e260)


# Zeros, constants, few cells


def test_zeros_are_left_out_and_counted() -> None:
    frame = pd.DataFrame({"x": [0.0, 0.0, 2.0, -2.0, 4.0], "z": [0.0, 0.0, 0.0, -0.0, 0.0]})
    masked = frame.assign(x=[0.0, 1.0, 1.0, -2.0, 4.0])
    loss = information_loss(frame, masked, ["x", "z"])
    assert loss.zeros == 1
    assert loss.il1 == 0.5 / 9
    assert loss.columns["x"].il1 == 0.5 / 4
    assert loss.unchanged == 8 / 10
    loss = information_loss(frame, masked.assign(z=[1.0, 2.0, 3.0, 4.0, 4.0]), ["z"])
    assert (loss.zeros, loss.undefined, loss.constant) == (5, 2, 1)
    assert (loss.il1, loss.il2, loss.il3, loss.il4, loss.il1_scaled) == (None,) * 5
    assert loss.il == loss.il5 == 0
    assert loss.hellinger == 1


def test_zero_means_and_covariances_are_left_out_and_counted() -> None:
    frame = pd.DataFrame({"x": [-1.0, 0.0, 1.0], "y": [1.0, -2.0, 1.0], "z": [1.0, 2.0, 4.0]})
    assert information_loss(frame, frame, ["x", "y"]).undefined == 0
    masked = frame.assign(x=[-1.0, 0.5, 2.0])
    loss = information_loss(frame, masked, ["x", "y"])
    assert loss.undefined == 1  # the mean; the covariance is still 0
    assert loss.il2 == 0
    masked = frame.assign(x=[-1.0, 0.5, 1.5])
    loss = information_loss(frame, masked, ["x", "y", "z"])
    assert loss.undefined == 2
    assert loss.il2 == 0  # of y and z
    v, w = np.cov(frame.T, ddof=0), np.cov(masked.T, ddof=0)
    expected = [
        abs(v[i, j] - w[i, j]) / abs(v[i, j]) for i in range(3) for j in range(i, 3) if i + j != 1
    ]
    assert loss.il3 == pytest.approx(np.mean(expected))


def test_constant_columns() -> None:
    frame = pd.DataFrame({"c": [7.0] * 4, "x": [1.0, 2.0, 3.0, 5.0]})
    moved = frame.assign(c=8.0)
    loss = information_loss(frame, moved, ["c", "x"])
    assert (loss.undefined, loss.constant) == (0, 1)
    assert loss.il2 == 1 / 14
    assert loss.il3 == loss.il4 == loss.il5 == loss.il1_scaled == loss.quantiles == 0
    column = loss.columns["c"]
    assert (column.mean_shift, column.deviation_shift, column.quantile_shift) == (None, 0, None)
    assert column.hellinger == 1
    back = information_loss(moved.assign(c=[1.0, 2.0, 3.0, 6.0]), frame, ["c", "x"])
    assert back.il4 == 0.5
    assert back.columns["c"].deviation_shift == -1
    still = information_loss(frame, frame, ["c"])
    assert figures(still) == [0.0] * 7
    assert still.columns["c"].quantile_shift == 0


def test_one_record_and_one_column() -> None:
    loss = information_loss(pd.DataFrame({"x": [4.0]}), pd.DataFrame({"x": [5.0]}), ["x"])
    assert (loss.il1, loss.il2, loss.il3, loss.il4, loss.il5) == (0.25, 0.25, 0, 0, 0)
    assert loss.il == pytest.approx(10)
    assert (loss.rows, loss.constant) == (1, 1)


def test_missing_cells_are_left_out() -> None:
    rng = np.random.default_rng(4)
    frame = pd.DataFrame(rng.normal(3, 1, (200, 3)), columns=[*"abc"])
    masked = frame + rng.normal(size=frame.shape)
    gone = rng.random(frame.shape) < 0.2
    frame, masked = frame.mask(gone), masked.mask(gone)
    loss = information_loss(frame, masked, [*"abc"])
    assert loss.il1 == pytest.approx(np.nanmean((frame - masked).abs() / frame.abs()))
    changes = ((frame.cov() - masked.cov()).abs() / frame.cov().abs()).to_numpy()
    assert loss.il3 == pytest.approx(changes[np.triu_indices(3)].mean())
    correlations = (frame.corr() - masked.corr()).abs().to_numpy()
    assert loss.il5 == pytest.approx(correlations[np.triu_indices(3, 1)].mean())
    scaled = ((frame - masked).abs() / frame.std(ddof=0)).to_numpy() / math.sqrt(2)
    assert loss.il1_scaled == pytest.approx(np.nanmean(scaled))


# Regression


def least_squares(frame: pd.DataFrame, y: str, xs: list) -> tuple[np.ndarray, np.ndarray]:
    design = np.column_stack([np.ones(len(frame)), frame[xs].to_numpy(dtype=float)])
    response = frame[y].to_numpy(dtype=float)
    coefficients = np.linalg.lstsq(design, response)[0]
    residual = ((response - design @ coefficients) ** 2).sum() / (len(design) - design.shape[1])
    return coefficients, np.sqrt(residual * np.linalg.inv(design.T @ design).diagonal())


def test_regression_is_least_squares(incomes: pd.DataFrame) -> None:
    xs = ["b", "c", "d"]
    masked = incomes.sdc.microaggregate(list(incomes), 10)
    loss = information_loss(incomes, masked, list(incomes), regression="a ~ " + " + ".join(xs))
    b, errors = least_squares(incomes, "a", xs)
    c, _ = least_squares(masked, "a", xs)
    table = pd.DataFrame(loss.coefficients)
    assert list(table.index) == ["(intercept)", *xs]
    np.testing.assert_allclose(table["original"], b, rtol=1e-9)
    np.testing.assert_allclose(table["masked"], c, rtol=1e-9)
    np.testing.assert_allclose(table["error"], errors, rtol=1e-9)
    assert loss.regression == pytest.approx((np.abs(b - c) / errors).mean(), rel=1e-9)


def test_names_in_formulas() -> None:
    rng = np.random.default_rng(6)
    frame = pd.DataFrame(rng.normal(size=(30, 4)), columns=["a b", "x~+", "y_1", 3])
    masked = frame + rng.normal(size=frame.shape)
    columns = list(frame)
    loss = information_loss(frame, masked, columns, regression="`a b`~`x~+` +y_1+ 3")
    b, _ = least_squares(frame, "a b", columns[1:])
    assert list(loss.coefficients["original"]) == ["(intercept)", *columns[1:]]
    np.testing.assert_allclose(list(loss.coefficients["original"].values()), b)


def test_a_perfect_fit() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 8.0]})
    frame["y"] = 2 * frame["x"] + 1
    loss = information_loss(frame, frame * 2, ["x", "y"], regression="y ~ x")
    assert loss.coefficients["original"] == {"(intercept)": 1, "x": 2}
    assert loss.coefficients["masked"] == {"(intercept)": 2, "x": 2}
    assert loss.coefficients["error"] == {"(intercept)": 0, "x": 0}
    assert loss.regression == math.inf


@pytest.mark.parametrize(
    ("formula", "error", "message"),
    [
        (3, TypeError, "such as .*received int"),
        ("x", ValueError, "regression must be a formula"),
        ("y ~", ValueError, "regression must be a formula"),
        ("y ~ x ~ z", ValueError, "regression must be a formula"),
        ("y ~ x + + z", ValueError, "regression must be a formula"),
        ("y ~ x z", ValueError, "in backticks"),
        ("y ~ age + x", KeyError, "not compared: 'age'. Compared are: 'x', 'y', 'z', 'c', 'm'"),
        ("y ~ x*z", KeyError, r"not compared: 'x\*z'"),
        ("y ~ x + x", ValueError, "more than once"),
        ("y ~ y", ValueError, "more than once"),
        ("y ~ x + z", ValueError, "'z' of the original frame follows from those named before"),
        ("y ~ c", ValueError, "'c' of the original frame is constant"),
        ("c ~ y", ValueError, "'y' of the masked frame is constant"),
        ("y ~ m + x", ValueError, r"missing cells: 'm' \(2\)"),
    ],
)
def test_bad_regressions(formula: object, error: type[Exception], message: str) -> None:
    x = np.array([0.1, 0.2, 0.4, 0.9, 1.3])
    frame = pd.DataFrame({"x": x, "y": x**2, "z": 0.3 * x + 0.7, "c": 1.0, "m": x})
    frame.loc[1:2, "m"] = np.nan
    with pytest.raises(error, match=message):
        information_loss(frame, frame.assign(y=1.0), list(frame), regression=formula)  # type: ignore[arg-type]


def test_regression_needs_records() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0], "y": [1.0, 3.0]})
    with pytest.raises(ValueError, match="on 1 columns needs at least 3 records, received 2"):
        information_loss(frame, frame, ["x", "y"], regression="y ~ x")


# Results and bad input


def test_results_can_be_read() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0, 5.0], ("a", 1): [2.0, 2.0, 8.0, 4.0]})
    frame.columns = pd.Index(["x", ("a", 1)], tupleize_cols=False)
    masked = frame.copy()
    masked["x"] = [1.5, 1.5, 4.5, 4.5]
    loss = information_loss(frame, masked, list(frame))
    row = loss.to_frame()
    assert len(row) == 1
    assert {"il", "il1_scaled", "hellinger", "regression", "zeros"} <= set(row)
    assert not {"columns", "coefficients"} & set(row)
    assert row["il"].tolist() == [loss.il]
    table = loss.table
    assert table.index.tolist() == ["x", ("a", 1)]
    assert (table.dtypes == "float64").all()
    text = repr(loss)
    assert "lower is better" in text
    assert "quantile_shift" in text
    assert "intercept" not in text
    loss = information_loss(frame, masked, ["x", ("a", 1)], regression="x ~ `('a', 1)`")
    assert "(intercept)" in repr(loss)
    json.dumps(information_loss(frame, masked, ["x"], regression=None).to_dict())


def test_frames_that_cannot_be_compared(scheduler: str) -> None:
    frame = pd.DataFrame({"x": np.arange(40.0), "y": np.arange(40.0) ** 2})
    lazy = dd.from_pandas(frame, npartitions=4)
    for one, how in (
        (frame, lambda each: each),
        (lazy, lambda each: dd.from_pandas(each, npartitions=4)),
    ):
        with pytest.raises(ValueError, match=r"'x' of the masked frame has 1 infinite values"):
            information_loss(one, how(frame.assign(x=[np.inf, *range(1, 40)])), ["x", "y"])
        with pytest.raises(ValueError, match=r"'y' has 2 cells that are missing in one frame"):
            information_loss(one, how(frame.assign(y=[np.nan, np.nan, *range(2, 40)])), ["x", "y"])
        with pytest.raises(ValueError, match=r"partition 0 of the masked frame has other rows"):
            information_loss(one, how(frame.rename({5: 4})), ["x"])
        empty = frame.assign(x=np.nan)
        with pytest.raises(ValueError, match=r"columns without any value: 'x'\. Leave"):
            information_loss(how(empty), how(empty), ["x", "y"])
    with pytest.raises(ValueError, match="have no records"):
        information_loss(frame[:0], frame[:0], ["x"])
    with pytest.raises(ValueError, match="3 partitions, the original 4"):
        information_loss(lazy.clear_divisions(), dd.from_pandas(frame, npartitions=3), ["x"])


# Kernels


@given(st.lists(st.tuples(finite, finite), max_size=20))
def test_differences_are_added_exactly(cells: list[tuple[float, float]]) -> None:
    x, y = np.array(cells, dtype=float).reshape(-1, 2).T
    found = differences(x, y)
    absolute = relative = Fraction(0)
    infinite = 0
    for a, b in cells:
        difference = abs(a - b)
        # Beyond float64, of half the size.
        times = 2 if math.isinf(difference) else 1
        difference = abs(a / times - b / times)
        absolute += times * Fraction(difference)
        ratio = difference / abs(a) if a else 0.0
        if math.isinf(times * ratio):
            infinite += 1
        else:
            relative += times * Fraction(ratio)
    assert found.absolute == absolute * 2**1074
    assert found.relative == relative * 2**1074
    assert (found.n, found.infinite, found.invalid) == (len(cells), infinite, 0)
    assert found.unchanged == sum(a == b for a, b in cells)
    assert found.zeros == sum(a == 0 != b for a, b in cells)


def test_differences_of_many_and_of_bad_cells() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.lognormal(0, 9, (2, 5_003))
    x[::11], y[::22] = 0.0, 0.0
    x[5:4_000:700] = y[5:4_000:700] = np.nan
    found = differences(x, y)
    present = ~np.isnan(x)
    total = sum(Fraction(d) for d in np.abs(x - y)[present])
    assert found.absolute == total * 2**1074
    some = present & (x != 0)
    total = sum(Fraction(d) for d in np.abs(x[some] - y[some]) / np.abs(x[some]))
    assert found.relative == total * 2**1074
    assert found.n == present.sum()
    assert differences(x[:2_000], y[:2_000]) + differences(x[2_000:], y[2_000:]) == found
    bad = np.array([np.nan, np.inf, -np.inf, 1.0, 2.0])
    assert differences(bad, np.array([np.nan, np.inf, np.inf, np.nan, -np.inf])).invalid == 4
    with pytest.raises(ValueError, match="of 5 and 4 values"):
        differences(bad, bad[:4])


@given(st.lists(st.tuples(finite, finite, st.floats(-10, 10)), max_size=12))
def test_gram_equals_sums_and_products(rows: list[tuple[float, float, float]]) -> None:
    check_gram(np.array(rows, dtype=float).reshape(-1, 3))


@pytest.mark.parametrize("scale", [5e-324, 1e-300, 1.0, 1e290])
@pytest.mark.parametrize("n", [1, 127, 128, 129, 1_024, 2_500])
def test_gram_of_many_records(n: int, scale: float) -> None:
    rng = np.random.default_rng(n)
    values = rng.normal(size=(n, 4))
    values[:, 1] = np.round(10 * values[:, 1])  # with zeros
    values[:, 2] = np.where(values[:, 2] > -2, np.nextafter(2.0**29, 0), -1 - 2.0**-52)  # 81 bits
    values[:, 3] *= 2.0 ** rng.integers(-40, 10, n)  # too wide for the short way
    if scale < 1e-320:
        values = np.round(1e6 * values)
    check_gram(values * scale)


def check_gram(values: np.ndarray) -> None:
    columns = list(values.T)
    sums, products = exact_gram(columns)
    assert sums == [exact_sum(column) for column in columns]
    assert products == {
        (i, j): exact_products(columns[i], columns[j])
        for i, j in combinations(range(len(columns)), 2)
    }


@given(st.lists(finite, min_size=1, max_size=30), finite, st.floats(5e-324, 1e308))
def test_grids_keep_the_order(values: list[float], mean: float, scale: float) -> None:
    # A grid is made of the mean and the deviation of values: neither is tiny beside the other.
    scale = max(scale, abs(mean) * 2.0**-60)
    grid = Grid(mean, scale)
    cells = [int(grid.count(np.array([value])).argmax()) for value in sorted(values)]
    assert cells == sorted(cells)
    assert grid.count(np.array([*values, np.nan])).sum() == len(values)
    assert grid.count(np.array([mean]))[CELLS // 2] == 1
    if all(abs(value) < 1e300 for value in [*values, mean]):
        z = [(Fraction(value) - Fraction(mean)) / Fraction(scale) for value in sorted(values)]
        near = [(cell, float(each)) for cell, each in zip(cells, z, strict=True) if abs(each) < 20]
        for cell, each in near:
            bent = (cell - CELLS // 2) / 1040
            assert bent == pytest.approx(each / (1 + abs(each)), abs=0.5001 / 1040)


@given(finite, st.floats(1e-300, 1e300), st.floats(-3, 3), st.floats(0.5, 2))
def test_rounded_grids_are_about_as_the_grid(
    mean: float, scale: float, shift: float, share: float
) -> None:
    grid = Grid(math.fmod(mean, 1e6 * scale), scale)
    check_rounded(grid, shift, share)


def test_rounded_grids_of_the_largest_values() -> None:
    most = np.finfo(float).max
    for grid in (Grid(most, most), Grid(-0.99 * most, 0.1 * most)):
        finer = grid.rounded()
        assert finer.rounded() == finer
        values = np.array([most, -most, 0.0, grid.mean])
        assert grid.gather(finer, finer.count(values)).sum() == len(values)


def check_rounded(grid: Grid, shift: float, share: float) -> None:
    mean, scale = grid.mean, grid.scale
    finer = grid.rounded()
    assert finer.rounded() == finer
    assert 1 / 1.3 <= finer.scale / scale <= 1 / 0.65
    assert abs(finer.mean - mean) <= finer.scale / 4
    # A value comes to its cell, or to the one beside it.
    values = np.array([mean + shift * scale, mean, mean - share * scale])
    for value in values[:, None]:
        direct, gathered = grid.count(value), grid.gather(finer, finer.count(value))
        assert gathered.sum() == 1
        assert abs(int(direct.argmax()) - int(gathered.argmax())) <= 1


def test_quantiles_are_those_of_cells() -> None:
    grid = Grid(0.0, 1.0)
    values = np.arange(-50, 51) / 25
    found = quantiles_of(grid.count(values), 4)
    np.testing.assert_allclose(found, [-1.0, 0.0, 1.0], atol=0.004)
