"""Fuzzy microaggregation: centres by fuzzy c-means, then a centre drawn for every record.

No array has a row for every record and a column for every centre: records are taken four at a
time, and every loop runs along the centres, so that the compiler turns it into vector code.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels._jit import jit

CHUNK = 256  # centres whose part of the work stays in the fastest cache
LARGEST_PRODUCT = 16  # exponents up to here are products where they can be
LOWEST_LOG = -700.0  # exp of it is still a number, and nothing beside the nearest centre's 1
FAINT = 1e-100  # below this sum of weights, single weights times coordinates may have vanished

# For logarithms and powers of e by bits: float64 is sign, 11 bits of exponent, 52 of fraction.
FRACTION_BITS = 52
HALF_SQRT_BITS = 0x3FE6A09E667F3BCD  # of sqrt(1/2)
ROUNDING = 6755399441055744.0  # 1.5 * 2**52: a number added to it loses its fraction
ROUNDING_BITS = 0x4338000000000000
LOG2_HIGH = 6.93147180369123816490e-01  # its last bits are 0: products with exponents are exact
LOG2_LOW = 1.90821492927058770002e-10


def fuzzy_centres(
    points: NDArray[np.float64],
    c: int,
    m1: float,
    rng: np.random.Generator,
    max_iterations: int = 100,
    tolerance: float = 1e-3,
) -> tuple[NDArray[np.float64], int, bool]:
    """Find the centres of fuzzy c-means.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Coordinates in which distances are Euclidean. Finite, rows in row-id order.
    c : int
        Number of centres, 1 to n. Fuzzy microaggregation takes ``ceil(n / k)``.
    m1 : float
        Fuzziness, 1 or more. With 1, every record belongs to its nearest centre alone (k-means);
        with ``inf``, every centre is the mean of the records.
    rng : numpy.random.Generator
        Draws the directions of the cuts from which the centres start.
    max_iterations : int
        Stop after as many iterations.
    tolerance : float
        Stop when no coordinate of a centre changes by more.

    Returns
    -------
    centres : ndarray of float64, shape (c, d), C order
        In coordinates, as `points` are. Two centres may coincide.
    iterations : int
        How many iterations were made.
    converged : bool
        Whether the last one changed no coordinate by more than `tolerance`.

    Notes
    -----
    An iteration gives record x the membership u_i = 1 / sum_j (|x - v_i| / |x - v_j|)^(2 / (m - 1))
    in centre v_i, and moves every centre to the mean of the records with weights u^m. A record
    at distance 0 from some centres belongs to them alone, in equal parts. A centre to which no
    record belongs stays.

    The records are cut in two by the hyperplane across a random direction, in proportion to the
    centres that each side is to have, and so on; the means of the parts are the starting centres.
    A start in single records would not do: with large m, the weight of a record at distance 0
    exceeds that of all others together, and its centre would never leave it.

    The mean of the records is where all centres may end only if the iteration contracts around it:
    if m > 1 / (1 - 2 a), where a < 1/2 is the largest eigenvalue of the mean of y y' / (y'y) over
    the records' differences y to the mean. That is m > 3 for three uncorrelated columns of one
    scale; for one or two columns, no m is large enough. Where the iteration does not contract and
    m is large, from 3 on or so, centres come to rest at single records.

    Time is O(n c d) an iteration; memory beside `points` is O((n + c) d).

    Sources: J. C. Bezdek, Pattern Recognition with Fuzzy Objective Function Algorithms, Plenum,
    1981 (fuzzy c-means); V. Torra, "A fuzzy microaggregation algorithm using fuzzy c-means",
    CCIA 2015.

    Examples
    --------
    >>> import numpy as np
    >>> points = np.array([[0.0], [0.2], [0.4], [5.0], [5.2], [5.4]])
    >>> centres, iterations, converged = fuzzy_centres(points, 2, 1.0, np.random.default_rng(0))
    >>> np.sort(centres, axis=0)
    array([[0.2],
           [5.2]])
    >>> iterations, converged
    (1, True)
    """
    m1 = float(m1)  # compiled code has a version for every type
    # Around the middle of the records, sums lose least; equal records come back as they were.
    origin = (points.min(axis=0) + points.max(axis=0)) / 2 if m1 > 1 else np.zeros(points.shape[1])
    points = points - origin
    if math.isinf(m1):
        return np.tile(points.mean(axis=0) + origin, (c, 1)), 0, True
    columns = np.ascontiguousarray(_starting_centres(points, c, rng).T)
    iterations, converged = 0, False
    while iterations < max_iterations and not converged:
        moved = _crisp_step(points, columns) if m1 == 1 else _fuzzy_step(points, columns, m1)
        converged = bool(np.abs(moved - columns).max() <= tolerance)
        columns = moved
        iterations += 1
    return np.ascontiguousarray(columns.T) + origin, iterations, converged


def fuzzy_assign(
    points: NDArray[np.float64],
    centres: NDArray[np.float64],
    m2: float,
    uniforms: NDArray[np.float64],
) -> NDArray[np.int64]:
    """Draw a centre for every record, with its memberships as probabilities.

    Parameters
    ----------
    points : ndarray of float64, shape (n, d), C order
        Coordinates of the records. Finite.
    centres : ndarray of float64, shape (c, d)
        Coordinates of the centres. Finite.
    m2 : float
        Fuzziness of the memberships, 1 or more. With 1, every record gets its nearest centre, of
        equals the first; with ``inf``, all centres have the same probability.
    uniforms : ndarray of float64, shape (n,)
        A random number from [0, 1) for every record.

    Returns
    -------
    ndarray of int64, shape (n,)
        The first centre up to which memberships add up to more than the record's number.

    Notes
    -----
    Memberships are those of :func:`fuzzy_centres`, with m2 in the place of m1.

    Examples
    --------
    >>> import numpy as np
    >>> points, centres = np.array([[0.0], [1.0], [4.0]]), np.array([[1.0], [3.0]])
    >>> fuzzy_assign(points, centres, 2.0, np.array([0.89, 0.99, 0.2]))
    array([0, 0, 1])
    >>> fuzzy_assign(points, centres, np.inf, np.array([0.89, 0.99, 0.2]))
    array([1, 1, 0])
    """
    if math.isinf(m2):
        return (uniforms * len(centres)).astype(np.int64)
    columns = np.ascontiguousarray(centres.T)
    if m2 == 1:
        return _nearest(points, columns)
    return _draw(points, columns, float(m2), uniforms)


def _starting_centres(
    points: NDArray[np.float64], c: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Cut the records into c parts of equal size, give or take one, and return their means."""
    n, d = points.shape
    order = np.arange(n)
    size = np.array([n])  # by part: records
    share = np.array([c])  # by part: centres it is to have
    while share.max() > 1:
        part = np.repeat(np.arange(len(size)), size)
        direction = rng.standard_normal((len(size), d))
        height = np.zeros(n)
        for j in range(d):
            height += points[order, j] * direction[part, j]
        order = order[np.lexsort((height, part))]
        lower_share = share // 2
        lower_size = size * lower_share // share
        # A part with one centre has a lower side of nothing, which goes.
        size = np.column_stack((lower_size, size - lower_size)).ravel()
        share = np.column_stack((lower_share, share - lower_share)).ravel()
        size, share = size[share > 0], share[share > 0]
    begin = np.cumsum(size) - size
    first = points[order[begin]]
    gaps = points[order] - np.repeat(first, size, axis=0)
    return first + np.add.reduceat(gaps, begin, axis=0) / size[:, np.newaxis]


