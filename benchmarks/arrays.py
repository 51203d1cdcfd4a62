"""Arrays against NumPy in the same run, on the same cores; with `--dask` against Dask too.

A row runs NumPy and Linnet by turns, each on the same NumPy arrays, from these to NumPy's result;
the ratio is ours / NumPy's. Rows under a second take the median of many turns on fresh data,
because the first touch of memory swings widely; longer ones the best. Memory is resident memory above
the live inputs, sampled in a process of its own.

Dask gets the same arrays in the same chunks, on as many threads. A row is kept only if we are no slower.

Times are taken with the allocator that everybody has. A virtual machine that hands free memory back to its
host can take longer to touch it again than the work on it takes; `--keep-memory` measures with an allocator
that keeps what is freed, on all sides.
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
    """How large the problems are, and who takes part."""

    long: int = 100_000_000
    half: int = 20_000_000
    tall: int = 2_000_000
    cube: int = 400
    rank: int = 100
    chunks: int = 10_000
    rounds: int = 7
    dask: bool = False


QUICK = Sizes(long=2_000_000, half=2_000_000, tall=100_000, cube=60, rank=20, chunks=1_000, rounds=3)

Function = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Case:
    """One computation, as each side writes it."""

    numpy: Function
    linnet: Function
    data: Callable[[int], tuple[Any, ...]]
    """The arrays that all get, fresh for each turn."""
    dask: Function | None = None
    """None where Dask has no such function."""


def chain(x: Any) -> Any:
    return np.sin(x) * 2 + x**2 - 1 / (1 + np.exp(-x))


def standardised(x: Any) -> Any:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def alike(function: Function, data: Callable[[int], tuple[Any, ...]], dask: Function | None = None) -> Case:
    """What is written alike for all: NumPy's functions know arrays of Linnet, and mostly those of Dask."""

    def ours(*arrays: np.ndarray[Any, Any]) -> Any:
        return function(*map(ln.asarray, arrays)).compute()

    def theirs(*arrays: np.ndarray[Any, Any]) -> Any:
        return (dask or function)(*map(in_dask, arrays)).compute(scheduler="threads")

    return Case(function, ours, data, theirs)


def in_dask(x: np.ndarray[Any, Any]) -> Any:
    """The array in Dask, in the chunks it has here; its elements are not read for a name."""
    return dask_array().from_array(x, chunks=ln.asarray(x).chunks, name=False)


def dask_array() -> Any:
    """Dask's arrays, loaded when they are asked for."""
    from dask import array

    return array


def compare(
    what: str, target: float | None, sizes: Sizes, case: Case, *, rounds: int = 0, each: float | None = None
) -> Row:
    """Run all by turns on fresh data; `each` divides the time where it is told per piece."""
    sides = {"numpy": case.numpy, "linnet": case.linnet}
    if sizes.dask and case.dask is not None:
        sides["dask"] = case.dask
    times: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds or sizes.rounds):
        given = case.data(turn)
        for name, run in sides.items():
            gc.collect()
            begun = time.perf_counter()
            result = run(*given)
            times[name].append(time.perf_counter() - begun)
            del result
    take = statistics.median if statistics.median(times["numpy"]) < 1 else min
    seconds = {name: take(found) for name, found in times.items()}
    if each is None:
        measured, unit, told = seconds["linnet"] / seconds["numpy"], "", "ratio"
        text = f"{measured:.3f}  ({seconds['linnet']:.3f} s; NumPy {seconds['numpy']:.3f} s)"
    else:
        measured, unit, told = seconds["linnet"] / each * 1e6, " µs", "microseconds"
        text = f"{measured:.1f} µs"
    kept = None if target is None else measured <= target
    wanted = "" if target is None else f"≤ {target:g}{unit}"
    if "dask" in seconds:
        over = seconds["linnet"] / seconds["dask"]
        text += f"; {over:.3g} of Dask's"
        kept = kept is not False and over <= 1
        wanted = f"{wanted}, ≤ Dask" if wanted else "≤ Dask"
    return Row(what, wanted, text, kept, {told: measured, **seconds})


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
        compare("sin(x)*2 + x**2 - 1/(1+exp(-x))", 0.42, sizes, alike(chain, data), rounds=few),
        compare("the same, summed", 0.32, sizes, alike(lambda x: chain(x).sum(), data), rounds=few),
        compare("2.5*x + y", 0.85, sizes, alike(lambda x, y: 2.5 * x + y, pair)),
    ]


def columns(sizes: Sizes) -> list[Row]:
    """Statistics of columns."""
    data = _normal((sizes.tall, 50))
    return [compare("standardise columns, N × 50", 0.50, sizes, alike(standardised, data))]


def contractions(sizes: Sizes) -> list[Row]:
    """Products."""
    cube, rank = sizes.cube, sizes.rank
    spec = "ijk,jr,kr->ir"

    def mttkrp(x: Any, b: Any, c: Any) -> Any:
        return np.einsum(spec, x, b, c, optimize=True)

    gram = alike(lambda x: x.T @ x, _normal((sizes.tall, 64)))
    cubes = alike(mttkrp, _normal((cube,) * 3, (cube, rank), (cube, rank)))
    return [
        compare("x.T @ x, N × 64", 1.0, sizes, gram),
        compare(f"MTTKRP {cube}³, rank {rank}", 0.9, sizes, cubes),
    ]


