"""Original and masked records as intruders meet them: paired, scanned and drawn once.

All attacks and measures of a call share it, so that the number of passes over the frames does not
depend on how many sets of columns intruders know.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.engine.columns import to_float
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.moments import CoMoments, co_moments
from sdc_dask.engine.pairs import pair_frames, pair_parts
from sdc_dask.engine.scan import Scan, merge_scans, scan_partition
from sdc_dask.engine.strata import StrataRule
from sdc_dask.errors import SdcValueError
from sdc_dask.sampling import Sampling, tried_of

ONE_STRATUM = StrataRule(())

Values = tuple[NDArray[np.float64], NDArray[np.float64]]  # of original and masked records


@dataclass(frozen=True)
class Encounter:
    """Two frames with the same rows, and which of them an intruder tries.

    Attributes
    ----------
    original, masked : pandas or Dask DataFrame
        That can be walked side by side.
    columns : tuple
        That are compared.
    before, after : Scan
        Of the original and of the masked frame.
    tried : ndarray of int64
        Row numbers, in order.
    """

    original: Frame
    masked: Frame
    columns: tuple[Hashable, ...]
    before: Scan
    after: Scan
    tried: NDArray[np.int64]

    @classmethod
    def of(
        cls, original: Frame, masked: Frame, columns: Sequence[Hashable], sampling: Sampling
    ) -> Encounter:
        """Pair and scan two frames, in one pass over both, and choose the rows to try."""
        names = tuple(columns)
        frames = pair_frames(original, masked, names)
        before, after = map_reduce(frames, _scan, _merge, list(names))
        return cls(*frames, names, before, after, sampling.rows(before.n))

    @property
    def n(self) -> int:
        """Number of records."""
        return self.before.n

    @property
    def sampled(self) -> bool:
        """Whether not all records are tried."""
        return len(self.tried) < self.n

    @property
    def note(self) -> str:
        """How many records are tried, in words."""
        return tried_of(len(self.tried), self.n)

    def check(self) -> None:
        """Raise ValueError unless all records can be linked."""
        if self.n == 0:
            raise SdcValueError("the frames have no records: there is nothing to link.")
        for found, which in ((self.before, "original"), (self.after, "masked")):
            try:
                found.check(
                    advice=", in both frames, for instance with ok = df.notna().all(axis=1); or "
                    "name other columns"
                )
            except ValueError as error:
                raise SdcValueError(f"the {which} frame has {error}") from None

    def places(self, columns: Sequence[Hashable]) -> list[int]:
        """Return where columns are among all that are compared."""
        return [self.columns.index(column) for column in columns]

    @cached_property
    def drawn(self) -> Values:
        """The values of the rows that are tried, original and masked: one pass over both."""
        borders = np.cumsum([0, *self.before.rows])
        local = [
            self.tried[slice(*np.searchsorted(self.tried, borders[p : p + 2]))] - borders[p]
            for p in range(len(self.before.rows))
        ]
        return map_reduce(
            [self.original, self.masked],
            _take,
            _stack,
            list(self.columns),
            self.before.rows,
            local,
        )

    @cached_property
    def moments(self) -> CoMoments:
        """Exact sums of products of the original's columns: one pass over it."""
        return co_moments(self.original, self.columns)


def _scan(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: list[Hashable]
) -> tuple[Scan, Scan]:
    original, masked = pair_parts(original, masked, number)
    return (
        scan_partition(original, number, columns, []),
        scan_partition(masked, number, columns, [ONE_STRATUM]),
    )


def _merge(parts: list[tuple[Scan, Scan]]) -> tuple[Scan, Scan]:
    before, after = zip(*parts, strict=True)
    return merge_scans(list(before)), merge_scans(list(after))


def _take(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    columns: list[Hashable],
    rows: Sequence[int],
    local: list[NDArray[np.int64]],
) -> Values:
    original, masked = pair_parts(original, masked, number)
    if len(original) != rows[number]:
        raise SdcValueError(
            f"partition {number} has other rows than when it was first read: the frame gives "
            "something else each time it is computed. Write it out, or persist it, first."
        )
    picked = local[number]
    return to_float(original.iloc[picked], columns), to_float(masked.iloc[picked], columns)


def _stack(parts: list[Values]) -> Values:
    old, new = zip(*parts, strict=True)
    return np.concatenate(old), np.concatenate(new)
