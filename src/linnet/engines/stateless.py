"""Stateless workers as an engine: every run is a job of its own, which outlives the deaths of its workers."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.errors import LinnetError
from linnet.events import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    Progress,
    Sink,
)
from linnet.events.recording import from_json
from linnet.programs import BoundProgram
from linnet.tiles import TiledArray
from linnet.tiles.amounts import amount
from linnet.workers.client import Job, submit
from linnet.workers.launcher import Launcher, Limits
from linnet.workers.spec import Options

_POLL = 0.02
"""Seconds between looks at a job."""
_BEAT = 0.2
"""Seconds between two events of progress."""


class Stateless:
    """Runs programs on workers that may die at any moment.

    `store`, `ledger`, `queue` and `launcher` are as in `ln.submit`; without a store, tiles are kept in a
    directory that is removed when the session ends. `memory` is what each worker may use.
    """

    memory: int | None = None
    """Tiles are in the store: their sum has no limit."""

    shares_memory = False

    cluster = None
    """It plans for no nodes."""

    def __init__(
        self,
        workers: int = 2,
        memory: float | str | None = None,
        *,
        store: str | None = None,
        ledger: str | None = None,
        queue: str | None = None,
        launcher: str | Launcher = "processes",
        limits: Limits | None = None,
        options: Options | None = None,
    ) -> None:
        self.workers = workers
        self._store = store
        self._ledger, self._queue, self._launcher = ledger, queue, launcher
        self._options = options or Options()
        given = limits or Limits()
        self._limits = given if memory is None else given.with_memory(amount(memory))

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run a program as a job, wait for it, and bring its outputs here."""
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        folder = tempfile.mkdtemp(prefix="linnet-jobs-") if self._store is None else None
        wanted = tuple(sorted(kind.__name__ for kind in events.wanted)) if events is not None else ()
        job = submit(
            bound,
            inputs,
            store=folder or self._store,
            ledger=self._ledger,
            queue=self._queue,
            workers=self.workers,
            launcher=self._launcher,
            limits=self._limits,
            options=self._options.with_events(wanted),
        )
        try:
            follow(job, events, self.workers)
            return _fetched(job, bound, out or {})
        finally:
            job.delete()
            job.close()
            if folder is not None:
                shutil.rmtree(folder, ignore_errors=True)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`."""
        return np.zeros(shape, dtype)

    def __repr__(self) -> str:
        return f"Stateless(workers={self.workers})"


def _fetched(job: Job, bound: BoundProgram, out: Mapping[str, TiledArray]) -> Outputs:
    """The outputs in memory of this process, or in the places given for them."""
    found = job.result()
    brought: dict[str, dict[tuple[int, ...], NDArray[Any]]] = {}
    for name in found:
        brought[name] = {}
        for index, tile in found.tiles(name).items():
            if name in out and index in out[name].tiles:
                place = out[name].tiles[index]
                place[...] = tile
                brought[name][index] = place
            else:
                brought[name][index] = np.array(tile, order="K")
    return Outputs(bound, brought)


def follow(job: Job, events: Sink | None, workers: int) -> None:
    """Hand the events of a job on until it ends; its error is raised, and Ctrl-C cancels it."""
    _Watch(job, events, workers).to_the_end()


class _Watch:
    """A job that is followed."""

    def __init__(self, job: Job, events: Sink | None, workers: int) -> None:
        self._job, self._events = job, events
        self._name = job.name
        self._start = time.time()
        self._place = 0
        self._told = 0.0
        self._send(JobStarted(self._name, self._start, job.spec.program.name, job.spec.total, workers))

    def to_the_end(self) -> None:
        try:
            while not self._job.done(_POLL):
                self._look()
            self._job.wait()
            self._look(last=True)
            self._send(JobFinished(self._name, time.time(), time.time() - self._start))
        except KeyboardInterrupt:
            self._job.cancel()
            done = self._job.progress().done
            self._send(JobCancelled(self._name, time.time(), done, time.time() - self._start))
            raise
        except LinnetError as error:
            self._look(last=True)
            text = f"{type(error).__name__}: {error}"
            self._send(JobFailed(self._name, time.time(), text, time.time() - self._start))
            raise

    def _look(self, *, last: bool = False) -> None:
        if self._events is None:
            return
        while True:
            lines, self._place = self._job.lines(self._place)
            for line in lines:
                self._send(from_json(line))
            if not lines:
                break
        if Progress in self._events.wanted and (last or time.monotonic() - self._told > _BEAT):
            self._told = time.monotonic()
            progress = self._job.progress()
            self._send(Progress(self._name, time.time(), progress.done, progress.total))

    def _send(self, event: Event) -> None:
        if self._events is not None and type(event) in self._events.wanted:
            self._events.emit(event)