def sampling(sizes: Sizes) -> list[Row]:
    """Random numbers."""

    def dask(seed: int) -> Any:
        chunks = ln.random.default_rng(seed).standard_normal(sizes.long).chunks
        return (
            dask_array()
            .random.default_rng(seed)
            .standard_normal(sizes.long, chunks=chunks)
            .compute(scheduler="threads")
        )

    case = Case(
        lambda seed: np.random.default_rng(seed).standard_normal(sizes.long),
        lambda seed: ln.random.default_rng(seed).standard_normal(sizes.long).compute(),
        lambda turn: (turn,),
        dask,
    )
    return [compare("normals", 0.58, sizes, case, rounds=max(3, sizes.rounds // 2))]


def others(sizes: Sizes) -> list[Row]:
    """Functions that order elements, or move them; Dask has no sort."""
    side = round(sizes.half**0.5)
    line, square = _normal((sizes.half,)), _normal((side, side))
    quarter = _normal((side // 2, side // 2))
    rows = _normal((sizes.half // 1000, 1000))

    def repeats(turn: int) -> tuple[Any, ...]:
        return (np.random.default_rng(turn).integers(0, 100_000, sizes.half),)

    def transform(x: Any) -> Any:
        return np.fft.fft(x, axis=1)

    def dask_transform(x: Any) -> Any:
        return dask_array().fft.fft(x, axis=1)

    def dask_median(x: Any) -> Any:
        return dask_array().median(x, axis=0)

    sort = alike(np.sort, line)
    few = max(3, sizes.rounds // 2)
    return [
        compare("sort", None, sizes, Case(sort.numpy, sort.linnet, sort.data), rounds=few),
        compare("median", None, sizes, alike(np.median, line, dask_median), rounds=few),
        compare("unique, 100,000 values", None, sizes, alike(np.unique, repeats), rounds=few),
        compare("pad by 10, reflect", None, sizes, alike(lambda x: np.pad(x, 10, mode="reflect"), square)),
        compare("tile (2, 2)", None, sizes, alike(lambda x: np.tile(x, (2, 2)), quarter)),
        compare("fft of rows of 1,000", None, sizes, alike(transform, rows, dask_transform)),
    ]


def overhead(sizes: Sizes) -> list[Row]:
    """What is left of the time when there is nothing to compute."""

    def small(x: Any) -> None:
        for _ in range(200):
            float((x * 2 + 1).sum())

    def dask_small(x: Any) -> None:
        y = in_dask(x.compute())
        for _ in range(200):
            float((y * 2 + 1).sum().compute(scheduler="threads"))

    def pieces(turn: int) -> tuple[Any, ...]:
        return (np.random.default_rng(turn).random(sizes.chunks),)

    def tasks(turn: int) -> tuple[Any, ...]:
        return ((ln.asarray(*pieces(turn), chunks=1) + 0).persist(),)

    def dask_pieces(x: Any) -> Any:
        return (dask_array().from_array(x, chunks=1, name=False) + 1).compute(scheduler="threads")

    nothing: Function = lambda *_: None  # noqa: E731
    short = lambda turn: (ln.asarray(np.random.default_rng(turn).random(1000)),)  # noqa: E731
    apart = Case(nothing, lambda x: (ln.asarray(x, chunks=1) + 1).compute(), pieces, dask_pieces)
    one_by_one = Case(nothing, lambda x: (x + 1).compute(), tasks)
    few = Case(nothing, small, short, dask_small)
    count = f"{sizes.chunks:,} chunks of one element, x + 1"
    return [
        compare(count, 20, sizes, apart, each=sizes.chunks),
        compare(f"{count}, a task for each", 20, sizes, one_by_one, each=sizes.chunks),
        compare("float((x*2+1).sum()), 1,000 elements", 40, sizes, few, each=200),
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
    "others": others,
    "overhead": overhead,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure arrays against NumPy.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="these sections only")
    parser.add_argument("--rounds", type=int, help="how often each side runs")
    parser.add_argument("--dask", action="store_true", help="against Dask too, in the same chunks")
    parser.add_argument("--quick", action="store_true", help="small problems: does it still run?")
    parser.add_argument("--keep-memory", action="store_true", help="with an allocator that keeps memory")
    parser.add_argument("--peak", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.peak is not None:
        print(json.dumps(peak(options.peak)))
        return
    if options.keep_memory:
        keep_memory()
    sizes = QUICK if options.quick else Sizes()
    changes = {"dask": options.dask, "rounds": options.rounds or sizes.rounds}
    sizes = Sizes(**{**asdict(sizes), **changes})
    rows = [row for name in options.only or SECTIONS for row in SECTIONS[name](sizes)]
    kept = "freed memory kept" if options.keep_memory else "memory as it comes"
    show(rows, f"python benchmarks/arrays.py ({kept})", options.json)


if __name__ == "__main__":
    main()
