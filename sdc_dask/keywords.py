"""Wrong names of arguments, and missing ones: an error that says what there is, or was meant."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from sdc_dask.errors import SdcTypeError

_Call = TypeVar("_Call", bound=Callable[..., Any])


def nearest(name: Any, known: Sequence[str] | Mapping[str, Any]) -> str:
    """Return a question that names the nearest of the names that there are, if any is near.

    Examples
    --------
    >>> nearest("colums", ["columns", "k"]), nearest("K", ["columns", "k"])
    (" (did you mean 'columns'?)", " (did you mean 'k'?)")
    >>> nearest("x", ["columns", "k"])
    ''
    """
    found = difflib.get_close_matches(str(name), list(known), n=1)
    found = found or [each for each in known if each.lower() == str(name).lower()]
    return f" (did you mean {found[0]!r}?)" if found else ""


def check_names(what: str, given: Iterable[str], known: Sequence[str]) -> None:
    """Raise TypeError if an argument is named that there is not."""
    for name in given:
        if name not in known:
            raise SdcTypeError(
                f"{what} has no argument {name!r}{nearest(name, known)}. It has: "
                f"{', '.join(known)}."
            )


def knows_its_arguments(function: _Call) -> _Call:
    """Make a function, method or class say which argument was meant where one is misspelled."""
    if isinstance(function, type):
        own = function.__init__  # type: ignore[misc]
        function.__init__ = _checking(own, function.__name__)  # type: ignore[misc]
        return function
    return _checking(function, function.__name__)


def _checking(function: Any, what: str) -> Any:
    parameters = list(inspect.signature(function).parameters.values())
    if any(each.kind is each.VAR_KEYWORD for each in parameters):
        return function  # checks options itself
    own = [each for each in parameters if each.name != "self"]
    names = [each.name for each in own]
    positional = [each.name for each in own if each.kind is each.POSITIONAL_OR_KEYWORD]
    plain = all(each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY) for each in own)
    needed = [each.name for each in own if each.default is each.empty]
    before = len(parameters) - len(own)  # self

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        check_names(what, kwargs, names)
        if plain:
            given = args[before:]
            if len(given) > len(positional):
                free = f"{', '.join(positional)} alone" if positional else "no argument"
                raise SdcTypeError(
                    f"{what} takes {free} without a name, received {len(given)} such arguments: "
                    f"name the others. It has: {', '.join(names)}."
                )
            taken = {*positional[: len(given)], *kwargs}
            lacking = [name for name in needed if name not in taken]
            if lacking:
                raise SdcTypeError(
                    f"{what} needs {', '.join(lacking)}: name it. It has: {', '.join(names)}."
                )
        return function(*args, **kwargs)

    return check
