"""The tile-program language on one page.

    Program   = name, parameters, tables, assumptions, body
    Parameter = name : In | Out(fill) | Temp(of, fill) | Size | Table
    Stmt      = For(variable, start, stop, step, body)
              | If(condition, then, otherwise)
              | Let(name, value)                          a scalar
              | Run(kernel, outputs, args, keywords)      one kernel call: the statement proper
    Tiles     = Tiles(array, index)                       index: Expr | Range along each axis
    Range     = Range(start, stop, step)                  many tiles along one axis
    Expr      = Int | Float | Name | Lookup(table, index) | Unary(op, operand)
              | Binary(op, left, right) | Apply(function, args) | Choice(condition, then, otherwise)

A program is data: nothing in it can run. Loops are Python ranges; integers are
exact; every tile is written once. A task is one kernel call, named by the number of
its statement and the values of the loops around it, so a program stands for a graph
of any size without holding it.

Source positions ride along for error messages and take no part in equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from linnet.records import record

ARITHMETIC = ("+", "-", "*", "//", "%", "**", "/")
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")
CONNECTIVES = ("and", "or")
UNARY = ("-", "not")
FUNCTIONS: dict[str, int | None] = {
    "min": None,
    "max": None,
    "ceil_log2": 1,
    "floor_log2": 1,
    "log": 1,
    "log2": 1,
    "float": 1,
}
"""Functions of expressions and how many arguments they take (None: two or more)."""
FLOAT_ONLY = ("/", "log", "log2", "float")
"""Operators and functions whose value is a float: allowed in scalar arguments only."""


class Task(NamedTuple):
    """One kernel call of a bound program.

    >>> Task(statement=2, indices=(0, 1, 1))
    Task(statement=2, indices=(0, 1, 1))
    """

    statement: int
    """Number of the kernel call, in source order from 0."""
    indices: tuple[int, ...]
    """Values of the enclosing loops, outermost first."""


@record
class At:
    """A place in the source: line from 1, columns from 0."""

    line: int
    column: int = 0
    end: int = 0


def _at() -> Any:
    return field(default=None, compare=False, repr=False, kw_only=True)


# ---- expressions -------------------------------------------------------------------


@record
class Int:
    value: int
    at: At | None = _at()


@record
class Float:
    value: float
    at: At | None = _at()


@record
class Name:
    """A loop variable, a size, or a scalar assigned before."""

    id: str
    at: At | None = _at()


@record
class Lookup:
    """An entry of a table of integers."""

    table: str
    index: Expr
    at: At | None = _at()


@record
class Unary:
    op: str
    operand: Expr
    at: At | None = _at()


@record
class Binary:
    """Arithmetic, a comparison, or a Boolean connective."""

    op: str
    left: Expr
    right: Expr
    at: At | None = _at()


@record
class Apply:
    function: str
    args: tuple[Expr, ...]
    at: At | None = _at()


@record
class Choice:
    """`then if condition else otherwise`."""

    condition: Expr
    then: Expr
    otherwise: Expr
    at: At | None = _at()


Expr = Int | Float | Name | Lookup | Unary | Binary | Apply | Choice

# ---- tiles and statements ----------------------------------------------------------


@record
class Range:
    """`start:stop:step` along one axis of a tile reference."""

    start: Expr
    stop: Expr
    step: Expr
    at: At | None = _at()


@record
class Tiles:
    """`array[index]`: one tile, or a block of tiles where an axis has a range."""

    array: str
    index: tuple[Expr | Range, ...]
    at: At | None = _at()


@record
class Attribute:
    """A constant handed to a kernel by keyword: None, bool, int, float, str, or a tuple of these."""

    value: Any


@record
class For:
    variable: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...]
    at: At | None = _at()


@record
class If:
    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...]
    at: At | None = _at()


@record
class Let:
    name: str
    value: Expr
    at: At | None = _at()


@record
class Run:
    """One kernel call. Positional arguments are tiles or scalars; keywords attributes or scalars."""

    kernel: str
    outputs: tuple[Tiles, ...]
    args: tuple[Tiles | Expr, ...]
    keywords: tuple[tuple[str, Attribute | Expr], ...] = ()
    at: At | None = _at()


Stmt = For | If | Let | Run

# ---- parameters and programs -------------------------------------------------------


@dataclass(frozen=True, slots=True)
class In:
    """Role of an array that is the user's: read, never written or deleted."""


@dataclass(frozen=True, slots=True)
class Out:
    """Role of a result. `fill` is the value of tiles inside its grid that no task writes."""

    fill: bool | int | float | None = None


@dataclass(frozen=True, slots=True)
class Temp:
    """Role of an intermediate array, deleted when read for the last time.

    `Temp("A")` has versions along its first axis; version 0 is the array A. `fill` is the value
    of tiles inside its grid that no task writes; an array with versions has none.
    """

    of: str | None = None
    fill: bool | int | float | None = None


@record
class Size:
    """Role of an integer, not negative, given when the program is bound (`N: int`)."""


@dataclass(frozen=True, slots=True)
class Table:
    """Role of a table of integers given when the program is bound."""


Role = In | Out | Temp | Size | Table
ArrayRole = In | Out | Temp


def fill_of(role: Role) -> bool | int | float | None:
    """The value of tiles of an array that no task writes; None if each tile that is read must be written."""
    return role.fill if isinstance(role, Out | Temp) else None


@record
class Parameter:
    name: str
    role: Role


@record
class Program:
    """A whole tile program: the value that is parsed, checked, printed, sent, and analysed."""

    name: str
    parameters: tuple[Parameter, ...]
    body: tuple[Stmt, ...]
    tables: tuple[tuple[str, tuple[int, ...]], ...] = ()
    """Constant tables, by name."""
    assumptions: tuple[Expr, ...] = ()
    """What `assert` says of the sizes: checked when bound, used in proofs."""
    file: str = field(default="<program>", compare=False)
    """Where it was written, for messages."""
    source: tuple[str, ...] = field(default=(), compare=False, repr=False)
    """The lines of the file it came from, from line 1; empty when not known."""

    def roles(self, *kinds: type) -> dict[str, Any]:
        """Parameters whose role is one of `kinds`, in order."""
        return {p.name: p.role for p in self.parameters if isinstance(p.role, kinds)}


Kind = Literal["int", "bool", "float"]
