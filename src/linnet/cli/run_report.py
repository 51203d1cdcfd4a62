"""A page about the jobs of a script: how long each took, what its kernels did, and who was busy when."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from linnet.events import (
    Event,
    Events,
    JobCancelled,
    JobFailed,
    JobFinished,
    JobStarted,
    Metrics,
    TaskFinished,
)

_MOST = 20_000
"""Tasks that are drawn: more than these would not be seen."""
_WIDTH, _LANE, _LEFT = 1000, 14, 120
_COLOURS = ("#4269d0", "#efb118", "#ff725c", "#6cc5b0", "#3ca951", "#a463f2", "#97bbf5", "#9c6b4e")
_STYLE = (
    "body{font:15px/1.5 system-ui,sans-serif;max-width:1040px;margin:2em auto;padding:0 1em;color:#222}"
    "table{border-collapse:collapse}td,th{padding:.2em 1.2em .2em 0;text-align:left}"
    "h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}svg text{font:11px system-ui,sans-serif;fill:#555}"
)


@dataclass(slots=True)
class _Job:
    """One run of a program."""

    started: JobStarted
    ended: JobFinished | JobFailed | JobCancelled | None = None


@dataclass(slots=True)
class Story:
    """What happened while a script ran; a listener.

    >>> story = Story("fit.py")
    >>> story(JobStarted("gemm-1", 0.0, program="gemm", tasks=1, workers=1))
    >>> story(TaskFinished("gemm-1", 0.5, (0, (0,)), "gemm", "gemm-1-w0", seconds=0.4))
    >>> story(JobFinished("gemm-1", 0.5, seconds=0.5))
    >>> "<td>gemm</td><td>1</td><td>1</td><td>0.500 s</td>" in story.html()
    True
    """

    title: str
    _jobs: dict[str, _Job] = field(default_factory=dict[str, _Job])
    _tasks: list[TaskFinished] = field(default_factory=list[TaskFinished])
    _metrics: Metrics = field(default_factory=Metrics)

    def listen(self, events: Events) -> Callable[[], None]:
        """Subscribe to what is needed; returns the function that unsubscribes."""
        return events.subscribe(self, JobStarted, JobFinished, JobFailed, JobCancelled, TaskFinished)

    def __call__(self, event: Event) -> None:
        self._metrics(event)
        if isinstance(event, JobStarted):
            self._jobs[event.job] = _Job(event)
        elif isinstance(event, JobFinished | JobFailed | JobCancelled) and event.job in self._jobs:
            self._jobs[event.job].ended = event
        elif isinstance(event, TaskFinished) and len(self._tasks) < _MOST:
            self._tasks.append(event)

    def html(self) -> str:
        """The page; it needs nothing else."""
        title, metrics = html.escape(self.title), self._metrics
        kernels = sorted(metrics.kernels.items(), key=lambda each: -each[1].seconds)
        rows = [
            [
                html.escape(name),
                f"{each.tasks:,}",
                f"{each.seconds:.3f} s",
                _mean(each.seconds, each.tasks),
            ]
            for name, each in kernels
        ]
        return "\n".join(
            [
                f"<!doctype html><html lang='en'><meta charset='utf-8'><title>{title}</title>",
                f"<style>{_STYLE}</style><h1>{title}</h1>",
                f"<p>{metrics.jobs:,} jobs, {metrics.tasks:,} tasks; {metrics.seconds:.2f} s in jobs, "
                f"{metrics.busy_seconds:.2f} s in kernels.</p>",
                "<h2>Jobs</h2>",
                _table(["program", "tasks", "workers", "time", "end"], [*map(_row, self._jobs.values())]),
                "<h2>Kernels</h2>",
                _table(["kernel", "tasks", "time", "a task"], rows),
                "<h2>Who was busy when</h2>",
                _timeline(self._tasks),
                "</html>",
            ]
        )


def _row(job: _Job) -> list[str]:
    started, ended = job.started, job.ended
    known = [html.escape(started.program), f"{started.tasks:,}", f"{started.workers:,}"]
    if ended is None:
        return [*known, "", "not ended"]
    words = {JobFinished: "finished", JobCancelled: "cancelled"}.get(type(ended), "failed")
    why = f": {html.escape(ended.error)}" if isinstance(ended, JobFailed) else ""
    return [*known, f"{ended.seconds:.3f} s", words + why]


def _mean(seconds: float, tasks: int) -> str:
    return f"{1000 * seconds / max(tasks, 1):.3f} ms"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    head = "".join(f"<th>{each}</th>" for each in heads)
    body = "\n".join("<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table><tr>{head}</tr>{body}</table>"


def _timeline(tasks: Sequence[TaskFinished]) -> str:
    """A lane for each worker, a bar for each task."""
    if not tasks:
        return "<p>No task was run.</p>"
    begin = min(task.at - task.seconds for task in tasks)
    span = max(max(task.at for task in tasks) - begin, 1e-9)
    lanes = sorted({task.worker.rpartition("-w")[2] for task in tasks}, key=lambda name: (len(name), name))
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(sorted({t.kernel for t in tasks}))}
    height = (len(lanes) + 2) * _LANE
    drawn = [f"<svg viewBox='0 0 {_WIDTH} {height}' width='100%' role='img'>"]
    drawn += [f"<text x='0' y='{(n + 1) * _LANE - 3}'>worker {lane}</text>" for n, lane in enumerate(lanes)]
    scale = (_WIDTH - _LEFT) / span
    for task in tasks:
        lane = lanes.index(task.worker.rpartition("-w")[2])
        left, width = _LEFT + (task.at - task.seconds - begin) * scale, max(task.seconds * scale, 0.3)
        drawn.append(
            f"<rect x='{left:.1f}' y='{lane * _LANE + 1}' width='{width:.1f}' height='{_LANE - 2}' "
            f"fill='{colours[task.kernel]}'><title>{html.escape(task.kernel)} {task.task}: "
            f"{1000 * task.seconds:.2f} ms</title></rect>"
        )
    drawn.append(f"<text x='{_LEFT}' y='{height - 4}'>0 s</text>")
    drawn.append(f"<text x='{_WIDTH}' y='{height - 4}' text-anchor='end'>{span:.2f} s</text></svg>")
    return "\n".join(drawn)
