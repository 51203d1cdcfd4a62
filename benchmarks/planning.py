"""Measures what planning promises: what plans move, against others and against bounds; how long it takes.

    python benchmarks/planning.py [--json FILE] [--quick]

What is moved is counted, not timed: those rows are the same on every machine. The numbers of NumS are from
its own code, run on the same cases: its eager arrays, and its LSHS. Planning runs on one thread: its times
are those of the processor, and the time by the clock is told beside them.
"""

from __future__ import annotations

import argparse
import time
from math import ceil, isqrt, log2
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

import linnet as ln
from linnet.algorithms.gemm import accumulated_gemm
from linnet.planning.accounting import transfers
from linnet.planning.choosing import FAMILIES, choose
from linnet.planning.cluster import Cluster
from linnet.planning.plan import Plan
from linnet.planning.workload import Workload
from linnet.tiles import Layout, TiledArray

NODES = (2, 3, 4, 7, 8, 12, 16, 32, 64)
MICROSECONDS, SECONDS, ELEMENT_WISE = 20.0, 60.0, 5.0


def stored(shape: tuple[int, ...], tile: int | tuple[int, ...]) -> Any:
    """An array of zeros that takes no room, cut into tiles."""
    return ln.asarray(np.broadcast_to(np.zeros(1), shape), chunks=tile)


def product(side: int, tile: int) -> Workload:
    shape = (side * tile, side * tile)
    array = TiledArray.over(np.broadcast_to(np.zeros(1), shape), Layout.regular(shape, tile))
    return Workload.of(accumulated_gemm.bind(M=side, N=side, K=side), {"A": array, "B": array})


def rounds(plan: Plan) -> int:
    """The longest chain of messages of which each waits for the one before."""
    work, placement = plan.work, plan.placement
    waited = np.zeros(work.tiles, int)
    for task in work.order:
        operands = work.reads(task)
        away = placement.homes[operands] != placement.nodes[task]
        waited[work.writes(task)] = (waited[operands] + away).max(initial=0)
    return int(waited.max(initial=0))


# ---- what is moved


def table_of_the_thesis() -> list[Row]:
    """Table 3.2: element-wise, sum, XᵀY on 2 to 64 nodes; XYᵀ on squares."""
    none: list[int] = []
    sums: list[tuple[int, int]] = []
    inner: list[tuple[int, int]] = []
    for nodes in NODES:
        x, y = (stored((nodes * 400, 100), (100, 100)) for _ in range(2))
        none.append(ln.plan(x + y, Cluster(nodes)).bytes_moved)
        for expression, found in ((x.sum(axis=0), sums), (x.T @ y, inner)):
            plan = ln.plan(expression, Cluster(nodes))
            found.append((int(plan.transfers), rounds(plan)))
    expected = [(nodes - 1, ceil(log2(nodes))) for nodes in NODES]
    rows = [Row(f"x + y on {NODES} nodes: bytes moved", "0", str(max(none)), max(none) == 0, {"bytes": none})]
    for name, found in (("sum(x)", sums), ("x.T @ y", inner)):
        told = ", ".join(f"{tiles} in {turns}" for tiles, turns in found)
        what = f"{name} on {NODES} nodes: tiles moved, in rounds"
        kept = all(f[0] <= e[0] and f[1] <= e[1] for f, e in zip(found, expected, strict=True))
        rows.append(Row(what, "k − 1, in ⌈log₂ k⌉", told, kept, {"found": found}))
    return [*rows, outer_product()]


def outer_product() -> Row:
    """XYᵀ on squares of nodes, two tiles of each factor a node."""
    found: dict[int, int] = {}
    for nodes in (4, 9, 16, 25, 36, 49, 64):
        x = stored((nodes * 2 * 50, 50), (50, 50))
        plan = ln.plan(x @ stored((50, nodes * 2 * 50), (50, 50)), Cluster(nodes))
        found[nodes] = int(plan.bytes_in.max()) // (50 * 50 * 8)
    kept = all(tiles <= 2 * (isqrt(nodes) - 1) * 2 for nodes, tiles in found.items())
    told = ", ".join(f"{nodes}: {tiles}" for nodes, tiles in found.items())
    return Row(
        "x @ y.T: most tiles into a node (nodes: tiles)", "2(√k − 1)·r, r = 2", told, kept, {"found": found}
    )


