"""What the files of a release look like, and what is counted on them.

A schema is made anew from that of the source: names and types pass, and nothing else that a footer
may hold.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
import pyarrow as pa

from sdc_dask.engine.in_place import Allowed
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.masking.spec import Spec, in_order
from sdc_dask.names import units_among
from sdc_dask.release.directories import level_field


@dataclass(frozen=True)
class Layout:
    """What the protected files look like, and what is counted on them.

    Attributes
    ----------
    schema : pyarrow.Schema
        Of the release: columns that paths give come last.
    masked : tuple
        All columns that are masked.
    numbers : tuple
        Those of them that are numbers, between which differences are measured.
    by : tuple
        All columns within whose values records were masked, kept or not.
    promised : tuple
        Sets of columns for which k is promised.
    together : tuple
        All masked columns, if they are several sets.
    summed : tuple
        Numbers of which the sums are known, so that they need not be added up again.
    known : tuple
        Sets of columns that an intruder may know, in which classes are counted on request.
    moved : tuple
        Sets of columns, of which the first keeps its values within those of the others.
    by_unit : tuple
        Sets of columns for which k units are promised, and the column of units of each.
    alike : tuple
        Those of them in which all records of a unit are equal.
    watched : tuple
        Sets of columns for which k records are promised, k, and a column that looks like units:
        whether classes are of a single one.
    partition_by : tuple
        Columns by whose values there are directories: these are not in the files.
    allowed : dict
        What some masked columns may hold.
    matched : tuple
        Sets of columns in which k records match each, if missing cells match any value.
    """

    schema: pa.Schema
    masked: tuple[str, ...]
    numbers: tuple[str, ...]
    by: tuple[str, ...]
    promised: tuple[tuple[str, ...], ...]
    together: tuple[str, ...]
    moved: tuple[tuple[str, ...], ...]
    summed: tuple[str, ...] = ()
    known: tuple[tuple[str, ...], ...] = ()
    by_unit: tuple[tuple[tuple[str, ...], str], ...] = ()
    alike: tuple[tuple[tuple[str, ...], str], ...] = ()
    watched: tuple[tuple[tuple[str, ...], int, str], ...] = ()
    partition_by: tuple[str, ...] = ()
    allowed: Mapping[str, Allowed] = field(default_factory=dict)
    matched: tuple[tuple[str, ...], ...] = ()

    @classmethod
    def of(
        cls,
        schema: pa.Schema,
        specs: Sequence[Spec],
        drop: Sequence[str],
        partition_by: tuple[str, ...] = (),
    ) -> Layout:
        """Derive the layout from the schema of the source."""
        masked = list(dict.fromkeys(str(name) for spec in specs for name in spec.masked))
        used = {*masked, *(str(name) for spec in specs for name in spec.by)}
        used |= {str(spec.unit) for spec in specs if spec.unit is not None}
        for name in schema.names:
            if name in used or name not in drop:
                _check_type(schema.field(name), in_use=name in used)
        by_column = {
            name: [spec for spec in in_order(specs) if name in map(str, spec.masked)]
            for name in masked
        }
        others = {*drop, *partition_by}
        kept = [schema.field(name) for name in schema.names if name not in others]
        fields = [_masked_field(each, by_column.get(each.name, [])) for each in kept]
        metadata = _pandas_metadata(schema, fields, by_column)
        fields += [level_field(schema.field(name)) for name in partition_by]
        by = tuple(dict.fromkeys(str(name) for spec in specs for name in spec.by))
        left = [name for name in by if name not in drop]
        promised = [
            ((*map(str, columns), *(name for name in map(str, spec.by) if name in left)), spec)
            for spec in specs
            if spec.promise is not None
            for columns in spec.column_sets
        ]
        sets = [columns for columns, _ in promised]
        several = sum(len(spec.column_sets) for spec in specs) > 1
        joint = tuple(dict.fromkeys([*masked, *left]))
        together = joint if several and all(set(each) != set(joint) for each in sets) else ()
        return cls(
            pa.schema(fields, metadata=metadata),
            tuple(masked),
            tuple(
                name
                for name in masked
                if _is_number(schema.field(name).type)
                and all(
                    spec.measures_numbers and name not in spec.categories
                    for spec in by_column[name]
                )
            ),
            tuple(name for name in by if name not in masked),
            tuple(sets),
            together,
            tuple(
                (str(name), *map(str, spec.by))
                for spec in specs
                if spec.moves
                for name in spec.masked
            ),
            by_unit=tuple(
                (each, str(spec.unit)) for each, spec in promised if spec.unit is not None
            ),
            alike=tuple((each, str(spec.unit)) for each, spec in promised if spec.units_alike),
            watched=tuple(
                (each, spec.k_of_records, unit)
                for each, spec in promised
                if spec.k_of_records is not None
                for unit in units_among(name for name in schema.names if name not in used)
                if not pa.types.is_nested(schema.field(unit).type)
            ),
            partition_by=partition_by,
            matched=tuple(
                tuple(map(str, columns))
                for spec in specs
                if spec.matches is not None
                for columns in spec.column_sets
            ),
        )

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns that are released as they are."""
        return tuple(name for name in self.schema.names if name not in self.masked)

    @property
    def levels(self) -> list[pa.Field]:
        """Columns that paths give."""
        return [self.schema.field(name) for name in self.partition_by]

    @property
    def units(self) -> list[str]:
        """Columns of units, kept or not."""
        return list(dict.fromkeys(unit for _, unit in self.by_unit))

    @property
    def placing(self) -> list[str]:
        """Columns that say where records are masked and with whom, besides what is masked."""
        return list(dict.fromkeys([*self.by, *self.units]))

    def unit_words(self, unit: str) -> tuple[str, str]:
        """Return names for the words of a unit's keys, which are longer than those of columns."""
        longest = max(self.schema.names, key=len)
        number = self.units.index(unit)
        return f"{longest}_{number}_first", f"{longest}_{number}_second"

    @property
    def counted(self) -> list[tuple[str, ...]]:
        """Sets of columns in which classes of equal records are counted."""
        return [*self.promised, *([self.together] if self.together else []), *self.known]


