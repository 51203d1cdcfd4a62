"""The fleet's numbers: reuse by age, selection, deadlines, simulator against processes, speed of decisions.

    python benchmarks/fleet.py [--only reuse|selection|deadlines|local|speed] [--data FOLDER]

`--data` is a folder with `preemption/google_preemptible_2019.csv` and `availability/*.json`; without it a law
with the same numbers is used, and deadlines are left out.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from linnet.fleet import Bag, FittedModel, Fleet, Lifetimes, Local, simulate_deadline
from linnet.fleet.deadlines import read_trace
from linnet.fleet.deciding import Decider
from linnet.fleet.laws import Exponential, Hyperexponential
from linnet.fleet.offers import Offer
from linnet.fleet.planning import Spread
from linnet.fleet.records import Added, Ended, Start, Up
from linnet.fleet.rules import Rules
from linnet.fleet.simulation import Lives, simulate_bag
from linnet.fleet.state import State

GOOGLE = FittedModel(Hyperexponential((0.7606, 0.1777, 0.0617), (0.009881, 0.6113, 6.397)), cap=24)


def law(data: Path | None) -> FittedModel:
    """Of Google's preemptible servers."""
    if data is None:
        return GOOGLE
    return Lifetimes.from_csv(data / "preemption" / "google_preemptible_2019.csv", cap=24).fit(
        "hyperexponential3"
    )


def reuse(data: Path | None) -> None:
    """1,000 jobs of 6 h on 32 servers, all billed until the last job ends; 20 seeds."""
    offer = Offer("s", "s", price=1.0, limit=32, boot=2 / 60, model=law(data))
    calm = simulate_bag(Rules(hours=6.0), [replace(offer, model=None)], [6.0] * 1000).hours
    for name, by_age in (("by age", True), ("restart always", False)):
        rules = Rules(hours=6.0, reuse=by_age)
        ratio = Spread([simulate_bag(rules, [offer], [6.0] * 1000, seed=i).hours / calm for i in range(20)])
        low, high = ratio.quantile(0.1), ratio.quantile(0.9)
        print(f"reuse, {name}: {ratio.mean:.4f} of no preemption (10%: {low:.4f}, 90%: {high:.4f})")
        print(f"  on-demand at three times the price of spot: {3 / ratio.mean:.2f} times ours")


def selection(data: Path | None) -> None:
    """Four types, the cheapest slow, the fastest dying often; least E[C] 15% below the next."""
    right, most = 0, 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        rates, hours = [0.01, 0.02, 0.05, 0.5], [8.0, 4.0, 3.0, 1.5]
        goal = random.permutation([1.0, 1.15, 1.4, 1.9])
        offers = []
        for i, rate in enumerate(rates):
            model = FittedModel(Exponential(rate))
            expected = float(np.asarray(model.expected_time(hours[i], restart=0.05)))
            offers.append(Offer("s", f"t{i}", price=goal[i] / expected, limit=8, boot=0.05, model=model))
        noise = random.uniform(0.95, 1.05, (100, 4))
        run = simulate_bag(
            Rules(), offers, [1.0] * 100, seed=seed, factor=lambda job, o, n=noise, h=hours: h[o] * n[job, o]
        )
        used = np.bincount([job.offer for job in run.state.jobs.values()], minlength=4)
        right += int(np.argmax(used) == np.argmin(goal))
        most = max(most, int(np.sort(used)[:3].max()))
    print(f"selection: the best of four in {right} of 20 seeds, at most {most} exploring job each")


def deadlines(data: Path | None) -> None:
    """24 h of work in 28, 32 and 48 h on availability traces, starts every 6 h."""
    if data is None:
        print("deadlines: no traces; give --data")
        return
    means: dict[str, list[float]] = {"linnet": [], "uniform progress": []}
    for path in sorted((data / "availability").glob("*.json")):
        trace = read_trace(path)
        zone: dict[str, list[float]] = {name: [] for name in means}
        missed = 0
        for deadline in (28, 32, 48):
            for name in means:
                costs = []
                for start in range(0, int(len(trace.spot) * trace.tick - deadline + 1e-9) + 1, 6):
                    run = simulate_deadline(trace, 24, deadline, 0.2, 1 / 3, name, start)
                    costs.append(run.cost)
                    missed += not run.finished
                zone[name].append(float(np.mean(costs)))
        for name, values in zone.items():
            means[name] += values
        ratio = np.mean(zone["linnet"]) / np.mean(zone["uniform progress"])
        print(f"deadlines, {path.stem}: {ratio:.3f} of Uniform Progress, {missed} missed")
    print(
        f"deadlines: {np.mean(means['linnet']) / np.mean(means['uniform progress']):.3f} of Uniform Progress"
    )


