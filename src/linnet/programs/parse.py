"""From a Python function to a program.

The function is read, never called: its syntax tree is translated node by node, and
everything that is not part of the language is reported with what to write instead.
Meaning (names, kinds, roles, kernels) is left to `check`, which programs from a builder
or from the wire go through as well.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from collections.abc import Callable, Mapping
from typing import Any, cast

from linnet.errors import ProgramError
from linnet.kernels.registry import Kernel
from linnet.programs.check import check_into
from linnet.programs.diagnostics import Findings
from linnet.programs.grammar import (
    At,
    Attribute,
    Expr,
    For,
    If,
    In,
    Int,
    Let,
    Out,
    Parameter,
    Program,
    Role,
    Run,
    Size,
    Stmt,
    Table,
    Temp,
    Tiles,
)
from linnet.programs.parse_expressions import ExpressionReader

_ROLES: dict[str, Role] = {"In": In(), "Out": Out(), "Temp": Temp(), "Table": Table(), "int": Size()}
_FOREIGN: dict[str, str] = {
    "While": "`while` is not part of the language; loops are `for x in range(...)`",
    "Return": "`return` is not part of the language; results are arrays with the role Out",
    "AugAssign": "a tile is written once; write a new version, as in `S[i + 1, j] = kernel(S[i, j], ...)`",
    "FunctionDef": "functions cannot be defined inside a tile program; register a kernel with @ln.kernel",
    "Break": "`break` is not part of the language; put the condition into an `if` or the range",
    "Continue": "`continue` is not part of the language; put what follows under an `if`",
    "Try": "`try` is not part of the language; an error in a kernel stops the job",
    "With": "`with` is not part of the language",
}


def parse_function(function: Callable[..., Any]) -> Program:
    """Read a function of the user's."""
    try:
        lines, first = inspect.getsourcelines(function)
    except (OSError, TypeError) as error:
        raise ProgramError(
            f"the source of {getattr(function, '__name__', function)!r} cannot be read ({error}); "
            "put it into a file or a notebook cell, or use TileProgram.from_source(text)"
        ) from error
    text = "".join(lines)
    indent = len(text) - len(text.lstrip(" \t"))
    file = inspect.getsourcefile(function) or "<program>"
    source = tuple(line.rstrip("\n") for line in linecache.getlines(file)) or ("",) * (first - 1) + tuple(
        lines
    )
    closure = inspect.getclosurevars(function)
    constants = {**function.__globals__, **closure.nonlocals}
    return _read(textwrap.dedent(text), constants, file, source, first - 1, indent)


def parse_source(text: str, constants: Mapping[str, Any] | None = None, file: str = "<source>") -> Program:
    """Read a program from its text: one function definition."""
    clean = textwrap.dedent(text).strip("\n")
    return _read(clean, constants or {}, file, tuple(clean.split("\n")), 0, 0)


def _read(
    text: str, constants: Mapping[str, Any], file: str, source: tuple[str, ...], lines: int, indent: int
) -> Program:
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise ProgramError(f"{file}: this is not Python: {error}") from error
    functions = [n for n in module.body if isinstance(n, ast.FunctionDef)]
    if len(functions) != 1:
        raise ProgramError(
            f"{file}: expected one function definition, found {len(functions)}; "
            "a tile program is one `def name(A: ln.In, ..., N: int):`"
        )
    reader = _Reader(functions[0], constants, Findings(functions[0].name, file, source), lines, indent)
    program = reader.program(file, source)
    if reader.findings.found:  # show what else is wrong with the part that could be read
        check_into(program, reader.findings, partial=frozenset(reader.local))
    reader.findings.raise_if_any()
    return program


