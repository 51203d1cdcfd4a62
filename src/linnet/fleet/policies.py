"""Policies: what to do, as pure functions of numbers. The controller and the simulator both call these.

- `Reuse`: keep a server for another job, or start a fresh one, by its age;
- `expected_cost`: what a job costs on a type of server, E[C] = n·c·E[T]; `choose`: the type of least E[C];
- `wanted_gangs`: how many jobs must run side by side for a deadline, N·T/time left;
- `after_loss`: a job whose server was lost runs again, on as many servers or fewer, or is let go;
- `wants_on_demand`: when spot was tried often enough, or time is too short for it;
- `median_stopping`: which jobs are hopeless, by the metric they report.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, inf, isnan
from statistics import median
from typing import Literal, TypeAlias

import numpy as np

from linnet.fleet.checkpoints import Schedule
from linnet.fleet.model import Model
from linnet.fleet.offers import Offer

History: TypeAlias = "Sequence[tuple[float, float]]"
"""The metric of a job: pairs of a step and a value, the latest last. Smaller is better."""
StopRule: TypeAlias = "Callable[[History, Sequence[History]], bool]"
"""Whether a job is hopeless, by its own metric and those of the others."""
AfterLoss: TypeAlias = Literal["replenish", "smaller", "discard"]

_AGES = 512


class Reuse:
    """Whether to keep a server of some age for jobs of some length.

    A fresh server that is given up after K jobs costs, from its launch until it is lost or given up,
    I(boot + K·T) hours on average (I: the integral of the survival S), and finishes
    S(boot + T) + … + S(boot + K·T) jobs. The least ratio over K is g, the hours a job costs in the long run.
    A server of age s is worth keeping if some number m of further jobs costs no more than that:

        I(s + m·T) − I(s) ≤ g·(S(s + T) + … + S(s + m·T))

    Parameters
    ----------
    model : how long servers live; None: for ever
    length : hours of a job
    boot : hours until a fresh server takes its first job
    schedule : by which a job saves its state. Then a loss costs little, and a server is kept if the job is
        expected to be done on it no later than on a fresh one after its boot
    """

    __slots__ = ("_keep", "_step", "hours_per_job")

    def __init__(
        self, model: Model | None, length: float, boot: float, schedule: Schedule | None = None
    ) -> None:
        self.hours_per_job: float = length
        """Hours of servers for each job done, boots and losses included, in the long run."""
        self._keep: list[bool] | None = None
        self._step = 0.0
        if model is None or length <= 0:
            return
        horizon = min(model.limit, 200 * (length + boot) + 100.0)
        if schedule is not None:
            fresh = schedule.expected()
            self.hours_per_job: float = fresh
            self._step = horizon / _AGES
            self._keep = [schedule.expected(i * self._step) <= boot + fresh for i in range(_AGES)]
            return
        counts = int(min(max(1, horizon // length), 400))
        ends = boot + length * np.arange(1, counts + 1)
        done = np.cumsum(np.asarray(model.survival(ends)))
        if not done[0] > 0:
            self.hours_per_job: float = inf
            return  # no fresh server lives long enough, so age tells nothing
        rates = np.asarray(model.integral(ends)) / np.where(done > 0, done, np.nan)
        g = float(np.nanmin(rates))
        self.hours_per_job: float = g
        # A server that is not lost sooner with age is never given up, whatever the horizon cut off.
        self._step = horizon / _AGES
        ages = np.arange(_AGES) * self._step
        after = ages[:, None] + length * np.arange(1, min(counts, 64) + 1)
        gain = g * np.cumsum(np.asarray(model.survival(after)), axis=1)
        spent = np.asarray(model.integral(after)) - np.asarray(model.integral(ages))[:, None]
        worth = np.any(spent <= gain * (1 + 1e-9), axis=1)
        self._keep = [bool(each) for each in np.atleast_1d(worth)]

    def keep(self, age: float) -> bool:
        """Whether a server of this age should take another job."""
        if self._keep is None:
            return True
        place = int(age / self._step + 1e-9)
        if place >= _AGES:
            place = _AGES - 1
        return self._keep[place]


def expected_cost(
    offer: Offer, cores: int, length: float, schedule: Schedule | None = None
) -> tuple[float, float]:
    """Hours and dollars that a job is expected to take on fresh servers of this kind, losses included.

    A gang is lost when any of its servers is, so its hazard is theirs together. A job with a schedule saves
    its state by that, and loses only what it did since; the others begin again.
    """
    gang = offer.gang(cores)
    if offer.model is None:
        hours = length
    elif schedule is not None:
        hours = schedule.expected()
    else:
        hours = gang_hours(offer.model, gang, length, offer.boot)
    return hours, hours * offer.job_price(cores)


def gang_hours(model: Model, gang: int, length: float, restart: float) -> float:
    """Expected hours of a job on `gang` servers that begins again on fresh ones when one is lost."""
    if gang == 1:
        return float(np.asarray(model.expected_time(length, restart=restart)))
    ages = np.linspace(0.0, length, 513)
    alive = np.asarray(model.survival(ages)) ** gang
    if not alive[-1] > 0:
        return inf
    spent = float(np.sum((alive[1:] + alive[:-1]) / 2 * np.diff(ages)))
    return (spent + (1 - float(alive[-1])) * restart) / float(alive[-1])


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about an offer, for choosing among them."""

    offer: int
    """Its number in the fleet."""
    name: str
    servers: int
    """Servers for a job."""
    price: float
    """Dollars an hour of a job."""
    measured: float | None
    """Hours of a job that its type was seen to take; None: not measured."""
    hours: float
    """Expected hours of a job, with losses."""
    dollars: float
    """Expected dollars of a job: n·c·E[T]. For a type that is still being tried, at least this."""
    settled: bool
    """Whether `dollars` is an estimate, not just a bound from below."""


