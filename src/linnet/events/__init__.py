"""What happened, as typed events, and the consumers that make something of them."""

from linnet.events.hub import Events, Listener, Sink
from linnet.events.metrics import KernelMetrics, Metrics
from linnet.events.progress import ProgressBar, ProgressLines, show_progress
from linnet.events.recording import Recorder, from_json, read_recording, to_json
from linnet.events.types import (
    ALL_EVENTS,
    Event,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    KernelTotal,
    Progress,
    TaskFailed,
    TaskFinished,
    TaskName,
    TaskReady,
    TaskStarted,
    TileDropped,
    TileRead,
    TileWritten,
    WorkerStarted,
    WorkerStopped,
)

__all__ = [
    "ALL_EVENTS",
    "Event",
    "Events",
    "JobCancelled",
    "JobFailed",
    "JobFinished",
    "JobStarted",
    "KernelMetrics",
    "KernelTotal",
    "Listener",
    "Metrics",
    "Progress",
    "ProgressBar",
    "ProgressLines",
    "Recorder",
    "Sink",
    "TaskFailed",
    "TaskFinished",
    "TaskName",
    "TaskReady",
    "TaskStarted",
    "TileDropped",
    "TileRead",
    "TileWritten",
    "WorkerStarted",
    "WorkerStopped",
    "from_json",
    "read_recording",
    "show_progress",
    "to_json",
]
