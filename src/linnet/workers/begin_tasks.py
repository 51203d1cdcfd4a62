"""The first steps of tasks: leased, begun, their tiles read."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from linnet.errors import (
    DamagedTileError,
    JobFailedError,
    LinnetError,
    MissingTileError,
    StoreError,
    WireError,
)
from linnet.programs import Task
from linnet.programs.results import SAID, text_of
from linnet.workers.attempt import Attempt, Calls
from linnet.workers.end_tasks import Completions
from linnet.workers.held_tasks import Holding
from linnet.workers.job_parts import Parts
from linnet.workers.ledger import Begun, Start
from linnet.workers.names import Seed, name_of, named
from linnet.workers.queue import Lease
from linnet.workers.spec import JobSpec
from linnet.workers.timeouts import Act, Patience
from linnet.workers.traffic import Traffic
from linnet.workers.worker_events import Teller

_STRAGGLER = (4.0, 2.0)
"""A task is run a second time after so many times its kind's usual time, and so many seconds."""
_PATIENCE = 30.0
"""Seconds that a store may fail before the job is stopped."""
_PAUSE = 0.5
"""Seconds to wait after the store failed."""


class Taker:
    """Takes tasks for a worker; `halt` is called when the job does not go on."""

    def __init__(
        self,
        parts: Parts,
        spec: JobSpec,
        calls: Calls,
        traffic: Traffic,
        holding: Holding,
        completions: Completions,
        teller: Teller,
        worker: str,
        halt: Callable[[], None],
    ) -> None:
        self._ledger, self._queue = parts.ledger, parts.queue
        self._spec, self._calls, self._traffic = spec, calls, traffic
        self._completions = completions
        self._teller = teller
        self._holding = holding
        self._worker = worker
        self._halt = halt
        self._patience = Patience(_PATIENCE)
        self._joined = self._ledger.status().epoch

    def take(self, most: int) -> list[Attempt]:
        """Lease and begin some tasks; one that kills workers comes alone."""
        with self._ledger.grouped():
            leases = self._holding.claimed(most)
            if len(leases) < most:
                more = self._queue.lease(most - len(leases), self._spec.options.lease)
                self._holding.hold(more)
                leases += more
            attempts = [each for lease in leases if (each := self._understood(lease)) is not None]
            return self._runnable(attempts, self._begin(attempts))

    def _understood(self, lease: Lease) -> Attempt | None:
        """The task of a message; a message that names no task of the program is thrown away."""
        task = self._known(lease.name)
        if task is None:
            self._drop(lease)
            return None
        return Attempt(lease.name, task, lease, self._calls.parents(task))

    def _known(self, name: str) -> Task | Seed | None:
        """The task or seed of a name that came from outside; None: the program has none such."""
        try:
            task = named(name)
        except WireError:
            return None
        known = task in self._calls.bound if isinstance(task, Task) else self._calls.has_seed(task)
        return task if known else None

    def _begin(self, attempts: Sequence[Attempt], *, extra: bool = False) -> list[Begun]:
        if not attempts:
            return []
        return self._ledger.begin([Start(each.name, each.parents, extra) for each in attempts], self._worker)

    def _runnable(self, attempts: list[Attempt], begun: list[Begun]) -> list[Attempt]:
        """Those attempts that are to be run."""
        found: list[Attempt] = []
        for attempt, answer in zip(attempts, begun, strict=True):
            attempt.token, attempt.number, attempt.deaths = answer.token, answer.attempt, answer.deaths
            attempt.published = dict(zip(attempt.parents, answer.published, strict=False))
            if answer.state == "run":
                found.append(attempt)
            elif answer.state == "halt":
                self.give_back(attempt)
                self._halt()
            elif attempt.lease is not None:
                self._drop(attempt.lease)
        suspect = next((attempt for attempt in found if attempt.deaths), None)
        if suspect is None:
            return found
        for other in found:
            if other is not suspect:
                self.give_back(other)
        return [suspect]

    # ---- reading

    def read(self, attempt: Attempt) -> bool:
        """Read what an attempt needs; False if it is over."""
        if isinstance(attempt.task, Seed):
            return True
        try:
            self._calls.read(attempt, self._traffic)
            self._teller.read(attempt.tiles)
        except (MissingTileError, DamagedTileError):
            self.lost(attempt)
            return False
        except StoreError as error:
            self.troubled(attempt, error, "read")
            return False
        except Exception as error:
            self.fail(attempt, self.told(attempt, error))
            return False
        self._patience.worked("read")
        return True

    def lost(self, attempt: Attempt) -> None:
        """A tile is not there, or not sound: let its task run again, unless this attempt is late anyway."""
        try:
            what = self._completions.recover(attempt)
        except StoreError as failing:  # it does not even tell what is missing
            self.troubled(attempt, failing, "read")
            return
        except JobFailedError as failing:
            self.fail(attempt, f"an input of the job cannot be read: {failing}")
            return
        if what == "again":
            self.give_back(attempt)
        elif attempt.lease is not None:
            self._drop(attempt.lease)

    # ---- ends before the end

    def stored(self) -> None:
        """The store does what it should."""
        self._patience.worked("write")

    def troubled(self, attempt: Attempt, error: StoreError, act: Act) -> None:
        """The store does not do what it should: give the task back, and the job up if that lasts."""
        lasting = self._patience.failed(act)
        self.give_back(attempt)
        if lasting:
            with self._ledger.grouped():
                # A job that was resumed since this worker joined it has others, with a better store perhaps.
                if self._ledger.status().epoch == self._joined:
                    self._ledger.halt("stopped", f"the store failed for {_PATIENCE:g} seconds: {error}")
            self._halt()
        time.sleep(_PAUSE)

    def give_back(self, attempt: Attempt) -> None:
        """Let another worker have a task."""
        if attempt.token:
            self._ledger.forget(attempt.name, attempt.token)
        if attempt.lease is not None:
            self._queue.release([attempt.lease])
        self._holding.drop([attempt.name])

    def _drop(self, lease: Lease) -> None:
        self._queue.remove([lease])
        self._holding.drop([lease.name])

    def told(self, attempt: Attempt, error: Exception) -> str:
        """Why an attempt ended by itself, as the ledger keeps it; what nobody foresaw, with its place."""
        if isinstance(error, LinnetError) or not isinstance(attempt.task, Task):
            return told(error)
        where = self._calls.bound.where(attempt.task)
        if isinstance(error, MemoryError):
            return f"{told(error)}\n  task {attempt.name}, in {where}"
        said = f"{type(error).__name__}: {text_of(error, SAID)}"
        return f"KernelError: task {attempt.name} could not be finished: {said}\n  in {where}"

    def fail(self, attempt: Attempt, reason: str) -> None:
        """A task cannot be done, and so the job."""
        self._teller.failed(attempt, reason)
        with self._ledger.grouped():
            self._teller.flush()
            self._ledger.fail(attempt.name, attempt.token, reason)
        self._halt()

    # ---- for idle workers

    def look_around(self) -> list[Attempt] | None:
        """Put forgotten tasks into the queue, and begin slow ones a second time: these are returned.

        None: there was nothing to do.
        """
        forgotten = self._ledger.overdue(self._spec.options.lease, 100)
        if forgotten:
            self._queue.put(self._spec.entries(forgotten))
            return []
        dead = self._queue.dead()
        if dead:
            others = f"; so were {len(dead) - 1} others" if len(dead) > 1 else ""
            self._ledger.halt(
                "stopped", f"task {dead[0]} was delivered again and again, and never finished{others}"
            )
            return None
        told = map(self._known, self._ledger.stragglers(*_STRAGGLER, 1))
        slow = [task for task in told if task is not None]
        if not slow:
            return None
        attempts = [Attempt(name_of(task), task, None, self._calls.parents(task)) for task in slow]
        return self._runnable(attempts, self._begin(attempts, extra=True))


def told(error: BaseException) -> str:
    """An error as the ledger keeps it."""
    if isinstance(error, MemoryError):
        what = text_of(error) or "the worker could not get more"
        return f"out of memory: {what}; use smaller tiles, or workers with more memory"
    if isinstance(error, JobFailedError):
        return text_of(error)
    return f"{type(error).__name__}: {text_of(error)}"
