"""Functions on tiles in the forms xarray asks for: reductions, scans, and axes with names."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from linnet.arrays.blockwise import called, probed
from linnet.arrays.building import permuted
from linnet.arrays.chunking import sizes
from linnet.arrays.core import ArrayBase, as_node, axes_of, recut_as, wrap
from linnet.arrays.expression import Access, Along, At, Node, Number, Operand, Span, Spans
from linnet.bridges.chunk_sizes import common
from linnet.errors import InputError
from linnet.tiles import Layout
from linnet.tiles.layout import Boundaries, from_sizes

_FAN_IN = 16
"""Tiles along an axis that one task of a reduction joins."""


def side_by_side(nest: Any, axes: Sequence[int]) -> NDArray[Any]:
    """A block of tiles as one array; its lists lie along these axes, the outermost along the first.

    >>> side_by_side([np.zeros((1, 2)), np.ones((1, 2))], [0]).shape
    (2, 2)
    """
    if not isinstance(nest, list | tuple):
        return nest
    parts = [side_by_side(each, axes[1:]) for each in nest]
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axes[0])


# ---- reductions


def reduced(
    array: Any,
    first: Callable[..., Any],
    combine: Callable[..., Any],
    last: Callable[..., Any],
    axis: Any,
    dtype: Any,
    keepdims: bool,
) -> Any:
    """`first` on each tile, `combine` on what it gave for several tiles, `last` on the rest of them.

    Each is called as `f(tile, axis=axes, keepdims=True)` and leaves one element along these axes.
    """
    node = as_node(array)
    axes = axes_of(axis, node.ndim)
    kind = np.dtype(node.dtype if dtype is None else dtype)
    cut = Layout(
        tuple(
            tuple(range(len(edges))) if a in axes else edges for a, edges in enumerate(node.layout.boundaries)
        )
    )
    step = functools.partial(first, axis=axes, keepdims=True)
    access = tuple(Along(a) for a in range(node.ndim))
    made = called(step, (node,), [Operand(0, access)], cut, kind)
    while any(made.grid[a] > _FAN_IN for a in axes):
        made = _joined(made, axes, functools.partial(combine, axis=axes, keepdims=True), kind)
    made = _joined(made, axes, functools.partial(last, axis=axes, keepdims=True), kind)
    return wrap(made if keepdims else permuted(made, tuple(a for a in range(node.ndim) if a not in axes)))


def _joined(node: Node, axes: tuple[int, ...], function: Callable[..., Any], kind: np.dtype[Any]) -> Node:
    """A function on so many tiles along each axis as one task joins."""
    access: list[Access] = []
    edges: list[Boundaries] = []
    for axis, old in enumerate(node.layout.boundaries):
        if axis not in axes:
            access.append(Along(axis))
            edges.append(old)
            continue
        count = len(old) - 1
        starts = tuple(range(0, count, _FAN_IN))
        access.append(Spans(axis, starts, tuple(min(count, start + _FAN_IN) for start in starts)))
        edges.append(tuple(range(len(starts) + 1)))

    def join(nest: Any) -> Any:
        return function(side_by_side(nest, axes))

    return called(join, (node,), [Operand(0, tuple(access))], Layout(tuple(edges)), kind)


# ---- scans


def accumulated(
    array: Any,
    function: Callable[..., Any],
    binop: Callable[..., Any],
    ident: Any,
    axis: int,
    dtype: np.dtype[Any],
    summary: Callable[..., Any] | None,
) -> Any:
    """A cumulative function along an axis: on each tile, and joined with all that came before it.

    `summary(tile, axis=, keepdims=True)` says what a tile hands on to those behind it; without one it
    is the last element of what the function gave. A tile becomes `binop(before, tile)`.
    """
    node = as_node(array)
    access = tuple(Along(a) for a in range(node.ndim))
    each = functools.partial(function, axis=axis, dtype=dtype)
    inside = called(each, (node,), [Operand(0, access)], node.layout, dtype)
    count = node.grid[axis]
    if count == 1:
        return wrap(inside)
    one = _with(node.layout, axis, tuple(range(count + 1)))
    if summary is None:
        handed = called(lambda t: np.take(t, [-1], axis), (inside,), [Operand(0, access)], one, dtype)
    else:
        ends = functools.partial(summary, axis=axis, keepdims=True)
        handed = called(ends, (node,), [Operand(0, access)], one, dtype)

    def before(nest: Any) -> Any:
        found = [np.full_like(nest[0], ident)]
        for tile in nest[:-1]:
            found.append(binop(found[-1], tile))
        return np.concatenate(found, axis=axis)

    spanned = tuple(Span(0, count) if a == axis else Along(a) for a in range(node.ndim))
    together = _with(node.layout, axis, (0, count))
    carried = called(before, (handed,), [Operand(0, spanned)], together, dtype)
    parted = recut_as(carried, sizes(one))
    operands = [Operand(0, access), Operand(1, access)]
    return wrap(called(binop, (parted, inside), operands, node.layout, dtype))


def _with(layout: Layout, axis: int, edges: Boundaries) -> Layout:
    return Layout((*layout.boundaries[:axis], edges, *layout.boundaries[axis + 1 :]))


# ---- axes with names


def _pairs(args: Sequence[Any]) -> list[tuple[Any, Any]]:
    if len(args) % 2:
        raise InputError("arrays and the names of their axes alternate: x, 'ij', y, 'jk', ...")
    return [(args[place], args[place + 1]) for place in range(0, len(args), 2)]


def unified(args: Sequence[Any]) -> tuple[dict[Any, tuple[int, ...]], list[Any]]:
    """Arrays cut alike along axes of the same name, and these cuts."""
    pairs = [(each, None if names is None else tuple(names)) for each, names in _pairs(args)]
    cuts: dict[Any, list[tuple[int, ...]]] = {}
    for array, names in pairs:
        for name, lengths in zip(names or (), _chunks(array) if names else (), strict=True):
            cuts.setdefault(name, []).append(lengths)
    found = {name: _agreed(name, each) for name, each in cuts.items()}
    arrays = [
        array if names is None else wrap(recut_as(as_node(array), _wanted(array, names, found)))
        for array, names in pairs
    ]
    return found, arrays


def _chunks(array: Any) -> tuple[tuple[int, ...], ...]:
    return array.chunks if isinstance(array, ArrayBase) else tuple((n,) for n in np.shape(array))  # type: ignore[attr-defined]


def _agreed(name: Any, cuts: list[tuple[int, ...]]) -> tuple[int, ...]:
    """The common cut of axes of one name; those of length 1 are broadcast."""
    long = [each for each in cuts if sum(each) != 1] or cuts
    lengths = sorted({sum(each) for each in long})
    if len(lengths) > 1:
        raise ValueError(f"axes named {name!r} have lengths {lengths}")
    return common(long)


def _wanted(array: Any, names: tuple[Any, ...], found: dict[Any, tuple[int, ...]]) -> tuple[Any, ...]:
    shape = np.shape(array) if not isinstance(array, ArrayBase) else as_node(array).shape
    return tuple(
        found[name] if sum(found[name]) == length else (length,)
        for name, length in zip(names, shape, strict=True)
    )


def blockwise(
    function: Callable[..., Any],
    out: tuple[Any, ...],
    args: Sequence[Any],
    adjust_chunks: dict[Any, Any],
    new_axes: dict[Any, Any],
    *,
    dtype: Any = None,
    concatenate: bool | None = None,
    **kwargs: Any,
) -> Any:
    """A function on tiles whose axes are named: a tile of the result for each place along the names `out`.

    Along names that the result lacks a function gets all tiles: nested lists of them, or one array
    with `concatenate=True`. `new_axes` has lengths of names that no array has, `adjust_chunks` lengths
    that the function changes (a function of the length, one number, or all lengths).

    >>> from linnet.arrays.creation import asarray
    >>> x = asarray(np.arange(4.0).reshape(2, 2), chunks=1)
    >>> total = lambda tile: tile.sum(axis=1)
    >>> blockwise(total, ("i",), (x, "ij"), {}, {}, concatenate=True).compute()
    array([1., 5.])
    """
    cuts, arrays = unified(args)
    names = [None if each is None else tuple(each) for _, each in _pairs(args)]
    cuts.update({name: _lengths(size) for name, size in new_axes.items()})
    missing = [name for name in out if name not in cuts]
    if missing:
        raise InputError(f"axes {missing} of the result belong to no array; give their lengths in new_axes")
    layout = Layout(tuple(from_sizes(_adjusted(cuts[name], adjust_chunks.get(name))) for name in out))
    nodes = [as_node(each) for each, axes in zip(arrays, names, strict=True) if axes is not None]
    operands: list[Operand | Number] = []
    for which, axes in enumerate(axes for axes in names if axes is not None):
        operands.append(Operand(which, tuple(_accesses(nodes[which], axes, out))))

    def call(*tiles: Any) -> Any:
        given, rest = [], iter(tiles)
        for each, axes in zip(arrays, names, strict=True):
            tile = each if axes is None else next(rest)
            if axes is not None and concatenate:
                tile = side_by_side(tile, [place for place, name in enumerate(axes) if name not in out])
            given.append(tile)
        return function(*given, **kwargs)

    kind = dtype if dtype is not None else _kind(call, nodes)
    return wrap(called(call, nodes, operands, layout, kind))


def _accesses(node: Node, axes: tuple[Any, ...], out: tuple[Any, ...]) -> list[Access]:
    return [
        Span(0, node.grid[place])
        if name not in out
        else Along(out.index(name))
        if node.grid[place] > 1
        else At(0)
        for place, name in enumerate(axes)
    ]


def _lengths(size: Any) -> tuple[int, ...]:
    return (int(size),) if hasattr(size, "__index__") else tuple(size)


def _adjusted(lengths: tuple[int, ...], change: Any) -> tuple[int, ...]:
    if change is None:
        return lengths
    if isinstance(change, int):
        return (change,) * len(lengths)
    return tuple(change(each) for each in lengths) if callable(change) else tuple(change)  # type: ignore[misc]


def _kind(call: Callable[..., Any], nodes: Sequence[Node]) -> np.dtype[Any]:
    samples = [np.ones((1,) * node.ndim, node.dtype) for node in nodes]
    return np.asarray(probed(call, samples, "blockwise")).dtype
