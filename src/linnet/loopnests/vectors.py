"""Values of an expression for many steps of loops at once: arrays whose axes are loop variables.

`Vector` is such an array with the names of its axes. Operations line the axes up and broadcast. A Python
number (a constant, a loop variable, a result of `math`) does not widen what it meets, as in NumPy's scalars:
`plain` says of what kind it is. Values made of loop variables alone stay NumPy arrays while they are short.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.namespace import names
from linnet.loopnests.whole_numbers import (
    LONGEST,
    Overflow,
    check_fits,
    limit,
    limit_of_dtype,
    looked_at,
    result_limit,
    whole,
)

KINDS = {bool: "b", int: "i", float: "f", complex: "c"}
PLAIN_DTYPES = {"b": np.dtype(bool), "i": np.dtype(np.int64), "f": np.dtype(float), "c": np.dtype(complex)}
PLAIN_SCALARS = {"b": False, "i": 0, "f": 0.0, "c": 0j}
LARGE = 1 << 16
"""Elements from which values of loop variables are made in tiles."""


@cache
def functions() -> Any:
    """The functions of arrays."""
    return SimpleNamespace(**names())


class DividedByZero(Exception):
    """Python's numbers would be divided by zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Vector:
    """An array, the loop variables of its axes, and of Python numbers their kind ("" for NumPy's)."""

    data: Any
    axes: tuple[str, ...] = ()
    plain: str = ""
    limit: int = 0
    """Of Python's whole numbers in tiles: what none exceeds in size; 0: not known."""
    choices: tuple[tuple[Vector, Vector], ...] = ()
    """Values of several types, each after the condition under which it is the value: what is done with it
    depends on its type. `data` has them all in one type."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Type of its elements."""
        return PLAIN_DTYPES[self.plain] if self.plain else self.data.dtype

    @property
    def is_number(self) -> bool:
        """Whether it is one Python number, and not an array of them."""
        return bool(self.plain) and type(self.data) in KINDS


def constant(value: Any) -> Vector:
    """One number."""
    if type(value) in KINDS:
        return Vector(value, (), KINDS[type(value)])
    return Vector(np.asarray(value) if isinstance(value, np.generic) else value)


def lined_up(data: Any, axes: tuple[str, ...], target: tuple[str, ...]) -> Any:
    """An array with its axes in another order, and axes of length 1 for those it lacks."""
    if not axes or axes == target:
        return data
    order = tuple(axes.index(each) for each in target if each in axes)
    if order != tuple(range(len(order))):
        data = (
            data.transpose(order) if isinstance(data, np.ndarray) else functions().permute_dims(data, order)
        )
    if len(axes) == len(target):
        return data
    return data[tuple(slice(None) if each in axes else None for each in target)]


def merged(*vectors: Vector) -> tuple[str, ...]:
    """The axes of all, in the order in which they appear."""
    found: dict[str, None] = {}
    for each in sorted(vectors, key=lambda one: -len(one.axes)):
        found.update(dict.fromkeys(each.axes))
    return tuple(found)


def in_tiles(vector: Vector) -> Vector:
    """With an array in tiles in the place of NumPy's."""
    if isinstance(vector.data, np.ndarray):
        known = limit(vector) if vector.plain == "i" else 0
        return Vector(functions().asarray(vector.data), vector.axes, vector.plain, known)
    return vector


def _arranged(*vectors: Vector) -> tuple[list[Any], tuple[str, ...]]:
    """The arrays of several vectors, ready to be broadcast against each other."""
    axes = merged(*vectors)
    if all(isinstance(each.data, np.ndarray) or not each.axes for each in vectors):
        lengths = {
            a: n for each in vectors if each.axes for a, n in zip(each.axes, each.data.shape, strict=True)
        }
        if (
            np.prod([float(lengths[a]) for a in axes]) > LARGE
            and sum(bool(each.axes) for each in vectors) > 1
        ):
            vectors = tuple(in_tiles(each) for each in vectors)
    return [lined_up(each.data, each.axes, axes) for each in vectors], axes


