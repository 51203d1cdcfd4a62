"""How many workers there should be, and starting those that are missing.

The provisioner keeps no state: what is pending it reads from the queue, who is at work from the ledger.
It can be run once, again and again, here or anywhere. Workers go by themselves when they find no work.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from linnet.errors import InputError, LinnetError
from linnet.workers.job_parts import Parts
from linnet.workers.launcher import (
    LONG,
    Launcher,
    Limits,
    Order,
    Watching,
    check_number,
    check_whole,
    worker_names,
)
from linnet.workers.ledger import Status, WorkerInfo

_MOST_WORKERS = 10**6
FAILURES = 6
"""Times in a row that workers fail before no more are started."""
FIRST_PAUSE = 1.0
"""Seconds between a failure and the next start; twice as many after each further one."""


@dataclass(frozen=True, slots=True)
class Policy:
    """When to start workers."""

    most: int = 2
    """Workers at a time."""
    least: int = 1
    """Workers while anything is pending."""
    factor: float = 1.0
    """Workers for each pending batch of tasks: `sf` of the numpywren paper."""
    silence: float = 15.0
    """Seconds after which a worker that is not heard of counts no more, unless it is on its way."""

    def __post_init__(self) -> None:
        check_whole("least", self.least, 0, _MOST_WORKERS, "a number of workers, not negative")
        least = max(1, self.least)
        check_whole("most", self.most, least, _MOST_WORKERS, f"a number of workers, at least {least}")
        check_number("factor", self.factor, 0, _MOST_WORKERS, "workers for each pending batch, not negative")
        check_number("silence", self.silence, 0.001, LONG, "seconds, more than 0")


def policy_of(workers: int | tuple[int, int] | Policy) -> Policy:
    """The policy that a user gave as a number of workers, or as the least and the most."""
    if isinstance(workers, Policy):
        return workers
    both: object = (workers, workers) if isinstance(workers, int) else workers
    match both:
        case (int(least), int(most)) if 1 <= least <= most and workers is not True:
            return Policy(most=most, least=least)
        case _:
            raise InputError(f"workers={workers!r}: give a number of at least 1, or (least, most)")


def _said(error: Exception) -> str:
    """What went wrong, in the words of the error; with its kind, if it is none of Linnet's."""
    return str(error) if isinstance(error, LinnetError) else f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Sample:
    """A look at a job, for its trace."""

    at: float
    """The ledger's clock."""
    ready: int
    leased: int
    workers: int
    """Alive before others were started."""
    done: int
    started: int = 0
    """Workers that were started then."""


class Trials:
    """Whether workers come to work: they may fail, each in its turn, because of something that stays.

    Any task that is done in between shows that it does not. What went wrong before, `said`, is passed over.
    """

    def __init__(self, said: str | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.started: list[str] = []
        """Workers that were started."""
        self._said = said
        self._clock = clock
        self._done = 0
        self._failures = 0
        self._next = 0.0

    def look(self, status: Status, problem: str | None) -> None:
        """See what was done, and what a launcher tells of workers that failed; each of them is told apart."""
        if status.done != self._done:
            self._done, self._failures, self._next = status.done, 0, 0.0
        if problem is not None and problem != self._said:
            self.failed(problem)

    def failed(self, problem: str) -> None:
        """Workers did not start, or ended before their time."""
        self._said = problem
        self._failures += 1
        self._next = self._clock() + FIRST_PAUSE * 2 ** (self._failures - 1)

    def may_start(self) -> bool:
        """Whether it is time to try again."""
        return self._clock() >= self._next

    @property
    def verdict(self) -> str | None:
        """Why no more are to be started; None: there is hope."""
        if self._failures < FAILURES:
            return None
        return f"workers failed {self._failures} times in a row, and no task was done meanwhile: {self._said}"


def note_ended(parts: Parts, launcher: Launcher) -> None:
    """Tell the ledger of workers that the launcher saw end; most of them said so themselves."""
    for name in launcher.ended():
        parts.ledger.leave(name, died=True)


def at_hand(parts: Parts, launcher: Launcher, silence: float) -> list[WorkerInfo]:
    """Workers that are heard of, and those that are on their way, as far as the launcher knows.

    On a busy machine, or where they wait for one, workers take longer to come than they may be silent later.
    Who starts others meanwhile makes the machine busier still.
    """
    found = parts.ledger.workers(within=silence)
    coming = set(launcher.coming()) if isinstance(launcher, Watching) else set[str]()
    if coming := coming.difference(each.name for each in found):
        late = parts.ledger.workers()
        found += [each for each in late if each.name in coming and not each.left and not each.facts]
    return found


def provision(
    parts: Parts,
    launcher: Launcher,
    policy: Policy,
    limits: Limits,
    imports: Sequence[str] = (),
    files: Sequence[str] = (),
    trials: Trials | None = None,
) -> Sample:
    """Start the workers that are missing; returns what was seen before.

    `trials` remember how earlier ones fared: after failures there is a pause, and in the end the job is
    stopped with what they said, unless there are workers of somebody else.
    """
    trials = Trials() if trials is None else trials
    note_ended(parts, launcher)
    status = parts.ledger.status()
    trials.look(status, launcher.problem())
    size = parts.queue.size()
    alive = at_hand(parts, launcher, policy.silence)
    running = len(alive)
    names: list[str] = []
    if trials.verdict is not None and not any(each.facts for each in alive):  # those who began tell some
        parts.ledger.halt("stopped", trials.verdict)
    elif status.state == "running" and trials.may_start():
        # A job whose queue is empty may have tasks that nobody put there: somebody must look.
        pending = max(size.ready + size.leased, 1)
        wanted = math.ceil(pending * policy.factor / limits.width)
        missing = min(policy.most, max(policy.least, wanted)) - running
        if missing > 0:
            names = worker_names(missing)
            for name in names:
                parts.ledger.touch([], name)
            try:
                address = parts.address
                launcher.start(Order(address.text, names, limits, imports, files, address.secrets))
            except Exception as error:  # launchers call the programs and libraries of others
                trials.failed(_said(error))
                for name in names:
                    parts.ledger.leave(name)
                names = []
            trials.started += names
    return Sample(status.now, size.ready, size.leased, running, status.done, len(names))
