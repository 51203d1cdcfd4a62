"""Families of random programs of many operations: expressions, operators, statements (`array_families`)."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from array_programs import NUMBERS, Call, Dice
from numpy.typing import NDArray

import linnet as ln

_UNARY = [np.negative, np.abs, np.square, np.transpose, np.sign, lambda x: x[::-1], lambda x: x[..., ::2]]
_UNARY += [lambda x: np.roll(x, 1, 0), lambda x: x.sum(axis=-1, keepdims=True), lambda x: x.max(axis=0)]
_UNARY += [
    lambda x: np.cumsum(x, axis=0) % 97,
    lambda x: x.reshape(-1),
    lambda x: x.mean(axis=0, keepdims=True) // 1,
]
_UNARY += [
    lambda x: np.sort(x, axis=-1),
    lambda x: np.pad(x, 1),
    lambda x: np.diff(x, axis=0),
    lambda x: x[1:-1],
]
_UNARY += [lambda x: x.swapaxes(0, -1), lambda x: np.repeat(x, 2, axis=0), lambda x: np.concatenate([x, -x])]
_UNARY += [
    lambda x: np.where(x > 0, x, 1),
    lambda x: x[np.arange(0, len(x), 3)],
    lambda x: x[..., None] * x[..., None, :],
]
_UNARY += [
    lambda x: x[x > x.min()],
    lambda x: np.add.accumulate(x, axis=-1) % 89,
    lambda x: np.gradient(x, axis=0) // 1,
]
_BINARY = [
    operator.add,
    operator.sub,
    operator.mul,
    np.maximum,
    np.minimum,
    np.hypot,
    operator.lt,
    np.arctan2,
]
_BINARY += [lambda x, y: np.where(x > y, x, y), lambda x, y: x @ y, lambda x, y: x // (abs(y) + 1)]
_BINARY += [
    lambda x, y: np.outer(x[:3], y[:3]),
    lambda x, y: x[: y.ndim + 1] + y.sum(),
    lambda x, y: x % 7 - y,
]


def expressions(dice: Dice, a: NDArray[Any]) -> Call:
    """Ten to twenty operations on three arrays and on what came out; a few of the results together."""
    one = dice.like(a.shape, ("f8", "i8", "i4", "f4"), special=False)
    two = dice.like(a.shape[-1:], ("f8", "i8", "?"), special=False)
    plan = [
        (dice.pick(_UNARY if dice.coin() else _BINARY), dice.integer(1, 6), dice.integer(1, 6))
        for _ in range(dice.integer(5, 16))
    ]
    asked = [dice.integer(1, 5) for _ in range(3)]

    def run(*arrays: Any) -> Any:
        values = list(arrays)
        for function, first, second in plan:
            x, y = values[-min(first, len(values))], values[-min(second, len(values))]
            try:
                made = function(x) if function in _UNARY else function(x, y)
            except (ValueError, IndexError, TypeError):
                continue
            if made.size and made.size <= 4000 and made.ndim <= 4:
                values.append(
                    made
                    if made.dtype.kind != "f" or function not in (np.square, operator.mul)
                    else made % 1024
                )
        wanted = [values[-min(k, len(values))] for k in asked]
        return ln.compute(wanted) if any(isinstance(each, ln.Array) for each in wanted) else wanted

    return Call(run, [one, two], {}, "expression")


def operands(dice: Dice, a: NDArray[Any]) -> Call:
    """NumPy's arrays in any layout, its numbers, and operators either way round."""
    other = dice.array(
        (*NUMBERS, *(("m8[s]", "m8[D]") if a.dtype.kind in "mM" else ())), a.shape, special=False
    )
    layout = dice.pick(["F", "reversed", "swapped", "broadcast", "odd", "number", "readonly"])
    if layout == "F":
        other = np.asfortranarray(other)
    elif layout == "reversed":
        other = other[..., ::-1] if other.ndim else other
    elif layout == "swapped":
        other = other.astype(other.dtype.newbyteorder())
    elif layout == "broadcast" and other.ndim:
        other = np.broadcast_to(other[..., :1] if other.shape[-1] else other, other.shape)
    elif layout == "odd":
        raw = np.zeros(other.nbytes + 1, "u1")
        odd = raw[1:].view(other.dtype).reshape(other.shape)
        odd[...] = other
        other = odd
    elif layout == "number":
        other = other.reshape(-1)[0] if other.size else np.float32(1)
    else:
        other.flags.writeable = False
    function = dice.pick([
        operator.add, operator.sub, operator.mul, operator.truediv, operator.floordiv, operator.mod, operator.pow,
        operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift, operator.lt, operator.ge,
        operator.eq, operator.ne, operator.matmul, divmod,
    ])  # fmt: skip
    reflected = dice.coin()
    return Call(
        lambda x, y: function(y, x) if reflected else function(x, y),
        [other],
        {},
        f"{function.__name__} {reflected} {layout} {other!r}",
    )


def statements(dice: Dice, a: NDArray[Any]) -> Call:
    """Statements that update two arrays from one another, and parts of them kept meanwhile."""
    kinds = ["number", "update", "flip", "mask", "keep", "shift", "masked", "out", "anew"]
    plan = [
        (
            dice.pick(kinds),
            dice.integer(0, 1),
            dice.integer(0, 1),
            dice.basic_key(a.shape),
            dice.array(("?",), a.shape),
            dice.pick([1, 2, 3]),
        )
        for _ in range(dice.integer(3, 9))
    ]

    def run(x: Any, y: Any) -> Any:
        arrays, kept = [x.copy(), y.copy()], []
        for kind, to, source, key, mask, number in plan:
            target, other = arrays[to], arrays[source]
            try:
                if kind == "number":
                    target[key] = number
                elif kind == "update":
                    target[key] += number
                elif kind == "flip":
                    target[...] = other[::-1]
                elif kind == "mask":
                    target[mask] = number
                elif kind == "keep":
                    kept.append(other[key].copy())
                elif kind == "shift":
                    target[1:] = target[:-1]
                elif kind == "masked":
                    target[mask] -= other[mask]
                elif kind == "out":
                    np.add(target, other, out=target, where=mask, casting="unsafe")
                else:
                    arrays[to] = (target + other) // 2
            except (IndexError, ValueError, TypeError):
                continue
        return [*arrays, *kept]

    # What an element in place may become is another matter (docs/arrays.md).
    if not a.ndim or a.dtype.kind not in "iuf":
        return Call(np.copy)
    return Call(run, [dice.like(a.shape, ("f8", "i8", "f4"), special=False)], {}, f"statements {plan}")
