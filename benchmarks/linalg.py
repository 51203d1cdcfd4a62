"""Linear algebra against NumPy in the same run, on the same cores.

A row runs NumPy and the tile program by turns and takes the best of each; the ratio is
ours / NumPy's. Timing starts with a C-ordered NumPy array and ends with one. How many tiles
a side a program had is read from its events, so that a shortcut would show. Memory is
resident memory above the live inputs, sampled, in a process of its own.

Times are taken with the allocator that everybody has. A virtual machine that gives free memory back to its
host can take longer to touch a megabyte again (10 ms were measured) than the work on it takes;
`--keep-memory` measures with an allocator that keeps what is freed, on both sides.

A further row is a function that returns `Row`s, and a line in `SECTIONS`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import mmap
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Peak, Row, keep_memory, ordinary_memory, show

from linnet import linalg
from linnet.algorithms.cholesky import factor
from linnet.algorithms.eigh import TILE as EIGH_TILE
from linnet.algorithms.gemm import product
from linnet.algorithms.svd import TILE as SVD_TILE
from linnet.algorithms.tuning import tile_size
from linnet.engines import Threads
from linnet.engines.mapping import mapped_zeros, place_of
from linnet.events import Events, TileWritten
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.tiles import TiledArray

BUDGET_SHARE = 4
"""Out of core, the matrix is so many times the budget."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the problems are."""

    gemm: int = 4096
    cholesky: int = 8192
    solve: int = 5000
    qr: int = 4096
    tall: int = 1_000_000
    svd: int = 2048
    eigh: int = 3000
    out_of_core: int = 8192
    tasks: int = 100_000
    rounds: int = 5


QUICK = Sizes(
    gemm=1024, cholesky=1024, solve=1100, qr=1100, tall=20_000, svd=1100, eigh=1100,
    out_of_core=1024, tasks=10_000, rounds=2,
)  # fmt: skip


# ---- ratios --------------------------------------------------------------------------


_REST = 0.2
"""Seconds before each side: threads of BLAS go on spinning for some 50 ms after the other has used them."""


def compare(
    what: str,
    target: float,
    rounds: int,
    theirs: Callable[[], Any],
    ours: Callable[[Events], Any],
    output: str,
    flops: float | None,
) -> Row:
    """Run both by turns; `output` is the array of the program whose tiles are counted."""
    best = {"numpy": np.inf, "linnet": np.inf}
    written: dict[str, set[tuple[int, ...]]] = {}
    for _ in range(rounds):
        time.sleep(_REST)
        begun = time.perf_counter()
        theirs()
        best["numpy"] = min(best["numpy"], time.perf_counter() - begun)
        events = Events()
        events.subscribe(
            lambda event: written.setdefault(event.array, set()).add(event.index[-2:]), TileWritten
        )
        time.sleep(_REST)
        begun = time.perf_counter()
        ours(events)
        best["linnet"] = min(best["linnet"], time.perf_counter() - begun)
    ratio = best["linnet"] / best["numpy"]
    indices = written[output]
    grid = "×".join(str(max(axis) + 1) for axis in zip(*indices, strict=True))
    ours_text, theirs_text = (
        f"{best[name]:.2f} s" + (f", {flops / best[name] / 1e9:.1f} GFLOP/s" if flops else "")
        for name in ("linnet", "numpy")
    )
    measured = f"{ratio:.3f}  ({ours_text}; NumPy {theirs_text}; {grid} tiles)"
    numbers = {"ratio": ratio, **best, "tiles": len(indices)}
    return Row(what, f"≤ {target}", measured, ratio <= target, numbers)


def spd(n: int) -> np.ndarray:
    """A positive definite matrix, made without factorising anything."""
    a = np.random.default_rng(0).standard_normal((n, n))
    a += a.T
    a[np.diag_indices(n)] += 4 * n**0.5
    return a


