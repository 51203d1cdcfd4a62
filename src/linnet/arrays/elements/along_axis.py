"""Elements of lines along an axis, at positions that may stay lazy: tile by tile of the positions."""

from __future__ import annotations

import math
from typing import Any

from linnet.arrays.elements.core import ArrayBase, wrap
from linnet.arrays.elements.shapes import ravel, reshape
from linnet.arrays.elements.whole_axes import budget
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import blocks, recut
from linnet.arrays.expression.nodes import Access, Along, At, Node, Operand, Piece, Source
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries


def looked_up(node: Node, positions: Any) -> Node | None:
    """A short line at lazy positions that are too many to plan with; None: they are not, or it is long.

    What is out of bounds is found when the elements are computed.
    """
    if node.ndim != 1 or not isinstance(positions, ArrayBase) or positions.__node__.dtype.kind not in "iu":
        return None
    index = positions.__node__
    size = math.prod(index.shape) * index.dtype.itemsize
    line = node.shape[0] * node.dtype.itemsize
    if isinstance(index, Source) or 2 * size <= budget() or 4 * line > budget():
        return None
    found = taken_along(node, ravel(wrap(index)).__node__, 0)
    return reshape(wrap(found), index.shape).__node__


def taken_along(node: Node, index: Node, axis: int) -> Node:
    """Lines lie whole in tiles; the index may stay lazy."""
    others = [(n, m) for a, (n, m) in enumerate(zip(node.shape, index.shape, strict=True)) if a != axis]
    if any(n != m and 1 not in (n, m) for n, m in others):
        raise IndexError(
            f"shape mismatch: lines of shapes {node.shape} and {index.shape} along axis {axis} cannot be "
            "broadcast together"
        )
    if node.grid[axis] == 1:
        cut = node.layout
    else:
        chunks = tuple(-1 if a == axis else "auto" for a in range(node.ndim))
        cut = chunking.normalized(chunks, node.shape, node.dtype)
    edges: list[Boundaries] = []
    inputs: list[tuple[list[Boundaries], list[Access]]] = [([], []), ([], [])]
    for a, (n, m) in enumerate(zip(node.shape, index.shape, strict=True)):
        if a == axis:
            edges.append(index.layout.boundaries[a])
            steps: list[tuple[Boundaries, Access]] = [((0, n), At(0)), (edges[-1], Along(a))]
        else:
            edges.append(cut.boundaries[a] if n != 1 else index.layout.boundaries[a])
            steps = [(edges[-1], Along(a)) if k == edges[-1][-1] else ((0, 1), At(0)) for k in (n, m)]
        for (cuts, access), (cut_here, read) in zip(inputs, steps, strict=True):
            cuts.append(cut_here)
            access.append(read)
    operands = tuple(Operand(which, tuple(access)) for which, (_, access) in enumerate(inputs))
    nodes = [recut(each, Layout(tuple(cuts))) for each, (cuts, _) in zip((node, index), inputs, strict=True)]
    return blocks(
        nodes, (Piece("take_along", operands, (("axis", axis),)),), Layout(tuple(edges)), node.dtype
    )
