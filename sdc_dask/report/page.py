"""The page: what was measured, in words and tables, by a template."""

from __future__ import annotations

import importlib.metadata
import platform
from collections.abc import Hashable, Sequence
from typing import Any

from sdc_dask import extras
from sdc_dask.masking.spec import Spec
from sdc_dask.report.measured import Correlation, Measured
from sdc_dask.report.numbers import number, percent, signed, whole
from sdc_dask.report.pictures import correlation_moves, frequencies, histogram, quantile_moves

MOST_PAIRS = 45  # correlations in a table: those of ten columns
_PACKAGES = ("sdc-dask", "dask", "numba", "numpy", "pandas", "pyarrow", "scipy")


def template(edition: str) -> Any:
    """Return the template of an edition, or raise an error that says what to install."""
    jinja2 = extras.load("jinja2", "a report")
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("sdc_dask.report", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    filters: dict[str, Any] = {
        "number": number,
        "percent": percent,
        "signed": signed,
        "whole": whole,
        "names": lambda columns: ", ".join(map(str, columns)),
        "most_changed": most_changed,
        "most_moved": lambda pairs: sorted(pairs, key=lambda each: -each[1])[:MOST_PAIRS],
        "described": described,
        "sets_of_several": sets_of_several,
    }
    environment.filters.update(filters)
    environment.globals["histogram"] = lambda bins, column, identity: _safe(
        histogram(bins, str(column), identity)
    )
    environment.globals["quantile_moves"] = lambda quantiles, column, identity: _safe(
        quantile_moves(quantiles, str(column), identity)
    )
    environment.globals["frequencies"] = lambda categories, column, identity: _safe(
        frequencies(categories, str(column), identity)
    )
    environment.globals["correlation_moves"] = lambda correlations, identity: _safe(
        correlation_moves(correlations, identity)
    )
    return environment.get_template(f"{edition}.html")


def _safe(text: str) -> Any:
    """Mark text as HTML that is escaped already."""
    import markupsafe

    return markupsafe.Markup(text)


def render(
    made: Any,
    maskings: Sequence[Measured],
    *,
    rows: int,
    k: int,
    least: int,
    checks: Sequence[str],
) -> str:
    """Return the page as text."""
    return made.render(
        maskings=maskings, rows=rows, k=k, least=least, checks=checks, versions=versions()
    )


def most_changed(correlations: Sequence[Correlation]) -> list[Correlation]:
    """Return all correlations if they are few, otherwise those that changed most."""
    if len(correlations) <= MOST_PAIRS:
        return list(correlations)
    return sorted(correlations, key=lambda each: -abs(each.after - each.before))[:MOST_PAIRS]


def described(specs: Sequence[Spec]) -> str:
    """Return what specs do to a column, in words.

    Examples
    --------
    >>> from sdc_dask import Microaggregation
    >>> described([Microaggregation(["a"], k=3, by="b")])
    'microaggregation by mdav, k = 3, within b'
    """
    each = (
        spec.describe() + (f", within {', '.join(map(str, spec.by))}" if spec.by else "")
        for spec in specs
    )
    return "; then ".join(each)


def sets_of_several(specs: Sequence[Spec]) -> list[tuple[Hashable, ...]]:
    """Return the sets of several columns of which records share the values, each once.

    Examples
    --------
    >>> from sdc_dask import Microaggregation
    >>> sets_of_several([Microaggregation([["a", "b"], ["c"]], k=3)])
    [('a', 'b')]
    """
    found: dict[frozenset[Hashable], tuple[Hashable, ...]] = {}
    for spec in specs:
        shared = spec.promise is not None or spec.matches is not None
        for columns in spec.column_sets if shared else ():
            if len(columns) > 1:
                found.setdefault(frozenset(columns), tuple(columns))
    return list(found.values())


def versions() -> dict[str, str]:
    """Return the versions of the packages that measured."""
    found = {"Python": platform.python_version()}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed as a package"
    return found
