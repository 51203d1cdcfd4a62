"""Where calls run in the current session: on threads of this process, or outside it.

The threads stay in charge everywhere: the order of a program, conditions and operators are theirs, and only
calls of whole functions are sent. So the meaning of a parallel function is the same in all places.
"""

from __future__ import annotations

import contextvars
import functools
import importlib
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from linnet.engines import Threads
from linnet.engines.threads import available_cores
from linnet.errors import InputError, JobError, ParallelError
from linnet.futures.scheduler import MAY_TRAVEL, STAYS, Scheduler, Task, scheduler
from linnet.futures.travelling import Call, Lost, StaysHere, apart, name_of, opened, packed, together
from linnet.session import current_engine

_WORTH = 0.004
"""Seconds of work that are sent at once, if calls are shorter."""
_MOST = 64
"""Calls that are sent at once."""
_TRIES = 3
"""So many workers may be lost with a pure call before it counts as what ends them."""


class Carrier(Protocol):
    """Takes calls, as bytes, to where they are made.

    One that has functions `packed` and `opened` says itself how a call and its answer are bytes; it is given
    one call at a time.
    """

    @property
    def places(self) -> int:
        """How many calls may be there at a time."""
        ...

    @property
    def nodes(self) -> int:
        """How many nodes there are to choose from."""
        ...

    @property
    def where(self) -> str:
        """What they are nodes of, for messages."""
        ...

    def carry(
        self, name: str, sent: Any, node: int | None, answered: Callable[[bytes | BaseException], None]
    ) -> None:
        """Have calls made; `answered` gets what `answering.answers` gave, or what went wrong on the way.

        `Lost` says that the worker was gone. `name` is the function's, for messages.
        """
        ...


class _Going(NamedTuple):
    """A call on its way."""

    task: Task
    call: Call
    outside: list[Any]
    returned: Callable[..., None]


class Elsewhere:
    """Sends tasks through a carrier and opens what comes back.

    Handing a call to a cluster costs about a millisecond, whatever it does. So pure calls of a function that
    was seen to take less go together, as many as fill the time, and a worker that finds them longer gives the
    rest back.
    """

    def __init__(self, carrier: Carrier) -> None:
        self.carrier = carrier
        self._singly: Any = getattr(carrier, "packed", None)
        self._opened: Any = getattr(carrier, "opened", opened)
        self._seconds: dict[str, float] = {}
        """What a call of a function took, when it was last made."""

    @property
    def places(self) -> int:
        return self.carrier.places

    def together(self, task: Task, ready: int) -> int:
        """See `scheduler.Outside`."""
        if self._singly is not None or task.travels != MAY_TRAVEL or task.lost:
            return 1
        took = self._seconds.get(name_of(task.function))
        if took is None:
            return 1
        return max(1, min(_MOST, int(_WORTH / max(took, 1e-9)), 1 + ready // self.places))

    def send(self, tasks: list[Task], returned: Callable[..., None]) -> None:
        """See `scheduler.Outside`."""
        going: list[_Going] = []
        bodies: list[Any] = []
        for task in tasks:
            back = functools.partial(returned, task)
            try:
                args, keywords = task.ready_call()
                call = Call(task.function, tuple(args), keywords, task.travels == MAY_TRAVEL)
                try:
                    context = (task.context or contextvars.Context()).copy()
                    sent, outside = context.run(self._singly or packed, call)
                except StaysHere as why:
                    _not_sent(task, call, why, back)
                    continue
            except BaseException as error:
                back(None, error)
                continue
            going.append(_Going(task, call, outside, back))
            bodies.append(sent)
        if not going:
            return
        try:
            body = bodies[0] if self._singly is not None else together(bodies)
            self.carrier.carry(
                going[0].call.name, body, going[0].task.node, functools.partial(self._answered, going)
            )
        except BaseException as error:
            self._answered(going, error)

    def _answered(self, going: list[_Going], answer: bytes | BaseException) -> None:
        answers: list[Any] = [answer] * len(going)
        if isinstance(answer, bytes) and self._singly is None:
            seconds, answers = apart(answer)
            self._seconds[going[0].call.name] = seconds / len(answers)
        for at, (task, call, outside, returned) in enumerate(going):
            if at >= len(answers):  # they took longer than was thought
                returned(None, None, again=True)
                continue
            one = answers[at]
            try:
                if isinstance(one, bytes):
                    found = self._opened(one, outside)
                elif isinstance(one, Lost):
                    _lost(task, call, one, returned)
                    continue
                elif isinstance(one, StaysHere):
                    raise one
                else:
                    found = None, one
            except StaysHere as why:
                _not_sent(task, call, why, returned)
            else:
                returned(*found)


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
    where = outside.carrier.where if isinstance(outside, Elsewhere) else "this machine"
    there = "whose only node is 0" if nodes == 1 else f"whose nodes are 0 to {nodes - 1}"
    raise InputError(f"node={node!r}: calls run on {where}, {there}")
