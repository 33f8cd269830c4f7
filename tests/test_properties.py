"""What holds for every frame and every masking: it is refused in words, or all of it is right.

A refusal is an error of ours that shows no value. A result has the rows, the index, the order and
the dtypes that it must have, untouched columns bit for bit, and what the masking promises: classes
of k, or the values that were there. It is the same with pandas and with Dask, and in files.
"""

from __future__ import annotations

import itertools
import json
import pickle
import tempfile
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from frames_of import (
    LARGEST,
    NAMES,
    TINY,
    Asked,
    Case,
    array_of,
    cases,
    classes,
    in_one_form,
    missing_in,
    shown_values,
    smallest_class,
    specs,
    texts_of,
    unsigned,
    width_of,
)
from hypothesis import event, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_index_equal

import sdc_dask
from sdc_dask import (
    FuzzyMicroaggregation,
    Mic1D,
    Microaggregation,
    Noise,
    Pram,
    RankSwap,
    Recode,
    SdcError,
    SeriesMicroaggregation,
    Spec,
    Suppress,
)
from sdc_dask.aggregation import power, sigmoid, threshold

pytestmark = [
    # Dask, when it puts partitions with categories together that have tuples for names.
    pytest.mark.filterwarnings("ignore:Constructing a DataFrame from a list of sequences"),
    pytest.mark.filterwarnings("ignore:fuzzy microaggregation does not guarantee"),
    pytest.mark.filterwarnings("ignore:kappa=.* is small"),
]

# Errors in which a call ends. A RuntimeError of ours would say that data changed or a check failed.
REFUSED = (TypeError, ValueError, KeyError)


def quick_and_long(quick: int, long: int) -> Callable[[Any], Any]:
    """Run a property on some examples, and on many in a long test."""
    return pytest.mark.parametrize("examples", [quick, pytest.param(long, marks=pytest.mark.soak)])


def for_all(check: Callable[[Case], None], drawn: st.SearchStrategy[Any], examples: int) -> None:
    """Check a property on so many examples; errors of tasks come as they are."""
    config = {"scheduler": "sync", "dataframe.convert-string": False}
    with dask.config.set(config):
        settings(max_examples=examples)(given(drawn)(check))()


def run(frame: Any, found: Sequence[Spec], case: Case) -> Any:
    seed = case.random_state if any(spec.draws for spec in found) else None
    return frame.sdc.mask(list(found), random_state=seed)


def attempt(case: Case, call: Callable[[], Any]) -> Any:
    """Return what a call returns, or the text of the error by which it refuses; no other error."""
    try:
        return call()
    except SdcError as error:
        assert isinstance(error, REFUSED)
        assert not shown_values(error, case.frame)
        assert "make the blocks" not in str(error)  # which nobody has made
        return f"{type(error).__name__}: {error}"


# Specs


@st.composite
def asked(draw: st.DrawFn) -> Asked:
    """Draw a spec of columns that no frame has to have."""
    names = draw(st.permutations([*NAMES[:5], 0, 1.5]))
    width = draw(st.sampled_from([1, 2, 3]))
    return draw(specs(names[:width], names[width : width + 1], draw(st.integers(2, 9))))


@quick_and_long(100, 10_000)
def test_specs_are_values(examples: int) -> None:
    known = {
        each.__name__: each
        for each in (
            *(Microaggregation, SeriesMicroaggregation, RankSwap, Mic1D, FuzzyMicroaggregation),
            *(Recode, Suppress, Pram, Noise),
            *(power, sigmoid, threshold),
        )
    }

    def check(each: Asked) -> None:
        try:
            spec = each.make()
        except SdcError as error:
            assert isinstance(error, REFUSED)
            event("refused")
            return
        assert spec == each.make()
        assert hash(spec) == hash(each.make())
        assert pickle.loads(pickle.dumps(spec)) == spec
        assert eval(repr(spec), known | {"float": float, "inf": np.inf}) == spec
        written = json.dumps(spec.to_dict(), allow_nan=False)
        for reader in (Spec, type(spec)):
            read = reader.from_dict(json.loads(written))
            assert read == spec
            assert json.dumps(read.to_dict()) == written

    for_all(check, asked(), examples)


# Frames


