"""`linnet run script.py`: a script with progress and a report; under `mpiexec`, on all ranks."""

from __future__ import annotations

import os
import runpy
import subprocess
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from linnet.events.watching import sink_of_run

if TYPE_CHECKING:
    from linnet.engines import Engine, Outputs
    from linnet.programs import BoundProgram
    from linnet.tiles import TiledArray

_RANKS = {"PMI_RANK": "PMI_SIZE", "OMPI_COMM_WORLD_RANK": "OMPI_COMM_WORLD_SIZE", "PMIX_RANK": "PMIX_SIZE"}
"""Variables in which `mpiexec` tells a process its number, and how many there are."""


def run(
    script: Annotated[Path, typer.Argument(help="The script.", exists=True, dir_okay=False)],
    arguments: Annotated[list[str] | None, typer.Argument(help="What the script is given.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="What runs programs; by default mpi under mpiexec, else threads.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Tasks side by side; on MPI, those of each rank.")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Memory for tiles, such as '2 GB'.")] = None,
    checkpoint: Annotated[
        Path | None, typer.Option(help="On MPI: a folder from which a job that was killed goes on.")
    ] = None,
    progress: Annotated[bool, typer.Option(help="Show what runs, and how far it is.")] = True,
    report: Annotated[Path | None, typer.Option(help="Where to write a page about the run.")] = None,
) -> None:
    """Run a script, with progress and a report; under mpiexec, on all its ranks."""
    from linnet.errors import InputError
    from linnet.session import init, make_engine

    rank = _rank()
    sys.argv = [str(script), *(arguments or [])]
    sys.path.insert(0, str(script.resolve().parent))
    with ExitStack() as stack:
        if rank == 0:
            stack.enter_context(_last_words(checkpoint))
        name = engine or ("threads" if rank is None else "mpi")
        if rank is not None and name != "mpi":
            raise InputError(f"--engine {name} under mpiexec: every rank would run the script; use mpi")
        chosen: Any = make_engine(name, workers=workers, memory=memory, checkpoint=checkpoint)
        stack.enter_context(_watched(progress, report, str(script)))
        stack.callback(chosen.close)
        watched: Any = Watched(chosen)
        stack.callback(init(watched).close)  # for all threads of the script
        run_to_its_end(script)
        if checkpoint is not None:
            chosen.forget()


def run_to_its_end(script: Path) -> None:
    """Run a script; what it raises is shown as Python would, and ends the command."""
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        if end.code:
            raise
    except Exception as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != str(script):
            trace = trace.tb_next
        traceback.print_exception(error.with_traceback(trace))
        raise typer.Exit(1) from None


def _rank() -> int | None:
    """The number of this process among those that `mpiexec` has started; None if it was not it."""
    for rank, size in _RANKS.items():
        if rank in os.environ and int(os.environ.get(size, "2")) > 1:
            return int(os.environ[rank])
    return None


@contextmanager
def _last_words(checkpoint: Path | None) -> Iterator[None]:
    """Let somebody say what to do when this process is killed.

    When a rank dies, `mpiexec` kills the others, and none of them can say anything. A shell that waits for
    them to end can.
    """
    advice = "with --checkpoint FOLDER it would go on from what was written down before"
    if checkpoint is not None:
        advice = f"it goes on from what was written down in {checkpoint}"
    words = (
        "linnet: the job was killed: one of its ranks died (mpiexec says which, and how), or somebody ended "
        f"it. Start it again with the same command; {advice}."
    )
    told = ["/bin/sh", "-c", 'read end; [ "$end" = end ] || printf "%s\\n" "$0" >&2', words]
    if not os.path.exists(told[0]):
        yield
        return
    shell = subprocess.Popen(told, stdin=subprocess.PIPE, start_new_session=True)
    assert shell.stdin is not None
    try:
        yield
    finally:
        shell.communicate(b"end\n")


@contextmanager
def _watched(progress: bool, report: Path | None, title: str) -> Iterator[None]:
    """Runs are shown, and a page about them is written in the end."""
    from linnet.events.showing import progress as shown
    from linnet.session.reporting import recording

    with ExitStack() as stack:
        stack.enter_context(shown(progress))
        if report is not None:
            stack.enter_context(recording(report, title))
        yield


class Watched:
    """An engine whose runs are watched, also those that a script starts by the engine's own `run`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def run(self, bound: BoundProgram, inputs: Mapping[str, TiledArray], **options: Any) -> Outputs:
        """As the engine does it."""
        if options.get("events") is None:
            options["events"] = sink_of_run(None, self._engine, tasks=True)
        return self._engine.run(bound, inputs, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __repr__(self) -> str:
        return repr(self._engine)
