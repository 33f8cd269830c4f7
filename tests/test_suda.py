"""Special uniques, against published scores and a search through all subsets of all records."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from frames_of import cuts, partitioned
from hypothesis import given, settings
from hypothesis import strategies as st

import sdc_dask
from sdc_dask.engine import class_tables
from sdc_dask.errors import SdcError

# Table 4.5 of "Statistical disclosure control: a practice guide" (IHSN).
GUIDE = pd.DataFrame(
    {
        "residence": ["urban"] * 4 + ["rural"] + ["urban"] * 5,
        "sex": list("fffmfmfmff"),
        "education": pd.Categorical([2, 2, 0, 3, 3, 3, 1, 4, 2, 2]),
        "labour": ["in", "in", "non", "in", "un", "in", "non", "un", "non", "non"],
    }
)


def test_scores_of_the_practice_guide() -> None:
    for size in (3, 4):
        found = GUIDE.sdc.suda_by_record(list(GUIDE), max_size=size)
        assert found["score"].tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    assert found["msus"].tolist() == [0, 0, 1, 0, 4, 0, 1, 3, 0, 0]
    assert found["smallest"].tolist() == [0, 0, 1, 0, 1, 0, 1, 1, 0, 0]
    # The DIS-SUDA scores of the table are those of the older scores.
    older = GUIDE.sdc.suda_by_record(list(GUIDE), scores="ihsn")["dis_score"]
    assert older.round(4).tolist() == [0, 0, 0.0051, 0, 0.0107, 0, 0.0051, 0.0088, 0, 0]


def test_scores_of_francdat(reference: Callable[[str], pd.DataFrame]) -> None:
    # The table of SUDA scores in the guidelines of sdcMicro.
    francdat = reference("sdcmicro_francdat")
    found = francdat.sdc.suda_by_record(["Key1", "Key2", "Key3", "Key4"], scores="ihsn")
    assert found["score"].tolist() == [0, 0, 0, 2.25, 1.75, 1, 2.25, 0]
    assert found["dis_score"].round(4).tolist() == [0, 0, 0, 0.0149, 0.0111, 0.0057, 0.0149, 0]


def test_contributions_of_sdcmicro() -> None:
    frame = pd.DataFrame({"a": [2, 1, 1], "b": [0, 3, 0], "c": [0, 6, 0]})
    for keys in itertools.permutations("abc"):
        found = frame.sdc.suda(list(keys))
        assert found.contributions == {key: 50 if key == "a" else 37.5 for key in keys}
    assert list(found.to_frame()["key"]) == list(keys)
    # The example of the book by Templ.
    book = pd.DataFrame(
        {
            "age": [20] * 7 + [60],
            "sex": list("mmmmfffm"),
            "income": [1, 1, 0, 0, 0, 0, 0, 0],
            "education": list("hhhhuhmu"),
        }
    )
    assert book.sdc.suda_by_record(list(book))["score"].tolist() == [0, 0, 0, 0, 4, 2, 6, 8]


def minimal_uniques(frame: pd.DataFrame, most: int, ignore: bool) -> list[list[tuple[int, ...]]]:
    """Return the minimal sample uniques of each record, by looking at all subsets."""
    cells = frame.astype(object).where(frame.notna(), None).to_numpy().tolist()
    found: list[list[tuple[int, ...]]] = [[] for _ in cells]
    for size in range(1, most + 1):
        for subset in itertools.combinations(range(frame.shape[1]), size):
            seen = [tuple(cell[j] for j in subset) for cell in cells]
            for i, values in enumerate(seen):
                minimal = not any(set(smaller) <= set(subset) for smaller in found[i])
                counts = not (ignore and None in values)
                if seen.count(values) == 1 and minimal and counts:
                    found[i].append(subset)
    return found


CELL = st.sampled_from(["a", "b", "c", None])


@settings(max_examples=12)
@given(st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=14), st.data())
def test_uniques_are_those_of_a_plain_search(records: list, data: st.DataObject) -> None:
    frame = pd.DataFrame(records, columns=list("pqrs"))
    most = data.draw(st.integers(1, 4))
    missing = data.draw(st.sampled_from(["category", "ignore"]))
    expected = minimal_uniques(frame, most, missing == "ignore")
    options = {"max_size": most, "missing": missing}
    found = frame.sdc.suda(list(frame), **options)
    sizes = [len(subset) for each in expected for subset in each]
    assert found.sizes == {size: sizes.count(size) for size in range(1, most + 1)}
    assert (found.msus, found.special) == (len(sizes), sum(map(bool, expected)))
    assert found.uniques == (~frame.fillna("-").duplicated(keep=False)).sum()
    weight = {k: math.prod(4 - i for i in range(k, min(most, 3) + 1)) for k in range(1, 5)}
    scores = [sum(weight[len(subset)] for subset in each) for each in expected]
    by_record = frame.sdc.suda_by_record(list(frame), **options)
    assert by_record["score"].tolist() == scores
    assert by_record["msus"].tolist() == [len(each) for each in expected]
    assert by_record["smallest"].tolist() == [min(map(len, each), default=0) for each in expected]
    assert found.highest_dis == by_record["dis_score"].max()
    borders = data.draw(cuts(len(frame), 2))
    lazy = partitioned(frame, borders).sdc.suda_by_record(list(frame), **options)
    pd.testing.assert_frame_equal(lazy.compute(scheduler="sync"), by_record, check_exact=True)


@pytest.mark.long_on_cluster
@pytest.mark.parametrize("scores", ["ihsn"])
def test_dask_equals_pandas(scheduler: str, scores: str, monkeypatch: pytest.MonkeyPatch) -> None:
    people = sdc_dask.datasets.survey(1_000, npartitions=4)
    pandas = people.compute(scheduler="sync")
    keys = ["region", "sex", "occupation", "age"]
    expected = pandas.sdc.suda(keys, scores=scores)
    records = pandas.sdc.suda_by_record(keys, scores=scores)
    # In several batches and ranges.
    monkeypatch.setattr("sdc_dask.risk.subsets.MOST_KEYS", 6_000)
    monkeypatch.setattr("sdc_dask.risk.suda._CELLS", 500)
    monkeypatch.setattr(class_tables, "PARTITIONS_A_RANGE", 2)
    assert people.sdc.suda(keys, scores=scores) == expected
    lazy = people.sdc.suda_by_record(keys, scores=scores)
    pd.testing.assert_frame_equal(lazy.compute(), records, check_exact=True)
    pd.testing.assert_frame_equal(lazy._meta, records.iloc[:0])
    assert 0 < expected.special < 1_000


def test_without_pairs_a_match_is_right() -> None:
    found = pd.DataFrame({"a": [1, 2, 3]}).sdc.suda(["a"])
    assert (found.dis, found.highest_dis, found.uniques) == (1, 1, 3)
    nobody = pd.DataFrame({"a": [1, 1], "b": [2, 2]}).sdc.suda(["a", "b"])
    assert (nobody.dis, nobody.highest, nobody.msus) == (0, 0, 0)
    assert nobody.contributions == {"a": 0, "b": 0}


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"max_size": 5}, "at most the number of keys, 4, received 5"),
        ({"max_size": 0}, "max_size must be at least 1"),
        ({"fraction": 0}, "fraction must be above 0"),
        ({"scores": "sum"}, "scores must be one of"),
        ({"missing": "any"}, "missing must be one of"),
    ],
)
def test_wrong_arguments_are_refused(options: dict, text: str) -> None:
    with pytest.raises(SdcError, match=text):
        GUIDE.sdc.suda(list(GUIDE), **options)


def test_too_many_subsets_are_refused() -> None:
    wide = pd.DataFrame(np.zeros((2, 40)))
    with pytest.raises(SdcError, match=r"40 keys have 102,090 subsets .* at most 10,000"):
        wide.sdc.suda(list(wide), max_size=4)
    with pytest.raises(SdcError, match="no records"):
        GUIDE.iloc[:0].sdc.suda(list(GUIDE))
