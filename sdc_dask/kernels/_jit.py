"""The one place that says how kernels are compiled, and whether they are being compiled."""

from __future__ import annotations

import multiprocessing
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
from numba.core import event
from numba.core.cpu import CPUTargetOptions

from sdc_dask.errors import warn


def jit(function: Callable[..., Any]) -> Any:
    """Compile a kernel when it is first called, and keep it on disk for the next process.

    No fastmath: it would delete NaN checks and let two kernels round the same distance
    differently. No parallel: workers run kernels side by side, and numba's own threads abort under
    that.
    """
    return _compiled(function, {})


def jit_part(function: Callable[..., Any]) -> Any:
    """Compile a part of a kernel that makes no arrays and returns none.

    numba counts who holds an array, by instructions that lock memory. Where tuples of arrays go
    through short functions, that took a third of the time. Arrays that are the caller's all along
    need not be counted. A function that makes or returns an array must be a kernel of its own
    (:func:`jit`): it would not be freed here, or too early.
    """
    return _compiled(function, {"_nrt": False} if hasattr(CPUTargetOptions, "_nrt") else {})


def _compiled(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        return numba.njit(nogil=True, cache=True, error_model="numpy", **options)(function)
    except RuntimeError:
        # numba looks for a directory to write to when it decorates, and found none.
        _say_no_cache()
        return numba.njit(nogil=True, error_model="numpy", **options)(function)


def is_compiled(kernel: Any) -> bool:
    """Whether a kernel is compiled, in this process or on disk: calling it takes no seconds then.

    What is on disk may be of older code, and be compiled anew.
    """
    if kernel.signatures:
        return True
    # Without a directory for compiled kernels there is none.
    directory = kernel.stats.cache_path
    return directory is not None and any(
        Path(directory).glob(f"*.{kernel.py_func.__qualname__}-*.nbi")
    )


class _Compilation(event.Listener):
    """Follows what numba compiles in this process; what it finds on disk is not compiled."""

    def __init__(self) -> None:
        self.running = 0
        self.kept = False  # whether what is compiled is kept on disk
        self._lock = threading.Lock()  # threads run kernels side by side

    def on_start(self, event: Any) -> None:
        with self._lock:
            if self.running == 0:  # what comes within is part of it
                self.kept = event.data["dispatcher"].stats.cache_path is not None
            self.running += 1

    def on_end(self, _event: Any) -> None:
        with self._lock:
            self.running -= 1


_compilation = _Compilation()
event.register("numba:compile", _compilation)


def compiling() -> str | None:
    """Say that kernels are being compiled in this process, if they are."""
    if not _compilation.running:
        return None
    return f"Compiling kernels{', once for this environment' if _compilation.kept else ''}"


@cache
def _say_no_cache() -> None:
    if multiprocessing.parent_process() is not None:
        return  # the process that started this worker has said it
    warn(
        "there is no writable directory for compiled kernels, neither beside the package nor in "
        "the home directory: every process compiles them anew, which takes up to half a minute. "
        "Set NUMBA_CACHE_DIR to a directory that can be written to."
    )
