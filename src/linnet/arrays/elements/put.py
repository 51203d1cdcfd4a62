"""Nodes in which parts of an array are replaced: boxes, elements under a mask, single elements.

Values have been brought to the axes of the array and are cut here as its tiles are, so that
each tile is made from itself and from what goes into it.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence

import numpy as np

from linnet.arrays.elements.gather import Counted, Positions, gathered, in_slabs, tiles_of
from linnet.arrays.expression.builders import blocks, permuted, recut
from linnet.arrays.expression.nodes import Access, Along, At, Entry, Node, Operand, Piece, Source
from linnet.records import record
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries


@record
class Cut:
    """What a range of positions is in one tile."""

    tile: int
    local: slice
    """Positions in the tile,"""
    taken: slice
    """and their numbers in the range."""

    @property
    def count(self) -> int:
        return self.taken.stop - self.taken.start


def cuts(edges: Boundaries, span: range) -> list[Cut]:
    """A range (not empty, its step positive) cut at the edges of tiles, from the first tile to the last.

    >>> [(cut.tile, cut.local, cut.taken) for cut in cuts((0, 4, 8), range(1, 8, 3))]
    [(0, slice(1, 2, 3), slice(0, 1, None)), (1, slice(0, 4, 3), slice(1, 3, None))]
    """
    first, last = bisect_right(edges, span[0]) - 1, bisect_right(edges, span[-1]) - 1
    found: list[Cut] = []
    for tile in range(first, last + 1):
        low = max(0, -((span.start - edges[tile]) // span.step))
        high = min(len(span), max(0, -((span.start - edges[tile + 1]) // span.step)))
        if high <= low:
            found.append(Cut(tile, slice(0, 0, span.step), slice(low, low)))
            continue
        start, stop = span[low] - edges[tile], span[high - 1] - edges[tile] + 1
        found.append(Cut(tile, slice(start, stop, span.step), slice(low, high)))
    return found


def as_slice(span: range) -> slice:
    """The slice that gives a range."""
    if not len(span):
        return slice(0, 0)
    stop = span[-1] + (1 if span.step > 0 else -1)
    return slice(span[0], None if stop < 0 else stop, span.step)


def boxed(node: Node, axes: Sequence[Sequence[Cut]], value: Node) -> Node:
    """A node with a box of it replaced; the value has its axes, of length 1 where it is broadcast."""
    first = tuple(axis[0].tile for axis in axes)
    last = tuple(axis[-1].tile + 1 for axis in axes)
    edges: list[Boundaries] = []
    access: list[Access] = []
    numbers: list[Entry] = []
    for axis, (found, length) in enumerate(zip(axes, value.shape, strict=True)):
        broadcast = length == 1
        edges.append((0, 1) if broadcast else (0, *(cut.taken.stop for cut in found)))
        access.append(At(0) if broadcast else Along(axis, 1, -first[axis]))
        for name in ("start", "stop"):
            values = [0] * node.grid[axis]
            for cut in found:
                values[cut.tile] = getattr(cut.local, name)
            numbers.append(Entry(axis, tuple(values)))
    own = tuple(Along(axis) for axis in range(node.ndim))
    steps = tuple(axis[0].local.step for axis in axes)
    put = Piece(
        "put_box", (Operand(0, own), Operand(1, tuple(access)), *numbers), (("steps", steps),), first, last
    )
    pieces = [put, *(Piece("copy", (Operand(0, own),), (), *box) for box in _around(first, last, node.grid))]
    return blocks((node, recut(value, Layout(tuple(edges)))), pieces, node.layout, node.dtype)


def _around(
    first: tuple[int, ...], last: tuple[int, ...], grid: tuple[int, ...]
) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """What a box leaves of a grid, as boxes."""
    found: list[tuple[tuple[int, ...], tuple[int, ...]]] = []
    for axis, number in enumerate(grid):
        before, after = (0,) * (len(grid) - axis - 1), grid[axis + 1 :]
        for low, high in ((0, first[axis]), (last[axis], number)):
            if low < high:
                found.append(((*first[:axis], low, *before), (*last[:axis], high, *after)))
    return found


def under_mask(node: Node, found: Counted, value: Node) -> Node:
    """A node with the elements under a mask over its first axes replaced, by a value for each."""
    depth = found.mask.ndim
    cut = in_slabs(node, found.mask.layout.boundaries[0], depth)
    mask_access = (Along(0), *(At(0) for _ in range(1, depth)))
    own = (*mask_access, *(Along(axis) for axis in range(depth, node.ndim)))
    kept, access = _beside(value, cut, range(depth, node.ndim))
    arguments = (Operand(0, own), Operand(1, mask_access), Operand(2, (Along(0), *access)))
    values = recut(value, Layout((found.ends, *kept)))
    made = blocks((cut, found.mask, values), (Piece("put_masked", arguments),), cut.layout, node.dtype)
    return recut(made, node.layout)


def _beside(value: Node, node: Node, rest: Sequence[int]) -> tuple[list[Boundaries], list[Access]]:
    """How a value is cut, and read, along the axes of a node that come after its own first one."""
    edges: list[Boundaries] = []
    access: list[Access] = []
    for length, axis in zip(value.shape[1:], rest, strict=True):
        edges.append((0, 1) if length == 1 else node.layout.boundaries[axis])
        access.append(At(0) if length == 1 else Along(axis))
    return edges, access


def at_points(
    node: Node,
    axes: Sequence[int],
    positions: Sequence[Positions],
    block: tuple[int, ...],
    value: Node,
    ufunc: str | None = None,
) -> Node:
    """A node with elements replaced at positions (in one line each) along some axes.

    The value has axes of `block` first, that of the positions, and then the node's other axes. With the name
    of a ufunc, elements are replaced by what it gives for them and the values, one after another.
    """
    edges = [node.layout.boundaries[axis] for axis in axes]
    grid = tuple(len(cut) - 1 for cut in edges)
    tiles = list(itertools.starmap(tiles_of, zip(positions, edges, strict=True)))
    flat = np.asarray(np.ravel_multi_index(tuple(tiles), grid))
    order = np.argsort(flat, kind="stable")
    counts = np.bincount(flat, minlength=math.prod(grid))
    ends = (0, *np.cumsum(counts).tolist())
    local = np.stack([p - np.asarray(cut)[t] for p, cut, t in zip(positions, edges, tiles, strict=True)])
    rows = Source(local[:, order], Layout(((0, len(axes)), ends)))
    values = _in_order(value, block, order)
    rest = [axis for axis in range(node.ndim) if axis not in axes]
    kept, access = _beside(values, node, rest)
    values = recut(values, Layout(((0, 1) if values.shape[0] == 1 else ends, *kept)))
    own = Operand(0, tuple(Along(axis) for axis in range(node.ndim)))
    pieces: list[Piece] = []
    for prefix in itertools.product(*map(range, grid[:-1])):
        first, last = [0] * node.ndim, list(node.grid)
        for axis, at in zip(axes, prefix, strict=False):
            first[axis], last[axis] = at, at + 1
        start = int(np.ravel_multi_index((*prefix, 0), grid))
        box = (tuple(first), tuple(last))
        if counts[start : start + grid[-1]].any():
            along = Along(axes[-1], 1, start)
            line = At(0) if values.shape[0] == 1 else along
            arguments = (own, Operand(1, (At(0), along)), Operand(2, (line, *access)))
            attributes = (("axes", tuple(axes)), *((("ufunc", ufunc),) if ufunc else ()))
            pieces.append(Piece("put_rows", arguments, attributes, *box))
        else:
            pieces.append(Piece("copy", (own,), (), *box))
    return blocks((node, rows, values), pieces, node.layout, node.dtype)


def _in_order(value: Node, block: tuple[int, ...], order: Positions) -> Node:
    """Values in one line, in another order; a line of one if they are all the same."""
    long = [axis for axis in range(len(block)) if value.shape[axis] != 1]
    if not long:
        return permuted(value, (-1, *range(len(block), value.ndim)))
    where = np.unravel_index(order, block)
    found = gathered(value, long, [where[axis] for axis in long])
    gone = len(block) - len(long)
    return permuted(found, (0, *range(1 + gone, found.ndim)))
