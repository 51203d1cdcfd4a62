"""Decisions: what to do about a bag now, from its state alone, by the functions of `linnet.fleet.policies`.

`Decider.decide` returns decisions and applies each to the state as it is made, so that the next one sees it.
It looks at idle servers and at the head of the queue, never at all jobs; what follows from measurements
(which
offer is best, which ages are worth keeping) is kept until there are a quarter more of these.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from linnet.fleet.knowledge import Knowledge
from linnet.fleet.policies import (
    StopRule,
    after_loss,
    wanted_gangs,
    wants_on_demand,
)  # fmt: skip
from linnet.fleet.records import Close, Decision, Drop, Launch, Release, Start, Stop
from linnet.fleet.state import State

BACK_OFF = (1 / 60, 1.0)
"""Hours before an offer that was refused is tried again: at first, and at most."""


class Decider:
    """Decides about one bag.

    Parameters
    ----------
    state : the bag
    rule : which jobs are hopeless, by their metric
    margin : hours that pass between a decision and its effect; a budget is kept with so much to spare
    saver : whether a tool saves the processes of jobs
    """

    def __init__(
        self, state: State, rule: StopRule | None = None, margin: float = 0.0, saver: bool = False
    ) -> None:
        self.state = state
        self.saves_state: bool = saver or state.rules.checkpoint is not None
        """Whether jobs go on from what they saved."""
        self.rule = rule
        self.margin = margin
        self.known: Knowledge = Knowledge(state)
        """About offers."""
        self._usable = self.known.usable
        self._stubborn: dict[int, None] = {}
        self._fewer: dict[int, int] = {}
        self._losses, self._reports = len(state.losses), len(state.reports)
        self._out: list[Decision] = []
        self._asked_for = (-1, 0)
        self._sure = [i for i in self._usable if state.offers[i].market == "on-demand"]
        self._only = self._one_kind()

    def _one_kind(self) -> int | None:
        """The offer of a fleet that has one alone, whose servers take one job each: quick to decide about."""
        if len(self._usable) > 1 or self._sure or self.state.rules.budget is not None:
            return None
        (only,) = self._usable
        return only if self.state.gangs[only] == 1 == self.state.slots[only] else None

    # ---- the entrance

    def decide(self, now: float, more: bool = False) -> list[Decision]:
        """What to do now. `more`: further jobs may come, so the bag is not over when none is left."""
        state, self._out = self.state, []
        if state.closed is not None:
            for server in sorted(state.live):
                self._do(Release(now, server, state.closed))
            return self._out
        if (ending := self._ending(now, more)) is not None:
            return self._wind_up(now, ending)
        if self._reports < len(state.reports):
            self._stop_hopeless(now)
        if self._losses < len(state.losses):
            self._judge_losses(now)
        self.known.learn(now)
        if state.warned:
            for server in [each for each in state.warned if not state.servers[each].attempts]:
                self._do(Release(now, server, "it will be taken away"))
        if self.known.several and state.waiting and not self.known.undecided():
            self._give_up_other_types(now)
        if state.waiting:
            if self._only is None:
                self._start_jobs(now)
            else:
                self._start_on(self._only, now)
        if state.waiting:
            self._launch_servers(now)
        if not state.waiting:
            self._release_surplus(now)
        if not state.running and not state.live and self._broke(now):
            return self._wind_up(now, "budget")
        return self._out

    def _do(self, decision: Decision) -> None:
        self.state.apply(decision)
        self._out.append(decision)

    # ---- the end of a bag

    def _ending(self, now: float, more: bool) -> str | None:
        state, rules = self.state, self.state.rules
        if state.cancelled:
            return "cancelled"
        if not more and (not (state.running or state.waiting) or state.done >= self._required()):
            return "done"
        if rules.budget is None or not state.rate > 0:
            return None
        near = state.cost(now) + state.rate * self.margin
        return "budget" if near >= rules.budget - 1e-12 else None

    def _required(self) -> int:
        jobs = len(self.state.jobs)
        if self._asked_for[0] != jobs:
            self._asked_for = jobs, self.state.rules.required(jobs)
        return self._asked_for[1]

    def _wind_up(self, now: float, why: str) -> list[Decision]:
        state = self.state
        reason = "enough jobs are done" if why == "done" else why
        for attempt in list(state.running):
            self._do(Stop(now, attempt, reason))
        for job in list(state.waiting):
            self._do(Drop(now, job, reason))
        for server in sorted(state.live):
            self._do(Release(now, server, f"the bag is over: {why}"))
        self._do(Close(now, why))
        return self._out

    # ---- what became of jobs

    def _stop_hopeless(self, now: float) -> None:
        state = self.state
        for number in dict.fromkeys(state.reports[self._reports :]):
            job = state.jobs[number]
            if job.attempt is not None and self._hopeless(number):
                self._do(Stop(now, job.attempt, "hopeless"))
        self._reports = len(state.reports)

    def _hopeless(self, number: int) -> bool:
        jobs = self.state.jobs
        if self.rule is None or not jobs[number].metric:
            return False
        others = [each.metric for key, each in jobs.items() if key != number and each.metric]
        return self.rule(jobs[number].metric, others)

    def _judge_losses(self, now: float) -> None:
        state, rules = self.state, self.state.rules
        for number, offer, left in state.losses[self._losses :]:
            job = state.jobs[number]
            if job.state != "waiting":
                continue
            if self._hopeless(number):
                self._do(Drop(now, number, "hopeless"))
                continue
            kind = state.offers[offer]
            # What a job saved is of as many servers as it ran on, and goes on with no fewer.
            smallest = left + 1 if self.saves_state else kind.gang(rules.smallest or rules.cores)
            what = after_loss(
                may_be_dropped=state.may_be_dropped(), servers_left=left, smallest=smallest, boot=kind.boot,
                hours=self.known.hours_on(offer, left + 1) or 1.0, servers=left + 1, choice=rules.on_loss,
                fewer_hours=self.known.hours_on(offer, left) if left else None,
            )  # fmt: skip
            if what == "discard":
                self._do(Drop(now, number, "preempted, and enough others remain"))
                continue
            if what == "smaller" and left:
                self._fewer[number] = left
            if wants_on_demand(job.preemptions, rules.on_demand_after, None, None, 0.0):
                self._stubborn[number] = None
        self._losses = len(state.losses)

    # ---- jobs onto servers

    def _start_jobs(self, now: float) -> None:
        state = self.state
        for offer, number in self._openings(now):
            gang = self._servers_for(number, offer)
            servers = self._pick(offer, gang, now)
            if servers is None:
                continue
            if not self._affords(now, offer):
                return
            self._fewer.pop(number, None)
            self._stubborn.pop(number, None)
            self._do(Start(now, state.attempts, number, servers))

    def _servers_for(self, job: int, offer: int) -> int:
        """How many servers a job gets on an offer.

        One that saved its state goes on with as many as saved it; the others take the number that costs
        least, and one of them tries a smaller one.
        """
        began = self.state.jobs[job]
        if began.preemptions and self.saves_state and began.offer == offer:
            return began.servers
        if job in self._fewer:
            return self._fewer[job]
        return self.known.size_to_try(offer) or self.known.size(offer)

    def _start_on(self, offer: int, now: float) -> None:
        """The same where there is one kind of server only: jobs in their order, servers in theirs."""
        state, reuse = self.state, self.known.reuse(offer)
        idle, waiting = state.idle[offer], state.waiting
        fresh = now - self.state.offers[offer].boot - 1e-9
        while idle and waiting:
            server = next(iter(idle))
            launched = state.servers[server].launched
            if launched < fresh and not reuse.keep(now - launched):
                self._do(Release(now, server, f"too old for another job: {now - launched:.2f} h"))
                continue
            self._do(Start(now, state.attempts, waiting[0], (server,)))

    def _openings(self, now: float) -> Iterator[tuple[int, int]]:
        """Pairs of an offer with idle servers and a waiting job that may run there."""
        state = self.state
        for offer in self._sure:
            for job in list(self._stubborn):
                if state.idle[offer] and state.jobs[job].state == "waiting":
                    yield offer, job
        undecided = self.known.undecided()
        for offer in self.known.ranking if undecided else self._chosen(now):
            idle = state.idle[offer]
            kind = state.offers[offer]
            while idle and state.waiting:
                if undecided and kind.price > 0 and (kind.type in state.exploring or self.known.hours[offer]):
                    break  # one job tries this type; the others wait for what it tells
                job = self._next_job()
                before = state.attempts
                if job is None:
                    break
                yield offer, job
                if state.attempts == before:
                    break

    def _next_job(self) -> int | None:
        for job in self.state.waiting:
            if job not in self._stubborn or not self._sure:
                return job
        return None

    def _pick(self, offer: int, gang: int, now: float) -> tuple[int, ...] | None:
        """Idle servers for a job; those too old for another job are given back on the way."""
        state, idle = self.state, self.state.idle[offer]
        reuse = self.known.reuse(offer)
        found: list[int] = []
        for number in list(idle) if gang > 1 or len(idle) < 4 else idle:
            server = state.servers[number]
            if (
                server.attempts
                or reuse.keep(now - server.launched)
                or now - server.launched <= state.offers[offer].boot + 1e-9
            ):
                found.append(number)
                if len(found) == gang:
                    return tuple(found)
            else:
                self._do(Release(now, number, f"too old for another job: {now - server.launched:.2f} h"))
                return self._pick(offer, gang, now)
        return None

    def _affords(self, now: float, offer: int, boot: float = 0.0) -> bool:
        """Whether one more job can be paid, should all that run take as long as a job usually takes."""
        state, budget = self.state, self.state.rules.budget
        if budget is None:
            return True
        price = state.offers[offer].job_price(state.rules.cores)
        hours = self.known.hours[offer] or 0.0
        booting = sum(1 for each in state.live if state.servers[each].up is None)
        ahead = (len(state.running) + 1 + (booting if boot else 0)) * hours * price + boot * price
        rate = state.rate + (state.offers[offer].price if boot else 0.0)
        return state.cost(now) + ahead + rate * self.margin <= budget + 1e-9

    def _broke(self, now: float) -> bool:
        rules = self.state.rules
        return rules.budget is not None and not any(
            self._affords(now, i, self.state.offers[i].boot or 1e-12) for i in self._usable
        )

    # ---- servers

    def _launch_servers(self, now: float) -> None:
        state, rules = self.state, self.state.rules
        if self._all_there():
            return
        if self._only is not None and rules.deadline is None:  # what follows comes to this, and takes longer
            if (missing := state.left - self._room(self._only)) > 0:
                self._launch_gangs(now, self._only, missing)
            return
        explore = self.known.to_explore(now)
        for offer in explore:
            if not state.alive[offer]:
                self._launch(now, offer, state.gangs[offer])
        undecided = self.known.undecided()
        time_left = None if rules.deadline is None else rules.deadline - now
        first = self.known.ranking[0]
        jobs = state.left
        wanted = wanted_gangs(jobs, self.known.expected[first], time_left)
        rush = bool(self._sure) and wants_on_demand(
            0, None, time_left, self.known.hours[first], state.offers[first].boot
        )
        sure = sum(self._room(i) for i in self._sure)
        for offer in sorted(self._sure, key=lambda i: state.offers[i].price):
            need = (jobs if rush else len(self._stubborn)) - sure
            if need > 0:
                sure += self._launch_gangs(now, offer, need)
        have = sum(self._room(i) for i in self._usable)
        for offer in self.known.ranking if undecided else self._chosen(now):
            if have >= wanted:
                break
            if undecided and state.offers[offer].price > 0:
                continue
            have += self._launch_gangs(now, offer, wanted - have)
        self._launch_for_the_next(now)

    def _launch_for_the_next(self, now: float) -> None:
        """The next job may need more servers than jobs do now: those that it saved its state on."""
        state, job = self.state, self._next_job()
        if job is None or state.running or not state.jobs[job].preemptions or not self.saves_state:
            return
        offer, needs = state.jobs[job].offer, state.jobs[job].servers
        if offer is None or self.refused_until(offer) > now + 1e-12:
            return
        there = state.alive[offer] - sum(1 for each in state.warned if state.servers[each].offer == offer)
        self._launch(now, offer, max(0, needs - there))

    def _chosen(self, now: float) -> list[int]:
        """Offers to run jobs on: the best that is to be had, and with a deadline as many as it asks for."""
        state, rules = self.state, self.state.rules
        if len(self.known.ranking) == 1:
            return self.known.ranking
        time_left = None if rules.deadline is None else rules.deadline - now
        wanted = wanted_gangs(state.left, self.known.expected[self.known.ranking[0]], time_left)
        found: list[int] = []
        room = 0.0
        useless = self.known.worthless
        spot = any(state.offers[i].market == "spot" and i not in useless for i in self._usable)
        for offer in self.known.ranking:
            kind = state.offers[offer]
            passed_over = kind.market == "on-demand" and spot and time_left is None and kind.price > 0
            if self.refused_until(offer) > now + 1e-12 or passed_over or offer in self.known.worthless:
                continue
            if kind.price == 0 or not room or (time_left is not None and room < wanted):
                found.append(offer)
                if kind.price > 0:
                    full = (
                        inf
                        if kind.limit is None
                        else kind.limit // self.known.size(offer) * state.slots[offer]
                    )
                    room += full
        return found

    def _give_up_other_types(self, now: float) -> None:
        """Servers that tried a type which is not the best are given back."""
        state = self.state
        kept = set(self._chosen(now)) | set(self._sure)
        for offer in self._usable:
            if offer not in kept and state.idle[offer] and self.refused_until(offer) <= now:
                for number in [each for each in state.idle[offer] if not state.servers[each].attempts]:
                    self._do(Release(now, number, "jobs cost less on another type"))

    def _all_there(self) -> bool:
        """Whether there are as many servers as there may be."""
        state = self.state
        if state.rules.servers is not None and len(state.live) >= state.rules.servers:
            return True
        if self._only is not None:
            return state.alive[self._only] == state.offers[self._only].limit
        return all(state.alive[i] == state.offers[i].limit for i in self._usable)

    def _room(self, offer: int) -> int:
        """How many jobs the servers of an offer take at once, those on their way included."""
        state, alive = self.state, self.state.alive[offer]
        if state.warned:
            alive -= sum(1 for each in state.warned if state.servers[each].offer == offer)
        return alive // self.known.size(offer) * state.slots[offer]

    def _launch_gangs(self, now: float, offer: int, jobs: int) -> int:
        """Ask for servers for so many jobs; how many jobs they will take."""
        state = self.state
        if self.refused_until(offer) > now + 1e-12:
            return 0
        kind, gang = state.offers[offer], self.known.size(offer)
        gangs = -(-jobs // state.slots[offer])
        free = inf if kind.limit is None else kind.limit - state.alive[offer]
        if state.rules.servers is not None:
            free = min(free, state.rules.servers - len(state.live))
        before = self._room(offer)
        missing = gangs * gang - state.alive[offer] % gang
        for _ in range(int(min(missing, max(free, 0)))):
            if not self._affords(now, offer, kind.boot or 1e-12):
                break
            self._launch(now, offer, 1)
        return self._room(offer) - before

    def _launch(self, now: float, offer: int, count: int) -> None:
        if self.refused_until(offer) > now + 1e-12:
            return
        for _ in range(count):
            self._do(Launch(now, len(self.state.servers), offer))

    def refused_until(self, offer: int) -> float:
        """When an offer that was refused is tried again."""
        refusal = self.state.refusals.get(offer)
        if refusal is None:
            return -inf
        at, times, _ = refusal
        return at + min(BACK_OFF[0] * 2 ** (times - 1), BACK_OFF[1])

    def _release_surplus(self, now: float) -> None:
        """Nothing waits: servers without a job are not needed."""
        state = self.state
        for idle in state.idle:
            for number in [each for each in idle if not state.servers[each].attempts]:
                self._do(Release(now, number, "no job waits"))
        if len(state.live) > len(state.running) and not state.waiting:
            for number in [each for each in state.live if state.servers[each].up is None]:
                self._do(Release(now, number, "no job waits"))

    def wake(self, now: float) -> float:
        """When to decide again although nothing happened; infinite if there is no need."""
        state, rules = self.state, self.state.rules
        times = [self.refused_until(i) for i in state.refusals]
        if rules.budget is not None and state.rate > 0:
            times.append(now + (rules.budget - state.cost(now)) / state.rate - self.margin)
        if rules.deadline is not None and self._sure and self.known.ranking:
            first = self.known.ranking[0]
            times.append(rules.deadline - 2 * ((self.known.hours[first] or 0.0) + state.offers[first].boot))
        known = [each.dollars for each in self.known.evidence if each.settled]
        if known and state.exploring and self.known.undecided():
            for each in self.known.evidence:
                begun = state.exploring.get(state.offers[each.offer].type)
                if begun and each.price > 0 and min(known) < inf:
                    times.append(begun[1] + min(known) / each.price + 1e-9)
        return min((each for each in times if each > now + 1e-12), default=inf)