class _Reader(ExpressionReader):
    """Translates the statements of one function."""

    def program(self, file: str, source: tuple[str, ...]) -> Program:
        self.read_parameters()
        body = self.function.body
        if ast.get_docstring(self.function) is not None:
            body = body[1:]
        self.assumptions: list[Expr] = []
        statements = self.block(body, top=True)
        return Program(
            self.function.name,
            tuple(Parameter(n, r) for n, r in self.parameters.items()),
            statements,
            tuple(self.tables.items()),
            tuple(self.assumptions),
            file,
            source,
        )

    # -- parameters

    def read_parameters(self) -> None:
        arguments = self.function.args
        if arguments.vararg or arguments.kwarg or arguments.defaults or arguments.kw_defaults:
            self.wrong(
                self.function,
                "parameters of a tile program are plain names with a role",
                "remove *args, **kwargs and default values",
            )
        for argument in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]:
            role = self.role(argument)
            if role is not None:
                self.parameters[argument.arg] = role

    def role(self, argument: ast.arg) -> Role | None:
        node = argument.annotation
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node = ast.parse(node.value, mode="eval").body
        call = node if isinstance(node, ast.Call) else None
        plain = self.plain_role(call.func if call else node)
        if plain is None:
            self.wrong(
                argument,
                f"parameter {argument.arg!r} has no role",
                f"write {argument.arg}: ln.In, ln.Out, ln.Temp (arrays), ln.Table, or int (a size)",
            )
            return None
        if call is None:
            return plain
        try:
            args = [self.constant(a) for a in call.args]
            keywords = {k.arg: self.constant(k.value) for k in call.keywords if k.arg}
            role = type(plain)(*args, **keywords)
        except (TypeError, ValueError):
            role = None
        of: Any = getattr(role, "of", None)
        fill: Any = getattr(role, "fill", None)
        readable = isinstance(of, str | None) and isinstance(fill, int | float | None)
        if role is None or not readable:
            role = None
            self.wrong(
                argument,
                f"role of {argument.arg!r} cannot be read: {ast.unparse(call)}",
                'write ln.In, ln.Out, ln.Out(fill=0), ln.Temp, ln.Temp(fill=0), or ln.Temp("A")',
            )
        return role

    def plain_role(self, node: ast.AST | None) -> Role | None:
        label = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
        known = self.constants.get(label) if isinstance(node, ast.Name) and label else None
        for role in _ROLES.values():
            if known is type(role) or (known is not None and known == role):
                return role
        return _ROLES.get(label or "")

    # -- statements

    def block(self, nodes: list[ast.stmt], top: bool = False) -> tuple[Stmt, ...]:
        statements: list[Stmt] = []
        for node in nodes:
            one = self.statement(node, top)
            if one is not None:
                statements.append(one)
        return tuple(statements)

    def statement(self, node: ast.stmt, top: bool) -> Stmt | None:
        match node:
            case ast.For():
                return self.loop(node)
            case ast.If(test, body, orelse):
                return If(self.expr(test), self.block(body), self.block(orelse), at=self.at(test))
            case ast.Assign([target], value):
                return self.assign(node, target, value, top)
            case ast.AnnAssign(target, _, value) if value is not None:
                return self.assign(node, target, value, top)
            case ast.Assert(test):
                if top:
                    self.assumptions.append(self.expr(test))
                else:
                    self.wrong(node, "`assert` speaks of sizes", "put it before the first loop")
                return None
            case ast.Pass():
                return None
            case ast.Expr(ast.Call()):
                self.wrong(
                    node, "the result of this call goes nowhere", "assign it to a tile: O[i] = kernel(...)"
                )
            case _:
                kind = type(node).__name__
                self.wrong(
                    node,
                    _FOREIGN.get(kind, f"{kind} is not part of the language"),
                    "" if kind in _FOREIGN else "see the grammar in linnet.programs.grammar",
                )
        return None

    def loop(self, node: ast.For) -> Stmt | None:
        call = node.iter
        if not isinstance(node.target, ast.Name):
            self.wrong(node.target, "a loop has one variable", "write `for i in range(...)`")
            return None
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id == "range"):
            self.wrong(
                call,
                f"loops run over ranges, not over `{ast.unparse(call)}`",
                f"write `for {node.target.id} in range(start, stop, step)`",
            )
            self.block(node.body)
            return None
        if call.keywords or not 1 <= len(call.args) <= 3:
            self.wrong(
                call,
                f"range takes one to three arguments, not {len(call.args)}",
                "write range(stop), range(start, stop) or range(start, stop, step)",
            )
            return None
        if node.orelse:
            self.wrong(node, "a loop has no `else`", "put these lines after the loop")
        args = [self.expr(a) for a in call.args]
        start, stop = (Int(0), args[0]) if len(args) == 1 else (args[0], args[1])
        step = args[2] if len(args) == 3 else Int(1)
        at = self.at(call)
        spot = At(self.at(node).line, self.at(node.target).column, at.end)
        return For(node.target.id, start, stop, step, self.block(node.body), at=spot)

    def assign(self, node: ast.stmt, target: ast.expr, value: ast.expr, top: bool) -> Stmt | None:
        if isinstance(target, ast.Name):
            return self.scalar(node, target, value, top)
        targets = list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]
        if not isinstance(value, ast.Call):
            self.wrong(
                value,
                f"`{ast.unparse(value)}` is not a kernel call",
                "the right side of a tile is a registered kernel, as in O[i] = copy(A[i])",
            )
            return None
        outputs: list[Tiles] = []
        for one in targets:
            if isinstance(one, ast.Subscript) and isinstance(one.value, ast.Name):
                outputs.append(self.tiles(one, one.value.id))
            else:
                self.wrong(one, f"`{ast.unparse(one)}` is not a tile", "write an array with indices: O[i, j]")
        return self.run(node, value, tuple(outputs))

    def scalar(self, node: ast.stmt, target: ast.Name, value: ast.expr, top: bool) -> Stmt | None:
        if isinstance(value, ast.Tuple | ast.List):
            entries = self.integers(value)
            if entries is None or not top:
                self.wrong(
                    value,
                    f"`{ast.unparse(value)}` is not a table of integers at the top of the program",
                    "write T = (0, 2, 5) before the first loop, or pass it as T: ln.Table",
                )
                return None
            self.tables[target.id] = entries
            return None
        return Let(target.id, self.expr(value), at=self.at(node))

    def run(self, node: ast.stmt, call: ast.Call, outputs: tuple[Tiles, ...]) -> Stmt | None:
        args: list[Tiles | Expr] = []
        for argument in call.args:
            if isinstance(argument, ast.Subscript) and isinstance(argument.value, ast.Name):
                # of all that can be looked up only tables are no tiles; `check` knows the arrays
                name = argument.value.id
                args.append(self.expr(argument) if self.is_table(name) else self.tiles(argument, name))
            elif isinstance(argument, ast.Starred):
                self.wrong(
                    argument, "`*` cannot be used in a kernel call", "write a range of tiles: A[i, 0:K]"
                )
            else:
                args.append(self.expr(argument))
        keywords: list[tuple[str, Attribute | Expr]] = []
        for keyword in call.keywords:
            if keyword.arg is None:
                self.wrong(keyword.value, "`**` cannot be used in a kernel call", "write name=value")
                continue
            keywords.append((keyword.arg, self.keyword(keyword.value)))
        return Run(self.kernel(call.func), outputs, tuple(args), tuple(keywords), at=self.at(node))

    def keyword(self, node: ast.expr) -> Attribute | Expr:
        try:
            value = self.constant(node)
        except (ValueError, TypeError):
            return self.expr(node)
        if not _is_attribute(value):
            self.wrong(
                node,
                f"{value!r} cannot be an attribute of a kernel",
                "attributes are None, bool, int, float, str, or tuples of these",
            )
            return Attribute(None)
        return Attribute(value)

    def kernel(self, node: ast.expr) -> str:
        dotted = ast.unparse(node)
        value: Any = self.constants.get(dotted.split(".")[0])
        for part in dotted.split(".")[1:]:
            value = getattr(value, part, None)
        return value.name if isinstance(value, Kernel) else dotted


def _is_attribute(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(_is_attribute(v) for v in cast("tuple[Any, ...]", value))
    return value is None or isinstance(value, bool | int | float | str)
