"""Tree blocking: halve a box while it holds more than L records, in every dimension or the widest.

Source: J. Domingo-Ferrer, "Blocking methods for microdata protection", ESSnet-SDC, 2008,
section 2.1: the 2^d-tree, which halves every dimension. There the tree is built over records in
memory. Here a pass over the data counts the records of a few levels of cells at once, so that the
plan is all that is kept. With many columns 2^d children have far fewer than L records: a tree that
halves one dimension at a time comes down to L and no further.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sdc_dask.blocking.cells import Cells, bytes_of_a_cell, centroids, count_cells, joined
from sdc_dask.blocking.leaves import Leaves
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.kernels.tree import TreeArrays, descend

MAX_AXES = 12
MAX_BITS = 16
MORE_HALVES = 3
MAX_ROUNDS = 64
MAX_LEAVES = 2**22

CountPass = Callable[["Tree"], Cells]


@dataclass
class _Node:
    """A box with more than L records, to be split at its midpoints."""

    low: NDArray[np.float64]
    high: NDArray[np.float64]
    width: NDArray[np.float64]  # of the box, in coordinates in which distances are measured
    cuts: NDArray[np.int64]  # dimensions in the order in which they are halved
    level: int  # so many cuts make a level, at which boxes may be leaves
    stratum: int
    count: int

    @property
    def axes(self) -> NDArray[np.int64]:
        """The dimensions that are halved, in order."""
        return np.unique(self.cuts)

    @property
    def bits(self) -> int:
        """How many bits a code has."""
        return len(self.cuts)

    @property
    def cells(self) -> int:
        """How many cells its records may be in."""
        return min(self.count, 1 << self.bits)


@dataclass(frozen=True)
class Tree:
    """A tree as a locator: it finds the leaf of any record."""

    arrays: TreeArrays
    low: NDArray[np.float64]  # bounds of nodes
    high: NDArray[np.float64]
    counted: range  # the nodes whose cells a pass counts

    def leaf_of(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> NDArray[np.int64]:
        """Tell the leaf of every record."""
        target, _ = self._descend(points, stratum)
        return ~target

    def count(self, points: NDArray[np.float64], stratum: NDArray[np.int64]) -> Cells:
        """Count records in the cells of nodes that are to be split next."""
        target, code = self._descend(points, stratum)
        rows = np.flatnonzero((target >= self.counted.start) & (target < self.counted.stop))
        return count_cells(target[rows], code[rows], rows, points, self.low, self.high)

    def _descend(
        self, points: NDArray[np.float64], stratum: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        target = np.empty(len(points), np.int64)
        code = np.empty(len(points), np.int64)
        descend(self.arrays, points, stratum, target, code)
        return target, code


def grow(
    counts: NDArray[np.int64],
    low: NDArray[np.float64],
    high: NDArray[np.float64],
    coordinates: Coordinates,
    max_block: int,
    count_pass: CountPass,
    most_bytes: int,
    *,
    widest: bool = False,
    shifted: bool = False,
) -> tuple[Tree, Leaves, int]:
    """Grow the tree of every stratum until no leaf that can be split has more than L records.

    Parameters
    ----------
    counts : ndarray of int64
        Records by stratum; every stratum has a tree of its own, over the same box.
    low, high : ndarray of float64, shape (d,)
        Smallest and largest value by dimension.
    coordinates : Coordinates
        In which distances are measured.
    max_block : int
        L, the largest leaf.
    count_pass : callable
        Runs :meth:`Tree.count` over all records and merges the result: one pass over the data.
    most_bytes : int
        Of counts that one pass may bring: more take several.
    widest : bool, default False
        Whether a box is halved in its widest dimension alone, in `coordinates`, or in all of them.
    shifted : bool, default False
        Whether boxes are cut elsewhere, so that what is near a border of the usual tree is not.
        Goes with `widest`.

    Returns
    -------
    tuple of Tree, Leaves, int
        The locator, its leaves, and the number of passes over the data.

    Notes
    -----
    A level where all records of a node lie in one child is skipped without a pass, since the
    bounds of the records are known. Records that are all equal are a leaf whatever their number,
    and so is what is left after 64 rounds, of one pass each unless its counts take too much memory
    for one. With more than 12 dimensions, a split of all halves the 12 in which the records are
    spread widest: 2^d children of a few records each would make no blocks.
    """
    builder = _Builder(coordinates, max_block, widest=widest)
    box = _shifted(low, high) if shifted else None
    for stratum, count in enumerate(counts):
        builder.plant(stratum, int(count), low, high, box)
    passes = rounds = 0
    while builder.open:
        tree = builder.tree()
        parts = [count_pass(replace(tree, counted=some)) for some in builder.batches(most_bytes)]
        passes += len(parts)
        rounds += 1
        builder.split(joined(parts), last=rounds == MAX_ROUNDS)
    return builder.tree(), builder.leaves(), passes


class _Builder:
    """The tree while it grows. Nodes that wait for their counts are last and have no entries."""

    def __init__(self, coordinates: Coordinates, max_block: int, *, widest: bool) -> None:
        self.coordinates = coordinates
        self.max_block = max_block
        self.widest = widest
        self.nodes: list[_Node] = []
        self.open = 0
        self.root: list[int] = []
        self.code: list[NDArray[np.int64]] = []
        self.target: list[NDArray[np.int64]] = []
        self.leaf_parts: list[Leaves] = []
        self.n_leaves = 0

    def plant(
        self,
        stratum: int,
        count: int,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        box: tuple[NDArray[np.float64], NDArray[np.float64]] | None,
    ) -> None:
        """Start the tree of a stratum: of records within bounds, in another box if there is one."""
        node = None
        if count > self.max_block:
            width = self._spread(low, high)
            if box is not None:
                # What would be halved next, if this were the usual tree: other dimensions, or those
                # that it has halved least.
                halved = _widest_first(width, np.arange(len(width)), self._halvings(count))
                width = np.ldexp(width, -np.bincount(halved, minlength=len(width)))
            node = self._node(*(box or (low, high)), width, low, high, count, stratum)
        if node is None:
            middle = low / 2 + high / 2
            leaf = Leaves.of([stratum], [count], low[None], high[None], middle[None])
            self.root.append(~self._add_leaves(leaf))
        else:
            self.root.append(self._add_node(node))

    def split(self, cells: Cells, *, last: bool) -> None:
        """Give the open nodes their entries: leaves, and nodes to be split in their turn."""
        low = np.array([node.low for node in self.nodes])
        high = np.array([node.high for node in self.nodes])
        centroid = centroids(cells, low, high)
        first_open = len(self.nodes) - self.open
        self.open = 0
        bounds = np.searchsorted(cells.node, np.arange(first_open, len(self.nodes) + 1))
        for node, begin, end in zip(self.nodes[first_open:], bounds[:-1], bounds[1:], strict=True):
            self._split_node(node, cells, centroid, slice(begin, end), last)

    def _split_node(
        self, node: _Node, cells: Cells, centroid: NDArray[np.float64], part: slice, last: bool
    ) -> None:
        code, count = cells.code[part], cells.count[part]
        shift = _leaf_shift(code, count, node.bits, node.level, self.max_block)
        entry_code = code >> shift << shift
        # A leaf of an upper level takes up a run of cells; all cells of it have the same code.
        first = np.flatnonzero(np.diff(entry_code, prepend=-1))
        total = np.add.reduceat(count, first)
        low = np.minimum.reduceat(cells.low[part], first)
        high = np.maximum.reduceat(cells.high[part], first)
        # Weights of at most 1 cannot make the largest floats overflow.
        weight = count / np.repeat(total, np.diff(first, append=len(count)))
        mean = np.add.reduceat(centroid[part] * weight[:, None], first).clip(low, high)
        target = np.empty(len(first), np.int64)
        is_leaf = np.ones(len(first), bool)
        for i in np.flatnonzero(total > self.max_block):
            box = _cell_box(node, int(entry_code[first[i]]))
            child = self._node(*box, low[i], high[i], int(total[i]), node.stratum)
            if child is not None and not last:
                target[i] = self._add_node(child)
                is_leaf[i] = False
        leaves = Leaves.of(
            np.full(is_leaf.sum(), node.stratum),
            total[is_leaf],
            low[is_leaf],
            high[is_leaf],
            mean[is_leaf],
        )
        target[is_leaf] = ~(self._add_leaves(leaves) + np.arange(len(leaves)))
        self.code.append(entry_code[first])
        self.target.append(target)

    def _node(
        self,
        low: NDArray[np.float64],
        high: NDArray[np.float64],
        width: NDArray[np.float64],
        inner_low: NDArray[np.float64],
        inner_high: NDArray[np.float64],
        count: int,
        stratum: int,
    ) -> _Node | None:
        """Make a node of a box and its records' bounds, or None if the records are all equal."""
        axes = np.flatnonzero(inner_high > inner_low)
        if len(axes) == 0:
            return None
        if len(axes) > MAX_AXES and not self.widest:
            spread = self._spread(inner_low, inner_high)
            axes = np.sort(axes[np.argsort(-spread[axes], kind="stable")[:MAX_AXES]])
        low, high, width = low.copy(), high.copy(), width.copy()
        while True:
            halved = axes[[np.argmax(width[axes])]] if self.widest else axes
            middle = _midpoints(low[halved], high[halved])
            upper = inner_low[halved] >= middle
            if (upper != (inner_high[halved] >= middle)).any():
                break
            low[halved] = np.where(upper, middle, low[halved])
            high[halved] = np.where(upper, high[halved], middle)
            width[halved] /= 2
        if self.widest:
            # Some more than equal halves would need: few data sets are uniform.
            wanted = self._halvings(count) + MORE_HALVES
            cuts = _widest_first(width, axes, min(wanted, MAX_BITS))
            return _Node(low, high, width, cuts, 1, stratum, count)
        # One level more than equal children would need.
        wanted = math.ceil(math.log2(count / self.max_block) / len(axes)) + 1
        levels = max(1, min(wanted, MAX_BITS // len(axes)))
        return _Node(low, high, width, np.tile(axes, levels), len(axes), stratum, count)

    def _halvings(self, count: int) -> int:
        """Return how often so many records must be halved, if they are equally many each time."""
        return math.ceil(math.log2(count / self.max_block))

    def _spread(self, low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the widths of a box in coordinates in which distances are measured."""
        shrink, scale = self.coordinates.shrink, self.coordinates.scale
        return (shrink(high) - shrink(low)) / scale

    def _add_node(self, node: _Node) -> int:
        self.nodes.append(node)
        self.open += 1
        return len(self.nodes) - 1

    def _add_leaves(self, leaves: Leaves) -> int:
        first = self.n_leaves
        self.n_leaves += len(leaves)
        if self.n_leaves > MAX_LEAVES:
            raise SdcValueError(
                f"the tree has more than {MAX_LEAVES} leaves: the plan would not stay small. "
                "Raise max_block, or mask the columns in several groups of fewer columns."
            )
        self.leaf_parts.append(leaves)
        return first

    def batches(self, most_bytes: int) -> list[range]:
        """Return which of the open nodes are counted in one pass, one batch after the other."""
        first = len(self.nodes) - self.open
        room = most_bytes // bytes_of_a_cell(len(self.coordinates.scale))
        borders = [first]
        held = 0
        for number, node in enumerate(self.nodes[first:], first):
            if held and held + node.cells > room:
                borders.append(number)
                held = 0
            held += node.cells
        return [range(*pair) for pair in itertools.pairwise([*borders, len(self.nodes)])]

    def tree(self) -> Tree:
        """Return the tree as it is now."""
        d = len(self.coordinates.scale)
        entries = [len(code) for code in self.code] + [0] * self.open
        axes = [node.axes for node in self.nodes]
        middles = [middle for node in self.nodes for middle in _middles(node)]
        spreads = [spread for node in self.nodes for spread in _spreads(node)]
        first_entry = _starts(entries)
        jumps = [
            _jump(node, code, first)
            for node, code, first in zip(self.nodes, self.code, first_entry, strict=False)
        ]
        return Tree(
            TreeArrays(
                root=np.array(self.root, np.int64),
                first_axis=_starts([len(each) for each in axes]),
                axis=_concatenate(axes),
                first_middle=_starts([len(middle) for middle in middles]),
                middle=np.concatenate([np.empty(0), *middles]),
                first_spread=_starts([len(each) for each in spreads]),
                spread=_concatenate(spreads).astype(np.int32),
                first_entry=first_entry,
                code=_concatenate(self.code).astype(np.int32),
                target=_concatenate(self.target).astype(np.int32),
                first_jump=_starts([len(jump) for _, jump in jumps]),
                jump_shift=np.array([shift for shift, _ in jumps], np.int64),
                jump=_concatenate([jump for _, jump in jumps]).astype(np.int32),
            ),
            np.array([node.low for node in self.nodes]).reshape(-1, d),
            np.array([node.high for node in self.nodes]).reshape(-1, d),
            range(len(self.nodes) - self.open, len(self.nodes)),
        )

    def leaves(self) -> Leaves:
        """Return all leaves."""
        return Leaves.concatenate(self.leaf_parts)


def _widest_first(
    width: NDArray[np.float64], axes: NDArray[np.int64], number: int
) -> NDArray[np.int64]:
    """Return which dimensions are halved when the widest is each time, the first of equal ones."""
    width = width[axes]
    cuts = np.empty(number, np.int64)
    for i in range(number):
        widest = np.argmax(width)
        cuts[i] = axes[widest]
        width[widest] /= 2
    return cuts


def _leaf_shift(
    code: NDArray[np.int64],
    count: NDArray[np.int64],
    bits: int,
    level: int,
    max_block: int,
) -> NDArray[np.int64]:
    """Tell how many trailing bits of a cell's code lie below its leaf.

    A cell belongs to the leaf of the first level at which its ancestor has at most L records.
    """
    shift = np.zeros(len(code), np.int64)
    undecided = np.ones(len(code), bool)
    for below in range(bits - level, 0, -level):
        first = np.flatnonzero(np.diff(code >> below, prepend=-1))
        total = np.add.reduceat(count, first)
        small = np.repeat(total <= max_block, np.diff(first, append=len(code)))
        shift[undecided & small] = below
        undecided &= ~small
    return shift


def _cell_box(
    node: _Node, code: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Return the bounds and widths of a cell of a node's last level."""
    low, high, width = node.low.copy(), node.high.copy(), node.width.copy()
    for bit, axis in zip(reversed(range(node.bits)), node.cuts, strict=True):
        middle = _midpoints(low[axis], high[axis])
        if code >> bit & 1:
            low[axis] = middle
        else:
            high[axis] = middle
        width[axis] /= 2
    return low, high, width


def _jump(node: _Node, code: NDArray[np.int64], first_entry: int) -> tuple[int, NDArray[np.int64]]:
    """Return the entries at which the codes with given leading bits begin, and the bits left."""
    leading = min(node.bits, len(code).bit_length())
    shift = node.bits - leading
    begins = np.arange((1 << leading) + 1) << shift
    entry = np.searchsorted(code, begins, side="right") - 1
    return shift, first_entry + np.maximum(entry, 0)


def _middles(node: _Node) -> list[NDArray[np.float64]]:
    """Return the midpoints of every axis of a node, cut by cut."""
    middles = []
    for axis, times in zip(*np.unique(node.cuts, return_counts=True), strict=True):
        low, high = node.low[axis : axis + 1], node.high[axis : axis + 1]
        levels = []
        for _ in range(times):
            middle = _midpoints(low, high)
            levels.append(middle)
            low = np.stack([low, middle], axis=1).ravel()
            high = np.stack([middle, high], axis=1).ravel()
        middles.append(np.concatenate(levels))
    return middles


def _spreads(node: _Node) -> list[NDArray[np.int64]]:
    """Return the code of every cell of an axis alone, by axis of a node."""
    spreads = []
    for axis in node.axes:
        codes = np.zeros(1, np.int64)
        for cut in np.flatnonzero(node.cuts == axis):
            codes = np.stack([codes, codes | 1 << (node.bits - 1 - cut)], axis=1).ravel()
        spreads.append(codes)
    return spreads


def _shifted(
    low: NDArray[np.float64], high: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return a box around another whose halves of halves are a third of their width away.

    It is twice as wide, so that its cells are as wide as those of the other, one level later. Cells
    of any two levels have no border in common, as no sum of halves of halves is a third.
    """
    third = high / 3 - low / 3
    most = np.finfo(np.float64).max
    with np.errstate(over="ignore"):
        return np.maximum(low - 2 * third, -most), np.minimum(high + third, most)


def _midpoints(low: NDArray[np.float64], high: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower ends of the upper halves: above `low` wherever that is possible."""
    # Halving first cannot overflow. Between neighbouring floats the middle may round to `low`,
    # which would leave the lower half empty for ever.
    middle = low / 2 + high / 2
    return np.where(middle <= low, high, middle)


def _starts(lengths: list[int]) -> NDArray[np.int64]:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _concatenate(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate(parts) if parts else np.empty(0, np.int64)
