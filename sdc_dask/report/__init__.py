"""A report of a masking as one HTML page: for those who decide, or for those who use the data."""

from sdc_dask.report.dossier import report

__all__ = ["report"]
