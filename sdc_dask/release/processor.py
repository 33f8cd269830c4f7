"""Which features of some processors numpy should not use."""

from __future__ import annotations

from pathlib import Path

import numpy as np

_AVOIDED = ("X86_V4", "AVX512")  # how numpy's names of such features begin
_ABOUT_IT = Path("/proc/cpuinfo")


def slow_features(about: Path = _ABOUT_IT) -> str:
    """Return the features of numpy that make sorting slow here, for NPY_DISABLE_CPU_FEATURES.

    On AMD's Zen 4, numpy sorts with an instruction of AVX-512 that takes more than a hundred
    cycles: an array takes five times as long as with AVX2. Older processors of AMD lack that
    instruction, and newer ones have a fast one.

    Parameters
    ----------
    about : Path
        What Linux says of its processors.

    Returns
    -------
    str
        Empty on all other processors, and where nothing is known of them.
    """
    try:
        lines = about.read_text(encoding="utf-8").partition("\n\n")[0].splitlines()
    except OSError:
        return ""
    of_first = {name.strip(): value.strip() for name, _, value in (x.partition(":") for x in lines)}
    is_family = of_first.get("vendor_id") == "AuthenticAMD" and of_first.get("cpu family") == "25"
    if not is_family or "avx512f" not in of_first.get("flags", "").split():
        return ""
    # Of what is not among these, numpy warns.
    found = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])
    return " ".join(name for name in found if name.startswith(_AVOIDED))
