"""Which tiles of each node somebody needs: a slice of an array does not compute the rest of it.

From what was asked for back to the sources, each node gets the smallest box of tiles that holds
all that its readers take of it. Loops then run over that box instead of the whole grid.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from linnet.arrays.expression import (
    Access,
    Along,
    At,
    Axes,
    Blocks,
    Fold,
    Map,
    Node,
    Operand,
    Part,
    Span,
    Spans,
)
from linnet.arrays.graph import Graph

Box = tuple[tuple[int, int], ...]
"""The first tile and one past the last, along each axis."""


def boxes(graph: Graph) -> list[Box | None]:
    """For each node the tiles that are needed of it; None if nobody needs any."""
    entries = graph.entries
    found: list[Box | None] = [whole(entry.node) if entry.wanted else None for entry in entries]
    for number in range(len(entries) - 1, -1, -1):
        box = found[number]
        if box is None:
            continue
        entry = entries[number]
        for which, asked in _asked(entry.node, box):
            operand = entry.operands[which]
            # Behind the axes of an array with parts stands the number of a part: a call makes them all.
            tiles = asked[: len(entries[operand].node.grid)]
            found[operand] = union(found[operand], tiles)
    return found


def whole(node: Node) -> Box:
    """All tiles of a node."""
    return tuple((0, count) for count in node.grid)


def union(one: Box | None, other: Box) -> Box:
    """The smallest box that holds both.

    >>> union(((0, 2), (1, 2)), ((1, 3), (0, 1)))
    ((0, 3), (0, 2))
    """
    if one is None:
        return other
    return tuple((min(a, c), max(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))


def common(one: Box, other: Box) -> Box | None:
    """What two boxes share; None if that is nothing.

    >>> common(((0, 2),), ((1, 3),)), common(((0, 1),), ((1, 3),))
    (((1, 2),), None)
    """
    shared = tuple((max(a, c), min(b, d)) for (a, b), (c, d) in zip(one, other, strict=True))
    return None if any(a >= b for a, b in shared) else shared


def _asked(node: Node, box: Box) -> Iterable[tuple[int, Box]]:
    """What a box of a node takes of its operands: which of them, and tiles of it."""
    match node:
        case Map():
            for which, operand in enumerate(node.inputs):
                offset = node.ndim - operand.ndim
                yield (
                    which,
                    tuple(
                        (0, 1) if count == 1 else box[axis + offset]
                        for axis, count in enumerate(operand.grid)
                    ),
                )
        case Axes():
            ranges = [(0, 1)] * node.operand.ndim
            for axis, where in enumerate(node.axes):
                if where >= 0:
                    ranges[where] = box[axis]
            yield 0, tuple(ranges)
        case Fold():
            yield 0, folded(node, box)
        case Part():
            yield 0, box
        case Blocks():
            yield from _of_blocks(node, box)


def folded(node: Fold, box: Box) -> Box:
    """What a box of a reduction takes of its operand: all of the reduced axes."""
    kept = iter(box)
    ranges: list[tuple[int, int]] = []
    for axis, count in enumerate(node.operand.grid):
        if axis not in node.axes:
            ranges.append(next(kept))
        else:
            if node.keepdims:
                next(kept)
            ranges.append((0, count))
    return tuple(ranges)


def piece_box(first: Sequence[int] | None, last: Sequence[int] | None, node: Node) -> Box:
    """The tiles that a piece of a `Blocks` makes."""
    return tuple(zip(first or (0,) * len(node.grid), last or node.grid, strict=True))


def _of_blocks(node: Blocks, box: Box) -> Iterable[tuple[int, Box]]:
    for piece in node.pieces:
        shared = common(piece_box(piece.first, piece.last, node), box)
        if shared is None:
            continue
        for argument in piece.arguments:
            if isinstance(argument, Operand):
                # An operand of several parts has one more access, for these.
                access = argument.access[: node.inputs[argument.which].ndim]
                yield argument.which, tuple(_range(each, shared) for each in access)


def _range(access: Access, box: Box) -> tuple[int, int]:
    match access:
        case Along(axis, scale, offset):
            ends = sorted((box[axis][0] * scale + offset, (box[axis][1] - 1) * scale + offset))
            return ends[0], ends[1] + 1
        case At(position):
            return position, position + 1
        case Span(start, stop):
            return start, stop
        case Spans(axis, starts, stops):
            low, high = box[axis]
            return min(starts[low:high]), max(stops[low:high])
