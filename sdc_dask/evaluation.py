"""Risk and loss together: the score of a masking, and several maskings side by side."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pandas as pd

from sdc_dask import arguments
from sdc_dask.arguments import SeriesSets
from sdc_dask.engine.frames import Frame
from sdc_dask.engine.mixed import Reading
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.spec import Spec, spec_list
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import anonymity
from sdc_dask.risk.attacks.fitting import check_fitting
from sdc_dask.risk.attacks.gower import strongest_by_gower
from sdc_dask.risk.disclosure import Intruder, risk_of
from sdc_dask.risk.encounter import Encounter
from sdc_dask.risk.series_risk import series_risk
from sdc_dask.sampling import Sampling
from sdc_dask.utility.associations import BINS, associations
from sdc_dask.utility.information_loss import information_loss
from sdc_dask.utility.mixed_loss import mixed_loss
from sdc_dask.utility.series_loss import series_loss
from sdc_dask.utility.sse import sse

_WIDTH = 100  # of what is printed
WEIGHTS = {"il": 0.5, "dld": 0.125, "pld": 0.125, "interval": 0.25}


@dataclass(frozen=True, repr=False)
class Score(Result):
    """The mean of information loss and disclosure risk."""

    score: float = field(
        metadata={"note": "weighted mean of il, dld, pld, interval: lower is better"}
    )
    il: float = field(metadata={"note": "information loss: lower is better"})
    il1_scaled: float | None = field(
        metadata={"note": "mean difference in deviations times root 2, not in the score"}
    )
    il_scaled: float = field(
        metadata={"note": "il by deviations, without noise of small divisors, not in the score"}
    )
    dr: float = field(metadata={"note": "disclosure risk: lower is safer"})
    dld: float = field(metadata={"note": "right links by distance, percent"})
    pld: float = field(metadata={"note": "right links by probability, percent"})
    interval: float = field(metadata={"note": "values in intervals of their ranks, percent"})
    tried: int = field(metadata={"note": "records that were linked, per attack"})
    strongest: str = field(metadata={"note": ""})  # the attack with the most right links
    linked: float = field(metadata={"note": "its right links, percent"})
    score_new: float | None = field(
        metadata={"note": "with links by an intruder who knows the masking: 0.5 il + 0.5 dr_new"}
    )
    score_max: float = field(
        metadata={"note": "judged by the strongest intruder: 0.5 il + 0.5 dr_max"}
    )
    weights: dict[str, float] = field(metadata={"note": ""})
    known: str = field(metadata={"note": ""})  # what the intruder knew
    agreement: str = field(metadata={"note": ""})  # when values agreed, for pld
    note: str = field(metadata={"note": ""})


@dataclass(frozen=True, repr=False)
class SeriesScore(Result):
    """The mean of information loss and disclosure risk of time series."""

    score: float = field(metadata={"note": "mean of il and dr: lower is better"})
    il: float = field(metadata={"note": "information loss: lower is better"})
    il1: float = field(metadata={"note": "of means and autocorrelations"})
    il2: float = field(metadata={"note": "of values"})
    il3: float = field(metadata={"note": "of forecasts"})
    dr: float = field(metadata={"note": "disclosure risk: lower is safer"})
    euld: float = field(metadata={"note": "right links by euclidean distance, percent"})
    stsld: float = field(metadata={"note": "right links by slopes, percent"})
    interval: float = field(metadata={"note": "values within 1 to 10% of the masked ones, percent"})
    tried: int = field(metadata={"note": "records that were linked, per attack"})
    known: str = field(metadata={"note": ""})  # what the intruder knew
    note: str = field(metadata={"note": ""})


def series_score(
    original: Frame, masked: Frame, series: SeriesSets, **intruder: Any
) -> SeriesScore:
    """Measure loss and risk of time series, and take their mean."""
    risk = series_risk(original, masked, series, **intruder)
    loss = series_loss(original, masked, series)
    return SeriesScore(
        (loss.il + risk.dr) / 2,
        loss.il,
        loss.il1,
        loss.il2,
        loss.il3,
        risk.dr,
        risk.euld,
        risk.stsld,
        risk.interval,
        risk.tried,
        risk.known,
        risk.note,
    )


class Comparison(pd.DataFrame):
    """A table of maskings that is printed with a column for each, since it has many figures.

    It is a plain frame in all else, and so is whatever is made of it.
    """

    @property
    def _constructor(self) -> Any:
        return pd.DataFrame

    def __repr__(self) -> str:
        figures = pd.DataFrame(self).drop(columns=["strongest", "note"], errors="ignore")
        figures = figures.astype(object).where(figures.notna(), "-")
        text = figures.T.to_string(float_format="{:.2f}".format, line_width=_WIDTH)
        lines = [line.removesuffix("\\").rstrip() for line in text.splitlines()]
        for column, what in (("strongest", "strongest attack"), ("note", "note")):
            said = self[column] if column in self else pd.Series(dtype=object)
            for each in dict.fromkeys(said[said != ""]):
                which = ", ".join(map(str, said.index[said == each]))
                lines += textwrap.wrap(f"{what} on {which}: {each}", _WIDTH, subsequent_indent="  ")
        return "\n".join(lines)


def check_weights(weights: Any) -> dict[str, float]:
    """Return weights of the parts of a score, those of the literature by default."""
    if weights is None:
        return dict(WEIGHTS)
    if not isinstance(weights, Mapping):
        raise SdcTypeError(
            f"weights must be a dict with the keys {', '.join(map(repr, WEIGHTS))}, received "
            f"{type(weights).__name__}."
        )
    unknown = [key for key in weights if key not in WEIGHTS]
    if unknown:
        raise SdcValueError(
            f"weights names unknown parts: {', '.join(map(repr, unknown))}. They are "
            f"{', '.join(map(repr, WEIGHTS))}."
        )
    checked = {name: 0.0 for name in WEIGHTS}
    for name, weight in weights.items():
        checked[name] = arguments.number(weight, f"weights[{name!r}]", 0.0, 1.0)
    total = sum(checked.values())
    if abs(total - 1) > 1e-9:
        raise SdcValueError(f"weights must sum to 1, received a sum of {total:g}.")
    return checked


def score(
    original: Frame,
    masked: Frame,
    columns: Sequence[Hashable],
    *,
    weights: Any = None,
    **intruder: Any,
) -> Score:
    """Measure loss and risk of a masking."""
    parts = check_weights(weights)
    who = Intruder.of(columns, **intruder)
    return _score(Encounter.of(original, masked, columns, who.sampling), who, parts)


def _score(encounter: Encounter, intruder: Intruder, weights: dict[str, float]) -> Score:
    risk = risk_of(encounter, intruder)
    loss = information_loss(encounter.original, encounter.masked, encounter.columns)
    values = {"il": loss.il, "dld": risk.dld, "pld": risk.pld, "interval": risk.interval}
    return Score(
        sum(weights[name] * value for name, value in values.items() if weights[name]),
        loss.il,
        loss.il1_scaled,
        loss.il_scaled,
        risk.dr,
        risk.dld,
        risk.pld,
        risk.interval,
        risk.tried,
        risk.strongest,
        risk.linked,
        None if risk.dr_new is None else 0.5 * loss.il + 0.5 * risk.dr_new,
        0.5 * loss.il + 0.5 * risk.dr_max,
        weights,
        risk.known,
        risk.agreement,
        "; ".join(filter(None, [risk.note, loss.note])),
    )


def compare(
    original: Frame,
    masked: Mapping[Any, Frame],
    columns: Sequence[Hashable],
    *,
    weights: Any = None,
    knows: Any = None,
    **intruder: Any,
) -> pd.DataFrame:
    """Measure several maskings of one frame; every one is attacked on the same records."""
    parts = check_weights(weights)
    specs = specs_by_name(masked, knows)
    first = Intruder.of(columns, **intruder)
    # The same records are drawn for all of them.
    intruders = {name: replace(first, specs=specs[name]) for name in masked}
    for each in intruders.values():
        if each.specs:
            check_fitting(each.specs, each.sets)
    rows = []
    for name, frame in masked.items():
        who = intruders[name]
        encounter = Encounter.of(original, frame, columns, who.sampling)
        measured = _score(encounter, who, parts)
        classes = anonymity(frame, columns, None)
        lost = 100 * sse(encounter.original, encounter.masked, columns).ratio
        row = {
            "k_min": classes.k_min,
            "k_mean": classes.k_mean,
            "sse": lost,
            "il": measured.il,
            "il1_scaled": measured.il1_scaled,
            "il_scaled": measured.il_scaled,
            "dld": measured.dld,
            "pld": measured.pld,
            "interval": measured.interval,
            "dr": measured.dr,
            "score": measured.score,
            "strongest": measured.strongest,
            "linked": measured.linked,
            "score_max": measured.score_max,
            "risk": 0.5 * measured.linked + 0.5 * measured.interval,
            "loss": 0.5 * measured.il_scaled + 0.5 * min(lost, 100.0),
            "note": measured.note,
        }
        rows.append(row)
    table = Comparison(rows, index=pd.Index(list(masked), name="masking", tupleize_cols=False))
    table.attrs = {"known": first.known, "agreement": first.probability.agreement}
    return table


def compare_mixed(
    original: Frame,
    masked: Mapping[Any, Frame],
    columns: Sequence[Hashable],
    sampling: Sampling,
    specs: Mapping[Any, Sequence[Spec]],
    reading: Reading,
) -> pd.DataFrame:
    """Measure several maskings of columns of every kind; all are attacked on the same records.

    Columns are read alike for all maskings, and as their specs say besides.
    """
    rows = []
    for name, frame in masked.items():
        read = reading.beside(reading_of(specs[name]))
        classes = anonymity(frame, columns, None)
        loss = mixed_loss(original, frame, columns, read)
        related = associations(original, frame, columns, BINS, read)
        knows, links = strongest_by_gower(original, frame, columns, sampling, specs[name], reading)
        rows.append(
            {
                "k_min": classes.k_min,
                "k_mean": classes.k_mean,
                "loss": loss.loss,
                "unchanged": loss.unchanged,
                "moved": math.fsum(related.columns.values()) / len(columns),
                "pairs_moved": related.mean_moved,
                "information": related.mean_shift,
                "linked": links.rate,
                "strongest": f"Gower distance ({knows})",
                "score": (loss.loss + links.rate) / 2,
                "note": links.note,
            }
        )
    return Comparison(rows, index=pd.Index(list(masked), name="masking", tupleize_cols=False))


def specs_by_name(masked: Mapping[Any, Frame], knows: Any) -> dict[Any, list[Spec]]:
    """Return what the intruder knows of each masking."""
    if knows is None:
        return {name: [] for name in masked}
    if not isinstance(knows, Mapping):
        raise SdcTypeError(
            "knows must be a dict from the names of masked frames to the specs that they were "
            f"masked by, received {type(knows).__name__}."
        )
    unknown = [name for name in knows if name not in masked]
    if unknown:
        raise SdcValueError(
            f"knows names frames that are not compared: {arguments.listed(unknown)}. Compared "
            f"are: {arguments.listed(masked)}."
        )
    return {name: spec_list(knows[name]) if name in knows else [] for name in masked}
