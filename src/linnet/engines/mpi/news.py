"""Events of many ranks as one story: a task begins only after those it waits for have ended.

Messages of different ranks may overtake one another, so rank 0 puts them in order: the beginning of a task is
held back until the ends of all its parents were told.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from linnet.events import Event, Progress, Sink, TaskFinished, TaskReady, TaskStarted
from linnet.events.types import ALL_EVENTS, TASK_EVENTS, TILE_EVENTS
from linnet.programs import Task
from linnet.programs.enumeration import TaskArrays

_NAMES = [kind.__name__ for kind in ALL_EVENTS]


def names(kinds: frozenset[type[Event]]) -> tuple[str, ...]:
    """Kinds of events that ranks must tell of, so that these can be told."""
    told = {kind for kind in kinds if kind in (*TASK_EVENTS, *TILE_EVENTS, Progress)} - {TaskReady}
    if kinds & {TaskReady, TaskStarted}:
        told.add(TaskFinished)
    return tuple(sorted(kind.__name__ for kind in told))


class Told:
    """A sink that collects events, for rank 0."""

    def __init__(self, wanted: Sequence[str]) -> None:
        self.wanted: frozenset[type[Event]] = frozenset(ALL_EVENTS[_NAMES.index(name)] for name in wanted)
        """Kinds of events that somebody listens to."""
        self._lock = threading.Lock()
        self._events: list[Event] = []

    def emit(self, event: Event) -> None:
        """Keep an event until it is taken."""
        with self._lock:
            self._events.append(event)

    def taken(self) -> list[Event]:
        """What was collected since the last look."""
        with self._lock:
            found, self._events = self._events, []
        return found


def packed(events: Sequence[Event]) -> bytes:
    """Events as they travel."""
    rows = [
        [
            _NAMES.index(type(event).__name__),
            *(getattr(event, each.name) for each in dataclasses.fields(event)),
        ]
        for event in events
    ]
    return msgpack.packb(rows)


def unpacked(data: Any) -> list[Event]:
    """Events that have travelled.

    >>> unpacked(packed([TaskReady("job", 1.0, (0, (2, 3)))]))
    [TaskReady(job='job', at=1.0, task=(0, (2, 3)))]
    """
    return [ALL_EVENTS[row[0]](*row[1:]) for row in msgpack.unpackb(data, use_list=False)]


class InOrder:
    """Hands events of all ranks to a sink, in an order that can have been."""

    def __init__(
        self, events: Sink, job: str, ranks: int, tasks: TaskArrays, active: NDArray[np.bool_] | None = None
    ) -> None:
        """`active` says which tasks run at all; None: all do."""
        self._events, self._job, self._tasks = events, job, tasks
        self._queues: list[deque[Event]] = [deque() for _ in range(ranks)]
        parents = np.repeat(np.arange(len(tasks)), np.diff(tasks.child_start))
        runs = np.ones(len(tasks), bool) if active is None else active
        self._waiting = np.bincount(tasks.child[runs[parents]], minlength=len(tasks))
        self._active = runs

    def begin(self) -> None:
        """Tell of the tasks that wait for nobody."""
        if TaskReady in self._events.wanted:
            for number in np.flatnonzero(self._active & (self._waiting == 0)).tolist():
                self._events.emit(TaskReady(self._job, time.time(), self._tasks.task(number)))

    def add(self, rank: int, events: Sequence[Event]) -> None:
        """Events of one rank, in the order in which they happened there."""
        self._queues[rank].extend(events)
        while sum(self._hand_on(queue) for queue in self._queues):
            pass

    def end(self) -> None:
        """Hand on what was held back: its parents will not be heard of."""
        for queue in self._queues:
            while queue:
                self._emit(queue.popleft())

    def _hand_on(self, queue: deque[Event]) -> bool:
        some = False
        while queue and self._may(queue[0]):
            self._emit(queue.popleft())
            some = True
        return some

    def _may(self, event: Event) -> bool:
        return not isinstance(event, TaskStarted) or not self._waiting[self._number(event)]

    def _emit(self, event: Event) -> None:
        if type(event) in self._events.wanted:
            self._events.emit(event)
        if isinstance(event, TaskFinished):
            for child in self._tasks.children(self._number(event)).tolist():
                self._waiting[child] -= 1
                if not self._waiting[child] and TaskReady in self._events.wanted:
                    self._events.emit(TaskReady(self._job, event.at, self._tasks.task(child)))

    def _number(self, event: TaskStarted | TaskFinished) -> int:
        return self._tasks.number(Task(*event.task))
