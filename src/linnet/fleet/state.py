"""The state of a bag: what its records so far add up to. No clock, no I/O, no policy.

`State.apply` takes every record, event or decision, and `linnet.fleet.deciding` reads what it needs in a time
that does not depend on how many jobs or servers there are: queues, idle servers and sums are kept up to date.
An event about what is over already (an attempt of a lost server, a server that was given back) changes
nothing,
so events may come twice and late.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from linnet.fleet.offers import Offer
from linnet.fleet.records import (
    Added,
    Cancelled,
    Close,
    Drop,
    Ended,
    Launch,
    Lost,
    Record,
    Refused,
    Release,
    Reopened,
    Reported,
    Start,
    Stop,
    Up,
    Warned,
)  # fmt: skip
from linnet.fleet.rules import Rules

JobState: TypeAlias = Literal["waiting", "running", "done", "failed", "dropped", "stopped"]


@dataclass(slots=True)
class Job:
    """One job of the bag."""

    state: JobState = "waiting"
    attempts: int = 0
    preemptions: int = 0
    failures: int = 0
    hours: float = 0.0
    """Of all its attempts."""
    dollars: float = 0.0
    """Of all its attempts."""
    status: int | None = None
    """Exit status of the last attempt that ended by itself."""
    offer: int | None = None
    """Where the last attempt ran."""
    servers: int = 0
    """How many the last attempt ran on."""
    attempt: int | None = None
    """The one under way."""
    why: str = ""
    """Why it was dropped or stopped."""
    metric: Sequence[tuple[float, float]] = ()
    """What it reported."""


@dataclass(slots=True)
class Server:
    """A server that was asked for."""

    offer: int
    launched: float
    slots: int
    """How many jobs it takes at once."""
    free: int = 0
    """How many more it takes now; 0 until it is up."""
    up: float | None = None
    ended: float | None = None
    why: str = ""
    warned: bool = False
    attempts: set[int] = field(default_factory=set[int])


@dataclass(slots=True)
class Attempt:
    """A job under way."""

    job: int
    servers: tuple[int, ...]
    started: float


@dataclass(slots=True)
class Measured:
    """What jobs took on a type of server."""

    count: int = 0
    hours: float = 0.0
    boots: int = 0
    boot_hours: float = 0.0
    gaps: int = 0
    gap_hours: float = 0.0
    """From the decision to start a job to hearing of its end, less the job itself."""

    @property
    def mean(self) -> float | None:
        """Hours of a job."""
        return self.hours / self.count if self.count else None


class State:
    """A bag as it is now."""

    def __init__(self, rules: Rules, offers: Sequence[Offer]) -> None:
        self.rules = rules
        self.offers: list[Offer] = list(offers)
        self.gangs: list[int] = [offer.gang(rules.cores) for offer in offers]
        self.slots: list[int] = [offer.slots(rules.cores) for offer in offers]
        self.now: float = 0.0
        self.jobs: dict[int, Job] = {}
        self.waiting: deque[int] = deque()
        """Jobs that wait for a server, the next one first."""
        self.servers: list[Server] = []
        """All that were ever asked for."""
        self.alive: list[int] = [0] * len(offers)
        """Servers of each offer that were asked for and not given back or lost."""
        self.live: set[int] = set()
        self.idle: list[dict[int, None]] = [{} for _ in offers]
        """Servers of each offer that can take a job, in the order they became free."""
        self.warned: set[int] = set()
        """Servers that will be taken away soon: they get no more jobs."""
        self.running: dict[int, Attempt] = {}
        self.attempts: int = 0
        """How many were ever started."""
        self.done = self.failed = self.dropped = self.stopped = self.preemptions = 0
        self.measured: dict[str, Measured] = {}
        """By type of server, of jobs on as many servers as they ask for."""
        self.sized: dict[tuple[str, int], Measured] = {}
        """By type and number of servers, of jobs on fewer."""
        self.trying: dict[tuple[str, int], int] = {}
        """Types and numbers of servers of which nothing is known, and the attempt that tries them."""
        self.exploring: dict[str, tuple[int, float]] = {}
        """Types that one job tries: the job, and when its attempt began."""
        self.tries: dict[str, int] = {}
        """Servers of each type that were lost before they told how fast it is."""
        self.refusals: dict[int, tuple[float, int, str]] = {}
        """Offers that were refused: when, how often in a row, why."""
        self.lost_lives: list[tuple[int, float, bool]] = []
        """Servers that are over: offer, hours, and whether they were taken away."""
        self.cancelled: bool = False
        self.closed: str | None = None
        self.losses: list[tuple[int, int, int]] = []
        """Jobs whose server was lost: job, offer, and how many servers of its gang were left."""
        self.reports: list[int] = []
        """Jobs in the order in which they reported."""
        self._paid = 0.0
        self._rate = 0.0
        self._offset = 0.0

    def apply(self, record: Record) -> None:
        """Let a record change the state; the only way in which it changes."""
        if record.at > self.now:
            self.now: float = record.at
        _STEPS[type(record)](self, record)

    # ---- what is known

    @property
    def left(self) -> int:
        """Jobs that are neither done nor given up."""
        return len(self.waiting) + len(self.running)

    @property
    def rate(self) -> float:
        """Dollars an hour of the servers there are."""
        return self._rate

    def cost(self, now: float | None = None) -> float:
        """Dollars so far: every server from the moment it was asked for."""
        at = self.now if now is None else now
        return self._paid + (self._rate * at - self._offset if self.live else 0.0)

    def may_be_dropped(self) -> int:
        """How many of the jobs that are left need not be done."""
        total = len(self.jobs)
        return total - self.rules.required(total) - self.failed - self.dropped - self.stopped

    # ---- events

    def _added(self, record: Added) -> None:
        for job in record.jobs:
            if job not in self.jobs:
                self.jobs[job] = Job()
                self.waiting.append(job)

    def _up(self, record: Up) -> None:
        server = self.servers[record.server]
        if server.up is not None or server.ended is not None:
            return
        server.up, server.free = record.at, server.slots
        self.idle[server.offer][record.server] = None
        self.refusals.pop(server.offer, None)
        seen = self._seen(server.offer)
        seen.boots += 1
        seen.boot_hours += record.at - server.launched

    def _warned(self, record: Warned) -> None:
        server = self.servers[record.server]
        if server.ended is None and not server.warned:
            server.warned = True
            self.warned.add(record.server)
            self.idle[server.offer].pop(record.server, None)

    def _lost(self, record: Lost) -> None:
        server = self.servers[record.server]
        if server.ended is not None:
            return
        for number in sorted(server.attempts):
            self._preempted(self._take_off(number, record.at), server.offer)
        self._end(record.server, record.at, record.why, taken=True)

    def _refused(self, record: Refused) -> None:
        server = self.servers[record.server]
        if server.ended is not None:
            return
        times = self.refusals.get(server.offer, (0.0, 0, ""))[1]
        self.refusals[server.offer] = (record.at, times + 1, record.why)
        self._rate -= self.offers[server.offer].price
        self._offset -= self.offers[server.offer].price * server.launched
        server.ended, server.why = record.at, record.why
        self.alive[server.offer] -= 1
        self.live.discard(record.server)

    def _ended(self, record: Ended) -> None:
        if record.attempt not in self.running:
            return
        attempt = self._take_off(record.attempt, record.at)
        job = self.jobs[attempt.job]
        job.status = record.status
        offer = self.servers[attempt.servers[0]].offer
        if record.status != 0 and record.warned:
            self._preempted(attempt, offer)
            return
        if record.status == 0:
            job.state = "done"
            self.done += 1
            seen = self._seen(offer)
            whole = len(attempt.servers) == self.gangs[offer]
            sized = seen if whole else self._sized_like(offer, len(attempt.servers))
            sized.count += 1
            sized.hours += record.length
            seen.gaps += 1
            seen.gap_hours += max(0.0, record.at - attempt.started - record.hours)
            self.exploring.pop(self.offers[offer].type, None)
            return
        job.failures += 1
        if self.exploring.get(self.offers[offer].type, (None,))[0] == attempt.job:
            del self.exploring[self.offers[offer].type]
        if job.failures > self.rules.retries:
            job.state = "failed"
            self.failed += 1
        else:
            job.state = "waiting"
            self.waiting.append(attempt.job)

    def _reported(self, record: Reported) -> None:
        job = self.jobs[record.job]
        if not isinstance(job.metric, list):
            job.metric = []
        job.metric.append((record.step, record.value))
        self.reports.append(record.job)

    def _cancel(self, record: Cancelled) -> None:
        self.cancelled = True

    def _reopened(self, record: Reopened) -> None:
        """What was stopped or dropped because the bag ended waits again."""
        self.cancelled, self.closed = False, None
        for number, job in self.jobs.items():
            if job.state in ("stopped", "dropped") and job.why in ("cancelled", "budget"):
                if job.state == "stopped":
                    self.stopped -= 1
                else:
                    self.dropped -= 1
                job.state, job.why = "waiting", ""
                self.waiting.append(number)

    # ---- decisions

    def _launch(self, record: Launch) -> None:
        price = self.offers[record.offer].price
        self.servers.append(Server(record.offer, record.at, self.slots[record.offer]))
        self.live.add(record.server)
        self.alive[record.offer] += 1
        self._rate += price
        self._offset += price * record.at

    def _start(self, record: Start) -> None:
        job = self.jobs[record.job]
        if self.waiting and self.waiting[0] == record.job:
            self.waiting.popleft()
        else:
            self.waiting.remove(record.job)
        job.state, job.attempts = "running", job.attempts + 1
        job.attempt = record.attempt
        self.running[record.attempt] = Attempt(record.job, record.servers, record.at)
        self.attempts: int = record.attempt + 1
        offer = self.servers[record.servers[0]].offer
        idle = self.idle[offer]
        for number in record.servers:
            server = self.servers[number]
            server.attempts.add(record.attempt)
            server.free -= 1
            if not server.free:
                idle.pop(number, None)
        job.offer, job.servers = offer, len(record.servers)
        kind = self.offers[offer].type
        if job.servers < self.gangs[offer] and (kind, job.servers) not in self.sized:
            self.trying.setdefault((kind, job.servers), record.attempt)
        seen = self.measured.get(kind)
        if seen is None or not seen.count:
            self.exploring.setdefault(kind, (record.job, record.at))

    def _stop(self, record: Stop) -> None:
        if record.attempt not in self.running:
            return
        job = self.jobs[self._take_off(record.attempt, record.at).job]
        job.state, job.why = "stopped", record.why
        self.stopped += 1

    def _drop(self, record: Drop) -> None:
        job = self.jobs[record.job]
        if job.state == "waiting":
            self.waiting.remove(record.job)
            job.state, job.why = "dropped", record.why
            self.dropped += 1

    def _release(self, record: Release) -> None:
        if self.servers[record.server].ended is None:
            self._end(record.server, record.at, record.why, taken=False)

    def _close(self, record: Close) -> None:
        self.closed = record.why

    # ---- steps they share

    def _seen(self, offer: int) -> Measured:
        kind = self.offers[offer].type
        found = self.measured.get(kind)
        if found is None:
            found = self.measured[kind] = Measured()
        return found

    def _sized_like(self, offer: int, servers: int) -> Measured:
        return self.sized.setdefault((self.offers[offer].type, servers), Measured())

    def _preempted(self, attempt: Attempt, offer: int) -> None:
        """A job lost its server: it waits again, before all others."""
        job = self.jobs[attempt.job]
        job.state, job.preemptions = "waiting", job.preemptions + 1
        self.preemptions += 1
        self.waiting.appendleft(attempt.job)
        self.losses.append((attempt.job, offer, len(attempt.servers) - 1))
        kind = self.offers[offer].type
        if self.exploring.get(kind, (None,))[0] == attempt.job:
            del self.exploring[kind]
            self.tries[kind] = self.tries.get(kind, 0) + 1

    def _take_off(self, number: int, at: float) -> Attempt:
        """An attempt is over: its servers are free again, its job has paid."""
        attempt = self.running.pop(number)
        offer = self.servers[attempt.servers[0]].offer
        for each in attempt.servers:
            server = self.servers[each]
            server.attempts.discard(number)
            server.free += 1
            if not server.warned and server.ended is None:
                self.idle[offer][each] = None
        size = self.offers[offer].type, len(attempt.servers)
        if self.trying and self.trying.get(size) == number:
            del self.trying[size]
        hours = at - attempt.started
        job = self.jobs[attempt.job]
        job.attempt = None
        job.hours += hours
        job.dollars += hours * self.offers[offer].price * len(attempt.servers) / self.slots[offer]
        return attempt

    def _end(self, number: int, at: float, why: str, *, taken: bool) -> None:
        server = self.servers[number]
        price = self.offers[server.offer].price
        server.ended, server.why, server.free = at, why, 0
        self.idle[server.offer].pop(number, None)
        self.live.discard(number)
        self.warned.discard(number)
        self.alive[server.offer] -= 1
        self.lost_lives.append((server.offer, at - server.launched, taken))
        self._paid += price * (at - server.launched)
        self._rate -= price
        self._offset -= price * server.launched


# pyright: reportPrivateUsage=false
_STEPS: dict[type[Any], Callable[[State, Any], None]] = {
    Added: State._added, Up: State._up, Warned: State._warned, Lost: State._lost, Refused: State._refused,
    Ended: State._ended, Reported: State._reported, Cancelled: State._cancel, Reopened: State._reopened,
    Launch: State._launch, Start: State._start, Stop: State._stop, Drop: State._drop,
    Release: State._release, Close: State._close,
}  # fmt: skip
"""What each kind of record does. Not kept in the state, which would then hold itself, and be freed late."""
