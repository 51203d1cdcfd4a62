"""The loops as they were written: the whole language of loop nests on one page.

    statement:  Assign  Update  Pick  Branch  Loop
    expression: Const  Index  Name  Size  Load  Unary  Binary  Compare  Logic  Choose  Call  Fold  Viewed

A nest is one outermost `Loop`. What names are (an array, a number) is known when the function is called,
so nothing here says it. Every node knows where it stands in the user's file (`at`).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from linnet.programs.grammar import At


def _at() -> Any:
    return field(default=None, compare=False, repr=False, kw_only=True)


# ---- expressions


@dataclass(frozen=True, slots=True)
class Const:
    """A number of the program's text, or known when the function is called."""

    value: Any
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Index:
    """The variable of an enclosing loop."""

    name: str
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Name:
    """Any other name: a scalar of the function, or of what is around it."""

    name: str
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Size:
    """`A.shape[axis]`, or `len(A)`."""

    array: str
    axis: int
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Load:
    """An element: `A[i, j + 1]`."""

    array: str
    indices: tuple[Expr, ...]
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Unary:
    """`-x`, `+x`, `not x`, `~x`; "less": what `target -= x` takes away, which is not negated alone."""

    op: str
    operand: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Binary:
    """`x + y` and the like."""

    op: str
    left: Expr
    right: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Compare:
    """`x < y`; chains are joined by `and`."""

    op: str
    left: Expr
    right: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Logic:
    """`x and y`, `x or y`: as in Python one of the two values."""

    op: str
    left: Expr
    right: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Choose:
    """`x if condition else y`."""

    condition: Expr
    yes: Expr
    no: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Call:
    """A function of numbers, by the words it is called with: `math.sqrt`, `abs`, `ln.exp`."""

    function: str
    arguments: tuple[Expr, ...]
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Fold:
    """`sum(value for ... in ... if condition)`: a monoid by name, loops from the outermost, conditions."""

    monoid: str
    loops: tuple[Loop, ...]
    """Their bodies are empty."""
    conditions: tuple[Expr, ...]
    value: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Viewed:
    """An element of an array in a storage of the user's own: which one, and what the storage says it is."""

    cell: Load
    value: Expr
    at: At | None = _at()


Expr = Const | Index | Name | Size | Load | Unary | Binary | Compare | Logic | Choose | Call | Fold | Viewed

# ---- statements


@dataclass(frozen=True, slots=True)
class Assign:
    """`target = value`."""

    target: Load | Name
    value: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Update:
    """`target = target ⊕ value` with a monoid ⊕, by its name: `+`, `*`, `min`, `max`, `or`, `and`, ..."""

    target: Load | Name
    monoid: str
    value: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Pick:
    """`best, arg = min((best, arg), (value, label))`: the least pair, as Python compares pairs."""

    best: Load | Name
    arg: Load | Name
    monoid: str
    value: Expr
    label: Expr
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Branch:
    """`if condition: then ... else: otherwise ...`"""

    condition: Expr
    then: tuple[Stmt, ...]
    otherwise: tuple[Stmt, ...] = ()
    at: At | None = _at()


@dataclass(frozen=True, slots=True)
class Loop:
    """`for variable in range(start, stop, step)`; `wave`: it was written with `ln.wavefront`."""

    variable: str
    start: Expr
    stop: Expr
    step: Expr
    body: tuple[Stmt, ...] = ()
    wave: bool = False
    at: At | None = _at()


Stmt = Assign | Update | Pick | Branch | Loop


def children(node: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside one; of a `Fold` also the bounds of its loops."""
    match node:
        case Load(_, indices):
            return indices
        case Unary(_, operand):
            return (operand,)
        case Binary(_, a, b) | Compare(_, a, b) | Logic(_, a, b):
            return (a, b)
        case Choose(c, a, b):
            return (c, a, b)
        case Call(_, arguments):
            return arguments
        case Viewed(cell, value):
            return (cell, value)
        case Fold(_, loops, conditions, value):
            bounds = tuple(e for loop in loops for e in (loop.start, loop.stop, loop.step))
            return (*bounds, *conditions, value)
        case _:
            return ()


def walk(node: Expr) -> list[Expr]:
    """An expression and all inside it."""
    found: list[Expr] = [node]
    for each in children(node):
        found.extend(walk(each))
    return found
