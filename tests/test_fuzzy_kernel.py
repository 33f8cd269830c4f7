"""Fuzzy microaggregation: the kernels against the textbook, and at the limits of fuzziness."""

from __future__ import annotations

import itertools
import sys
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import stats

from sdc_dask.kernels.fuzzy import fuzzy_assign, fuzzy_centres


def plain_memberships(points: np.ndarray, centres: np.ndarray, m: float) -> np.ndarray:
    """Memberships of all records in all centres, as they are written down."""
    distance = ((points[:, np.newaxis] - centres) ** 2).sum(axis=2)
    share = (distance == 0).astype(float)
    apart = share.sum(axis=1) == 0
    share[apart] = (distance[apart].min(axis=1, keepdims=True) / distance[apart]) ** (1 / (m - 1))
    return share / share.sum(axis=1, keepdims=True)


def plain_step(points: np.ndarray, centres: np.ndarray, m: float) -> np.ndarray:
    memberships = plain_memberships(points, centres, m)
    weight = (memberships / memberships.max(axis=0)) ** m  # a factor per centre cancels out
    return (weight.T @ points) / weight.sum(axis=0)[:, np.newaxis]


def objective(points: np.ndarray, centres: np.ndarray, m: float) -> float:
    distance = ((points[:, np.newaxis] - centres) ** 2).sum(axis=2)
    if m == 1:
        return float(distance.min(axis=1).sum())
    return float((plain_memberships(points, centres, m) ** m * distance).sum())


def centres_of(points: np.ndarray, c: int, m: float, **options: float) -> np.ndarray:
    return fuzzy_centres(points, c, m, np.random.default_rng(1), **options)[0]


def normal(n: int, d: int) -> np.ndarray:
    return np.random.default_rng(n + d).normal(size=(n, d))


@pytest.mark.parametrize("m", [1.01, 1.2, 1.5, 1.73, 2, 2.37, 3, 5, 20, 200, 5000])
@pytest.mark.parametrize(("n", "d", "c"), [(50, 1, 10), (203, 2, 41), (301, 3, 7), (600, 5, 300)])
def test_centres_equal_the_plain_algorithm(n: int, d: int, c: int, m: float) -> None:
    points = normal(n, d)
    expected = centres_of(points, c, m, max_iterations=0)
    for _ in range(4):
        expected = plain_step(points, expected, m)
    actual = centres_of(points, c, m, max_iterations=4, tolerance=0.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("d", [1, 3])
def test_crisp_centres_equal_plain_k_means(d: int) -> None:
    points = normal(200, d)
    expected = centres_of(points, 40, 1, max_iterations=0)
    for _ in range(5):
        nearest = ((points[:, np.newaxis] - expected) ** 2).sum(axis=2).argmin(axis=1)
        for v in np.unique(nearest):
            expected[v] = points[nearest == v].mean(axis=0)
    actual = centres_of(points, 40, 1, max_iterations=5, tolerance=0.0)
    np.testing.assert_allclose(actual, expected, rtol=1e-12, atol=1e-14)


def test_centres_start_at_the_means_of_equal_parts() -> None:
    points = np.arange(23.0)[:, np.newaxis]
    start = np.sort(centres_of(points, 5, 2, max_iterations=0), axis=0)
    # Four or five neighbours each, so that means are half the sum of two sizes apart.
    assert start[0] in (1.5, 2.0)
    assert start[-1] in (20.0, 20.5)
    assert set(np.diff(start, axis=0).ravel()) <= {4.0, 4.5, 5.0}


@pytest.mark.parametrize("m", [1, 1.05, 1.5, 2, 3, 8])
def test_objective_never_rises(m: float) -> None:
    points = normal(300, 2)
    course = [
        objective(points, centres_of(points, 60, m, max_iterations=i, tolerance=0.0), m)
        for i in range(15)
    ]
    assert course[-1] < course[0]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(course))


