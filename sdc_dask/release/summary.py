"""What a protection did: the figures that a person wants to see at the end."""

from __future__ import annotations

import json
import os
from collections.abc import Hashable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sdc_dask.engine.in_place import Change
from sdc_dask.engine.trip import Step
from sdc_dask.evaluation import Score
from sdc_dask.masking.spec import Spec
from sdc_dask.release.promises import Matches
from sdc_dask.results import Result, several
from sdc_dask.risk.anonymity import Anonymity
from sdc_dask.risk.linkage import Linkage
from sdc_dask.utility.bound import SSEGap
from sdc_dask.utility.mixed_loss import MixedLoss
from sdc_dask.utility.sse import SSE


@dataclass(frozen=True)
class MaskedSet:
    """What became of columns that were masked together."""

    spec: Spec
    columns: tuple[str, ...]
    blocks: int | None  # None if all records were put in order
    max_block: int | None
    anonymity: Anonymity | None  # counted on the files if the spec promises k
    matches: Matches | None = None  # the same, if it promises k records that match
    looked_at: bool = False  # whether values were compared with those that may be there
    notes: tuple[str, ...] = ()
    units: Anonymity | None = None  # the same by units, if the spec promises k of these
    parted: int | None = None  # units with records that differ, if the spec promises that none do
    noise: tuple[str, ...] | None = None  # columns without noise of its size, if it was looked for

    @classmethod
    def of(
        cls,
        spec: Spec,
        columns: Sequence[Hashable],
        part: Step | Change,
        anonymity: Anonymity | None,
        matches: Matches | None = None,
        *,
        looked_at: bool = False,
        units: Anonymity | None = None,
        parted: int | None = None,
        noise: tuple[str, ...] | None = None,
        notes: tuple[str, ...] = (),
    ) -> MaskedSet:
        """Describe what a step or a change did."""
        blocks = part.blocks
        return cls(
            spec,
            tuple(map(str, columns)),
            len(blocks) if blocks else None,
            blocks.max_block if blocks else None,
            anonymity,
            matches,
            looked_at,
            (*notes, *(part.notes if isinstance(part, Change) else ())),
            units,
            parted,
            noise,
        )

    @property
    def checked(self) -> str:
        """What was checked on the files, besides rows and untouched columns."""
        if self.anonymity is not None:
            return "k"
        if self.matches is not None:
            return "matches"
        if self.noise is not None:
            return "noise"
        return "values" if self.spec.moves or self.looked_at else "rows"

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain Python objects; the spec is that of the whole list."""
        found = {
            "spec": self.spec.to_dict(),
            "columns": list(self.columns),
            "blocks": self.blocks,
            "max_block": self.max_block,
            "checked": self.checked,
        }
        return found | {
            "notes": list(self.notes),
            "matches": self.matches and asdict(self.matches),
            "anonymity": self.anonymity and self.anonymity.to_dict(),
            "units": self.units and self.units.to_dict(),
            "parted": self.parted,
        }

    def lines(self) -> list[str]:
        """Return what a person reads of it."""
        where = (
            f"{several(self.blocks, 'block')} (L = {self.max_block:,})"
            if self.blocks
            else "no blocks"
        )
        if self.spec.in_place:
            where = "record by record"
        lines = [
            f"  masked     {', '.join(self.columns)}",
            f"    by       {self.spec.describe()}; {where}",
        ]
        if self.spec.by:
            lines.append(f"    within   {', '.join(map(str, self.spec.by))}")
        lines += [f"    {note}" for note in self.notes]
        if self.anonymity is not None:
            lines += [
                f"    groups   {self.anonymity.classes:,}, {self.anonymity.k_mean:.2f} records on "
                "average",
                f"    k        {self.anonymity.k_min:,} reached, {self.spec.promise:,} asked for; "
                "counted on the files",
            ]
            if self.units is not None:
                lines[-1] = (
                    f"    k        {self.units.k_min:,} different {self.spec.unit} reached, "
                    f"{self.spec.promise:,} asked for; counted on the files"
                )
            if self.parted is not None:
                lines.append(
                    f"    alike    all records of each {self.spec.unit}; counted on the files"
                )
        elif self.matches is not None:
            lines.append(
                f"    k        {self.matches.smallest:,} records match each, "
                f"{self.spec.matches:,} asked for, where a missing cell matches any value; where "
                f"it does not, {self.matches.smallest_class:,} are equal in the smallest class; "
                "counted on the files"
            )
        elif self.spec.moves:
            lines.append(
                "    values   those of the source, at other records; compared on the files. No k "
                "is promised"
            )
        elif self.noise is not None:
            lines.append(
                "    noise    as much as was asked for; compared on the files. No k is promised"
            )
        elif self.looked_at:
            lines.append(
                "    values   those that the masking makes, and no others; looked at on the files. "
                "No k is promised"
            )
        else:
            lines.append("    rows     as many as in the source. No k is promised")
        return lines


@dataclass(frozen=True, repr=False)
class Summary(Result):
    """What was written, how well it is protected, what was lost, and how long it took."""

    target: str
    rows: int
    files: int
    size: int  # bytes
    order: str  # of the rows: "random", or that of the "source"
    masked: tuple[MaskedSet, ...]
    kept: tuple[str, ...]
    dropped: tuple[str, ...]
    joint: Anonymity | None  # in all masked columns, if they are several sets
    sse: SSE | None  # between the source and the files, of numbers
    seconds: dict[str, float]  # by stage
    known: dict[tuple[str, ...], Anonymity]  # by columns that an intruder may know, on request
    unique: dict[str, float]  # kept columns of which most records have a value of their own
    uncounted: tuple[str, ...]  # kept columns whose values cannot be compared, such as lists
    partition_by: tuple[str, ...] = ()  # columns by whose values there are directories
    directories: int = 1
    smallest_directory: int | None = None  # its rows, if there are several
    delta: bool = False  # whether it is a Delta table, too
    measured: tuple[Result, ...] = ()  # loss and risk between the same rows, on request

    @property
    def anonymity(self) -> tuple[Anonymity, ...]:
        """Classes of equal records, by set of columns for which k is promised."""
        return tuple(each.anonymity for each in self.masked if each.anonymity is not None)

    @property
    def unchanged(self) -> list[tuple[Spec, tuple[str, ...], bool]]:
        """Sets masked together, and whether all records keep their exact values, if numbers."""
        lost = self.sse.by_column if self.sse is not None else {}
        return [
            (each.spec, each.columns, all(lost.get(name) == 0 for name in each.columns))
            for each in self.masked
            if not each.spec.in_place
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON."""
        found = {
            name: getattr(self, name)
            for name in (
                *("target", "rows", "files", "size", "order", "kept", "dropped", "seconds"),
                *(
                    "unique",
                    "uncounted",
                    "partition_by",
                    "directories",
                    "smallest_directory",
                    "delta",
                ),
            )
        }
        found["masked"] = [each.to_dict() for each in self.masked]
        found["joint"] = self.joint and asdict(self.joint)
        found["known"] = [
            {"columns": list(columns), **asdict(each)} for columns, each in self.known.items()
        ]
        found["sse"] = self.sse and asdict(self.sse)
        found["measured"] = [
            {"measure": type(each).__name__, **each.to_dict()} for each in self.measured
        ]
        return found

    def write(self, file: str | os.PathLike[str]) -> None:
        """Write all of it as JSON, for whoever made the release: it is no part of it.

        Parameters
        ----------
        file : path
            Is overwritten, and can be read by its owner alone.
        """
        path = Path(file)
        text = json.dumps(self.to_dict(), indent=2) + "\n"
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as opened:
            opened.write(text)

    def __repr__(self) -> str:
        lines = [
            f"Protected {several(self.rows, 'row')} in {several(self.files, 'file')} "
            f"({self.size / 1e6:,.1f} MB): {self.target}"
        ]
        for each in self.masked:
            lines += each.lines()
        if self.joint:
            lines.append(
                f"  together   {self.joint.k_mean:.2f} records per class, {self.joint.k_min:,} in "
                "the smallest: k holds in each set of columns, not for all together"
            )
        for columns, found in self.known.items():
            below = "" if found.k is None else f", {found.below_k:,} below {found.k:,}"
            lines.append(
                f"  known      {', '.join(columns)}: {found.classes:,} classes{below}; the "
                f"smallest has {found.k_min:,} records"
            )
        if self.kept:
            lines.append(f"  unmasked   {', '.join(self.kept)}")
        if self.unique:
            lines.append(f"    unique   or nearly so: {', '.join(self.unique)}")
        if self.uncounted:
            lines.append(f"    unique   or not, which was not counted: {', '.join(self.uncounted)}")
        if self.dropped:
            lines.append(f"  dropped    {', '.join(self.dropped)}")
        if self.sse:
            lines.append(
                f"  lost       SSE / SST = {100 * self.sse.ratio:.4f} % "
                f"(SSE {self.sse.sse:,.4f}, SST {self.sse.sst:,.0f})"
            )
        if self.partition_by:
            lines.append(
                f"  divided    by {', '.join(self.partition_by)} into {self.directories:,} "
                f"directories; the smallest has {self.smallest_directory:,} records"
            )
        if self.delta:
            lines.append("  delta      it is a Delta table, too")
        alone = any(isinstance(each, MixedLoss) for each in self.measured)
        lines += [f"  measured   {_in_words(each, alone)}" for each in self.measured]
        if self.order == "source":
            lines.append(
                "  order      that of the source: whoever knows a position there knows the record"
            )
        else:
            where = "within each directory" if self.partition_by else "across all files"
            lines.append(f"  order      random, {where}")
        stages = ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in self.seconds.items())
        lines.append(f"  time       {stages}")
        return "\n".join(lines)


