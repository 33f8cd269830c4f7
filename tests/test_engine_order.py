"""Orders and exchanges: pieces put together are pandas' stable sort, for every partitioning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from sdc_dask.engine.exchange import Exchange, Swaps, count_present, lay_out
from sdc_dask.engine.frames import Calls
from sdc_dask.engine.projections import Single
from sdc_dask.engine.scan import scan
from sdc_dask.engine.sort import (
    Cells,
    Items,
    Order,
    OrderMask,
    Piece,
    Present,
    Records,
    go_through,
    plan_order,
    sort_again,
)
from sdc_dask.engine.strata import StrataRule
from sdc_dask.engine.trip import Step, masked_values, put_home, travel_home
from sdc_dask.kernels.borders import count_below
from sdc_dask.masking.rank_swap import RankSwap

N = 90


def people() -> pd.DataFrame:
    """Return columns with many ties, missing cells, and strata that appear late."""
    rng = np.random.default_rng(5)
    tied = rng.integers(0, 7, N)
    return pd.DataFrame(
        {
            "x": tied.astype(float),
            "y": np.where(np.arange(N) % 2, -0.0, rng.integers(0, 4, N)),
            "equal": 1.5,
            "gaps": np.where(rng.random(N) < 0.3, np.nan, tied),
            "text": pd.array(
                np.where(rng.random(N) < 0.3, None, [f"t{i}" for i in tied]), "string"
            ),
            "whole": pd.array(np.where(rng.random(N) < 0.3, None, tied + 2**60), "Int64"),
            "large": (tied.astype("uint64") + np.uint64(2**63)) // np.uint64(1 + tied[0] % 2),
            "day": pd.array(tied.astype("int32"), pd.ArrowDtype(pa.date32())),
            "when": pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(tied, "D"),
            "level": pd.Categorical(
                rng.choice(["low", "mid", "high"], N), ["low", "mid", "high"], True
            ),
            "g": pd.array(
                np.where(np.arange(N) < 40, "late", rng.choice(["a", "b"], N)), "string[pyarrow]"
            ),
        }
    )


def frames(frame: pd.DataFrame, npartitions: int) -> Any:
    return frame if npartitions == 0 else dd.from_pandas(frame, npartitions=npartitions)


@dataclass(frozen=True)
class Unchanged(OrderMask):
    """Leaves what is in order as it is."""

    order: Order

    def forward(self, piece: Piece, state: int | None) -> tuple[int, int]:
        before = state or 0
        return before, before + len(piece.rows)

    def backward(self, piece: Piece, kept: int, state: int | None) -> tuple[Any, int]:
        # Pieces are gone through in their order, forward and backward.
        assert state is None or state == kept + len(piece.rows)
        return piece.values, kept


def _keep(rows: Any, values: Any, number: int) -> tuple[Any, Any, int]:
    return rows, values, number


def in_order(frame: Any, order: Order) -> list[tuple[Any, Any, int]]:
    """Return the pieces of an order."""
    tasks, _ = masked_values(frame, Step(order, Unchanged(order)), _keep)
    call = Calls.of(frame)
    return call.compute(call(list, tasks))


def global_items(order: Order, rows: np.ndarray, lengths: list[int]) -> np.ndarray:
    """Return the numbers of items in the whole frame."""
    begins = np.append(0, np.cumsum(lengths))[:-1] * order.items.per_row
    return begins[order.row_ids.partition(rows)] + order.row_ids.position(rows)


def lengths_of(frame: Any) -> list[int]:
    if isinstance(frame, pd.DataFrame):
        return [len(frame)]
    return frame.map_partitions(len, meta=(None, "i8")).compute().tolist()


def planned(frame: Any, make: Any, columns: list[str], by: tuple[str, ...]) -> Order:
    rule = StrataRule(by)
    if make is Present:
        counted = count_present(frame, columns, rule)
        dtype = (frame._meta if not isinstance(frame, pd.DataFrame) else frame)[columns[0]].dtype
        items: Items = Present(columns[0], dtype)
        return plan_order(frame, items, rule.strata(counted.strata[0]), counted.rows)
    scanned = scan(frame, columns, [rule])
    items = make(tuple(columns), _sum if make is Records else Single(), scanned.expected(columns))
    return plan_order(frame, items, scanned.strata([rule])[0], scanned.rows)


def _sum(values: np.ndarray) -> np.ndarray:
    return values.sum(axis=1)


def stratum_numbers(frame: pd.DataFrame, by: tuple[str, ...]) -> np.ndarray:
    if not by:
        return np.zeros(len(frame), int)
    return frame.groupby(list(by), sort=False).ngroup().to_numpy()


@pytest.mark.parametrize("npartitions", [0, 1, 7])
@pytest.mark.parametrize("by", [(), ("g",)], ids=["all", "strata"])
def test_records_are_in_the_order_of_their_projection(npartitions: int, by: tuple) -> None:
    people_ = people()
    for columns in (["x", "y"], ["equal"]):
        frame = frames(people_, npartitions)
        order = planned(frame, Records, columns, by)
        pieces = in_order(frame, order)
        assert len(pieces) == max(1, npartitions)
        rows = np.concatenate([piece[0] for piece in pieces])
        keys = people_[columns].sum(axis=1).to_numpy()
        expected = np.lexsort((np.arange(N), keys, stratum_numbers(people_, by)))
        assert np.array_equal(global_items(order, rows, lengths_of(frame)), expected)
        values = np.concatenate([piece[1] for piece in pieces])
        np.testing.assert_array_equal(values, people_[columns].to_numpy()[expected])


def test_equal_records_are_spread_over_the_pieces() -> None:
    frame = frames(people(), 6)
    sizes = [len(rows) for rows, _, _ in in_order(frame, planned(frame, Records, ["equal"], ()))]
    assert len(sizes) == 6
    assert max(sizes) < N / 3


@pytest.mark.parametrize("npartitions", [0, 1, 7])
@pytest.mark.parametrize("by", [(), ("g",)], ids=["all", "strata"])
def test_cells_are_in_the_order_of_value_row_and_column(npartitions: int, by: tuple) -> None:
    people_ = people()
    frame = frames(people_, npartitions)
    order = planned(frame, Cells, ["x", "y"], by)
    pieces = in_order(frame, order)
    rows = np.concatenate([piece[0] for piece in pieces])
    cells = people_[["x", "y"]].to_numpy().ravel() + 0.0
    expected = np.lexsort((np.arange(2 * N), cells, np.repeat(stratum_numbers(people_, by), 2)))
    assert np.array_equal(global_items(order, rows, lengths_of(frame)), expected)


KINDS = ["x", "gaps", "text", "whole", "large", "day", "when", "level"]


@pytest.mark.parametrize("column", KINDS)
@pytest.mark.parametrize("npartitions", [0, 5])
def test_values_of_any_dtype_are_in_the_order_of_pandas(npartitions: int, column: str) -> None:
    people_ = people()
    frame = frames(people_, npartitions)
    for by in ((), ("g",)):
        order = planned(frame, Present, [column], by)
        pieces = in_order(frame, order)
        rows = np.concatenate([piece[0] for piece in pieces])
        present = people_[people_[column].notna()]
        present = present.assign(stratum=stratum_numbers(present, by), row=present.index)
        expected = present.sort_values(["stratum", column, "row"])
        assert global_items(order, rows, lengths_of(frame)).tolist() == expected["row"].tolist()
        values = pd.concat([piece[1] for piece in pieces])
        assert values.dtype == people_[column].dtype
        assert values.tolist() == expected[column].tolist()


def test_orders_on_a_cluster(scheduler: str) -> None:
    frame = frames(people(), 4)
    order = planned(frame, Present, ["text"], ("g",))
    values = pd.concat([piece[1] for piece in in_order(frame, order)])
    present = people().dropna(subset="text")
    present = present.assign(stratum=stratum_numbers(present, ("g",)))
    assert values.tolist() == present.sort_values(["stratum", "text"])["text"].tolist()


@dataclass(frozen=True)
class Turned(Unchanged):
    """Gives every record a new key, and its stratum."""

    def backward(self, piece: Piece, kept: int, state: int | None) -> tuple[Any, int]:
        stratum = np.repeat(piece.strata, np.diff(piece.bounds))
        return np.column_stack([-piece.values[:, 0] % 3, piece.values[:, 0], stratum]), kept


@pytest.mark.parametrize("npartitions", [0, 1, 6])
def test_what_was_in_one_order_is_put_in_another(npartitions: int) -> None:
    people_ = people()
    frame = frames(people_, npartitions)
    order = planned(frame, Records, ["x"], ("g",))
    tasks, _ = masked_values(frame, Step(order, Turned(order)), _pair)
    call = Calls.of(frame)
    pieces = sort_again(call, tasks, order.row_ids, 3, 3, max(1, npartitions))
    same = go_through(call, Unchanged(order), pieces, _keep)
    found = call.compute(call(list, same))
    rows = np.concatenate([piece[0] for piece in found])
    key = -people_["x"].to_numpy() % 3
    expected = np.lexsort((np.arange(N), key, stratum_numbers(people_, ("g",))))
    items = global_items(order, rows, lengths_of(frame))
    # Pieces are ranges of stratum, key and row.
    assert np.array_equal(items, expected)


def _pair(rows: Any, values: Any, _number: int) -> tuple[Any, Any]:
    return rows, values


# Exchanges


class Reversed:
    """The lowest rank gets the highest value, and so on."""

    def __init__(self, n: int) -> None:
        self.n, self.rank = n, 0

    def draw(self, count: int) -> np.ndarray:
        ranks = self.n - 1 - np.arange(self.rank, self.rank + count)
        self.rank += count
        return ranks


@dataclass(frozen=True)
class Turn(Swaps):
    """Turns every stratum of a column round."""

    counts: Any
    looks_first = False

    @property
    def reach(self) -> int:
        return int(max(self.counts))

    def sources(self, stratum: int) -> Any:
        return Reversed(int(self.counts[stratum]))

    def summarize(self, piece: Piece, ranks: Any) -> None:
        raise AssertionError("nobody looks first")

    def merge(self, parts: list) -> None:
        raise AssertionError("nobody looks first")

    def change(self, piece: Piece, ranks: Any, known: Any) -> pd.Series:
        return piece.values


@pytest.mark.parametrize("column", ["gaps", "text", "when"])
@pytest.mark.parametrize("npartitions", [0, 6])
def test_values_go_where_their_rank_is_sent(
    npartitions: int, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sdc_dask.engine.exchange._AHEAD", 2)
    people_ = people()
    frame = frames(people_, npartitions)
    order = planned(frame, Present, [column], ("g",))
    layout = lay_out(frame, order)
    step = Step(order, Exchange(order, layout, Turn(order.strata.counts)), moved=True)
    result = put_home(frame, [travel_home(frame, step)])
    result = result if npartitions == 0 else result.compute()
    expected = people_.copy()
    for _, part in people_.dropna(subset=column).groupby("g"):
        ordered = part.sort_values(column, kind="stable")
        expected.loc[ordered.index, column] = ordered[column].array[::-1]
    pd.testing.assert_frame_equal(result, expected)


@pytest.mark.parametrize("method", ["standard", "distribution"])
def test_drawing_leaves_what_it_was_given(method: str) -> None:
    # Tasks may run twice, with the very objects that the task before returned.
    frame = frames(people(), 6)
    spec = RankSwap(["gaps"], p=20, method=method)
    (step,) = spec.plan(frame, entropy=3)
    exchange = step.mask
    assert isinstance(exchange, Exchange)
    _, state = exchange.draw(0, None)
    first, then = exchange.draw(1, state)
    second, again = exchange.draw(1, state)
    assert np.array_equal(first, second)
    assert np.array_equal(exchange.draw(2, then)[0], exchange.draw(2, again)[0])


def test_a_layout_tells_the_first_rank_of_every_piece() -> None:
    frame = frames(people(), 6)
    order = planned(frame, Present, ["gaps"], ("g",))
    layout = lay_out(frame, order)
    pieces = in_order(frame, order)
    sizes = [len(rows) for rows, _, _ in pieces]
    assert layout.positions.tolist() == [0, *np.cumsum(sizes).tolist()]
    seen = dict.fromkeys(range(3), 0)
    strata = order.strata.of(people())
    for number, (rows, _, _) in enumerate(pieces):
        items = strata[global_items(order, rows, lengths_of(frame))]
        held = list(dict.fromkeys(items.tolist()))
        assert layout.strata[number].tolist() == held
        assert layout.ranks[number].tolist() == [seen[stratum] for stratum in held]
        begins = [items.tolist().index(stratum) for stratum in held]
        assert layout.bounds[number].tolist() == [*begins, len(items)]
        for stratum in held:
            seen[stratum] += int((items == stratum).sum())


def test_present_values_are_counted() -> None:
    people_ = people()
    for frame in (people_, frames(people_, 5)):
        counted = count_present(frame, ["gaps", "text"], StrataRule(("g",)))
        assert sum(counted.rows) == N
        assert counted.missing() == people_[["gaps", "text"]].isna().sum().tolist()
        assert (
            counted.strata[0]["by0"].tolist()
            == people_.dropna(subset="gaps")["g"].unique().tolist()
        )


@pytest.mark.parametrize("dtype", ["float64", "int64", "uint64", "float32", "object"])
@pytest.mark.parametrize("borders", [0, 1, 7, 600])
def test_borders_below_values_are_those_of_a_search(borders: int, dtype: str) -> None:
    rng = np.random.default_rng(borders)
    among = np.sort(rng.integers(0, 300, borders)).astype(dtype)
    values = rng.integers(0, 310, 3_000).astype(dtype)
    np.testing.assert_array_equal(count_below(among, values), np.searchsorted(among, values))
