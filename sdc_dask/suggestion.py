"""Which maskings to look at: a grid of specs on a sample, and what is best for each risk."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from sdc_dask import arguments, plots, stages
from sdc_dask.engine.columns import is_measured, is_numeric
from sdc_dask.engine.frames import Frame, map_reduce
from sdc_dask.engine.mixed import Reading
from sdc_dask.errors import SdcError, SdcTypeError, SdcValueError, each_once
from sdc_dask.evaluation import compare
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.rank_swap import RankSwap
from sdc_dask.masking.reading import reading_of
from sdc_dask.masking.run import mask
from sdc_dask.masking.spec import Spec
from sdc_dask.masking.suppress import Suppress
from sdc_dask.results import Result
from sdc_dask.risk.anonymity import anonymity
from sdc_dask.risk.attacks.fitting import check_fitting, fitting_attacks
from sdc_dask.risk.worst_case import BLIND, attacks_on
from sdc_dask.sampling import draw_rows
from sdc_dask.utility.mixed_loss import mixed_loss

RECORDS = 5_000  # of the sample
_K = (3, 5, 10, 25, 50)  # of groups by all columns
_K_ALONE = (5, 25)  # of groups by each column alone
_P = (2, 5, 10, 20)
_K_KEYS = (3, 5, 10)  # of suppression, where all columns are categories
_WIDTH = 100  # of what is printed
_LONGEST = 32  # letters of a name in the table
_BLIND = "no attack by an intruder who knows this masking"


@dataclass(frozen=True)
class Trial:
    """What a spec risks and loses on the sample."""

    name: str
    spec: Spec
    risk: float  # 0.5 linked + 0.5 interval; linked, if columns are of every kind
    loss: float  # 0.5 il_scaled + 0.5 sse; the mean Gower distance, if columns are of every kind
    linked: float  # by the strongest intruder, percent
    strongest: str
    interval: float | None  # of numbers, as the next two
    il_scaled: float | None
    sse: float | None  # percent of SST
    k_min: int
    note: str
    dominated_by: str | None = None


@dataclass(frozen=True, repr=False)
class Suggestion(Result):
    """Maskings that were tried on a sample, from the least loss to the most.

    A masking is *dominated* if another one has neither more risk nor more loss, and less of one of
    them. The others are the frontier: which of them is best depends on the risk that is accepted.

    Attributes
    ----------
    columns : tuple
        That were masked and are known to the intruder.
    rows, records : int
        Of the frame, and of the sample that was masked.
    agreement : str
        When values agreed, for probabilistic links; empty if columns are of every kind.
    trials : tuple of Trial
    failed : dict
        Names of specs that could not be tried, and why.
    """

    columns: tuple[Hashable, ...]
    rows: int
    records: int
    agreement: str
    trials: tuple[Trial, ...]
    failed: dict[str, str]

    @property
    def mixed(self) -> bool:
        """Whether columns of every kind were measured, and not numbers alone."""
        return self.trials[0].sse is None

    @property
    def frontier(self) -> tuple[Trial, ...]:
        """The trials that no other one dominates, from the least loss to the most."""
        return tuple(each for each in self.trials if each.dominated_by is None)

    def choose(self, *, max_risk: float | None = None, max_loss: float | None = None) -> Spec:
        """Return the spec of the least loss up to a risk, or of the least risk up to a loss."""
        if (max_risk is None) == (max_loss is None):
            raise SdcTypeError("choose takes max_risk or max_loss: name one of them.")
        if max_risk is not None:
            limit, bound, other = arguments.number(max_risk, "max_risk", 0.0), "risk", "loss"
        else:
            limit, bound, other = arguments.number(max_loss, "max_loss", 0.0), "loss", "risk"
        within = [each for each in self.frontier if getattr(each, bound) <= limit]
        if not within:
            least = min(getattr(each, bound) for each in self.frontier)
            raise SdcValueError(
                f"no masking that was tried has a {bound} of at most {limit:g} percent; the "
                f"least is {least:.4g}. Try other specs, or accept more."
            )
        return min(within, key=lambda each: getattr(each, other)).spec

    def to_frame(self) -> pd.DataFrame:
        """Return a frame with a row for each trial."""
        of_numbers = () if self.mixed else ("interval", "il_scaled", "sse")
        names = ["risk", "loss", "linked", "strongest", *of_numbers]
        names += ["k_min", "dominated_by", "note"]
        index = pd.Index([each.name for each in self.trials], name="masking")
        rows = [{name: getattr(each, name) for name in names} for each in self.trials]
        return pd.DataFrame(rows, index=index)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain Python objects, ready for JSON."""
        return {
            "columns": list(self.columns),
            "rows": self.rows,
            "records": self.records,
            "agreement": self.agreement,
            "trials": [
                {"name": each.name, "spec": each.spec.to_dict()}
                | self.to_frame().loc[each.name].to_dict()
                for each in self.trials
            ],
            "failed": dict(self.failed),
        }

    def plot(self, ax: Any = None) -> Any:
        """Draw risk and loss of all trials, and the frontier. Needs matplotlib."""
        return plots.risk_utility(self.to_frame(), ax)

    def __repr__(self) -> str:
        numbers = {each.name: number for number, each in enumerate(self.trials, 1)}
        table = self.to_frame().drop(columns=["strongest", "dominated_by", "note"])
        table.insert(0, "masking", [_shortened(name) for name in numbers])
        better = [numbers.get(each.dominated_by or "") for each in self.trials]
        table["dominated"] = ["-" if each is None else f"by {each}" for each in better]
        table.index = pd.Index(numbers.values())
        text = table.to_string(float_format="{:.2f}".format)
        lines = [
            *textwrap.wrap(
                f"Maskings of {', '.join(map(str, self.columns))}, tried on {self.records:,} of "
                f"{self.rows:,} records",
                _WIDTH,
                subsequent_indent="    ",
            ),
            *(f"  {line}" for line in text.splitlines()),
        ]
        for name, number in numbers.items():
            if _shortened(name) != name:
                lines += _wrapped(f"{number} is {name}")
        strongest: dict[str, list[str]] = {}
        for each in self.trials:
            strongest.setdefault(each.strongest, []).append(str(numbers[each.name]))
        for attack, which in strongest.items():
            lines += _wrapped(f"strongest attack on {', '.join(which)}: {attack}")
        lines += self._explained()
        if self.records < self.rows:
            lines += _wrapped(
                "The sample was masked on its own, and its records are farther apart than those of "
                "the whole frame: microaggregation of all loses less. Measure what you choose on "
                "all records."
            )
        for note, names in _by_note(self.trials).items():
            some = ", ".join(str(numbers[name]) for name in names)
            lines += _wrapped(f"{note}: {'all' if len(names) == len(numbers) else some}")
        for name, why in self.failed.items():
            lines += _wrapped(f"not tried: {name}: {why}")
        return "\n".join(lines)

    def _explained(self) -> list[str]:
        """Say what the figures are."""
        agree = f"; values agree {self.agreement}" if self.agreement else ""
        figures = (
            "risk: what the strongest attack links; loss: the mean Gower distance between records "
            "and their masked versions, of mixed_loss; all in percent"
            if self.mixed
            else "risk: half of what the strongest attack links, half of the interval disclosure; "
            "loss: half of il_scaled, how far statistics moved, and half of SSE / SST, how far "
            "records moved; all in percent"
        )
        return [
            *_wrapped(
                "intruder: knows original values of all these columns and, where the attack says "
                f"so, how they were masked{agree}"
            ),
            *_wrapped(figures),
            *_wrapped(
                "dominated: the other one has no more risk and no more loss. The rest is the "
                "frontier: choose(max_risk=...) or choose(max_loss=...)"
            ),
        ]


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 3]}..."


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="    ")