def cast(vector: Vector, dtype: np.dtype[Any]) -> Vector:
    """With another dtype; NumPy's own from then on."""
    if vector.choices:
        return _for_each_choice(lambda one: cast(one, dtype), vector)
    if vector.plain == "i" and dtype.kind in "iu":
        check_fits(vector, dtype)
    if vector.is_number:
        return Vector(np.asarray(vector.data).astype(dtype))
    data: Any = vector.data
    return Vector(data if data.dtype == dtype else data.astype(dtype), vector.axes)


def plain_as(vector: Vector, kind: str) -> Vector:
    """A vector of Python numbers as numbers of a wider kind."""
    if vector.plain == kind:
        return vector
    if vector.is_number:
        return Vector({"i": int, "f": float, "c": complex}[kind](vector.data), (), kind)
    return Vector(vector.data.astype(PLAIN_DTYPES[kind]), vector.axes, kind, 1 if kind == "i" else 0)


def alike(*vectors: Vector) -> list[Vector]:
    """With one dtype, as NumPy's scalars would agree on it."""
    strong = [each.dtype for each in vectors if not each.plain]
    if not strong:
        kind = max((each.plain for each in vectors), key="bifc".index)
        return [plain_as(each, kind) for each in vectors]
    wide = np.result_type(*strong, *(PLAIN_SCALARS[each.plain] for each in vectors if each.plain))
    return [cast(each, wide) for each in vectors]


# ---- operations

_UFUNCS = {
    "+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide, "//": np.floor_divide, "%": np.remainder,
    "**": np.power, "&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor, "<<": np.left_shift,
    ">>": np.right_shift, "<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal,
    "==": np.equal, "!=": np.not_equal,
}  # fmt: skip


def binary(op: str, left: Vector, right: Vector) -> Vector:
    """An operator."""
    if left.choices or right.choices:
        left, right = _settled(left, right), _settled(right, left)
    if left.choices or right.choices:
        return _for_each_choice(lambda one, other: binary(op, one, other), left, right)
    if left.plain and right.plain:
        return _plain_binary(op, left, right)
    if not (left.is_number or right.is_number) and (left.plain or right.plain):
        strong, weak = (right, left) if left.plain else (left, right)
        wide = np.result_type(strong.dtype, PLAIN_SCALARS[weak.plain])
        left, right = (cast(left, wide), right) if left.plain else (left, cast(right, wide))
    return apply(_UFUNCS[op], left, right)


def _plain_binary(op: str, left: Vector, right: Vector) -> Vector:
    """An operator on Python's numbers."""
    comparing = op in ("<", "<=", ">", ">=", "==", "!=")
    kind = max(left.plain, right.plain, key="bifc".index)
    if not comparing and op not in ("&", "|", "^"):
        kind = "f" if op == "/" and kind in "bi" else ("i" if kind == "b" else kind)
    if op == "**" and kind == "i" and not (isinstance(right.data, int) and right.data >= 0):
        kind = "f"  # 2 ** -1 is 0.5
    if op in ("/", "//", "%") and not isinstance(right.data, ArrayBase) and np.any(np.equal(right.data, 0)):
        raise DividedByZero
    left, right = plain_as(left, kind), plain_as(right, kind)
    known = result_limit(op, left, right) if kind == "i" and not comparing else 0
    made = apply(_UFUNCS[op], left, right)
    return Vector(_as_python(made.data), made.axes, "b" if comparing else kind, known)


def _as_python(data: Any) -> Any:
    return (
        data.item()
        if isinstance(data, np.generic) or (isinstance(data, np.ndarray) and not data.ndim)
        else data
    )


def apply(ufunc: Any, *vectors: Vector) -> Vector:
    """A function of NumPy's, element by element."""
    arrays, axes = _arranged(*vectors)
    made = ufunc(*arrays)
    return Vector(np.asarray(made) if isinstance(made, np.generic) else made, axes)


