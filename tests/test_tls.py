"""Encrypted schedulers, with real certificates; what is said of wrong ones, and of open ones."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dask
import pytest
from dask.delayed import delayed
from distributed import Client, LocalCluster, Security

import sdc_dask
from sdc_dask import cli
from sdc_dask.errors import SdcFileNotFoundError, SdcRuntimeError, SdcValueError, SdcWarning
from sdc_dask.release import cluster
from sdc_dask.release.cluster import connected, is_private, warn_if_open
from sdc_dask.release.watch import compute

OPENSSL = shutil.which("openssl")
needs_openssl = pytest.mark.skipif(OPENSSL is None, reason="openssl is not installed")
KEY = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]


def openssl(*arguments: str | Path) -> None:
    subprocess.run([str(OPENSSL), *map(str, arguments)], check=True, capture_output=True)


def make_authority(folder: Path, name: str) -> None:
    names = ["-keyout", folder / f"{name}.key", "-out", folder / f"{name}.pem"]
    constraint = ["-addext", "basicConstraints=critical,CA:TRUE"]
    openssl("req", "-x509", *KEY, *names, "-days", "2", "-subj", f"/CN={name}", *constraint)


def make_certificate(folder: Path, name: str, authority: str) -> None:
    request, key, made = (folder / f"{name}.{end}" for end in ("csr", "key", "pem"))
    openssl("req", *KEY, "-keyout", key, "-out", request, "-subj", f"/CN={name}")
    signed_by = ["-CA", folder / f"{authority}.pem", "-CAkey", folder / f"{authority}.key"]
    openssl(
        "x509", "-req", "-in", request, *signed_by, "-CAcreateserial", "-days", "2", "-out", made
    )


pytestmark = pytest.mark.together


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make two authorities, and certificates of both."""
    found = tmp_path_factory.mktemp("certificates")
    for authority, names in (("ours", ("server", "client")), ("theirs", ("stranger",))):
        make_authority(found, authority)
        for name in names:
            make_certificate(found, name, authority)
    return found


@pytest.fixture(scope="module")
def address(folder: Path) -> Iterator[str]:
    """Start a scheduler and a worker that accept certificates of one authority alone."""
    security = Security(
        tls_ca_file=str(folder / "ours.pem"),
        require_encryption=True,
        **{
            f"tls_{role}_{what}": str(folder / f"server.{end}")
            for role in ("scheduler", "worker", "client")
            for what, end in (("cert", "pem"), ("key", "key"))
        },
    )
    with LocalCluster(
        n_workers=1,
        threads_per_worker=1,
        processes=False,
        protocol="tls",
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        security=security,
    ) as started:
        yield started.scheduler_address


def files(folder: Path, authority: str, name: str) -> dict[str, Path]:
    return {
        "ca_file": folder / f"{authority}.pem",
        "cert": folder / f"{name}.pem",
        "key": folder / f"{name}.key",
    }


@pytest.fixture(autouse=True)
def _soon() -> Iterator[None]:
    with dask.config.set({"distributed.comm.timeouts.connect": "3s", "scheduler": None}):
        yield


@needs_openssl
def test_certificates_in_python(folder: Path, address: str) -> None:
    assert address.startswith("tls://127.0.0.1")
    with connected(address, **files(folder, "ours", "client")) as client:
        warn_if_open(client)
        assert compute(delayed(max)(3, 5)) == 5


@needs_openssl
def test_certificates_in_one_file_and_in_the_configuration(folder: Path, address: str) -> None:
    both = folder / "both.pem"
    both.write_text((folder / "client.pem").read_text() + (folder / "client.key").read_text())
    with connected(address, ca_file=folder / "ours.pem", cert=both):
        assert compute(delayed(max)(3, 5)) == 5
    configured = {"ca-file": str(folder / "ours.pem"), "client.cert": str(both)}
    with (
        dask.config.set({f"distributed.comm.tls.{name}": configured[name] for name in configured}),
        connected(address),
    ):
        assert compute(delayed(max)(3, 5)) == 5