@jit
def _fuzzy_step(points, columns, m):
    """Return the centres after an iteration; `columns` has an array of centres a dimension."""
    n, d = points.shape
    c = columns.shape[1]
    lanes = np.empty(_lane_count(c))
    ratio = np.empty(c)
    weight = np.zeros((4, c))
    scaled = np.empty((4, d + 1))  # the records and a 1, times what their weights lack
    nearest = np.empty(n)
    log_factor = np.empty(n)
    total = np.zeros((d + 1, c))
    for start in range(0, n, 4):
        for t in range(4):
            i = start + t
            if i == n:
                scaled[t:] = 0.0
                break
            # u^m = (ratio^(1/(m-1)) / sum)^m = ratio^(1/(m-1)) * ratio * sum^-m
            nearest[i], total_share = _shares(points[i], columns, m, ratio, weight[t], lanes)
            _multiply(ratio, weight[t])
            log_factor[i] = -m * np.log(total_share)
            factor = total_share**-m
            for j in range(d):
                scaled[t, j] = factor * points[i, j]
            scaled[t, d] = factor
        for a in range(0, c, CHUNK):
            b = min(a + CHUNK, c)
            for j in range(d + 1):
                _add_four(
                    weight[0, a:b],
                    weight[1, a:b],
                    weight[2, a:b],
                    weight[3, a:b],
                    scaled[0, j],
                    scaled[1, j],
                    scaled[2, j],
                    scaled[3, j],
                    total[j, a:b],
                )
    moved = np.empty((d, c))
    for v in range(c):
        if total[d, v] < FAINT:
            _add_by_logs(points, columns, v, m, nearest, log_factor, total)
        for j in range(d):
            moved[j, v] = total[j, v] / total[d, v] if total[d, v] > 0.0 else columns[j, v]
    return moved