def unary(op: str, operand: Vector) -> Vector:
    """`-x`, `+x`, `~x`, `not x`."""
    if operand.choices:
        return _for_each_choice(lambda one: unary(op, one), operand)
    if op == "not":
        return (
            apply(np.logical_not, truth(operand))
            if not operand.plain
            else _plain(np.logical_not, operand, "b")
        )
    ufunc = {"-": np.negative, "less": np.negative, "+": np.positive, "~": np.invert}[op]
    if operand.plain:
        kind = "i" if operand.plain == "b" else operand.plain
        return _plain(ufunc, plain_as(operand, kind), kind)
    return apply(ufunc, operand)


def _plain(ufunc: Any, operand: Vector, kind: str) -> Vector:
    made = apply(ufunc, operand)
    known = limit(operand) if kind == "i" else 0
    if known > LONGEST and looked_at(operand) > LONGEST:
        raise Overflow
    return Vector(_as_python(made.data), made.axes, kind, known)


def truth(vector: Vector) -> Vector:
    """Whether each element counts as true."""
    if vector.choices:
        return _for_each_choice(truth, vector)
    if vector.dtype.kind == "b":
        return Vector(np.asarray(vector.data) if vector.is_number else vector.data, vector.axes)
    return Vector(apply(np.not_equal, vector, constant(0)).data, vector.axes)


def where(condition: Vector, yes: Vector, no: Vector) -> Vector:
    """One of two values for each element."""
    if not condition.axes and isinstance(condition.data, bool | np.bool):
        return yes if condition.data else no
    if _type(yes) == _type(no) and not (yes.choices or no.choices):
        return _chosen(condition, yes, no)
    holds = truth(condition)
    fails = apply(np.logical_not, holds)
    found: dict[tuple[str, np.dtype[Any] | None], tuple[Vector, Vector]] = {}
    for test, branch in ((holds, yes), (fails, no)):
        for among, value in branch.choices or ((None, branch),):
            mine = test if among is None else apply(np.logical_and, test, among)
            if _type(value) in found:
                before, other = found[_type(value)]
                found[_type(value)] = apply(np.logical_or, before, mine), _chosen(mine, value, other)
            else:
                found[_type(value)] = mine, value
    one, other = (Vector(each.data, each.axes, each.plain, each.limit) for each in (yes, no))
    try:
        one, other = alike(one, other)
    except Overflow:  # a number that the other's dtype cannot hold
        wide = np.result_type(one.dtype, other.dtype)
        one, other = cast(one, wide), cast(other, wide)
    made = _chosen(condition, one, other)
    choices = tuple(found.values()) if len(found) > 1 else ()
    return Vector(made.data, made.axes, made.plain, made.limit, choices)


def _chosen(condition: Vector, yes: Vector, no: Vector) -> Vector:
    """One of two values of one type."""
    arrays, axes = _arranged(truth(condition), yes, no)
    chosen = functions().where if any(isinstance(each, ArrayBase) for each in arrays) else np.where
    known = max(limit(yes), limit(no)) if yes.plain == "i" else 0
    return Vector(chosen(*arrays), axes, yes.plain, known)


def _type(vector: Vector) -> tuple[str, np.dtype[Any] | None]:
    """What decides about the types of results: the kind of a Python number, or a dtype."""
    return vector.plain, None if vector.plain else vector.dtype


def zero(vector: Vector) -> Vector:
    """A zero of the same type."""
    return (
        Vector(PLAIN_DTYPES[vector.plain].type(0).item(), (), vector.plain)
        if vector.plain
        else Vector(np.zeros((), vector.dtype))
    )


