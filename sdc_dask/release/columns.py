"""What becomes of every column of a source: masked, kept or dropped, by declaration."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Sequence
from typing import Any

import pandas as pd
import pyarrow as pa

from sdc_dask import arguments
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.masking.spec import Spec
from sdc_dask.release.source import Source

_WILD = frozenset("*?[")


def dropped_columns(source: Source, specs: Sequence[Spec], keep: Any, drop: Any) -> tuple[str, ...]:
    """Return the columns that are dropped, or raise an error if one was not decided upon.

    Names are those of columns; wildcards, such as ``"q_*"``, stand for all columns that are
    neither masked nor named otherwise, and those of `drop` go first. Columns of `by` are kept,
    unless they are dropped by name. An index without a name numbers the rows, and is dropped.
    """
    everything = pd.DataFrame(columns=source.schema.names)
    for spec in specs:
        arguments.existing(everything, spec.masked, "columns", "the source")
        arguments.existing(everything, spec.by, "by", "the source")
        if spec.unit is not None:
            arguments.existing(everything, [spec.unit], "unit", "the source")
    masked = {str(name) for spec in specs for name in spec.masked}
    by = {str(name) for spec in specs for name in spec.by}
    named = {
        argument: [str(name) for name in arguments.name_list(value, argument)]
        for argument, value in (("keep", keep), ("drop", drop))
    }
    exact = {
        argument: [name for name in names if name in source.schema.names or not _WILD & set(name)]
        for argument, names in named.items()
    }
    for argument, names in exact.items():
        arguments.existing(everything, names, argument, "the source")
        both = [name for name in names if name in masked]
        if both:
            raise SdcValueError(
                f"{argument} names columns that are masked: {', '.join(both)}. A column is masked, "
                "kept or dropped."
            )
    both = [name for name in exact["keep"] if name in exact["drop"]]
    if both:
        raise SdcValueError(
            f"keep and drop both name columns: {', '.join(both)}. A column is kept or dropped."
        )
    decided = masked.union(by, *exact.values())
    free = [name for name in source.schema.names if name not in decided]
    dropped = {*exact["drop"], *(name for name in source.unnamed_index if name in free)}
    kept = {*exact["keep"], *(name for name in by if name not in dropped)}
    for argument, found in (("drop", dropped), ("keep", kept)):
        for pattern in named[argument]:
            if pattern not in exact[argument]:
                found |= _matching(pattern, free, argument) - dropped
    undecided = [name for name in free if name not in kept | dropped]
    if undecided:
        raise SdcValueError(
            f"columns are neither masked, kept nor dropped: {', '.join(undecided)}. What is kept "
            "is released as it is, and may identify persons: name each in keep= or drop= "
            "(--keep, --drop), by itself or by a wildcard such as 'q_*'; keep='*' keeps all others."
        )
    return tuple(name for name in source.schema.names if name in dropped)


def counted_sets(schema: pa.Schema, count: Any) -> tuple[tuple[str, ...], ...]:
    """Return the sets of released columns in which classes are counted on request."""
    if count is None:
        return ()
    if not isinstance(count, (list, tuple)) or not all(
        isinstance(columns, (list, tuple)) and columns for columns in count
    ):
        raise SdcTypeError(
            "count must be a list of lists of columns, such as [['age', 'sex'], ['region']], "
            f"or [['age', 'sex']] for one set, received {type(count).__name__}."
        )
    released = pd.DataFrame(columns=schema.names)
    sets = []
    for columns in count:
        names = tuple(str(name) for name in columns)
        arguments.existing(released, names, "count", "the release")
        nested = [name for name in names if pa.types.is_nested(schema.field(name).type)]
        if nested:
            raise SdcTypeError(
                f"count names columns of lists or structs, whose values cannot be compared: "
                f"{', '.join(nested)}. Leave them out."
            )
        if len(set(names)) < len(names):
            raise SdcValueError(f"count names a column twice in a set: {', '.join(names)}.")
        sets.append(names)
    return tuple(dict.fromkeys(sets))


def _matching(pattern: str, names: Iterable[str], argument: str) -> set[str]:
    found = {name for name in names if fnmatch.fnmatchcase(name, pattern)}
    if not found and pattern != "*":
        raise SdcValueError(
            f"{argument}={pattern!r} matches no column that is left: look for a misprint, or leave "
            "it out."
        )
    return found
