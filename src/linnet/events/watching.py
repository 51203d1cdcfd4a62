"""Who watches every run of this process: displays, the record that reports are made of, dashboards.

A run sends its events to one sink. `sink_of_run` joins the one that its caller gave with `WATCH`, the hub of
all who watch the process, and with the record. The record hears of jobs, and of single tasks only where they
take a millisecond or more: shorter ones are counted by the engine. So it can always be on.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from linnet.events.hub import Events, Sink
from linnet.events.record import Record
from linnet.events.showing import hub_of_display
from linnet.events.types import (
    JOB_EVENTS,
    WORKER_EVENTS,
    Event,
    JobStarted,
    TaskFailed,
    TaskFinished,
    TilesWritten,
    TileWritten,
)

WATCH = Events()
"""Hears of every run of this process."""
RECORD = Record()
"""What ran in this process lately."""

_LEAST = 1e-3
"""Seconds of the shortest task that the record hears of by itself;"""
_LEAST_TILES = 5e-4
"""and while tiles are recorded, since somebody looks."""
_recording: list[object] = []
"""Those who want tiles to be recorded."""
_OF_JOBS = frozenset({*JOB_EVENTS, TaskFailed})
_OF_TASKS = _OF_JOBS | {TaskFinished}
_OF_TILES = _OF_TASKS | {TileWritten, TilesWritten, *WORKER_EVENTS}


class RunSink:
    """Where one run sends its events."""

    def __init__(
        self, given: Sink | None, display: Events | None, *, tasks: bool, about: dict[str, Any]
    ) -> None:
        self._given, self._display = given, display
        self._own = _OF_TASKS if tasks else _OF_JOBS
        self._about = about
        self._seen: tuple[frozenset[type[Event]], frozenset[type[Event]], bool] | None = None
        self._wanted: frozenset[type[Event]] = frozenset()

    @property
    def wanted(self) -> frozenset[type[Event]]:
        """The kinds of event that somebody listens to."""
        of_user = frozenset[type[Event]]() if self._given is None else self._given.wanted
        seen = self._seen
        tiles = bool(_recording)
        if seen is None or seen[0] is not of_user or seen[1] is not WATCH.wanted or seen[2] is not tiles:
            self._seen = seen = (of_user, WATCH.wanted, tiles)
            self._wanted = (_OF_TILES if tiles else self._own) | of_user | seen[1]
        return self._wanted

    @property
    def least(self) -> float:
        """Seconds of the shortest task that somebody wants to hear of by itself."""
        if TaskFinished in WATCH.wanted or (self._given is not None and TaskFinished in self._given.wanted):
            return 0.0
        return _LEAST_TILES if _recording else _LEAST

    def emit(self, event: Event) -> None:
        """Hand an event on; called from any thread."""
        if isinstance(event, JobStarted):
            RECORD.about(event.job, self._about)
        RECORD(event)
        kind = type(event)
        if kind in WATCH.wanted:
            WATCH.emit(event)
        if self._display is not None and kind in self._display.wanted:
            self._display.emit(event)
        if self._given is not None and kind in self._given.wanted:
            self._given.emit(event)


def record_tiles() -> Callable[[], None]:
    """Have the record hear of tiles, too, on every engine; returns the function that ends it."""
    mine = object()
    _recording.append(mine)

    def stop() -> None:
        if mine in _recording:
            _recording.remove(mine)

    return stop


def sink_of_run(given: Sink | None, engine: Any = None, *, tasks: bool = False, **about: Any) -> RunSink:
    """Where a run sends its events; `tasks`: whether it can tell of single tasks at little cost.

    `about` is what is known of the run besides its events: its budget, its program. Who gives a sink shows
    progress himself.
    """
    display = hub_of_display(engine) if given is None else None
    return RunSink(given, display, tasks=tasks, about={"engine": repr(engine), **about})