def gemm(sizes: Sizes) -> list[Row]:
    n = sizes.gemm
    a, b = np.random.default_rng(0).standard_normal((2, n, n))
    engine, tile = Threads(), tile_size((n, n), a.dtype, "gemm")
    return [
        compare(
            f"GEMM {n}", 1.03, 3 * sizes.rounds, lambda: a @ b,
            lambda events: product(a, b, tile=tile, engine=engine, events=events), "C", 2.0 * n**3,
        )
    ]  # fmt: skip


def cholesky(sizes: Sizes) -> list[Row]:
    n = sizes.cholesky
    a = spd(n)
    engine, tile = Threads(), tile_size((n, n), a.dtype, "cholesky")
    return [
        compare(
            f"Cholesky {n}", 0.55, sizes.rounds, lambda: np.linalg.cholesky(a),
            lambda events: factor(a, tile=tile, engine=engine, events=events), "L", n**3 / 3,
        )
    ]  # fmt: skip


def solve(sizes: Sizes) -> list[Row]:
    n = sizes.solve
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((n, n)), rng.standard_normal((n, 8))
    tile = tile_size((n, n), a.dtype, "lu")
    return [
        compare(
            f"solve {n}, 8 right-hand sides", 0.95, 2 * sizes.rounds, lambda: np.linalg.solve(a, b),
            lambda events: linalg.solve(a, b, tile=tile, events=events), "S", 2 * n**3 / 3,
        )
    ]  # fmt: skip


def qr(sizes: Sizes) -> list[Row]:
    n, rows = sizes.qr, sizes.tall
    rng = np.random.default_rng(0)
    a, tall = rng.standard_normal((n, n)), rng.standard_normal((rows, 64))
    tile = tile_size((n, n), a.dtype, "qr")
    return [
        compare(
            f"QR {n} with Q", 0.65, min(sizes.rounds, 2), lambda: np.linalg.qr(a),
            lambda events: linalg.qr(a, tile=tile, events=events), "O", 8 * n**3 / 3,
        ),
        compare(
            f"QR {rows}×64 with Q", 0.25, sizes.rounds, lambda: np.linalg.qr(tall),
            lambda events: linalg.qr(tall, events=events), "O", 4.0 * rows * 64**2,
        ),
    ]  # fmt: skip


def spectra(sizes: Sizes) -> list[Row]:
    m, n, rounds = sizes.svd, sizes.eigh, min(sizes.rounds, 2)
    a = np.random.default_rng(0).standard_normal((max(m, n), max(m, n)))
    x, h = np.ascontiguousarray(a[:m, :m]), a[:n, :n] + a[:n, :n].T
    return [
        compare(
            f"SVD {m} thin, all vectors", 1.10, rounds, lambda: np.linalg.svd(x, full_matrices=False),
            lambda events: linalg.svd(x, full_matrices=False, tile=SVD_TILE, events=events), "S", None,
        ),
        compare(
            f"SVD {m}, values only", 1.0, sizes.rounds, lambda: np.linalg.svd(x, compute_uv=False),
            lambda events: linalg.svdvals(x, tile=SVD_TILE, events=events), "S", None,
        ),
        compare(
            f"eigh {n}, all vectors", 1.5, rounds, lambda: np.linalg.eigh(h),
            lambda events: linalg.eigh(h, tile=EIGH_TILE, events=events), "S", None,
        ),
        compare(
            f"eigh {n}, values only", 1.0, sizes.rounds, lambda: np.linalg.eigvalsh(h),
            lambda events: linalg.eigvalsh(h, tile=EIGH_TILE, events=events), "S", None,
        ),
    ]  # fmt: skip


