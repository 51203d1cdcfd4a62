"""A stateless worker: takes ready tasks, reads, computes, writes, and makes their children ready.

Three stages work on different batches of tasks at once: one thread takes tasks and reads their tiles,
the caller's computes, a third writes results and tells the ledger. `width` batches are in hand at most.
A batch is one task, unless tasks are short: then so many that handing them on costs little. A fourth
thread renews leases, tells that the worker lives, and deletes tiles nobody needs.

The steps of a task, in this order, each durable before the next: lease, begin (a token), read, compute,
write under the token, complete, put the children made ready into the queue, take the task out of it.
A worker may die between any two of them.
"""

from __future__ import annotations

import itertools
import math
import queue as queues
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Literal

from linnet.errors import AddressError, LinnetError, StoreError
from linnet.machine.blas_threads import limit_this_thread
from linnet.programs import Task
from linnet.workers.attempt import Attempt, Batch, Calls
from linnet.workers.begin_tasks import Taker
from linnet.workers.end_tasks import Completions
from linnet.workers.held_tasks import Holding
from linnet.workers.job_parts import Parts
from linnet.workers.launcher import Limits, worker_names
from linnet.workers.ledger import SLOW, Status
from linnet.workers.quarantine import Interrupted, Quarantine, too_slow
from linnet.workers.spec import JobSpec
from linnet.workers.traffic import Traffic
from linnet.workers.worker_events import Teller

Ending = Literal["finished", "halted", "idle", "time is up", "told to stop"]

_BATCH = 64
"""Tasks in one batch, at most."""
_BATCH_SECONDS = 0.03
"""Work in one batch of short tasks: so long others may have to wait for what this worker took."""
_ALONE = 0.002
"""Seconds in a kernel from which a task is a batch of its own: its children need not wait for others."""
_SHORT = 8
"""A batch of so many holds short tasks: one thread takes them from the first step to the last."""
_IDLE = 0.001
"""Seconds between looks into an empty queue, at first;"""
_IDLE_LONG = {True: 0.002, False: 0.02}
"""at last, where the queue is on this host, and where it is not."""
_GIVE_WAY = 0.005
"""Seconds that a worker which has something to compute leaves ready tasks to others, who may have nothing."""
_FAR = (20.0, 30.0)
"""A task is told of after so many times its kind's usual time, and so many seconds."""
_LOOK = 0.1
"""Seconds between looks of an idle worker at what others left undone."""


