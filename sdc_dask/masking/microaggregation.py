"""Microaggregation: records form groups of at least k, and every record becomes its centroid."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from sdc_dask import arguments
from sdc_dask.aggregation import Measure, power
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.codecs import (
    NOMINAL,
    NUMBER,
    WHOLE,
    Asked,
    Coding,
    coding_of,
    has_kind,
    kinds_of,
)
from sdc_dask.engine.columns import check_numeric, is_numeric
from sdc_dask.engine.frames import Frame, meta_of
from sdc_dask.engine.in_place import Change, changed
from sdc_dask.engine.masks import Mask
from sdc_dask.engine.moments import co_moments
from sdc_dask.engine.onward import has_borders, onward
from sdc_dask.engine.projections import (
    AGGREGATIONS,
    Aggregated,
    Axis,
    Single,
    aggregate,
    principal_axis,
)
from sdc_dask.engine.scan import Scan
from sdc_dask.engine.sort import Projection, Records, plan_order
from sdc_dask.engine.strata import Strata
from sdc_dask.engine.trip import Step
from sdc_dask.engine.unit_places import unit_places
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.kernels.coordinates import Coordinates
from sdc_dask.masking import blockwise
from sdc_dask.masking.auto_block import auto_block, auto_blocking, linear_block
from sdc_dask.masking.borders import MaskAcrossBorders
from sdc_dask.masking.centroids import (
    THOROUGH,
    Grouping,
    MaskByCentroids,
    Mdav,
    Ordered,
    Refined,
    Vmdav,
)
from sdc_dask.masking.in_order import MaskInOrder
from sdc_dask.masking.merged_strata import merge_strata
from sdc_dask.masking.mixed import (
    NominalColumns,
    mixed_coordinates,
    nominal_columns,
    representatives,
)
from sdc_dask.masking.spec import Spec, needed, option
from sdc_dask.masking.whole_units import Homes, MaskWholeUnits, plan_homes

# Methods by name: whether records are put in order and cut into groups, unlike those that compare
# records within a block; the option that belongs to it alone; and the default of that.
METHODS: dict[str, tuple[bool, str | None, Any]] = {
    "mdav": (False, None, None),
    "vmdav": (False, "gain", 0.2),
    "optimal": (True, None, None),
    "pcp": (True, None, None),
    "zscores": (True, None, None),
    "mean": (True, None, None),
    "weighted_mean": (True, "weights", None),
    "owa": (True, "measure", None),
    "choquet": (True, "measure", None),
    "sugeno": (True, "measure", power(1)),
    "twofold": (True, "measure", None),
}
MOST_CATEGORIES = 100  # of a set of columns, if groups are refined: each is a coordinate then
MERGE = "merge"
_OWN = ("gain", "weights", "measure")  # options that belong to some methods alone


@dataclass(frozen=True, repr=False)
class Microaggregation(Spec):
    """Replace records by the centroids of groups of at least k similar ones.

    Parameters
    ----------
    columns : list, or list of lists
        Columns to mask: one set, or several that are masked each on its own. k holds for every set
        of columns, not for their combination. Numbers, and with "mdav" and "vmdav" also dates,
        texts, booleans and categories; a group gets the means of its numbers and dates, the
        medians of ordered categories, and the most frequent of others.
    k : int
        Smallest group, 2 or more.
    method : str, default "mdav"
        How groups are formed. Among the records of a block:

        - "mdav": k records around extreme ones, by MDAV (J. Domingo-Ferrer and V. Torra, 2005);
        - "vmdav": the same, and groups may grow to 2k - 1 records if `gain` says so.

        Along an order of the records, cut into the cheapest groups of k to 2k - 1:

        - "optimal": by the values of one column; no other groups have a smaller SSE. Pass
          ``[["a"], ["b"]]`` to mask several columns, each on its own (individual ranking);
        - "pcp": by the first principal component;
        - "zscores": by the sum of the standardized columns;
        - "mean", "weighted_mean", "owa", "choquet", "sugeno", "twofold": by an aggregation
          function of :mod:`sdc_dask.aggregation`, of columns scaled to [0, 1].
    blocking : {"auto", "tree", "halves", "univariate", None} or Blocks, default "auto"
        How records are cut into blocks; groups never cross blocks. With None, "mdav" and "vmdav"
        mask all records of a stratum as one block, in the memory of one worker; the others put
        all records of a stratum in one order, which may run through any number of partitions.
        "auto" is None for the latter; for the former "tree" for up to three columns, else
        "halves", which loses less.
    max_block : int or "auto", default "auto"
        L: a block with more records is split. "auto" takes the largest for which masking a record
        costs about as much as moving it.
    standardize : bool, default True
        Measure distances in units of the columns' population deviations over the whole frame.
        Centroids are in the original units in any case. With "pcp" it concerns the component,
        too: without it, that of values which are neither centred nor scaled.
    by : name or list of names, optional
        Strata: columns whose values groups never mix.
    small : {"error", "merge"}, default "error"
        What becomes of a stratum with fewer than k records. "error" says how many there are. With
        "merge" it joins the nearest, the smallest first, until all have k; its records get the
        values of `by` that the largest part has, so that these columns are masked, too. `orders`,
        `nominal` and `importance` may name them. With missing="separate", strata join others with
        the same missing cells, in one set of columns.
    missing : {"error", "separate"}, default "error"
        "error" names the columns with missing cells. "separate" groups records by their pattern
        of missing cells, which stay missing; each pattern needs k records.
    missing_values : list of numbers, optional
        That stand for missing cells, such as -9 or 9999. These are missing in what is masked, and
        are treated as `missing` says. Measures compare it with a frame in which they are missing.
    refine : bool, int or "thorough", default False
        Whether records then change places between groups, in each block, such that the SSE becomes
        smaller: by 10 to 50 percent as a rule. True takes a few times as long as MDAV; a number
        says how often each record is tried elsewhere, where True tries 50 times, or more often if
        there are few; "thorough" takes some seconds for thousands of records. Not for methods
        along an order of all records, nor for "optimal", which has the smallest SSE already, nor
        for nominal columns of more than 100 categories together. Blocks of "auto" are as large as
        memory allows then.
    borders : bool, default False
        With `refine`: whether groups are refined once more in other blocks, which are cut
        elsewhere. So the borders of blocks cost little, for about twice the time; records are
        moved once more. Not with ``keep_order=False``.
    decimals : int, optional
        Round centroids to so many digits after the decimal point, or before it if negative. The
        mean of integers reveals by its fraction how many records it is of: with 0 it does not.
    orders : dict, optional
        Columns of ordered values, each with a list of all of them from the lowest to the highest,
        such as ``{"education": ["primary", "secondary", "tertiary"]}``. Ordered categories have
        their order already.
    nominal : name or list of names, optional
        Columns whose values are equal or different, whatever their dtype is, for instance codes.
    importance : dict, optional
        How much squared differences of columns count, such as ``{"age": 2}``: 1 by default. Two
        nominal values are as far apart as numbers are that differ by their deviation.
    keep_integers : bool, default False
        Whether integers stay integers: their means are rounded, which keeps k.
    unit : name, optional
        The person or household that records belong to, of which there may be several: k then
        counts different units. With "mdav" and "vmdav"; blocks are not cut where all their records
        are equal.
    units_alike : bool, default False
        With `unit`: whether all records of a unit get the same values, in whatever blocks they
        would be. Records are moved once more, and counted so once more before. Units must not have
        records in several strata, nor different missing cells. Not with ``keep_order=False``.
    gain : float, default 0.2
        Of "vmdav": a group takes one more record if that is closer to it than `gain` times its
        distance to the other records. 0 never does.
    weights : list of float
        Of "weighted_mean": one for each column, with the sum 1.
    measure : quantifier or array, or two of them
        Of "owa", "choquet", "sugeno" (by default ``power(1)``) and "twofold" (one, or a tuple of
        Sugeno's and Choquet's): how much a set of columns weighs, as in
        :mod:`sdc_dask.aggregation`.

    Examples
    --------
    >>> from sdc_dask import Microaggregation
    >>> spec = Microaggregation(["income", "wealth"], k=5, by="region")
    >>> spec
    Microaggregation(columns=['income', 'wealth'], k=5, by='region')
    >>> spec.promise
    5
    """

    kind: ClassVar[str] = "microaggregation"

    columns: Any = needed("columns to mask; several sets are masked each on its own")
    k: int = needed("smallest group")
    _: KW_ONLY
    method: str = option("mdav", f"how groups are formed: {', '.join(METHODS)}")
    blocking: str | Blocks | None = option(
        "auto",
        "tree, halves, univariate or none; auto is a tree for mdav and vmdav, none for the others",
    )
    max_block: int | str = option("auto", "largest block of records that is searched for groups")
    standardize: bool = option(True, "measure distances in units of the columns' deviations")
    by: Any = option(None, "columns whose values groups never mix")
    small: str = option("error", "error, or merge: strata below k join the nearest ones")
    missing: str = option(
        "error", "error, or separate: records with the same missing cells form groups"
    )
    missing_values: Any = option(None, "numbers that stand for missing cells, such as -9")
    refine: bool | int | str = option(
        False, "true, thorough, or how often records are tried in other groups: a smaller SSE"
    )
    borders: bool = option(
        False, "refine groups once more in other blocks, so that borders of blocks cost little"
    )
    decimals: int | None = option(None, "digits to which centroids are rounded")
    orders: Mapping[Hashable, Sequence[Any]] | None = option(
        None, "NAME=LOW,...,HIGH: a column of ordered values; again for another column"
    )
    nominal: Any = option(None, "columns whose values are equal or different, such as codes")
    importance: Mapping[Hashable, float] | None = option(
        None, "NAME=X: how much squared differences of a column count; again for another column"
    )
    keep_integers: bool = option(False, "round means of integers, which stay integers")
    unit: Any = option(None, "the column of persons or households, which k counts then")
    units_alike: bool = option(False, "all records of a unit get the same values")
    gain: float | None = option(None, "of vmdav: how readily a group takes more than k records")
    weights: Sequence[float] | None = option(None, "of weighted_mean: one for each column")
    measure: Measure | tuple[Measure, Measure] | None = option(
        None,
        "of owa, choquet, sugeno, twofold: a quantifier power:X, sigmoid:X or threshold:X",
        flag="--fuzzy-measure",
    )

    def __post_init__(self) -> None:
        arguments.one_of(self.method, "method", METHODS)
        kept = blockwise.check_options(self, blockwise.blockings("auto"))
        kept["standardize"] = arguments.flag(self.standardize, "standardize")
        if self.decimals is not None:
            kept["decimals"] = arguments.whole_number(self.decimals, "decimals", -300)
            if kept["decimals"] > 300:
                raise SdcValueError(
                    f"decimals must be at most 300, received {self.decimals}: leave it out."
                )
        if self.blocks_by is None:
            arguments.no_block_size(kept["max_block"])
        arguments.one_of(self.small, "small", ["error", MERGE])
        if self.small == MERGE:
            self._check_merging(kept["columns"], kept["by"])
        kept |= self._checked_kinds(
            [name for each in kept["columns"] for name in each],
            kept["by"] if self.small == MERGE else (),
        )
        kept["refine"] = self._checked_refine()
        kept["borders"] = self._checked_borders()
        kept["units_alike"] = arguments.flag(self.units_alike, "units_alike")
        if kept["units_alike"] and self.unit is None:
            raise SdcValueError(
                "units_alike=True treats all records of a unit alike: name the column of persons "
                "or households in unit=, or leave it out."
            )
        kept |= _own_option(self, kept["columns"])
        for name, value in kept.items():
            object.__setattr__(self, name, value)

    def _check_merging(self, columns: arguments.ColumnSets, by: tuple[Hashable, ...]) -> None:
        """Raise ValueError where strata cannot be merged."""
        if not by:
            raise SdcValueError(
                "small='merge' is for strata, and there are none: name their columns in by=, or "
                "leave it out."
            )
        if isinstance(self.blocking, Blocks):
            raise SdcValueError(
                "small='merge' has no meaning with blocks that are made, which have their strata: "
                "name a blocking, such as 'tree'."
            )
        if self.missing == "separate" and len(columns) > 1:
            raise SdcValueError(
                f"small='merge' with missing='separate' takes one set of columns, received "
                f"{len(columns)}: a record cannot join one stratum for each set. Mask one set, or "
                "fill missing cells first."
            )

    def _checked_kinds(
        self, masked: Sequence[Hashable], merged: Sequence[Hashable]
    ) -> dict[str, Any]:
        """Return what is said of columns that are no plain numbers, or of their weights."""
        compared = [*masked, *merged]
        kept: dict[str, Any] = {
            "orders": arguments.orders(self.orders, compared),
            "nominal": arguments.masked_names(self.nominal, "nominal", compared),
            "importance": arguments.importance(self.importance, compared),
            "keep_integers": arguments.flag(self.keep_integers, "keep_integers"),
        }
        both = [name for name, _ in kept["orders"] if name in kept["nominal"]]
        if both:
            raise SdcValueError(
                f"orders and nominal both name columns: {arguments.listed(both)}. Values have an "
                "order, or none."
            )
        if kept["keep_integers"] and (self.decimals or 0) < 0:
            raise SdcValueError(
                "decimals below 0 and keep_integers do not go together: rounded means may be "
                "beyond what a column can hold. Leave one of them out."
            )
        if self.unit is not None:
            kept["unit"] = self._checked_unit(masked)
        given = [name for name, value in kept.items() if value not in (False, (), None)]
        # What is said of columns of `by` has a meaning with any method.
        of_sets = {
            "orders": set(dict(kept["orders"])) - set(merged),
            "nominal": set(kept["nominal"]) - set(merged),
            "importance": set(dict(kept["importance"])) - set(merged),
        }
        given = [name for name in given if of_sets.get(name, True)]
        if given and self.ordered:
            raise SdcValueError(
                f"{given[0]} has no meaning with method={self.method!r}, which puts numbers in "
                "order: leave it out, or use method='mdav' or 'vmdav'."
            )
        if kept["importance"] and not self.standardize:
            raise SdcValueError(
                "importance has no meaning with standardize=False, which measures columns in their "
                "own units: leave one of them out."
            )
        return kept

    def _checked_unit(self, masked: Sequence[Hashable]) -> Hashable:
        if not isinstance(self.unit, Hashable):
            raise SdcTypeError(
                f"unit must be the name of one column, received {type(self.unit).__name__}."
            )
        if self.unit in masked:
            raise SdcValueError(
                f"unit names a column that is masked: {self.unit!r}. Name the persons or "
                "households, who are not masked, and drop the column from a release."
            )
        if isinstance(self.blocking, Blocks):
            raise SdcValueError(
                "unit has no meaning with blocks that are made, which were made for k records: "
                "name a blocking, such as 'tree'."
            )
        return self.unit

    def _checked_refine(self) -> bool | int | str:
        value = self.refine
        if isinstance(value, str):
            arguments.one_of(value, "refine", [THOROUGH, True, False])
        elif isinstance(value, (bool, np.bool_)):
            value = bool(value)
        else:
            value = arguments.whole_number(value, "refine", 1)
        if value and self.method == "optimal":
            raise SdcValueError(
                "refine has no meaning with method='optimal', which has the smallest SSE already: "
                "leave it out."
            )
        if value and not self.in_blocks:
            raise SdcValueError(
                f"refine works within blocks, and method={self.method!r} has one order of all "
                "records: pass blocking='tree', or use method='mdav'."
            )
        return value

    def _checked_borders(self) -> bool:
        value = arguments.flag(self.borders, "borders")
        if value and not self.refine:
            raise SdcValueError(
                "borders=True refines groups in other blocks: pass refine=True as well, or leave "
                "it out."
            )
        if value and self.blocking is None:
            raise SdcValueError(
                "borders=True has no meaning with blocking=None, which makes one block: leave it "
                "out, or name a blocking."
            )
        if value and isinstance(self.blocking, Blocks):
            raise SdcValueError(
                "borders=True needs other blocks beside those that are made: name a blocking, such "
                "as 'tree', or leave it out."
            )
        return value

    @property
    def ordered(self) -> bool:
        """Whether records are put in order and cut into groups."""
        return METHODS[self.method][0]

    @property
    def ranks_alone(self) -> bool:
        """Whether each column is ranked and cut into groups by itself (individual ranking)."""
        return self.ordered and all(len(columns) == 1 for columns in self.column_sets)

    @property
    def blocks_by(self) -> str | Blocks | None:
        """How records are cut into blocks: None where "auto" stands for that."""
        return None if self._auto and self.ordered else self.blocking

    @property
    def _auto(self) -> bool:
        return isinstance(self.blocking, str) and self.blocking == "auto"

    @property
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns that are masked together."""
        return self.columns

    @property
    def merged(self) -> tuple[Hashable, ...]:
        """Columns of strata that get other values where strata are merged."""
        return self.by if self.small == MERGE else ()

    @property
    def promise(self) -> int:
        """Every class of records that are equal in a column set has k records at least."""
        return self.k

    @property
    def in_blocks(self) -> bool:
        """Whether records are masked in blocks; without a blocking, MDAV has one for all."""
        return not (self.ordered and self.blocks_by is None)

    def describe(self) -> str:
        """Return a few words for people."""
        refined = ", refined" if self.refine else ""
        refined += " across blocks" if self.borders else ""
        merged = ", small strata merged" if self.merged else ""
        return f"microaggregation by {self.method}{refined}, k = {self.k:,}{merged}"

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """Columns that are said to hold categories, or do as strata, whatever their dtypes are."""
        return tuple(dict.fromkeys((*dict(self.orders or ()), *self.nominal, *self.merged)))

    @property
    def keeps_dtypes(self) -> bool:  # type: ignore[override]
        """Whether integers stay integers."""
        return self.keep_integers

    def dtype_of(self, column: Hashable, dtype: Any) -> Any:
        """Return the dtype that a masked column has, by the one that it had."""
        is_mean = is_numeric(dtype) and column not in self.categories
        return super().dtype_of(column, dtype) if is_mean else dtype

    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns, and these can be masked."""
        meta = blockwise.check_columns(self, frame)
        if self.missing_values:
            check_numeric(meta, self.in_sets, ", as missing_values need")
        if self.ordered:
            check_numeric(meta, self.in_sets, f", as method={self.method!r} needs")
        if self.unit is not None:
            arguments.existing(meta, [self.unit], "unit")
        kinds = self._taken_for(meta)
        self._strata_taken_for(meta)
        others = [name for name, each in kinds.items() if each.kind not in (NUMBER, WHOLE)]
        for name, value, allowed in (
            ("standardize=False", not self.standardize, "they have no unit in common"),
            ("blocking= with blocks that are made", isinstance(self.blocking, Blocks), "blocks"),
        ):
            if value and others:
                raise SdcValueError(
                    f"{name} is for numbers alone, and columns are none: "
                    f"{arguments.listed(others)}: {allowed}. Leave it out, or leave them out."
                )

    def _taken_for(self, meta: pd.DataFrame) -> dict[Hashable, Asked]:
        """Return what the columns of a frame are taken for."""
        orders = dict(self.orders or ())
        return kinds_of(meta, self.in_sets, orders, self.nominal, keep_integers=self.keep_integers)

    def _strata_taken_for(self, meta: pd.DataFrame) -> dict[Hashable, Asked]:
        """Return what columns of strata that may be merged are taken for: anything has a kind."""
        known = [name for name in self.merged if has_kind(meta[name].dtype)]
        found = kinds_of(meta, known, dict(self.orders or ()), self.nominal)
        return {name: found.get(name, Asked(NOMINAL)) for name in self.merged}

    def plan(self, frame: Frame, entropy: int = 0) -> list[Step | Change]:
        """Scan a frame and plan its blocks: all passes over the data that come before masking."""
        asked = self._taken_for(meta_of(frame))
        units = [] if self.unit is None else [self.unit]
        needed = frame[list(dict.fromkeys([*self.in_sets, *self.by, *units]))]
        coding = coding_of(needed, asked)
        coded = coding.frame(needed)
        changes: list[Change] = []
        if self.merged:
            scanned, strata = blockwise.survey(coded, self, small_strata=True)
            merging = merge_strata(
                needed,
                coded,
                scanned,
                strata[0],  # they are the same for all sets
                self.in_sets,
                coding,
                self._strata_taken_for(meta_of(frame)),
                dict(self.importance or ()),
                self.k,
                self.unit,
            )
            changes, strata = [merging], [merging.strata()] * len(strata)
            coded = coding.frame(changed(needed, changes))
        else:
            scanned, strata = blockwise.survey(coded, self)
        steps = [
            self._step(coded, scanned, each, columns, coding.of(columns))
            for columns, each in zip(self.columns, strata, strict=True)
        ]
        return [*changes, *steps]

    def _step(
        self,
        frame: Frame,
        scanned: Scan,
        strata: Strata,
        columns: tuple[Hashable, ...],
        coding: Coding,
    ) -> Step:
        importance = dict(self.importance or ())
        coordinates = mixed_coordinates(
            scanned, coding, columns, importance, standardize=self.standardize
        )
        nominal = nominal_columns(coding, columns, importance)
        if self.refine:
            _check_categories(nominal)
        grouping: Grouping
        if self.ordered:
            projection = self._projection(frame, scanned, columns)
            if self.blocks_by is None:
                items = Records(columns, projection, scanned.expected(columns))
                order = plan_order(frame, items, strata, scanned.rows)
                mask: Mask = MaskInOrder(self.k, coordinates, order, self.decimals)
                return Step(order, mask, sums=scanned.sums(columns))
            grouping = Ordered(self.k, projection)
        elif self.method == "vmdav":
            assert self.gain is not None
            grouping = Vmdav(self.k, self.gain, nominal)
        else:
            grouping = Mdav(self.k, nominal)
        if self.refine:
            # MDAV takes too long for blocks as large as refinement can have them.
            indexed = not nominal.places
            within = auto_block(scanned.n, len(columns), self.k, indexed=indexed)
            grouping = refined = Refined(
                grouping, self.k, self.refine, None if self.ordered else within, nominal
            )
        blocks = self._blocks(frame, scanned, strata, columns, coordinates, nominal)
        placement = blockwise.place_in_blocks(
            frame, self, scanned, blocks, coding=coding, unit=self.unit
        )
        by_centroids = MaskByCentroids(
            self.k,
            coordinates,
            grouping,
            self.decimals,
            representatives(coding, columns),
            by_unit=self.unit is not None,
        )
        numbers = [name for name in columns if coding.kind(name) in (NUMBER, WHOLE)]
        alike = self.units_alike and len(blocks) > 1
        if alike:
            places = unit_places(placement, len(scanned.rows))
            homes = Homes(placement.blocks, by_centroids, nominal)
            blocks, arriving = plan_homes(frame, places, blocks, homes, self.k)
            placement = unit_places(
                blockwise.place_in_blocks(
                    frame, self, scanned, blocks, coding=coding, unit=self.unit
                ),
                len(scanned.rows),
            )
        mask = by_centroids
        if self.borders and has_borders(placement):
            others = blockwise.other_blocks(frame, scanned, strata, coordinates, blocks)
            width = len(columns) + (self.unit is not None)
            mask = MaskAcrossBorders(by_centroids, refined, onward(placement, others), width)
        if alike:
            homes = replace(homes, blocks=placement.blocks)
            mask = MaskWholeUnits(mask, homes, arriving, len(columns) + 1)
        return Step(placement, mask, sums=scanned.sums(numbers))

    def blocks(self, frame: Frame) -> Blocks:
        """Scan a frame of numbers and plan the blocks of the first set of columns."""
        scanned, (strata, *_) = blockwise.survey(frame, self)
        columns = self.columns[0]
        coordinates = scanned.coordinates(columns, standardize=self.standardize)
        return self._blocks(frame, scanned, strata, columns, coordinates, NominalColumns())

    def _blocks(
        self,
        frame: Frame,
        scanned: Scan,
        strata: Strata,
        columns: tuple[Hashable, ...],
        coordinates: Coordinates,
        nominal: NominalColumns,
    ) -> Blocks:
        n, d, k = scanned.n, len(columns), self.k
        linear = self.ordered or self.refine
        indexed = not nominal.places
        width = d + sum(nominal.categories)
        largest = max(k, linear_block(width)) if linear else auto_block(n, d, k, indexed=indexed)
        return blockwise.blocks_for(
            frame,
            self,
            scanned,
            strata,
            columns,
            coordinates,
            # With categories, the 2^d-tree loses less (measured by benchmarks/mixed.py).
            (auto_blocking(d) if indexed else "tree") if self._auto else self.blocking,
            largest,
            fill=bool(self.refine or nominal.places),
            unit=self.unit,
        )

    def _projection(self, frame: Frame, scanned: Scan, columns: tuple[Hashable, ...]) -> Projection:
        """Return what records are put in order by. The first principal component takes a pass."""
        if self.method == "optimal":
            return Single()
        if self.method == "zscores":
            standardized = scanned.coordinates(columns, standardize=True)
            return Axis(standardized, np.ones(len(columns)))
        if self.method == "pcp":
            moments = co_moments(frame, columns)
            axis = principal_axis(moments, standardize=self.standardize)
            return Axis(scanned.coordinates(columns, standardize=self.standardize), axis)
        parameters = parameters_of(self)
        missing = sum(scanned.columns[column].missing for column in columns)
        if missing and not all(map(callable, parameters)) and self.method != "weighted_mean":
            raise SdcValueError(
                f"{missing} cells are missing, and a measure that is an array has no values for "
                "the columns that are left: use a quantifier, or fill the cells first."
            )
        return Aggregated(self.method, parameters, *scanned.bounds(columns))


def blocks_of(frame: Frame, spec: Microaggregation) -> Blocks:
    """Plan the blocks of one set of columns, for a method that needs them."""
    if len(spec.columns) > 1:
        raise SdcValueError(
            f"blocks are made of one set of columns, received {len(spec.columns)}: call this once "
            "for each."
        )
    blockwise.check_frame(spec, frame)
    return spec.blocks(frame)


def _check_categories(nominal: NominalColumns) -> None:
    """Refuse to refine groups of more categories than there can be coordinates."""
    total = sum(nominal.categories)
    if total > MOST_CATEGORIES:
        raise SdcValueError(
            f"refine takes nominal columns of up to {MOST_CATEGORIES} categories together, which "
            f"have {total}: leave it out, or recode rare ones."
        )


def _own_option(spec: Microaggregation, columns: arguments.ColumnSets) -> dict[str, Any]:
    """Return the option that belongs to the method alone, checked for every set of columns."""
    _, takes, default = METHODS[spec.method]
    for name in _OWN:
        if getattr(spec, name) is not None and name != takes:
            users = [user for user, (_, other, _) in METHODS.items() if other == name]
            raise SdcValueError(
                f"{name} has no meaning with method={spec.method!r}: leave it out. It belongs to "
                f"{', '.join(map(repr, users))}."
            )
    widest = max(columns, key=len)
    if spec.method == "optimal" and len(widest) > 1:
        others = [name for name in METHODS if name != "optimal"]
        raise SdcValueError(
            f"method='optimal' masks one column at a time, received a set of {len(widest)}: pass "
            "columns=[['a'], ['b'], ...], or use a method for several columns: "
            f"{', '.join(map(repr, others))}."
        )
    if takes is None:
        return {}
    value = getattr(spec, takes)
    value = default if value is None else value
    if value is None:
        raise SdcValueError(f"method={spec.method!r} needs {takes}=: name it.")
    if takes == "gain":
        return {"gain": arguments.number(value, "gain", 0.0)}
    is_pair = spec.method == "twofold" and isinstance(value, tuple) and len(value) == 2
    pair = (value if is_pair else (value, value)) if spec.method == "twofold" else (value,)
    for each in columns:
        # Weights and measures that do not fit are refused here, before any data is read.
        aggregate(spec.method, np.zeros((1, len(each))), pair)
    kept = tuple(
        each if callable(each) else tuple(np.asarray(each, float).tolist()) for each in pair
    )
    return {takes: kept if spec.method == "twofold" else kept[0]}


def parameters_of(spec: Microaggregation) -> tuple[Any, ...]:
    """Return the weights or measures of an aggregation function."""
    takes = METHODS[spec.method][1]
    if takes is None or spec.method not in AGGREGATIONS:
        return ()
    value = getattr(spec, takes)
    return value if spec.method == "twofold" else (value,)
