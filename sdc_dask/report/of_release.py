"""Reports of a release, measured while it is known which rows are the same.

Afterwards rows are in random order, and no report can be made of source and files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcValueError
from sdc_dask.masking.spec import Spec
from sdc_dask.report.dossier import (
    FEWEST,
    check_records,
    page_path,
    smallest_class,
    written_beside,
)
from sdc_dask.report.measured import Measured, Original, measure
from sdc_dask.report.page import render, template
from sdc_dask.report.roles import Role
from sdc_dask.sampling import AUTO, Sampling

_ARGUMENTS = {"internal": "report", "external": "external_report"}


@dataclass(frozen=True)
class ReleaseReport:
    """The editions that are asked for: what is measured for them, and where they are written.

    Attributes
    ----------
    pages : dict
        Where to write, by edition.
    templates : dict
        By edition.
    confidential : tuple
        Kept columns that must not be learned.
    """

    pages: dict[str, Path]
    templates: dict[str, Any]
    confidential: tuple[str, ...]

    @classmethod
    def of(
        cls, report: Any, external_report: Any, confidential: Any, outside: Sequence[Path]
    ) -> ReleaseReport | None:
        """Check what is asked for, before anything is read; None if it is nothing.

        Parameters
        ----------
        report, external_report : path or None
        confidential : name or list of names, or None
        outside : sequence of paths
            Local sources and targets, in which nothing else is written.
        """
        given = {"internal": report, "external": external_report}
        secret = tuple(map(str, arguments.name_list(confidential, "confidential")))
        if secret and report is None:
            raise SdcValueError(
                "confidential is for a report: name a file in report=, or leave it out."
            )
        pages = {
            edition: page_path(path, _ARGUMENTS[edition])
            for edition, path in given.items()
            if path is not None
        }
        if not pages:
            return None
        for edition, page in pages.items():
            place = page.resolve()
            if any(each.resolve() in (place, *place.parents) for each in outside):
                raise SdcValueError(
                    f"{_ARGUMENTS[edition]} {str(page)!r} lies in the source or the target: choose "
                    "another file. A report is no part of a release."
                )
        if len({page.resolve() for page in pages.values()}) < len(pages):
            raise SdcValueError(
                "report and external_report name the same file: choose another for one of them."
            )
        return cls(pages, {edition: template(edition) for edition in pages}, secret)

    def check(self, kept: Sequence[str], rows: int, specs: Sequence[Spec]) -> None:
        """Raise an error if there is nothing to report, or confidential columns are not kept."""
        check_records(rows, max(smallest_class(None, specs), FEWEST))
        others = [name for name in self.confidential if name not in kept]
        if others:
            raise SdcValueError(
                f"confidential names columns that are not kept: {arguments.listed(others)}. Kept "
                f"are: {arguments.listed(kept)}."
            )

    def measure(
        self,
        original: Frame,
        masked: Frame,
        specs: Sequence[Spec],
        roles: tuple[Role, ...],
        numbers: Sequence[str],
        others: Sequence[str],
    ) -> Measured:
        """Measure what the editions show, of frames with the same rows.

        Masked columns are numbers, or others of any kind.
        """
        k = smallest_class(None, specs)
        base = Original(
            original,
            tuple(numbers),
            k,
            max(k, FEWEST),
            Sampling.of(AUTO),
            self.confidential,
            tuple(others),
        )
        return measure(base, masked, specs, None, risk="internal" in self.pages, roles=roles)

    @contextlib.contextmanager
    def written(
        self, measured: Measured, rows: int, checks: Sequence[str]
    ) -> Iterator[Callable[[], None]]:
        """Write all editions beside their places, and give what lets them appear there."""
        k = smallest_class(None, measured.specs)
        pages = {
            self.pages[edition]: render(
                made, [measured], rows=rows, k=k, least=max(k, FEWEST), checks=checks
            )
            for edition, made in self.templates.items()
        }
        private = {page: edition == "internal" for edition, page in self.pages.items()}
        with written_beside(pages, private=private) as publish:
            yield publish
