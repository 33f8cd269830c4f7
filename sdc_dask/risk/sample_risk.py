"""Risk of samples: how rare a record is in the population that it was drawn from.

References
----------
R. Benedetti, L. Franconi, "Statistical and technological solutions for controlled data
dissemination", Pre-proceedings of New Techniques and Technologies for Statistics, 1998.

L. Franconi, S. Polettini, "Individual risk estimation in mu-Argus: a review", Privacy in
Statistical Databases, LNCS 3050, 2004.

M. Templ, A. Kowarik, B. Meindl, "Statistical disclosure control for micro-data using the R package
sdcMicro", Journal of Statistical Software 67(4), 2015.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.class_tables import (
    DIGITS,
    OTHER_VALUES,
    ClassTable,
    Keys,
    add_up,
    exponent_above,
    from_digits,
    look_up,
    merged_tables,
    to_digits,
)
from sdc_dask.engine.classes import cell_words
from sdc_dask.engine.columns import check_numeric, missing_cells, to_float
from sdc_dask.engine.frames import (
    Calls,
    Frame,
    Task,
    from_partitions,
    map_partitions,
    map_reduce,
    meta_of,
    partition_indexes,
)
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.classes import record_keys
from sdc_dask.kernels.elementary import expm1, log, log1p
from sdc_dask.kernels.exact import ExactSum, exact_sum
from sdc_dask.results import Result

METHODS = "approximation", "exact"
MISSING = "category", "any"

# A record with missing cells is looked up once for each pattern of missing cells that there is.
MOST_PATTERNS = 64

# 2**-_TERMS is below all that float64 can tell, and so are 1 / C(2 _TERMS, _TERMS) and the like.
_TERMS = 56

_EXPONENT = 7  # of logarithms: a household of which one member is certain has at least 64
_CERTAIN = 64.0
_UNIT = 1074  # exact sums count units of 2**-1074


@dataclass(frozen=True, repr=False)
class SampleRisk(Result):
    """How likely records of a sample are to be re-identified in the population."""

    rows: int = field(metadata={"note": "records"})
    population: float = field(metadata={"note": "records of the population, by the weights"})
    expected: float = field(metadata={"note": "re-identifications to expect: lower is safer"})
    percent: float = field(metadata={"note": "the same in percent of the records"})
    highest: float = field(metadata={"note": "risk of the record that is most at risk"})
    uniques: int = field(metadata={"note": "records whose combination no other has"})
    pairs: int = field(metadata={"note": "records whose combination one other has"})
    threshold: float = field(metadata={"note": "the risk that was asked for"})
    above: int = field(metadata={"note": "records with a higher risk: 0 is safe"})
    households: int | None = field(metadata={"note": "households"})
    household_expected: float | None = field(
        metadata={"note": "records in re-identified households to expect: lower is safer"}
    )
    household_percent: float | None = field(metadata={"note": "the same in percent of the records"})
    household_above: int | None = field(
        metadata={"note": "records of households with a higher risk than the threshold"}
    )
    note: str = field(metadata={"note": ""})


def individual_risk(
    frequency: NDArray[np.int64], population: NDArray[np.float64], method: str = "approximation"
) -> NDArray[np.float64]:
    """Return the risk of records by how many share their combination of values.

    Parameters
    ----------
    frequency : ndarray of int64
        f, the records of the sample with the combination.
    population : ndarray of float64
        F, those of the population, as the weights of the former estimate them.
    method : {"approximation", "exact"}, default "approximation"
        See Notes.

    Returns
    -------
    ndarray of float64

    Notes
    -----
    The risk is the mean of 1 / F given f, where F has a negative binomial distribution with the
    probability p = f / F that a record is drawn (Benedetti and Franconi). It is

        r = (p / f) 2F1(1, 1; f + 1; 1 - p)

    with the hypergeometric function, which is p / (1 - p) log(1 / p) for f = 1, and
    p / (1 - p) - (p / (1 - p))**2 log(1 / p) for f = 2. From f = 3 on, mu-Argus and sdcMicro take
    p / (f - (1 - p)): the default here, which is up to 4.04 percent too high. If the weights add up
    to f or less, the sample is the population, and r = 1 / f.

    Examples
    --------
    >>> import numpy as np
    >>> individual_risk(np.array([1, 2, 3]), np.array([17.0, 110.0, 108.0])).round(5)
    array([0.17708, 0.01714, 0.0137 ])
    """
    p = np.minimum(frequency / population, 1.0)
    if method == "exact":
        return _mean_inverse(frequency, p)
    risk = p / (frequency - (1 - p))
    few = frequency <= 2
    risk[few] = _mean_inverse(frequency[few], p[few])
    return risk


def _mean_inverse(f: NDArray[np.int64], p: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the mean of 1 / F.

    By p r(f) + (1 - p) r(f + 1) = p / f, which begins with the logarithm of f = 1 and makes no
    error larger if p is below a half; else, and for a large f, by the hypergeometric series, of
    which a term follows from the one before by a factor of (1 - p) j / (f + j).
    """
    risk = np.empty(len(f))
    steps = (p < 0.5) & (f < _TERMS)
    few, odds = f[steps], p[steps] / (1 - p[steps])
    current = -odds * log(p[steps])
    for known in range(1, int(few.max(initial=1))):
        current = np.where(few > known, odds * (1 / known - current), current)
    risk[steps] = current
    many, z = f[~steps], 1 - p[~steps]
    total, term = np.ones(len(many)), np.ones(len(many))
    for j in range(1, _TERMS):
        term = term * (z * j / (many + j))
        total += term
    risk[~steps] = p[~steps] / many * total
    return risk


