"""Columns of categories: those that no record has are not released, and ordered ones keep order."""

from __future__ import annotations

import graphlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sdc_dask.errors import SdcValueError


def pruned(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Leave out categories that no record has; the others keep their order."""
    coded = _one_array(column)
    used = np.unique(coded.indices.drop_null().to_numpy(zero_copy_only=False))
    place = np.zeros(len(coded.dictionary) + 1, np.int64)
    place[used] = np.arange(len(used))
    missing = coded.is_null().to_numpy(zero_copy_only=False)
    old = coded.indices.fill_null(0).to_numpy(zero_copy_only=False)
    indices = pa.array(place[old], coded.type.index_type, mask=missing)
    return pa.DictionaryArray.from_arrays(
        indices, coded.dictionary.take(pa.array(used, pa.int64())), ordered=coded.type.ordered
    )


def plain(table: pa.Table) -> pa.Table:
    """Return a table with values in the place of categories."""
    for position, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = table.column(position).cast(field.type.value_type)
            table = table.set_column(position, field.name, values)
    return table


@dataclass(frozen=True)
class Order:
    """Ordered categories of a column, some of which records have."""

    values: pa.Array  # those that no record has say where others stand that are in other pieces
    used: pa.Array


def orders_of(table: pa.Table, columns: Sequence[str]) -> dict[str, Order]:
    """Return the ordered categories of some columns of a table."""
    kinds = {name: table.schema.field(name).type for name in columns}
    coded = {
        name: _one_array(table.column(name))
        for name, kind in kinds.items()
        if pa.types.is_dictionary(kind) and kind.ordered
    }
    return {name: Order(each.dictionary, pruned(each).dictionary) for name, each in coded.items()}


def merged_orders(parts: Sequence[Mapping[str, Order]]) -> dict[str, pa.Array]:
    """Return for each column one order of categories that is in line with those of all pieces.

    Those that no record of any piece has are not in it.
    """
    merged = {}
    for name in parts[0]:
        after: graphlib.TopologicalSorter[object] = graphlib.TopologicalSorter()
        # In the order of pieces: a set of texts has another order in each process.
        for values in dict.fromkeys(tuple(part[name].values.to_pylist()) for part in parts):
            for position, value in enumerate(values):
                after.add(value, *values[max(0, position - 1) : position])
        try:
            order = list(after.static_order())
        except graphlib.CycleError:
            # The text of the error shows values.
            raise SdcValueError(
                f"column {name!r} has ordered categories, and their order is not the same in all "
                "files of the source: write them in one order, or as plain texts."
            ) from None
        used = {value for part in parts for value in part[name].used.to_pylist()}
        kind = parts[0][name].values.type
        merged[name] = pa.array([value for value in order if value in used], kind)
    return merged


def in_order(rows: pa.Table, schema: pa.Schema, orders: Mapping[str, pa.Array]) -> pa.Table:
    """Return plain rows in the types of a schema.

    Ordered categories are those of all files in each, so that readers of several see one order.
    """
    columns = []
    for field in schema:
        column = rows.column(field.name)
        if pa.types.is_dictionary(field.type):
            values = _one_array(column)
            if field.name in orders:
                order = orders[field.name]
                indices = pc.index_in(values, order).cast(field.type.index_type)
                column = pa.DictionaryArray.from_arrays(indices, order, ordered=True)
            else:
                column = values.dictionary_encode().cast(field.type)
        columns.append(column)
    return pa.table(columns, schema=schema)


def _one_array(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    """Return a column as one array, whose categories are those of all its parts."""
    if not isinstance(column, pa.ChunkedArray):
        return column
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
