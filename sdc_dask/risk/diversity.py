"""What classes of equal records reveal of confidential columns: l-diversity and t-closeness.

An intruder who knows the class of a person learns a confidential value if all records of the class
share it, and learns something if its values are few, or unlike those of everybody.

References
----------
A. Machanavajjhala, D. Kifer, J. Gehrke and M. Venkitasubramaniam, "l-diversity: Privacy beyond
k-anonymity", ACM Transactions on Knowledge Discovery from Data 1(1), 2007.

N. Li, T. Li and S. Venkatasubramanian, "t-closeness: Privacy beyond k-anonymity and l-diversity",
Proc. ICDE 2007.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments
from sdc_dask.engine.classes import ClassSizes, cell_words, merge_sizes
from sdc_dask.engine.columns import is_numeric, is_time, missing_cells
from sdc_dask.engine.frames import Calls, Frame, Task, map_partitions
from sdc_dask.engine.sort_keys import sort_keys
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.classes import ClassCounts, key_range, merge_classes, record_keys
from sdc_dask.kernels.elementary import exp, log
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import Anonymity, of_sizes

# Ranks are exact for so many distinct values, and estimated from a sample of so many of more.
MOST_RANKS = 2**18

# The pairs of so many partitions are merged in one place.
PARTITIONS_A_BUCKET = 16

# Shares are added up as integers, in units of 2**-57, so that their order does not matter. An
# entropy, the largest of the sums, is at most the logarithm of the records: below 64 = 2**6.
_UNIT = 57

_SIGN = np.uint64(1 << 63)


@dataclass(frozen=True, repr=False)
class Diversity(Result):
    """The values of a confidential column within classes of equal records."""

    column: Hashable = field(metadata={"note": "the confidential column"})
    classes: int = field(metadata={"note": "distinct records in the columns that are known"})
    l_min: int = field(metadata={"note": "fewest different values in a class: higher is safer"})
    l_mean: float = field(metadata={"note": "different values in a class, on average"})
    homogeneous: int = field(metadata={"note": "classes that share one value: 0 is safe"})
    entropy_l: float = field(metadata={"note": "exp of the smallest entropy: higher is safer"})
    t: float = field(metadata={"note": "largest distance from all records: lower is safer"})


@dataclass(frozen=True, repr=False)
class AttributeDisclosure(Anonymity):
    """Classes of records that are equal in some columns, and what they reveal of others."""

    diversity: tuple[Diversity, ...]

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with one row for each confidential column."""
        classes = asdict(self._classes())
        return pd.DataFrame([classes | each.to_dict() for each in self.diversity])

    def __repr__(self) -> str:
        """Show the classes, and then each column."""
        return "\n".join(repr(each) for each in (self._classes(), *self.diversity))

    def _classes(self) -> Anonymity:
        return Anonymity(*(getattr(self, each.name) for each in fields(Anonymity)))


def diversity(
    frame: Frame, columns: Sequence[Hashable], confidential: Sequence[Hashable]
) -> tuple[Diversity, ...]:
    """Measure what classes of equal records reveal of confidential columns, in one pass.

    Parameters
    ----------
    frame : pandas or Dask DataFrame
        Masked data.
    columns : list
        Columns of any kind that an intruder may know. Numbers are compared by their bits, missing
        cells are equal to each other.
    confidential : list
        Other columns of any kind, each of which is measured on its own. Missing cells are a value
        of their own, and zero has no sign.

    Returns
    -------
    tuple of Diversity
        One for each confidential column:

        - ``l_min`` and ``l_mean``: different values in a class, the fewest and on average;
        - ``homogeneous``: classes with one value, which is known of everybody in them;
        - ``entropy_l``: exp of the smallest entropy of the values of a class, which is at most
          ``l_min``, and less if some values are more frequent than others;
        - ``t``: the largest distance of the distribution in a class from that in the whole frame,
          from 0 to 1.

    Notes
    -----
    The distance is the Earth Mover's Distance. Numbers and dates have the ordered distance: from
    the i-th to the j-th of m different values in the frame it is abs(i - j) / (m - 1). Texts,
    categories and all else have the equal distance, 1 between any two values, which makes it the
    variational distance of the distributions.

    A missing cell is at the distance 1 from every number. If a share p of a class and a share q
    of the frame are missing, t is abs(p - q) + (1 - max(p, q)) times the distance of those that
    are present: what goes to or from missing cells is taken from all values alike. The Earth
    Mover's Distance is never larger, and it is the same if p and q are.

    Ranks of numbers and dates are exact for up to 262,144 different values. Of more, as many are
    drawn, by a hash of the value, and ranks are counted among them. This moves t by 0.001 or so:
    by the inequality of Dvoretzky, Kiefer and Wolfowitz, it is off by more than 0.01 with a
    probability below 0.00001. All else is exact, except that texts are compared by hashes of 64
    bits.

    Counts of pairs of class and value merge a range of classes at a time, so that no task holds
    more than the pairs of some partitions. The result is the same to the last bit for every
    partitioning.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.risk.diversity import diversity
    >>> salary = [3_000, 4_000, 5_000, 6_000, 11_000, 8_000, 7_000, 9_000, 10_000]
    >>> df = pd.DataFrame({"zip": [476] * 3 + [479] * 3 + [605] * 3, "salary": salary})
    >>> diversity(df, ["zip"], ["salary"])[0]
    Diversity
      column      salary                the confidential column
      classes     3                     distinct records in the columns that are known
      l_min       3                     fewest different values in a class: higher is safer
      l_mean      3                     different values in a class, on average
      homogeneous 0                     classes that share one value: 0 is safe
      entropy_l   3                     exp of the smallest entropy: higher is safer
      t           0.375                 largest distance from all records: lower is safer
    """
    return attribute_disclosure(frame, columns, confidential).diversity