def check_result(case: Case, found: Sequence[Spec], result: pd.DataFrame) -> None:
    """Check all that must hold of what a frame became."""
    frame = case.frame
    assert_index_equal(result.index, frame.index, exact=True)
    assert result.columns.equals(frame.columns)
    masked = {name for spec in found for name in spec.masked}
    by = {name for spec in found for name in spec.by}
    for name in frame.columns:
        if name not in masked:
            assert result[name].dtype == frame[name].dtype
            shown = in_one_form if name in by else texts_of
            assert shown(result[name]) == shown(frame[name])
    for spec in found:
        for name in spec.masked:
            dtype = spec.dtype_of(name, frame[name].dtype)
            if isinstance(spec, (Suppress, Pram)) and isinstance(dtype, pd.CategoricalDtype):
                # Categories that no record had, or that are suppressed, are left out.
                left = result[name].cat.categories
                assert set(left) <= set(dtype.categories)
                dtype = pd.CategoricalDtype(left, dtype.ordered)
            assert result[name].dtype == dtype
            if not isinstance(spec, Suppress):
                assert missing_in(result[name]) == missing_in(frame[name])
        if spec.in_place:
            check_changes(frame, result, spec)
        if spec.moves:
            check_moved(frame, result, spec)
        if spec.promise is not None:
            for columns in spec.column_sets:
                assert smallest_class(result, columns, spec.by) >= spec.promise
                if not spec.in_place:
                    check_means(frame, result, columns, spec)


def check_changes(frame: pd.DataFrame, result: pd.DataFrame, spec: Spec) -> None:
    """Check that the cells of a column become what a masking makes of them, and nothing else."""
    for name in spec.masked:
        old, new = plain(frame[name]), plain(result[name])
        if isinstance(spec, Suppress):
            assert all(after in (before, "missing") for before, after in zip(old, new, strict=True))
        elif isinstance(spec, Pram):
            assert set(new) <= set(old)
        elif isinstance(spec, Recode) and spec.bins is not None:
            assert set(new) <= {"missing", *map(repr, spec.labels)}
        elif isinstance(spec, Recode):
            cells = result[name].astype("float64").dropna()
            assert not (cells > (np.inf if spec.top is None else spec.top)).any()
            assert not (cells < (-np.inf if spec.bottom is None else spec.bottom)).any()


def check_moved(frame: pd.DataFrame, result: pd.DataFrame, spec: Spec) -> None:
    """Check that every column has the values that it had in every stratum."""
    strata = classes(frame, [], spec.by) if spec.by else [()] * len(frame)
    for name in spec.masked:
        old, new = (
            Counter(
                (stratum, text)
                for stratum, text, missing in zip(
                    strata, texts_of(each[name]), missing_in(each[name]), strict=True
                )
                if not missing
            )
            for each in (frame, result)
        )
        assert old == new


def check_means(
    frame: pd.DataFrame, result: pd.DataFrame, columns: Sequence[Hashable], spec: Spec
) -> None:
    """Check that every class has the mean of its records, unless means were rounded."""
    if getattr(spec, "decimals", None) is not None:
        return
    members: dict[Any, list[int]] = {}
    for place, each in enumerate(classes(result, columns, spec.by)):
        members.setdefault(each, []).append(place)
    for name in columns:
        old, new = (each[name].to_numpy(float, na_value=np.nan) for each in (frame, result))
        largest = np.abs(old[~np.isnan(old)]).max(initial=0.0)
        # A power of two keeps the largest values from overflowing and changes nothing else.
        exponent = int(np.frexp(largest)[1]) if largest > 1e300 else 0
        old, new, largest = (np.ldexp(each, -exponent) for each in (old, new, largest))
        precision = {2: 2e-3, 4: 2e-7, 8: 1e-14}[width_of(result[name].dtype)]
        smallest = {2: 6e-8, 4: 2e-45, 8: TINY}[width_of(result[name].dtype)]
        for places in members.values():
            if not np.isnan(new[places[0]]):
                error = abs(np.mean(old[places]) - new[places[0]])
                assert error <= precision * len(frame) * largest + 2 * smallest


@quick_and_long(60, 5_000)
def test_frames_are_masked_or_refused(examples: int) -> None:
    def check(case: Case) -> None:
        before = case.frame.copy()
        result = attempt(case, lambda: run(case.frame, case.make(), case))
        pd.testing.assert_frame_equal(case.frame, before, check_exact=True)
        if isinstance(result, str):
            event("refused")
        else:
            event("masked")
            check_result(case, case.make(), result)

    for_all(check, cases(), examples)


def test_a_stratum_without_values_stays_as_it_is() -> None:
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0, 4.0, np.nan, np.nan], "g": [0, 0, 0, 0, 1, 1]})
    spec = RankSwap(["x"], 50, by="g")
    case = Case(frame, [], [0, 3, 6], 5)
    for each in (frame, case.partitioned()):
        result = run(each, [spec], case)
        check_result(case, [spec], result if each is frame else result.compute())


