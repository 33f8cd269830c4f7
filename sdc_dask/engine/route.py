"""Temporary."""

from sdc_dask.engine.frames import on_cluster
from sdc_dask.engine.masks import routed_frame

__all__ = ["route", "routed_frame", "sorted_by_key"]


def route(routed, divisions):  # type: ignore
    """Temporary."""
    method = "p2p" if on_cluster() else "tasks"
    return routed.set_index("key", divisions=divisions, shuffle_method=method)


def sorted_by_key(routed):  # type: ignore
    """Temporary."""
    return routed.set_index("key").sort_index()
