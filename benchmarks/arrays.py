"""Arrays against NumPy in the same run, on the same cores.

A row runs NumPy and Linnet by turns, each on the same NumPy arrays, from these to NumPy's result;
the ratio is ours / NumPy's. Rows under a second take the median of many turns on fresh data,
because the first touch of memory swings widely; longer ones the best. Memory is resident memory above
the live inputs, sampled in a process of its own.

Times are taken with an allocator that keeps what is freed, on both sides: a virtual machine that
hands free memory back to its host takes longer to touch it again than the work on it takes.
`--fresh-memory` measures with the allocator as it is.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Peak, Row, keep_memory, ordinary_memory, show

import linnet as ln


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the problems are."""

    long: int = 100_000_000
    tall: int = 2_000_000
    cube: int = 400
    rank: int = 100
    chunks: int = 10_000
    rounds: int = 7


QUICK = Sizes(long=2_000_000, tall=100_000, cube=60, rank=20, chunks=1_000, rounds=3)

Case = tuple[Callable[..., Any], Callable[..., Any], Callable[[int], tuple[Any, ...]]]


def chain(x: Any) -> Any:
    return np.sin(x) * 2 + x**2 - 1 / (1 + np.exp(-x))


def standardised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def compare(what: str, target: float, rounds: int, case: Case, *, each: float | None = None) -> Row:
    """Run both by turns on fresh data; `each` divides the time where it is told per piece."""
    theirs, ours, data = case
    times: dict[str, list[float]] = {"numpy": [], "linnet": []}
    for turn in range(rounds):
        given = data(turn)
        for name, run in (("numpy", theirs), ("linnet", ours)):
            gc.collect()
            begun = time.perf_counter()
            result = run(*given)
            times[name].append(time.perf_counter() - begun)
            del result
    take = statistics.median if statistics.median(times["numpy"]) < 1 else min
    numpy, linnet = take(times["numpy"]), take(times["linnet"])
    if each is not None:
        measured = linnet / each * 1e6
        text = f"{measured:.1f} µs"
        return Row(what, f"≤ {target:g} µs", text, measured <= target, {"microseconds": measured})
    ratio = linnet / numpy
    text = f"{ratio:.3f}  ({linnet:.3f} s; NumPy {numpy:.3f} s)"
    return Row(what, f"≤ {target}", text, ratio <= target, {"ratio": ratio, "numpy": numpy, "linnet": linnet})


def _normal(*shapes: tuple[int, ...]) -> Callable[[int], tuple[Any, ...]]:
    return lambda turn: tuple(
        np.random.default_rng((turn, k)).standard_normal(s) for k, s in enumerate(shapes)
    )


