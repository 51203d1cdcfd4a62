"""A job with a deadline, on spot servers while there are any and on on-demand servers when it must be.

Time goes in ticks, those of a trace of whether a spot server could be had. At each tick a policy says what to
run on: nothing, spot, or on-demand. Starting a server takes `overhead` hours before it does any work; work
done is kept when a server is lost. Whole ticks are billed. A policy sees the past since its start and whether
there is spot now, never what comes.

- `greedy`: spot while there is any, nothing otherwise, until on-demand for good is the last chance.
- `uniform progress`: also on-demand whenever it is behind the line work·t/deadline (Wu et al., Can't Be Late,
  2024).
- `linnet`: the cheapest course under what was seen so far. Spot comes and goes as a Markov chain whose two
  rates are estimated on the way, and the course is the optimum of a dynamic program over time, work left,
  server in use and spot at hand, among the courses that cannot miss the deadline.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, log
from os import PathLike, fspath
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from linnet.errors import FileMissingError, FormatError, InputError

Server: TypeAlias = Literal["nothing", "spot", "on-demand"]
SERVERS: tuple[Server, ...] = ("nothing", "spot", "on-demand")
EPSILON = 1e-9


@dataclass(frozen=True, slots=True)
class Trace:
    """Whether a spot server could be had, tick by tick."""

    tick: float
    """Hours of a tick."""
    spot: tuple[bool, ...]
    """Whether there was spot in each."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be done."""

    work: float
    """Hours of work."""
    deadline: float
    """Hours it may take."""
    overhead: float
    """Hours a server takes to start."""
    spot_price: float
    """Price of spot, that of on-demand being 1."""
    tick: float
    """Hours between two decisions."""

    @property
    def margin(self) -> float:
        """Hours beyond the work left at which on-demand for good is the last chance."""
        return max(2 * self.overhead, self.overhead + self.tick)


@dataclass(slots=True)
class Situation:
    """What a policy sees at a tick."""

    task: Task
    """What is to be done."""
    elapsed: float
    """Hours since the start."""
    left: float
    """Hours of work left."""
    server: Server
    """What it ran on until now; spot that was lost is nothing."""
    starting: float
    """Hours this server still takes to start."""
    spot: bool
    """Whether there is spot now."""
    seen: Sequence[bool]
    """Whether there was spot, at every tick since the start, this one the last."""
    changes: tuple[int, int, int, int]
    """How often spot went, stayed, came, and stayed away, from one tick to the next."""

    @property
    def done(self) -> float:
        """Hours of work done."""
        return self.task.work - self.left

    @property
    def last_chance(self) -> bool:
        """Whether only on-demand, from now on, is sure to meet the deadline."""
        return self.left + self.task.margin >= self.task.deadline - self.elapsed - EPSILON

    def is_safe(self, server: Server) -> bool:
        """Whether on-demand, begun at the next tick, would still meet the deadline, should spot go then."""
        task, left = self.task, self.left
        if server == "on-demand":
            return True
        if server == "spot":
            left -= max(0.0, task.tick - (self.starting if self.server == "spot" else task.overhead))
        rest = task.deadline - self.elapsed - task.tick
        return left <= EPSILON or left + task.overhead <= rest + EPSILON


Policy: TypeAlias = Callable[[Situation], Server]


@dataclass(frozen=True, slots=True)
class DeadlineRun:
    """What became of a job."""

    cost: float
    """In hours of an on-demand server."""
    finished: bool
    """Whether it was done by the deadline."""
    hours: float
    """When it was done; the deadline if it was not."""
    servers: tuple[Server, ...]
    """What it ran on, tick by tick."""


def greedy(now: Situation) -> Server:
    """Spot while there is any; on-demand for good at the last chance."""
    if now.server == "spot":
        return "spot"
    if now.last_chance or now.server == "on-demand":
        return "on-demand"
    return "spot" if now.spot else "nothing"


def uniform_progress(now: Situation) -> Server:
    """Along the line from nothing done at the start to all done at the deadline."""
    task = now.task
    if now.server == "spot":
        return "spot"
    if now.last_chance:
        return "on-demand"
    pace = task.work / task.deadline
    if now.server == "on-demand":
        ahead = now.done > (now.elapsed + 2 * task.overhead) * pace
        return "spot" if now.spot and ahead else "on-demand"
    if now.spot:
        return "spot"
    return "on-demand" if now.done < now.elapsed * pace else "nothing"


