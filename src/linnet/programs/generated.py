"""The functions generated for a program: children, parents, in-degree, calls, tasks.

Each is written as Python text when first asked for, compiled once per program, and
instantiated per binding (sizes and tables are arguments of the outer function), so a
program bound to another size costs nothing more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple, NoReturn, cast

from linnet.errors import ProgramError
from linnet.programs.canonical import Canonical, Lines, is_size
from linnet.programs.dependences import Dependences, Edge
from linnet.programs.expressions import RUNTIME, code, positive
from linnet.programs.grammar import (
    Attribute,
    Expr,
    For,
    If,
    Int,
    Let,
    Name,
    Program,
    Range,
    Run,
    Size,
    Stmt,
    Table,
    Task,
    Temp,
    Tiles,
)
from linnet.programs.linear import Identity
from linnet.programs.solve import PairSolver
from linnet.programs.statements import Access, Loop, Statement
from linnet.tiles import TileKey


class Call(NamedTuple):
    """What one task runs: a kernel, the tiles it writes, and its arguments."""

    kernel: str
    outputs: tuple[Any, ...]
    """A TileKey for each result; a (nested) list of them where the result is a range of tiles."""
    args: tuple[Any, ...]
    """TileKey, (nested) list of TileKey, or a number, in the order of the call."""
    attributes: dict[str, Any]
    """Keywords of the call."""


def _no_task(name: str, statement: int, indices: Any) -> NoReturn:
    raise ProgramError(
        f"{name!r} has no task {Task(statement, indices)!r}: the indices are outside the loops around "
        f"statement {statement}, or a condition excludes them"
    )


_GLOBALS: dict[str, Any] = {
    **RUNTIME,
    "__builtins__": {},
    "_new": getattr(tuple, "__new__"),  # noqa: B009 - its type is of no use here
    "_Task": Task,
    "_Key": TileKey,
    "_Call": Call,
    "_no_task": _no_task,
}


class Compiled:
    """Generated functions of one program, each made when first needed."""

    def __init__(self, program: Program, statements: Sequence[Statement], dependences: Dependences) -> None:
        self.program = program
        self.statements = statements
        self.dependences = dependences
        self.sizes: dict[str, str] = {name: f"p{k}" for k, name in enumerate(program.roles(Size))}
        self._temps = program.roles(Temp)
        labels = [*program.roles(Table), *dict(program.tables)]
        self.tables: dict[str, str] = {name: f"T{k}" for k, name in enumerate(labels)}
        self.names: Canonical = Canonical(self.sizes, self.tables)
        self.factories: dict[tuple[str, int | str], Callable[..., Any]] = {}

    def function(self, kind: str, which: int | str) -> Callable[..., Any]:
        """The maker of a function: call it with the values of sizes and tables, in order."""
        key = (kind, which)
        if key not in self.factories:
            self.factories[key] = self.make(self.text(kind, which), f"<{self.program.name}.{kind}.{which}>")
        return self.factories[key]

    def text(self, kind: str, which: int | str) -> list[str]:
        """Body of a generated function of `x` (task indices or tile index)."""
        match kind, which:
            case "children", int(s):
                return self.related(self.statements[s], self.dependences.from_writer(s), "children")
            case "parents", int(s):
                return self.related(self.statements[s], self.dependences.to_reader(s), "parents")
            case "in_degree", int(s):
                return self.in_degree(self.statements[s])
            case "contains", int(s):
                statement = self.statements[s]
                condition = self.inside(statement, self.source_names(statement))
                return [f"{_unpacked(statement)} = x", f"return {condition}"]
            case "call", int(s):
                statement = self.statements[s]
                return [*self.opening(statement), f"return {self.call(statement)}"]
            case "call_at", int(s):
                return self.call_at(self.statements[s])
            case "readers", str(array):
                return self.at_tile(array, reading=True)
            case "writer", str(array):
                return self.at_tile(array, reading=False)
            case "tasks", _:
                return self.tasks()
            case "domain", int(s):
                return self.domain(self.statements[s])
            case _:
                raise KeyError(kind)

    def make(self, body: list[str], label: str) -> Callable[..., Any]:
        head = f"def make({', '.join([*self.sizes.values(), *self.tables.values()])}):"
        text = "\n".join(
            [head, "    def function(x):", *("        " + b for b in body), "    return function"]
        )
        space: dict[str, Any] = {}
        exec(compile(text, label, "exec"), _GLOBALS, space)
        return space["make"]

    # -- relatives of a task

    def source_names(self, statement: Statement) -> Canonical:
        return self.names.extended({v: f"s{k}" for k, v in enumerate(statement.variables)})

    def opening(self, statement: Statement) -> list[str]:
        """Unpack the indices; refuse those that are no task."""
        names = self.source_names(statement)
        condition = self.inside(statement, names)
        refuse = f"_no_task({self.program.name!r}, {statement.number}, x)"
        return [f"{_unpacked(statement)} = x", f"if not ({condition}): {refuse}"]

    def inside(self, statement: Statement, names: Canonical) -> str:
        """Text of the condition that the indices are those of a task."""
        tests = [code(names.rename(g), Identity()) for g in statement.guards]
        for loop in statement.loops:
            one = names.loop(loop)
            tests += _in_range(one)
            tests += [code(g, Identity()) for g in one.guards]
        return " and ".join(tests) or "True"

    def related(self, statement: Statement, edges: Sequence[Edge], side: str) -> list[str]:
        lines = Lines(0)
        for line in self.opening(statement):
            lines.add(line)
        lines.add("out = []")
        for edge in edges:
            self.pair(lines, statement, edge, side, "list")
        unique = self.dependences.exclusive(edges, side)
        lines.add("return out" if unique else "return list(dict.fromkeys(out))")
        return lines.lines

    def in_degree(self, statement: Statement) -> list[str]:
        edges = self.dependences.to_reader(statement.number)
        if not self.dependences.exclusive(edges, "parents"):
            body = self.related(statement, edges, "parents")
            return [*body[:-1], "return len(dict.fromkeys(out))"]
        lines = Lines(0)
        for line in self.opening(statement):
            lines.add(line)
        lines.add("n = 0")
        for edge in edges:
            self.pair(lines, statement, edge, "parents", "count")
        lines.add("return n")
        return lines.lines

    def pair(self, lines: Lines, statement: Statement, edge: Edge, side: str, mode: str) -> None:
        write = self.statements[edge.writer].writes[edge.output]
        read = self.statements[edge.reader].reads[edge.operand]
        if side == "children":
            source, target, access = write, self.statements[edge.reader], read
        else:
            source, target, access = read, self.statements[edge.writer], write
        names = self.source_names(statement)
        names = names.extended({loop.variable: f"r{k}" for k, loop in enumerate(source.locals)})
        self.solve(lines, names, source, target, access, mode)

    def solve(
        self, lines: Lines, names: Canonical, source: Access, target: Statement, access: Access, mode: str
    ) -> None:
        depth = lines.depth
        solver = PairSolver(
            lines,
            self.names,
            [names.rename(e) for e in source.index],
            [names.loop(loop) for loop in source.locals],
            [names.rename(g) for g in source.guards],
            target,
            access,
        )
        solver.write(mode)
        lines.depth = depth

    def at_tile(self, array: str, *, reading: bool) -> list[str]:
        """Tasks that read, or write, one tile given by its index `x`."""
        touching: list[tuple[Statement, Access]] = []
        for statement in self.statements:
            accesses = statement.reads if reading else statement.writes
            touching += [(statement, a) for a in accesses if a.array == array]
        rank = len(touching[0][1].index) if touching else 0
        names = self.names.extended({f"axis {k}": f"s{k}" for k in range(rank)})
        tile = Access(array, tuple(Name(f"axis {k}") for k in range(rank)))
        lines = Lines(0)
        if rank:
            lines.add("".join(f"s{k}, " for k in range(rank)).strip() + " = x")
        lines.add("out = []")
        for statement, access in touching:
            self.solve(lines, names, tile, statement, access, "list")
        lines.add("return list(dict.fromkeys(out))")
        return lines.lines

    # -- the call a task makes

    def call(self, statement: Statement) -> str:
        """Text of the call, from the names of the loops' variables."""
        names = self.source_names(statement)
        run = statement.run
        outputs = "".join(f"{self.tile_text(t, names)}, " for t in run.outputs)
        args = "".join(
            f"{self.tile_text(a, names) if isinstance(a, Tiles) else code(names.rename(a), Identity())}, "
            for a in run.args
        )
        scalars = {k: v for k, v in run.keywords if not isinstance(v, Attribute)}
        # array and kernel names and attributes appear as literals (repr), never as names
        pairs = [f"{k!r}: {code(names.rename(v), Identity())}" for k, v in scalars.items()]
        pairs += [f"{k!r}: {_literal(v.value)}" for k, v in run.keywords if isinstance(v, Attribute)]
        parts = f"{run.kernel!r}, ({outputs.strip()}), ({args.strip()}), {{{', '.join(pairs)}}}"
        return f"_new(_Call, ({parts}))"

    def call_at(self, statement: Statement) -> list[str]:
        """A function from a row of `x`, the columns of a list of tasks, to the call made there."""
        depth = range(len(statement.loops))
        columns = "".join(f"c{k}, " for k in depth).strip() or "()"
        return [
            f"{columns} = x",
            "def at(row):",
            *(f"    s{k} = c{k}[row]" for k in depth),
            f"    return {self.call(statement)}",
            "return at",
        ]

    def tile_text(self, tiles: Tiles, names: Canonical) -> str:
        ranged = [(k, p) for k, p in enumerate(tiles.index) if isinstance(p, Range)]
        inner = names.extended({f"axis {k}": f"r{k}" for k, _ in ranged})
        index: list[Expr] = [
            Name(f"axis {k}") if isinstance(p, Range) else p for k, p in enumerate(tiles.index)
        ]
        text = self.key_text(tiles.array, index, inner)
        for k, piece in reversed(ranged):
            bounds = ", ".join(
                code(names.rename(e), Identity()) for e in (piece.start, piece.stop, piece.step)
            )
            text = f"[{text} for r{k} in range({bounds})]"
        return text

    def key_text(self, array: str, index: Sequence[Expr], names: Canonical) -> str:
        texts = [code(names.rename(e), Identity()) for e in index]
        key = f"_new(_Key, ({array!r}, ({''.join(t + ', ' for t in texts).strip()})))"
        role = self._temps.get(array)
        if role is None or role.of is None:
            return key
        base = self.key_text(role.of, index[1:], names)
        return f"({base} if {texts[0]} == 0 else {key})"

    # -- all tasks, of one statement and in the order of the program

    def domain(self, statement: Statement) -> list[str]:
        names = self.source_names(statement)
        lines = Lines(0)

        def guarded(guards: Sequence[Expr]) -> None:
            for guard in guards:
                lines.add(f"if {code(names.rename(guard), Identity())}:")
                lines.depth += 1

        guarded(statement.guards)
        for loop in statement.loops:
            one = names.loop(loop)
            bounds = ", ".join(code(e, Identity()) for e in (one.start, one.stop, one.step))
            lines.add(f"for {one.variable} in range({bounds}):")
            lines.depth += 1
            guarded(loop.guards)
        lines.add(f"yield _new(_Task, ({statement.number}, ({_unpacked(statement).strip('()')})))")
        return lines.lines

    def tasks(self) -> list[str]:
        writer = _TaskLoops(self.names)
        writer.block(self.program.body, 0, {}, ())
        return [*writer.lines, "return", "yield"]


