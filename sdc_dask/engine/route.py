"""Records to their blocks and back, so that what is masked moves and nothing else.

A routed frame has internal column names only: a key and the values. On the way there the key is
block and row id, on the way back the row id; being unique, it gives rows one order whatever came
first. Routing is a shuffle by known divisions, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import dask.dataframe as dd
import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from sdc_dask.engine.columns import masked_array, replace_columns, to_float
from sdc_dask.engine.frames import (
    Frame,
    all_done,
    depart_after,
    from_partitions,
    is_dask,
    map_partitions,
    meta_of,
    on_cluster,
    partitions,
)
from sdc_dask.engine.masks import BlockMask, Mask, mask_sorted
from sdc_dask.engine.placement import Placement, RowIds
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.checksum import checksum


class Destinations(Protocol):
    """Tells where the records of a frame go."""

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns that are masked."""

    @property
    def by(self) -> tuple[Hashable, ...]:
        """Columns of the user that define strata."""

    @property
    def row_ids(self) -> RowIds:
        """Numbers the rows of the frame."""

    def needed(self) -> list[Hashable]:
        """Columns that tell the place of a record."""

    def depart(
        self, part: pd.DataFrame, number: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the keys, place and row id in one integer, and values that a partition sends."""

    def divisions(self, n_partitions: int) -> list[int]:
        """Return the first key of every partition to come, and one beyond the last."""


@dataclass(frozen=True)
class Home:
    """Columns that came back, by partition of the frame that they left from.

    For a pandas frame there is one partition, and nothing is lazy.
    """

    parts: list[Any]  # float64 with internal names v0, v1, ...; rows in the order of the frame
    checksums: list[Any]  # of what they were
    done: Delayed | None  # when they have been masked


def there_and_back(
    frame: Frame, destinations: Destinations, mask: Mask, after: Delayed | None = None
) -> Home:
    """Mask columns where their records go, and bring the values back to where they came from.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    destinations : Destinations
        Of this frame.
    mask : Mask
    after : Delayed, optional
        What must be done before records depart.
    """
    row_ids, width = destinations.row_ids, len(destinations.columns)
    summarize = partial(checksum_of, numbers=destinations.columns, others=destinations.by)
    if not is_dask(frame):
        routed = sorted_by_key(_depart(frame, 0, destinations))
        (masked,) = mask.run([routed], row_ids, routed_frame, lazy=False)
        return Home([_come_home(sorted_by_key(masked), row_ids, width)], [summarize(frame)], None)
    meta = _depart(meta_of(frame), NO_PARTITION, destinations)
    left, checksums = depart_after(
        frame[destinations.needed()], after, summarize, _depart, destinations
    )
    routed = _to_places(left, meta, destinations)
    masked = mask.run(routed.to_delayed(), row_ids, routed_frame, lazy=True)
    back = route(
        dd.from_delayed(masked, meta=meta, verify_meta=False), row_ids.divisions(len(left))
    )
    home = delayed(_come_home, pure=False)
    parts = [home(part, row_ids, width) for part in back.to_delayed()]
    return Home(parts, checksums, all_done(masked))


def at_places(
    frame: dd.DataFrame, destinations: Destinations, after: Delayed | None
) -> tuple[dd.DataFrame, int]:
    """Route columns to where their records go, for who brings them back in another way.

    Returns
    -------
    tuple of Dask DataFrame and int
        Routed rows, sorted by their key, which is the index; and the number of partitions that
        they came from.
    """
    meta = _depart(meta_of(frame), NO_PARTITION, destinations)
    parts, _ = depart_after(frame[destinations.needed()], after, None, _depart, destinations)
    return _to_places(parts, meta, destinations), len(parts)


def there(frame: Frame, placement: Placement, mask: BlockMask) -> Frame:
    """Mask the columns of a placement and leave all rows at their blocks: one shuffle.

    Returns
    -------
    pandas or Dask DataFrame
        All columns and the index, in order of block and row.
    """
    columns = placement.columns
    result_meta = replace_columns(meta_of(frame), columns, np.empty((0, len(columns))))
    if not is_dask(frame):
        routed = sorted_by_key(_depart_whole(frame, 0, placement))
        return _stay(routed, placement.row_ids, mask, columns, result_meta, len(frame))
    meta = _depart_whole(meta_of(frame), NO_PARTITION, placement)
    parts = map_partitions([frame], _depart_whole, placement)
    routed = _to_places(parts, meta, placement)
    stay = delayed(_stay, pure=False)
    counts = placement.rows_between(placement.divisions(len(parts)))
    stayed = [
        stay(part, placement.row_ids, mask, columns, result_meta, count)
        for part, count in zip(routed.to_delayed(), counts, strict=True)
    ]
    # No divisions: those of the routing are no divisions of the index.
    return from_partitions(stayed, result_meta, frame, in_place=False)


def put_back(
    frame: Frame,
    homes: Sequence[Home],
    destinations: Sequence[Destinations],
    *,
    same_dtypes: bool = False,
) -> Frame:
    """Put columns that came back into the frame that they left from; nothing else changes.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    homes : sequence of Home
        What :func:`there_and_back` returned, one a group of columns.
    destinations : sequence of Destinations
        Those that it was called with.
    same_dtypes : bool, default False
        Whether values only moved, so that columns keep their dtypes, integers too.
    """
    sources = [(each.columns, each.by) for each in destinations]
    return put_home(frame, homes, partial(_put_back, sources=sources, same_dtypes=same_dtypes))


def put_home(frame: Frame, homes: Sequence[Home], put: Callable[..., pd.DataFrame]) -> Frame:
    """Put what came back into partitions, by ``put(partition, values, checksums)``.

    Values and checksums are lists, one entry for each of `homes`.
    """
    rows = list(zip(*(home.parts for home in homes), strict=True))
    sums = list(zip(*(home.checksums for home in homes), strict=True))
    if not is_dask(frame):
        return put(frame, list(rows[0]), list(sums[0]))
    meta = put(meta_of(frame), None, None)
    task = delayed(_put, pure=False)
    # Columns wait for each other by name: what they wait for has to be in the graph.
    done = [home.done for home in homes]
    parts = [
        task(put, part, list(values), list(checksums), done)
        for part, values, checksums in zip(partitions(frame), rows, sums, strict=True)
    ]
    return from_partitions(parts, meta, frame)


def _put(put: Callable[..., pd.DataFrame], *args: Any) -> pd.DataFrame:
    return put(*args[:-1])


def _put_back(
    part: pd.DataFrame,
    values: list[pd.DataFrame] | None,
    checksums: list[np.uint64] | None,
    sources: list[tuple[tuple[Hashable, ...], tuple[Hashable, ...]]],
    same_dtypes: bool,
) -> pd.DataFrame:
    result = part
    for number, (columns, by) in enumerate(sources):
        new = np.empty((0, len(columns)))
        if values is not None and checksums is not None:
            new = values[number].to_numpy()
            check_same(part, len(new), checksum_of(part, columns, by), checksums[number])
        result = replace_columns(result, columns, new, same_dtypes=same_dtypes)
    return result


def check_same(part: pd.DataFrame, came: int, now: np.uint64, then: np.uint64) -> None:
    """Raise RuntimeError unless a partition is what it was when its rows left."""
    if came != len(part):
        raise SdcRuntimeError(
            f"{came} masked rows came back for a partition of {len(part)} rows. {NOT_THE_SAME}"
        )
    if now != then:
        raise SdcRuntimeError(
            "a partition has other values, or another order, than when its rows left. "
            f"{NOT_THE_SAME}"
        )


def checksum_of(
    part: pd.DataFrame, numbers: Sequence[Hashable], others: Sequence[Hashable]
) -> np.uint64:
    """Return a checksum of the values, and their order, that decide where rows go."""
    cells = [to_float(part, numbers).view(np.uint64)]
    if others:
        hashed = pd.util.hash_pandas_object(part[list(others)], index=False)
        cells.append(hashed.to_numpy(np.uint64)[:, None])
    return checksum(np.ascontiguousarray(np.hstack(cells)))


def _depart(part: pd.DataFrame, number: int, destinations: Destinations) -> pd.DataFrame:
    """Make the routed rows of a partition."""
    return routed_frame(*destinations.depart(part, number))


def _depart_whole(part: pd.DataFrame, number: int, placement: Placement) -> pd.DataFrame:
    """Make the routed rows of a partition, with all other columns and the index aboard."""
    routed = _depart(part, number, placement).set_index(part.index)
    masked = set(placement.columns)
    for position, column in enumerate(part.columns):
        if column not in masked:
            routed[f"c{position}"] = part[column]
    for level in range(part.index.nlevels):
        routed[f"i{level}"] = part.index.get_level_values(level)
    return routed.reset_index(drop=True)


def routed_frame(
    key: NDArray[np.int64], values: NDArray[np.float64], _number: int = 0
) -> pd.DataFrame:
    """Make a frame of a key and values; a column's values lie together, as Arrow wants them."""
    names = [f"v{j}" for j in range(values.shape[1])]
    routed = pd.DataFrame(np.asfortranarray(values), columns=names, copy=False)
    routed.insert(0, "key", key)
    return routed


def _to_places(
    parts: list[Delayed], meta: pd.DataFrame, destinations: Destinations
) -> dd.DataFrame:
    """Route the rows that left their partitions to where they go."""
    routed = dd.from_delayed(parts, meta=meta, verify_meta=False)
    return route(routed, destinations.divisions(len(parts)))


def route(routed: dd.DataFrame, divisions: list[int]) -> dd.DataFrame:
    """Shuffle rows by known divisions of their keys; within a partition they are sorted."""
    method = "p2p" if on_cluster() else "tasks"
    return routed.set_index("key", divisions=divisions, shuffle_method=method)


def sorted_by_key(routed: pd.DataFrame) -> pd.DataFrame:
    """Do to a pandas frame what :func:`route` does to the one partition of it."""
    return routed.set_index("key").sort_index()


def _come_home(masked: pd.DataFrame, row_ids: RowIds, width: int) -> pd.DataFrame:
    """Check that all rows of a partition are back, and in their old order.

    Values that left one by one become rows of so many again.
    """
    position = masked.index.to_numpy() & ((1 << row_ids.position_bits) - 1)
    if not np.array_equal(position, np.arange(len(position))):
        raise SdcRuntimeError(
            f"rows were lost or doubled on their way to the blocks and back. {NOT_THE_SAME}"
        )
    values = masked.to_numpy().reshape(-1, width)
    return pd.DataFrame(values, columns=[f"v{j}" for j in range(width)], copy=False)


def _stay(
    routed: pd.DataFrame,
    row_ids: RowIds,
    mask: BlockMask,
    columns: tuple[Hashable, ...],
    meta: pd.DataFrame,
    count: int,
) -> pd.DataFrame:
    """Mask the blocks of a partition that has all columns aboard, and restore their names."""
    if len(routed) != count:
        raise SdcRuntimeError(f"{len(routed)} rows came to blocks of {count} rows. {NOT_THE_SAME}")
    _, values = mask_sorted(routed, row_ids, mask)
    frame = routed.set_index([name for name in routed.columns if name[0] == "i"])
    frame.index.names = meta.index.names
    frame.attrs = {}
    places = {column: j for j, column in enumerate(columns)}
    picked = [
        f"v{places[column]}" if column in places else f"c{position}"
        for position, column in enumerate(meta.columns)
    ]
    frame = frame[picked].set_axis(meta.columns, axis="columns")
    for j, column in enumerate(columns):
        array = masked_array(values[:, j], meta[column].dtype)
        frame[column] = pd.Series(array, index=frame.index, copy=False)
    return frame
