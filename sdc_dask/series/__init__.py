"""Time series: distances, forecasts, scales and layouts."""

from sdc_dask.series.distances import dtw, euclidean, slopes, sts
from sdc_dask.series.forecasts import MODELS, forecast
from sdc_dask.series.layouts import resample, to_long, to_wide
from sdc_dask.series.normalization import normalize

__all__ = [
    "MODELS",
    "dtw",
    "euclidean",
    "forecast",
    "normalize",
    "resample",
    "slopes",
    "sts",
    "to_long",
    "to_wide",
]
