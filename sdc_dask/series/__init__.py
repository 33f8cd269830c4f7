"""Time series: distances, forecasts, scales and layouts."""

from sdc_dask.series.distances import dtw, euclidean, slopes, sts
from sdc_dask.series.forecasts import MODELS, forecast
from sdc_dask.series.layouts import resample, series_columns, to_long, to_wide
from sdc_dask.series.normalization import normalize

__all__ = [
    "MODELS",
    "dtw",
    "euclidean",
    "forecast",
    "normalize",
    "resample",
    "series_columns",
    "slopes",
    "sts",
    "to_long",
    "to_wide",
]
