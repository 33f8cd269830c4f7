"""Ten thousand small data sets through every masking that promises k: no class is below it.

Each data set is told by its seed. It has as many records as one to four groups of k, two or three
columns of numbers with ties, constants, grids, extremes and missing cells, and units that some
records share. As a frame of its own it goes through one of the maskings, in turn. As a stratum
among others, which is masked as if it were alone and costs far less, it goes through all of them.
Options are drawn, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from sdc_dask import Microaggregation, SdcError, SeriesMicroaggregation, Spec, Suppress
from sdc_dask.aggregation import power, sigmoid, threshold
from sdc_dask.masking.microaggregation import METHODS
from sdc_dask.masking.series import DISTANCES

# Data that chance draws may look like a slip.
pytestmark = pytest.mark.filterwarnings("ignore::sdc_dask.errors.Advice")

DATA_SETS = 10_000
A_CASE = 1_000  # data sets
A_FRAME = 100  # strata
TINY = np.nextafter(0.0, 1.0)  # the smallest subnormal number
LARGEST = np.finfo(np.float64).max

Rng = np.random.Generator
VALUES: dict[str, Callable[[Rng, int], np.ndarray]] = {
    "normal": lambda rng, n: rng.normal(size=n),
    "skewed": lambda rng, n: rng.lognormal(0.0, 4.0, n),
    "tied": lambda rng, n: rng.integers(0, 2, n).astype(float),
    "whole": lambda rng, n: rng.integers(-5, 6, n).astype(float),
    "grid": lambda rng, n: rng.integers(0, 9, n) / 8,
    "tenths": lambda rng, n: rng.integers(0, 9, n) / 10,
    "constant": lambda rng, n: np.full(n, rng.normal()),
    "zeros": lambda rng, n: rng.choice([0.0, -0.0], n),
    "huge": lambda rng, n: rng.uniform(-1.0, 1.0, n) * LARGEST,
    "tiny": lambda rng, n: rng.integers(-4, 5, n) * TINY,
    "adjacent": lambda rng, n: 1.0 + rng.integers(0, 3, n) * np.finfo(float).eps,
    "powers": lambda rng, n: np.ldexp(1.0, rng.integers(-1_000, 1_000, n)),
    "outlier": lambda rng, n: np.where(rng.permutation(n) == 0, 1e300, rng.integers(0, 3, n)),
    "exact": lambda rng, n: 2.0**53 - rng.integers(0, 3, n),
}
VALUES_OF_CODES = [-1.0, 0.0, 2.0, 7.5]
WHOLE = ("tied", "whole", "exact")
DTYPES = ["float64", "Float64", "double[pyarrow]"]
WHOLE_DTYPES = ["int64", "Int64", "int64[pyarrow]"]
NARROW = ["float32", "float16"]
# Ways of MDAV, and suppression: with the methods and distances, these are all that promise k.
WAYS = [
    *("nominal", "orders", "keep_integers", "refine", "borders", "merge"),
    *("unit", "units_alike", "suppress"),
]
MASKINGS = [*METHODS, *DISTANCES, *WAYS]
COMPLETE = [*DISTANCES, "unit", "units_alike"]  # which take strata without missing cells here


def column(rng: Rng, n: int) -> pd.Series:
    kind = str(rng.choice(list(VALUES)))
    values = pd.Series(VALUES[kind](rng, n))
    chance = rng.random()
    if chance < 0.2:
        return values.astype(str(rng.choice(WHOLE_DTYPES if kind in WHOLE else DTYPES)))
    if chance < 0.3 and kind not in ("huge", "powers", "skewed", "outlier", "exact"):
        return values.astype(str(rng.choice(NARROW)))
    return values


def data_set(rng: Rng, k: int) -> pd.DataFrame:
    """Return from k - 1 to a few more than 4k records; a fifth of the frames has missing cells."""
    n = max(1, int(rng.integers(1, 5)) * k + int(rng.integers(-1, 3)))
    frame = pd.DataFrame({f"x{j}": column(rng, n) for j in range(rng.integers(2, 4))})
    if rng.random() < 0.2:
        frame["x0"] = frame["x0"].mask(rng.random(n) < 0.5)
    return frame.assign(stratum=rng.integers(0, 2, n), unit=units(rng, n, k))


def units(rng: Rng, n: int, k: int) -> np.ndarray:
    """Return units of n records, at least k different ones if there are so many records."""
    return np.where(np.arange(n) < k, np.arange(n), rng.integers(0, 2 * k, n))


def data_sets(rng: Rng, seeds: range, k: int) -> pd.DataFrame:
    """Return data sets as strata of one frame; each, and each of its patterns, has k records.

    Values are of one kind per column: those that are far larger than others would hide them.
    """
    kinds = rng.choice(list(VALUES), rng.integers(2, 4)).tolist()
    holes = rng.random() < 0.2
    parts = []
    for seed in seeds:
        own = np.random.default_rng(seed)
        n = int(own.integers(k, 4 * k + 3))
        part = pd.DataFrame({f"x{j}": VALUES[kind](own, n) for j, kind in enumerate(kinds)})
        part["unit"] = seed * 100 + units(own, n, k)
        if holes and n >= 2 * k:
            part.loc[own.permutation(n) < own.integers(k, n - k + 1), "x0"] = np.nan
        parts.append(part.assign(stratum=seed))
    return pd.concat(parts).sample(frac=1.0, random_state=rng, ignore_index=True)


def masking(rng: Rng, name: str, columns: list[str], k: int, missing: str, **options: Any) -> Spec:
    """Return a masking that promises k, with options that are drawn."""
    if name in DISTANCES:
        normalize = ["series", "component"][rng.integers(2)]
        options |= {"distance": name, "normalize": normalize, "max_block": 2 * k}
        return SeriesMicroaggregation(columns, k, **options)
    if name in WAYS:
        return way(rng, name, columns, k, missing, **options)
    own = METHODS[name][1]
    if own == "gain":
        options["gain"] = float(rng.choice([0.0, 0.2, 1.1]))
    elif own == "weights":
        options["weights"] = rng.dirichlet(np.ones(len(columns))).tolist()
    elif own == "measure":
        options["measure"] = [power(1), power(0.5), sigmoid(0.5), threshold(0.5)][rng.integers(4)]
    options["blocking"] = [None, "tree", "univariate"][rng.integers(3)]
    if options["blocking"] is not None:
        options["max_block"] = int(rng.integers(k, 3 * k + 1))
    options["standardize"] = bool(rng.integers(2))
    options["decimals"] = [None, None, 0, 2, -1][rng.integers(5)]
    sets: Any = [[each] for each in columns] if name == "optimal" else columns
    return Microaggregation(sets, k, method=name, missing=missing, **options)


def way(rng: Rng, name: str, columns: list[str], k: int, missing: str, **options: Any) -> Spec:
    """Return a way of MDAV, or suppression, which has no strata."""
    if name == "suppress":
        return Suppress(columns, k)
    some = {columns[0]: sorted(VALUES_OF_CODES)} if name == "orders" else None
    options |= {"orders": some} if some else {}
    options |= {"nominal": columns[:1]} if name == "nominal" else {}
    options |= {name: True} if name == "keep_integers" else {}
    options |= {"refine": 2} if name in ("refine", "borders") else {}
    options |= {"borders": True} if name == "borders" else {}
    options |= {"small": "merge", "by": "stratum"} if name == "merge" else {}
    options |= {"unit": "unit"} if name in ("unit", "units_alike") else {}
    options |= {"units_alike": True} if name == "units_alike" else {}
    if rng.random() < 0.5 or name == "borders":
        options["max_block"] = int(rng.integers(k, 3 * k + 1))
    return Microaggregation(columns, k, missing=missing, **options)


def prepared(rng: Rng, name: str, frame: pd.DataFrame) -> pd.DataFrame:
    """Return a frame with what a way of masking needs."""
    if name == "orders":
        codes = rng.choice(VALUES_OF_CODES, len(frame))
        return frame.assign(x0=pd.Series(codes, frame.index).mask(frame["x0"].isna()))
    return frame


def policy(frame: pd.DataFrame) -> str:
    return "separate" if frame.isna().any(axis=None) else "error"


def classes_below(masked: pd.DataFrame, spec: Spec) -> int:
    """Count classes of fewer than k records that are equal by bits, in all sets of columns.

    Missing cells are all the same NaN. With units, these are counted, and must be alike if asked.
    """
    below = 0
    for columns in spec.column_sets:
        names = [*columns, *spec.by]
        cells = [masked[name].to_numpy(dtype="float64", na_value=np.nan) for name in names]
        classes = [record.tobytes() for record in np.column_stack(cells)]
        if spec.unit is None:
            sizes = Counter(classes)
        else:
            pairs = set(zip(classes, masked[spec.unit], strict=True))
            sizes = Counter(each for each, _ in pairs)
            if spec.units_alike:
                below += len(pairs) - masked[spec.unit].nunique()
        below += sum(size < spec.promise for size in sizes.values())
    return below


def fuzz_alone(seeds: range) -> Counter[str]:
    """Mask each data set on its own, by one of the maskings in turn."""
    counted: Counter[str] = Counter()
    for seed in seeds:
        rng = np.random.default_rng(seed)
        k = int(rng.integers(2, 6))
        frame = data_set(rng, k)
        columns = [name for name in frame if name.startswith("x")]
        name = MASKINGS[seed % len(MASKINGS)]
        frame = prepared(rng, name, frame)
        by = {"by": "stratum"} if rng.random() < 0.2 else {}
        spec = masking(rng, name, columns, k, policy(frame), **by)
        try:
            masked = frame.sdc.mask(spec)
        except SdcError as error:
            assert isinstance(error, ValueError), (seed, spec)
            counted["refused"] += 1
            continue
        assert len(masked) == len(frame)
        counted["masked"] += 1
        counted["classes below k"] += classes_below(masked, spec)
    return counted


def fuzz_strata(seeds: range) -> Counter[str]:
    """Mask data sets as strata of one frame, by every masking; nothing of it can be refused."""
    counted: Counter[str] = Counter()
    rng = np.random.default_rng(seeds.start)
    k = int(rng.integers(2, 6))
    frame = data_sets(rng, seeds, k)
    columns = [name for name in frame if name.startswith("x")]
    for name in MASKINGS:
        whole = prepared(rng, name, frame)
        if name in COMPLETE and policy(frame) == "separate":
            whole = frame.fillna(0.0)  # series have no gaps, and units are not in all patterns
        spec = masking(rng, name, columns, k, policy(whole), by="stratum")
        masked = whole.sdc.mask(spec)
        assert len(masked) == len(whole)
        counted["masked"] += len(seeds)
        counted["classes below k"] += classes_below(masked, spec)
    return counted


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, DATA_SETS, A_CASE))
def test_no_class_of_a_data_set_is_below_k(first: int) -> None:
    counted = fuzz_alone(range(first, first + A_CASE))
    assert counted["masked"] > counted["refused"] > 0
    assert counted["classes below k"] == 0


@pytest.mark.soak
@pytest.mark.parametrize("first", range(0, DATA_SETS, A_CASE))
def test_no_class_of_a_stratum_is_below_k(first: int) -> None:
    counted: Counter[str] = Counter()
    for begin in range(first, first + A_CASE, A_FRAME):
        counted += fuzz_strata(range(begin, begin + A_FRAME))
    assert counted["masked"] == A_CASE * len(MASKINGS)
    assert counted["classes below k"] == 0
