"""Routed rows on their way to the partitions of their keys, through files or from task to task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

from sdc_dask.engine.batch_files import BatchFile, TableFile, WordFile
from sdc_dask.errors import SdcRuntimeError
from sdc_dask.kernels.borders import count_below
from sdc_dask.kernels.receivers import by_receiver, taken

# A column of routed rows: the number of the partition that they go to. Dask takes the values of
# this name as they are, and hashes those of any other.
ADDRESS = "_partitions"


def send_numbers(
    key: NDArray[np.int64], values: NDArray[np.float64], path: str, divisions: Sequence[int]
) -> BatchFile:
    """Write keys and numbers as :func:`send` writes them, without a frame and the copy in it."""
    return WordFile.write(path, [key, values], _receivers(key, divisions))


def send(routed: pd.DataFrame, path: str, divisions: Sequence[int]) -> BatchFile:
    """Write routed rows for the partitions that their keys are of, by known divisions."""
    receivers = _receivers(routed["key"].to_numpy(), divisions)
    if _are_words(routed):
        key, values = routed["key"].to_numpy(), routed.drop(columns="key")
        alike = values.dtypes.nunique() == 1
        columns = [values.to_numpy()] if alike else [each.to_numpy() for _, each in values.items()]
        return WordFile.write(path, [key, *columns], receivers)
    arrays = [
        # As they are: a number that is none is not a missing cell here.
        pa.array(column.to_numpy() if isinstance(column.dtype, np.dtype) else column)
        for _, column in routed.items()
    ]
    return TableFile.write(path, pa.table(arrays, list(routed.columns)), receivers)


def receive(files: Sequence[BatchFile], number: int, meta: pd.DataFrame) -> pd.DataFrame:
    """Read the rows that came to a partition, sorted by their key, which becomes the index.

    `meta` is an empty frame with the columns that were sent, the key in front.
    """
    found = words_of(files, number)
    if found is None:
        of_numpy = all(isinstance(dtype, np.dtype) for dtype in meta.dtypes)
        dtype_of = None if of_numpy else pd.ArrowDtype
        key, values = table_of(files, number, schema_of(files), dtype_of)
        order = np.argsort(key)
        return values.take(order).set_axis(pd.Index(key[order], name="key"), axis="index")
    words, dtypes = found
    words = taken(words, np.argsort(words[:, 0].view(np.int64)))
    index = pd.Index(words[:, 0].astype(np.int64), name="key")
    names, dtypes = list(meta.columns[1:]), dtypes[1:]
    if len(set(dtypes)) == 1:
        return pd.DataFrame(words[:, 1:].view(dtypes[0]), index, names, copy=False)
    columns = {
        name: np.ascontiguousarray(words[:, j]).view(dtype)
        for j, (name, dtype) in enumerate(zip(names, dtypes, strict=True), 1)
    }
    return pd.DataFrame(columns, index, copy=False)


def words_of(
    files: Sequence[BatchFile], number: int
) -> tuple[NDArray[np.uint64], list[np.dtype]] | None:
    """Return the rows of a receiver in files of words, and the dtypes of their columns.

    None if these files are of tables.
    """
    of_words = [file for file in files if isinstance(file, WordFile)]
    if not of_words:
        return None
    kinds = of_words[0].kinds
    if len(of_words) < len(files) or any(file.kinds != kinds for file in of_words):
        raise SdcRuntimeError(
            "routed columns have not the same dtypes in all partitions: cast them first."
        )
    words = np.concatenate([file.read(number) for file in of_words])
    return words, [np.dtype(kind) for kind in kinds]


def schema_of(files: Sequence[BatchFile]) -> pa.Schema | None:
    """Return the schema of files of tables, which all of them have; None for words."""
    return files[0].schema if isinstance(files[0], TableFile) else None


def table_of(
    files: Sequence[BatchFile],
    number: int,
    schema: pa.Schema,
    dtype_of: Callable[[pa.DataType], Any] | None,
) -> tuple[NDArray[np.int64], pd.DataFrame]:
    """Return the column "key" of all rows of a receiver in files of tables, and other columns.

    Parameters
    ----------
    files : sequence of TableFile
        Of all senders.
    number : int
        The receiver.
    schema : pyarrow.Schema
        Of the files.
    dtype_of : callable, optional
        From types of Arrow to dtypes of pandas; by default numbers are those of numpy.
    """
    tables = [file for file in files if isinstance(file, TableFile)]
    batches = [batch for file in tables for batch in file.read(number, schema)]
    table = pa.Table.from_batches(batches, schema)
    values = table.drop_columns("key").to_pandas(types_mapper=dtype_of, ignore_metadata=True)
    return table.column("key").to_numpy(), values


def addressed_by_key(routed: pd.DataFrame, divisions: NDArray[np.int64]) -> pd.DataFrame:
    """Return routed rows with the number of the partition that each goes to, by its key."""
    return routed.assign(**{ADDRESS: _receivers(routed["key"].to_numpy(), divisions)})


def cut_by_key(
    routed: pd.DataFrame, divisions: Sequence[int], expected: Sequence[int]
) -> dict[int, pd.DataFrame]:
    """Return the routed rows of each partition that may get some, by known divisions."""
    receivers = _receivers(routed["key"].to_numpy(), divisions)
    order, begins = by_receiver(receivers, len(divisions) - 1)
    by_partition = routed.take(order)
    if sum(int(begins[number + 1] - begins[number]) for number in expected) < len(routed):
        raise SdcRuntimeError("rows have keys of partitions that expect none: they would be lost.")
    # Copies: a slice would hold the rows of all.
    return {n: by_partition.iloc[begins[n] : begins[n + 1]].copy() for n in expected}


def put_together(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows that came to a partition, sorted by their key, which becomes the index."""
    return sorted_by_key(pd.concat(parts, ignore_index=True))


def sorted_by_key(routed: pd.DataFrame) -> pd.DataFrame:
    """Return rows sorted by their key, which becomes the index, without an address."""
    key = routed["key"].to_numpy()
    order = np.argsort(key)
    others = routed.drop(columns=["key", ADDRESS], errors="ignore")
    return others.take(order).set_axis(pd.Index(key[order], name="key"), axis="index")


def _receivers(
    key: NDArray[np.int64], divisions: Sequence[int] | NDArray[np.int64]
) -> NDArray[np.int64]:
    """Return the partitions that the keys of rows are of."""
    receivers = count_below(np.asarray(divisions), key + 1) - 1
    if ((receivers < 0) | (receivers >= len(divisions) - 1)).any():
        raise SdcRuntimeError("rows have keys beyond all partitions: they would be lost.")
    return receivers


def _are_words(routed: pd.DataFrame) -> bool:
    """Whether all columns are numbers of numpy with 64 bits."""
    return all(
        isinstance(dtype, np.dtype) and dtype.kind in "iuf" and dtype.itemsize == 8
        for dtype in routed.dtypes
    )
