"""Linear algebra as users type it against NumPy and MKL in the same run, on the same cores.

`(a @ b).compute()`, `ln.linalg.f(A).compute()` and `ln.compute(ln.linalg.qr(A))`, where `A = ln.asarray(a)`,
are measured beside NumPy, beside the same functions on NumPy's own arrays, and beside MKL where the package
`mkl` is installed (`pip install -r benchmarks/requirements.txt`). Each side is a process of its own
(`cases.py`); they take turns, and the best of each counts. Timing starts with a C-ordered array and ends
with one. How many tasks a program has is shown, so that a shortcut would show. Memory is resident memory
above the live inputs, sampled, in a process of its own.

Times are taken with the allocator that everybody has. A virtual machine that gives free memory back to its
host can take longer to touch a megabyte again (10 ms were measured) than the work on it takes;
`--keep-memory` measures with an allocator that keeps what is freed, on all sides.

A further row is a function that returns `Row`s, and a line in `SECTIONS`.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import mmap
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import mkl_peer
import numpy as np
from cases import CASES, Side, agree, serve, spd
from measuring import Peak, Row, keep_memory, ordinary_memory, show

import linnet as ln
from linnet.arrays.lowering.evaluate import Arrays
from linnet.engines import Threads
from linnet.engines.mapped_tiles import mapped_zeros, place_of
from linnet.kernels import kernel
from linnet.programs import In, Out, Temp, tile_program
from linnet.session import current_engine
from linnet.session.work import Setting
from linnet.tiles import TiledArray

BUDGET_SHARE = 4
"""Out of core, the matrix is so many times the budget."""
SAME = 1.03
"""What users type may take so many times as long as the same on NumPy's arrays."""


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

    def scaled(self, factor: float) -> Sizes:
        """Problems that many times as long; as many rounds."""
        made = {name: max(1, round(value * factor)) for name, value in asdict(self).items()}
        return Sizes(**{**made, "rounds": self.rounds})


QUICK = Sizes(
    gemm=1024, cholesky=1024, solve=1100, qr=1100, tall=20_000, svd=1100, eigh=1100,
    out_of_core=1024, tasks=10_000, rounds=2,
)  # fmt: skip


# ---- ratios --------------------------------------------------------------------------


def compare(
    what: str, case: str, size: int, rounds: int, target: float, by_mkl: float | None = None
) -> list[Row]:
    """All sides of a case by turns: a row for each that what users type is compared with."""
    names = ["lazy", "ndarray", "numpy"]
    if by_mkl is not None:
        if mkl_peer.library() is None:
            print(f"{what} against MKL: left out, the package mkl is not installed", file=sys.stderr)
        else:
            names.append("mkl")
    with ExitStack() as open_sides:
        sides = {name: open_sides.enter_context(Side(case, name, size)) for name in names}
        for _ in range(rounds):
            for side in sides.values():
                side.turn()
        agree(list(sides.values()))
    rows = [_ratio(what, case, size, sides["lazy"], sides["numpy"], "NumPy", target)]
    if by_mkl is not None and "mkl" in sides:
        rows.append(_ratio(what, case, size, sides["lazy"], sides["mkl"], "MKL", by_mkl))
    rows.append(_ratio(what, case, size, sides["lazy"], sides["ndarray"], "NumPy's arrays", SAME))
    return rows


def _ratio(what: str, case: str, size: int, ours: Side, theirs: Side, other: str, target: float) -> Row:
    flops = CASES[case].flops
    texts = [
        f"{side.best:.2f} s" + (f", {flops(size) / side.best / 1e9:.1f} GFLOP/s" if flops else "")
        for side in (ours, theirs)
    ]
    ratio = ours.best / theirs.best
    measured = f"{ratio:.3f}  ({texts[0]}; {other} {texts[1]}; {ours.tasks} tasks)"
    numbers = {"ratio": ratio, "linnet": ours.best, "other": theirs.best, "tasks": ours.tasks}
    return Row(f"{what} against {other}", f"≤ {target}", measured, ratio <= target, numbers)


def gemm(sizes: Sizes) -> list[Row]:
    return compare(f"GEMM {sizes.gemm}", "gemm", sizes.gemm, 3 * sizes.rounds, 1.03, 1.0)


def cholesky(sizes: Sizes) -> list[Row]:
    return compare(f"Cholesky {sizes.cholesky}", "cholesky", sizes.cholesky, sizes.rounds, 0.55, 0.95)


def solve(sizes: Sizes) -> list[Row]:
    what = f"solve {sizes.solve}, 8 right-hand sides"
    return compare(what, "solve", sizes.solve, 2 * sizes.rounds, 0.95, 1.0)


