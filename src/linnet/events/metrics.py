"""Counts, bytes and busy time, added up from events."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from linnet.events.hub import Events
from linnet.events.types import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    TaskFailed,
    TaskFinished,
    TileDropped,
    TileRead,
    TileWritten,
)


@dataclass(slots=True)
class KernelMetrics:
    """What one kernel did."""

    tasks: int = 0
    """Tasks finished."""
    seconds: float = 0.0
    """Time inside the kernel, over all workers."""


@dataclass(slots=True)
class Metrics:
    """Totals over the jobs it has heard of; a listener.

    >>> from linnet.events import TaskFinished
    >>> metrics = Metrics()
    >>> metrics(TaskFinished("job", 0.0, (0, (1,)), "chol", "w0", seconds=0.25))
    >>> metrics.kernels["chol"]
    KernelMetrics(tasks=1, seconds=0.25)
    """

    jobs: int = 0
    """Jobs started."""
    seconds: float = 0.0
    """Time from start to end, over all jobs that ended."""
    failed_tasks: int = 0
    """Tasks whose kernel raised."""
    bytes_read: int = 0
    """Bytes of operands."""
    bytes_written: int = 0
    """Bytes of results."""
    bytes_live: int = 0
    """Bytes written and not yet dropped."""
    bytes_peak: int = 0
    """The most `bytes_live` has been."""
    kernels: dict[str, KernelMetrics] = field(default_factory=dict[str, KernelMetrics])
    """By name of the kernel."""

    @property
    def tasks(self) -> int:
        """Tasks finished."""
        return sum(each.tasks for each in self.kernels.values())

    @property
    def busy_seconds(self) -> float:
        """Time inside kernels, over all workers."""
        return sum(each.seconds for each in self.kernels.values())

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(
            self,
            JobStarted, JobFinished, JobFailed, JobCancelled,
            TaskFinished, TaskFailed, TileRead, TileWritten, TileDropped,
        )  # fmt: skip

    def __call__(self, event: Event) -> None:
        match event:
            case TaskFinished():
                entry = self.kernels.setdefault(event.kernel, KernelMetrics())
                entry.tasks += 1
                entry.seconds += event.seconds
            case TileRead():
                self.bytes_read += event.bytes
            case TileWritten():
                self.bytes_written += event.bytes
                self.bytes_live += event.bytes
                self.bytes_peak = max(self.bytes_peak, self.bytes_live)
            case TileDropped():
                self.bytes_live -= event.bytes
            case JobStarted():
                self.jobs += 1
            case JobFinished() | JobFailed() | JobCancelled():
                self.seconds += event.seconds
            case TaskFailed():
                self.failed_tasks += 1
            case _:
                pass