def choose(evidence: Sequence[Evidence]) -> list[int]:
    """Offers by what a job is expected to cost on them, the least first; unknown ones are left out."""
    known = [each for each in evidence if each.settled and each.dollars < inf]
    return [each.offer for each in sorted(known, key=lambda each: (each.dollars, each.hours))]


def is_decided(evidence: Sequence[Evidence]) -> bool:
    """Whether no offer that is still being tried can be better than the best one known."""
    known = [each.dollars for each in evidence if each.settled]
    open_ones = [each.dollars for each in evidence if not each.settled]
    return bool(known) and all(bound >= min(known) for bound in open_ones)


def wanted_gangs(jobs: int, hours: float | None, time_left: float | None) -> int:
    """How many jobs should run side by side: all of them, or just as many as the deadline asks for.

    >>> wanted_gangs(jobs=100, hours=2.0, time_left=50.0)
    4
    """
    if time_left is None or hours is None:
        return jobs
    if time_left <= hours:
        return jobs
    # Jobs are whole: only as many rounds fit as there are whole jobs in the time that is left.
    rounds = max(1, int(time_left / hours + 1e-9))
    return min(jobs, ceil(jobs / rounds))


def after_loss(
    *,
    may_be_dropped: int,
    servers_left: int,
    smallest: int,
    boot: float,
    hours: float,
    servers: int,
    choice: AfterLoss | None = None,
    fewer_hours: float | None = None,
) -> AfterLoss:
    """What becomes of a job one of whose servers was lost.

    Parameters
    ----------
    may_be_dropped : how many jobs of the bag need not be done, because a fraction of it is enough
    servers_left : servers of its gang that still live
    smallest : the fewest servers it can run on
    boot : hours until a fresh server could join
    hours : expected hours of the job on all its servers
    servers : how many it ran on
    choice : what the user decided beforehand; what cannot be done is not done
    fewer_hours : hours of the job on the servers that are left, if that was measured
    """
    if may_be_dropped > 0 and choice in (None, "discard"):
        return "discard"
    if choice == "smaller" and servers_left >= smallest:
        return "smaller"
    if choice is None and 0 < smallest <= servers_left:
        # On fewer servers the same work takes as many server-hours; waiting for a boot costs idle servers.
        longer = (hours * servers / servers_left if fewer_hours is None else fewer_hours) - hours
        if longer <= boot:
            return "smaller"
    return "replenish"


def wants_on_demand(
    preemptions: int,
    after: int | None,
    time_left: float | None,
    hours: float | None,
    boot: float,
) -> bool:
    """Whether a job should run where it cannot be lost.

    Either it was lost `after` times; or, with a deadline, there is just time to run it once more from a boot.
    """
    if after is not None and preemptions >= after:
        return True
    if time_left is None or hours is None:
        return False
    return time_left < 2 * (hours + boot)


def median_stopping(own: History, others: Sequence[History]) -> bool:
    """The median stopping rule: hopeless if its best value so far is worse than the median of the others'.

    The others' values are their means up to the same step, as in Google Vizier (Golovin et al., 2017): the
    latest
    step that it and at least three others reached.

    >>> median_stopping([(1, 5.0)], [[(1, 1.0)], [(1, 2.0)], [(1, 3.0)]])
    True
    """
    reached = sorted((history[-1][0] for history in others if history), reverse=True)
    if not own or len(reached) < 3:
        return False
    step = min(own[-1][0], reached[2])  # the latest that three others reached, too
    means: list[float] = []
    for history in others:
        values = [_worst_if_unknown(value) for at, value in history if at <= step]
        if values and history[-1][0] >= step:
            means.append(sum(values) / len(values))
    mine = [_worst_if_unknown(value) for at, value in own if at <= step]
    return len(means) >= 3 and bool(mine) and min(mine) > median(means)


def _worst_if_unknown(value: float) -> float:
    """A metric that is not a number any more belongs to a job that went astray."""
    return inf if isnan(value) else value


STOP_RULES: Mapping[str, StopRule] = {"median": median_stopping}
