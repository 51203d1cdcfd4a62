"""Measures what the tile-program language promises, and says for each promise whether it is kept.

    python benchmarks/programs.py [--json FILE] [--only NAME ...] [--quick]

Times are medians of single calls with the garbage collector off, as `timeit` does;
whatever needs a fresh process (import, memory, first definition) runs in one. The
verdict column compares with the target; nothing is asserted, for a busy machine does
not make a program wrong.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import Row, show
from sampling import sample_tasks

ALGORITHMS = ("cholesky", "tsqr", "gemm", "accumulated_gemm", "tiled_qr", "banded")
"""`gemm` reads whole rows and columns, so its tasks wait for nobody; the accumulated form has chains."""
SIDES = (8, 64, 512, 4096)
REPEATS = 7

FIRST_US, FURTHER_US = 10.0, 1.0
FLAT = 2.0
"""Slowest over fastest size, of one statement, that still counts as flat on a shared machine."""


def program_of(name: str) -> Any:
    if name == "tiled_qr":
        return importlib.import_module("tiled_qr").tiled_qr
    module = name.removeprefix("accumulated_")
    return getattr(importlib.import_module(f"linnet.algorithms.{module}"), name)


def bound_at(program: Any, side: int) -> Any:
    """The program with every size equal to `side`."""
    return program.bind(**dict.fromkeys(program.sizes, side))


def microseconds(call: Callable[[], Any], repeats: int = REPEATS) -> float:
    """Median time of one call; the least of three medians, so that bursts of other processes do not count."""
    medians = []
    for _ in range(3):
        times = []
        for _ in range(repeats):
            start = time.perf_counter_ns()
            call()
            times.append(time.perf_counter_ns() - start)
        medians.append(statistics.median(times))
    return min(medians) / 1000


# ---- the rows ----------------------------------------------------------------------


def queries(name: str, each: int) -> list[Row]:
    """`children` and `parents` of random tasks of every statement, at every size."""
    program = program_of(name)
    bounds = {side: bound_at(program, side) for side in SIDES}
    samples = {side: sample_tasks(program, bound.sizes, each) for side, bound in bounds.items()}
    return [query_row(name, query, bounds, samples) for query in ("children", "parents")]


def query_row(name: str, query: str, bounds: dict[int, Any], samples: dict[int, dict[int, list[Any]]]) -> Row:
    """The slowest statement at each size: to the first relative, and for each further one.

    `first` is the median time of tasks with at most four relatives, undivided; `further` is the median of
    (time - first) / (relatives - 1) over tasks with eight or more, so that one slow task of
    wide fan-out cannot hide behind many narrow ones, nor the other way round.
    """
    first: dict[int, dict[int, float]] = {}
    further: dict[int, dict[int, float]] = {}
    for side, bound in bounds.items():
        ask = getattr(bound, query)
        for statement, tasks in samples[side].items():
            points = [(len(ask(t)), microseconds(lambda ask=ask, t=t: ask(t))) for t in tasks]
            narrow = [t for n, t in points if n <= 4]
            if narrow:
                first.setdefault(side, {})[statement] = statistics.median(narrow)
            start = statistics.median(narrow) if narrow else 0.0
            wide = [(t - start) / (n - 1) for n, t in points if n >= 8]
            if wide:
                further.setdefault(side, {})[statement] = statistics.median(wide)
    slowest = {side: max(times.values()) for side, times in first.items()}
    rates = {side: max(times.values()) for side, times in further.items()}
    # A microsecond either way is noise; growth with the size is not.
    growth = max(
        (first[SIDES[-1]][s] + 1) / (first[SIDES[0]][s] + 1) for s in first[SIDES[0]] if s in first[SIDES[-1]]
    )
    kept = max(slowest.values()) <= FIRST_US and max(rates.values(), default=0) <= FURTHER_US
    measured = f"first {' / '.join(f'{slowest[s]:.1f}' for s in SIDES if s in slowest)} µs"
    if rates:
        measured += f", further {' / '.join(f'{r:.2f}' for r in rates.values())} µs"
    return Row(
        f"{query}, {name}",
        f"first ≤ {FIRST_US:.0f} µs, further ≤ {FURTHER_US:.0f} µs, flat",
        measured,
        kept and growth <= FLAT,
        {"first_us": first, "further_us": further, "growth": growth},
    )


def panel() -> Row:
    """All successors of one QR panel task with 61 children, each with its in-degree."""
    from linnet.programs import Task

    bound = bound_at(program_of("tiled_qr"), 62)
    task = Task(2, (0, 31))  # tpqrt in the first column: its reflectors go to a whole row of tiles
    count = len(bound.children(task))
    took = microseconds(lambda: [(c, bound.in_degree(c)) for c in bound.children(task)], 51)
    return Row(
        f"QR panel task with {count} children, each with its in-degree",
        "≥ 61 children, ≤ 500 µs",
        f"{took:.0f} µs",
        took <= 500 and count >= 61,
        {"us": took, "children": count, "task": repr(task)},
    )


def wire() -> Row:
    program = program_of("cholesky")
    sizes = []
    for side in SIDES:
        bound = bound_at(program, side)
        bound.count()
        sizes.append(len(bound.program.to_bytes()))
    return Row(
        "serialised Cholesky program",
        "≤ 1024 bytes, the same at every size",
        f"{sizes[0]} bytes" + ("" if len(set(sizes)) == 1 else f", not the same: {sizes}"),
        sizes[0] <= 1024 and len(set(sizes)) == 1,
        {"bytes": dict(zip(SIDES, sizes, strict=True))},
    )


def definition() -> list[Row]:
    """From source text to a bound program; a new text each time, so nothing is remembered from before."""
    from linnet.programs import TileProgram

    rows = []
    for name in ALGORITHMS:
        program = program_of(name)
        text = str(program)
        times = []
        for turn in range(15):
            fresh = text.replace(f"def {program.name}(", f"def {program.name}_{turn}(")
            start = time.perf_counter_ns()
            made = TileProgram.from_source(fresh)
            made.bind(**dict.fromkeys(made.sizes, 256))
            times.append((time.perf_counter_ns() - start) / 1e6)
        warm = statistics.median(times)
        required = name == "cholesky"
        measured, values = f"{warm:.1f} ms", {"warm_ms": warm}
        if required:
            cold = statistics.median(float(child("define", text)["ms"]) for _ in range(3))
            measured += f"; the first program of a new process {cold:.1f} ms"
            values["cold_ms"] = cold
        what = f"source to bound program at 256 tiles, {name}"
        rows.append(
            Row(what, "≤ 20 ms" if required else "", measured, warm <= 20 if required else None, values)
        )
    return rows


def counting() -> Row:
    bound = bound_at(program_of("cholesky"), 4096)
    start = time.perf_counter_ns()
    bound.count()
    first = (time.perf_counter_ns() - start) / 1e6
    n = 4096
    exact = bound.count() == n * (n + 1) * (n + 2) // 6
    times = []
    for side in range(n - REPEATS, n):
        other = bound_at(program_of("cholesky"), side)  # a new binding each time: nothing is remembered
        start = time.perf_counter_ns()
        other.count()
        times.append((time.perf_counter_ns() - start) / 1e6)
    took = statistics.median(times)
    return Row(
        "count() of Cholesky at 4096 tiles a side",
        "≤ 10 ms, exact",
        f"{took:.3f} ms (first {first:.3f} ms), {'exact' if exact else 'wrong'}: {bound.count():,}",
        took <= 10 and first <= 10 and exact,
        {"ms": took, "first_ms": first, "count": bound.count()},
    )


def enumeration() -> list[Row]:
    """About a million tasks with their dependences, in a process of their own."""
    rows = []
    for name in ALGORITHMS:
        got = child("enumerate", name)
        required = name == "cholesky"
        rows.append(
            Row(
                f"enumerate {got['tasks']:,} tasks with dependences, {name}",
                "≤ 3 s, ≤ 300 MB" if required else "",
                f"{got['seconds']:.2f} s, {got['megabytes']:.0f} MB, {got['edges']:,} edges",
                got["seconds"] <= 3 and got["megabytes"] <= 300 if required else None,
                got,
            )
        )
    return rows


IMPORT = """
import time
import numpy, scipy
start = time.perf_counter_ns()
import linnet
print((time.perf_counter_ns() - start) / 1e6)
"""


def importing() -> Row:
    """In a process that has NumPy and SciPy already; submodules of SciPy that Linnet pulls in are charged."""
    times = []
    with tempfile.TemporaryDirectory() as folder:
        # As for users: modules are compiled once, whatever this machine says of writing bytecode.
        environment = {**os.environ, "PYTHONPYCACHEPREFIX": folder}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        command = [sys.executable, "-c", IMPORT]
        for _ in range(REPEATS + 1):
            done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
            times.append(float(done.stdout))
    times = times[1:]  # the first has compiled the modules
    took = statistics.median(times)
    return Row(
        "import of linnet beyond NumPy's and SciPy's",
        "≤ 250 ms",
        f"{took:.0f} ms (best {min(times):.0f} ms)",
        took <= 250,
        {"ms": took, "all_ms": times},
    )


# ---- what runs in a process of its own ---------------------------------------------


def child(*command: str) -> dict[str, Any]:
    """Run this file again as `command` and read the JSON it prints."""
    arguments = [sys.executable, os.fspath(Path(__file__)), "--child", *command]
    done = subprocess.run(arguments, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def child_main(command: str, *arguments: str) -> dict[str, Any]:
    return {"define": child_define, "enumerate": child_enumerate}[command](*arguments)


def child_define(text: str) -> dict[str, Any]:
    """The first program of a process that has imported Linnet and its kernels, and no program yet."""
    import linnet.kernels  # noqa: F401
    from linnet.programs import TileProgram

    start = time.perf_counter_ns()
    made = TileProgram.from_source(text)
    made.bind(**dict.fromkeys(made.sizes, 256))
    return {"ms": (time.perf_counter_ns() - start) / 1e6}


def child_enumerate(name: str) -> dict[str, Any]:
    import resource

    program = program_of(name)
    low, high = 1, 1
    while bound_at(program, high).count() < 1_000_000:
        low, high = high, 2 * high
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if bound_at(program, middle).count() < 1_000_000 else (low, middle)
    bound = bound_at(program, high)
    bound_at(program, 4).task_arrays()  # what is made once for a program is not charged to this size
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    arrays = bound.task_arrays()
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "tasks": len(arrays),
        "edges": len(arrays.child),
        "seconds": seconds,
        "megabytes": (peak - before) / 1024,
        "tiles_a_side": high,
    }


# ---- report ------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[int], list[Row]]] = {
    "queries": lambda each: [row for name in ALGORITHMS for row in queries(name, each)],
    "panel": lambda each: [panel()],
    "wire": lambda each: [wire()],
    "definition": lambda each: definition(),
    "count": lambda each: [counting()],
    "enumeration": lambda each: enumeration(),
    "import": lambda each: [importing()],
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Measure the tile-program language against its targets.")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the numbers here")
    parser.add_argument("--only", nargs="+", choices=list(SECTIONS), help="these sections only")
    parser.add_argument("--quick", action="store_true", help="few tasks per statement: a smoke test")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child_main(*options.child)))
        return
    gc.disable()
    rows = [row for name in options.only or SECTIONS for row in SECTIONS[name](5 if options.quick else 40)]
    sides = " / ".join(map(str, SIDES))
    title = (
        f"python benchmarks/programs.py (a / b / c / d: at {sides} tiles a side, the slowest statement each)"
    )
    show(rows, title, options.json)


if __name__ == "__main__":
    main()
