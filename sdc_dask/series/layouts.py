"""Panels in two layouts: wide, a row for each record, and long, a row for each record and time.

From long to wide, the rows of a record may come from any partition. One pass finds the times and
draws a sample of ids; then rows are routed to ranges of ids, and each range is put in order on its
own. From wide to long, every partition is done by itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray

from sdc_dask.arguments import (
    check_names,
    existing,
    listed,
    name_list,
    unique_columns,
    whole_number,
)
from sdc_dask.engine.columns import check_numeric, is_numeric, to_float
from sdc_dask.engine.frames import (
    Calls,
    Frame,
    Task,
    from_partitions,
    map_partitions,
    map_reduce,
    meta_of,
)
from sdc_dask.engine.scan import NO_PARTITION, NOT_THE_SAME
from sdc_dask.engine.sort import is_present
from sdc_dask.engine.sort_keys import check_sortable, sort_keys
from sdc_dask.engine.splitters import sample_positions
from sdc_dask.errors import SdcKeyError, SdcRuntimeError, SdcTypeError, SdcValueError

__all__ = ["resample", "series_columns", "to_long", "to_wide"]

MOST_TIMES = 100_000  # each is a column, and all are held in one place


def to_wide(
    frame: Frame,
    id: Hashable,
    time: Hashable,
    values: Hashable | Sequence[Hashable] | None = None,
    length: int | None = None,
) -> Frame:
    """Make a row of every record, with a column for each time of each series.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        In long layout: a row for each record and time, in any order. The rows of a record may lie
        in several partitions.
    id : name
        Column that says which record a row belongs to.
    time : name
        Column that says when: numbers, dates, texts or ordered categories.
    values : name or list of names, optional
        Numeric columns, one for each series. By default all that are numeric, except `id` and
        `time`.
    length : int, optional
        Resample the series of every record to so many points, at least 2. They are equally spaced
        from its first to its last observation, and lie on straight lines between neighbours;
        observations count as equally spaced in time. Needed if records have different times.

    Returns
    -------
    pandas or Dask DataFrame
        A row for each record in ascending order of `id`, which is the first column. The others are
        ``{value}_{time}``, with dates as in ISO 8601, or ``{value}_{position}`` from 0 if series
        were resampled. Resampled values are float64; others keep their dtype. The index counts rows
        from 0, for Dask in each partition anew, with unknown divisions. There are as many
        partitions as in `frame`, or fewer if it has few ids.

    Raises
    ------
    SdcValueError
        If ids, times or values are missing, values are infinite, rows repeat the id and the time of
        another, records have different times and `length` is not given, or records have fewer than
        2 rows and it is.

    See Also
    --------
    to_long : The way back.

    Notes
    -----
    For Dask, one pass over the data is made at once; the rest is lazy and has one shuffle. If the
    pass sees that something is wrong with some records, they are counted before the error is
    raised, which takes a shuffle, too. What it cannot see, such as a frame that holds all rows
    twice, is an error when the result is computed.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.series.layouts import to_wide
    >>> frame = pd.DataFrame(
    ...     {"shop": ["b", "a", "b", "a"], "year": [2024, 2025, 2025, 2024], "sales": [5, 2, 6, 1]}
    ... )
    >>> to_wide(frame, "shop", "year")
      shop  sales_2024  sales_2025
    0    a           1           2
    1    b           5           6
    >>> to_wide(frame, "shop", "year", length=3)
      shop  sales_0  sales_1  sales_2
    0    a      1.0      1.5      2.0
    1    b      5.0      5.5      6.0
    """
    meta = unique_columns(frame)
    existing(meta, [id], "id")
    existing(meta, [time], "time")
    if values is None:
        numeric = (name for name in meta.columns if is_numeric(meta[name].dtype))
        columns = tuple(name for name in numeric if name not in (id, time))
    else:
        columns = name_list(values, "values")
    if not columns:
        raise SdcValueError("values is empty: name numeric columns other than id and time.")
    existing(meta, columns, "values")
    _distinct([id, time, *columns], "id, time and values")
    check_numeric(meta, columns)
    check_sortable(meta, [id, time])
    if length is not None:
        length = whole_number(length, "length", 2)
    layout = _Long(id, time, columns, meta[id].dtype, meta[time].dtype, length)
    frame = frame[[id, time, *columns]]
    scan = map_reduce(frame, _scan, _merge_scans, layout)
    _check(layout, scan)
    return _widened(frame, layout, scan)


def to_long(
    frame: Frame,
    series: Mapping[Hashable, Sequence[Hashable]],
    id: Hashable,
    time: Hashable = "time",
    times: Iterable[Any] | None = None,
) -> Frame:
    """Make a row for every record and time, with a column for each series.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        In wide layout: a row for each record.
    series : mapping of names to lists of columns
        The numeric columns of each series, in order of time. All series have the same length.
    id : name
        Column that says which record a row is. For Dask, an id that occurs twice is noticed within
        a partition only, when the result is computed; :func:`to_wide` would notice all.
    time : name, optional
        Name of the column of times in the result.
    times : list, optional
        A label for each time, in the order of the columns, by default 0, 1, and so on.

    Returns
    -------
    pandas or Dask DataFrame
        The columns `id`, `time` and one for each series; other columns are left out. The rows of a
        record are together, in order of time, and records in the order of `frame`. The index
        counts rows from 0, for Dask in each partition anew, with unknown divisions.

    See Also
    --------
    to_wide : The way back.
    series_columns : Find the columns of series by their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.series.layouts import to_long
    >>> frame = pd.DataFrame({"shop": ["a", "b"], "sales_2024": [1, 5], "sales_2025": [2, 6]})
    >>> to_long(frame, {"sales": ["sales_2024", "sales_2025"]}, "shop", "year", [2024, 2025])
      shop  year  sales
    0    a  2024      1
    1    a  2025      2
    2    b  2024      5
    3    b  2025      6
    """
    meta = unique_columns(frame)
    existing(meta, [id], "id")
    columns = _series_of(series)
    names = [name for each in columns.values() for name in each]
    existing(meta, names, "series")
    _distinct([id, *names], "id and series")
    _distinct([id, time, *columns], "id, time and the names of series")
    check_numeric(meta, names)
    width = len(next(iter(columns.values())))
    labels = pd.Series(np.arange(width) if times is None else times).reset_index(drop=True)
    if len(labels) != width:
        raise SdcValueError(
            f"times must have a label for each of the {width} columns of a series, received "
            f"{len(labels)}."
        )
    if labels.isna().any() or labels.duplicated().any():
        raise SdcValueError("times has labels that are missing or equal: give each time its own.")
    made = (columns, id, time, labels)
    parts = map_partitions([frame[[id, *names]]], _lengthen, *made)
    return from_partitions(parts, _lengthen(meta, NO_PARTITION, *made), frame, in_place=False)


def resample(values: ArrayLike | Sequence[ArrayLike], length: int) -> NDArray[np.float64]:
    """Bring series of any lengths to the same one, on straight lines between observations.

    Parameters
    ----------
    values : array or list of arrays
        One series, or several, each of at least 2 finite numbers, which count as equally spaced.
    length : int
        Number of points that every series gets, at least 2. The first and the last observation
        stay what they are.

    Returns
    -------
    ndarray
        A row of `length` for each series.

    Examples
    --------
    >>> from sdc_dask.series.layouts import resample
    >>> resample([[0, 2, 4], [1, 2, 3, 5]], 5)
    array([[0.  , 1.  , 2.  , 3.  , 4.  ],
           [1.  , 1.75, 2.5 , 3.5 , 5.  ]])
    """
    length = whole_number(length, "length", 2)
    try:
        rows: list[Any] = list(values)  # type: ignore[arg-type]
        if all(np.ndim(row) == 0 for row in rows):
            rows = [rows]
        arrays = [np.asarray(row) for row in rows]
    except (TypeError, ValueError):
        arrays = [np.empty((), object)]
    if any(array.ndim != 1 or array.dtype.kind not in "iuf" for array in arrays):
        raise SdcTypeError(
            "values must be one array of numbers, or a list of such arrays, received something "
            f"else in {type(values).__name__}: convert it to arrays of numbers first."
        )
    counts = np.array([len(array) for array in arrays])
    if (short := int((counts < 2).sum())) > 0:
        raise SdcValueError(
            f"{short} of {len(counts)} series have fewer than 2 values, and nothing lies between: "
            "leave them out."
        )
    joined = np.concatenate(arrays, dtype=np.float64)
    if (odd := int((~np.isfinite(joined)).sum())) > 0:
        raise SdcValueError(f"{odd} values are missing or infinite: fill or drop them first.")
    return _interpolate(joined[:, None], np.cumsum(counts) - counts, counts, length)[:, :, 0]


def series_columns(
    frame: Frame, names: Hashable | Sequence[Hashable]
) -> dict[Hashable, list[Hashable]]:
    """Return the columns of each series of a wide frame, by their names.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
    names : name or list of names
        Of the series. The columns of ``"price"`` are those that begin with ``"price_"``, and not
        with a longer one of the names.

    Returns
    -------
    dict
        From names to lists of columns, in the order of the frame.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.series.layouts import series_columns
    >>> frame = pd.DataFrame(columns=["shop", "price_0", "price_1", "sales_0", "sales_1"])
    >>> series_columns(frame, ["price", "sales"])
    {'price': ['price_0', 'price_1'], 'sales': ['sales_0', 'sales_1']}
    """
    found: dict[Hashable, list[Hashable]] = {name: [] for name in name_list(names, "names")}
    by_length = sorted(found, key=lambda name: len(str(name)), reverse=True)
    for column in unique_columns(frame).columns:
        for name in by_length:
            if str(column).startswith(f"{name}_"):
                found[name].append(column)
                break
    lacking = [name for name, columns in found.items() if not columns]
    if lacking or not found:
        raise SdcKeyError(
            f"no columns begin with the names of series: {listed(lacking)}. The frame has: "
            f"{listed(meta_of(frame).columns)}."
        )
    return found


# From long to wide: what there is


@dataclass(frozen=True)
class _Long:
    """The columns of a long frame, and the length of its series if they are resampled."""

    id: Hashable
    time: Hashable
    values: tuple[Hashable, ...]
    id_dtype: object
    time_dtype: object
    length: int | None


@dataclass(frozen=True)
class _Times:
    """Different times in order, what they are sorted by, and their numbers of rows."""

    values: pd.Series
    keys: NDArray
    counts: NDArray[np.int64]

    def merged(self) -> _Times:
        """Return each time once."""
        keys, first, place = np.unique(self.keys, return_index=True, return_inverse=True)
        if len(keys) > MOST_TIMES:
            raise SdcValueError(
                f"there are more than {MOST_TIMES} different times, and each would be a column: "
                "pass length= to resample the series of every record, or round the times first."
            )
        values = self.values.iloc[first].reset_index(drop=True)
        return _Times(values, keys, _sums(place, self.counts, len(keys)))


@dataclass(frozen=True)
class _Scan:
    """What one pass finds in a long frame."""

    rows: tuple[int, ...]  # by partition
    missing: NDArray[np.int64]  # by column: id, time, values
    infinite: NDArray[np.int64]
    times: _Times  # none if series are resampled
    sample: NDArray  # sort keys of some ids
    weights: NDArray[np.float64]  # rows that each of these stands for


def _scan(part: pd.DataFrame, number: int, layout: _Long) -> _Scan:
    cells = to_float(part, layout.values)
    ids, times = (part[name][is_present(part[name])] for name in (layout.id, layout.time))
    absent = [len(part) - len(ids), len(part) - len(times)]
    if layout.length is not None:
        times = times.iloc[:0]
    keys = sort_keys(times, layout.time_dtype)
    at = sample_positions(len(ids), len(ids), number, 1)
    return _Scan(
        (len(part),),
        np.array([*absent, *np.isnan(cells).sum(axis=0)]),
        np.array([0, 0, *np.isinf(cells).sum(axis=0)]),
        _Times(times, keys, np.ones(len(times), np.int64)).merged(),
        sort_keys(ids.iloc[at], layout.id_dtype),
        np.full(len(at), len(ids) / max(len(at), 1)),
    )


def _merge_scans(parts: list[_Scan]) -> _Scan:
    times = [part.times for part in parts if len(part.times.keys)] or [parts[0].times]
    return _Scan(
        tuple(rows for part in parts for rows in part.rows),
        np.sum([part.missing for part in parts], axis=0),
        np.sum([part.infinite for part in parts], axis=0),
        _Times(
            pd.concat([each.values for each in times], ignore_index=True),
            np.concatenate([each.keys for each in times]),
            np.concatenate([each.counts for each in times]),
        ).merged(),
        np.concatenate([part.sample for part in parts]),
        np.concatenate([part.weights for part in parts]),
    )


def _sums(place: NDArray[np.int64], counts: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Add up counts by place."""
    total = np.zeros(n, np.int64)
    np.add.at(total, place, counts)
    return total


