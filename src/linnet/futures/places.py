"""Where calls run in the current session: on threads of this process, or outside it.

The threads stay in charge everywhere: the order of a program, conditions and operators are theirs, and only
calls of whole functions are sent. So the meaning of a parallel function is the same in all places.
"""

from __future__ import annotations

import contextvars
import importlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, Protocol

from linnet.engines import Threads
from linnet.engines.threads import available_cores
from linnet.errors import InputError, JobError, ParallelError
from linnet.futures.scheduler import MAY_TRAVEL, STAYS, Scheduler, Task, scheduler
from linnet.futures.travelling import Call, Lost, StaysHere, opened, packed
from linnet.session import current_engine

_TRIES = 3
"""So many workers may be lost with a pure call before it counts as what ends them."""


class Carrier(Protocol):
    """Takes calls, as bytes, to where they are made.

    One that has functions `packed` and `opened` says itself how calls and answers are bytes.
    """

    @property
    def places(self) -> int:
        """How many calls may be there at a time."""
        ...

    @property
    def nodes(self) -> int:
        """How many nodes there are to choose from."""
        ...

    def carry(
        self, name: str, sent: Any, node: int | None, answered: Callable[[bytes | BaseException], None]
    ) -> None:
        """Have a call made; `answered` gets what `answering.answer` gave, or what went wrong on the way.

        `Lost` says that the worker was gone. `name` is the function's, for messages.
        """
        ...


class Elsewhere:
    """Sends tasks through a carrier and opens what comes back."""

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        self._packed: Any = getattr(carrier, "packed", packed)
        self._opened: Any = getattr(carrier, "opened", opened)

    @property
    def places(self) -> int:
        return self.carrier.places

    def send(self, task: Task, returned: Callable[..., None]) -> None:
        """See `scheduler.Outside`."""
        args, keywords = task.ready_call()
        call = Call(task.function, tuple(args), keywords, task.travels == MAY_TRAVEL)
        try:
            sent, outside = (task.context or contextvars.Context()).copy().run(self._packed, call)
        except StaysHere as why:
            _not_sent(task, call, why, returned)
            return

        def answered(answer: bytes | BaseException) -> None:
            try:
                if isinstance(answer, bytes):
                    returned(*self._opened(answer, outside))
                elif isinstance(answer, Lost):
                    _lost(task, call, answer, returned)
                elif isinstance(answer, StaysHere):
                    _not_sent(task, call, answer, returned)
                else:
                    returned(None, answer)
            except StaysHere as why:
                _not_sent(task, call, why, returned)

        self.carrier.carry(call.name, sent, task.node, answered)


def _not_sent(task: Task, call: Call, why: StaysHere, returned: Callable[..., None]) -> None:
    if call.pure:  # nobody sees where it is made
        task.travels = STAYS
        returned(None, None, again=True)
        return
    error = ParallelError(
        f"{call.name} cannot be called outside this process: {why}. "
        "With ln.init(workers=...) calls run on threads of this process, which share its objects."
    )
    task.retries = 0
    returned(None, error)


def _lost(task: Task, call: Call, why: Lost, returned: Callable[..., None]) -> None:
    task.lost += 1
    if call.pure and task.lost < _TRIES:
        returned(None, None, again=True)
        return
    again = f", {task.lost} times" if task.lost > 1 else ""
    advice = "" if call.pure else "; it was not called again, since it may have had effects: give retries="
    returned(None, JobError(f"the worker that ran {call.name} was lost{again}: {why}{advice}"))


_CARRIERS = (
    ("linnet.engines.ray", "Ray", "linnet.futures.ray_calls:RayCalls"),
    ("linnet.engines.dask", "Dask", "linnet.futures.dask_calls:DaskCalls"),
    ("linnet.engines.stateless", "Stateless", "linnet.futures.stateless_calls:StatelessCalls"),
)
"""Modules and names of engines, and who takes calls to each."""
_lock = threading.Lock()
_of_engines: weakref.WeakKeyDictionary[Any, Scheduler] = weakref.WeakKeyDictionary()


def current_scheduler() -> Scheduler:
    """Who runs the calls of the current session."""
    engine = current_engine()
    if isinstance(engine, Threads) and not engine.processes:
        return scheduler(engine.workers)
    found = _of_engines.get(engine)
    if found is None:
        with _lock:
            found = _of_engines.get(engine)
            if found is None:
                found = _of_engines[engine] = _made(engine)
    return found


def _made(engine: Any) -> Scheduler:
    carrier = _carrier(engine)
    if carrier is None:
        return scheduler(available_cores())
    return Scheduler(available_cores(), Elsewhere(carrier))


def _carrier(engine: Any) -> Carrier | None:
    if isinstance(engine, Threads):
        from linnet.futures.processes import Processes

        return Processes(engine.workers, engine.keep)
    for module, name, carrier in _CARRIERS:
        known = sys.modules.get(module)  # else no engine of its kind was made
        if known is not None and isinstance(engine, getattr(known, name)):
            home, _, kind = carrier.partition(":")
            return getattr(importlib.import_module(home), kind)(engine)
    return None


def check_node(node: Any, runs_it: Scheduler) -> None:
    """Refuse a node that is not there."""
    outside = runs_it.outside
    nodes = outside.carrier.nodes if isinstance(outside, Elsewhere) else 1
    if node is None or (type(node) is int and 0 <= node < nodes):
        return
    there = "this machine, which is node 0" if nodes == 1 else f"nodes 0 to {nodes - 1}"
    raise InputError(f"node={node!r}: calls run on {there}")
