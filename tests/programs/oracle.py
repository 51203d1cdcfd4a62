"""A brute-force oracle for tile programs: run the source as plain Python and write down what happens.

The text of a tile program is also a valid Python function. Here it is called with
arrays that note every tile read and written and with kernels that note every call;
tasks, parents, children and all violations then follow from dictionaries. Python
itself evaluates loops, guards and index expressions, so the oracle shares no line
with the analysis it judges: tasks and tiles are plain tuples, which compare equal
to `linnet.Task` and `linnet.TileKey`.

The only change made to the source is that each kernel call also receives its
statement number and the values of its enclosing loop variables.

>>> trace = run(
...     "def scan(A: In, O: Out(fill=0), N: int):\\n"
...     "    for i in range(N):\\n"
...     "        O[i + 1] = t_one(O[i], A[i])\\n",
...     {"N": 3},
... )
>>> trace.order
[(0, (0,)), (0, (1,)), (0, (2,))]
>>> trace.children[0, (1,)]
[(0, (2,))]
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

Tile = tuple[str, tuple[int, ...]]
Task = tuple[int, tuple[int, ...]]

TASK_LIMIT = 4000
"""Longest run unless told otherwise: random programs beyond this are of no more use, only slower."""


class UndefinedError(Exception):
    """The program has no meaning at these sizes: a division by zero, an index that is no integer."""


class TooLongError(Exception):
    """The program has too many tasks at these sizes to be run here."""


@dataclass
class Call:
    """One kernel call: its tiles resolved, ranges as (nested) lists of tiles."""

    kernel: str
    args: tuple[Any, ...]
    attributes: dict[str, Any]
    outputs: list[Any] = field(default_factory=list)

    def tiles_read(self) -> list[Tile]:
        return [tile for arg in self.args for tile in flatten(arg)]

    def tiles_written(self) -> list[Tile]:
        return [tile for output in self.outputs for tile in flatten(output)]


@dataclass
class Trace:
    """All that happened in one run, and what follows from it."""

    order: list[Task] = field(default_factory=list)
    """Tasks in program order."""
    calls: dict[Task, Call] = field(default_factory=dict)
    writer: dict[Tile, Task] = field(default_factory=dict)
    """The first writer of each tile."""
    readers: dict[Tile, list[Task]] = field(default_factory=dict)
    """Tasks that read a tile, each once, in program order."""
    parents: dict[Task, list[Task]] = field(default_factory=dict)
    children: dict[Task, list[Task]] = field(default_factory=dict)
    double_writes: list[Tile] = field(default_factory=list)
    """Tiles written by two tasks, twice by one task, or over an input's version 0."""
    early_reads: list[tuple[Task, Tile]] = field(default_factory=list)
    """Reads of a tile that is written by the same task or a later one."""
    unwritten_reads: list[tuple[Task, Tile]] = field(default_factory=list)
    """Reads of a tile that nobody writes and that is neither an input nor a fill."""
    negative: list[Tile] = field(default_factory=list)
    """Tiles read or written at a negative index."""
    inputs: set[str] = field(default_factory=set)
    """Names of the input arrays."""

    @property
    def valid(self) -> bool:
        return not (self.double_writes or self.early_reads or self.unwritten_reads or self.negative)

    @property
    def roots(self) -> list[Task]:
        return [task for task in self.order if not self.parents[task]]

    def by_kernel(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for call in self.calls.values():
            counts[call.kernel] = counts.get(call.kernel, 0) + 1
        return counts

    def levels(self) -> dict[Task, int]:
        """Step of each task when it runs as soon as its parents have: the longest chain above it."""
        level: dict[Task, int] = {}
        for task in self.order:
            level[task] = max((level[parent] + 1 for parent in self.parents[task]), default=0)
        return level

    def parallelism(self) -> list[int]:
        """Tasks per step."""
        level = self.levels()
        steps = [0] * (max(level.values(), default=-1) + 1)
        for step in level.values():
            steps[step] += 1
        return steps

    def working_set(self) -> list[int]:
        """Tiles alive at each step: inputs from the first step, others from the step that writes them,
        until they are read for the last time (tiles that nobody reads: at the step that writes them).
        """
        level = self.levels()
        alive = [0] * (max(level.values(), default=-1) + 1)
        for tile in {**self.writer, **self.readers}:
            last = max((level[task] for task in self.readers.get(tile, [])), default=-1)
            if tile in self.writer:
                born = level[self.writer[tile]]
            elif tile[0] in self.inputs:
                born = 0
            else:
                continue  # a fill is a value, not a tile
            for step in range(born, max(born, last) + 1):
                alive[step] += 1
        return alive

    def grid(self, array: str) -> tuple[int, ...]:
        """Extent of the tiles written to an array, per axis; empty when none is written."""
        written = [index for name, index in self.writer if name == array]
        return tuple(max(axis) + 1 for axis in zip(*written, strict=True))

    def problems(self) -> str:
        """What is wrong, in words, for the messages of failing tests."""
        parts = [
            f"written twice: {self.double_writes[:3]}" if self.double_writes else "",
            f"read before written: {self.early_reads[:3]}" if self.early_reads else "",
            f"never written: {self.unwritten_reads[:3]}" if self.unwritten_reads else "",
            f"negative index: {self.negative[:3]}" if self.negative else "",
        ]
        return "; ".join(part for part in parts if part) or "valid"


@dataclass(frozen=True)
class Role:
    """What `In`, `Out(fill=0)`, `Temp("A")` and `Table` evaluate to inside the oracle."""

    kind: str
    of: str | None = None
    filled: bool = False

    def __call__(self, of: str | None = None, *, fill: Any = None) -> Role:
        return Role(self.kind, of, fill is not None)


class ExactLog2(float):
    """log2 of an integer whose ceiling and floor are exact, as the language promises."""

    def __new__(cls, n: int) -> ExactLog2:
        if n < 1:
            raise UndefinedError(f"log2({n})")
        made = super().__new__(cls, math.log2(n))
        made.n = n
        return made

    def __ceil__(self) -> int:
        return (self.n - 1).bit_length()

    def __floor__(self) -> int:
        return self.n.bit_length() - 1


class _Result:
    """The output of a kernel call, waiting to be assigned to a tile."""

    def __init__(self, task: Task) -> None:
        self.task = task


class _Array:
    """An array that notes its tiles."""

    def __init__(self, name: str, role: Role, recorder: _Recorder) -> None:
        self.name, self.role, self.recorder = name, role, recorder

    def __getitem__(self, index: Any) -> Any:
        return self._tiles(index)

    def __setitem__(self, index: Any, value: _Result) -> None:
        self.recorder.write(value.task, self._tiles(index))

    def _tiles(self, index: Any) -> Any:
        axes = index if isinstance(index, tuple) else (index,)
        return self._expand((), tuple(axes))

    def _expand(self, done: tuple[int, ...], rest: tuple[Any, ...]) -> Any:
        """A tile, or a list of tiles per ranged axis (outermost axis, outermost list)."""
        if not rest:
            return self._resolve(done)
        axis, *others = rest
        if isinstance(axis, slice):
            start = 0 if axis.start is None else axis.start
            step = 1 if axis.step is None else axis.step
            span = range(integer(start), integer(axis.stop), integer(step))
            return [self._expand((*done, i), tuple(others)) for i in span]
        return self._expand((*done, integer(axis)), tuple(others))

    def _resolve(self, index: tuple[int, ...]) -> Tile:
        name, role = self.name, self.role
        while role.of is not None and index[0] == 0:
            name, index = role.of, index[1:]
            role = self.recorder.roles[name]
        return name, index


class _Recorder:
    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.trace = Trace()
        self.roles: dict[str, Role] = {}
        self.filled: set[str] = set()

    def kernel(self, name: str) -> Any:
        def call(site: tuple[int, tuple[int, ...], int], *args: Any, **attributes: Any) -> Any:
            statement, indices, outputs = site
            task = (statement, indices)
            trace = self.trace
            if len(trace.order) >= self.limit:
                raise TooLongError
            trace.order.append(task)
            trace.calls[task] = Call(name, args, attributes)
            results = tuple(_Result(task) for _ in range(outputs))
            return results if outputs > 1 else results[0]

        return call

    def write(self, task: Task, tiles: Any) -> None:
        trace = self.trace
        trace.calls[task].outputs.append(tiles)
        for tile in flatten(tiles):
            if tile in trace.writer or self.roles[tile[0]].kind == "In":
                trace.double_writes.append(tile)
            trace.writer.setdefault(tile, task)

    def finish(self) -> Trace:
        """Derive readers, edges and violations once every write is known."""
        trace = self.trace
        trace.inputs = {name for name, role in self.roles.items() if role.kind == "In"}
        position = {task: p for p, task in enumerate(trace.order)}
        trace.children = {task: [] for task in trace.order}
        for task in trace.order:
            call = trace.calls[task]
            parents: dict[Task, None] = {}
            for tile in call.tiles_written():
                if min(tile[1], default=0) < 0:
                    trace.negative.append(tile)
            for tile in dict.fromkeys(call.tiles_read()):
                if min(tile[1], default=0) < 0:
                    trace.negative.append(tile)
                trace.readers.setdefault(tile, []).append(task)
                writer = trace.writer.get(tile)
                if writer is not None:
                    parents[writer] = None
                    if position[writer] >= position[task]:
                        trace.early_reads.append((task, tile))
                elif self.roles[tile[0]].kind != "In" and not self.roles[tile[0]].filled:
                    trace.unwritten_reads.append((task, tile))
            trace.parents[task] = list(parents)
            for parent in parents:
                trace.children[parent].append(task)
        return trace


class _Sites(ast.NodeTransformer):
    """Give each kernel call its statement number, loop values and number of outputs."""

    def __init__(self) -> None:
        self.loops: list[str] = []
        self.kernels: list[str] = []

    def visit_For(self, node: ast.For) -> ast.For:
        assert isinstance(node.target, ast.Name)
        self.loops.append(node.target.id)
        node.body = [self.visit(child) for child in node.body]
        self.loops.pop()
        return node

    def visit_Assign(self, node: ast.Assign) -> ast.Assign:
        (target,) = node.targets
        targets = target.elts if isinstance(target, ast.Tuple) else [target]
        if not all(isinstance(t, ast.Subscript) for t in targets):
            return node
        assert isinstance(node.value, ast.Call)
        name = ast.unparse(node.value.func)
        indices = "".join(f"{loop}, " for loop in self.loops)
        site = ast.parse(f"({len(self.kernels)}, ({indices}), {len(targets)})", mode="eval").body
        node.value.func = ast.Name(id="__kernel_" + name.replace(".", "_"), ctx=ast.Load())
        node.value.args.insert(0, site)
        self.kernels.append(name)
        return node


def run(
    source: str,
    sizes: Mapping[str, Any],
    constants: Mapping[str, Sequence[int]] | None = None,
    limit: int = TASK_LIMIT,
) -> Trace:
    """Execute a tile program's source with these sizes (and tables) and report what happened.

    Raises `UndefinedError` where plain Python could not go on, AssertionError where
    the program's own `assert` excludes the sizes, and `TooLongError` beyond `limit` tasks.
    """
    tree = ast.parse(source)
    sites = _Sites()
    tree = ast.fix_missing_locations(sites.visit(tree))
    (definition,) = (node for node in tree.body if isinstance(node, ast.FunctionDef))
    definition.decorator_list = []
    recorder = _Recorder(limit)
    roles = {kind: Role(kind) for kind in ("In", "Out", "Temp", "Table")}
    namespace: dict[str, Any] = {
        **roles,
        "ln": SimpleNamespace(**roles),
        "ceil": math.ceil,
        "floor": math.floor,
        "log2": ExactLog2,
        "log": math.log,
        **{name: _Checked(values) for name, values in (constants or {}).items()},
        **{"__kernel_" + name.replace(".", "_"): recorder.kernel(name) for name in sites.kernels},
    }
    exec(compile(tree, "<tile program>", "exec", dont_inherit=True), namespace)
    function = namespace[definition.name]
    arguments: dict[str, Any] = {}
    for name, annotation in function.__annotations__.items():
        if isinstance(annotation, Role) and annotation.kind != "Table":
            recorder.roles[name] = annotation
            arguments[name] = _Array(name, annotation, recorder)
        elif isinstance(annotation, Role):
            arguments[name] = _Checked(sizes[name])
        else:
            arguments[name] = sizes[name]
    try:
        function(**arguments)
    except (ZeroDivisionError, IndexError, OverflowError) as error:
        raise UndefinedError(str(error)) from error
    return recorder.finish()


def flatten(tiles: Any) -> Iterator[Tile]:
    """The tiles in an operand: one, a list, a list of lists; scalars hold none."""
    if isinstance(tiles, list):
        for part in tiles:
            yield from flatten(part)
    elif isinstance(tiles, tuple):
        yield tiles


def integer(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise UndefinedError(f"{value!r} used as an index")
    return value


class _Checked:
    """A table that refuses Python's negative indices, which the language does not have."""

    def __init__(self, values: Sequence[int]) -> None:
        self.values = tuple(values)

    def __getitem__(self, index: int) -> int:
        if not 0 <= integer(index) < len(self.values):
            raise UndefinedError(f"table index {index} outside 0..{len(self.values) - 1}")
        return self.values[index]

    def __len__(self) -> int:
        return len(self.values)
