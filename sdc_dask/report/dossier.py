"""A report of one or several maskings of a frame, in an edition for its readers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from sdc_dask import arguments
from sdc_dask.engine.columns import is_numeric
from sdc_dask.engine.frames import Frame, is_dask, meta_of
from sdc_dask.errors import SdcFileNotFoundError, SdcTypeError, SdcValueError
from sdc_dask.evaluation import specs_by_name
from sdc_dask.keywords import knows_its_arguments
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.report.measured import Original, known_to_intruders, measure
from sdc_dask.report.page import render, template
from sdc_dask.sampling import AUTO, Sampling
from sdc_dask.stages import say, staged

EDITIONS = ("internal", "external")
FEWEST = 3  # records that a bin has at least, whatever k is: one of two knows the other
USUAL_K = 5  # where no spec promises k
_CHECKS = (
    "Original and masked records were paired row by row, and are the same rows.",
    "Columns that no spec masks were compared cell by cell.",
    "Classes of equal records were counted over all records, before and after.",
    "Not checked: what kept columns reveal, links to other files, the order of rows, and files "
    "that were written.",
)


@knows_its_arguments
@staged("Measuring for the report")
def report(
    original: Frame,
    masked: Frame | Mapping[Any, Frame],
    path: str | os.PathLike[str] = "report.html",
    *,
    knows: Spec | Sequence[Spec] | Mapping[Any, Spec | Sequence[Spec]] | None = None,
    edition: str = "internal",
    columns: Sequence[Hashable] | None = None,
    confidential: Hashable | Sequence[Hashable] | None = None,
    k: int | None = None,
    sample: int | str | None = AUTO,
    random_state: int | None = None,
) -> Path:
    """Write one HTML page about a masking: what was changed, what is risked and what was lost.

    The internal edition is for those who decide whether to release: roles of columns, risk
    before and after masking, loss, parameters, versions and checks. The external edition is for
    those who use the release: what was changed and what loss to expect, and nothing of risk.

    Parameters
    ----------
    original : pandas or Dask DataFrame
    masked : DataFrame, or dict of DataFrames by name
        Of the same kind, with the same rows; other orders are aligned by the index. An external
        edition is of one masking.
    path : path, default "report.html"
        Is overwritten. An internal edition can be read by its owner alone.
    knows : spec, list of specs, or dict of these by name, optional
        What the data was masked by: for roles, parameters, the gap to the least SSE, and attacks
        by intruders who know the masking. A dict if `masked` is one.
    edition : {"internal", "external"}, default "internal"
    columns : list, optional
        Columns of any kind to compare; by default those that the specs mask, without specs all
        numeric ones that both frames have. Intruders know those of them that were masked.
    confidential : name or list of names, optional
        Other columns of any kind that must not be learned: what classes of records that are equal
        in masked columns reveal of them, before and after. Not for an external edition.
    k : int, optional
        Smaller classes are counted as a risk, and nothing is shown of fewer records. By default
        the largest k that a spec promises, or 5.
    sample, random_state
        As in :meth:`~sdc_dask.SdcAccessor.disclosure_risk`: the records that attacks try. They
        have no meaning for an external edition.

    Returns
    -------
    Path
        Where the page is.

    Raises
    ------
    ImportError
        If jinja2 is not installed: ``pip install 'sdc-dask[report]'``.

    Notes
    -----
    The page is one file without scripts, which loads nothing. It shows no value of a record:
    quantiles from 5% to 95%, known to the width of a cell of a grid, if k records lie beyond
    them; bins of histograms that hold k records, before and after masking (three, if k is less);
    and neither mean, deviation nor correlations of a column in which a single value makes up more
    than a quarter of all squared deviations. A seed is never shown.

    The external edition names the method and its k or p. That they are known must not endanger
    anybody: look at the attacks of the internal edition that make use of them.

    Examples
    --------
    >>> import pathlib, tempfile, sdc_dask
    >>> df = sdc_dask.datasets.uniform(200, 2).compute()
    >>> spec = sdc_dask.Microaggregation(["x0", "x1"], k=5)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = sdc_dask.report(df, df.sdc.mask(spec), f"{folder}/page.html", knows=spec)
    ...     page.name, "Risk before and after" in page.read_text(encoding="utf-8")
    ('page.html', True)
    """
    if not is_dask(original) and not isinstance(original, pd.DataFrame):
        raise SdcTypeError(
            f"original must be a pandas or Dask DataFrame, received {type(original).__name__}."
        )
    arguments.one_of(edition, "edition", EDITIONS)
    internal = edition == "internal"
    frames, specs = _maskings(masked, knows)
    if not internal:
        if len(frames) > 1:
            raise SdcValueError(
                f"an external report is about one release, received {len(frames)} maskings: pass "
                "the one that is released."
            )
        if sample != AUTO or random_state is not None or confidential is not None:
            raise SdcValueError(
                "sample, random_state and confidential have no meaning for an external report, "
                "which measures no risk: leave them out."
            )
    sampling = Sampling.of(sample, random_state)
    k = smallest_class(k, [spec for each in specs.values() for spec in each])
    numbers, others = _columns_of(original, frames, specs, columns)
    secret = _confidential(original, frames, specs, (*numbers, *others), confidential)
    made = template(edition)
    target = page_path(path)

    least = max(k, FEWEST)
    base = Original(original, numbers, k, least, sampling, secret, others)
    check_records(base.rows, least)
    measured = []
    for name, frame in frames.items():
        say(f"Measuring {'the masking' if name is _Only else name} for the report")
        measured.append(measure(base, frame, specs[name], _label(name), risk=internal))
    text = render(made, measured, rows=base.rows, k=k, least=least, checks=_CHECKS)
    with written_beside({target: text}, private=internal) as publish:
        publish()
    return target


class _Only:
    """The name of a masking that has none."""


def _label(name: Any) -> str | None:
    return None if name is _Only else str(name)


def _maskings(masked: Any, knows: Any) -> tuple[dict[Any, Frame], dict[Any, list[Spec]]]:
    """Return masked frames and the specs of each, by name."""
    if isinstance(masked, Mapping):
        if not masked:
            raise SdcValueError("masked is an empty dict: pass one masked frame at least.")
        return dict(masked), specs_by_name(masked, knows)
    if isinstance(knows, Mapping):
        raise SdcTypeError(
            "knows is a dict, and masked is a single frame: pass its spec, or a list of specs."
        )
    return {_Only: masked}, {_Only: [] if knows is None else spec_list(knows)}


def smallest_class(k: Any, specs: Sequence[Spec]) -> int:
    """Return k, by default the largest that a spec promises."""
    if k is not None:
        return arguments.whole_number(k, "k", 2)
    return max((spec.promise for spec in specs if spec.promise), default=USUAL_K)


def check_records(rows: int, least: int) -> None:
    """Raise ValueError if there are fewer records than anything is shown of."""
    if rows < least:
        raise SdcValueError(
            f"the frames have {rows} records, fewer than the {least} that anything is shown of: "
            "there is nothing to report."
        )


def _confidential(
    original: Frame,
    frames: Mapping[Any, Frame],
    specs: Mapping[Any, Sequence[Spec]],
    compared: tuple[Hashable, ...],
    confidential: Any,
) -> tuple[Hashable, ...]:
    """Return columns that must not be learned, before any data is read."""
    names = arguments.name_list(confidential, "confidential")
    arguments.existing(meta_of(original), names, "confidential")
    known = {*compared, *(name for each in specs.values() for spec in each for name in spec.masked)}
    both = [name for name in names if name in known]
    if both:
        raise SdcValueError(
            f"confidential names columns that intruders are taken to know: "
            f"{arguments.listed(both)}. Name others, or leave these out of columns."
        )
    for frame in frames.values():
        arguments.existing(meta_of(frame), names, "confidential", "the masked frame")
    return names


def _columns_of(
    original: Frame,
    frames: Mapping[Any, Frame],
    specs: Mapping[Any, Sequence[Spec]],
    columns: Any,
) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
    """Return the columns that are compared as numbers, and the others, before any data is read."""
    meta = arguments.unique_columns(original)
    for name, each in specs.items():
        arguments.check_same_kind(original, frames[name])
        for spec in each:
            spec.check(original)
            arguments.existing(meta_of(frames[name]), spec.masked, "knows", "the masked frame")
    masked = {name for each in specs.values() for spec in each for name in spec.masked}
    if columns is None and all(specs.values()):
        columns = [column for column in meta.columns if column in masked]
    compare = arguments.compared_columns if columns is None else arguments.mixed_columns
    names = {compare(original, each, columns) for each in frames.values()}
    if len(names) > 1:
        raise SdcValueError(
            "the masked frames do not have the same numeric columns: name those to compare in "
            "columns."
        )
    (found,) = names
    for name, each in specs.items():
        if not known_to_intruders(found, each):
            which = "" if name is _Only else f" of {str(name)!r}"
            raise SdcValueError(
                f"columns names none that the specs{which} mask: {arguments.listed(found)}. Name "
                "some that are masked."
            )
    metas = [meta, *map(meta_of, frames.values())]
    listed = [spec for each in specs.values() for spec in each]
    numbers = tuple(column for column in found if _is_number(column, metas, listed))
    others = tuple(column for column in found if column not in numbers)
    arguments.check_comparable(meta, others, "columns")
    return numbers, others


def _is_number(column: Hashable, metas: Sequence[pd.DataFrame], specs: Sequence[Spec]) -> bool:
    """Whether what was lost of a column is a difference between numbers, in all frames."""
    return all(is_numeric(meta[column].dtype) for meta in metas) and all(
        spec.measures_numbers and column not in spec.categories
        for spec in specs
        if column in spec.masked
    )


def page_path(path: Any, name: str = "path") -> Path:
    """Return where to write a page, if something can be written there."""
    if not isinstance(path, (str, os.PathLike)):
        raise SdcTypeError(f"{name} must be a path of a file, received {type(path).__name__}.")
    target = Path(path)
    if target.is_dir():
        raise SdcValueError(f"{name} is a directory: {target}. Name a file in it.")
    if not target.parent.is_dir():
        raise SdcFileNotFoundError(f"there is no directory for the report: {target.parent}.")
    return target


@contextlib.contextmanager
def written_beside(
    pages: Mapping[Path, str], *, private: bool | Mapping[Path, bool]
) -> Iterator[Callable[[], None]]:
    """Write pages to hidden files beside their targets, and give what lets them appear.

    They are removed if that is not called: a page is there as a whole or not at all. A private one
    can be read by its owner alone.
    """
    beside = {page: page.with_name(f".{page.name}.{os.getpid()}") for page in pages}

    def publish() -> None:
        for page, hidden in beside.items():
            hidden.replace(page)

    try:
        for page, text in pages.items():
            own = private if isinstance(private, bool) else private[page]
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            with open(
                os.open(beside[page], flags, 0o600 if own else 0o644), "w", encoding="utf-8"
            ) as opened:
                opened.write(text)
        yield publish
    finally:
        for hidden in beside.values():
            hidden.unlink(missing_ok=True)