class _TaskLoops:
    """Writes the program's own loops with each kernel call replaced by the task it makes."""

    def __init__(self, names: Canonical) -> None:
        self.names = names
        self.lines: list[str] = []
        self.statement = 0
        self.fresh = 0

    def block(self, body: Sequence[Stmt], depth: int, known: dict[str, str], loops: tuple[str, ...]) -> None:
        def text(expr: Expr) -> str:
            return code(self.names.extended(known).rename(expr), Identity())

        def add(line: str) -> None:
            self.lines.append("    " * depth + line)

        for stmt in body:
            match stmt:
                case Let(name, value):
                    value_text = text(value)
                    known.setdefault(name, self.name())
                    add(f"{known[name]} = {value_text}")
                case For(variable, start, stop, step, inner):
                    label = self.name()
                    add(f"for {label} in range({text(start)}, {text(stop)}, {text(step)}):")
                    # scalars keep their names inside, so that a branch in a loop assigns the same one
                    self.block(inner, depth + 1, {**known, variable: label}, (*loops, label))
                    add("    pass")
                case If(condition, then, otherwise):
                    for name in _scalars((*then, *otherwise)):
                        known.setdefault(name, self.name())
                    add(f"if {text(condition)}:")
                    self.block(then, depth + 1, known, loops)
                    add("    pass")
                    add("else:")
                    self.block(otherwise, depth + 1, known, loops)
                    add("    pass")
                case Run():
                    indices = "".join(f"{v}, " for v in loops).strip()
                    add(f"yield _new(_Task, ({self.statement}, ({indices})))")
                    self.statement += 1

    def name(self) -> str:
        self.fresh += 1
        return f"v{self.fresh}"