SAVES = """
import json, os, sys, time
here = os.environ["LINNET_CHECKPOINTS"]
path, plan = here + "/state.json", os.environ.get("LINNET_CHECKPOINT_PLAN", "")
parts = [3600 * float(each) for each in plan.split(",") if each] or [1e9]
seconds, cost, turn = float(sys.argv[1]), float(sys.argv[2]), 0
done = json.load(open(path))["work"] * 3600 if os.path.exists(path) else 0.0
while done + parts[min(turn, len(parts) - 1)] < seconds - 1e-3:
    time.sleep(parts[min(turn, len(parts) - 1)] + cost)
    done += parts[min(turn, len(parts) - 1)]
    turn += 1
    json.dump({"state": 0, "work": done / 3600}, open(path + ".part", "w"))
    os.replace(path + ".part", path)
time.sleep(max(0.0, seconds - done))
open(here + "/worked", "w").write(repr(seconds / 3600))
"""
"""A job that saves itself at the intervals it is told; it starts in milliseconds."""


def compare_local(
    jobs: int = 200, servers: int = 8, hours: float = 1.5, seed: int = 1, checkpoint: float | None = None
) -> tuple[float, float]:
    """Cost and makespan of real processes at ×3600 over those of the simulator with what was measured."""
    model = FittedModel(Exponential(1 / 12 if checkpoint is None else 1 / 2), cap=24)
    command = ["sleep", "{s}"]
    if checkpoint is not None:
        command = [sys.executable, "-I", "-S", "-c", SAVES, "{s}", str(checkpoint)]
    with tempfile.TemporaryDirectory() as folder:
        bag = Bag(
            command, {"s": [hours], "n": list(range(jobs))}, hours=hours, checkpoint=checkpoint,
            folder=f"{folder}/bag",
        )  # fmt: skip
        bag.run(Fleet([Local(servers, price=1.0, model=model, speed=3600, seed=seed)]))
        state = bag.state()
        seen = state.measured["local"]
        offer = Offer(
            "local", "local", price=1.0, limit=servers, boot=seen.boot_hours / seen.boots, model=model
        )
        run = simulate_bag(
            Rules(hours=hours, checkpoint=checkpoint), [offer], [seen.hours / seen.count] * jobs,
            gap=seen.gap_hours / seen.gaps, lives=[Lives(model, seed)],
        )  # fmt: skip
        return state.cost() / run.cost, state.now / run.hours


def local(data: Path | None) -> None:
    """200 jobs on real processes at ×3600, and the same simulated."""
    for what, checkpoint in (("jobs", None), ("jobs that save themselves", 0.02)):
        cost, makespan = compare_local(checkpoint=checkpoint)
        print(f"local over simulated, 200 {what}: cost {cost:.3f}, makespan {makespan:.3f}")


def speed(data: Path | None) -> None:
    """A decision with 10,000 jobs and 1,000 servers; 100,000 jobs simulated."""
    offer = Offer("s", "s", price=1.0, limit=1000, boot=0.03, model=law(data))
    state = State(Rules(hours=6.0), [offer])
    decider = Decider(state)
    state.apply(Added(0.0, tuple(range(10_000))))
    decider.decide(0.0)
    for server in range(1000):
        state.apply(Up(0.03, server))
    started = [each.attempt for each in decider.decide(0.03) if isinstance(each, Start)]
    times = []
    for i, attempt in enumerate(started[:900]):
        now = 6.03 + i * 1e-4
        begun = time.perf_counter()
        state.apply(Ended(now, attempt, 0, 6.0))
        decider.decide(now)
        times.append(time.perf_counter() - begun)
    print(f"a decision: median {np.median(times) * 1e6:.0f} µs, 99%: {np.quantile(times, 0.99) * 1e6:.0f} µs")
    best = np.inf
    for _ in range(3):
        begun = time.perf_counter()
        simulate_bag(Rules(hours=6.0), [offer], [6.0] * 100_000, seed=1)
        best = min(best, time.perf_counter() - begun)
    print(f"100,000 jobs simulated: {best:.2f} s")


PARTS = {"reuse": reuse, "selection": selection, "deadlines": deadlines, "local": local, "speed": speed}

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--data", type=Path)
    given = parser.parse_args()
    for name, part in PARTS.items():
        if given.only in (None, name):
            part(given.data)