def test_iterations_and_convergence_are_reported() -> None:
    points = normal(300, 2)
    rng = np.random.default_rng
    rough, few, converged = fuzzy_centres(points, 30, 1.5, rng(0), tolerance=1e-1)
    assert converged
    fine, many, converged = fuzzy_centres(points, 30, 1.5, rng(0), 5000, tolerance=1e-8)
    assert converged
    assert 1 < few < many < 5000
    np.testing.assert_allclose(plain_step(points, fine, 1.5), fine, atol=1e-7)
    assert fuzzy_centres(points, 30, 1.5, rng(0), few - 1, tolerance=1e-1)[1:] == (few - 1, False)
    again = fuzzy_centres(points, 30, 1.5, rng(0), few, tolerance=0.0)
    np.testing.assert_array_equal(again[0], rough)


@pytest.mark.parametrize("m", [1.0, 1.5, 1.73])
def test_the_same_generator_gives_the_same_bits(m: float) -> None:
    points = normal(500, 3)
    uniforms = np.random.default_rng(0).random(500)
    first, second = (centres_of(points, 100, m) for _ in range(2))
    assert first.tobytes() == second.tobytes()
    labels = [fuzzy_assign(points, first, m, uniforms) for _ in range(2)]
    np.testing.assert_array_equal(*labels)
    other = fuzzy_centres(points, 100, m, np.random.default_rng(2))[0]
    assert not np.array_equal(first, other)


@pytest.mark.parametrize("m", [1.05, 1.2, 1.73, 2, 3, 50])
@pytest.mark.parametrize("c", [1, 3, 300])
def test_labels_follow_the_memberships(c: int, m: float) -> None:
    centres = normal(c, 3)
    points = np.repeat(normal(4, 3), 1001, axis=0)
    points[-1001:] = centres[-1]  # coincide
    uniforms = np.tile(np.arange(1001) / 1001, 4)
    cumulative = np.cumsum(plain_memberships(points, centres, m), axis=1)
    expected = (cumulative > uniforms[:, np.newaxis]).argmax(axis=1)
    clear = np.abs(cumulative - uniforms[:, np.newaxis]).min(axis=1) > 1e-12
    labels = fuzzy_assign(points, centres, m, uniforms)
    assert clear.mean() > 0.7
    np.testing.assert_array_equal(labels[clear], expected[clear])
    assert (labels[-1001:] == c - 1).all()


def test_a_number_below_one_never_leads_past_the_last_centre() -> None:
    points = normal(500, 2)
    centres = normal(77, 2)
    largest = np.full(500, np.nextafter(1.0, 0.0))
    for m in (1.0, 1.001, 1.3, 2.0, 40.0, np.inf):
        labels = fuzzy_assign(points, centres, m, largest)
        assert labels.min() >= 0
        assert labels.max() < 77
    assert (fuzzy_assign(points, centres, np.inf, largest) == 76).all()


@pytest.mark.parametrize("m", [1, 1 + 1e-6, 1 + 1e-12, np.nextafter(1.0, 2.0)])
def test_memberships_of_fuzziness_one_choose_the_nearest(m: float) -> None:
    points = normal(2_000, 2)
    centres = normal(300, 2)
    distance = ((points[:, np.newaxis] - centres) ** 2).sum(axis=2)
    two = np.partition(distance, 1, axis=1)
    clear = two[:, 0] < two[:, 1] * (1 - 1e-4)
    labels = fuzzy_assign(points, centres, m, np.random.default_rng(0).random(2_000))
    assert clear.mean() > 0.99
    np.testing.assert_array_equal(labels[clear], distance.argmin(axis=1)[clear])


def test_the_first_of_equally_near_centres_is_chosen() -> None:
    centres = np.array([[3.0], [1.0], [-1.0], [1.0]])
    points = np.array([[0.0], [1.0], [2.0]])
    labels = fuzzy_assign(points, centres, 1.0, np.array([0.9, 0.9, 0.9]))
    np.testing.assert_array_equal(labels, [1, 1, 0])
    # A fuzzier choice shares them: the two centres at the second record, in equal parts.
    for m in (1.0001, 2.0, 100.0):
        labels = fuzzy_assign(points[[1, 1]], centres, m, np.array([0.49, 0.51]))
        np.testing.assert_array_equal(labels, [1, 3])


