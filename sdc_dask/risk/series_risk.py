"""Disclosure risk of masked time series: linkage by values and by slopes, and near values.

J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
Universitat Autònoma de Barcelona, section 6.3.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from sdc_dask import arguments
from sdc_dask.arguments import SeriesSets
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.pairs import pair_values
from sdc_dask.engine.space import series_space
from sdc_dask.results import Result
from sdc_dask.risk.attacks.distance import View, link_views
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.linkage import mean_of
from sdc_dask.sampling import Sampling

PERCENTAGES = tuple(range(1, 11))  # of a masked value, to both sides of it


@dataclass(frozen=True, repr=False)
class SeriesRisk(Result):
    """Percentages of what intruders find out about series: 0 is safe, 100 is everything."""

    dr: float = field(metadata={"note": "0.25 euld + 0.25 stsld + 0.5 interval: lower is safer"})
    euld: float = field(metadata={"note": "right links by euclidean distance, percent"})
    stsld: float = field(metadata={"note": "right links by slopes, percent"})
    interval: float = field(metadata={"note": "values within 1 to 10% of the masked ones, percent"})
    tried: int = field(metadata={"note": "records that were linked, per attack"})
    euld_low: float = field(metadata={"note": "95% confidence interval of euld"})
    euld_high: float = field(metadata={"note": "its upper end"})
    stsld_low: float = field(metadata={"note": "95% confidence interval of stsld"})
    stsld_high: float = field(metadata={"note": "its upper end"})
    strongest: str = field(metadata={"note": ""})  # the attack with the most right links
    linked: float = field(metadata={"note": "its right links, percent"})
    known: str = field(metadata={"note": ""})  # what the intruder knew
    note: str = field(metadata={"note": ""})


def series_risk(
    original: Frame,
    masked: Frame,
    series: SeriesSets,
    *,
    times: Any = None,
    sample: Any = "auto",
    random_state: Any = None,
) -> SeriesRisk:
    """Let intruders link series who know the first of them, the first two, and so on."""
    sampling = Sampling.of(sample, random_state)
    checked = arguments.time_stamps(times, series.columns)
    columns = [name for each in series.columns for name in each]
    encounter = Encounter.of(original, masked, columns, sampling)
    encounter.check()
    views = [*_views(encounter, series), *_views(encounter, series, slopes=True, times=checked)]
    found = link_views(encounter, views, "series")
    euclidean, slopes = mean_of(found[: len(series)]), mean_of(found[len(series) :])
    near = map_reduce([encounter.original, encounter.masked], _near, sum, columns)
    interval = 100 * near / (encounter.n * len(columns) * len(PERCENTAGES))
    links = {"euclidean distance": euclidean, "short time series distance": slopes}
    strongest = max(links, key=lambda name: links[name].rate)
    remarks = dict.fromkeys([encounter.note, *euclidean.remarks, *slopes.remarks])
    remarks.pop(f"mean of {len(series)} attacks", None)
    count = len(series)
    return SeriesRisk(
        0.25 * euclidean.rate + 0.25 * slopes.rate + 0.5 * interval,
        euclidean.rate,
        slopes.rate,
        interval,
        euclidean.tried,
        euclidean.low,
        euclidean.high,
        slopes.low,
        slopes.high,
        strongest,
        links[strongest].rate,
        "the series" if count == 1 else f"the first series, the first 2, ... all {count}, in turn",
        "; ".join(remarks),
    )


def _views(
    encounter: Encounter,
    series: SeriesSets,
    *,
    slopes: bool = False,
    times: Sequence[float] | None = None,
) -> list[View]:
    """Return what intruders see who know the first series, the first two, and so on."""
    views = []
    for known in range(1, len(series) + 1):
        sets = series.columns[:known]
        space = series_space(encounter.before, sets, slopes=slopes, times=times)
        views.append(View(tuple(name for each in sets for name in each), space))
    return views


def _near(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: list[Hashable]
) -> int:
    """Count the values in intervals around their masked ones, over all widths."""
    old, new = pair_values(original, masked, number, columns)
    difference, width = np.abs(old - new), np.abs(new)
    return sum(int((difference <= percent / 100 * width).sum()) for percent in PERCENTAGES)
