"""Sums of products as contractions, which run as matrix products."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.expression.nodes import Source
from linnet.loopnests.language import Binary, Expr
from linnet.loopnests.vectors import Vector, agrees, alike, binary, cast, functions, in_tiles, where
from linnet.loopnests.whole_numbers import looked_at

if TYPE_CHECKING:
    from linnet.loopnests.running import Step


def factors(node: Expr) -> list[Expr]:
    """The factors of a product.

    >>> from linnet.loopnests.language import Name
    >>> factors(Binary("*", Binary("*", Name("a"), Name("b")), Name("c")))
    [Name(name='a'), Name(name='b'), Name(name='c')]
    """
    if isinstance(node, Binary) and node.op == "*":
        return [*factors(node.left), *factors(node.right)]
    return [node]


def contracted(step: Step, value: Expr, folded: list[str], mask: Vector | None, old: Vector) -> Vector | None:
    """A sum over loops of a product, by `einsum`; None if it is no such sum, or another way is better."""
    match value:
        case Binary("/", product, divisor) if isinstance(product, Binary):
            return _divided(step, product, divisor, folded, mask, old)
        case _:
            pass
    parts = [step.evaluate(each) for each in factors(value)]
    arrays = [each for each in parts if each.axes]
    if len(arrays) < 2 or not all(map(agrees, parts)):
        return None
    together = {name for each in arrays for name in each.axes}
    if any(set(each.axes) == together for each in arrays) and len(together) > 1:
        big = [each for each in arrays if set(each.axes) == together]
        if len(big) == len(arrays):
            return None  # element by element: a plain sum does it
    if not set(folded) <= together:
        return None
    wide = alike(old, *parts)[0].dtype
    if wide.kind in "iub" and any(each.dtype != wide for each in parts if not each.plain):
        return None  # products that wrap around must do so in their own dtype
    if not _fits(parts, np.dtype(wide)):
        return None  # their products wrap around before they are added
    if wide.kind == "b" or all(each.plain == "i" for each in (old, *parts)):
        return None  # whole numbers of Python's must not wrap around at all
    if mask is not None:
        masked = _masked(arrays, mask)
        if masked is None:
            return None
        arrays = masked
    letters = {name: chr(ord("a") + number) for number, name in enumerate(sorted(together))}
    rest = tuple(name for name in sorted(together) if name not in folded)
    text = ",".join("".join(letters[name] for name in each.axes) for each in arrays)
    operands = [in_tiles(cast(each, np.dtype(wide))).data for each in arrays]
    made = Vector(functions().einsum(f"{text}->{''.join(letters[n] for n in rest)}", *operands), rest)
    for each in parts:
        if not each.axes:
            made = binary("*", made, each)
    return made


def _divided(
    step: Step, product: Binary, divisor: Expr, folded: list[str], mask: Vector | None, old: Vector
) -> Vector | None:
    """A sum of products that are all divided by one number, divided once; None if it must be known first
    whether it is zero, or sums might become too large."""
    by = step.evaluate(divisor)
    if (
        by.axes
        or by.choices
        or isinstance(by.data, ArrayBase)
        or not np.isfinite(by.data)
        or not np.all(by.data)
    ):
        return None
    made = contracted(step, product, folded, mask, old)
    if made is None or made.dtype.kind not in "fc" or made.dtype == np.float16:
        return None
    return binary("/", made, by)


def _fits(parts: list[Vector], wide: np.dtype[Any]) -> bool:
    """Whether products of whole numbers that are added to floats are known to fit their own dtype."""
    dtypes = [each.dtype for each in parts if not each.plain]
    product = np.result_type(*dtypes) if dtypes else wide
    if product == wide or product.kind not in "iu" or wide.kind not in "fc":
        return True
    return math.prod(looked_at(each) for each in parts if each.dtype.kind in "biu") <= np.iinfo(product).max


def _masked(arrays: list[Vector], mask: Vector) -> list[Vector] | None:
    """The mask put into one factor. Zero times infinity is no zero: all others must be finite for that."""
    for number, each in enumerate(arrays):
        others = [one for place, one in enumerate(arrays) if place != number]
        if set(mask.axes) <= set(each.axes) and all(_finite(one) for one in others):
            zeroed = where(mask, Vector(each.data, each.axes), Vector(np.zeros((), each.dtype)))
            return [*arrays[:number], zeroed, *arrays[number + 1 :]]
    return None


def _finite(one: Vector) -> bool:
    """Whether all elements are known to be finite; only arrays in memory are looked at."""
    if one.dtype.kind not in "fc":
        return True
    if isinstance(one.data, np.ndarray):
        return bool(np.isfinite(one.data).all())
    node = one.data.__node__
    return isinstance(node, Source) and bool(np.isfinite(node.data).all())
