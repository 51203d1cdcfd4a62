"""Loops that update arrays in place, and programs of whole arrays, against NumPy in the same run.

Each row runs NumPy and Linnet by turns and takes the best of many on each side, since others use the machine
too; times are of the processor, unless `--clock wall` asks for those of the clock (on a machine that nobody
else uses: then what several cores do at the same time counts once). A small operation is told as what it
takes beyond NumPy's own time, everything else as the ratio ours / NumPy's. The programs are those of tests
(`tests/arrays/inplace_programs.py`, `vectorised_programs.py`).
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "arrays"))

import inplace_programs as programs
import vectorised_programs

ONE, SEVERAL = "one tile", "several tiles"


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the problems are."""

    sides: tuple[int, ...] = (100, 181, 500, 1000, 1400)
    """Of the arrays that small operations work on, up to 16 MB."""
    sweeps: tuple[int, ...] = (100, 180, 182, 250, 500, 1000, 1400, 2000, 4000)
    """Of the arrays that are swept."""
    program: int = 120
    vectorised: int = 1000
    turns: int = 15


QUICK = Sizes(sides=(100, 500), sweeps=(100, 182, 500), program=30, vectorised=100, turns=3)


clock = time.process_time


def best(function: Callable[[], Any], repeat: int, turns: int) -> float:
    """Seconds that a call takes at best."""
    found = float("inf")
    for _ in range(turns):
        start = clock()
        for _ in range(repeat):
            function()
        found = min(found, (clock() - start) / repeat)
    return found


# ---- one small operation


def read(x: Any) -> Any:
    return x[7, 3]


def write(x: Any) -> None:
    x[7, 3] = 1.5


def write_slice(x: Any) -> None:
    x[7, 3:40] = 1.5


def update(x: Any) -> None:
    x[7, 3] += 1.0


def copy_row(x: Any) -> None:
    x[3] = x[4]


def add_rows(x: Any) -> Any:
    return x[3, :1000] + x[4, :1000]


OPERATIONS = {read: 1, write: 1, write_slice: 1, update: 3, copy_row: 2, add_rows: 3}
"""With how many reads, writes and operations each of them is."""


