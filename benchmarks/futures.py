"""Measures parallel functions on threads, in processes and on Ray: diamonds, and what a future costs.

Calls of 20 ms that release the lock, 25 diamonds of width 8 one after another, two workers: the best schedule
takes 100 of these times. The same diamonds by hand on `ThreadPoolExecutor` are measured beside, since a
machine that is not idle wakes sleepers late. CPU times are the least of several repetitions.

In processes the calls are 20 ms of pure Python, against the plain function. On Ray the same diamonds and the
same independent calls are measured against `f.remote(...)` and `ray.get` by hand, on one cluster, in turns;
CPU time is that of this process.

    python benchmarks/futures.py [--only threads|processes|ray] [--json FILE]
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


def counted(x: float, turns: int) -> float:
    for _ in range(turns):
        x = x * 1.0000001 + 1e-9
    return x + 1


@ln.parallel
def pure_diamonds(count: int, turns: int) -> float:
    x = 0.0
    for _ in range(count):
        x = joined([counted(x + i, turns) for i in range(WIDTH)])
    return x


def least(clock: Callable[[], float], call: Callable[[], Any], repeats: int) -> float:
    """The least time of several."""
    found: list[float] = []
    for _ in range(repeats):
        began = clock()
        call()
        found.append(clock() - began)
    return min(found)


def in_processes() -> list[Row]:
    turns = 100_000
    turns = int(turns * CALL / least(time.perf_counter, lambda: counted(0.0, turns), 5))
    plain = least(time.perf_counter, lambda: pure_diamonds.function(DIAMONDS, turns), 2)
    with ln.init(workers=WORKERS, processes=True):
        assert pure_diamonds(3, 100) == pure_diamonds.function(3, 100)
        ours = least(time.perf_counter, lambda: pure_diamonds(DIAMONDS, turns), 3)
    return [
        Row(
            f"{DIAMONDS} diamonds of width {WIDTH} in pure Python, calls of 20 ms, {WORKERS} processes",
            ">= 1.8 times the plain function",
            f"{plain / ours:.2f} times",
            plain / ours >= 1.8,
            {"seconds": ours, "plain": plain},
        )
    ]


def on_ray() -> list[Row]:
    try:
        import ray
    except ImportError:
        return []
    from linnet.engines.ray import Ray

    engine = Ray(workers=WORKERS)
    remote_same, remote_measure = ray.remote(same), ray.remote(measure)

    def calls_by_hand() -> list[int]:
        return ray.get([remote_same.remote(i) for i in range(CALLS)])

    def diamonds_by_hand() -> float:
        x = 0.0
        for _ in range(DIAMONDS):
            x = joined(ray.get([remote_measure.remote(x + i) for i in range(WIDTH)]))
        return x

    found: list[Row] = []
    with ln.init(engine):
        calls = lambda: independent(CALLS)  # noqa: E731
        for what, clock, ours, theirs in (
            (f"CPU time of {CALLS:,} independent calls on Ray", time.process_time, calls, calls_by_hand),
            (f"{CALLS:,} independent calls on Ray", time.perf_counter, calls, calls_by_hand),
            (
                f"{DIAMONDS} diamonds of 20 ms on Ray",
                time.perf_counter,
                lambda: diamonds(DIAMONDS),
                diamonds_by_hand,
            ),
        ):
            assert ours() == theirs()
            times = [(least(clock, ours, 1), least(clock, theirs, 1)) for _ in range(4)]
            mine, hand = (min(each) for each in zip(*times, strict=True))
            found.append(
                Row(
                    what,
                    "<= 1.2 of the hand-written program",
                    f"{mine / hand:.2f} ({mine:.2f} s, by hand {hand:.2f} s)",
                    mine / hand <= 1.2,
                    {"seconds": mine, "by_hand": hand},
                )
            )
    engine.close()
    return found


def on_threads() -> list[Row]:
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
    parser.add_argument("--only", choices=["threads", "processes", "ray"], help="measure this place alone")
    arguments = parser.parse_args()
    places = {"threads": on_threads, "processes": in_processes, "ray": on_ray}
    chosen = [arguments.only] if arguments.only else list(places)
    show([row for each in chosen for row in places[each]()], "Futures", arguments.json)


if __name__ == "__main__":
    main()
