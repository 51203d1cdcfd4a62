"""What this machine cannot run, in virtual time: Cholesky on 180 and 1,800 cores, products on 1 to 64 nodes.

The cluster is that of the numpywren paper (Shankar et al., "numpywren: serverless linear algebra", 2018):
c4.8xlarge instances, 18 cores, 60 GB and 10 Gbit/s each. Its Tables 1 and 2 give points to compare with:
Cholesky of 256K took 2,417 s on ScaLAPACK (with 4.3e5 core-seconds, so on 178 cores) and 3,100 s on
numpywren; GEMM of 256K on ScaLAPACK took 1.4e6 core-seconds, so a core does 25.7 GFLOP/s. Section 5.4 tells
that pipelining raised the average rate of that Cholesky on 180 cores by 40% (Figure 9a), and which sizes of
blocks were fast (Figure 10a). The curves of Figures 8 to 10 are not in its text, and so not here.

Each case is simulated in two ways. *Planned*: nodes keep tiles, and a plan says what moves between them.
*Stateless*: every task reads its tiles from a store and writes its results there, through its core's share of
the link, as numpywren does; "pipelined" does so while another task computes.

How kernels compare with the product is measured on this machine (`linnet.planning.calibration`).
"""

from __future__ import annotations

import argparse
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from measuring import Row, show

from linnet.algorithms.cholesky import cholesky
from linnet.algorithms.gemm import accumulated_gemm
from linnet.planning.calibration import Calibration, calibrate
from linnet.planning.choosing import choose
from linnet.planning.cluster import Cluster, Link, Node
from linnet.planning.placement import Policy
from linnet.planning.plan import Plan
from linnet.planning.policies.owner import Owner
from linnet.planning.workload import Workload
from linnet.programs import BoundProgram
from linnet.tiles import Layout, TiledArray, human

CORES = 18
LINK = Link(latency=1e-4, bandwidth=1.25e9)
RATE = 2 * 262_144**3 / 1.4e6
"""Operations a second of a core: ScaLAPACK's GEMM in the paper's Table 2."""
MANY = 100_000
"""Tasks above which not all policies compete."""
SCALAPACK, NUMPYWREN, PIPELINING = 2_417.0, 3_100.0, 1.4
"""Seconds of Cholesky of 256K on 180 cores (Table 1); and what pipelining gained there (Section 5.4)."""


@dataclass(frozen=True, slots=True)
class Run:
    """One case, simulated."""

    seconds: float
    busy: float
    """The part of the time that workers are in kernels."""
    moved: int
    memory: int
    """On the node that holds most."""
    policy: str


def instances(cores: int) -> Cluster:
    """So many cores, on as few instances as have them."""
    whole, rest = divmod(cores, CORES)
    sizes = [CORES] * whole + [rest] * (rest > 0)
    return Cluster([Node(workers, flops=RATE) for workers in sizes], between=LINK)


def workload(bound: BoundProgram, tile: int) -> Workload:
    """A program on inputs of which only the cut is known."""
    inputs = {
        name: TiledArray(Layout.regular(tuple(n * tile for n in bound.grid(name)), tile), np.dtype(float), {})
        for name in ("A", "B")
        if name in bound.program.arrays
    }
    return Workload.of(bound, inputs)


def planned(work: Workload, cluster: Cluster, known: Calibration) -> Run:
    """Nodes keep tiles, and a plan says what moves: the cheapest one where that is found within seconds."""
    policy = "auto" if work.count <= MANY else square(work, cluster)
    return _run(choose(work, cluster, policy, known.seconds(work, cluster)))


def square(work: Workload, cluster: Cluster) -> Policy:
    """Whoever owns a tile computes it, on the grid of nodes that is most nearly a square."""
    return min(Owner.variants(work, cluster), key=lambda policy: sum(policy.grid))


def stateless(work: Workload, cores: int, known: Calibration, pipelined: bool) -> Run:
    """Every task reads from a store and writes to it; any core takes any task."""
    pool = Cluster(nodes=1, workers=cores, flops=RATE)
    computing = known.seconds(work, pool)
    tiles = np.diff(work.read_start) + np.diff(work.write_start)
    size = int(work.tile_bytes[0])
    storing = tiles * (LINK.latency + size * CORES / LINK.bandwidth)
    seconds = np.maximum(computing, storing) if pipelined else computing + storing
    found = _run(choose(work, pool, "auto", seconds))
    used = float(computing.sum()) / (found.seconds * cores)
    return Run(found.seconds, used, int(tiles.sum()) * size, 0, "any core")


