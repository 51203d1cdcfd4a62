"""How far a job is, as its clients see it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a job is."""

    state: str
    """running, finished, failed, stopped or cancelled."""
    done: int
    """Tasks done."""
    total: int
    """Tasks in all."""
    ready: int
    """Tasks that wait for a worker."""
    leased: int
    """Tasks in the hands of workers."""
    workers: int
    """Workers that are alive."""
    seconds: float
    """From the first task begun to now, or to the last one done."""
    reason: str = ""
    """Why it failed or stopped."""

    def __str__(self) -> str:
        return (
            f"{self.state}: {self.done} of {self.total} tasks, {self.ready} ready, {self.leased} under way, "
            f"{self.workers} workers, {self.seconds:.1f} s" + (f": {self.reason}" if self.reason else "")
        )