def small_operations(sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for place in (ONE, SEVERAL):
        for side in sizes.sides:
            data = np.random.default_rng(0).random((side, side))
            x = ln.array(data, chunks=-1 if place == ONE else -(-side // 3))
            for function, count in OPERATIONS.items():
                theirs = best(lambda f=function, a=data: f(a), 200, sizes.turns)
                ours = best(lambda f=function, a=x: f(a), 200, sizes.turns)
                beyond = (ours - theirs) * 1e6
                most = 3.0 * count if place == ONE else 40.0
                rows.append(
                    Row(
                        f"{function.__name__}, {side}², {place}",
                        f"≤ {most:.0f} µs beyond NumPy",
                        f"{beyond:.1f} µs ({theirs * 1e6:.1f})",
                        beyond <= most,
                        {"numpy": theirs, "linnet": ours},
                    )
                )
    return rows


def later_operations(sizes: Sizes) -> Row:
    """Whether an assignment takes longer the more there were before it."""
    x = ln.array(np.zeros((300, 300)), chunks=100)

    def ten() -> None:
        for step in range(10):
            x[step, 5:200] = x[step + 1, 5:200] * 2

    first = best(ten, 10, sizes.turns)
    for _ in range(500):
        ten()
    later = best(ten, 10, sizes.turns)
    return Row(
        "an assignment after 5,000 others, several tiles",
        "≤ 1.2 × the first",
        f"{later / first:.2f} ×",
        later <= 1.2 * first,
        {"first": first, "later": later},
    )


# ---- stencils and programs


def sweep(a: Any, b: Any) -> None:
    b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])


def swept(a: Any, b: Any) -> Any:
    """A sweep, and its values: what is too much to be done at once stays lazy until somebody asks."""
    sweep(a, b)
    return np.asarray(b)


def sweeps(sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    for side in sizes.sweeps:
        data = np.random.default_rng(0).random((2, side, side))
        a, b = data
        repeat = max(1, min(50, 1_000_000 // side**2))
        theirs = best(lambda a=a, b=b: sweep(a, b), repeat, sizes.turns)
        for place, chunks in ((ONE, -1), (SEVERAL, -(-side // 3))):
            x, y = (ln.array(each, chunks=chunks) for each in data)
            ours = best(lambda x=x, y=y: swept(x, y), repeat, sizes.turns)
            most = (0.6 if side >= 2000 else 1.5) if place == ONE else None
            rows.append(
                Row(
                    f"Jacobi sweep, {side}², {place}",
                    "" if most is None else f"≤ {most} ×",
                    f"{ours / theirs:.2f} × ({theirs * 1e6:,.0f} µs)",
                    None if most is None else ours <= most * theirs,
                    {"numpy": theirs, "linnet": ours},
                )
            )
    return rows


def whole_programs(sizes: Sizes) -> list[Row]:
    rows: list[Row] = []
    turns = max(2, sizes.turns // 5)
    for program in programs.PROGRAMS:
        theirs = best(lambda p=program: p(np, np.array, sizes.program), 1, turns)
        for place, cut in ((ONE, -1), (SEVERAL, -(-sizes.program // 3))):

            def ours(cut: int = cut, program: Any = program) -> Any:
                return np.asarray(program(ln, lambda each: ln.array(each, chunks=cut), sizes.program))

            first = best(ours, 1, 1)
            later = best(ours, 1, turns)
            rows.append(
                Row(
                    f"{program.__name__}, {place}",
                    "first run ≤ 3 × later ones",
                    f"{later / theirs:.1f} × NumPy, first {first / later:.1f} ×",
                    first <= 3 * later,
                    {"numpy": theirs, "first": first, "linnet": later},
                )
            )
    return rows


def vectorised(sizes: Sizes) -> list[Row]:
    """Programs that NumPy does without loops, in one tile."""
    rows: list[Row] = []
    ratios: list[float] = []
    for program in vectorised_programs.PROGRAMS:
        theirs = program(np, np.array, sizes.vectorised)
        ours = program(ln, lambda each: ln.array(each, chunks=-1), sizes.vectorised)
        first = best(lambda f=ours: np.asarray(f()), 1, 1)
        taken = [math.inf, math.inf]
        for _ in range(max(3, sizes.turns // 3)):
            for place, function in enumerate((theirs, ours)):
                taken[place] = min(taken[place], best(lambda f=function: np.asarray(f()), 1, 1))
        ratios.append(taken[1] / taken[0])
        rows.append(
            Row(
                f"{program.__name__}, whole arrays of {sizes.vectorised}²",
                "≤ 1.2 ×",
                f"{ratios[-1]:.2f} × ({taken[0] * 1e3:.1f} ms), first {first / taken[1]:.1f} ×",
                ratios[-1] <= 1.2,
                {"numpy": taken[0], "first": first, "linnet": taken[1]},
            )
        )
    mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
    rows.append(Row("their geometric mean", "≤ 0.8 ×", f"{mean:.2f} ×", mean <= 0.8, {"mean": mean}))
    return rows


SECTIONS: dict[str, Callable[[Sizes], list[Row]]] = {
    "small": lambda sizes: [*small_operations(sizes), later_operations(sizes)],
    "sweeps": sweeps,
    "programs": whole_programs,
    "vectorised": vectorised,
}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description="Arrays updated in place, against NumPy.")
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    parser.add_argument("--only", nargs="+", choices=[*SECTIONS], default=[*SECTIONS])
    parser.add_argument("--json", type=Path, help="write the numbers to a file too")
    parser.add_argument("--clock", choices=["processor", "wall"], default="processor")
    options = parser.parse_args()
    if options.clock == "wall":
        global clock
        clock = time.perf_counter
    sizes = QUICK if options.quick else Sizes()
    rows = [row for section in options.only for row in SECTIONS[section](sizes)]
    show(rows, "Arrays updated in place", options.json)


if __name__ == "__main__":
    main()
