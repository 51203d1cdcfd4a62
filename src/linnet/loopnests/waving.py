"""Recurrences in two loops as one program: tiles that pass their edges on to those below and to the right.

`H[i, j] = max(H[i - 1, j - 1] + s, H[i - 1, j] - 1, H[i, j - 1] - 1)` has no loop that could run at once.
But a cell needs only cells above it and to its left, so a tile of cells needs two edges. What a cell is
made of is found by evaluating the statements once on arrays that stand for the cells of a diagonal: the
operations that are noted there are the steps of the kernel (`kernels/arrays/waves.py`). The program has one
statement, whatever the sizes.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from linnet.algorithms.recipe import Output, Recipe, only
from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.expression.builders import recut
from linnet.arrays.expression.nodes import Map, Node, Source
from linnet.arrays.linalg.matrices import made as made_by
from linnet.kernels.arrays.waves import MOST
from linnet.loopnests.dependences import plain_index
from linnet.loopnests.language import Binary, Call, Expr, Index, Load, walk
from linnet.loopnests.monoids import MONOIDS
from linnet.loopnests.places import Place, Prepared, place
from linnet.loopnests.running import Machine, Step
from linnet.loopnests.scalar_functions import known_function
from linnet.loopnests.statements import Statement
from linnet.loopnests.storing import added, checked_store, combined
from linnet.loopnests.vectors import DividedByZero, Vector, binary, cast, functions, lined_up, where
from linnet.loopnests.whole_numbers import Overflow
from linnet.programs import TileProgram
from linnet.programs.build import ProgramBuilder
from linnet.sparse_arrays.array import SparseArray
from linnet.tiles import Layout, from_sizes
from linnet.tiles.layout import regular
from linnet.tiles.sparse_tile import scalar_text

HEIGHT = 256
"""Rows of a tile: a diagonal of so many cells stays in the nearest cache with all that is computed of it."""
WIDEST, TILES = 4000, 8
"""Columns of a tile at most (rows a power of two apart would share places in the cache), and how many tiles
there should be beside each other."""
_LONG = 10**8
"""The length of what stands for a diagonal: nobody computes it, and nothing of it is in memory."""


class NotAWave(Exception):
    """Statements that must be run in another way."""


def wave(machine: Machine, results: tuple[str, ...]) -> bool:
    """Run a nest as a recurrence in two loops; False if it is none, or of another form."""
    try:
        _Wave(machine, results).run()
    except (NotAWave, Overflow, DividedByZero):
        return False
    return True


def _indices(cell: Load) -> list[Expr]:
    return [each for index in cell.indices for each in walk(index)]


def check_expression(machine: Machine, node: Expr) -> None:
    """Refuse values that would be looked at while a nest is built, and are not there."""
    match node:
        case Call(word, arguments):
            known = known_function(machine.functions[word], len(arguments))
            if known is None or known.ufunc in ("int", "combine") or known.plain == "i":
                raise NotAWave
        case Binary("/" | "//" | "%" | "**" | "<<" | ">>", _, right):
            inside = {id(one) for each in walk(right) if isinstance(each, Load) for one in _indices(each)}
            if any(isinstance(each, Index) and id(each) not in inside for each in walk(right)):
                raise NotAWave
        case _:
            pass


@dataclass(slots=True)
class _State:
    """An array that is written: its cell of a step lies `offset` from the loop variables."""

    offset: tuple[int, int]
    distances: set[tuple[int, int]] = field(default_factory=set[tuple[int, int]])

    @property
    def halo(self) -> tuple[int, int]:
        """How many rows above a tile, and columns to its left, are read; one of each at least."""
        return max([1, *(up for up, _ in self.distances)]), max([1, *(back for _, back in self.distances)])


class _Wave:
    """A nest while it is looked at."""

    def __init__(self, machine: Machine, results: tuple[str, ...]) -> None:
        statements = machine.nest.statements
        axes = statements[0].axes
        if len(axes) != 2 or any(axis.step != 1 for axis in axes):
            raise NotAWave
        if any(len(each.axes) != 2 or each.axes[0] is not axes[0] or each.axes[1] is not axes[1]
               for each in statements):  # fmt: skip
            raise NotAWave
        self.machine = machine
        self.names: tuple[str, str] = (axes[0].name, axes[1].name)
        written = {each.target.array for each in statements}
        if {f"${name}" for name in results} & written:
            raise NotAWave  # what the last step leaves in a scalar
        self.states: dict[str, _State] = {}
        for each in statements:
            self._check(each)
        if not 1 <= len(self.states) <= MOST:
            raise NotAWave
        self.place: Place = self._whole(statements)
        self.lengths: tuple[int, int] = (
            len(self.place.ranges[self.names[0]]),
            len(self.place.ranges[self.names[1]]),
        )
        self.now: dict[str, Vector] = {}
        """What the cells of this step hold so far."""
        self.known: dict[int, tuple[Any, ...]] = {}
        """By identity of a node: what it stands for."""
        self.inputs: dict[tuple[Any, ...], tuple[Vector, Vector]] = {}
        """What is only read: what stands for it, and the array."""
        self.reads: dict[tuple[str, int, int], Vector] = {}
        self.variables: dict[str, Vector] = {}

    def _check(self, statement: Statement) -> None:
        target = statement.target
        if statement.second is not None or (statement.monoid is not None and statement.monoid not in MONOIDS):
            raise NotAWave
        for each in (statement.value, *(guard for guard, _ in statement.guards)):
            for node in walk(each):
                check_expression(self.machine, node)
        if target.array in self.machine.nest.scalars:
            if self.machine.nest.scalars[target.array] != self.names:
                raise NotAWave
            return
        found = [plain_index(each) for each in target.indices]
        if len(found) != 2 or [each and each[0] for each in found] != list(self.names):
            raise NotAWave
        offset = tuple(each[1] for each in found if each is not None)
        state = self.states.setdefault(target.array, _State((offset[0], offset[1])))
        if state.offset != offset:
            raise NotAWave

    def _whole(self, statements: tuple[Statement, ...]) -> Place:
        found: list[Place] = []
        for each in statements:
            prepared = Prepared(each)
            one = place(prepared, {})
            if one is None or prepared.tests or one.mask() is not None:
                raise NotAWave
            found.append(one)
        if any(each.ranges != found[0].ranges for each in found):
            raise NotAWave
        return found[0]

    # ---- what a cell is made of

    def stands_for(self, dtype: Any, what: tuple[Any, ...], plain: str = "", limit: int = 0) -> Vector:
        """An array for the cells of a diagonal."""
        node = Source(np.broadcast_to(np.zeros((), dtype), (_LONG,)), Layout(((0, _LONG),)))
        self.known[id(node)] = (*what, node)
        return Vector(wrap(node), ("d",), plain, limit)

    def variable(self, name: str) -> Vector:
        """A loop variable."""
        if name not in self.variables:
            run = self.place.ranges[name]
            limit = max(abs(run[0]), abs(run[-1]), 1)
            self.variables[name] = self.stands_for(np.int64, ("variable", self.names.index(name)), "i", limit)
        return self.variables[name]

    def load(self, step: Step, cell: Load) -> Vector:
        """A cell that a statement reads."""
        key = cell.array
        if key in self.machine.nest.scalars and key not in self.now and self.machine.scalars[key]:
            raise NotAWave
        if key in self.states:
            found = [plain_index(each) for each in cell.indices]
            if len(found) != 2 or [each and each[0] for each in found] != list(self.names):
                raise NotAWave
            offset = self.states[key].offset
            up, back = (one - each[1] for one, each in zip(offset, found, strict=True) if each is not None)
            if up < 0 or back < 0:
                raise NotAWave
            if up or back:
                return self._read(key, up, back)
        if key in self.now:
            return self.now[key]
        if any(isinstance(each, Load) for each in _indices(cell)):
            raise NotAWave  # a branch around it may protect a computed index
        return self._input(cell, Step(self.machine, step.statement, step.prepared, self.place).load(cell))

    def _read(self, key: str, up: int, back: int) -> Vector:
        self.states[key].distances.add((up, back))
        if (key, up, back) not in self.reads:
            dtype = self.machine.arrays[key].dtype
            self.reads[key, up, back] = self.stands_for(dtype, ("read", key, up, back))
        return self.reads[key, up, back]

    def _input(self, cell: Load, found: Vector) -> Vector:
        if found.is_number or (isinstance(found.data, np.ndarray) and not found.axes):
            return found
        if isinstance(found.data, SparseArray) or not set(found.axes) <= set(self.names):
            raise NotAWave
        key = (cell.array, cell.indices)
        if key not in self.inputs:
            limit = found.limit if isinstance(found.data, ArrayBase) else 0
            if found.plain == "i" and not limit:
                raise NotAWave
            standing = self.stands_for(found.dtype, ("input", key), found.plain, limit)
            self.inputs[key] = standing, found
        return self.inputs[key][0]

    def run(self) -> None:
        """Find out what a cell is made of, and put the program's results into the arrays."""
        for statement in self.machine.nest.statements:
            self._note(statement)
        steps = Steps(self, [self.now[key] for key in self.states])
        results = tuple(steps.number(self.now[key]) for key in self.states)
        self._store(steps, results)

    def _note(self, statement: Statement) -> None:
        prepared = Prepared(statement)
        step = _WaveStep(self.machine, statement, prepared, self.place, whole=self)
        source = added(statement)
        value = step.evaluate(source)
        target = statement.target.array
        if source is not statement.value:
            value = binary("-", step.load(statement.target), value)
        elif statement.monoid is not None:
            value = combined(step, MONOIDS[statement.monoid], step.load(statement.target), value)
        if target in self.states:
            dtype = self.machine.arrays[target].dtype
            checked_store(step, value, value.dtype, dtype)
            value = cast(value, dtype)
        guard = step.value_mask()
        if guard is not None:
            value = where(guard, value, step.load(statement.target))
        self.now[target] = value

    # ---- the program

    def _store(self, steps: Steps, results: tuple[int, ...]) -> None:
        rows = regular(self.lengths[0], HEIGHT)
        columns = regular(self.lengths[1], min(WIDEST, max(HEIGHT, -(-self.lengths[1] // TILES))))
        nodes: list[Node] = []
        regions: dict[str, tuple[slice, slice]] = {}
        rims: list[tuple[int, int]] = []
        first = tuple(self.place.ranges[name][0] for name in self.names)
        for key, state in self.states.items():
            begin = tuple(a + b for a, b in zip(first, state.offset, strict=True))
            regions[key] = (
                slice(begin[0], begin[0] + self.lengths[0]), slice(begin[1], begin[1] + self.lengths[1])
            )  # fmt: skip
            nodes += self._edges(self.machine.arrays[key], begin, state.halo, rows, columns)
            # What lies before the cells that are written is among the edges, if it is not more than these.
            ends = (begin[0] + self.lengths[0], begin[1] + self.lengths[1])
            near = all(one in (0, most) for one, most in zip(begin, state.halo, strict=True))
            inside = near and ends == self.machine.arrays[key].shape
            rims.append((begin[0], begin[1]) if inside else (0, 0))
        kinds: list[str] = []
        for _, found in self.inputs.values():
            axes = tuple(name for name in self.names if name in found.axes) or self.names[:1]
            kinds.append("".join("ij"[self.names.index(name)] for name in axes))
            nodes.append(self._cut(found, axes, rows, columns))
        attributes = (
            ("halos", tuple(state.halo for state in self.states.values())), ("kinds", tuple(kinds)),
            ("reads", tuple((list(self.states).index(key), up, back) for key, up, back in self.reads)),
            ("constants", tuple(steps.constants)), ("steps", tuple(steps.steps)), ("results", results),
            ("rims", tuple(rims)), ("start", (first[0], first[1])),
        )  # fmt: skip
        cuts = [Layout((_after(rim[0], rows), _after(rim[1], columns))) for rim in rims]
        names = [f"{letter}{n}" for n in range(len(self.states)) for letter in "TL"]
        names += [f"G{n}" for n in range(len(kinds))]
        outputs = tuple(
            (f"I{n}", Output(cuts[n], self.machine.arrays[key].dtype)) for n, key in enumerate(self.states)
        )
        sides = rows[1] - rows[0], columns[1] - columns[0]
        program = wave_program(len(self.states), tuple(kinds), (first[0], first[1]), sides, attributes)
        sizes = (("P", len(rows) - 1), ("Q", len(columns) - 1))
        recipe = Recipe("wave", tuple(names), outputs, only(program), sizes)
        made = made_by(recipe, *nodes)
        for number, key in enumerate(self.states):
            inner = made[f"I{number}"]
            whole = inner.shape == self.machine.arrays[key].shape
            self.machine.arrays[key] = (
                wrap(inner.__node__) if whole else _with_rim(self.machine.arrays[key], regions[key], inner)
            )

    def _edges(
        self, array: Any, begin: tuple[int, ...], halo: tuple[int, int], rows: Any, columns: Any
    ) -> list[Node]:
        """The rows above the cells that are written; the columns to their left, by tile, each with the rows
        above it. Nobody reads what would lie outside of the array."""
        array = wrap(array.__node__)
        high, wide = halo
        xp = functions()
        right = slice(begin[1], begin[1] + self.lengths[1])
        if begin[0] >= high:
            top = array[begin[0] - high : begin[0], right]
        else:
            top = xp.zeros((high, self.lengths[1]), dtype=array.dtype)
        sizes = [high + after - before for before, after in pairwise(rows)]
        if begin[1] >= wide:
            above = np.concatenate([np.arange(a - high, b) for a, b in pairwise(rows)])
            left = array[:, begin[1] - wide : begin[1]][np.maximum(above + begin[0], 0)]
        else:
            left = xp.zeros((sum(sizes), wide), dtype=array.dtype)
        return [
            recut(top.__node__, Layout(((0, high), columns))),
            recut(left.__node__, Layout((from_sizes(sizes), (0, wide)))),
        ]

    def _cut(self, found: Vector, axes: tuple[str, ...], rows: Any, columns: Any) -> Node:
        shape = tuple(self.lengths[self.names.index(name)] for name in axes)
        data = functions().broadcast_to(functions().asarray(lined_up(found.data, found.axes, axes)), shape)
        cuts = tuple(rows if name == self.names[0] else columns for name in axes)
        return recut(data.__node__, Layout(cuts))


def _after(rim: int, cuts: tuple[int, ...]) -> tuple[int, ...]:
    """Where tiles are cut if the first contains the rim."""
    return (0, *(each + rim for each in cuts[1:]))


def _with_rim(array: Any, region: tuple[slice, slice], inner: Any) -> Any:
    """An array with a region replaced. The parts stay in their tiles: an assignment would cut them anew."""
    rows, columns = region
    for axis, here in ((1, columns), (0, rows)):
        before: Any = (rows, slice(None, here.start)) if axis else (slice(None, here.start),)
        after: Any = (rows, slice(here.stop, None)) if axis else (slice(here.stop, None),)
        parts = [array[before]] * bool(here.start) + [inner]
        parts += [array[after]] * (here.stop < array.shape[axis])
        inner = functions().concat(parts, axis=axis) if len(parts) > 1 else inner
    return wrap(inner.__node__)


@dataclass(slots=True)
class _WaveStep(Step):
    """A statement whose cells are those of a diagonal."""

    whole: Any = None

    def evaluate(self, node: Expr) -> Vector:
        """The values of an expression."""
        if isinstance(node, Index):
            return self.whole.variable(node.name)
        return Step.evaluate(self, node)

    def load(self, cell: Load) -> Vector:
        """The values of an access."""
        return self.whole.load(self, cell)


class Steps:
    """Nodes as numbered steps of a kernel."""

    def __init__(self, whole: Any, wanted: list[Vector]) -> None:
        self.whole = whole
        found = (_constant(each, whole.known) for one in wanted for each in _nodes(_node(one)))
        self.constants: list[str] = list(
            dict.fromkeys(scalar_text(each) for each in found if each is not None)
        )
        self.steps: list[tuple[Any, ...]] = []
        self._numbers: dict[Any, Any] = {}
        self._inputs = list(whole.inputs)
        self._reads = list(whole.reads)

    def number(self, vector: Vector) -> int:
        """The number of a value; steps are added until it has one."""
        return self._number(_node(vector))

    def _number(self, node: Any) -> int:
        before = 2 + len(self._inputs) + len(self._reads)
        data = _constant(node, self.whole.known)
        if data is not None:
            return before + self.constants.index(scalar_text(data))
        if id(node) in self._numbers:
            return self._numbers[id(node)][0]
        if id(node) in self.whole.known:
            return self._placed(self.whole.known[id(node)])
        if not isinstance(node, Map) or node.op == "fill":
            raise NotAWave
        places = tuple(self._number(each) for each in node.inputs)
        step = (node.op, *places) if node.extra is None else (node.op, *places, node.extra)
        if step not in self.steps:
            self.steps.append(step)
        found = before + len(self.constants) + self.steps.index(step)
        self._numbers[id(node)] = found, node
        return found

    def _placed(self, what: tuple[Any, ...]) -> int:
        match what:
            case ("variable", int(which), _):
                return which
            case ("input", key, _):
                return 2 + self._inputs.index(key)
            case (_, key, up, back, _):
                return 2 + len(self._inputs) + self._reads.index((key, up, back))
            case _:
                raise AssertionError(what)


def _node(vector: Vector) -> Any:
    data = vector.data
    return data.__node__ if isinstance(data, ArrayBase) else np.asarray(data, vector.dtype)


def _nodes(node: Any) -> list[Any]:
    """A node and those it is made of, each once."""
    found: dict[int, Any] = {}
    stack = [node]
    while stack:
        one = stack.pop()
        if id(one) not in found:
            found[id(one)] = one
            stack.extend(one.inputs if isinstance(one, Map) else ())
    return list(found.values())


def _constant(node: Any, known: dict[int, Any]) -> Any:
    """The number that a node is; None if it is none."""
    if isinstance(node, Map) and node.op == "fill":
        return _constant(node.inputs[0], known)
    if isinstance(node, Source) and id(node) not in known:
        node = node.data
    if not isinstance(node, np.ndarray):
        return None
    if node.size != 1:
        raise NotAWave
    return node.reshape(())[()]


@functools.lru_cache(maxsize=256)
def wave_program(
    count: int, kinds: tuple[str, ...], first: tuple[int, int], sides: tuple[int, int], attributes: Any
) -> TileProgram:
    """The program: one task for each tile, which gets its edges from those above it and to its left."""
    b = ProgramBuilder("wave")
    edges = [(b.input(f"T{n}"), b.input(f"L{n}")) for n in range(count)]
    others = [b.input(f"G{n}") for n in range(len(kinds))]
    inner = [b.output(f"I{n}") for n in range(count)]
    below = [b.temp(f"B{n}", of=edges[n][0]) for n in range(count)]
    beside = [b.temp(f"R{n}", of=edges[n][1]) for n in range(count)]
    rows, columns = b.size("P"), b.size("Q")
    with b.loop("p", rows) as p, b.loop("q", columns) as q:
        made: list[Any] = []
        given: list[Any] = []
        for tiles, down, right in zip(inner, below, beside, strict=True):
            made += [tiles[p, q], down[p + 1, 0, q], right[q + 1, p, 0]]
            given += [down[p, 0, q], right[q, p, 0]]
        for each, kind in zip(others, kinds, strict=True):
            given.append(each[p] if kind == "i" else each[q] if kind == "j" else each[p, q])
        given += [p * sides[0] + first[0], q * sides[1] + first[1]]
        b.call(f"wave{count}", made, given, **dict(attributes))
    return b.build(verify=False)
