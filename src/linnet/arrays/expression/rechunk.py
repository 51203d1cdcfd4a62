"""The same elements in other tiles: how they get there with bounded memory.

Straight, each new tile is put together from the old tiles it overlaps. Under a budget these may be
too many to hold, or be read again and again: from rows to columns every new tile needs all
old ones. Then elements go in two steps. Slabs of neighbouring old tiles are cut into a piece for
each slab of new tiles, slabs of new tiles are put together from their pieces, and cut. Every
element is written once and read once on the way, in pieces as long as slabs are large.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_left, bisect_right
from typing import Any

from linnet.arrays.expression.nodes import Access, Along, Blocks, Entry, Node, Number, Operand, Piece, Spans
from linnet.session import current_engine
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

_TASK = 4
"""Tasks that move elements straight must fit into the budget so many times."""
_MOST = 1 << 25
"""Bytes that a task which moves elements straight may read without a budget, if it is not a single tile."""
_AGAIN = 3
"""How often old tiles may be read, on average, before going through pieces is cheaper."""
_SLAB = 8
"""Slabs that must fit into the budget: two tasks hold one each, with its pieces, and some are waiting."""


def moved(node: Node, layout: Layout) -> Blocks:
    """A node cut in another way, straight or in two steps."""
    memory = current_engine().memory
    if memory is None or _goes_straight(node, layout, memory):
        return boxed(node, layout)
    most = memory // _SLAB // max(1, node.dtype.itemsize)
    old = grouped(node.layout, layout, most)
    new = grouped(layout, node.layout, most)
    slabs = _joined(_split(node, old, new), old, new)
    return slabs if new.boundaries == layout.boundaries else boxed(slabs, layout)


def picked(node: Node, layout: Layout, starts: tuple[int, ...], steps: tuple[int, ...]) -> Blocks:
    """Tiles that hold elements `start + step · position` along each axis.

    Where steps are long a new tile may need more old ones than there is room for, or lie over old ones that
    hold no element of it: then each old tile is thinned by itself, and what is left of them is put together.
    """
    memory = current_engine().memory
    room = _MOST if memory is None else memory // _TASK
    each = list(zip(node.layout.boundaries, layout.shape, starts, steps, strict=True))
    thin = Layout(tuple(itertools.starmap(thinned, each)))
    if thin.boundaries == layout.boundaries or not (
        _skips(node, layout, thin, starts, steps) or _reading(node, layout, starts, steps)[0] > room
    ):
        return boxed(node, layout, starts, steps)
    return moved(boxed(node, thin, starts, steps), layout)


def _skips(node: Node, layout: Layout, thin: Layout, starts: tuple[int, ...], steps: tuple[int, ...]) -> bool:
    """Whether there are old tiles between those that hold elements of a new one."""
    each = zip(node.layout.boundaries, layout.boundaries, thin.boundaries, starts, steps, strict=True)
    for old, new, parts, start, step in each:
        if abs(step) > 1 and new[-1]:
            first, last, _, _ = overlaps(old, new, start, step)
            if sum(last) - sum(first) > len({*parts, *new}) - 1:
                return True
    return False


def _goes_straight(node: Node, layout: Layout, memory: int) -> bool:
    """Whether old tiles that make a new one are few, and few new ones are made of the same."""
    largest, read = _reading(node, layout, (0,) * node.ndim, (1,) * node.ndim)
    whole = math.prod(node.shape) * node.dtype.itemsize
    return largest * _TASK <= memory and (read <= _AGAIN or 2 * whole <= memory)


def _reading(
    node: Node, layout: Layout, starts: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[float, float]:
    """Bytes of the old tiles that the largest new one is made of, and how often old tiles are read."""
    largest, read = float(node.dtype.itemsize), 1.0
    each = zip(node.layout.boundaries, layout.boundaries, starts, steps, strict=True)
    for old, new, start, step in each:
        if old == new and (start, step) == (0, 1):
            largest *= max(b - a for a, b in itertools.pairwise(old))
            continue
        first, last, _, _ = overlaps(old, new, start, step)
        lengths = [old[b] - old[a] for a, b in zip(first, last, strict=True)]
        largest *= max(lengths)
        read *= sum(lengths) / max(1, old[-1])
    return largest, read


def thinned(edges: Boundaries, count: int, start: int, step: int) -> Boundaries:
    """Where elements `start + step · position` change from one tile to the next, as positions.

    >>> thinned((0, 4, 8, 12), 3, 1, 4), thinned((0, 4, 8, 12), 4, 11, -3)
    ((0, 1, 2, 3), (0, 2, 3, 4))
    """
    # Backwards, a tile comes after all elements from its end on.
    ways = ((edge - start if step > 0 else start - edge + 1) for edge in edges)
    places = {min(max(-(-way // abs(step)), 0), count) for way in ways}
    return tuple(sorted(places | {0, count})) if count else (0, 0)


def grouped(layout: Layout, other: Layout, most: int) -> Layout:
    """Neighbouring tiles together, as long as they have no more than `most` elements.

    They grow along the axes that are cut finest compared with the other layout: so what the two
    have in common grows most.

    >>> grouped(Layout.regular((8, 8), (1, 8)), Layout.regular((8, 8), (8, 1)), 32).boundaries
    ((0, 4, 8), (0, 8))
    """
    edges = list(layout.boundaries)
    while True:
        size = math.prod(max(b - a for a, b in itertools.pairwise(each)) for each in edges)
        best: tuple[float, int, Boundaries] | None = None
        for axis, (own, theirs) in enumerate(zip(edges, other.boundaries, strict=True)):
            if len(own) == 2 or own == theirs:
                continue
            wider = (*own[:-1:2], own[-1])
            longest = max(b - a for a, b in itertools.pairwise(own))
            grown = size // longest * max(b - a for a, b in itertools.pairwise(wider))
            if grown <= most and (best is None or len(own) / len(theirs) > best[0]):
                best = (len(own) / len(theirs), axis, wider)
        if best is None:
            return Layout(tuple(edges))
        edges[best[1]] = best[2]


def _split(node: Node, old: Layout, new: Layout) -> Blocks:
    """At each slab of old tiles the pieces of it that belong to each slab of new ones."""
    access: list[Access] = []
    starts: list[Number] = []
    for axis, (tiles, slabs) in enumerate(zip(node.layout.boundaries, old.boundaries, strict=True)):
        places = [tiles.index(edge) for edge in slabs]
        access.append(Spans(axis, tuple(places[:-1]), tuple(places[1:])))
        starts.append(Entry(axis, slabs[:-1]))
    piece = Piece("split_box", (Operand(0, tuple(access)), *starts), (("edges", new.boundaries),))
    return Blocks((node,), (piece,), old.shape, node.dtype, old, new.grid)


def _joined(pieces: Blocks, old: Layout, new: Layout) -> Blocks:
    """Slabs of new tiles, put together from their pieces."""
    access: list[Access] = []
    bounds: list[Number] = []
    for axis, (have, want) in enumerate(zip(old.boundaries, new.boundaries, strict=True)):
        first, last, _, _ = overlaps(have, want, 0, 1)
        access.append(Spans(axis, first, last))
        bounds += [0, Entry(axis, tuple(b - a for a, b in itertools.pairwise(want)))]
    axes = tuple(range(len(new.boundaries)))
    piece = Piece(
        "cut",
        (Operand(0, (*access, *map(Along, axes))), *bounds),
        (("ranged", axes), ("steps", (1,) * len(axes))),
    )
    return Blocks((pieces,), (piece,), new.shape, pieces.dtype, new)


# ---- straight


def boxed(
    node: Node, layout: Layout, starts: tuple[int, ...] | None = None, steps: tuple[int, ...] | None = None
) -> Blocks:
    """Tiles of the result hold elements `start + step · position` of the operand along each axis."""
    starts = (0,) * node.ndim if starts is None else starts
    steps = (1,) * node.ndim if steps is None else steps
    access: list[Access] = []
    numbers: list[Number] = []
    ranged: list[int] = []
    for axis, (old, new) in enumerate(zip(node.layout.boundaries, layout.boundaries, strict=True)):
        if old == new and starts[axis] == 0 and steps[axis] == 1:
            access.append(Along(axis))
            continue
        first, last, low, high = overlaps(old, new, starts[axis], steps[axis])
        access.append(Spans(axis, first, last))
        numbers += [Entry(axis, low), Entry(axis, high)]
        ranged.append(axis)
    attributes: tuple[tuple[str, Any], ...] = (
        ("ranged", tuple(ranged)),
        ("steps", tuple(steps[axis] for axis in ranged)),
    )
    piece = Piece("cut", (Operand(0, tuple(access)), *numbers), attributes)
    return Blocks((node,), (piece,), layout.shape, node.dtype, layout)


def overlaps(
    old: Boundaries, new: Boundaries, start: int, step: int
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """For each new tile: the first and past-last old one, and the bounds of what it takes of them."""
    first: list[int] = []
    last: list[int] = []
    low: list[int] = []
    high: list[int] = []
    for a, b in itertools.pairwise(new):
        if a == b:
            ends = (0, 0)
        else:
            one, other = start + a * step, start + (b - 1) * step
            ends = (min(one, other), max(one, other) + 1)
        tile = max(0, min(bisect_right(old, ends[0]) - 1, len(old) - 2))
        first.append(tile)
        last.append(max(tile + 1, bisect_left(old, ends[1])))
        low.append(ends[0] - old[tile])
        high.append(ends[1] - old[tile])
    return tuple(first), tuple(last), tuple(low), tuple(high)
