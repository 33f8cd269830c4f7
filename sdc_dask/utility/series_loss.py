"""Information loss of masked time series: means, autocorrelations, values and forecasts.

J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, section 6.2.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask.arguments import SeriesSets
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.pairs import pair_frames, pair_values
from sdc_dask.errors import SdcValueError
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.results import Result
from sdc_dask.series.forecasts import MODELS, forecast

AHEAD = 3  # points that are forecast
_SHIFTS = 4  # autocorrelations at 0, 1/4, 1/2 and 3/4 of the length

Array = NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class SeriesLoss(Result):
    """Mean variations in percent: 0 is nothing lost, 100 is everything."""

    il: float = field(metadata={"note": "mean of il1, il2 and il3: lower is better"})
    il1: float = field(metadata={"note": "mean of the next two"})
    il1_mean: float = field(metadata={"note": "variation of the means of series"})
    il1_autocorrelation: float = field(metadata={"note": "of their autocorrelations"})
    il2: float = field(metadata={"note": "variation of single values"})
    il3: float = field(metadata={"note": f"of forecasts, {AHEAD} points ahead"})
    forecasts: dict[str, float]  # il3 by model
    rows: int = field(metadata={"note": "records"})
    series: int = field(metadata={"note": "series per record"})


def series_loss(original: Frame, masked: Frame, series: SeriesSets) -> SeriesLoss:
    """Compare the series of two frames with the same rows, in one pass over both.

    Parameters
    ----------
    original, masked : pandas or Dask DataFrame
    series : SeriesSets
    """
    columns = [name for each in series.columns for name in each]
    frames = pair_frames(original, masked, columns)
    sums = map_reduce(frames, _chunk, _merge, series.columns)
    if not sums["values"].n:
        raise SdcValueError("the frames have no records: there is nothing to compare.")
    percent = {name: 100 * each.mean for name, each in sums.items()}
    shifts = [percent[f"shift {shift}"] for shift in range(_SHIFTS)]
    forecasts = {model: percent[model] for model in MODELS}
    il1_mean, il1_autocorrelation = percent["means"], sum(shifts) / _SHIFTS
    il1 = (il1_mean + il1_autocorrelation) / 2
    il2, il3 = percent["values"], sum(forecasts.values()) / len(forecasts)
    return SeriesLoss(
        (il1 + il2 + il3) / 3,
        il1,
        il1_mean,
        il1_autocorrelation,
        il2,
        il3,
        forecasts,
        sums["means"].n // len(series),
        len(series),
    )


def variation(one: Array, other: Array) -> Array:
    """Return differences over the larger of two absolute values: 0 for equal ones, 1 at most.

    Where both are 0 there is none; where signs differ it is 1, since nothing of the value is left.

    Examples
    --------
    >>> variation(np.array([10.0, 0.0, -2.0]), np.array([8.0, 0.0, 2.0]))
    array([0.2, 0. , 1. ])
    """
    larger = np.maximum(np.abs(one), np.abs(other))
    safe = np.where((larger > 0) & np.isfinite(larger), larger, 1.0)
    # Halves: a difference of large values may exceed float64, as forecasts themselves may.
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.fmin(2 * np.abs(one / safe / 2 - other / safe / 2), 1.0)
    return np.where(one == other, 0.0, found)


def _chunk(
    original: pd.DataFrame,
    masked: pd.DataFrame,
    number: int,
    sets: tuple[tuple[Hashable, ...], ...],
) -> dict[str, ExactSum]:
    parts = []
    for columns in sets:
        old, new = pair_values(original, masked, number, columns)
        missing = int(np.isnan(old).sum())
        if missing:
            raise SdcValueError(
                f"{missing} values of series in partition {number} are missing, in both frames: a "
                "series with gaps has no forecast. Fill them, or drop those records in both."
            )
        parts.append(_variations(old, new))
    return {
        name: sum((exact_sum(part[name].ravel()) for part in parts), ExactSum())
        for name in parts[0]
    }


def _merge(parts: list[dict[str, ExactSum]]) -> dict[str, ExactSum]:
    return {name: sum((part[name] for part in parts), ExactSum()) for name in parts[0]}


def _variations(old: Array, new: Array) -> dict[str, Array]:
    means = [_mean(each) for each in (old, new)]
    found = {"values": variation(old, new), "means": variation(*means)}
    centred = [each - mean[:, None] for each, mean in zip((old, new), means, strict=True)]
    length = old.shape[1]
    for shift in range(_SHIFTS):
        pair = [_autocovariance(each, shift * length // _SHIFTS) for each in centred]
        found[f"shift {shift}"] = variation(*pair)
    for model in MODELS:
        found[model] = variation(*(forecast(each, model, steps=AHEAD) for each in (old, new)))
    return found


def _mean(values: Array) -> Array:
    # Column by column: a row's sum must not depend on how many rows there are.
    total = np.zeros(len(values))
    for j in range(values.shape[1]):
        total += values[:, j]
    return total / values.shape[1]


def _autocovariance(centred: Array, shift: int) -> Array:
    length = centred.shape[1]
    return _mean(centred[:, : length - shift] * centred[:, shift:]) * (length - shift) / length
