"""Programs made of programs.

`compose` puts one program after another: outputs of the first are inputs of the second.
`inlined` gives the statements of a program for use inside a larger one, at sizes that are known.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from linnet.errors import ProgramError
from linnet.programs.expressions import names as expression_names
from linnet.programs.expressions import transform
from linnet.programs.grammar import (
    ArrayRole,
    Attribute,
    Expr,
    For,
    If,
    In,
    Int,
    Let,
    Lookup,
    Name,
    Out,
    Parameter,
    Program,
    Range,
    Run,
    Size,
    Stmt,
    Table,
    Temp,
    Tiles,
)
from linnet.programs.parse import parse_source
from linnet.programs.printing import show_expr
from linnet.programs.simplify import decided, simplified
from linnet.records import record


def compose(
    first: Program,
    second: Program,
    wires: Mapping[str, str],
    sizes: Mapping[str, str | int],
    keep: bool,
) -> Program:
    """`first`, then `second` with its inputs `wires` taken from outputs of `first`."""
    joined = _wires(first, second, wires)
    scalars = {name: _size(first, name, value) for name, value in sizes.items()}
    for name in scalars:
        if name not in second.roles(Size):
            known = ", ".join(second.roles(Size)) or "none"
            raise ProgramError(f"{second.name!r} has no size {name!r}; its sizes are {known}")
    renaming = _Renaming(_changed(first, second, joined, scalars), scalars)
    parameters: list[Parameter] = []
    for parameter in first.parameters:
        role = parameter.role
        if not keep and parameter.name in joined.values() and isinstance(role, Out):
            role = Temp(fill=role.fill)
        parameters.append(Parameter(parameter.name, role))
    known = {p.name for p in parameters}
    for parameter in second.parameters:
        name = renaming.names.get(parameter.name, parameter.name)
        if parameter.name in scalars or parameter.name in joined or name in known:
            continue
        role = parameter.role
        if isinstance(role, Temp) and role.of:
            role = Temp(renaming.names.get(role.of, role.of), role.fill)
        parameters.append(Parameter(name, role))
    tables = dict(first.tables) | {renaming.names.get(n, n): v for n, v in second.tables}
    same = first.file == second.file
    return Program(
        f"{first.name}_then_{second.name}",
        tuple(parameters),
        first.body + renaming.block(second.body),
        tuple(tables.items()),
        first.assumptions + tuple(renaming.expr(e) for e in second.assumptions),
        first.file if same else f"{first.file} + {second.file}",
        first.source if same else (),
    )


def inlined(
    program: Program,
    names: Mapping[str, str],
    sizes: Mapping[str, int | Expr],
    tables: Mapping[str, str],
    prefix: str,
) -> tuple[Stmt, ...]:
    """The body of `program` for use inside another program.

    `names` says what each of its arrays is called there, `sizes` what its sizes are (numbers, or
    expressions over names that are known there), `tables` what its tables are called, constant ones
    too. Loop variables begin with `prefix`, so that they meet no name of the other program.
    Scalars are written out, and what the sizes decide is decided: see `simplified`.
    """
    arrays = program.roles(In, Out, Temp)
    constants = dict(program.tables)
    _need(program, "arrays", arrays, names)
    _need(program, "sizes", program.roles(Size), sizes)
    _need(program, "tables", [*program.roles(Table), *constants], tables)
    _need_apart(program, arrays, names)
    scalars = {name: _number(program, name, value) for name, value in sizes.items()}
    taken = {*names.values(), *tables.values()}.union(*map(expression_names, scalars.values()))
    fresh: dict[str, str] = {}
    for name in sorted(_locals(program.body)):
        fresh[name] = new_name = _free(prefix + name, taken)
        taken.add(new_name)
    renaming = _Renaming({**names, **tables, **fresh}, scalars)
    for assumption in program.assumptions:
        if decided(renaming.expr(assumption)) is False:
            shown = ", ".join(f"{n} = {show_expr(e)}" for n, e in scalars.items())
            raise ProgramError(f"{program.name!r} needs {show_expr(assumption)}, but {shown}")
    known = {tables[name]: values for name, values in constants.items()}
    return simplified(renaming.block(program.body), known)


def _need(program: Program, what: str, known: Collection[str], given: Mapping[str, object]) -> None:
    """Complain of what is missing, and of what the program does not have."""
    missing = [name for name in known if name not in given]
    unknown = [name for name in given if name not in known]
    if missing or unknown:
        has = ", ".join(known) or "none"
        wrong = f"{', '.join(missing)} not given" if missing else f"it has no {', '.join(unknown)}"
        raise ProgramError(f"{program.name!r} cannot be inlined: its {what} are {has}; {wrong}")


def _need_apart(program: Program, arrays: Mapping[str, ArrayRole], names: Mapping[str, str]) -> None:
    """Only inputs may be one array in the other program: what is written is its own."""
    for name, role in arrays.items():
        others = [each for each in arrays if each != name and names[each] == names[name]]
        if others and not isinstance(role, In):
            raise ProgramError(
                f"{program.name!r} cannot be inlined: {name} is written, so it cannot be {names[name]} "
                f"as {others[0]} is; give each array that is not an input a name of its own"
            )


def _number(program: Program, name: str, value: int | Expr) -> Expr:
    """A size as an expression."""
    if isinstance(value, Expr):
        return value
    if value < 0:
        raise ProgramError(f"size {name!r} of {program.name!r} is {value}; sizes are 0 or more")
    return Int(int(value))


def _wires(first: Program, second: Program, wires: Mapping[str, str]) -> dict[str, str]:
    outputs, inputs = first.roles(Out), second.roles(In)
    joined = {name: name for name in inputs if name in outputs} | dict(wires)
    for target, source in joined.items():
        if target not in inputs:
            raise ProgramError(
                f"{second.name!r} has no input {target!r}; its inputs are {', '.join(inputs) or 'none'}"
            )
        if source not in outputs:
            raise ProgramError(
                f"{first.name!r} has no output {source!r}; its outputs are {', '.join(outputs) or 'none'}"
            )
    return joined


def _size(first: Program, name: str, value: str | int) -> Expr:
    """A size of the second program as an expression over the sizes of the first."""
    if isinstance(value, int):
        return Int(value)
    parameters = ", ".join(f"{n}: int" for n in first.roles(Size))
    try:
        read = parse_source(f"def size({parameters}):\n    value = {value}")
    except ProgramError as error:
        raise ProgramError(f"size {name!r}: {value!r} is not an expression: {error}") from error
    match read.body:
        case (Let("value", expr),):
            return expr
        case _:
            raise ProgramError(f"size {name!r}: {value!r} is not an expression over sizes of {first.name!r}")


def _changed(
    first: Program, second: Program, wires: Mapping[str, str], scalars: Mapping[str, Expr]
) -> dict[str, str]:
    """New names for those of the second program that mean something else, or are taken, in the first."""
    tables = dict(first.tables)
    roles = {p.name: p.role for p in first.parameters}
    taken = {*roles, *tables, *_locals(first.body)}
    own = {p.name for p in second.parameters} | dict(second.tables).keys()
    changed = dict(wires)
    for parameter in second.parameters:
        name = parameter.name
        shared = name in roles and type(parameter.role) is type(roles[name])
        if name in changed or name not in taken or name in scalars:
            continue
        if not (shared and isinstance(parameter.role, Size | Table | In)):
            changed[name] = _fresh(name, taken | own)
    for name, values in second.tables:
        if name in taken and tables.get(name) != values:
            changed[name] = _fresh(name, taken | own)
    for name in _locals(second.body):
        if name in {*roles, *tables}:
            changed[name] = _fresh(name, taken | own)
    return changed


@record
class _Renaming:
    """Statements with other names, and expressions in the place of sizes."""

    names: Mapping[str, str]
    scalars: Mapping[str, Expr]

    def expr(self, expr: Expr) -> Expr:
        return transform(expr, self.changed)

    def changed(self, expr: Expr) -> Expr | None:
        match expr:
            case Name(id):
                scalar = self.scalars.get(id)
                return scalar if scalar is not None else Name(self.names.get(id, id), at=expr.at)
            case Lookup(table, index):
                return Lookup(self.names.get(table, table), self.expr(index), at=expr.at)
            case _:
                return None

    def block(self, body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.stmt(s) for s in body)

    def stmt(self, stmt: Stmt) -> Stmt:
        names = self.names
        match stmt:
            case For(variable, start, stop, step, body):
                first, last, by = (self.expr(e) for e in (start, stop, step))
                return For(names.get(variable, variable), first, last, by, self.block(body), at=stmt.at)
            case If(condition, then, otherwise):
                return If(self.expr(condition), self.block(then), self.block(otherwise), at=stmt.at)
            case Let(name, value):
                return Let(names.get(name, name), self.expr(value), at=stmt.at)
            case Run(kernel, outputs, args, keywords):
                return Run(
                    kernel,
                    tuple(self.tiles(t) for t in outputs),
                    tuple(self.tiles(a) if isinstance(a, Tiles) else self.expr(a) for a in args),
                    tuple((k, v if isinstance(v, Attribute) else self.expr(v)) for k, v in keywords),
                    at=stmt.at,
                )

    def tiles(self, tiles: Tiles) -> Tiles:
        index = tuple(
            Range(self.expr(i.start), self.expr(i.stop), self.expr(i.step), at=i.at)
            if isinstance(i, Range)
            else self.expr(i)
            for i in tiles.index
        )
        return Tiles(self.names.get(tiles.array, tiles.array), index, at=tiles.at)


def _locals(body: tuple[Stmt, ...]) -> set[str]:
    """Loop variables and scalars anywhere in `body`."""
    names: set[str] = set()
    for stmt in body:
        match stmt:
            case For(variable, _, _, _, inner):
                names |= {variable} | _locals(inner)
            case If(_, then, otherwise):
                names |= _locals(then) | _locals(otherwise)
            case Let(name, _):
                names.add(name)
            case Run():
                pass
    return names


def _free(name: str, taken: set[str]) -> str:
    """`name`, or where it is taken a name like it."""
    return _fresh(name, taken) if name in taken else name


def _fresh(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
