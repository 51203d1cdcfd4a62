"""Means and variances with an integer `dtype=`: NumPy cuts elements, means and results to integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.elements.core import as_node, wrap
from linnet.arrays.elements.elementwise import apply, cast
from linnet.arrays.elements.means_and_variances import less
from linnet.arrays.elements.reductions import NOT_GIVEN, counted, masked
from linnet.arrays.expression.builders import folded, mapped
from linnet.arrays.expression.nodes import Node


def integer_mean(
    node: Node, axes: tuple[int, ...], dtype: np.dtype[Any], keepdims: bool, where: Any, ddof: Any = 0
) -> Node:
    """A mean in integers, as NumPy has it: elements and the mean itself are cut to integers."""
    total = folded(masked(cast(node, dtype), where, 0), "sum", axes, dtype, keepdims=keepdims, inner=dtype)
    count = less(cast(counted(node, axes, where, keepdims), np.float64), ddof)
    return cast(mapped("divide", [cast(total, np.float64), count], np.float64), dtype)


def integer_variance(
    node: Node,
    axes: tuple[int, ...],
    dtype: np.dtype[Any],
    ddof: Any,
    keepdims: bool,
    where: Any,
    mean: Any,
    root: bool,
) -> Node:
    """A variance in integers, as NumPy has it: the mean that is taken off is an integer too."""
    centre = integer_mean(node, axes, dtype, True, where) if mean is NOT_GIVEN else as_node(mean)
    away = apply(np.subtract, wrap(node), wrap(centre))
    squares = apply(np.multiply, away, apply(np.conjugate, away))
    spread_out = wrap(squares.__node__).real.__node__ if squares.dtype.kind == "c" else squares.__node__
    made = integer_mean(spread_out, axes, dtype, keepdims, where, ddof)
    if not root:
        return made
    if made.shape:
        raise TypeError(f"a standard deviation in {dtype} is not whole; give a dtype of floats, or none")
    return cast(mapped("sqrt", [cast(made, np.float64)], np.float64), dtype)
