"""What a plan needs at once: the tiles of each task, counted before anything runs."""

from __future__ import annotations

from collections.abc import Mapping

from linnet.engines.mapped_tiles import Scratch
from linnet.errors import BudgetError, InputError
from linnet.kernels import get as get_kernel
from linnet.programs import BoundProgram, Call, Task
from linnet.programs.shapes import Description, Shapes, declared, operands
from linnet.records import record
from linnet.tiles import TiledArray, TileKey, human


@record
class Budget:
    """Memory for the tiles of a run, and room on disk for those that do not fit."""

    bytes: int
    """Of tiles in memory at once."""
    scratch: Scratch
    """Where the others go."""
    results: Scratch
    """Where results go that have no place of their own: they outlive the run."""

    @property
    def small(self) -> int:
        """Bytes of results that may stay in memory, uncounted, when the run is over."""
        return self.bytes // 16

    def needs(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> Needs:
        """What each task needs; an error if one needs more than there is."""
        made = Needs(bound, inputs)
        made.check(self.bytes)
        return made


class Needs:
    """Bytes of tiles, from the inputs and from what kernels declare of their results."""

    def __init__(self, bound: BoundProgram, inputs: Mapping[str, TiledArray]) -> None:
        self._bound = bound
        self._inputs = inputs
        self._known: dict[TileKey, Description | None] = {}
        self._shapes = Shapes(bound, inputs)
        self._fills: dict[TileKey, Description | None] = {}
        """Tiles that nobody writes, made for whoever reads them."""

    @property
    def tiles(self) -> int:
        """How many tiles tasks write, as far as they are known."""
        return len(self._known)

    def check(self, budget: int) -> None:
        """Refuse a plan with a task whose operands and results alone exceed the budget.

        A result of a kernel that declares no shape is not counted here; whether such a task
        fits is seen when it runs.
        """
        for task in self._bound.tasks():
            call = self._bound.call(task)
            self._declare(call)
            needed = self.task_bytes(call)
            if needed > budget:
                raise self.refusal(task, call, needed, budget)

    def task_bytes(self, call: Call) -> int:
        """Bytes that one call needs, as far as they are known."""
        tiles = {*operands(call.args), *operands(call.outputs)}
        return sum(self.bytes(key) or 0 for key in tiles) + self.scratch(call)

    def scratch(self, call: Call) -> int:
        """Bytes that the kernel of a call needs while it runs, besides operands and results."""
        share = get_kernel(call.kernel).scratch
        return int(share * sum(self.bytes(key) or 0 for key in set(operands(call.args)))) if share else 0

    def bytes(self, key: TileKey) -> int | None:
        """Bytes of one tile, or None if nothing tells."""
        known = self._describe(key)
        return None if known is None else known.nbytes

    def refusal(self, task: Task, call: Call, needed: int, budget: int) -> BudgetError:
        """The error for a task that needs more than there is."""
        tiles = len({*operands(call.args), *operands(call.outputs)})
        return BudgetError(
            f"one task needs {human(needed)} in {tiles} tiles at once, and the budget is {human(budget)}; "
            f"give memory={human(needed)!r} or more, or cut into smaller tiles\n"
            f"  in {self._bound.where(task)}"
        )

    def _describe(self, key: TileKey) -> Description | None:
        if key.array in self._inputs:
            array = self._inputs[key.array]
            if key.index in array.layout:
                return Description(array.layout.tile_shape(key.index), array.dtype)
            return None
        if key not in self._known and self._shapes.is_filled(key):
            return self._filled(key)
        return self._known.get(key)

    def _filled(self, key: TileKey) -> Description | None:
        if key not in self._fills:
            try:
                self._fills[key] = self._shapes.describe(key)
            except InputError:  # a kernel beside it declares no shape: said when a task reads the tile
                self._fills[key] = None
        return self._fills[key]

    def _declare(self, call: Call) -> None:
        described: dict[TileKey, Description] = {}
        for key in operands(call.args):
            known = self._describe(key)
            if known is None:
                return
            described[key] = known
        self._known.update(declared(call, described) or {})
