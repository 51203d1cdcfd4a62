"""Arrays that count as computed after others, so that what is built on them is computed again, and late.

Equal expressions are computed once. What `checkpoint` computes again must not be taken for what was
computed on the way forward, and must not begin before the weights come back: so it is built on an operation
that waits for these.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from linnet.arrays.elements.core import wrap
from linnet.arrays.expression.builders import mapped
from linnet.arrays.expression.traced import traceable
from linnet.derivatives.linear_maps import layout_of
from linnet.derivatives.rules import Derivatives, Linear, maps


def after(arrays: Sequence[Any], weight: Any) -> list[Any]:
    """The same arrays, as ones that are there when a weight is: element by element, or its first element."""
    awaited = next(each for each in weight if each is not None) if isinstance(weight, tuple) else weight
    first: Any = None
    found: list[Any] = []
    for array in arrays:
        if array.shape == awaited.shape and layout_of(array) == layout_of(awaited):
            found.append(wait(array, awaited))
            continue
        if first is None and awaited.size:
            first = awaited[(0,) * awaited.ndim]
        found.append(array if first is None else wait(array, first))
    return found


@traceable
def wait(x: Any, other: Any) -> Any:
    """`x`, computed after `other`."""
    return wrap(
        mapped("after", [x.__node__, other.__node__], x.dtype, shape=x.shape, layout=x.__node__.layout)
    )


@maps(wait, text="1; 0")
def _wait(result: Any, x: Any, other: Any) -> Derivatives:
    nothing = Linear(lambda t: None, lambda g: None)
    return {"x": Linear(lambda t: t, lambda g: g), "other": nothing}


__all__ = ["after", "wait"]