def _scalars(body: Sequence[Stmt]) -> Iterator[str]:
    for stmt in body:
        match stmt:
            case Let(name, _):
                yield name
            case If(_, then, otherwise):
                yield from _scalars((*then, *otherwise))
            case _:
                pass


def _literal(value: Any) -> str:
    """Text of a constant; floats by name of their value, since inf and nan have no literal."""
    if isinstance(value, tuple):
        parts: list[Any] = list(cast("tuple[Any, ...]", value))
        return f"({''.join(_literal(v) + ', ' for v in parts).strip()})"
    return f"float({str(value)!r})" if isinstance(value, float) else repr(value)


def _unpacked(statement: Statement) -> str:
    return "".join(f"s{k}, " for k in range(len(statement.loops))).strip() or "()"


def _in_range(loop: Loop) -> list[str]:
    """Texts of the conditions that a loop's variable is one of its values."""
    start, stop = code(loop.start, Identity()), code(loop.stop, Identity())
    if not isinstance(loop.step, Int) and not positive(loop.step, is_size):
        return [f"{loop.variable} in range({start}, {stop}, {code(loop.step, Identity())})"]
    match loop.step:
        case Int(step) if step < 0:
            tests = [f"{start} >= {loop.variable} > {stop}"]
        case _:
            tests = [f"{start} <= {loop.variable} < {stop}"]
    if loop.step not in (Int(1), Int(-1)):
        step = code(loop.step, Identity())
        tests.append(f"({loop.variable} - {start}) % {step} == 0")
    return tests