def scalapack(sizes: Sizes) -> list[Row]:
    """The same four operations by ScaLAPACK on two ranks; needs its Debian packages."""
    sys.path.insert(0, str(Path(__file__).parent / "scalapack"))
    peer = importlib.import_module("peer")
    driver = peer.build()
    rng = np.random.default_rng(0)
    n, g, q = sizes.cholesky, sizes.gemm, sizes.qr
    positive, a, b, x = spd(n), *rng.standard_normal((2, g, g)), rng.standard_normal((q, q))
    square = rng.standard_normal((sizes.solve, sizes.solve))
    rows: list[Row] = []
    for what, operation, size, target, ours in (
        (
            f"Cholesky {n}",
            "potrf",
            n,
            0.95,
            lambda: factor(positive, tile=tile_size((n, n), "f8", "cholesky")),
        ),
        (f"GEMM {g}", "gemm", g, 0.95, lambda: product(a, b, tile=tile_size((g, g), "f8", "gemm"))),
        (f"QR {q} with Q", "qr", q, 1.0, lambda: linalg.qr(x, tile=tile_size((q, q), "f8", "qr"))),
        (f"LU {sizes.solve}", "getrf", sizes.solve, 1.0, lambda: linalg.lu_factor(square)),
    ):
        best = theirs = np.inf
        for _ in range(sizes.rounds):  # by turns: a machine that others share is not always as fast
            theirs = min(theirs, peer.seconds(driver, operation, size, rounds=2))
            for _ in range(2):
                begun = time.perf_counter()
                ours()
                best = min(best, time.perf_counter() - begun)
        measured = f"{best / theirs:.3f}  ({best:.2f} s; ScaLAPACK {theirs:.2f} s)"
        numbers = {"linnet": best, "scalapack": theirs}
        rows.append(
            Row(f"{what} against ScaLAPACK", f"≤ {target}", measured, best / theirs <= target, numbers)
        )
    return rows


# ---- memory --------------------------------------------------------------------------


