"""Stateless workers as an engine: every run is a job of its own, which outlives the deaths of its workers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from linnet.engines.engine import Outputs, check_inputs, check_out
from linnet.errors import EngineClosedError, LinnetError
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
from linnet.tiles import Index, Tile, TiledArray
from linnet.tiles.amounts import amount, count
from linnet.workers.client import Job, submit
from linnet.workers.kept_results import Keeper, KeptOutputs
from linnet.workers.launcher import Launcher, Limits
from linnet.workers.spec import Options

_POLL = 0.02
"""Seconds between looks at a job."""
_BEAT = 0.2
"""Seconds between two events of progress."""


class Stateless:
    """Runs programs on workers that may die at any moment.

    `store`, `ledger`, `queue` and `launcher` are as in `ln.submit`; without a store, tiles are kept in a
    directory that is removed when the engine is closed. `memory` is what each worker may use.

    Results stay in the store, until the last array that reads them is gone or the engine is closed.
    """

    memory: int | None = None
    """Tiles are in the store: their sum has no limit."""

    shares_memory = False
    deterministic = True

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
        self.workers: int = count(workers, least=0)
        self._store = store
        self._ledger, self._queue, self._launcher = ledger, queue, launcher
        self._options = options or Options()
        given = limits or Limits()
        self._limits = given if memory is None else given.with_memory(amount(memory))
        self._lock = threading.RLock()  # a signal may close the engine at any point
        self._keeper: Keeper | None = None
        """Made by the first run."""
        self._running = 0
        """Runs under way."""
        self._closed = False

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run a program as a job, and wait for it.

        Outputs with a place in `out` are brought there. Others stay in the store: each look at a tile reads
        it, and later runs read them where they are. Ctrl-C cancels the job; nothing of it is left.
        """
        check_inputs(bound, inputs)
        check_out(bound, out or {})
        wanted = tuple(sorted(kind.__name__ for kind in events.wanted)) if events is not None else ()
        with self.job(bound, inputs, self._options.with_events(wanted)) as (job, keeper):
            follow(job, events, self.workers, lambda: self._closed)
            return _collected(job, bound, out or {}, keeper)

    @contextmanager
    def job(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        options: Options,
        workers: int | None = None,
    ) -> Generator[tuple[Job, Keeper]]:
        """A job that runs a program, and who keeps its results; it is deleted after an error."""
        with self._keeping() as keeper:
            job = submit(
                bound,
                inputs,
                store=keeper.place,
                ledger=self._ledger,
                queue=self._queue,
                workers=self.workers if workers is None else workers,
                launcher=self._launcher,
                limits=self._limits,
                options=options,
                keeper=keeper,
            )
            try:
                yield job, keeper
            except BaseException:
                job.delete()
                raise
            finally:
                job.close()

    @property
    def options(self) -> Options:
        """How its jobs are run."""
        return self._options

    @property
    def closed(self) -> bool:
        """Whether it runs nothing any more."""
        return self._closed

    @contextmanager
    def _keeping(self) -> Generator[Keeper]:
        """Where results stay; it is not closed while a run goes on."""
        with self._lock:
            if self._closed:
                raise EngineClosedError(
                    f"{self!r} was closed and runs nothing any more; make another one, with ln.init(...)"
                )
            if self._keeper is None:
                self._keeper = Keeper(self._store, repr(self))
            keeper = self._keeper
            self._running += 1
        try:
            yield keeper
        finally:
            with self._lock:
                self._running -= 1
            self._close_if_idle()

    def _close_if_idle(self) -> None:
        with self._lock:
            if not self._closed or self._running:
                return
            keeper, self._keeper = self._keeper, None
        if keeper is not None:
            keeper.close()

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`."""
        return np.zeros(shape, dtype)

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
        """It makes no plan: whichever worker is free takes the most urgent task."""

    def close(self) -> None:
        """Run nothing more, and delete the results that are in the store. A second call does nothing.

        Runs of other threads are cancelled, and the last of them deletes what is there.
        """
        self._closed = True
        self._close_if_idle()

    def __repr__(self) -> str:
        return f"Stateless(workers={self.workers})"


def _collected(job: Job, bound: BoundProgram, out: Mapping[str, TiledArray], keeper: Keeper) -> Outputs:
    """The outputs of a finished job, in the places given for them or in the store; all else is deleted."""
    found = job.stored()
    left = {name: tiles for name, tiles in found.items() if name not in out}
    kept: dict[str, Mapping[Index, Tile]] = {name: keeper.keep(tiles) for name, tiles in left.items()}
    for name in out:
        kept[name] = {index: _placed(tile, out[name].tiles.get(index)) for index, tile in found[name].items()}
    job.delete(keep=left.values())
    return KeptOutputs(bound, {name: kept[name] for name in found})


def _placed(tile: Tile, place: Tile | None) -> Tile:
    if place is None:
        return np.array(tile, order="K")
    place[...] = tile
    return place


def follow(job: Job, events: Sink | None, workers: int, stopped: Callable[[], bool] = lambda: False) -> None:
    """Hand the events of a job on until it ends; its error is raised, and Ctrl-C cancels it.

    So does `stopped`, which is asked again and again.
    """
    _Watch(job, events, workers).to_the_end(stopped)


class _Watch:
    """A job that is followed."""

    def __init__(self, job: Job, events: Sink | None, workers: int) -> None:
        self._job, self._events = job, events
        self._name = job.name
        self._start = time.time()
        self._place = 0
        self._told = 0.0
        self._send(JobStarted(self._name, self._start, job.spec.program.name, job.spec.total, workers))

    def to_the_end(self, stopped: Callable[[], bool]) -> None:
        try:
            while not self._job.done(_POLL):
                self._look()
                if stopped():
                    self._job.cancel()
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
