"""Which tiles of each node somebody needs: a part of an array does not compute the rest of it.

From what was asked for back to the sources, each node gets the tiles that its readers take of it, as boxes
(`arrays.tile_sets`). Loops then run over these instead of the whole grid.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence

from linnet.arrays.expression.graph import Graph
from linnet.arrays.expression.nodes import (
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
    ProgramCall,
    Result,
    Span,
    Spans,
)
from linnet.arrays.expression.tile_sets import (
    MOST_LISTED,
    Box,
    Numbers,
    Tiles,
    common,
    covered,
    joined,
    numbers,
    of_points,
    triangle,
    union,
)

_ONE = range(1)


def tiles_needed(graph: Graph) -> list[Tiles | None]:
    """For each node the tiles that are needed of it; None if nobody needs any."""
    entries = graph.entries
    found: list[Tiles | None] = [whole(entry.node) if entry.wanted else None for entry in entries]
    for number in range(len(entries) - 1, -1, -1):
        needed = found[number]
        if needed is None:
            continue
        entry = entries[number]
        for which, asked in _asked(entry.node, needed):
            operand = entry.operands[which]
            before = found[operand]
            found[operand] = asked if before is None else union(before, asked)
    return found


def whole(node: Node) -> Tiles:
    """All tiles of a node."""
    return (tuple(range(count) for count in node.grid),)


def _asked(node: Node, needed: Tiles) -> Iterable[tuple[int, Tiles]]:
    """What some tiles of a node take of its operands: which of them, and tiles of it."""
    match node:
        case Map():
            for which, operand in enumerate(node.inputs):
                yield which, _each(needed, lambda box, operand=operand: _broadcast(node, operand, box))
        case Axes():
            yield 0, _each(needed, lambda box: _turned(node, box))
        case Fold():
            yield 0, folded(node, needed)
        case Part():
            yield 0, needed
        case Result():
            yield 0, ((),)
        case ProgramCall():
            halves = dict(node.recipe.halves)
            for which, (name, operand) in enumerate(zip(node.recipe.inputs, node.inputs, strict=True)):
                half = halves.get(name)
                yield which, whole(operand) if half is None else triangle(operand.grid[0], half == "lower")
        case Blocks():
            yield from _of_blocks(node, needed)


def _each(needed: Tiles, change: Callable[[Box], Box]) -> Tiles:
    """Each box changed; what they have in common then is taken once."""
    changed = tuple(change(box) for box in needed)
    return changed if len(changed) == 1 or changed == needed else joined(changed)


def _broadcast(node: Map, operand: Node, box: Box) -> Box:
    offset = node.ndim - operand.ndim
    return tuple(_ONE if count == 1 else box[axis + offset] for axis, count in enumerate(operand.grid))


def _turned(node: Axes, box: Box) -> Box:
    found: list[Numbers] = [_ONE] * node.operand.ndim
    for axis, where in enumerate(node.axes):
        if where >= 0:
            found[where] = box[axis]
    return tuple(found)


def folded(node: Fold, needed: Tiles) -> Tiles:
    """What some tiles of a reduction take of its operand: all of the reduced axes."""

    def unfolded(box: Box) -> Box:
        kept = iter(box)
        found: list[Numbers] = []
        for axis, count in enumerate(node.operand.grid):
            if axis not in node.axes:
                found.append(next(kept))
            else:
                if node.keepdims:
                    next(kept)
                found.append(range(count))
        return tuple(found)

    return _each(needed, unfolded)


def piece_box(first: Sequence[int] | None, last: Sequence[int] | None, node: Node) -> Box:
    """The tiles that a piece of a `Blocks` makes."""
    return tuple(map(range, first or (0,) * len(node.grid), last or node.grid))


def _of_blocks(node: Blocks, needed: Tiles) -> Iterator[tuple[int, Tiles]]:
    for piece in node.pieces:
        here = piece_box(piece.first, piece.last, node)
        shared = [box for box in (common(here, each) for each in needed) if box is not None]
        for argument in piece.arguments:
            if not shared or not isinstance(argument, Operand):
                continue
            # An operand of several parts has one more access, for these: a call makes them all.
            access = argument.access[: node.inputs[argument.which].ndim]
            read = [_read(access, box) for box in shared]
            yield argument.which, read[0] if len(read) == 1 else joined(itertools.chain.from_iterable(read))


def _read(access: Sequence[Access], box: Box) -> Tiles:
    """The tiles of an operand that the tiles of a box are made of."""
    along = [_axis(each) for each in access]
    for axis in {each for each in along if each is not None and along.count(each) > 1}:
        # Several axes of the operand go along with one of the result, as in a diagonal.
        return _side_by_side(access, along, box, axis)
    return (tuple(_numbers(each, box) for each in access),)


def _side_by_side(access: Sequence[Access], along: Sequence[int | None], box: Box, axis: int) -> Tiles:
    together = [place for place, each in enumerate(along) if each == axis]
    points: set[tuple[int, ...]] = set()
    for number in box[axis]:
        at = (*box[:axis], range(number, number + 1), *box[axis + 1 :])
        points.update(itertools.product(*(_numbers(access[place], at) for place in together)))
        if len(points) > MOST_LISTED:
            return (tuple(_numbers(each, box) for each in access),)
    rest = [each for place, each in enumerate(access) if place not in together]
    found: list[Box] = []
    for part, others in itertools.product(of_points(points), _read(rest, box)):
        kept, own = iter(others), iter(part)
        found.append(tuple(next(own) if place in together else next(kept) for place in range(len(access))))
    return tuple(found)


def _axis(access: Access) -> int | None:
    return access.axis if isinstance(access, Along | Spans) else None


def _numbers(access: Access, box: Box) -> Numbers:
    """The tiles along an axis of the operand."""
    match access:
        case Along(axis, scale, offset):
            return (
                numbers(each * scale + offset for each in box[axis])
                if scale != 1
                else _shifted(box[axis], offset)
            )
        case At(position):
            return range(position, position + 1)
        case Span(start, stop):
            return range(start, stop)
        case Spans(axis, starts, stops):
            return covered((starts[each], stops[each]) for each in box[axis])


def _shifted(tiles: Numbers, offset: int) -> Numbers:
    if isinstance(tiles, range):
        return range(tiles.start + offset, tiles.stop + offset, tiles.step)
    return tuple(each + offset for each in tiles)
