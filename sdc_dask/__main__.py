"""Run the command line: ``python -m sdc_dask``."""

import sys

from sdc_dask_start import start

if __name__ == "__main__":
    sys.exit(start())
