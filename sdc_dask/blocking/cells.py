"""Counts of records by cell of space: small partials that merge in any order to the same result."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from sdc_dask.kernels.tree import add_to_cells

# Positions are added up as integers, in this many steps across a node: the sums cannot depend on
# the order of the records, and 2**33 records fit.
_STEPS = 2.0**30
_NARROWEST = 1e-290
_FEW_CELLS = 2**16  # whose numbers of records stay in the processor's cache
_CODE_BITS = 40  # more than codes have, which may be numbers of leaves
_COMBINED = {"count": np.add, "low": np.minimum, "high": np.maximum, "position": np.add}


@dataclass(frozen=True)
class Cells:
    """Non-empty cells in order of (node, code), with what planning needs of their records."""

    node: NDArray[np.int64]
    code: NDArray[np.int64]
    count: NDArray[np.int64]
    low: NDArray[np.float64]  # smallest coordinates
    high: NDArray[np.float64]  # largest coordinates
    position: NDArray[np.int64]  # sum of positions between the node's bounds, in steps

    def __len__(self) -> int:
        return len(self.node)


def bytes_of_a_cell(d: int) -> int:
    """Return how much memory a cell takes in d dimensions."""
    return 8 * (3 + 3 * d)


def joined(parts: Sequence[Cells]) -> Cells:
    """Put cells of nodes that follow each other one after the other."""
    names = [each.name for each in fields(Cells)]
    return Cells(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def count_cells(
    node: NDArray[np.int64],
    code: NDArray[np.int64],
    rows: NDArray[np.int64],
    points: NDArray[np.float64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> Cells:
    """Count records by cell.

    Parameters
    ----------
    node, code : ndarray of int64, shape (rows,)
        The cells of some records.
    rows : ndarray of int64
        Which of the points these records are.
    points : ndarray of float64, shape (n, d)
    low, high : ndarray of float64, shape (nodes, d)
        Bounds of the nodes, between which positions are measured.
    """
    cell, nodes, codes = _numbered(node, code)
    base = low / 2
    width = high / 2 - base
    # A node too narrow for its steps to be counted has all its records at its lower bound.
    steps = np.where(width > _NARROWEST, _STEPS / np.maximum(width, _NARROWEST), 0.0)
    shape = (len(nodes), points.shape[1])
    cells = Cells(
        nodes,
        codes,
        np.zeros(len(nodes), np.int64),
        np.full(shape, np.inf),
        np.full(shape, -np.inf),
        np.zeros(shape, np.int64),
    )
    add_to_cells(
        cell,
        rows,
        points,
        cells.node,
        base,
        steps,
        cells.count,
        cells.low,
        cells.high,
        cells.position,
    )
    return cells


def merge_cells(parts: Sequence[Cells]) -> Cells:
    """Merge partial counts, in little more memory than the result and the parts take."""
    return functools.reduce(_merge_two, parts)


def _merge_two(one: Cells, other: Cells) -> Cells:
    """Merge the smaller counts into a copy of the larger."""
    large, small = (one, other) if len(one) >= len(other) else (other, one)
    keys, others = _keys(large), _keys(small)
    union = keys
    new = np.searchsorted(keys, others)
    if (keys[np.minimum(new, len(keys) - 1)] != others).any():  # rare where records are many
        union = np.union1d(keys, others)
        new = np.searchsorted(union, others)
    old = slice(None) if union is keys else np.searchsorted(union, keys)
    shape = (len(union), large.low.shape[1])
    merged = Cells(
        union >> _CODE_BITS,
        union & (1 << _CODE_BITS) - 1,
        np.zeros(len(union), np.int64),
        np.full(shape, np.inf),
        np.full(shape, -np.inf),
        np.zeros(shape, np.int64),
    )
    for name, combine in _COMBINED.items():
        column: NDArray = getattr(merged, name)
        column[old] = getattr(large, name)
        column[new] = combine(column[new], getattr(small, name))
    return merged


def _keys(cells: Cells) -> NDArray[np.int64]:
    """Return node and code in one integer."""
    return (cells.node << _CODE_BITS) + cells.code


def centroids(cells: Cells, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray:
    """Mean coordinates of the records of every cell, to a billionth of the node's width."""
    share = cells.position / cells.count[:, None] / _STEPS
    base, top = low[cells.node], high[cells.node]
    return base * (1 - share) + top * share


def _numbered(
    node: NDArray[np.int64], code: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return the number of the cell of every record; node and code of cells that have records."""
    nodes, codes = (int(each.max(initial=-1)) + 1 for each in (node, code))
    if nodes * codes <= max(len(node), _FEW_CELLS):
        key = node * codes + code
        present = np.flatnonzero(np.bincount(key, minlength=nodes * codes))
        number = np.empty(nodes * codes, np.int64)
        number[present] = np.arange(len(present))
        return number[key], present // max(codes, 1), present % max(codes, 1)
    order = np.lexsort((code, node))
    sorted_node, sorted_code = node[order], code[order]
    new = np.ones(len(order), bool)
    new[1:] = np.diff(sorted_node).astype(bool) | np.diff(sorted_code).astype(bool)
    cell = np.empty(len(order), np.int64)
    cell[order] = np.cumsum(new) - 1
    return cell, sorted_node[new], sorted_code[new]
