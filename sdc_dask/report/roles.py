"""What became of every column, and what else it is used for."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from sdc_dask.engine.classes import cell_bits
from sdc_dask.engine.columns import is_numeric, to_float
from sdc_dask.engine.frames import Frame, map_reduce, meta_of
from sdc_dask.engine.pairs import pair_frames, pair_parts
from sdc_dask.engine.unique import Uniqueness, nearly_unique
from sdc_dask.masking.spec import Spec


@dataclass(frozen=True)
class Role:
    """What became of a column."""

    column: Hashable
    role: str  # masked, kept, changed, dropped, added, not compared
    specs: tuple[Spec, ...] = ()  # that mask it, in their order
    uses: tuple[str, ...] = ()  # what else it is there for
    unique: float | None = None  # the share of records with a value of their own, if most have one

    @classmethod
    def masked_by(cls, column: Hashable, specs: Sequence[Spec]) -> Role | None:
        """Return the role of a column that specs mask; None if they do not."""
        found = tuple(spec for spec in specs if column in spec.masked)
        return cls(column, "masked", found) if found else None


def with_uses(
    roles: Iterable[Role], specs: Sequence[Spec], confidential: Sequence[Hashable]
) -> tuple[Role, ...]:
    """Say of columns that they are strata, units or confidential."""
    uses: dict[Hashable, list[str]] = {}
    for spec in specs:
        for name in spec.by:
            uses.setdefault(name, []).append("values are never mixed (by)")
        if spec.unit is not None:
            uses.setdefault(spec.unit, []).append("counted by k (unit)")
    for name in confidential:
        uses.setdefault(name, []).append("confidential")
    return tuple(
        replace(role, uses=tuple(dict.fromkeys(uses.get(role.column, [])))) for role in roles
    )


def roles_of(original: Frame, masked: Frame, specs: Sequence[Spec]) -> tuple[Role, ...]:
    """Return what became of every column, in the order of the original, in one pass.

    Columns that no spec masks are compared cell by cell, and their different values are counted.
    """
    by = {column for spec in specs for column in spec.masked}
    before, after = meta_of(original), meta_of(masked)
    both = [column for column in before.columns if column in after.columns]
    others = [column for column in both if column not in by]
    differ: dict[Hashable, int | None] = {}
    unique: dict[Hashable, float] = {}
    if others:
        frames = pair_frames(original, masked, others)
        looked_at = map_reduce(frames, _look, _merge, others)
        differ = {column: each.differing for column, each in looked_at.items()}
        unique, _ = nearly_unique((column, each.values) for column, each in looked_at.items())
    roles = []
    for column in before.columns:
        if column not in both:
            roles.append(Role(column, "dropped"))
        elif masked_by := Role.masked_by(column, specs):
            roles.append(masked_by)
        else:
            count = differ[column]
            role = "not compared" if count is None else "changed" if count else "kept"
            roles.append(Role(column, role, unique=unique.get(column)))
    added = [Role(column, "added") for column in after.columns if column not in before.columns]
    return tuple(roles + added)


@dataclass(frozen=True)
class _Look:
    """How many cells of a column differ, and what values it has; nothing if these have no hash."""

    differing: int | None
    values: tuple[Uniqueness | None, ...]  # of the masked frame, by partition


def _look(
    original: pd.DataFrame, masked: pd.DataFrame, number: int, columns: list[Hashable]
) -> dict[Hashable, _Look]:
    original, masked = pair_parts(original, masked, number)
    return {column: _of_column(original[column], masked[column]) for column in columns}


def _of_column(old: pd.Series, new: pd.Series) -> _Look:
    try:
        values = (Uniqueness.of_series(new),)
        if is_numeric(old.dtype) and is_numeric(new.dtype):
            one, other = (to_float(each.to_frame(), [each.name])[:, 0] for each in (old, new))
            return _Look(int(((one != other) & ~(np.isnan(one) & np.isnan(other))).sum()), values)
        bits, others = (cell_bits(each)[0] for each in (old, new))
        return _Look(int((bits != others).sum()), values)
    except (TypeError, ValueError, NotImplementedError):  # lists, and others without a hash
        return _Look(None, ())


def _merge(parts: list[dict[Hashable, _Look]]) -> dict[Hashable, _Look]:
    total = dict(parts[0])
    for part in parts[1:]:
        for column, each in part.items():
            so_far = total[column]
            known = so_far.differing is not None and each.differing is not None
            total[column] = _Look(
                (so_far.differing or 0) + (each.differing or 0) if known else None,
                (*so_far.values, *each.values),
            )
    return total