def test_memberships_of_large_fuzziness_are_uniform() -> None:
    points = normal(20_000, 3)
    centres = normal(25, 3)
    uniforms = np.random.default_rng(0).random(20_000)
    exact = fuzzy_assign(points, centres, np.inf, uniforms)
    np.testing.assert_array_equal(exact, np.floor(25 * uniforms))
    for labels in (exact, fuzzy_assign(points, centres, 1e6, uniforms)):
        assert stats.chisquare(np.bincount(labels, minlength=25)).pvalue > 0.01
    sharp = fuzzy_assign(points, centres, 2.0, uniforms)
    assert stats.chisquare(np.bincount(sharp, minlength=25)).pvalue < 1e-6


@pytest.mark.parametrize("m", [5, 20, 200, 1e9])
def test_centres_of_large_fuzziness_come_to_the_mean(m: float) -> None:
    points = normal(400, 5)
    centres, _, converged = fuzzy_centres(points, 80, m, np.random.default_rng(0))
    assert converged
    np.testing.assert_allclose(centres, np.tile(points.mean(axis=0), (80, 1)), atol=0.01)


def test_centres_of_infinite_fuzziness_are_the_mean() -> None:
    points = 1e6 + normal(400, 2)
    centres, iterations, converged = fuzzy_centres(points, 7, np.inf, np.random.default_rng(0))
    assert (iterations, converged) == (0, True)
    np.testing.assert_allclose(centres - 1e6, np.tile(normal(400, 2).mean(axis=0), (7, 1)))


@pytest.mark.parametrize(("d", "m"), [(2, 1.2), (2, 200), (3, 2.5), (3, 3.5), (5, 1.5), (5, 1.8)])
def test_the_mean_attracts_where_the_criterion_says(d: int, m: float) -> None:
    points = normal(5_000, d)
    points -= points.mean(axis=0)
    unit = points / np.sqrt((points**2).sum(axis=1, keepdims=True))
    values, vectors = np.linalg.eigh(unit.T @ unit / len(points))
    pair = 1e-4 * vectors[:, -1] * np.array([[1.0], [-1.0]])
    growth = (plain_step(points, pair, m) / pair).mean()
    assert growth == pytest.approx(2 * values[-1] * m / (m - 1), rel=0.01)
    assert (growth < 1) == ((d, m) in [(3, 3.5), (5, 1.8)])


@pytest.mark.parametrize("d", [1, 2])
def test_centres_of_few_columns_do_not_come_to_the_mean(d: int) -> None:
    # A limit of the method, which the docstring states: they come to rest at single records.
    points = normal(400, d)
    centres = centres_of(points, 80, 5)
    to_mean = np.sqrt(((centres - points.mean(axis=0)) ** 2).sum(axis=1))
    to_record = np.abs(centres[:, np.newaxis] - points).max(axis=2).min(axis=1)
    assert np.median(to_mean) > 0.3
    assert (to_record < 1e-3).mean() > 0.9


@pytest.mark.parametrize("d", [1, 2, 6])
def test_a_centre_for_every_record_returns_the_records(d: int) -> None:
    points = np.random.default_rng(d).lognormal(0, 2, (137, d))
    centres, iterations, converged = fuzzy_centres(points, 137, 1.0, np.random.default_rng(0))
    assert (iterations, converged) == (1, True)
    labels = fuzzy_assign(points, centres, 1.0, np.full(137, 0.5))
    np.testing.assert_array_equal(centres[labels], points)


@pytest.mark.parametrize("m", [1, 1.001, 1.5, 1.73, 2, 5, 200, np.inf])
def test_equal_records_come_back_as_they_were(m: float) -> None:
    points = np.tile([0.1, -7.7e5, 1 / 3], (40, 1))
    for c in (1, 8, 40):
        centres, _, converged = fuzzy_centres(points, c, m, np.random.default_rng(0))
        assert converged
        np.testing.assert_array_equal(centres, points[:c])
        labels = fuzzy_assign(points, centres, m, np.linspace(0, 0.999, 40))
        np.testing.assert_array_equal(centres[labels], points)


