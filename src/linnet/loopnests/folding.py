"""Values of many steps combined: the loops that a target does not name, folded away by a monoid."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.nodes import Map, Source
from linnet.arrays.expression.semirings import semiring as semiring_node
from linnet.loopnests.contracting import contracted
from linnet.loopnests.language import Binary, Call, Expr, Logic, Unary
from linnet.loopnests.monoids import Monoid, identity
from linnet.loopnests.scalar_functions import known_function
from linnet.loopnests.vectors import (
    Vector,
    agrees,
    alike,
    apply,
    binary,
    cast,
    constant,
    functions,
    in_tiles,
    lined_up,
    unary,
    where,
    zero,
)
from linnet.loopnests.whole_numbers import check_fold, limit
from linnet.sparse_arrays.array import SparseArray
from linnet.sparse_arrays.rules import semiring

if TYPE_CHECKING:
    from linnet.loopnests.running import Step


def fold(
    step: Step, monoid: Monoid, value: Expr, folded: list[str], mask: Vector | None, old: Vector
) -> Vector:
    """The values of all steps of the loops that the target does not name, combined."""
    if monoid.name == "+":
        match value:
            case Binary("+" | "-" as op, left, right) if (like := _one_type(step, value, old)) is not None:
                one = fold(step, monoid, left, folded, mask, like)
                return binary(op, one, fold(step, monoid, right, folded, mask, like))
            case Unary("-", operand) if (like := _one_type(step, value, old)) is not None:
                return unary("-", fold(step, monoid, operand, folded, mask, like))
            case _:
                pass
        found = contracted(step, value, folded, mask, old)
        if found is not None:
            return stored_densely(found)
    found = sparse_product(step, monoid, value, folded, mask)
    if found is not None:
        return stored_densely(found)
    found = dense_product(step, monoid, value, folded, mask, old)
    if found is not None:
        return found
    return folded_away(step, monoid, step.evaluate(value), folded, mask, old)


def _one_type(step: Step, value: Expr, old: Vector) -> Vector | None:
    """A number of the type that sums of terms have, if they may be summed one by one: not where their sum
    wraps around, or is rounded, in a type of its own before it is added."""
    found = step.evaluate(value)
    if found.plain:
        return old
    wide = alike(old, found)[0].dtype
    return zero(found) if not found.choices and found.dtype == wide and wide.kind != "b" else None


_TIMES = {("min", "+"): "add", ("max", "+"): "add", ("max", "min"): "minimum", ("min", "max"): "maximum"}
"""By a fold and an operation: what the kernel of semiring products calls the operation."""
_TRUTHS = {("or", "and"): ("max", "minimum"), ("and", "or"): ("min", "maximum")}


def dense_product(
    step: Step, monoid: Monoid, value: Expr, folded: list[str], mask: Vector | None, old: Vector
) -> Vector | None:
    """A fold of sums (or others) of two matrices as one product; None if it is something else."""
    match value:
        case Binary("+", left, right) | Logic("and" | "or", left, right):
            word = value.op
        case Call(word, (left, right)) if known_function(step.machine.functions[word], 2) is not None:
            word = str(known_function(step.machine.functions[word], 2).ufunc)  # type: ignore[union-attr]
        case _:
            return None
    plus, times = _TRUTHS.get((monoid.name, word), (monoid.name, _TIMES.get((monoid.name, word), "")))
    if len(folded) != 1 or mask is not None or not times:
        return None
    one, other = step.evaluate(left), step.evaluate(right)
    (k,) = folded
    names = [*one.axes, *other.axes]
    if len(one.axes) != 2 or len(other.axes) != 2 or names.count(k) != 2 or len(set(names)) != 3:
        return None
    dtypes = {each.dtype for each in (one, other, old)}
    if len(dtypes) != 1 or one.plain or other.plain or one.dtype.kind not in "biuf":
        return None
    if not (agrees(one) and agrees(other)):
        return None
    if (one.dtype.kind == "b") != (monoid.name in ("or", "and")) or SparseArray in map(
        type, (one.data, other.data)
    ):
        return None
    nodes = [
        lined_up(in_tiles(each).data, each.axes, order).__node__
        for each, order in ((one, (*_without(one, k), k)), (other, (k, *_without(other, k))))
    ]
    made = semiring_node(nodes[0], nodes[1], plus, times, one.dtype, True)
    return Vector(wrap(made), (*_without(one, k), *_without(other, k)))


def _without(one: Vector, k: str) -> tuple[str, ...]:
    return tuple(each for each in one.axes if each != k)


def stored_densely(found: Vector) -> Vector:
    """What goes into an array of the program, which is dense."""
    data = found.data
    return Vector(data.todense(), found.axes, found.plain) if isinstance(data, SparseArray) else found


_PRODUCTS = {
    ("min", "+", np.inf): ("fmin", "add"),
    ("max", "+", -np.inf): ("fmax", "add"),
    ("or", "and", False): ("logical_or", "logical_and"),
}
"""By a fold, an operation and the fill that is identity of the one and annihilates in the other."""


def sparse_product(
    step: Step, monoid: Monoid, value: Expr, folded: list[str], mask: Vector | None
) -> Vector | None:
    """A fold of sums (or others) of two matrices, one of them sparse, as their product; None if it is not."""
    if not isinstance(value, Binary | Logic) or len(folded) != 1 or mask is not None:
        return None
    one, other = step.evaluate(value.left), step.evaluate(value.right)
    sparse = [each.data for each in (one, other) if isinstance(each.data, SparseArray)]
    found = {
        _PRODUCTS.get((monoid.name, value.op, each.fill.item())) if each.dtype.kind in "fb" else None
        for each in sparse
    }
    (k,) = folded
    names = [*one.axes, *other.axes]
    if len(found) != 1 or None in found or names.count(k) != 2 or len(set(names)) != len(names) - 1:
        return None
    if len(one.axes) > 2 or len(other.axes) > 2:
        return None
    ((plus, times),) = found  # type: ignore[misc]
    rest = tuple(each for each in names if each != k)
    left = lined_up(in_tiles(one).data, one.axes, (*(each for each in one.axes if each != k), k))
    right = lined_up(in_tiles(other).data, other.axes, (k, *(each for each in other.axes if each != k)))
    return Vector(semiring(left, right, plus, times), rest)


def is_identity(monoid: Monoid, old: Vector) -> bool:
    """Whether all cells are known to hold what changes nothing: a new array of zeros, before a sum."""
    node = getattr(old.data, "__node__", None)
    if monoid.combine is not None or not isinstance(node, Map) or node.op != "fill":
        return False
    (value,) = node.inputs
    start = identity(monoid, node.dtype) if monoid.name != "and" else np.True_
    return isinstance(value, Source) and not value.shape and bool(value.data == start)


def folded_away(
    step: Step, monoid: Monoid, value: Vector, folded: list[str], mask: Vector | None, old: Vector
) -> Vector:
    """A vector without the axes of some loops."""
    scalar = step.statement.target.array in step.machine.nest.scalars
    if scalar and not agrees(value):
        step.machine.refuse(
            step.statement,
            "values of several types are combined in a scalar, whose type then depends on their order",
            "give them one type: float(...), int(...)", None,
        )  # fmt: skip
    picks = scalar and monoid.name in ("min", "max")
    wide = value if picks else alike(old, value)[1]  # the least value stays what it is
    if monoid.name in ("or", "and"):
        value = _truths(step, old, value)
    elif not picks and not (value.plain and wide.plain):
        value = cast(value, np.dtype(wide.dtype))
    else:
        value = wide
    if monoid.name in ("min", "max") and value.dtype.kind == "c":
        step.machine.refuse(
            step.statement, "complex numbers have no order", "compare their absolute values", None
        )
    if monoid.name in ("min", "max") and value.dtype.kind == "f":
        value = without_nan(value, identity(monoid, value.dtype))
    if mask is not None:
        value = masked(mask, value, identity(monoid, value.dtype))
    lengths = {name: len(step.place.ranges[name]) for name in folded}
    missing = [name for name in folded if name not in value.axes]
    if missing:
        value = _repeated(step, monoid, value, missing, lengths)
    axes = tuple(number for number, name in enumerate(value.axes) if name in folded)
    if not axes:
        return value
    rest = tuple(name for name in value.axes if name not in folded)
    count = math.prod(lengths[name] for name in folded if name in value.axes)
    known = check_fold(monoid.name, value, count) if value.plain == "i" else 0
    return Vector(folds(monoid, in_tiles(value).data, axes, value.dtype), rest, value.plain, known)


def masked(mask: Vector, value: Vector, fill: Any) -> Vector:
    """With the identity where no step runs; Python numbers stay what they are."""
    full = spread(value)
    made = where(mask, Vector(full.data, full.axes), Vector(np.asarray(fill)))
    known = max(limit(value), abs(int(fill))) if value.plain == "i" else 0
    return Vector(made.data, made.axes, value.plain, known)


def _truths(step: Step, old: Vector, value: Vector) -> Vector:
    if old.dtype.kind != "b" or value.dtype.kind != "b":
        step.machine.refuse(
            step.statement,
            f"`or` and `and` of {old.dtype} and {value.dtype} give one of the two, so the order matters",
            "use arrays of Booleans, and comparisons", None,
        )  # fmt: skip
    return value


def spread(value: Vector) -> Vector:
    """Python's number as an array."""
    return Vector(np.asarray(value.data, value.dtype), (), value.plain) if value.is_number else value


