"""MDAV: all kernels against a plain implementation, and against published figures."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sdc_dask.kernels import mdav_few as few
from sdc_dask.kernels._jit import is_compiled, jit
from sdc_dask.kernels.kd_tree import unrolled
from sdc_dask.kernels.mdav import (
    _fewest,
    _group_narrow,
    _in_rounds,
    _mdav_brute,
    _most_narrow,
    mdav,
    mdav_brute,
    mdav_indexed,
    mdav_narrow,
)
from sdc_dask.kernels.mdav_few import mdav_few, sooner_than_compiled
from sdc_dask.kernels.outermost import farthest_from_centroid, new_outermost


def plain_mdav(points: np.ndarray, k: int) -> np.ndarray:
    """MDAV as it is written down, with numpy and no haste."""
    labels = np.full(len(points), -1)
    group = 0

    def farthest(query: np.ndarray, left: np.ndarray) -> int:
        return left[np.argmax(squares(points[left], query))]

    def take(seed: int) -> None:
        nonlocal group
        left = np.flatnonzero(labels < 0)
        others = left[left != seed]
        near = others[np.argsort(squares(points[others], points[seed]), kind="stable")[: k - 1]]
        labels[[seed, *near]] = group
        group += 1

    def squares(many: np.ndarray, one: np.ndarray) -> np.ndarray:
        total = np.zeros(len(many))
        for j in range(many.shape[1]):  # in the order of the kernels, to the last bit
            total += (many[:, j] - one[j]) ** 2
        return total

    while (labels < 0).sum() >= 2 * k:
        left = np.flatnonzero(labels < 0)
        pair = len(left) >= 3 * k
        r = farthest(points[left].mean(axis=0), left)
        take(r)
        if pair:
            take(farthest(points[r], np.flatnonzero(labels < 0)))
    labels[labels < 0] = group
    return labels


@pytest.mark.parametrize("d", [1, 2, 3, 5, 9])
@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [7, 40, 333])
def test_kernels_equal_the_plain_algorithm(n: int, d: int, k: int) -> None:
    points = np.random.default_rng(n + d + k).normal(size=(n, d))
    points -= points.mean(axis=0)
    expected = plain_mdav(points, k)
    np.testing.assert_array_equal(mdav_brute(points, k), expected)
    np.testing.assert_array_equal(mdav_narrow(points, k), expected)
    np.testing.assert_array_equal(mdav_indexed(points, k), expected)
    np.testing.assert_array_equal(mdav_few(points, k), mdav(points, k))


@pytest.mark.parametrize("levels", [1, 2, 5, 40])
@pytest.mark.parametrize("d", [1, 2, 4, 10])
def test_kernels_agree_on_ties(levels: int, d: int) -> None:
    rng = np.random.default_rng(levels * 10 + d)
    points = rng.integers(0, levels, (3_000, d)).astype(float)
    points -= points.mean(axis=0)
    for k in (2, 3, 10):
        expected = mdav_brute(points, k)
        np.testing.assert_array_equal(mdav_narrow(points, k), expected)
        np.testing.assert_array_equal(mdav_indexed(points, k), expected)
    np.testing.assert_array_equal(mdav_few(points, 3), mdav(points, 3))


@settings(max_examples=40)
@given(
    hnp.arrays(
        np.float64, st.tuples(st.integers(4, 40), st.integers(1, 3)), elements=st.floats(-5, 5)
    ),
    st.integers(2, 4),
)
def test_few_records_have_the_groups_of_the_kernels(points: np.ndarray, k: int) -> None:
    np.testing.assert_array_equal(mdav_few(points, k), mdav(points, k))


def test_a_process_with_more_than_few_records_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not sooner_than_compiled(100, 3, 5)  # conftest.py says so
    monkeypatch.setattr(few, "_spent", 0.0)
    assert not sooner_than_compiled(1_000_000, 3, 5)
    calls = 0
    while sooner_than_compiled(10_000, 3, 5):
        calls += 1
    assert 2 < calls < 20


def test_kernels_that_are_compiled_are_known(monkeypatch: pytest.MonkeyPatch) -> None:
    @jit
    def never_compiled(number):
        return number + 1

    assert not is_compiled(never_compiled)
    never_compiled(1)
    assert is_compiled(never_compiled)
    mdav_brute(np.zeros((4, 1)), 2)
    assert is_compiled(_mdav_brute)
    monkeypatch.setattr(_mdav_brute, "overloads", {})
    assert not _mdav_brute.signatures
    assert is_compiled(_mdav_brute)  # it is on disk


@pytest.mark.parametrize(
    "shape",
    [
        lambda rng, n: rng.uniform(-1, 1, (n, 3)),
        lambda rng, n: rng.lognormal(0, 3, (n, 4)),
        lambda rng, n: rng.normal(size=(n, 1)) @ rng.normal(size=(1, 6)),  # on a line
        lambda rng, n: rng.normal(size=(n, 12)),
        lambda rng, n: 1e9 + rng.normal(size=(n, 2)),
        lambda rng, n: 1e-160 * rng.normal(size=(n, 2)),  # squares are subnormal
        lambda rng, n: 1e155 * rng.normal(size=(n, 2)),  # squares are infinite
        # In single precision, most of these are equal.
        lambda rng, n: np.append(1e-9 * rng.normal(size=(n - 1, 3)), [[1.0, 2.0, 3.0]], axis=0),
        lambda rng, n: rng.normal(size=(n, 2)) * 10.0 ** rng.integers(-12, 0, (n, 1)),
        # On a sphere, where almost all are farthest from the centroid.
        lambda rng, n: (lambda x: x / np.linalg.norm(x, axis=1)[:, None])(rng.normal(size=(n, 3))),
    ],
    ids=["uniform", "skewed", "line", "wide", "offset", "tiny", "huge", "far", "scales", "sphere"],
)
def test_kernels_agree_on_shapes(shape: object) -> None:
    points = shape(np.random.default_rng(3), 5_000)
    points -= points.mean(axis=0)
    for k in (3, 20):
        expected = mdav_brute(points, k)
        np.testing.assert_array_equal(mdav_narrow(points, k), expected)
        np.testing.assert_array_equal(mdav_indexed(points, k), expected)
        # From one to the other, when half are left
        np.testing.assert_array_equal(_in_rounds(points, k, 2_500, ()), expected)


@pytest.mark.parametrize("k", [3, 50, 70])
@pytest.mark.parametrize("d", [1, 4])
def test_mdav_is_the_same_with_the_kernel_for_every_number(d: int, k: int) -> None:
    rng = np.random.default_rng(d + k)
    fewest, most = _fewest(d, k), _most_narrow(d, k)
    assert 2 * k < fewest
    assert (fewest < most) == (k < 70)
    for n in (fewest - 1, fewest, *([most, most + 1] if k == 3 else [])):
        points = rng.normal(size=(n, d))
        points -= points.mean(axis=0)
        np.testing.assert_array_equal(mdav(points, k), mdav_indexed(points, k))


def test_single_precision_that_leaves_all_in_doubt_is_given_up() -> None:
    points = np.repeat([[0.0, 0.0], [1.0, 2.0]], 1_000, axis=0)
    points -= points.mean(axis=0)
    found = np.full(len(points), -1)
    label, precise = _group_narrow(points, 3, points.sum(axis=0), 0, 0, found)
    assert not precise
    assert 0 <= label < 300
    np.testing.assert_array_equal(mdav_narrow(points, 3), mdav_brute(points, 3))


@settings(max_examples=40, deadline=None)
@given(
    points=hnp.arrays(
        float,
        st.tuples(st.integers(20, 300), st.integers(1, 6)),
        elements=st.floats(-4, 4, width=16) | st.floats(-1e-7, 1e-7) | st.sampled_from([1.0, 2.0]),
    ),
    k=st.integers(2, 9),
)
def test_single_precision_decides_nothing(points: np.ndarray, k: int) -> None:
    points = points - points.mean(axis=0)
    np.testing.assert_array_equal(mdav_narrow(points, k), mdav_brute(points, k))


def test_the_heap_finds_the_farthest_wherever_the_centroid_goes() -> None:
    rng = np.random.default_rng(2)
    points = rng.integers(-9, 10, (500, 2)).astype(float)  # with ties
    labels = np.full(len(points), -1)
    heap = new_outermost(*points.shape)
    for left in range(len(points), 0, -1):
        scale = float(rng.integers(1, 4))
        centroid = scale * rng.integers(-9, 10, 2)
        squares = np.where(labels < 0, ((scale * points - centroid) ** 2).sum(axis=1), -1.0)
        found = farthest_from_centroid(heap, points, labels, left, centroid, scale)
        assert found == np.argmax(squares)
        labels[rng.choice(np.flatnonzero(labels < 0)) if left % 2 else found] = 0


@pytest.mark.soak
@pytest.mark.parametrize("d", [1, 2, 3])
def test_unrolled_loops_form_the_same_groups(d: int) -> None:
    points = np.random.default_rng(d).normal(size=(5_000, d))
    points -= points.mean(axis=0)
    np.testing.assert_array_equal(_in_rounds(points, 3, 0, (0,) * d), mdav_indexed(points, 3))


@pytest.mark.parametrize(
    ("d", "n", "length"), [(3, 20_000, 3), (4, 20_000, 0), (3, 19_999, 0), (1, 10**9, 1)]
)
def test_few_records_and_many_dimensions_are_not_worth_unrolling(
    d: int, n: int, length: int
) -> None:
    assert len(unrolled(d, n, most=3)) == length


@settings(max_examples=60, deadline=None)
@given(
    points=hnp.arrays(
        float,
        st.tuples(st.integers(2, 60), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.0, 1.0, 2.0]),
    ),
    k=st.integers(2, 6),
)
def test_groups_have_k_to_2k_minus_1_records(points: np.ndarray, k: int) -> None:
    if len(points) < k:
        points = np.repeat(points, k, axis=0)
    for kernel in (mdav, mdav_brute, mdav_narrow, mdav_indexed):
        sizes = np.bincount(kernel(points, k))
        assert sizes.sum() == len(points)
        assert sizes.min() >= k
        assert sizes.max() <= 2 * k - 1
        assert (sizes[:-1] == k).all()


@pytest.mark.parametrize("k", [2, 3, 5])
def test_every_small_number_of_records(k: int) -> None:
    rng = np.random.default_rng(k)
    for n in range(k, 3 * k + 1):
        points = rng.normal(size=(n, 2))
        sizes = np.bincount(mdav_indexed(points, k))
        np.testing.assert_array_equal(sizes, np.bincount(mdav_brute(points, k)))
        np.testing.assert_array_equal(sizes, np.bincount(mdav_narrow(points, k)))
        assert sizes.min() >= k


VERIFIED = {
    "census": {3: 799.1830, 4: 1052.2559, 5: 1276.0163, 10: 1987.4926},
    "eia": {3: 217.3804, 4: 302.1859, 5: 750.2038, 10: 1728.3124},
}


@pytest.mark.parametrize("name", ["census", "eia"])
@pytest.mark.parametrize(
    "kernel", [mdav_brute, mdav_narrow, mdav_indexed], ids=["brute", "narrow", "indexed"]
)
@pytest.mark.parametrize("k", [3, 4, 5, 10])
def test_verified_figures(
    name: str, kernel: object, k: int, request: pytest.FixtureRequest
) -> None:
    frame = request.getfixturevalue(name)
    points = ((frame - frame.mean()) / frame.std(ddof=0)).to_numpy(copy=True, dtype="float64")
    points = np.ascontiguousarray(points)
    labels = kernel(points, k)
    sse = sum(
        ((points[labels == g] - points[labels == g].mean(axis=0)) ** 2).sum()
        for g in range(labels.max() + 1)
    )
    assert sse == pytest.approx(VERIFIED[name][k], abs=1e-4)
