"""Files that are written when the work is done: whether that will be possible, before it begins."""

from __future__ import annotations

import os
import uuid
from pathlib import Path

from sdc_dask import messages
from sdc_dask.errors import SdcValueError


def check_writable(file: Path, name: str) -> None:
    """Raise SdcValueError unless a file can be written; nothing of it is changed.

    Parameters
    ----------
    file : Path
        May exist or not; its directory does.
    name : str
        What the file is called in a message.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> check_writable(folder / "summary.json", "json")
    >>> list(folder.iterdir())
    []
    """
    try:
        if file.exists():
            os.close(os.open(file, os.O_WRONLY))
            return
        other = file.with_name(f".{uuid.uuid4().hex}.writable")
        os.close(os.open(other, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        other.unlink()
    except OSError as error:
        raise SdcValueError(
            f"{name} {str(file)!r} cannot be written ({messages.reason(error)}): choose another "
            "file, or ask for the permission."
        ) from None
