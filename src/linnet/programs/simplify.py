"""Programs with what is known already worked out: smaller programs are analysed faster.

Where sizes have become numbers, many conditions hold always or never, and many loops run once
or not at all. What decides is the span of an expression: the least and the greatest value it can
have while the loops around it run. Spans are never too narrow, so whatever they decide is so.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from linnet.errors import ProgramError
from linnet.programs.expressions import MAX_BITS, SCALAR, ceil_log2, floor_log2, negate, parts
from linnet.programs.grammar import (
    COMPARISONS,
    FLOAT_ONLY,
    Apply,
    Binary,
    Choice,
    Expr,
    Float,
    For,
    If,
    Int,
    Let,
    Lookup,
    Name,
    Range,
    Run,
    Stmt,
    Tiles,
    Unary,
)

Span = tuple[int, int]
"""The least and the greatest value."""
Tables = Mapping[str, Sequence[int]]

_OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_COMPARE: dict[str, Callable[[int, int], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def simplified(body: Sequence[Stmt], tables: Tables | None = None) -> tuple[Stmt, ...]:
    """`body` without scalars, branches never taken, and loops that run once or not at all.

    `tables` holds the tables whose entries are known. Kernel calls, what they read and write, and
    their order stay as they are.
    """
    return tuple(_Simplifier(tables or {}).block(body, {}))


def decided(condition: Expr) -> bool | None:
    """Whether a condition holds whatever the values of its names are; None if that depends."""
    return _Simplifier({}).holds(condition)


@dataclass(slots=True)
class _Simplifier:
    tables: Tables
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    """Of the variables of the loops around."""

    # -- statements

    def block(self, body: Sequence[Stmt], scalars: dict[str, Expr]) -> list[Stmt]:
        """Statements with what stands for names in `scalars`; scalars assigned are added to them."""
        statements: list[Stmt] = []
        for stmt in body:
            match stmt:
                case Let(name, value):
                    scalars[name] = self.expr(value, scalars)
                case For():
                    statements += self.loop(stmt, scalars)
                case If():
                    statements += self.branch(stmt, scalars)
                case Run():
                    statements.append(self.call(stmt, scalars))
        return statements

    def loop(self, stmt: For, scalars: dict[str, Expr]) -> list[Stmt]:
        start, stop, step = (self.expr(e, scalars) for e in (stmt.start, stmt.stop, stmt.step))
        inside = dict(scalars)  # scalars of a loop end with it
        inside.pop(stmt.variable, None)
        match start, stop, step:
            case Int(first), Int(last), Int(by) if by and len(range(first, last, by)) == 1:
                inside[stmt.variable] = start
                return self.block(stmt.body, inside)
            case _:
                span = self.looped(start, stop, step)
        if span and span[0] > span[1]:
            return []
        outside = self.spans
        self.spans = {name: s for name, s in outside.items() if name != stmt.variable}
        if span:
            self.spans[stmt.variable] = span
        body = self.block(stmt.body, inside)
        self.spans = outside
        return [For(stmt.variable, start, stop, step, tuple(body), at=stmt.at)] if body else []

    def looped(self, start: Expr, stop: Expr, step: Expr) -> Span | None:
        """What the variable of a loop runs through; the least is above the greatest if it never runs."""
        first, last = self.span(start), self.span(stop)
        match start, stop, step:
            case Int(a), Int(b), Int(by) if by:
                values = range(a, b, by)
                return (min(values), max(values)) if values else (0, -1)
            case _, _, Int(by) if first and last and by:
                return (first[0], last[1] - 1) if by > 0 else (last[0] + 1, first[1])
            case _:
                return None

    def branch(self, stmt: If, scalars: dict[str, Expr]) -> list[Stmt]:
        condition = self.expr(stmt.condition, scalars)
        match self.holds(condition):
            case True:
                return self.block(stmt.then, scalars)
            case False:
                return self.block(stmt.otherwise, scalars)
            case None:
                pass
        sides = dict(scalars), dict(scalars)
        then, otherwise = (
            tuple(self.block(body, side))
            for body, side in zip((stmt.then, stmt.otherwise), sides, strict=True)
        )
        for name in sides[0].keys() & sides[1].keys():
            one, other = sides[0][name], sides[1][name]
            scalars[name] = one if one == other else Choice(condition, one, other)
        if then:
            return [If(condition, then, otherwise, at=stmt.at)]
        return [If(negate(condition), otherwise, (), at=stmt.at)] if otherwise else []

    def call(self, run: Run, scalars: Mapping[str, Expr]) -> Run:
        return Run(
            run.kernel,
            tuple(self.tiles(t, scalars) for t in run.outputs),
            tuple(
                self.tiles(a, scalars) if isinstance(a, Tiles) else self.expr(a, scalars) for a in run.args
            ),
            tuple((k, self.expr(v, scalars) if isinstance(v, Expr) else v) for k, v in run.keywords),
            at=run.at,
        )

    def tiles(self, tiles: Tiles, scalars: Mapping[str, Expr]) -> Tiles:
        index = tuple(
            Range(*(self.expr(e, scalars) for e in (i.start, i.stop, i.step)), at=i.at)
            if isinstance(i, Range)
            else self.expr(i, scalars)
            for i in tiles.index
        )
        return Tiles(tiles.array, index, at=tiles.at)

    # -- expressions

    def expr(self, expr: Expr, scalars: Mapping[str, Expr]) -> Expr:
        """`expr` with scalars written out and with arithmetic on numbers done."""
        inner: Callable[[Expr], Expr] = lambda e: self.expr(e, scalars)  # noqa: E731
        match expr:
            case Int() | Float():
                return expr
            case Name(id):
                return scalars.get(id, expr)
            case Lookup(table, index):
                return self.looked_up(table, inner(index), expr)
            case Unary(op, operand):
                return _worked_out(Unary(op, inner(operand), at=expr.at))
            case Binary(op, left, right):
                return self.binary(Binary(op, inner(left), inner(right), at=expr.at))
            case Apply(function, args):
                return self.apply(Apply(function, tuple(map(inner, args)), at=expr.at))
            case Choice(condition, then, otherwise):
                asked = inner(condition)
                match self.holds(asked):
                    case True:
                        return inner(then)
                    case False:
                        return inner(otherwise)
                    case None:
                        return Choice(asked, inner(then), inner(otherwise), at=expr.at)

    def looked_up(self, table: str, index: Expr, expr: Expr) -> Expr:
        values = self.tables.get(table, ())
        if isinstance(index, Int) and 0 <= index.value < len(values):
            return Int(values[index.value], at=expr.at)
        return Lookup(table, index, at=expr.at)

    def binary(self, expr: Binary) -> Expr:
        match expr:
            case Binary("and" | "or" as op, left, right):
                neutral = op == "and"  # `True and x` is x, `False or x` is x
                if self.holds(left) is neutral:
                    return right
                return left if self.holds(right) is neutral else expr
            case Binary("+", Int(0), x) | Binary("+" | "-", x, Int(0)) if _is_integer(x):
                return x
            case Binary("*", Int(1), x) | Binary("*" | "//", x, Int(1)) if _is_integer(x):
                return x
            case _:
                return _worked_out(expr)

    def apply(self, expr: Apply) -> Expr:
        match expr:
            case Apply("min" | "max" as function, (left, right)) if _is_integer(left) and _is_integer(right):
                below = self.holds(Binary("<=", left, right))
                if below is None:
                    return expr
                return left if below is (function == "min") else right
            case _:
                return _worked_out(expr)

    def holds(self, condition: Expr) -> bool | None:
        """Whether a condition holds always or never, as far as the spans of its sides say."""
        match condition:
            case Unary("not", operand):
                known = self.holds(operand)
                return None if known is None else not known
            case Binary("and", left, right):
                return _all((self.holds(left), self.holds(right)))
            case Binary("or", left, right):
                return _any((self.holds(left), self.holds(right)))
            case Binary(op, left, right) if op in COMPARISONS:
                one, other = self.span(left), self.span(right)
                return _compared(op, one, other) if one and other else None
            case _:
                return None

    def span(self, expr: Expr) -> Span | None:
        """The least and the greatest value that `expr` can have, where that is simple to say."""
        match expr:
            case Int(value):
                return value, value
            case Name(id):
                return self.spans.get(id)
            case Lookup(table, _):
                values = self.tables.get(table, ())
                return (min(values), max(values)) if values else None
            case Choice(_, then, otherwise):
                sides = self.span(then), self.span(otherwise)
                return _hull(sides[0], sides[1]) if sides[0] and sides[1] else None
            case _:
                pass
        spans = [self.span(e) for e in parts(expr)]
        inside = [s for s in spans if s is not None]
        return _span(expr, inside) if len(inside) == len(spans) else None


def _span(expr: Expr, inside: Sequence[Span]) -> Span | None:
    """The span of an expression from those of its parts."""
    match expr, inside:
        case Unary("-"), [(low, high)]:
            return -high, -low
        case Binary("+"), [(a, b), (c, d)]:
            return a + c, b + d
        case Binary("-"), [(a, b), (c, d)]:
            return a - d, b - c
        case Binary("*"), [(a, b), (c, d)]:
            ends = (a * c, a * d, b * c, b * d)
            return min(ends), max(ends)
        case Binary("//"), [(a, b), (c, d)] if c == d > 0:
            return a // c, b // c
        case Binary("%"), [(a, b), (c, d)] if c == d > 0:
            return (a % c, b % c) if a // c == b // c else (0, c - 1)
        case Binary("**", Int(2)), [_, (c, d)] if 0 <= c <= d < MAX_BITS:
            return 2**c, 2**d
        case Apply("min" | "max" as function), _:
            choose = min if function == "min" else max
            return choose(s[0] for s in inside), choose(s[1] for s in inside)
        case Apply("ceil_log2"), [(a, b)] if 1 <= a <= b:
            return ceil_log2(a), ceil_log2(b)
        case Apply("floor_log2"), [(a, b)] if 1 <= a <= b:
            return floor_log2(a), floor_log2(b)
        case _:
            return None


def _hull(one: Span, other: Span) -> Span:
    return min(one[0], other[0]), max(one[1], other[1])


def _compared(op: str, left: Span, right: Span) -> bool | None:
    """What a comparison of any value of `left` with any of `right` gives, if always the same."""
    if op in ("==", "!="):
        if left[1] < right[0] or right[1] < left[0]:
            return op == "!="
        return (op == "==") if left == right and left[0] == left[1] else None
    # If the pair that is nearest to failing agrees, all do; and the other way round.
    hardest, easiest = (left[1], right[0]), (left[0], right[1])
    if op in (">", ">="):
        hardest, easiest = easiest, hardest
    if _COMPARE[op](*hardest):
        return True
    return False if _COMPARE[_OPPOSITE[op]](*easiest) else None


def _all(known: Sequence[bool | None]) -> bool | None:
    if False in known:
        return False
    return None if None in known else True


def _any(known: Sequence[bool | None]) -> bool | None:
    if True in known:
        return True
    return None if None in known else False


def _worked_out(expr: Unary | Binary | Apply) -> Expr:
    """The integer that an expression of integers is; what has no integer value stays as it is."""
    values = [e.value for e in parts(expr) if isinstance(e, Int)]
    if len(values) < len(parts(expr)):
        return expr
    if isinstance(expr, Unary):
        return Int(-values[0], at=expr.at) if expr.op == "-" else expr
    function = expr.op if isinstance(expr, Binary) else expr.function
    if function not in SCALAR or function in FLOAT_ONLY:
        return expr
    try:
        value = SCALAR[function](*values)
    except (ProgramError, ArithmeticError):
        return expr  # said when the program is bound, if a task needs it
    return Int(value, at=expr.at) if type(value) is int and abs(value) < 2 ** (MAX_BITS - 1) else expr


def _is_integer(expr: Expr) -> bool:
    """Whether an expression is surely an integer: no float, no condition."""
    match expr:
        case Int() | Name() | Lookup():
            return True
        case Unary(op, operand):
            return op == "-" and _is_integer(operand)
        case Binary(op, left, right):
            return op not in (*COMPARISONS, "and", "or", "/") and _is_integer(left) and _is_integer(right)
        case Apply(function, args):
            return function not in FLOAT_ONLY and all(map(_is_integer, args))
        case Choice(_, then, otherwise):
            return _is_integer(then) and _is_integer(otherwise)
        case Float():
            return False