class Worker:
    """Works on one job until it ends, or there is nothing to do, or time is up.

    Of its limits, those of memory and the store are set by whoever makes it.
    """

    def __init__(
        self,
        parts: Parts,
        spec: JobSpec,
        traffic: Traffic,
        limits: Limits,
        name: str = "",
        files: Sequence[str] = (),
    ) -> None:
        self._limits = limits
        self.name: str = name or worker_names(1)[0]
        self._ledger, self._queue = parts.ledger, parts.queue
        self._spec, self._options = spec, spec.options
        self._traffic = traffic
        self._calls = Calls(spec, parts.folder, files)
        self._holding = Holding()
        self._teller = Teller(parts.ledger, parts.address.job, self.name, spec.options.events)
        self._quarantine = Quarantine(
            parts.address.store,
            parts.address.job,
            spec.bound,
            limits,
            spec.options.imports,
            files,
            lambda: self.is_over,
            spec.options.task_seconds,
        )
        self._completions = Completions(parts, spec, self._calls, traffic, self._teller)
        self._taker = Taker(
            parts,
            spec,
            self._calls,
            traffic,
            self._holding,
            self._completions,
            self._teller,
            self.name,
            lambda: self.stop("halted"),
        )
        self._slots = threading.Semaphore(limits.width)
        self._read: queues.PriorityQueue[tuple[float, int, Batch | None]] = queues.PriorityQueue()
        self._numbers = itertools.count()
        self._computed: queues.SimpleQueue[Batch | None] = queues.SimpleQueue()
        self._stop = threading.Event()
        self._ahead = 0
        """Batches that are read or computed;"""
        self._free = threading.Event()
        """set when there are none."""
        self._free.set()
        self._counting = threading.Lock()
        self._ending: Ending = "told to stop"
        self._error: BaseException | None = None
        self._batch = 1
        self._inside: dict[str, tuple[Attempt, float]] = {}
        """Attempts inside their kernels, and since when."""
        self._unheard: dict[int, str] = {}
        """Attempts that wrote tiles of which the ledger does not know yet: tokens and tasks."""
        self._kinds: Mapping[int, tuple[int, float]] = {}
        """Of each statement: tasks done, and seconds in their kernels."""
        self._done = 0
        self._longest = 0.0
        self._last_work = self._started = time.monotonic()

    # ---- life

    def run(self) -> Ending:
        """Work; returns why it ended.

        An error of the parts themselves is raised; an error of a task ends the job, not the worker.
        """
        self._teller.came()
        self._tell()
        parts = (self._take_and_read, self._write_and_tell, self._keep)
        threads = [threading.Thread(target=self._guarded, args=(part,), daemon=True) for part in parts]
        for thread in threads:
            thread.start()
        try:
            while (batch := self._read.get()[2]) is not None:
                self._compute(batch)
        except BaseException as error:
            self._error = self._error or error
        finally:
            self._stop.set()
            self._computed.put(None)
            for thread in threads:
                thread.join()
            self.say_goodbye()
        if self._error is not None:
            if isinstance(self._error, AddressError):
                self._completions.delete_of_deleted(self._unheard)
            raise self._error
        if self._ending == "finished" and self._options.delete:
            self._tidy_up()
        return self._ending

    def _tidy_up(self) -> None:
        """Delete what a finished job does not need any more: perhaps no client waits for its end."""
        with suppress(LinnetError, OSError):  # somebody may have deleted it meanwhile
            while self._completions.delete_unneeded(0.0):
                pass

    def stop(self, ending: Ending = "told to stop") -> None:
        """Begin nothing more, finish what is computed, give the rest back."""
        if not self._stop.is_set():
            self._ending = ending
            self._stop.set()

    def _guarded(self, part: Callable[[], None]) -> None:
        """Run a part; should it break, the worker ends with its error."""
        try:
            limit_this_thread()  # of short tasks, the thread that takes them calls the kernels
            part()
        except BaseException as error:
            self._error = self._error or error
            self._stop.set()
        finally:
            if part == self._take_and_read:
                self._hand_on(None)

    @property
    def task_seconds(self) -> float | None:
        """How long a task of its job may take."""
        return self._options.task_seconds

    @property
    def is_over(self) -> bool:
        """Whether it stops because the job goes on no more."""
        return self._stop.is_set() and self._ending in ("halted", "finished")

    def say_goodbye(self) -> None:
        """Give back what was not done, and say goodbye."""
        try:
            left = self._holding.leases()
            if left:
                self._queue.release(left)
            self._teller.went()
            self._tell()
            self._ledger.leave(self.name)
        except (LinnetError, OSError):
            if self._error is None:
                raise

    def _tell(self) -> Status:
        names = [lease.name for lease in self._holding.leases()]
        self._teller.flush()
        facts = {**self._traffic.facts, "tasks": float(self._done), **self._slow()}
        status = self._ledger.touch(names, self.name, facts)
        self._kinds = status.kinds
        return status

    def _slow(self) -> dict[str, float]:
        """Tasks that are in their kernels for far longer than others of their kind were, as facts."""
        found: dict[str, float] = {}
        for attempt, since in list(self._inside.values()):
            seconds = time.monotonic() - since
            if seconds < _FAR[1] or not isinstance(attempt.task, Task):
                continue
            tasks, spent = self._kinds.get(attempt.task.statement, (0, 0.0))
            if tasks and seconds > _FAR[0] * spent / tasks:
                found[SLOW + attempt.name] = seconds
        return found

    # ---- taking and reading

    def _take_and_read(self) -> None:
        pause, longest = _IDLE, _IDLE_LONG[self._queue.url.startswith("file:")]
        looked = 0.0
        while self._slot() and not self._time_is_up():
            self._free.wait(_GIVE_WAY)
            start = time.monotonic()
            attempts: list[Attempt] | None = self._taker.take(self._batch)
            if not attempts and pause >= longest and start - looked > _LOOK:
                looked = start
                if self._is_over(self._ledger.status()):
                    return
                attempts = self._taker.look_around()
            if attempts:
                pause = _IDLE
                self._pass_on(Batch(attempts), start)
                continue
            self._slots.release()
            if start - self._last_work > self._limits.timeout:
                self.stop("idle")
            self._stop.wait(pause)
            pause = min(2 * pause, longest)

    def _slot(self, count: int = 1) -> bool:
        """Wait until so many more batches may be in hand; False if the worker stops."""
        for _ in range(count):
            while not self._slots.acquire(timeout=0.1):
                if self._stop.is_set():
                    return False
        return not self._stop.is_set()

    def _pass_on(self, batch: Batch, start: float) -> None:
        """Read the tiles of a batch, and hand it on; one that killed workers is alone in hand."""
        alone = batch.attempts[0].deaths > 0
        if alone and not self._slot(self._limits.width - 1):
            return
        short = self._batch >= _SHORT and not alone
        if not short:
            self._count_ahead(1)
        batch.attempts = [attempt for attempt in batch.attempts if self._taker.read(attempt)]
        batch.took(start)
        self._last_work = time.monotonic()
        if short:
            # Short tasks are not handed on: threads would only wait at the interpreter's lock.
            self._run(batch)
            self._end(batch)
            return
        self._hand_on(batch)
        if alone and self._slot():
            self._slots.release(self._limits.width)

    def _hand_on(self, batch: Batch | None) -> None:
        """The most urgent batch is computed first; None, the end, comes last."""
        if batch is None or not batch.attempts:
            urgency = -math.inf if batch is None else 0.0
        else:
            urgency = float(self._spec.priority(batch.attempts[0].name))
        self._read.put((-urgency, next(self._numbers), batch))

    def _time_is_up(self) -> bool:
        limit = self._limits.runtime
        if limit is not None and time.monotonic() - self._started + 2 * self._longest + 0.05 * limit > limit:
            self.stop("time is up")
        return self._stop.is_set()

    # ---- computing

    def _count_ahead(self, change: int) -> None:
        with self._counting:
            self._ahead += change
            if self._ahead:
                self._free.clear()
            else:
                self._free.set()

    def _compute(self, batch: Batch) -> None:
        self._run(batch)
        self._count_ahead(-1)
        self._computed.put(batch)

    def _run(self, batch: Batch) -> None:
        """Call the kernels of a batch."""
        start = time.monotonic()
        with self._calls.surroundings():
            batch.attempts = [attempt for attempt in batch.attempts if self._is_computed(attempt)]
        batch.took(start)
        self._longest = max(self._longest, batch.seconds)

    def _is_computed(self, attempt: Attempt) -> bool:
        """Call the kernel of a task; whether there is something to write."""
        if self._stop.is_set():
            self._taker.give_back(attempt)
            return False
        try:
            if isinstance(attempt.task, Task):
                self._inside[attempt.name] = attempt, time.monotonic()
                self._compute_one(attempt)
            if not attempt.seen or not self._traffic.changed(attempt.seen):
                return True
            self._taker.lost(attempt)  # the kernel may have read something else
        except Interrupted:
            self._taker.give_back(attempt)
        except StoreError:  # of the ledger: kernels raise nothing that is not theirs
            raise
        except Exception as error:
            if self._traffic.changed(attempt.seen):
                self._taker.lost(attempt)
            else:
                self._taker.fail(attempt, self._taker.told(attempt, error))
        finally:
            self._inside.pop(attempt.name, None)
        return False

    def _compute_one(self, attempt: Attempt) -> None:
        self._teller.started(attempt)
        if attempt.deaths:
            self._quarantine.compute(attempt)
            return
        if attempt.number == 1:
            self._calls.compute(attempt)
            return
        # Somebody tried before. Should this worker die inside the kernel, the task is to blame; not after it.
        self._ledger.computing(attempt.name, attempt.token)
        self._calls.compute(attempt)
        self._ledger.forget(attempt.name, attempt.token)

    # ---- writing

    def _write_and_tell(self) -> None:
        while (batch := self._computed.get()) is not None:
            self._end(batch)

    def _end(self, batch: Batch) -> None:
        self._finish(batch)
        self._adapt(batch)
        self._slots.release()

    def _finish(self, batch: Batch) -> None:
        start = time.monotonic()
        written: list[Attempt] = []
        for attempt in batch.attempts:
            self._unheard[attempt.token] = attempt.name
            try:
                self._completions.write(attempt)
                self._taker.stored()
                written.append(attempt)
            except StoreError as error:
                self._taker.troubled(attempt, error, "write")
            except Exception as error:
                self._taker.fail(attempt, self._taker.told(attempt, error))
        if not written:
            return
        leases, first = self._completions.complete(written, self._goes_on_with())
        self._holding.claim(leases)
        self._holding.drop(attempt.name for attempt in written)
        for attempt in written:
            self._unheard.pop(attempt.token, None)
        self._done += first
        self._last_work = time.monotonic()
        batch.took(start)

    def _goes_on_with(self) -> int:
        """How many of the children made ready to keep: who has enough would let them wait for nothing."""
        if self._stop.is_set():
            return 0
        if self._batch >= _SHORT:
            return self._batch // 2
        return int(self._free.is_set() and not self._holding.has_claims())

    def _adapt(self, batch: Batch) -> None:
        """Let a batch hold as many tasks as take about its share of time."""
        # The middle one: of many short tasks, some are long because the system let others run meanwhile.
        seconds = sorted(attempt.seconds for attempt in batch.attempts)
        if seconds and seconds[len(seconds) // 2] > _ALONE:
            self._batch = 1
        elif batch.seconds < _BATCH_SECONDS / 2 and batch.tasks >= self._batch:
            self._batch = min(2 * self._batch, _BATCH)
        elif batch.seconds > _BATCH_SECONDS:
            self._batch = max(1, int(batch.tasks * _BATCH_SECONDS / batch.seconds))

    # ---- beside the work

    def _keep(self) -> None:
        """Renew leases and tell that the worker lives, several times a lease; delete what nobody needs."""
        period = min(1.0, self._options.lease / 4)
        while not self._stop.wait(period):
            leases = self._holding.leases()
            if leases:
                self._queue.renew(leases, self._options.lease)
            self._look_at_times()
            if not self._is_over(self._tell()) and self._options.delete:
                self._completions.delete_unneeded(self._options.grace)

    def _look_at_times(self) -> None:
        """Fail the job if a task takes longer than it may."""
        limit = self._options.task_seconds
        for attempt, since in list(self._inside.values()):
            # In quarantine a task gets its time when its process has begun: that looks after it.
            if limit is not None and not attempt.deaths and time.monotonic() - since > limit:
                self._taker.fail(attempt, too_slow(self._spec.bound, attempt, limit))

    def _is_over(self, status: Status) -> bool:
        """Whether the job goes on no more; then the worker stops."""
        if status.state != "running":
            self.stop("finished" if status.state == "finished" else "halted")
        return status.state != "running"