def cases_of_nums() -> list[Row]:
    """The cases that were measured on NumS."""
    square = choose(product(16, 4), Cluster(16))
    total, most = square.bytes_moved // 8, int(square.bytes_in.max()) // 8
    rows = [
        Row(
            "X @ Y, 16² tiles of 4×4 on 16 nodes: elements in all / into one node",
            "≤ 24,576 / 1,536 (NumS 70,656 / 9,216; its LSHS 55,888 / 4,032)",
            f"{total:,} / {most:,} by {square.policy}; bound {square.lower_bound or 0:,} bytes",
            total <= 24_576 and most <= 1_536,
            {"total": total, "most": most},
        )
    ]
    tall = ln.plan(stored((2048, 4), (4, 4)).T @ stored((2048, 4), (4, 4)), Cluster(16))
    total, most = tall.bytes_moved // 8, int(tall.bytes_in.max()) // 8
    told, kept = f"{total} / {most} by {tall.policy}", total <= 240 and most <= 64
    what = "X.T @ Y, 512 row tiles on 16 nodes: the same"
    rows.append(Row(what, "240 / ≤ 64 (NumS' LSHS 256 / 48)", told, kept, {"total": total, "most": most}))
    moved = int(ln.plan(stored((24, 10), (1, 10)).sum(axis=0), Cluster(8)).transfers)
    what = "sum of 24 tiles on 8 nodes: transfers"
    rows.append(Row(what, "7 (NumS 14)", str(moved), moved <= 7, {"transfers": moved}))
    return rows


# ---- how long it takes


def each_policy(side: int, nodes: int) -> list[Row]:
    """Placing the tasks of a product, for each policy."""
    work, cluster = product(side, 4), Cluster(nodes)
    rows: list[Row] = []
    for name, variants in FAMILIES.items():
        if name == "lshs" and work.count > 10_000:
            continue
        policy = min(variants(work, cluster), key=lambda each: sum(getattr(each, "grid", None) or ()))
        start = time.process_time()
        placement = policy.place(work, cluster)
        took = (time.process_time() - start) / work.count * 1e6
        moved = int(transfers(work, cluster, placement).bytes.sum())
        what = f"{policy.name}: {work.count:,} tasks on {nodes} nodes"
        numbers = {"microseconds": took, "bytes": moved}
        rows.append(
            Row(what, f"≤ {MICROSECONDS:.0f} µs a task", f"{took:.2f} µs", took <= MICROSECONDS, numbers)
        )
    return rows


def whole_plans(side: int, tiles: int) -> list[Row]:
    """`auto`, from the program to the plan."""
    start, clock = time.process_time(), time.perf_counter()
    work = product(side, 1000)
    listed = time.process_time() - start
    plan = choose(work, Cluster(16))
    took, clock = time.process_time() - start, time.perf_counter() - clock
    told = f"{took:.1f} s, {listed:.1f} of it to list the tasks ({clock:.1f} by the clock); {plan.policy}"
    what = f"auto: product of {work.count:,} tasks on 16 nodes"
    rows = [Row(what, f"≤ {SECONDS:.0f} s", told, took <= SECONDS, {"seconds": took, "listing": listed})]
    x, y = (stored((tiles, 1000), (1, 1000)) for _ in range(2))
    start, clock = time.process_time(), time.perf_counter()
    found = ln.plan(x + y, Cluster(100))
    took, clock = time.process_time() - start, time.perf_counter() - clock
    told = f"{took:.1f} s ({clock:.1f} by the clock); {found.bytes_moved} bytes moved"
    what = f"auto: element-wise, {tiles:,} tiles on 100 nodes"
    return [*rows, Row(what, f"≤ {ELEMENT_WISE:.0f} s", told, took <= ELEMENT_WISE, {"seconds": took})]


def main() -> None:
    """Measure, and say what was measured."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", type=Path, help="write the numbers to this file")
    parser.add_argument("--quick", action="store_true", help="few tasks: does it still run?")
    options = parser.parse_args()
    side, tiles = (20, 2_000) if options.quick else (100, 100_000)
    rows = [*table_of_the_thesis(), *cases_of_nums()]
    rows += each_policy(side, 16)
    rows += each_policy(20, 16)
    rows += whole_plans(side, tiles)
    show(rows, "planning", options.json)


if __name__ == "__main__":
    main()
