"""What a report measures: roles of columns, risk before and after masking, and loss."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd

from sdc_dask.engine.frames import Frame, map_reduce, meta_of
from sdc_dask.engine.moments import CoMoments, co_moments
from sdc_dask.errors import SdcError, SdcValueError
from sdc_dask.kernels.differences import Grid
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.spec import Spec
from sdc_dask.report.mixed import MixedFigures, mixed_figures
from sdc_dask.report.roles import Role, roles_of, with_uses
from sdc_dask.report.series import SeriesFigures, series_figures
from sdc_dask.report.shapes import Shape, counts_on, dominated, grids_of, shape_of
from sdc_dask.risk.anonymity import sizes_in, units_in
from sdc_dask.risk.attacks.fitting import fitting_attacks
from sdc_dask.risk.attacks.gower import BLIND, link_by_gower, strongest_by_gower
from sdc_dask.risk.diversity import Diversity, diversity
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.interval import interval_disclosure
from sdc_dask.risk.linkage import Linkage, mean_of
from sdc_dask.risk.worst_case import blind_attacks
from sdc_dask.sampling import Sampling
from sdc_dask.utility.bound import SSEGap, sse_gap
from sdc_dask.utility.information_loss import ColumnLoss, InformationLoss, information_loss
from sdc_dask.utility.sse import SSE, sse

Names = tuple[Hashable, ...]


@dataclass(frozen=True)
class Classes:
    """Classes of equal records, as far as they are small."""

    classes: int
    smallest: int
    below: int  # classes with fewer than k records, or units
    records: int | None  # in them; not known of units
    unit: Hashable | None = None  # of which different ones were counted, in the place of records

    @classmethod
    def of(cls, frame: Frame, columns: Names, k: int, unit: Hashable | None) -> Classes:
        """Count the classes of a frame."""
        sizes = sizes_in(frame, columns) if unit is None else units_in(frame, columns, unit)
        small = sizes.sizes < k
        return cls(
            int(sizes.classes.sum()),
            int(sizes.sizes.min()),
            int(sizes.classes[small].sum()),
            int((sizes.sizes * sizes.classes)[small].sum()) if unit is None else None,
            unit,
        )


@dataclass(frozen=True)
class Attack:
    """What an intruder links; nothing before masking if he makes use of the masking."""

    attack: str
    assumes: str
    before: Linkage | None
    after: Linkage


@dataclass(frozen=True)
class Risk:
    """What is risked if the original, or if the masked frame, is released."""

    columns: Names  # whose original values the intruder knows
    numbers: Names  # those of them that attacks on numbers know
    classes: tuple[tuple[Names, Classes, Classes], ...]  # by set of columns, before and after
    attacks: tuple[Attack, ...]  # the strongest after masking first
    interval: tuple[float, float] | None
    attributes: tuple[tuple[Diversity, Diversity], ...]  # by confidential column, before and after
    notes: tuple[str, ...]  # what could not be measured, and why

    @property
    def strongest(self) -> Attack | None:
        """The attack that links the most after masking."""
        return self.attacks[0] if self.attacks else None


@dataclass(frozen=True)
class ColumnFigures:
    """What became of the values of a column."""

    column: Hashable
    shown: bool  # whether its figures say nothing of a single record
    lost: float | None  # its SSE / SST, if it is not constant
    loss: ColumnLoss
    shape: Shape


@dataclass(frozen=True)
class Correlation:
    """The correlation of two columns."""

    columns: tuple[Hashable, Hashable]
    before: float
    after: float


@dataclass(frozen=True)
class Loss:
    """What was lost by masking."""

    sse: SSE
    gaps: tuple[SSEGap, ...]
    information: InformationLoss
    columns: tuple[ColumnFigures, ...]
    correlations: tuple[Correlation, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Measured:
    """All that is measured of one masking."""

    name: str | None
    specs: tuple[Spec, ...]
    roles: tuple[Role, ...]
    risk: Risk | None
    loss: Loss | None  # of numbers
    mixed: MixedFigures | None  # of columns of every kind, if some are not numbers
    series: tuple[SeriesFigures, ...] = ()  # by spec that masks some


class Original:
    """The original frame, and what is measured of it once for all maskings."""

    def __init__(
        self,
        frame: Frame,
        numbers: Names,
        k: int,
        least: int,
        sampling: Sampling,
        confidential: Names = (),
        others: Names = (),
    ) -> None:
        self.frame = frame
        self.numbers = numbers
        self.others = others
        self.k = k
        self.least = least
        self.sampling = sampling
        self.confidential = confidential
        self.rows: int = map_reduce(frame, _count_rows, sum)
        if numbers:
            self.moments: CoMoments = co_moments(frame, numbers)
            self.grids: dict[Hashable, Grid] = grids_of(frame, self.moments)
            self.counts = counts_on(frame, self.grids)
            self.dominated = dominated(frame, self.moments)
        self._kept: dict[Any, Any] = {}

    def classes(self, columns: Names, unit: Hashable | None) -> Classes:
        """Count classes of the original."""
        key = "classes", columns, unit
        if key not in self._kept:
            self._kept[key] = Classes.of(self.frame, columns, self.k, unit)
        return self._kept[key]

    def linkage(self, columns: Names) -> dict[str, Linkage]:
        """Link the original to itself, by attacks that know nothing else."""
        key = "linkage", columns
        if key not in self._kept:
            itself = Encounter.of(self.frame, self.frame, columns, self.sampling)
            self._kept[key] = {
                each.attack: mean_of(each.link(itself, [columns]))
                for each in blind_attacks([columns])
            }
        return self._kept[key]

    def gower(self, columns: Names) -> Linkage:
        """Link the original to itself, by columns of every kind."""
        key = "gower", columns
        if key not in self._kept:
            self._kept[key] = link_by_gower(self.frame, self.frame, columns, self.sampling)
        return self._kept[key]

    def complete(self, columns: Names) -> Names:
        """Return the columns without missing cells."""
        return tuple(name for name in columns if self.moments.sums[name].n == self.moments.n)

    def attributes(self, columns: Names) -> tuple[Diversity, ...]:
        """Measure what classes of the original reveal of confidential columns."""
        key = "attributes", columns
        if key not in self._kept:
            self._kept[key] = diversity(self.frame, columns, self.confidential)
        return self._kept[key]

    def interval(self, columns: Names) -> float:
        """Measure the interval disclosure of the original as it is."""
        key = "interval", columns
        if key not in self._kept:
            self._kept[key] = interval_disclosure(self.frame, self.frame, columns).interval
        return self._kept[key]


def measure(
    original: Original,
    masked: Frame,
    specs: Sequence[Spec],
    name: str | None,
    *,
    risk: bool,
    roles: tuple[Role, ...] | None = None,
) -> Measured:
    """Measure one masking; without risk if that is not to be shown.

    Roles of columns are found out by comparing them, unless they are known.
    """
    if roles is None:
        roles = roles_of(original.frame, masked, specs)
    loss = _loss(original, masked, specs, gaps=risk) if original.numbers else None
    mixed = None
    if original.others:
        everything = (*original.numbers, *original.others)
        mixed = mixed_figures(
            original.frame,
            masked,
            everything,
            original.numbers,
            original.least,
            reading_of(specs),
        )
    found = _risk(original, masked, specs) if risk else None
    series = series_figures(original.frame, masked, specs, original.sampling, risk=risk)
    used = with_uses(roles, specs, original.confidential)
    return Measured(name, tuple(specs), used, found, loss, mixed, series)


def _count_rows(part: pd.DataFrame, _number: int) -> int:
    return len(part)


# Risk


def known_to_intruders(columns: Names, specs: Sequence[Spec]) -> Names:
    """Return the compared columns that were masked; all if it is not known by what."""
    masked = {column for spec in specs for column in spec.masked}
    return tuple(column for column in columns if not specs or column in masked)


def _risk(original: Original, masked: Frame, specs: Sequence[Spec]) -> Risk:
    numbers = known_to_intruders(original.numbers, specs)
    others = known_to_intruders(original.others, specs)
    known = (*numbers, *others)
    notes: list[str] = []
    sets = _class_sets(original.frame, masked, specs, known, notes)
    classes = tuple(
        (each, original.classes(each, unit), Classes.of(masked, each, original.k, unit))
        for each, unit in sets
    )
    notes += _smaller_promises(specs, original.k)
    together, _ = sets[-1]
    attacks: list[Attack] = []
    interval = None
    if numbers:
        attacks += _links(original, masked, specs, numbers, notes)
        try:
            after_masking = interval_disclosure(original.frame, masked, numbers).interval
            interval = original.interval(numbers), after_masking
        except SdcError as error:
            notes.append(f"Interval disclosure could not be measured: {error}")
    if others:
        attacks += _links_by_all(original, masked, specs, known, others, notes)
        notes.append(
            f"Intruders who make use of more than the recoding of {_names(others)} are not "
            "modelled."
        )
    attacks.sort(key=lambda each: -each.after.rate)
    attributes: tuple[tuple[Diversity, Diversity], ...] = ()
    if original.confidential:
        after_all = diversity(masked, together, original.confidential)
        attributes = tuple(zip(original.attributes(together), after_all, strict=True))
    return Risk(known, numbers, classes, tuple(attacks), interval, attributes, tuple(notes))


def _smaller_promises(specs: Sequence[Spec], k: int) -> Iterator[str]:
    """Say which columns may have classes below k, since less was asked for."""
    for spec in specs:
        if spec.promise is not None and spec.promise < k:
            for each in spec.column_sets:
                yield (
                    f"{_names(each)}: k = {spec.promise:,} was asked for, and classes are counted "
                    f"below {k:,}, as for all columns."
                )


def _class_sets(
    original: Frame, masked: Frame, specs: Sequence[Spec], known: Names, notes: list[str]
) -> list[tuple[Names, Hashable | None]]:
    """Return sets of columns in which classes are counted, and units if k counts these.

    The last has all columns. Sets of the same columns are one.
    """
    sets: dict[frozenset[Hashable], tuple[Names, Hashable | None]] = {}
    for spec in specs:
        for each in spec.column_sets:
            earlier, unit = sets.get(frozenset(each), (tuple(each), None))
            sets[frozenset(each)] = earlier, unit if spec.unit is None else spec.unit
    if not specs:
        sets[frozenset(known)] = known, None
    together = tuple(dict.fromkeys(column for each, _ in sets.values() for column in each))
    of_all = {unit for _, unit in sets.values()}
    all_of_them = sets.pop(
        frozenset(together), (together, of_all.pop() if len(of_all) == 1 else None)
    )
    both = set(meta_of(original).columns) & set(meta_of(masked).columns)
    found = []
    for each, unit in [*sets.values(), all_of_them]:
        if unit is not None and unit not in both:
            notes.append(
                f"Classes of {_names(each)} were counted by records, although k counts different "
                f"{unit}: the masked data has no such column."
            )
            unit = None
        found.append((each, unit))
    return found


def _links(
    original: Original, masked: Frame, specs: Sequence[Spec], numbers: Names, notes: list[str]
) -> list[Attack]:
    """Run the attacks of intruders who know numbers, and note what could not be measured."""
    attacks: list[Attack] = []
    complete = original.complete(numbers)
    lacking = [column for column in numbers if column not in complete]
    if lacking:
        notes.append(
            f"Links were measured without {_names(lacking)}: cells are missing there, "
            "which intruders are not modelled with."
        )
    try:
        if not complete:
            raise SdcValueError("all columns that intruders know have missing cells.")
        encounter = Encounter.of(original.frame, masked, complete, original.sampling)
        before = original.linkage(complete)
        for each in [*blind_attacks([complete]), *fitting_attacks(specs, [complete])]:
            after = mean_of(each.link(encounter, [complete]))
            blind = each.assumes == "nothing else"
            earlier = before[each.attack] if blind else None
            attacks.append(Attack(each.attack, each.assumes, earlier, after))
    except SdcError as error:
        notes.append(f"Links could not all be measured: {error}")
    return attacks


def _links_by_all(
    original: Original,
    masked: Frame,
    specs: Sequence[Spec],
    known: Names,
    others: Names,
    notes: list[str],
) -> list[Attack]:
    """Run the attack of an intruder who knows columns of every kind."""
    try:
        knows, after = strongest_by_gower(original.frame, masked, known, original.sampling, specs)
        assumes = f"values of {_names(others)}" + (f", and {knows}" if knows != BLIND else "")
        return [Attack("Gower distance", assumes, original.gower(known), after)]
    except SdcError as error:
        notes.append(f"Links by columns of every kind could not be measured: {error}")
        return []


# Loss


def _loss(original: Original, masked: Frame, specs: Sequence[Spec], *, gaps: bool) -> Loss:
    frame, columns = original.frame, original.numbers
    lost = sse(frame, masked, columns)
    information = information_loss(frame, masked, columns)
    moments = co_moments(masked, columns)
    counts = counts_on(masked, original.grids)
    figures = []
    for column in columns:
        sums = original.moments.sums[column]
        shape = shape_of(
            original.grids[column], original.counts[column], counts[column], original.least
        )
        shown = sums.n >= original.least and column not in original.dominated
        share = lost.by_column[column] / sums.n if sums.spread else None
        figures.append(ColumnFigures(column, shown, share, information.columns[column], shape))
    shown_columns = {each.column for each in figures if each.shown}
    correlations = tuple(
        Correlation(pair, sums.correlation, moments.pairs[pair].correlation)
        for pair, sums in original.moments.pairs.items()
        if sums.n >= original.least and shown_columns.issuperset(pair)
    )
    found, notes = _gaps(original, masked, specs) if gaps else ([], [])
    return Loss(lost, tuple(found), information, tuple(figures), correlations, tuple(notes))


def _gaps(
    original: Original, masked: Frame, specs: Sequence[Spec]
) -> tuple[list[SSEGap], list[str]]:
    """Return how far from the least SSE groups of k are, and what could not be measured."""
    found, notes = [], []
    for spec in specs:
        if not isinstance(spec, Microaggregation) or spec.missing != "error":
            continue
        for each in spec.column_sets:
            if not set(each) <= set(original.numbers):
                continue  # the least SSE is known of numbers alone
            try:
                found.append(sse_gap(original.frame, masked, each, spec.k, original.sampling))
            except SdcError as error:
                notes.append(f"The gap to the least SSE could not be measured: {error}")
    return found, notes


def _names(columns: Sequence[Hashable]) -> str:
    return ", ".join(map(str, columns))
