"""What is asked of a masking, as a value.

A spec says everything about a masking except the data and the seed: it is frozen, compares,
pickles, prints as code that makes it again, and goes through JSON. Frames are masked by it,
releases record it, and attacks can be told it.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import MISSING, field, fields
from html import escape
from typing import Any, ClassVar, Self

import numpy as np

from sdc_dask import aggregation, arguments
from sdc_dask.engine.blocks import Blocks
from sdc_dask.engine.columns import masked_dtype
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.in_place import Change
from sdc_dask.engine.trip import Step
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.keywords import check_names, nearest

_NAMES = ("columns", "by", "series", "nominal", "unit")  # fields that name columns
_BY_COLUMN = ("orders", "importance", "costs")  # fields with a value for each of some columns
_KIND = "masking"  # the key of a dict that says which spec it is of
_FAMILIES = {
    family.__name__: family
    for family in (aggregation.power, aggregation.sigmoid, aggregation.threshold)
}


def option(default: Any, text: str, flag: str | None = None) -> Any:
    """Return a field of a spec that may be left out, with what the command line says of it.

    Its flag there is its name, unless that says something else on a command line.
    """
    return field(default=default, metadata={"help": text, "flag": flag})


def needed(text: str) -> Any:
    """Return a field of a spec that must be given, with what the command line says of it."""
    return field(metadata={"help": text, "flag": None})


def values(text: str) -> Any:
    """Return a field that holds values of columns, or None, with what the command line says of it.

    They are written and read as they are: a text is never the name of something else.
    """
    return field(default=None, metadata={"help": text, "flag": None, "values": True})


class Spec(ABC):
    """A masking as a value: what is masked, and how.

    Specs are frozen dataclasses. They say nothing about a seed, which belongs to a run.

    Attributes
    ----------
    kind : str
        The name of the masking in dicts and job files.
    draws : bool
        Whether chance has a part in it.
    keeps_dtypes : bool
        Whether masked columns have the dtypes that they had; otherwise integers become floats.
    in_place : bool
        Whether records change where they are. In a list, later specs see what it leaves.
    """

    kind: ClassVar[str]
    draws: ClassVar[bool] = False
    keeps_dtypes: ClassVar[bool] = False
    in_place: ClassVar[bool] = False
    columns: Any
    by: Any
    unit: Any = None  # the column of persons or households, if k counts these
    units_alike: bool = False  # whether all records of one are equal then
    missing_values: Any = ()  # a field of those that know missing cells

    _kinds: ClassVar[dict[str, type[Spec]]] = {}

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        Spec._kinds[cls.kind] = cls

    def __new__(cls, *_args: Any, **given: Any) -> Self:
        """Make a spec, or say which argument was meant where one is misspelled."""
        check_names(cls.__name__, given, [each.name for each in fields(cls)])  # type: ignore[arg-type]
        return super().__new__(cls)

    # What a method says of itself

    @property
    @abstractmethod
    def column_sets(self) -> tuple[tuple[Hashable, ...], ...]:
        """The columns that are masked together, one tuple for each set."""

    @property
    def promise(self) -> int | None:
        """The k that every class of equal records has at least in each column set, or None."""
        return None

    @property
    def moves(self) -> bool:
        """Whether values only change places: every column keeps the values that it had."""
        return False

    @property
    def merged(self) -> tuple[Hashable, ...]:
        """Columns of strata that get other values where strata are merged."""
        return ()

    @property
    def categories(self) -> tuple[Hashable, ...]:
        """Columns that are said to hold categories, whatever their dtypes are."""
        return ()

    @property
    def in_blocks(self) -> bool:
        """Whether records are masked in blocks, and could stay there."""
        return False

    @property
    def makes_values(self) -> bool:
        """Whether a column may get values that it did not have."""
        return not self.moves

    @property
    def matches(self) -> int | None:
        """The k of records that each may be, if missing cells match any value, or None."""
        return None

    @property
    def k_of_records(self) -> int | None:
        """The k that is promised of records and could be one of units; None otherwise."""
        takes_units = any(each.name == "unit" for each in fields(self))  # type: ignore[arg-type]
        return self.promise if takes_units and self.unit is None else None

    @property
    def ranks_alone(self) -> bool:
        """Whether each column is ranked and cut into groups by itself (individual ranking)."""
        return False

    @property
    def measures_numbers(self) -> bool:
        """Whether numbers become others that are near: what was lost is their difference."""
        return True

    def dtype_of(self, column: Hashable, dtype: Any) -> Any:
        """Return the dtype that a masked column has, by the one that it had."""
        return dtype if self.keeps_dtypes else masked_dtype(dtype)

    @abstractmethod
    def check(self, frame: Frame) -> None:
        """Raise an error unless a frame has the columns and dtypes that are needed.

        No data is read.
        """

    @abstractmethod
    def plan(self, frame: Frame, entropy: int) -> Sequence[Step | Change]:
        """Return what masks a frame, for each set of columns, after all passes that come before.

        These are changes if records change where they are, or else steps of a trip, which may
        come after changes of strata.

        Parameters
        ----------
        frame : pandas or Dask DataFrame
            That was checked.
        entropy : int
            What chance depends on, if it has a part.
        """

    @abstractmethod
    def describe(self) -> str:
        """Return a few words for people."""

    # What all of them have

    @property
    def in_sets(self) -> tuple[Hashable, ...]:
        """All columns of column sets."""
        return tuple(column for each in self.column_sets for column in each)

    @property
    def masked(self) -> tuple[Hashable, ...]:
        """All columns that are masked: those of column sets, and of strata that are merged."""
        return (*self.in_sets, *self.merged)

    def __repr__(self) -> str:
        shown = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if not _is_usual(value, each.default):
                if each.name == "by" and len(value) == 1 and isinstance(value[0], str):
                    (value,) = value
                shown.append(f"{each.name}={_code(value, each.name)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_html_(self) -> str:
        """Show the options in a notebook: those that were left out, too, in grey."""
        rows = []
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            usual = _is_usual(value, each.default)
            style = "text-align:left" + (";color:#6a727a" if usual else "")
            cells = (_code(value, each.name), each.metadata["help"])
            shown = "".join(f'<td style="{style}">{escape(cell)}</td>' for cell in cells)
            rows.append(f'<tr><th scope="row" style="{style}">{each.name}</th>{shown}</tr>')
        name = f"{type(self).__name__}: {escape(self.describe())}"
        return f"<table><caption>{name}</caption><tbody>{''.join(rows)}</tbody></table>"

    def to_dict(self) -> dict[str, Any]:
        """Return the spec as a dict of plain Python objects, ready for JSON or TOML.

        What was left out and has no value is left out. There is never a seed in it.

        Examples
        --------
        >>> from sdc_dask import RankSwap
        >>> RankSwap(["rent"], p=5, by="region").to_dict()["p"]
        5.0
        """
        found = {_KIND: self.kind}
        for each in fields(self):  # type: ignore[arg-type]
            value = getattr(self, each.name)
            if (value is not None and value != ()) or each.default not in (None, MISSING):
                as_is = "values" in each.metadata
                found[each.name] = (_listed if as_is else _plain)(value, each.name)
        return found

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Make a spec from what :meth:`to_dict` returned, of this class or, on `Spec`, of any.

        Examples
        --------
        >>> from sdc_dask import RankSwap, Spec
        >>> spec = RankSwap(["rent"], p=5)
        >>> Spec.from_dict(spec.to_dict()) == spec
        True
        """
        if not isinstance(values, Mapping):
            raise SdcTypeError(f"a masking must be a dict, received {type(values).__name__}.")
        given = dict(values)
        kind = given.pop(_KIND, getattr(cls, "kind", None))
        if cls is not Spec and kind != cls.kind:
            raise SdcValueError(
                f"{_KIND} must be {cls.kind!r} for {cls.__name__}, received {_shown(kind)}: use "
                "Spec.from_dict for any."
            )
        if not isinstance(kind, str) or kind not in Spec._kinds:
            raise SdcValueError(
                f"{_KIND} must be one of {', '.join(map(repr, Spec._kinds))}, received "
                f"{_shown(kind)}{nearest(kind, Spec._kinds)}."
            )
        made = Spec._kinds[kind]
        known = {each.name: each for each in fields(made)}  # type: ignore[arg-type]
        for name in given:
            if name not in known:
                raise SdcValueError(
                    f"masking {kind!r} has no {_shown(name)}{nearest(name, known)}. It has: "
                    f"{', '.join(known)}."
                )
        lacking = [
            name for name, each in known.items() if each.default is MISSING and name not in given
        ]
        if lacking:
            raise SdcValueError(f"masking {kind!r} needs {', '.join(lacking)}: name it.")
        read = {
            name: value if "values" in known[name].metadata else _read(value, name)
            for name, value in given.items()
        }
        return made(**read)  # type: ignore[return-value]


