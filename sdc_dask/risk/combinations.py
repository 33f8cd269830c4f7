"""Rare combinations: the threshold rule over pairs, triples, ... of keys.

An intruder may know any few of the keys. A combination of values that occurs in fewer than k
records is unsafe, in whatever columns it is.

References
----------
A. Hundepool et al., *Statistical Disclosure Control*, Wiley, 2012, section 3.2; the mu-Argus manual
calls it the threshold rule over low-dimensional tables.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.frames import Calls, Frame
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.classes import ClassCounts
from sdc_dask.results import Result
from sdc_dask.risk.subsets import batches, count_all, count_subsets, key_names, subsets_of


@dataclass(frozen=True, repr=False)
class RareCombinations(Result):
    """Combinations of values that too few records have, by the columns that are combined.

    Tuples have an entry for each set of columns.
    """

    rows: int
    k: int
    keys: tuple[tuple[Hashable, ...], ...]
    combinations: tuple[int, ...]
    unsafe: tuple[int, ...]
    records: tuple[int, ...]
    smallest: tuple[int, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each set of columns."""
        return pd.DataFrame(
            {
                "keys": list(self.keys),
                "combinations": self.combinations,
                "unsafe": self.unsafe,
                "records": self.records,
                "smallest": self.smallest,
            }
        )

    def __repr__(self) -> str:
        """Show the table, and what its columns are."""
        lines = [f"RareCombinations of {self.rows:,} records, k = {self.k:,}"]
        table = self.to_frame()
        table["keys"] = [", ".join(map(str, each)) for each in self.keys]
        lines += [f"  {line}" for line in table.to_string(index=False).splitlines()]
        notes = {
            "combinations": "different ones of values in these columns",
            "unsafe": "those that fewer than k records have: 0 is safe",
            "records": "records that have one of them",
            "smallest": "records of the rarest one",
        }
        return "\n".join([*lines, *(f"  {name:<12} {note}" for name, note in notes.items())])


def rare_combinations(
    frame: Frame, keys: Sequence[Hashable], k: int, *, size: int | Sequence[int] = 2
) -> RareCombinations:
    """Count the combinations of values of every few keys that fewer than k records have."""
    names = key_names(frame, keys)
    k = arguments.whole_number(k, "k", 1)
    subsets = subsets_of(len(names), _sizes(size, len(names)))
    census = count_all(frame, names)
    call = Calls.of(frame)
    found = []
    for batch in batches(subsets, census):
        ranges = [call(_summary_of, each, k) for each in count_subsets(frame, names, batch)]
        found.append(call.compute(call.merge(ranges, _merge)))
    table = np.concatenate(found)
    return RareCombinations(
        census.rows,
        k,
        tuple(tuple(names[j] for j in subset) for subset in subsets),
        *(tuple(each) for each in table.T.tolist()),
    )


def _sizes(size: Any, columns: int) -> list[int]:
    if isinstance(size, str):
        raise SdcTypeError("size must be a whole number, or a list of them, received a text.")
    sizes = [arguments.whole_number(each, "size", 1) for each in arguments.name_list(size, "size")]
    if not sizes:
        raise SdcValueError("size is empty: say how many keys are combined, for instance 2.")
    if max(sizes) > columns:
        raise SdcValueError(
            f"size must be at most the number of keys, {columns}, received {max(sizes)}."
        )
    return sizes


def _summary_of(counts: list[ClassCounts], k: int) -> NDArray[np.int64]:
    """Return a row for each subset: classes, those below k, their records, the smallest."""
    rows = np.empty((len(counts), 4), np.int64)
    for row, each in zip(rows, counts, strict=True):
        below = each.counts[each.counts < k]
        row[:] = (
            len(each.counts),
            len(below),
            below.sum(),
            each.counts.min(initial=np.iinfo(np.int64).max),
        )
    return rows


def _merge(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    merged = np.sum(parts, axis=0)
    merged[:, 3] = np.min([part[:, 3] for part in parts], axis=0)
    return merged
