"""The words and numbers of a progress display, the same on a terminal, in a notebook and in a log."""

from __future__ import annotations

from dataclasses import dataclass

from linnet.events.types import JobStarted, Progress

_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB")


def short_bytes(size: float) -> str:
    """Bytes for people.

    >>> short_bytes(1_234_567)
    '1.2 MB'
    """
    power = 0
    while size >= 1000 and power < len(_UNITS) - 1:
        size, power = size / 1000, power + 1
    return f"{size:.0f} {_UNITS[power]}" if not power else f"{size:.1f} {_UNITS[power]}"


def short_time(seconds: float) -> str:
    """Seconds for people.

    >>> short_time(7.25), short_time(95), short_time(7300)
    ('7.2 s', '1:35 min', '2:01 h')
    """
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 3600:
        return f"{int(seconds) // 60}:{int(seconds) % 60:02d} min"
    return f"{int(seconds) // 3600}:{int(seconds) % 3600 // 60:02d} h"


@dataclass(slots=True)
class Shown:
    """A job as a display shows it."""

    program: str
    tasks: int
    workers: int
    begun: float
    done: int = 0
    at: float = 0.0
    read: int = 0
    written: int = 0
    memory: int = 0
    running: int = 0
    dollars: float = 0.0
    visible: bool = False
    told: float = 0.0
    """When the last line of it was written."""

    @classmethod
    def of(cls, event: JobStarted) -> Shown:
        """A job that begins."""
        return cls(event.program, event.tasks, event.workers, event.at, at=event.at, told=event.at)

    def hear(self, event: Progress) -> None:
        """How far it is now."""
        self.done, self.at, self.tasks = event.done, event.at, event.tasks
        self.read, self.written, self.memory = event.read, event.written, event.memory
        self.running, self.dollars = event.running, event.dollars
        self.workers = event.workers or self.workers

    @property
    def share(self) -> float:
        """Of the tasks that are done."""
        return self.done / self.tasks if self.tasks else 1.0

    @property
    def seconds(self) -> float:
        """Since it began."""
        return max(self.at - self.begun, 0.0)

    @property
    def rate(self) -> float:
        """Tasks a second."""
        return self.done / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Seconds that it will take if it goes on like this; None while nothing is done."""
        return (self.tasks - self.done) / self.rate if self.rate else None

    def details(self) -> list[str]:
        """Rate, bytes, workers, memory and time left, as far as they are known.

        >>> job = Shown("gemm", tasks=200, workers=2, begun=0.0, done=50, at=10.0, written=3_000_000)
        >>> job.details()
        ['5.0 tasks/s', '3.0 MB written', '2 workers', '30.0 s left']
        """
        words: list[str] = []
        if self.rate:
            words.append(f"{self.rate:,.0f} tasks/s" if self.rate >= 100 else f"{self.rate:.1f} tasks/s")
        if self.read:
            words.append(f"{short_bytes(self.read)} read")
        if self.written:
            words.append(f"{short_bytes(self.written)} written")
        words.append(f"{self.workers} worker{'s' if self.workers != 1 else ''}")
        if self.memory:
            words.append(f"{short_bytes(self.memory)} of memory")
        if self.dollars:
            words.append(f"{self.dollars:.4g} dollars")
        if self.left is not None and self.done < self.tasks:
            words.append(f"{short_time(self.left)} left")
        return words