def _for_each_choice(function: Callable[..., Vector], *vectors: Vector, protected: bool = False) -> Vector:
    """What a function makes of values of several types: of each as it is; on request only where it is chosen,
    and of zeros elsewhere."""
    number = next(number for number, each in enumerate(vectors) if each.choices)
    results: list[tuple[Vector, Vector]] = []
    for test, value in vectors[number].choices:
        given = where(test, value, zero(value)) if protected else value
        results.append((test, function(*vectors[:number], given, *vectors[number + 1 :])))
    (_, made), *others = results
    for test, value in others:
        made = where(test, value, made)
    return made


_LONG = tuple(np.dtype(each) for each in (np.bool, np.int64, np.float64, np.complex128))
"""The types that Python's own numbers have in arrays."""


def _settled(vector: Vector, other: Vector) -> Vector:
    """Values of several types as one, where that does not change what becomes of them beside another."""
    same = not other.plain and not other.choices and vector.dtype == other.dtype and other.dtype in _LONG
    if same and agrees(vector):
        return Vector(vector.data, vector.axes, vector.plain, vector.limit)
    return vector


def agrees(vector: Vector) -> bool:
    """Whether values of several types may count as one: Python's numbers beside elements of their kind, or of
    one above it (but for whole numbers shorter than 64 bits, which wrap around earlier)."""
    dtypes = {value.dtype for _, value in vector.choices if not value.plain}
    if not dtypes:
        return True
    (dtype, *more) = dtypes
    kinds = {"b": "b", "i": "bi", "f": "bif", "c": "bifc"}.get(dtype.kind, "")
    weak = all(value.plain in kinds for _, value in vector.choices if value.plain)
    return not more and weak and (dtype.kind in "fc" or dtype in _LONG)


def least(word: str, left: Vector, right: Vector) -> Vector:
    """Python's `min` or `max` of two: the first unless the second is smaller (larger)."""
    return where(binary("<" if word == "min" else ">", right, left), right, left)


def logic(op: str, left: Vector, right: Vector) -> Vector:
    """Python's `and` and `or`: one of the two values."""
    if left.dtype.kind == right.dtype.kind == "b":
        made = apply(np.logical_and if op == "and" else np.logical_or, left, right)
        return Vector(_as_python(made.data), made.axes, "b") if left.plain and right.plain else made
    return where(truth(left), right, left) if op == "and" else where(truth(left), left, right)


def call(word: Any, plain: str, arguments: list[Vector], combine: Any = None) -> Vector:
    """A function that `scalar_functions` knows."""
    if word not in ("min", "max", "where") and any(each.choices for each in arguments):
        whole_result = word == "int" or plain == "i"  # of what has no whole part there is none
        return _for_each_choice(
            lambda *some: call(word, plain, list(some), combine), *arguments, protected=whole_result
        )
    if word == "combine":
        arrays, axes = _arranged(*arguments)
        made = combine(*arrays)
        return Vector(np.asarray(made) if np.isscalar(made) else made, axes)
    if word in ("min", "max"):
        return least(word, *arguments)
    if word == "where":
        return where(*arguments)
    if word == "pow":
        return binary("**", *arguments)
    if word == "abs":
        (one,) = arguments
        return (
            _plain(np.abs, one, one.plain if one.plain != "b" else "i") if one.plain else apply(np.abs, one)
        )
    if word == "bool":
        made = truth(arguments[0])
        return Vector(_as_python(made.data), made.axes, "b") if arguments[0].is_number else made
    if word in ("float", "int"):
        (one,) = arguments
        if one.is_number:
            return constant({"float": float, "int": int}[word](one.data))
        if word == "float":
            return Vector(one.data.astype(float), one.axes, "f")
        known = limit(one) if one.plain == "i" else limit_of_dtype(one.dtype)
        return Vector(whole(one.data), one.axes, "i", known)
    if not plain:
        return apply(word, *arguments)
    made = apply(word, *(cast(each, np.dtype(float)) for each in arguments))
    data = made.data if plain != "i" else whole(made.data)
    return Vector(_as_python(data), made.axes, plain)
