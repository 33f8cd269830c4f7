"""Import the package before pytest imports its modules one by one, to run their examples.

Otherwise an accessor would be registered twice when the examples of one module are run.
"""

import sdc_dask  # noqa: F401
