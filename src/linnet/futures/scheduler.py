"""Calls that run side by side on threads, and how to wait for one without holding a worker.

A `Task` is a call whose arguments may be other tasks. Its state changes under the scheduler's lock only. Who
waits for a task gives its place to another thread meanwhile, so that calls that wait for calls never block
each other, with one worker too. A worker that waits for a task nobody has begun runs it itself: this needs no
thread, and cannot deadlock, because nothing else is ever stacked on top of a waiting call. After a few such
levels another thread takes over, so that a deep recursion does not fill one thread's stack.
"""

from __future__ import annotations

import heapq
import itertools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from contextvars import Context
from typing import Any

import numpy as np

from linnet.engines.pool import POOL

WAITING, READY, RUNNING, DONE = range(4)
_NESTED = 5
"""So many calls may run on one thread, each waiting for the next."""
_BIG = 1 << 17
"""Operators on arrays of more bytes are worth another thread."""
_numbers = itertools.count()
_NONE: list[Any] = []
"""Who reads and watches a task that is done; never added to."""


class _Here(threading.local):
    """What this thread does."""

    scheduler: Scheduler | None = None
    """Whose worker it is."""
    nested: int = 0
    """How many calls run on it because others wait for them."""
    depth: int = 0
    """How deep the call that it runs is nested in others."""
    activation: Any = None
    """The parallel function whose statements it executes."""


here = _Here()


class Task:
    """A call that will have a value or an error."""

    __slots__ = (
        "args",
        "context",
        "depth",
        "error",
        "fills",
        "fresh",
        "function",
        "guard",
        "keywords",
        "light",
        "line",
        "needs",
        "parts",
        "plain",
        "priority",
        "readers",
        "retries",
        "state",
        "uses",
        "value",
        "waits",
        "watchers",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...] = (),
        keywords: dict[str, Any] | None = None,
    ) -> None:
        self.function: Any = function
        self.args: tuple[Any, ...] = args
        self.keywords = keywords
        self.needs: list[Task] = []
        """Tasks to be done before it."""
        self.waits = 0
        """How many of them are not."""
        self.readers: list[Task] = []
        """Tasks that need it."""
        self.watchers: list[Any] = []
        """Called when it is done."""
        self.state = WAITING
        self.value: Any = None
        self.error: BaseException | None = None
        self.depth = 0
        self.priority = 0
        self.retries = 0
        self.context: Context | None = None
        self.light = False
        """Whether it takes less time than handing it to a worker."""
        self.fills: list[Any] | None = None
        """Containers with tasks in them, which are replaced by their values before the call."""
        self.guard: Callable[[Task], None] | None = None
        """Looks at the values that it needs before the call; raises if it may not run."""
        self.line = 0
        """The line that made it."""
        self.plain = False
        """Whether its value is known to be of a plain type."""
        self.fresh = False
        """Whether its value is an object that nobody else has."""
        self.uses = 0
        """How many tasks read its value."""
        self.parts: tuple[Any, ...] | None = None
        """The elements, if its value is a tuple that was written down."""

    def call(self) -> Any:
        """Make the call; every task it needs is done."""
        if self.guard is not None:
            self.guard(self)
        if self.fills:
            for container in self.fills:
                fill(container)
        args = [each.value if type(each) is Task else each for each in self.args]
        keywords = self.keywords
        if keywords:
            keywords = {name: each.value if type(each) is Task else each for name, each in keywords.items()}
        while True:
            try:
                if self.context is not None:
                    return self.context.copy().run(self.function, *args, **(keywords or {}))
                return self.function(*args, **(keywords or {}))
            except Exception:
                if self.retries <= 0:
                    raise
                self.retries -= 1

    def forget(self) -> None:
        """Let go of what the call needed."""
        self.function = self.args = self.keywords = self.context = self.fills = self.guard = None  # type: ignore[assignment]
        self.needs = _NONE


def fill(container: Any) -> None:
    """Put values in the place of tasks that are done."""
    if type(container) is list:
        for index, each in enumerate(container):
            if type(each) is Task and each.state == DONE and each.error is None:
                container[index] = each.value
    else:
        for key, each in container.items():
            if type(each) is Task and each.state == DONE and each.error is None:
                container[key] = each.value


