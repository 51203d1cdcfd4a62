"""Kernels that give tiles other shapes: reshaped, joined, repeated, bytes as another dtype or as bits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from linnet.kernels.arrays.moves import cut, room
from linnet.kernels.registry import kernel

Tile = NDArray[Any]
Order = Literal["big", "little"]


def _no_flops(*_: Any, **__: Any) -> float:
    return 0.0


@kernel(
    "reshape", shape=lambda x, *lengths: lengths, dtype=lambda x, *_: x, flops=_no_flops, inplace=0, into=True
)
def reshape(x: Tile, *lengths: int, overwrite: Sequence[int] = (), into: Tile | None = None) -> Tile:
    """The elements of a tile, row by row, under other axes; nothing moves if nobody else needs the tile.

    >>> reshape(np.arange(4), 2, 2)
    array([[0, 1],
           [2, 3]])
    """
    if into is not None and into.shape == lengths and into.dtype == x.dtype:
        return _poured(x, into)
    made = x.reshape(lengths)
    return made if 0 in overwrite or not np.may_share_memory(made, x) else made.copy()


def _poured(x: Tile, into: Tile) -> Tile:
    """The elements of a tile, row by row, in an array of another shape."""
    # A view of the target in the tile's shape spares a copy where the tile is not in row-major order.
    view = into.view()
    try:
        view.shape = x.shape
    except AttributeError:  # its rows do not lie together
        into[...] = x.reshape(into.shape)
    else:
        view[...] = x
    return into


def _joined_shape(*parts: Any, axis: int) -> tuple[int, ...]:
    shape = list(_leaf(parts[0]))
    shape[axis] = sum(parts[place + 1] - parts[place] for place in range(1, len(parts), 3))
    return tuple(shape)


def _leaf(nest: Any) -> Any:
    while isinstance(nest, list):
        nest = nest[0]
    return nest


@kernel("join", shape=_joined_shape, dtype=lambda first, *_, **__: _leaf(first), flops=_no_flops, into=True)
def join(*parts: Any, axis: int, into: Tile | None = None) -> Tile:
    """Parts of several arrays one behind another.

    Each part is three arguments: neighbouring tiles of an array along the axis, and the first and
    past-last element wanted, counted from the corner of the first of these tiles.

    >>> join([np.arange(4)], 3, 4, [np.arange(10, 12), np.arange(12, 14)], 1, 3, axis=0)
    array([ 3, 11, 12])
    """
    first = _leaf(parts[0])
    shape = list(first.shape)
    shape[axis] = sum(parts[place + 1] - parts[place] for place in range(1, len(parts), 3))
    whole = room(shape, first.dtype, into)
    end = 0
    for place in range(0, len(parts), 3):
        tiles, low, high = parts[place : place + 3]
        start, end = end, end + high - low
        target = whole[(*(slice(None),) * axis, slice(start, end))]
        cut(tiles, low, high, ranged=(axis,), steps=(1,), into=target)
    return whole


@kernel("repeat", dtype=lambda x, *_, **__: x, flops=_no_flops)
def repeat(x: Tile, counts: Tile, *, axis: int) -> Tile:
    """Each element along an axis as many times as its count says.

    >>> repeat(np.array([7, 8]), np.array([1, 2]), axis=0)
    array([7, 8, 8])
    """
    return np.repeat(x, counts, axis=axis)


_CACHED = 1 << 15
"""Elements of a tile that are stretched at once, so that they are still in the cache."""


@kernel("stretch", dtype=lambda tiles, *_, **__: _leaf(tiles), flops=_no_flops, into=True)
def stretch(tiles: Any, count: int, *, axis: int, into: Tile | None = None) -> Tile:
    """Each element of a tile so many times along an axis.

    >>> stretch([np.array([7, 8])], 2, axis=0)
    array([7, 7, 8, 8])
    """
    x = _leaf(tiles)
    length = x.shape[axis]
    whole = room((*x.shape[:axis], count * length, *x.shape[axis + 1 :]), x.dtype, into)
    # Cutting an axis moves nothing.
    view = whole.reshape((*x.shape[:axis], length, count, *x.shape[axis + 1 :]))
    inner = math.prod(x.shape[axis + 1 :])
    if inner > count or count > length:
        view[...] = np.expand_dims(x, axis + 1)
        return whole
    # Short runs: one pass for each time is faster than many tiny copies.
    step = max(1, _CACHED // max(1, x[:1].size))
    for start in range(0, len(x), step):
        for time in range(count):
            view[(slice(start, start + step), *(slice(None),) * axis, time)] = x[start : start + step]
    return whole


def _again_shape(tiles: Any, *counts: int, axes: tuple[int, ...]) -> tuple[int, ...]:
    times = dict(zip(axes, counts, strict=True))
    first = tiles
    for _ in axes:
        first = first[0]
    return tuple(n * times.get(axis, 1) for axis, n in enumerate(first))


@kernel(
    "again",
    shape=_again_shape,
    dtype=lambda tiles, *_, **__: _leaf(tiles),
    flops=_no_flops,
    into=True,
)
def again(tiles: Any, *counts: int, axes: tuple[int, ...], into: Tile | None = None) -> Tile:
    """A tile so many times along each of some axes, in one pass.

    >>> again([np.array([[7, 8]])], 2, axes=(1,))
    array([[7, 8, 7, 8]])
    """
    x = _leaf(tiles)
    times = dict(zip(axes, counts, strict=True))
    whole = room([n * times.get(axis, 1) for axis, n in enumerate(x.shape)], x.dtype, into)
    pairs = [(times.get(axis, 1), n) for axis, n in enumerate(x.shape)]
    view = whole.reshape([each for pair in pairs for each in pair])  # cutting an axis moves nothing
    view[...] = x.reshape([each for n in x.shape for each in (1, n)])
    return whole


def _reinterpreted(x: tuple[int, ...], *, sizes: tuple[int, int] = (1, 1), **_: Any) -> tuple[int, ...]:
    old, new = sizes
    return x if old == new else (*x[:-1], x[-1] * old // new)


@kernel("reinterpret", shape=_reinterpreted, dtype=lambda x, *, into, **_: np.dtype(into), flops=_no_flops)
def reinterpret(x: Tile, *, into: str, sizes: tuple[int, int] = (1, 1)) -> Tile:
    """The bytes of a tile read as another dtype; `sizes` are those of elements before and after.

    >>> reinterpret(np.array([-1], "i4"), into="u4")
    array([4294967295], dtype=uint32)
    """
    return np.ascontiguousarray(x).reshape(x.shape).view(into).copy()


@kernel(
    "vander",
    shape=lambda x, *, columns, **_: (x[0], columns),
    dtype=lambda x, **_: np.promote_types(x, int),
    flops=lambda x, *, columns, **_: float(x[0] * columns),
)
def vander(x: Tile, *, columns: int, increasing: bool) -> Tile:
    """Powers of the elements, a row for each.

    >>> vander(np.array([2, 3]), columns=3, increasing=True)
    array([[1, 2, 4],
           [1, 3, 9]])
    """
    return np.vander(x, columns, increasing)


# ---- eight bits to a byte


def _bytes(*_: Any, **__: Any) -> Any:
    return np.dtype(np.uint8)


def _along(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    return (*shape[:axis], length, *shape[axis + 1 :])


@kernel(
    "pack_bits",
    shape=lambda x, *, axis, **_: _along(x, axis, -(-x[axis] // 8)),
    dtype=_bytes,
    flops=_no_flops,
)
def pack_bits(x: Tile, *, axis: int, order: Order) -> Tile:
    """Eight elements along an axis as one byte; zeros follow the last.

    >>> pack_bits(np.array([1, 0, 1]), axis=0, order="big")
    array([160], dtype=uint8)
    """
    return np.packbits(x, axis=axis, bitorder=order)


@kernel(
    "unpack_bits",
    shape=lambda x, *, axis, **_: _along(x, axis, 8 * x[axis]),
    dtype=_bytes,
    flops=_no_flops,
)
def unpack_bits(x: Tile, *, axis: int, order: Order) -> Tile:
    """The bits of each byte, along an axis.

    >>> unpack_bits(np.array([5], np.uint8), axis=0, order="little")
    array([1, 0, 1, 0, 0, 0, 0, 0], dtype=uint8)
    """
    return np.unpackbits(x, axis=axis, bitorder=order)
