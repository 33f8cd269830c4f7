"""What numpy had better not use of some processors, and that workers of our own do without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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


@pytest.fixture(autouse=True)
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
    assert "hugetlb" in environment["GLIBC_TUNABLES"]