def without_nan(value: Vector, fill: Any) -> Vector:
    """Python's `min` passes over values that are not a number."""
    value = spread(value)
    made = where(
        apply(np.isnan, Vector(value.data, value.axes)),
        Vector(np.asarray(fill)),
        Vector(value.data, value.axes),
    )
    return Vector(made.data, made.axes, value.plain)


def _repeated(
    step: Step, monoid: Monoid, value: Vector, missing: list[str], lengths: dict[str, int]
) -> Vector:
    """A value that is the same in all steps of some loops, combined with itself so many times."""
    times = int(np.prod([lengths[name] for name in missing], dtype=object))
    if monoid.name == "+":  # sums of NumPy's Booleans are Booleans
        once = value.dtype.kind == "b" and not value.plain
        return value if once else binary("*", value, _factor(value, times))
    if monoid.name == "*":
        return _power(value, times) if value.dtype.kind in "iub" else binary("**", value, constant(times))
    if monoid.name in ("min", "max", "or", "and", "&", "|"):
        return value
    if monoid.name == "^":
        return value if times % 2 else binary("^", value, value)
    shape = [lengths[name] for name in missing]
    data = in_tiles(spread(value)).data
    data = functions().broadcast_to(data, (*shape, *data.shape))
    return Vector(data, (*missing, *value.axes), value.plain)


