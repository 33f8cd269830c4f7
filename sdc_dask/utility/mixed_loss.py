"""Loss over columns of every kind: how far records are from their masked versions.

References
----------
J. C. Gower, "A general coefficient of similarity and some of its properties", Biometrics 27 (1971).
J. Podani, "Extending Gower's general coefficient of similarity to ordinal characters", Taxon 48
(1999).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.frames import Frame, map_reduce, meta_of
from sdc_dask.engine.mixed import PLAIN, Reading, Scale, extent_of, mixed_columns, scale_of
from sdc_dask.engine.pairs import pair_frames, pair_parts
from sdc_dask.kernels.exact import exact_sum
from sdc_dask.kernels.gower import pair_distances
from sdc_dask.results import Result

_UNIT = 1074  # exact sums count units of 2**-1074


@dataclass(frozen=True, repr=False)
class MixedLoss(Result):
    """How far records are from their masked versions, in columns of every kind."""

    loss: float = field(metadata={"note": "mean Gower distance, percent: lower is better"})
    unchanged: float = field(metadata={"note": "cells that kept their value, percent"})
    rows: int = field(metadata={"note": "records"})
    by_column: dict[Hashable, float]  # mean distance, percent
    changed: dict[Hashable, float]  # cells with another value, percent
    kinds: dict[Hashable, str]  # how values are compared

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each column."""
        return pd.DataFrame(
            {
                "column": list(self.by_column),
                "kind": list(self.kinds.values()),
                "loss": list(self.by_column.values()),
                "changed": list(self.changed.values()),
            }
        )


class _Sums(NamedTuple):
    rows: int
    distances: list[int]  # exact sums, by column
    changed: NDArray[np.int64]


def mixed_loss(
    original: Frame, masked: Frame, names: Sequence[Hashable], reading: Reading = PLAIN
) -> MixedLoss:
    """Measure the Gower distance between records and their masked versions, in two passes."""
    columns = mixed_columns(meta_of(original), meta_of(masked), names, reading)
    frames = pair_frames(original, masked, names)
    scale = scale_of(columns, extent_of(frames[0], columns))
    sums: _Sums = map_reduce(frames, _chunk, _merge, scale)
    ordered = [*scale.in_order, *scale.nominal]
    means = [100 * (each / (sums.rows << _UNIT)) for each in sums.distances]
    changed = (100 * sums.changed / sums.rows).tolist()
    place = [ordered.index(column) for column in columns]
    total = sum(sums.distances) / (sums.rows * len(columns) << _UNIT)
    cells = sums.rows * len(columns)
    return MixedLoss(
        100 * total,
        100 * (cells - int(sums.changed.sum())) / cells,
        sums.rows,
        {name: means[j] for name, j in zip(names, place, strict=True)},
        {name: changed[j] for name, j in zip(names, place, strict=True)},
        {column.name: column.kind for column in columns},
    )


def _chunk(original: pd.DataFrame, masked: pd.DataFrame, number: int, scale: Scale) -> _Sums:
    original, masked = pair_parts(original, masked, number)
    old, new = scale.points(original), scale.points(masked)
    nobody = np.zeros((len(original), 0), np.uint64)
    distances, changed = [], []
    for j in range(old.numbers.shape[1]):
        one, other = old.numbers[:, [j]], new.numbers[:, [j]]
        apart = pair_distances(one, nobody, nobody, other, nobody, nobody)
        distances.append(exact_sum(apart).total)
        changed.append(int((apart > 0).sum()))
    for j in range(old.first.shape[1]):
        differ = (old.first[:, j] != new.first[:, j]) | (old.second[:, j] != new.second[:, j])
        distances.append(int(differ.sum()) << _UNIT)
        changed.append(int(differ.sum()))
    return _Sums(len(original), distances, np.array(changed, np.int64))


def _merge(parts: list[_Sums]) -> _Sums:
    rows, distances, changed = zip(*parts, strict=True)
    sums = [sum(each) for each in zip(*distances, strict=True)]
    return _Sums(sum(rows), sums, np.sum(changed, axis=0))