def spec_list(specs: Any) -> list[Spec]:
    """Return one spec or several as a list in which none undoes what another does.

    Specs mask the frame as it is, except that those in whose list others change records in place
    before them see what these leave.

    Raises
    ------
    TypeError
        If something else is among them.
    ValueError
        If two specs mask a column, or one masks a column within whose values another groups,
        unless the first of the two changes records in place and promises nothing of them.
    """
    found = [specs] if isinstance(specs, Spec) else specs
    if not isinstance(found, (list, tuple)) or not all(isinstance(each, Spec) for each in found):
        raise SdcTypeError(
            "what masks must be a spec, such as sdc_dask.Microaggregation(['income', 'age'], k=5), "
            f"or a list of specs, received {_kinds(found)}."
        )
    if not found:
        raise SdcValueError("the list of specs is empty: name one at least.")
    for place, spec in enumerate(found):
        before, after = found[:place], found[place + 1 :]
        _check_once(spec, [each for each in before if not each.in_place or _promises(each)])
        _check_strata(spec, [each for each in before if not each.in_place] + list(after))
    return list(found)


def in_order(specs: Sequence[Spec]) -> list[Spec]:
    """Return specs in the order in which they mask: those that change records in place first."""
    return sorted(specs, key=lambda spec: not spec.in_place)