def _factor(value: Vector, times: int) -> Vector:
    """How often a value is added, in its dtype: integers wrap around, as they do one by one."""
    if value.plain or value.dtype.kind not in "iu":
        return constant(times)
    bits = 8 * value.dtype.itemsize
    return Vector(np.asarray(times % 2**bits, np.dtype(f"u{bits // 8}")).astype(value.dtype))


def _power(value: Vector, times: int) -> Vector:
    """A whole number multiplied by itself: products wrap around one by one."""
    made: Vector | None = None
    while times:
        if times % 2:
            made = value if made is None else binary("*", made, value)
        times //= 2
        value = binary("*", value, value) if times else value
    assert made is not None
    return made


def folds(monoid: Monoid, data: Any, axes: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    xp = functions()
    match monoid.name:
        case "+":
            return xp.sum(data, axis=axes, dtype=dtype if dtype.kind != "b" else bool)
        case "*":
            return xp.prod(data, axis=axes, dtype=dtype)
        case "min":
            return xp.min(data, axis=axes)
        case "max":
            return xp.max(data, axis=axes)
        case "or":
            return xp.any(data, axis=axes)
        case "and":
            return xp.all(data, axis=axes)
        case "&" | "|" | "^":
            ufunc = {"&": np.bitwise_and, "|": np.bitwise_or, "^": np.bitwise_xor}[monoid.name]
            for axis in reversed(axes):
                data = ufunc.reduce(data, axis=axis)
            return data
        case _:
            return _by_halves(monoid, data, axes)


def _by_halves(monoid: Monoid, data: Any, axes: tuple[int, ...]) -> Any:
    """A fold by a function of the user's: halves are combined until one element is left."""
    assert monoid.combine is not None
    for axis in reversed(axes):
        data = functions().moveaxis(data, axis, 0)
        while data.shape[0] > 1:
            half = data.shape[0] // 2
            made = monoid.combine(data[:half], data[half : 2 * half])
            data = functions().concat([made, data[2 * half :]]) if data.shape[0] % 2 else made
        data = data[0]
    return data
