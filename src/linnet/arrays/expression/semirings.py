"""Products over other pairs of operations than + and *: min or max of sums, of minima, of maxima.

A reduction of an element-wise expression of two matrices is such a product, if each of them lacks an axis
that the other has: `(a[:, :, None] + b[None]).min(axis=1)`. Then no array of three axes is made.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linnet.arrays.expression.builders import blocks, is_free, permuted, recut
from linnet.arrays.expression.nodes import Along, At, Map, Node, Operand, Piece, Span
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, regular

_LEAST = 1 << 15
"""Pairs from which it pays."""
_SIDE = 512
"""Rows and columns of the tiles of a product of arrays in memory, at most."""
_TASKS = 8
"""Tasks that such a product should have at least along its longer side, if their tiles are not too short."""
_SHORT = 256
"""Rows and columns of a tile from which a task takes longer than handing it over."""
_TIMES = {"add": "add", "minimum": "minimum", "maximum": "maximum"}
_TRUTHS = {
    "logical_and": "minimum",
    "bitwise_and": "minimum",
    "logical_or": "maximum",
    "bitwise_or": "maximum",
}


def semiring(left: Node, right: Node, plus: str, times: str, dtype: Any, skip: bool) -> Node:
    """The product of two matrices; `skip` passes over values that are no number, as Python's `min` does."""
    rows, deep = left.layout.boundaries
    columns = right.layout.boundaries[1]
    if is_free(left) and is_free(right):
        rows, columns = _side(rows[-1]), _side(columns[-1])
        deep = (0, deep[-1])
    inputs = recut(left, Layout((rows, deep))), recut(right, Layout((deep, columns)))
    depth = At(0) if len(deep) == 2 else Span(0, len(deep) - 1)
    operands = Operand(0, (Along(0), depth)), Operand(1, (depth, Along(1)))
    attributes = (("plus", plus), ("times", times), ("skip", skip))
    piece = Piece("semiring_product", operands, attributes)
    return blocks(inputs, (piece,), Layout((rows, columns)), dtype)


def _side(length: int) -> Boundaries:
    return regular(length, min(_SIDE, max(_SHORT, -(-length // _TASKS)))) if length else (0, 0)


def folded_product(node: Node, kind: str, axes: tuple[int, ...]) -> Node | None:
    """The reduction of a node over an axis, if that is a product; else None."""
    if not isinstance(node, Map) or len(axes) != 1 or node.ndim != 3 or len(node.inputs) != 2:
        return None
    truths = node.dtype == np.bool_
    plus = {"any": "max", "all": "min"}.get(kind) if truths else {"min": "min", "max": "max"}.get(kind)
    times = (_TRUTHS if truths else _TIMES).get(node.op)
    if (plus, times) not in PAIRS or times is None or plus is None or math.prod(node.shape) < _LEAST:
        return None
    if node.dtype.kind not in "biuf" or any(each.dtype != node.dtype for each in node.inputs):
        return None
    (deep,) = axes
    sides = [_long_axes(each, node) for each in node.inputs]
    if any(deep not in each or len(each) != 2 for each in sides) or sides[0].keys() == sides[1].keys():
        return None
    (row, column) = (next(axis for axis in each if axis != deep) for each in sides)
    left = permuted(node.inputs[0], (sides[0][row], sides[0][deep]))
    right = permuted(node.inputs[1], (sides[1][deep], sides[1][column]))
    made = semiring(left, right, plus, times, node.dtype, False)
    return made if row < column else permuted(made, (1, 0))


PAIRS = (("min", "add"), ("max", "add"), ("max", "minimum"), ("min", "maximum"))
"""⊕ and ⊗ of products that there are."""


def _long_axes(operand: Node, node: Node) -> dict[int, int]:
    """By axis of a node, the axis of an operand that is not broadcast along it."""
    shift = node.ndim - operand.ndim
    return {axis + shift: axis for axis, length in enumerate(operand.shape) if length > 1}
