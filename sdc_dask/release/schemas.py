"""One schema for files that differ in harmless ways, and casts that lose nothing."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from sdc_dask.errors import SdcTypeError, SdcValueError

_UNITS = ("s", "ms", "us", "ns")
_INTEGERS = (pa.int8(), pa.int16(), pa.int32(), pa.int64())


@dataclass(frozen=True)
class Variant:
    """A schema, and the files that have it."""

    schema: pa.Schema
    files: tuple[str, ...]


def variants(files: Sequence[str], schemas: Sequence[pa.Schema]) -> list[Variant]:
    """Return the schemas that differ, without regard to metadata, in order of their first files."""
    found: list[tuple[pa.Schema, list[str]]] = []
    for file, schema in zip(files, schemas, strict=True):
        for known, names in found:
            if known.equals(schema):
                names.append(file)
                break
        else:
            found.append((schema, [file]))
    return [Variant(schema, tuple(names)) for schema, names in found]


def unify(
    found: Sequence[Variant], casts: Mapping[str, pa.DataType]
) -> tuple[pa.Schema, tuple[str, ...]]:
    """Return the schema into which all files can be read without loss, and what had to be done.

    Columns are those of the first file, in its order, and then others as they come. Integers and
    floats get the widest type, a column that some files do not have is missing there, categories
    become plain values where others have these, and so on; see :func:`wider`. What is cast anyway
    may differ as it likes.

    Parameters
    ----------
    found : sequence of Variant
        One at least.
    casts : dict
        Types that were asked for, by column.
    """
    names = dict.fromkeys(name for variant in found for name in variant.schema.names)
    notes: list[str] = []
    fields = []
    for name in names:
        having = [variant for variant in found if name in variant.schema.names]
        lacking = [file for each in found if each not in having for file in each.files]
        kind = casts[name] if name in casts else _common(name, having, notes)
        nullable = any(each.schema.field(name).nullable for each in having)
        if lacking:
            if not nullable:
                raise SdcValueError(
                    f"column {name!r} is not in file {lacking[0]!r}, and {having[0].files[0]!r} "
                    "says that it is never missing: write the files anew."
                )
            notes.append(f"column {name!r} is not in {_files(len(lacking))}: missing cells there")
        fields.append(pa.field(name, kind, nullable))
    order = list(names)
    other = sum(
        len(each.files)
        for each in found
        if each.schema.names != [name for name in order if name in each.schema.names]
    )
    if other:
        notes.append(
            f"columns are in another order in {_files(other)}: read in the order of the first file"
        )
    first = found[0].schema
    schema = pa.schema(fields, metadata=first.metadata)
    return _fitting_metadata(schema, first), tuple(notes)


def _common(name: str, having: Sequence[Variant], notes: list[str]) -> pa.DataType:
    """Return the type of a column in all files, or raise an error that names two of them."""
    by_type: dict[pa.DataType, list[str]] = {}
    for variant in having:
        by_type.setdefault(variant.schema.field(name).type, []).extend(variant.files)
    kinds = list(by_type)
    if len(kinds) == 1:
        return kinds[0]
    common = functools.reduce(lambda a, b: None if a is None else wider(a, b), kinds)
    if common is None:
        first, second = _unlike(kinds)
        raise SdcValueError(
            f"column {name!r} is {first} in file {by_type[first][0]!r} and {second} in file "
            f"{by_type[second][0]!r}: all files of a source must have columns of one kind. Write "
            f"one anew, or cast the column, as in cast={{{name!r}: 'float64'}} (--cast)."
        )
    counted = [f"{kind} in {_files(len(files))}" for kind, files in by_type.items()]
    notes.append(
        f"column {name!r} is {', '.join(counted[:-1])} and {counted[-1]}: read as {common}"
    )
    return common


def _unlike(kinds: Sequence[pa.DataType]) -> tuple[pa.DataType, pa.DataType]:
    """Return two types that have nothing in common, or else the first two."""
    pairs = ((a, b) for i, a in enumerate(kinds) for b in kinds[i + 1 :])
    return next((pair for pair in pairs if wider(*pair) is None), (kinds[0], kinds[1]))


def _files(count: int) -> str:
    return "1 file" if count == 1 else f"{count:,} files"


def wider(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    """Return the type that holds all values of two types as they are, or None.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from sdc_dask.release.schemas import wider
    >>> wider(pa.int32(), pa.int64())
    DataType(int64)
    >>> wider(pa.int64(), pa.float64()) is None
    True
    """
    is_ = pa.types
    if a.equals(b) or is_.is_null(b):
        return a
    if is_.is_null(a):
        return b
    if is_.is_dictionary(a) or is_.is_dictionary(b):
        return wider(*(each.value_type if is_.is_dictionary(each) else each for each in (a, b)))
    if is_.is_integer(a) and is_.is_integer(b):
        return _wider_integer(a, b)
    if is_.is_floating(a) and is_.is_floating(b):
        return max(a, b, key=lambda kind: kind.bit_width)
    if _is_text(a) and _is_text(b):
        return pa.large_string()
    if _is_binary(a) and _is_binary(b):
        return pa.large_binary()
    if is_.is_decimal(a) and is_.is_decimal(b) and a.scale == b.scale:
        return max(a, b, key=lambda kind: kind.precision)
    if is_.is_timestamp(a) and is_.is_timestamp(b) and a.tz == b.tz:
        return max(a, b, key=lambda kind: _UNITS.index(kind.unit))
    return None


def _wider_integer(a: pa.DataType, b: pa.DataType) -> pa.DataType | None:
    if pa.types.is_signed_integer(a) == pa.types.is_signed_integer(b):
        return max(a, b, key=lambda kind: kind.bit_width)
    signed, unsigned = (a, b) if pa.types.is_signed_integer(a) else (b, a)
    width = max(signed.bit_width, 2 * unsigned.bit_width)
    return next((kind for kind in _INTEGERS if kind.bit_width == width), None)


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _is_binary(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind)


def _fitting_metadata(schema: pa.Schema, first: pa.Schema) -> pa.Schema:
    """Leave out what pandas noted of columns that have another type now."""
    metadata = schema.metadata or {}
    if b"pandas" not in metadata:
        return schema
    changed = {
        name
        for name in schema.names
        if name not in first.names or not schema.field(name).type.equals(first.field(name).type)
    }
    if not changed:
        return schema
    try:
        pandas = json.loads(metadata[b"pandas"])
        pandas["columns"] = [
            each for each in pandas["columns"] if each["field_name"] not in changed
        ]
    except (KeyError, TypeError, ValueError):
        return schema.remove_metadata()  # nothing that pandas would understand
    return schema.with_metadata(metadata | {b"pandas": json.dumps(pandas).encode()})


# Casts


def cast_types(cast: Mapping[str, Any] | None) -> dict[str, pa.DataType]:
    """Return the types of columns that are to be cast, from their names in Arrow."""
    if cast is None:
        return {}
    if not isinstance(cast, Mapping):
        raise SdcTypeError(
            "cast must be a dict of types by column, such as {'price': 'float64'}, received "
            f"{type(cast).__name__}."
        )
    types = {}
    for name, kind in cast.items():
        if not isinstance(name, str):
            raise SdcTypeError(f"cast must name columns by texts, received {type(name).__name__}.")
        try:
            types[name] = kind if isinstance(kind, pa.DataType) else pa.type_for_alias(kind)
        except (ValueError, TypeError, AttributeError):
            raise SdcValueError(
                f"cast of column {name!r}: {kind!r} is no type of Arrow. Types are float64, "
                "float32, int64, string, bool, date32, 'timestamp[us]' and so on."
            ) from None
    return types


def check_casts(found: Sequence[Variant], casts: Mapping[str, pa.DataType]) -> None:
    """Raise TypeError if there is no cast between two types at all."""
    for name, kind in casts.items():
        for variant in found:
            if name not in variant.schema.names:
                continue
            own = variant.schema.field(name).type
            try:
                _cast(pa.chunked_array([], own), kind)
            except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
                raise SdcTypeError(
                    f"cast of column {name!r}: there is none from {own}, as it is in file "
                    f"{variant.files[0]!r}, to {kind}. Choose another type."
                ) from None


def exact_cast(column: pa.ChunkedArray, kind: pa.DataType, name: str, file: str) -> pa.ChunkedArray:
    """Cast a column; raise ValueError if a value would be another one afterwards.

    Decimals become the floats that are nearest, if these have all their digits. Texts are read as
    numbers or dates, or it is an error.
    """
    if column.type.equals(kind):
        return column
    if pa.types.is_null(column.type):
        return pa.chunked_array([pa.nulls(len(column), kind)])
    try:
        found = _cast(column, kind)
        is_same = not _may_round(column.type, kind) or _equal(_cast(found, column.type), column)
    except pa.ArrowException:
        is_same = False  # the text of the error shows a value
    if not is_same:
        raise SdcValueError(
            f"column {name!r} of file {file!r} has values of type {column.type} that are none of "
            f"{kind}, or would lose digits: choose another type, or write the file anew."
        )
    return found


def _cast(column: pa.ChunkedArray, kind: pa.DataType) -> pa.ChunkedArray:
    is_ = pa.types
    if is_.is_dictionary(column.type) and not is_.is_dictionary(kind):
        column = column.cast(column.type.value_type)
    if is_.is_decimal(kind) or (is_.is_decimal(column.type) and is_.is_floating(kind)):
        # The shortest text of a float has its digits, neither more nor rounded ones.
        column = column.cast(pa.string())
    return column.cast(kind)


def _may_round(before: pa.DataType, after: pa.DataType) -> bool:
    """Whether a cast may change a value: from numbers or times to others that are not wider."""
    is_ = pa.types
    tests = (is_.is_integer, is_.is_floating, is_.is_decimal, is_.is_temporal)
    are_measures = all(any(test(kind) for test in tests) for kind in (before, after))
    return are_measures and wider(before, after) != after


def _equal(a: pa.ChunkedArray, b: pa.ChunkedArray) -> bool:
    same = pc.equal(a, b)
    if pa.types.is_floating(a.type):
        same = pc.or_(same, pc.and_(pc.is_nan(a), pc.is_nan(b)))
    return pc.all(same, min_count=0).as_py() is not False
