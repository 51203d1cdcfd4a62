"""Functions of the user's on tiles with their neighbours: `map_overlap`, and its two halves.

Each tile is cut wide, with elements of the tiles around it; how many and what stands beyond the ends
of the array is said by axis. What a function makes of them is cut off again.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axis_of, wrap
from linnet.arrays.expression.builders import aligned, blocks, common_layout
from linnet.arrays.expression.nodes import Access, Along, Entry, Node, Number, Operand, Piece, Spans
from linnet.arrays.expression.rechunk import overlaps
from linnet.arrays.functions.map_blocks import (
    Places,
    asks,
    bound,
    broadcast_access,
    called,
    numbered,
    probed,
    result_layout,
    sizes_of,
    told_dtype,
)
from linnet.arrays.functions.pad import pad
from linnet.errors import InputError
from linnet.kernels.arrays.user_functions import Wrapper
from linnet.records import record
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, from_sizes

if TYPE_CHECKING:
    from linnet.arrays.array import Array

_BOUNDARIES = {"reflect": "symmetric", "periodic": "wrap", "nearest": "edge"}
Depths = list[tuple[int, int]]
"""Along each axis, how many elements before a tile and how many after it."""


@record
class Wide:
    """An array whose tiles have their neighbours around them."""

    node: Node
    before: tuple[tuple[int, ...], ...]
    """Along each axis, how many elements of others stand before each tile's own,"""
    after: tuple[tuple[int, ...], ...]
    """and how many behind them."""


def map_overlap(
    func: Callable[..., Any],
    *args: Any,
    depth: Any = None,
    boundary: Any = "reflect",
    trim: bool = True,
    align_arrays: bool = True,
    dtype: Any = None,
    meta: Any = None,
    chunks: Any = None,
    drop_axis: Any = (),
    new_axis: Any = (),
    **kwargs: Any,
) -> Array:
    """A function on each tile with `depth` elements of its neighbours on every side.

    `map_overlap(func, x, depth, boundary)`, or with several arrays `map_overlap(func, x, y, depth=...)`.
    A depth is one for all axes, a tuple or a dict by axis; along an axis it is a number, or two: how
    many elements before and how many after the tile. At the ends of the array `boundary` says what
    neighbours are: "reflect" (the default: the array backwards, its end included), "periodic",
    "nearest", "none" (there are none), or a number; likewise by axis. Lists give these for each of
    several arrays, which are broadcast and cut alike; `align_arrays=False` refuses those that are not.
    Where an array is broadcast, it gets no neighbours.

    What the function makes of the first array's neighbours is cut off, unless `trim=False`; so it keeps
    the shape of the tiles it is given. `chunks`, `drop_axis` and `new_axis` say what it does
    instead, before the cutting off, and `block_id` and `block_info` tell it where it is, as for `map_blocks`.

    Parameters
    ----------
    func : callable
        The function on tiles with their neighbours.
    args : array_like
        The arrays; after a single one, `depth` and `boundary` may follow by place.
    depth : int, tuple, dict or list of these
        How many elements of neighbours a tile gets along each axis.
    boundary : str, number, dict or list of these
        What lies beyond the ends of the array.
    trim : bool
        Whether what the function made of neighbours is cut off.
    align_arrays : bool
        Whether several arrays are cut alike.
    dtype, meta : optional
        The dtype of the result, or an array that has it.
    chunks, drop_axis, new_axis : optional
        As for `map_blocks`.
    kwargs
        Passed to the function.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> mean = lambda t: (np.roll(t, 1) + t + np.roll(t, -1)) // 3
    >>> map_overlap(mean, asarray(np.arange(6) * 3, chunks=2), depth=1, boundary="nearest").compute()
    array([ 1,  3,  6,  9, 12, 14])
    >>> before = lambda t: np.roll(t, 1)
    >>> map_overlap(before, asarray(np.arange(6), chunks=2), {0: (1, 0)}, 9).compute()
    array([9, 0, 1, 2, 3, 4])
    """
    arrays, depth, boundary = _arguments(args, depth, boundary)
    nodes = [as_node(each) for each in arrays]
    shape = np.broadcast_shapes(*(node.shape for node in nodes))
    cut = common_layout(nodes, shape, nodes[0].dtype)
    aligned_nodes = [aligned(node, cut) for node in nodes]
    if not align_arrays and any(a is not b for a, b in zip(nodes, aligned_nodes, strict=True)):
        grids = [node.layout.boundaries for node in nodes]
        raise InputError(f"align_arrays=False, and the arrays are cut differently: {grids}")
    depths = [
        _depths(each, node, shape)
        for each, node in zip(_for_each(depth, aligned_nodes), aligned_nodes, strict=True)
    ]
    sides = [
        _by_axis(each, node.ndim, "none")
        for each, node in zip(_for_each(boundary, aligned_nodes), aligned_nodes, strict=True)
    ]
    wide = [widened(*each) for each in zip(aligned_nodes, depths, sides, strict=True)]
    reference = _reference(aligned_nodes, wide, shape)
    layout, source = result_layout(reference.layout, chunks, drop_axis, new_axis)
    accesses = [broadcast_access(each.node, len(shape), source) for each in wide]
    told = bool(asks(func))
    numbers = numbered(layout) if told else []

    def calling(kind: Any) -> Callable[..., Any]:
        inputs = tuple((k, w.node.layout, a) for k, (w, a) in enumerate(zip(wide, accesses, strict=True)))
        return bound(func, tuple(arrays), range(len(arrays)), kwargs, Places(inputs, layout, kind))

    kind = told_dtype(dtype, meta)
    if kind is None:
        samples = [
            np.ones(tuple(low + 1 + high for low, high in own), node.dtype)
            for own, node in zip(depths, nodes, strict=True)
        ]
        made = np.asarray(probed(calling(None), [*samples, *(0,) * len(numbers)], "map_overlap"))
        if trim and len(samples) == 1 and layout.boundaries == reference.layout.boundaries:
            _check_shape(func, made, samples[0].shape, samples)
        kind = made.dtype
    kind = np.dtype(kind)
    operands = [Operand(which, access) for which, access in enumerate(accesses)]
    whole = [each.node for each in wide]
    if not trim:
        return wrap(called(calling(kind), whole, [*operands, *numbers], layout, kind))
    trimmed, cuts, kept = _trimmed(calling(kind), layout, source, reference, len(operands) + len(numbers))
    return wrap(called(trimmed, whole, [*operands, *numbers, *cuts], kept, kind))


