"""The ``.sdc`` accessor of pandas and Dask frames: checks arguments and calls the layers below."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import pandas as pd
from dask.dataframe.extensions import register_dataframe_accessor

from sdc_dask import arguments, plots
from sdc_dask.engine.blocks import METHODS as BLOCKINGS
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.columns import check_numeric, is_measured, is_numeric
from sdc_dask.engine.dates import day_numbers, is_date
from sdc_dask.engine.frames import Frame, is_dask, meta_of
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.evaluation import (
    Score,
    SeriesScore,
    compare,
    compare_mixed,
    score,
    series_score,
    specs_by_name,
)
from sdc_dask.keywords import knows_its_arguments
from sdc_dask.masking.fuzzy import FuzzyMicroaggregation
from sdc_dask.masking.mic1d import Mic1D
from sdc_dask.masking.microaggregation import Microaggregation, blocks_of
from sdc_dask.masking.noise import Noise
from sdc_dask.masking.pram import Pram
from sdc_dask.masking.rank_swap import RankSwap
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.recode import Recode
from sdc_dask.masking.run import mask
from sdc_dask.masking.series import SeriesMicroaggregation
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.masking.suppress import Suppress
from sdc_dask.report.mixed import categories_in
from sdc_dask.report.shapes import histogram_of
from sdc_dask.risk.anonymity import Anonymity, anonymity, class_size
from sdc_dask.risk.combinations import RareCombinations, rare_combinations
from sdc_dask.risk.disclosure import DisclosureRisk, disclosure_risk, linkage
from sdc_dask.risk.diversity import AttributeDisclosure, attribute_disclosure
from sdc_dask.risk.groups import GroupAnonymity, group_anonymity
from sdc_dask.risk.interval import (
    IntervalDisclosure,
    WidthDisclosure,
    interval_disclosure,
    width_disclosure,
)
from sdc_dask.risk.linkage import Linkage
from sdc_dask.risk.sample_risk import SampleRisk, sample_risk, sample_risk_by_record
from sdc_dask.risk.series_risk import SeriesRisk, series_risk
from sdc_dask.risk.suda import Suda, suda, suda_by_record
from sdc_dask.risk.without_common import LinkageWithoutCommon, linkage_without_common
from sdc_dask.risk.worst_case import Attacks, attacks_on
from sdc_dask.sampling import Sampling
from sdc_dask.stages import staged
from sdc_dask.suggestion import RECORDS, Suggestion, suggest
from sdc_dask.utility.associations import BINS, Associations, associations
from sdc_dask.utility.bound import SSEBound, sse_bound
from sdc_dask.utility.frequencies import Frequencies, frequencies
from sdc_dask.utility.information_loss import InformationLoss, information_loss
from sdc_dask.utility.mixed_loss import MixedLoss, mixed_loss
from sdc_dask.utility.series_loss import SeriesLoss, series_loss
from sdc_dask.utility.sse import SSE, sse


def _builds(spec: type[Spec]) -> Callable[[Callable[..., Frame]], Callable[..., Frame]]:
    """Make a method that takes the parameters of a spec from one that takes the spec.

    So what a masking can do is written in its spec alone: the signature has the parameters of the
    spec and then those of the method, and their description stands where the docstring of the
    method has a line "{parameters}".
    """
    parameters = list(inspect.signature(spec).parameters.values())
    described = inspect.getdoc(spec) or ""
    section = described.partition("Parameters\n----------\n")[2].partition("\n\nExamples\n")[0]

    def decorate(method: Callable[..., Frame]) -> Callable[..., Frame]:
        # Of the method itself: a frame's accessor, and what concerns the run.
        first, _, *own = inspect.signature(method).parameters.values()
        signature = inspect.Signature([first, *parameters, *own], return_annotation=Frame)

        @functools.wraps(method)
        def build(self: SdcAccessor, *args: Any, **kwargs: Any) -> Frame:
            given = signature.bind(self, *args, **kwargs).arguments
            run = {each.name: given.pop(each.name) for each in own if each.name in given}
            del given[first.name]
            return method(self, spec(**given), **run)

        build.__signature__ = signature  # type: ignore[attr-defined]
        text = inspect.getdoc(method) or ""
        build.__doc__ = text.replace("{parameters}", section)
        return build

    return decorate


def _in_days(frame: Frame, column: Hashable) -> Frame:
    """Return a frame of a column of dates alone, as days since 1970."""
    if not is_dask(frame):
        return day_numbers(frame[column]).to_frame(column)
    meta = _in_days(meta_of(frame), column)
    return frame[[column]].map_partitions(_in_days, column, meta=meta)


def _know_their_arguments(accessor: type[Any]) -> type[Any]:
    """Make methods say which argument was meant where one is misspelled."""
    for name, method in list(vars(accessor).items()):
        if name[0] != "_":
            setattr(accessor, name, knows_its_arguments(method))
    return accessor


def _masked_columns(columns: Any, knows: Any) -> Any:
    """Return the columns that are named, or else all that specs mask."""
    if columns is not None:
        return columns
    return list(dict.fromkeys(name for spec in spec_list(knows) for name in spec.in_sets))


@register_dataframe_accessor("sdc")
@pd.api.extensions.register_dataframe_accessor("sdc")
@_know_their_arguments
class SdcAccessor:
    """Statistical disclosure control of a DataFrame, as ``df.sdc``.

    Methods are the same for pandas and Dask frames, and so are their results. Masking methods
    return a frame of the kind of the input; for a Dask frame it is lazy, except for the passes that
    plan the blocks, which run at once, as in ``set_index``. Measures are computed.
    """

    def __init__(self, frame: Frame) -> None:
        self._frame = frame

    def __repr__(self) -> str:
        kind = "Dask" if is_dask(self._frame) else "pandas"
        methods = ", ".join(sorted(name for name in vars(SdcAccessor) if name[0] != "_"))
        return f"<sdc of a {kind} DataFrame with {len(self._frame.columns)} columns: {methods}>"

    @staged("Planning blocks")
    def blocks(
        self,
        columns: Sequence[Hashable],
        k: int,
        *,
        max_block: int | str = "auto",
        method: str = "tree",
        standardize: bool = True,
        by: Hashable | Sequence[Hashable] | None = None,
        missing: str = "error",
    ) -> Blocks:
        """Plan how records are cut into blocks, without masking them.

        Takes one pass over the data to scan it and as many to count as ``Blocks.passes`` says,
        usually one or two. Only the columns that are named are read.

        Parameters
        ----------
        columns : list
            Numeric columns, masked together.
        k : int
            Smallest block; leaves with fewer records are fused with the leaf whose centroid is
            nearest.
        max_block : int or "auto", default "auto"
            L: a leaf with more records is split. "auto" takes the largest for which masking a
            record by MDAV costs about as much as moving it.
        method : {"tree", "halves", "univariate"}, default "tree"
            "tree" halves all dimensions of a box with more than L records. "halves" halves the
            widest alone, and fuses leaves of less than L/4 records. "univariate" cuts the range
            of the first column into n/L intervals of equal width.
        standardize : bool, default True
            Measure distances between leaves in units of the columns' deviations.
        by : name or list of names, optional
            Columns whose values blocks never mix.
        missing : {"error", "separate"}, default "error"
            As in :meth:`microaggregate`.

        Returns
        -------
        Blocks
            Small, without records; can be printed, pickled, and passed as ``blocking=``.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(10_000, 2)
        >>> df.sdc.blocks(["x0", "x1"], k=3, max_block=1_000)
        Blocks by tree: 10,000 records in 16 blocks
          columns   x0, x1
          records   596 to 662 per block, median 621 (k = 3, L = 1,000)
          leaves    16, of which 0 had fewer than k records and were fused
          strata    1
          planned   in 1 pass over the data after the scan
        """
        arguments.one_of(method, "method", BLOCKINGS)
        spec = Microaggregation(
            columns,
            k,
            blocking=method,
            max_block=max_block,
            standardize=standardize,
            by=by,
            missing=missing,
        )
        return blocks_of(self._frame, spec)

    @staged("Planning and masking")
    def mask(
        self,
        spec: Spec | Sequence[Spec],
        *,
        keep_order: bool = True,
        random_state: int | None = None,
    ) -> Frame:
        """Mask columns by a spec, or by several.

        Parameters
        ----------
        spec : spec, or list of specs
            What is masked, and how: :class:`Microaggregation`, :class:`RankSwap`, :class:`Mic1D`,
            :class:`FuzzyMicroaggregation`, :class:`Recode`, :class:`Suppress`, :class:`Pram` or
            :class:`Noise`. Each of a list masks columns of its own, except that the last four go
            first, in their order, and all later ones see what they leave: columns that
            :class:`Recode` made coarser can be keys of :class:`Suppress`, or strata.
        keep_order : bool, default True
            Return index, divisions, partitions, rows and columns as they were. With False, rows
            come in the order of their blocks: half the moving, for one set of columns.
        random_state : int, optional
            Of maskings that draw: the same number gives the same result for every partitioning
            and scheduler. By default it is drawn afresh. Keep it secret: with it, the draw can be
            repeated.

        Returns
        -------
        DataFrame
            Of the kind of the input.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "rent": [5, 9, 4, 7, 8, 6]})
        >>> plan = [sdc_dask.Microaggregation(["age"], k=3), sdc_dask.RankSwap(["rent"], p=50)]
        >>> masked = df.sdc.mask(plan, random_state=1)
        >>> masked["age"].tolist(), sorted(masked["rent"])
        ([33.0, 33.0, 62.0, 62.0, 33.0, 62.0], [4, 5, 6, 7, 8, 9])
        """
        return mask(self._frame, spec, keep_order=keep_order, random_state=random_state)

    @_builds(Microaggregation)
    def microaggregate(self, spec: Microaggregation, *, keep_order: bool = True) -> Frame:
        """Replace records by the centroids of groups of at least k similar ones.

        Parameters
        ----------
        {parameters}
        keep_order : bool, default True
            Return index, divisions, partitions, rows and columns as they were. With False, rows
            come in the order of their blocks: half the moving, for one set of columns.

        Returns
        -------
        DataFrame
            Of the kind of the input. Integer columns become float64, unless `keep_integers` is
            True, others keep their dtype; columns that are not named are untouched.

        Notes
        -----
        The same records give the same bits, on pandas or Dask, for every number of workers and
        every partitioning: scales are computed without rounding, and ties go to the row that comes
        first. Distances are rounded as float64 is: equal records are always equally far, but of
        different records that are equally far, rounding may put one ahead of the other, the same
        one everywhere. With ``standardize=False``, the ties of "mdav" are those of exact
        arithmetic if the values of a block are multiples of one power of two, as whole numbers
        are, and the number of its records times the diagonal of its bounds is at most 2**26 of
        these units: 10,000 records with a diagonal of 6,710, for example.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "name": list("abcdef")})
        >>> df.sdc.microaggregate(["age"], k=3)
            age name
        0  33.0    a
        1  33.0    b
        2  62.0    c
        3  62.0    d
        4  33.0    e
        5  62.0    f

        Groups of the smallest SSE, in each of two columns:

        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "rooms": [2, 1, 5, 4, 1, 3]})
        >>> df.sdc.microaggregate([["age"], ["rooms"]], k=2, method="optimal")
            age  rooms
        0  33.0    2.5
        1  33.0    1.0
        2  62.0    4.5
        3  62.0    4.5
        4  33.0    1.0
        5  62.0    2.5

        Numbers and texts together, which become means and most frequent values:

        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "job": list("aacbac")})
        >>> df.sdc.microaggregate(["age", "job"], k=3, keep_integers=True)
           age job
        0   33   a
        1   33   a
        2   62   c
        3   62   c
        4   33   a
        5   62   c
        """
        return self.mask(spec, keep_order=keep_order)

    @_builds(Mic1D)
    def mic1d(self, spec: Mic1D) -> Frame:
        """Mask the values of all columns in one vector: Mic1D-kappa.

        All values, whatever column they belong to, are sorted and cut into runs of `kappa`; every
        run is scaled to [0, 1], and the scaled values are sorted and cut again. The values of a
        run are replaced by their mean, and the scaling is undone. So values of different columns
        hide each other.

        Parameters
        ----------
        {parameters}

        Returns
        -------
        DataFrame
            As :meth:`microaggregate` returns it.

        Notes
        -----
        There is no k: records are not made equal to each other, see what :meth:`anonymity` says.
        Means of columns are not preserved. Equal values go in order of row and column.

        References
        ----------
        J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
        Universitat Autònoma de Barcelona, section 3.3.1.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [23, 23, 55, 80, 30], "height": [159, 177, 173, 155, 180]})
        >>> df.sdc.mic1d(["age", "height"], kappa=5).round(1)
            age  height
        0  26.2   156.4
        1  26.2   175.8
        2  70.4   175.8
        3  70.4   156.4
        4  26.2   175.8
        """
        return self.mask(spec)

    @_builds(FuzzyMicroaggregation)
    def fuzzy_microaggregate(
        self, spec: FuzzyMicroaggregation, *, random_state: int | None = None
    ) -> Frame:
        """Replace records by centres of fuzzy clusters, drawn at random: k is not guaranteed.

        Every block of n records gets n/k cluster centres by fuzzy c-means. A record becomes one
        of them by chance, a near one more likely than a far one. An intruder who knows the method
        cannot tell which records a group was made of.

        Parameters
        ----------
        {parameters}
        random_state : int, optional
            The same number gives the same result for every partitioning and scheduler. By default
            it is drawn afresh. Keep it secret: with it, the draw can be repeated.

        Returns
        -------
        DataFrame
            As :meth:`microaggregate` returns it.

        Warns
        -----
        UserWarning
            That k is not guaranteed.

        Notes
        -----
        Means of columns are preserved only about. See what :meth:`anonymity` says.

        References
        ----------
        V. Torra, "A fuzzy microaggregation algorithm using fuzzy c-means", Proc. CCIA 2015.

        Examples
        --------
        >>> import warnings, pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60]})
        >>> with warnings.catch_warnings(action="ignore"):
        ...     masked = df.sdc.fuzzy_microaggregate(["age"], k=3, m1=1.5, m2=1, random_state=1)
        >>> masked["age"].round().tolist()
        [33.0, 33.0, 62.0, 62.0, 33.0, 62.0]
        """
        return self.mask(spec, random_state=random_state)

    @_builds(SeriesMicroaggregation)
    def microaggregate_series(
        self, spec: SeriesMicroaggregation, *, keep_order: bool = True
    ) -> Frame:
        """Replace time series by the mean series of groups of at least k similar ones.

        A record is one or several series, with a column for each time; see
        :func:`sdc_dask.series.to_wide` for records that come as rows of id, time and value.

        Parameters
        ----------
        {parameters}
        keep_order : bool, default True
            As in :meth:`microaggregate`.

        Returns
        -------
        DataFrame
            As :meth:`microaggregate` returns it.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"may": [1, 9, 3, 7], "june": [2, 8, 2, 8], "july": [3, 7, 1, 9]})
        >>> df.sdc.microaggregate_series(["may", "june", "july"], k=2, distance="sts")
           may  june  july
        0  4.0   5.0   6.0
        1  6.0   5.0   4.0
        2  6.0   5.0   4.0
        3  4.0   5.0   6.0
        """
        return self.mask(spec, keep_order=keep_order)

    @_builds(RankSwap)
    def rank_swap(self, spec: RankSwap, *, random_state: int | None = None) -> Frame:
        """Swap values between records of similar rank, every column on its own.

        Each column keeps exactly the values that it has, at other records: its distribution does
        not change, relations between columns do. The values of a record are no longer those of
        one person.

        Parameters
        ----------
        {parameters}
        random_state : int, optional
            The same number gives the same result for every partitioning and scheduler. By default
            it is drawn afresh. Keep it secret: with it, the draw can be repeated.

        Returns
        -------
        DataFrame
            Of the kind of the input, with the same index, partitions, rows and dtypes.

        Notes
        -----
        Equal values have ranks in row order. For a Dask frame, one pass counts values, and two
        passes per column sample and count them, when this is called; the rest is lazy.

        References
        ----------
        R. A. Moore, "Controlled data swapping techniques for masking public use microdata sets",
        U.S. Bureau of the Census, 1996. J. Nin, J. Herranz, V. Torra, "Rethinking rank swapping to
        decrease disclosure risk", Data and Knowledge Engineering 64 (2008).

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60], "name": list("abcdef")})
        >>> df.sdc.rank_swap(["age"], p=35, random_state=4)
           age name
        0   33    a
        1   31    b
        2   60    c
        3   35    d
        4   62    e
        5   64    f
        """
        return self.mask(spec, random_state=random_state)

    @_builds(Recode)
    def recode(self, spec: Recode) -> Frame:
        """Replace values by coarser ones: ranges, groups of categories, or bounds at the ends.

        Parameters
        ----------
        {parameters}

        Returns
        -------
        DataFrame
            Of the kind of the input, with the same index, partitions and rows. Texts in the place
            of numbers are categories, ordered if they are ranges; categories stay categories, in
            the order of `mapping`.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [15, 40, 99]})
        >>> df.sdc.recode(["age"], bins=[0, 18, 65, 120])["age"].tolist()
        ['[0, 18)', '[18, 65)', '[65, 120]']
        >>> df.sdc.recode(["age"], top=80)["age"].tolist()
        [15, 40, 80]
        """
        return self.mask(spec)

    @_builds(Suppress)
    def suppress(self, spec: Suppress) -> Frame:
        """Suppress cells of key columns until every combination of their values has k records.

        Rare records are made equal by missing cells, as few as a heuristic finds, together with
        some records of frequent combinations where rare ones are too few.

        Parameters
        ----------
        {parameters}

        Returns
        -------
        DataFrame
            Of the kind of the input, with the same index, partitions and rows. Integers become
            nullable ones; categories that no record has any more are left out.

        Notes
        -----
        For a Dask frame, one pass counts combinations of values, and another finds the first
        records of frequent ones, if some are needed. Up to 2 million different combinations are
        held.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"sex": list("ffffmm"), "job": list("aaaaab")})
        >>> masked = df.sdc.suppress(["sex", "job"], k=2)
        >>> masked.sdc.anonymity(["sex", "job"]).k_min
        2
        """
        return self.mask(spec)

    @_builds(Pram)
    def pram(self, spec: Pram, *, random_state: int | None = None) -> Frame:
        """Replace values of categories by others at random: post-randomization.

        Parameters
        ----------
        {parameters}
        random_state : int, optional
            The same number gives the same result for every partitioning and scheduler. By default
            it is drawn afresh. Keep it secret: with it, the draw can be repeated.

        Returns
        -------
        DataFrame
            Of the kind of the input, with the same index, partitions, rows and dtypes. Missing
            cells stay.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"job": ["a"] * 600 + ["b"] * 400})
        >>> masked = df.sdc.pram(["job"], keep=0.7, random_state=1)
        >>> 350 < int((masked["job"] == "b").sum()) < 450
        True
        """
        return self.mask(spec, random_state=random_state)

    @_builds(Noise)
    def add_noise(self, spec: Noise, *, random_state: int | None = None) -> Frame:
        """Add normally distributed noise to numbers.

        Parameters
        ----------
        {parameters}
        random_state : int, optional
            The same number gives the same result for every partitioning and scheduler. By default
            it is drawn afresh. Keep it secret: with it, the noise can be taken away.

        Returns
        -------
        DataFrame
            Of the kind of the input. Integer columns become float64 unless they are `whole`;
            missing cells stay.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60]})
        >>> df.sdc.add_noise(["age"], sd=0.1, whole=True, random_state=1)["age"].dtype
        dtype('int64')
        """
        return self.mask(spec, random_state=random_state)

    @staged("Counting equal records")
    def group_anonymity(
        self, groups: Sequence[Sequence[Hashable]], k: int | None = None
    ) -> GroupAnonymity:
        """Count equal records for an intruder who knows one, two, ... groups of columns.

        Parameters
        ----------
        groups : list of lists
            The groups that were masked each on its own, in the order in which they become known.
        k : int, optional
            The k that they were masked with: for what is to be expected of random data.

        Returns
        -------
        GroupAnonymity
            k' and the smallest class by number of known groups; ``.to_frame()`` is a table.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(1_000, 4)
        >>> groups = [["x0", "x1"], ["x2", "x3"]]
        >>> masked = df.sdc.microaggregate(groups, k=50)
        >>> masked.sdc.group_anonymity(groups, k=50).to_frame()[["known", "k_min", "k_mean"]]
           known  k_min     k_mean
        0      1     50  50.000000
        1      2      1   2.702703
        """
        return group_anonymity(self._frame, groups, k)

    @staged("Measuring SSE")
    def sse(self, masked: Frame, columns: Sequence[Hashable] | None = None) -> SSE:
        """Measure the squared distance between these records and their masked versions.

        One pass over both frames, row by row.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows in the same order and partitions.
        columns : list, optional
            Numeric columns; by default all that both frames have.

        Returns
        -------
        SSE
            ``sse``, ``sst``, ``ratio``, ``by_column``, in units of this frame's population
            deviations. The sums are exact: partitions do not change a bit of them.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60]})
        >>> df.sdc.sse(df.sdc.microaggregate(["age"], k=3))
        SSE
          sse        0.0751468             lower is better
          sst        6                     what one group for all records would give
          ratio      0.0125245             sse / sst: the share of variation that was lost
          rows       6                     records
          by_column  age: 0.0751468
        """
        names = arguments.compared_columns(self._frame, masked, columns)
        found = sse(self._frame, masked, names)
        if columns is None and is_dask(self._frame):  # where nothing is known before
            same = [name for name in names if not found.by_column[name]]
            arguments.advise_compared(self._frame, masked, same)
        return found

    @staged("Looking for the least SSE")
    def sse_bound(
        self,
        columns: Sequence[Hashable],
        k: int,
        *,
        sample: int | str | None = "auto",
        random_state: Any = None,
    ) -> SSEBound:
        """Return what the SSE of no microaggregation of these columns can be below.

        Compare it with the ``sse`` of :meth:`sse`: how far from the best possible a masking is, at
        most. The best possible is above the bound itself, by far if there are many columns.

        Parameters
        ----------
        columns : list
            Numeric columns without missing cells, masked together.
        k : int
            Smallest group.
        sample : int, "auto" or None, default "auto"
            The neighbours of so many records that are drawn are looked for, among all, and those of
            as many that are farthest from the mean, which may have most of the SSE. "auto" is all
            up to 10,000 records, else 5,000; None is all, up to 25 million values.
        random_state : int, optional
            Of the records that are drawn.

        Returns
        -------
        SSEBound
            ``bound``, and the ends ``low`` and ``high`` of its 95% confidence interval.

        Notes
        -----
        With s_1 <= s_2 <= ... the squared distances of record i to the others, in units of the
        columns' deviations, the bound is 1 / (2k) times the sum over all records of s_1 + ... +
        s_(k-1). It holds for groups of any size from k on. A Dask frame is read three times, or
        four for a sample, which is looked for in each partition.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 33, 64, 62, 35, 60]})
        >>> df.sdc.sse_bound(["age"], k=3)
        SSEBound
          bound      0.0751468             no groups of k records have a smaller SSE
          low        0.0751468             95% confidence interval, if records were drawn
          high       0.0751468             the upper end
          k          3                     smallest group
          rows       6                     records
          tried      6                     records whose neighbours were looked for
        """
        names = arguments.column_list(columns)
        meta = arguments.unique_columns(self._frame)
        arguments.existing(meta, names, "columns")
        check_numeric(meta, names)
        k = arguments.whole_number(k, "k", 2)
        return sse_bound(self._frame, names, k, Sampling.of(sample, random_state))

    @staged("Measuring loss of series")
    def series_loss(
        self, masked: Frame, series: Sequence[Hashable] | Mapping[str, Sequence[Hashable]]
    ) -> SeriesLoss:
        """Measure what masking has changed of time series: means, values, forecasts.

        One pass over both frames, row by row.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows in the same order and partitions.
        series : list, or dict of names to lists
            The columns of one series, in order of time, or of several, of five times at least.

        Returns
        -------
        SeriesLoss
            Percentages: ``il``, the mean of ``il1`` (means and autocorrelations of series),
            ``il2`` (their values) and ``il3`` (forecasts of the next three points by five models,
            see :func:`sdc_dask.series.forecast`).

        Notes
        -----
        Each part is a mean of variations: the difference between what the original and the masked
        series give, over the larger of their absolute values. It is 0 where both are 0, and 1 at
        most, also where the signs differ. Where a statistic is about 0, its variation says little:
        autocorrelations of series without any order are such statistics.

        Autocorrelations are R(j) = sum((x_i - mean) (x_(i+j) - mean)) / T for shifts j of 0, 1/4,
        1/2 and 3/4 of the length T. The sums are exact: partitions do not change a bit.

        References
        ----------
        J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
        Universitat Autònoma de Barcelona, section 6.2.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.panel(1_000, 12, seed=1).compute()
        >>> times = [f"t{i}" for i in range(12)]
        >>> loss = df.sdc.series_loss(df.sdc.microaggregate_series(times, k=5), times)
        >>> 0 < loss.il1_mean < loss.il2 < loss.il3 < 100
        True
        """
        checked = arguments.compared_series(self._frame, masked, series)
        return series_loss(self._frame, masked, checked)

    @staged("Measuring risk of series")
    def series_risk(
        self,
        masked: Frame,
        series: Sequence[Hashable] | Mapping[str, Sequence[Hashable]],
        *,
        times: Sequence[float] | None = None,
        sample: int | str | None = "auto",
        random_state: int | None = None,
    ) -> SeriesRisk:
        """Measure what intruders find out about masked time series.

        Cost: three passes over the original and four over the masked frame, as long as the masked
        records fit into memory; every intruder's record is looked for among all masked ones.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows in the same order and partitions.
        series : list, or dict of names to lists
            The columns of one series, in order of time, or of several, in the order in which an
            intruder comes to know them.
        times : list of numbers, optional
            When values were observed, for slopes: 0, 1, 2, ... by default.
        sample : int, "auto" or None, default "auto"
            Original records to link, drawn at random; "auto" tries all of up to 10,000, or 5,000;
            None tries all.
        random_state : int, optional
            Of the sample.

        Returns
        -------
        SeriesRisk
            ``euld`` and ``stsld``, the records that are linked to their masked version as the
            nearest one, by Euclidean and by short time series distance, averaged over
            intruders who know one series, two, and so on to all; ``interval``, the values that lie
            within p percent of the masked one, averaged over p = 1, 2, ... 10; and ``dr``, half of
            each.

        Notes
        -----
        For distances, every series has one mean and one deviation, over all records and times of
        the original: it keeps its shape, and series of large numbers do not outweigh others. If t
        masked records are equally near, a right link counts 1/t. Around a masked 0 there is no
        interval: only a 0 is found.

        References
        ----------
        J. Nin, *Contributions to Record Linkage for Disclosure Risk Assessment*, doctoral thesis,
        Universitat Autònoma de Barcelona, section 6.3.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.panel(1_000, 12, seed=1).compute()
        >>> times = [f"t{i}" for i in range(12)]
        >>> risk = df.sdc.series_risk(df.sdc.microaggregate_series(times, k=5), times)
        >>> risk.tried, risk.euld <= 20
        (1000, True)
        """
        checked = arguments.compared_series(self._frame, masked, series)
        return series_risk(
            self._frame, masked, checked, times=times, sample=sample, random_state=random_state
        )

    @staged("Measuring loss and risk of series")
    def series_score(
        self,
        masked: Frame,
        series: Sequence[Hashable] | Mapping[str, Sequence[Hashable]],
        *,
        times: Sequence[float] | None = None,
        sample: int | str | None = "auto",
        random_state: int | None = None,
    ) -> SeriesScore:
        """Measure loss and risk of masked time series, and take their mean.

        Parameters
        ----------
        masked, series, times, sample, random_state
            As in :meth:`series_risk`.

        Returns
        -------
        SeriesScore
            ``score``, the mean of ``il`` of :meth:`series_loss` and ``dr`` of :meth:`series_risk`,
            and their parts.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.panel(1_000, 12, seed=1).compute()
        >>> times = [f"t{i}" for i in range(12)]
        >>> score = df.sdc.series_score(df.sdc.microaggregate_series(times, k=5), times)
        >>> score.score == (score.il + score.dr) / 2
        True
        """
        checked = arguments.compared_series(self._frame, masked, series)
        return series_score(
            self._frame, masked, checked, times=times, sample=sample, random_state=random_state
        )

    @staged("Measuring information loss")
    def information_loss(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        regression: str | None = None,
    ) -> InformationLoss:
        """Measure what masking has changed: values, statistics, distributions.

        One pass over both frames, row by row; partitions that are unlike all are read twice.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows; other orders are aligned by the index.
        columns : list, optional
            Numeric columns; by default all that both frames have.
        regression : str, optional
            Such as ``"income ~ age + hours"``: compare the coefficients of this regression, too.

        Returns
        -------
        InformationLoss
            ``il1`` to ``il5`` (relative differences of values, means, covariances and variances,
            differences of correlations), ``il``, 100 times their mean; ``il1_scaled``, the
            difference of values in deviations, which zeros do not spoil; shifts of quantiles, the
            Hellinger distance, the share of cells that kept their value, the shift of regression
            coefficients. ``.table`` has a row for every column. See the notes of
            :func:`sdc_dask.utility.information_loss.information_loss` for the definitions, and
            for what happens at zero.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(1_000, 3).compute()
        >>> loss = df.sdc.information_loss(df.sdc.microaggregate(["x0", "x1", "x2"], k=5))
        >>> loss.il2 < 1e-12, loss.il4 < 0.1
        (True, True)
        """
        names = arguments.compared_columns(self._frame, masked, columns)
        return information_loss(self._frame, masked, names, regression=regression)

    @staged("Trying every attack")
    def attack(
        self,
        masked: Frame,
        knows: Spec | Sequence[Spec],
        columns: Sequence[Hashable] | None = None,
        *,
        known: str | Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        sample: int | str | None = "auto",
        random_state: int | None = None,
    ) -> Attacks:
        """Run every attack that fits a masking, and see what the strongest intruder finds.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows; other orders are aligned by the index.
        knows : spec, or list of specs
            That the data was masked by.
        columns : list, optional
            Columns of any kind; by default all that were masked. Where they are not all numeric,
            records are linked by all of them as by ``linkage(masked, "gower")``, and by those that
            are numbers without missing cells alone, by every attack that fits these.
        known, groups, sample, random_state
            As in :meth:`disclosure_risk`. All attacks try the same records.

        Returns
        -------
        Attacks
            A table, the strongest attack first: what the intruder knows, the percentage of records
            that he links rightly, how many of these he can be certain of, and how many masked
            records each known record can have become.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(500, 4, seed=1).compute()
        >>> spec = sdc_dask.RankSwap(list(df.columns), p=10)
        >>> found = df.sdc.attack(df.sdc.mask(spec, random_state=1), knows=spec)
        >>> found.attacks[0], found.strongest.certain > 0
        ('rank_swap', True)
        """
        return attacks_on(
            self._frame,
            masked,
            knows,
            arguments.mixed_columns(self._frame, masked, _masked_columns(columns, knows)),
            known=known,
            groups=groups,
            sample=sample,
            random_state=random_state,
        )

    def _compared(
        self, masked: Frame, columns: Sequence[Hashable] | None, knows: Any
    ) -> tuple[Hashable, ...]:
        """Return the columns of a comparison; those that were masked, if that is known."""
        if knows is not None:
            columns = _masked_columns(columns, knows)
        return arguments.compared_columns(self._frame, masked, columns)

    @staged("Linking records")
    def linkage(
        self,
        masked: Frame,
        attack: str = "distance",
        columns: Sequence[Hashable] | None = None,
        *,
        known: str | Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        sample: int | str | None = None,
        random_state: int | None = None,
        **options: Any,
    ) -> Linkage:
        """Let an intruder who knows original values link them to masked records.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows; other orders are aligned by the index.
        attack : str, default "distance"
            How records are linked. If the right one is among t equally good ones, it counts 1/t.

            - "distance": to the nearest masked record;
            - "gower": to the nearest in columns of every kind, see
              :func:`sdc_dask.risk.attacks.gower.link_by_gower`;
            - "probabilistic": to that of the highest weight by Fellegi and Sunter.

            By an intruder who knows how the data was masked (``knows=``):

            - "intersection": to the nearest of the masked records that a record can have become,
              by all known columns; what is linked to a single candidate is certain;
            - "rank_swap": the same for swapped columns, also by distribution and buckets;
            - "alignment": the same for columns that were microaggregated one by one;
            - "projection": to the nearest after columns that were masked together are projected.
        columns : list, optional
            Numeric columns; by default all that both frames have, or, with ``knows=``, all that
            were masked. For "gower", columns of any kind.
        known : list, or {"half", "all", "groups"}, optional
            The columns that the intruder knows; by default all `columns`. "half" and "all" average
            attacks that know the first column, the first two, and so on to half of them, or to
            all; "groups" those that know the first two of the `groups`, three, and so on.
        groups : list of lists, optional
            Groups of columns, with ``known="groups"`` alone.
        sample : int or "auto", optional
            Try so many records, drawn at random, against all masked records; the result has a
            confidence interval. By default all records are tried. "auto" tries all of up to 10,000
            records, and 5,000 of more.
        random_state : int, optional
            Makes the sample reproducible, for every partitioning. One sample is drawn for all
            sets of known columns.
        **options
            Of the attack. For distances: ``distance="mahalanobis"``, ``standardize=False``,
            ``assignment=True`` (one to one, up to 5,000 records), ``blocking="tree"`` (all records
            of a large frame, within blocks, for a lower and an upper bound). For "gower":
            ``orders=`` and ``nominal=`` as in :meth:`mixed_loss`, and ``missing="matches"`` (a
            missing masked cell may have been any value: an intruder knows that it was suppressed;
            by default it is a value of its own). For probabilities,
            of at most 16 columns: ``tolerance=0.1`` and ``unit="value"`` (values agree within 10
            percent of the original value; ``unit="deviation"`` for deviations, ``tolerance=0`` for
            equality), ``false_match``, ``false_nonmatch``, ``max_iterations``. For those who know
            the masking: ``knows=``, the spec or the list of specs; ``has_file=True``
            ("intersection": the whole original file is known), ``factor=`` ("rank_swap"),
            ``projection=`` ("projection"). See the modules of :mod:`sdc_dask.risk.attacks`.

        Returns
        -------
        Linkage
            ``rate``, the percentage of right links, with its confidence interval or bounds. Of
            those who know the masking also ``certain``, ``candidates``, ``alone`` and ``few``: how
            many masked records each known record can have become.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(1_000, 3).compute()
        >>> columns = ["x0", "x1", "x2"]
        >>> df.sdc.linkage(df.sdc.rank_swap(columns, p=10, random_state=1)).rate < 50
        True
        >>> df.sdc.linkage(df).rate
        100.0
        """
        if isinstance(attack, str) and attack == "gower":
            names = arguments.mixed_columns(self._frame, masked, columns)
        else:
            names = self._compared(masked, columns, options.get("knows"))
        return linkage(
            self._frame,
            masked,
            attack,
            names,
            known=known,
            groups=groups,
            sample=sample,
            random_state=random_state,
            **options,
        )

    @staged("Measuring disclosure risk")
    def disclosure_risk(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        known: str | Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        tolerance: float = 0.1,
        unit: str = "value",
        sample: int | str | None = "auto",
        random_state: int | None = None,
        knows: Spec | Sequence[Spec] | None = None,
    ) -> DisclosureRisk:
        """Measure what intruders find out: links by distance and by probability, and intervals.

        Parameters
        ----------
        masked, columns, known, groups, random_state
            As in :meth:`linkage`. By default the intruder knows all `columns`.
        tolerance : float, default 0.1
            Of links by probability: values agree within such a share of `unit`.
        unit : {"value", "deviation"}, default "value"
            The original value, or the deviation of the original column.
        sample : int, "auto" or None, default "auto"
            The number of records that are linked. "auto" links all of up to 10,000 records, and
            5,000 of more, drawn at random; None links all.
        knows : spec, or list of specs, optional
            That the data was masked by: attacks of intruders who know it are tried as well.

        Returns
        -------
        DisclosureRisk
            ``dld`` and ``pld``, the percentages of right links; ``interval``, that of
            :meth:`interval_disclosure`; ``dr`` = 0.25 dld + 0.25 pld + 0.5 interval; ``known``
            and ``agreement``, what the intruder knew, and when values agreed, in words.
            ``strongest`` and ``linked`` are the attack that finds the most, and its links;
            ``dr_max`` = 0.5 linked + 0.5 interval. With `knows`, ``dr_new`` has the strongest of
            the ``specific`` attacks in the mean: (dld + pld + specific) / 6 + 0.5 interval.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(1_000, 3).compute()
        >>> risk = df.sdc.disclosure_risk(df.sdc.microaggregate(["x0", "x1", "x2"], k=5))
        >>> risk.dld < 25, risk.dr < df.sdc.disclosure_risk(df).dr
        (True, True)
        """
        return disclosure_risk(
            self._frame,
            masked,
            self._compared(masked, columns, knows),
            known=known,
            groups=groups,
            tolerance=tolerance,
            unit=unit,
            sample=sample,
            random_state=random_state,
            knows=knows,
        )

    @staged("Measuring loss and risk")
    def score(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        known: str | Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        tolerance: float = 0.1,
        unit: str = "value",
        sample: int | str | None = "auto",
        random_state: int | None = None,
        knows: Spec | Sequence[Spec] | None = None,
    ) -> Score:
        """Weigh loss and risk against each other: lower is better.

        Parameters
        ----------
        masked, columns, known, groups, tolerance, unit, sample, random_state, knows
            As in :meth:`disclosure_risk`.
        weights : dict, optional
            Of the parts "il", "dld", "pld", "interval", with the sum 1. By default half for the
            loss, and 0.125, 0.125 and 0.25 for the risks: 0.5 IL + 0.5 DR.

        Returns
        -------
        Score
            ``score``, ``il``, ``dr`` and its parts, and what the intruder knew. ``score_new`` and
            ``score_max`` have ``dr_new`` and ``dr_max`` instead of ``dr``.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(1_000, 3).compute()
        >>> score = df.sdc.score(df)  # not masked: no loss, all risk
        >>> score.il, score.dld, score.interval, score.known
        (0.0, 100.0, 100.0, 'all 3 columns')
        """
        return score(
            self._frame,
            masked,
            self._compared(masked, columns, knows),
            weights=weights,
            known=known,
            groups=groups,
            tolerance=tolerance,
            unit=unit,
            sample=sample,
            random_state=random_state,
            knows=knows,
        )

    @staged("Comparing maskings")
    def compare(
        self,
        masked: Mapping[Any, Frame],
        columns: Sequence[Hashable] | None = None,
        *,
        weights: Mapping[str, float] | None = None,
        known: str | Sequence[Hashable] | None = None,
        groups: Sequence[Sequence[Hashable]] | None = None,
        tolerance: float = 0.1,
        unit: str = "value",
        sample: int | str | None = "auto",
        random_state: int | None = None,
        knows: Mapping[Any, Spec | Sequence[Spec]] | None = None,
        orders: Mapping[Hashable, Sequence[Any]] | None = None,
        nominal: Hashable | Sequence[Hashable] | None = None,
    ) -> pd.DataFrame:
        """Put risk and loss of several maskings into one table, to decide from.

        Parameters
        ----------
        masked : dict
            Masked frames of this frame, by name.
        columns, weights, known, groups, tolerance, unit, sample, random_state
            As in :meth:`score`. All maskings are attacked on the same records. If `columns` names
            some that are not numeric, or are not read as numbers, columns of every kind are
            measured, and only `sample` and `random_state` have a meaning.
        knows : dict, optional
            The spec, or list of specs, of each masking by its name. In columns of every kind it
            says how they are read, which were recoded, and where missing cells may be suppressed.
        orders, nominal
            As in :meth:`mixed_loss`.

        Returns
        -------
        pandas DataFrame
            A row for each: the smallest class and k' (higher is safer), SSE in percent, il, dld,
            pld, interval, dr, score (lower is better), the strongest attack and what it linked,
            the score by that attack, risk and loss as :meth:`suggest` weighs them, and a note of
            what limits the figures. :func:`sdc_dask.plots.risk_utility` draws a map of it. The
            ``attrs`` have ``known``, what the intruder knew, and ``agreement``, when values agreed.
            The frame is printed with a column for each masking.

            For columns of every kind: the smallest class and k', the ``loss`` and the percentage
            of ``unchanged`` cells of :meth:`mixed_loss`, what has ``moved`` in tables of single
            columns and in those of pairs (``pairs_moved``) and by how many bits the mutual
            ``information`` of pairs has changed, of :meth:`associations`, the percentage that is
            ``linked`` by ``linkage(masked, "gower")``, by the ``strongest`` of those that fit what
            is known, and the ``score``, (loss + linked) / 2.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(500, 3).compute()
        >>> columns = list(df.columns)
        >>> table = df.sdc.compare(
        ...     {
        ...         "mdav": df.sdc.microaggregate(columns, k=5),
        ...         "swap": df.sdc.rank_swap(columns, p=5, random_state=1),
        ...     }
        ... )
        >>> list(table.index), table["k_min"].tolist()
        (['mdav', 'swap'], [5, 1])
        """
        if not isinstance(masked, Mapping) or not masked:
            raise SdcTypeError(
                "masked must be a dict of masked frames by name, with at least one, received "
                f"{type(masked).__name__}: pass {{'k = 5': masked}}, say."
            )
        specs = specs_by_name(masked, knows)
        listed = [spec for each in specs.values() for spec in each]
        if columns is None and reading_of(listed).concerns(meta_of(self._frame).columns):
            columns = _masked_columns(None, listed)
        said = orders is not None or nominal is not None
        if said or (columns is not None and self._is_mixed(masked.values(), columns, specs)):
            given = {"weights": weights, "known": known, "groups": groups}
            unused = [name for name, value in given.items() if value is not None]
            unused += ["tolerance"] * (tolerance != 0.1) + ["unit"] * (unit != "value")
            if unused:
                raise SdcTypeError(
                    f"{', '.join(unused)} have a meaning for numeric columns alone: leave them "
                    "out, or name numeric columns."
                )
            both = [arguments.mixed_columns(self._frame, each, columns) for each in masked.values()]
            return compare_mixed(
                self._frame,
                masked,
                both[0],
                Sampling.of(sample, random_state),
                specs,
                arguments.reading(orders, nominal, both[0]),
            )
        names = [
            arguments.compared_columns(self._frame, each, columns, advise=number == 0)
            for number, each in enumerate(masked.values())
        ]
        if any(each != names[0] for each in names):
            raise SdcValueError(
                "the masked frames do not have the same numeric columns: name those to compare in "
                "columns."
            )
        return compare(
            self._frame,
            masked,
            names[0],
            weights=weights,
            known=known,
            groups=groups,
            tolerance=tolerance,
            unit=unit,
            sample=sample,
            random_state=random_state,
            knows=knows,
        )

    def _is_mixed(
        self, masked: Iterable[Frame], columns: Any, specs: Mapping[Any, Sequence[Spec]]
    ) -> bool:
        """Whether some of the columns are not numeric in a frame, or not read as such by a spec."""
        names = arguments.name_list(columns, "columns")
        return any(reading_of(each).concerns(names) for each in specs.values()) or any(
            name in meta.columns and not is_numeric(meta[name].dtype)
            for meta in map(arguments.unique_columns, (self._frame, *masked))
            for name in names
        )

    @staged("Measuring loss")
    def mixed_loss(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        orders: Mapping[Hashable, Sequence[Any]] | None = None,
        nominal: Hashable | Sequence[Hashable] | None = None,
    ) -> MixedLoss:
        """Measure how far records are from their masked versions, in columns of every kind.

        Two passes over the original and one over the masked frame, row by row.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows; other orders are aligned by the index.
        columns : list, optional
            Columns of any kind; by default all that both frames have.
        orders : dict, optional
            Lists of all values from the lowest to the highest, by column, such as
            ``{"education": ["primary", "secondary", "tertiary"]}``: they are compared by ranks.
        nominal : name or list of names, optional
            Columns whose values are equal or different, whatever their dtype is: codes.

        Returns
        -------
        MixedLoss
            ``loss``, the mean Gower distance in percent, and by column; ``unchanged``, the
            percentage of cells that kept their value.

        Notes
        -----
        The distance of two values is between 0 and 1. For numbers and dates it is the difference
        over the range of the original, for ordered categories that of their ranks, for all else 0
        or 1; and 1 where one of them is missing. A column that has another kind in the masked
        frame, for instance classes in the place of numbers, is compared by equality. Sums are
        exact: partitions do not change a bit.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [20, 30, 60], "job": ["cook", "cook", "nurse"]})
        >>> masked = pd.DataFrame({"age": [25, 25, 60], "job": ["cook", None, "nurse"]})
        >>> found = df.sdc.mixed_loss(masked)
        >>> {name: round(loss, 2) for name, loss in found.by_column.items()}
        {'age': 8.33, 'job': 33.33}
        """
        names = arguments.mixed_columns(self._frame, masked, columns)
        return mixed_loss(self._frame, masked, names, arguments.reading(orders, nominal, names))

    @staged("Counting values")
    def frequencies(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        nominal: Hashable | Sequence[Hashable] | None = None,
    ) -> Frequencies:
        """Count the values of columns before and after masking.

        One pass over each frame.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with as many rows, in any order.
        columns : list, optional
            Columns of any kind with up to 10,000 different values; by default all that both frames
            have and that are neither numbers nor dates.
        nominal : name or list of names, optional
            Numbers or dates that are codes, to count beside these.

        Returns
        -------
        Frequencies
            ``counts`` and ``.to_frame()`` have the records of each value before and after,
            ``moved`` the percentage of records that the two differ by: half the sum of absolute
            differences.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"job": ["cook", "cook", "nurse", "pilot"]})
        >>> df.sdc.frequencies(df.replace({"pilot": "nurse"})).to_frame()
          column  value  before  after
        0    job   cook       2      2
        1    job  nurse       1      2
        2    job  pilot       1      0
        """
        names = arguments.mixed_columns(self._frame, masked, columns)
        if columns is None:
            meta = meta_of(self._frame)
            codes = arguments.masked_names(nominal, "nominal", names, "compared")
            names = tuple(
                name for name in names if name in codes or not is_measured(meta[name].dtype)
            )
        elif nominal is not None:
            raise SdcTypeError(
                "nominal has no meaning with columns, whose values are all counted: leave it out, "
                "or name its columns in columns."
            )
        if not names:
            raise SdcValueError("columns is empty: both frames have numbers and dates alone.")
        return frequencies(self._frame, masked, names)

    @staged("Counting pairs of values")
    def associations(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        bins: int = BINS,
        orders: Mapping[Hashable, Sequence[Any]] | None = None,
        nominal: Hashable | Sequence[Hashable] | None = None,
    ) -> Associations:
        """Compare contingency tables and mutual information of pairs before and after masking.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with as many rows, in any order.
        columns : list, optional
            Columns of any kind; by default all that both frames have.
        bins : int, default 10
            Numbers, dates and ordered categories are cut into so many classes, at quantiles of the
            original.
        orders, nominal
            As in :meth:`mixed_loss`.

        Returns
        -------
        Associations
            For each pair of columns, and as ``.to_frame()``: ``moved``, the percentage of records
            by which the tables of the two columns differ, half the sum of absolute differences;
            ``information`` and ``masked_information``, their mutual information in bits.

        Notes
        -----
        One pass over each frame counts single columns, and one pairs, or several if their tables
        may have more than 33 million cells; quantiles of a Dask frame take about four over the
        original. The result is the same to the last bit for every partitioning.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"sex": list("ffmm"), "job": list("aabb")})
        >>> df.sdc.associations(df.assign(job=list("abab")))
        Associations of 4 records, numbers and dates in 10 bins
          first second  moved  information  masked_information
            sex    job     50            1                   0
          moved        percent of records in other cells of the table of two columns
          information  mutual information of the columns, in bits
        """
        names = arguments.mixed_columns(self._frame, masked, columns)
        bins = arguments.whole_number(bins, "bins", 2)
        reading = arguments.reading(orders, nominal, names)
        return associations(self._frame, masked, names, bins, reading)

    @staged("Trying maskings")
    def suggest(
        self,
        columns: Sequence[Hashable],
        specs: Sequence[Spec] | Mapping[Any, Spec] | None = None,
        *,
        by: Hashable | Sequence[Hashable] | None = None,
        records: int = RECORDS,
        tolerance: float = 0.1,
        unit: str = "value",
        random_state: int | None = None,
    ) -> Suggestion:
        """Try maskings on a sample of records, and see which of them are worth a look.

        No figure alone says which masking is best: more protection costs more. What can be said is
        which maskings are *dominated*, since another one has neither more risk nor more loss. Those
        that are left, the frontier, are to be chosen from.

        Parameters
        ----------
        columns : list
            Columns to mask, all of which the intruder knows.
        specs : list of specs, or dict of specs by name, optional
            That mask all of `columns`. By default a grid: groups of 3 to 50 records by MDAV, and of
            each column alone; values swapped by 2 to 20 percent of the ranks, in two ways. Where
            columns are not all numeric: groups by MDAV, and, if all are categories, texts or
            booleans, suppression to 3 to 10 records.
        by : name or list of names, optional
            Strata of the grid.
        records : int, default 5,000
            To draw at random. They are masked by themselves, in memory.
        tolerance, unit
            As in :meth:`disclosure_risk`, for numeric columns alone.
        random_state : int, optional
            Of the sample, and of maskings that draw.

        Returns
        -------
        Suggestion
            Prints as a table. ``trials`` and ``frontier``; ``choose(max_risk=20)`` gives the spec
            of the least loss up to a risk, ``choose(max_loss=5)`` that of the least risk;
            ``to_frame()``, and ``plot()``, a map of risk and loss.

        Notes
        -----
        *Risk* is half of what the strongest attack links, among all that fit the masking, and half
        of the interval disclosure, as ``dr_max`` of :meth:`disclosure_risk`. *Loss* is half of
        ``il_scaled`` of :meth:`information_loss`, which says how far statistics moved and has no
        noise of small divisors, unlike IL, and half of SSE / SST, up to 100 percent, which says how
        far records moved: a swap may leave all statistics of columns as they are, and no record.
        Where columns are not all numeric, or do not stay so, risk is what the strongest attack of
        :meth:`attack` links, and loss is that of :meth:`mixed_loss`.

        The fewer records, the farther apart they are: groups of k in a sample lose more than in all
        records. Measure what you choose on all of them. Two passes over the data draw the sample.

        Examples
        --------
        >>> import sdc_dask
        >>> df = sdc_dask.datasets.uniform(300, 2, seed=1).compute()
        >>> plan = [sdc_dask.Microaggregation(["x0", "x1"], k=k) for k in (3, 10)]
        >>> found = df.sdc.suggest(["x0", "x1"], [*plan, sdc_dask.RankSwap(["x0", "x1"], p=10)])
        >>> len(found.trials), found.choose(max_loss=100) in [each.spec for each in found.frontier]
        (3, True)
        """
        return suggest(
            self._frame,
            columns,
            specs,
            by=by,
            records=records,
            tolerance=tolerance,
            unit=unit,
            random_state=random_state,
        )

    @staged("Measuring distributions")
    def plot(self, masked: Frame, column: Hashable, *, k: int = 5, ax: Any = None) -> Any:
        """Draw the distribution of a column before and after masking. Needs matplotlib.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind.
        column : name
            A column of both frames. Of numbers and dates, the picture is a histogram; of anything
            else, and of numbers with few values, it has bars of frequencies.
        k : int, default 5
            Bins hold as many records, before and after, and the outermost ones are open; rarer
            categories are drawn as one: the picture shows nobody.
        ax : matplotlib axes, optional

        Returns
        -------
        matplotlib axes
        """
        arguments.mixed_columns(self._frame, masked, [column])
        k = arguments.whole_number(k, "k", 3)
        plots.pyplot()  # before any data is read
        frames = [self._frame, masked]
        dates = all(is_date(meta_of(each)[column].dtype) for each in frames)
        if dates or all(is_numeric(meta_of(each)[column].dtype) for each in frames):
            if dates:
                frames = [_in_days(each, column) for each in frames]
            bins = histogram_of(frames[0], frames[1], column, k)
            if bins is not None:
                drawn = plots.before_after(
                    bins.edges, bins.widths, bins.unit, bins.before, bins.after, column, ax
                )
                return plots.with_dates(drawn) if dates else drawn
        shown = categories_in(self._frame, masked, column, k)
        if shown is None:
            raise SdcValueError(
                f"column {column!r} has too few records for a picture, or most of them have "
                f"values that fewer than k={k} records have."
            )
        before = None if shown.renamed else [each.before for each in shown.shown]
        labels = [each.label for each in shown.shown]
        return plots.frequencies(labels, before, [each.after for each in shown.shown], column, ax)

    @staged("Measuring interval disclosure")
    def interval_disclosure(
        self,
        masked: Frame,
        columns: Sequence[Hashable] | None = None,
        *,
        width: float | None = None,
    ) -> IntervalDisclosure | WidthDisclosure:
        """Measure how often the original value lies in an interval around the masked one.

        Parameters
        ----------
        masked : DataFrame
            Of the same kind, with the same rows; other orders are aligned by the index.
        columns : list, optional
            Numeric columns; by default all that both frames have.
        width : float, optional
            By default, intervals are of ranks: from the masked value 1, 2, ..., 10 percent of the
            ranks below to that as many ranks above, both included, and the shares of original
            values in them are averaged. Of equal masked values the middle rank counts. With
            `width`, intervals reach so many deviations of the masked column to both sides;
            ``drisk`` is then the percentage of records with all values inside, as sdcMicro's
            dRisk returns it.

        Returns
        -------
        IntervalDisclosure or WidthDisclosure
            ``interval``: percent of values that are disclosed; and by width and column.

        Notes
        -----
        For a Dask frame this takes three passes over the masked and one over the original data,
        and another one over the masked data for a million values, if as many are left whose ranks
        have to be counted exactly. The numbers are those of pandas. Cells that are missing in both
        frames are left out.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": range(20, 70)})
        >>> masked = df.sdc.rank_swap(["age"], p=10, random_state=1)
        >>> round(df.sdc.interval_disclosure(masked).interval, 1)
        46.8
        """
        names = arguments.compared_columns(self._frame, masked, columns)
        if width is None:
            return interval_disclosure(self._frame, masked, names)
        width = arguments.number(width, "width", 0.0)
        return width_disclosure(self._frame, masked, names, width)

    @staged("Counting equal records")
    def anonymity(
        self,
        columns: Sequence[Hashable],
        k: int | None = None,
        *,
        confidential: Hashable | Sequence[Hashable] | None = None,
        unit: Hashable | None = None,
    ) -> Anonymity | AttributeDisclosure:
        """Count how many records share the same values in some columns.

        One pass; numbers are compared by their bits, missing cells are equal to each other.

        Parameters
        ----------
        columns : list
            Columns of any kind that an intruder may know.
        k : int, optional
            Count the classes with fewer records.
        confidential : name or list of names, optional
            Other columns of any kind that must not be learned: measure what classes reveal of them.
        unit : name, optional
            The person or household that records belong to: classes are measured by their different
            units, in the place of their records.

        Returns
        -------
        Anonymity
            ``k_min`` (the smallest class), ``k_mean`` (k', records over distinct records),
            ``classes``, ``rows``, ``below_k`` and ``rows_below``, the classes that are smaller
            than k and the records in them; :meth:`class_size` says which these are. With
            `confidential`, also ``diversity``: for each such column ``l_min`` (l-diversity: the
            fewest different values in a class), ``l_mean``, ``homogeneous`` (classes that share one
            value), ``entropy_l`` and ``t`` (t-closeness: the largest distance of a class from the
            whole frame). See :func:`sdc_dask.risk.diversity.diversity` for the definitions.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 31, 64, 64, 64, 60]})
        >>> df.sdc.anonymity(["age"], k=2)
        Anonymity
          rows       6                     records
          classes    3                     distinct records
          k_min      1                     records of the smallest class: higher is safer
          k_mean     2                     k', records over distinct records
          k          2                     the k that was asked for
          below_k    1                     classes with fewer records: 0 is safe
          rows_below 1                     records in them: 0 is safe

        Everybody of 30 years has the same illness:

        >>> df = pd.DataFrame({"age": [30, 30, 50, 50], "illness": ["flu", "flu", "flu", "cold"]})
        >>> found = df.sdc.anonymity(["age"], confidential="illness")
        >>> found.to_frame()[["column", "k_min", "l_min", "homogeneous", "t"]]
            column  k_min  l_min  homogeneous     t
        0  illness      2      1            1  0.25
        """
        meta = arguments.unique_columns(self._frame)
        names = arguments.name_list(columns, "columns")
        if not names:
            raise SdcValueError(
                "columns is empty: name the columns whose equal records are counted."
            )
        arguments.existing(meta, names, "columns")
        if k is not None:
            k = arguments.whole_number(k, "k", 1)
        if unit is not None:
            arguments.existing(meta, [unit], "unit")
            if confidential is not None:
                raise SdcValueError(
                    "unit has no meaning with confidential=, which looks at records: call this "
                    "once with each."
                )
        if confidential is not None:
            secret = arguments.name_list(confidential, "confidential")
            return attribute_disclosure(self._frame, names, secret, k)
        return anonymity(self._frame, names, k, unit)

    @staged("Estimating risk")
    def sample_risk(
        self,
        keys: Sequence[Hashable],
        weights: Hashable | None = None,
        *,
        household: Hashable | Sequence[Hashable] | None = None,
        threshold: float = 0.1,
        method: str = "approximation",
        missing: str = "category",
    ) -> SampleRisk:
        """Estimate how many records of a sample an intruder re-identifies in the population.

        Parameters
        ----------
        keys : list
            Columns of any kind that an intruder may know, of which combinations are counted.
            Numbers are compared by their bits.
        weights : name, optional
            Column of sampling weights: how many records of the population each stands for. They
            must be positive and finite. Without it, the frame is taken for the population.
        household : name or list of names, optional
            Columns that records of a household share: if one member is re-identified, all are.
        threshold : float, default 0.1
            Count the records with a higher risk.
        method : {"approximation", "exact"}, default "approximation"
            "approximation" is that of mu-Argus and sdcMicro for combinations of three records and
            more, "exact" the hypergeometric function for all; see
            :func:`sdc_dask.risk.sample_risk.individual_risk`.
        missing : {"category", "any"}, default "category"
            Missing cells are a value of their own, or match any value, as in sdcMicro. "any" takes
            64 patterns of missing cells at most, and a time that grows with their number.

        Returns
        -------
        SampleRisk
            ``expected`` (re-identifications to expect, the sum of all risks), ``percent``,
            ``highest``, ``uniques``, ``above`` the threshold; with `household` also
            ``household_expected``: the sum over records of the risk that one or more members of
            their household are re-identified, 1 - prod(1 - r).

        Notes
        -----
        One pass looks at the weights, one adds them up by combination, and one looks up the sums
        of each record; with `household` there are two more. No task holds more than a partition and
        a range of combinations. The result is the same to the last bit for every partitioning.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"sex": list("ffmm"), "age": [31, 31, 64, 60], "w": [60, 50, 17, 5]})
        >>> found = df.sdc.sample_risk(["sex", "age"], "w")
        >>> round(found.expected, 4), found.uniques, found.above
        (0.6137, 2, 2)
        """
        return sample_risk(
            self._frame,
            keys,
            weights,
            household=household,
            threshold=threshold,
            method=method,
            missing=missing,
        )

    @staged("Estimating risk")
    def sample_risk_by_record(
        self,
        keys: Sequence[Hashable],
        weights: Hashable | None = None,
        *,
        household: Hashable | Sequence[Hashable] | None = None,
        method: str = "approximation",
        missing: str = "category",
    ) -> Frame:
        """Return the frequencies and the risk of every record of a sample.

        Parameters
        ----------
        keys, weights, household, method, missing
            As in :meth:`sample_risk`.

        Returns
        -------
        DataFrame
            Of the kind of the input, with its index: ``frequency`` (records with the same
            combination), ``population`` (the sum of their weights), ``risk``, and, with
            `household`, ``household_risk``. Of a Dask frame it is lazy; combinations are counted
            at once.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"sex": list("ffmm"), "age": [31, 31, 64, 60], "w": [60, 50, 17, 5]})
        >>> df.sdc.sample_risk_by_record(["sex", "age"], "w").round(3)
           frequency  population   risk
        0          2       110.0  0.017
        1          2       110.0  0.017
        2          1        17.0  0.177
        3          1         5.0  0.402
        """
        return sample_risk_by_record(
            self._frame, keys, weights, household=household, method=method, missing=missing
        )

    @staged("Looking for special uniques")
    def suda(
        self,
        keys: Sequence[Hashable],
        *,
        max_size: int | None = None,
        fraction: float = 0.01,
        scores: str = "elliot",
        missing: str = "category",
    ) -> Suda:
        """Find special uniques: the minimal sets of keys that single out records (SUDA).

        Parameters
        ----------
        keys : list
            Columns of any kind that an intruder may know.
        max_size : int, optional
            Keys of the largest sets that are looked at; by default all. There are 2**d - 1 sets of
            d keys: with more than 13 keys, a `max_size` is needed.
        fraction : float, default 0.01
            The share of the population that was sampled, for the DIS score.
        scores : {"elliot", "ihsn"}, default "elliot"
            What a minimal set of k of d keys counts: the product of d - i for i from k to
            `max_size` or d - 1, or (2**(d - k) - 1) / C(d, k), as in early versions of sdcMicro.
        missing : {"category", "ignore"}, default "category"
            Missing cells are a value of their own, or sets with them do not count.

        Returns
        -------
        Suda
            ``special`` (records with such sets), ``msus`` (sets), ``sizes``, ``highest`` score,
            ``dis`` (the probability that a match with a unique record is right), and
            ``contributions``: the percentage of all scores that comes from sets with a key.

        Notes
        -----
        A set is minimal if a record is unique in it, and in none of its subsets. The classes of
        all subsets are counted, in batches of as many as memory allows: one pass in the beginning,
        and two for each batch. The time grows with the number of different records and of
        subsets.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})
        >>> found = df.sdc.suda(["a", "b", "c"])
        >>> found.msus, found.sizes, found.contributions
        (5, {1: 3, 2: 2, 3: 0}, {'a': 50.0, 'b': 37.5, 'c': 37.5})
        """
        return suda(
            self._frame,
            keys,
            max_size=max_size,
            fraction=fraction,
            scores=scores,
            missing=missing,
        )

    @staged("Looking for special uniques")
    def suda_by_record(
        self,
        keys: Sequence[Hashable],
        *,
        max_size: int | None = None,
        fraction: float = 0.01,
        scores: str = "elliot",
        missing: str = "category",
    ) -> Frame:
        """Return the SUDA and DIS-SUDA scores of every record.

        Parameters
        ----------
        keys, max_size, fraction, scores, missing
            As in :meth:`suda`.

        Returns
        -------
        DataFrame
            Of the kind of the input, with its index: ``score``, ``dis_score``, ``msus`` (minimal
            sets of keys that single out the record) and ``smallest`` (keys of the smallest of
            them, 0 if there is none). All uniques are found at once.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})
        >>> df.sdc.suda_by_record(["a", "b", "c"])[["score", "msus", "smallest"]]
           score  msus  smallest
        0    2.0     1         1
        1    4.0     2         1
        2    2.0     2         2
        """
        return suda_by_record(
            self._frame,
            keys,
            max_size=max_size,
            fraction=fraction,
            scores=scores,
            missing=missing,
        )

    @staged("Counting combinations of values")
    def rare_combinations(
        self, keys: Sequence[Hashable], k: int, *, size: int | Sequence[int] = 2
    ) -> RareCombinations:
        """Count combinations of values of every few keys that fewer than k records have.

        This is the threshold rule of mu-Argus. Missing cells are a value of their own.

        Parameters
        ----------
        keys : list
            Columns of any kind that an intruder may know.
        k : int
            Records that a combination must have to be safe.
        size : int or list of int, default 2
            How many keys are combined: pairs by default; ``[2, 3]`` for pairs and triples.

        Returns
        -------
        RareCombinations
            One entry for each set of keys: ``combinations``, those that are ``unsafe``, the
            ``records`` that have one of these, and the records of the ``smallest``.
            ``.to_frame()`` is a table of them.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"sex": list("ffmm"), "age": [31, 31, 64, 60], "job": list("aaab")})
        >>> df.sdc.rare_combinations(["sex", "age", "job"], k=2)
        RareCombinations of 4 records, k = 2
              keys  combinations  unsafe  records  smallest
          sex, age             3       2        2         1
          sex, job             3       2        2         1
          age, job             3       2        2         1
          combinations different ones of values in these columns
          unsafe       those that fewer than k records have: 0 is safe
          records      records that have one of them
          smallest     records of the rarest one
        """
        return rare_combinations(self._frame, keys, k, size=size)

    @staged("Counting equal records")
    def class_size(self, columns: Sequence[Hashable]) -> Any:
        """Return for each record how many are equal to it in some columns, itself included.

        Parameters
        ----------
        columns : list
            Columns of any kind that an intruder may know.

        Returns
        -------
        Series
            Of the index of the frame; lazy for a Dask frame. Records below k are
            ``df[df.sdc.class_size(columns) < k]``.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> df = pd.DataFrame({"age": [31, 31, 64, 64, 64, 60]})
        >>> df.sdc.class_size(["age"]).tolist()
        [2, 2, 3, 3, 3, 1]
        """
        meta = arguments.unique_columns(self._frame)
        names = arguments.name_list(columns, "columns")
        if not names:
            raise SdcValueError(
                "columns is empty: name the columns whose equal records are counted."
            )
        arguments.existing(meta, names, "columns")
        return class_size(self._frame, names)

    @staged("Linking files without common columns")
    def linkage_without_common(
        self,
        other: Frame,
        columns: Sequence[Hashable] | None = None,
        other_columns: Sequence[Hashable] | None = None,
        *,
        function: str = "owa",
        quantifiers: str | Sequence[str] = "threshold",
        normalize: str | None = "zscore",
        attack: str = "distance",
        sample: int | str | None = None,
        random_state: int | None = None,
        **options: Any,
    ) -> LinkageWithoutCommon:
        """Link records to those of a file about the same individuals that has other columns.

        The values of a record, whatever columns they are of, are aggregated in ten ways. Records
        of both files are linked by these ten numbers, their representatives.

        Parameters
        ----------
        other : DataFrame
            Of the same kind, with the same rows; other orders are aligned by the index.
        columns, other_columns : list, optional
            Numeric columns of this frame and of `other`, by default all of each. Missing cells are
            left out of the aggregation; every record must have one value at least.
        function : {"owa", "sugeno", "twofold"}, default "owa"
            The aggregation function.
        quantifiers : {"power", "sigmoid", "threshold"}, or a pair of these, default "threshold"
            The family of its ten measures. A pair is for "twofold" alone: for the measures of
            Sugeno and of Choquet.
        normalize : {"zscore", "range"} or None, default "zscore"
            Standardize every column, or scale it to [0, 1], by what its own file holds. With None,
            values are taken as they are.
        attack : {"distance", "probabilistic"}, default "distance"
            Link to the nearest representatives, or by those that agree.
        sample, random_state, **options
            As in :meth:`linkage`, where `other` is the masked frame. Representatives agree within
            a tenth of their deviation by default: ``tolerance=0.1, unit="deviation"``.

        Returns
        -------
        LinkageWithoutCommon
            As :meth:`linkage` returns it, with ``chance``: the probability that links at random
            are right as often, or more often.

        Examples
        --------
        >>> import pandas as pd, sdc_dask
        >>> firms = pd.DataFrame({"benefits": [2.0, 9.0, 4.0, 7.0], "costs": [1.0, 8.0, 5.0, 6.0]})
        >>> taxes = pd.DataFrame({"income_tax": [0.5, 2.8, 1.2, 2.0], "value_tax": [5, 19, 11, 14]})
        >>> found = firms.sdc.linkage_without_common(taxes)
        >>> found.correct, round(found.chance, 4)
        (4.0, 0.0417)
        """
        return linkage_without_common(
            self._frame,
            other,
            columns,
            other_columns,
            function=function,
            quantifiers=quantifiers,
            normalize=normalize,
            attack=attack,
            sample=sample,
            random_state=random_state,
            **options,
        )
