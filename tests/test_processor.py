"""Which features of some processors numpy should not use, and that results do not show it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import dask
import numpy as np
import pytest

import sdc_dask.release.cluster as cluster_module
from sdc_dask.release.processor import slow_features

ABOUT = """processor\t: 0
vendor_id\t: {vendor}
cpu family\t: {family}
model name\t: some processor
flags\t\t: fpu sse2 avx2 {flags}

processor\t: 1
vendor_id\t: {vendor}
"""


@pytest.fixture
def numpy_with_avx512(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"SIMD Extensions": {"baseline": ["X86_V2"], "found": ["X86_V3", "X86_V4", "AVX512_X"]}}
    monkeypatch.setattr(np, "show_config", lambda mode: found)


@pytest.mark.parametrize(
    ("vendor", "family", "flags", "slow"),
    [
        ("AuthenticAMD", 25, "avx512f avx512_vbmi2", "X86_V4 AVX512_X"),
        ("AuthenticAMD", 25, "", ""),  # Zen 3, which has no AVX-512
        ("AuthenticAMD", 26, "avx512f", ""),  # Zen 5, which is fast
        ("GenuineIntel", 25, "avx512f", ""),
    ],
)
@pytest.mark.usefixtures("numpy_with_avx512")
def test_slow_features_are_those_of_one_family(
    vendor: str, family: int, flags: str, slow: str, tmp_path: Path
) -> None:
    about = tmp_path / "cpuinfo"
    about.write_text(ABOUT.format(vendor=vendor, family=family, flags=flags))
    assert slow_features(about) == slow


def test_nothing_is_known_of_a_processor(tmp_path: Path) -> None:
    assert slow_features(tmp_path / "cpuinfo") == ""
    (tmp_path / "cpuinfo").write_text("")
    assert slow_features(tmp_path / "cpuinfo") == ""


@pytest.mark.parametrize(
    ("own", "slow", "expected"),
    [
        (None, "X86_V4", "X86_V4"),
        (None, "", None),
        ("AVX2", "X86_V4", None),  # workers inherit it
    ],
)
def test_workers_start_without_slow_features(
    own: str | None, slow: str, expected: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "NPY_DISABLE_CPU_FEATURES"
    monkeypatch.delenv(name, raising=False)
    if own is not None:
        monkeypatch.setenv(name, own)
    monkeypatch.setattr(cluster_module, "slow_features", lambda: slow)
    environment: dict[str, Any] = cluster_module._environment()
    assert environment.get(name) == expected
    with dask.config.set({"distributed.nanny.pre-spawn-environ": {name: "AVX2"}}):
        assert cluster_module._environment()[name] == "AVX2"
    assert "hugetlb" in environment["GLIBC_TUNABLES"]


RESULTS = """
import hashlib, warnings
import numpy as np
import sdc_dask
from sdc_dask.aggregation import power, sigmoid

warnings.simplefilter("ignore")
people = sdc_dask.datasets.survey(3_000, seed=1).compute()
people = people.assign(weight=np.tile([1.0, 7.3, 50.0], 1_000), home=np.arange(3_000) // 3)
columns, keys = ["income", "wealth", "age"], ["age", "sex", "region"]
results = {
    "survey": people,
    "panel": sdc_dask.datasets.panel(200, 24, seed=1).compute(),
    "risk": people.sdc.sample_risk_by_record(keys, "weight", household="home"),
    "suda": people.sdc.suda_by_record(keys),
    "diversity": people.sdc.anonymity(["sex", "region"], confidential="occupation"),
    "mdav": people.sdc.microaggregate(columns, 5, refine=True),
    "power": people.sdc.microaggregate(columns, 5, method="owa", measure=power(2.7)),
    "sigmoid": people.sdc.microaggregate(columns, 5, method="choquet", measure=sigmoid(0.3)),
    "pcp": people.sdc.microaggregate(columns, 5, method="pcp"),
    "swap": people.sdc.rank_swap(columns, 5, random_state=1),
    "noise": people.sdc.add_noise(columns, 0.2, random_state=1),
}
results["loss"] = people.sdc.information_loss(results["mdav"], columns)
results["interval"] = people.sdc.interval_disclosure(results["mdav"], columns)
for name, found in results.items():
    table = found.to_csv() if hasattr(found, "to_csv") else repr(found.to_dict())
    print(name, hashlib.sha256(table.encode()).hexdigest())
"""


def test_results_do_not_depend_on_what_numpy_uses() -> None:
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    if not found:
        pytest.skip("numpy uses nothing here that it could do without")
    printed = [
        subprocess.run(
            [sys.executable, "-c", RESULTS],
            env={**os.environ, "NPY_DISABLE_CPU_FEATURES": " ".join(without)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for without in ([], found)
    ]
    assert len(printed[0].splitlines()) == 13
    assert printed[0] == printed[1]