@record
class _Reference:
    """How wide the tiles of the result are, and where in them their own elements lie."""

    layout: Layout
    before: tuple[tuple[int, ...], ...]
    after: tuple[tuple[int, ...], ...]


def _reference(nodes: Sequence[Node], wide: Sequence[Wide], shape: tuple[int, ...]) -> _Reference:
    """Along each axis as the first array that is not broadcast there; those of more axes come first."""
    order = sorted(zip(nodes, wide, strict=True), key=lambda pair: -pair[0].ndim)
    chosen = [
        next((each, back) for node, each in order if node.ndim >= -back and node.shape[back] == shape[back])
        for back in range(-len(shape), 0)
    ]
    return _Reference(
        Layout(tuple(each.node.layout.boundaries[back] for each, back in chosen)),
        tuple(each.before[back] for each, back in chosen),
        tuple(each.after[back] for each, back in chosen),
    )


def _trimmed(
    call: Callable[..., Any], layout: Layout, source: dict[int, int], reference: _Reference, count: int
) -> tuple[Callable[..., Any], list[Number], Layout]:
    """The function without what it makes of neighbours, the numbers it needs for that, the cut left."""
    rank = len(layout.boundaries)
    axes = {place: axis for axis, place in source.items()}
    starts: list[Number] = []
    lengths: list[Number] = []
    wanted: list[Number] = []
    edges: list[Boundaries] = []
    for place, own in enumerate(layout.boundaries):
        full = sizes_of(own)
        none = (0,) * len(full)
        low = reference.before[axes[place]] if place in axes else none
        high = reference.after[axes[place]] if place in axes else none
        left = tuple(n - a - b for n, a, b in zip(full, low, high, strict=True))
        if min(left) < 0:
            raise InputError(
                f"chunks {full} along axis {place} are shorter than the neighbours {low} and {high} that are "
                "cut off; give trim=False if the function cuts them off itself"
            )
        starts.append(Entry(place, low))
        lengths.append(Entry(place, left))
        wanted.append(Entry(place, full))
        edges.append(from_sizes(left))

    return _Trimmed(call, count, rank), [*starts, *lengths, *wanted], Layout(tuple(edges))


