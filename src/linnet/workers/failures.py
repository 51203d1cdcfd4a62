"""Why a job ended, as the error its client sees: of the kind a kernel raised where it was."""

from __future__ import annotations

from linnet.errors import (
    InputError,
    JobCancelledError,
    JobFailedError,
    JobStoppedError,
    KernelError,
    LinAlgError,
    LinnetError,
    UnwrittenTileError,
    named_kind,
)
from linnet.programs import Task
from linnet.programs.shapes import operands
from linnet.workers.ledger import Status
from linnet.workers.names import named
from linnet.workers.spec import JobSpec

_PLAIN: dict[str, type[LinnetError]] = {"InputError": InputError, "UnwrittenTileError": UnwrittenTileError}


def ended_with(status: Status, spec: JobSpec) -> LinnetError:
    """The error for a job that ended before its end."""
    if status.state == "cancelled":
        return JobCancelledError(status.reason or "the job was cancelled; resume() goes on")
    if status.state == "stopped":
        return JobStoppedError(f"{status.reason}\n  nothing is lost: resume() goes on")
    kind, _, message = status.reason.partition(": ")
    task = named(status.failed) if status.failed else None
    if kind in _PLAIN:
        return _PLAIN[kind](message)
    if kind in ("KernelError", "LinAlgError") and isinstance(task, Task):
        tiles = tuple(dict.fromkeys(operands(spec.bound.call(task).args)))
        where = spec.bound.where(task)
        if kind == "LinAlgError":
            return LinAlgError(message, task=task, tiles=tiles, where=where)
        return KernelError.of(named_kind(message), message, task=task, tiles=tiles, where=where)
    return JobFailedError(status.reason)
