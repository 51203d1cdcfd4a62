"""Calls that run side by side on threads, and how to wait for one without holding a worker.

A `Task` is a call whose arguments may be other tasks. Its state changes under the scheduler's lock only. Who
waits for a task gives its place to another thread meanwhile, so that calls that wait for calls never block
each other, with one worker too. A worker that waits for a task nobody has begun runs it itself: this needs no
thread, and cannot deadlock, because nothing else is ever stacked on top of a waiting call. After a few such
levels another thread takes over, so that a deep recursion does not fill one thread's stack.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from contextvars import Context
from typing import Any, Protocol

import numpy as np

from linnet.engines.pool import POOL

WAITING, READY, RUNNING, DONE = range(4)
STAYS, MAY_TRAVEL, TRAVELS = range(3)
"""Whether a task runs here; on a worker outside if it can, because it is pure; or there and nowhere else."""
_NOTHING: dict[str, Any] = {}
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


here: _Here = _Here()


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
        "later",
        "light",
        "line",
        "lost",
        "needs",
        "node",
        "parts",
        "plain",
        "priority",
        "readers",
        "retries",
        "state",
        "travels",
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
        self.waits: int = 0
        """How many of them are not."""
        self.readers: list[Task] = []
        """Tasks that need it."""
        self.watchers: list[Any] = []
        """Called when it is done."""
        self.state: int = WAITING
        self.value: Any = None
        self.error: BaseException | None = None
        self.depth: int = 0
        self.priority: int = 0
        self.retries: int = 0
        self.context: Context | None = None
        self.light: bool = False
        """Whether it takes less time than handing it to a worker."""
        self.fills: list[Any] | None = None
        """Containers with tasks in them, which are replaced by their values before the call."""
        self.guard: Callable[[Task], None] | None = None
        """Looks at the values that it needs before the call; raises if it may not run."""
        self.line: int = 0
        """The line that made it."""
        self.plain: bool = False
        """Whether its value is known to be of a plain type."""
        self.fresh: bool = False
        """Whether its value is an object that nobody else has."""
        self.uses: int = 0
        """How many tasks read its value."""
        self.parts: tuple[Any, ...] | None = None
        """The elements, if its value is a tuple that was written down."""
        self.later: Callable[[Any], Any] | None = None
        """Gives each argument with values in the place of futures, where these may be anywhere in it."""
        self.travels: int = STAYS
        """Whether it is for workers outside this process, if there are any."""
        self.node: int | None = None
        """Where to run it; None: anywhere."""
        self.lost: int = 0
        """How many workers were lost while they ran it."""

    def ready_call(self) -> tuple[list[Any], dict[str, Any]]:
        """The arguments; every task it needs is done."""
        if self.guard is not None:
            self.guard(self)
        if self.fills:
            for container in self.fills:
                fill(container)
        found = self.later or _value
        return [found(each) for each in self.args], {
            name: found(each) for name, each in (self.keywords or _NOTHING).items()
        }

    def call(self) -> Any:
        """Make the call."""
        args, keywords = self.ready_call()
        while True:
            try:
                if self.context is not None:
                    return self.context.copy().run(self.function, *args, **keywords)
                return self.function(*args, **keywords)
            except Exception:
                if self.retries <= 0:
                    raise
                self.retries -= 1

    def forget(self) -> None:
        """Let go of what the call needed."""
        self.function = self.args = self.keywords = self.context = self.fills = self.guard = None  # type: ignore[assignment]
        self.later = None
        self.needs = _NONE


def _value(each: Any) -> Any:
    return each.value if type(each) is Task else each


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


class Outside(Protocol):
    """Makes calls outside this process."""

    @property
    def places(self) -> int:
        """How many calls may be there at a time."""
        ...

    def together(self, task: Task, ready: int) -> int:
        """How many tasks like this one may go at once, itself counted, while so many others are ready."""
        ...

    def send(self, tasks: list[Task], returned: Callable[..., None]) -> None:
        """Send tasks that are ready; for each, `returned(task, value, error, again=False)` is called once."""
        ...


class Scheduler:
    """Runs tasks on so many threads at a time.

    >>> scheduler = Scheduler(workers=2)
    >>> task = Task(pow, (2, 10))
    >>> scheduler.submit(task)
    >>> scheduler.wait(task), task.value
    (True, 1024)
    """

    def __init__(self, workers: int, outside: Outside | None = None) -> None:
        self.workers = workers
        self.outside = outside
        """Makes calls outside this process; None: nobody does."""
        self._lock = threading.Lock()
        self._leaving: list[tuple[int, int, int, Task]] = []
        """Tasks that are ready to be sent."""
        self._away = 0
        """Groups of tasks that were sent and have not come back."""
        self._sending = False
        """Whether a thread sends tasks now."""
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
        heapq.heappush(self._heap(task), (-task.priority, -task.depth, next(_numbers), task))
        self._staff()

    def _heap(self, task: Task) -> list[tuple[int, int, int, Task]]:
        return self._leaving if task.travels and self.outside is not None else self._ready

    def _staff(self) -> None:
        """Start a worker if a place is free, and one who sends; the lock is held."""
        if self._ready and self._active < self.workers:
            self._active += 1
            POOL.start(self._work)
        if self._leaving and not self._sending:
            assert self.outside is not None
            if self._away < self.outside.places:
                self._sending: bool = True
                POOL.start(self._send)

    def _send(self) -> None:
        """Send tasks as long as there are any, and places for them."""
        assert self.outside is not None
        while True:
            with self._lock:
                tasks = self._group() if self._away < self.outside.places else []
                if not tasks:
                    self._sending = False
                    return
                self._away += 1
            self.outside.send(tasks, functools.partial(self._returned, [len(tasks)]))

    def _group(self) -> list[Task]:
        """Tasks that are sent together: the first that is ready, and those like it that follow."""
        assert self.outside is not None
        first = self._pop(self._leaving)
        if first is None:
            return []
        tasks, most = [first], self.outside.together(first, len(self._leaving))
        while len(tasks) < most and self._leaving and _alike(self._leaving[0][3], first):
            more = heapq.heappop(self._leaving)[3]
            if self._is_ready(more, self._leaving):
                more.state = RUNNING
                tasks.append(more)
        return tasks

    def _returned(
        self, left: list[int], task: Task, value: Any, error: BaseException | None, again: bool = False
    ) -> None:
        """A task came back, with a value, an error, or to be run `again`; `left`: how many of its group."""
        with self._lock:
            left[0] -= 1
            self._away -= not left[0]
            if not again and isinstance(error, Exception) and task.retries > 0:
                task.retries -= 1
                again = True
            if again:
                self._push(task)
                return
            self._staff()
        ahead: list[Task] = []
        self.finish(task, value, error, ahead)
        del value, error
        for light in ahead:
            self.run(light)

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
        return None if self._active > self.workers else self._pop(self._ready)

    def _pop(self, ready: list[tuple[int, int, int, Task]]) -> Task | None:
        while ready:
            task = heapq.heappop(ready)[3]
            if self._is_ready(task, ready):
                task.state = RUNNING
                return task
        return None

    def _is_ready(self, task: Task, ready: list[tuple[int, int, int, Task]]) -> bool:
        """Whether a task is run from here: it may be queued more than once, and found to stay here since."""
        return task.state == READY and self._heap(task) is ready

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
            mine = mine and self._heap(task) is self._ready
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
                heapq.heappush(self._heap(one), (-(1 << 62), -one.depth, next(_numbers), one))
            elif one.state == WAITING:
                for need in one.needs:
                    if id(need) not in seen:
                        seen.add(id(need))
                        todo.append(need)


def _alike(task: Task, other: Task) -> bool:
    """Whether a task may be sent with another one; one that is not ready any more holds up nobody."""
    same = task.function is other.function and task.travels == other.travels and task.node == other.node
    return task.state != READY or (same and not task.lost)


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
