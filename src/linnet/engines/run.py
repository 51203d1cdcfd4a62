"""One run of a program on threads: who takes which task, and when.

Workers come when there are tasks for them, stay while they find some, and go. Short tasks are
left to one worker at a time: several would spend more on waiting for each other, at the
interpreter's lock, than on the tasks. If that worker is the caller itself, no thread is woken
at all, and a run of a few short tasks takes microseconds. Long tasks never run on the caller's
thread, which must be there when Ctrl-C comes.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Mapping
from typing import NoReturn

from linnet.engines.budget import Budget
from linnet.engines.engine import Outputs
from linnet.engines.execute import Done, Executor
from linnet.engines.pool import POOL
from linnet.engines.residency import Residency
from linnet.engines.run_events import Telling
from linnet.engines.store import TileStore
from linnet.engines.task_list import TaskList
from linnet.engines.worker_blas import BlasThreads
from linnet.errors import ProgramError
from linnet.events import TaskReady, TaskStarted
from linnet.planning.schedule import Schedule
from linnet.programs import BoundProgram
from linnet.tiles import TiledArray, TileKey

_LOOK = 0.02
"""Seconds after which the caller looks whether workers are missing: the short task that one of them
runs may not be short."""
_BATCH = 16
"""How many short tasks a worker takes at a time."""
_LONG = 1e-4
"""Seconds in a kernel after which the rest of what was taken along is given back."""
_GRACE = 1.0
"""Seconds given to kernels in flight when a run is broken off: they cannot be stopped, only left behind."""
_NOBODY = -1


class Run:
    """A schedule and a store, guarded by one lock, and the workers that come to them."""

    def __init__(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        telling: Telling,
        blas: BlasThreads,
        *,
        workers: int,
        budget: Budget | None,
        deterministic: bool,
    ) -> None:
        self._bound = bound
        self._inputs = dict(inputs)
        self._tell = telling
        self._blas = blas
        self._deterministic = deterministic
        needs = None if budget is None else budget.needs(bound, inputs)
        self._plan = TaskList.of(bound)
        self._plan.expect(inputs)
        ranking = self._plan.ranking(sparing=budget is not None or bound.program.streams)
        self._schedule = Schedule(self._plan.arrays, ranking)
        self._store = TileStore(bound, self._inputs, out, budget)
        self._executor = Executor(bound, self._plan, self._inputs, self._store)
        self._residency: Residency | None = None
        if budget is not None and needs is not None:
            given = {**inputs, **out}
            self._residency = Residency(budget, needs, bound, self._plan, self._schedule, self._store, given)
        self._workers = max(1, min(workers, self._schedule.total))
        self._free = list(range(self._workers))[::-1]
        self._short_runner = _NOBODY
        self._lock = threading.Lock()
        self._stopping = False
        self._error: BaseException | None = None
        self._over = threading.Lock()
        self._over.acquire()

    # ---- the caller's thread

    def outcome(self) -> Outputs:
        """Run all tasks, and return the outputs or raise what went wrong."""
        schedule, tell = self._schedule, self._tell
        tell.started(self._bound.program.name, schedule.total, self._workers)
        if tell.wants(TaskReady):
            tell.ready(map(self._plan.task, schedule.waiting()))
        try:
            if schedule.total:
                self._work(self._free.pop(), here=True)
                self._watch()
        except BaseException:  # Ctrl-C, most likely
            self._stop(None)
            if len(self._free) < self._workers:
                self._over.acquire(timeout=_GRACE)
            tell.cancelled(schedule.done)
            self._let_go()
            raise
        if self._error is not None:
            tell.failed(self._error, schedule.done, schedule.total)
            self._fail()
        tell.finished(schedule.done, schedule.total)
        results = self._store.results()
        self._let_go()
        return Outputs(self._bound, results)

    def _watch(self) -> None:
        """Wait for the end, and see that workers are there while tasks are."""
        schedule = self._schedule
        done = _NOBODY
        while not self._over.acquire(timeout=_LOOK):
            self._tell.progress(
                schedule.done, schedule.total, schedule.ready, self._workers - len(self._free)
            )
            with self._lock:
                if schedule.done == done:
                    self._short_runner = _NOBODY
                done = schedule.done
                called = self._called()
            self._start(called)

    def _fail(self) -> NoReturn:
        error, self._error = self._error, None
        assert error is not None
        try:
            raise error
        finally:
            # Whoever keeps the error keeps this run, through its traceback.
            self._let_go()
            del error

    def _let_go(self) -> None:
        """A thread may be on its last steps in here: it must not keep the tiles."""
        self._store.clear()
        self._inputs.clear()

    def _stop(self, error: BaseException | None) -> None:
        with self._lock:
            self._stopping = True
            if self._error is None:
                self._error = error

    # ---- the workers

    def _work(self, slot: int, *, here: bool = False) -> None:
        """Run tasks while there are some; `here`, on the caller's thread, short ones only."""
        finished: list[tuple[int, Done]] = []
        try:
            if not here:
                self._blas.limit()
            while numbers := self._next(slot, finished, here):
                finished = self._run_all(numbers, slot)
        except BaseException as error:
            interrupted = here and not isinstance(error, Exception)
            self._stop(None if interrupted else error)
            self._leave(slot)
            if interrupted:
                raise

    def _next(self, slot: int, finished: list[tuple[int, Done]], here: bool) -> list[int]:
        """Hand in finished tasks, and take the most urgent ones; none: this worker has left.

        One visit to the lock for all of it, so that a worker never leaves while tasks become
        ready for which nobody else is called.
        """
        schedule, store, tell = self._schedule, self._store, self._tell
        dropped: list[tuple[TileKey, int]] = []
        called: list[int] = []
        with self._lock:
            if self._short_runner == slot:
                self._short_runner = _NOBODY
            for number, done in finished:
                made_ready = schedule.finish(number)
                if made_ready and tell.wants(TaskReady):
                    tell.ready(map(self._plan.task, made_ready))  # before anybody can start them
                dropped += store.release(done.read)
                if self._residency is not None:
                    self._residency.end(number, done.read, done.written)
            if dropped and not tell.silent:
                tell.dropped(dropped)  # before the run can be over
            numbers = self._take(slot, here)
            if not numbers:
                self._free.append(slot)
            if schedule.ready and self._free and (numbers or here):
                called = self._called()
            if not numbers:
                self._end_if_last(slot)
        if called:
            self._start(called)
        return numbers

    def _take(self, slot: int, here: bool) -> list[int]:
        """The most urgent ready task, if it is this worker's to run and its tiles fit into memory now.

        Short tasks are taken several at a time. What follows a short task may be long; it is
        then left to the next who comes.
        """
        schedule, short = self._schedule, self._plan.short
        if self._stopping or not schedule.ready or (here and self._residency is not None):
            return []
        if not short(schedule.next):
            return [] if here else self._admitted()
        if self._short_runner != _NOBODY:
            return []
        self._short_runner = slot
        if self._residency is not None:
            return self._admitted()
        numbers = [schedule.take()]
        while len(numbers) < _BATCH and schedule.ready and short(schedule.next):
            numbers.append(schedule.take())
        return numbers

    def _admitted(self) -> list[int]:
        number = self._schedule.take()
        if self._residency is None or self._residency.admit(number):
            return [number]
        self._schedule.give_back(number)
        return []

    def _called(self) -> list[int]:
        """Workers that should come; the lock is held."""
        schedule = self._schedule
        if self._stopping or not schedule.ready:
            return []
        wanted = min(len(self._free), schedule.ready)
        if wanted and self._plan.short(schedule.next):
            wanted = 1 if self._short_runner == _NOBODY else 0
        return [self._free.pop() for _ in range(wanted)]

    def _start(self, slots: list[int]) -> None:
        for slot in slots:
            # Kernels see the caller's context (np.errstate, say), each worker a copy of it.
            context = contextvars.copy_context()
            try:
                POOL.start(lambda slot=slot, context=context: context.run(self._work, slot))
            except BaseException:
                self._leave(slot)
                raise

    def _leave(self, slot: int) -> None:
        """A worker goes because something went wrong."""
        with self._lock:
            if slot not in self._free:  # Ctrl-C may come when it has just gone
                self._free.append(slot)
                self._end_if_last(slot)

    def _end_if_last(self, slot: int) -> None:
        """A worker has gone; the last one ends the run. The lock is held."""
        if self._short_runner == slot:
            self._short_runner = _NOBODY
        if len(self._free) == self._workers:
            if self._schedule.stuck and not self._stopping:
                self._error = self._cycle()
            self._over.release()

    def _cycle(self) -> ProgramError:
        left = self._schedule.total - self._schedule.done
        return ProgramError(
            f"{left:,} of {self._schedule.total:,} tasks of {self._bound.program.name} wait for one another "
            "and can never run; a tile is read before, in program order, it is written"
        )

    # ---- tasks

    def _run_all(self, numbers: list[int], slot: int) -> list[tuple[int, Done]]:
        """Run tasks one after another; those that come after a long one, or a stop, are given back."""
        if len(numbers) == 1:
            return [(numbers[0], self._execute(numbers[0], slot))]
        finished: list[tuple[int, Done]] = []
        for number in numbers:
            done = self._execute(number, slot)
            finished.append((number, done))
            if done.seconds > _LONG or self._stopping:
                with self._lock:
                    for rest in numbers[len(finished) :]:
                        self._schedule.give_back(rest)
                break
        return finished

    def _execute(self, number: int, slot: int) -> Done:
        schedule, tell, residency = self._schedule, self._tell, self._residency
        call = self._plan.call(number)
        silent = tell.silent
        if not silent and tell.wants(TaskStarted):
            tell.task_started(self._plan.task(number), call, slot)
        try:
            if residency is not None:
                residency.prepare(number, call, self._lock)
            if schedule.alone and self._blas.worthwhile(call, self._store.get, self._deterministic):
                with self._blas.widened():
                    done = self._executor.run(number, call, schedule.children(number))
            else:
                done = self._executor.run(number, call, schedule.children(number))
        except BaseException as error:
            tell.task_failed(self._plan.task(number), call, slot, error)
            raise
        self._plan.took(number, done.seconds)
        if not silent:
            tell.count(call.kernel, slot, done)
            if tell.tells(done.seconds):
                tell.task_finished(self._plan.task(number), call, slot, done)
        return done
