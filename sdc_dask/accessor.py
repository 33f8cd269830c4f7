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
from sdc_dask.masking.request import microaggregation_request
from sdc_dask.risk.anonymity import Anonymity, anonymity
from sdc_dask.utility.sse import SSE, sse

Columns = Sequence[Hashable] | Sequence[Sequence[Hashable]]


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

    def sse(self, masked: Frame, columns: Sequence[Hashable] | None = None) -> SSE:
        """Measure SSE."""
        return sse(self._frame, masked, arguments.compared_columns(self._frame, masked, columns))

    def anonymity(self, columns: Sequence[Hashable], k: int | None = None) -> Anonymity:
        """Count classes."""
        meta = arguments.unique_columns(self._frame)
        names = arguments.name_list(columns, "columns")
        if not names:
            raise ValueError("columns is empty: name the columns whose equal records are counted.")
        arguments.existing(meta, names, "columns")
        if k is not None:
            k = arguments.whole_number(k, "k", 1)
        return anonymity(self._frame, names, k)
