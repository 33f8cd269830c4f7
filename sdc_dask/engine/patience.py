"""Tasks that a network fails for a moment: they are tried again, where they are.

Dask's own retries begin every task again, whatever failed. Here a task whose error tells of a
connection waits and goes on; one that would fail again in the same way, as a full disk or an error
of this package does, ends at once. Tasks may run twice in any case, since workers may die.
"""

from __future__ import annotations

import errno
import time
from collections.abc import Callable
from typing import Any

_WAITS = (1.0, 4.0, 16.0)  # seconds: stores and their packages have tried for some time before

_NUMBERS = frozenset(
    [
        *(errno.ECONNABORTED, errno.ECONNREFUSED, errno.ECONNRESET, errno.EPIPE),
        *(errno.EHOSTDOWN, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.EAGAIN),
        *(errno.ENETDOWN, errno.ENETRESET, errno.ENETUNREACH),
        *(errno.EIO, errno.ESTALE),  # of network disks, and of stores that have an error inside
    ]
)

# Types of others that are no errors of the system, by name: they need not be imported for this.
_KINDS = frozenset(
    [
        *("ServerDisconnectedError", "ClientPayloadError", "ServerTimeoutError"),  # aiohttp
        *("ConnectionClosedError", "ConnectTimeoutError", "EndpointConnectionError"),  # botocore
        *("HTTPClientError", "ReadTimeoutError", "ResponseStreamingError"),
        *("IncompleteReadError", "ServiceRequestError", "ServiceResponseError"),  # azure
    ]
)


def patiently(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function, and again after a while if a connection failed, for some times.

    Examples
    --------
    >>> patiently(max, 3, 5)
    5
    """
    for wait in _WAITS:
        try:
            return function(*args)
        except Exception as error:
            if not is_passing(error):
                raise
        # Here the error is gone, and with it what its frames hold.
        time.sleep(wait)
    return function(*args)


def is_passing(error: BaseException | None) -> bool:
    """Whether an error, or one that it came from, is of a connection that may be back soon.

    Examples
    --------
    >>> is_passing(ConnectionResetError()), is_passing(PermissionError(13, "Permission denied"))
    (True, False)
    """
    while error is not None:
        if isinstance(error, (ConnectionError, TimeoutError)) or type(error).__name__ in _KINDS:
            return True
        if isinstance(error, OSError) and error.errno is not None:
            return error.errno in _NUMBERS
        error = error.__cause__ or error.__context__
    return False
