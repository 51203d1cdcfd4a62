"""What is known about offers: how long jobs take on each, what that costs, which is best, which ages to keep.

All of it follows from measurements. It is worked out again when there are a quarter more of these, so that
a decision is quick.
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil, inf, log

from linnet.errors import InputError
from linnet.fleet.checkpoints import Schedule
from linnet.fleet.gangs import gang_model
from linnet.fleet.offers import Offer
from linnet.fleet.policies import Evidence, Reuse, choose, expected_cost, is_decided
from linnet.fleet.state import State

TRIES = 3
"""Servers of a type that may be lost before they tell how fast it is."""
WORTH = 0.99
"""A smaller gang must cost less than this share of a larger one: its jobs take longer."""


class Knowledge:
    """About the offers of one bag; it reads the state, and changes nothing."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.evidence: list[Evidence] = []
        """What a job costs on each offer."""
        self.sizes: list[Evidence] = []
        """What a job costs on fewer servers, where that was tried."""
        self.ranking: list[int] = []
        """Offers, the best first."""
        self.hours: list[float | None] = [None] * len(state.offers)
        """Of a job on each offer, without losses, as far as is known."""
        self.expected: list[float | None] = self.hours
        """The same with losses."""
        self.worthless: set[int] = set()
        """Offers on which a job would never be done."""
        self._next_known = 0
        self._reuse: dict[int, Reuse] = {}
        self._tables: dict[tuple[int, int, int], Reuse] = {}
        self._schedules: dict[tuple[int, int, int], Schedule] = {}
        self._sizes: dict[int, int] = {}
        self._next_sizes: dict[int, int] = {}
        self._sized: int = 0
        self.usable: list[int] = [i for i, offer in enumerate(state.offers) if self._fits(offer)]
        """Offers on which jobs can run."""
        if not self.usable:
            there = "; ".join(
                f"{each.name}, {each.cores} cores, at most {each.limit}" for each in state.offers
            )
            asked = f"{state.rules.cores} cores"
            if state.rules.memory is not None:
                asked += f" and {state.rules.memory:.3g} bytes"
            raise InputError(f"no server can be asked for: a job has {asked}, and the fleet has {there}")
        self.several: bool = len({state.offers[i].type for i in self.usable}) > 1
        """Whether there are several types to choose from."""

    def _fits(self, offer: Offer) -> bool:
        asked, has = self.state.rules.memory, offer.memory
        gang = offer.gang(self.state.rules.cores)
        enough = offer.limit is None or offer.limit >= gang
        return enough and (
            asked is None or has is None or has * gang >= asked * offer.slots(self.state.rules.cores)
        )

    def learn(self, now: float) -> None:
        """Work it out again, if there are enough new measurements."""
        state = self.state
        done, sized = state.done, len(state.sized)
        exploring = self.several and bool(state.exploring)
        if self.ranking and done < self._next_known and not exploring and sized == self._sized:
            return
        self._next_known, self._sized = done + max(1, done // 4), sized
        self.hours = [self.length(i) for i in range(len(state.offers))]
        self._choose_sizes(now)
        self.expected = [self._with_losses(i) for i in range(len(state.offers))]
        self._reuse.clear()
        self.evidence = [self._evidence(i, now) for i in self.usable]
        ranking = choose(self.evidence)
        # Offers of which nothing is known yet come last, the cheapest first.
        rest = [i for i in self.usable if i not in ranking]
        rest.sort(key=lambda i: state.offers[i].job_price(state.rules.cores))
        self.ranking = ranking + rest
        self.worthless = {each.offer for each in self.evidence if each.settled and each.dollars == inf}
        if len(self.worthless) == len(self.usable):
            self.worthless = set()  # jobs are too long for every server: try nevertheless

    def length(self, offer: int) -> float | None:
        """Hours of a job on an offer, without losses, as far as is known."""
        state = self.state
        seen = state.measured.get(state.offers[offer].type)
        if seen is not None and seen.count:
            return seen.hours / seen.count
        speed = state.offers[offer].speed
        if state.rules.hours is not None and (speed is not None or not self.several):
            return state.rules.hours / (speed or 1.0)
        return None

    def expected_hours(self, offer: int) -> float | None:
        """Hours of a job on an offer, losses included; infinite if it would never be done."""
        hours = self.hours_on(offer, self.size(offer))
        return None if hours is None else self._cost(offer, self.size(offer), hours)[0]

    def _with_losses(self, offer: int) -> float | None:
        lost = self.expected_hours(offer)
        if lost is None:
            return None
        hours = self.hours_on(offer, self.size(offer)) or 0.0
        return (lost if lost < inf else hours) + self.state.offers[offer].boot

    def _evidence(self, number: int, now: float) -> Evidence:
        state, offer = self.state, self.state.offers[number]
        length = self.hours[number]
        seen = state.measured.get(offer.type)
        measured = seen.mean if seen is not None else None
        price = offer.job_price(state.rules.cores)
        if length is not None:
            hours, dollars = self._cost(number, state.gangs[number], length)
            settled = True
        elif state.tries.get(offer.type, 0) >= TRIES:
            hours, dollars, settled = inf, inf, True
        else:
            begun = state.exploring.get(offer.type)
            hours = now - begun[1] if begun else 0.0
            dollars, settled = hours * price, False
        return Evidence(number, offer.name, state.gangs[number], price, measured, hours, dollars, settled)

    def _cost(self, number: int, servers: int, length: float) -> tuple[float, float]:
        """Expected hours and dollars of a job on so many servers of an offer."""
        state, offer = self.state, self.state.offers[number]
        schedule = self.schedule(number, servers)
        if servers == state.gangs[number]:
            return expected_cost(offer, state.rules.cores, length, schedule)
        return expected_cost(offer, servers * offer.cores, length, schedule)

    # ---- which type

    def to_explore(self, now: float) -> list[int]:
        """Offers that one job should try, one for each type of which nothing is known."""
        if not self.several:
            return []
        state = self.state
        self.evidence = [self._evidence(i, now) for i in self.usable] if state.exploring else self.evidence
        if is_decided(self.evidence):
            return []
        found: dict[str, int] = {}
        for each in self.evidence:
            kind = state.offers[each.offer].type
            if each.settled or kind in state.exploring:
                continue
            best = found.get(kind)
            if best is None or each.price < state.offers[best].job_price(state.rules.cores):
                found[kind] = each.offer
        return list(found.values())

    def undecided(self) -> bool:
        """Whether a type that is not known yet may still be the best."""
        return (
            self.several and any(not each.settled for each in self.evidence) and not is_decided(self.evidence)
        )

    # ---- how many servers a job

    def size(self, offer: int) -> int:
        """Servers of a job on an offer: the number that costs least of those that were tried."""
        return self._sizes.get(offer, self.state.gangs[offer])

    def size_to_try(self, offer: int) -> int | None:
        """A smaller number that one job should try; None: there is none, or one tries it already."""
        size = self._next_sizes.get(offer)
        if size is None or (self.state.offers[offer].type, size) in self.state.trying:
            return None
        return size

    def hours_on(self, offer: int, servers: int) -> float | None:
        """Hours of a job on so many servers, without losses, as far as that was measured or is known."""
        if servers == self.state.gangs[offer]:
            return self.hours[offer]
        seen = self.state.sized.get((self.state.offers[offer].type, servers))
        return None if seen is None else seen.mean

    def _choose_sizes(self, now: float) -> None:
        """Halve the gang of the best offer for as long as that costs less."""
        state, rules = self.state, self.state.rules
        self._sizes.clear()
        self._next_sizes.clear()
        self.sizes = []
        if rules.smallest is None or self.undecided():
            return
        for offer in self.usable:
            size, hours = state.gangs[offer], self.hours[offer]
            least = state.offers[offer].gang(rules.smallest)
            if hours is None or state.offers[offer].type not in state.measured:
                continue
            dollars = self._cost(offer, size, hours)[1]
            while (fewer := max(least, ceil(size / 2))) < size:
                longer = self.hours_on(offer, fewer)
                time_left = inf if rules.deadline is None else rules.deadline - now
                if longer is None:
                    if 2 * hours * size / fewer < time_left:
                        self._next_sizes[offer] = fewer
                    break
                expected, cost = self._cost(offer, fewer, longer)
                kind = state.offers[offer]
                name = f"{kind.name}, {fewer} servers"
                self.sizes.append(
                    Evidence(offer, name, fewer, kind.price * fewer, longer, expected, cost, True)
                )
                if cost >= WORTH * dollars or 2 * longer >= time_left:
                    break
                size, hours, dollars = fewer, longer, cost
            self._sizes[offer] = size

    # ---- which servers, and when jobs save their state

    def reuse(self, offer: int) -> Reuse:
        """Which ages of servers of an offer are worth keeping."""
        found = self._reuse.get(offer)
        if found is None:
            hours, size = self.hours_on(offer, self.size(offer)) or 0.0, self.size(offer)
            key = offer, size, _percent(hours)
            if key not in self._tables:
                kind = self.state.offers[offer]
                model = kind.model if self.state.rules.reuse and hours and size == 1 else None
                self._tables[key] = Reuse(model, hours, kind.boot, self.schedule(offer, size))
            found = self._reuse[offer] = self._tables[key]
        return found

    def schedule(self, offer: int, servers: int) -> Schedule | None:
        """When jobs save their state on so many servers; None if they do not, or if nothing is known."""
        kind, cost = self.state.offers[offer], self.state.rules.checkpoint
        hours = self.hours_on(offer, servers)
        hours = self.length(offer) if hours is None else hours
        if cost is None or kind.model is None or not hours:
            return None
        key = offer, servers, _percent(hours)
        if key not in self._schedules:
            self._schedules[key] = Schedule(gang_model(kind.model, servers), hours, cost, kind.boot)
        return self._schedules[key]

    def saves(self, offer: int, servers: int, saved: float, age: float) -> tuple[float, ...] | None:
        """Hours of work between checkpoints of an attempt that begins now.

        Parameters
        ----------
        offer, servers : where it begins, and on how many
        saved : hours of work that earlier attempts saved
        age : of the oldest of its servers
        """
        schedule = self.schedule(offer, servers)
        return None if schedule is None else schedule.intervals(schedule.work - saved, age)

    def all_evidence(self) -> list[Evidence]:
        """For people: offers, and gangs that were tried."""
        return [
            replace(each, name=f"{each.name}, {each.servers} servers") if self.sizes else each
            for each in self.evidence
        ] + self.sizes


def _percent(hours: float) -> int:
    """The same for hours that differ by less than a percent: what is tabulated for each takes milliseconds,
    and measured hours change all the time.
    """
    return round(100 * log(hours)) if hours else 0
