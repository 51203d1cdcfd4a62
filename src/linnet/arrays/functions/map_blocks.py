"""Functions of the user's on tiles: `map_blocks`, and what it shares with others of its kind.

The function runs where the tiles are, on NumPy arrays. It travels by a name that the nodes hold
(`kernels.callables`), so programs with such functions run in this process only.
"""

from __future__ import annotations

import inspect
import itertools
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.core import ArrayBase, as_node, axes_of, wrap
from linnet.arrays.expression import chunking
from linnet.arrays.expression.builders import aligned, blocks, common_layout, recut
from linnet.arrays.expression.nodes import Access, Along, At, Entry, Node, Number, Operand, Piece
from linnet.errors import InputError
from linnet.kernels.arrays.user_functions import Wrapper, held
from linnet.records import record
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, from_sizes

if TYPE_CHECKING:
    from linnet.arrays.array import Array


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


def told_dtype(dtype: Any, meta: Any) -> Any:
    """The dtype that is told as such, or by an array of it; None if it is not."""
    return meta.dtype if dtype is None and meta is not None else dtype


# ---- what a function is told of its tile

TOLD = ("block_id", "block_info")
"""Keywords that a function may take to be told where its tile is."""


def asks(func: Callable[..., Any]) -> tuple[str, ...]:
    """Those of `TOLD` that a function takes."""
    try:
        parameters = inspect.signature(func).parameters
    except (TypeError, ValueError):  # functions written in C
        return ()
    return tuple(name for name in TOLD if name in parameters)


@record
class Places:
    """Where the tiles of a call are, in their arrays and in the result."""

    inputs: tuple[tuple[int, Layout, tuple[Access, ...]], ...]
    """For each array: which argument it is, how it is cut, which of its tiles a call gets."""
    result: Layout
    dtype: Any = None

    def told(self, names: tuple[str, ...], place: tuple[int, ...]) -> dict[str, Any]:
        """The keywords for the tile at a place of the result's grid."""
        found: dict[str, Any] = {}
        if "block_id" in names:
            found["block_id"] = place
        if "block_info" in names:
            info: dict[int | None, dict[str, Any]] = {}
            for argument, cut, access in self.inputs:
                own = tuple(place[each.axis] if isinstance(each, Along) else 0 for each in access)
                info[argument] = _described(cut, own)
            box = _described(self.result, place)
            lengths = tuple(stop - start for start, stop in box["array-location"])
            info[None] = {**box, "chunk-shape": lengths, "dtype": self.dtype}
            found["block_info"] = info
        return found


def _described(cut: Layout, place: tuple[int, ...]) -> dict[str, Any]:
    box = [(edges[k], edges[k + 1]) for edges, k in zip(cut.boundaries, place, strict=True)]
    return {"shape": cut.shape, "num-chunks": cut.grid, "array-location": box, "chunk-location": place}


def bound(
    func: Callable[..., Any],
    args: tuple[Any, ...],
    places: Sequence[int],
    kwargs: dict[str, Any],
    where: Places | None = None,
) -> Callable[..., Any]:
    """The function of tiles alone; and of the place of its tile in the result, where it asks for that."""
    names = asks(func) if where is not None else ()
    if len(places) == len(args) and not kwargs and not names:
        return func
    others = tuple(None if place in places else each for place, each in enumerate(args))
    return _Bound(func, others, tuple(places), kwargs, names, where)


@dataclass(frozen=True, eq=False)
class _Bound(Wrapper):
    """A function with all its arguments but tiles."""

    args: tuple[Any, ...]
    """None where a tile belongs."""
    places: tuple[int, ...]
    """Where tiles belong."""
    kwargs: dict[str, Any]
    asked: tuple[str, ...]
    """What it is told of the place of its tile,"""
    where: Places | None
    """and how that is found."""

    def __call__(self, *tiles: Any) -> Any:
        given = list(self.args)
        for place, tile in zip(self.places, tiles, strict=False):
            given[place] = tile
        told = self.where.told(self.asked, tiles[len(self.places) :]) if self.where and self.asked else {}
        return self.function(*given, **self.kwargs, **told)


