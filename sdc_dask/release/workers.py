"""Whether the workers of a cluster can do what is asked for, before it begins."""

from __future__ import annotations

import os
from pathlib import Path

from distributed import default_client

from sdc_dask.engine.frames import on_cluster
from sdc_dask.errors import SdcValueError
from sdc_dask.release.cluster import check_memory, check_visible, warn_if_open
from sdc_dask.release.places import Place
from sdc_dask.release.source import Source

# Each is asked for at each worker.
_DIRECTORIES = 100


def check_workers(source: Source, target: Place, work: Path) -> None:
    """Raise an error if workers lack memory or do not see files, and warn if others can listen.

    Parameters
    ----------
    source : Source
    target : Place
    work : Path
        The directory in which values are to wait.
    """
    if not on_cluster():
        return
    warn_if_open(default_client())
    if any(place.protocol == "memory" for place in (*source.asked, target)):
        raise SdcValueError(
            "memory:// is the memory of this process, which workers do not see: use it without a "
            "cluster, or name a path or a store that workers reach."
        )
    check_memory(source.largest)
    goal = [Path(target.path).parent] if target.is_local else []
    check_visible([*_one_of_each_directory(source), *goal, work])


def _one_of_each_directory(source: Source) -> list[str]:
    """Return a local file of each directory, as far as these are not too many to ask for."""
    files = {os.path.dirname(file.path): file.path for file in source.files}
    local = [file for file in files.values() if "://" not in file]
    return local[:: -(-len(local) // _DIRECTORIES) or 1]