# From long to wide: where rows go


@dataclass(frozen=True)
class _Plan:
    """Where the rows of a long frame go, and what is made of them there."""

    layout: _Long
    rows: tuple[int, ...]  # by partition
    borders: NDArray  # sort keys of the ids with which ranges begin, except the first
    times: NDArray  # sort keys
    names: tuple[str, ...]  # of the new columns, series by series


def _widened(frame: Frame, layout: _Long, scan: _Scan) -> Frame:
    """Return the wide frame of a long one that was scanned."""
    call = Calls.of(frame)
    borders = _borders(scan, len(scan.rows) if call.lazy else 1)
    plan = _Plan(layout, scan.rows, borders, scan.times.keys, _names(layout, scan.times.values))
    shared = call.share(plan)
    meta = _leave(meta_of(frame), NO_PARTITION, plan)
    routed = _routed(frame, meta, plan)
    if len(np.unique(scan.times.counts)) > 1:
        surveys = call.merge([call(_survey, part, shared) for part in routed], _merge_surveys)
        _refuse(call.compute(surveys))
    where = " in partition {} of the result" if call.lazy else ""
    parts = [call(_widen, part, shared, where.format(i)) for i, part in enumerate(routed)]
    return from_partitions(parts, _widen(meta, plan, ""), frame, in_place=False)


