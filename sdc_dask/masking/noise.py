"""Additive noise: numbers become others near them, by chance."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.special import ndtri

from sdc_dask import arguments
from sdc_dask.engine.columns import (
    check_numeric,
    masked_array,
    masked_dtype,
    same_array,
    to_float,
)
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.in_place import Change, Rows
from sdc_dask.engine.moments import co_moments
from sdc_dask.engine.scan import scan
from sdc_dask.errors import FractionAdvice, SdcValueError, warn
from sdc_dask.kernels.draws import row_uniforms
from sdc_dask.masking.spec import Spec, needed, option

_STREAM = 0

LARGE = 10  # deviations of noise that nobody wants: a percentage, most likely


@dataclass(frozen=True, repr=False)
class Noise(Spec):
    """Add normally distributed noise to numbers: no k is promised.

    Parameters
    ----------
    columns : list
        Numeric columns.
    sd : float
        Deviation of the noise, as a share of the deviation of each column: 0.1 is a tenth.
    correlated : bool, default False
        Whether noise of several columns is correlated as the columns are: its covariances are
        `sd` squared times theirs, so that correlations stay. Takes columns without missing cells.
    missing_values : list of numbers, optional
        That stand for missing cells, such as -9 or 9999. These are missing in what is masked, as
        all missing cells are, and have no part in the deviation. Measures compare it with a frame
        in which they are missing.
    whole : bool, default False
        Whether numbers are rounded in columns of integers, which then keep their dtype; otherwise
        these become floats.

    Examples
    --------
    >>> import sdc_dask
    >>> df = sdc_dask.datasets.uniform(1_000, 2).compute()
    >>> noisy = df.sdc.mask(sdc_dask.Noise(["x0", "x1"], sd=0.1), random_state=1)
    >>> round(float((noisy - df)["x0"].std() / df["x0"].std()), 1)
    0.1
    """

    kind: ClassVar[str] = "noise"
    draws: ClassVar[bool] = True
    in_place: ClassVar[bool] = True
    by: ClassVar[tuple[Hashable, ...]] = ()  # type: ignore[misc]

    columns: Any = needed("numeric columns to mask")
    sd: float = needed("deviation of the noise, as a share of the column's")
    _: KW_ONLY
    correlated: bool = option(False, "correlate the noise of columns as these are")
    missing_values: Any = option(None, "numbers that stand for missing cells, such as -9")
    whole: bool = option(False, "round in columns of integers, which stay integers")

    def __post_init__(self) -> None:
        kept: dict[str, Any] = {
            "columns": arguments.column_list(self.columns),
            "sd": arguments.number(self.sd, "sd", 0.0),
            "correlated": arguments.flag(self.correlated, "correlated"),
            "missing_values": arguments.codes(self.missing_values, "missing_values"),
            "whole": arguments.flag(self.whole, "whole"),
        }
        if kept["sd"] == 0:
            raise SdcValueError("sd must be above 0, received 0: no noise masks nothing.")
        if kept["correlated"] and len(kept["columns"]) < 2:
            raise SdcValueError(
                "correlated has no meaning for a single column: leave it out, or name several."
            )
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns that noise is added to."""
        return (self.columns,)

    def describe(self) -> str:
        """Return a few words for people."""
        how = "correlated noise" if self.correlated else "noise"
        return f"{how}, {self.sd:g} of the columns' deviations"

    def dtype_of(self, column: Hashable, dtype: Any) -> Any:
        """Return the dtype of a masked column: integers stay if they are rounded."""
        return dtype if self.whole else masked_dtype(dtype)

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and these are numbers."""
        meta = arguments.unique_columns(frame)
        arguments.existing(meta, self.columns, "columns")
        check_numeric(meta, self.columns)
        is_whole = [pd.api.types.is_integer_dtype(meta[name].dtype) for name in self.columns]
        if self.whole and not any(is_whole):
            raise SdcValueError(
                "whole has no meaning for columns of which none has integers: leave it out."
            )

    def plan(self, frame: Frame, entropy: int) -> list[Change]:
        """Scan the columns, whose deviations the noise depends on."""
        scanned = scan(frame, self.columns, [])
        if scanned.n == 0:
            raise SdcValueError("the frame has no records: there is nothing to mask.")
        scanned.check("error" if self.correlated else "keep", ", or use correlated=False")
        scanned.advise(averaged=False)
        if self.sd >= LARGE:
            warn(
                f"sd={self.sd:g} is a share of the columns' deviations, so that noise hides all "
                f"else. If a percentage was meant, pass sd={self.sd / 100:g}.",
                FractionAdvice,
            )
        deviations = [each.deviation for each in scanned.sums(self.columns).values()]
        constant = [
            name for name, each in zip(self.columns, deviations, strict=True) if not each > 0
        ]
        if constant:
            raise SdcValueError(
                f"columns of a single value: {arguments.listed(constant)}. Noise is a share of a "
                "column's deviation, and there is none: leave them out."
            )
        root = np.diag(deviations)
        if self.correlated:
            root = _root(co_moments(frame, self.columns).correlation()) * root.diagonal()[:, None]
        with np.errstate(over="ignore"):
            root = self.sd * root
        large = [
            name for name, row in zip(self.columns, root, strict=True) if not np.isfinite(row).all()
        ]
        if large:
            raise SdcValueError(
                f"noise of sd={self.sd:g} deviations is beyond what float64 holds in columns: "
                f"{arguments.listed(large)}. Divide their values, or pass a smaller sd."
            )
        return [AddNoise(self, Rows(scanned.rows), root, entropy)]


def _root(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the lower triangle whose square a positive semidefinite matrix is (Cholesky).

    A column that follows from those before it has no noise of its own. Sums are added up in one
    order, whatever the machine.
    """
    root = np.zeros_like(matrix)
    for j in range(len(matrix)):
        for i in range(j, len(matrix)):
            rest = float(matrix[i, j])
            for each in range(j):
                rest -= float(root[i, each]) * float(root[j, each])
            if i == j:
                root[j, j] = np.sqrt(rest) if rest > 1e-12 else 0.0
            elif root[j, j]:
                root[i, j] = rest / float(root[j, j])
    return root