def qr(sizes: Sizes) -> list[Row]:
    rounds = max(3, sizes.rounds - 2)
    return [
        *compare(f"QR {sizes.qr} with Q", "qr", sizes.qr, rounds, 0.65, 0.95),
        *compare(f"QR {sizes.tall}×64 with Q", "tall", sizes.tall, sizes.rounds, 0.2),
    ]


def spectra(sizes: Sizes) -> list[Row]:
    m, n, rounds = sizes.svd, sizes.eigh, max(3, sizes.rounds - 2)
    return [
        *compare(f"SVD {m} thin, all vectors", "svd", m, rounds, 1.0, 0.95),
        *compare(f"SVD {m}, values only", "svdvals", m, sizes.rounds, 1.0),
        *compare(f"eigh {n}, all vectors", "eigh", n, rounds, 1.3, 0.95),
        *compare(f"eigh {n}, values only", "eigvalsh", n, sizes.rounds, 1.0),
    ]


def scalapack(sizes: Sizes) -> list[Row]:
    """Four operations by ScaLAPACK on two ranks; needs its Debian packages."""
    sys.path.insert(0, str(Path(__file__).parent / "scalapack"))
    peer = importlib.import_module("peer")
    try:
        driver = peer.build()
    except SystemExit as reason:
        print(f"against ScaLAPACK: left out, {reason}", file=sys.stderr)
        return []
    rows: list[Row] = []
    for what, case, operation, size, target in (
        (f"Cholesky {sizes.cholesky}", "cholesky", "potrf", sizes.cholesky, 0.95),
        (f"GEMM {sizes.gemm}", "gemm", "gemm", sizes.gemm, 0.95),
        (f"QR {sizes.qr} with Q", "qr", "qr", sizes.qr, 1.0),
        (f"LU {sizes.solve}", "lu", "getrf", sizes.solve, 1.0),
    ):
        theirs = np.inf
        with Side(case, "lazy", size) as ours:
            for _ in range(sizes.rounds):  # by turns: a machine that others share is not always as fast
                theirs = min(theirs, peer.seconds(driver, operation, size, rounds=2))
                ours.turn()
                ours.turn()
        ratio = ours.best / theirs
        measured = f"{ratio:.3f}  ({ours.best:.2f} s; ScaLAPACK {theirs:.2f} s)"
        numbers = {"linnet": ours.best, "scalapack": theirs}
        rows.append(Row(f"{what} against ScaLAPACK", f"≤ {target}", measured, ratio <= target, numbers))
    return rows


# ---- memory --------------------------------------------------------------------------


