"""`ln.parallel`: a plain function, run as futures."""

from __future__ import annotations

import contextvars
import functools
import sys
from collections.abc import Callable
from types import FunctionType, MethodType
from typing import Any

from linnet.errors import ParallelError
from linnet.futures.activation import Activation
from linnet.futures.future import Future
from linnet.futures.places import current_scheduler
from linnet.futures.purity import Parallel
from linnet.futures.refusing import refuse
from linnet.futures.scheduler import Task, here
from linnet.futures.source import SourceError, source_of
from linnet.futures.tracebacks import without_ours
from linnet.futures.translating import translate

_LEVELS = 16
"""After so many calls of parallel functions inside each other another thread takes over, for its stack."""


class ParallelFunction(Parallel):
    """A plain Python function whose calls run side by side, with the meaning it has without."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        try:
            source = source_of(function)
        except SourceError as error:
            raise ParallelError(
                f"parallel function {function.__name__!r}: {error}; "
                "put the definition into a file or a notebook cell"
            ) from None
        refuse(function, source)
        self._translated = translate(function, source)
        functools.update_wrapper(self, function)
        self.__dict__.pop("__linnet_pure__", None)

    def __call__(self, /, *args: Any, **keywords: Any) -> Any:
        """The value of the function."""
        around = here.activation
        depth = (here.depth if around is None else around.depth) + 1
        if depth >= sys.getrecursionlimit():
            raise RecursionError("maximum recursion depth exceeded")
        if depth % _LEVELS == 0:
            task = self._task(args, keywords, depth)
            task.function = functools.partial(self._run, depth)
            runs_it = current_scheduler()
            runs_it.submit(task)
            return Future(task, runs_it).result()
        return self._run(depth, *args, **keywords)

    def run_inside(self, /, *args: Any, **keywords: Any) -> Any:
        """The value of the function; called by the worker that runs a task for it."""
        return self._run(here.depth, *args, **keywords)

    def _run(self, depth: int, /, *args: Any, **keywords: Any) -> Any:
        activation = Activation(current_scheduler(), depth)
        before, here.activation = here.activation, activation
        try:
            try:
                return activation.leave(self._translated(*args, **keywords))
            except BaseException as raised:
                error = raised if activation.first(raised) else activation.failed
        finally:
            here.activation = before
        assert error is not None
        trace = activation.trace if error is activation.failed else without_ours(error.__traceback__)
        try:
            raise error.with_traceback(trace)
        finally:
            del error, activation, trace

    def submit(self, /, *args: Any, **keywords: Any) -> Future:
        """Run the function by itself.

        Parameters
        ----------
        *args, **keywords
            Its arguments.

        Returns
        -------
        Future
            The call, as long as it runs and afterwards.
        """
        around = here.activation
        task = self._task(args, keywords, (here.depth if around is None else around.depth) + 1)
        runs_it = current_scheduler()
        runs_it.submit(task)
        return Future(task, runs_it)

    def _task(self, args: tuple[Any, ...], keywords: dict[str, Any], depth: int) -> Task:
        task = Task(self.run_inside, args, keywords)
        task.depth, task.context = depth, contextvars.copy_context()
        return task

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<parallel function {self.function.__qualname__}>"

    def __reduce__(self) -> str:
        return self.function.__qualname__


def parallel(f: Callable[..., Any]) -> ParallelFunction:
    """Run a plain Python function as futures, with the meaning it has without.

    Calls that are known to have no effect run side by side (see `ln.pure`), everything else in the order of
    the program. Only conditions, effects, and what leaves the function wait. The value is that of the plain
    function, and so is the error: the first in the order of the program.

    Parameters
    ----------
    f : function
        The function. Its source must be there.

    Returns
    -------
    ParallelFunction
        Called, it gives the value; `.submit(...)` gives a `Future`; `.function` is the plain function.

    Raises
    ------
    ParallelError
        If the function holds what cannot be run as futures (generators, `async`, `global`, attributes of
        others' objects that are assigned to): with the line, a caret and the reason.

    Examples
    --------
    ::

        @ln.parallel
        def survey(stations):
            total = 0
            for s in stations:
                a, b = load(s, 2023), load(s, 2024)  # side by side
                if quality(a) > 0.5 and quality(b) > 0.5:  # conditions wait
                    total = total + compare(a, b)
            return total

    >>> import linnet as ln
    >>> @ln.pure
    ... def area(width, height):
    ...     return width * height
    >>> @ln.parallel
    ... def total(rooms):
    ...     found = 0
    ...     for width, height in rooms:
    ...         found = found + area(width, height)  # all areas side by side
    ...     return found
    >>> total([(2, 3), (4, 5)])
    26
    """
    if isinstance(f, ParallelFunction):
        return f
    if not isinstance(f, FunctionType):
        raise ParallelError(f"ln.parallel takes a Python function, and was given a {type(f).__name__}: {f!r}")
    return ParallelFunction(f)
