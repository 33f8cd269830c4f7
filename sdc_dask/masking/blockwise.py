"""What maskings by blocks have in common: their options, the scan, and the blocks of records."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import fields
from typing import Any, Protocol

import pandas as pd

from sdc_dask import arguments
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import WHOLE, Blocks, plan_blocks
from sdc_dask.engine.codecs import NUMBERS, Coding
from sdc_dask.engine.columns import check_numeric
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.placement import Placement, place
from sdc_dask.engine.scan import Scan, scan
from sdc_dask.engine.strata import Strata, StrataRule
from sdc_dask.engine.units import fuse_by_units
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.coordinates import Coordinates


class Blockwise(Protocol):
    """The options of a masking that forms groups of k or so within blocks."""

    @property
    def columns(self) -> arguments.ColumnSets:
        """Sets of columns, each masked on its own."""

    @property
    def k(self) -> int:
        """Smallest block, and strata."""

    @property
    def blocking(self) -> str | Blocks | None:
        """How records are cut into blocks."""

    @property
    def max_block(self) -> int | str:
        """L, or "auto"."""

    @property
    def by(self) -> tuple[Hashable, ...]:
        """Columns whose values blocks never mix."""

    @property
    def missing(self) -> str:
        """Whether missing cells are refused or set records apart."""


def check_options(spec: Blockwise, blockings: Sequence[str | None]) -> dict[str, Any]:
    """Return the options of a spec as they are kept, or raise an error."""
    k = arguments.whole_number(spec.k, "k", 2)
    columns = arguments.column_sets(spec.columns)
    masked = [column for each in columns for column in each]
    by = arguments.strata_columns(spec.by, masked)
    arguments.one_of(spec.missing, "missing", ["error", "separate"])
    max_block = arguments.block_size(spec.max_block, k)
    if isinstance(spec.blocking, Blocks):
        _check_reuse(spec.blocking, columns, k, max_block, rules(columns, by, spec.missing)[0])
    else:
        arguments.one_of(spec.blocking, "blocking", blockings)
        if spec.blocking is None:
            arguments.no_block_size(max_block)
    found = {"k": k, "columns": columns, "by": by, "max_block": max_block}
    if hasattr(spec, "missing_values"):
        found["missing_values"] = arguments.codes(spec.missing_values, "missing_values")
    return found


def check_frame(spec: Blockwise, frame: Frame) -> None:
    """Raise an error unless a frame has the columns, and these are numbers."""
    meta = check_columns(spec, frame)
    check_numeric(meta, [column for each in spec.columns for column in each])


def check_columns(spec: Blockwise, frame: Frame) -> pd.DataFrame:
    """Raise an error unless a frame has the columns; return it without records."""
    meta = arguments.unique_columns(frame)
    arguments.existing(meta, [column for each in spec.columns for column in each], "columns")
    arguments.check_strata_columns(meta, spec.by)
    return meta


def rules(
    columns: arguments.ColumnSets, by: tuple[Hashable, ...], missing: str
) -> list[StrataRule]:
    """Return the strata of every set of columns."""
    return [StrataRule(by, each if missing == "separate" else ()) for each in columns]


def survey(
    frame: Frame, spec: Blockwise, *, small_strata: bool = False
) -> tuple[Scan, list[Strata]]:
    """Scan a frame and see whether it can be masked: one pass over the data.

    With `small_strata`, there may be some below k, which are to be merged.
    """
    strata_rules = rules(spec.columns, spec.by, spec.missing)
    scanned = scan(frame, [name for each in spec.columns for name in each], strata_rules)
    _check_counts(scanned.n, spec.k)
    scanned.check(
        spec.missing,
        ", or pass missing='separate' to group records by their pattern of missing cells",
    )
    strata = scanned.strata(strata_rules)
    for each in () if small_strata else strata:
        _check_strata(each, spec.k, merging=hasattr(spec, "small") and bool(spec.by))
    scanned.advise(
        averaged=getattr(spec, "decimals", None) is None,
        named=any(each.name == "missing_values" for each in fields(spec)),  # type: ignore[arg-type]
    )
    return scanned, strata


def blocks_for(
    frame: Frame,
    spec: Blockwise,
    scanned: Scan,
    strata: Strata,
    columns: Sequence[Hashable],
    coordinates: Coordinates,
    method: str | Blocks | None,
    largest: int,
    *,
    fill: bool = False,
    unit: Hashable | None = None,
) -> Blocks:
    """Return the blocks of records, which are planned unless they are made already.

    `largest` is the block size that "auto" stands for. To `fill` blocks is to fuse those that are
    far below the largest: a 2^d-tree of many columns has leaves of few records. With a
    `unit`, blocks have k of these.
    """
    if isinstance(method, Blocks):
        return method
    max_block = largest if isinstance(spec.max_block, str) else spec.max_block
    blocks = plan_blocks(
        frame,
        scanned,
        strata,
        columns,
        coordinates,
        k=spec.k,
        max_block=max_block,
        method=method or WHOLE,
        smallest=max(spec.k, max_block // 4) if fill else None,
    )
    return blocks if unit is None else fuse_by_units(frame, blocks, coordinates, unit, spec.k)


def other_blocks(
    frame: Frame, scanned: Scan, strata: Strata, coordinates: Coordinates, blocks: Blocks
) -> Blocks:
    """Return blocks as large as those of a frame, which are cut elsewhere."""
    return plan_blocks(
        frame,
        scanned,
        strata,
        blocks.columns,
        coordinates,
        k=blocks.k,
        max_block=blocks.max_block,
        method="halves",
        smallest=max(blocks.k, blocks.max_block // 4),
        shifted=True,
    )


def place_in_blocks(
    frame: Frame,
    spec: Blockwise,
    scanned: Scan,
    blocks: Blocks,
    *,
    coding: Coding = NUMBERS,
    unit: Hashable | None = None,
) -> Placement:
    """Return where the records of a frame go, by blocks that were planned for it or before.

    The frame has numbers, which a `coding` may have made of other values.
    """
    here = blocks is not spec.blocking
    return place(frame, blocks, scanned, spec.k, planned_here=here, coding=coding, unit=unit)


def blockings(*others: str) -> list[str | None]:
    """Return the names of blockings that a masking takes."""
    return [*others, *BLOCKINGS, None]


def _check_reuse(
    blocks: Blocks,
    columns: arguments.ColumnSets,
    k: int,
    max_block: int | str,
    rule: StrataRule,
) -> None:
    if len(columns) > 1 or columns[0] != blocks.columns:
        raise SdcValueError(
            "blocking= has blocks of other columns: pass the columns that the blocks were made "
            "of, in that order, as one set."
        )
    if max_block != "auto":
        raise SdcValueError("max_block has no meaning with blocks that are made: leave it out.")
    if k > blocks.k:
        raise SdcValueError(
            f"the blocks were made for k={blocks.k}, received k={k}: make them again with this k."
        )
    if rule != blocks.strata.rule:
        raise SdcValueError(
            "`by` and `missing` must be those that the blocks were made with: pass the same, or "
            "make the blocks again."
        )


def _check_counts(n: int, k: int) -> None:
    if n == 0:
        raise SdcValueError("the frame has no records: there is nothing to mask.")
    if n < k:
        raise SdcValueError(
            f"the frame has {n} records, fewer than k={k}: no group of k can be formed. "
            "Use a smaller k or more records."
        )


def _check_strata(strata: Strata, k: int, *, merging: bool) -> None:
    small = int((strata.counts < k).sum())
    if small:
        what = "values of `by` or patterns of missing cells"
        raise SdcValueError(
            f"{small} of {len(strata)} strata ({what}) have fewer than k={k} records, the "
            f"smallest {strata.counts.min()}. Merge rare values"
            f"{', or pass small=' + repr('merge') if merging else ''}, drop those records, or use "
            "a smaller k."
        )
