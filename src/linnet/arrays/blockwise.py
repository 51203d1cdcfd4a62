"""Functions of the user's on tiles: `map_blocks` and `map_overlap`; a view of the tiles.

The function runs where the tiles are, on NumPy arrays. It travels by a name that the nodes hold
(`kernels.callables`), so programs with such functions run in this process only.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linnet.arrays.building import aligned, blocks, common_layout
from linnet.arrays.core import ArrayBase, as_node, axes_of, axis_of, wrap
from linnet.arrays.expression import Access, Along, At, Entry, Node, Number, Operand, Piece, Spans
from linnet.arrays.joining import joined, part_of
from linnet.arrays.moving import overlaps
from linnet.arrays.padding import pad
from linnet.errors import InputError
from linnet.kernels.callables import held
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, from_sizes

_BOUNDARIES = {"reflect": "symmetric", "periodic": "wrap", "nearest": "edge"}


def called(
    function: Callable[..., Any],
    nodes: Sequence[Node],
    arguments: Sequence[Operand | Number],
    layout: Layout,
    dtype: Any,
) -> Node:
    """A function on tiles and numbers, for each tile of a layout."""
    kind = np.dtype(dtype)
    lengths = [Entry(axis, sizes_of(edges)) for axis, edges in enumerate(layout.boundaries)]
    attributes = (("function", held(function)), ("rank", len(lengths)), ("dtype", kind.str))
    return blocks(nodes, (Piece("call", (*arguments, *lengths), attributes),), layout, kind)


def sizes_of(edges: Boundaries) -> tuple[int, ...]:
    """Lengths of tiles."""
    return tuple(b - a for a, b in itertools.pairwise(edges))


def probed(function: Callable[..., Any], samples: Sequence[Any], name: str) -> Any:
    """What the function gives on small arrays of ones: tells dtype and shape."""
    try:
        with np.errstate(all="ignore"):
            return function(*samples)
    except Exception as problem:
        raise TypeError(
            f"{name} tried the function on small arrays of ones to learn its dtype, and it raised "
            f"{type(problem).__name__}: {problem}; give dtype= instead"
        ) from problem


# ---- tile by tile


def map_blocks(
    func: Callable[..., Any],
    *args: Any,
    dtype: Any = None,
    chunks: Any = None,
    drop_axis: Any = (),
    new_axis: Any = (),
    **kwargs: Any,
) -> Any:
    """A function on each tile. Arrays are broadcast against each other; numbers are passed as they are.

    `chunks` says the lengths of the tiles that come out, if they are not those that go in: for
    each axis one number for all tiles, or one for each. A keyword `block_id` of the function
    gets the place of the tile.

    >>> from linnet.arrays.creation import asarray
    >>> map_blocks(lambda tile: tile[::-1], asarray(np.arange(6), chunks=3)).compute()
    array([2, 1, 0, 5, 4, 3])
    """
    places = [place for place, each in enumerate(args) if isinstance(each, ArrayBase | np.ndarray)]
    if not places:
        raise InputError("map_blocks needs at least one array; fromfunction makes arrays of positions")
    nodes = [as_node(args[place]) for place in places]
    shape = np.broadcast_shapes(*(node.shape for node in nodes))
    cut = common_layout(nodes, shape, nodes[0].dtype)
    nodes = [aligned(node, cut) for node in nodes]
    wants_id = "block_id" in _parameters(func)
    call = _bound(func, args, places, kwargs, len(shape) if wants_id else None)
    if dtype is None:
        samples = [np.ones((1,) * node.ndim, node.dtype) for node in nodes]
        dtype = np.asarray(probed(call, [*samples, *(0,) * (len(shape) * wants_id)], "map_blocks")).dtype
    layout, source = _result_layout(cut, chunks, drop_axis, new_axis)
    arguments: list[Operand | Number] = [
        Operand(which, _broadcast_access(node, len(shape), source)) for which, node in enumerate(nodes)
    ]
    if wants_id:
        arguments += [
            Entry(source[axis], tuple(range(len(edges) - 1))) if axis in source else 0
            for axis, edges in enumerate(cut.boundaries)
        ]
    return wrap(called(call, nodes, arguments, layout, dtype))


def _parameters(func: Callable[..., Any]) -> tuple[str, ...]:
    try:
        return tuple(inspect.signature(func).parameters)
    except (TypeError, ValueError):  # functions written in C
        return ()


def _bound(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    places: list[int],
    kwargs: dict[str, Any],
    ids: int | None,
) -> Callable[..., Any]:
    """The function of tiles alone, and of the numbers of the tile if it wants them."""
    if len(places) == len(args) and not kwargs and ids is None:
        return func

    def call(*tiles: Any) -> Any:
        given = list(args)
        for place, tile in zip(places, tiles, strict=False):
            given[place] = tile
        named = kwargs if ids is None else {**kwargs, "block_id": tiles[len(places) :]}
        return func(*given, **named)

    return functools.update_wrapper(call, func) if hasattr(func, "__name__") else call


def _result_layout(cut: Layout, chunks: Any, drop_axis: Any, new_axis: Any) -> tuple[Layout, dict[int, int]]:
    """The layout of the result, and for each axis that is kept its place there."""
    rank = len(cut.boundaries)
    dropped = axes_of(drop_axis if isinstance(drop_axis, tuple | list) else (drop_axis,), rank)
    for axis in dropped:
        if len(cut.boundaries[axis]) > 2:
            raise InputError(
                f"drop_axis={axis}: the axis lies in {len(cut.boundaries[axis]) - 1} tiles; "
                f"rechunk({{{axis}: -1}}) first"
            )
    kept = [axis for axis in range(rank) if axis not in dropped]
    added = new_axis if isinstance(new_axis, tuple | list) else (new_axis,)
    added = axes_of(tuple(added), len(kept) + len(added))
    order: list[int | None] = list(kept)
    for axis in added:
        order.insert(axis, None)
    edges = [(0, 1) if axis is None else cut.boundaries[axis] for axis in order]
    source = {axis: place for place, axis in enumerate(order) if axis is not None}
    if chunks is not None:
        given = (chunks,) if hasattr(chunks, "__index__") else tuple(chunks)
        if len(given) != len(edges):
            raise InputError(f"chunks={chunks!r} has {len(given)} entries; the result has {len(edges)} axes")
        edges = [
            _told(each, len(e) - 1, axis) for axis, (each, e) in enumerate(zip(given, edges, strict=True))
        ]
    return Layout(tuple(edges)), source


def _told(entry: Any, count: int, axis: int) -> Boundaries:
    sizes = (operator.index(entry),) * count if hasattr(entry, "__index__") else tuple(entry)
    if len(sizes) != count:
        raise InputError(f"chunks {sizes} along axis {axis}: there are {count} tiles")
    return from_sizes(sizes)


def _broadcast_access(node: Node, rank: int, source: dict[int, int]) -> tuple[Access, ...]:
    offset = rank - node.ndim
    return tuple(
        Along(source[axis + offset]) if node.grid[axis] > 1 and axis + offset in source else At(0)
        for axis in range(node.ndim)
    )


# ---- with neighbours


def map_overlap(
    func: Callable[..., Any],
    x: Any,
    depth: Any,
    boundary: Any = "reflect",
    *,
    trim: bool = True,
    dtype: Any = None,
    **kwargs: Any,
) -> Any:
    """A function on each tile with `depth` elements of its neighbours on every side.

    At the ends of the array `boundary` says what neighbours are: "reflect" (the array backwards,
    its end included), "periodic", "nearest", "none" (there are none), or a number; one for all
    axes, or a dict by axis. What the function makes of neighbours is cut off, unless `trim=False`.

    >>> from linnet.arrays.creation import asarray
    >>> mean = lambda t: (np.roll(t, 1) + t + np.roll(t, -1)) // 3
    >>> map_overlap(mean, asarray(np.arange(6) * 3, chunks=2), depth=1, boundary="nearest").compute()
    array([ 1,  3,  6,  9, 12, 14])
    """
    node = as_node(x)
    depths = [int(each) for each in _by_axis(depth, node.ndim, 0)]
    sides = _by_axis(boundary, node.ndim, "none")
    if any(each < 0 for each in depths):
        raise InputError(f"depth={depth!r}: a depth is at least 0")
    padded = node
    for axis, (width, side) in enumerate(zip(depths, sides, strict=True)):
        if width and side not in ("none", None):
            padded = _bordered(padded, axis, width, side)
    wide, cuts = _overlapping(node, padded, depths)
    call = _bound(func, (x,), [0], kwargs, None)
    if dtype is None:
        sample = np.ones(tuple(2 * width + 1 for width in depths), node.dtype)
        dtype = np.asarray(probed(call, [sample], "map_overlap")).dtype
    access = tuple(Along(axis) for axis in range(node.ndim))
    if not trim:
        return wrap(called(call, (wide,), [Operand(0, access)], wide.layout, dtype))

    def trimmed(tile: Any, *starts: int) -> Any:
        lengths = starts[node.ndim :]
        made = np.asarray(call(tile))
        return made[tuple(slice(low, low + n) for low, n in zip(starts, lengths, strict=False))]

    numbers = [Entry(axis, starts) for axis, starts in enumerate(cuts)]
    numbers += [Entry(axis, sizes_of(edges)) for axis, edges in enumerate(node.layout.boundaries)]
    return wrap(called(trimmed, (wide,), [Operand(0, access), *numbers], node.layout, dtype))


def _by_axis(given: Any, rank: int, default: Any) -> list[Any]:
    if isinstance(given, dict):
        named = {axis_of(axis, rank): value for axis, value in given.items()}
        return [named.get(axis, default) for axis in range(rank)]
    if isinstance(given, tuple | list):
        if len(given) != rank:
            raise InputError(f"{given!r} has {len(given)} entries for an array with {rank} axes")
        return list(given)
    return [given] * rank


def _bordered(node: Node, axis: int, width: int, side: Any) -> Node:
    widths = [(width, width) if each == axis else (0, 0) for each in range(node.ndim)]
    if isinstance(side, str):
        if side not in _BOUNDARIES:
            raise InputError(
                f'boundary={side!r} is not known; use "reflect", "periodic", "nearest", "none" or a number'
            )
        return pad(wrap(node), widths, _BOUNDARIES[side]).node
    return pad(wrap(node), widths, "constant", constant_values=side).node


def _overlapping(node: Node, padded: Node, depths: list[int]) -> tuple[Node, list[tuple[int, ...]]]:
    """Tiles with what surrounds them, and where in each its own elements begin."""
    edges: list[Boundaries] = []
    access: list[Access] = []
    numbers: list[Number] = []
    begins: list[tuple[int, ...]] = []
    for axis, width in enumerate(depths):
        old, total = padded.layout.boundaries[axis], padded.shape[axis]
        shift = (total - node.shape[axis]) // 2
        own = [(a + shift, b + shift) for a, b in itertools.pairwise(node.layout.boundaries[axis])]
        wide = [(max(0, a - width), min(total, b + width)) for a, b in own]
        spans = [overlaps(old, (0, b - a), a, 1) for a, b in wide]
        first, last, low, high = (tuple(each[k][0] for each in spans) for k in range(4))
        access.append(Spans(axis, first, last))
        numbers += [Entry(axis, low), Entry(axis, high)]
        begins.append(tuple(a - start for (a, _), (start, _) in zip(own, wide, strict=True)))
        edges.append(from_sizes([b - a for a, b in wide]))
    ranged = tuple(range(node.ndim))
    attributes = (("ranged", ranged), ("steps", (1,) * node.ndim))
    piece = Piece("cut", (Operand(0, tuple(access)), *numbers), attributes)
    return blocks((padded,), (piece,), Layout(tuple(edges)), node.dtype), begins


# ---- the tiles themselves


class BlockView:
    """Tiles of an array by their place in the grid.

    >>> from linnet.arrays.creation import asarray
    >>> asarray(np.arange(6), chunks=2).blocks[1].compute()
    array([2, 3])
    """

    def __init__(self, array: Any) -> None:
        self._array = array

    @property
    def shape(self) -> tuple[int, ...]:
        """How many tiles along each axis."""
        return self._array.grid

    @property
    def size(self) -> int:
        """How many tiles."""
        return int(np.prod(self.shape, dtype=object))

    def __getitem__(self, index: Any) -> Any:
        node = self._array.node
        given = index if isinstance(index, tuple) else (index,)
        if Ellipsis in given:
            place = given.index(Ellipsis)
            given = (*given[:place], *(slice(None),) * (node.ndim - len(given) + 1), *given[place + 1 :])
        if len(given) > node.ndim:
            raise IndexError(f"{len(given)} indices for tiles of an array with {node.ndim} axes")
        for axis, each in enumerate(given):
            if each is None:
                raise IndexError("tiles have no new axes; index with integers, slices and lists")
            chosen = np.atleast_1d(np.arange(node.grid[axis])[each]).tolist()
            edges = node.layout.boundaries[axis]
            if not chosen:
                node = part_of(node, axis, 0, 0)
            elif chosen == list(range(chosen[0], chosen[0] + len(chosen))):
                node = part_of(node, axis, edges[chosen[0]], edges[chosen[-1] + 1])
            else:
                node = joined([part_of(node, axis, edges[k], edges[k + 1]) for k in chosen], axis)
        return wrap(node)

    def ravel(self) -> list[Any]:
        """All tiles, the last axis fastest, each an array."""
        return [self[index] for index in itertools.product(*(range(n) for n in self.shape))]


def _map_blocks(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A function on each tile; see `map_blocks`."""
    return map_blocks(func, self, *args, **kwargs)


def _map_overlap(self: Any, func: Callable[..., Any], depth: Any, *args: Any, **kwargs: Any) -> Any:
    """A function on each tile with its neighbours; see `map_overlap`."""
    return map_overlap(func, self, depth, *args, **kwargs)


METHODS: dict[str, Any] = {
    "blocks": property(BlockView),
    "map_blocks": _map_blocks,
    "map_overlap": _map_overlap,
}
__all__ = ["BlockView", "map_blocks", "map_overlap"]
