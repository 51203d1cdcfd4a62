"""What ran lately, in bounded memory: the source of reports and dashboards; a listener.

Of each job it keeps how far it was over time, what kernels did in all, failures, and its longest story: tasks
with worker, beginning and length. When there are too many of these, short ones are folded into stretches of
busy time, so that a million tasks take as much room as fifty thousand.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from linnet.events.types import (
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    KernelTotal,
    PlanMade,
    Progress,
    TaskFailed,
    TaskFinished,
    TileDropped,
    TilesWritten,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
)

_JOBS = 200
"""Jobs that are kept; the oldest are forgotten."""
_TASKS = 50_000
"""Tasks of one job that are kept one by one;"""
_ALL_TASKS = 200_000
"""and of all jobs together."""
_SAMPLES = 600
"""Looks at a job that are kept."""
_FAILURES = 200
_LINES = 400
"""Lines of the log of a job that are kept."""
_TILES = 250_000
"""Tiles of a job whose state is kept."""

Span = tuple[int, int, float, float, tuple[int, ...]]
"""Kernel and worker by number, beginning, seconds, and the task: statement and indices (empty: several)."""


@dataclass(slots=True)
class JobRecord:
    """One run of a program."""

    job: str
    program: str
    tasks: int
    workers: int
    begun: float
    state: str = "running"
    """running, finished, failed or cancelled."""
    seconds: float | None = None
    """From start to end; None while it runs."""
    error: str = ""
    samples: list[Progress] = field(default_factory=list[Progress])
    kernels: dict[str, tuple[int, float]] = field(default_factory=dict[str, tuple[int, float]])
    """Tasks and seconds of each."""
    spans: list[Span] = field(default_factory=list[Span])
    names: list[str] = field(default_factory=list[str])
    """Kernels by number."""
    lanes: list[str] = field(default_factory=list[str])
    """Workers by number."""
    folded: int = 0
    """Tasks that are in spans with others."""
    told: int = 0
    """Tasks heard of one by one."""
    failures: list[tuple[float, str, str, str]] = field(default_factory=list[tuple[float, str, str, str]])
    """When, which task, its kernel, and the error."""
    retries: int = 0
    """Tasks begun again."""
    written: dict[str, dict[tuple[int, ...], int]] = field(
        default_factory=dict[str, dict[tuple[int, ...], int]]
    )
    """How often each tile of each array was written; minus that where it was dropped."""
    plan: PlanMade | None = None
    """The plan that its tasks follow, on several nodes."""
    log: list[tuple[float, str]] = field(default_factory=list[tuple[float, str]])
    """What happened, when: workers that came and went, failures, the end."""
    about: dict[str, Any] = field(default_factory=dict[str, Any])
    """What is known besides: engine, budget, …"""
    _totals: bool = False
    _changed: int = 0

    @property
    def latest(self) -> Progress | None:
        """How far it is."""
        return self.samples[-1] if self.samples else None

    @property
    def done(self) -> int:
        """Tasks finished."""
        return self.tasks if self.state == "finished" else self.samples[-1].done if self.samples else 0

    @property
    def changed(self) -> int:
        """Grows whenever something is heard."""
        return self._changed

    def hear(self, event: Event) -> None:
        """One more event."""
        self._changed += 1
        match event:
            case TaskFinished():
                self._task(event)
            case TileWritten():
                self._tile(event.array, event.index)
            case TilesWritten():
                for array, index in event.tiles:
                    self._tile(array, index)
            case TileDropped():
                tiles = self.written.get(event.array)
                if tiles is not None and event.index in tiles:
                    tiles[event.index] = -abs(tiles[event.index])
            case Progress():
                self.workers = max(self.workers, event.workers)  # those of a job come after its start
                self.samples.append(event)
                if len(self.samples) > _SAMPLES:
                    del self.samples[1:-1:2]
            case KernelTotal():
                self._totals = True
                self.kernels[event.kernel] = (event.tasks, event.seconds)
            case PlanMade():
                self.plan = event
                least = "" if event.least is None else f"; the least possible is {event.least:,}"
                self._line(event, f"a plan was made: {event.moved:,} bytes move between nodes{least}")
            case WorkerStarted():
                self._line(event, f"{event.worker} began to work")
            case WorkerStopped():
                self._line(event, f"{event.worker} stopped")
            case TaskFailed():
                self._line(event, f"{event.kernel} {event.task} failed on {event.worker}: {event.error}")
                if len(self.failures) < _FAILURES:
                    self.failures.append((event.at, str(event.task), event.kernel, event.error))
            case JobFinished() | JobFailed() | JobCancelled():
                states: dict[type[Event], str] = {JobFinished: "finished", JobFailed: "failed"}
                self.state = states.get(type(event), "cancelled")
                self.seconds = event.seconds
                self.error = event.error if isinstance(event, JobFailed) else ""
                self._line(event, f"{self.state} after {event.seconds:.2f} s {self.error}".rstrip())
            case _:
                pass

    def _line(self, event: Event, text: str) -> None:
        self.log.append((event.at, text))
        if len(self.log) > _LINES:
            del self.log[_LINES // 4 : _LINES // 2]  # how it began and how it stands are kept

    def _tile(self, array: str, index: tuple[int, ...]) -> None:
        tiles = self.written.setdefault(array, {})
        if len(tiles) < _TILES or index in tiles:
            tiles[index] = abs(tiles.pop(index, 0)) + 1  # the latest is the last

    def _task(self, event: TaskFinished) -> None:
        self.told += 1
        if not self._totals:
            tasks, seconds = self.kernels.get(event.kernel, (0, 0.0))
            self.kernels[event.kernel] = (tasks + 1, seconds + event.seconds)
        statement, indices = event.task
        self.spans.append(
            (
                _number(self.names, event.kernel),
                _number(self.lanes, event.worker),
                event.at - event.seconds,
                event.seconds,
                (statement, *indices),
            )
        )
        if len(self.spans) > _TASKS:
            self.fold()

    def fold(self) -> None:
        """Join neighbours on a lane, shortest first, until half as many spans are left."""
        begin = min(each[2] for each in self.spans)
        end = max(each[2] + each[3] for each in self.spans)
        width = max((end - begin) / (_TASKS / 4 / max(len(self.lanes), 1)), 1e-9)
        joined: dict[tuple[int, int, int], Span] = {}
        kept: list[Span] = []
        for span in self.spans:
            kernel, lane, start, seconds, _ = span
            if seconds >= width:
                kept.append(span)
                continue
            place = (lane, kernel, int((start - begin) / width))
            before = joined.get(place)
            if before is None:
                joined[place] = span
            else:
                self.folded += 1
                joined[place] = (kernel, lane, min(start, before[2]), before[3] + seconds, ())
        self.spans = sorted([*kept, *joined.values()], key=lambda each: each[2])[-_TASKS // 2 * 2 :]


class Record:
    """The jobs of this process, the latest last; a listener.

    >>> record = Record()
    >>> record(JobStarted("gemm-1", 0.0, program="gemm", tasks=1, workers=1))
    >>> record(TaskFinished("gemm-1", 0.5, (0, (0,)), "gemm", "gemm-1-w0", seconds=0.4))
    >>> record(JobFinished("gemm-1", 0.5, seconds=0.5))
    >>> job = record.jobs[-1]
    >>> job.state, job.kernels, job.spans
    ('finished', {'gemm': (1, 0.4)}, [(0, 0, 0.09999999999999998, 0.4, (0, 0))])
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._jobs: OrderedDict[str, JobRecord] = OrderedDict()
        self._about: dict[str, dict[str, Any]] = {}

    @property
    def jobs(self) -> list[JobRecord]:
        """The jobs, the latest last."""
        with self._lock:
            return list(self._jobs.values())

    def about(self, job: str, known: dict[str, Any]) -> None:
        """What is known of a job that is about to start."""
        with self._lock:
            self._about[job] = known

    def clear(self) -> None:
        """Forget everything that has ended."""
        with self._lock:
            for name in [name for name, each in self._jobs.items() if each.state != "running"]:
                del self._jobs[name]

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, JobStarted):
                self._begin(event)
            job = self._jobs.get(event.job)
            if job is not None:
                job.hear(event)

    def _begin(self, event: JobStarted) -> None:
        self._jobs[event.job] = JobRecord(
            event.job,
            event.program,
            event.tasks,
            event.workers,
            event.at,
            about=self._about.pop(event.job, {}),
        )
        if len(self._jobs) > _JOBS or sum(len(each.spans) for each in self._jobs.values()) > _ALL_TASKS:
            oldest = next(iter(self._jobs))
            if oldest != event.job:
                del self._jobs[oldest]


def _number(names: list[str], name: str) -> int:
    """The place of a name in a list; at its end if it is new. Lists are short, and the last is asked most."""
    try:
        return names.index(name)
    except ValueError:
        names.append(name)
        return len(names) - 1
