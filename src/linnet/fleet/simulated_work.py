"""How long attempts take in virtual time, and what is left of a job after a loss: all, or what is not saved.

A job of a bag with `checkpoint=…` saves its state by the same schedule that the controller hands to jobs
(`Decider.saves`), and goes on from there. A loss without notice is assumed: what a job saves at the last
moment, where it is told, comes on top.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linnet.fleet.deciding import Decider
from linnet.fleet.records import Start


@dataclass(slots=True)
class _Saves:
    """What an attempt saves on its way."""

    times: list[float]
    """Hours after its beginning, in increasing order."""
    shares: list[float]
    """How much of the whole job is saved then."""


class SimulatedWork:
    """The jobs of a bag in virtual time.

    Parameters
    ----------
    hours : of each job, on a server of speed 1
    decider : knows the schedule, and the servers' ages
    factor : how much longer a job takes on an offer: a function of job and offer
    slower : how much longer it takes on fewer servers: a function of how many, and of how many it asked for
    gap : hours between the beginning of an attempt and that of its job
    """

    def __init__(
        self,
        hours: Sequence[float],
        decider: Decider,
        factor: Callable[[int, int], float],
        slower: Callable[[int, int], float],
        gap: float,
    ) -> None:
        self.hours, self.decider, self.gap = hours, decider, gap
        self.factor, self.slower = factor, slower
        self.state = decider.state
        self._saves = self.state.rules.checkpoint is not None
        self._saved: dict[int, float] = {}
        self._under_way: dict[int, _Saves] = {}

    def begin(self, start: Start, now: float) -> tuple[float, float]:
        """Hours that an attempt will take if its servers live, and hours of the whole job there."""
        state = self.state
        offer = state.servers[start.servers[0]].offer
        whole = self.hours[start.job] * self.factor(start.job, offer)
        if len(start.servers) != state.gangs[offer]:
            whole *= self.slower(len(start.servers), state.gangs[offer])
        if not self._saves:
            return whole, whole
        saved = self._saved.get(start.job, 0.0)
        age = now - min(state.servers[each].launched for each in start.servers)
        plan = self.decider.known.saves(offer, len(start.servers), saved * whole, age)
        if plan is None:
            return (1 - saved) * whole, whole
        cost = state.rules.checkpoint or 0.0
        times: list[float] = []
        shares: list[float] = []
        left, spent, turn = (1 - saved) * whole, 0.0, 0
        while left > (part := plan[min(turn, len(plan) - 1)]) + 1e-9 * whole:
            left, spent, turn = left - part, spent + part + cost, turn + 1
            times.append(spent)
            shares.append(1 - left / whole)
        self._under_way[start.attempt] = _Saves(times, shares)
        return spent + left, whole

    def lost(self, server: int, at: float) -> None:
        """A server is taken away: its jobs keep what they saved."""
        if not self._saves:
            return
        for number in self.state.servers[server].attempts:
            attempt, saves = self.state.running[number], self._under_way.pop(number, None)
            if saves is None:
                continue
            count = bisect_right(saves.times, at - attempt.started - self.gap)
            if count:
                self._saved[attempt.job] = saves.shares[count - 1]

    def ended(self, attempt: int) -> None:
        """It is over, and saves nothing any more."""
        self._under_way.pop(attempt, None)