@pytest.mark.filterwarnings("error:overflow")
def test_centres_of_the_largest_floats_are_floats() -> None:
    frame = pd.DataFrame({"x": [1.0] * 7, "y": [1e300] * 5 + [LARGEST] * 2})
    for seed in range(5):
        spec = FuzzyMicroaggregation(["x", "y"], 2, 1, 1, standardize=False)
        masked = frame.sdc.mask(spec, random_state=seed)
        assert np.isfinite(masked["y"]).all()


def test_a_loss_beyond_all_floats_is_infinite() -> None:
    frame = pd.DataFrame({"x": [-1e300, 1e300, 0.0, 0.0], "y": [-100.0, 100.0, -2.0, -100.0]})
    masked = frame.sdc.mask(Mic1D(["x", "y"], 5))
    assert frame.sdc.sse(masked, ["x", "y"]).by_column["y"] == np.inf


@quick_and_long(25, 1_000)
def test_partitions_change_nothing(examples: int) -> None:
    def check(case: Case) -> None:
        found = case.make()
        expected = attempt(case, lambda: run(case.frame, found, case))
        lazy = case.partitioned()
        result = attempt(case, lambda: run(lazy, found, case))
        dtypes = None if isinstance(result, str) else result.dtypes
        if not isinstance(result, str):
            assert result.npartitions == lazy.npartitions
            result = attempt(case, result.compute)
        if isinstance(expected, str) or isinstance(result, str):
            event("refused")
            assert result is expected or result == expected
            return
        event("masked")
        check_result(case, found, result)
        assert dtypes is not None
        assert list(dtypes) == list(result.dtypes) == list(expected.dtypes)
        for name in expected.columns:
            assert texts_of(result[name]) == texts_of(expected[name])

    for_all(check, cases(for_dask=True, wrong=False), examples)


# Files


def write_source(case: Case, folder: Path) -> pa.Table:
    """Write a frame into files of any number of row groups."""
    frame = case.frame.assign(person=np.arange(len(case.frame)))
    table = pa.Table.from_pandas(frame, preserve_index=False)
    folder.mkdir()
    borders = sorted({0, *case.borders[1:2], len(frame)})
    for number, (begin, end) in enumerate(itertools.pairwise(borders)):
        size = 1 + case.random_state % (end - begin)
        path = folder / f"part.{number}.parquet"
        pq.write_table(table.slice(begin, end - begin), path, row_group_size=size)
    return table


def released(target: Path) -> pd.DataFrame:
    """Read the files of a release, with pyarrow alone, in order of the records."""
    table = pa.concat_tables(pq.read_table(path) for path in target.glob("*.parquet"))
    return pd.DataFrame(
        {name: pd.Series(_cells(table[name]), dtype=object) for name in table.column_names}
    ).sort_values("person", ignore_index=True)


def _cells(column: pa.ChunkedArray) -> list[Any]:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.to_pylist()


def plain(column: pd.Series) -> list[str]:
    """Return cells as a release has them: zeros without a sign, all that is missing alike."""
    pairs = zip(column.astype(object), missing_in(column), strict=True)
    return ["missing" if missing else repr(unsigned(cell)) for cell, missing in pairs]


def check_release(case: Case, found: Sequence[Spec], folder: Path, order: str) -> bool:
    """Check a release, or that nothing is left of a refused one; tell whether there is one."""
    table = write_source(case, folder / "in")
    seed = case.random_state if any(spec.draws for spec in found) else None
    summary = attempt(
        case,
        lambda: sdc_dask.protect(
            folder / "in", folder / "out", found, keep="*", order=order, random_state=seed
        ),
    )
    if isinstance(summary, str):
        assert [path.name for path in folder.iterdir()] == ["in"]
        return False
    result = released(folder / "out")
    assert list(result.columns) == table.column_names
    assert result["person"].tolist() == list(range(len(case.frame)))
    # The same frame in memory is what the files must hold, kept columns and masked ones.
    expected = run(case.frame, found, case)
    for name in case.frame.columns:
        cells = _cells(pa.Table.from_pandas(expected[[name]], preserve_index=False)[name])
        assert plain(result[name]) == plain(pd.Series(cells, dtype=object))
    for spec in found:
        for columns in spec.column_sets if spec.promise is not None else ():
            # Read by bits: not even strata have zeros or missing cells of two kinds.
            records = zip(*(texts_of(result[each]) for each in [*columns, *spec.by]), strict=True)
            assert min(Counter(records).values()) >= spec.promise
    assert sdc_dask.verify(folder / "out").ok
    return True


