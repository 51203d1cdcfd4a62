"""Measures Ray and Dask as engines: what moves between nodes, what is held there, what a task costs.

    python benchmarks/clusters.py [--only ray dask] [--json FILE] [--quick]

Clusters are started on this machine: four Ray nodes with a store each, four Dask workers. Bytes are those
that Ray and Dask say were moved. Times say little about real clusters: all nodes share one machine here.
"""

from __future__ import annotations

import argparse
import os
import threading
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
from linnet.engines.driving_engine import Driven
from linnet.testing import kernels as programs
from linnet.tiles import TiledArray

NODES = 4
CLOSE = 0.05
LESS = 2.0


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
    cluster = Cluster(initialize_head=True, head_node_args={**each, "include_dashboard": False})
    try:
        for _ in range(count - 1):
            cluster.add_node(**each)
        ray.init(address=cluster.address, logging_level="ERROR", log_to_driver=False)
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
        plan = engine.planned(bound, inputs)
        assert plan is not None
        engine.moved()
        engine.run(bound, inputs)
        found = sum(engine.moved())
        off = abs(found - plan.bytes_moved) / plan.bytes_moved
        told = f"{found / 1e6:.1f} MB, planned {plan.bytes_moved / 1e6:.1f} MB by {plan.policy}"
        what = f"{name}, {NODES} nodes: bytes of a {what} of {side // 512}×{side // 512} tiles of 2 MB"
        measured = {"bytes": found, "planned": plan.bytes_moved}
        rows.append(Row(what, f"within {CLOSE:.0%}", told, off <= CLOSE, measured))
    return rows


def newton(x: Any, y: Any, beta: Any) -> Any:
    """Gradient and Hessian of logistic regression."""
    mean = 1 / (1 + ln.exp(-(x @ beta)))
    return x.T @ (mean - y), x.T @ (x * (mean * (1 - mean))[:, None])


def newton_steps(
    name: str, engine: Callable[[str], Driven], rows_of_x: int, most: Callable[[], Any]
) -> list[Row]:
    """A step of Newton's method, planned and as the engine places it."""
    measured: dict[str, Any] = {}
    for policy in ("auto", "engine"):
        with ln.init(engine=engine(policy)) as session:
            rng = ln.random.default_rng(0)
            x = rng.standard_normal((rows_of_x, 256), chunks=(4096, 256)).persist()
            y = (x[:, 0] > 0).astype(float).persist()
            beta = ln.zeros(256, chunks=256)
            ln.compute(*newton(x, y, beta))
            session.engine.moved()
            with most() as peak:
                start = time.perf_counter()
                ln.compute(*newton(x, y, beta))
                seconds = time.perf_counter() - start
            measured[policy] = {"bytes": sum(session.engine.moved()), "peak": peak.bytes, "seconds": seconds}
            del x, y
    planned, own = measured["auto"], measured["engine"]
    less = own["bytes"] / max(planned["bytes"], 1)
    told = f"{planned['bytes'] / 1e6:.1f} MB, else {own['bytes'] / 1e6:.1f} MB: {less:.1f} times less"
    what = f"{name}, {NODES} nodes: bytes of a Newton step, {rows_of_x:,} × 256, against its own placing"
    rows = [Row(what, f"≥ {LESS:.0f} times less", told, less >= LESS, measured)]
    if planned["peak"] is not None:
        ratio = own["peak"] / max(planned["peak"], 1)
        told = f"{planned['peak'] / 1e6:.1f} MB, else {own['peak'] / 1e6:.1f} MB: {ratio:.1f} times less"
        what = f"{name}: most that a store held more than before, the same step"
        rows.append(Row(what, f"≥ {LESS:.0f} times less", told, ratio >= LESS, {}))
    return rows


class Stores:
    """The most that any store of Ray held above what it held before, looked up again and again."""

    bytes: int | None = None

    def __enter__(self) -> Stores:
        self._before = self._used()
        self.bytes = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def _watch(self) -> None:
        while not self._over.wait(0.01):
            used = self._used()
            more = [used[node] - self._before.get(node, 0) for node in used]
            self.bytes = max(self.bytes or 0, int(max(more)))

    @staticmethod
    def _used() -> dict[str, float]:
        from ray._private.state import available_resources_per_node, total_resources_per_node

        free, total = available_resources_per_node(), total_resources_per_node()
        key = "object_store_memory"
        return {
            node: total[node][key] - free[node].get(key, 0) for node in free if key in total.get(node, {})
        }

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()


class Unwatched:
    """Where nobody tells how much a store holds."""

    bytes: int | None = None

    def __enter__(self) -> Unwatched:
        return self

    def __exit__(self, *error: object) -> None:
        pass


def timed(run: Callable[[], object], rounds: int = 2) -> float:
    best = float("inf")
    for _ in range(rounds):
        start = time.perf_counter()
        run()
        best = min(best, time.perf_counter() - start)
    return best


def overhead(name: str, engine: Driven, side: int) -> list[Row]:
    """One node with a worker for each core, against threads."""
    rows: list[Row] = []
    cores = os.cpu_count() or 1
    cases = {"GEMM": (product, side), "Cholesky": (factor, 2 * side)}
    for what, (case, size) in cases.items():
        bound, inputs = case(size, 512)
        threads = timed(lambda bound=bound, inputs=inputs: Threads(cores).run(bound, inputs))
        seconds = timed(lambda bound=bound, inputs=inputs: engine.run(bound, inputs))
        tasks = bound.count()
        cost = (seconds - threads) * cores / tasks
        told = (
            f"{seconds / threads:.2f} ({seconds:.2f} s, threads {threads:.2f} s; {cost * 1e3:.1f} ms a task)"
        )
        row = Row(
            f"{name}, one node: {what} {size} against threads",
            "–",
            told,
            None,
            {"seconds": seconds, "threads": threads},
        )
        rows.append(row)
    count = 2000
    bound = programs.chain.bind(N=count // 20, M=19)
    inputs = {"A": TiledArray.from_numpy(np.zeros(count // 20), 1)}
    seconds = timed(lambda: engine.run(bound, inputs))
    told = f"{seconds / count * 1e6:.0f} µs a task"
    rows.append(Row(f"{name}, one node: {count:,} empty tasks", "–", told, None, {"seconds": seconds}))
    return rows


def main() -> None:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--only", nargs="+", choices=list(STARTED), default=list(STARTED))
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--quick", action="store_true", help="small arrays: does it still run?")
    options = parser.parse_args()
    side, length = (2048, 65_536) if options.quick else (4096, 262_144)
    rows: list[Row] = []
    for name in options.only:
        with STARTED[name](NODES, 1, 10**9) as engine:
            rows += moved(name, engine("auto"), side)
            rows += newton_steps(name, engine, length, Stores if name == "ray" else Unwatched)
        with STARTED[name](1, os.cpu_count() or 1, 4 * 10**9) as engine:
            rows += overhead(name, engine("auto"), side)
    show(rows, "clusters", options.json)


if __name__ == "__main__":
    main()
