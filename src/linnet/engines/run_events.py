"""What a run on threads tells its listeners; an event that nobody wants is never made."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING

from linnet.engines.execute import Done
from linnet.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    KernelTotal,
    PlanMade,
    Progress,
    Sink,
    TaskFailed,
    TaskFinished,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileRead,
    TilesWritten,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
)
from linnet.events.resident import resident
from linnet.programs import Call, Task
from linnet.tiles import TileKey

if TYPE_CHECKING:  # who only computes arrays does not wait for planning
    from linnet.planning.plan import Plan

JOBS = itertools.count(1)
"""Numbers for the jobs of this process, whichever engine runs them: the record knows them by name."""

_PROGRESS_EVERY = 0.1
_OF_THE_END = frozenset({TaskFinished, TileRead, TileWritten, TileDropped})
"""What is told when a task has ended."""


class Telling:
    """The events of one job, sent to one sink."""

    def __init__(self, events: Sink, job: str, *, elsewhere: bool = False) -> None:
        """`elsewhere`: tasks run in other processes, too, so that this one's memory says little."""
        self._events = events
        self._elsewhere = elsewhere
        self._job = job
        self._begun = time.perf_counter()
        self._begun_at = time.time()
        self._reported = self._begun
        self._workers: list[str] = []
        self._short_tiles: list[tuple[str, tuple[int, ...]]] = []
        """Tiles of tasks that are not told of by themselves, since progress was told last."""
        self._keeps_tiles = False
        self._tallies: dict[int, dict[str, list[float]]] = {}
        """Of each worker and kernel: tasks, seconds, bytes read and written; each worker adds to its own."""

    @property
    def silent(self) -> bool:
        """Whether nobody listens now."""
        return not self._events.wanted

    def wants(self, kind: type[Event]) -> bool:
        """Whether somebody listens to events of this kind now."""
        return kind in self._events.wanted

    def worker(self, slot: int) -> str:
        """The name of a worker."""
        return f"{self._job}-w{slot}"

    # ---- the job

    def started(self, program: str, tasks: int, workers: int) -> None:
        """It began when this was made: what was prepared since counts as time of the job."""
        self._look_for_tiles()
        self._workers = [self.worker(slot) for slot in range(workers)] if self._events.wanted else []
        if self.wants(JobStarted):
            self._events.emit(JobStarted(self._job, self._started_at(), program, tasks, workers))
        for worker in self._workers:
            self._emit(WorkerStarted, worker)

    def planned(self, plan: Plan) -> None:
        """The plan that tasks follow, where there are several nodes."""
        if self.wants(PlanMade) and plan.cluster.count > 1:
            self._emit(PlanMade, plan.explain(), int(plan.bytes_moved), plan.lower_bound)

    def finished(self, done: int, tasks: int) -> None:
        self._end(done, tasks)
        self._emit(JobFinished, self._seconds())

    def failed(self, error: BaseException, done: int, tasks: int) -> None:
        self._end(done, tasks)
        self._emit(JobFailed, f"{type(error).__name__}: {error}", self._seconds())

    def cancelled(self, done: int) -> None:
        for worker in self._workers:
            self._emit(WorkerStopped, worker)
        self._emit(JobCancelled, done, self._seconds())

    def progress(self, done: int, tasks: int, ready: int = 0, running: int = 0) -> None:
        """From time to time, however often this is called."""
        now = time.perf_counter()
        if now - self._reported >= _PROGRESS_EVERY:
            self._reported = now
            self._tell_totals(done, tasks, ready, running)

    def _end(self, done: int, tasks: int) -> None:
        for worker in self._workers:
            self._emit(WorkerStopped, worker)
        self._tell_totals(done, tasks, 0, 0)

    def _tell_totals(self, done: int, tasks: int, ready: int, running: int) -> None:
        """What was counted up to now: how far the job is, and what each kernel did."""
        self._look_for_tiles()
        if self._short_tiles:
            told, self._short_tiles = self._short_tiles, []
            self._emit(TilesWritten, tuple(told))
        kernels: dict[str, list[float]] = {}
        for tally in list(self._tallies.values()):
            for kernel, counted in list(tally.items()):
                kernels[kernel] = [
                    a + b for a, b in zip(kernels.get(kernel, (0, 0, 0, 0)), counted, strict=True)
                ]
        if self.wants(KernelTotal):
            for kernel, (count, seconds, _, _) in kernels.items():
                self._emit(KernelTotal, kernel, int(count), seconds)
        if self.wants(Progress):
            read, written = (int(sum(each[place] for each in kernels.values())) for place in (2, 3))
            workers = len(self._workers)
            self._emit(Progress, done, tasks, ready, running, workers, read, written, self._memory())

    def _memory(self) -> int:
        """Memory of the process, where tasks run in it."""
        return 0 if self._elsewhere else resident()

    def _started_at(self) -> float:
        return self._begun_at

    def _seconds(self) -> float:
        return time.perf_counter() - self._begun

    # ---- tasks and tiles

    def ready(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._emit(TaskReady, task)

    def count(self, kernel: str, slot: int, done: Done) -> None:
        """A task is done, which perhaps nobody wants to hear of by itself."""
        tally = self._tallies.get(slot)
        if tally is None:
            tally = self._tallies[slot] = {}
        counted = tally.get(kernel)
        if counted is None:
            counted = tally[kernel] = [0, 0.0, 0, 0]
        counted[0] += 1
        counted[1] += done.seconds
        counted[2] += sum(done.read.values())
        for _, size in done.written:
            counted[3] += size

        if self._keeps_tiles and done.seconds < getattr(self._events, "least", 0.0):
            self._short_tiles += [(key.array, key.index) for key, _ in done.written]

    def _look_for_tiles(self) -> None:
        self._keeps_tiles = TilesWritten in self._events.wanted and getattr(self._events, "least", 0.0) > 0.0

    def tells(self, seconds: float) -> bool:
        """Whether somebody wants to hear of a task that took so long, or of its tiles."""
        events = self._events
        return seconds >= getattr(events, "least", 0.0) and not events.wanted.isdisjoint(_OF_THE_END)

    def task_started(self, task: Task, call: Call, slot: int) -> None:
        self._emit(TaskStarted, task, call.kernel, self.worker(slot))

    def task_failed(self, task: Task, call: Call, slot: int, error: BaseException) -> None:
        self._emit(TaskFailed, task, call.kernel, self.worker(slot), f"{type(error).__name__}: {error}")

    def task_finished(self, task: Task, call: Call, slot: int, done: Done) -> None:
        worker = self.worker(slot)
        if self.wants(TileRead):
            for key, size in done.read.items():
                self._emit(TileRead, key.array, key.index, size, worker)
        if self.wants(TileWritten):
            for key, size in done.written:
                self._emit(TileWritten, key.array, key.index, size, worker)
        self._emit(TaskFinished, task, call.kernel, worker, done.seconds)
        self.dropped(done.unread)

    def dropped(self, tiles: Iterable[tuple[TileKey, int]]) -> None:
        if self.wants(TileDropped):
            for key, size in tiles:
                self._emit(TileDropped, key.array, key.index, size)

    def _emit(self, kind: type[Event], *fields: object) -> None:
        if kind in self._events.wanted:
            self._events.emit(kind(self._job, time.time(), *fields))
