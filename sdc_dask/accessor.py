"""The ``.sdc`` accessor of pandas and Dask frames: checks arguments and calls the layers below."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import pandas as pd
from dask.dataframe.extensions import register_dataframe_accessor

from sdc_dask import arguments
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.frames import Frame
from sdc_dask.masking import microaggregation as ma

Columns = Sequence[Hashable] | Sequence[Sequence[Hashable]]


def microaggregation_request(
    frame: Frame,
    columns: Any,
    k: Any,
    *,
    method: Any = "mdav",
    blocking: Any = "tree",
    max_block: Any = "auto",
    standardize: Any = True,
    by: Any = None,
    missing: Any = "error",
    keep_order: Any = True,
) -> ma.Request:
    """Check the arguments of a microaggregation against the frame's columns and dtypes."""
    k = arguments.whole_number(k, "k", 2)
    groups = arguments.column_groups(frame, columns)
    strata = arguments.strata_columns(frame, by, groups)
    arguments.one_of(method, "method", ma.METHODS)
    arguments.one_of(missing, "missing", ["error", "separate"])
    keep_order = arguments.flag(keep_order, "keep_order")
    if not keep_order and len(groups) > 1:
        raise ValueError(
            f"keep_order=False takes one group of columns, received {len(groups)}: rows cannot be "
            "in the order of several groups' blocks. Use keep_order=True."
        )
    request = ma.Request(
        groups,
        k,
        method,
        blocking,
        arguments.block_size(max_block, k),
        arguments.flag(standardize, "standardize"),
        strata,
        missing,
        keep_order,
    )
    if isinstance(blocking, Blocks):
        _check_reuse(blocking, request)
    elif blocking is None:
        if max_block != "auto":
            raise ValueError("max_block has no meaning with blocking=None: leave it out.")
    else:
        arguments.one_of(blocking, "blocking", [*BLOCKINGS, None])
    return request


def _check_reuse(blocks: Blocks, request: ma.Request) -> None:
    if len(request.groups) > 1 or request.groups[0] != blocks.columns:
        raise ValueError(
            "blocking= has blocks of other columns: pass the columns that the blocks were made "
            "of, in that order, as one group."
        )
    if request.max_block != "auto":
        raise ValueError("max_block has no meaning with blocks that are made: leave it out.")
    if request.k > blocks.k:
        raise ValueError(
            f"the blocks were made for k={blocks.k}, received k={request.k}: make them again with "
            "this k."
        )
    if request.rules()[0] != blocks.strata.rule:
        raise ValueError(
            "`by` and `missing` must be those that the blocks were made with: pass the same, or "
            "make the blocks again."
        )


@register_dataframe_accessor("sdc")
@pd.api.extensions.register_dataframe_accessor("sdc")
class SdcAccessor:
    """Statistical disclosure control of a DataFrame."""

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def blocks(
        self,
        columns: Sequence[Hashable],
        k: int,
        *,
        max_block: int | str = "auto",
        method: str = "tree",
        standardize: bool = True,
        by: Hashable | Sequence[Hashable] | None = None,
        missing: str = "error",
    ) -> Blocks:
        """Plan blocks."""
        arguments.one_of(method, "method", BLOCKINGS)
        request = microaggregation_request(
            self._frame,
            columns,
            k,
            blocking=method,
            max_block=max_block,
            standardize=standardize,
            by=by,
            missing=missing,
        )
        if len(request.groups) > 1:
            raise ValueError(
                f"blocks are made of one group of columns, received {len(request.groups)}."
            )
        return ma.plan(self._frame, request).placements[0].blocks

    def microaggregate(
        self,
        columns: Columns,
        k: int,
        *,
        method: str = "mdav",
        blocking: str | Blocks | None = "tree",
        max_block: int | str = "auto",
        standardize: bool = True,
        by: Hashable | Sequence[Hashable] | None = None,
        missing: str = "error",
        keep_order: bool = True,
    ) -> Frame:
        """Replace records by the centroids of groups of at least k."""
        request = microaggregation_request(
            self._frame,
            columns,
            k,
            method=method,
            blocking=blocking,
            max_block=max_block,
            standardize=standardize,
            by=by,
            missing=missing,
            keep_order=keep_order,
        )
        return ma.microaggregate(self._frame, request)
