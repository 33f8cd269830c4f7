"""How kernels are compiled, and that the package works where nothing can be written."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from pathlib import Path

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


# In a process with an empty cache, in which parts are compiled, and not found in what is on disk.
PARTS = """
import importlib
import pkgutil

import numpy as np
from numba.core.dispatcher import Dispatcher

from sdc_dask import kernels
from sdc_dask.kernels.mdav import mdav_indexed, mdav_narrow
from sdc_dask.kernels.refine import Cycle, refine

points = np.random.default_rng(1).normal(size=(300, 2))
mdav_narrow(points, 5)
refine(points, mdav_indexed(points, 5), 5, [Cycle(1, 1.0, True)])
modules = [
    importlib.import_module(f"sdc_dask.kernels.{each.name}")
    for each in pkgutil.iter_modules(kernels.__path__)
]
for module in modules:
    for each in vars(module).values():
        if isinstance(each, Dispatcher) and not each.targetoptions.get("_nrt", True):
            for overload in each.overloads.values():
                print(each.py_func.__name__, overload.signature.return_type, sep=": ")
"""


def test_parts_of_kernels_return_no_arrays(tmp_path: Path) -> None:
    # Nobody counts who holds what they return: it would be freed while it is in use.
    found = subprocess.run(
        [sys.executable, "-c", PARTS],
        env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert found.returncode == 0, found.stderr
    returned = dict(line.split(": ", 1) for line in found.stdout.splitlines())
    assert len(returned) > 25
    assert returned["nearest_narrow"] == "int64"
    assert not [name for name, kind in returned.items() if "array" in kind.lower()]
