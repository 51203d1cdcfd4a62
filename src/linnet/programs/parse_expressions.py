"""Reading index expressions, conditions and tiles from a Python syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from linnet.programs.diagnostics import Findings
from linnet.programs.grammar import (
    Apply,
    At,
    Binary,
    Choice,
    Expr,
    Float,
    Int,
    Lookup,
    Name,
    Range,
    Role,
    Table,
    Tiles,
    Unary,
)

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.Div: "/",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.And: "and",
    ast.Or: "or",
}


class ExpressionReader:
    """Translates expressions of one function; keeps going after an error so that all are shown."""

    def __init__(
        self,
        function: ast.FunctionDef,
        constants: Mapping[str, Any],
        findings: Findings,
        lines: int,
        indent: int,
    ) -> None:
        self.function = function
        self.constants = constants
        self.findings = findings
        self.lines = lines
        self.indent = indent
        self.parameters: dict[str, Role] = {}
        self.tables: dict[str, tuple[int, ...]] = {}
        self.local: set[str] = {
            n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }

    def at(self, node: ast.AST) -> At:
        line, column = getattr(node, "lineno", 1), getattr(node, "col_offset", 0)
        same = getattr(node, "end_lineno", line) == line
        end = getattr(node, "end_col_offset", column + 1) if same else 10_000
        return At(line + self.lines, column + self.indent, (end or column + 1) + self.indent)

    def wrong(self, node: ast.AST, message: str, hint: str = "") -> None:
        self.findings.add(message, hint, self.at(node))

    def constant(self, node: ast.AST) -> Any:
        """The value of a literal, or of a name outside the program; ValueError when it is neither."""
        match node:
            case ast.Constant(value):
                return value
            case ast.Tuple(elts) | ast.List(elts):
                return tuple(self.constant(e) for e in elts)
            case ast.UnaryOp(ast.USub(), operand):
                return -self.constant(operand)
            case ast.Name(id) if id not in self.local and id not in self.parameters and id in self.constants:
                value = self.constants[id]
                return tuple(cast("list[Any]", value)) if isinstance(value, list) else value
            case _:
                raise ValueError

    def integers(self, node: ast.AST) -> tuple[int, ...] | None:
        try:
            value = self.constant(node)
        except (ValueError, TypeError):
            return None
        return integers_of(value)

    # -- tiles and expressions

    def is_table(self, name: str) -> bool:
        if name in self.parameters or name in self.tables:
            return name in self.tables or isinstance(self.parameters[name], Table)
        return name not in self.local and integers_of(self.constants.get(name)) is not None

    def tiles(self, node: ast.Subscript, array: str) -> Tiles:
        pieces = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        index = tuple(self.range(p) if isinstance(p, ast.Slice) else self.expr(p) for p in pieces)
        return Tiles(array, index, at=self.at(node))

    def range(self, node: ast.Slice) -> Range:
        if node.upper is None:
            self.wrong(node, "a range of tiles needs an end", "write A[i, 0:N]")
        start = self.expr(node.lower) if node.lower else Int(0)
        stop = self.expr(node.upper) if node.upper else Int(0)
        return Range(start, stop, self.expr(node.step) if node.step else Int(1), at=self.at(node))

    def expr(self, node: ast.expr) -> Expr:
        at = self.at(node)
        match node:
            case ast.Constant(bool(value)):
                return Int(int(value), at=at)
            case ast.Constant(int(value)):
                return Int(value, at=at)
            case ast.Constant(float(value)):
                return Float(value, at=at)
            case ast.Name(id):
                return self.name(node, id)
            case ast.UnaryOp(ast.USub(), operand):
                return minus(self.expr(operand), at)
            case ast.UnaryOp(ast.UAdd(), operand):
                return self.expr(operand)
            case ast.UnaryOp(ast.Not(), operand):
                return Unary("not", self.expr(operand), at=at)
            case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
                return Binary(_OPERATORS[type(op)], self.expr(left), self.expr(right), at=at)
            case ast.BoolOp(op, values):
                joined = self.expr(values[0])
                for value in values[1:]:
                    joined = Binary(_OPERATORS[type(op)], joined, self.expr(value), at=at)
                return joined
            case ast.Compare(left, ops, rights) if all(type(o) in _OPERATORS for o in ops):
                return self.comparison(left, ops, rights, at)
            case ast.IfExp(test, body, orelse):
                return Choice(self.expr(test), self.expr(body), self.expr(orelse), at=at)
            case ast.Call():
                return self.apply(node)
            case ast.Subscript(ast.Name(id), index):
                return self.lookup(node, id, index)
            case _:
                self.wrong(
                    node,
                    f"`{ast.unparse(node)}` cannot be used in an expression of a tile program",
                    "use integers, loop variables, sizes, + - * // % **, comparisons, min, max, "
                    "ceil(log2(n))",
                )
                return Int(0, at=at)

    def comparison(self, left: ast.expr, ops: list[ast.cmpop], rights: list[ast.expr], at: At) -> Expr:
        joined: Expr | None = None
        for op, right in zip(ops, rights, strict=True):
            one = Binary(_OPERATORS[type(op)], self.expr(left), self.expr(right), at=at)
            joined = one if joined is None else Binary("and", joined, one, at=at)
            left = right
        assert joined is not None
        return joined

    def name(self, node: ast.Name, id: str) -> Expr:
        at = self.at(node)
        if id not in self.local and id not in self.parameters and id in self.constants:
            value = self.constants[id]
            if isinstance(value, int) or hasattr(value, "__index__"):
                return Int(int(value), at=at)
            if isinstance(value, float):  # NumPy's float64 is one
                return Float(value, at=at)
        return Name(id, at=at)

    def lookup(self, node: ast.Subscript, id: str, index: ast.expr) -> Expr:
        at = self.at(node)
        if self.is_table(id):
            if id not in self.parameters and id not in self.tables:
                self.tables[id] = integers_of(self.constants[id]) or ()
            return Lookup(id, self.expr(index), at=at)
        what = "an array of tiles" if id in self.parameters else "not a table of integers"
        self.wrong(
            node,
            f"{id!r} is {what}; only tables can be looked up in an expression",
            f"pass {id} as a parameter `{id}: ln.Table`, or define {id} = (0, 2, 5)",
        )
        return Int(0, at=at)

    def apply(self, node: ast.Call) -> Expr:
        at = self.at(node)
        function = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        if function in ("ceil", "floor") and len(node.args) == 1:
            return self.rounding(node, function, node.args[0])
        if function in ("min", "max") and len(node.args) >= 2 and not node.keywords:
            return Apply(function, tuple(self.expr(a) for a in node.args), at=at)
        if function == "float" and len(node.args) == 1 and isinstance(node.args[0], ast.Constant):
            return Float(float(str(node.args[0].value)), at=at)
        if function in ("log", "log2", "float") and len(node.args) == 1 and not node.keywords:
            return Apply(function, (self.expr(node.args[0]),), at=at)
        self.wrong(
            node,
            f"`{ast.unparse(node)}` is not a function of the language",
            "use min, max, ceil(log2(n)), floor(log2(n)); in scalar arguments also log, log2, float",
        )
        return Int(0, at=at)

    def rounding(self, node: ast.Call, function: str, inside: ast.expr) -> Expr:
        at = self.at(node)
        match inside:
            case ast.Call(args=[argument]) if ast.unparse(inside.func).split(".")[-1] == "log2":
                return Apply(f"{function}_log2", (self.expr(argument),), at=at)
            case ast.BinOp(left, ast.Div(), right) if function == "floor":
                return Binary("//", self.expr(left), self.expr(right), at=at)
            case ast.BinOp(left, ast.Div(), right):
                return minus(Binary("//", minus(self.expr(left), at), self.expr(right), at=at), at)
            case _:
                self.wrong(
                    node,
                    f"`{ast.unparse(node)}` cannot be computed exactly",
                    f"write {function}(log2(n)) or {function}(a / b)",
                )
                return Int(0, at=at)


def minus(operand: Expr, at: At | None = None) -> Expr:
    """`-operand`; a literal takes the sign itself, so that text and program agree."""
    match operand:
        case Int(value):
            return Int(-value, at=at)
        case Float(value):
            return Float(-value, at=at)
        case _:
            return Unary("-", operand, at=at)


def integers_of(value: Any) -> tuple[int, ...] | None:
    """`value` as a table: a flat sequence of integers, or None."""
    if not isinstance(value, tuple | list | range | np.ndarray):
        return None
    entries: Any = np.asarray(value, dtype=None)  # pyright: ignore[reportUnknownArgumentType]
    if entries.ndim != 1 or (entries.size and entries.dtype.kind not in "iu"):
        return None
    return tuple(int(v) for v in entries.tolist())
