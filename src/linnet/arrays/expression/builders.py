"""Builders of nodes: they keep the promise that operands of a `Map` are cut alike.

Where an array has to be cut in another way, `recut` decides how: arrays in memory, and what is
computed element by element from them, are simply cut anew; anything else moves.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.expression.chunking import automatic, whole
from linnet.arrays.expression.nodes import (
    Along,
    Axes,
    Blocks,
    Fold,
    Map,
    Node,
    Operand,
    Part,
    Piece,
    Source,
)
from linnet.arrays.expression.rechunk import moved, picked
from linnet.engines.mapped_tiles import place_of
from linnet.session import current_engine
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

_FREE = 64
"""Nodes that may be computed again to avoid moving their result."""

FREE: WeakKeyDictionary[Node, Callable[[Layout], Node]] = WeakKeyDictionary()
"""Nodes that are as easily made with another cut: what makes them so."""

_SHORT = 8192
"""Bytes in a row of a file below which reading them costs more than their number."""


def constant(value: Any, dtype: Any = None) -> Source:
    """A single number as an array without axes."""
    data = np.asarray(value, dtype)
    return Source(data, whole(data.shape))


# ---- element by element


def mapped(
    op: str,
    inputs: Sequence[Node],
    dtype: Any,
    *,
    extra: str | None = None,
    shape: tuple[int, ...] | None = None,
    layout: Layout | None = None,
) -> Map:
    """`op` on operands, broadcast together and cut alike.

    A shape that operands do not reach (a number spread over an array) must be given.
    """
    shape = _broadcast([node.shape for node in inputs]) if shape is None else shape
    dtype = np.dtype(dtype)
    layout = common_layout(inputs, shape, dtype) if layout is None else layout
    return Map(op, tuple(aligned(node, layout) for node in inputs), shape, dtype, layout, extra)


def _broadcast(shapes: Sequence[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape of arrays broadcast together; the common cases first, since NumPy takes microseconds."""
    longest = max(shapes, key=len, default=())
    if all(shape == longest or not shape for shape in shapes):
        return longest
    return np.broadcast_shapes(*shapes)


def filled(shape: tuple[int, ...], value: Any, dtype: Any, layout: Layout | None = None) -> Map:
    """One value everywhere."""
    dtype = np.dtype(dtype)
    layout = automatic(shape, dtype.itemsize) if layout is None else layout
    return Map("fill", (constant(value, dtype),), shape, dtype, layout)


def common_layout(inputs: Sequence[Node], shape: tuple[int, ...], dtype: np.dtype[Any]) -> Layout:
    """The cut for a result: along each axis that of the operand with most elements.

    Arrays in memory, which can be cut again without a copy, give way to those that cannot.
    """
    if len(inputs) == 1 and inputs[0].shape == shape:
        return inputs[0].layout
    same = [node for node in inputs if node.shape == shape]
    if same:
        first = same[0].layout
        alike = all(n.layout is first or n.layout == first for n in same[1:])
        if alike and (not is_free(same[0]) or all(map(is_free, inputs))):
            return first
    edges: list[Boundaries] = []
    fallback = automatic(shape, dtype.itemsize).boundaries
    ordered = sorted(inputs, key=lambda n: (is_free(n), -_count(n.shape), -_count(n.grid)))
    for axis, length in enumerate(shape):
        back = axis - len(shape)
        chosen = next(
            (n.layout.boundaries[back] for n in ordered if n.ndim >= -back and n.shape[back] == length), None
        )
        edges.append(fallback[axis] if chosen is None else chosen)
    return Layout(tuple(edges))


def aligned(node: Node, layout: Layout) -> Node:
    """An operand of a `Map` with this layout: cut as the result is, save along broadcast axes."""
    edges = layout.boundaries
    if node.layout.boundaries == edges:
        return node
    offset = len(edges) - node.ndim
    wanted = tuple(
        edges[axis + offset] if edges[axis + offset][-1] == length else (0, length)
        for axis, length in enumerate(node.shape)
    )
    return node if node.layout.boundaries == wanted else recut(node, Layout(wanted))


def _count(lengths: Sequence[int]) -> int:
    total = 1
    for length in lengths:
        total *= length
    return total


def is_free(node: Node) -> bool:
    """Whether cutting it in another way costs nothing, or at most computing element by element."""
    if isinstance(node, Source):
        return True
    seen: set[int] = set()
    pending: list[Node] = [node]
    while pending:
        current = pending.pop()
        if id(current) in seen or isinstance(current, Source) or current in FREE:
            continue
        if not isinstance(current, Map | Axes) or len(seen) >= _FREE:
            return False
        seen.add(id(current))
        pending.extend(current.operands)
    return True


