"""Passes over frames, pandas or Dask: map and reduce, scan, plan, route there and back."""
