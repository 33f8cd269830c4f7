"""Columns travel to where they are masked, and back, so that what is masked moves and nothing else.

A routed frame has internal column names only: a key and values, of any dtype. On the way there the
key is place and row id, on the way back the row id; being unique, it gives rows one order whatever
came first. Routing is a shuffle by known divisions, which is exact.

A trip ends at home (a frame), in files (a spool), or where the records were masked (block order).
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.batch_files import BatchFile
from sdc_dask.engine.batches import send, send_numbers
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.columns import with_columns
from sdc_dask.engine.destinations import Destinations
from sdc_dask.engine.frames import (
    Calls,
    Frame,
    Task,
    from_partitions,
    map_partitions,
    meta_of,
    partitions,
)
from sdc_dask.engine.in_place import Change, change_part
from sdc_dask.engine.masks import BlockMask, Mask, mask_sorted, routed_frame
from sdc_dask.engine.placement import Placement
from sdc_dask.engine.row_ids import RowIds
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.engine.spool import WriteSpool, gather_spool
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.exact import ExactSum


@dataclass(frozen=True)
class Step:
    """Columns that are masked together: where their records go, and what happens there.

    Attributes
    ----------
    destinations : Destinations
    mask : Mask
    moved : bool
        Whether values only change places, so that columns keep their dtypes.
    sums : mapping
        Of the original values, by column, if a scan has them.
    """

    destinations: Destinations
    mask: Mask
    moved: bool = False
    sums: Mapping[Hashable, ExactSum] = field(default_factory=dict, repr=False)

    @property
    def blocks(self) -> Blocks | None:
        """The blocks that records go to, if they go to blocks."""
        there = self.destinations
        return there.blocks if isinstance(there, Placement) else None

    def restore(
        self, part: pd.DataFrame, back: pd.DataFrame, checksum: np.uint64
    ) -> dict[Hashable, Any]:
        """Return the new arrays of a partition's columns, after a look whether it is the same.

        Parameters
        ----------
        part : DataFrame
            The partition, as it is read now.
        back : DataFrame
            What came back, indexed by position.
        checksum : uint64
            Of the partition when its rows left.
        """
        if self.destinations.checksum(part) != checksum:
            raise SdcRuntimeError(
                "a partition has other values, or another order, than when its rows left. "
                f"{NOT_THE_SAME}"
            )
        arrays = self.destinations.restore(part, back, moved=self.moved)
        return dict(zip(self.destinations.columns, arrays, strict=True))

    def result_meta(self, meta: pd.DataFrame) -> dict[Hashable, Any]:
        """Return empty columns with the dtypes that the columns will have."""
        there = self.destinations
        dtypes = {name: meta[name].dtype for name in there.columns}
        return {
            name: pd.Series([], dtype=dtype if self.moved else there.coding.dtype(name, dtype))
            for name, dtype in dtypes.items()
        }


@dataclass(frozen=True)
class Trip:
    """What has become of the columns of a step."""

    step: Step
    back: Any  # by partition: what came back; or a spool
    checksums: Any  # by partition: of what left; or a task that has them all
    done: Task  # small, and there when all is masked


def masked_values(
    frame: Frame, step: Step, then: Any, after: Task = None, folder: str | None = None
) -> tuple[list[Task], Any]:
    """Send the columns of a step to where they are masked, and do `then` with the new values.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    step : Step
        Planned for this frame.
    then : callable
        Of row ids, values and the number of a partition.
    after : task, optional
        What must be done before records depart: shuffles of several columns at once would need
        the memory of all. Its graph must come into the same computation by another way.
    folder : str, optional
        That all workers reach: through which rows are routed, rather than from worker to worker.

    Returns
    -------
    tuple
        What `then` returned, and the checksums of what left: by partition, or one task that has
        them all if rows are routed through a folder.
    """
    call, there = Calls.of(frame, folder), step.destinations
    shared, waited = call.share(there), call.wait_for(after)
    parts = partitions(frame[there.needed()])
    divisions = there.divisions(len(parts))
    meta = _depart(meta_of(frame), NO_PARTITION, there)
    if folder is None:
        departing = [
            call(_depart_with_checksum, waited, part, number, shared)
            for number, part in enumerate(parts)
        ]
        checksums = [call(_second, pair) for pair in departing]
        # Rows wait for their checksum, which is asked for at the very end: until it has been taken
        # out, they would be kept.
        left = [call(_first, *each) for each in zip(departing, checksums, strict=True)]
        routed = call.route(left, meta, divisions)
    else:
        borders = call.share(divisions)
        sent = [
            call(_depart_to_file, waited, part, number, shared, path, borders)
            for number, (part, path) in enumerate(zip(parts, call.paths(len(parts)), strict=True))
        ]
        files, checksums = call.unzip(sent)
        routed = call.received(files, meta, divisions)
    return step.mask.run(call, routed, there.row_ids, then), checksums


def travel_home(frame: Frame, step: Step, after: Task = None) -> Trip:
    """Mask the columns of a step, and bring the values back to where they came from."""
    call, there = Calls.of(frame), step.destinations
    masked, checksums = masked_values(frame, step, _leave, after)
    meta = _depart(meta_of(frame), NO_PARTITION, there)
    routed = call.route(masked, meta, there.row_ids.divisions(len(checksums)))
    back = [call(_arrive, part, there.row_ids) for part in routed]
    return Trip(step, back, checksums, _all_done(call, masked))


def travel_to_files(
    frame: Frame, step: Step, directory: str, originals: str, after: Task = None
) -> Trip:
    """Mask the columns of a step, and spool the values into a directory that all workers reach.

    On their way there, original values pass through another one, which is to be removed then.
    """
    call, row_ids = Calls.of(frame), step.destinations.row_ids
    write = WriteSpool(directory, row_ids)
    masked, checksums = masked_values(frame, step, write, after, originals)
    spool = call(gather_spool, masked, row_ids)
    return Trip(step, spool, checksums, spool)


def put_home(frame: Frame, trips: Sequence[Trip], changes: Sequence[Change] = ()) -> Frame:
    """Put columns that came back, or changed where they are, into the frame that they left from.

    Nothing else changes. What came back left after the changes.
    """
    call = Calls.of(frame)
    changing = call.share(list(changes))
    steps = call.share([trip.step for trip in trips])
    # Columns wait for each other by name: what they wait for has to be in the graph.
    done = [trip.done for trip in trips]
    parts = []
    for number, part in enumerate(partitions(frame)):
        back = [trip.back[number] for trip in trips]
        checksums = [trip.checksums[number] for trip in trips]
        parts.append(call(_put, part, number, changing, steps, back, checksums, done))
    meta = meta_of(frame)
    for change in changes:
        meta = with_columns(meta, change.result_meta(meta))
    for trip in trips:
        meta = with_columns(meta, trip.step.result_meta(meta))
    return from_partitions(parts, meta, frame)


def stay_in_blocks(frame: Frame, step: Step) -> Frame:
    """Mask the columns of a step and leave all rows at their blocks: one shuffle.

    Returns
    -------
    pandas or Dask DataFrame
        All columns and the index, in order of block and row.
    """
    call, there = Calls.of(frame), step.destinations
    assert isinstance(there, Placement)
    shared = call.share(step)
    result = with_columns(meta_of(frame), step.result_meta(meta_of(frame)))
    left = map_partitions([frame], _depart_whole, there)
    divisions = there.divisions(len(left))
    meta = _depart_whole(meta_of(frame), NO_PARTITION, there)
    counts = there.rows_between(divisions) if call.lazy else [int(there.counts.sum())]
    stayed = [
        call(_stay, part, shared, meta_of(frame), result, count)
        for part, count in zip(call.route(left, meta, divisions), counts, strict=True)
    ]
    # No divisions: those of the routing are no divisions of the index.
    return from_partitions(stayed, result, frame, in_place=False)


def _depart_with_checksum(
    _after: Any, part: pd.DataFrame, number: int, there: Destinations
) -> tuple[pd.DataFrame, np.uint64]:
    """Make the routed rows of a partition, and the checksum of what they come from."""
    key, values = there.depart(part, number)
    return routed_frame(key, values), there.checksum(part, values)


def _depart_to_file(
    _after: Any,
    part: pd.DataFrame,
    number: int,
    there: Destinations,
    path: str,
    divisions: Sequence[int],
) -> tuple[BatchFile, np.uint64]:
    """Send the rows of a partition, and return the checksum of what they come from."""
    key, values = there.depart(part, number)
    found = there.checksum(part, values)
    if isinstance(values, np.ndarray):
        return send_numbers(key, values, path, divisions), found
    return send(routed_frame(key, values), path, divisions), found


def _first(pair: tuple[Any, Any], _after: Any) -> Any:
    return pair[0]


def _second(pair: tuple[Any, Any]) -> Any:
    return pair[1]


def _depart(part: pd.DataFrame, number: int, there: Destinations) -> pd.DataFrame:
    """Make the routed rows of a partition."""
    return routed_frame(*there.depart(part, number))


def _leave(rows: NDArray[np.int64], values: Any, _number: int) -> pd.DataFrame:
    return routed_frame(rows, values)


def _arrive(routed: pd.DataFrame, row_ids: RowIds) -> pd.DataFrame:
    """Index what came back by position."""
    return routed.set_axis(row_ids.position(routed.index.to_numpy()), axis="index")


def _all_done(call: Calls, tasks: list[Task]) -> Task:
    """Return a small task that is done when others are."""
    return call(_nothing, [call(_nothing, task) for task in tasks])


def _nothing(_done: Any) -> None:
    return None


def _put(
    part: pd.DataFrame,
    number: int,
    changes: list[Change],
    steps: list[Step],
    values: list[pd.DataFrame],
    checksums: list[np.uint64],
    _done: Any,
) -> pd.DataFrame:
    changed = result = change_part(part, number, changes)
    for step, back, checksum in zip(steps, values, checksums, strict=True):
        result = with_columns(result, step.restore(changed, back, checksum))
    return result


def _depart_whole(part: pd.DataFrame, number: int, there: Placement) -> pd.DataFrame:
    """Make the routed rows of a partition, with all other columns and the index aboard."""
    routed = _depart(part, number, there).set_index(part.index)
    masked = set(there.columns)
    for position, column in enumerate(part.columns):
        if column not in masked:
            routed[f"c{position}"] = part[column]
    for level in range(part.index.nlevels):
        routed[f"i{level}"] = part.index.get_level_values(level)
    return routed.reset_index(drop=True)


def _stay(
    routed: pd.DataFrame, step: Step, original: pd.DataFrame, meta: pd.DataFrame, count: int
) -> pd.DataFrame:
    """Mask the blocks of a partition that has all columns aboard, and restore their names."""
    if len(routed) != count:
        raise SdcRuntimeError(f"{len(routed)} rows came to blocks of {count} rows. {NOT_THE_SAME}")
    there, mask = step.destinations, step.mask
    assert isinstance(mask, BlockMask)
    _, values = mask_sorted(routed, there.row_ids, mask)
    frame = routed.set_index([name for name in routed.columns if name[0] == "i"])
    frame.index.names = meta.index.names
    frame.attrs = {}
    places = {column: j for j, column in enumerate(there.columns)}
    picked = [
        f"v{places[column]}" if column in places else f"c{position}"
        for position, column in enumerate(meta.columns)
    ]
    frame = frame[picked].set_axis(meta.columns, axis="columns")
    arrays = there.arrays(original, values, moved=step.moved)
    return with_columns(frame, dict(zip(there.columns, arrays, strict=True)))