def sample_risk(
    frame: Frame,
    keys: Sequence[Hashable],
    weights: Hashable | None = None,
    *,
    household: Hashable | Sequence[Hashable] | None = None,
    threshold: float = 0.1,
    method: str = "approximation",
    missing: str = "category",
) -> SampleRisk:
    """Estimate how many records of a sample an intruder re-identifies in the population."""
    threshold = arguments.number(threshold, "threshold", 0.0, 1.0)
    asked = _Asked.of(frame, keys, weights, household, method, missing)
    call, risks, tables = _record_risks(frame, asked)
    summaries = [call(_summary_of, each, threshold) for each in risks]
    counted = [call(_count_classes, each) for each in tables]
    found, classes = call.compute([call.merge(summaries, _merge_summaries), call(sum, counted)])
    return _result(found, asked, threshold, classes)


def _result(found: _Summary, asked: _Asked, threshold: float, households: int) -> SampleRisk:
    total, affected = found.risk / (1 << _UNIT), found.household / (1 << _UNIT)
    shared = bool(asked.household)
    return SampleRisk(
        found.rows,
        asked.population,
        total,
        100 * total / found.rows,
        found.highest,
        found.uniques,
        found.pairs,
        threshold,
        found.above,
        households if shared else None,
        affected if shared else None,
        100 * affected / found.rows if shared else None,
        found.household_above if shared else None,
        asked.note,
    )


def sample_risk_by_record(
    frame: Frame,
    keys: Sequence[Hashable],
    weights: Hashable | None = None,
    *,
    household: Hashable | Sequence[Hashable] | None = None,
    method: str = "approximation",
    missing: str = "category",
) -> Frame:
    """Return the frequencies and the risk of every record of a sample."""
    asked = _Asked.of(frame, keys, weights, household, method, missing)
    call, risks, _ = _record_risks(frame, asked)
    rows = partition_indexes(frame)
    parts = [call(_to_frame, *both) for both in zip(rows, risks, strict=True)]
    none = np.zeros(0)
    empty = _Risks(none.astype(np.int64), none, none, none if asked.household else None)
    meta = _to_frame(meta_of(frame).index, empty)
    return from_partitions(parts, meta, frame)


