"""Progress for people: a bar on a terminal, plain lines anywhere else."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, TextIO

from linnet.events.hub import Events
from linnet.events.types import Event, JobCancelled, JobFailed, JobFinished, JobStarted, Progress

if TYPE_CHECKING:
    import rich.progress


class ProgressLines:
    """A line at the start, every few seconds, and at the end; a listener.

    >>> import sys
    >>> lines = ProgressLines(sys.stdout)
    >>> lines(JobStarted("cholesky-1", 0.0, program="cholesky", tasks=1200, workers=2))
    cholesky: 1,200 tasks on 2 workers
    >>> lines(Progress("cholesky-1", 6.0, done=300, tasks=1200))
    cholesky: 300 of 1,200 tasks (25%), 6.0 s
    >>> lines(JobFinished("cholesky-1", 9.0, seconds=9.0))
    cholesky: finished in 9.0 s
    """

    def __init__(self, stream: TextIO | None = None, every: float = 5.0) -> None:
        self._stream = stream or sys.stderr
        self._every = every
        self._jobs: dict[str, tuple[str, float, float]] = {}  # program, start, last line

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(self, JobStarted, Progress, JobFinished, JobFailed, JobCancelled)

    def __call__(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            self._jobs[event.job] = (event.program, event.at, event.at)
            self._say(f"{event.program}: {event.tasks:,} tasks on {event.workers} workers")
        elif isinstance(event, Progress):
            program, start, last = self._jobs.get(event.job, (event.job, event.at, event.at))
            if event.at - last >= self._every:
                self._jobs[event.job] = (program, start, event.at)
                share = event.done / event.tasks if event.tasks else 1.0
                self._say(
                    f"{program}: {event.done:,} of {event.tasks:,} tasks ({share:.0%}), "
                    f"{event.at - start:.1f} s"
                )
        elif isinstance(event, JobFinished | JobFailed | JobCancelled):
            program = self._jobs.pop(event.job, (event.job, 0.0, 0.0))[0]
            self._say(f"{program}: {_outcome(event)}")

    def _say(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


class ProgressBar:
    """A bar for each job; a listener and a context manager."""

    def __init__(self, stream: TextIO | None = None) -> None:
        import rich.console
        import rich.progress

        self._bars = rich.progress.Progress(
            rich.progress.TextColumn("{task.description}"),
            rich.progress.BarColumn(),
            rich.progress.MofNCompleteColumn(),
            rich.progress.TimeElapsedColumn(),
            console=rich.console.Console(file=stream or sys.stderr),
        )
        self._jobs: dict[str, rich.progress.TaskID] = {}

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(self, JobStarted, Progress, JobFinished, JobFailed, JobCancelled)

    def __call__(self, event: Event) -> None:
        if isinstance(event, JobStarted):
            self._jobs[event.job] = self._bars.add_task(event.program, total=event.tasks)
        elif event.job not in self._jobs:
            return
        elif isinstance(event, Progress):
            self._bars.update(self._jobs[event.job], completed=event.done)
        elif isinstance(event, JobFinished | JobFailed | JobCancelled):
            bar = self._jobs.pop(event.job)
            if isinstance(event, JobFinished):
                self._bars.update(bar, completed=self._bars.tasks[bar].total)
            else:
                self._bars.update(bar, description=_outcome(event))
            self._bars.stop_task(bar)
            self._bars.refresh()

    def __enter__(self) -> ProgressBar:
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._bars.stop()


@contextmanager
def show_progress(events: Events, stream: TextIO | None = None) -> Iterator[None]:
    """While the context lasts, show the jobs of a hub: bars on a terminal, lines elsewhere.

    >>> import io
    >>> from linnet.events import Events
    >>> events, out = Events(), io.StringIO()
    >>> with show_progress(events, out):
    ...     events.emit(JobStarted("tsqr-1", 0.0, program="tsqr", tasks=7, workers=2))
    >>> out.getvalue()
    'tsqr: 7 tasks on 2 workers\\n'
    """
    target: TextIO = sys.stderr if stream is None else stream
    with ExitStack() as stack:
        if target.isatty():
            stack.callback(stack.enter_context(ProgressBar(target)).listen(events))
        else:
            stack.callback(ProgressLines(target).listen(events))
        yield


def _outcome(event: JobFinished | JobFailed | JobCancelled) -> str:
    if isinstance(event, JobFinished):
        return f"finished in {event.seconds:.1f} s"
    if isinstance(event, JobFailed):
        return f"failed after {event.seconds:.1f} s"
    return f"cancelled after {event.seconds:.1f} s"
