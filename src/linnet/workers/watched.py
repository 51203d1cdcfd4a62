"""A job that somebody waits for, told as events: so that it is shown, and stands in reports, as runs are."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from linnet.events import JobCancelled, JobFailed, JobFinished, JobStarted, KernelTotal
from linnet.events import Progress as Told
from linnet.events.watching import sink_of_run

if TYPE_CHECKING:
    from linnet.workers.client import Job
    from linnet.workers.ledger import Status

_BEAT = 0.5
"""Seconds between two looks."""


class WatchedJob:
    """Tells of a job from the first look at it that finds it running."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._sink = sink_of_run(None, job)
        self._begun: float | None = None
        self._told = 0.0

    def look(self, status: Status) -> None:
        """It runs."""
        now = time.time()
        if now - self._told < _BEAT:
            return
        self._told = now
        if self._begun is None:
            self._begun = now - status.seconds
            name, program = self._job.name, self._job.spec.program.name
            workers = self._job.progress().workers
            self._sink.emit(JobStarted(name, self._begun, program, status.total, workers))
        progress, facts = self._job.progress(), self._job.facts()
        read, written = int(facts.get("bytes_read", 0)), int(facts.get("bytes_written", 0))
        self._sink.emit(
            Told(
                self._job.name, now, progress.done, progress.total, progress.ready, progress.leased,
                progress.workers, read, written,
            )
        )  # fmt: skip
        self._kernels(status, now)

    def _kernels(self, status: Status, now: float) -> None:
        totals: dict[str, tuple[int, float]] = {}
        for number, (tasks, seconds) in status.kinds.items():
            kernel = self._job.spec.program.statements[number].kernel
            before = totals.get(kernel, (0, 0.0))
            totals[kernel] = (before[0] + tasks, before[1] + seconds)
        for kernel, (tasks, seconds) in totals.items():
            self._sink.emit(KernelTotal(self._job.name, now, kernel, tasks, seconds))

    def end(self, status: Status) -> None:
        """It has ended, or nobody waits any more; nothing is told of a job that was never seen running."""
        if self._begun is None:
            return
        name, now, seconds = self._job.name, time.time(), status.seconds
        self._kernels(status, now)
        self._sink.emit(Told(name, now, status.done, status.total))
        if status.state == "finished":
            self._sink.emit(JobFinished(name, now, seconds))
        elif status.state == "cancelled":
            self._sink.emit(JobCancelled(name, now, status.done, seconds))
        elif status.state != "running":
            self._sink.emit(JobFailed(name, now, status.reason or status.state, seconds))
        else:
            self._sink.emit(JobCancelled(name, now, status.done, seconds))