def _promises(spec: Spec) -> bool:
    return spec.promise is not None or spec.matches is not None


def _check_once(spec: Spec, others: Sequence[Spec]) -> None:
    masked = {column for each in others for column in each.masked}
    twice = [column for column in spec.masked if column in masked]
    if not twice:
        return
    if any(each.in_place for each in others):
        raise SdcValueError(
            f"columns are masked again after a spec that promises k for them: "
            f"{arguments.listed(twice)}. Put that spec after those that change its columns."
        )
    raise SdcValueError(
        f"columns are masked by more than one spec: {arguments.listed(twice)}. Specs mask the "
        "frame as it is, except after one that changes records in place, such as Recode: put "
        "that first, mask what the first returns, or name each column once."
    )


def _check_strata(spec: Spec, others: Sequence[Spec]) -> None:
    masked = {column for each in others for column in each.masked}
    both = [name for name in spec.by if name in masked]
    if both:
        raise SdcValueError(
            f"by names columns that another spec masks: {arguments.listed(both)}. Strata are given "
            "by values that are released as they are, or as a spec before it, such as Recode, "
            "leaves them."
        )


def _kinds(found: Any) -> str:
    if isinstance(found, (list, tuple)):
        kinds = dict.fromkeys(type(each).__name__ for each in found if not isinstance(each, Spec))
        return f"a list with {', '.join(kinds)}"
    return type(found).__name__


def _shown(value: Any) -> str:
    return repr(value) if isinstance(value, str) or value is None else type(value).__name__


def _is_usual(value: Any, default: Any) -> bool:
    """Whether an option is as if it were left out: lists are empty then."""
    return value == default or (default is None and value == ())


def _code(value: Any, name: str) -> str:
    """Return code that makes a value."""
    if isinstance(value, arguments.ColumnSets):
        lists = [list(each) for each in value]
        return repr(lists[0] if len(lists) == 1 else lists)
    if isinstance(value, (arguments.SeriesSets, arguments.ByColumn)):
        return repr(value)
    is_list = isinstance(value, tuple) and (name in _NAMES or any(map(_is_float, value)))
    if is_list:
        # A tuple is a pair of measures.
        return f"[{', '.join(repr(e) if name in _NAMES else _code(e, name) for e in value)}]"
    if isinstance(value, float) and not math.isfinite(value):
        return f'float("{value}")'
    return repr(value)


def _plain(value: Any, name: str) -> Any:
    """Return a value as JSON and TOML have it."""
    if isinstance(value, arguments.SeriesSets):
        found = value.to_plain()
        if isinstance(found, dict):
            return {each: _plain(tuple(columns), name) for each, columns in found.items()}
        return _plain(tuple(found), name)
    if isinstance(value, arguments.ByColumn):
        if not all(isinstance(column, str) for column, _ in value):
            raise SdcTypeError(
                f"{name} names columns by other than texts, which cannot be written: rename them."
            )
        return value.to_plain()
    if isinstance(value, Blocks):
        raise SdcTypeError(
            f"{name} holds blocks that were made of data, which cannot be written: name a method, "
            "such as 'tree'."
        )
    if isinstance(value, arguments.ColumnSets):
        sets = [_plain(each, name) for each in value]
        return sets[0] if len(sets) == 1 else sets
    if isinstance(value, tuple) and not (name in _NAMES and any(map(_is_tuple, value))):
        return [_plain(each, name) for each in value]
    for family, made in _FAMILIES.items():
        if isinstance(value, made):
            return {family: value.alpha}
    if value is None and name not in _NAMES:
        return "none"
    if isinstance(value, float) and math.isinf(value) and name not in _NAMES:
        return "inf"
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, (str, bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    raise SdcTypeError(
        f"{name} holds a {type(value).__name__}, which cannot be written: names must be texts or "
        f"numbers, and quantifiers those of sdc_dask.aggregation: {', '.join(_FAMILIES)}."
    )


def _listed(value: Any, name: str) -> Any:
    """Return values as JSON and TOML have them: tuples as lists, and infinite ones as texts."""
    if isinstance(value, tuple):
        return [_listed(each, name) for each in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _is_float(value: Any) -> bool:
    return isinstance(value, float)


def _is_tuple(value: Any) -> bool:
    return isinstance(value, tuple)


def _read(value: Any, name: str) -> Any:
    """Return a value from what :func:`_plain` made of it."""
    if name in _NAMES or name in _BY_COLUMN:
        return value  # names, whatever they are
    if isinstance(value, Mapping):
        if len(value) != 1 or next(iter(value)) not in _FAMILIES:
            raise SdcValueError(
                f"{name} must be a quantifier such as {{'power': 2}}, of one of "
                f"{', '.join(_FAMILIES)}, received keys {', '.join(map(_shown, value))}."
            )
        ((family, parameter),) = value.items()
        return _FAMILIES[family](parameter)
    if isinstance(value, list):
        parts = [_read(each, name) for each in value]
        pair = any(callable(each) or isinstance(each, list) for each in parts)
        return tuple(parts) if pair else parts
    if isinstance(value, str) and value in ("none", "inf"):
        return None if value == "none" else math.inf
    return value