@jit
def _add_by_logs(points, columns, v, m, nearest, log_factor, total):
    """Sum the records for one centre with weights relative to the largest, by their logarithms."""
    n, d = points.shape
    log_weight = np.empty(n)
    largest = -np.inf
    for i in range(n):
        distance = 0.0
        for j in range(d):
            gap = columns[j, v] - points[i, j]
            distance += gap * gap
        log_weight[i] = log_factor[i]
        if distance > 0.0:
            log_weight[i] += np.log(nearest[i] / distance) * (m / (m - 1.0))
        largest = max(largest, log_weight[i])
    for j in range(d + 1):
        total[j, v] = 0.0
    for i in range(n):
        if log_weight[i] > -np.inf:
            weight = np.exp(log_weight[i] - largest)
            total[d, v] += weight
            for j in range(d):
                total[j, v] += weight * points[i, j]


@jit
def _crisp_step(points, columns):
    """Return the centres after an iteration in which records belong to their nearest centre.

    A mean is the first record plus the mean of the differences to it: of equal records, it is
    that record.
    """
    n, d = points.shape
    c = columns.shape[1]
    labels = _nearest(points, columns)
    size = np.zeros(c, np.int64)
    first = np.zeros(c, np.int64)
    total = np.zeros((d, c))
    for i in range(n):
        v = labels[i]
        if size[v] == 0:
            first[v] = i
        size[v] += 1
        for j in range(d):
            total[j, v] += points[i, j] - points[first[v], j]
    moved = columns.copy()
    for v in range(c):
        if size[v] > 0:
            for j in range(d):
                moved[j, v] = points[first[v], j] + total[j, v] / size[v]
    return moved


@jit
def _nearest(points, columns):
    """Return the nearest centre of every record, of equals the first."""
    n = len(points)
    c = columns.shape[1]
    lanes = np.empty(_lane_count(c))
    distance = np.empty(c)
    labels = np.empty(n, np.int64)
    for i in range(n):
        smallest = _distances(points[i], columns, distance, lanes)
        for v in range(c):
            if distance[v] == smallest:
                labels[i] = v
                break
    return labels


@jit
def _draw(points, columns, m, uniforms):
    """Return the first centre of every record up to which memberships exceed its number."""
    n = len(points)
    c = columns.shape[1]
    lanes = np.empty(_lane_count(c))
    ratio = np.empty(c)
    share = np.empty(c)
    labels = np.empty(n, np.int64)
    for i in range(n):
        _distance, total_share = _shares(points[i], columns, m, ratio, share, lanes)
        goal = uniforms[i] * total_share
        reached = 0.0
        for v in range(c):
            # Another order of summation can leave the sum short of the goal: the last one counts.
            if share[v] > 0.0:
                labels[i] = v
            reached += share[v]
            if reached > goal:
                break
    return labels


@jit
def _shares(point, columns, m, ratio, share, lanes):
    """Write a record's memberships relative to that in its nearest centre.

    Parameters
    ----------
    point : ndarray of float64, shape (d,)
    columns : ndarray of float64, shape (d, c)
    m : float
        Fuzziness, above 1.
    ratio : ndarray of float64, shape (c,)
        Overwritten: squared distance of the nearest centre over the centre's own.
    share : ndarray of float64, shape (c,)
        Overwritten: the ratio to the power of 1 / (m - 1).
    lanes : ndarray of float64
        Overwritten.

    Returns
    -------
    tuple of float
        The squared distance of the nearest centre, and the sum of the shares.
    """
    c = columns.shape[1]
    nearest = _distances(point, columns, share, lanes)
    if nearest == 0.0:
        count = 0.0
        for v in range(c):
            share[v] = 1.0 if share[v] == 0.0 else 0.0
            ratio[v] = share[v]
            count += share[v]
        return nearest, count
    width = len(lanes)
    lanes[:] = 0.0
    for a in range(0, c, width):
        b = min(a + width, c)
        _divide(nearest, share[a:b], ratio[a:b])
        _raise(ratio[a:b], 1.0 / (m - 1.0), share[a:b])
        _add(share[a:b], lanes)
    return nearest, _sum_of_lanes(lanes)


@jit
def _distances(point, columns, out, lanes):
    """Write the squared distances from a record to the centres, and return the smallest."""
    d, c = columns.shape
    width = len(lanes)
    lanes[:] = np.inf
    for a in range(0, c, width):
        b = min(a + width, c)
        _square(columns[0, a:b], point[0], out[a:b])
        for j in range(1, d):
            _add_square(columns[j, a:b], point[j], out[a:b])
        _lower(out[a:b], lanes)
    return _smallest_of_lanes(lanes)


# Sums and minima along the centres are kept in lanes, one for every place in a chunk, and the
# lanes are folded at the end: a fixed order of summation that vector code can follow.