def element_wise(sizes: Sizes) -> list[Row]:
    """Chains and sums of them: work of ufuncs on two cores, memory once."""
    data = _normal((sizes.long,))
    pair = _normal((sizes.long,), (sizes.long,))
    few = max(2, sizes.rounds // 2)
    return [
        compare(
            "sin(x)*2 + x**2 - 1/(1+exp(-x))",
            0.42,
            few,
            (chain, lambda x: chain(ln.asarray(x)).compute(), data),
        ),
        compare(
            "the same, summed",
            0.32,
            few,
            (lambda x: chain(x).sum(), lambda x: float(chain(ln.asarray(x)).sum()), data),
        ),
        compare(
            "2.5*x + y",
            0.85,
            sizes.rounds,
            (lambda x, y: 2.5 * x + y, lambda x, y: (2.5 * ln.asarray(x) + ln.asarray(y)).compute(), pair),
        ),
    ]


def columns(sizes: Sizes) -> list[Row]:
    """Statistics of columns."""
    return [
        compare(
            "standardise columns, N × 50",
            0.50,
            sizes.rounds,
            (standardised, lambda x: standardised(ln.asarray(x)).compute(), _normal((sizes.tall, 50))),
        )
    ]


def contractions(sizes: Sizes) -> list[Row]:
    """Products."""
    cube, rank = sizes.cube, sizes.rank
    spec = "ijk,jr,kr->ir"

    def gram(x: Any) -> Any:
        y = ln.asarray(x)
        return (y.T @ y).compute()

    return [
        compare("x.T @ x, N × 64", 1.0, sizes.rounds, (lambda x: x.T @ x, gram, _normal((sizes.tall, 64)))),
        compare(
            f"MTTKRP {cube}³, rank {rank}",
            0.9,
            sizes.rounds,
            (
                lambda x, b, c: np.einsum(spec, x, b, c, optimize=True),
                lambda x, b, c: ln.einsum(spec, ln.asarray(x), ln.asarray(b), ln.asarray(c)).compute(),
                _normal((cube,) * 3, (cube, rank), (cube, rank)),
            ),
        ),
    ]


def sampling(sizes: Sizes) -> list[Row]:
    """Random numbers."""
    return [
        compare(
            "normals",
            0.58,
            max(3, sizes.rounds // 2),
            (
                lambda seed: np.random.default_rng(seed).standard_normal(sizes.long),
                lambda seed: ln.random.default_rng(seed).standard_normal(sizes.long).compute(),
                lambda turn: (turn,),
            ),
        )
    ]


def overhead(sizes: Sizes) -> list[Row]:
    """What is left of the time when there is nothing to compute."""

    def small(x: Any) -> None:
        for _ in range(200):
            float((x * 2 + 1).sum())

    short = lambda turn: (ln.asarray(np.random.default_rng(turn).random(1000)),)  # noqa: E731
    pieces = lambda turn: (  # noqa: E731
        ln.asarray(np.random.default_rng(turn).random(sizes.chunks), chunks=1),
    )
    nothing: Callable[..., Any] = lambda *_: None  # noqa: E731
    return [
        compare(
            f"{sizes.chunks:,} chunks of one element, x + 1",
            20,
            sizes.rounds,
            (nothing, lambda x: (x + 1).compute(), pieces),
            each=sizes.chunks,
        ),
        compare("float((x*2+1).sum()), 1,000 elements", 40, sizes.rounds, (nothing, small, short), each=200),
    ]


# ---- memory --------------------------------------------------------------------------


def memory(sizes: Sizes) -> list[Row]:
    """The summed chain in a process of its own."""
    command = [sys.executable, __file__, "--peak", str(sizes.long)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=ordinary_memory())
    numbers = json.loads(done.stdout)
    allowed = 0.05 * numbers["input"]
    text = f"{numbers['peak'] / 1e6:.0f} MB"
    return [
        Row(
            "peak memory of the summed chain",
            f"≤ {allowed / 1e6:.0f} MB",
            text,
            numbers["peak"] <= allowed,
            numbers,
        )
    ]


def peak(count: int) -> dict[str, float]:
    """Measured in this process."""
    x = np.random.default_rng(0).standard_normal(count)
    float(chain(ln.asarray(x[:100_000], chunks=10_000)).sum())  # modules and buffers are loaded once
    with Peak() as most:
        float(chain(ln.asarray(x)).sum())
    return {"peak": most.bytes, "input": float(x.nbytes)}


SECTIONS: dict[str, Callable[[Sizes], list[Row]]] = {
    "element-wise": element_wise,
    "columns": columns,
    "contractions": contractions,
    "sampling": sampling,
    "overhead": overhead,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure arrays against NumPy.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="these sections only")
    parser.add_argument("--rounds", type=int, help="how often each side runs")
    parser.add_argument("--quick", action="store_true", help="small problems: does it still run?")
    parser.add_argument("--fresh-memory", action="store_true", help="with the allocator as it is")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak is not None:
        print(json.dumps(peak(options.peak)))
        return
    if not options.fresh_memory:
        keep_memory()
    sizes = QUICK if options.quick else Sizes()
    if options.rounds:
        sizes = Sizes(**{**asdict(sizes), "rounds": options.rounds})
    rows = [row for name in options.only or SECTIONS for row in SECTIONS[name](sizes)]
    kept = "memory as it comes" if options.fresh_memory else "freed memory kept"
    show(rows, f"python benchmarks/arrays.py ({kept})", options.json)


if __name__ == "__main__":
    main()