class Scheduler:
    """Runs tasks on so many threads at a time.

    >>> scheduler = Scheduler(workers=2)
    >>> task = Task(pow, (2, 10))
    >>> scheduler.submit(task)
    >>> scheduler.wait(task), task.value
    (True, 1024)
    """

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._lock = threading.Lock()
        self._ready: list[tuple[int, int, int, Task]] = []
        self._active = 0
        """Threads that run a task, those that wait not counted."""

    def submit(self, task: Task, needs: Iterable[Task] = ()) -> None:
        """Run a task once those it needs are done; a light one that needs none runs at once."""
        with self._lock:
            for need in needs:
                if need.state != DONE:
                    need.readers.append(task)
                    task.needs.append(need)
                    task.waits += 1
                elif need.error is not None and task.error is None:
                    task.error = need.error
            if task.waits:
                return
            if task.error is not None:
                task.state = DONE
                task.forget()
                return
            if not task.light or _is_big(task):
                self._push(task)
                return
            task.state = RUNNING
        self.run(task)

    def _push(self, task: Task) -> None:
        """A task can run; the lock is held."""
        task.state = READY
        heapq.heappush(self._ready, (-task.priority, -task.depth, next(_numbers), task))
        self._staff()

    def _staff(self) -> None:
        """Start a worker if a place is free; the lock is held."""
        if self._ready and self._active < self.workers:
            self._active += 1
            POOL.start(self._work)

    def _work(self) -> None:
        """A worker: runs what is ready until nothing is, or others hold all places."""
        here.scheduler = self
        try:
            while True:
                with self._lock:
                    task = self._take()
                    if task is None:
                        self._active -= 1
                        return
                    self._staff()
                self.run(task)
        finally:
            here.scheduler = None

    def _take(self) -> Task | None:
        if self._active > self.workers:
            return None
        while self._ready:
            task = heapq.heappop(self._ready)[3]
            if task.state == READY:
                task.state = RUNNING
                return task
        return None

    def run(self, task: Task) -> None:
        """Run a task that is this thread's, and light ones that waited for it."""
        before = here.depth, here.activation
        here.activation = None
        ahead = [task]
        while ahead:
            task = ahead.pop()
            here.depth = task.depth
            value, error = None, None
            try:
                value = task.call()
            except BaseException as raised:
                error = raised
            self.finish(task, value, error, ahead)
            del value, error
        here.depth, here.activation = before

    def finish(
        self, task: Task, value: Any, error: BaseException | None, ahead: list[Task] | None = None
    ) -> None:
        """Say what came of a task; light readers that can run now are added to `ahead`."""
        watchers: list[Any] = []
        with self._lock:
            if task.state == DONE:  # somebody cancelled it meanwhile
                return
            done = [task]
            task.value, task.error = value, error
            while done:
                one = done.pop()
                one.state = DONE
                one.forget()
                watchers += one.watchers
                readers, one.readers, one.watchers = one.readers, _NONE, _NONE
                for reader in readers:
                    reader.waits -= 1
                    if one.error is not None and reader.error is None:
                        reader.error = one.error
                    if reader.waits or reader.state != WAITING:
                        continue
                    if reader.error is not None:
                        done.append(reader)
                    elif reader.light and ahead is not None and not _is_big(reader):
                        reader.state = RUNNING
                        ahead.append(reader)
                    else:
                        self._push(reader)
        for watcher in watchers:
            watcher()

    def cancel(self, task: Task) -> bool:
        """Take back a task that has not begun; False: it has."""
        with self._lock:
            if task.state not in (WAITING, READY):
                return task.state == DONE and isinstance(task.error, CancelledError)
            task.state = RUNNING
        self.finish(task, None, CancelledError("the call was cancelled before it began"))
        return True

    def watch(self, task: Task, watcher: Callable[[], Any]) -> None:
        """Call this when the task is done; at once if it is."""
        with self._lock:
            if task.state != DONE:
                task.watchers.append(watcher)
                return
        watcher()

    def wait(self, task: Task, timeout: float | None = None) -> bool:
        """Wait until a task is done; False: the time is over before. Its place is free meanwhile."""
        if task.state == DONE:
            return True
        worker = here.scheduler is self
        with self._lock:
            if task.state == DONE:
                return True
            mine = worker and timeout is None and task.state == READY and here.nested < _NESTED
            gate = threading.Lock()
            if mine:
                task.state = RUNNING
            else:
                gate.acquire()
                task.watchers.append(gate.release)
                self._hurry(task)
                if worker:
                    self._active -= 1
                    self._staff()
        if mine:
            here.nested += 1
            try:
                self.run(task)
            finally:
                here.nested -= 1
            return True
        try:
            return gate.acquire(timeout=-1 if timeout is None else max(0.0, timeout))
        finally:
            if worker:
                with self._lock:
                    self._active += 1

    def _hurry(self, task: Task) -> None:
        """Somebody waits for a task: it, and what it needs, comes first. The lock is held."""
        todo, seen = [task], {id(task)}
        while todo:
            one = todo.pop()
            if one.state == READY:
                heapq.heappush(self._ready, (-(1 << 62), -one.depth, next(_numbers), one))
            elif one.state == WAITING:
                for need in one.needs:
                    if id(need) not in seen:
                        seen.add(id(need))
                        todo.append(need)


def _is_big(task: Task) -> bool:
    """Whether an operator has arrays so long that it is worth a worker."""
    for each in task.args:
        value = each.value if type(each) is Task else each
        if type(value) is np.ndarray and value.nbytes > _BIG:
            return True
    return False


_schedulers: dict[int, Scheduler] = {}
_lock = threading.Lock()


def scheduler(workers: int) -> Scheduler:
    """The scheduler of this process with so many workers."""
    found = _schedulers.get(workers)
    if found is None:
        with _lock:
            found = _schedulers.setdefault(workers, Scheduler(workers))
    return found


def _forget() -> None:
    """This is another process now, without these threads."""
    global _lock
    _lock = threading.Lock()
    _schedulers.clear()
    here.__dict__.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
