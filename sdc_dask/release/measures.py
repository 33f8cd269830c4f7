"""Loss and risk of a release, measured while it is known which rows are the same.

Afterwards rows are in random order, and nobody can measure what needs pairs of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from sdc_dask.arguments import series_sets
from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcError, warn
from sdc_dask.evaluation import score, series_score
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.series import SeriesMicroaggregation
from sdc_dask.masking.spec import Spec
from sdc_dask.release.layout import Layout
from sdc_dask.results import Result
from sdc_dask.risk.attacks.fitting import check_fitting
from sdc_dask.risk.attacks.gower import strongest_by_gower
from sdc_dask.sampling import Sampling
from sdc_dask.utility.bound import sse_gap
from sdc_dask.utility.mixed_loss import mixed_loss


def measures(
    original: Frame, masked: Frame, specs: Sequence[Spec], layout: Layout
) -> tuple[Result, ...]:
    """Return scores of numbers and of series, and gaps to the least loss, as far as there are any.

    Where other columns are masked, too, loss and links by all of them are measured beside: a score
    of the numbers alone would be that of an intruder who knows less. What cannot be measured is a
    warning: the release is as good without it.
    """
    series = [spec for spec in specs if isinstance(spec, SeriesMicroaggregation)]
    of_series = {str(name) for spec in series for name in spec.masked}
    numbers = [name for name in layout.numbers if name not in of_series]
    others = [spec for spec in specs if spec not in series]
    found: list[Result] = []
    try:
        if numbers:
            knows = others if _fit(others, numbers) else None
            found.append(score(original, masked, numbers, knows=knows))
        for spec in others:
            if isinstance(spec, Microaggregation) and spec.missing == "error":
                found += [
                    sse_gap(original, masked, columns, spec.k, Sampling.of("auto"))
                    for columns in spec.column_sets
                    if set(columns) <= set(numbers)
                ]
        mixed = [name for name in layout.masked if name not in of_series]
        if len(mixed) > len(numbers):
            found.append(mixed_loss(original, masked, mixed, reading_of(others)))
            found.append(
                strongest_by_gower(original, masked, mixed, Sampling.of("auto"), others)[1]
            )
        for spec in series:
            found.append(series_score(original, masked, series_sets(spec.series)))
    except SdcError as error:
        warn(f"loss and risk could not be measured as a whole: {error}")
    return tuple(found)


def _fit(specs: Sequence[Spec], numbers: Sequence[str]) -> bool:
    """Whether there are attacks by an intruder who knows specs."""
    try:
        check_fitting(list(specs), [tuple(numbers)])
    except SdcError:
        return False
    return True