def cheapest_course(now: Situation) -> Server:
    """The optimum under the rates at which spot has come and gone so far, if it cannot miss the deadline."""
    task = now.task
    went, stayed, came, away = now.changes
    hour = 1 / task.tick
    goes = (went + PRIOR) / (went + stayed + PRIOR * MEAN_PRESENT * hour)
    comes = (came + PRIOR) / (came + away + PRIOR * MEAN_ABSENT * hour)
    ticks = stage_ticks(task)
    course = _course(task, _nearest(1 - (1 - goes) ** ticks), _nearest(1 - (1 - comes) ** ticks))
    stage = ticks * task.tick
    at = len(course) - int((task.deadline - now.elapsed) / stage + EPSILON)
    left = ceil((now.left + now.starting) / stage * PARTS - 1e-6)
    if at >= len(course) or left >= course.shape[1]:
        best = _UNSURE
    else:
        best = int(course[at, left]) >> 2 * (2 * SERVERS.index(now.server) + int(now.spot)) & 3
    wanted: tuple[Server, ...] = ("spot", "nothing") if best == _UNSURE else (SERVERS[best],)
    for each in wanted:
        if (
            (each != "spot" or now.spot)
            and (best != _UNSURE or now.server != "on-demand")
            and now.is_safe(each)
        ):
            return each
    return "on-demand"


POLICIES: dict[str, Policy] = {
    "greedy": greedy,
    "uniform progress": uniform_progress,
    "linnet": cheapest_course,
}
PRIOR = 0.5
"""Changes that count as seen before the start, at the usual rates."""
MEAN_PRESENT, MEAN_ABSENT = 4.0, 3.0
"""Hours spot usually stays, and stays away, before anything was seen."""
STAGE = 1 / 6
"""Hours between two decisions of the dynamic program, about: whole ticks, and at least one."""
PARTS = 5
"""Parts of a stage in which the dynamic program counts work."""
_RATES: list[float] = np.geomspace(0.002, 0.7, 14).tolist()
_NEVER = 1e6
_UNSURE = 3


def stage_ticks(task: Task) -> int:
    """Ticks in a stage of the dynamic program: it looks no closer than ten minutes, whatever the trace."""
    return max(1, round(STAGE / task.tick))


def _nearest(rate: float) -> float:
    """One of a few rates, so that few dynamic programs are solved."""
    place = round(log(min(max(rate, _RATES[0]), _RATES[-1]) / _RATES[0]) / log(_RATES[1] / _RATES[0]))
    return _RATES[place]


@lru_cache(maxsize=400)
def _course(task: Task, goes: float, comes: float) -> NDArray[np.uint16]:
    """The best server by stage and by parts of work left: two bits for each server in use and spot at hand.

    A start counts as more work; work left that could not be done in time on any server has no finite cost,
    and no best server (3).
    """
    stage = stage_ticks(task) * task.tick
    stages = int(np.floor(task.deadline / stage + EPSILON))
    start = int(np.ceil(task.overhead / stage * PARTS - 1e-6))
    size = int(np.ceil(task.work / stage * PARTS - 1e-6)) + start + 1
    left = np.arange(size)
    warm, cold = np.maximum(left - PARTS, 0), np.maximum(left + start - PARTS, 0)
    value = np.full((len(SERVERS), 2, size + start), _NEVER)  # server, whether there is spot, work left
    value[:, :, 0] = 0.0
    course = np.zeros((stages, size), np.uint16)
    chance = np.array([comes, 1 - goes])[:, None]  # of spot at the next stage, by spot now
    no_spot = np.array([_NEVER, 0.0])[:, None]
    for at in range(stages - 1, -1, -1):
        # What comes after each choice, by spot now; a spot server that is lost is nothing.
        nothing, spot, sure = (
            value[used, 1] * chance + value[lost, 0] * (1 - chance) for used, lost in ((0, 0), (1, 0), (2, 2))
        )
        idle = nothing[:, :size]
        spot += task.spot_price * stage + no_spot
        sure += stage
        course[at] = 0
        fresh = {1: spot[:, cold], 2: sure[:, cold]}
        for used in range(len(SERVERS)):
            on_spot = spot[:, warm] if used == 1 else fresh[1]
            on_demand = sure[:, warm] if used == 2 else fresh[2]
            least = np.minimum(np.minimum(idle, on_spot), on_demand)
            best = np.where(least == idle, 0, np.where(least == on_spot, 1, 2))
            best = np.where(least < _NEVER, best, _UNSURE).astype(np.uint16)
            course[at] |= (best[0] | best[1] << 2) << 4 * used
            value[used, :, :size] = np.minimum(least, _NEVER)
        value[:, :, 0] = 0.0
    return course


