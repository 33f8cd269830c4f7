"""Statistical disclosure control of huge microdata with Dask."""

from sdc_dask import datasets
from sdc_dask.accessor import SdcAccessor
from sdc_dask.engine.blocks import Blocks

__all__ = ["Blocks", "SdcAccessor", "datasets"]
__version__ = "0.1.0"