def _by_note(trials: Sequence[Trial]) -> dict[str, list[str]]:
    """Return remarks, each with the trials that it concerns."""
    found: dict[str, list[str]] = {}
    for each in trials:
        for remark in each.note.split("; "):
            if remark and not remark.endswith(" tried"):
                found.setdefault(remark, []).append(each.name)
    return found


@each_once()
def suggest(
    frame: Frame,
    columns: Any,
    specs: Any = None,
    *,
    by: Any = None,
    records: int = RECORDS,
    random_state: int | None = None,
    **intruder: Any,
) -> Suggestion:
    """Try specs on a sample of records, and compare what they risk and what they lose."""
    names = arguments.column_list(columns)
    size = arguments.whole_number(records, "records", 10)
    entropy = arguments.entropy(random_state)
    meta = arguments.unique_columns(frame)
    arguments.existing(meta, names, "columns")
    asked = _asked(meta, names, specs, by)
    for spec in asked.values():
        spec.check(frame)
    mixed = _is_mixed(meta, names, asked.values())
    # Losses compare if columns are read alike for all.
    reading = reading_of(list(asked.values()))
    if mixed:
        _check_unused(intruder)
    needed = dict.fromkeys(
        name for spec in asked.values() for name in (*names, *spec.masked, *spec.by)
    )
    stages.say("Drawing a sample")
    sample, rows = _drawn(frame[list(needed)], size, entropy)
    tried = int(np.random.SeedSequence(entropy).generate_state(1)[0])  # by all attacks
    trials, failed = [], {}
    agreement = ""
    for number, (name, spec) in enumerate(asked.items(), 1):
        stages.say(f"Trying {number} of {len(asked)}: {name}")
        draw = {"random_state": int(np.random.SeedSequence((entropy, number)).generate_state(1)[0])}
        try:
            masked = mask(sample, spec, **(draw if spec.draws else {}))
            if mixed:
                trials.append(_mixed_trial(name, spec, sample, masked, names, reading, tried))
                continue
            knows = {name: spec} if _is_modelled(spec, names) else None
            table = compare(
                sample, {name: masked}, names, knows=knows, random_state=tried, **intruder
            )
        except SdcError as error:
            failed[name] = str(error)
            continue
        agreement = table.attrs["agreement"]
        trials.append(_trial(name, spec, table.loc[name], modelled=knows is not None))
    if not trials:
        raise SdcValueError(f"no masking could be tried: {next(iter(failed.values()))}")
    trials.sort(key=lambda each: (each.loss, each.risk))
    return Suggestion(names, rows, len(sample), agreement, _compared(trials), failed)