def simulate_deadline(
    trace: str | PathLike[str] | Mapping[str, Any] | Trace,
    work: float = 24,
    deadline: float = 32,
    overhead: float = 0.2,
    spot_price: float = 1 / 3,
    policy: str | Policy = "linnet",
    start: float = 0,
) -> DeadlineRun:
    """Run a job with a deadline along a trace of spot availability.

    Parameters
    ----------
    trace : a JSON file, or what is in one: `metadata.gap_seconds`, and `data`, a list of 0 and 1
    work, deadline : hours
    overhead : hours a server takes to start
    spot_price : price of spot, that of on-demand being 1
    policy : "linnet", "uniform progress", "greedy", or a function from `Situation` to "nothing", "spot" or
        "on-demand"
    start : where on the trace the job begins, in hours

    Returns
    -------
    DeadlineRun with `cost` in hours of an on-demand server, and `finished`

    Examples
    --------
    >>> from linnet.fleet import simulate_deadline
    >>> trace = {"metadata": {"gap_seconds": 600}, "data": [1] * 60 + [0] * 60}
    >>> run = simulate_deadline(trace, work=5, deadline=8, policy="greedy")
    >>> run.finished, round(run.cost, 3)
    (True, 1.778)
    """
    line = trace if isinstance(trace, Trace) else read_trace(trace)
    decide = policy if callable(policy) else POLICIES.get(policy)
    if decide is None:
        raise InputError(
            f"no policy is called {policy!r}; there are {', '.join(POLICIES)}, or give a function"
        )
    first = round(start / line.tick)
    if not (np.isfinite(deadline) and deadline > 0):
        raise InputError(f"deadline must be hours above 0, not {deadline!r}")
    ticks = int(np.floor(deadline / line.tick + EPSILON))  # a tick that the deadline cuts is not used
    task = _checked(Task(work, ticks * line.tick, overhead, spot_price, line.tick))
    if start < 0 or first + ticks > len(line.spot):
        raise InputError(
            f"{deadline:g} h from hour {start:g} on are beyond the trace, which has "
            f"{len(line.spot) * line.tick:g} h"
        )
    return _run(task, decide, line.spot[first : first + ticks])


def _checked(task: Task) -> Task:
    if not (np.isfinite(task.work) and task.work > 0):
        raise InputError(f"work must be hours above 0, not {task.work!r}")
    if not (np.isfinite(task.overhead) and task.overhead >= 0):
        raise InputError(f"overhead must be hours of at least 0, not {task.overhead!r}")
    if not 0 <= task.spot_price <= 1:
        raise InputError(
            f"spot_price must be a share of the on-demand price, from 0 to 1, not {task.spot_price!r}"
        )
    if task.deadline + EPSILON < task.work + task.overhead:
        raise InputError(
            f"{task.work:g} h of work and {task.overhead:g} h to start a server do not fit a deadline of "
            f"{task.deadline:g} h in whole ticks, even on demand"
        )
    return task


def _run(task: Task, decide: Policy, spot: Sequence[bool]) -> DeadlineRun:
    left, pending, cost = task.work, 0.0, 0.0
    server: Server = "nothing"
    used: list[Server] = []
    counts = [0, 0, 0, 0]
    prices = {"nothing": 0.0, "spot": task.spot_price, "on-demand": 1.0}
    for at, here in enumerate(spot):
        if at:
            counts[(0 if not here else 1) if spot[at - 1] else (2 if here else 3)] += 1
        if server == "spot" and not here:
            server, pending = "nothing", 0.0
        now = Situation(
            task, at * task.tick, left, server, pending, here, spot[: at + 1],
            (counts[0], counts[1], counts[2], counts[3]),
        )  # fmt: skip
        chosen = decide(now)
        if chosen not in prices or (chosen == "spot" and not here):
            raise InputError(
                f"the policy chose {chosen!r} at hour {at * task.tick:g}, where there is no such server"
            )
        if chosen != server:
            pending = {"nothing": 0.0}.get(chosen, task.overhead)
        server = chosen
        used.append(chosen)
        cost += prices[chosen] * task.tick
        if chosen != "nothing":
            worked = max(0.0, task.tick - pending)
            if worked >= left - EPSILON:
                return DeadlineRun(cost, True, at * task.tick + pending + left, tuple(used))
            left, pending = left - worked, max(0.0, pending - task.tick)
    return DeadlineRun(cost, False, task.deadline, tuple(used))


def read_trace(trace: str | PathLike[str] | Mapping[str, Any]) -> Trace:
    """A trace from a JSON file, or from what is in one."""
    name = "the trace" if isinstance(trace, Mapping) else fspath(trace)
    if isinstance(trace, Mapping):
        found: Any = trace
    else:
        try:
            with open(trace, encoding="utf-8") as file:
                found = json.load(file)
        except FileNotFoundError:
            raise FileMissingError(f"there is no file {name}") from None
        except ValueError as error:
            raise FormatError(f"{name} is no JSON file: {error}") from error
    try:
        seconds, data = float(found["metadata"]["gap_seconds"]), list(found["data"])
    except (KeyError, TypeError, ValueError):
        raise FormatError(
            f"{name} must have metadata.gap_seconds, a number, and data, a list of 0 and 1"
        ) from None
    if not (np.isfinite(seconds) and seconds > 0):
        raise FormatError(f"{name}: gap_seconds is {seconds}, a number above 0 is expected")
    if not data or any(each not in (0, 1) for each in data):
        raise FormatError(f"{name}: data must be a list of 0 and 1, at least one of them")
    return Trace(seconds / 3600, tuple(bool(each) for each in data))
