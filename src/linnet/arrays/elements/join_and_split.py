"""Putting arrays together, and taking them apart again."""

from __future__ import annotations

import itertools
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linnet.arrays.elements.broadcast import atleast_1d, atleast_2d, atleast_3d
from linnet.arrays.elements.core import as_node, axis_of, chunked, wrap
from linnet.arrays.elements.elementwise import cast, placed
from linnet.arrays.elements.shapes import ravel
from linnet.arrays.expression.builders import blocks, concatenated, permuted, recut, sliced
from linnet.arrays.expression.nodes import Access, Along, Entry, Node, Operand, Piece, Source, Span, Spans
from linnet.arrays.expression.rechunk import overlaps
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries

if TYPE_CHECKING:
    from linnet.arrays.array import Array

# ---- on nodes


def part_of(node: Node, axis: int, start: int | None, stop: int | None, step: int = 1) -> Node:
    """A slice along one axis."""
    whole = slice(None)
    return sliced(node, [slice(start, stop, step) if a == axis else whole for a in range(node.ndim)])


def joined(nodes: Sequence[Node], axis: int, edges: Boundaries | None = None) -> Node:
    """Nodes of one dtype one behind another, cut at these edges along the axis (default: where they are).

    A tile of the result reads only what it needs of its one or two neighbours.
    """
    kept = [node for node in nodes if node.shape[axis]] or list(nodes[:1])
    if 0 in kept[0].shape:
        length = sum(node.shape[axis] for node in nodes)
        shape = (*kept[0].shape[:axis], length, *kept[0].shape[axis + 1 :])
        return Source(np.empty(shape, kept[0].dtype))
    if edges is None or len(kept) == 1:
        made = concatenated(kept, axis, kept[0].dtype)
        if edges is None:
            return made
        return recut(made, Layout(_with(made.layout.boundaries, axis, edges)))
    others = max(kept, key=lambda n: np.prod(n.shape, dtype=object)).layout.boundaries
    inputs = [recut(n, Layout(_with(others, axis, n.layout.boundaries[axis]))) for n in kept]
    starts = list(itertools.accumulate((n.shape[axis] for n in inputs), initial=0))
    layout = Layout(_with(others, axis, edges))
    pieces: list[Piece] = []
    tile = 0
    while tile < len(edges) - 1:
        which = max(0, min(bisect_right(starts, edges[tile]) - 1, len(inputs) - 1))
        inside = bisect_right(edges, starts[which + 1]) - 1  # tiles up to here end in the same array
        if inside > tile:
            pieces.append(_within(inputs[which], which, starts[which], axis, layout, (tile, inside)))
        else:
            pieces.append(_across(inputs, starts, axis, layout, tile))
        tile = max(tile + 1, inside)
    return blocks(inputs, pieces, layout, kept[0].dtype)


