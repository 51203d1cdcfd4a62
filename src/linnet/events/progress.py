"""Progress for people: one live display on a terminal or in a notebook, plain lines anywhere else."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Generator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, TextIO

from linnet.events.display_text import Shown, short_time
from linnet.events.hub import Events
from linnet.events.types import Event, JobCancelled, JobFailed, JobFinished, JobStarted, Progress

if TYPE_CHECKING:
    import rich.live

KINDS: tuple[type[Event], ...] = (JobStarted, Progress, JobFinished, JobFailed, JobCancelled)
"""What displays listen to."""
_MANY = 8
"""Runs that end within `every` seconds and are told one by one; others are told together."""


class ProgressLines:
    """A line at the start, every few seconds, and at the end; a listener.

    >>> import sys
    >>> lines = ProgressLines(sys.stdout)
    >>> lines(JobStarted("cholesky-1", 0.0, program="cholesky", tasks=1200, workers=2))
    cholesky: 1,200 tasks on 2 workers
    >>> lines(Progress("cholesky-1", 6.0, done=300, tasks=1200))
    cholesky: 300 of 1,200 tasks (25%), 6.0 s, 50.0 tasks/s, 2 workers, 18.0 s left
    >>> lines(JobFinished("cholesky-1", 9.0, seconds=9.0))
    cholesky: finished in 9.0 s
    """

    def __init__(self, stream: TextIO | None = None, every: float = 5.0, *, after: float = 0.0) -> None:
        """Jobs shorter than `after` seconds are not told of at all."""
        self._stream = stream or sys.stderr
        self._every, self._after = every, after
        self._jobs: dict[str, Shown] = {}
        self._ended: list[float] = []
        self._untold = 0

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(self, *KINDS)

    def __call__(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            self._jobs[event.job] = job = Shown.of(event)
            if not self._after and not self._crowded(event.at):
                self._begin(job)
        elif isinstance(event, Progress):
            job = self._jobs.get(event.job)
            if job is None:
                return
            job.hear(event)
            if not job.visible and job.seconds >= max(self._after, 1.0):
                self._begin(job)
            if job.visible and event.at - job.told >= self._every:
                job.told = event.at
                told = ", ".join([short_time(job.seconds), *job.details()])
                self._say(f"{job.program}: {job.done:,} of {job.tasks:,} tasks ({job.share:.0%}), {told}")
        elif isinstance(event, JobFinished | JobFailed | JobCancelled):
            self._end(event)

    def _begin(self, job: Shown) -> None:
        job.visible = True
        self._say(f"{job.program}: {job.tasks:,} tasks on {job.workers} workers")

    def _end(self, event: JobFinished | JobFailed | JobCancelled) -> None:
        job = self._jobs.pop(event.job, None)
        if job is None or (self._after and not job.visible):
            return
        self._ended = [at for at in self._ended if event.at - at < self._every] + [event.at]
        if not job.visible and isinstance(event, JobFinished):
            self._untold += 1
            return
        self.close()
        self._say(f"{job.program}: {outcome(event)}")

    def _crowded(self, now: float) -> bool:
        """Whether so many runs have ended lately that single ones are not worth a line."""
        return sum(now - at < self._every for at in self._ended) >= _MANY

    def close(self) -> None:
        """Tell of the runs that had no line of their own."""
        if self._untold:
            self._say(f"and {self._untold:,} more short runs")
            self._untold = 0

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class ProgressBar:
    """A bar for each job that runs, and a line for each that has ended; a listener and a context manager."""

    def __init__(self, stream: TextIO | None = None, *, after: float = 0.0) -> None:
        """Jobs shorter than `after` seconds are not shown at all."""
        import rich.console

        self._console = rich.console.Console(file=stream or sys.stderr)
        self._after = after
        self._jobs: dict[str, Shown] = {}
        self._short = 0
        self._live: rich.live.Live | None = None
        self._lock = threading.RLock()

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(self, *KINDS)

    def __call__(self, event: Event) -> None:
        with self._lock:
            if isinstance(event, JobStarted):
                self._jobs[event.job] = job = Shown.of(event)
            elif (job := self._jobs.get(event.job)) is None:
                return
            elif isinstance(event, Progress):
                job.hear(event)
                if job.seconds >= max(self._after, 0.3):
                    job.visible = True
                    self._draw()
            elif isinstance(event, JobFinished | JobFailed | JobCancelled):
                del self._jobs[event.job]
                self._end(job, event)

    def _end(self, job: Shown, event: JobFinished | JobFailed | JobCancelled) -> None:
        if job.visible or not isinstance(event, JobFinished):
            self._tell_short()
            details = [each for each in job.details() if not each.endswith(" left")]
            if isinstance(event, JobFinished):
                job.done = job.tasks
            told = ", ".join([f"{job.done:,} of {job.tasks:,} tasks", *details])
            if not self._after or job.visible:
                mark = "[green]✓[/]" if isinstance(event, JobFinished) else "[red]✗[/]"
                self._console.print(
                    f"{mark} [bold]{job.program}[/]: {outcome(event)}; {told}", highlight=False
                )
        elif not self._after:
            self._short += 1
        if not any(each.visible for each in self._jobs.values()):
            self._stop()

    def _tell_short(self) -> None:
        if self._short:
            self._console.print(f"  {self._short:,} runs of less than 0.3 s", style="dim", highlight=False)
            self._short = 0

    def _draw(self) -> None:
        from rich.live import Live

        if self._live is None:
            self._live = Live(console=self._console, transient=True, auto_refresh=False)
            self._live.start()
        self._live.update(self._table(), refresh=True)

    def _table(self) -> Any:
        from rich.progress_bar import ProgressBar as Bar
        from rich.table import Table

        table = Table(box=None, show_header=False, padding=(0, 1, 0, 0))
        for _ in range(4):
            table.add_column(no_wrap=True, overflow="ellipsis")
        for job in self._jobs.values():
            if job.visible:
                bar = Bar(total=max(job.tasks, 1), completed=job.done, width=24)
                counts = f"{job.done:,}/{job.tasks:,}"
                table.add_row(f"[bold]{job.program}[/]", bar, counts, " · ".join(job.details()))
        return table

    def _stop(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def close(self) -> None:
        """Take the display away; what was told stays."""
        with self._lock:
            self._stop()
            self._tell_short()

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


Display = Any
"""ProgressLines, ProgressBar or NotebookProgress: a listener with `listen` and `close`."""


def display_for(stream: TextIO | None = None, *, after: float = 0.0) -> Display:
    """The display that suits where the program runs."""
    from linnet.events.notebook import NotebookProgress, in_notebook

    target: TextIO = sys.stderr if stream is None else stream
    if stream is None and in_notebook():
        return NotebookProgress(after=after)
    if target.isatty():
        return ProgressBar(target, after=after)
    return ProgressLines(target, after=after)


def interactive() -> bool:
    """Whether somebody looks at what is written: on a terminal, or in a notebook."""
    from linnet.events.notebook import in_notebook

    return in_notebook() or bool(getattr(sys.stderr, "isatty", bool)())


@contextmanager
def show_progress(events: Events, stream: TextIO | None = None) -> Generator[None]:
    """While the context lasts, show the jobs of a hub: bars on a terminal, lines elsewhere.

    >>> import io
    >>> from linnet.events import Events
    >>> events, out = Events(), io.StringIO()
    >>> with show_progress(events, out):
    ...     events.emit(JobStarted("tsqr-1", 0.0, program="tsqr", tasks=7, workers=2))
    >>> out.getvalue()
    'tsqr: 7 tasks on 2 workers\\n'
    """
    with ExitStack() as stack:
        display = display_for(stream)
        stack.callback(display.close)
        stack.callback(display.listen(events))
        yield


def outcome(event: JobFinished | JobFailed | JobCancelled) -> str:
    """How a job ended, in words."""
    if isinstance(event, JobFinished):
        return f"finished in {short_time(event.seconds)}"
    if isinstance(event, JobFailed):
        return f"failed after {short_time(event.seconds)}"
    return f"cancelled after {short_time(event.seconds)}"
