"""Elements picked by position or by mask: which tiles of the result read which of the operand.

Positions are known (a lazy index has been computed), so each tile of the result reads no more
than it needs. Where that is a few neighbouring tiles, one task does it. Where positions in order
pass over tiles, each tile that holds some is thinned by itself, and these are put together. Where they
are scattered, elements are shuffled in two passes: every tile that is touched is split once into what
each tile of the result takes of it, and each of these is then put together. So no task
holds more than a tile and what becomes of it, however random the order.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import (
    FREE,
    blocks,
    constant,
    filled,
    is_free,
    mapped,
    part,
    permuted,
    recut,
)
from linnet.arrays.expression.nodes import (
    Access,
    Along,
    At,
    Blocks,
    Entry,
    Node,
    Operand,
    Piece,
    Source,
    Span,
    Spans,
)
from linnet.arrays.lowering.evaluate import computed, persisted
from linnet.records import record
from linnet.session import current_engine
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, regular

Positions = NDArray[np.intp]

_NEIGHBOURS = 4
"""Tiles of automatic size whose bytes one task may read at once."""


@record
class _Pick:
    """Elements of a node at positions along some axes."""

    node: Node
    axes: tuple[int, ...]
    """Ascending."""
    rows: Positions
    """A line for each of these axes."""
    shape: tuple[int, ...]
    """The shape the positions have in the result; its first axis is cut."""
    place: int
    """How many of the other axes come before it."""

    @property
    def rest(self) -> list[int]:
        """The axes of the node that are kept."""
        return [axis for axis in range(self.node.ndim) if axis not in self.axes]

    @property
    def edges(self) -> list[Boundaries]:
        """The cuts of the axes that positions are given for."""
        return [self.node.layout.boundaries[axis] for axis in self.axes]

    @property
    def grid(self) -> tuple[int, ...]:
        return tuple(self.node.grid[axis] for axis in self.axes)

    def result_axis(self, number: int) -> int:
        """Where the kept axis with this number is in the result."""
        return number if number < self.place else number + len(self.shape)

    def result_layout(self, edges: Boundaries) -> Layout:
        """The layout of the result, given the cut of the first axis of the positions."""
        kept = [self.node.layout.boundaries[axis] for axis in self.rest]
        block = [edges, *((0, length) for length in self.shape[1:])]
        return Layout((*kept[: self.place], *block, *kept[self.place :]))

    @property
    def attributes(self) -> tuple[tuple[str, Any], ...]:
        """What kernels need to know to arrange the result."""
        return (("others", self.shape[1:]), ("place", self.place))


def gathered(node: Node, axes: Sequence[int], positions: Sequence[Positions], place: int = 0) -> Node:
    """Elements at positions (not negative, of one shape) along some axes (ascending) of a node.

    The axes of the positions come behind `place` of the node's other axes.
    """
    shape = positions[0].shape
    rest = [n for axis, n in enumerate(node.shape) if axis not in axes]
    if 0 in shape or 0 in rest:
        return filled((*rest[:place], *shape, *rest[place:]), 0, node.dtype)
    # Only the longest axis of the positions is cut, so that tiles of the result are counted along one.
    longest = shape.index(max(shape)) if shape else 0
    lines = [np.moveaxis(each, longest, 0) if each.ndim > 1 else np.atleast_1d(each) for each in positions]
    rows = np.stack([line.reshape(-1) for line in lines])
    found = _picked(_Pick(node, tuple(axes), rows, lines[0].shape, place))
    if not shape:
        return permuted(found, (*range(place), *range(place + 1, found.ndim)))
    block = [place + a for a in (*range(1, longest + 1), 0, *range(longest + 1, len(shape)))]
    return permuted(found, (*range(place), *block, *range(place + len(shape), found.ndim)))


def _picked(pick: _Pick) -> Node:
    if not _is_short(pick):
        return _picked_at(pick, _result_cut(pick))
    row = math.prod(n for axis, n in enumerate(pick.node.shape) if axis not in pick.axes)
    length = chunking.target() // max(1, row * pick.node.dtype.itemsize)
    found = _picked_at(pick, regular(pick.shape[0], max(length, _longest(pick.edges[0]))))

    def again(layout: Layout) -> Node:
        edges = list(pick.node.layout.boundaries)
        for number, axis in enumerate(pick.rest):
            edges[axis] = layout.boundaries[pick.result_axis(number)]
        other = replace(pick, node=recut(pick.node, Layout(tuple(edges))))
        return _picked_at(other, layout.boundaries[pick.place])

    FREE[found] = again
    return found


def _is_short(pick: _Pick) -> bool:
    """Whether more is picked along an axis than it has, of so little that it can be picked again."""
    if len(pick.axes) != 1 or len(pick.shape) != 1:
        return False
    size = math.prod(pick.node.shape) * pick.node.dtype.itemsize
    return pick.shape[0] > pick.node.shape[pick.axes[0]] and size <= _NEIGHBOURS * chunking.target()


def _picked_at(pick: _Pick, cut: Boundaries) -> Node:
    """The result, cut at these positions."""
    node = pick.node
    if isinstance(node, Source) and current_engine().memory is None:
        # Its tiles are views, so that the whole of it is at hand at no cost.
        edges = [(0, n) if a in pick.axes else node.layout.boundaries[a] for a, n in enumerate(node.shape)]
        whole = replace(pick, node=Source(node.data, Layout(tuple(edges))))
        return _neighbouring(whole, _Reach.of(whole, cut))
    reach = _Reach.of(pick, cut)
    if reach.is_local(pick):
        return _neighbouring(pick, reach)
    return _thinned(pick, cut) if _in_order(pick) else _shuffled(pick, reach)


def _in_order(pick: _Pick) -> bool:
    """Whether positions are given along one axis, ascending."""
    line = pick.rows[0]
    return len(pick.axes) == 1 and len(pick.shape) == 1 and not bool(np.any(line[1:] < line[:-1]))


def _thinned(pick: _Pick, cut: Boundaries) -> Node:
    """Positions in order: each touched tile by itself, and what is left of them put together."""
    tiles = tiles_of(pick.rows[0], pick.edges[0])
    thin = _neighbouring(pick, _Reach.of(pick, _in_step(tiles, _longest(pick.edges[0]), 1)))
    return recut(thin, pick.result_layout(cut))


def _result_cut(pick: _Pick) -> Boundaries:
    """The cut of the positions: about as many elements to a tile as the operand has.

    Positions in order are cut where they pass from a tile of the operand to another, so that a task
    reads few of them.
    """
    tile = math.prod(_longest(edges) for edges in pick.edges)
    length = max(1, tile // max(1, math.prod(pick.shape[1:])))
    if pick.grid == (1,) or not _in_order(pick):
        return regular(pick.shape[0], length)
    size = math.prod(map(_longest, pick.node.layout.boundaries)) * pick.node.dtype.itemsize
    most = max(1, _NEIGHBOURS * chunking.target() // size)
    return _in_step(tiles_of(pick.rows[0], pick.edges[0]), length, most)


def _in_step(tiles: Positions, length: int, most: int) -> Boundaries:
    """Cuts where the tile of the operand changes: no more than `length` positions of `most` tiles each."""
    turns = np.flatnonzero(np.diff(tiles)) + 1
    edges, first, read = [0], int(tiles[0]), 1
    for start, stop in itertools.pairwise([0, *turns.tolist(), len(tiles)]):
        here = int(tiles[start])
        full = stop - edges[-1] > length or here - first >= most or here - first + 1 > 2 * read
        if start > edges[-1] and full:
            edges.append(start)
            first, read = here, 1
        else:
            read += start > edges[-1]
        if stop - edges[-1] > length:
            edges.extend(range(edges[-1] + length, stop, length))
            first, read = here, 1
    return (*edges, len(tiles))


def _longest(edges: Boundaries) -> int:
    return max(b - a for a, b in itertools.pairwise(edges))


@record
class _Reach:
    """Which tiles of the operand each tile of the result reads."""

    edges: Boundaries
    """The cut of the result along the first axis of the positions."""
    ends: Positions
    """The same, counted in positions."""
    tiles: Positions
    """For each position, a line for each axis, the operand's tile that holds it."""
    low: Positions
    """For each axis and each tile of the result the first tile it reads,"""
    high: Positions
    """and the last."""

    @classmethod
    def of(cls, pick: _Pick, edges: Boundaries) -> _Reach:
        ends = np.asarray(edges, np.intp) * (pick.rows.shape[1] // edges[-1])
        tiles = np.stack(list(itertools.starmap(tiles_of, zip(pick.rows, pick.edges, strict=True))))
        low = np.minimum.reduceat(tiles, ends[:-1], axis=1)
        high = np.maximum.reduceat(tiles, ends[:-1], axis=1)
        return cls(edges, ends, tiles, low, high)

    def flat(self, pick: _Pick) -> Positions:
        """The tiles, as one number each."""
        return np.asarray(np.ravel_multi_index(tuple(self.tiles), pick.grid))

    def is_local(self, pick: _Pick) -> bool:
        """Whether the tiles from the first to the last are few, and all of them wanted."""
        spans = np.prod(self.high - self.low + 1, axis=0)
        if spans.max() == 1:
            return True
        tile = math.prod(map(_longest, pick.node.layout.boundaries)) * pick.node.dtype.itemsize
        if spans.max() * tile > _NEIGHBOURS * chunking.target():
            return False
        flat = self.flat(pick)
        read = [len(np.unique(flat[a:b])) for a, b in itertools.pairwise(self.ends)]
        return bool(np.all(spans == np.asarray(read)))


def tiles_of(positions: Positions, edges: Boundaries) -> Positions:
    """The tile that holds each position."""
    if len(edges) == 2:
        return np.zeros(positions.shape, np.intp)
    return np.searchsorted(np.asarray(edges), positions, side="right") - 1


def _neighbouring(pick: _Pick, reach: _Reach) -> Node:
    """One task for each tile of the result, on a block of neighbouring tiles."""
    starts = np.stack([np.asarray(cut)[low] for cut, low in zip(pick.edges, reach.low, strict=True)])
    local = pick.rows - np.repeat(starts, np.diff(reach.ends), axis=1)
    index = Source(local, Layout(((0, len(local)), tuple(reach.ends.tolist()))))
    access: dict[int, Access] = {
        axis: Spans(pick.place, tuple(low.tolist()), tuple((high + 1).tolist()))
        for axis, low, high in zip(pick.axes, reach.low, reach.high, strict=True)
    }
    access |= {axis: Along(pick.result_axis(number)) for number, axis in enumerate(pick.rest)}
    operand = Operand(0, tuple(access[axis] for axis in range(pick.node.ndim)))
    attributes = (("axes", pick.axes), *pick.attributes)
    piece = Piece("gather", (operand, Operand(1, (At(0), Along(pick.place)))), attributes)
    return blocks((pick.node, index), (piece,), pick.result_layout(reach.edges), pick.node.dtype)


def _shuffled(pick: _Pick, reach: _Reach) -> Node:
    """Two passes: tiles that are touched are split, and what came of them is joined."""
    many = len(reach.edges) - 1
    touched, source = np.unique(reach.flat(pick), return_inverse=True)
    source = source.astype(np.min_scalar_type(len(touched)))  # short keys are sorted in linear time
    target = np.repeat(np.arange(many), np.diff(reach.ends))
    counts = np.bincount(source.astype(np.intp) * many + target, minlength=len(touched) * many)
    order = np.argsort(source, kind="stable")
    starts = np.stack([np.asarray(cut)[t] for cut, t in zip(pick.edges, reach.tiles, strict=True)])
    local = (pick.rows - starts)[:, order]
    places = np.concatenate(
        [np.argsort(source[a:b], kind="stable") for a, b in itertools.pairwise(reach.ends)]
    )
    split = _split(pick, touched, local, counts.reshape(len(touched), many))
    kept = [Along(pick.result_axis(number)) for number in range(len(pick.rest))]
    pieces = Operand(0, (Span(0, len(touched)), *kept, Along(pick.place)))
    piece = Piece("join_rows", (pieces, Operand(1, (Along(pick.place),))), pick.attributes)
    inputs = (split, Source(places, Layout((tuple(reach.ends.tolist()),))))
    return blocks(inputs, (piece,), pick.result_layout(reach.edges), pick.node.dtype)


def _split(pick: _Pick, touched: Positions, local: Positions, counts: Positions) -> Blocks:
    """Each touched tile in as many pieces as the result has tiles; only the grid of it has a meaning."""
    number, many = counts.shape
    ends = (0, *np.cumsum(counts.sum(axis=1)).tolist())
    index = Source(local, Layout(((0, len(local)), ends)))
    amounts = Source(counts, Layout((tuple(range(number + 1)), (0, many))))
    access: dict[int, Access] = {
        axis: Spans(0, tuple(t.tolist()), tuple((t + 1).tolist()))
        for axis, t in zip(pick.axes, np.unravel_index(touched, pick.grid), strict=True)
    }
    access |= {axis: Along(1 + number) for number, axis in enumerate(pick.rest)}
    operand = Operand(0, tuple(access[axis] for axis in range(pick.node.ndim)))
    arguments = (operand, Operand(1, (At(0), Along(0))), Operand(2, (Along(0), At(0))))
    piece = Piece("split_rows", arguments, (("axes", pick.axes),))
    layout = Layout((tuple(range(number + 1)), *(pick.node.layout.boundaries[a] for a in pick.rest)))
    return blocks((pick.node, index, amounts), (piece,), layout, pick.node.dtype, many)


# ---- masks


@record
class Counted:
    """A mask whose true elements have been counted, in slabs: only its first axis is cut."""

    mask: Node
    ends: Boundaries
    """True elements before each slab, and all of them."""

    @property
    def total(self) -> int:
        return self.ends[-1]

    @property
    def lengths(self) -> Entry:
        """How many there are in each slab: so kernels can declare what they make."""
        return Entry(0, tuple(np.diff(self.ends).tolist()))


def slabs(node: Node, depth: int, *others: Node) -> Boundaries:
    """A cut of the first axis under which `depth` axes fit into tiles of about the same size."""
    for each in sorted((node, *others), key=is_free):
        if all(n == 1 for n in each.grid[1:depth]):
            return each.layout.boundaries[0]
    tile = math.prod(max(np.diff(edges).tolist()) for edges in node.layout.boundaries[:depth])
    return regular(node.shape[0], max(1, tile // max(1, math.prod(node.shape[1:depth]))))


def in_slabs(node: Node, edges: Boundaries, depth: int) -> Node:
    """A node cut so along its first axes; the others stay as they are."""
    whole = tuple((0, length) for length in node.shape[1:depth])
    return recut(node, Layout((edges, *whole, *node.layout.boundaries[depth:])))


def counted(mask: Node, edges: Boundaries) -> Counted:
    """Count the true elements in slabs of a mask. This runs what the mask is made of."""
    cut = in_slabs(mask, edges, mask.ndim)
    access = (Along(0), *(At(0) for _ in range(1, mask.ndim)))
    layout = Layout((tuple(range(len(edges))),))
    counts = blocks((cut,), (Piece("count_true", (Operand(0, access),)),), layout, np.int64)
    kept, numbers = persisted([cut, counts])
    (values,) = computed([numbers])
    return Counted(kept, (0, *np.cumsum(values).tolist()))


def compressed(node: Node, found: Counted) -> Node:
    """The elements of a node under a mask over its first axes, in one; slabs without any are not read."""
    depth = found.mask.ndim
    rest = node.layout.boundaries[depth:]
    held = np.flatnonzero(np.diff(found.ends))
    if not len(held):
        return filled((0, *node.shape[depth:]), 0, node.dtype, Layout(((0, 0), *rest)))
    cut = in_slabs(node, found.mask.layout.boundaries[0], depth)
    slab = Spans(0, tuple(held.tolist()), tuple((held + 1).tolist()))
    access = (slab, *(At(0) for _ in range(1, depth)))
    own = (*access, *(Along(a - depth + 1) for a in range(depth, node.ndim)))
    lengths = Entry(0, tuple(found.lengths.values[k] for k in held))
    piece = Piece("compress", (Operand(0, own), Operand(1, access), lengths))
    layout = Layout(((0, *(found.ends[k + 1] for k in held)), *rest))
    return _evened(blocks((cut, found.mask), (piece,), layout, node.dtype), found)


def positions(found: Counted) -> list[Node]:
    """Where a mask is true: positions along each of its axes."""
    mask = found.mask
    edges = mask.layout.boundaries[0]
    access = (Along(0), *(At(0) for _ in range(1, mask.ndim)))
    piece = Piece("true_positions", (Operand(0, access), Entry(0, edges[:-1]), found.lengths))
    made = blocks((mask,), (piece,), Layout((found.ends,)), np.int64, mask.ndim)
    return [_evened(part(made, axis, np.int64), found) for axis in range(mask.ndim)]


def _evened(node: Node, found: Counted) -> Node:
    """Tiles that a mask has made short put together."""
    lengths = np.diff(found.ends)
    longest = math.prod(found.mask.layout.tile_shape((0,) * found.mask.ndim))
    if len(lengths) < 2 or (lengths.min() > 0 and lengths.mean() * 2 > longest):
        return node
    kept = [0]
    for end, following in itertools.pairwise(found.ends[1:]):
        if end > kept[-1] and following - kept[-1] > longest:
            kept.append(end)
    if found.total > kept[-1] or len(kept) == 1:
        kept.append(found.total)
    return recut(node, Layout((tuple(kept), *node.layout.boundaries[1:])))


def as_mask(node: Node) -> Node:
    """Which elements are not zero."""
    if node.dtype == bool:
        return node
    return mapped("not_equal", [node, constant(0, node.dtype)], bool)
