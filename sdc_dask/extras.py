"""Packages that only some functions need, and the extras of this package that bring them along."""

from __future__ import annotations

import importlib
from typing import Any

from sdc_dask.errors import SdcImportError

# The extra that brings a package along, by the name under which it is imported.
EXTRAS = {"deltalake": "delta", "jinja2": "report", "matplotlib": "plot", "s3fs": "s3"}


def load(module: str, what: str) -> Any:
    """Import a module of a package that may be missing.

    Parameters
    ----------
    module : str
        Its name in import statements.
    what : str
        What the package is needed for: the beginning of the message.

    Raises
    ------
    SdcImportError
        If it is not installed, with the command that installs it.

    Examples
    --------
    >>> load("json", "a summary").dumps([1])
    '[1]'
    """
    try:
        return importlib.import_module(module)
    except ImportError:
        raise missing(module.partition(".")[0], what) from None


def missing(package: str, what: str) -> SdcImportError:
    """Return the error for a package that is not installed.

    Examples
    --------
    >>> print(missing("jinja2", "a report"))
    a report needs the package jinja2, which is not installed: pip install 'sdc-dask[report]'.
    >>> print(missing("gcsfs", "'gs://office'"))
    'gs://office' needs the package gcsfs, which is not installed: pip install gcsfs.
    """
    command = f"'sdc-dask[{EXTRAS[package]}]'" if package in EXTRAS else package
    return SdcImportError(
        f"{what} needs the package {package}, which is not installed: pip install {command}."
    )
