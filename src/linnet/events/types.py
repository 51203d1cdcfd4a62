"""What happens while a job runs, as values.

Engines emit these; progress bars, metrics, recordings and reports are made from them and
from nothing else, so they work for every engine, and for a recording as for a live run.
Tasks and tiles appear as plain tuples and names: this room knows no other.

    Job      JobStarted, PlanMade, Progress, KernelTotal, then one of JobFinished, JobFailed, JobCancelled
    Worker   WorkerStarted, WorkerStopped
    Task     TaskReady, TaskStarted, then one of TaskFinished, TaskFailed
    Tile     TileRead, TileWritten, TilesWritten, TileDropped
"""

from __future__ import annotations

from dataclasses import field

from linnet.records import record

TaskName = tuple[int, tuple[int, ...]]
"""Statement and loop indices."""


@record
class Event:
    """Something that happened in a job."""

    job: str
    """Name of the job, unique in its process."""
    at: float
    """When: seconds since the epoch."""


@record
class JobStarted(Event):
    """A program begins to run."""

    program: str
    """Name of the program."""
    tasks: int
    """How many tasks it has."""
    workers: int
    """How many workers it starts with."""


@record
class PlanMade(Event):
    """Tasks of the job follow a plan for several nodes."""

    text: str
    """The plan in a few lines, with what other policies would cost."""
    moved: int
    """Bytes that it moves between nodes."""
    least: int | None
    """Bytes that any plan would move; None: not known."""


@record
class Progress(Event):
    """How far a job is; sent a few times a second, however many tasks there are."""

    done: int
    """Tasks finished."""
    tasks: int
    """Tasks in all."""
    ready: int = field(default=0, repr=False)
    """Tasks that wait for a worker."""
    running: int = field(default=0, repr=False)
    """Tasks under way."""
    workers: int = field(default=0, repr=False)
    """Workers that are there now; 0: as many as there were at the start."""
    read: int = field(default=0, repr=False)
    """Bytes of operands up to now, as far as they are counted."""
    written: int = field(default=0, repr=False)
    """Bytes of results up to now, as far as they are counted."""
    memory: int = field(default=0, repr=False)
    """Resident memory of the process, where tasks run in it; 0: not known."""
    dollars: float = field(default=0.0, repr=False)
    """Money spent up to now."""


@record
class KernelTotal(Event):
    """What one kernel has done up to now; sent with progress, however many tasks there are."""

    kernel: str
    """Its name."""
    tasks: int
    """Tasks finished."""
    seconds: float
    """Time inside the kernel, over all workers."""


@record
class JobFinished(Event):
    """All tasks are done."""

    seconds: float
    """From start to end."""


@record
class JobFailed(Event):
    """The job stopped on an error."""

    error: str
    """Type and message of the error."""
    seconds: float
    """From start to end."""


@record
class JobCancelled(Event):
    """The user stopped the job."""

    done: int
    """Tasks finished by then."""
    seconds: float
    """From start to end."""


@record
class WorkerStarted(Event):
    """A worker is ready for tasks."""

    worker: str
    """Name of the worker."""


@record
class WorkerStopped(Event):
    """A worker takes no more tasks."""

    worker: str
    """Name of the worker."""


@record
class TaskReady(Event):
    """All that a task reads is there."""

    task: TaskName
    """The task."""


@record
class TaskStarted(Event):
    """A worker begins a task."""

    task: TaskName
    """The task."""
    kernel: str
    """The kernel it calls."""
    worker: str
    """Name of the worker."""


@record
class TaskFinished(Event):
    """A task is done."""

    task: TaskName
    """The task."""
    kernel: str
    """The kernel it called."""
    worker: str
    """Name of the worker."""
    seconds: float
    """Time inside the kernel."""


@record
class TaskFailed(Event):
    """A kernel raised."""

    task: TaskName
    """The task."""
    kernel: str
    """The kernel it called."""
    worker: str
    """Name of the worker."""
    error: str
    """Type and message of the error."""


@record
class TileRead(Event):
    """A task took a tile as an operand."""

    array: str
    """Array of the program."""
    index: tuple[int, ...]
    """Position of the tile in the grid."""
    bytes: int
    """Size of the tile."""
    worker: str
    """Name of the worker."""


@record
class TileWritten(Event):
    """A task produced a tile."""

    array: str
    """Array of the program."""
    index: tuple[int, ...]
    """Position of the tile in the grid."""
    bytes: int
    """Size of the tile."""
    worker: str
    """Name of the worker."""


@record
class TilesWritten(Event):
    """Tiles of tasks too short to be told of by themselves; sent with progress."""

    tiles: tuple[tuple[str, tuple[int, ...]], ...]
    """Array and index of each."""


@record
class TileDropped(Event):
    """A tile was let go: nobody will read it again."""

    array: str
    """Array of the program."""
    index: tuple[int, ...]
    """Position of the tile in the grid."""
    bytes: int
    """Size of the tile."""


JOB_EVENTS: tuple[type[Event], ...] = (
    JobStarted,
    PlanMade,
    Progress,
    KernelTotal,
    JobFinished,
    JobFailed,
    JobCancelled,
)
WORKER_EVENTS: tuple[type[Event], ...] = (WorkerStarted, WorkerStopped)
TASK_EVENTS: tuple[type[Event], ...] = (TaskReady, TaskStarted, TaskFinished, TaskFailed)
TILE_EVENTS: tuple[type[Event], ...] = (TileRead, TileWritten, TilesWritten, TileDropped)
ALL_EVENTS: tuple[type[Event], ...] = JOB_EVENTS + WORKER_EVENTS + TASK_EVENTS + TILE_EVENTS
