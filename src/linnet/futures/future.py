"""What users hold of a call that runs by itself: `Future`, and the functions that make and collect them."""

from __future__ import annotations

import contextvars
import functools
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from linnet.errors import InputError
from linnet.futures.places import check_node, current_scheduler
from linnet.futures.purity import Parallel
from linnet.futures.scheduler import DONE, READY, TRAVELS, WAITING, Scheduler, Task, here


class Future:
    """A call that runs by itself, and its value once there is one.

    Made by `ln.submit_call` and by `.submit` of a parallel function.

    Examples
    --------
    >>> future = submit_call(pow, 2, 10)
    >>> future.result()
    1024
    >>> future.done()
    True
    """

    __slots__ = ("__weakref__", "_scheduler", "_task")

    def __init__(self, task: Task, runs_it: Scheduler) -> None:
        self._task = task
        self._scheduler = runs_it

    def result(self, timeout: float | None = None) -> Any:
        """The value of the call; what the call raised is raised here.

        Parameters
        ----------
        timeout : float, optional
            Seconds to wait at most; None: as long as it takes.

        Returns
        -------
        object
            What the function returned.

        Raises
        ------
        TimeoutError
            If the call is not done in time. It goes on.
        concurrent.futures.CancelledError
            If it was cancelled.
        """
        error = self.exception(timeout)
        if error is not None:
            try:
                raise error
            finally:
                del error
        return self._task.value

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """What the call raised, or None; waits like `result`."""
        if not self._scheduler.wait(self._task, timeout):
            raise TimeoutError(f"the call is not done after {timeout:g} s; it goes on")
        return self._task.error

    def done(self) -> bool:
        """Whether there is a value or an error, or the call was cancelled."""
        return self._task.state == DONE

    def running(self) -> bool:
        """Whether the function is being executed now."""
        return self._task.state not in (WAITING, READY, DONE)

    def cancel(self) -> bool:
        """Take the call back if it has not begun; False: it has, and goes on."""
        return self._scheduler.cancel(self._task)

    def cancelled(self) -> bool:
        """Whether it was cancelled before it began."""
        return self._task.state == DONE and isinstance(self._task.error, CancelledError)

    def __repr__(self) -> str:
        task = self._task
        if task.state != DONE:
            state = "running" if self.running() else "waiting"
        elif task.error is not None:
            state = "cancelled" if self.cancelled() else f"raised {type(task.error).__name__}"
        else:
            state = "done"
        return f"Future({state})"

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """The value as an array of NumPy's, for functions of arrays; waits like `result`."""
        return np.array(self.result(), dtype) if copy else np.asarray(self.result(), dtype)

    def __reduce__(self) -> Any:
        raise TypeError("a Future belongs to the process that made it; pickle its result()")


def submit_call(
    f: Callable[..., Any],
    /,
    *args: Any,
    priority: int = 0,
    retries: int = 0,
    node: int | None = None,
    **keywords: Any,
) -> Future:
    """Run a call by itself and go on.

    Parameters
    ----------
    f : callable
        The function. It runs on a thread of this process, in a copy of the caller's context; in a process
        of this machine if the session has such (`processes=True`): then it gets and gives copies.
    *args, **keywords
        Its arguments. A `Future` among them, or in a list, tuple or dict among them, stands for its value:
        the call begins once it is there, and fails as it failed.
    priority : int
        Calls of higher priority begin first; among equals, those that were submitted first.
    retries : int
        How often to call again after an error.
    node : int, optional
        The node to run on, by its number. This machine is node 0.

    Returns
    -------
    Future
        The call, as long as it runs and afterwards.

    Examples
    --------
    >>> square = submit_call(pow, 7, 2)
    >>> submit_call(sum, [square, 1]).result()
    50
    """
    if not callable(f):
        raise InputError(f"submit_call runs a function, and was given a {type(f).__name__}: {f!r}")
    if isinstance(retries, bool) or not isinstance(retries, int) or retries < 0:
        raise InputError(f"retries={retries!r}: give the number of further attempts, 0 or more")
    if isinstance(priority, bool) or not isinstance(priority, int):
        raise InputError(f"priority={priority!r}: give a whole number; higher ones begin first")
    runs_it = current_scheduler()
    check_node(node, runs_it)
    needs: list[Task] = []
    found = tuple(_brought(each, needs) for each in args)
    named = {name: _brought(each, needs) for name, each in keywords.items()}
    task = Task(f, found, named)
    if needs:
        task.later = _value
    if not isinstance(f, Parallel):  # whose statements run here, and its calls outside
        task.travels, task.node = TRAVELS, node
    task.priority, task.retries, task.depth = priority, retries, here.depth + 1
    task.context = contextvars.copy_context()
    runs_it.submit(task, needs)
    return Future(task, runs_it)


