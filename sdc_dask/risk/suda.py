"""Special uniques: records that few of their keys single out (SUDA).

References
----------
M. J. Elliot, A. Manning, K. Mayes, J. Gurd, M. Bane, "SUDA: a program for detecting special
uniques", Joint UNECE/Eurostat Work Session on Statistical Data Confidentiality, 2005.

A. M. Manning, D. J. Haglin, J. A. Keane, "A recursive search algorithm for statistical disclosure
assessment", Data Mining and Knowledge Discovery 16 (2008).

C. J. Skinner, M. J. Elliot, "A measure of disclosure risk for microdata", Journal of the Royal
Statistical Society B 64 (2002).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.class_tables import OTHER_VALUES, Keys
from sdc_dask.engine.columns import missing_cells
from sdc_dask.engine.frames import (
    Calls,
    Frame,
    Task,
    from_partitions,
    map_partitions,
    meta_of,
    partition_indexes,
)
from sdc_dask.errors import SdcRuntimeError, SdcValueError
from sdc_dask.kernels.classes import ClassCounts, find_keys
from sdc_dask.kernels.elementary import power
from sdc_dask.results import Result
from sdc_dask.risk.subsets import (
    Census,
    Different,
    Subset,
    batches,
    count_all,
    count_subsets,
    key_names,
    subsets_of,
)

SCORES = "elliot", "ihsn"
MISSING = "category", "ignore"

_CELLS = 2**24  # records times subsets that are looked at together


@dataclass(frozen=True, repr=False)
class Suda(Result):
    """Minimal sample uniques, and what each key contributes to the scores of records."""

    rows: int = field(metadata={"note": "records"})
    uniques: int = field(metadata={"note": "records that no other equals in all keys"})
    special: int = field(metadata={"note": "records that some of the keys single out, too"})
    msus: int = field(metadata={"note": "minimal sets of keys that single out a record"})
    max_size: int = field(metadata={"note": "keys of the largest sets that were looked at"})
    highest: float = field(metadata={"note": "highest score of a record: lower is safer"})
    dis: float = field(metadata={"note": "probability that a unique match is right"})
    highest_dis: float = field(metadata={"note": "highest DIS-SUDA score: lower is safer"})
    sizes: dict[int, int]  # msus by their number of keys
    contributions: dict[Hashable, float]  # percent of all scores that come from sets with the key

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each key: what it contributes to scores, in percent."""
        return pd.DataFrame(
            {"key": list(self.contributions), "contribution": list(self.contributions.values())}
        )


def suda(
    frame: Frame,
    keys: Sequence[Hashable],
    *,
    max_size: int | None = None,
    fraction: float = 0.01,
    scores: str = "elliot",
    missing: str = "category",
) -> Suda:
    """Find the minimal sets of keys that single out records, and score them."""
    found = _Found.of(frame, keys, max_size, fraction, scores, missing)
    totals, scoring = found.totals, found.scoring
    by_size = totals.by_size.sum(axis=0)
    all_scores = sum(int(n) * w for n, w in zip(by_size, scoring.weights, strict=True))
    contributions = {}
    for name, row in zip(found.keys, totals.by_key, strict=True):
        part = sum(int(n) * w for n, w in zip(row, scoring.weights, strict=True))
        contributions[name] = float(100 * part / all_scores) if all_scores else 0.0
    highest = max(totals.scores, default=0.0)
    return Suda(
        found.census.rows,
        scoring.uniques,
        totals.special,
        int(by_size.sum()),
        len(scoring.weights),
        highest,
        scoring.dis,
        float(scoring.dis_scores(np.array([highest]))[0]),
        {size: int(number) for size, number in enumerate(by_size, 1)},
        contributions,
    )


def suda_by_record(
    frame: Frame,
    keys: Sequence[Hashable],
    *,
    max_size: int | None = None,
    fraction: float = 0.01,
    scores: str = "elliot",
    missing: str = "category",
) -> Frame:
    """Return the SUDA and DIS-SUDA scores of every record."""
    found = _Found.of(frame, keys, max_size, fraction, scores, missing)
    rows = partition_indexes(frame)
    parts = [
        found.call(_to_frame, *both, found.scoring) for both in zip(rows, found.msus, strict=True)
    ]
    sizes = len(found.scoring.weights)
    none = _Msus(0, np.zeros(0, np.int64), *np.zeros((2, 0, sizes), np.int64))
    meta = _to_frame(meta_of(frame).index, none, found.scoring)
    return from_partitions(parts, meta, frame)


# What is found


class _Msus(NamedTuple):
    """The records of a partition that have minimal sample uniques."""

    n: int  # records of the partition
    rows: NDArray[np.int64]
    by_size: NDArray[np.int64]  # a row for each record
    by_key: NDArray[np.int64]  # of all records: a row for each key, by size


