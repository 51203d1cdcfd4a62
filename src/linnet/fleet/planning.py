"""What a bag will cost and how long it will take, before it is paid for: many simulations, as quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from linnet.errors import InputError
from linnet.fleet.knowledge import Knowledge
from linnet.fleet.offers import Offer
from linnet.fleet.policies import Evidence, StopRule
from linnet.fleet.rules import Rules
from linnet.fleet.simulation import BagRun, simulate_bag
from linnet.fleet.state import State

_JOBS = 60_000
"""Simulated jobs of a plan, over all its runs."""


ENDLESS = 1e4
"""A job that takes so many times its length on average is not simulated."""


class Spread:
    """A number that is not known for sure: what it was in each simulation."""

    def __init__(self, values: Sequence[float]) -> None:
        self.values: NDArray[np.float64] = np.sort(np.asarray(values, np.float64))
        """In increasing order."""

    @property
    def mean(self) -> float:
        """Their mean."""
        return float(self.values.mean())

    def quantile(self, q: float) -> float:
        """What it is at most with probability q."""
        if not 0 <= q <= 1:
            raise InputError(f"q must lie between 0 and 1, not {q!r}")
        return float(np.quantile(self.values, q))

    def above(self, limit: float) -> float:
        """The probability that it is more than this."""
        return float((self.values > limit * (1 + 1e-12)).mean())

    def __repr__(self) -> str:
        return f"{self.quantile(0.5):.4g} (90%: {self.quantile(0.9):.4g})"


@dataclass(frozen=True)
class Plan:
    """A bag before it is run. `print(plan)` shows all of it.

    `cost` and `hours` have `.mean` and `.quantile(q)`; `on_demand`, `restart_always` and `no_preemption` are
    the same
    bag on servers that cannot be lost, on servers that are kept until they are lost, and without losses.
    """

    name: str
    jobs: int
    cost: Spread
    """Dollars."""
    hours: Spread
    """Until the bag is over."""
    preemptions: Spread
    done: Spread
    """Jobs that are done in the end: fewer than all if the budget or a fraction ends the bag."""
    deadline: float | None = None
    budget: float | None = None
    evidence: tuple[Evidence, ...] = ()
    """What each offer is expected to cost for a job."""
    on_demand: Plan | None = None
    restart_always: Plan | None = None
    no_preemption: Plan | None = None
    notes: tuple[str, ...] = ()

    @property
    def deadline_risk(self) -> float | None:
        """Probability that the deadline is missed; None without one."""
        return None if self.deadline is None else self.hours.above(self.deadline)

    def __str__(self) -> str:
        lines = [
            f"{self.jobs} jobs",
            f"{'':22}{'dollars':>10}{'90%':>10}{'hours':>10}{'90%':>10}{'losses':>9}",
        ]
        shown = (self, self.on_demand, self.restart_always, self.no_preemption)
        lines += [
            f"  {each.name:20}{each.cost.quantile(0.5):10.2f}{each.cost.quantile(0.9):10.2f}"
            f"{each.hours.quantile(0.5):10.2f}{each.hours.quantile(0.9):10.2f}{each.preemptions.mean:9.1f}"
            for each in shown
            if each is not None
        ]
        if self.deadline is not None:
            lines.append(f"deadline {self.deadline:g} h: missed with probability {self.deadline_risk:.2f}")
        if self.budget is not None:
            short = float((self.done.values < self.jobs).mean())
            lines.append(f"budget {self.budget:g} dollars: ends the bag early with probability {short:.2f}")
        if self.evidence:
            lines.append("a job on each kind of server, losses included:")
            ordered = sorted(self.evidence, key=lambda one: one.dollars)
            lines += [f"  {each.name:36}{each.hours:8.3g} h  {each.dollars:9.4g} dollars" for each in ordered]
        return "\n".join([*lines, *self.notes])


def make_plan(
    rules: Rules,
    offers: Sequence[Offer],
    lengths: Sequence[float],
    jobs: int,
    *,
    runs: int | None = None,
    seed: int = 0,
    rule: StopRule | None = None,
    gap: float = 0.0,
    compare: bool = True,
    notes: Sequence[str] = (),
) -> Plan:
    """Simulate a bag many times.

    Parameters
    ----------
    rules, offers : what the bag asks for, and what there is
    lengths : hours of jobs: one for all, or some that were seen, from which each job's is drawn
    jobs : how many
    runs : how many simulations; by default as many as take a few seconds, at most 100
    """
    if runs is not None and (not isinstance(runs, int) or isinstance(runs, bool) or runs < 1):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"runs={runs!r}: give how many simulations, at least 1")
    count = runs or int(np.clip(_JOBS // max(jobs, 1), 5, 100))
    rules = replace(rules, hours=float(np.mean(lengths)))
    offers = [replace(each, speed=each.speed or 1.0) for each in offers]

    def several(name: str, rules: Rules, offers: Sequence[Offer]) -> Plan:
        found: list[BagRun] = []
        for i in range(count):
            rng = np.random.default_rng([seed, i])
            hours = [lengths[0]] * jobs if len(lengths) == 1 else rng.choice(lengths, jobs).tolist()
            found.append(simulate_bag(rules, offers, hours, seed=seed * 1000 + i, rule=rule, gap=gap))
        return Plan(
            name, jobs, Spread([x.cost for x in found]), Spread([x.hours for x in found]),
            Spread([x.preemptions for x in found]), Spread([x.done for x in found]), rules.deadline,
            rules.budget,
            tuple(found[0].decider.known.all_evidence()),
        )  # fmt: skip

    longest = max(lengths)
    if (least := _least_hours(rules, offers, longest)) > ENDLESS * longest:
        raise InputError(
            f"a job of {longest:.3g} h would begin again and again: on the best of these servers it is done "
            f"after {least:.3g} h on average; let it save its state (checkpoint=…), or give servers that "
            "live longer"
        )
    ours = several("this bag", rules, offers)
    if not compare:
        return replace(ours, notes=tuple(notes))
    free = replace(rules, budget=None)
    sure = [each for each in offers if each.market == "on-demand"]
    spot = [each for each in offers if each.market == "spot"] or list(offers)
    always = replace(free, reuse=False, on_demand_after=None, on_loss="replenish", fraction=rules.fraction)
    calm = [replace(each, model=None) for each in spot]
    lasting = _least_hours(always, spot, longest) <= ENDLESS * longest
    return replace(
        ours,
        on_demand=several("on-demand", free, sure) if sure else None,
        restart_always=several("restart always", always, spot) if lasting else None,
        no_preemption=several("no preemption", free, calm),
        notes=tuple(notes),
    )


def _least_hours(rules: Rules, offers: Sequence[Offer], length: float) -> float:
    """Of a job of this length on the best of these servers, losses included."""
    known = Knowledge(State(replace(rules, hours=length), offers))
    known.learn(0.0)
    return min(each for i in known.usable if (each := known.expected_hours(i)) is not None)