# What is asked for


class _Weighed(NamedTuple):
    """What one pass tells of weights, households and missing cells."""

    rows: int
    sums: ExactSum
    largest: float
    wrong: Counter[str]  # what cannot be used
    patterns: frozenset[int]  # of missing cells: a bit for each key


@dataclass(frozen=True)
class _Asked:
    """Columns, how risks are estimated, and what is known of the weights."""

    keys: tuple[Hashable, ...]
    weights: Hashable | None
    household: tuple[Hashable, ...]
    method: str
    patterns: tuple[int, ...]  # () if missing cells are a category
    exponent: int
    population: float

    @classmethod
    def of(
        cls, frame: Frame, keys: Any, weights: Any, household: Any, method: Any, missing: Any
    ) -> _Asked:
        """Check what a caller says, and in one pass what the weights and households are."""
        meta = arguments.unique_columns(frame)
        names = arguments.key_columns(meta, keys)
        members = arguments.name_list(household, "household")
        arguments.existing(meta, members, "household")
        arguments.one_of(method, "method", METHODS)
        arguments.one_of(missing, "missing", MISSING)
        if weights is not None:
            arguments.existing(meta, [weights], "weights")
            check_numeric(meta, [weights], ", as weights are")
            if weights in (*names, *members):
                raise SdcValueError(
                    f"weights names column {weights!r}, which keys or household name, too: a "
                    "weight says how many records of the population one stands for."
                )
        elif method == "exact":
            raise SdcValueError(
                "method='exact' has a meaning with weights alone: without them the frame is the "
                "population, and a risk is 1 / f."
            )
        if missing == "any" and len(names) > 62:
            raise SdcValueError(
                f"missing='any' takes 62 keys at most, received {len(names)}: leave some out."
            )
        needed = [*names, *members] if weights is None else [*names, *members, weights]
        weighed = map_reduce(
            frame[list(dict.fromkeys(needed))],
            _weigh,
            _merge_weighed,
            names if missing == "any" else (),
            weights,
            members,
        )
        _check(weighed, weights, members)
        population = float(weighed.rows)
        if weights is not None:
            population = weighed.sums.total / (1 << _UNIT)
        return cls(
            names,
            weights,
            members,
            method,
            tuple(sorted(weighed.patterns)) if missing == "any" else (),
            exponent_above(weighed.largest),
            population,
        )

    @property
    def columns(self) -> list[Hashable]:
        """The columns that are read."""
        weights = [] if self.weights is None else [self.weights]
        return list(dict.fromkeys([*self.keys, *self.household, *weights]))

    @property
    def note(self) -> str:
        """What the figures rest on, in words."""
        if self.weights is None:
            said = "without weights: the frame is taken for the population"
        elif self.method == "exact":
            said = "risks by the hypergeometric function"
        else:
            said = "risks as in mu-Argus and sdcMicro"
        return f"{said}; missing cells match any value" if self.patterns else said


def _weigh(
    part: pd.DataFrame,
    _number: int,
    keys: tuple[Hashable, ...],
    weights: Hashable | None,
    household: tuple[Hashable, ...],
) -> _Weighed:
    wrong: Counter[str] = Counter()
    values = np.ones(0)
    if weights is not None:
        values = to_float(part, [weights])[:, 0]
        wrong["missing"] = int(np.isnan(values).sum())
        wrong["infinite"] = int(np.isinf(values).sum())
        wrong["not positive"] = int((values <= 0).sum())
        values = values[np.isfinite(values)]
    for name in household:
        wrong["household"] += int(missing_cells(part[name]).sum())
    patterns = frozenset(np.unique(_patterns(part, keys)).tolist()) if keys else frozenset()
    return _Weighed(len(part), exact_sum(values), float(values.max(initial=1.0)), wrong, patterns)


