"""A release as a file: what is read, what is masked and how, and where it is written.

A job says what is released. How a run goes is up to the call: where it runs, whether it replaces
an earlier release, and the seed, which is as secret as the data.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_fields
from pathlib import Path
from typing import Any

from sdc_dask import arguments
from sdc_dask.errors import (
    SdcError,
    SdcFileExistsError,
    SdcFileNotFoundError,
    SdcTypeError,
    SdcValueError,
)
from sdc_dask.keywords import knows_its_arguments, nearest
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.release.delta import check_delta
from sdc_dask.release.long import Long
from sdc_dask.release.protect import ORDERS, layout_of, opened_source, protect
from sdc_dask.release.summary import Summary

Location = Path | str  # a URL is a text

FORMAT = 1  # of job files: one more when a file of now would mean something else
_KEYS = (
    "format",
    "source",
    "target",
    "long",
    "keep",
    "drop",
    "count",
    "order",
    "partition_by",
    "delta",
    "measure",
    "cast",
    "scratch",
    "mask",
)
_AS_GIVEN = (
    *("keep", "drop", "count", "order", "partition_by", "delta", "measure", "cast", "scratch"),
)
_OF_THE_CALL = (
    *("replace", "workers", "memory_limit", "scheduler", "random_state", "seed"),
    *("storage_options", "target_options", "report", "external_report", "confidential"),
)


@knows_its_arguments
@dataclass(frozen=True)
class Job:
    """What :func:`sdc_dask.protect` is asked for, as a value that goes to a file and back.

    Parameters
    ----------
    source : path, URL, or list of them
        Parquet files, directories of them, or patterns.
    target : path or URL
        The directory, or prefix of a store, to make.
    specs : spec, or list of specs
        What is masked, and how.
    drop, keep : list of str, optional
        Columns that are not written, and columns that are written as they are, by name or wildcard.
    count : list of lists of str, optional
        Columns that an intruder may know, in which classes are counted.
    long : Long, optional
        If the source has a row for each record and time.
    order : {"random", "source"}, default "random"
        Of the rows that are written.
    partition_by : list of str, optional
        Columns by whose values there are directories.
    delta : bool, default False
        Whether the release is a Delta table, too.
    measure : bool, default False
        Whether loss and risk are measured.
    cast : dict, optional
        Types by column of the source, as Arrow names them.
    scratch : path, optional
        A directory in which masked values wait.

    Examples
    --------
    >>> from sdc_dask import RankSwap
    >>> from sdc_dask.job import Job
    >>> job = Job("survey", "release", RankSwap(["rent"], p=5, max_block="auto"), drop=["person"])
    >>> Job.from_dict(job.to_dict()) == job
    True
    """

    source: Location | tuple[Location, ...]
    target: Location
    specs: tuple[Spec, ...]
    drop: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    count: tuple[tuple[str, ...], ...] = ()
    long: Long | None = None
    order: str = "random"
    partition_by: tuple[str, ...] = ()
    delta: bool = False
    measure: bool = False
    cast: Mapping[str, str] = field(default_factory=dict)
    scratch: Path | None = None

    def __post_init__(self) -> None:
        if isinstance(self.source, (list, tuple)):
            sources = tuple(_location(each, "source") for each in self.source)
            object.__setattr__(self, "source", sources)
        else:
            object.__setattr__(self, "source", _location(self.source, "source"))
        object.__setattr__(self, "target", _location(self.target, "target"))
        if self.scratch is not None:
            object.__setattr__(self, "scratch", Path(_location(self.scratch, "scratch")))
        if not isinstance(self.cast, Mapping) or not _is_texts([*self.cast, *self.cast.values()]):
            raise SdcTypeError(
                "cast must be a table of types by column, such as {price = 'float64'}, received "
                f"{_kind(self.cast)}."
            )
        for name in ("keep", "drop", "partition_by"):
            names = getattr(self, name)
            if not _is_texts(names):
                raise SdcTypeError(
                    f"{name} must be a list of column names, such as "
                    f"[{names if isinstance(names, str) else 'person'!r}], received {_kind(names)}."
                )
            object.__setattr__(self, name, tuple(names))
        if not isinstance(self.count, (list, tuple)) or not all(map(_is_texts, self.count)):
            raise SdcTypeError(
                "count must be a list of lists of column names, such as [['age', 'sex']], received "
                f"{_kind(self.count)}."
            )
        object.__setattr__(self, "count", tuple(map(tuple, self.count)))
        arguments.one_of(self.order, "order", ORDERS)
        arguments.flag(self.delta, "delta")
        arguments.flag(self.measure, "measure")
        object.__setattr__(self, "specs", tuple(spec_list(self.specs)))

    @property
    def local_paths(self) -> list[Path]:
        """Those of source and target that are of this machine."""
        sources = self.source if isinstance(self.source, tuple) else (self.source,)
        return [each for each in (*sources, self.target) if isinstance(each, Path)]

    def check(
        self,
        *,
        replace: bool = False,
        storage_options: Mapping[str, Any] | None = None,
        target_options: Mapping[str, Any] | None = None,
    ) -> None:
        """Raise an error if the source cannot be opened, or the target cannot be made.

        Or if columns are named that the source does not have, or are not decided upon.
        """
        source = list(self.source) if isinstance(self.source, tuple) else self.source
        _, target, opened = opened_source(
            source, self.target, self.cast, storage_options, target_options, replace
        )
        if self.delta:
            check_delta(target)
        if self.long is None:  # otherwise its columns are those of the source made wide
            count = [list(columns) for columns in self.count]
            specs, levels = list(self.specs), list(self.partition_by)
            layout_of(
                opened,
                target,
                specs,
                list(self.keep),
                list(self.drop),
                count,
                self.order,
                levels,
                self.delta,
            )
            most = max(spec.promise or 0 for spec in specs)
            if 0 < opened.rows < most:
                raise SdcValueError(
                    f"the source has {opened.rows} records, fewer than k={most}: no group of k can "
                    "be formed. Use a smaller k or more records."
                )

    def run(
        self,
        *,
        storage_options: Mapping[str, Any] | None = None,
        target_options: Mapping[str, Any] | None = None,
        replace: bool = False,
        random_state: int | None = None,
        report: str | os.PathLike[str] | None = None,
        external_report: str | os.PathLike[str] | None = None,
        confidential: str | Sequence[str] | None = None,
        progress: bool | None = None,
    ) -> Summary:
        """Run the job: see :func:`sdc_dask.protect`."""
        return protect(
            list(self.source) if isinstance(self.source, tuple) else self.source,
            self.target,
            self.specs,
            keep=list(self.keep),
            drop=list(self.drop),
            count=[list(columns) for columns in self.count],
            long=self.long,
            order=self.order,
            partition_by=list(self.partition_by),
            delta=self.delta,
            measure=self.measure,
            cast=self.cast or None,
            scratch=self.scratch,
            storage_options=storage_options,
            target_options=target_options,
            replace=replace,
            random_state=random_state,
            report=report,
            external_report=external_report,
            confidential=confidential,
            progress=progress,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the job as a dict of plain Python objects, ready for JSON or TOML."""
        found: dict[str, Any] = {
            "format": FORMAT,
            "source": [str(each) for each in self.source]
            if isinstance(self.source, tuple)
            else str(self.source),
            "target": str(self.target),
        }
        if self.long is not None:
            found["long"] = self.long.to_dict()
        for name in ("keep", "drop", "partition_by"):
            if getattr(self, name):
                found[name] = list(getattr(self, name))
        if self.count:
            found["count"] = [list(columns) for columns in self.count]
        if self.order != "random":
            found["order"] = self.order
        for name in ("delta", "measure"):
            if getattr(self, name):
                found[name] = True
        if self.cast:
            found["cast"] = dict(self.cast)
        if self.scratch is not None:
            found["scratch"] = str(self.scratch)
        return found | {"mask": [spec.to_dict() for spec in self.specs]}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Job:
        """Make a job from what :meth:`to_dict` returned, or what a file says."""
        _check_format(values)
        for name in values:
            if name in _OF_THE_CALL:
                raise SdcValueError(
                    f"a job has no {name!r}, which belongs to the run: give it with the call."
                )
            if name not in _KEYS:
                raise SdcValueError(
                    f"a job has no {name!r}{nearest(name, _KEYS)}. It has: {', '.join(_KEYS)}."
                )
        lacking = [name for name in ("source", "target", "mask") if name not in values]
        if lacking:
            raise SdcValueError(f"a job needs {', '.join(lacking)}: name it.")
        masks = values["mask"]
        if not isinstance(masks, list) or not all(isinstance(each, Mapping) for each in masks):
            raise SdcTypeError(
                f"mask must be a list of tables, each [[mask]] in a file, received {_kind(masks)}."
            )
        specs = [_spec(number, each) for number, each in enumerate(masks, 1)]
        long = Long.from_dict(values["long"]) if "long" in values else None
        given = {name: values[name] for name in _AS_GIVEN if name in values}
        return cls(values["source"], values["target"], tuple(specs), long=long, **given)

    @classmethod
    def read(cls, file: str | os.PathLike[str]) -> Job:
        """Read a job file, in which relative paths start at the directory of the file.

        Parameters
        ----------
        file : path
            In TOML: ``format = 1``, ``source``, ``target``, ``keep``, ``drop``, ``count``,
            ``order``, ``partition_by``, ``delta``, ``measure``, ``cast``, ``scratch``, ``long``
            with the fields of :class:`Long`, and a table ``[[mask]]`` for each masking, with its
            name as ``masking`` and its options.
        """
        file = Path(file)
        try:
            text = file.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise SdcFileNotFoundError(f"job file {str(file)!r} does not exist.") from None
        except (OSError, UnicodeDecodeError) as error:
            raise SdcFileNotFoundError(
                f"job file {str(file)!r} cannot be read ({type(error).__name__}): name a TOML file."
            ) from None
        try:
            job = cls.from_dict(tomllib.loads(text))
        except tomllib.TOMLDecodeError as error:
            raise SdcValueError(f"job file {str(file)!r} is not TOML: {error}.") from None
        except SdcError as error:
            raise type(error)(f"job file {str(file)!r}: {error}") from None
        return job._moved(lambda path: file.parent / path)

    def write(self, file: str | os.PathLike[str]) -> None:
        """Write a job file that does not exist yet.

        Relative paths are written anew, as seen from the directory of the file.
        """
        file = Path(file)
        here = file.parent.resolve()
        values = self._moved(
            lambda path: (
                path if path.is_absolute() else Path(os.path.relpath(path.absolute(), here))
            )
        ).to_dict()
        text = _toml(values)
        try:
            with file.open("x", encoding="utf-8") as opened:
                opened.write(text)
        except FileExistsError:
            raise SdcFileExistsError(
                f"job file {str(file)!r} exists: choose another name, or remove it yourself."
            ) from None
        except FileNotFoundError:
            raise SdcFileNotFoundError(
                f"the directory of job file {str(file)!r} does not exist: make it."
            ) from None

    def _moved(self, move: Callable[[Path], Path]) -> Job:
        """Return the same job with other paths; URLs stay."""

        def moved(where: Any) -> Any:
            if isinstance(where, tuple):
                return tuple(map(moved, where))
            return move(where) if isinstance(where, Path) else where

        names = ("source", "target", "scratch")
        return replace_fields(self, **{name: moved(getattr(self, name)) for name in names})


