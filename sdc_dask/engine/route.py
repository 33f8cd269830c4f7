"""Records to their blocks and back, so that what is masked moves and nothing else.

A routed frame has internal column names only: the block, the row id (partition number and
position in one integer), the values. Routing is a shuffle by known divisions, which is exact.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable

import dask.dataframe as dd
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import replace_columns, to_float
from sdc_dask.engine.frames import (
    Frame,
    fix_partitions,
    is_dask,
    map_partitions,
    meta_of,
    on_cluster,
)
from sdc_dask.engine.placement import Placement

POSITION_BITS = 40

# From the values of a partition, sorted by block and row, and the bounds of its blocks in them.
MaskBlocks = Callable[[NDArray[np.float64], NDArray[np.int64]], NDArray[np.float64]]


def there_and_back(frame: Frame, placement: Placement, mask: MaskBlocks) -> Frame:
    """Mask the columns of a placement and bring the values back to where they came from.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    placement : Placement
        Of this frame.
    mask : callable
        Masks whole blocks.

    Returns
    -------
    pandas or Dask DataFrame
        The masked columns alone, as float64 with internal names ``v0``, ``v1``, ...; partitions
        and rows are in the order of `frame`.
    """
    if not is_dask(frame):
        return _come_home(_mask_partition(_depart(frame, 0, placement), mask))
    meta = _depart(meta_of(frame), 0, placement)
    parts = map_partitions([frame[placement.blocks.needed()]], _depart, placement)
    there = _at_blocks(dd.from_delayed(parts, meta=meta, verify_meta=False), placement)
    values_meta = meta.drop(columns="block")
    masked = there.map_partitions(_mask_partition, mask, meta=values_meta)
    back = _route(masked, "row", [i << POSITION_BITS for i in range(len(parts) + 1)])
    return back.map_partitions(_come_home, meta=values_meta.drop(columns="row"))


def there(frame: Frame, placement: Placement, mask: MaskBlocks) -> Frame:
    """Mask the columns of a placement and leave all rows at their blocks: one shuffle.

    Parameters are those of :func:`there_and_back`.

    Returns
    -------
    pandas or Dask DataFrame
        All columns and the index, in order of block and row.
    """
    result_meta = replace_columns(
        meta_of(frame), placement.blocks.columns, np.empty((0, len(placement.blocks.columns)))
    )
    if not is_dask(frame):
        return _stay(_depart_whole(frame, 0, placement), placement, mask, result_meta)
    meta = _depart_whole(meta_of(frame), 0, placement)
    parts = map_partitions([frame], _depart_whole, placement)
    at_blocks = _at_blocks(dd.from_delayed(parts, meta=meta, verify_meta=False), placement)
    return at_blocks.map_partitions(_stay, placement, mask, result_meta, meta=result_meta)


def put_back(frame: Frame, masked: list[Frame], groups: list[tuple[Hashable, ...]]) -> Frame:
    """Put columns that came back into the frame that they left from; nothing else changes.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    masked : list of pandas or Dask DataFrame
        What :func:`there_and_back` returned, one frame a group of columns.
    groups : list of tuple
        The names of the columns.
    """
    if not is_dask(frame):
        return _put_back_partition(frame, *masked, groups=groups)
    empty = [meta_of(part) for part in masked]
    return fix_partitions(frame).map_partitions(
        _put_back_partition,
        *masked,
        groups=groups,
        align_dataframes=False,
        meta=_put_back_partition(meta_of(frame), *empty, groups=groups),
    )


def _put_back_partition(
    part: pd.DataFrame, *masked: pd.DataFrame, groups: list[tuple[Hashable, ...]]
) -> pd.DataFrame:
    for values, columns in zip(masked, groups, strict=True):
        if len(values) != len(part):
            raise RuntimeError(
                f"{len(values)} masked rows came back for a partition of {len(part)} rows: the "
                "input changed while it was read, or rows were lost. Nothing was masked."
            )
        part = replace_columns(part, columns, values.to_numpy())
    return part


def _depart(part: pd.DataFrame, number: int, placement: Placement) -> pd.DataFrame:
    """Make the routed rows of a partition."""
    values = to_float(part, placement.blocks.columns)
    routed = {
        "block": placement.block_of(part, number, values),
        "row": (number << POSITION_BITS) + np.arange(len(part)),
    }
    return pd.DataFrame(routed | {f"v{j}": column for j, column in enumerate(values.T)})


def _depart_whole(part: pd.DataFrame, number: int, placement: Placement) -> pd.DataFrame:
    """Make the routed rows of a partition, with all other columns and the index aboard."""
    routed = _depart(part, number, placement).set_index(part.index)
    masked = set(placement.blocks.columns)
    for position, column in enumerate(part.columns):
        if column not in masked:
            routed[f"c{position}"] = part[column]
    for level in range(part.index.nlevels):
        routed[f"i{level}"] = part.index.get_level_values(level)
    return routed.reset_index(drop=True)


def _at_blocks(routed: dd.DataFrame, placement: Placement) -> dd.DataFrame:
    """Shuffle routed rows to the partitions of their blocks."""
    return _route(routed, "block", placement.divisions(routed.npartitions))


def _route(routed: dd.DataFrame, key: str, divisions: list[int]) -> dd.DataFrame:
    """Shuffle rows into partitions by known divisions of the first column, an integer."""
    method = "p2p" if on_cluster() else "tasks"
    moved = routed.set_index(key, divisions=divisions, shuffle_method=method)
    return moved.map_partitions(_reset_index, meta=meta_of(routed))


def _reset_index(part: pd.DataFrame) -> pd.DataFrame:
    return part.reset_index()


def _mask_partition(routed: pd.DataFrame, mask: MaskBlocks) -> pd.DataFrame:
    """Mask the blocks of a partition; rows come out in order of block and row."""
    order, bounds, values = _sort_by_block(routed)
    masked = mask(values, bounds)
    columns = {"row": routed["row"].to_numpy()[order]}
    return pd.DataFrame(columns | {f"v{j}": column for j, column in enumerate(masked.T)})


def _sort_by_block(
    routed: pd.DataFrame,
) -> tuple[NDArray[np.intp], NDArray[np.int64], NDArray[np.float64]]:
    """Return the order by block and row, the bounds of blocks in it, and the values in it."""
    block = routed["block"].to_numpy()
    order = np.lexsort((routed["row"].to_numpy(), block))
    block = block[order]
    bounds = np.append(np.flatnonzero(np.diff(block, prepend=-1)), len(block))
    value_columns = [name for name in routed.columns if name[0] == "v"]
    values = np.empty((len(order), len(value_columns)))
    for j, name in enumerate(value_columns):
        values[:, j] = routed[name].to_numpy()[order]
    return order, bounds, values


def _come_home(masked: pd.DataFrame) -> pd.DataFrame:
    """Put the rows of a partition into their old order."""
    row = masked["row"].to_numpy()
    order = np.argsort(row)
    position = row[order] & ((1 << POSITION_BITS) - 1)
    if not np.array_equal(position, np.arange(len(position))):
        raise RuntimeError(
            "rows were lost or doubled on their way back from the blocks: nothing was masked. "
            "Run it again; if it happens again, the scheduler or the shuffle is at fault."
        )
    return masked.drop(columns="row").iloc[order].reset_index(drop=True)


def _stay(
    routed: pd.DataFrame, placement: Placement, mask: MaskBlocks, meta: pd.DataFrame
) -> pd.DataFrame:
    """Mask the blocks of a partition that has all columns aboard, and restore their names."""
    order, bounds, values = _sort_by_block(routed)
    masked = mask(values, bounds)
    routed = routed.iloc[order]
    columns = placement.blocks.columns
    index_columns = [name for name in routed.columns if name[0] == "i"]
    frame = routed.set_index(index_columns)
    frame.index.names = meta.index.names
    positions = {column: j for j, column in enumerate(columns)}
    picked = [
        f"v{positions[column]}" if column in positions else f"c{position}"
        for position, column in enumerate(meta.columns)
    ]
    frame = frame[picked].set_axis(meta.columns, axis="columns")
    for j, column in enumerate(columns):
        array = pd.array(np.ascontiguousarray(masked[:, j]), dtype=meta[column].dtype)
        frame[column] = pd.Series(array, index=frame.index, copy=False)
    return frame
