"""A job as a page: how it went, who worked on it, what it cost. One HTML file, which needs nothing else."""

from __future__ import annotations

import html
import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from linnet.events import Event
from linnet.events import Progress as Told
from linnet.events.record import JobRecord
from linnet.reports import Report as Page
from linnet.reports import described, html_page
from linnet.tiles.amounts import human
from linnet.workers.ledger import SLOW, Status, WorkerInfo
from linnet.workers.provisioner import Sample
from linnet.workers.spec import JobSpec

_LINES = 400
_MORE = "tasks begun again, those under way now, and those that only put first tasks into the queue"
"""What attempts beyond one for each task are."""


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
    events: Sequence[Event] = ()
    """What workers told of single tasks, if the job was submitted with `Options(events=…)`."""

    def html(self) -> str:
        """The page: what every report has, and below it what only workers can tell."""
        tables = [
            "<section class='card'><h2>Job</h2>",
            self._summary(),
            "</section><section class='card'><h2>Workers</h2>",
            self._workers(),
            "</section>",
        ]
        return html_page(self.spec.program.name, self.data(), below="\n".join(tables))

    def data(self) -> dict[str, Any]:
        """What the page draws."""
        status, facts = self.status, total(self.workers)
        last = status.now if status.state == "running" else status.last or status.now
        came = [each.started for each in self.workers if each.started]
        begin = min(status.first or math.inf, status.now, *came, *(each.at for each in self.trace))
        record = JobRecord(
            self.spec.program.name, self.spec.program.name, status.total, self._most_workers(), begin,
            state=status.state, seconds=None if status.state == "running" else status.seconds,
            error=status.reason,
        )  # fmt: skip
        for event in self.events:
            record.hear(event)
        record.kernels = kernel_totals(self.spec, status)  # those of workers that died, too
        record.samples = [
            Told("", each.at, each.done, status.total, each.ready, each.leased, each.workers)
            for each in self.trace
            if each.at <= last
        ]
        read, written = (int(facts.get(name, 0)) for name in ("bytes_read", "bytes_written"))
        record.samples.append(Told("", max(last, begin), status.done, status.total, 0, 0, 0, read, written))
        more = max(status.begun - status.done, 0)
        extra = {
            "engine": "stateless workers",
            "marks": [[mark.at - begin, mark.text] for mark in self.marks],
            "hits": int(facts.get("bytes_hit", 0)),
            "log": self._log(begin),
            "retries": more,
            "retried": f"{more:,} more attempts than tasks: {_MORE}.",
        }
        return {
            "title": f"{self.spec.program.name}: {status.done:,} of {status.total:,} tasks, {status.state}",
            "sub": f"{len(self.workers)} workers in all; {self.address}",
            "notes": [list(each) for each in self.notes],
            "jobs": [described(record, extra)],
        }

    def _log(self, begin: float) -> list[list[Any]]:
        """Workers that came and went, and what happened to the job."""
        lines = [(mark.at, mark.text) for mark in self.marks]
        for each in self.workers:
            where = f" on {each.host}" if each.host else ""
            lines.append((each.started, f"{each.name} began to work{where}"))
            if each.left or self.status.now - each.beat > self.spec.options.lease:
                lines.append((each.beat, f"{each.name} {self._end(each)}"))
        if self.status.reason:
            lines.append((self.status.last or self.status.now, self.status.reason))
        return [[round(at - begin, 3), text] for at, text in sorted(lines)[-_LINES:]]

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the page, and its data beside it; or the data, or a picture, by the ending of the path."""
        target = Path(path)
        if target.suffix.lower() not in (".html", ".htm", ""):
            return Page(self.data()).save(target)
        target.write_text(self.html(), encoding="utf-8")
        Page(self.data()).save(target.with_suffix(".json"))
        return target

    def _repr_html_(self) -> str:
        return Page(self.data()).framed()

    def _most_workers(self) -> int:
        return max([each.workers for each in self.trace], default=0) or len(self.workers)

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
            ("more attempts", f"{max(begun, 0):,} than tasks: {_MORE}"),
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


def kernel_totals(spec: JobSpec, status: Status) -> dict[str, tuple[int, float]]:
    """Tasks done by each kernel, and seconds in it; where it makes several arrays, for each of these."""
    made: dict[tuple[str, str], tuple[int, float]] = {}
    for number, (tasks, seconds) in sorted(status.kinds.items()):
        statement = spec.program.statements[number]
        arrays = ", ".join(dict.fromkeys(access.array for access in statement.writes))
        before, spent = made.get((statement.kernel, arrays), (0, 0.0))
        made[statement.kernel, arrays] = before + tasks, spent + seconds
    kernels = [kernel for kernel, _ in made]
    return {
        kernel if kernels.count(kernel) == 1 else f"{kernel} (makes {arrays})": totals
        for (kernel, arrays), totals in made.items()
    }


def kernel_rows(spec: JobSpec, status: Status) -> list[list[str]]:
    """A row for each of them."""
    return [
        [name, f"{tasks:,}", f"{seconds:.2f}", f"{1000 * seconds / max(tasks, 1):.2f}"]
        for name, (tasks, seconds) in kernel_totals(spec, status).items()
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


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = "<tr>" + "".join(f"<th>{each}</th>" for each in heads) + "</tr>" if heads else ""
    body = "\n".join("<tr>" + "".join(f"<td>{each}</td>" for each in row) + "</tr>" for row in rows)
    return f"<table>{head}{body}</table>"