def _check(layout: _Long, scan: _Scan) -> None:
    """Raise ValueError if there are no rows, or no proper values in some."""
    columns = [layout.id, layout.time, *layout.values]
    for what, counts in (("missing", scan.missing), ("infinite", scan.infinite)):
        found = [f"{c!r} ({n})" for c, n in zip(columns, counts, strict=True) if n]
        if found:
            raise SdcValueError(
                f"{what} values in columns: {', '.join(found)}. Fill them first, or drop these "
                "rows and pass length= to resample what remains."
            )
    if not sum(scan.rows):
        raise SdcValueError("the frame has no rows, so that there are no times: pass some rows.")


def _names(layout: _Long, times: pd.Series) -> tuple[str, ...]:
    """Return the names of the new columns."""
    labels = _texts(times) if layout.length is None else list(map(str, range(layout.length)))
    names = tuple(f"{value}_{label}" for value in layout.values for label in labels)
    if len({layout.id, *names}) <= len(names):
        raise SdcValueError(
            "columns of the result would have the same name, which is made of those of values and "
            "the texts of times, or is that of the id: rename values or id, or convert the times."
        )
    return names


def _texts(times: pd.Series) -> list[str]:
    """Return times as texts: dates as in ISO 8601, without a time of day if none has one."""
    values = times.tolist()
    if all(isinstance(each, datetime) for each in values):
        stamps = [pd.Timestamp(each) for each in values]
        if all(stamp == stamp.normalize() for stamp in stamps):
            return [stamp.date().isoformat() for stamp in stamps]
    # Adding 0.0 makes a negative zero positive: the text does not depend on which came first.
    values = [each + 0.0 if isinstance(each, float) else each for each in values]
    return [each.isoformat() if hasattr(each, "isoformat") else str(each) for each in values]