@dataclass(frozen=True)
class AddNoise(Change):
    """Adds noise, which depends on the number of a row."""

    spec: Noise
    rows: Rows
    root: NDArray[np.float64]  # rows are columns of the frame, and columns what is drawn
    entropy: int = field(repr=False)

    @property
    def columns(self) -> tuple[Hashable, ...]:
        """Columns that noise is added to."""
        return self.spec.columns

    @property
    def deviations(self) -> dict[Hashable, float]:
        """The deviation of the noise of each column."""
        return {
            column: math.hypot(*row) for column, row in zip(self.columns, self.root, strict=True)
        }

    def arrays(self, part: pd.DataFrame, number: int) -> dict[Hashable, Any]:
        """Return the masked numbers of a partition."""
        width = len(self.columns)
        first = self.rows.first(part, number)
        drawn = ndtri(row_uniforms(self.entropy, _STREAM, first, len(part), width))
        masked = to_float(part, self.columns)
        with np.errstate(over="ignore", invalid="ignore"):  # an error below says where
            for i in range(width):
                for j in range(i + 1):
                    if self.root[i, j]:
                        masked[:, i] += self.root[i, j] * drawn[:, j]
            return {
                column: self._array(part[[column]], masked[:, [i]])
                for i, column in enumerate(self.columns)
            }

    def _array(self, before: pd.DataFrame, masked: NDArray[np.float64]) -> Any:
        (column,), (dtype,) = before.columns, before.dtypes
        is_whole = self.spec.whole and pd.api.types.is_integer_dtype(dtype)
        if is_whole:
            masked = np.rint(masked)
            low, high = _range_of(dtype)
            if ((masked < low) | (masked > high)).any():
                raise SdcValueError(
                    f"values of column {column!r} are beyond what {dtype} holds when "
                    "noise is added: cast it to a wider or signed type first, or leave out whole."
                )
            return same_array(masked[:, 0], dtype)
        made = masked_array(masked[:, 0], masked_dtype(dtype))
        if np.isinf(to_float(pd.DataFrame({column: made}), [column])).any():
            raise SdcValueError(
                f"values of column {column!r} are beyond what {masked_dtype(dtype)} holds "
                "when noise is added: cast it to a wider type first, or divide its values."
            )
        return made


def _range_of(dtype: Any) -> tuple[float, float]:
    """Return the smallest and largest whole numbers of a dtype that float64 holds exactly."""
    plain = dtype.numpy_dtype if not isinstance(dtype, np.dtype) else dtype
    limits = np.iinfo(plain)
    return max(float(limits.min), -(2.0**53)), min(float(limits.max), 2.0**53)