def memory(sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for name, n, inputs, slack in (("Cholesky", sizes.cholesky, 1, 0.1), ("GEMM", sizes.gemm, 2, 0.3)):
        peak = child(f"peak_{name.lower()}", n)["peak"]
        whole = 8.0 * n * n
        allowed = (1 + slack) * whole
        measured = f"{peak / 1e6:.0f} MB  (input {inputs * whole / 1e6:.0f} MB, output {whole / 1e6:.0f} MB)"
        target = f"≤ {allowed / 1e6:.0f} MB"
        rows.append(Row(f"memory {name} {n}", target, measured, peak <= allowed, {"peak": peak}))
    return rows


def peak_cholesky(n: int) -> dict[str, float]:
    warm()
    a = ln.asarray(spd(n))
    with Peak() as peak:
        ln.linalg.cholesky(a).compute()
    return {"peak": peak.bytes}


def peak_gemm(n: int) -> dict[str, float]:
    warm()
    rng = np.random.default_rng(0)
    a, b = (ln.asarray(rng.standard_normal((n, n))) for _ in range(2))
    with Peak() as peak:
        (a @ b).compute()
    return {"peak": peak.bytes}


def warm() -> None:
    """Load libraries and let BLAS take its buffers."""
    small = ln.asarray(np.eye(1024))
    ln.linalg.cholesky(small, tile=512).compute()
    ln.linalg.matmul(small, small, tile=512).compute()


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
    times: dict[str, float] = {"seconds": np.inf, "in_memory": np.inf}
    peaks: list[float] = []
    for _ in range(2):
        place.owner.madvise(mmap.MADV_DONTNEED)
        with ln.init(memory=budget):
            ln.linalg.cholesky(ln.asarray(np.eye(512)), tile=64).compute()
            with Peak() as peak:
                begun = time.perf_counter()
                ln.linalg.cholesky(ln.asarray(a)).compute()
                times["seconds"] = min(times["seconds"], time.perf_counter() - begun)
        peaks.append(peak.bytes)
    whole = ln.asarray(np.array(a))
    for _ in range(2):
        begun = time.perf_counter()
        ln.linalg.cholesky(whole).compute()
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


def composing(sizes: Sizes) -> list[Row]:
    """`cholesky(x.T @ x + eye)` to a bound program: a structure that is new to the process, and once more."""
    _lowering(250)  # from here on the process is warm: isl is loaded, kernels are known
    first = again = np.inf
    for chunk in range(200, 200 + 8 * sizes.rounds, 8):
        first, again = min(first, _lowering(chunk)), min(again, _lowering(chunk))
    what = "composing and binding cholesky(x.T @ x + eye)"
    return [
        Row(what, "≤ 30 ms", f"{first * 1e3:.1f} ms", first <= 0.03, {"seconds": first}),
        Row(f"{what} again", "≤ 1 ms", f"{again * 1e3:.2f} ms", again <= 0.001, {"seconds": again}),
    ]


def _lowering(chunk: int) -> float:
    """Seconds from an expression on new data, in tiles of this side, to its program."""
    x = ln.asarray(np.zeros((4000, 2000)), chunks=chunk)
    made = ln.linalg.cholesky(x.T @ x + ln.eye(2000, chunks=chunk))
    begun = time.perf_counter()
    Arrays([made.__node__]).lowered(Setting.of(current_engine()))
    return time.perf_counter() - begun


def small(sizes: Sizes) -> list[Row]:
    """What `compute` of small matrices takes beyond NumPy's function, of one result and of several."""
    rng = np.random.default_rng(0)
    square, side = rng.standard_normal((10, 10)) + 10 * np.eye(10), rng.standard_normal(10)
    positive = square @ square.T
    taken: dict[str, tuple[np.ndarray, ...]] = {
        "cholesky": (positive,), "solve": (square, side), "inv": (square,), "det": (square,),
        "slogdet": (square,), "qr": (square,), "svd": (square,), "svdvals": (square,), "pinv": (square,),
        "eigh": (positive,), "eigvalsh": (positive,), "eig": (square,), "eigvals": (square,),
        "lstsq": (square, side), "matrix_rank": (square,), "cond": (square,), "norm": (square,),
    }  # fmt: skip
    rows: list[Row] = []
    for name, given in taken.items():
        theirs, function = getattr(np.linalg, name), getattr(ln.linalg, name)
        arrays = tuple(map(ln.asarray, given))
        plain, lazy = _microseconds(
            functools.partial(theirs, *given), lambda f=function, x=arrays: ln.compute(f(*x))
        )
        beyond = lazy - plain
        measured = f"{beyond:.1f} µs  ({lazy:.1f} µs; NumPy {plain:.1f} µs)"
        numbers = {"linnet": lazy, "numpy": plain}
        rows.append(
            Row(f"{name} 10×10, compute() beyond NumPy's", "≤ 10 µs", measured, beyond <= 10, numbers)
        )
    return rows


def _microseconds(*calls: Callable[[], Any]) -> list[float]:
    """Of each call, the least of many averages of a few, by turns."""
    best = [np.inf] * len(calls)
    for _ in range(200):
        for number, call in enumerate(calls):
            begun = time.perf_counter()
            for _ in range(50):
                call()
            best[number] = min(best[number], (time.perf_counter() - begun) / 50)
    return [each * 1e6 for each in best]


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
    "composing": composing,
    "small": small,
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
    parser = argparse.ArgumentParser(description="Measure linear algebra against NumPy, MKL and ScaLAPACK.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="these sections only")
    parser.add_argument("--rounds", type=int, help="how often each side runs; the best counts")
    parser.add_argument("--scale", type=float, help="problems so many times as long, such as 0.3")
    parser.add_argument("--quick", action="store_true", help="small problems: does it still run?")
    parser.add_argument("--keep-memory", action="store_true", help="with an allocator that keeps memory")
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--side", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(CHILDREN[options.child[0]](int(options.child[1]))))
        return
    if options.side:
        serve(options.side[0], options.side[1], int(options.side[2]))
        return
    if options.keep_memory:
        keep_memory()
    sizes = QUICK if options.quick else Sizes()
    if options.scale:
        sizes = sizes.scaled(options.scale)
    if options.rounds:
        sizes = replace(sizes, rounds=options.rounds)
    rows = [row for name in options.only or SECTIONS for row in SECTIONS[name](sizes)]
    kept = "freed memory kept" if options.keep_memory else "memory as it comes"
    show(rows, f"python benchmarks/linalg.py ({kept})", options.json)


if __name__ == "__main__":
    main()
