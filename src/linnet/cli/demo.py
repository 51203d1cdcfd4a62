"""`linnet demo`: the main job, end to end, on workers most of which are killed on the way."""

from __future__ import annotations

import os
import signal
import tempfile
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
import typer

from linnet.events import Event, Events, Progress, show_progress

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
    from linnet.engines.stateless import follow
    from linnet.tiles import human
    from linnet.workers.client import submit
    from linnet.workers.launcher import Limits
    from linnet.workers.launchers.processes import Processes
    from linnet.workers.spec import Options

    count = workers or 2 * available_cores()
    free = machine.free_memory()
    chosen = sizing.choose(size, tile, available_cores(), free)
    bound = kriging.weights.bind(N=chosen.tiles)
    inputs = kriging.inputs(chosen.size, chosen.tile)
    _say(
        "Linnet runs array programs on computers that come and go. This demonstration fits a Gaussian "
        "process to points of a map, as one does for ore, rain or noise. Processes of this machine play "
        "servers, and most of them are killed on the way."
    )
    _line("machine", f"{available_cores()} cores, {human(free)} of memory free")
    _line(
        "problem",
        f"{chosen.size:,} points: factorise their {chosen.size:,}×{chosen.size:,} covariance, and solve",
    )
    _line("program", f"{bound!r}: {bound.count():,} tasks, {len(bound.program.to_bytes()):,} bytes")
    limits, options = (
        Limits(timeout=5, cache=free // 4),
        Options(lease=3.0, grace=3.0, events=("TaskFinished",)),
    )
    with tempfile.TemporaryDirectory(prefix="linnet-demo-") as folder:
        launcher = Processes()
        job = submit(
            bound, inputs, store=folder, workers=count, launcher=launcher, limits=limits, options=options
        )
        with job:
            _line("job", f"{count} worker processes; watch with: linnet top '{job.address}'")
            killer, events = _Killer(job, launcher), Events()
            if kill:
                events.subscribe(killer, Progress)
            with show_progress(events):
                follow(job, events, count)
            seconds = job.progress().seconds
            rate = chosen.size**3 / 3 / seconds / 1e9
            words = f"{len(killer.marks)} times most workers killed, {killer.killed} in all"
            _line("finished", f"in {seconds:.2f} s ({rate:.1f} GFLOP/s), {words}")
            weights = job.result()["W"]
            residual, limit = kriging.residual(inputs, weights)
            _line("verified", f"|Aw - z| / (|A||w| + |z|) = {residual:.1e}, must be below {limit:.1e}")
            notes = [("verified", f"residual {residual:.1e}, must be below {limit:.1e}")]
            same = True
            if kill and killer.killed:
                undisturbed = submit(
                    bound, inputs, store=folder, workers=count, launcher=Processes(), limits=limits,
                    options=options,
                )  # fmt: skip
                with undisturbed:
                    undisturbed.wait()
                    calm = undisturbed.progress().seconds
                    same = np.array_equal(undisturbed.result()["W"].to_numpy(), weights.to_numpy())
                    undisturbed.delete()
                text = f"a run that nobody disturbed took {calm:.2f} s and gave " + (
                    "the same bits" if same else "OTHER BITS"
                )
                _line("again", text)
                notes.append(("again", text))
            text = _bill(count)
            _line("cost", text)
            path = report or Path("linnet-demo.html")
            job.report(path, killer.marks, [*notes, ("cost", text)])
            _line("report", f"{path.absolute()} (open it in a browser)")
            job.delete()
    if not residual < limit or not same:
        typer.echo("linnet: error: the result is wrong", err=True)
        raise typer.Exit(1)
    _say(
        "Next: (1) docs/quickstart.md, ten minutes with arrays larger than memory; (2) python "
        "examples/factor_and_solve.py; (3) linnet dashboard, and ln.init(dashboard=True) in a script."
    )


def _bill(servers: int) -> str:
    """What an hour of such servers costs, from the prices in the package."""
    from linnet.fleet.prices import Catalogue

    both = Catalogue.shipped().find("p2.xlarge", "us-east-1")
    spot, full = servers * (both.spot or 0.0), servers * (both.on_demand or 0.0)
    return (
        f"an hour of {servers} servers {both.type} ({both.zone}, 2020) is {spot:.2f} dollars as spot "
        f"servers, which may be taken away like these, and {full:.2f} on demand"
    )


class _Killer:
    """Kills most workers of a launcher when some of the work is done; a listener."""

    def __init__(self, job: Job, launcher: Processes) -> None:
        self._job, self._launcher = job, launcher
        self._due = list(_KILL_AT)
        self.marks: list[Mark] = []
        """When that was."""
        self.killed = 0
        """How many workers."""

    def __call__(self, event: Event) -> None:
        assert isinstance(event, Progress)
        victims = self._launcher.pids[:-1]
        if not victims or not self._due or event.done <= self._due[0] * event.tasks:
            return
        self._due.pop(0)
        for pid in victims:
            os.kill(pid, signal.SIGKILL)
        self.killed += len(victims)
        self.marks.append(self._job.mark(f"{len(victims)} killed"))
        typer.echo(f"            {len(victims)} workers killed after {event.done:,} tasks", err=True)


def _say(text: str) -> None:
    """A paragraph."""
    typer.echo("\n" + textwrap.fill(text, 100) + "\n")


def _line(label: str, text: str) -> None:
    typer.echo(f"{label:<11} {text}")
