"""Run the command line: ``python -m sdc_dask``."""

import sys

from sdc_dask.cli import main

if __name__ == "__main__":
    sys.exit(main())
