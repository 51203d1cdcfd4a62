"""Expressions evaluated for whole columns of values at once.

The meaning is that of `expressions.evaluate`, row by row; `and`, `or` and `a if c else b`
look at their later parts only in the rows where Python would.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from linnet.errors import ProgramError
from linnet.programs.expressions import MAX_BITS, POWERS_OF_TWO, SCALAR, TableValues, floor_log2, power
from linnet.programs.grammar import Apply, Binary, Choice, Expr, Float, Int, Lookup, Name, Unary
from linnet.programs.printing import show_expr

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
                raise ProgramError(f"division by zero in `{show_expr(expr)}`")
            if op == "*" and _largest(a) * _largest(b) >= 2**63:
                raise ProgramError(f"`{show_expr(expr)}` exceeds the integers a program may use (63 bits)")
            return SCALAR[op](a, b)
        case Apply(function, args):
            columns = [vectorised(a, values, tables) for a in args]
            return _VECTOR[function](columns)
        case Choice(condition, then, otherwise):
            return _where(condition, then, otherwise, values, tables)


def _largest(column: Any) -> int:
    """Greatest absolute value, as a Python integer; 0 for anything but integers."""
    values = np.asarray(column)
    if values.dtype.kind != "i" or not values.size:
        return 0
    return max(abs(int(values.min())), abs(int(values.max())))


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
        chosen: dict[str, Any] = {k: v[select] if isinstance(v, np.ndarray) else v for k, v in values.items()}
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
