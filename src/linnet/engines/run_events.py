"""What a run on threads tells its listeners; an event that nobody wants is never made."""

from __future__ import annotations

import time
from collections.abc import Iterable

from linnet.engines.execute import Done
from linnet.events import (
    Event,
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
from linnet.programs import Call, Task
from linnet.tiles import TileKey

_PROGRESS_EVERY = 0.1


class Telling:
    """The events of one job, sent to one sink."""

    def __init__(self, events: Sink, job: str) -> None:
        self._events = events
        self._job = job
        self._begun = time.perf_counter()
        self._reported = self._begun
        self._workers: list[str] = []

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
        self._workers = [self.worker(slot) for slot in range(workers)] if self._events.wanted else []
        self._emit(JobStarted, program, tasks, workers)
        for worker in self._workers:
            self._emit(WorkerStarted, worker)

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

    def progress(self, done: int, tasks: int) -> None:
        """From time to time, however often this is called."""
        now = time.perf_counter()
        if now - self._reported >= _PROGRESS_EVERY:
            self._reported = now
            self._emit(Progress, done, tasks)

    def _end(self, done: int, tasks: int) -> None:
        for worker in self._workers:
            self._emit(WorkerStopped, worker)
        self._emit(Progress, done, tasks)

    def _seconds(self) -> float:
        return time.perf_counter() - self._begun

    # ---- tasks and tiles

    def ready(self, tasks: Iterable[Task]) -> None:
        for task in tasks:
            self._emit(TaskReady, task)

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
