"""What can be done with an expression: walk, substitute, negate, evaluate, turn into Python.

Three evaluators share one meaning: `evaluate` (exact integers, one value), `code` (Python
text for the generated solvers) and, in `vectors`, NumPy on whole columns. The text
never contains a name that came from the program: variables are renamed by the caller
and everything else is one of the helpers in `RUNTIME`, so a hostile program cannot
smuggle code through it.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linnet.errors import ProgramError
from linnet.programs.grammar import (
    COMPARISONS,
    CONNECTIVES,
    Apply,
    Binary,
    Choice,
    Expr,
    Float,
    Int,
    Lookup,
    Name,
    Range,
    Unary,
)

IntArray = npt.NDArray[np.int64]

MAX_BITS = 63
"""Powers beyond this many bits are refused: no grid is that large, and a hostile program may ask for any."""

_NEGATED = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}


# ---- structure ---------------------------------------------------------------------


def parts(expr: Expr) -> tuple[Expr, ...]:
    """The expressions directly inside `expr`."""
    match expr:
        case Int() | Float() | Name():
            return ()
        case Lookup(_, index):
            return (index,)
        case Unary(_, operand):
            return (operand,)
        case Binary(_, left, right):
            return (left, right)
        case Apply(_, args):
            return args
        case Choice(condition, then, otherwise):
            return (condition, then, otherwise)


def walk(expr: Expr) -> Iterator[Expr]:
    """`expr` and every expression inside it."""
    yield expr
    for part in parts(expr):
        yield from walk(part)


def names(expr: Expr) -> frozenset[str]:
    """Names that `expr` depends on."""
    return frozenset(e.id for e in walk(expr) if isinstance(e, Name))


def transform(expr: Expr, change: Callable[[Expr], Expr | None]) -> Expr:
    """Rebuild `expr`, replacing every part for which `change` gives another expression."""
    changed = change(expr)
    if changed is not None:
        return changed
    match expr:
        case Int() | Float() | Name():
            return expr
        case Lookup(table, index):
            return Lookup(table, transform(index, change), at=expr.at)
        case Unary(op, operand):
            return Unary(op, transform(operand, change), at=expr.at)
        case Binary(op, left, right):
            return Binary(op, transform(left, change), transform(right, change), at=expr.at)
        case Apply(function, args):
            return Apply(function, tuple(transform(a, change) for a in args), at=expr.at)
        case Choice(condition, then, otherwise):
            return Choice(
                transform(condition, change),
                transform(then, change),
                transform(otherwise, change),
                at=expr.at,
            )


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """`expr` with names replaced by expressions."""
    if not values:
        return expr
    return transform(expr, lambda e: values.get(e.id) if isinstance(e, Name) else None)


def substitute_range(piece: Range, values: Mapping[str, Expr]) -> Range:
    """A range with names replaced by expressions."""
    return Range(
        substitute(piece.start, values),
        substitute(piece.stop, values),
        substitute(piece.step, values),
        at=piece.at,
    )


def negate(condition: Expr) -> Expr:
    """The opposite of a condition, with `not` pushed inwards."""
    match condition:
        case Binary(op, left, right) if op in COMPARISONS:
            return Binary(_NEGATED[op], left, right, at=condition.at)
        case Binary("and", left, right):
            return Binary("or", negate(left), negate(right), at=condition.at)
        case Binary("or", left, right):
            return Binary("and", negate(left), negate(right), at=condition.at)
        case Unary("not", operand):
            return normal(operand)
        case _:
            return Unary("not", condition, at=condition.at)


def normal(condition: Expr) -> Expr:
    """A condition with every `not` pushed inwards."""
    match condition:
        case Unary("not", operand):
            return negate(operand)
        case Binary(op, left, right) if op in CONNECTIVES:
            return Binary(op, normal(left), normal(right), at=condition.at)
        case _:
            return condition


def conjuncts(condition: Expr) -> list[Expr]:
    """The conditions that must all hold for `condition` to hold."""
    flat = normal(condition)
    if isinstance(flat, Binary) and flat.op == "and":
        return conjuncts(flat.left) + conjuncts(flat.right)
    return [flat]


def folded(expr: Expr) -> Expr:
    """`expr` with arithmetic on constants done."""

    def change(e: Expr) -> Expr | None:
        if isinstance(e, Unary | Binary) and not any(isinstance(x, Name | Lookup | Float) for x in walk(e)):
            try:
                value = evaluate(e, {}, {})
            except (ProgramError, ArithmeticError):
                return None
            return Int(value, at=e.at) if type(value) is int else None
        return None

    return transform(expr, change)


def positive(expr: Expr, sizes: Callable[[str], bool]) -> bool:
    """Whether `expr` is greater than 0 wherever it is a step or a divisor (so no size in it is 0)."""
    match expr:
        case Int(value):
            return value > 0
        case Name(id):
            return sizes(id)
        case Binary("**", left, _):
            return positive(left, sizes)
        case Binary("*" | "+", left, right):
            return positive(left, sizes) and positive(right, sizes)
        case _:
            return False


# ---- one value ---------------------------------------------------------------------


class _Powers(dict[int, int]):
    def __missing__(self, exponent: int) -> int:
        raise ProgramError(
            f"2 ** {exponent} is outside the integers a program may use "
            f"(exponents 0 to {MAX_BITS - 1}); check the loop that gives the exponent"
        )


POWERS_OF_TWO = _Powers({e: 1 << e for e in range(MAX_BITS)})


class TableValues(dict[int, int]):
    """A table as a mapping that refuses indices outside it (a tuple would take negative ones)."""

    def __init__(self, name: str, values: Sequence[int]) -> None:
        super().__init__(enumerate(values))
        self.name = name
        self.array: IntArray = np.asarray(values, dtype=np.int64).reshape(-1)
        self.inverse: dict[int, list[int]] = {}
        for index, value in enumerate(values):
            self.inverse.setdefault(value, []).append(index)

    def __missing__(self, index: int) -> int:
        raise ProgramError(
            f"table {self.name!r} has {len(self)} entries; entry {index} was asked for "
            f"(entries 0 to {len(self) - 1} exist)"
        )


def power(base: int, exponent: int) -> int:
    """`base ** exponent` in exact integers, refused where it is no integer or absurdly large."""
    if base == 2:
        return POWERS_OF_TWO[exponent]
    if exponent < 0 or (abs(base) > 1 and exponent * abs(base).bit_length() > 4 * MAX_BITS):
        raise ProgramError(
            f"{base} ** {exponent} is outside the integers a program may use; "
            "the exponent must be 0 or more and the result fit 63 bits"
        )
    return int(base**exponent)


def ceil_log2(n: int) -> int:
    """Least k with 2**k >= n."""
    if n < 1:
        raise ProgramError(f"ceil(log2({n})) does not exist; the argument must be 1 or more")
    return (n - 1).bit_length()


def floor_log2(n: int) -> int:
    """Largest k with 2**k <= n."""
    if n < 1:
        raise ProgramError(f"floor(log2({n})) does not exist; the argument must be 1 or more")
    return n.bit_length() - 1


RUNTIME: dict[str, Any] = {
    "_P2": POWERS_OF_TWO,
    "_pow": power,
    "_clog2": ceil_log2,
    "_flog2": floor_log2,
    "_log": math.log,
    "_log2": math.log2,
    "min": min,
    "max": max,
    "range": range,
    "float": float,
    "len": len,
    "list": list,
    "divmod": divmod,
    "dict": dict,
}
"""Everything a generated function can reach, beside its own variables and tables."""

_FUNCTION_CODE = {
    "min": "min",
    "max": "max",
    "ceil_log2": "_clog2",
    "floor_log2": "_flog2",
    "log": "_log",
    "log2": "_log2",
    "float": "float",
}


def code(expr: Expr, rename: Mapping[str, str]) -> str:
    """Python text of `expr`; `rename` says what variables and tables are called in it."""
    match expr:
        case Int(value):
            return str(value) if value >= 0 else f"({value})"
        case Float(value):
            return f"float({str(value)!r})"
        case Name(id):
            return rename[id]
        case Lookup(table, index):
            return f"{rename[table]}[{code(index, rename)}]"
        case Unary(op, operand):
            return f"(-{code(operand, rename)})" if op == "-" else f"(not {code(operand, rename)})"
        case Binary("**", Int(2), right):
            return f"_P2[{code(right, rename)}]"
        case Binary("**", left, right):
            return f"_pow({code(left, rename)}, {code(right, rename)})"
        case Binary(op, left, right):
            return f"({code(left, rename)} {op} {code(right, rename)})"
        case Apply(function, args):
            return f"{_FUNCTION_CODE[function]}({', '.join(code(a, rename) for a in args)})"
        case Choice(condition, then, otherwise):
            return f"({code(then, rename)} if {code(condition, rename)} else {code(otherwise, rename)})"


def evaluate(expr: Expr, values: Mapping[str, int], tables: Mapping[str, TableValues]) -> Any:
    """The value of `expr`, exactly."""
    match expr:
        case Int(value) | Float(value):
            return value
        case Name(id):
            return values[id]
        case Lookup(table, index):
            return tables[table][evaluate(index, values, tables)]
        case Unary(op, operand):
            value = evaluate(operand, values, tables)
            return -value if op == "-" else not value
        case Binary("and", left, right):
            return evaluate(left, values, tables) and evaluate(right, values, tables)
        case Binary("or", left, right):
            return evaluate(left, values, tables) or evaluate(right, values, tables)
        case Binary(op, left, right):
            return SCALAR[op](evaluate(left, values, tables), evaluate(right, values, tables))
        case Apply(function, args):
            return SCALAR[function](*(evaluate(a, values, tables) for a in args))
        case Choice(condition, then, otherwise):
            chosen = then if evaluate(condition, values, tables) else otherwise
            return evaluate(chosen, values, tables)


SCALAR: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b,  # pyright: ignore[reportUnknownLambdaType]
    "%": operator.mod,
    "**": power,
    "/": lambda a, b: a / b,  # pyright: ignore[reportUnknownLambdaType]
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "min": min,
    "max": max,
    "ceil_log2": ceil_log2,
    "floor_log2": floor_log2,
    "log": math.log,
    "log2": math.log2,
    "float": float,
}