# ---- the same elements in other tiles


def recut(node: Node, layout: Layout) -> Node:
    """The same array, cut in another way."""
    if node.layout.boundaries == layout.boundaries:
        return node
    if not is_free(node):
        return moved(node, layout)
    return _cut_again(node, layout, {})


def _cut_again(current: Node, cut: Layout, made: dict[tuple[int, Layout], Node]) -> Node:
    """A free node in another cut; what it is made of follows, each node once for each cut."""
    key = (id(current), cut)
    if key not in made:
        if current.layout.boundaries == cut.boundaries:
            made[key] = current
        elif isinstance(current, Source):
            made[key] = moved(current, cut) if _scattered(current, cut) else Source(current.data, cut)
        elif current in FREE:
            made[key] = FREE[current](cut)
        elif isinstance(current, Axes):
            edges: list[Boundaries] = [(0, length) for length in current.operand.shape]
            for axis, where in enumerate(current.axes):
                if where >= 0:
                    edges[where] = cut.boundaries[axis]
            operand = _cut_again(current.operand, Layout(tuple(edges)), made)
            made[key] = Axes(operand, current.axes, current.shape, current.dtype, cut)
        else:
            assert isinstance(current, Map)
            inputs = tuple(_cut_again(each, _operand_layout(each, cut), made) for each in current.inputs)
            made[key] = Map(current.op, inputs, current.shape, current.dtype, cut, current.extra)
    return made[key]


def _scattered(node: Source, layout: Layout) -> bool:
    """Whether an array in a file would be read in short runs, many times over: there is a budget."""
    if current_engine().memory is None or not place_of(node.data):
        return False
    lengths = [max(b - a for a, b in itertools.pairwise(edges)) for edges in layout.boundaries]
    order = sorted(range(node.ndim), key=lambda axis: abs(node.data.strides[axis]))
    run = node.dtype.itemsize
    for axis in order:
        run *= lengths[axis]
        if lengths[axis] < node.shape[axis]:
            break
    own = [max(b - a for a, b in itertools.pairwise(edges)) for edges in node.layout.boundaries]
    return run < _SHORT and lengths[order[0]] < own[order[0]]


def _operand_layout(node: Node, layout: Layout) -> Layout:
    offset = len(layout.boundaries) - node.ndim
    edges = layout.boundaries
    return Layout(
        tuple(
            edges[axis + offset] if edges[axis + offset][-1] == length else (0, length)
            for axis, length in enumerate(node.shape)
        )
    )


def sliced(node: Node, slices: Sequence[slice]) -> Node:
    """`node[slices]`, a slice for every axis, steps of any sign.

    The result is cut where the operand is; tiles that a step has made short are put together.
    """
    ranges = [range(*part.indices(length)) for part, length in zip(slices, node.shape, strict=True)]
    if all(r == range(n) for r, n in zip(ranges, node.shape, strict=True)):
        return node
    layout = Layout(tuple(itertools.starmap(sliced_edges, zip(node.layout.boundaries, ranges, strict=True))))
    if isinstance(node, Source):
        return Source(node.data[(*map(_as_slice, ranges), ...)], layout)
    return picked(node, layout, tuple(r.start for r in ranges), tuple(r.step for r in ranges))


def _as_slice(r: range) -> slice:
    if not len(r):
        return slice(0, 0)
    stop = r[-1] + (1 if r.step > 0 else -1)
    return slice(r.start, None if stop < 0 else stop, r.step)


def sliced_edges(edges: Boundaries, r: range) -> Boundaries:
    """Where a part of an axis is cut: where the axis is, but that short tiles are put together."""
    count = len(r)
    if not count:
        return (0, 0)
    if abs(r.step) == 1 and count == edges[-1]:
        return edges if r.step > 0 else tuple(edges[-1] - e for e in reversed(edges))
    longest = max(b - a for a, b in itertools.pairwise(edges))
    low, high = min(r[0], r[-1]), max(r[0], r[-1])
    # Ends of tiles, as positions in the result counted from its low end.
    ends = [
        (min(edge, high + 1) - low + abs(r.step) - 1) // abs(r.step)
        for edge in edges[bisect_right(edges, low) : bisect_left(edges, high + 1) + 1]
    ]
    kept = [0]
    for position, end in enumerate(ends):
        last = position == len(ends) - 1
        if (last or ends[position + 1] - kept[-1] > longest) and end > kept[-1]:
            kept.append(end)
    return tuple(kept) if r.step > 0 else tuple(count - e for e in reversed(kept))


