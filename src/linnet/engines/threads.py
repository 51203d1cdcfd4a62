"""The engine on the cores of this machine: threads around kernels that let go of the lock."""

from __future__ import annotations

import itertools
import os
import threading
import time
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any, NoReturn

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.blas import BlasThreads, blas_threads
from linnet.engines.budget import Needs
from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.engines.execute import Done, Executor
from linnet.engines.mapping import Scratch, mapped_zeros
from linnet.engines.residency import Residency
from linnet.engines.schedule import Schedule
from linnet.engines.store import TileStore
from linnet.errors import InputError, ProgramError
from linnet.events import (
    Event,
    Events,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    Progress,
    Sink,
    TaskFailed,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileRead,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
)
from linnet.programs import BoundProgram, Call, Task
from linnet.tiles import TiledArray, TileKey, amount, human

_jobs = itertools.count(1)

_PROGRESS_EVERY = 0.1
_SHORT = 20e-6
"""Seconds in a kernel under which a task costs less than handing it out."""
_BATCH = 8
"""How many short tasks a worker takes at a time, where many more are ready."""
_GRACE = 1.0
"""Seconds given to kernels in flight when a run is broken off: they cannot be stopped, only left behind."""


class Threads:
    """Runs bound programs on threads of this process.

    >>> import numpy as np
    >>> from linnet.programs import TileProgram
    >>> double = TileProgram.from_source('''
    ... def double(A: In, B: Out, N: int):
    ...     for i in range(N):
    ...         B[i] = add(A[i], A[i])
    ... ''')
    >>> a = TiledArray.from_numpy(np.arange(5), tile=2)
    >>> Threads(workers=2).run(double.bind(N=3), {"A": a})["B"].to_numpy()
    array([0, 2, 4, 6, 8])
    """

    def __init__(
        self,
        workers: int | None = None,
        *,
        memory: float | str | None = None,
        scratch: str | os.PathLike[str] | None = None,
        deterministic: bool = False,
    ) -> None:
        """`workers` is how many tasks run side by side; None: one per core.

        `memory`, in bytes or as "2 GB", bounds what tiles take; those needed latest go to
        files in `scratch` (None: the system's folder for temporary files). Arrays given in
        memory do not count; arrays given as `np.memmap` do, as far as they are read. On top
        of it come buffers of BLAS and what the allocator keeps: the measured peak of resident
        memory is 1.1 to 1.7 times the budget.

        A task that runs alone gets all cores. With `deterministic=True` only tasks do whose
        results have the same bits on any number of cores.
        """
        if workers is not None and workers < 1:
            raise InputError(f"workers={workers}: give at least 1, or None for one per core")
        self.workers = available_cores() if workers is None else workers
        self.memory = None if memory is None else amount(memory)
        self.scratch = None if scratch is None else os.fspath(scratch)
        self.deterministic = deterministic

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run every task of the program; see `Engine.run`.

        Ctrl-C breaks the run off: no further task starts, kernels in flight get a second
        to end, and `KeyboardInterrupt` goes to the caller.
        """
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        with blas_threads(self.workers) as blas:
            return _Run(
                bound, inputs, out or {}, self, Events() if events is None else events, blas
            ).outcome()

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`; in a scratch file if it would take more than half of the budget."""
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        if self.memory is not None and size > self.memory // 2:
            return mapped_zeros(shape, dtype, self.scratch)
        return np.zeros(shape, dtype)

    def __repr__(self) -> str:
        options = [f"workers={self.workers}"]
        options += [f"memory={human(self.memory)!r}"] if self.memory is not None else []
        options += ["deterministic=True"] if self.deterministic else []
        return f"Threads({', '.join(options)})"


