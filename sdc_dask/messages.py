"""What can be said of an exception of others, in one line that shows no value of the data.

The type decides: errors of this package say it themselves, the number of an error of the system
has a text of its own, and reasons of encryption name certificates, not data. Any other text may
quote a value, and is left out.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from urllib.parse import urlsplit

from sdc_dask.errors import SdcError, SdcWarning

MORE_MEMORY = "give workers more memory (--memory-limit), or start fewer of them (--workers)."

_REMEDIES = {  # by the number of an error of the system
    errno.ENOSPC: "free space there, or choose another disk: TARGET says where files are written, "
    "TMPDIR where temporary ones are.",
    errno.EDQUOT: "your quota of that disk is used up: free space there, or choose another disk.",
    errno.EROFS: "choose a place that can be written to.",
    errno.EACCES: "ask for the permission, or choose another place.",
    errno.EPERM: "ask for the permission, or choose another place.",
    errno.EMFILE: "raise the limit of open files (ulimit -n).",
    errno.ENOMEM: MORE_MEMORY,
    errno.ESTALE: "the network disk was unmounted or exported anew: run it again when it is back.",
    errno.EIO: "look at the disk, or the network that it is reached by.",
}
_KINDS = {  # by the name of a type of others, which need not be imported for this
    "P2POutOfDiskError": f"{os.strerror(errno.ENOSPC)} in the temporary directory of a worker: "
    "free space there, or choose another disk with TMPDIR, or temporary-directory of Dask's "
    "configuration on a cluster of your own.",
    "KilledWorker": "worker processes died again and again at one task, most likely for lack of "
    f"memory: {MORE_MEMORY}",
    "MemoryError": MORE_MEMORY,
    "FlexibleChecksumError": "what the store sent is not what its checksum is of: it was damaged "
    "on the way, or the store does not know checksums of newer clients; then set "
    "AWS_REQUEST_CHECKSUM_CALCULATION=when_required and "
    "AWS_RESPONSE_CHECKSUM_VALIDATION=when_required, and release again.",
    "ModuleNotFoundError": "a package is missing where the work runs: scheduler and workers need "
    "the same versions of sdc_dask and Dask as this process.",
}
_HIDDEN = "Its text may show data values and is not printed."


def one_line(error: BaseException) -> str:
    """Return what can be said of an exception without showing data.

    Examples
    --------
    >>> one_line(ValueError("could not convert 'Ms Jones' to float"))
    'ValueError. Its text may show data values and is not printed.'
    >>> print(one_line(OSError(30, "", "/data/out")))
    OSError: Read-only file system: /data/out: choose a place that can be written to.
    """
    if isinstance(error, (SdcError, SdcWarning)):
        return " ".join(str(error).split())
    kind = type(error).__name__
    if kind in _KINDS:
        return f"{kind}: {_KINDS[kind]}"
    found = _of_system(error) if isinstance(error, OSError) else None
    if found is not None:
        remedy = _REMEDIES.get(found.errno or 0)
        return f"{kind}: {reason(found)}{f': {remedy}' if remedy else '.'}"
    return f"{kind}. {_HIDDEN}"


def is_told(error: BaseException) -> bool:
    """Whether :func:`one_line` says more of an exception than its type."""
    return not one_line(error).endswith(_HIDDEN)


def reason(error: BaseException) -> str | None:
    """Return what the system says of an error, or of one that it came from; None if nothing.

    That is the text of its number, and the path; or why a connection could not be encrypted.

    Examples
    --------
    >>> reason(OSError(30, "", "/data/out"))
    'Read-only file system: /data/out'
    """
    found = _of_system(error)
    if found is None:
        return None
    if isinstance(found, ssl.SSLError):
        return _of_encryption(found)
    if isinstance(found, socket.gaierror):
        return found.strerror
    where = f": {found.filename}" if isinstance(found.filename, str) else ""
    return f"{os.strerror(found.errno or 0)}{where}"


def reason_at(address: str) -> str | None:
    """Return why nobody answers at an address such as ``tcp://host:8786``; None if somebody does.

    Examples
    --------
    >>> reason_at("tcp://127.0.0.1:1")
    'Connection refused'
    """
    parts = urlsplit(address if "://" in address else f"tcp://{address}")
    try:
        with socket.create_connection((parts.hostname, parts.port or 8786), timeout=2):
            return None
    except (OSError, ValueError) as error:
        return reason(error) or "no answer"


def _of_system(error: BaseException | None) -> OSError | None:
    """Return the first error of the system among an exception and those that it came from."""
    while error is not None:
        if isinstance(error, ssl.SSLError) or (isinstance(error, OSError) and error.errno):
            return error
        error = error.__cause__ or error.__context__
    return None


def _of_encryption(error: ssl.SSLError) -> str:
    """Return why a connection could not be encrypted: words on certificates and protocols."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the other side is refused: {error.verify_message}"
    words = getattr(error, "reason", None) or "the other side hung up"
    return f"the connection could not be encrypted: {words.replace('_', ' ').lower()}"
