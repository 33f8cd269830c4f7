"""Options of a command that masks: those of a masking are the fields of its spec.

What can be asked of a masking, and what is said of it, is written in its spec alone.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import itertools
from collections.abc import Sequence
from typing import Any

import click
from click.core import ParameterSource

from sdc_dask.keywords import nearest
from sdc_dask.masking.microaggregation import METHODS, Microaggregation
from sdc_dask.masking.spec import Spec

_MASKING = "--masking"
_KINDS = {each.kind: each for each in Spec.__subclasses__()}
_DEFAULT = Microaggregation
# Fields of names, which are texts whatever they look like; and of what is said of some columns.
_NAMES = ("columns", "by", "series", "nominal")
_NAME = ("unit",)
_BY_COLUMN = ("orders", "importance")


def _names(_context: Any, _option: Any, texts: Sequence[str]) -> list[list[str]]:
    sets = [[name.strip() for name in text.split(",")] for text in texts]
    if not all(name for each in sets for name in each):
        raise click.BadParameter("a name is empty: give names with a comma between, such as a,b.")
    return sets


OF_NAMES: dict[str, Any] = {"multiple": True, "metavar": "A,B", "callback": _names}


class MaskingCommand(click.Command):
    """A command whose options are also those of the masking that is asked for."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        kinds = ", ".join(_KINDS)
        text = f"{kinds}; default: {_DEFAULT.kind}. Before --help, it shows the options of that one"
        self.params.insert(0, click.Option([_MASKING], metavar="NAME", help=text))

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Find out which masking is asked for, and parse by its options."""
        named = _values(args, _MASKING)
        if len(named) > 1:
            raise click.UsageError(
                f"{_MASKING} is given {len(named)} times, and a command masks in one way: write a "
                "job file with a table [[mask]] for each, and run 'protect job.toml'.",
                context,
            )
        context.meta[_MASKING] = _spec_class(named[0] if named else None)
        try:
            return super().parse_args(context, args)
        except click.NoSuchOption as error:
            spec = context.meta[_MASKING]
            own = ", ".join(each.opts[0] for each in _options(spec))
            near = nearest(error.option_name, self._flags(context))
            raise click.UsageError(
                f"there is no option {error.option_name!r}{near or '.'} The masking {spec.kind} "
                f"has {own}; other maskings are named with {_MASKING}.",
                context,
            ) from None

    def get_params(self, context: click.Context) -> list[click.Parameter]:
        """Return the options of the masking and those of the command."""
        spec = context.meta.get(_MASKING, _DEFAULT)
        return [*_options(spec), *super().get_params(context)]

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write both in sections of their own."""
        spec = context.meta[_MASKING]
        own: list[click.Parameter] = [*_options(spec)]
        others = [each for each in super().get_params(context) if isinstance(each, click.Option)]
        for title, options in ((f"What is masked, by {spec.kind}", own), ("Other options", others)):
            records = [each.get_help_record(context) for each in options]
            with formatter.section(title):
                formatter.write_dl([record for record in records if record])

    def _flags(self, context: click.Context) -> list[str]:
        return [flag for each in self.get_params(context) for flag in each.opts]


def _spec_class(kind: str | None) -> type[Spec]:
    if kind is None:
        return _DEFAULT
    if kind not in _KINDS:
        valid = ", ".join(_KINDS)
        near = nearest(kind, _KINDS) or "."
        if kind in METHODS:
            near = f", a method of microaggregation: leave --masking out, and say --method {kind}."
        raise click.UsageError(f"{_MASKING} must be one of {valid}, received {kind!r}{near}")
    return _KINDS[kind]


def _values(args: Sequence[str], flag: str) -> list[str]:
    """Return the values of an option, before the options are known."""
    found = []
    for arg, after in itertools.pairwise([*args, ""]):
        name, equals, text = arg.partition("=")
        if name == flag:
            found.append(text if equals else after)
    return found


