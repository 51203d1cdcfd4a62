"""What an engine is: it runs a bound program on given inputs and returns its outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from numpy.typing import DTypeLike, NDArray

from linnet.errors import InputError
from linnet.events import Sink
from linnet.planning.cluster import Cluster
from linnet.programs import BoundProgram, In, Out
from linnet.programs.outputs import Outputs
from linnet.tiles import TiledArray, TileKey

if TYPE_CHECKING:
    from linnet.planning.plan import Plan


class Engine(Protocol):
    """Runs bound programs, until it is closed."""

    memory: int | None
    """Bytes that tiles may take; None: it knows no limit."""

    shares_memory: bool
    """Whether its workers have this process's memory, so that no tile is sent or stored to be read."""

    @property
    def workers(self) -> int:
        """How many tasks run side by side, in all places together."""
        ...

    @property
    def deterministic(self) -> bool:
        """Whether results have the same bits however many workers there are."""
        ...

    @property
    def cluster(self) -> Cluster | None:
        """The nodes that programs are planned for; None: they run in one place."""
        ...

    def run(
        self,
        bound: BoundProgram,
        inputs: Mapping[str, TiledArray],
        *,
        out: Mapping[str, TiledArray] | None = None,
        events: Sink | None = None,
    ) -> Outputs:
        """Run every task of the program.

        `inputs` holds a `TiledArray` for every `In` array of the program; none of them is
        changed. `out` may hold arrays to put results into: tiles that are written go into its
        tiles, views of one array perhaps, and tiles that are not are left as they are. What
        happens on the way is sent to `events`.
        """
        ...

    def plan(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Plan | None:
        """The plan that a run would follow, of which only the cuts of inputs matter; None: it makes none."""
        ...

    def zeros(self, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
        """An array for `out`, in memory, or in a file where memory has a limit it would exceed."""
        ...

    def close(self) -> None:
        """Shut down what the engine started itself, a cluster perhaps; a second call does nothing.

        What somebody else started goes on. A closed engine runs nothing any more, and tiles that it kept
        outside this process are gone: who asks for either gets an `EngineClosedError`.
        """
        ...


def check_inputs(bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
    """Refuse inputs that are missing, unknown, or not cut into tiles."""
    program = bound.program
    expected = [name for name, role in program.arrays.items() if isinstance(role, In)]
    missing = [name for name in expected if name not in inputs]
    unknown = [name for name in inputs if name not in expected]
    if missing or unknown:
        raise InputError(
            f"{program.name} takes the arrays {', '.join(expected) or 'none'}; "
            + "; ".join(
                f"{label} {', '.join(names)}"
                for label, names in (("missing:", missing), ("not known:", unknown))
                if names
            )
        )
    for name, array in inputs.items():
        _check_tiled(name, array)


def check_out(bound: BoundProgram, out: Mapping[str, TiledArray]) -> None:
    """Refuse places for results that the program does not have, or that cannot be written to."""
    program = bound.program
    for name, array in out.items():
        if not isinstance(program.arrays.get(name), Out):
            known = [each for each, role in program.arrays.items() if isinstance(role, Out)]
            raise InputError(f"{program.name} has no Out array {name!r}; it has {', '.join(known) or 'none'}")
        _check_tiled(name, array)
        locked = [index for index, tile in array.tiles.items() if not tile.flags.writeable]
        if locked:
            raise InputError(
                f"{TileKey(name, locked[0])} was given as a place for a result, but is read-only; "
                "cut the array with TiledArray.over"
            )


def _check_tiled(name: str, array: object) -> None:
    if not isinstance(array, TiledArray):
        raise InputError(
            f"{name} is a {type(array).__name__}; cut it into tiles first, "
            f"with TiledArray.from_numpy({name}, tile=...)"
        )