def _check_type(field: pa.Field, *, in_use: bool) -> None:
    """Raise an error for a type that cannot be put in another order, or compared if it is used."""
    kind, is_ = field.type, pa.types
    if is_.is_string_view(kind) or is_.is_binary_view(kind):
        plain = "string" if is_.is_string_view(kind) else "binary"
        raise SdcValueError(
            f"column {field.name!r} has the type {kind}, whose rows Arrow cannot put in another "
            f"order: read it as another type with cast={{{field.name!r}: {plain!r}}}, or drop it."
        )
    if in_use and isinstance(kind, pa.BaseExtensionType) and is_.is_nested(kind.storage_type):
        raise SdcTypeError(
            f"column {field.name!r} has the type {kind.extension_name!r}, whose values have no "
            "order: keep or drop it, and mask or name other columns."
        )


def _is_number(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def _bare(field: pa.Field) -> pa.Field:
    """Return a field without metadata, which may hold anything."""
    if _has_inner_categories(field.type):
        raise SdcValueError(
            f"column {field.name!r} has categories in lists or structs: those that no record "
            "has would be released with it. Drop it, or write its values as plain texts first."
        )
    bare = _bare_type(field.type)
    if bare is None:
        raise SdcValueError(
            f"column {field.name!r} has the nested type {field.type}, whose fields may hold "
            "metadata that would be released with it: read it as another type with cast=, or drop "
            "it."
        )
    return pa.field(field.name, bare, field.nullable)


def _bare_type(kind: pa.DataType) -> pa.DataType | None:
    """Return a type whose inner fields have no metadata, either; None if that is not known."""
    if pa.types.is_struct(kind):
        return pa.struct([_bare(kind.field(i)) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_bare(kind.value_field))
    if pa.types.is_large_list(kind):
        return pa.large_list(_bare(kind.value_field))
    if pa.types.is_list_view(kind):
        return pa.list_view(_bare(kind.value_field))
    if pa.types.is_large_list_view(kind):
        return pa.large_list_view(_bare(kind.value_field))
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_bare(kind.value_field), kind.list_size)
    if pa.types.is_map(kind):
        return pa.map_(_bare(kind.key_field), _bare(kind.item_field), kind.keys_sorted)
    if isinstance(kind, pa.BaseExtensionType):
        stored = kind.storage_type
        bare = _bare_type(stored)
        return kind if bare is not None and bare.equals(stored, check_metadata=True) else None
    return None if pa.types.is_nested(kind) else kind


def _has_inner_categories(kind: pa.DataType) -> bool:
    children = [kind.field(i).type for i in range(kind.num_fields)]
    return any(pa.types.is_dictionary(each) or _has_inner_categories(each) for each in children)


def _masked_field(source: pa.Field, specs: Sequence[Spec]) -> pa.Field:
    """Return the field of a column after specs, which may make its cells missing."""
    if all(spec.keeps_dtypes and not spec.in_place for spec in specs):
        return _bare(source)
    return pa.field(
        source.name, _dtype_after(pd.ArrowDtype(source.type), source, specs).pyarrow_dtype
    )


def _dtype_after(dtype: Any, source: pa.Field, specs: Sequence[Spec]) -> Any:
    for spec in specs:
        dtype = spec.dtype_of(source.name, dtype)
    return dtype


# What pandas calls the types of columns; anything else in a footer is no type.
_PANDAS_TYPES = frozenset(
    [
        "bool",
        "bytes",
        "date",
        "datetime",
        "datetimetz",
        "decimal",
        "empty",
        "float16",
        "float32",
        "float64",
        "int8",
        "int16",
        "int32",
        "int64",
        "mixed",
        "object",
        "string",
        "time",
        "timedelta",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "unicode",
    ]
)


def _pandas_metadata(
    schema: pa.Schema, fields: list[pa.Field], specs: Mapping[str, Sequence[Spec]]
) -> dict[bytes, bytes] | None:
    """Return what tells pandas the dtypes of columns that are left, written anew.

    The attributes of a frame, its index, the numbers of its categories and whatever else a writer
    has put there are not released.
    """
    try:
        found = json.loads((schema.metadata or {})[b"pandas"])["columns"]
        given = {each["field_name"]: (each["pandas_type"], each["numpy_type"]) for each in found}
    except (KeyError, TypeError, ValueError):
        return None
    described = [
        _pandas_column(field, specs.get(field.name, []), *given[field.name])
        for field in fields
        if field.name in given
    ]
    clean = {
        "index_columns": [],
        "column_indexes": [],
        "columns": [each for each in described if each is not None],
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": pd.__version__,
    }
    return {b"pandas": json.dumps(clean).encode()}


def _pandas_column(
    field: pa.Field, specs: Sequence[Spec], kind: Any, dtype: Any
) -> dict[str, Any] | None:
    """Return what pandas reads of a column, or None if it is nothing that pandas knows."""
    if kind not in _PANDAS_TYPES:
        return None  # categories, which the type tells
    try:
        before = pd.api.types.pandas_dtype(dtype)
    except TypeError:
        return None
    after = _dtype_after(before, field, specs)
    name = str(after)
    if after != before:
        if isinstance(after, pd.CategoricalDtype):
            return None  # texts in the place of numbers, which are plain ones in files
        kind = name.lower()
    zone = field.type.tz if kind == "datetimetz" and pa.types.is_timestamp(field.type) else None
    return {
        "name": field.name,
        "field_name": field.name,
        "pandas_type": kind,
        "numpy_type": name,
        "metadata": zone and {"timezone": zone},
    }