def _borders(scan: _Scan, ranges: int) -> NDArray:
    """Cut the ids into ranges of about as many rows each, or into fewer."""
    order = np.argsort(scan.sample, kind="stable")
    upto = np.cumsum(scan.weights[order])
    at = np.searchsorted(upto, upto[-1] * np.arange(1, ranges) / ranges)
    borders = np.unique(scan.sample[order[at]])
    return borders[borders > scan.sample[order[0]]]


def _routed(frame: Frame, meta: pd.DataFrame, plan: _Plan) -> list[Task]:
    """Send the rows of each record to one partition, and check that all have arrived."""
    call, ranges = Calls.of(frame), len(plan.borders) + 1
    left, counts = [], []
    for leaving in map_partitions([frame], _leave, plan):
        counts.append(call(_count_keys, leaving, ranges))
        # Rows wait until they are counted: they would be kept for it otherwise.
        left.append(call(_first, leaving, counts[-1]))
    total = call.merge(counts, sum)
    routed = call.route(left, meta, list(range(ranges + 1)))
    return [call(_arrive, part, number, total) for number, part in enumerate(routed)]


def _leave(part: pd.DataFrame, number: int, plan: _Plan) -> pd.DataFrame:
    """Return the rows of a partition with the range of their id for a key, and internal names."""
    layout = plan.layout
    if number != NO_PARTITION and len(part) != plan.rows[number]:
        raise SdcRuntimeError(
            f"partition {number} has {len(part)} rows, and had {plan.rows[number]} when it was "
            f"scanned. {NOT_THE_SAME}"
        )
    part = part.reset_index(drop=True)
    code, keys = pd.factorize(sort_keys(part[layout.id], layout.id_dtype))
    range_of = np.searchsorted(plan.borders, keys, side="right").astype(np.int64)
    times = part[layout.time] if layout.length is not None else _time_codes(part, plan)
    routed = pd.DataFrame({"key": range_of[code], "id": part[layout.id], "time": times})
    for j, name in enumerate(layout.values):
        routed[f"v{j}"] = part[name]
    return routed


