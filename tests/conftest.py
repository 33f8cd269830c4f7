"""Schedulers, reference data and checks that tests share."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import compiling
import dask
import numpy as np
import pandas as pd
import pytest
from distributed import Client
from hypothesis import HealthCheck, settings

from sdc_dask.kernels.mdav_few import compile_from_now_on
from sdc_dask.release.cluster import local_cluster
from sdc_dask.series import resample

# The first example of a test compiles kernels, which takes seconds: no example has a deadline.
settings.register_profile("compiled", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("compiled")

# What tests group is small, and would be grouped without the kernels that they are about.
compile_from_now_on()

EIA_COLUMNS = [
    "UTILITYID",
    *(f"{who}{what}" for who in ("RES", "COM", "IND") for what in ("REVENUE", "SALES")),
    "OTHREVENUE",
    "OTHRSALES",
    "TOTREVENUE",
    "TOTSALES",
]


@functools.cache
def _meeting() -> tempfile.TemporaryDirectory[str]:
    """Return where processes that run tests see what the others have compiled, and groups."""
    return tempfile.TemporaryDirectory()


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Tell a process that is to run tests where to meet the others."""
    node.workerinput["meeting"] = _meeting().name


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Let one process run a group of tests, whose names its processes have written down.

    The `loadgroup` of pytest-xdist appends groups to names of tests, which pytest 9.2 ignores.
    """
    if config.option.dist != "load":
        return None
    from xdist.scheduler import LoadScopeScheduling

    class Grouped(LoadScopeScheduling):
        @functools.cached_property
        def groups(self) -> dict[str, str]:
            return json.loads((Path(_meeting().name) / "groups").read_text())

        def _split_scope(self, nodeid: str) -> str:
            return self.groups.get(nodeid, nodeid)

    return Grouped(config, log)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Compile kernels once for all processes, before the first test, whose time is limited."""
    given = getattr(session.config, "workerinput", {})
    if "meeting" in given:
        compiling.compile_together(Path(given["meeting"]))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run the last case of a test on a cluster; those before it are long tests.

    A case on a cluster takes seconds, and says little that the others and threads do not. The last
    is long too, if the test says so: others take the same road. One process runs all of them in a
    row, and one those that share another cluster.

    Data that chance draws may look like a slip, which is no reason for such a test to fail.
    """
    for item in items:
        if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker(pytest.mark.filterwarnings("ignore::sdc_dask.errors.Advice"))
    by_test: dict[str, list[pytest.Item]] = {}
    for item in items:
        if _is_on_cluster(item):
            by_test.setdefault(item.nodeid.split("[")[0], []).append(item)
    for cases in by_test.values():
        all_long = cases[-1].get_closest_marker("long_on_cluster") is not None
        for item in cases if all_long else cases[:-1]:
            item.add_marker(pytest.mark.soak)
    items.sort(key=_is_on_cluster)
    if "meeting" in (given := getattr(config, "workerinput", {})):
        groups = {
            item.nodeid: item.path.stem for item in items if item.get_closest_marker("together")
        }
        groups |= {item.nodeid: "cluster" for item in items if _is_on_cluster(item)}
        written = Path(given["meeting"]) / f"groups{given['workerid']}"
        written.write_text(json.dumps(groups))
        written.replace(written.with_name("groups"))


def _is_on_cluster(item: pytest.Item) -> bool:
    params = getattr(getattr(item, "callspec", None), "params", {})
    return params.get("scheduler") == "cluster"


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the cluster after the last test on it: even one without work takes processor time."""
    if _is_on_cluster(item) and (nextitem is None or not _is_on_cluster(nextitem)):
        _close_cluster()


def pytest_sessionfinish() -> None:
    """Close the cluster if the tests ended before the last one on it."""
    _close_cluster()
    if _meeting.cache_info().currsize:
        _meeting().cleanup()


_open = contextlib.ExitStack()


@functools.cache
def _cluster() -> Client:
    return _open.enter_context(local_cluster(2, "2GiB"))


def _close_cluster() -> None:
    _cluster.cache_clear()
    _open.close()


@pytest.fixture(autouse=True)
def _threads() -> Iterator[None]:
    """Run on threads what does not ask for a cluster, even while one is open."""
    with dask.config.set({"scheduler": "threads", "dataframe.shuffle.method": "disk"}):
        yield


@pytest.fixture(params=["threads", "cluster"])
def scheduler(request: pytest.FixtureRequest) -> Iterator[str]:
    """Run a test on threads and on a cluster of two processes."""
    if request.param == "threads":
        yield "threads"
    else:
        defaults = {"scheduler": None, "dataframe.shuffle.method": None}
        with dask.config.set(defaults), _cluster().as_current():
            yield "cluster"


@pytest.fixture(scope="session")
def reference() -> Callable[[str], pd.DataFrame]:
    """Read a public reference data set, or skip where it is not at hand."""
    folder = Path(os.environ.get("SDC_DASK_DATA", Path(__file__).parents[2] / "shared" / "data"))

    def read(name: str) -> pd.DataFrame:
        path = folder / f"{name}.csv"
        if not path.exists():
            pytest.skip(f"reference data {path.name} not found: set SDC_DASK_DATA to its folder")
        return pd.read_csv(path)

    return read


@pytest.fixture(scope="session")
def eia(reference: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The EIA data, its eleven columns."""
    return reference("casc_eia")[EIA_COLUMNS]


@pytest.fixture(scope="session")
def census(reference: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The Census data, all thirteen columns."""
    return reference("casc_census")


@pytest.fixture(scope="session")
def m3(reference: Callable[[str], pd.DataFrame]) -> pd.DataFrame:
    """The series of the M3 competition, at ten times each."""
    found = reference("m3_series").groupby("series_id", sort=False)["value"]
    values = resample([series.to_numpy() for _, series in found], 10)
    return pd.DataFrame(values, columns=[f"t{j}" for j in range(10)])


@pytest.fixture(scope="session")
def smallest_class() -> Callable[..., int]:
    """Count classes of equal records with pandas alone."""

    def smallest(frame: pd.DataFrame, columns: list) -> int:
        return int(frame.groupby(columns, dropna=False, observed=True).size().min())

    return smallest


@pytest.fixture(scope="session")
def standardized_sse() -> Callable[..., float]:
    """Compute SSE with pandas alone."""

    def sse(original: pd.DataFrame, masked: pd.DataFrame) -> float:
        scale = original.std(ddof=0).replace(0, 1)
        return float((((original - masked) / scale) ** 2).sum().sum())

    return sse


@pytest.fixture
def tied() -> pd.DataFrame:
    """Data with many ties, in columns of several kinds."""
    rng = np.random.default_rng(5)
    n = 3_000
    return pd.DataFrame(
        {
            "age": rng.integers(16, 40, n),
            "hours": rng.choice([0.0, 20.0, 37.5, 40.0], n),
            "income": np.round(rng.lognormal(8, 1, n), -2),
            "region": rng.choice(["north", "south", "east"], n),
        }
    )