@pytest.mark.parametrize("m", [1, 1.2, 1.73, 2, 5, 200])
def test_more_centres_than_distinct_records(m: float) -> None:
    distinct = np.array([[0.0, 0.0], [4.0, 1.0], [-3.0, 2.0]])
    points = np.repeat(distinct, [20, 3, 17], axis=0)
    centres = centres_of(points, 20, m)
    assert np.isfinite(centres).all()
    near = np.abs(centres[:, np.newaxis] - distinct).max(axis=2).min(axis=0)
    np.testing.assert_allclose(near, 0, atol=1e-9)  # every distinct record has a centre


@pytest.mark.parametrize("m", [1, 1.5, 1.73, 7, np.inf])
def test_one_centre_is_the_mean(m: float) -> None:
    points = normal(101, 3)
    np.testing.assert_allclose(centres_of(points, 1, m), [points.mean(axis=0)], atol=1e-12)
    assert (fuzzy_assign(points, points[:1], m, np.full(101, 0.999)) == 0).all()


@pytest.mark.parametrize("m", [1, 1.001, 1.5, 1.73, 2, 200])
def test_powers_of_two_scale_the_centres_exactly(m: float) -> None:
    points = normal(100, 2)
    centres = centres_of(points, 20, m, max_iterations=5, tolerance=0.0)
    for scale in (2.0**300, 2.0**-300):
        scaled = centres_of(scale * points, 20, m, max_iterations=5, tolerance=0.0)
        np.testing.assert_array_equal(scaled, scale * centres)
    shifted = centres_of(1e6 + points, 20, m, max_iterations=5, tolerance=0.0)
    np.testing.assert_allclose(shifted - 1e6, centres, atol=1e-7)


@pytest.mark.parametrize("m", [1, 1.001, 1.5, 1.73, 2, 3, 200, np.inf])
@pytest.mark.parametrize("scale", [[1e100, 1e-100], [1e-150, 1e-150], [1e-170, 1.0], [0.0, 1e100]])
def test_extreme_coordinates_give_numbers(scale: list[float], m: float) -> None:
    points = normal(60, 2) * scale
    points[:5] *= 1e-10
    centres = centres_of(points, 12, m, max_iterations=10)
    assert np.isfinite(centres).all()
    labels = fuzzy_assign(points, centres, m, np.linspace(0, 0.999, 60))
    assert labels.min() >= 0
    assert labels.max() < 12


@given(
    data=st.data(),
    n=st.integers(1, 30),
    d=st.integers(1, 3),
    m=st.sampled_from([1, 1 + 1e-9, 1.01, 1.3, 1.5, 2, 2.7, 9, 300, np.inf]),
)
@settings(max_examples=60, deadline=None)
def test_centres_stay_among_the_records(data: st.DataObject, n: int, d: int, m: float) -> None:
    points = data.draw(hnp.arrays(float, (n, d), elements=st.integers(-3, 3)))
    c = data.draw(st.integers(1, n))
    centres, iterations, _ = fuzzy_centres(points, c, m, np.random.default_rng(0), 20)
    assert centres.shape == (c, d)
    assert iterations <= 20
    assert (centres >= points.min(axis=0) - 1e-12).all()
    assert (centres <= points.max(axis=0) + 1e-12).all()
    labels = fuzzy_assign(points, centres, m, np.random.default_rng(1).random(n))
    assert labels.dtype == np.int64
    assert ((labels >= 0) & (labels < c)).all()


def test_memory_does_not_grow_with_records_times_centres() -> None:
    resource = pytest.importorskip("resource")
    unit = 1 if sys.platform == "darwin" else 1024
    points = normal(50_000, 2)
    uniforms = np.random.default_rng(0).random(50_000)

    def mask(points: np.ndarray, c: int) -> None:
        centres = centres_of(points, c, 2, max_iterations=1)
        fuzzy_assign(points, centres, 2, uniforms[: len(points)])

    mask(points[:100], 10)  # compile
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tracemalloc.start()
    try:
        mask(points, 5_000)  # 2 GB, if there were a number for every pair
        traced = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert traced < 20e6
    assert (after - before) * unit < 100e6  # what compiled code takes is not traced