@needs_openssl
@pytest.mark.parametrize(
    ("authority", "name", "words"),
    [
        ("theirs", "client", "certificate of the other side is refused: self-signed certificate"),
        ("ours", "stranger", r"\(the connection could not be encrypted: |\(Connection reset by"),
    ],
)
def test_certificates_of_another_authority(
    folder: Path, address: str, authority: str, name: str, words: str
) -> None:
    with pytest.raises(SdcRuntimeError, match=words) as failed:
        connected(address, **files(folder, authority, name))
    assert str(failed.value).startswith(f"no scheduler could be reached at {address!r} (")
    assert failed.value.__context__ is None


@needs_openssl
def test_no_certificates(folder: Path, address: str) -> None:
    with pytest.raises(SdcRuntimeError, match="no certificates are given, or configured for Dask"):
        connected(address)
    with pytest.raises(SdcRuntimeError, match=r"reached at 'tcp://.*both sides have certificates"):
        connected(address.replace("tls://", "tcp://"))


@needs_openssl
def test_files_that_are_no_certificates(folder: Path, address: str) -> None:
    good = files(folder, "ours", "client")
    with pytest.raises(SdcFileNotFoundError, match=r"absent\.pem' does not exist"):
        connected(address, **(good | {"cert": folder / "absent.pem"}))
    with pytest.raises(SdcValueError, match=r"cannot be used .*key values mismatch"):
        connected(address, **(good | {"key": folder / "server.key"}))
    with pytest.raises(SdcValueError, match="cannot be used"):
        connected(address, **(good | {"cert": folder / "client.csr"}))
    with pytest.raises(SdcValueError, match="needs the certificate of the authority and that of"):
        connected(address, cert=good["cert"])
    with pytest.raises(SdcValueError, match="certificates are for an encrypted connection"):
        connected("tcp://127.0.0.1:1", **good)


@needs_openssl
def test_certificates_on_the_command_line(
    folder: Path, address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, target = tmp_path / "survey.parquet", tmp_path / "release"
    with dask.config.set(scheduler="threads"):
        sdc_dask.datasets.survey(1_000, npartitions=1).compute().to_parquet(source, index=False)
    command = ["protect", str(source), str(target), "--columns", "income,age", "-k", "5"]
    command += ["--keep", "*", "--quiet", "--scheduler", address]
    flags = {"ca_file": "--tls-ca-file", "cert": "--tls-cert", "key": "--tls-key"}

    def run(authority: str) -> int:
        given = files(folder, authority, "client")
        return cli.main([*command, *(f"{flags[each]}={file}" for each, file in given.items())])

    assert run("theirs") == 1
    complaint = capsys.readouterr().err
    assert "certificate of the other side is refused" in complaint
    assert complaint.count("\n") == 1
    assert run("ours") == 0
    assert capsys.readouterr() == ("", "")
    assert target.is_dir()


# Addresses


@pytest.mark.parametrize(
    ("address", "words"),
    [("tcp://127.0.0.1:1", "Connection refused"), ("tcp://no.host.invalid:1", "not known|failure")],
)
def test_why_nobody_is_reached(address: str, words: str) -> None:
    with (
        dask.config.set({"distributed.comm.timeouts.connect": "1s"}),
        pytest.raises(SdcRuntimeError, match=words),
    ):
        connected(address)


@pytest.mark.parametrize(
    ("address", "private"),
    [
        ("tcp://127.0.0.1:8786", True),
        ("localhost:8786", True),
        ("tcp://[::1]:8786", True),
        ("tls://host:8786", True),
        ("inproc://10.0.0.1/1/1", True),
        ("tcp://host:8786", False),
        ("host:8786", False),
        ("10.0.0.1:8786", False),
        ("tcp://127.example.com:8786", False),
    ],
)
def test_private_addresses(address: str, private: bool) -> None:
    assert is_private(address) is private


def test_an_open_address_is_a_warning_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        LocalCluster(0, processes=False, dashboard_address="127.0.0.1:0") as started,
        Client(started) as client,
    ):
        warn_if_open(client)
        monkeypatch.setattr(cluster, "is_private", lambda _address: False)
        with pytest.warns(SdcWarning, match="without encryption, and whoever reaches") as warned:
            warn_if_open(client)
            warn_if_open(client)
    assert len(warned) == 1
