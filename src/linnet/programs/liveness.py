"""The part of a program that some of its results need.

Whole arrays are looked at, not tiles: a kernel call stays if any array it writes is wanted, or is
read by a call that stays.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

from linnet.errors import ProgramError
from linnet.programs.expressions import negate, walk
from linnet.programs.grammar import (
    Expr,
    For,
    If,
    Let,
    Lookup,
    Name,
    Out,
    Parameter,
    Program,
    Range,
    Role,
    Run,
    Size,
    Stmt,
    Table,
    Temp,
    Tiles,
)


def live(program: Program, wanted: Collection[str]) -> Program:
    """`program` without what the results `wanted` do not need.

    A call that stays keeps all its outputs; results that are not wanted become intermediate.
    Inputs, tables and intermediate arrays that nothing uses any more are dropped. Sizes stay.
    """
    results = program.roles(Out)
    for name in wanted:
        if name not in results:
            known = ", ".join(results) or "none"
            raise ProgramError(f"{program.name!r} has no output {name!r}; its outputs are {known}")
    needed = _needed(program, wanted)
    body = _kept(program.body, lambda run: any(t.array in needed for t in run.outputs))
    body = _without_idle_scalars(body)
    used = needed | {t.array for run in _runs(body) for t in run.outputs}
    tables = {e.table for e in _expressions(program, body) if isinstance(e, Lookup)}
    parameters: list[Parameter] = []
    for name, role in ((p.name, p.role) for p in program.parameters):
        if isinstance(role, Size) or name in (tables if isinstance(role, Table) else used):
            parameters.append(Parameter(name, _role(name, role, wanted, used)))
    constants = tuple((name, values) for name, values in program.tables if name in tables)
    return Program(
        program.name,
        tuple(parameters),
        body,
        constants,
        program.assumptions,
        program.file,
        program.source,
    )


def _needed(program: Program, wanted: Collection[str]) -> set[str]:
    """Arrays that are wanted, or are read on the way to those that are."""
    bases = {name: role.of for name, role in program.roles(Temp).items() if role.of}
    runs = list(_runs(program.body))
    needed = set(wanted)
    while True:
        before = len(needed)
        for run in reversed(runs):
            if any(t.array in needed for t in run.outputs):
                needed |= {t.array for t in run.args if isinstance(t, Tiles)}
        # Version 0 of an array with versions is another array.
        needed |= {base for name, base in bases.items() if name in needed}
        if len(needed) == before:
            return needed


def _role(name: str, role: Role, wanted: Collection[str], used: Collection[str]) -> Role:
    match role:
        case Out(fill) if name not in wanted:
            return Temp(fill=fill)
        case Temp(str(of)) if of not in used:
            return Temp()  # written by a call that stays, and never read: it needs no version 0
        case _:
            return role


def _kept(body: Sequence[Stmt], keep: Callable[[Run], bool]) -> tuple[Stmt, ...]:
    """Statements with only those calls that are to be kept; what holds no call any more is dropped."""
    statements: list[Stmt] = []
    for stmt in body:
        match stmt:
            case For(variable, start, stop, step, inner):
                inside = _kept(inner, keep)
                if any(_runs(inside)):
                    statements.append(For(variable, start, stop, step, inside, at=stmt.at))
            case If(condition, then, otherwise):
                statements += _branch(stmt, condition, _kept(then, keep), _kept(otherwise, keep))
            case Run():
                statements += [stmt] if keep(stmt) else []
            case Let():
                statements.append(stmt)
    return tuple(statements)


def _branch(stmt: If, condition: Expr, then: tuple[Stmt, ...], otherwise: tuple[Stmt, ...]) -> list[Stmt]:
    if then:
        return [If(condition, then, otherwise, at=stmt.at)]
    return [If(negate(condition), otherwise, (), at=stmt.at)] if otherwise else []


def _without_idle_scalars(body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """Statements without scalars that nothing reads, and without branches that only had such."""
    while True:
        read = {e.id for part in _parts(body) for e in walk(part) if isinstance(e, Name)}
        smaller = _without(body, read)
        if smaller == body:
            return body
        body = smaller


def _without(body: Sequence[Stmt], read: Collection[str]) -> tuple[Stmt, ...]:
    statements: list[Stmt] = []
    for stmt in body:
        match stmt:
            case Let(name, _) if name not in read:
                pass
            case For(variable, start, stop, step, inner):
                statements.append(For(variable, start, stop, step, _without(inner, read), at=stmt.at))
            case If(condition, then, otherwise):
                statements += _branch(stmt, condition, _without(then, read), _without(otherwise, read))
            case _:
                statements.append(stmt)
    return tuple(statements)


def _runs(body: Sequence[Stmt]) -> Iterator[Run]:
    """All kernel calls, in source order."""
    for stmt in body:
        match stmt:
            case Run():
                yield stmt
            case For():
                yield from _runs(stmt.body)
            case If():
                yield from _runs(stmt.then)
                yield from _runs(stmt.otherwise)
            case Let():
                pass


def _expressions(program: Program, body: Sequence[Stmt]) -> Iterator[Expr]:
    """Every expression of `body` and of the assumptions, with all inside it."""
    for part in (*program.assumptions, *_parts(body)):
        yield from walk(part)


def _parts(body: Sequence[Stmt]) -> Iterator[Expr]:
    """The expressions that statements are made of."""
    for stmt in body:
        match stmt:
            case Let(_, value):
                yield value
            case For(_, start, stop, step, inner):
                yield from (start, stop, step)
                yield from _parts(inner)
            case If(condition, then, otherwise):
                yield condition
                yield from _parts(then)
                yield from _parts(otherwise)
            case Run(_, outputs, args, keywords):
                for value in (*outputs, *args, *(v for _, v in keywords)):
                    if isinstance(value, Tiles):
                        yield from _indices(value)
                    elif isinstance(value, Expr):
                        yield value


def _indices(tiles: Tiles) -> Iterator[Expr]:
    for piece in tiles.index:
        if isinstance(piece, Range):
            yield from (piece.start, piece.stop, piece.step)
        else:
            yield piece
