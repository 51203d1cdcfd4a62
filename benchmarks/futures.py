"""Measures parallel functions on threads: a chain of diamonds, and what a future costs.

Calls of 20 ms that release the lock, 25 diamonds of width 8 one after another, two workers: the best schedule
takes 100 of these times. The same diamonds by hand on `ThreadPoolExecutor` are measured beside, since a
machine that is not idle wakes sleepers late. CPU times are the least of several repetitions.

    python benchmarks/futures.py [--json FILE]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from measuring import Row, show

import linnet as ln

DIAMONDS, WIDTH, CALL, WORKERS, CALLS = 25, 8, 0.02, 2, 2000


def measure(x: float) -> float:
    time.sleep(CALL)
    return x + 1


def joined(values: list[float]) -> float:
    return sum(values) % 1000


@ln.parallel
def diamonds(count: int) -> float:
    x = 0.0
    for _ in range(count):
        x = joined([measure(x + i) for i in range(WIDTH)])
    return x


def same(x: int) -> int:
    return x


@ln.parallel
def independent(count: int) -> list[int]:
    return [same(i) for i in range(count)]


def by_hand(pool: ThreadPoolExecutor) -> float:
    x = 0.0
    for _ in range(DIAMONDS):
        x = joined(list(pool.map(measure, [x + i for i in range(WIDTH)])))
    return x


def submitted(pool: ThreadPoolExecutor) -> list[int]:
    return [each.result() for each in [pool.submit(same, i) for i in range(CALLS)]]


def least(clock: Callable[[], float], call: Callable[[], Any], repeats: int) -> float:
    """The least time of several."""
    found: list[float] = []
    for _ in range(repeats):
        began = clock()
        call()
        found.append(clock() - began)
    return min(found)


def rows() -> list[Row]:
    best = DIAMONDS * WIDTH * CALL / WORKERS
    with ThreadPoolExecutor(WORKERS) as pool, ln.init(workers=WORKERS):
        assert diamonds(3) == diamonds.function(3)
        ours = least(time.perf_counter, lambda: diamonds(DIAMONDS), 3)
        theirs = least(time.perf_counter, lambda: by_hand(pool), 3)
        cpu = least(time.process_time, lambda: independent(CALLS), 15) / CALLS * 1e6
        executor = least(time.process_time, lambda: submitted(pool), 15) / CALLS * 1e6
    return [
        Row(
            f"{DIAMONDS} diamonds of width {WIDTH}, calls of 20 ms, {WORKERS} workers",
            ">= 97% of the best schedule",
            f"{best / ours:.1%} (by hand {best / theirs:.1%})",
            best / ours >= 0.97,
            {"seconds": ours, "by_hand": theirs, "best": best},
        ),
        Row(
            f"CPU per future, {CALLS:,} independent calls",
            "<= 20 µs",
            f"{cpu:.1f} µs (ThreadPoolExecutor {executor:.1f} µs)",
            cpu <= 20,
            {"cpu": cpu, "executor": executor},
        ),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--json", type=Path, help="also write the numbers to this file")
    arguments = parser.parse_args()
    show(rows(), "Futures", arguments.json)


if __name__ == "__main__":
    main()
