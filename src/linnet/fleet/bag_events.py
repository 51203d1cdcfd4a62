"""A bag told as events: so that it is shown, and stands in reports, as runs are."""

from __future__ import annotations

import time
from collections.abc import Callable

from linnet.events import JobCancelled, JobFinished, JobStarted, Progress
from linnet.events.showing import for_call
from linnet.events.watching import sink_of_run
from linnet.fleet.status import Status


class ToldBag:
    """Tells of a bag that runs; what the user's own function is told comes after."""

    def __init__(self, name: str, engine: object, tell: Callable[[Status], None] | None) -> None:
        self._name, self._tell = name, tell
        with for_call(None if tell is None else False):  # who is told shows it himself
            self._sink = sink_of_run(None, engine)
        self._begun: float | None = None
        self._last: Status | None = None

    def __call__(self, status: Status) -> None:
        now = time.time()
        if self._begun is None:
            self._begun = now
            self._sink.emit(JobStarted(self._name, now, self._name, status.jobs, status.servers))
        self._last = status
        done = status.done + status.failed + status.dropped + status.stopped
        self._sink.emit(
            Progress(
                self._name, now, done, status.jobs, status.waiting, status.running, status.servers,
                dollars=status.cost,
            )
        )  # fmt: skip
        if self._tell is not None:
            self._tell(status)

    def end(self) -> None:
        """The controller has ended, well or not."""
        if self._begun is None or self._last is None:
            return
        now = time.time()
        seconds = now - self._begun
        if self._last.state == "done":
            self._sink.emit(JobFinished(self._name, now, seconds))
        else:
            self._sink.emit(JobCancelled(self._name, now, self._last.done, seconds))