@jit
def _lane_count(c):
    """Return the power of 2 that is at least c, or CHUNK."""
    count = 4
    while count < c and count < CHUNK:
        count *= 2
    return count


@jit
def _sum_of_lanes(lanes):
    """Fold the lanes into their sum."""
    half = len(lanes) // 2
    while half >= 4:
        _add(lanes[half : 2 * half], lanes[:half])
        half //= 2
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])


@jit
def _smallest_of_lanes(lanes):
    """Fold the lanes into their minimum."""
    half = len(lanes) // 2
    while half >= 4:
        _lower(lanes[half : 2 * half], lanes[:half])
        half //= 2
    return min(min(lanes[0], lanes[1]), min(lanes[2], lanes[3]))


# Loops in functions of their own, over arrays of their own, become vector code.


@jit
def _square(column, x, out):
    for v in range(len(out)):
        gap = column[v] - x
        out[v] = gap * gap


@jit
def _add_square(column, x, out):
    for v in range(len(out)):
        gap = column[v] - x
        out[v] += gap * gap


@jit
def _lower(values, out):
    for v in range(len(values)):
        out[v] = values[v] if values[v] < out[v] else out[v]


@jit
def _add(values, out):
    for v in range(len(values)):
        out[v] += values[v]


@jit
def _multiply(values, out):
    for v in range(len(values)):
        out[v] *= values[v]


@jit
def _divide(numerator, values, out):
    for v in range(len(values)):
        out[v] = numerator / values[v]


@jit
def _add_four(first, second, third, fourth, w, x, y, z, out):
    for v in range(len(out)):
        out[v] += (first[v] * w + second[v] * x) + (third[v] * y + fourth[v] * z)


@jit
def _raise(values, exponent, out):
    """Write values from (0, 1] to the power of an exponent, at least exp(LOWEST_LOG)."""
    doubled = np.int64(min(np.rint(2.0 * exponent), 4.0 * LARGEST_PRODUCT))
    if 0 < doubled <= 2 * LARGEST_PRODUCT and abs(2.0 * exponent - doubled) <= 1e-14 * doubled:
        if doubled % 2 == 1:
            for v in range(len(values)):
                out[v] = np.sqrt(values[v])
        else:
            for v in range(len(values)):
                out[v] = values[v]
        for _ in range((doubled - 1) // 2):
            _multiply(values, out)
    else:
        for v in range(len(values)):
            power = exponent * _log(values[v])
            out[v] = _exp(power if power > LOWEST_LOG else LOWEST_LOG)


# The logarithm and the exponential of the standard library are calls, which keep a loop from
# becoming vector code and make it four times as slow.


@jit
def _log(x):
    """Logarithm of a normal positive number, by the method and the coefficients of fdlibm."""
    bits = np.float64(x).view(np.int64)
    exponent = (bits - HALF_SQRT_BITS) >> FRACTION_BITS
    f = np.int64(bits - (exponent << FRACTION_BITS)).view(np.float64) - 1.0
    k = np.int64(exponent + ROUNDING_BITS).view(np.float64) - ROUNDING
    s = f / (2.0 + f)
    z = s * s
    w = z * z
    odd = 2.222219843214978396e-01 + w * 1.531383769920937332e-01
    odd = w * (3.999999999940941908e-01 + w * odd)
    even = 1.818357216161805012e-01 + w * 1.479819860511658591e-01
    even = z * (6.666666666666735130e-01 + w * (2.857142874366239149e-01 + w * even))
    half_square = 0.5 * f * f
    tail = s * (half_square + (odd + even)) + k * LOG2_LOW
    return k * LOG2_HIGH - ((half_square - tail) - f)


@jit
def _exp(x):
    """Power of e of a number from LOWEST_LOG to 0: a power of 2 times a Taylor polynomial."""
    rounded = x * 1.4426950408889634 + ROUNDING
    k = rounded - ROUNDING
    r = (x - k * LOG2_HIGH) - k * LOG2_LOW
    y = 1.0 / 479001600.0
    y = y * r + 1.0 / 39916800.0
    y = y * r + 1.0 / 3628800.0
    y = y * r + 1.0 / 362880.0
    y = y * r + 1.0 / 40320.0
    y = y * r + 1.0 / 5040.0
    y = y * r + 1.0 / 720.0
    y = y * r + 1.0 / 120.0
    y = y * r + 1.0 / 24.0
    y = y * r + 1.0 / 6.0
    y = y * r + 0.5
    y = y * r + 1.0
    y = y * r + 1.0
    scale = np.float64(rounded).view(np.int64) << FRACTION_BITS
    return np.int64(np.float64(y).view(np.int64) + scale).view(np.float64)
