"""What is asked of a microaggregation, checked before any data is read."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np

from sdc_dask import arguments
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.strata import StrataRule
from sdc_dask.errors import SdcValueError
from sdc_dask.masking.methods import METHODS
from sdc_dask.masking.projections import AGGREGATIONS, aggregate


@dataclass(frozen=True)
class Request:
    """The arguments of a microaggregation."""

    groups: tuple[tuple[Hashable, ...], ...]
    k: int
    method: str
    blocking: str | Blocks | None
    max_block: int | str
    standardize: bool
    by: tuple[Hashable, ...]
    missing: str
    keep_order: bool
    parameters: tuple[Any, ...]  # of the method alone

    @property
    def columns(self) -> list[Hashable]:
        """All columns that are masked."""
        return [column for group in self.groups for column in group]

    def rules(self) -> list[StrataRule]:
        """Strata of every group of columns."""
        return [
            StrataRule(self.by, group if self.missing == "separate" else ())
            for group in self.groups
        ]


def microaggregation_request(
    frame: Frame,
    columns: Any,
    k: Any,
    *,
    method: Any = "mdav",
    blocking: Any = "auto",
    max_block: Any = "auto",
    standardize: Any = True,
    by: Any = None,
    missing: Any = "error",
    keep_order: Any = True,
    gain: Any = None,
    weights: Any = None,
    measure: Any = None,
) -> Request:
    """Check the arguments of a microaggregation against the frame's columns and dtypes."""
    k = arguments.whole_number(k, "k", 2)
    groups = arguments.column_groups(frame, columns)
    strata = arguments.strata_columns(frame, by, groups)
    arguments.one_of(method, "method", METHODS)
    arguments.one_of(missing, "missing", ["error", "separate"])
    keep_order = arguments.flag(keep_order, "keep_order")
    parameters = _parameters(method, groups, gain=gain, weights=weights, measure=measure)
    if isinstance(blocking, str) and blocking == "auto":
        blocking = None if METHODS[method].ordered else "tree"
    if not keep_order and blocking is None and METHODS[method].ordered:
        raise SdcValueError(
            "keep_order=False leaves rows at their blocks, and there are none: use "
            "keep_order=True, or name a blocking."
        )
    if not keep_order and len(groups) > 1:
        raise SdcValueError(
            f"keep_order=False takes one group of columns, received {len(groups)}: rows cannot be "
            "in the order of several groups' blocks. Use keep_order=True."
        )
    request = Request(
        groups,
        k,
        method,
        blocking,
        arguments.block_size(max_block, k),
        arguments.flag(standardize, "standardize"),
        strata,
        missing,
        keep_order,
        parameters,
    )
    if isinstance(blocking, Blocks):
        _check_reuse(blocking, request)
    elif blocking is None:
        if max_block != "auto":
            raise SdcValueError(
                "max_block has no meaning without blocks: leave it out, or name a blocking."
            )
    else:
        arguments.one_of(blocking, "blocking", ["auto", *BLOCKINGS, None])
    return request


def _parameters(
    method: str, groups: tuple[tuple[Hashable, ...], ...], **given: Any
) -> tuple[Any, ...]:
    """Return the parameters of a method, checked for every group of columns."""
    takes, default = METHODS[method].takes, METHODS[method].default
    for name, each in given.items():
        if each is not None and name != takes:
            users = [user for user, other in METHODS.items() if other.takes == name]
            raise SdcValueError(
                f"{name} has no meaning with method={method!r}: leave it out. It belongs to "
                f"{', '.join(map(repr, users))}."
            )
    widest = max(groups, key=len)
    if method == "optimal" and len(widest) > 1:
        others = [name for name in METHODS if name != "optimal"]
        raise SdcValueError(
            f"method='optimal' masks one column at a time, received a group of {len(widest)}: pass "
            "columns=[['a'], ['b'], ...], or use a method for several columns: "
            f"{', '.join(map(repr, others))}."
        )
    if takes is None:
        return ()
    value: Any = default if given[takes] is None else given[takes]
    if value is None:
        raise SdcValueError(f"method={method!r} needs {takes}=: name it.")
    if takes == "gain":
        return (arguments.number(value, "gain", 0.0),)
    pair = isinstance(value, tuple) and len(value) == 2
    parameters = (value if pair else (value, value)) if method == "twofold" else (value,)
    if method in AGGREGATIONS:
        for group in groups:
            # Weights and measures that do not fit are refused here, before any data is read.
            aggregate(method, np.zeros((1, len(group))), parameters)
    # Copies: the user may change an array before a lazy frame is computed.
    return tuple(each if callable(each) else np.array(each) for each in parameters)


def _check_reuse(blocks: Blocks, request: Request) -> None:
    if len(request.groups) > 1 or request.groups[0] != blocks.columns:
        raise SdcValueError(
            "blocking= has blocks of other columns: pass the columns that the blocks were made "
            "of, in that order, as one group."
        )
    if request.max_block != "auto":
        raise SdcValueError("max_block has no meaning with blocks that are made: leave it out.")
    if request.k > blocks.k:
        raise SdcValueError(
            f"the blocks were made for k={blocks.k}, received k={request.k}: make them again with "
            "this k."
        )
    if request.rules()[0] != blocks.strata.rule:
        raise SdcValueError(
            "`by` and `missing` must be those that the blocks were made with: pass the same, or "
            "make the blocks again."
        )