def _location(where: Any, name: str) -> Location:
    """Return a path, or a URL as it is."""
    if not isinstance(where, (str, os.PathLike)) or not os.fspath(where):
        raise SdcTypeError(f"{name} must be a path as text, received {_kind(where)}.")
    return where if isinstance(where, str) and "://" in where else Path(where)


def _check_format(values: Mapping[str, Any]) -> None:
    if "format" not in values:
        raise SdcValueError(f"a job needs format = {FORMAT}, which says how it is to be read.")
    number = values["format"]
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise SdcValueError(f"format must be {FORMAT}, received {_kind(number)}.")
    if number > FORMAT:
        raise SdcValueError(
            f"format {number} is newer than this version of sdc_dask, which reads up to {FORMAT}: "
            "upgrade it."
        )


def _spec(number: int, values: Mapping[str, Any]) -> Spec:
    """Return the spec of a table, or say which table is wrong."""
    try:
        return Spec.from_dict(values)
    except SdcError as error:
        raise type(error)(f"mask {number}: {error}") from None


def _is_texts(values: Any) -> bool:
    return isinstance(values, (list, tuple)) and all(isinstance(each, str) for each in values)


def _kind(value: Any) -> str:
    """Say what was received: small things as they are, others by their kind."""
    if isinstance(value, (str, bool, int, float)):
        return repr(value)
    kinds = {type(each).__name__ for each in value} if isinstance(value, (list, tuple)) else ()
    return type(value).__name__ + (f" of {', '.join(sorted(kinds))}" if kinds else "")


def _toml(values: Mapping[str, Any]) -> str:
    """Return a job as TOML: keys, and a table for every mask."""
    tables: Sequence[Mapping[str, Any]] = values["mask"]
    parts = [{name: value for name, value in values.items() if name != "mask"}, *tables]
    texts = [
        "".join(f"{name} = {_value(value)}\n" for name, value in part.items()) for part in parts
    ]
    return "\n[[mask]]\n".join(texts)


def _value(value: Any) -> str:
    """Return a value as TOML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        # A text of JSON is one of TOML, except that TOML escapes one more character.
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, list):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        pairs = (f"{_key(name)} = {_value(each)}" for name, each in value.items())
        return f"{{ {', '.join(pairs)} }}"
    return repr(value)


def _key(name: str) -> str:
    """Return a key as TOML: names of series may be any texts."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else _value(name)
