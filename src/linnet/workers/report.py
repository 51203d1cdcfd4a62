"""A job as a page: how it went, who worked on it, what it cost. One HTML file, which needs nothing else."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from linnet.tiles.amounts import human
from linnet.workers.ledger import SLOW, Status, WorkerInfo
from linnet.workers.provisioner import Sample
from linnet.workers.spec import JobSpec

_WIDTH, _HEIGHT, _LEFT, _BOTTOM, _TOP = 760, 300, 60, 30, 44
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 820px; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { padding: .2em 1em .2em 0; text-align: left }
td.n, th.n { text-align: right } h1 { font-size: 1.4em } h2 { font-size: 1.1em; margin-top: 2em }
svg text { font: 11px system-ui, sans-serif; fill: #555 } .bad { color: #a00 }
"""


@dataclass(frozen=True, slots=True)
class Mark:
    """Something that happened to a job, for its picture."""

    at: float
    """The ledger's clock."""
    text: str


@dataclass(frozen=True, slots=True)
class Report:
    """What a page is made of."""

    address: str
    spec: JobSpec
    status: Status
    workers: Sequence[WorkerInfo]
    trace: Sequence[Sample]
    marks: Sequence[Mark] = ()
    notes: Sequence[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """Lines to add at the top: a label and a text."""

    def html(self) -> str:
        """The page."""
        name = html.escape(self.spec.program.name)
        parts = [
            "<!doctype html>",
            f"<html lang='en'><meta charset='utf-8'><title>{name}</title><style>{_STYLE}</style>",
            f"<h1>{name}: {self.status.done:,} of {self.status.total:,} tasks, {self.status.state}</h1>",
            self._summary(),
            "<h2>Workers and ready tasks over time</h2>",
            figure(self.trace, self.marks, self.status.first),
            "<h2>Kernels</h2>",
            self._kernels(),
            "<h2>Workers</h2>",
            self._workers(),
            "</html>",
        ]
        return "\n".join(parts)

    def _summary(self) -> str:
        facts = total(self.workers)
        begun = self.status.begun - self.status.done
        lines = [
            *self.notes,
            ("address", self.address),
            (
                "time",
                f"{self.status.seconds:.2f} s from the first task to "
                + ("now" if self.status.state == "running" else "the last"),
            ),
            (
                "read",
                f"{human(facts.get('bytes_read', 0))} from the store, "
                f"{human(facts.get('bytes_hit', 0))} from the cache",
            ),
            ("written", human(facts.get("bytes_written", 0))),
            ("begun again", f"{max(begun, 0):,} attempts beyond one for each task (seeds among them)"),
            ("workers", f"{len(self.workers)} in all"),
        ]
        again = sum(kernel_counts(self.status)) - self.status.done
        if again > 0:
            lines.append(("done again", f"{again:,} tasks, whose tiles were lost"))
        if again < 0:
            lines.append(("done before", f"{-again:,} tasks, before the ledger was built anew"))
        if self.status.reason:
            lines.insert(0, ("reason", self.status.reason))
        return _table([], [[html.escape(label), html.escape(text)] for label, text in lines])

    def _kernels(self) -> str:
        rows = kernel_rows(self.spec, self.status)
        seconds = sum(each for _, each in self.status.kinds.values())
        rows.append(["all", f"{sum(kernel_counts(self.status)):,}", f"{seconds:.2f}", ""])
        return _table(KERNELS, [map(html.escape, row) for row in rows])

    def _workers(self) -> str:
        rows = [[*worker_row(each), self._end(each)] for each in self.workers]
        done, told = sum(kernel_counts(self.status)), total(self.workers).get("tasks", 0)
        if done > told:
            rows.append(["told by nobody", f"{done - told:,.0f}", "", "", "their workers died, or work now"])
        if done < told:
            rows.append(["told before", f"{done - told:,.0f}", "", "", "the ledger was built anew"])
        rows.append(["all", f"{done:,}", "", "", ""])
        return _table([*WORKERS, "end"], [map(html.escape, row) for row in rows])

    def _end(self, worker: WorkerInfo) -> str:
        """What became of a worker."""
        if worker.left:
            return "was killed, or crashed" if worker.died else "left"
        silent = self.status.now - worker.beat > self.spec.options.lease
        if not worker.facts:
            return "did not begin" if silent or self.status.state != "running" else "begins"
        return "fell silent" if silent else "at work"


KERNELS = ("kernel", "tasks", "seconds", "ms a task")
"""What `kernel_rows` tells."""
WORKERS = ("worker", "tasks", "read", "written")
"""What `worker_row` tells."""


def kernel_rows(spec: JobSpec, status: Status) -> list[list[str]]:
    """A row for each kernel of which tasks are done; where it makes several arrays, for each of these."""
    made: dict[tuple[str, str], tuple[int, float]] = {}
    for number, (tasks, seconds) in sorted(status.kinds.items()):
        statement = spec.program.statements[number]
        arrays = ", ".join(dict.fromkeys(access.array for access in statement.writes))
        before, spent = made.get((statement.kernel, arrays), (0, 0.0))
        made[statement.kernel, arrays] = before + tasks, spent + seconds
    kernels = [kernel for kernel, _ in made]
    return [
        [
            kernel if kernels.count(kernel) == 1 else f"{kernel} (makes {arrays})",
            f"{tasks:,}",
            f"{seconds:.2f}",
            f"{1000 * seconds / max(tasks, 1):.2f}",
        ]
        for (kernel, arrays), (tasks, seconds) in made.items()
    ]


def kernel_counts(status: Status) -> list[int]:
    """Tasks done of each statement; one whose tiles were lost, and that was done again, counts twice."""
    return [tasks for tasks, _ in status.kinds.values()]


def slow_tasks(workers: Sequence[WorkerInfo]) -> dict[str, float]:
    """Tasks that are in their kernels for far longer than others of their kind were: name and seconds.

    >>> slow_tasks([WorkerInfo("host/1", facts={"tasks": 7.0, "slow:0.13": 80.0})])
    {'0.13': 80.0}
    """
    facts = (fact for worker in workers for fact in worker.facts.items())
    return {name.removeprefix(SLOW): seconds for name, seconds in facts if name.startswith(SLOW)}


def worker_row(worker: WorkerInfo) -> list[str]:
    """What a worker counted.

    >>> worker_row(WorkerInfo("host/1", facts={"tasks": 1234.0, "bytes_read": 2e6}))
    ['host/1', '1,234', '2.0 MB', '0 bytes']
    """
    return [
        worker.name,
        f"{worker.facts.get('tasks', 0):,.0f}",
        human(worker.facts.get("bytes_read", 0)),
        human(worker.facts.get("bytes_written", 0)),
    ]


def total(workers: Sequence[WorkerInfo]) -> dict[str, float]:
    """What all workers together counted."""
    found: dict[str, float] = {}
    for worker in workers:
        for name, value in worker.facts.items():
            if not name.startswith(SLOW):
                found[name] = found.get(name, 0.0) + value
    return found


def figure(trace: Sequence[Sample], marks: Sequence[Mark], start: float) -> str:
    """Workers, ready tasks and progress over time, as a drawing."""
    if len(trace) < 2:
        return "<p>The job was too short to be watched.</p>"
    begin = min(start or trace[0].at, trace[0].at)
    span = max(trace[-1].at - begin, 1e-9)
    ready = max(1, *(each.ready + each.leased for each in trace))
    workers = max(1, *(each.workers for each in trace))

    def line(values: Sequence[float], most: float, colour: str, label: str, row: int) -> str:
        points = " ".join(
            f"{_x((each.at - begin) / span):.1f},{_y(value / most):.1f}"
            for each, value in zip(trace, values, strict=True)
        )
        return (
            f"<polyline points='{points}' fill='none' stroke='{colour}' stroke-width='2'/>"
            f"<text x='{_LEFT + 8}' y='{14 + 14 * row}' style='fill:{colour}'>{label}</text>"
        )

    drawn = [
        f"<svg viewBox='0 0 {_WIDTH} {_HEIGHT}' width='100%' role='img'>",
        f"<line x1='{_LEFT}' y1='{_y(0)}' x2='{_WIDTH}' y2='{_y(0)}' stroke='#999'/>",
        line(
            [each.ready + each.leased for each in trace],
            ready,
            "#c60",
            f"tasks ready or under way (to {ready:,})",
            0,
        ),
        line([each.workers for each in trace], workers, "#06c", f"workers alive (to {workers})", 1),
    ]
    for mark in marks:
        x = _x((mark.at - begin) / span)
        drawn.append(
            f"<line x1='{x:.1f}' y1='{_y(1)}' x2='{x:.1f}' y2='{_y(0)}' stroke='#a00' stroke-dasharray='3'/>"
        )
        drawn.append(
            f"<text x='{x + 3:.1f}' y='{_y(0) - 6:.1f}' style='fill:#a00'>{html.escape(mark.text)}</text>"
        )
    drawn += [
        f"<text x='{_x(share):.1f}' y='{_HEIGHT - 8}' text-anchor='middle'>{share * span:.1f} s</text>"
        for share in (0.0, 0.25, 0.5, 0.75, 1.0)
    ]
    return "\n".join([*drawn, "</svg>"])


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - 30)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _BOTTOM - _TOP)  # above it are the names of the lines


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "<tr>" + "".join(f"<th>{each}</th>" for each in heads) + "</tr>" if heads else ""
    body = "\n".join("<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table>{head}{body}</table>"
