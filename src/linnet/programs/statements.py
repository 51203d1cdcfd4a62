"""Programs flattened: each kernel call with all that decides whether and on what it runs.

The analysis works on this form. Scalars are substituted away, branches have become
guards, and a range of tiles has become a loop variable of its own (a *local* of the
access), so that one rule, "loops, conditions, and index expressions over them", covers
everything the later passes have to solve, count, prove, and enumerate.
"""

from __future__ import annotations

from linnet.programs.expressions import conjuncts, folded, negate, substitute, substitute_range
from linnet.programs.grammar import (
    At,
    Binary,
    Choice,
    Expr,
    For,
    If,
    Int,
    Let,
    Name,
    Program,
    Range,
    Run,
    Stmt,
    Temp,
    Tiles,
)
from linnet.records import record


@record
class Loop:
    """`variable` takes the values of `range(start, stop, step)`."""

    variable: str
    start: Expr
    stop: Expr
    step: Expr
    guards: tuple[Expr, ...] = ()
    """Conditions on this variable and those outside it, tested before going further inside."""


@record
class Access:
    """The tiles that one operand or result of a statement names."""

    array: str
    index: tuple[Expr, ...]
    """One expression per axis, over the statement's loop variables and `locals`."""
    locals: tuple[Loop, ...] = ()
    """One loop for each axis that has a range."""
    guards: tuple[Expr, ...] = ()
    """Conditions under which this access is meant (version 0 of a Temp is its base array)."""
    at: At | None = None


@record
class Statement:
    """One kernel call in its loops."""

    number: int
    run: Run
    """The call, with scalars substituted."""
    loops: tuple[Loop, ...]
    guards: tuple[Expr, ...]
    """Conditions that depend on no loop variable."""
    writes: tuple[Access, ...]
    reads: tuple[Access, ...]
    place: tuple[int, ...]
    """A rising number for each loop around it and for itself: interleaved with the loop values,
    tuples compare as the program runs."""

    @property
    def kernel(self) -> str:
        return self.run.kernel

    @property
    def variables(self) -> tuple[str, ...]:
        return tuple(loop.variable for loop in self.loops)

    @property
    def conditions(self) -> tuple[Expr, ...]:
        """All guards, outermost first."""
        return self.guards + tuple(g for loop in self.loops for g in loop.guards)


def flatten(program: Program) -> tuple[Statement, ...]:
    """The statements of a checked program, in source order."""
    bases = {p.name: p.role.of for p in program.parameters if isinstance(p.role, Temp) and p.role.of}
    flattener = _Flattener(bases)
    flattener.block(program.body, {}, (), (), ())
    return tuple(flattener.made)


class _Flattener:
    def __init__(self, bases: dict[str, str]) -> None:
        self.bases = bases
        self.made: list[Statement] = []
        self.position = 0

    def block(
        self,
        body: tuple[Stmt, ...],
        scalars: dict[str, Expr],
        loops: tuple[Loop, ...],
        guards: tuple[Expr, ...],
        place: tuple[int, ...],
    ) -> None:
        """Flatten a body; statements of a branch count as siblings of those around it."""
        for stmt in body:
            self.position += 1
            match stmt:
                case Let(name, value):
                    scalars[name] = substitute(value, scalars)
                case For():
                    loop = Loop(
                        stmt.variable,
                        folded(substitute(stmt.start, scalars)),
                        folded(substitute(stmt.stop, scalars)),
                        folded(substitute(stmt.step, scalars)),
                    )
                    inside = (*place, self.position)
                    self.block(stmt.body, dict(scalars), (*loops, loop), guards, inside)
                case If():
                    self.branch(stmt, scalars, loops, guards, place)
                case Run():
                    self.statement(stmt, scalars, loops, guards, (*place, self.position))

    def branch(
        self,
        stmt: If,
        scalars: dict[str, Expr],
        loops: tuple[Loop, ...],
        guards: tuple[Expr, ...],
        place: tuple[int, ...],
    ) -> None:
        condition = substitute(stmt.condition, scalars)
        sides: list[dict[str, Expr]] = []
        for body, holds in ((stmt.then, condition), (stmt.otherwise, negate(condition))):
            inside = dict(scalars)
            self.block(body, inside, *_guarded(loops, guards, tuple(conjuncts(holds))), place)
            sides.append(inside)
        then, otherwise = sides
        for name in then.keys() & otherwise.keys():
            same = then[name] == otherwise[name]
            scalars[name] = then[name] if same else Choice(condition, then[name], otherwise[name])

    def statement(
        self,
        run: Run,
        scalars: dict[str, Expr],
        loops: tuple[Loop, ...],
        guards: tuple[Expr, ...],
        place: tuple[int, ...],
    ) -> None:
        def settle(value: object) -> object:
            match value:
                case Tiles(array, index):
                    settled = tuple(
                        substitute_range(i, scalars) if isinstance(i, Range) else substitute(i, scalars)
                        for i in index
                    )
                    return Tiles(array, settled, at=value.at)
                case _ if isinstance(value, Expr):
                    return substitute(value, scalars)
                case _:
                    return value

        outputs = tuple(settle(t) for t in run.outputs)
        args = tuple(settle(a) for a in run.args)
        keywords = tuple((k, settle(v)) for k, v in run.keywords)
        settled = Run(run.kernel, outputs, args, keywords, at=run.at)  # type: ignore[arg-type]
        writes = tuple(_access(t) for t in settled.outputs)
        reads: list[Access] = []
        for argument in settled.args:
            if isinstance(argument, Tiles):
                reads.extend(self.read(argument))
        self.made.append(Statement(len(self.made), settled, loops, guards, writes, tuple(reads), place))

    def read(self, tiles: Tiles) -> list[Access]:
        """The access itself and, where version 0 is another array, that one under its condition."""
        access = _access(tiles)
        accesses = [access]
        base = self.bases.get(tiles.array)
        while base is not None:
            first = access.index[0]
            guards = (*access.guards, Binary("==", first, Int(0)))
            access = Access(base, access.index[1:], access.locals, guards, access.at)
            accesses.append(access)
            base = self.bases.get(base)
        return accesses


def _guarded(
    loops: tuple[Loop, ...], guards: tuple[Expr, ...], more: tuple[Expr, ...]
) -> tuple[tuple[Loop, ...], tuple[Expr, ...]]:
    """Add conditions at the innermost loop there is (or before all loops)."""
    if not loops:
        return loops, guards + more
    last = loops[-1]
    wider = Loop(last.variable, last.start, last.stop, last.step, last.guards + more)
    return (*loops[:-1], wider), guards


def _access(tiles: Tiles) -> Access:
    index: list[Expr] = []
    locals: list[Loop] = []
    for axis, piece in enumerate(tiles.index):
        if isinstance(piece, Range):
            variable = f"{tiles.array}:{axis}"  # no user's name has a colon
            locals.append(Loop(variable, folded(piece.start), folded(piece.stop), folded(piece.step)))
            index.append(Name(variable))
        else:
            index.append(piece)
    return Access(tiles.array, tuple(index), tuple(locals), (), tiles.at)
