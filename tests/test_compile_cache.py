"""Kernels where nothing can be written: the package works, and says once why it is slow."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

import pytest

from sdc_dask.kernels import _jit

# Permissions do not bind everybody: numba is told what it would find out.
READ_ONLY = """
from numba.core import caching

def refuse(self):
    raise PermissionError(13, "Permission denied")

caching._CacheLocator.ensure_cache_path = refuse
import warnings

with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    import sdc_dask
    import sdc_dask.kernels.runs as runs

import numpy as np
print([str(each.message) for each in found if issubclass(each.category, UserWarning)])
print(runs.first_of_runs(np.array([1.0, 5.0, 2.0]), 0, 2, 0.0).tolist())
"""


def test_a_read_only_installation() -> None:
    environment = {name: text for name, text in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    found = subprocess.run(
        [sys.executable, "-c", READ_ONLY], env=environment, capture_output=True, text=True
    )
    assert found.returncode == 0, found.stderr
    warned, computed = found.stdout.splitlines()
    assert warned.count("there is no writable directory for compiled kernels") == 1
    assert "Set NUMBA_CACHE_DIR" in warned
    assert computed == "[1.0, 1.0, 2.0]"


def test_workers_leave_it_to_the_process_that_started_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.warns(UserWarning, match="no writable directory"):
        _jit._say_no_cache.__wrapped__()
    monkeypatch.setattr(_jit.multiprocessing, "parent_process", lambda: object())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _jit._say_no_cache.__wrapped__()