def memory(sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for name, n, inputs in (("Cholesky", sizes.cholesky, 1), ("GEMM", sizes.gemm, 2)):
        peak = child(f"peak_{name.lower()}", n)["peak"]
        whole = 8.0 * n * n
        allowed = whole + 0.1 * (inputs + 1) * whole
        measured = f"{peak / 1e6:.0f} MB  (input {inputs * whole / 1e6:.0f} MB, output {whole / 1e6:.0f} MB)"
        target = f"≤ {allowed / 1e6:.0f} MB"
        rows.append(Row(f"memory {name} {n}", target, measured, peak <= allowed, {"peak": peak}))
    return rows


def peak_cholesky(n: int) -> dict[str, float]:
    warm()
    a, tile = spd(n), tile_size((n, n), "f8", "cholesky")
    with Peak() as peak:
        factor(a, tile=tile)
    return {"peak": peak.bytes}


def peak_gemm(n: int) -> dict[str, float]:
    warm()
    a, b = np.random.default_rng(0).standard_normal((2, n, n))
    with Peak() as peak:
        product(a, b, tile=tile_size((n, n), "f8", "gemm"))
    return {"peak": peak.bytes}


def warm() -> None:
    """Load libraries and let BLAS take its buffers."""
    factor(np.eye(1024), tile=512)
    product(np.eye(1024), np.eye(1024), tile=512)


def out_of_core(sizes: Sizes) -> list[Row]:
    n = sizes.out_of_core
    found = child("beyond_memory", n)
    share = found["in_memory"] / found["seconds"]
    budget = found["budget"]
    workers = Threads().workers
    slack = 1.1 * budget + 4e6 * workers
    return [
        Row(
            f"out of core: Cholesky {n}, {BUDGET_SHARE}× the budget", "≥ 0.5 of the rate in memory",
            f"{share:.2f}  ({found['seconds']:.2f} s; in memory {found['in_memory']:.2f} s)", share >= 0.5,
            found,
        ),
        Row(
            "its memory", f"≤ {slack / 1e6:.0f} MB",
            f"{found['peak'] / 1e6:.0f} MB  (budget {budget / 1e6:.0f} MB, matrix {8 * n * n / 1e6:.0f} MB)",
            found["peak"] <= slack, {"peak": found["peak"], "budget": budget},
        ),
    ]  # fmt: skip


def beyond_memory(n: int) -> dict[str, float]:
    """A matrix in a file to a factor in a file, within a quarter of its size; and the same in memory."""
    warm()
    a = mapped_zeros((n, n), np.float64)
    a[...] = spd(n)
    place = place_of(a)
    assert place is not None
    budget = a.nbytes // BUDGET_SHARE
    tile = min(tile_size((n, n), "f8", "cholesky"), n // 16)  # a task holds two rows of tiles
    times: dict[str, float] = {"seconds": np.inf, "in_memory": np.inf}
    peaks: list[float] = []
    for _ in range(2):
        place.owner.madvise(mmap.MADV_DONTNEED)
        factor(np.eye(512), tile=64, engine=Threads(memory=budget))
        with Peak() as peak:
            begun = time.perf_counter()
            factor(a, tile=tile, engine=Threads(memory=budget))
            times["seconds"] = min(times["seconds"], time.perf_counter() - begun)
        peaks.append(peak.bytes)
    whole = np.array(a)
    for _ in range(2):
        begun = time.perf_counter()
        factor(whole, tile=tile_size((n, n), "f8", "cholesky"))
        times["in_memory"] = min(times["in_memory"], time.perf_counter() - begun)
    return {**times, "peak": max(peaks), "budget": float(budget)}


# ---- overhead ------------------------------------------------------------------------


@kernel("bench_nothing", inplace=0)
def nothing(x: np.ndarray, *, overwrite: tuple[int, ...] = ()) -> np.ndarray:
    return x


@tile_program
def empty_tasks(A: In, B: Out, S: Temp("A"), N: int, M: int):  # type: ignore
    for i in range(M):
        for j in range(N):
            S[i + 1, j] = nothing(S[i, j])
    for j in range(N):
        B[j] = nothing(S[M, j])


def overhead(sizes: Sizes) -> list[Row]:
    """Chains of tasks that do nothing, all engine: planning, handing out, storing, dropping."""
    each: list[float] = []
    for total in (sizes.tasks // 10, sizes.tasks):
        bound = empty_tasks.bind(N=100, M=total // 100)
        best = np.inf
        for _ in range(sizes.rounds):
            a = TiledArray.from_numpy(np.zeros(100), 1)
            begun = time.perf_counter()
            Threads().run(bound, {"A": a})
            best = min(best, time.perf_counter() - begun)
        each.append(best / bound.count() * 1e6)
    small, large = each
    return [
        Row(
            f"overhead, {sizes.tasks:,} empty tasks", "≤ 15 µs a task",
            f"{large:.1f} µs  ({small:.1f} µs with a tenth of them)", large <= 15,
            {"small": small, "large": large},
        )
    ]  # fmt: skip


# ---- report --------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[Sizes], list[Row]]] = {
    "gemm": gemm,
    "cholesky": cholesky,
    "solve": solve,
    "qr": qr,
    "spectra": spectra,
    "scalapack": scalapack,
    "memory": memory,
    "out-of-core": out_of_core,
    "overhead": overhead,
}
CHILDREN: dict[str, Callable[[int], dict[str, float]]] = {
    each.__name__: each for each in (peak_cholesky, peak_gemm, beyond_memory)
}


def child(name: str, size: int) -> dict[str, float]:
    """Run one of `CHILDREN` in a process of its own."""
    command = [sys.executable, __file__, "--child", name, str(size)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=ordinary_memory())
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure linear algebra against NumPy.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="these sections only")
    parser.add_argument("--rounds", type=int, help="how often each side runs; the best counts")
    parser.add_argument("--quick", action="store_true", help="small problems: does it still run?")
    parser.add_argument("--keep-memory", action="store_true", help="with an allocator that keeps memory")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(CHILDREN[options.child[0]](int(options.child[1]))))
        return
    if options.keep_memory:
        keep_memory()
    sizes = QUICK if options.quick else Sizes()
    if options.rounds:
        sizes = Sizes(**{**asdict(sizes), "rounds": options.rounds})
    rows = [row for name in options.only or SECTIONS for row in SECTIONS[name](sizes)]
    kept = "freed memory kept" if options.keep_memory else "memory as it comes"
    show(rows, f"python benchmarks/linalg.py ({kept})", options.json)


if __name__ == "__main__":
    main()
