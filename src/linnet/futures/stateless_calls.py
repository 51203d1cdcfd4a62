"""Calls on stateless workers: those that are ready go together as jobs, whose tasks are a call each.

A call is made at least once: a worker that dies may have made it. A job has one worker, which the engine
starts and which goes when the job is over, so a call takes as long as starting a process, and more. There are
as many jobs at a time as the engine has workers, and calls that wait are shared out among the next.
"""

from __future__ import annotations

import threading
import weakref
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from linnet.engines.stateless import Stateless
from linnet.errors import EngineClosedError, JobError, JobFailedError, JobStoppedError
from linnet.futures import named_calls
from linnet.futures.carrying import Answered
from linnet.futures.named_calls import Letter
from linnet.futures.travelling import Lost, StaysHere
from linnet.programs.build import ProgramBuilder
from linnet.programs.program import TileProgram
from linnet.tiles import Layout, TiledArray
from linnet.workers.client import Job

_GATHER = 0.02
"""Seconds that a job waits for further calls before it begins."""
_LOOK = 0.05
"""Seconds between looks at a job."""
_MOST = 64
"""Calls of one job."""


def _program() -> TileProgram:
    builder = ProgramBuilder("calls")
    letters, answers, count = builder.input("letters"), builder.output("answers"), builder.size("count")
    with builder.loop("i", count) as i:
        builder.call("call_by_name", [answers[i]], [letters[i]])
    return builder.build()


class _Waiting(NamedTuple):
    """A call that was not sent yet."""

    name: str
    letter: Letter
    answered: Answered


class StatelessCalls:
    """Takes calls to stateless workers."""

    nodes = 1
    where = "stateless workers"
    packed = staticmethod(named_calls.packed)
    opened = staticmethod(named_calls.opened)

    def __init__(self, engine: Stateless) -> None:
        self._engine = weakref.ref(engine)
        self._jobs = max(1, engine.workers)
        self.places: int = 8 * self._jobs
        """How many calls may be there at a time."""
        self._program = _program()
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._running = 0
        """Jobs under way."""

    def carry(self, name: str, sent: Letter, node: int | None, answered: Answered) -> None:
        """See `places.Carrier`."""
        engine = self._engine()
        if engine is None or engine.closed:
            raise EngineClosedError(f"the engine was closed before {name} was called")
        with self._lock:
            self._waiting.append(_Waiting(name, sent, answered))
            begin = self._running < self._jobs
            self._running += begin
        if begin:
            threading.Thread(target=self._work, name="calls", daemon=True).start()

    def _work(self) -> None:
        """Run one job after the other, as long as calls wait."""
        pause = threading.Event()
        while True:
            pause.wait(_GATHER)
            with self._lock:
                share = -(-len(self._waiting) // (self._jobs - self._running + 1))
                calls = self._waiting[: min(share, _MOST)]
                del self._waiting[: len(calls)]
                if not calls:
                    self._running -= 1
                    return
            self._run(calls)

    def _run(self, calls: list[_Waiting]) -> None:
        """Make calls as a job; each is answered when it is done."""
        left = dict(enumerate(calls))
        engine = self._engine()
        try:
            if engine is None:
                raise EngineClosedError("the engine was closed before the call was made")
            bound, inputs = self._bound(calls)
            modules = dict.fromkeys(each.letter.module for each in calls if each.letter.module)
            imports = tuple(dict.fromkeys([*engine.options.imports, *modules]))
            options = replace(engine.options, imports=imports)
            with engine.job(bound, inputs, options, workers=1) as (job, _):
                self._follow(engine, job, left)
                job.delete()
        except BaseException as error:
            for each in left.values():
                each.answered(_said(error))

    def _bound(self, calls: list[_Waiting]) -> Any:
        bodies = [np.frombuffer(each.letter.body, np.uint8) for each in calls]
        edges = tuple(np.cumsum([0, *map(len, bodies)]).tolist())
        tiles = {(place,): body for place, body in enumerate(bodies)}
        letters = TiledArray(Layout((edges,)), np.dtype(np.uint8), tiles)
        return self._program.bind(count=len(calls)), {"letters": letters}

    def _follow(self, engine: Stateless, job: Job, left: dict[int, _Waiting]) -> None:
        """Answer calls as they are done; those that nobody can answer stay in `left`."""
        known: set[Any] = set()
        while True:
            ended = job.done(_LOOK)
            for index, tile in job.tiles_so_far("answers", known).items():
                known.add(index)
                left.pop(index[0]).answered(tile.tobytes())
            if engine.closed:
                job.cancel()
                raise EngineClosedError("the engine was closed while the call ran")
            if ended:
                job.wait()
                return


def _said(error: BaseException) -> BaseException:
    """What is answered to calls of a job that failed."""
    if isinstance(error, EngineClosedError):
        return error
    text = " ".join(str(error).split())
    if isinstance(error, JobFailedError | JobStoppedError):
        return Lost(text)
    return StaysHere(text) if isinstance(error, JobError) else error  # workers do not even begin
