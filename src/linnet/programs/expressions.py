"""What can be done with an expression: walk, substitute, negate, evaluate, turn into Python.

Three evaluators share one meaning: `evaluate` (exact integers, one value), `vectorised`
(NumPy, many values at once) and `code` (Python text for the generated solvers). The text
never contains a name that came from the program: variables are renamed by the caller
and everything else is one of the helpers in `RUNTIME`, so a hostile program cannot
smuggle code through it.
"""

from __future__ import annotations

import math
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

Number = int | float | bool
IntArray = npt.NDArray[np.int64]

MAX_BITS = 63
"""Powers beyond this many bits are refused: no grid is that large, and a hostile program could ask for any."""

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
            return _SCALAR[op](evaluate(left, values, tables), evaluate(right, values, tables))
        case Apply(function, args):
            return _SCALAR[function](*(evaluate(a, values, tables) for a in args))
        case Choice(condition, then, otherwise):
            chosen = then if evaluate(condition, values, tables) else otherwise
            return evaluate(chosen, values, tables)


_SCALAR: dict[str, Callable[..., Any]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "//": lambda a, b: a // b,
    "%": lambda a, b: a % b,
    "**": power,
    "/": lambda a, b: a / b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "min": min,
    "max": max,
    "ceil_log2": ceil_log2,
    "floor_log2": floor_log2,
    "log": math.log,
    "log2": math.log2,
    "float": float,
}


# ---- many values -------------------------------------------------------------------

_POWERS = np.array([1 << e for e in range(MAX_BITS)], dtype=np.int64)


def vectorised(expr: Expr, values: Mapping[str, Any], tables: Mapping[str, TableValues]) -> Any:
    """The value of `expr` for whole columns of values at once (columns or plain integers).

    `and`, `or` and `a if c else b` look at their later parts only where Python would.
    """
    match expr:
        case Int(value) | Float(value):
            return value
        case Name(id):
            return values[id]
        case Lookup(table, index):
            return _look_up(tables[table], vectorised(index, values, tables))
        case Unary(op, operand):
            value = vectorised(operand, values, tables)
            return -value if op == "-" else np.logical_not(value)
        case Binary("and", left, right):
            return _where(left, right, Int(0), values, tables).astype(bool)
        case Binary("or", left, right):
            return _where(left, Int(1), right, values, tables).astype(bool)
        case Binary("**", left, right):
            return _power(vectorised(left, values, tables), vectorised(right, values, tables))
        case Binary(op, left, right):
            a, b = vectorised(left, values, tables), vectorised(right, values, tables)
            if op in ("//", "%", "/") and np.any(np.equal(b, 0)):
                raise ZeroDivisionError(f"integer division or modulo by zero in a program ({op})")
            return _SCALAR[op](a, b)
        case Apply(function, args):
            columns = [vectorised(a, values, tables) for a in args]
            return _VECTOR[function](columns)
        case Choice(condition, then, otherwise):
            return _where(condition, then, otherwise, values, tables)


def _where(
    condition: Expr, then: Expr, otherwise: Expr, values: Mapping[str, Any], tables: Mapping[str, TableValues]
) -> Any:
    mask = np.asarray(vectorised(condition, values, tables), dtype=bool)
    if mask.ndim == 0:
        return np.asarray(vectorised(then if mask else otherwise, values, tables))
    result: Any = None
    for select, branch in ((mask, then), (~mask, otherwise)):
        if not select.any():
            continue
        chosen = {k: v[select] if isinstance(v, np.ndarray) else v for k, v in values.items()}
        value = np.asarray(vectorised(branch, chosen, tables))
        if result is None:
            result = np.zeros(mask.shape, dtype=value.dtype)
        elif np.result_type(result, value) != result.dtype:
            result = result.astype(np.result_type(result, value))
        result[select] = value
    return np.zeros(mask.shape, dtype=np.int64) if result is None else result


def _look_up(table: TableValues, index: Any) -> Any:
    column = np.asarray(index)
    outside = (column < 0) | (column >= len(table))
    if outside.any():
        _ = table[int(column[outside].flat[0])]
    return table.array[column]


def _power(base: Any, exponent: Any) -> Any:
    bases, exponents = np.broadcast_arrays(np.asarray(base), np.asarray(exponent))
    if bases.size and (bases == 2).all():
        outside = (exponents < 0) | (exponents >= MAX_BITS)
        if outside.any():
            _ = POWERS_OF_TWO[int(exponents[outside].flat[0])]
        return _POWERS[exponents]
    flat = [power(int(b), int(e)) for b, e in zip(bases.flat, exponents.flat, strict=True)]
    return np.array(flat, dtype=np.int64).reshape(bases.shape)


def _log2(column: Any, side: str) -> Any:
    values = np.asarray(column)
    if (values < 1).any():
        floor_log2(int(values[values < 1].flat[0]))
    place = np.searchsorted(_POWERS, values, side="left" if side == "ceil" else "right")
    return place if side == "ceil" else place - 1


_VECTOR: dict[str, Callable[[list[Any]], Any]] = {
    "min": lambda c: np.minimum.reduce(np.broadcast_arrays(*c)),
    "max": lambda c: np.maximum.reduce(np.broadcast_arrays(*c)),
    "ceil_log2": lambda c: _log2(c[0], "ceil"),
    "floor_log2": lambda c: _log2(c[0], "floor"),
    "log": lambda c: np.log(c[0]),
    "log2": lambda c: np.log2(c[0]),
    "float": lambda c: np.asarray(c[0], dtype=float),
}
