"""Checks of what users pass: every message says what was wrong, what came, and what to do."""

from __future__ import annotations

import datetime
import itertools
import math
import re
import secrets
from collections import Counter
from collections.abc import (
    Callable,
    Hashable,
    Iterable,
    KeysView,
    Mapping,
    Sequence,
    ValuesView,
)
from numbers import Integral, Real
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from sdc_dask.engine.columns import check_numeric, is_numeric, is_unchanged
from sdc_dask.engine.dates import date_text
from sdc_dask.engine.frames import Frame, is_dask, meta_of
from sdc_dask.engine.mixed import Reading
from sdc_dask.errors import (
    FEWEST_ADVISED,
    LeftOutAdvice,
    SdcKeyError,
    SdcTypeError,
    SdcValueError,
    UnchangedAdvice,
    warn,
)
from sdc_dask.keywords import nearest
from sdc_dask.names import is_mark

_DATE = re.compile(r"\d{4,}-\d\d-\d\d([ T]\d\d:\d\d(:\d\d(\.\d+)?)?([+-]\d\d:\d\d|Z)?)?$")


def whole_number(value: Any, name: str, smallest: int) -> int:
    """Return `value` as an int if it is a whole number of at least `smallest`."""
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise SdcTypeError(
            f"{name} must be a whole number of at least {smallest}, received "
            f"{type(value).__name__}."
        )
    if value < smallest:
        raise SdcValueError(f"{name} must be at least {smallest}, received {value}.")
    return int(value)


def number(
    value: Any, name: str, smallest: float, largest: float = math.inf, *, infinite: bool = False
) -> float:
    """Return `value` as a float if it is a real number of a range, both ends included."""
    upper = f" and at most {largest:g}" if largest < math.inf else ""
    finite = "" if infinite or upper else ", and finite"
    valid = f"{name} must be a number of at least {smallest:g}{upper}{finite}"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SdcTypeError(f"{valid}, received {type(value).__name__}.")
    try:
        value = float(value)
    except OverflowError:
        raise SdcValueError(f"{valid}, received an integer beyond all floats.") from None
    if not smallest <= value <= largest or (math.isinf(value) and not infinite):
        raise SdcValueError(f"{valid}, received {value:g}.")
    return value


def percentage(value: Any, name: str) -> float:
    """Return `value` as a float if it is a percentage above 0, up to 100."""
    valid = f"{name} must be a percentage above 0 and at most 100"
    if isinstance(value, bool) or not isinstance(value, Real):
        raise SdcTypeError(f"{valid}, received {type(value).__name__}.")
    try:
        value = float(value)
    except OverflowError:
        raise SdcValueError(f"{valid}, received an integer beyond all floats.") from None
    if not 0 < value <= 100:
        raise SdcValueError(f"{valid}, received {value:g}.")
    return value


def codes(values: Any, name: str) -> tuple[float, ...]:
    """Return numbers that stand for missing cells."""
    given = () if values is None else as_list(values)
    given = [values] if given is None else given
    found = []
    for each in given:
        if isinstance(each, bool) or not isinstance(each, Real) or not math.isfinite(each):
            raise SdcTypeError(
                f"{name} must be a list of finite numbers that stand for missing cells, such as "
                f"[-9], received {type(each).__name__}."
            )
        found.append(float(each))
    return tuple(dict.fromkeys(found))


def entropy(random_state: Any) -> int:
    """Return the entropy of a random state: a whole number, or fresh if it is None."""
    if random_state is None:
        return secrets.randbits(128)
    if isinstance(random_state, bool) or not isinstance(random_state, Integral):
        raise SdcTypeError(
            "random_state must be None or a whole number of at least 0, received "
            f"{type(random_state).__name__}."
        )
    if random_state < 0:
        # A seed is as secret as what it protects: it is not repeated.
        raise SdcValueError("random_state must be at least 0, received a negative number.")
    return int(random_state)


