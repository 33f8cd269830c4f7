"""The road of every masking: specs are checked, planned, and their steps gone through in turn."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from sdc_dask import arguments
from sdc_dask.engine.columns import with_columns
from sdc_dask.engine.frames import Frame, Task, is_dask, meta_of
from sdc_dask.engine.in_place import Change, OneForm, changed
from sdc_dask.engine.trip import (
    Step,
    Trip,
    put_home,
    stay_in_blocks,
    travel_home,
    travel_to_files,
)
from sdc_dask.errors import SdcValueError
from sdc_dask.masking.afterwards import advise
from sdc_dask.masking.spec import Spec, spec_list


@dataclass(frozen=True)
class Planned:
    """A spec and what masks a frame by it: what remains is to move and to mask.

    Attributes
    ----------
    spec : Spec
    parts : sequence
        Steps or changes, one for each set of columns; before steps, changes of strata.
    """

    spec: Spec
    parts: Sequence[Step | Change]

    @property
    def by_set(self) -> Sequence[Step | Change]:
        """What masks each set of columns."""
        return self.parts if self.spec.in_place else self.steps

    @property
    def notes(self) -> tuple[str, ...]:
        """What a person may want to know of changes of strata."""
        changes = [] if self.spec.in_place else self.changes
        return tuple(note for change in changes for note in change.notes)

    @property
    def steps(self) -> list[Step]:
        """Those that send records elsewhere."""
        return [each for each in self.parts if isinstance(each, Step)]

    @property
    def changes(self) -> list[Change]:
        """Those that change records where they are."""
        return [each for each in self.parts if isinstance(each, Change)]


def plan(frame: Frame, specs: Sequence[Spec], random_state: Any = None) -> list[Planned]:
    """Check specs against a frame, and plan them: all passes that come before masking.

    Those that change records in place come first, in the order of the list, and are planned on
    what those before them leave. The others are planned on what all of them leave.
    """
    order = sorted(range(len(specs)), key=lambda place: not specs[place].in_place)
    meta = meta_of(frame)
    for spec in (specs[place] for place in order):
        spec.check(meta)
        if spec.in_place:
            meta = _meta_after(meta, spec)
    drawing = [spec for spec in specs if spec.draws]
    if random_state is not None and not drawing:
        raise SdcValueError(
            "random_state has no meaning here: chance has no part in this masking. Leave it out."
        )
    entropy = arguments.entropy(random_state)
    planned: dict[int, Planned] = {}
    for place in order:
        spec = specs[place]
        own = _entropy_of(entropy, drawing, spec) if spec.draws else 0
        seen = _seen(frame, specs, changes_of(planned.values()))
        planned[place] = Planned(spec, [*_strata_in_one_form(spec, meta), *spec.plan(seen, own)])
    return [planned[place] for place in range(len(specs))]


def _strata_in_one_form(spec: Spec, meta: pd.DataFrame) -> list[Change]:
    """Return what makes floats of `by`, which are not masked, as strata compare them.

    The sign of a zero, or a NaN beside missing cells, would split classes of k.
    """
    kept = [] if spec.in_place else [name for name in spec.by if name not in spec.masked]
    floats = [name for name in kept if pd.api.types.is_float_dtype(meta[name].dtype)]
    return [OneForm(tuple(floats))] if floats else []


def _seen(frame: Frame, specs: Sequence[Spec], changes: Sequence[Change]) -> Frame:
    """Return what specs see of a frame after changes: of other columns, nothing is read."""
    if not changes:
        return frame
    used = dict.fromkeys(
        name
        for spec in specs
        for name in (*spec.masked, *spec.by, *([] if spec.unit is None else [spec.unit]))
    )
    return changed(frame[list(used)], changes)


def changes_of(planned: Iterable[Planned]) -> list[Change]:
    """Return all changes of records in place, in the order in which they are made."""
    return [change for each in planned for change in each.changes]


def _meta_after(meta: pd.DataFrame, spec: Spec) -> pd.DataFrame:
    return with_columns(
        meta,
        {name: pd.Series([], dtype=spec.dtype_of(name, meta[name].dtype)) for name in spec.masked},
    )


def _entropy_of(entropy: int, drawing: list[Spec], spec: Spec) -> int:
    """Return what a spec draws from: no two of a list draw from the same."""
    position = next(i for i, each in enumerate(drawing) if each is spec)
    if position == 0:
        return entropy
    words = np.random.SeedSequence(entropy, spawn_key=(position,)).generate_state(4)
    return int.from_bytes(words.tobytes(), "little")


def mask(frame: Frame, specs: Any, *, keep_order: Any = True, random_state: Any = None) -> Frame:
    """Plan, and return the masked frame: lazily if the frame is a Dask frame."""
    listed = spec_list(specs)
    keep_order = arguments.flag(keep_order, "keep_order")
    if not keep_order:
        _check_blocks(listed)
    frame = _without_codes(frame, listed)
    planned = plan(frame, listed, random_state)
    if not keep_order:
        (step,) = planned[0].steps
        return stay_in_blocks(changed(frame, changes_of(planned)), step)
    masked = put_home(frame, _go(frame, planned, travel_home), changes_of(planned))
    if not is_dask(frame):
        advise(frame, masked, listed)
    return masked


def _without_codes(frame: Frame, specs: Sequence[Spec]) -> Frame:
    """Return a frame in which cells are missing that codes stand for; all else is as it was."""
    coded = [spec for spec in specs if spec.missing_values]
    for spec in coded:
        spec.check(frame)
    if not coded:
        return frame
    found = frame.copy()
    for spec in coded:
        for name in spec.in_sets:
            column = frame[name]
            is_whole = pd.api.types.is_integer_dtype(column.dtype)
            if is_whole and isinstance(column.dtype, np.dtype):
                unsigned = "U" if column.dtype.kind == "u" else ""
                column = column.astype(f"{unsigned}Int{8 * column.dtype.itemsize}")
            codes = [int(code) if code.is_integer() else code for code in spec.missing_values]
            fitting = [code for code in codes if not is_whole or isinstance(code, int)]
            found[name] = column.mask(column.isin(fitting))
    return found


def spool(
    frame: Frame, planned: Sequence[Planned], directories: Sequence[str], originals: str
) -> list[Trip]:
    """Mask a frame by specs that are planned, and spool the values of each step to a directory.

    Original values pass through another directory on their way to where they are masked.
    """
    folders = iter(directories)

    def travel(frame: Frame, step: Step, after: Task) -> Trip:
        return travel_to_files(frame, step, next(folders), originals, after)

    return _go(frame, planned, travel)


def _go(
    frame: Frame, planned: Sequence[Planned], travel: Callable[[Frame, Step, Task], Trip]
) -> list[Trip]:
    """Go through steps, each when the one before is masked: all at once would need the memory."""
    steps = [step for each in planned for step in each.steps]
    seen = _seen(frame, [each.spec for each in planned], changes_of(planned)) if steps else frame
    trips: list[Trip] = []
    for step in steps:
        trips.append(travel(seen, step, trips[-1].done if trips else None))
    return trips


def _check_blocks(specs: Sequence[Spec]) -> None:
    """Refuse what cannot stay at its blocks, before any data is read."""
    sets = [each for spec in specs for each in spec.column_sets]
    if len(sets) > 1:
        raise SdcValueError(
            f"keep_order=False takes one set of columns, received {len(sets)}: rows cannot be in "
            "the order of several sets' blocks. Use keep_order=True."
        )
    if not specs[0].in_blocks:
        raise SdcValueError(
            "keep_order=False leaves rows at their blocks, and there are none: use "
            "keep_order=True, or name a blocking."
        )
    if getattr(specs[0], "borders", False):
        raise SdcValueError(
            "keep_order=False leaves rows at their blocks, and borders=True masks them in several: "
            "use keep_order=True, or leave borders out."
        )
    if getattr(specs[0], "units_alike", False):
        raise SdcValueError(
            "keep_order=False leaves rows at the blocks of their own values, and units_alike=True "
            "sends units elsewhere: use keep_order=True, or leave units_alike out."
        )
