"""A bag in virtual time: the controller's own state and decisions, on servers that are only drawn at random.

What takes hours on servers takes microseconds here, so a bag is run some dozens of times before it is paid
for.
The n-th server of an offer lives as long as `Lives` says for a seed; the local provider asks the same, so
that a
simulation and a run on this machine see the same losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from typing import TypeAlias

import numpy as np

from linnet.errors import InputError
from linnet.fleet.deciding import Decider
from linnet.fleet.model import Model
from linnet.fleet.offers import Offer
from linnet.fleet.policies import StopRule
from linnet.fleet.records import Added, Ended, Launch, Lost, Start, Up
from linnet.fleet.rules import Rules
from linnet.fleet.simulated_work import SimulatedWork
from linnet.fleet.state import State

_BLOCK = 256
_AT_ONCE = 32
Happening: TypeAlias = "Up | Lost | Ended"


class Lives:
    """How long the n-th server under a model lives, for a seed: the same wherever it is asked."""

    def __init__(self, model: Model | None, seed: int, stream: int = 0) -> None:
        self._model, self._seed, self._stream = model, seed, stream
        self._blocks: dict[int, list[float]] = {}

    def __call__(self, number: int) -> float:
        """Hours from its launch until it is taken away; infinite without a model."""
        if self._model is None:
            return inf
        block, place = divmod(number, _BLOCK)
        if block not in self._blocks:
            self._draw(self._model, block)
        return self._blocks[block][place]

    def _draw(self, model: Model, first: int) -> None:
        """Blocks from this one on, as many as there are already: each by a seed of its own, all at one go."""
        blocks = range(first, first + min(max(1, len(self._blocks)), _AT_ONCE))
        seeds = [[self._seed, self._stream, block] for block in blocks]
        shares = [np.random.default_rng(seed).random(_BLOCK) for seed in seeds]
        drawn = np.asarray(model.quantile(np.concatenate(shares))).reshape(-1, _BLOCK).tolist()
        self._blocks.update(zip(blocks, drawn, strict=True))


@dataclass(frozen=True, slots=True)
class BagRun:
    """What became of a bag in one simulation."""

    cost: float
    """Dollars."""
    hours: float
    """Until it was over."""
    done: int
    failed: int
    dropped: int
    preemptions: int
    server_hours: float
    """Of all servers, boots included."""
    closed: str
    """Why it was over."""
    state: State
    decider: Decider


def simulate_bag(
    rules: Rules,
    offers: Sequence[Offer],
    hours: Sequence[float],
    *,
    seed: int = 0,
    rule: StopRule | None = None,
    factor: Callable[[int, int], float] | None = None,
    slower: Callable[[int, int], float] | None = None,
    gap: float = 0.0,
    lives: Sequence[Callable[[int], float]] | None = None,
) -> BagRun:
    """Run a bag in virtual time.

    Parameters
    ----------
    rules : what the bag asks for
    offers : the servers there are, with their laws
    hours : of each job, on a server of speed 1. If the rules say what a checkpoint costs, jobs save their
        state as the controller would have them, and go on from there
    seed : of the servers' lifetimes
    rule : which jobs are hopeless
    factor : how much longer a job takes on an offer: a function of job and offer; by default 1/speed
    slower : how much longer a job takes on fewer servers than it asked for: a function of both numbers; by
        default the same work is done by fewer
    gap : hours between the end of a job and the beginning of the next on its server
    lives : for each offer, how long its n-th server lives; by default drawn from its law

    Returns
    -------
    a record of cost, hours and what became of the jobs
    """
    state = State(rules, offers)
    decider = Decider(state, rule)
    draws = lives or [Lives(offer.model, seed, i) for i, offer in enumerate(offers)]
    speeds = [1.0 / (offer.speed or 1.0) for offer in offers]
    work = SimulatedWork(
        hours,
        decider,
        factor or (lambda job, offer: speeds[offer]),
        slower or (lambda servers, asked: asked / servers),
        gap,
    )
    launched = [0] * len(offers)
    queue: list[tuple[float, int, Happening | None]] = []
    count = 0
    state.apply(Added(0.0, tuple(range(len(hours)))))
    now, woken = 0.0, inf
    wakes = rules.budget is not None or rules.deadline is not None or len(offers) > 1
    while True:
        for decision in decider.decide(now):
            if type(decision) is Start:
                took, whole = work.begin(decision, now)
                count += 1
                at = now + gap + took
                heappush(queue, (at, count, Ended(at, decision.attempt, 0, took, False, whole)))
            elif type(decision) is Launch:
                offer = decision.offer
                life = draws[offer](launched[offer])
                launched[offer] += 1
                boot = offers[offer].boot
                if boot < life:
                    count += 1
                    heappush(queue, (now + boot, count, Up(now + boot, decision.server)))
                if life < inf:
                    count += 1
                    heappush(queue, (now + life, count, Lost(now + life, decision.server)))
        if state.closed is not None:
            break
        if wakes:
            wake = decider.wake(now)
            if wake < woken or woken <= now:
                woken = wake
                if wake < inf:
                    count += 1
                    heappush(queue, (wake, count, None))
        now = _next(queue, state, work, now)
    return BagRun(
        state.cost(), now, state.done, state.failed, state.dropped, state.preemptions,
        sum(each[1] for each in state.lost_lives), state.closed, state, decider,
    )  # fmt: skip


def _next(
    queue: list[tuple[float, int, Happening | None]], state: State, work: SimulatedWork, now: float
) -> float:
    """Let the next event happen that still means something; the time it happens at."""
    while queue:
        at, _, event = heappop(queue)
        if event is None:
            return at
        if isinstance(event, Ended):
            if event.attempt not in state.running:
                continue
            work.ended(event.attempt)
        elif state.servers[event.server].ended is not None:
            continue
        elif isinstance(event, Lost):
            work.lost(event.server, at)
        state.apply(event)
        return at
    raise InputError(
        "the bag cannot go on: no server can be asked for, or none is large enough for its jobs "
        f"({len(state.waiting)} wait after {now:.3g} h)"
    )
