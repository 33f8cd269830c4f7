"""Statistical disclosure control of huge microdata with Dask.

Importing this package registers the accessor ``.sdc`` on pandas and Dask DataFrames.
"""

from sdc_dask import aggregation, datasets, grouping
from sdc_dask.accessor import SdcAccessor
from sdc_dask.engine.blocks import Blocks
from sdc_dask.release.protect import protect

__all__ = ["Blocks", "SdcAccessor", "aggregation", "datasets", "grouping", "protect"]
__version__ = "0.1.0"
