"""Statistical disclosure control of huge microdata with Dask.

Importing this package registers the accessor ``.sdc`` on pandas and Dask DataFrames.
"""

from sdc_dask import aggregation, datasets, grouping, plots, series
from sdc_dask.accessor import SdcAccessor
from sdc_dask.engine.blocks import Blocks
from sdc_dask.errors import SdcError
from sdc_dask.job import Job
from sdc_dask.masking.fuzzy import FuzzyMicroaggregation
from sdc_dask.masking.mic1d import Mic1D
from sdc_dask.masking.microaggregation import Microaggregation
from sdc_dask.masking.noise import Noise
from sdc_dask.masking.pram import Pram
from sdc_dask.masking.rank_swap import RankSwap
from sdc_dask.masking.recode import Recode
from sdc_dask.masking.series import SeriesMicroaggregation
from sdc_dask.masking.spec import Spec
from sdc_dask.masking.suppress import Suppress
from sdc_dask.release.long import Long
from sdc_dask.release.protect import protect
from sdc_dask.release.verify import Verification, verify
from sdc_dask.report import report

__all__ = [
    "Blocks",
    "FuzzyMicroaggregation",
    "Job",
    "Long",
    "Mic1D",
    "Microaggregation",
    "Noise",
    "Pram",
    "RankSwap",
    "Recode",
    "SdcAccessor",
    "SdcError",
    "SeriesMicroaggregation",
    "Spec",
    "Suppress",
    "Verification",
    "aggregation",
    "datasets",
    "grouping",
    "plots",
    "protect",
    "report",
    "series",
    "verify",
]
__version__ = "0.1.0"
