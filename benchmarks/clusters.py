"""Measures Ray, Dask and MPI as engines: what moves between nodes, what is held there, what a task costs.

    python benchmarks/clusters.py [--only ray dask mpi] [--json FILE] [--quick]

Clusters are started on this machine: four Ray nodes with a store each, four Dask workers, two ranks. Bytes
are those that Ray and Dask say were moved. Memory of a Ray node is what the pages of its store take, copies
of tiles from other nodes included; Ray is told to free at once what nobody needs, not once in a second, so
that what is held is what is needed. Times say little about real clusters: all nodes share one machine here.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln
from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.gemm import accumulated_gemm
from linnet.engines import Threads
from linnet.engines.driven.engine import Driven
from linnet.session import current_engine
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray

NODES = 4
CLOSE = 0.05
LESS = 2.0
TASKS = 2000


@contextmanager
def ray_nodes(count: int, workers: int, store: int) -> Iterator[Callable[[str], Driven]]:
    """Nodes of Ray, and how to make an engine on them."""
    os.environ.update(
        RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0",
        RAY_AUTH_MODE="disabled",
        RAY_USAGE_STATS_ENABLED="0",
        RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO="0",
    )
    import ray
    from ray.cluster_utils import Cluster

    from linnet.engines.ray import Ray

    each = {"num_cpus": workers, "object_store_memory": store}
    settings = {"include_dashboard": False, "_system_config": {"free_objects_period_milliseconds": 20}}
    cluster = Cluster(initialize_head=True, head_node_args={**each, **settings})
    try:
        for _ in range(count - 1):
            cluster.add_node(**each)
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
        global stores
        stores = [node.all_processes["raylet"][0].process.pid for node in cluster.list_all_nodes()]
        yield lambda policy: Ray(policy=policy)
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def dask_nodes(count: int, workers: int, store: int) -> Iterator[Callable[[str], Driven]]:
    """Workers of Dask, and how to make an engine on them."""
    from distributed import Client, LocalCluster

    from linnet.engines.dask import Dask

    with (
        LocalCluster(
            n_workers=count,
            threads_per_worker=workers,
            memory_limit=store,
            host="127.0.0.1",
            dashboard_address="127.0.0.1:0",
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield lambda policy: Dask(client=client, policy=policy)


STARTED = {"ray": ray_nodes, "dask": dask_nodes}
stores: list[int] = []
"""Processes that have the stores of the Ray cluster which runs now."""


def held() -> list[int]:
    """Bytes of the pages that each store of Ray takes, and has ever taken."""
    found: list[int] = []
    for process in stores:
        files: dict[int, int] = {}
        for each in Path(f"/proc/{process}/fd").iterdir():
            if "plasma" in os.readlink(each):
                status = each.stat()
                files[status.st_ino] = status.st_blocks * 512
        found.append(sum(files.values()))
    return found


def numbers(side: int, tile: int, seed: int = 0) -> TiledArray:
    return TiledArray.from_numpy(np.random.default_rng(seed).standard_normal((side, side)), tile)


def product(side: int, tile: int) -> tuple[Any, dict[str, TiledArray]]:
    n = side // tile
    inputs = {"A": numbers(side, tile), "B": numbers(side, tile, seed=1)}
    return accumulated_gemm.bind(M=n, N=n, K=n), inputs


def factor(side: int, tile: int) -> tuple[Any, dict[str, TiledArray]]:
    a = numbers(side, tile).to_numpy()
    spd = a + a.T + 4 * side**0.5 * np.eye(side)
    return cholesky.bind(N=side // tile), {"A": TiledArray.from_numpy(spd, tile)}


def moved(name: str, engine: Driven, side: int) -> list[Row]:
    """Bytes that were moved, against the plan."""
    rows: list[Row] = []
    for what, (bound, inputs) in (("product", product(side, 512)), ("Cholesky", factor(side, 512))):
        plan = engine.plan(bound, inputs)
        assert plan is not None
        engine.moved()
        before = held() if name == "ray" and not rows else []
        engine.run(bound, inputs)
        found = sum(engine.moved())
        off = abs(found - plan.bytes_moved) / plan.bytes_moved
        told = f"{found / 1e6:.1f} MB, planned {plan.bytes_moved / 1e6:.1f} MB by {plan.policy}"
        what = f"{name}, {NODES} nodes: bytes of a {what} of {side // 512}×{side // 512} tiles of 2 MB"
        measured = {"bytes": found, "planned": plan.bytes_moved}
        rows.append(Row(what, f"within {CLOSE:.0%}", told, off <= CLOSE, measured))
        if before:
            most = max(now - then for now, then in zip(held(), before, strict=True))
            peak = int(plan.peak_memory.max())
            told = f"{most / 1e6:.0f} MB, planned {peak / 1e6:.0f} MB"
            numbers = {"held": most, "planned": peak}
            rows.append(Row(f"{name}: most that a store took for it", "told", told, None, numbers))
    return rows


def newton(x: Any, y: Any, beta: Any) -> Any:
    """Gradient and Hessian of logistic regression."""
    mean = 1 / (1 + ln.exp(-(x @ beta)))
    return x.T @ (mean - y), x.T @ (x * (mean * (1 - mean))[:, None])


def newton_steps(name: str, rows_of_x: int) -> list[Row]:
    """Steps of Newton's method, planned and as the engine places them, each on a cluster of its own."""
    measured: dict[str, Any] = {}
    for policy in ("auto", "engine"):
        with STARTED[name](NODES, 1, 10**9) as engine, ln.init(engine=engine(policy)) as session:
            rng = ln.random.default_rng(0)
            x = rng.standard_normal((rows_of_x, 256), chunks=(4096, 256)).persist()
            y = (x[:, 0] > 0).astype(float).persist()
            beta = ln.zeros(256, chunks=256)
            before = held() if name == "ray" else []
            ln.compute(*newton(x, y, beta))
            session.engine.moved()
            start = time.perf_counter()
            ln.compute(*newton(x, y, beta))
            seconds = time.perf_counter() - start
            more = [now - then for now, then in zip(held(), before, strict=True)] if before else None
            measured[policy] = {"bytes": sum(session.engine.moved()), "more": more, "seconds": seconds}
            del x, y
    planned, own = measured["auto"], measured["engine"]
    less = own["bytes"] / max(planned["bytes"], 1)
    told = f"{planned['bytes'] / 1e6:.1f} MB, else {own['bytes'] / 1e6:.1f} MB: {less:.1f} times less"
    what = f"{name}, {NODES} nodes: bytes of a Newton step, {rows_of_x:,} × 256, against its own placing"
    rows = [Row(what, f"≥ {LESS:.0f} times less", told, less >= LESS, measured)]
    if planned["more"]:
        most = {policy: max(measured[policy]["more"]) for policy in measured}
        ratio = most["engine"] / max(most["auto"], 1)
        told = f"{most['auto'] / 1e6:.1f} MB, else {most['engine'] / 1e6:.1f} MB: {ratio:.1f} times less"
        what = f"{name}: most that a store took in two such steps, above the arrays they read"
        rows.append(Row(what, f"≥ {LESS:.0f} times less", told, ratio >= LESS, {}))
    return rows