def _time_codes(part: pd.DataFrame, plan: _Plan) -> NDArray[np.int64]:
    """Return the position of every row's time among all."""
    code, keys = pd.factorize(sort_keys(part[plan.layout.time], plan.layout.time_dtype))
    place = np.searchsorted(plan.times, keys).astype(np.int64)
    if np.any(plan.times[np.minimum(place, len(plan.times) - 1)] != keys):
        raise SdcRuntimeError(f"there are other times than in the scan. {NOT_THE_SAME}")
    return place[code]


def _count_keys(leaving: pd.DataFrame, ranges: int) -> NDArray[np.int64]:
    return np.bincount(leaving["key"], minlength=ranges)


def _first(leaving: pd.DataFrame, _after: Any) -> pd.DataFrame:
    return leaving


def _arrive(routed: pd.DataFrame, number: int, sent: NDArray[np.int64]) -> pd.DataFrame:
    if len(routed) != sent[number]:
        raise SdcRuntimeError(
            f"{len(routed)} rows came to a partition that {sent[number]} were sent to. "
            f"{NOT_THE_SAME}"
        )
    return routed


# From long to wide: what is made of rows


@dataclass(frozen=True)
class _InOrder:
    """Rows in order of id and time."""

    order: NDArray[np.int64]
    begins: NDArray[np.int64]  # by record
    counts: NDArray[np.int64]  # by record
    times: NDArray[np.int64]  # of the ordered rows, as positions among all times
    repeated: NDArray[np.bool_]  # whether an ordered row has the id and time of the one before

    @classmethod
    def of(cls, routed: pd.DataFrame, layout: _Long) -> _InOrder:
        record, _ = pd.factorize(sort_keys(routed["id"], layout.id_dtype), sort=True)
        if layout.length is None:
            time = routed["time"].to_numpy()
        else:
            time, _ = pd.factorize(sort_keys(routed["time"], layout.time_dtype), sort=True)
        order = np.lexsort((time, record))
        times = time[order]
        first = np.diff(record[order], prepend=-1) != 0
        repeated = ~first & (np.diff(times, prepend=-1) == 0)
        begins = np.flatnonzero(first)
        return cls(order, begins, np.diff(begins, append=len(order)), times, repeated)


@dataclass(frozen=True)
class _Survey:
    """Rows that repeat others, and records by their set of times, each known by a hash."""

    repeated: int
    sets: NDArray[np.uint64]
    counts: NDArray[np.int64]

    @classmethod
    def of(cls, rows: _InOrder) -> _Survey:
        # The hash of 0 is 0.
        hashes = np.where(rows.repeated, 0, pd.util.hash_array(rows.times + 1))
        sums = np.add.reduceat(hashes, rows.begins) if len(hashes) else hashes
        return cls(int(rows.repeated.sum()), *np.unique(sums, return_counts=True))


def _survey(routed: pd.DataFrame, plan: _Plan) -> _Survey:
    return _Survey.of(_InOrder.of(routed, plan.layout))


def _merge_surveys(parts: list[_Survey]) -> _Survey:
    sets, place = np.unique(np.concatenate([part.sets for part in parts]), return_inverse=True)
    counts = _sums(place, np.concatenate([part.counts for part in parts]), len(sets))
    return _Survey(sum(part.repeated for part in parts), sets, counts)


