"""V-MDAV: both kernels against a plain implementation, and what must always hold."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from sdc_dask.kernels.mdav import mdav_brute
from sdc_dask.kernels.vmdav import _vmdav_indexed, vmdav, vmdav_brute, vmdav_indexed

WIDTHS = [1, 2, 3, 6, 9]
GAINS = [0.0, 0.2, 1.1, 3.0]


def plain_vmdav(points: np.ndarray, k: int, gain: float) -> np.ndarray:
    """V-MDAV as it is written down, with numpy and no haste."""
    labels = np.full(len(points), -1)
    centroid = in_row_order(points) / len(points)
    group = 0
    while (labels < 0).sum() >= k:
        left = np.flatnonzero(labels < 0)
        seed = left[np.argmax(squares(points[left], centroid))]
        others = left[left != seed]
        near = others[np.argsort(squares(points[others], points[seed]), kind="stable")[: k - 1]]
        labels[[seed, *near]] = group
        while (labels == group).sum() < 2 * k - 1 and (labels < 0).sum() > 1:
            left = np.flatnonzero(labels < 0)
            members = points[labels == group]
            inner = np.min([squares(points[left], member) for member in members], axis=0)
            e = left[np.argmin(inner)]
            outer = squares(points[left[left != e]], points[e])
            if not inner.min() < gain * gain * outer.min():
                break
            labels[e] = group
        group += 1
    formed = [points[labels == g] for g in range(group)]
    centroids = np.array([in_row_order(members) / len(members) for members in formed])
    for row in np.flatnonzero(labels < 0):
        labels[row] = np.argmin(squares(centroids, points[row]))
    return labels


# Sums in the order of the kernels, to the last bit.


def squares(many: np.ndarray, one: np.ndarray) -> np.ndarray:
    total = np.zeros(len(many))
    for j in range(many.shape[1]):
        total += (many[:, j] - one[j]) ** 2
    return total


def in_row_order(points: np.ndarray) -> np.ndarray:
    total = np.zeros(points.shape[1])
    for point in points:
        total += point
    return total


def sse(points: np.ndarray, labels: np.ndarray) -> float:
    return sum(
        ((points[labels == g] - points[labels == g].mean(axis=0)) ** 2).sum()
        for g in range(labels.max() + 1)
    )


def assert_kernels_are_plain(points: np.ndarray, k: int, gain: float) -> None:
    expected = plain_vmdav(points, k, gain)
    np.testing.assert_array_equal(vmdav_brute(points, k, gain), expected)
    np.testing.assert_array_equal(vmdav_indexed(points, k, gain), expected)


@pytest.mark.parametrize("d", WIDTHS)
@pytest.mark.parametrize("k", [2, 3, 7])
@pytest.mark.parametrize("n", [7, 40, 200])
def test_kernels_equal_the_plain_algorithm(n: int, d: int, k: int) -> None:
    points = np.random.default_rng(n + d + k).normal(size=(n, d))
    for gain in GAINS:
        assert_kernels_are_plain(points, k, gain)


@pytest.mark.parametrize("levels", [1, 2, 5, 30])
@pytest.mark.parametrize("d", WIDTHS)
def test_kernels_equal_the_plain_algorithm_on_ties(levels: int, d: int) -> None:
    # Tenths are on no grid: distances are rounded as in the plain algorithm.
    points = np.random.default_rng(levels + d).integers(0, levels, (90, d)) / 10
    for k in (2, 5):
        for gain in (*GAINS, 1.0):
            assert_kernels_are_plain(points, k, gain)


@pytest.mark.parametrize("name", ["census", "eia"])
def test_kernels_equal_the_plain_algorithm_on_real_data(
    name: str, request: pytest.FixtureRequest
) -> None:
    frame = request.getfixturevalue(name).head(400)
    points = np.ascontiguousarray((frame - frame.mean()) / frame.std(ddof=0), dtype="float64")
    for gain in (0.2, 1.1):
        assert_kernels_are_plain(points, 4, gain)


@pytest.mark.parametrize("levels", [1, 2, 5, 40])
@pytest.mark.parametrize("d", WIDTHS)
def test_kernels_agree_on_ties(levels: int, d: int) -> None:
    points = np.random.default_rng(levels * 10 + d).integers(0, levels, (1_500, d)).astype(float)
    points -= points.mean(axis=0)
    for k in (2, 3, 10):
        for gain in GAINS:
            expected = vmdav_brute(points, k, gain)
            np.testing.assert_array_equal(vmdav_indexed(points, k, gain), expected)


@pytest.mark.parametrize(
    "shape",
    [
        lambda rng, n: rng.uniform(-1, 1, (n, 3)),
        lambda rng, n: rng.lognormal(0, 3, (n, 9)),
        lambda rng, n: rng.normal(size=(n, 1)) @ rng.normal(size=(1, 6)),  # on a line
        lambda rng, n: rng.normal(size=(n // 10, 3))[rng.integers(0, n // 10, n)],
        lambda rng, n: rng.normal(size=(n, 12)),
        lambda rng, n: 1e9 + rng.normal(size=(n, 3)),
        lambda rng, n: 1e-160 * rng.normal(size=(n, 3)),  # squares are subnormal
        lambda rng, n: 1e200 * rng.normal(size=(n, 3)),  # squares are infinite
    ],
    ids=["uniform", "skewed", "line", "repeated", "wide", "offset", "tiny", "huge"],
)
def test_kernels_agree_on_shapes(shape: object) -> None:
    points = shape(np.random.default_rng(3), 3_000)
    for k in (3, 20):
        for gain in GAINS:
            expected = vmdav_brute(points, k, gain)
            np.testing.assert_array_equal(vmdav_indexed(points, k, gain), expected)
            assert np.bincount(expected).min() >= k


@pytest.mark.parametrize("n", [100, 3_000])
def test_the_choice_of_kernel_makes_no_difference(n: int) -> None:
    points = np.random.default_rng(n).normal(size=(n, 3)) + 5
    labels = vmdav(points, 3, 1)
    assert labels.dtype == np.int64
    centred = points - points.mean(axis=0)
    np.testing.assert_array_equal(labels, vmdav_brute(centred, 3, 1.0))
    np.testing.assert_array_equal(labels, vmdav_indexed(centred, 3, 1.0))


@settings(max_examples=30, deadline=None)
@given(
    points=hnp.arrays(
        float,
        st.tuples(st.integers(2, 60), st.integers(1, 4)),
        elements=st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.0, 1.0, 2.0]),
    ),
    k=st.integers(2, 6),
    gain=st.floats(0, 5) | st.just(1e200),
)
def test_groups_have_at_least_k_records(points: np.ndarray, k: int, gain: float) -> None:
    if len(points) < k:
        points = np.repeat(points, k, axis=0)
    for kernel in (vmdav, vmdav_brute, vmdav_indexed):
        sizes = np.bincount(kernel(points, k, gain))
        assert sizes.sum() == len(points)
        assert sizes.min() >= k
        # Only the last k - 1 records or fewer can make groups larger than 2k - 1.
        assert np.maximum(sizes - (2 * k - 1), 0).sum() <= k - 1


@pytest.mark.parametrize("kernel", [vmdav, vmdav_brute, vmdav_indexed])
@pytest.mark.parametrize("gain", [0.0, 1.1, 1e200])
def test_fewer_than_2k_records_are_one_group(kernel: object, gain: float) -> None:
    rng = np.random.default_rng(1)
    for k in (2, 3, 5):
        for n in range(k, 2 * k):
            labels = kernel(rng.normal(size=(n, 3)), k, gain)
            np.testing.assert_array_equal(labels, np.zeros(n))


@pytest.mark.parametrize("n", [90, 91, 94])
def test_without_gain_groups_have_k_records_and_the_rest(n: int) -> None:
    k = 5
    sizes = np.bincount(vmdav(np.random.default_rng(n).normal(size=(n, 3)), k, 0.0))
    assert len(sizes) == n // k
    assert sizes.min() == k
    assert (sizes - k).sum() == n % k


def test_with_endless_gain_groups_have_2k_minus_1_records() -> None:
    k = 3
    points = np.random.default_rng(2).normal(size=(50 * (2 * k - 1), 3))
    sizes = np.bincount(vmdav(points, k, 1e200))
    # The last record of all joins the group closest to it.
    np.testing.assert_array_equal(np.sort(sizes)[1:-1], 2 * k - 1)
    assert sizes.sum() == len(points)
    assert sizes.min() == 2 * k - 2


def test_equal_records_do_not_grow_groups() -> None:
    sizes = np.bincount(vmdav(np.ones((23, 2)), 5, 1e200))
    # No distance is less than a multiple of zero; the rest joins the first of equal groups.
    np.testing.assert_array_equal(sizes, [8, 5, 5, 5])


def rings(group: np.ndarray) -> np.ndarray:
    """Put the members of every group on a circle, at equal distances."""
    place = np.array([(group[:i] == group[i]).sum() for i in range(len(group))])
    angle = 2 * np.pi * place / np.bincount(group)[group]
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_natural_groups_of_several_sizes_are_found() -> None:
    rng = np.random.default_rng(4)
    for k in (3, 5):
        natural = np.repeat(np.arange(40), rng.integers(k, 2 * k, 40))
        rng.shuffle(natural)
        centres = 100.0 * np.stack([np.arange(40) % 8, np.arange(40) // 8], axis=1)
        points = centres[natural] + rings(natural) + rng.uniform(-0.005, 0.005, (len(natural), 2))
        labels = vmdav_brute(points, k, 1.1)
        # One to one: as many pairs of labels as groups of either kind.
        assert len(set(zip(labels, natural, strict=True))) == labels.max() + 1 == 40
        assert sse(points, labels) < 0.01 * sse(points, mdav_brute(points, k))


def test_the_rest_joins_the_group_of_the_nearest_centroid() -> None:
    # Groups {0, 1, 2} and {20, 21, 22} form from the ends; 9 is left, nearest to the first.
    points = np.array([[9.0], [0.0], [1.0], [2.0], [20.0], [21.0], [22.0]])
    np.testing.assert_array_equal(vmdav(points, 3, 0.0), [1, 1, 1, 1, 0, 0, 0])


@pytest.mark.soak
@pytest.mark.parametrize("d", [1, 2, 3])
def test_unrolled_loops_form_the_same_groups(d: int) -> None:
    points = np.random.default_rng(d).normal(size=(3_000, d))
    points -= points.mean(axis=0)
    unrolled = _vmdav_indexed(points, 3, 0.2, (0,) * d)
    np.testing.assert_array_equal(unrolled, vmdav_indexed(points, 3, 0.2))