def available_cores() -> int:
    """The cores this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Run:
    """One run: a schedule and a store, guarded by one lock, and the threads that work on them."""

    def __init__(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        out: Mapping[str, TiledArray],
        engine: Threads,
        events: Sink,
        blas: BlasThreads,
    ) -> None:
        self._bound = bound
        self._blas = blas
        self._deterministic = engine.deterministic
        self._events = events
        self._job = f"{bound.program.name}-{next(_jobs)}"
        budget = engine.memory
        needs = None
        if budget is not None:
            needs = Needs(bound, inputs)
            needs.check(budget)
        self._arrays = bound.task_arrays()
        self._schedule = Schedule(self._arrays)
        scratch = None if budget is None else Scratch(engine.scratch)
        self._store = TileStore(bound, inputs, out, scratch)
        self._executor = Executor(bound, inputs, self._store)
        self._residency: Residency | None = None
        if budget is not None and needs is not None and scratch is not None:
            given = {**inputs, **out}
            self._residency = Residency(
                budget, needs, bound, self._arrays, self._schedule, self._store, given, scratch
            )
        self._workers = max(1, min(engine.workers, self._schedule.total))
        self._offsets: list[int] = self._arrays.offsets.tolist()
        self._short = [False] * len(self._offsets)
        self._many = 2 * _BATCH * self._workers
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._idle = 0
        self._stopping = False
        self._error: BaseException | None = None
        self._over = threading.Event()

    # ---- the caller's thread

    def outcome(self) -> Outputs:
        """Start the workers, wait for the end, and return the outputs or raise what went wrong."""
        begun = time.perf_counter()
        total = self._schedule.total
        if JobStarted in self._events.wanted:
            program = self._bound.program.name
            self._emit(JobStarted(self._job, time.time(), program, total, self._workers))
        self._announce(self._schedule.waiting() if TaskReady in self._events.wanted else [])
        threads = [
            threading.Thread(target=self._work, args=(f"{self._job}-w{number}",), daemon=True)
            for number in range(self._workers)
        ]
        try:
            for thread in threads:
                thread.start()
            self._wait()
        except BaseException:  # Ctrl-C, most likely
            self._stop()
            self._join(threads)
            seconds = time.perf_counter() - begun
            self._emit(JobCancelled(self._job, time.time(), self._schedule.done, seconds))
            self._store.clear()
            raise
        self._join(threads)
        seconds = time.perf_counter() - begun
        self._report_progress()
        if self._error is not None:
            text = f"{type(self._error).__name__}: {self._error}"
            self._emit(JobFailed(self._job, time.time(), text, seconds))
            self._fail()
        self._emit(JobFinished(self._job, time.time(), seconds))
        return Outputs(self._bound, self._store.results())

    def _fail(self) -> NoReturn:
        error, self._error = self._error, None
        assert error is not None
        try:
            raise error
        finally:
            # Whoever keeps the error keeps this run, through its traceback: let go of the tiles.
            self._store.clear()
            del error

    def _wait(self) -> None:
        while not self._over.wait(_PROGRESS_EVERY if Progress in self._events.wanted else None):
            self._report_progress()

    def _report_progress(self) -> None:
        if Progress in self._events.wanted:
            self._emit(Progress(self._job, time.time(), self._schedule.done, self._schedule.total))

    def _join(self, threads: list[threading.Thread]) -> None:
        deadline = time.monotonic() + _GRACE
        for thread in threads:
            if thread.ident is not None:
                thread.join(None if self._schedule.finished else max(0.0, deadline - time.monotonic()))

    def _stop(self, error: BaseException | None = None) -> None:
        with self._changed:
            self._stopping = True
            if self._error is None:
                self._error = error
            self._changed.notify_all()
        self._over.set()

    def _emit(self, event: Event) -> None:
        if type(event) in self._events.wanted:
            self._events.emit(event)

    # ---- the workers' threads

    def _work(self, worker: str) -> None:
        self._emit(WorkerStarted(self._job, time.time(), worker))
        finished: list[tuple[int, Done]] = []
        try:
            self._blas.limit()
            while numbers := self._next(finished):
                finished = [(number, self._execute(number, worker)) for number in numbers]
        except BaseException as error:
            self._stop(error)
        self._emit(WorkerStopped(self._job, time.time(), worker))

    def _execute(self, number: int, worker: str) -> Done:
        schedule, residency = self._schedule, self._residency
        task = self._arrays.task(number)
        call = self._bound.call(task)
        wanted = self._events.wanted
        if TaskStarted in wanted:
            self._emit(TaskStarted(self._job, time.time(), task, call.kernel, worker))
        try:
            if residency is not None:
                residency.prepare(number, call, self._lock)
            if schedule.alone and self._blas.worthwhile(call, self._store.get, self._deterministic):
                with self._blas.widened():
                    done = self._executor.run(task, call, schedule.children(number))
            else:
                done = self._executor.run(task, call, schedule.children(number))
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
            self._emit(TaskFailed(self._job, time.time(), task, call.kernel, worker, text))
            raise
        self._short[task[0]] = done.seconds < _SHORT
        if wanted:
            self._tell(task, call, worker, done)
        return done

    def _next(self, finished: list[tuple[int, Done]]) -> list[int]:
        """Hand in finished tasks, and take the most urgent ones; none when there is no more to do.

        One visit to the lock for both, and a worker goes on with what it has just made
        ready rather than waking another for it.
        """
        schedule = self._schedule
        dropped: list[tuple[TileKey, int]] = []
        with self._lock:
            for number, done in finished:
                made_ready = schedule.finish(number)
                if made_ready and TaskReady in self._events.wanted:
                    self._announce(made_ready)  # inside the lock: before anybody can start them
                dropped += self._store.release(done.read)
                if self._residency is not None:
                    self._residency.end(number, done.read, done.written)
            numbers = [] if self._stopping else self._take()
            if self._idle and schedule.ready:
                self._changed.notify(min(schedule.ready, self._idle))
        if dropped and TileDropped in self._events.wanted:
            self._tell_dropped(dropped)
        return numbers or self._await_tasks()

    def _take(self) -> list[int]:
        """The most urgent ready task whose tiles fit into memory now.

        Short tasks are taken several at a time, where many are ready: workers that come back
        for each would wait for one another at the lock. What follows a short task may be long;
        it is then the last one taken.
        """
        schedule = self._schedule
        number = schedule.take()
        if number is None:
            return []
        if self._residency is not None:
            task = self._arrays.task(number)
            if self._residency.admit(number, task, self._bound.call(task)):
                return [number]
            schedule.give_back(number)
            return []
        numbers = [number]
        while len(numbers) < _BATCH and schedule.ready > self._many:
            if not self._short[bisect_right(self._offsets, number) - 1]:
                break
            number = schedule.take()
            assert number is not None
            numbers.append(number)
        return numbers

    def _await_tasks(self) -> list[int]:
        schedule = self._schedule
        with self._changed:
            while not self._stopping:
                numbers = self._take()
                if numbers:
                    return numbers
                if schedule.finished or schedule.stuck:
                    break
                self._idle += 1
                self._changed.wait()
                self._idle -= 1
        if not self._stopping:
            self._stop(self._cycle() if schedule.stuck else None)
        return []

    def _cycle(self) -> ProgramError:
        left = self._schedule.total - self._schedule.done
        return ProgramError(
            f"{left:,} of {self._schedule.total:,} tasks of {self._bound.program.name} wait for one another "
            "and can never run; a tile is read before, in program order, it is written"
        )

    # ---- events

    def _announce(self, numbers: list[int]) -> None:
        for number in numbers:
            self._emit(TaskReady(self._job, time.time(), self._arrays.task(number)))

    def _tell(self, task: Task, call: Call, worker: str, done: Done) -> None:
        wanted = self._events.wanted
        now = time.time()
        if TileRead in wanted:
            for key, size in done.read.items():
                self._emit(TileRead(self._job, now, key.array, key.index, size, worker))
        if TileWritten in wanted:
            for key, size in done.written:
                self._emit(TileWritten(self._job, now, key.array, key.index, size, worker))
        if TaskFinished in wanted:
            self._emit(TaskFinished(self._job, now, task, call.kernel, worker, done.seconds))
        if done.unread and TileDropped in wanted:
            self._tell_dropped(done.unread)

    def _tell_dropped(self, dropped: list[tuple[TileKey, int]]) -> None:
        for key, size in dropped:
            self._emit(TileDropped(self._job, time.time(), key.array, key.index, size))