class _Totals(NamedTuple):
    """The same of all partitions, without the records."""

    special: int
    by_size: NDArray[np.int64]  # one row
    by_key: NDArray[np.int64]
    scores: Counter[float]  # records by score


@dataclass(frozen=True)
class _Scoring:
    """What sets of one, two, ... keys count, and how scores become DIS-SUDA scores."""

    weights: tuple[Fraction, ...]
    keys: int
    uniques: int
    dis: float
    total: float = 0.0

    @classmethod
    def of(cls, keys: int, sizes: int, census: Census, fraction: float, scores: str) -> _Scoring:
        """Choose the weights of sets, and measure the risk of the file.

        DIS is the probability that a match with a unique record is right: by the uniques and
        pairs of a sample of which as large a part is drawn again.
        """
        if scores == "elliot":
            last = min(sizes, keys - 1)
            products = [
                math.prod(keys - i for i in range(k, last + 1)) for k in range(1, sizes + 1)
            ]
            weights = [Fraction(each) for each in products]
        else:
            weights = [
                Fraction(2 ** (keys - k) - 1, math.comb(keys, k)) for k in range(1, sizes + 1)
            ]
        uniques, paired = census.classes_of(1), 2 * census.classes_of(2)
        right = uniques * fraction
        dis = right / (right + paired * (1 - fraction)) if uniques else 0.0
        return cls(tuple(weights), keys, uniques, dis)

    @property
    def power(self) -> float:
        """How much higher scores count more, for so many keys."""
        return 1 + (8 - self.keys) / 20

    def scores(self, by_size: NDArray[np.int64]) -> NDArray[np.float64]:
        """Return the scores of records, added up in the order of sizes."""
        found = np.zeros(len(by_size))
        for j, weight in enumerate(self.weights):
            found += by_size[:, j] * float(weight)
        return found

    def with_total(self, scores: Counter[float]) -> _Scoring:
        """Return the same, knowing the scores of all records."""
        total = math.fsum(n / score**self.power for score, n in sorted(scores.items()) if score)
        return _Scoring(self.weights, self.keys, self.uniques, self.dis, total)

    def dis_scores(self, scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return DIS-SUDA scores: DIS, shared out by the scores of records."""
        found = np.zeros(len(scores))
        some = scores > 0
        if some.any():
            odds = self.uniques / self.dis - self.uniques
            found[some] = 1 / (1 + odds / (power(scores[some], self.power) * self.total))
        return found


@dataclass(frozen=True)
class _Found:
    """All minimal sample uniques of a frame."""

    call: Calls
    keys: tuple[Hashable, ...]
    census: Census
    scoring: _Scoring
    msus: list[Task]  # by partition
    totals: _Totals

    @classmethod
    def of(
        cls, frame: Frame, keys: Any, max_size: Any, fraction: Any, scores: Any, missing: Any
    ) -> _Found:
        """Check what a caller says, and find them."""
        names = key_names(frame, keys)
        arguments.one_of(scores, "scores", SCORES)
        arguments.one_of(missing, "missing", MISSING)
        fraction = arguments.number(fraction, "fraction", 0.0, 1.0)
        if fraction == 0:
            raise SdcValueError("fraction must be above 0: it is the share that was sampled.")
        sizes = len(names)
        if max_size is not None:
            sizes = arguments.whole_number(max_size, "max_size", 1)
            if sizes > len(names):
                raise SdcValueError(
                    f"max_size must be at most the number of keys, {len(names)}, received {sizes}."
                )
        subsets = subsets_of(len(names), range(1, sizes + 1))
        census = count_all(frame, names)
        scoring = _Scoring.of(len(names), sizes, census, fraction, scores)
        call = Calls.of(frame)
        flags: list[list[Task]] = []  # by batch and partition
        for batch in batches(subsets, census):
            alone = call.persist(
                [call(_alone, each) for each in count_subsets(frame, names, batch)]
            )
            wanted = map_partitions(
                [frame[list(names)]], _wanted, list(names), batch, missing == "ignore"
            )
            flags.append(
                call.persist(
                    [
                        call(_flags, each, [call(_find, each, some) for some in alone])
                        for each in wanted
                    ]
                )
            )
        by_partition = [list(each) for each in zip(*flags, strict=True)]
        msus = call.persist([call(_msus, each, subsets, len(names)) for each in by_partition])
        totals = call.compute(call.merge([call(_totals, each, scoring) for each in msus], _merge))
        return cls(call, names, census, scoring.with_total(totals.scores), msus, totals)


# Records that are unique in subsets of the keys


class _Wanted(NamedTuple):
    """Records of a partition that may be unique, and their keys in each subset."""

    n: int
    rows: NDArray[np.int64]
    keys: list[Keys]
    present: list[NDArray[np.bool_]]  # by subset: which of them count


class _Flags(NamedTuple):
    """Which subsets single out which records: a bit for each."""

    n: int
    rows: NDArray[np.int64]
    bits: NDArray[np.uint8]
    subsets: int


def _alone(counts: list[ClassCounts]) -> list[ClassCounts]:
    """Return the classes of one record."""
    return [ClassCounts(*(each[found.counts == 1] for each in found)) for found in counts]


def _wanted(
    part: pd.DataFrame, _number: int, keys: list[Hashable], subsets: list[Subset], present: bool
) -> _Wanted:
    alone = Different.of(part, keys).alone()
    lacking = np.zeros((len(alone.rows), len(keys)), np.bool_)
    if present:
        for j, name in enumerate(keys):
            lacking[:, j] = missing_cells(part[name])[alone.rows]
    return _Wanted(
        len(part),
        alone.rows,
        [alone.keys(subset) for subset in subsets],
        [np.logical_not(lacking[:, list(subset)].any(axis=1)) for subset in subsets],
    )


def _find(wanted: _Wanted, alone: list[ClassCounts]) -> NDArray[np.bool_]:
    """Return which records are alone in each subset, as far as a range of keys knows."""
    found = np.empty((len(wanted.rows), len(alone)), np.bool_)
    for j, (keys, classes, present) in enumerate(
        zip(wanted.keys, alone, wanted.present, strict=True)
    ):
        found[:, j] = (find_keys(classes.first, classes.second, *keys) >= 0) & present
    return found


def _flags(wanted: _Wanted, found: list[NDArray[np.bool_]]) -> _Flags:
    return _Flags(
        wanted.n, wanted.rows, np.packbits(np.any(found, axis=0), axis=1), len(wanted.keys)
    )


def _msus(flags: list[_Flags], subsets: list[Subset], keys: int) -> _Msus:
    """Find the minimal ones among the subsets that single out records.

    A record that is unique in a subset is unique in every larger one, so that a subset is minimal
    if it is in none of those with one key less.
    """
    n, rows = flags[0].n, flags[0].rows
    if any(each.n != n or not np.array_equal(each.rows, rows) for each in flags):
        raise SdcRuntimeError(OTHER_VALUES)
    sizes = len(subsets[-1])
    place = {subset: i for i, subset in enumerate(subsets)}
    by_size = np.zeros((len(rows), sizes), np.int64)
    by_key = np.zeros((keys, sizes), np.int64)
    step = max(1, _CELLS // len(subsets))
    for start in range(0, len(rows), step):
        some = slice(start, start + step)
        unique = np.hstack(
            [np.unpackbits(each.bits[some], axis=1, count=each.subsets) for each in flags]
        ).astype(np.bool_)
        for subset, i in place.items():
            minimal = unique[:, i].copy()
            for left_out in subset if len(subset) > 1 else ():
                smaller = tuple(j for j in subset if j != left_out)
                minimal &= ~unique[:, place[smaller]]
            by_size[some, len(subset) - 1] += minimal
            by_key[list(subset), len(subset) - 1] += int(minimal.sum())
    having = by_size.any(axis=1)
    return _Msus(n, rows[having], by_size[having], by_key)


def _totals(found: _Msus, scoring: _Scoring) -> _Totals:
    scores, records = np.unique(scoring.scores(found.by_size), return_counts=True)
    return _Totals(
        len(found.rows),
        found.by_size.sum(axis=0, keepdims=True),
        found.by_key,
        Counter(dict(zip(scores.tolist(), records.tolist(), strict=True))),
    )


def _merge(parts: list[_Totals]) -> _Totals:
    special, by_size, by_key, scores = zip(*parts, strict=True)
    return _Totals(
        sum(special), np.sum(by_size, axis=0), np.sum(by_key, axis=0), sum(scores, Counter())
    )


def _to_frame(index: pd.Index, found: _Msus, scoring: _Scoring) -> pd.DataFrame:
    scores, sizes = np.zeros(len(index)), np.zeros((2, len(index)), np.int64)
    scores[found.rows] = scoring.scores(found.by_size)
    if len(found.rows):
        sizes[0, found.rows] = found.by_size.sum(axis=1)
        sizes[1, found.rows] = (found.by_size > 0).argmax(axis=1) + 1
    return pd.DataFrame(
        {
            "score": scores,
            "dis_score": scoring.dis_scores(scores),
            "msus": sizes[0],
            "smallest": sizes[1],
        },
        index=index,
    )