def _merge_weighed(parts: list[_Weighed]) -> _Weighed:
    rows, sums, largest, wrong, patterns = zip(*parts, strict=True)
    return _Weighed(
        sum(rows),
        sum(sums, ExactSum()),
        max(largest),
        sum(wrong, Counter()),
        frozenset().union(*patterns),
    )


def _check(weighed: _Weighed, weights: Hashable | None, household: Sequence[Hashable]) -> None:
    if weighed.rows == 0:
        raise SdcValueError("the frame has no records: there is no risk to estimate.")
    for what in ("missing", "infinite", "not positive"):
        if weighed.wrong[what]:
            raise SdcValueError(
                f"column {weights!r} has {weighed.wrong[what]} weights that are {what}: a weight "
                "says how many records of the population one stands for. Correct them, or drop "
                "those records first."
            )
    if weighed.wrong["household"]:
        raise SdcValueError(
            f"household has {weighed.wrong['household']} missing cells in "
            f"{arguments.listed(household)}: give each record that lives alone a household of its "
            "own."
        )
    if len(weighed.patterns) > MOST_PATTERNS:
        raise SdcValueError(
            f"missing='any' takes {MOST_PATTERNS} patterns of missing cells at most, and there are "
            f"{len(weighed.patterns)}: every record is looked up once for each of them. Leave "
            "missing='category', or name fewer keys."
        )


# Records that match


def _patterns(part: pd.DataFrame, keys: Sequence[Hashable]) -> NDArray[np.int64]:
    """Return a bit for every missing cell of a record."""
    found = np.zeros(len(part), np.int64)
    for j, name in enumerate(keys):
        found |= missing_cells(part[name]).astype(np.int64) << j
    return found


class _Cells(NamedTuple):
    """The bits of the keys of a partition, by column."""

    words: list[Keys]
    pattern: NDArray[np.int64]

    @classmethod
    def of(cls, part: pd.DataFrame, asked: _Asked) -> _Cells:
        pattern = _patterns(part, asked.keys) if asked.patterns else np.zeros(0, np.int64)
        return cls([cell_words(part[name]) for name in asked.keys], pattern)

    def keys(self, rows: NDArray[np.int64], pattern: int, ignored: int) -> Keys:
        """Return keys of rows without some columns, for records of a pattern alone."""
        tags = [np.full(len(rows), each, np.uint64) for each in (pattern, ignored)]
        seen = [each for j, each in enumerate(self.words) if not ignored >> j & 1]
        return record_keys(
            [
                *((tag, tag) for tag in tags),
                *((first[rows], second[rows]) for first, second in seen),
            ]
        )


def _join(keys: list[Keys]) -> Keys:
    first, second = (np.concatenate(each) for each in zip(*keys, strict=True))
    return first, second


def _brought(part: pd.DataFrame, _number: int, asked: _Asked) -> ClassTable:
    """Add up the records and weights of a partition by class.

    If missing cells match anything, a record of pattern Q matches one of pattern P if both agree
    in the columns that neither lacks: it is counted in those, for each P that there is.
    """
    cells = _Cells.of(part, asked)
    weights = np.ones(len(part)) if asked.weights is None else to_float(part, [asked.weights])[:, 0]
    values = np.empty((len(part), 1 + DIGITS), np.int64)
    values[:, 0] = 1
    values[:, 1:] = to_digits(weights, asked.exponent)
    if not asked.patterns:
        return add_up(record_keys(cells.words), values)
    keys, rows = [], []
    for pattern in np.unique(cells.pattern).tolist():
        having = np.flatnonzero(cells.pattern == pattern)
        for ignored in sorted({pattern | other for other in asked.patterns}):
            keys.append(cells.keys(having, pattern, ignored))
            rows.append(having)
    if not keys:
        return add_up(record_keys(cells.words), values)
    return add_up(_join(keys), values[np.concatenate(rows)])


