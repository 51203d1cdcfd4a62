"""From Python's syntax to expressions of loop nests, and to the loops of a `for`."""

from __future__ import annotations

import ast

from linnet.loopnests.language import (
    Binary,
    Call,
    Choose,
    Compare,
    Const,
    Expr,
    Fold,
    Index,
    Load,
    Logic,
    Loop,
    Name,
    Size,
    Unary,
)
from linnet.loopnests.refusing import Origin
from linnet.programs.grammar import At

BINARY = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
COMPARE = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
UNARY = {ast.USub: "-", ast.UAdd: "+", ast.Not: "not", ast.Invert: "~"}
FOLDS = {"sum": "+", "any": "or", "all": "and", "min": "min", "max": "max"}
MONOIDS = {"+": "+", "*": "*", "&": "&", "|": "|", "^": "^"}
"""Operators whose `x ⊕= v` is the update of a monoid."""


class WholeArrays(Exception):
    """The statements are no nest: something in them is about whole arrays."""


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` as text; None if it is anything else.

    >>> dotted(ast.parse("math.sqrt", mode="eval").body)
    'math.sqrt'
    """
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = dotted(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def is_counting(node: ast.expr) -> str | None:
    """ "range", "grid" or "wavefront" if a loop over the expression counts; None otherwise."""
    if not isinstance(node, ast.Call) or node.keywords:
        return None
    words = dotted(node.func)
    last = None if words is None else words.rsplit(".", 1)[-1]
    return last if words == "range" or last in ("grid", "wavefront") else None


class ExpressionReader:
    """Reads expressions of one function."""

    def __init__(self, origin: Origin, indent: int = 0) -> None:
        self.origin = origin
        self.indent = indent
        self._fresh = 0

    def at(self, node: ast.AST) -> At:
        """Where a node stands in the user's file."""
        line, column = getattr(node, "lineno", 0), getattr(node, "col_offset", 0)
        end = getattr(node, "end_col_offset", column + 1)
        end = end if getattr(node, "end_lineno", line) == line else 10**6
        return At(line, column + self.indent, end + self.indent)

    def loops(self, target: ast.expr, counted: ast.expr, inside: frozenset[str]) -> list[Loop]:
        """The loops of one `for`: one for `range`, several for `ln.grid`."""
        kind = is_counting(counted)
        if kind is None or not isinstance(counted, ast.Call):
            raise WholeArrays
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        if not all(isinstance(name, ast.Name) for name in names):
            self.origin.refuse(
                "a loop needs plain names for its variables",
                "write `for i, j in ln.grid(m, n)`",
                self.at(target),
            )
        variables = [name.id for name in names if isinstance(name, ast.Name)]
        if len(set(variables)) != len(variables) or set(variables) & inside:
            self.origin.refuse(
                f"the loop variable {variables[0]!r} is used by a loop around it",
                "give each loop a name of its own",
                self.at(target),
            )
        if kind == "range":
            ranges = [counted.args]
        else:
            ranges = [self._range(each, len(variables), len(counted.args)) for each in counted.args]
            if len(ranges) == 1 and isinstance(ranges[0][0], ast.Starred):
                return self._shaped(ranges[0][0], variables, kind == "wavefront")
        if len(ranges) != len(variables) or isinstance(target, ast.Tuple) != (
            kind != "range" and len(ranges) > 1
        ):
            self.origin.refuse(
                f"{len(variables)} loop variables for {len(ranges)} ranges",
                "give each range one variable",
                self.at(target),
            )
        made: list[Loop] = []
        for variable, arguments in zip(variables, ranges, strict=True):
            if not 1 <= len(arguments) <= 3:
                self.origin.refuse(
                    "a range has one to three numbers", "write `range(start, stop, step)`", self.at(counted)
                )
            # Ranges of a grid are known before its first step: none depends on another.
            numbers = [self.expression(each, inside) for each in arguments]
            start, stop, step = (
                (Const(0), numbers[0], Const(1)) if len(numbers) == 1
                else (numbers[0], numbers[1], numbers[2] if len(numbers) == 3 else Const(1))
            )  # fmt: skip
            made.append(Loop(variable, start, stop, step, (), kind == "wavefront", at=self.at(target)))
        return made

    def _range(self, node: ast.expr, variables: int, ranges: int) -> list[ast.expr]:
        """The numbers of one range of a grid."""
        if isinstance(node, ast.Tuple):
            return node.elts
        if isinstance(node, ast.Call) and is_counting(node) == "range":
            return node.args
        return [node]

    def _shaped(self, node: ast.Starred, variables: list[str], wave: bool) -> list[Loop]:
        """`ln.grid(*A.shape)`."""
        words = dotted(node.value) or ""
        array = words.removesuffix(".shape")
        if array == words or "." in array:
            self.origin.refuse(
                "only a shape can be spread over a grid", "write `ln.grid(*A.shape)`", self.at(node)
            )
        at = self.at(node)
        return [
            Loop(variable, Const(0), Size(array, axis, at=at), Const(1), (), wave, at=at)
            for axis, variable in enumerate(variables)
        ]

    def expression(self, node: ast.expr, inside: frozenset[str]) -> Expr:
        """An expression of numbers."""
        at = self.at(node)
        match node:
            case ast.Constant(bool() | int() | float() | complex()):
                return Const(node.value, at=at)
            case ast.Name(name):
                return Index(name, at=at) if name in inside else Name(name, at=at)
            case ast.UnaryOp(op, operand):
                made = self.expression(operand, inside)
                if isinstance(op, ast.USub) and isinstance(made, Const):
                    return Const(-made.value, at=at)
                return Unary(UNARY[type(op)], made, at=at)
            case ast.BinOp(left, op, right):
                if type(op) not in BINARY:
                    raise WholeArrays
                return Binary(
                    BINARY[type(op)], self.expression(left, inside), self.expression(right, inside), at=at
                )
            case ast.BoolOp(op, values):
                parts = [self.expression(each, inside) for each in values]
                made, word = parts[0], "and" if isinstance(op, ast.And) else "or"
                for each in parts[1:]:
                    made = Logic(word, made, each, at=at)
                return made
            case ast.Compare(left, ops, comparators):
                return self._compared(node, [left, *comparators], ops, inside)
            case ast.IfExp(test, body, orelse):
                return Choose(*(self.expression(each, inside) for each in (test, body, orelse)), at=at)
            case ast.Subscript():
                return self._element(node, inside)
            case ast.Attribute():
                words = dotted(node)
                if words is None:
                    raise WholeArrays
                return Name(words, at=at)
            case ast.Call():
                return self._call(node, inside)
            case ast.NamedExpr() | ast.Await() | ast.Yield() | ast.YieldFrom() | ast.Lambda():
                self.origin.refuse(
                    f"{type(node).__name__} is not part of the language of loops",
                    "write a plain expression",
                    at,
                )
            case _:
                raise WholeArrays
        raise AssertionError(node)

    def _compared(
        self, node: ast.Compare, values: list[ast.expr], ops: list[ast.cmpop], inside: frozenset[str]
    ) -> Expr:
        at = self.at(node)
        parts = [self.expression(each, inside) for each in values]
        made: Expr | None = None
        for op, left, right in zip(ops, parts, parts[1:], strict=False):
            if type(op) not in COMPARE:
                raise WholeArrays
            one = Compare(COMPARE[type(op)], left, right, at=at)
            made = one if made is None else Logic("and", made, one, at=at)
        assert made is not None
        return made

    def _element(self, node: ast.Subscript, inside: frozenset[str]) -> Expr:
        at = self.at(node)
        words = dotted(node.value)
        if (
            words is not None
            and words.endswith(".shape")
            and isinstance(node.slice, ast.Constant | ast.UnaryOp)
        ):
            axis = self.expression(node.slice, inside)
            if isinstance(axis, Const) and isinstance(axis.value, int):
                return Size(words.removesuffix(".shape"), axis.value, at=at)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if any(isinstance(each, ast.Slice | ast.Starred) for each in parts):
            raise WholeArrays
        indices = tuple(self.expression(each, inside) for each in parts)
        if isinstance(node.value, ast.Subscript):  # A[i][j]
            inner = self._element(node.value, inside)
            if isinstance(inner, Load):
                return Load(inner.array, (*inner.indices, *indices), at=at)
        if words is None:
            raise WholeArrays
        return Load(words, indices, at=at)

    def _call(self, node: ast.Call, inside: frozenset[str]) -> Expr:
        at, words = self.at(node), dotted(node.func)
        if words is None or node.keywords or any(isinstance(each, ast.Starred) for each in node.args):
            raise WholeArrays
        if words in FOLDS and len(node.args) == 1:
            if isinstance(node.args[0], ast.GeneratorExp | ast.ListComp):
                return self.fold(words, node.args[0], inside, at)
            raise WholeArrays
        if words == "len" and len(node.args) == 1 and isinstance(node.args[0], ast.Name):
            return Size(node.args[0].id, 0, at=at)
        arguments = tuple(self.expression(each, inside) for each in node.args)
        if words in ("min", "max") and len(arguments) > 2:
            made = arguments[0]
            for each in arguments[1:]:
                made = Call(words, (made, each), at=at)
            return made
        return Call(words, arguments, at=at)

    def comprehended(
        self, generators: list[ast.comprehension], inside: frozenset[str]
    ) -> tuple[list[Loop], list[Expr], frozenset[str]]:
        """The loops of a comprehension, its conditions, and all variables."""
        loops: list[Loop] = []
        conditions: list[Expr] = []
        for each in generators:
            if each.is_async:
                raise WholeArrays
            loops.extend(self.loops(each.target, each.iter, inside))
            inside |= {loop.variable for loop in loops}
            conditions.extend(self.expression(test, inside) for test in each.ifs)
        return loops, conditions, inside

    def fold(self, words: str, node: ast.GeneratorExp | ast.ListComp, inside: frozenset[str], at: At) -> Fold:
        """`sum(... for ... if ...)`."""
        loops, conditions, inside = self.comprehended(node.generators, inside)
        return Fold(FOLDS[words], tuple(loops), tuple(conditions), self.expression(node.elt, inside), at=at)