@quick_and_long(8, 300)
@pytest.mark.filterwarnings("ignore:kept columns are unique")
def test_files_are_what_frames_are(examples: int) -> None:
    def check(drawn: tuple[Case, str]) -> None:
        case, order = drawn
        with tempfile.TemporaryDirectory() as folder:
            done = check_release(case, case.make(), Path(folder), order)
        event("masked" if done else "refused")

    orders = st.sampled_from(["source", "random"])
    for_all(check, st.tuples(cases(for_files=True, wrong=False), orders), examples)


@pytest.mark.parametrize(
    "spec",
    [
        Microaggregation(["half"], 3),
        RankSwap(["half"], 50),
        Microaggregation(["x"], 3, by="half"),
        Recode(["half"], top=2),
        Recode(["half"], mapping={1.0: 2.5, 2.5: 2.5, 0.0: 0.0}),
        Suppress(["half"], 2),
        Pram(["half"], keep=0),
    ],
    ids=["masked", "swapped", "strata", "bounded", "recoded", "suppressed", "randomized"],
)
def test_half_floats_in_files(tmp_path: Path, spec: Spec) -> None:
    half = array_of([1.0, 1.0, 1.0, 2.5, 2.5, None], "halffloat[pyarrow]")
    if spec.promise is not None:
        half = array_of([0.0, -0.0, 0.0, 2.5, 2.5, 2.5], "halffloat[pyarrow]")
    frame = pd.DataFrame({"x": np.arange(6.0), "half": half})
    case = Case(frame, [], [0, 4, 6], 7)
    assert check_release(case, [spec], tmp_path, "random")


RARE: dict[str, pa.Array] = {
    "periods": pa.array(pd.PeriodIndex(["2001-02-03", "1969-12-31"], freq="D").repeat(3)),
    "intervals": pa.array(pd.arrays.IntervalArray.from_breaks([0, 1, 123456]).repeat(3)),
    "views": pa.array(["a", "Zx9canaryQ7"] * 3, pa.string_view()),
    "clock": pa.array([1, 86_399_999_999] * 3, pa.time64("us")),
    "large texts": pa.array(["a", "Zx9canaryQ7"] * 3, pa.large_string()),
    "fixed width": pa.array([b"abc", b"\xff\xfe\x00"] * 3, pa.binary(3)),
    "wide decimals": pa.array([1, 123456] * 3).cast(pa.decimal256(50, 3)),
    "dictionary": pa.array([7, 123456] * 3).dictionary_encode(),
    "nothing": pa.nulls(6),
}


@pytest.mark.parametrize(
    "kind",
    [
        kind if kind in ("periods", "views") else pytest.param(kind, marks=pytest.mark.soak)
        for kind in RARE
    ],
)
def test_rare_types_in_files_are_released_or_refused(tmp_path: Path, kind: str) -> None:
    table = pa.table({"x": np.arange(6.0), "rare": RARE[kind]})
    pq.write_table(table, tmp_path / "in.parquet")
    cells = pd.Series(RARE[kind].to_pylist(), dtype=object)
    case = Case(pd.DataFrame({"rare": cells}), [], [], 0)
    found = {
        "kept": Microaggregation(["x"], 3),
        "strata": Microaggregation(["x"], 3, by="rare"),
        "strata of a swap": RankSwap(["x"], 50, by="rare"),
        "swapped": RankSwap(["rare"], 50),
        "masked": Microaggregation(["rare"], 3),
    }
    for role, spec in found.items():
        target = tmp_path / role
        summary = attempt(
            case,
            lambda spec=spec, target=target: sdc_dask.protect(
                tmp_path / "in.parquet", target, spec, keep="*"
            ),
        )
        assert target.exists() == (not isinstance(summary, str))
        if target.exists():
            assert sdc_dask.verify(target).ok


def test_views_are_released_as_texts(tmp_path: Path) -> None:
    table = pa.table({"x": np.arange(6.0), "rare": RARE["views"]})
    pq.write_table(table, tmp_path / "in.parquet")
    spec = Microaggregation(["x"], 3)
    with pytest.raises(ValueError, match="'rare': 'string'"):
        sdc_dask.protect(tmp_path / "in.parquet", tmp_path / "out", spec, keep="*")
    sdc_dask.protect(
        tmp_path / "in.parquet", tmp_path / "out", spec, keep="*", cast={"rare": "string"}
    )
    released = pd.read_parquet(tmp_path / "out")["rare"]
    assert sorted(released) == sorted(RARE["views"].to_pylist())
