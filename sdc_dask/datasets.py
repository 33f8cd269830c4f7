"""Made-up microdata of any size, the same whatever the number of partitions.

Rows come in fixed chunks, and every column of every chunk has a random stream of its own. A
partition is a slice over the chunks, so neither partitioning nor projection changes a value.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.elementary import exp, sin

__all__ = ["survey", "uniform"]

CHUNK_ROWS = 2**16
DEFAULT_PARTITION_ROWS = 2**18

Array = np.ndarray[Any, np.dtype[Any]]


def uniform(
    n: int,
    d: int,
    *,
    low: float = -10_000.0,
    high: float = 10_000.0,
    npartitions: int | None = None,
    seed: int = 0,
) -> dd.DataFrame:
    """Make a lazy frame of independent, uniformly distributed numbers.

    Parameters
    ----------
    n : int
        Number of rows.
    d : int
        Number of columns, named ``x0`` to ``x{d-1}``.
    low, high : float, optional
        The range of the values.
    npartitions : int, optional
        Number of partitions, by default one for every 2**18 rows begun. It does not change the
        values.
    seed : int, optional
        Equal seeds give equal data.

    Returns
    -------
    dask.dataframe.DataFrame
        ``d`` columns of float64 over the index 0 to ``n - 1``, with known divisions.

    Examples
    --------
    >>> from sdc_dask.datasets import uniform
    >>> points = uniform(1_000, 3, npartitions=4)
    >>> points.npartitions, list(points.columns), points.divisions
    (4, ['x0', 'x1', 'x2'], (0, 250, 500, 750, 999))
    >>> values = points.compute()
    >>> values.shape
    (1000, 3)
    >>> bool(values.stack().between(-10_000, 10_000).all())
    True
    """
    d = _positive_int("d", d, "the number of columns")
    low, high = _finite("low", low), _finite("high", high)
    if low >= high:
        raise SdcValueError(
            f"low must be less than high; received low={low!r} and high={high!r}. "
            "Exchange them, or widen the range."
        )
    if not math.isfinite(high - low):
        raise SdcValueError(
            f"high - low must be finite; received low={low!r} and high={high!r}. Narrow the range."
        )
    meta = pd.DataFrame(
        np.empty((0, d)), columns=[f"x{j}" for j in range(d)], index=pd.RangeIndex(0)
    )
    return _lazy_frame(_uniform_rows, meta, n, npartitions, seed, low=low, high=high)


def survey(n: int, *, npartitions: int | None = None, seed: int = 0) -> dd.DataFrame:
    """Make a lazy frame that looks like the answers to a survey of persons.

    It has what makes real microdata hard: identifiers, categories of very different sizes, many
    ties, missing values, skewed and heavy-tailed amounts, and amounts that depend on each other.

    Parameters
    ----------
    n : int
        Number of persons, one per row.
    npartitions : int, optional
        Number of partitions, by default one for every 2**18 rows begun. It does not change the
        values.
    seed : int, optional
        Equal seeds give equal data.

    Returns
    -------
    dask.dataframe.DataFrame
        The columns below over the index 0 to ``n - 1``, with known divisions.

        ============== ============== ==========================================================
        column         dtype          content
        ============== ============== ==========================================================
        ``person``     string         unique identifier, such as ``P000000012``
        ``region``     category       12 known categories, from frequent to rare
        ``sex``        string         ``female`` or ``male``
        ``occupation`` string         missing for persons who do not work
        ``interview``  datetime64     day of the interview
        ``household``  Int64          shared by neighbouring rows; about 2% missing
        ``age``        int64          16 to 95
        ``hours``      float64        worked per week; few distinct values; 0 if not working
        ``income``     float64        per year, whole units; skewed; depends on age and hours
        ``tax``        float64        per year, whole units; progressive in income
        ``wealth``     float64        whole units; heavy tails; negative for some
        ``rent``       float64        per month, in tens; grows with income; about 3% missing
        ============== ============== ==========================================================

    Examples
    --------
    >>> from sdc_dask.datasets import survey
    >>> people = survey(1_000, npartitions=2)
    >>> people["person"].head(3).tolist()
    ['P000000000', 'P000000001', 'P000000002']
    >>> people["region"].cat.known
    True
    >>> ages = people["age"].compute()
    >>> ages.dtype, bool(ages.between(16, 95).all())
    (dtype('int64'), True)
    """
    meta = _survey_rows(0, 0, columns=list(_SURVEY), seed=0)
    return _lazy_frame(_survey_rows, meta, n, npartitions, seed)


def panel(n: int, length: int, *, npartitions: int | None = None, seed: int = 0) -> dd.DataFrame:
    """Make a lazy frame of time series, one per row: turnover by month, say, of many firms.

    Series are positive. Their levels differ by far, most have a season of 12 times, some grow and
    some shrink, and all wander.

    Parameters
    ----------
    n : int
        Number of series.
    length : int
        Number of times, one column for each: ``t0`` to ``t{length-1}``.
    npartitions : int, optional
        Number of partitions, by default one for every 2**18 rows begun. It does not change the
        values.
    seed : int, optional
        Equal seeds give equal data.

    Returns
    -------
    dask.dataframe.DataFrame
        Columns of float64 over the index 0 to ``n - 1``, with known divisions.

    Examples
    --------
    >>> from sdc_dask.datasets import panel
    >>> firms = panel(1_000, 24, npartitions=2).compute()
    >>> firms.shape, bool((firms > 0).all(axis=None))
    ((1000, 24), True)
    """
    length = _positive_int("length", length, "the number of times")
    names = [f"t{j}" for j in range(length)]
    meta = pd.DataFrame(np.empty((0, length)), columns=names, index=pd.RangeIndex(0))
    return _lazy_frame(_panel_rows, meta, n, npartitions, seed, length=length)


# Partitions, chunks and streams


def _lazy_frame(
    make_rows: Callable[..., pd.DataFrame],
    meta: pd.DataFrame,
    n: int,
    npartitions: int | None,
    seed: int,
    **options: float,
) -> dd.DataFrame:
    n = _positive_int("n", n, "the number of rows")
    seed = _seed(seed)
    if npartitions is None:
        npartitions = -(-n // DEFAULT_PARTITION_ROWS)
    npartitions = _positive_int("npartitions", npartitions, "the number of partitions")
    if npartitions > n:
        raise SdcValueError(
            f"npartitions must be at most the number of rows; received npartitions={npartitions} "
            f"for n={n}. Ask for fewer partitions or more rows."
        )
    bounds = [i * n // npartitions for i in range(npartitions + 1)]
    return dd.from_map(
        make_rows,
        bounds[:-1],
        bounds[1:],
        meta=meta,
        divisions=(*bounds[:-1], n - 1),
        seed=seed,
        **options,
    )


def _chunk_pieces(start: int, stop: int) -> Iterator[tuple[int, slice, slice]]:
    """Yield chunk number, rows within the chunk and rows within the partition [start, stop)."""
    for chunk in range(start // CHUNK_ROWS, -(-stop // CHUNK_ROWS)):
        first = chunk * CHUNK_ROWS
        begin, end = max(start, first), min(stop, first + CHUNK_ROWS)
        yield chunk, slice(begin - first, end - first), slice(begin - start, end - start)


def _stream(seed: int, chunk: int, column: int) -> np.random.PCG64:
    # The same stream as SeedSequence([seed, chunk]).spawn(column + 1)[column], without the others.
    return np.random.PCG64(np.random.SeedSequence([seed, chunk], spawn_key=(column,)))


def _uniform_rows(
    start: int, stop: int, *, columns: list[str], seed: int, low: float, high: float
) -> pd.DataFrame:
    values = np.empty((len(columns), stop - start))
    for chunk, in_chunk, in_partition in _chunk_pieces(start, stop):
        for row, column in enumerate(columns):
            bits = _stream(seed, chunk, int(column[1:]))
            # A double takes exactly one step, so the rows before the slice need not be made.
            bits.advance(in_chunk.start)
            piece = values[row, in_partition]
            np.random.Generator(bits).random(out=piece)
            piece *= high - low
            piece += low
    return pd.DataFrame(values.T, columns=columns, index=pd.RangeIndex(start, stop), copy=False)


def _panel_rows(
    start: int, stop: int, *, columns: list[str], seed: int, length: int
) -> pd.DataFrame:
    values = np.empty((stop - start, length))
    for chunk, in_chunk, in_partition in _chunk_pieces(start, stop):
        values[in_partition] = _panel_chunk(seed, chunk, length)[in_chunk]
    picked = [int(name[1:]) for name in columns]
    return pd.DataFrame(
        values[:, picked], columns=columns, index=pd.RangeIndex(start, stop), copy=False
    )


def _panel_chunk(seed: int, chunk: int, length: int) -> Array:
    rng = np.random.Generator(_stream(seed, chunk, 0))
    size = (CHUNK_ROWS, 1)
    level, growth = rng.normal(3.0, 0.7, size), rng.normal(0.0, 0.02, size)
    swing, phase = rng.uniform(0.0, 0.2, size), rng.random(size)
    times = np.arange(length)
    wander = rng.normal(0.0, 0.03, (CHUNK_ROWS, length)).cumsum(axis=1)
    season = swing * sin(2 * np.pi * (times / 12 + phase))
    return exp(level + growth * times + season + wander)


def _survey_rows(start: int, stop: int, *, columns: list[str], seed: int) -> pd.DataFrame:
    raw = {name: np.empty(stop - start, _SURVEY[name].raw_dtype) for name in columns}
    for chunk, in_chunk, in_partition in _chunk_pieces(start, stop):
        made = _SurveyChunk(seed, chunk)
        for name, values in raw.items():
            values[in_partition] = made[name][in_chunk]
    return pd.DataFrame(
        {name: _SURVEY[name].finish(values) for name, values in raw.items()},
        columns=columns,
        index=pd.RangeIndex(start, stop),
        copy=False,
    )


# The columns of the survey

_REGION_WEIGHTS = {
    "Capital": 26.0,
    "North": 16.0,
    "South": 13.0,
    "East": 11.0,
    "West": 9.0,
    "Centre": 7.5,
    "Coast": 6.0,
    "Lakes": 4.5,
    "Hills": 3.5,
    "Valley": 2.0,
    "Islands": 1.0,
    "Border": 0.5,
}
_SEX_WEIGHTS = {"female": 51.0, "male": 49.0}
_OCCUPATION_WEIGHTS = {
    "services": 21.0,
    "sales": 14.0,
    "clerk": 13.0,
    "technician": 12.0,
    "teacher": 9.0,
    "craft": 9.0,
    "driver": 8.0,
    "nurse": 6.0,
    "manager": 5.0,
    "farmer": 2.0,
    "physician": 0.9,
    "judge": 0.1,
}
_AGES = np.arange(16, 96)
_AGE_WEIGHTS = np.array([math.exp(-((max(age - 60, 0) / 20.0) ** 2)) for age in _AGES.tolist()])
_PENSION_AGE = 66
_WORKER_HOURS_WEIGHTS = {
    40.0: 34.0,
    37.5: 22.0,
    35.0: 10.0,
    20.0: 9.0,
    30.0: 7.0,
    45.0: 6.0,
    50.0: 5.0,
    15.0: 3.0,
    60.0: 2.0,
    10.0: 1.5,
    8.0: 0.5,
}
_TAX_BRACKETS = ((10_000.0, 0.15), (30_000.0, 0.15), (80_000.0, 0.12))
_FIRST_INTERVIEW = np.datetime64("2025-01-01", "us")
_STRING = pd.StringDtype("pyarrow", na_value=pd.NA)
_MISSING = -1


class _SurveyChunk(dict[str, Array]):
    """The raw columns of one chunk, each made when it is first asked for."""

    def __init__(self, seed: int, chunk: int) -> None:
        super().__init__()
        self.seed = seed
        self.chunk = chunk

    def __missing__(self, name: str) -> Array:
        rng = np.random.Generator(_stream(self.seed, self.chunk, _STREAM[name]))
        self[name] = _SURVEY[name].draw(rng, self)
        return self[name]


class _Column(NamedTuple):
    draw: Callable[[np.random.Generator, _SurveyChunk], Array]
    raw_dtype: str
    finish: Callable[[Array], Any]


def _draw_weighted(rng: np.random.Generator, weights: Iterable[float]) -> Array:
    """Draw positions with the given weights."""
    shares = np.cumsum(np.fromiter(weights, float))
    # The last bound is left out: rounding must not let a draw fall beyond it.
    return np.searchsorted(shares[:-1] / shares[-1], rng.random(CHUNK_ROWS), side="right")


def _draw_person(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    return np.arange(chunk.chunk * CHUNK_ROWS, (chunk.chunk + 1) * CHUNK_ROWS)


def _draw_region(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    return _draw_weighted(rng, _REGION_WEIGHTS.values())


def _draw_sex(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    return _draw_weighted(rng, _SEX_WEIGHTS.values())


def _draw_occupation(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    codes = _draw_weighted(rng, _OCCUPATION_WEIGHTS.values())
    return np.where(chunk["hours"] > 0, codes, _MISSING)


def _draw_interview(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    return _FIRST_INTERVIEW + rng.integers(0, 365, CHUNK_ROWS).astype("timedelta64[D]")


def _draw_household(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    begins_household = rng.random(CHUNK_ROWS) < 0.45
    # A chunk has at most CHUNK_ROWS + 1 households, so numbers never meet those of the next chunk.
    numbers_in_chunk = np.cumsum(begins_household)
    household = chunk.chunk * (CHUNK_ROWS + 1) + numbers_in_chunk
    return np.where(rng.random(CHUNK_ROWS) < 0.02, _MISSING, household)


def _draw_age(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    return _AGES[_draw_weighted(rng, _AGE_WEIGHTS)]


def _draw_hours(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    hours = np.fromiter(_WORKER_HOURS_WEIGHTS, float)
    works = rng.random(CHUNK_ROWS) < np.where(chunk["age"] < _PENSION_AGE, 0.78, 0.06)
    return np.where(works, hours[_draw_weighted(rng, _WORKER_HOURS_WEIGHTS.values())], 0.0)


def _draw_income(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    age, hours = chunk["age"], chunk["hours"]
    experience = np.minimum(age, _PENSION_AGE) - 16.0
    wage = 11.0 + 0.75 * experience - 0.009 * experience**2
    benefit = np.where(age < _PENSION_AGE, 4_000.0, 14_000.0)
    return np.round((52.0 * wage * hours + benefit) * rng.lognormal(0.0, 0.55, CHUNK_ROWS))


def _draw_tax(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    tax = np.zeros(CHUNK_ROWS)
    for threshold, added_rate in _TAX_BRACKETS:
        tax += added_rate * np.maximum(chunk["income"] - threshold, 0.0)
    return np.round(tax * rng.uniform(0.85, 1.0, CHUNK_ROWS))


def _draw_wealth(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    assets = 1_500.0 * chunk["age"] * rng.pareto(1.7, CHUNK_ROWS)
    debts = rng.exponential(25_000.0, CHUNK_ROWS)
    return np.round(assets - debts)


def _draw_rent(rng: np.random.Generator, chunk: _SurveyChunk) -> Array:
    rent = (300.0 + 3.0 * np.sqrt(chunk["income"])) * rng.uniform(0.6, 1.5, CHUNK_ROWS)
    return np.where(rng.random(CHUNK_ROWS) < 0.03, np.nan, 10.0 * np.round(rent / 10.0))


def _as_is(values: Array) -> Array:
    return values


def _as_person(rows: Array) -> Any:
    digits = pc.utf8_lpad(pa.array(rows).cast(pa.large_string()), 9, "0")
    text = [pa.scalar(part, pa.large_string()) for part in ("P", "")]
    return pd.array(pc.binary_join_element_wise(text[0], digits, text[1]), dtype=_STRING)


def _as_region(codes: Array) -> pd.Categorical:
    return pd.Categorical.from_codes(codes, list(_REGION_WEIGHTS), validate=False)


def _as_text(labels: dict[str, float], codes: Array) -> Any:
    words = pa.array(list(labels), pa.large_string())
    return pd.array(words.take(pa.array(codes, mask=codes == _MISSING)), dtype=_STRING)


def _as_nullable(values: Array) -> Any:
    return pd.arrays.IntegerArray(values, values == _MISSING)


# The position of a column is the number of its random stream: append, never reorder.
_SURVEY = {
    "person": _Column(_draw_person, "int64", _as_person),
    "region": _Column(_draw_region, "int8", _as_region),
    "sex": _Column(_draw_sex, "int8", partial(_as_text, _SEX_WEIGHTS)),
    "occupation": _Column(_draw_occupation, "int8", partial(_as_text, _OCCUPATION_WEIGHTS)),
    "interview": _Column(_draw_interview, "datetime64[us]", _as_is),
    "household": _Column(_draw_household, "int64", _as_nullable),
    "age": _Column(_draw_age, "int64", _as_is),
    "hours": _Column(_draw_hours, "float64", _as_is),
    "income": _Column(_draw_income, "float64", _as_is),
    "tax": _Column(_draw_tax, "float64", _as_is),
    "wealth": _Column(_draw_wealth, "float64", _as_is),
    "rent": _Column(_draw_rent, "float64", _as_is),
}
_STREAM = {name: position for position, name in enumerate(_SURVEY)}


# Arguments


def _integer(name: str, value: object, advice: str) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise SdcTypeError(
            f"{name} must be an integer; received {value!r} of type {type(value).__name__}. "
            f"{advice}"
        )
    return int(value)


def _positive_int(name: str, value: object, meaning: str) -> int:
    advice = f"Give {meaning} as a whole number, 1 or more."
    number = _integer(name, value, advice)
    if number < 1:
        raise SdcValueError(f"{name} must be at least 1; received {number}. {advice}")
    return number


def _seed(value: object) -> int:
    advice = "Give a whole number, 0 or more."
    number = _integer("seed", value, advice)
    if number < 0:
        raise SdcValueError(f"seed must not be negative; received {number}. {advice}")
    return number


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise SdcTypeError(
            f"{name} must be a number; received {value!r} of type {type(value).__name__}. "
            "Give a finite real number."
        )
    if not math.isfinite(value):
        raise SdcValueError(
            f"{name} must be finite; received {value!r}. Give a finite real number."
        )
    return float(value)
