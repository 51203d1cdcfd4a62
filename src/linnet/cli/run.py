"""`linnet run script.py`: a script with progress and a report; under `mpiexec`, on all ranks."""

from __future__ import annotations

import os
import runpy
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from numpy.typing import DTypeLike, NDArray

    from linnet.engines import Engine, Outputs
    from linnet.events import Events, Sink
    from linnet.programs import BoundProgram
    from linnet.tiles import TiledArray

_SIZES = ("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "PMIX_SIZE", "MPI_LOCALNRANKS")
"""Variables that tell how many processes `mpiexec` has started."""


def run(
    script: Annotated[Path, typer.Argument(help="The script.", exists=True, dir_okay=False)],
    arguments: Annotated[list[str] | None, typer.Argument(help="What the script is given.")] = None,
    engine: Annotated[
        str | None, typer.Option(help="What runs programs; by default mpi under mpiexec, else threads.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Tasks side by side; on MPI, of each rank.")
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Memory for tiles, such as '2 GB'.")] = None,
    progress: Annotated[bool, typer.Option(help="Show what runs, and how far it is.")] = True,
    report: Annotated[Path | None, typer.Option(help="Where to write a page about the run.")] = None,
) -> None:
    """Run a script, with progress and a report; under mpiexec, on all its ranks."""
    from linnet.session import init, make_engine

    _as_main(script, arguments or [])
    name = engine or ("mpi" if _under_mpiexec() else "threads")
    made = make_engine(name, workers=workers, memory=memory)
    with ExitStack() as stack:
        events = stack.enter_context(_watched(progress, report))
        stack.enter_context(init(Watched(made, events)))
        runpy.run_path(str(script), run_name="__main__")


def _as_main(script: Path, arguments: list[str]) -> None:
    """What a script finds when Python runs it: its arguments, and its folder first among those of modules."""
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))


def _under_mpiexec() -> bool:
    return any(os.environ.get(name, "1") != "1" for name in _SIZES)


@contextmanager
def _watched(progress: bool, report: Path | None) -> Iterator[Events]:
    """Events that are shown, and of which a page is written in the end."""
    from linnet.events import Events, show_progress

    events = Events()
    with ExitStack() as stack:
        if progress:
            stack.enter_context(show_progress(events))
        yield events


class Watched:
    """An engine whose runs are watched, unless whoever starts one watches it."""

    def __init__(self, engine: Engine, events: Events) -> None:
        self._engine, self._events = engine, events
        self.memory = engine.memory
        """Bytes that tiles may take."""

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """As the engine does it."""
        return self._engine.run(bound, inputs, out=out, events=events or self._events)

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`."""
        return self._engine.zeros(shape, dtype)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def __repr__(self) -> str:
        return repr(self._engine)
