"""What this package says when something is wrong: errors and warnings that show no data value.

Errors of ours have a common base class, so that their type decides whether their text may be
printed or logged where the data is confidential. Each is also what a Python user would catch.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextvars import ContextVar
from pathlib import Path

FEWEST_ADVISED = 30  # records: fewer are an example, of which no advice is given

_PACKAGE = f"{Path(__file__).parent}{os.sep}"


class SdcError(Exception):
    """Raised on purpose by this package: its text shows no value of the data."""


class SdcValueError(SdcError, ValueError):
    """An argument or a column has values that cannot be used."""


class SdcTypeError(SdcError, TypeError):
    """An argument or a column is of another kind than needed."""


class SdcKeyError(SdcError, KeyError):
    """Names that are not there, such as columns."""

    def __str__(self) -> str:
        # KeyError shows the repr of its argument, which is for keys, not for sentences.
        return str(self.args[0]) if self.args else ""


class SdcRuntimeError(SdcError, RuntimeError):
    """Data that changed while it was read, or a check that failed: nothing is released."""


class SdcFileExistsError(SdcError, FileExistsError):
    """There is something at the target."""


class SdcFileNotFoundError(SdcError, FileNotFoundError):
    """There is nothing at the source, or no place for the target."""


class SdcImportError(SdcError, ImportError):
    """A package is needed that is not installed."""


class SdcWarning(UserWarning):
    """Something to look at, in words that show no value of the data."""


class Advice(SdcWarning):
    """Something that looks like a slip, with what to do instead.

    Each kind is a class of its own. If it is meant, say so with a filter of that class, or of
    this one: ``warnings.simplefilter("ignore", sdc_dask.errors.FewValuesAdvice)``.
    """


class CodedMissingAdvice(Advice):
    """Cells look like codes of missing values, and would be masked as values."""


class FewValuesAdvice(Advice):
    """Whole numbers with few values, such as codes of categories, become fractions."""


class FractionAdvice(Advice):
    """A percentage looks like a fraction."""


class LeftOutAdvice(Advice):
    """Columns that look like identifiers or weights are left out of a measure."""


class SuppressedAdvice(Advice):
    """Half of the cells of a column or more are suppressed, so that little is left of it."""


class UniqueAdvice(Advice):
    """Columns are released as they are of which most records have a value of their own."""


class UnchangedAdvice(Advice):
    """All records keep their exact values, or columns are compared that nobody has masked."""


class UnitAdvice(Advice):
    """Classes of k records belong to a single person or household, and k counts records."""


_said: ContextVar[set[str] | None] = ContextVar("said", default=None)


@contextlib.contextmanager
def each_once() -> Iterator[None]:
    """Let every warning of a block be said once, where the same is done again and again."""
    token = _said.set(set())
    try:
        yield
    finally:
        _said.reset(token)


def warn(text: str, kind: type[SdcWarning] = SdcWarning) -> None:
    """Warn at the line of the caller's code that called into this package, however deep we are."""
    said = _said.get()
    if said is not None:
        if text in said:
            return
        said.add(text)
    ours = level = 1  # this function
    frame = sys._getframe()
    # To the outermost frame of ours: contexts have frames of the standard library between.
    while frame.f_back is not None:
        frame = frame.f_back
        level += 1
        if frame.f_code.co_filename.startswith(_PACKAGE):
            ours = level
    warnings.warn(text, kind, stacklevel=ours + 1)
