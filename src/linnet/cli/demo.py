"""`linnet demo`: the main job, end to end, on workers most of which are killed on the way."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from linnet.workers.client import Job
    from linnet.workers.launchers.processes import Processes
    from linnet.workers.report import Mark

_KILL_AT = (0.25, 0.4, 0.55)
"""Shares of the work after which workers are killed."""


def demo(
    size: Annotated[
        int | None,
        typer.Option(min=1, help="How many points; by default what this machine does in seconds."),
    ] = None,
    tile: Annotated[int | None, typer.Option(min=1, help="Rows of a tile.")] = None,
    workers: Annotated[int | None, typer.Option(min=1, help="Processes; by default two per core.")] = None,
    kill: Annotated[bool, typer.Option(help="Kill most of the workers, three times.")] = True,
    report: Annotated[Path | None, typer.Option(help="Where to write the report.")] = None,
) -> None:
    """Fit a Gaussian process on stateless workers, kill most of them on the way, and verify the result."""
    from linnet.cli import kriging, machine, sizing
    from linnet.engines import available_cores
    from linnet.tiles import human
    from linnet.workers.client import submit
    from linnet.workers.launcher import Limits
    from linnet.workers.launchers.processes import Processes
    from linnet.workers.spec import Options

    count = workers or 2 * available_cores()
    free = machine.free_memory()
    chosen = sizing.choose(size, tile, available_cores(), free)
    bound = kriging.weights.bind(N=chosen.tiles)
    given = kriging.inputs(chosen.size, chosen.tile)
    _line("machine", f"{available_cores()} cores, {human(free)} of memory free")
    _line(
        "problem",
        f"{chosen.size:,} points: factorise their {chosen.size:,}×{chosen.size:,} covariance, and solve",
    )
    _line("program", f"{bound!r}: {bound.count():,} tasks, {len(bound.program.to_bytes()):,} bytes")
    launcher = Processes()
    with tempfile.TemporaryDirectory(prefix="linnet-demo-") as folder:
        job = submit(
            bound,
            given,
            store=folder,
            workers=count,
            launcher=launcher,
            limits=Limits(timeout=5, cache=free // 4),
            options=Options(lease=3.0, grace=3.0),
        )
        with job:
            _line("job", f"{count} worker processes; watch with: linnet top '{job.address}'")
            try:
                marks = _watched(job, launcher, kill)
            except KeyboardInterrupt:
                job.cancel()
                raise
            seconds = job.progress().seconds
            rate = chosen.size**3 / 3 / seconds / 1e9
            _line(
                "finished", f"in {seconds:.2f} s ({rate:.1f} GFLOP/s), {len(marks)} times most workers killed"
            )
            residual, limit = kriging.residual(given, job.result()["W"])
            _line("verified", f"|Aw - z| / (|A||w| + |z|) = {residual:.1e}, must be below {limit:.1e}")
            path = report or Path("linnet-demo.html")
            notes = [("verified", f"residual {residual:.1e}, must be below {limit:.1e}")]
            job.report(path, marks, notes)
            _line("report", str(path.absolute()))
            job.delete()
    if not residual < limit:
        typer.echo("linnet: error: the result is wrong", err=True)
        raise typer.Exit(1)


def _watched(job: Job, launcher: Processes, kill: bool) -> list[Mark]:
    """Show progress, and kill most workers when some of the work is done; returns when that was."""
    marks: list[Mark] = []
    due = list(_KILL_AT) if kill else []
    with _shown() as show:
        while not job.done(0.1):
            progress = job.progress()
            show(progress)
            if due and progress.done > due[0] * progress.total:
                due.pop(0)
                victims = launcher.pids[:-1]
                for pid in victims:
                    os.kill(pid, signal.SIGKILL)
                marks.append(job.mark(f"{len(victims)} killed"))
                show(progress, f"{len(victims)} workers killed")
    job.wait()
    return marks


class _shown:
    """A bar on a terminal, lines anywhere else."""

    def __init__(self) -> None:
        self._bar: Any = None
        self._task: Any = None

    def __enter__(self) -> _shown:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

            columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
            self._bar = Progress(*columns, console=Console(stderr=True), transient=True)
            self._task = self._bar.add_task("starting", total=None)
            self._bar.start()
        return self

    def __call__(self, progress: Any, said: str = "") -> None:
        if self._bar is not None:
            text = f"{progress.done:,} of {progress.total:,} tasks, {progress.workers} workers"
            self._bar.update(self._task, completed=progress.done, total=progress.total, description=text)
            if said:
                self._bar.console.print(f"            {said}")
        elif said:
            typer.echo(f"            {said} after {progress.done:,} of {progress.total:,} tasks", err=True)

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()


def _line(label: str, text: str) -> None:
    typer.echo(f"{label:<11} {text}")