def _box(layout: Layout, axis: int, tiles: tuple[int, int]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    first = tuple(tiles[0] if a == axis else 0 for a in range(len(layout.grid)))
    last = tuple(tiles[1] if a == axis else n for a, n in enumerate(layout.grid))
    return first, last


def _within(node: Node, which: int, offset: int, axis: int, layout: Layout, tiles: tuple[int, int]) -> Piece:
    """Tiles that lie in one of the arrays."""
    new = layout.boundaries[axis]
    first, last, low, high = overlaps(node.layout.boundaries[axis], new, -offset, 1)
    access: tuple[Access, ...] = tuple(
        Spans(axis, first, last) if a == axis else Along(a) for a in range(node.ndim)
    )
    arguments = (Operand(which, access), Entry(axis, low), Entry(axis, high))
    return Piece("cut", arguments, (("ranged", (axis,)), ("steps", (1,))), *_box(layout, axis, tiles))


def _with(edges: Sequence[Boundaries], axis: int, new: Boundaries) -> tuple[Boundaries, ...]:
    return (*edges[:axis], new, *edges[axis + 1 :])


def _across(inputs: list[Node], starts: list[int], axis: int, layout: Layout, tile: int) -> Piece:
    """The tiles at one place along the axis, that lie in several arrays."""
    low, high = layout.boundaries[axis][tile : tile + 2]
    arguments: list[Any] = []
    for which in range(bisect_right(starts, low) - 1, len(inputs)):
        if starts[which] >= high:
            break
        node = inputs[which]
        old = node.layout.boundaries[axis]
        start, stop = max(low - starts[which], 0), min(high - starts[which], node.shape[axis])
        first, last = bisect_right(old, start) - 1, bisect_left(old, stop)
        access: tuple[Access, ...] = tuple(
            Span(first, last) if a == axis else Along(a) for a in range(node.ndim)
        )
        arguments += [Operand(which, access), start - old[first], stop - old[first]]
    return Piece("join", tuple(arguments), (("axis", axis),), *_box(layout, axis, (tile, tile + 1)))


# ---- one behind another


def _promoted(nodes: Sequence[Node], dtype: Any, casting: Any = "same_kind") -> list[Node]:
    kind = np.result_type(*(n.dtype for n in nodes)) if dtype is None else np.dtype(dtype)
    for node in nodes:
        if not np.can_cast(node.dtype, kind, casting):
            raise TypeError(f"cannot cast an array of {node.dtype} to {kind} with casting={casting!r}")
    return [cast(node, kind) for node in nodes]


def _concatenate(arrays: Any, axis: Any, out: Any, dtype: Any, casting: Any, name: str) -> Any:
    if out is not None and dtype is not None:
        raise TypeError(f"{name}() only takes `out` or `dtype` as an argument, but both were provided.")
    nodes = [as_node(each) for each in arrays]
    if not nodes:
        raise ValueError("need at least one array to concatenate")
    if axis is None:
        nodes, axis = [ravel(wrap(node)).__node__ for node in nodes], 0
    rank = nodes[0].ndim
    if not rank:
        raise ValueError("zero-dimensional arrays cannot be concatenated")
    place = axis_of(axis, rank)
    for number, node in enumerate(nodes):
        if node.ndim != rank:
            raise ValueError(
                "all the input array dimensions must match: "
                f"array 0 has {rank} dimension(s), array {number} has {node.ndim}"
            )
        if _with_gap(node.shape, place) != _with_gap(nodes[0].shape, place):
            raise ValueError(
                "all the input array dimensions except for the concatenation axis must match exactly: "
                f"axis {place}, array 0 has shape {nodes[0].shape}, array {number} has {node.shape}"
            )
    result = wrap(joined(_promoted(nodes, dtype, casting), place))
    return result if out is None else placed(result, out, True, name)


def _with_gap(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


@chunked(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Array:
    """Arrays one behind another along an axis; flattened first, if the axis is None.

    Parameters
    ----------
    arrays : sequence of arrays whose shapes differ along `axis` only
    axis : int, optional; the axis along which they are joined; None: each is flattened first
    out : array, optional; where the result goes
    dtype, casting : optional; the type of the result, and which casts are allowed

    Returns
    -------
    Array with the tiles of the arrays

    Examples
    --------
    >>> from linnet.arrays.elements.creation import asarray
    >>> concatenate([asarray([1, 2], chunks=1), asarray([3.5])]).compute()
    array([1. , 2. , 3.5])
    """
    return _concatenate(arrays, axis, out, dtype, casting, "concatenate")


def concat(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Array:
    """The same as `concatenate`, by the standard's name.

    Parameters
    ----------
    arrays : sequence of arrays whose shapes differ along `axis` only
    axis : int, optional; the axis along which they are joined; None: each is flattened first
    out : array, optional; where the result goes
    dtype, casting : optional; the type of the result, and which casts are allowed

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.concat([[1, 2], [3]]).compute()
    array([1, 2, 3])
    """
    return concatenate(arrays, axis, out, dtype=dtype, casting=casting)


@chunked(np.stack)
def stack(
    arrays: Any, axis: int = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Array:
    """Arrays of one shape along a new axis.

    Parameters
    ----------
    arrays : sequence of arrays of one shape
    axis : int; where the new axis is in the result
    out : array, optional; where the result goes
    dtype, casting : optional; the type of the result, and which casts are allowed

    Returns
    -------
    Array with one axis more

    Examples
    --------
    >>> import linnet as ln
    >>> ln.stack([[1, 2], [3, 4]], axis=1).compute()
    array([[1, 3],
           [2, 4]])
    """
    nodes = [as_node(each) for each in arrays]
    if not nodes:
        raise ValueError("need at least one array to stack")
    shapes = {node.shape for node in nodes}
    if len(shapes) > 1:
        raise ValueError(f"all input arrays must have the same shape, got {sorted(shapes)}")
    rank = nodes[0].ndim
    place = axis_of(axis, rank + 1)
    order = (*range(place), -1, *range(place, rank))
    layers = [wrap(permuted(node, order)) for node in nodes]
    return _concatenate(layers, place, out, dtype, casting, "stack")


def _several(result: Any) -> Any:
    return list(result) if isinstance(result, tuple) else [result]


@chunked(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Arrays one below another.

    Parameters
    ----------
    tup : sequence of arrays; vectors are rows
    dtype, casting : optional; the type of the result, and which casts are allowed

    Returns
    -------
    Array with at least two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.vstack([[1, 2], [3, 4]]).compute()
    array([[1, 2],
           [3, 4]])
    """
    return _concatenate(_several(atleast_2d(*tup)), 0, None, dtype, casting, "vstack")


@chunked(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Array:
    """Arrays side by side: along the second axis, vectors along their only one.

    Parameters
    ----------
    tup : sequence of arrays
    dtype, casting : optional; the type of the result, and which casts are allowed

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.hstack([[[1], [2]], [[3], [4]]]).compute()
    array([[1, 3],
           [2, 4]])
    """
    arrays = _several(atleast_1d(*tup))
    axis = 0 if arrays and arrays[0].ndim == 1 else 1
    return _concatenate(arrays, axis, None, dtype, casting, "hstack")


@chunked(np.dstack)
def dstack(tup: Any) -> Array:
    """Arrays one behind another, along the third axis.

    Parameters
    ----------
    tup : sequence of arrays

    Returns
    -------
    Array with at least three axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.dstack([[1, 2], [3, 4]]).compute()
    array([[[1, 3],
            [2, 4]]])
    """
    return _concatenate(_several(atleast_3d(*tup)), 2, None, None, "same_kind", "dstack")


@chunked(np.column_stack)
def column_stack(tup: Any) -> Array:
    """Vectors as columns, matrices as they are, side by side.

    Parameters
    ----------
    tup : sequence of vectors and matrices of one length

    Returns
    -------
    Array with two axes

    Examples
    --------
    >>> import linnet as ln
    >>> ln.column_stack([[1, 2], [3, 4]]).compute()
    array([[1, 3],
           [2, 4]])
    """
    orders = {0: (-1, -1), 1: (0, -1)}
    nodes = [as_node(each) for each in tup]
    arrays = [wrap(permuted(n, orders.get(n.ndim, tuple(range(n.ndim))))) for n in nodes]
    return _concatenate(arrays, 1, None, None, "same_kind", "column_stack")


@chunked(np.block)
def block(arrays: Any) -> Array:
    """An array of nested lists of blocks: the innermost lists run along the last axis.

    Parameters
    ----------
    arrays : nested lists of arrays, as deep as the result has axes

    Returns
    -------
    Array

    Examples
    --------
    >>> import linnet as ln
    >>> ln.block([[ln.ones((1, 1)), ln.zeros((1, 2))]]).compute()
    array([[1., 0., 0.]])
    """
    depth = _depth(arrays, ())
    leaves = [as_node(each) for each in _leaves(arrays)]
    rank = max([depth, *(leaf.ndim for leaf in leaves)])
    kind = np.result_type(*(leaf.dtype for leaf in leaves))
    return wrap(_blocked(arrays, rank - depth, rank, kind))


def _depth(arrays: Any, where: tuple[int, ...]) -> int:
    if isinstance(arrays, tuple):
        raise TypeError(f"arrays{list(where)} is a tuple. Only lists can be used to arrange blocks")
    if not isinstance(arrays, list):
        return 0
    if not arrays:
        raise ValueError(f"List at arrays{list(where)} cannot be empty")
    depths = {_depth(each, (*where, k)) for k, each in enumerate(arrays)}
    if len(depths) > 1:
        raise ValueError(f"List depths are mismatched at arrays{list(where)}: {sorted(depths)}")
    return 1 + depths.pop()


def _leaves(arrays: Any) -> list[Any]:
    return [leaf for each in arrays for leaf in _leaves(each)] if isinstance(arrays, list) else [arrays]


def _blocked(arrays: Any, axis: int, rank: int, dtype: Any) -> Node:
    if not isinstance(arrays, list):
        node = as_node(arrays)
        return cast(permuted(node, (*(-1,) * (rank - node.ndim), *range(node.ndim))), dtype)
    parts = [wrap(_blocked(each, axis + 1, rank, dtype)) for each in arrays]
    return _concatenate(parts, axis, None, None, "same_kind", "block").__node__


# ---- apart


METHODS: dict[str, Any] = {}
__all__ = [
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "stack",
    "vstack",
]