@dataclass(frozen=True, eq=False)
class _Trimmed(Wrapper):
    """A function on tiles with their neighbours, without what it made of them."""

    count: int
    """Tiles and numbers that are for the function."""
    rank: int
    """Of the result: it is followed by so many starts, lengths that are kept, and whole lengths."""

    def __call__(self, *given: Any) -> Any:
        made = np.asarray(self.function(*given[: self.count]))
        parts = (given[self.count + k * self.rank : self.count + (k + 1) * self.rank] for k in range(3))
        low, left, full = parts
        _check_shape(self.function, made, full, given[: self.count])
        return made[tuple(slice(a, a + n) for a, n in zip(low, left, strict=True))]


def _check_shape(func: Callable[..., Any], made: Any, wanted: tuple[int, ...], given: Sequence[Any]) -> None:
    """Refuse what cannot be cut off: it would be elements at other places."""
    if made.shape != wanted:
        shapes = [np.shape(tile) for tile in given if np.ndim(tile)]
        same = "the same shape" if shapes == [wanted] else str(wanted)
        name = getattr(func, "__name__", "the function")
        raise ValueError(
            f"map_overlap: {name} returned shape {made.shape} for a tile of shape "
            f"{', '.join(map(str, shapes))} with its neighbours; expected {same}. Let it return something at "
            "the ends too (they are cut off), or give trim=False and chunks= if it cuts them off itself"
        )


# ---- the two halves


def overlap(x: Any, depth: Any, boundary: Any = "reflect") -> Array:
    """An array whose tiles have `depth` elements of their neighbours around them; see `map_overlap`.

    Parameters
    ----------
    x : array_like
    depth : int, tuple or dict
        How many elements of neighbours along each axis.
    boundary : str, number or dict
        What lies beyond the ends of the array.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> overlap(asarray(np.arange(4), chunks=2), 1, "none").compute()
    array([0, 1, 2, 1, 2, 3])
    """
    node = as_node(x)
    return wrap(widened(node, _depths(depth, node, node.shape), _by_axis(boundary, node.ndim, "none")).node)


def trim_overlap(x: Any, depth: Any, boundary: Any = "reflect") -> Array:
    """An array of `overlap` without the neighbours again.

    Parameters
    ----------
    x : array_like
    depth : int, tuple or dict
        How many elements of neighbours along each axis.
    boundary : str, number or dict
        What lies beyond the ends of the array.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> trim_overlap(overlap(asarray(np.arange(4), chunks=2), 1), 1).compute()
    array([0, 1, 2, 3])
    """
    node = as_node(x)
    depths = _depths(depth, node, node.shape)
    sides = _by_axis(boundary, node.ndim, "none")
    before: list[tuple[int, ...]] = []
    after: list[tuple[int, ...]] = []
    for count, (low, high), side in zip(node.grid, depths, sides, strict=True):
        at_ends = side in ("none", None)
        before.append((0 if at_ends else low, *(low,) * (count - 1)))
        after.append((*(high,) * (count - 1), 0 if at_ends else high))
    reference = _Reference(node.layout, tuple(before), tuple(after))
    own = {axis: axis for axis in range(node.ndim)}
    call, numbers, layout = _trimmed(_same, node.layout, own, reference, 1)
    access = tuple(Along(axis) for axis in range(node.ndim))
    return wrap(called(call, (node,), [Operand(0, access), *numbers], layout, node.dtype))


def _same(tile: Any) -> Any:
    return tile


# ---- what is given


def _arguments(args: tuple[Any, ...], depth: Any, boundary: Any) -> tuple[list[Any], Any, Any]:
    """The arrays, the depth and the boundary, which may stand behind the arrays."""
    arrays = list(itertools.takewhile(lambda each: isinstance(each, ArrayBase | np.ndarray), args))
    rest = list(args[len(arrays) :])
    if (
        not arrays
        or len(rest) > 2
        or (rest and depth is not None)
        or (len(rest) > 1 and boundary != "reflect")
    ):
        raise TypeError(
            "map_overlap takes a function, arrays, then depth and boundary, by place or by name; "
            f"got {[type(each).__name__ for each in args]}, depth={depth!r}, boundary={boundary!r}"
        )
    depth, boundary = (*rest, *(depth, boundary)[len(rest) :])
    if depth is None:
        raise TypeError("map_overlap needs depth=: how many elements of its neighbours a tile gets")
    return arrays, depth, boundary