def numbered(layout: Layout) -> list[Number]:
    """The place of each tile, as numbers for its call."""
    return [Entry(axis, tuple(range(count))) for axis, count in enumerate(layout.grid)]


# ---- tile by tile


def map_blocks(
    func: Callable[..., Any],
    *args: Any,
    dtype: Any = None,
    chunks: Any = None,
    drop_axis: Any = (),
    new_axis: Any = (),
    meta: Any = None,
    **kwargs: Any,
) -> Array:
    """A function on each tile; tiles at the same place belong together.

    Arrays whose shapes broadcast are cut alike first. Others must agree in the number of tiles along
    each axis, or have one there, which every call gets. Everything else is passed as it is: numbers,
    keywords, and arrays of NumPy's, which every call gets whole (`ln.asarray` makes one that is cut).

    `chunks` says the lengths of the tiles that come out, if they are not those that go in: for
    each axis one number for all tiles, or one for each. `dtype` (or an array of it as `meta`) spares
    a trial call. A function that takes the keyword `block_id` is told the place of its tile in the
    result, and `block_info` as a dict: of the result under None, of the arrays under the numbers
    of their arguments, with "shape", "num-chunks", "chunk-location" and "array-location"; of the result
    also "chunk-shape" and "dtype". Such a function needs no arrays, but `chunks`.

    Parameters
    ----------
    func : callable
        The function on tiles.
    args
        Arrays, which are cut alike, and what every call gets as it is.
    dtype : optional
        Of the result; without it the function is tried on a small example.
    chunks : optional
        Lengths of the tiles of the result, where they differ.
    drop_axis, new_axis : int or sequence of int
        Axes that the function takes away, or adds.
    meta : optional
        An array of the dtype of the result.
    kwargs
        Passed to the function.

    Returns
    -------
    Array

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> map_blocks(lambda tile: tile[::-1], asarray(np.arange(6), chunks=3)).compute()
    array([2, 1, 0, 5, 4, 3])
    >>> map_blocks(lambda block_id: np.full(2, block_id[0]), chunks=((2, 2),)).compute()
    array([0, 0, 1, 1])
    """
    cut_up = [place for place, each in enumerate(args) if isinstance(each, ArrayBase)]
    whole = [place for place, each in enumerate(args) if isinstance(each, np.ndarray)]
    if not cut_up:  # arrays of NumPy's alone are cut as ours
        cut_up, whole = whole, []
    if not cut_up and chunks is None:
        raise InputError(
            "map_blocks needs at least one array, or chunks= for a function that takes block_id or block_info"
        )
    nodes, cut = _matched([as_node(args[place]) for place in cut_up])
    if cut_up:
        layout, source = result_layout(cut, chunks, drop_axis, new_axis)
    else:
        layout, source = Layout(tuple(_told(each, None, a) for a, each in enumerate(_entries(chunks)))), {}
    accesses = [broadcast_access(node, len(cut.boundaries), source) for node in nodes]
    where = Places(
        tuple((p, node.layout, access) for p, node, access in zip(cut_up, nodes, accesses, strict=True)),
        layout,
    )
    numbers = numbered(layout) if asks(func) else []
    kind = told_dtype(dtype, meta)
    if kind is None:
        samples = [np.ones((1,) * node.ndim, node.dtype) for node in nodes]
        call = bound(func, args, cut_up, kwargs, where)
        kind = np.asarray(probed(call, [*samples, *(0,) * len(numbers)], "map_blocks")).dtype
    call = bound(func, args, [*cut_up, *whole], kwargs, replace(where, dtype=np.dtype(kind)))
    for place in whole:
        nodes.append(recut(as_node(args[place]), chunking.whole(args[place].shape)))
        accesses.append((At(0),) * args[place].ndim)
    operands = [Operand(which, access) for which, access in enumerate(accesses)]
    return wrap(called(call, nodes, [*operands, *numbers], layout, kind))


