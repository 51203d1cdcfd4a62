"""Loops over time in which cells of matrices are made of cells around them: several sweeps at once.

`B[i, j] = (A[i - 1, j] + A[i + 1, j]) / 2` and back again, a hundred times, would go through memory two
hundred times. A tile of some rows with as many more above and below as sweeps are done can do several by
itself (`kernels/arrays/sweeps.py`). What a cell is made of is found as for recurrences (`waving.py`): by
evaluating statements once on arrays that stand for cells.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.builders import blocks, part, recut
from linnet.arrays.expression.nodes import At, Entry, Node, Operand, Piece, Source, Spans
from linnet.kernels.arrays.sweeps import Statement as Assigned
from linnet.loopnests.dependences import plain_index
from linnet.loopnests.language import Index, Load, walk
from linnet.loopnests.monoids import MONOIDS
from linnet.loopnests.ordering import AtOnce, StepByStep
from linnet.loopnests.places import Prepared, place
from linnet.loopnests.running import Machine, Step
from linnet.loopnests.statements import Statement
from linnet.loopnests.storing import checked_store, combined
from linnet.loopnests.vectors import DividedByZero, Vector, cast
from linnet.loopnests.waving import NotAWave, Steps, check_expression
from linnet.loopnests.whole_numbers import Overflow
from linnet.sparse_arrays.array import SparseArray
from linnet.tiles import Layout
from linnet.tiles.layout import regular

CACHE = 1 << 22
"""Bytes of a tile with the rows around it, of all matrices that are written."""
MOST = 16
"""Sweeps that a tile does by itself, at most."""
_LONG = 10**8
"""The length of what stands for cells: nobody computes it, and nothing of it is in memory."""


def swept(machine: Machine, part: StepByStep) -> bool:
    """Run a loop as sweeps over matrices; False if it is something else."""
    try:
        found = _Sweep(machine, part)
        statements = [found.noted(each) for each in found.statements]
    except (NotAWave, Overflow, DividedByZero):
        return False
    found.store(statements)
    return True


@dataclass(slots=True)
class _Known:
    """What stands for the cells that one statement reads."""

    known: dict[int, tuple[Any, ...]]
    inputs: dict[Any, Any]
    reads: dict[tuple[str, int, int], Vector]


class _Sweep:
    """The loop while it is looked at."""

    def __init__(self, machine: Machine, part: StepByStep) -> None:
        self.machine = machine
        self.count = len(machine.steps_of(part.axis))
        self.statements: list[Statement] = []
        for each in part.body:
            if not isinstance(each, AtOnce):
                raise NotAWave
            self.statements.append(each.statement)
        for each in self.statements:
            self._check(each, part.axis.name)
        written = dict.fromkeys(each.target.array for each in self.statements)
        read = dict.fromkeys(load.array for each in self.statements for load in each.reads)
        self.arrays: list[str] = list(dict.fromkeys([*written, *read]))
        self.states: int = len(written)
        shapes = {tuple(machine.arrays[key].shape) for key in self.arrays}
        if len(shapes) > 1 or self.count < 2:
            raise NotAWave
        (self.shape,) = shapes

    def _check(self, each: Statement, time: str) -> None:
        machine = self.machine
        if each.second is not None or each.guards or len(each.axes) != 3:
            raise NotAWave
        if each.monoid is not None:
            known = each.monoid in MONOIDS and MONOIDS[each.monoid].combine is None
            if not known or machine.arrays[each.target.array].dtype.kind == "u":  # -1 is no unsigned number
                raise NotAWave
        if each.axes[0].name != time or any(axis.step != 1 for axis in each.axes):
            raise NotAWave
        bounds = [one for axis in each.axes[1:] for one in (*axis.at_least, *axis.at_most, axis.start)]
        if any(one.terms for one in bounds):
            raise NotAWave
        for load in (each.target, *each.reads):
            if load.array in machine.nest.scalars or isinstance(machine.arrays[load.array], SparseArray):
                raise NotAWave
            self._offsets(each, load)
        inside = {id(one) for load in each.reads for index in load.indices for one in walk(index)}
        for node in walk(each.value):
            check_expression(machine, node)
            if isinstance(node, Index) and id(node) not in inside:
                raise NotAWave

    def _offsets(self, each: Statement, load: Load) -> tuple[int, int]:
        found = [plain_index(index) for index in load.indices]
        if [one and one[0] for one in found] != [axis.name for axis in each.axes[1:]]:
            raise NotAWave
        down, right = (one[1] for one in found if one is not None)
        return down, right

    def noted(self, each: Statement) -> tuple[Any, ...]:
        """A statement as the kernel reads it."""
        machine = self.machine
        prepared = Prepared(each)
        where = place(prepared, {each.axes[0].name: machine.steps_of(each.axes[0])[0]})
        if where is None or where.mask() is not None or prepared.tests or prepared.values:
            raise NotAWave
        target = self._offsets(each, each.target)
        cells = _Known({}, {}, {})

        step = _SweepStep(machine, each, prepared, where, whole=self, cells=cells)
        value = step.evaluate(each.value)
        if each.monoid is not None:
            value = combined(step, MONOIDS[each.monoid], step.load(each.target), value)
        dtype = machine.arrays[each.target.array].dtype
        checked_store(step, value, value.dtype, dtype)
        value = cast(value, dtype)
        steps = Steps(cells, [value])
        result = steps.number(value)
        down, across = (where.ranges[axis.name] for axis in each.axes[1:])
        box = (
            down[0] + target[0],
            across[0] + target[1],
            down[-1] + 1 + target[0],
            across[-1] + 1 + target[1],
        )
        reads = tuple((self.arrays.index(key), down, right) for key, down, right in cells.reads)
        return tuple(
            Assigned(
                self.arrays.index(each.target.array),
                box,
                reads,
                tuple(steps.constants),
                tuple(steps.steps),
                result,
            )
        )

    def read(self, step: _SweepStep, cell: Load) -> Vector:
        """A cell that a statement reads."""
        target = self._offsets(step.statement, step.statement.target)
        down, right = self._offsets(step.statement, cell)
        key, cells = (cell.array, down - target[0], right - target[1]), step.cells
        if key not in cells.reads:
            nothing = np.broadcast_to(np.zeros((), self.machine.arrays[cell.array].dtype), (_LONG,))
            node = Source(nothing, Layout(((0, _LONG),)))
            cells.known[id(node)] = ("read", *key, node)
            cells.reads[key] = Vector(wrap(node), ("d",))
        return cells.reads[key]

    # ---- the expression

    def store(self, statements: list[tuple[Any, ...]]) -> None:
        """Put what the sweeps make into the arrays."""
        machine, (rows, columns) = self.machine, self.shape
        dtypes = [machine.arrays[key].dtype for key in self.arrays]
        around = [Assigned(*each).around for each in statements]
        up, down = sum(each[0] for each in around), sum(each[1] for each in around)
        room = max(16, CACHE // max(1, columns * sum(each.itemsize for each in dtypes[: self.states])))
        at_once = min(self.count, MOST, max(1, room // (8 * max(1, up, down))))
        most = at_once * max(up, down)
        cuts = regular(rows, max(1, most, room - 2 * most))
        layout = Layout((cuts, (0, columns)))
        nodes = [recut(wrap(machine.arrays[key].__node__).__node__, layout) for key in self.arrays]
        left = self.count
        while left:
            times = min(left, at_once)
            nodes[: self.states] = self._block(nodes, statements, times, times * up, times * down, layout)
            left -= times
        for key, node in zip(self.arrays[: self.states], nodes, strict=False):
            machine.arrays[key] = wrap(node)

    def _block(
        self,
        nodes: list[Node],
        statements: list[tuple[Any, ...]],
        times: int,
        up: int,
        down: int,
        layout: Layout,
    ) -> list[Node]:
        """The matrices that are written, after some sweeps."""
        cuts = np.asarray(layout.boundaries[0])
        rows, columns = self.shape
        first, last = cuts[:-1], cuts[1:]
        low = np.searchsorted(cuts, np.maximum(first - up, 0), "right") - 1
        high = np.searchsorted(cuts, np.minimum(last + down, rows), "left")
        access = (Spans(0, tuple(low.tolist()), tuple(high.tolist())), At(0))
        operands = tuple(Operand(number, access) for number in range(len(nodes)))
        numbers = (
            Entry(0, tuple(cuts[low].tolist())), rows, Entry(0, tuple(first.tolist())),
            Entry(0, tuple(last.tolist())), columns,
        )  # fmt: skip
        attributes = ("statements", tuple(statements)), ("times", times), ("states", self.states)
        piece = Piece("sweep", (*operands, *numbers), attributes)
        dtypes = [node.dtype for node in nodes[: self.states]]
        whole = blocks(nodes, (piece,), layout, dtypes[0], parts=self.states)
        return [part(whole, number, dtype) for number, dtype in enumerate(dtypes)]


@dataclass(slots=True)
class _SweepStep(Step):
    """A statement whose cells are those around one."""

    whole: Any = None
    cells: Any = None

    def load(self, cell: Load) -> Vector:
        """The values of an access."""
        return self.whole.read(self, cell)