def _is_mixed(meta: pd.DataFrame, names: tuple[Hashable, ...], specs: Collection[Spec]) -> bool:
    """Whether columns are not all numbers, do not stay numbers, or are not read as such."""
    dtypes = [meta[name].dtype for name in names]
    dtypes += [spec.dtype_of(name, meta[name].dtype) for spec in specs for name in names]
    return not all(map(is_numeric, dtypes)) or reading_of(list(specs)).concerns(names)


def _check_unused(intruder: Mapping[str, Any]) -> None:
    usual = {"tolerance": 0.1, "unit": "value"}
    unused = [name for name, value in intruder.items() if value != usual[name]]
    if unused:
        raise SdcTypeError(
            f"{', '.join(unused)} can be set for numeric columns alone: leave it out, or name "
            "numeric columns."
        )


def _asked(meta: pd.DataFrame, names: tuple[Hashable, ...], specs: Any, by: Any) -> dict[str, Spec]:
    """Return the specs to try by name, those of the grid by default."""
    if specs is None:
        numeric = not _is_mixed(meta, names, [])
        usual = grid(names, by) if numeric else mixed_grid(meta, names, by)
        return {_called(spec): spec for spec in usual}
    if by is not None:
        raise SdcValueError("by has no meaning with specs, which say it themselves: leave it out.")
    if isinstance(specs, Mapping):
        found = {str(name): spec for name, spec in specs.items()}
    else:
        given = [specs] if isinstance(specs, Spec) else list(specs)
        names_of = [_called(each) if isinstance(each, Spec) else "" for each in given]
        # Specs that differ in what a short name leaves out go by all that they say.
        twice = {name for name in names_of if names_of.count(name) > 1}
        found = {
            repr(each) if name in twice else name: each
            for name, each in zip(names_of, given, strict=True)
        }
    for spec in found.values():
        if not isinstance(spec, Spec):
            raise SdcTypeError(
                "specs must be specs, such as sdc_dask.RankSwap(['rent'], p=5), in a list or a "
                f"dict by name, received {type(spec).__name__}."
            )
        others = [name for name in names if name not in spec.masked]
        if others:
            raise SdcValueError(
                f"a spec does not mask columns that are compared: {arguments.listed(others)}. All "
                "specs must mask all of columns."
            )
    if not found:
        raise SdcValueError(
            "specs is empty: name one at least, or leave it out for the usual ones."
        )
    return found


def grid(columns: tuple[Hashable, ...], by: Any = None) -> list[Spec]:
    """Return the specs that are tried by default.

    Examples
    --------
    >>> len(grid(("a", "b"))), len(grid(("a",)))
    (15, 10)
    """
    together: list[Spec] = [Microaggregation(list(columns), k, by=by) for k in _K]
    alone: list[Spec] = [
        Microaggregation([[each] for each in columns], k, method="optimal", by=by) for k in _K_ALONE
    ]
    swaps: list[Spec] = [
        RankSwap(list(columns), p, method=method, by=by)
        for method in ("standard", "distribution")
        for p in _P
    ]
    return [*(together if len(columns) > 1 else []), *alone, *swaps]


