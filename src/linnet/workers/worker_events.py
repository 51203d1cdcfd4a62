"""Events of a worker, kept in the ledger for whoever watches the job; only those kinds it asked for."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence

from linnet.events import (
    Event,
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
from linnet.events.recording import to_json
from linnet.programs import Task
from linnet.tiles import Tile, TileKey
from linnet.workers.attempt import Attempt
from linnet.workers.ledger import Ledger
from linnet.workers.names import named


class Teller:
    """Collects events, and hands them to the ledger with the step they belong to."""

    def __init__(self, ledger: Ledger, job: str, worker: str, wanted: Sequence[str]) -> None:
        self._ledger = ledger
        self._job, self._worker = job, worker
        self._wanted = frozenset(wanted)
        self._lock = threading.Lock()
        self._lines: list[str] = []

    def _wants(self, kind: type[Event]) -> bool:
        """Whether anybody asked for such events; mostly nobody did, and nothing is made for nobody."""
        return kind.__name__ in self._wanted

    def _tell(self, kind: type[Event], make: Callable[[str, float], Event]) -> None:
        if self._wants(kind):
            line = to_json(make(self._job, time.time()))
            with self._lock:
                self._lines.append(line)

    def flush(self) -> None:
        """Hand over what was collected."""
        if not self._lines:
            return
        with self._lock:
            lines, self._lines = self._lines, []
        if lines:
            self._ledger.log(lines)

    def ready(self, names: Sequence[str]) -> None:
        """These tasks have all they read."""
        if not self._wants(TaskReady):
            return
        for task in map(named, names):
            if isinstance(task, Task):
                name = (task.statement, task.indices)
                self._tell(TaskReady, lambda job, at, name=name: TaskReady(job, at, name))

    def started(self, attempt: Attempt) -> None:
        """A kernel is called now."""
        if not self._wants(TaskStarted):
            return
        task, kernel = _name(attempt), _kernel(attempt)
        self._tell(TaskStarted, lambda job, at: TaskStarted(job, at, task, kernel, self._worker))

    def finished(self, attempt: Attempt) -> None:
        """A task is done."""
        if not self._wants(TaskFinished) or not isinstance(attempt.task, Task):
            return
        task, kernel, seconds = _name(attempt), _kernel(attempt), attempt.seconds
        self._tell(TaskFinished, lambda job, at: TaskFinished(job, at, task, kernel, self._worker, seconds))

    def failed(self, attempt: Attempt, error: str) -> None:
        """A task cannot be done."""
        task, kernel = _name(attempt), _kernel(attempt)
        self._tell(TaskFailed, lambda job, at: TaskFailed(job, at, task, kernel, self._worker, error))

    def read(self, tiles: dict[TileKey, Tile]) -> None:
        """Tiles were read."""
        if self._wants(TileRead):
            for (array, index), tile in tiles.items():
                size = tile.nbytes
                self._tell(
                    TileRead,
                    lambda job, at, a=array, i=index, s=size: TileRead(job, at, a, i, s, self._worker),
                )

    def written(self, tiles: Sequence[tuple[TileKey, Tile]]) -> None:
        """Tiles were stored."""
        if self._wants(TileWritten):
            for (array, index), tile in tiles:
                size = tile.nbytes
                self._tell(
                    TileWritten,
                    lambda job, at, a=array, i=index, s=size: TileWritten(job, at, a, i, s, self._worker),
                )

    def dropped(self, key: TileKey) -> None:
        """A tile was deleted; its size is not known any more."""
        self._tell(TileDropped, lambda job, at: TileDropped(job, at, key.array, key.index, 0))

    def came(self) -> None:
        """The worker is ready."""
        self._tell(WorkerStarted, lambda job, at: WorkerStarted(job, at, self._worker))

    def went(self) -> None:
        """The worker takes no more tasks."""
        self._tell(WorkerStopped, lambda job, at: WorkerStopped(job, at, self._worker))


def _name(attempt: Attempt) -> tuple[int, tuple[int, ...]]:
    task = attempt.task
    return (task.statement, task.indices) if isinstance(task, Task) else (-1, ())


def _kernel(attempt: Attempt) -> str:
    return attempt.call.kernel if attempt.call is not None else ""
