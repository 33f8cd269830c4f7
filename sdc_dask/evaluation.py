"""Risk and loss together: the score of a masking, and several maskings side by side."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from sdc_dask import arguments
from sdc_dask.engine.frames import Frame
from sdc_dask.errors import SdcTypeError, SdcValueError
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import anonymity
from sdc_dask.risk.disclosure import disclosure_risk, drawn_once
from sdc_dask.utility.information_loss import information_loss
from sdc_dask.utility.sse import sse

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
    dr: float = field(metadata={"note": "disclosure risk: lower is safer"})
    dld: float = field(metadata={"note": "right links by distance, percent"})
    pld: float = field(metadata={"note": "right links by probability, percent"})
    interval: float = field(metadata={"note": "values in intervals of their ranks, percent"})
    weights: dict[str, float] = field(metadata={"note": ""})


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
    **options: Any,
) -> Score:
    """Measure loss and risk of a masking."""
    parts = check_weights(weights)
    risk = disclosure_risk(original, masked, columns, **options)
    loss = information_loss(original, masked, columns)
    values = {"il": loss.il, "dld": risk.dld, "pld": risk.pld, "interval": risk.interval}
    total = sum(parts[name] * value for name, value in values.items() if parts[name])
    return Score(total, loss.il, loss.il1_scaled, risk.dr, risk.dld, risk.pld, risk.interval, parts)


def compare(
    original: Frame,
    masked: Mapping[Any, Frame],
    columns: Sequence[Hashable],
    *,
    weights: Any = None,
    sample: Any = None,
    random_state: Any = None,
    **options: Any,
) -> pd.DataFrame:
    """Measure several maskings of one frame; every one is attacked on the same records."""
    options |= drawn_once(sample, random_state)
    rows = []
    for frame in masked.values():
        measured = score(original, frame, columns, weights=weights, **options)
        classes = anonymity(frame, columns, None)
        row = {
            "k_min": classes.k_min,
            "k_mean": classes.k_mean,
            "sse": 100 * sse(original, frame, columns).ratio,
            "il": measured.il,
            "il1_scaled": measured.il1_scaled,
            "dld": measured.dld,
            "pld": measured.pld,
            "interval": measured.interval,
            "dr": measured.dr,
            "score": measured.score,
        }
        rows.append(row)
    return pd.DataFrame(rows, index=pd.Index(list(masked), name="masking", tupleize_cols=False))