def _run(plan: Plan) -> Run:
    cost = plan.cost
    spent = float((plan.simulated.finish - plan.simulated.start).sum())
    busy = spent / (cost.seconds * plan.cluster.workers)
    return Run(cost.seconds, busy, cost.bytes_moved, cost.peak_memory, plan.policy)


def row(what: str, target: str, run: Run, kept: bool | None = None, **more: Any) -> Row:
    parts = [f"{run.seconds:,.0f} s", f"{run.busy:.0%} busy", f"{human(run.moved)} moved"]
    parts += [f"{human(run.memory)} a node"] if run.memory else []
    numbers = {"seconds": run.seconds, "busy": run.busy, "moved": run.moved, "memory": run.memory, **more}
    return Row(what, target, ", ".join([*parts, run.policy]), kept, numbers)


# ---- sections


def cholesky_rows(known: Calibration, size: int, label: str) -> list[Row]:
    """Cholesky with tiles of 4096 on 180 and 1,800 cores."""
    work = workload(cholesky.bind(N=size // 4096), 4096)
    rows: list[Row] = []
    for cores in (180, 1800):
        what = f"Cholesky {label}, {cores:,} cores"
        paper = label == "256K" and cores == 180
        ideal = f"all cores busy {float(work.flops.sum()) / cores / RATE:,.0f} s"
        rows.append(
            row(f"{what}, planned", f"ScaLAPACK {SCALAPACK:,.0f} s" if paper else ideal,
                planned(work, instances(cores), known), ideal=float(work.flops.sum()) / cores / RATE)
        )  # fmt: skip
        plain = stateless(work, cores, known, pipelined=False)
        piped = stateless(work, cores, known, pipelined=True)
        rows.append(row(f"{what}, stateless", "", plain))
        rows.append(
            row(f"{what}, stateless, pipelined", f"numpywren {NUMPYWREN:,.0f} s" if paper else "", piped)
        )
        if paper:
            gain = plain.seconds / piped.seconds
            rows.append(
                Row(
                    "   gained by pipelining",
                    f"{PIPELINING:.1f} times",
                    f"{gain:.2f} times",
                    None,
                    {"gain": gain},
                )
            )
    return rows


def block_rows(known: Calibration) -> list[Row]:
    """Figure 10a: which size of a block is fast on few cores, which on many."""
    rows: list[Row] = []
    told = {180: "the larger the faster", 1800: "the largest is slowest"}
    for cores, words in told.items():
        found = {}
        for tile in (2048, 4096, 8192):
            work = workload(cholesky.bind(N=262_144 // tile), tile)
            found[tile] = stateless(work, cores, known, pipelined=True).seconds
        ordered = sorted(found, key=found.__getitem__)
        kept = ordered == [8192, 4096, 2048] if cores == 180 else ordered[-1] == 8192
        shown = ", ".join(f"{tile}: {seconds:,.0f} s" for tile, seconds in found.items())
        rows.append(
            Row(f"blocks of Cholesky 256K, {cores:,} cores, stateless", words, shown, kept, dict(found))
        )
    return rows


def weak_rows(known: Calibration) -> list[Row]:
    """Figure 8c: cores grow as the square root of 10 a step from 57 to 1,800, the matrix from 64K to 512K."""
    rows: list[Row] = []
    for step, label in enumerate(("64K", "128K", "256K", "512K")):
        cores = round(57 * (1800 / 57) ** (step / 3))
        size = 65_536 << step
        work = workload(cholesky.bind(N=size // 4096), 4096)
        ideal = float(work.flops.sum()) / cores / RATE
        for name, run in (
            ("planned", planned(work, instances(cores), known)),
            ("stateless, pipelined", stateless(work, cores, known, pipelined=True)),
        ):
            rows.append(
                row(f"Cholesky {label}, {cores:,} cores, {name}", f"all cores busy {ideal:,.0f} s", run,
                    cores=cores, size=size, ideal=ideal)
            )  # fmt: skip
    return rows


def product_rows(known: Calibration) -> list[Row]:
    """Products whose matrices take the same room on each node."""
    rows: list[Row] = []
    for nodes in (1, 4, 16, 64):
        tiles = 8 * round(nodes**0.5)
        work = workload(accumulated_gemm.bind(M=tiles, N=tiles, K=tiles), 4096)
        cluster = instances(nodes * CORES)
        ideal = float(work.flops.sum()) / cluster.workers / RATE
        run = planned(work, cluster, known)
        rows.append(
            row(f"product of {tiles * 4}K on {nodes} nodes", f"all cores busy {ideal:,.0f} s", run,
                nodes=nodes, efficiency=ideal / run.seconds)
        )  # fmt: skip
    return rows


def speed_rows(known: Calibration) -> list[Row]:
    """How long simulating a million tasks takes, from the program to the plan."""
    cluster = instances(1800)
    start = time.perf_counter()
    work = workload(cholesky.bind(N=181), 4096)
    read = time.perf_counter()
    plan = choose(work, cluster, square(work, cluster), known.seconds(work, cluster))
    seconds = plan.seconds
    end = time.perf_counter()
    text = f"{end - start:.1f} s: {read - start:.1f} s for the workload, {end - read:.1f} s for the plan"
    numbers = {"tasks": work.count, "seconds": end - start, "virtual": seconds}
    return [Row(f"simulating {work.count:,} tasks", "≤ 60 s", text, end - start <= 60, numbers)]


SECTIONS = {
    "256k": lambda known: cholesky_rows(known, 262_144, "256K"),
    "1m": lambda known: cholesky_rows(known, 1_048_576, "1M"),
    "blocks": block_rows,
    "weak": weak_rows,
    "products": product_rows,
    "speed": speed_rows,
}


# ---- the picture


def draw(found: dict[str, list[Row]], path: Path) -> None:
    """Weak scaling and the two large cases, with the paper's points (needs matplotlib)."""
    from matplotlib.figure import Figure

    figure: Any = Figure(figsize=(9, 3.4), layout="constrained")
    left, right = figure.subplots(1, 2)
    colours = {"planned": "#2f6f9f", "stateless, pipelined": "#c2571a", "stateless": "#b8952a"}
    rows = found.get("weak", [])
    for name in ("planned", "stateless, pipelined"):
        mine = [each.numbers for each in rows if each.what.endswith(f"cores, {name}")]
        left.plot([each["size"] for each in mine], [each["seconds"] for each in mine], "o-",
                  color=colours[name], label=f"simulated, {name}")  # fmt: skip
    ideal = {each.numbers["size"]: each.numbers["ideal"] for each in rows}
    left.plot(list(ideal), list(ideal.values()), "--", color="#6b6b6b", label="all cores busy")
    left.set(xscale="log", yscale="log", xlabel="rows of the matrix, on 57 to 1,800 cores", ylabel="seconds",
             title="Cholesky, weak scaling")  # fmt: skip
    bars = [each for name in ("256k", "1m") for each in found.get(name, []) if "seconds" in each.numbers]
    for place, each in enumerate(bars):
        kind = next(name for name in sorted(colours, key=len, reverse=True) if each.what.endswith(name))
        right.bar(place, each.numbers["seconds"], color=colours[kind])
    titles = [each.what.removeprefix("Cholesky ").split(", ")[:2] for each in bars]
    for seconds, colour, name in ((SCALAPACK, "#1b3d57", "ScaLAPACK"), (NUMPYWREN, "#7a2f0a", "numpywren")):
        right.hlines(seconds, -0.5, 2.5, color=colour, linestyle=":", label=f"{name}, the paper's Table 1")
    right.set_xticks([3 * k + 1 for k in range(len(bars) // 3)],
                     ["\n".join(titles[3 * k]) for k in range(len(bars) // 3)])  # fmt: skip
    right.set(
        yscale="log", ylim=(300, 2e6), ylabel="seconds", title="Cholesky: planned, stateless, pipelined"
    )
    left.set_xticks(list(ideal), [f"{size >> 10}K" for size in ideal])
    left.minorticks_off()
    for axes in (left, right):
        axes.legend(fontsize=7, loc="upper left")
        axes.tick_params(which="both", labelsize=8)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SECTIONS, default=list(SECTIONS), help="some sections")
    parser.add_argument("--quick", action="store_true", help="everything but a million rows and tasks")
    parser.add_argument(
        "--calibration", type=Path, help="a file with rates of kernels; made if it is not there"
    )
    parser.add_argument("--picture", type=Path, help="draw weak scaling and large cases: an SVG or PNG file")
    parser.add_argument("--json", type=Path, help="write all numbers to this file")
    options = parser.parse_args()
    if options.calibration and options.calibration.exists():
        known = Calibration.load(options.calibration)
    else:
        known = calibrate((128, 256, 512, 1024))
        if options.calibration:
            known.save(options.calibration)
    wanted = [name for name in options.only if not (options.quick and name in ("1m", "speed"))]
    found = {name: SECTIONS[name](known) for name in wanted}
    show([row for rows in found.values() for row in rows], "Clusters in virtual time", options.json)
    if options.picture:
        draw(found, options.picture)


if __name__ == "__main__":
    main()
