"""`linnet top ADDRESS`: a job as it runs: tasks, kernels, workers."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    import rich.console

    from linnet.workers.job_parts import Parts
    from linnet.workers.ledger import Status, WorkerInfo
    from linnet.workers.queue import QueueSize
    from linnet.workers.spec import JobSpec

_SILENCE = 5.0
"""Seconds after which a worker that is not heard of counts as lost."""
_SHOWN = 20
"""Workers that are shown one by one, the busiest first."""


@dataclass(frozen=True, slots=True)
class Look:
    """A job at one moment."""

    spec: JobSpec
    status: Status
    size: QueueSize
    workers: Sequence[WorkerInfo]

    @property
    def alive(self) -> int:
        """Workers that were heard of lately."""
        return sum(self.condition(each) == "at work" for each in self.workers)

    @property
    def headline(self) -> str:
        """All of it in one line."""
        status, seconds = self.status, self.status.seconds
        rate = status.done / seconds if seconds else 0.0
        return (
            f"{self.spec.program.name}: {status.state}, {status.done:,} of {status.total:,} tasks, "
            f"{self.size.ready:,} ready, {self.size.leased:,} under way, {self.alive} workers, "
            f"{seconds:.1f} s, {rate:,.1f} tasks/s"
        )

    @property
    def remarks(self) -> list[str]:
        """Why it ended, and which tasks take far too long."""
        from linnet.workers.report import slow_tasks

        alive = [each for each in self.workers if self.condition(each) == "at work"]
        slow = [f"task {name} is in its kernel for {s:.0f} s" for name, s in slow_tasks(alive).items()]
        return [f"reason: {self.status.reason}", *slow] if self.status.reason else slow

    def condition(self, worker: WorkerInfo) -> str:
        """What is known of a worker."""
        if worker.left:
            return "died" if worker.died else "left"
        silent = self.status.now - worker.beat
        return "at work" if silent <= _SILENCE else f"silent for {silent:.0f} s"

    def tables(self) -> list[tuple[Sequence[str], list[list[str]]]]:
        """Kernels and workers: the heads of their columns, and the rows."""
        from linnet.workers.report import KERNELS, WORKERS, kernel_rows

        return [(KERNELS, kernel_rows(self.spec, self.status)), ((*WORKERS, "is"), self.busiest())]

    def data(self) -> dict[str, object]:
        """For scripts."""
        status = self.status
        return {
            "program": self.spec.program.name, "state": status.state, "done": status.done,
            "total": status.total, "ready": self.size.ready,
            "under_way": self.size.leased, "workers": self.alive,
            "seconds": status.seconds, "reason": status.reason,
        }  # fmt: skip

    def busiest(self) -> list[list[str]]:
        """Of the workers at work, then of others: what they counted, and their condition."""
        from linnet.workers.report import worker_row

        ranked = sorted(self.workers, key=lambda each: (each.left, -each.facts.get("tasks", 0)))
        return [[*worker_row(worker), self.condition(worker)] for worker in ranked[:_SHOWN]]


def top(
    address: Annotated[str, typer.Argument(help="Address of the job, as `job.address` tells it.")],
    every: Annotated[float, typer.Option(min=0.1, help="Seconds between looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Look once, and exit.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Look once, and print JSON.")] = False,
) -> None:
    """Watch a job until it ends: live on a terminal, a line for each change elsewhere."""
    from linnet.workers.failures import ended_with
    from linnet.workers.job_parts import reopened
    from linnet.workers.timeouts import ANSWER, within

    with within(ANSWER):
        parts, spec = reopened(address)
    try:
        if as_json:
            typer.echo(json.dumps(look(parts, spec).data()))
            return
        if once:
            _print_all(look(parts, spec))
            return
        last = _live(parts, spec, every) if sys.stdout.isatty() else _lines(parts, spec, every)
    finally:
        parts.close()
    if last.status.state != "finished":
        raise ended_with(last.status, spec)


def look(parts: Parts, spec: JobSpec) -> Look:
    """How a job stands now."""
    from linnet.workers.timeouts import ANSWER, within

    with within(ANSWER):
        return Look(spec, parts.ledger.status(), parts.queue.size(), parts.ledger.workers())


def _lines(parts: Parts, spec: JobSpec, every: float) -> Look:
    told = -1
    while True:
        seen = look(parts, spec)
        if seen.status.done != told or seen.status.state != "running":
            told = seen.status.done
            typer.echo(seen.headline)
        if seen.status.state != "running":
            return seen
        time.sleep(every)


def _live(parts: Parts, spec: JobSpec, every: float) -> Look:
    from rich.live import Live

    seen = look(parts, spec)
    with Live(drawn(seen), auto_refresh=False) as view:
        while seen.status.state == "running":
            time.sleep(every)
            seen = look(parts, spec)
            view.update(drawn(seen), refresh=True)
    return seen


def drawn(seen: Look) -> rich.console.Group:
    """A look as a bar and two tables."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    tables: list[Table] = []
    for heads, rows in seen.tables():
        table = Table(box=None, padding=(0, 2, 0, 0))
        for place, head in enumerate(heads):
            table.add_column(head, justify="right" if 0 < place < 4 else "left")
        for row in rows:
            table.add_row(*map(Text, row))
        tables.append(table)
    bar = ProgressBar(total=max(seen.status.total, 1), completed=seen.status.done)
    remarks = [Text(remark) for remark in seen.remarks]
    return Group(Text(seen.headline), *remarks, bar, Text(), tables[0], Text(), tables[1])


def _print_all(seen: Look) -> None:
    typer.echo(seen.headline)
    for remark in seen.remarks:
        typer.echo(remark)
    for heads, rows in seen.tables():
        if rows:
            widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
            typer.echo("")
            for row in (heads, *rows):
                cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
                typer.echo("  ".join(cells).rstrip())
