"""Two programs one after the other as one program: outputs of the first are inputs of the second."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from linnet.errors import ProgramError
from linnet.programs.expressions import substitute, transform
from linnet.programs.grammar import (
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
    renaming = _Renaming(first, second, joined, scalars)
    parameters: list[Parameter] = []
    for parameter in first.parameters:
        role = parameter.role
        if not keep and parameter.name in joined.values() and role == Out():
            role = Temp()
        parameters.append(Parameter(parameter.name, role))
    known = {p.name for p in parameters}
    for parameter in second.parameters:
        name = renaming.names.get(parameter.name, parameter.name)
        if parameter.name in scalars or parameter.name in joined or name in known:
            continue
        role = parameter.role
        if isinstance(role, Temp) and role.of:
            role = Temp(renaming.names.get(role.of, role.of))
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


@dataclass(slots=True)
class _Renaming:
    """Names of the second program that mean something else, or are taken, in the first."""

    first: Program
    second: Program
    wires: dict[str, str]
    scalars: dict[str, Expr]
    names: dict[str, str] = field(init=False)

    def __post_init__(self) -> None:
        self.names = self.changed()

    def changed(self) -> dict[str, str]:
        tables = dict(self.first.tables)
        roles = {p.name: p.role for p in self.first.parameters}
        taken = {*roles, *tables, *_locals(self.first.body)}
        own = {p.name for p in self.second.parameters} | dict(self.second.tables).keys()
        changed = dict(self.wires)
        for parameter in self.second.parameters:
            name = parameter.name
            shared = name in roles and type(parameter.role) is type(roles[name])
            if name in changed or name not in taken or name in self.scalars:
                continue
            if not (shared and isinstance(parameter.role, Size | Table | In)):
                changed[name] = _fresh(name, taken | own)
        for name, values in self.second.tables:
            if name in taken and tables.get(name) != values:
                changed[name] = _fresh(name, taken | own)
        for name in _locals(self.second.body):
            if name in {*roles, *tables}:
                changed[name] = _fresh(name, taken | own)
        return changed

    def expr(self, expr: Expr) -> Expr:
        names = self.names

        def change(e: Expr) -> Expr | None:
            match e:
                case Lookup(table, index) if table in names:
                    return Lookup(names[table], transform(index, change), at=e.at)
                case _:
                    return None

        values: dict[str, Expr] = {a: Name(b) for a, b in names.items()}
        return substitute(transform(expr, change), values | self.scalars)

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
    found: set[str] = set()
    for stmt in body:
        match stmt:
            case For(variable, _, _, _, inner):
                found |= {variable} | _locals(inner)
            case If(_, then, otherwise):
                found |= _locals(then) | _locals(otherwise)
            case Let(name, _):
                found.add(name)
            case Run():
                pass
    return found


def _fresh(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_{number}" in taken:
        number += 1
    return f"{name}_{number}"
