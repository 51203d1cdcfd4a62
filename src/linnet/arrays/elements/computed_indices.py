"""Indices and masks that a plan depends on: computed beforehand, if there is room for them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.elements.core import ArrayBase
from linnet.arrays.elements.whole_axes import budget
from linnet.arrays.expression.nodes import Node, Source
from linnet.arrays.expression.operands import as_read
from linnet.arrays.lowering.evaluate import computed
from linnet.errors import BudgetError
from linnet.tiles import human


def known(values: Any) -> NDArray[Any]:
    """Values that a plan depends on: lazy ones are computed."""
    return known_nodes([values.__node__])[0] if isinstance(values, ArrayBase) else as_read(values)


def known_nodes(nodes: Sequence[Node]) -> list[NDArray[Any]]:
    """The values of nodes that a plan depends on; refused if they take more than half of the budget.

    >>> known_nodes([Source(np.arange(2))])
    [array([0, 1])]
    """
    # What is in memory already costs nothing.
    sizes = [math.prod(n.shape) * n.dtype.itemsize for n in nodes if not isinstance(n, Source)]
    if 2 * sum(sizes) > budget():
        raise BudgetError(
            f"a lazy index or mask of {human(sum(sizes))} has to be known whole to plan with it, and the "
            f"budget is {human(budget())}; use a shorter one, or compute() it first to do it all the same"
        )
    return computed(list(nodes))


def settled(indices: Any, length: int, mode: str, axis: int | None = None) -> NDArray[np.intp]:
    """Positions inside an axis, as `mode` says: "raise", "wrap" or "clip".

    >>> settled([-1, 2], 5, "raise")
    array([4, 2])
    """
    array = known(indices)
    if array.size == 0 and not isinstance(indices, ArrayBase | np.ndarray):
        array = array.astype(np.intp)
    array = array.astype(np.intp, casting="same_kind", copy=False)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if array.size and not length:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    if mode == "clip":
        return np.clip(array, 0, max(0, length - 1))
    if mode == "raise":
        wrong = (array < -length) | (array >= length)
        if wrong.any():
            where_text = "" if axis is None else f" for axis {axis}"
            raise IndexError(f"index {array[wrong][0]} is out of bounds{where_text} with size {length}")
    return np.where(array < 0, array + length, array) if mode == "raise" else array % max(1, length)