def _refuse(survey: _Survey, where: str = "") -> NoReturn:
    """Raise ValueError since rows repeat others, or else records have different times."""
    if survey.repeated:
        raise SdcValueError(
            f"{survey.repeated} rows{where} repeat the id and the time of another: keep one row of "
            "each, for example with drop_duplicates([id, time]), or aggregate them first."
        )
    records = int(survey.counts.sum())
    # If all that are here agree, it is the others that they differ from.
    differ = records - int(survey.counts.max()) or records
    raise SdcValueError(
        f"{differ} of {records} records{where} have other times than the most common ones: pass "
        "length= to resample the series of every record to one length, or fill the gaps or leave "
        "these records out first."
    )


def _widen(routed: pd.DataFrame, plan: _Plan, where: str) -> pd.DataFrame:
    """Make the records of all rows of a range of ids, after a look whether they are complete."""
    layout, series = plan.layout, range(len(plan.layout.values))
    rows = _InOrder.of(routed, layout)
    ordered = routed.iloc[rows.order]
    width = layout.length or len(plan.times)
    if rows.repeated.any() or (layout.length is None and (rows.counts != width).any()):
        _refuse(_Survey.of(rows), where)
    if layout.length is None:
        arrays = [ordered[f"v{j}"].array[t::width] for j in series for t in range(width)]
    else:
        short = int((rows.counts < 2).sum())
        if short:
            raise SdcValueError(
                f"{short} of {len(rows.counts)} records{where} have fewer than 2 rows, and there "
                "is nothing to resample: leave these records out first."
            )
        cells = to_float(ordered, [f"v{j}" for j in series])
        points = _interpolate(cells, rows.begins, rows.counts, width)
        arrays = [points[:, t, j] for j in series for t in range(width)]
    wide = pd.DataFrame(dict(zip(plan.names, arrays, strict=True)))
    wide.insert(0, layout.id, ordered["id"].iloc[rows.begins].reset_index(drop=True))
    return wide


def _interpolate(
    values: NDArray[np.float64], begins: NDArray[np.int64], counts: NDArray[np.int64], length: int
) -> NDArray[np.float64]:
    """Resample series that lie below each other, one or more columns of values at once.

    Positions are exact fractions: a point that meets an observation has its value.
    """
    below, rest = np.divmod(np.arange(length) * (counts[:, None] - 1), length - 1)
    low = begins[:, None] + below
    lower, upper = values[low], values[low + (rest > 0)]
    return lower + (rest / (length - 1))[:, :, None] * (upper - lower)


# From wide to long


def _series_of(series: Any) -> dict[Hashable, tuple[Hashable, ...]]:
    """Return the columns of each series, all of the same number."""
    if not isinstance(series, Mapping) or not all(
        isinstance(columns, (list, tuple, pd.Index)) for columns in series.values()
    ):
        raise SdcTypeError(
            "series must be a dict of names and lists of columns, such as {'price': ['price_0', "
            f"'price_1']}}, received {type(series).__name__}."
        )
    lengths = [len(columns) for columns in series.values()]
    if not lengths or 0 in lengths:
        raise SdcValueError("series is empty, or has one without columns: name the columns.")
    if len(set(lengths)) > 1:
        raise SdcValueError(
            f"series must have the same number of columns, received {listed(lengths)}: one column "
            "for each time, in order."
        )
    return {name: tuple(columns) for name, columns in series.items()}


def _lengthen(
    part: pd.DataFrame,
    _number: int,
    series: Mapping[Hashable, tuple[Hashable, ...]],
    id_column: Hashable,
    time: Hashable,
    labels: pd.Series,
) -> pd.DataFrame:
    """Make a row for every record and time of a partition."""
    ids = part[id_column].reset_index(drop=True)
    odd = int((~is_present(ids) | ids.duplicated()).sum())
    if odd:
        raise SdcValueError(
            f"{odd} ids in column {id_column!r} are missing or occur before: give every row an id "
            "of its own."
        )
    n, width = len(part), len(labels)
    made = {
        id_column: ids.iloc[np.repeat(np.arange(n), width)].reset_index(drop=True),
        time: labels.iloc[np.tile(np.arange(width), n)].reset_index(drop=True),
    }
    by_record = np.arange(n * width).reshape(width, n).T.ravel()
    for name, columns in series.items():
        stacked = pd.concat([part[column] for column in columns], ignore_index=True)
        made[name] = stacked.iloc[by_record].reset_index(drop=True)
    return pd.DataFrame(made)


def _distinct(names: Sequence[Hashable], what: str) -> None:
    """Raise ValueError if a name occurs twice."""
    check_names(names, what)
    if len(set(names)) < len(names):
        raise SdcValueError(f"{what} must all be different, received {listed(names)}.")
