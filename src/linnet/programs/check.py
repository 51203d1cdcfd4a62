"""The invariants of a program, checked after it is read, built, composed or received.

    names      every name is a size, a loop variable around it, or a scalar assigned before
    kinds      indices, bounds and steps are integers; conditions are Boolean; floats only in scalars
    loops      a loop variable hides no other name; a constant step is not 0
    scalars    a scalar is not carried from one iteration to the next
    arrays     an array has one rank; inputs are not written; outputs are; Temp("A") has one axis more than A
    kernels    a kernel is registered and is given as many outputs as it returns
    tables     a table is looked up, nothing else
    flattened  a statement depends on sizes and the loops around it alone, each after those outside it

Only structure is looked at here; which tiles are written and read is proved in `prove`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from linnet.errors import UnknownKernelError
from linnet.kernels import registry
from linnet.programs.check_roles import check_roles
from linnet.programs.diagnostics import Findings
from linnet.programs.expressions import names
from linnet.programs.grammar import (
    ARITHMETIC,
    COMPARISONS,
    FLOAT_ONLY,
    FUNCTIONS,
    Apply,
    At,
    Attribute,
    Binary,
    Choice,
    Expr,
    Float,
    For,
    If,
    In,
    Int,
    Kind,
    Let,
    Lookup,
    Name,
    Out,
    Program,
    Range,
    Run,
    Size,
    Stmt,
    Table,
    Temp,
    Tiles,
    Unary,
)
from linnet.programs.statements import Statement


def check(program: Program, *, kernels: bool = True) -> None:
    """Raise ProgramError with everything that is structurally wrong with `program`."""
    findings = Findings(program.name, program.file, program.source)
    _Checker(program, findings, kernels, frozenset()).run()
    findings.raise_if_any()


def check_into(program: Program, findings: Findings, partial: frozenset[str]) -> None:
    """Add what is wrong with a program of which only a part could be read.

    Names in `partial` may have been lost with the other part and are not complained of.
    """
    _Checker(program, findings, True, partial | {"*"}).run()


def check_statements(program: Program, statements: Sequence[Statement]) -> None:
    """The invariant of flattened programs; a violation is a fault of Linnet's own, not of the user's."""
    sizes = set(program.roles(Size))
    for statement in statements:
        known = set(sizes)
        used = [names(g) for g in statement.guards]
        for loop in statement.loops:
            used += [names(e) for e in (loop.start, loop.stop, loop.step)]
            assert all(u <= known for u in used), f"statement {statement.number} depends on an inner loop"
            known.add(loop.variable)
            used += [names(g) for g in loop.guards]
        for access in (*statement.writes, *statement.reads):
            inner = known | {loop.variable for loop in access.locals}
            assert all(names(e) <= inner for e in (*access.index, *access.guards)), access
        assert all(u <= known for u in used), f"statement {statement.number} depends on an unknown name"


@dataclass(slots=True)
class _Scope:
    """Names that have a value at one place of the program, and their kinds."""

    known: dict[str, Kind]
    loops: tuple[str, ...] = ()
    carried: frozenset[str] = frozenset()
    """Scalars that a loop around assigns later than here: reading them would carry a value over."""
    inner: dict[str, At | None] = field(default_factory=dict[str, At | None])
    """Scalars assigned only inside a loop or branch that has ended."""


class _Checker:
    def __init__(self, program: Program, findings: Findings, kernels: bool, partial: frozenset[str]) -> None:
        self.program = program
        self.kernels = kernels
        self.findings = findings
        self.partial = partial
        self.arrays = program.roles(In, Out, Temp)
        self.tables = {*program.roles(Table), *dict(program.tables)}
        self.ranks: dict[str, tuple[int, At | None]] = {}
        self.written: set[str] = set()

    def run(self) -> None:
        program = self.program
        sizes: dict[str, Kind] = dict.fromkeys(program.roles(Size), "int")
        labels = [p.name for p in program.parameters] + [name for name, _ in program.tables]
        for label in sorted({x for x in labels if labels.count(x) > 1}):
            self.findings.add(
                f"the name {label!r} is used for two parameters or tables", "rename one of them"
            )
        for expr in program.assumptions:
            self.condition(expr, _Scope(dict(sizes)))
        self.block(program.body, _Scope(dict(sizes)))
        check_roles(self.arrays, self.ranks, None if self.partial else self.written, self.findings)

    # -- statements

    def block(self, body: tuple[Stmt, ...], scope: _Scope) -> None:
        for stmt in body:
            match stmt:
                case Let(name, value):
                    kind = self.kind(value, scope)
                    if name in scope.loops or name in self.arrays or name in self.tables:
                        self.findings.add(
                            f"the scalar {name!r} hides a loop variable, array or table",
                            "give it another name",
                            stmt.at,
                        )
                    elif name in self.program.roles(Size):
                        self.findings.add(
                            f"the size {name!r} cannot be assigned", "give it another name", stmt.at
                        )
                    scope.known[name] = kind
                    scope.inner.pop(name, None)
                    scope.carried -= {name}
                case If():
                    self.branch(stmt, scope)
                case For():
                    self.loop(stmt, scope)
                case Run():
                    self.call(stmt, scope)

    def branch(self, stmt: If, scope: _Scope) -> None:
        self.condition(stmt.condition, scope)
        sides: list[_Scope] = []
        for body in (stmt.then, stmt.otherwise):
            side = _Scope(dict(scope.known), scope.loops, scope.carried, dict(scope.inner))
            self.block(body, side)
            sides.append(side)
        then, otherwise = sides
        for name in {*then.known, *otherwise.known}:
            if name in then.known and name in otherwise.known:
                scope.known[name] = _join(then.known[name], otherwise.known[name])
            else:
                scope.inner[name] = stmt.at
        scope.carried = then.carried | otherwise.carried

    def loop(self, stmt: For, scope: _Scope) -> None:
        for label, expr in (("start", stmt.start), ("stop", stmt.stop), ("step", stmt.step)):
            self.integer(expr, scope, f"the {label} of a loop")
        if stmt.step == Int(0):
            self.findings.add("the step of a loop is 0", "use a positive or negative step", stmt.at)
        if stmt.variable in scope.known or stmt.variable in self.arrays or stmt.variable in self.tables:
            self.findings.add(
                f"the loop variable {stmt.variable!r} hides another name",
                "give the loop a variable of its own",
                stmt.at,
            )
        assigned = _assigned(stmt.body)
        inside = _Scope(
            {**scope.known, stmt.variable: "int"},
            (*scope.loops, stmt.variable),
            scope.carried | (assigned & scope.known.keys()),
            dict(scope.inner),
        )
        self.block(stmt.body, inside)
        for name in assigned:
            scope.known.pop(name, None)
            scope.inner[name] = stmt.at

    def call(self, stmt: Run, scope: _Scope) -> None:
        if not stmt.outputs:
            self.findings.add("a kernel call writes at least one tile", "assign it to a tile", stmt.at)
        if self.kernels:
            self.kernel(stmt)
        for tiles in stmt.outputs:
            self.tile(tiles, scope)
            self.written.add(tiles.array)
            if isinstance(self.arrays.get(tiles.array), In):
                self.findings.add(
                    f"{tiles.array!r} is an input and cannot be written",
                    f"give {tiles.array} the role ln.Out or ln.Temp, or write another array",
                    tiles.at,
                )
        values = [*stmt.args, *(v for _, v in stmt.keywords)]
        for value in values:
            match value:
                case Tiles():
                    self.tile(value, scope)
                case Attribute():
                    self.attribute(value.value, stmt)
                case _:
                    self.kind(value, scope)

    def attribute(self, value: Any, stmt: Run) -> None:
        if isinstance(value, tuple):
            for part in cast("tuple[Any, ...]", value):
                self.attribute(part, stmt)
        elif isinstance(value, int) and not -(2**63) <= value < 2**64:
            self.findings.add(
                f"the attribute {value} of {stmt.kernel!r} is too large",
                "integers of attributes fit 64 bits; pass it as a float or a string",
                stmt.at,
            )

    def kernel(self, stmt: Run) -> None:
        try:
            known = registry.get(stmt.kernel)
        except UnknownKernelError as error:
            message, _, hint = str(error).partition(" (")
            self.findings.add(message, hint.rstrip(")"), stmt.at)
            return
        if known.outputs != len(stmt.outputs):
            self.findings.add(
                f"kernel {stmt.kernel!r} returns {_tiles(known.outputs)}, "
                f"but {_tiles(len(stmt.outputs))} on the left",
                f"write {known.outputs} tile{'s' * (known.outputs != 1)} on the left of `=`",
                stmt.at,
            )

    def tile(self, tiles: Tiles, scope: _Scope) -> None:
        if tiles.array not in self.arrays:
            self.findings.add(
                f"{tiles.array!r} is not an array of this program",
                f"add a parameter `{tiles.array}: ln.In`, ln.Out or ln.Temp",
                tiles.at,
            )
            return
        rank, _ = self.ranks.setdefault(tiles.array, (len(tiles.index), tiles.at))
        if rank != len(tiles.index):
            self.findings.add(
                f"{tiles.array!r} has {len(tiles.index)} indices here and {rank} before",
                "give it the same number of indices everywhere",
                tiles.at,
            )
        for piece in tiles.index:
            if isinstance(piece, Range):
                for label, expr in (("start", piece.start), ("stop", piece.stop), ("step", piece.step)):
                    self.integer(expr, scope, f"the {label} of a range of tiles")
                if isinstance(piece.step, Int) and piece.step.value < 1:
                    self.findings.add(
                        f"a range of tiles has the step {piece.step.value}",
                        "use a step of 1 or more",
                        piece.at,
                    )
            else:
                self.integer(piece, scope, "an index")

    # -- expressions

    def condition(self, expr: Expr, scope: _Scope) -> None:
        if self.kind(expr, scope) != "bool":
            self.findings.add("a condition must be a comparison", "write e.g. `if i > 0:`", expr.at)

    def integer(self, expr: Expr, scope: _Scope, what: str) -> None:
        kind = self.kind(expr, scope)
        if kind == "float":
            self.findings.add(
                f"{what} must be an integer, this is a float",
                "use // instead of /, ceil(log2(n)) instead of log2(n); floats go into scalar arguments only",
                expr.at,
            )
        elif kind == "bool":
            self.findings.add(
                f"{what} must be an integer, this is a condition", "write `1 if condition else 0`", expr.at
            )

    def kind(self, expr: Expr, scope: _Scope) -> Kind:
        """What kind of value `expr` has; says what is wrong with it on the way."""
        match expr:
            case Int(value):
                if abs(value) >= 2**62:
                    self.findings.add(
                        f"the integer {value} is too large", "integers in a program are below 2**62", expr.at
                    )
                return "int"
            case Float():
                return "float"
            case Name(id):
                return self.name(expr, id, scope)
            case Lookup(table, index):
                if table not in self.tables:
                    self.findings.add(
                        f"{table!r} is not a table", f"add a parameter `{table}: ln.Table`", expr.at
                    )
                self.integer(index, scope, "the index of a table")
                return "int"
            case Unary("not", operand):
                self.condition(operand, scope)
                return "bool"
            case Unary(_, operand):
                return _number(self.kind(operand, scope))
            case Binary(op, left, right) if op in ARITHMETIC:
                joined = _join(self.kind(left, scope), self.kind(right, scope))
                return "float" if op in FLOAT_ONLY else _number(joined)
            case Binary(op, left, right) if op in COMPARISONS:
                self.kind(left, scope)
                self.kind(right, scope)
                return "bool"
            case Binary(_, left, right):
                self.condition(left, scope)
                self.condition(right, scope)
                return "bool"
            case Apply(function, args):
                count = FUNCTIONS[function]
                if (count is None and len(args) < 2) or (count is not None and len(args) != count):
                    self.findings.add(f"{function} takes another number of arguments", "", expr.at)
                kinds = [self.kind(a, scope) for a in args]
                if function in FLOAT_ONLY:
                    return "float"
                if function in ("ceil_log2", "floor_log2"):
                    for argument in args:
                        self.integer(argument, scope, "the argument of log2 here")
                    return "int"
                return "float" if "float" in kinds else "int"
            case Choice(condition, then, otherwise):
                self.condition(condition, scope)
                return _join(self.kind(then, scope), self.kind(otherwise, scope))

    def name(self, expr: Expr, id: str, scope: _Scope) -> Kind:
        if id in scope.carried:
            self.findings.add(
                f"{id!r} would carry its value from one iteration to the next",
                "compute it from the loop variables, or keep the value in a tile",
                expr.at,
            )
        elif id in scope.known:
            return scope.known[id]
        elif id in scope.inner:
            place = scope.inner[id]
            where = f" (line {place.line})" if place else ""
            self.findings.add(
                f"{id!r} has no value here: it is assigned only inside a loop or one branch{where}",
                "assign it before, or in both branches",
                expr.at,
            )
        elif id in self.partial:
            pass
        elif id in self.arrays:
            self.findings.add(f"{id!r} is an array; give it indices", f"write {id}[i, ...]", expr.at)
        elif id in self.tables:
            self.findings.add(f"{id!r} is a table; look up an entry", f"write {id}[i]", expr.at)
        else:
            self.findings.add(
                f"the name {id!r} is not known here",
                f"it is no loop variable, size or scalar; add a parameter `{id}: int`?",
                expr.at,
            )
        return "int"


def _join(left: Kind, right: Kind) -> Kind:
    if left == right:
        return left
    return "float" if "float" in (left, right) else "int"


def _number(kind: Kind) -> Kind:
    return "int" if kind == "bool" else kind


def _tiles(count: int) -> str:
    return "1 tile" if count == 1 else f"{count} tiles"


def _assigned(body: tuple[Stmt, ...]) -> frozenset[str]:
    """Scalars assigned anywhere inside `body`."""
    names: set[str] = set()
    for stmt in body:
        match stmt:
            case Let(name, _):
                names.add(name)
            case If():
                names |= _assigned(stmt.then) | _assigned(stmt.otherwise)
            case For():
                names |= _assigned(stmt.body)
            case Run():
                pass
    return frozenset(names)
