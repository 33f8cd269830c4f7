"""Distances between records of numbers and of categories (Gower 1971), pair by pair."""

from __future__ import annotations

import numpy as np

from sdc_dask.kernels._jit import jit

# Sums of distances that rounding may have moved apart are equal.
_EQUAL = 1e-9

_BLOCK = 2048  # records that are compared with one after the other while they are in the cache


# What stands in other records for a cell that may be anything, at no distance from any.
ANY_NUMBER = np.inf
ANY_WORD = np.uint64(0x5851F42D4C957F2D)


@jit
def _apart(a, b):
    """Return the distance of two numbers, at most 1; missing ones are a value of their own."""
    if b == ANY_NUMBER:
        return 0.0
    if a != a or b != b:
        return 0.0 if a != a and b != b else 1.0
    return min(abs(a - b), 1.0)


@jit
def _differ(first, second, other_first, other_second):
    """Whether two categories differ."""
    if first == other_first and second == other_second:
        return False
    return other_first != ANY_WORD or other_second != ANY_WORD


@jit
def pair_distances(numbers, first, second, other_numbers, other_first, other_second):
    """Return the sums of distances over columns, row by row of two sets of records.

    Parameters
    ----------
    numbers, other_numbers : ndarray of float64, shape (n, a)
        Scaled so that 1 is the largest distance, NaN where they are missing.
    first, second, other_first, other_second : ndarray of uint64, shape (n, b)
        Two words for every cell of a category. `ANY_NUMBER` and `ANY_WORD` stand for cells of the
        other records that may be anything.
    """
    n = len(numbers)
    sums = np.zeros(n)
    for i in range(n):
        total = 0.0
        for c in range(numbers.shape[1]):
            total += _apart(numbers[i, c], other_numbers[i, c])
        for c in range(first.shape[1]):
            if _differ(first[i, c], second[i, c], other_first[i, c], other_second[i, c]):
                total += 1.0
        sums[i] = total
    return sums


@jit
def count_near(numbers, first, second, limits, other_numbers, other_first, other_second, counts):
    """Count the records at a given distance of each record, or find that one is nearer.

    Parameters
    ----------
    numbers, first, second, other_numbers, other_first, other_second
        As in :func:`pair_distances`.
    limits : ndarray of float64
        The distances, of :func:`pair_distances`; within 1e-9 of them others are equal.
    counts : ndarray of int64
        How many there are of each of the other records.

    Returns
    -------
    ndarray of int64
        The number of records at the distance, -1 if one is nearer.
    """
    ties = np.zeros(len(numbers), np.int64)
    for start in range(0, len(counts), _BLOCK):
        end = min(start + _BLOCK, len(counts))
        for i in range(len(numbers)):
            if ties[i] < 0:
                continue
            low = limits[i] - _EQUAL
            high = limits[i] + _EQUAL
            for j in range(start, end):
                total = 0.0
                for c in range(numbers.shape[1]):
                    total += _apart(numbers[i, c], other_numbers[j, c])
                    if total > high:
                        break
                if total > high:
                    continue
                for c in range(first.shape[1]):
                    if _differ(first[i, c], second[i, c], other_first[j, c], other_second[j, c]):
                        total += 1.0
                        if total > high:
                            break
                if total < low:
                    ties[i] = -1
                    break
                if total <= high:
                    ties[i] += counts[j]
    return ties