@functools.cache
def _options(spec: type[Spec]) -> list[click.Option]:
    """Return the options of a masking: the fields of its spec."""
    options = []
    for each in dataclasses.fields(spec):  # type: ignore[arg-type]
        dashed = each.name.replace("_", "-")
        flag = each.metadata["flag"] or (f"-{dashed}" if len(dashed) == 1 else f"--{dashed}")
        how: dict[str, Any] = {"help": each.metadata["help"]}
        if each.default not in (None, dataclasses.MISSING):
            how["help"] += f"; default: {str(each.default).lower()}"
        if each.name in _NAMES:
            how |= OF_NAMES
        elif each.name in _BY_COLUMN:
            how |= {"multiple": True, "metavar": "NAME=A,B", "callback": _names}
        elif str(each.type) == "bool":
            flag += f"/--no-{dashed}"
            how["default"] = None
        else:
            kind = str(each.type).split(" ")[0]
            how["metavar"] = {"int": "N", "float": "X"}.get(kind, "TEXT")
        options.append(click.Option([flag, each.name], **how))
    return options


def given_flags(context: click.Context) -> dict[str, str]:
    """Return the flags that were given, by the names of their parameters."""
    return {
        each.name: each.opts[0]
        for each in context.command.get_params(context)
        if each.name and context.get_parameter_source(each.name) == ParameterSource.COMMANDLINE
    }


def asked_spec(context: click.Context) -> Spec:
    """Return the spec that options ask for."""
    spec, given = context.meta[_MASKING], given_flags(context)
    held = [each.name for each in dataclasses.fields(spec) if "values" in each.metadata]
    asked = {}
    for name in (each.name for each in dataclasses.fields(spec) if each.name in given):
        value = context.params[name]
        if name == "columns" and len(value) > 1:
            asked[name] = value  # sets
        elif name == "series":
            asked[name] = _series(value)
        elif name in _BY_COLUMN:
            asked[name] = _by_column(value, given[name])
        elif name in _NAME:
            asked[name] = value
        elif name in _NAMES:
            asked[name] = list(itertools.chain(*value))
        elif name in held:
            asked[name] = [_parts(each) for each in value.split(",")]
        else:
            asked[name] = _value(value) if isinstance(value, str) else value
    return spec.from_dict(asked)


def _series(sets: list[list[str]]) -> Any:
    """Return series from lists of columns, of which the first may begin with a name and "="."""
    named = {}
    for first, *others in sets:
        name, equals, column = first.rpartition("=")
        if not equals and len(sets) == 1:
            return [first, *others]
        if not equals or name in named:
            raise click.UsageError(
                "several series need a name each: give --series price=p0,p1 --series volume=v0,v1."
            )
        named[name] = [column, *others]
    return named


def _by_column(sets: list[list[str]], flag: str) -> dict[str, Any]:
    """Return values by column, from lists whose first text begins with a name and "="."""
    found: dict[str, Any] = {}
    for first, *others in sets:
        name, equals, value = first.partition("=")
        if not equals or name in found:
            raise click.UsageError(
                f"{flag} takes a column, an equals sign and what is said of it, once for each "
                f"column: give {flag} NAME=A,B or {flag} NAME=X."
            )
        values = [_value(each) for each in (value, *others)]
        found[name] = values if others else values[0]
    return found


def _value(text: str) -> Any:
    """Return the value of an option as a job file would have it."""
    if "," in text:
        return [_value(each) for each in text.split(",")]
    name, colon, parameter = text.partition(":")
    if colon:
        return {name: _value(parameter)}
    return _plain(text)


def _parts(text: str) -> Any:
    """Return a value of a column, or several that belong together, with colons between."""
    parts = [_plain(each) for each in text.split(":")]
    return parts[0] if len(parts) == 1 else parts


def _plain(text: str) -> Any:
    """Return a number, a truth value, or a text."""
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        with contextlib.suppress(ValueError):
            return kind(text)
    return text