def flag(value: Any, name: str) -> bool:
    """Return `value` as a bool if it is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise SdcTypeError(f"{name} must be True or False, received {type(value).__name__}.")
    return bool(value)


def plain_value(value: Any, name: str) -> Any:
    """Return a value of a column as Python, JSON and TOML have it: a text or a number."""
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real) and math.isfinite(value):
        return float(value)
    if isinstance(value, str):
        return str(value)
    raise SdcTypeError(
        f"{name} must hold texts or finite numbers, received {type(value).__name__}: convert them."
    )


def date(value: Any, name: str) -> str | None:
    """Return a date as the text that stands for it; None for what is no date.

    A time with a zone is one of UTC.

    Examples
    --------
    >>> import datetime
    >>> date(datetime.date(1980, 1, 1), "bins"), date("1980-01-01T06:30", "bins"), date("a", "bins")
    ('1980-01-01', '1980-01-01 06:30:00', None)
    """
    is_text = isinstance(value, str) and _DATE.match(value)
    if not is_text and not isinstance(value, (datetime.date, np.datetime64)):
        return None
    try:
        time = pd.Timestamp(value)
    except ValueError:
        time = pd.NaT
    if time is pd.NaT:
        raise SdcValueError(
            f"{name} holds a date that does not exist, such as the 31st of June: correct it."
        )
    return date_text(time) if time.tzinfo is None else str(time.tz_convert("UTC"))


def one_of(value: Any, name: str, valid: Iterable[Any]) -> Any:
    """Return `value` if it is one of the valid ones."""
    valid = list(valid)
    if not any(value is each or (isinstance(value, str) and value == each) for each in valid):
        listed = ", ".join(repr(each) for each in valid)
        small = value is None or isinstance(value, (str, bool, int, float))
        # Whatever else it is might be data.
        received = repr(value) if small else type(value).__name__
        raise SdcValueError(f"{name} must be one of {listed}, received {received}.")
    return value


def block_size(value: Any, k: int) -> int | str:
    """Return L, a whole number of at least k, or 'auto'."""
    if isinstance(value, str):
        if value != "auto":
            raise SdcValueError(
                f"max_block must be a whole number of at least 2, or 'auto', received {value!r}."
            )
        return value
    size = whole_number(value, "max_block", 2)
    if size < k:
        raise SdcValueError(
            f"max_block must be at least k, received max_block={size} with k={k}: a block must "
            "hold a group."
        )
    return size


def no_block_size(max_block: int | str) -> None:
    """Raise ValueError if a block size was named where there are no blocks."""
    if max_block != "auto":
        raise SdcValueError(
            "max_block has no meaning without blocks: leave it out, or name a blocking."
        )


def unique_columns(frame: Frame) -> pd.DataFrame:
    """Return the empty frame of a frame whose column names are unique."""
    meta = meta_of(frame)
    if meta.columns.nlevels > 1:
        raise SdcTypeError(
            "the frame has a MultiIndex of columns: flatten the names first, for example with "
            "df.columns = ['_'.join(names) for names in df.columns]."
        )
    double = meta.columns[meta.columns.duplicated()].unique()
    if len(double):
        raise SdcValueError(f"column names occur more than once: {listed(double)}. Rename them.")
    return meta


def check_names(names: Sequence[Any], name: str) -> None:
    """Raise TypeError if what names columns cannot be a name, such as a list in a list."""
    for each in names:
        try:
            hash(each)
        except TypeError:
            raise SdcTypeError(
                f"{name} must name columns, received {type(each).__name__} for a name: pass what "
                "the columns are called, such as 'age'."
            ) from None


def existing(
    meta: pd.DataFrame, columns: Sequence[Hashable], name: str, frame: str = "the frame"
) -> None:
    """Raise KeyError if the frame lacks columns."""
    check_names(columns, name)
    lacking = [column for column in columns if column not in meta.columns]
    if lacking:
        # ValueError would say the same; KeyError is what pandas users catch. Its text is shown
        # quoted, so that it is kept to one line.
        raise SdcKeyError(
            f"{name} names columns that {frame} does not have: {listed(lacking)}"
            f"{_meant(lacking, meta)} It has: {listed(meta.columns)}."
        )


def _meant(lacking: Sequence[Hashable], meta: pd.DataFrame) -> str:
    """Return the end of a sentence that names a column which is spelled nearly alike."""
    names = [name for name in meta.columns if isinstance(name, str)]
    return (nearest(lacking[0], names) if len(lacking) == 1 else "") or "."


def as_list(value: Any) -> list[Any] | None:
    """Return what lists something in an order as a list; None if it is something else.

    Sets have no order, which decides ties, and generators can be read once.

    Examples
    --------
    >>> as_list(np.array(["a", "b"])), as_list({"a": 1}.keys()), as_list("ab")
    (['a', 'b'], ['a'], None)
    """
    if isinstance(value, (pd.Index, pd.Series, np.ndarray)):
        return value.tolist() if value.ndim == 1 else None
    return list(value) if isinstance(value, (list, tuple, KeysView, ValuesView)) else None


def name_list(value: Any, name: str) -> tuple[Hashable, ...]:
    """Return a tuple of column names from one name or a list of them."""
    if value is None:
        return ()
    names = as_list(value)
    if names is not None:
        return tuple(names)
    if isinstance(value, Hashable):
        return (value,)
    raise SdcTypeError(
        f"{name} must be a column name or a list of them, received {type(value).__name__}."
    )


def named_columns(meta: pd.DataFrame, value: Any, name: str, what: str) -> tuple[Hashable, ...]:
    """Return names of columns that a frame has, at least one: name `what`, if there is none."""
    names = name_list(value, name)
    if not names:
        raise SdcValueError(f"{name} is empty: name {what}.")
    existing(meta, names, name)
    return names


def key_columns(meta: pd.DataFrame, keys: Any) -> tuple[Hashable, ...]:
    """Return the columns whose combinations an intruder may know, each named once."""
    names = named_columns(meta, keys, "keys", "the columns that an intruder may know together")
    _check_once(names, "keys")
    return names


class ColumnSets(tuple[tuple[Hashable, ...], ...]):
    """Sets of columns, each masked on its own; a tuple of tuples that was checked."""


def _in_a_list(name: Any) -> str:
    return f": [{name!r}]" if isinstance(name, str) else ""


def column_sets(columns: Any) -> ColumnSets:
    """Return sets of columns from a list of names or a list of lists of names."""
    if isinstance(columns, ColumnSets):
        return columns
    found = as_list(columns)
    if found is None:
        raise SdcTypeError(
            "columns must be a list of names, or a list of lists of names, received "
            f"{type(columns).__name__}. For one column pass a list with one name"
            f"{_in_a_list(columns)}."
        )
    nested = [not isinstance(each, tuple) and as_list(each) is not None for each in found]
    if any(nested) and not all(nested):
        raise SdcTypeError(
            "columns mixes names and lists of names: pass a list of names for one set, or a list "
            "of lists for several."
        )
    sets = tuple(tuple(as_list(each) or ()) for each in found) if any(nested) else (tuple(found),)
    if not all(sets):
        raise SdcValueError("columns is empty or has an empty set: name the columns to mask.")
    _check_once([column for each in sets for column in each], "columns")
    return ColumnSets(sets)


def time_stamps(times: Any, sets: Sequence[Sequence[Hashable]]) -> tuple[float, ...] | None:
    """Return when the values of series were observed: ascending, one for each column."""
    if times is None:
        return None
    if isinstance(times, str) or not isinstance(times, (list, tuple, pd.Index, np.ndarray)):
        raise SdcTypeError(
            f"times must be a list of numbers that ascend, received {type(times).__name__}."
        )
    stamps = tuple(number(each, "times", -math.inf) for each in times)
    other = [len(columns) for columns in sets if len(columns) != len(stamps)]
    if other:
        raise SdcValueError(
            f"times must be as many as the columns of every series, received {len(stamps)} for "
            f"{other[0]} columns."
        )
    if any(later <= earlier for earlier, later in itertools.pairwise(stamps)):
        raise SdcValueError("times must ascend, received some that do not: sort the columns.")
    return stamps


class ByColumn(tuple[tuple[Hashable, Any], ...]):
    """What is said of some columns: pairs of a name and a value, which were checked."""

    def to_plain(self) -> Any:
        """Return what a user would pass: a dict."""
        return {name: list(v) if isinstance(v, tuple) else v for name, v in self}

    def __repr__(self) -> str:
        return repr(self.to_plain())


def by_column(
    value: Any, name: str, columns: Iterable[Hashable], example: str, what: str = "masked"
) -> ByColumn:
    """Return a dict of columns as pairs: of those that are masked, or `what` else they are."""
    if value is None:
        return ByColumn()
    if isinstance(value, ByColumn):
        value = dict(value)
    if not isinstance(value, Mapping):
        raise SdcTypeError(
            f"{name} must be a dict from columns, such as {example}, received "
            f"{type(value).__name__}."
        )
    _check_among(list(value), name, columns, what)
    return ByColumn(value.items())


def _check_among(
    names: Sequence[Hashable], name: str, columns: Iterable[Hashable], what: str
) -> None:
    """Raise ValueError if columns are named that are not masked, or `what` else."""
    _check_once(names, name)
    others = [each for each in names if each not in set(columns)]
    if others:
        raise SdcValueError(
            f"{name} names columns that are not {what}: {listed(others)}. Name them in columns, "
            "too, or leave them out."
        )


def orders(value: Any, columns: Iterable[Hashable], what: str = "masked") -> ByColumn:
    """Return the orders of categories by column, each from the lowest to the highest."""
    pairs = []
    for column, order in by_column(value, "orders", columns, "{'size': ['S', 'M', 'L']}", what):
        what = f"the order of column {column!r}"
        if isinstance(order, str) or not isinstance(order, (list, tuple, pd.Index)):
            raise SdcTypeError(
                f"{what} must be a list of its values, from the lowest to the highest, received "
                f"{type(order).__name__}."
            )
        if len(order) < 2:
            raise SdcValueError(f"{what} must name two values at least, received {len(order)}.")
        values = [each.item() if isinstance(each, np.generic) else each for each in order]
        if not all(isinstance(each, (str, bool, int, float)) for each in values):
            kinds = dict.fromkeys(type(each).__name__ for each in values)
            raise SdcTypeError(
                f"{what} must name texts, numbers or booleans, received {', '.join(kinds)}."
            )
        if any(each != each for each in values):
            raise SdcValueError(f"{what} has a gap: NaN has no rank. Leave it out.")
        twice = len(values) - len(set(values))
        if twice:
            raise SdcValueError(f"{what} names {twice} values more than once: name each once.")
        pairs.append((column, tuple(values)))
    return ByColumn(pairs)


def importance(value: Any, columns: Iterable[Hashable]) -> ByColumn:
    """Return how much columns weigh in distances."""
    pairs = []
    for column, weight in by_column(value, "importance", columns, "{'age': 2}"):
        weight = number(weight, f"importance of column {column!r}", 0.0, 1e6)
        if weight == 0:
            raise SdcValueError(
                f"importance of column {column!r} must be above 0, received 0: without any weight, "
                "its values would be mixed at will. Mask it in a set of its own."
            )
        pairs.append((column, weight))
    return ByColumn(pairs)


def reading(ordered: Any, nominal: Any, columns: Sequence[Hashable]) -> Reading:
    """Return how values of compared columns are read."""
    found = Reading(
        dict(orders(ordered, columns, "compared")),
        masked_names(nominal, "nominal", columns, "compared"),
    )
    both = [name for name in found.orders if name in found.nominal]
    if both:
        raise SdcValueError(
            f"orders and nominal both name columns: {listed(both)}. Values have an order, or none."
        )
    return found


def masked_names(
    value: Any, name: str, columns: Iterable[Hashable], what: str = "masked"
) -> tuple[Hashable, ...]:
    """Return names of columns that are masked, or `what` else they are."""
    names = name_list(value, name)
    _check_among(names, name, columns, what)
    return names


class SeriesSets(tuple[tuple[str | None, tuple[Hashable, ...]], ...]):
    """Names of series and their columns, one for each time; a tuple of pairs that was checked.

    A single series may have no name.
    """

    @property
    def columns(self) -> ColumnSets:
        """The columns of each series."""
        return ColumnSets(columns for _, columns in self)

    def to_plain(self) -> list[Hashable] | dict[str, list[Hashable]]:
        """Return what a user would pass: a list, or a dict of lists."""
        if self[0][0] is None:
            return list(self[0][1])
        return {str(name): list(columns) for name, columns in self}

    def __repr__(self) -> str:
        return repr(self.to_plain())


def series_sets(series: Any) -> SeriesSets:
    """Return series from a dict of names to lists of columns, or from one list of columns."""
    if isinstance(series, SeriesSets):
        return series
    if isinstance(series, Mapping):
        pairs = [(name, columns) for name, columns in series.items()]
        if not all(isinstance(name, str) for name, _ in pairs):
            raise SdcTypeError(
                "series must have texts for names: pass {'price': ['p0', 'p1', ...], ...}."
            )
    else:
        pairs = [(None, series)]
    for _, columns in pairs:
        if not isinstance(columns, (list, tuple, pd.Index)) or any(
            isinstance(each, (list, pd.Index)) for each in columns
        ):
            raise SdcTypeError(
                "series must be a list of columns, one for each time, or a dict of names to such "
                f"lists, received {type(columns).__name__}: pass ['p0', 'p1', ...] or "
                "{'price': ['p0', 'p1', ...], ...}."
            )
    short = [name for name, columns in pairs if len(columns) < 2]
    if short or not pairs:
        raise SdcValueError(
            "a series has two times at least, received fewer: name a column for each time. If "
            "there is a row for each time, sdc_dask.series.to_wide(df, id, time) makes columns."
        )
    _check_once([column for _, columns in pairs for column in columns], "series")
    return SeriesSets((name, tuple(columns)) for name, columns in pairs)


def column_list(columns: Any) -> tuple[Hashable, ...]:
    """Return columns from one list of names."""
    if isinstance(columns, (list, tuple)) and any(isinstance(e, (list, pd.Index)) for e in columns):
        raise SdcTypeError(
            "columns must be one list of names, received a list of lists: use a masking for each."
        )
    return column_sets(columns)[0]


def strata_columns(by: Any, masked: Iterable[Hashable]) -> tuple[Hashable, ...]:
    """Return the columns of `by`, which must not be masked."""
    names = name_list(by, "by")
    _check_once(names, "by")
    both = [name for name in names if name in masked]
    if both:
        raise SdcValueError(
            f"by names columns that are masked: {listed(both)}. A column is masked, or it defines "
            "strata."
        )
    return names


def check_strata_columns(meta: pd.DataFrame, by: Sequence[Hashable]) -> None:
    """Raise an error unless a frame has columns of `by`, and these have values that compare."""
    check_comparable(meta, by, "by")


def check_comparable(meta: pd.DataFrame, columns: Sequence[Hashable], name: str) -> None:
    """Raise an error unless a frame has columns, and these have values that compare."""
    existing(meta, columns, name)
    for column in columns:
        dtype = meta[column].dtype
        if isinstance(dtype, pd.ArrowDtype) and pa.types.is_nested(dtype.pyarrow_dtype):
            raise SdcTypeError(
                f"column {column!r} of `{name}` has dtype {dtype}, whose values cannot be "
                "compared: name columns of texts, numbers, dates or categories."
            )


def _check_once(names: Sequence[Hashable], name: str) -> None:
    """Raise ValueError if a column is named twice."""
    check_names(names, name)
    double = [column for column, count in Counter(names).items() if count > 1]
    if double:
        raise SdcValueError(f"{name} names columns more than once: {listed(double)}.")


def compared_columns(
    original: Frame, masked: Frame, columns: Any, *, advise: bool = True
) -> tuple[Hashable, ...]:
    """Return the numeric columns in which two frames are compared row by row.

    What is left out is said if `advise` is True.
    """
    names = _in_both(original, masked, columns, is_numeric, "numeric columns", advise=advise)
    why = ", as this needs (linkage(masked, 'gower') and mixed_loss take columns of any kind)"
    meta, other = meta_of(original), meta_of(masked)
    check_numeric(meta, names, why)
    recoded = [name for name in names if not is_numeric(other[name].dtype)]
    if recoded:
        raise SdcTypeError(
            f"columns are numbers in the original, and not in the masked frame, as after "
            f"recoding: {listed(recoded)}. Name in columns= those that are numbers in both; "
            "linkage(masked, 'gower'), mixed_loss and, with columns= or knows=, compare and "
            "reports take columns of any kind."
        )
    return names


def mixed_columns(original: Frame, masked: Frame, columns: Any) -> tuple[Hashable, ...]:
    """Return the columns of any kind in which two frames are compared."""
    return _in_both(original, masked, columns, lambda _: True, "columns")


def check_same_kind(original: Frame, masked: Frame) -> None:
    """Raise an error unless both are pandas frames or both are Dask frames."""
    if type(original) is not type(masked):
        raise SdcTypeError(
            f"masked must be a frame of the kind of the original, which is {_kind_of(original)}, "
            f"received {_kind_of(masked)}: compare pandas with pandas, or Dask with Dask "
            "(a Dask frame becomes pandas by .compute(), and pandas Dask by "
            "dask.dataframe.from_pandas)."
        )


def _in_both(
    original: Frame,
    masked: Frame,
    columns: Any,
    fits: Callable[[Any], bool],
    what: str,
    *,
    advise: bool = True,
) -> tuple[Hashable, ...]:
    """Return the columns that are named, or all of both frames whose dtype fits."""
    check_same_kind(original, masked)
    meta, other = unique_columns(original), unique_columns(masked)
    if columns is None:
        both = [
            column
            for column in meta.columns
            if fits(meta[column].dtype) and column in other.columns
        ]
        names = tuple(column for column in both if not is_mark(column))
        left_out = [column for column in both if column not in names]
        if left_out and advise:
            warn(
                f"columns that look like identifiers or weights are not compared: "
                f"{listed(left_out)}. Name in columns= what was masked.",
                LeftOutAdvice,
            )
        if advise and not is_dask(original) and len(original) >= FEWEST_ADVISED:
            same = [name for name in names if is_unchanged(original[name], masked[name])]
            advise_compared(original, masked, same)
    else:
        names = name_list(columns, "columns")
    if not names:
        raise SdcValueError(f"columns is empty: name {what} that both frames have.")
    existing(meta, names, "columns")
    existing(other, names, "columns", "the masked frame")
    if len(set(names)) < len(names):
        raise SdcValueError(f"columns are named more than once: {listed(names)}.")
    return names


def advise_compared(original: Frame, masked: Frame, unchanged: Sequence[Hashable]) -> None:
    """Warn of columns that are compared, nobody having named them, and are the same.

    A frame that is compared with itself is meant: that is what nothing masked would risk.
    """
    if unchanged and masked is not original:
        warn(
            f"columns are compared that are the same in both frames: {listed(unchanged)}. An "
            "intruder who knows them links records by them, and they lose nothing. Name in "
            "columns= what was masked.",
            UnchangedAdvice,
        )


def compared_series(original: Frame, masked: Frame, series: Any) -> SeriesSets:
    """Return the series in which two frames are compared row by row."""
    sets = series_sets(series)
    compared_columns(original, masked, [name for each in sets.columns for name in each])
    return sets


def _kind_of(frame: Any) -> str:
    """Name the kind of a frame: pandas and Dask both call theirs DataFrame."""
    return f"{type(frame).__module__.split('.')[0]} {type(frame).__name__}"


def listed(columns: Iterable[Hashable]) -> str:
    """Return names for a message."""
    return ", ".join(repr(column) for column in columns)
