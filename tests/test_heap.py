"""Free memory that lies below what is in use goes back to the system."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from sdc_dask.release.cluster import _environment
from sdc_dask.release.heap import GiveBack

ARRAYS, BYTES = 4_000, 50_000
# The C library gives nothing back by itself.
KEEPS = {"MALLOC_TRIM_THRESHOLD_": str(2**30), "MALLOC_MMAP_THRESHOLD_": str(2**20)}


def resident() -> int:
    return psutil.Process().memory_info().rss


async def freed(limit: int) -> int:
    """Fill the heap, free all of it but its end, and return the bytes that go back."""
    arrays = [np.ones(BYTES, np.uint8) for _ in range(ARRAYS)]
    last = arrays.pop()
    arrays.clear()
    before = resident()
    worker = SimpleNamespace(
        memory_manager=SimpleNamespace(memory_limit=limit),
        monitor=SimpleNamespace(get_process_memory=resident),
    )
    plugin = GiveBack()
    plugin.setup(worker)
    await asyncio.sleep(0.5)
    plugin.teardown(worker)
    assert last.all()
    return before - resident()


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="of the C library of GNU")
def test_free_memory_below_what_is_in_use_goes_back() -> None:
    def run(limit: int) -> int:
        found = subprocess.run(
            [sys.executable, __file__, str(limit)],
            env={**os.environ, **KEEPS},
            capture_output=True,
            text=True,
            check=True,
        )
        return int(found.stdout)

    assert run(limit=ARRAYS * BYTES) > ARRAYS * BYTES / 2
    assert run(limit=2**50) < ARRAYS * BYTES / 2  # far away


def test_settings_of_the_c_library_that_are_there_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GLIBC_TUNABLES", "glibc.malloc.check=3")
    assert _environment()["GLIBC_TUNABLES"] == "glibc.malloc.check=3:glibc.malloc.hugetlb=1"
    monkeypatch.delenv("GLIBC_TUNABLES")
    assert _environment()["GLIBC_TUNABLES"] == "glibc.malloc.hugetlb=1"


if __name__ == "__main__":
    print(asyncio.run(freed(int(sys.argv[1]))))