def _matched(nodes: list[Node]) -> tuple[list[Node], Layout]:
    """Arrays whose tiles at the same place belong together, and the grid of these places."""
    try:
        shape = np.broadcast_shapes(*(node.shape for node in nodes))
    except ValueError:
        return nodes, _common_grid(nodes)
    cut = common_layout(nodes, shape, nodes[0].dtype) if nodes else Layout(())
    return [aligned(node, cut) for node in nodes], cut


def _common_grid(nodes: Sequence[Node]) -> Layout:
    """The grid of arrays of other shapes: along each axis the cut of the first with most tiles."""
    edges: list[Boundaries] = []
    for back in range(max(node.ndim for node in nodes), 0, -1):
        along = [node.layout.boundaries[-back] for node in nodes if node.ndim >= back]
        edges.append(max(along, key=len))
        if any(len(each) not in (2, len(edges[-1])) for each in along):
            shapes, grids = ([getattr(node, which) for node in nodes] for which in ("shape", "grid"))
            raise InputError(
                f"map_blocks: arrays of shapes {shapes} do not broadcast, and their numbers of tiles {grids} "
                "do not either; rechunk them to as many tiles, or to one"
            )
    return Layout(tuple(edges))


def result_layout(cut: Layout, chunks: Any, drop_axis: Any, new_axis: Any) -> tuple[Layout, dict[int, int]]:
    """The layout of the result, and for each axis that is kept its place there."""
    rank = len(cut.boundaries)
    dropped = axes_of(_several(drop_axis), rank)
    for axis in dropped:
        if len(cut.boundaries[axis]) > 2:
            raise InputError(
                f"drop_axis={axis}: the axis lies in {len(cut.boundaries[axis]) - 1} tiles; "
                f"rechunk({{{axis}: -1}}) first"
            )
    kept = [axis for axis in range(rank) if axis not in dropped]
    added = _several(new_axis)
    given = None if chunks is None else _entries(chunks)
    if given is not None and not added:  # more lengths than axes: new ones in front
        added = tuple(range(len(given) - len(kept)))
    added = axes_of(added, len(kept) + len(added))
    order: list[int | None] = list(kept)
    for axis in added:
        order.insert(axis, None)
    edges = [(0, 1) if axis is None else cut.boundaries[axis] for axis in order]
    source = {axis: place for place, axis in enumerate(order) if axis is not None}
    if given is not None:
        if len(given) != len(edges):
            raise InputError(f"chunks={chunks!r} has {len(given)} entries; the result has {len(edges)} axes")
        edges = [
            _told(each, None if order[axis] is None else len(e) - 1, axis)
            for axis, (each, e) in enumerate(zip(given, edges, strict=True))
        ]
    return Layout(tuple(edges)), source


def _several(axes: Any) -> tuple[Any, ...]:
    if axes is None:
        return ()
    return tuple(axes) if isinstance(axes, tuple | list) else (axes,)


def _entries(chunks: Any) -> tuple[Any, ...]:
    return (chunks,) if hasattr(chunks, "__index__") else tuple(chunks)


def _told(entry: Any, count: int | None, axis: int) -> Boundaries:
    """Lengths of so many tiles; None: of as many as there are lengths."""
    sizes = (operator.index(entry),) * (count or 1) if hasattr(entry, "__index__") else tuple(entry)
    if count is not None and len(sizes) != count:
        raise InputError(f"chunks {sizes} along axis {axis}: there are {count} tiles")
    return from_sizes(sizes)


def broadcast_access(node: Node, rank: int, source: dict[int, int]) -> tuple[Access, ...]:
    """Which tiles of an operand go to a call: those at its place; the one there is along other axes."""
    offset = rank - node.ndim
    return tuple(
        Along(source[axis + offset]) if node.grid[axis] > 1 and axis + offset in source else At(0)
        for axis in range(node.ndim)
    )


def _map_blocks(self: Any, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Array:
    """A function on each tile; see `map_blocks`."""
    return map_blocks(func, self, *args, **kwargs)


METHODS: dict[str, Any] = {"map_blocks": _map_blocks}
__all__ = ["map_blocks"]