def timed(run: Callable[[], object], rounds: int = 2) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def cases(side: int) -> dict[str, tuple[Any, dict[str, TiledArray]]]:
    """What engines are compared with threads by."""
    return {f"GEMM {side}": product(side, 512), f"Cholesky {2 * side}": factor(2 * side, 512)}


def empty_tasks() -> tuple[Any, dict[str, TiledArray]]:
    """Many tasks that do nothing."""
    inputs = {"A": TiledArray.from_numpy(np.zeros(TASKS // 20), 1)}
    return programs.chain.bind(N=TASKS // 20, M=19), inputs


def seconds_of(engine: Any, side: int) -> dict[str, float]:
    """What runs take: each case, and the empty tasks."""
    every = {**cases(side), "empty": empty_tasks()}
    return {
        what: timed(lambda bound=bound, inputs=inputs: engine.run(bound, inputs))
        for what, (bound, inputs) in every.items()
    }


def overhead(name: str, found: dict[str, float], side: int) -> list[Row]:
    """One node with a worker for each core, against threads."""
    rows: list[Row] = []
    cores = os.cpu_count() or 1
    for what, (bound, inputs) in cases(side).items():
        threads = timed(lambda bound=bound, inputs=inputs: Threads(cores).run(bound, inputs))
        cost = (found[what] - threads) * cores / bound.count()
        told = (
            f"{found[what] / threads:.2f} ({found[what]:.2f} s, threads {threads:.2f} s; "
            f"{cost * 1e3:.1f} ms a task)"
        )
        numbers = {"seconds": found[what], "threads": threads}
        rows.append(Row(f"{name}, {cores} workers: {what} against threads", "–", told, None, numbers))
    told = f"{found['empty'] / TASKS * 1e6:.0f} µs a task"
    rows.append(Row(f"{name}, {cores} workers: {TASKS:,} empty tasks", "–", told, None, {}))
    return rows


def on_ranks(side: int) -> dict[str, float]:
    """What runs take on as many ranks of MPI as there are cores."""
    ranks = str(os.cpu_count() or 1)
    command = [Path(sys.executable).with_name("mpiexec"), "-n", ranks, sys.executable, "-m", "linnet", "run"]
    done = subprocess.run(
        [*map(str, command), __file__, "--rank", str(side)], check=True, capture_output=True, text=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=[*STARTED, "mpi"], default=[*STARTED, "mpi"])
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--quick", action="store_true", help="small arrays: does it still run?")
    parser.add_argument("--rank", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.rank:
        print(json.dumps(seconds_of(current_engine(), options.rank)))
        return
    side, length = (2048, 65_536) if options.quick else (4096, 262_144)
    rows: list[Row] = []
    for name in options.only:
        if name == "mpi":
            rows += overhead(name, on_ranks(side), side)
            continue
        with STARTED[name](NODES, 1, 10**9) as engine:
            rows += moved(name, engine("auto"), side)
        rows += newton_steps(name, length)
        with STARTED[name](1, os.cpu_count() or 1, 4 * 10**9) as engine:
            found = seconds_of(engine("auto"), side)
        rows += overhead(name, found, side)
    show(rows, "clusters", options.json)


if __name__ == "__main__":
    main()