def checks_of(summary: Summary) -> list[str]:
    """Return what was checked of a release, a sentence each, for those who decide on it."""
    checks = [
        f"All {summary.rows:,} rows of the source are in the files, each once.",
        "Files were read again and compared with what was meant; columns that are kept are as "
        "they were.",
    ]
    for each in summary.masked:
        named = ", ".join(each.columns)
        if each.anonymity is not None:
            checks.append(
                f"{named}: classes were counted on the files; the smallest has "
                f"{each.anonymity.k_min:,} records, {each.spec.promise:,} were asked for."
            )
        elif each.matches is not None:
            checks.append(
                f"{named}: records that match were counted on the files; each is matched by "
                f"{each.matches.smallest:,} or more, {each.spec.matches:,} were asked for."
            )
        elif each.spec.moves:
            checks.append(f"{named}: the files have the values of the source, at other records.")
        elif each.checked == "values":
            checks.append(
                f"{named}: the files have values that the masking makes, and no others. No k is "
                "promised."
            )
        elif each.checked == "noise":
            checks.append(
                f"{named}: the files differ from the source by as much noise as was asked for. No "
                "k is promised."
            )
        if each.units is not None:
            checks.append(
                f"{named}: different {each.spec.unit} were counted on the files; the smallest "
                f"class has {each.units.k_min:,}, {each.spec.promise:,} were asked for."
            )
        if each.parted is not None:
            checks.append(f"{named}: all records of each {each.spec.unit} are equal in the files.")
    if summary.order == "random":
        checks.append("Rows are in random order, which was drawn afresh.")
    else:
        checks.append(
            "Rows are in the order of the source: whoever knows a position there knows the record."
        )
    if summary.unique:
        checks.append(f"Kept columns are unique or nearly so: {', '.join(summary.unique)}.")
    if summary.uncounted:
        checks.append(
            f"Not counted: whether values of {', '.join(summary.uncounted)} are unique, since they "
            "are lists or structs."
        )
    checks.append("Not checked: what other kept columns reveal, and links to other files.")
    return checks


def _in_words(score: Any, alone: bool) -> str:
    """Return a measure in words; that of numbers says so if they are not all that is masked."""
    if isinstance(score, SSEGap):
        named = ", ".join(map(str, score.columns))
        return f"{named}: the SSE is {score.times:.2f} times what no groups of k can be below"
    if isinstance(score, MixedLoss):
        named = ", ".join(map(str, score.by_column))
        return (
            f"{named}: loss {score.loss:.2f} % by Gower's distance, {score.unchanged:.2f} % of the "
            "cells unchanged"
        )
    if isinstance(score, Linkage):
        return (
            f"{score.rate:.2f} % linked by an intruder who knows all {score.columns} of them; "
            f"{score.tried:,} records tried"
        )
    text = (
        f"information loss {score.il:.2f}, disclosure risk {score.dr:.2f}, "
        f"score {score.score:.2f}; {score.tried:,} records tried"
    )
    if not isinstance(score, Score):
        return text
    text = f"numbers alone: {text}" if alone else text
    return f"{text}\n    attack   the strongest links {score.linked:.2f} %: {score.strongest}"