def _for_each(given: Any, nodes: Sequence[Node]) -> list[Any]:
    """What is given for each array: a list has as many entries; anything else counts for all."""
    if not isinstance(given, list) or (len(nodes) == 1 and len(given) == nodes[0].ndim != 1):
        return [given] * len(nodes)
    if len(given) != len(nodes):
        raise InputError(
            f"{given!r} has {len(given)} entries for {len(nodes)} arrays; a list has one for each"
        )
    return given


def _by_axis(given: Any, rank: int, default: Any) -> list[Any]:
    if isinstance(given, dict):
        named = {axis_of(axis, rank): value for axis, value in given.items()}
        return [named.get(axis, default) for axis in range(rank)]
    if isinstance(given, tuple | list):
        if len(given) != rank:
            raise InputError(f"{given!r} has {len(given)} entries for an array with {rank} axes")
        return list(given)
    return [given] * rank


def _depths(depth: Any, node: Node, shape: tuple[int, ...]) -> Depths:
    """How many elements before and after a tile, by axis; none where the array is broadcast."""
    found: Depths = []
    offset = len(shape) - node.ndim
    for axis, each in enumerate(_by_axis(depth, node.ndim, 0)):
        low, high = _two(each)
        if not all(hasattr(n, "__index__") and n >= 0 for n in (low, high)):
            raise InputError(
                f"depth={depth!r}: along axis {axis} a depth is a number, at least 0, or two: "
                "before the tile and after it"
            )
        broadcast = node.shape[axis] == 1 != shape[axis + offset]
        found.append((0, 0) if broadcast else (int(low), int(high)))
    return found


def _two(each: Any) -> tuple[Any, Any]:
    if isinstance(each, tuple | list) and len(each) == 2:
        return each[0], each[1]
    return each, each


def widened(node: Node, depths: Depths, sides: Sequence[Any]) -> Wide:
    """Tiles with what surrounds them."""
    padded = node
    shifts: list[int] = []
    for axis, ((low, high), side) in enumerate(zip(depths, sides, strict=True)):
        bordered = bool(low or high) and side not in ("none", None)
        shifts.append(low if bordered else 0)
        if bordered:
            padded = _bordered(padded, axis, (low, high), side)
    edges: list[Boundaries] = []
    access: list[Access] = []
    numbers: list[Number] = []
    before: list[tuple[int, ...]] = []
    after: list[tuple[int, ...]] = []
    for axis, ((low, high), shift) in enumerate(zip(depths, shifts, strict=True)):
        old, total = padded.layout.boundaries[axis], padded.shape[axis]
        own = [(a + shift, b + shift) for a, b in itertools.pairwise(node.layout.boundaries[axis])]
        wide = [(max(0, a - low), min(total, b + high)) for a, b in own]
        spans = [overlaps(old, (0, b - a), a, 1) for a, b in wide]
        first, last, start, stop = (tuple(each[k][0] for each in spans) for k in range(4))
        access.append(Spans(axis, first, last))
        numbers += [Entry(axis, start), Entry(axis, stop)]
        before.append(tuple(a - c for (a, _), (c, _) in zip(own, wide, strict=True)))
        after.append(tuple(d - b for (_, b), (_, d) in zip(own, wide, strict=True)))
        edges.append(from_sizes([b - a for a, b in wide]))
    attributes = (("ranged", tuple(range(node.ndim))), ("steps", (1,) * node.ndim))
    piece = Piece("cut", (Operand(0, tuple(access)), *numbers), attributes)
    made = blocks((padded,), (piece,), Layout(tuple(edges)), node.dtype)
    return Wide(made, tuple(before), tuple(after))


def _bordered(node: Node, axis: int, widths: tuple[int, int], side: Any) -> Node:
    padding = [widths if each == axis else (0, 0) for each in range(node.ndim)]
    if isinstance(side, str):
        if side not in _BOUNDARIES:
            raise InputError(
                f'boundary={side!r} is not known; use "reflect", "periodic", "nearest", "none" or a number'
            )
        return pad(wrap(node), padding, _BOUNDARIES[side]).__node__
    return pad(wrap(node), padding, "constant", constant_values=side).__node__


def _map_overlap(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Array:
    """A function on each tile with its neighbours; see `map_overlap`."""
    return map_overlap(func, self, *args, **kwargs)


METHODS: dict[str, Any] = {"map_overlap": _map_overlap}
__all__ = ["map_overlap", "overlap", "trim_overlap"]
