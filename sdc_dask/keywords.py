"""Misspelled names of arguments: an error that says which was meant."""

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
    >>> nearest("colums", ["columns", "k"]), nearest("x", ["columns", "k"])
    (" (did you mean 'columns'?)", '')
    """
    found = difflib.get_close_matches(str(name), list(known), n=1)
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
    names = [each.name for each in parameters if each.name != "self"]

    @functools.wraps(function)
    def check(*args: Any, **kwargs: Any) -> Any:
        check_names(what, kwargs, names)
        return function(*args, **kwargs)

    return check
