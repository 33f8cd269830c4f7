"""What a report shows of time series that were masked as a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sdc_dask.arguments import series_sets
from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcError
from sdc_dask.masking.series import SeriesMicroaggregation
from sdc_dask.masking.spec import Spec
from sdc_dask.risk.series_risk import SeriesRisk, series_risk
from sdc_dask.sampling import Sampling
from sdc_dask.utility.series_loss import SeriesLoss, series_loss


@dataclass(frozen=True)
class SeriesFigures:
    """What was lost of the series of a spec, and what is risked."""

    series: tuple[str, ...]  # as people name them
    loss: SeriesLoss | None
    risk: SeriesRisk | None
    notes: tuple[str, ...]  # what could not be measured, and why


def series_figures(
    original: Frame, masked: Frame, specs: Sequence[Spec], sampling: Sampling, *, risk: bool
) -> tuple[SeriesFigures, ...]:
    """Measure the series of all specs that mask some."""
    return tuple(
        _figures(original, masked, spec, sampling, risk=risk)
        for spec in specs
        if isinstance(spec, SeriesMicroaggregation)
    )


def _figures(
    original: Frame,
    masked: Frame,
    spec: SeriesMicroaggregation,
    sampling: Sampling,
    *,
    risk: bool,
) -> SeriesFigures:
    sets = series_sets(spec.series)
    named = tuple(
        f"{columns[0]} to {columns[-1]}" if name is None else str(name) for name, columns in sets
    )
    lost = risked = None
    notes = []
    try:
        lost = series_loss(original, masked, sets)
    except SdcError as error:
        notes.append(f"What was lost of series could not be measured: {error}")
    try:
        if risk:
            seed = None if sampling.size is None else sampling.entropy
            risked = series_risk(
                original, masked, sets, times=spec.times, sample=sampling.size, random_state=seed
            )
    except SdcError as error:
        notes.append(f"Links of series could not be measured: {error}")
    return SeriesFigures(named, lost, risked, tuple(notes))