def mixed_grid(meta: pd.DataFrame, columns: tuple[Hashable, ...], by: Any = None) -> list[Spec]:
    """Return the specs that are tried by default where columns are not all numbers.

    Cells of keys are suppressed only where all columns are categories: of numbers and dates, few
    values are shared, and nearly all would go.

    Examples
    --------
    >>> meta = pd.DataFrame({"age": [31], "job": ["cook"]})
    >>> len(mixed_grid(meta, ("age", "job"))), len(mixed_grid(meta, ("job",)))
    (5, 8)
    """
    specs: list[Spec] = [Microaggregation(list(columns), k, by=by) for k in _K]
    if by is None and not any(is_measured(meta[name].dtype) for name in columns):
        specs += [Suppress(list(columns), k) for k in _K_KEYS]
    return specs


def _called(spec: Spec) -> str:
    """Return a short name of a spec among those that are tried."""
    by = f" within {', '.join(map(str, spec.by))}" if spec.by else ""
    if isinstance(spec, Microaggregation):
        alone = ", each set alone" if len(spec.column_sets) > 1 else ""
        refined = ", refined" if spec.refine else ""
        refined += " across blocks" if spec.borders else ""
        return f"{spec.method}, k = {spec.k}{alone}{refined}{by}"
    if isinstance(spec, RankSwap):
        reach = f"p = {spec.p:g}" if spec.p is not None else f"{spec.buckets} buckets"
        blocks = " in blocks" if spec.in_blocks else ""
        return f"swap{blocks}, {spec.method}, {reach}{by}"
    return f"{spec.describe()}{by}"


def _is_modelled(spec: Spec, names: tuple[Hashable, ...]) -> bool:
    """Whether there is an attack by an intruder who knows a spec."""
    try:
        check_fitting([spec], [names])
    except SdcError:
        return False
    return bool(fitting_attacks([spec], [names]))


def _trial(name: str, spec: Spec, row: pd.Series, *, modelled: bool) -> Trial:
    return Trial(
        name,
        spec,
        float(row["risk"]),
        float(row["loss"]),
        float(row["linked"]),
        str(row["strongest"]),
        float(row["interval"]),
        float(row["il_scaled"]),
        float(row["sse"]),
        int(row["k_min"]),
        "; ".join([row["note"], *([] if modelled else [_BLIND])]),
    )


def _mixed_trial(
    name: str,
    spec: Spec,
    sample: pd.DataFrame,
    masked: pd.DataFrame,
    names: tuple[Hashable, ...],
    reading: Reading,
    random_state: int,
) -> Trial:
    """Measure columns of every kind: links by the strongest attack, and the distance of Gower."""
    found = attacks_on(sample, masked, spec, names, random_state=random_state)
    modelled = not all(each.startswith(BLIND) for each in found.assumes)
    return Trial(
        name,
        spec,
        found.strongest.rate,
        mixed_loss(sample, masked, names, reading).loss,
        found.strongest.rate,
        f"{found.attacks[0]} ({found.assumes[0]})",
        None,
        None,
        None,
        anonymity(masked, names, None).k_min,
        "; ".join([*found.strongest.remarks, *([] if modelled else [_BLIND])]),
    )


def _compared(trials: Sequence[Trial]) -> tuple[Trial, ...]:
    """Say of each trial which one dominates it: the nearest of the frontier that does."""
    found = []
    for each in trials:
        better = [
            other
            for other in trials
            if other.risk <= each.risk
            and other.loss <= each.loss
            and (other.risk, other.loss) != (each.risk, each.loss)
        ]
        best = min(better, key=lambda other: other.risk + other.loss, default=None)
        found.append(Trial(**{**vars(each), "dominated_by": None if best is None else best.name}))
    return tuple(found)


# The sample


def _drawn(frame: Frame, size: int, entropy: int) -> tuple[pd.DataFrame, int]:
    """Return records drawn at random, in memory, and the number of all: two passes."""
    counts = map_reduce(frame, _count, _join)
    rows = sum(counts)
    picked = draw_rows(rows, size, entropy)
    borders = np.cumsum([0, *counts])
    local = [
        picked[slice(*np.searchsorted(picked, borders[p : p + 2]))] - borders[p]
        for p in range(len(counts))
    ]
    parts = map_reduce(frame, _take, _join, local)
    return pd.concat(parts, ignore_index=True), rows


def _count(part: pd.DataFrame, _number: int) -> list[int]:
    return [len(part)]


def _take(part: pd.DataFrame, number: int, local: list[NDArray[np.int64]]) -> list[pd.DataFrame]:
    return [part.iloc[local[number]]]


def _join(parts: list[list[Any]]) -> list[Any]:
    return [each for part in parts for each in part]
