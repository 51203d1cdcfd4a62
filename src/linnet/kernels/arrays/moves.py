"""Kernels that move elements between tiles and compute nothing: cutting, joining, counting."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.registry import kernel
from linnet.machine import large_arrays

Tile = NDArray[Any]
Nested = Any
"""A tile, or a list of these, or a list of such lists, ..."""


def together(tiles: Nested, axes: Sequence[int]) -> Tile:
    """One array of tiles in nested lists; the levels of nesting run along `axes`.

    >>> together([[np.zeros((1, 2)), np.ones((1, 1))]], (0, 1))
    array([[0., 0., 1.]])
    """
    if not axes:
        return tiles
    if len(tiles) == 1:
        return together(tiles[0], axes[1:])
    return np.concatenate([together(each, axes[1:]) for each in tiles], axis=axes[0])


def room(
    shape: Sequence[int], dtype: np.dtype[Any], into: Tile | None, order: Literal["C", "F"] = "C"
) -> Tile:
    """Where a kernel writes its result: `into` if that is of its form, else new memory.

    >>> room((2,), np.dtype("i8"), None).shape
    (2,)
    """
    if into is not None and into.shape == tuple(shape) and into.dtype == dtype:
        return into
    if order == "F":
        return large_arrays.empty(tuple(shape)[::-1], dtype).T
    return large_arrays.empty(tuple(shape), dtype)


def spread(tiles: Nested, levels: int) -> list[Tile]:
    """The tiles of nested lists, in order."""
    if not levels:
        return [tiles]
    return [tile for each in tiles for tile in spread(each, levels - 1)]


def _first_dtype(tiles: Nested, *_: Any, **__: Any) -> Any:
    return _leaf(tiles)


def _cut_shape(
    tiles: Nested, *bounds: int, ranged: tuple[int, ...], steps: tuple[int, ...]
) -> tuple[int, ...]:
    first = tiles
    for _ in ranged:
        first = first[0]
    shape = list(first)
    for level, (axis, step) in enumerate(zip(ranged, steps, strict=True)):
        shape[axis] = len(range(bounds[2 * level], bounds[2 * level + 1], abs(step)))
    return tuple(shape)


@kernel("cut", shape=_cut_shape, dtype=_first_dtype, flops=lambda *_, **__: 0.0, into=True)
def cut(
    tiles: Nested,
    *bounds: int,
    ranged: tuple[int, ...],
    steps: tuple[int, ...],
    into: Tile | None = None,
) -> Tile:
    """Elements of neighbouring tiles: `x[start:stop:step]` along each axis in `ranged`.

    `bounds` holds start and stop for each of these axes, in elements from the corner of the first
    tile. With a negative step the elements between come in reverse order.

    >>> cut([np.arange(4), np.arange(4, 8)], 2, 7, ranged=(0,), steps=(2,))
    array([2, 4, 6])
    """
    # Only what is wanted of each tile is copied, and only once.
    pieces, lengths = _selected(tiles, bounds, ranged, steps)
    first = pieces[0][1]
    shape = list(first.shape)
    for axis, length in zip(ranged, lengths, strict=True):
        shape[axis] = length
    order = "F" if first.flags.f_contiguous and not first.flags.c_contiguous else "C"
    whole = room(shape, first.dtype, into, order)
    # What is wanted in reverse order is written to a view of the result in that order.
    backwards = tuple(axis for axis, step in zip(ranged, steps, strict=True) if step < 0)
    view = np.flip(whole, backwards) if backwards else whole
    for place, piece in pieces:
        target: list[slice] = [slice(None)] * whole.ndim
        for axis, start in zip(ranged, place, strict=True):
            target[axis] = slice(start, start + piece.shape[axis])
        view[tuple(target)] = piece
    return whole


def _split_shapes(tiles: Nested, *starts: int, edges: tuple[tuple[int, ...], ...]) -> Nested:
    lengths: list[int] = []
    for axis in range(len(edges)):
        level = tiles
        for _ in range(axis):
            level = level[0]
        firsts = [_first(each, len(edges) - axis - 1) for each in level]
        lengths.append(sum(shape[axis] for shape in firsts))
    counts = [
        [b - a for a, b in itertools.pairwise(_within(each, start, length))]
        for each, start, length in zip(edges, starts, lengths, strict=True)
    ]
    return _nested(counts, ())


def _first(nest: Nested, levels: int) -> Nested:
    for _ in range(levels):
        nest = nest[0]
    return nest


def _nested(counts: Sequence[Sequence[int]], before: tuple[int, ...]) -> Nested:
    if not counts:
        return before
    return [_nested(counts[1:], (*before, count)) for count in counts[0]]


def _within(edges: Sequence[int], start: int, length: int) -> list[int]:
    """Where edges fall in a slab, its ends for those outside."""
    return [min(max(edge - start, 0), length) for edge in edges]


@kernel("split_box", shape=_split_shapes, dtype=_first_dtype, flops=lambda *_, **__: 0.0)
def split_box(tiles: Nested, *starts: int, edges: tuple[tuple[int, ...], ...]) -> Nested:
    """A box of neighbouring tiles, in lists of lists, cut at edges along every axis.

    `starts` is where the box begins in the array that the edges are of; where none of it lies
    between two edges the piece is empty.

    >>> split_box([np.arange(2), np.arange(2, 5)], 10, edges=((0, 11, 14, 20),))
    [array([0]), array([1, 2, 3]), array([4])]
    """
    lengths = [sum(_leaf(each).shape[axis] for each in _first(tiles, axis)) for axis in range(len(edges))]
    cuts = [_within(*each) for each in zip(edges, starts, lengths, strict=True)]
    return _boxes(tiles, (), cuts)


def _boxes(tiles: Nested, bounds: tuple[int, ...], cuts: Sequence[list[int]]) -> Nested:
    """The pieces between neighbouring cuts, one level of lists for each axis.

    No function inside `split_box`: one that calls itself would keep the tiles alive until garbage is
    collected.
    """
    if not cuts:
        axes = tuple(range(len(bounds) // 2))
        return cut.function(tiles, *bounds, ranged=axes, steps=(1,) * len(axes))
    return [_boxes(tiles, (*bounds, a, b), cuts[1:]) for a, b in itertools.pairwise(cuts[0])]


def _selected(
    tiles: Nested, bounds: Sequence[int], ranged: Sequence[int], steps: Sequence[int]
) -> tuple[list[tuple[tuple[int, ...], Tile]], list[int]]:
    """The parts of tiles that are wanted, each with its place in the result, and the result's lengths."""
    pieces: list[tuple[tuple[int, ...], Any]] = [((), tiles)]
    lengths: list[int] = []
    for level, axis in enumerate(ranged):
        start, stop, step = bounds[2 * level], bounds[2 * level + 1], abs(steps[level])
        found: list[tuple[tuple[int, ...], Any]] = []
        length = 0
        for place, nest in pieces:
            position = length = 0  # of the tile's first element in the operand; elements taken so far
            for each in nest:
                size = _leaf(each).shape[axis]
                low = start - position if position < start else -(position - start) % step
                high = min(size, stop - position)
                count = max(0, -(-(high - low) // step))
                if count:
                    found.append(((*place, length), _narrowed(each, axis, slice(low, high, step))))
                length += count
                position += size
        pieces = found or [((*place, 0), _narrowed(nest[0], axis, slice(0, 0))) for place, nest in pieces]
        lengths.append(length)
    return pieces, lengths


def _leaf(nest: Nested) -> Tile:
    while isinstance(nest, list | tuple):
        nest = nest[0]
    return nest


def _narrowed(nest: Nested, axis: int, part: slice) -> Nested:
    if isinstance(nest, list):
        return [_narrowed(each, axis, part) for each in nest]
    return nest[(*(slice(None),) * axis, part)]


@kernel("iota", shape=lambda start, length, **_: (length,), flops=lambda *_, **__: 0.0)
def iota(start: int, length: int, *, dtype: str = "int64") -> Tile:
    """Consecutive integers.

    >>> iota(3, 4)
    array([3, 4, 5, 6])
    """
    return np.arange(start, start + length, dtype=dtype)