def attribute_disclosure(
    frame: Frame,
    columns: Sequence[Hashable],
    confidential: Sequence[Hashable],
    k: int | None = None,
) -> AttributeDisclosure:
    """Count classes of equal records, and measure what they reveal of confidential columns.

    One pass for both.

    Parameters
    ----------
    frame, columns, confidential
        As in :func:`diversity`.
    k : int, optional
        Count the classes with fewer records.

    Returns
    -------
    AttributeDisclosure
        What :class:`~sdc_dask.risk.anonymity.Anonymity` has, and ``diversity``: a
        :class:`Diversity` for each confidential column. ``.to_frame()`` is a table of them.

    Examples
    --------
    >>> import pandas as pd
    >>> from sdc_dask.risk.diversity import attribute_disclosure
    >>> df = pd.DataFrame(
    ...     {"age": [30, 30, 50, 50, 50], "illness": ["flu", "flu", "flu", "cold", None]}
    ... )
    >>> result = attribute_disclosure(df, ["age"], ["illness"], k=3)
    >>> result.to_frame()[["column", "k_min", "below_k", "l_min", "homogeneous", "t"]]
        column  k_min  below_k  l_min  homogeneous    t
    0  illness      2        1      1            1  0.4
    """
    meta = arguments.unique_columns(frame)
    known = arguments.named_columns(
        meta, columns, "columns", "the columns that an intruder may know"
    )
    secret = arguments.named_columns(
        meta, confidential, "confidential", "the columns that must not be learned"
    )
    both = [name for name in secret if name in known]
    if both:
        raise SdcValueError(
            f"columns and confidential share columns: {', '.join(map(repr, both))}. A column is "
            "known to an intruder, or it is confidential."
        )
    if len(set(secret)) < len(secret):
        raise SdcValueError(
            f"confidential names columns more than once: {', '.join(map(repr, secret))}."
        )
    if k is not None:
        k = arguments.whole_number(k, "k", 1)
    summaries = _summarize(frame, list(known), [_Confidential.of(meta[name]) for name in secret])
    classes = of_sizes(summaries[0].sizes, k)
    measured = (
        Diversity(
            name,
            classes.classes,
            found.l_min,
            found.values / classes.classes,
            found.homogeneous,
            found.entropy_l,
            found.t,
        )
        for name, found in zip(secret, summaries, strict=True)
    )
    return AttributeDisclosure(**asdict(classes), diversity=tuple(measured))


# One pass over the data: pairs of class and value


class _Confidential(NamedTuple):
    """A confidential column, and what the frame says of it."""

    name: Hashable
    dtype: Any
    kind: str

    @classmethod
    def of(cls, column: pd.Series) -> _Confidential:
        return cls(column.name, _dense(column).dtype, _kind(_dense(column).dtype))

    def ids(self, column: pd.Series) -> tuple[NDArray[np.bool_], NDArray[np.uint64]]:
        """Return which cells have no rank, and 64 bits for each value.

        They are in the order of the values if that counts. Otherwise they are hashes, and missing
        cells have one, too.
        """
        column = _dense(column)
        if self.kind == "equal":
            bits = cell_words(column)[0]
            return np.zeros(len(column), np.bool_), record_keys([(bits, bits)])[0]
        missing = missing_cells(column)
        present = column[~missing]
        if len(present) and _kind(column.dtype) != self.kind:
            raise SdcTypeError(
                f"column {self.name!r} has dtype {column.dtype} in some partitions, and "
                f"{self.dtype} in the frame: cast it with astype first."
            )
        ids = np.zeros(len(column), np.uint64)
        ids[~missing] = _in_order(sort_keys(present, self.dtype))
        return missing, ids