# ---- other axes


def permuted(node: Node, axes: tuple[int, ...]) -> Node:
    """The node under other axes; see `Axes`. Chains of these become one, arrays in memory a view."""
    if axes == tuple(range(node.ndim)):
        return node
    if isinstance(node, Axes):
        return permuted(node.operand, tuple(node.axes[a] if a >= 0 else -1 for a in axes))
    edges = tuple(node.layout.boundaries[a] if a >= 0 else (0, 1) for a in axes)
    if isinstance(node, Source):
        return Source(viewed(node.data, axes), Layout(edges))
    shape = tuple(node.shape[a] if a >= 0 else 1 for a in axes)
    return Axes(node, axes, shape, node.dtype, Layout(edges))


def viewed(data: NDArray[Any], axes: tuple[int, ...]) -> NDArray[Any]:
    """A NumPy array under other axes, as `Axes` means it."""
    kept = [a for a in axes if a >= 0]
    dropped = tuple(a for a in range(data.ndim) if a not in kept)
    turned = data.transpose((*kept, *dropped))[(..., *(0,) * len(dropped))]
    return turned[tuple(slice(None) if a >= 0 else None for a in axes) or ...]


# ---- reductions


def folded(
    node: Node,
    kind: str,
    axes: tuple[int, ...],
    dtype: Any,
    *,
    keepdims: bool = False,
    inner: Any = None,
    **finish: Any,
) -> Fold:
    """A reduction over axes (ascending)."""
    if keepdims:
        edges = tuple((0, 1) if a in axes else e for a, e in enumerate(node.layout.boundaries))
    else:
        edges = tuple(e for a, e in enumerate(node.layout.boundaries) if a not in axes)
    layout = Layout(edges)
    inside = None if inner is None else np.dtype(inner).str
    settled = tuple(sorted(finish.items()))
    return Fold(node, kind, axes, keepdims, inside, settled, layout.shape, np.dtype(dtype), layout)


# ---- anything else


def blocks(
    inputs: Sequence[Node], pieces: Sequence[Piece], layout: Layout, dtype: Any, parts: int = 0
) -> Blocks:
    """A `Blocks` whose shape is that of its layout."""
    return Blocks(tuple(inputs), tuple(pieces), layout.shape, np.dtype(dtype), layout, parts)


def part(node: Blocks, number: int, dtype: Any, layout: Layout | None = None) -> Part:
    """One of the results of a `Blocks` with several; on the same grid, perhaps of another shape."""
    layout = node.layout if layout is None else layout
    return Part(node, number, layout.shape, np.dtype(dtype), layout)


def each_tile(kernel: str, node: Node, dtype: Any, layout: Layout | None = None, **attributes: Any) -> Blocks:
    """A kernel on every tile of one array."""
    access = tuple(Along(axis) for axis in range(node.ndim))
    piece = Piece(kernel, (Operand(0, access),), tuple(attributes.items()))
    return blocks((node,), (piece,), node.layout if layout is None else layout, dtype)


def concatenated(nodes: Sequence[Node], axis: int, dtype: Any) -> Node:
    """Arrays one behind another along an axis; their other axes are cut as the first one's."""
    if len(nodes) == 1:
        return nodes[0]
    first = max(nodes, key=lambda n: (not is_free(n), _count(n.shape)))
    pieces: list[Piece] = []
    edges = [0]
    inputs: list[Node] = []
    for which, node in enumerate(nodes):
        cut = tuple(
            e if a != axis else node.layout.boundaries[a] for a, e in enumerate(first.layout.boundaries)
        )
        inputs.append(recut(node, Layout(cut)))
        offset, base = len(edges) - 1, edges[-1]
        edges.extend(base + e for e in cut[axis][1:])
        access = tuple(Along(a, 1, -offset if a == axis else 0) for a in range(node.ndim))
        box = [(0, len(e) - 1) for e in cut]
        box[axis] = (offset, len(edges) - 1)
        starts, stops = zip(*box, strict=True)
        pieces.append(Piece("copy", (Operand(which, access),), (), starts, stops))
    whole_cut = [e if a != axis else tuple(edges) for a, e in enumerate(first.layout.boundaries)]
    return blocks(inputs, pieces, Layout(tuple(whole_cut)), dtype)