def _wanted(part: pd.DataFrame, _number: int, asked: _Asked) -> Keys:
    """Return the keys that records look up: one each, or one for each pattern."""
    cells = _Cells.of(part, asked)
    if not asked.patterns:
        return record_keys(cells.words)
    first = np.empty((len(part), len(asked.patterns)), np.uint64)
    second = np.empty_like(first)
    for own in np.unique(cells.pattern).tolist():
        having = np.flatnonzero(cells.pattern == own)
        for j, other in enumerate(asked.patterns):
            first[having, j], second[having, j] = cells.keys(having, other, own | other)
    return first.ravel(), second.ravel()


class _Risks(NamedTuple):
    """What is known of the records of a partition."""

    frequency: NDArray[np.int64]
    population: NDArray[np.float64]
    risk: NDArray[np.float64]
    household: NDArray[np.float64] | None


def _risks_of(found: NDArray[np.int64], asked: _Asked) -> _Risks:
    sums = found.reshape(-1, max(len(asked.patterns), 1), 1 + DIGITS).sum(axis=1)
    frequency, population = sums[:, 0], from_digits(sums[:, 1:], asked.exponent)
    if (frequency == 0).any():
        raise SdcRuntimeError(OTHER_VALUES)
    return _Risks(frequency, population, individual_risk(frequency, population, asked.method), None)


def _record_risks(frame: Frame, asked: _Asked) -> tuple[Calls, list[Task], list[Task]]:
    """Return the risks of records by partition, and tables of households by range."""
    call = Calls.of(frame)
    needed = frame[asked.columns]
    tables = call.persist(merged_tables(call, map_partitions([needed], _brought, asked)))
    wanted = map_partitions([needed], _wanted, asked)
    risks = [call(_risks_of, look_up(call, each, tables), asked) for each in wanted]
    if not asked.household:
        return call, risks, []
    homes = map_partitions([frame[list(asked.household)]], _homes, asked)
    sums = [call(_in_household, *both) for both in zip(homes, risks, strict=True)]
    households = call.persist(merged_tables(call, sums))
    found = [look_up(call, each, households) for each in homes]
    together = [call(_with_household, *both) for both in zip(risks, found, strict=True)]
    return call, together, households


# Households


def _homes(part: pd.DataFrame, _number: int, asked: _Asked) -> Keys:
    return record_keys([cell_words(part[name]) for name in asked.household])


def _in_household(keys: Keys, risks: _Risks) -> ClassTable:
    """Add up the logarithms of the probabilities that members are not re-identified."""
    safe = np.minimum(-log1p(-risks.risk), _CERTAIN)
    return add_up(keys, to_digits(safe, _EXPONENT))


def _with_household(risks: _Risks, found: NDArray[np.int64]) -> _Risks:
    return risks._replace(household=-expm1(-from_digits(found, _EXPONENT)))


def _count_classes(table: ClassTable) -> int:
    return len(table.first)


# Results


class _Summary(NamedTuple):
    rows: int
    risk: int  # exact sums
    household: int
    highest: float
    uniques: int
    pairs: int
    above: int
    household_above: int


def _summary_of(risks: _Risks, threshold: float) -> _Summary:
    household = np.zeros(0) if risks.household is None else risks.household
    return _Summary(
        len(risks.risk),
        exact_sum(risks.risk).total,
        exact_sum(household).total,
        float(risks.risk.max(initial=0)),
        int((risks.frequency == 1).sum()),
        int((risks.frequency == 2).sum()),
        int((risks.risk > threshold).sum()),
        int((household > threshold).sum()),
    )


def _merge_summaries(parts: list[_Summary]) -> _Summary:
    rows, risk, household, highest, *counts = zip(*parts, strict=True)
    return _Summary(
        sum(rows), sum(risk), sum(household), max(highest), *(sum(each) for each in counts)
    )


def _to_frame(index: pd.Index, risks: _Risks) -> pd.DataFrame:
    columns = {
        "frequency": risks.frequency,
        "population": risks.population,
        "risk": risks.risk,
    }
    if risks.household is not None:
        columns["household_risk"] = risks.household
    return pd.DataFrame(columns, index=index)
