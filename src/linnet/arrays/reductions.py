"""Reductions: sums, extremes, moments, and what is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from linnet.arrays.building import constant, folded, mapped
from linnet.arrays.core import as_node, axes_of, chunked, wrap
from linnet.arrays.elementwise import cast, sample
from linnet.arrays.expression import Node


def _shaped(result: Any, out: Any) -> Any:
    if out is None:
        return result
    from linnet.arrays.elementwise import _placed

    return _placed(result, out, True, "reduction")


@chunked(np.sum)
def sum(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The sum over axes; tiles are summed pairwise."""
    node = as_node(x)
    made = np.add.reduce(sample(node.dtype), dtype=dtype)
    result = np.dtype(made.dtype)
    return _shaped(
        wrap(folded(node, "sum", axes_of(axis, node.ndim), result, keepdims=bool(keepdims), inner=result)),
        out,
    )


@chunked(np.mean)
def mean(x: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: bool = False) -> Any:
    """The mean over axes."""
    node = as_node(x)
    axes = axes_of(axis, node.ndim)
    with np.errstate(all="ignore"):
        result = np.dtype(np.mean(np.ones((1,), node.dtype), dtype=dtype).dtype)
    inner = np.dtype("f4") if result == np.float16 and dtype is None else result
    total = folded(node, "sum", axes, inner, keepdims=bool(keepdims), inner=inner)
    return _shaped(wrap(cast(mapped("divide", [total, _number(node, axes, inner)], inner), result)), out)


def _number(node: Node, axes: tuple[int, ...], dtype: Any) -> Node:
    count = 1
    for axis in axes:
        count *= node.shape[axis]
    return constant(count, np.zeros((), dtype).real.dtype)


METHODS = {"sum": sum, "mean": mean}
__all__ = ["mean", "sum"]
