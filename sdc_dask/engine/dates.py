"""Dates and times as integers: ticks, days of a time zone, and what a local clock shows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from numpy.typing import NDArray

NANOSECONDS = {"D": 86_400 * 10**9, "s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}


def is_date(dtype: Any) -> bool:
    """Whether a dtype holds dates, or times of dates."""
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        return pa.types.is_timestamp(arrow) or pa.types.is_date(arrow)
    numpy_times = isinstance(dtype, np.dtype) and dtype.kind == "M"
    return numpy_times or isinstance(dtype, pd.DatetimeTZDtype)


def day_numbers(dates: pd.Series) -> pd.Series:
    """Return days since 1970 as local clocks show them, with fractions; missing ones are NaN.

    Examples
    --------
    >>> day_numbers(pd.Series(pd.to_datetime(["1970-01-03 12:00", None]))).tolist()
    [2.5, nan]
    """
    if isinstance(dates.dtype, pd.ArrowDtype):
        found = pa.array(dates.array).to_pandas(date_as_object=False)
        dates = pd.Series(found.to_numpy() if found.dt.tz is None else found.array, dates.index)
    return (dates.dt.tz_localize(None) - pd.Timestamp(0)) / pd.Timedelta(days=1)


def ticks_of(column: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return times as integers, and which are missing."""
    missing = column.isna().to_numpy(bool)
    dtype = column.dtype
    if isinstance(dtype, pd.ArrowDtype):
        found = pa.array(column.array)
        whole = found.cast(pa.int32()) if pa.types.is_date32(dtype.pyarrow_dtype) else found
        ticks = whole.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        ticks = np.asarray(column.array.asi8)
    return ticks, missing


def zone_of(dtype: Any) -> Any:
    """Return the time zone of a dtype, None if it has none, or if its days are those of ticks."""
    zone = _any_zone(dtype)
    return None if str(zone) in ("UTC", "Etc/UTC") else zone


def _any_zone(dtype: Any) -> Any:
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        return arrow.tz if pa.types.is_timestamp(arrow) else None
    return getattr(dtype, "tz", None)


def local_days(
    ticks: NDArray[np.int64], unit: str, zone: Any
) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return the days of a zone that times are in, and which times are when a day begins.

    Examples
    --------
    >>> summer = pd.Timestamp("2024-07-02", tz="Europe/Madrid").as_unit("s").value // 10**9
    >>> local_days(np.array([summer, summer + 3600]), "s", "Europe/Madrid")
    (array([19906, 19906]), array([ True, False]))
    """
    times = pd.DatetimeIndex(ticks.view(f"M8[{unit}]")).tz_localize("UTC").tz_convert(zone)
    per_day = NANOSECONDS["D"] // NANOSECONDS[unit]
    days = times.tz_localize(None).asi8 // per_day
    return days, day_begins(days, unit, zone) == ticks


def day_begins(days: NDArray[np.int64], unit: str, zone: Any) -> NDArray[np.int64]:
    """Return when days of a zone begin.

    That is at midnight. Where clocks are put forward then, it is the first time after it, and
    where they are put back to it, the first of both.
    """
    per_day = NANOSECONDS["D"] // NANOSECONDS[unit]
    midnights = pd.DatetimeIndex((days * per_day).view(f"M8[{unit}]"))
    first = np.ones(len(days), np.bool_)
    return midnights.tz_localize(zone, ambiguous=first, nonexistent="shift_forward").asi8


def unit_of(dtype: Any) -> str:
    """Return the unit of a time's ticks."""
    if isinstance(dtype, pd.ArrowDtype):
        arrow = dtype.pyarrow_dtype
        if pa.types.is_date(arrow):
            return "D" if pa.types.is_date32(arrow) else "ms"
        return arrow.unit
    if isinstance(dtype, pd.DatetimeTZDtype):
        return dtype.unit
    return np.datetime_data(dtype)[0]


def local_microseconds(column: pd.Series) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Return what clocks show in the zone of a column, since 1970, and which cells are missing."""
    ticks, missing = ticks_of(column)
    ticks, unit, zone = np.where(missing, 0, ticks), unit_of(column.dtype), zone_of(column.dtype)
    if zone is not None:
        times = pd.DatetimeIndex(ticks.view(f"M8[{unit}]")).tz_localize("UTC").tz_convert(zone)
        ticks = times.tz_localize(None).asi8
    if unit == "ns":
        return ticks // 1_000, missing
    return ticks * (NANOSECONDS[unit] // 1_000), missing


def microseconds(date: str, zone: Any = None) -> int:
    """Return a date as :func:`local_microseconds` has it in a zone.

    Examples
    --------
    >>> microseconds("1970-01-01 00:01"), microseconds("1970-01-01 00:01+00:00", "+01:00")
    (60000000, 3660000000)
    """
    return int(_local(date, zone).as_unit("us").asm8.view(np.int64))


def local_text(date: str, zone: Any) -> str:
    """Return a date as :func:`date_texts` has it in a zone."""
    return date_text(_local(date, zone))


def _local(date: str, zone: Any) -> pd.Timestamp:
    """Return what clocks show in a zone; a date without one is local."""
    time = pd.Timestamp(date)
    return time if time.tzinfo is None else time.tz_convert(zone or "UTC").tz_localize(None)


def date_as(date: str, dtype: Any) -> pd.Series:
    """Return a date as a column of a dtype; one without a zone is local."""
    times = pd.DatetimeIndex([pd.Timestamp(date).as_unit("us")])
    zone = _any_zone(dtype)
    if zone is not None and times.tz is None:
        first = np.ones(1, np.bool_)
        times = times.tz_localize(zone, ambiguous=first, nonexistent="shift_forward")
    return pd.Series(times).astype(dtype)


def has_zone(date_or_dtype: Any) -> bool:
    """Whether a date, as a text, or a dtype has a time zone."""
    if isinstance(date_or_dtype, str):
        return pd.Timestamp(date_or_dtype).tzinfo is not None
    return _any_zone(date_or_dtype) is not None


def date_texts(column: pd.Series) -> list[str]:
    """Return local times as texts, those at midnight without a time of day."""
    shown, _ = local_microseconds(column)
    return [date_text(pd.Timestamp(each, unit="us")) for each in shown.tolist()]


def date_text(time: pd.Timestamp) -> str:
    """Return a time as a text, without a time of day if it is midnight."""
    return str(time.date()) if time == time.normalize() else str(time)
