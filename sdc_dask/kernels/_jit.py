"""The one place that says how kernels are compiled."""

from __future__ import annotations

import numba

# No fastmath: it would delete NaN checks and let two kernels round the same distance differently.
# No parallel: workers run kernels side by side, and numba's own threads abort under that.
jit = numba.njit(nogil=True, cache=True, error_model="numpy")