class _Later:
    """Stands for a future's value among arguments."""

    __slots__ = ("task",)

    def __init__(self, task: Task) -> None:
        self.task = task


def _brought(value: Any, needs: list[Task]) -> Any:
    """An argument with futures replaced by what stands for them; lists and the like only if they hold one."""
    if isinstance(value, Future):
        needs.append(value._task)
        return _Later(value._task)
    before = len(needs)
    kind = type(value)
    if kind in (list, tuple):
        made: Any = kind(_brought(each, needs) for each in value)
    elif kind is dict:
        made = {key: _brought(each, needs) for key, each in value.items()}
    else:
        return value
    return value if len(needs) == before else made


def _value(given: Any) -> Any:
    """An argument with values in the place of futures; the same object if it holds none."""
    if not _holds(given):
        return given
    kind = type(given)
    if kind is _Later:
        return given.task.value
    if kind is dict:
        return {key: _value(each) for key, each in given.items()}
    return kind(_value(each) for each in given)


def _holds(given: Any) -> bool:
    kind = type(given)
    if kind is _Later:
        return True
    if kind in (list, tuple):
        return any(map(_holds, given))
    return kind is dict and any(map(_holds, given.values()))


def map_calls(f: Callable[..., Any], *iterables: Iterable[Any]) -> Iterator[Any]:
    """Call a function on each element, side by side; values come in order.

    Parameters
    ----------
    f : callable
        The function; it takes as many arguments as there are iterables.
    *iterables
        What it is called on, up to the end of the shortest.

    Returns
    -------
    iterator
        The values, in the order of the elements. At most four calls a worker are ahead of the value that
        was taken last, so iterables may be endless. An error is raised in its place. When the iterator is
        closed, or ends with an error, calls that have not begun are cancelled.

    Examples
    --------
    >>> list(map_calls(pow, [2, 3], [10, 2]))
    [1024, 9]
    """
    if not callable(f):
        raise InputError(f"map calls a function, and was given a {type(f).__name__}: {f!r}")
    if not iterables:
        raise InputError("map needs something to call the function on: ln.map(f, values)")
    return _mapped(f, [iter(each) for each in iterables])


def _mapped(f: Callable[..., Any], iterators: list[Iterator[Any]]) -> Iterator[Any]:
    runs_it = current_scheduler()
    ahead = 4 * (runs_it.workers if runs_it.outside is None else runs_it.outside.places)
    pending: deque[Future] = deque()
    elements = zip(*iterators, strict=False)
    try:
        for given in elements:
            pending.append(submit_call(f, *given))
            if len(pending) >= ahead:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()


def as_completed(futures: Iterable[Future], timeout: float | None = None) -> Iterator[Future]:
    """The futures as they get done, each once.

    Parameters
    ----------
    futures : iterable of Future
        What to wait for.
    timeout : float, optional
        Seconds for all of them; None: as long as it takes.

    Returns
    -------
    iterator of Future
        Those that are done first come first.

    Raises
    ------
    TimeoutError
        If some are not done in time; the message says how many.

    Examples
    --------
    >>> sorted(each.result() for each in as_completed([submit_call(abs, -1), submit_call(abs, -2)]))
    [1, 2]
    """
    given = list(dict.fromkeys(futures))
    for each in given:
        if not isinstance(each, Future):
            raise InputError(f"as_completed takes futures, and was given a {type(each).__name__}: {each!r}")
    return _completed(given, None if timeout is None else time.monotonic() + timeout)


def _completed(futures: list[Future], end: float | None) -> Iterator[Future]:
    done: deque[Future] = deque()
    signals: list[tuple[Scheduler, Task]] = []
    lock = threading.Lock()

    def finished(each: Future) -> None:
        done.append(each)
        with lock:
            told = signals[:]
            signals.clear()
        for runs_it, signal in told:
            runs_it.finish(signal, None, None)

    for each in futures:
        each._scheduler.watch(each._task, functools.partial(finished, each))
    for left in range(len(futures), 0, -1):
        if not done:
            runs_it, signal = futures[0]._scheduler, Task(_nothing)
            with lock:
                signals.append((runs_it, signal))
            if not done and not runs_it.wait(signal, None if end is None else end - time.monotonic()):
                raise TimeoutError(f"{left} of {len(futures)} calls are not done in time; they go on")
        yield done.popleft()


def _nothing() -> None:
    """What a task calls that only others finish."""
