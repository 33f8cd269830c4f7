"""Names of Dask that are not public, in one place: how a lazy frame stands for its partitions.

Dask keeps a frame as an expression, and offers no public way to add one. A version of Dask that has
changed these names is refused when this package is imported, not when a frame is masked.
"""

from __future__ import annotations

from typing import Any

import dask
import pandas as pd

from sdc_dask.engine.batches import ADDRESS
from sdc_dask.errors import SdcImportError

try:
    from dask.dataframe.dask_expr import new_collection
    from dask.dataframe.dask_expr._expr import Expr
    from dask.dataframe.dask_expr._shuffle import Shuffle
except ImportError as error:
    raise SdcImportError(
        f"Dask {dask.__version__} has changed {error.name}, with which this version of sdc-dask "
        "builds lazy frames: install another version of one of them."
    ) from None


def meta(frame: Any) -> pd.DataFrame:
    """Return an empty pandas frame with the columns, dtypes and index of a Dask frame."""
    return frame._meta


def simplified(frame: Any) -> Any:
    """Return a Dask frame whose projections and filters are pushed down, and no more than that."""
    return frame.simplify()


def shuffled(frame: Any, npartitions: int, method: str) -> Any:
    """Return a frame whose rows are in the partitions that its column ADDRESS has the numbers of.

    What is public hashes them (``shuffle``), or takes twice as long to look them up (``set_index``
    with divisions).
    """
    return new_collection(
        Shuffle(frame.expr, ADDRESS, npartitions, ignore_index=True, method=method)
    )


def reading(made: Any, source: Any) -> Any:
    """Return a frame of delayed partitions that is known to read another frame.

    Dask looks through expressions for files that are read before it overwrites them, and cannot
    see into delayed partitions.
    """
    return new_collection(_StillReads(made.expr, source.expr))


class _StillReads(Expr):
    """A frame of delayed partitions, and the one that these read when they are computed.

    Nothing else is done with the source.
    """

    _parameters = ["frame", "source"]  # noqa: RUF012 - Dask declares it so

    @property
    def _meta(self) -> pd.DataFrame:
        return self.frame._meta

    def _divisions(self) -> tuple:
        return self.frame._divisions()

    def _simplify_down(self) -> Expr:
        return self.frame

    def _lower(self) -> Expr:
        return self.frame