def _dense(column: pd.Series) -> pd.Series:
    return column.sparse.to_dense() if isinstance(column.dtype, pd.SparseDtype) else column


def _kind(dtype: Any) -> str:
    """Return the distance of values: "equal", or that of numbers or dates, which have ranks."""
    if is_numeric(dtype):
        return "integer" if pd.api.types.is_integer_dtype(dtype) else "float"
    return "time" if is_time(dtype) else "equal"


def _in_order(keys: NDArray) -> NDArray[np.uint64]:
    """Return unsigned integers that are equal and ordered as numbers are."""
    bits = np.ascontiguousarray(keys).view(np.uint64)
    if keys.dtype.kind == "f":
        return np.where(bits & _SIGN, ~bits, bits | _SIGN)
    return bits ^ _SIGN


class _Pairs(NamedTuple):
    """Pairs of class and value, sorted, and their numbers of records."""

    first: NDArray[np.uint64]  # the key of the class
    second: NDArray[np.uint64]
    missing: NDArray[np.bool_]  # has no rank
    value: NDArray[np.uint64]
    counts: NDArray[np.int64]

    def at(self, which: Any) -> _Pairs:
        """Return some of the pairs."""
        first, second, missing, value, counts = self
        return _Pairs(first[which], second[which], missing[which], value[which], counts[which])

    def bucket(self, number: int, buckets: int) -> _Pairs:
        """Return the pairs of one of several ranges of classes."""
        return self.at(key_range(self.first, number, buckets))

    def classes(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return where each class begins, its number of records, and the class of each pair."""
        begins = _begins(self.first, self.second)
        lengths = np.diff(np.append(begins, len(self.first)))
        return begins, _add(self.counts, begins), np.repeat(np.arange(len(begins)), lengths)


def _begins(*keys: NDArray) -> NDArray[np.int64]:
    """Return where runs of equal keys begin."""
    begins = np.zeros(len(keys[0]), np.bool_)
    begins[:1] = True
    for key in keys:
        begins[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(begins)


def _add(numbers: NDArray[np.int64], begins: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.add.reduceat(numbers, begins) if len(begins) else np.zeros(0, np.int64)


def _add_up(pairs: _Pairs) -> _Pairs:
    """Sort pairs, and add up the counts of equal ones."""
    pairs = pairs.at(np.lexsort((pairs.value, pairs.missing, pairs.second, pairs.first)))
    begins = _begins(*pairs[:4])
    return pairs.at(begins)._replace(counts=_add(pairs.counts, begins))


def _merge_pairs(parts: list[_Pairs]) -> _Pairs:
    if len(parts) == 1:
        return parts[0]
    return _add_up(_Pairs(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))))


def _pairs_of(
    part: pd.DataFrame, _number: int, columns: list[Hashable], secret: list[_Confidential]
) -> list[_Pairs]:
    """Count the pairs of one partition, for each confidential column."""
    first, second = record_keys([cell_words(part[column]) for column in columns])
    counts = np.ones(len(part), np.int64)
    return [_add_up(_Pairs(first, second, *each.ids(part[each.name]), counts)) for each in secret]


def _take(partial: list[_Pairs], column: int, number: int, buckets: int) -> _Pairs:
    return partial[column].bucket(number, buckets)


# The distribution in the whole frame


class _Values(NamedTuple):
    """The values of a column that have a rank and their counts, or a sample if they are many.

    The sample is that of the smallest hashes. Different values have different hashes, and a value
    of the sample is in that of every part that it occurs in. So partials merge to the same sample
    in any order, in which a frequent value is not more likely than another.
    """

    table: ClassCounts  # the first word is the hash, the second the value
    missing: int  # records without a rank
    rows: int


def _values_of(pairs: _Pairs, most: int) -> _Values:
    present = ~pairs.missing
    value = pairs.value[present]
    hashes = record_keys([(value, value)])[0]
    table = ClassCounts(hashes, value, pairs.counts[present])
    missing = int(pairs.counts[pairs.missing].sum())
    return _merge_values([_Values(table, missing, int(pairs.counts.sum()))], most)


def _merge_values(parts: list[_Values], most: int) -> _Values:
    """Merge values; one more than is asked for shows that there are more."""
    tables = zip(*(part.table for part in parts), strict=True)
    hashes, value, counts = (np.concatenate(column) for column in tables)
    order = np.argsort(hashes, kind="stable")
    begins = _begins(hashes[order])
    some = order[begins[: most + 1]]
    table = ClassCounts(hashes[some], value[some], _add(counts[order], begins)[: most + 1])
    return _Values(table, sum(part.missing for part in parts), sum(part.rows for part in parts))


def _extent(values: _Values) -> tuple[int, int]:
    return len(values.table.first), values.rows


def _in_table(values: _Values) -> _Values:
    """Put values in the place of their hashes, and in order."""
    order = np.argsort(values.table.second)
    ids = values.table.second[order]
    return values._replace(table=ClassCounts(ids, ids, values.table.counts[order]))


def _rank(values: NDArray[np.uint64], table: ClassCounts) -> NDArray[np.int64]:
    """Return the rank of values in a table: that of the next one below if it lacks them."""
    return np.maximum(np.searchsorted(table.first, values, side="right") - 1, 0)


def _count_by_rank(pairs: _Pairs, sample: _Values) -> NDArray[np.int64]:
    counts = np.zeros(len(sample.table.first), np.int64)
    present = pairs.at(~pairs.missing)
    np.add.at(counts, _rank(present.value, sample.table), present.counts)
    return counts


def _add_arrays(parts: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.sum(parts, axis=0)


def _with_counts(sample: _Values, counts: NDArray[np.int64]) -> _Values:
    return sample._replace(table=sample.table._replace(counts=counts))


def _table_of(pairs: _Pairs) -> ClassCounts:
    """Count values by their hash, all of them."""
    order = np.argsort(pairs.value)
    value = pairs.value[order]
    return merge_classes([ClassCounts(value, value, pairs.counts[order])])


# Distances of classes from the whole frame


def _fixed(shares: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.rint(np.ldexp(shares, _UNIT)).astype(np.int64)


def _floating(fixed: NDArray[np.int64]) -> NDArray[np.float64]:
    return np.ldexp(fixed.astype(np.float64), -_UNIT)


def _ordered_distances(pairs: _Pairs, values: _Values) -> NDArray[np.float64]:
    """Return the distance of every class by ranks.

    It is the area between two cumulative distributions. That of a class is a flat line from each
    of its values to the next, which that of the frame crosses once, so that sums over all ranks
    come from cumulative ones at three places.
    """
    _, sizes, of = pairs.classes()
    present = ~pairs.missing
    of, value, own = of[present], pairs.value[present], pairs.counts[present]
    begins = _begins(of)
    some = of[begins]  # the classes that have values
    own_sizes = np.zeros(len(sizes), np.int64)
    own_sizes[some] = _add(own, begins)
    total, last = values.rows - values.missing, len(values.table.first)
    distance = np.zeros(len(sizes))
    if len(some) and last > 1:
        place = _rank(value, values.table)
        end = np.append(place[1:], last)
        end[begins[1:] - 1] = last
        lengths = np.diff(np.append(begins, len(own)))
        below = np.cumsum(own)
        below -= np.repeat(below[begins] - own[begins], lengths)
        level = below * np.repeat(total / own_sizes[some], lengths)  # in records of the frame
        cumulative = np.cumsum(values.table.counts)
        area = np.append(0, np.cumsum(cumulative))
        crossing = np.clip(np.searchsorted(cumulative, level), place, end)
        between = level * (2 * crossing - place - end)
        between += area[place] + area[end] - 2 * area[crossing]
        between[begins] += area[place[begins]]  # below the first value
        distance[some] = _floating(_add(_fixed(between / total / (last - 1)), begins))
    missing, all_missing = (sizes - own_sizes) / sizes, values.missing / values.rows
    shared = 1 - np.maximum(missing, all_missing)
    return np.abs(missing - all_missing) + shared * np.clip(distance, 0, 1)


def _excess(
    pairs: _Pairs, table: ClassCounts, rows: int, before: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """Add up by how much the shares of values of a table are larger in a class than in the frame.

    All such values together make the variational distance.
    """
    begins, sizes, of = pairs.classes()
    found = np.zeros(len(begins), np.int64) if before is None else before
    if len(begins) == 0 or len(table.first) == 0:
        return found
    place = np.minimum(np.searchsorted(table.first, pairs.value), len(table.first) - 1)
    more = pairs.counts / sizes[of] - table.counts[place] / rows
    in_table = table.first[place] == pairs.value
    return found + _add(_fixed(np.where(in_table & (more > 0), more, 0)), begins)


# The smallest and largest of all classes


class _Summary(NamedTuple):
    sizes: ClassSizes
    values: int  # pairs of class and value
    l_min: int
    homogeneous: int
    entropy_l: float
    t: float


def _summary_of(pairs: _Pairs, distances: NDArray[np.float64]) -> _Summary:
    begins, sizes, of = pairs.classes()
    values = np.diff(np.append(begins, len(of)))
    share = pairs.counts / sizes[of]
    entropy = _floating(_add(_fixed(-share * log(share)), begins))
    # Rounding must not make the entropy of equally frequent values that of more.
    entropy_l = np.minimum(exp(entropy), values)
    return _Summary(
        ClassSizes(*np.unique(sizes, return_counts=True)),
        len(of),
        int(values.min(initial=np.iinfo(np.int64).max)),
        int((values == 1).sum()),
        float(entropy_l.min(initial=np.inf)),
        float(np.minimum(distances, 1).max(initial=0)),
    )


def _merge_summaries(parts: list[_Summary]) -> _Summary:
    sizes, values, l_min, homogeneous, entropy_l, t = zip(*parts, strict=True)
    return _Summary(
        merge_sizes(sizes), sum(values), min(l_min), sum(homogeneous), min(entropy_l), max(t)
    )


def _summarize(
    frame: Frame, columns: list[Hashable], secret: list[_Confidential]
) -> list[_Summary]:
    """Measure every confidential column."""
    call = Calls.of(frame)
    needed = frame[[*dict.fromkeys(columns), *(each.name for each in secret)]]
    partials = map_partitions([needed], _pairs_of, columns, secret)
    number = -(-len(partials) // PARTITIONS_A_BUCKET)
    # The pairs stay in the memory of the workers, or on their disks: distances can be measured only
    # when all values of the frame are known, and the frame is not to be computed again for that.
    buckets = call.persist(
        [
            [
                call.merge(
                    [call(_take, each, j, bucket, number) for each in partials], _merge_pairs
                )
                for bucket in range(number)
            ]
            for j in range(len(secret))
        ]
    )
    merge = functools.partial(_merge_values, most=MOST_RANKS)
    values = call.persist(
        [
            call.merge([call(_values_of, pairs, MOST_RANKS) for pairs in each], merge)
            for each in buckets
        ]
    )
    extents = call.compute([call(_extent, each) for each in values])
    tasks = []
    for pairs, known, (different, rows), column in zip(
        buckets, values, extents, secret, strict=True
    ):
        if rows == 0:
            raise SdcValueError("the frame has no records: there are no classes to count.")
        table = call(_in_table, known)
        if column.kind == "equal":
            distances = _equal(call, pairs, table, rows, different <= MOST_RANKS)
        else:
            distances = _ordered(call, pairs, table, different <= MOST_RANKS)
        each = [call(_summary_of, *both) for both in zip(pairs, distances, strict=True)]
        tasks.append(call.merge(each, _merge_summaries))
    return call.compute(tasks)


def _ordered(call: Calls, buckets: list[Task], values: Task, complete: bool) -> list[Task]:
    """Return the distances of the classes of each bucket, by ranks."""
    if not complete:
        counted = [call(_count_by_rank, each, values) for each in buckets]
        values = call(_with_counts, values, call.merge(counted, _add_arrays))
    return [call(_ordered_distances, each, values) for each in buckets]


def _equal(call: Calls, buckets: list[Task], values: Task, rows: int, complete: bool) -> list[Task]:
    """Return the distances of the classes of each bucket, with all values equally far."""
    tables = [call(_table, values)]
    if not complete:
        # Values may be as many as pairs: a range of them at a time.
        number = len(buckets)
        counted = [call(_table_of, each) for each in buckets]
        tables = [
            call.merge(
                [call(ClassCounts.bucket, each, i, number) for each in counted], merge_classes
            )
            for i in range(number)
        ]
    distances = []
    for pairs in buckets:
        found = None
        for table in tables:
            found = call(_excess, pairs, table, rows, found)
        distances.append(call(_floating, found))
    return distances


def _table(values: _Values) -> ClassCounts:
    return values.table
