"""What is different between pandas and Dask frames, in one place.

A pandas frame is one partition, and what is done with it is done at once. The partitions of a Dask
frame are tasks, and what is done with them is more tasks. Everything above is written once, for
both, with :class:`Calls`.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

import dask
import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.dataframe.utils import UNKNOWN_CATEGORIES
from dask.delayed import Delayed, delayed
from dask.system import CPU_COUNT
from dask.utils import parse_bytes
from distributed import default_client

from sdc_dask.engine import expressions
from sdc_dask.engine.batches import (
    addressed_by_key,
    cut_by_key,
    put_together,
    receive,
    send,
    sorted_by_key,
)
from sdc_dask.engine.patience import patiently

Frame = Any  # pandas.DataFrame or dask.dataframe.DataFrame
Task = Any  # what a call returns: a Delayed object, or the result itself

_FAN_IN = 16
_FEW_SENDERS = 24  # of a partition: with more, so many tasks take longer than a shuffle
_ASKED = 5.0  # seconds in which a scheduler answers, unless it is busy
_computes: ContextVar[Callable[[Task], Any] | None] = ContextVar("computes", default=None)
_WARN_ABOVE = "distributed.admin.large-graph-warning-threshold"


def is_dask(frame: Frame) -> bool:
    """Whether a frame is a Dask frame."""
    return isinstance(frame, dd.DataFrame)


def meta_of(frame: Frame) -> pd.DataFrame:
    """Return an empty pandas frame with the columns, dtypes and index of a frame."""
    return expressions.meta(frame) if is_dask(frame) else frame.iloc[:0]


def has_unknown_categories(dtype: pd.CategoricalDtype) -> bool:
    """Whether the categories of a Dask column are known to its partitions alone."""
    return UNKNOWN_CATEGORIES in dtype.categories


def on_cluster() -> bool:
    """Whether computations go to a distributed scheduler."""
    if dask.config.get("scheduler", None) not in (None, "distributed", "dask.distributed"):
        return False
    try:
        default_client()
    except ValueError:
        return False
    return True


@contextlib.contextmanager
def computing(compute: Callable[[Task], Any]) -> Iterator[None]:
    """Let a function compute tasks and wait for them, in the place of ``dask.compute``."""
    token = _computes.set(compute)
    try:
        yield
    finally:
        _computes.reset(token)


def partitions(frame: Frame) -> list[Task]:
    """Return the partitions of a frame, the same ones for every choice of its columns.

    Dask's optimizer merges the partitions of a file that few columns are read of, so that row
    positions of one pass would not be those of the next. Simplifying alone pushes projections
    and filters into the reading, and merges nothing.
    """
    if not is_dask(frame):
        return [frame]
    return expressions.simplified(frame).to_delayed(optimize_graph=False)


@dataclass(frozen=True)
class Calls:
    """How functions are called: as tasks of a graph if `lazy`, or at once.

    All tasks of one object are in one graph, which grows with them. Dask's own way, a graph in
    every task that holds those of all its arguments, takes a time that grows with the square of
    the number of partitions.

    Examples
    --------
    >>> call = Calls(lazy=True)
    >>> call(max, 3, 5)  # doctest: +ELLIPSIS
    Delayed(('max-...', 0))
    >>> call.compute(call(max, 3, 5)), Calls(lazy=False)(max, 3, 5)
    (5, 5)
    """

    lazy: bool
    folder: str | None = None  # that all workers reach: through which rows are routed, if there is
    graph: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)
    token: str = field(default_factory=lambda: uuid.uuid4().hex, repr=False, compare=False)
    numbers: Iterator[int] = field(default_factory=itertools.count, repr=False, compare=False)

    @classmethod
    def of(cls, frame: Frame, folder: str | None = None) -> Calls:
        """Return how functions are called with the partitions of a frame."""
        return cls(is_dask(frame), folder)

    def __call__(self, function: Callable[..., Any], *args: Any) -> Task:
        """Call a function, which must be importable, with arguments that may be tasks.

        Tasks may also be in arguments that are lists.
        """
        if not self.lazy:
            return function(*args)
        # Calls of one function have one name and a number each, so that Dask sees that they are
        # alike: those that wait for nothing more are given to whichever worker is free.
        text = getattr(function, "__name__", "call").strip("_")
        name = (f"{text}-{self.token}", next(self.numbers))
        lengths = [len(arg) if _has_tasks(arg) else None for arg in args]
        flat: list[Any] = []
        for arg, length in zip(args, lengths, strict=True):
            flat += [arg] if length is None else arg
        flat = [self._name_of(each) if isinstance(each, Delayed) else each for each in flat]
        if any(length is not None for length in lengths):
            # Dask optimizes the graphs of tasks in a list before it goes on, each time.
            made = delayed(patiently, pure=False)(
                _call_with_lists, function, lengths, *flat, dask_key_name=name
            )
        else:
            made = delayed(patiently, pure=False)(function, *flat, dask_key_name=name)
        self.graph.update(made.dask)
        return Delayed(name, self.graph)

    def _name_of(self, task: Delayed) -> Delayed:
        """Return the name of a task, whose graph is in this one then."""
        if task.key not in self.graph:
            self.graph.update(task.dask)
        return Delayed(task.key, {})

    def share(self, value: Any) -> Task:
        """Return an argument that is sent once, not with every task."""
        if not self.lazy or isinstance(value, Delayed):
            return value
        made = delayed(value, pure=False, traverse=False)
        self.graph.update(made.dask)
        return Delayed(made.key, self.graph)

    def wait_for(self, task: Task) -> Task:
        """Return the name of a task, without its graph: that would be copied into what waits.

        Who puts the results together brings the graph along.
        """
        return Delayed(task.key, {}) if isinstance(task, Delayed) else task

    def unzip(self, pairs: list[Task]) -> tuple[Task, Task]:
        """Return a task that has the first of all pairs, and one that has the second."""
        gathered = self(list, pairs)
        return self(_firsts, gathered), self(_seconds, gathered)

    def merge(
        self, partials: list[Task], merge: Callable[[list[Any]], Any], fan_in: int = _FAN_IN
    ) -> Task:
        """Merge partial results a few at a time, neighbours first."""
        level = [self(merge, group) for group in _batches(partials, fan_in)]
        while len(level) > 1:
            level = [self(merge, group) for group in _batches(level, fan_in)]
        return level[0]

    def route(
        self,
        parts: list[Task],
        meta: pd.DataFrame,
        divisions: list[int],
        senders: Sequence[range] | None = None,
    ) -> list[Task]:
        """Send rows to partitions by known divisions of their column "key", where they are sorted.

        The key becomes the index. At once there is one partition, whatever the divisions are.

        Parameters
        ----------
        parts : list
            Frames with a column "key".
        meta : DataFrame
            An empty one of these.
        divisions : list of int
            The first key of every partition, and one beyond the last.
        senders : sequence of range, optional
            By partition, the parts that have rows for it. If these are few, rows go from task to
            task, without a shuffle of all.
        """
        if not self.lazy:
            (part,) = parts
            return [part.set_index("key").sort_index()]
        if self.folder is not None:
            shared = self.share(divisions)
            paths = self.paths(len(parts))
            sent = [self(send, part, path, shared) for part, path in zip(parts, paths, strict=True)]
            return self.received(self(list, sent), meta, divisions)
        if senders is not None and sum(map(len, senders)) <= _FEW_SENDERS * len(senders):
            receivers: list[list[int]] = [[] for _ in parts]
            for number, some in enumerate(senders):
                for sender in some:
                    receivers[sender].append(number)
            shared = self.share(divisions)
            cut = [
                self(cut_by_key, part, shared, numbers)
                for part, numbers in zip(parts, receivers, strict=True)
            ]
            return [
                self(put_together, [self(_item, cut[i], number) for i in some])
                for number, some in enumerate(senders)
            ]
        routed = dd.from_delayed(_one_graph(parts), meta=meta, verify_meta=False)
        # Not a shared task: the scheduler would prefer workers that hold it, and send rows there.
        borders = np.asarray(divisions)
        addressed = routed.map_partitions(
            addressed_by_key, borders, meta=addressed_by_key(meta, borders)
        )
        method = "p2p" if on_cluster() else "tasks"
        there = expressions.shuffled(addressed, len(divisions) - 1, method)
        return [self(sorted_by_key, part) for part in there.to_delayed()]

    def paths(self, number: int) -> list[str]:
        """Return new paths in the folder through which rows are routed."""
        assert self.folder is not None
        name = os.path.join(self.folder, uuid.uuid4().hex)
        return [f"{name}-{i:06d}" for i in range(number)]

    def received(self, files: Task, meta: pd.DataFrame, divisions: list[int]) -> list[Task]:
        """Return what comes to partitions through files that were sent."""
        return [self(receive, files, number, meta) for number in range(len(divisions) - 1)]

    def compute(self, task: Task) -> Any:
        """Return the result of a task."""
        if not self.lazy:
            return task
        # Arguments of some megabytes go into the graph, and so outlive workers: no reason to warn.
        limit = max(parse_bytes(dask.config.get(_WARN_ABOVE, "10MB")), 100_000_000)
        with dask.config.set({_WARN_ABOVE: limit}):
            compute = _computes.get()
            return dask.compute(task)[0] if compute is None else compute(task)

    def persist(self, task: Task) -> Task:
        """Begin to compute a task, or lists of tasks, and leave results where they are computed."""
        if not self.lazy:
            return task
        begun = dask.persist(task)[0]
        for each in _flat(begun):
            self.graph.update(each.dask)  # in the place of what would compute it again
        return begun


def frame_of(
    read: Callable[..., pd.DataFrame], pieces: Sequence[Any], meta: pd.DataFrame, *args: Any
) -> dd.DataFrame:
    """Return a Dask frame with a partition ``read(piece, *args)`` for each piece.

    What is read has the dtypes of `meta`, those of texts too.
    """
    with dask.config.set({"dataframe.convert-string": False}):  # a task for each partition
        return dd.from_map(
            patiently, [read] * len(pieces), pieces, args=args, meta=meta, enforce_metadata=False
        )


def number_of_partitions(frame: Frame) -> int:
    """Return how many partitions a frame has, which is one in pandas."""
    return int(frame.npartitions) if is_dask(frame) else 1


def map_partitions(
    frames: Sequence[Frame],
    chunk: Callable[..., Any],
    *args: Any,
    only: Collection[int] | None = None,
) -> list[Task]:
    """Call ``chunk(*partitions, number, *args)`` for every partition, side by side for several.

    With `only`, for those with these numbers.
    """
    call = Calls.of(frames[0])
    shared = [call.share(arg) for arg in args]
    parts = zip(*(partitions(frame) for frame in frames), strict=True)
    return [
        call(chunk, *part, number, *shared)
        for number, part in enumerate(parts)
        if only is None or number in only
    ]


def partition_indexes(frame: Frame) -> list[Task]:
    """Return the index of every partition; one column is read for it."""
    return map_partitions([frame[[frame.columns[0]]]], _index_of)


def _index_of(part: pd.DataFrame, _number: int) -> pd.Index:
    return part.index


def map_reduce(
    frames: Frame | Sequence[Frame],
    chunk: Callable[..., Any],
    merge: Callable[[list[Any]], Any],
    *args: Any,
    only: Collection[int] | None = None,
) -> Any:
    """Run `chunk` on every partition and merge the partial results: one pass over the data.

    Parameters
    ----------
    frames : frame or sequence of frames
        One frame, or several with the same number of partitions that are walked side by side.
        Project them to the columns that are needed.
    chunk : callable
        ``chunk(partition, number, *args)``, or with one partition per frame if there are several.
        An importable function of pandas frames.
    merge : callable
        From a list of partial results to one of the same kind.
    *args
        Passed on to `chunk`; sent once, not with every task.
    only : collection of int, optional
        The numbers of the partitions that are read, at least one; by default, all are.

    Returns
    -------
    object
        What `merge` returns, computed.
    """
    several = list(frames) if isinstance(frames, (list, tuple)) else [frames]
    call = Calls.of(several[0])
    return call.compute(call.merge(map_partitions(several, chunk, *args, only=only), merge))


def fold(
    frame: Frame, chunk: Callable[..., Any], merge: Callable[[list[Any]], Any], *args: Any
) -> Any:
    """Do what :func:`map_reduce` does for one frame, with partial results that are large.

    Each processor goes through its share of the partitions one after the other and merges the
    result of each into what it has: no partial results wait for others.
    """
    call = Calls.of(frame)
    shared = [call.share(arg) for arg in args]
    numbered = list(enumerate(partitions(frame)))
    lanes = min(_processors(), len(numbered)) if call.lazy else 1
    folded = []
    for lane in range(lanes):
        held = None
        for number, part in numbered[lane::lanes]:
            held = call(_fold, held, merge, chunk, part, number, *shared)
        folded.append(held)
    return call.compute(call.merge(folded, merge, fan_in=2))


def _fold(
    held: Any, merge: Callable[[list[Any]], Any], chunk: Callable[..., Any], *args: Any
) -> Any:
    found = chunk(*args)
    return found if held is None else merge([held, found])


def memory_per_task() -> int | None:
    """Return the memory in bytes that a task of a cluster has at most, or None if none is set."""
    shares = [
        worker["memory_limit"] // worker["nthreads"]
        for worker in _workers()
        if worker["memory_limit"]
    ]
    return min(shares, default=None)


def _processors() -> int:
    """Return how many tasks run at a time."""
    return sum(worker["nthreads"] for worker in _workers()) or CPU_COUNT


def _workers() -> list[dict[str, Any]]:
    """Return what the scheduler knows of its workers; none without a cluster."""
    if not on_cluster():
        return []
    try:
        return list(_identity()["workers"].values())
    except OSError:
        return []  # who computes next sees that it is gone


def scheduler_without_workers() -> str | None:
    """Return the address of the scheduler if it answers and has no workers."""
    try:
        found = _identity()
    except (OSError, ValueError):
        return None
    return None if found["workers"] else str(found["address"])


def _identity() -> dict[str, Any]:
    """Return what the scheduler says of itself."""
    client = default_client()
    return client.sync(client.scheduler.identity, n_workers=-1, callback_timeout=_ASKED)


def from_partitions(
    parts: list[Task], meta: pd.DataFrame, frame: Frame, *, in_place: bool = True
) -> Frame:
    """Return a frame of partitions that were made of another frame, of the kind of that.

    If they are `in_place`, they stand where its partitions did.
    """
    if not is_dask(frame):
        (part,) = parts
        return part
    same = in_place and len(parts) == frame.npartitions
    divisions = frame.divisions if same else None
    made = dd.from_delayed(_one_graph(parts), meta=meta, divisions=divisions, verify_meta=False)
    return expressions.reading(made, frame)


def _flat(tasks: Task | list[Any]) -> Iterator[Task]:
    if isinstance(tasks, list):
        for each in tasks:
            yield from _flat(each)
    else:
        yield tasks


def _has_tasks(arg: Any) -> bool:
    return isinstance(arg, list) and any(isinstance(each, Delayed) for each in arg)


def _call_with_lists(function: Callable[..., Any], lengths: list[int | None], *flat: Any) -> Any:
    """Call a function with arguments of which some were lists."""
    rest = iter(flat)
    return function(
        *(
            next(rest) if length is None else list(itertools.islice(rest, length))
            for length in lengths
        )
    )


def _one_graph(tasks: list[Task]) -> list[Task]:
    """Return tasks of which one has the graph of all: Dask would merge as many as there are."""
    graph: dict[Any, Any] = {}
    for task in tasks:
        if task.key not in graph:
            graph.update(task.dask)
    first, *others = tasks
    return [Delayed(first.key, graph), *(Delayed(task.key, {}) for task in others)]


def _firsts(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    return [pair[0] for pair in pairs]


def _seconds(pairs: Sequence[tuple[Any, Any]]) -> list[Any]:
    return [pair[1] for pair in pairs]


def _item(items: dict[int, Any], number: int) -> Any:
    return items[number]


def _batches(items: list[Any], size: int) -> Iterator[list[Any]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
