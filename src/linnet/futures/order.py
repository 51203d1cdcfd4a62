"""Tasks of a parallel function in the order of the program.

They run in any order, and are retired in this one, as a processor retires instructions: an error counts when
everything before it is known to have none. Whatever may have an effect first waits for all tasks before it.
So between two effects there is nothing but pure calls, whose order nobody can see.

Lists and dicts that the function itself made, and that no running task reads, are written to at once, and
may hold tasks: nobody else can see them. Before one leaves, tasks in it are replaced by their values.
"""

from __future__ import annotations

import contextvars
import sys
import threading
from collections import deque
from concurrent.futures import CancelledError
from types import TracebackType
from typing import Any

import numpy as np

from linnet.engines.pool import POOL
from linnet.futures.plain import ATOMS, INSIDE, Survey, is_plain, surveyed
from linnet.futures.scheduler import DONE, Scheduler, Task, fill, here
from linnet.futures.tracebacks import without_ours

PENDING = 1000
"""So many tasks of one function may be unfinished, or wait for one before them."""
_MADE = 64
"""So many containers are remembered as made here."""


class Order:
    """The tasks of one run of a parallel function, in the order of the program, and its values."""

    def __init__(self, runs_it: Scheduler, depth: int, *, at_once: bool = False) -> None:
        self.scheduler = runs_it
        self.depth = depth
        self.at_once = at_once
        """Whether nothing runs by itself: the function was called from where no parallel function runs."""
        self.order: deque[Task] = deque()
        """Tasks in the order of the program, from the first that is not known to be done."""
        self.held: set[int] = set()
        """Containers that tasks read."""
        self.made: dict[int, Any] = {}
        """Containers that were made here, and that nobody else has."""
        self.inlining = False
        """Whether the function inside that is entered next was called by a statement."""
        self.inside = 0
        """How many functions inside are being called, each by the one before."""
        self.broken = False
        """Whether whoever called the function does not wait any more: nothing of it goes on."""
        self.failed: BaseException | None = None
        """The error that surfaced."""
        self.trace: TracebackType | None = None
        """Its traceback: the user's line, and what is below it."""
        self.context: contextvars.Context = contextvars.copy_context()
        self.exposed = False
        """Whether somebody else may have a function that is written inside this one."""
        self.careful: list[bool] = [False]
        """Whether somebody sees what is stored if an error comes now; the innermost `try` last."""

    # ------------------------------------------------------------------ tasks in program order

    def further(self, f: Any, args: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call a function inside on another thread, whose stack is empty, as if it were this one."""
        if self.depth + self.inside >= sys.getrecursionlimit():
            raise RecursionError("maximum recursion depth exceeded")
        worker, depth, context = here.scheduler, here.depth, contextvars.copy_context()
        gate = threading.Lock()
        gate.acquire()
        found: list[Any] = [None, None]

        def go() -> None:
            before = here.scheduler, here.depth, here.activation, here.nested
            here.scheduler, here.depth, here.activation, here.nested = worker, depth, self, 0
            try:
                found[0] = context.run(f, *args, **keywords)
            except BaseException as error:
                found[1] = error
            finally:
                here.scheduler, here.depth, here.activation, here.nested = before
                gate.release()

        POOL.start(go)
        try:
            gate.acquire()
        except BaseException:
            self.broken = True
            raise
        value, error = found
        if error is not None:
            try:
                raise error
            finally:
                del error, found
        return value

    def issue(self, task: Task, found: Survey, line: int) -> Task:
        """Let a task run by itself."""
        self._go_on()
        task.line, task.depth, task.context = line, self.depth + 1, self.context
        if found.fills:
            task.fills = found.fills
        for container in found.containers:
            self.held.add(id(container))
        for need in found.pending:
            need.uses += 1
        if self.at_once:
            for need in found.pending:
                self.scheduler.wait(need)
            task.light = True
        order = self.order
        while order and (order[0].state == DONE or len(order) >= PENDING):
            self._retire()
        order.append(task)
        self.scheduler.submit(task, found.pending)
        if self.at_once:
            self.scheduler.wait(task)
        return task

    def _retire(self) -> None:
        """Wait for the task that comes first in the program; its error surfaces here."""
        task = self.order[0]
        if task.state != DONE:
            self.scheduler.wait(task)
        if task.error is not None:
            self._fail(task)
            assert self.failed is not None
            raise self.failed
        self.order.popleft()

    def _go_on(self) -> None:
        if self.broken:
            raise CancelledError("the function was interrupted")

    def drain(self) -> None:
        """Wait for everything so far."""
        self._go_on()
        order = self.order
        while order:
            self._retire()
        if self.held:
            self.held.clear()

    def _fail(self, task: Task) -> None:
        """A task failed, and none before it did: what comes after it is taken back."""
        error = task.error
        assert error is not None
        self.failed = error
        frame: Any = sys._getframe(1)
        while frame is not None and frame.f_code not in INSIDE:
            frame = frame.f_back
        self.trace = without_ours(error.__traceback__)
        if frame is not None:
            self.trace = TracebackType(self.trace, frame, -1, task.line)  # -1: the line counts
        self.cancel()

    def cancel(self) -> None:
        """Take back what has not begun."""
        for each in self.order:
            self.scheduler.cancel(each)
        self.order.clear()
        self.held.clear()

    def first(self, error: BaseException) -> bool:
        """Whether this error, which a statement raised, is the first; if not, `failed` is."""
        if error is self.failed:
            return True
        if not isinstance(error, Exception):
            self.cancel()
            return True
        while self.order:
            task = self.order[0]
            self.scheduler.wait(task)
            if task.error is not None:
                self._fail(task)
                return False
            self.order.popleft()
        self.held.clear()
        return True

    def surface(self) -> None:
        """Raise the error that came before another one."""
        assert self.failed is not None
        raise self.failed

    # ------------------------------------------------------------------ values

    def value(self, x: Any) -> Any:
        """What a value is; waits for a task. There may be tasks inside."""
        if type(x) is Task:
            if x.state != DONE:
                self.scheduler.wait(x)
            if x.error is not None:
                self.drain()
                raise x.error
            return x.value
        return x

    def settled(self, x: Any) -> Any:
        """What a value is, all through: there are no tasks inside any more."""
        x = self.value(x)
        if type(x) in ATOMS:
            return x
        found = surveyed(x)
        self._settle(found)
        return x

    def _settle(self, found: Survey) -> None:
        while found.pending or found.fills:
            for each in found.pending:
                self.value(each)
            for container in found.fills:
                fill(container)
            again = Survey()
            again.look(found.fills)
            found = again

    def test(self, x: Any) -> Any:
        """A condition: a value whose truth Python can ask."""
        if self.order and self.order[0].state == DONE:
            self._retire()  # a loop that calls nothing must not go on for ever after an error
        x = self.value(x)
        if type(x) not in ATOMS and type(x) not in (list, tuple, dict, set, frozenset, np.ndarray):
            self.drain()
        return x

    def key(self, x: Any) -> Any:
        """What is put into a set, or is the key of a dict."""
        x = self.settled(x)
        if type(x) not in ATOMS and not is_plain(x):
            self.drain()
        return x

    def leave(self, x: Any) -> Any:
        """What the function returns: everything is done."""
        self.drain()
        return self.settled(x)

    def checked(self, x: Any) -> Any:
        """The same value, once everything so far is known to have no error."""
        self.drain()
        return x

    def begin(self, caught: bool) -> None:
        """Statements begin after whose error somebody goes on, if it is caught."""
        self.careful.append(caught or self.careful[-1])

    def end(self) -> None:
        """They end."""
        self.careful.pop()

    def sure(self, x: Any) -> Any:
        """A value that is stored: where errors are caught, everything before is known to have none."""
        if self.careful[-1]:
            self.drain()
        return x

    def made_here(self, x: Any) -> Any:
        """A container that an expression just made."""
        made = self.made
        if len(made) >= _MADE:
            for name in [name for name, each in made.items() if sys.getrefcount(each) <= 3]:
                del made[name]
            if len(made) >= _MADE:
                del made[next(iter(made))]
        made[id(x)] = x
        return x

    def _is_mine(self, x: Any) -> bool:
        return self.made.get(id(x)) is x and id(x) not in self.held and not self.careful[-1]

    def _given_away(self, *values: Any) -> None:
        """Somebody else gets these, and has them resolved: they are not this function's alone any more."""
        found = surveyed(*values)
        self._settle(found)
        self.exposed: bool = self.exposed or found.functions
        for container in found.containers:
            self.made.pop(id(container), None)
