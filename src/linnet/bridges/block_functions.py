"""Functions on tiles in the forms xarray asks for: reductions and scans."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linnet.arrays.elements.core import as_node, axes_of, recut_as, wrap
from linnet.arrays.expression.builders import permuted
from linnet.arrays.expression.chunking import sizes
from linnet.arrays.expression.nodes import Access, Along, Node, Operand, Span, Spans
from linnet.arrays.functions.map_blocks import called
from linnet.arrays.functions.named_axes import side_by_side
from linnet.kernels.arrays.user_functions import Wrapper
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

_FAN_IN = 16
"""Tiles along an axis that one task of a reduction joins."""


# ---- reductions


def reduced(
    array: Any,
    first: Callable[..., Any],
    combine: Callable[..., Any],
    last: Callable[..., Any],
    axis: Any,
    dtype: Any,
    keepdims: bool,
) -> Any:
    """`first` on each tile, `combine` on what it gave for several tiles, `last` on the rest of them.

    Each is called as `f(tile, axis=axes, keepdims=True)` and leaves one element along these axes.
    """
    node = as_node(array)
    axes = axes_of(axis, node.ndim)
    kind = np.dtype(node.dtype if dtype is None else dtype)
    cut = Layout(
        tuple(
            tuple(range(len(edges))) if a in axes else edges for a, edges in enumerate(node.layout.boundaries)
        )
    )
    step = functools.partial(first, axis=axes, keepdims=True)
    access = tuple(Along(a) for a in range(node.ndim))
    made = called(step, (node,), [Operand(0, access)], cut, kind)
    while any(made.grid[a] > _FAN_IN for a in axes):
        made = _joined(made, axes, functools.partial(combine, axis=axes, keepdims=True), kind)
    made = _joined(made, axes, functools.partial(last, axis=axes, keepdims=True), kind)
    return wrap(made if keepdims else permuted(made, tuple(a for a in range(node.ndim) if a not in axes)))


def _joined(node: Node, axes: tuple[int, ...], function: Callable[..., Any], kind: np.dtype[Any]) -> Node:
    """A function on so many tiles along each axis as one task joins."""
    access: list[Access] = []
    edges: list[Boundaries] = []
    for axis, old in enumerate(node.layout.boundaries):
        if axis not in axes:
            access.append(Along(axis))
            edges.append(old)
            continue
        count = len(old) - 1
        starts = tuple(range(0, count, _FAN_IN))
        access.append(Spans(axis, starts, tuple(min(count, start + _FAN_IN) for start in starts)))
        edges.append(tuple(range(len(starts) + 1)))
    join = _OnNest(function, axes)
    return called(join, (node,), [Operand(0, tuple(access))], Layout(tuple(edges)), kind)


@dataclass(frozen=True, eq=False)
class _OnNest(Wrapper):
    """A function on several tiles as one array."""

    axes: tuple[int, ...]
    """Along which these lie."""

    def __call__(self, nest: Any) -> Any:
        return self.function(side_by_side(nest, self.axes))


# ---- scans


def accumulated(
    array: Any,
    function: Callable[..., Any],
    binop: Callable[..., Any],
    ident: Any,
    axis: int,
    dtype: np.dtype[Any],
    summary: Callable[..., Any] | None,
) -> Any:
    """A cumulative function along an axis: on each tile, and joined with all that came before it.

    `summary(tile, axis=, keepdims=True)` says what a tile hands on to those behind it; without one it
    is the last element of what the function gave. A tile becomes `binop(before, tile)`.
    """
    node = as_node(array)
    access = tuple(Along(a) for a in range(node.ndim))
    each = functools.partial(function, axis=axis, dtype=dtype)
    inside = called(each, (node,), [Operand(0, access)], node.layout, dtype)
    count = node.grid[axis]
    if count == 1:
        return wrap(inside)
    one = _with(node.layout, axis, tuple(range(count + 1)))
    if summary is None:
        ends = functools.partial(np.take, indices=[-1], axis=axis)
        handed = called(ends, (inside,), [Operand(0, access)], one, dtype)
    else:
        ends = functools.partial(summary, axis=axis, keepdims=True)
        handed = called(ends, (node,), [Operand(0, access)], one, dtype)
    spanned = tuple(Span(0, count) if a == axis else Along(a) for a in range(node.ndim))
    together = _with(node.layout, axis, (0, count))
    carried = called(_Before(binop, ident, axis), (handed,), [Operand(0, spanned)], together, dtype)
    parted = recut_as(carried, sizes(one))
    operands = [Operand(0, access), Operand(1, access)]
    return wrap(called(binop, (parted, inside), operands, node.layout, dtype))


@dataclass(frozen=True, eq=False)
class _Before(Wrapper):
    """For each of several tiles, what those before it give together."""

    ident: Any
    axis: int

    def __call__(self, nest: Any) -> Any:
        blocks = [np.full_like(nest[0], self.ident)]
        for tile in nest[:-1]:
            blocks.append(self.function(blocks[-1], tile))
        return np.concatenate(blocks, axis=self.axis)


def _with(layout: Layout, axis: int, edges: Boundaries) -> Layout:
    return Layout((*layout.boundaries[:axis], edges, *layout.boundaries[axis + 1 :]))
